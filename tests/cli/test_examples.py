"""The examples of a --help name what the corpus at hand has."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.conftest import TOY, run_corpus

LISTED = """\
  Examples:
    corpus list --where style=formal
    corpus list --where style=formal,cottage --columns key,tools,title
    corpus list --where "title~debate" --where "year>=2025" --sort -year
    corpus list --where "arxiv_id=" --format json
    corpus list --where 'authors="Liu, Shuo"'
    corpus list --columns all --format csv
    corpus list --where style=formal --reading sources
    corpus list --where contested=style --columns key,style,contested
    corpus list --exclusions --where stage=gate
"""


def examples(command: str) -> list[str]:
    """The examples of a command, each without the name of the program."""
    return re.findall(r"^ +corpus (.+)$", run_corpus(*command.split(), "--help").stdout, re.MULTILINE)


@pytest.fixture
def garden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the toy corpus with all that is generated, which is the working folder."""
    shutil.copytree(TOY, tmp_path / "corpus")
    monkeypatch.chdir(tmp_path / "corpus")
    return tmp_path / "corpus"


def test_words_that_the_corpus_does_not_have_give_way(garden: Path) -> None:
    assert LISTED in run_corpus("list", "--help").stdout
    assert examples("show")[0] == "show rose-garden"
    assert "show E001" in examples("show")
    assert "add references.bib" in examples("add")
    assert "terms stage --sort -count" in examples("terms")
    assert examples("gaps") == [
        "gaps",
        "gaps --with candidates",
        "gaps style tools",
        "gaps style tools --where size=small",
        "gaps --format csv",
    ]


@pytest.mark.parametrize(
    "command", ["list", "show", "gaps", "terms", "search", "tag", "remove", "export", "audit sample", "candidates"]
)
def test_the_examples_of_another_corpus_work_there(garden: Path, command: str) -> None:
    found = [line for line in examples(command) if "published" not in line]

    assert found
    for line in found:
        result = run_corpus(*shlex.split(line))
        expected = 3 if command == "candidates" else 0  # of which the toy corpus has no file
        assert (result.code, line) == (expected, line)


def test_examples_that_have_nothing_to_name_are_left_out(garden: Path) -> None:
    (garden / "data" / "papers.yaml").write_text("[]\n", encoding="utf-8")
    (garden / "data" / "exclusions.yaml").write_text("[]\n", encoding="utf-8")

    assert examples("show") == []
    assert examples("claims") == [
        "claims",
        "claims --stress --format json",
        "claims --reading sources",
        "claims --pool published --pool candidates",
    ]


def test_without_a_corpus_that_can_be_read_the_examples_are_as_written(garden: Path) -> None:
    (garden / "data" / "taxonomy.yaml").write_text("[", encoding="utf-8")

    assert examples("show")[0] == "show puppeteer"


@pytest.mark.parametrize(
    ("code", "bad", "good"),
    [
        ("V102", "style: ofrmal", "style: formal"),
        ("V103", "care: {prune: awter}", "care: {prune: weekly}"),
        ("V104", "size: NA", "size: small"),
        ("V105", "style: S3", "style: gravel"),
        ("V106", "style: S2", "style: cottage"),
    ],
)
def test_the_excerpts_of_rules_name_what_the_corpus_has(garden: Path, code: str, bad: str, good: str) -> None:
    shown = run_corpus("rule", code).stdout

    assert f"\nInstead of:\n    {bad}\n\nwrite:\n    {good}\n" in shown
    path = garden / "data" / "papers.yaml"
    text = path.read_text(encoding="utf-8")
    present = {"style": "style: formal", "care": "care: {water: daily, prune: weekly}", "size": "size: small"}
    for line, is_wrong in ((bad, True), (good, False)):
        path.write_text(text.replace(present[line.partition(":")[0]], line, 1), encoding="utf-8")
        assert (f" {code} " in run_corpus("validate").stdout) is is_wrong


def test_an_excerpt_keeps_its_addresses_and_names_the_fields_of_evidence(garden: Path) -> None:
    shown = run_corpus("rule", "V101").stdout

    assert "      - tags: [style]\n        note: It credits messages.\n        source: https://example.org/a\n" in shown
