"""The contents of agents' transcripts, in the same terms for every program.

Importers read rows into transcripts, one for each agent; `transcript_events` makes events of them. A transcript is a
list of steps, each with the moment and the place in the log where it was noted.
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
"""The error of a call that a person has refused: until then, the run waited."""

INTERRUPTED = "interrupted"
"""The error of a call that a person has broken off: until then, it may have worked."""

SCRIPT = AgentKind.TOOL
"""The kind of agents that are no models: scripts that spawn agents."""


class Place(Struct, gc=False, frozen=True):
    """A place in the log: the file as it is shown, and the line."""

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
"""The purposes once more: Python 3.11 takes long to find a member of an enumeration, and every call is asked."""


class Step(Struct, gc=False):
    """Something at one moment. `order` is its place in the log, which counts where moments are equal."""

    time: float
    place: Place
    order: float = 0.0

    @property
    def at(self) -> tuple[float, float]:
        """By what steps are put in order."""
        return self.time, self.order

    @property
    def last_time(self) -> float:
        """Return the time of its end."""
        return self.time


class ModelCall(Step):
    """One answer of a model; `time` and `end` are those of its first and last row.

    Attributes:
        spent: Its tokens; None where the log gives none.
        final: Whether nothing was to follow: no tool was called.
        error: What went wrong, in a word; empty where nothing did.
        more: Further fields of its event, such as `finish_reason`; times are seconds since 1970.
        is_dated: Whether its time is that of the request, where it begins, and not where its input was there.
    """

    end: float = 0.0
    model: str = ""
    basis: TokenBasis = TokenBasis.UNKNOWN
    ref: str = ""
    final: bool = True
    decides: bool = False
    error: str = ""
    event: str = ""
    more: dict[str, Any] | None = None
    is_dated: bool = False
    spent: Tokens | None = None

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
    """The result of a call. Without `tool_call` it answers a call that the log does not have.

    Attributes:
        is_repeated: Whether the call had its result before.
    """

    tool_call: "ToolCall | None" = None
    is_repeated: bool = False
    status: Status = Status.OK
    error: str = ""
    ref: str = ""


class ToolCall(Step, gc=True):
    """A tool called by an agent; `target` is the agent that it spawns, addresses or ends.

    Attributes:
        more: Further fields of its event, such as `run_time`.
    """

    purpose: Purpose = TOOL
    call: ModelCall | None = None
    id: str = ""
    tool: str = ""
    ref: str = ""
    target: str = ""
    role: str = ""
    answer: ToolResult | None = None
    is_inferred: bool = False
    event: str = ""
    more: dict[str, Any] | None = None


class UserInput(Step, gc=True):
    """The input of a person.

    Attributes:
        waited: Whether the run waited for it, if its turn was over.
        since: Since when, where that is not the end of what the agent did before: its history may be in
            another transcript.
        asked: Whether the agent has asked for it, at `since`, before its turn was over.
        is_command: Whether it is a command of the program itself, which need not reach the model.
        asking: The call that a person was asked about.
    """

    ref: str = ""
    waited: bool = True
    since: float = NO_TIME
    asked: bool = False
    is_command: bool = False
    status: Status = Status.UNKNOWN
    asking: "ToolCall | None" = None


class Note(Step):
    """Anything else that an agent is given to read: its task, a reminder.

    Attributes:
        prolongs: Whether it lets a turn go on that was over, as a hook does.
    """

    prolongs: bool = False


class Notice(Step, gc=True):
    """A call in the background tells its agent of itself, such as that it is over.

    Attributes:
        tool_call: The call; None where nobody knows which, or where an agent tells of itself.
    """

    tool_call: "ToolCall | None" = None


class TurnEnd(Step):
    """A turn of an agent is over, and the log says how long it took.

    Attributes:
        run_time: How long, in seconds.
        excludes: What that leaves out.
        since: When the turn began; `NO_TIME` where that is the prompt with which it began.
    """

    run_time: float = 0.0
    excludes: Excluded = Excluded.PEOPLE
    since: float = NO_TIME


class Delivery(Step):
    """A message of another agent arrives.

    Attributes:
        sender: The agent; empty for what may as well be the receiver's task.
        sent: The call that sent it, where the log has that, too.
    """

    sender: str = ""
    ref: str = ""
    sent: ToolCall | None = None


class Return(Step):
    """The result of another agent arrives."""

    child: str = ""
    status: Status = Status.OK
    error: str = ""
    ref: str = ""
    is_inferred: bool = False

    @classmethod
    def at_step(cls, step: Step, child: str, status: Status = Status.OK, error: str = "", ref: str = "") -> "Return":
        """Return the return of which a step of the receiver tells: right behind it."""
        return cls(step.time, step.place, step.order + 0.5, child, status, error, ref)


class SafetyEvent(Step, gc=True):
    """A guard has stopped or refused something, or has let a person be asked.

    Attributes:
        asking: The call that a person was asked about; the log does not say when they answered.
    """

    tool: str = ""
    status: Status = Status.ERROR
    error: str = ""
    ref: str = ""
    asking: "ToolCall | None" = None


class CopiedHistory(Step):
    """History of another transcript that was copied into this one, with the tokens that it repeats."""

    tokens: dict[str, int] = field(default_factory=dict)


class Transcript(Struct):
    """The acts of one agent, as one file or a part of it records them.

    Attributes:
        agent: The agent's name.
        parent: The agent that spawned it; empty where nobody did, or nobody knows.
        is_root: Whether people talk to it.
        kind: `SCRIPT`, or a model.
        key: Its name in the log.
        is_warm_up: Whether all that it was asked is to fill caches before the run.
        aside: What is done beside the agent's own transcript, such as `compaction`; empty in its own.
    """

    agent: str
    key: str = ""
    role: str = ""
    aside: str = ""
    parent: str = ""
    is_root: bool = False
    is_warm_up: bool = False
    kind: AgentKind = AgentKind.MODEL
    steps: list[Step] = field(default_factory=list)

    def add(self, step: Step) -> None:
        """Append a step in the order of the log."""
        step.order = float(len(self.steps))
        self.steps.append(step)

    @property
    def model(self) -> str:
        """The model of most of its answers; empty where none is named."""
        models = [step.model for step in self.steps if isinstance(step, ModelCall) and step.model]
        return max(dict.fromkeys(models), key=models.count, default="")

    def fill_times(self) -> Step | None:
        """Give a time to steps whose row has none: that of the step before, or else of the first that has one.

        Returns:
            The first step without a time; None where all have one.
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
        """Note when a model was asked: not before what it was to read was there, whatever the log's lengths say.

        Args:
            call: An answer among the steps.
            time: When its request is said to have gone out.
            first: How many seconds later the first token came; 0 where nobody says.
        """
        place = int(call.order)
        before = self.steps[place - 1].last_time if place else time
        call.time = begin = max(min(max(time, before), call.end), 0.0)
        more = call.more = call.more or {}
        more["t_request"] = begin
        if first > 0:
            more["t_first_token"] = max(min(time + first, call.end), begin)


def mark(text: str) -> int:
    """Return a number by which a text is known again, whatever its blanks and capitals."""
    return hash(" ".join(text.split()).lower())


_NOTIFIED = r"<tool-use-id>([^<]{1,200})</tool-use-id>\s*<status>(\w{1,20})</status>"
_OUTCOMES = {
    **dict.fromkeys(("error", "failed", "failure"), Status.ERROR),
    **dict.fromkeys(("completed", "success", "succeeded", "ok"), Status.OK),
}


def outcome(word: str) -> Status:
    """Return how something ended, by the word for it."""
    return _OUTCOMES.get(word, Status.CANCELLED)


def notified(text: str) -> list[tuple[str, Status]]:
    """Return the ids of the calls of whose end a `<task-notification>` tells, each with how it ended."""
    return [(call_id, outcome(word)) for call_id, word in re.findall(_NOTIFIED, text)]


def join(call: ToolCall | None, result: ToolResult, report: ImportReport) -> bool:
    """Join a result to its call, and return True if it is its first; it comes later, whatever the clock says."""
    if call is None:
        report.note(Problem.RESULT_WITHOUT_CALL, str(result.place))
        return False
    if call.answer is not None:
        result.is_repeated = True
        report.note(Problem.SECOND_RESULT, str(result.place))
        return False
    call.answer, result.tool_call = result, call
    if result.time < call.time or (result.time == call.time and result.order < call.order):
        result.time, result.order = call.time, call.order + 0.5
    return True


def local_commands(steps: Sequence[Step]) -> frozenset[int]:
    """Return the commands that no model has answered, such as the one that ends the program, by `id`."""
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
    """Return how agents are arranged, given who spawned each: all below one agent, or below one another."""
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
    """Add returns to the transcripts that receive them, unless an agent has done nothing since its last return."""
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
