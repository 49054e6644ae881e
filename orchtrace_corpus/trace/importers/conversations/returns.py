"""What comes back from sub-agents: a log may tell of one return several times, and each counts once."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from orchtrace_corpus.trace.importers.conversations.transcript import Return, Step, Thread
from orchtrace_corpus.trace.model.trace import Status


class Back(NamedTuple):
    """A place where the log says that an agent has come back.

    Attributes:
        step: The step of the receiving thread that says so.
        thread: The receiving thread.
        child: The agent that has come back.
        status: With what: ok, error, cancelled.
        error: The kind of error.
        ref: What it has brought.
    """

    step: Step
    thread: Thread
    child: str
    status: Status = Status.OK
    error: str = ""
    ref: str = ""


def add_returns(backs: Iterable[Back], threads: Iterable[Thread]) -> None:
    """Add a return to the receiving thread, unless the agent has done nothing since its last return."""
    moments: dict[str, list[float]] = {}
    for thread in threads:
        if not thread.aside:
            moments[thread.agent] = sorted(step.time for step in thread.steps)
    returned: dict[str, float] = {}
    for back in sorted(backs, key=lambda back: (back.step.time, back.step.order)):
        time = back.step.time
        done = moments.get(back.child, [])
        before = returned.get(back.child)
        if before is None or bisect_right(done, before) < bisect_right(done, time):
            returned[back.child] = time
            step = Return(time, back.step.place, back.step.order + 0.5, back.child, back.status, back.error, back.ref)
            back.thread.steps.append(step)
