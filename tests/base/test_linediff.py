"""Unified diffs: what becomes of them, and that many changes take no longer than few."""

from collections.abc import Callable
from difflib import unified_diff as by_difflib
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.linediff import unified_diff
from tests.effort import assert_grows

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\r\n", "e\u2028f\n", "\n", "g\n", "h\n"]), max_size=30)
TEXTS = st.builds(lambda lines, end: "".join(lines) + end, LINES, st.sampled_from(["", "last"]))


def applied(old: str, diff: str) -> str:
    """What a diff makes of a text, by the rules of the format."""
    before = [f"{line}\n" for line in old.split("\n")]
    before[-1] = before[-1].removesuffix("\n")
    after: list[str] = []
    position = 0
    last = ""
    for shown in diff.split("\n")[2:-1]:
        mark, line = shown[:1], f"{shown[1:]}\n"
        if mark == "@":
            start, _, length = shown.split()[1][1:].partition(",")
            first = int(start) - (length != "0")
            after += before[position:first]
            position = first
        elif mark == "\\":  # what was shown last has no line end
            after += [after.pop().removesuffix("\n")] if last != "-" else []
        else:
            assert mark == "+" or before[position].rstrip("\n") == line.rstrip("\n")
            after += [line] if mark in " +" else []
            position += mark in " -"
        last = mark
    return "".join((*after, *before[position:]))


@given(TEXTS, TEXTS)
def test_a_diff_makes_the_new_text_of_the_old(old: str, new: str) -> None:
    diff = unified_diff("x", old, new)

    assert (diff == "") == (old == new)
    if diff:
        assert applied(old, diff) == new


@given(TEXTS, st.data())
def test_one_change_is_shown_as_difflib_shows_it(text: str, data: st.DataObject) -> None:
    numbered = [f"{number} {line}" for number, line in enumerate(text.splitlines(keepends=True)) if line.endswith("\n")]
    place = data.draw(st.integers(0, len(numbered)))
    changed = [*numbered[:place], "new\n", *numbered[place + data.draw(st.integers(0, 2)) :]]

    expected = "".join(by_difflib(numbered, changed, "a/x", "b/x"))
    assert unified_diff("x", "".join(numbered), "".join(changed)) == expected


@pytest.mark.parametrize(
    ("old", "new", "diff"),
    [
        ("a\n", "a\n", ""),
        ("", "a\n", "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"),
        ("a", "b\n", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"),
        ("a\nb\n", "b\na\n", "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n b\n+a\n"),
    ],
)
def test_small_diffs(old: str, new: str, diff: str) -> None:
    assert unified_diff("x", old, new) == diff


def test_many_changes_take_time_in_proportion() -> None:
    def prepare(records: int) -> Callable[[], object]:
        old = "".join(f"- key: k{number}\n  year: 2020\n  size: small\n\n" for number in range(records))
        return partial(unified_diff, "x", old, old.replace("2020", "2021"))

    assert_grows(prepare, 500, 4000, 24)  # squared, it would be 64 times
