"""`corpus trace label`."""

from typing import Annotated, Any

import typer

from orchtrace_corpus.base.commands.options import OutputFormat, refuse_together
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.trace.analysis.labels import GIVEN, Label, labels
from orchtrace_corpus.trace.cli.loading import FILE_HELP, one_document, refuse_lines, write_new
from orchtrace_corpus.trace.model.json_text import loads, text
from orchtrace_corpus.trace.render import labels as render

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def label(
    ctx: typer.Context,
    path: Annotated[str, typer.Argument(metavar="FILE", help=FILE_HELP)],
    events: Annotated[bool, typer.Option("--events", help="List every labelled event instead of the summary.")] = False,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Write the trace with its labels to a new file.")
    ] = "",
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Say which events take which of the five sub-decisions, and by which rule.

    Labels that the trace has already are kept. docs/traces.md gives the rules.

    \b
    Examples:
      corpus trace label data/traces/swarm.json
      corpus trace label data/traces/swarm.json --events
    """
    session = Session(*ctx.obj)
    refuse_together(output=bool(output), events=events)
    refuse_together(output=bool(output), format=output_format is not Format.TABLE)
    refuse_lines(output)
    document, trace = one_document(session, path)
    found = labels(trace)
    if output:
        write_new(output, text(_labelled(loads(document.data), found)))
        session.output.note(f"wrote {printable(output, limit=300)}")
        return ExitCode.DONE
    table = render.events(trace, found) if events else render.summary(trace, found)
    session.show_tables([table], "trace-labels", output_format)
    return ExitCode.DONE


def _labelled(trace: dict[str, Any], found: list[Label]) -> dict[str, Any]:
    """The trace as read, with the labels that it did not have."""
    for one in found:
        if one.rule == GIVEN:
            continue
        event = trace["events"][one.event]
        decisions = event.setdefault("sub_decisions", [])
        if one.decision not in decisions:
            decisions.append(one.decision)
            event.setdefault("sub_decision_rules", {})[one.decision] = one.rule
    return trace
