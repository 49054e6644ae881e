"""OpenCode sessions, one for each agent, from its database or from JSON files.

A message of a model has parts: texts, calls of tools with their results, and the ends of its steps, each with its
usage. Each step becomes an answer. The result of a call of `task` names the session that it spawned.
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
from orchtrace_corpus.trace.importers.core import json_parts, logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.identity import current_answer_ids, group_families
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, moment_ms
from orchtrace_corpus.trace.importers.core.transcript import ModelCall, Note, Place, ToolCall, ToolResult, UserInput
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
"""The suffixes of documents; a database with one of them is read only if it is the one file."""
_ABORTED = "MessageAbortedError"
_RESTATED, _UNKNOWN = LedgerLine.RESTATED, TokenBasis.UNKNOWN  # looking up enum members is slow on Python 3.11
_Stated: TypeAlias = tuple[tuple[Any, ...], bool, int]
"""A usage: its counts as for `Run.spend`, whether the output excludes reasoning, and the total."""


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is of OpenCode, by tables of its database, or by ids and members."""
    if beginning.text.startswith(_SQLITE):
        return _TABLE.search(beginning.text) is not None
    is_likely = _ID.search(beginning.text) is not None
    return is_likely and (_EXPORT.match(beginning.text) is not None or beginning.has_any(_MEMBERS))


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the session keys of a file: its session, the one above it, and the database its folder was moved to."""
    path, text = reader.file.path, reader.first().text
    if text.startswith(_SQLITE):
        return [os.path.realpath(path)]
    folder = os.path.dirname(os.path.realpath(path) if os.path.islink(path) else path)
    database = reader.folder_cache.get(("database", folder))
    if database is None:
        above, _, _ = os.path.join(_real(folder, reader.folder_cache), "").rpartition(f"{os.sep}storage{os.sep}")
        database = os.path.join(above, "opencode.db") if above else ""
        database = reader.folder_cache["database", folder] = database if os.path.isfile(database) else ""
    about = text.partition('"messages"')[0] if _EXPORT.match(text) else text  # an export has those of one session
    return [*(_SESSION.findall(about) or [os.path.realpath(path)]), *filter(None, [database])]


def _real(folder: str, known: dict[Hashable, str]) -> str:
    """Return the path of a folder without links; `known` keeps those of the folders above it."""
    if folder not in known:
        above, name = os.path.split(folder)
        is_plain = name.strip(".") and not os.path.islink(folder)
        known[folder] = os.path.join(_real(above, known), name) if is_plain else os.path.realpath(folder)
    return known[folder]


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield a trace for each session that no other spawned, with the sessions below it."""
    is_empty = True
    for store in _stores(files, privacy):
        report = store.report
        for family in _families({name: session.parent for name, session in store.sessions.items()}):
            with suppress(logs.EmptyLogError):
                yield _Family([store.sessions[name] for name in family], privacy, report).trace()
                is_empty, report = False, ImportReport()
    if is_empty:
        raise logs.EmptyLogError(f"no message of a session in {', '.join(file.name for file in files[:3])}")


def _stores(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator["Store"]:
    """Yield the sessions of each family in a database, then those of all documents that no database has."""
    known: set[str] = set()
    documents: list[logs.LogFile] = []
    for file in files:
        if (len(files) > 1 and file.path.endswith(_DOCUMENTS)) or not _is_database(file):
            documents.append(file)
            continue
        from orchtrace_corpus.trace.importers.conversations.opencode.database import Database  # takes long to import

        with Database(file) as database:
            sessions = {
                name: Row(name, parent=parent, agent=role, version=version)
                for name, parent, role, version in database.sessions()
            }
            for family in _families({name: row.parent for name, row in sessions.items()}):
                store = Store(privacy)
                for session in family:
                    store.take_session(sessions[session])
                    for table, row_id, name, message, data in database.records(session):
                        store.take_record(table, name, message, session, data, Place(file.name, row_id))
                known.update(family)
                yield store
    store = Store(privacy)
    for file in documents:
        store.take_file(file)
    for session in known & store.sessions.keys():
        del store.sessions[session]
    yield store


def folders(file: logs.LogFile) -> Mapping[str, str]:
    """Return the folder in which each session of a database ran; none where it names none."""
    if not _is_database(file):
        return {}
    from orchtrace_corpus.trace.importers.conversations.opencode.database import Database

    with suppress(DataFileError), Database(file) as database:
        return database.folders()
    return {}


def _is_database(file: logs.LogFile) -> bool:
    with logs.LogReader(file) as reader:
        return reader.first().text.startswith(_SQLITE)


def _families(parents: Mapping[str, str]) -> Iterator[list[str]]:
    """Group sessions, given the parent of each: every session that no other spawned, with those below it."""
    below: dict[str, list[str]] = {name: [] for name in parents}
    for name, parent in parents.items():
        if parent and parent in below:
            below[parent].append(name)
    return group_families(below)


class Times(Struct, gc=False):
    """Milliseconds since 1970."""

    created: Any = None
    completed: Any = None
    start: Any = None
    end: Any = None


_NotAnObject = bool | int | float | str | tuple[Any, ...] | None


class Usage(Struct, gc=False):
    """The tokens of an answer by kind; `cache` is such an object, too, and only there are `read` and `write` set."""

    input: Any = None
    output: Any = None
    reasoning: Any = None
    total: Any = None
    cache: "Usage | _NotAnObject" = None
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
    """A part of a message. Fields are in the order of most records, in which msgspec looks for them."""

    id: str = ""
    session: str = field(default="", name="sessionID")
    message_id: str = field(default="", name="messageID")
    type: str = ""
    text: Any = None
    tool: str = ""
    call: str = field(default="", name="callID")
    state: State | None = None
    time: Times | None = None
    tokens: Usage | _NotAnObject = None
    cost: Any = None
    synthetic: Any = None


class Row(PartRow, gc=False):
    """A session, a message or a part, or an object around one of these."""

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
    """Return a row without the members that have another type than they should; None for what is no object."""
    return json_parts.decoded(data, Row) or json_parts.lenient(json_parts.decoded(data), Row)


_ASKS = frozenset(("question", "plan_enter", "plan_exit"))
_REJECTIONS = ("The user rejected permission", "The user dismissed this question")
_BREAK = "Tool execution aborted"
_SILENT = frozenset(("step-start", "snapshot", "patch", "agent", "file", "retry", "compaction", "subtask"))
_NO_ROW, _NO_TIMES, _NO_STATE, _NO_USAGE = Row(), Times(), State(), Usage()
_OK, _ERROR = Status.OK, Status.ERROR


class Message(Struct, gc=False):
    """A message of a person or of a model, with its parts; without a row while only parts of it were read."""

    id: str
    place: Place
    row: Row | None = None
    created: float = NO_TIME
    error: str = ""
    parts: dict[str, PartRow] = field(default_factory=dict)  # those with a text have a reference to it instead
    calls: dict[str, ToolCall] = field(default_factory=dict)  # by the ids of their parts, with their results


class Session(Struct):
    """A session: the work of one agent."""

    id: str
    parent: str = ""
    agent: str = ""
    version: str = ""
    messages: dict[str, Message] = field(default_factory=dict)


class Store:
    """Sessions as they are read; a record that is in several files is taken once."""

    def __init__(self, privacy: Privacy) -> None:
        self.sessions: dict[str, Session] = {}
        self.report = ImportReport()
        self._privacy = privacy
        self._last: Message | None = None  # the message that the next part mostly belongs to
        self._last_session = ""
        self._masked = cache(masked)  # tools have few names

    def take_file(self, file: logs.LogFile) -> None:
        """Take the records of a JSON file: one record, an export, or lines that `run --format json` has printed."""
        if not file.path.endswith(LINES):
            with suppress(DecodeError, RecursionError):
                self._take_document(logs.contents(file), file)
                return
        for line, row in logs.rows(file, self.report, Row):
            self._take(row, Place(file.name, line))

    def take_record(self, table: str, name: str, message: str, session: str, data: Any, place: Place) -> None:
        """Take a message or a part from a row of a table."""
        row = decode(data) if data is not None else None
        self.report.records_read += 1
        if row is None:
            self.report.drop(Drop.TOO_LONG if data is None else Drop.NO_JSON, place.file, place.line)
            return
        row.id, row.message_id, row.session = name, message, session
        if table == "message":
            self._take_message(row, place)
        else:
            self._take_part(row, place)

    def _take_document(self, data: bytes, file: logs.LogFile) -> None:
        """Take a record, or an export, whose messages are decoded one by one where it is large, laid out or faulty."""
        may_be_export = b'"messages"' in data
        is_brief = len(data) <= budget.MAX_LINE_BYTES and data.find(b"\n", 0, -1) < 0
        row = json_parts.decoded(data, Row) if is_brief or not may_be_export else None
        if row is None or (row.messages is not None and row.info is None):
            row, members = None, json_parts.whole(data).members()
            if "messages" not in members and (row := decode(data)) is None:
                raise DecodeError
        if row is not None:
            self.report.records_read += 1 if row.messages is None else len(row.messages)
            self._take(row, Place(file.name, 1))
            return
        if "info" in members:
            info = members["info"]
            self._take(info.value(Row) or json_parts.lenient(info.value(), Row), Place(file.name, info.line))
        for element in members["messages"].elements():
            self.report.records_read += 1
            exported = element.value(Exported) or json_parts.lenient(element.value(), Exported)
            self._take_exported(exported or Exported(), Place(file.name, element.line))

    def _take(self, row: Row | None, place: Place) -> None:
        """Take a record of the kind that its id says, or the records inside an object without an id."""
        kind = row.id[:4] if row is not None else ""
        if row is None:
            self.report.drop(Drop.NO_OBJECT, place.file, place.line)
        elif kind == "prt_":
            self._take_part(row, place)
        elif kind == "msg_":
            self._take_message(row, place)
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
            self.report.drop(Drop.NO_ID, place.file, place.line)

    def _take_exported(self, message: Exported, place: Place) -> None:
        self._take(message.info, place)
        for part in message.parts or ():
            if part.id.startswith("prt_"):
                self._take_part(part, place)
            else:
                self.report.drop(Drop.NO_ID, place.file, place.line)

    def _session(self, name: str) -> Session:
        session = self.sessions.get(name)
        if session is None:
            session = self.sessions[name] = Session(name)
        return session

    def take_session(self, row: Row) -> None:
        """Take a session."""
        session = self._session(row.id)
        session.parent, session.version = row.parent or session.parent, row.version or session.version
        session.agent = session.agent or masked(row.agent)

    def _message(self, name: str, session: str, place: Place) -> Message:
        """Return a message, which the next parts mostly belong to."""
        messages = self._session(session).messages
        if name not in messages:
            messages[name] = Message(name, place)
        self._last, self._last_session = messages[name], session
        return messages[name]

    def _take_message(self, row: Row, place: Place) -> None:
        """Take a message, whose parts may be known already."""
        known = self._session(row.session).messages.get(row.id)
        if known is not None and known.row is not None:
            self.report.skip("record that another file has, too")
            return
        message = self._message(row.id, row.session, place)
        message.row, message.place, message.created = row, place, moment_ms((row.time or _NO_TIMES).created)
        message.error = _error(row.error) if row.error is not None else ""

    def _take_part(self, row: PartRow, place: Place) -> None:
        """Take a part of a message, which may not be known yet."""
        owner, kind = self._last, row.type
        if owner is None or owner.id != row.message_id or self._last_session != row.session:
            owner = self._message(row.message_id, row.session, place)
        if row.id in owner.parts:
            self.report.skip("record that another file has, too")
            return
        owner.parts[row.id] = row
        if kind == "tool":
            owner.calls[row.id] = self._call(row, row.state or _NO_STATE, place)
        elif kind == "text" or kind == "reasoning":
            row.text = self._privacy.reference(row.text)
        elif kind in _SILENT:
            self.report.skip(kind)
        elif kind != "step-finish":
            self.report.note_unknown(masked(f"part {kind}"))

    def _call(self, row: PartRow, state: State, place: Place) -> ToolCall:
        """Return a call of a tool, with its result if it has one; what went in and came out is kept no longer."""
        times, tool, metadata = state.time or _NO_TIMES, self._masked(row.tool), state.metadata
        begin, end = moment_ms(times.start), moment_ms(times.end)
        call = ToolCall(begin, place, 0.0, steps.ASK if tool in _ASKS else steps.TOOL, None, masked(row.call), tool)
        call.ref = self._privacy.reference(state.input)
        if tool == "task":
            call.role = masked(text_field(state.input, "subagent_type"))
        if begin != NO_TIME and end >= begin:
            call.more = {"run_time": round(times.end - times.start, 3) / 1000}
        if state.status in ("completed", "error"):
            error, stated = "", string(state.error)
            if state.status == "error":
                error = "tool_error"
                if stated.startswith(_REJECTIONS):
                    error = steps.REJECTED
                elif stated.startswith(_BREAK):
                    error = steps.INTERRUPTED
            elif metadata is not None and type(metadata.exit) is int and metadata.exit:
                error = "exit_code"
            elif tool == "invalid":
                error = "invalid"
            ref = self._privacy.reference(state.output or state.error)
            call.answer = ToolResult(end, place, 0.0, call, False, _ERROR if error else _OK, error, ref)
        state.input = state.output = None
        return call


def _error(value: Any) -> str:
    """Return the name of an error."""
    return masked(text_field(value, "name")) or "error"


class _Round(Struct, gc=False):
    """A step of a message: its first and last moment, references to its texts, its calls and its usage."""

    begin: float = NO_TIME
    end: float = NO_TIME
    texts: list[str] = field(default_factory=list)
    calls: list[PartRow] = field(default_factory=list)
    usage: Any = None
    cost: float | None = None  # in US dollars; None if the log does not say
    stated: _Stated = ((), True, 0)


class _Family:
    """A session that no other spawned, and those below it."""

    def __init__(self, sessions: Sequence[Session], privacy: Privacy, report: ImportReport) -> None:
        self._run, self._sessions = Run("opencode", privacy, report), sessions
        self._answers = current_answer_ids()
        self._spawns: list[tuple[str, ToolCall, str]] = []  # parent, call and child

    def trace(self) -> Trace:
        """Return the trace."""
        run, top = self._run, self._sessions[0]
        run.name, run.version = top.id, top.version
        by_time = attrgetter("created", "id")
        families = [(session, sorted(session.messages.values(), key=by_time)) for session in self._sessions]
        families[1:] = sorted(families[1:], key=lambda pair: by_time(pair[1][0]) if pair[1] else (0.0, ""))
        for session, messages in families:
            role = session.agent or next((name for message in messages if (name := _role(message))), "")
            agent = run.agent(session.id, "main") if session is top else run.agent(session.id, role or "agent", role)
            agent.is_root = session is top
            for message in messages:
                self._take_message(agent, message)
        first = next(iter(run.agents[top.id].steps), None)
        if top.parent and top.parent not in run.agents and first is not None:
            run.report.note(Problem.NO_PARENT, str(first.place))
        known = set(run.agents)
        for parent, call, child in self._spawns:
            if not child:
                continue
            if child not in known or child == parent:
                if call.answer is not None and call.answer.status is Status.ERROR:
                    continue
                child = f"{child} of {call.id}"
                run.agent(child, call.role or child, call.role)
            run.spawn(child, parent, call)
        for session, _ in families[1:]:
            if session.parent in known and not run.is_spawned(session.id):
                run.spawn(session.id, session.parent)
        return run.trace()

    def _take_message(self, agent: steps.Transcript, message: Message) -> None:
        """Take a message: of a model, an answer for each of its steps."""
        row, place, run = message.row or _NO_ROW, message.place, self._run
        if row.role == "user":
            typed = [part for part in message.parts.values() if _is_typed(part)]
            if agent.is_root and (typed or not message.parts):
                refs = [part.text for part in typed if part.type == "text" and part.text]
                ref = refs[0] if len(refs) == 1 else run.privacy.reference("\n".join(refs))
                agent.add(UserInput(message.created, place, ref=ref))
            else:  # by the agent above it, or by the program itself
                agent.add(Note(message.created, place))
            return
        rounds = _rounds(message)
        tokens = row.tokens
        if tokens is not None and not any(step.usage and step.usage != _NO_USAGE for step in rounds):
            rounds[-1].usage, tokens = tokens, None
        for step in rounds:
            step.stated = _stated(step.usage)
        if tokens is not None:
            first = rounds[0]
            of_message = first.stated if tokens == first.usage else _stated(tokens)
            run.report.enter_all(_RESTATED, {"total": of_message[2]})
            if len(rounds) == 1 and of_message != first.stated:
                run.report.note(Problem.RESTATED_DIFFERS, str(place))
        if row.cost and all(step.cost is None for step in rounds):
            rounds[-1].cost = dollars(row.cost)
        over = message.created
        for step in rounds:
            over = self._take_round(agent, message, row, step, over, is_last=step is rounds[-1])
        if agent.is_root and message.error == _ABORTED:
            agent.add(UserInput(over, place, waited=False, status=Status.CANCELLED))

    def _take_round(
        self, agent: steps.Transcript, message: Message, row: Row, step: _Round, begin: float, *, is_last: bool
    ) -> float:
        """Add the answer of a step with its calls, and return when all of it was over."""
        run, first, calls, place = self._run, step.begin, step.calls, message.place
        begin = first if begin == NO_TIME else begin
        end = max(begin, step.end)
        more: dict[str, Any] = {} if begin == NO_TIME else {"t_request": begin}
        error = ""
        if is_last:
            error = message.error
            if not calls:
                end = max(end, moment_ms((row.time or _NO_TIMES).completed))
        if NO_TIME < begin <= first <= end:
            more["t_first_token"] = first
        if is_last and row.finish:
            more["finish_reason"] = run.masked(row.finish)
        if step.cost is not None:
            more["cost_usd"] = step.cost
        ref = step.texts[0] if step.texts else ""  # the hash of one text alone is that of other formats, too
        model = run.masked(row.model_id or text_field(row.model, "modelID"))
        call = ModelCall(begin, place, 0.0, end, model, _UNKNOWN, ref, not calls, False, error, "", more)
        for text in step.texts[1:]:
            call.note_text(text, run.privacy)
        agent.add(call)
        amounts, reasoning_apart, _ = step.stated
        run.spend(call, amounts, caches_apart=True, reasoning_apart=reasoning_apart)
        if call.spent is not None and message.created != NO_TIME:  # a fork copies messages under new ids
            self._answers.note((message.created, amounts), f"{model} opencode", place.file, place.line)
        for part in calls:
            tool_call = message.calls[part.id]
            tool_call.call = call
            if tool_call.time == NO_TIME:
                tool_call.time = call.end
            agent.add(tool_call)
            result, over = tool_call.answer, tool_call.time
            if result is not None:
                result.time = over = max(result.time, over)
                agent.add(result)
            if tool_call.tool == "task" and part.state is not None and part.state.metadata is not None:
                self._spawns.append((agent.key, tool_call, part.state.metadata.session))
            if over > end:
                end = over
        return end


def _role(message: Message) -> str:
    """Return the role of the agent that a message names."""
    return masked(message.row.agent or message.row.mode) if message.row is not None else ""


def _is_typed(part: PartRow) -> bool:
    """Return True if a person entered a part of their message, and not the program."""
    return part.type in ("subtask", "file") or (part.type == "text" and part.synthetic is not True)


def _rounds(message: Message) -> list[_Round]:
    """Return the steps of a message, at least one."""
    step = _Round()
    rounds = [step]
    for index, name in enumerate(sorted(message.parts)):
        part = message.parts[name]
        kind, begin, end = part.type, NO_TIME, NO_TIME
        if kind == "step-start" and index:
            step = _Round()
            rounds.append(step)
        if kind == "tool":
            step.calls.append(part)
            begin = end = message.calls[name].time  # the tool goes on when the model has answered
        elif part.time is not None:
            begin, end = moment_ms(part.time.start), moment_ms(part.time.end)
        if kind == "step-finish":
            if step.usage is None:
                step.usage = part.tokens
            if part.cost:
                step.cost = dollars(part.cost)
        elif (kind == "text" or kind == "reasoning") and part.text:
            step.texts.append(part.text)
        if begin != NO_TIME and not NO_TIME < step.begin <= begin:
            step.begin = begin
        if end > step.end:
            step.end = end
    return rounds


def _stated(usage: Any) -> _Stated:
    """Return a usage, whose kinds are apart; but 1.1 has reasoning in the output as well, as its total shows."""
    usage = usage if type(usage) is Usage else _NO_USAGE
    cache = usage.cache if type(usage.cache) is Usage else _NO_USAGE
    amounts = usage.input, usage.output, cache.read, cache.write, usage.reasoning
    known = counts(amounts)
    total, reasoning = sum(filter(None, known)), known[-1] or 0
    is_apart = not (reasoning and usage.total == total - reasoning)
    return amounts, is_apart, total if is_apart else total - reasoning
