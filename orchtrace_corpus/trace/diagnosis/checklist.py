"""The items that a paper on orchestrated agents should report, and which of them its traces can reproduce.

Every item rests on columns that a trace has in the tables of a dataset, so runs and datasets are judged alike.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.analysis.marks import Marks
from orchtrace_corpus.trace.dataset.columns import DECISIONS, ROWS, TABLES, Scene
from orchtrace_corpus.trace.measures.measure import ASKED
from orchtrace_corpus.trace.model.terms import Decision, EventType, Status
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:
    from orchtrace_corpus.trace.analysis.outcomes import Outcome

Facts: TypeAlias = Mapping[str, Any]
"""The columns of a trace in the table `traces`, and the counts of its events that `COUNTS` names."""

_ASKED = ", ".join(f"'{kind.value}'" for kind in sorted(ASKED))
COUNTS = {
    "calls": "type = 'tool_call' AND NOT copied_context",
    "messages": "type = 'message' AND NOT copied_context",
    "spawns": "type = 'spawn' AND NOT copied_context",
    "statuses": "type IN ('tool_call', 'tool_result', 'inference') AND status <> 'unknown'",
    "answers": f"type IN ({_ASKED}) AND NOT copied_context",
    "named_answers": f"type IN ({_ASKED}) AND NOT copied_context AND model IS NOT NULL",
}
"""Counts of events by the condition in SQL under which an event counts."""


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


def _always(facts: Facts) -> bool:
    """Return True: every run has it to report."""
    del facts
    return True


class Item(NamedTuple):
    """Something that a paper should report.

    Attributes:
        area: What it is about.
        title: What is reported.
        columns: The columns that it rests on: all of them known is yes, some is partly.
        to_log: What to log, or to give, where it cannot be recomputed.
        applies: Whether a run has anything of it to report.
        judge: Says how far it can be recomputed where columns do not.
        rests_on: What that rests on, in words.
    """

    area: Area
    title: str
    columns: tuple[str, ...]
    to_log: str
    applies: Callable[[Facts], bool] = _always
    judge: Callable[[Facts], Recomputed] | None = None
    rests_on: str = ""


def _has(*names: str) -> Callable[[Facts], Recomputed]:
    """Return a function that judges whether all of some columns say anything."""

    def judge(facts: Facts) -> Recomputed:
        known = [bool(facts[name]) for name in names]
        if all(known):
            return Recomputed.YES
        return Recomputed.PARTLY if any(known) else Recomputed.NO

    return judge


def _with_outcome(facts: Facts) -> Recomputed:
    """Judge credit by the proxy `reach`: a reward, and edges that lead to the result."""
    known = facts["reward_outcome"] is not None, facts["edge_count"] > 0
    if all(known):
        return Recomputed.YES
    return Recomputed.PARTLY if any(known) else Recomputed.NO


def _never(facts: Facts) -> Recomputed:
    """Judge what no trace of one run holds."""
    del facts
    return Recomputed.NO


def _in_group(facts: Facts) -> Recomputed:
    """Judge advantages within a group: other runs of the task, with rewards."""
    if facts["reward_outcome"] is None:
        return Recomputed.NO
    return Recomputed.YES if facts["rewarded_runs_of_task"] > 1 else Recomputed.PARTLY


def _calls(facts: Facts) -> bool:
    return bool(facts["calls"])


def _has_team(facts: Facts) -> bool:
    return (facts["agents"] or 0) > 1


def _has_tainted_effects(facts: Facts) -> bool:
    return facts["tainted_effect_share"] is None or facts["tainted_effect_share"] > 0


def _models(facts: Facts) -> Recomputed:
    """Judge models: each answer names its own, or at least some model is known."""
    if facts["answers"] and facts["named_answers"] == facts["answers"]:
        return Recomputed.YES
    return Recomputed.PARTLY if facts["model"] else Recomputed.NO


def _errors(facts: Facts) -> Recomputed:
    """Judge errors: calls that say how they ended."""
    return Recomputed.YES if facts["statuses"] else Recomputed.NO


def _contained(facts: Facts) -> Recomputed:
    """Judge containment: that effects were not stopped is a result, too."""
    if facts["time_to_containment"] is not None:
        return Recomputed.YES
    return Recomputed.NO if facts["tainted_effect_share"] is None else Recomputed.PARTLY


_R, _C, _P, _M, _S, _E, _D, _T = Area
ITEMS = (
    Item(_R, "outcome of the run", ("reward_outcome",), "the reward or success of the run: --outcomes"),
    Item(_R, "rewards of agents", ("reward_agent_outcomes",), "`reward` of agents, from a check or a judge"),
    Item(_R, "rewards of steps", ("reward_step_outcomes",), "`reward` of events, from a check or a judge"),
    Item(_R, "success of tool calls", ("reward_tool_success",), "`status` of calls and results", _calls),
    Item(
        _C,
        "who was needed",
        (),
        "the outcome, and edges from work to its result",
        judge=_with_outcome,
        rests_on="the outcome, and edges: credit by the proxy `reach`",
    ),
    Item(
        _C,
        "who made the difference",
        (),
        "runs of the task without each agent: credit --values",
        _has_team,
        _never,
        "runs that a trace does not hold: never known",
    ),
    Item(
        _C,
        "advantage within the group",
        (),
        "several runs of one `task_id`, with outcomes",
        judge=_in_group,
        rests_on="outcomes of several runs of one `task_id`",
    ),
    Item(_P, "work, span, parallelism", ("worked", "span", "parallelism"), "`t_end` of every answer and call"),
    Item(_P, "elapsed time, speed-up", ("elapsed", "speed_up"), "`t` and `t_end` of every event"),
    Item(_P, "agents at once", ("width", "max_concurrency"), "`t_end` of calls, and despawns"),
    Item(_P, "critical steps", ("critical_steps",), "edges from spawns to sub-agents and back"),
    Item(
        _P,
        "comparison with one agent",
        ("coordination_overhead", "coordination_efficiency", "error_amplification"),
        "a single agent's run of the task, as `baseline`: --outcomes",
        _has_team,
    ),
    Item(_M, "all tokens", ("tokens",), "usage of every answer, and transcripts of all sub-agents"),
    Item(_M, "model of the tokens", (), "`model` of every answer", judge=_models, rests_on="`model` of answers"),
    Item(_M, "cost", ("cost",), "prices: --cost or --prices when logs are imported"),
    Item(
        _M,
        "tokens of communication",
        ("communication_tokens", "protocol_share"),
        "tokens of messages, spawns and returns",
        lambda facts: bool(facts["messages"]),
    ),
    Item(
        _S,
        "reach of untrusted content",
        ("untrusted_reach",),
        "`trusted` of results, or name tools: --untrusted",
        _calls,
    ),
    Item(
        _S,
        "effects under its influence",
        ("tainted_effect_share",),
        "the same, and tools with side effects: --effectful",
        _calls,
    ),
    Item(
        _S,
        "effects without approval",
        ("unapproved_effects",),
        "granted and refused approvals, as `safety_event` or `human_intervention`",
        lambda facts: _calls(facts) and _has_tainted_effects(facts),
    ),
    Item(_S, "gates before side effects", ("gate_coverage",), "every decision of a gate, passed ones too", _calls),
    Item(
        _S,
        "time to containment",
        ("time_to_containment",),
        "`trusted` of results, and refusals and stops with their times",
        lambda facts: _calls(facts) and _has_tainted_effects(facts),
        _contained,
    ),
    Item(
        _E,
        "stopping decisions",
        (),
        "`stop` events, with who decided",
        judge=_has(DECISIONS[Decision.STOP]),
        rests_on="`o5_stop`",
    ),
    Item(_E, "steps after the result", ("stop_regret",), "returns or aggregates, which say when the result stood"),
    Item(_E, "regret of the last outcome", ("reward_regret",), "outcomes of earlier attempts: `reward` of events"),
    Item(
        _D,
        "spawns and delegation",
        ("delegation_depth", "fan_out"),
        "`spawn` events with parent and child",
        lambda facts: bool(facts["spawns"]),
    ),
    Item(
        _D,
        "errors and how they spread",
        (),
        "`status` of calls, answers and results",
        judge=_errors,
        rests_on="`status` of calls and answers",
    ),
    Item(_D, "repeated calls", ("duplicate_call_rate",), "`content_ref` of calls: a hash of the arguments", _calls),
    Item(
        _T,
        "program and version",
        (),
        "`system`, and `version` of the source",
        judge=_has("system", "version"),
        rests_on="`system`, `version`",
    ),
    Item(_T, "date", (), "`clock.epoch`", judge=_has("epoch"), rests_on="`epoch`"),
)
"""The checklist, in the order in which it is shown."""


_OTHERS = (
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
_NAMES = [column.name for column in TABLES["traces"]]
COLUMNS = tuple(
    name for name in _NAMES if name in _OTHERS or any(name.removesuffix("_at_least") in item.columns for item in ITEMS)
)
"""The columns of the table `traces` that facts have, besides `refused`."""


class Finding(NamedTuple):
    """The extent to which an item can be recomputed from one trace.

    Attributes:
        recomputed: How far.
        reason: Why not, or not all of it, as the measure says; empty where it says nothing.
    """

    recomputed: Recomputed
    reason: str = ""


def facts_of(marks: Marks, outcome: "Outcome | None", view: TraceView) -> dict[str, Any]:
    """Return the facts of a run. Workers import it from here, without Typer.

    Args:
        marks: Which tools are untrusted or have side effects, as far as the user says.
        outcome: How the run ended, if that is said elsewhere.
        view: The run.

    Raises:
        CycleError: The edges go round in a circle.
    """
    if outcome is not None:
        outcome.apply(view.trace)
    marks.apply(view.trace)
    (row,) = ROWS["traces"](Scene(view, view.trace.trace_id, 0))
    known = dict(zip(_NAMES, row, strict=True))
    events = view.trace.events
    own = Counter(event.type for event in events if not event.copied_context)
    asked = (EventType.TOOL_CALL, EventType.TOOL_RESULT, EventType.INFERENCE)
    return {
        **{name: known[name] for name in COLUMNS},
        "refused": needed_reasons(known["refused"]),
        "calls": own[EventType.TOOL_CALL],
        "messages": own[EventType.MESSAGE],
        "spawns": own[EventType.SPAWN],
        "answers": sum(own[kind] for kind in ASKED),
        "named_answers": sum(
            event.type in ASKED and bool(event.model) and not event.copied_context for event in events
        ),
        "statuses": sum(event.type in asked and event.status is not Status.UNKNOWN for event in events),
    }


def needed_reasons(refused: Mapping[str, str]) -> dict[str, str]:
    """Return why the columns that facts have are null."""
    return {name: reason for name, reason in refused.items() if name in COLUMNS}


def judge(item: Item, facts: Facts) -> Finding:
    """Judge how far an item can be recomputed from a trace."""
    if not item.applies(facts):
        return Finding(Recomputed.NOT_APPLICABLE)
    refused = facts["refused"]
    lacking = [name for name in item.columns if facts[name] is None]
    reason = next((str(refused[name]) for name in lacking if name in refused), "")
    if item.judge is not None:
        recomputed = item.judge(facts)
        return Finding(recomputed, "" if recomputed is Recomputed.YES else reason)
    if not lacking:
        return Finding(Recomputed.YES)
    is_partly = len(lacking) < len(item.columns) or any(facts.get(f"{name}_at_least") is not None for name in lacking)
    return Finding(Recomputed.PARTLY if is_partly else Recomputed.NO, reason)


class Checked(NamedTuple):
    """An item over some traces.

    Attributes:
        item: The item.
        counts: From how many traces it can be recomputed how far.
        reasons: Why not, each with the number of traces, most first.
    """

    item: Item
    counts: Mapping[Recomputed, int]
    reasons: tuple[tuple[str, int], ...]

    @property
    def is_lacking(self) -> bool:
        """Return True if some trace is not enough to recompute the item in full."""
        return bool(self.counts[Recomputed.NO] or self.counts[Recomputed.PARTLY])

    @property
    def whole(self) -> Recomputed:
        """Return the extent to which all traces together suffice."""
        told = {kind for kind, number in self.counts.items() if number} - {Recomputed.NOT_APPLICABLE}
        if not told:
            return Recomputed.NOT_APPLICABLE
        return told.pop() if len(told) == 1 else Recomputed.PARTLY


def check(traces: Iterable[Facts]) -> list[Checked]:
    """Judge every item over some traces."""
    known: Sequence[Facts] = list(traces)
    runs = Counter(facts["task_id"] for facts in known if facts["reward_outcome"] is not None)
    findings = [[judge(item, {**facts, "rewarded_runs_of_task": runs[facts["task_id"]]}) for item in ITEMS]
                for facts in known]  # fmt: skip
    found = []
    for item, of_item in zip(ITEMS, zip(*findings, strict=True), strict=True):
        reasons = Counter(finding.reason for finding in of_item if finding.reason)
        counts = Counter(finding.recomputed for finding in of_item)
        ordered = sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
        found.append(Checked(item, {kind: counts[kind] for kind in Recomputed}, tuple(ordered)))
    return found
