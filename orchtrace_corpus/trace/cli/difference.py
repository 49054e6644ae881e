"""`corpus trace diff`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import OutputFormat
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.trace.analysis.comparison import compare
from orchtrace_corpus.trace.cli.loading import FILE_HELP, one_trace
from orchtrace_corpus.trace.render import difference as render

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(name="diff")
def diff_traces(
    ctx: typer.Context,
    first: Annotated[str, typer.Argument(metavar="A", help=FILE_HELP)],
    second: Annotated[str, typer.Argument(metavar="B", help="Another run of the same task.")],
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End with 1 if the runs differ.")] = False,
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Compare two runs of one task: rewards, costs, measures, agents, tools, models, structure.

    Only what differs is shown: rewards and stated metrics first, then costs, measures, and counts of events,
    calls and edges, each with its unit. Ids, times of single events and contents are left aside, since they
    differ between any two runs. Exit code 0 whether the runs differ or not, unless --exit-code is given.

    \b
    Examples:
      corpus trace diff data/traces/swarm.json data/traces/hierarchical.json
    """
    session = Session(*ctx.obj)
    if first == second == "-":
        raise CommandUseError("standard input can be read only once")
    one, other = one_trace(session, first), one_trace(session, second)
    if one.task_id != other.task_id:
        session.output.note(f"corpus: these are different tasks, {quote(one.task_id)} and {quote(other.task_id)}")
    exact = output_format in (Format.JSON, Format.CSV)
    found = compare(one, other)
    code = ExitCode.FINDINGS if exit_code and found else ExitCode.DONE
    if not found and output_format is Format.TABLE:
        session.output.write(render.SAME if one == other else render.ALIKE)
        return code
    table = render.table(found, ((first, one), (second, other)), exact=exact)
    session.show_tables([table], "trace-diff", output_format)
    return code
