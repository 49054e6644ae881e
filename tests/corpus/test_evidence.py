"""Evidence: where it says that it is, and how a record stands that has several pieces of it."""

import json
import shutil
from pathlib import Path

import pytest

from orchtrace_corpus.corpus.api import load
from orchtrace_corpus.corpus.model import record_fields
from orchtrace_corpus.corpus.model.records import EvidenceVerdict
from tests.conftest import TOY
from tests.corpus.files import edit, run_in

SECOND = """\
    - tags: [care, style]
      note: A photo shows four beds.
      source: https://example.org/photo
      location: plate 4
      level: photo
      confidence: low
"""


@pytest.fixture
def root(root: Path) -> Path:
    edit(root, "      confidence: high\n", f"      confidence: high\n{SECOND}")
    return root


def test_a_record_counts_under_its_weakest_evidence(root: Path) -> None:
    assert run_in(TOY, "stats", "--by", "confidence", "-f", "csv").stdout.splitlines()[1:] == [
        "high,1,25.0",
        "low,0,0.0",
        ",3,75.0",
    ]
    assert run_in(root, "stats", "--by", "confidence", "-f", "csv").stdout.splitlines()[1:] == [
        "high,0,0.0",
        "low,1,25.0",
        ",3,75.0",
    ]
    assert run_in(root, "stats", "--by", "level", "-f", "csv").stdout.splitlines()[1:] == [
        "visit,0,0.0",
        "photo,1,25.0",
        ",3,75.0",
    ]


def test_filters_go_by_the_weakest_evidence(root: Path) -> None:
    corpus = load(str(root))

    assert [paper.key for paper in corpus.where("confidence=low").papers] == ["rose-garden"]
    assert corpus.where("confidence=high").papers == ()


def test_where_in_the_source_is_shown(root: Path) -> None:
    card = run_in(root, "show", "rose-garden").stdout
    markdown = run_in(root, "show", "rose-garden", "-f", "markdown").stdout
    told = json.loads(run_in(root, "show", "rose-garden", "-f", "json").stdout)["records"][0]["evidence"]

    assert "             https://example.org/photo, plate 4\n" in card
    assert "four beds. <https://example.org/photo>, plate 4\n" in markdown
    assert [item.get("location") for item in told] == [None, "plate 4"]
    assert "rose-garden,evidence.2.location,plate 4\n" in run_in(root, "show", "rose-garden", "-f", "csv").stdout


def test_where_in_the_source_is_kept_when_a_record_is_written(root: Path) -> None:
    corpus = load(str(root))
    written = record_fields.fields(corpus["rose-garden"], corpus.taxonomy)["evidence"]

    assert isinstance(written, list)
    assert ["location" in item for item in written] == [False, True]
    assert run_in(root, "check", "form").code == 0


def test_a_facet_of_evidence_with_several_terms_counts_all(root: Path) -> None:
    taxonomy = root / "data" / "taxonomy.yaml"
    kind = "  - field: season\n    label: Season\n    kind: many\n    role: facet\n    required: false\n"
    terms = "    definition: When.\n    terms:\n" + "".join(
        f"      - {{id: {name}, label: {name.title()}, definition: Then.}}\n" for name in ("spring", "autumn")
    )
    text = taxonomy.read_text(encoding="utf-8").replace(
        "evidence:\n  - field: level", f"evidence:\n{kind}{terms}  - field: level"
    )
    taxonomy.write_text(text, encoding="utf-8")
    papers = root / "data" / "papers.yaml"
    seasons = papers.read_text(encoding="utf-8").replace("confidence: high", "confidence: high\n      season: [autumn]")
    papers.write_text(
        seasons.replace("confidence: low", "confidence: low\n      season: [spring, autumn]"), encoding="utf-8"
    )

    counted = run_in(root, "stats", "--by", "season", "-f", "csv").stdout.splitlines()[1:]

    assert counted == ["spring,1,25.0", "autumn,1,25.0", ",3,75.0"]


AGAINST = ("      confidence: low\n", '      confidence: low\n      verdict: contradicted\n      copy: "yes"\n')


@pytest.fixture
def against(root: Path) -> Path:
    """The second item of evidence speaks against its tags, by a copy of the work."""
    path = root / "data" / "papers.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(*AGAINST), encoding="utf-8")
    return root


def test_what_the_source_says_of_a_tag_is_shown(against: Path) -> None:
    card = run_in(against, "show", "rose-garden").stdout
    markdown = run_in(against, "show", "rose-garden", "-f", "markdown").stdout
    (first, second) = json.loads(run_in(against, "show", "rose-garden", "-f", "json").stdout)["records"][0]["evidence"]

    assert "evidence     for care (visit, high confidence)\n" in card
    assert "evidence     for care, style (photo, low confidence, read in a copy; the source contradicts it)\n" in card
    assert "for care, style (photo, low confidence, read in a copy; the source contradicts it): A photo" in markdown
    assert (first.get("verdict"), second["verdict"], second["copy"]) == (None, "contradicted", "yes")
    assert "rose-garden,evidence.2.verdict,contradicted\n" in run_in(against, "show", "rose-garden", "-f", "csv").stdout


def test_what_the_source_says_of_a_tag_is_kept_when_a_record_is_written(against: Path) -> None:
    corpus = load(str(against))
    (first, second) = corpus["rose-garden"].evidence

    assert (first.verdict, first.copy, first.is_evidence) == (EvidenceVerdict.SUPPORTED, False, True)
    assert (second.verdict, second.copy, second.is_evidence) == (EvidenceVerdict.CONTRADICTED, True, True)
    assert run_in(against, "check", "form").code == 0
    exported = json.loads(run_in(against, "export", "json").stdout)["records"]
    (record,) = (one for one in exported if one["key"] == "rose-garden")
    assert [(item.get("verdict"), item.get("copy")) for item in record["evidence"]] == [
        (None, None),
        ("contradicted", "yes"),
    ]


def test_papers_are_filtered_and_counted_by_the_weakest_verdict(against: Path) -> None:
    assert [paper.key for paper in load(str(against)).where("verdict=contradicted").papers] == ["rose-garden"]
    assert run_in(against, "stats", "--by", "verdict", "-f", "csv").stdout.splitlines()[1:] == [
        *("supported,0,0.0", "partly,0,0.0", "not_found,0,0.0", "contradicted,1,25.0", ",3,75.0"),
    ]
    listed = run_in(against, "terms", "verdict", "-f", "csv").stdout.splitlines()
    assert [line.split(",")[::2][:2] for line in listed[1:]] == [
        ["supported", "1"],
        ["partly", "0"],
        ["not_found", "0"],
        ["contradicted", "1"],
    ]


def test_a_verdict_and_a_copy_are_added_with_a_tag(root: Path) -> None:
    words = ["--evidence", "The page shows gravel.", "--evidence-source", "https://example.org/mirror"]
    words += ["--evidence-tags", "style", "--evidence-level", "photo", "--evidence-confidence", "low"]

    result = run_in(root, "tag", "long-grass", *words, "--evidence-verdict", "partly", "--evidence-copy")

    assert result.code == 0, result.stderr
    (item,) = load(str(root))["long-grass"].evidence
    assert (item.verdict, item.copy, item.source) == (EvidenceVerdict.PARTLY, True, "https://example.org/mirror")
    assert run_in(root, "check", "form").code == 0
    assert run_in(root, "tag", "long-grass", "--evidence-copy", "size=small").code == 2


def test_a_reviewer_sees_what_became_of_a_verdict(root: Path, tmp_path: Path) -> None:
    after = tmp_path / "after"
    shutil.copytree(root, after)
    path = after / "data" / "papers.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(*AGAINST), encoding="utf-8")

    told = " ".join(run_in(after, "diff", str(root), str(after)).stdout.split())

    changed = "evidence[2: A photo shows four beds.]"
    assert f"rose-garden {changed}.verdict added: contradicted {changed}.copy added: yes" in told
    assert "rose-garden: each source exists, and says what its note says" in told


def test_evidence_that_does_not_speak_of_a_tag_meets_no_demand(root: Path) -> None:
    path = root / "data" / "papers.yaml"
    text = path.read_text(encoding="utf-8").replace(
        "      confidence: high\n", "      confidence: high\n      verdict: not_found\n"
    )
    path.write_text(text.replace("tags: [care, style]", "tags: [style]"), encoding="utf-8")

    assert "E101 Daily care needs an item of evidence" in run_in(root, "check", "data").stdout


FACT = """\
  code: https://github.com/beds/roses
  algorithm: [Pruning]
"""
FACT_EVIDENCE = """\
    - tags: [code, algorithm]
      note: The page of the garden names what prunes its beds.
      source: https://example.org/roses
      level: photo
      confidence: low
"""


@pytest.fixture
def sourced(root: Path) -> Path:
    """The toy corpus with facts of the rose garden and what they rest on, beside the evidence for its tags."""
    path = root / "data" / "papers.yaml"
    text = path.read_text(encoding="utf-8").replace(SECOND, FACT_EVIDENCE)
    path.write_text(text.replace("  style: formal\n", f"{FACT}  style: formal\n"), encoding="utf-8")
    assert run_in(root, "check", "form", "--fix").code == 0
    return root


def test_facts_have_evidence_as_tags_do(sourced: Path, tmp_path: Path) -> None:
    assert run_in(sourced, "check", "data").code == 0

    shown = run_in(sourced, "show", "rose-garden").stdout
    assert "evidence     for code, algorithm (photo, low confidence)\n" in shown
    assert "             The page of the garden names what prunes its beds.\n" in shown
    exported = json.loads(run_in(sourced, "export", "json").stdout)["records"][0]
    assert exported["evidence"][1]["tags"] == ["code", "algorithm"]
    assert run_in(sourced, "site", "-o", str(tmp_path / "site")).code == 0
    page = (tmp_path / "site" / "papers" / "rose-garden.html").read_text(encoding="utf-8")
    assert 'Pruning <span class="muted">(evidence <a href="#evidence-2">2</a>)</span>' in page
    assert '<section class="card" id="evidence-2" aria-label="Evidence 2">' in page


def test_evidence_of_facts_alone_says_nothing_of_how_sure_the_tags_are(sourced: Path) -> None:
    assert [paper.key for paper in load(str(sourced)).where("confidence=high").papers] == ["rose-garden"]
    assert load(str(sourced)).where("confidence=low").papers == ()


def test_evidence_of_facts_alone_does_not_meet_a_demand_for_evidence_of_tags(sourced: Path) -> None:
    rule = "rules:\n  - {id: all, message: Say what the tags rest on., when: {}, evidence: any, severity: warning}\n"
    taxonomy = sourced / "data" / "taxonomy.yaml"
    head, _, _ = taxonomy.read_text(encoding="utf-8").partition("\nrules:\n")
    taxonomy.write_text(f"{head}\n{rule}", encoding="utf-8")
    assert "[rose-garden]" not in run_in(sourced, "check", "data").stdout
    papers = sourced / "data" / "papers.yaml"
    text = papers.read_text(encoding="utf-8")
    papers.write_text(text.replace("    - tags: [care]\n", "    - tags: [code]\n"), encoding="utf-8")

    assert "E102" in run_in(sourced, "check", "data").stdout
    assert "[rose-garden]" in run_in(sourced, "check", "data").stdout


def test_a_fact_that_changes_is_held_against_its_evidence(sourced: Path) -> None:
    result = run_in(sourced, "tag", "rose-garden", "algorithm=Mulching", "--dry-run")

    assert "evidence 2 of rose-garden is for the old value; change it, or add --evidence" in result.stderr
