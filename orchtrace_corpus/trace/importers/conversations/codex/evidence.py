"""Evidence of other threads in a Codex thread: whom it spawned, addressed and ended, who came back, who wrote to it."""

from msgspec import Struct, field

from orchtrace_corpus.trace.importers.core.transcript import Delivery, Step, ToolCall
from orchtrace_corpus.trace.model.trace import Status


class Spawn(Struct):
    """A call that spawns an agent.

    Attributes:
        call: The call.
        call_id: Its id in the log.
        task_mark: A mark of the sub-agent's task.
        names: What the call and its output call the sub-agent: its thread, its path, its name.
        nickname: The name that the output gives it for people; empty where it gives none.
        is_declined: Whether the output is no object, as it is where an agent came into being, but a sentence.
    """

    call: ToolCall
    call_id: str
    task_mark: int = 0
    names: list[str] = field(default_factory=list)
    nickname: str = ""
    is_declined: bool = False


class Addressed(Struct):
    """A call that is about an agent under some name: a message to it, or its end."""

    call: ToolCall
    name: str
    text_mark: int = 0


class Ending(Struct):
    """The end of another agent, reported to the thread at a step; `ref` refers to its result."""

    step: Step
    name: str
    status: Status
    ref: str


class Arrival(Struct):
    """A text that the agent is given, and that another may have sent.

    Attributes:
        step: The step at which it arrives.
        text_mark: A mark of the text; 0 where it is encrypted.
        author: What the log calls the agent that sent it; empty where it does not say.
    """

    step: Delivery
    text_mark: int
    author: str = ""


class Start(Struct):
    """An agent comes into being.

    Attributes:
        call_id: The id of the call that spawned it; empty where the log does not say.
        path: Its path; empty where the log does not say.
        concluded: What stands for that call where the log has none, as for calls that a script makes.
    """

    call_id: str
    path: str
    concluded: ToolCall


class Evidence(Struct):
    """All evidence of a thread.

    Attributes:
        spawns: Its calls that spawn agents.
        addressed: Its calls that are about agents.
        endings: The ends of agents that were reported to it.
        arrivals: What others may have sent it.
        started: The agents whose beginning it mentions, by thread.
        failed: The ids of calls that spawned no agent, as it says.
    """

    spawns: list[Spawn] = field(default_factory=list)
    addressed: list[Addressed] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    started: dict[str, Start] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def refused(self) -> set[int]:
        """Return the calls, by `id`, that spawned no agent.

        The log says so, or has a sentence where it would name the agent.
        """
        started = {start.call_id for start in self.started.values()}
        return {
            id(spawn.call)
            for spawn in self.spawns
            if spawn.call_id in self.failed or (spawn.is_declined and spawn.call_id not in started)
        }

    def leave_out(self, row: int) -> None:
        """Leave out what stands in rows up to this one, which were copied from another thread."""
        self.spawns = [spawn for spawn in self.spawns if spawn.call.order > row]
        self.addressed = [addressed for addressed in self.addressed if addressed.call.order > row]
        self.endings = [ending for ending in self.endings if ending.step.order > row]
        self.arrivals = [arrival for arrival in self.arrivals if arrival.step.order > row]
        self.started = {thread: start for thread, start in self.started.items() if start.concluded.order > row}
