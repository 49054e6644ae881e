"""Values that all benchmarks use: the cost of a process, and a claim as a ratio."""

import os
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple


class Run(NamedTuple):
    """The cost of a process: wall-clock time and processor time in seconds, peak memory in MiB."""

    seconds: float
    peak_mib: float
    cpu_seconds: float


class Claim(NamedTuple):
    """A ratio that was measured, and the largest value that is allowed."""

    what: str
    measured: float
    limit: float
    detail: str


def run(command: Sequence[str], **variables: str) -> Run:
    """Run a command without its output; `variables` are added to its environment.

    Raises:
        RuntimeError: The command failed, so its time means nothing.
    """
    environment = {**os.environ, **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    discard_output = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    process = os.posix_spawn(command[0], list(command), environment, file_actions=discard_output)
    _, status, usage = os.wait4(process, 0)
    seconds = time.perf_counter() - start
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with status {status}")
    units_per_mib = 1024 * 1024 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kibibytes
    return Run(seconds, usage.ru_maxrss / units_per_mib, usage.ru_utime + usage.ru_stime)
