"""Gemini CLI sessions: messages, each written again when it grows, as lines or, in earlier versions, as one document.

Sub-agents have files of their own, in a folder that is called like the session above them.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked, masked_path
from orchtrace_corpus.trace.importers.core.run import ROOT, Run
from orchtrace_corpus.trace.importers.core.times import moment
from orchtrace_corpus.trace.importers.core.transcript import outcome
from orchtrace_corpus.trace.importers.core.values import count, mapping, objects, text_field
from orchtrace_corpus.trace.model.import_report import Drop, LedgerLine
from orchtrace_corpus.trace.model.trace import Status, Trace

_HEADER = frozenset(("sessionId", "projectHash"))
_INJECTED = "<session_context>"
"""With this begins what the program tells the model before anybody has typed."""
_ENDING = re.compile(r"Subagent '[^\n]{0,200}' finished\.\s+Termination Reason: (\w{1,40})")
_ERROR, _REPEATED = Status.ERROR, LedgerLine.REPEATED_USAGE  # which Python 3.11 takes long to find
_DONE = ("success", "error", "cancelled")
"""The states of calls that are over."""


_Messages = dict[str, tuple[dict[str, Any], steps.Place]]
"""Messages of an agent by their ids, as last written, and where they were written first."""


class _Header(NamedTuple):
    session: str
    is_child: bool
    is_laid_out: bool  # whether it is a document, which is no line


def recognises(beginning: Head) -> bool:
    """Whether a file that begins like this is a session of Gemini CLI: by the project that its header names."""
    is_document = not beginning.rows and beginning.outline >= {*_HEADER, "messages"}
    return is_document or any(row.keys() >= _HEADER for row in beginning.rows)


def ties(opened: Opened) -> Sequence[str]:
    """What ties a file to others: its session; of a sub-agent also that after which its folder is called.

    Raises:
        DataFileError: The file cannot be read.
    """
    header = _header(opened)
    found = [f"session {header.session}"] if header.session else []
    if header.is_child or not found:
        path = opened.file.path  # to follow the links of all folders above takes longer than to read the file
        path = os.path.realpath(path) if os.path.islink(path) or not header.is_child else os.path.abspath(path)
        found.append(f"session {os.path.basename(os.path.dirname(path))}" if header.is_child else path)
    return found


def beside(opened: Opened) -> Sequence[LogFile]:
    """The files of the sub-agents of a session, in the folder that is called like it, and of those below them."""
    found: list[LogFile] = []
    waiting = [_header(opened).session]
    folder = os.path.dirname(os.path.realpath(opened.file.path))
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        below = os.path.join(folder, name)
        if name in ("", ".", "..") or os.path.basename(below) != name or not os.path.isdir(below):
            continue
        for file in sorted(os.listdir(below)):
            stem, ending = os.path.splitext(file)
            path = os.path.join(below, file)
            if ending in logs.SUFFIXES and os.path.isfile(path) and stem not in seen:
                seen.add(stem)
                waiting.append(stem)
                found.append(LogFile(path, masked_path(file)))
    return found


def _header(opened: Opened) -> _Header:
    """Whose session a file is of, as its header says, or as the beginning of a document does."""
    rows = opened.first().rows or opened.head().rows
    if rows and not rows[0].keys() >= _HEADER:
        rows = opened.head().rows
    row = next((row for row in rows if row.keys() >= _HEADER), None)
    if rows:
        return _Header(text_field(row, "sessionId"), text_field(row, "kind") == "subagent", is_laid_out=False)
    said = (re.search(rf'"{name}"\s*:\s*"([^"\\]{{1,200}})"', opened.head().text) for name in ("sessionId", "kind"))
    session, kind = (mark[1] if mark else "" for mark in said)
    return _Header(session, kind == "subagent", is_laid_out=True)


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """The trace of a session.

    Raises:
        DataFileError: A file cannot be read, or nothing ran.
    """
    headers = {}
    for file in files:
        with Opened(file) as opened:
            headers[file] = _header(opened)
    reading = _Reading(privacy, {header.session for header in headers.values() if not header.is_child})
    for file, header in sorted(headers.items(), key=lambda item: item[1].is_child):
        reading.take(file, header)
    yield reading.trace(files[0])


class _Reading:
    """Reads the files of a session; the names of sub-agents are those of their sessions, or of their files.

    Args:
        privacy: How contents are referred to.
        mains: The sessions that people talk to. Those of sub-agents had the same names once.
    """

    def __init__(self, privacy: Privacy, mains: set[str]) -> None:
        self._run = Run("gemini_cli", privacy)
        self._report = self._run.report
        self._mains = mains
        self._messages: dict[
            str, dict[str, tuple[dict[str, Any], steps.Place]]
        ] = {}  # by agent and id, as last written
        self._keys: dict[str, str] = {}  # of sub-agents, by every name that they have

    def take(self, file: LogFile, header: _Header) -> None:
        """The messages of a file."""
        stem = os.path.splitext(os.path.basename(file.path_text))[0]
        agent = (stem if header.session in self._mains else header.session or stem) if header.is_child else ROOT
        if agent:
            self._keys.update({stem: agent, agent: agent})
        else:
            self._run.name = self._run.name or header.session
        known, called = self._messages.setdefault(agent, {}), file.name
        for line, row in self._documents_rows(file) if header.is_laid_out else logs.rows(file, self._report):
            if "type" in row:
                self._take_message(known, row, called, line)
            elif "$set" in row or "messages" in row:
                for one in objects(mapping(row.get("$set", row)).get("messages")):
                    self._take_message(known, one, called, line)
            elif "$rewindTo" in row:
                self._report.pass_over("$rewindTo")  # what is gone from the history was paid for
            elif not row.keys() >= _HEADER:
                self._take_message(known, row, called, line)

    def _documents_rows(self, file: LogFile) -> Iterator[tuple[int, dict[str, Any]]]:
        messages = logs.JsonDocument(file).top.members().get("messages")
        for part in messages.elements() if messages is not None else ():
            self._report.records_read += 1
            yield part.line, mapping(part.value())

    def _take_message(self, messages: _Messages, row: dict[str, Any], file: str, line: int) -> None:
        """A message of an agent, or one that was there before, and has more in it now."""
        name = text_field(row, "id")
        if not name or type(row.get("type")) is not str:
            self._report.drop(Drop.NO_ID, file, line)
        elif name not in messages:
            messages[name] = row, steps.Place(file, line)
        else:
            known = messages[name][0]
            if "tokens" in known:
                self._run.leave_out(_REPEATED, _usage(mapping(known["tokens"])))
            known.update(row)

    def trace(self, file: LogFile) -> Trace:
        """The trace.

        Raises:
            EmptyLogError: Nothing ran.
        """
        stem = os.path.splitext(os.path.basename(file.path_text))[0]
        self._run.name = self._run.name or masked_path(stem)
        for agent, messages in self._messages.items():
            for row, place in messages.values():
                self._add(agent, row, place)
        return self._run.trace()

    def _add(self, agent: str, row: dict[str, Any], place: steps.Place) -> None:
        kind, time = row["type"], moment(row.get("timestamp"))
        if kind == "user":
            self._add_input(agent, row.get("content"), time, place)
        elif kind == "gemini":
            self._add_answer(agent, row, time, place)
        elif kind == "error":
            self._run.agent(agent).add(steps.ModelCall(time, place, end=time, error="error"))
        elif kind in ("info", "warning"):
            self._report.pass_over(kind)
        else:
            self._report.note_unknown(masked(kind))

    def _add_input(self, agent: str, content: Any, time: float, place: steps.Place) -> None:
        """What the model is given: by a person, or by the program, as results of calls are."""
        text = _text(content)
        if not text:
            return
        if agent == ROOT and not text.lstrip().startswith(_INJECTED):
            typed = steps.UserInput(time, place, ref=self._run.privacy.reference(text))
            self._run.agent(agent).add(typed)
        else:
            self._run.agent(agent).add(steps.Note(time, place))

    def _add_answer(self, agent: str, row: dict[str, Any], time: float, place: steps.Place) -> None:
        run = self._run
        call = steps.ModelCall(time, place, end=time, model=masked(text_field(row, "model")))
        call.ref = run.privacy.reference(_text(row.get("content")))
        run.agent(agent).add(call)
        if row.get("tokens") is not None:
            run.spend(call, _usage(mapping(row["tokens"])))
        for one in objects(row.get("toolCalls")):
            use, tool = text_field(one, "id"), text_field(one, "name")
            run.call(agent, use, tool, time, place, one.get("args"), call)
            self._add_result(agent, use, one, time, place)

    def _add_result(self, agent: str, use: str, one: dict[str, Any], time: float, place: steps.Place) -> None:
        """What came of a call, where it is over; what is noted of it is when it ended."""
        word = text_field(one, "status")
        if word in _DONE:
            content = None
            for part in objects(one.get("result")):
                if response := mapping(mapping(part.get("functionResponse")).get("response")):
                    content = response.get("output", response.get("error"))
                    break
            status, end = outcome(word), moment(one.get("timestamp"))
            error = "tool_error" if status is _ERROR else ""
            found = self._run.result(agent, use, max(end, time), place, content, status, error)
            ending = _ENDING.match(content) if type(content) is str else None
            if ending is not None and ending[1] != "GOAL":
                found.status, found.error = Status.ERROR, masked(ending[1].lower())
        if child := text_field(one, "agentId"):
            child = self._keys.get(child, child)
            given, shown = mapping(one.get("args")), mapping(one.get("resultDisplay"))
            role = text_field(given, "agent_name") or text_field(shown, "agentName")
            self._run.agent(child, role, role)  # its own name is only an id
            self._run.spawn(child, agent, use, place)


def _text(content: Any) -> str:
    """The texts of a content."""
    if type(content) is str:
        return content
    return "\n".join([text for part in objects(content) if (text := text_field(part, "text"))])


def _usage(tokens: dict[str, Any]) -> tuple[Any, ...]:
    """The usage of a message: thoughts, and what tools put into the prompt, are counted apart from the rest."""
    prompt, written, thought, added = map(tokens.get, ("input", "output", "thoughts", "tool"))
    asked = count(prompt)
    if asked is not None:
        prompt = asked + (count(added) or 0) if added else asked
        said = count(written)
        if said is not None and count(tokens.get("total")) != prompt + said:
            written = said + (count(thought) or 0)
    return prompt, written, tokens.get("cached"), None, thought
