"""Typer's way to run a command of the table: its errors become messages and exit codes here."""

import sys
from typing import Any

import typer

from orchtrace_corpus.base.commands import typer_commands
from orchtrace_corpus.base.commands.declarations import command_spec
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.cli.table import program

# Typer raises Click's errors, and has at times carried a Click of its own inside: reach the base
# of them through a class that Typer exports.
_UseError: Any
_ClickError: Any
_UseError, _ClickError = typer.BadParameter.__mro__[1:3]


def _output_form(ctx: Any) -> str:
    """How a command that takes no words is told where to write; empty for one without `-o`, or with words."""
    params = ctx.command.params if ctx else ()
    if any(one.param_type_name == "argument" for one in params):
        return ""
    return next((f"{ctx.command_path} -o {one.metavar}" for one in params if "-o" in one.opts), "")


def run(arguments: list[str], output: Output) -> int:
    """Run a command and return its exit code; errors of use are told on standard error."""
    group = program(output.program)
    try:
        code = typer_commands.run(group, arguments, output)
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except _ClickError as error:
        option = str(getattr(error, "option_name", ""))
        for parameter in command_spec(group.callback, output.program).parameters:
            if option in parameter.names:
                form = f"{option} {parameter.form}" if parameter.word_count else option
                place = f"write it before the command: {output.program} {form} COMMAND"
                output.tell(f"corpus: {option} is a global option; {place}")
                return ExitCode.USAGE
        error.show(file=sys.stderr)
        # The words that have no option in front of them.
        bare = [word for before, word in zip(["", *arguments], arguments, strict=False) if not before.startswith("-")]
        context = getattr(error, "ctx", None)
        takes_filters = any("--where" in one.opts for one in (context.command.params if context else ()))
        is_like_one = any(word[:1] != "-" and not {*"=<>~"}.isdisjoint(word) for word in bare)
        if not option and takes_filters and is_like_one:
            output.tell("A filter needs --where in front of it.")
        elif type(error) is _UseError and (form := _output_form(error.ctx)):
            output.tell(f"Name where to write with -o: {form}")
        return int(error.exit_code)
    if code == ExitCode.INTERRUPTED:
        output.tell("corpus: interrupted")
    return int(code or ExitCode.DONE)
