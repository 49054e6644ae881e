"""What benchmarks share: the cost of a process, and a claim as a ratio."""

import os
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple


class Run(NamedTuple):
    """The cost of a process: wall time and time of the processor in seconds, peak memory in MiB."""

    seconds: float
    peak_mib: float
    cpu_seconds: float


class Claim(NamedTuple):
    """A ratio that was measured, and the most that it may be."""

    what: str
    measured: float
    limit: float
    detail: str


def run(command: Sequence[str], **variables: str) -> Run:
    """Run a command to its end, output thrown away; `variables` are added to its environment.

    Raises:
        RuntimeError: The command failed, so its time means nothing.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | variables
    begin = time.perf_counter()
    quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    process = os.posix_spawn(command[0], list(command), environment, file_actions=quiet)
    _, status, usage = os.wait4(process, 0)
    seconds = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with status {status}")
    peak = usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)
    return Run(seconds, peak, usage.ru_utime + usage.ru_stime)
