"""Two runs side by side as a table."""

from collections.abc import Iterator, Sequence

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.trace.analysis.comparison import Difference
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.render.measures import shown

SAME = "The traces are the same.\n"
ALIKE = "No difference but in ids, times of single events, or contents, which are not compared.\n"
"""What is said where there is nothing to show."""


def table(differences: Sequence[Difference], runs: Sequence[tuple[str, Trace]], *, exact: bool) -> Table:
    """What differs: a row for each count or figure, with its unit.

    Args:
        differences: What was found.
        runs: The file and the trace of each of the two.
        exact: Whether figures have every digit, for programs.
    """
    rows = tuple(
        (
            one.part,
            printable(one.name),
            _cell(one.before, exact=exact),
            _cell(one.after, exact=exact),
            shown(one.change, exact=exact),
            one.unit or None,
        )
        for one in differences
    )
    columns = ("part", "name", "A", "B", "change", "unit")
    return Table("differences", "", columns, rows, tuple(_notes(differences, runs)))


def _cell(value: float | str | None, *, exact: bool) -> Cell:
    return printable(value) if isinstance(value, str) else shown(value, exact=exact)


def _notes(differences: Sequence[Difference], runs: Sequence[tuple[str, Trace]]) -> Iterator[str]:
    for side, (file, trace) in zip("AB", runs, strict=True):
        yield f"{side}: {printable(trace.trace_id)} ({printable(file, limit=300)})"
    if any(one.before is None or one.after is None for one in differences):
        yield "Empty: not stated or not known."
    for one in differences:
        if one.reason:
            side = "A" if one.before is None else "B"
            yield f"No {one.name} in {side}: {printable(one.reason, limit=300)}."
