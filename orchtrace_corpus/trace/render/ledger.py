"""The token ledger of an import as a table: what became of each usage record, and who spent what was counted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import clip, display_width, pad, wrap
from orchtrace_corpus.trace.model.import_report import Outcome
from orchtrace_corpus.trace.render.names import money

KINDS = {
    "input": "input",
    "output": "output",
    "reasoning": "reasoning",
    "cache_read": "from cache",
    "cache_write": "to cache",
}
"""The kinds of tokens in words, in the order in which they are shown."""

PARTS = {"cache_write_1h": "of it to a cache for an hour"}
"""The kinds that are a part of another and have no column of their own, in words."""

ADDED = ("input", "output", "cache_read", "cache_write")
"""The kinds that make up a total; reasoning is a part of the output."""

_LEAST_NAME = 20
_MOST_NAME = 48
_MOST_SHARES = 8
_INDENT = "  "
_TITLE = "Token ledger"


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        name: What it is about.
        records: How many usage records; None where that is not said.
        tokens: Tokens by kind, or as a `total` that the log does not divide.
        usd: What they cost; None where that is unknown or was not asked.
        outcome: Of a line of the token ledger, what became of the records.
    """

    name: str
    records: int | None
    tokens: dict[str, float]
    usd: float | None = None
    outcome: str = ""

    @property
    def total(self) -> float:
        """All tokens of the row, each once."""
        return sum(self.tokens.get(kind, 0) for kind in ADDED) or self.tokens.get("total", 0)


def lines(ledger: Sequence[Row], shares: Mapping[str, Sequence[Row]], room: int) -> list[str]:
    """The table, or where the room is too narrow for one, sentences.

    Args:
        ledger: The lines of the token ledger.
        shares: Who spent what was counted, by agent, by model and so on.
        room: The cells of a line.
    """
    shown = {f"{group[:1].upper()}{group[1:]}": rows for group, rows in _groups(ledger).items()}
    shown |= {name: _largest(rows) for name, rows in shares.items() if rows}
    if not shown:
        return []
    columns = _Columns([row for rows in shown.values() for row in rows])
    longest = max(display_width(row.name) for rows in shown.values() for row in rows) + len(_INDENT)
    name_room = min(room - columns.width, longest, _MOST_NAME)
    if columns.width > room:
        return [_TITLE, *(line for name, rows in shown.items() for line in _sentences(name, rows, room))]
    is_beside = name_room >= min(longest, _LEAST_NAME)
    found = [pad(_TITLE, name_room) + columns.heading] if is_beside else [_TITLE, columns.heading.rjust(room)]
    for name, rows in shown.items():
        found.append(name)
        for row in rows:
            label = printable(row.name, limit=160)
            *above, last = wrap(label, name_room if is_beside else room, first=_INDENT, rest=_INDENT * 2)
            if is_beside:
                found += [*above, pad(clip(last, name_room), name_room) + columns.figures(row)]
            else:
                found += [*above, last, columns.figures(row).rjust(room)]
    return [line.rstrip() for line in found]


def _groups(ledger: Sequence[Row]) -> dict[str, list[Row]]:
    """The lines by outcome, what was counted first, with its sum."""
    counted: list[Row] = []
    groups: dict[str, list[Row]] = {Outcome.COUNTED: counted}
    for row in sorted(ledger, key=lambda row: (row.outcome, -row.total, row.name)):
        groups.setdefault(row.outcome, []).append(row)
    if len(counted) > 1:
        counted.append(_sum("all that is counted", counted))
    return {group: rows for group, rows in groups.items() if rows}


def counted(ledger: Iterable[Row]) -> float:
    """The tokens on the counted lines of a ledger."""
    return sum(row.total for row in ledger if row.outcome == Outcome.COUNTED)


def _largest(rows: Sequence[Row]) -> list[Row]:
    """The rows of most tokens; the others in one."""
    ordered = sorted(rows, key=lambda row: (-row.total, row.name))
    rest = ordered[_MOST_SHARES:]
    return ordered if len(rest) <= 1 else [*ordered[:_MOST_SHARES], _sum(f"{len(rest):,} more", rest)]


def _sum(name: str, rows: Sequence[Row]) -> Row:
    tokens: dict[str, float] = {}
    for row in rows:
        for kind, number in row.tokens.items():
            tokens[kind] = tokens.get(kind, 0) + number
    prices = [row.usd for row in rows if row.usd is not None]
    records = None if rows[0].records is None else sum(row.records or 0 for row in rows)
    return Row(name, records, tokens, sum(prices) if prices else None)


class _Columns:
    """The columns that are not empty, each as wide as it needs to be."""

    def __init__(self, rows: Sequence[Row]) -> None:
        cells = [_cells(row) for row in rows]
        self._names = [name for name in _cells(Row("", 0, {})) if any(cell[name] for cell in cells)]
        self._widths = [max(len(name), *(len(one[name]) for one in cells)) + 2 for name in self._names]
        self.width = sum(self._widths)

    @property
    def heading(self) -> str:
        return "".join(name.rjust(width) for name, width in zip(self._names, self._widths, strict=True))

    def figures(self, row: Row) -> str:
        cells = _cells(row)
        return "".join(cells[name].rjust(width) for name, width in zip(self._names, self._widths, strict=True))


def _cells(row: Row) -> dict[str, str]:
    kinds = {words: _number(row.tokens.get(kind, 0)) for kind, words in KINDS.items()}
    usd = "" if row.usd is None else money(row.usd)
    records = "" if row.records is None else f"{row.records:,}"
    return {"records": records, **kinds, "tokens": _number(row.total), "USD": usd}


def _number(number: float) -> str:
    return f"{number:,.15g}" if number else ""


def _sentences(name: str, rows: Sequence[Row], room: int) -> Iterator[str]:
    yield from wrap(f"{name}:", room)
    for row in rows:
        cells = _cells(row)
        cells = {"record": "1", **cells, "records": ""} if cells["records"] == "1" else cells
        figures = ", ".join(f"{value} {what}" for what, value in cells.items() if value)
        yield from wrap(f"{printable(row.name, limit=160)}: {figures}", room, first=_INDENT, rest=_INDENT * 2)
