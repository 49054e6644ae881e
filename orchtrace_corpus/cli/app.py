"""The command table. A command's module is imported when the command is called, not before."""

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from orchtrace_corpus import __version__
from orchtrace_corpus.cli.output import Globals, Output
from orchtrace_corpus.errors import CommandUseError
from orchtrace_corpus.findings import quote, suggestion


class Command(NamedTuple):
    """A line of the table: the module in this package whose `app` is the command, and its help line."""

    module: str
    help: str


COMMANDS: dict[str, dict[str, Command]] = {
    "Look": {
        "stats": Command("stats", "Count the corpus: one page, one field, or two fields crossed."),
        "gaps": Command("gaps", "Show which cells of two axes are empty or sparse."),
        "list": Command("listing", "List papers, or exclusions, that pass filters."),
        "show": Command("show", "Show records by key, arXiv id, DOI or URL."),
        "search": Command("search", "Find records by words."),
        "terms": Command("terms", "Show the fields and the terms they are tagged with."),
    },
    "Keep true": {
        "check": Command("check", "Run everything that CI asks, in one process."),
        "validate": Command("validate", "Report every mistake in the data, at its line."),
        "fmt": Command("fmt", "Write the data files in canonical form."),
        "build": Command("build", "Regenerate every generated file."),
        "readme": Command("readme", "Regenerate the list and the tables in README.md."),
        "schema": Command("schema", "Write the JSON Schemas of the data files, for editors."),
        "audit": Command("audit", "Draw a sample for a second reader, and measure how far readers agree."),
        "rule": Command("rule", "Explain a rule: why it exists, what breaks it, and the same mended."),
    },
    "Change": {
        "init": Command("init", "Start a corpus of your own, with your own axes."),
    },
}
"""All commands by name, in the groups in which `--help` shows them."""

GLOBAL_OPTIONS = {"--root": " DIR", "--quiet": "", "--no-color": "", "--version": ""}
"""The options that stand before the command, with the form of their value."""

_BY_NAME = {name: command for group in COMMANDS.values() for name, command in group.items()}


class LazyGroup(TyperGroup):
    """A group that knows names and help lines of its commands, and imports one only to run it.

    Contexts and formatters are `Any`: their classes belong to the Click that Typer brings.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        del ctx
        return list(_BY_NAME)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if there is none of that name."""
        del ctx
        command = _BY_NAME.get(cmd_name)
        if command is None:
            return None
        module = import_module(f"orchtrace_corpus.cli.{command.module}")
        return typer.main.get_command(module.app)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command to run, or name the nearest."""
        if args[0] not in _BY_NAME and not args[0].startswith("-"):
            hint = suggestion(args[0], list(_BY_NAME))
            raise CommandUseError(f"there is no command {quote(args[0])}{hint}", "See corpus --help.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the table's help lines, group by group."""
        del ctx
        for group, commands in COMMANDS.items():
            with formatter.section(group):
                formatter.write_dl([(name, command.help) for name, command in commands.items()])


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each command has its own --help with examples.",
)


def _print_version(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.obj.write(f"corpus {__version__}\n")
        raise typer.Exit


@app.callback()
def corpus(
    ctx: typer.Context,
    root: Annotated[
        str, typer.Option(metavar="DIR", help="The corpus's folder (else the nearest above, else the bundled one).")
    ] = "",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Leave out remarks on standard error.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours (also: NO_COLOR).")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Keep a tagged literature corpus true: count it, query it, find its gaps and its mistakes."""
    del version
    output: Output = ctx.obj
    output.quiet = quiet
    output.color = output.color and not no_color
    ctx.obj = Globals(output, root)
