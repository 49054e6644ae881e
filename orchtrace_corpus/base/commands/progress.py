"""A line on standard error that follows a run against a service, where somebody is there to see it."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.text.layout import ASCII, UNICODE
from orchtrace_corpus.base.text.progress import line

if TYPE_CHECKING:
    from orchtrace_corpus.base.progress import Progress

_ERASE = "\r\x1b[K"


@contextmanager
def shown(output: Output, noun: str = "papers") -> Iterator["Callable[[Progress], None] | None"]:
    """Give a function that shows how far a run has come, and remove the line at the end.

    None where standard error is no terminal, or one without a cursor, or `--quiet` is given.

    Args:
        output: Where the command's remarks go.
        noun: What is counted.
    """
    if output.quiet or sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    stream = sys.stderr
    glyphs = UNICODE if "utf" in (stream.encoding or "").lower() else ASCII
    began = time.monotonic()
    done_at_first: int | None = None

    def show(progress: "Progress") -> None:
        nonlocal done_at_first
        done_at_first = progress.done if done_at_first is None else done_at_first
        width = os.get_terminal_size(stream.fileno()).columns or 80  # some terminals do not know theirs
        text = line(progress, done_at_first, time.monotonic() - began, width, glyphs, noun)
        stream.write(f"{_ERASE}{text.encode(stream.encoding or 'ascii', 'replace').decode(stream.encoding or 'ascii')}")
        stream.flush()

    try:
        yield show
    finally:
        stream.write(_ERASE)
        stream.flush()
