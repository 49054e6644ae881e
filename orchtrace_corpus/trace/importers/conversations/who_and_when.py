"""Who&When: failed runs of teams with labels that say which agent made the decisive mistake, and at which step.

Zhang et al., 2025, "Which Agent Causes Task Failures and When?", arXiv 2505.00212. A record has no times, no usage
and no ids of calls: its steps are counted. Agents are named by `name`, or by `role` with what the step was for.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from orchtrace_corpus.trace.importers.conversations.team import Team, documents, traces_of
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.json_parts import Part
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked, masked_path
from orchtrace_corpus.trace.importers.core.values import string, text_field
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, Problem
from orchtrace_corpus.trace.model.trace import Status, Trace, Unit

_MEMBERS = ({"history", "mistake_agent", "mistake_step"}, {"history", "question_ID", "ground_truth"})
"""Members of a record; where its history is long, the labels are not among the first."""
_LONG = re.compile(r'\s*\[?\s*\{\s*"history"\s*:\s*\[\s*\{\s*"content"\s*:')
"""How a record begins whose labels are behind a long history."""
_PERSON = '"role": "human"'
_PURPOSE = re.compile(r"\s*\((?:-> ?([^()]{1,100})|[^()]{1,100})\)\s*$")
_PEOPLE = frozenset(("human", "user_proxy", "User"))
_TERMINALS = frozenset(("computer_terminal", "computerterminal"))
MISTAKE = "mistake"
"""The error of a step that a label calls the decisive mistake."""


def recognises(beginning: Head) -> bool:
    """Whether a file that begins like this holds records of Who&When: by their labels."""
    text = beginning.text
    return beginning.has_any(_MEMBERS) or (_LONG.match(text) is not None and _PERSON in text)


def ties(opened: Opened) -> Sequence[str]:
    """What ties a file to others: nothing."""
    return [opened.file.path]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """The traces of the records.

    Raises:
        DataFileError: A file cannot be read.
        EmptyLogError: No record has a step.
    """
    yield from traces_of(
        files, documents, lambda part, file, report: _Record(part, file, privacy, report).trace(), "step"
    )


class _Record:
    """Reads the history of a record into the transcripts of its agents."""

    def __init__(self, part: Part, file: LogFile, privacy: Privacy, report: ImportReport) -> None:
        self._file, self._privacy, self._report = file, privacy, report
        self._team = Team(privacy, report)
        self._threads: dict[str, steps.Transcript] = {}
        self._members = part.members()
        self._line = part.line
        self._before: tuple[steps.Transcript, steps.Step, str] | None = None
        self._typed: list[steps.UserInput] = []

    def _label(self, name: str) -> str:
        value = self._members[name].value() if name in self._members else None
        return str(value) if isinstance(value, bool | int | str) else ""

    def trace(self) -> Trace | None:
        """The trace; None where nothing ran."""
        labelled = self._label("mistake_step").strip()
        mistake = int(labelled) if labelled.isascii() and labelled.isdigit() and len(labelled) < 10 else -1
        history = list(self._members["history"].elements()) if "history" in self._members else []
        blamed = ""
        for number, part in enumerate(history):
            value, place = part.value(), steps.Place(self._file.name, part.line)
            self._report.records_read += 1
            if not isinstance(value, dict):
                self._report.drop(Drop.NO_OBJECT, place.file, place.line)
                continue
            name = self._take(value, float(number), place, is_mistake=number == mistake)
            blamed = name if number == mistake else blamed
        meant = _agent_of(masked(self._label("mistake_agent")))
        if meant and _same(meant) != _same(blamed):
            self._report.note(Problem.LABEL_OF_ANOTHER, f"{self._file.name}:{self._line}")
        if self._before is not None:
            self._before[0].is_root = True
        stem = os.path.splitext(os.path.basename(self._file.path_text))[0]
        name = self._label("question_ID") or masked_path(stem)
        trace = self._team.trace(name, form="who_and_when", unit=Unit.STEP)
        if trace is not None:
            outcome = (self._label("is_correct") or self._label("is_corrected")).lower()
            if outcome in ("true", "false"):
                trace.metrics["task_success"] = float(outcome == "true")
            if blamed:
                trace.metrics["mistake_step"] = float(mistake)
        return trace

    def _thread(self, name: str) -> steps.Transcript:
        if name not in self._threads:
            self._threads[name] = self._team.thread(name, key=name)
        return self._threads[name]

    def _take(self, value: dict[str, Any], time: float, place: steps.Place, *, is_mistake: bool) -> str:
        """A step of an agent or a person; who acted."""
        said = text_field(value, "name") or string(value.get("role"))
        purpose = _PURPOSE.search(said)
        name, ref = masked(_agent_of(said)) or "agent", self._privacy.reference(value.get("content"))
        if name in _PEOPLE:
            self._typed.append(steps.UserInput(time, place, ref=ref))
            self._before = None
            return name
        error = MISTAKE if is_mistake else ""
        if _same(name) in _TERMINALS and self._before is not None:
            self._run(name, time, place, error, ref)
            return name
        thread = self._thread(name)
        self._deliver(thread)
        call = steps.ModelCall(time, place, end=time, ref=ref, error=error)
        self._team.spend(call, (None,) * 5)
        thread.add(call)
        self._before = thread, call, masked(purpose[1]) if purpose and purpose[1] else ""
        return name

    def _run(self, terminal: str, time: float, place: steps.Place, error: str, ref: str) -> None:
        """A terminal is no model: what it prints is the result of a call by the agent that spoke before."""
        assert self._before is not None
        thread, step, _ = self._before
        answer = step if isinstance(step, steps.ModelCall) else None
        call = steps.ToolCall(step.time, step.place, call=answer, id=f"step-{time:.0f}", tool=terminal)
        thread.add(call)
        self._team.result(call, thread, time, place, error, ref)
        assert call.answer is not None
        call.answer.status = Status.ERROR if error else Status.UNKNOWN
        self._before = thread, call.answer, ""

    def _deliver(self, thread: steps.Transcript) -> None:
        """What an agent reads: what people wrote, and the last step of another, which may be meant for a third."""
        for typed in self._typed:
            thread.add(typed)
        self._typed = []
        if self._before is None or self._before[0] is thread:
            return
        sender, step, target = self._before
        answer = step if isinstance(step, steps.ModelCall) and target else None
        sent = steps.ToolCall(step.time, step.place, purpose=steps.MESSAGE, call=answer, target=thread.agent)
        sender.add(sent)
        thread.add(steps.Delivery(step.time, step.place, sent=sent))


def _agent_of(name: str) -> str:
    """The agent without what its step was for, such as `(thought)` or `(-> WebSurfer)`."""
    return _PURPOSE.sub("", name).strip()


def _same(name: str) -> str:
    """A name by which an agent is known again, whatever its capitals and blanks."""
    return name.casefold().replace(" ", "_")
