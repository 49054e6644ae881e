"""Which token counts of a span tree are counted: those of the model calls, each once, and every other explained.

A span around model calls often reports their sum, or the state of a counter that it shares with others. Such
counts are left out where the calls themselves report. Only where none of them does is the sum taken instead.
"""

from typing import Any

from msgspec.structs import astuple

from orchtrace_corpus.trace.importers.spans.span import INFERENCE, TOOL, Usage
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
        """A span's usage, if it tells what went in or out."""
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
        """The model call that ends later."""
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


def amount(value: Any) -> int | None:
    """A number of tokens; None for what is none."""
    is_whole = type(value) is int or (type(value) is float and value.is_integer())
    return int(value) if is_whole and 0 <= value < 2**53 else None


def amounts(stated: tuple[Any, ...]) -> tuple[int | None, ...]:
    """Numbers of tokens, which those that are stated mostly are; None for what is none."""
    for value in stated:
        if value is not None and (type(value) is not int or not 0 <= value < 2**53):
            return tuple(map(amount, stated))
    return stated


def divided(usage: tuple[int | None, ...], report: ImportReport) -> Tokens:
    """The first five counts of a `Usage` as the schema has them.

    All three formats define the input with all that was read from or written to a cache, the output with hidden
    reasoning (OpenTelemetry GenAI, attributes `gen_ai.usage.*`; LangChain, `UsageMetadata`; OpenAI, `usage`). Where
    the figures contradict that, as some programs write them, they are taken to be apart.
    """
    input_tokens, output, read, written, reasoning = usage[:5]
    cached = (read or 0) + (written or 0)
    if input_tokens is not None and cached > input_tokens:
        report.enter(LedgerLine.EXCLUSIVE_INPUT, input=input_tokens, cached=cached)
    elif input_tokens is not None:
        input_tokens -= cached
    if output is not None and reasoning and reasoning > output:
        report.enter(LedgerLine.HIDDEN_REASONING, output=output, reasoning=reasoning)
        output += reasoning
    return Tokens(input_tokens, output, read, written, reasoning)


def leave_out(line: LedgerLine, usage: tuple[int | None, ...], report: ImportReport) -> None:
    """Enter usage in the ledger that is counted elsewhere, and not repaired again."""
    report.enter_all(line, by_kind(divided(usage, ImportReport())))


class Spent:
    """What goes into the ledger of a report: in sums when all is known, which takes less than one by one."""

    def __init__(self, report: ImportReport) -> None:
        self._report, self._lines = report, dict[LedgerLine, list[Tokens]]()

    def enter(self, line: LedgerLine, tokens: Tokens) -> None:
        """Enter a usage record on a line, whose place in the ledger is that of the first."""
        if line not in self._lines:
            self._report.enter(line, 0)
            self._lines[line] = []
        self._lines[line].append(tokens)

    def settle(self) -> None:
        """Sum up what was entered; kinds in the order in which they were met."""
        for line, spent in self._lines.items():
            columns = zip(Tokens.__struct_fields__, zip(*map(astuple, spent), strict=True), strict=True)
            known = [(kind, numbers) for kind, numbers in columns if numbers.count(None) < len(numbers)]
            known.sort(key=lambda one: next(at for at, number in enumerate(one[1]) if number is not None))
            self._report.enter_all(line, {kind: sum(filter(None, numbers)) for kind, numbers in known}, len(spent))
