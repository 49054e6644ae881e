"""Import compact transcripts of Entire, whose checkpoints keep sessions of other programs, one line for each message.

A line has the time at which the last part of its message was written. Results are inside their calls and have no time.
So tools take no time, and the model counts as working until its next answer. The input of an answer excludes cache
tokens, which are not stated: no total is known. Sub-agents have no transcripts, only the calls that spawn them.
Shape: `cmd/entire/cli/transcript/compact` of entireio/cli.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from orchtrace_corpus.trace.importers.core import json_parts, logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.identity import SeenRows
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.run import ROOT, Run
from orchtrace_corpus.trace.importers.core.times import moment
from orchtrace_corpus.trace.importers.core.values import (
    as_count,
    as_object,
    as_text,
    first_text,
    objects_in,
    text_field,
)
from orchtrace_corpus.trace.model.import_report import LedgerLine, Missing
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import Trace

_LINE_MEMBERS = frozenset(("v", "agent", "type", "content"))
_FULL_TRANSCRIPT = "full.jsonl"
_SPAWN_TOOLS = frozenset(("Agent", "Task", "delegate_to_agent", "spawn_agent", "subagent", "task"))
"""The tools that spawn sub-agents. A call without one of `_TASK_ARGUMENTS` is of another tool with the same name."""
_TASK_ARGUMENTS = frozenset(("agent", "chain", "message", "objective", "prompt", "task", "tasks"))
_ROLE_ARGUMENTS = ("subagent_type", "agent_type", "agent_name", "agent")
_WAIT_TOOLS = frozenset(("wait", "wait_agent"))
_AGENT_MEMBERS = ("agent_id", "task_name")  # the names of an agent in an output of Codex
_MAX_KEY_BYTES = 1_000  # of the first message
_INTERRUPTED = "[Request interrupted by user"
_PROGRAM_TEXTS = (
    "<bash-std", "<local-command-", "<system-reminder", "<task-notification", "Caveat: The messages below",
    "This session is being continued from a previous conversation",
)  # fmt: skip
"""The beginnings of texts that Claude Code writes in the name of the person."""
_COMMAND_TEXTS = ("<bash-input>", "<command-")


class _Line(Struct, gc=False):
    agent: Any = None
    cli_version: Any = None
    type: Any = None
    ts: Any = None
    id: Any = None
    input_tokens: Any = None
    output_tokens: Any = None
    content: Any = None
    tool_use_id: Any = None
    result: Any = None


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this is a compact transcript."""
    if not beginning.rows:  # the first line is longer than a head
        return beginning.outline >= _LINE_MEMBERS | {"cli_version"}
    return any(_is_line(row) for row in beginning.rows[:5])


def _is_line(row: dict[str, Any]) -> bool:
    return row.keys() >= _LINE_MEMBERS and type(row["v"]) is int and row["type"] in ("user", "assistant")


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the key of the session, its first message: later checkpoints repeat it."""
    rows = reader.head().rows
    if not rows or not _is_line(rows[0]) or type(rows[0].get("ts")) is not str:
        return [reader.file.path]
    row = rows[0]
    return [f"entire {row['agent']} {row['ts']} {json_parts.encoded(row['content'])[:_MAX_KEY_BYTES]!r}"]


def original(file: logs.LogFile) -> str:
    """Return the path of the transcript that a file condenses, which may not exist."""
    return os.path.join(os.path.dirname(file.path), _FULL_TRANSCRIPT)


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a session."""
    reading = _Reading(privacy)
    for file in files:
        reading.read_file(file)
    folders = os.path.realpath(files[0].path).split(os.sep)
    file_name = folders.pop()
    if file_name != "transcript.jsonl":
        reading.run.name = files[0].name
    elif folders[-1].isdigit():  # the folders are `aa/bbbbbbbbbb/0`: an id in two parts, and an index
        reading.run.name = f"{''.join(folders[-3:-1])}-{folders[-1]}"
    else:
        reading.run.name = folders[-1]
    yield reading.run.trace()


class _Reading:
    """Reads the lines of a session into a `Run`."""

    def __init__(self, privacy: Privacy) -> None:
        self.run = Run("entire", privacy)
        self._seen_lines = SeenRows()
        self._answers: dict[str, steps.ModelCall] = {}  # by id
        self._answers_by_time = Counter[str]()  # the number of a file's answers without ids, by their times
        self._children: dict[str, str] = {}  # the keys of Codex's sub-agents, by their names in spawns and waits

    def read_file(self, file: logs.LogFile) -> None:
        """Read the lines of a file, each once."""
        run = self.run
        self._seen_lines.begin_file()
        self._answers_by_time.clear()
        for line_number, line in logs.rows(file, run.report, _Line):
            place = steps.Place(file.name, line_number)
            run.system = run.system or as_text(line.agent)
            run.version = run.version or as_text(line.cli_version)
            is_new = self._seen_lines.is_new((str(line.type), str(line.ts), str(line.id or line.tool_use_id)))
            if not is_new:
                run.report.skip("copy of a line")
            if line.type == "assistant":
                self._read_answer(line, place, is_new=is_new)
            elif line.type == "user" and is_new:
                self._read_prompt(line, place)
            elif line.type == "user_tool_result" and is_new:
                error = "tool_error" if as_object(line.result).get("error") else ""
                run.result(ROOT, as_text(line.tool_use_id), moment(line.ts), place, line.result, error=error)
            elif line.type not in ("user", "user_tool_result"):
                run.skip(as_text(line.type), is_known=False)

    def _read_prompt(self, line: _Line, place: steps.Place) -> None:
        """Read a text of a person or of the program; early versions write an empty line before results."""
        if not line.content:
            self.run.report.skip("user line without a text")
            return
        texts = [text_field(part, "text") for part in objects_in(line.content)]
        text = ("\n".join(texts) or as_text(line.content)).lstrip()
        run, time = self.run, moment(line.ts)
        if text.startswith(_INTERRUPTED):
            run.interrupt(ROOT, time, place)
        elif text.startswith(_PROGRAM_TEXTS):
            note = run.note(ROOT, time, place)
            for child, status in steps.notified(text):
                if run.is_spawned(child):
                    run.add_return(child, note, status)
        else:
            run.prompt(ROOT, time, place, texts or line.content, is_command=text.startswith(_COMMAND_TEXTS))

    def _read_answer(self, line: _Line, place: steps.Place, *, is_new: bool) -> None:
        """Read an answer, or another line of one; a copy of a line (not `is_new`) may still add calls or results."""
        run, answer_id = self.run, as_text(line.id)
        if not answer_id:
            self._answers_by_time[str(line.ts)] += 1
            answer_id = f"{line.ts} {self._answers_by_time[str(line.ts)]}"
        call, time = self._answers.get(answer_id), moment(line.ts)
        if call is None:
            call = self._answers[answer_id] = run.answer(ROOT, time, place)
            input_tokens, output_tokens = line.input_tokens, line.output_tokens
            if input_tokens is None and output_tokens is not None:
                run.spend_output(call, output_tokens)
            else:
                if output_tokens is None and as_count(input_tokens):
                    output_tokens = 0  # the program leaves out counts of 0
                run.spend(call, (input_tokens, output_tokens, None, None, None))
            if input_tokens is not None and call.spent is not None:
                run.report.enter(LedgerLine.NO_CACHES)
                run.missing[Missing.CACHES] = run.missing.get(Missing.CACHES, 0) + 1
        elif as_count(line.input_tokens) or as_count(line.output_tokens):
            run.leave_out(LedgerLine.REPEATED_USAGE, (line.input_tokens, line.output_tokens, None, None, None))
        if is_new:
            call.end = max(call.end, time)
            call.note_text(as_text(line.content), run.privacy)
        for part in objects_in(line.content):
            if is_new and part.get("type") == "text":
                call.note_text(text_field(part, "text"), run.privacy)
            elif part.get("type") == "tool_use" and (is_new or text_field(part, "id")):
                self._read_call(part, call, time, place, is_codex=line.agent == "codex")

    def _read_call(
        self, part: dict[str, Any], answer: steps.ModelCall, time: float, place: steps.Place, *, is_codex: bool
    ) -> None:
        """Read a call of a tool with its result, if the line has one; Codex writes facts about agents in outputs."""
        run, call_id, tool = self.run, text_field(part, "id"), text_field(part, "name")
        arguments, result = as_object(part.get("input")), part.get("result")
        is_known = bool(call_id) and (ROOT, call_id) in run.calls
        call = run.calls[ROOT, call_id] if is_known else run.call(ROOT, call_id, tool, time, place, arguments, answer)
        if type(result) is not dict or (call_id and run.result_of(ROOT, call_id) is not None):
            result = None  # it has none, or is read already
        output = text_field(result, "output")
        details: dict[str, Any] = {}
        if is_codex and output[:1] == "{":
            details = as_object(json_parts.decoded(output))
        agent_name = first_text(details, _AGENT_MEMBERS)
        is_spawn = tool in _SPAWN_TOOLS and not _TASK_ARGUMENTS.isdisjoint(arguments)
        is_refused = is_codex and is_spawn and bool(output) and not agent_name
        if is_spawn and not is_refused and not is_known:
            child = call_id or str(place)
            role = first_text(arguments, _ROLE_ARGUMENTS)
            short_name = agent_name.rpartition("/")[2] or role or text_field(arguments, "task_name") or "agent"
            run.agent(child, short_name, role)
            run.spawn(child, ROOT, call, place, waits=not is_codex and arguments.get("run_in_background") is not True)
            if agent_name:
                self._children[agent_name] = child
        if result is None:
            return
        error = "tool_error" if is_refused or text_field(result, "status") == "error" else ""
        step = run.result(ROOT, call_id, max(time, call.time), place, result.get("output"), error=error)
        if is_codex and tool in _WAIT_TOOLS:
            for name, state in as_object(details.get("status")).items():
                if name in self._children and as_object(state):
                    status = Status.OK if "completed" in state else Status.ERROR
                    run.add_return(self._children[name], step, status, run.privacy.reference(state))
