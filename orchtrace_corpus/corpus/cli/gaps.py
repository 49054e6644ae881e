"""`corpus gaps`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import OutputFormat
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.text import Format, table
from orchtrace_corpus.corpus.analysis.attributes import find, paper_attributes
from orchtrace_corpus.corpus.analysis.statistics import coverage
from orchtrace_corpus.corpus.cli.options import Where
from orchtrace_corpus.corpus.cli.session import CorpusSession, paper_query
from orchtrace_corpus.corpus.render import coverage as render

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def gaps(
    ctx: typer.Context,
    rows: Annotated[str, typer.Argument(metavar="[ROWS]", help="The first axis.", show_default=False)] = "",
    columns: Annotated[str, typer.Argument(metavar="[COLUMNS]", help="The second axis.", show_default=False)] = "",
    sparse: Annotated[int, typer.Option("--sparse", min=1, help="A cell with up to this many papers is sparse.")] = 2,
    where: Where = None,
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Show which cells of two axes are empty or sparse.

    Without names: the first pair that the taxonomy crosses. Any field with a vocabulary can be an
    axis, also a single sub-decision, whose levels are its values.

    \b
    Examples:
      corpus gaps
      corpus gaps topology credit_unit
      corpus gaps stop reward_family --where rl=full
      corpus gaps --format csv
    """
    session = CorpusSession(*ctx.obj)
    pool = session.pool()
    attributes = paper_attributes(pool.taxonomy)
    if not rows and not columns:
        if not pool.taxonomy.crosstabs:
            raise CommandUseError("name two axes, such as: corpus gaps topology scenario")
        rows, columns = pool.taxonomy.crosstabs[0]
    if not columns:
        raise CommandUseError(f"name a second axis beside {quote(rows)}", "See corpus terms for all of them.")
    axes = [find(name, attributes, "axis") for name in (rows, columns)]
    for axis in axes:
        if not axis.terms:
            raise CommandUseError(
                f"{axis.name} has no vocabulary, so no cell of it can be missing",
                f"To count by it: corpus stats --cross {rows} {columns}",
            )
    papers = paper_query(where or [], pool.taxonomy).select(pool.papers)
    if not papers:
        session.output.note("corpus: no paper passes the filters")
        return ExitCode.DONE
    found = coverage(papers, axes[0], axes[1], sparse_limit=sparse)
    if output_format is Format.TABLE:
        session.output.show(render.page(found, session.output.width, session.output.glyphs))
    elif output_format is Format.MARKDOWN:
        session.output.write(render.document(found))
    elif output_format is Format.JSON:
        session.output.write(render.data(found))
    else:
        session.output.write(table.render([render.table(found)], "gaps", output_format))
    return ExitCode.DONE
