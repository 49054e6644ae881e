"""A run, or two side by side, as one HTML file: no network, nothing beside it, useful without script.

The tables are HTML; the timeline and the replay are drawn by `timeline.js` and `replay.js` from the columns of the run,
which stand in the page as data. What is in a log is text wherever it stands, and runs nowhere.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from orchtrace_corpus.base import html
from orchtrace_corpus.base.files import text_beside
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.diagnosis import first_words, has_statuses
from orchtrace_corpus.trace.diagnosis.comparison import Difference, compare, largest_first
from orchtrace_corpus.trace.diagnosis.values import Diagnosis
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.page.columns import axis_breaks, columns
from orchtrace_corpus.trace.page.tables import MOST_ROWS, Figure, Table, Tables
from orchtrace_corpus.trace.render import findings, graph
from orchtrace_corpus.trace.render.names import counted, duration, money, names_in
from orchtrace_corpus.trace.render.sentences import Sentences
from orchtrace_corpus.trace.render.tables import verdict
from orchtrace_corpus.trace.view.timing import WORKING

LANE = 26
"""The height in pixels of a lane of the timeline."""

_MOST_LANES = 18
"""So many lanes are seen at once; for more, the timeline scrolls."""

_MOST_DIFFERENCES = 5
"""So many differences are said in a sentence."""

_LEAST_DENSE = 60
"""With more arrows, or more agents than lanes are seen, a profile of the activity is above the lanes."""

_TITLE_LIMIT = 110
_SAFE = ":/=,;()!*+-"
_SCRIPTS = ("timeline.js", "replay.js")
_COMMENT = re.compile(r"/\*.*?\*/|(?:^|(?<=[;{,]) )// [^\n]*", re.DOTALL | re.MULTILINE)
"""A comment of a style, or of a script: before a line, or behind a statement."""


class Block(NamedTuple):
    """Tables about one thing: the name of its place in the page, its heading, and its tables that are not empty."""

    name: str
    heading: str
    tables: tuple[Table, ...]


class Headline(NamedTuple):
    """A main figure of a run: its name, its value, and a remark on it."""

    name: str
    text: str
    remark: str


class LegendEntry(NamedTuple):
    """An entry of the legend of the timeline: how it looks, its sign if it has one, and its meaning."""

    look: str
    sign: str
    meaning: str


class RunPage(NamedTuple):
    """A run, as the template shows it.

    Attributes:
        side: `a`, or `b` for the second of two.
        form: What it was read from.
        name: Its name.
        title: Its task, where contents are allowed; else how many agents and how long.
        figures: Its main figures.
        head: How many agents and events, and how long.
        saving: What would shorten it most; empty if nothing took time.
        sentences: What the screen says, each with a label; empty where it goes on.
        calls: The first of its calls by cost and by time.
        blocks: Its other tables.
        events: The table of the events that others link to.
        picture: Its timeline for browsers without scripts, as a `data:` address.
        steps: How many events it has.
        lanes: How many lanes are drawn at first.
        agents: How many lanes there are if each agent has its own.
        has_groups: Whether some of its agents can share a lane.
        is_dense: Whether a profile of its activity is above the lanes.
        data: Its columns, for the script.
    """

    side: str
    form: str
    name: str
    title: str
    figures: tuple[Headline, ...]
    head: str
    saving: str
    sentences: tuple[tuple[str, str], ...]
    calls: tuple[Table, ...]
    blocks: tuple[Block, ...]
    events: Table
    picture: str
    steps: int
    lanes: int
    agents: int
    has_groups: bool
    is_dense: bool
    data: dict[str, Any]

    @property
    def has_many(self) -> bool:
        """Return True if not all agents are seen at once."""
        return self.agents > _MOST_LANES

    @property
    def groups_at_first(self) -> bool:
        """Return True if agents that do the same share a lane before anybody asks for it."""
        return self.has_groups and self.has_many


def page(runs: Sequence[Diagnosis], *, with_content: bool = False) -> str:
    """The page of a run, or of two side by side.

    Args:
        runs: One or two.
        with_content: Whether the page holds the contents of events, as far as the traces have them.

    Raises:
        CycleError: The edges of one of them go round in a circle.
    """
    sides = "ab"[: len(runs)]
    shown = [_run(side, run, sides, with_content=with_content) for side, run in zip(sides, runs, strict=True)]
    script = _compact("\n".join(text_beside(__file__, name) for name in _SCRIPTS))
    style = "\n".join((_compact(html.style_sheet()), _compact(text_beside(__file__, "run.css")), *map(_heights, shown)))
    policy = html.content_security_policy([html.source_hash(script)], [html.source_hash(style)], ["data:"])
    differences, largest, faster = None, list[str](), verdict(runs[0].summary, runs[-1].summary)
    if any(run.waited for run in runs):
        times = [_plain(duration(run.summary.elapsed + run.waited, run.summary.unit)) for run in runs]
        faster += f" On the clock, waiting for people included: A {times[0]}, B {times[-1]}."
    if len(runs) == 2:
        one, other = (run.view for run in runs)
        found = largest_first(compare(one, other, (names_in(one), names_in(other))))
        differences = _differences(found, shown)
        largest = [_said(one) for one in found if one.change is not None][:_MOST_DIFFERENCES]
    data = [one.data for one in shown]
    template = html.environment(__file__).get_template("run.html.jinja")
    return template.render(
        policy=policy,
        icon=_address(text_beside(__file__, "icon.svg")),
        runs=shown,
        lane=LANE,
        differences=differences,
        largest=largest,
        verdict=faster,
        style=style,
        script=script,
        with_content=with_content,
        legend=tuple(_legend(runs)),
        data={"runs": data, "breaks": axis_breaks(data)},
    )


def _run(side: str, run: Diagnosis, sides: str, *, with_content: bool) -> RunPage:
    sentences = Sentences(run)
    tables = Tables(run, sentences.names)
    calls, blocks = tuple(tables.calls()), tuple(_blocks(tables))
    lines = [*sentences.paragraphs(), *sentences.lever()]
    data = columns(run, sentences.names, with_content=with_content)
    agents, groups = len(run.view.agents), data["agents"]["group"]
    members = [group for group in groups if group >= 0] if isinstance(groups, list) else []
    lanes = agents - len(members) + len(set(members)) if agents > _MOST_LANES else agents
    return RunPage(
        side,
        run.origin.form,
        printable(run.summary.name, limit=200),
        _title(run, "" if len(sides) > 1 else "A run of ", with_content=with_content),
        _figures(run),
        _plain(sentences.head()),
        _plain(sentences.saving()),
        tuple((label, _plain(text)) for label, text in lines if label != findings.MORE),  # the page has links instead
        calls,
        blocks,
        tables.events(),
        _address(graph.timeline(run.view)),
        len(run.view.trace.events),
        lanes,
        agents,
        bool(members),
        agents > _MOST_LANES or len(data["arrows"]["event"]) > _LEAST_DENSE,
        data,
    )


def _address(svg: str) -> str:
    """A picture as an address; unlike base64, escapes stay small in a page that is compressed."""
    return f"data:image/svg+xml,{quote(svg, safe=_SAFE)}"


def _compact(source: str) -> str:
    """A script or a style without its comments and indentation, which readers of the page have no use for."""
    lines = [line.strip() for line in source.splitlines()]
    return "\n".join(filter(None, _COMMENT.sub("", "\n".join(lines)).splitlines()))


def _title(run: Diagnosis, opening: str, *, with_content: bool) -> str:
    """The task of a run where contents are allowed and known; else its size and its time, which betray nothing."""
    task = first_words(run.view.trace) if with_content else ""
    if task:
        return printable(task, limit=_TITLE_LIMIT)
    summary = run.summary
    took = f", {_plain(duration(summary.elapsed, summary.unit))}" if summary.elapsed else ""
    return f"{opening}{counted(summary.agents, 'agent')}{took}"


def _figures(run: Diagnosis) -> tuple[Headline, ...]:
    """The figures above the timeline: time, agents, tokens, and the cost, or where that is unknown the events."""
    summary = run.summary
    elapsed, waited, on_the_clock = (
        _plain(duration(time, summary.unit)) for time in (summary.elapsed, run.waited, summary.elapsed + run.waited)
    )
    times = [Headline("elapsed", elapsed, "")]
    if run.waited:
        times = [
            Headline("on the clock", on_the_clock, f"{waited} of it waiting for people"),
            Headline("running", elapsed, "on the timeline below"),
        ]
    most = ""
    if run.parallelism:
        most = f"at most {run.parallelism.most:,} at work at once"
        if run.parallelism.most == 1 < summary.agents:
            most = "one at work at a time"
    tokens = "unknown" if summary.tokens is None else f"{summary.tokens:,.15g}"
    at_least = "at least " if summary.has_more_tokens and summary.tokens is not None else ""
    models = [printable(name, limit=40) for name, _ in run.tokens.by_model if name]
    by_model = f"model {models[0]}" if len(models) == 1 else counted(len(models), "model")
    if len(models) < len(run.tokens.by_model):
        by_model = counted(len(models), "known model")
    failed = counted(summary.errors, "error") if summary.errors or has_statuses(run.view.trace) else ""
    last = Headline("events", f"{summary.events:,}", failed)
    remarks = [most]
    if summary.cost_usd is not None:
        least, remark = ("at least ", "not all costs are known") if summary.costs_more else ("", "")
        last = Headline("cost in USD", f"{least}{money(summary.cost_usd)}", remark)
        remarks.append(failed if summary.errors else "")
    return (
        *times,
        Headline("agent" if summary.agents == 1 else "agents", f"{summary.agents:,}", ", ".join(filter(None, remarks))),
        Headline("tokens", at_least + tokens, by_model if models else ""),
        last,
    )


def _legend(runs: Sequence[Diagnosis]) -> Iterator[LegendEntry]:
    """Yield what occurs in the timeline of any of the runs."""
    types = {kind for run in runs for kind in run.view.graph.of_type}
    entries = (
        (types & (WORKING - {EventType.TOOL_CALL}), "key model", "", "model"),
        (EventType.TOOL_CALL in types, "key tool", "", "tool"),
        (any(run.view.open_calls for run in runs), "key open", "", "open call, perhaps waiting"),
        (any(run.assumed for run in runs), "key assumed", "", "time assumed"),
        (any(run.between.waits for run in runs), "key waits", "", "waits for another agent"),
        (any(run.path.chain.events for run in runs), "key critical", "", "critical path"),
        (EventType.SPAWN in types, "sign", "▼", "spawn"),
        (types & {EventType.RETURN, EventType.STOP, EventType.DESPAWN}, "sign", "▲", "return, end or stop"),
        (EventType.MESSAGE in types, "sign", "◆", "message"),
        (True, "sign", "●", "other event"),
        (True, "sign", "②", "number of events"),
        (any(run.summary.errors for run in runs), "sign failed", "✕", "error"),
    )
    for occurs, *entry in entries:
        if occurs:
            yield LegendEntry(*entry)


def _blocks(tables: Tables) -> Iterator[Block]:
    """Return the blocks of the page below the calls, in their order."""
    yield Block("figures", "Figures", (tables.figures(),))
    yield Block("agents", "Agents", (tables.agents(),))
    yield Block("critical", "Critical path", _filled([tables.critical_path()]))
    yield Block("between", "Between agents", _filled(tables.between()))
    yield Block("ledger", "Ledger", _filled(tables.ledger()))
    yield Block("measures", "Measures", (tables.measures(),))
    yield Block("problems", "Problems", _filled(tables.problems()))


def _filled(tables: Iterator[Table] | list[Table]) -> tuple[Table, ...]:
    return tuple(table for table in tables if table.rows)


def _plain(text: str) -> str:
    """A sentence whose units stay with their numbers, with arrows that no line breaks."""
    return text.replace("\ue000", "\u00a0").replace(" -> ", " → ")


def _heights(run: RunPage) -> str:
    """The heights of the timeline, so that nothing moves when it is drawn; one lane more for a chosen agent."""
    reserved = min(run.lanes + (run.lanes < run.agents), _MOST_LANES) * LANE
    most = min(run.agents + run.has_groups, _MOST_LANES) * LANE
    return f"#{run.side}-lanes{{min-height:{reserved + 2}px;max-height:{most + 2}px}}"


def _differences(differences: Sequence[Difference], runs: Sequence[RunPage]) -> Table:
    rows = tuple(
        (
            printable(_label(difference)),
            *map(_side, (difference.before, difference.after, difference.change)),
            difference.unit.strip("1"),
            difference.part,
        )
        for difference in differences[:MOST_ROWS]
    )
    notes = [f"{name}: {run.name}." for name, run in zip("AB", runs, strict=True)]
    notes += ["Empty: not stated or not known."]
    if len(differences) > len(rows):
        notes.append(f"The largest {len(rows):,} of {len(differences):,}; corpus trace diff --all has all.")
    return Table("What differs", ("what", "A", "B", "change", "unit", "part"), rows, tuple(notes))


_LABELS = {
    "rewards": "reward {}", "metrics": "metric {}", "costs": "stated {}", "measures": "{}", "agents": "events of {}",
    "tools": "calls of {}", "models": "events of the model {}", "statuses": "events that ended {}",
    "decisions": "sub-decisions to {}", "events": "{} events", "edges": "{} edges", "handovers": "{}", "declared": "{}",
}  # fmt: skip
"""The names of differences, by their part."""
_CODED = frozenset(("costs", "measures", "statuses", "decisions", "events", "edges"))
"""The parts whose names are words joined by underscores, and no text of a log."""


def _label(difference: Difference) -> str:
    """Return the name of a difference."""
    if difference.part == "findings":
        for kind, noun in findings.NOUNS.items():
            ending = difference.name.removeprefix(kind.value)
            if ending != difference.name:
                return noun + {"_seconds": ": time", "_tokens": ": tokens"}.get(ending, "")
    name = difference.name.replace("_", " ") if difference.part in _CODED else difference.name.replace(" -> ", " → ")
    if (difference.part, name) == ("measures", "waited"):
        name = "waited for people"
    return _LABELS[difference.part].format(name)


def _said(difference: Difference) -> str:
    """A difference as a sentence."""
    before = _amount(difference.before, difference.unit)
    after = _amount(difference.after, difference.unit)
    change = ""
    if difference.change and isinstance(difference.before, (int, float)) and difference.before > 0:
        change = f" ({difference.change / difference.before:+.0%})"
    return f"{printable(_label(difference))}: {before} in A, {after} in B{change}"


def _amount(value: float | str | None, unit: str) -> str:
    if value is None or isinstance(value, str):
        return printable(value or "not known")
    if unit in ("s", "step"):
        return _plain(duration(value, unit))
    return f"{money(value)} USD" if unit == "usd" else f"{value:,.6g}"


def _side(value: float | str | None) -> str | Figure:
    if value is None or isinstance(value, str):
        return printable(value or "")
    return Figure(f"{value:,.15g}" if value == int(value) else f"{value:,.6g}", value)
