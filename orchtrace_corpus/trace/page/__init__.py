"""A run, or two side by side, as one HTML file that needs no network and no other file, and works without scripts.

The tables are HTML. The scripts `timeline.js` and `replay.js` draw the timeline and the replay from the data of
`page.columns`, which are in the page as JSON. Text from logs is never markup or script.
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
from orchtrace_corpus.trace.page.columns import agent_groups, axis_breaks, columns
from orchtrace_corpus.trace.page.tables import MAX_ROWS, Figure, Table, Tables, number, typeset
from orchtrace_corpus.trace.render import findings, graph
from orchtrace_corpus.trace.render.names import agent_names, duration, format_count, money
from orchtrace_corpus.trace.render.sentences import Sentences
from orchtrace_corpus.trace.render.tables import verdict
from orchtrace_corpus.trace.view.timing import WORKING

LANE_HEIGHT = 26
"""The height in pixels of a lane of the timeline."""

_MAX_LANES = 18
"""The number of lanes that are visible at once; for more, the timeline scrolls."""

_MAX_DIFFERENCES = 5
"""The number of differences that are described in sentences."""

_MAX_ARROWS = 60
"""With more arrows, or with more agents than visible lanes, a profile of the activity is shown above the lanes."""

_MAX_TITLE = 110
_UNESCAPED = ":/=,;()!*+-"
"""The characters that a `data:` URL may have as they are."""

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

    css_classes: str
    sign: str
    meaning: str


class RunPage(NamedTuple):
    """The values that the template shows for one run.

    Attributes:
        side: `a`, or `b` for the second of two runs.
        log_format: The format that the run was read from.
        name: The name of the run.
        title: The task of the run if contents are shown, else the number of its agents and its time.
        figures: The main figures.
        head: A sentence on the agents, the events and the time.
        saving: A sentence on what the run could save most time on; empty if nothing took time.
        sentences: The sentences of `corpus trace doctor`, each as a label and a text. The label is empty if the text
            continues the text before.
        calls: The tables of the costliest and the longest calls.
        blocks: The other tables.
        events: The table of the events that other tables link to.
        picture: The timeline for browsers without scripts, as a `data:` URL.
        steps: The number of events.
        lanes: The number of lanes that are drawn at first.
        agents: The number of agents, which is the number of lanes if no agents share a lane.
        has_groups: True if some agents can share a lane.
        is_dense: True if a profile of the activity is shown above the lanes.
        data: The data of the run for the scripts, from `columns`.
    """

    side: str
    log_format: str
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
    def has_many_agents(self) -> bool:
        """True if there are more agents than visible lanes."""
        return self.agents > _MAX_LANES

    @property
    def is_grouped_at_first(self) -> bool:
        """True if agents share lanes when the page is opened."""
        return self.has_groups and self.has_many_agents


def page(runs: Sequence[Diagnosis], *, with_content: bool = False) -> str:
    """Return the HTML page of a run, or of two runs side by side, with the contents of events if wanted."""
    sides = "ab"[: len(runs)]
    run_pages = [
        _run_page(side, run, is_one_of_two=len(runs) == 2, with_content=with_content)
        for side, run in zip(sides, runs, strict=True)
    ]
    script = _compact("\n".join(read_text_beside(__file__, name) for name in _SCRIPTS))
    style_sheets = [_compact(html.style_sheet()), _compact(read_text_beside(__file__, "run.css"))]
    style = "\n".join((*style_sheets, *map(_lane_heights, run_pages)))
    policy = html.content_security_policy([html.source_hash(script)], [html.source_hash(style)], ["data:"])
    difference_table = None
    sentences: list[str] = []
    faster_run = ""
    if len(runs) == 2:
        first, second = runs
        names = agent_names(first.view), agent_names(second.view)
        differences = largest_first(compare(first.view, second.view, names))
        difference_table = _difference_table(differences, run_pages)
        changes = [difference for difference in differences if difference.change is not None]
        sentences = [_difference_sentence(difference) for difference in changes[:_MAX_DIFFERENCES]]
        faster_run = verdict(first.summary, second.summary)
        if first.waited or second.waited:
            times = [typeset(duration(run.summary.elapsed + run.waited, run.summary.unit)) for run in runs]
            faster_run += f" On the clock, waiting for people included: A {times[0]}, B {times[1]}."
    data = [run.data for run in run_pages]
    template = html.environment(__file__).get_template("run.html.jinja")
    return template.render(
        policy=policy,
        icon=_data_url(read_text_beside(__file__, "icon.svg")),
        runs=run_pages,
        lane_height=LANE_HEIGHT,
        differences=difference_table,
        largest=sentences,
        verdict=faster_run,
        style=style,
        script=script,
        with_content=with_content,
        legend=tuple(_legend(runs)),
        data={"runs": data, "breaks": axis_breaks(data)},
    )


def _run_page(side: str, run: Diagnosis, *, is_one_of_two: bool, with_content: bool) -> RunPage:
    """Return the values that the template shows for a run."""
    sentences = Sentences(run)
    tables = Tables(run, sentences.names)
    calls, blocks = tuple(tables.calls()), tuple(_blocks(tables))
    paragraphs = [*sentences.paragraphs(), *sentences.lever()]
    data = columns(run, sentences.names, with_content=with_content)
    agent_count = len(run.view.agents)
    groups_of_agents = [group for group in agent_groups(run.view.agents, run.people) if group >= 0]
    lanes = agent_count
    if agent_count > _MAX_LANES:
        lanes = agent_count - len(groups_of_agents) + len(set(groups_of_agents))
    return RunPage(
        side=side,
        log_format=run.origin.form,
        name=printable(run.summary.name, limit=200),
        title=_title(run, "" if is_one_of_two else "A run of ", with_content=with_content),
        figures=_figures(run),
        head=typeset(sentences.head()),
        saving=typeset(sentences.saving()),
        # Without the hint how to show an event, since the page has links to events.
        sentences=tuple((label, typeset(text)) for label, text in paragraphs if label != findings.MORE),
        calls=calls,
        blocks=blocks,
        events=tables.events(),  # after the other tables, since it has the events that they link to
        picture=_data_url(graph.timeline(run.view)),
        steps=len(run.view.trace.events),
        lanes=lanes,
        agents=agent_count,
        has_groups=bool(groups_of_agents),
        is_dense=agent_count > _MAX_LANES or len(data["arrows"]["event"]) > _MAX_ARROWS,
        data=data,
    )


def _data_url(svg: str) -> str:
    """Return a picture as a `data:` URL with escapes, which are smaller than base64 in a compressed page."""
    return f"data:image/svg+xml,{quote(svg, safe=_UNESCAPED)}"


def _compact(source: str) -> str:
    """Return a script or a style sheet without comments and indentation."""
    unindented = "\n".join(line.strip() for line in source.splitlines())
    lines = _COMMENT.sub("", unindented).splitlines()
    return "\n".join(line for line in lines if line)


def _title(run: Diagnosis, opening: str, *, with_content: bool) -> str:
    """Return the task of a run if it is known and contents are shown; else an opening, and its agents and time."""
    task = first_words(run.view.trace) if with_content else ""
    if task:
        return printable(task, limit=_MAX_TITLE)
    summary = run.summary
    title = f"{opening}{format_count(summary.agents, 'agent')}"
    if summary.elapsed:
        title += f", {typeset(duration(summary.elapsed, summary.unit))}"
    return title


def _figures(run: Diagnosis) -> tuple[Headline, ...]:
    """Return the figures above the timeline: time, agents, tokens, and the cost or, if it is unknown, the events."""
    summary = run.summary
    elapsed = typeset(duration(summary.elapsed, summary.unit))
    times = [Headline("elapsed", elapsed, "")]
    if run.waited:
        on_the_clock = typeset(duration(summary.elapsed + run.waited, summary.unit))
        waited = typeset(duration(run.waited, summary.unit))
        times = [
            Headline("on the clock", on_the_clock, f"{waited} of it waiting for people"),
            Headline("running", elapsed, "on the timeline below"),
        ]
    errors = ""
    if summary.errors or has_statuses(run.view.trace):
        errors = format_count(summary.errors, "error")
    agent_remarks = []
    if run.parallelism and run.parallelism.max_concurrency == 1 < summary.agents:
        agent_remarks.append("one at work at a time")
    elif run.parallelism:
        agent_remarks.append(f"at most {run.parallelism.max_concurrency:,} at work at once")
    last = Headline("events", f"{summary.events:,}", errors)
    if summary.cost_usd is not None:
        last = Headline("cost in USD", money(summary.cost_usd), "")
        if summary.costs_more:
            last = Headline("cost in USD", f"at least {money(summary.cost_usd)}", "not all costs are known")
        if summary.errors:
            agent_remarks.append(errors)
    agents = Headline("agent" if summary.agents == 1 else "agents", f"{summary.agents:,}", ", ".join(agent_remarks))
    return (*times, agents, _token_figure(run), last)


def _token_figure(run: Diagnosis) -> Headline:
    """Return the tokens of a run, with a remark on its models."""
    tokens = "unknown"
    if run.summary.tokens is not None:
        tokens = f"{run.summary.tokens:,.15g}"
        if run.summary.has_more_tokens:
            tokens = f"at least {tokens}"
    models = [printable(name, limit=40) for name, _ in run.tokens.by_model if name]
    remark = ""
    if models and len(models) < len(run.tokens.by_model):  # some tokens are of a model without a name
        remark = format_count(len(models), "known model")
    elif len(models) == 1:
        remark = f"model {models[0]}"
    elif models:
        remark = format_count(len(models), "model")
    return Headline("tokens", tokens, remark)


def _legend(runs: Sequence[Diagnosis]) -> Iterator[LegendEntry]:
    """Yield the entries of the legend for what occurs in the timelines of the runs."""
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
    for occurs, css_classes, sign, meaning in entries:
        if occurs:
            yield LegendEntry(css_classes, sign, meaning)


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


def _lane_heights(run: RunPage) -> str:
    """Return the style of the timeline's height, so that nothing moves when the timeline is drawn.

    If agents share lanes, there is room for the lane of an agent that is selected.
    """
    lanes_at_first, max_lanes = run.lanes, run.agents
    if run.lanes < run.agents:
        lanes_at_first += 1
    if run.has_groups:
        max_lanes += 1
    min_height = min(lanes_at_first, _MAX_LANES) * LANE_HEIGHT + 2
    max_height = min(max_lanes, _MAX_LANES) * LANE_HEIGHT + 2
    return f"#{run.side}-lanes{{min-height:{min_height}px;max-height:{max_height}px}}"


def _difference_table(differences: Sequence[Difference], runs: Sequence[RunPage]) -> Table:
    """Return the table of the largest differences of two runs."""
    rows = tuple(
        (
            printable(_label(difference)),
            _cell(difference.before),
            _cell(difference.after),
            _cell(difference.change),
            "" if difference.unit == "1" else difference.unit,
            difference.part,
        )
        for difference in differences[:MAX_ROWS]
    )
    notes = [f"{name}: {run.name}." for name, run in zip("AB", runs, strict=True)]
    notes.append("Empty: not stated or not known.")
    if len(differences) > len(rows):
        notes.append(f"The largest {len(rows):,} of {len(differences):,}; corpus trace diff --all has all.")
    return Table("What differs", ("what", "A", "B", "change", "unit", "part"), rows, tuple(notes))


_LABELS = {
    "rewards": "reward {}", "metrics": "metric {}", "costs": "stated {}", "measures": "{}", "agents": "events of {}",
    "tools": "calls of {}", "models": "events of the model {}", "statuses": "events that ended {}",
    "decisions": "sub-decisions to {}", "events": "{} events", "edges": "{} edges", "handovers": "{}", "declared": "{}",
}  # fmt: skip
"""The labels of differences, by their part."""

_PARTS_WITH_OWN_TERMS = frozenset(("costs", "measures", "statuses", "decisions", "events", "edges"))
"""The parts whose names are terms of this package, and not text from logs."""

_ENDINGS = {"_seconds": ": time", "_tokens": ": tokens"}
"""The endings of labels of findings, by the ending of the name of the difference."""


def _label(difference: Difference) -> str:
    """Return what differs, in words."""
    if difference.part == "findings":
        for kind, noun in findings.NOUNS.items():
            ending = difference.name.removeprefix(kind.value)
            if ending != difference.name:
                return noun + _ENDINGS.get(ending, "")
    if difference.part == "measures" and difference.name == "waited":
        return "waited for people"
    name = difference.name.replace(" -> ", " → ")
    if difference.part in _PARTS_WITH_OWN_TERMS:
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
    if unit == "usd":
        return f"{money(value)} USD"
    return f"{value:,.6g}"


def _cell(value: float | str | None) -> str | Figure:
    if value is None or isinstance(value, str):
        return printable(value or "")
    return number(value)
