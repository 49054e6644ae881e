"""The documents on traces say what is true: their commands and programs run, their hand-worked values are right."""

import json
import re
import shlex
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from document import tool_regions, with_regions

from orchtrace_corpus.trace.measures.definitions import DEFINITIONS, measure
from tests.conftest import ROOT, run_corpus
from tests.trace.traces import EXAMPLES, example

DOCS = ROOT / "docs"
WORKED = (ROOT / "tests" / "data" / "worked_by_hand.md").read_text(encoding="utf-8")


def blocks(name: str) -> Iterator[tuple[str, str, str]]:
    """The fenced blocks of a document: the line before, the language, the content."""
    text = (DOCS / name).read_text(encoding="utf-8")
    for found in re.finditer(r"([^\n]*)\n+```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield found[1], found[2], found[3]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the documents' commands run: the data, and two runs of one task."""
    for name in ("data", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    run = json.loads((ROOT / "data" / "traces" / "swarm.json").read_text(encoding="utf-8"))
    for number in (1, 2):
        other = {**run, "trace_id": f"run-{number}", "rewards": {"team": number}}
        (tmp_path / f"run-{number}.json").write_text(json.dumps(other), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("document", ["traces.md", "credit.md"])
def test_commands_in_the_documents_give_what_they_show(document: str, folder: Path) -> None:
    ran = 0
    for before, language, content in blocks(document):
        if language == "json":
            (name,) = re.findall(r"`([\w-]+\.json)`", _paragraph(document, before))
            path = folder / name
            if "Add to" in _paragraph(document, before):
                content = json.dumps({**json.loads(path.read_text(encoding="utf-8")), **json.loads(content)})
            path.write_text(content, encoding="utf-8")
        elif language == "console":
            command, _, shown = content.partition("\n")
            result = run_corpus(*shlex.split(command.removeprefix("$ corpus ")))
            ran += 1
            assert result.code in (0, 1)
            assert not shown or result.stdout == shown, command
    assert ran >= 5


def _paragraph(document: str, last_line: str) -> str:
    """The paragraph that ends with a line."""
    text = (DOCS / document).read_text(encoding="utf-8")
    return text[: text.index(last_line) + len(last_line)].rpartition("\n\n")[2]


@pytest.mark.parametrize("document", ["traces.md", "credit.md"])
def test_python_in_the_documents_prints_what_they_show(
    document: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DOCS / document).read_text(encoding="utf-8")
    for _, language, content in blocks(document):
        if language == "python":
            exec(compile(content, document, "exec"), {})
            printed = capsys.readouterr().out
            assert printed.strip() in text


def test_the_walkthrough_prints_what_it_shows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    printed = ""
    for _, language, content in blocks("trace_walkthrough.md"):
        if language == "python":
            exec(compile(content, "trace_walkthrough.md", "exec"), names)
            printed = capsys.readouterr().out
        else:
            assert printed == content


def tables() -> dict[str, list[tuple[list[str], str, str]]]:
    """The hand-worked values by example: names, value, how it was worked."""
    found = {}
    for section in WORKED.split("\n## ")[1:]:
        rows = re.findall(r"^\| (`.+?`) \| (.+?) \| (.+?) \|$", section, re.MULTILINE)
        found[section.partition("\n")[0]] = [(re.findall(r"`(\w+)`", names), value, how) for names, value, how in rows]
    return found


def test_every_measure_of_every_example_is_worked_by_hand() -> None:
    assert sorted(tables()) == [path.stem for path in EXAMPLES]
    for name, rows in tables().items():
        assert (name, sorted(one for names, _, _ in rows for one in names)) == (name, sorted(DEFINITIONS))


@pytest.mark.parametrize("name", sorted(tables()))
def test_measures_are_those_worked_by_hand(name: str) -> None:
    wanted = {one: value for names, value, _ in tables()[name] for one in names}
    found = measure(example(name))

    assert {one: found[one].value for one in wanted} == {
        one: None if value == "null" else pytest.approx(float(Fraction(value))) for one, value in wanted.items()
    }


@pytest.mark.parametrize("name", sorted(tables()))
def test_sums_worked_by_hand_are_right(name: str) -> None:
    """Where a row is worked as arithmetic, the arithmetic gives its value."""
    for _, value, how in tables()[name]:
        first = how.split(";")[0].replace("·", "*")
        if re.fullmatch(r"[\d\s.+*/()-]+", first):
            assert eval(first) == pytest.approx(float(Fraction(value))), how


@pytest.mark.parametrize("name", sorted(tool_regions()))
def test_tables_in_the_documents_are_made_from_the_code(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")

    assert with_regions(name, text) == text, "stale; run: python scripts/document.py"
    assert all(f"<!-- corpus:begin {region} -->" in text for region in tool_regions()[name])
