"""Gemini CLI sessions: messages, each written again when it grows, as lines or, in earlier versions, as one document.

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
from orchtrace_corpus.trace.importers.core.values import count, mapping, object_field, objects, text_field, text_of
from orchtrace_corpus.trace.model.import_report import Drop, LedgerLine
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import Trace

_HEADER = frozenset(("sessionId", "projectHash"))
_INJECTED = "<session_context>"  # begins the text that the program adds before the first prompt
_ENDING = re.compile(r"Subagent '[^\n]{0,200}' finished\.\s+Termination Reason: (\w{1,40})")
_DONE = ("success", "error", "cancelled")  # the states of calls that are over
_Message = tuple[dict[str, Any], steps.Place]  # as last written, and the place where it was written first


class _Header(NamedTuple):
    session: str
    is_child: bool  # whether the file is of a sub-agent
    is_document: bool  # whether it is one document, not lines


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is a session of Gemini CLI, by the project in its header."""
    is_document = not beginning.rows and beginning.outline >= {*_HEADER, "messages"}
    return is_document or any(row.keys() >= _HEADER for row in beginning.rows)


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the session keys of a file: its session, and that of the parent, if it is of a sub-agent."""
    header = _header(reader)
    names = [f"session {header.session}"] if header.session else []
    path = reader.file.path
    if header.is_child:  # to follow the links of all folders above takes longer than to read the file
        path = os.path.realpath(path) if os.path.islink(path) else os.path.abspath(path)
        names.append(f"session {os.path.basename(os.path.dirname(path))}")
    return names or [os.path.realpath(path)]


def further_files(reader: logs.LogReader) -> Sequence[logs.LogFile]:
    """Return the files of the sub-agents of a session, at every depth."""
    files: list[logs.LogFile] = []
    waiting = [_header(reader).session]
    folder = os.path.dirname(os.path.realpath(reader.file.path))
    names = set(waiting)
    while waiting:
        name = waiting.pop()
        below = os.path.join(folder, name)
        if name in ("", ".", "..") or os.path.basename(below) != name or not os.path.isdir(below):
            continue
        for file in sorted(os.listdir(below)):
            stem, ending = os.path.splitext(file)
            path = os.path.join(below, file)
            if ending in logs.SUFFIXES and os.path.isfile(path) and stem not in names:
                names.add(stem)
                waiting.append(stem)
                files.append(logs.LogFile(path, masked_path(file)))
    return files


def _header(reader: logs.LogReader) -> _Header:
    """Read the header of a file of lines, or the beginning of a document."""
    rows = reader.first().rows or reader.head().rows
    if rows and not rows[0].keys() >= _HEADER:
        rows = reader.head().rows
    if rows:
        row = next((row for row in rows if row.keys() >= _HEADER), None)
        return _Header(text_field(row, "sessionId"), text_field(row, "kind") == "subagent", is_document=False)
    text = reader.head().text
    marks = (re.search(rf'"{name}"\s*:\s*"([^"\\]{{1,200}})"', text) for name in ("sessionId", "kind"))
    session, kind = (mark[1] if mark else "" for mark in marks)
    return _Header(session, kind == "subagent", is_document=True)


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a session."""
    headers = {}
    for file in files:
        with logs.LogReader(file) as reader:
            headers[file] = _header(reader)
    reading = _Reading(privacy, {header.session for header in headers.values() if not header.is_child})
    for file, header in sorted(headers.items(), key=lambda item: item[1].is_child):
        reading.take_file(file, header)
    yield reading.trace(files[0])


class _Reading:
    """Reads the files of a session; the key of a sub-agent is its session, or else the name of its file."""

    def __init__(self, privacy: Privacy, mains: set[str]) -> None:
        self._run = Run("gemini_cli", privacy)
        self._mains = mains  # the sessions that people talk to; early versions gave sub-agents the same
        self._messages: dict[str, dict[str, _Message]] = {}  # by agent and id, as last written
        self._keys: dict[str, str] = {}  # of sub-agents, by all their names

    def take_file(self, file: logs.LogFile, header: _Header) -> None:
        run, stem = self._run, os.path.splitext(os.path.basename(file.path_text))[0]
        agent = ROOT
        if header.is_child:
            agent = stem if header.session in self._mains or not header.session else header.session
            self._keys.update({stem: agent, agent: agent})
        else:
            run.name = run.name or header.session
        messages = self._messages.setdefault(agent, {})
        records = logs.rows(file, run.report)
        if header.is_document:
            document = logs.document(file).members()
            parts = document["messages"].elements() if "messages" in document else ()
            records = ((part.line, mapping(part.value())) for part in parts)
        for line, row in records:
            run.report.records_read += header.is_document
            place = steps.Place(file.name, line)
            if "$set" in row or ("messages" in row and "type" not in row):
                for message in objects(mapping(row.get("$set", row)).get("messages")):
                    self._take_message(messages, message, place)
            elif "$rewindTo" in row and "type" not in row:
                run.report.skip("$rewindTo")  # messages cut from the history were paid for
            elif "type" in row or not row.keys() >= _HEADER:
                self._take_message(messages, row, place)

    def _take_message(self, known: dict[str, _Message], row: dict[str, Any], place: steps.Place) -> None:
        message_id = text_field(row, "id")
        if not message_id or type(row.get("type")) is not str:
            self._run.report.drop(Drop.NO_ID, place.file, place.line)
        elif message_id not in known:
            known[message_id] = row, place
        else:
            earlier, _ = known[message_id]
            if "tokens" in earlier:
                stated, is_apart = _usage(mapping(earlier["tokens"]))
                self._run.leave_out(LedgerLine.REPEATED_USAGE, stated, reasoning_apart=is_apart)
            earlier.update(row)

    def trace(self, file: logs.LogFile) -> Trace:
        self._run.name = self._run.name or file.stem
        for agent, messages in self._messages.items():
            for row, place in messages.values():
                self._add(agent, row, place)
        return self._run.trace()

    def _add(self, agent: str, row: dict[str, Any], place: steps.Place) -> None:
        kind, time = row["type"], moment(row.get("timestamp"))
        if kind == "user":
            text = text_of(row.get("content"))
            if text and agent == ROOT and not text.lstrip().startswith(_INJECTED):
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
            stated, is_apart = _usage(mapping(row["tokens"]))
            run.spend(answer, stated, reasoning_apart=is_apart)
        for call in objects(row.get("toolCalls")):
            call_id = text_field(call, "id")
            run.call(agent, call_id, text_field(call, "name"), time, place, call.get("args"), answer)
            if text_field(call, "status") in _DONE:
                self._add_result(agent, call_id, call, time, place)
            if child := text_field(call, "agentId"):
                child = self._keys.get(child, child)
                role = text_field(call.get("args"), "agent_name") or text_field(call.get("resultDisplay"), "agentName")
                run.agent(child, role, role)  # its own name is only an id
                run.spawn(child, agent, call_id, place)

    def _add_result(self, agent: str, call_id: str, call: dict[str, Any], time: float, place: steps.Place) -> None:
        """Add the result of a call that is over; its time is that of the end."""
        responses = (object_field(part.get("functionResponse"), "response") for part in objects(call.get("result")))
        response = next(filter(None, responses), {})
        content = response.get("output", response.get("error"))
        status = steps.outcome(text_field(call, "status"))
        error = "tool_error" if status is Status.ERROR else ""
        ending = _ENDING.match(content) if type(content) is str else None
        if ending is not None and ending[1] != "GOAL":
            status, error = Status.ERROR, masked(ending[1].lower())
        self._run.result(agent, call_id, max(moment(call.get("timestamp")), time), place, content, status, error)


def _usage(tokens: dict[str, Any]) -> tuple[tuple[Any, ...], bool]:
    """Return the usage of a message, and whether its output excludes reasoning, as its total shows.

    The input excludes what tools added to the prompt.
    """
    prompt, written, thought, added = map(tokens.get, ("input", "output", "thoughts", "tool"))
    asked, said = count(prompt), count(written)
    if asked is not None and added:
        prompt = asked = asked + (count(added) or 0)
    is_apart = asked is not None and said is not None and count(tokens.get("total")) != asked + said
    return (prompt, written, tokens.get("cached"), None, thought), is_apart
