"""Options that several commands on a corpus share, with the same name and meaning in each."""

from enum import StrEnum

from orchtrace_corpus.base.annotations import Annotated, TypeAlias
from orchtrace_corpus.base.commands.declarations import Argument, Option, Provider
from orchtrace_corpus.corpus.cli import offers
from orchtrace_corpus.corpus.model.records import ReadingName


def option(name: str, metavar: str, text: str, provider: Provider | None = None) -> Option:
    """Declare an option with a value. `metavar` is the form of the value, `text` the help, `provider` completes it."""
    return Option(name, metavar=metavar, help=text, offers=provider)


def argument(metavar: str, text: str, provider: Provider | None = None) -> Argument:
    """Declare an argument, with parameters as for `option`. Its help shows no default."""
    return Argument(metavar=metavar, help=text, show_default=False, offers=provider)


class ReadingOrder(StrEnum):
    """The orders in which candidates are shown."""

    DATE = "date"
    LIKELY = "likely"


class ExtraRecords(StrEnum):
    """The records that `--with` adds to the pool for one command."""

    CANDIDATES = "candidates"


class Destination(StrEnum):
    """The places that papers can be added to."""

    POOL = "pool"
    CANDIDATES = "candidates"


To: TypeAlias = Annotated[Destination, Option("--to", help="Where to add them (default: pool).", show_default=False)]
Where: TypeAlias = Annotated[
    list[str] | None,
    Option(
        "--where",
        "-w",
        metavar="FILTER",
        help="Only papers that match: field=value, !=, <, <=, >, >=, ~ (contains), field= (no value); repeatable.",
        offers=offers.filters,
    ),
]
Sort: TypeAlias = Annotated[
    str, option("--sort", "COLUMN", "Sort by a column; -COLUMN for descending order.", offers.fields)
]
Columns: TypeAlias = Annotated[
    str, option("--columns", "A,B,...", "The columns to show, in this order.", offers.fields)
]
Reading: TypeAlias = Annotated[
    ReadingName, Option("--reading", help="Use the published tags, or those that readers of the sources agree on.")
]
Limit: TypeAlias = Annotated[int | None, Option("--limit", "-n", min=1, help="Show at most this many rows.")]
Order: TypeAlias = Annotated[
    ReadingOrder | None,
    Option("--order", help="The order of reading: newest first, or most likely to be included first."),
]
Caption: TypeAlias = Annotated[
    str, option("--caption", "TEXT", "With -f latex: the caption (default: fields and filters in words).")
]
With: TypeAlias = Annotated[
    ExtraRecords | None,
    Option("--with", help="Show what including candidates would change, and which candidates change it."),
]
Offline: TypeAlias = Annotated[bool, Option("--offline", help="Make no requests; use stored answers.")]
Refresh: TypeAlias = Annotated[bool, Option("--refresh", help="Ask again, even if a recent answer is stored.")]
ArxivUrl: TypeAlias = Annotated[
    str, Option("--arxiv-url", metavar="URL", help="Use a mirror (also: ORCHTRACE_ARXIV_URL).", show_default=False)
]
Title: TypeAlias = Annotated[str, option("--title", "TEXT", "The title.")]
