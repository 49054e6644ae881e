"""`corpus scale`."""

import os

import typer

from orchtrace_corpus.base.commands.options import OutputFormat
from orchtrace_corpus.base.errors import DataFileError, ExitCode
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.render import scale as render

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def scale(ctx: typer.Context, output_format: OutputFormat = Format.TABLE) -> int:
    """Compare how large systems in use are with how large experiments are.

    From data/scale.yaml: how many agents run together, and what else is published. Numbers of
    vendors are reports, never verified; "unknown" where no number was found. What is compared are
    reported envelopes and open evaluation regimes, not verified training traces.

    \b
    Examples:
      corpus scale
      corpus scale --format markdown
      corpus scale --format csv
    """
    session = CorpusSession(*ctx.obj)
    root = session.root_folder()
    if not os.path.lexists(os.path.join(root, store.SCALE)):
        raise DataFileError(f"this corpus has no {store.SCALE}", "docs/data.md of orchtrace-corpus describes its form.")
    observations = store.read_scale(root, session.pool()).sound()
    if output_format is Format.JSON:
        session.output.write(render.data(observations))
    else:
        csv = output_format is Format.CSV
        tables = [render.all_table(observations)] if csv else render.tables(observations)
        session.show_tables(tables, "scale", output_format)
    return ExitCode.DONE
