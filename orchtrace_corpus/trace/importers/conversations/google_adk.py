"""Google ADK: sessions as JSON, with the names of members in either spelling, a trace for each session.

An event is an answer of a model, the results of its calls, or the text of a person. Agents that run in parallel have
branches that part (`fan.r1`, `fan.r2`): none reads what another of them says.
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
from orchtrace_corpus.trace.model.terms import TokenBasis, Topology
from orchtrace_corpus.trace.model.trace import Trace

_MEMBERS = ({"appName", "userId", "events"}, {"app_name", "user_id", "events"})
_UNKNOWN = TokenBasis.UNKNOWN  # looking up enum members is slow on Python 3.11
_TRANSFER = "transfer_to_agent"
_ASKS = frozenset(("adk_request_confirmation", "adk_request_credential", "adk_request_input", "get_user_choice"))
_NAMES = (("id", "appName"), ("id", "app_name"))
_MOST_BESIDE = 100  # the most events of other branches between an event and the next of its own


class _Call(Struct, gc=False):
    id: str = ""
    name: str = ""
    args: Any = None


class _Answer(Struct, gc=False):
    id: str = ""
    response: Any = None


class _Piece(Struct, rename="camel", gc=False):
    text: str = ""
    function_call: _Call | None = None
    function_response: _Answer | None = None


class _Content(Struct, gc=False):
    parts: list[_Piece] | None = None


class _Usage(Struct, rename="camel", gc=False):
    """The usage of an answer; the prompt includes cached tokens, the candidates exclude thoughts."""

    prompt_token_count: Any = None
    candidates_token_count: Any = None
    cached_content_token_count: Any = None
    thoughts_token_count: Any = None
    tool_use_prompt_token_count: Any = None


class _Event(Struct, rename="camel", gc=False):
    """The members of an event that say something about agents, calls or tokens; `place` is added here."""

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
    """Return True if a file that begins like this holds sessions of ADK: by their members."""
    return beginning.has_any(_MEMBERS)


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the traces of the sessions."""

    def trace(session: tuple[str, str, _Events], _: logs.LogFile, report: ImportReport) -> Trace:
        return _Session(*session, Run("google_adk", privacy, report, are_peers=True)).trace()

    yield from traces_of(files, _sessions, trace, "event")


class _Document(Struct, rename="camel", gc=False):
    id: str = ""
    app_name: str = ""
    events: list[_Event] | None = None


_Events: TypeAlias = Iterable[tuple[_Event | None, steps.Place]]
"""Events, each with its place; None for one that is no object."""


def _sessions(file: logs.LogFile, report: ImportReport) -> Iterator[tuple[str, str, _Events]]:
    """Yield the sessions in a file: name, app and events. A file of a single line is decoded at once."""
    if not file.path.endswith(LINES):
        data = logs.contents(file)
        is_line = data.find(b"\n", 0, -1) < 0 and data[:1] == b"{"
        with suppress(DecodeError, UnicodeDecodeError, RecursionError):
            if is_line and (session := decode(data, type=_Document)).app_name:
                yield session.id, session.app_name, zip(session.events or (), repeat(steps.Place(file.name, 1)))
                return
    for part in logs.documents(file, report):
        members = part.members()
        in_python = "app_name" in members  # how members are spelled
        name, app = (members[key].value(str) or "" if key in members else "" for key in _NAMES[in_python])
        parts = members["events"].elements() if "events" in members else ()
        yield name, app, ((_event(part, in_python=in_python), steps.Place(file.name, part.line)) for part in parts)


def _event(part: Part, *, in_python: bool) -> _Event | None:
    event: _Event | None = None if in_python else part.value(_Event)
    return event or lenient(part.value(), _Event)


class _Words(Struct, gc=False):
    """The last words of an agent or a person, and the branches that have read them."""

    agent: str | None  # None for a person
    step: steps.Step
    ref: str
    branch: str
    readers: tuple[str, ...] = ()


class _Session:
    def __init__(self, name: str, app: str, events: _Events, run: Run) -> None:
        self._run, self._refer, self._report, self._masked = run, run.privacy.reference, run.report, run.masked
        self._callers: dict[str, str] = {}  # agents by the ids of their calls
        self._words: dict[str, _Words] = {}  # by speaker, the last one last
        self._reader: str | None = None  # the agent that has read everything, on `_branch`
        self._handoffs: dict[str, steps.ToolCall] = {}  # by the agent that takes over
        self._branch, self._topology = "", Topology.UNKNOWN
        run.name, run.system, self._events = name or "session", app, self._read(events)

    def _read(self, events: _Events) -> list[_Event]:
        """Return the events that count, with places and checked times."""
        events_read = list[_Event]()
        for event, place in events:
            self._report.records_read += 1
            if event is None or not event.author:
                self._report.drop(Drop.NO_OBJECT, place.file, place.line)
            elif event.partial is True:
                self._report.skip("partial event")
            else:
                stamp = event.timestamp  # of any type if the event was decoded leniently
                if type(stamp) is not float or not 0 < stamp <= LATEST:
                    event.timestamp = float(stamp) if type(stamp) is int and 0 < stamp <= LATEST else NO_TIME
                event.place = place
                events_read.append(event)
        return events_read

    @cached_property
    def _paid(self) -> frozenset[str]:
        """Return the agents with usage, which are models; empty if the log has no usage."""
        return frozenset(self._masked(event.author) for event in self._events if event.usage_metadata is not None)

    def trace(self) -> Trace:
        for index, event in enumerate(self._events):
            texts: list[str] = []
            calls: list[_Call] = []
            content, event.content = event.content, None  # frees it as soon as it was read
            pieces, is_answer = (content.parts if content is not None else None) or (), False
            for piece in pieces:
                if piece.text:
                    texts.append(piece.text)
                if piece.function_call is not None:
                    calls.append(piece.function_call)
                if piece.function_response is not None:
                    is_answer = True
                    answer = piece.function_response
                    caller = self._callers.get(answer.id)
                    if caller is None:
                        self._report.note(Problem.RESULT_WITHOUT_CALL, str(event.place))
                        continue
                    response = answer.response
                    error = "tool_error" if type(response) is dict and response.get("error") else ""
                    self._run.result(caller, answer.id, event.timestamp, event.place, response, error=error)
            if event.author == steps.USER:
                if texts or not is_answer:
                    ref = self._refer("\n".join(texts))
                    typed = steps.UserInput(event.timestamp, event.place, ref=ref)
                    self._words, self._reader = {steps.USER: _Words(None, typed, ref, "")}, None
            elif not is_answer:
                self._take_answer(index, event, "\n".join(texts), calls, is_empty=not pieces)
        last = next((words.agent for words in reversed(self._words.values()) if words.agent is not None), None)
        if last is not None:
            self._run.agent(last).is_root = True
        return self._run.trace(topology=self._topology)

    def _take_answer(self, index: int, event: _Event, text: str, calls: Sequence[_Call], *, is_empty: bool) -> None:
        branch, time, place = event.branch, event.timestamp, event.place
        usage, error = event.usage_metadata, event.error_code and self._masked(event.error_code)
        agent = self._masked(event.author)
        if self._reader != agent or self._branch != branch:  # an agent that goes on has nothing new to read
            self._deliver(agent, branch)
        ref = self._refer(text)
        if usage is None and not calls and not error and self._paid and agent not in self._paid:
            self._report.skip("event of an agent that is not a model")
            self._say(agent, steps.Note(time, place), ref, branch)
            return
        if is_empty and usage is None and not error:
            self._report.skip("event without content")  # such as a change of the state
            return
        model = self._masked(event.model_version) if event.model_version else ""
        more = {"finish_reason": self._masked(event.finish_reason)} if event.finish_reason else None
        end, is_dated = self._end(index, event), time != NO_TIME  # the log dates the request, not the end
        call = steps.ModelCall(time, place, 0.0, end, model, _UNKNOWN, ref, not calls, False, error, "", more, is_dated)
        usage = usage or _Usage()
        put, more = usage.prompt_token_count, usage.tool_use_prompt_token_count
        put = put + more if type(more) is int and type(put) is int and more > 0 else put
        stated = put, usage.candidates_token_count, usage.cached_content_token_count, None, usage.thoughts_token_count
        self._run.spend(call, stated, reasoning_apart=True)
        self._say(agent, call, ref, branch)
        for request in calls:
            self._take_call(request, agent, call)

    def _end(self, index: int, event: _Event) -> float:
        """Return the latest end of an answer, which ADK dates at its request: the next event, if no person wrote it."""
        events, begin, branch, passed = self._events, event.timestamp, event.branch, None
        at, last = index + 1, index + _MOST_BESIDE
        while at < last and at < len(events):  # it is mostly the next: a slice or a range takes longer
            other = events[at]
            if other.branch == branch or (other.branch != passed and not _is_beside(branch, other.branch)):
                time = other.timestamp
                return begin if time < begin or other.author == steps.USER else time
            passed, at = other.branch, at + 1  # the next events are often of the same branch
        return begin

    def _take_call(self, request: _Call, agent: str, answer: steps.ModelCall) -> None:
        call = self._run.call(agent, request.id, request.name, answer.end, answer.place, request.args, answer)
        if call.tool in _ASKS:
            call.purpose = steps.ASK
        elif call.tool == _TRANSFER:
            receiver = self._masked(text_field(request.args, "agent_name"))
            self._run.address(call, receiver)
            self._handoffs[receiver], self._reader = call, None
            self._topology = Topology.SWARM
        self._callers.setdefault(request.id, agent)

    def _say(self, agent: str, step: steps.Step, ref: str, branch: str) -> None:
        """Add a step, and make it the agent's last words, which come after those of others."""
        self._run.agents[agent].add(step)
        self._words.pop(agent, None)
        self._words[agent] = _Words(agent, step, ref, branch)

    def _deliver(self, agent: str, branch: str) -> None:
        """Let an agent read what people and other agents have said since it last did."""
        self._reader, self._branch = agent, branch
        transcript, sent = self._run.agent(agent), self._handoffs.pop(agent, None)
        if sent is not None:
            transcript.add(steps.Delivery(sent.time, sent.place, sent=sent))
        for words in self._words.values():
            if words.agent == agent or branch in words.readers or _is_beside(words.branch, branch):
                continue
            if any(not _is_beside(reader, branch) for reader in words.readers):
                continue
            step = words.step
            if words.agent is None and isinstance(step, steps.UserInput):
                transcript.add(step if not words.readers else steps.Note(step.time, step.place))
            elif words.agent is not None and (sent is None or step is not sent.call):
                self._run.message(words.agent, agent, step.last_time, step.place, words.ref)
            words.readers += (branch,)
        unread = self._words.items()
        self._words = {name: words for name, words in unread if "" not in words.readers or words.agent == agent}


@lru_cache(maxsize=10_000)
def _is_beside(branch: str, other: str) -> bool:
    """Return True if neither branch contains the other."""
    if not branch or not other:
        return False
    return not f"{branch}.".startswith(f"{other}.") and not f"{other}.".startswith(f"{branch}.")
