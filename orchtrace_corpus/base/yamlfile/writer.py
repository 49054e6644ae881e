"""Writes records in canonical form, keeping comments.

Canonical form: records as a block list with a blank line between, `- key:` first, fields in a fixed
order, one line for each scalar however long, double quotes only where YAML or YAML 1.1's implicit
types need them, a list of texts in flow style when its line fits, levels always in flow style.

Comments are kept in four places: at the head of the file, before a record, before a field, and at a
line's end. A comment anywhere else has no line to go to and is refused.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from collections.abc import Mapping as MappingType
from functools import lru_cache
from itertools import takewhile

from orchtrace_corpus.base.annotations import TypeAlias
from orchtrace_corpus.base.findings import is_malformed
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence, YamlFile

FLOW_WIDTH = 100
"""A list of texts is written on one line up to this many characters."""

Path: TypeAlias = tuple[str | int, ...]

_SPECIAL_FIRST = "-?:,[]{}#&*!|>'\"%@`= "
_SPECIAL_IN_FLOW = frozenset(",[]{}?")
_COMMENT_LINES = r"(?:[^\S\n]*#[^\n]*\n)*"
_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})


class Style(NamedTuple):
    """The written form of a kind of record.

    Attributes:
        order: The fields in their order; others follow as they come.
        bare: Fields whose values stay unquoted although YAML would read a number or a flag, such as `year`.
        flow: Fields whose mapping is written on one line.
        block: Fields whose mapping is written on a line for each key.
        key: The field that records are sorted by, in ASCII order; without one they stay as they stand.
    """

    order: tuple[str, ...]
    bare: frozenset[str] = frozenset()
    flow: frozenset[str] = frozenset()
    key: str = ""
    block: frozenset[str] = frozenset()


class MisplacedCommentError(Exception):
    """A comment stands where the canonical form has no line for it; `at` is its index in the text."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at


class _Comments(NamedTuple):
    """The comments of a file by what they belong to. `index` counts records from 0."""

    header: list[str]
    before_record: dict[int, list[str]]
    before_field: dict[tuple[int, str], list[str]]
    line_end: dict[int, dict[Path, str]]
    footer: list[str]


def canonical(file: YamlFile, style: Style) -> str:
    """The file's text in canonical form.

    Args:
        file: A list of records, without findings of syntax; its kept nodes are used if it has any.
        style: How its records are written.

    Raises:
        MisplacedCommentError: A comment stands in none of the four places.
        ValueError: The document is no list of mappings; a validation says where.
    """
    nodes = file.kept or list(file.records())
    records = [node for node in nodes if type(node) is Mapping]
    if len(records) < len(nodes) or is_malformed(file.findings):
        raise ValueError("not a list of mappings")
    if not records:
        return file.text  # an empty list is `[]`, however it is surrounded
    comments = _comments(file, records)
    order = sorted(range(len(records)), key=[_sort_key(record, style) for record in records].__getitem__)
    source = file.text if file.is_printable else ""
    blocks = ["\n".join((*_record_lines(index, records[index], style, comments, source), "")) for index in order]
    header = "".join(f"{line}\n" for line in comments.header)
    footer = "".join(f"{line}\n" for line in comments.footer)
    return "\n".join(part for part in (header, *blocks, footer) if part)


class FormCheck:
    """Compares the records of a file with their canonical form as they are read, so that none is kept for it.

    Recognises a canonical file with comments at its head, above records and at its end. For any other file, `canonical`
    decides.

    Attributes:
        holds: True while all that was read is canonical.
    """

    def __init__(self, file: YamlFile, style: Style) -> None:
        self.holds = True
        self._file = file
        self._style = style
        self._end = 0
        self._last_key = ""

    def add(self, record: Node) -> None:
        """Compare the next record."""
        if not self.holds or type(record) is not Mapping or not record.entries:
            self.holds = False
            return
        text, start, key = self._file.text, record.at - 2, _sort_key(record, self._style)
        above, is_first = text[self._end : start], self._end == 0
        block = _plain_record(record, self._style, text if self._file.is_printable else "") + "\n"
        is_placed = _is_head(above) if is_first else _is_gap(above)
        self.holds = is_placed and key >= self._last_key and text.startswith(block, start)
        self._end, self._last_key = start + len(block), key

    @property
    def is_canonical(self) -> bool:
        """Return True if the whole file is canonical, once its records are read."""
        rest = self._file.text[self._end :]
        return self.holds and self._end > 0 and (not rest or _is_gap(rest)) and not is_malformed(self._file.findings)


def record_text(values: Mapping, style: Style) -> str:
    """One record in canonical form, without comments."""
    nothing = _Comments([], {}, {}, {}, [])
    return "\n".join((*_record_lines(0, values, style, nothing), ""))


def scalar_text(text: str, *, in_flow: bool = False, bare: bool = False) -> str:
    """A text as YAML that every reader gives back as that text: plain where possible, else in double quotes."""
    if bare and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?|true|false", text):
        return text
    return _shown(text, in_flow)


def field_lines(name: str, node: Node, style: Style, line_end: MappingType[Path, str], at: int = -1) -> Iterator[str]:
    """The lines of a field, without the record's indentation.

    Args:
        name: The field.
        node: Its value.
        style: How records are written.
        line_end: Comments for the ends of lines, by the path of a value from the record on.
        at: Where the field is, to say so.

    Raises:
        MisplacedCommentError: Two comments would come to stand on one line.
    """
    for text, values in _field_lines(name, node, style):
        if not line_end:
            yield text
            continue
        paths = {path for value, start in values for path in (start, *(below for _, below, _ in _places(value, start)))}
        ends = [line_end[path] for path in paths if path in line_end]
        if len(ends) > 1:
            raise MisplacedCommentError(at)
        yield f"{text}  {ends[0]}" if ends else text


def line_end_comments(file: YamlFile, record: Mapping) -> dict[Path, str]:
    """The comments of a file that is one record, or a part of one, by the value at whose line they end.

    Raises:
        MisplacedCommentError: A comment stands elsewhere.
    """
    found = _comments(file, [record])
    if found.header or found.before_record or found.before_field or found.footer:
        raise MisplacedCommentError(record.at)
    return found.line_end.get(0, {})


def comments(text: str) -> list[tuple[int, str]]:
    """Every comment of a document without errors of syntax, each with its index."""
    lines = text.splitlines(keepends=True)
    above = takewhile(lambda line: not line.strip() or line.lstrip().startswith("#"), lines)
    return list(_comment_texts(text, sum(map(len, above))))


def rank(name: str, style: Style) -> int:
    """The place of a field in canonical order; fields that the style does not name share the last."""
    return style.order.index(name) if name in style.order else len(style.order)


def _sort_key(record: Node, style: Style) -> str:
    """Return the sort key of a record; empty if its file is not sorted, or it has no key."""
    entry = record.entries.get(style.key) if type(record) is Mapping else None
    return entry[1].text if entry is not None and type(entry[1]) is Scalar else ""


def _record_lines(index: int, record: Mapping, style: Style, comments: _Comments, source: str = "") -> Iterator[str]:
    names = _ordered(tuple(record.entries), style.order)
    line_end = comments.line_end.get(index, {})
    yield from comments.before_record.get(index, ())
    if names and not line_end and not comments.before_field:  # as in nearly all files
        yield _plain_record(record, style, source)
        return
    first = True
    for name in names:
        before = comments.before_field.get((index, name), [])
        # A comment above the first field stands above the record.
        yield from (before if first else [f"  {comment}" for comment in before])
        key_at, value = record.entries[name]
        for line in field_lines(name, value, style, line_end, key_at):
            yield f"  {line}" if not first else f"- {line}"
            first = False
    if first:
        yield "- {}"


def _plain_record(record: Mapping, style: Style, source: str) -> str:
    """Return a record with fields and without comments, with no line end behind it; `source` is as in `_line_text`."""
    lines: list[str] = []
    for name in _ordered(tuple(record.entries), style.order):
        node = record.entries[name][1]
        if type(node) is Scalar and name not in style.bare:  # as nearly all
            lines.append(f"{_shown(name, False)}: {_line_text(node, source)}")
        else:
            lines += _plain_lines(name, node, style, source)
    return "- " + "\n  ".join(lines)


def _is_head(text: str) -> bool:
    """Return True if a text is a canonical head of a file, with the comments above the first record."""
    head, blank_line, above = text.rpartition("\n\n")
    return _are_comments(above) and (not blank_line or (bool(head) and _are_comments(f"{head}\n")))


def _is_gap(text: str) -> bool:
    """Return True if a text is what stands canonically between two records: a blank line, and comments."""
    return text[:1] == "\n" and _are_comments(text[1:])


def _are_comments(text: str) -> bool:
    """Return True if a text is whole lines, each a comment that begins its line; or nothing."""
    *lines, rest = text.split("\n")
    return not rest and all(line[:1] == "#" and line == line.rstrip() for line in lines)


def _line_text(node: Scalar, source: str) -> str:
    """Return a text as it is written behind a key; one that a canonical source has plain is taken from there.

    `source` is the text that was read line by line. Of its plain texts, those that begin with a letter are no numbers,
    and the words that YAML 1.1 takes for flags are short.
    """
    text = node.text
    if len(text) > 5 and text[0].isalpha() and source[node.at : node.at + 1] == text[0]:
        return text
    return _shown(text, False)


def _plain_lines(name: str, node: Node, style: Style, source: str) -> list[str]:
    """The lines of a field that has no comments, as `_field_lines` gives them with their values."""
    if name in style.block:
        return [text for text, _ in _field_lines(name, node, style)]
    if type(node) is not Sequence:
        return [f"{_shown(name, False)}: {_top(name, node, style)}"]
    if one_line := _one_line(_shown(name, False), node):
        return [one_line]
    lines = [f"{_shown(name, False)}:"]
    for item in node.items:
        if type(item) is Mapping and item.entries:
            mark = "  - "
            for field, (_, value) in item.entries.items():
                if type(value) is Scalar and field not in style.bare:
                    text = _line_text(value, source)
                else:
                    text = _top(field, value, style)
                lines.append(f"{mark}{_shown(field, False)}: {text}")
                mark = "    "
        elif type(item) is Scalar:
            lines.append(f"  - {_line_text(item, source)}")
        else:
            lines.append(f"  - {_flow(item, top=True)}")
    return lines


def _one_line(key: str, node: Sequence) -> str:
    """A list of texts that fits on one line; empty for any other."""
    texts = [item.text for item in node.items if type(item) is Scalar]
    if len(texts) < len(node.items) or len(key) + sum(map(len, texts)) > FLOW_WIDTH:
        return ""
    line = f"{key}: [{', '.join([_shown(text, True) for text in texts])}]"
    return line if not texts or len(line) + 2 <= FLOW_WIDTH else ""


@lru_cache(maxsize=1024)
def _ordered(names: tuple[str, ...], order: tuple[str, ...]) -> tuple[str, ...]:
    """Field names in their order; most records of a file have the same few combinations."""
    remaining = iter(order)
    if all(name in remaining for name in names):  # they are in order, as in nearly all files
        return names
    return tuple(sorted(names, key=lambda name: order.index(name) if name in order else len(order)))


def _field_lines(name: str, node: Node, style: Style) -> Iterator[tuple[str, list[tuple[Node, Path]]]]:
    """The lines of a field, and the values that stand on each with their paths."""
    if type(node) is Mapping and name in style.block and node.entries:
        yield f"{_shown(name, False)}:", [(Scalar("", node.at), (name,))]
        for key, (_, value) in node.entries.items():
            yield f"  {_shown(key, False)}: {_flow(value, top=True)}", [(value, (name, key))]
    elif type(node) is not Sequence:
        yield f"{_shown(name, False)}: {_top(name, node, style)}", [(node, (name,))]
    elif one_line := _one_line(_shown(name, False), node):
        yield one_line, [(node, (name,))]
    else:
        yield f"{_shown(name, False)}:", [(Scalar("", node.at), (name,))]
        for index, item in enumerate(node.items):
            path: Path = (name, index)
            if type(item) is Mapping and item.entries:
                for position, (field, (_, value)) in enumerate(item.entries.items()):
                    mark = "    " if position else "  - "
                    head: list[tuple[Node, Path]] = [] if position else [(Scalar("", item.at), path)]
                    text = f"{mark}{_shown(field, False)}: {_top(field, value, style)}".rstrip()
                    yield text, [*head, (value, (*path, field))]
            else:
                yield f"  - {_flow(item, top=True)}", [(item, path)]


def _top(field: str, node: Node, style: Style) -> str:
    """Return the text after a field's name on its line."""
    if type(node) is not Scalar:
        return _flow(node, top=True)
    return scalar_text(node.text, bare=True) if field in style.bare else _shown(node.text, False)


def _flow(node: Node, *, top: bool = False) -> str:
    """A node on one line; a text at the top of a line may hold what a text inside brackets may not."""
    if type(node) is Scalar:
        return _shown(node.text, not top)
    if type(node) is Sequence:
        return f"[{', '.join([_flow(item) for item in node.items])}]"
    assert type(node) is Mapping
    parts = [f"{_shown(key, True)}: {_flow(value)}" for key, (_, value) in node.entries.items()]
    return f"{{{', '.join(parts)}}}"


def _places(node: Node, path: Path) -> Iterator[tuple[int, Path, bool]]:
    """Yield where each key and value begins, in file order, and whether it is a key."""
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


def _comments(file: YamlFile, records: list[Mapping]) -> _Comments:
    """Find every comment and what it belongs to."""
    found = _Comments([], {}, {}, {}, [])
    starts = [record.at for record in records]
    for at, text in _comment_texts(file.text, starts[0] if starts else len(file.text)):
        line_start = file.text.rfind("\n", 0, at) + 1
        own_line = not file.text[line_start:at].strip()
        index = bisect_right(starts, at) - 1
        if own_line:
            _assign_line(found, file, at, text, index, records)
        elif index < 0:
            raise MisplacedCommentError(at)
        else:
            before = [(place, path) for place, path, _ in _places(records[index], ()) if place < at]
            if not before or before[-1][0] < line_start:
                raise MisplacedCommentError(at)  # behind a closing bracket or the end of a longer text
            line_end = found.line_end.setdefault(index, {})
            if before[-1][1] in line_end:
                raise MisplacedCommentError(at)
            line_end[before[-1][1]] = text
    return found


def _assign_line(found: _Comments, file: YamlFile, at: int, text: str, index: int, records: list[Mapping]) -> None:
    """Assign a comment that has a line of its own."""
    places = _places(records[index], ()) if index >= 0 else iter(())
    following = next((place for place in places if place[0] > at), None)
    if following is not None:
        place, path, is_key = following
        if not is_key or len(path) > 1 or _column(file.text, at) > _column(file.text, place):
            raise MisplacedCommentError(at)  # one that is set in further ends the list above it
        found.before_field.setdefault((index, str(path[0])), []).append(text)
    elif index >= 0 and _column(file.text, at) > _column(file.text, file.text.rfind("-", 0, records[index].at)):
        raise MisplacedCommentError(at)  # at the end of a record, and set in as its fields are
    elif index + 1 < len(records):
        behind = re.compile(_COMMENT_LINES).match(file.text, file.text.find("\n", at) + 1)
        end = behind.end() if behind else at
        # The header ends with a blank line; what follows it belongs to the first record.
        if index < 0 and not file.text[end : file.text.find("\n", end)].strip():
            found.header.append(text)
        else:
            found.before_record.setdefault(index + 1, []).append(text)
    else:
        found.footer.append(text)


def _column(text: str, at: int) -> int:
    return at - text.rfind("\n", 0, at) - 1


def _comment_texts(text: str, first: int) -> Iterator[tuple[int, str]]:
    """Every comment with its index: a `#` outside all scalars, at a line's beginning or after a blank.

    `first` is where the first record begins: before it there are no scalars, and most files have no
    comment behind it, so that nothing needs to be parsed again.
    """
    spans = []
    at = text.find("#", first + 1)
    while at > 0 and text[at - 1] not in "\n ":
        at = text.find("#", at + 1)
    if at > 0:
        # What stands on the line of a block scalar's mark is not yet the text.
        spans = [(text.index("\n", at) if style in ("|", ">") else at, end) for at, end, style in scalars(text)]
    if not spans:
        text = text[:first]
    at, position = text.find("#"), 0
    while at >= 0:
        while position < len(spans) and spans[position][1] <= at:
            position += 1
        if position < len(spans) and spans[position][0] <= at:
            at = text.find("#", spans[position][1])
            continue
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield at, text[at:end].rstrip()
        at = text.find("#", end)


def scalars(text: str) -> Iterator[tuple[int, int, str | None]]:
    """Every scalar of a document without errors of syntax: where it begins and ends, and its style."""
    from yaml import ScalarEvent
    from yaml._yaml import CParser

    parser = CParser(text)
    while parser.check_event():
        event = parser.get_event()
        if type(event) is ScalarEvent and event.start_mark and event.end_mark:
            yield event.start_mark.index, event.end_mark.index, event.style


@lru_cache(maxsize=65536)
def _shown(text: str, in_flow: bool) -> str:
    """A name or a text as it is written; many come again."""
    return text if _is_plain(text, in_flow) else _quoted(text)


def _is_plain(text: str, in_flow: bool) -> bool:
    if not text or text[0] in _SPECIAL_FIRST or ": " in text or " #" in text or text[-1] in " :" or text == "...":
        return False
    if not text.isprintable() or (in_flow and not _SPECIAL_IN_FLOW.isdisjoint(text)):
        return False
    if text[0].isalpha():  # of YAML 1.1's implicit types, only some words begin with a letter
        return len(text) > 5 or text.lower() not in _WORDS
    if re.match(r"[^0-9.+~<=]|[0-9].*?([^-+0-9A-Fa-fxtTZ_.: ]|--)", text):  # what no number and no time has
        return True
    if re.fullmatch(r"[0-7]+|[1-9][0-9]*|[0-9]+\.[0-9]*|[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    from yaml import ScalarNode
    from yaml.resolver import Resolver

    return bool(Resolver().resolve(ScalarNode, text, (True, False)) == "tag:yaml.org,2002:str")  # type: ignore[no-untyped-call]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if not escaped.isprintable():
        escaped = "".join(c if c.isprintable() else _escape(c) for c in escaped)
    return f'"{escaped}"'


def _escape(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
