"""The items that a paper on orchestrated agents should report, and how far traces suffice to compute them.

An item is judged by columns of a dataset's table `traces`, so a single run and a dataset are judged in the same way.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.analysis.marks import Marks
from orchtrace_corpus.trace.dataset.columns import DECISIONS, ROWS, TABLES, RowContext
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES
from orchtrace_corpus.trace.model.terms import Decision, EventType, Status
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:
    from orchtrace_corpus.trace.analysis.outcomes import Outcome

Facts: TypeAlias = Mapping[str, Any]
"""The columns of a trace in the table `traces`, and the numbers of its events that `COUNTS` names."""

_SQL_ANSWER_TYPES = ", ".join(f"'{kind.value}'" for kind in sorted(ANSWER_TYPES))
COUNTS = {
    "calls": "type = 'tool_call' AND NOT copied_context",
    "messages": "type = 'message' AND NOT copied_context",
    "spawns": "type = 'spawn' AND NOT copied_context",
    "statuses": "type IN ('tool_call', 'tool_result', 'inference') AND status <> 'unknown'",
    "answers": f"type IN ({_SQL_ANSWER_TYPES}) AND NOT copied_context",
    "named_answers": f"type IN ({_SQL_ANSWER_TYPES}) AND NOT copied_context AND model IS NOT NULL",
}
"""For each number of events, the condition in SQL under which an event of a dataset counts.

`facts_of` counts the same events of a single run.
"""


class Area(StrEnum):
    """The subject of an item."""

    REWARD = "reward"
    CREDIT = "credit"
    PARALLELISM = "parallelism"
    COST = "cost"
    SAFETY = "safety"
    STOPPING = "stopping"
    DECISIONS = "decisions"
    SETTING = "setting"


class Recomputed(StrEnum):
    """The extent to which an item can be recomputed."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"
    NOT_APPLICABLE = "n/a"


def _always(facts: Facts) -> bool:  # noqa: ARG001  (the default of `Item.applies`)
    return True


class Item(NamedTuple):
    """Something that a paper should report.

    Attributes:
        area: Its subject.
        title: Its name.
        columns: The columns that it needs: the item can be recomputed if all are known, partly if some are.
        to_log: What to log or to pass as an option so that the item can be recomputed.
        applies: Returns True if a run has anything to report here.
        judge: Returns how far the item can be recomputed; None if `columns` decides.
        rests_on: The data that `judge` looks at, in words.
    """

    area: Area
    title: str
    columns: tuple[str, ...]
    to_log: str
    applies: Callable[[Facts], bool] = _always
    judge: Callable[[Facts], Recomputed] | None = None
    rests_on: str = ""


def _has(*names: str) -> Callable[[Facts], Recomputed]:
    """Return a judge: yes if all the named facts have values other than 0, partly if some have, else no."""
    return lambda facts: _extent([bool(facts[name]) for name in names])


def _extent(are_available: Sequence[bool]) -> Recomputed:
    """Return yes if all needed data are available, partly if some are, else no."""
    if all(are_available):
        return Recomputed.YES
    return Recomputed.PARTLY if any(are_available) else Recomputed.NO


def _credit_by_reach(facts: Facts) -> Recomputed:
    """Judge credit by the proxy `reach`, which needs the outcome of the run and edges."""
    return _extent([facts["reward_outcome"] is not None, facts["edge_count"] > 0])


def _group_advantage(facts: Facts) -> Recomputed:
    """Judge the advantage within a group, which needs the rewards of other runs of the same task."""
    if facts["reward_outcome"] is None:
        return Recomputed.NO
    return Recomputed.YES if facts["rewarded_runs_of_task"] > 1 else Recomputed.PARTLY


def _has_calls(facts: Facts) -> bool:
    return bool(facts["calls"])


def _has_messages(facts: Facts) -> bool:
    return bool(facts["messages"])


def _has_spawns(facts: Facts) -> bool:
    return bool(facts["spawns"])


def _has_several_agents(facts: Facts) -> bool:
    return (facts["agents"] or 0) > 1


def _may_have_tainted_effects(facts: Facts) -> bool:
    """Return True if calls that untrusted content influenced may have had side effects."""
    if not _has_calls(facts):
        return False
    return facts["tainted_effect_share"] is None or facts["tainted_effect_share"] > 0


def _models(facts: Facts) -> Recomputed:
    """Judge the models: yes if every answer names its model, partly if any model is known."""
    if facts["answers"] and facts["named_answers"] == facts["answers"]:
        return Recomputed.YES
    return Recomputed.PARTLY if facts["model"] else Recomputed.NO


def _containment(facts: Facts) -> Recomputed:
    """Judge the time to containment: partly if tainted effects are known but no time is."""
    if facts["time_to_containment"] is not None:
        return Recomputed.YES
    return Recomputed.NO if facts["tainted_effect_share"] is None else Recomputed.PARTLY


def _never(facts: Facts) -> Recomputed:  # noqa: ARG001  (all judges take the facts)
    return Recomputed.NO


# Each begins with its area, title, columns, and what to log.
ITEMS = (
    Item(Area.REWARD, "outcome of the run", ("reward_outcome",), "the reward or success of the run: --outcomes"),
    Item(Area.REWARD, "rewards of agents", ("reward_agent_outcomes",), "`reward` of agents, from a check or a judge"),
    Item(Area.REWARD, "rewards of steps", ("reward_step_outcomes",), "`reward` of events, from a check or a judge"),
    Item(
        Area.REWARD,
        "success of tool calls",
        ("reward_tool_success",),
        "`status` of calls and results",
        applies=_has_calls,
    ),
    Item(
        Area.CREDIT,
        "who was needed",
        (),
        "the outcome, and edges from work to its result",
        judge=_credit_by_reach,
        rests_on="the outcome, and edges: credit by the proxy `reach`",
    ),
    Item(
        Area.CREDIT,
        "who made the difference",
        (),
        "runs of the task without each agent: credit --values",
        applies=_has_several_agents,
        judge=_never,
        rests_on="runs that a trace does not hold: never known",
    ),
    Item(
        Area.CREDIT,
        "advantage within the group",
        (),
        "several runs of one `task_id`, with outcomes",
        judge=_group_advantage,
        rests_on="outcomes of several runs of one `task_id`",
    ),
    Item(
        Area.PARALLELISM,
        "work, span, parallelism",
        ("worked", "span", "parallelism"),
        "`t_end` of every answer and call",
    ),
    Item(Area.PARALLELISM, "elapsed time, speed-up", ("elapsed", "speed_up"), "`t` and `t_end` of every event"),
    Item(Area.PARALLELISM, "agents at once", ("width", "max_concurrency"), "`t_end` of calls, and despawns"),
    Item(Area.PARALLELISM, "critical steps", ("critical_steps",), "edges from spawns to sub-agents and back"),
    Item(
        Area.PARALLELISM,
        "comparison with one agent",
        ("coordination_overhead", "coordination_efficiency", "error_amplification"),
        "a single agent's run of the task, as `baseline`: --outcomes",
        applies=_has_several_agents,
    ),
    Item(Area.COST, "all tokens", ("tokens",), "usage of every answer, and transcripts of all sub-agents"),
    Item(
        Area.COST,
        "model of the tokens",
        (),
        "`model` of every answer",
        judge=_models,
        rests_on="`model` of answers",
    ),
    Item(Area.COST, "cost", ("cost",), "prices: --cost or --prices when logs are imported"),
    Item(
        Area.COST,
        "tokens of communication",
        ("communication_tokens", "protocol_share"),
        "tokens of messages, spawns and returns",
        applies=_has_messages,
    ),
    Item(
        Area.SAFETY,
        "reach of untrusted content",
        ("untrusted_reach",),
        "`trusted` of results, or name tools: --untrusted",
        applies=_has_calls,
    ),
    Item(
        Area.SAFETY,
        "effects under its influence",
        ("tainted_effect_share",),
        "the same, and tools with side effects: --effectful",
        applies=_has_calls,
    ),
    Item(
        Area.SAFETY,
        "effects without approval",
        ("unapproved_effects",),
        "granted and refused approvals, as `safety_event` or `human_intervention`",
        applies=_may_have_tainted_effects,
    ),
    Item(
        Area.SAFETY,
        "gates before side effects",
        ("gate_coverage",),
        "every decision of a gate, passed ones too",
        applies=_has_calls,
    ),
    Item(
        Area.SAFETY,
        "time to containment",
        ("time_to_containment",),
        "`trusted` of results, and refusals and stops with their times",
        applies=_may_have_tainted_effects,
        judge=_containment,
    ),
    Item(
        Area.STOPPING,
        "stopping decisions",
        (),
        "`stop` events, with who decided",
        judge=_has(DECISIONS[Decision.STOP]),
        rests_on="`o5_stop`",
    ),
    Item(
        Area.STOPPING,
        "steps after the result",
        ("stop_regret",),
        "returns or aggregates, which say when the result stood",
    ),
    Item(
        Area.STOPPING,
        "regret of the last outcome",
        ("reward_regret",),
        "outcomes of earlier attempts: `reward` of events",
    ),
    Item(
        Area.DECISIONS,
        "spawns and delegation",
        ("delegation_depth", "fan_out"),
        "`spawn` events with parent and child",
        applies=_has_spawns,
    ),
    Item(
        Area.DECISIONS,
        "errors and how they spread",
        (),
        "`status` of calls, answers and results",
        judge=_has("statuses"),
        rests_on="`status` of calls and answers",
    ),
    Item(
        Area.DECISIONS,
        "repeated calls",
        ("duplicate_call_rate",),
        "`content_ref` of calls: a hash of the arguments",
        applies=_has_calls,
    ),
    Item(
        Area.SETTING,
        "program and version",
        (),
        "`system`, and `version` of the source",
        judge=_has("system", "version"),
        rests_on="`system`, `version`",
    ),
    Item(Area.SETTING, "date", (), "`clock.epoch`", judge=_has("epoch"), rests_on="`epoch`"),
)
"""The checklist, in the order of the report."""


_JUDGED_COLUMNS = (
    "trace_id",
    "task_id",
    "edge_count",
    "agents",
    "model",
    "system",
    "version",
    "epoch",
    DECISIONS[Decision.STOP],
)
"""The columns that are needed for the task of a trace, and by judges and `applies`."""

_NEEDED_COLUMNS = {name for item in ITEMS for name in item.columns}
_TRACE_COLUMNS = [column.name for column in TABLES["traces"]]
COLUMNS = tuple(
    name for name in _TRACE_COLUMNS if name in _JUDGED_COLUMNS or name.removesuffix("_at_least") in _NEEDED_COLUMNS
)
"""The columns of the table `traces` that `Facts` has, besides `refused`: also the lower bounds of needed columns."""


class Judgement(NamedTuple):
    """The extent to which an item can be recomputed from one trace.

    Attributes:
        recomputed: The extent.
        reason: The reason why the item is incomplete, from the measure of a missing column; empty if there is none.
    """

    recomputed: Recomputed
    reason: str = ""


def facts_of(marks: Marks, outcome: "Outcome | None", view: TraceView) -> dict[str, Any]:
    """Return the facts of a run.

    Args:
        marks: The tools that the user names as untrusted or as having side effects.
        outcome: The outcome of the run, if a separate file states it.
        view: The run.

    Raises:
        CycleError: The edges form a cycle.
    """
    if outcome is not None:
        outcome.apply(view.trace)
    marks.apply(view.trace)
    (row,) = ROWS["traces"](RowContext(view, view.trace.trace_id, 0))
    value_by_column = dict(zip(_TRACE_COLUMNS, row, strict=True))
    events = [event for event in view.trace.events if not event.copied_context]
    counts = Counter(event.type for event in events)
    named_answers = [event for event in events if event.type in ANSWER_TYPES and event.model]
    call_types = (EventType.TOOL_CALL, EventType.TOOL_RESULT, EventType.INFERENCE)
    statuses = 0
    for event in view.trace.events:  # copied context too, as in `COUNTS`
        if event.type in call_types and event.status is not Status.UNKNOWN:
            statuses += 1
    return {
        **{name: value_by_column[name] for name in COLUMNS},
        "refused": needed_reasons(value_by_column["refused"]),
        "calls": counts[EventType.TOOL_CALL],
        "messages": counts[EventType.MESSAGE],
        "spawns": counts[EventType.SPAWN],
        "answers": sum(counts[kind] for kind in ANSWER_TYPES),
        "named_answers": len(named_answers),
        "statuses": statuses,
    }


def needed_reasons(refused: Mapping[str, str]) -> dict[str, str]:
    """Return the reasons why columns are unknown, for the columns that `Facts` has."""
    return {name: reason for name, reason in refused.items() if name in COLUMNS}


def judge(item: Item, facts: Facts) -> Judgement:
    """Judge how far an item can be recomputed from a trace."""
    if not item.applies(facts):
        return Judgement(Recomputed.NOT_APPLICABLE)
    refused = facts["refused"]
    missing = [name for name in item.columns if facts[name] is None]
    reasons = [str(refused[name]) for name in missing if name in refused]
    reason = reasons[0] if reasons else ""
    if item.judge is not None:
        recomputed = item.judge(facts)
        return Judgement(recomputed, "" if recomputed is Recomputed.YES else reason)
    if not missing:
        return Judgement(Recomputed.YES)
    has_bounds = any(facts.get(f"{name}_at_least") is not None for name in missing)
    if has_bounds or len(missing) < len(item.columns):
        return Judgement(Recomputed.PARTLY, reason)
    return Judgement(Recomputed.NO, reason)


class CheckedItem(NamedTuple):
    """An item judged over several traces.

    Attributes:
        item: The item.
        counts: The number of traces by extent.
        reasons: The reasons why the item is incomplete, each with its number of traces, most frequent first.
    """

    item: Item
    counts: Mapping[Recomputed, int]
    reasons: tuple[tuple[str, int], ...]

    @property
    def is_incomplete(self) -> bool:
        """True if there is a trace from which the item cannot be fully recomputed."""
        return bool(self.counts[Recomputed.NO] or self.counts[Recomputed.PARTLY])

    @property
    def overall(self) -> Recomputed:
        """The extent over all traces to which the item applies; partly if they differ."""
        extents = {extent for extent, count in self.counts.items() if count}
        extents.discard(Recomputed.NOT_APPLICABLE)
        if not extents:
            return Recomputed.NOT_APPLICABLE
        return extents.pop() if len(extents) == 1 else Recomputed.PARTLY


def check(facts_of_traces: Iterable[Facts]) -> list[CheckedItem]:
    """Judge every item over several traces."""
    all_facts = list(facts_of_traces)
    rewarded_runs = Counter(facts["task_id"] for facts in all_facts if facts["reward_outcome"] is not None)
    all_facts = [{**facts, "rewarded_runs_of_task": rewarded_runs[facts["task_id"]]} for facts in all_facts]
    checked = []
    for item in ITEMS:
        judgements = [judge(item, facts) for facts in all_facts]
        counts = Counter(judgement.recomputed for judgement in judgements)
        reasons = Counter(judgement.reason for judgement in judgements if judgement.reason)
        most_frequent_first = sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
        checked.append(CheckedItem(item, {extent: counts[extent] for extent in Recomputed}, tuple(most_frequent_first)))
    return checked
