"""A thread of Codex in several files: in use and archived, saved as it grew, or with something cut out.

Copies of a row may be written differently: with members in another order, with `null` for what others leave out,
without `encrypted_content`, without texts. Their time stays: a row is known again by its time, its kind and its call,
and by its place among several of these.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import pairwise, takewhile
from math import inf
from typing import Any

import msgspec
from msgspec import Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.conversations.codex.conversation import Conversation, Moment, spend
from orchtrace_corpus.trace.importers.conversations.codex.rows import Line, Meta, Payload, path_leaf, shown
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.logs import LogFile
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME, moment
from orchtrace_corpus.trace.importers.core.transcript import Place
from orchtrace_corpus.trace.importers.core.values import string
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, Missing, Problem

_BEGIN, _END = 0, 1
"""Stand for a row before the first and one behind the last."""
_UNREADABLE = (Drop.CUT_OFF, Drop.NO_JSON, Drop.TOO_LONG)


class Row(NamedTuple):
    """A row of a copy."""

    place: Place  # where it is
    line: Line  # the row
    mark: int  # a number that its other copies have, too
    gaps: tuple[Drop, ...] = ()  # why lines between it and the row before could not be read


class Copy:
    """One file of a thread that has several."""

    def __init__(self, file: LogFile) -> None:
        self.report = ImportReport()  # what became of its lines
        self.rows: list[Row] = []
        self.gaps: tuple[Drop, ...] = ()  # why lines behind its last row could not be read
        name = shown(file)
        self._marks: Counter[tuple[Any, ...]] = Counter()
        before = dict.fromkeys(_UNREADABLE, 0)
        for number, row in logs.rows(file._replace(name=name), self.report, Line):
            self.rows.append(Row(Place(name, number), row, self._mark(row), self._gaps_since(before)))
        self.gaps = self._gaps_since(before)

    def _mark(self, row: Line) -> int:
        payload = row.payload or Payload()
        time = moment(row.timestamp)
        content = msgspec.json.encode(payload, order="sorted") if time == NO_TIME else b""
        key = string(row.type), time, string(payload.type), string(payload.call_id), content
        self._marks[key] += 1
        return hash((key, self._marks[key]))

    def _gaps_since(self, before: dict[Drop, int]) -> tuple[Drop, ...]:
        gaps: list[Drop] = []
        for drop in _UNREADABLE if self.report.dropped else ():
            noted = self.report.dropped.get(drop)
            number = noted.number if noted else 0
            gaps += [drop] * (number - before[drop])
            before[drop] = number
        return tuple(gaps)


def merge_copies(copies: Sequence[Copy], report: ImportReport) -> Iterator[tuple[Place, Line]]:
    """Yield each row once that any copy of a thread has, each behind the row that it follows in its copy.

    Args:
        copies: The copies.
        report: Where it is said what became of their lines.
    """
    merged: list[Row] = []
    for copy in sorted(copies, key=lambda copy: len(copy.rows), reverse=True):
        merged = _insert(merged, copy.rows, report) if merged else copy.rows
    whole = {(before.mark, row.mark) for copy in copies for before, row in pairwise(copy.rows) if not row.gaps}
    followed = dict(pairwise([_BEGIN, *(row.mark for row in merged), _END]))
    for copy in copies:
        _add_report(report, copy, whole, followed)
    for row in merged:
        yield row.place, row.line


def _insert(merged: list[Row], rows: Sequence[Row], report: ImportReport) -> list[Row]:
    """Insert the rows of a copy that those merged so far lack."""
    places = {row.mark: index for index, row in enumerate(merged)}
    result: list[Row] = []
    at = 0
    for row in rows:
        index = places.get(row.mark)
        if index is None:
            result.append(row)
            continue
        report.pass_over("row that another file of the thread has, too")
        if index >= at:
            result += merged[at : index + 1]
            at = index + 1
    return result + merged[at:]


def _add_report(report: ImportReport, copy: Copy, whole: Set[tuple[int, int]], followed: Mapping[int, int]) -> None:
    """Report what became of the lines of a copy; one that cannot be read is no loss where others have its row.

    Args:
        report: The report.
        copy: The copy.
        whole: Neighbouring rows, as marks, between which some copy has nothing that could not be read.
        followed: Which row follows each among those of all copies.
    """
    report.records_read += copy.report.records_read
    report.repaired += copy.report.repaired
    filled: list[Drop] = []
    marks = [_BEGIN, *(row.mark for row in copy.rows), _END]
    for (before, after), gaps in zip(pairwise(marks), [*(row.gaps for row in copy.rows), copy.gaps], strict=True):
        if gaps and (followed[before] != after or (before, after) in whole):
            filled += gaps
            report.pass_over("unreadable line whose row another file of the thread has")
    for drop, noted in copy.report.dropped.items():
        for index in range(noted.number - filled.count(Drop(drop))):
            file, _, line_number = noted.for_example[min(index, len(noted.for_example) - 1)].rpartition(":")
            report.drop(Drop(drop), file, int(line_number))


LEAD_NAME = "main"
"""The agent that people talk to."""

LEAD_PATH = "/root"
"""The path of that agent, at which those of all others begin."""

_BURST_SECONDS = 1.0
_EARLIER_SECONDS = 1.0
_COPYING_SECONDS = 10.0  # history is copied within such a time, if it is given new times at all
_SILENT = frozenset(("compacted", "inter_agent_communication_metadata", "world_state"))
_NEUTRAL_EVENTS = ("thread_settings_applied", "thread_name_updated")


class Trail(Struct, gc=False):
    """A row of a rollout, as far as it tells where copied history ends."""

    row: int  # its number in the thread
    time: float
    mark: int  # what it says, as a number
    # the kind of row: `count` for a total that has moved, `meta` for the `session_meta` of another thread, `turn`
    # for the beginning of a turn that is the thread's own by its id or time, else `row`. What every thread writes
    # anew about itself leaves no trail
    kind: str


class Trails:
    """The trail of a thread, as others are compared with it."""

    def __init__(self, rows: Sequence[Trail]) -> None:
        self._rows = rows

    @cached_property
    def places(self) -> dict[int, list[int]]:
        """The places of each mark, from the beginning on."""
        places: dict[int, list[int]] = {}
        for place, row in enumerate(self._rows):
            places.setdefault(row.mark, []).append(place)
        return places

    @cached_property
    def counts(self) -> list[Trail]:
        """The totals that have moved."""
        return [row for row in self._rows if row.kind == "count"]


def find_boundary(own: Sequence[Trail], parent: Trails | None, meta: Meta) -> int:
    """Return the last row of the history that was copied into a thread; 0 where none was.

    Args:
        own: The rows of the thread.
        parent: Those of the thread that its history may be from; None where that is not at hand.
        meta: What the thread says of itself.
    """
    is_foreign = any(row.kind == "meta" for row in own)
    own_turn = next((row.row - 1 for row in own if row.kind == "turn"), 0)
    signs = [_older_rows(own, meta), own_turn if is_foreign else 0]
    if parent is None:
        return max(*signs, _burst(own))
    return max(*signs, _common_rows(own, parent), _common_counts(own, parent))


def _common_rows(own: Sequence[Trail], parent: Trails) -> int:
    """Return the end of the rows that both have, from the beginning on."""
    last, at = 0, -1
    for row in own:
        if row.kind == "meta":
            continue
        places = parent.places.get(row.mark, [])
        next_place = bisect_right(places, at)
        if next_place == len(places):
            break
        at = places[next_place]
        last = row.row
    return last


def _common_counts(own: Sequence[Trail], parent: Trails) -> int:
    """Return the end of the totals that both have, where it can be no accident: two in a row, or one of an instant."""
    counts = parent.counts
    mine = [row for row in own if row.kind == "count"]
    if not mine:
        return 0
    start = next((place for place, row in enumerate(counts) if row.mark == mine[0].mark), None)
    if start is None:
        return 0
    both = 0
    while both < len(mine) and start + both < len(counts) and mine[both].mark == counts[start + both].mark:
        both += 1
    is_copied = both > 1 or mine[0].time == counts[start].time
    return mine[both - 1].row if is_copied else 0


def _older_rows(own: Sequence[Trail], meta: Meta) -> int:
    """Return the end of the rows that are older than the thread."""
    if meta.created is None:
        return 0
    first = meta.created - _EARLIER_SECONDS
    older = takewhile(lambda row: row.time < first, (row for row in own if row.kind != "meta"))
    return max((row.row for row in older), default=0)


def _burst(own: Sequence[Trail]) -> int:
    """Return the end of the first totals that move faster than any model answers."""
    counts = [row for row in own if row.kind == "count"]
    quick = takewhile(lambda pair: abs(pair[1].time - pair[0].time) <= _BURST_SECONDS, pairwise(counts))
    return max((row.row for _, row in quick), default=0)


class Rollout:
    """One thread, read from its rows."""

    def __init__(self, files: Sequence[LogFile], meta: Meta, run: Run, *, is_source: bool) -> None:
        self.meta = meta  # what it says of itself
        name = LEAD_NAME if not meta.parent else meta.nickname or path_leaf(meta.path)
        self.thread = run.agent(meta.id, name, meta.role)  # its steps
        self.thread.is_root = not meta.parent
        # its counter of tokens, and its evidence of other threads
        self.conversation = Conversation(self.thread, run, is_child=bool(meta.parent))
        # what tells where copied history ends. Of a thread whose own history none is copied from, only what was
        # written when it came into being
        self.trail: list[Trail] = []
        self._run, self._report = run, run.report
        self._keeps_trail = is_source or bool(meta.parent or meta.forked)
        # Rows after that cannot have been copied into this thread, so they matter only where others copy them.
        self._youngest = inf if is_source or meta.created is None else meta.created + _COPYING_SECONDS
        if len(files) == 1:
            name = shown(files[0])
            self._read(logs.rows(files[0]._replace(name=name), self._report, Line), name)
        else:
            self._read(merge_copies([Copy(file) for file in files], self._report))

    def _read(self, rows: Iterable[tuple[Place | int, Line]], name: str = "") -> None:
        """Read the rows of the thread, each with its place, or with its line in the file of that name."""
        conversation, report = self.conversation, self._report
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
            sign = ""  # what the row says of where copied history ends, in the words of `Trail`
            if kind == "response_item":
                conversation.take_item(payload, at)
                sign = "row"
            elif kind == "event_msg":
                has_moved, event = conversation.take_event(payload, at), payload.type
                if event == "token_count":
                    sign = "count" if has_moved else ""
                elif event in ("task_started", "turn_started") and self._is_own_turn(payload):
                    sign = "turn"
                else:
                    sign = "" if event in _NEUTRAL_EVENTS else "row"
            elif kind == "turn_context":
                conversation.model = masked(string(payload.model)) or conversation.model
                report.pass_over(kind)
                sign = "turn" if self._is_own_turn(payload) else ""
            elif kind == "session_meta":
                report.pass_over(kind)
                sign = "meta" if string(payload.id) not in ("", self.meta.id) else ""
            elif kind == "inter_agent_communication":  # which later versions write as an item
                conversation.take_message(payload, at)
                sign = "row"
            elif string(kind) in _SILENT:
                report.pass_over(kind)
            else:
                report.note_unknown(masked(kind) if isinstance(kind, str) else "(no type)")
            if sign and self._keeps_trail and (time <= self._youngest or sign in ("meta", "turn")):
                if sign == "count":
                    mark = hash((conversation.counts[-1].total, conversation.counts[-1].last))
                else:
                    mark = hash((kind, msgspec.json.encode(payload, order="sorted")))
                self.trail.append(Trail(ordinal, time, mark, sign))
        conversation.close(is_undated=is_undated)

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

    def leave_out_copies(self, trails: Mapping[str, Trails]) -> None:
        """Leave copied history out of the thread, and give its own answers their tokens.

        Args:
            trails: The trails of the threads at hand, by their ids.
        """
        meta, counts = self.meta, self.conversation.counts
        is_child = bool(meta.parent or meta.forked)
        end = 0
        if is_child:
            others = (trails[other] for other in (meta.forked, meta.parent) if other in trails and other != meta.id)
            end = find_boundary(self.trail, next(others, None), meta)
        copied, restarts = spend(counts, end, is_child=is_child, report=self._report)
        self._run.missing[Missing.RESTARTS] = self._run.missing.get(Missing.RESTARTS, 0) + restarts
        if end:
            self._leave_out(end, copied)
        self._account_for_silent()

    def _leave_out(self, end: int, copied: dict[str, int] | None) -> None:
        """Leave out the steps of rows up to this one; what they had spent stands at the first that is left."""
        thread, counts = self.thread, self.conversation.counts
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
        self.conversation.evidence.leave_out(end)

    def _account_for_silent(self) -> None:
        """Say of answers without a count that one behind them contains theirs, or that theirs is no number."""
        calls = [step for step in self.thread.steps if isinstance(step, steps.ModelCall)]
        last = max((step.order for step in calls if step.spent is not None), default=-1.0)
        silent = [step for step in calls if step.spent is None]
        self._run.cover([step for step in silent if step.order < last])
        behind = [step for step in silent if step.order > last]
        odd = self.conversation.odd
        for call in behind[:odd]:
            self._run.miss_number(call)
        for _ in range(odd - len(behind)):
            self._run.miss_number(None)
