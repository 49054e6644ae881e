"""The items and events of a Codex rollout as steps of a thread.

A model's answer is a run of items without input between them; the counter of tokens that moves behind it says
what it took. Most texts stand there twice, as an item of the conversation and as an event for the screen: the
items count, and the events only where a rollout has none.
"""

from typing import Any, NamedTuple

from msgspec import Struct, field

from orchtrace_corpus.trace.importers.conversations.codex import rows
from orchtrace_corpus.trace.importers.conversations.codex.counting import Amounts, Count, amounts, is_odd
from orchtrace_corpus.trace.importers.conversations.codex.outputs import FORBIDDEN, Output, read_output
from orchtrace_corpus.trace.importers.conversations.codex.rows import Payload, as_payload
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.times import NO_TIME, duration
from orchtrace_corpus.trace.importers.core.values import string, text_field
from orchtrace_corpus.trace.model.import_report import ImportReport, Problem
from orchtrace_corpus.trace.model.trace import Status


class Spawn(Struct):
    """A call that spawns an agent.

    Attributes:
        id: Its id.
        mark: A mark of the child's task.
        names: What the call and its output call the child: its thread, its path, its name.
        nickname: The name that its output gives it for people; empty where it gives none.
        is_declined: Whether its output is no object, as it is where an agent came into being, but a sentence.
    """

    tool_call: steps.ToolCall
    id: str
    mark: int = 0
    names: list[str] = field(default_factory=list)
    nickname: str = ""
    is_declined: bool = False


class Aimed(Struct):
    """A call that is about an agent under some name: a message to it, or its end."""

    tool_call: steps.ToolCall
    name: str
    mark: int = 0


class Ending(Struct):
    """The rollout says at some step that another agent has ended: ok, error or cancelled."""

    step: steps.Step
    name: str
    status: Status
    ref: str


class Arrival(Struct):
    """A text that the agent is given, and that another may have sent.

    Attributes:
        mark: A mark of the text; 0 where it is encrypted.
        author: What the log calls the agent that has sent it; empty where it does not say.
    """

    step: steps.Delivery
    mark: int
    author: str = ""


class StatedTurn(NamedTuple):
    """A turn of which the rollout says how long it took, in seconds; `row` is that of its end."""

    row: int
    begin: float
    end: float
    run_time: float


class SpawnEvidence(Struct):
    """All evidence of a rollout.

    Attributes:
        started: The agents whose beginning it mentions, by thread: the id of the call, or the agent's path.
        failed: The ids of calls of which it says that they have spawned nobody.
    """

    spawns: list[Spawn] = field(default_factory=list)
    aimed: list[Aimed] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    started: dict[str, str] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def is_refused(self, spawn: Spawn) -> bool:
        """Return True if a call has spawned nobody: the rollout says so, or has a sentence where agents are named."""
        if spawn.id in self.failed:
            return True
        return spawn.is_declined and spawn.id not in self.started.values()


_PURPOSES = {
    "spawn_agent": steps.SPAWN,
    **dict.fromkeys(("wait", "wait_agent"), steps.JOIN),
    "close_agent": steps.CLOSE,
    **dict.fromkeys(("send_input", "send_message", "followup_task", "resume_agent"), steps.MESSAGE),
    "request_user_input": steps.ASK,
}
_WRITING_SECONDS = 1.0
_LONG_SECONDS = 30.0
_HOSTED_CALLS = frozenset(("web_search_call", "image_generation_call"))
_UNFINISHED = frozenset(("in_progress", "searching", "generating"))
_OK, _ERROR = Status.OK, Status.ERROR  # which Python 3.11 takes long to find
_APPROVALS = frozenset(("exec_approval_request", "apply_patch_approval_request", "elicitation_request"))
_ANSWERS = {"agent_message": "message", "agent_reasoning": "reasoning", "agent_reasoning_raw_content": "reasoning"}
"""Events that repeat an item, and its kind."""

_SILENT_ITEMS = frozenset(("ghost_snapshot", "compaction", "compaction_summary", "other"))
_SILENT_EVENTS = frozenset(
    (
        "agent_reasoning_section_break", "background_event", "collab_agent_interaction_end", "collab_close_end",
        "collab_resume_end", "context_compacted", "entered_review_mode", "error", "exec_command_end",
        "exited_review_mode", "item_completed", "mcp_tool_call_end", "patch_apply_end", "plan_update", "stream_error",
        "thread_name_updated", "thread_rolled_back", "thread_settings_applied",
        "view_image_tool_call", "warning", "web_search_end",
    )
)  # fmt: skip


class Moment(Struct, gc=False):
    """When and where a row was written; `row` counts the rows of the thread."""

    time: float
    place: steps.Place
    row: int


class Conversation:
    """Takes the rows of a thread in.

    Attributes:
        thread: The thread.
        counts: Its counter of tokens, row by row.
        evidence: What it tells about other threads.
        turns: Its turns whose duration is stated.
        model: The model that answers from now on.
        odd: How many states of its counter are no numbers, with none behind them that would contain theirs.
    """

    def __init__(self, thread: steps.Transcript, privacy: Privacy, report: ImportReport, *, is_child: bool) -> None:
        self.thread = thread
        self.counts: list[Count] = []
        self.evidence = SpawnEvidence()
        self.turns: list[StatedTurn] = []
        self.model = ""
        self.odd = 0
        self._privacy, self._report, self._is_child = privacy, report, is_child
        self._call: steps.ModelCall | None = None  # the answer whose items come in
        self._has_called = False  # whether that answer calls a tool whose result is to come
        self._unpaid: steps.ModelCall | None = None  # the last answer that no count was about
        self._before: tuple[Amounts | None, Amounts | None] = (None, None)
        self._asked: tuple[Moment, str] | None = None  # when a person was asked for leave, and for which call
        self._items: set[str] = set()
        self._has_typed_events = False
        self._typed_items: list[steps.Step] = []
        self._tool_calls: dict[str, list[steps.ToolCall]] = {}
        self._spawns: dict[str, Spawn] = {}
        # Results by the ids of their calls, with the run times that they state, and whether these are of scripts.
        self._results: list[tuple[str, steps.ToolResult, float | None, bool]] = []
        self._approvals: dict[int, float] = {}  # since when calls, by their `id`, ask for an approval
        self._running: dict[str, steps.ToolCall] = {}  # what still ran, with the call that said so last
        self._awaited: dict[int, str] = {}  # what calls wait for that ran before, by the `id` of the call
        self._begun: dict[str, float] = {}  # turns that go on, by their ids
        self._hosted_calls: list[steps.ToolCall] = []  # those of the service that had not ended when they were written

    def take_item(self, payload: Payload, at: Moment) -> None:
        """An item of the conversation with the model."""
        if self._asked is not None:
            self._end_approval(self._asked, at, string(payload.call_id))
        kind = string(payload.type) or "message"
        if kind == "message" and string(payload.role) != "assistant":
            self._take_input(payload, at)
        elif kind in ("message", "reasoning"):
            self._items.add(kind)
            call = self._output(at)
            call.final = not self._has_called  # a search of the service is part of the answer
            if payload.content:
                call.note_text(rows.text_of(payload.content), self._privacy)
        elif kind.endswith("_call"):
            self._take_call(kind, payload, self._output(at), at)
        elif kind.endswith("_output"):
            self._take_output(payload, at)
        elif kind == "agent_message":
            self.take_message(payload, at)
        elif kind in _SILENT_ITEMS:
            self._report.pass_over(kind)
        else:
            self._report.note_unknown(masked(f"response_item {kind}"))

    def take_event(self, payload: Payload, at: Moment) -> bool:
        """An event for the screen; whether it says that the counter of tokens has moved."""
        kind = string(payload.type)
        if kind == "token_count":
            return self._take_count(payload.info, at)
        if self._asked is not None:
            self._end_approval(self._asked, at, "")
        item = payload.item
        if kind == "item_completed" and text_field(item, "type").replace("_", "").lower() == "subagentactivity":
            kind, payload = "sub_agent_activity", as_payload(item)
        if kind == "user_message":
            self._take_typed(string(payload.message), at)
        elif kind in _ANSWERS:
            if _ANSWERS[kind] not in self._items:
                self._output(at).note_text(string(payload.message) or string(payload.text), self._privacy)
        elif kind == "turn_aborted":
            self._end_turn(payload, at)
            if not self._is_child:
                self._add(steps.UserInput(at.time, at.place, waited=False, status=Status.CANCELLED), at)
        elif kind in _APPROVALS:
            self._asked = at, string(payload.call_id)
        elif kind == "guardian_assessment":
            if string(payload.status) in ("denied", "rejected", "blocked"):
                self._add(steps.SafetyEvent(at.time, at.place, error=FORBIDDEN), at)
        elif kind in ("collab_agent_spawn_end", "collab_tool_call"):
            if string(payload.new_thread):
                self.evidence.started.setdefault(string(payload.new_thread), string(payload.call_id))
            elif kind == "collab_agent_spawn_end":
                self.evidence.failed.add(string(payload.call_id))
        elif kind == "collab_waiting_end":
            for name, status, brought in rows.endings(payload.statuses):
                self._end(name, status, brought, at)
        elif kind == "sub_agent_activity":
            self._take_activity(payload, at)
        elif kind in ("task_started", "turn_started"):
            self._begun[string(payload.turn_id)] = at.time
            self._report.pass_over(kind)
        elif kind in ("task_complete", "turn_complete"):
            self._end_turn(payload, at)
            self._report.pass_over(kind)
        elif kind == "web_search_end" and self._hosted_calls:
            self._end_hosted_call(self._hosted_calls.pop(0), "completed", at)
        elif kind in _SILENT_EVENTS:
            self._report.pass_over(kind)
        else:
            self._report.note_unknown(masked(f"event_msg {kind}"))
        return False

    def close(self) -> None:
        """Close what only the whole thread can tell: doubled texts, times, which output answers which call."""
        if self._has_typed_events:
            doubled = set(map(id, self._typed_items))
            self.thread.steps = [step for step in self.thread.steps if id(step) not in doubled]
        self.thread.fill_times()
        for use, result, run_time, is_script in self._results:
            tool_calls = self._tool_calls.get(use)
            if tool_calls is None:
                self._report.note(Problem.OUTPUT_WITHOUT_CALL, str(result.place))
                continue
            while len(tool_calls) > 1 and tool_calls[0].answer is not None:
                del tool_calls[0]  # an id that is used again
            if tool_calls[0].answer is None:
                steps.answer(tool_calls[0], result)
                if run_time is not None and tool_calls[0].purpose is steps.TOOL:
                    self._note_run_time(tool_calls[0], result, run_time, is_script=is_script)
            else:
                result.is_repeated = True
                self._report.note(Problem.SECOND_OUTPUT, str(result.place))
        for tool_call in self._running.values():
            if tool_call.answer is not None:
                tool_call.more = {**(tool_call.more or {}), "background": True, "unfinished": True}

    def _note_run_time(
        self, tool_call: steps.ToolCall, result: steps.ToolResult, run_time: float, *, is_script: bool
    ) -> None:
        """Note how long a tool ran: what it took beyond that, it waited, for a person where it had asked one.

        The time of a script contains the waits of its tools.
        """
        asked = self._approvals.get(id(tool_call))
        elapsed = result.time - tool_call.time
        waited = elapsed - run_time
        if asked is None and waited <= _WRITING_SECONDS and elapsed <= _LONG_SECONDS:
            return  # a row is written a moment after what it is about
        if asked is not None and is_script:
            return
        tool_call.more = {**(tool_call.more or {}), "run_time": min(run_time, elapsed)}
        if asked is not None and waited > _WRITING_SECONDS:
            approval = steps.UserInput(result.time - run_time, tool_call.place, since=asked, asked=True,
                                       asking=tool_call)  # fmt: skip
            approval.order = tool_call.order + 0.5
            self.thread.steps.append(approval)

    def _end_turn(self, payload: Payload, at: Moment) -> None:
        begin = self._begun.pop(string(payload.turn_id), NO_TIME)
        if NO_TIME not in (begin, at.time) and payload.duration_ms is not None:
            self.turns.append(StatedTurn(at.row, begin, at.time, duration(payload.duration_ms, 1000)))

    def _add(self, step: steps.Step, at: Moment) -> None:
        step.order = float(at.row)
        self.thread.steps.append(step)

    def _output(self, at: Moment) -> steps.ModelCall:
        """The answer to which something that the model wrote belongs."""
        if self._call is None:
            self._has_called = False
            self._call = self._unpaid = steps.ModelCall(at.time, at.place, end=at.time, model=self.model)
            self._add(self._call, at)
        self._call.end = max(self._call.end, at.time)
        return self._call

    def _take_input(self, payload: Payload, at: Moment) -> None:
        """A message to the model: typed only where it is the user's, and where no event says the same."""
        self._call = None
        text = rows.text_of(payload.content)
        found = list(rows.notification(text))
        for name, status, brought in found:
            self._end(name, status, brought, at)
        if self._is_child or found or string(payload.role) != "user" or rows.is_put_there(text):
            self._add(steps.Note(at.time, at.place), at)
        else:
            typed = steps.UserInput(at.time, at.place, ref=self._privacy.reference(text or payload.content))
            self._typed_items.append(typed)
            self._add(typed, at)

    def take_message(self, payload: Payload, at: Moment) -> None:
        """A message of another agent, or the notice that one has ended."""
        self._call = None
        text, author = rows.text_of(payload.content), string(payload.author)
        endings = list(rows.notification(text))
        for name, status, brought in endings:
            self._end(name or author, status, brought, at)
        answer = rows.final_answer(text)
        if answer is not None and author:
            step = steps.Delivery(at.time, at.place, ref=self._privacy.reference(answer))
            self._add(step, at)
            self.evidence.endings.append(Ending(step, author, Status.OK, step.ref))
        elif not endings:
            step = steps.Delivery(at.time, at.place, ref=self._privacy.reference(text))
            is_task = self._is_child and not self.evidence.arrivals
            self.evidence.arrivals.append(Arrival(step, (text and steps.mark(text)) or 0, "" if is_task else author))
            self._add(step, at)

    def _take_typed(self, text: str, at: Moment) -> None:
        self._call = None
        if self._is_child:
            step = steps.Delivery(at.time, at.place)
            self.evidence.arrivals.append(Arrival(step, steps.mark(text)))
            self._add(step, at)
        elif not rows.is_put_there(text):
            self._has_typed_events = True
            self._add(steps.UserInput(at.time, at.place, ref=self._privacy.reference(text)), at)

    def _end(self, name: str, status: Status, brought: str, at: Moment) -> None:
        note = steps.Note(at.time, at.place)
        self._add(note, at)
        self.evidence.endings.append(Ending(note, name, status, self._privacy.reference(brought)))

    def _end_approval(self, asked: tuple[Moment, str], at: Moment, output_of: str) -> None:
        """A person was asked for leave. Whatever comes next says that they have answered, but for the call's output."""
        self._asked = None
        begin, use = asked
        if output_of and output_of == use:
            self._note_asking(self._tool_calls.get(use, []), begin)
        else:
            self._add(steps.UserInput(at.time, at.place, since=begin.time, asked=begin.time != NO_TIME), at)

    def _note_asking(self, calls: list[steps.ToolCall], at: Moment) -> None:
        """A call has asked for leave, and the log does not say when it was given."""
        for call in calls[-1:]:
            self._approvals.setdefault(id(call), at.time)
            self._add(steps.SafetyEvent(at.time, at.place, tool=call.tool, status=Status.UNKNOWN, asking=call), at)

    def _take_call(self, kind: str, payload: Payload, call: steps.ModelCall, at: Moment) -> None:
        name = string(payload.name) or kind.removesuffix("_call")
        use = string(payload.call_id) or string(payload.id)
        given = payload.arguments if payload.arguments is not None else payload.input
        given = given if given is not None else payload.action
        purpose = _PURPOSES.get(name.rpartition(".")[2].rpartition("__")[2], steps.TOOL)
        awaited = rows.awaited(name, given)
        if awaited and purpose is steps.JOIN:
            purpose = steps.TOOL  # waits for a script of its own, and for no agent
        tool_call = steps.ToolCall(at.time, at.place, purpose=purpose, call=call, id=masked(use), tool=masked(name),
                  ref=self._privacy.reference(given))  # fmt: skip
        self._add(tool_call, at)
        self._tool_calls.setdefault(use, []).append(tool_call)
        if awaited:
            self._awaited[id(tool_call)] = awaited
        call.final = False
        if kind in _HOSTED_CALLS:
            self._end_hosted_call(tool_call, string(payload.status), at)
            return
        self._has_called = True
        if purpose in (steps.SPAWN, steps.MESSAGE, steps.CLOSE):
            self._note_evidence(tool_call, use, rows.parsed(given))
        elif rows.asks_for_approval(given):
            self._note_asking([tool_call], at)

    def _end_hosted_call(self, tool_call: steps.ToolCall, status: str, at: Moment) -> None:
        """End a call that the service has made itself while the model answered: its row is written when it is over."""
        if status in _UNFINISHED:
            self._hosted_calls.append(tool_call)
            return
        error = masked(status) if status not in ("", "completed") else ""
        result = steps.ToolResult(at.time, at.place, status=_ERROR if error else _OK, error=error)
        self._add(result, at)
        steps.answer(tool_call, result)
        if not tool_call.id and at.time != NO_TIME:  # else the result says when it was over
            tool_call.more = {"t_end": max(at.time, tool_call.time)}

    def _note_evidence(self, tool_call: steps.ToolCall, use: str, details: dict[str, Any]) -> None:
        """What a call says of the agent that it is about."""
        text = text_field(details, "message") or text_field(details, "prompt") or rows.text_of(details.get("items"))
        named = rows.agent_named(details)
        if tool_call.purpose is not steps.CLOSE:
            tool_call.ref = self._privacy.reference(text) or tool_call.ref
        if tool_call.purpose is steps.SPAWN:
            tool_call.role = masked(text_field(details, "agent_type") or text_field(details, "agent_role"))
            self._spawns[use] = Spawn(tool_call, use, steps.mark(text), [named])
            self.evidence.spawns.append(self._spawns[use])
        else:
            self.evidence.aimed.append(Aimed(tool_call, named, steps.mark(text) if text else 0))

    def _take_output(self, payload: Payload, at: Moment) -> None:
        self._call = None
        output = read_output(payload.output)
        result = steps.ToolResult(at.time, at.place, status=_ERROR if output.error else _OK, error=output.error,
                                  ref=self._privacy.reference(output.text or payload.output))  # fmt: skip
        self._add(result, at)
        use = string(payload.call_id) or string(payload.id)
        self._results.append((use, result, output.run_time, output.is_script))
        calls = self._tool_calls.get(use)
        if calls and (output.running or self._awaited):
            self._note_running(calls[-1], output.running)
        if use in self._spawns:
            self._note_spawned(self._spawns[use], output)
        elif calls and calls[-1].purpose is steps.JOIN:
            for name, status, brought in rows.endings(output.details.get("status")):
                self._end(name, status, brought, at)
        if output.error == FORBIDDEN:
            self._add(steps.SafetyEvent(at.time, at.place, error=output.error), at)

    def _note_running(self, tool_call: steps.ToolCall, running: str) -> None:
        """Note what still runs behind the output of a call, which may have waited for something that ran before."""
        self._running.pop(self._awaited.pop(id(tool_call), ""), None)
        if running:
            self._running[running] = tool_call

    def _note_spawned(self, spawn: Spawn, output: Output) -> None:
        """Note how the output of a call names the agent that has come into being, or that none has."""
        name = rows.agent_named(output.details)
        spawn.names += [name, *rows.uuids(output.text)]
        spawn.nickname = text_field(output.details, "nickname")
        is_sentence = bool(output.text) and not output.text.lstrip().startswith("{")
        spawn.is_declined = not name and (is_sentence or bool(output.error) or "error" in output.details)

    def _take_activity(self, payload: Payload, at: Moment) -> None:
        name = string(payload.agent_thread) or string(payload.agent_thread_too)
        kind = string(payload.kind)
        if kind == "started":
            path = string(payload.agent_path) or string(payload.agent_path_too)
            call = string(payload.call_id) or string(payload.event_id)
            self.evidence.started.setdefault(name, call or path)
        elif kind == "interrupted":
            self._end(name, Status.CANCELLED, "", at)

    def _take_count(self, info: Any, at: Moment) -> bool:
        """A state of the counter of tokens; whether it has moved."""
        details = info if isinstance(info, dict) else {}
        if self.model and type(size := details.get("model_context_window")) is int and size > 0:
            self._report.context_windows[self.model] = size
        total, last = amounts(details.get("total_token_usage")), amounts(details.get("last_token_usage"))
        if total is None and (is_odd(details.get("total_token_usage")) or is_odd(details.get("last_token_usage"))):
            self._report.note(Problem.USAGE_NO_NUMBER, str(at.place))
            self.odd += 1
            return False
        if total is None and last is None:
            self._report.pass_over("token_count without usage")
            return False
        before, last_before = self._before
        moved = total != before if total is not None else last != last_before
        self._before = (total if total is not None else before, last)
        self.odd = self.odd if total is None else 0
        call = self._unpaid
        if moved and call is None:
            call = self._output(at)
        if moved:
            self._call = self._unpaid = None
        self.counts.append(Count(at.row, at.place, total, last, call, moved))
        return moved
