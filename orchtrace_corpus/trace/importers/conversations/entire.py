"""Entire: the compact transcripts that its checkpoints keep of sessions of other programs, one line for each message.

A line has the time at which the last part of its message was written. Results are inside their calls and have no time,
so tools take none: until the next answer, the model counts as working. The input of an answer excludes caches, which
are not stated, so no total is known. Of sub-agents, only the calls are there.
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
from orchtrace_corpus.trace.importers.core.values import count, first_text, mapping, objects, string, text_field
from orchtrace_corpus.trace.model.import_report import LedgerLine, Missing
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import Trace

_LINE = frozenset(("v", "agent", "type", "content"))
_FULL = "full.jsonl"
_SPAWNS = frozenset(("Agent", "Task", "delegate_to_agent", "spawn_agent", "subagent", "task"))
"""The tools that spawn sub-agents; a call without one of `_TASKS` is of another tool with the same name."""
_TASKS = frozenset(("agent", "chain", "message", "objective", "prompt", "task", "tasks"))
_ROLES = ("subagent_type", "agent_type", "agent_name", "agent")
_WAITS = frozenset(("wait", "wait_agent"))
_SPAWNED = ("agent_id", "task_name")
_TIE_BYTES = 1_000
_INTERRUPTED = "[Request interrupted by user"
_INJECTED = (
    "<bash-std", "<local-command-", "<system-reminder", "<task-notification", "Caveat: The messages below",
    "This session is being continued from a previous conversation",
)  # fmt: skip
"""The beginnings of texts that Claude Code writes in the name of the person."""
_COMMANDS = ("<bash-input>", "<command-")


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
    rows = beginning.rows
    return any(_is_line(row) for row in rows[:5]) or (not rows and beginning.outline >= _LINE | {"cli_version"})


def _is_line(row: dict[str, Any]) -> bool:
    return row.keys() >= _LINE and type(row["v"]) is int and row["type"] in ("user", "assistant")


def session_keys(reader: logs.LogReader) -> Sequence[str]:
    """Return the session keys of a file: the first message, which later checkpoints repeat."""
    row = next(iter(reader.head().rows), {})
    if not _is_line(row) or type(row.get("ts")) is not str:
        return [reader.file.path]
    return [f"entire {row['agent']} {row['ts']} {json_parts.encoded(row['content'])[:_TIE_BYTES]!r}"]


def original(file: logs.LogFile) -> str:
    """Return the path of the transcript that a file condenses, which may not exist."""
    return os.path.join(os.path.dirname(file.path), _FULL)


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a session."""
    reading = _Reading(privacy)
    for file in files:
        reading.take(file)
    parts = os.path.realpath(files[0].path).split(os.sep)
    name = f"{''.join(parts[-4:-2])}-{parts[-2]}" if parts[-2].isdigit() else parts[-2]  # aa/bbbbbbbbbb/0
    reading.run.name = name if parts[-1] == "transcript.jsonl" else files[0].name
    yield reading.run.trace()


class _Reading:
    def __init__(self, privacy: Privacy) -> None:
        self.run = Run("entire", privacy)
        self._seen = SeenRows()
        self._answers: dict[str, steps.ModelCall] = {}
        self._unnamed = Counter[str]()  # answers of a file without ids, by their times
        self._spawned: dict[str, str] = {}  # of Codex, by the name of the agent in spawns and waits

    def take(self, file: logs.LogFile) -> None:
        """Read the lines of a file, each once."""
        run = self.run
        self._seen.begin_file()
        self._unnamed.clear()
        for line_number, line in logs.rows(file, run.report, _Line):
            place = steps.Place(file.name, line_number)
            run.system = run.system or string(line.agent)
            run.version = run.version or string(line.cli_version)
            is_new = self._seen.is_new((str(line.type), str(line.ts), str(line.id or line.tool_use_id)))
            if not is_new:
                run.report.skip("copy of a line")
            if line.type == "assistant":
                self._take_answer(line, place, is_new=is_new)
            elif line.type == "user" and is_new:
                self._take_prompt(line, place)
            elif line.type == "user_tool_result" and is_new:
                error = "tool_error" if mapping(line.result).get("error") else ""
                run.result(ROOT, string(line.tool_use_id), moment(line.ts), place, line.result, error=error)
            elif line.type not in ("user", "user_tool_result"):
                run.skip(string(line.type), is_known=False)

    def _take_prompt(self, line: _Line, place: steps.Place) -> None:
        """Take a text of a person, or of the program; early versions write an empty line before results."""
        if not line.content:
            self.run.report.skip("user line without a text")
            return
        texts = [text_field(part, "text") for part in objects(line.content)]
        text = ("\n".join(texts) or string(line.content)).lstrip()
        run, time = self.run, moment(line.ts)
        if text.startswith(_INTERRUPTED):
            run.interrupt(ROOT, time, place)
        elif text.startswith(_INJECTED):
            note = run.note(ROOT, time, place)
            for child, status in steps.notified(text):
                if run.is_spawned(child):
                    run.add_return(child, note, status)
        else:
            run.prompt(ROOT, time, place, texts or line.content, is_command=text.startswith(_COMMANDS))

    def _take_answer(self, line: _Line, place: steps.Place, *, is_new: bool) -> None:
        """Take an answer, or what a copy or a further line adds to one."""
        run, name = self.run, string(line.id)
        if not name:
            self._unnamed[str(line.ts)] += 1
            name = f"{line.ts} {self._unnamed[str(line.ts)]}"
        call, time = self._answers.get(name), moment(line.ts)
        if call is None:
            call = self._answers[name] = run.answer(ROOT, time, place)
            stated, output = line.input_tokens, line.output_tokens
            if stated is None and output is not None:
                run.spend_output(call, output)
            else:  # a line leaves out counts of 0
                output = 0 if output is None and count(stated) else output
                run.spend(call, (stated, output, None, None, None))
            if stated is not None and call.spent is not None:
                run.report.enter(LedgerLine.NO_CACHES)
                run.missing[Missing.CACHES] = run.missing.get(Missing.CACHES, 0) + 1
        elif count(line.input_tokens) or count(line.output_tokens):
            run.leave_out(LedgerLine.REPEATED_USAGE, (line.input_tokens, line.output_tokens, None, None, None))
        if is_new:
            call.end = max(call.end, time)
            call.note_text(string(line.content), run.privacy)
        for part in objects(line.content):
            if is_new and part.get("type") == "text":
                call.note_text(text_field(part, "text"), run.privacy)
            elif part.get("type") == "tool_use" and (is_new or text_field(part, "id")):
                self._take_call(part, call, time, place, is_codex=line.agent == "codex")

    def _take_call(
        self, part: dict[str, Any], answer: steps.ModelCall, time: float, place: steps.Place, *, is_codex: bool
    ) -> None:
        run, call_id, tool = self.run, text_field(part, "id"), text_field(part, "name")
        arguments, result = mapping(part.get("input")), part.get("result")
        is_known = bool(call_id) and (ROOT, call_id) in run.calls
        call = run.calls[ROOT, call_id] if is_known else run.call(ROOT, call_id, tool, time, place, arguments, answer)
        if type(result) is not dict or (call_id and run.result_of(ROOT, call_id) is not None):
            result = None
        output = text_field(result, "output")
        stated = mapping(json_parts.decoded(output)) if is_codex and output[:1] == "{" else {}
        name = first_text(stated, _SPAWNED)
        is_spawn = tool in _SPAWNS and not _TASKS.isdisjoint(arguments)
        is_refused = is_codex and is_spawn and bool(output) and not name
        if is_spawn and not is_refused and not is_known:
            child = call_id or str(place)
            role = first_text(arguments, _ROLES)
            run.agent(child, name.rpartition("/")[2] or role or text_field(arguments, "task_name") or "agent", role)
            run.spawn(child, ROOT, call, place, waits=not is_codex and arguments.get("run_in_background") is not True)
            if name:
                self._spawned[name] = child
        if result is None:
            return
        error = "tool_error" if is_refused or text_field(result, "status") == "error" else ""
        returned = run.result(ROOT, call_id, max(time, call.time), place, result.get("output"), error=error)
        if is_codex and tool in _WAITS:
            for agent, ending in mapping(stated.get("status")).items():
                if agent in self._spawned and mapping(ending):
                    ended = Status.OK if "completed" in ending else Status.ERROR
                    run.add_return(self._spawned[agent], returned, ended, run.privacy.reference(ending))
