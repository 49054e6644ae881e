"""`corpus trace dataset sql`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import OutputFormat
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.text import Format, table
from orchtrace_corpus.trace.dataset.folder import Folder
from orchtrace_corpus.trace.dataset.tables import Answer, open_tables
from orchtrace_corpus.trace.render import dataset as render

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_MOST_SHOWN = 1000


@app.command()
def sql(
    ctx: typer.Context,
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The dataset.")],
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="One statement that only reads, as DuckDB understands it.")
    ],
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Ask the tables of a dataset a question in SQL.

    The tables are traces, events, edges, agents and ledger; DESCRIBE events shows the columns of one. A query can
    read nothing else, and write nothing.

    \b
    Examples:
      corpus trace dataset sql dataset "SELECT topology, count(*) FROM traces GROUP BY topology"
      corpus trace dataset sql dataset "DESCRIBE events" --format markdown
    """
    session = Session(*ctx.obj)
    with open_tables(Folder(folder).parts()) as tables:
        answer = tables.query(query)
        if output_format is Format.CSV:
            _write_csv(session, answer)
        elif output_format is Format.JSON:
            session.output.write(_json(answer))
        else:
            rows = []
            for batch in answer.batches:
                rows += batch
                if len(rows) > _MOST_SHOWN:
                    break
            notes = (
                () if len(rows) <= _MOST_SHOWN else (f"The first {_MOST_SHOWN:,} rows; --format csv or json has all.",)
            )
            shown = render.answer(answer.columns, rows[:_MOST_SHOWN], notes)
            session.show_tables([shown], "trace-sql", output_format)
    return ExitCode.DONE


def _write_csv(session: Session, answer: Answer) -> None:
    session.output.write(table.csv(render.answer(answer.columns, ()).columns, ()))
    for batch in answer.batches:
        session.output.write(table.csv_rows(render.cells(batch, exact=True)))


def _json(answer: Answer) -> str:
    """The rows as an object each.

    Raises:
        CommandUseError: Two columns have the same name.
    """
    twice = [name for name in answer.columns if answer.columns.count(name) > 1]
    if twice:
        raise CommandUseError(f"two columns are called {quote(twice[0])}", "Name them with AS.")
    rows = [dict(zip(answer.columns, map(render.plain, row), strict=True)) for batch in answer.batches for row in batch]
    return table.envelope("trace-sql", {"rows": rows})
