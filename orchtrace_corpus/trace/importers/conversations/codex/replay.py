"""Where the history that a Codex thread was given ends, and its own begins; decided for each file.

Rows older than the thread are copied, and so are those between the `session_meta` of another thread and the
first turn of the thread's own. With the parent's rollout at hand, those are, too, that the parent has in the
same order; without it, totals that move several times within a second, as no model answers.
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

from msgspec import Struct

from orchtrace_corpus.trace.importers.conversations.codex.sources import Meta

_BURST_SECONDS = 1.0
_EARLIER_SECONDS = 1.0


class Trail(Struct, gc=False):
    """A row of a rollout, as far as it tells where copied history ends.

    Attributes:
        row: Its number in the thread.
        time: Its time.
        mark: What it says, as a number.
        kind: The kind of row: `count` for a total that has moved, `meta` for the `session_meta` of another thread,
            `turn` for the beginning of a turn that is the thread's own by its id or time, else `row`. What every
            thread writes anew about itself leaves no trail.
    """

    row: int
    time: float
    mark: int
    kind: str


class Trails:
    """The trail of a thread, as others are compared with it."""

    def __init__(self, rows: Sequence[Trail]) -> None:
        self._rows = rows

    @cached_property
    def places(self) -> dict[int, list[int]]:
        """Where each mark stands, from the beginning on."""
        found: dict[int, list[int]] = {}
        for place, row in enumerate(self._rows):
            found.setdefault(row.mark, []).append(place)
        return found

    @cached_property
    def counts(self) -> list[Trail]:
        """The totals that have moved."""
        return [row for row in self._rows if row.kind == "count"]


def boundary(own: Sequence[Trail], parent: Trails | None, meta: Meta) -> int:
    """The last row of the history that was copied into a thread; 0 where none was.

    Args:
        own: The rows of the thread.
        parent: Those of the thread that its history may be from; None where that is not at hand.
        meta: What the thread says of itself.
    """
    signs = [_older_rows(own, meta), _foreign_rows(own)]
    if parent is None:
        return max(*signs, _burst(own))
    return max(*signs, _common_rows(own, parent), _common_counts(own, parent))


def _common_rows(own: Sequence[Trail], parent: Trails) -> int:
    """The end of the rows that both have, from the beginning on."""
    last, at = 0, -1
    for row in own:
        if row.kind == "meta":
            continue
        places = parent.places.get(row.mark, [])
        next_place = bisect_right(places, at)
        if next_place == len(places):
            break
        at = places[next_place]
        last = row.row
    return last


def _common_counts(own: Sequence[Trail], parent: Trails) -> int:
    """The end of the totals that both have, where it can be no accident: two in a row, or one of the same instant."""
    counts = parent.counts
    mine = [row for row in own if row.kind == "count"]
    starts = [place for place, row in enumerate(counts) if mine and row.mark == mine[0].mark]
    for start in starts[:1]:
        both = 0
        while both < len(mine) and start + both < len(counts) and mine[both].mark == counts[start + both].mark:
            both += 1
        if both > 1 or mine[0].time == counts[start].time:
            return mine[both - 1].row
    return 0


def _older_rows(own: Sequence[Trail], meta: Meta) -> int:
    if meta.created is None:
        return 0
    last = 0
    for row in own:
        if row.kind != "meta":
            if row.time >= meta.created - _EARLIER_SECONDS:
                break
            last = row.row
    return last


def _foreign_rows(own: Sequence[Trail]) -> int:
    """The rows between another thread's `session_meta` and the first turn of the thread's own."""
    if all(row.kind != "meta" for row in own):
        return 0
    return next((row.row - 1 for row in own if row.kind == "turn"), 0)


def _burst(own: Sequence[Trail]) -> int:
    counts = [row for row in own if row.kind == "count"]
    last = 0
    for one, other in pairwise(counts):
        if abs(other.time - one.time) > _BURST_SECONDS:
            break
        last = other.row
    return last
