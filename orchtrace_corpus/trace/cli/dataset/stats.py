"""`corpus trace dataset stats`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import OutputFormat, split_names
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.trace.dataset.folder import Folder
from orchtrace_corpus.trace.dataset.statistics import GROUPINGS, statistics
from orchtrace_corpus.trace.dataset.tables import open_tables
from orchtrace_corpus.trace.render import dataset as render

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def stats(
    ctx: typer.Context,
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The dataset.")],
    by: Annotated[
        str, typer.Option("--by", metavar="A,B,...", help=f"Divide the traces by: {', '.join(GROUPINGS)}.")
    ] = "",
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Describe the traces of a dataset: measures, decisions, tokens, outliers.

    Each measure with its distribution; how many traces take each sub-decision; tokens and cost by model; traces far
    outside their group. docs/dataset.md says how each figure is computed.

    \b
    Examples:
      corpus trace dataset stats dataset
      corpus trace dataset stats dataset --by topology --format csv
    """
    session = Session(*ctx.obj)
    found = Folder(folder)
    with open_tables(found.parts()) as tables:
        described = statistics(tables, split_names(by) if by else ())
    if found.is_unfinished:
        session.output.note(
            "corpus: a build is at work here, or was broken off; these are the traces that it has finished"
        )
    shown = render.tables(described, exact=output_format in (Format.JSON, Format.CSV))
    width = session.output.width
    if output_format is Format.TABLE and width is not None:
        shown = [render.narrow(one, width) for one in shown]
    session.show_tables(shown, "trace-dataset", output_format)
    return ExitCode.DONE
