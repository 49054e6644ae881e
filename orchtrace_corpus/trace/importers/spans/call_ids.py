"""The ids of tool calls: as spans give them, else as the model's answer gave them, else made from the span's id."""

from collections import deque
from typing import NamedTuple

from orchtrace_corpus.trace.importers.core.identity import Names
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.spans.span import Call, Span
from orchtrace_corpus.trace.model.import_report import ImportReport, Problem

_MOST_COMPARED = 50
"""Among so many calls of one tool that wait, the one of the same arguments is looked for."""


class Asked(NamedTuple):
    """The call that a span carries out.

    Attributes:
        id: Its id, unique in the trace.
        cause: The event of the model's answer that asked for it; empty where the log does not tell.
        is_made_up: Whether the id was made from the span's.
    """

    id: str
    cause: str = ""
    is_made_up: bool = False


class CallIds:
    """The calls of a run, as models ask for them and spans carry them out."""

    def __init__(self, report: ImportReport) -> None:
        self._report = report
        self._waiting: dict[tuple[int, str], deque[tuple[Call, str]]] = {}
        self._asked: dict[tuple[int, str], str] = {}
        self._used = Names()

    def ask(self, owner: int, call: Call, event: str) -> None:
        """Note that a model asks for a call in the event of an activation."""
        self._waiting.setdefault((owner, call.tool), deque()).append((call, event))
        if call.id:
            self._asked[owner, call.id] = event

    def carry_out(self, owner: int, span: Span) -> Asked:
        """The call that a span of an activation carries out: by its id, else by tool and arguments, else by tool."""
        if span.call_id:
            return Asked(self._unique(masked(span.call_id), span), self._asked.get((owner, span.call_id), ""))
        waiting = self._waiting.get((owner, span.name))
        if not waiting:
            return Asked(self._unique(f"span:{masked(span.id)}", span), is_made_up=True)
        found = waiting[0]
        for number, (call, _) in enumerate(waiting):
            if number == _MOST_COMPARED:
                break
            if call.arguments == span.arguments:
                found = waiting[number]
                break
        waiting.remove(found)
        call, event = found
        if not call.id:
            return Asked(self._unique(f"span:{masked(span.id)}", span), event, is_made_up=True)
        return Asked(self._unique(masked(call.id), span), event)

    def _unique(self, name: str, span: Span) -> str:
        """The id itself, or with a number behind it where other calls have it."""
        found = self._used.new(name)
        if found != name:
            self._report.note(Problem.CALL_ID_USED_TWICE, span.where)
        return found
