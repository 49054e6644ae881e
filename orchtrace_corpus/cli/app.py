"""Run a command with Typer, and turn Typer's errors into messages and exit codes."""

import sys
from collections.abc import Sequence

import typer

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.commands import typer_commands
from orchtrace_corpus.base.commands.declarations import CommandGroup, command_spec
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.cli.table import program

# Typer raises Click's errors, and some versions of Typer have a Click of their own inside. Both are reached through
# a class that Typer exports: its base classes are `UsageError` and `ClickException`.
_UsageError: Any
_ClickException: Any
_UsageError, _ClickException = typer.BadParameter.__mro__[1:3]


def run(arguments: list[str], output: Output) -> int:
    """Run a command and return its exit code; errors in its use are reported on standard error."""
    group = program(output.program)
    try:
        code = typer_commands.run(group, arguments, output)
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except _ClickException as error:
        return _report_error(error, group, arguments, output)
    if code == ExitCode.INTERRUPTED:
        output.tell("corpus: interrupted")
    return int(code or ExitCode.DONE)


def _report_error(error: Any, group: CommandGroup, arguments: list[str], output: Output) -> int:
    """Report an error of Typer with a hint if one is known, and return its exit code."""
    option = str(getattr(error, "option_name", ""))  # empty if the error is about no option
    for parameter in command_spec(group.callback, output.program).parameters:
        if option in parameter.names:
            form = f"{option} {parameter.form}" if parameter.word_count else option
            hint = f"write it before the command: {output.program} {form} COMMAND"
            output.tell(f"corpus: {option} is a global option; {hint}")
            return ExitCode.USAGE
    error.show(file=sys.stderr)
    hint = _hint(error, option, group, arguments, output.program)
    if hint:
        output.tell(hint)
    return int(error.exit_code)


def _hint(error: Any, option: str, group: CommandGroup, arguments: list[str], program_name: str) -> str:
    """Return a hint about an error, the first that applies; empty if none does."""
    words_without_option = []
    previous = ""
    for word in arguments:
        if not previous.startswith("-"):
            words_without_option.append(word)
        previous = word
    context: Any = getattr(error, "ctx", None)
    parameters = context.command.params if context else ()
    takes_filters = any("--where" in parameter.opts for parameter in parameters)
    has_filter = any(word[:1] != "-" and not {*"=<>~"}.isdisjoint(word) for word in words_without_option)
    if not option and takes_filters and has_filter:
        return "A filter needs --where in front of it."
    if not context:
        form = _form_of_several_words(group, program_name, words_without_option, option)
        if form:
            return f"Write: {form}"
    is_known_option = any(option in parameter.opts for parameter in parameters)
    if option and _takes_fields(parameters) and not is_known_option:
        return f"Fields are set without an option: {context.command_path} KEY field=value"
    if type(error) is _UsageError:
        form = _output_form(error.ctx)
        if form:
            return f"Name where to write with -o: {form}"
    return ""


def _form_of_several_words(group: CommandGroup, program_name: str, words: Sequence[str], option: str) -> str:
    """Return a command with an option, if a value of the option has several words; else an empty text."""
    names = [word for word in words if word in group.names()]
    if not names:
        return ""
    command = group.find(names[0])
    function = command.load() if command else None
    if function is None or isinstance(function, CommandGroup):
        return ""
    path = f"{program_name} {names[0]}"
    for parameter in command_spec(function, path).parameters:
        if parameter.word_count > 1 and option in parameter.names:
            return f"{path} {option} {parameter.form}"
    return ""


def _takes_fields(parameters: Sequence[Any]) -> bool:
    """Return True if a command takes fields and their values as arguments."""
    for parameter in parameters:
        if parameter.param_type_name == "argument" and "FIELD=VALUE" in (parameter.metavar or ""):
            return True
    return False


def _output_form(ctx: Any) -> str:
    """Return a command with `-o` and the form of its value, if it takes `-o` and no arguments; else an empty text."""
    parameters = ctx.command.params if ctx else ()
    if any(parameter.param_type_name == "argument" for parameter in parameters):
        return ""
    for parameter in parameters:
        if "-o" in parameter.opts:
            return f"{ctx.command_path} -o {parameter.metavar}"
    return ""
