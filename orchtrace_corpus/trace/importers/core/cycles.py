"""Edges that close a circle: where many events stand at one instant, their times cannot tell which came first."""

from collections.abc import Iterable

Edge = tuple[str, str, str]
"""Source, target and type."""


def closing_edges(edges: Iterable[Edge]) -> set[Edge]:
    """The edges without which the rest has no circle, found by walking along them in their order."""
    leaving: dict[str, list[Edge]] = {}
    for edge in edges:
        leaving.setdefault(edge[0], []).append(edge)
    closing: set[Edge] = set()
    done: set[str] = set()
    for start in leaving:
        path = {start: iter(leaving[start])} if start not in done else {}
        while path:
            at = next(reversed(path))
            for edge in path[at]:
                if edge[1] in path:
                    closing.add(edge)
                elif edge[1] not in done:
                    path[edge[1]] = iter(leaving.get(edge[1], ()))
                    break
            else:
                del path[at]
                done.add(at)
    return closing
