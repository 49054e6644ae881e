"""Import sessions of Google ADK in JSON, with names of members in `camelCase` or `snake_case`.

An event is an answer of a model, the results of its calls, or the text of a person. Its branch is a path of agents.
Agents that run in parallel have different branches (`fan.r1`, `fan.r2`) and do not read one another's messages.
Shapes: `events/event.py`, `sessions/session.py` and `flows/llm_flows/base_llm_flow.py` of google-adk 2.13.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import repeat
from typing import Any, TypeAlias

from msgspec import DecodeError, Struct
from msgspec.json import decode

from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.json_parts import Part, lenient
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.run import Run, traces_of
from orchtrace_corpus.trace.importers.core.times import LATEST, NO_TIME
from orchtrace_corpus.trace.importers.core.values import text_field
from orchtrace_corpus.trace.model.decode import LINES
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, Problem
from orchtrace_corpus.trace.model.terms import Topology
from orchtrace_corpus.trace.model.trace import Trace

_SESSION_MEMBERS = ({"appName", "userId", "events"}, {"app_name", "user_id", "events"})
_TRANSFER = "transfer_to_agent"
_ASK_TOOLS = frozenset(("adk_request_confirmation", "adk_request_credential", "adk_request_input", "get_user_choice"))
_MAX_PARALLEL_EVENTS = 100  # an answer's end is searched among so many events after it


class _Call(Struct, gc=False):
    id: str = ""
    name: str = ""
    args: Any = None


class _Response(Struct, gc=False):
    id: str = ""
    response: Any = None


class _Part(Struct, rename="camel", gc=False):
    text: str = ""
    function_call: _Call | None = None
    function_response: _Response | None = None


class _Content(Struct, gc=False):
    parts: list[_Part] | None = None


class _Usage(Struct, rename="camel", gc=False):
    """The usage of an answer. The prompt includes cached tokens; the candidates, its output, exclude thoughts."""

    prompt_token_count: Any = None
    candidates_token_count: Any = None
    cached_content_token_count: Any = None
    thoughts_token_count: Any = None
    tool_use_prompt_token_count: Any = None


class _Event(Struct, rename="camel", gc=False):
    """The members of an event that say something about agents, calls or tokens, and its place in the log."""

    model_version: str = ""
    content: _Content | None = None
    partial: Any = None
    finish_reason: str = ""
    error_code: str = ""
    usage_metadata: _Usage | None = None
    author: str = ""
    branch: str = ""
    timestamp: float = NO_TIME
    place: Any = None


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this holds sessions of ADK, by the names of their members."""
    return beginning.has_any(_SESSION_MEMBERS)


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield a trace for each session."""

    def trace(session: tuple[str, str, _Events], _: logs.LogFile, report: ImportReport) -> Trace:
        name, app, events = session
        return _Session(name, app, events, Run("google_adk", privacy, report, are_peers=True)).trace()

    yield from traces_of(files, _sessions, trace, "event")


class _Document(Struct, rename="camel", gc=False):
    id: str = ""
    app_name: str = ""
    events: list[_Event] | None = None


_Events: TypeAlias = Iterable[tuple[_Event | None, steps.Place]]
"""Events, each with its place; None for one that is no object."""


def _sessions(file: logs.LogFile, report: ImportReport) -> Iterator[tuple[str, str, _Events]]:
    """Yield the name, the app and the events of each session in a file."""
    if not file.path.endswith(LINES):
        data = logs.contents(file)
        if data[:1] == b"{" and data.find(b"\n", 0, -1) < 0:  # on a single line: no places are lost if decoded at once
            with suppress(DecodeError, UnicodeDecodeError, RecursionError):
                session = decode(data, type=_Document)
                if session.app_name:
                    yield session.id, session.app_name, zip(session.events or (), repeat(steps.Place(file.name, 1)))
                    return
    for document in logs.documents(file, report):
        members = document.members()
        is_snake_case = "app_name" in members
        app_name = "app_name" if is_snake_case else "appName"
        name = members["id"].value(str) or "" if "id" in members else ""
        app = members[app_name].value(str) or "" if app_name in members else ""
        parts = members["events"].elements() if "events" in members else ()
        placed_events = (
            (_event(part, is_snake_case=is_snake_case), steps.Place(file.name, part.line)) for part in parts
        )
        yield name, app, placed_events


def _event(part: Part, *, is_snake_case: bool) -> _Event | None:
    event: _Event | None = None
    if not is_snake_case:
        event = part.value(_Event)
    return event or lenient(part.value(), _Event)


class _Message(Struct, gc=False):
    """The last message of an agent or a person."""

    agent: str | None  # None for a person
    step: steps.Step
    ref: str  # the reference to its text
    branch: str
    readers: tuple[str, ...] = ()  # the branches that have read it


class _Session:
    def __init__(self, name: str, app: str, events: _Events, run: Run) -> None:
        self._run, self._refer, self._report, self._masked = run, run.privacy.reference, run.report, run.masked
        self._callers: dict[str, str] = {}  # by id of a call: its agent
        self._messages: dict[str, _Message] = {}  # by sender, in the order in which they were sent
        self._reader: str | None = None  # the agent that has read all messages for its branch, `_branch`
        self._branch = ""
        self._handoffs: dict[str, steps.ToolCall] = {}  # by the agent that takes over
        self._topology = Topology.UNKNOWN
        run.name, run.system = name or "session", app
        self._events = self._check_events(events)

    def _check_events(self, events: _Events) -> list[_Event]:
        """Return the valid whole events, with their places, and with `NO_TIME` for invalid times."""
        events_read: list[_Event] = []
        for event, place in events:
            self._report.records_read += 1
            if event is None or not event.author:
                self._report.drop(Drop.NO_OBJECT, place.file, place.line)
            elif event.partial is True:
                self._report.skip("partial event")
            else:
                time: Any = event.timestamp  # of any type if the event was decoded leniently
                if type(time) is not float or not 0 < time <= LATEST:
                    event.timestamp = float(time) if type(time) is int and 0 < time <= LATEST else NO_TIME
                event.place = place
                events_read.append(event)
        return events_read

    @cached_property
    def _agents_with_usage(self) -> frozenset[str]:
        """Return the agents with usage: only these are models, if the log has usage at all."""
        return frozenset(self._masked(event.author) for event in self._events if event.usage_metadata is not None)

    def trace(self) -> Trace:
        """Return the trace of the session."""
        for index, event in enumerate(self._events):
            texts: list[str] = []
            calls: list[_Call] = []
            parts: list[_Part] = []
            if event.content is not None:
                parts = event.content.parts or []
                event.content = None  # the event stays in memory, its content need not
            has_results = False
            for part in parts:
                if part.text:
                    texts.append(part.text)
                if part.function_call is not None:
                    calls.append(part.function_call)
                if part.function_response is not None:
                    has_results = True
                    call_id, response = part.function_response.id, part.function_response.response
                    caller = self._callers.get(call_id)
                    if caller is None:
                        self._report.note(Problem.RESULT_WITHOUT_CALL, str(event.place))
                        continue
                    error = "tool_error" if type(response) is dict and response.get("error") else ""
                    self._run.result(caller, call_id, event.timestamp, event.place, response, error=error)
            if event.author == steps.USER:
                if texts or not has_results:
                    ref = self._refer("\n".join(texts))
                    prompt = steps.UserInput(event.timestamp, event.place, ref=ref)
                    self._messages = {steps.USER: _Message(None, prompt, ref, "")}
                    self._reader = None
            elif not has_results:
                self._read_answer(index, event, "\n".join(texts), calls, is_empty=not parts)
        agents = [message.agent for message in self._messages.values() if message.agent is not None]
        if agents:  # the last one answers the person
            self._run.agent(agents[-1]).is_root = True
        return self._run.trace(topology=self._topology)

    def _read_answer(self, index: int, event: _Event, text: str, calls: Sequence[_Call], *, is_empty: bool) -> None:
        """Read an event of an agent: the answer of a model, or the output of an agent that is no model."""
        branch, time, place = event.branch, event.timestamp, event.place
        usage = event.usage_metadata
        error = self._masked(event.error_code) if event.error_code else ""
        agent = self._masked(event.author)
        if self._reader != agent or self._branch != branch:  # else no other agent has sent a message since
            self._deliver(agent, branch)
        ref = self._refer(text)
        if (
            usage is None
            and not calls
            and not error
            and self._agents_with_usage
            and agent not in self._agents_with_usage
        ):
            self._report.skip("event of an agent that is not a model")
            self._say(agent, steps.Note(time, place), ref, branch)
            return
        if is_empty and usage is None and not error:
            self._report.skip("event without content")  # such as a change of the state
            return
        model = self._masked(event.model_version) if event.model_version else ""
        more = {"finish_reason": self._masked(event.finish_reason)} if event.finish_reason else None
        end, is_dated = self._end_of(index, event), time != NO_TIME  # the log dates the request, not the end
        call = steps.ModelCall(time, place, end=end, model=model, ref=ref, error=error, more=more, is_dated=is_dated)
        call.final = not calls
        usage = usage or _Usage()
        prompt, from_tools = usage.prompt_token_count, usage.tool_use_prompt_token_count
        if type(from_tools) is int and type(prompt) is int and from_tools > 0:
            prompt += from_tools
        cached, thoughts = usage.cached_content_token_count, usage.thoughts_token_count
        stated = prompt, usage.candidates_token_count, cached, None, thoughts
        self._run.spend(call, stated, reasoning_apart=True)
        self._say(agent, call, ref, branch)
        for request in calls:
            self._read_call(request, agent, call)

    def _end_of(self, index: int, event: _Event) -> float:
        """Return the latest possible end of an answer: the time of the next event that is not parallel to it.

        Before an event of a person, or without a later event, the end is unknown: it is then the time of the request.
        """
        events, begin, branch = self._events, event.timestamp, event.branch
        parallel_branch = None  # the last branch that was found to be parallel, as the next events often have it, too
        other_index, limit = index + 1, index + _MAX_PARALLEL_EVENTS
        while other_index < limit and other_index < len(events):  # mostly once: a slice or a range takes longer
            other = events[other_index]
            if other.branch == branch or (other.branch != parallel_branch and not _are_parallel(branch, other.branch)):
                time = other.timestamp
                return begin if time < begin or other.author == steps.USER else time
            parallel_branch = other.branch
            other_index += 1
        return begin

    def _read_call(self, request: _Call, agent: str, answer: steps.ModelCall) -> None:
        call = self._run.call(agent, request.id, request.name, answer.end, answer.place, request.args, answer)
        if call.tool in _ASK_TOOLS:
            call.purpose = steps.ASK
        elif call.tool == _TRANSFER:
            receiver = self._masked(text_field(request.args, "agent_name"))
            self._run.address(call, receiver)
            self._handoffs[receiver] = call
            self._reader = None
            self._topology = Topology.SWARM
        self._callers.setdefault(request.id, agent)

    def _say(self, agent: str, step: steps.Step, ref: str, branch: str) -> None:
        """Add a step of an agent, and make it the agent's last message."""
        self._run.agents[agent].add(step)
        self._messages.pop(agent, None)  # so that it comes after those of others
        self._messages[agent] = _Message(agent, step, ref, branch)

    def _deliver(self, agent: str, branch: str) -> None:
        """Give an agent the messages of people and other agents that nobody on its branch has read."""
        self._reader, self._branch = agent, branch
        transcript, handoff = self._run.agent(agent), self._handoffs.pop(agent, None)
        if handoff is not None:
            transcript.add(steps.Delivery(handoff.time, handoff.place, sent=handoff))
        for message in self._messages.values():
            if message.agent == agent or branch in message.readers or _are_parallel(message.branch, branch):
                continue
            if any(not _are_parallel(reader, branch) for reader in message.readers):
                continue
            step = message.step
            if message.agent is None and isinstance(step, steps.UserInput):
                is_first = not message.readers  # a parallel branch reads the same input as a note
                transcript.add(step if is_first else steps.Note(step.time, step.place))
            elif message.agent is not None and (handoff is None or step is not handoff.model_call):
                self._run.message(message.agent, agent, step.last_time, step.place, message.ref)
            message.readers += (branch,)
        self._messages = {  # a message that was read outside of parallel branches is dropped
            name: message
            for name, message in self._messages.items()
            if "" not in message.readers or message.agent == agent
        }


@lru_cache(maxsize=10_000)
def _are_parallel(branch: str, other: str) -> bool:
    """Return True if neither branch contains the other, as `fan` contains `fan.r1`."""
    if not branch or not other:
        return False
    return not f"{branch}.".startswith(f"{other}.") and not f"{other}.".startswith(f"{branch}.")
