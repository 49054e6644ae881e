"""`corpus search`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import Columns, OutputFormat, Sort, split_names
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.corpus.analysis.attributes import exclusion_attributes, find_all, paper_attributes
from orchtrace_corpus.corpus.analysis.search import search_exclusions, search_papers, sort_records
from orchtrace_corpus.corpus.cli.options import Where
from orchtrace_corpus.corpus.cli.session import CorpusSession, paper_query
from orchtrace_corpus.corpus.render.records import listing

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def search(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="WORDS...", help="Words that must all occur.")],
    where: Where = None,
    sort: Sort = "",
    columns: Columns = "key,year,title",
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Find records by words.

    A word is found in keys, titles, authors, affiliations, venues, summaries, notes and evidence,
    whatever its case and accents. Hits in key or title come first. Without filters, exclusions are
    searched, too (title, identifier, reason); CSV holds papers only.

    \b
    Examples:
      corpus search debate
      corpus search tree search --where scenario=coding
      corpus search mialon --columns key,authors
    """
    session = CorpusSession(*ctx.obj)
    if not any(word.strip() for word in words):
        raise CommandUseError("name at least one word to look for")
    pool = session.pool_as_read()
    attributes = paper_attributes(pool.taxonomy)
    shown = find_all(split_names(columns), attributes, "column")
    papers = search_papers(paper_query(where or [], pool.taxonomy).select(pool.papers), words)
    if sort:
        papers = sort_records(papers, sort, attributes)
    excluded = () if where else search_exclusions(pool.exclusions, words)
    tables = [listing("papers", papers, shown)] if papers or output_format is not Format.TABLE else []
    if output_format is not Format.CSV and (excluded or output_format is Format.JSON):
        exclusion_columns = find_all(("id", "title", "reason"), exclusion_attributes(pool.taxonomy))
        tables.append(listing("exclusions", excluded, exclusion_columns, "Excluded")._replace(wrapped="reason"))
    session.show_tables(tables, "search", output_format)
    also = f" and {len(excluded)} exclusion{'' if len(excluded) == 1 else 's'}" if excluded else ""
    session.output.note(f"{len(papers)} paper{'' if len(papers) == 1 else 's'}{also}")
    return ExitCode.DONE
