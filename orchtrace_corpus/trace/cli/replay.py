"""`corpus trace replay`."""

import json
from collections.abc import Iterator
from enum import StrEnum
from itertools import takewhile
from math import inf
from typing import Annotated

import typer

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import quote, unobeyed
from orchtrace_corpus.base.text.table import SCHEMA_VERSION
from orchtrace_corpus.trace.analysis.replay import State, replay
from orchtrace_corpus.trace.cli.loading import FILE_HELP, one_trace
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.render import page as render

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_LAST = "last"


class ReplayFormat(StrEnum):
    """The forms in which states are shown."""

    TEXT = "text"
    JSON = "json"


@app.command(name="replay")
def replay_trace(
    ctx: typer.Context,
    path: Annotated[str, typer.Argument(metavar="FILE", help=FILE_HELP)],
    until: Annotated[
        str,
        typer.Option(
            "--until", metavar="T", help="End after a time, in the unit of the trace's clock; or after an event's id."
        ),
    ] = "",
    step: Annotated[
        str, typer.Option("--step", metavar="N", help="Only the state after event N, counted from 1 on; or 'last'.")
    ] = "",
    output_format: Annotated[ReplayFormat, typer.Option("--format", "-f", help="The form of the output.")] = (
        ReplayFormat.TEXT
    ),
) -> int:
    """Run a trace again: who lives, what is open, what was spent, after each event.

    Each line is an event: its number in the order of the replay, its time, its id, what happened. Both options
    together give one state of those up to T: the Nth, or the last. As JSON: a line that names the schema, then
    a line for each state.

    \b
    Examples:
      corpus trace replay data/traces/swarm.json
      corpus trace replay data/traces/swarm.json --until 7
      corpus trace replay data/traces/swarm.json --until 7 --step last
      corpus trace replay data/traces/swarm.json --step 5 --format json
    """
    session = Session(*ctx.obj)
    number = _number(step)
    trace = one_trace(session, path)
    states = _until(session, trace, until) if until else replay(trace)
    if number is not None:
        states = iter([_only(states, number)])
    if output_format is ReplayFormat.JSON:
        head = {"schema": "orchtrace-corpus/trace-replay", "version": SCHEMA_VERSION, "trace_id": trace.trace_id}
        session.output.write(_line({**head, "unit": trace.clock.unit.value}))
    before = None
    for state in states:
        if output_format is ReplayFormat.JSON:
            session.output.write(_line(render.as_data(state)))
        else:
            session.output.show(render.replayed(state, before, trace.clock.unit, session.output.width))
        before = state
    return ExitCode.DONE


def _line(value: object) -> str:
    return unobeyed(json.dumps(value, ensure_ascii=False)) + "\n"


def _number(step: str) -> int | None:
    """The number of the only event wanted; 0 for the last, None for all."""
    if not step:
        return None
    if step == _LAST:
        return 0
    if not step.isdecimal() or not int(step):
        raise CommandUseError(f"{quote(step)} is no number of an event", "Give 1 for the first, or last.")
    return int(step)


def _until(session: Session, trace: Trace, until: str) -> Iterator[State]:
    """The states up to an event, or up to a time; an id goes first."""
    states = replay(trace)
    end = _time(until)
    if any(event.id == until for event in trace.events):
        if end is not None:
            session.output.note(f"corpus: {quote(until)} is an event's id; for the time, write +{end:g}")
        return _up_to_event(states, until)
    if end is None:
        raise CommandUseError(f"{quote(until)} is neither a time nor the id of an event")
    if not 0 <= end < inf:
        raise CommandUseError(f"{quote(until)} is no time: times are numbers from 0 on")
    first = min(event.t for event in trace.events)
    if end < first:
        unit = trace.clock.unit
        raise CommandUseError(f"nothing has happened by {end:g} {unit}: the first event is at {first:g} {unit}")
    return takewhile(lambda state: state.event.t <= end, states)


def _time(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _up_to_event(states: Iterator[State], name: str) -> Iterator[State]:
    for state in states:
        yield state
        if state.event.id == name:
            break


def _only(states: Iterator[State], number: int) -> State:
    """One state of some; their last for 0."""
    count, last = 0, None
    for count, last in enumerate(states, 1):
        if count == number:
            return last
    if number or last is None:
        raise CommandUseError(f"there is no event {number or 1}: this replay has {count}")
    return last
