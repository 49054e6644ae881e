"""Transcripts: what each agent of a run did, as a list of steps in the same terms for every program.

Importers read rows into transcripts, one for each agent; `transcript_events` makes events of them.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.times import NO_TIME
from orchtrace_corpus.trace.model.import_report import ImportReport, Problem
from orchtrace_corpus.trace.model.terms import AgentKind, Excluded, Status, TokenBasis, Topology
from orchtrace_corpus.trace.model.trace import Tokens

USER = "user"
"""The name under which people act in a trace."""

REJECTED = "rejected"
"""The error of a call that a person refused: until then, the run waited."""

INTERRUPTED = "interrupted"
"""The error of a call that a person broke off: until then, it may have worked."""

SCRIPT = AgentKind.TOOL
"""The kind of agents that are scripts and not models; they spawn other agents."""


class Place(Struct, gc=False, frozen=True):
    """A place in the log: the file by the name that reports show, and the line."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Purpose(StrEnum):
    """The purpose of a tool call."""

    TOOL = "tool"
    SPAWN = "spawn"
    MESSAGE = "message"
    ASK = "ask"  # asks a person, and waits
    JOIN = "join"  # waits for other agents
    CLOSE = "close"  # ends another agent


TOOL, SPAWN, MESSAGE, ASK, JOIN, CLOSE = Purpose
"""The purposes once more: Python 3.11 is slow to look up a member of an enumeration."""


class Step(Struct, gc=False):
    """An entry of a transcript."""

    time: float  # in seconds since 1970
    place: Place
    order: float = 0.0  # its place among the steps, which decides between steps of the same time

    @property
    def at(self) -> tuple[float, float]:
        """Return the key by which steps are sorted."""
        return self.time, self.order

    @property
    def last_time(self) -> float:
        """Return the time of its end."""
        return self.time


class ModelCall(Step):
    """One answer of a model; `time` and `end` are those of its first and last row."""

    end: float = 0.0
    model: str = ""
    basis: TokenBasis = TokenBasis.UNKNOWN
    ref: str = ""
    final: bool = True  # False if it calls a tool
    decides: bool = False
    error: str = ""  # the kind of error; empty if it succeeded
    event: str = ""
    more: dict[str, Any] | None = None  # further fields of its event, such as `finish_reason`; times as those of steps
    is_dated: bool = False  # True if `time` is that of the request; else it begins when its input is there
    spent: Tokens | None = None  # None if the log does not say

    @property
    def last_time(self) -> float:
        """Return the time of its last row."""
        return self.end

    def note_text(self, text: str, privacy: Privacy) -> None:
        """Add a text to what the model wrote."""
        if text and privacy.keep_content:
            self.ref = f"{self.ref}\n{text}" if self.ref else text
        elif text:
            self.ref = privacy.reference(self.ref + text)


class ToolResult(Step, gc=True):
    """The result of a call."""

    tool_call: "ToolCall | None" = None  # None if the log does not have the call
    is_repeated: bool = False  # True if the call has an earlier result
    status: Status = Status.OK
    error: str = ""
    ref: str = ""


class ToolCall(Step, gc=True):
    """A call of a tool by an agent."""

    purpose: Purpose = TOOL
    call: ModelCall | None = None  # the answer that asks for it
    id: str = ""
    tool: str = ""
    ref: str = ""
    target: str = ""  # the agent that it spawns, addresses or ends
    role: str = ""
    answer: ToolResult | None = None
    is_inferred: bool = False
    event: str = ""
    more: dict[str, Any] | None = None  # further fields of its event, such as `run_time`


class UserInput(Step, gc=True):
    """The input of a person."""

    ref: str = ""
    waited: bool = True  # True if the run waited for it, provided that its turn was over
    since: float = NO_TIME  # when the wait began, if not when the agent's last step ended
    asked: bool = False  # True if the agent asked for it, at `since`, before its turn was over
    is_command: bool = False  # True if it is a command of the program itself, which need not reach the model
    status: Status = Status.UNKNOWN
    asking: "ToolCall | None" = None  # the call that the person was asked about


class Note(Step):
    """Any other text that an agent is given to read: its task, a reminder."""

    prolongs: bool = False  # True if it continues a turn that was over, as a hook does


class Notice(Step, gc=True):
    """A message from a call in the background to its agent, such as that it has ended."""

    tool_call: "ToolCall | None" = None  # None if the log does not say which, or if an agent reports about itself


class TurnEnd(Step):
    """The end of an agent's turn of which the log states the length."""

    run_time: float = 0.0  # its length in seconds
    excludes: Excluded = Excluded.PEOPLE  # the time that the length leaves out
    since: float = NO_TIME  # when the turn began, if not with a prompt


class Delivery(Step):
    """The arrival of another agent's message."""

    sender: str = ""  # empty for what may also be the receiver's task
    ref: str = ""
    sent: ToolCall | None = None  # the call that sent it, if the log has it


class Return(Step):
    """The arrival of another agent's result."""

    child: str = ""
    status: Status = Status.OK
    error: str = ""
    ref: str = ""
    is_inferred: bool = False


class SafetyEvent(Step, gc=True):
    """A guard's act: it stopped or refused something, or had a person asked."""

    tool: str = ""
    status: Status = Status.ERROR
    error: str = ""
    ref: str = ""
    asking: "ToolCall | None" = None  # the call that a person was asked about; the log has no time of their answer


class CopiedHistory(Step):
    """History of another transcript that was copied into this one, with the tokens that it repeats."""

    tokens: dict[str, int] = field(default_factory=dict)


class Transcript(Struct):
    """The steps of one agent, as one file or a part of it records them."""

    agent: str  # the agent's name
    key: str = ""  # its name in the log
    role: str = ""
    aside: str = ""  # the purpose of model calls outside the agent's conversation, such as `compaction`; else empty
    parent: str = ""  # the agent that spawned it; empty if nobody did, or if the log does not say
    is_root: bool = False  # True if people talk to it
    is_warm_up: bool = False  # True if it only fills caches before the run
    kind: AgentKind = AgentKind.MODEL
    steps: list[Step] = field(default_factory=list)

    def add(self, step: Step) -> None:
        """Append a step in the order of the log."""
        step.order = len(self.steps)
        self.steps.append(step)

    @property
    def model(self) -> str:
        """Return the model of most of its answers; empty if none is named."""
        models = [step.model for step in self.steps if type(step) is ModelCall and step.model]
        return max(dict.fromkeys(models), key=models.count, default="")

    def fill_times(self) -> Step | None:
        """Give steps whose row has no time that of the step before, or else of the first step that has one.

        Return the first step without a time; None if all have one.
        """
        times = [step.time for step in self.steps]
        if NO_TIME not in times:
            return None
        known = next((time for time in times if time != NO_TIME), 0.0)
        for step in self.steps:
            if step.time == NO_TIME:
                step.time = known
                if isinstance(step, ModelCall):
                    step.end = max(step.end, known)
            known = step.time
        return self.steps[times.index(NO_TIME)]

    def date_request(self, call: ModelCall, time: float, first: float = 0.0) -> None:
        """Note the time of an answer's request, by the log's durations; it is not before the end of the step before.

        `first` is the number of seconds until the first token; 0 if it is unknown.
        """
        place = int(call.order)
        before = self.steps[place - 1].last_time if place else time
        call.time = begin = max(min(max(time, before), call.end), 0.0)
        more = call.more = call.more or {}
        more["t_request"] = begin
        if first > 0:
            more["t_first_token"] = max(min(time + first, call.end), begin)


def mark(text: str) -> int:
    """Return a number that is the same for texts that differ in blanks and capitals only."""
    return hash(" ".join(text.split()).lower())


_NOTIFIED = r"<tool-use-id>([^<]{1,200})</tool-use-id>\s*<status>(\w{1,20})</status>"
_OUTCOMES = {
    **dict.fromkeys(("error", "failed", "failure"), Status.ERROR),
    **dict.fromkeys(("completed", "success", "succeeded", "ok"), Status.OK),
}


def outcome(word: str) -> Status:
    """Return the status that a word of a log stands for."""
    return _OUTCOMES.get(word, Status.CANCELLED)


def notified(text: str) -> list[tuple[str, Status]]:
    """Return the ids of the calls whose end a `<task-notification>` reports, each with its status."""
    return [(call_id, outcome(word)) for call_id, word in re.findall(_NOTIFIED, text)]


def join(call: ToolCall | None, result: ToolResult, report: ImportReport) -> bool:
    """Join a result to its call, behind it whatever the clock says; return False for a second one or without a call."""
    if call is None:
        report.note(Problem.RESULT_WITHOUT_CALL, str(result.place))
        return False
    if call.answer is not None:
        result.is_repeated = True
        report.note(Problem.SECOND_RESULT, str(result.place))
        return False
    call.answer, result.tool_call = result, call
    if result.time <= call.time and (result.time < call.time or result.order < call.order):
        result.time, result.order = call.time, call.order + 0.5
    return True


def local_commands(steps: Sequence[Step]) -> frozenset[int]:
    """Return the `id` of the commands that no model answered, such as the one that ends the program."""
    unanswered, is_answered = set(), False
    for step in reversed(steps):
        if isinstance(step, ModelCall):
            is_answered = True
        elif isinstance(step, UserInput):
            if step.is_command and not is_answered:
                unanswered.add(id(step))
            is_answered = False
    return frozenset(unanswered)


def topology(parents: Mapping[str, str]) -> Topology:
    """Return how agents are arranged, given the parent of each: all below one agent, or below one another."""
    if not parents:
        return Topology.UNKNOWN
    is_deep = any(parent in parents for parent in parents.values())
    return Topology.HIERARCHICAL if is_deep else Topology.CENTRALIZED


def parents_first(transcripts: Sequence[Transcript]) -> list[Transcript]:
    """Return the transcripts, each behind those of its parent."""
    children: dict[str, list[Transcript]] = {}
    agents = {transcript.agent for transcript in transcripts}
    for transcript in transcripts:
        children.setdefault(transcript.parent if transcript.parent in agents else "", []).append(transcript)
    ordered: list[Transcript] = []
    waiting = [""]
    reached = {""}
    while waiting:
        for transcript in children.get(waiting.pop(), ()):
            ordered.append(transcript)
            if transcript.agent not in reached:
                reached.add(transcript.agent)
                waiting.append(transcript.agent)
    return ordered


def add_returns(returns: Iterable[tuple[Transcript, Return]], transcripts: Iterable[Transcript]) -> None:
    """Add returns to the transcripts of their receivers, unless an agent did nothing since its last return."""
    ordered = sorted(returns, key=lambda pair: pair[1].at)
    moments: dict[str, list[float]] = {step.child: [] for _, step in ordered}
    for transcript in transcripts:
        if transcript.agent in moments and not transcript.aside:
            moments[transcript.agent] = sorted([step.time for step in transcript.steps])
    returned: dict[str, float] = {}
    for receiver, step in ordered:
        done = moments[step.child]
        before = returned.get(step.child)
        if before is None or bisect_right(done, before) < bisect_right(done, step.time):
            returned[step.child] = step.time
            receiver.steps.append(step)
