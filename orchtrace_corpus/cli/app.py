"""Typer's way to run a command of the table: its errors become messages and exit codes here."""

import sys
from typing import Annotated, Any, TypeAlias

import typer

from orchtrace_corpus.base import __version__
from orchtrace_corpus.base.commands.lazy import group
from orchtrace_corpus.base.commands.output import CORPUS, Output
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.cli.table import COMMANDS

# Typer raises Click's errors, and has at times carried a Click of its own inside: reach the base
# of them through a class that Typer exports.
_UseError: Any
_ClickError: Any
_UseError, _ClickError = typer.BadParameter.__mro__[1:3]

GLOBAL_OPTIONS = {"--root": " DIR", "--quiet": "", "--no-color": "", "--version": ""}
"""The options that stand before the command, with the form of their value."""


_EPILOG = "Each command has its own --help with examples."


def _adapt(text: str, known: object) -> str:
    """A help text in the words of the corpus at hand, where global options are known."""
    if not isinstance(known, Session):
        return text
    from orchtrace_corpus.cli.examples import adapted

    return adapted(text, known)


app = group(COMMANDS, _adapt, pretty_exceptions_enable=False, epilog=_EPILOG, add_completion=True)


def _print_version(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.obj.write(f"{ctx.obj.program} {__version__}\n")
        raise typer.Exit


Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Suppress notes on standard error.")]
NoColor: TypeAlias = Annotated[bool, typer.Option("--no-color", help="No colours (also: NO_COLOR).")]
Version: TypeAlias = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
]


@app.callback()
def corpus(
    ctx: typer.Context,
    root: Annotated[
        str,
        typer.Option(
            metavar="DIR", help="The corpus folder (default: the nearest one above, else the bundled corpus)."
        ),
    ] = "",
    quiet: Quiet = False,
    no_color: NoColor = False,
    version: Version = False,
) -> None:
    """Maintain a tagged literature corpus: count it, query it, and find its gaps and errors."""
    del version
    output: Output = ctx.obj
    output.quiet = quiet
    output.color = output.color and not no_color
    ctx.obj = Session(output, root)


def _orchtrace() -> typer.Typer:
    """The group `trace` as a program of its own, with the global options that concern it."""
    from orchtrace_corpus.trace.cli import group as traces

    program = group(traces.COMMANDS, pretty_exceptions_enable=False, epilog=_EPILOG, add_completion=True)

    @program.callback()
    def orchtrace(
        ctx: typer.Context, quiet: Quiet = False, no_color: NoColor = False, version: Version = False
    ) -> None:
        """Show where the time and money of runs of agent teams went: read their logs, check, measure, compare.

        \b
        Examples:
          orchtrace doctor
          orchtrace doctor path/to/logs
          orchtrace show path/to/logs
        """
        corpus(ctx, "", quiet, no_color, version)

    return program


def _output_form(ctx: Any) -> str:
    """How a command that takes no words is told where to write; empty for one without `-o`, or with words."""
    params = ctx.command.params if ctx else ()
    if any(one.param_type_name == "argument" for one in params):
        return ""
    return next((f"{ctx.command_path} -o {one.metavar}" for one in params if "-o" in one.opts), "")


def run(arguments: list[str], output: Output) -> int:
    """Run a command and return its exit code; errors of use are told on standard error."""
    try:
        chosen = app if output.program == CORPUS else _orchtrace()
        command = typer.main.get_command(chosen)
        code = command.main(args=arguments, prog_name=output.program, standalone_mode=False, obj=output)
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except _ClickError as error:
        option = str(getattr(error, "option_name", ""))
        if option in GLOBAL_OPTIONS:
            form = f"{output.program} {option}{GLOBAL_OPTIONS[option]} COMMAND"
            output.tell(f"corpus: {option} is a global option; write it before the command: {form}")
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
