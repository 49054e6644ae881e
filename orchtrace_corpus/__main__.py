"""The entry points: `corpus`, also as `python -m orchtrace_corpus`, and `orchtrace`."""

import gc
import os
import sys

from orchtrace_corpus.base.annotations import NoReturn


def trace() -> NoReturn:
    """Run `orchtrace`, whose commands are those of `corpus trace`."""
    main("orchtrace")


def main(name: str = "corpus") -> NoReturn:
    """Run the command with the arguments of the process, and end the process.

    Args:
        name: The name of the program: `corpus` or `orchtrace`.
    """
    # Records form no cycles, and the search for cycles among many records takes longer than checking them.
    gc.disable()
    sys.unraisablehook = _report_unraisable
    from orchtrace_corpus.cli.main import run

    code = run(sys.argv[1:], name)
    if sys.stderr is not None:
        sys.stderr.flush()
    # The interpreter's own exit frees all objects, which would take as long as its start; no command needs it.
    os._exit(code)


def _report_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    """Report an error in a finaliser as Python does, except that of an HTTP response that Ctrl-C left incomplete.

    `http.client.HTTPResponse` cannot be closed before its constructor has run, and Ctrl-C may come during that.
    """
    if type(unraisable.object).__name__ != "HTTPResponse":
        sys.__unraisablehook__(unraisable)


if __name__ == "__main__":
    main()
