"""A thread of Codex, read from its rollouts: the acts and tokens of its agent, and what it says of other threads.

The token counter has cumulative totals. Most are written twice; only one that has changed counts. A spawned thread may
begin with the history of its parent, at the parent's total, or at zero; the usage of the last answer, which is in the
same row, shows which. A counter may restart, at zero or at an earlier state. If it then has more than the last answer,
and no earlier state explains it, the rest was spent by answers that are not in the log.

A thread may be in several files: in use and archived, saved as it grew, or with parts removed. Copies of a row may
differ: members in another order, `null` for missing ones, no `encrypted_content`, no texts. Rows with the same time,
kind and call are copies, in their order if there are several.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise, takewhile
from math import inf
from operator import sub
from typing import Any

import msgspec
from msgspec import Struct, field

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.conversations.codex import rows
from orchtrace_corpus.trace.importers.conversations.codex.rows import FORBIDDEN, Line, Meta, Payload, read_output, shown
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, duration, moment
from orchtrace_corpus.trace.importers.core.transcript import ModelCall, Place, ToolCall, ToolResult, UserInput
from orchtrace_corpus.trace.importers.core.values import MAX_COUNT, count, string, text_field, text_of
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.terms import Excluded, Status, TokenBasis
from orchtrace_corpus.trace.model.trace import Tokens

_FIELDS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
_NOTHING = (None,) * len(_FIELDS)
_SAME_TOTAL = LedgerLine.SAME_TOTAL  # looking up enum members is slow on Python 3.11
_OF_TOTAL = TokenBasis.CUMULATIVE_DELTA, LedgerLine.TOTAL_DIFFERENCE
_OF_LAST = TokenBasis.REPORTED, LedgerLine.LAST_ANSWER

Amounts = tuple[int, ...]
"""Tokens in the order of `_FIELDS`; the input includes caches."""


class Count(Struct, gc=False):
    """A `token_count` row."""

    row: int  # its number in the thread
    place: Place
    total: Amounts | None  # the tokens of all answers so far, if stated
    last: Amounts | None  # those of the last answer, if stated
    answer: ModelCall | None  # the answer that it is about; None if its total has not changed
    has_moved: bool = True  # whether its total differs from that of the row before


def read_amounts(usage: Any) -> Amounts | None:
    """Return the amounts of a usage; None if it has none, or one that is not a number."""
    stated: tuple[Any, ...] = tuple(map(usage.get, _FIELDS)) if type(usage) is dict else _NOTHING
    for amount in stated:
        if type(amount) is not int or not 0 <= amount <= MAX_COUNT:
            break
    else:
        return stated
    return None if stated == _NOTHING or is_odd(usage) else tuple([count(amount) or 0 for amount in stated])


def is_odd(usage: Any) -> bool:
    """Return True if a usage has a count that is not a number."""
    stated = map(usage.get, _FIELDS) if type(usage) is dict else ()
    return any(amount is not None and count(amount) is None for amount in stated)


def by_kind(spent: Amounts) -> dict[str, int]:
    """Return tokens by the kinds of the schema: the input excludes caches, the output includes reasoning."""
    read, cached, written, thought = spent
    return {
        "input": read - cached if read > cached else 0, "cache_read": cached,
        "output": max(written, thought), "reasoning": thought,
    }  # fmt: skip


class _Counter:
    def __init__(self, report: ImportReport) -> None:
        self.restarts = 0  # how often it began anew with tokens of answers that the log does not have
        self._report, self._unused = report, ImportReport()
        self._before: Amounts | None = None
        self._states: set[Amounts] = set()

    def take(self, count: Count, *, may_inherit: bool, is_copied: bool) -> Amounts | None:
        """Return the tokens that a row adds, None for a repetition; a child's first row may have its parent's total."""
        report = self._unused if is_copied else self._report
        total, last, before = count.total, count.last, self._before
        if total is None:
            return last if count.has_moved else None
        if total == before:
            return None
        self._before = total
        self._states.add(total)
        difference = total if before is None else tuple(map(sub, total, before))
        if difference == last:
            return difference
        if last is None:
            if min(difference) < 0:
                report.note(Problem.COUNTER_RESTARTED, str(count.place))
                return total
            return difference
        start = tuple(max(amount - of_last, 0) for amount, of_last in zip(total, last, strict=True))
        if before is None:
            if not may_inherit:
                return total
            report.enter(LedgerLine.INHERITED_TOTAL, **by_kind(start))
            return last
        is_known_state = start in self._states
        if is_known_state or min(difference) < 0 or min(map(sub, difference, last)) < 0:
            report.note(Problem.COUNTER_RESTARTED, str(count.place))
            if any(start) and not is_known_state:
                self.restarts += not is_copied
                report.enter(LedgerLine.RESTARTED, **by_kind(start))
            return last
        report.note(Problem.TOTAL_DIFFERS, str(count.place))
        return difference


class Spawn(Struct):
    """A call that spawns an agent."""

    call: ToolCall
    call_id: str  # its id in the log
    task_mark: int = 0  # of the sub-agent's task
    names: list[str] = field(default_factory=list)  # of the sub-agent in the call and its output: thread, path, name
    nickname: str = ""  # for people, in the output
    is_declined: bool = False  # whether the output is a sentence instead of an object


class Addressed(Struct):
    """A call about an agent, by a name of it: a message to it, or its end."""

    call: ToolCall
    name: str
    text_mark: int = 0


class Ending(Struct):
    """A step that reports the end of another agent; `ref` refers to its result."""

    step: steps.Step
    name: str
    status: Status
    ref: str


class Arrival(Struct):
    """A text that the agent is given, and that another may have sent."""

    step: steps.Delivery
    text_mark: int  # 0 if the text is encrypted
    author: str = ""  # the name of the sender, if the log has it


class Start(Struct):
    """The beginning of another agent, as the thread reports it; empty values are unknown."""

    call_id: str  # the id of the call that spawned it
    path: str  # its path
    concluded: ToolCall  # replaces that call if it is not in the log, as calls of scripts are not


_BEGIN, _END = 0, 1
"""The marks of the beginning and the end of each copy."""
_UNREADABLE = (Drop.CUT_OFF, Drop.NO_JSON, Drop.TOO_LONG)


class Row(NamedTuple):
    """A row of a copy, or its beginning or end; `gaps` are the unreadable lines before it."""

    place: Place
    line: Line | None
    mark: int  # the same in all copies
    gaps: Counter[Drop]


def read_copy(file: logs.LogFile) -> tuple[list[Row], ImportReport]:
    """Read one of several files of a thread: its rows between two ends, and the report on its lines."""
    name, report, marks = shown(file), ImportReport(), Counter[tuple[Any, ...]]()

    def unread() -> Counter[Drop]:
        dropped = report.dropped
        return Counter({drop: dropped[drop].number for drop in _UNREADABLE if drop in dropped})

    before = Counter[Drop]()
    rows = [Row(Place(name, 0), None, _BEGIN, before)]
    for line_number, line in logs.rows(file._replace(name=name), report, Line):
        payload, time = line.payload or Payload(), moment(line.timestamp)
        content = msgspec.json.encode(payload, order="sorted") if time == NO_TIME else b""
        key = string(line.type), time, string(payload.type), string(payload.call_id), content
        marks[key] += 1
        skipped = unread()
        rows.append(Row(Place(name, line_number), line, hash((key, marks[key])), skipped - before))
        before = skipped
    rows.append(Row(Place(name, 0), None, _END, unread() - before))
    return rows, report


def merge_copies(files: Sequence[logs.LogFile], report: ImportReport) -> Iterator[tuple[Place, Line]]:
    """Yield each row of a thread once, after the row that it follows in its own file.

    A line that cannot be read is no loss if another file has its row, or has nothing unread between its neighbours.
    """
    copies = [read_copy(file) for file in files]
    merged: list[Row] = []
    for own, _ in sorted(copies, key=lambda copy: len(copy[0]), reverse=True):
        merged = _insert(merged, own, report) if merged else own
    whole = {(before.mark, row.mark) for own, _ in copies for before, row in pairwise(own) if not row.gaps}
    followed = dict(pairwise(row.mark for row in merged))
    for own, of_file in copies:
        report.records_read += of_file.records_read
        report.repaired += of_file.repaired
        filled = Counter[Drop]()
        for before, row in pairwise(own):
            if row.gaps and (followed[before.mark] != row.mark or (before.mark, row.mark) in whole):
                filled.update(row.gaps)
                report.skip("unreadable line whose row another file of the thread has")
        for drop, dropped in of_file.dropped.items():
            for index in range(dropped.number - filled[Drop(drop)]):
                file, _, line = dropped.for_example[min(index, len(dropped.for_example) - 1)].rpartition(":")
                report.drop(Drop(drop), file, int(line))
    for row in merged:
        if row.line is not None:
            yield row.place, row.line


def _insert(merged: list[Row], rows: Sequence[Row], report: ImportReport) -> list[Row]:
    """Insert the rows that are missing."""
    places = {row.mark: index for index, row in enumerate(merged)}
    result: list[Row] = []
    at = 0
    for row in rows:
        index = places.get(row.mark)
        if index is None:
            result.append(row)
            continue
        if row.line is not None:
            report.skip("row that another file of the thread has, too")
        if index >= at:
            result += merged[at : index + 1]
            at = index + 1
    return result


LEAD_NAME = "main"
"""The agent that people talk to."""

LEAD_PATH = "/root"
"""The path of that agent, at which those of all others begin."""

_BURST_SECONDS = 1.0
_EARLIER_SECONDS = 1.0
_MAX_BEGINNING = 400  # characters of an output in which it names an agent
_COPYING_SECONDS = 10.0  # the longest time in which history is copied, if it is given new times
_SILENT = frozenset(("compacted", "inter_agent_communication_metadata", "world_state"))
_NEUTRAL_EVENTS = ("thread_settings_applied", "thread_name_updated")


_PURPOSES = {
    "spawn_agent": steps.SPAWN,
    **dict.fromkeys(("wait", "wait_agent"), steps.JOIN),
    "close_agent": steps.CLOSE,
    **dict.fromkeys(("send_input", "send_message", "followup_task", "resume_agent"), steps.MESSAGE),
    "request_user_input": steps.ASK,
}
_ABOUT_AGENTS = (steps.SPAWN, steps.MESSAGE, steps.CLOSE)
_WRITING_SECONDS = 1.0  # the longest delay of a row
_LONG_SECONDS = 30.0  # a longer call has its run time in the trace, to show that it did not wait
_HOSTED_CALLS = frozenset(("web_search_call", "image_generation_call"))
_UNFINISHED = frozenset(("in_progress", "searching", "generating"))
_OK, _ERROR = Status.OK, Status.ERROR
_APPROVALS = frozenset(("exec_approval_request", "apply_patch_approval_request", "elicitation_request"))
_ANSWERS = {"agent_message": "message", "agent_reasoning": "reasoning", "agent_reasoning_raw_content": "reasoning"}
"""Events that repeat an item, and its kind."""

_SILENT_ITEMS = frozenset(("ghost_snapshot", "compaction", "compaction_summary", "other"))
_SILENT_EVENTS = frozenset(
    """
    agent_reasoning_section_break background_event collab_agent_interaction_end collab_close_end collab_resume_end
    context_compacted entered_review_mode error exec_command_end exited_review_mode item_completed mcp_tool_call_end
    patch_apply_end plan_update stream_error thread_name_updated thread_rolled_back thread_settings_applied
    view_image_tool_call warning web_search_end
    """.split()
)


class Moment(Struct, gc=False):
    """The time and the place of a row; `row` counts the rows of the thread."""

    time: float
    place: steps.Place
    row: int


class Trail(Struct, gc=False):
    """A row that shows where copied history ends. Rows that every thread writes anew are not among them."""

    row: int  # its number in the thread
    time: float
    mark: int  # the same for the same contents
    # `count` for a total that has changed, `meta` for the `session_meta` of another thread, `turn` for the beginning
    # of a turn that is the thread's own by its id or time, else `row`
    kind: str


class Rollout:
    """One thread, read from its rows."""

    def __init__(self, files: Sequence[logs.LogFile], meta: Meta, run: Run, *, is_source: bool) -> None:
        self.meta = meta
        name = LEAD_NAME if not meta.parent else meta.nickname or rows.path_leaf(meta.path)
        self.thread = run.agent(meta.id, name, meta.role)
        self.thread.is_root = not meta.parent
        self.trail: list[Trail] = []  # only rows from its first seconds, if no thread has copied its history
        self.spawns: list[Spawn] = []
        self.addressed: list[Addressed] = []
        self.endings: list[Ending] = []
        self.arrivals: list[Arrival] = []
        self.started: dict[str, Start] = {}  # by thread
        self._run, self._privacy = run, run.privacy
        self._counts: list[Count] = []
        self._model = ""  # the model that answers from now on
        self._odd = 0  # states of the counter that are not numbers, since the last total
        self._failed: set[str] = set()  # the ids of calls that spawned no agent
        self._answer: ModelCall | None = None  # the answer that the next items continue
        self._has_called = False  # whether that answer calls a tool whose result is to come
        self._uncounted: ModelCall | None = None  # the last answer, until a count of it
        self._before: tuple[Amounts | None, Amounts | None] = (None, None)
        self._approval: tuple[Moment, str] | None = None  # when a person was asked to approve, and which call
        self._items: set[str] = set()
        self._has_typed_events = False
        self._typed_items: list[steps.Step] = []
        self._calls: dict[str, list[ToolCall]] = {}
        self._spawns: dict[str, Spawn] = {}
        # results to be joined to their calls: id of the call, result, run time and command times of `Output`
        self._results: list[tuple[str, ToolResult, float | None, tuple[float | None, ...] | None]] = []
        # when calls, by their `id`, asked for an approval, and how many tools they call if they are scripts
        self._approvals: dict[int, tuple[float, int | None]] = {}
        self._running: dict[str, ToolCall] = {}  # cells and sessions that run, with the last call that said so
        self._awaited: dict[int, str] = {}  # cells and sessions that calls wait for, by the `id` of the call
        self._turns: dict[str, float] = {}  # when open turns began, by their ids
        self._hosted_calls: list[ToolCall] = []  # calls by the service that have not ended
        youngest: float | None = None  # the latest time of a row of the trail; None for no trail
        if is_source or ((meta.parent or meta.forked) and meta.created is None):
            youngest = inf
        elif (meta.parent or meta.forked) and meta.created is not None:
            youngest = meta.created + _COPYING_SECONDS
        if len(files) == 1:
            name = shown(files[0])
            self._read(logs.rows(files[0]._replace(name=name), run.report, Line), youngest, name)
        else:
            self._read(merge_copies(files, run.report), youngest)

    def _read(self, rows: Iterable[tuple[Place | int, Line]], youngest: float | None, name: str = "") -> None:
        """Read the rows of the thread, each with its place, or with its line in the file of that name."""
        report = self._run.report
        ordinal, is_undated, before, time, stamp = 0, False, NO_TIME, NO_TIME, None
        for where, row in rows:
            place = Place(name, where) if isinstance(where, int) else where
            kind, payload = row.type, row.payload
            if payload is None:
                report.drop(Drop.NO_PAYLOAD, place.file, place.line)
                continue
            if row.timestamp != stamp:  # rows are written several at a time
                stamp = row.timestamp
                time = moment(stamp)
            ordinal += 1
            at = Moment(time, place, ordinal)
            if time == NO_TIME:
                is_undated = True
                report.note(Problem.NO_ROW_TIME, str(place))
            else:
                if time < before:
                    report.out_of_order += 1
                before = time
            sign = ""  # the kind of the row on the trail
            if kind == "response_item":
                self._take_item(payload, at)
                sign = "row"
            elif kind == "event_msg":
                has_moved, event = self._take_event(payload, at), payload.type
                if event == "token_count":
                    sign = "count" if has_moved else ""
                elif event in ("task_started", "turn_started") and self._is_own_turn(payload):
                    sign = "turn"
                else:
                    sign = "" if event in _NEUTRAL_EVENTS else "row"
            elif kind == "turn_context":
                self._model = masked(string(payload.model)) or self._model
                report.skip(kind)
                sign = "turn" if self._is_own_turn(payload) else ""
            elif kind == "session_meta":
                report.skip(kind)
                sign = "meta" if string(payload.id) not in ("", self.meta.id) else ""
            elif kind == "inter_agent_communication":  # which later versions write as an item
                self._take_message(payload, at)
                sign = "row"
            elif string(kind) in _SILENT:
                report.skip(kind)
            else:
                report.note_unknown(masked(kind) if isinstance(kind, str) else "(no type)")
            if sign and youngest is not None and (time <= youngest or sign in ("meta", "turn")):
                if sign == "count":
                    mark = hash((self._counts[-1].total, self._counts[-1].last))
                else:
                    mark = hash((kind, msgspec.json.encode(payload, order="sorted")))
                self.trail.append(Trail(ordinal, time, mark, sign))
        if self._has_typed_events:  # they repeat items
            doubled = set(map(id, self._typed_items))
            self.thread.steps = [step for step in self.thread.steps if id(step) not in doubled]
        if is_undated:
            self.thread.fill_times()
        self._join_results()

    def _is_own_turn(self, payload: Payload) -> bool:
        """Return True if a turn began after the thread did, by its start or the time in its id (UUID version 7)."""
        created = self.meta.created
        if created is None:
            return False
        started = payload.started_at
        if isinstance(started, (int, float)) and not isinstance(started, bool):
            return bool((started / 1000 if started > 1e11 else started) >= int(created))
        digits = string(payload.turn_id).replace("-", "").lower()
        if len(digits) != 32 or digits[12] != "7" or not set(digits) <= set("0123456789abcdef"):
            return False
        return int(digits[:12], 16) / 1000 >= created - 1

    def _take_item(self, payload: Payload, at: Moment) -> None:
        """Take an item of the conversation with the model."""
        if self._approval is not None:
            self._end_approval(*self._approval, at, string(payload.call_id))
        kind = payload.type
        if type(kind) is not str or not kind:
            kind = "message"
        if kind == "message" and payload.role != "assistant":
            self._take_input(payload, at)
        elif kind in ("message", "reasoning"):
            self._items.add(kind)
            answer = self._continue_answer(at)
            answer.final = not self._has_called  # a search of the service is part of the answer
            if payload.content:
                answer.note_text(text_of(payload.content), self._privacy)
        elif kind.endswith("_call"):
            self._take_call(kind, payload, self._continue_answer(at), at)
        elif kind.endswith("_output"):
            self._take_output(payload, at)
        elif kind == "agent_message":
            self._take_message(payload, at)
        elif kind in _SILENT_ITEMS:
            self._run.report.skip(kind)
        else:
            self._run.report.note_unknown(masked(f"response_item {kind}"))

    def _take_event(self, payload: Payload, at: Moment) -> bool:
        """Take an event for the screen, and return True if it says that the counter of tokens has moved."""
        if payload.type == "token_count":
            return self._take_count(payload.info if type(payload.info) is dict else {}, at)
        kind, item = string(payload.type), payload.item
        if self._approval is not None:
            self._end_approval(*self._approval, at, "")
        if kind == "item_completed" and text_field(item, "type").replace("_", "").lower() == "subagentactivity":
            kind, payload = "sub_agent_activity", msgspec.convert(item, Payload)
        if kind == "user_message":
            text = string(payload.message)
            self._answer = None
            if self.meta.parent:
                self._take_arrival(Arrival(steps.Delivery(at.time, at.place), steps.mark(text)), at)
            elif not rows.is_injected(text):
                self._has_typed_events = True
                self._add(UserInput(at.time, at.place, ref=self._privacy.reference(text)), at)
        elif kind in _ANSWERS:
            if _ANSWERS[kind] not in self._items:
                text = string(payload.message) or string(payload.text)
                self._continue_answer(at).note_text(text, self._privacy)
        elif kind in ("task_started", "turn_started"):
            self._turns[string(payload.turn_id)] = at.time
            self._run.report.skip(kind)
        elif kind in ("task_complete", "turn_complete"):
            self._end_turn(payload, at)
            self._run.report.skip(kind)
        elif kind == "turn_aborted":
            self._end_turn(payload, at)
            if not self.meta.parent:
                self._add(UserInput(at.time, at.place, waited=False, status=Status.CANCELLED), at)
        elif kind in _APPROVALS:
            self._approval = at, string(payload.call_id)
        elif kind == "guardian_assessment":
            if string(payload.status) in ("denied", "rejected", "blocked"):
                self._add(steps.SafetyEvent(at.time, at.place, error=FORBIDDEN), at)
        elif kind in ("collab_agent_spawn_end", "collab_tool_call"):
            if string(payload.new_thread):
                self._note_start(string(payload.new_thread), string(payload.call_id), "", at)
            elif kind == "collab_agent_spawn_end":
                self._failed.add(string(payload.call_id))
        elif kind == "collab_waiting_end":
            self._take_endings(rows.endings(payload.statuses), at)
        elif kind == "sub_agent_activity":
            thread = string(payload.agent_thread) or string(payload.agent_thread_too)
            if payload.kind == "started":
                path = string(payload.agent_path) or string(payload.agent_path_too)
                self._note_start(thread, string(payload.call_id) or string(payload.event_id), path, at)
            elif payload.kind == "interrupted":
                self._take_endings([(thread, Status.CANCELLED, "")], at)
        elif kind == "web_search_end" and self._hosted_calls:
            self._end_hosted_call(self._hosted_calls.pop(0), "completed", at)
        elif kind in _SILENT_EVENTS:
            self._run.report.skip(kind)
        else:
            self._run.report.note_unknown(masked(f"event_msg {kind}"))
        return False

    def _join_results(self) -> None:
        """Join the outputs to their calls, and note how long tools ran, and which did not end."""
        for call_id, result, run_time, command_times in self._results:
            calls = self._calls.get(call_id, [])
            while len(calls) > 1 and calls[0].answer is not None:
                del calls[0]  # an id that is used again
            call = calls[0] if calls else None
            if (
                steps.join(call, result, self._run.report)
                and run_time is not None
                and call
                and call.purpose is steps.TOOL
            ):
                self._note_run_time(call, result, run_time, command_times)
        for call in self._running.values():
            if call.answer is not None:
                call.more = {**(call.more or {}), "background": True, "unfinished": True}

    def _note_run_time(
        self, call: ToolCall, result: ToolResult, run_time: float, command_times: tuple[float | None, ...] | None
    ) -> None:
        """Note how long a tool ran; in the rest of its time it waited, for a person if it had asked for approval.

        The time of a script includes the waits of its tools. It ran as long as its commands, if it printed all results.
        """
        asked, tools = self._approvals.get(id(call), (None, None))
        elapsed = result.time - call.time
        if asked is not None and command_times is not None:
            times = [seconds for seconds in command_times if seconds is not None]
            if not times or len(times) != tools:
                return
            run_time = min(run_time, sum(times))
        waited = elapsed - run_time
        if asked is None and waited <= _WRITING_SECONDS and elapsed <= _LONG_SECONDS:
            return
        call.more = {**(call.more or {}), "run_time": min(run_time, elapsed)}
        if asked is not None and waited > _WRITING_SECONDS:
            approval = UserInput(result.time - run_time, call.place, since=asked, asked=True, asking=call)
            approval.order = call.order + 0.5
            self.thread.steps.append(approval)

    def _add(self, step: steps.Step, at: Moment) -> None:
        step.order = float(at.row)
        self.thread.steps.append(step)

    def _continue_answer(self, at: Moment) -> ModelCall:
        """Return the answer to which something that the model wrote belongs."""
        if self._answer is None:
            self._has_called = False
            self._answer = self._uncounted = ModelCall(at.time, at.place, end=at.time, model=self._model)
            self._add(self._answer, at)
        if at.time > self._answer.end:
            self._answer.end = at.time
        return self._answer

    def _end_turn(self, payload: Payload, at: Moment) -> None:
        """End a turn, whose stated duration leaves out sleep of the machine, and no waits."""
        begin = self._turns.pop(string(payload.turn_id), NO_TIME)
        if NO_TIME not in (begin, at.time) and payload.duration_ms is not None:
            seconds = duration(payload.duration_ms, 1000)
            self._add(steps.TurnEnd(at.time, at.place, 0.0, seconds, Excluded.SLEEP, begin), at)

    def _take_input(self, payload: Payload, at: Moment) -> None:
        """Take a message to the model, which a person typed if it is the user's and no event repeats it."""
        self._answer = None
        text = text_of(payload.content)
        endings = list(rows.notification(text))
        self._take_endings(endings, at)
        if self.meta.parent or endings or payload.role != "user" or rows.is_injected(text):
            self._add(steps.Note(at.time, at.place), at)
        else:
            typed = UserInput(at.time, at.place, ref=self._privacy.reference(text or payload.content))
            self._typed_items.append(typed)
            self._add(typed, at)

    def _take_message(self, payload: Payload, at: Moment) -> None:
        """Take a message of another agent, or the notice that one has ended."""
        self._answer = None
        text, author = text_of(payload.content), string(payload.author)
        endings = list(rows.notification(text))
        self._take_endings(endings, at, author)
        envelope = re.match(rows.FINAL_ANSWER, text) if "FINAL_ANSWER" in text else None
        if envelope is not None and author:  # what it hands in with its last message to the one above it
            step = steps.Delivery(at.time, at.place, ref=self._privacy.reference(text[envelope.end() :]))
            self._add(step, at)
            self.endings.append(Ending(step, author, _OK, step.ref))
        elif not endings:
            step = steps.Delivery(at.time, at.place, ref=self._privacy.reference(text))
            is_task = self.meta.parent and not self.arrivals
            mark = steps.mark(text) if text else 0
            self._take_arrival(Arrival(step, mark, "" if is_task else author), at)

    def _take_arrival(self, arrival: Arrival, at: Moment) -> None:
        self.arrivals.append(arrival)
        self._add(arrival.step, at)

    def _take_endings(self, endings: Any, at: Moment, author: str = "") -> None:
        for name, status, content in endings:
            note = steps.Note(at.time, at.place)
            self._add(note, at)
            self.endings.append(Ending(note, name or author, status, self._privacy.reference(content)))

    def _note_start(self, thread: str, call_id: str, path: str, at: Moment) -> None:
        concluded = ToolCall(at.time, at.place, float(at.row), is_inferred=True)
        self.started.setdefault(thread, Start(call_id, path, concluded))

    def _end_approval(self, begin: Moment, call_id: str, at: Moment, output_of: str) -> None:
        """End a request for approval: any row after it, other than the output, shows that a person has answered."""
        self._approval = None
        if output_of and output_of == call_id:
            self._ask(self._calls.get(call_id, []), begin)
        else:
            self._add(UserInput(at.time, at.place, since=begin.time, asked=begin.time != NO_TIME), at)

    def _ask(self, calls: list[ToolCall], at: Moment, tools: int | None = None) -> None:
        """Note that the last of some calls asks for an approval, of unknown time."""
        for call in calls[-1:]:
            self._approvals.setdefault(id(call), (at.time, tools))
            self._add(steps.SafetyEvent(at.time, at.place, tool=call.tool, status=Status.UNKNOWN, asking=call), at)

    def _take_call(self, kind: str, payload: Payload, answer: ModelCall, at: Moment) -> None:
        name = string(payload.name) or kind.removesuffix("_call")
        call_id = string(payload.call_id) or string(payload.id)
        arguments = payload.arguments
        if arguments is None:
            arguments = payload.action if payload.input is None else payload.input
        tool = name.rpartition(".")[2].rpartition("__")[2]
        purpose = _PURPOSES.get(tool, steps.TOOL)
        awaited = rows.awaited(tool, arguments)
        if awaited and purpose is steps.JOIN:
            purpose = steps.TOOL  # waits for a script of its own, and for no agent
        ref = self._privacy.reference(arguments)
        call = ToolCall(at.time, at.place, 0.0, purpose, answer, masked(call_id), self._run.masked(name), ref)
        self._add(call, at)
        self._calls.setdefault(call_id, []).append(call)
        if awaited:
            self._awaited[id(call)] = awaited
        answer.final = False
        if kind in _HOSTED_CALLS:
            self._end_hosted_call(call, string(payload.status), at)
            return
        self._has_called = True
        if purpose in _ABOUT_AGENTS:
            details = rows.parsed(arguments)
            text = text_field(details, "message") or text_field(details, "prompt") or text_of(details.get("items"))
            name = rows.agent_named(details)
            if purpose is not steps.CLOSE:
                call.ref = self._privacy.reference(text) or ref
            if purpose is steps.SPAWN:
                call.role = masked(text_field(details, "agent_type") or text_field(details, "agent_role"))
                spawn = self._spawns[call_id] = Spawn(call, call_id, steps.mark(text), [name])
                self.spawns.append(spawn)
            else:
                self.addressed.append(Addressed(call, name, steps.mark(text) if text else 0))
        elif rows.asks_for_approval(arguments):
            self._ask([call], at, len(re.findall(rows.TOOL_CALL, string(arguments))))

    def _end_hosted_call(self, call: ToolCall, status: str, at: Moment) -> None:
        """End a call by the service while the model answered, whose row is written at its end."""
        if status in _UNFINISHED:
            self._hosted_calls.append(call)
            return
        error = masked(status) if status not in ("", "completed") else ""
        result = ToolResult(at.time, at.place, status=_ERROR if error else _OK, error=error)
        self._add(result, at)
        steps.join(call, result, self._run.report)
        if not call.id and at.time != NO_TIME:  # else the result says when it was over
            call.more = {"t_end": max(at.time, call.time)}

    def _take_output(self, payload: Payload, at: Moment) -> None:
        self._answer = None
        output = read_output(payload.output)
        status = _ERROR if output.error else _OK
        ref = self._privacy.reference(output.text or payload.output)
        result = ToolResult(at.time, at.place, 0.0, None, False, status, output.error, ref)
        self._add(result, at)
        call_id = string(payload.call_id) or string(payload.id)
        self._results.append((call_id, result, output.run_time, output.command_times))
        calls = self._calls.get(call_id)
        if calls and (output.running or self._awaited):
            self._running.pop(self._awaited.pop(id(calls[-1]), ""), None)  # it may have waited for what ran before
            if output.running:
                self._running[output.running] = calls[-1]
        if call_id in self._spawns:
            spawn, name = self._spawns[call_id], rows.agent_named(output.details)
            spawn.names += [name, *re.findall(rf"\b{rows.UUID}\b", output.text[:_MAX_BEGINNING])]
            spawn.nickname = text_field(output.details, "nickname")
            is_sentence = bool(output.text) and not output.text.lstrip().startswith("{")
            spawn.is_declined = not name and (is_sentence or bool(output.error) or "error" in output.details)
        elif calls and calls[-1].purpose is steps.JOIN:
            self._take_endings(rows.endings(output.details.get("status")), at)
        if output.error == FORBIDDEN:
            self._add(steps.SafetyEvent(at.time, at.place, error=output.error), at)

    def _take_count(self, details: dict[str, Any], at: Moment) -> bool:
        """Take a state of the counter of tokens, and return True if it has moved."""
        if self._model and type(size := details.get("model_context_window")) is int and size > 0:
            self._run.report.context_windows[self._model] = size
        stated = details.get("total_token_usage"), details.get("last_token_usage")
        total, last = read_amounts(stated[0]), read_amounts(stated[1])
        if total is None and any(map(is_odd, stated)):
            self._run.report.note(Problem.USAGE_NO_NUMBER, str(at.place))
            self._odd += 1
            return False
        if total is None and last is None:
            self._run.report.skip("token_count without usage")
            return False
        before, last_before = self._before
        has_moved = last != last_before if total is None else total != before
        self._before = before if total is None else total, last
        if total is not None:
            self._odd = 0
        answer = self._uncounted
        if has_moved:
            answer = answer or self._continue_answer(at)
            self._answer = self._uncounted = None
        self._counts.append(Count(at.row, at.place, total, last, answer, has_moved))
        return has_moved

    def leave_out_copies(self, threads: Mapping[str, "Rollout"]) -> None:
        """Leave out history that was copied from another thread, and give the thread's own answers their tokens."""
        meta, run = self.meta, self._run
        is_child = bool(meta.parent or meta.forked)
        end = 0
        if is_child:
            sources = (threads[other] for other in (meta.forked, meta.parent) if other in threads and other != meta.id)
            end = self._find_boundary(next(sources, None))
        counter, spent_before = _Counter(run.report), list[Amounts]()
        for state in self._counts:
            is_copied = state.row <= end
            spent = counter.take(state, may_inherit=is_child and not spent_before, is_copied=is_copied)
            if spent is not None and is_copied:
                spent_before.append(spent)
            elif spent is not None and state.answer is not None:
                tokens, before = by_kind(spent), state.answer.spent
                state.answer.basis, line = _OF_TOTAL if state.total else _OF_LAST
                run.report.enter_all(line, tokens)
                if before is not None:
                    tokens = {kind: amount + getattr(before, kind) for kind, amount in tokens.items()}
                state.answer.spent = Tokens(**tokens)
            elif spent is None and not is_copied:
                run.report.enter_all(_SAME_TOTAL, by_kind(state.last) if state.last else {})
        copied = by_kind(tuple(map(sum, zip(*spent_before, strict=True)))) if spent_before else None
        if copied is not None:
            run.report.enter(LedgerLine.COPIED_HISTORY, len(spent_before), **copied)
        run.missing[Missing.RESTARTS] = run.missing.get(Missing.RESTARTS, 0) + counter.restarts
        if end:
            self._leave_out(end, copied)
        calls = [step for step in self.thread.steps if isinstance(step, ModelCall)]
        last = max((step.order for step in calls if step.spent is not None), default=-1.0)
        silent = [step for step in calls if step.spent is None]
        run.cover([step for step in silent if step.order < last])  # the next count has theirs
        later = [step for step in silent if step.order > last]
        for call in [*later, *[None] * self._odd][: self._odd]:  # theirs is no number
            run.miss_number(call)

    def _find_boundary(self, source: "Rollout | None") -> int:
        """Return the last row of history that was copied, mostly from the parent; 0 if none was."""
        is_foreign = any(row.kind == "meta" for row in self.trail)
        own_turn = next((row.row - 1 for row in self.trail if row.kind == "turn"), 0)
        ends = [0, own_turn if is_foreign else 0]
        if self.meta.created is not None:  # rows that are older than the thread
            first = self.meta.created - _EARLIER_SECONDS
            older = takewhile(lambda row: row.time < first, (row for row in self.trail if row.kind != "meta"))
            ends += [row.row for row in older]
        if source is None:  # the first totals, if they move faster than any model answers
            quick = takewhile(lambda pair: abs(pair[1].time - pair[0].time) <= _BURST_SECONDS, pairwise(self._totals))
            return max(ends + [row.row for _, row in quick])
        return max(*ends, self._end_of_common_rows(source), self._end_of_common_totals(source))

    @cached_property
    def _marks(self) -> dict[int, list[int]]:
        """Return where each mark is on the trail, in order."""
        places: dict[int, list[int]] = {}
        for place, row in enumerate(self.trail):
            places.setdefault(row.mark, []).append(place)
        return places

    @cached_property
    def _totals(self) -> list[Trail]:
        return [row for row in self.trail if row.kind == "count"]

    def _end_of_common_rows(self, source: "Rollout") -> int:
        last, at = 0, -1
        for row in self.trail:
            if row.kind == "meta":
                continue
            places = source._marks.get(row.mark, [])
            next_place = bisect_right(places, at)
            if next_place == len(places):
                break
            at, last = places[next_place], row.row
        return last

    def _end_of_common_totals(self, source: "Rollout") -> int:
        """Return the row of the last common total; 0 if it may be an accident: one alone, at another time."""
        own, others = self._totals, source._totals
        start = next((place for place, row in enumerate(others) if own and row.mark == own[0].mark), None)
        if start is None:
            return 0
        common = list(takewhile(lambda pair: pair[0].mark == pair[1].mark, zip(own, others[start:], strict=False)))
        is_copied = len(common) > 1 or own[0].time == others[start].time
        return common[-1][0].row if is_copied else 0

    def _leave_out(self, end: int, copied: dict[str, int] | None) -> None:
        """Leave out the steps of rows up to `end`; their tokens are entered at the first remaining step."""
        thread, counts = self.thread, self._counts
        kept = [step for step in thread.steps if step.order > end]
        spent = {id(count.answer): count for count in counts if count.row > end and count.answer is not None}
        for step in thread.steps:
            if step.order <= end and isinstance(step, steps.ModelCall) and id(step) in spent:
                count = spent[id(step)]  # its tokens are the thread's own, so it is, too
                step.place, step.order = count.place, float(count.row)
                kept.append(step)
        first = min((step.time for step in kept), default=0.0)
        begin = next((step for step in kept if step.order > end), None)
        if not self.meta.parent and isinstance(begin, steps.UserInput):
            before = [step.last_time for step in thread.steps if step.order <= end]
            begin.since = max(before, default=NO_TIME)
        for step in thread.steps:
            if step.order <= end and isinstance(step, steps.ToolResult):
                step.tool_call = None  # in a circle with its call, it would stay in memory where no collector runs
        if copied is not None:
            kept.append(steps.CopiedHistory(first, counts[0].place, 0.0, copied))
        thread.steps = kept
        self.spawns = [spawn for spawn in self.spawns if spawn.call.order > end]
        self.addressed = [addressed for addressed in self.addressed if addressed.call.order > end]
        self.endings = [ending for ending in self.endings if ending.step.order > end]
        self.arrivals = [arrival for arrival in self.arrivals if arrival.step.order > end]
        self.started = {name: start for name, start in self.started.items() if start.concluded.order > end}

    def refused(self) -> set[int]:
        """Return the calls, by `id`, that spawned no agent, as the log says or their output is a sentence."""
        started = {start.call_id for start in self.started.values()}
        return {
            id(spawn.call)
            for spawn in self.spawns
            if spawn.call_id in self._failed or (spawn.is_declined and spawn.call_id not in started)
        }
