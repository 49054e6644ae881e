"""What tags rest on: in a toy corpus term by term, and in the real one against the readings that it was built from."""

import csv
import io
import json
from pathlib import Path

import pytest

from orchtrace_corpus.corpus.analysis.evidence import (
    EvidenceCoverage,
    EvidenceState,
    cover,
    evidence_for,
    is_own,
    list_tags,
)
from orchtrace_corpus.corpus.api import load
from orchtrace_corpus.corpus.model.records import EvidenceVerdict
from tests.conftest import ROOT, TOY, run_corpus
from tests.corpus.files import run_in
from tests.corpus.test_invalid_files import sourced

ITEM = "    - {{tags: [tools], note: It says so., source: {source}, level: {level}, confidence: low{more}}}\n"
OWN = "https://example.org/borders"
SURVEY = "https://arxiv.org/abs/2001.00009"


@pytest.fixture
def root(root: Path) -> Path:
    """The toy corpus with tools as a sourced field, without evidence for them."""
    taxonomy = root / "data" / "taxonomy.yaml"
    text = sourced(taxonomy.read_text(encoding="utf-8"))
    taxonomy.write_text(text.replace("papers:\n", f"source: {SURVEY}\npapers:\n", 1), encoding="utf-8")
    return root


def with_evidence(root: Path, *items: tuple[str, str, str]) -> Path:
    """The corpus with evidence for the tools of `mixed-borders`: sources, levels, and what else the items say."""
    path = root / "data" / "papers.yaml"
    before, key, after = path.read_text(encoding="utf-8").partition("- key: mixed-borders\n")
    lines = "".join(ITEM.format(source=source, level=level, more=more) for source, level, more in items)
    after = after.replace("  added:", f"  evidence:\n{lines}  added:" if lines else "  added:", 1)
    path.write_text(before + key + after, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("items", "counts"),
    [
        ([], {"none": 1}),
        ([(OWN, "visit", "")], {"primary": 1, "supported": 1}),
        ([("https://example.org/guide", "visit", "")], {"secondary": 1, "supported": 1}),
        ([("https://example.org/guide", "visit", ", copy: 'yes'")], {"primary": 1, "supported": 1}),
        ([("https://example.org/guide", "photo", "")], {"secondary": 1, "supported": 1}),
        ([(OWN, "visit", ", verdict: not_found")], {"none": 1}),
        ([(SURVEY, "photo", "")], {"none": 1}),
        ([("https://arxiv.org/pdf/2001.00009v2", "photo", "")], {"none": 1}),
        ([(OWN, "visit", ", verdict: contradicted")], {"primary": 1, "contradicted": 1}),
        ([(OWN, "visit", ", verdict: partly"), (f"{OWN}/2", "photo", "")], {"primary": 1, "partly": 1}),
        (
            [(OWN, "visit", ""), (f"{OWN}/2", "photo", ", verdict: contradicted"), (f"{OWN}/3", "photo", "")],
            {"primary": 1, "contradicted": 1},
        ),
    ],
    ids=["nothing", "own", "another", "copy", "secondary", "silent", "survey", "survey elsewhere", "against"]
    + ["weakest of two", "weakest of three"],
)
def test_a_tag_counts_once_by_its_best_source_and_once_by_its_weakest_support(
    root: Path, items: list[tuple[str, str, str]], counts: dict[str, int]
) -> None:
    corpus = load(str(with_evidence(root, *items)))
    paper = corpus["mixed-borders"]

    (tools, total) = cover([paper], corpus.taxonomy)

    expected = (counts.get(name, 0) for name in EvidenceCoverage._fields[2:])
    assert tools == EvidenceCoverage("tools", 1, *expected)
    assert total == tools._replace(field="total")
    assert bool(evidence_for(paper, "tools", corpus.taxonomy)) is ("none" not in counts)


def test_without_sourced_fields_there_is_nothing_to_count() -> None:
    assert cover(load(str(TOY)).papers, load(str(TOY)).taxonomy) == ()
    refused = run_in(TOY, "stats", "--evidence")
    assert refused.code == 2
    assert "no field of the taxonomy is sourced" in refused.stderr


TABLE = """\
Evidence for the tags
field  tags  primary  secondary  none  supported  partly  contradicted
tools     2        1          0     1          0       1             0
total     2        1          0     1          0       1             0
Each tag other than NA counts once in primary, secondary or none, by its best source.
It also counts once in supported, partly, contradicted or none, by the evidence that supports it least.
"""
NUMBERS = {"tags": 2, "primary": 1, "secondary": 0, "none": 1, "supported": 0, "partly": 1, "contradicted": 0}


def test_coverage_is_counted_in_every_format(root: Path) -> None:
    with_evidence(root, (OWN, "visit", ", verdict: partly"))

    assert run_in(root, "stats", "--evidence").stdout == TABLE
    assert json.loads(run_in(root, "stats", "--evidence", "-f", "json").stdout)["evidence"] == {
        "tools": NUMBERS,
        "total": NUMBERS,
    }
    assert run_in(root, "stats", "--evidence", "-f", "csv").stdout.splitlines() == [
        "field,tags,primary,secondary,none,supported,partly,contradicted",
        "tools,2,1,0,1,0,1,0",
        "total,2,1,0,1,0,1,0",
    ]
    markdown = run_in(root, "stats", "--evidence", "-f", "markdown").stdout
    assert "| tools |    2 |       1 |         0 |    1 |         0 |      1 |            0 |\n" in markdown


def test_coverage_of_selected_papers(root: Path) -> None:
    with_evidence(root, (OWN, "visit", ""))

    listed = run_in(root, "stats", "--evidence", "--where", "tools=rake", "-f", "csv").stdout
    assert list(csv.reader(io.StringIO(listed)))[1:] == [
        ["tools", "1", "1", "0", "0", "1", "0", "0"],
        ["total", "1", "1", "0", "0", "1", "0", "0"],
    ]


def test_tags_are_listed_by_their_evidence(root: Path) -> None:
    with_evidence(root, (OWN, "visit", ", verdict: contradicted"), (f"{OWN}/2", "photo", ""))

    told = run_in(root, "stats", "--evidence", "--list", "contradicted", "-f", "csv").stdout
    assert list(csv.reader(io.StringIO(told))) == [
        ["key", "field", "tag", "note", "source"],
        ["mixed-borders", "tools", "rake", "It says so.", OWN],
    ]
    assert json.loads(run_in(root, "stats", "--evidence", "--list", "contradicted", "-f", "json").stdout) == {
        "schema": "orchtrace-corpus/evidence",
        "version": 1,
        "state": "contradicted",
        "tags": [
            {"key": "mixed-borders", "field": "tools", "tag": ["rake"], "note": "It says so.", "source": OWN},
        ],
    }
    none = run_in(root, "stats", "--evidence", "--list", "none", "-f", "csv").stdout.splitlines()
    assert [row.split(",")[1] for row in none] == ["field", "tools"]
    assert (
        run_in(root, "stats", "--evidence", "--list", "partly").stdout
        == "Tags: partly\nkey  field  tag  note  source\n"
    )
    assert run_in(root, "stats", "--list", "none").code == 2


def test_the_lists_are_as_long_as_the_counts() -> None:
    pool = load(str(ROOT))
    counts = json.loads(run_corpus("--root", str(ROOT), "stats", "--evidence", "-f", "json").stdout)["evidence"]
    for state in EvidenceState:
        assert len(list_tags(pool.papers, pool.taxonomy, state)) == counts["total"][state.value]


@pytest.mark.parametrize("other", [["--by", "size"], ["--cross", "size", "style"], ["--full"], ["--check"]])
def test_coverage_is_a_view_of_its_own(root: Path, other: list[str]) -> None:
    assert run_in(root, "stats", "--evidence", *other).code == 2


def test_all_statistics_hold_the_coverage(root: Path) -> None:
    with_evidence(root, (OWN, "visit", ", verdict: partly"))

    assert run_in(root, "stats", "--full").stdout.endswith(TABLE)
    assert json.loads(run_in(root, "stats", "-f", "json").stdout)["evidence"] == {"tools": NUMBERS, "total": NUMBERS}
    assert "evidence,tools,none,1\n" in run_in(root, "stats", "-f", "csv").stdout


def test_check_has_a_line_on_evidence(root: Path) -> None:
    with_evidence(root, (OWN, "visit", ", verdict: contradicted"))

    line = "evidence  ok     1 of 2 tags have evidence, 1 primary; 1 contradicted"
    assert line in run_in(root, "check").stdout.splitlines()
    assert not [text for text in run_in(TOY, "check").stdout.splitlines() if text.startswith("evidence")]


# The real corpus, against the reading of its 149 tags on reward, credit and topology: 91 supported, 33 partly,
# 22 contradicted, 3 not found; 4 rest on a third party's word alone.

READINGS = {
    "reward_family": EvidenceCoverage("reward_family", 51, 48, 2, 1, 24, 12, 14),
    "credit_unit": EvidenceCoverage("credit_unit", 48, 44, 2, 2, 30, 12, 4),
    "topology": EvidenceCoverage("topology", 50, 50, 0, 0, 37, 9, 4),
    "total": EvidenceCoverage("total", 149, 142, 4, 3, 91, 33, 22),
}


def test_the_published_tags_rest_on_what_was_read() -> None:
    corpus = load(str(ROOT)).where("published=yes")

    assert {row.field: row for row in cover(corpus.papers, corpus.taxonomy)} == READINGS


def test_tags_without_evidence_are_on_record_as_such() -> None:
    corpus = load(str(ROOT))
    silent = {(p.key, tag) for p in corpus.papers for e in p.evidence if not e.is_evidence for tag in e.tags}

    assert silent == {
        ("agentspawn", "reward_family"),
        ("agentspawn", "credit_unit"),
        ("debate-as-reward", "credit_unit"),
    }
    assert {p.key for p in corpus.papers for w in p.waive if w.code == "E104"} == {key for key, _ in silent}


def test_no_evidence_is_circular_or_surer_than_its_source() -> None:
    corpus = load(str(ROOT))
    items = [(paper, item) for paper in corpus.papers for item in paper.evidence]

    assert [p.key for p, item in items if "2605.02801" in item.source] == []
    assert [p.key for p, item in items if (item.level, item.confidence) == ("secondary", "high")] == []
    assert [p.key for p, item in items if item.level == "paper" and not is_own(p, item)] == []
    assert [p.key for p, item in items if not item.note.endswith(".") or "  " in item.note] == []
    kimi = [item for item in corpus["kimi-k2-5"].evidence if "sub_decisions" in item.tags]
    assert {(item.level, item.verdict) for item in kimi} == {("paper", EvidenceVerdict.SUPPORTED)}
