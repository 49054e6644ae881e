"""Changes records, fields or values of a file and leaves every other byte as it was.

Each edit works on the text, and is checked by reading the result again: what was to change has
changed, and nothing else has. However many records an edit concerns, the file is read twice.

Comments and blank lines belong to what follows them, a comment at a line's end to its line. They stay
when what they belong to changes, and go when it is removed; only the head of a file stays always.
"""

from collections.abc import Mapping as MappingType
from collections.abc import Sequence as SequenceType

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, YamlFile
from orchtrace_corpus.base.yamlfile.record import changed_lines, content_end, values
from orchtrace_corpus.base.yamlfile.writer import MisplacedCommentError, Style, scalar_text, scalars


def insert_records(file: YamlFile, indexes: SequenceType[int] | None, blocks: SequenceType[str]) -> str:
    """The file's text with records added.

    Args:
        file: A list of records.
        indexes: For each new record, before which record of the file it comes; None for all at the end.
        blocks: The lines of each new record.

    Raises:
        DataFileError: The file is no block list, or the edit would touch another record.
    """
    before = _records(file)
    newline = _newline(file)
    new: dict[int, list[str]] = {}
    for index, block in zip(indexes or [len(before)] * len(blocks), blocks, strict=True):
        new.setdefault(index, []).append(block.rstrip("\n").replace("\n", newline) + newline)
    text = file.text
    expected: list[object] = [values(node) for node in before]
    for index in sorted(new, reverse=True):
        expected[index:index] = [None] * len(new[index])
        block = newline.join(new[index])
        if not before:
            text = _filled(file, block)
        elif index == 0:
            start = _line_start(file, before, 0) - len(_own_comments(file, before, 0))
            text = f"{text[:start]}{block}{newline}{text[start:]}"
        else:
            end = _span(file, before, index - 1)[1]
            gap = "" if text[:end].endswith("\n") else newline
            text = f"{text[:end]}{gap}{newline}{block}{text[end:]}"
    return _checked(file, text, expected)


def remove_record(file: YamlFile, index: int) -> str:
    """The file's text without the record at an index, its comments, and one blank line before them.

    Comments that open the file stay: they are about all of it.

    Raises:
        DataFileError: The file is no block list, or the edit would touch another record.
    """
    before = _records(file)
    start, end = _span(file, before, index)
    start -= len(_own_comments(file, before, index))
    head, tail = file.text[:start], file.text[end:]
    if len(before) == 1:
        return _checked(file, f"{head}[]{_newline(file)}{tail}", [])
    if head.endswith(("\n\n", "\n\r\n")):
        head = head[: -2 if head.endswith("\n\r\n") else -1]
    elif tail.startswith(("\n", "\r\n")):
        tail = tail.split("\n", 1)[1]
    return _checked(file, head + tail, [values(node) for node in (*before[:index], *before[index + 1 :])])


def change_fields(file: YamlFile, changes: MappingType[int, MappingType[str, Node | None]], style: Style) -> str:
    """The file's text with fields of records replaced, inserted or removed.

    A field that is there gets a new value on its lines, in canonical form, and keeps its comments; one
    that is not goes where the style puts it; None removes one. A record may be in any valid form of a
    block mapping, and keeps it.

    Args:
        file: A list of records.
        changes: By the index of a record, the new values of its fields.
        style: How the records are written.

    Raises:
        DataFileError: A record is no block mapping, a comment inside a changed field has no place in
            its new form, or the edit would touch anything else.
    """
    before = _records(file)
    wanted: list[object] = [values(node) for node in before]
    parts, done, newline = [], 0, _newline(file)
    for index in sorted(changes):
        start, end = _span(file, before, index)
        record = before[index]
        if type(record) is not Mapping:
            raise DataFileError(f"{file.location(start)}: this record is not a mapping", "See corpus check data.")
        try:
            lines = changed_lines(file, record, (start, end), changes[index], style, newline)
        except MisplacedCommentError as error:
            raise DataFileError(
                f"{file.location(error.at)}: this comment has no place in the changed field",
                "Move it above the field, or to the end of the field's first line.",
            ) from error
        parts += [file.text[done:start], lines]
        done = end
        wanted[index] = {
            **{name: values(value) for name, (_, value) in record.entries.items() if name not in changes[index]},
            **{name: values(value) for name, value in changes[index].items() if value is not None},
        }
    text = "".join((*parts, file.text[done:]))
    return _checked(file, text, wanted)


def replace_values(file: YamlFile, changes: dict[int, str]) -> str:
    """The file's text with scalars replaced by other texts, each by the index at which it begins.

    Raises:
        DataFileError: No scalar begins at an index, or the edit would touch another value.
    """
    spans = {start: end for start, end, _ in scalars(file.text) if start in changes}
    text = file.text
    for at in sorted(spans, reverse=True):
        line = text[text.rfind("\n", 0, at) + 1 : at]
        in_flow = "[" in line or "{" in line  # on its line, which is how canonical files write brackets
        text = text[:at] + scalar_text(changes[at], in_flow=in_flow) + text[spans[at] :]
    old, new = (YamlFile(file.path, each.encode()).root() for each in (file.text, text))
    if len(spans) < len(changes) or old is None or new is None or values(old, changes) != values(new):
        where = file.location(min(changes))
        raise DataFileError(f"{where}: this value cannot be changed in place", "Change it by hand.")
    return text


def _records(file: YamlFile) -> list[Node]:
    """The records of a file that reads without findings."""
    fresh = YamlFile(file.path, file.text.encode())
    records = list(fresh.records())
    if fresh.findings:
        raise _not_in_place(file)
    return records


def _span(file: YamlFile, records: list[Node], index: int) -> tuple[int, int]:
    """Return the lines of a record, without the comments and blank lines around it.

    Raises:
        DataFileError: The records are not a block list, one `- ` at the beginning of a line each.
    """
    start = _line_start(file, records, index)
    limit = _line_start(file, records, index + 1) if index + 1 < len(records) else len(file.text)
    return start, content_end(file, records[index].at, limit)


def _line_start(file: YamlFile, records: list[Node], index: int) -> int:
    at = records[index].at
    start = file.text.rfind("\n", 0, at) + 1
    if file.text[start:at].strip(" ") != "-":
        where = file.location(at)
        raise DataFileError(
            f"{where}: this record is not written as a block list item", "Run corpus check --fix first."
        )
    return start


def _own_comments(file: YamlFile, records: list[Node], index: int) -> str:
    """The lines of comments directly above a record; none where they open the file."""
    start = _line_start(file, records, index)
    lines = file.text[_span(file, records, index - 1)[1] if index else 0 : start].splitlines(keepends=True)
    first = len(lines)
    while first and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return "".join(lines[first:]) if first or index else ""


def _filled(file: YamlFile, block: str) -> str:
    """The text of an empty list with its first records."""
    node = YamlFile(file.path, file.text.encode()).root()
    at = len(file.text) if node is None else node.at
    newline = _newline(file)
    head, tail = file.text[:at].rstrip("\r\n "), file.text[at:].partition("]")[2].strip()
    return f"{head}{newline * 2 if head else ''}{block}{newline + tail + newline if tail else ''}"


class TooLongError(DataFileError):
    """A line of the new text would be longer than any that can be read."""


def _checked(file: YamlFile, text: str, expected: list[object]) -> str:
    """The text, if its records read as expected; None stands for one that is new."""
    edited = YamlFile(file.path, text.encode())
    records = [values(node) for node in _records(edited)]
    if too_long := next((finding for finding in edited.findings if finding.code == "Y115"), None):
        raise TooLongError(f"{file.path} cannot be written: {too_long.message}")
    if len(records) != len(expected) or any(old not in (None, new) for old, new in zip(expected, records, strict=True)):
        raise _not_in_place(file)
    return text


def _not_in_place(file: YamlFile) -> DataFileError:
    return DataFileError(f"{file.path} cannot be edited in place", "Run corpus check --fix, or edit it by hand.")


def _newline(file: YamlFile) -> str:
    return "\r\n" if "\r\n" in file.text else "\n"
