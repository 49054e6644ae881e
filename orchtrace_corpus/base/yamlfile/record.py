"""Change fields inside the lines of one record; `splice` puts the lines into the file.

A record is split into its fields, each with the comments and blank lines above it, and joined again. Fields that do not
change keep their bytes.
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
    field_rank,
    line_end_comments,
)


class _Field(NamedTuple):
    """The text of a field in a record.

    Attributes:
        name: The name of the field.
        above: The comments and blank lines between the previous field and this one.
        text: The lines of the field, from its key on.
        at: The index of the key in the text of the file; -1 for a new field.
    """

    name: str
    above: str
    text: str
    at: int = -1


def content_end(file: YamlFile, at: int, limit: int) -> int:
    """Return where the last line of a node ends, comments and blank lines after it excluded.

    Args:
        file: The file.
        at: The index at which the node begins.
        limit: An index up to which no other node begins.
    """
    ends = _content_ends(file, at, limit)
    return _line_end(file, ends[-1] if ends else at, limit)


def changed_lines(
    file: YamlFile,
    record: Mapping,
    span: tuple[int, int],
    changes: MappingType[str, Node | None],
    style: Style,
    newline: str,
) -> str:
    """Return the lines of a record with changed fields.

    Args:
        file: The file with the record.
        record: The record as read.
        span: The indices at which the lines of the record begin and end.
        changes: The new values by field. A field that the record lacks is inserted; None removes a field.
        style: How records are written.
        newline: The line end of the file.

    Raises:
        DataFileError: The record is no block mapping, or no field would be left.
        MisplacedCommentError: A comment inside a changed field has no place in its new form.
    """
    start, end = span
    fields = _split_fields(file, record, end, newline)
    mark = file.text[start : record.at]  # the dash before the first field
    indent = " " * len(mark)

    def field_text(name: str, node: Node, comments: dict[Path, str], at: int) -> str:
        return f"{newline}{indent}".join(field_lines(name, node, style, comments, at)) + newline

    for name in sorted(changes, key=lambda name: field_rank(name, style)):
        node = changes[name]
        if node is None:
            fields = [field for field in fields if field.name != name]
            continue
        names = [field.name for field in fields]
        if name in names:
            index = names.index(name)
            old = fields[index]
            comments = _kept_comments(file, old, node, len(mark))
            fields[index] = old._replace(text=field_text(name, node, comments, old.at))
        else:
            new = _Field(name, above="", text=field_text(name, node, {}, at=-1))
            fields.insert(_insertion_index(name, fields, style), new)
    if not fields:
        raise DataFileError(f"{file.location(record.at)}: nothing would be left of this record", "Remove it instead.")
    # Comments above the first field stand above the record, not indented.
    first, *others = fields
    lines = "".join(line.lstrip(" ") for line in first.above.splitlines(keepends=True) if line.strip())
    lines += mark + first.text
    for field in others:
        lines += f"{field.above}{indent}{field.text}"
    return lines if file.text[end - 1] == "\n" else lines.removesuffix(newline)


def node_content(node: Node, changed: MappingType[int, str] = MappingProxyType({})) -> object:
    """Return a node as a text, list or dict without places.

    Args:
        node: The node.
        changed: Other texts for some scalars and keys, by their index in the text of the file.
    """
    if type(node) is Mapping:
        return {changed.get(key_at, key): node_content(value, changed) for key, (key_at, value) in node.entries.items()}
    if type(node) is Sequence:
        return [node_content(item, changed) for item in node.items]
    assert type(node) is Scalar
    return changed.get(node.at, node.text)


def _split_fields(file: YamlFile, record: Mapping, end: int, newline: str) -> list[_Field]:
    """Return the fields of a record with their texts, in file order. Each text ends with a line end."""
    starts = [key_at for key_at, _ in record.entries.values()]
    content_ends = _content_ends(file, record.at, end)
    fields = []
    previous_end = record.at
    for name, at, next_start in zip(record.entries, starts, [*starts[1:], end], strict=True):
        line_start = max(file.text.rfind("\n", 0, at) + 1, record.at)
        if line_start < previous_end or file.text[line_start:at].strip(" "):
            message = f"{file.location(at)}: this field does not stand on lines of its own"
            raise DataFileError(message, "Run corpus check --fix first.")
        above = file.text[previous_end:line_start]
        last_content_end = content_ends[bisect_right(content_ends, next_start) - 1]
        previous_end = _line_end(file, last_content_end, end)
        text = file.text[at:previous_end]
        if not text.endswith("\n"):
            text += newline
        fields.append(_Field(name, above, text, at))
    return fields


def _insertion_index(name: str, fields: list[_Field], style: Style) -> int:
    """Return where to insert a new field: after the last field of those that are nearest before it in the style."""
    new_rank = field_rank(name, style)
    index_after = 0
    nearest_rank = -1
    for index, field in enumerate(fields):
        rank = field_rank(field.name, style)
        if nearest_rank <= rank <= new_rank:
            nearest_rank = rank
            index_after = index + 1
    return index_after


def _kept_comments(file: YamlFile, field: _Field, node: Node, column: int) -> dict[Path, str]:
    """Return the comments at the ends of a field's lines, by the path in the new value that each belongs to.

    A comment on the first line belongs to the field. Any other belongs to the value on its line: it moves with the
    value, and is dropped if the value is removed.

    Args:
        file: The file.
        field: The field with its old text.
        node: The new value of the field.
        column: The column of the field's key.
    """
    if "#" not in field.text:
        return {}
    excerpt = YamlFile(file.path, (" " * column + field.text).encode())
    old = excerpt.root()
    assert type(old) is Mapping
    try:
        comments = line_end_comments(excerpt, old)
    except MisplacedCommentError as error:
        at = field.at if error.at < 0 else error.at + field.at - column
        raise MisplacedCommentError(at) from error
    kept: dict[Path, str] = {}
    for path, comment in comments.items():
        is_on_first_line = "\n" not in excerpt.text[: _index_at(old, path)]
        new_path = (field.name,) if is_on_first_line else _new_path(old.entries[field.name][1], node, path)
        if new_path is None:
            continue
        if new_path in kept:
            raise MisplacedCommentError(field.at)
        kept[new_path] = comment
    return kept


def _new_path(old: Node, new: Node, path: Path) -> Path | None:
    """Return the path in the new value of a field for a path in the old one; None if that value was removed."""
    name, *steps = path
    new_path: list[str | int] = [name]
    for step in steps:
        if type(old) is Mapping and type(new) is Mapping and isinstance(step, str) and step in new.entries:
            _, old = old.entries[step]
            _, new = new.entries[step]
            new_path.append(step)
        elif type(old) is Sequence and type(new) is Sequence and isinstance(step, int):
            new_index = _new_index(old, new, step)
            if new_index is None:
                return None
            old = old.items[step]
            new = new.items[new_index]
            new_path.append(new_index)
        else:
            return None
    return tuple(new_path)


def _new_index(old: Sequence, new: Sequence, index: int) -> int | None:
    """Return the index in the new list of an item of the old list, or of the item that replaces it; else None."""
    from difflib import SequenceMatcher  # only lists whose items change need it

    old_items = [repr(node_content(item)) for item in old.items]
    new_items = [repr(node_content(item)) for item in new.items]
    matcher = SequenceMatcher(None, old_items, new_items, autojunk=False)
    for _, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if old_start <= index < old_end:
            new_index = new_start + index - old_start
            return new_index if new_index < new_end else None
    return None


def _index_at(record: Mapping, path: Path) -> int:
    """Return the index at which the value at a path begins."""
    node: Node = record
    for step in path:
        if type(node) is Mapping and isinstance(step, str):
            _, node = node.entries[step]
        elif type(node) is Sequence and isinstance(step, int):
            node = node.items[step]
    return node.at


def _content_ends(file: YamlFile, at: int, limit: int) -> list[int]:
    """Return the indices between `at` and `limit` at which a key, a text or a bracket ends, in order."""
    from yaml._yaml import CParser

    column = file.location(at).column - 1
    parser = CParser(" " * column + file.text[at:limit])
    ends = []
    while parser.check_event():
        event: Any = parser.get_event()
        has_text = event.end_mark.index > event.start_mark.index
        if has_text:
            ends.append(event.end_mark.index - column + at)
    return ends


def _line_end(file: YamlFile, at: int, limit: int) -> int:
    """Return the end of the line with an index, or the index if it is already at the beginning of a line."""
    if file.text[at - 1] == "\n":  # a block text ends there
        return at
    newline = file.text.find("\n", at, limit)
    return limit if newline < 0 else newline + 1
