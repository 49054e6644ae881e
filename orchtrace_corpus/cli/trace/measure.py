"""`corpus trace measure`."""

from typing import Annotated

import typer

from orchtrace_corpus.cli.options import OutputFormat, split_names
from orchtrace_corpus.cli.session import Session
from orchtrace_corpus.cli.trace.loading import sound_traces
from orchtrace_corpus.errors import CommandUseError, ExitCode
from orchtrace_corpus.findings import quote, suggestion
from orchtrace_corpus.render import Format
from orchtrace_corpus.render import trace_measures as render
from orchtrace_corpus.render.table import envelope
from orchtrace_corpus.trace.measures import DEFINITIONS, measure
from orchtrace_corpus.trace.measures.ledger import GROUPINGS, ledger

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(name="measure")
def measure_traces(
    ctx: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="FILE...", help="Traces as JSON or JSON Lines; or folders.")],
    only: Annotated[str, typer.Option("--only", metavar="A,B,...", help="Which measures, in which order.")] = "",
    spent_by: Annotated[
        str, typer.Option("--ledger", metavar="BY", help="Tokens and cost instead, by agent, role, model or type.")
    ] = "",
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Measure traces: work and span, steps, team, tokens, errors.

    A measure that a trace does not support has no value, and the reason why. docs/measures.md gives the
    formula and the source of each. Several traces are one row each.

    \b
    Examples:
      corpus trace measure data/traces/swarm.json
      corpus trace measure data/traces --only work,span,parallelism --format csv
      corpus trace measure data/traces/swarm.json --ledger model
    """
    session = Session(*ctx.obj)
    names = split_names(only) if only else ()
    for name in names:
        if name not in DEFINITIONS:
            raise CommandUseError(f"there is no measure {quote(name)}{suggestion(name, list(DEFINITIONS))}")
    if spent_by and spent_by not in GROUPINGS:
        raise CommandUseError(f"cannot keep a ledger by {quote(spent_by)}{suggestion(spent_by, GROUPINGS)}")
    traces = list(sound_traces(session, paths))
    exact = output_format in (Format.JSON, Format.CSV)
    if spent_by:
        tables = [render.spent(trace, spent_by, ledger(trace, spent_by)) for trace in traces]
        session.show_tables(tables, "trace-ledger", output_format)
        return ExitCode.DONE
    measured = [measure(trace, names) for trace in traces]
    if output_format is Format.JSON:
        content = [
            {
                "trace_id": trace.trace_id,
                "measures": {
                    name: {
                        "value": found.value,
                        "unit": render.unit_of(name, trace),
                        "reason": found.reason or None,
                        "events": list(found.events),
                    }
                    for name, found in each.items()
                },
            }
            for trace, each in zip(traces, measured, strict=True)
        ]
        session.output.write(envelope("trace-measures", {"traces": content}))
    elif len(traces) == 1:
        session.show_tables([render.one(traces[0], measured[0], exact=exact)], "trace-measures", output_format)
    else:
        session.show_tables([render.several(traces, measured, exact=exact)], "trace-measures", output_format)
    return ExitCode.DONE
