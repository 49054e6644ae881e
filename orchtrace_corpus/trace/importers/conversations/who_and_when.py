"""Import Who&When: failed runs of teams, labelled with the agent and the step of the decisive mistake.

Zhang et al., 2025, "Which Agent Causes Task Failures and When?", arXiv 2505.00212. A record states no times, no usage
and no ids of calls. So the time of a step is its index. The title of a step, in `name` or else `role`, names the agent
and sometimes a purpose in parentheses, such as `Orchestrator (thought)`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.group_chat import GroupChat, Utterance
from orchtrace_corpus.trace.importers.core.json_parts import Part
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.run import Run, traces_of
from orchtrace_corpus.trace.importers.core.values import as_text, text_field
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, Problem
from orchtrace_corpus.trace.model.terms import Status, Unit
from orchtrace_corpus.trace.model.trace import Trace

_MEMBERS = ({"history", "mistake_agent", "mistake_step"}, {"history", "question_ID", "ground_truth"})
"""Members of which a record has one group; the labels of a record may come after a long history."""
_LONG_HISTORY = re.compile(r'\s*\[?\s*\{\s*"history"\s*:\s*\[\s*\{\s*"content"\s*:')
"""The beginning of a record whose labels follow a long history."""
_HUMAN_ROLE = '"role": "human"'
_TITLE_PURPOSE = re.compile(r"\s*\((?:-> ?([^()]{1,100})|[^()]{1,100})\)\s*$")
_PEOPLE = frozenset(("human", "user_proxy", "User"))
_TERMINALS = frozenset(("computer_terminal", "computerterminal"))
MISTAKE = "mistake"  # the error of a step that a label calls the decisive mistake


def recognises(beginning: logs.Head) -> bool:
    """Return True if a file that begins like this holds records of Who&When, by their labels."""
    text = beginning.text
    return beginning.has_any(_MEMBERS) or (_LONG_HISTORY.match(text) is not None and _HUMAN_ROLE in text)


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the traces of the records."""

    def trace(record: Part, file: logs.LogFile, report: ImportReport) -> Trace:
        return _Record(record, file, Run("who_and_when", privacy, report, are_peers=True)).trace()

    yield from traces_of(files, logs.documents, trace, "step")


class _Record:
    """A labelled run."""

    def __init__(self, record: Part, file: logs.LogFile, run: Run) -> None:
        self._file, self._line, self._members = file, record.line, record.members()
        self._run = run
        self._chat = GroupChat(run)

    def trace(self) -> Trace:
        """Return the trace; its metrics have the outcome and the index of the mistake."""
        label = self._label("mistake_step").strip()
        mistake_index: int | None = None
        if label.isascii() and label.isdigit() and len(label) < 10:
            mistake_index = int(label)
        history = self._members["history"].elements() if "history" in self._members else ()
        agent_of_mistake = ""
        for index, part in enumerate(history):
            message, place = part.value(), steps.Place(self._file.name, part.line)
            self._run.report.records_read += 1
            if type(message) is not dict:
                self._run.report.drop(Drop.NO_OBJECT, place.file, place.line)
                continue
            error = MISTAKE if index == mistake_index else ""
            agent = self._read_step(message, float(index), place, error)
            if error:
                agent_of_mistake = agent
        labelled_agent = _agent_of(masked(self._label("mistake_agent")))
        if labelled_agent and _normalized(labelled_agent) != _normalized(agent_of_mistake):
            self._run.report.note(Problem.LABEL_OF_ANOTHER, f"{self._file.name}:{self._line}")
        self._chat.end()
        self._run.name = self._label("question_ID") or self._file.stem
        trace = self._run.trace(unit=Unit.STEP)
        success = (self._label("is_correct") or self._label("is_corrected")).lower()
        if success in ("true", "false"):
            trace.metrics["task_success"] = float(success == "true")
        if agent_of_mistake and mistake_index is not None:
            trace.metrics["mistake_step"] = float(mistake_index)
        return trace

    def _label(self, name: str) -> str:
        """Return a label as a text; empty if there is none."""
        value = self._members[name].value() if name in self._members else None
        return str(value) if isinstance(value, bool | int | str) else ""

    def _read_step(self, message: dict[str, Any], time: float, place: steps.Place, error: str) -> str:
        """Read a step of an agent or a person, and return its name; `error` is `MISTAKE` or empty."""
        title = text_field(message, "name") or as_text(message.get("role"))
        name, ref = masked(_agent_of(title)) or "agent", self._run.privacy.reference(message.get("content"))
        if name in _PEOPLE:
            self._chat.hear(steps.UserInput(time, place, ref=ref))
        elif _normalized(name) in _TERMINALS and self._chat.last is not None:
            self._read_output(name, self._chat.last, time, place, error, message.get("content"))
        else:
            self._chat.deliver(name)
            answer = self._run.answer(name, time, place, error=error, ref=ref)
            purpose = _TITLE_PURPOSE.search(title)
            self._chat.last = Utterance(name, answer)
            if purpose is not None and purpose[1]:  # it names the next agent, as in `(-> WebSurfer)`
                self._chat.last = Utterance(name, answer, answer=answer)
        return name

    def _read_output(
        self, terminal: str, last: Utterance, time: float, place: steps.Place, error: str, content: Any
    ) -> None:
        """Read the output of a terminal as the result of a call by the last agent, since a terminal is no model."""
        call_id = f"step-{time:.0f}"
        call = self._run.call(last.agent, call_id, terminal, last.step.time, last.step.place, None, None)
        if isinstance(last.step, steps.ModelCall):
            call.model_call = last.step  # `last.step.final` remains True: the answer did not ask for the call
        status = Status.ERROR if error else Status.UNKNOWN
        result = self._run.result(last.agent, call_id, time, place, content, status, error)
        self._chat.last = Utterance(last.agent, result)


def _agent_of(title: str) -> str:
    """Return the agent without the purpose of its step, such as `(thought)` or `(-> WebSurfer)`."""
    return _TITLE_PURPOSE.sub("", title).strip()


def _normalized(name: str) -> str:
    """Return a name in the form in which names are compared: without capitals and blanks."""
    return name.casefold().replace(" ", "_")
