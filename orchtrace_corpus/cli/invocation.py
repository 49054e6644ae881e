"""Runs an invocation by way of Typer, whose errors become messages and exit codes here."""

import sys
from typing import Any

import typer

from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.cli.app import GLOBAL_OPTIONS, app

# Typer raises Click's errors, and has at times carried a Click of its own inside: reach the base
# of them through a class that Typer exports.
_ClickError: Any = typer.BadParameter.__mro__[2]


def run(arguments: list[str], output: Output) -> int:
    """Run a command and return its exit code; errors of use are told on standard error."""
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
