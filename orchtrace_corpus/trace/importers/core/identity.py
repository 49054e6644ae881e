"""Identity: of names, of the files of a session, of answers in several sessions, of programs whose logs are alike.

iFlow writes nearly the rows of Claude Code, with usage that is always 0. To read them as Claude Code's would lose
tokens without a word.
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
    """Names in use; of those that are asked for again, each gets a number behind it."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}  # the last number that was given to each name, so that none is tried twice

    def new(self, wanted: str) -> str:
        """Return the name itself, or, where it is in use, with the first number from 2 on that makes it a new one."""
        if wanted not in self._last:
            self._last[wanted] = 1
            return wanted
        number = self._last[wanted] + 1
        while (name := f"{wanted}#{number}") in self._last:
            number += 1
        self._last[wanted], self._last[name] = number, 1
        return name


def tied(files: Iterable[tuple[LogFile, Sequence[str]]]) -> Iterator[tuple[LogFile, ...]]:
    """Yield the groups of files that are tied together, directly or by others.

    Args:
        files: The files, each with its ties: of two files with a tie in common, both are in one group. Files of
            the same first tie follow one another.
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
    """Yield each name that is below no other, with all that is below it; last those in a circle.

    Args:
        below: What is directly below each name.
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
    """Tells rows that an earlier file of the same session has, too: copies of a session that was saved as it grew."""

    def __init__(self) -> None:
        self._known: set[tuple[Hashable, int]] = set()
        self._here = Counter[Hashable]()

    def begin_file(self) -> None:
        """Go on with another file: rows of one file are never copies of one another."""
        self._here = Counter()

    def is_new(self, row: Hashable) -> bool:
        """Return True for a row, given by what tells it from others, that no earlier file has this many times."""
        self._here[row] += 1
        occurrence = row, self._here[row]
        is_new = occurrence not in self._known
        self._known.add(occurrence)
        return is_new


class Answers:
    """The answers of models in a session, each known by the ids that the service gave its message and its request.

    A context manager: while it lasts, importers get these answers from `current_answers`.
    """

    def __init__(self) -> None:
        self._ids: dict[tuple[str, int], tuple[str | Sequence[object], str]] = {}
        self._further: dict[tuple[str, int], list[tuple[str | Sequence[object], str]]] = {}

    def note(self, answer: str | Sequence[object], request: str, file: str, line: int) -> None:
        """Note an answer, which begins in this line; of an id of several values the text is made when it is taken."""
        if (file, line) in self._ids:  # several records may stand on one line
            self._further.setdefault((file, line), []).append((answer, request))
        else:
            self._ids[file, line] = answer, request

    def take(self, trace: Trace) -> dict[int, str]:
        """Return the ids of the answers of a trace, by the numbers of their events; each is given once."""
        known, answers = self._ids, dict[int, str]()
        for index, event in enumerate(trace.events if known else ()):
            if event.type in _ANSWERS:
                source = event.source
                if not isinstance(source, Source):
                    continue
                place = source.file, source.line
                ids = known.pop(place, None)  # type: ignore[arg-type]
                if ids is None:
                    continue
                if further := self._further.get(place):  # type: ignore[arg-type]
                    known[place] = further.pop(0)  # type: ignore[index]
                answer, request = ids
                text = answer if isinstance(answer, str) else " ".join(map(str, answer))
                answers[index] = f"{text}\0{request}"
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
    """Return the program that wrote a file which begins like this; empty for none of those known here."""
    return next((name for row in beginning.rows for name, wrote in _BY_ROW.items() if wrote(row)), "")


def is_qwen(row: dict[str, Any]) -> bool:
    """Return True if a row is of Qwen Code: it has nearly those of Claude Code, with messages in parts."""
    return (
        "parts" in object_field(row, "message")
        or "systemPayload" in row
        or row.keys() >= {"agentType", "parentSessionId"}
    )


def _is_iflow(row: dict[str, Any]) -> bool:
    """Its session ids are `session-` and a UUID; what its tools return is in the form of Gemini CLI."""
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
