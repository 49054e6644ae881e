"""A trace as a graph for other programs to lay out, and as a picture of its timeline."""

from orchtrace_corpus.findings import printable
from orchtrace_corpus.render.drawing import LARGE, SMALL, Drawing, text_width, wrap
from orchtrace_corpus.trace.graph import graph
from orchtrace_corpus.trace.measures.measure import Run
from orchtrace_corpus.trace.measures.work import critical_path
from orchtrace_corpus.trace.model import EdgeType, Event, EventType, Status, Trace
from orchtrace_corpus.trace.roster import Appearance, roster
from orchtrace_corpus.trace.timing import Timing, timing

_MERMAID_ARROWS = {EdgeType.TEMPORAL: "-.->", EdgeType.SPAWN: "==>"}
_DOT_STYLES = {EdgeType.TEMPORAL: "dotted", EdgeType.SPAWN: "bold", EdgeType.SAFETY: "dashed"}


def mermaid(trace: Trace) -> str:
    """The trace as a Mermaid flowchart: a box for each agent, a node for each event, edges by their type."""
    lines = ["flowchart LR"]
    for place, (agent, numbers) in enumerate(_by_agent(trace).items()):
        lines.append(f'  subgraph a{place}["{_mermaid_text(agent)}"]')
        lines += [f'    e{n}["{_mermaid_text(_caption(trace.events[n]))}"]' for n in numbers]
        lines.append("  end")
    of = graph(trace)
    for source, target, edge in zip(of.sources, of.targets, of.edges, strict=True):
        arrow = _MERMAID_ARROWS.get(edge.type, "-->")
        lines.append(f"  e{source} {arrow}|{edge.type.value}| e{target}")
    failed = [f"e{n}" for n, event in enumerate(trace.events) if event.status is Status.ERROR]
    if failed:
        lines += ["  classDef failed stroke:#c1121f,stroke-width:3px", f"  class {','.join(failed)} failed"]
    return "\n".join(lines) + "\n"


def dot(trace: Trace) -> str:
    """The trace in the language of Graphviz: a cluster for each agent, a node for each event, edges by their type."""
    lines = [
        "digraph trace {",
        "  rankdir=LR;",
        "  node [shape=box, fontname=sans];",
        f"  label={_quoted(trace.trace_id)};",
    ]
    for place, (agent, numbers) in enumerate(_by_agent(trace).items()):
        lines += [f"  subgraph cluster_{place} {{", f"    label={_quoted(agent)};"]
        for number in numbers:
            event = trace.events[number]
            look = ", color=red, penwidth=2" if event.status is Status.ERROR else ""
            lines.append(f"    e{number} [label={_quoted(_caption(event))}{look}];")
        lines.append("  }")
    of = graph(trace)
    for source, target, edge in zip(of.sources, of.targets, of.edges, strict=True):
        style = _DOT_STYLES.get(edge.type, "solid")
        lines.append(f"  e{source} -> e{target} [label={edge.type.value}, style={style}];")
    return "\n".join((*lines, "}")) + "\n"


def _by_agent(trace: Trace) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, event in enumerate(trace.events):
        found.setdefault(event.agent, []).append(number)
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
_MOST_LABEL = 170.0
_MOST_LANES = 200


def timeline(trace: Trace) -> str:
    """The trace as a picture: a lane for each agent, time from left to right, the critical path underlined.

    Raises:
        CycleError: The edges go round in a circle.
    """
    times = timing(trace)
    critical = set() if times.unknown else set(critical_path(Run(trace, times)).events)
    lanes = roster(trace, times)[:_MOST_LANES]
    drawing = Drawing("trace", _WIDTH)
    y = _MARGIN + LARGE
    for part in wrap(trace.trace_id, _WIDTH - 2 * _MARGIN, LARGE, lines=2, bold=True):
        drawing.text(_MARGIN, y, part, size=LARGE, bold=True)
        y += LARGE * 1.3
    left = _MARGIN + min(max(text_width(_lane_name(lane), SMALL) for lane in lanes), _MOST_LABEL) + 12
    scale = (_WIDTH - _MARGIN - left) / times.wall if times.wall else 0.0
    zero = min(times.starts)
    top = y
    for lane in lanes:
        _draw_lane(drawing, trace, times, lane, y, (left, scale, zero), critical)
        y += _LANE
    drawing.line(left, top, left, y, "rule")
    drawing.text(left, y + SMALL, "0", "muted", size=SMALL)
    drawing.text(_WIDTH - _MARGIN, y + SMALL, f"{times.wall:.6g} {times.unit}", "muted", size=SMALL, anchor="end")
    y += SMALL * 2
    for part in wrap(_notes(times, len(critical) > 0, len(lanes)), _WIDTH - 2 * _MARGIN, SMALL, lines=4):
        drawing.text(_MARGIN, y + SMALL, part, "muted", size=SMALL)
        y += SMALL * 1.3
    drawing.height = y + _MARGIN
    named = ", ".join(trace.events[n].id for n in sorted(critical, key=times.starts.__getitem__) if times.works[n] > 0)
    description = f"{len(lanes)} agents, {len(trace.events)} events, {times.wall:.6g} {times.unit}."
    return drawing.svg(trace.trace_id, f"{description} Critical path: {named or 'unknown'}.")


def _lane_name(lane: Appearance) -> str:
    return "  " * lane.depth + lane.agent


def _draw_lane(
    drawing: Drawing,
    trace: Trace,
    times: Timing,
    lane: Appearance,
    y: float,
    axis: tuple[float, float, float],
    critical: set[int],
) -> None:
    left, scale, zero = axis
    middle = y + _LANE / 2

    def place(moment: float) -> float:
        return left + (moment - zero) * scale

    name = wrap(_lane_name(lane), left - _MARGIN - 12, SMALL, lines=1)
    drawing.text(_MARGIN + 10 * lane.depth, middle + SMALL * 0.35, name[0] if name else "", size=SMALL)
    drawing.line(place(lane.begin), middle, place(lane.end), middle, "rule")
    for number in lane.events:
        event = trace.events[number]
        x = place(times.starts[number])
        if times.works[number] > 0:
            fill = "series1" if event.type is EventType.TOOL_CALL else "series0"
            width = max(place(times.ends[number]) - x, 2)
            drawing.rect(x, middle - _BAR / 2, width, _BAR, fill, radius=2)
            if number in critical:
                drawing.rect(x, middle + _BAR / 2 + 1, width, 3, "ink")
    for number in lane.events:
        event = trace.events[number]
        if event.status is Status.ERROR:
            drawing.circle(place(times.starts[number]), middle, 5, "series5", stroke="ink")
        elif times.works[number] == 0:
            drawing.circle(place(times.starts[number]), middle, 3, "page", stroke="ink")


def _notes(times: Timing, has_path: bool, lanes: int) -> str:
    parts = ["Blue: a model works. Orange: a tool works. Circle: an event without duration; red: an error."]
    parts.append("Underlined: the critical path." if has_path else "No critical path: some events have no end.")
    if times.waited:
        parts.append(f"{times.waited:.6g} s of waiting for people are left out.")
    if lanes == _MOST_LANES:
        parts.append(f"The first {_MOST_LANES} agents are shown.")
    return " ".join(parts)
