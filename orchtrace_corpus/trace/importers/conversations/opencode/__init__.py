"""OpenCode sessions, one for each agent, from its database or from JSON files.

Records are typed values, whatever is wrong with them. A session is put together from its messages and their parts: an
answer for each step of a message, which call spawned which session, what came back.
"""

import os
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from operator import attrgetter
from typing import Any, TypeAlias

from msgspec import DecodeError, Struct, field

from orchtrace_corpus.base import budget
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace.importers.core import json_parts as parts
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.identity import current_answers, families
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, moment_ms
from orchtrace_corpus.trace.importers.core.usage import counts
from orchtrace_corpus.trace.importers.core.values import dollars, string, text_field
from orchtrace_corpus.trace.model.decode import LINES
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import Status, TokenBasis
from orchtrace_corpus.trace.model.trace import Trace

_SQLITE = "SQLite format 3\0"
_TABLE = re.compile(r"CREATE TABLE [`\"\[]?part[`\"\]]?\s*\([^;]*message_id[^;]*session_id", re.IGNORECASE)
_ID = re.compile(r'"(?:id|sessionID)"\s*:\s*"(?:ses|msg|prt)_')
_SESSION = re.compile(r'"(?:sessionID|id|parentID)"\s*:\s*"(ses_[^"]{1,100})"')
_EXPORT = re.compile(r'\s*\{\s*"info"\s*:\s*\{\s*"id"\s*:\s*"ses_')
_MEMBERS = (
    {"projectID", "directory", "version"}, {"sessionID", "role", "time"}, {"sessionID", "messageID", "type"},
    {"sessionID", "timestamp", "type", "part"}, {"info", "messages"},
)  # fmt: skip
"""Members of a session, a message, a part, and of what `run` and `export` print."""
_DOCUMENTS = (".json", ".jsonl", ".ndjson")
"""The suffixes of documents; a database with one of them is tied to no other file."""
_ABORTED = "MessageAbortedError"
_RESTATED, _UNKNOWN = LedgerLine.RESTATED, TokenBasis.UNKNOWN  # which Python 3.11 takes long to find
_Stated: TypeAlias = tuple[tuple[Any, ...], bool, int]
"""The numbers of a usage: input, output, cache reads and writes, reasoning, whether it is apart, and the total."""


def recognises(beginning: Head) -> bool:
    """Return True if a file that begins like this is of OpenCode, by tables of its database, or by ids and members."""
    if beginning.text.startswith(_SQLITE):
        return _TABLE.search(beginning.text) is not None
    is_likely = _ID.search(beginning.text) is not None
    return is_likely and (_EXPORT.match(beginning.text) is not None or beginning.has_any(_MEMBERS))


def ties(opened: Opened) -> Sequence[str]:
    """Return what ties a file to others: its session, the one above it, and the database its folder was moved to."""
    path, text = opened.file.path, opened.first().text
    if text.startswith(_SQLITE):
        return [os.path.realpath(path)]
    folder = os.path.dirname(os.path.realpath(path) if os.path.islink(path) else path)
    database = opened.of_folders.get(("database", folder))
    if database is None:
        above, _, _ = os.path.join(_real(folder, opened.of_folders), "").rpartition(f"{os.sep}storage{os.sep}")
        database = os.path.join(above, "opencode.db") if above else ""
        database = opened.of_folders["database", folder] = database if os.path.isfile(database) else ""
    about = text.partition('"messages"')[0] if _EXPORT.match(text) else text  # an export has those of one session
    return [*(_SESSION.findall(about) or [os.path.realpath(path)]), *filter(None, [database])]


def _real(folder: str, known: dict[Hashable, str]) -> str:
    """Return the path of a folder without links; what is known of those above it is not asked again."""
    if folder not in known:
        above, name = os.path.split(folder)
        is_plain = name.strip(".") and not os.path.islink(folder)
        known[folder] = os.path.join(_real(above, known), name) if is_plain else os.path.realpath(folder)
    return known[folder]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the traces of sessions that nobody has spawned, each with those below it."""
    is_empty = True
    for store, report in _stores(files, privacy):
        for family in _families({name: session.parent for name, session in store.sessions.items()}):
            with suppress(EmptyLogError):
                yield _Family([store.sessions[name] for name in family], privacy, report).trace()
                is_empty, report = False, ImportReport()
    if is_empty:
        raise EmptyLogError(f"no message of a session in {', '.join(file.name for file in files[:3])}")


def _stores(files: Sequence[LogFile], privacy: Privacy) -> Iterator[tuple["Store", ImportReport]]:
    """Yield the sessions of databases, those below one another together, and all of documents that no database has."""
    known: set[str] = set()
    documents: list[LogFile] = []
    for file in files:
        if (len(files) > 1 and file.path.endswith(_DOCUMENTS)) or not _is_database(file):
            documents.append(file)
            continue
        from orchtrace_corpus.trace.importers.conversations.opencode.database import Database  # takes long to import

        with Database(file) as database:
            sessions = {
                name: Row(name, parent=above, agent=role, version=version)
                for name, above, role, version in database.sessions()
            }
            for family in _families({name: row.parent for name, row in sessions.items()}):
                report = ImportReport()
                store = Store(privacy, report)
                for name in family:
                    store.take_session(sessions[name])
                    for record in database.records(name):
                        store.take_record(name, file, *record)
                known.update(family)
                yield store, report
    report = ImportReport()
    store = Store(privacy, report)
    for file in documents:
        store.take_file(file)
    for name in known & store.sessions.keys():
        del store.sessions[name]
    yield store, report


def folders(file: LogFile) -> Mapping[str, str]:
    """Return the folder in which each session of a database ran; none where it names none."""
    if not _is_database(file):
        return {}
    from orchtrace_corpus.trace.importers.conversations.opencode.database import Database

    with suppress(DataFileError), Database(file) as database:
        return database.folders()
    return {}


def _is_database(file: LogFile) -> bool:
    with Opened(file) as opened:
        return opened.first().text.startswith(_SQLITE)


def _families(parents: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield the sessions by the one at their top, which comes first, given the parent of each."""
    below: dict[str, list[str]] = {name: [] for name in parents}
    for name, parent in parents.items():
        if parent and parent in below:
            below[parent].append(name)
    return families(below)


class Times(Struct, gc=False):
    """Milliseconds since 1970."""

    created: Any = None
    completed: Any = None
    start: Any = None
    end: Any = None


_Odd = bool | int | float | str | tuple[Any, ...] | None  # what stands where an object should be


class Usage(Struct, gc=False):
    """The tokens of an answer by kind; reads and writes are those of its `cache`."""

    input: Any = None
    output: Any = None
    reasoning: Any = None
    total: Any = None
    cache: "Usage | _Odd" = None
    read: Any = None
    write: Any = None


class Metadata(Struct, gc=False):
    """The metadata of a tool's run beside the output, which it may repeat."""

    session: str = field(default="", name="sessionId")
    exit: Any = None


class State(Struct, gc=False):
    """The state of a call."""

    status: str = ""
    input: Any = None
    output: Any = None
    error: Any = None
    metadata: Metadata | None = None
    time: Times | None = None


class PartRow(Struct, gc=False):
    """The members of a part that say something about calls or tokens.

    They stand as in most records, as the decoder looks for each behind the one before.
    """

    id: str = ""
    session: str = field(default="", name="sessionID")
    message: str = field(default="", name="messageID")
    type: str = ""
    text: Any = None
    tool: str = ""
    call: str = field(default="", name="callID")
    state: State | None = None
    time: Times | None = None
    tokens: Usage | _Odd = None
    cost: Any = None
    synthetic: Any = None


class Row(PartRow, gc=False):
    """The members of a session, a message or a part that say something about agents, calls or tokens."""

    role: str = ""
    agent: str = ""
    mode: str = ""
    model_id: str = field(default="", name="modelID")
    finish: str = ""
    error: Any = None
    parent: str = field(default="", name="parentID")
    version: str = ""
    model: Any = None
    info: "Row | None" = None
    part: "Row | None" = None
    messages: "list[Exported] | None" = None


class Exported(Struct, gc=False):
    """A message with its parts, as `export` writes it."""

    info: Row | None = None
    parts: list[PartRow] | None = None


def decode(data: Any) -> Row | None:
    """Return a row, whatever is wrong with it: members of another kind than they should be go; None for no row."""
    return parts.decoded(data, Row) or parts.lenient(parts.decoded(data), Row)


_ASKS = frozenset(("question", "plan_enter", "plan_exit"))
_REJECTIONS = ("The user rejected permission", "The user dismissed this question")
_BREAK = "Tool execution aborted"
_SILENT = frozenset(("step-start", "snapshot", "patch", "agent", "file", "retry", "compaction", "subtask"))
_NO_TIMES, _NO_STATE, _NO_USAGE = Times(), State(), Usage()
_OK, _ERROR = Status.OK, Status.ERROR  # which Python 3.11 takes long to find


class Part(Struct, gc=False):
    """A part of a message: a text, a call with its result, or the end of a step with its usage and its cost."""

    kind: str
    begin: float = NO_TIME
    end: float = NO_TIME
    ref: str = ""
    is_typed: bool = False
    tokens: Any = None
    call: steps.ToolCall | None = None
    result: steps.ToolResult | None = None
    child: str = ""
    cost: Any = None


class Message(Struct, gc=False):
    """A message of a person or an answer; its agent is called as in the log, which may be private."""

    id: str
    session: str
    place: steps.Place
    role: str = ""
    created: float = NO_TIME
    completed: float = NO_TIME
    agent: str = ""
    model: str = ""
    tokens: Any = None
    error: str = ""
    finish: str = ""
    cost: Any = None
    parts: dict[str, Part] = field(default_factory=dict)


class Session(Struct):
    """A session, which is what one agent does."""

    id: str
    parent: str = ""
    agent: str = ""
    version: str = ""
    messages: dict[str, Message] = field(default_factory=dict)


class Store:
    """Sessions as they are read, the same record in several files taken once."""

    def __init__(self, privacy: Privacy, report: ImportReport) -> None:
        self.sessions: dict[str, Session] = {}  # the sessions by their ids
        self._privacy, self._report = privacy, report
        self._last: Message | None = None
        self._masked = cache(masked)  # for names of models and tools: few, and met again and again

    def take_file(self, file: LogFile) -> None:
        """Take the records of a JSON file: one record, an export, or lines that `run --format json` has printed."""
        if not file.path.endswith(LINES):
            with suppress(DecodeError, RecursionError):
                self._take_document(logs.contents(file), file)
                return
        for line, row in logs.rows(file, self._report, Row):
            self._take(row, steps.Place(file.name, line))

    def take_record(
        self, session: str, file: LogFile, table: str, line: int, own: str, message: str, data: Any
    ) -> None:
        """Take a message or a part of a session from a row of a table."""
        row = decode(data) if data is not None else None
        place = steps.Place(file.name, line)
        self._report.records_read += 1
        if row is None:
            self._report.drop(Drop.TOO_LONG if data is None else Drop.NO_JSON, place.file, place.line)
        elif table == "message":
            self.take_message(own, session, row, place)
        else:
            self.take_part(own, message, session, row, place)

    def _take_document(self, data: bytes, file: LogFile) -> None:
        """Take a record, or an export, whose messages are decoded one by one where it is large, laid out or faulty."""
        may_be_export = b'"messages"' in data
        is_brief = len(data) <= budget.MAX_LINE_BYTES and data.find(b"\n", 0, -1) < 0
        row = parts.decoded(data, Row) if is_brief or not may_be_export else None
        if row is None or (row.messages is not None and row.info is None):
            row, members = None, parts.whole(data).members()
            if "messages" not in members and (row := decode(data)) is None:
                raise DecodeError
        if row is not None:
            self._report.records_read += 1 if row.messages is None else len(row.messages)
            self._take(row, steps.Place(file.name, 1))
            return
        if "info" in members:
            info = members["info"]
            self._take(info.value(Row) or parts.lenient(info.value(), Row), steps.Place(file.name, info.line))
        for element in members["messages"].elements():
            self._report.records_read += 1
            exported = element.value(Exported) or parts.lenient(element.value(), Exported)
            self._take_exported(exported or Exported(), steps.Place(file.name, element.line))

    def _take(self, row: Row | None, place: steps.Place) -> None:
        """Take a record of the kind that its id says, or what is around records, which has no id."""
        kind = row.id[:4] if row is not None else ""
        if row is None:
            self._report.drop(Drop.NO_OBJECT, place.file, place.line)
        elif kind == "prt_":
            self.take_part(row.id, row.message, row.session, row, place)
        elif kind == "msg_":
            self.take_message(row.id, row.session, row, place)
        elif kind == "ses_":
            self.take_session(row)
        elif row.messages is not None and row.info is not None:
            self._take(row.info, place)
            for message in row.messages:
                self._take_exported(message, place)
        elif row.part is not None:
            self._take(row.part, place)
        elif row.error is not None and self._last is not None and row.type == "error":
            self._last.error = _error(row.error)
        else:
            self._report.drop(Drop.NO_ID, place.file, place.line)

    def _take_exported(self, message: Exported, place: steps.Place) -> None:
        self._take(message.info, place)
        for row in message.parts or ():
            if row.id.startswith("prt_"):
                self.take_part(row.id, row.message, row.session, row, place)
            else:
                self._report.drop(Drop.NO_ID, place.file, place.line)

    def _session(self, name: str) -> Session:
        known = self.sessions.get(name)
        if known is None:
            known = self.sessions[name] = Session(name)
        return known

    def take_session(self, row: Row) -> None:
        """Take a session."""
        session = self._session(row.id)
        session.parent, session.version = row.parent or session.parent, row.version or session.version
        session.agent = session.agent or masked(row.agent)

    def take_message(self, name: str, session: str, row: Row, place: steps.Place) -> None:
        """Take a message, whose parts may be known already."""
        messages, times = self._session(session).messages, row.time or _NO_TIMES
        known = messages.get(name)
        if known is not None and known.role:  # in another file, too
            self._report.pass_over("record that another file has, too")
            return
        self._last = messages[name] = Message(
            name, session, place, row.role or "assistant", moment_ms(times.created), moment_ms(times.completed),
            row.agent or row.mode, self._masked(row.model_id or text_field(row.model, "modelID")), row.tokens,
            _error(row.error) if row.error is not None else "", self._masked(row.finish),
            row.cost, {} if known is None else known.parts,
        )  # fmt: skip

    def take_part(self, name: str, above: str, session: str, row: PartRow, place: steps.Place) -> None:
        """Take a part of the message above it, which may not be known yet."""
        known = self._last
        if known is None or known.id != above or known.session != session:  # else of the message before it
            messages = self._session(session).messages
            if above not in messages:
                messages[above] = Message(above, session, place)
            known = self._last = messages[above]
        parts, kind, times = known.parts, row.type, row.time
        if name in parts:
            self._report.pass_over("record that another file has, too")
            return
        if kind == "tool":
            parts[name] = self._call(row.state or _NO_STATE, row, place)
            return
        begin, end = (moment_ms(times.start), moment_ms(times.end)) if times is not None else (NO_TIME, NO_TIME)
        ref, is_typed, is_end = "", False, kind == "step-finish"
        if kind == "text" or kind == "reasoning":
            ref, is_typed = self._privacy.reference(row.text), kind == "text" and row.synthetic is not True
        elif kind in _SILENT:
            self._report.pass_over(kind)
            is_typed = kind in ("subtask", "file")
        elif not is_end:
            self._report.note_unknown(masked(f"part {kind}"))
        usage, cost = (row.tokens, row.cost) if is_end else (None, None)
        parts[name] = Part(kind, begin, end, ref, is_typed, usage, None, None, "", cost)

    def _call(self, state: State, row: PartRow, place: steps.Place) -> Part:
        """Return a call of a tool, with its result where there is one."""
        times, tool, status, metadata = state.time or _NO_TIMES, self._masked(row.tool), state.status, state.metadata
        begin, end = moment_ms(times.start), moment_ms(times.end)
        purpose, role, child, more = steps.ASK if tool in _ASKS else steps.TOOL, "", "", None
        if tool == "task":
            role = masked(text_field(state.input, "subagent_type"))
            child = metadata.session if metadata is not None else ""
        if begin != NO_TIME and end >= begin:
            more = {"run_time": round(times.end - times.start, 3) / 1000}
        ref = self._privacy.reference(state.input)
        call = steps.ToolCall(
            begin, place, 0.0, purpose, None, masked(row.call), tool, ref, "", role, None, False, "", more
        )
        result = None
        if status in ("completed", "error"):
            error, said = "", string(state.error)
            if status == "error":
                error = "tool_error"
                if said.startswith(_REJECTIONS):
                    error = steps.REJECTED
                elif said.startswith(_BREAK):
                    error = steps.INTERRUPTED
            elif metadata is not None and type(metadata.exit) is int and metadata.exit:
                error = "exit_code"
            elif tool == "invalid":
                error = "invalid"
            ref = self._privacy.reference(state.output or state.error)
            result = steps.ToolResult(end, place, 0.0, call, False, _ERROR if error else _OK, error, ref)
        return Part("tool", begin, end, "", False, None, call, result, child)


def _error(value: Any) -> str:
    """Return what an error is called."""
    return masked(text_field(value, "name")) or "error"


class _Round(Struct, gc=False):
    """A step of an answer: its first and last moment, texts, calls and usage."""

    begin: float = NO_TIME
    end: float = NO_TIME
    texts: list[str] = field(default_factory=list)
    calls: list[Part] = field(default_factory=list)
    usage: Any = None
    cost: float | None = None  # what it cost in US dollars; None where the log does not say
    stated: _Stated = ((), True, 0)  # what its usage states


class _Family:
    """A session that nobody has spawned, with those below it."""

    def __init__(self, sessions: Sequence[Session], privacy: Privacy, report: ImportReport) -> None:
        by_time = attrgetter("created", "id")
        self._messages = {session.id: sorted(session.messages.values(), key=by_time) for session in sessions}
        begun = {
            name: (messages[0].created, messages[0].id) if messages else (0.0, "")
            for name, messages in self._messages.items()
        }
        by_begin = sorted(sessions[1:], key=lambda session: begun[session.id])
        self._sessions = [sessions[0], *by_begin]  # so that names are numbered by time
        self._run = Run("opencode", privacy, report)
        self._privacy, self._report = privacy, report
        self._answers = current_answers()
        self._spawns: list[tuple[str, steps.ToolCall, str]] = []

    def trace(self) -> Trace:
        """Return the trace."""
        run, top = self._run, self._sessions[0]
        run.name, run.version = top.id, top.version
        for session in self._sessions:
            messages = self._messages[session.id]
            role = session.agent or next((name for message in messages if (name := masked(message.agent))), "")
            agent = run.agent(session.id, "main") if session is top else run.agent(session.id, role or "agent", role)
            agent.is_root = session is top
            for message in messages:
                if message.role != "user":
                    self._take_answer(agent, message)
                    continue
                typed = [part for part in message.parts.values() if part.is_typed]
                if session is top and (typed or not message.parts):
                    refs = [part.ref for part in typed if part.ref]
                    ref = refs[0] if len(refs) == 1 else self._privacy.reference("\n".join(refs))
                    agent.add(steps.UserInput(message.created, message.place, ref=ref))
                else:  # a sub-agent or the program itself has put it there
                    agent.add(steps.Note(message.created, message.place))
        first = next(iter(run.agents[top.id].steps), None)
        if top.parent and top.parent not in run.agents and first is not None:
            self._report.note(Problem.NO_PARENT, str(first.place))
        known = set(run.agents)
        for parent, call, child in self._spawns:
            if child not in known or child == parent:
                if call.answer is not None and call.answer.status is Status.ERROR:
                    continue
                child = f"{child} of {call.id}"
                run.agent(child, call.role or child, call.role)
            run.spawn(child, parent, call)
        for session in self._sessions[1:]:
            if session.parent in known and not run.is_spawned(session.id):
                run.spawn(session.id, session.parent)
        return run.trace()

    def _take_answer(self, thread: steps.Transcript, message: Message) -> None:
        """Take a message of the model: an answer for each of its steps."""
        rounds = _rounds(message.parts)
        is_restated = message.tokens is not None
        if is_restated and not [step for step in rounds if step.usage and step.usage != _NO_USAGE]:
            rounds[-1].usage, is_restated = message.tokens, False
        for step in rounds:
            step.stated = _stated(step.usage)
        if is_restated:
            first = rounds[0]
            of_message = first.stated if message.tokens == first.usage else _stated(message.tokens)
            self._report.enter_all(_RESTATED, {"total": of_message[2]})
            if len(rounds) == 1 and of_message != first.stated:
                self._report.note(Problem.RESTATED_DIFFERS, str(message.place))
        if message.cost and all(step.cost is None for step in rounds):
            rounds[-1].cost = dollars(message.cost)
        over = message.created
        for step in rounds:
            over = self._take_round(thread, message, step, over, is_last=step is rounds[-1])
        if thread.is_root and message.error == _ABORTED:
            thread.add(steps.UserInput(over, message.place, waited=False, status=Status.CANCELLED))

    def _take_round(
        self, thread: steps.Transcript, message: Message, step: _Round, begin: float, *, is_last: bool
    ) -> float:
        """Add an answer with its calls, and return when all of it was over."""
        first, calls, place, created = step.begin, step.calls, message.place, message.created
        begin = first if begin == NO_TIME else begin
        end = max(begin, step.end, NO_TIME if calls or not is_last else message.completed)
        more: dict[str, Any] = {} if begin == NO_TIME else {"t_request": begin}
        if NO_TIME < begin <= first <= end:
            more["t_first_token"] = first
        if message.finish and is_last:
            more["finish_reason"] = message.finish
        if step.cost is not None:
            more["cost_usd"] = step.cost
        error = message.error if is_last else ""
        ref = step.texts[0] if step.texts else ""  # one text is known by its own hash, as in other formats
        call = steps.ModelCall(begin, place, 0.0, end, message.model, _UNKNOWN, ref, not calls, False, error, "", more)
        for text in step.texts[1:]:
            call.note_text(text, self._privacy)
        thread.add(call)
        amounts, reasoning_apart, _ = step.stated
        self._run.spend(call, amounts, caches_apart=True, reasoning_apart=reasoning_apart)
        if call.spent is not None and created != NO_TIME:  # a fork copies messages under new ids
            self._answers.note((created, amounts), f"{message.model} opencode", place.file, place.line)
        for part in calls:
            tool_call, result = part.call, part.result
            assert tool_call is not None
            tool_call.call = call
            if tool_call.time == NO_TIME:
                tool_call.time = call.end
            thread.add(tool_call)
            over = max(part.end, tool_call.time)
            if result is not None:
                result.time, tool_call.answer = over, result
                thread.add(result)
            if part.child:
                self._spawns.append((thread.key, tool_call, part.child))
            end = max(end, over)
        return end


def _rounds(parts: Mapping[str, Part]) -> list[_Round]:
    """Return the parts of a message by step; of one without any, a step in which there is nothing."""
    step, is_empty = _Round(), True
    rounds = [step]
    for name in sorted(parts):
        part = parts[name]
        if part.kind == "step-start" and not is_empty:
            step = _Round()
            rounds.append(step)
        is_empty, begin, end = False, part.begin, part.end
        if begin != NO_TIME and not NO_TIME < step.begin <= begin:
            step.begin = begin
        if part.call is not None:
            step.calls.append(part)
            end = begin  # it goes on when the model has answered
        elif part.ref:
            step.texts.append(part.ref)
        if end > step.end:
            step.end = end
        if step.usage is None:
            step.usage = part.tokens
        if part.cost:
            step.cost = dollars(part.cost)
    return rounds


def _stated(given: Any) -> _Stated:
    """Return a usage, whose kinds are apart; but 1.1 has reasoning in the output as well, as its total shows."""
    usage = given if type(given) is Usage else _NO_USAGE
    cache = usage.cache if type(usage.cache) is Usage else _NO_USAGE
    given = usage.input, usage.output, cache.read, cache.write, usage.reasoning
    known = counts(given)
    total, reasoning = sum(filter(None, known)), known[-1] or 0
    is_apart = not (reasoning and usage.total == total - reasoning)
    return given, is_apart, total if is_apart else total - reasoning
