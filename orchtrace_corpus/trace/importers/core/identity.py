"""The identity of things in logs: unique names, files of a session, copied rows, and programs that look alike.

iFlow writes nearly the same rows as Claude Code, but with a usage of 0. If its logs were read as logs of Claude Code,
tokens would be lost without a warning.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from orchtrace_corpus.trace.importers.core.logs import Head, LogFile
from orchtrace_corpus.trace.importers.core.values import object_field
from orchtrace_corpus.trace.model.terms import EventType
from orchtrace_corpus.trace.model.trace import Source, Trace

_ANSWERS = frozenset((EventType.INFERENCE, EventType.DECISION, EventType.AGGREGATE))


class UniqueNames:
    """The names in use, to make each new name unique."""

    def __init__(self) -> None:
        self._last_numbers: dict[str, int] = {}  # the last number behind each name, so that none is tried twice

    def add(self, wanted: str) -> str:
        """Add a name and return it; if it is in use, with the first number from 2 on that makes it unique."""
        if wanted not in self._last_numbers:
            self._last_numbers[wanted] = 1
            return wanted
        number = self._last_numbers[wanted] + 1
        while (name := f"{wanted}#{number}") in self._last_numbers:
            number += 1
        self._last_numbers[wanted], self._last_numbers[name] = number, 1
        return name


def group_by_session(files: Iterable[tuple[LogFile, Sequence[str]]]) -> Iterator[tuple[LogFile, ...]]:
    """Yield the files of each session, given each file with its keys: files that share a key are one session.

    So are files that share keys with a third file. In a session, files with the same first key follow one another.
    """
    parents: dict[str, str] = {}  # a union-find structure: keys of one session lead to the same root

    def root_of(key: str) -> str:
        path = []
        while (parent := parents.get(key, key)) != key:
            path.append(key)
            key = parent
        if path:
            parents.update(dict.fromkeys(path, key))
        return key

    files_by_first_key: dict[str, list[LogFile]] = {}
    for file, keys in files:
        first_key = keys[0]
        files_by_first_key.setdefault(first_key, []).append(file)
        for key in dict.fromkeys(keys[1:]):
            if key != first_key:
                parents[root_of(first_key)] = root_of(key)
    sessions: dict[str, list[LogFile]] = {}
    for key, files_of_key in files_by_first_key.items():
        sessions.setdefault(root_of(key), []).extend(files_of_key)
    yield from map(tuple, sessions.values())


def group_families(children: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """Yield each name that is nobody's child, followed by its descendants; the names of cycles come last."""
    all_children = {child for parent, names in children.items() for child in names if child != parent}
    reached: set[str] = set()
    for root in (*(name for name in children if name not in all_children), *children):
        if root not in reached:
            family = [root]
            reached.add(root)
            for name in family:  # it grows
                new = [child for child in children[name] if child not in reached]
                reached.update(new)
                family += new
            yield family


class SeenRows:
    """The rows of a session so far, to find copies: a program may save a growing session in several files."""

    def __init__(self) -> None:
        self._seen: set[tuple[Hashable, int]] = set()  # a row, and 1 for its first time in a file, 2 for its second
        self._counts_in_file = Counter[Hashable]()

    def begin_file(self) -> None:
        """Begin another file. Equal rows of one file are no copies."""
        self._counts_in_file = Counter()

    def is_new(self, row: Hashable) -> bool:
        """Add a row of the current file, given by its identity, and return True if it copies no earlier file's row."""
        self._counts_in_file[row] += 1
        occurrence = row, self._counts_in_file[row]
        is_new = occurrence not in self._seen
        self._seen.add(occurrence)
        return is_new


class AnswerIds:
    """The ids of the answers of a session, which show copies. As a context manager, it is the `current_answer_ids`."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, int], list[tuple[object, str]]] = {}  # by the file and line where an answer begins

    def note(self, answer: object, request: str, file: str, line: int) -> None:
        """Note the ids of an answer and its request; for an answer without an id, values that identify it."""
        self._ids.setdefault((file, line), []).append((answer, request))

    def take(self, trace: Trace) -> dict[int, str]:
        """Return the ids of a trace's answers by the index of their events, and forget them."""
        ids_by_event = dict[int, str]()
        if not self._ids:
            return ids_by_event
        for index, event in enumerate(trace.events):
            source = event.source
            if event.type in _ANSWERS and isinstance(source, Source):
                ids = self._ids.get((source.file, source.line))  # type: ignore[arg-type]
                if ids:
                    answer, request = ids.pop(0)
                    ids_by_event[index] = f"{answer}\0{request}"
        return ids_by_event

    def __enter__(self) -> None:
        self._before = _CURRENT.set(self)

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._before)


_CURRENT: ContextVar[AnswerIds | None] = ContextVar("answer ids", default=None)


def current_answer_ids() -> AnswerIds:
    """Return the answer ids of the session that is being read."""
    return _CURRENT.get() or AnswerIds()


_UUID_LENGTH = 36


def program_of(beginning: Head) -> str:
    """Return the program that wrote a file with this beginning, if it has no importer; else an empty text."""
    for row in beginning.rows:
        for program, is_row_of_program in _PREDICATES.items():
            if is_row_of_program(row):
                return program
    return ""


def is_qwen(row: dict[str, Any]) -> bool:
    """Return True for a row of Qwen Code. It is like a row of Claude Code, but its message has parts."""
    return (
        "parts" in object_field(row, "message")
        or "systemPayload" in row
        or row.keys() >= {"agentType", "parentSessionId"}
    )


def _is_iflow(row: dict[str, Any]) -> bool:
    """Return True for a row of iFlow: the session id is `session-` with a UUID, or a tool result is of Gemini CLI."""
    if object_field(row, "toolUseResult").keys() >= {"toolName", "status", "timestamp"}:
        return True
    session = row.get("sessionId")
    return (
        isinstance(session, str)
        and session.startswith("session-")
        and len(session) == len("session-") + _UUID_LENGTH
        and "userType" in row
    )


_PREDICATES: Mapping[str, Callable[[dict[str, Any]], bool]] = {
    "iFlow": _is_iflow,
    "the list of prompts of Gemini CLI": lambda row: row.keys() >= {"sessionId", "messageId", "message", "type"},
    "kimi-cli": lambda row: object_field(row, "message").keys() >= {"type", "payload"},
}
