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
    Destination, Option("--to", help="Where they go: to the pool, or to the candidates, to be decided on.")
]
Where: TypeAlias = Annotated[
    list[str] | None,
    Option(
        "--where",
        "-w",
        metavar="FILTER",
        help="Only papers that pass: field=value, !=, <, <=, >, >=, ~; code!= has one, code= has none (repeatable).",
    ),
]
Reading: TypeAlias = Annotated[
    ReadingName,
    Option("--reading", help="Tags as published, or as readers of the sources agree on them."),
]
Offline: TypeAlias = Annotated[bool, Option("--offline", help="Ask nobody; answer from what is kept.")]
Refresh: TypeAlias = Annotated[bool, Option("--refresh", help="Ask again for what was answered of late.")]
ArxivUrl: TypeAlias = Annotated[
    str,
    Option("--arxiv-url", metavar="URL", help="Ask a mirror (also: ORCHTRACE_ARXIV_URL).", show_default=False),
]
Yes: TypeAlias = Annotated[bool, Option("--yes", "-y", help="Ask nothing; take what is proposed.")]
OtherTags: TypeAlias = Annotated[
    list[str] | None, option("--tag", "FIELD=VALUE", "A tag by its field, as an option below (repeatable).")
]
Title: TypeAlias = Annotated[str, option("--title", "TEXT", "The title.")]
Reason: TypeAlias = Annotated[str, option("--reason", "TEXT", "Why it is left out, in one sentence.")]
Screened: TypeAlias = Annotated[str, option("--screened", "DATE", "The day of screening, YYYY-MM-DD (else today).")]


class DetailOptions(NamedTuple):
    """What is said of a paper beside its tags; the fields are those of `intake.drafts.Details`, several in `sets`."""

    key: Annotated[str, option("--key", "KEY", "The paper's key (else made of the title).")] = ""
    title: Title = ""
    authors: Annotated[
        str, option("--authors", "NAMES", '"Family, Given; Family, Given"; others for those left out.')
    ] = ""
    year: Annotated[int, Option("--year", metavar="YEAR", help="The year.", show_default=False)] = 0
    venue: Annotated[str, option("--venue", "TEXT", 'The venue, such as "NeurIPS 2025".')] = ""
    affiliation: Annotated[str, option("--affiliation", "TEXT", "Where the authors are at home.")] = ""
    urls: Annotated[
        list[str] | None, option("--url", "URL", "A further address, such as that of the code (repeatable).")
    ] = None
    sets: Annotated[
        list[str] | None,
        option("--set", "FIELD=VALUE", f"Another field: {', '.join(OPTIONAL_FIELDS)} (repeatable; a,b for several)."),
    ] = None
    summary: Annotated[str, option("--summary", "TEXT", "One sentence of your own (else to be written later).")] = ""
    notes: Annotated[str, option("--notes", "TEXT", "One sentence that a user of the record should know.")] = ""
    note: Annotated[str, option("--evidence", "NOTE", "What in the source supports the tags.")] = ""
    source: Annotated[
        str, option("--evidence-source", "URL", "Where that is to be seen (else the paper's address).")
    ] = ""
    supported: Annotated[
        str,
        option("--evidence-tags", "A,B,...", "The fields that it supports (else tagged axes and sourced fields)."),
    ] = ""


class IntakeOptions(NamedTuple):
    """How a paper is looked up, and what is done with it."""

    tags: OtherTags = None
    despite_title: Annotated[
        bool,
        Option("--despite-title", help="It is another work than the one whose title is nearly the same."),
    ] = False
    yes: Yes = False
    dry_run: DryRun = False
    no_fetch: Annotated[
        bool, Option("--no-fetch", help="Ask no service; take what the options say.", show_default=False)
    ] = False
    offline: Offline = False
    refresh: Refresh = False
    arxiv_url: ArxivUrl = ""
