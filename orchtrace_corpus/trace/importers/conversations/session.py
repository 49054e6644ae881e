"""A session in the making: the transcripts of its agents, what they spent, which call has spawned whom.

The importers of programs that keep the messages of each agent apart fill one, in the order of their rows. When all is
read, results go to their calls, sub-agents to those who spawned them, and the whole becomes a trace.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.identity import Names
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.times import NO_TIME
from orchtrace_corpus.trace.importers.core.transcript import ModelCall
from orchtrace_corpus.trace.importers.core.transcript_events import add_events
from orchtrace_corpus.trace.importers.core.usage import Spent, Usage, counts, divided, has_odd
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.trace import Status, TokenBasis, Trace

ROOT = ""
"""The key of the agent that people talk to."""

_MAIN = "main"
_NOTIFIED = re.compile(r"<tool-use-id>([^<]{1,200})</tool-use-id>\s*<status>(\w{1,20})</status>")
_ENDS = {
    **dict.fromkeys(("error", "failed", "failure"), Status.ERROR),
    **dict.fromkeys(("completed", "success", "succeeded", "ok"), Status.OK),
}
_REPORTED, _CANCELLED = TokenBasis.REPORTED, Status.CANCELLED  # which Python 3.11 takes long to find


class Task(NamedTuple):
    """What a sub-agent was spawned to do, or is told later.

    Attributes:
        parent: The key of the agent that called.
        call: The id of the call; empty where the log does not say.
        place: Where the log says so.
        waits: Whether the result of the call is what the sub-agent gives back.
    """

    parent: str
    call: str
    place: steps.Place
    waits: bool


class _End(NamedTuple):
    child: str
    step: steps.Step
    status: Status
    error: str
    ref: str


class Session:
    """The agents of a session, each by the key that it has in the log.

    Attributes:
        id: What the session is called.
        version: The version of the program that wrote it.
        report: What becomes of the records of its log.
        spent: What of their usage is to be summed up in the report.
        privacy: How contents are referred to.
        threads: What each agent did.
        calls: The calls of each agent by their ids.

    Args:
        form: The format.
        privacy: How contents are referred to.
    """

    def __init__(self, form: str, privacy: Privacy) -> None:
        self.id = self.version = ""
        self.report, self._unused = ImportReport(), ImportReport()
        self.spent = Spent(self.report)
        self.threads: dict[str, steps.Transcript] = {}
        self.calls: dict[tuple[str, str], steps.ToolCall] = {}
        self._form, self.privacy = form, privacy
        self._results: dict[tuple[str, str], list[steps.ToolResult]] = {}
        self._tasks: dict[str, list[Task]] = {}
        self._called: dict[str, str] = {}
        self._asides: dict[str, steps.Transcript] = {}
        self._ends: list[_End] = []
        self._children: dict[tuple[str, str], str] = {}
        self._parents: dict[str, str] = {}
        self._covered: set[int] = set()
        self._zeros = self._odd = self._absent = self._without_input = 0

    def thread(self, key: str) -> steps.Transcript:
        """What an agent did; empty when it is first asked for."""
        found = self.threads.get(key)
        if found is None:
            found = self.threads[key] = steps.Transcript("", key, is_root=key == ROOT)
        return found

    def aside(self, key: str) -> steps.Transcript:
        """What the program let a model do beside the conversation of an agent, such as to find a title."""
        return self._asides.setdefault(key, steps.Transcript("", key, aside="side calls"))

    def name(self, key: str, name: str, role: str = "") -> None:
        """Say what a sub-agent is called, where that is not its key, and what it is for."""
        self._called[key] = self._called.get(key) or name
        thread = self.thread(key)
        thread.role = thread.role or masked(role)

    def spend(self, call: ModelCall, usage: Usage, line: LedgerLine = LedgerLine.OWN) -> Usage:
        """Count the usage of an answer, and return what of it is a number: input with caches, output with reasoning."""
        given = counts(usage)
        known, is_odd = usage if given is usage else Usage(*given), has_odd(usage, given)
        if is_odd:
            self.report.note(Problem.USAGE_NO_NUMBER, str(call.place))
        is_known = known.is_known
        if is_known and any(known):
            call.spent, call.basis = divided(known, self.report), _REPORTED
            self.spent.enter(line, call.spent)
        elif is_known:
            self.report.enter(LedgerLine.ZERO)
            self._zeros += 1
        elif is_odd:
            self.report.enter(LedgerLine.NO_NUMBER)
            self._odd += 1
        return known

    def spend_output(self, call: ModelCall, stated: Any) -> None:
        """Count the output of an answer, of which the log states nothing else; leave it out where that is counted."""
        usage = Usage(output=stated)
        if call.spent is not None or id(call) in self._covered:
            self.leave_out(LedgerLine.REPEATED_USAGE, usage)
            return
        if self.spend(call, usage, LedgerLine.OUTPUT_ALONE).output:
            self.report.enter(LedgerLine.NO_INPUT)
            self._without_input += 1

    def ask(self, thread: steps.Transcript, call: ModelCall, time: float, first: float = 0.0) -> None:
        """Note when a model was asked: not before what it was to read was there, whatever the log's lengths say.

        Args:
            thread: The transcript that has the answer.
            call: The answer.
            time: When its request is said to have gone out.
            first: How many seconds later the first token came; 0 where nobody says.
        """
        place = int(call.order)
        before = thread.steps[place - 1].last_time if place else time
        call.time = begin = max(min(max(time, before), call.end), 0.0)
        more = call.more = call.more or {}
        more["t_request"] = begin
        if first > 0:
            more["t_first_token"] = max(min(time + first, call.end), begin)

    def cover(self, calls: list[ModelCall]) -> None:
        """Say of answers without usage that it is counted with another."""
        self._covered.update(map(id, calls))
        if calls:
            self.report.enter(LedgerLine.COVERED, len(calls))

    def leave_out(self, line: LedgerLine, usage: Usage) -> None:
        """Note usage that is counted elsewhere."""
        self.spent.enter(line, divided(counts(usage), self._unused))

    def call(
        self, key: str, use: str, tool: str, time: float, place: steps.Place, given: Any, by: ModelCall | None
    ) -> steps.ToolCall:
        """Add a call of a tool by an agent; one that is written again is the same call.

        Args:
            key: The agent.
            use: The id of the call.
            tool: The tool.
            time: When it was called.
            place: Where the log says so.
            given: The arguments.
            by: The answer that asked for it.
        """
        found = self.calls.get((key, use)) if use else None
        if found is not None:
            self.report.note(Problem.CALL_WRITTEN_TWICE, str(place))
            return found
        ref = self.privacy.reference(given)
        found = steps.ToolCall(time, place, 0.0, steps.TOOL, by, masked(use), masked(tool), ref)
        if by is not None:
            by.final = False
        if use:
            self.calls[key, use] = found
        self.thread(key).add(found)
        return found

    def result(
        self, key: str, use: str, time: float, place: steps.Place, content: Any, status: Status, error: str = ""
    ) -> steps.ToolResult:
        """Add the result of a call, which may be read before the call is."""
        ref = self.privacy.reference(content)
        found = steps.ToolResult(time, place, 0.0, None, False, status, error, ref)
        self.thread(key).add(found)
        self._results.setdefault((key, use), []).append(found)
        return found

    def result_of(self, key: str, use: str) -> steps.ToolResult | None:
        """The first result of a call of an agent; None where there is none."""
        return next(iter(self._results.get((key, use), ())), None)

    def delegate(self, child: str, parent: str, use: str, place: steps.Place, *, waits: bool = True) -> None:
        """Say that an agent was spawned by a call of another, or, if it is known already, that it was told more.

        Args:
            child: The agent.
            parent: The agent that called.
            use: The id of the call; empty where the log does not say.
            place: Where the log says so.
            waits: Whether the result of the call is what the agent gives back.
        """
        if child != ROOT:
            self._children.setdefault((parent, use), child)
            self._tasks.setdefault(child, []).append(Task(parent, use, place, waits))

    def is_delegated(self, child: str) -> bool:
        """Whether anybody is known to have spawned an agent."""
        return child in self._tasks

    def waits_for(self, child: str) -> bool:
        """Whether the result of a call is what an agent gives back."""
        return any(task.waits for task in self._tasks.get(child, ()))

    def child_of(self, parent: str, use: str) -> str:
        """The agent that a call has spawned; empty where that is none."""
        return self._children.get((parent, use), "")

    def end(
        self, child: str, step: steps.Step, status: Status, content: Any = None, error: str = "agent_error"
    ) -> None:
        """Say that a sub-agent has told whoever spawned it, at a step of theirs, what came of its work."""
        ref = self.privacy.reference(content)
        self._ends.append(_End(child, step, status, error if status is Status.ERROR else "", ref))

    def trace(self) -> Trace:
        """The trace of all that was added.

        Raises:
            EmptyLogError: Nothing ran.
        """
        for thread in (*self.threads.values(), *self._asides.values()):
            lacking = [step for step in thread.steps if step.time == NO_TIME]
            if lacking:
                self.report.note(Problem.NO_ROW_TIME, str(lacking[0].place))
                thread.fill_times()
        self._join_results()
        self._adopt()
        for key, aside in self._asides.items():
            aside.agent, aside.parent = self.thread(key).agent, self.thread(key).parent
        threads = [thread for thread in (*self.threads.values(), *self._asides.values()) if thread.steps]
        self.spent.settle()
        steps.note_deciders(threads)
        steps.add_returns(list(self._returns()), threads)
        silent = [
            step
            for thread in threads
            for step in thread.steps
            if type(step) is ModelCall and step.spent is None and not step.error and id(step) not in self._covered
        ]
        without = len(silent) - self._zeros - self._odd
        for line, number in ((LedgerLine.NO_USAGE, without), (LedgerLine.NO_TRANSCRIPT, self._absent)):
            if number > 0:
                self.report.enter(line, number)
        name = masked(self.id) or "session"
        form, privacy, report = self._form, self.privacy, self.report
        builder = Builder(name, name, system=form, form=form, version=self.version, privacy=privacy, report=report)
        add_events(threads, builder)
        if not builder:
            raise EmptyLogError(f"no message of an agent in {name}")
        missing = {
            Missing.TRANSCRIPTS: self._absent,
            Missing.USAGE: max(without, 0) + self._zeros,
            Missing.NUMBERS: self._odd,
            Missing.INPUT: self._without_input,
        }
        return builder.trace(topology=steps.topology(threads), missing=missing)

    def _join_results(self) -> None:
        for called, results in self._results.items():
            call = self.calls.get(called)
            for number, found in enumerate(results):
                if call is None:
                    self.report.note(Problem.RESULT_WITHOUT_CALL, str(found.place))
                elif number:
                    found.is_repeated = True
                    self.report.note(Problem.SECOND_RESULT, str(found.place))
                else:
                    steps.answer(call, found)

    def _adopt(self) -> None:
        """Let sub-agents be spawned by the calls that the log names, or where they begin."""
        names = Names()
        names.new(steps.USER)
        for child in (*self._tasks, *self._asides):
            self.thread(child)
        for key, thread in self.threads.items():
            wanted = _MAIN if key == ROOT else masked(self._called.get(key) or key)
            thread.agent = names.new(wanted or "agent")
        for child, tasks in self._tasks.items():
            self._spawn(child, tasks)
        for key, thread in self.threads.items():
            if thread.steps and key != ROOT and not thread.parent:
                self.report.note(Problem.NO_SPAWN, str(thread.steps[0].place))

    def _spawn(self, child: str, tasks: list[Task]) -> None:
        thread = self.thread(child)
        for task in tasks:
            parent = self.threads.get(task.parent)
            if parent is None or not parent.steps:
                continue
            if self._is_above(child, task.parent):
                self.report.note(Problem.SPAWN_CYCLE, str(task.place))
                continue
            call, is_known = self.calls.get((task.parent, task.call)), child in self._parents
            if call is None or call.target:  # one that nobody noted, or that has spawned another, too
                begin = next(iter(thread.steps), call)
                if is_known or begin is None:
                    continue
                if call is None:
                    self.report.note(Problem.SPAWN_INFERRED, str(begin.place))
                by, tool = (call.call, call.tool) if call else (None, "")
                call = steps.ToolCall(begin.time, task.place, call=by, tool=tool, is_inferred=call is None)
                parent.add(call)
            call.purpose = steps.MESSAGE if is_known else steps.SPAWN
            call.target = thread.agent
            if not is_known:
                self._parents[child] = task.parent
                call.role, thread.parent = thread.role, parent.agent
                if not thread.steps:
                    self._absent += 1
                    self.report.note(Problem.NO_TRANSCRIPT, str(call.place))

    def _is_above(self, child: str, parent: str) -> bool:
        """Whether an agent is the other or above it, so that the other cannot have spawned it."""
        above: str | None = parent
        while above is not None and above != child:
            above = self._parents.get(above)
        return above == child

    def _returns(self) -> Iterator[tuple[steps.Transcript, steps.Return]]:
        """What comes back: what the log tells, else the results of the calls that waited."""
        told = {one.child for one in self._ends}
        for one in self._ends:
            if one.child in self._parents:
                child = self.threads[one.child].agent
                receiver = self.threads[self._parents[one.child]]
                yield receiver, steps.Return.at_step(one.step, child, one.status, one.error, one.ref)
        for key in self._parents:
            for task in self._tasks[key] if key not in told else ():
                call = self.calls.get((task.parent, task.call))
                if task.waits and call is not None and call.answer is not None:
                    found, child = call.answer, self.threads[key].agent
                    error = "agent_error" if found.status is Status.ERROR else ""
                    yield (
                        self.threads[task.parent],
                        steps.Return.at_step(found, child, found.status, found.error or error, found.ref),
                    )


def outcome(word: str) -> Status:
    """How something ended, by the word for it."""
    return _ENDS.get(word, _CANCELLED)


def ends(text: str) -> list[tuple[str, Status]]:
    """The calls of whose end a `<task-notification>` tells, each with how it ended."""
    return [(use, outcome(word)) for use, word in _NOTIFIED.findall(text)]
