"""Papers as a table with a row for each paper: as CSV, as a pandas frame, and as Parquet, which needs pyarrow.

CSV has two profiles: all fields (`full`), or the columns of the survey's published table (`published`). It follows
RFC 4180, except that lines end in a line feed. A cell is empty if the record does not have the field.

Spreadsheets evaluate a cell that begins with `=`, `+`, `-` or `@` as a formula. Such a cell gets an apostrophe in
front, which spreadsheets hide. Reading removes it.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.errors import CommandUseError, MissingLibraryError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.json_syntax import JsonError, loads
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.formats import Item, Problem
from orchtrace_corpus.corpus.formats.records import problem_with
from orchtrace_corpus.corpus.model.decode import field_names
from orchtrace_corpus.corpus.model.field_table import FieldKind, RecordField, number_of, value_texts
from orchtrace_corpus.corpus.model.fields import bare_author
from orchtrace_corpus.corpus.model.record_fields import Value, fields
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Record, evidence_facets, evidence_values
from orchtrace_corpus.corpus.model.taxonomy import Column, Facet, Kind, Taxonomy

if TYPE_CHECKING:
    import pandas

_PUBLISHED = "published"  # the profile, and the list of its columns in the taxonomy
_ITEM_SEPARATOR = " ; "
_NO_TERM_APPLIES = "{}"  # in the column of a facet of kind `levels`
_FORMULA = r"'*[=+\-@\t\r]"  # a text that begins with apostrophes gets another one, since reading removes one


class _TableColumn(NamedTuple):
    """A column of the table.

    Attributes:
        field: The field of a paper that the column holds, or for a term with levels, the field of its facet.
        published: The column as the taxonomy declares it for the published table.
    """

    field: str
    record_field: RecordField | None
    facet: Facet | None
    published: Column = Column("", "")

    @property
    def is_list(self) -> bool:
        """Return True if a cell can hold several values."""
        if self.facet is not None:
            return self.facet.kind is Kind.MANY
        return self.record_field is not None and self.record_field.is_list


def write(papers: Sequence[Paper], taxonomy: Taxonomy, profile: str, _categories: Mapping[str, str]) -> str:
    """Return the papers as a table with a header."""
    if profile == _PUBLISHED:
        return _published_table(papers, _require_columns(taxonomy.published, _PUBLISHED))
    names = list(_columns(taxonomy, profile))
    cells_of_papers = (_full_cells(paper, taxonomy) for paper in papers)
    return _table(names, ([cells.get(name, "") for name in names] for cells in cells_of_papers))


def write_exclusions(exclusions: Sequence[Exclusion], taxonomy: Taxonomy) -> str:
    """Return the survey's published table of exclusions, with a header."""
    return _published_table(exclusions, _require_columns(taxonomy.published_exclusions, "published_exclusions"))


def _published_table(records: Sequence[Record], columns: Sequence[Column]) -> str:
    rows = ([_published_cell(record, column) for column in columns] for record in records)
    return _table([column.column for column in columns], rows)


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([f"'{cell}" if re.match(_FORMULA, cell) else cell for cell in row] for row in rows)
    return text.getvalue()


def read(text: str, taxonomy: Taxonomy, profile: str, problems: list[Problem]) -> list[Item]:
    """Return the rows of a table as items. Columns may be missing, and in any order."""
    columns = _columns(taxonomy, profile)
    names_by_field = {column.field: name for name, column in columns.items()}
    read_value = _published_value if profile == _PUBLISHED else _full_value
    items = []
    for line, row in _rows(text, columns, names_by_field.get("key", "key"), problems):
        values: dict[str, Value] = {}
        levels_by_facet: dict[str, dict[str, Value]] = {}
        first_items: dict[str, str] = {}
        empty_fields: list[str] = []
        for name, cell in row.items():
            column = columns[name]
            if cell in ("", column.published.absent):
                empty_fields.append(column.field)
            elif column.published.field == "first_author":
                first_items["authors"] = cell
            elif column.facet is not None and column.facet.kind is Kind.LEVELS:
                # Each term has a column for its level. The column of the facet itself is empty or `{}`.
                levels = levels_by_facet.setdefault(column.field, {})
                if name != column.field:
                    levels[name] = cell
                elif cell != _NO_TERM_APPLIES:
                    message = f"{name} is {quote(cell)}; write {{}} where no term applies, else nothing"
                    problems.append(Problem(line, message))
            else:
                values[column.field] = read_value(name, column, cell, line, problems)
        for field, levels in levels_by_facet.items():
            if levels and row.get(field):
                term = next(iter(levels))
                problems.append(Problem(line, f"{field} says that no term applies, but {term} has a level"))
        values |= levels_by_facet
        # A facet has several columns; it is empty only if all are. All authors take precedence over the first.
        empty_fields = [field for field in dict.fromkeys(empty_fields) if field not in values]
        first_items = {field: item for field, item in first_items.items() if field not in values}
        items.append(Item(values, line, first_items, tuple(empty_fields)))
    return items


def _require_columns(columns: tuple[Column, ...], name: str) -> tuple[Column, ...]:
    if not columns:
        table = "published table" if name == _PUBLISHED else "published table of exclusions"
        hint = f"Declare its columns under '{name}' in data/taxonomy.yaml, or leave out --profile."
        raise CommandUseError(f"the taxonomy declares no {table}", hint)
    return columns


def _columns(taxonomy: Taxonomy, profile: str) -> dict[str, _TableColumn]:
    """Return the columns of a profile by name; for `full`, in the order of fields in the data file."""
    fields = {field.name: field for field in taxonomy.paper_fields}
    facets = {facet.field: facet for facet in taxonomy.papers}
    columns: dict[str, _TableColumn] = {}
    if profile == _PUBLISHED:
        for column in _require_columns(taxonomy.published, _PUBLISHED):
            field = "authors" if column.field == "first_author" else column.field
            columns[column.column] = _TableColumn(field, fields.get(field), facets.get(field), column)
        return columns
    for field in field_names(taxonomy.paper_fields, taxonomy.papers):
        facet = facets.get(field)
        columns[field] = _TableColumn(field, fields.get(field), facet)
        if facet is not None and facet.kind is Kind.LEVELS:
            columns |= dict.fromkeys((term.id for term in facet.terms), columns[field])
    return columns


def _published_cell(record: Record, column: Column) -> str:
    value: object = record.tags.get(column.field)
    if value is None:
        survey_fields = record.more if isinstance(record, Paper) else {}
        value = survey_fields.get(column.field, getattr(record, column.field, None))
    if isinstance(value, tuple):
        # bare_author: the table shows a collective author without braces; it leaves other texts as they are.
        return _ITEM_SEPARATOR.join(column.spelled(bare_author(item)) for item in value) or column.absent
    if isinstance(value, bool):
        return column.spelled("true" if value else "false")
    return column.absent if value in (None, "") else column.spelled(str(value))


def _published_value(name: str, column: _TableColumn, cell: str, line: int, problems: list[Problem]) -> Value:
    parts = re.split(r"\s*;\s+", cell) if column.is_list else [cell]
    if column.facet is not None:
        terms_by_word = {column.published.spelled(term): term for term in column.facet.values}
        terms = {term.label: term.id for term in column.facet.terms} | terms_by_word  # labels are accepted, too
        for part in parts:
            if part not in terms:
                message = f"{name} has no word {quote(part)}{suggestion(part, list(terms_by_word))}"
                problems.append(Problem(line, message))
        parts = [terms.get(part, part) for part in parts]
    return parts if column.is_list else _scalar(column.record_field, parts[0])


def _full_cells(paper: Paper, taxonomy: Taxonomy) -> dict[str, str]:
    """Return the cells of a paper by column; a column without a value is left out."""
    cells: dict[str, str] = {}
    structured = {field.name for field in taxonomy.paper_fields if field.kind is FieldKind.NESTED}
    for field, value in fields(paper, taxonomy).items():
        if field in structured:
            cells[field] = json.dumps(value, ensure_ascii=False)
        elif isinstance(value, Mapping) and value:
            cells.update({term: str(level) for term, level in value.items()})
        elif isinstance(value, Mapping):
            cells[field] = _NO_TERM_APPLIES
        elif isinstance(value, (str, int, float)):
            cells[field] = value_texts(value)[0]
        else:  # in an item, a backslash escapes semicolons and backslashes
            cells[field] = _ITEM_SEPARATOR.join(re.sub(r"[\\;]", r"\\\g<0>", str(item)) for item in value)
    return cells


def _full_value(name: str, column: _TableColumn, cell: str, line: int, problems: list[Problem]) -> Value:
    if column.record_field is None or column.record_field.kind is not FieldKind.NESTED:
        if not column.is_list or cell == NOT_APPLICABLE:
            return _scalar(column.record_field, cell)
        parts = re.findall(r"(?:[^\\;]|\\.|\\$)+", cell)  # up to a semicolon that no backslash escapes
        return [re.sub(r"\\([\\;])", r"\1", part.strip()) for part in parts]
    # The other structured fields, such as evidence, are lists.
    kind, noun = (dict, "an object") if name == "bibtex" else (list, "a list")
    try:
        value = loads(cell)
        problem = problem_with(value) if isinstance(value, kind) else f"must be {noun}"
    except JsonError as error:
        problem = f"is {error}"
    if problem:
        problems.append(Problem(line, f"{name} {problem}"))
        return ""
    return kind(value)


def _scalar(field: RecordField | None, cell: str) -> Value:
    """Return a cell as a number or a flag, if its field is one and the cell is valid; otherwise as text."""
    if field is None:
        return cell
    if field.kind is FieldKind.FLAG and cell in ("true", "false"):
        return cell == "true"
    if field.kind is FieldKind.NUMBER or (field.kind is FieldKind.YEAR and re.fullmatch("[0-9]{4}", cell)):
        with suppress(ValueError):
            return number_of(cell)
    return cell


def _rows(
    text: str, columns: Mapping[str, object], key_column: str, problems: list[Problem]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line, and the cells by column, of each row after the header. The header needs `key_column`."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    line = 1
    try:
        for row in reader:
            start = line
            line = reader.line_num + 1  # where the next row begins: a cell can hold line breaks
            if not header:
                header = row
                problems += [Problem(start, message) for message in _header_problems(header, columns, key_column)]
                if problems:
                    return
            elif row not in ([], [""]):
                if len(row) != len(header):
                    problems.append(Problem(start, f"{len(row)} cells under {len(header)} columns"))
                    continue
                cells = (cell[1:] if cell.startswith("'") and re.match(_FORMULA, cell) else cell for cell in row)
                yield start, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        problems.append(Problem(line, f"not a table of comma-separated values: {error}"))
    if not header:
        problems.append(Problem(1, "the file is empty; it needs a line with the names of its columns"))


def _header_problems(header: Sequence[str], columns: Mapping[str, object], key_column: str) -> Iterator[str]:
    if len(header) == 1 and ";" in header[0]:
        yield "the columns are separated by semicolons; save the table with commas"
        return
    if key_column not in header:
        yield f"there is no column {quote(key_column)}, which says which record a row is about"
    for name in dict.fromkeys(header):
        if header.count(name) > 1:
            yield f"column {quote(name)} is there {header.count(name)} times; keep one"
        if name not in columns:
            yield f"unknown column {quote(name)}{suggestion(name, list(columns))}"


_DTYPES = {FieldKind.YEAR: "Int64", FieldKind.NUMBER: "Float64", FieldKind.FLAG: "boolean"}


def to_pandas(papers: Sequence[Paper], taxonomy: Taxonomy) -> "pandas.DataFrame":
    """Return one row for each paper, indexed by `key`; columns are fields, then facets in the taxonomy's order.

    A facet of kind `single` is an ordered categorical of all its terms and `NA`, so that a cross-tabulation can show
    unused terms; a paper without the tag has a missing value. A facet of kind `levels` has a column with the level of
    each term, and a column with the facet's name that holds the distinct levels of the paper. A facet of evidence
    holds the weakest term in the paper's evidence about tags, or all terms if an item of evidence can have several.
    Every name that filters know is a column, or the index. Lists such as `authors` are tuples, and so is `contested`,
    the fields with an open dispute. Years are integers, other numbers floats, flags and `published` booleans.
    `evidence` and `bibtex` are left out.
    """
    import pandas as pd

    columns: dict[str, Any] = {}
    for field in taxonomy.paper_fields:
        values = [paper.value(field.name) for paper in papers]
        if field.kind is FieldKind.DATE:
            columns[field.name] = pd.to_datetime(pd.Series(values, dtype="str"), format="%Y-%m-%d").to_numpy()
        elif field.kind in _DTYPES and not field.required:
            columns[field.name] = pd.Series(values, dtype=_DTYPES[field.kind]).array
        elif field.is_list:
            columns[field.name] = [value or () for value in values]
        elif field.kind is not FieldKind.NESTED and field.name != "key":
            columns[field.name] = values
        if field.name == "authors":
            columns["first_author"] = [paper.first_author for paper in papers]
    columns["published"] = pd.array([paper.published for paper in papers], dtype="boolean")
    columns["contested"] = [paper.contested for paper in papers]
    for facet in taxonomy.papers:
        tags = [paper.tags.get(facet.field) for paper in papers]
        if facet.kind is Kind.LEVELS:
            levels = [level.id for level in facet.levels]
            columns[facet.field] = [tuple(dict.fromkeys(tag.values())) if isinstance(tag, dict) else () for tag in tags]
            for term in facet.terms:
                values = [tag.get(term.id) if isinstance(tag, dict) else None for tag in tags]
                columns[term.id] = pd.Categorical(values, levels, ordered=True)
        elif facet.kind is Kind.SINGLE:
            tags = [str(tag) if tag else None for tag in tags]
            columns[facet.field] = pd.Categorical(tags, facet.values, ordered=True)
        else:
            columns[facet.field] = tags
    for facet in evidence_facets(taxonomy):
        if facet.field in columns:  # a facet of papers with the same name takes precedence
            continue
        terms_of_papers = [evidence_values(facet, frozenset(taxonomy.facts), paper) for paper in papers]
        columns[facet.field] = terms_of_papers
        if facet.kind is Kind.SINGLE:
            weakest = [terms[0] if terms else None for terms in terms_of_papers]
            columns[facet.field] = pd.Categorical(weakest, [term.id for term in facet.terms], ordered=True)
    return pd.DataFrame(columns, index=pd.Index([paper.key for paper in papers], name="key"))


def write_frame(papers: Sequence[Paper], taxonomy: Taxonomy, _profile: str, _categories: Mapping[str, str]) -> bytes:
    """Return the papers as a Parquet file whose first column is `key`."""
    if find_spec("pyarrow") is None:
        raise MissingLibraryError("Parquet", "pyarrow", "parquet")
    written: bytes = to_pandas(papers, taxonomy).reset_index().to_parquet(engine="pyarrow", index=False)
    return written
