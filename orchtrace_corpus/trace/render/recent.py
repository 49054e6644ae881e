"""The list of the sessions that programs have left below the home folder."""

import os
from collections.abc import Mapping, Sequence

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import display_width
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.trace.diagnosis.values import Summary
from orchtrace_corpus.trace.importers import FORMATS
from orchtrace_corpus.trace.importers.homes import Recent
from orchtrace_corpus.trace.render.doctor import distinct
from orchtrace_corpus.trace.render.names import break_lines, duration, money

_COST, _FIRST_WORDS = "USD", "first words"
_FIGURES = ("agents", "time", "tokens", _COST)
_DISPENSABLE = ("agents", "program", "time", "project")
"""The columns that a narrow terminal does without, in this order."""

_MAX_PROJECT = 30
_MAX_FIRST_WORDS = 80
_MIN_FIRST_WORDS = 16
"""The cells that first words need at least; the rest of them is cut."""


class Listed(NamedTuple):
    """A session of the list.

    Attributes:
        recent: Its file.
        written: When that was written last, in the time zone of the list.
        summary: Its main figures; None where it was not read.
    """

    recent: Recent
    written: str
    summary: Summary | None = None

    @property
    def name(self) -> str:
        """The name of the session; of one that was not read, that of its file."""
        return printable(self.summary.name if self.summary else self.recent.name, limit=60)

    def project(self, projects: Mapping[str, str]) -> str:
        """Return what its project is called, with other names for those that are alike."""
        if self.summary is not None:
            return printable(projects.get(self.summary.folder, ""), limit=_MAX_PROJECT)
        return printable(os.path.basename(self.recent.folder), limit=_MAX_PROJECT)


def list_table(
    rows: Sequence[Listed],
    projects: Mapping[str, str],
    notes: Sequence[str],
    *,
    has_prices: bool,
    width: int | None,
    with_content: bool,
) -> Table:
    """Return the list for people.

    Args:
        rows: The sessions.
        projects: What the project of each folder is called.
        notes: Sentences below the list.
        has_prices: Whether there is a column of costs.
        width: The cells of the terminal, in which columns of little weight may have no room; None for none.
        with_content: Whether the first words of each session are shown.
    """
    length = distinct([row.name for row in rows])
    texts = [_texts(row, projects, length) for row in rows]
    widths = {name: max(len(name), *(display_width(text[name]) for text in texts)) for name in texts[0]}
    is_shown = {_COST: has_prices, _FIRST_WORDS: with_content}
    columns = [name for name in widths if is_shown.get(name, True)]
    needed = {**widths, _FIRST_WORDS: _MIN_FIRST_WORDS}
    for name in _DISPENSABLE:
        if width is not None and sum(needed[column] + 1 for column in columns) - 1 > width:
            columns.remove(name)
    for text in texts:
        text.update({name: text[name].rjust(widths[name]) for name in _FIGURES})
    heading = tuple(name.rjust(widths[name]) if name in _FIGURES else name for name in columns)
    cells: tuple[tuple[Cell, ...], ...] = tuple(tuple(text[name] for name in columns) for text in texts)
    return Table("sessions", "", heading, cells, tuple(notes), whole="session")


def exact_list(rows: Sequence[Listed], projects: Mapping[str, str], *, with_content: bool) -> Table:
    """Return the list for programs."""
    columns: tuple[str, ...] = (
        "program", "project", "last written", "agents", "time", "tokens", "session", "file", "tokens_at_least",
        "cost_usd", "cost_at_least",
    )  # fmt: skip
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        recent, summary = row.recent, row.summary
        if summary is None:
            figures: tuple[Cell, ...] = (None, None, None, row.name, recent.path, None, None, None)
        else:
            figures = (
                summary.agents, summary.elapsed, summary.tokens, row.name, recent.path, summary.has_more_tokens,
                summary.cost_usd, summary.costs_more,
            )  # fmt: skip
        words = (printable(summary.first_words) or None if summary else None,) if with_content else ()
        cells.append((recent.form, row.project(projects), row.written, *figures, *words))
    return Table("sessions", "", (*columns, "first_words") if with_content else columns, tuple(cells))


def program(form: str) -> str:
    """Return what people call the program that writes a format."""
    return FORMATS[form].partition(" (")[0].rpartition(" ")[0]


def _texts(row: Listed, projects: Mapping[str, str], length: int) -> dict[str, str]:
    """Return what stands in the line of a session, by column, with so many characters of its name."""
    texts = dict.fromkeys(("agents", "time", "tokens", _COST), "")
    words = ""
    if row.summary is not None:
        summary = row.summary
        texts["agents"] = f"{summary.agents:,}"
        texts["time"] = break_lines(duration(summary.elapsed, summary.unit), 80)[0]
        if summary.tokens is not None:
            texts["tokens"] = f"{summary.tokens:,.0f}{'+' if summary.has_more_tokens else ''}"
        if summary.cost_usd is not None:
            texts[_COST] = f"{money(summary.cost_usd)}{'+' if summary.costs_more else ''}"
        words = printable(summary.first_words, limit=_MAX_FIRST_WORDS)
    begin = {"program": program(row.recent.form), "project": row.project(projects), "last written": row.written}
    return {**begin, **texts, "session": row.name[:length], _FIRST_WORDS: words}
