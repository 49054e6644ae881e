"""`corpus merge-file`, a merge driver for git, and the order of keys that spares most merges from needing it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.yamlfile.writer import Style
from orchtrace_corpus.corpus.edit.merge import merge_versions
from orchtrace_corpus.corpus.model.arxiv_file import encode
from orchtrace_corpus.corpus.model.metadata import Metadata
from tests.conftest import TOY, Result, run_corpus

STYLE = Style(("key", "title", "year", "tags"), frozenset({"year"}), key="key")
BASE = "# head\n\n# of a\n- key: a\n  title: A  # why\n  year: 2020\n\n- key: c\n  title: C\n"


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        ("", "", BASE),
        ("\n- key: d\n  title: D\n", "\n# of b\n- key: b\n  title: B\n", None),
        ("\n- key: d\n  title: D\n", "\n- key: d\n  title: D\n", BASE + "\n- key: d\n  title: D\n"),
    ],
)
def test_what_one_side_adds_is_taken(ours: str, theirs: str, merged: str | None) -> None:
    wanted = merged or BASE.replace("- key: c", "# of b\n- key: b\n  title: B\n\n- key: c") + ours

    assert merge_versions(STYLE, BASE, BASE + ours, BASE + theirs) == (wanted, ())
    assert merge_versions(STYLE, BASE, BASE + theirs, BASE + ours) == (wanted, ())


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        ([("title: A ", "title: Z ")], [("year: 2020", "year: 2021")], [("A ", "Z "), ("2020", "2021")]),
        ([("  year: 2020\n", "")], [("title: A ", "title: Z ")], [("A ", "Z "), ("  year: 2020\n", "")]),
        ([("title: A ", "title: Z ")], [("# why", "# therefore")], [("A ", "Z "), ("why", "therefore")]),
        ([("# of a\n- key: a\n  title: A  # why\n  year: 2020\n\n", "")], [], None),
        ([("# head", "# front")], [("title: C", "title: Z")], [("head", "front"), ("title: C", "title: Z")]),
    ],
)
def test_what_one_side_changes_or_removes_is_taken(
    ours: list[tuple[str, str]], theirs: list[tuple[str, str]], merged: list[tuple[str, str]] | None
) -> None:
    one, other, wanted = changed(ours), changed(theirs), changed(ours if merged is None else merged)

    assert merge_versions(STYLE, BASE, one, other) == (wanted, ())
    assert merge_versions(STYLE, BASE, other, one) == (wanted, ())


@pytest.mark.parametrize(
    ("ours", "theirs", "conflict"),
    [
        (("title: C", "title: X"), ("title: C", "title: Y"), ("c", ("title",))),
        (("# why", "# x"), ("# why", "# y"), ("a", ("comments",))),
        (("\n- key: c\n  title: C\n", ""), ("title: C", "title: Y"), ("c", ())),
        (("# head", "# x"), ("# head", "# y"), ("the comments at the head", ("comments",))),
    ],
)
def test_what_both_sides_change_differently_is_a_conflict(
    ours: tuple[str, str], theirs: tuple[str, str], conflict: tuple[str, tuple[str, ...]]
) -> None:
    merged = merge_versions(STYLE, BASE, changed([ours]), changed([theirs]))

    assert merged.conflicts == (conflict,)


def test_without_an_order_new_records_come_behind_ours() -> None:
    base, ours, theirs = (text(set(keys)) for keys in ("bd", "bcd", "abde"))
    unsorted = STYLE._replace(key="")

    merged = merge_versions(unsorted, base, ours, theirs)

    assert [line[-1] for line in merged.text.splitlines() if line.startswith("- key")] == list("bcdae")


KEYS = st.sets(st.sampled_from("abcdefgh"))


@given(KEYS, KEYS, KEYS)
def test_records_are_merged_as_sets_are(base: set[str], ours: set[str], theirs: set[str]) -> None:
    merged = merge_versions(STYLE, *(text(keys) for keys in (base, ours, theirs)))

    assert merged == (text((ours & theirs) | (ours - base) | (theirs - base)), ())


def text(keys: set[str]) -> str:
    return "\n".join(f"- key: {key}\n  title: {key}\n" for key in sorted(keys)) or "[]\n"


def changed(pairs: list[tuple[str, str]]) -> str:
    result = BASE
    for old, new in pairs:
        assert old in result
        result = result.replace(old, new)
    return result


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the toy corpus whose papers are sorted by key; it is the working folder."""
    root = shutil.copytree(TOY, tmp_path / "corpus")
    with (root / "data" / "taxonomy.yaml").open("a", encoding="utf-8") as file:
        file.write("by_key: true\n")
    monkeypatch.chdir(root)
    return root


def merge(root: Path, name: str, *changes: tuple[str, str]) -> Result:
    base = (root / "data" / name).read_text(encoding="utf-8")
    (root / "base").write_text(base, encoding="utf-8")
    for side, (old, new) in zip(("ours", "theirs"), changes, strict=True):
        assert old in base
        (root / side).write_text(base.replace(old, new), encoding="utf-8")
    return run_corpus("merge-file", "base", "ours", "theirs")


def test_papers_are_sorted_by_key_where_the_taxonomy_says_so(root: Path) -> None:
    assert run_corpus("fmt", "--check").code == 1
    assert run_corpus("fmt").code == 0

    lines = (root / "data" / "papers.yaml").read_text(encoding="utf-8").splitlines()
    keys = [line for line in lines if line.startswith("- key")]
    assert keys == ["- key: long-grass", "- key: mixed-borders", "- key: rose-garden", "- key: terminal-yard"]
    assert lines[lines.index("- key: rose-garden") - 1] == "# A made-up corpus for the tests."


def test_a_clean_merge_replaces_our_version(root: Path) -> None:
    result = merge(root, "papers.yaml", ("size: small", "size: large"), ("year: 2021", "year: 2022"))

    assert result == (0, "", "")
    merged = (root / "ours").read_text(encoding="utf-8")
    assert "size: large" in merged
    assert "year: 2022" in merged
    assert merged.index("long-grass") < merged.index("rose-garden")


def test_a_conflict_names_key_and_fields_and_keeps_our_version(root: Path) -> None:
    result = merge(root, "papers.yaml", ("year: 2021", "year: 2020"), ("year: 2021", "year: 2022"))

    assert result == (1, "", "corpus: rose-garden: both sides changed year; decide by hand\n")
    base = (root / "base").read_text(encoding="utf-8")
    assert (root / "ours").read_text(encoding="utf-8") == base.replace("year: 2021", "year: 2020")


def test_exclusions_stay_in_the_order_of_their_ids(root: Path) -> None:
    new = "- id: E{}\n  title: New {}\n  identifier: NEW-{}\n  url: https://example.org/{}\n"
    record = "\n" + new + '  stage: gate\n  screened: "2023-02-01"\n  reason: New.\n'
    last = (root / "data" / "exclusions.yaml").read_text(encoding="utf-8").splitlines(keepends=True)[-1]
    ours, theirs = (last + record.format(*([number] * 4)) for number in ("1000", "999"))

    assert merge(root, "exclusions.yaml", (last, ours), (last, theirs)) == (0, "", "")
    merged = (root / "ours").read_text(encoding="utf-8")
    assert merged.index("E003") < merged.index("E999") < merged.index("E1000")

    other = theirs.replace("title: New 999", "title: Else")
    assert merge(root, "exclusions.yaml", (last, theirs), (last, other)).stderr == (
        "corpus: E999: both sides changed title; decide by hand\n"
    )


def test_git_calls_the_driver(root: Path) -> None:
    """The documented line, on two changes of neighbouring fields, which git itself cannot merge."""

    def git(*words: str) -> None:
        settings = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *settings, *words], check=True, capture_output=True)

    papers = root / "data" / "papers.yaml"
    assert run_corpus("fmt").code == 0
    (root / ".gitattributes").write_text("data/papers.yaml merge=corpus\n", encoding="utf-8")
    git("init", "--quiet", "--initial-branch", "main")
    git("config", "merge.corpus.driver", f'"{sys.executable}" -m orchtrace_corpus merge-file %O %A %B')
    git("add", ".")
    git("commit", "--quiet", "--message", "base")
    for branch, old, new in (("one", "year: 2021", "year: 2022"), ("two", "venue: Journal of Beds", "venue: Beds")):
        git("checkout", "--quiet", "-b", branch, "main")
        papers.write_text(papers.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        git("commit", "--quiet", "--all", "--message", branch)

    git("merge", "--no-edit", "one")

    assert "  year: 2022\n  venue: Beds\n" in papers.read_text(encoding="utf-8")


def test_what_arxiv_says_is_merged_paper_by_paper(root: Path) -> None:
    def answer(number: int, title: str) -> Metadata:
        name, day = f"2401.0000{number}", "2024-01-05T00:00:00Z"
        return Metadata(name, 1, title, ("Ada Toy",), "", day, day, "cs.MA", ("cs.MA",))

    def merged(*sides: list[Metadata]) -> Result:
        for name, side in zip(("base", "ours", "theirs"), sides, strict=True):
            (root / name).write_text(encode({one.arxiv_id: one for one in side}), encoding="utf-8")
        return run_corpus("--root", str(root), "merge-file", *(str(root / name) for name in ("base", "ours", "theirs")))

    one, two, three, four = (answer(number, "Beds") for number in range(1, 5))
    mended = one._replace(title="Rose Beds")
    assert merged([one, two], [mended, two, three], [one, four]) == (0, "", "")
    assert (root / "ours").read_text(encoding="utf-8") == encode(
        {mended.arxiv_id: mended, three.arxiv_id: three, four.arxiv_id: four}
    )

    result = merged([one], [mended, two], [one._replace(title="Beds of Roses"), two])
    assert result == (1, "", "corpus: 2401.00001: both sides changed it; decide by hand\n")
    assert (root / "ours").read_text(encoding="utf-8") == encode({mended.arxiv_id: mended, two.arxiv_id: two})


def test_a_file_that_cannot_be_read_is_left_alone(root: Path) -> None:
    result = merge(root, "papers.yaml", ("year: 2021", "year: 2022"), ("- key: rose-garden", "- key: long-grass"))

    assert result.code == 3
    assert "year: 2022" in (root / "ours").read_text(encoding="utf-8")
