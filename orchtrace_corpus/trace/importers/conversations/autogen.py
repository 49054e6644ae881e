r"""Import runs of AutoGen: event logs, the messages of a stream or a result, and saved states.

Users write the handlers of event logs. An event may be a line, a text in a record (`{"time": ..., "msg":
"{\"payload\": ...}"}`), or come after a prefix. The event log repeats each message for every topic and receiver, so
copies of a message are found by its id. It also has calls of models (`LLMCall`). If a message states the usage of such
a call, the tokens count with the message; if not, as for orchestrators, the call becomes an answer. The state of a team
has all messages; the state of an agent has only the context of its model, without times and tokens.
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
from orchtrace_corpus.trace.importers.core.values import (
    as_array,
    as_object,
    as_text,
    object_field,
    objects_in,
    text_field,
)
from orchtrace_corpus.trace.model.decode import LINES
from orchtrace_corpus.trace.model.import_report import Drop, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.terms import Topology, Unit
from orchtrace_corpus.trace.model.trace import Trace

_MODEL_CALL_EVENTS = ("LLMCall", "LLMStreamEnd")  # the types of events that log a call of a model
_EVENT_WORDS = ("delivery_stage", *_MODEL_CALL_EVENTS)
_EVENT_MEMBERS = frozenset(("payload", "sender", "receiver", "delivery_stage"))
_MESSAGE_MEMBERS = frozenset(("source", "models_usage"))
_STATE_MEMBERS = frozenset(("agent_states", "llm_context"))
_LONG_ROW = re.compile(r'\s*\{[^{}]{0,300}(?:\{\\*"payload\\*"|"payload"):\s*\\*"\{\\+"messages?\\+":')
"""The beginning of an event log whose first row is longer than a head."""
_PREFIXED_EVENT = re.compile(r'^[^\n{]{1,300}\{"(?:payload": "\{|type": "(?:LLMCall|LLMStreamEnd)")', re.MULTILINE)
"""A line of an event log that is no JSON Lines: an event after a prefix."""
_FIRST_ID = re.compile(r'\\*"id\\*":\s*\\*"([0-9a-f-]{36})')
_THREAD = re.compile(rb'"message_thread":\s*\[\s*\{[^{}]{0,400}')
_MESSAGE_ID = re.compile(r'"id":\s*"([0-9a-f-]{36})"')
_agent_of = lru_cache(maxsize=1_000)(partial(re.compile(r"_[0-9a-f-]{36}(?:/.*)?$").sub, ""))
"""Returns the name of an agent without the suffix that the runtime adds: the id of the run, twice."""
_MANAGERS = ("SelectorGroupChatManager", "MagenticOneOrchestrator")
"""The agents that ask a model which agent speaks next."""
_TOOL_CALLS, _HANDOFF, _TRANSFER = "ToolCallRequestEvent", "HandoffMessage", "transfer_to_"
_ANSWER_TYPES = frozenset(("TextMessage", "MultiModalMessage", "StructuredMessage", _TOOL_CALLS, _HANDOFF))
_SKIPPED_TYPES = frozenset(
    """
    CodeExecutionEvent CodeGenerationEvent MemoryQueryEvent ModelClientStreamingChunkEvent SelectSpeakerEvent
    SelectorEvent StopMessage ToolCallSummaryMessage
    """.split()
)
_MAX_PAYLOAD_DEPTH = 6
_MAX_STATE_DEPTH = 40


class _Event(Struct, gc=False):
    """A row of the event log; the input of a model call (`messages`) stays undecoded."""

    type: str = ""
    sender: str = ""
    payload: Any = None
    agent_id: str = ""
    prompt_tokens: Any = None
    completion_tokens: Any = None
    response: Any = None
    messages: Raw = json_parts.NOTHING


class _Record(Struct, gc=False):
    """A message, or a call of a model without one; `usage` has the counts that `Run.spend` takes."""

    agent: str
    time: float
    place: steps.Place
    message: Mapping[str, Any] = {}
    model: str = ""
    usage: tuple[Any, ...] = ()


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is an event log, a stream, a result or a state of AutoGen."""
    for row in beginning.rows:
        messages = objects_in(row.get("messages"))
        is_result = bool(messages) and messages[0].keys() >= _MESSAGE_MEMBERS
        is_state = text_field(row, "type").endswith("State") and not _STATE_MEMBERS.isdisjoint(row)
        is_event = _is_event(row) or logs.event_in(row, _is_event, _EVENT_WORDS)[0]
        if is_state or is_event or is_result or row.keys() >= _MESSAGE_MEMBERS:
            return True
    if beginning.rows:
        return False
    outline, text = beginning.outline, beginning.text
    if outline >= _MESSAGE_MEMBERS or ("version" in outline and not outline.isdisjoint(_STATE_MEMBERS)):
        return True
    return (_LONG_ROW.match(text) or _PREFIXED_EVENT.search(text)) is not None


def _is_event(row: Mapping[str, Any]) -> bool:
    return row.keys() >= _EVENT_MEMBERS or (row.get("type") in _MODEL_CALL_EVENTS and "agent_id" in row)


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the key of the session, the id of its first message: an event log, a state and a result all have it."""
    text = reader.first().text
    if '"agent_states"' in text:  # the contexts of models come before the messages of the team
        thread = _THREAD.search(reader.contents())
        text = thread[0].decode("utf-8", "replace") if thread else ""
    first_id = _FIRST_ID.search(text)
    return [reader.file.path] if first_id is None else [f"autogen {first_id[1]}"]


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a run."""
    reading = _Reading(privacy)
    for file in files:
        reading.read_file(file)
    yield reading.trace(f"no message of an agent in {', '.join(file.name for file in files[:3])}")


class _Reading:
    """Collects the messages of a run from its files, each once, and then reads them into a `Run` in order of time."""

    def __init__(self, privacy: Privacy) -> None:
        self._run = Run("autogen", privacy, are_peers=True)
        self._report = self._run.report
        self._messages: dict[str, _Record] = {}  # by id
        self._model_calls: list[_Record] = []
        self._seen_calls = SeenRows()
        self._managers = set[str]()  # the managers of teams in the log
        self._unread_lines = 0
        self._latest_time = NO_TIME  # of the messages so far
        self._payload: Any = None  # of the last event
        self._payload_ids: frozenset[str] = frozenset()  # the ids of the messages in it
        self._thoughts: dict[str, str] = {}  # by agent, until it answers
        self._asked_times = {steps.USER: NO_TIME}  # by the name of a person: when they were asked; NO_TIME if not
        self._chat = GroupChat(self._run)
        self._topology = Topology.UNKNOWN

    def read_file(self, file: logs.LogFile) -> None:
        """Read the rows of an event log or a stream, or the messages of a result or a state."""
        self._seen_calls.begin_file()
        records_before, unread_before = self._report.records_read, self._report.unread
        for line, row in self._rows(file):
            place = steps.Place(file.name, line)
            if type(row) is dict and _is_event(row):
                row = json_parts.lenient(row, _Event)
            if type(row) is _Event:
                self._read_event(row, NO_TIME, place)
            elif type(row) is not dict or ("source" in row and "content" in row):
                self._read_message(row, place)
            elif not _STATE_MEMBERS.isdisjoint(row):
                self._read_state(row, place)
            elif type(row.get("messages")) is list:
                for message in row["messages"]:
                    self._read_message(message, place)
            else:
                event, time = logs.event_in(row, _is_event, _EVENT_WORDS)
                self._read_event(json_parts.lenient(event, _Event) or _Event(), time, place)
        if self._report.unread > unread_before:
            object_count = logs.object_lines(file)  # 0 for a log with prefixes
            if object_count:  # lines of other programs were unreadable, too, but are no events
                self._unread_lines += object_count - (self._report.records_read - records_before)
            else:
                self._unread_lines += self._report.unread - unread_before

    def _rows(self, file: logs.LogFile) -> Iterator[tuple[int, Any]]:
        """Yield the rows of a file, each with its line: events as structs, since their messages take long to decode."""
        if not file.path.endswith(LINES):
            with suppress(DecodeError, RecursionError):
                document = json_parts.whole(logs.contents(file))
                messages = document.members().get("messages", document)
                parts = messages.elements() if messages.is_array else [document]
                for part in parts:
                    self._report.records_read += 1
                    yield part.line, part.value()
                return
        with logs.LogReader(file) as reader:
            first_rows, text = reader.first().rows or reader.head().rows, reader.head().text
        if first_rows:
            is_event_log = _is_event(first_rows[0])
        elif _PREFIXED_EVENT.search(text):
            for line, event in logs.events_of_text(file, self._report, _EVENT_WORDS):
                yield line, json_parts.lenient(event, _Event)
            return
        else:  # the first row is longer than a head
            is_event_log = text.lstrip().startswith('{"payload"')
        shape = _Event if is_event_log else Any
        yield from logs.rows(file, self._report, shape)

    def _read_state(self, state: dict[str, Any], place: steps.Place) -> None:
        """Read the messages of the threads in a state; if it has none, the contexts of its agents' models."""
        thread_messages: list[Any] = []
        context_messages: list[Any] = []
        for name, value in _nested_members(state):
            if name == "message_thread":
                thread_messages += as_array(value)
            elif name == "llm_context":
                context_messages += _messages_of_context(as_object(value).get("messages"))
            elif name.startswith(_MANAGERS) and "message_thread" in as_object(value):
                self._managers.add(name)
        for message in thread_messages or context_messages:
            self._read_message(message, place)

    def _read_event(self, row: _Event, time: float, place: steps.Place) -> None:
        """Read an event. `time` is that of the record around it; without one, a model call has the latest time."""
        if row.sender.startswith(_MANAGERS):
            self._managers.add(_agent_of(row.sender))
        if row.type in _MODEL_CALL_EVENTS:
            agent, response = masked(_agent_of(row.agent_id)) or "agent", as_object(row.response)
            stated = row.prompt_tokens, row.completion_tokens
            if not self._seen_calls.is_new(f"{agent} {stated} {response.get('id')} {time}"):
                self._note_copy("copy of a model's call", has_usage=True)
                return
            cached = object_field(response.get("usage"), "prompt_tokens_details").get("cached_tokens")
            reasoning = object_field(response.get("usage"), "completion_tokens_details").get("reasoning_tokens")
            usage, model = (*stated, cached, None, reasoning), masked(text_field(response, "model"))
            if time == NO_TIME:
                time = self._latest_time
            self._model_calls.append(_Record(agent, time, place, {}, model, usage))
            return
        payload, is_text = row.payload, type(row.payload) is str
        if payload != self._payload:  # rows for other receivers of the message mostly follow, with the same payload
            self._payload = payload
            self._payload_ids = frozenset(_MESSAGE_ID.findall(payload)) if is_text else frozenset()
        if self._payload_ids and self._payload_ids <= self._messages.keys():
            usages = [self._messages[message_id].message.get("models_usage") for message_id in self._payload_ids]
            self._note_copy("copy of a message", has_usage=any(isinstance(usage, dict) for usage in usages))
            return
        messages = list(_messages_in(json_parts.decoded(payload) if is_text else payload))
        if not messages:
            messages = list(_messages_in(json_parts.decoded(row.messages)))
        for message in messages:
            self._read_message(message, place, time)
        if not messages and payload is None:
            self._report.skip(masked(row.type) or "row without a message")

    def _note_copy(self, kind: str, *, has_usage: bool) -> None:
        self._report.skip(kind)
        if has_usage:
            self._report.enter(LedgerLine.RESTATED)

    def _read_message(self, message: Any, place: steps.Place, log_time: float = NO_TIME) -> None:
        """Collect a message, unless it is a copy. Messages of old versions have only the time of the record around."""
        if not isinstance(message, dict) or not isinstance(message.get("source"), str):
            self._report.drop(Drop.NO_OBJECT, place.file, place.line)
            return
        time = moment(message.get("created_at"))
        if time == NO_TIME:
            time = log_time
        self._latest_time = max(self._latest_time, time)
        message_id = text_field(message, "id") or json_parts.encoded(message).decode()
        if message_id in self._messages:
            self._note_copy("copy of a message", has_usage=isinstance(message.get("models_usage"), dict))
            return
        self._messages[message_id] = _Record(masked(message["source"]), time, place, message)
        self._run.name = self._run.name or text_field(message, "id")

    def trace(self, empty_message: str) -> Trace:
        """Return the trace; `empty_message` is that of the error if no agent said anything."""
        messages, unit = sorted(self._messages.values(), key=lambda record: record.time), Unit.SECOND
        if messages and all(record.time == NO_TIME for record in (*messages, *self._model_calls)):
            unit = Unit.STEP
            for index, record in enumerate(messages):
                record.time = float(index)
        self._match_model_calls(messages)
        for record in messages:
            self._add_message(record)
        self._chat.end()
        self._run.name = self._run.name or "run"
        run, unread = self._run, self._unread_lines
        return run.trace(topology=self._topology, unit=unit, unread=unread, empty_message=empty_message)

    def _match_model_calls(self, messages: Sequence[_Record]) -> None:
        """Find the message with the usage of each model call, at best its agent's; else add the call as an answer."""
        by_counts: dict[str, list[_Record]] = {}  # messages by input and output tokens
        for record in messages:
            usage = record.message.get("models_usage")
            if isinstance(usage, dict):
                record.usage = usage.get("prompt_tokens"), usage.get("completion_tokens"), None, None, None
                by_counts.setdefault(str(record.usage[:2]), []).append(record)
        for model_call in self._model_calls:
            candidates = by_counts.get(str(model_call.usage[:2]))
            if not candidates:
                answer = self._run.answer(model_call.agent, model_call.time, model_call.place, model_call.model)
                self._run.spend(answer, model_call.usage)
                continue
            of_agent = [record for record in candidates if record.agent == model_call.agent]
            match = of_agent[0] if of_agent else candidates[0]
            candidates.remove(match)
            match.model, match.usage = model_call.model, (*match.usage[:2], *model_call.usage[2:])
            self._report.enter(LedgerLine.RESTATED)
        for _ in self._managers - {record.agent for record in (*self._model_calls, *messages)}:
            self._report.enter(LedgerLine.NO_USAGE)
            self._run.missing[Missing.USAGE] += 1

    def _add_message(self, record: _Record) -> None:
        """Add the steps of a message to the run."""
        source, time, place, message = record.agent, record.time, record.place, record.message
        run, kind, content = self._run, text_field(message, "type"), message.get("content")
        if kind == "UserInputRequestedEvent":
            self._asked_times[source] = time
        elif source == steps.USER and self._chat.give_task(steps.Note(time, place)):
            self._report.skip("task of an agent that is a tool")
        elif source in self._asked_times:
            asked_time, ref = self._asked_times[source], run.privacy.reference(content)
            self._asked_times[source] = NO_TIME
            self._chat.hear(steps.UserInput(time, place, ref=ref, since=asked_time, asked=asked_time != NO_TIME))
        elif kind == "ThoughtEvent":
            self._thoughts[source] = as_text(content)
        elif kind == "ToolCallExecutionEvent":
            for result in objects_in(content):
                error = "tool_error" if result.get("is_error") is True else ""
                call_id = text_field(result, "call_id")
                caller = self._chat.end_call(call_id)
                if caller:
                    run.result(caller, call_id, time, place, result.get("content"), error=error)
                elif not text_field(result, "name").startswith(_TRANSFER):
                    self._report.note(Problem.RESULT_WITHOUT_CALL, str(place))
        elif kind in _ANSWER_TYPES and (record.usage or source.startswith(_MANAGERS)):
            self._add_answer(record, kind, content)
        elif kind == _HANDOFF and self._topology is Topology.SWARM:
            self._report.skip(kind)
        elif kind in _SKIPPED_TYPES or kind in _ANSWER_TYPES:
            if source in run.agents:
                note = run.note(source, time, place)
                if not self._chat.is_inside_call(source):
                    self._chat.last = Utterance(source, note, run.privacy.reference(content))
            row_kind = kind if kind in _SKIPPED_TYPES else f"{kind} without a model"
            self._report.skip(row_kind)
        else:
            self._report.note_unknown(masked(f"message {kind}"[:100]))

    def _add_answer(self, record: _Record, kind: str, content: Any) -> None:
        """Add an answer of a model, with its tool calls."""
        source, time, place, run = record.agent, record.time, record.place, self._run
        is_inside_call = self._chat.begin_turn(source)
        call = run.answer(source, time, place, record.model)
        call.final = kind != _TOOL_CALLS
        message_id = text_field(record.message, "id")
        if message_id:
            current_answer_ids().note(message_id, "", place.file, place.line)
        call.note_text(self._thoughts.pop(source, ""), run.privacy)
        call.note_text(as_text(content), run.privacy)
        run.spend(call, record.usage or (None, None, None, None, None))
        requests = [] if call.final else as_array(content)
        for request in requests:
            call_id, tool = text_field(request, "id"), text_field(request, "name")
            tool_call = run.call(source, call_id, tool, time, place, as_object(request).get("arguments"), call)
            if tool.startswith(_TRANSFER):
                self._chat.hand_over(tool_call, masked(tool).removeprefix(_TRANSFER))
                self._topology = Topology.SWARM
            else:
                self._chat.begin_call(source, call_id, tool_call)
        if not is_inside_call:
            self._chat.last = Utterance(source, call, call.ref)


def _nested_members(value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of the members of an object, and of the objects in it."""
    if depth > _MAX_STATE_DEPTH:
        return
    for name, member in as_object(value).items():
        yield name, member
        yield from _nested_members(member, depth + 1)


def _messages_of_context(context: Any) -> Iterator[dict[str, Any]]:
    """Yield the context of an agent's model as messages of a team; other agents' messages are in their own contexts.

    These messages have no ids: `number` tells those of the same text apart.
    """
    entries = objects_in(context)
    agents = [text_field(entry, "source") for entry in entries if "thought" in entry]  # only its own have thoughts
    agent = agents[0] if agents else "agent"
    for index, entry in enumerate(entries):
        source = text_field(entry, "source") or agent
        content = entry.get("content")
        message = {"source": source, "type": "TextMessage", "content": content, "number": index}
        match entry.get("type"):
            case "AssistantMessage":
                kind = _TOOL_CALLS if type(content) is list else "TextMessage"
                yield message | {"type": kind, "models_usage": {}}
            case "FunctionExecutionResultMessage":
                yield message | {"type": "ToolCallExecutionEvent"}
            case "UserMessage" if source == steps.USER:
                yield message


def _messages_in(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield the messages in a value and in the objects and arrays inside it."""
    if type(value) is dict and "source" in value and "type" in value and type(value["source"]) is not dict:
        yield value
    elif depth < _MAX_PAYLOAD_DEPTH:
        inner_values = value.values() if type(value) is dict else as_array(value)
        for inner in inner_values:
            if type(inner) is dict or type(inner) is list:
                yield from _messages_in(inner, depth + 1)
