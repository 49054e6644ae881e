"""One table, five forms: aligned text, Markdown, CSV, JSON and LaTeX."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from math import ceil

from orchtrace_corpus.base.annotations import Any, TypeAlias
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import escape_controls, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.layout import UNICODE, Glyphs, Line, clip, display_width, fit, line, pad, wrap


class Missing(Enum):
    """The value of a field that a record does not have: `(absent)` for people, null or empty for programs."""

    ABSENT = "(absent)"


Cell: TypeAlias = str | int | float | tuple[str, ...] | Missing | None

SCHEMA_VERSION = 1

_NARROWEST = 4
"""The least width of a column in a table with a column that is never cut."""


class Table(NamedTuple):
    """Rows of values under named columns.

    Attributes:
        name: The noun of the rows in one word, for programs.
        title: A heading for people; may be empty.
        columns: The names of the columns.
        rows: One value for each column; None if there is none.
        notes: Sentences below the table, for people.
        wrapped: A column whose text is wrapped instead of cut.
        whole: A column that is never cut, because users type its texts in the next command.
        links: In Markdown, the target of a link on the first cell of each row.
        caption: The text above it in LaTeX, if it is longer than the title.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    wrapped: str = ""
    whole: str = ""
    links: tuple[str, ...] = ()
    caption: str = ""


def render(tables: Sequence[Table], schema: str, output: Format) -> str:
    """Return tables in a format for programs or documents.

    Raises:
        ValueError: The format is `Format.TABLE`, which `lines` renders for a width.
    """
    if output not in RENDERERS:
        raise ValueError("a table for people is laid out by lines()")
    return RENDERERS[output](tables, schema)


def lines(table: Table, width: int | None, glyphs: Glyphs = UNICODE) -> list[Line]:
    """Return a table as aligned text. If there is a width, the widest columns are cut to it."""
    body = [tuple(cell_text(cell) for cell in row) for row in table.rows]
    numeric = [_is_numeric(table.rows, index) for index in range(len(table.columns))]
    widths = [
        max(display_width(text) for text in (name, *(row[index] for row in body)))
        for index, name in enumerate(table.columns)
    ]
    gap = 2
    if width is not None:
        gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= width else 1
        kept = table.columns.index(table.whole) if table.whole in table.columns else len(widths)
        others = [*widths[:kept], *widths[kept + 1 :]]
        room = width - gap * (len(widths) - 1) - sum(widths[kept : kept + 1])
        others = fit(others, room, _NARROWEST) if table.whole else fit(others, room)
        widths = [*others[:kept], *widths[kept : kept + 1], *others[kept:]]

    def aligned(cells: Sequence[str]) -> str:
        columns = zip(cells, widths, numeric, strict=True)
        texts = (pad(clip(text, room, glyphs.ellipsis), room, right=right) for text, room, right in columns)
        return (" " * gap).join(texts).rstrip()

    result: list[Line] = [line(table.title, "heading")] if table.title else []
    result.append(line(aligned(table.columns), "muted"))
    for row in body:
        result.extend(line(aligned(part)) for part in _wrapped_rows(row, table, widths))
    result.extend(line(part, "muted") for note in table.notes for part in (wrap(note, width) if width else (note,)))
    return result


_MARKDOWN_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|#~"} | {"&": "&amp;"})


# Formulas in GitHub's syntax that are harmless to readers without formulas. Their characters are not markup.
_FORMULA = r"(?i)((?<!\\)\$(?=\S)(?:(?!www|~~)[^$`<>\[\]|\n])+(?<=[^\s\\])\$(?!\d))"


_DIGITS = frozenset("0123456789")
_EMOJI = r":(?:[+-]1|100|1234|(?=[\w+-]*[a-z])[a-z\d_+-]+):"
_ACTIVE = (
    "((?:"
    r"(?i:https?|ftp)://[^\s<>|`\\\[\]]*[^\s<>|`\\\[\].,;:!?*_~'\"()]"
    r"|(?i:mailto:|xmpp:)?[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|[\w./-]+@[0-9a-f]{7,40}\b|(?<![\w:.-])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}(?![\w-])"  # commits
    r"|(?<!\w)@[A-Za-z\d][\w-]*(?:/[\w-]+)?"
    r"|[\w./-]*#\d+|(?i:\bGH-\d+)"
    rf"|{_EMOJI})(?:[\w@#/+-]|{_EMOJI})*)"
)
"""Text that GitHub turns into a link, a mention, a reference or an emoji even if it is escaped.

The characters up to the next blank belong to it: after code, GitHub reads them like the beginning of a text.

References: https://github.github.com/gfm/#autolinks-extension-,
https://docs.github.com/get-started/writing-on-github/working-with-advanced-formatting/autolinked-references-and-urls
"""


@lru_cache(maxsize=4096)
def markdown_text(text: str) -> str:
    """Return a text with all characters escaped that could become markup or end a table cell; formulas stay.

    Text that GitHub would turn into a link, a mention, a reference or an emoji becomes code.
    """
    if "$" not in text:
        return _inert(text)
    parts = re.split(_FORMULA, text)
    return "".join(
        part if index % 2 and not re.search(_ACTIVE, part) else _inert(part) for index, part in enumerate(parts)
    )


def _may_act(text: str) -> bool:
    """Return True if `_ACTIVE` may match a text, in a thirtieth of the time of a search."""
    if "@" in text or "#" in text or "://" in text or "gh-" in text.lower():
        return True
    has_digits = len(text) > 6 and not _DIGITS.isdisjoint(text)
    if has_digits and re.search(r"\b(?=[a-f]*\d)[0-9a-f]{7}", text):  # a commit
        return True
    return any(part and " " not in part for part in text.split(":")[1:-1])  # an emoji


def _inert(text: str) -> str:
    if not _may_act(text):
        return _escaped(text)
    parts = re.split(_ACTIVE, text)
    return "".join(f"`{part}`" if index % 2 else _escaped(part) for index, part in enumerate(parts))


def _escaped(text: str) -> str:
    escaped = text.translate(_MARKDOWN_SPECIAL)
    # GitHub makes a link of a host alone: https://github.github.com/gfm/#autolinks-extension-
    return re.sub(r"(?i)(www)\.", r"\1\\.", escaped) if "ww" in escaped.lower() else escaped


def markdown(table: Table) -> str:
    """Return a table in Markdown, with aligned columns, so that the source is readable."""
    header = [markdown_text(name) for name in table.columns]
    body = [[markdown_text(cell_text(cell)) for cell in row] for row in table.rows]
    for row, link in zip(body, table.links, strict=bool(table.links)):
        row[0] = f"[{row[0]}]({link})"
    widths = [max(3, *(display_width(row[index]) for row in (header, *body))) for index in range(len(header))]
    numeric = [_is_numeric(table.rows, index) for index in range(len(header))]
    rule = [("-" * (width - 1) + ":") if right else "-" * width for width, right in zip(widths, numeric, strict=True)]
    rows = [
        "| "
        + " | ".join(pad(text, width, right=right) for text, width, right in zip(row, widths, numeric, strict=True))
        + " |"
        for row in (header, rule, *body)
    ]
    title = [f"## {markdown_text(table.title)}", ""] if table.title else []
    notes = [part for note in table.notes for part in ("", markdown_text(note))]
    return "\n".join((*title, *rows, *notes)) + "\n"


def csv(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return rows as comma-separated values (RFC 4180, but with LF) below a line with the names of the columns."""
    return _csv([columns]) + csv_rows(rows)


def csv_rows(rows: Iterable[Sequence[Cell]]) -> str:
    """Return rows as comma-separated values; the items of a cell are joined by ' ; '.

    A text that a spreadsheet would read as a formula gets an apostrophe in front, as in `formats.table`.
    """
    return _csv([cell if isinstance(cell, (int, float)) else _csv_cell(cell) for cell in row] for row in rows)


def _csv(rows: Iterable[Iterable[object]]) -> str:
    import csv as writer
    import io

    text = io.StringIO()
    writer.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _csv_cell(cell: Cell) -> str:
    """Return a cell that is not a number as text."""
    if cell is None or cell is Missing.ABSENT:
        return ""
    text = cell_text(cell, join=" ; ")
    is_formula = text.lstrip("'").startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{text}" if is_formula else text


_LATEX_LINE = 62.0
"""The number of lower-case letters in a line of LaTeX: Computer Modern at 10 pt, in the class `article`."""
_SEPARATION = 6
"""Half of the gap between two columns, in points."""
_SIZES = (
    ("", 1.0, _SEPARATION),
    ("\\small", 1.06, _SEPARATION),
    ("\\footnotesize", 1.15, 5),
    ("\\scriptsize", 1.25, 4),
    ("\\tiny", 1.5, 2),
)
"""Text sizes, with the factor of letters in a line, and half of the gap between columns in points."""
_LINES_OF_PAGE = 36
_WIDE = frozenset("mw@%&—…")


def latex(tables: Sequence[Table]) -> str:
    """Return tables for a document that loads the packages named in the first line."""
    parts = [_latex_table(table) for table in tables]
    signs = {"longtable": "\\begin{longtable}", "array": "\\arraybackslash", "graphicx": "\\resizebox"}
    packages = ["booktabs", *(name for name, sign in signs.items() if any(sign in part for part in parts))]
    return "\n".join((f"% \\usepackage{{{','.join(packages)}}}\n", *parts))


def _latex_table(table: Table) -> str:
    rows = [
        [_latex_heading(name) for name in table.columns],
        *([cell_text(cell) for cell in row] for row in table.rows),
    ]
    columns = range(len(table.columns))
    gaps = len(columns) - 1
    sides = ["raggedleft" if _is_numeric(table.rows, index) else "raggedright" for index in columns]
    widths = [max(_latex_width(row[index]) for row in rows) for index in columns]
    is_narrow = sum(widths) <= _room(1.0, _SEPARATION, gaps)
    fitted = None if is_narrow else _fitted(rows, widths)
    size, form, lines = "", "".join("r" if side == "raggedleft" else "l" for side in sides), len(rows)
    if fitted:
        size, widths = fitted
        form = "".join(
            f">{{\\{side}\\arraybackslash}}p{{\\dimexpr(\\linewidth-{2 * gaps}\\tabcolsep)*"
            f"{int(1000 * width / sum(widths))}/1000\\relax}}"
            for width, side in zip(widths, sides, strict=True)
        )
        lines = sum(
            max(ceil(_latex_width(text) / width) for text, width in zip(row, widths, strict=True)) for row in rows
        )
    from orchtrace_corpus.base.text.latex import encoded  # reads a table of characters

    caption = table.caption or table.title or table.name.capitalize()
    label = "-".join(re.findall(r"[a-z0-9]+", caption.lower()))[:60].strip("-")
    named = f"\\caption{{{encoded(caption)}}}\\label{{tab:{label}}}"
    heading, *body = (" & ".join(_latex_cell(text, is_broken=bool(fitted)) for text in row) + " \\\\" for row in rows)
    notes = [f"\\par\\smallskip\\footnotesize {encoded(note)}" for note in table.notes]
    head = ["\\toprule", heading, "\\midrule"]
    if lines > _LINES_OF_PAGE and (is_narrow or fitted):
        parts = [f"{{{size}", f"\\begin{{longtable}}{{@{{}}{form}@{{}}}}", f"{named}\\\\", *head, "\\endfirsthead"]
        parts += [*head, "\\endhead", "\\bottomrule", "\\endfoot", *body, "\\end{longtable}", *notes, "}"]
        return "\n".join(parts) + "\n"
    tabular = [f"\\begin{{tabular}}{{@{{}}{form}@{{}}}}", *head, *body, "\\bottomrule", "\\end{tabular}"]
    if not (is_narrow or fitted):
        tabular = ["\\resizebox{\\linewidth}{!}{%", *tabular[:-1], "\\end{tabular}}"]
    return "\n".join(["\\begin{table}[htbp]", f"\\centering{size}", named, *tabular, *notes, "\\end{table}"]) + "\n"


def _fitted(rows: Sequence[Sequence[str]], widths: Sequence[float]) -> tuple[str, list[float]] | None:
    """Return the text size in which a table fits into a line, and the widths of its columns; None if there is none."""
    gaps = len(widths) - 1
    least = [max(_latex_width(word) for row in rows for word in _words(row[index])) + 1 for index in range(len(widths))]
    for size, more, separation in _SIZES:
        room = _room(more, separation, gaps) - sum(least)
        if room >= 0:
            spare = fit([ceil(max(width - few, 0.0)) for width, few in zip(widths, least, strict=True)], int(room))
            setting = f"\\setlength{{\\tabcolsep}}{{{separation}pt}}" if separation < _SEPARATION else ""
            return size + setting, [few + more for few, more in zip(least, spare, strict=True)]
    return None


def _room(more: float, separation: float, gaps: int) -> float:
    """Return the number of lower-case letters that fit into a line, the gaps between columns excluded."""
    return more * (_LATEX_LINE - 0.4 * separation * gaps)


def _latex_heading(name: str) -> str:
    """Return the name of a column for people: `reward_family` as `Reward family`."""
    return name.replace("_", " ").capitalize() if re.fullmatch("[a-z][a-z_]*", name) else name


def _latex_cell(text: str, *, is_broken: bool) -> str:
    """Return a cell as LaTeX; in a column of a fixed width, lines may break inside names and addresses."""
    from orchtrace_corpus.base.text.latex import encoded

    latex_text = encoded(text)
    if not is_broken:
        return latex_text
    return re.sub(r"(\\_|(?<=[A-Za-z])[/.](?=[A-Za-z]))", r"\1\\allowbreak{}", latex_text)


def _words(text: str) -> list[str]:
    """Return the parts of a text between which a line can break."""
    return re.split(r"\s+|(?<=[-_])|(?<=[A-Za-z][/.])(?=[A-Za-z])", text)


def _latex_width(text: str) -> float:
    """Return the width of a text in lower-case letters."""
    return sum(1.5 if letter.isupper() or letter in _WIDE else 1.0 for letter in text)


def envelope(schema: str, content: dict[str, object]) -> str:
    """Return a JSON document with the name and version of its schema.

    Raises:
        ValueError: A number is not finite, which JSON cannot express.
    """
    import json

    document = {"schema": f"orchtrace-corpus/{schema}", "version": SCHEMA_VERSION, **content}
    return escape_controls(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"


def envelope_parts(
    schema: str,
    name: str,
    records: Iterable[Mapping[str, object]],
    further: Callable[[], Mapping[str, object]],
) -> Iterator[str]:
    """Yield the text of an `envelope` in parts, with one record at a time in memory.

    Args:
        schema: The name of the schema.
        name: The member that holds the records.
        records: The records.
        further: Called after the last record; returns the members that follow.

    Raises:
        ValueError: A number is not finite, which JSON cannot express.
    """
    import json

    def text(value: object, depth: int) -> str:
        encoded = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
        return escape_controls(encoded.replace("\n", f"\n{'  ' * depth}"))

    named = text(f"orchtrace-corpus/{schema}", 1)
    head = f'{{\n  "schema": {named},\n  "version": {SCHEMA_VERSION},\n  {text(name, 1)}: ['
    separator = "\n"
    for record in records:
        yield f"{head}{separator}    {text(record, 2)}"
        head, separator = "", ",\n"
    yield f"{head}]" if head else "\n  ]"
    for member, value in further().items():
        yield f",\n  {text(member, 1)}: {text(value, 1)}"
    yield "\n}\n"


def records(table: Table) -> list[dict[str, Any]]:
    """Return the rows as mappings."""
    return [
        {name: None if cell is Missing.ABSENT else cell for name, cell in zip(table.columns, row, strict=True)}
        for row in table.rows
    ]


def cell_text(cell: Cell, *, join: str = "; ") -> str:
    """Return a value as text; empty for None."""
    if cell is None:
        return ""
    if isinstance(cell, Missing):
        return str(cell.value)
    return join.join(cell) if isinstance(cell, tuple) else str(cell)


RENDERERS: dict[Format, Callable[[Sequence[Table], str], str]] = {
    Format.MARKDOWN: lambda tables, _: "\n".join(markdown(table) for table in tables),
    Format.LATEX: lambda tables, _: latex(tables),
    Format.CSV: lambda tables, _: "\n".join(csv(table.columns, table.rows) for table in tables),
    Format.JSON: lambda tables, schema: envelope(schema, {table.name: records(table) for table in tables}),
}
"""The formats for programs and documents. A new member of `Format` needs an entry here and nothing else."""


def _wrapped_rows(row: tuple[str, ...], table: Table, widths: Sequence[int]) -> list[tuple[str, ...]]:
    """Return a row as one row, or as several if the text of the wrapped column does not fit."""
    if table.wrapped not in table.columns:
        return [row]
    index = table.columns.index(table.wrapped)
    parts = wrap(row[index], widths[index])
    rows = [row, *[("",) * len(row)] * (len(parts) - 1)]
    return [(*cells[:index], part, *cells[index + 1 :]) for cells, part in zip(rows, parts, strict=True)]


def _is_numeric(rows: Sequence[Sequence[Cell]], index: int) -> bool:
    return bool(rows) and all(isinstance(row[index], (int, float)) for row in rows)


def arranged(table: Table, columns: Sequence[str], sort: str) -> Table:
    """Return a table with some of its columns, sorted by one of them (`-name` for descending order).

    Raises:
        CommandUseError: There is no such column.
    """
    if sort:
        index = _column(table, sort.removeprefix("-"))
        rows = sorted(table.rows, key=lambda row: _sort_key(row[index]), reverse=sort.startswith("-"))
        table = table._replace(rows=tuple(rows))
    if columns:
        indices = [_column(table, name) for name in columns]
        table = table._replace(
            columns=tuple(table.columns[index] for index in indices),
            rows=tuple(tuple(row[index] for index in indices) for row in table.rows),
        )
    return table


def _column(table: Table, name: str) -> int:
    if name not in table.columns:
        raise CommandUseError(f"unknown column {quote(name)}{suggestion(name, table.columns)}")
    return table.columns.index(name)


def _sort_key(cell: Cell) -> tuple[bool, float, str]:
    return (False, cell, "") if isinstance(cell, (int, float)) else (cell is None, 0.0, cell_text(cell).casefold())
