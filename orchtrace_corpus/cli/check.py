"""`corpus check`."""

import typer

from orchtrace_corpus.cli import checking
from orchtrace_corpus.corpus.cli.session import CorpusSession

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def check(ctx: typer.Context) -> int:
    """Run everything that CI asks, in one process.

    Validates the data, compares it with its canonical form, compares every generated file with what
    "corpus build" would write, and validates the traces in data/traces. One line for each part, the
    worst exit code, and the command that mends it.

    \b
    Examples:
      corpus check
    """
    return checking.check(CorpusSession(*ctx.obj))
