"""Transcripts: the steps of each agent, as importers read them. `transcript_events` makes events of them."""

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
"""The error of a call that a person refused. The run waited until then."""

INTERRUPTED = "interrupted"
"""The error of a call that a person interrupted. It may have worked until then."""

SCRIPT = AgentKind.TOOL
"""The kind of an agent that is a script and no model, and that spawns other agents."""


class Place(Struct, gc=False, frozen=True):
    """A place in the log."""

    file: str  # the name of the file, as reports show it
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
"""The members of `Purpose`, because Python 3.11 is slow to look up a member of an enumeration."""


class Step(Struct, gc=False):
    """An entry of a transcript."""

    time: float  # in seconds since 1970
    place: Place
    order: float = 0.0  # its position in the transcript, by which steps of the same time are sorted

    @property
    def at(self) -> tuple[float, float]:
        """Return the key by which steps are sorted: time and order."""
        return self.time, self.order

    @property
    def last_time(self) -> float:
        """Return the time at which the step ends."""
        return self.time


class ModelCall(Step):
    """One answer of a model. `time` is the time of its first row."""

    end: float = 0.0  # the time of its last row
    model: str = ""
    basis: TokenBasis = TokenBasis.UNKNOWN
    ref: str = ""  # the reference to its text, as in the other steps
    final: bool = True  # False if it calls a tool
    decides: bool = False  # True if it spawns or addresses an agent
    error: str = ""  # the kind of error; empty if it succeeded
    event: str = ""  # the id of its event; empty before the event is added
    more: dict[str, Any] | None = None  # further fields of its event, such as `finish_reason`
    is_dated: bool = False  # True if `time` is the time of the request; else it begins when its input is complete
    spent: Tokens | None = None  # None if the log does not say

    @property
    def last_time(self) -> float:
        """Return the time of the last row."""
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
    model_call: ModelCall | None = None  # the answer of the model that asks for the tool
    id: str = ""
    tool: str = ""
    ref: str = ""  # the reference to its arguments
    target: str = ""  # the agent that it spawns, addresses or ends
    role: str = ""  # the role of the agent that it spawns
    result: ToolResult | None = None
    is_inferred: bool = False  # True if the log does not have the call
    event: str = ""  # the id of its event; empty before the event is added
    more: dict[str, Any] | None = None  # further fields of its event, such as `run_time`


class UserInput(Step, gc=True):
    """The input of a person."""

    ref: str = ""
    waited: bool = True  # True if the run waited for it, in case the agent's turn was over
    since: float = NO_TIME  # when the wait began; `NO_TIME` if it began with the end of the agent's last step
    asked: bool = False  # True if the agent asked for it during its turn, at `since`
    is_command: bool = False  # True for a command of the program, which may not reach the model
    status: Status = Status.UNKNOWN  # cancelled if the person interrupted the agent
    asking: "ToolCall | None" = None  # the call that the person was asked to allow


class Note(Step):
    """Another input of an agent, such as its task or a reminder."""

    prolongs: bool = False  # True if the turn, which was over, goes on with it, as with the message of a hook


class Notice(Step, gc=True):
    """A message from a call in the background to its agent, such as that the call has ended."""

    tool_call: "ToolCall | None" = None  # None if the log does not name the call, or if an agent reports about itself


class TurnEnd(Step):
    """The end of an agent's turn, whose length the log states."""

    run_time: float = 0.0  # the length in seconds
    excludes: Excluded = Excluded.PEOPLE  # the time that the length excludes
    since: float = NO_TIME  # when the turn began; `NO_TIME` if it began with a prompt


class Delivery(Step):
    """The arrival of another agent's message."""

    sender: str = ""  # empty if the message may be the receiver's task
    ref: str = ""
    sent: ToolCall | None = None  # the call that sent it; None if the log does not have it


class Return(Step):
    """The arrival of another agent's result."""

    child: str = ""
    status: Status = Status.OK
    error: str = ""
    ref: str = ""
    is_inferred: bool = False


class SafetyEvent(Step, gc=True):
    """An act of a guard: it stopped or refused something, or asked a person."""

    tool: str = ""
    status: Status = Status.ERROR
    error: str = ""
    ref: str = ""
    asking: "ToolCall | None" = None  # the call that a person was asked to allow


class CopiedHistory(Step):
    """The history of another transcript that was copied into this one."""

    tokens: dict[str, int] = field(default_factory=dict)  # the tokens that the log states again for it, by kind


class Transcript(Struct):
    """The steps of one agent in its conversation, or of its model calls outside the conversation."""

    agent: str  # the agent's name
    key: str = ""  # its name in the log
    role: str = ""
    aside: str = ""  # the purpose of model calls outside the conversation, such as `compaction`; else empty
    parent: str = ""  # the name of the agent that spawned it; empty if it has none, or if the log does not say
    is_root: bool = False  # True if people talk to it
    is_warm_up: bool = False  # True if it only fills caches before the run
    kind: AgentKind = AgentKind.MODEL
    steps: list[Step] = field(default_factory=list)

    def add(self, step: Step) -> None:
        """Append a step in the order of the log."""
        step.order = len(self.steps)
        self.steps.append(step)

    @property
    def first_step(self) -> Step | None:
        """Return the earliest step; None if there is none."""
        return min(self.steps, key=lambda step: step.at, default=None)

    @property
    def model(self) -> str:
        """Return the model that gave most answers; empty if the log names none."""
        models = [step.model for step in self.steps if type(step) is ModelCall and step.model]
        return max(dict.fromkeys(models), key=models.count, default="")

    def fill_times(self) -> Step | None:
        """Give steps without a time that of the previous step, and return the first of them; None if there is none."""
        times = [step.time for step in self.steps]
        if NO_TIME not in times:
            return None
        last_time = next((time for time in times if time != NO_TIME), 0.0)  # for steps before the first time
        for step in self.steps:
            if step.time == NO_TIME:
                step.time = last_time
                if isinstance(step, ModelCall):
                    step.end = max(step.end, last_time)
            last_time = step.time
        return self.steps[times.index(NO_TIME)]

    def date_request(self, call: ModelCall, time: float, first: float = 0.0) -> None:
        """Set the time of an answer's request, as far as possible not before the end of the previous step.

        `first` is the number of seconds from the request to the first token; 0 if unknown.
        """
        index = int(call.order)
        earliest = self.steps[index - 1].last_time if index else time
        call.time = begin = max(min(max(time, earliest), call.end), 0.0)
        more = call.more = call.more or {}
        more["t_request"] = begin
        if first > 0:
            more["t_first_token"] = max(min(time + first, call.end), begin)


def mark(text: str) -> int:
    """Return a number by which equal texts are found; it ignores differences in blanks and capitals."""
    return hash(" ".join(text.split()).lower())


_NOTIFICATION = r"<tool-use-id>([^<]{1,200})</tool-use-id>\s*<status>(\w{1,20})</status>"
_STATUS_BY_WORD = {
    **dict.fromkeys(("error", "failed", "failure"), Status.ERROR),
    **dict.fromkeys(("completed", "success", "succeeded", "ok"), Status.OK),
}


def outcome(word: str) -> Status:
    """Return the status that a word of a log means: ok, error, or cancelled for any other word."""
    return _STATUS_BY_WORD.get(word, Status.CANCELLED)


def notified(text: str) -> list[tuple[str, Status]]:
    """Return the ids of the calls whose end a `<task-notification>` reports, each with its status."""
    return [(call_id, outcome(word)) for call_id, word in re.findall(_NOTIFICATION, text)]


def join(call: ToolCall | None, result: ToolResult, report: ImportReport) -> bool:
    """Join a result to its call. Return False, and note the problem, for a second result or one without a call."""
    if call is None:
        report.note(Problem.RESULT_WITHOUT_CALL, str(result.place))
        return False
    if call.result is not None:
        result.is_repeated = True
        report.note(Problem.SECOND_RESULT, str(result.place))
        return False
    call.result, result.tool_call = result, call
    # a result that is earlier than its call is moved behind it
    if result.time <= call.time and (result.time < call.time or result.order < call.order):
        result.time, result.order = call.time, call.order + 0.5
    return True


def local_commands(steps: Sequence[Step]) -> frozenset[int]:
    """Return the `id` of each command that no model answered, such as the command that ends the program."""
    unanswered = set()
    is_answered = False  # True if a model answered between the step and the next input
    for step in reversed(steps):
        if isinstance(step, ModelCall):
            is_answered = True
        elif isinstance(step, UserInput):
            if step.is_command and not is_answered:
                unanswered.add(id(step))
            is_answered = False
    return frozenset(unanswered)


def topology(parents: Mapping[str, str]) -> Topology:
    """Return the topology of a run, given the parent of each agent that has one."""
    if not parents:
        return Topology.UNKNOWN
    has_levels = any(parent in parents for parent in parents.values())
    return Topology.HIERARCHICAL if has_levels else Topology.CENTRALIZED


def parents_first(transcripts: Sequence[Transcript]) -> list[Transcript]:
    """Return the transcripts, each of them after the transcripts of its parent."""
    children: dict[str, list[Transcript]] = {}  # by parent; the empty name stands for an unknown parent
    agents = {transcript.agent for transcript in transcripts}
    for transcript in transcripts:
        parent = transcript.parent if transcript.parent in agents else ""
        children.setdefault(parent, []).append(transcript)
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
    """Add returns to the transcripts of their receivers, except for agents that did nothing since their last return."""
    ordered = sorted(returns, key=lambda pair: pair[1].at)
    step_times: dict[str, list[float]] = {step.child: [] for _, step in ordered}
    for transcript in transcripts:
        if transcript.agent in step_times and not transcript.aside:
            step_times[transcript.agent] = sorted([step.time for step in transcript.steps])
    last_returns: dict[str, float] = {}  # the time of each agent's last return
    for receiver, step in ordered:
        times = step_times[step.child]
        last = last_returns.get(step.child)
        if last is None or bisect_right(times, last) < bisect_right(times, step.time):
            last_returns[step.child] = step.time
            receiver.steps.append(step)
