"""The token counter of a Codex thread: cumulative totals turned into what each answer spent.

Most totals are written twice, and only one that has moved counts. A thread that another spawned may begin with
the history of its parent, at the parent's total, or at zero; each total is set against what its row says of the
last answer alone, so that none of these is taken for the others.
"""

from operator import sub
from typing import Any

from msgspec import Struct

from orchtrace_corpus.trace.importers.core import values
from orchtrace_corpus.trace.importers.core.transcript import ModelCall, Place
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.trace import TokenBasis

_FIELDS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
_NOTHING = (None,) * len(_FIELDS)
_SAME_TOTAL = LedgerLine.SAME_TOTAL  # which Python 3.11 takes long to find
_OF_TOTAL = TokenBasis.CUMULATIVE_DELTA, LedgerLine.TOTAL_DIFFERENCE
_OF_LAST = TokenBasis.REPORTED, LedgerLine.LAST_ANSWER

Amounts = tuple[int, ...]
"""Tokens in the order of `_FIELDS`, as Codex counts them: input with what came from caches."""


class Count(Struct, gc=False):
    """A `token_count` row.

    Attributes:
        row: Its number in the thread.
        call: The answer that it is about; None where its total has not moved.
        moved: Whether its total is another than that of the row before.
    """

    row: int
    place: Place
    total: Amounts | None
    last: Amounts | None
    call: ModelCall | None
    moved: bool = True


def amounts(usage: Any) -> Amounts | None:
    """The amounts of a usage; None where it has none, or one that is no number."""
    found = _given(usage)
    for number in found:  # mostly all of them are
        if type(number) is not int or not 0 <= number <= values.MAX_COUNT:
            break
    else:
        return found
    if found == _NOTHING or not _are_counts(found):
        return None
    return tuple([values.count(number) or 0 for number in found])


def is_odd(usage: Any) -> bool:
    """Whether a usage gives something for tokens that is no number of them."""
    return not _are_counts(_given(usage))


def _given(usage: Any) -> tuple[Any, ...]:
    return tuple(map(usage.get, _FIELDS)) if type(usage) is dict else _NOTHING


def _are_counts(given: tuple[Any, ...]) -> bool:
    """Return True if each is a number of tokens, or not there."""
    for number in given:  # a loop, since every row of the counter comes here twice
        if type(number) is int and 0 <= number <= values.MAX_COUNT:
            continue
        if number is not None and values.count(number) is None:
            return False
    return True


def tokens(spent: Amounts) -> dict[str, int]:
    """Tokens as the schema has them: input without what came from caches; reasoning within the output."""
    read, cached, written, thought = spent
    return {
        "input": read - cached if read > cached else 0, "cache_read": cached,
        "output": max(written, thought), "reasoning": thought,
    }  # fmt: skip


def spend(counts: list[Count], boundary: int, *, is_child: bool, report: ImportReport) -> dict[str, int] | None:
    """Give each answer of a thread what it spent.

    Args:
        counts: The thread's counter, row by row.
        boundary: The last row of history that was copied from another thread; 0 where none was.
        is_child: Whether another thread spawned this one, or gave it its history.
        report: Where the ledger is kept.

    Returns:
        What the copied history had spent; None where none was copied.
    """
    before: Amounts | None = None
    copied: list[Amounts] = []
    for count in counts:
        is_copied = count.row <= boundary
        spent = _spent(count, before, is_child=is_child and not copied, report=report, quiet=is_copied)
        before = count.total or before
        if spent is None:
            if not is_copied:
                report.enter_all(_SAME_TOTAL, tokens(count.last) if count.last else {})
        elif is_copied:
            copied.append(spent)
        elif count.call is not None:
            known, own = count.call.tokens, tokens(spent)
            count.call.tokens = {kind: number + known.get(kind, 0) for kind, number in own.items()} if known else own
            count.call.basis, line = _OF_TOTAL if count.total else _OF_LAST
            report.enter_all(line, own)
    if not copied:
        return None
    total = tokens(tuple(map(sum, zip(*copied, strict=True))))
    report.enter(LedgerLine.COPIED_HISTORY, len(copied), **total)
    return total


def _spent(
    count: Count, before: Amounts | None, *, is_child: bool, report: ImportReport, quiet: bool
) -> Amounts | None:
    """What a row of the counter adds to the row before; None where it repeats that."""
    total, last = count.total, count.last
    if total is None:
        return last if count.moved else None
    if total == before:
        return None
    if before is None:
        if last is None or total == last or not is_child:
            return total
        inherited = tuple(max(whole - part, 0) for whole, part in zip(total, last, strict=True))
        if not quiet:
            report.enter(LedgerLine.INHERITED_TOTAL, **tokens(inherited))
        return last
    difference = tuple(map(sub, total, before))
    if difference == last:
        return difference
    if min(difference) < 0 or total == last:
        if not quiet:
            report.note(Problem.COUNTER_RESTARTED, str(count.place))
        return last if last is not None else total
    if last is not None and not quiet:
        report.note(Problem.TOTAL_DIFFERS, str(count.place))
    return difference
