"""A trace as a graph for other programs to lay out, and as a picture of its timeline."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.drawing import LARGE, SMALL, Drawing, Picture, text_width, wrap
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.trace.measures.measure import people
from orchtrace_corpus.trace.model.terms import EdgeType, EventType, Status
from orchtrace_corpus.trace.model.trace import Event, Trace
from orchtrace_corpus.trace.render.names import break_lines, counted, duration, names_in
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from orchtrace_corpus.trace.view.timing import Timing, critical_chain

_MERMAID_ARROWS = {EdgeType.TEMPORAL: "-.->", EdgeType.SPAWN: "==>"}
_DOT_STYLES = {EdgeType.TEMPORAL: "dotted", EdgeType.SPAWN: "bold", EdgeType.SAFETY: "dashed"}


def _critical(times: Timing) -> tuple[list[int], str]:
    """The numbers of the events on the critical path, that of `trace doctor`; and what is said of it.

    It is what the end of the run waited for, and as long as the run; there is none where nothing takes time.
    """
    if not any(times.works):
        return [], "No critical path: the log does not say how long anything took."
    chain = critical_chain(times)
    unknown = f" {counted(len(times.unknown), 'call')} without an end: taken as 0 s." if times.unknown else ""
    return chain.events, f"the critical path, {_time(times.elapsed, times)}: what the end waited for.{unknown}"


def _time(seconds: float, times: Timing) -> str:
    return break_lines(duration(seconds, times.unit), 80)[0]


def mermaid(trace: Trace | TraceView) -> str:
    """The trace as a Mermaid flowchart: a box for each agent, a node for each event, edges by their type.

    Events and edges of the critical path are thick; failed events are red and dashed.

    Raises:
        CycleError: The edges go round in a circle.
    """
    view = TraceView.of(trace)
    (critical, text), events = _critical(view.timing), view.trace.events
    text = f"Thick: {text}" if critical else text
    lines, names = ["flowchart LR", f"  %% {text}"], names_in(view)
    for place, (agent, numbers) in enumerate(_by_agent(view.trace).items()):
        lines.append(f'  subgraph a{place}["{_mermaid_text(names[agent])}"]')
        lines += [f'    e{n}["{_mermaid_text(_caption(events[n]))}"]' for n in numbers]
        lines.append("  end")
    of, steps = view.graph, set(pairwise(critical))
    thick = []
    for place, (source, target, edge) in enumerate(zip(of.sources, of.targets, of.edges, strict=True)):
        arrow = _MERMAID_ARROWS.get(edge.type, "-->")
        lines.append(f"  e{source} {arrow}|{edge.type.value}| e{target}")
        if (source, target) in steps:
            thick.append(str(place))
    if thick:
        lines.append(f"  linkStyle {','.join(thick)} stroke-width:5px")
    failed = [n for n, event in enumerate(events) if event.status is Status.ERROR]
    look = {"critical": "stroke-width:4px", "failed": "stroke:#c1121f,stroke-dasharray:5 3"}
    for name, numbers in (("critical", critical), ("failed", failed)):
        if numbers:
            lines += [f"  classDef {name} {look[name]}", f"  class {','.join(f'e{n}' for n in numbers)} {name}"]
    return "\n".join(lines) + "\n"


def dot(trace: Trace | TraceView) -> str:
    """The trace in the language of Graphviz: a cluster for each agent, a node for each event, edges by their type.

    Events and edges of the critical path are thick; failed events are red and dashed.

    Raises:
        CycleError: The edges go round in a circle.
    """
    view = TraceView.of(trace)
    (critical, text), events = _critical(view.timing), view.trace.events
    text = f"Thick: {text}" if critical else text
    thick, steps = set(critical), set(pairwise(critical))
    lines = [
        "digraph trace {",
        "  rankdir=LR;",
        "  node [shape=box, fontname=sans];",
        f'  label={_quoted(view.trace.trace_id)[:-1]}\\n{text}";',
    ]
    names = names_in(view)
    for place, (agent, indices) in enumerate(_by_agent(view.trace).items()):
        lines += [f"  subgraph cluster_{place} {{", f"    label={_quoted(names[agent])};"]
        for index in indices:
            event = events[index]
            look = ", color=red, style=dashed" if event.status is Status.ERROR else ""
            look += ", penwidth=4" if index in thick else ""
            lines.append(f"    e{index} [label={_quoted(_caption(event))}{look}];")
        lines.append("  }")
    of = view.graph
    for source, target, edge in zip(of.sources, of.targets, of.edges, strict=True):
        look = f"style={_DOT_STYLES.get(edge.type, 'solid')}"
        look += ", penwidth=5" if (source, target) in steps else ""
        lines.append(f"  e{source} -> e{target} [label={edge.type.value}, {look}];")
    return "\n".join((*lines, "}")) + "\n"


def _by_agent(trace: Trace) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for index, event in enumerate(trace.events):
        found.setdefault(event.agent, []).append(index)
    return found


def _caption(event: Event) -> str:
    tool = f" {event.tool}" if event.tool else ""
    return f"{event.id}: {event.type.value}{tool}"


def _mermaid_text(text: str) -> str:
    """Text that stays text in a quoted Mermaid label: what could end it or be markup becomes a character entity."""
    shown = printable(text, limit=60)
    return "".join(c if c.isalnum() or c in " .,:_-/()" else f"#{ord(c)};" for c in shown)


def _quoted(text: str) -> str:
    escaped = printable(text, limit=60).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_WIDTH = 900.0
_MARGIN = 16.0
_LANE = 26.0
_BAR = 14.0
_MOST_LANES = 200
_MOST_COUNTED = 99
_MOST_TEXT = 300
_LEAST_BAR = 2.0


def timeline(trace: Trace | TraceView) -> Picture:
    """The trace as a picture: a lane for each agent, time from left to right, the critical path underlined.

    Raises:
        CycleError: The edges go round in a circle.
    """
    view = TraceView.of(trace)
    times, events = view.timing, view.trace.events
    on_path, text = _critical(times)
    critical = set(on_path)
    lanes, names = view.agents[:_MOST_LANES], names_in(view)
    drawing = Drawing("trace", _WIDTH)
    y = _MARGIN + LARGE
    name = printable(view.trace.trace_id, limit=_MOST_TEXT)
    for part in wrap(name, _WIDTH - 2 * _MARGIN, LARGE, lines=2, bold=True):
        drawing.text(_MARGIN, y, part, size=LARGE, bold=True)
        y += LARGE * 1.3
    left = _MARGIN + min(max(text_width(_lane_name(lane, names), SMALL) for lane in lanes), 170.0) + 12
    scale = (_WIDTH - _MARGIN - left) / times.elapsed if times.elapsed else 0.0
    top = y
    for lane in lanes:
        label = wrap(_lane_name(lane, names), left - _MARGIN - 12, SMALL, lines=1)
        middle = y + _LANE / 2
        drawing.text(_MARGIN + 10 * lane.depth, middle + SMALL * 0.35, label[0] if label else "", size=SMALL)
        _draw_lane(drawing, view, lane, middle, (left, scale), critical)
        y += _LANE
    drawing.line(left, top, left, y, "rule")
    drawing.text(left, y + SMALL, "0", "muted", size=SMALL)
    drawing.text(_WIDTH - _MARGIN, y + SMALL, _time(times.elapsed, times), "muted", size=SMALL, anchor="end")
    y += SMALL * 2
    for part in wrap(
        _notes(view, f"Underlined: {text}" if critical else text, len(lanes)), _WIDTH - 2 * _MARGIN, SMALL, lines=4
    ):
        drawing.text(_MARGIN, y + SMALL, part, "muted", size=SMALL)
        y += SMALL * 1.3
    drawing.height = y + _MARGIN
    path = first_names_and_more([printable(events[n].id) for n in on_path if times.works[n] > 0], 30)
    acting = {agent.agent for agent in view.agents}
    persons = len(acting & people(view.trace))
    team = counted(len(acting) - persons, "agent") + (f" and {counted(persons, 'person')}" if persons else "")
    description = f"{team}, {counted(len(events), 'event')}, {_time(times.elapsed, times)} elapsed."
    return Picture(drawing.svg(name, f"{description} Critical path: {path or 'unknown'}."))


def _lane_name(lane: AgentSpan, names: Mapping[str, str]) -> str:
    return "  " * lane.depth + names[lane.agent]


def _draw_lane(
    drawing: Drawing, view: TraceView, lane: AgentSpan, middle: float, axis: tuple[float, float], critical: set[int]
) -> None:
    trace, times = view.trace, view.timing
    left, scale = axis
    opened = {open_call.event for open_call in view.open_calls}

    def place(moment: float) -> float:
        return left + (min(max(moment, times.begin), times.end) - times.begin) * scale

    drawing.line(place(lane.begin), middle, place(lane.end), middle, "rule")
    drawn: set[tuple[int, int, str]] = set()  # of bars that would lie on each other, one is enough
    underlined: list[tuple[float, float]] = []
    marks: list[tuple[float, bool]] = []
    for index in lane.events:
        event = trace.events[index]
        x = place(times.starts[index])
        if event.status is Status.ERROR or times.works[index] == 0:
            marks.append((x, event.status is Status.ERROR))
        if times.works[index] == 0:
            continue
        fill = "series1" if event.type is EventType.TOOL_CALL else "series0"
        fill = "series2" if index in opened else fill
        width = place(times.ends[index]) - x
        if width < _LEAST_BAR:
            x, width = x - x % _LEAST_BAR, _LEAST_BAR
        bar = (round(x), round(width), fill)
        if bar not in drawn:
            drawn.add(bar)
            drawing.rect(x, middle - _BAR / 2, width, _BAR, fill, radius=2)
        if index in critical:
            underlined.append((x, x + width))
    for begin, end in _joined(underlined):
        drawing.rect(begin, middle + _BAR / 2 + 1, end - begin, 3, "ink")
    for x, failed in _gathered(marks):
        _draw_mark(drawing, x, middle, failed)


def _joined(stretches: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Stretches from left to right, those that touch as one."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(stretches):
        if found and begin <= found[-1][1] + 0.5:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def _gathered(marks: list[tuple[float, bool]]) -> list[tuple[int, list[bool]]]:
    """Marks by the pixel at which they are drawn: those of one pixel together, in a full lane those of a stretch."""
    step = 1 if len({round(x) for x, _ in marks}) <= 50 else 18
    found: dict[int, list[bool]] = {}
    for x, failed in marks:
        found.setdefault(round(x) // step * step + step // 2, []).append(failed)
    return list(found.items())


def _draw_mark(drawing: Drawing, x: float, middle: float, failed: Sequence[bool]) -> None:
    """A circle for the events at one place, with their number where there are several."""
    fill = "series5" if any(failed) else "page"
    if len(failed) == 1:
        drawing.circle(x, middle, 5 if any(failed) else 3, fill, stroke="muted")
        return
    number = str(len(failed)) if len(failed) <= _MOST_COUNTED else f"{_MOST_COUNTED}+"
    drawing.circle(x, middle, 5 + 2 * len(number), fill, stroke="muted")
    drawing.text(x, middle + 4, number, "page" if any(failed) else "ink", size=10, anchor="middle")


def _notes(view: TraceView, of_path: str, lanes: int) -> str:
    times, parts = view.timing, ["Blue: a model works. Orange: a tool works."]
    parts += ["Grey: a call that perhaps waits."] if view.open_calls else []
    parts.append("Circle: an event without duration; a number: so many there; red: an error.")
    parts.append(of_path)
    if times.waited:
        parts.append(f"{_time(times.waited, times)} waited for people are left out.")
    if lanes == _MOST_LANES:
        parts.append(f"The first {_MOST_LANES} agents are shown.")
    return " ".join(parts)
