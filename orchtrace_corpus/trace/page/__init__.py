"""A run, or two side by side, as one HTML file that needs no network and no other file, and works without scripts.

The tables are HTML. The scripts `timeline.js` and `replay.js` draw the timeline and the replay from the columns of the
run, which are in the page as data. Text from logs is never markup or script.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from orchtrace_corpus.base import html
from orchtrace_corpus.base.files import read_text_beside
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.diagnosis import first_words, has_statuses
from orchtrace_corpus.trace.diagnosis.comparison import Difference, compare, largest_first
from orchtrace_corpus.trace.diagnosis.values import Diagnosis
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.page.columns import axis_breaks, columns
from orchtrace_corpus.trace.page.tables import MAX_ROWS, Figure, Table, Tables, typeset
from orchtrace_corpus.trace.render import findings, graph
from orchtrace_corpus.trace.render.names import counted, duration, money, names_in
from orchtrace_corpus.trace.render.sentences import Sentences
from orchtrace_corpus.trace.render.tables import verdict
from orchtrace_corpus.trace.view.timing import WORKING

LANE = 26
"""The height in pixels of a lane of the timeline."""

_MAX_LANES = 18
"""The number of lanes that are visible at once; for more, the timeline scrolls."""

_MAX_DIFFERENCES = 5
"""The number of differences that are described in sentences."""

_MAX_ARROWS = 60
"""With more arrows, or more agents than visible lanes, a profile of the activity is above the lanes."""

_MAX_TITLE = 110
_SAFE = ":/=,;()!*+-"
_SCRIPTS = ("timeline.js", "replay.js")
_COMMENT = re.compile(r"/\*.*?\*/|(?:^|(?<=[;{,]) )// [^\n]*", re.DOTALL | re.MULTILINE)
"""A comment of a style sheet or script: a block, a line, or after a statement."""


class Block(NamedTuple):
    """A section of the page: the name of its anchor, its heading, and its tables."""

    name: str
    heading: str
    tables: tuple[Table, ...]


class Headline(NamedTuple):
    """A main figure of a run: its name, its value, and a remark."""

    name: str
    text: str
    remark: str


class LegendEntry(NamedTuple):
    """An entry of the legend of the timeline: its CSS classes, its sign if it has one, and its meaning."""

    look: str
    sign: str
    meaning: str


class RunPage(NamedTuple):
    """A run, as the template shows it.

    Attributes:
        side: `a`, or `b` for the second of two runs.
        form: The format that it was read from.
        name: Its name.
        title: Its task if contents are shown, else the number of its agents and its time.
        figures: Its main figures.
        head: A sentence on its agents, events and time.
        saving: A sentence on the change that would shorten it most; empty if nothing took time.
        sentences: The sentences of `corpus trace doctor`, each with a label, which is empty if the text before goes on.
        calls: The tables of its costliest and longest calls.
        blocks: The other tables.
        events: The table of the events that other tables link to.
        picture: Its timeline for browsers without scripts, as a `data:` URL.
        steps: The number of its events.
        lanes: The number of lanes that are drawn at first.
        agents: The number of lanes if each agent has its own.
        has_groups: Whether some of its agents can share a lane.
        is_dense: Whether a profile of the activity is above the lanes.
        data: Its columns, for the scripts.
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
        """True if there are more agents than visible lanes."""
        return self.agents > _MAX_LANES

    @property
    def groups_at_first(self) -> bool:
        """True if agents share lanes when the page is opened."""
        return self.has_groups and self.has_many


def page(runs: Sequence[Diagnosis], *, with_content: bool = False) -> str:
    """Return the HTML page of a run, or of two runs side by side, with the contents of events if wanted."""
    sides = "ab"[: len(runs)]
    shown = [_run(side, run, sides, with_content=with_content) for side, run in zip(sides, runs, strict=True)]
    script = _compact("\n".join(read_text_beside(__file__, name) for name in _SCRIPTS))
    run_style = _compact(read_text_beside(__file__, "run.css"))
    style = "\n".join((_compact(html.style_sheet()), run_style, *map(_heights, shown)))
    policy = html.content_security_policy([html.source_hash(script)], [html.source_hash(style)], ["data:"])
    table, sentences = None, list[str]()
    faster = verdict(runs[0].summary, runs[-1].summary)
    if any(run.waited for run in runs):
        times = [typeset(duration(run.summary.elapsed + run.waited, run.summary.unit)) for run in runs]
        faster += f" On the clock, waiting for people included: A {times[0]}, B {times[-1]}."
    if len(runs) == 2:
        before, after = (run.view for run in runs)
        differences = largest_first(compare(before, after, (names_in(before), names_in(after))))
        table = _difference_table(differences, shown)
        sentences = [_difference_sentence(each) for each in differences if each.change is not None][:_MAX_DIFFERENCES]
    data = [run.data for run in shown]
    template = html.environment(__file__).get_template("run.html.jinja")
    return template.render(
        policy=policy,
        icon=_data_url(read_text_beside(__file__, "icon.svg")),
        runs=shown,
        lane=LANE,
        differences=table,
        largest=sentences,
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
    grouped = [group for group in groups if group >= 0] if isinstance(groups, list) else []
    lanes = agents
    if agents > _MAX_LANES:
        lanes = agents - len(grouped) + len(set(grouped))
    return RunPage(
        side=side,
        form=run.origin.form,
        name=printable(run.summary.name, limit=200),
        title=_title(run, "" if len(sides) > 1 else "A run of ", with_content=with_content),
        figures=_figures(run),
        head=typeset(sentences.head()),
        saving=typeset(sentences.saving()),
        # The page has links to events instead of a hint how to show one.
        sentences=tuple((label, typeset(text)) for label, text in lines if label != findings.MORE),
        calls=calls,
        blocks=blocks,
        events=tables.events(),
        picture=_data_url(graph.timeline(run.view)),
        steps=len(run.view.trace.events),
        lanes=lanes,
        agents=agents,
        has_groups=bool(grouped),
        is_dense=agents > _MAX_LANES or len(data["arrows"]["event"]) > _MAX_ARROWS,
        data=data,
    )


def _data_url(svg: str) -> str:
    """Return a picture as a `data:` URL with escapes, which are smaller than base64 in a compressed page."""
    return f"data:image/svg+xml,{quote(svg, safe=_SAFE)}"


def _compact(source: str) -> str:
    """Return a script or a style sheet without comments and indentation."""
    lines = [line.strip() for line in source.splitlines()]
    return "\n".join(filter(None, _COMMENT.sub("", "\n".join(lines)).splitlines()))


def _title(run: Diagnosis, opening: str, *, with_content: bool) -> str:
    """Return the task of a run if contents are shown and it is known; else its number of agents and its time."""
    task = first_words(run.view.trace) if with_content else ""
    if task:
        return printable(task, limit=_MAX_TITLE)
    summary = run.summary
    took = f", {typeset(duration(summary.elapsed, summary.unit))}" if summary.elapsed else ""
    return f"{opening}{counted(summary.agents, 'agent')}{took}"


def _figures(run: Diagnosis) -> tuple[Headline, ...]:
    """Return the figures above the timeline: time, agents, tokens, and the cost or, if it is unknown, the events."""
    summary = run.summary
    elapsed, waited, on_the_clock = (
        typeset(duration(time, summary.unit)) for time in (summary.elapsed, run.waited, summary.elapsed + run.waited)
    )
    times = [Headline("elapsed", elapsed, "")]
    if run.waited:
        times = [
            Headline("on the clock", on_the_clock, f"{waited} of it waiting for people"),
            Headline("running", elapsed, "on the timeline below"),
        ]
    most = ""
    if run.parallelism:
        most = f"at most {run.parallelism.max_concurrency:,} at work at once"
        if run.parallelism.max_concurrency == 1 < summary.agents:
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
    """Yield the legend of all that occurs in the timelines of the runs."""
    types = {kind for run in runs for kind in run.view.graph.indices_by_type}
    entries = (
        (types & (WORKING - {EventType.TOOL_CALL}), "key model", "", "model"),
        (EventType.TOOL_CALL in types, "key tool", "", "tool"),
        (any(run.view.open_calls for run in runs), "key open", "", "open call, perhaps waiting"),
        (any(run.assumed_events for run in runs), "key assumed", "", "time assumed"),
        (any(run.team_findings.waits for run in runs), "key waits", "", "waits for another agent"),
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
    """Yield the blocks of the page below the calls, in their order."""
    yield Block("figures", "Figures", (tables.figures(),))
    yield Block("agents", "Agents", (tables.agents(),))
    yield Block("critical", "Critical path", _without_empty([tables.critical_path()]))
    yield Block("between", "Between agents", _without_empty(tables.between()))
    yield Block("ledger", "Ledger", _without_empty(tables.ledger()))
    yield Block("measures", "Measures", (tables.measures(),))
    yield Block("problems", "Problems", _without_empty(tables.problems()))


def _without_empty(tables: Iterable[Table]) -> tuple[Table, ...]:
    return tuple(table for table in tables if table.rows)


def _heights(run: RunPage) -> str:
    """Return the style of the timeline's height, so that nothing moves when it is drawn.

    If agents share lanes, there is room for one more lane, of an agent that is selected.
    """
    reserved = min(run.lanes + (run.lanes < run.agents), _MAX_LANES) * LANE
    most = min(run.agents + run.has_groups, _MAX_LANES) * LANE
    return f"#{run.side}-lanes{{min-height:{reserved + 2}px;max-height:{most + 2}px}}"


def _difference_table(differences: Sequence[Difference], runs: Sequence[RunPage]) -> Table:
    rows = tuple(
        (
            printable(_label(difference)),
            *map(_cell, (difference.before, difference.after, difference.change)),
            difference.unit.strip("1"),
            difference.part,
        )
        for difference in differences[:MAX_ROWS]
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
"""The labels of differences, by their part."""
_WITH_UNDERSCORES = frozenset(("costs", "measures", "statuses", "decisions", "events", "edges"))
"""The parts whose names are terms of this package, and not text from logs."""


def _label(difference: Difference) -> str:
    if difference.part == "findings":
        for kind, noun in findings.NOUNS.items():
            ending = difference.name.removeprefix(kind.value)
            if ending != difference.name:
                return noun + {"_seconds": ": time", "_tokens": ": tokens"}.get(ending, "")
    if (difference.part, difference.name) == ("measures", "waited"):
        return "waited for people"
    name = difference.name.replace(" -> ", " → ")
    if difference.part in _WITH_UNDERSCORES:
        name = difference.name.replace("_", " ")
    return _LABELS[difference.part].format(name)


def _difference_sentence(difference: Difference) -> str:
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
        return typeset(duration(value, unit))
    return f"{money(value)} USD" if unit == "usd" else f"{value:,.6g}"


def _cell(value: float | str | None) -> str | Figure:
    if value is None or isinstance(value, str):
        return printable(value or "")
    return Figure(f"{value:,.15g}" if value == int(value) else f"{value:,.6g}", value)
