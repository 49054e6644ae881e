"""Read YAML of any form with PyYAML's C parser, and say what is wrong with it and where.

Nodes are made directly from the events of the parser: this takes about a tenth of the time of `CSafeLoader`. A parser
reports where it noticed an error; `explain` finds where the error was made.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import yaml
from yaml import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    MarkedYAMLError,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    YAMLError,
)
from yaml._yaml import CParser  # the C parser itself; yaml.cyaml builds loaders on it

from orchtrace_corpus.base.findings import Location, printable, quote
from orchtrace_corpus.base.yamlfile.lines import MAX_TEXT, Mapping, Node, Scalar, Sequence

MAX_DEPTH = 16

_ITEM_IN_TEXT = r"\n\s*-[ A-Za-z]"
_DOUBTFUL = r"[^\s#][ \t]#|^( *+)(?:- )?[^\n]*[^\n:]\n(?: *\n)*\1 +-[ A-Za-z]"
"""Matches where a comment may cut off a text, or where a list item may be read as a part of the text above."""
_DASH_WITHOUT_BLANK = r"^ *-(?=[A-Za-z_]+:(?:[ \t]|$))"
_NO_BLANK = "a blank after '-' is missing"
_NO_COLON = "a ':' with a blank after it is missing"
_NOTHING = "the file holds nothing but comments or blank lines; a list without records is written []"


class Source(Protocol):
    """The text that is read; `reader.YamlFile` explains the attributes and methods."""

    text: str
    refused: set[int]
    cut_off: int
    merge_command: str

    def location(self, at: int) -> Location:
        """Return the line and column of an index."""

    def refuse(self, code: str, at: int, message: str, record: str = "") -> None:
        """Report a problem."""


class Parser:
    """The parser of one text. Problems become findings of the file; if possible, reading goes on after them."""

    def __init__(self, file: Source) -> None:
        self._file = file

    def root(self) -> Node | None:
        """Return the whole document as a node; None if it is empty or cannot be read."""
        node = None
        with self._report_errors():
            opened = self._open_document()
            if opened is not None:
                composer, event = opened
                node = composer.compose(event, 0)
                self._close_document(composer)
        return node

    def records(self) -> Iterator[Node]:
        """Yield the items of a document that is a list, up to a syntax error.

        The last item before a syntax error may be incomplete: `cut_off` of the file is set to its index.
        """
        pending: Node | None = None  # yielded when the next item begins: so it is known if an error cuts it off
        with self._report_errors("; the rest of the file was not read"):
            opened = self._open_document()
            if opened is None:
                return
            composer, event = opened
            if type(event) is SequenceStartEvent:
                composer.refuse_properties(event)
                while type(item_event := composer.get_event()) is not SequenceEndEvent:
                    if pending is not None:
                        yield pending
                        pending = None
                    pending = composer.compose(item_event, 1)
                if pending is not None:
                    yield pending
                    pending = None
                self._close_document(composer)
            else:
                at = _start(event)
                composer.compose(event, 0)
                self._close_document(composer)
                self._file.refuse("F103", at, "expected a list of records, each beginning with '- '")
        if pending is not None:
            self._file.cut_off = pending.at
            if type(pending) is not Scalar:  # a scalar is a record whose first colon is missing
                yield pending

    def _open_document(self) -> "tuple[_Composer, Any] | None":
        """Begin the document; return its composer and the event of its root, or None if it is empty."""
        get_event: Callable[[], Any] = CParser(self._file.text).get_event
        get_event()  # start of stream
        start = get_event()
        if type(start) is not DocumentStartEvent:
            self._file.refuse("Y114", 0, _NOTHING)
            return None
        if start.version or start.tags:
            self._file.refuse("Y110", _start(start), "a directive (%YAML or %TAG) is not allowed; remove it")
        root: Any = get_event()
        if type(root) is ScalarEvent and not root.value and not root.style:
            self._file.refuse("Y114", 0, _NOTHING)
            return None
        return _Composer(get_event, self._file), root

    def _close_document(self, composer: "_Composer") -> None:
        """End the document, and refuse a second one."""
        composer.get_event()  # end of document
        event = composer.get_event()
        if type(event) is DocumentStartEvent:
            self._file.refuse("Y110", _start(event), "a second document begins here; keep one document in a file")

    @contextmanager
    def _report_errors(self, consequence: str = "") -> Iterator[None]:
        """Report an error that the parser raises as a finding; the message of a syntax error names the consequence."""
        try:
            yield
        except _TooDeepError as error:
            self._file.refuse("Y111", error.at, f"nested more than {MAX_DEPTH} levels deep")
        except MarkedYAMLError as error:
            at, message = explain(error, self._file.text, self._file.merge_command)
            self._file.refuse("Y104", at, f"not valid YAML: {message}{consequence}")
        except YAMLError as error:
            self._file.refuse("Y104", 0, f"not valid YAML: {printable(str(error))}")


class _TooDeepError(Exception):
    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at


class _Composer:
    """Makes nodes from the events of the parser."""

    def __init__(self, get_event: Callable[[], Any], file: Source) -> None:
        self.get_event = get_event
        self._file = file
        self._keys: dict[str, str] = {}  # so that equal keys are one string
        self._is_doubtful = re.search(_DOUBTFUL, file.text, re.MULTILINE) is not None

    def compose(self, event: Any, depth: int) -> Node:
        """Return the node that begins with an event; the further events of the node are read."""
        kind = type(event)
        scalar: Any = ScalarEvent
        if kind is scalar:
            return self._compose_scalar(event)
        if kind is AliasEvent:
            at = _start(event)
            fix = "write the value out, or quote a text that begins with '*'"
            self._file.refuse("Y107", at, f"alias {quote('*' + event.anchor)} is not allowed; {fix}")
            return self._refused_scalar(at)
        if event.anchor or event.tag:
            self.refuse_properties(event)
        if depth >= MAX_DEPTH:
            raise _TooDeepError(_start(event))
        if kind is MappingStartEvent:
            return self._compose_mapping(event, depth + 1)
        get_event = self.get_event
        new = tuple.__new__
        items: list[Node] = []
        while type(item := get_event()) is not SequenceEndEvent:
            # Most items are scalars without problems; they need no call.
            if type(item) is scalar and not (
                item.anchor or item.tag or len(item.value) > MAX_TEXT or self._is_doubtful
            ):
                items.append(new(Scalar, (item.value, item.start_mark.index)))
            else:
                items.append(self.compose(item, depth + 1))
        return Sequence(items, _start(event))

    def _compose_scalar(self, event: Any) -> Scalar:
        if event.anchor or event.tag:
            self.refuse_properties(event)
        start = _start(event)
        end = event.end_mark.index
        if len(event.value) > MAX_TEXT:
            self._file.refuse("Y115", start, f"the text is longer than {MAX_TEXT // 1000} kB; shorten it")
            return self._refused_scalar(start)
        if self._is_doubtful and not event.style:
            # Canonical form has two blanks before a comment. After one blank, the text may have a `#` in it.
            if event.value and self._file.text.startswith((" #", "\t#"), end):
                fix = "quote the text, or write two blanks before a comment"
                self._file.refuse("Y116", end + 1, f"the text ends before this '#'; {fix}")
                return self._refused_scalar(start)
            item = re.search(_ITEM_IN_TEXT, self._file.text[start:end])
            if item:
                fix = "indent it like the others of its list, with a blank behind '-', or quote the text"
                self._file.refuse("Y117", start + item.end() - 2, f"this item is part of the text above; {fix}")
                return self._refused_scalar(start)
        return Scalar(event.value, start)

    def _refused_scalar(self, at: int) -> Scalar:
        """Return an empty text in place of a refused value, about which nothing more is reported."""
        self._file.refused.add(at)
        return Scalar("", at)

    def _compose_mapping(self, event: Any, depth: int) -> Mapping:
        # This is the hot loop: most values are scalars without problems, which need no call.
        get_event = self.get_event
        shared_key = self._keys.setdefault
        new = tuple.__new__
        scalar: Any = ScalarEvent
        entries: dict[str, tuple[int, Node]] = {}
        has_second_record = False
        while type(key_event := get_event()) is not MappingEndEvent:
            at = key_event.start_mark.index
            if type(key_event) is not scalar:
                self.compose(key_event, depth)
                if type(key_event) is not AliasEvent:  # an alias is refused already
                    self._file.refuse("Y113", at, "a key must be plain text")
                self.compose(get_event(), depth)
                continue
            if key_event.anchor or key_event.tag:
                self.refuse_properties(key_event)
            key = shared_key(key_event.value, key_event.value)
            value_event = get_event()
            if type(value_event) is scalar and not (
                value_event.anchor or value_event.tag or len(value_event.value) > MAX_TEXT or self._is_doubtful
            ):
                value: Node = new(Scalar, (value_event.value, value_event.start_mark.index))
            else:
                value = self.compose(value_event, depth)
            if key in entries:
                # If the dash of the next record is missing, all its fields are given twice: only the first is reported.
                if not has_second_record:
                    first_at, _ = entries[key]
                    is_first_key = key == next(iter(entries))
                    has_second_record = is_first_key and self._file.text.startswith("- ", first_at - 2)
                    fix = "begin another record with '- ', or keep one" if has_second_record else "keep one"
                    line = self._file.location(first_at).line
                    self._file.refuse("Y105", at, f"key {quote(key)} is given twice (first on line {line}); {fix}")
            elif key == "<<":
                self._file.refuse("Y109", at, "merge key '<<' is not allowed; write the fields out")
            else:
                entries[key] = (at, value)
        return Mapping(entries, _start(event))

    def refuse_properties(self, event: Any) -> None:
        """Refuse an anchor or a tag on a node."""
        at = _start(event)
        if event.anchor:
            fix = "remove it, or quote a text that begins with '&'"
            self._file.refuse("Y106", at, f"anchor {quote('&' + event.anchor)} is not allowed; {fix}")
        if event.tag:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            fix = "remove it, or quote a text that begins with '!'"
            self._file.refuse("Y108", at, f"tag {quote(tag)} is not allowed, since every value is text; {fix}")


def _start(event: Any) -> int:
    """Return the index in the text at which the node of an event begins."""
    return int(event.start_mark.index)


def explain(error: yaml.MarkedYAMLError, text: str, merge_command: str = "") -> tuple[int, str]:
    """Return the index at which a syntax error was made, and a message that says what to do about it.

    Args:
        error: The error. Its index is where the parser noticed it.
        text: The text of the file.
        merge_command: The command that merges the file by records; empty if there is none.
    """
    conflict_at = _merge_conflict(text)
    if conflict_at is not None:
        merge = f", or merge by records: {merge_command}" if merge_command else ""
        return conflict_at, f"a merge conflict is left here; keep one side, or both, and remove the marks{merge}"
    at = _mark_index(error.problem_mark or error.context_mark, 0)
    parser_problem = error.problem or ""
    parser_context = error.context or ""
    bracket_at, quote_at = _unclosed_before(text, at)
    above, _, before = text[:at].rpartition("\n")  # the lines above the error, and its line up to the error
    line_above = text.rfind("\n", 0, len(above)) + 1
    line_end = text.find("\n", at)
    dash = re.compile(_DASH_WITHOUT_BLANK, re.MULTILINE).search(
        text, line_above, len(text) if line_end < 0 else line_end
    )
    escape_hint = ', and write each one within as \\"' if '"' in before else ""
    if "quoted scalar" in parser_context and "end of stream" in parser_problem:
        return _mark_index(error.context_mark, at), "a closing quote is missing"
    if quote_at is not None:
        return quote_at, "a closing quote is missing"
    if "expected ',' or" in parser_problem or (bracket_at is not None and "node content" in parser_problem):
        return at if bracket_at is None else bracket_at, "a closing bracket or a comma is missing"
    if "unknown escape character" in parser_problem:
        if text[at : at + 1] != "\\" and text[at - 1 : at] == "\\":
            at -= 1
        return at, "a backslash in double quotes; write the character itself, such as é, or two backslashes"
    if dash is not None:
        return dash.end() - 1, _NO_BLANK
    if "could not find expected ':'" in parser_problem:
        at = _mark_index(error.context_mark, at)
        return at, _NO_BLANK if text.startswith("-", at) else _NO_COLON
    if "mapping values are not allowed" in parser_problem:
        return _explain_second_colon(at, above, before, escape_hint)
    if text.startswith("\t", at):
        return at, "a tab in the indentation; indent with spaces"
    if "cannot start any token" in parser_problem:
        return at, "a text cannot begin with this; indent with spaces, and put double quotes around a text"
    if "block sequence" in parser_problem:
        return at, "a list begins behind the name of its field; begin it on the next line"
    if "did not find expected" in parser_problem:
        if before.strip():
            hint = f"put double quotes around all of it{escape_hint}"
            return at, f"text follows a closing quote or bracket; {hint}"
        hint = "indent a field like its neighbours, and each '- ' like the others of its list"
        return at, f"the indentation of this line, or of the one above, fits no other; {hint}"
    return at, parser_problem


def _merge_conflict(text: str) -> int | None:
    """Return the index of a mark of Git's merge conflicts; None if there is none."""
    for mark in ("<<<<<<< ", "=======\n", ">>>>>>> "):
        index = f"\n{text}".find(f"\n{mark}")
        if index >= 0:
            return index
    return None


def _explain_second_colon(at: int, above: str, before: str, escape_hint: str) -> tuple[int, str]:
    """Return index and message for a `: ` where the parser expects none.

    Args:
        at: The index of the colon.
        above: The lines above the colon's line.
        before: The colon's line up to the colon.
        escape_hint: The end of the hint about quotes.
    """
    if not re.fullmatch(r"\s*[\w-]+", before):
        hint = f"put double quotes around the text{escape_hint}"
        if re.fullmatch(r"\s*(?:- )?[a-z_]+: [a-z_]+", before):
            hint = "put double quotes around a text, and braces around fields"
        return at, f"': ' stands in a text without quotes; {hint}"
    # The line looks like a field. Its own colon is the second one if the field above has none.
    field = before.lstrip()
    indent = len(before) - len(field)
    above = above.rstrip()
    _, _, last_line = above.rpartition("\n")
    first_field = re.fullmatch(r"( *- )[a-z_]+[ :](?!/)[^:]*", last_line)
    if first_field and first_field.end(1) == indent:  # the line above begins the same record
        return len(above) - len(last_line) + first_field.end(1), _NO_COLON
    hint = "indent a field like its neighbours, and write a blank behind each ':'"
    return at - len(field), f"this line reads as more of the text above; {hint}"


def _unclosed_before(text: str, error_at: int) -> tuple[int | None, int | None]:
    """Return the indices of a bracket and of a quote before an error that are probably not closed; None for none.

    The bracket is the innermost open one, if it is on an earlier line. The quote begins a text that goes on over a line
    end and stops right before the error: probably its closing quote is missing, and it ends at the next text's quote.
    """
    parser = CParser(text)
    open_brackets: list[int] = []  # -1 for a block, which has no bracket
    last_scalar: Any = None
    try:
        while parser.check_event():
            event: Any = parser.get_event()
            if type(event) in (yaml.SequenceStartEvent, yaml.MappingStartEvent):
                open_brackets.append(_start(event) if event.flow_style else -1)
            elif type(event) in (yaml.SequenceEndEvent, yaml.MappingEndEvent):
                open_brackets.pop()
            elif type(event) is yaml.ScalarEvent:
                last_scalar = event
    except yaml.YAMLError:
        pass  # the error that is being explained
    bracket_at = None
    if open_brackets and open_brackets[-1] >= 0 and "\n" in text[open_brackets[-1] : error_at]:
        bracket_at = open_brackets[-1]
    quote_at = None
    if last_scalar is not None and last_scalar.style in ("'", '"'):
        has_several_lines = last_scalar.start_mark.line < last_scalar.end_mark.line
        if has_several_lines and "\n" not in text[last_scalar.end_mark.index : error_at]:
            quote_at = _start(last_scalar)
    return bracket_at, quote_at


def _mark_index(mark: Any, default: int) -> int:
    return int(mark.index) if mark else default
