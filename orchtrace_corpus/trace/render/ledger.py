"""The token ledger of an import as a table: the outcome of each usage record, and who spent the counted tokens."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import clip, display_width, pad, wrap
from orchtrace_corpus.trace.model.import_report import Outcome
from orchtrace_corpus.trace.render.names import money

KIND_LABELS = {
    "input": "input",
    "output": "output",
    "reasoning": "reasoning",
    "cache_read": "from cache",
    "cache_write": "to cache",
}
"""The kinds of tokens in words, in the order in which they are shown."""

PART_LABELS = {"cache_write_1h": "of it to a cache for an hour"}
"""The kinds that are part of another kind and have no column, in words."""

_TOTAL_KINDS = ("input", "output", "cache_read", "cache_write")
"""The kinds that add up to a total; reasoning is a part of the output."""

_MIN_NAME = 20
_MAX_NAME = 48
_MAX_SHARES = 8
_INDENT = "  "
_TITLE = "Token ledger"


class Row(NamedTuple):
    """One row of the table.

    Attributes:
        name: The name of what the row counts, such as an agent.
        records: The number of usage records; None if records were not counted.
        tokens: Tokens by kind; a sum that the log does not divide into kinds is under `total`.
        usd: The cost of the tokens; None if it is unknown.
        outcome: In the token ledger, whether the records were counted, or the reason why not.
    """

    name: str
    records: int | None
    tokens: dict[str, float]
    usd: float | None = None
    outcome: str = ""

    @property
    def total(self) -> float:
        """All tokens of the row: the sum of its kinds, or the undivided `total` if no kind has tokens."""
        by_kind = sum(self.tokens.get(kind, 0) for kind in _TOTAL_KINDS)
        return by_kind or self.tokens.get("total", 0)


def lines(ledger: Sequence[Row], shares: Mapping[str, Sequence[Row]], room: int) -> list[str]:
    """Return a table of the ledger and of shares as lines of at most `room` cells.

    `shares` has the rows of agents, models or sessions by the heading of the group. If the lines are too narrow for a
    table, its rows are returned as sentences.
    """
    groups: dict[str, list[Row]] = {}  # by heading
    for outcome, outcome_rows in _group_by_outcome(ledger).items():
        groups[outcome[:1].upper() + outcome[1:]] = outcome_rows
    for heading, share_rows in shares.items():
        if share_rows:
            groups[heading] = _largest(share_rows)
    all_rows = [row for rows in groups.values() for row in rows]
    if not all_rows:
        return []
    cells = [_cells(row) for row in all_rows]
    widths = {}  # of the columns that are not empty
    for column in cells[0]:
        if any(row[column] for row in cells):
            widths[column] = max(len(column), *(len(row[column]) for row in cells)) + 2
    figures_width = sum(widths.values())
    if figures_width > room:
        text = [_TITLE]
        for heading, rows in groups.items():
            text += _sentences(heading, rows, room)
        return text
    longest = max(display_width(row.name) for row in all_rows) + len(_INDENT)
    name_width = min(room - figures_width, longest, _MAX_NAME)
    are_names_beside = name_width >= min(longest, _MIN_NAME)  # else names are above the figures
    heads = "".join(column.rjust(width) for column, width in widths.items())
    table = [_TITLE, heads.rjust(room)]
    if are_names_beside:
        table = [pad(_TITLE, name_width) + heads]
    for heading, rows in groups.items():
        table.append(heading)
        for row in rows:
            label = printable(row.name, limit=160)
            name_lines = wrap(label, name_width if are_names_beside else room, first=_INDENT, rest=_INDENT * 2)
            texts = _cells(row)
            figures = "".join(texts[column].rjust(width) for column, width in widths.items())
            if are_names_beside:
                name_lines[-1] = pad(clip(name_lines[-1], name_width), name_width) + figures
            else:
                name_lines.append(figures.rjust(room))
            table += name_lines
    return [line.rstrip() for line in table]


def _group_by_outcome(ledger: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows by outcome; the rows that are counted come first, with their sum."""
    counted_rows: list[Row] = []
    groups: dict[str, list[Row]] = {Outcome.COUNTED: counted_rows}
    for row in sorted(ledger, key=lambda row: (row.outcome, -row.total, row.name)):
        groups.setdefault(row.outcome, []).append(row)
    if len(counted_rows) > 1:
        counted_rows.append(_sum("all that is counted", counted_rows))
    return {outcome: rows for outcome, rows in groups.items() if rows}


def counted_tokens(ledger: Iterable[Row]) -> float:
    """Return the tokens of the rows of a ledger that are counted."""
    return sum(row.total for row in ledger if row.outcome == Outcome.COUNTED)


def _largest(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the most tokens, and the sum of the others if these are several."""
    ordered = sorted(rows, key=lambda row: (-row.total, row.name))
    others = ordered[_MAX_SHARES:]
    if len(others) <= 1:
        return ordered
    return [*ordered[:_MAX_SHARES], _sum(f"{len(others):,} more", others)]


def _sum(name: str, rows: Sequence[Row]) -> Row:
    tokens: dict[str, float] = {}
    for row in rows:
        for kind, amount in row.tokens.items():
            tokens[kind] = tokens.get(kind, 0) + amount
    costs = [row.usd for row in rows if row.usd is not None]
    records = None
    if rows[0].records is not None:  # either all rows of a group have records, or none has
        records = sum(row.records or 0 for row in rows)
    return Row(name, records, tokens, sum(costs) if costs else None)


def _cells(row: Row) -> dict[str, str]:
    """Return the texts of a row by column; empty for 0 and for unknown figures."""

    def amount(tokens: float) -> str:
        return f"{tokens:,.15g}" if tokens else ""

    kinds = {label: amount(row.tokens.get(kind, 0)) for kind, label in KIND_LABELS.items()}
    usd = "" if row.usd is None else money(row.usd)
    records = "" if row.records is None else f"{row.records:,}"
    return {"records": records, **kinds, "tokens": amount(row.total), "USD": usd}


def _sentences(heading: str, rows: Sequence[Row], room: int) -> Iterator[str]:
    yield from wrap(f"{heading}:", room)
    for row in rows:
        figures = [f"{text} {column}" for column, text in _cells(row).items() if text]
        if row.records == 1:
            figures[0] = "1 record"
        text = f"{printable(row.name, limit=160)}: {', '.join(figures)}"
        yield from wrap(text, room, first=_INDENT, rest=_INDENT * 2)
