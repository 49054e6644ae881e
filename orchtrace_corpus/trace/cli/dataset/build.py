"""`corpus trace dataset build`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands import progress
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import DataFileError, ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.progress import Progress
from orchtrace_corpus.base.workers import processors
from orchtrace_corpus.trace.analysis import prices
from orchtrace_corpus.trace.dataset import build as building
from orchtrace_corpus.trace.dataset.folder import Folder
from orchtrace_corpus.trace.dataset.plan import FORMATS
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.render import dataset as render

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def build(
    ctx: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="LOGS...", help="Logs, finished traces, or folders of them.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="The dataset: a new one, or one to renew.")
    ],
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, max=1024, help="Processes that read (else as many as processors)."),
    ] = None,
    form: Annotated[
        str, typer.Option("--from", metavar="FORMAT", help=f"One of {', '.join(FORMATS)} (else recognised).")
    ] = "",
    price_table: Annotated[
        str, typer.Option("--prices", metavar="FILE", help="A dated price table, for costs (see docs/importers.md).")
    ] = "",
    salt: Annotated[
        str,
        typer.Option("--salt", metavar="TEXT", help="Makes the hashes of a new dataset (else random, and kept in it)."),
    ] = "",
    prune: Annotated[
        bool, typer.Option("--prune", help="Drop sessions whose logs are gone, or are not named this time.")
    ] = False,
) -> int:
    """Bring logs and traces into the tables of a dataset, many at once.

    Several processes read. Run again, it reads only what is new or has changed; broken off, by whatever, it goes on
    where it was, and repeats at most the one source that each process was at. What cannot be read is told, does not
    stop the rest, and makes the exit code 1. Nothing that was written leaves the logs.

    \b
    Examples:
      corpus trace dataset build data/traces -o dataset
      corpus trace dataset build path/to/logs -o dataset --jobs 4
    """  # fmt: skip
    session = Session(*ctx.obj)
    options = building.Options(
        jobs or processors(), form, prices.load(price_table) if price_table else None, salt, prune
    )
    done = [0, 0]

    def report(number: int, total: int) -> None:
        done[:] = number, total
        if show is not None:
            show(Progress(number, total))

    try:
        with progress.shown(session.output, "sources") as show:
            outcome = building.build(paths, Folder(output), options, report)
    except KeyboardInterrupt:
        session.output.note(
            f"corpus: {done[0]:,} of {done[1]:,} sources are read, and kept; the same command goes on from there"
        )
        raise
    for said in (said for path in paths for said in logs.find(path).passed_over):
        session.output.note(f"corpus: {said}")
    for line in render.outcome(outcome):
        session.output.note(line)
    if outcome.failures and not outcome.traces:
        first = outcome.failures[0]
        raise DataFileError(
            f"no trace could be made of anything; {printable(first.name)}: {printable(first.why, limit=300)}"
        )
    return ExitCode.FINDINGS if outcome.failures else ExitCode.DONE
