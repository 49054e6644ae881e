"""Reads the files of a Claude Code session into a run: a thread for the session itself, and one for each sub-agent."""

from collections.abc import Sequence
from typing import Any

from orchtrace_corpus.trace.importers.conversations.claude_code import background, rows
from orchtrace_corpus.trace.importers.conversations.claude_code.content import Content, Entry
from orchtrace_corpus.trace.importers.conversations.claude_code.rows import Line
from orchtrace_corpus.trace.importers.conversations.claude_code.sources import Part, Source, source
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.json_parts import lenient
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, LogFile
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, moment
from orchtrace_corpus.trace.importers.core.values import string, text_field
from orchtrace_corpus.trace.model.import_report import Drop, LedgerLine, Problem

MAIN = "main"
"""The agent that the user talks to."""

_STOPPING_SECONDS = 10.0
"""The longest time that stopping a command at its limit takes."""

_PROGRESS_SECONDS = 2.0
"""The inaccuracy of progress, which counts whole seconds."""


_SILENT = frozenset(
    (
        "agent-color", "agent-name", "agent-setting", "ai-title", "custom-title", "file-history-snapshot",
        "last-prompt", "mode", "permission-mode", "pr-link", "progress", "queue-operation", "summary", "system", "tag",
        "worktree-state",
    )
)  # fmt: skip
"""Notes of the program for itself."""


class Reading:
    """A session as far as its rows are read, before its agents are linked.

    Attributes:
        run: The run that has its agents.
        sources: Its files, those of the session itself first.
        threads: The threads, each by its name in the log; that of the session is `MAIN`.
        content: What the rows hold.
        relayed: The sub-agents that only rows of progress show, by their names in the log.

    Raises:
        DataFileError: A file cannot be read, or no file has a row of a conversation.
    """

    def __init__(self, files: Sequence[LogFile], run: Run) -> None:
        self.run, self.report = run, run.report
        self.content = Content(run.privacy, run.report)
        self.threads: dict[str, steps.Transcript] = {}
        self.relayed: set[str] = set()
        self._rows: dict[str, int] = {}
        self._inline: dict[str, str] = {}
        self._last_inline = ""
        self._copies: dict[str, dict[tuple[str, str], dict[str, int]]] = {}
        self.thread(MAIN)  # whose name no other agent gets
        self.sources = sorted(map(source, files), key=lambda file: (file.part is not Part.MAIN, file.run, file.shown))
        self._agents_with_files = {file.agent for file in self.sources if file.part is Part.AGENT}
        for file in self.sources:
            if file.part in (Part.MAIN, Part.AGENT):
                self._read(file)
        for key, spent in self._copies.items():
            self._add_copies(self.threads[key], spent)
        if not any(thread.steps for thread in self.threads.values()):
            raise EmptyLogError(f"no row of a conversation in {', '.join(file.shown for file in self.sources[:3])}")
        run.name = run.name or self.sources[0].shown.partition(".")[0]
        self._drop_silent_agents()
        self._join_results()

    def _read(self, file: Source) -> None:
        is_main = file.part is Part.MAIN
        own = self.thread(MAIN if is_main else file.agent)
        before, time, stamp = NO_TIME, NO_TIME, None
        for line, row in logs.rows(file.file._replace(name=file.shown), self.report, Line):
            kind = row.kind
            if row.timestamp != stamp:  # the rows of an answer may be written at once
                stamp = row.timestamp
                time = moment(stamp)
            if time != NO_TIME:
                if time < before:
                    self.report.out_of_order += 1
                before = time
            thread = self._inline_thread(row) if is_main and row.is_sidechain is True else own
            if isinstance(row.forked_from, dict):
                self._note_copy(row, thread, steps.Place(file.shown, line))
            elif kind in ("assistant", "user"):
                self._take(row, kind, thread, time, steps.Place(file.shown, line))
            elif kind == "attachment" and isinstance(row.attachment, dict):
                self.content.take_attachment(Entry(row, row.attachment, thread, time, steps.Place(file.shown, line)))
            elif isinstance(kind, str) and kind in _SILENT:
                self._take_silent(row, kind, thread, time, steps.Place(file.shown, line))
            else:
                self.report.note_unknown(masked(kind) if isinstance(kind, str) else "(no type)")

    def thread(self, key: str) -> steps.Transcript:
        """Return the thread of that name in the log, made when it is first asked for."""
        thread = self.threads.get(key)
        if thread is None:
            if key.startswith("acompact-"):
                thread = self.run.aside(MAIN, "compaction", key)
            else:
                thread = self.run.agent(key)
                thread.is_root = key == MAIN
            self.threads[key] = thread
        return thread

    def _inline_thread(self, row: Line) -> steps.Transcript:
        """Return the thread of a sub-agent whose rows stand among those of the session (1.x).

        Such rows name no agent. Each belongs to the thread of its parent row; if that is missing, to the thread of
        the row before. A row whose parent row is of the session itself begins a new thread.
        """
        key, uuid, parent = string(row.agent_id), string(row.uuid), string(row.parent_uuid)
        if not key:
            key = self._inline.get(parent, "")
            if not key and parent and parent not in self._rows:
                key = self._last_inline
            key = key or f"sidechain-{len(self.content.evidence.beginnings) + 1}"
        if uuid:
            self._inline.setdefault(uuid, key)
        self._last_inline = key
        self.content.evidence.beginnings.setdefault(key, rows.Beginning(parent_row=parent))
        return self.thread(key)

    def _take(self, row: Line, kind: str, thread: steps.Transcript, time: float, place: steps.Place) -> None:
        message = row.message
        if not isinstance(message, dict):
            reason = Drop.NO_USER_MESSAGE if kind == "user" else Drop.NO_ASSISTANT_MESSAGE
            self.report.drop(reason, place.file, place.line)
            return
        if time == NO_TIME:
            self.report.note(Problem.NO_ROW_TIME, str(place))
        self.run.name = self.run.name or string(row.session_id).partition("#")[0]
        self.run.version = self.run.version or string(row.version)
        if self._is_repeated(row, kind, message, place):
            spent, _ = rows.usage_of(message.get("usage"))
            if spent:
                self.report.enter(LedgerLine.REPEATED_ROW, **spent)
            else:
                self.report.pass_over("row that repeats an earlier one")
        elif kind == "assistant":
            self.content.take_assistant(Entry(row, message, thread, time, place))
        else:
            self.content.take_user(Entry(row, message, thread, time, place))

    def _take_silent(self, row: Line, kind: str, thread: steps.Transcript, time: float, place: steps.Place) -> None:
        """Read a note of the program for itself: of an agent at work, of a turn, of a task in its queue."""
        if kind == "progress" and text_field(row.data, "type") == "agent_progress":
            self._take_progress(row, time, place)
            return
        self.report.pass_over(kind)
        if kind == "progress" and text_field(row.data, "type") == "bash_progress":
            self.content.take_progress(row, time)
        elif kind == "system" and row.subtype == "turn_duration":
            if not self._is_repeated(row, kind, {}, place):
                self.content.take_turn_end(row, thread, time, place)
        elif kind == "queue-operation":
            self.content.take_queued(row, time, place)

    def _take_progress(self, row: Line, time: float, place: steps.Place) -> None:
        """Read a row of a sub-agent that the session repeats, if the sub-agent has no transcript."""
        key = text_field(row.data, "agentId")
        self.content.evidence.progress.setdefault(key, string(row.parent_tool_use))
        inner = row.data.get("message")
        if not key or key in self._agents_with_files or not isinstance(inner, dict):
            self.report.pass_over("progress")
            return
        copy = lenient(inner, Line)
        if copy is None or copy.kind not in ("assistant", "user"):
            self.report.pass_over("progress")
            return
        inner_time = moment(copy.timestamp)
        self.relayed.add(key)
        self._take(copy, copy.kind, self.thread(key), time if inner_time == NO_TIME else inner_time, place)

    def _drop_silent_agents(self) -> None:
        """Remove agents whose rows of progress have their task alone."""
        for key in sorted(self.relayed):
            if not any(isinstance(step, steps.ModelCall) for step in self.threads[key].steps):
                del self.threads[key], self.run.agents[key]
                self.relayed.discard(key)
                self.content.evidence.beginnings.pop(key, None)

    def _note_copy(self, row: Line, thread: steps.Transcript, place: steps.Place) -> None:
        """Note a row that was copied from another session, where its tokens count."""
        self.run.name = self.run.name or string(row.session_id).partition("#")[0]
        self.run.version = self.run.version or string(row.version)
        if thread.key not in self._copies:
            thread.steps.insert(0, steps.CopiedHistory(moment(row.timestamp), place, -1.0))
        spent = self._copies.setdefault(thread.key, {})
        message = row.message if row.kind == "assistant" else None
        tokens, _ = rows.usage_of(message.get("usage")) if isinstance(message, dict) else (None, False)
        if tokens:  # of an answer in several rows, the last one counts
            spent[text_field(message, "id") or string(row.uuid), string(row.request_id)] = tokens
        else:
            self.report.pass_over("row copied from another session")

    def _add_copies(self, thread: steps.Transcript, spent: dict[tuple[str, str], dict[str, int]]) -> None:
        """Enter the tokens of copied history, at the time of the first step behind it."""
        copied, *others = thread.steps
        if isinstance(copied, steps.CopiedHistory) and spent:
            copied.tokens = {kind: sum(tokens.get(kind, 0) for tokens in spent.values()) for kind, _ in rows.USAGE}
            self.report.enter(LedgerLine.COPIED_HISTORY, len(spent), **copied.tokens)
        copied.time = min((step.time for step in others if step.time != NO_TIME), default=copied.time)

    def _is_repeated(self, row: Line, kind: str, message: dict[str, Any], place: steps.Place) -> bool:
        """Return True if the row was read before, as in a session that goes on in a second file."""
        uuid = row.uuid
        if type(uuid) is not str or not uuid:
            return False
        content = message.get("content")
        size = len(content) if type(content) is list or type(content) is str else 0
        mark = hash((kind, string(row.timestamp), string(message.get("id")), size))
        earlier = self._rows.get(uuid)
        if earlier is None:
            self._rows[uuid] = mark
        elif earlier != mark:
            self.report.note(Problem.ROW_ID_USED_TWICE, str(place))
        return earlier == mark

    def _join_results(self) -> None:
        """Join results to their calls, once every step has its time."""
        for thread in self.threads.values():
            thread.fill_times()
        launches = []
        for result in self.content.results:
            tool_call = self.content.tool_calls.get((result.thread.key, result.id))
            if tool_call is None:
                self.report.note(Problem.RESULT_WITHOUT_CALL, str(result.answer.place))
            elif tool_call.answer is not None:
                result.answer.is_repeated = True
                self.report.note(Problem.SECOND_RESULT, str(result.answer.place))
            else:
                steps.answer(tool_call, result.answer)
                if result.time_limit:
                    _note_run_time(tool_call, result, result.time_limit, _STOPPING_SECONDS)
                elif result.id in self.content.run_begins and tool_call.purpose is steps.TOOL:
                    ran = result.answer.time - self.content.run_begins[result.id]
                    _note_run_time(tool_call, result, ran, _PROGRESS_SECONDS)
                if result.background and tool_call.purpose is steps.TOOL:
                    launches.append(background.Launch(result.background, result.id, tool_call))
        background.end_background_calls(launches, self.content.signs, self.content.evidence.notices)


def _note_run_time(tool_call: steps.ToolCall, result: rows.Result, seconds: float, tolerance: float) -> None:
    """Note how long a command ran: all the time until its result, or the last seconds of it; before, it waited."""
    took = result.answer.time - tool_call.time
    run_time = took if took - seconds <= tolerance else max(seconds, 0.0)
    tool_call.more = {"run_time": round(run_time, 6)}
