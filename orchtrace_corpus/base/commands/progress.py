"""A line on a terminal that shows the progress of a run against a service."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.progress import Progress
from orchtrace_corpus.base.text.layout import ASCII, UNICODE, Glyphs, bar, clip

_BAR_WIDTH = 24
_ERASE = "\r\x1b[K"


@contextmanager
def show_progress(output: Output, noun: str = "papers") -> Iterator[Callable[[Progress], None] | None]:
    """Yield a function that shows progress; remove the line at the end. The noun says what is counted.

    Yield None if standard error is not a terminal with a cursor, or `--quiet` is given.
    """
    if output.quiet or sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    stream = sys.stderr
    glyphs = UNICODE if "utf" in (stream.encoding or "").lower() else ASCII
    began = time.monotonic()
    done_at_first: int | None = None

    def show(progress: Progress) -> None:
        nonlocal done_at_first
        if done_at_first is None:
            done_at_first = progress.done
        width = os.get_terminal_size(stream.fileno()).columns or 80  # some terminals report 0
        text = line(progress, done_at_first, time.monotonic() - began, width, glyphs, noun)
        stream.write(f"{_ERASE}{text.encode(stream.encoding or 'ascii', 'replace').decode(stream.encoding or 'ascii')}")
        stream.flush()

    try:
        yield show
    finally:
        stream.write(_ERASE)
        stream.flush()


def line(
    progress: Progress, done_at_first: int, elapsed_seconds: float, width: int, glyphs: Glyphs, noun: str = "papers"
) -> str:
    """Return the line: a bar, the rate and the remaining time; or the reason and the length of a wait.

    The rate leaves out what was done before the first report, for example from a cache. The line is at most one cell
    less than the width of the terminal, so that it never wraps.
    """
    count = f"{progress.done}/{progress.total} {noun}"
    if progress.reason:
        parts = [count, f"waiting {_duration(progress.waiting_seconds)}: {printable(progress.reason)}"]
    else:
        done = bar(progress.done, progress.total, _BAR_WIDTH, glyphs.bar)
        parts = [done + glyphs.empty * (_BAR_WIDTH - len(done)), count]
        newly_done = progress.done - done_at_first
        if newly_done > 0 and elapsed_seconds > 0:
            rate = newly_done / elapsed_seconds
            remaining = progress.total - progress.done
            parts.append(f"{rate:.1f}/s" + (f", {_duration(remaining / rate)} left" if remaining > 0 else ""))
    return clip("  ".join(parts), max(width - 1, 1), glyphs.ellipsis)


def _duration(seconds: float) -> str:
    """Return a time as `1:05`, or with hours as `1:01:05`."""
    whole = int(seconds + 0.999)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
