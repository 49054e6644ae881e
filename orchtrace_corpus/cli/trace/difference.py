"""`corpus trace diff`."""

from typing import Annotated

import typer

from orchtrace_corpus.cli.options import OutputFormat
from orchtrace_corpus.cli.session import Session
from orchtrace_corpus.cli.trace.loading import one_trace
from orchtrace_corpus.errors import ExitCode
from orchtrace_corpus.findings import printable, quote
from orchtrace_corpus.render import Format
from orchtrace_corpus.render.table import Table
from orchtrace_corpus.render.trace_measures import shown
from orchtrace_corpus.trace.compare import compare

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(name="diff")
def diff_traces(
    ctx: typer.Context,
    first: Annotated[str, typer.Argument(metavar="A", help="A trace as JSON.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another run of the same task.")],
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Compare two runs of one task: agents, events, edges, tools, sub-decisions, measures.

    Ids and times are left aside, since they differ between any two runs. Only what differs is shown.

    \b
    Examples:
      corpus trace diff data/traces/swarm.json data/traces/hierarchical.json
    """
    session = Session(*ctx.obj)
    one, other = one_trace(session, first), one_trace(session, second)
    if one.task_id != other.task_id:
        session.output.note(f"corpus: these are different tasks, {quote(one.task_id)} and {quote(other.task_id)}")
    exact = output_format in (Format.JSON, Format.CSV)
    rows = tuple(
        (
            found.part,
            printable(found.name),
            shown(found.before, exact=exact),
            shown(found.after, exact=exact),
            None if found.before is None or found.after is None else shown(found.after - found.before, exact=exact),
        )
        for found in compare(one, other)
    )
    if not rows and output_format is Format.TABLE:
        session.output.note("no difference in structure or measures")
        return ExitCode.DONE
    table = Table("differences", "", ("part", "name", "A", "B", "change"), rows)
    session.show_tables([table], "trace-diff", output_format)
    return ExitCode.DONE
