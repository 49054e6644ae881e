"""Disputes: read strictly, held against the papers, and marked wherever the tag is shown."""

import json
import shutil
from pathlib import Path

import pytest

from orchtrace_corpus.corpus.model import disputes as core
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.disputes import Agreed, Dispute, Reading, State
from orchtrace_corpus.corpus.model.records import Entries, Pool
from tests.conftest import TOY
from tests.corpus.files import run_in, write_data


def pool() -> Pool:
    found = store.CorpusFiles(str(TOY)).loaded.pool
    assert found is not None
    return found


def dispute(record: str, tag: str, stands: str, readings: str, more: str = "") -> str:
    head = f"- record: {record}\n  tag: {tag}\n  stands: {stands}\n  readings: {{{readings}}}\n"
    return f"{head}{more}  why: The gardener knows.\n  source: https://example.org/quarrel\n"


def read(text: str) -> Entries[Dispute]:
    return store.CorpusFiles(str(TOY), {store.DISPUTES: text.encode()}).disputes


def wrong(text: str) -> list[str]:
    found = core.check(read(text), pool())
    return [f"{one.code} {one.location.line}:{one.location.column} {one.message}" for one in found]


ROSES = dispute("rose-garden", "style", "formal", "formal: the gardener, cottage: a visitor")
WATER = dispute("rose-garden", "water", "daily", '"daily,weekly": a sign, daily: the gardener, none: a visitor')


def test_a_dispute_as_it_is_read() -> None:
    file = read(WATER + dispute("long-grass", "size", "large", "large: one, small: two", "  state: settled\n"))

    assert wrong(WATER) == []
    assert file.items == (
        Dispute(
            "rose-garden",
            "water",
            "daily",
            (
                Reading(("daily", "weekly"), "a sign"),
                Reading(("daily",), "the gardener"),
                Reading(("none",), "a visitor"),
            ),
            "The gardener knows.",
            "https://example.org/quarrel",
        ),
        Dispute(
            "long-grass",
            "size",
            "large",
            (Reading(("large",), "one"), Reading(("small",), "two")),
            "The gardener knows.",
            "https://example.org/quarrel",
            State.SETTLED,
        ),
    )


AGREED = ROSES.replace("  why", "  agreed: {value: cottage, source: https://example.org/roses, rule: style 2}\n  why")


def test_what_readers_of_the_sources_agree_on() -> None:
    assert wrong(AGREED) == []
    assert read(AGREED).items[0].agreed == Agreed("cottage", "https://example.org/roses", "style 2")
    assert read(ROSES).items[0].agreed is None


def test_a_reading_that_allows_for_what_stands_is_no_alternative() -> None:
    assert read(WATER).items[0].alternatives == ("none",)
    vague = dispute("rose-garden", "water", "daily", '"weekly,none": one, daily: two, none: three')
    assert read(vague).items[0].alternatives == ("weekly", "none")


def test_only_open_disputes_are_contested() -> None:
    settled = dispute("long-grass", "size", "large", "large: one, small: two", "  state: settled\n")

    assert core.contested_tags(read(WATER + settled + ROSES).items) == {
        ("rose-garden", "water"),
        ("rose-garden", "style"),
    }


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        (
            "- record: rose-garden\n  tag: style\n",
            [f"F101 1:3 missing field '{n}'" for n in ("stands", "readings", "why", "source")],
        ),
        (
            ROSES.replace("readings: {formal: the gardener, cottage: a visitor}", "readings: [formal]"),
            [
                "F103 4:13 'readings' must be a mapping such as {implicit: first reader, explicit: second reader}, not a list"
            ],
        ),
        (ROSES.replace("formal: the gardener", 'formal: ""'), ["F104 4:22 'reading formal' is empty; "]),
        (
            ROSES.replace("rose-garden", "rose-gardn"),
            ["C201 1:11 there is no paper 'rose-gardn' (did you mean 'rose-garden'?)"],
        ),
        (ROSES.replace("rose-garden", "gone"), ["C201 1:11 there is no paper 'gone'"]),
        (
            dispute("rose-garden", "tools", "spade", "spade: one, rake: two"),
            ["C202 2:8 unknown tag 'tools' (allowed: style, size, water, prune)"],
        ),
        (
            ROSES.replace("cottage", "cottages"),
            [
                "C203 4:36 style has no value 'cottages' (did you mean 'cottage'? allowed: formal, cottage, meadow, gravel, NA)"
            ],
        ),
        (ROSES.replace("stands: formal", "stands: formel"), ["C203 3:11 style has no value 'formel'"]),
        (
            dispute("rose-garden", "water", "daily", "daily: one, NA: two"),
            ["C203 4:26 water has no value 'NA' (allowed: daily, weekly, none)"],
        ),
        (
            dispute("rose-garden", "style", "formal", "formal: one, meadow: two", "  state: closed\n"),
            ["C203 5:10 unknown state 'closed' (allowed: open, settled)"],
        ),
        (
            ROSES.replace("stands: formal", "stands: cottage"),
            ["C204 3:11 'cottage' does not stand, for 'rose-garden' has style 'formal'; settle which"],
        ),
        (
            dispute("long-grass", "water", "weekly", "weekly: one, none: two"),
            ["C204 3:11 'weekly' does not stand, for 'long-grass' has water 'none'; settle which"],
        ),
        (
            ROSES.replace("formal: the gardener", "meadow: the gardener"),
            ["C205 3:11 no reading has 'formal'; name its reader under 'readings'"],
        ),
        (
            ROSES.replace("cottage: a visitor", '"formal,cottage": a visitor'),
            ["C205 4:3 no reading excludes 'formal', so there is nothing to dispute"],
        ),
        (ROSES + ROSES, ["C206 8:8 'style' of 'rose-garden' is disputed twice; put all readings into one"]),
        (
            AGREED.replace("value: cottage", "value: cottages"),
            ["C203 5:19 style has no value 'cottages' (did you mean"],
        ),
        (
            AGREED.replace("value: cottage", "value: formal"),
            ["C207 5:19 'formal' is the paper's value; leave 'agreed' out"],
        ),
        (
            AGREED.replace("value: cottage", "value: meadow"),
            ["C207 5:19 'meadow' is in no reading; add it under 'readings'"],
        ),
        (
            AGREED.replace("{value: cottage, source: https://example.org/roses, rule: style 2}", "cottage"),
            ["F103 5:11 what the readers agree on must be a mapping of fields, not text"],
        ),
        (AGREED.replace(", rule: style 2", ""), ["F101 5:11 missing field 'rule'"]),
        ("{}\n", ["F103 1:1 expected a list of records, each beginning with '- '"]),
    ],
)
def test_findings_of_disputes(text: str, findings: list[str]) -> None:
    found = wrong(text)

    assert len(found) == len(findings), found
    for told, beginning in zip(found, findings, strict=True):
        assert told.startswith(beginning), told


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("style 1", ""),
        ("style 2", ""),
        ("style 3", "the codebook has no rule 3 for style; the last is rule 2, see corpus terms style"),
        ("styl 1", "the codebook has no rules for 'styl' (did you mean 'style'? allowed: style, size)"),
        ("style 02", "'style 02' names no rule; give a tag and a number, such as 'style 1'"),
        ("style", "'style' names no rule; give a tag and a number, such as 'style 1'"),
    ],
)
def test_the_rule_of_an_agreed_value_is_one_of_the_codebook(rule: str, message: str) -> None:
    file = read(AGREED.replace("style 2", rule))

    told = [
        f"{one.code} {one.location.line}:{one.location.column} {one.message}"
        for one in core.check(file, pool(), {"style": 2, "size": 1})
    ]

    assert told == ([f"C208 5:69 {message}"] if message else [])
    assert core.check(file, pool()) == (), "there is no codebook to hold it against"


def test_check_holds_agreed_rules_against_the_codebook(root: Path) -> None:
    (root / "data" / "disputes.yaml").write_text(AGREED, encoding="utf-8")
    run_in(root, "build")
    assert "C208" not in run_in(root, "check").stdout
    (root / "data" / "codebook.yaml").write_text("- tag: style\n  rules: [Ask the gardener.]\n", encoding="utf-8")

    assert (
        "disputes.yaml:5:69: C208 the codebook has no rule 2 for style; the last is rule 1, see corpus terms style"
        in run_in(root, "check").stdout
    )


def test_changing_a_value_changes_it_alone() -> None:
    known = core.disputable(pool().taxonomy)
    paper = pool().papers[0]

    drier = core.with_value(paper, known["water"], "water", "none")
    cottage = core.with_value(paper, known["style"], "style", "cottage")

    assert drier.tags == {**paper.tags, "care": {"prune": "weekly"}}
    assert cottage.tags == {**paper.tags, "style": "cottage"}
    back = core.with_value(drier, known["water"], "water", "daily")
    assert list(back.tags["care"].items()) == [("water", "daily"), ("prune", "weekly")]  # type: ignore[union-attr]


# Where disputes are shown


@pytest.fixture
def root(root: Path) -> Path:
    settled = dispute("long-grass", "size", "large", "large: one, small: two", "  state: settled\n")
    write_data(root, disputes=ROSES + WATER + settled)
    return root


def test_show_tells_the_disputes_about_a_record(root: Path) -> None:
    lines = run_in(root, "show", "rose-garden").stdout.splitlines()

    assert lines[-9:] == [
        "dispute      open, style: formal stands; formal by the gardener; cottage by a visitor; not agreed",
        "             on, so --reading sources keeps formal",
        "             The gardener knows.",
        "             https://example.org/quarrel",
        "",
        "dispute      open, water: daily stands; daily or weekly by a sign; daily by the gardener; none by a",
        "             visitor; not agreed on, so --reading sources keeps daily",
        "             The gardener knows.",
        "             https://example.org/quarrel",
    ]
    assert "dispute" not in run_in(root, "show", "terminal-yard").stdout


def test_show_as_markdown_and_json(root: Path) -> None:
    markdown = run_in(root, "show", "long-grass", "-f", "markdown").stdout
    told = json.loads(run_in(root, "show", "long-grass", "terminal-yard", "-f", "json").stdout)["records"]

    assert markdown.endswith(
        "- **dispute**: settled, size: large stands; large by one; small by two. "
        "The gardener knows. (`https://example.org/quarrel`)\n"
    )
    assert told[0]["disputes"] == [
        {
            "tag": "size",
            "stands": "large",
            "readings": [{"values": ["large"], "by": "one"}, {"values": ["small"], "by": "two"}],
            "why": "The gardener knows.",
            "source": "https://example.org/quarrel",
            "state": "settled",
        }
    ]
    assert "disputes" not in told[1]


def test_show_tells_what_is_agreed_on(root: Path) -> None:
    (root / "data" / "disputes.yaml").write_text(AGREED, encoding="utf-8")

    assert run_in(root, "show", "rose-garden", "-f", "markdown").stdout.endswith(
        "- **dispute**: open, style: formal stands; formal by the gardener; cottage by a visitor; agreed by rule 2 of the codebook for "
        "style: cottage (`https://example.org/roses`). The gardener knows. (`https://example.org/quarrel`)\n"
    )
    told = json.loads(run_in(root, "show", "rose-garden", "-f", "json").stdout)["records"][0]["disputes"][0]
    assert told["agreed"] == {"value": "cottage", "source": "https://example.org/roses", "rule": "style 2"}


def test_the_readme_marks_open_disputes(root: Path) -> None:
    (root / "README.md").write_text("# Toy\n\n<!-- corpus:begin list -->\n<!-- corpus:end list -->\n", encoding="utf-8")
    run_in(root, "build", "readme")
    text = (root / "README.md").read_text(encoding="utf-8")

    assert "`S1 Formal?` `C1 Watering?: Daily` Lays out" in text
    assert text.count("?") == 2


def test_disputes_with_mistakes_are_no_reason_to_leave_marks_out(root: Path) -> None:
    (root / "README.md").write_text("# Toy\n\n<!-- corpus:begin list -->\n<!-- corpus:end list -->\n", encoding="utf-8")
    disputes = root / "data" / "disputes.yaml"
    disputes.write_text(ROSES.replace("tag: style", "tag: stile"), encoding="utf-8")

    code, _, stderr = run_in(root, "build", "readme")
    checked = run_in(root, "check")

    assert code == 1
    assert stderr.startswith("corpus: the disputes have errors:\n")
    assert "disputes.yaml:2:8: C202 unknown tag 'stile'" in stderr
    assert (checked.code, "disputes  failed 1 error" in checked.stdout) == (1, True)
    disputes.write_text("- [", encoding="utf-8")
    assert (run_in(root, "build", "readme").code, run_in(root, "check").code) == (3, 3)


def test_check_reports_a_dispute_that_the_data_has_left_behind(root: Path) -> None:
    run_in(root, "build")
    path = root / "data" / "papers.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("style: formal", "style: cottage"), encoding="utf-8")
    run_in(root, "build")

    code, stdout, _ = run_in(root, "check")

    assert code == 1
    assert "disputes.yaml:3:11: C204 'formal' does not stand, for 'rose-garden' has style 'cottage'" in stdout
    assert "disputes  failed 1 error; to fix: see above\n" in stdout
    assert run_in(root, "check", "data").code == 0, "disputes are checked by check alone"


def test_check_says_what_it_skips_while_the_data_has_errors(tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(TOY, root)
    (root / "data" / "disputes.yaml").write_text(ROSES, encoding="utf-8")
    (root / "data" / "claims.yaml").write_text("[]\n", encoding="utf-8")
    papers = root / "data" / "papers.yaml"
    papers.write_text(papers.read_text(encoding="utf-8").replace("size: small", "size: tiny", 1), encoding="utf-8")

    checked = run_in(root, "check")

    assert checked.code == 1
    assert [line for line in checked.stdout.splitlines() if "skipped" in line] == [
        "claims    skipped: the data has errors",
        "disputes  skipped: the data has errors",
        "form      skipped: the data has errors",
        "build     skipped: the data has errors",
    ]


def test_a_listing_shows_what_filters_are_about_and_marks_what_is_contested(tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(TOY, root)
    (root / "data" / "disputes.yaml").write_text(ROSES + WATER, encoding="utf-8")

    assert run_in(root, "list", "--where", "water=daily,weekly").stdout == (
        "key            year  style    water   title\n"
        "rose-garden    2021  formal?  daily?  Röses: A Garden in Four Beds\n"
        "mixed-borders  2023  cottage  weekly  Borders without Lines\n"
        "?: sources or readers disagree; see corpus show KEY.\n"
    )
    assert "| formal? |" in run_in(root, "list", "--where", "style=formal", "-f", "markdown").stdout
    assert run_in(root, "list", "--where", "water=daily", "-f", "csv").stdout == (
        "key,year,style,water,contested,title\n"
        "rose-garden,2021,formal,daily,style ; water,Röses: A Garden in Four Beds\n"
    )
    assert "contested" not in run_in(root, "list").stdout
    assert run_in(root, "list", "--exclusions", "--where", "stage=path").stdout.startswith("id")
