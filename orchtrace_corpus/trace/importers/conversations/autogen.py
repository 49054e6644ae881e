r"""AutoGen: event logs, bare, in records of a handler or behind a prefix; messages of a stream or result; saved states.

Each user writes their own handler: many log the event as a text in a record (`{"time": ..., "msg": "{\"payload\":
...}"}`), under any name. The event log repeats each message for every topic and receiver, so messages are known by
their ids. It also has calls of models (`LLMCall`): one whose usage a message states counts there; any other, as those
of orchestrators, is an answer of its own. The state of a team has all messages; that of an agent alone has what its
model was given, without times and tokens.
Shapes: autogen-agentchat and autogen-core 0.7.5, `messages.py` and `logging.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

from msgspec import DecodeError, Raw, Struct

from orchtrace_corpus.trace.importers.core import json_parts, logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.group_chat import GroupChat, Utterance
from orchtrace_corpus.trace.importers.core.identity import SeenRows, current_answer_ids
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, moment
from orchtrace_corpus.trace.importers.core.values import items, mapping, object_field, objects, string, text_field
from orchtrace_corpus.trace.model.decode import LINES
from orchtrace_corpus.trace.model.import_report import Drop, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.terms import Topology, Unit
from orchtrace_corpus.trace.model.trace import Trace

_CALLS = ("LLMCall", "LLMStreamEnd")  # the events by which a call of a model is logged
_MARKS = ("delivery_stage", *_CALLS)
_EVENT = frozenset(("payload", "sender", "receiver", "delivery_stage"))
_MESSAGE = frozenset(("source", "models_usage"))
_STATE = frozenset(("agent_states", "llm_context"))
_LONG = re.compile(r'\s*\{[^{}]{0,300}(?:\{\\*"payload\\*"|"payload"):\s*\\*"\{\\+"messages?\\+":')
"""The beginning of an event log whose first row is longer than a head."""
_TEXT = re.compile(r'^[^\n{]{1,300}\{"(?:payload": "\{|type": "(?:LLMCall|LLMStreamEnd)")', re.MULTILINE)
"""A line of a log as text: an event behind a prefix."""
_ID = re.compile(r'\\*"id\\*":\s*\\*"([0-9a-f-]{36})')
_THREAD = re.compile(rb'"message_thread":\s*\[\s*\{[^{}]{0,400}')
_MESSAGE_ID = re.compile(r'"id":\s*"([0-9a-f-]{36})"')
_agent_of = lru_cache(maxsize=1_000)(partial(re.compile(r"_[0-9a-f-]{36}(?:/.*)?$").sub, ""))
"""Returns the name of an agent without the suffix that the runtime adds: the run, twice."""
_MANAGERS = ("SelectorGroupChatManager", "MagenticOneOrchestrator")
"""The managers of teams that ask a model who speaks next."""
_CALL, _HANDOFF, _TRANSFER = "ToolCallRequestEvent", "HandoffMessage", "transfer_to_"
_ANSWERS = frozenset(("TextMessage", "MultiModalMessage", "StructuredMessage", _CALL, _HANDOFF))
_SILENT = frozenset(
    """
    CodeExecutionEvent CodeGenerationEvent MemoryQueryEvent ModelClientStreamingChunkEvent SelectSpeakerEvent
    SelectorEvent StopMessage ToolCallSummaryMessage
    """.split()
)
_MAX_NESTING = 6
_MAX_STATES = 40


class _Event(Struct, gc=False):
    """A row of the event log; the messages that a model was asked with are left undecoded."""

    type: str = ""
    sender: str = ""
    payload: Any = None
    agent_id: str = ""
    prompt_tokens: Any = None
    completion_tokens: Any = None
    response: Any = None
    messages: Raw = json_parts.NOTHING


class _Record(Struct, gc=False):
    """A message, or without one a call of a model; usage is as for `Run.spend`."""

    agent: str
    time: float
    place: steps.Place
    message: Mapping[str, Any] = {}
    model: str = ""
    usage: tuple[Any, ...] = ()


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is of AutoGen."""
    for row in beginning.rows:
        first = next(iter(objects(row.get("messages"))), {})
        is_state = text_field(row, "type").endswith("State") and not _STATE.isdisjoint(row)
        is_event = _is_event(row) or logs.event_in(row, _is_event, _MARKS)[0]
        if is_state or is_event or row.keys() >= _MESSAGE or first.keys() >= _MESSAGE:
            return True
    outline, text = beginning.outline, beginning.text
    if beginning.rows or outline >= _MESSAGE or ("version" in outline and not outline.isdisjoint(_STATE)):
        return not beginning.rows
    return (_LONG.match(text) or _TEXT.search(text)) is not None


def _is_event(row: Mapping[str, Any]) -> bool:
    return row.keys() >= _EVENT or (row.get("type") in _CALLS and "agent_id" in row)


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the session keys of a log: the first message, since states and results repeat what the event log has."""
    text = reader.first().text
    if '"agent_states"' in text:  # in which what models were given comes before the messages
        thread = _THREAD.search(reader.contents())
        text = thread[0].decode("utf-8", "replace") if thread else ""
    message = _ID.search(text)
    return [f"autogen {message[1]}" if message else reader.file.path]


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a run."""
    reading = _Reading(privacy)
    for file in files:
        reading.take_file(file)
    yield reading.trace(f"no message of an agent in {', '.join(file.name for file in files[:3])}")


class _Reading:
    """Takes the messages of a run, each once, and reads them into a `Run` by time."""

    def __init__(self, privacy: Privacy) -> None:
        self._run = Run("autogen", privacy, are_peers=True)
        self._report = self._run.report
        self._messages: dict[str, _Record] = {}
        self._model_calls: list[_Record] = []
        self._seen, self._managers = SeenRows(), set[str]()
        self._unread, self._time = 0, NO_TIME
        self._payload: Any = None  # of the last event
        self._ids: frozenset[str] = frozenset()  # of the messages in it
        self._thoughts: dict[str, str] = {}  # of each agent, until it answers
        self._people = {steps.USER: NO_TIME}  # with the time at which they were asked
        self._chat = GroupChat(self._run)
        self._topology = Topology.UNKNOWN

    def take_file(self, file: logs.LogFile) -> None:
        """Take the rows of an event log or a stream, or the messages of a result or a state."""
        self._seen.begin_file()
        before, unread = self._report.records_read, self._report.unread
        for line, row in self._rows(file):
            place = steps.Place(file.name, line)
            if type(row) is dict and _is_event(row):
                row = json_parts.lenient(row, _Event)
            if type(row) is _Event:
                self._take_event(row, NO_TIME, place)
            elif type(row) is not dict or ("source" in row and "content" in row):
                self._take(row, place)
            elif not _STATE.isdisjoint(row):
                self._take_state(row, place)
            elif type(row.get("messages")) is list:
                for message in row["messages"]:
                    self._take(message, place)
            else:
                event, time = logs.event_in(row, _is_event, _MARKS)
                self._take_event(json_parts.lenient(event, _Event) or _Event(), time, place)
        if self._report.unread > unread:
            lines = logs.object_lines(file)  # none in a log as text
            self._unread += lines - (self._report.records_read - before) if lines else self._report.unread - unread

    def _rows(self, file: logs.LogFile) -> Iterator[tuple[int, Any]]:
        """Yield the rows of a file with their lines: bare events as structs, whose messages take long to decode."""
        if not file.path.endswith(LINES):
            with suppress(DecodeError, RecursionError):
                top = json_parts.whole(logs.contents(file))
                listed = top.members().get("messages", top)
                for part in listed.elements() if listed.is_array else (top,):
                    self._report.records_read += 1
                    yield part.line, part.value()
                return
        with logs.LogReader(file) as reader:
            first, text = next(iter(reader.first().rows or reader.head().rows), None), reader.head().text
        if first is None and _TEXT.search(text):
            for line, event in logs.events_of_text(file, self._report, _MARKS):
                yield line, json_parts.lenient(event, _Event)
            return
        is_bare = text.lstrip().startswith('{"payload"') if first is None else _is_event(first)
        yield from logs.rows(file, self._report, _Event if is_bare else Any)

    def _take_state(self, state: dict[str, Any], place: steps.Place) -> None:
        """Take the messages of the threads in a state; where it has none, what the models of its agents were given."""
        threads: list[Any] = []
        given: list[Any] = []
        for name, value in _members(state):
            if name == "message_thread":
                threads += items(value)
            elif name == "llm_context":
                given += _given(mapping(value).get("messages"))
            elif name.startswith(_MANAGERS) and "message_thread" in mapping(value):
                self._managers.add(name)
        for message in threads or given:
            self._take(message, place)

    def _take_event(self, row: _Event, time: float, place: steps.Place) -> None:
        """Take an event; a call of a model is dated by the record around it, else by the message before."""
        if row.sender.startswith(_MANAGERS):
            self._managers.add(_agent_of(row.sender))
        if row.type in _CALLS:
            agent, response = masked(_agent_of(row.agent_id)) or "agent", mapping(row.response)
            stated = row.prompt_tokens, row.completion_tokens
            if not self._seen.is_new(f"{agent} {stated} {response.get('id')} {time}"):
                self._note_copy("copy of a model's call", has_usage=True)
                return
            cached = object_field(response.get("usage"), "prompt_tokens_details").get("cached_tokens")
            reasoning = object_field(response.get("usage"), "completion_tokens_details").get("reasoning_tokens")
            usage, model = (*stated, cached, None, reasoning), masked(text_field(response, "model"))
            time = self._time if time == NO_TIME else time
            self._model_calls.append(_Record(agent, time, place, {}, model, usage))
            return
        payload, is_text = row.payload, type(row.payload) is str
        if payload != self._payload:  # it goes to each receiver, mostly in rows that follow one another
            self._payload, self._ids = payload, frozenset(_MESSAGE_ID.findall(payload) if is_text else ())
        if self._ids and self._ids <= self._messages.keys():
            usages = [self._messages[name].message.get("models_usage") for name in self._ids]
            self._note_copy("copy of a message", has_usage=any(isinstance(usage, dict) for usage in usages))
            return
        messages = [*_messages(json_parts.decoded(payload) if is_text else payload)]
        messages = messages or [*_messages(json_parts.decoded(row.messages))]
        for message in messages:
            self._take(message, place, time)
        if not messages and payload is None:
            self._report.skip(masked(row.type) or "row without a message")

    def _note_copy(self, what: str, *, has_usage: bool) -> None:
        self._report.skip(what)
        if has_usage:
            self._report.enter(LedgerLine.RESTATED)

    def _take(self, message: Any, place: steps.Place, logged: float = NO_TIME) -> None:
        """Take a message, unless it was there before; of old versions only the record around it has a time."""
        if not isinstance(message, dict) or not isinstance(message.get("source"), str):
            self._report.drop(Drop.NO_OBJECT, place.file, place.line)
            return
        time = moment(message.get("created_at"))
        time = logged if time == NO_TIME else time
        self._time = max(self._time, time)
        name = text_field(message, "id") or json_parts.encoded(message).decode()
        if name in self._messages:
            self._note_copy("copy of a message", has_usage=isinstance(message.get("models_usage"), dict))
            return
        self._messages[name] = _Record(masked(message["source"]), time, place, message)
        self._run.name = self._run.name or text_field(message, "id")

    def trace(self, nothing: str) -> Trace:
        """Return the trace, given the message of the error where no agent said anything."""
        unit, messages = Unit.SECOND, sorted(self._messages.values(), key=lambda record: record.time)
        if messages and all(record.time == NO_TIME for record in (*messages, *self._model_calls)):
            unit = Unit.STEP
            for index, message in enumerate(messages):
                message.time = float(index)
        self._match(messages)
        for message in messages:
            self._say(message)
        self._chat.end()
        self._run.name = self._run.name or "run"
        return self._run.trace(topology=self._topology, unit=unit, unread=self._unread, empty_message=nothing)

    def _match(self, messages: Sequence[_Record]) -> None:
        """Find the message that has the usage of each model call, best one of its agent; else add it as an answer."""
        waiting: dict[str, list[_Record]] = {}
        for message in messages:
            if isinstance(usage := message.message.get("models_usage"), dict):
                message.usage = *map(usage.get, ("prompt_tokens", "completion_tokens")), None, None, None
                waiting.setdefault(str(message.usage[:2]), []).append(message)
        for called in self._model_calls:
            likely = waiting.get(str(called.usage[:2]))
            if likely:
                paid = next((message for message in likely if message.agent == called.agent), likely[0])
                likely.remove(paid)
                paid.model, paid.usage = called.model, (*paid.usage[:2], *called.usage[2:])
                self._report.enter(LedgerLine.RESTATED)
            else:
                self._run.spend(self._run.answer(called.agent, called.time, called.place, called.model), called.usage)
        for _ in self._managers - {record.agent for record in (*self._model_calls, *messages)}:
            self._report.enter(LedgerLine.NO_USAGE)
            self._run.missing[Missing.USAGE] += 1

    def _say(self, said: _Record) -> None:
        source, time, place, message = said.agent, said.time, said.place, said.message
        run, kind, content = self._run, text_field(message, "type"), message.get("content")
        if kind == "UserInputRequestedEvent":
            self._people[source] = time
        elif source == steps.USER and self._chat.give_task(steps.Note(time, place)):
            self._report.skip("task of an agent that is a tool")
        elif source in self._people:
            asked, self._people[source] = self._people[source], NO_TIME
            ref = run.privacy.reference(content)
            self._chat.hear(steps.UserInput(time, place, ref=ref, since=asked, asked=asked != NO_TIME))
        elif kind == "ThoughtEvent":
            self._thoughts[source] = string(content)
        elif kind == "ToolCallExecutionEvent":
            for result in objects(content):
                error = "tool_error" if result.get("is_error") is True else ""
                call_id = text_field(result, "call_id")
                if caller := self._chat.end_call(call_id):
                    run.result(caller, call_id, time, place, result.get("content"), error=error)
                elif not text_field(result, "name").startswith(_TRANSFER):
                    self._report.note(Problem.RESULT_WITHOUT_CALL, str(place))
        elif kind in _ANSWERS and (said.usage or source.startswith(_MANAGERS)):
            self._answer(said, kind, content)
        elif kind == _HANDOFF and self._topology is Topology.SWARM:
            self._report.skip(kind)
        elif kind in _SILENT or kind in _ANSWERS:
            if source in run.agents:
                note = run.note(source, time, place)
                if not self._chat.is_inside_call(source):
                    self._chat.last = Utterance(source, note, run.privacy.reference(content))
            self._report.skip(kind if kind in _SILENT else f"{kind} without a model")
        else:
            self._report.note_unknown(masked(f"message {kind}"[:100]))

    def _answer(self, said: _Record, kind: str, content: Any) -> None:
        source, time, place, run = said.agent, said.time, said.place, self._run
        is_inside_call = self._chat.begin_turn(source)
        call = run.answer(source, time, place, said.model)
        call.final = kind != _CALL
        if name := text_field(said.message, "id"):
            current_answer_ids().note(name, "", place.file, place.line)
        call.note_text(self._thoughts.pop(source, ""), run.privacy)
        call.note_text(string(content), run.privacy)
        run.spend(call, said.usage or (None, None, None, None, None))
        for request in () if call.final else items(content):
            call_id, tool = text_field(request, "id"), text_field(request, "name")
            tool_call = run.call(source, call_id, tool, time, place, mapping(request).get("arguments"), call)
            if tool.startswith(_TRANSFER):
                self._chat.hand_over(tool_call, masked(tool).removeprefix(_TRANSFER))
                self._topology = Topology.SWARM
            else:
                self._chat.begin_call(source, call_id, tool_call)
        if not is_inside_call:
            self._chat.last = Utterance(source, call, call.ref)


def _members(value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the members of an object, and of the objects in it."""
    for name, member in mapping(value).items() if depth <= _MAX_STATES else ():
        yield name, member
        yield from _members(member, depth + 1)


def _given(context: Any) -> Iterator[dict[str, Any]]:
    """Yield what a model was given as messages of a team; messages of other agents are in their own states."""
    own = next((text_field(given, "source") for given in objects(context) if "thought" in given), "agent")
    for index, given in enumerate(objects(context)):
        source, content = text_field(given, "source") or own, given.get("content")
        message = {"source": source, "type": "TextMessage", "content": content, "number": index}  # there are no ids
        match given.get("type"):
            case "AssistantMessage":
                yield message | {"type": _CALL if type(content) is list else "TextMessage", "models_usage": {}}
            case "FunctionExecutionResultMessage":
                yield message | {"type": "ToolCallExecutionEvent"}
            case "UserMessage" if source == steps.USER:
                yield message


def _messages(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield the messages in a value, at any depth."""
    if type(value) is dict and "source" in value and "type" in value and type(value["source"]) is not dict:
        yield value
    elif depth < _MAX_NESTING:
        for inner in value.values() if type(value) is dict else items(value):
            if type(inner) is dict or type(inner) is list:
                yield from _messages(inner, depth + 1)
