"""The import report of a trace: what became of every record of its log, and how its tokens were counted.

The names below are part of the format of traces: they are the keys of `import_report`, whose readers may meet others,
of earlier versions or of other programs. What a program decides by is the member, or the outcome of a ledger line.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.trace import Trace

_MOST_EXAMPLES = 3
_MOST_KINDS = 100


class Drop(StrEnum):
    """Why a record was left out."""

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


_OF_AN_ANSWER = frozenset({LedgerLine.NO_USAGE, LedgerLine.NO_NUMBER, LedgerLine.SILENT_CALL, LedgerLine.ZERO})
"""The lines of unknown usage of which the trace has the answer, as an event without tokens."""

_SUMS = frozenset(
    {LedgerLine.RESULT_CONTEXT, LedgerLine.WORKFLOW_TOTAL, LedgerLine.INHERITED_TOTAL, LedgerLine.EQUAL_TOTAL}
    | {LedgerLine.OTHER_TOTAL, LedgerLine.SHARED_COUNTER, LedgerLine.SESSION_TOTAL, LedgerLine.CHILD_TOTAL}
    | {LedgerLine.FINAL_METRICS}
)
"""The lines of what is left out since it sums up others: these totals overlap, so that nobody may add them up."""


class Missing(StrEnum):
    """Why the tokens of a run are unknown."""

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
    """Why a total of tokens is unknown, for the `reasons` of a trace; empty where it is not.

    Args:
        missing: How many records lack their tokens, by reason.
        unread: How many lines could not be read.
    """
    parts = [f"{reason}: {number}" for reason, number in missing.items() if number]
    if unread:
        lines = "line" if unread == 1 else "lines"
        parts.append(f"{unread:,} {lines} could not be read, which may have reported tokens")
    elif missing.get(Missing.CALLS):
        parts.append("")  # a sentence
    return "; ".join(parts[:-1]) + "." if parts and not parts[-1] else "; ".join(parts)


class Noted(Struct):
    """Something that was met a number of times, with some of the places."""

    number: int = 0
    for_example: list[str] = []


class Line(Struct):
    """A line of the token ledger: how many usage records, and their tokens by kind."""

    records: int = 0
    tokens: dict[str, float] = {}


class Prices(Struct):
    """By which prices a trace has costs.

    Attributes:
        date: Of which day they are.
        source: Who keeps them; empty where the user gave a table.
        last_day: The last day of the run; empty where that is unknown.
        without: How many events have no cost, by model.
        unused: The models of the table that the run does not have.
        stated_usd: What the log itself states; None where it states nothing.
        has_all_stated: Whether it states the cost of every answer.
        without_hour: How many events cost more than that, by model: what they wrote to caches that keep it for an hour
            has no price of its own, and is priced as kept for five minutes.
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
    """A line of the token ledger with what its name says.

    Attributes:
        outcome: An `Outcome`, or the word of another program.
        what: Which usage records; empty where the name says no more than the outcome.
        records: How many.
        tokens: Their tokens by kind, or as a `total` that the log does not divide.
    """

    outcome: str
    what: str
    records: int
    tokens: dict[str, float]


class ImportReport(Struct):
    """The account of the records of a log.

    Attributes:
        records_read: Records read.
        repaired: Records of which bytes that are no UTF-8 were replaced.
        out_of_order: Records whose time lies before that of the record in front of them.
        dropped: Records that were left out, by reason.
        passed_over: Records of kinds that say nothing about agents, calls or tokens, by kind.
        unknown_kinds: Records of kinds that the importer does not know, by kind.
        problems: What a reader of the log should know.
        token_ledger: What became of usage records.
        context_windows: The context windows that the log states, in tokens, by model.
        prices: By which prices the trace has costs; None where it has none.
    """

    records_read: int = 0
    repaired: int = 0
    out_of_order: int = 0
    dropped: dict[str, Noted] = {}
    passed_over: dict[str, int] = {}
    unknown_kinds: dict[str, int] = {}
    problems: dict[str, Noted] = {}
    token_ledger: dict[str, Line] = {}
    context_windows: dict[str, int] = {}
    prices: Prices | None = None

    def drop(self, reason: Drop, file: str, line: int) -> None:
        """Note a record that was left out."""
        _note(self.dropped, reason, f"{file}:{line}")

    def note(self, problem: Problem, place: str) -> None:
        """Note something about the log that a reader should know: a child without its parent, a clock that jumps."""
        _note(self.problems, problem, place)

    def pass_over(self, kind: str) -> None:
        """Note a record of a kind that says nothing about agents, calls or tokens."""
        _count(self.passed_over, kind)

    def note_unknown(self, kind: str) -> None:
        """Note a record of a kind that the importer does not know; it is left out."""
        _count(self.unknown_kinds, kind)

    def enter(self, line: LedgerLine, records: int = 1, **tokens: float) -> None:
        """Enter usage records in the token ledger, and their tokens by kind: counted or left out, as the line says."""
        self.enter_all(line, tokens, records)

    def enter_all(self, line: LedgerLine, tokens: Mapping[str, float], records: int = 1) -> None:
        """Enter usage records, as `enter` does, with tokens by kind that are at hand: each answer has some."""
        entry = self.token_ledger.get(line)
        if entry is None:
            entry = self.token_ledger[line] = Line()
        entry.records += records
        known = entry.tokens
        for kind, number in tokens.items():
            known[kind] = known[kind] + number if kind in known else number

    @property
    def unread(self) -> int:
        """Return the number of unreadable lines."""
        unread = (Drop.CUT_OFF, Drop.NO_JSON, Drop.TOO_LONG)
        return sum(self.dropped[drop].number for drop in unread if drop in self.dropped)

    def entries(self) -> Iterator[Entry]:
        """The lines of the token ledger; the name of each is an outcome, a colon, and what has it."""
        for name, line in self.token_ledger.items():
            outcome, _, what = name.partition(": ")
            yield Entry(outcome, what, line.records, line.tokens)

    def repeated(self) -> list[Line]:
        """The lines of usage that the log has twice, with its tokens; without what sums up others."""
        lines = self.token_ledger.items()
        return [line for name, line in lines if name.startswith(Outcome.LEFT_OUT) and name not in _SUMS and line.tokens]

    def missing(self) -> dict[str, int]:
        """Return the kinds of records without tokens, and the number of each as far as it is known."""
        return {
            entry.what: entry.records for entry in self.entries() if entry.outcome == Outcome.UNKNOWN and entry.records
        }

    def missing_elsewhere(self) -> bool:
        """Return True if usage is unknown of which the trace has no event."""
        lines = self.token_ledger.items()
        return any(
            line.records for name, line in lines if name.startswith(Outcome.UNKNOWN) and name not in _OF_AN_ANSWER
        )

    def unsure(self) -> list[str]:
        """Return what is counted but may be more."""
        return [LedgerLine.PLACEHOLDER.partition(": ")[2]] if LedgerLine.PLACEHOLDER in self.token_ledger else []

    def as_data(self) -> dict[str, Any]:
        """The report as traces keep it."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        del data["prices"]
        if not self.context_windows:
            del data["context_windows"]
        kinds = {name: dict(sorted(data[name].items())) for name in ("passed_over", "unknown_kinds")}
        return {**data, **kinds}


def _count(counts: dict[str, int], kind: str) -> None:
    """Count a kind; a log may make up more of them than anybody would read."""
    if kind not in counts and len(counts) >= _MOST_KINDS:
        kind = "(further kinds)"
    counts[kind] = counts.get(kind, 0) + 1


def _note(noted: dict[str, Noted], name: str, place: str) -> None:
    entry = noted.setdefault(name, Noted())
    entry.number += 1
    if len(entry.for_example) < _MOST_EXAMPLES:
        entry.for_example.append(place)


def report_of(trace: Trace) -> ImportReport | None:
    """The import report of a trace, empty where it has none; None where it is in the form of another program."""
    try:
        return msgspec.convert(trace.import_report, ImportReport)
    except msgspec.ValidationError:
        return None


def has_all_tokens(trace: Trace) -> bool:
    """Return True if the events have all tokens that were spent, as far as the trace and its report say."""
    is_stated = trace.costs.get("tokens") is not None
    if not is_stated or not trace.import_report:  # of most of many traces: nothing is decoded
        return is_stated
    report = report_of(trace) or ImportReport()
    return not report.missing() and not report.unsure()


def lacks_input(trace: Trace) -> bool:
    """Return True if answers state their output alone, as the token ledger of the import says."""
    report = report_of(trace)
    return report is not None and LedgerLine.NO_INPUT in report.token_ledger


def accounts_for_all(trace: Trace) -> bool:
    """Return True if the token ledger counts the events without tokens with others."""
    report = report_of(trace)
    return report is not None and bool(report.token_ledger) and has_all_tokens(trace)


def has_all_costs(trace: Trace) -> bool:
    """Return True if the events have all costs of the run, as far as the trace and its report say."""
    prices = (report_of(trace) or ImportReport()).prices
    if prices is None:
        return has_all_tokens(trace) and has_all_stated_costs(trace)
    return has_all_tokens(trace) and not (prices.without or prices.without_hour)


def has_all_stated_costs(trace: Trace) -> bool:
    """Return True if a trace states the cost of every event that states tokens, or of none."""
    spent = [event for event in trace.events if event.tokens and not event.copied_context]
    return len({event.cost_usd is None for event in spent}) < 2
