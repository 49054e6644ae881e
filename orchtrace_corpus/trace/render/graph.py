"""A trace as a graph for Mermaid or Graphviz, and as a picture of its timeline."""

from collections.abc import Sequence
from itertools import pairwise

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.drawing import LARGE, SMALL, Drawing, Picture, text_width, wrap
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.trace.measures.measure import people
from orchtrace_corpus.trace.model.terms import EdgeType, EventType, Status
from orchtrace_corpus.trace.model.trace import Event, Trace
from orchtrace_corpus.trace.render.names import agent_names, duration, format_count, restore_blanks
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.timing import Timing, critical_chain

_MERMAID_ARROWS = {EdgeType.TEMPORAL: "-.->", EdgeType.SPAWN: "==>"}
_MERMAID_STYLES = {"critical": "stroke-width:4px", "failed": "stroke:#c1121f,stroke-dasharray:5 3"}
_DOT_STYLES = {EdgeType.TEMPORAL: "dotted", EdgeType.SPAWN: "bold", EdgeType.SAFETY: "dashed"}


def _critical_path(times: Timing, style: str) -> tuple[list[int], str]:
    """Return the indices of the events on the critical path, and a text for the legend; `style` is how it is drawn."""
    if not any(times.works):
        return [], "No critical path: the log does not say how long anything took."
    text = f"{style}: the critical path, {_time(times.elapsed, times)}: what the end waited for."
    if times.unknown:
        text += f" {format_count(len(times.unknown), 'call')} without an end: taken as 0 s."
    return critical_chain(times).events, text


def _time(seconds: float, times: Timing) -> str:
    return restore_blanks(duration(seconds, times.unit))


def mermaid(trace: Trace | TraceView) -> str:
    """Return a trace as a Mermaid flowchart: a box for each agent, a node for each event, edges by their type.

    Events and edges of the critical path are thick; failed events are red and dashed.

    Raises:
        CycleError: The edges form a cycle.
    """
    view = TraceView.of(trace)
    graph, events, names = view.graph, view.trace.events, agent_names(view)
    critical, text = _critical_path(view.timing, "Thick")
    lines = ["flowchart LR", f"  %% {text}"]
    for place, (agent, indices) in enumerate(_group_by_agent(view.trace).items()):
        lines.append(f'  subgraph a{place}["{_mermaid_text(names[agent])}"]')
        lines += [f'    e{index}["{_mermaid_text(_caption(events[index]))}"]' for index in indices]
        lines.append("  end")
    critical_steps = set(pairwise(critical))
    thick_edges = []
    for place, (source, target, edge) in enumerate(zip(graph.sources, graph.targets, graph.edges, strict=True)):
        arrow = _MERMAID_ARROWS.get(edge.type, "-->")
        lines.append(f"  e{source} {arrow}|{edge.type.value}| e{target}")
        if (source, target) in critical_steps:
            thick_edges.append(str(place))
    if thick_edges:
        lines.append(f"  linkStyle {','.join(thick_edges)} stroke-width:5px")
    failed = [index for index, event in enumerate(events) if event.status is Status.ERROR]
    for name, indices in (("critical", critical), ("failed", failed)):
        if indices:
            nodes = ",".join(f"e{index}" for index in indices)
            lines += [f"  classDef {name} {_MERMAID_STYLES[name]}", f"  class {nodes} {name}"]
    return "\n".join(lines) + "\n"


def dot(trace: Trace | TraceView) -> str:
    """Return a trace in the language of Graphviz: a cluster for each agent, a node for each event, edges by their type.

    Events and edges of the critical path are thick; failed events are red and dashed.

    Raises:
        CycleError: The edges form a cycle.
    """
    view = TraceView.of(trace)
    graph, events, names = view.graph, view.trace.events, agent_names(view)
    critical, text = _critical_path(view.timing, "Thick")
    critical_events, critical_steps = set(critical), set(pairwise(critical))
    lines = [
        "digraph trace {",
        "  rankdir=LR;",
        "  node [shape=box, fontname=sans];",
        f'  label="{_dot_text(view.trace.trace_id)}\\n{text}";',
    ]
    for place, (agent, indices) in enumerate(_group_by_agent(view.trace).items()):
        lines += [f"  subgraph cluster_{place} {{", f'    label="{_dot_text(names[agent])}";']
        for index in indices:
            event = events[index]
            attributes = [f'label="{_dot_text(_caption(event))}"']
            if event.status is Status.ERROR:
                attributes += ["color=red", "style=dashed"]
            if index in critical_events:
                attributes.append("penwidth=4")
            lines.append(f"    e{index} [{', '.join(attributes)}];")
        lines.append("  }")
    for source, target, edge in zip(graph.sources, graph.targets, graph.edges, strict=True):
        attributes = [f"label={edge.type.value}", f"style={_DOT_STYLES.get(edge.type, 'solid')}"]
        if (source, target) in critical_steps:
            attributes.append("penwidth=5")
        lines.append(f"  e{source} -> e{target} [{', '.join(attributes)}];")
    return "\n".join((*lines, "}")) + "\n"


def _group_by_agent(trace: Trace) -> dict[str, list[int]]:
    """Return the indices of the events of each agent."""
    indices_by_agent: dict[str, list[int]] = {}
    for index, event in enumerate(trace.events):
        indices_by_agent.setdefault(event.agent, []).append(index)
    return indices_by_agent


def _caption(event: Event) -> str:
    tool = f" {event.tool}" if event.tool else ""
    return f"{event.id}: {event.type.value}{tool}"


def _mermaid_text(text: str) -> str:
    """Escape a text for a quoted Mermaid label: characters that could be markup become character entities."""
    characters = []
    for character in printable(text, limit=60):
        is_safe = character.isalnum() or character in " .,:_-/()"
        characters.append(character if is_safe else f"#{ord(character)};")
    return "".join(characters)


def _dot_text(text: str) -> str:
    """Escape a text for a quoted label of Graphviz."""
    return printable(text, limit=60).replace("\\", "\\\\").replace('"', '\\"')


# The sizes of the picture, in pixels.
_WIDTH = 900.0
_MARGIN = 16.0
_LANE_HEIGHT = 26.0
_BAR_HEIGHT = 14.0
_MIN_BAR_WIDTH = 2.0

_MAX_LANES = 200
_MAX_COUNT = 99
_MAX_TEXT = 300


def timeline(trace: Trace | TraceView) -> Picture:
    """Return a trace as a picture: a lane for each agent, time from left to right, the critical path underlined.

    Raises:
        CycleError: The edges form a cycle.
    """
    view = TraceView.of(trace)
    times, events = view.timing, view.trace.events
    critical, path_text = _critical_path(times, "Underlined")
    lanes, names = view.agents[:_MAX_LANES], agent_names(view)
    drawing = Drawing("trace", _WIDTH)
    y = _MARGIN + LARGE  # the height at which the next part of the picture is drawn
    title = printable(view.trace.trace_id, limit=_MAX_TEXT)
    for part in wrap(title, _WIDTH - 2 * _MARGIN, LARGE, lines=2, bold=True):
        drawing.text(_MARGIN, y, part, size=LARGE, bold=True)
        y += LARGE * 1.3
    labels = ["  " * lane.depth + names[lane.agent] for lane in lanes]
    left = _MARGIN + min(max(text_width(label, SMALL) for label in labels), 170.0) + 12  # the begin of the time axis
    scale = (_WIDTH - _MARGIN - left) / times.elapsed if times.elapsed else 0.0
    top = y
    critical_events = set(critical)
    for lane, label in zip(lanes, labels, strict=True):
        parts = wrap(label, left - _MARGIN - 12, SMALL, lines=1)
        middle = y + _LANE_HEIGHT / 2
        drawing.text(_MARGIN + 10 * lane.depth, middle + SMALL * 0.35, parts[0] if parts else "", size=SMALL)
        _draw_lane(drawing, view, lane, middle, (left, scale), critical_events)
        y += _LANE_HEIGHT
    drawing.line(left, top, left, y, "rule")
    drawing.text(left, y + SMALL, "0", "muted", size=SMALL)
    drawing.text(_WIDTH - _MARGIN, y + SMALL, _time(times.elapsed, times), "muted", size=SMALL, anchor="end")
    y += SMALL * 2
    for part in wrap(_legend(view, path_text), _WIDTH - 2 * _MARGIN, SMALL, lines=4):
        drawing.text(_MARGIN, y + SMALL, part, "muted", size=SMALL)
        y += SMALL * 1.3
    drawing.height = y + _MARGIN
    path_ids = [printable(events[index].id) for index in critical if times.works[index] > 0]
    path = first_names_and_more(path_ids, 30) or "unknown"
    members = {agent.agent for agent in view.agents}
    person_count = len(members & people(view.trace))
    team = format_count(len(members) - person_count, "agent")
    if person_count:
        team += f" and {format_count(person_count, 'person')}"
    description = f"{team}, {format_count(len(events), 'event')}, {_time(times.elapsed, times)} elapsed."
    return Picture(drawing.svg(title, f"{description} Critical path: {path}."))


def _draw_lane(
    drawing: Drawing, view: TraceView, lane: AgentSpan, middle: float, axis: tuple[float, float], critical: set[int]
) -> None:
    """Draw an agent's lane: bars for work, lines for the critical path, circles for errors and events without duration.

    Args:
        drawing: The picture.
        view: The trace.
        lane: The agent.
        middle: The height of the middle of the lane.
        axis: The x of the begin of the run, and the number of pixels in a unit of time.
        critical: The events on the critical path.
    """
    events, times = view.trace.events, view.timing
    left, scale = axis
    open_events = {call.event for call in view.open_calls}

    def x_of(moment: float) -> float:
        return left + (min(max(moment, times.begin), times.end) - times.begin) * scale

    drawing.line(x_of(lane.begin), middle, x_of(lane.end), middle, "rule")
    bars: set[tuple[int, int, str]] = set()  # of several bars that would cover each other, only one is drawn
    underlined: list[tuple[float, float]] = []  # each from x to x
    marks: list[tuple[float, bool]] = []  # each as its x, and whether the event failed
    for index in lane.events:
        event = events[index]
        x = x_of(times.starts[index])
        if event.status is Status.ERROR or times.works[index] == 0:
            marks.append((x, event.status is Status.ERROR))
        if times.works[index] == 0:
            continue
        fill = "series0"
        if index in open_events:
            fill = "series2"
        elif event.type is EventType.TOOL_CALL:
            fill = "series1"
        width = x_of(times.ends[index]) - x
        if width < _MIN_BAR_WIDTH:
            x -= x % _MIN_BAR_WIDTH
            width = _MIN_BAR_WIDTH
        bar = (round(x), round(width), fill)
        if bar not in bars:
            bars.add(bar)
            drawing.rect(x, middle - _BAR_HEIGHT / 2, width, _BAR_HEIGHT, fill, radius=2)
        if index in critical:
            underlined.append((x, x + width))
    for begin, end in _join_touching(underlined):
        drawing.rect(begin, middle + _BAR_HEIGHT / 2 + 1, end - begin, 3, "ink")
    # Marks at the same pixel are drawn as one mark; in a full lane, marks in the same 18 pixels.
    step = 1 if len({round(x) for x, _ in marks}) <= 50 else 18
    failures_by_pixel: dict[int, list[bool]] = {}
    for x, failed in marks:
        failures_by_pixel.setdefault(round(x) // step * step + step // 2, []).append(failed)
    for pixel, failures in failures_by_pixel.items():
        _draw_mark(drawing, pixel, middle, failures)


def _join_touching(intervals: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return intervals of pixels from left to right; intervals that touch are joined."""
    joined: list[tuple[float, float]] = []
    for begin, end in sorted(intervals):
        if joined and begin <= joined[-1][1] + 0.5:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return joined


def _draw_mark(drawing: Drawing, x: float, middle: float, failures: Sequence[bool]) -> None:
    """Draw a circle for the events at one place, with their number if there are several.

    `failures` says for each event if it failed.
    """
    has_failed = any(failures)
    fill = "series5" if has_failed else "page"
    if len(failures) == 1:
        drawing.circle(x, middle, 5 if has_failed else 3, fill, stroke="muted")
        return
    number = str(len(failures)) if len(failures) <= _MAX_COUNT else f"{_MAX_COUNT}+"
    drawing.circle(x, middle, 5 + 2 * len(number), fill, stroke="muted")
    drawing.text(x, middle + 4, number, "page" if has_failed else "ink", size=10, anchor="middle")


def _legend(view: TraceView, path_text: str) -> str:
    times = view.timing
    parts = ["Blue: a model works. Orange: a tool works."]
    if view.open_calls:
        parts.append("Grey: a call that perhaps waits.")
    parts.append("Circle: an event without duration; a number: so many there; red: an error.")
    parts.append(path_text)
    if times.waited:
        parts.append(f"{_time(times.waited, times)} waited for people are left out.")
    if len(view.agents) >= _MAX_LANES:
        parts.append(f"The first {_MAX_LANES} agents are shown.")
    return " ".join(parts)
