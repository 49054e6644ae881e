"""Change records, fields or values of a file, and leave every other byte as it was.

Each edit changes the text of the file. Then the new text is read again, to check that the edit has changed what it
should and nothing else. A file is read twice, however many of its records change.

Comments and blank lines belong to the record or field below them, and a comment at the end of a line to the line. They
stay if that record, field or line changes, and go if it is removed. The comments at the head of the file always stay.
"""

from collections.abc import Mapping as MappingType
from collections.abc import Sequence

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, YamlFile
from orchtrace_corpus.base.yamlfile.record import changed_lines, content_end, node_content
from orchtrace_corpus.base.yamlfile.writer import MisplacedCommentError, Style, scalar_text, scalars


def insert_records(file: YamlFile, indexes: Sequence[int] | None, blocks: Sequence[str]) -> str:
    """Return the text of a file with new records.

    Args:
        file: A list of records.
        indexes: For each new record, the index of the record of the file that it comes before; None to append all.
        blocks: The lines of each new record.

    Raises:
        DataFileError: The file is no block list, or the edit would change another record.
    """
    records = _read_records(file)
    newline = _newline(file)
    if not indexes:
        indexes = [len(records)] * len(blocks)
    blocks_by_index: dict[int, list[str]] = {}
    for index, block in zip(indexes, blocks, strict=True):
        lines = block.rstrip("\n").replace("\n", newline) + newline
        blocks_by_index.setdefault(index, []).append(lines)
    text = file.text
    expected: list[object] = [node_content(node) for node in records]
    for index in sorted(blocks_by_index, reverse=True):  # from the end on, so that the other indices stay valid
        new_blocks = blocks_by_index[index]
        expected[index:index] = [None] * len(new_blocks)  # `_check` does not compare new records
        lines = newline.join(new_blocks)  # with a blank line between two records
        if not records:
            text = _fill_empty_list(file, lines)
        elif index == 0:
            start = _line_start(file, records, 0) - len(_comments_above(file, records, 0))
            text = f"{text[:start]}{lines}{newline}{text[start:]}"
        else:
            _, end = _span(file, records, index - 1)
            line_end = "" if text[:end].endswith("\n") else newline
            text = f"{text[:end]}{line_end}{newline}{lines}{text[end:]}"
    return _check(file, text, expected)


def remove_record(file: YamlFile, index: int) -> str:
    """Return the text of a file without a record, the comments directly above it, and one blank line before them.

    Comments at the head of the file stay, because they are about the whole file.

    Raises:
        DataFileError: The file is no block list, or the edit would change another record.
    """
    records = _read_records(file)
    start, end = _span(file, records, index)
    start -= len(_comments_above(file, records, index))
    head = file.text[:start]
    tail = file.text[end:]
    if len(records) == 1:
        return _check(file, f"{head}[]{_newline(file)}{tail}", [])
    if head.endswith("\n\r\n"):
        head = head.removesuffix("\r\n")
    elif head.endswith("\n\n"):
        head = head.removesuffix("\n")
    elif tail.startswith(("\n", "\r\n")):
        _, _, tail = tail.partition("\n")
    others = (*records[:index], *records[index + 1 :])
    return _check(file, head + tail, [node_content(node) for node in others])


def change_fields(file: YamlFile, changes: MappingType[int, MappingType[str, Node | None]], style: Style) -> str:
    """Return the text of a file with fields of records replaced, inserted or removed.

    A replaced field is written in canonical form, and keeps its comments. A new field is inserted at its place in the
    style. The rest of a record keeps its form, which may be any valid form of a block mapping.

    Args:
        file: A list of records.
        changes: By the index of a record, the new values of its fields; None removes a field.
        style: How the records are written.

    Raises:
        DataFileError: A record is no block mapping, a comment inside a changed field has no place in the new form, or
            the edit would change anything else.
    """
    records = _read_records(file)
    newline = _newline(file)
    expected: list[object] = [node_content(node) for node in records]
    text = ""
    previous_end = 0
    for index in sorted(changes):
        start, end = _span(file, records, index)
        record = records[index]
        if type(record) is not Mapping:
            raise DataFileError(f"{file.location(start)}: this record is not a mapping", "See corpus check data.")
        try:
            lines = changed_lines(file, record, (start, end), changes[index], style, newline)
        except MisplacedCommentError as error:
            raise DataFileError(
                f"{file.location(error.at)}: this comment has no place in the changed field",
                "Move it above the field, or to the end of the field's first line.",
            ) from error
        text += file.text[previous_end:start] + lines
        previous_end = end
        fields: dict[str, Node | None] = {name: value for name, (_, value) in record.entries.items()}
        fields.update(changes[index])
        expected[index] = {name: node_content(value) for name, value in fields.items() if value is not None}
    text += file.text[previous_end:]
    return _check(file, text, expected)


def replace_values(file: YamlFile, changes: dict[int, str]) -> str:
    """Return the text of a file with other texts in place of some scalars.

    Args:
        file: The file.
        changes: The new texts, by the place in the text of the file at which the old scalar begins.

    Raises:
        DataFileError: No scalar begins at a place, or the edit would change another value.
    """
    ends = {start: end for start, end, _ in scalars(file.text) if start in changes}
    text = file.text
    for start in sorted(ends, reverse=True):  # from the end on, so that the other places stay valid
        before = text[text.rfind("\n", 0, start) + 1 : start]
        in_brackets = "[" in before or "{" in before  # in canonical form, brackets open and close on one line
        text = text[:start] + scalar_text(changes[start], in_brackets=in_brackets) + text[ends[start] :]
    old = YamlFile(file.path, file.text.encode()).root()
    new = YamlFile(file.path, text.encode()).root()
    is_as_wanted = old is not None and new is not None and node_content(old, changed=changes) == node_content(new)
    if len(ends) < len(changes) or not is_as_wanted:
        where = file.location(min(changes))
        raise DataFileError(f"{where}: this value cannot be changed in place", "Change it by hand.")
    return text


def _read_records(file: YamlFile) -> list[Node]:
    """Return the records of a file; raise `DataFileError` if its YAML has a problem."""
    fresh = YamlFile(file.path, file.text.encode())  # read again: `file` may also have findings about values
    records = list(fresh.records())
    if fresh.findings:
        raise _not_editable(file)
    return records


def _span(file: YamlFile, records: list[Node], index: int) -> tuple[int, int]:
    """Return the start and end of a record's lines, without the comments and blank lines around it.

    Raises:
        DataFileError: The records are not written as a block list, with `- ` at the beginning of a line.
    """
    start = _line_start(file, records, index)
    limit = len(file.text)
    if index + 1 < len(records):
        limit = _line_start(file, records, index + 1)
    return start, content_end(file, records[index].at, limit)


def _line_start(file: YamlFile, records: list[Node], index: int) -> int:
    """Return the start of the first line of a record."""
    at = records[index].at
    start = file.text.rfind("\n", 0, at) + 1
    if file.text[start:at].strip(" ") != "-":
        message = f"{file.location(at)}: this record is not written as a block list item"
        raise DataFileError(message, "Run corpus check --fix first.")
    return start


def _comments_above(file: YamlFile, records: list[Node], index: int) -> str:
    """Return the lines of comments directly above a record; empty if the file begins with them."""
    previous_end = 0
    if index:
        _, previous_end = _span(file, records, index - 1)
    start = _line_start(file, records, index)
    lines = file.text[previous_end:start].splitlines(keepends=True)
    first = len(lines)
    while first and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    is_head_of_file = first == 0 and index == 0
    return "" if is_head_of_file else "".join(lines[first:])


def _fill_empty_list(file: YamlFile, block: str) -> str:
    """Insert the first records into a file that has none, and return its text; its comments stay."""
    node = YamlFile(file.path, file.text.encode()).root()
    list_at = len(file.text) if node is None else node.at
    newline = _newline(file)
    head = file.text[:list_at].rstrip("\r\n ")
    _, _, tail = file.text[list_at:].partition("]")
    tail = tail.strip()
    text = block
    if head:
        text = f"{head}{newline}{newline}{text}"
    if tail:
        text = f"{text}{newline}{tail}{newline}"
    return text


class TooLongError(DataFileError):
    """A line of the new text would be too long to be read again."""


def _check(file: YamlFile, text: str, expected: list[object]) -> str:
    """Return the new text of a file if its records are as expected; else raise `DataFileError`.

    In `expected`, None stands for a new record, whatever it is.
    """
    edited = YamlFile(file.path, text.encode())
    records = [node_content(node) for node in _read_records(edited)]
    for finding in edited.findings:
        if finding.code == "Y115":  # a line is too long: reading ended before it
            raise TooLongError(f"{file.path} cannot be written: {finding.message}")
    if len(records) != len(expected):
        raise _not_editable(file)
    for wanted, record in zip(expected, records, strict=True):
        if wanted is not None and wanted != record:
            raise _not_editable(file)
    return text


def _not_editable(file: YamlFile) -> DataFileError:
    return DataFileError(f"{file.path} cannot be edited in place", "Run corpus check --fix, or edit it by hand.")


def _newline(file: YamlFile) -> str:
    return "\r\n" if "\r\n" in file.text else "\n"
