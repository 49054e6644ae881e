"""A line on a terminal that shows the progress of a long operation, such as requests to a web service."""

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
    """Yield a function that shows progress on a line, and remove the line at the end of the `with` block.

    Yield None if standard error is not a terminal with a cursor, or if `--quiet` is given.

    Args:
        output: The output of the command.
        noun: The units of the progress, such as papers.
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
        text = progress_line(progress, done_at_first, time.monotonic() - began, width, glyphs, noun)
        encoding = stream.encoding or "ascii"
        stream.write(_ERASE + text.encode(encoding, "replace").decode(encoding))
        stream.flush()

    try:
        yield show
    finally:
        stream.write(_ERASE)
        stream.flush()


def progress_line(
    progress: Progress, done_at_first: int, elapsed_seconds: float, width: int, glyphs: Glyphs, noun: str = "papers"
) -> str:
    """Return a bar, the rate and the remaining time; or the reason and the length of a wait.

    Args:
        progress: The progress.
        done_at_first: The units that were done at the first report, for example by a cache; the rate leaves them out.
        elapsed_seconds: The time since the operation began.
        width: The width of the terminal. The line is one cell shorter, so that it never wraps.
        glyphs: The characters to draw with.
        noun: The units of the progress.
    """
    count = f"{progress.done}/{progress.total} {noun}"
    if progress.reason:
        parts = [count, f"waiting {_duration(progress.waiting_seconds)}: {printable(progress.reason)}"]
    else:
        filled = bar(progress.done, progress.total, _BAR_WIDTH, glyphs.bar)
        parts = [filled + glyphs.empty * (_BAR_WIDTH - len(filled)), count]
        newly_done = progress.done - done_at_first
        if newly_done > 0 and elapsed_seconds > 0:
            rate = newly_done / elapsed_seconds
            speed = f"{rate:.1f}/s"
            remaining = progress.total - progress.done
            if remaining > 0:
                speed += f", {_duration(remaining / rate)} left"
            parts.append(speed)
    return clip("  ".join(parts), max(width - 1, 1), glyphs.ellipsis)


def _duration(seconds: float) -> str:
    """Return a time, rounded up to seconds, as `1:05`, or with hours as `1:01:05`."""
    minutes, whole_seconds = divmod(int(seconds + 0.999), 60)
    if minutes < 60:
        return f"{minutes}:{whole_seconds:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{whole_seconds:02}"
