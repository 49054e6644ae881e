"""What is known of scale: read strictly, compared honestly, shown with the boundary of what it says."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from orchtrace_corpus.base.errors import InvalidCorpusError, MalformedCorpusError
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.records import Entries
from orchtrace_corpus.corpus.model.scale import (
    BOUNDS,
    Amount,
    Group,
    Observation,
    Phase,
    Support,
    compare,
    decode_scale,
    parse_amount,
    span,
)
from orchtrace_corpus.corpus.render.scale import BOUNDARY, amount, overview, status
from orchtrace_corpus.corpus.render.schema import data_schemas
from tests.conftest import ROOT, TOY, run_corpus
from tests.corpus.files import edit, run_in, write_data
from tests.corpus.test_schema import as_editors_read

TWO_GROUPS = """\
- system: Park
  group: deployment
  quantity: beds
  value: "<=300"
  unit: flower beds
  evidence: vendor_copy
  sources: [https://example.org/park, https://example.com/copy]
  verified: false

- system: Allotment
  group: deployment
  quantity: beds
  value: unknown
  unit: beds
  evidence: vendor
  sources: [https://example.org/allotment]
  verified: false

- system: Four Beds
  group: academic
  record: rose-garden
  quantity: beds
  phase: training
  value: 4
  unit: beds
  evidence: paper
  sources: [https://example.org/roses]
  quote: There are four beds.
  verified: true
  note: Counted in the plan.

- system: Park
  group: deployment
  quantity: cost
  value: "~2.5"
  unit: millions
  evidence: third_party
  sources: [https://example.com/costs]
  verified: false
"""


@pytest.fixture
def root(root: Path) -> Path:
    """Add observations to the toy corpus."""
    write_data(root, scale=TWO_GROUPS)
    return root


def decoded(text: str, keys: tuple[str, ...] = ("rose-garden",)) -> Entries[Observation]:
    return decode_scale(YamlFile("scale.yaml", text.encode()), keys)


@pytest.mark.parametrize(
    ("text", "wanted", "said"),
    [
        ("16", Amount(16, 16), "16"),
        ("4.5", Amount(4.5, 4.5), "4.5"),
        ("3-5", Amount(3, 5), "3 to 5"),
        ("<=300", Amount(300, 300, "<="), "up to 300"),
        ("<20000", Amount(20000, 20000, "<"), "under 20,000"),
        (">=2", Amount(2, 2, ">="), "at least 2"),
        ("~2000", Amount(2000, 2000, "~"), "about 2,000"),
        ("~2-3", Amount(2, 3, "~"), "about 2 to 3"),
        ("2000000000", Amount(2e9, 2e9), "2,000,000,000"),
        ("0", Amount(0, 0), "0"),
    ],
)
def test_an_amount_is_a_number_a_range_or_a_bound(text: str, wanted: Amount, said: str) -> None:
    assert parse_amount(text) == wanted
    assert amount(wanted) == said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "5-",
        "-5",
        "5-3",
        "1,5",
        "1e9",
        "12 beds",
        "<",
        "≤3",
        "<=>3",
        ".5",
        "5.",
        "٣",
        "3–5",
        "nan",
        "inf",
        "9" * 17,
    ],
)
def test_what_is_no_amount(text: str) -> None:
    assert parse_amount(text) is None


@given(st.sampled_from(["", *BOUNDS]), st.integers(0, 10**12), st.integers(0, 10**6))
def test_amounts_are_read_as_they_are_written(bound: str, low: int, more: int) -> None:
    assert parse_amount(f"{bound}{low}-{low + more}") == Amount(low, low + more, bound)


@given(st.text(max_size=20))
def test_no_text_breaks_the_reading_of_amounts(text: str) -> None:
    parsed = parse_amount(text)

    assert parsed is None or 0 <= parsed.low <= parsed.high


def test_nothing_known_is_said_so() -> None:
    assert amount(None) == "unknown"


def test_observations_are_decoded() -> None:
    file = decoded(TWO_GROUPS)

    assert file.findings == ()
    assert file.items[2] == Observation(
        system="Four Beds",
        group=Group.ACADEMIC,
        quantity="beds",
        value=Amount(4, 4),
        unit="beds",
        evidence=Support.PAPER,
        sources=("https://example.org/roses",),
        verified=True,
        record="rose-garden",
        phase=Phase.TRAINING,
        quote="There are four beds.",
        note="Counted in the plan.",
    )
    assert [observation.value is None for observation in file.items] == [False, True, False, False]
    assert [observation.is_second_hand for observation in file.items] == [True, False, False, True]
    assert [status(observation) for observation in file.items] == [
        "reported",
        "unknown",
        "verified",
        "reported",
    ]


def test_what_has_a_mistake_is_left_out_and_not_counted() -> None:
    file = decoded(TWO_GROUPS.replace('"<=300"', "many"))

    assert [finding.code for finding in file.findings] == ["S101"]
    assert len(file.items) == 3
    with pytest.raises(InvalidCorpusError, match="S101 'many' is not an amount"):
        file.require()


def test_a_broken_file_is_unreadable() -> None:
    with pytest.raises(MalformedCorpusError, match="Y104"):
        decoded(TWO_GROUPS + "- [").require()


def test_an_empty_list_is_no_mistake() -> None:
    assert (decoded("[]\n").items, decoded("[]\n").findings) == ((), ())


def test_only_quantities_of_both_groups_are_compared() -> None:
    [comparison] = compare(decoded(TWO_GROUPS).items)

    assert comparison.quantity == "beds"
    assert [observation.system for observation in comparison.deployments] == ["Park", "Allotment"]
    assert [observation.system for observation in comparison.academic] == ["Four Beds"]
    assert span(comparison.deployments) == Amount(300, 300)
    assert span(comparison.deployments[1:]) is None
    assert overview(comparison) == "Beds: in use limits of 300 (1 given), unknown of 1; in experiments 4 (1 counted)."
    only_unknown = comparison._replace(deployments=comparison.deployments[1:])
    assert overview(only_unknown) == "Beds: in use unknown (1); in experiments 4 (1 counted)."


def test_the_page_opens_with_the_answer(root: Path) -> None:
    assert run_in(root, "scale") == (
        0,
        """\
Beds: in use limits of 300 (1 given), unknown of 1; in experiments 4 (1
counted).
Reported envelopes against open evaluation regimes, not verified training
traces.

Beds in use
system     value                  phase  status    read in
Park       up to 300 flower beds         reported  vendor, copy
Allotment  unknown                       unknown   vendor

Beds in experiments
system     value   phase     status    read in
Four Beds  4 beds  training  verified  publication

What is known of one group only
quantity  value               phase  status    read in
Park
  cost    about 2.5 millions         reported  third party
Copies and third parties are second-hand: the page they speak of was not read itself.
""",
        "",
    )


def test_what_cannot_be_compared_is_said_first(root: Path) -> None:
    (root / "data" / "scale.yaml").write_text(TWO_GROUPS.split("- system: Four Beds")[0], encoding="utf-8")

    assert run_in(root, "scale").stdout.splitlines()[0] == "No quantity is known of both groups."


def test_the_comparison_as_a_document(root: Path) -> None:
    text = run_in(root, "scale", "--format", "markdown").stdout

    assert text.startswith(
        "Beds: in use limits of 300 (1 given), unknown of 1; in experiments 4 (1 counted).\n\n"
        f"{BOUNDARY}\n\n## Beds in use\n\n| system"
    )
    assert text.count(BOUNDARY) == 1
    assert "| Park      | up to 300 flower beds |       | reported | vendor, copy |" in text


def test_the_comparison_for_programs(root: Path) -> None:
    document = json.loads(run_in(root, "scale", "--format", "json").stdout)

    assert (document["schema"], document["version"]) == ("orchtrace-corpus/scale", 1)
    assert document["boundary"] == BOUNDARY
    assert document["comparisons"] == [
        {
            "quantity": "beds",
            "deployment": {
                "low": None,
                "high": None,
                "counted": 0,
                "lowest_limit": 300,
                "highest_limit": 300,
                "limits": 1,
                "unknown": 1,
            },
            "academic": {
                "low": 4,
                "high": 4,
                "counted": 1,
                "lowest_limit": None,
                "highest_limit": None,
                "limits": 0,
                "unknown": 0,
            },
        }
    ]
    assert document["observations"][0] == {
        "system": "Park",
        "group": "deployment",
        "record": None,
        "quantity": "beds",
        "phase": None,
        "value": "up to 300",
        "bound": "<=",
        "low": 300,
        "high": 300,
        "unit": "flower beds",
        "status": "reported",
        "evidence": "vendor_copy",
        "second_hand": "yes",
        "sources": ["https://example.org/park", "https://example.com/copy"],
        "quote": None,
        "note": None,
    }
    assert document["observations"][3]["low"] == 2.5


def test_every_observation_as_a_row(root: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run_in(root, "scale", "--format", "csv").stdout)))

    assert [row["system"] for row in rows] == ["Park", "Allotment", "Four Beds", "Park"]
    assert rows[1]["value"] == "unknown"
    assert rows[1]["low"] == ""
    assert rows[0]["sources"] == "https://example.org/park ; https://example.com/copy"


def test_a_corpus_without_the_file_has_no_comparison(tmp_path: Path) -> None:
    result = run_corpus("--root", str(TOY), "scale")

    assert (result.code, result.stdout) == (3, "")
    assert "this corpus has no data/scale.yaml" in result.stderr


def test_mistakes_are_reported_at_their_place_by_everything_that_reads_the_file(root: Path) -> None:
    edit(root, "record: rose-garden", "record: rose-gardn", "data/scale.yaml")
    finding = (
        "scale.yaml:21:11: S103 there is no paper 'rose-gardn' (did you mean 'rose-garden'?); name the paper that the "
        "system is in the pool as, or leave the field out [Four Beds]\n"
    )

    validated, checked = run_in(root, "check", "data"), run_in(root, "check")
    assert (validated.code, checked.code) == (1, 1)
    assert finding in validated.stdout
    assert finding in checked.stdout
    assert "build     skipped: the data has errors" in checked.stdout
    for words in (["scale"], ["build"], ["figures"]):
        result = run_in(root, *words)
        assert (result.code, result.stdout) == (1, "")
        assert "corpus: what is known of scale has errors:\n" in result.stderr
        assert finding.strip() in result.stderr


def test_other_commands_do_not_mind(root: Path) -> None:
    edit(root, '"<=300"', "many", "data/scale.yaml")

    for words in (["stats"], ["list"], ["gaps"]):
        assert run_in(root, *words).code == 0


def test_a_syntax_error_ends_with_3(root: Path) -> None:
    edit(root, "sources: [https://example.org/park,", "sources: [https://example.org/park, ]", "data/scale.yaml")

    assert [run_in(root, *words.split()).code for words in ("check data", "check", "scale", "figures")] == [3, 3, 3, 3]


def test_no_record_is_missed_while_papers_cannot_be_read(root: Path) -> None:
    path = root / "data" / "papers.yaml"
    path.write_text("- [\n" + path.read_text(encoding="utf-8"), encoding="utf-8")

    assert "S103" not in run_in(root, "check", "data").stdout


def test_a_broken_taxonomy_is_still_reported_alone(root: Path) -> None:
    path = root / "data" / "taxonomy.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("kind: many", "kind: mny"), encoding="utf-8")
    edit(root, '"<=300"', "many", "data/scale.yaml")

    result = run_in(root, "check", "data")

    assert "V102 unknown kind 'mny'" in result.stdout
    assert "S101" not in result.stdout


def test_build_draws_the_figure_and_writes_the_schema(root: Path) -> None:
    assert run_in(root, "build").code == 0
    for name in ("docs/figures/scale-gap.svg", "docs/schema/scale.schema.json"):
        assert (root / name).exists()
    assert run_in(root, "build", "--check").code == 0
    edit(root, "value: 4", "value: 5", "data/scale.yaml")
    result = run_in(root, "figures", "--check")
    assert result.code == 1
    assert "docs/figures/scale-gap.svg is not up to date; to fix: corpus figures" in result.stderr


def test_a_readme_can_show_the_scale_gap(root: Path) -> None:
    (root / "README.md").write_text(
        "# T\n\n<!-- corpus:begin figures scale-gap -->\n<!-- corpus:end figures scale-gap -->\n"
    )

    assert run_in(root, "build", "readme").code == 0
    text = (root / "README.md").read_text(encoding="utf-8")
    assert "Beds: in use limits of 300 (1 given), unknown of 1; in experiments 4" in text
    assert "(docs/figures/scale-gap.svg)" in text


def test_schema_and_decoder_are_of_one_mind_on_amounts(toy: object, root: Path) -> None:
    schema = json.loads(data_schemas([store.data_file("scale")], store.CorpusFiles(str(TOY)).loaded.pool.taxonomy)[0])  # type: ignore[union-attr]
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert list(validator.iter_errors(as_editors_read(root / "data" / "scale.yaml"))) == []

    for text in ("16", "3-5", "<=300", "~2.5", "unknown", "5 beds", "-5", "<", "1,5", "many"):
        written = TWO_GROUPS.replace('"<=300"', f'"{text}"')
        (root / "data" / "scale.yaml").write_text(written, encoding="utf-8")
        fine = not list(validator.iter_errors(as_editors_read(root / "data" / "scale.yaml")))
        assert fine == (decoded(written).findings == ()), text


# The corpus of this repository


@pytest.fixture(scope="module")
def observations() -> tuple[Observation, ...]:
    loaded = store.CorpusFiles(str(ROOT)).loaded
    assert loaded.pool is not None
    return store.CorpusFiles(str(ROOT)).scale.require()


def test_the_data_passes_its_schema() -> None:
    schema = json.loads((ROOT / "docs" / "schema" / "scale.schema.json").read_text(encoding="utf-8"))

    Draft202012Validator.check_schema(schema)
    errors = list(Draft202012Validator(schema).iter_errors(as_editors_read(ROOT / "data" / "scale.yaml")))
    assert errors == []


def test_no_number_of_a_vendor_counts_as_verified(observations: tuple[Observation, ...]) -> None:
    deployed = [observation for observation in observations if observation.group is Group.DEPLOYMENT]

    assert {status(observation) for observation in deployed} == {"reported", "unknown"}


def test_what_rests_on_copies_names_the_copy(observations: tuple[Observation, ...]) -> None:
    for observation in observations:
        primary = ("https://www.kimi.com/", "https://www.anthropic.com/", "https://openai.com/")
        if any(source.startswith(primary) for source in observation.sources):
            assert observation.is_second_hand, observation.system
            assert len(observation.sources) > 1, observation.system


def test_the_published_envelopes_are_there(observations: tuple[Observation, ...]) -> None:
    agents = {o.system: amount(o.value) for o in observations if o.quantity == "agents"}

    assert agents["Kimi K2.5 Agent Swarm"] == "up to 100"
    assert agents["Kimi K2.6 Agent Swarm"] == "up to 300"
    assert agents["Anthropic C compiler"] == "16"
    assert agents["Claude Code agent teams"] == "3 to 5"
    assert {agents[name] for name in ("OpenAI Codex app", "OpenAI Codex sub-agents", "Anthropic Research")} == {
        "unknown"
    }
    assert [agents[name] for name in ("WideSeek-R1", "LangMARL (Pistonball)", "M-GRPO")] == ["10", "20", "2"]
    assert overview(compare(observations)[0]) == (
        "Agents: in use 3 to 16 (2 counted), limits of 100 to 300 (2 given), unknown of 4; in experiments 1 to 20 "
        "(36 counted), limits of 2 to 11 (4 given)."
    )


def test_a_value_of_a_phase_names_the_line_that_says_it(observations: tuple[Observation, ...]) -> None:
    in_a_phase = [observation for observation in observations if observation.phase is not None]

    assert len({observation.record for observation in in_a_phase}) == 30
    assert [observation for observation in in_a_phase if not observation.quote] == []
    limits = [observation for observation in in_a_phase if observation.phase is Phase.LIMIT]
    assert all(observation.is_limit for observation in limits)


def test_a_system_has_a_number_for_each_phase() -> None:
    twice = TWO_GROUPS + TWO_GROUPS.split("\n\n")[2].replace("phase: training", "phase: limit") + "\n"

    assert decoded(twice).findings == ()
    [finding] = decoded(twice.replace("phase: limit", "phase: training")).findings
    assert (finding.code, finding.message) == (
        "S102",
        "the 'beds' of 'Four Beds' are given twice in the phase 'training'; keep one, or name what differs",
    )


def test_nothing_is_cut_where_there_is_no_terminal(root: Path) -> None:
    path, name = root / "data" / "scale.yaml", "A Garden with a Name that is Longer than a Line of Eighty Cells"
    path.write_text(TWO_GROUPS.replace("system: ", f"system: {name} of ", 1), encoding="utf-8")

    shown = run_in(root, "scale").stdout

    assert "\u2026" not in shown
    assert any(line.startswith(f"{name} of ") for line in shown.splitlines())


@pytest.mark.parametrize("columns", [44, 80, 120])
def test_the_comparison_fits_the_terminal(columns: int) -> None:
    from tests.cli.test_cli import on_terminal

    shown = on_terminal("--no-color", "scale", columns=columns)

    assert max(len(line) for line in shown.splitlines()) <= columns
