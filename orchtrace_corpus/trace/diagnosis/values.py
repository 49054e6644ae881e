"""The parts of a diagnosis."""

from collections.abc import Mapping
from enum import IntEnum, StrEnum

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.diagnosis.findings import TeamFindings
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, report_of
from orchtrace_corpus.trace.model.trace import Event
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.timing import Chain


class Origin(NamedTuple):
    """The origin of a run.

    Attributes:
        form: What it was read from, such as the name of a log format.
        file: The file that it begins in, below the given folder.
        has_prices: Whether costs are known or were asked for.
        answers: The ids of its answers, by the numbers of their events, where the log has them.
        folder: The folder that it ran in; empty where that is unknown.
    """

    form: str = "Trace"
    file: str = ""
    has_prices: bool = False
    answers: Mapping[int, str] = {}
    folder: str = ""


class Summary(NamedTuple):
    """A run in a few figures, to be shown beside others.

    Attributes:
        name: Its name.
        day: When it began; empty where that is unknown.
        agents: How many agents acted, people left out.
        events: How many events it has.
        elapsed: How long it took, without waits for people.
        unit: The unit of that time: `s` or `step`; empty where several runs are added up.
        errors: How many events failed.
        tokens: Its tokens as far as they are known; None where none are.
        cost_usd: Its cost as far as that is known; None where nothing of it is.
        has_more_tokens: Whether it spent more tokens than are known.
        costs_more: Whether it cost more than is known.
        file: The file that it begins in, which tells sessions of one name apart.
        files: How many files its events are from.
        folder: The folder that it ran in; empty where that is unknown.
        first_words: How its first prompt begins; empty where the trace holds no contents.
    """

    name: str
    day: str
    agents: int
    events: int
    elapsed: float
    unit: str
    errors: int
    tokens: float | None
    cost_usd: float | None
    has_more_tokens: bool = False
    costs_more: bool = False
    file: str = ""
    files: int = 1
    folder: str = ""
    first_words: str = ""


class Parallelism(NamedTuple):
    """The parallelism of a run.

    Attributes:
        most: The most events worked on at once.
        together: The share of the elapsed time in which several were.
        alone: The share in which one was.
        idle: The share in which none was.
        worked: How long all of them took, one after another.
        tools: How much of that tools took.
        assumed: How much of that nobody saw.
        open: How much of that are open calls, which perhaps did nothing but wait; 0 in the reading in which they did.
    """

    most: int
    together: float
    alone: float
    idle: float
    worked: float
    tools: float
    assumed: float
    open: float


class Activity(StrEnum):
    """The activity in a stretch of the critical path."""

    MODEL = "model"
    TOOL = "tool"
    OPEN = "perhaps waiting"
    OPEN_MODEL = "model, perhaps waiting"
    ASSUMED = "assumed"
    GAP = "gap"
    IDLE = "idle"
    FINDING = "finding"


class Stretch(NamedTuple):
    """A part of the critical path in which one agent works, or in which nothing of the path happens.

    Attributes:
        agent: The agent; empty where there is none.
        seconds: How long.
        activity: What takes most of it.
        tool: The tool that does; empty where its name is unknown, and for other activities.
        is_mixed: Whether something else takes the rest.
        workers: In a gap, the agents that work meanwhile, beside the path.
        worked: For how much of the gap any of them does.
    """

    agent: str
    seconds: float
    activity: Activity
    tool: str
    is_mixed: bool
    workers: tuple[str, ...] = ()
    worked: float = 0.0


class WorkPath(NamedTuple):
    """The path of the most work (span): with these steps and no waiting, the run takes at least that long.

    Attributes:
        length: Its length; the stretches add up to it.
        events: The numbers of its events, first to last.
        stretches: The same by agent.
    """

    length: float
    events: tuple[int, ...]
    stretches: tuple[Stretch, ...]


class CriticalPath(NamedTuple):
    """The chain of events that the end of a run waited for.

    Attributes:
        chain: Its events, how long each of them worked, and the gaps between them.
        stretches: The same by agent, small gaps left out.
        gaps: How long these small gaps take together.
        idle: For how much of all its gaps nobody works.
        span: The path of the most work, wherever it lies, if open calls worked.
        span_if_waiting: The same if open calls did nothing but wait.
        unknown: How many working events have no end, and are taken as 0 s.
    """

    chain: Chain
    stretches: tuple[Stretch, ...]
    gaps: float
    idle: float
    span: WorkPath
    span_if_waiting: WorkPath
    unknown: int


class TokenUse(NamedTuple):
    """The known tokens of a run, by spender.

    Attributes:
        known: All that are known; None where none are.
        is_least: Whether there are more.
        kinds: The known ones by kind, those of `measures.ledger` that make up a total.
        by_model: Tokens by model, most first; a model that is not named is empty.
        by_agent: Tokens by agent, in the order of the agent tree.
        least: The agents that spent more than is known.
        reason: Why the trace gives no total, as it says itself.
        missing: Where it gives a total: how many records without tokens there are, by what they are.
        unsure: What is counted, but may be more.
        repeated: How many records repeat others, and how many tokens these would have added.
        hidden: How many tokens of answers that are not in the log there are at most; 0 where the log names none.
    """

    known: float | None
    is_least: bool
    kinds: Mapping[str, float]
    by_model: tuple[tuple[str, float], ...]
    by_agent: tuple[tuple[str, float], ...]
    least: frozenset[str]
    reason: str
    missing: Mapping[str, int]
    unsure: tuple[str, ...]
    repeated: tuple[int, float]
    hidden: float = 0.0


class Cost(NamedTuple):
    """The known cost of a run in US dollars.

    Attributes:
        by_agent: Costs by agent, highest first; empty where none is known.
        is_least: Whether there are more.
        date: Of which day the prices are; empty where the trace states the costs.
        last_day: The last day of the run; empty where that is unknown.
        without: The models of events that have no cost.
        unused: The models of the price table that the run does not have.
        source: Who keeps the prices; empty where the user gave a table, or the trace states the costs.
        by_model: Costs by model, highest first.
        by_tool: Costs by the tool that an answer called, highest first; `ledger` says how an answer is divided.
        stated: What the log states beside costs by prices; None where it states nothing.
        has_all_stated: Whether it states the cost of every answer.
        without_hour: The models of which there is no price for caches that keep for an hour.
    """

    by_agent: tuple[tuple[str, float], ...]
    is_least: bool
    date: str
    last_day: str
    without: tuple[str, ...]
    unused: tuple[str, ...]
    source: str = ""
    by_model: tuple[tuple[str, float], ...] = ()
    by_tool: tuple[tuple[str, float], ...] = ()
    stated: float | None = None
    has_all_stated: bool = True
    without_hour: tuple[str, ...] = ()


class ProblemKind(StrEnum):
    """The kind of a problem."""

    FAILED_EVENT = "failed event"
    IMPORT = "import"
    UNKNOWN_RECORD = "record of an unknown kind"
    FOREIGN_REPORT = "import report of another form"
    FURTHER_FILE = "another file of the session, an hour or more later"


class Problem(NamedTuple):
    """Something that went wrong a number of times.

    Attributes:
        kind: What sort of thing it is.
        number: How often.
        text: What the import report calls it; empty for the other kinds.
        place: Where it happened first, as `file:line` of the log, or what stands for it.
        event: The first event that failed; None for the other kinds.
    """

    kind: ProblemKind
    number: int
    text: str = ""
    place: str = ""
    event: Event | None = None


class Diagnosis(NamedTuple):
    """The time and the money of a run. Times exclude waits for people, in the unit of the summary.

    Attributes:
        view: The trace.
        origin: Where it is from.
        summary: Its main figures.
        waited: How long it waited for people, as far as the log shows it.
        people: Who acts and is no machine.
        team: The other agents, as a tree, without warm-ups.
        warm_ups: How many sub-agents only fill caches before the run.
        spawned: Each agent that spawned others, with these.
        unspawned: The agents that nobody is known to have spawned, and that spawned nobody.
        assumed: The numbers of the events whose time nobody saw.
        parallelism: How much happened at once, if open calls worked; None where all is of one instant.
        parallelism_if_waiting: The same if they did nothing but wait.
        path: What its end waited for.
        tokens: Who spent the tokens.
        cost: What it cost.
        problems: What went wrong: failed events, then in the order of the import report.
        between: What went wrong between agents, and where they waited for one another.
    """

    view: TraceView
    origin: Origin
    summary: Summary
    waited: float
    people: frozenset[str]
    team: tuple[AgentSpan, ...]
    warm_ups: int
    spawned: tuple[tuple[str, tuple[AgentSpan, ...]], ...]
    unspawned: tuple[AgentSpan, ...]
    assumed: frozenset[int]
    parallelism: Parallelism | None
    parallelism_if_waiting: Parallelism | None
    path: CriticalPath
    tokens: TokenUse
    cost: Cost
    problems: tuple[Problem, ...]
    between: TeamFindings

    @property
    def is_cut(self) -> bool:
        """Return True if the log is cut off at the end, so that missing events may have happened."""
        return Drop.CUT_OFF in (report_of(self.view.trace) or ImportReport()).dropped


class Match(IntEnum):
    """The quality of a match between a name and a session."""

    NONE = 0
    BEGINNING = 1
    NAME = 2
    FILE = 3
