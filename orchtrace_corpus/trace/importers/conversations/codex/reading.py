"""Reads a Codex rollout: the thread of one agent, and what tells where history that was copied into it ends."""

from collections.abc import Sequence
from math import inf
from typing import Any

import msgspec

from orchtrace_corpus.trace.importers.conversations.codex.conversation import Conversation, Moment
from orchtrace_corpus.trace.importers.conversations.codex.replay import Trail
from orchtrace_corpus.trace.importers.conversations.codex.rows import Line, Payload, line, string
from orchtrace_corpus.trace.importers.conversations.codex.sources import Meta, shown
from orchtrace_corpus.trace.importers.conversations.transcript import NO_TIME, Thread, moment
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.logs import LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, Problem

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
        self, files: Sequence[LogFile], said: Meta, privacy: Privacy, report: ImportReport, *, is_source: bool
    ) -> None:
        self.meta = said
        self.thread = Thread("", said.id, role=masked(said.role))
        self.conversation = Conversation(self.thread, privacy, report, is_child=bool(said.parent))
        self.trail: list[Trail] = []
        self._report = report
        self._keeps_trail = is_source or bool(said.parent or said.forked)
        # Rows after that cannot have been copied into this thread, so they matter only where others copy them.
        self._youngest = inf if is_source or said.created is None else said.created + _COPYING_SECONDS
        self._row = 0
        self._known: set[int] = set()
        for number, file in enumerate(files):
            self._read(file, is_first=number == 0, is_only=len(files) == 1)
        self.conversation.settle()

    def _read(self, file: LogFile, *, is_first: bool, is_only: bool) -> None:
        before, time, stamp, name = NO_TIME, NO_TIME, None, shown(file)
        for number, found in logs.rows(file._replace(name=name), self._report, Line):
            row = line(found)
            payload = row.payload
            if payload is None:
                self._report.drop(Drop.NO_PAYLOAD, name, number)
                continue
            if not is_only and self._is_known(row, is_first=is_first):
                self._report.pass_over("row that another file of the thread has, too")
                continue
            self._row += 1
            if row.timestamp != stamp:  # rows are written several at a time
                stamp = row.timestamp
                time = moment(stamp)
            at = Moment(time, name, number, self._row)
            if time == NO_TIME:
                self._report.note(Problem.NO_ROW_TIME, str(at.place))
            else:
                if time < before:
                    self._report.out_of_order += 1
                before = time
            self._take(row.type, payload, at)

    def _is_known(self, row: Line, *, is_first: bool) -> bool:
        """Whether a row was read already, where a thread is in two files, such as in use and in the archive."""
        mark = hash(msgspec.json.encode(row))
        if is_first:
            self._known.add(mark)
        return not is_first and mark in self._known

    def _take(self, kind: Any, payload: Payload, at: Moment) -> None:
        sign = ""  # what the row says of where copied history ends, in the words of `Trail`
        if kind == "response_item":
            self.conversation.take_item(payload, at)
            sign = "row"
        elif kind == "event_msg":
            sign = self._sign_of_event(payload, moved=self.conversation.take_event(payload, at))
        elif kind == "turn_context":
            self.conversation.model = masked(string(payload.model)) or self.conversation.model
            self._report.pass_over(kind)
            sign = "turn" if self._is_own_turn(payload) else ""
        elif kind == "session_meta":
            self._report.pass_over(kind)
            sign = "meta" if string(payload.id) not in ("", self.meta.id) else ""
        elif kind == "compacted":
            self._report.pass_over(kind)
        else:
            self._report.note_unknown(masked(kind) if isinstance(kind, str) else "(no type)")
        if sign and self._keeps_trail and (at.time <= self._youngest or sign in ("meta", "turn")):
            what = self.conversation.counts[-1].state if sign == "count" else (kind, msgspec.json.encode(payload))
            self.trail.append(Trail(at.row, at.time, hash(what), sign))

    def _sign_of_event(self, payload: Payload, *, moved: bool) -> str:
        kind = string(payload.type)
        if kind == "token_count":
            return "count" if moved else ""
        if kind in ("task_started", "turn_started") and self._is_own_turn(payload):
            return "turn"
        return "" if kind in _NEUTRAL_EVENTS else "row"

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
