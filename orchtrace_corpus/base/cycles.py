"""Cycles: the links without which a graph has none."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


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
