r"""What AutoGen's files hold: events of its log, bare or inside the record of a logging handler, messages and states.

The log has its events from a handler that each user writes. Many write the record of the logger, in which the event is
a text: `{"time": ..., "logger": "autogen_core.events", "msg": "{\"payload\": ...}"}`, under any names and in any order;
others write it as text behind a prefix (`INFO:autogen_core.events:{...}`). A stream is the messages of `run_stream`,
one on each line or in an array, mostly with the result at the end. A state is what `save_state` gives: a team has the
thread of its manager, with all messages; an agent by itself has only what its model was given, without times and
tokens.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from msgspec import DecodeError, Raw, Struct

from orchtrace_corpus.base import budget
from orchtrace_corpus.base.files import open_regular
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core import json_parts as parts
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.json_parts import lenient
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.times import LATEST, NO_TIME, instant
from orchtrace_corpus.trace.importers.core.values import items, mapping, objects, text_field
from orchtrace_corpus.trace.model.decode import LINES
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport

CALLS = ("LLMCall", "LLMStreamEnd")
"""The events by which a model's call is logged."""

_EVENT = frozenset(("payload", "sender", "receiver", "delivery_stage"))
_MESSAGE = frozenset(("source", "models_usage"))
_LONG = re.compile(r'\s*\{[^{}]{0,300}(?:\{\\*"payload\\*"|"payload"):\s*\\*"\{\\+"messages?\\+":')
"""How an event log begins whose first row is longer than what is looked at."""
_TEXT = re.compile(r'^[^\n{]{1,300}\{"(?:payload": "\{|type": "(?:LLMCall|LLMStreamEnd)")', re.MULTILINE)
"""A line of a log as text: an event behind a prefix."""
_ID = re.compile(r'\\*"id\\*":\s*\\*"([0-9a-f-]{36})')
_THREAD = re.compile(rb'"message_thread":\s*\[\s*\{[^{}]{0,300}?"id":\s*"([0-9a-f-]{36})')
_MARKS = ("delivery_stage", "LLMCall", "LLMStreamEnd")
_TIMES = ("time", "timestamp", "created", "ts", "@timestamp", "asctime", "datetime")
"""What handlers call the time of a record."""
_ZONE = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")
_MAX_WRAPPERS = 3
_MOST_PREFIX = 300
_MAX_STATES = 40
_GIVEN = {
    "AssistantMessage": "TextMessage",
    "FunctionExecutionResultMessage": "ToolCallExecutionEvent",
    "UserMessage": "TextMessage",
}
"""What a model is given, by what the messages of a team are called."""


class Response(Struct, gc=False):
    """What a service answered, without the texts."""

    id: Any = None
    model: Any = None
    usage: Any = None


class Event(Struct, gc=False):
    """A row of the event log; the messages that a model was asked with are left undecoded."""

    type: str = ""
    sender: str = ""
    payload: Any = None
    agent_id: str = ""
    prompt_tokens: Any = None
    completion_tokens: Any = None
    response: Response | None = None
    messages: Raw = Raw(b"null")


class Record(NamedTuple):
    """What a row, or a part of a document, says.

    Attributes:
        line: Where it stands.
        event: An event of the log; None for a message.
        message: A message; None for an event, or for what is neither.
        time: When the record around an event was made; `NO_TIME` where there is none, or no time in it.
        manager: Of a state, the manager of the team, which may have asked a model who is next.
    """

    line: int
    event: Event | None = None
    message: Any = None
    time: float = NO_TIME
    manager: str = ""


def recognises(beginning: Head) -> bool:
    """Return True if a file that begins like this is of AutoGen."""
    rows = beginning.rows
    if not rows:
        outline = beginning.outline
        is_state = "version" in outline and not outline.isdisjoint(("agent_states", "llm_context"))
        is_event = _LONG.match(beginning.text) or _TEXT.search(beginning.text)
        return is_state or outline >= _MESSAGE or is_event is not None
    return any(_is_own(row) or unwrap(row)[0] is not None for row in rows)


def _is_own(row: Mapping[str, Any]) -> bool:
    """Return True for an event, a message, a result or a state."""
    first = next(iter(objects(row.get("messages"))), {})
    return _is_event(row) or row.keys() >= _MESSAGE or first.keys() >= _MESSAGE or _is_state(row)


def _is_event(row: Mapping[str, Any]) -> bool:
    return row.keys() >= _EVENT or (row.get("type") in CALLS and "agent_id" in row)


def _is_state(row: Mapping[str, Any]) -> bool:
    return text_field(row, "type").endswith("State") and not row.keys().isdisjoint(("agent_states", "llm_context"))


def tie(opened: Opened) -> str:
    """Return what ties a file to others of its run: the id of the first message.

    Raises:
        DataFileError: The file cannot be read.
    """
    text = opened.first().text
    if '"agent_states"' in text:  # what the models of its agents were given comes first
        thread = _THREAD.search(opened.contents())
        return f"autogen {thread[1].decode()}" if thread else opened.file.path
    message = _ID.search(text)
    return f"autogen {message[1]}" if message else opened.file.path


def unwrap(row: Mapping[str, Any], depth: int = 0) -> tuple[dict[str, Any] | None, float]:
    """Return the event inside the record of a handler, and the time of the record; None where there is no event."""
    for value in row.values():
        inner = value if type(value) is dict else {}
        if type(value) is str and any(map(value.__contains__, _MARKS)):
            prefix = 0 if depth else max(value.find('{"', 0, _MOST_PREFIX), 0)
            inner = mapping(parts.decoded(value[prefix:]))
        if _is_event(inner):
            return inner, _time_of(row)
        if inner and depth < _MAX_WRAPPERS:
            event, time = unwrap(inner, depth + 1)
            if event is not None:
                return event, time if time != NO_TIME else _time_of(row)
    return None, NO_TIME


def _time_of(row: Mapping[str, Any]) -> float:
    """Return when a record was made; `NO_TIME` for a clock time without its zone, which may be any."""
    for name in _TIMES:
        value = row.get(name)
        value = value.get("timestamp") if type(value) is dict else value
        if type(value) is str and not _ZONE.search(value):
            continue
        is_milliseconds = isinstance(value, (float, int)) and value > LATEST
        if (time := instant(value, 1_000 if is_milliseconds else 1)) is not None:
            return time
    return NO_TIME


def records(file: LogFile, report: ImportReport) -> Iterator[Record]:
    """Yield what a file holds.

    Raises:
        DataFileError: The file cannot be read.
    """
    if not file.path.endswith(LINES):
        with suppress(DecodeError, RecursionError):
            top = parts.whole(logs.contents(file))
            members = top.members()
            listed = members.get("messages", top)
            if listed.is_array:
                for part in listed.elements():
                    report.records_read += 1
                    yield from _messages_of(part.value(), part.line)
                return
            if not members.keys().isdisjoint(("agent_states", "llm_context")):
                report.records_read += 1
                yield from _state(top.value(), top.line)
                return
    with Opened(file) as opened:
        is_bare, is_text = _is_bare(opened), not opened.head().rows and _TEXT.search(opened.head().text) is not None
    if is_text:
        yield from _text_records(file, report)
        return
    for line, row in logs.rows(file, report, Event if is_bare else Any):
        if is_bare:
            yield Record(line, row)
        elif _is_state(row):
            yield from _state(row, line)
        else:
            yield from _messages_of(row, line)


def _is_bare(opened: Opened) -> bool:
    """Return True for an event log without wrappers, of which rows are decoded no further than they are read."""
    row = next(iter(opened.first().rows or opened.head().rows), None)
    return _is_event(row) if row is not None else opened.first().text.lstrip().startswith('{"payload"')


def _text_records(file: LogFile, report: ImportReport) -> Iterator[Record]:
    """Yield the events of a log as text; other lines are of other loggers."""
    with open_regular(file.path) as handle:
        for number, line in enumerate(iter(lambda: handle.readline(budget.MAX_LINE_BYTES), b""), 1):
            event = lenient(parts.decoded(line[max(line.find(b'{"'), 0) :]), Event)
            if event is not None:
                report.records_read += 1
                yield Record(number, event)
            elif any(f'"{mark}"'.encode() in line for mark in _MARKS):
                report.drop(Drop.NO_JSON if line.endswith(b"\n") else Drop.CUT_OFF, file.name, number)


def _messages_of(row: Any, line: int) -> Iterator[Record]:
    """Yield the message that a row of a stream is, those of a result, or the event that a row is or has inside."""
    if type(row) is not dict or ("source" in row and "content" in row):
        yield Record(line, message=row)
    elif _is_event(row):
        yield Record(line, lenient(row, Event))
    elif type(row.get("messages")) is list:
        for message in row["messages"]:
            yield Record(line, message=message)
    else:
        event, time = unwrap(row)
        yield Record(line, lenient(event or {}, Event), time=time)


def _state(state: Any, line: int) -> Iterator[Record]:
    """Yield the messages of the threads in a state; where it has none, what the models of its agents were given."""
    threads: list[Any] = []
    contexts: list[Any] = []
    waiting: list[tuple[Any, str, int]] = [(state, "", 0)]
    while waiting:
        value, name, depth = waiting.pop()
        if type(value) is not dict or depth > _MAX_STATES:
            continue
        if "message_thread" in value:
            yield Record(line, manager=name)
            threads += items(value["message_thread"])
        contexts.append(mapping(value.get("llm_context")).get("messages"))
        waiting += [(inner, key, depth + 1) for key, inner in reversed(value.items())]
    for message in threads:
        yield Record(line, message=message)
    if not threads:
        yield from (Record(line, message=message) for context in contexts for message in _given(context))


def _given(context: Any) -> Iterator[dict[str, Any]]:
    """Yield the messages that a model was given as those of a team; what other agents said stands in their own."""
    own = next((text_field(given, "source") for given in objects(context) if "thought" in given), "agent")
    for number, message in enumerate(objects(context)):
        kind, source = text_field(message, "type"), text_field(message, "source") or own
        is_answer = kind == "AssistantMessage"
        if kind in _GIVEN and (kind != "UserMessage" or source == "user"):
            is_call = is_answer and type(message.get("content")) is list
            yield {
                "source": source,
                "type": "ToolCallRequestEvent" if is_call else _GIVEN[kind],
                "models_usage": {} if is_answer else None,
                "content": message.get("content"),
                "number": number,  # they have no ids, and some may say the same
            }
