"""The links to remove from a graph so that it has no cycle, and the topological order of a graph without cycles."""

from collections.abc import Hashable, Iterable, Mapping, Sequence

from orchtrace_corpus.base.annotations import TypeVar

Node = TypeVar("Node", bound=Hashable)


class CycleError(Exception):
    """The edges have a cycle: `events` are the indices of its nodes, in the order of its edges."""

    def __init__(self, events: list[int]) -> None:
        super().__init__()
        self.events = events


def closing_links(leaving: Mapping[Node, Iterable[Node]]) -> list[tuple[Node, Node]]:
    """Return links, as source and target, without which the others have no cycle, by a walk in their order.

    The time is linear in the number of links. `leaving` has the targets of each node's links.
    """
    closing: list[tuple[Node, Node]] = []
    done: set[Node] = set()
    for start in leaving:
        path = {start: iter(leaving[start])} if start not in done else {}
        while path:
            at = next(reversed(path))
            for target in path[at]:
                if target in path:
                    closing.append((at, target))
                elif target not in done:
                    path[target] = iter(leaving.get(target, ()))
                    break
            else:
                del path[at]
                done.add(at)
    return closing


def sort_topologically(
    sources: Sequence[int], targets: Sequence[int], timely: Sequence[int], rank: Sequence[int]
) -> list[int]:
    """Return a topological order (Kahn 1962) in which the earliest of several possible nodes comes first.

    Args:
        sources: For each edge the index of its earlier node.
        targets: For each edge the index of its later node.
        timely: The indices of the nodes by time.
        rank: For each node its place in `timely`.

    Raises:
        CycleError: The edges have a cycle.
    """
    from heapq import heapify, heappop, heappush

    waiting = [0] * len(timely)
    later: list[list[int]] = [[] for _ in timely]
    for source, target in zip(sources, targets, strict=True):
        waiting[target] += 1
        later[source].append(target)
    ready = [rank[index] for index in timely if not waiting[index]]
    heapify(ready)
    ordered = []
    while ready:
        index = timely[heappop(ready)]
        ordered.append(index)
        for target in later[index]:
            waiting[target] -= 1
            if not waiting[target]:
                heappush(ready, rank[target])
    if len(ordered) < len(timely):
        raise CycleError(_find_cycle(later, waiting))
    return ordered


def _find_cycle(later: list[list[int]], waiting: list[int]) -> list[int]:
    """Return a cycle among the nodes that still wait for another; it starts at its lowest index."""
    earlier: dict[int, int] = {}
    for index, targets in enumerate(later):
        if waiting[index]:
            for target in targets:
                if waiting[target]:
                    earlier[target] = index
    place = min(earlier)
    path: dict[int, None] = {}
    while place not in path:
        path[place] = None
        place = earlier[place]
    nodes = list(path)
    cycle = nodes[nodes.index(place) :][::-1]
    first = cycle.index(min(cycle))
    return [*cycle[first:], *cycle[:first]]
