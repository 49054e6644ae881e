"""`corpus trace replay`."""

import json
from collections.abc import Iterator
from enum import StrEnum
from itertools import takewhile
from typing import Annotated

import typer

from orchtrace_corpus.cli.session import Session
from orchtrace_corpus.cli.trace.loading import one_trace
from orchtrace_corpus.errors import CommandUseError, ExitCode
from orchtrace_corpus.findings import quote
from orchtrace_corpus.render import trace_page as render
from orchtrace_corpus.render.table import SCHEMA_VERSION
from orchtrace_corpus.trace.model import Trace
from orchtrace_corpus.trace.replay import State, replay

app = typer.Typer(add_completion=False, rich_markup_mode=None)


class ReplayFormat(StrEnum):
    """The forms in which states are shown."""

    TEXT = "text"
    JSON = "json"


@app.command(name="replay")
def replay_trace(
    ctx: typer.Context,
    path: Annotated[str, typer.Argument(metavar="FILE", help="A trace as JSON.")],
    until: Annotated[str, typer.Option("--until", metavar="T", help="End after a time, or after an event's id.")] = "",
    step: Annotated[int, typer.Option("--step", metavar="N", min=0, help="Only the state after the Nth event.")] = 0,
    output_format: Annotated[ReplayFormat, typer.Option("--format", "-f", help="The form of the output.")] = (
        ReplayFormat.TEXT
    ),
) -> int:
    """Run a trace again: who lives, what is open, what was spent, after each event.

    As JSON: a line that names the schema, then a line for each state.

    \b
    Examples:
      corpus trace replay data/traces/swarm.json
      corpus trace replay data/traces/swarm.json --until 7
      corpus trace replay data/traces/swarm.json --step 5 --format json
    """
    session = Session(*ctx.obj)
    trace = one_trace(session, path)
    if output_format is ReplayFormat.JSON:
        head = {"schema": "orchtrace-corpus/trace-replay", "version": SCHEMA_VERSION, "trace_id": trace.trace_id}
        session.output.write(json.dumps(head, ensure_ascii=False) + "\n")
    for state in _wanted(trace, until, step):
        if output_format is ReplayFormat.JSON:
            session.output.write(json.dumps(render.as_data(state), ensure_ascii=False) + "\n")
        else:
            session.output.show([render.replayed(state, session.output.width)])
    return ExitCode.DONE


def _wanted(trace: Trace, until: str, step: int) -> Iterator[State]:
    if step > len(trace.events):
        raise CommandUseError(f"there is no event {step}: the trace has {len(trace.events)}")
    states = replay(trace)
    if step:
        yield next(state for state in states if state.step == step)
    elif any(event.id == until for event in trace.events):
        for state in states:
            yield state
            if state.event.id == until:
                break
    elif until:
        try:
            end = float(until)
        except ValueError as error:
            raise CommandUseError(f"{quote(until)} is neither a time nor the id of an event") from error
        yield from takewhile(lambda state: state.event.t <= end, states)
    else:
        yield from states
