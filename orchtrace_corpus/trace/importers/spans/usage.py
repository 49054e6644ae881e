"""Which token counts of a span tree are counted: those of the model calls, each once, and every other explained.

A span around model calls often reports their sum, or the state of a counter that it shares with others. Such
counts are left out where the calls themselves report. Only where none of them does is the sum taken instead.
"""

from orchtrace_corpus.trace.importers.core.usage import Usage, divided, leave_out
from orchtrace_corpus.trace.importers.spans.span import INFERENCE, TOOL
from orchtrace_corpus.trace.importers.spans.tree import NOBODY, Tree
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.trace import TokenBasis, Tokens, by_kind


class Spending:
    """What the spans of a tree spent; the report's ledger says why.

    Attributes:
        by_span: What each span's event spent, by the number of the span, and how that is known.
        uncounted: How many model calls have answered without saying what they spent, nor does a span around them.
    """

    def __init__(self, of: Tree, report: ImportReport) -> None:
        self._of = of
        self._report = report
        count = len(of.spans)
        self._usages = [span.usage and self._usable(span.usage) for span in of.spans]
        self._calls = [0] * count  # model calls in the span, itself included
        self._last_call = [NOBODY] * count
        self._is_counted_below = [False] * count
        self._is_counted = [False] * count  # by itself, or by a span around it
        self._sums = [(0, 0)] * count  # counted input and output in the span
        self.by_span: dict[int, tuple[Tokens, TokenBasis]] = {}
        for number in reversed(of.order):  # children first
            self._account(number)
        self._account_counters()
        calls = [number for number, last in enumerate(self._last_call) if last == number]
        asked = [n for n in calls if of.spans[n].kind is INFERENCE and n not in self.by_span]
        unknown = [n for n in asked if not of.spans[n].is_free]
        if len(asked) > len(unknown):
            report.enter(LedgerLine.KEPT_ANSWER, len(asked) - len(unknown))
        if unknown:
            report.enter(LedgerLine.SILENT_CALL, len(unknown))
        self.uncounted = sum(not self._is_counted[n] and not of.spans[n].is_error for n in unknown)

    def _usable(self, usage: Usage) -> Usage | None:
        """Return a span's usage, if it tells what went in or out."""
        if usage.is_known and any(usage):
            return usage
        if usage.is_known:
            self._report.enter(LedgerLine.ZERO)
        elif usage.total:
            self._report.enter(LedgerLine.UNDIVIDED, total=usage.total)
        return None

    def _account(self, number: int) -> None:
        span, usage = self._of.spans[number], self._usages[number]
        if span.kind is INFERENCE and not self._calls[number]:
            self._calls[number], self._last_call[number] = 1, number
        if usage is not None:
            if span.is_cumulative:
                if self._is_counted_below[number]:
                    leave_out(LedgerLine.SHARED_COUNTER, usage, self._report)
            elif self._is_counted_below[number]:
                is_equal = self._sums[number] == (usage.input or 0, usage.output or 0)
                leave_out(LedgerLine.EQUAL_TOTAL if is_equal else LedgerLine.OTHER_TOTAL, usage, self._report)
                if not is_equal:
                    self._report.note(Problem.SPAN_TOTAL_DIFFERS, span.where)
            else:
                self._count(number, usage)
        parent = self._of.parents[number]
        if parent != NOBODY and (self._calls[number] or self._is_counted_below[number]):
            self._calls[parent] += self._calls[number]
            self._last_call[parent] = self._later(self._last_call[parent], self._last_call[number])
            self._is_counted_below[parent] |= self._is_counted_below[number]
            (more_input, more_output), (known_input, known_output) = self._sums[number], self._sums[parent]
            self._sums[parent] = (known_input + more_input, known_output + more_output)

    def _later(self, one: int, other: int) -> int:
        """Return the model call that ends later."""
        if NOBODY in (one, other):
            return max(one, other)
        latest = self._of.latest
        return other if (latest[other], other) > (latest[one], one) else one

    def _account_counters(self) -> None:
        """Counters of which nothing below or around is counted: the outermost holds what all within have added."""
        for number in self._of.order:
            parent = self._of.parents[number]
            self._is_counted[number] |= parent != NOBODY and self._is_counted[parent]
            usage = self._usages[number]
            if usage is None or not self._of.spans[number].is_cumulative or self._is_counted_below[number]:
                continue
            if self._is_counted[number]:
                leave_out(LedgerLine.SHARED_COUNTER, usage, self._report)
            else:
                self._is_counted[number] = True
                self._bear(self._last_call[number], number, usage, LedgerLine.COUNTER, TokenBasis.PLACEHOLDER)

    def _count(self, number: int, usage: Usage) -> None:
        span, call = self._of.spans[number], self._last_call[number]
        if call == number or (call == NOBODY and span.kind is TOOL):
            self._bear(number, number, usage, LedgerLine.OWN, TokenBasis.REPORTED)
        elif self._calls[number] == 1:
            self._bear(call, number, usage, LedgerLine.AROUND, TokenBasis.REPORTED)
        elif call != NOBODY:
            self._bear(call, number, usage, LedgerLine.SPAN_TOTAL, TokenBasis.PLACEHOLDER)
        else:
            self._bear(number, number, usage, LedgerLine.BLACK_BOX, TokenBasis.REPORTED)
        self._is_counted[number] = self._is_counted_below[number] = True
        self._sums[number] = (usage.input or 0, usage.output or 0)

    def _bear(self, bearer: int, number: int, usage: Usage, line: LedgerLine, basis: TokenBasis) -> None:
        tokens = divided(usage, self._report)
        self._report.enter_all(line, by_kind(tokens))
        self.by_span[number if bearer == NOBODY else bearer] = tokens, basis
