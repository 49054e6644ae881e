"""Identity: unique names, the files of one session, answers that several sessions have, programs with similar logs.

iFlow writes nearly the rows of Claude Code, with usage that is always 0: read as Claude Code's, they would lose tokens
without a warning.
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


class Names:
    """Names in use; a name that is in use gets a number behind it."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}  # the last number of each name, so that none is tried twice

    def new(self, wanted: str) -> str:
        """Return the name itself, or, if it is in use, with the first number from 2 on that makes it a new one."""
        if wanted not in self._last:
            self._last[wanted] = 1
            return wanted
        number = self._last[wanted] + 1
        while (name := f"{wanted}#{number}") in self._last:
            number += 1
        self._last[wanted], self._last[name] = number, 1
        return name


def group_by_session(files: Iterable[tuple[LogFile, Sequence[str]]]) -> Iterator[tuple[LogFile, ...]]:
    """Yield the groups of files, each given with its ties, that have ties in common, directly or by other files.

    Files of the same first tie follow one another.
    """
    same: dict[str, str] = {}

    def first(name: str) -> str:
        path = []
        while (above := same.get(name, name)) != name:
            path.append(name)
            name = above
        if path:
            same.update(dict.fromkeys(path, name))
        return name

    blocks: dict[str, list[LogFile]] = {}
    for file, ties in files:
        blocks.setdefault(ties[0], []).append(file)
        for tie in dict.fromkeys(ties[1:]):
            if tie != ties[0]:
                same[first(ties[0])] = first(tie)
    groups: dict[str, list[LogFile]] = {}
    for name, block in blocks.items():
        groups.setdefault(first(name), []).extend(block)
    yield from map(tuple, groups.values())


def families(below: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """Yield each name that is below no other, with all below it; last those in a circle.

    `below` has the names directly below each name.
    """
    tops = below.keys() - {name for above, names in below.items() for name in names if name != above}
    reached: set[str] = set()
    for top in (*(name for name in below if name in tops), *below):
        if top not in reached:
            family = [top]
            reached.add(top)
            for name in family:
                further = [name for name in below[name] if name not in reached]
                reached.update(further)
                family += further
            yield family


class SeenRows:
    """The rows of earlier files of a session: programs save a growing session in several files."""

    def __init__(self) -> None:
        self._known: set[tuple[Hashable, int]] = set()
        self._here = Counter[Hashable]()

    def begin_file(self) -> None:
        """Begin another file; rows of the same file are never copies of one another."""
        self._here = Counter()

    def is_new(self, row: Hashable) -> bool:
        """Return True for a row, given by its identity, that no earlier file has as often as this file so far."""
        self._here[row] += 1
        occurrence = row, self._here[row]
        is_new = occurrence not in self._known
        self._known.add(occurrence)
        return is_new


class Answers:
    """The ids of the answers of models in a session: those that the service gave its message and its request.

    A context manager: inside it, `current_answers` returns these answers.
    """

    def __init__(self) -> None:
        self._ids: dict[tuple[str, int], list[tuple[object, str]]] = {}  # by file and line

    def note(self, answer: object, request: str, file: str, line: int) -> None:
        """Note the ids of an answer, which begins on this line, and of its request; without an id, its values."""
        self._ids.setdefault((file, line), []).append((answer, request))

    def take(self, trace: Trace) -> dict[int, str]:
        """Return the ids of the answers of a trace, by the index of their events; each is returned once."""
        answers = dict[int, str]()
        for index, event in enumerate(trace.events if self._ids else ()):
            source = event.source
            if event.type in _ANSWERS and isinstance(source, Source):
                noted = self._ids.get((source.file, source.line))  # type: ignore[arg-type]
                if noted:
                    answer, request = noted.pop(0)
                    answers[index] = f"{answer}\0{request}"
        return answers

    def __enter__(self) -> None:
        self._before = _CURRENT.set(self)

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._before)


_CURRENT: ContextVar[Answers | None] = ContextVar("answers", default=None)


def current_answers() -> Answers:
    """Return the answers of the session that is being read."""
    return _CURRENT.get() or Answers()


_UUID_DIGITS = 36


def program_of(beginning: Head) -> str:
    """Return the program without an importer that wrote a file of this beginning; empty for any other."""
    return next((name for row in beginning.rows for name, wrote in _BY_ROW.items() if wrote(row)), "")


def is_qwen(row: dict[str, Any]) -> bool:
    """Return True for a row of Qwen Code, which is like one of Claude Code with a message in parts."""
    return (
        "parts" in object_field(row, "message")
        or "systemPayload" in row
        or row.keys() >= {"agentType", "parentSessionId"}
    )


def _is_iflow(row: dict[str, Any]) -> bool:
    """Return True for a row of iFlow: a session id of `session-` and a UUID, or tool results as in Gemini CLI."""
    if object_field(row, "toolUseResult").keys() >= {"toolName", "status", "timestamp"}:
        return True
    session = row.get("sessionId")
    return (
        isinstance(session, str)
        and session.startswith("session-")
        and len(session) == len("session-") + _UUID_DIGITS
        and "userType" in row
    )


_BY_ROW: Mapping[str, Callable[[dict[str, Any]], bool]] = {
    "iFlow": _is_iflow,
    "the list of prompts of Gemini CLI": lambda row: row.keys() >= {"sessionId", "messageId", "message", "type"},
    "kimi-cli": lambda row: object_field(row, "message").keys() >= {"type", "payload"},
}
