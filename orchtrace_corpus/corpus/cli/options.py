"""Options that several commands on a corpus share, under one name and one meaning."""

from enum import StrEnum
from typing import Annotated, NamedTuple, TypeAlias

from orchtrace_corpus.base.commands.declarations import Argument, Option
from orchtrace_corpus.base.commands.options import DryRun
from orchtrace_corpus.corpus.model.records import ReadingName
from orchtrace_corpus.corpus.model.tagging import OPTIONAL_FIELDS


def option(name: str, metavar: str, text: str) -> Option:
    """An option with a value, the form of the value, and the help."""
    return Option(name, metavar=metavar, help=text)


def argument(metavar: str, text: str) -> Argument:
    """An argument that may be left out, the form of its value, and the help."""
    return Argument(metavar=metavar, help=text, show_default=False)


class ReadingOrder(StrEnum):
    """In which order candidates are shown to be read."""

    DATE = "date"
    LIKELY = "likely"


class Destination(StrEnum):
    """Where papers are taken in."""

    POOL = "pool"
    CANDIDATES = "candidates"


To: TypeAlias = Annotated[
    Destination, Option("--to", help="Add to the pool, or to the candidates, which await a decision.")
]
Where: TypeAlias = Annotated[
    list[str] | None,
    Option(
        "--where",
        "-w",
        metavar="FILTER",
        help="Only papers that match: field=value, !=, <, <=, >, >=, ~ (contains), field= (none); repeatable.",
    ),
]
Reading: TypeAlias = Annotated[
    ReadingName,
    Option("--reading", help="Tags as published, or as readers of the sources agree on them."),
]
Offline: TypeAlias = Annotated[bool, Option("--offline", help="Make no requests; use stored answers.")]
Refresh: TypeAlias = Annotated[bool, Option("--refresh", help="Ask again, even where a recent answer is stored.")]
ArxivUrl: TypeAlias = Annotated[
    str,
    Option("--arxiv-url", metavar="URL", help="Ask a mirror (also: ORCHTRACE_ARXIV_URL).", show_default=False),
]
Yes: TypeAlias = Annotated[bool, Option("--yes", "-y", help="Ask no questions; accept the proposals.")]
OtherTags: TypeAlias = Annotated[
    list[str] | None, option("--tag", "FIELD=VALUE", "A tag by its field, like the options below (repeatable).")
]
Title: TypeAlias = Annotated[str, option("--title", "TEXT", "The title.")]
Reason: TypeAlias = Annotated[str, option("--reason", "TEXT", "Why it is left out, in one sentence.")]
Screened: TypeAlias = Annotated[str, option("--screened", "DATE", "The day of screening, YYYY-MM-DD (default: today).")]


class DetailOptions(NamedTuple):
    """What is said of a paper beside its tags; the fields are those of `intake.drafts.Details`, several in `sets`."""

    key: Annotated[str, option("--key", "KEY", "The paper's key (default: made from the title).")] = ""
    title: Title = ""
    authors: Annotated[
        str, option("--authors", "NAMES", '"Family, Given; Family, Given"; end with others if the list is cut short.')
    ] = ""
    year: Annotated[int, Option("--year", metavar="YEAR", help="The year.", show_default=False)] = 0
    venue: Annotated[str, option("--venue", "TEXT", 'The venue, such as "NeurIPS 2025".')] = ""
    affiliation: Annotated[str, option("--affiliation", "TEXT", "The affiliation of the authors.")] = ""
    urls: Annotated[
        list[str] | None, option("--url", "URL", "A further address, such as that of the code (repeatable).")
    ] = None
    sets: Annotated[
        list[str] | None,
        option("--set", "FIELD=VALUE", f"Another field: {', '.join(OPTIONAL_FIELDS)} (repeatable; a,b for several)."),
    ] = None
    summary: Annotated[str, option("--summary", "TEXT", "One sentence in your own words (may be written later).")] = ""
    notes: Annotated[str, option("--notes", "TEXT", "A remark for users of the record, in one sentence.")] = ""
    note: Annotated[str, option("--evidence", "NOTE", "What in the source supports the tags.")] = ""
    source: Annotated[str, option("--evidence-source", "URL", "The address of that source (default: the paper's).")] = (
        ""
    )
    supported: Annotated[
        str,
        option("--evidence-tags", "A,B,...", "The fields that it supports (default: tagged axes and sourced fields)."),
    ] = ""


class IntakeOptions(NamedTuple):
    """How a paper is looked up, and what is done with it."""

    tags: OtherTags = None
    despite_title: Annotated[
        bool,
        Option("--despite-title", help="Add it although another work has nearly the same title."),
    ] = False
    yes: Yes = False
    dry_run: DryRun = False
    no_fetch: Annotated[
        bool, Option("--no-fetch", help="Make no requests; use only the options.", show_default=False)
    ] = False
    offline: Offline = False
    refresh: Refresh = False
    arxiv_url: ArxivUrl = ""
