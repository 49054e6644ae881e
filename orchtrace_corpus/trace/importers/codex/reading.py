"""Reads a Codex rollout: the thread of one agent, and what tells where history that was copied into it ends."""

from collections.abc import Sequence
from typing import Any

import msgspec

from orchtrace_corpus.trace.importers import logs
from orchtrace_corpus.trace.importers.builder import seconds
from orchtrace_corpus.trace.importers.codex.conversation import Conversation, Moment
from orchtrace_corpus.trace.importers.codex.replay import Trail
from orchtrace_corpus.trace.importers.codex.rows import Line, Payload, line, string
from orchtrace_corpus.trace.importers.codex.sources import Meta, shown
from orchtrace_corpus.trace.importers.logs import LogFile
from orchtrace_corpus.trace.importers.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.report import Report
from orchtrace_corpus.trace.importers.transcript import NO_TIME, Thread

_KINDS = frozenset(("session_meta", "response_item", "event_msg", "turn_context", "compacted"))
_COPYING_SECONDS = 10.0
"""History is copied within such a time, if it is given new times at all."""
_NEUTRAL_EVENTS = frozenset(("thread_settings_applied", "thread_name_updated"))


class Rollout:
    """One thread as its rows tell.

    Attributes:
        meta: What it says of itself.
        thread: Its steps; its agent is named when all rollouts of the session are read.
        conversation: Its counter of tokens, and its clues.
        trail: What tells where copied history ends. Of a thread whose own history none is copied from, only what
            was written when it came into being.

    Raises:
        DataFileError: A file cannot be read.
    """

    def __init__(
        self, files: Sequence[LogFile], said: Meta, privacy: Privacy, report: Report, *, is_source: bool
    ) -> None:
        self.meta = said
        self.thread = Thread("", said.id, role=masked(said.role))
        self.conversation = Conversation(self.thread, privacy, report, is_child=bool(said.parent))
        self.trail: list[Trail] = []
        self._report, self._is_source = report, is_source
        self._keeps_trail = is_source or bool(said.parent or said.forked)
        self._row = 0
        self._known: set[int] = set()
        for number, file in enumerate(files):
            self._read(file, is_first=number == 0, is_only=len(files) == 1)
        self.conversation.settle()

    def _read(self, file: LogFile, *, is_first: bool, is_only: bool) -> None:
        before, name = NO_TIME, shown(file)
        for number, found in logs.rows(file._replace(name=name), self._report, Line):
            row = line(found)
            payload, stamp = row.payload, row.timestamp
            if payload is None:
                self._report.drop("row without a payload", name, number)
                continue
            if not is_only and self._is_known(row, is_first=is_first):
                self._report.passed("row that another file of the thread has, too")
                continue
            self._row += 1
            known = seconds(stamp) if isinstance(stamp, str) else None
            time = NO_TIME if known is None or known < 0 else known
            at = Moment(time, name, number, self._row)
            if time == NO_TIME:
                self._report.problem("row without a time: that of the row before it is taken", str(at.place))
            else:
                self._report.out_of_order += time < before
                before = time
            self._take(row.type, payload, at)

    def _is_known(self, row: Line, *, is_first: bool) -> bool:
        """Whether a row was read already, where a thread is in two files, such as in use and in the archive."""
        mark = hash(msgspec.json.encode(row))
        if is_first:
            self._known.add(mark)
        return not is_first and mark in self._known

    def _take(self, kind: Any, payload: Payload, at: Moment) -> None:
        if not isinstance(kind, str) or kind not in _KINDS:
            self._report.unknown(masked(kind) if isinstance(kind, str) else "(no type)")
            return
        moved = False
        if kind == "response_item":
            self.conversation.take_item(payload, at)
        elif kind == "event_msg":
            moved = self.conversation.take_event(payload, at)
        elif kind == "turn_context":
            self.conversation.model = masked(string(payload.model)) or self.conversation.model
            self._report.passed(kind)
        else:
            self._report.passed(kind)
        if self._keeps_trail:
            sign = self._sign(kind, payload, moved=moved)
            if sign in ("row", "count") and self._is_late(at.time):
                return
            if sign == "count":
                self.trail.append(Trail(at.row, at.time, hash(self.conversation.counts[-1].state), sign))
            elif sign:
                self.trail.append(Trail(at.row, at.time, hash((kind, msgspec.json.encode(payload))), sign))

    def _is_late(self, time: float) -> bool:
        """Whether a row is too young to have been copied, so that it matters only where others copy it."""
        created = self.meta.created
        return not self._is_source and created is not None and time > created + _COPYING_SECONDS

    def _sign(self, kind: str, payload: Payload, *, moved: bool) -> str:
        """What a row says of where copied history ends, in the words of `Trail`; empty where it says nothing."""
        if kind == "session_meta":
            return "meta" if string(payload.id) not in ("", self.meta.id) else ""
        inner = string(payload.type)
        if kind == "turn_context" or inner in ("task_started", "turn_started"):
            return "turn" if self._is_own_turn(payload) else "" if kind == "turn_context" else "row"
        if inner == "token_count":
            return "count" if moved else ""
        return "" if kind == "compacted" or inner in _NEUTRAL_EVENTS else "row"

    def _is_own_turn(self, payload: Payload) -> bool:
        """Whether a turn began after the thread did: by its start, or by the time in its id (UUID version 7)."""
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
