"""A problem of a decoded trace, by the path of the value concerned; its place is worked out only to be shown."""

from typing import NamedTuple

from orchtrace_corpus.trace.model.places import Path


class Problem(NamedTuple):
    """What a graph rule finds wrong.

    Attributes:
        code: The rule's code.
        message: What is wrong, and what would be right.
        path: The value concerned, such as `("events", 3, "to")`.
    """

    code: str
    message: str
    path: Path
