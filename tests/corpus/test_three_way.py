"""`corpus merge-file`, a merge driver for git, and the order of keys that spares most merges from needing it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.base.yamlfile.writer import Style
from orchtrace_corpus.corpus.edit.three_way import merge_versions
from orchtrace_corpus.corpus.model.metadata import Metadata, encode
from tests.conftest import Result, run_corpus

pytestmark = pytest.mark.usefixtures("in_root")

DRIVER = f'"{sys.executable}" -m orchtrace_corpus merge-file %O %A %B'
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

    assert merge_versions(STYLE, ("key",), BASE, BASE + ours, BASE + theirs) == (wanted, (), {})
    assert merge_versions(STYLE, ("key",), BASE, BASE + theirs, BASE + ours) == (wanted, (), {})


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        ([("title: A ", "title: Z ")], [("year: 2020", "year: 2021")], [("A ", "Z "), ("2020", "2021")]),
        ([("  year: 2020\n", "")], [("title: A ", "title: Z ")], [("A ", "Z "), ("  year: 2020\n", "")]),
        ([("year: 2020", "year: 2021")], [("# why", "# therefore")], [("2020", "2021"), ("why", "therefore")]),
        ([("# of a\n- key: a\n  title: A  # why\n  year: 2020\n\n", "")], [], None),
        ([("# head", "# front")], [("title: C", "title: Z")], [("head", "front"), ("title: C", "title: Z")]),
    ],
)
def test_what_one_side_changes_or_removes_is_taken(
    ours: list[tuple[str, str]], theirs: list[tuple[str, str]], merged: list[tuple[str, str]] | None
) -> None:
    one, other, wanted = changed(ours), changed(theirs), changed(ours if merged is None else merged)

    assert merge_versions(STYLE, ("key",), BASE, one, other) == (wanted, (), {})
    assert merge_versions(STYLE, ("key",), BASE, other, one) == (wanted, (), {})


@pytest.mark.parametrize(
    ("ours", "theirs", "conflict", "marked"),
    [
        (
            [("title: C", "title: X"), ("year: 2020", "year: 2021")],
            [("title: C", "title: Y")],
            ("c", ("title",), False),
            ("  title: C\n", "<<<<<<< ours\n  title: X\n=======\n  title: Y\n>>>>>>> theirs\n"),
        ),
        (
            [("  title: A  # why\n  year: 2020\n", "  title: A  # x\n  year: 2021\n")],
            [("  title: A  # why\n  year: 2020\n", "  title: A  # y\n")],
            ("a", ("title", "year"), False),
            (
                "  title: A  # why\n  year: 2020\n",
                "<<<<<<< ours\n  title: A  # x\n  year: 2021\n=======\n  title: A  # y\n>>>>>>> theirs\n",
            ),
        ),
        (
            [("\n- key: c\n  title: C\n", "")],
            [("title: C", "title: Y")],
            ("c", (), False),
            ("- key: c\n  title: C\n", "<<<<<<< ours\n=======\n- key: c\n  title: Y\n>>>>>>> theirs\n"),
        ),
        (
            [("  title: C\n", "  title: C\n\n- key: d\n  title: D\n")],
            [("  title: C\n", "  title: C\n\n- key: d\n  title: E\n  year: 2021\n")],
            ("d", ("title", "year"), True),
            (
                "  title: C\n",
                "  title: C\n\n- key: d\n<<<<<<< ours\n  title: D\n=======\n  title: E\n  year: 2021\n>>>>>>> theirs\n",
            ),
        ),
        (
            [("# head", "# x")],
            [("# head", "# y")],
            ("the comments at the head", ("comments",), False),
            ("# head\n", "<<<<<<< ours\n# x\n=======\n# y\n>>>>>>> theirs\n"),
        ),
    ],
)
def test_what_both_sides_change_differently_stands_between_marks(
    ours: list[tuple[str, str]],
    theirs: list[tuple[str, str]],
    conflict: tuple[str, tuple[str, ...], bool],
    marked: tuple[str, str],
) -> None:
    """The marks of git around the fields in conflict; what one side changed beside them is taken."""
    merged = merge_versions(STYLE, ("key",), BASE, changed(ours), changed(theirs))

    wanted = changed([*ours[1:], marked])
    assert merged == (wanted, (conflict,), {})


def test_without_an_order_new_records_come_behind_ours() -> None:
    base, ours, theirs = (text(set(keys)) for keys in ("bd", "bcd", "abde"))
    unsorted = STYLE._replace(key="")

    merged = merge_versions(unsorted, ("key",), base, ours, theirs)

    assert [line[-1] for line in merged.text.splitlines() if line.startswith("- key")] == list("bcdae")


KEYS = st.sets(st.sampled_from("abcdefgh"))


@given(KEYS, KEYS, KEYS)
def test_records_are_merged_as_sets_are(base: set[str], ours: set[str], theirs: set[str]) -> None:
    merged = merge_versions(STYLE, ("key",), *(text(keys) for keys in (base, ours, theirs)))

    assert merged == (text((ours & theirs) | (ours - base) | (theirs - base)), (), {})


RECORDS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("123"))
MARKED = r"<<<<<<< ours\n((?:.*\n)*?)=======\n((?:.*\n)*?)>>>>>>> theirs\n"


@given(RECORDS, RECORDS, RECORDS)
def test_nothing_that_a_side_brings_is_lost(base: dict[str, str], ours: dict[str, str], theirs: dict[str, str]) -> None:
    """Whatever a side added or changed is in the text, which either side's part of every conflict makes whole."""
    sides = [
        "\n".join(f"- key: {key}\n  title: {key}{title}\n" for key, title in sorted(each.items())) or "[]\n"
        for each in (base, ours, theirs)
    ]

    merged = merge_versions(STYLE, ("key",), *sides)

    for side in (ours, theirs):
        brought = [f"  title: {key}{title}\n" for key, title in side.items() if base.get(key) != title]
        assert [line for line in brought if line not in merged.text] == []
    assert len(re.findall(MARKED, merged.text)) == len(merged.conflicts)
    for number in (1, 2):
        settled = YamlFile("", (re.sub(MARKED, rf"\{number}", merged.text).strip("\n") or "[]").encode())
        assert (settled.root() is not None, settled.findings) == (True, [])


def text(keys: set[str]) -> str:
    return "\n".join(f"- key: {key}\n  title: {key}\n" for key in sorted(keys)) or "[]\n"


def changed(pairs: list[tuple[str, str]]) -> str:
    result = BASE
    for old, new in pairs:
        assert old in result
        result = result.replace(old, new)
    return result


@pytest.fixture
def root(root: Path) -> Path:
    """A copy of the toy corpus whose papers are sorted by key; it is the working folder."""
    with (root / "data" / "taxonomy.yaml").open("a", encoding="utf-8") as file:
        file.write("by_key: true\n")
    return root


def merge(root: Path, name: str, *changes: tuple[str, str]) -> Result:
    base = (root / "data" / name).read_text(encoding="utf-8")
    (root / "base").write_text(base, encoding="utf-8")
    for side, (old, new) in zip(("ours", "theirs"), changes, strict=True):
        assert old in base
        (root / side).write_text(base.replace(old, new), encoding="utf-8")
    return run_corpus("merge-file", "base", "ours", "theirs")


def test_papers_are_sorted_by_key_where_the_taxonomy_says_so(root: Path) -> None:
    assert run_corpus("check", "form").code == 1
    assert run_corpus("check", "form", "--fix").code == 0

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


def test_a_conflict_names_file_key_and_fields_and_both_values_stand_between_marks(root: Path) -> None:
    result = merge(root, "papers.yaml", ("year: 2021", "year: 2020"), ("year: 2021", "year: 2022"))

    assert result == (
        1,
        "",
        "corpus: data/papers.yaml: rose-garden: both sides changed year; decide between the marks\n",
    )
    assert run_corpus("check", "form", "--fix").code == 0
    marked = "<<<<<<< ours\n  year: 2020\n=======\n  year: 2022\n>>>>>>> theirs\n"
    wanted = (root / "data" / "papers.yaml").read_text(encoding="utf-8").replace("  year: 2021\n", marked)
    assert (root / "ours").read_text(encoding="utf-8") == wanted


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
        "corpus: data/exclusions.yaml: E999: both sides added it, with different title; decide between the marks\n"
    )


def git(*words: str, code: int = 0) -> str:
    """What git says on its streams; it must end with the code."""
    settings = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *settings, *words], check=False, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def branches(name: str, one: Callable[[str], str], two: Callable[[str], str], driver: str = DRIVER) -> Path:
    """A repository whose branches change one data file; the second of them is checked out."""
    path = Path("data", name)
    Path(".gitattributes").write_text(f"{path} merge=corpus\n", encoding="utf-8")
    git("init", "--quiet", "--initial-branch", "main")
    git("config", "merge.corpus.driver", driver)
    git("add", ".")
    git("commit", "--quiet", "--message", "base")
    for branch, edit in (("one", one), ("two", two)):
        git("checkout", "--quiet", "-b", branch, "main")
        path.write_text(edit(path.read_text(encoding="utf-8")), encoding="utf-8")
        git("commit", "--quiet", "--all", "--message", branch)
    return path


def replacing(old: str, new: str) -> Callable[[str], str]:
    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return edit


def test_git_calls_the_driver(root: Path) -> None:
    """The documented line, on two changes of neighbouring fields, which git itself cannot merge."""
    assert run_corpus("check", "form", "--fix").code == 0
    beds = replacing("venue: Journal of Beds", "venue: Beds")
    papers = branches("papers.yaml", replacing("year: 2021", "year: 2022"), beds)

    git("merge", "--no-edit", "one")

    assert "  year: 2022\n  venue: Beds\n" in papers.read_text(encoding="utf-8")


def test_git_keeps_both_exclusions_that_got_one_id(root: Path) -> None:
    record = (
        "\n- id: {}\n  title: {title}\n  identifier: {title}\n  url: https://example.org/{title}\n"
        '  stage: gate\n  screened: "2023-02-01"\n  reason: New.\n'
    )
    one, two = (lambda text, title=title: text + record.format("E004", title=title) for title in ("Moss", "Fern"))
    exclusions = branches("exclusions.yaml", one, two)
    before = exclusions.read_text(encoding="utf-8")

    said = git("merge", "--no-edit", "one")

    assert "corpus: data/exclusions.yaml: E004 of theirs is E005 now; ours has that id for another work\n" in said
    assert exclusions.read_text(encoding="utf-8") == before + record.format("E005", title="Moss")
    assert run_corpus("check", "data").code == 0


def test_git_keeps_the_disputes_that_both_sides_append(root: Path) -> None:
    record = "\n- record: rose-garden\n  tag: {}\n  stands: {}\n  readings:\n    {}: one\n    {}: another\n  why: It is.\n  source: Here.\n"
    first, one, two = (
        record.format(*each)
        for each in (
            ("style", "formal", "formal", "cottage"),
            ("size", "small", "small", "large"),
            ("water", "daily", "daily", "weekly"),
        )
    )
    Path("data", "disputes.yaml").write_text(f"# Who reads what.\n{first}", encoding="utf-8")
    disputes = branches("disputes.yaml", lambda text: text + one, lambda text: text + two)
    before = disputes.read_text(encoding="utf-8")

    git("merge", "--no-edit", "one")

    assert disputes.read_text(encoding="utf-8") == before + one


@pytest.mark.posix
def test_check_names_the_command_that_merges_neighbours_by_records(root: Path) -> None:
    """Without the driver, git interleaves what both branches add in one place."""
    text = Path("data", "papers.yaml").read_text(encoding="utf-8")
    record = text[text.index("- key: long-grass") : text.index("- key: mixed-borders")]

    def added(name: str, number: str) -> Callable[[str], str]:
        changes = ("long-grass", name), ("Long Grass", name), ("2302.00002", number), ("org/grass", f"org/{name}")
        new = record
        for old, value in changes:
            new = new.replace(old, value)
        return replacing("- key: mixed-borders", f"{new}- key: mixed-borders")

    papers = branches("papers.yaml", added("mallow", "2302.10001"), added("marigold", "2302.10002"))
    git("config", "--unset", "merge.corpus.driver")
    git("merge", "--no-edit", "one", code=1)

    shown = run_corpus("check").stdout

    assert shown.count("Y104 not valid YAML: a merge conflict is left here") == 1
    command = re.findall(r", or merge by records: (git config .* && git checkout --merge \S+);", shown)[0]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["sh", "-c", command], env={**os.environ, "PATH": path}, check=True, capture_output=True)
    assert re.findall("key: (m.*)", papers.read_text(encoding="utf-8")) == ["mallow", "marigold", "mixed-borders"]
    assert run_corpus("check", "data").code == 0


def test_git_merges_the_levels_of_a_field_each_by_itself(root: Path) -> None:
    levels = "care: {water: daily, prune: weekly}"
    one, two = replacing(levels, "care: {water: weekly, prune: weekly}"), replacing(levels, "care: {water: daily}")
    papers = branches("papers.yaml", one, two)

    git("merge", "--no-edit", "one")

    assert "  care: {water: weekly}\n" in papers.read_text(encoding="utf-8")


def test_levels_that_both_sides_change_differently_stand_between_marks(root: Path) -> None:
    old = "care: {water: daily, prune: weekly}"
    changes = (old, "care: {water: weekly, prune: weekly}"), (old, "care: {prune: daily}")

    result = merge(root, "papers.yaml", *changes)

    assert result == (
        1,
        "",
        "corpus: data/papers.yaml: rose-garden: both sides changed care; decide between the marks\n",
    )
    ours, theirs = "  care: {water: weekly, prune: daily}\n", "  care: {prune: daily}\n"
    marked = f"\n<<<<<<< ours\n{ours}=======\n{theirs}>>>>>>> theirs\n  tools: [spade"
    assert marked in (root / "ours").read_text(encoding="utf-8")


@pytest.mark.parametrize("driver", [DRIVER, "no-such-program %O %A %B"])
def test_check_fails_while_git_has_two_versions(root: Path, driver: str) -> None:
    """Where the driver cannot even be run, git leaves our version without a mark."""
    years = (replacing("year: 2021", year) for year in ("year: 2022", "year: 2020"))
    branches("papers.yaml", *years, driver)
    git("merge", "--no-edit", "one", code=1)

    result = run_corpus("check")

    line = (
        "merge     failed git has two versions of data/papers.yaml; decide, then git add; or merge by records: "
        'git config merge.corpus.driver "corpus merge-file %O %A %B" && git checkout --merge data/papers.yaml\n'
    )
    assert result.code == (3 if driver == DRIVER else 1)
    assert result.stdout.count(line) == 1
    assert ("Y104 not valid YAML: a merge conflict is left here" in result.stdout) == (driver == DRIVER)
    git("checkout", "--quiet", "--ours", "data")
    git("add", "data")
    assert line not in run_corpus("check").stdout


def test_what_arxiv_says_is_merged_paper_by_paper(root: Path) -> None:
    def answer(number: int, title: str) -> Metadata:
        name, day = f"2401.0000{number}", "2024-01-05T00:00:00Z"
        return Metadata(name, 1, title, ("Ada Toy",), "", day, day, "cs.MA", ("cs.MA",))

    def merged(*sides: list[Metadata]) -> Result:
        for name, side in zip(("base", "ours", "theirs"), sides, strict=True):
            (root / name).write_text(encode({one.arxiv_id: one for one in side}), encoding="utf-8")
        return run_corpus("--root", str(root), "merge-file", *(str(root / name) for name in ("base", "ours", "theirs")))

    one, two, three, four = (answer(number, "Beds") for number in range(1, 5))
    fixed = one._replace(title="Rose Beds")
    assert merged([one, two], [fixed, two, three], [one, four]) == (0, "", "")
    assert (root / "ours").read_text(encoding="utf-8") == encode(
        {fixed.arxiv_id: fixed, three.arxiv_id: three, four.arxiv_id: four}
    )

    other = one._replace(title="Beds of Roses")
    told = "2401.00001: both sides changed arXiv's answer; decide between the marks"
    assert merged([one], [fixed, two], [other, two]) == (1, "", f"corpus: data/arxiv.json: {told}\n")
    own = encode({fixed.arxiv_id: fixed, two.arxiv_id: two})
    paper = "".join(own.splitlines(keepends=True)[4:13])
    wanted = f"<<<<<<< ours\n{paper}=======\n{paper.replace('Rose Beds', 'Beds of Roses')}>>>>>>> theirs\n"
    assert (root / "ours").read_text(encoding="utf-8") == own.replace(paper, wanted)


def test_of_a_file_that_cannot_be_read_git_merges_the_text(root: Path) -> None:
    result = merge(root, "papers.yaml", ("year: 2021", "year: 2022"), ("- key: rose-garden", "- key: long-grass"))

    assert result.code == 3
    base = (root / "base").read_text(encoding="utf-8")
    assert (root / "ours").read_text(encoding="utf-8") == (
        base.replace("year: 2021", "year: 2022").replace("- key: rose-garden", "- key: long-grass")
    )
