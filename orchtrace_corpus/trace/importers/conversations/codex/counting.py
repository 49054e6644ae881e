"""The token counter of a Codex thread: cumulative totals turned into what each answer spent.

Most totals are written twice, and only one that has moved counts. A thread that another spawned may begin with
the history of its parent, at the parent's total, or at zero; each total is set against what its row says of the
last answer alone, so that none of these is taken for the others.

A counter may begin anew, or go on from one of its earlier states. What it then stands at beside the last answer, where
no earlier state explains it, was spent by answers that the log does not have.
"""

from operator import sub
from typing import Any

from msgspec import Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core import values
from orchtrace_corpus.trace.importers.core.transcript import ModelCall, Place
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.trace import TokenBasis, Tokens

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
        place: Where it is.
        total: The tokens of all answers so far; None where it does not say.
        last: Those of the last answer; None where it does not say.
        answer: The answer that it is about; None where its total has not moved.
        has_moved: Whether its total is another than that of the row before.
    """

    row: int
    place: Place
    total: Amounts | None
    last: Amounts | None
    answer: ModelCall | None
    has_moved: bool = True


def read_amounts(usage: Any) -> Amounts | None:
    """Return the amounts of a usage; None where it has none, or one that is no number."""
    stated = _stated(usage)
    for amount in stated:  # mostly all of them are
        if type(amount) is not int or not 0 <= amount <= values.MAX_COUNT:
            break
    else:
        return stated
    if stated == _NOTHING or not _are_counts(stated):
        return None
    return tuple([values.count(amount) or 0 for amount in stated])


def is_odd(usage: Any) -> bool:
    """Return True if a usage states something for tokens that is no number of them."""
    return not _are_counts(_stated(usage))


def _stated(usage: Any) -> tuple[Any, ...]:
    return tuple(map(usage.get, _FIELDS)) if type(usage) is dict else _NOTHING


def _are_counts(stated: tuple[Any, ...]) -> bool:
    """Return True if each is a number of tokens, or not there."""
    for amount in stated:  # a loop, since every row of the counter comes here twice
        if type(amount) is int and 0 <= amount <= values.MAX_COUNT:
            continue
        if amount is not None and values.count(amount) is None:
            return False
    return True


def by_kind(spent: Amounts) -> dict[str, int]:
    """Return tokens as the schema has them: input without what came from caches; reasoning within the output."""
    read, cached, written, thought = spent
    return {
        "input": read - cached if read > cached else 0, "cache_read": cached,
        "output": max(written, thought), "reasoning": thought,
    }  # fmt: skip


class Spending(NamedTuple):
    """A thread's counter, beside what its answers spent.

    Attributes:
        copied: What the copied history had spent; None where none was copied.
        restarts: How often the counter began anew with tokens of answers that the log does not have.
    """

    copied: dict[str, int] | None
    restarts: int


def spend(counts: list[Count], boundary: int, *, is_child: bool, report: ImportReport) -> Spending:
    """Give each answer of a thread what it spent.

    Args:
        counts: The thread's counter, row by row.
        boundary: The last row of history that was copied from another thread; 0 where none was.
        is_child: Whether another thread spawned this one, or gave it its history.
        report: Where the ledger is kept.
    """
    counter = _Counter(report)
    copied: list[Amounts] = []
    by_answer: dict[int, dict[str, int]] = {}
    for count in counts:
        is_copied = count.row <= boundary
        spent = counter.take(count, may_inherit=is_child and not copied, is_copied=is_copied)
        if spent is None:
            if not is_copied:
                report.enter_all(_SAME_TOTAL, by_kind(count.last) if count.last else {})
        elif is_copied:
            copied.append(spent)
        elif count.answer is not None:
            tokens = by_kind(spent)
            count.answer.basis, line = _OF_TOTAL if count.total else _OF_LAST
            report.enter_all(line, tokens)
            earlier = by_answer.get(id(count.answer))
            if earlier is not None:
                tokens = {kind: amount + earlier[kind] for kind, amount in tokens.items()}
            by_answer[id(count.answer)] = tokens
            count.answer.spent = Tokens(**tokens)
    if not copied:
        return Spending(None, counter.restarts)
    total = by_kind(tuple(map(sum, zip(*copied, strict=True))))
    report.enter(LedgerLine.COPIED_HISTORY, len(copied), **total)
    return Spending(total, counter.restarts)


class _Counter:
    """The states of a counter, one after another.

    Attributes:
        restarts: How often it began anew with tokens of answers that the log does not have.
    """

    def __init__(self, report: ImportReport) -> None:
        self.restarts = 0
        self._report, self._unused = report, ImportReport()
        self._before: Amounts | None = None
        self._states: set[Amounts] = set()

    def take(self, count: Count, *, may_inherit: bool, is_copied: bool) -> Amounts | None:
        """Return what a row of the counter adds to the rows before; None where it repeats the last.

        Args:
            count: The row.
            may_inherit: Whether the first total may be another thread's, which gave this one its history.
            is_copied: Whether the row was copied from another thread, where it is reported.
        """
        report = self._unused if is_copied else self._report
        total, last, before = count.total, count.last, self._before
        if total is None:
            return last if count.has_moved else None
        if total == before:
            return None
        self._before = total
        self._states.add(total)
        difference = total if before is None else tuple(map(sub, total, before))
        if difference == last:
            return difference
        if last is None:
            if min(difference) < 0:
                report.note(Problem.COUNTER_RESTARTED, str(count.place))
                return total
            return difference
        start = tuple(max(amount - of_last, 0) for amount, of_last in zip(total, last, strict=True))
        if before is None:
            if not may_inherit:
                return total
            report.enter(LedgerLine.INHERITED_TOTAL, **by_kind(start))
            return last
        is_known_state = start in self._states
        if is_known_state or min(difference) < 0 or min(map(sub, difference, last)) < 0:
            report.note(Problem.COUNTER_RESTARTED, str(count.place))
            if any(start) and not is_known_state:
                self.restarts += not is_copied
                report.enter(LedgerLine.RESTARTED, **by_kind(start))
            return last
        report.note(Problem.TOTAL_DIFFERS, str(count.place))
        return difference
