"""Tables, and their five formats: aligned text, Markdown, CSV, JSON and LaTeX."""

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
"""The version of every schema of JSON output."""

_MIN_CUT_WIDTH = 4
"""The least width that columns are cut to in a table with a column that is never cut."""


class Table(NamedTuple):
    """Rows of values under named columns.

    Attributes:
        name: A noun for the rows in one word; in JSON, the name of the member with the rows.
        title: A heading for people; may be empty.
        columns: The names of the columns.
        rows: One value for each column; None if there is none.
        notes: Sentences below the table, for people.
        wrapped: The name of a column whose text is wrapped instead of cut; may be empty.
        uncut: The name of a column that is never cut, because users type its texts in the next command; may be empty.
        links: In Markdown, the target of a link on the first cell of each row; empty for no links.
        caption: The caption in LaTeX; if empty, the title is the caption.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    wrapped: str = ""
    uncut: str = ""
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
    """Return a table as aligned text. Columns are cut, the widest first, to fit into `width` cells if it is given."""
    text_rows = [tuple(cell_text(cell) for cell in row) for row in table.rows]
    are_numeric = [_is_numeric(table.rows, index) for index in range(len(table.columns))]
    widths = _display_widths([table.columns, *text_rows])
    gap = 2
    if width is not None:
        if sum(widths) + gap * (len(widths) - 1) > width:
            gap = 1
        widths = _cut_widths(table, widths, width - gap * (len(widths) - 1))

    def aligned(cells: Sequence[str]) -> str:
        texts = []
        for text, column_width, is_numeric in zip(cells, widths, are_numeric, strict=True):
            texts.append(pad(clip(text, column_width, glyphs.ellipsis), column_width, right=is_numeric))
        return (" " * gap).join(texts).rstrip()

    result: list[Line] = []
    if table.title:
        result.append(line(table.title, "heading"))
    result.append(line(aligned(table.columns), "muted"))
    for row in text_rows:
        result += [line(aligned(cells)) for cells in _wrapped_rows(row, table, widths)]
    for note in table.notes:
        note_lines = wrap(note, width) if width else [note]
        result += [line(text, "muted") for text in note_lines]
    return result


def _display_widths(text_rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column in cells, that of its widest text."""
    return [max(map(display_width, column)) for column in zip(*text_rows, strict=True)]


def _cut_widths(table: Table, widths: list[int], available: int) -> list[int]:
    """Return the widths that columns are cut to, for a number of available cells without the gaps."""
    if not table.uncut:
        return fit(widths, available)
    if table.uncut not in table.columns:
        return fit(widths, available, _MIN_CUT_WIDTH)
    index = table.columns.index(table.uncut)
    others = fit([*widths[:index], *widths[index + 1 :]], available - widths[index], _MIN_CUT_WIDTH)
    return [*others[:index], widths[index], *others[index:]]


_MARKDOWN_ESCAPES = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|#~"} | {"&": "&amp;"})

# A formula in GitHub's syntax. It has no character that a renderer without formulas would read as markup.
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

Such text is written as code, up to the next blank: directly after code, GitHub would again find links and mentions.

References: https://github.github.com/gfm/#autolinks-extension-,
https://docs.github.com/get-started/writing-on-github/working-with-advanced-formatting/autolinked-references-and-urls
"""


@lru_cache(maxsize=4096)
def markdown_text(text: str) -> str:
    """Return a text with all characters escaped that could become markup or end a table cell; formulas stay.

    Text that GitHub would turn into a link, a mention, a reference or an emoji becomes code.
    """
    if "$" not in text:
        return _escape_or_quote(text)
    output = ""
    for index, part in enumerate(re.split(_FORMULA, text)):
        is_formula = index % 2 == 1  # `re.split` returns the matches between the other texts
        if is_formula and not re.search(_ACTIVE, part):
            output += part
        else:
            output += _escape_or_quote(part)
    return output


def _may_be_active(text: str) -> bool:
    """Return True if `_ACTIVE` may match in a text; this takes a thirtieth of the time of a search."""
    if "@" in text or "#" in text or "://" in text or "gh-" in text.lower():
        return True
    has_digits = len(text) > 6 and not _DIGITS.isdisjoint(text)
    if has_digits and re.search(r"\b(?=[a-f]*\d)[0-9a-f]{7}", text):  # a commit
        return True
    return any(part and " " not in part for part in text.split(":")[1:-1])  # an emoji


def _escape_or_quote(text: str) -> str:
    """Return a text as Markdown without formulas: active parts as code, and the others escaped."""
    if not _may_be_active(text):
        return _escape(text)
    output = ""
    for index, part in enumerate(re.split(_ACTIVE, text)):
        is_active = index % 2 == 1
        output += f"`{part}`" if is_active else _escape(part)
    return output


def _escape(text: str) -> str:
    escaped = text.translate(_MARKDOWN_ESCAPES)
    if "ww" not in escaped.lower():
        return escaped
    # GitHub makes a link of a host without a scheme: https://github.github.com/gfm/#autolinks-extension-
    return re.sub(r"(?i)(www)\.", r"\1\\.", escaped)


def markdown(table: Table) -> str:
    """Return a table in Markdown, with aligned columns, so that the source is readable."""
    header = [markdown_text(name) for name in table.columns]
    body = [[markdown_text(cell_text(cell)) for cell in row] for row in table.rows]
    if table.links:
        for row, link in zip(body, table.links, strict=True):
            row[0] = f"[{row[0]}]({link})"
    widths = [max(width, 3) for width in _display_widths([header, *body])]
    are_numeric = [_is_numeric(table.rows, index) for index in range(len(header))]
    delimiters = []
    for width, is_numeric in zip(widths, are_numeric, strict=True):
        delimiters.append("-" * (width - 1) + ":" if is_numeric else "-" * width)
    output = []
    if table.title:
        output += [f"## {markdown_text(table.title)}", ""]
    for row in (header, delimiters, *body):
        cells = []
        for text, width, is_numeric in zip(row, widths, are_numeric, strict=True):
            cells.append(pad(text, width, right=is_numeric))
        output.append(f"| {' | '.join(cells)} |")
    for note in table.notes:
        output += ["", markdown_text(note)]
    return "\n".join(output) + "\n"


def csv(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return comma-separated values (RFC 4180, but with LF): a line with the names of the columns, then the rows."""
    return _csv([columns]) + csv_rows(rows)


def csv_rows(rows: Iterable[Sequence[Cell]]) -> str:
    """Return rows as comma-separated values; the items of a cell are joined by ' ; '.

    A text that a spreadsheet would read as a formula gets an apostrophe in front, as in `formats.table`.
    """
    return _csv([_csv_cell(cell) for cell in row] for row in rows)


def _csv(rows: Iterable[Iterable[object]]) -> str:
    import csv as csv_library
    import io

    text = io.StringIO()
    csv_library.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _csv_cell(cell: Cell) -> str | int | float:
    """Return a number unchanged, and any other cell as text."""
    if isinstance(cell, (int, float)):
        return cell
    if cell is None or cell is Missing.ABSENT:
        return ""
    text = cell_text(cell, join=" ; ")
    is_formula = text.lstrip("'").startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{text}" if is_formula else text


_LATEX_LINE = 62.0
"""The number of lower-case letters in a line of LaTeX: Computer Modern at 10 pt, in the class `article`."""
_SEPARATION = 6
"""LaTeX's default of \\tabcolsep, half of the gap between two columns, in points."""
_SIZES = (
    ("", 1.0, _SEPARATION),
    ("\\small", 1.06, _SEPARATION),
    ("\\footnotesize", 1.15, 5),
    ("\\scriptsize", 1.25, 4),
    ("\\tiny", 1.5, 2),
)
"""Text sizes, each with the factor by which more letters fit into a line, and with its \\tabcolsep in points."""
_LINES_ON_PAGE = 36
_WIDE_LETTERS = frozenset("mw@%&—…")


def latex(tables: Sequence[Table]) -> str:
    """Return tables for a document that loads the packages named in the first line."""
    parts = [_latex_table(table) for table in tables]
    packages = ["booktabs"]
    commands_by_package = {"longtable": "\\begin{longtable}", "array": "\\arraybackslash", "graphicx": "\\resizebox"}
    for package, command in commands_by_package.items():
        if any(command in part for part in parts):
            packages.append(package)
    return "\n".join((f"% \\usepackage{{{','.join(packages)}}}\n", *parts))


def _latex_table(table: Table) -> str:
    """Return a table, laid out in the first of these ways that suits it.

    A narrow table has columns as wide as their texts. In a wider table, lines break inside the cells, and the text is
    smaller if it must be. If even that does not fit, the whole table is shrunk. A table of the first two kinds that is
    longer than a page becomes a `longtable`.
    """
    from orchtrace_corpus.base.text.latex import encoded  # imported here: it reads a table of characters

    rows = [[_latex_heading(name) for name in table.columns]]
    rows += [[cell_text(cell) for cell in row] for row in table.rows]
    are_numeric = [_is_numeric(table.rows, index) for index in range(len(table.columns))]
    gap_count = len(table.columns) - 1
    text_widths = [max(map(_latex_width, column)) for column in zip(*rows, strict=True)]
    is_narrow = sum(text_widths) <= _available_letters(1.0, _SEPARATION, gap_count)
    broken_layout = None if is_narrow else _broken_layout(rows, text_widths)
    if broken_layout:
        size, widths = broken_layout
        column_spec = ""
        for width, is_numeric in zip(widths, are_numeric, strict=True):
            alignment = "raggedleft" if is_numeric else "raggedright"
            share = int(1000 * width / sum(widths))
            column_width = f"\\dimexpr(\\linewidth-{2 * gap_count}\\tabcolsep)*{share}/1000\\relax"
            column_spec += f">{{\\{alignment}\\arraybackslash}}p{{{column_width}}}"
        line_count = 0
        for row in rows:
            line_count += max(ceil(_latex_width(text) / width) for text, width in zip(row, widths, strict=True))
    else:
        size = ""
        column_spec = "".join("r" if is_numeric else "l" for is_numeric in are_numeric)
        line_count = len(rows)

    caption_text = table.caption or table.title or table.name.capitalize()
    label = "-".join(re.findall(r"[a-z0-9]+", caption_text.lower()))[:60].strip("-")
    caption = f"\\caption{{{encoded(caption_text)}}}\\label{{tab:{label}}}"
    row_lines = []
    for row in rows:
        cells = [_latex_cell(text, is_broken=broken_layout is not None) for text in row]
        row_lines.append(" & ".join(cells) + " \\\\")
    heading, *body = row_lines
    notes = [f"\\par\\smallskip\\footnotesize {encoded(note)}" for note in table.notes]
    head = ["\\toprule", heading, "\\midrule"]
    fits = is_narrow or broken_layout is not None
    if fits and line_count > _LINES_ON_PAGE:
        output = [f"{{{size}", f"\\begin{{longtable}}{{@{{}}{column_spec}@{{}}}}", f"{caption}\\\\"]
        output += [*head, "\\endfirsthead", *head, "\\endhead", "\\bottomrule", "\\endfoot"]
        output += [*body, "\\end{longtable}", *notes, "}"]
        return "\n".join(output) + "\n"
    output = ["\\begin{table}[htbp]", f"\\centering{size}", caption]
    if not fits:
        output.append("\\resizebox{\\linewidth}{!}{%")
    output += [f"\\begin{{tabular}}{{@{{}}{column_spec}@{{}}}}", *head, *body, "\\bottomrule"]
    output.append("\\end{tabular}" if fits else "\\end{tabular}}")
    output += [*notes, "\\end{table}"]
    return "\n".join(output) + "\n"


def _broken_layout(rows: Sequence[Sequence[str]], text_widths: Sequence[float]) -> tuple[str, list[float]] | None:
    """Return the largest text size in which a table with line breaks fits, and the widths of its columns in letters.

    The size is a LaTeX command, with a second one if the gaps are smaller than usual; None if no size fits.
    """
    min_widths = []
    for column in zip(*rows, strict=True):
        longest_word = max(_latex_width(word) for text in column for word in _words(text))
        min_widths.append(longest_word + 1)
    for size, factor, separation in _SIZES:
        spare = _available_letters(factor, separation, len(text_widths) - 1) - sum(min_widths)
        if spare >= 0:
            wanted = []  # what each column needs to hold its texts in one line
            for text_width, min_width in zip(text_widths, min_widths, strict=True):
                wanted.append(ceil(max(text_width - min_width, 0.0)))
            extra_widths = fit(wanted, int(spare))
            if separation < _SEPARATION:
                size += f"\\setlength{{\\tabcolsep}}{{{separation}pt}}"
            return size, [width + extra for width, extra in zip(min_widths, extra_widths, strict=True)]
    return None


def _available_letters(factor: float, separation: float, gap_count: int) -> float:
    """Return the number of lower-case letters that fit into a line, without the gaps between columns.

    `factor` and `separation` are those of a text size in `_SIZES`.
    """
    return factor * (_LATEX_LINE - 0.4 * separation * gap_count)


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
    """Return the width of a text in lower-case letters; capitals and other wide letters count as one and a half."""
    return sum(1.5 if letter.isupper() or letter in _WIDE_LETTERS else 1.0 for letter in text)


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
    """Yield the text of an `envelope` with many records in parts, so that only one record is in memory at a time.

    Args:
        schema: The name of the schema.
        name: The name of the member that is the list of records.
        records: The records.
        further: Returns the members after the list; called after the last record.

    Raises:
        ValueError: A number is not finite, which JSON cannot express.
    """
    import json

    def json_text(value: object, depth: int) -> str:
        text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
        return escape_controls(text.replace("\n", f"\n{'  ' * depth}"))

    schema_text = json_text(f"orchtrace-corpus/{schema}", 1)
    head = f'{{\n  "schema": {schema_text},\n  "version": {SCHEMA_VERSION},\n  {json_text(name, 1)}: ['
    # The head comes together with the first record, so that nothing is written if no record can be made.
    is_first = True
    for record in records:
        before = f"{head}\n" if is_first else ",\n"
        yield f"{before}    {json_text(record, 2)}"
        is_first = False
    yield f"{head}]" if is_first else "\n  ]"
    for member, value in further().items():
        yield f",\n  {json_text(member, 1)}: {json_text(value, 1)}"
    yield "\n}\n"


def records(table: Table) -> list[dict[str, Any]]:
    """Return the rows as mappings from column to value; None for a value that is missing."""
    output = []
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        output.append({name: None if cell is Missing.ABSENT else cell for name, cell in cells})
    return output


def cell_text(cell: Cell, *, join: str = "; ") -> str:
    """Return a value as text; empty for None."""
    if cell is None:
        return ""
    if isinstance(cell, Missing):
        return str(cell.value)
    if isinstance(cell, tuple):
        return join.join(cell)
    return str(cell)


RENDERERS: dict[Format, Callable[[Sequence[Table], str], str]] = {
    Format.MARKDOWN: lambda tables, _: "\n".join(markdown(table) for table in tables),
    Format.LATEX: lambda tables, _: latex(tables),
    Format.CSV: lambda tables, _: "\n".join(csv(table.columns, table.rows) for table in tables),
    Format.JSON: lambda tables, schema: envelope(schema, {table.name: records(table) for table in tables}),
}
"""The functions that render tables in a format; their second argument is the name of the JSON schema.

A new member of `Format` needs an entry here and nothing else.
"""


def _wrapped_rows(row: tuple[str, ...], table: Table, widths: Sequence[int]) -> list[tuple[str, ...]]:
    """Return a row as one row, or as several if the text of the wrapped column does not fit."""
    if table.wrapped not in table.columns:
        return [row]
    index = table.columns.index(table.wrapped)
    first, *rest = wrap(row[index], widths[index])
    rows = [(*row[:index], first, *row[index + 1 :])]
    for part in rest:
        cells = [""] * len(row)
        cells[index] = part
        rows.append(tuple(cells))
    return rows


def _is_numeric(rows: Sequence[Sequence[Cell]], index: int) -> bool:
    return bool(rows) and all(isinstance(row[index], (int, float)) for row in rows)


def arranged(table: Table, columns: Sequence[str], sort: str) -> Table:
    """Return a table with its rows sorted and only some of its columns.

    Args:
        table: The table.
        columns: The names of the columns to keep, in order; empty for all.
        sort: The name of the column to sort by; `-name` sorts in descending order, and an empty text not at all.

    Raises:
        CommandUseError: There is no such column.
    """
    if sort:
        index = _column_index(table, sort.removeprefix("-"))
        rows = sorted(table.rows, key=lambda row: _sort_key(row[index]), reverse=sort.startswith("-"))
        table = table._replace(rows=tuple(rows))
    if columns:
        indices = [_column_index(table, name) for name in columns]
        table = table._replace(
            columns=tuple(table.columns[index] for index in indices),
            rows=tuple(tuple(row[index] for index in indices) for row in table.rows),
        )
    return table


def _column_index(table: Table, name: str) -> int:
    if name not in table.columns:
        raise CommandUseError(f"unknown column {quote(name)}{suggestion(name, table.columns)}")
    return table.columns.index(name)


def _sort_key(cell: Cell) -> tuple[bool, float, str]:
    """Return a key that sorts numbers and texts together, texts like zero, and None last."""
    if isinstance(cell, (int, float)):
        return False, cell, ""
    return cell is None, 0.0, cell_text(cell).casefold()
