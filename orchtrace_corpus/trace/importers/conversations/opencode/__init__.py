"""Import sessions of OpenCode, one for each agent, from its database or from JSON files.

A message of a model has parts: texts, calls of tools with their results, and the ends of its steps, which state usage.
A step is one request to the model; it becomes an answer. The result of a call of `task` names the session that it
spawned. A `_Family` is a session that no other session spawned, with all sessions below it: one trace.
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
from orchtrace_corpus.trace.importers.core.values import as_dollars, as_text, text_field
from orchtrace_corpus.trace.model.decode import LINES
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import Trace

_SQLITE = "SQLite format 3\0"
_PART_TABLE = re.compile(r"CREATE TABLE [`\"\[]?part[`\"\]]?\s*\([^;]*message_id[^;]*session_id", re.IGNORECASE)
_OWN_ID = re.compile(r'"(?:id|sessionID)"\s*:\s*"(?:ses|msg|prt)_')
_SESSION_ID = re.compile(r'"(?:sessionID|id|parentID)"\s*:\s*"(ses_[^"]{1,100})"')
_EXPORT_BEGIN = re.compile(r'\s*\{\s*"info"\s*:\s*\{\s*"id"\s*:\s*"ses_')
_MEMBERS = (
    {"projectID", "directory", "version"}, {"sessionID", "role", "time"}, {"sessionID", "messageID", "type"},
    {"sessionID", "timestamp", "type", "part"}, {"info", "messages"},
)  # fmt: skip
"""Members of a session, a message, a part, a line that `run` prints, and a document that `export` prints."""
_DOCUMENT_SUFFIXES = (".json", ".jsonl", ".ndjson")
"""The suffixes of documents. To save time, several files with these are not checked for databases."""
_ABORTED = "MessageAbortedError"
_RESTATED = LedgerLine.RESTATED  # looking up enum members is slow on Python 3.11
_StatedUsage: TypeAlias = tuple[tuple[Any, ...], bool, int]
"""The counts of a usage for `Run.spend`, True if the output excludes reasoning, and the total."""


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is of OpenCode, by a table of its database, or by ids and members."""
    if beginning.text.startswith(_SQLITE):
        return _PART_TABLE.search(beginning.text) is not None
    if _OWN_ID.search(beginning.text) is None:
        return False
    return _EXPORT_BEGIN.match(beginning.text) is not None or beginning.has_any(_MEMBERS)


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the keys of a file: its session, the parent session, and the database to which its folder was moved."""
    path, text = reader.file.path, reader.first().text
    if text.startswith(_SQLITE):
        return [os.path.realpath(path)]
    folder = os.path.dirname(os.path.realpath(path) if os.path.islink(path) else path)
    database = reader.folder_cache.get(("database", folder))  # empty for a folder without one
    if database is None:
        inside = os.path.join(_real_path(folder, reader.folder_cache), "")
        data_folder, _, _ = inside.rpartition(f"{os.sep}storage{os.sep}")
        database = os.path.join(data_folder, "opencode.db")
        if not data_folder or not os.path.isfile(database):
            database = ""
        reader.folder_cache["database", folder] = database
    if _EXPORT_BEGIN.match(text):  # its messages repeat the id of the session
        text = text.partition('"messages"')[0]
    keys = _SESSION_ID.findall(text) or [os.path.realpath(path)]
    return [*keys, database] if database else keys


def _real_path(folder: str, cache: dict[Hashable, str]) -> str:
    """Return the path of a folder without links; the cache keeps the paths of the folders above it, too."""
    if folder not in cache:
        parent, name = os.path.split(folder)
        is_plain = name.strip(".") and not os.path.islink(folder)
        cache[folder] = os.path.join(_real_path(parent, cache), name) if is_plain else os.path.realpath(folder)
    return cache[folder]


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield a trace for each family of sessions."""
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
    """Yield a store for each family in a database, then one for the sessions that only documents have."""
    in_databases: set[str] = set()
    documents: list[logs.LogFile] = []
    for file in files:
        if (len(files) > 1 and file.path.endswith(_DOCUMENT_SUFFIXES)) or not _is_database(file):
            documents.append(file)
            continue
        from orchtrace_corpus.trace.importers.conversations.opencode.database import Database  # takes long to import

        with Database(file) as database:
            sessions = {
                session_id: Row(session_id, parent=parent, agent=agent, version=version)
                for session_id, parent, agent, version in database.sessions()
            }
            for family in _families({session_id: row.parent for session_id, row in sessions.items()}):
                store = Store(privacy)
                for session_id in family:
                    store.add_session(sessions[session_id])
                    for table, row_number, record_id, message_id, data in database.records(session_id):
                        place = Place(file.name, row_number)
                        store.add_record(table, record_id, message_id, session_id, data, place)
                in_databases.update(family)
                yield store
    store = Store(privacy)
    for file in documents:
        store.read_file(file)
    for session_id in in_databases & store.sessions.keys():
        del store.sessions[session_id]
    yield store


def folders(file: logs.LogFile) -> Mapping[str, str]:
    """Return the folder in which each session of a database ran, by its id; empty for any other file."""
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
    """Yield the ids of the sessions of each family, given the parent of each session."""
    children: dict[str, list[str]] = {session_id: [] for session_id in parents}
    for session_id, parent in parents.items():
        if parent and parent in children:
            children[parent].append(session_id)
    return group_families(children)


class Times(Struct, gc=False):
    """Times in milliseconds since 1970."""

    created: Any = None
    completed: Any = None
    start: Any = None
    end: Any = None


_NotAnObject = bool | int | float | str | tuple[Any, ...] | None


class Usage(Struct, gc=False):
    """The tokens of an answer by kind. `cache` is an object with only `read` and `write`."""

    input: Any = None
    output: Any = None
    reasoning: Any = None
    total: Any = None
    cache: "Usage | _NotAnObject" = None
    read: Any = None
    write: Any = None


class Metadata(Struct, gc=False):
    """The members of a call's metadata that are read; others repeat the output."""

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
    """A part of a message. msgspec is fastest if the fields have the order that they have in most records."""

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
    """A session, a message or a part, or an object with one of these in `info` or `part`."""

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
    """Return a row; members of a wrong type are left out. Return None for anything but an object."""
    return json_parts.decoded(data, Row) or json_parts.lenient(json_parts.decoded(data), Row)


_ASK_TOOLS = frozenset(("question", "plan_enter", "plan_exit"))
_REJECTIONS = ("The user rejected permission", "The user dismissed this question")
_INTERRUPTION = "Tool execution aborted"
_SKIPPED_PARTS = frozenset(("step-start", "snapshot", "patch", "agent", "file", "retry", "compaction", "subtask"))
_NO_ROW, _NO_TIMES, _NO_STATE, _NO_USAGE = Row(), Times(), State(), Usage()
_OK, _ERROR = Status.OK, Status.ERROR


class Message(Struct, gc=False):
    """A message of a person or of a model, with its parts."""

    id: str
    place: Place
    row: Row | None = None  # None if only parts of it are read so far
    created: float = NO_TIME
    error: str = ""  # the name of the error; empty without one
    parts: dict[str, PartRow] = field(default_factory=dict)  # by id; `text` is replaced by the reference to it
    calls: dict[str, ToolCall] = field(default_factory=dict)  # by the id of their part, with their results


class Session(Struct):
    """A session: the work of one agent."""

    id: str
    parent: str = ""
    agent: str = ""
    version: str = ""
    messages: dict[str, Message] = field(default_factory=dict)  # by id


class Store:
    """The sessions that are read so far. A record that several files have is added once."""

    def __init__(self, privacy: Privacy) -> None:
        self.sessions: dict[str, Session] = {}  # by id
        self.report = ImportReport()
        self._privacy = privacy
        self._last_message: Message | None = None  # the next part mostly belongs to it
        self._last_session = ""  # its session
        self._masked = cache(masked)  # tools have few names

    def read_file(self, file: logs.LogFile) -> None:
        """Add the records of a JSON file: one record, an export, or lines that `run --format json` has printed."""
        if not file.path.endswith(LINES):
            with suppress(DecodeError, RecursionError):
                self._read_document(logs.contents(file), file)
                return
        for line, row in logs.rows(file, self.report, Row):
            self._add_row(row, Place(file.name, line))

    def add_record(
        self, table: str, record_id: str, message_id: str, session_id: str, data: bytes | None, place: Place
    ) -> None:
        """Add a message or a part from a row of a table; `data` is its JSON, or None if that is too long."""
        row = decode(data) if data is not None else None
        self.report.records_read += 1
        if row is None:
            reason = Drop.TOO_LONG if data is None else Drop.NO_JSON
            self.report.drop(reason, place.file, place.line)
            return
        row.id, row.message_id, row.session = record_id, message_id, session_id
        if table == "message":
            self._add_message(row, place)
        else:
            self._add_part(row, place)

    def _read_document(self, data: bytes, file: logs.LogFile) -> None:
        """Add a record or an export; raise DecodeError for any other file.

        The messages of an export are decoded one by one if it is large, has several lines, or has faulty members.
        """
        may_be_export = b'"messages"' in data
        is_short_line = len(data) <= budget.MAX_LINE_BYTES and data.find(b"\n", 0, -1) < 0
        row: Row | None = None
        if is_short_line or not may_be_export:
            row = json_parts.decoded(data, Row)
        if row is None or (row.messages is not None and row.info is None):
            row = None
            members = json_parts.whole(data).members()
            if "messages" not in members:
                row = decode(data)
                if row is None:
                    raise DecodeError
        if row is not None:
            self.report.records_read += 1 if row.messages is None else len(row.messages)
            self._add_row(row, Place(file.name, 1))
            return
        if "info" in members:
            info = members["info"]
            self._add_row(info.value(Row) or json_parts.lenient(info.value(), Row), Place(file.name, info.line))
        for element in members["messages"].elements():
            self.report.records_read += 1
            exported = element.value(Exported) or json_parts.lenient(element.value(), Exported)
            self._add_exported(exported or Exported(), Place(file.name, element.line))

    def _add_row(self, row: Row | None, place: Place) -> None:
        """Add a record, whose id says what it is, or the records inside an object without an id."""
        kind = row.id[:4] if row is not None else ""
        if row is None:
            self.report.drop(Drop.NO_OBJECT, place.file, place.line)
        elif kind == "prt_":
            self._add_part(row, place)
        elif kind == "msg_":
            self._add_message(row, place)
        elif kind == "ses_":
            self.add_session(row)
        elif row.messages is not None and row.info is not None:
            self._add_row(row.info, place)
            for message in row.messages:
                self._add_exported(message, place)
        elif row.part is not None:
            self._add_row(row.part, place)
        elif row.error is not None and self._last_message is not None and row.type == "error":
            self._last_message.error = _error(row.error)
        else:
            self.report.drop(Drop.NO_ID, place.file, place.line)

    def _add_exported(self, message: Exported, place: Place) -> None:
        self._add_row(message.info, place)
        for part in message.parts or ():
            if part.id.startswith("prt_"):
                self._add_part(part, place)
            else:
                self.report.drop(Drop.NO_ID, place.file, place.line)

    def _session(self, session_id: str) -> Session:
        """Return a session; a new one for a new id."""
        session = self.sessions.get(session_id)
        if session is None:
            session = self.sessions[session_id] = Session(session_id)
        return session

    def add_session(self, row: Row) -> None:
        """Add a session, or what the row of a known session adds to it."""
        session = self._session(row.id)
        session.parent, session.version = row.parent or session.parent, row.version or session.version
        session.agent = session.agent or masked(row.agent)

    def _message(self, message_id: str, session_id: str, place: Place) -> Message:
        """Return a message, a new one for a new id, and note it as the last one."""
        messages = self._session(session_id).messages
        if message_id not in messages:
            messages[message_id] = Message(message_id, place)
        self._last_message, self._last_session = messages[message_id], session_id
        return messages[message_id]

    def _add_message(self, row: Row, place: Place) -> None:
        """Add a message; some of its parts may have been added before."""
        earlier = self._session(row.session).messages.get(row.id)
        if earlier is not None and earlier.row is not None:
            self.report.skip("record that another file has, too")
            return
        message = self._message(row.id, row.session, place)
        message.row, message.place = row, place
        message.created = moment_ms((row.time or _NO_TIMES).created)
        message.error = _error(row.error) if row.error is not None else ""

    def _add_part(self, row: PartRow, place: Place) -> None:
        """Add a part to its message, which may not be added yet."""
        owner, kind = self._last_message, row.type
        if owner is None or owner.id != row.message_id or self._last_session != row.session:
            owner = self._message(row.message_id, row.session, place)
        if row.id in owner.parts:
            self.report.skip("record that another file has, too")
            return
        owner.parts[row.id] = row
        if kind == "tool":
            owner.calls[row.id] = self._tool_call(row, row.state or _NO_STATE, place)
        elif kind == "text" or kind == "reasoning":
            row.text = self._privacy.reference(row.text)
        elif kind in _SKIPPED_PARTS:
            self.report.skip(kind)
        elif kind != "step-finish":
            self.report.note_unknown(masked(f"part {kind}"))

    def _tool_call(self, row: PartRow, state: State, place: Place) -> ToolCall:
        """Return a call of a tool, with its result if it has one; to save memory, input and output are dropped."""
        times, tool, metadata = state.time or _NO_TIMES, self._masked(row.tool), state.metadata
        begin, end = moment_ms(times.start), moment_ms(times.end)
        purpose = steps.ASK if tool in _ASK_TOOLS else steps.TOOL
        call = ToolCall(begin, place, purpose=purpose, id=masked(row.call), tool=tool)
        call.ref = self._privacy.reference(state.input)
        if tool == "task":
            call.role = masked(text_field(state.input, "subagent_type"))
        if begin != NO_TIME and end >= begin:
            call.more = {"run_time": round(times.end - times.start, 3) / 1000}
        if state.status in ("completed", "error"):
            error, error_text = "", as_text(state.error)
            if state.status == "error":
                error = "tool_error"
                if error_text.startswith(_REJECTIONS):
                    error = steps.REJECTED
                elif error_text.startswith(_INTERRUPTION):
                    error = steps.INTERRUPTED
            elif metadata is not None and type(metadata.exit) is int and metadata.exit:
                error = "exit_code"
            elif tool == "invalid":
                error = "invalid"
            ref = self._privacy.reference(state.output or state.error)
            status = _ERROR if error else _OK
            call.result = ToolResult(end, place, tool_call=call, status=status, error=error, ref=ref)
        state.input = state.output = None
        return call


def _error(value: Any) -> str:
    """Return the name of an error."""
    return masked(text_field(value, "name")) or "error"


class _ModelStep(Struct, gc=False):
    """A step of a message: one request to the model and its answer."""

    begin: float = NO_TIME  # the first time in its parts
    end: float = NO_TIME  # the last time in its parts
    text_refs: list[str] = field(default_factory=list)  # the references to its texts
    calls: list[PartRow] = field(default_factory=list)
    usage: Any = None
    cost: float | None = None  # in US dollars; None if the log does not say
    stated: _StatedUsage = ((), True, 0)  # `usage` as `_stated_usage` returns it


class _Family:
    """A session that no other session spawned, and all sessions below it."""

    def __init__(self, sessions: Sequence[Session], privacy: Privacy, report: ImportReport) -> None:
        self._run, self._sessions = Run("opencode", privacy, report), sessions
        self._answer_ids = current_answer_ids()
        self._spawns: list[tuple[str, ToolCall, str]] = []  # parent, call, and child, which is empty if not stated

    def trace(self) -> Trace:
        """Return the trace."""
        run, root = self._run, self._sessions[0]
        run.name, run.version = root.id, root.version
        messages_by_session: dict[str, list[Message]] = {}
        for session in self._sessions:
            messages_by_session[session.id] = sorted(session.messages.values(), key=attrgetter("created", "id"))

        def begin(session: Session) -> tuple[float, str]:
            messages = messages_by_session[session.id]
            return (messages[0].created, messages[0].id) if messages else (0.0, "")

        subagents = sorted(self._sessions[1:], key=begin)
        for session in (root, *subagents):
            messages = messages_by_session[session.id]
            name, role = "main", ""
            if session is not root:
                role = _role(session, messages)
                name = role or "agent"
            agent = run.agent(session.id, name, role)
            agent.is_root = session is root
            for message in messages:
                self._add_steps(agent, message)
        root_steps = run.agents[root.id].steps
        if root.parent and root.parent not in run.agents and root_steps:
            run.report.note(Problem.NO_PARENT, str(root_steps[0].place))
        with_sessions = set(run.agents)
        for parent, call, child in self._spawns:
            if not child:
                continue
            if child not in with_sessions or child == parent:
                if call.result is not None and call.result.status is Status.ERROR:
                    continue  # no agent was spawned
                child = f"{child} of {call.id}"
                run.agent(child, call.role or child, call.role)
            run.spawn(child, parent, call)
        for session in subagents:
            if session.parent in with_sessions and not run.is_spawned(session.id):
                run.spawn(session.id, session.parent)
        return run.trace()

    def _add_steps(self, agent: steps.Transcript, message: Message) -> None:
        """Add the steps of a message; a message of a model has an answer for each of its own steps."""
        row, place, run = message.row or _NO_ROW, message.place, self._run
        if row.role == "user":
            prompt_parts = [part for part in message.parts.values() if _is_prompt_part(part)]
            if agent.is_root and (prompt_parts or not message.parts):
                refs = [part.text for part in prompt_parts if part.type == "text" and part.text]
                ref = refs[0] if len(refs) == 1 else run.privacy.reference("\n".join(refs))
                agent.add(UserInput(message.created, place, ref=ref))
            else:  # it is the parent's or the program's
                agent.add(Note(message.created, place))
            return
        model_steps = _model_steps(message)
        message_usage = row.tokens
        if message_usage is not None and not any(step.usage and step.usage != _NO_USAGE for step in model_steps):
            model_steps[-1].usage = message_usage
            message_usage = None
        for step in model_steps:
            step.stated = _stated_usage(step.usage)
        if message_usage is not None:  # it repeats the usage of the steps
            first = model_steps[0]
            stated = first.stated if message_usage == first.usage else _stated_usage(message_usage)
            run.report.enter_all(_RESTATED, {"total": stated[2]})
            if len(model_steps) == 1 and stated != first.stated:
                run.report.note(Problem.RESTATED_DIFFERS, str(place))
        if row.cost and all(step.cost is None for step in model_steps):
            model_steps[-1].cost = as_dollars(row.cost)
        end = message.created
        for step in model_steps:
            end = self._add_model_step(agent, message, row, step, end, is_last=step is model_steps[-1])
        if agent.is_root and message.error == _ABORTED:
            agent.add(UserInput(end, place, waited=False, status=Status.CANCELLED))

    def _add_model_step(
        self, agent: steps.Transcript, message: Message, row: Row, step: _ModelStep, begin: float, *, is_last: bool
    ) -> float:
        """Add the answer of a step with its calls, and return the time at which the last of them ended."""
        run, first, calls, place = self._run, step.begin, step.calls, message.place
        if begin == NO_TIME:
            begin = first
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
        ref = step.text_refs[0] if step.text_refs else ""  # as it is, so that the same text has the same hash elsewhere
        model = run.masked(row.model_id or text_field(row.model, "modelID"))
        call = ModelCall(begin, place, end=end, model=model, ref=ref, final=not calls, error=error, more=more)
        for text_ref in step.text_refs[1:]:
            call.note_text(text_ref, run.privacy)
        agent.add(call)
        stated_counts, reasoning_apart, _ = step.stated
        run.spend(call, stated_counts, caches_apart=True, reasoning_apart=reasoning_apart)
        if call.spent is not None and message.created != NO_TIME:  # not by its id: copies in a fork have new ids
            self._answer_ids.note((message.created, stated_counts), f"{model} opencode", place.file, place.line)
        for part in calls:
            tool_call = message.calls[part.id]
            tool_call.model_call = call
            if tool_call.time == NO_TIME:
                tool_call.time = call.end
            agent.add(tool_call)
            result, call_end = tool_call.result, tool_call.time
            if result is not None:
                result.time = call_end = max(result.time, call_end)
                agent.add(result)
            if tool_call.tool == "task" and part.state is not None and part.state.metadata is not None:
                self._spawns.append((agent.key, tool_call, part.state.metadata.session))
            if call_end > end:
                end = call_end
        return end


def _role(session: Session, messages: Sequence[Message]) -> str:
    """Return the role of a session's agent: its own, else the first that a message names; empty if unknown."""
    role = session.agent
    for message in messages:
        if role:
            break
        if message.row is not None:
            role = masked(message.row.agent or message.row.mode)
    return role


def _is_prompt_part(part: PartRow) -> bool:
    """Return True if a person wrote a part of a user's message, and not the program."""
    return part.type in ("subtask", "file") or (part.type == "text" and part.synthetic is not True)


def _model_steps(message: Message) -> list[_ModelStep]:
    """Return the steps of a message, at least one."""
    step = _ModelStep()
    model_steps = [step]
    for index, part_id in enumerate(sorted(message.parts)):  # ids rise with time
        part = message.parts[part_id]
        kind, begin, end = part.type, NO_TIME, NO_TIME
        if kind == "step-start" and index:
            step = _ModelStep()
            model_steps.append(step)
        if kind == "tool":
            step.calls.append(part)
            begin = end = message.calls[part_id].time  # not the tool's end: the model's answer is over when it begins
        elif part.time is not None:
            begin, end = moment_ms(part.time.start), moment_ms(part.time.end)
        if kind == "step-finish":
            if step.usage is None:
                step.usage = part.tokens
            if part.cost:
                step.cost = as_dollars(part.cost)
        elif (kind == "text" or kind == "reasoning") and part.text:
            step.text_refs.append(part.text)
        if begin != NO_TIME and not NO_TIME < step.begin <= begin:
            step.begin = begin
        if end > step.end:
            step.end = end
    return model_steps


def _stated_usage(usage: Any) -> _StatedUsage:
    """Return the counts of a usage, True if its output excludes reasoning, and its total.

    The input excludes cache tokens. In version 1.1 the output includes reasoning, which the stated total tells.
    """
    usage = usage if type(usage) is Usage else _NO_USAGE
    cache = usage.cache if type(usage.cache) is Usage else _NO_USAGE
    stated = usage.input, usage.output, cache.read, cache.write, usage.reasoning
    valid = counts(stated)
    total, reasoning = sum(filter(None, valid)), valid[-1] or 0
    if reasoning and usage.total == total - reasoning:
        return stated, False, total - reasoning
    return stated, True, total
