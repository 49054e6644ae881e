"""A trace on a page: its agents as a tree, each with a line of time; and a replay, event by event."""

from collections.abc import Collection, Iterator, Mapping, Sequence
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
from orchtrace_corpus.trace.render.ledger import KINDS, PARTS
from orchtrace_corpus.trace.render.names import break_lines, duration, keep, money, quantity
from orchtrace_corpus.trace.render.sentences import Sentences
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.intervals import Intervals, length
from orchtrace_corpus.trace.view.timing import WORKING

_PIPE_WIDTH = 100
_MARKS = {
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
_OPEN = "?"
_FAILED = "x"
_WARM_UP = "w"
_WORDS = {"s": "spawn", "d": "end of an agent", "m": "message", "t": "tool", "r": "return", "h": "person",
          "!": "guard", "e": "stop", _WARM_UP: "warm-up, off the clock", _FAILED: "error"}  # fmt: skip


def page(trace: Trace | TraceView, width: int | None, glyphs: Glyphs = UNICODE, *, most_agents: int = 40) -> list[Line]:
    """The trace on a page that fits the width.

    Raises:
        CycleError: The edges go round in a circle.
    """
    room = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    view = TraceView.of(trace)
    diagnosis = diagnose(view)
    sentences, agents = Sentences(diagnosis), view.agents
    lines = [*_head(view, room, glyphs), *(line(text) for text in break_lines(sentences.head(), room)), ()]
    lines += timelines(diagnosis, agents[:most_agents], room, glyphs, sentences.names)
    if len(agents) > most_agents:
        more = f"{glyphs.ellipsis} and {quantity(len(agents) - most_agents, 'more agent')}; --agents shows more"
        lines += [line(text, "muted") for text in break_lines(more, room)]
    lines.append(())
    for label, text in list(sentences.path()) or [("Path", "unknown: the log does not say how long it took.")]:
        lines += [line(part) for part in break_lines(text, room, label=f"{label} ", indent=10 if room >= 50 else 2)]
    return lines


def event_page(trace: Trace | TraceView, name: str, width: int | None) -> list[Line]:
    """One event: what it is, its time, what it spent, where the log has it, and what depends on what.

    A call and its result have the time between them, and the status of the result; a call's id in the log names it.

    Raises:
        CommandUseError: There is no event of that name.
        CycleError: The edges go round in a circle.
    """
    view, room = TraceView.of(trace), min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    of, events = view.graph, view.trace.events
    found = [place for place, one in enumerate(events) if one.id == name]
    found = found or [place for place, one in enumerate(events) if one.call_id == name]
    if not found:
        raise CommandUseError(f"there is no event {quote(name)}", "corpus trace replay lists all.")
    index, event, diagnosis, times = found[0], events[found[0]], diagnose(view), view.timing
    pair = [n for n, one in enumerate(events) if n != index and event.call_id and one.call_id == event.call_id]
    names = Sentences(diagnosis).names

    def others(numbers: list[int]) -> str:
        shown = [f"{printable(events[n].id, limit=40)} ({_act(events[n], names)})" for n in numbers]
        return first_names_and_more(shown, 5, ", and {:,} more") or "nothing"

    came_before = [source for source, target in zip(of.sources, of.targets, strict=True) if target == index]
    follows = [target for source, target in zip(of.sources, of.targets, strict=True) if source == index]
    took = duration(times.works[index], times.unit) if times.works[index] else "no time"
    called = min((times.starts[n] for n in pair), default=times.starts[index])
    if event.type is EventType.TOOL_RESULT and times.starts[index] > called:
        took = f"{duration(times.starts[index] - called, times.unit)} after its call"
    opened = not {index, *pair}.isdisjoint(perhaps_waiting(view))
    ended = next((one for one in (event, *(events[n] for n in pair)) if one.status is not Status.UNKNOWN), event)
    kinds = [
        NOUNS[finding.kind]
        for finding in diagnosis.between.findings
        if index in (*finding.events, *finding.cost_events)
    ]
    tokens = event.tokens if isinstance(event.tokens, Tokens) else Tokens()
    words = KINDS | PARTS
    spent = [f"{amount:,.10g} {words[kind]}" for kind, amount in by_kind(tokens).items() if amount]
    rows = {
        "Time": f"at {duration(max(times.starts[index] - times.begin, 0.0), times.unit)}, {took}",
        "Model": printable(event.model, limit=60),
        "Tokens": ", ".join(spent),
        "Cost": "" if event.cost_usd is None else f"{money(event.cost_usd)} USD",
        "Status": ended.status.value + (f", {printable(ended.error_type, limit=60)}" if ended.error_type else ""),
        "Log": _place(event),
        "Follows": others(came_before),
        "Leads to": others(follows),
        "Finding": ", ".join(dict.fromkeys(kinds)),
    }
    rows["Time"] += ", perhaps waiting" if opened else ""
    idle = times.begins[index] - times.starts[index]
    notes = _notes_on_time(event, idle, times.stated.people.get(index, []), times.unit)
    rows["Time"] += "".join(f", {note}" for note in notes)
    lines = [line(clip(f"{printable(event.id, limit=60)}: {_act(event, names)}", room), "heading")]
    for label, text in rows.items():
        if text:
            lines += [line(part) for part in break_lines(text, room, label=f"{label} ", indent=10)]
    return lines


def _act(event: Event, names: Mapping[str, str]) -> str:
    """Describe an event: its type, its agent, and the other agent."""
    what = event.type.value.replace("_", " ") + (f" {printable(event.tool, limit=40)}" if event.tool else "")
    target = names.get(event.target) or printable(event.target, limit=40)
    agent = names.get(event.agent) or printable(event.agent, limit=40)
    return f"{what} of {agent}{f' to {target}' if target else ''}"


def _place(event: Event) -> str:
    source = event.source
    if not isinstance(source, Source) or not source.file:
        return ""
    return printable(source.file, limit=200) + (f":{source.line}" if source.line else "")


def timelines(
    diagnosis: Diagnosis, agents: Sequence[AgentSpan], room: int, glyphs: Glyphs, names: Mapping[str, str]
) -> list[Line]:
    """A line of time for each agent, its tokens at the end, between the scale of the time and the signs that are used.

    Args:
        diagnosis: What is known of the run.
        agents: Whom to show.
        room: The cells of a line.
        glyphs: The characters to draw with.
        names: What the agents are called.
    """
    elapsed = diagnosis.summary.elapsed
    labels = ["  " * agent.depth + names[agent.agent] for agent in agents]
    label_width = min(max(map(display_width, labels)), 30, max(room // 3, 8))
    heading = "tokens" if any(one.tokens is not None for one in agents) else ""
    tokens = [_tokens(one, diagnosis.tokens.least) for one in agents]
    token_width = max(len(heading) - 1, *map(len, tokens), 0)
    cells = max(room - label_width - token_width - 4, 16)
    end = break_lines(duration(elapsed, diagnosis.summary.unit), room)[0]
    scale = pad("", label_width + 2) + "0" + " " * max(cells - 1 - display_width(end), 1) + end
    free = room - display_width(scale)
    lines: list[Line] = [(Span(scale + (heading.rjust(free) if free > len(heading) > 0 else ""), "muted"),)]
    drawn: set[str] = set()
    for one, label, spent in zip(agents, labels, tokens, strict=True):
        name = pad(clip(label, label_width, glyphs.ellipsis), label_width)
        spans = _timeline(diagnosis, one, cells, glyphs)
        drawn |= {character for span in spans for character in span.text}
        lines.append((Span(name, "key" if one.depth == 0 else ""), Span("  "), *spans,
                      Span(f"  {spent.rjust(token_width)}".rstrip(), "muted")))  # fmt: skip
    assumed = [f"{glyphs.shades[1]} assumed"] if glyphs.shades[1] in drawn else []
    signs = [f"{glyphs.shades[0]} model", *assumed, f"{glyphs.shades[2]} tool", f"{glyphs.empty} idle"]
    signs += [f"{_OPEN} open"] if _OPEN in drawn else []
    signs += [f"{sign} {words}" for sign, words in _WORDS.items() if sign in drawn]
    signs += ["+ at least"] if any(text.endswith("+") for text in tokens) else []
    if elapsed:
        lines += [line(text, "muted") for text in break_lines(", ".join(map(keep, signs)), room)]
    return lines


def _head(view: TraceView, room: int, glyphs: Glyphs) -> Iterator[Line]:
    trace = view.trace
    yield line(clip(printable(trace.trace_id, limit=200), room, glyphs.ellipsis), "heading")
    task = [f"task {printable(trace.task_id)}"] if trace.task_id != trace.trace_id else []  # logs name no task
    parts = [*task, f"topology {trace.topology.value.replace('_', ' ')}"]
    tokens, seconds = trace.costs.get("tokens"), trace.costs.get("wall_clock_s")
    stated = [] if tokens is None else [f"{tokens:,.10g} tokens"]
    stated += [] if seconds is None else [f"wall clock {duration(seconds)}"]
    parts += ["tokens unknown"] if tokens is None else []
    parts += ["time unknown"] if seconds is None else []
    parts += [f"stated: {', '.join(stated)}"] if stated else []
    yield from map(line, break_lines(glyphs.separator.join(parts), room))


def _notes_on_time(event: Event, idle: float, waits: Intervals, unit: str) -> Iterator[str]:
    """Yield what is known of the time of an event beside its length."""
    if event.run_time is not None and idle > 0:
        yield f"behind {duration(idle, unit)} that were no work of its own"
    if event.background:
        yield "in the background"
    if event.unfinished:
        yield "its end is not in the log"
    if waits:
        yield f"behind {duration(length(waits), unit)} of waiting that follow from the stated duration of its turn"


def _tokens(agent_span: AgentSpan, least: Collection[str]) -> str:
    return "" if agent_span.tokens is None else f"{agent_span.tokens:,.10g}{'+' if agent_span.agent in least else ''}"


def _timeline(diagnosis: Diagnosis, agent_span: AgentSpan, cells: int, glyphs: Glyphs) -> list[Span]:
    view = diagnosis.view
    trace, times = view.trace, view.timing
    opened = {call.event for call in view.open_calls}
    scale = (cells - 1) / times.elapsed if times.elapsed else 0.0

    def cell(moment: float) -> int:
        return round((min(max(moment, times.begin), times.end) - times.begin) * scale)

    characters = [" "] * cells
    styles = [""] * cells
    if agent_span.events and all(trace.events[index].warm_up for index in agent_span.events):
        return [Span(_WARM_UP.ljust(cells), "heading")]
    for place in range(cell(agent_span.begin), cell(agent_span.end) + 1):
        characters[place], styles[place] = glyphs.empty, "muted"
    for index in agent_span.events:
        event = trace.events[index]
        if times.works[index] > 0:
            tool = event.type is EventType.TOOL_CALL
            first = cell(times.begins[index])
            for place in range(first, max(cell(times.ends[index]) - 1, first) + 1):
                shade = glyphs.shades[2 if tool else 1 if index in diagnosis.assumed else 0]
                characters[place] = _OPEN if index in opened else shade
                styles[place] = "implicit" if tool else "bar"
    for index in agent_span.events:
        event = trace.events[index]
        place = cell(times.starts[index])
        if event.status is Status.ERROR:
            characters[place], styles[place] = _FAILED, "warning"
        elif times.works[index] == 0 and characters[place] in (glyphs.empty, " "):
            if event.type in _MARKS:
                characters[place], styles[place] = _MARKS[event.type], "heading"
            elif event.type in WORKING and characters[place] == glyphs.empty:
                characters[place], styles[place] = glyphs.shades[0], "bar"
    runs = groupby(zip(characters, styles, strict=True), key=itemgetter(1))
    return [Span("".join(character for character, _ in run), style) for style, run in runs]


_COUNTERS = {"live": 5, "calls": 6, "flight": 7, "tokens": 11}
"""The counters of a replay, and how wide their columns are on a terminal that has room for them."""
_ROOM_FOR_COUNTERS = 70


def replay_heading(width: int | None) -> list[Line]:
    """Return the heading of a replay's columns; empty if there are none."""
    if width is None or width < _ROOM_FOR_COUNTERS:
        return []
    counters = "".join(name.rjust(room) for name, room in _COUNTERS.items())
    return [line(pad(f"{'#':>5}  {'time':>9}  event", width - len(counters)) + counters, "heading")]


def state_lines(state: State, names: Mapping[str, str], unit: Unit, width: int | None) -> list[Line]:
    """A state: the event, and in columns, how things stand after it, unless the terminal is too narrow for these.

    An event that is itself too long goes on in further lines.

    Args:
        state: The state.
        names: What the agents are called.
        unit: The unit of the trace's times.
        width: The cells of the terminal; None where there is none.
        names: What each agent is called.
    """
    event = state.event
    steps = "step" if event.t == 1 else "steps"
    time = f"{event.t:.10g} {steps if unit is Unit.STEP else unit}"
    place = f"{state.step:>5}  {time:>9}  "
    name, said = printable(event.id, limit=200), _said(event, names)
    figures = [*map(str, state.counts), f"{state.tokens:,.10g}{'+?' if state.without_tokens else ''}"]
    if width is None:
        live, calls, flight, tokens = figures
        counters = f"  live {live}, calls {calls}, in flight {flight}, tokens {tokens}"
        return [(Span(f"{place}{name}  {said}"), Span(counters, "muted"))]
    after = "".join(figure.rjust(room) for figure, room in zip(figures, _COUNTERS.values(), strict=True))
    after = after if width >= _ROOM_FOR_COUNTERS else ""
    room, indent = width - len(after), " " * len(place)
    pieces = _pieces(name, max(room - len(place), 8))
    first, rest = place + pieces[0], [indent + piece for piece in pieces[1:]]
    if not rest and display_width(first) + 2 + display_width(said) <= room:
        first += f"  {said}"
    else:
        rest += [clip(part, width) for part in wrap(said, room, first=indent, rest=indent)]
    return [(Span(pad(first, room) if after else first), Span(after, "muted")), *((Span(part),) for part in rest)]


def standing(state: State, view: TraceView, names: Mapping[str, str], width: int | None) -> list[Line]:
    """Return the active agents after an event, the open calls, and the unread messages."""
    calls = {of.call_id: of for of in view.trace.events if of.type is EventType.TOOL_CALL and of.call_id}
    known = {of.id: of for of in view.trace.events} | calls
    rows = {"Active": [names.get(agent) or printable(agent, limit=40) for agent in state.live]}
    for label, ids in (("Open", state.open_calls), ("In flight", state.in_flight)):
        rows[label] = [f"{printable(one, limit=40)} ({_said(known[one], names)})" for one in ids]
    room = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    texts = [(label, ", ".join(map(keep, found)) or "nothing") for label, found in rows.items()]
    return [line(part) for label, text in texts for part in break_lines(text, room, label=f"{label} ", indent=11)]


def _pieces(text: str, room: int) -> list[str]:
    """A text in pieces of at most so many cells, since a name may have no blanks to break it at."""
    found: list[str] = []
    while text:
        found.append(clip(text, room, ""))
        text = text[len(found[-1]) :]
    return found


def _said(event: Event, names: Mapping[str, str]) -> str:
    to = f" -> {names.get(event.target) or printable(event.target, limit=40)}" if event.target else ""
    tool = f" {printable(event.tool, limit=40)}" if event.tool else ""
    failed = " (error)" if event.status is Status.ERROR else ""
    return f"{names.get(event.agent) or printable(event.agent, limit=40)}: {event.type.value}{tool}{to}{failed}"


def as_data(state: State) -> dict[str, object]:
    """A state for programs."""
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
