"""Plain invocations, without Typer: importing it takes longer than what most commands do.

The words are read by the same declarations that Typer reads. An invocation that they do not make plain, such as a
wrong one or a `--help`, is left to Typer, and so are commands that Typer itself declares.
"""

from collections.abc import Sequence
from types import FunctionType
from typing import Any, NamedTuple

from orchtrace_corpus.base.commands.declarations import CommandGroup, CommandTable, find_command, parse
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.cli.table import COMMANDS


class _Context(NamedTuple):
    """What a command needs of a context: the global options, of which none was given."""

    obj: Any


def run(arguments: Sequence[str], output: Output) -> int | None:
    """Run an invocation and return its exit code; None if Typer is needed for it."""
    commands: CommandTable = COMMANDS
    for number, word in enumerate(arguments, 1):
        command = find_command(commands, word)
        found = command.find() if command is not None else None
        if isinstance(found, CommandGroup):
            commands = found.commands
            continue
        # Where Typer is there already, it was needed to declare the command.
        if not isinstance(found, FunctionType):
            return None
        values = parse(found, arguments[number:])
        return None if values is None else int(found(_Context(Session(output, "")), **values))
    return None
