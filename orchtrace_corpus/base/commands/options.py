"""Options that commands of `corpus` and of `trace` share."""

from orchtrace_corpus.base.annotations import Annotated, TypeAlias
from orchtrace_corpus.base.commands.declarations import Option
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.findings import FindingsFormat

OutputFormat: TypeAlias = Annotated[Format, Option("--format", "-f", help="The output format.")]
Check: TypeAlias = Annotated[
    bool, Option("--check", help="Write nothing; show the changes, and exit with 1 if there are any.")
]
DryRun: TypeAlias = Annotated[bool, Option("--dry-run", help="Write nothing; show what would change.")]
Strict: TypeAlias = Annotated[bool, Option("--strict", help="Treat warnings as errors.")]
FindingsForm: TypeAlias = Annotated[FindingsFormat, Option("--format", "-f", help="The output format.")]


def refuse_together(**is_given_by_name: bool) -> None:
    """Raise a `CommandUseError` if more than one of several options is given.

    Each keyword is the name of an option, with underscores, and True if the option is given.
    """
    given = [f"--{name.replace('_', '-')}" for name, is_given in is_given_by_name.items() if is_given]
    if len(given) > 1:
        raise CommandUseError(f"{' and '.join(given)} contradict each other", "Give one of them.")


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in a comma-separated list; raise a `CommandUseError` if one is empty."""
    names = tuple(name.strip() for name in text.split(","))
    if "" in names:
        raise CommandUseError("a name is missing between commas")
    return names
