"""`corpus`, and `python -m orchtrace_corpus`, which is the same."""

import gc
import os
import sys

from orchtrace_corpus.base.annotations import NoReturn


def trace() -> NoReturn:
    """Run `orchtrace`, which is `corpus trace` under a name of its own."""
    main("orchtrace")


def main(name: str = "corpus") -> NoReturn:
    """Run the command that the process was started with, and exit.

    The process ends at once: nothing of it outlives its output, and taking the interpreter apart
    would cost as much again as the interpreter's start.

    Args:
        name: The name under which it was started: `corpus`, or `orchtrace`.
    """
    # Records form no cycles, and looking for some among many records takes longer than checking them; the modules
    # that a command imports are there to stay.
    gc.disable()
    sys.unraisablehook = _report_unraisable
    from orchtrace_corpus.cli.main import run

    code = run(sys.argv[1:], name)
    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(code)


def _report_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    """Report an error in a finaliser as Python does, except that of an HTTP response that an interrupt left half made.

    `http.client.HTTPResponse` cannot be closed before its constructor has run, and an interrupt may come just there.
    """
    if type(unraisable.object).__name__ != "HTTPResponse":
        sys.__unraisablehook__(unraisable)


if __name__ == "__main__":
    main()
