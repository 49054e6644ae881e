r"""AutoGen: the event log, bare or inside the records of a logging handler, the messages of a stream or result, states.

The log has its events from a handler that each user writes. Many write the record of the logger, in which the event is
a text: `{"time": ..., "logger": "autogen_core.events", "msg": "{\"payload\": ...}"}`, under any names and in any order;
others write it as text behind a prefix (`INFO:autogen_core.events:{...}`). A stream is the messages of `run_stream`,
one on each line or in an array, mostly with the result at the end. A state is what `save_state` gives: a team has the
thread of its manager, with all messages; an agent by itself has only what its model was given, without times and
tokens.

The event log repeats each message for every topic and receiver, so messages go by their ids. A model's call is logged
besides (`LLMCall`): where a message has its usage, it counts there; a call of which no message tells, as those of
orchestrators, counts by itself. Shapes: autogen-agentchat and autogen-core 0.7.5, `messages.py` and `logging.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import attrgetter
from typing import Any

from msgspec import DecodeError, Raw, Struct

from orchtrace_corpus.trace.importers.core import json_parts as parts
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.group_chat import GroupChat, Utterance
from orchtrace_corpus.trace.importers.core.identity import SeenRows, current_answers
from orchtrace_corpus.trace.importers.core.json_parts import NOTHING, lenient
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened, event_in, events_of_text
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, moment
from orchtrace_corpus.trace.importers.core.transcript import Place, ToolCall
from orchtrace_corpus.trace.importers.core.values import items, mapping, object_field, objects, string, text_field
from orchtrace_corpus.trace.model.decode import LINES
from orchtrace_corpus.trace.model.import_report import Drop, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.terms import Topology, Unit
from orchtrace_corpus.trace.model.trace import Trace

_CALLS = ("LLMCall", "LLMStreamEnd")  # the events by which a model's call is logged
_EVENT = frozenset(("payload", "sender", "receiver", "delivery_stage"))
_MESSAGE = frozenset(("source", "models_usage"))
_STATE = frozenset(("agent_states", "llm_context"))
_LONG = re.compile(r'\s*\{[^{}]{0,300}(?:\{\\*"payload\\*"|"payload"):\s*\\*"\{\\+"messages?\\+":')
"""The beginning of an event log whose first row exceeds the part that is looked at."""
_TEXT = re.compile(r'^[^\n{]{1,300}\{"(?:payload": "\{|type": "(?:LLMCall|LLMStreamEnd)")', re.MULTILINE)
"""A line of a log as text: an event behind a prefix."""
_ID = re.compile(r'\\*"id\\*":\s*\\*"([0-9a-f-]{36})')
_THREAD = re.compile(rb'"message_thread":\s*\[\s*\{[^{}]{0,300}?"id":\s*"([0-9a-f-]{36})')
_MARKS = ("delivery_stage", "LLMCall", "LLMStreamEnd")
_MAX_STATES = 40
_GIVEN = dict.fromkeys(("AssistantMessage", "UserMessage"), "TextMessage")
_GIVEN["FunctionExecutionResultMessage"] = "ToolCallExecutionEvent"
"""The messages of a team, by the name of what a model is given."""
_MESSAGE_ID = re.compile(r'"id":\s*"([0-9a-f-]{36})"')
_USAGE = re.compile(r'"models_usage":\s*\{')
_RUNTIME = re.compile(r"_[0-9a-f-]{36}(?:/.*)?$")
"""The suffix that the runtime adds to the name of an agent: the run, twice."""
_ASKING = ("SelectorGroupChatManager", "MagenticOneOrchestrator")  # managers of teams that ask a model who is next
_CALL, _HANDOFF = "ToolCallRequestEvent", "HandoffMessage"
_ANSWERS = frozenset(("TextMessage", "MultiModalMessage", "StructuredMessage", _CALL, _HANDOFF))
_SILENT = frozenset(
    """
    CodeExecutionEvent CodeGenerationEvent MemoryQueryEvent ModelClientStreamingChunkEvent SelectSpeakerEvent
    SelectorEvent StopMessage ToolCallSummaryMessage
    """.split()
)
_TRANSFER = "transfer_to_"
_MAX_NESTING = 6


class _Response(Struct, gc=False):
    """The answer of a service, without its texts."""

    id: Any = None
    model: Any = None
    usage: Any = None


class _Event(Struct, gc=False):
    """A row of the event log; the messages that a model was asked with are left undecoded."""

    type: str = ""
    sender: str = ""
    payload: Any = None
    agent_id: str = ""
    prompt_tokens: Any = None
    completion_tokens: Any = None
    response: _Response | None = None
    messages: Raw = NOTHING


def recognises(beginning: Head) -> bool:
    """Return True if a file that begins like this is of AutoGen."""
    for row in beginning.rows:
        first = next(iter(objects(row.get("messages"))), {})
        is_state = text_field(row, "type").endswith("State") and not _STATE.isdisjoint(row)
        if is_state or _is_event(row) or row.keys() >= _MESSAGE or first.keys() >= _MESSAGE:
            return True
        if event_in(row, _is_event, _MARKS)[0]:
            return True
    outline, text = beginning.outline, beginning.text
    if beginning.rows or outline >= _MESSAGE or ("version" in outline and not outline.isdisjoint(_STATE)):
        return not beginning.rows
    return (_LONG.match(text) or _TEXT.search(text)) is not None


def _is_event(row: Mapping[str, Any]) -> bool:
    return row.keys() >= _EVENT or (row.get("type") in _CALLS and "agent_id" in row)


def ties(opened: Opened) -> Sequence[str]:
    """Return what ties a log to others: the first message, since states and results repeat what the event log has."""
    text = opened.first().text
    if '"agent_states"' in text:  # what the models of its agents were given comes first
        thread = _THREAD.search(opened.contents())
        return [f"autogen {thread[1].decode()}" if thread else opened.file.path]
    message = _ID.search(text)
    return [f"autogen {message[1]}" if message else opened.file.path]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a run."""
    reading = _Reading(privacy)
    for file in files:
        reading.take_file(file)
    yield reading.trace(f"no message of an agent in {', '.join(file.name for file in files[:3])}")


class _Record(Struct, gc=False):
    """A message, or a call of a model that the event log has besides: its time may be that of the message before."""

    agent: str
    time: float
    place: Place
    message: Mapping[str, Any] = {}
    model: str = ""
    usage: tuple[Any, ...] = ()  # input, output, cache reads, cache writes, reasoning


class _Reading:
    """Takes the messages of a run in, each once, and reads them into a `Run`."""

    def __init__(self, privacy: Privacy) -> None:
        self._run = Run("autogen", privacy, are_peers=True)
        self._report = self._run.report
        self._messages: dict[str, _Record] = {}
        self._model_calls: list[_Record] = []
        self._seen, self._answers = SeenRows(), current_answers()
        self._managers: set[str] = set()
        self._unread, self._time = 0, NO_TIME
        self._payload: Any = None  # of the last event
        self._ids: frozenset[str] = frozenset()  # of the messages in it
        self._calls: dict[str, ToolCall] = {}  # those that have no result yet
        self._callers: dict[str, str] = {}  # the agents that have made them
        self._tasks: dict[str, steps.Note] = {}  # what they have given other agents to do
        self._thoughts: dict[str, str] = {}
        self._people: dict[str, float] = {steps.USER: NO_TIME}  # with the time at which they were asked
        self._chat = GroupChat(self._run)  # of those who are outside of tools
        self._is_swarm = False

    def take_file(self, file: LogFile) -> None:
        """Take the rows of an event log or a stream, or the messages of a result or a state."""
        self._seen.begin_file()
        report = self._report
        before, unread = report.records_read, report.unread
        for line, row in self._rows(file):
            place = Place(file.name, line)
            if type(row) is _Event:
                self._take_event(row, NO_TIME, place)
            elif type(row) is dict and not _STATE.isdisjoint(row):
                self._take_state(row, place)
            elif type(row) is not dict or ("source" in row and "content" in row):
                self._take(row, place, NO_TIME)
            elif type(row.get("messages")) is list and not _is_event(row):
                for message in row["messages"]:
                    self._take(message, place, NO_TIME)
            else:
                event, time = (row, NO_TIME) if _is_event(row) else event_in(row, _is_event, _MARKS)
                self._take_event(lenient(event, _Event) or _Event(), time, place)
        if report.unread > unread:
            lines = logs.object_lines(file)  # none in a log as text
            self._unread += lines - (report.records_read - before) if lines else report.unread - unread

    def _rows(self, file: LogFile) -> Iterator[tuple[int, Any]]:
        """Yield the rows of a file with their lines: bare events are decoded no further than needed."""
        if not file.path.endswith(LINES):
            with suppress(DecodeError, RecursionError):
                top = parts.whole(logs.contents(file))
                members = top.members()
                listed = members.get("messages", top)
                if listed.is_array or not _STATE.isdisjoint(members):
                    for part in listed.elements() if listed.is_array else [top]:
                        self._report.records_read += 1
                        yield part.line, part.value()
                    return
        with Opened(file) as opened:
            first, text = next(iter(opened.first().rows or opened.head().rows), None), opened.head().text
        if first is None and _TEXT.search(text):
            for line, event in events_of_text(file, self._report, _MARKS):
                yield line, lenient(event, _Event)
            return
        is_bare = text.lstrip().startswith('{"payload"') if first is None else _is_event(first)
        yield from logs.rows(file, self._report, _Event if is_bare else Any)

    def _take_state(self, state: dict[str, Any], place: Place) -> None:
        """Take the messages of the threads in a state; where it has none, what the models of its agents were given."""
        threads: list[Any] = []
        contexts: list[Any] = []
        waiting: list[tuple[Any, str, int]] = [(state, "", 0)]
        while waiting:
            value, name, depth = waiting.pop()
            if type(value) is not dict or depth > _MAX_STATES:
                continue
            if "message_thread" in value:
                threads += items(value["message_thread"])
                if name.startswith(_ASKING):
                    self._managers.add(name)
            contexts += _given(mapping(value.get("llm_context")).get("messages"))
            waiting += [(inner, key, depth + 1) for key, inner in reversed(value.items())]
        for message in threads or contexts:
            self._take(message, place, NO_TIME)

    def _take_event(self, row: _Event, time: float, place: Place) -> None:
        """Take an event; a call of a model is dated by the record around it, else by the message before."""
        if row.sender.startswith(_ASKING):
            self._managers.add(_agent_of(row.sender))
        if row.type in _CALLS:
            agent, spent = masked(_agent_of(row.agent_id)) or "agent", (row.prompt_tokens, row.completion_tokens)
            response = row.response or _Response()
            if not self._seen.is_new(f"{agent} {spent} {response.id} {time}"):
                self._note_copy("copy of a model's call", has_usage=True)
                return
            cached = object_field(response.usage, "prompt_tokens_details").get("cached_tokens")
            reasoning = object_field(response.usage, "completion_tokens_details").get("reasoning_tokens")
            usage = (*spent, cached, None, reasoning)  # of which only the service's own answer tells the last ones
            model, ended = masked(string(response.model)), self._time if time == NO_TIME else time
            self._model_calls.append(_Record(agent, ended, place, {}, model, usage))
            return
        payload = row.payload
        is_text = type(payload) is str
        if payload != self._payload:  # it goes to each receiver, mostly in rows that follow one another
            self._payload, self._ids = payload, frozenset(_MESSAGE_ID.findall(payload) if is_text else ())
        if self._ids and self._ids <= self._messages.keys():
            self._note_copy("copy of a message", has_usage=_USAGE.search(payload) is not None)
            return
        messages = list(_messages(parts.decoded(payload) if is_text else payload))
        messages = messages or list(_messages(parts.decoded(row.messages)))
        for message in messages:
            self._take(message, place, time)
        if not messages and payload is None:
            self._report.pass_over(masked(row.type) or "row without a message")

    def _note_copy(self, what: str, *, has_usage: bool) -> None:
        self._report.pass_over(what)
        if has_usage:
            self._report.enter(LedgerLine.RESTATED)

    def _take(self, message: Any, place: Place, logged: float) -> None:
        """Take a message, unless it was there before; of old versions only the record around it has a time."""
        if not isinstance(message, dict) or not isinstance(message.get("source"), str):
            self._report.drop(Drop.NO_OBJECT, place.file, place.line)
            return
        time = moment(message.get("created_at"))
        if time == NO_TIME:
            time = logged
        if time > self._time:
            self._time = time
        name = text_field(message, "id") or parts.encoded(message).decode()
        if name in self._messages:
            self._note_copy("copy of a message", has_usage=isinstance(message.get("models_usage"), dict))
            return
        self._messages[name] = _Record(masked(message["source"]), time, place, message)
        self._run.name = self._run.name or text_field(message, "id")

    def trace(self, nothing: str) -> Trace:
        """Return the trace, given the message of the error where no agent said anything."""
        run, messages = self._run, sorted(self._messages.values(), key=attrgetter("time"))
        is_timed = any(time != NO_TIME for time in (self._time, *(call.time for call in self._model_calls)))
        if not is_timed:
            for index, message in enumerate(messages):
                message.time = float(index)
        paid = self._match(messages)
        for index, message in enumerate(messages):
            self._say(message, paid.get(index))
        self._chat.end()
        run.name = run.name or "run"
        unit = Unit.SECOND if is_timed or not messages else Unit.STEP
        topology = Topology.SWARM if self._is_swarm else Topology.UNKNOWN
        return run.trace(topology=topology, unit=unit, unread=self._unread, nothing=nothing)

    def _match(self, messages: Sequence[_Record]) -> dict[int, _Record]:
        """Return the calls of models by the messages that tell of them; other calls are answers by themselves."""
        waiting: dict[tuple[str, ...], list[int]] = {}
        for index in reversed(range(len(messages) if self._model_calls else 0)):
            usage = messages[index].message.get("models_usage")
            if isinstance(usage, dict):
                stated = str(usage.get("prompt_tokens")), str(usage.get("completion_tokens"))
                for source in (messages[index].agent, ""):
                    waiting.setdefault((source, *stated), []).append(index)
        paid: dict[int, _Record] = {}
        for called in self._model_calls:
            spent = tuple(map(str, called.usage[:2]))
            queues = [waiting.get((source, *spent), []) for source in (called.agent, "")]
            for queue in queues:
                while queue and queue[-1] in paid:
                    queue.pop()
            fitting = next(filter(None, queues), None)
            if fitting is not None:
                paid[fitting[-1]] = called
                self._report.enter(LedgerLine.RESTATED)
                continue
            self._run.spend(self._run.answer(called.agent, called.time, called.place, called.model), called.usage)
        silent = self._managers - {called.agent for called in self._model_calls}
        for _ in silent - {message.agent for message in messages}:
            self._report.enter(LedgerLine.NO_USAGE)
            self._run.missing[Missing.USAGE] += 1
        return paid

    def _say(self, said: _Record, called: _Record | None) -> None:
        source, time, place, message = said.agent, said.time, said.place, said.message
        kind, usage, content = text_field(message, "type"), message.get("models_usage"), message.get("content")
        if kind == "UserInputRequestedEvent":
            self._people[source] = time
        elif source == steps.USER and self._calls:  # while a tool runs, this is the task that it has for its agent
            self._tasks[next(reversed(self._calls))] = steps.Note(time, place)
            self._report.pass_over("task of an agent that is a tool")
        elif source in self._people:
            asked, self._people[source] = self._people[source], NO_TIME
            ref = self._run.privacy.reference(content)
            self._chat.hear(steps.UserInput(time, place, ref=ref, since=asked, asked=asked != NO_TIME))
        elif kind == "ThoughtEvent":
            self._thoughts[source] = string(content)
        elif kind == "ToolCallExecutionEvent":
            for result in objects(content):
                self._take_result(result, time, place)
        elif kind in _ANSWERS and (isinstance(usage, dict) or source.startswith(_ASKING)):
            self._answer(said, called)
        elif kind == _HANDOFF and self._is_swarm:
            self._report.pass_over(kind)
        elif kind in _SILENT or kind in _ANSWERS:
            if source in self._run.agents:
                note = self._run.note(source, time, place)
                if self._caller(source) is None:
                    self._chat.last = Utterance(source, note, self._run.privacy.reference(content))
            self._report.pass_over(kind if kind in _SILENT else f"{kind} without a model")
        else:
            self._report.note_unknown(masked(f"message {kind}"[:100]))

    def _caller(self, source: str) -> str | None:
        """Return the call in which an agent works: one of its name, else the last that has given somebody a task."""
        waiting = [call_id for call_id in self._calls if self._callers[call_id] != source]
        by_name = [call_id for call_id in waiting if self._calls[call_id].tool == source]
        return next(reversed(by_name or [call_id for call_id in waiting if call_id in self._tasks]), None)

    def _answer(self, said: _Record, called: _Record | None) -> None:
        source, time, place, message = said.agent, said.time, said.place, said.message
        run, agent, caller = self._run, self._run.agent(source), self._caller(source)
        content, stated = message.get("content"), mapping(message.get("models_usage"))
        if caller is None:
            self._chat.deliver(source)
        elif not (child := run.child_of(self._callers[caller], self._calls[caller].id)):
            if caller in self._tasks:
                agent.add(self._tasks[caller])
            run.spawn(source, self._callers[caller], self._calls[caller])
        elif source != child and not run.is_spawned(source):  # one more of a team that is a tool
            run.spawn(source, self._callers[caller])
        call = run.answer(source, time, place)
        call.final = message.get("type") != _CALL
        if name := text_field(message, "id"):
            self._answers.note(name, "", place.file, place.line)
        call.note_text(self._thoughts.pop(source, ""), run.privacy)
        call.note_text(string(content), run.privacy)
        further: tuple[Any, ...] = (None, None, None)
        if called is not None:
            call.model, further = called.model, called.usage[2:]
        run.spend(call, (stated.get("prompt_tokens"), stated.get("completion_tokens"), *further))
        for request in () if call.final else items(content):
            call_id, tool = text_field(request, "id"), text_field(request, "name")
            tool_call = run.call(source, call_id, tool, time, place, mapping(request).get("arguments"), call)
            if tool.startswith(_TRANSFER):
                self._chat.hand_over(tool_call, masked(tool).removeprefix(_TRANSFER))
                self._is_swarm = True
            else:
                self._calls[call_id], self._callers[call_id] = tool_call, source
        if caller is None:
            self._chat.last = Utterance(source, call, call.ref)

    def _take_result(self, result: dict[str, Any], time: float, place: Place) -> None:
        call_id = text_field(result, "call_id")
        if self._calls.pop(call_id, None) is not None:
            self._tasks.pop(call_id, None)
            error = "tool_error" if result.get("is_error") is True else ""
            self._run.result(self._callers[call_id], call_id, time, place, result.get("content"), error=error)
        elif not text_field(result, "name").startswith(_TRANSFER):
            self._report.note(Problem.RESULT_WITHOUT_CALL, str(place))


def _given(context: Any) -> Iterator[dict[str, Any]]:
    """Yield the messages that a model was given as those of a team; what other agents said stands in their own."""
    own = next((text_field(given, "source") for given in objects(context) if "thought" in given), "agent")
    for index, message in enumerate(objects(context)):
        kind, source = text_field(message, "type"), text_field(message, "source") or own
        is_answer = kind == "AssistantMessage"
        if kind in _GIVEN and (kind != "UserMessage" or source == "user"):
            is_call = is_answer and type(message.get("content")) is list
            yield {
                "source": source,
                "type": _CALL if is_call else _GIVEN[kind],
                "models_usage": {} if is_answer else None,
                "content": message.get("content"),
                "number": index,  # they have no ids, and some may say the same
            }


def _messages(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield the messages in a value, wherever they stand."""
    if type(value) is dict and "source" in value and "type" in value and type(value["source"]) is not dict:
        yield value
    elif depth < _MAX_NESTING:
        for inner in value.values() if type(value) is dict else items(value):
            if type(inner) is dict or type(inner) is list:
                yield from _messages(inner, depth + 1)


@lru_cache(maxsize=1_000)
def _agent_of(name: str) -> str:
    """Return an agent without what the runtime puts behind its name."""
    return _RUNTIME.sub("", name)
