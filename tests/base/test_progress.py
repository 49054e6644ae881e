"""The line that follows a run: true to it, never wider than the terminal, and gone where nobody sees it."""

import io
import sys
import textwrap

import pytest

from orchtrace_corpus.base.commands import progress as cli
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.commands.progress import progress_line
from orchtrace_corpus.base.progress import Progress
from orchtrace_corpus.base.text.layout import ASCII, UNICODE, display_width
from tests.terminal import run_on_terminal

RUN = textwrap.dedent(
    """
    import sys
    from orchtrace_corpus.base.commands import progress
    from orchtrace_corpus.base.commands.output import Output
    from orchtrace_corpus.base.progress import Progress
    output = Output()
    output.quiet = "--quiet" in sys.argv
    with progress.show_progress(output) as show:
        if show is not None:
            show(Progress(0, 4))
            show(Progress(1, 4, 2.0, "it is busy"))
    print("done", file=sys.stderr)
    """
)


def test_the_line_says_how_far_how_fast_and_how_long_yet() -> None:
    assert progress_line(Progress(0, 250), 0, 0.0, 80, UNICODE) == "························  0/250 papers"
    assert (
        progress_line(Progress(100, 250), 0, 5.0, 80, UNICODE)
        == "██████████··············  100/250 papers  20.0/s, 0:08 left"
    )
    assert progress_line(Progress(250, 250), 0, 10.0, 80, UNICODE) == "████████████████████████  250/250 papers  25.0/s"
    assert (
        progress_line(Progress(3, 4), 0, 3.0, 80, ASCII, "links")
        == "##################......  3/4 links  1.0/s, 0:01 left"
    )


def test_what_was_known_at_first_took_no_time() -> None:
    assert progress_line(Progress(200, 250), 200, 1.0, 80, UNICODE) == "███████████████████·····  200/250 papers"
    assert progress_line(Progress(210, 250), 200, 10.0, 80, UNICODE).endswith("210/250 papers  1.0/s, 0:40 left")


def test_a_wait_is_explained_and_the_usual_one_is_not() -> None:
    told = progress_line(Progress(5, 9, 3725.0, "HTTP 429 (plain text: 'Rate exceeded.')"), 0, 9.0, 80, UNICODE)

    assert told == "5/9 papers  waiting 1:02:05: HTTP 429 (plain text: 'Rate exceeded.')"
    assert "waiting" not in progress_line(Progress(5, 9, 3.0), 0, 9.0, 80, UNICODE)


@pytest.mark.parametrize("width", [1, 5, 20, 60])
def test_the_line_never_wraps_and_never_moves_the_cursor(width: int) -> None:
    told = progress_line(Progress(5, 9, 30.0, "\x1b[2J\r\n" * 20), 0, 9.0, width, UNICODE)

    assert display_width(told) <= max(width - 1, 1)
    assert told.isprintable()


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """Return what a run shows on a terminal."""
    variables = {"PYTHONIOENCODING": "utf-8", **environment}
    shown, _ = run_on_terminal([sys.executable, "-c", RUN, *arguments], environment=variables)
    return shown


def test_a_terminal_sees_one_line_that_is_gone_at_the_end() -> None:
    erase = "\r\x1b[K"

    assert on_a_terminal() == (
        f"{erase}························  0/4 papers{erase}1/4 papers  waiting 0:02: it is busy{erase}done\r\n"
    )
    assert "........................  0/4" in on_a_terminal(PYTHONIOENCODING="ascii")


def test_quiet_runs_and_terminals_without_a_cursor_see_nothing() -> None:
    assert on_a_terminal("--quiet") == "done\r\n"
    assert on_a_terminal(TERM="dumb") == "done\r\n"


def test_what_is_no_terminal_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    with cli.show_progress(Output()) as show:
        assert show is None
    assert isinstance(sys.stderr, io.StringIO)
    assert sys.stderr.getvalue() == ""
