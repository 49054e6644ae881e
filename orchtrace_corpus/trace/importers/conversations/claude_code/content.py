"""Reads the rows of a Claude Code session into steps of threads, and into evidence of who spawned whom.

A model's answer is written in several rows, one for each of its blocks. They repeat its usage; the last one counts.
"""

from typing import Any

from msgspec import Struct

from orchtrace_corpus.trace.importers.conversations.claude_code import background, rows
from orchtrace_corpus.trace.importers.conversations.claude_code.rows import Line, Speaker, details
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.identity import current_answers
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.times import NO_TIME, duration
from orchtrace_corpus.trace.importers.core.values import mapping, string, text_field
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.trace import Status

_PURPOSES = {
    **dict.fromkeys(("Task", "Agent", "Workflow"), steps.SPAWN),
    **dict.fromkeys(("AskUserQuestion", "ExitPlanMode", "EnterPlanMode"), steps.ASK),
    **dict.fromkeys(("TaskOutput", "AgentOutputTool"), steps.JOIN),
    **dict.fromkeys(("TaskStop", "KillShell", "KillBash", "TeamDelete"), steps.CLOSE),
    "SendMessage": steps.MESSAGE,
}

_EARLIER = LedgerLine.EARLIER_ROW  # which Python 3.11 takes long to find
_WARM_UP = "Warmup"
"""The only prompt of the sub-agents with which the program fills caches, sometimes days before the session."""

_HOOK_FEEDBACK = "Stop hook feedback"
"""How the text begins with which a hook lets an agent go on that was done."""

_NO_MODEL = "<synthetic>"
"""The model of answers that the program itself has written."""

LEAST_ID_LENGTH = 20
"""Shorter ids are made up by people; those of the service have 28 characters, those of rows 36."""


class Entry(Struct, gc=False):
    """A row, its message or attachment, and where it belongs."""

    row: Line
    message: dict[str, Any]
    thread: steps.Transcript
    time: float
    place: steps.Place


class Content:
    """The content of the rows read so far.

    Attributes:
        evidence: The evidence of who spawned whom.
        signs: The signs of life and of the end of tasks in the background.
        tool_calls: The calls of tools, by thread and id.
        results: The results of calls, in the order of the log.
        run_begins: The time at which a command began to run, by the id of its call, as far as progress shows it.
    """

    def __init__(self, privacy: Privacy, report: ImportReport) -> None:
        self.evidence = rows.SpawnEvidence()
        self.tool_calls: dict[tuple[str, str], steps.ToolCall] = {}
        self.results: list[rows.Result] = []
        self.run_begins: dict[str, float] = {}
        self.signs: list[background.Sign] = []
        self._asked_tasks: dict[tuple[str, str], tuple[str, str]] = {}  # the tool and the task of a call about one
        self._privacy = privacy
        self._report = report
        self._written: dict[tuple[str, str, str], rows.Written] = {}
        self._answers = current_answers()

    def take_assistant(self, entry: Entry) -> None:
        """Add a row of a model's answer."""
        row, message, thread = entry.row, entry.message, entry.thread
        time, place = entry.time, entry.place
        if message.get("model") == _NO_MODEL and row.is_api_error_message is not True:
            thread.add(steps.Note(time, place))
            return
        written = self._find_answer(entry)
        if written is None:
            return
        call = written.call
        written.is_open = message.get("stop_reason", "") is None
        if row.is_api_error_message is True:
            call.error = "api_error"
        if message.get("stop_reason") == "refusal":
            thread.add(steps.SafetyEvent(time, place, error="refusal"))
        content = message.get("content")
        for block in content if type(content) is list else [{"type": "text", "text": content}]:
            kind = text_field(block, "type")
            if kind == "text":
                words = text_field(block, "text")
                written.characters += len(words)
                call.note_text(words, self._privacy)
            elif kind == "thinking":
                written.characters += len(text_field(block, "thinking"))
            elif kind.endswith("tool_use"):
                self._take_use(entry, block, call)
            elif kind.endswith("tool_result"):
                self._take_result(entry, block)

    def _find_answer(self, entry: Entry) -> rows.Written | None:
        """Return the answer that a row is a part of; None if another thread has it already."""
        message, thread, time, place = entry.message, entry.thread, entry.time, entry.place
        answer, request = string(message.get("id")), string(entry.row.request_id)
        # A long id of a message is the service's own, and so are both ids together. A short one alone may be made up,
        # and says nothing beyond its thread.
        is_own = len(answer) >= LEAST_ID_LENGTH
        key = (answer, "" if is_own else request, "" if is_own or request else thread.key)
        spent, is_odd = rows.usage_of(message.get("usage"))
        written = self._written.get(key) if answer else None
        if written is not None and written.thread is not thread:
            self._report.enter_all(LedgerLine.SECOND_FILE, spent or {})
            thread.add(steps.Note(time, place))
            return None
        if written is not None:
            self._report.enter_all(_EARLIER, written.tokens or {})
            written.rows += 1
        else:
            uuid = string(entry.row.uuid)
            if is_own or (answer and request):
                self._answers.note(answer, key[1], place.file, place.line)
            elif len(uuid) >= LEAST_ID_LENGTH:
                self._answers.note(uuid, "", place.file, place.line)
            model = text_field(message, "model")
            if model == _NO_MODEL:
                model, spent = "", spent or dict.fromkeys(("input", "output"), 0)
            model = masked(model)
            written = rows.Written(steps.ModelCall(time, place, end=time, model=model), thread)
            thread.add(written.call)
            self.evidence.written.append(written)
            self._written[key] = written
        call = written.call
        call.end = max(call.end, time)
        if NO_TIME != time < call.time:  # rows may stand in any order
            call.time = time
        written.tokens = spent or written.tokens
        written.is_odd = is_odd
        return written

    def _take_use(self, entry: Entry, block: dict[str, Any], call: steps.ModelCall) -> None:
        """Add a call of a tool."""
        thread, name, use, given = entry.thread, text_field(block, "name"), text_field(block, "id"), block.get("input")
        if use and (thread.key, use) in self.tool_calls:
            self._report.note(Problem.CALL_WRITTEN_TWICE, str(entry.place))
            return
        tool_call = steps.ToolCall(
            entry.time,
            entry.place,
            purpose=_PURPOSES.get(name, steps.TOOL),
            call=call,
            id=masked(use),
            tool=masked(name) or "(no name)",
        )
        call.final = False
        thread.add(tool_call)
        if use:
            self.tool_calls[thread.key, use] = tool_call
        details = mapping(given)
        match tool_call.purpose:
            case steps.SPAWN:
                prompt = text_field(details, "prompt") or text_field(details, "script")
                tool_call.ref, tool_call.role = (
                    self._privacy.reference(prompt),
                    masked(text_field(details, "subagent_type")),
                )
                team, is_workflow = text_field(details, "team_name"), name == rows.WORKFLOW_TOOL
                spawn = rows.Spawn(tool_call, thread, use, steps.mark(prompt), text_field(details, "name"), team,
                              string(entry.row.uuid))  # fmt: skip
                spawn.in_background = is_workflow or bool(team) or details.get("run_in_background") is True
                self.evidence.spawns.append(spawn)
            case steps.MESSAGE:
                body = text_field(details, "content") or text_field(details, "message")
                tool_call.ref = self._privacy.reference(body or given)
                name = text_field(details, "recipient") or text_field(details, "to")
                self.evidence.addressed.append(rows.Addressed(tool_call, thread, use, name, steps.mark(body)))
            case _:
                tool_call.ref = self._privacy.reference(given)
                if tool_call.purpose in (steps.JOIN, steps.CLOSE) or name in background.POLLS:
                    names = (text_field(details, field) for field in ("task_id", "agentId", "shell_id", "bash_id"))
                    task = next(filter(None, names), "")
                    self._asked_tasks[thread.key, use] = name, task
                    if tool_call.purpose is not steps.TOOL:
                        self.evidence.addressed.append(rows.Addressed(tool_call, thread, use, task))

    def take_user(self, entry: Entry) -> None:
        """Add a row that goes to the model: results of calls, and text of a person or of the program."""
        content = entry.message.get("content")
        if not isinstance(content, list):
            self._take_text(entry, content if isinstance(content, str) else "", content)
            return
        others = []
        for block in content:
            if text_field(block, "type") == "tool_result":
                self._take_result(entry, block)
            else:
                others.append(block)
        if others:
            self._take_text(entry, rows.text_of(others), others)

    def _take_text(self, entry: Entry, text: str, content: Any) -> None:
        row, thread, time, place = entry.row, entry.thread, entry.time, entry.place
        begins = not thread.steps and not thread.is_root
        if begins:
            bodies = [body for sender, body in rows.teammate_messages(text) if sender == "team-lead"]
            beginning = self.evidence.beginnings.setdefault(thread.key, rows.Beginning())
            beginning.prompt = steps.mark(bodies[0] if bodies else text)
            thread.is_warm_up = text.strip() == _WARM_UP
        elif thread.is_warm_up:
            thread.is_warm_up = False
        speaker = rows.speaker(text)
        is_put_there = row.is_meta is True or row.is_compact_summary is True
        is_put_there = is_put_there or text_field(row.origin, "kind") not in ("", "human")
        if speaker is Speaker.TASK:
            self._take_notice(entry, text)
        elif speaker is Speaker.TEAMMATE and not begins:
            self._take_messages(entry, text)
        elif not thread.is_root or speaker is Speaker.PROGRAM or is_put_there:
            thread.add(steps.Note(time, place, prolongs=text.startswith(_HOOK_FEEDBACK)))
        elif speaker is Speaker.INTERRUPTION:
            thread.add(steps.UserInput(time, place, waited=False, status=Status.CANCELLED))
        else:
            ref, is_command = self._privacy.reference(text or content), speaker is Speaker.COMMAND
            thread.add(steps.UserInput(time, place, ref=ref, is_command=is_command))

    def _take_notice(self, entry: Entry, text: str) -> None:
        for task in rows.tasks(text):
            notice = steps.Notice(entry.time, entry.place)
            entry.thread.add(notice)
            ref = self._privacy.reference(task.result)
            self.evidence.notices.append(rows.Notice(notice, entry.thread, task._replace(result=""), ref))
            self._take_sign(task, notice)

    def take_queued(self, row: Line, time: float, place: steps.Place) -> None:
        """Note the signs in a row of the program's queue, which is written before the agent is told."""
        text = string(row.content)
        if time != NO_TIME and rows.speaker(text) is Speaker.TASK:
            for task in rows.tasks(text):
                self._take_sign(task, steps.Note(time, place))

    def _take_sign(self, task: rows.Task, step: steps.Step) -> None:
        self.signs.append(background.Sign(task.task, task.call, step, background.ENDS.get(task.status)))

    def _take_messages(self, entry: Entry, text: str) -> None:
        for sender, body in rows.teammate_messages(text):
            if sender == "system":
                entry.thread.add(steps.Note(entry.time, entry.place))
            else:
                step = steps.Delivery(entry.time, entry.place, ref=self._privacy.reference(body))
                entry.thread.add(step)
                self.evidence.arrivals.append(rows.Arrival(step, entry.thread, sender, steps.mark(body)))

    def _take_result(self, entry: Entry, block: dict[str, Any]) -> None:
        content = block.get("content")
        text = rows.text_of(content)
        answer = steps.ToolResult(entry.time, entry.place, ref=self._privacy.reference(text or content))
        if block.get("is_error") is True:
            answer.status, answer.error = Status.ERROR, rows.error(text)
            if answer.error == rows.FORBIDDEN:
                entry.thread.add(steps.SafetyEvent(entry.time, entry.place, error=rows.FORBIDDEN))
        entry.thread.add(answer)
        use = text_field(block, "tool_use_id")
        tool_call = self.tool_calls.get((entry.thread.key, use))
        if tool_call is not None and tool_call.purpose is steps.JOIN and answer.error == steps.REJECTED:
            answer.error = steps.INTERRUPTED  # it was let begin, or nothing would have been waited for
        if self._asked_tasks and (asked := self._asked_tasks.get((entry.thread.key, use))):
            self._take_answer_about_task(*asked, answer, text)
        if tool_call is not None and tool_call.purpose in (steps.TOOL, steps.ASK):
            result = rows.Result(answer, entry.thread, use)
        else:
            result = rows.result(answer, entry.thread, use, text, details(entry.row))
        if tool_call is None or tool_call.purpose is steps.TOOL:  # the row of the call may stand behind
            if answer.status is Status.ERROR:
                result.time_limit = rows.time_limit(text)
            else:
                result.background = background.launched_task(text, entry.row)
        self.results.append(result)

    def _take_answer_about_task(self, tool: str, task: str, result: steps.ToolResult, text: str) -> None:
        """Note the sign in the result of a call that asked for the output of a task, or stopped it."""
        if result.status is Status.ERROR or not task:
            return
        end = Status.CANCELLED if tool in background.STOPS else background.ENDS.get(rows.element(text, "status"))
        self.signs.append(background.Sign(task, "", result, end))

    def take_attachment(self, entry: Entry) -> None:
        """Add a row beside the conversation: a guard that blocked, a command that waited in the queue."""
        attachment, thread, time, place = entry.message, entry.thread, entry.time, entry.place
        kind = attachment.get("type")
        if kind == "hook_blocking_error":
            thread.add(steps.SafetyEvent(time, place, tool=masked(text_field(attachment, "hookName")), error="hook"))
        elif kind == "queued_command":
            prompt = attachment.get("prompt")
            text = rows.text_of(prompt)
            speaker = rows.speaker(text)
            if speaker is Speaker.TASK:
                self._take_notice(entry, text)
            elif speaker in (Speaker.PERSON, Speaker.COMMAND) and thread.is_root:
                thread.add(steps.UserInput(time, place, ref=self._privacy.reference(text or prompt), waited=False))
        else:
            self._report.pass_over("attachment")

    def take_progress(self, row: Line, time: float) -> None:
        """Note when a command began to run: a row of its progress says for how long it has."""
        call_id, elapsed = string(row.parent_tool_use), mapping(row.data).get("elapsedTimeSeconds")
        if call_id and time != NO_TIME and type(elapsed) in (int, float):
            begin = time - duration(elapsed)
            self.run_begins[call_id] = min(self.run_begins.get(call_id, begin), begin)

    def take_turn_end(self, row: Line, thread: steps.Transcript, time: float, place: steps.Place) -> None:
        """Add the end of a turn with its stated duration, which excludes the time of questions to a person."""
        run_time = duration(row.duration_ms, 1000.0)
        if time != NO_TIME and run_time > 0:
            thread.add(steps.TurnEnd(time, place, run_time=run_time))
