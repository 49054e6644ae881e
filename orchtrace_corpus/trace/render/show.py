"""A trace for a terminal: its agents as a tree with timelines, one of its events, or a replay event by event."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.text.layout import (
    UNICODE,
    Glyphs,
    Line,
    Span,
    clip,
    display_width,
    first_names_and_more,
    line,
    pad,
    wrap,
)
from orchtrace_corpus.trace.analysis.replay import State
from orchtrace_corpus.trace.diagnosis import diagnose, perhaps_waiting
from orchtrace_corpus.trace.diagnosis.values import Diagnosis
from orchtrace_corpus.trace.model.terms import EventType, Status, Unit
from orchtrace_corpus.trace.model.trace import Event, Source, Tokens, Trace, by_kind
from orchtrace_corpus.trace.render.findings import NOUNS
from orchtrace_corpus.trace.render.ledger import KIND_LABELS, PART_LABELS
from orchtrace_corpus.trace.render.names import break_lines, duration, money, restore_blanks, unbroken, unbroken_count
from orchtrace_corpus.trace.render.sentences import Sentences
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.intervals import length
from orchtrace_corpus.trace.view.timing import WORKING

_PIPE_WIDTH = 100  # the width for a pipe, and the largest for a terminal
_SIGNS = {
    EventType.SPAWN: "s",
    EventType.DESPAWN: "d",
    EventType.MESSAGE: "m",
    EventType.TOOL_CALL: "t",
    EventType.TOOL_RESULT: "t",
    EventType.RETURN: "r",
    EventType.HUMAN: "h",
    EventType.SAFETY: "!",
    EventType.STOP: "e",
}
"""The signs of events without duration in a timeline."""

_OPEN = "?"
_FAILED = "x"
_WARM_UP = "w"
_MEANINGS = {"s": "spawn", "d": "end of an agent", "m": "message", "t": "tool", "r": "return", "h": "person",
          "!": "guard", "e": "stop", _WARM_UP: "warm-up, off the clock", _FAILED: "error"}  # fmt: skip


def page(trace: Trace | TraceView, width: int | None, glyphs: Glyphs = UNICODE, *, most_agents: int = 40) -> list[Line]:
    """Return a trace as lines that fit the width: its figures, a timeline for each agent, the critical path."""
    room = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    view = TraceView.of(trace)
    diagnosis = diagnose(view)
    sentences, agents = Sentences(diagnosis), view.agents
    lines = [*_head(view, room, glyphs), *(line(text) for text in break_lines(sentences.head(), room)), ()]
    lines += timelines(diagnosis, agents[:most_agents], room, glyphs, sentences.names)
    if len(agents) > most_agents:
        more = f"{glyphs.ellipsis} and {unbroken_count(len(agents) - most_agents, 'more agent')}; --agents shows more"
        lines += [line(text, "muted") for text in break_lines(more, room)]
    lines.append(())
    path = list(sentences.path())
    if not path:
        path = [("Path", "unknown: the log does not say how long it took.")]
    indent = 10 if room >= 50 else 2
    for label, text in path:
        lines += [line(part) for part in break_lines(text, room, label=f"{label} ", indent=indent)]
    return lines


def event_page(trace: Trace | TraceView, name: str, width: int | None) -> list[Line]:
    """Return one event as lines: its time, tokens and cost, its place in the log, and the events that edges link to it.

    The event is given by its id or call id. A result also has the time since its call; a call has the status of its
    result.
    """
    view, room = TraceView.of(trace), min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    graph, events = view.graph, view.trace.events
    matches = [index for index, event in enumerate(events) if event.id == name]
    if not matches:
        matches = [index for index, event in enumerate(events) if event.call_id == name]
    if not matches:
        raise CommandUseError(f"there is no event {quote(name)}", "corpus trace replay lists all.")
    index = matches[0]
    event = events[index]
    diagnosis = diagnose(view)
    partners: list[int] = []  # the result of a call, or the call of a result
    if event.call_id:
        partners = [n for n, other in enumerate(events) if n != index and other.call_id == event.call_id]
    names = Sentences(diagnosis).names

    def describe(indices: list[int]) -> str:
        texts = [f"{printable(events[n].id, limit=40)} ({_describe_event(events[n], names)})" for n in indices]
        return first_names_and_more(texts, 5, ", and {:,} more") or "nothing"

    edges = list(zip(graph.sources, graph.targets, strict=True))
    findings = [found for found in diagnosis.team_findings.findings if index in (*found.events, *found.cost_events)]
    tokens = event.tokens if isinstance(event.tokens, Tokens) else Tokens()  # else UNSET: they are unknown
    labels = KIND_LABELS | PART_LABELS
    amounts = [f"{amount:,.10g} {labels[kind]}" for kind, amount in by_kind(tokens).items() if amount]
    log_place = ""
    if isinstance(event.source, Source) and event.source.file:
        log_place = printable(event.source.file, limit=200)
        if event.source.line:
            log_place += f":{event.source.line}"
    rows = {
        "Time": ", ".join(_time_of_event(diagnosis, index, partners)),
        "Model": printable(event.model, limit=60),
        "Tokens": ", ".join(amounts),
        "Cost": "" if event.cost_usd is None else f"{money(event.cost_usd)} USD",
        "Status": _status([event, *(events[partner] for partner in partners)]),
        "Log": log_place,
        "Follows": describe([source for source, target in edges if target == index]),
        "Leads to": describe([target for source, target in edges if source == index]),
        "Finding": ", ".join(dict.fromkeys(NOUNS[finding.kind] for finding in findings)),
    }
    lines = [line(clip(f"{printable(event.id, limit=60)}: {_describe_event(event, names)}", room), "heading")]
    for label, text in rows.items():
        if text:
            lines += [line(part) for part in break_lines(text, room, label=f"{label} ", indent=10)]
    return lines


def _status(events: Sequence[Event]) -> str:
    """Return the first known status of some events, with its error type; `unknown` if none is known."""
    known = [event for event in events if event.status is not Status.UNKNOWN]
    if not known:
        known = list(events)
    status = known[0].status.value
    if known[0].error_type:
        status += f", {printable(known[0].error_type, limit=60)}"
    return status


def _time_of_event(diagnosis: Diagnosis, index: int, partners: Sequence[int]) -> Iterator[str]:
    """Yield when an event happened, how long it took, and what is known about this time."""
    times, event = diagnosis.view.timing, diagnosis.view.trace.events[index]
    start, unit = times.starts[index], times.unit
    yield f"at {duration(max(start - times.begin, 0.0), unit)}"
    called = min((times.starts[partner] for partner in partners), default=start)
    if event.type is EventType.TOOL_RESULT and start > called:
        yield f"{duration(start - called, unit)} after its call"
    elif times.works[index]:
        yield duration(times.works[index], unit)
    else:
        yield "no time"
    if perhaps_waiting(diagnosis.view) & {index, *partners}:
        yield "perhaps waiting"
    waited = times.work_starts[index] - start
    if event.run_time is not None and waited > 0:
        yield f"behind {duration(waited, unit)} that were no work of its own"
    if event.background:
        yield "in the background"
    if event.unfinished:
        yield "its end is not in the log"
    if waits := times.stated.call_waits.get(index):  # in which it waited for people
        yield f"behind {duration(length(waits), unit)} of waiting that follow from the stated duration of its turn"


def _describe_event(event: Event, names: Mapping[str, str]) -> str:
    """Describe an event by its type, its tool, its agent, and the agent that it is directed at."""
    text = f"{event.type.value.replace('_', ' ')}{_tool(event)} of {_name(event.agent, names)}"
    return f"{text} to {_name(event.target, names)}" if event.target else text


def _tool(event: Event) -> str:
    return f" {printable(event.tool, limit=40)}" if event.tool else ""


def _name(agent: str, names: Mapping[str, str]) -> str:
    return names.get(agent) or printable(agent, limit=40)


def timelines(
    diagnosis: Diagnosis, agents: Sequence[AgentSpan], room: int, glyphs: Glyphs, names: Mapping[str, str]
) -> list[Line]:
    """Return a time scale, a timeline for each agent with its name and tokens, and a legend of the signs that occur."""
    elapsed = diagnosis.summary.elapsed
    labels = ["  " * agent.depth + names[agent.agent] for agent in agents]
    label_width = min(max(map(display_width, labels)), 30, max(room // 3, 8))
    heading = "tokens" if any(agent.tokens is not None for agent in agents) else ""
    tokens = []
    for agent in agents:
        amount = "" if agent.tokens is None else f"{agent.tokens:,.10g}"
        if amount and agent.agent in diagnosis.tokens.agents_with_unknown_tokens:
            amount += "+"
        tokens.append(amount)
    token_width = max(len(heading) - 1, *map(len, tokens), 0)  # the heading may begin one cell before the tokens
    cells = max(room - label_width - token_width - 4, 16)
    end = restore_blanks(duration(elapsed, diagnosis.summary.unit))
    scale = pad("", label_width + 2) + "0" + " " * max(cells - 1 - display_width(end), 1) + end
    free = room - display_width(scale)
    if free > len(heading) > 0:
        scale += heading.rjust(free)
    lines: list[Line] = [(Span(scale, "muted"),)]
    signs: set[str] = set()  # the characters that occur
    for agent, label, amount in zip(agents, labels, tokens, strict=True):
        name = pad(clip(label, label_width, glyphs.ellipsis), label_width)
        spans = _timeline(diagnosis, agent, cells, glyphs)
        signs.update(*(span.text for span in spans))
        lines.append(
            (
                Span(name, "key" if agent.depth == 0 else ""),
                Span("  "),
                *spans,
                Span(f"  {amount.rjust(token_width)}".rstrip(), "muted"),
            )
        )
    legend = [f"{glyphs.shades[0]} model"]
    if glyphs.shades[1] in signs:
        legend.append(f"{glyphs.shades[1]} assumed")
    legend += [f"{glyphs.shades[2]} tool", f"{glyphs.empty} idle"]
    if _OPEN in signs:
        legend.append(f"{_OPEN} open")
    legend += [f"{sign} {meaning}" for sign, meaning in _MEANINGS.items() if sign in signs]
    if any(amount.endswith("+") for amount in tokens):
        legend.append("+ at least")
    if elapsed:
        lines += [line(text, "muted") for text in break_lines(", ".join(map(unbroken, legend)), room)]
    return lines


def _head(view: TraceView, room: int, glyphs: Glyphs) -> Iterator[Line]:
    """Yield the id of a trace, its task and topology, and the tokens and the time that it states."""
    trace = view.trace
    yield line(clip(printable(trace.trace_id, limit=200), room, glyphs.ellipsis), "heading")
    parts = []
    if trace.task_id != trace.trace_id:  # both are the same in a trace of a log, since logs name no task
        parts.append(f"task {printable(trace.task_id)}")
    parts.append(f"topology {trace.topology.value.replace('_', ' ')}")
    tokens, seconds = trace.costs.get("tokens"), trace.costs.get("wall_clock_s")
    stated = []
    if tokens is None:
        parts.append("tokens unknown")
    else:
        stated.append(f"{tokens:,.10g} tokens")
    if seconds is None:
        parts.append("time unknown")
    else:
        stated.append(f"wall clock {duration(seconds)}")
    if stated:
        parts.append(f"stated: {', '.join(stated)}")
    yield from map(line, break_lines(glyphs.separator.join(parts), room))


def _timeline(diagnosis: Diagnosis, agent: AgentSpan, cells: int, glyphs: Glyphs) -> list[Span]:
    """Return the timeline of an agent: a character for each part of the time, in spans of one style."""
    view = diagnosis.view
    times = view.timing
    events = [(index, view.trace.events[index]) for index in agent.events]
    open_events = {call.event for call in view.open_calls}
    scale = (cells - 1) / times.elapsed if times.elapsed else 0.0

    def cell(moment: float) -> int:
        return round((min(max(moment, times.begin), times.end) - times.begin) * scale)

    if events and all(event.warm_up for _, event in events):
        return [Span(_WARM_UP.ljust(cells), "heading")]
    styled_characters = [(" ", "")] * cells  # each with its style
    for place in range(cell(agent.begin), cell(agent.end) + 1):
        styled_characters[place] = glyphs.empty, "muted"
    for index, event in events:
        if times.works[index] > 0:
            shade, style = glyphs.shades[0], "bar"
            if event.type is EventType.TOOL_CALL:
                shade, style = glyphs.shades[2], "implicit"
            elif index in diagnosis.assumed_events:
                shade = glyphs.shades[1]
            if index in open_events:
                shade = _OPEN
            first = cell(times.work_starts[index])
            last = max(cell(times.ends[index]) - 1, first)
            for place in range(first, last + 1):
                styled_characters[place] = shade, style
    for index, event in events:  # errors are drawn over work, other signs only where there is none
        place = cell(times.starts[index])
        character, _ = styled_characters[place]
        if event.status is Status.ERROR:
            styled_characters[place] = _FAILED, "warning"
        elif times.works[index] == 0 and character in (glyphs.empty, " "):
            if event.type in _SIGNS:
                styled_characters[place] = _SIGNS[event.type], "heading"
            elif event.type in WORKING and character == glyphs.empty:  # not outside the agent's time
                styled_characters[place] = glyphs.shades[0], "bar"
    by_style = groupby(styled_characters, key=itemgetter(1))
    return [Span("".join(character for character, _ in group), style) for style, group in by_style]


_COUNTERS = {"live": 5, "calls": 6, "flight": 7, "tokens": 11}
"""The counters of a replay, and the widths of their columns."""
_MIN_WIDTH_FOR_COUNTERS = 70


def replay_heading(width: int | None) -> list[Line]:
    """Return the heading of the columns of a replay; empty if the terminal is too narrow for columns."""
    if width is None or width < _MIN_WIDTH_FOR_COUNTERS:
        return []
    counters = "".join(name.rjust(column_width) for name, column_width in _COUNTERS.items())
    return [line(pad(f"{'#':>5}  {'time':>9}  event", width - len(counters)) + counters, "heading")]


def state_lines(state: State, names: Mapping[str, str], unit: Unit, width: int | None) -> list[Line]:
    """Return a state of a replay: its event, and the counters after the event.

    Counters are in columns to the right, or behind the event if there is no terminal; a narrow terminal has no room for
    them. An event that is too long continues in further lines.
    """
    event = state.event
    unit_name: str = unit
    if unit is Unit.STEP:
        unit_name = "step" if event.t == 1 else "steps"
    time = f"{event.t:.10g} {unit_name}"
    prefix = f"{state.step:>5}  {time:>9}  "
    name = printable(event.id, limit=200)
    description = _describe_agent_first(event, names)
    tokens = f"{state.tokens:,.10g}"
    if state.without_tokens:
        tokens += "+?"
    figures = [*map(str, state.counts), tokens]
    if width is None:
        live, calls, flight, _ = figures
        counters = f"  live {live}, calls {calls}, in flight {flight}, tokens {tokens}"
        return [(Span(f"{prefix}{name}  {description}"), Span(counters, "muted"))]
    counters = ""
    if width >= _MIN_WIDTH_FOR_COUNTERS:
        counters = "".join(map(str.rjust, figures, _COUNTERS.values()))
    room = width - len(counters)
    indent = " " * len(prefix)
    first, *rest = _divide(name, max(room - len(prefix), 8))
    first = prefix + first
    rest = [indent + part for part in rest]
    if not rest and display_width(first) + 2 + display_width(description) <= room:
        first += f"  {description}"
    else:
        rest += [clip(part, width) for part in wrap(description, room, first=indent, rest=indent)]
    if counters:
        first = pad(first, room)
    lines: list[Line] = [(Span(first), Span(counters, "muted"))]
    lines += [(Span(part),) for part in rest]
    return lines


def state_details(state: State, view: TraceView, names: Mapping[str, str], width: int | None) -> list[Line]:
    """Return the active agents after an event, the open calls, and the unread messages."""
    calls = {event.call_id: event for event in view.trace.events if event.type is EventType.TOOL_CALL and event.call_id}
    events = {event.id: event for event in view.trace.events} | calls  # by id or call id
    rows = {"Active": [_name(agent, names) for agent in state.live]}
    for label, ids in (("Open", state.open_calls), ("In flight", state.in_flight)):
        rows[label] = [f"{printable(name, limit=40)} ({_describe_agent_first(events[name], names)})" for name in ids]
    room = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    lines: list[Line] = []
    for label, parts in rows.items():
        text = ", ".join(map(unbroken, parts)) or "nothing"
        lines += [line(part) for part in break_lines(text, room, label=f"{label} ", indent=11)]
    return lines


def _divide(text: str, room: int) -> list[str]:
    """Divide a text into parts of at most `room` cells, even where it has no blank."""
    parts: list[str] = []
    while text:
        parts.append(clip(text, room, ""))
        text = text[len(parts[-1]) :]
    return parts


def _describe_agent_first(event: Event, names: Mapping[str, str]) -> str:
    """Describe an event of a replay by its agent, its type, its tool and its target."""
    target = f" -> {_name(event.target, names)}" if event.target else ""
    error = " (error)" if event.status is Status.ERROR else ""
    return f"{_name(event.agent, names)}: {event.type.value}{_tool(event)}{target}{error}"


def as_data(state: State) -> dict[str, object]:
    """Return a state of a replay for programs."""
    return {
        "step": state.step,
        "event": state.event.id,
        "t": state.event.t,
        "live": list(state.live),
        "open_calls": list(state.open_calls),
        "in_flight": list(state.in_flight),
        "tokens": state.tokens,
        "without_tokens": state.without_tokens,
        "cost_usd": state.cost_usd,
    }
