"""Options that several commands share, under one name and one meaning."""

from typing import Annotated, TypeAlias

import typer

from orchtrace_corpus.errors import CommandUseError
from orchtrace_corpus.render import Format
from orchtrace_corpus.render.findings import FindingsFormat

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
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Write nothing; show what would change.")]
Strict: TypeAlias = Annotated[bool, typer.Option("--strict", help="Let warnings fail, too.")]
FindingsForm: TypeAlias = Annotated[FindingsFormat, typer.Option("--format", "-f", help="The form of the output.")]
Offline: TypeAlias = Annotated[bool, typer.Option("--offline", help="Ask nobody; answer from what is kept.")]
Refresh: TypeAlias = Annotated[bool, typer.Option("--refresh", help="Ask again for what was answered of late.")]
ArxivUrl: TypeAlias = Annotated[
    str,
    typer.Option("--arxiv-url", metavar="URL", help="Ask a mirror (also: ORCHTRACE_ARXIV_URL).", show_default=False),
]
NoFetch: TypeAlias = Annotated[
    bool, typer.Option("--no-fetch", help="Ask no service; take what the options say.", show_default=False)
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; take what is proposed.")]
DespiteTitle: TypeAlias = Annotated[
    bool,
    typer.Option("--despite-title", help="It is another work than the one whose title is nearly the same."),
]
OtherTags: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="FIELD=VALUE", help="A tag by its field, as an option below (repeatable)."),
]
Key: TypeAlias = Annotated[str, typer.Option("--key", metavar="KEY", help="The paper's key (else made of the title).")]
Title: TypeAlias = Annotated[str, typer.Option("--title", metavar="TEXT", help="The title.")]
Authors: TypeAlias = Annotated[
    str, typer.Option("--authors", metavar="NAMES", help='"Family, Given; Family, Given"; others for those left out.')
]
Year: TypeAlias = Annotated[int, typer.Option("--year", metavar="YEAR", help="The year.", show_default=False)]
Venue: TypeAlias = Annotated[str, typer.Option("--venue", metavar="TEXT", help='The venue, such as "NeurIPS 2025".')]
Affiliation: TypeAlias = Annotated[
    str, typer.Option("--affiliation", metavar="TEXT", help="Where the authors are at home.")
]
Urls: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--url", metavar="URL", help="A further address, such as that of the code (repeatable)."),
]
Summary: TypeAlias = Annotated[
    str, typer.Option("--summary", metavar="TEXT", help="One sentence of your own (else to be written later).")
]
Notes: TypeAlias = Annotated[
    str, typer.Option("--notes", metavar="TEXT", help="One sentence that a user of the record should know.")
]
Reason: TypeAlias = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why it is left out, in one sentence.")
]
Screened: TypeAlias = Annotated[
    str, typer.Option("--screened", metavar="DATE", help="The day of screening, YYYY-MM-DD (else today).")
]
EvidenceNote: TypeAlias = Annotated[
    str,
    typer.Option("--evidence", metavar="NOTE", help="What in the source supports the tags."),
]
EvidenceSource: TypeAlias = Annotated[
    str, typer.Option("--evidence-source", metavar="URL", help="Where that is to be seen (else the paper's address).")
]
EvidenceTags: TypeAlias = Annotated[
    str,
    typer.Option("--evidence-tags", metavar="A,B,...", help="The fields that it supports (else the axes tagged)."),
]
IncludeEmpty: TypeAlias = Annotated[bool, typer.Option("--include-empty", help="Show terms that no record has.")]
Sort: TypeAlias = Annotated[
    str, typer.Option("--sort", metavar="COLUMN", help="Sort by a column; -COLUMN for falling order.")
]
Columns: TypeAlias = Annotated[str, typer.Option("--columns", metavar="A,B,...", help="Which columns, in which order.")]


def refuse_together(**given: bool) -> None:
    """Refuse options of which each excludes the others, by their names with underscores.

    Raises:
        CommandUseError: More than one is given.
    """
    both = [f"--{name.replace('_', '-')}" for name, is_given in given.items() if is_given]
    if len(both) > 1:
        raise CommandUseError(f"{' and '.join(both)} contradict each other", "Give one of them.")


def split_names(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list.

    Raises:
        CommandUseError: There is an empty name.
    """
    names = tuple(name.strip() for name in text.split(","))
    if "" in names:
        raise CommandUseError("a name is missing between commas")
    return names
