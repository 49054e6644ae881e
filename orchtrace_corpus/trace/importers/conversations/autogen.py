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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from msgspec import DecodeError, Raw, Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core import json_parts as parts
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.group_chat import GroupChat, Utterance
from orchtrace_corpus.trace.importers.core.identity import SeenRows, current_answers
from orchtrace_corpus.trace.importers.core.json_parts import lenient
from orchtrace_corpus.trace.importers.core.log_records import event_in, events_of_text
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, moment
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
_GIVEN = {
    "AssistantMessage": "TextMessage",
    "FunctionExecutionResultMessage": "ToolCallExecutionEvent",
    "UserMessage": "TextMessage",
}
"""The messages of a team, by the name of what a model is given."""
_MESSAGE_ID = re.compile(r'"id":\s*"([0-9a-f-]{36})"')
_USAGE = re.compile(r'"models_usage":\s*\{')
_RUNTIME = re.compile(r"_[0-9a-f-]{36}(?:/.*)?$")
"""The suffix that the runtime adds to the name of an agent: the run, twice."""
_ASKING = ("SelectorGroupChatManager", "MagenticOneOrchestrator")  # managers of teams that ask a model who is next
_ANSWERS = frozenset(
    ("TextMessage", "MultiModalMessage", "StructuredMessage", "ToolCallRequestEvent", "HandoffMessage")
)
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
    messages: Raw = Raw(b"null")


def recognises(beginning: Head) -> bool:
    """Return True if a file that begins like this is of AutoGen."""
    if beginning.rows:
        return any(_is_own(row) or event_in(row, _is_event, _MARKS)[0] for row in beginning.rows)
    outline = beginning.outline
    if outline >= _MESSAGE or ("version" in outline and not outline.isdisjoint(_STATE)):
        return True
    return (_LONG.match(beginning.text) or _TEXT.search(beginning.text)) is not None


def _is_own(row: Mapping[str, Any]) -> bool:
    """Return True for an event, a message, a result or a state."""
    first = next(iter(objects(row.get("messages"))), {})
    return _is_event(row) or row.keys() >= _MESSAGE or first.keys() >= _MESSAGE or _is_state(row)


def _is_event(row: Mapping[str, Any]) -> bool:
    return row.keys() >= _EVENT or (row.get("type") in _CALLS and "agent_id" in row)


def _is_state(row: Mapping[str, Any]) -> bool:
    return text_field(row, "type").endswith("State") and not row.keys().isdisjoint(_STATE)


def ties(opened: Opened) -> Sequence[str]:
    """Return what ties a log to others: the first message, since states and results repeat what the event log has."""
    text = opened.first().text
    if '"agent_states"' in text:  # what the models of its agents were given comes first
        thread = _THREAD.search(opened.contents())
        return [f"autogen {thread[1].decode()}" if thread else opened.file.path]
    message = _ID.search(text)
    return [f"autogen {message[1]}" if message else opened.file.path]


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
                "type": "ToolCallRequestEvent" if is_call else _GIVEN[kind],
                "models_usage": {} if is_answer else None,
                "content": message.get("content"),
                "number": index,  # they have no ids, and some may say the same
            }


def _messages(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield the messages in a value, wherever they stand."""
    inside: Iterable[Any] = value if type(value) is list else ()
    if type(value) is dict:
        if "source" in value and "type" in value and type(value["source"]) is not dict:
            yield value
            return
        inside = value.values()
    if depth < _MAX_NESTING:
        for inner in inside:
            if type(inner) is dict or type(inner) is list:
                yield from _messages(inner, depth + 1)


@lru_cache(maxsize=1_000)
def _agent_of(name: str) -> str:
    """Return an agent without what the runtime puts behind its name."""
    return _RUNTIME.sub("", name)


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a run."""
    reading = _Reading(privacy)
    for file in files:
        reading.take_file(file)
    yield reading.trace(f"no message of an agent in {', '.join(file.name for file in files[:3])}")


class _Said(Struct, gc=False):
    """A message at its place, with its time and who sent it."""

    message: Mapping[str, Any]
    place: steps.Place
    time: float
    source: str


class _Called(NamedTuple):
    """A call of a model that the event log has, at the time at which it was logged, or of the message before it."""

    agent: str
    model: str
    usage: tuple[Any, ...]  # input, output, cache reads, cache writes, reasoning
    time: float
    place: steps.Place


class _Open(NamedTuple):
    """A call that has no result yet, the agent that waits for it, and the task that it has given to another agent."""

    agent: str
    call: steps.ToolCall
    task: steps.Note | None = None


class _Reading:
    """Takes the messages of a run in, each once, and reads them into a `Run`."""

    def __init__(self, privacy: Privacy) -> None:
        self._run = Run("autogen", privacy, are_peers=True)
        self._report = self._run.report
        self._messages: dict[str, _Said] = {}
        self._model_calls: list[_Called] = []
        self._seen, self._answers = SeenRows(), current_answers()
        self._managers: set[str] = set()
        self._senders: set[str] = set()
        self._payload: Any = None  # of the last event
        self._ids: frozenset[str] = frozenset()  # of the messages in it
        self._is_copy = self._has_usage = False
        self._unread = 0
        self._time = NO_TIME
        self._calls: dict[str, _Open] = {}
        self._thoughts: dict[str, str] = {}
        self._people: dict[str, float] = {steps.USER: NO_TIME}  # with the time at which they were asked
        self._chat = GroupChat(self._run)  # of those who are outside of tools
        self._is_swarm = False

    def take_file(self, file: LogFile) -> None:
        """Take the rows of an event log or a stream, or the messages of a result or a state."""
        self._seen.begin_file()
        report = self._report
        before, unread = report.records_read, report.unread
        if not self._take_document(file):
            with Opened(file) as opened:
                first = next(iter(opened.first().rows or opened.head().rows), None)
                is_long = first is None and opened.first().text.lstrip().startswith('{"payload"')
                is_text = not opened.head().rows and _TEXT.search(opened.head().text) is not None
            if is_text:
                for line, event in events_of_text(file, report, _MARKS):
                    self._take_event(lenient(event, _Event) or _Event(), NO_TIME, steps.Place(file.name, line))
            elif is_long or (first is not None and _is_event(first)):  # bare events, decoded no further than needed
                for line, event in logs.rows(file, report, _Event):
                    self._take_event(event, NO_TIME, steps.Place(file.name, line))
            else:
                for line, row in logs.rows(file, report):
                    self._take_row(row, steps.Place(file.name, line))
        if report.unread > unread:
            lines = logs.object_lines(file)  # none in a log as text
            self._unread += lines - (report.records_read - before) if lines else report.unread - unread

    def _take_document(self, file: LogFile) -> bool:
        """Take a file that is one document, and return True if it is."""
        if file.path.endswith(LINES):
            return False
        try:
            top = parts.whole(logs.contents(file))
        except (DecodeError, RecursionError):
            return False
        members = top.members()
        listed = members.get("messages", top)
        if listed.is_array:
            for part in listed.elements():
                self._report.records_read += 1
                self._take_row(part.value(), steps.Place(file.name, part.line), in_list=True)
        elif not members.keys().isdisjoint(_STATE):
            self._report.records_read += 1
            self._take_state(top.value(), steps.Place(file.name, top.line))
        else:
            return False
        return True

    def _take_row(self, row: Any, place: steps.Place, *, in_list: bool = False) -> None:
        """Take a message of a stream, those of a result, a state, or the event that a row is or has inside."""
        if type(row) is dict and not in_list and _is_state(row):
            self._take_state(row, place)
        elif type(row) is not dict or ("source" in row and "content" in row):
            self._take(row, place, NO_TIME)
        elif _is_event(row):
            self._take_event(lenient(row, _Event) or _Event(), NO_TIME, place)
        elif type(row.get("messages")) is list:
            for message in row["messages"]:
                self._take(message, place, NO_TIME)
        else:
            event, time = event_in(row, _is_event, _MARKS)
            self._take_event(lenient(event, _Event) or _Event(), time, place)

    def _take_state(self, state: Any, place: steps.Place) -> None:
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
            contexts.append(mapping(value.get("llm_context")).get("messages"))
            waiting += [(inner, key, depth + 1) for key, inner in reversed(value.items())]
        for message in threads or [message for context in contexts for message in _given(context)]:
            self._take(message, place, NO_TIME)

    def _take_event(self, row: _Event, time: float, place: steps.Place) -> None:
        """Take an event; a call of a model is dated by the record around it, else by the message before."""
        if row.sender not in self._senders:
            self._senders.add(row.sender)
            if row.sender.startswith(_ASKING):
                self._managers.add(_agent_of(row.sender))
        if row.type in _CALLS:
            agent, spent = masked(_agent_of(row.agent_id)) or "agent", (row.prompt_tokens, row.completion_tokens)
            response = row.response or _Response()
            if self._seen.is_new(f"{agent} {spent} {response.id} {time}"):
                ended = self._time if time == NO_TIME else time
                cached = object_field(response.usage, "prompt_tokens_details").get("cached_tokens")
                reasoning = object_field(response.usage, "completion_tokens_details").get("reasoning_tokens")
                usage = (*spent, cached, None, reasoning)  # of which only the service's own answer tells the last ones
                self._model_calls.append(_Called(agent, masked(string(response.model)), usage, ended, place))
            else:
                self._note_copy("copy of a model's call", has_usage=True)
            return
        payload = row.payload
        is_text = type(payload) is str
        if payload != self._payload:  # it goes to each receiver, mostly in rows that follow one another
            self._payload, self._is_copy = payload, False
            self._ids = frozenset(_MESSAGE_ID.findall(payload) if is_text else ())
            self._has_usage = is_text and _USAGE.search(payload) is not None
        self._is_copy = self._is_copy or bool(self._ids and self._ids <= self._messages.keys())
        if self._is_copy:
            self._note_copy("copy of a message", has_usage=self._has_usage)
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

    def _take(self, message: Any, place: steps.Place, logged: float) -> None:
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
        self._messages[name] = _Said(message, place, time, masked(message["source"]))
        self._run.name = self._run.name or text_field(message, "id")

    def trace(self, nothing: str) -> Trace:
        """Return the trace, given the message of the error where no agent said anything."""
        messages = sorted(self._messages.values(), key=attrgetter("time"))
        is_timed = any(time != NO_TIME for time in (self._time, *(call.time for call in self._model_calls)))
        if not is_timed:
            for index, message in enumerate(messages):
                message.time = float(index)
        paid = self._match(messages)
        for index, message in enumerate(messages):
            self._say(message, paid.get(index))
        self._chat.end()
        self._run.name = self._run.name or "run"
        unit = Unit.SECOND if is_timed or not messages else Unit.STEP
        topology = Topology.SWARM if self._is_swarm else Topology.UNKNOWN
        return self._run.trace(topology=topology, unit=unit, unread=self._unread, nothing=nothing)

    def _match(self, messages: Sequence[_Said]) -> dict[int, _Called]:
        """Return the calls of models by the messages that tell of them; other calls are answers by themselves."""
        waiting: dict[tuple[str, ...], list[int]] = {}
        for index in reversed(range(len(messages) if self._model_calls else 0)):
            usage = messages[index].message.get("models_usage")
            if isinstance(usage, dict):
                stated = str(usage.get("prompt_tokens")), str(usage.get("completion_tokens"))
                for source in (messages[index].source, ""):
                    waiting.setdefault((source, *stated), []).append(index)
        paid: dict[int, _Called] = {}
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
        for _ in silent - {message.source for message in messages}:
            self._report.enter(LedgerLine.NO_USAGE)
            self._run.missing[Missing.USAGE] += 1
        return paid

    def _say(self, said: _Said, called: _Called | None) -> None:
        message, place, time, source = said.message, said.place, said.time, said.source
        kind, usage, content = text_field(message, "type"), message.get("models_usage"), message.get("content")
        if kind == "UserInputRequestedEvent":
            self._people[source] = time
        elif source in self._people:
            self._type(said)
        elif kind == "ThoughtEvent":
            self._thoughts[source] = string(content)
        elif kind == "ToolCallExecutionEvent":
            self._take_results(content, time, place)
        elif kind in _ANSWERS and (isinstance(usage, dict) or source.startswith(_ASKING)):
            self._answer(said, called)
        elif kind == "HandoffMessage" and self._is_swarm:
            self._report.pass_over(kind)
        elif kind in _SILENT or kind in _ANSWERS:
            if source in self._run.agents:
                note = self._run.note(source, time, place)
                if self._caller(source) is None:
                    self._chat.last = Utterance(source, note, self._run.privacy.reference(content))
            self._report.pass_over(kind if kind in _SILENT else f"{kind} without a model")
        else:
            self._report.note_unknown(masked(f"message {kind}"[:100]))

    def _caller(self, source: str) -> _Open | None:
        """Return the call in which an agent works: one of its name, else the last that has given somebody a task."""
        if not self._calls:
            return None
        waiting = [call for call in self._calls.values() if call.agent != source]
        by_name = [call for call in waiting if call.call.tool == source] or [call for call in waiting if call.task]
        return by_name[-1] if by_name else None

    def _type(self, said: _Said) -> None:
        """Take what a person wrote; while a tool runs, the task that it has for its agent."""
        source = said.source
        if source == steps.USER and self._calls:
            last = list(self._calls)[-1]
            self._calls[last] = self._calls[last]._replace(task=steps.Note(said.time, said.place))
            self._report.pass_over("task of an agent that is a tool")
            return
        asked, self._people[source] = self._people[source], NO_TIME
        ref = self._run.privacy.reference(said.message.get("content"))
        self._chat.hear(steps.UserInput(said.time, said.place, ref=ref, since=asked, asked=asked != NO_TIME))

    def _answer(self, said: _Said, called: _Called | None) -> None:
        message, place, time, source = said.message, said.place, said.time, said.source
        content, stated = message.get("content"), mapping(message.get("models_usage"))
        agent, caller = self._run.agent(source), self._caller(source)
        if caller is None:
            self._chat.deliver(source)
        elif not (child := self._run.child_of(caller.agent, caller.call.id)):
            if caller.task is not None:
                agent.add(caller.task)
            self._run.spawn(source, caller.agent, caller.call)
        elif source != child and not self._run.is_spawned(source):  # one more of a team that is a tool
            self._run.spawn(source, caller.agent)
        call = steps.ModelCall(time, place, end=time, final=message.get("type") != "ToolCallRequestEvent")
        if name := text_field(message, "id"):
            self._answers.note(name, "", place.file, place.line)
        if self._thoughts:
            call.note_text(self._thoughts.pop(source, ""), self._run.privacy)
        call.note_text(string(content), self._run.privacy)
        further: tuple[Any, ...] = (None, None, None)
        if called is not None:
            call.model, further = called.model, called.usage[2:]
        self._run.spend(call, (stated.get("prompt_tokens"), stated.get("completion_tokens"), *further))
        agent.add(call)
        if not call.final and isinstance(content, list):
            for request in content:
                self._take_call(source, call, request)
        if caller is None:
            self._chat.last = Utterance(source, call, call.ref)

    def _take_call(self, agent: str, answer: steps.ModelCall, request: Any) -> None:
        call_id, tool, given = text_field(request, "id"), text_field(request, "name"), mapping(request).get("arguments")
        call = self._run.call(agent, call_id, tool, answer.time, answer.place, given, answer)
        if tool.startswith(_TRANSFER):
            self._chat.hand_over(call, masked(tool).removeprefix(_TRANSFER))
            self._is_swarm = True
        else:
            self._calls[call_id] = _Open(agent, call)

    def _take_results(self, content: Any, time: float, place: steps.Place) -> None:
        for result in objects(content):
            call_id = text_field(result, "call_id")
            called = self._calls.pop(call_id, None)
            if called is not None:
                error = "tool_error" if result.get("is_error") is True else ""
                self._run.result(called.agent, call_id, time, place, result.get("content"), error=error)
            elif not text_field(result, "name").startswith(_TRANSFER):
                self._report.note(Problem.RESULT_WITHOUT_CALL, str(place))
