"""The one place where a command's outcome becomes an exit code."""

import gc
import os
import sys
from typing import Any, NoReturn

import typer

from orchtrace_corpus.cli.app import GLOBAL_OPTIONS, app
from orchtrace_corpus.cli.output import Output
from orchtrace_corpus.errors import CorpusError, ExitCode

# Typer raises Click's errors, and has at times carried a Click of its own inside: reach the base
# of them through a class that Typer exports.
_ClickError: Any = typer.BadParameter.__mro__[2]


def main() -> NoReturn:
    """Run the command that the process was started with, and exit.

    The process ends at once: nothing of it outlives its output, and taking the interpreter apart
    would cost as much again as the interpreter's start.
    """
    # Records form no cycles, and looking for some among many records takes longer than checking them.
    gc.disable()
    code = run(sys.argv[1:])
    if sys.stderr is not None:
        sys.stderr.flush()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code; whatever goes wrong is told on standard error."""
    output = Output()
    try:
        code = _run(arguments, output)
        output.flush()
    except SystemExit:  # how Typer ends when its help meets a closed pipe
        output.abandon()
        code = ExitCode.DONE
    except CorpusError as error:
        output.tell(f"corpus: {error}")
        code = error.exit_code
    except KeyboardInterrupt:
        output.tell("corpus: interrupted")
        code = ExitCode.INTERRUPTED
    except Exception as error:  # the one boundary: nothing else may catch what it does not expect
        output.tell(_report_bug(error))
        code = ExitCode.BUG
    return int(code)


def _run(arguments: list[str], output: Output) -> int:
    try:
        code = typer.main.get_command(app).main(args=arguments, prog_name="corpus", standalone_mode=False, obj=output)
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except _ClickError as error:
        option = str(getattr(error, "option_name", ""))
        if option in GLOBAL_OPTIONS:
            form = f"corpus {option}{GLOBAL_OPTIONS[option]} COMMAND"
            output.tell(f"corpus: {option} is a global option; write it before the command: {form}")
            return ExitCode.USAGE
        error.show(file=sys.stderr)
        if "unexpected extra argument" in str(error) and not set("=<>~").isdisjoint(str(error)):
            output.tell("A filter needs --where in front of it.")
        return int(error.exit_code)
    if code == ExitCode.INTERRUPTED:
        output.tell("corpus: interrupted")
    return int(code or ExitCode.DONE)


def _report_bug(error: Exception) -> str:
    import tempfile
    import traceback

    from orchtrace_corpus import __version__

    name = type(error).__name__
    with tempfile.NamedTemporaryFile("w", prefix="corpus-bug-", suffix=".txt", delete=False, encoding="utf-8") as file:
        file.write(f"orchtrace-corpus {__version__}, Python {sys.version}, {os.name}\n\n")
        file.write("".join(traceback.format_exception(error)))
    return f"corpus: a bug of ours ({name}); please report it with the traceback in {file.name}"
