"""`corpus stats`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import IncludeEmpty, OutputFormat, refuse_together
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.table import Table
from orchtrace_corpus.corpus.analysis.attributes import Attribute, exclusion_attributes, find, paper_attributes
from orchtrace_corpus.corpus.analysis.query import Query
from orchtrace_corpus.corpus.analysis.statistics import count, count_levels, cross, summarise
from orchtrace_corpus.corpus.cli.options import Where
from orchtrace_corpus.corpus.cli.session import CorpusSession, paper_query
from orchtrace_corpus.corpus.model.records import Pool
from orchtrace_corpus.corpus.model.taxonomy import Kind
from orchtrace_corpus.corpus.render import statistics, statistics_page

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def stats(
    ctx: typer.Context,
    by: Annotated[
        list[str] | None, typer.Option("--by", metavar="FIELD", help="Count by one field (repeatable).")
    ] = None,
    crossed: Annotated[
        tuple[str, str] | None, typer.Option("--cross", metavar="A B", help="Count by two fields at once.")
    ] = None,
    where: Where = None,
    full: Annotated[bool, typer.Option("--full", help="All published statistics instead of one page.")] = False,
    include_empty: IncludeEmpty = False,
    output_format: OutputFormat = Format.TABLE,
    write: Annotated[bool, typer.Option("--write", help="Write docs/STATS.md instead of printing.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Compare docs/STATS.md; end with 1 if it is stale.")] = False,
) -> int:
    """Count the corpus: one page, one field, or two fields crossed.

    Fields are those of "corpus terms", the sub-decisions by name or code (stop, O5), and those of a
    record (year, venue, ...). Fields of exclusions (stage, source, ...) count exclusions.

    \b
    Examples:
      corpus stats
      corpus stats --by reward_family --include-empty
      corpus stats --cross topology year
      corpus stats --where rl=full --where "year>=2025"
      corpus stats --by stage
      corpus stats --format json
      corpus stats --check
    """
    session = CorpusSession(*ctx.obj)
    if by and crossed:
        raise CommandUseError("--by and --cross exclude each other")
    if full and (by or crossed):
        raise CommandUseError("--full shows all statistics; leave out --by and --cross")
    refuse_together(write=write, check=check)
    if write or check:
        if by or crossed or where or full:
            raise CommandUseError("--write and --check are about docs/STATS.md only; leave out other options")
        return _settle(session, check=check)
    pool = session.pool()
    query = paper_query(where or [], pool.taxonomy)
    if by or crossed:
        tables = (
            _crossed(pool, crossed, query, include_empty)
            if crossed
            else [table for name in by or [] for table in _by(pool, name, query, include_empty)]
        )
        session.show_tables(tables, "counts", output_format)
        if query.filters and not query.select(pool.papers):
            session.output.note("corpus: no paper passes the filters")
        return ExitCode.DONE
    selected = pool._replace(papers=query.select(pool.papers))
    summary = summarise(selected, include_empty=include_empty, with_exclusions=not query.filters)
    if output_format is Format.JSON:
        session.output.write(statistics.summary_json(summary))
    elif output_format is Format.CSV:
        session.output.write(statistics.summary_csv(summary))
    elif output_format is Format.MARKDOWN:
        session.output.write(statistics.summary_markdown(summary, pool.taxonomy.title))
    elif full:
        session.show_tables(statistics.summary_tables(summary), "stats", output_format)
    else:
        width = session.output.width or statistics_page.PIPE_WIDTH
        session.output.show(statistics_page.page(summary, width, session.output.glyphs))
    if query.filters and not selected.papers:
        session.output.note("corpus: no paper passes the filters")
    return ExitCode.DONE


def _settle(session: CorpusSession, *, check: bool) -> int:
    from orchtrace_corpus.corpus import build
    from orchtrace_corpus.corpus.cli.generated_files import settle

    root = session.writable_root()
    documents = [build.statistics_document(root, session.pool())]
    return settle(session, root, documents, check=check, mend="corpus stats --write")


def _by(pool: Pool, name: str, query: Query, include_empty: bool) -> list[Table]:
    attribute, of_papers = _field(pool, name)
    if not of_papers:
        if query.filters:
            raise CommandUseError(f"--where filters papers, but {attribute.name} is a field of exclusions")
        return statistics.counts_tables(count(pool.exclusions, attribute, include_empty=include_empty))
    papers = query.select(pool.papers)
    facet = attribute.facet
    if facet is not None and facet.kind is Kind.LEVELS and facet.field == attribute.name:
        return [statistics.levels_table(count_levels(papers, facet))]
    return statistics.counts_tables(count(papers, attribute, include_empty=include_empty))


def _crossed(pool: Pool, names: tuple[str, str], query: Query, include_empty: bool) -> list[Table]:
    (rows, rows_of_papers), (columns, columns_of_papers) = (_field(pool, name) for name in names)
    if rows_of_papers != columns_of_papers:
        raise CommandUseError(f"{rows.name} and {columns.name} cannot be crossed: one is a field of exclusions")
    if query.filters and not rows_of_papers:
        raise CommandUseError(f"--where filters papers, but {rows.name} is a field of exclusions")
    records = query.select(pool.papers) if rows_of_papers else pool.exclusions
    return [statistics.crosstab_table(cross(records, rows, columns, include_empty=include_empty))]


def _field(pool: Pool, name: str) -> tuple[Attribute, bool]:
    """The field of that name, and whether it is one of papers; papers come first where both have it."""
    papers, exclusions = paper_attributes(pool.taxonomy), exclusion_attributes(pool.taxonomy)
    if name not in papers and name in exclusions:
        return exclusions[name], False
    return find(name, {**exclusions, **papers}), True
