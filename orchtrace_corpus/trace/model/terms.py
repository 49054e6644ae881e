"""The vocabulary of traces, in a module of its own because the types of `trace` import msgspec, which is slow."""

from enum import StrEnum


class EventType(StrEnum):
    """The type of an event: the ten published types, and `stop` and `inference`."""

    DECISION = "orchestrator_decision"
    SPAWN = "spawn"
    DESPAWN = "despawn"
    MESSAGE = "message"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    RETURN = "return"
    AGGREGATE = "aggregate"
    HUMAN = "human_intervention"
    SAFETY = "safety_event"
    STOP = "stop"
    INFERENCE = "inference"


class EdgeType(StrEnum):
    """The dependency of one event on another."""

    TEMPORAL = "temporal"
    CAUSAL = "causal"
    SPAWN = "spawn"
    MESSAGE = "message"
    TOOL = "tool_dependency"
    RETURN = "return"
    AGGREGATE = "aggregate"
    SAFETY = "safety_flow"


class Topology(StrEnum):
    """The arrangement of the agents."""

    CENTRALIZED = "centralized"
    PLANNER_EXECUTOR_CRITIC = "planner_executor_critic"
    DEBATE = "debate"
    SWARM = "swarm"
    HIERARCHICAL = "hierarchical"
    HARNESS = "harness"
    MIXED = "mixed"
    UNKNOWN = "unknown"


class Decision(StrEnum):
    """The five orchestration sub-decisions, O1 to O5."""

    SPAWN = "spawn"
    DELEGATE = "delegate"
    COMMUNICATE = "communicate"
    AGGREGATE = "aggregate"
    STOP = "stop"


class Unit(StrEnum):
    """The unit of a trace's times. `STEP` is for a trace without times: its times count steps."""

    SECOND = "s"
    MILLISECOND = "ms"
    MICROSECOND = "us"
    NANOSECOND = "ns"
    STEP = "step"


SECONDS = {Unit.SECOND: 1.0, Unit.MILLISECOND: 1e-3, Unit.MICROSECOND: 1e-6, Unit.NANOSECOND: 1e-9, Unit.STEP: 1.0}
"""Seconds in a unit of time. A step counts as 1, so that figures are in steps."""


class TokenBasis(StrEnum):
    """The basis of an event's tokens."""

    REPORTED = "reported"
    DEDUPLICATED = "deduplicated"  # reported on several rows of the log
    CUMULATIVE_DELTA = "cumulative_delta"  # the difference of two totals
    PLACEHOLDER = "placeholder"  # may be too low, or the tokens of several answers
    UNKNOWN = "unknown"


class Status(StrEnum):
    """The outcome of an event."""

    OK = "ok"
    ERROR = "error"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class GateDecision(StrEnum):
    """The decision of a gate on a call, in the words of Inspect AI's approvals."""

    APPROVE = "approve"
    MODIFY = "modify"
    REJECT = "reject"
    ESCALATE = "escalate"
    TERMINATE = "terminate"
    UNKNOWN = "unknown"


class DecidedBy(StrEnum):
    """The decider at a gate: a person, a rule of the configuration, or a model."""

    PERSON = "person"
    RULE = "rule"
    MODEL = "model"
    UNKNOWN = "unknown"


class AgentKind(StrEnum):
    """The kind of an agent."""

    MODEL = "model"
    HUMAN = "human"
    TOOL = "tool"
    UNKNOWN = "unknown"


class Excluded(StrEnum):
    """The time that a stated duration excludes: waits for people, or sleep of the machine."""

    PEOPLE = "people"
    SLEEP = "sleep"


REWARD_FAMILIES = ("shared", "individual", "role", "process", "tool", "debate", "verifier", "orchestration", "hybrid")
"""The reward families; a reward channel may be named after one."""

CREDIT_UNITS = ("token", "turn", "message", "tool", "agent", "role", "orchestrator", "team")
"""The credit units, from the finest to the coarsest; a reward channel may be named after one."""

BASELINE_FIGURES = ("tokens", "wall_clock_s", "turns", "success", "error_rate")
"""The fields of a baseline that are numbers."""

NULLABLE_COSTS = ("tokens", "wall_clock_s")
"""Totals that each trace must state. They are null if unknown."""

KNOWN_COSTS = (*NULLABLE_COSTS, "tool_calls", "messages")
"""Totals that the schema defines. A trace may have other totals, too."""


PARTS = frozenset(("reasoning", "cache_write_1h"))
"""The kinds of tokens that are part of another kind, so that sums leave them out."""
