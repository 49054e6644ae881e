"""`corpus terms`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import Columns, OutputFormat, Sort, split_names
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.table import Table, arranged
from orchtrace_corpus.corpus.analysis.attributes import Attributes, exclusion_attributes, find, paper_attributes
from orchtrace_corpus.corpus.analysis.statistics import count
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.model.records import Pool
from orchtrace_corpus.corpus.render.vocabulary import all_terms_table, levels_table, overview, terms_table

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def terms(
    ctx: typer.Context,
    axis: Annotated[
        str, typer.Argument(metavar="[FIELD]", help="One field, with definitions.", show_default=False)
    ] = "",
    sort: Sort = "",
    columns: Columns = "",
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Show the fields and the terms they are tagged with.

    \b
    Examples:
      corpus terms
      corpus terms credit_unit
      corpus terms stop
      corpus terms stage --sort -count
      corpus terms --format csv
    """
    session = CorpusSession(*ctx.obj)
    pool = session.pool_as_read()
    if not axis and output_format is Format.TABLE and not sort and not columns:
        session.output.show(overview(pool.taxonomy, session.output.width))
        return ExitCode.DONE
    tables = _tables(pool, axis) if axis else [all_terms_table(pool.taxonomy)]
    wanted = split_names(columns) if columns else ()
    tables = [arranged(tables[0], wanted, sort), *tables[1:]]
    if output_format is Format.CSV:
        tables = tables[:1]
    session.show_tables(tables, "terms", output_format)
    return ExitCode.DONE


def _tables(pool: Pool, name: str) -> list[Table]:
    papers, exclusions = paper_attributes(pool.taxonomy), exclusion_attributes(pool.taxonomy)
    closed: Attributes = {name: a for name, a in {**exclusions, **papers}.items() if a.terms}
    evidence = {facet.field: facet for facet in pool.taxonomy.evidence}
    if name in evidence:
        tally: dict[str, int] = {}
        for paper in pool.papers:
            for item in paper.evidence:
                value = getattr(item, name, "")
                tally[value] = tally.get(value, 0) + 1
        return [terms_table(evidence[name], tally)]
    attribute = find(name, closed, "axis or facet")
    # A sub-decision is a term of its facet; its own values are the facet's levels.
    facet = attribute.facet or next(f for f in pool.taxonomy.papers if attribute.name in (t.id for t in f.terms))
    records = pool.papers if facet in pool.taxonomy.papers else pool.exclusions
    counted = count(records, closed[facet.field]).counts
    if attribute.facet is None:
        facet = facet._replace(terms=tuple(term for term in facet.terms if term.id == attribute.name))
    return [terms_table(facet, counted), *([levels_table(facet)] if facet.levels else [])]
