"""Changes one record or one value of a file and leaves every other byte as it was.

Each edit works on the text, and is checked by reading the result again: the record or value that was
to change has changed, and nothing else has. Comments and blank lines belong to what follows them.
"""

from typing import Any

from yaml import ScalarEvent
from yaml._yaml import CParser

from orchtrace_corpus.errors import DataFileError
from orchtrace_corpus.yamlfile.reader import Mapping, Node, Scalar, Sequence, YamlFile
from orchtrace_corpus.yamlfile.writer import scalar_text

_SCALAR: Any = ScalarEvent  # PyYAML's types say that a mark may be missing; the parser's never are


def replace_record(file: YamlFile, index: int, block: str) -> str:
    """The file's text with the record at an index replaced by another block of lines.

    Raises:
        DataFileError: The file is no block list, or the edit would touch another record.
    """
    start, end = record_span(file, index)
    text = file.text[:start] + _like(file, block) + file.text[end:]
    before = list(file.records())
    return _checked(file, text, [*before[:index], None, *before[index + 1 :]])


def insert_record(file: YamlFile, index: int, block: str) -> str:
    """The file's text with a record added before the one at an index, or at the end.

    Raises:
        DataFileError: The file is no block list, or the edit would touch another record.
    """
    before = list(file.records())
    block = _like(file, block)
    newline = _newline(file)
    if not before:
        head = file.text.replace("[]", "", 1) if file.text.strip().endswith("[]") else file.text
        head = head.rstrip("\r\n ")
        text = f"{head}{newline * 2 if head else ''}{block}"
    elif index >= len(before):
        start, end = record_span(file, len(before) - 1)
        gap = "" if file.text[start:end].endswith("\n") else newline
        text = f"{file.text[:end]}{gap}{newline}{block}{file.text[end:]}"
    else:
        start = record_span(file, index)[0]
        text = f"{file.text[:start]}{block}{newline}{file.text[start:]}"
    return _checked(file, text, [*before[:index], None, *before[index:]])


def remove_record(file: YamlFile, index: int) -> str:
    """The file's text without the record at an index; one blank line before it goes, too.

    Raises:
        DataFileError: The file is no block list, or the edit would touch another record.
    """
    start, end = record_span(file, index)
    before = list(file.records())
    head, tail = file.text[:start], file.text[end:]
    if len(before) == 1:
        return f"{head}[]{_newline(file)}{tail}"
    if head.endswith(("\n\n", "\n\r\n")):
        head = head[: -2 if head.endswith("\n\r\n") else -1]
    elif tail.startswith(("\n", "\r\n")):
        tail = tail.split("\n", 1)[1]
    return _checked(file, head + tail, [*before[:index], *before[index + 1 :]])


def replace_values(file: YamlFile, changes: dict[int, str]) -> str:
    """The file's text with scalars replaced by other texts, each by the index at which it begins.

    Raises:
        DataFileError: No scalar begins at an index, or the edit would touch another value.
    """
    spans: dict[int, int] = {}
    parser = CParser(file.text)
    while parser.check_event():
        event: Any = parser.get_event()
        if type(event) is _SCALAR and event.start_mark.index in changes:
            spans[event.start_mark.index] = event.end_mark.index
    text = file.text
    for at in sorted(spans, reverse=True):
        text = text[:at] + scalar_text(changes[at], in_flow=_in_flow(file.text, at)) + text[spans[at] :]
    old, new = (YamlFile(file.path, each.encode()).root() for each in (file.text, text))
    if len(spans) < len(changes) or old is None or new is None or values(old, changes) != values(new):
        where = file.location(min(changes))
        raise DataFileError(f"{where}: this value cannot be changed in place", "Change it by hand.")
    return text


def record_span(file: YamlFile, index: int) -> tuple[int, int]:
    """Where a record's lines begin and end, without the comments and blank lines around it.

    Raises:
        DataFileError: The records are not a block list, one `- ` at the beginning of a line each.
    """
    starts = [node.at for node in YamlFile(file.path, file.text.encode()).records()]
    start = file.text.rfind("\n", 0, starts[index]) + 1
    if file.text[start : starts[index]].strip(" ") != "-":
        raise DataFileError(
            f"{file.location(starts[index])}: this record is not written as a block list item",
            "Run corpus fmt first.",
        )
    limit = file.text.rfind("\n", 0, starts[index + 1]) + 1 if index + 1 < len(starts) else len(file.text)
    lines = file.text[start:limit].splitlines(keepends=True)
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].startswith("#")):
        lines.pop()
    return start, start + sum(len(line) for line in lines)


def values(node: Node, changed: dict[int, str] | None = None) -> object:
    """The node without places; `changed` gives other texts for scalars by their place."""
    if type(node) is Mapping:
        return {key: values(value, changed) for key, (_, value) in node.entries.items()}
    if type(node) is Sequence:
        return [values(item, changed) for item in node.items]
    assert type(node) is Scalar
    return (changed or {}).get(node.at, node.text)


def _checked(file: YamlFile, text: str, expected: list[Node | None]) -> str:
    """The text, if it reads as expected; None stands for the record that is new."""
    changed = YamlFile(file.path, text.encode())
    records = list(changed.records())
    same = len(records) == len(expected) and not changed.findings
    if same and all(old is None or values(old) == values(new) for old, new in zip(expected, records, strict=True)):
        return text
    raise DataFileError(f"{file.path} cannot be edited in place", "Run corpus fmt, or edit it by hand.")


def _in_flow(text: str, at: int) -> bool:
    """Whether a place lies inside brackets: any on its line, which is how canonical files write them."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return "[" in line or "{" in line


def _newline(file: YamlFile) -> str:
    return "\r\n" if "\r\n" in file.text else "\n"


def _like(file: YamlFile, block: str) -> str:
    """The block with the file's line ends, its last line ended."""
    return block.rstrip("\n").replace("\n", _newline(file)) + _newline(file)
