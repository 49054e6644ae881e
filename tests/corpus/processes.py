"""Forks of this process, to be killed or on a terminal, at a tenth of an interpreter's cost; and what commands import."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from multiprocessing.process import BaseProcess

from orchtrace_corpus.__main__ import main
from tests.conftest import ROOT

# From the one that loads least; each is also held to what those before it have loaded.
LIGHT = ("stats", "check data", "check data --format github", "list", "build readme --check", "terms", "gaps", "check")
OTHERS = ("export --help", "import --help", "export csv", "export bibtex", "links --help", "fetch --help")
LOADED = """
import sys
from orchtrace_corpus.cli.main import run

codes, loaded = [], []
for words in sys.argv[1:]:
    codes.append(run(words.split()))
    loaded.append(list(sys.modules))
import json
print(json.dumps([codes, loaded]))
"""


def fork(
    work: Callable[..., object],
    *arguments: object,
    files: Sequence[int] = (),
    terminal: bool = False,
    **settings: str,
) -> BaseProcess:
    """Start work in a fork.

    Args:
        work: What to call.
        arguments: What it takes.
        settings: Further variables of its environment.
        files: Its standard input, output and error; those not given are the null device.
        terminal: Whether its standard input becomes its own terminal, so that Ctrl-C reaches it.
    """
    context = multiprocessing.get_context("fork")
    child = context.Process(target=_begin, args=(work, arguments, files, terminal, settings), daemon=True)
    with warnings.catch_warnings(action="ignore"):  # of threads: they are servers, and work holds nothing of theirs
        child.start()
    return child


def _begin(
    work: Callable[..., object],
    arguments: Sequence[object],
    files: Sequence[int],
    terminal: bool,
    settings: dict[str, str],
) -> None:
    os.environ.update(settings)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
    if terminal:
        import fcntl
        import termios

        os.setsid()
        fcntl.ioctl(files[0], termios.TIOCSCTTY, 0)
    null = os.open(os.devnull, os.O_RDWR)
    for number, file in enumerate((*files, null, null, null)[:3]):
        os.dup2(file, number)
    streams = (os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1, errors="backslashreplace"))
    sys.stdin, sys.stdout, sys.stderr = streams
    work(*arguments)


def command(*arguments: str) -> None:
    """Be `corpus` with these arguments. To be called in a fork."""
    sys.argv[1:] = arguments
    main()


def killed(child: BaseProcess, number: int) -> int | None:
    """Send a signal to a fork, and give its exit code."""
    assert child.pid is not None
    os.kill(child.pid, number)
    child.join(30)
    return child.exitcode


@cache
def loaded() -> dict[str, set[str]]:
    """The modules in memory after each command, run one after the other in an interpreter of their own."""
    commands = (*LIGHT, *OTHERS)
    words = [sys.executable, "-c", LOADED, *commands]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    codes, modules = json.loads(done.stdout.splitlines()[-1])
    assert codes == [0] * len(commands), done.stderr
    return dict(zip(commands, map(set, modules), strict=True))
