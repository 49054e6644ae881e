"""Find links whose removal leaves a graph without cycles, and sort such a graph topologically."""

from collections.abc import Hashable, Iterable, Mapping, Sequence

from orchtrace_corpus.base.annotations import TypeVar

Node = TypeVar("Node", bound=Hashable)


class CycleError(Exception):
    """The edges of a graph form a cycle: `nodes` are the indices of the cycle's nodes, in the order of its edges."""

    def __init__(self, nodes: list[int]) -> None:
        super().__init__()
        self.nodes = nodes


def closing_links(targets_by_node: Mapping[Node, Iterable[Node]]) -> list[tuple[Node, Node]]:
    """Return the links, as (source, target), that close a cycle in a depth-first search; the others form no cycle.

    The search follows nodes and links in their order. The time is linear in the number of links.
    """
    closing: list[tuple[Node, Node]] = []
    finished: set[Node] = set()
    for start, start_targets in targets_by_node.items():
        if start in finished:
            continue
        # The nodes from `start` to the current one, each with its targets that are not visited yet.
        path = {start: iter(start_targets)}
        while path:
            current = next(reversed(path))
            target = next(path[current], None)
            if target is None:
                del path[current]
                finished.add(current)
            elif target in path:
                closing.append((current, target))
            elif target not in finished:
                path[target] = iter(targets_by_node.get(target, ()))
    return closing


def sort_topologically(
    sources: Sequence[int], targets: Sequence[int], by_time: Sequence[int], rank: Sequence[int]
) -> list[int]:
    """Return a topological order (Kahn 1962) in which the earliest of several possible nodes comes first.

    Args:
        sources: For each edge the index of its earlier node.
        targets: For each edge the index of its later node.
        by_time: The indices of the nodes, sorted by time.
        rank: For each node its place in `by_time`.

    Raises:
        CycleError: The edges have a cycle.
    """
    from heapq import heapify, heappop, heappush

    waiting_counts = [0] * len(by_time)  # for each node, the number of nodes before it that are not sorted yet
    targets_by_node: list[list[int]] = [[] for _ in by_time]
    for source, target in zip(sources, targets, strict=True):
        waiting_counts[target] += 1
        targets_by_node[source].append(target)
    ready_ranks = [rank[node] for node in by_time if not waiting_counts[node]]
    heapify(ready_ranks)
    ordered = []
    while ready_ranks:
        node = by_time[heappop(ready_ranks)]
        ordered.append(node)
        for target in targets_by_node[node]:
            waiting_counts[target] -= 1
            if not waiting_counts[target]:
                heappush(ready_ranks, rank[target])
    if len(ordered) < len(by_time):
        raise CycleError(_find_cycle(targets_by_node, waiting_counts))
    return ordered


def _find_cycle(targets_by_node: list[list[int]], waiting_counts: list[int]) -> list[int]:
    """Return a cycle among the nodes that still wait for another; it starts at its lowest index."""
    waited_for: dict[int, int] = {}  # for each waiting node, another waiting node before it
    for node, targets in enumerate(targets_by_node):
        if waiting_counts[node]:
            for target in targets:
                if waiting_counts[target]:
                    waited_for[target] = node
    node = min(waited_for)
    path: list[int] = []
    visited: set[int] = set()
    while node not in visited:  # go back until the path meets itself
        path.append(node)
        visited.add(node)
        node = waited_for[node]
    cycle = path[path.index(node) :]
    cycle.reverse()
    lowest = cycle.index(min(cycle))
    return [*cycle[lowest:], *cycle[:lowest]]
