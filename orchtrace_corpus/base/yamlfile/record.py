"""Changes fields inside the lines of one record; `splice` puts the lines into the file.

A record is taken apart into its fields, each with the lines above it that belong to it, and put
together again: what is not changed keeps its bytes.
"""

from bisect import bisect_right
from collections.abc import Mapping as MappingType
from types import MappingProxyType

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence, YamlFile
from orchtrace_corpus.base.yamlfile.writer import (
    MisplacedCommentError,
    Path,
    Style,
    field_lines,
    line_end_comments,
    rank,
)


class _Field(NamedTuple):
    """A field's text: `above` is what stands between the field before and its first line, which begins with its key."""

    name: str
    above: str
    text: str
    at: int = 0


def content_end(file: YamlFile, at: int, limit: int) -> int:
    """Return the end of the last line of the node that begins at an index: up to `limit`, no content follows it."""
    return _line_end(file, [at, *_ends(file, at, limit)][-1], limit)


def changed_lines(
    file: YamlFile,
    record: Mapping,
    span: tuple[int, int],
    changes: MappingType[str, Node | None],
    style: Style,
    newline: str,
) -> str:
    """The lines of a record with fields replaced, inserted at their place, or (None) removed.

    Args:
        file: The file that the record is in.
        record: The record as read.
        span: Where its lines begin and end.
        changes: New values by field.
        style: How records are written.
        newline: How the file's lines end.

    Raises:
        DataFileError: The record is no block mapping, or nothing would be left of it.
        MisplacedCommentError: A comment inside a changed field has no place in its new form.
    """
    fields = _taken_apart(file, record, span[1], newline)
    mark = file.text[span[0] : record.at]
    indent = " " * len(mark)

    def text(name: str, node: Node, comments: dict[Path, str], at: int = -1) -> str:
        return f"{newline}{indent}".join(field_lines(name, node, style, comments, at)) + newline

    for name in sorted(changes, key=lambda name: rank(name, style)):
        place = next((index for index, field in enumerate(fields) if field.name == name), None)
        node = changes[name]
        if node is None:
            fields = [field for field in fields if field.name != name]
            continue
        if place is None:
            fields.insert(_place(name, fields, style), _Field(name, "", text(name, node, {})))
        else:
            old = fields[place]
            comments = _kept_comments(file, old, node, len(mark))
            fields[place] = old._replace(text=text(name, node, comments, old.at))
    if not fields:
        raise DataFileError(f"{file.location(record.at)}: nothing would be left of this record", "Remove it instead.")
    first, *others = fields
    above = "".join(line.lstrip(" ") for line in first.above.splitlines(keepends=True) if line.strip())
    lines = "".join((above, mark, first.text, *(f"{field.above}{indent}{field.text}" for field in others)))
    return lines if file.text[span[1] - 1] == "\n" else lines.removesuffix(newline)


def values(node: Node, changed: MappingType[int, str] = MappingProxyType({})) -> object:
    """The node without places; `changed` gives other texts for scalars, names included, by their place."""
    if type(node) is Mapping:
        return {changed.get(key_at, key): values(value, changed) for key, (key_at, value) in node.entries.items()}
    if type(node) is Sequence:
        return [values(item, changed) for item in node.items]
    assert type(node) is Scalar
    return changed.get(node.at, node.text)


def _taken_apart(file: YamlFile, record: Mapping, end: int, newline: str) -> list[_Field]:
    """The fields of a record with their text, in file order, the last line of each ended."""
    starts = [key_at for key_at, _ in record.entries.values()]
    ends = _ends(file, record.at, end)
    fields = []
    behind = record.at
    for name, at, following in zip(record.entries, starts, [*starts[1:], end], strict=True):
        line_start = max(file.text.rfind("\n", 0, at) + 1, record.at)
        if line_start < behind or file.text[line_start:at].strip(" "):
            where = file.location(at)
            raise DataFileError(
                f"{where}: this field does not stand on lines of its own", "Run corpus check --fix first."
            )
        above = file.text[behind:line_start]
        behind = _line_end(file, ends[bisect_right(ends, following) - 1], end)
        text = file.text[at:behind]
        fields.append(_Field(name, above, text if text.endswith("\n") else text + newline, at))
    return fields


def _place(name: str, fields: list[_Field], style: Style) -> int:
    """The place of a new field: behind the nearest of those that come before it in canonical order."""
    before = [(rank(field.name, style), index) for index, field in enumerate(fields)]
    before = [pair for pair in before if pair[0] <= rank(name, style)]
    return max(before)[1] + 1 if before else 0


def _kept_comments(file: YamlFile, field: _Field, node: Node, column: int) -> dict[Path, str]:
    """The comments at the ends of a field's lines, by where they go in its new value.

    That on the first line is about the field. Others are about the value on their line: they go where
    it goes, and with it.
    """
    if "#" not in field.text:
        return {}
    excerpt = YamlFile(file.path, (" " * column + field.text).encode())
    old = excerpt.root()
    assert type(old) is Mapping
    try:
        comments = line_end_comments(excerpt, old)
    except MisplacedCommentError as error:
        raise MisplacedCommentError(field.at if error.at < 0 else error.at + field.at - column) from error
    kept: dict[Path, str] = {}
    for path, comment in comments.items():
        at = _at(old, path)
        goes_to = (field.name,) if "\n" not in excerpt.text[:at] else _moved(old.entries[field.name][1], node, path)
        if goes_to is not None and goes_to in kept:
            raise MisplacedCommentError(field.at)
        if goes_to is not None:
            kept[goes_to] = comment
    return kept


def _moved(old: Node, new: Node, path: Path) -> Path | None:
    """Return the path in the new node of a value of the old one; None if it is gone."""
    name, *steps = path
    goes_to: list[str | int] = [name]
    for step in steps:
        if type(old) is Mapping and type(new) is Mapping and isinstance(step, str) and step in new.entries:
            old, new = old.entries[step][1], new.entries[step][1]
            goes_to.append(step)
        elif type(old) is Sequence and type(new) is Sequence and isinstance(step, int):
            index = _counterpart(old, new, step)
            if index is None:
                return None
            old, new = old.items[step], new.items[index]
            goes_to.append(index)
        else:
            return None
    return tuple(goes_to)


def _counterpart(old: Sequence, new: Sequence, number: int) -> int | None:
    """The number of an item in the new list: where it went, or what stands in its stead."""
    from difflib import SequenceMatcher  # only lists whose items change need it

    before, after = ([repr(values(item)) for item in each.items] for each in (old, new))
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for _, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if old_start <= number < old_end:
            moved = new_start + number - old_start
            return moved if moved < new_end else None
    return None


def _at(record: Mapping, path: Path) -> int:
    """Return where the value at a path begins."""
    node: Node = record
    for step in path:
        if type(node) is Mapping and isinstance(step, str):
            node = node.entries[step][1]
        elif type(node) is Sequence and isinstance(step, int):
            node = node.items[step]
    return node.at


def _ends(file: YamlFile, at: int, limit: int) -> list[int]:
    """Yield the ends of keys, texts and brackets between two indexes, in order; comments and blanks are skipped."""
    from yaml._yaml import CParser

    column = file.location(at).column - 1
    parser = CParser(" " * column + file.text[at:limit])
    ends = []
    while parser.check_event():
        event: Any = parser.get_event()
        if event.end_mark.index > event.start_mark.index:
            ends.append(event.end_mark.index - column + at)
    return ends


def _line_end(file: YamlFile, at: int, limit: int) -> int:
    """Return the end of the line of an index; a block text ends after its last line."""
    if file.text[at - 1] == "\n":
        return at
    newline = file.text.find("\n", at, limit)
    return limit if newline < 0 else newline + 1
