"""Evidence: where it says that it is, and how a record stands that has several pieces of it."""

import json
import shutil
from pathlib import Path

import pytest

from orchtrace_corpus.corpus.api import load
from orchtrace_corpus.corpus.model import record_fields
from tests.conftest import TOY, Result, run_corpus

SECOND = """\
    - tags: [care, style]
      note: A photo shows four beds.
      source: https://example.org/photo
      location: plate 4
      level: photo
      confidence: low
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(TOY, tmp_path / "corpus")
    path = tmp_path / "corpus" / "data" / "papers.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("      confidence: high\n", f"      confidence: high\n{SECOND}"), encoding="utf-8")
    return tmp_path / "corpus"


def run(root: Path, *words: str) -> Result:
    return run_corpus("--root", str(root), *words)


def test_a_record_counts_under_its_weakest_evidence(root: Path) -> None:
    assert run(TOY, "stats", "--by", "confidence", "-f", "csv").stdout.splitlines()[1:] == ["high,1,25.0", ",3,75.0"]
    assert run(root, "stats", "--by", "confidence", "-f", "csv").stdout.splitlines()[1:] == ["low,1,25.0", ",3,75.0"]
    assert run(root, "stats", "--by", "level", "-f", "csv").stdout.splitlines()[1:] == ["photo,1,25.0", ",3,75.0"]


def test_filters_go_by_the_weakest_evidence(root: Path) -> None:
    corpus = load(str(root))

    assert [paper.key for paper in corpus.where("confidence=low").papers] == ["rose-garden"]
    assert corpus.where("confidence=high").papers == ()


def test_where_in_the_source_is_shown(root: Path) -> None:
    card = run(root, "show", "rose-garden").stdout
    markdown = run(root, "show", "rose-garden", "-f", "markdown").stdout
    told = json.loads(run(root, "show", "rose-garden", "-f", "json").stdout)["records"][0]["evidence"]

    assert "             https://example.org/photo, plate 4\n" in card
    assert "four beds. <https://example.org/photo>, plate 4\n" in markdown
    assert [item.get("location") for item in told] == [None, "plate 4"]
    assert "rose-garden,evidence.2.location,plate 4\n" in run(root, "show", "rose-garden", "-f", "csv").stdout


def test_where_in_the_source_is_kept_when_a_record_is_written(root: Path) -> None:
    corpus = load(str(root))
    written = record_fields.fields(corpus["rose-garden"], corpus.taxonomy)["evidence"]

    assert isinstance(written, list)
    assert ["location" in item for item in written] == [False, True]
    assert run(root, "fmt", "--check").code == 0


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

    counted = run(root, "stats", "--by", "season", "-f", "csv").stdout.splitlines()[1:]

    assert counted == ["spring,1,25.0", "autumn,1,25.0", ",3,75.0"]
