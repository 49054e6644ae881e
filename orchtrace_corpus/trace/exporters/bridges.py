"""Edges between the events of a trace that are kept, over those that are left out."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import chain

from orchtrace_corpus.trace.view.lifecycle import Lineage


def bridged(edges: Sequence[Mapping[str, str]], kept: Collection[str]) -> list[dict[str, str]]:
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
