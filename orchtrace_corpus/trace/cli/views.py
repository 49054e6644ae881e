"""The commands `corpus trace show`, `corpus trace replay` and `corpus trace graph`."""

from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from itertools import islice, takewhile
from math import inf
from typing import Annotated

from orchtrace_corpus.base.commands.declarations import Context, Option
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import escape_controls, quote
from orchtrace_corpus.base.text.table import SCHEMA_VERSION
from orchtrace_corpus.trace.analysis.replay import State, replay
from orchtrace_corpus.trace.cli.arguments import Content, File, Files, Page, SessionName
from orchtrace_corpus.trace.cli.loading import (
    TextOrJson,
    documents_of,
    format_by_ending,
    load_one_trace,
    sound_traces,
    write_output,
)
from orchtrace_corpus.trace.render import show as render_show
from orchtrace_corpus.trace.render.names import agent_names
from orchtrace_corpus.trace.view import TraceView


def show(
    ctx: Context,
    paths: Files,
    name: SessionName = "",
    agents: Annotated[int, Option("--agents", metavar="N", min=1, help="Show at most N agents.")] = 40,
    html: Page = "",
    with_content: Content = False,
    event: Annotated[
        str, Option("--event", metavar="ID", help="Show one event or call instead: what it is, where, what it follows.")
    ] = "",
) -> int:
    """Show who spawned whom, and who worked when.

    One line for each agent, indented below the one that spawned it, with its time from left to right. With
    --event, one event: its time, tokens and place in the log, what it depends on, and what follows from it.

    \b
    Examples:
      corpus trace show data/traces/swarm.json
      corpus trace show path/to/logs
      corpus trace show data/traces/swarm.json --event s1
      corpus trace show data/traces/swarm.json --html run.html
    """
    session = Session(*ctx.obj)
    if html or with_content:
        if event:
            raise CommandUseError("--event and --html contradict each other", "Open the page at FILE#a-event-STEP.")
        if not html:
            raise CommandUseError("--content says what is in a page, and no page is asked for", "Add --html FILE.")
        from orchtrace_corpus.trace.cli import doctor
        from orchtrace_corpus.trace.cli.collection import Request

        return doctor.show(session, paths, Request(name, html=html, with_content=with_content))
    if event:
        views = [view for _, view in sound_traces(session, documents_of(session, paths, name))]
        if len(views) != 1:
            raise CommandUseError(f"--event is of one trace, and there are {len(views)}", "Name one with --session.")
        session.output.show(render_show.event_page(views[0], event, session.output.width))
        return ExitCode.DONE
    is_first = True
    for _, view in sound_traces(session, documents_of(session, paths, name)):
        if not is_first:
            session.output.show([()])  # a blank line
        session.output.show(render_show.page(view, session.output.width, session.output.glyphs, most_agents=agents))
        is_first = False
    return ExitCode.DONE


def replay_trace(
    ctx: Context,
    path: File,
    name: SessionName = "",
    until: Annotated[
        str,
        Option(
            "--until",
            metavar="T",
            help="Stop after a time, in the unit of the trace's clock, or after an event, by its id.",
        ),
    ] = "",
    step: Annotated[
        str, Option("--step", metavar="N", help="Show only the state after event N, counted from 1, or 'last'.")
    ] = "",
    output_format: Annotated[TextOrJson, Option("--format", "-f", help="The output format.")] = (TextOrJson.TEXT),
) -> int:
    """Replay a trace: after each event, show which agents are active, what is under way and what was spent.

    Each line is an event: its number in the replay, its time, its id, and what happened. --until and --step
    together show one of the states up to T: the Nth, or the last. JSON output has a line that names the schema,
    then a line for each state.

    \b
    Examples:
      corpus trace replay data/traces/swarm.json
      corpus trace replay data/traces/swarm.json --until 7
      corpus trace replay data/traces/swarm.json --until 7 --step last
      corpus trace replay data/traces/swarm.json --step 5 --format json
    """
    session = Session(*ctx.obj)
    if step not in ("", "last") and not (step.isdecimal() and int(step)):
        raise CommandUseError(f"{quote(step)} is not the number of an event", "Give 1 for the first, or last.")
    _, view = load_one_trace(session, path, name)
    trace = view.trace
    states = _states_until(session, view, until) if until else replay(view)
    if step == "last":
        states = iter([_last_state(states)])
    elif step:
        states = iter([_state_after(states, int(step))])
    if output_format is TextOrJson.JSON:
        head = {
            "schema": "orchtrace-corpus/trace-replay",
            "version": SCHEMA_VERSION,
            "trace_id": trace.trace_id,
            "unit": trace.clock.unit.value,
        }
        session.output.write(_json_line(head))
    else:
        session.output.show(render_show.replay_heading(session.output.width))
    names = agent_names(view)
    for agent, agent_name in names.items():
        if agent_name.startswith(f"{agent} ("):  # without the role in parentheses, which would repeat in every line
            names[agent] = agent
    for state in states:
        if output_format is TextOrJson.JSON:
            session.output.write(_json_line(render_show.as_data(state)))
        else:
            session.output.show(render_show.state_lines(state, names, trace.clock.unit, session.output.width))
            if step:
                session.output.show(render_show.state_details(state, view, names, session.output.width))
    return ExitCode.DONE


def _json_line(value: object) -> str:
    import json

    return escape_controls(json.dumps(value, ensure_ascii=False)) + "\n"


def _states_until(session: Session, view: TraceView, until: str) -> Iterator[State]:
    """Return the states up to an event or a time; a text that can be both is the id of an event."""
    trace = view.trace
    end_time = None
    with suppress(ValueError):
        end_time = float(until)
    for step, index in enumerate(view.sequence, start=1):
        if trace.events[index].id == until:
            if end_time is not None:
                session.output.note(f"corpus: {quote(until)} is an event's id; for the time, write +{end_time:g}")
            return islice(replay(view), step)
    if end_time is None:
        raise CommandUseError(f"{quote(until)} is neither a time nor the id of an event")
    if not 0 <= end_time < inf:
        raise CommandUseError(f"{quote(until)} is not a time: times are numbers of 0 or more")
    first_time = min(event.t for event in trace.events)
    if end_time < first_time:
        unit = trace.clock.unit
        message = f"nothing has happened by {end_time:g} {unit}: the first event is at {first_time:g} {unit}"
        raise CommandUseError(message)
    return takewhile(lambda state: state.event.t <= end_time, replay(view))


def _state_after(states: Iterator[State], step: int) -> State:
    """Return the state after a step, counted from 1."""
    count = 0
    for state in states:
        count += 1
        if count == step:
            return state
    raise CommandUseError(f"there is no event {step}: this replay has {count}")


def _last_state(states: Iterator[State]) -> State:
    last = None
    for state in states:
        last = state
    if last is None:
        raise CommandUseError("there is no event 1: this replay has 0")
    return last


_MERMAID_EDGES = 500
_MERMAID_TEXT = 50_000
"""The default limits of Mermaid, its settings maxEdges and maxTextSize (in characters)."""


class GraphFormat(StrEnum):
    """The output formats of a graph."""

    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"


_FORMATS_BY_ENDING = {
    "": GraphFormat.MERMAID,
    ".mmd": GraphFormat.MERMAID,
    ".mermaid": GraphFormat.MERMAID,
    ".dot": GraphFormat.DOT,
    ".gv": GraphFormat.DOT,
    ".svg": GraphFormat.SVG,
}


def graph_trace(
    ctx: Context,
    path: File,
    name: SessionName = "",
    chosen: Annotated[
        GraphFormat | None,
        Option("--format", "-f", help="The output format (default: by the ending of FILE, else mermaid)."),
    ] = None,
    output: Annotated[str, Option("--output", "-o", metavar="FILE", help="Write to a new file.")] = "",
) -> int:
    """Write a trace as a graph for Mermaid or Graphviz, or as a picture of its timeline.

    The critical path is thick in graphs, and underlined in the picture (svg), which has a lane for each
    agent. A graph has a node for each event; the picture of a long run stays small.

    \b
    Examples:
      corpus trace graph data/traces/swarm.json
      corpus trace graph data/traces/swarm.json --format dot
      corpus trace graph data/traces/swarm.json --format svg
    """
    from orchtrace_corpus.trace.render import graph  # imported here, because it imports everything that draws

    session = Session(*ctx.obj)
    output_format = chosen or format_by_ending(output, _FORMATS_BY_ENDING, "graphs", "--format")
    _, view = load_one_trace(session, path, name)
    trace = view.trace
    if output_format is GraphFormat.MERMAID:
        text = graph.mermaid(view)
    elif output_format is GraphFormat.DOT:
        text = graph.dot(view)
    else:
        text = graph.timeline(view)
    write_output(session, output, text)
    size = f"{len(trace.events):,} events, {len(trace.edges):,} edges, {len(text.encode()) / 1e6:.1f} MB"
    if output_format is GraphFormat.MERMAID and (len(trace.edges) > _MERMAID_EDGES or len(text) > _MERMAID_TEXT):
        session.output.note(
            f"corpus: {size}; Mermaid by default draws {_MERMAID_EDGES} edges and "
            f"{_MERMAID_TEXT:,} characters. Raise its maxEdges and maxTextSize, or draw the timeline: --format svg"
        )
    elif output_format is GraphFormat.DOT and len(trace.events) > 2_000:
        session.output.note(
            f"corpus: {size}; Graphviz is slow with so many. The timeline is drawn at once: --format svg"
        )
    return ExitCode.DONE
