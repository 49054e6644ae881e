"""Inputs that would exhaust the machine: each ends with a clear error, within limits of memory and processor time."""

import shutil
from pathlib import Path

import pytest

from orchtrace_corpus.base import budget
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.corpus.model import store
from tests.conftest import ROOT, run_limited

pytest.importorskip("resource", reason="limits of a process are of POSIX")

DOUBLED = "".join(f"@string{{a{n} = a{n - 1} # a{n - 1}}}\n" for n in range(1, 31))
LONG_TITLE = f"""@article{{long,
  title = {{{"a" * 100_000}}},
  author = {{Doe, Jane}}, year = {{2025}}, eprint = {{2504.01234}}, archiveprefix = {{arXiv}}
}}
"""


def test_strings_that_double_are_refused_where_they_pass_the_limit(root: Path) -> None:
    (root / "x.bib").write_text(f'@string{{a0 = "x"}}\n{DOUBLED}@misc{{k, title = a30}}\n')

    result = run_limited("import", "bibtex", "x.bib", cwd=root)

    message = "string 'a17': its parts are longer than 100 kB together; shorten them"
    assert result == (3, "", f"corpus: x.bib:18: {message}\n")


def test_the_strings_of_a_file_have_a_limit_together(root: Path) -> None:
    entries = "".join(f"@misc{{k{n}, note = a}}\n" for n in range(20_000))
    (root / "x.bib").write_text(f"@string{{a = {{{'x' * 90_000}}}}}\n{entries}")

    result = run_limited("import", "bibtex", "x.bib", cwd=root)

    line = 2 + budget.MAX_EXPANDED_CHARACTERS // 90_000
    assert result == (
        3,
        "",
        f"corpus: x.bib:{line}: the strings of this file expand to more than 16,777,216 characters by here; "
        "split the file, or write shorter strings. "
        "Set ORCHTRACE_MAX_EXPANDED_CHARACTERS to a higher number, if you trust the input.\n",
    )


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("import", "bibtex"), 1, "x.bib:1: Y115 title is longer than 100 kB; shorten it [long]\n"),
        (
            ("add", "--to", "candidates"),
            3,
            "corpus: data/candidates.yaml cannot be written: the line is longer than 100 kB; shorten it\n",
        ),
    ],
    ids=["import", "add"],
)
def test_a_title_that_no_line_can_hold_is_refused(root: Path, words: tuple[str, ...], code: int, message: str) -> None:
    (root / "x.bib").write_text(LONG_TITLE)
    before = (root / store.PAPERS).read_bytes()

    result = run_limited(*words, "x.bib", cwd=root)

    assert (result.code, result.stdout) == (code, "")
    assert message in result.stderr
    assert (root / store.PAPERS).read_bytes() == before


def test_of_very_many_wrong_lines_the_first_are_shown_and_the_others_counted(root: Path) -> None:
    (root / store.PAPERS).write_text("- x\n" * 5_000_000)

    result = run_limited("check", "data", megabytes=500, cwd=root)

    lines = result.stdout.splitlines()
    assert (result.code, len(lines)) == (3, budget.MAX_FINDINGS + 1)
    assert lines[0].startswith("data/papers.yaml:1:3: F")
    assert lines[-1] == "data/papers.yaml:10001:3: Y118 and 4,990,000 more problems in this file; fix those above first"
    assert result.stderr.startswith("10001 errors in 0 papers")


def test_reading_ends_where_there_are_too_many_problems_to_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_FINDINGS", 2)
    monkeypatch.setattr(reader, "MAX_COUNTED_FINDINGS", 3)
    file = reader.YamlFile("x.yaml", b"- x\n" * 100)

    for node in file.records():
        file.refuse("F103", node.at, "no record")

    assert [str(finding) for finding in file.findings] == [
        "x.yaml:1:3: F103 no record",
        "x.yaml:2:3: F103 no record",
        "x.yaml:3:3: Y118 and 3 more problems in this file; fix those above first",
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("export", "json", "-o", "new"),
        ("trace", "doctor", str(ROOT / "data/traces/debate.json"), "--html", "new"),
        ("trace", "graph", str(ROOT / "data/traces/debate.json"), "-o", "new"),
    ],
    ids=["export", "page", "graph"],
)
def test_a_full_disk_leaves_nothing_and_the_next_try_works(root: Path, words: tuple[str, ...]) -> None:
    before = sorted(root.iterdir())

    full = run_limited(*words, cwd=root, file_bytes=500)

    assert (full.code, full.stdout) == (3, "")
    assert "cannot write" in full.stderr
    assert sorted(root.iterdir()) == before
    assert run_limited(*words, cwd=root).code == 0
    assert sorted(root.iterdir()) == sorted([*before, root / "new"])


def test_merging_removes_what_a_killed_merge_has_left(root: Path) -> None:
    (root / ".corpus-abc.tmp").write_text("half")
    papers = root / store.PAPERS
    shutil.copy(papers, root / "ours.yaml")

    assert run_limited("merge-file", str(papers), "ours.yaml", str(papers), cwd=root).code == 0

    assert sorted(path.name for path in root.iterdir()) == ["data", "ours.yaml"]
