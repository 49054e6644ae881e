"""A run, or two side by side, as one HTML file: no network, nothing beside it, useful without script.

The tables are HTML; the timeline and the replay are drawn by `timeline.js` and `replay.js` from the columns of the run,
which stand in the page as data. What is in a log is text wherever it stands, and runs nowhere.
"""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any

from orchtrace_corpus.base import html
from orchtrace_corpus.base.files import text_beside
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.diagnosis.comparison import Difference, compare, largest_first
from orchtrace_corpus.trace.diagnosis.values import Diagnosis
from orchtrace_corpus.trace.page.columns import columns
from orchtrace_corpus.trace.page.tables import MOST_ROWS, Figure, Table, Tables
from orchtrace_corpus.trace.render import findings, graph
from orchtrace_corpus.trace.render.names import names_in
from orchtrace_corpus.trace.render.sentences import Sentences
from orchtrace_corpus.trace.render.tables import verdict

LANE = 26
"""The height in pixels of the lane of an agent."""

_MOST_LANES = 18
"""So many lanes are seen at once; for more, the timeline scrolls."""

_SCRIPTS = ("timeline.js", "replay.js")


class Block(NamedTuple):
    """Tables about one thing: the name of its place in the page, its heading, and its tables that are not empty."""

    name: str
    heading: str
    tables: tuple[Table, ...]


class RunPage(NamedTuple):
    """A run, as the template shows it.

    Attributes:
        side: `a`, or `b` for the second of two.
        form: What it was read from.
        title: Its name.
        head: How many agents and events, and how long.
        sentences: What the screen says, each with a label; empty where it goes on.
        blocks: Its tables.
        events: The table of the events that others link to.
        picture: Its timeline for browsers without scripts, as a `data:` address.
        steps: How many events it has.
        height: The height of all lanes, in pixels.
        seen_height: How much of that is seen at once.
        data: Its columns, for the script.
    """

    side: str
    form: str
    title: str
    head: str
    sentences: tuple[tuple[str, str], ...]
    blocks: tuple[Block, ...]
    events: Table
    picture: str
    steps: int
    height: int
    seen_height: int
    data: dict[str, Any]


def page(runs: Sequence[Diagnosis], *, with_content: bool = False) -> str:
    """The page of a run, or of two side by side.

    Args:
        runs: One or two.
        with_content: Whether the page holds the contents of events, as far as the traces have them.

    Raises:
        CycleError: The edges of one of them go round in a circle.
    """
    shown = [_run(side, run, with_content=with_content) for side, run in zip("ab", runs, strict=False)]
    script = "\n".join(text_beside(__file__, name) for name in _SCRIPTS)
    style = "\n".join((html.style_sheet(), text_beside(__file__, "run.css"), *map(_heights, shown)))
    policy = html.content_security_policy([html.source_hash(script)], [html.source_hash(style)], ["data:"])
    differences = None
    if len(runs) == 2:
        one, other = (run.view for run in runs)
        differences = _differences(largest_first(compare(one, other, (names_in(one), names_in(other)))), shown)
    template = html.environment(__file__).get_template("run.html.jinja")
    return template.render(
        policy=policy, runs=shown, differences=differences, verdict=verdict(runs[0].summary, runs[-1].summary),
        style=style, script=script, data=[one.data for one in shown], with_content=with_content,
    )  # fmt: skip


def _run(side: str, run: Diagnosis, *, with_content: bool) -> RunPage:
    sentences = Sentences(run)
    tables = Tables(run, sentences.names)
    blocks = tuple(_blocks(tables))
    lines = [*sentences.paragraphs(), *sentences.lever()]
    height = LANE * len(run.view.agents)
    return RunPage(
        side,
        run.origin.form,
        printable(run.summary.name, limit=200),
        _plain(sentences.head()),
        tuple((label, _plain(text)) for label, text in lines if label != findings.MORE),  # the page has links instead
        blocks,
        tables.events(),
        f"data:image/svg+xml;base64,{b64encode(graph.timeline(run.view).encode()).decode()}",
        len(run.view.trace.events),
        height,
        min(height, LANE * _MOST_LANES),
        columns(run, sentences.names, with_content=with_content),
    )


def _blocks(tables: Tables) -> Iterator[Block]:
    """What is in the page below the timeline, in its order."""
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
    """The heights of the timeline, so that nothing moves when it is drawn."""
    frame = f"#{run.side}-lanes{{height:{run.seen_height + 2}px}}"
    return f"{frame}#{run.side}-lanes svg{{height:{run.height}px}}"


def _differences(found: Sequence[Difference], runs: Sequence[RunPage]) -> Table:
    rows = tuple(
        (*map(printable, (one.part, one.name)), *map(_side, (one.before, one.after, one.change)), one.unit.strip("1"))
        for one in found[:MOST_ROWS]
    )
    notes = [f"{name}: {run.title}." for name, run in zip("AB", runs, strict=True)]
    notes += ["Empty: not stated or not known."]
    if len(found) > len(rows):
        notes.append(f"The largest {len(rows):,} of {len(found):,}; corpus trace diff --all has all.")
    return Table("What differs", ("part", "name", "A", "B", "change", "unit"), rows, tuple(notes))


def _side(value: float | str | None) -> str | Figure:
    if value is None or isinstance(value, str):
        return printable(value or "")
    return Figure(f"{value:,.15g}" if value == int(value) else f"{value:,.6g}", value)
