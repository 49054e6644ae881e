"""AutoGen: what a handler of its event log wrote, or the result of a run. Both hold the messages of a team.

The event log repeats each message for every topic and receiver, so messages go by their ids. A model's call is logged
besides (`LLMCall`): where a message has its usage, it counts there; a call of which no message tells, as those of
orchestrators, counts by itself. Shapes: autogen-agentchat and autogen-core 0.7.5, `messages.py` and `logging.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from msgspec import Raw, Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.conversations.autogen_rows import (
    CALLS,
    Event,
    Response,
    recognises,
    records,
    tie,
)
from orchtrace_corpus.trace.importers.core import json_parts as parts
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.identity import SeenRows, current_answers
from orchtrace_corpus.trace.importers.core.logs import LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, moment
from orchtrace_corpus.trace.importers.core.values import mapping, objects, string, text_field
from orchtrace_corpus.trace.model.import_report import Drop, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.trace import Status, Topology, Trace, Unit

_MESSAGE_ID = re.compile(r'"id":\s*"([0-9a-f-]{36})"')
_USAGE = re.compile(r'"models_usage":\s*\{')
_RUNTIME = re.compile(r"_[0-9a-f-]{36}(?:/.*)?$")
"""What the runtime puts behind the name of an agent: the run, and the run once more."""
_ASKING = ("SelectorGroupChatManager", "MagenticOneOrchestrator")
"""Managers of teams that ask a model who is next."""
_ANSWERS = frozenset(
    ("TextMessage", "MultiModalMessage", "StructuredMessage", "ToolCallRequestEvent", "HandoffMessage")
)
_SILENT = frozenset(
    (
        "CodeExecutionEvent", "CodeGenerationEvent", "MemoryQueryEvent", "ModelClientStreamingChunkEvent",
        "SelectSpeakerEvent", "SelectorEvent", "StopMessage", "ToolCallSummaryMessage",
    )
)  # fmt: skip
_TRANSFER = "transfer_to_"
_MOST_NESTED = 6


__all__ = ("read", "recognises", "ties")


def ties(opened: Opened) -> Sequence[str]:
    """Return what ties a log to others: the first message, since states and results repeat what the event log has."""
    return [tie(opened)]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """The trace of a run.

    Raises:
        DataFileError: A file cannot be read.
        EmptyLogError: No agent said anything.
    """
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
    prompt: Any
    completion: Any
    response: Response
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
        self._last: tuple[Any, frozenset[str]] = (None, frozenset())  # the last payload, and the ids in it
        self._unread = 0
        self._time = NO_TIME
        self._calls: dict[str, _Open] = {}
        self._typed: list[steps.UserInput] = []  # what people wrote, and nobody has read
        self._thoughts: dict[str, str] = {}
        self._people: dict[str, float] = {steps.USER: NO_TIME}  # with the time at which they were asked
        self._before: tuple[str, steps.Step, str] | None = None  # who spoke last, outside of tools
        self._handoff: tuple[steps.ToolCall, str] | None = None  # with its receiver, who has not answered yet
        self._is_swarm = False

    def take_file(self, file: LogFile) -> None:
        """The rows of an event log, or the messages of a result.

        Raises:
            DataFileError: The file cannot be read.
        """
        self._seen.begin_file()
        before, dropped = self._report.records_read, self._report.unread
        for line, event, message, time, manager in records(file, self._report):
            place = steps.Place(file.name, line)
            if event is not None:
                self._take_event(event, time, place)
            elif not manager:
                self._take(message, place, NO_TIME)
            elif manager.startswith(_ASKING):
                self._managers.add(manager)
        if self._report.unread > dropped:
            lines = logs.object_lines(file)  # none in a log as text
            self._unread += lines - (self._report.records_read - before) if lines else self._report.unread - dropped

    def _take_event(self, row: Event, time: float, place: steps.Place) -> None:
        """Take an event; a call of a model is dated by the record around it, else by the message before."""
        sender = _agent_of(row.sender)
        if sender.startswith(_ASKING):
            self._managers.add(sender)
        if row.type in CALLS:
            agent, spent = masked(_agent_of(row.agent_id)) or "agent", (row.prompt_tokens, row.completion_tokens)
            response = row.response or Response()
            if self._seen.is_new(f"{agent} {spent} {response.id} {time}"):
                ended = self._time if time == NO_TIME else time
                self._model_calls.append(_Called(agent, *spent, response, ended, place))
            else:
                self._report.pass_over("copy of a model's call")
                self._report.enter(LedgerLine.RESTATED)
            return
        payload = row.payload
        if payload != self._last[0]:  # one goes to each receiver, mostly in rows that follow one another
            self._last = payload, frozenset(_MESSAGE_ID.findall(payload) if isinstance(payload, str) else ())
        names = self._last[1]
        if names and names <= self._messages.keys():
            self._report.pass_over("copy of a message")
            if _USAGE.search(payload):
                self._report.enter(LedgerLine.RESTATED)
            return
        found = list(_messages(payload)) or list(_messages(row.messages))
        for message in found:
            self._take(message, place, time)
        if not found and payload is None:
            self._report.pass_over(masked(row.type) or "row without a message")

    def _take(self, message: Any, place: steps.Place, logged: float) -> None:
        """Take a message, unless it was there before; of old versions only the record around it has a time."""
        if not isinstance(message, dict) or not isinstance(message.get("source"), str):
            self._report.drop(Drop.NO_OBJECT, place.file, place.line)
            return
        time = moment(message.get("created_at"))
        time = logged if time == NO_TIME else time
        self._time = max(self._time, time)
        name = text_field(message, "id") or parts.encoded(message).decode()
        if name in self._messages:
            self._report.pass_over("copy of a message")
            if isinstance(message.get("models_usage"), dict):
                self._report.enter(LedgerLine.RESTATED)
            return
        self._messages[name] = _Said(message, place, time, masked(message["source"]))
        self._run.name = self._run.name or text_field(message, "id")

    def trace(self, nothing: str) -> Trace:
        """Return the trace.

        Args:
            nothing: The message of the error.

        Raises:
            EmptyLogError: No agent said anything.
        """
        said = sorted(self._messages.values(), key=attrgetter("time"))
        is_timed = any(time != NO_TIME for time in (self._time, *(call.time for call in self._model_calls)))
        for number, one in enumerate(() if is_timed else said):
            one.time = float(number)
        paid = self._match(said)
        for number, one in enumerate(said):
            self._say(one, paid.get(number))
        if self._before is not None:  # who has the last word ends the run
            self._run.agent(self._before[0]).is_root = not self._run.is_spawned(self._before[0])
        self._run.name = self._run.name or "run"
        unit = Unit.SECOND if is_timed or not said else Unit.STEP
        topology = Topology.SWARM if self._is_swarm else Topology.UNKNOWN
        return self._run.trace(topology=topology, unit=unit, unread=self._unread, nothing=nothing)

    def _match(self, said: Sequence[_Said]) -> dict[int, _Called]:
        """The calls of models by the messages that tell of them; those of which none does are answers by themselves."""
        waiting: dict[tuple[str, ...], list[int]] = {}
        for number in reversed(range(len(said) if self._model_calls else 0)):
            one = said[number]
            usage = one.message.get("models_usage")
            if isinstance(usage, dict):
                stated = str(usage.get("prompt_tokens")), str(usage.get("completion_tokens"))
                for of in (one.source, ""):
                    waiting.setdefault((of, *stated), []).append(number)
        found: dict[int, _Called] = {}
        for called in self._model_calls:
            given = str(called.prompt), str(called.completion)
            told = -1
            for of in (called.agent, ""):
                left = waiting.get((of, *given), [])
                while left and left[-1] in found:
                    left.pop()
                told = left[-1] if left and told < 0 else told
            if told >= 0:
                found[told] = called
                self._report.enter(LedgerLine.RESTATED)
                continue
            call = steps.ModelCall(called.time, called.place, end=called.time)
            self._spend(call, called.prompt, called.completion, called.response)
            self._run.agent(called.agent).add(call)
        silent = self._managers - {called.agent for called in self._model_calls}
        for _ in silent - {one.source for one in said}:
            self._report.enter(LedgerLine.NO_USAGE)
            self._run.missing[Missing.USAGE] += 1
        return found

    def _spend(self, call: steps.ModelCall, prompt: Any, completion: Any, response: Response) -> None:
        """Give an answer its tokens; what came from a cache, and reasoning, only the service's own answer tells."""
        call.model = masked(string(response.model))
        usage = response.usage if isinstance(response.usage, dict) else {}
        details = (usage.get("prompt_tokens_details"), usage.get("completion_tokens_details"))
        read, written = (mapping(one) for one in details)
        self._run.spend(call, (prompt, completion, read.get("cached_tokens"), None, written.get("reasoning_tokens")))

    def _say(self, said: _Said, called: _Called | None) -> None:
        message, place, time, source = said.message, said.place, said.time, said.source
        kind, usage, content = text_field(message, "type"), message.get("models_usage"), message.get("content")
        caller = self._caller(source)
        if kind == "UserInputRequestedEvent":
            self._people[source] = time
        elif source in self._people:
            self._type(said)
        elif kind == "ThoughtEvent":
            self._thoughts[source] = string(content)
        elif kind == "ToolCallExecutionEvent":
            self._take_results(content, time, place)
        elif kind in _ANSWERS and (isinstance(usage, dict) or source.startswith(_ASKING)):
            self._answer(said, called, caller)
        elif kind == "HandoffMessage" and self._is_swarm:
            self._report.pass_over(kind)
        elif kind in _SILENT or kind in _ANSWERS:
            if source in self._run.agents:
                note = steps.Note(time, place)
                self._run.agent(source).add(note)
                self._before = self._before if caller else (source, note, self._run.privacy.reference(content))
            self._report.pass_over(kind if kind in _SILENT else f"{kind} without a model")
        else:
            self._report.note_unknown(masked(f"message {kind}"[:100]))

    def _caller(self, source: str) -> _Open | None:
        """The call in which an agent works: one of its name, else the last that has given a task to somebody."""
        waiting = [one for one in self._calls.values() if one.agent != source]
        found = [one for one in waiting if one.call.tool == source] or [one for one in waiting if one.task is not None]
        return found[-1] if found else None

    def _type(self, said: _Said) -> None:
        """What a person wrote; while a tool runs, the task that it has for its agent."""
        source = said.source
        if source == steps.USER and self._calls:
            last = list(self._calls)[-1]
            self._calls[last] = self._calls[last]._replace(task=steps.Note(said.time, said.place))
            self._report.pass_over("task of an agent that is a tool")
            return
        asked, self._people[source] = self._people[source], NO_TIME
        ref = self._run.privacy.reference(said.message.get("content"))
        self._typed.append(steps.UserInput(said.time, said.place, ref=ref, since=asked, asked=asked != NO_TIME))
        self._before = None

    def _answer(self, said: _Said, called: _Called | None, caller: _Open | None) -> None:
        message, place, time, source = said.message, said.place, said.time, said.source
        content, usage = message.get("content"), message.get("models_usage")
        agent = self._run.agent(source)
        if caller is None:
            self._deliver(source)
        elif not (child := self._run.child_of(caller.agent, caller.call.id)):
            if caller.task is not None:
                agent.add(caller.task)
            self._run.spawn(source, caller.agent, caller.call)
        elif source != child and not self._run.is_spawned(source):  # one more of a team that is a tool
            self._run.spawn(source, caller.agent)
        call = steps.ModelCall(time, place, end=time, final=message.get("type") != "ToolCallRequestEvent")
        if text_field(message, "id"):
            self._answers.note(message["id"], "", place.file, place.line)
        call.note_text(self._thoughts.pop(source, ""), self._run.privacy)
        call.note_text(string(content), self._run.privacy)
        stated = mapping(usage)
        response = called.response if called is not None else Response()
        self._spend(call, stated.get("prompt_tokens"), stated.get("completion_tokens"), response)
        agent.add(call)
        for one in content if not call.final and isinstance(content, list) else ():
            self._take_call(source, call, one)
        if caller is None:
            self._before = source, call, call.ref

    def _deliver(self, receiver: str) -> None:
        """What an agent reads when its turn comes: what people wrote, and what the one before it said."""
        agent = self._run.agent(receiver)
        for typed in self._typed:
            agent.add(typed)
        self._typed = []
        if self._before is None or self._before[0] == receiver:
            return
        sender, step, ref = self._before
        if self._handoff is not None and self._handoff[1] == receiver:
            agent.add(steps.Delivery(step.last_time, step.place, sent=self._handoff[0]))
        else:
            self._run.message(sender, receiver, step.last_time, step.place, ref)
        self._handoff = None

    def _take_call(self, agent: str, answer: steps.ModelCall, one: Any) -> None:
        call_id, tool = text_field(one, "id"), text_field(one, "name")
        call = self._run.call(agent, call_id, tool, answer.time, answer.place, mapping(one).get("arguments"), answer)
        if tool.startswith(_TRANSFER):
            receiver = masked(tool).removeprefix(_TRANSFER)
            self._run.address(call, receiver)
            self._handoff, self._is_swarm = (call, receiver), True
        else:
            self._calls[call_id] = _Open(agent, call)

    def _take_results(self, content: Any, time: float, place: steps.Place) -> None:
        for one in objects(content):
            call_id = text_field(one, "call_id")
            called = self._calls.pop(call_id, None)
            if called is not None:
                status, error = (Status.ERROR, "tool_error") if one.get("is_error") is True else (Status.OK, "")
                self._run.result(called.agent, call_id, time, place, one.get("content"), status, error)
            elif not text_field(one, "name").startswith(_TRANSFER):
                self._report.note(Problem.RESULT_WITHOUT_CALL, str(place))


@lru_cache(maxsize=1_000)
def _agent_of(name: str) -> str:
    """An agent without what the runtime puts behind its name."""
    return _RUNTIME.sub("", name)


def _messages(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The messages in a payload, which may be left undecoded, wherever they stand."""
    if depth == 0 and isinstance(value, (str, Raw)):
        value = parts.decoded(value)
    if isinstance(value, dict):
        if "source" in value and "type" in value and not isinstance(value["source"], dict):
            yield value
        elif depth < _MOST_NESTED:
            for inner in value.values():
                yield from _messages(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value if depth < _MOST_NESTED else ():
            yield from _messages(inner, depth + 1)
