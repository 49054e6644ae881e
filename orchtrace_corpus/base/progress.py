"""The progress of a long operation, as a value that the operation passes to its caller."""

from orchtrace_corpus.base.named_tuples import NamedTuple


class Progress(NamedTuple):
    """The progress of an operation, such as fetching the metadata of all papers.

    Attributes:
        done: The number of units that are finished, such as papers.
        total: The number of all units.
        waiting_seconds: How long the operation will wait before it goes on; 0 if it does not wait.
        reason: Why it waits; empty for the usual pause between two requests.
    """

    done: int
    total: int
    waiting_seconds: float = 0.0
    reason: str = ""
