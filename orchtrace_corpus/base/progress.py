"""The progress of a long run, as a value for the caller."""

from orchtrace_corpus.base.named_tuples import NamedTuple


class Progress(NamedTuple):
    """The progress of a run.

    Attributes:
        done: The number of units that are done.
        total: The number of all units.
        waiting_seconds: How long the run waits yet; 0 if it does not wait.
        reason: Why it waits; empty for the usual time between two requests.
    """

    done: int
    total: int
    waiting_seconds: float = 0.0
    reason: str = ""
