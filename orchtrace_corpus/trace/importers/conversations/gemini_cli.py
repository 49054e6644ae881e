"""Import sessions of Gemini CLI: JSON Lines in which a message is written again when it grows, or one JSON document.

Sub-agents have files of their own, in a folder with the name of their parent's session.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked, masked_path
from orchtrace_corpus.trace.importers.core.run import ROOT, Run
from orchtrace_corpus.trace.importers.core.times import moment
from orchtrace_corpus.trace.importers.core.values import (
    as_count,
    as_object,
    object_field,
    objects_in,
    text_field,
    text_of,
)
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, LedgerLine
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import Trace

_HEADER_MEMBERS = frozenset(("sessionId", "projectHash"))
_PROGRAM_TEXT = "<session_context>"  # the beginning of the text that the program adds before the first prompt
_SUBAGENT_END = re.compile(r"Subagent '[^\n]{0,200}' finished\.\s+Termination Reason: (\w{1,40})")
_ENDED_STATES = ("success", "error", "cancelled")  # of calls
_PlacedMessage = tuple[dict[str, Any], steps.Place]  # a message as last written, and where it was first written


class _Header(NamedTuple):
    """The description of a file at its beginning."""

    session: str
    is_child: bool  # True for the file of a sub-agent
    is_document: bool  # True for one JSON document instead of JSON Lines


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is a session of Gemini CLI: its header names the project."""
    is_document = not beginning.rows and beginning.outline >= {*_HEADER_MEMBERS, "messages"}
    return is_document or any(row.keys() >= _HEADER_MEMBERS for row in beginning.rows)


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the keys of a file: its session and, for a sub-agent, the session of its parent."""
    header = _header(reader)
    keys = [f"session {header.session}"] if header.session else []
    path = reader.file.path
    if header.is_child:  # `realpath` only for a link: to resolve all folders takes longer than to read the file
        path = os.path.realpath(path) if os.path.islink(path) else os.path.abspath(path)
        keys.append(f"session {os.path.basename(os.path.dirname(path))}")
    return keys or [os.path.realpath(path)]


def further_files(reader: logs.LogReader) -> Sequence[logs.LogFile]:
    """Return the files of the sub-agents of a session, and of their sub-agents."""
    files: list[logs.LogFile] = []
    waiting = [_header(reader).session]
    folder = os.path.dirname(os.path.realpath(reader.file.path))
    sessions = set(waiting)
    while waiting:
        session = waiting.pop()
        session_folder = os.path.join(folder, session)
        is_folder_name = session not in ("", ".", "..") and os.path.basename(session_folder) == session
        if not is_folder_name or not os.path.isdir(session_folder):
            continue
        for name in sorted(os.listdir(session_folder)):
            stem, suffix = os.path.splitext(name)
            path = os.path.join(session_folder, name)
            if suffix in logs.SUFFIXES and os.path.isfile(path) and stem not in sessions:
                sessions.add(stem)
                waiting.append(stem)
                files.append(logs.LogFile(path, masked_path(name)))
    return files


def _header(reader: logs.LogReader) -> _Header:
    """Read the header of a file of lines, or the beginning of a document."""
    rows = reader.first().rows  # mostly the header
    if not rows or not rows[0].keys() >= _HEADER_MEMBERS:
        rows = reader.head().rows
    if rows:
        headers = [row for row in rows if row.keys() >= _HEADER_MEMBERS]
        header = headers[0] if headers else None
        return _Header(text_field(header, "sessionId"), text_field(header, "kind") == "subagent", is_document=False)
    text = reader.head().text
    session = re.search(r'"sessionId"\s*:\s*"([^"\\]{1,200})"', text)
    kind = re.search(r'"kind"\s*:\s*"([^"\\]{1,200})"', text)
    session_id = session[1] if session else ""
    is_child = kind is not None and kind[1] == "subagent"
    return _Header(session_id, is_child, is_document=True)


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a session."""
    headers = {}
    for file in files:
        with logs.LogReader(file) as reader:
            headers[file] = _header(reader)
    reading = _Reading(privacy, {header.session for header in headers.values() if not header.is_child})
    for file, header in sorted(headers.items(), key=lambda item: item[1].is_child):  # main sessions first
        reading.read_file(file, header)
    yield reading.trace(files[0])


class _Reading:
    """Reads the files of a session into a `Run`.

    The key of a sub-agent is the id of its session. Early versions give it the id of the main session; then the name of
    its file is the key.
    """

    def __init__(self, privacy: Privacy, main_sessions: set[str]) -> None:
        self._run = Run("gemini_cli", privacy)
        self._main_sessions = main_sessions
        self._messages: dict[str, dict[str, _PlacedMessage]] = {}  # by agent and id
        self._keys: dict[str, str] = {}  # of sub-agents, by the key itself and by the name of the file

    def read_file(self, file: logs.LogFile, header: _Header) -> None:
        """Collect the messages of a file."""
        run, stem = self._run, os.path.splitext(os.path.basename(file.path_text))[0]
        agent = ROOT
        if header.is_child:
            agent = stem
            if header.session and header.session not in self._main_sessions:
                agent = header.session
            self._keys.update({stem: agent, agent: agent})
        else:
            run.name = run.name or header.session
        messages = self._messages.setdefault(agent, {})
        rows = _document_rows(file, run.report) if header.is_document else logs.rows(file, run.report)
        for line, row in rows:
            place = steps.Place(file.name, line)
            is_message = "type" in row
            if "$set" in row or ("messages" in row and not is_message):
                update = as_object(row.get("$set", row))
                for message in objects_in(update.get("messages")):
                    self._read_message(messages, message, place)
            elif "$rewindTo" in row and not is_message:
                run.report.skip("$rewindTo")  # messages cut from the history were paid for
            elif is_message or not row.keys() >= _HEADER_MEMBERS:  # a header is no message
                self._read_message(messages, row, place)

    def _read_message(self, messages: dict[str, _PlacedMessage], row: dict[str, Any], place: steps.Place) -> None:
        """Add a message to those of its agent, or update the message with the same id."""
        message_id = text_field(row, "id")
        if not message_id or type(row.get("type")) is not str:
            self._run.report.drop(Drop.NO_ID, place.file, place.line)
        elif message_id not in messages:
            messages[message_id] = row, place
        else:
            earlier, _ = messages[message_id]
            if "tokens" in earlier:
                stated, reasoning_apart = _usage(as_object(earlier["tokens"]))
                self._run.leave_out(LedgerLine.REPEATED_USAGE, stated, reasoning_apart=reasoning_apart)
            earlier.update(row)

    def trace(self, file: logs.LogFile) -> Trace:
        """Return the trace; the file names the run if no header does."""
        self._run.name = self._run.name or file.stem
        for agent, messages in self._messages.items():
            for row, place in messages.values():
                self._add(agent, row, place)
        return self._run.trace()

    def _add(self, agent: str, row: dict[str, Any], place: steps.Place) -> None:
        """Add the steps of a message to the run."""
        kind, time = row["type"], moment(row.get("timestamp"))
        if kind == "user":
            text = text_of(row.get("content"))
            if text and agent == ROOT and not text.lstrip().startswith(_PROGRAM_TEXT):
                self._run.prompt(agent, time, place, text)
            elif text:
                self._run.note(agent, time, place)
        elif kind == "gemini":
            self._add_answer(agent, row, time, place)
        elif kind == "error":
            self._run.answer(agent, time, place, error="error")
        else:
            self._run.skip(kind, is_known=kind in ("info", "warning"))

    def _add_answer(self, agent: str, row: dict[str, Any], time: float, place: steps.Place) -> None:
        run = self._run
        ref = run.privacy.reference(text_of(row.get("content")))
        answer = run.answer(agent, time, place, run.masked(text_field(row, "model")), ref=ref)
        if row.get("tokens") is not None:
            stated, reasoning_apart = _usage(as_object(row["tokens"]))
            run.spend(answer, stated, reasoning_apart=reasoning_apart)
        for call in objects_in(row.get("toolCalls")):
            call_id = text_field(call, "id")
            run.call(agent, call_id, text_field(call, "name"), time, place, call.get("args"), answer)
            if text_field(call, "status") in _ENDED_STATES:
                self._add_result(agent, call_id, call, time, place)
            agent_id = text_field(call, "agentId")
            if agent_id:
                child = self._keys.get(agent_id, agent_id)
                role = text_field(call.get("args"), "agent_name") or text_field(call.get("resultDisplay"), "agentName")
                run.agent(child, name=role, role=role)  # the log names a sub-agent only by its id
                run.spawn(child, agent, call_id, place)

    def _add_result(self, agent: str, call_id: str, call: dict[str, Any], time: float, place: steps.Place) -> None:
        """Add the result of a call that has ended."""
        response: dict[str, Any] = {}
        for part in objects_in(call.get("result")):
            response = object_field(part.get("functionResponse"), "response")
            if response:
                break
        content = response.get("output", response.get("error"))
        status = steps.outcome(text_field(call, "status"))
        error = "tool_error" if status is Status.ERROR else ""
        subagent_end = _SUBAGENT_END.match(content) if type(content) is str else None
        if subagent_end is not None and subagent_end[1] != "GOAL":
            status, error = Status.ERROR, masked(subagent_end[1].lower())
        self._run.result(agent, call_id, max(moment(call.get("timestamp")), time), place, content, status, error)


def _usage(tokens: dict[str, Any]) -> tuple[tuple[Any, ...], bool]:
    """Return the usage of a message for `Run.spend`, and True if its output excludes reasoning.

    If the total is the sum of input and output, the output includes reasoning. The input excludes the tokens that
    tools added to the prompt, so they are added to it.
    """
    stated_input, stated_output = tokens.get("input"), tokens.get("output")
    input_tokens, output_tokens = as_count(stated_input), as_count(stated_output)
    if input_tokens is not None and tokens.get("tool"):
        input_tokens += as_count(tokens["tool"]) or 0
        stated_input = input_tokens
    reasoning_apart = False
    if input_tokens is not None and output_tokens is not None:
        reasoning_apart = as_count(tokens.get("total")) != input_tokens + output_tokens
    return (stated_input, stated_output, tokens.get("cached"), None, tokens.get("thoughts")), reasoning_apart


def _document_rows(file: logs.LogFile, report: ImportReport) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the messages of a document, each with its line."""
    members = logs.document(file).members()
    if "messages" in members:
        for part in members["messages"].elements():
            report.records_read += 1
            yield part.line, as_object(part.value())
