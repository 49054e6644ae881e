"""The import report of a trace: which records of its log were read or left out, and how its tokens were counted.

The values of the enumerations below are keys of `import_report`, and so part of the trace format. A report of another
program or version may have other keys. Code compares members, or the outcomes of ledger lines, not texts.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.trace import Trace

_MAX_EXAMPLES = 3
_MAX_KINDS = 100


class Drop(StrEnum):
    """A reason for leaving out a record."""

    NO_OBJECT = "not an object"
    CUT_OFF = "cut off at the end"
    NO_JSON = "not JSON"
    TOO_LONG = "line too long"
    NO_ASSISTANT_MESSAGE = "assistant row without a message"
    NO_USER_MESSAGE = "user row without a message"
    NO_PAYLOAD = "row without a payload"
    COPY = "copy of a span"
    NO_SPAN = "not a span, or a span without an id"
    NO_RUN = "not a run, or a run without an id"
    PART_OF_ABSENT_RUN = "part of a run that is not in the log"
    NO_TRACE_NOR_SPAN = "neither a trace nor a span"
    NO_ID = "without an id"


class Problem(StrEnum):
    """A problem of a log."""

    NO_ROW_TIME = "row without a time: that of the row before it is taken"
    BACKWARD_EDGE = "dependency that points back in time: left out"
    CYCLE = "dependency in a circle at one instant: left out"
    EARLY_CHILD = "sub-agent that begins before its spawn: the spawn was moved there"
    SPAWN_CYCLE = "spawn by which an agent would be above itself: left out"
    NO_TRANSCRIPT = "sub-agent without a transcript"
    NO_WORKFLOW_TRANSCRIPT = "agent of a workflow without a transcript"
    NO_SPAWN = "sub-agent that no known call has spawned (orphan)"
    UNREADABLE_META = "file beside a transcript that cannot be read"
    UNREADABLE_WORKFLOW = "summary of a workflow that cannot be read"
    CALL_WRITTEN_TWICE = "call written twice (same id in one thread): the first counts"
    ROW_ID_USED_TWICE = "another row of the same uuid: both are taken"
    RESULT_WITHOUT_CALL = "result without its call"
    SECOND_RESULT = "second result of a call: the first counts"
    RESULT_USAGE_DIFFERS = (
        "result of a sub-agent states another usage than its last answer: that of the answer is counted"
    )
    NO_PARENT = "sub-agent whose parent is not among the files (orphan)"
    SPAWN_INFERRED = "sub-agent without a known spawn call: its spawn is concluded"
    USAGE_NO_NUMBER = "usage that is not a number: left out"
    TOTAL_DIFFERS = "difference of totals other than the usage of the last answer: the difference counts"
    COUNTER_RESTARTED = "counter that begins anew: its usage of the last answer counts"
    CALL_ID_USED_TWICE = "call id used again: numbered"
    SPAN_ID_USED_TWICE = "two spans of one id: both are kept, children go to the first"
    NO_PARENT_SPAN = "parent is not in the log: the span stands by itself"
    TWIN_CALL = "model call that two libraries have instrumented: taken once"
    SPAN_CYCLE = "spans are their own parents: the first of them stands by itself"
    NO_BEGINNING = "span without a beginning: one that fits is taken"
    ENDS_BEFORE_BEGINNING = "span that ends before it begins: taken to have no length"
    SPAN_TOTAL_DIFFERS = "total of a span is not the sum of its model calls"
    CONVENTIONS_DISAGREE = "token counts of two conventions disagree: those of GenAI are taken"
    HANDOFF_TO_NOBODY = "handoff to an agent that does not act afterwards"
    FINAL_METRICS_DIFFER = "final_metrics other than the sum of the steps, with sub-agents or without: the steps count"
    SESSION_TOTAL_DIFFERS = "total of a session is not the sum of its answers: the answers count"
    UNUSABLE_EXTRA = "export of ours that was changed since: read as one of another program"
    RESTATED_DIFFERS = "usage that is stated twice, with different figures: that of the call itself counts"
    LABEL_OF_ANOTHER = "label that names another agent than acts at its step: it stays with the step"
    TURN_LONGER_THAN_ROWS = "turn that states a longer duration than its rows span: it settles nothing"
    OVERLAPPING_TASK = "task of a graph that begins before one that it depends on ends: not joined"


class Outcome(StrEnum):
    """The outcome of usage records; the name of a ledger line begins with it."""

    COUNTED = "counted"
    LEFT_OUT = "left out"
    UNKNOWN = "unknown"
    REPAIRED = "repaired"
    COVERED = "counted with the answer behind them"


class LedgerLine(StrEnum):
    """The lines of the token ledger: an outcome, and which usage records have it."""

    LAST_ROW = "counted: usage of the last row of an answer"
    RESULT_ANSWER = "counted: usage of a sub-agent's last answer, which only its result states"
    RESULT_OUTPUT = "counted: output from the sub-agent's result, where its last row had less"
    PLACEHOLDER = "counted: output noted before the model had finished, so the least it can be"
    EARLIER_ROW = "left out: row before the last of its answer (same message.id and requestId)"
    SECOND_FILE = "left out: answer that another file of the session has, too (same message.id and requestId)"
    REPEATED_ROW = "left out: row that repeats an earlier one (same uuid, time and message)"
    RESULT_CONTEXT = "left out: totalTokens of a sub-agent's result (its last context, not a sum)"
    WORKFLOW_TOTAL = "left out: a workflow's own total, whose agents' answers are counted"
    NO_USAGE = "unknown: answers without usage"
    NO_NUMBER = "unknown: usage that is not a number"
    NO_TRANSCRIPT = "unknown: sub-agents without a transcript"
    RESTARTED = "unknown: what a counter that begins anew stands at already, at most, spent by answers not in the log"
    TOTAL_DIFFERENCE = "counted: difference of two cumulative totals"
    LAST_ANSWER = "counted: usage of the last answer, where there are no totals"
    SAME_TOTAL = "left out: total that had not moved (the same row again)"
    INHERITED_TOTAL = "left out: total that the thread began with, spent by its parent"
    COPIED_HISTORY = "left out: history copied from another thread, counted there"
    COVERED = "counted with the answer behind them: answers without a count of their own"
    OWN = "counted: model call's own usage"
    SUBAGENT_TOTAL = "counted: total of a sub-agent, whose answers are not in the log"
    OUTPUT_ALONE = "counted: output of an answer, of which the log states nothing else"
    NO_CACHES = "unknown: what went from and to caches for answers that state their other tokens"
    NO_INPUT = "unknown: input of answers that state their output alone"
    AROUND = "counted: usage of the span around the one model call"
    SPAN_TOTAL = "counted: total of a span whose model calls report nothing, at the last of them"
    BLACK_BOX = "counted: total of a span without model calls in the log"
    COUNTER = "counted: state of the outermost shared counter, since no model call reports"
    EQUAL_TOTAL = "left out: total of a span whose model calls report, equal to their sum"
    OTHER_TOTAL = "left out: total of a span whose model calls report, other than their sum"
    SHARED_COUNTER = "left out: state of a shared counter"
    TELEMETRY = "counted: usage that only telemetry states, of a call without a row"
    REPEATED_USAGE = "left out: usage of an answer that the log states again"
    LAST_OF_MODEL = "counted: total of a session by model, at the last answer of the model"
    SESSION_TOTAL = "left out: total of a session, whose answers are counted"
    CHILD_TOTAL = "left out: total of a sub-agent, whose answers are counted"
    FINAL_METRICS = "left out: final_metrics of a trajectory, which sum up steps"
    RESTATED = "left out: usage that the log states again, of calls that are counted"
    COPY = "left out: copy of a span (by id)"
    TWIN = "left out: model call that another library has instrumented, too"
    KEPT_ANSWER = "left out: answer that was kept from an earlier run, and that nobody paid for again"
    SILENT_CALL = "unknown: model call without usage"
    ZERO = "unknown: usage of 0 tokens, which no call has"
    UNDIVIDED = "unknown: only a total, not divided by kind"
    EXCLUSIVE_INPUT = "repaired: input less than what came from caches, so taken to be without it"
    HIDDEN_REASONING = "repaired: output less than the reasoning in it, so taken to be without it"


_UNKNOWN_OF_ANSWERS = frozenset({LedgerLine.NO_USAGE, LedgerLine.NO_NUMBER, LedgerLine.SILENT_CALL, LedgerLine.ZERO})
"""The lines of unknown usage of answers that the trace has as events without tokens."""

_SUMS = frozenset(
    {LedgerLine.RESULT_CONTEXT, LedgerLine.WORKFLOW_TOTAL, LedgerLine.INHERITED_TOTAL, LedgerLine.EQUAL_TOTAL}
    | {LedgerLine.OTHER_TOTAL, LedgerLine.SHARED_COUNTER, LedgerLine.SESSION_TOTAL, LedgerLine.CHILD_TOTAL}
    | {LedgerLine.FINAL_METRICS}
)
"""The lines of usage that was left out because it is a total of other usage: adding these would count tokens twice."""


class Missing(StrEnum):
    """A reason why the tokens of a run are unknown."""

    TRANSCRIPTS = "sub-agents without a transcript among the files"
    USAGE = "answers without usage"
    NUMBERS = "usage that is not a number"
    INPUT = "answers that state their output alone"
    CACHES = "answers that do not state what went from and to caches"
    RESTARTS = "counters that begin anew with tokens of answers that are not in the log"
    CALLS = "Model calls of the log that do not say what they spent"


NO_USAGE = "No model call of the log reports its usage."
NO_TIMES = "The log has no times."


def unknown_total(missing: Mapping[Missing, int], unread: int) -> str:
    """Return the reason why a total of tokens is unknown, for the `reasons` of a trace; empty if the total is known.

    Args:
        missing: The number of records without tokens, by reason.
        unread: The number of lines that could not be read.
    """
    parts = [f"{reason}: {count}" for reason, count in missing.items() if count]
    if unread:
        lines = "line" if unread == 1 else "lines"
        parts.append(f"{unread:,} {lines} could not be read, which may have reported tokens")
    elif missing.get(Missing.CALLS):
        return "; ".join(parts) + "."  # the reason is a sentence
    return "; ".join(parts)


class Occurrences(Struct):
    """The number of times that something occurred, and the first places."""

    number: int = 0
    for_example: list[str] = []


class Line(Struct):
    """A line of the token ledger: the number of usage records, and their tokens by kind."""

    records: int = 0
    tokens: dict[str, float] = {}


class Prices(Struct):
    """The prices that were used for the costs of a trace.

    Attributes:
        date: The date of the price table.
        source: The publisher of the table; empty for a table of the user.
        last_day: The last day of the run; empty if unknown.
        without: The number of events without a cost, by model.
        unused: The models of the table that do not occur in the run.
        stated_usd: The cost that the log itself states; None if it states none.
        has_all_stated: True if the log states the cost of every answer.
        without_hour: The number of events whose real cost is higher, by model: the table has no price for writes to
            caches that last one hour, so they are priced as writes to caches that last five minutes.
    """

    date: str
    source: str = ""
    last_day: str = ""
    without: dict[str, int] = {}
    unused: list[str] = []
    stated_usd: float | None = None
    has_all_stated: bool = True
    without_hour: dict[str, int] = {}


class Entry(NamedTuple):
    """A line of the token ledger, with its name split into outcome and description.

    Attributes:
        outcome: An `Outcome`, or a word of another program.
        description: What the usage records are; empty if the name of the line is only an outcome.
        records: The number of usage records.
        tokens: Their tokens by kind, or only a `total` if the log does not divide them.
    """

    outcome: str
    description: str
    records: int
    tokens: dict[str, float]


class ImportReport(Struct):
    """The report of an import: how the records of a log were used.

    Attributes:
        records_read: The number of records read.
        repaired: The number of records in which bytes that are not UTF-8 were replaced.
        out_of_order: The number of records that are earlier than the record before them.
        dropped: Records that were left out, by reason.
        skipped: The number of records without information on agents, calls or tokens, by kind.
        unknown_kinds: The number of records of kinds that the importer does not know, by kind.
        problems: Problems of the log, by `Problem`.
        token_ledger: How usage records were counted, by `LedgerLine`.
        context_windows: The context windows that the log states, in tokens, by model.
        prices: The prices behind the costs of the trace; None without costs from a price table.
    """

    records_read: int = 0
    repaired: int = 0
    out_of_order: int = 0
    dropped: dict[str, Occurrences] = {}
    skipped: dict[str, int] = {}
    unknown_kinds: dict[str, int] = {}
    problems: dict[str, Occurrences] = {}
    token_ledger: dict[str, Line] = {}
    context_windows: dict[str, int] = {}
    prices: Prices | None = None

    def drop(self, reason: Drop, file: str, line: int) -> None:
        """Count a record that was left out."""
        _note(self.dropped, reason, f"{file}:{line}")

    def note(self, problem: Problem, place: str) -> None:
        """Count a problem of the log, such as a sub-agent without a transcript."""
        _note(self.problems, problem, place)

    def skip(self, kind: str) -> None:
        """Count a record of a kind without information on agents, calls or tokens."""
        _count(self.skipped, kind)

    def note_unknown(self, kind: str) -> None:
        """Count a record of a kind that the importer does not know and leaves out."""
        _count(self.unknown_kinds, kind)

    def enter(self, line: LedgerLine, records: int = 1, **tokens: float) -> None:
        """Add usage records and their tokens by kind to a line of the token ledger."""
        self.enter_all(line, tokens, records)

    def enter_all(self, line: LedgerLine, tokens: Mapping[str, float], records: int = 1) -> None:
        """Do the same as `enter`, with the tokens by kind in a mapping."""
        entry = self.token_ledger.get(line)
        if entry is None:
            entry = self.token_ledger[line] = Line()
        entry.records += records
        totals = entry.tokens
        for kind, count in tokens.items():
            totals[kind] = totals[kind] + count if kind in totals else count

    @property
    def unread(self) -> int:
        """Return the number of unreadable lines."""
        drops = (Drop.CUT_OFF, Drop.NO_JSON, Drop.TOO_LONG)
        return sum(self.dropped[drop].number for drop in drops if drop in self.dropped)

    def entries(self) -> Iterator[Entry]:
        """Yield the lines of the token ledger. The name of a line is an outcome, a colon and a description."""
        for name, line in self.token_ledger.items():
            outcome, _, description = name.partition(": ")
            yield Entry(outcome, description, line.records, line.tokens)

    def repeated(self) -> list[Line]:
        """Return the ledger lines of usage that the log states again, without lines that are totals of other usage."""
        lines = self.token_ledger.items()
        return [line for name, line in lines if name.startswith(Outcome.LEFT_OUT) and name not in _SUMS and line.tokens]

    def missing(self) -> dict[str, int]:
        """Return the number of records with unknown tokens, by the description of their ledger line."""
        entries = [entry for entry in self.entries() if entry.outcome == Outcome.UNKNOWN and entry.records]
        return {entry.description: entry.records for entry in entries}

    def missing_elsewhere(self) -> bool:
        """Return True if there is unknown usage that has no event in the trace."""
        for name, line in self.token_ledger.items():
            if name.startswith(Outcome.UNKNOWN) and name not in _UNKNOWN_OF_ANSWERS and line.records:
                return True
        return False

    def unsure(self) -> list[str]:
        """Return the descriptions of ledger lines whose tokens are counted but may be too low."""
        if LedgerLine.PLACEHOLDER not in self.token_ledger:
            return []
        _, _, description = LedgerLine.PLACEHOLDER.partition(": ")
        return [description]

    def as_data(self) -> dict[str, Any]:
        """Return the report in the form in which traces store it."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        del data["prices"]
        if not self.context_windows:
            del data["context_windows"]
        for name in ("skipped", "unknown_kinds"):
            data[name] = dict(sorted(data[name].items()))
        return data


def _count(counts: dict[str, int], kind: str) -> None:
    """Count a kind. Only the first `_MAX_KINDS` kinds are listed, because a log can invent any number of them."""
    if kind not in counts and len(counts) >= _MAX_KINDS:
        kind = "(further kinds)"
    counts[kind] = counts.get(kind, 0) + 1


def _note(occurrences_by_name: dict[str, Occurrences], name: str, place: str) -> None:
    occurrences = occurrences_by_name.setdefault(name, Occurrences())
    occurrences.number += 1
    if len(occurrences.for_example) < _MAX_EXAMPLES:
        occurrences.for_example.append(place)


def report_of(trace: Trace) -> ImportReport | None:
    """Return the import report of a trace, empty if it has none; None if it has the format of another program."""
    try:
        return msgspec.convert(trace.import_report, ImportReport)
    except msgspec.ValidationError:
        return None


def has_all_tokens(trace: Trace) -> bool:
    """Return True if the events have all tokens that the run spent, according to the trace and its import report."""
    if trace.costs.get("tokens") is None:
        return False
    if not trace.import_report:
        return True
    report = report_of(trace) or ImportReport()
    return not report.missing() and not report.unsure()


def lacks_input(trace: Trace) -> bool:
    """Return True if the log has answers that state only their output tokens, according to the token ledger."""
    report = report_of(trace)
    return report is not None and LedgerLine.NO_INPUT in report.token_ledger


def accounts_for_all(trace: Trace) -> bool:
    """Return True if the tokens of events without tokens are counted at other events, according to the token ledger."""
    report = report_of(trace)
    return report is not None and bool(report.token_ledger) and has_all_tokens(trace)


def has_all_costs(trace: Trace) -> bool:
    """Return True if the events have all costs of the run, according to the trace and its import report."""
    prices = (report_of(trace) or ImportReport()).prices
    if prices is None:
        return has_all_tokens(trace) and has_all_stated_costs(trace)
    return has_all_tokens(trace) and not (prices.without or prices.without_hour)


def has_all_stated_costs(trace: Trace) -> bool:
    """Return True if all events with tokens have a cost, or none of them has one."""
    spent = [event for event in trace.events if event.tokens and not event.copied_context]
    return len({event.cost_usd is None for event in spent}) < 2
