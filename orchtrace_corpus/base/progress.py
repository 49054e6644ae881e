"""Progress of long work, as a value that the caller may show."""

from orchtrace_corpus.base.named_tuples import NamedTuple


class Progress(NamedTuple):
    """The progress of a piece of work.

    Attributes:
        done: How many of what is counted are done.
        total: How many there are.
        waiting_seconds: How long nothing will be asked yet; 0 while something is.
        reason: Why that is; empty for the usual time between two requests.
    """

    done: int
    total: int
    waiting_seconds: float = 0.0
    reason: str = ""
