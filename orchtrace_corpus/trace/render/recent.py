"""The list of the newest sessions that programs have left in the home folder."""

import os
from collections.abc import Mapping, Sequence

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import display_width
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.trace.diagnosis.values import Summary
from orchtrace_corpus.trace.importers import FORMATS
from orchtrace_corpus.trace.importers.homes import RecentFile
from orchtrace_corpus.trace.render.doctor import distinct_length
from orchtrace_corpus.trace.render.names import duration, money, restore_blanks

_COST, _FIRST_WORDS = "USD", "first words"
_FIGURES = ("agents", "time", "tokens", _COST)
_DISPENSABLE = ("agents", "program", "time", "project")
"""The columns that a narrow terminal leaves out, in this order."""

_MAX_PROJECT = 30
_MAX_FIRST_WORDS = 80
_MIN_FIRST_WORDS = 16
"""The least width of the column of first words, in cells; the table cuts them to the room that is left."""


class ListedSession(NamedTuple):
    """A session in the list.

    Attributes:
        file: The file of the session.
        written: When the file was last written, in the time zone of the list.
        summary: The main figures of the session; None if its file was not read.
    """

    file: RecentFile
    written: str
    summary: Summary | None = None

    @property
    def name(self) -> str:
        """The name of the session; if its file was not read, the name of the file."""
        return printable(self.summary.name if self.summary else self.file.name, limit=60)

    def project(self, projects: Mapping[str, str]) -> str:
        """Return the name of its project; `projects` has the distinct names of projects by their folders."""
        if self.summary is not None:
            return printable(projects.get(self.summary.folder, ""), limit=_MAX_PROJECT)
        return printable(os.path.basename(self.file.folder), limit=_MAX_PROJECT)


def list_table(
    rows: Sequence[ListedSession],
    projects: Mapping[str, str],
    notes: Sequence[str],
    *,
    has_prices: bool,
    width: int | None,
    with_content: bool,
) -> Table:
    """Return the list for people, with the columns that a terminal of this width has room for.

    Costs are shown if prices are known, and the first words of sessions if contents may be shown. `projects` has the
    names of projects by their folders.
    """
    name_length = distinct_length([row.name for row in rows])  # enough to tell the names apart
    texts = [_texts(row, projects, name_length) for row in rows]
    widths = {column: max(len(column), *(display_width(text[column]) for text in texts)) for column in texts[0]}
    is_shown = {_COST: has_prices, _FIRST_WORDS: with_content}
    columns = [column for column in widths if is_shown.get(column, True)]
    min_widths = {**widths, _FIRST_WORDS: _MIN_FIRST_WORDS}
    for dispensable in _DISPENSABLE:
        if width is not None and sum(min_widths[column] + 1 for column in columns) - 1 > width:
            columns.remove(dispensable)

    def align(row: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(row[name].rjust(widths[name]) if name in _FIGURES else row[name] for name in columns)

    heading = align({column: column for column in columns})
    return Table("sessions", "", heading, tuple(map(align, texts)), tuple(notes), uncut="session")


def exact_list(rows: Sequence[ListedSession], projects: Mapping[str, str], *, with_content: bool) -> Table:
    """Return the list for programs, with every digit."""
    columns: tuple[str, ...] = (
        "program", "project", "last written", "agents", "time", "tokens", "session", "file", "tokens_at_least",
        "cost_usd", "cost_at_least",
    )  # fmt: skip
    if with_content:
        columns = (*columns, "first_words")
    all_cells: list[tuple[Cell, ...]] = []
    for row in rows:
        file, summary = row.file, row.summary
        figures: tuple[Cell, ...] = (None, None, None)
        spending: tuple[Cell, ...] = (None, None, None)
        first_words = None
        if summary is not None:
            figures = summary.agents, summary.elapsed, summary.tokens
            spending = summary.has_more_tokens, summary.cost_usd, summary.costs_more
            first_words = printable(summary.first_words) or None
        cells = (file.form, row.project(projects), row.written, *figures, row.name, file.path, *spending)
        if with_content:
            cells = (*cells, first_words)
        all_cells.append(cells)
    return Table("sessions", "", columns, tuple(all_cells))


def program(log_format: str) -> str:
    """Return the name of the program that writes a log format."""
    title = FORMATS[log_format].partition(" (")[0]  # such as `Claude Code transcripts`
    return title.rpartition(" ")[0]


def _texts(row: ListedSession, projects: Mapping[str, str], name_length: int) -> dict[str, str]:
    """Return the texts in the row of a session by column, with the name cut to `name_length` characters."""
    summary = row.summary
    agents = time = tokens = cost = first_words = ""
    if summary is not None:
        agents = f"{summary.agents:,}"
        time = restore_blanks(duration(summary.elapsed, summary.unit))  # its blanks are unbreakable
        first_words = printable(summary.first_words, limit=_MAX_FIRST_WORDS)
        if summary.tokens is not None:
            tokens = f"{summary.tokens:,.0f}"
            if summary.has_more_tokens:
                tokens += "+"
        if summary.cost_usd is not None:
            cost = money(summary.cost_usd)
            if summary.costs_more:
                cost += "+"
    return {
        "program": program(row.file.form),
        "project": row.project(projects),
        "last written": row.written,
        "agents": agents,
        "time": time,
        "tokens": tokens,
        _COST: cost,
        "session": row.name[:name_length],
        _FIRST_WORDS: first_words,
    }
