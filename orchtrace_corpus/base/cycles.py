"""Cycles: the links without which a graph has none, and an order of a graph that has none."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


class CycleError(Exception):
    """The edges go round in a circle: `events` are the numbers of the nodes on one, in the order of its edges."""

    def __init__(self, events: list[int]) -> None:
        super().__init__()
        self.events = events


def closing_links(leaving: Mapping[Node, Iterable[Node]]) -> list[tuple[Node, Node]]:
    """The links without which the rest has no cycle, found by walking along them in their order.

    Linear in the number of links, and not recursive.

    Args:
        leaving: Where the links of each node lead.

    Returns:
        The source and the target of each such link.
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
    """A topological order (Kahn 1962) that takes the earliest node first among those that may come next.

    Args:
        sources: For each edge the number of its earlier node.
        targets: For each edge the number of its later node.
        timely: The numbers of the nodes by time.
        rank: For each node its place in `timely`.

    Raises:
        CycleError: The edges go round in a circle.
    """
    from heapq import heapify, heappop, heappush

    waiting = [0] * len(timely)
    later: list[list[int]] = [[] for _ in timely]
    for source, target in zip(sources, targets, strict=True):
        waiting[target] += 1
        later[source].append(target)
    ready = [rank[index] for index in timely if not waiting[index]]
    heapify(ready)
    found = []
    while ready:
        index = timely[heappop(ready)]
        found.append(index)
        for target in later[index]:
            waiting[target] -= 1
            if not waiting[target]:
                heappush(ready, rank[target])
    if len(found) < len(timely):
        raise CycleError(_circle(later, waiting))
    return found


def _circle(later: list[list[int]], waiting: list[int]) -> list[int]:
    """One circle among the nodes that still wait for another."""
    earlier: dict[int, int] = {}
    for index, targets in enumerate(later):
        if waiting[index]:
            for target in targets:
                if waiting[target]:
                    earlier[target] = index
    place = min(earlier)
    seen: dict[int, int] = {}
    path: list[int] = []
    while place not in seen:
        seen[place] = len(path)
        path.append(place)
        place = earlier[place]
    found = path[seen[place] :][::-1]
    first = found.index(min(found))
    return [*found[first:], *found[:first]]
