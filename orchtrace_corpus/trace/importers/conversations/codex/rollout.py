"""Read a thread of Codex from its rollouts: the steps and tokens of its agent, and its statements on other threads.

The token counter has cumulative totals. Most are written twice; a total counts only if it has changed. A spawned thread
may begin with the history of its parent. Its counter begins at the parent's total or at zero; the usage of the last
answer, which is in the same row, tells which. A counter may restart, at zero or at an earlier state. If its total is
then larger than the last answer, and no earlier state explains the rest, answers outside of the log spent the rest.

A thread may be in several files, such as one in use and one in an archive, or states of a growing file. Copies of a row
may differ: in the order of members, in `null` for missing members, or in missing texts. Rows with the same time, type
and call are copies of one another. If a file has several such rows, the first of each file are copies, and so on.
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
from orchtrace_corpus.trace.importers.conversations.codex.rows import FORBIDDEN, Meta, Payload, file_name, read_output
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, duration, moment
from orchtrace_corpus.trace.importers.core.transcript import ModelCall, Place, ToolCall, ToolResult, UserInput
from orchtrace_corpus.trace.importers.core.values import MAX_COUNT, as_count, as_text, text_field, text_of
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.terms import Excluded, Status, TokenBasis
from orchtrace_corpus.trace.model.trace import Tokens

_USAGE_MEMBERS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
_NO_AMOUNTS = (None,) * len(_USAGE_MEMBERS)
_SAME_TOTAL = LedgerLine.SAME_TOTAL  # looking up enum members is slow on Python 3.11
# the basis of an answer's tokens, and their line of the ledger, if they are computed from the total or stated alone
_BY_TOTAL = TokenBasis.CUMULATIVE_DELTA, LedgerLine.TOTAL_DIFFERENCE
_BY_LAST_ANSWER = TokenBasis.REPORTED, LedgerLine.LAST_ANSWER

Amounts = tuple[int, ...]  # token counts in the order of `_USAGE_MEMBERS`; the input includes cache reads


class Count(Struct, gc=False):
    """A `token_count` row."""

    row: int  # the index of the row in the thread, from 1 on
    place: Place
    total: Amounts | None  # the tokens of all answers so far; None if not stated
    last: Amounts | None  # the tokens of the last answer; None if not stated
    answer: ModelCall | None  # the answer that spent the tokens; None if the total has not changed and none is waiting
    has_changed: bool = True  # True if the total differs from the previous total


def read_amounts(usage: Any) -> Amounts | None:
    """Return the amounts of a usage; None if it has none, or one that is not a number."""
    if type(usage) is not dict:
        return None
    stated: tuple[Any, ...] = tuple(map(usage.get, _USAGE_MEMBERS))
    for amount in stated:
        if type(amount) is not int or not 0 <= amount <= MAX_COUNT:
            if stated == _NO_AMOUNTS or has_invalid_count(usage):
                return None
            return tuple([as_count(amount) or 0 for amount in stated])
    return stated


def has_invalid_count(usage: Any) -> bool:
    """Return True if a usage has a count that is not a number."""
    if type(usage) is not dict:
        return False
    return any(amount is not None and as_count(amount) is None for amount in map(usage.get, _USAGE_MEMBERS))


def by_kind(amounts: Amounts) -> dict[str, int]:
    """Return tokens by the kinds of the schema: the input excludes cache reads, the output includes reasoning."""
    input_tokens, cache_read, output, reasoning = amounts
    uncached_input = input_tokens - cache_read if input_tokens > cache_read else 0
    output = max(output, reasoning)
    return {"input": uncached_input, "cache_read": cache_read, "output": output, "reasoning": reasoning}


class _Counter:
    """The token counter of a thread."""

    def __init__(self, report: ImportReport) -> None:
        self.restarts = 0  # the number of restarts with tokens of answers outside of the log
        self._report, self._unused_report = report, ImportReport()
        self._previous_total: Amounts | None = None
        self._totals: set[Amounts] = set()

    def advance(self, count: Count, *, may_inherit: bool, is_copied: bool) -> Amounts | None:
        """Return the tokens that a row adds; None for a repetition.

        With `may_inherit`, the first row may have the total of another thread. `is_copied` rows are not reported.
        """
        report = self._unused_report if is_copied else self._report
        total, last, previous_total = count.total, count.last, self._previous_total
        if total is None:
            return last if count.has_changed else None
        if total == previous_total:
            return None
        self._previous_total = total
        self._totals.add(total)
        difference = total if previous_total is None else tuple(map(sub, total, previous_total))
        if difference == last:
            return difference
        if last is None:
            if min(difference) < 0:
                report.note(Problem.COUNTER_RESTARTED, str(count.place))
                return total
            return difference
        total_before_last = tuple(max(amount - of_last, 0) for amount, of_last in zip(total, last, strict=True))
        if previous_total is None:
            if not may_inherit:
                return total
            report.enter(LedgerLine.INHERITED_TOTAL, **by_kind(total_before_last))
            return last
        is_earlier_state = total_before_last in self._totals
        if is_earlier_state or min(difference) < 0 or min(map(sub, difference, last)) < 0:
            report.note(Problem.COUNTER_RESTARTED, str(count.place))
            if any(total_before_last) and not is_earlier_state:
                if not is_copied:
                    self.restarts += 1
                report.enter(LedgerLine.RESTARTED, **by_kind(total_before_last))
            return last
        report.note(Problem.TOTAL_DIFFERS, str(count.place))
        return difference


class Spawn(Struct):
    """A call that spawns an agent."""

    call: ToolCall
    call_id: str  # its id in the log
    prompt_mark: int = 0  # the `steps.mark` of the sub-agent's prompt
    names: list[str] = field(default_factory=list)  # the sub-agent's, in the call and its output: thread, path, name
    nickname: str = ""  # the sub-agent's name for people, in the output
    is_declined: bool = False  # True if the output is a sentence, an error, or an object without an agent's name


class AgentCall(Struct):
    """A message to another agent, or a call that ends it."""

    call: ToolCall
    name: str  # the other agent's
    text_mark: int = 0  # the `steps.mark` of the message; 0 without a text


class Ending(Struct):
    """A step that reports the end of another agent."""

    step: steps.Step
    name: str  # the other agent's
    status: Status
    ref: str  # the reference to its result


class Arrival(Struct):
    """A text that the agent is given and that another agent may have sent."""

    step: steps.Delivery
    text_mark: int  # its `steps.mark`; 0 if the text is encrypted
    author: str = ""  # the name of the sender; empty if unknown


class Start(Struct):
    """The beginning of another agent, as the thread reports it; an empty value is unknown."""

    call_id: str  # the call that spawned the agent
    path: str  # the agent's path
    inferred_call: ToolCall  # stands for that call if it is not in the log: calls by scripts are not


_FIRST_MARK, _LAST_MARK = 0, 1  # of the first and the last `CopyRow` of each file
_UNREADABLE = (Drop.CUT_OFF, Drop.NO_JSON, Drop.TOO_LONG)  # lines of which another file may have the row


class CopyRow(NamedTuple):
    """A row of one of several files of a thread; each file also gets a first and a last `CopyRow` without a row."""

    place: Place
    row: rows.Row | None
    mark: int  # equal for copies of a row
    gaps: Counter[Drop]  # the number of unreadable lines before it


def read_copy(file: logs.LogFile) -> tuple[list[CopyRow], ImportReport]:
    """Return the rows of one of several files of a thread, and the report on its lines."""
    name, report, occurrences = file_name(file), ImportReport(), Counter[tuple[Any, ...]]()

    def count_unreadable() -> Counter[Drop]:
        dropped = report.dropped
        return Counter({drop: dropped[drop].number for drop in _UNREADABLE if drop in dropped})

    unreadable_before = Counter[Drop]()
    copy_rows = [CopyRow(Place(name, 0), None, _FIRST_MARK, unreadable_before)]
    for line_number, row in logs.rows(file._replace(name=name), report, rows.Row):
        payload, time = row.payload or Payload(), moment(row.timestamp)
        content = msgspec.json.encode(payload, order="sorted") if time == NO_TIME else b""
        key = as_text(row.type), time, as_text(payload.type), as_text(payload.call_id), content
        occurrences[key] += 1
        unreadable, mark = count_unreadable(), hash((key, occurrences[key]))
        copy_rows.append(CopyRow(Place(name, line_number), row, mark, unreadable - unreadable_before))
        unreadable_before = unreadable
    copy_rows.append(CopyRow(Place(name, 0), None, _LAST_MARK, count_unreadable() - unreadable_before))
    return copy_rows, report


def merge_copies(files: Sequence[logs.LogFile], report: ImportReport) -> Iterator[tuple[Place, rows.Row]]:
    """Yield each row of a thread once, after the row that it follows in its own file.

    An unreadable line is no loss if another file has its row, or has the two rows around it next to one another.
    """
    copies = [read_copy(file) for file in files]
    merged: list[CopyRow] = []
    for copy_rows, _ in sorted(copies, key=lambda copy: len(copy[0]), reverse=True):
        merged = _insert_missing(merged, copy_rows, report) if merged else copy_rows
    adjacent: set[tuple[int, int]] = set()  # the marks of two rows without an unreadable line between them
    for copy_rows, _ in copies:
        adjacent.update((previous.mark, row.mark) for previous, row in pairwise(copy_rows) if not row.gaps)
    next_mark = dict(pairwise(row.mark for row in merged))  # by mark of the row before
    for copy_rows, copy_report in copies:
        report.records_read += copy_report.records_read
        report.repaired += copy_report.repaired
        filled = Counter[Drop]()  # the file's unreadable lines that are no loss
        for previous, row in pairwise(copy_rows):
            if row.gaps and (next_mark[previous.mark] != row.mark or (previous.mark, row.mark) in adjacent):
                filled.update(row.gaps)
                report.skip("unreadable line whose row another file of the thread has")
        for drop, dropped in copy_report.dropped.items():
            for index in range(
                dropped.number - filled[Drop(drop)]
            ):  # the report has the places of the first lines only
                example = dropped.for_example[min(index, len(dropped.for_example) - 1)]
                name, _, line = example.rpartition(":")
                report.drop(Drop(drop), name, int(line))
    for copy_row in merged:
        if copy_row.row is not None:
            yield copy_row.place, copy_row.row


def _insert_missing(merged: Sequence[CopyRow], copy_rows: Sequence[CopyRow], report: ImportReport) -> list[CopyRow]:
    """Return merged rows with those rows of another file that they do not have."""
    indexes = {row.mark: index for index, row in enumerate(merged)}
    result: list[CopyRow] = []
    position = 0  # merged rows before it are in the result
    for copy_row in copy_rows:
        index = indexes.get(copy_row.mark)
        if index is None:
            result.append(copy_row)
            continue
        if copy_row.row is not None:
            report.skip("row that another file of the thread has, too")
        if index >= position:
            result += merged[position : index + 1]
            position = index + 1
    return result


LEAD_NAME = "main"  # the name of the agent that people talk to
LEAD_PATH = "/root"  # the path of that agent; the paths of all others begin with it
_BURST_SECONDS = 1.0  # totals at most so far apart are copies: no model answers so fast
_EARLIER_SECONDS = 1.0  # a row so much older than the thread is a copy
_COPYING_SECONDS = 10.0  # the longest time in which history is copied, if it is given new times
_MAX_BEGINNING = 400  # an output names an agent in its first characters
_PROGRAM_ROWS = frozenset(("compacted", "inter_agent_communication_metadata", "world_state"))
_UNTRAILED_EVENTS = ("thread_settings_applied", "thread_name_updated")  # each thread writes these anew


_PURPOSES = {
    "spawn_agent": steps.SPAWN,
    **dict.fromkeys(("wait", "wait_agent"), steps.JOIN),
    "close_agent": steps.CLOSE,
    **dict.fromkeys(("send_input", "send_message", "followup_task", "resume_agent"), steps.MESSAGE),
    "request_user_input": steps.ASK,
}
_ABOUT_AGENTS = (steps.SPAWN, steps.MESSAGE, steps.CLOSE)  # purposes of calls that name another agent
_WRITING_SECONDS = 1.0  # the longest delay of a row
_LONG_SECONDS = 30.0  # a longer call has its run time in the trace, to show that it did not wait
_HOSTED_CALLS = frozenset(("web_search_call", "image_generation_call"))  # the service of the model runs these tools
_UNFINISHED = frozenset(("in_progress", "searching", "generating"))  # statuses of such calls
_OK, _ERROR = Status.OK, Status.ERROR
_APPROVALS = frozenset(("exec_approval_request", "apply_patch_approval_request", "elicitation_request"))
_ITEM_BY_EVENT = {
    "agent_message": "message", "agent_reasoning": "reasoning", "agent_reasoning_raw_content": "reasoning",
}  # fmt: skip
"""The events that repeat an item, with the type of the item."""

_SKIPPED_ITEMS = frozenset(("ghost_snapshot", "compaction", "compaction_summary", "other"))
_SKIPPED_EVENTS = frozenset(
    """
    agent_reasoning_section_break background_event collab_agent_interaction_end collab_close_end collab_resume_end
    context_compacted entered_review_mode error exec_command_end exited_review_mode item_completed mcp_tool_call_end
    patch_apply_end plan_update stream_error thread_name_updated thread_rolled_back thread_settings_applied
    view_image_tool_call warning web_search_end
    """.split()
)


class Moment(Struct, gc=False):
    """The time and the place of a row."""

    time: float
    place: steps.Place
    row: int  # the index of the row in the thread, from 1 on


class TrailRow(Struct, gc=False):
    """A row of a thread's trail: its rows as they are compared with those of another thread to find copied history.

    Rows that every thread writes anew are not on the trail.
    """

    row: int  # the index of the row in the thread, from 1 on
    time: float
    mark: int  # equal for equal contents
    # `count` for a total that has changed, `meta` for the `session_meta` of another thread, `turn` for the beginning
    # of a turn that is the thread's own by its id or time, `row` for all others
    kind: str


class Rollout:
    """A thread: its transcript, and what it says of other agents."""

    def __init__(self, files: Sequence[logs.LogFile], meta: Meta, run: Run, *, is_source: bool) -> None:
        self.meta = meta
        name = LEAD_NAME
        if meta.parent:
            name = meta.nickname or rows.path_leaf(meta.path)
        self.thread = run.agent(meta.id, name, meta.role)
        self.thread.is_root = not meta.parent
        self.trail: list[TrailRow] = []  # to save memory, only the rows until `trail_end` below
        self.spawns: list[Spawn] = []
        self.agent_calls: list[AgentCall] = []
        self.endings: list[Ending] = []
        self.arrivals: list[Arrival] = []
        self.started: dict[str, Start] = {}  # by thread
        self._run, self._privacy = run, run.privacy
        self._counts: list[Count] = []
        self._model = ""  # the model that answers from now on
        self._invalid_counts = 0  # states of the counter that are not numbers, since the last total
        self._failed: set[str] = set()  # the ids of calls that spawned no agent
        self._answer: ModelCall | None = None  # the answer that the next items continue
        self._has_called = False  # True if that answer calls a tool whose result is to come
        self._uncounted: ModelCall | None = None  # the last answer, until the counter has its tokens
        self._last_count: tuple[Amounts | None, Amounts | None] = (None, None)  # `total` and `last` of the last `Count`
        self._approval: tuple[Moment, str] | None = None  # an open request for approval, and the id of its call
        self._items: set[str] = set()  # the types of items so far
        self._has_prompt_events = False  # True if events have the prompts of a person; items repeat them then
        self._prompt_items: list[steps.Step] = []
        self._calls: dict[str, list[ToolCall]] = {}  # by id
        self._spawns: dict[str, Spawn] = {}  # by the id of the call
        # results that are not yet joined to their calls: id of the call, result, run time and command times of `Output`
        self._results: list[tuple[str, ToolResult, float | None, tuple[float | None, ...] | None]] = []
        # by `id` of a call: when it asked for approval, and the number of tools that it calls if it is a script
        self._approvals: dict[int, tuple[float, int | None]] = {}
        self._running: dict[str, ToolCall] = {}  # by execution (`Output.running`): the last call that said it runs
        self._awaited: dict[int, str] = {}  # by `id` of a call: the execution for which it waits
        self._turns: dict[str, float] = {}  # by id of an open turn: when it began
        self._hosted_calls: list[ToolCall] = []  # calls by the service that have not ended
        trail_end: float | None = None  # the time after which the trail has few rows; None for no trail
        is_child = bool(meta.parent or meta.forked_from)
        if is_source or (is_child and meta.created is None):
            trail_end = inf
        elif is_child and meta.created is not None:
            trail_end = meta.created + _COPYING_SECONDS
        if len(files) == 1:
            name = file_name(files[0])
            self._read(logs.rows(files[0]._replace(name=name), run.report, rows.Row), trail_end, name)
        else:
            self._read(merge_copies(files, run.report), trail_end)

    def _read(
        self, placed_rows: Iterable[tuple[Place | int, rows.Row]], trail_end: float | None, name: str = ""
    ) -> None:
        """Read the rows of the thread, each with its place, or with its line in the file `name`."""
        report = self._run.report
        row_count, is_undated, stamp = 0, False, None
        time = latest_time = NO_TIME
        for where, row in placed_rows:
            place = Place(name, where) if isinstance(where, int) else where
            kind, payload = row.type, row.payload
            if payload is None:
                report.drop(Drop.NO_PAYLOAD, place.file, place.line)
                continue
            if row.timestamp != stamp:  # else the time is that of the row before
                stamp = row.timestamp
                time = moment(stamp)
            row_count += 1
            at = Moment(time, place, row_count)
            if time == NO_TIME:
                is_undated = True
                report.note(Problem.NO_ROW_TIME, str(place))
            else:
                if time < latest_time:
                    report.out_of_order += 1
                latest_time = time
            trail_kind = ""  # `TrailRow.kind`; empty for a row that is not on the trail
            if kind == "response_item":
                self._read_item(payload, at)
                trail_kind = "row"
            elif kind == "event_msg":
                has_changed, event = self._read_event(payload, at), payload.type
                if event == "token_count":
                    trail_kind = "count" if has_changed else ""
                elif event in ("task_started", "turn_started") and self._is_own_turn(payload):
                    trail_kind = "turn"
                elif event not in _UNTRAILED_EVENTS:
                    trail_kind = "row"
            elif kind == "turn_context":
                self._model = masked(as_text(payload.model)) or self._model
                report.skip(kind)
                trail_kind = "turn" if self._is_own_turn(payload) else ""
            elif kind == "session_meta":
                report.skip(kind)
                trail_kind = "meta" if as_text(payload.id) not in ("", self.meta.id) else ""
            elif kind == "inter_agent_communication":  # later versions write it as an item
                self._read_message(payload, at)
                trail_kind = "row"
            elif as_text(kind) in _PROGRAM_ROWS:
                report.skip(kind)
            else:
                report.note_unknown(masked(kind) if isinstance(kind, str) else "(no type)")
            if trail_kind and trail_end is not None and (time <= trail_end or trail_kind in ("meta", "turn")):
                if trail_kind == "count":
                    mark = hash((self._counts[-1].total, self._counts[-1].last))
                else:
                    mark = hash((kind, msgspec.json.encode(payload, order="sorted")))
                self.trail.append(TrailRow(row_count, time, mark, trail_kind))
        if self._has_prompt_events:
            repeated = set(map(id, self._prompt_items))
            self.thread.steps = [step for step in self.thread.steps if id(step) not in repeated]
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
            seconds = started / 1000 if started > 1e11 else started  # larger numbers are milliseconds
            return bool(seconds >= int(created))
        digits = as_text(payload.turn_id).replace("-", "").lower()
        if len(digits) != 32 or digits[12] != "7" or not set(digits) <= set("0123456789abcdef"):
            return False
        return int(digits[:12], 16) / 1000 >= created - _EARLIER_SECONDS

    def _read_item(self, payload: Payload, at: Moment) -> None:
        """Read an item of the conversation with the model."""
        if self._approval is not None:
            self._end_approval(self._approval, at, output_of=as_text(payload.call_id))
        kind = payload.type
        if type(kind) is not str or not kind:
            kind = "message"
        if kind == "message" and payload.role != "assistant":
            self._read_input(payload, at)
        elif kind in ("message", "reasoning"):
            self._items.add(kind)
            answer = self._continue_answer(at)
            answer.final = not self._has_called  # a search of the service is part of the answer
            if payload.content:
                answer.note_text(text_of(payload.content), self._privacy)
        elif kind.endswith("_call"):
            self._read_call(kind, payload, self._continue_answer(at), at)
        elif kind.endswith("_output"):
            self._read_output(payload, at)
        elif kind == "agent_message":
            self._read_message(payload, at)
        elif kind in _SKIPPED_ITEMS:
            self._run.report.skip(kind)
        else:
            self._run.report.note_unknown(masked(f"response_item {kind}"))

    def _read_event(self, payload: Payload, at: Moment) -> bool:
        """Read an event for the screen; return True if it is a `token_count` whose total has changed."""
        if payload.type == "token_count":
            details = payload.info if type(payload.info) is dict else {}
            return self._read_count(details, at)
        kind, item = as_text(payload.type), payload.item
        if self._approval is not None:
            self._end_approval(self._approval, at, output_of="")
        if kind == "item_completed" and text_field(item, "type").replace("_", "").lower() == "subagentactivity":
            kind, payload = "sub_agent_activity", msgspec.convert(item, Payload)
        if kind == "user_message":
            text = as_text(payload.message)
            self._answer = None
            if self.meta.parent:
                self._add_arrival(Arrival(steps.Delivery(at.time, at.place), steps.mark(text)), at)
            elif not rows.is_by_program(text):
                self._has_prompt_events = True
                self._add(UserInput(at.time, at.place, ref=self._privacy.reference(text)), at)
        elif kind in _ITEM_BY_EVENT:
            if _ITEM_BY_EVENT[kind] not in self._items:
                text = as_text(payload.message) or as_text(payload.text)
                self._continue_answer(at).note_text(text, self._privacy)
        elif kind in ("task_started", "turn_started"):
            self._turns[as_text(payload.turn_id)] = at.time
            self._run.report.skip(kind)
        elif kind in ("task_complete", "turn_complete"):
            self._end_turn(payload, at)
            self._run.report.skip(kind)
        elif kind == "turn_aborted":
            self._end_turn(payload, at)
            if not self.meta.parent:
                self._add(UserInput(at.time, at.place, waited=False, status=Status.CANCELLED), at)
        elif kind in _APPROVALS:
            self._approval = at, as_text(payload.call_id)
        elif kind == "guardian_assessment":
            if as_text(payload.status) in ("denied", "rejected", "blocked"):
                self._add(steps.SafetyEvent(at.time, at.place, error=FORBIDDEN), at)
        elif kind in ("collab_agent_spawn_end", "collab_tool_call"):
            if as_text(payload.new_thread):
                self._note_start(as_text(payload.new_thread), as_text(payload.call_id), "", at)
            elif kind == "collab_agent_spawn_end":
                self._failed.add(as_text(payload.call_id))
        elif kind == "collab_waiting_end":
            self._add_endings(rows.ended_agents(payload.statuses), at)
        elif kind == "sub_agent_activity":
            thread = as_text(payload.agent_thread) or as_text(payload.agent_thread_camel)
            if payload.kind == "started":
                path = as_text(payload.agent_path) or as_text(payload.agent_path_camel)
                self._note_start(thread, as_text(payload.call_id) or as_text(payload.event_id), path, at)
            elif payload.kind == "interrupted":
                self._add_endings([(thread, Status.CANCELLED, "")], at)
        elif kind == "web_search_end" and self._hosted_calls:
            self._end_hosted_call(self._hosted_calls.pop(0), "completed", at)
        elif kind in _SKIPPED_EVENTS:
            self._run.report.skip(kind)
        else:
            self._run.report.note_unknown(masked(f"event_msg {kind}"))
        return False

    def _join_results(self) -> None:
        """Join the outputs to their calls, and note how long tools ran, and which did not end."""
        for call_id, result, run_time, command_times in self._results:
            calls = self._calls.get(call_id, [])
            while len(calls) > 1 and calls[0].result is not None:
                del calls[0]  # a later call has the same id
            call = calls[0] if calls else None
            if not steps.join(call, result, self._run.report) or call is None:
                continue
            if run_time is not None and call.purpose is steps.TOOL:
                self._note_run_time(call, result, run_time, command_times)
        for call in self._running.values():
            if call.result is not None:
                call.more = {**(call.more or {}), "background": True, "unfinished": True}

    def _note_run_time(
        self, call: ToolCall, result: ToolResult, run_time: float, command_times: tuple[float | None, ...] | None
    ) -> None:
        """Note how long a tool ran; in the rest of its time it waited, for a person if it had asked for approval.

        The run time of a script includes waits for approval of its tools. If the results of all its tools are printed,
        the sum of their command times is used instead; else nothing is noted.
        """
        asked_time, tool_count = self._approvals.get(id(call), (None, None))
        elapsed = result.time - call.time
        if asked_time is not None and command_times is not None:
            stated_times = [seconds for seconds in command_times if seconds is not None]
            if not stated_times or len(stated_times) != tool_count:
                return
            run_time = min(run_time, sum(stated_times))
        wait = elapsed - run_time
        if asked_time is None and wait <= _WRITING_SECONDS and elapsed <= _LONG_SECONDS:
            return
        call.more = {**(call.more or {}), "run_time": min(run_time, elapsed)}
        if asked_time is not None and wait > _WRITING_SECONDS:
            approval = UserInput(result.time - run_time, call.place, since=asked_time, asked=True, asking=call)
            approval.order = call.order + 0.5
            self.thread.steps.append(approval)

    def _add(self, step: steps.Step, at: Moment) -> None:
        """Append a step; its order is the index of its row."""
        step.order = float(at.row)
        self.thread.steps.append(step)

    def _continue_answer(self, at: Moment) -> ModelCall:
        """Return the answer that the model is writing; a new one after an input or a count of tokens."""
        if self._answer is None:
            self._has_called = False
            self._answer = self._uncounted = ModelCall(at.time, at.place, end=at.time, model=self._model)
            self._add(self._answer, at)
        if at.time > self._answer.end:
            self._answer.end = at.time
        return self._answer

    def _end_turn(self, payload: Payload, at: Moment) -> None:
        """End a turn. Its stated duration includes waits, but not the sleep of the machine."""
        begin = self._turns.pop(as_text(payload.turn_id), NO_TIME)
        if NO_TIME not in (begin, at.time) and payload.duration_ms is not None:
            seconds = duration(payload.duration_ms, 1000)
            turn_end = steps.TurnEnd(at.time, at.place, run_time=seconds, excludes=Excluded.SLEEP, since=begin)
            self._add(turn_end, at)

    def _read_input(self, payload: Payload, at: Moment) -> None:
        """Read a message to the model: a prompt of a person, or a text of the program or of another agent."""
        self._answer = None
        text = text_of(payload.content)
        endings = list(rows.notified_endings(text))
        self._add_endings(endings, at)
        if self.meta.parent or endings or payload.role != "user" or rows.is_by_program(text):
            self._add(steps.Note(at.time, at.place), at)
        else:
            prompt = UserInput(at.time, at.place, ref=self._privacy.reference(text or payload.content))
            self._prompt_items.append(prompt)
            self._add(prompt, at)

    def _read_message(self, payload: Payload, at: Moment) -> None:
        """Read a message of another agent, or the notice that an agent has ended."""
        self._answer = None
        text, author = text_of(payload.content), as_text(payload.author)
        endings = list(rows.notified_endings(text))
        self._add_endings(endings, at, author)
        envelope = re.match(rows.FINAL_ANSWER, text) if "FINAL_ANSWER" in text else None
        if envelope is not None and author:  # a sub-agent's last message to its parent, with its result
            step = steps.Delivery(at.time, at.place, ref=self._privacy.reference(text[envelope.end() :]))
            self._add(step, at)
            self.endings.append(Ending(step, author, _OK, step.ref))
        elif not endings:
            step = steps.Delivery(at.time, at.place, ref=self._privacy.reference(text))
            mark = steps.mark(text) if text else 0
            is_task = self.meta.parent and not self.arrivals  # then the spawn is the message of its author
            if is_task:
                author = ""
            self._add_arrival(Arrival(step, mark, author), at)

    def _add_arrival(self, arrival: Arrival, at: Moment) -> None:
        self.arrivals.append(arrival)
        self._add(arrival.step, at)

    def _add_endings(self, endings: Iterable[tuple[str, Status, str]], at: Moment, author: str = "") -> None:
        """Add the ends of agents, given as `rows.ended_agents` yields them; an end without a name is the author's."""
        for name, status, result in endings:
            note = steps.Note(at.time, at.place)
            self._add(note, at)
            self.endings.append(Ending(note, name or author, status, self._privacy.reference(result)))

    def _note_start(self, thread: str, call_id: str, path: str, at: Moment) -> None:
        inferred_call = ToolCall(at.time, at.place, float(at.row), is_inferred=True)
        self.started.setdefault(thread, Start(call_id, path, inferred_call))

    def _end_approval(self, approval: tuple[Moment, str], at: Moment, output_of: str) -> None:
        """End a request for approval at the next row: a person has answered by then.

        If that row is the output of the call (`output_of` is its id), the time of the answer is unknown.
        """
        begin, call_id = approval
        self._approval = None
        if output_of and output_of == call_id:
            calls = self._calls.get(call_id)
            if calls:
                self._request_approval(calls[-1], begin)
        else:
            self._add(UserInput(at.time, at.place, since=begin.time, asked=begin.time != NO_TIME), at)

    def _request_approval(self, call: ToolCall, at: Moment, tool_count: int | None = None) -> None:
        """Note that a call asks a person for approval, and that the time of the answer is unknown."""
        self._approvals.setdefault(id(call), (at.time, tool_count))
        self._add(steps.SafetyEvent(at.time, at.place, tool=call.tool, status=Status.UNKNOWN, asking=call), at)

    def _read_call(self, kind: str, payload: Payload, answer: ModelCall, at: Moment) -> None:
        """Read an item that is a call of a tool; `kind` is the type of the item."""
        name = as_text(payload.name) or kind.removesuffix("_call")
        call_id = as_text(payload.call_id) or as_text(payload.id)
        arguments = payload.arguments
        if arguments is None:
            arguments = payload.action if payload.input is None else payload.input
        tool = name.rpartition(".")[2].rpartition("__")[2]  # without namespaces
        purpose = _PURPOSES.get(tool, steps.TOOL)
        awaited = rows.awaited_execution(tool, arguments)
        if awaited and purpose is steps.JOIN:
            purpose = steps.TOOL  # it waits for a script and not for an agent
        tool_name = self._run.masked(name)
        call = ToolCall(at.time, at.place, purpose=purpose, model_call=answer, id=masked(call_id), tool=tool_name)
        call.ref = self._privacy.reference(arguments)
        self._add(call, at)
        self._calls.setdefault(call_id, []).append(call)
        if awaited:
            self._awaited[id(call)] = awaited
        answer.final = False
        if kind in _HOSTED_CALLS:
            self._end_hosted_call(call, as_text(payload.status), at)
            return
        self._has_called = True
        if purpose in _ABOUT_AGENTS:
            details = rows.parsed(arguments)
            text = text_field(details, "message") or text_field(details, "prompt") or text_of(details.get("items"))
            name = rows.agent_named(details)
            if purpose is not steps.CLOSE:
                call.ref = self._privacy.reference(text) or call.ref
            if purpose is steps.SPAWN:
                call.role = masked(text_field(details, "agent_type") or text_field(details, "agent_role"))
                spawn = self._spawns[call_id] = Spawn(call, call_id, steps.mark(text), [name])
                self.spawns.append(spawn)
            else:
                text_mark = steps.mark(text) if text else 0
                self.agent_calls.append(AgentCall(call, name, text_mark))
        elif rows.asks_for_approval(arguments):
            self._request_approval(call, at, len(re.findall(rows.TOOL_CALL, as_text(arguments))))

    def _end_hosted_call(self, call: ToolCall, status: str, at: Moment) -> None:
        """End a call that the service runs while the model answers, unless its status says that it still runs."""
        if status in _UNFINISHED:
            self._hosted_calls.append(call)
            return
        error = masked(status) if status not in ("", "completed") else ""
        status_of_result = _ERROR if error else _OK
        result = ToolResult(at.time, at.place, status=status_of_result, error=error)
        self._add(result, at)
        steps.join(call, result, self._run.report)
        if not call.id and at.time != NO_TIME:  # with an id, an output of its own may state the end
            call.more = {"t_end": max(at.time, call.time)}

    def _read_output(self, payload: Payload, at: Moment) -> None:
        """Read an item that is the output of a call."""
        self._answer = None
        output = read_output(payload.output)
        status = _ERROR if output.error else _OK
        ref = self._privacy.reference(output.text or payload.output)
        result = ToolResult(at.time, at.place, status=status, error=output.error, ref=ref)
        self._add(result, at)
        call_id = as_text(payload.call_id) or as_text(payload.id)
        self._results.append((call_id, result, output.run_time, output.command_times))
        calls = self._calls.get(call_id)
        if calls and (output.running or self._awaited):
            awaited = self._awaited.pop(id(calls[-1]), "")
            self._running.pop(awaited, None)  # it ran until now; if it still runs, the output says so
            if output.running:
                self._running[output.running] = calls[-1]
        if call_id in self._spawns:
            spawn, name = self._spawns[call_id], rows.agent_named(output.details)
            spawn.names += [name, *re.findall(rf"\b{rows.UUID}\b", output.text[:_MAX_BEGINNING])]
            spawn.nickname = text_field(output.details, "nickname")
            is_sentence = bool(output.text) and not output.text.lstrip().startswith("{")
            spawn.is_declined = not name and (is_sentence or bool(output.error) or "error" in output.details)
        elif calls and calls[-1].purpose is steps.JOIN:
            self._add_endings(rows.ended_agents(output.details.get("status")), at)
        if output.error == FORBIDDEN:
            self._add(steps.SafetyEvent(at.time, at.place, error=output.error), at)

    def _read_count(self, details: dict[str, Any], at: Moment) -> bool:
        """Read a state of the counter of tokens, and return True if its total has changed."""
        context_window = details.get("model_context_window")
        if self._model and type(context_window) is int and context_window > 0:
            self._run.report.context_windows[self._model] = context_window
        stated_total, stated_last = details.get("total_token_usage"), details.get("last_token_usage")
        total, last = read_amounts(stated_total), read_amounts(stated_last)
        if total is None and (has_invalid_count(stated_total) or has_invalid_count(stated_last)):
            self._run.report.note(Problem.USAGE_NO_NUMBER, str(at.place))
            self._invalid_counts += 1
            return False
        if total is None and last is None:
            self._run.report.skip("token_count without usage")
            return False
        previous_total, previous_last = self._last_count
        if total is None:
            has_changed = last != previous_last
            self._last_count = previous_total, last
        else:
            has_changed = total != previous_total
            self._last_count = total, last
            self._invalid_counts = 0
        answer = self._uncounted
        if has_changed:
            answer = answer or self._continue_answer(at)
            self._answer = self._uncounted = None
        self._counts.append(Count(at.row, at.place, total, last, answer, has_changed))
        return has_changed

    def leave_out_copies(self, threads: Mapping[str, "Rollout"]) -> None:
        """Leave out history that was copied from another thread, and give the thread's own answers their tokens."""
        meta, run = self.meta, self._run
        is_child = bool(meta.parent or meta.forked_from)
        end = 0  # the last row of copied history
        if is_child:
            source_ids = [other for other in (meta.forked_from, meta.parent) if other in threads and other != meta.id]
            source = threads[source_ids[0]] if source_ids else None
            end = self._end_of_copy(source)
        counter = _Counter(run.report)
        copied_amounts: list[Amounts] = []
        for state in self._counts:
            is_copied = state.row <= end
            amounts = counter.advance(state, may_inherit=is_child and not copied_amounts, is_copied=is_copied)
            if amounts is not None and is_copied:
                copied_amounts.append(amounts)
            elif amounts is not None and state.answer is not None:
                tokens, spent = by_kind(amounts), state.answer.spent
                state.answer.basis, line = _BY_TOTAL if state.total else _BY_LAST_ANSWER
                run.report.enter_all(line, tokens)
                if spent is not None:
                    tokens = {kind: amount + getattr(spent, kind) for kind, amount in tokens.items()}
                state.answer.spent = Tokens(**tokens)
            elif amounts is None and not is_copied:
                repeated_tokens = by_kind(state.last) if state.last else {}
                run.report.enter_all(_SAME_TOTAL, repeated_tokens)
        copied_tokens: dict[str, int] | None = None
        if copied_amounts:
            copied_tokens = by_kind(tuple(map(sum, zip(*copied_amounts, strict=True))))
            run.report.enter(LedgerLine.COPIED_HISTORY, len(copied_amounts), **copied_tokens)
        run.missing[Missing.RESTARTS] = run.missing.get(Missing.RESTARTS, 0) + counter.restarts
        if end:
            self._leave_out(end, copied_tokens)
        answers = [step for step in self.thread.steps if isinstance(step, ModelCall)]
        last_counted = max((answer.order for answer in answers if answer.spent is not None), default=-1.0)
        uncounted = [answer for answer in answers if answer.spent is None]
        run.cover([answer for answer in uncounted if answer.order < last_counted])  # the next count includes them
        later = [answer for answer in uncounted if answer.order > last_counted]
        for index in range(self._invalid_counts):  # the counts after the last total are no numbers
            answer_of_count = later[index] if index < len(later) else None
            run.miss_number(answer_of_count)

    def _end_of_copy(self, source: "Rollout | None") -> int:
        """Return the last row of history that was copied, mostly from the parent; 0 if none was.

        The latest of several signs counts; `source` is the thread with the original, if its rollout is at hand.
        """
        end = 0
        own_turns = [row for row in self.trail if row.kind == "turn"]
        if own_turns and any(row.kind == "meta" for row in self.trail):  # it begins with another thread's rows
            end = own_turns[0].row - 1
        if self.meta.created is not None:
            for row in self.trail:
                if row.kind == "meta":
                    continue
                if row.time >= self.meta.created - _EARLIER_SECONDS:
                    break
                end = max(end, row.row)
        if source is not None:
            return max(end, self._end_of_common_rows(source), self._end_of_common_totals(source))
        for previous, current in pairwise(self._trail_counts):
            if abs(current.time - previous.time) > _BURST_SECONDS:
                break
            end = max(end, current.row)
        return end

    @cached_property
    def _indexes_by_mark(self) -> dict[int, list[int]]:
        """Return the indexes of each mark on the trail, in rising order."""
        indexes: dict[int, list[int]] = {}
        for index, row in enumerate(self.trail):
            indexes.setdefault(row.mark, []).append(index)
        return indexes

    @cached_property
    def _trail_counts(self) -> list[TrailRow]:
        return [row for row in self.trail if row.kind == "count"]

    def _end_of_common_rows(self, source: "Rollout") -> int:
        """Return the last of the first rows that are also on the source's trail, in the same order; 0 for none."""
        end, last_index = 0, -1
        for row in self.trail:
            if row.kind == "meta":
                continue
            indexes = source._indexes_by_mark.get(row.mark, [])
            position = bisect_right(indexes, last_index)
            if position == len(indexes):  # the source has no such row after the previous one
                break
            end, last_index = row.row, indexes[position]
        return end

    def _end_of_common_totals(self, source: "Rollout") -> int:
        """Return the last row of the first totals that the source has, too; 0 for none, or for one at another time.

        A single common total may be an accident.
        """
        own, others = self._trail_counts, source._trail_counts
        start = 0  # the source's first total that this thread begins with
        while own and start < len(others) and others[start].mark != own[0].mark:
            start += 1
        common = list(takewhile(lambda pair: pair[0].mark == pair[1].mark, zip(own, others[start:], strict=False)))
        if not common or (len(common) == 1 and own[0].time != others[start].time):
            return 0
        return common[-1][0].row

    def _leave_out(self, end: int, copied_tokens: dict[str, int] | None) -> None:
        """Leave out the steps of rows up to `end`; their tokens are entered at the first remaining step."""
        thread, counts = self.thread, self._counts
        copied = [step for step in thread.steps if step.order <= end]
        kept = [step for step in thread.steps if step.order > end]
        own_counts = {id(count.answer): count for count in counts if count.row > end and count.answer is not None}
        first_own = kept[0] if kept else None
        for step in copied:
            if isinstance(step, steps.ModelCall) and id(step) in own_counts:
                count = own_counts[id(step)]  # the thread spent its tokens, so the answer is its own
                step.place, step.order = count.place, float(count.row)
                kept.append(step)
            elif isinstance(step, steps.ToolResult):
                step.tool_call = None  # without a garbage collector, a result and its call would stay in memory
        if not self.meta.parent and isinstance(first_own, steps.UserInput):
            left_out_times = [step.last_time for step in copied if step.order <= end]
            first_own.since = max(left_out_times, default=NO_TIME)
        if copied_tokens is not None:
            begin = min((step.time for step in kept), default=0.0)
            kept.append(steps.CopiedHistory(begin, counts[0].place, 0.0, copied_tokens))
        thread.steps = kept
        self.spawns = [spawn for spawn in self.spawns if spawn.call.order > end]
        self.agent_calls = [agent_call for agent_call in self.agent_calls if agent_call.call.order > end]
        self.endings = [ending for ending in self.endings if ending.step.order > end]
        self.arrivals = [arrival for arrival in self.arrivals if arrival.step.order > end]
        self.started = {name: start for name, start in self.started.items() if start.inferred_call.order > end}

    def refused_calls(self) -> set[int]:
        """Return the `id` of each call that spawned no agent, by an event of the log or by its output."""
        started = {start.call_id for start in self.started.values()}
        refused: set[int] = set()
        for spawn in self.spawns:
            if spawn.call_id in self._failed or (spawn.is_declined and spawn.call_id not in started):
                refused.add(id(spawn.call))
        return refused
