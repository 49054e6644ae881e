"""Google ADK: sessions as JSON, with the names of members in either spelling, a trace for each session.

An event is an answer of a model, the results of its calls, or what a person wrote. Agents that run side by side have
branches that part (`fan.r1`, `fan.r2`); what one says, those of another branch do not read.
Shapes: `events/event.py`, `sessions/session.py` and `flows/llm_flows/base_llm_flow.py` of google-adk 2.13.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from orchtrace_corpus.trace.importers.conversations import transcript as steps
from orchtrace_corpus.trace.importers.conversations.team import Team
from orchtrace_corpus.trace.importers.conversations.transcript import text_field
from orchtrace_corpus.trace.importers.core.json_parts import Part
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.spans.files import records
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, Problem
from orchtrace_corpus.trace.model.trace import Topology, Trace

_MEMBERS = ({"appName", "userId", "events"}, {"app_name", "user_id", "events"})
_TRANSFER = "transfer_to_agent"
_ASKS = frozenset(("adk_request_confirmation", "adk_request_credential", "adk_request_input", "get_user_choice"))
_LATEST = 1e11  # seconds since 1970

Object = Mapping[str, Any]


def recognises(beginning: Head) -> bool:
    """Whether a file that begins like this holds sessions of ADK: by their members."""
    return any(members <= beginning.outline for members in _MEMBERS)


def ties(opened: Opened) -> Sequence[str]:
    """What ties a file to others: nothing."""
    return [opened.file.path]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """The traces of the sessions.

    Raises:
        DataFileError: A file cannot be read.
        EmptyLogError: Nothing ran in any of them.
    """
    found, report = 0, ImportReport()
    for file in files:
        for record in records(file, report, None):
            value: Part = record.value
            for part in value.elements() if value.is_array else (value,):
                trace = _Session(part, file, privacy, report).trace()
                if trace is not None:
                    found += 1
                    yield trace
                    report = ImportReport()
    if not found:
        raise EmptyLogError(f"no event of an agent in {', '.join(file.name for file in files[:3])}")


def _member(value: Any, name: str) -> Any:
    """A member, in the spelling of JSON or that of Python."""
    if not isinstance(value, dict):
        return None
    found = value.get(name)
    return value.get(_in_python(name)) if found is None else found


@cache
def _in_python(name: str) -> str:
    """The name of a member as Python has it."""
    return "".join(f"_{one.lower()}" if one.isupper() else one for one in name)


def _text(value: Any, name: str) -> str:
    found = _member(value, name)
    return found if isinstance(found, str) else ""


class _Event(NamedTuple):
    """An event at its place, with when it is known to have been over."""

    value: Object
    place: steps.Place
    time: float
    author: str
    branch: str
    end: float = steps.NO_TIME


class _Words(NamedTuple):
    """What somebody has said, until the others have read it; with the branches of those who have."""

    thread: steps.Transcript | None
    step: steps.Step
    ref: str
    branch: str
    readers: list[str]


class _Session:
    """Reads the events of a session into the transcripts of its agents."""

    def __init__(self, part: Part, file: LogFile, privacy: Privacy, report: ImportReport) -> None:
        self._privacy, self._report, self._file = privacy, report, file
        self._team = Team(privacy, report)
        self._threads: dict[str, steps.Transcript] = {}
        self._calls: dict[str, tuple[steps.Transcript, steps.ToolCall]] = {}
        self._words: list[_Words] = []
        self._handoffs: dict[str, steps.ToolCall] = {}  # by who takes over
        self._topology = Topology.UNKNOWN
        members = part.members()
        self._id, self._app = (
            one if isinstance(one := members[name].value() if name in members else None, str) else ""
            for name in ("id", "appName" if "appName" in members else "app_name")
        )
        self._events = list(self._read(members["events"])) if "events" in members else []
        paid = {event.author for event in self._events if isinstance(_member(event.value, "usageMetadata"), dict)}
        self._models = paid or {event.author for event in self._events}

    def _read(self, events: Part) -> Iterator[_Event]:
        for part in events.elements():
            value, place = part.value(), steps.Place(self._file.name, part.line)
            self._report.records_read += 1
            if not isinstance(value, dict) or not _text(value, "author"):
                self._report.drop(Drop.NO_OBJECT, place.file, place.line)
            elif _member(value, "partial") is True:
                self._report.pass_over("partial event")
            else:
                stamp = _member(value, "timestamp")
                known = type(stamp) in (int, float) and 0 < stamp < _LATEST
                time = float(stamp) if known else steps.NO_TIME
                yield _Event(value, place, time, masked(_text(value, "author")), _text(value, "branch"))

    def trace(self) -> Trace | None:
        """The trace; None where nothing ran."""
        for event in _with_ends(self._events):
            parts = _member(_member(event.value, "content"), "parts")
            found = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
            answers = [one for part in found if isinstance(one := _member(part, "functionResponse"), dict)]
            for one in answers:
                self._take_result(one, event)
            if event.author == steps.USER:
                self._take_input(event, found, is_answer=bool(answers))
            elif not answers:
                self._take_answer(event, found)
        last = next((words.thread for words in reversed(self._words) if words.thread is not None), None)
        if last is not None:
            last.is_root = True
        return self._team.trace(self._id or "session", form="google_adk", system=self._app, topology=self._topology)

    def _thread(self, name: str) -> steps.Transcript:
        if name not in self._threads:
            self._threads[name] = self._team.thread(name, key=name)
        return self._threads[name]

    def _take_input(self, event: _Event, parts: Sequence[Object], *, is_answer: bool) -> None:
        text = [part["text"] for part in parts if isinstance(part.get("text"), str)]
        if text or not is_answer:
            ref = self._privacy.reference("\n".join(text) or parts)
            typed = steps.UserInput(event.time, event.place, ref=ref)
            self._words = [_Words(None, typed, ref, "", [])]

    def _take_result(self, one: Object, event: _Event) -> None:
        known = self._calls.get(_text(one, "id"))
        if known is None:
            self._report.note(Problem.RESULT_WITHOUT_CALL, str(event.place))
            return
        response = _member(one, "response")
        error = "tool_error" if isinstance(response, dict) and response.get("error") else ""
        thread, call = known
        self._team.result(call, thread, event.time, event.place, error, self._privacy.reference(response))

    def _take_answer(self, event: _Event, parts: Sequence[Object]) -> None:
        thread = self._thread(event.author)
        self._deliver(thread, event.branch)
        calls = [one for part in parts if isinstance(one := _member(part, "functionCall"), dict)]
        text = "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
        ref = self._privacy.reference(text)
        usage, error = _member(event.value, "usageMetadata"), masked(_text(event.value, "errorCode"))
        if not isinstance(usage, dict) and not calls and not error and event.author not in self._models:
            self._report.pass_over("event of an agent that is no model")
            note = steps.Note(event.time, event.place)
            thread.add(note)
            self._say(_Words(thread, note, ref, event.branch, []))
            return
        if not parts and not isinstance(usage, dict) and not error:
            self._report.pass_over("event without content")  # such as one that only changes the state
            return
        call = steps.ModelCall(
            event.time, event.place, end=max(event.end, event.time), ref=ref, final=not calls, error=error
        )
        call.model = masked(_text(event.value, "modelVersion"))
        reason = masked(_text(event.value, "finishReason"))
        call.more = {"finish_reason": reason} if reason else {}
        names = ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", "", "thoughtsTokenCount")
        put, got, read, _, thought = (_member(usage, name) for name in names)
        more = _member(usage, "toolUsePromptTokenCount")
        put = put + more if type(put) is int and type(more) is int and more > 0 else put
        self._team.spend(call, (put, got, read, None, thought), reasoning_apart=True)
        thread.add(call)
        for one in calls:
            self._take_call(one, thread, call, event)
        self._say(_Words(thread, call, ref, event.branch, []))

    def _take_call(self, one: Object, thread: steps.Transcript, call: steps.ModelCall, event: _Event) -> None:
        name, tool, given = _text(one, "id"), masked(_text(one, "name")), _member(one, "args")
        found = steps.ToolCall(call.end, event.place, call=call, id=masked(name), tool=tool)
        found.ref = self._privacy.reference(given)
        if tool in _ASKS:
            found.purpose = steps.ASK
        elif tool == _TRANSFER:
            target = self._thread(masked(text_field(given, "agent_name")))
            found.purpose, found.target = steps.MESSAGE, target.agent
            self._handoffs[target.agent] = found
            self._topology = Topology.SWARM
        thread.add(found)
        self._calls.setdefault(name, (thread, found))

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
            is_read = any(not _is_beside(reader, branch) for reader in words.readers)
            if words.thread is thread or is_read or _is_beside(words.branch, branch):
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
            words.readers.append(branch)


def _is_beside(one: str, other: str) -> bool:
    """Whether two branches part, so that neither reads what is said in the other."""
    pairs = zip(one.split("."), other.split("."), strict=False)
    return bool(one and other) and any(a != b for a, b in pairs)


def _with_ends(events: Sequence[_Event]) -> Iterator[_Event]:
    """The events, each with when it was over at the latest.

    ADK dates an answer at the request for it. It has lasted until its results, or what others said on it; what a person
    writes says nothing of it.
    """
    following: dict[int, float] = {}
    for number, (one, after) in enumerate(pairwise(events)):
        later = (other for other in (after, *events[number + 2 : number + 20]))
        next_one = next((other for other in later if not _is_beside(one.branch, other.branch)), None)
        if next_one is not None and (next_one.author != steps.USER):
            following[number] = next_one.time
    for number, event in enumerate(events):
        yield event._replace(end=following.get(number, event.time))
