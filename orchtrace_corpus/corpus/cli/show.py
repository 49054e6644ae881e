"""`corpus show`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import OutputFormat
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.corpus.analysis.search import find_records, near_misses
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.records import Record
from orchtrace_corpus.corpus.render.records import card, card_markdown, cards_csv, records_json

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def show(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="KEY...", help="A key, exclusion id, arXiv id, DOI or URL.")],
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Show records by key, arXiv id, DOI or URL.

    Identifiers are understood in every usual spelling; exclusions are found, too. With the evidence
    of each tag, and the disputes about it.

    \b
    Examples:
      corpus show puppeteer
      corpus show arXiv:2505.19591v2
      corpus show https://arxiv.org/abs/2505.19591
      corpus show E007
      corpus show c3 puppeteer --format json
    """
    session = CorpusSession(*ctx.obj)
    pool = session.pool_as_read()
    records: list[Record] = []
    for name in names:
        found = find_records(pool, name)
        if not found:
            near = [f"{key} ({title})" for key, title in near_misses(pool, name)]
            hint = f"Did you mean: {', '.join(near)}?" if near else "Try: corpus search WORDS, or corpus list."
            raise CommandUseError(f"no record {quote(name)}", hint)
        records += [record for record in found if record not in records]
    disputes = store.read_disputes(session.root_folder(), pool.taxonomy).disputes
    if output_format is Format.JSON:
        session.output.write(records_json(records, "records", disputes))
    elif output_format is Format.CSV:
        session.output.write(cards_csv(records, disputes))
    elif output_format is Format.MARKDOWN:
        session.output.write("\n".join(card_markdown(record, pool.taxonomy, disputes) for record in records))
    else:
        for index, record in enumerate(records):
            blank = [()] if index else []
            session.output.show([*blank, *card(record, pool.taxonomy, session.output.width, disputes)])
    return ExitCode.DONE
