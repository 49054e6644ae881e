"""Read small traces without msgspec, whose import takes longer than checking all example traces of a corpus.

Only the members that the examples use are supported. `decode` reads every other trace, and reports errors. A test
compares both readers on mutated traces.

Each function from `_text` to `_object` returns a JSON value as the trace has it, or raises ValueError if it is invalid.
"""

from collections.abc import Callable, Mapping
from json import loads
from types import MappingProxyType, SimpleNamespace

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any, cast
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.model.terms import (
    KNOWN_COSTS,
    NULLABLE_COSTS,
    AgentKind,
    DecidedBy,
    EdgeType,
    EventType,
    GateDecision,
    Status,
    TokenBasis,
    Topology,
    Unit,
)

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

MAX_BYTES = 100_000
"""The size of the largest file that is read here; for larger files, msgspec is faster even with its import."""

_LARGEST = 1e300  # larger numbers are left to `decode`
_MAX_WHOLE = 2**53 - 1  # the largest integer that all JSON readers keep exact
_ATTRIBUTES = {"from": "sender", "to": "target", "$schema": "schema"}
"""The attributes of a trace, event or edge whose names differ from the JSON members."""


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    raise ValueError


def _name(value: Any) -> str:
    if type(value) is str and value:
        return value
    raise ValueError


def _flag(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise ValueError


def _figure(value: Any) -> float:
    if type(value) in (int, float) and -_LARGEST < value < _LARGEST:
        return float(value)
    raise ValueError


def _amount(value: Any) -> float:
    if type(value) in (int, float) and 0 <= value < _LARGEST:
        return float(value)
    raise ValueError


def _amount_or_null(value: Any) -> float | None:
    return None if value is None else _amount(value)


def _whole_or_null(value: Any) -> int | None:
    if value is None or (type(value) is int and 0 <= value <= _MAX_WHOLE):
        return value
    raise ValueError


def _success(value: Any) -> float | None:
    if value is None or _amount(value) <= 1:
        return _amount_or_null(value)
    raise ValueError


def _figures(value: Any) -> dict[str, float | None]:
    return {name: None if figure is None else _figure(figure) for name, figure in _object(value).items()}


def _costs(value: Any) -> dict[str, float | None]:
    costs = _figures(value)
    for name in NULLABLE_COSTS:
        if name not in costs:
            raise ValueError
    for name, amount in costs.items():
        if amount is None and name not in NULLABLE_COSTS:
            raise ValueError
        if amount is not None and amount < 0 and name in KNOWN_COSTS:
            raise ValueError
    return costs


def _object(value: Any) -> dict[str, Any]:
    if type(value) is dict:
        return value
    raise ValueError


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object for `loads`; raise ValueError if a name is repeated."""
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    raise ValueError


class _Shape(NamedTuple):
    """The members of a kind of JSON object."""

    readers: Mapping[str, Callable[[Any], Any]]  # the functions that read the members, by member
    required: frozenset[str]  # the members that each object has
    defaults: Mapping[str, Any]  # the values of attributes whose members are absent, by attribute

    def read(self, value: Any) -> SimpleNamespace:
        """Return the attributes of an object; raise `ValueError` or `KeyError` if it is wrong or not supported here."""
        members = _object(value)
        if not members.keys() >= self.required:
            raise ValueError
        attributes = dict(self.defaults)
        for name, member in members.items():
            attributes[_ATTRIBUTES.get(name, name)] = self.readers[name](member)
        return SimpleNamespace(**attributes)

    def read_all(self, value: Any) -> tuple[SimpleNamespace, ...]:
        """Return the attributes of each object of a list."""
        if type(value) is not list:
            raise ValueError
        return tuple([self.read(item) for item in value])


_KINDS_OF_TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning", "cache_write_1h")
_TOKENS = _Shape(dict.fromkeys(_KINDS_OF_TOKENS, _whole_or_null), frozenset(), dict.fromkeys(_KINDS_OF_TOKENS))
_EVENT_TEXTS = ("role", "from", "to", "tool", "content_ref", "call_id", "parent_agent", "model", "error_type")
_EVENT = _Shape(
    {
        **dict.fromkeys(("id", "agent"), _name),
        "t": _amount,
        "type": EventType,
        **dict.fromkeys(_EVENT_TEXTS, _text),
        "t_end": _amount_or_null,
        **dict.fromkeys(("trusted", "inferred"), _flag),
        "tokens": _TOKENS.read,
        "token_basis": TokenBasis,
        "status": Status,
    },
    frozenset(("id", "t", "type", "agent")),
    {  # also for members without a reader: only `decode` reads traces that have them
        **{_ATTRIBUTES.get(name, name): "" for name in (*_EVENT_TEXTS, "finish_reason", "subtask")},
        **dict.fromkeys(("trusted", "tokens", "token_basis", "sub_decision_rules", "source", "token_refs")),
        **dict.fromkeys(("t_end", "seq", "cost_usd", "reward", "t_request", "t_first_token", "run_time")),
        **dict.fromkeys(("copied_context", "warm_up", "inferred", "background", "unfinished"), False),
        "status": Status.UNKNOWN,
        "decision": GateDecision.UNKNOWN,
        "decided_by": DecidedBy.UNKNOWN,
        "sub_decisions": (),
    },
)
_EDGE = _Shape({"src": _name, "dst": _name, "type": EdgeType}, frozenset(("src", "dst", "type")), {})
_AGENT = _Shape(
    {"id": _name, **dict.fromkeys(("role", "model", "parent"), _text), "kind": AgentKind},
    frozenset(("id",)),
    {"role": "", "model": "", "parent": "", "kind": AgentKind.UNKNOWN, "reward": None},
)
_CLOCK_DEFAULTS = {"unit": Unit.SECOND, "epoch": None, "skew": 0.0}
_CLOCK = _Shape({"unit": Unit, "epoch": _text, "skew": _amount}, frozenset(), _CLOCK_DEFAULTS)
_BASELINE_AMOUNTS = ("tokens", "wall_clock_s", "turns", "error_rate")
_BASELINE = _Shape(
    {**dict.fromkeys(("trace_id", "source"), _text), **dict.fromkeys(_BASELINE_AMOUNTS, _amount_or_null),
     "success": _success},
    frozenset(),
    {"trace_id": "", "source": "", **dict.fromkeys((*_BASELINE_AMOUNTS, "success"))},
)  # fmt: skip
_TRACE = _Shape(
    {
        **dict.fromkeys(("trace_id", "task_id"), _name),
        **dict.fromkeys(("system", "$schema"), _text),
        "topology": Topology,
        "events": _EVENT.read_all,
        "edges": _EDGE.read_all,
        "rewards": lambda value: {name: _figure(figure) for name, figure in _object(value).items()},
        "costs": _costs,
        "metrics": _figures,
        "reasons": lambda value: {name: _text(reason) for name, reason in _object(value).items()},
        "clock": _CLOCK.read,
        "agents": _AGENT.read_all,
        "excluded_human_wait_s": _amount_or_null,
        "baseline": _BASELINE.read,
    },
    frozenset(("trace_id", "task_id", "events", "edges", "rewards", "costs")),
    {
        **dict.fromkeys(("system", "schema"), ""),
        "topology": Topology.UNKNOWN,
        "clock": SimpleNamespace(**_CLOCK_DEFAULTS),
        **dict.fromkeys(("agents", "turns", "subtasks"), ()),
        **dict.fromkeys(("metrics", "reasons", "import_report"), MappingProxyType({})),
        **dict.fromkeys(("excluded_human_wait_s", "baseline", "run", "effectful_tools")),
    },
)


def read_plain(data: bytes) -> "Trace | None":
    """Return the trace of a small file, with None where `decode` has UNSET; None if `decode` has to read the file."""
    if len(data) > MAX_BYTES or data[:1] != b"{" or b"\\u" in data:  # an escape may be a lone surrogate
        return None
    try:
        trace = _TRACE.read(loads(data.decode("utf-8"), object_pairs_hook=_distinct))
    except (ValueError, LookupError, RecursionError):
        return None
    return cast("Trace", trace) if trace.events else None  # `decode` reports a trace without events
