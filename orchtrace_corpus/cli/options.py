"""Options that several commands share, under one name and one meaning."""

from typing import Annotated, TypeAlias

import typer

from orchtrace_corpus.errors import CommandUseError
from orchtrace_corpus.render import Format

Where: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--where", "-w", metavar="FILTER", help="Only papers that pass: field=value, !=, <, <=, >, >=, ~ (repeatable)."
    ),
]
OutputFormat: TypeAlias = Annotated[Format, typer.Option("--format", "-f", help="The form of the output.")]
Check: TypeAlias = Annotated[
    bool, typer.Option("--check", help="Write nothing; show what would change, and end with 1 if anything would.")
]
IncludeEmpty: TypeAlias = Annotated[bool, typer.Option("--include-empty", help="Show terms that no record has.")]
Sort: TypeAlias = Annotated[
    str, typer.Option("--sort", metavar="COLUMN", help="Sort by a column; -COLUMN for falling order.")
]
Columns: TypeAlias = Annotated[str, typer.Option("--columns", metavar="A,B,...", help="Which columns, in which order.")]


def split_names(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list.

    Raises:
        CommandUseError: There is an empty name.
    """
    names = tuple(name.strip() for name in text.split(","))
    if "" in names:
        raise CommandUseError("a name is missing between commas")
    return names
