"""A trace as typed values, decoded directly from JSON.

The types accept exactly what `schema.json` accepts; a test compares both on mutated traces. An absent text is empty. An
absent or null number is None: unknown, never 0.
"""

from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import astuple

from orchtrace_corpus.trace.model.terms import (
    KNOWN_COSTS,
    NULLABLE_COSTS,
    AgentKind,
    DecidedBy,
    Decision,
    EdgeType,
    EventType,
    Excluded,
    GateDecision,
    Status,
    TokenBasis,
    Topology,
    Unit,
)

Name: TypeAlias = Annotated[str, Meta(min_length=1)]
Amount: TypeAlias = Annotated[float, Meta(ge=0)]
# JSON Schema accepts 1.0 as an integer; msgspec does not, hence the union with float.
Whole: TypeAlias = Annotated[int, Meta(ge=0, le=2**53 - 1)] | Annotated[float, Meta(ge=0, le=2**53 - 1, multiple_of=1)]


class Tokens(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Tokens of one event by kind. `reasoning` is a part of `output`, `cache_write_1h` of `cache_write`."""

    input: Whole | None = None
    output: Whole | None = None
    cache_read: Whole | None = None
    cache_write: Whole | None = None
    reasoning: Whole | None = None
    cache_write_1h: Whole | None = None

    @property
    def is_known(self) -> bool:
        """Return True if a kind of tokens that counts in the total of the event is known."""
        return not (self.input is self.output is self.cache_read is self.cache_write is None)


class Source(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """The place of an event in the log that it was imported from."""

    file: str = ""
    line: Whole | None = None
    format: str = ""
    version: str = ""


class TokenRefs(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """References to the token ids of an event and to their log-probabilities, in other files."""

    input_ids: str = ""
    output_ids: str = ""
    logprobs: str = ""


class Event(Struct, omit_defaults=True, gc=False):
    """Something that happened at one time to one agent; `schema.json` describes each field.

    Times are in the unit of the trace's clock. The JSON fields `from` and `to` are `sender` and `target`.
    """

    id: Name
    t: Amount
    type: EventType
    agent: Name
    role: str = ""
    sender: str = field(default="", name="from")
    target: str = field(default="", name="to")
    tool: str = ""
    content_ref: str = ""
    trusted: bool | UnsetType = UNSET
    t_end: Amount | None = None
    seq: Whole | None = None
    call_id: str = ""
    parent_agent: str = ""
    model: str = ""
    tokens: Tokens | UnsetType = UNSET
    token_basis: TokenBasis | UnsetType = UNSET
    cost_usd: Amount | None = None
    status: Status = Status.UNKNOWN
    error_type: str = ""
    copied_context: bool = False
    warm_up: bool = False
    inferred: bool = False
    sub_decisions: tuple[Decision, ...] = ()
    sub_decision_rules: dict[Decision, str] | UnsetType = UNSET
    source: Source | UnsetType = UNSET
    reward: float | None = None
    finish_reason: str = ""
    t_request: Amount | None = None
    t_first_token: Amount | None = None
    run_time: Amount | None = None
    background: bool = False
    unfinished: bool = False
    token_refs: TokenRefs | UnsetType = UNSET
    decision: GateDecision = GateDecision.UNKNOWN
    decided_by: DecidedBy = DecidedBy.UNKNOWN
    subtask: str = ""


class Edge(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One event depends on another."""

    src: Name
    dst: Name
    type: EdgeType


class Agent(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An agent of the run, with facts that its events do not contain."""

    id: Name
    role: str = ""
    model: str = ""
    parent: str = ""
    kind: AgentKind = AgentKind.UNKNOWN
    reward: float | None = None


class Run(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The run of a training or an evaluation that a trace records."""

    group: str = ""
    attempt: Whole | None = None
    seed: str = ""
    checkpoint: str = ""


class Turn(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A turn of an agent whose duration the log states.

    The turn lasted from `t` to `t_end`; `run_time` is its duration without the time that `excludes` names: waits for
    people, or sleep of the machine.
    """

    agent: Name
    t: Amount
    t_end: Amount
    run_time: Amount
    excludes: Excluded = Excluded.PEOPLE


class Clock(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The meaning of the times of a trace. An edge may go back in time by at most `skew`."""

    unit: Unit = Unit.SECOND
    epoch: str | None = None  # the date and time at which the times are 0
    skew: Amount = 0.0


class Baseline(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A run of a single agent on the same task, for comparison."""

    trace_id: str = ""
    source: str = ""
    tokens: Amount | None = None
    wall_clock_s: Amount | None = None
    turns: Amount | None = None
    success: Annotated[float, Meta(ge=0, le=1)] | None = None
    error_rate: Amount | None = None


class Trace(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One run of a team of agents as a temporal graph.

    `costs` holds `tokens` and `wall_clock_s`, each a number or None for unknown, and further totals.
    """

    trace_id: Name
    task_id: Name
    events: Annotated[list[Event], Meta(min_length=1)]
    edges: list[Edge]
    rewards: dict[str, float]
    costs: dict[str, float | None]
    schema: str = field(default="", name="$schema")
    system: str = ""
    topology: Topology = Topology.UNKNOWN
    clock: Clock = field(default_factory=Clock)
    agents: tuple[Agent, ...] = ()
    turns: tuple[Turn, ...] = ()
    metrics: dict[str, float | None] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    excluded_human_wait_s: Amount | None = None
    baseline: Baseline | UnsetType = UNSET
    run: Run | UnsetType = UNSET
    effectful_tools: tuple[str, ...] | UnsetType = UNSET
    subtasks: tuple[str, ...] = ()
    import_report: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the rules for `costs` that its type cannot express.

        Raises:
            ValueError: A total is missing, negative, or null although only two may be unknown.
        """
        for name in NULLABLE_COSTS:
            if name not in self.costs:
                raise ValueError(f"Object missing required field `costs.{name}`")
        for name, value in self.costs.items():
            if value is None and name not in NULLABLE_COSTS:
                raise ValueError(f"`costs.{name}` is null")
            if value is not None and value < 0 and name in KNOWN_COSTS:
                raise ValueError(f"`costs.{name}` is below 0")


_KINDS = Tokens.__struct_fields__


def by_kind(tokens: Tokens) -> dict[str, float]:
    """Return the tokens of an event by kind, without unknown kinds."""
    return {kind: count for kind, count in zip(_KINDS, astuple(tokens), strict=True) if count is not None}
