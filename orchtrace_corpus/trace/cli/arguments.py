"""Arguments and options that several commands of `corpus trace` have."""

from typing import Annotated, TypeAlias

from orchtrace_corpus.base.commands.declarations import Argument, Option

Files: TypeAlias = Annotated[
    list[str],
    Argument(
        metavar="FILE...", help="Traces as JSON or JSON Lines; logs; folders of them; - for traces on standard input."
    ),
]
File: TypeAlias = Annotated[
    str, Argument(metavar="FILE", help="A trace as JSON, or a log; - for a trace on standard input.")
]
SessionName: TypeAlias = Annotated[
    str, Option("--session", metavar="NAME", help="A session, by its file's name or the beginning of its name.")
]
LogFormat: TypeAlias = Annotated[
    str, Option("--from", metavar="FORMAT", help="The format of the logs, such as claude_code. Default: detected.")
]
PriceTable: TypeAlias = Annotated[
    str, Option("--prices", metavar="FILE", help="Compute costs from this dated price table (docs/importers.md).")
]
OutcomesFile: TypeAlias = Annotated[
    str,
    Option(
        "--outcomes", metavar="FILE", help="Rewards, success and baselines by run, as CSV or JSON (docs/importers.md)."
    ),
]
Cost: TypeAlias = Annotated[bool, Option("--cost", help="Compute costs from the package genai-prices (extra: prices).")]
Page: TypeAlias = Annotated[
    str, Option("--html", metavar="FILE", help="Write the run, or two side by side, as one HTML file.")
]
Content: TypeAlias = Annotated[bool, Option("--content", help="With --html: include the written content of the run.")]
Untrusted: TypeAlias = Annotated[
    str,
    Option(
        "--untrusted", metavar="TOOL,...", help="Tools whose results are not trusted, such as web_fetch,read_email."
    ),
]
Effectful: TypeAlias = Annotated[
    str,
    Option(
        "--effectful",
        metavar="TOOL,...",
        help="The tools with side effects. Default: those that the trace names, else all not known as read-only.",
    ),
]
