"""Google ADK: sessions as JSON, with the names of members in either spelling, a trace for each session.

An event is an answer of a model, the results of its calls, or what a person wrote. Agents that run side by side have
branches that part (`fan.r1`, `fan.r2`); what one says, those of another branch do not read.
Shapes: `events/event.py`, `sessions/session.py` and `flows/llm_flows/base_llm_flow.py` of google-adk 2.13.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from orchtrace_corpus.trace.importers.conversations import transcript as steps
from orchtrace_corpus.trace.importers.conversations.team import Team, documents, traces_of
from orchtrace_corpus.trace.importers.conversations.transcript import text_field
from orchtrace_corpus.trace.importers.core.json_parts import Part, lenient
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened, contents
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, Problem
from orchtrace_corpus.trace.model.trace import Topology, Trace

_MEMBERS = ({"appName", "userId", "events"}, {"app_name", "user_id", "events"})
_TRANSFER = "transfer_to_agent"
_ASKS = frozenset(("adk_request_confirmation", "adk_request_credential", "adk_request_input", "get_user_choice"))
_LINES = (".jsonl", ".ndjson")
_NAMES = (("id", "appName"), ("id", "app_name"))
_MOST_BESIDE = 100
"""So many events of other branches are passed over to find what follows on one."""
_LATEST = 1e11  # seconds since 1970


class _Call(Struct, gc=False):
    """A call of a tool."""

    id: str = ""
    name: str = ""
    args: Any = None


class _Answer(Struct, gc=False):
    """What a tool answered."""

    id: str = ""
    response: Any = None


class _Piece(Struct, rename="camel", gc=False):
    """A part of a content."""

    text: str = ""
    function_call: _Call | None = None
    function_response: _Answer | None = None


class _Content(Struct, gc=False):
    """What an event says."""

    parts: list[_Piece] | None = None


class _Usage(Struct, rename="camel", gc=False):
    """The usage of an answer; the prompt includes what came from a cache, the candidates are without thoughts."""

    prompt_token_count: Any = None
    candidates_token_count: Any = None
    cached_content_token_count: Any = None
    thoughts_token_count: Any = None
    tool_use_prompt_token_count: Any = None


class _Said(Struct, rename="camel", gc=False):
    """The members of an event that say something about agents, calls or tokens."""

    author: str = ""
    branch: str = ""
    timestamp: Any = None
    partial: Any = None
    content: _Content | None = None
    usage_metadata: _Usage | None = None
    model_version: str = ""
    finish_reason: str = ""
    error_code: str = ""


_NO_USAGE = _Usage()


def recognises(beginning: Head) -> bool:
    """Whether a file that begins like this holds sessions of ADK: by their members."""
    return beginning.has_any(_MEMBERS)


def ties(opened: Opened) -> Sequence[str]:
    """What ties a file to others: nothing."""
    return [opened.file.path]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """The traces of the sessions.

    Raises:
        DataFileError: A file cannot be read.
        EmptyLogError: Nothing ran in any of them.
    """
    yield from traces_of(
        files, _sessions, lambda one, file, report: _Session(one, file, privacy, report).trace(), "event"
    )


class _Document(Struct, rename="camel", gc=False):
    """A session as it stands in a file."""

    id: str = ""
    app_name: str = ""
    events: list[_Said] | None = None


_DOCUMENT = Decoder(_Document)


class _Stored(NamedTuple):
    """A session, its events each with its line; None for one that is no object."""

    id: str
    app: str
    events: Iterable[tuple[_Said | None, int]]


def _sessions(file: LogFile, report: ImportReport) -> Iterator[_Stored]:
    """The sessions in a file; one that stands on a single line is decoded at once.

    Raises:
        DataFileError: The file cannot be read.
    """
    if not file.path.endswith(_LINES):
        data = contents(file).strip()
        with suppress(DecodeError, UnicodeDecodeError, RecursionError):
            if b"\n" not in data and data[:1] == b"{" and (one := _DOCUMENT.decode(data)).app_name:
                yield _Stored(one.id, one.app_name, ((said, 1) for said in one.events or ()))
                return
    for part in documents(file, report):
        members = part.members()
        in_python = "app_name" in members  # how members are spelled
        name, app = (members[one].value(str) or "" if one in members else "" for one in _NAMES[in_python])
        events = _one_by_one(members["events"], in_python=in_python) if "events" in members else ()
        yield _Stored(name, app, events)


def _one_by_one(events: Part, *, in_python: bool) -> Iterator[tuple[_Said | None, int]]:
    for part in events.elements():
        said: _Said | None = None if in_python else part.value(_Said)
        yield said or lenient(part.value(), _Said), part.line


class _Event(Struct, gc=False):
    """An event at its place, with when it is known to have been over."""

    said: _Said
    place: steps.Place
    time: float
    author: str
    branch: str
    end: float


class _Words(NamedTuple):
    """What somebody has said, until the others have read it; with the branches of those who have."""

    thread: steps.Transcript | None
    step: steps.Step
    ref: str
    branch: str
    readers: set[str]


class _Session:
    """Reads the events of a session into the transcripts of its agents."""

    def __init__(self, stored: _Stored, file: LogFile, privacy: Privacy, report: ImportReport) -> None:
        self._privacy, self._report, self._file = privacy, report, file
        self._team = Team(privacy, report)
        self._threads: dict[str, steps.Transcript] = {}
        self._calls: dict[str, tuple[steps.Transcript, steps.ToolCall]] = {}
        self._words: list[_Words] = []
        self._handoffs: dict[str, steps.ToolCall] = {}  # by who takes over
        self._topology = Topology.UNKNOWN
        self._id, self._app = stored.id, stored.app
        self._events = list(self._read(stored.events))
        paid = {event.author for event in self._events if event.said.usage_metadata is not None}
        self._models = paid or {event.author for event in self._events}

    def _read(self, events: Iterable[tuple[_Said | None, int]]) -> Iterator[_Event]:
        name, authors = self._file.name, dict[str, str]()
        for said, line in events:
            self._report.records_read += 1
            if said is None or not said.author:
                self._report.drop(Drop.NO_OBJECT, name, line)
            elif said.partial is True:
                self._report.pass_over("partial event")
            else:
                stamp = said.timestamp
                known = type(stamp) in (int, float) and 0 < stamp < _LATEST
                time = float(stamp) if known else steps.NO_TIME
                if (author := authors.get(said.author)) is None:
                    author = authors[said.author] = masked(said.author)
                yield _Event(said, steps.Place(name, line), time, author, said.branch, time)

    def trace(self) -> Trace | None:
        """The trace; None where nothing ran."""
        _set_ends(self._events)
        for event in self._events:
            texts, calls, is_answer = list[str](), list[_Call](), False
            content = event.said.content
            pieces = (content.parts if content is not None else None) or ()
            for piece in pieces:
                if piece.text:
                    texts.append(piece.text)
                if piece.function_call is not None:
                    calls.append(piece.function_call)
                if piece.function_response is not None:
                    is_answer = True
                    self._take_result(piece.function_response, event)
            if event.author == steps.USER:
                self._take_input(event, "\n".join(texts), is_answer=is_answer)
            elif not is_answer:
                self._take_answer(event, "\n".join(texts), calls, is_empty=not pieces)
        last = next((words.thread for words in reversed(self._words) if words.thread is not None), None)
        if last is not None:
            last.is_root = True
        return self._team.trace(self._id or "session", form="google_adk", system=self._app, topology=self._topology)

    def _thread(self, name: str) -> steps.Transcript:
        if name not in self._threads:
            self._threads[name] = self._team.thread(name, key=name)
        return self._threads[name]

    def _take_input(self, event: _Event, text: str, *, is_answer: bool) -> None:
        if text or not is_answer:
            ref = self._privacy.reference(text)
            typed = steps.UserInput(event.time, event.place, ref=ref)
            self._words = [_Words(None, typed, ref, "", set())]

    def _take_result(self, one: _Answer, event: _Event) -> None:
        known = self._calls.get(one.id)
        if known is None:
            self._report.note(Problem.RESULT_WITHOUT_CALL, str(event.place))
            return
        thread, call = known
        error = "tool_error" if isinstance(one.response, dict) and one.response.get("error") else ""
        self._team.result(call, thread, event.time, event.place, error, self._privacy.reference(one.response))

    def _take_answer(self, event: _Event, text: str, calls: Sequence[_Call], *, is_empty: bool) -> None:
        said, usage = event.said, event.said.usage_metadata
        thread, error = self._thread(event.author), said.error_code and masked(said.error_code)
        self._deliver(thread, event.branch)
        ref = self._privacy.reference(text)
        if usage is None and not calls and not error and event.author not in self._models:
            self._report.pass_over("event of an agent that is no model")
            note = steps.Note(event.time, event.place)
            thread.add(note)
            self._say(_Words(thread, note, ref, event.branch, set()))
            return
        if is_empty and usage is None and not error:
            self._report.pass_over("event without content")  # such as one that only changes the state
            return
        call = steps.ModelCall(event.time, event.place, end=max(event.end, event.time), ref=ref)
        call.final, call.error = not calls, error
        call.model = said.model_version and masked(said.model_version)
        if event.time != steps.NO_TIME:  # the request is measured; the end is concluded
            call.is_dated, call.more = True, {"t_request": event.time}
        if said.finish_reason:
            call.more = {**(call.more or {}), "finish_reason": masked(said.finish_reason)}
        usage = usage or _NO_USAGE
        put, more = usage.prompt_token_count, usage.tool_use_prompt_token_count
        put = put + more if type(put) is int and type(more) is int and more > 0 else put
        stated = put, usage.candidates_token_count, usage.cached_content_token_count, None, usage.thoughts_token_count
        self._team.spend(call, stated, reasoning_apart=True)
        thread.add(call)
        for one in calls:
            self._take_call(one, thread, call, event)
        self._say(_Words(thread, call, ref, event.branch, set()))

    def _take_call(self, one: _Call, thread: steps.Transcript, call: steps.ModelCall, event: _Event) -> None:
        tool = masked(one.name)
        found = steps.ToolCall(call.end, event.place, call=call, id=masked(one.id), tool=tool)
        found.ref = self._privacy.reference(one.args)
        if tool in _ASKS:
            found.purpose = steps.ASK
        elif tool == _TRANSFER:
            target = self._thread(masked(text_field(one.args, "agent_name")))
            found.purpose, found.target = steps.MESSAGE, target.agent
            self._handoffs[target.agent] = found
            self._topology = Topology.SWARM
        thread.add(found)
        self._calls.setdefault(one.id, (thread, found))

    def _say(self, words: _Words) -> None:
        """An agent's last words take the place of those before."""
        self._words = [one for one in self._words if one.thread is not words.thread or one.thread is None]
        self._words.append(words)

    def _deliver(self, thread: steps.Transcript, branch: str) -> None:
        """What an agent reads before it answers: what people and other agents have said, and it has not read."""
        sent = self._handoffs.pop(thread.agent, None)
        if sent is not None:
            thread.add(steps.Delivery(sent.time, sent.place, sent=sent))
        for words in self._words:
            if words.thread is thread or branch in words.readers or _is_beside(words.branch, branch):
                continue
            if any(not _is_beside(reader, branch) for reader in words.readers):
                continue
            step = words.step
            if words.thread is None and isinstance(step, steps.UserInput):
                thread.add(step if not words.readers else steps.Note(step.time, step.place))
            elif words.thread is not None and (sent is None or words.step is not sent.call):
                told = steps.ToolCall(
                    step.last_time, step.place, purpose=steps.MESSAGE, target=thread.agent, ref=words.ref
                )
                words.thread.add(told)
                thread.add(steps.Delivery(told.time, told.place, sent=told))
            words.readers.add(branch)
        self._words = [words for words in self._words if "" not in words.readers or words.thread is thread]


@lru_cache(maxsize=10_000)
def _is_beside(one: str, other: str) -> bool:
    """Whether two branches part, so that neither reads what is said in the other."""
    if not one or not other:
        return False
    return not f"{one}.".startswith(f"{other}.") and not f"{other}.".startswith(f"{one}.")


def _set_ends(events: Sequence[_Event]) -> None:
    """Say of each event when it was over at the latest.

    ADK dates an answer at the request for it. It has lasted until its results, or what others said on it; what a person
    writes says nothing of it.
    """
    for number, (one, after) in enumerate(pairwise(events)):
        next_one: _Event | None = after
        if one.branch != after.branch and _is_beside(one.branch, after.branch):
            later = events[number + 2 : number + _MOST_BESIDE]
            next_one = next((other for other in later if not _is_beside(one.branch, other.branch)), None)
        if next_one is not None and next_one.author != steps.USER:
            one.end = next_one.time
