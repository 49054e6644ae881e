"""A trace in the form of the schema published with arXiv 2605.02801, without what that one refuses."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import chain
from typing import Any

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.trace.model.terms import NULLABLE_COSTS, Unit
from orchtrace_corpus.trace.view.lifecycle import Lineage
from orchtrace_corpus.trace.view.timing import SECONDS

TRACE_FIELDS = ("trace_id", "task_id", "system", "topology", "events", "edges", "rewards", "costs", "metrics")
"""The fields of a trace that the published schema has."""

EVENT_FIELDS = ("id", "t", "type", "agent", "role", "from", "to", "tool", "content_ref", "trusted")
"""The fields of an event that the published schema names."""

_MOST_NAMED = 12
_ADDED_TYPES = frozenset({"stop", "inference"})


def publish(trace: Mapping[str, Any]) -> dict[str, Any]:
    """The trace with published fields only.

    Events of the types that we added go, and what depended on them depends on what they depended on (`bridge`).
    Figures that are null go, too; only two totals cannot. Times are in seconds, since the published form has no
    other; those of a trace that counts steps stay as they are.

    Args:
        trace: A sound trace as read by `json.loads`.

    Raises:
        CommandUseError: A total that the published schema requires is unknown, or no event is left.
    """
    unknown = [name for name in NULLABLE_COSTS if trace["costs"][name] is None]
    if unknown:
        names = " and ".join(f"costs.{name}" for name in unknown)
        raise CommandUseError(
            f"{names} cannot be left unknown in the published schema", "Put a number in, or keep to our own form."
        )
    events = [event for event in trace["events"] if event["type"] not in _ADDED_TYPES]
    if not events:
        raise CommandUseError("no event is left: all are of types that the published schema lacks")
    found = {name: trace[name] for name in TRACE_FIELDS if name in trace}
    scale = SECONDS[Unit(trace.get("clock", {}).get("unit", "s"))]
    found["events"] = [{name: event[name] for name in EVENT_FIELDS if name in event} for event in events]
    if scale != 1:
        for event in found["events"]:
            event["t"] *= scale
    found["edges"] = bridge(trace["edges"], {event["id"] for event in events})
    for part in ("costs", "metrics"):
        if part in found:
            found[part] = {name: value for name, value in found[part].items() if value is not None}
    return found


def losses(trace: Mapping[str, Any], reduced: Mapping[str, Any]) -> list[str]:
    """Return the kinds of content that the published form of a trace lacks.

    Args:
        trace: The trace as read.
        reduced: What `publish` made of it.
    """
    found = []
    kept = {event["id"] for event in reduced["events"]}
    gone = [event for event in trace["events"] if event["id"] not in kept]
    if gone:
        kinds = Counter(event["type"] for event in gone)
        found.append(f"{len(gone):,} of {len(trace['events']):,} events ({_counts(kinds)})")
    before, after = ({(edge["src"], edge["dst"], edge["type"]) for edge in one["edges"]} for one in (trace, reduced))
    if before != after:
        bridges = f", {len(after - before):,} put in to bridge what is left out" if after - before else ""
        found.append(f"{len(before - after):,} of {len(before):,} edges{bridges}")
    fields = [name for name in trace if name not in reduced]
    if fields:
        found.append(f"fields of the trace: {_some(fields)}")
    names = chain.from_iterable(event for event in trace["events"] if event["id"] in kept)
    of_events = Counter(name for name in names if name not in EVENT_FIELDS)
    if of_events:
        found.append(f"fields of the events kept: {_counts(of_events)}")
    nulls = [
        f"{part}.{name}" for part in ("costs", "metrics") for name in trace.get(part, {}) if name not in reduced[part]
    ]
    if nulls:
        found.append(f"figures that are null: {_some(nulls)}")
    return found


def _counts(counted: Counter[str]) -> str:
    ordered = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    return _some([f"{number:,} {name}" for name, number in ordered])


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(printable(name) for name in names[:_MOST_NAMED]) + more


def bridge(edges: Sequence[Mapping[str, str]], kept: Collection[str]) -> list[dict[str, str]]:
    """The edges between kept events, and bridges over the others, each once: what led to what still does.

    Edges between kept events stay as they are. A bridge has the type of its last edge. It is left out where the
    other edges and bridges lead from its one end to the other anyway, as far as a tree shows it, in which each event
    follows the last of those that it depends on. To leave out all that could be would be a transitive reduction, which
    takes as long as a transitive closure (A. V. Aho, M. R. Garey and J. D. Ullman, "The transitive reduction of a
    directed graph", SIAM Journal on Computing 1, 1972).

    Args:
        edges: The edges of a trace, which go round in no circle.
        kept: The ids of the events that are kept.
    """
    ways = _Ways(edges, kept)
    wanted: dict[str, frozenset[str]] = {}
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for edge in edges:
        source, target, kind = edge["src"], edge["dst"], edge["type"]
        if target not in kept:
            continue
        if source in kept:
            found.setdefault((source, target, kind), dict(edge))
        elif source in ways.needed[target]:
            if target not in wanted:
                wanted[target] = frozenset(ways.ends(target))
            for end in ways.ends(source):
                if end in wanted[target]:
                    found.setdefault((end, target, kind), {**edge, "src": end})
    return list(found.values())


class _Ways:
    """The ways that lead to an event from kept ones over left-out ones alone.

    Args:
        edges: The edges of a trace.
        kept: The ids of the events that are kept.

    Attributes:
        needed: The sources of each event, without those from which an edge leads to another of them in the tree.
    """

    def __init__(self, edges: Sequence[Mapping[str, str]], kept: Collection[str]) -> None:
        sources: dict[str, dict[str, None]] = {}
        for edge in edges:
            sources.setdefault(edge["dst"], {})[edge["src"]] = None
        ordered = list(TopologicalSorter(sources).static_order())
        places = {name: place for place, name in enumerate(ordered)}
        self._kept = kept
        self._tree = Lineage({name: max(of, key=places.__getitem__) for name, of in sources.items()})
        self.needed = {name: dict.fromkeys(self._tree.lowest(of)) for name, of in sources.items()}
        self._known: dict[str, list[str]] = {}
        uses = Counter(chain.from_iterable(self.needed.values()))
        for name in ordered:
            if uses[name] > 1 and name not in kept:  # what several ways lead over is looked at once
                self._known[name] = self.ends(name)

    def ends(self, name: str) -> list[str]:
        """The kept events that the ways to an event come from, without those that lead to another of them."""
        if name in self._known:
            return self._known[name]
        found: dict[str, None] = {}
        waiting = list(self.needed.get(name, ()))
        while waiting:
            source = waiting.pop()
            if source in self._kept:
                found[source] = None
            elif source in self._known:
                found.update(dict.fromkeys(self._known[source]))
            else:
                waiting += self.needed.get(source, ())
        return self._tree.lowest(found)
