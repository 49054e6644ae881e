"""The values that make up a diagnosis."""

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
        form: The kind of file that the run was read from, such as the name of a log format.
        file: The file in which the run begins, relative to the given folder.
        has_prices: True if costs are known or were requested.
        answers: The ids of its answers by the indices of their events, if the log has ids.
        folder: The folder in which the agents worked; empty if it is unknown.
    """

    form: str = "Trace"
    file: str = ""
    has_prices: bool = False
    answers: Mapping[int, str] = {}
    folder: str = ""


class Summary(NamedTuple):
    """The main figures of a run, for a list of runs.

    Attributes:
        name: The name of the run.
        day: The day on which it began; empty if it is unknown.
        agents: The number of agents that acted, without people.
        events: The number of events.
        elapsed: The elapsed time, without waits for people.
        unit: The unit of `elapsed`, `s` or `step`; empty for the sum of several runs.
        errors: The number of failed events.
        tokens: The known tokens; None if none are known.
        cost_usd: The known cost; None if none is known.
        has_more_tokens: True if `tokens` is only a lower bound.
        costs_more: True if `cost_usd` is only a lower bound.
        file: The file in which the run begins; it distinguishes sessions of one name.
        files: The number of files that its events come from.
        folder: The folder in which the agents worked; empty if it is unknown.
        first_words: The beginning of its first prompt; empty if the trace holds no contents.
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
        max_concurrency: The largest number of events that were worked on at once.
        parallel_share: The share of the elapsed time in which several events were worked on.
        single_share: The share of the elapsed time in which exactly one event was worked on.
        idle_share: The share of the elapsed time in which no event was worked on.
        worked: The sum of the working times of all events, in the unit of the run.
        tools: The part of `worked` that tool calls took.
        assumed: The part of `worked` that is the assumed time of agents without records.
        open: The part of `worked` that open calls took, which perhaps only waited; 0 if they count as waits.
    """

    max_concurrency: int
    parallel_share: float
    single_share: float
    idle_share: float
    worked: float
    tools: float
    assumed: float
    open: float


class Activity(StrEnum):
    """The activity in a stretch of the critical path."""

    MODEL = "model"
    TOOL = "tool"
    OPEN = "perhaps waiting"  # an open tool call
    OPEN_MODEL = "model, perhaps waiting"  # an open model call
    ASSUMED = "assumed"  # the assumed time of an agent without records
    GAP = "gap"  # no event of the path runs, but other agents work
    IDLE = "idle"  # no agent works
    FINDING = "finding"  # all findings of one kind, for a lever


class Stretch(NamedTuple):
    """A part of the critical path in which one agent works, or a gap in which no event of the path runs.

    Attributes:
        agent: The agent; empty for a gap.
        seconds: The duration.
        activity: The activity that takes most of the duration.
        tool: The tool of that activity; empty if its name is unknown, and for activities without a tool.
        is_mixed: True if other activities take a part of the duration.
        workers: For a gap, the agents that work meanwhile, but not on the path.
        worked: The part of the gap in which at least one of the workers works.
    """

    agent: str
    seconds: float
    activity: Activity
    tool: str
    is_mixed: bool
    workers: tuple[str, ...] = ()
    worked: float = 0.0


class WorkPath(NamedTuple):
    """The path of dependent events with the most work, called the span: without any waiting, the run takes as long.

    Attributes:
        length: The sum of the work on the path, which is also the sum of its stretches.
        events: The indices of its events, first to last.
        stretches: The path divided by agent.
    """

    length: float
    events: tuple[int, ...]
    stretches: tuple[Stretch, ...]


class CriticalPath(NamedTuple):
    """The chain of events that the end of a run waited for.

    Attributes:
        chain: The events on the path with their durations, and the gaps between them.
        stretches: The path divided by agent, without small gaps.
        small_gaps: The sum of the small gaps.
        idle: The part of all gaps in which no agent works.
        span: The path with the most work if open calls count as work. It may be another path than this one.
        span_if_waiting: The path with the most work if open calls count as waits.
        unknown: The number of working events whose duration is unknown; they count as 0 s.
    """

    chain: Chain
    stretches: tuple[Stretch, ...]
    small_gaps: float
    idle: float
    span: WorkPath
    span_if_waiting: WorkPath
    unknown: int


class TokenUse(NamedTuple):
    """The known tokens of a run.

    Attributes:
        known: The sum of the known tokens; None if none are known.
        is_lower_bound: True if `known` is only a lower bound.
        by_kind: The known tokens by kind: input, output, cache reads and cache writes.
        by_model: Tokens by model, most first; the name is empty for events that name no model.
        by_agent: Tokens by agent, in the order of the agent tree.
        agents_with_unknown_tokens: The agents that spent more tokens than are known.
        reason: The reason that the trace states why it gives no total; empty if it gives a total.
        missing: If the trace gives a total, the number of records without tokens, by kind of record.
        unsure: Descriptions of the records that may have more tokens than were counted.
        repeated: The number of records that repeat others, and the tokens that they would have added.
        max_hidden: The largest number of tokens that answers outside the log may have; 0 if the log mentions none.
    """

    known: float | None
    is_lower_bound: bool
    by_kind: Mapping[str, float]
    by_model: tuple[tuple[str, float], ...]
    by_agent: tuple[tuple[str, float], ...]
    agents_with_unknown_tokens: frozenset[str]
    reason: str
    missing: Mapping[str, int]
    unsure: tuple[str, ...]
    repeated: tuple[int, float]
    max_hidden: float = 0.0


class Cost(NamedTuple):
    """The known cost of a run in US dollars.

    Attributes:
        by_agent: Costs by agent, highest first; empty if none is known.
        is_lower_bound: True if the costs are only lower bounds.
        date: The day of the prices; empty if the trace states the costs.
        last_day: The last day of the run; empty if it is unknown.
        unpriced_models: The models of events without a cost.
        unused_models: The models of the price table that the run does not use.
        source: The package with the prices; empty if the user gave a table, or the trace states the costs.
        by_model: Costs by model, highest first.
        by_tool: Costs by tool, highest first; see `measures.ledger.cost_by_tool`.
        stated: The cost that the log states, if the other costs are computed from prices; None if it states none.
        has_all_stated: True if the log states the cost of every answer.
        without_hour: The models without a price for caches that are kept for an hour.
    """

    by_agent: tuple[tuple[str, float], ...]
    is_lower_bound: bool
    date: str
    last_day: str
    unpriced_models: tuple[str, ...]
    unused_models: tuple[str, ...]
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
    """Something that went wrong one or more times.

    Attributes:
        kind: The kind of the problem.
        occurrences: How many times it occurred.
        text: For a problem of the import, its name in the import report; else empty.
        place: The place of its first occurrence: `file:line` of the log, or else the place that the import report
            gives.
        event: For failed events, the first of them; else None.
    """

    kind: ProblemKind
    occurrences: int
    text: str = ""
    place: str = ""
    event: Event | None = None


class Diagnosis(NamedTuple):
    """The diagnosis of a run: its time and its money. Times exclude waits for people, in the unit of the summary.

    Attributes:
        view: The trace.
        origin: The log it comes from.
        summary: The main figures.
        waited: The time that the run waited for people, as far as the log shows it.
        people: The agents that are people.
        team: The other agents in tree order, without those that only warm up caches.
        warm_ups: The number of sub-agents that only warm up caches before the run.
        children: Each agent that spawned others, with the agents that it spawned.
        lone_agents: The agents without a known parent that spawned no agent.
        assumed_events: The indices of the events whose duration is assumed, since their agent has no records.
        parallelism: The parallelism if open calls count as work; None if the run took no time.
        parallelism_if_waiting: The parallelism if open calls count as waits; None if the run took no time.
        path: The critical path.
        tokens: The tokens, by model and agent.
        cost: The cost, by agent, model and tool.
        problems: The problems: failed events first, then the problems of the import report.
        team_findings: The problems between agents, and their waits for one another.
    """

    view: TraceView
    origin: Origin
    summary: Summary
    waited: float
    people: frozenset[str]
    team: tuple[AgentSpan, ...]
    warm_ups: int
    children: tuple[tuple[str, tuple[AgentSpan, ...]], ...]
    lone_agents: tuple[AgentSpan, ...]
    assumed_events: frozenset[int]
    parallelism: Parallelism | None
    parallelism_if_waiting: Parallelism | None
    path: CriticalPath
    tokens: TokenUse
    cost: Cost
    problems: tuple[Problem, ...]
    team_findings: TeamFindings

    @property
    def is_cut(self) -> bool:
        """True if the log is cut off at the end, so that later events are missing."""
        report = report_of(self.view.trace) or ImportReport()
        return Drop.CUT_OFF in report.dropped


class Match(IntEnum):
    """The quality of a match between a name that a user gave and a session; a higher value is a better match."""

    NONE = 0
    BEGINNING = 1  # the name is the beginning of the session's name
    NAME = 2  # the name is the session's name
    FILE = 3  # the name is the path of the session's file
