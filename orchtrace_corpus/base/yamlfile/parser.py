"""Reads YAML of any form with PyYAML's C parser, and says what is wrong with it and where.

Folding the parser's event stream takes about a tenth of `CSafeLoader`'s time: events carry marks and no types.
Parsers say where they noticed an error; here is said where it was made.
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

_ITEM = r"\n\s*-[ A-Za-z]"
_DOUBTFUL = r"[^\s#][ \t]#|^( *+)(?:- )?[^\n]*[^\n:]\n(?: *\n)*\1 +-[ A-Za-z]"
"""Places where a comment may cut off a text, or an item may be a part of the text above."""
_NO_ITEM = r"^ *-(?=[A-Za-z_]+:(?:[ \t]|$))"
_NO_BLANK = "a blank after '-' is missing"
_NO_COLON = "a ':' with a blank after it is missing"
_NOTHING = "the file holds nothing but comments or blank lines; a list without records is written []"


class Source(Protocol):
    """The text that is read; attributes and methods are those of `reader.YamlFile`."""

    text: str
    refused: set[int]
    cut_off: int
    merge_command: str

    def location(self, at: int) -> Location:
        """The place of an index."""

    def refuse(self, code: str, at: int, message: str, record: str = "") -> None:
        """Record a problem."""


class Parser:
    """The parser of one text; what it refuses becomes a finding, and reading goes on where that makes sense."""

    def __init__(self, file: Source) -> None:
        self._file = file

    def root(self) -> Node | None:
        """The whole document; None where there is none to be had."""
        node = None
        with self._refusing():
            opened = self._open()
            if opened is not None:
                fold, event = opened
                node = fold(event, 0)
                self._close(fold)
        return node

    def records(self) -> Iterator[Node]:
        """The items of a document that is a list, up to a syntax error: behind the last one, the file is cut off."""
        pending: Node | None = None
        with self._refusing("; the rest of the file was not read"):
            opened = self._open()
            if opened is None:
                return
            fold, event = opened
            if type(event) is SequenceStartEvent:
                fold.refuse_properties(event)
                while type(following := fold.get_event()) is not SequenceEndEvent:
                    if pending is not None:
                        yield pending
                        pending = None
                    pending = fold(following, 1)
                if pending is not None:
                    yield pending
                    pending = None
                self._close(fold)
            else:
                at = _place(event)
                fold(event, 0)
                self._close(fold)
                self._file.refuse("F103", at, "expected a list of records, each beginning with '- '")
        if pending is not None:
            self._file.cut_off = pending.at
            if type(pending) is not Scalar:  # a record whose first colon is missing
                yield pending

    def _open(self) -> "tuple[_Fold, Any] | None":
        """Begin the document: its root's event, and what folds it."""
        get_event: Callable[[], Any] = CParser(self._file.text).get_event
        get_event()  # start of stream
        start = get_event()
        if type(start) is not DocumentStartEvent:
            self._file.refuse("Y114", 0, _NOTHING)
            return None
        if start.version or start.tags:
            self._file.refuse("Y110", _place(start), "a directive (%YAML or %TAG) is not allowed; remove it")
        root: Any = get_event()
        if type(root) is ScalarEvent and not root.value and not root.style:
            self._file.refuse("Y114", 0, _NOTHING)
            return None
        return _Fold(get_event, self._file), root

    def _close(self, fold: "_Fold") -> None:
        """End the document, and see that nothing follows it."""
        fold.get_event()  # end of document
        after = fold.get_event()
        if type(after) is DocumentStartEvent:
            at = _place(after)
            self._file.refuse("Y110", at, "a second document begins here; keep one document in a file")

    @contextmanager
    def _refusing(self, unread: str = "") -> Iterator[None]:
        """Turn what the parser cannot read into a finding, whose message says what is unread."""
        try:
            yield
        except _TooDeepError as error:
            self._file.refuse("Y111", error.at, f"nested more than {MAX_DEPTH} levels deep")
        except MarkedYAMLError as error:
            at, message = explained(error, self._file.text, self._file.merge_command)
            self._file.refuse("Y104", at, f"not valid YAML: {message}{unread}")
        except YAMLError as error:
            self._file.refuse("Y104", 0, f"not valid YAML: {printable(str(error))}")


class _TooDeepError(Exception):
    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at


class _Fold:
    """Folds events into nodes. Called with the first event of a node, it takes the rest of its events."""

    def __init__(self, get_event: Callable[[], Any], file: Source) -> None:
        self.get_event = get_event
        self._file = file
        self._keys: dict[str, str] = {}
        self._is_doubtful = re.search(_DOUBTFUL, file.text, re.MULTILINE) is not None

    def __call__(self, event: Any, depth: int) -> Node:
        kind = type(event)
        scalar: Any = ScalarEvent
        if kind is scalar:
            if event.anchor or event.tag:
                self.refuse_properties(event)
            if len(event.value) > MAX_TEXT:
                self._file.refuse("Y115", _place(event), f"the text is longer than {MAX_TEXT // 1000} kB; shorten it")
                self._file.refused.add(_place(event))
                return Scalar("", _place(event))
            if self._is_doubtful and self._is_cut(event):
                mend = "quote the text, or write two blanks before a comment"
                self._file.refuse("Y116", event.end_mark.index + 1, f"the text ends before this '#'; {mend}")
                self._file.refused.add(_place(event))
                return Scalar("", _place(event))
            span = slice(_place(event), event.end_mark.index)
            if self._is_doubtful and not event.style and (item := re.search(_ITEM, self._file.text[span])):
                mend = "indent it like the others of its list, with a blank behind '-', or quote the text"
                self._file.refuse("Y117", span.start + item.end() - 2, f"this item is part of the text above; {mend}")
                self._file.refused.add(span.start)
                return Scalar("", span.start)
            return Scalar(event.value, span.start)
        if kind is AliasEvent:
            at = _place(event)
            mend = "write the value out, or quote a text that begins with '*'"
            self._file.refuse("Y107", at, f"alias {quote('*' + event.anchor)} is not allowed; {mend}")
            self._file.refused.add(at)
            return Scalar("", at)
        if event.anchor or event.tag:
            self.refuse_properties(event)
        if depth >= MAX_DEPTH:
            raise _TooDeepError(_place(event))
        if kind is MappingStartEvent:
            return self._mapping(event, depth + 1)
        get_event, new = self.get_event, tuple.__new__
        items: list[Node] = []
        while type(following := get_event()) is not SequenceEndEvent:
            if type(following) is scalar and not (
                following.anchor or following.tag or len(following.value) > MAX_TEXT or self._is_doubtful
            ):
                items.append(new(Scalar, (following.value, following.start_mark.index)))
            else:
                items.append(self(following, depth + 1))
        return Sequence(items, _place(event))

    def _mapping(self, event: Any, depth: int) -> Mapping:
        # The hot loop: scalars, which are nearly all values, are folded in place.
        get_event, shared, new = self.get_event, self._keys.setdefault, tuple.__new__
        scalar: Any = ScalarEvent
        entries: dict[str, tuple[int, Node]] = {}
        is_torn = False
        while type(key_event := get_event()) is not MappingEndEvent:
            at = key_event.start_mark.index
            if type(key_event) is not scalar:
                self(key_event, depth)
                if type(key_event) is not AliasEvent:
                    self._file.refuse("Y113", at, "a key must be plain text")
                self(get_event(), depth)
                continue
            if key_event.anchor or key_event.tag:
                self.refuse_properties(key_event)
            key = shared(key_event.value, key_event.value)
            value_event = get_event()
            if type(value_event) is scalar and not (
                value_event.anchor or value_event.tag or len(value_event.value) > MAX_TEXT or self._is_doubtful
            ):
                value: Node = new(Scalar, (value_event.value, value_event.start_mark.index))
            else:
                value = self(value_event, depth)
            if key in entries:
                if not is_torn:  # of a second record without its mark, all fields are given twice
                    first_at = entries[key][0]
                    is_torn = key == next(iter(entries)) and self._file.text.startswith("- ", first_at - 2)
                    mend = "begin another record with '- ', or keep one" if is_torn else "keep one"
                    line = self._file.location(first_at).line
                    self._file.refuse("Y105", at, f"key {quote(key)} is given twice (first on line {line}); {mend}")
            elif key == "<<":
                self._file.refuse("Y109", at, "merge key '<<' is not allowed; write the fields out")
            else:
                entries[key] = (at, value)
        return Mapping(entries, _place(event))

    def _is_cut(self, event: Any) -> bool:
        """Return True if a comment after a plain text may belong to it: canonical form has two blanks before one."""
        return bool(event.value and not event.style and self._file.text.startswith((" #", "\t#"), event.end_mark.index))

    def refuse_properties(self, event: Any) -> None:
        """Refuse an anchor or a tag on a node."""
        at = _place(event)
        if event.anchor:
            mend = "remove it, or quote a text that begins with '&'"
            self._file.refuse("Y106", at, f"anchor {quote('&' + event.anchor)} is not allowed; {mend}")
        if event.tag:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            mend = "remove it, or quote a text that begins with '!'"
            self._file.refuse("Y108", at, f"tag {quote(tag)} is not allowed, since every value is text; {mend}")


def _place(event: Any) -> int:
    return int(event.start_mark.index)


def explained(error: yaml.MarkedYAMLError, text: str, merge_command: str = "") -> tuple[int, str]:
    """Return where a syntax error was made, rather than noticed, and what to do about it."""
    at = _index(error.problem_mark or error.context_mark, 0)
    problem, context, hint = error.problem or "", error.context or "", ""
    lines = f"\n{text}"
    conflict = next((lines.find(sign) for sign in ("\n<<<<<<< ", "\n=======\n", "\n>>>>>>> ") if sign in lines), -1)
    if conflict >= 0:
        merge = f", or merge by records: {merge_command}" if merge_command else ""
        return conflict, f"a merge conflict is left here; keep one side, or both, and remove the marks{merge}"
    opened, quoted = _open_at(text, at)
    above, _, before = text[:at].rpartition("\n")
    end = text.find("\n", at) if "\n" in text[at:] else len(text)
    escaped = ', and write each one within as \\"' if '"' in before else ""
    if "quoted scalar" in context and "end of stream" in problem:
        at, problem = _index(error.context_mark, at), "a closing quote is missing"
    elif quoted is not None:
        at, problem = quoted, "a closing quote is missing"
    elif "expected ',' or" in problem or (opened is not None and "node content" in problem):
        at, problem = at if opened is None else opened, "a closing bracket or a comma is missing"
    elif "unknown escape character" in problem:
        at = at - 1 if text[at : at + 1] != "\\" and text[at - 1 : at] == "\\" else at
        problem, hint = "a backslash in double quotes", "write the character itself, such as é, or two backslashes"
    elif (
        dash := re.compile(_NO_ITEM, re.MULTILINE).search(text, text.rfind("\n", 0, len(above)) + 1, end)
    ) is not None:
        at, problem = dash.end() - 1, _NO_BLANK
    elif "could not find expected ':'" in problem:
        at = _index(error.context_mark, at)
        problem = _NO_BLANK if text.startswith("-", at) else _NO_COLON
    elif "mapping values are not allowed" in problem:
        problem, hint = "': ' stands in a text without quotes", f"put double quotes around the text{escaped}"
        if re.fullmatch(r"\s*(?:- )?[a-z_]+: [a-z_]+", before):
            hint = "put double quotes around a text, and braces around fields"
        if re.fullmatch(r"\s*[\w-]+", before):  # of another field
            at, problem = at - len(before.lstrip()), "this line reads as more of the text above"
            hint = "indent a field like its neighbours, and write a blank behind each ':'"
            first = re.fullmatch(r"( *- )[a-z_]+[ :](?!/)[^:]*", above.rstrip().rpartition("\n")[2])
            if first and first.end(1) == len(before) - len(before.lstrip()):  # of the same record
                at, problem, hint = len(above.rstrip()) - len(first[0]) + first.end(1), _NO_COLON, ""
    elif text.startswith("\t", at):
        problem, hint = "a tab in the indentation", "indent with spaces"
    elif "cannot start any token" in problem:
        problem, hint = "a text cannot begin with this", "indent with spaces, and put double quotes around a text"
    elif "block sequence" in problem:
        problem, hint = "a list begins behind the name of its field", "begin it on the next line"
    elif "did not find expected" in problem:
        problem, hint = "text follows a closing quote or bracket", f"put double quotes around all of it{escaped}"
        if not before.strip():
            problem = "the indentation of this line, or of the one above, fits no other"
            hint = "indent a field like its neighbours, and each '- ' like the others of its list"
    return at, f"{problem}; {hint}" if hint else problem


def _open_at(text: str, at: int) -> tuple[int | None, int | None]:
    """Read again up to an error: a bracket left open on an earlier line, and a quote that closes too late.

    A quoted text that runs over a line end and stops right before the error most likely lacks its own
    closing quote and took the next one.
    """
    parser = CParser(text)
    opened: list[int] = []
    last: Any = None
    try:
        while parser.check_event():
            event: Any = parser.get_event()
            if type(event) in (yaml.SequenceStartEvent, yaml.MappingStartEvent):
                opened.append(int(event.start_mark.index) if event.flow_style else -1)
            elif type(event) in (yaml.SequenceEndEvent, yaml.MappingEndEvent):
                opened.pop()
            elif type(event) is yaml.ScalarEvent:
                last = event
    except yaml.YAMLError:
        pass  # the error that is being explained
    is_stray = (
        last is not None
        and last.style in ("'", '"')
        and last.start_mark.line < last.end_mark.line
        and "\n" not in text[last.end_mark.index : at]
    )
    bracket = opened[-1] if opened and opened[-1] >= 0 and "\n" in text[opened[-1] : at] else None
    return bracket, int(last.start_mark.index) if is_stray else None


def _index(mark: Any, otherwise: int) -> int:
    return int(mark.index) if mark else otherwise
