"""Typer's commands, made of what commands declare of themselves when they are called, and not before."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, ClassVar, TypeAlias

import typer
from typer.core import TyperGroup

from orchtrace_corpus.base.commands.declarations import (
    MORE,
    Argument,
    Command,
    CommandGroup,
    CommandTable,
    Context,
    Option,
    declaring,
    find_command,
)
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote, suggestion


def typer_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose declarations are Typer's."""
    source = declaring(function)
    signature = inspect.signature(source)

    @wraps(source)
    def run(*arguments: Any, **values: Any) -> Any:
        return function(*arguments, **values)

    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[one.replace(annotation=_annotation(one.annotation)) for one in signature.parameters.values()]
    )
    run.__annotations__ = {}
    return run


def _annotation(annotation: Any) -> Any:
    if annotation is Context:
        return typer.Context
    option = next(iter(getattr(annotation, "__metadata__", ())), None)
    if not isinstance(option, Option):
        return annotation
    # An option is named after its parameter unless it has names; the first that Typer takes is the default.
    made = typer.Argument if isinstance(option, Argument) else typer.Option
    return Annotated[annotation.__origin__, made(*option.names, **option.settings)]


Adapt: TypeAlias = Callable[[str, Any], str]
"""Changes a help text by what a command finds in its context."""


def load(command: Command, adapt: Adapt | None = None) -> Any:
    """Import a command, as Click runs it; `adapt` changes its help before it is shown."""
    found = command.find()
    if isinstance(found, CommandGroup):
        made = group(found.commands, adapt)
        made.callback()(found.callback)
        return typer.main.get_command(made)
    if not isinstance(found, typer.Typer):
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command()(found)
        found = app
    for registered in found.registered_commands:
        if registered.callback is not None:
            registered.callback = typer_function(registered.callback)
    runnable: Any = typer.main.get_command(found)
    if adapt is not None:
        write = runnable.format_help_text

        def format_help_text(ctx: Any, formatter: Any) -> None:
            runnable.help = adapt(runnable.help or "", ctx.obj)
            write(ctx, formatter)

        runnable.format_help_text = format_help_text
    return runnable


class LazyGroup(TyperGroup):
    """A group of commands; `table` gives them under the headings of its `--help`.

    Contexts and formatters are `Any`: their classes belong to the Click that Typer brings.
    """

    table: ClassVar[CommandTable] = {}
    adapt: ClassVar[Adapt | None] = None

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        del ctx
        return [name for commands in self.table.values() for name in commands]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if there is none of that name."""
        found = find_command(self.table, cmd_name)
        if found is None:
            return None
        command = load(found, type(self).adapt)
        known = ctx.find_root().obj if ctx else None  # the output; the session once global options are read
        output = getattr(known, "output", known)
        if isinstance(output, Output) and command.help:
            command.help = output.renamed(command.help)
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command to run, or name the nearest."""
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-"):
            message = f"there is no command {quote(args[0])}{suggestion(args[0], names)}"
            raise CommandUseError(message, f"See {ctx.command_path} --help.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the table's help lines, heading by heading; of further commands the names."""
        del ctx
        for heading, commands in self.table.items():
            with formatter.section(heading):
                if heading == MORE:
                    formatter.write_text(", ".join(commands))
                else:
                    formatter.write_dl([(name, command.help) for name, command in commands.items()])


def group(commands: CommandTable, adapt: Adapt | None = None, **settings: Any) -> typer.Typer:
    """A group with the commands of a table, and further settings of Typer; its callback is its help."""

    class Commands(LazyGroup):
        table = commands

    Commands.adapt = staticmethod(adapt) if adapt is not None else None
    return typer.Typer(
        cls=Commands,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        **{"add_completion": False, **settings},
    )
