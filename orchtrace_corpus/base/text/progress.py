"""How far a run against a service has come, on one line of a terminal."""

from typing import TYPE_CHECKING

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import Glyphs, bar, clip

if TYPE_CHECKING:
    from orchtrace_corpus.base.progress import Progress

_BAR_WIDTH = 24


def line(
    progress: "Progress", done_at_first: int, elapsed_seconds: float, width: int, glyphs: Glyphs, noun: str = "papers"
) -> str:
    """The line: a bar, the rate and the remaining time; or what is waited for, and how long.

    Args:
        progress: How far the run has come.
        done_at_first: How many had an outcome when it began; they took no time.
        elapsed_seconds: The time since it began.
        width: The cells of the terminal; the line has at most one less, so that it never wraps.
        glyphs: The characters to draw with.
        noun: What is counted.
    """
    count = f"{progress.done}/{progress.total} {noun}"
    if progress.reason:
        parts = [count, f"waiting {_duration(progress.waiting_seconds)}: {printable(progress.reason)}"]
    else:
        done = bar(progress.done, progress.total, _BAR_WIDTH, glyphs.bar)
        parts = [done + glyphs.empty * (_BAR_WIDTH - len(done)), count]
        answered = progress.done - done_at_first
        if answered > 0 and elapsed_seconds > 0:
            rate = answered / elapsed_seconds
            left = (
                f", {_duration((progress.total - progress.done) / rate)} left" if progress.done < progress.total else ""
            )
            parts.append(f"{rate:.1f}/s{left}")
    return clip("  ".join(parts), max(width - 1, 1), glyphs.ellipsis)


def _duration(seconds: float) -> str:
    """Minutes and seconds, as `1:05`, with hours where there are any."""
    whole = int(seconds + 0.999)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
