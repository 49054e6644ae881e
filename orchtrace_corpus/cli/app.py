"""Run a command by Typer, and make messages and exit codes of its errors."""

import sys
from collections.abc import Sequence

import typer

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.commands import typer_commands
from orchtrace_corpus.base.commands.declarations import CommandGroup, command_spec
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.cli.table import program

# Typer raises Click's errors, and has at times carried a Click of its own inside: reach the base
# of them through a class that Typer exports.
_UseError: Any
_ClickError: Any
_UseError, _ClickError = typer.BadParameter.__mro__[1:3]


def _output_form(ctx: Any) -> str:
    """Return the command with `-o` if it takes `-o` and no arguments; else an empty text."""
    parameters = ctx.command.params if ctx else ()
    if any(parameter.param_type_name == "argument" for parameter in parameters):
        return ""
    forms = (f"{ctx.command_path} -o {parameter.metavar}" for parameter in parameters if "-o" in parameter.opts)
    return next(forms, "")


def _takes_fields(parameters: Sequence[Any]) -> bool:
    """Return True if a command takes fields and their values as words."""
    arguments = (parameter for parameter in parameters if parameter.param_type_name == "argument")
    return any("FIELD=VALUE" in (argument.metavar or "") for argument in arguments)


def _form_of_several(group: CommandGroup, program_name: str, words: Sequence[str], option: str) -> str:
    """Return the form of an option that takes several words; empty for another option."""
    name = next((word for word in words if word in group.names()), "")
    command = group.find(name)
    function = command.find() if command else group
    if isinstance(function, CommandGroup):
        return ""
    path = f"{program_name} {name}"
    several = (parameter for parameter in command_spec(function, path).parameters if parameter.word_count > 1)
    return next((f"{path} {option} {parameter.form}" for parameter in several if option in parameter.names), "")


def run(arguments: list[str], output: Output) -> int:
    """Run a command and return its exit code; errors of use go to standard error."""
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
        # Words without an option in front of them.
        bare = [word for before, word in zip(["", *arguments], arguments, strict=False) if not before.startswith("-")]
        context: Any = getattr(error, "ctx", None)
        parameters = context.command.params if context else ()
        takes_filters = any("--where" in parameter.opts for parameter in parameters)
        has_filter = any(word[:1] != "-" and not {*"=<>~"}.isdisjoint(word) for word in bare)
        if not option and takes_filters and has_filter:
            output.tell("A filter needs --where in front of it.")
        elif not context and (form := _form_of_several(group, output.program, bare, option)):
            output.tell(f"Write: {form}")
        elif option and _takes_fields(parameters) and not any(option in parameter.opts for parameter in parameters):
            output.tell(f"Fields are set without an option: {context.command_path} KEY field=value")
        elif type(error) is _UseError and (form := _output_form(error.ctx)):
            output.tell(f"Name where to write with -o: {form}")
        return int(error.exit_code)
    if code == ExitCode.INTERRUPTED:
        output.tell("corpus: interrupted")
    return int(code or ExitCode.DONE)
