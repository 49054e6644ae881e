"""Options that several commands on a corpus share, under one name and one meaning."""

from typing import Annotated, TypeAlias

import typer

Where: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--where", "-w", metavar="FILTER", help="Only papers that pass: field=value, !=, <, <=, >, >=, ~ (repeatable)."
    ),
]
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
