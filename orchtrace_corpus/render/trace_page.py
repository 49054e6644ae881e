"""A trace on a page: its agents as a tree, each with a line of time; and a replay, event by event."""

from collections.abc import Iterator, Sequence

from orchtrace_corpus.findings import printable
from orchtrace_corpus.render.layout import UNICODE, Glyphs, Line, Span, clip, display_width, line, pad, wrap
from orchtrace_corpus.trace.measures import measure
from orchtrace_corpus.trace.model import Event, EventType, Status, Trace
from orchtrace_corpus.trace.replay import State
from orchtrace_corpus.trace.roster import Appearance, roster
from orchtrace_corpus.trace.timing import WORKING, Timing, timing

_PIPE_WIDTH = 100
_LEAST_TIMELINE = 16
_MOST_LABEL = 30
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
_LEGEND = "s spawn, d despawn, m message, t tool, r return, h human, ! safety, e stop, x error"


def page(trace: Trace, width: int | None, glyphs: Glyphs = UNICODE, *, most_agents: int = 40) -> list[Line]:
    """The trace on a page that fits the width.

    Raises:
        CycleError: The edges go round in a circle.
    """
    room = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    times = timing(trace)
    agents = roster(trace, times)
    shown = agents[:most_agents]
    lines = [*_head(trace, times, agents, room, glyphs), (), *timelines(trace, times, shown, room, glyphs)]
    if len(agents) > len(shown):
        lines.append(
            line(f"{glyphs.ellipsis} and {len(agents) - len(shown)} more agents; --agents shows more", "muted")
        )
    lines.append(())
    legend = f"{glyphs.shades[0]} model works  {glyphs.shades[2]} tool works  {glyphs.empty} alive; {_LEGEND}"
    lines += [line(text, "muted") for text in wrap(legend, room)]
    return [*lines, *_critical_path(trace, times.unit, room)]


def timelines(
    trace: Trace, times: Timing, agents: Sequence[Appearance], room: int, glyphs: Glyphs = UNICODE
) -> list[Line]:
    """A line of time for each agent, with its tokens at the end, below the scale of the time."""
    labels = [_label(one) for one in agents]
    label_width = min(max(map(display_width, labels)), _MOST_LABEL, max(room // 3, 8))
    token_width = max((len(_tokens(one)) for one in agents), default=0)
    cells = max(room - label_width - token_width - 4, _LEAST_TIMELINE)
    lines: list[Line] = [(Span(pad("", label_width + 2) + _scale(times, cells), "muted"),)]
    for one, label in zip(agents, labels, strict=True):
        name = pad(clip(label, label_width, glyphs.ellipsis), label_width)
        spans = _timeline(trace, times, one, cells, glyphs)
        lines.append((Span(name, "key" if one.depth == 0 else ""), Span("  "), *spans,
                      Span(f"  {_tokens(one).rjust(token_width)}".rstrip(), "muted")))  # fmt: skip
    return lines


def _head(trace: Trace, times: Timing, agents: Sequence[Appearance], room: int, glyphs: Glyphs) -> Iterator[Line]:
    yield line(clip(printable(trace.trace_id, limit=200), room, glyphs.ellipsis), "heading")
    steps = times.unit == "step"
    parts = [
        f"task {printable(trace.task_id)}",
        trace.topology.value.replace("_", " "),
        _counted(len(agents), "agent"),
        _counted(len(trace.events), "event"),
        f"{times.wall:.6g} {'steps' if steps else 's'}",
    ]
    if times.waited:
        parts.append(f"{times.waited:.6g} s of waiting for people left out")
    for name, unit in (("tokens", "tokens"), ("wall_clock_s", "s stated")):
        value = trace.costs.get(name)
        parts.append(f"{name.partition('_')[0]} unknown" if value is None else f"{value:,.10g} {unit}")
    for text in wrap(glyphs.separator.join(parts), room):
        yield line(text)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def _label(one: Appearance) -> str:
    named = printable(one.agent, limit=60)
    return "  " * one.depth + named + (f" ({printable(one.role, limit=30)})" if one.role else "")


def _tokens(one: Appearance) -> str:
    return "" if one.tokens is None else f"{one.tokens:,.10g}"


def _scale(times: Timing, cells: int) -> str:
    end = f"{times.wall:.4g} {times.unit}"
    return "0" + " " * max(cells - 1 - len(end), 1) + end


def _timeline(trace: Trace, times: Timing, one: Appearance, cells: int, glyphs: Glyphs) -> list[Span]:
    zero = min(times.starts)
    scale = (cells - 1) / times.wall if times.wall else 0.0

    def cell(moment: float) -> int:
        return round((moment - zero) * scale)

    characters = [" "] * cells
    styles = [""] * cells
    for place in range(cell(one.begin), cell(one.end) + 1):
        characters[place], styles[place] = glyphs.empty, "muted"
    for number in one.events:
        event = trace.events[number]
        if times.works[number] > 0:
            tool = event.type is EventType.TOOL_CALL
            last = max(cell(times.ends[number]) - 1, cell(times.starts[number]))
            for place in range(cell(times.starts[number]), last + 1):
                characters[place] = glyphs.shades[2 if tool else 0]
                styles[place] = "implicit" if tool else "bar"
    for number in one.events:
        event = trace.events[number]
        place = cell(times.starts[number])
        if event.status is Status.ERROR:
            characters[place], styles[place] = "x", "warning"
        elif times.works[number] == 0 and event.type in WORKING and event.type not in _MARKS:
            if characters[place] == glyphs.empty:
                characters[place], styles[place] = glyphs.shades[0], "bar"
        elif event.type in _MARKS and times.works[number] == 0 and characters[place] in (glyphs.empty, " "):
            characters[place], styles[place] = _MARKS[event.type], "heading"
    return _runs("".join(characters), styles)


def _runs(text: str, styles: Sequence[str]) -> list[Span]:
    spans: list[Span] = []
    begin = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or styles[place] != styles[begin]:
            spans.append(Span(text[begin:place], styles[begin]))
            begin = place
    return spans


def _critical_path(trace: Trace, unit: str, room: int) -> Iterator[Line]:
    span = measure(trace, ["span"])["span"]
    if span.value is None:
        text = f"No critical path: {span.reason}"
    else:
        named = " -> ".join(printable(name, limit=40) for name in span.events[:12])
        more = f" -> … ({len(span.events)} events)" if len(span.events) > 12 else ""
        text = f"Critical path, {span.value:.6g} {unit}: {named}{more}"
    for part in wrap(text, room):
        yield line(part)


def replayed(state: State, width: int | None) -> Line:
    """One line for a state: the event, and how things stand after it."""
    event = state.event
    what = f"{state.step:>5}  {event.t:>8.6g}  {_said(event)}"
    live, calls, in_flight = state.counts
    stand = f"live {live}, calls {calls}, in flight {in_flight}"
    stand += f", tokens {state.tokens:,.10g}{'+?' if state.without_tokens else ''}"
    if width is None:
        return (Span(what), Span(f"  {stand}", "muted"))
    room = max(width - len(stand) - 2, 20)
    return (Span(pad(clip(what, room), room)), Span(f"  {stand}", "muted"))


def _said(event: Event) -> str:
    to = f" -> {printable(event.target, limit=40)}" if event.target else ""
    tool = f" {printable(event.tool, limit=40)}" if event.tool else ""
    failed = " (error)" if event.status is Status.ERROR else ""
    return f"{printable(event.agent, limit=40)}: {event.type.value}{tool}{to}{failed} [{printable(event.id, limit=40)}]"


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
