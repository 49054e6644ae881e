"""`corpus check --fix`: fixes what needs no decision, touches nothing else, and loses nothing."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchtrace_corpus.base.findings import RULES, explanation
from orchtrace_corpus.corpus.edit.fixes import FIXABLE, FIXES
from tests.conftest import TOY, run_corpus
from tests.effort import mostly_slow

BROKEN = {
    'arxiv_id: "2101.00001"': "arxiv_id: https://arxiv.org/abs/2101.00001v3  # as pasted",
    "doi: 10.5555/roses.1": "doi: https://doi.org/10.5555/ROSES.1",
    "https://example.org/grass]": "example.org/grass]",
    "title: Borders without Lines": "title: Borders without $\\beta$ Lin\\'{e}s",
    "summary: Describes a yard.": "summary: Describes a yard",
}
FIXED = {
    "arxiv_id: https://arxiv.org/abs/2101.00001v3  # as pasted": 'arxiv_id: "2101.00001"  # as pasted',
    "doi: https://doi.org/10.5555/ROSES.1": "doi: 10.5555/roses.1",
    "urls: [example.org/grass]": "urls: [https://example.org/grass]",
    "title: Borders without $\\beta$ Lin\\'{e}s": "title: Borders without β Linés",
    "summary: Describes a yard\n": "summary: Describes a yard.\n",
}


@pytest.fixture
def root(root: Path) -> Path:
    """Make one fixable mistake of each kind in the toy corpus, with a comment at one of them."""
    path = root / "data" / "papers.yaml"
    text = path.read_text(encoding="utf-8")
    for right, wrong in BROKEN.items():
        assert right in text
        text = text.replace(right, wrong)
    path.write_text(text, encoding="utf-8")
    return root


def test_a_text_that_a_comment_cuts_off_is_told_and_not_mended(tmp_path: Path) -> None:
    root = Path(shutil.copytree(TOY, tmp_path / "corpus"))
    path = root / "data" / "papers.yaml"
    cut = path.read_text(encoding="utf-8").replace("Lays out four beds of roses.", "Trains #1 and #2 roles.")
    path.write_text(cut, encoding="utf-8")

    results = [
        run_corpus("--root", str(root), *words.split())
        for words in ("check data", "check data --fix", "check form --fix")
    ]

    told = "the text ends before this '#'; quote the text, or write two blanks before a comment"
    assert results[0].stdout == f"{path}:15:19: Y116 {told}\n"
    assert [result.code for result in results] == [3, 3, 3]
    assert path.read_text(encoding="utf-8") == cut


def test_every_mendable_mistake_is_mended_and_no_other_byte_changes(root: Path) -> None:
    path = root / "data" / "papers.yaml"
    expected = path.read_text(encoding="utf-8")
    for wrong, right in FIXED.items():
        assert wrong in expected
        expected = expected.replace(wrong, right)

    result = run_corpus("--root", str(root), "check", "data", "--fix")

    assert (result.code, result.stdout) == (0, "")
    assert path.read_text(encoding="utf-8") == expected
    assert "\n+  doi: 10.5555/roses.1\n" in result.stderr
    assert "fixed data/papers.yaml\nno problems in 4 papers and 2 exclusions\n" in result.stderr


def test_only_what_is_selected_is_mended(root: Path) -> None:
    result = run_corpus("--root", str(root), "check", "data", "--fix", "--select", "M106")

    assert result.code == 0
    text = (root / "data" / "papers.yaml").read_text(encoding="utf-8")
    assert "summary: Describes a yard.\n" in text
    assert "doi: https://doi.org/10.5555/ROSES.1\n" in text


def test_without_fix_nothing_is_written_and_the_mend_is_named(root: Path) -> None:
    before = (root / "data" / "papers.yaml").read_bytes()

    result = run_corpus("--root", str(root), "check", "data")

    assert result.code == 1
    assert "To fix some of these: corpus check --fix" in result.stderr
    assert (root / "data" / "papers.yaml").read_bytes() == before


def test_what_takes_a_person_stays(tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(TOY, root)
    path = root / "data" / "papers.yaml"
    text = path.read_text(encoding="utf-8").replace("summary: Describes a yard.", r"summary: Describes a \foo yard.")
    path.write_text(text, encoding="utf-8")

    result = run_corpus("--root", str(root), "check", "data", "--fix")

    assert result.code == 1
    assert path.read_text(encoding="utf-8") == text


def test_a_formula_in_a_title_is_the_authors_own_and_elsewhere_takes_a_person(tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(TOY, root)
    path = root / "data" / "papers.yaml"
    kept = path.read_text(encoding="utf-8").replace("title: The Yard", r"title: The $k_n$-Yard of $\sqrt{T}$")
    path.write_text(kept, encoding="utf-8")

    assert run_corpus("--root", str(root), "check", "data", "--fix").code == 0
    assert path.read_text(encoding="utf-8") == kept
    for title in (r"$\input{x}$", r"$a$ \foo"):
        path.write_text(kept.replace("$k_n$", title), encoding="utf-8")
        assert " M103 'title' holds LaTeX: " in run_corpus("--root", str(root), "check", "data").stdout
    path.write_text(kept.replace("summary: Describes a yard.", r"summary: Describes $\sqrt{T}$."), encoding="utf-8")
    assert " M103 'summary' holds LaTeX: " in run_corpus("--root", str(root), "check", "data", "--fix").stdout


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("example.org/a", "https://example.org/a"),
        ("2505.19591v2", "https://arxiv.org/abs/2505.19591"),
        ("arxiv.org/abs/2505.19591", "https://arxiv.org/abs/2505.19591"),
        ("doi:10.5555/A", "https://doi.org/10.5555/a"),
        ("ACL:2025.acl-long.421", "https://aclanthology.org/2025.acl-long.421"),
        ("2609.1", None),
        ("see paper", None),
        ("ftp://example.org", None),
        ("javascript:alert(1)", None),
        ("user@example.org", None),
    ],
)
def test_only_what_is_surely_an_address_becomes_one(text: str, fixed: str | None) -> None:
    assert FIXES["F114"](text, "urls") == fixed


def test_a_value_with_several_mistakes_is_mended_in_one_go(tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(TOY, root)
    path = root / "data" / "papers.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("Describes a yard.", "Describes a yard by Jos\\'{e}"), encoding="utf-8")

    assert run_corpus("--root", str(root), "check", "data", "--fix").code == 0
    assert "summary: Describes a yard by José.\n" in path.read_text(encoding="utf-8")


def test_a_code_becomes_the_term_that_it_stands_for_unless_there_are_two(tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(TOY, root)
    path = root / "data" / "papers.yaml"
    text = path.read_text(encoding="utf-8")
    coded = text.replace("style: formal", "style: s1  # Lines").replace(
        "care: {water: daily, prune", "care: {C1: daily, c2"
    )
    path.write_text(coded, encoding="utf-8")

    result = run_corpus("--root", str(root), "check", "data")

    assert [line.partition("/data/papers.yaml:")[2] for line in result.stdout.splitlines()] == [
        "11:10: V105 's1' is the code of 'formal'; name the term, or run: corpus check --fix [rose-garden]",
        "12:10: V105 'C1' is the code of 'water'; name the term, or run: corpus check --fix [rose-garden]",
        "12:21: V105 'c2' is the code of 'prune'; name the term, or run: corpus check --fix [rose-garden]",
    ]
    assert result.stderr.endswith("To fix some of these: corpus check --fix\n")
    assert run_corpus("--root", str(root), "check", "data", "--fix").code == 0
    assert path.read_text(encoding="utf-8") == text.replace("style: formal", "style: formal  # Lines")

    twice = text.replace("style: formal", "style: S2").replace("{water: daily, ", "{water: daily, C1: weekly, ")
    path.write_text(twice, encoding="utf-8")
    result = run_corpus("--root", str(root), "check", "data", "--fix")
    assert (result.code, path.read_text(encoding="utf-8")) == (1, twice)
    assert [line.partition("/data/papers.yaml:")[2] for line in result.stdout.splitlines()] == [
        "11:10: V106 'S2' is the code of 2 terms of style, cottage and meadow; name one of them [rose-garden]",
        "12:24: V106 'C1' is the code of 'water', which is given, too; remove one [rose-garden]",
    ]


def test_a_term_in_other_case_is_corrected_and_one_that_is_misspelt_is_set_by_a_command(tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(TOY, root)
    path = root / "data" / "papers.yaml"
    text = path.read_text(encoding="utf-8")
    wrong = text.replace("style: formal", "style: Formal").replace("{water: daily, prune", "{Water: Daily, prune")
    path.write_text(wrong.replace("size: small", "size: smal", 1), encoding="utf-8")
    command = "corpus tag rose-garden size=small"

    result = run_corpus("--root", str(root), "check", "data")
    assert result.stderr.splitlines()[-1] == f"To fix some of these: corpus check --fix; {command}"
    whole = run_corpus("--root", str(root), "check")
    assert "data      failed 4 errors; to fix: see above; some of it: corpus check --fix" in whole.stdout

    result = run_corpus("--root", str(root), "check", "data", "--fix")
    assert (result.code, result.stderr.splitlines()[-1]) == (1, f"To fix some of these: {command}")
    assert path.read_text(encoding="utf-8") == text.replace("size: small", "size: smal", 1)
    assert run_corpus("--root", str(root), *command.split()[1:]).code == 0
    assert path.read_text(encoding="utf-8") == text


def test_the_rulebook_says_which_rules_can_be_mended() -> None:
    assert {code for code in RULES if explanation(code).fixable} == FIXABLE


@pytest.mark.parametrize("moment", mostly_slow([0.05, 0.08, 0.1, 0.11, 0.12, 0.13, 0.14, 0.15, 0.17, 0.2], [0.11]))
def test_a_killed_fix_leaves_the_old_file_or_the_new(root: Path, moment: float) -> None:
    path = root / "data" / "papers.yaml"
    old = path.read_bytes()
    child = subprocess.Popen(
        [sys.executable, "-m", "orchtrace_corpus", "check", "data", "--fix"], cwd=root, stderr=subprocess.DEVNULL
    )
    time.sleep(moment)
    child.send_signal(signal.SIGKILL)
    child.wait()
    left = path.read_bytes()

    assert run_corpus("--root", str(root), "check", "data", "--fix").code == 0
    assert left in (old, path.read_bytes())
    assert [name for name in os.listdir(root / "data") if name.startswith(".")] == []


def test_a_file_changed_meanwhile_is_not_overwritten(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchtrace_corpus.cli import checking

    path = root / "data" / "papers.yaml"
    write = checking.write_stale

    def slow_write(folder: str, documents: list[checking.Document]) -> list[str]:
        path.write_bytes(path.read_bytes() + b"\n# by somebody else\n")
        return write(folder, documents)

    monkeypatch.setattr(checking, "write_stale", slow_write)

    result = run_corpus("--root", str(root), "check", "data", "--fix")

    assert result.code == 3
    assert "data/papers.yaml was changed by somebody else meanwhile\nRun the command again." in result.stderr
    assert path.read_bytes().endswith(b"# by somebody else\n")
