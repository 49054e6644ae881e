"""Price tables: what is taken from one, what is refused and where, and what has no cost rather than a wrong one."""

import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.dates import today
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace.analysis.prices import KINDS, PackagePrices, Prices, apply, load, load_package
from orchtrace_corpus.trace.measures.ledger import cost_by_tool
from orchtrace_corpus.trace.model.import_report import ImportReport, has_all_costs
from orchtrace_corpus.trace.model.terms import EdgeType, EventType
from orchtrace_corpus.trace.model.trace import Clock, Edge, Event, Tokens, Trace
from tests.conftest import ROOT, run_corpus

SESSION = ROOT / "tests" / "data" / "session"

TABLE = """\
date: 2026-05-04
currency: USD
models:
  some-model: {input: 3, output: 15, cache_read: 0.3, cache_write: 3.75}
  another-model: {input: 0.5, output: 2}
"""


def table(tmp_path: Path, text: str = TABLE) -> str:
    path = tmp_path / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def event(model: str = "some-model", kind: str = "inference", **tokens: int | None) -> Event:
    return Event("e1", 0.0, EventType(kind), "main", model=model, tokens=Tokens(**tokens))


def trace(*events: Event, epoch: str | None = "2026-05-04T10:00:00Z") -> Trace:
    return Trace("t", "t", list(events), [], {}, {"tokens": None, "wall_clock_s": 60.0}, clock=Clock(epoch=epoch))


def test_a_table_is_read_as_documented(tmp_path: Path) -> None:
    prices = load(table(tmp_path))

    assert prices.date == "2026-05-04"
    assert prices.models["some-model"] == {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}


def test_the_table_in_the_documentation_can_be_read(tmp_path: Path) -> None:
    documented = (
        (ROOT / "docs" / "importers.md").read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    )

    prices = load(table(tmp_path, documented))

    assert prices.models
    assert set().union(*prices.models.values()) <= set(KINDS)


def test_json_is_yaml_too(tmp_path: Path) -> None:
    prices = load(table(tmp_path, '{"date": "2026-05-04", "currency": "USD", "models": {"m": {"input": 1e-1}}}'))

    assert prices == Prices("2026-05-04", {"m": {"input": 0.1}})


def test_a_cost_is_the_sum_over_the_kinds_of_tokens(tmp_path: Path) -> None:
    spent = {"input": 1000, "output": 200, "cache_read": 10_000, "cache_write": 400}

    assert load(table(tmp_path)).cost("some-model", spent) == pytest.approx(
        (1000 * 3 + 200 * 15 + 10_000 * 0.3 + 400 * 3.75) / 1e6
    )


def test_reasoning_is_paid_as_the_output_that_it_is_part_of(tmp_path: Path) -> None:
    prices = load(table(tmp_path))

    assert prices.cost("some-model", {"input": 10, "output": 200, "reasoning": 150}) == prices.cost(
        "some-model", {"input": 10, "output": 200}
    )


@pytest.mark.parametrize(
    ("model", "is_known"),
    [
        ("some-model", True),
        ("some-model-20260101", True),
        ("some-model@2026-01-01", True),
        ("some-model-mini", False),
        ("some", False),
        ("", False),
    ],
)
def test_a_model_stands_for_its_dated_snapshots_and_for_no_other(tmp_path: Path, model: str, is_known: bool) -> None:
    assert (load(table(tmp_path)).model_prices(model) is not None) == is_known


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("unheard-of", {"input": 1, "output": 1}),
        ("another-model", {"input": 1, "output": 1, "cache_read": 1}),  # a kind without a price
        ("some-model", {"input": None, "output": 1}),
        ("some-model", {"reasoning": 5}),
        ("some-model", {}),
    ],
)
def test_what_is_not_known_has_no_cost_and_never_one_of_0(tmp_path: Path, model: str, tokens: dict[str, Any]) -> None:
    assert load(table(tmp_path)).cost(model, tokens) is None


def test_a_kind_without_a_price_does_not_matter_where_nothing_of_it_is_spent(tmp_path: Path) -> None:
    assert load(table(tmp_path)).cost("another-model", {"input": 2, "output": 1, "cache_read": 0}) == 3e-6


def test_an_answer_of_which_half_is_counted_has_no_cost_but_an_embedding_has_no_output(tmp_path: Path) -> None:
    half, embedding = event(input=10), event(kind="tool_call", input=10)
    run = trace(half, embedding)

    apply(load(table(tmp_path)), run)

    assert half.cost_usd is None
    assert embedding.cost_usd == 3e-5
    assert run.import_report["prices"]["without"] == {"some-model": 1}


def test_the_report_says_by_which_prices_and_what_has_none(tmp_path: Path) -> None:
    copied = event(input=5, output=5)
    copied.copied_context = True
    run = trace(event(input=5, output=5), event("unheard-of", input=5, output=5), event("", input=1, output=1), copied)

    apply(load(table(tmp_path)), run)

    assert run.import_report["prices"] == {
        "date": "2026-05-04",
        "currency": "USD",
        "first_day": "2026-05-04",
        "last_day": "2026-05-04",
        "events": 1,
        "without": {"unheard-of": 1, "(no model)": 1},
        "unused": ["another-model"],
    }
    assert [one.cost_usd for one in run.events] == [9e-5, None, None, None]


def test_costs_by_other_prices_are_not_mixed_with_these(tmp_path: Path) -> None:
    run = trace(event("unheard-of", input=5, output=5))
    run.events[0].cost_usd = 7.0

    apply(load(table(tmp_path)), run)

    assert run.events[0].cost_usd is None


def test_a_run_over_midnight_has_two_days_and_one_without_a_date_none(tmp_path: Path) -> None:
    prices = load(table(tmp_path))
    late, dateless = trace(event(), epoch="2026-05-04T23:59:30Z"), trace(event(), epoch=None)

    apply(prices, late)
    apply(prices, dateless)

    assert (late.import_report["prices"]["first_day"], late.import_report["prices"]["last_day"]) == (
        "2026-05-04",
        "2026-05-05",
    )
    assert "first_day" not in dateless.import_report["prices"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("date: 2026-05-04\n", "", ":1:1: the price table has no 'date'"),
        ("date: 2026-05-04", "date: May 2026", ":1:7: 'May 2026' is not a date such as 2026-05-04"),
        ("date: 2026-05-04", "date: 2026-02-30", ":1:7: '2026-02-30' is not a date such as 2026-05-04"),
        ("USD", "EUR", ":2:11: prices are in USD, not in 'EUR'"),
        ("models:", "modells:", ":3:1: the price table: unknown 'modells' (did you mean 'models'?"),
        ("{input: 0.5, output: 2}", "2", ":5:18: the prices of 'another-model' must be a mapping of names to values"),
        ("output: 2}", "ouput: 2}", ":5:31: the prices of 'another-model': unknown 'ouput' (did you mean 'output'?"),
        ("0.5", "free", ":5:26: 'free' is not a price: dollars for a million tokens, such as 2.5"),
        ("0.5", "-1", ":5:26: '-1' is not a price"),
        ("0.5", "1_000", ":5:26: '1_000' is not a price"),
        ("0.5", "nan", ":5:26: 'nan' is not a price"),
        ("0.5", "1e999", ":5:26: '1e999' is not a price"),
        ("0.5", "$3", ":5:26: '$3' is not a price"),
        ("0.5", "{upto_200k: 1, above: 2}", ":5:26: a price is one number; of prices in tiers"),
        ("0.5", "[1, 2]", ":5:26: a price is one number; of prices in tiers"),
        ("  another", "  some-model: {input: 1}\n  another", "key 'some-model' is given twice"),
        ("date: 2026-05-04", "date: [2026-05-04]", ":1:7: 'date' must be text"),
        (TABLE, "", ":1:1: the price table is empty"),
        (TABLE, "# nothing yet\n", ":1:1: the price table is empty"),
        (TABLE[TABLE.index("models") :], "models: {}\n", ":3:9: 'models' names no model"),
        (TABLE, "- 1\n", ":1:1: the price table must be a mapping of names to values"),
        ("{input: 0.5", "{input: [0.5", "not valid YAML"),
    ],
)
def test_a_wrong_table_is_refused_at_its_place_with_the_mend(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TABLE
    path = table(tmp_path, TABLE.replace(old, new, 1))

    with pytest.raises(DataFileError) as refused:
        load(path)

    assert message in str(refused.value)
    assert str(refused.value).startswith(f"{path}:")
    assert str(refused.value).endswith("docs/importers.md shows a price table.")


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"cannot read .*nowhere\.yaml: No such file"):
        load(str(tmp_path / "nowhere.yaml"))


def test_models_of_the_table_that_the_run_has_not_are_told_and_may_be_misspelt(tmp_path: Path) -> None:
    prices = table(tmp_path, TABLE.replace("some-model", "example-larg"))

    doctor = run_corpus("trace", "doctor", str(SESSION), "--prices", prices)
    imported = run_corpus("trace", "import", str(SESSION), "--prices", prices)

    said = "The price table names example-larg, another-model, of which the run has no event."
    assert "Cost      unknown: no price, or no count, for example-large-20260115, example-small.\n" in doctor.stdout
    assert f"          {said}\n" in doctor.stdout
    assert f"{said}\n" in imported.stderr


def test_prices_of_a_day_that_has_not_come_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1777680000")  # 2026-05-02
    too_late = run_corpus("trace", "doctor", str(SESSION), "--prices", table(tmp_path))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1777766400")  # 2026-05-03: the 4th has begun somewhere on earth
    in_time = run_corpus("trace", "doctor", str(SESSION), "--prices", table(tmp_path))

    assert too_late.code == 3
    assert "prices.yaml: the day of the prices, 2026-05-04, has not come yet\n" in too_late.stderr
    assert in_time.code == 0


spent = st.dictionaries(st.sampled_from(KINDS), st.integers(0, 10**9), min_size=1).map(
    lambda tokens: {**tokens, "cache_write": tokens.get("cache_write", 0) + tokens.get("cache_write_1h", 0)}
)


@given(spent, spent)
def test_costs_add_up(first: dict[str, int], second: dict[str, int]) -> None:
    prices = Prices("2026-05-04", {"m": dict.fromkeys(KINDS, 2.5)})
    both = {kind: first.get(kind, 0) + second.get(kind, 0) for kind in KINDS}

    parts = [prices.cost("m", tokens) or 0.0 for tokens in (first, second)]

    assert prices.cost("m", both) == pytest.approx(sum(parts), abs=1e-8)


# The prices of the package genai-prices


@pytest.mark.parametrize(
    ("row", "usd", "least"),
    [
        ("{input: 3, output: 15, cache_write: 3.75, cache_write_1h: 6}", 3.0 + 15.0 + 3.75 + 6.0, {}),
        ("{input: 3, output: 15, cache_write: 3.75}", 3.0 + 15.0 + 3.75 + 3.75, {"some-model": 1}),
        ("{input: 3, output: 15, cache_write_1h: 6}", None, {}),
    ],
)
def test_what_caches_keep_for_an_hour_has_its_own_price_or_costs_at_least_the_other(
    tmp_path: Path, row: str, usd: float | None, least: dict[str, int]
) -> None:
    spent = {"input": 10**6, "output": 10**6, "cache_write": 2 * 10**6, "cache_write_1h": 10**6}
    run = trace(event(**spent))
    run.import_report.update(ImportReport().as_data())
    run.costs["tokens"] = 4e6
    path = table(tmp_path, f"date: 2026-05-04\ncurrency: USD\nmodels:\n  some-model: {row}\n")

    apply(load(path), run)

    assert run.events[0].cost_usd == usd
    assert run.import_report["prices"].get("without_hour", {}) == least
    assert has_all_costs(run) is (usd is not None and not least)


def test_no_tokens_cost_nothing_whatever_the_model(tmp_path: Path) -> None:
    run = trace(event("", input=0, output=0, cache_read=0, cache_write=0), event("unheard-of", input=0, output=0))

    apply(load(table(tmp_path)), run)

    assert [one.cost_usd for one in run.events] == [0.0, 0.0]
    assert run.import_report["prices"]["without"] == {}


def test_without_the_package_costs_are_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "env" / "python"))
    monkeypatch.setattr("orchtrace_corpus.base.errors.__file__", str(tmp_path / "package" / "base" / "errors.py"))
    monkeypatch.setitem(sys.modules, "genai_prices", None)

    result = run_corpus("trace", "doctor", str(SESSION), "--cost")

    assert (result.code, result.stdout) == (3, "")
    assert result.stderr == (
        "corpus: the package genai-prices, which knows prices, is not installed\n"
        "Install it: env/python -m pip install -e '.[prices]'\n"
        "Or give a table: --prices FILE\n"
    )


def test_two_sorts_of_prices_contradict_each_other() -> None:
    result = run_corpus("trace", "doctor", str(SESSION), "--cost", "--prices", str(SESSION / "prices.yaml"))

    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.startswith("corpus: --prices and --cost contradict each other")


class TestPackage:
    """With the package itself; it is an extra."""

    @pytest.fixture(autouse=True)
    def package(self) -> PackagePrices:
        pytest.importorskip("genai_prices")
        return load_package(date(2026, 11, 22))

    def test_the_day_is_that_of_the_last_change_that_has_come(self, package: PackagePrices) -> None:
        assert "2026-01-01" < package.date <= "2026-11-22"
        assert load_package(date(2026, 6, 30)).date <= "2026-06-30"
        assert package.source.startswith("genai-prices ")

    @pytest.mark.parametrize(
        ("model", "tokens", "usd"),
        [
            (
                "claude-sonnet-4-5-20250929",
                {"input": 1000, "output": 200, "cache_read": 10_000, "cache_write": 400},
                0.0105,
            ),
            ("claude-opus-4-20250514", {"input": 1000, "output": 200, "reasoning": 150}, 0.03),
            ("gpt-5", {"input": 1000, "output": 200, "cache_read": 10_000}, 0.0045),
            ("gpt-5", {"input": 1000, "output": 200, "cache_write": 10}, None),  # a kind without a price
            ("claude-opus-4-5-20251101", {"cache_write": 1000, "cache_write_1h": 1000}, 0.01),
            ("claude-opus-4-5-20251101", {"cache_write": 1000, "cache_write_1h": 400}, 0.00775),
            ("gpt-5", {"input": None, "output": 200}, None),
            ("gpt-5", {}, None),
            ("unheard-of", {"input": 1, "output": 1}, None),
            ("", {"input": 1, "output": 1}, None),
        ],
    )
    def test_a_cost_is_that_of_the_package_or_unknown(
        self, package: PackagePrices, model: str, tokens: dict[str, Any], usd: float | None
    ) -> None:
        assert package.cost(model, tokens, datetime(2025, 10, 1, tzinfo=UTC)) == usd

    def test_a_large_context_is_paid_by_its_tier(self, package: PackagePrices) -> None:
        moment = datetime(2025, 10, 1, tzinfo=UTC)

        assert package.cost("claude-sonnet-4-5", {"input": 100_000}, moment) == 0.3
        assert package.cost("claude-sonnet-4-5", {"input": 300_000}, moment) == 1.8

    def test_events_have_costs_and_the_report_says_by_whose_prices(self, package: PackagePrices) -> None:
        run = trace(event("gpt-5", input=1000, output=200), event("unheard-of", input=1, output=1))

        apply(package, run)

        assert [one.cost_usd for one in run.events] == [0.00325, None]
        assert run.import_report["prices"] == {
            "date": package.date,
            "currency": "USD",
            "first_day": "2026-05-04",
            "last_day": "2026-05-04",
            "events": 1,
            "without": {"unheard-of": 1},
            "source": package.source,
            "unused": [],
        }

    def test_doctor_and_import_print_whose_prices_they_are(self, tmp_path: Path) -> None:
        (main,) = SESSION.glob("*.jsonl")
        text = main.read_text(encoding="utf-8").replace("example-large-20260115", "claude-sonnet-4-5-20250929")
        (tmp_path / main.name).write_text(text, encoding="utf-8")

        screen = run_corpus("trace", "doctor", str(tmp_path), "--cost")
        written = run_corpus("trace", "import", str(tmp_path), "--cost")

        prices = f"the prices of {load_package(today()).source}, which knows changes until {load_package(today()).date}"
        assert f"USD at {prices}" in " ".join(screen.stdout.split())
        assert f"Cost at {prices}" in " ".join(written.stderr.split())
        assert '"cost_usd": 0.' in written.stdout or '"cost_usd":0.' in written.stdout

    def test_a_time_that_no_calendar_has_is_paid_at_the_day_of_the_table(self, package: PackagePrices) -> None:
        late = trace(event("gpt-5", input=1000, output=200))
        late.events[0].t = 1e300

        apply(package, late)

        assert late.events[0].cost_usd == 0.00325


def test_the_cost_of_an_answer_goes_in_equal_parts_to_the_tools_that_it_calls() -> None:
    answer, silent = event(input=10), event(input=10)
    answer.id, answer.cost_usd, silent.id, silent.cost_usd = "a", 0.3, "s", 0.05
    calls = [
        Event(f"c{n}", 1.0, EventType.TOOL_CALL, "main", tool=tool) for n, tool in enumerate(("Bash", "Bash", "Grep"))
    ]
    embedding = Event("e", 2.0, EventType.TOOL_CALL, "main", tool="embed", cost_usd=0.01)
    run = trace(answer, silent, *calls, embedding)
    run.edges = [Edge("a", call.id, EdgeType.CAUSAL) for call in calls] + [Edge("a", "s", EdgeType.CAUSAL)]

    assert cost_by_tool(run) == (
        ("Bash", pytest.approx(0.2)),
        ("Grep", pytest.approx(0.1)),
        ("", 0.05),
        ("embed", 0.01),
    )
    assert sum(usd for _, usd in cost_by_tool(run)) == pytest.approx(0.36)
    assert cost_by_tool(trace(event(input=10))) == ()
