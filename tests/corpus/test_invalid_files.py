"""Every file in tests/data/invalid raises exactly the findings that its comments name, at their places.

A file's prefix says which data file of the toy corpus it stands in for. Each comment
`# expect CODE LINE:COLUMN` names one finding, error or warning; a file without one is a mistake of ours.
"""

import re
import shutil
from pathlib import Path

import pytest

from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.findings import RULES, Severity
from tests.conftest import TOY, run_corpus
from tests.corpus.test_rulebook import ELSEWHERE

INVALID = Path(__file__).parents[1] / "data" / "invalid"
FILES = sorted(INVALID.glob("*.yaml"))
EXPECTED = re.compile(rb"# expect ([A-Z]\d{3}) (\d+):(\d+)")
REPORTED = re.compile(r"[^:]*/(?P<file>\w+\.yaml):(?P<line>\d+):(?P<column>\d+): (?P<code>[A-Z]\d{3}) (?P<message>.+)")

# Y112 needs a file of half a gigabyte, Y115 a line of 100 kB, Y118 10,001 mistakes; test_reader.py and test_budget.py
# raise them.
NOT_AS_A_FILE = {"Y112", "Y115", "Y118"}


def expectations(path: Path) -> list[tuple[str, int, int]]:
    found = EXPECTED.findall(path.read_bytes())
    return sorted((code.decode(), int(line), int(column)) for code, line, column in found)


def corpus_with(path: Path, tmp_path: Path) -> Path:
    """The toy corpus with the file in place of its own; where the file says so, evidence counts for more in it."""
    kind = path.name.partition("_")[0]
    root = tmp_path / kind
    if not root.exists():
        shutil.copytree(TOY, root)
    shutil.copyfile(path, root / "data" / f"{kind}.yaml")
    if kind != "taxonomy":
        text = (TOY / "data" / "taxonomy.yaml").read_text(encoding="utf-8")
        is_sourced = b"# Where tools are sourced" in path.read_bytes()
        (root / "data" / "taxonomy.yaml").write_text(sourced(text) if is_sourced else text, encoding="utf-8")
    return root


def sourced(taxonomy: str) -> str:
    """The toy taxonomy with tools as a sourced field; a visit is to the garden itself, and a photo is secondary."""
    for old, new in (
        ("    definition: Tools in use.\n", "    definition: Tools in use.\n    sourced: true\n"),
        ("{id: visit, ", "{id: visit, standing: own, "),
        ("{id: photo, ", "{id: photo, standing: secondary, "),
    ):
        assert taxonomy.count(old) == 1, old
        taxonomy = taxonomy.replace(old, new)
    return taxonomy


@pytest.mark.parametrize("kind", sorted({path.name.partition("_")[0] for path in FILES}))
def test_each_file_raises_exactly_its_findings(kind: str, tmp_path: Path) -> None:
    for path in FILES:
        if path.name.startswith(f"{kind}_"):
            assert outcome(path, tmp_path) == expected_outcome(path), path.name


def outcome(path: Path, tmp_path: Path) -> tuple[int, set[str], list[tuple[str, int, int]]]:
    """The exit code of `validate` with a file, the files that it names, and its findings with their places."""
    code, stdout, _ = run_corpus("--root", str(corpus_with(path, tmp_path)), "check", "data")
    lines = [REPORTED.fullmatch(line) for line in stdout.splitlines()]
    assert all(lines), stdout
    found = sorted((m["code"], int(m["line"]), int(m["column"])) for m in lines if m)
    return code, {m["file"] for m in lines if m}, found


def expected_outcome(path: Path) -> tuple[int, set[str], list[tuple[str, int, int]]]:
    found = expectations(path)
    malformed = any(code.startswith("Y") for code, _, _ in found)
    failed = any(RULES[code].severity is Severity.ERROR for code, _, _ in found)
    exit_code = ExitCode.UNREADABLE if malformed else ExitCode.FINDINGS if failed else ExitCode.DONE
    return exit_code, {f"{path.name.partition('_')[0]}.yaml"}, found


def test_there_are_enough_files_and_each_expects_something() -> None:
    assert len(FILES) >= 40
    assert [path.name for path in FILES if not expectations(path)] == []


def test_every_rule_has_a_file_that_raises_it() -> None:
    raised = {code for path in FILES for code, _, _ in expectations(path)}
    of_data = {code for code in RULES if code[0] not in ELSEWHERE}
    assert of_data - raised == NOT_AS_A_FILE
