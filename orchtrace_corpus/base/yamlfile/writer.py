"""Write records in canonical form, with their comments.

In canonical form, records are a block list with a blank line between two, and fields are in a fixed order. Each text is
on one line, however long, and has double quotes only if YAML needs them, or if YAML 1.1 would read a number or a flag.
A list of texts is in brackets if its line is short enough, and mappings of some fields are always in braces.

Comments are kept in five places: at the head and at the end of the file, before a record, before a field, and at the
end of a line. A comment anywhere else has no place in canonical form and is refused.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from collections.abc import Mapping as MappingType
from functools import lru_cache

from orchtrace_corpus.base.annotations import TypeAlias
from orchtrace_corpus.base.findings import is_malformed
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence, YamlFile

FLOW_WIDTH = 100
"""A list of texts is written on one line up to this many characters."""

Path: TypeAlias = tuple[str | int, ...]

_SPECIAL_FIRST = "-?:,[]{}#&*!|>'\"%@`= "
_SPECIAL_IN_BRACKETS = frozenset(",[]{}?")
_COMMENT_LINES = r"(?:[^\S\n]*#[^\n]*\n)*"
_YAML_1_1_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})


class Style(NamedTuple):
    """The canonical form of a kind of record.

    Attributes:
        order: The names of fields in order; fields that are not named follow in the order of the file.
        bare: Fields whose values stay unquoted although YAML would read a number or a flag, such as `year`.
        flow: Fields whose mapping is written on one line.
        block: Fields whose mapping is written with a line for each key.
        key: The field that records are sorted by, in ASCII order; empty if they are not sorted.
    """

    order: tuple[str, ...]
    bare: frozenset[str] = frozenset()
    flow: frozenset[str] = frozenset()
    key: str = ""
    block: frozenset[str] = frozenset()


class MisplacedCommentError(Exception):
    """A comment has no place in canonical form; `at` is its index in the text, or -1 if that is unknown."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at


class _Comments(NamedTuple):
    """The comments of a file. Records are named by their index.

    Attributes:
        header: The comments at the head of the file.
        before_record: The comments above each record.
        before_field: The comments above a field of a record.
        line_end: For each record, the comments at the ends of lines, by the path of the value that they belong to.
        footer: The comments at the end of the file.
    """

    header: list[str]
    before_record: dict[int, list[str]]
    before_field: dict[tuple[int, str], list[str]]
    line_end: dict[int, dict[Path, str]]
    footer: list[str]


def canonical(file: YamlFile, style: Style) -> str:
    """Return the text of a file in canonical form.

    Args:
        file: A list of records, without syntax errors; its kept nodes are used if it has any.
        style: How its records are written.

    Raises:
        MisplacedCommentError: A comment has no place in canonical form.
        ValueError: The document is no list of mappings; validation reports where.
    """
    nodes = file.kept or list(file.records())
    records = [node for node in nodes if type(node) is Mapping]
    if len(records) < len(nodes) or is_malformed(file.findings):
        raise ValueError("not a list of mappings")
    if not records:
        return file.text  # an empty list is `[]`, with any comments around it
    comments = _find_comments(file, records)
    sort_keys = [_sort_key(record, style) for record in records]
    source = file.text if file.is_simple else ""
    blocks = []
    for index in sorted(range(len(records)), key=sort_keys.__getitem__):
        lines = _record_lines(index, records[index], style, comments, source)
        blocks.append("".join(f"{line}\n" for line in lines))
    header = "".join(f"{line}\n" for line in comments.header)
    footer = "".join(f"{line}\n" for line in comments.footer)
    return "\n".join(part for part in (header, *blocks, footer) if part)


class FormCheck:
    """Compares each record of a file with its canonical form while the file is read, so that no record is kept.

    It recognises canonical files with comments at the head, above records and at the end. About a file with other
    comments, only `canonical` can decide.

    Attributes:
        holds: True while all records so far are canonical.
    """

    def __init__(self, file: YamlFile, style: Style) -> None:
        self.holds = True
        self._file = file
        self._style = style
        self._end = 0  # of the last record, with its line end
        self._last_key = ""

    def add(self, record: Node) -> None:
        """Compare the next record."""
        if not self.holds or type(record) is not Mapping or not record.entries:
            self.holds = False
            return
        text = self._file.text
        start = record.at - len("- ")
        above = text[self._end : start]
        is_first = self._end == 0
        has_canonical_gap = _is_head(above) if is_first else _is_gap(above)
        key = _sort_key(record, self._style)
        block = _uncommented_record(record, self._style, text if self._file.is_simple else "") + "\n"
        self.holds = has_canonical_gap and key >= self._last_key and text.startswith(block, start)
        self._end = start + len(block)
        self._last_key = key

    @property
    def is_canonical(self) -> bool:
        """Return True if the whole file is canonical; to be asked after the last record."""
        if not self.holds or self._end == 0:
            return False
        rest = self._file.text[self._end :]
        return (not rest or _is_gap(rest)) and not is_malformed(self._file.findings)


def record_text(record: Mapping, style: Style) -> str:
    """Return a record in canonical form, without comments."""
    no_comments = _Comments([], {}, {}, {}, [])
    return "".join(f"{line}\n" for line in _record_lines(0, record, style, no_comments))


def scalar_text(text: str, *, in_brackets: bool = False, bare: bool = False) -> str:
    """Return a text as YAML that every reader reads as this text: plain if possible, else in double quotes.

    Args:
        text: The text.
        in_brackets: True if the text is inside a list or mapping in brackets, where fewer texts can be plain.
        bare: True to write numbers and flags plain, too.
    """
    if bare and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?|true|false", text):
        return text
    return _yaml(text, in_brackets)


def field_lines(name: str, node: Node, style: Style, line_end: MappingType[Path, str], at: int = -1) -> Iterator[str]:
    """Yield the lines of a field, without the indentation of the record.

    Args:
        name: The name of the field.
        node: The value of the field.
        style: How records are written.
        line_end: The comments at the ends of lines, by the path of the value that they belong to, from the record on.
        at: The index of the field, for the error.

    Raises:
        MisplacedCommentError: Two comments would be on one line.
    """
    for text, values in _lines_with_values(name, node, style):
        if not line_end:
            yield text
            continue
        paths: set[Path] = set()  # of the values on the line, and of the values inside them
        for value, path in values:
            paths.add(path)
            paths.update(inner_path for _, inner_path, _ in _places(value, path))
        comments = [line_end[path] for path in paths if path in line_end]
        if len(comments) > 1:
            raise MisplacedCommentError(at)
        yield f"{text}  {comments[0]}" if comments else text


def line_end_comments(file: YamlFile, record: Mapping) -> dict[Path, str]:
    """Return the comments at the ends of lines, by the path of the value that they belong to.

    The file has only one record, or a part of one.

    Raises:
        MisplacedCommentError: A comment is not at the end of a line with a value.
    """
    comments = _find_comments(file, [record])
    if comments.header or comments.before_record or comments.before_field or comments.footer:
        raise MisplacedCommentError(record.at)
    return comments.line_end.get(0, {})


def comments(text: str) -> list[tuple[int, str]]:
    """Return each comment of a document without syntax errors, with its index."""
    first_value = 0
    for line in text.splitlines(keepends=True):
        if line.strip() and not line.lstrip().startswith("#"):
            break
        first_value += len(line)
    return list(_comment_texts(text, first_value))


def field_rank(name: str, style: Style) -> int:
    """Return the place of a field in canonical order; all fields that the style does not name have the last place."""
    return style.order.index(name) if name in style.order else len(style.order)


def _sort_key(record: Mapping, style: Style) -> str:
    """Return the text that a record is sorted by; empty if the records are not sorted, or it has no such field."""
    _, key = record.entries.get(style.key, (0, None))
    return key.text if type(key) is Scalar else ""


def _record_lines(index: int, record: Mapping, style: Style, comments: _Comments, source: str = "") -> Iterator[str]:
    """Yield the lines of a record with its comments; `index` is that of the record among all records of the file.

    `source` is explained in `_text_after_key`.
    """
    names = _ordered(tuple(record.entries), style.order)
    line_end = comments.line_end.get(index, {})
    yield from comments.before_record.get(index, ())
    if not names:
        yield "- {}"
        return
    if not line_end and not comments.before_field:  # as in nearly all files
        yield _uncommented_record(record, style, source)
        return
    is_first = True
    for name in names:
        for comment in comments.before_field.get((index, name), []):
            # A comment above the first field is above the record, not indented.
            yield comment if is_first else f"  {comment}"
        key_at, value = record.entries[name]
        for line in field_lines(name, value, style, line_end, key_at):
            yield f"- {line}" if is_first else f"  {line}"
            is_first = False


def _uncommented_record(record: Mapping, style: Style, source: str) -> str:
    """Return the lines of a record that has fields and no comments, without a line end after the last line.

    `source` is explained in `_text_after_key`.
    """
    lines: list[str] = []
    for name in _ordered(tuple(record.entries), style.order):
        _, node = record.entries[name]
        if type(node) is Scalar and name not in style.bare:  # as nearly all
            lines.append(f"{_yaml(name, False)}: {_text_after_key(node, source)}")
        else:
            lines += _uncommented_field(name, node, style, source)
    return "- " + "\n  ".join(lines)


def _is_head(text: str) -> bool:
    """Return True if a text can be above the first record of a canonical file.

    It has the comments of the file, a blank line, and the comments of the record. Without comments of the file, there
    is no blank line.
    """
    of_file, blank_line, of_record = text.rpartition("\n\n")
    if not _are_comments(of_record):
        return False
    return not blank_line or (bool(of_file) and _are_comments(f"{of_file}\n"))


def _is_gap(text: str) -> bool:
    """Return True if a text can be between two records of a canonical file: a blank line, and then comments or none."""
    return text[:1] == "\n" and _are_comments(text[1:])


def _are_comments(text: str) -> bool:
    """Return True if a text is empty, or all its lines are comments that are not indented."""
    *lines, after_last_line_end = text.split("\n")
    return not after_last_line_end and all(line[:1] == "#" and line == line.rstrip() for line in lines)


def _text_after_key(node: Scalar, source: str) -> str:
    """Return a text as it is written after a key.

    `source` is the text of a file that `Lines` reads; empty for any other file. It saves time: if it has the text
    without quotes, and the text begins with a letter, the text can be plain. The words that YAML 1.1 reads as flags
    begin with a letter, too, but they are short.
    """
    text = node.text
    if len(text) > 5 and text[0].isalpha() and source[node.at : node.at + 1] == text[0]:
        return text
    return _yaml(text, False)


def _uncommented_field(name: str, node: Node, style: Style, source: str) -> list[str]:
    """Return the lines of a field without comments; they are those of `_lines_with_values`, but made faster."""
    if name in style.block:
        return [text for text, _ in _lines_with_values(name, node, style)]
    key = _yaml(name, False)
    if type(node) is not Sequence:
        return [f"{key}: {_value_after_key(name, node, style)}"]
    short_list = _short_list(key, node)
    if short_list:
        return [short_list]
    lines = [f"{key}:"]
    for item in node.items:
        if type(item) is Mapping and item.entries:
            indent = "  - "
            for field, (_, value) in item.entries.items():
                if type(value) is Scalar and field not in style.bare:
                    text = _text_after_key(value, source)
                else:
                    text = _value_after_key(field, value, style)
                lines.append(f"{indent}{_yaml(field, False)}: {text}")
                indent = "    "
        elif type(item) is Scalar:
            lines.append(f"  - {_text_after_key(item, source)}")
        else:
            lines.append(f"  - {_one_line(item, in_brackets=False)}")
    return lines


def _short_list(key: str, node: Sequence) -> str:
    """Return the line of a list of texts; empty if it is too long, or an item is no text."""
    texts = [item.text for item in node.items if type(item) is Scalar]
    if len(texts) < len(node.items) or len(key) + sum(map(len, texts)) > FLOW_WIDTH:
        return ""
    line = f"{key}: [{', '.join([_yaml(text, True) for text in texts])}]"
    if texts and len("  ") + len(line) > FLOW_WIDTH:  # the record is indented by two
        return ""
    return line


@lru_cache(maxsize=1024)
def _ordered(names: tuple[str, ...], order: tuple[str, ...]) -> tuple[str, ...]:
    """Return field names in order. It is cached, because most records of a file have one of a few sets of fields."""
    remaining = iter(order)
    if all(name in remaining for name in names):  # each name is found after the one before it: they are in order
        return names
    return tuple(sorted(names, key=lambda name: order.index(name) if name in order else len(order)))


def _lines_with_values(name: str, node: Node, style: Style) -> Iterator[tuple[str, list[tuple[Node, Path]]]]:
    """Yield each line of a field, and the values on the line with their paths.

    On the line of a key without a value, and of the first field of a list item, there is also an empty text in place of
    the value that begins there.
    """
    key = _yaml(name, False)
    if type(node) is Mapping and name in style.block and node.entries:
        yield f"{key}:", [(Scalar("", node.at), (name,))]
        for inner_name, (_, value) in node.entries.items():
            text = f"  {_yaml(inner_name, False)}: {_one_line(value, in_brackets=False)}"
            yield text, [(value, (name, inner_name))]
        return
    if type(node) is not Sequence:
        yield f"{key}: {_value_after_key(name, node, style)}", [(node, (name,))]
        return
    short_list = _short_list(key, node)
    if short_list:
        yield short_list, [(node, (name,))]
        return
    yield f"{key}:", [(Scalar("", node.at), (name,))]
    for index, item in enumerate(node.items):
        path: Path = (name, index)
        if type(item) is not Mapping or not item.entries:
            yield f"  - {_one_line(item, in_brackets=False)}", [(item, path)]
            continue
        indent = "  - "
        values: list[tuple[Node, Path]] = [(Scalar("", item.at), path)]
        for field, (_, value) in item.entries.items():
            text = f"{indent}{_yaml(field, False)}: {_value_after_key(field, value, style)}".rstrip()
            yield text, [*values, (value, (*path, field))]
            indent = "    "
            values = []


def _value_after_key(field: str, node: Node, style: Style) -> str:
    """Return a value as it is written on the line of its key."""
    if type(node) is not Scalar:
        return _one_line(node, in_brackets=False)
    return scalar_text(node.text, bare=field in style.bare)


def _one_line(node: Node, *, in_brackets: bool) -> str:
    """Return a node on one line, lists and mappings in brackets; `in_brackets` if it is itself inside of some."""
    if type(node) is Scalar:
        return _yaml(node.text, in_brackets)
    if type(node) is Sequence:
        return f"[{', '.join([_one_line(item, in_brackets=True) for item in node.items])}]"
    assert type(node) is Mapping
    parts = [f"{_yaml(key, True)}: {_one_line(value, in_brackets=True)}" for key, (_, value) in node.entries.items()]
    return f"{{{', '.join(parts)}}}"


def _places(node: Node, path: Path) -> Iterator[tuple[int, Path, bool]]:
    """Yield the index and the path of each key and value of a node, in file order, and True if it is a key."""
    if type(node) is Mapping:
        for key, (key_at, value) in node.entries.items():
            yield key_at, (*path, key), True
            yield from _places(value, (*path, key))
    elif type(node) is Sequence:
        for index, item in enumerate(node.items):
            yield item.at, (*path, index), False
            yield from _places(item, (*path, index))
    else:
        yield node.at, path, False


def _find_comments(file: YamlFile, records: list[Mapping]) -> _Comments:
    """Return every comment with the value that it belongs to.

    Raises:
        MisplacedCommentError: A comment has no place in canonical form.
    """
    comments = _Comments([], {}, {}, {}, [])
    starts = [record.at for record in records]
    for at, text in _comment_texts(file.text, starts[0] if starts else len(file.text)):
        record_index = bisect_right(starts, at) - 1  # that of the record before the comment; -1 for none
        line_start = file.text.rfind("\n", 0, at) + 1
        has_own_line = not file.text[line_start:at].strip()
        if has_own_line:
            _assign_own_line(comments, file, at, text, record_index, records)
            continue
        if record_index < 0:
            raise MisplacedCommentError(at)
        places_before = [(place, path) for place, path, _ in _places(records[record_index], ()) if place < at]
        if not places_before:
            raise MisplacedCommentError(at)
        place, path = places_before[-1]
        line_end = comments.line_end.setdefault(record_index, {})
        if place < line_start or path in line_end:  # after the end of a list or text that begins on another line
            raise MisplacedCommentError(at)
        line_end[path] = text
    return comments


def _assign_own_line(
    comments: _Comments, file: YamlFile, at: int, text: str, record_index: int, records: list[Mapping]
) -> None:
    """Add a comment that has a line of its own.

    Args:
        comments: The comments, to which it is added.
        file: The file.
        at: The index of the comment.
        text: The comment.
        record_index: The index of the record before the comment; -1 for none.
        records: All records of the file.
    """
    column = _column(file.text, at)
    if record_index >= 0:
        record = records[record_index]
        for place, path, is_key in _places(record, ()):
            if place > at:  # the comment is inside the record: above a field, or misplaced
                # A comment that is indented further than the field belongs to the list above it.
                if not is_key or len(path) > 1 or column > _column(file.text, place):
                    raise MisplacedCommentError(at)
                comments.before_field.setdefault((record_index, str(path[0])), []).append(text)
                return
        dash_at = file.text.rfind("-", 0, record.at)
        if column > _column(file.text, dash_at):  # at the end of the record, indented like its fields
            raise MisplacedCommentError(at)
    if record_index == len(records) - 1:
        comments.footer.append(text)
        return
    comments_after = re.compile(_COMMENT_LINES).match(file.text, file.text.find("\n", at) + 1)
    end = comments_after.end() if comments_after else at
    is_before_blank_line = not file.text[end : file.text.find("\n", end)].strip()
    # Comments above the first record, up to a blank line, are the header. Those after it belong to the record.
    if record_index < 0 and is_before_blank_line:
        comments.header.append(text)
    else:
        comments.before_record.setdefault(record_index + 1, []).append(text)


def _column(text: str, at: int) -> int:
    return at - text.rfind("\n", 0, at) - 1


def _comment_texts(text: str, first_value: int) -> Iterator[tuple[int, str]]:
    """Yield each comment with its index: a `#` outside of all scalars.

    `first_value` is the index of the first record or value. Before it, there are no scalars. Most files have no comment
    after it, and then the text does not have to be parsed.
    """
    spans = []  # the start and end of each scalar
    at = text.find("#", first_value + 1)
    while at > 0 and text[at - 1] not in "\n ":  # a comment begins its line, or follows a blank
        at = text.find("#", at + 1)
    if at > 0:
        for start, end, style in scalars(text):
            if style in ("|", ">"):  # a block text begins on the line after this mark
                start = text.index("\n", start)
            spans.append((start, end))
    if not spans:
        text = text[:first_value]
    at = text.find("#")
    span_index = 0
    while at >= 0:
        while span_index < len(spans) and spans[span_index][1] <= at:
            span_index += 1
        if span_index < len(spans):
            start, end = spans[span_index]
            if start <= at:
                at = text.find("#", end)
                continue
        line_end = text.find("\n", at)
        if line_end < 0:
            line_end = len(text)
        yield at, text[at:line_end].rstrip()
        at = text.find("#", line_end)


def scalars(text: str) -> Iterator[tuple[int, int, str | None]]:
    """Yield the start, the end and the style of each scalar of a document without syntax errors.

    The style is the character that marks it: a quote, `|` or `>`; None for a plain text.
    """
    from yaml import ScalarEvent
    from yaml._yaml import CParser

    parser = CParser(text)
    while parser.check_event():
        event = parser.get_event()
        if type(event) is ScalarEvent and event.start_mark and event.end_mark:
            yield event.start_mark.index, event.end_mark.index, event.style


@lru_cache(maxsize=65536)
def _yaml(text: str, in_brackets: bool) -> str:
    """Return a key or text as YAML, plain or in quotes. It is cached, because many come again."""
    return text if _can_be_plain(text, in_brackets) else _quote(text)


def _can_be_plain(text: str, in_brackets: bool) -> bool:
    if not text or text[0] in _SPECIAL_FIRST or ": " in text or " #" in text or text[-1] in " :" or text == "...":
        return False
    if not text.isprintable() or (in_brackets and not _SPECIAL_IN_BRACKETS.isdisjoint(text)):
        return False
    # The rest finds texts that YAML 1.1 reads as another type. Of those that begin with a letter, only some words are.
    if text[0].isalpha():
        return len(text) > 5 or text.lower() not in _YAML_1_1_WORDS
    # The patterns decide about most texts, so that PyYAML is rarely needed: characters that no number and no time has,
    # then usual numbers and dates.
    if re.match(r"[^0-9.+~<=]|[0-9].*?([^-+0-9A-Fa-fxtTZ_.: ]|--)", text):
        return True
    if re.fullmatch(r"[0-7]+|[1-9][0-9]*|[0-9]+\.[0-9]*|[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    from yaml import ScalarNode
    from yaml.resolver import Resolver

    return bool(Resolver().resolve(ScalarNode, text, (True, False)) == "tag:yaml.org,2002:str")  # type: ignore[no-untyped-call]


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if not escaped.isprintable():
        escaped = "".join(c if c.isprintable() else _escape(c) for c in escaped)
    return f'"{escaped}"'


def _escape(character: str) -> str:
    code_point = ord(character)
    if code_point < 0x100:
        return f"\\x{code_point:02x}"
    return f"\\u{code_point:04x}" if code_point < 0x10000 else f"\\U{code_point:08x}"
