"""What the rows of one Codex rollout tell about other threads, kept until all rollouts of a session are read."""

from msgspec import Struct, field

from orchtrace_corpus.trace.importers.conversations.transcript import Act, Delivery, Step
from orchtrace_corpus.trace.model.trace import Status


class Spawn(Struct):
    """A call that spawns an agent.

    Attributes:
        id: Its id.
        mark: A mark of the child's task.
        names: What the call and its output call the child: its thread, its path, its name.
    """

    act: Act
    id: str
    mark: int = 0
    names: list[str] = field(default_factory=list)


class Aimed(Struct):
    """A call that is about an agent under some name: a message to it, or its end."""

    act: Act
    name: str
    mark: int = 0


class Ending(Struct):
    """The rollout says at some step that another agent has ended: ok, error or cancelled."""

    step: Step
    name: str
    status: Status
    ref: str


class Arrival(Struct):
    """A text that the agent is given, and that another may have sent."""

    step: Delivery
    mark: int


class Clues(Struct):
    """All clues of a rollout.

    Attributes:
        started: The agents whose beginning it mentions, by thread: the id of the call, or the agent's path.
    """

    spawns: list[Spawn] = field(default_factory=list)
    aimed: list[Aimed] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    started: dict[str, str] = field(default_factory=dict)
