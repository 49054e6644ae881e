"""The records of OpenCode as typed values, whatever is wrong with them: sessions, messages, and parts of messages."""

from contextlib import suppress
from functools import cache
from typing import Any

from msgspec import DecodeError, Struct, field
from msgspec.json import Decoder

from orchtrace_corpus.base import budget
from orchtrace_corpus.trace.importers.core import json_parts as parts
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.logs import LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.times import NO_TIME, moment_ms
from orchtrace_corpus.trace.importers.core.values import string, text_field
from orchtrace_corpus.trace.model.decode import LINES
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport
from orchtrace_corpus.trace.model.terms import Status


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


_ROW = Decoder(Row)


def exact(data: Any) -> Row | None:
    """Return a row in which nothing is wrong; None for any other."""
    try:
        return _ROW.decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


def decode(data: Any) -> Row | None:
    """Return a row, whatever is wrong with it: members of another kind than they should be go; None for no row."""
    return exact(data) or parts.lenient(parts.decoded(data), Row)


_ASKS = frozenset(("question", "plan_enter", "plan_exit"))
_REJECTIONS = ("The user rejected permission", "The user dismissed this question")
_BREAK = "Tool execution aborted"
_SILENT = frozenset(("step-start", "snapshot", "patch", "agent", "file", "retry", "compaction", "subtask"))
_NO_TIMES, _NO_STATE = Times(), State()
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

    def _take_document(self, data: bytes, file: LogFile) -> None:
        """Take a record, or an export, whose messages are decoded one by one where it is large, laid out or faulty."""
        may_be_export = b'"messages"' in data
        is_brief = len(data) <= budget.MAX_LINE_BYTES and data.find(b"\n", 0, -1) < 0
        row = exact(data) if is_brief or not may_be_export else None
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

    def _message(self, name: str, session: str, place: steps.Place) -> Message:
        messages = self._session(session).messages
        known = messages.get(name)
        if known is None:
            known = messages[name] = Message(name, session, place)
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
            known = self._last = self._message(above, session, place)
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
            role, child = (
                masked(text_field(state.input, "subagent_type")),
                metadata.session if metadata is not None else "",
            )
        if begin != NO_TIME and end >= begin:
            more = {"run_time": round(times.end - times.start, 3) / 1000}
        ref = self._privacy.reference(state.input)
        call = steps.ToolCall(
            begin, place, 0.0, purpose, None, masked(row.call), tool, ref, "", role, None, False, "", more
        )
        result = None
        if status in ("completed", "error"):
            error = _failure(string(state.error)) if status == "error" else "invalid" if tool == "invalid" else ""
            if status == "completed" and metadata is not None and type(metadata.exit) is int and metadata.exit:
                error = "exit_code"
            ref = self._privacy.reference(state.output or state.error)
            result = steps.ToolResult(end, place, 0.0, call, False, _ERROR if error else _OK, error, ref)
        return Part("tool", begin, end, "", False, None, call, result, child)


def _error(value: Any) -> str:
    """Return what an error is called."""
    return masked(text_field(value, "name")) or "error"


def _failure(text: str) -> str:
    """Return the error of a call, by the text of the program itself."""
    if text.startswith(_REJECTIONS):
        return steps.REJECTED
    return steps.INTERRUPTED if text.startswith(_BREAK) else "tool_error"
