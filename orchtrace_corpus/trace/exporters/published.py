"""Reduce a trace to the fields and event types of the schema published with arXiv 2605.02801."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import chain
from typing import Any

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.trace.model.terms import NULLABLE_COSTS, SECONDS, Unit
from orchtrace_corpus.trace.view.lifecycle import Lineage

TRACE_FIELDS = ("trace_id", "task_id", "system", "topology", "events", "edges", "rewards", "costs", "metrics")
"""The fields of a trace that the published schema has."""

EVENT_FIELDS = ("id", "t", "type", "agent", "role", "from", "to", "tool", "content_ref", "trusted")
"""The fields of an event that the published schema names."""

_MAX_LISTED = 12
_ADDED_TYPES = frozenset({"stop", "inference"})  # event types that the published schema does not have


def publish(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trace with the published fields only.

    Events of types that the published schema does not have are removed; `bridge` connects the remaining events. Null
    costs and metrics are removed, except for two totals that the schema requires. Times are converted to seconds, the
    only unit of the published schema, unless they are counts of steps.

    Args:
        trace: A valid trace as read by `json.loads`.

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
    published = {name: trace[name] for name in TRACE_FIELDS if name in trace}
    scale = SECONDS[Unit(trace.get("clock", {}).get("unit", "s"))]
    published["events"] = [{name: event[name] for name in EVENT_FIELDS if name in event} for event in events]
    if scale != 1:
        for event in published["events"]:
            event["t"] *= scale
    published["edges"] = bridge(trace["edges"], {event["id"] for event in events})
    for part in ("costs", "metrics"):
        if part in published:
            published[part] = {name: value for name, value in published[part].items() if value is not None}
    return published


def losses(trace: Mapping[str, Any], published: Mapping[str, Any]) -> list[str]:
    """Return the kinds of content of a trace that the result of `publish` does not have, each with its amount."""
    lost: list[str] = []
    kept_ids = {event["id"] for event in published["events"]}
    removed = [event for event in trace["events"] if event["id"] not in kept_ids]
    if removed:
        types = Counter(event["type"] for event in removed)
        lost.append(f"{len(removed):,} of {len(trace['events']):,} events ({_list_counts(types)})")
    edges_before = {(edge["src"], edge["dst"], edge["type"]) for edge in trace["edges"]}
    edges_after = {(edge["src"], edge["dst"], edge["type"]) for edge in published["edges"]}
    if edges_before != edges_after:
        loss = f"{len(edges_before - edges_after):,} of {len(edges_before):,} edges"
        bridges = edges_after - edges_before
        if bridges:
            loss += f", {len(bridges):,} put in to bridge what is left out"
        lost.append(loss)
    fields = [name for name in trace if name not in published]
    if fields:
        lost.append(f"fields of the trace: {_list_names(fields)}")
    event_fields = Counter[str]()
    for event in trace["events"]:
        if event["id"] in kept_ids:
            event_fields.update(name for name in event if name not in EVENT_FIELDS)
    if event_fields:
        lost.append(f"fields of the events kept: {_list_counts(event_fields)}")
    nulls: list[str] = []
    for part in ("costs", "metrics"):
        nulls += [f"{part}.{name}" for name in trace.get(part, {}) if name not in published[part]]
    if nulls:
        lost.append(f"figures that are null: {_list_names(nulls)}")
    return lost


def _list_counts(counts: Counter[str]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return _list_names([f"{count:,} {name}" for name, count in ordered])


def _list_names(names: Sequence[str]) -> str:
    listed = ", ".join(printable(name) for name in names[:_MAX_LISTED])
    if len(names) > _MAX_LISTED:
        listed += f" and {len(names) - _MAX_LISTED:,} more"
    return listed


def bridge(edges: Sequence[Mapping[str, str]], kept: Collection[str]) -> list[dict[str, str]]:
    """Return the edges between kept events, and bridges over removed events, so that dependencies are preserved.

    A bridge connects two kept events if a path from one to the other passes removed events only. It has the type of the
    last edge of that path. Each edge and bridge is listed once.

    A bridge is redundant if other edges and bridges connect its ends. Most redundant bridges are omitted: those that a
    tree shows in which the parent of each event is the last event that it depends on. To omit all would be a transitive
    reduction, which takes as long as a transitive closure (A. V. Aho, M. R. Garey and J. D. Ullman, "The transitive
    reduction of a directed graph", SIAM Journal on Computing 1, 1972).

    Args:
        edges: The edges of a trace, without a cycle.
        kept: The ids of the events that are kept.
    """
    paths = _RemovedPaths(edges, kept)
    starts_by_target: dict[str, frozenset[str]] = {}
    bridged: dict[tuple[str, str, str], dict[str, str]] = {}
    for edge in edges:
        source, target, kind = edge["src"], edge["dst"], edge["type"]
        if target not in kept:
            continue
        if source in kept:
            bridged.setdefault((source, target, kind), dict(edge))
        elif source in paths.sources[target]:
            if target not in starts_by_target:
                starts_by_target[target] = frozenset(paths.starts(target))
            for start in paths.starts(source):
                if start in starts_by_target[target]:
                    bridged.setdefault((start, target, kind), {**edge, "src": start})
    return list(bridged.values())


class _RemovedPaths:
    """For each event, the paths to it that start at a kept event and pass removed events only.

    `sources` has, by event, the sources of the edges to it. Ancestors of another source in the tree are left out.
    """

    def __init__(self, edges: Sequence[Mapping[str, str]], kept: Collection[str]) -> None:
        sources: dict[str, dict[str, None]] = {}
        for edge in edges:
            sources.setdefault(edge["dst"], {})[edge["src"]] = None
        ordered = list(TopologicalSorter(sources).static_order())
        positions = {event_id: position for position, event_id in enumerate(ordered)}
        self._kept = kept
        self._tree = Lineage({event_id: max(ids, key=positions.__getitem__) for event_id, ids in sources.items()})
        self.sources = {event_id: dict.fromkeys(self._tree.lowest(ids)) for event_id, ids in sources.items()}
        self._cached_starts: dict[str, list[str]] = {}
        use_counts = Counter(chain.from_iterable(self.sources.values()))
        for event_id in ordered:
            if use_counts[event_id] > 1 and event_id not in kept:  # several paths pass it: find its starts once
                self._cached_starts[event_id] = self.starts(event_id)

    def starts(self, event_id: str) -> list[str]:
        """Return the kept events at which the paths to an event start, without ancestors of another start."""
        if event_id in self._cached_starts:
            return self._cached_starts[event_id]
        starts: dict[str, None] = {}
        waiting = list(self.sources.get(event_id, ()))
        while waiting:
            source = waiting.pop()
            if source in self._kept:
                starts[source] = None
            elif source in self._cached_starts:
                starts.update(dict.fromkeys(self._cached_starts[source]))
            else:
                waiting += self.sources.get(source, ())
        return self._tree.lowest(starts)
