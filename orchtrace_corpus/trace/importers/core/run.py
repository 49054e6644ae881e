"""One run of a team of agents while its log is read.

An importer reads its rows into a `Run`, in the order of the log, and asks it for the trace. Agents are named by their
keys in the log, calls by their ids. A call, its result, the agent that it spawned and the rows of that agent may come
in any order: `Run.trace` joins results to calls, sub-agents to their parents and messages to their receivers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, TypeVar

from msgspec.structs import astuple

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.identity import UniqueNames
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.transcript import ModelCall, Place, Purpose, Step, ToolCall, Transcript
from orchtrace_corpus.trace.importers.core.transcript_events import add_events
from orchtrace_corpus.trace.importers.core.usage import Usage, counts, divided
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.terms import Status, TokenBasis, Topology, Unit
from orchtrace_corpus.trace.model.trace import Tokens, Trace

ROOT = ""
"""The key of the agent that people talk to, if the log has one."""

_MAIN = "main"
_Session = TypeVar("_Session")
_OWN, _REPORTED = LedgerLine.OWN, TokenBasis.REPORTED  # Python 3.11 is slow to look up a member
_OK, _ERROR = Status.OK, Status.ERROR


class Task(NamedTuple):
    """The task of a sub-agent, given with its spawn or later."""

    parent: str  # the key of the agent that called
    call: ToolCall | str  # the call, or its id; empty if the log does not say
    place: Place | None  # the place in the log; None for the place where the sub-agent begins
    waits: bool  # True if the result of the call is the sub-agent's result


class Run:
    """The agents of a run, by their keys in the log.

    Attributes:
        name: The name of the run.
        trace_id: The id of its trace, if not its name.
        system: The system that ran, if not named as the format of the log.
        version: The version of the program that wrote the log.
        report: The report of the import.
        privacy: How contents are referred to.
        agents: The transcript of each agent.
        calls: The calls of each agent, by its key and their ids.
        missing: The number of records without tokens, by what they are; importers add those that only they know.

    Args:
        form: The format of the log.
        privacy: How contents are referred to.
        report: A report that has been begun.
        are_peers: True if no agent has the key `ROOT`, and none needs to be spawned, as in a group chat.
    """

    def __init__(
        self, form: str, privacy: Privacy, report: ImportReport | None = None, *, are_peers: bool = False
    ) -> None:
        self.name = self.trace_id = self.system = self.version = ""
        self.report, self.privacy = report or ImportReport(), privacy
        self.agents: dict[str, Transcript] = {}
        self.calls: dict[tuple[str, str], ToolCall] = {}
        self.missing = dict.fromkeys((Missing.TRANSCRIPTS, Missing.USAGE, Missing.NUMBERS, Missing.INPUT), 0)
        self.masked = cache(masked)  # for the few names of models and tools
        self._form, self._are_peers = form, are_peers
        self._spent, self._unused = dict[LedgerLine, list[Tokens]](), ImportReport()
        self._called: dict[str, str] = {}
        self._asides: dict[tuple[str, str], Transcript] = {}
        self._results: list[tuple[str, str, steps.ToolResult]] = []
        self._first_results, self._indexed = dict[tuple[str, str], steps.ToolResult](), 0
        self._settled: list[tuple[str, str, str, Status]] = []
        self._tasks: dict[str, list[Task]] = {}
        self._children: dict[tuple[str, str], str] = {}
        self._parents: dict[str, str] = {}
        self._cut: set[tuple[str, str]] = set()  # children with parents that would be below them
        self._addressed: list[tuple[ToolCall, Transcript]] = []
        self._returned: list[tuple[str, steps.Return, str | None]] = []
        self._sent: dict[tuple[str, int], list[ToolCall]] = {}
        self._arrivals: list[tuple[steps.Delivery, str, str, int | None]] = []
        self._explained: set[int] = set()  # answers whose usage is 0 or no number, by `id`
        self._covered: set[int] = set()  # answers whose usage is counted with another, by `id`

    def agent(self, key: str, name: str = "", role: str = "") -> Transcript:
        """Return the transcript of an agent, to which steps are added; a new one for a new key.

        Args:
            key: Its key in the log.
            name: Its name, if not its key; the first name counts.
            role: Its role; the first role counts.
        """
        transcript = self.agents.get(key)
        if transcript is None:
            transcript = self.agents[key] = Transcript("", key, is_root=key == ROOT and not self._are_peers)
        if name and not self._called.get(key):
            self._called[key] = name
        if role and not transcript.role:
            transcript.role = masked(role)
        return transcript

    def aside(self, key: str, what: str = "side calls", file: str = "") -> Transcript:
        """Return the transcript of model calls outside an agent's conversation, such as to find a title.

        Args:
            key: The agent.
            what: The purpose of the calls.
            file: The key of the transcript in the log, if it has its own.
        """
        return self._asides.setdefault((key, file), Transcript("", file or key, aside=what))

    def answer(
        self, key: str, time: float, place: Place, model: str = "", *, error: str = "", ref: str = ""
    ) -> ModelCall:
        """Add an answer of a model to an agent's transcript, and return it, to which further fields are added."""
        call = ModelCall(time, place, end=time, model=model, error=error, ref=ref)
        (self.agents.get(key) or self.agent(key)).add(call)
        return call

    def prompt(
        self, key: str, time: float, place: Place, content: Any, *, waited: bool = True, is_command: bool = False
    ) -> None:
        """Add the input of a person to an agent."""
        ref = self.privacy.reference(content)
        self.agent(key).add(steps.UserInput(time, place, ref=ref, waited=waited, is_command=is_command))

    def interrupt(self, key: str, time: float, place: Place) -> None:
        """Add that a person interrupted an agent."""
        self.agent(key).add(steps.UserInput(time, place, waited=False, status=Status.CANCELLED))

    def note(self, key: str, time: float, place: Place) -> steps.Note:
        """Add another text that an agent was given to read."""
        note = steps.Note(time, place)
        self.agent(key).add(note)
        return note

    def call(
        self, key: str, call_id: str, tool: str, time: float, place: Place, arguments: Any, answer: ModelCall | None
    ) -> ToolCall:
        """Add a call of a tool by an agent; a second one with the same id is the same call.

        Args:
            key: The agent.
            call_id: The id of the call; empty if it has none.
            tool: The tool.
            time: The time of the call.
            place: The place in the log.
            arguments: The arguments of the call.
            answer: The answer that asked for it.
        """
        known = key, call_id
        if call_id and known in self.calls:
            self.report.note(Problem.CALL_WRITTEN_TWICE, str(place))
            return self.calls[known]
        ref = self.privacy.reference(arguments)
        call = ToolCall(time, place, 0.0, steps.TOOL, answer, masked(call_id), self.masked(tool), ref)
        if answer is not None:
            answer.final = False
        if call_id:
            self.calls[known] = call
        (self.agents.get(key) or self.agent(key)).add(call)
        return call

    def result(
        self,
        key: str,
        call_id: str,
        time: float,
        place: Place,
        content: Any,
        status: Status | None = None,
        error: str = "",
    ) -> steps.ToolResult:
        """Add the result of a call, which may be read before the call; with an error, its status is an error."""
        if status is None:
            status = _ERROR if error else _OK
        result = steps.ToolResult(time, place, 0.0, None, False, status, error, self.privacy.reference(content))
        (self.agents.get(key) or self.agent(key)).add(result)
        self._results.append((key, call_id, result))
        return result

    def result_of(self, key: str, call_id: str) -> steps.ToolResult | None:
        """Return the first result of a call of an agent; None if it has none so far."""
        for agent, other_id, result in self._results[self._indexed :]:
            self._first_results.setdefault((agent, other_id), result)
        self._indexed = len(self._results)
        return self._first_results.get((key, call_id))

    def settle(self, key: str, call_id: str, error: str, status: Status = _ERROR) -> None:
        """Set how a call ended, for a log that says so outside the result, which may be read later."""
        self._settled.append((key, call_id, error, status))

    def address(self, call: ToolCall, receiver: str, purpose: Purpose = steps.MESSAGE, text: int | None = None) -> None:
        """Note that a call is about another agent: a message to it, a wait for it, or its end.

        Args:
            call: The call.
            receiver: The agent.
            purpose: The purpose of the call.
            text: The `mark` of a message, for `receive`.
        """
        call.purpose = purpose
        self._addressed.append((call, self.agent(receiver)))
        if text is not None:
            self._sent.setdefault((receiver, text), []).append(call)

    def message(
        self, sender: str, receiver: str, time: float, place: Place, ref: str = "", answer: ModelCall | None = None
    ) -> None:
        """Add a message from one agent to another that is sent without a call of a tool."""
        reader, sent = self.agent(receiver), ToolCall(time, place, 0.0, steps.MESSAGE, answer, "", "", ref)
        self._addressed.append((sent, reader))
        self.agent(sender).add(sent)
        reader.add(steps.Delivery(time, place, 0.0, "", "", sent))

    def spawn(
        self, child: str, parent: str, call: ToolCall | str = "", place: Place | None = None, *, waits: bool = True
    ) -> None:
        """Note that a call of an agent spawned another; for one that is spawned already, the call is a message to it.

        Without a call, the spawn is inferred from the child's first step. A spawn that would make an agent its own
        ancestor is left out.

        Args:
            child: The agent.
            parent: The agent that called.
            call: The call, or its id, which may be read later; empty if the log does not say.
            place: The place in the log; None for that of the child's first step.
            waits: True if the result of the call is the child's result.
        """
        if child != ROOT or self._are_peers:
            self._children.setdefault((parent, call if isinstance(call, str) else call.id), child)
            self._tasks.setdefault(child, []).append(Task(parent, call, place, waits))

    def skip(self, kind: str, *, is_known: bool) -> None:
        """Count a row that says nothing about agents, calls or tokens, as far as its kind is known."""
        if is_known:
            self.report.skip(masked(kind))
        else:
            self.report.note_unknown(masked(kind) or "(no type)")

    def end_in_background(self, child: str, receiver: str, time: float, place: Place, status: Status) -> None:
        """Say that a sub-agent has ended, of which its parent is told only if no call of it waited."""
        if child and not self.waits_for(child):
            self.returned(child, self.note(receiver, time, place), status)

    def is_spawned(self, child: str) -> bool:
        """Return True if a spawn of an agent is noted."""
        return child in self._tasks

    def waits_for(self, child: str) -> bool:
        """Return True if the result of a call is an agent's result."""
        return any(task.waits for task in self._tasks.get(child, ()))

    def child_of(self, parent: str, call_id: str) -> str:
        """Return the agent that a call spawned; empty if it spawned none."""
        return self._children.get((parent, call_id), "")

    def returned(
        self,
        child: str,
        step: Step,
        status: Status = _OK,
        ref: str = "",
        error: str = "agent_error",
        receiver: str | None = None,
        *,
        is_inferred: bool = False,
    ) -> None:
        """Note that a sub-agent's result arrived at a step of its parent, in place of the results of its calls.

        Args:
            child: The sub-agent.
            step: The step at which its result arrived.
            status: How it ended.
            ref: The reference to its result.
            error: The kind of error, for a status of error.
            receiver: The agent of the step, if not the parent.
            is_inferred: True if the log does not say so.
        """
        behind, error = step.order + 0.5, error if status is _ERROR else ""
        done = steps.Return(step.time, step.place, behind, "", status, error, ref, is_inferred)
        self._returned.append((child, done, receiver))

    def receive(self, receiver: str, delivery: steps.Delivery, sender: str, text: int | None = None) -> None:
        """Note that a message has arrived: the first with this text sent to the receiver, else one of `sender`.

        Args:
            receiver: The agent.
            delivery: The step at which it arrives.
            sender: The agent that wrote it; empty if the log does not say.
            text: Its `mark`; None if no call has sent it.
        """
        if sender:
            self.agent(sender)  # one that the log does not know otherwise has a name, too
        self._arrivals.append((delivery, receiver, sender, text))

    def spend(
        self,
        call: ModelCall,
        stated: tuple[Any, ...],
        line: LedgerLine = _OWN,
        *,
        caches_apart: bool = False,
        reasoning_apart: bool = False,
    ) -> tuple[int | None, ...]:
        """Count the tokens of an answer as the log states them; return the same with None for values that are no count.

        Args:
            call: The answer.
            stated: Input, output, cache reads, cache writes, reasoning; None for a count that is not stated.
            line: The line of the ledger.
            caches_apart: True if the input excludes the tokens from and to caches.
            reasoning_apart: True if the output excludes reasoning.
        """
        known = counts(stated)
        if known is not stated:
            is_odd = (count is None and value is not None for count, value in zip(known, stated, strict=True))
            if any(is_odd):
                self.report.note(Problem.USAGE_NO_NUMBER, str(call.place))
                self.miss_number(call)
        if known[0] is not None or known[1] is not None:
            if any(known):
                call.spent, call.basis = divided(known, self.report, caches_apart, reasoning_apart), _REPORTED
                self._enter(line, call.spent)
            elif id(call) not in self._explained:
                self.miss_zero(call)
        return known

    def _enter(self, line: LedgerLine, tokens: Tokens) -> None:
        """Enter a usage record on a line of the ledger, whose place is that of its first record."""
        if line not in self._spent:
            self.report.enter(line, 0)
            self._spent[line] = []
        self._spent[line].append(tokens)

    def miss_number(self, call: ModelCall | None) -> None:
        """Note that the stated tokens of an answer are no number; None for an answer without a row."""
        self.report.enter(LedgerLine.NO_NUMBER)
        self.missing[Missing.NUMBERS] += 1
        if call is not None:
            self._explained.add(id(call))

    def miss_zero(self, call: ModelCall) -> None:
        """Note that the tokens of an answer are stated as 0, which cannot be true."""
        self.report.enter(LedgerLine.ZERO)
        self.missing[Missing.USAGE] += 1
        self._explained.add(id(call))

    def spend_counts(self, usage: Usage, line: LedgerLine) -> Tokens:
        """Count and return the tokens of a usage that belongs to no step, such as that of a span."""
        tokens = divided(usage, self.report)
        self._enter(line, tokens)
        return tokens

    def count(self, call: ModelCall, tokens: Tokens, line: LedgerLine) -> None:
        """Count tokens of an answer that the importer computed, with the basis that the answer has."""
        call.spent = tokens
        self._enter(line, tokens)

    def spend_output(self, call: ModelCall, stated: Any) -> None:
        """Count the output of an answer if the log states nothing else of it; note it if more is counted already."""
        usage = (None, stated, None, None, None)
        if call.spent is not None or id(call) in self._covered:
            self.leave_out(LedgerLine.REPEATED_USAGE, usage)
        elif self.spend(call, usage, LedgerLine.OUTPUT_ALONE)[1]:
            self.report.enter(LedgerLine.NO_INPUT)
            self.missing[Missing.INPUT] += 1

    def restate(self, line: LedgerLine, call: ModelCall) -> None:
        """Note that the log states the usage of an answer again."""
        self._enter(line, call.spent or Tokens())

    def leave_out(
        self, line: LedgerLine, stated: tuple[Any, ...], *, caches_apart: bool = False, reasoning_apart: bool = False
    ) -> None:
        """Note a usage that is counted elsewhere; the parameters are those of `spend`."""
        self._enter(line, divided(counts(stated), self._unused, caches_apart, reasoning_apart))

    def cover(self, calls: Iterable[ModelCall]) -> None:
        """Note that the usage of answers is counted with that of another answer."""
        before = len(self._covered)
        self._covered.update(map(id, calls))
        if len(self._covered) > before:
            self.report.enter(LedgerLine.COVERED, len(self._covered) - before)

    def trace(
        self,
        *,
        topology: Topology = Topology.UNKNOWN,
        unit: Unit = Unit.SECOND,
        unread: int | None = None,
        nothing: str = "",
    ) -> Trace:
        """Return the trace of all that was added.

        Args:
            topology: How the agents are arranged, if no spawn says so.
            unit: `STEP` if the log has no times, and the times of the steps are their positions.
            unread: The number of unreadable lines that may have been of this run; None for those of the report.
            nothing: The message of the error if nothing ran.

        Raises:
            EmptyLogError: Nothing ran.
        """
        acting = self._link()
        if acting:
            add_events(acting, self.builder)
        name = masked(self.name) or "session"
        if not self.builder.events:
            raise EmptyLogError(nothing or f"no message of an agent in {name}")
        arranged = steps.topology({transcript.agent: transcript.parent for transcript in acting if transcript.parent})
        if arranged is Topology.UNKNOWN:
            arranged = topology
        names = masked(self.trace_id) or name, name, masked(self.system) or self._form
        return self.builder.trace(*names, topology=arranged, missing=self.missing, unread=unread, unit=unit)

    @cached_property
    def builder(self) -> Builder:
        """Return the writer of events, made on first use with the version known then; span formats use it directly."""
        return Builder(self._form, masked(self.version), self.report)

    def _link(self) -> list[Transcript]:
        """Return the transcripts that have steps, linked to one another."""
        transcripts = [*self.agents.values(), *self._asides.values()]
        for transcript in transcripts:
            undated = transcript.fill_times()
            if undated is not None:
                self.report.note(Problem.NO_ROW_TIME, str(undated.place))
        for key, call_id, error, status in self._settled:
            settled = self.result_of(key, call_id)
            if settled is not None:
                settled.status, settled.error = status, error
        calls, report = self.calls, self.report
        for key, call_id, result in self._results:
            steps.join(calls.get((key, call_id)), result, report)
        for key in (*self._tasks, *(key for key, _ in self._asides)):
            self.agent(key)  # an agent without rows has a name, too
        names = UniqueNames()
        names.add(steps.USER)
        for key, transcript in self.agents.items():  # of equal names, later ones get a number
            wanted = _MAIN if transcript.is_root and key == ROOT else masked(self._called.get(key) or key)
            transcript.agent = names.add(wanted or "agent")
        for child, tasks in self._tasks.items():
            for task in tasks:
                self._assign(child, task)
        for (key, _), aside in self._asides.items():
            aside.agent, aside.parent = self.agents[key].agent, self.agents[key].parent
        for transcript in () if self._are_peers else self.agents.values():
            if transcript.steps and not (transcript.is_root or transcript.parent or transcript.is_warm_up):
                self.report.note(Problem.NO_SPAWN, str(transcript.steps[0].place))
        for call, receiver in self._addressed:
            call.target = receiver.agent
        for sent in self._sent.values():
            sent.sort(key=attrgetter("time"))
        for delivery, reader, sender, text in self._arrivals:
            sent = self._sent.get((reader, text), []) if text is not None else []
            if sent and sent[0].time <= delivery.time:
                delivery.sent = sent.pop(0)
            elif sender and sender != reader:
                delivery.sender = self.agents[sender].agent
        acting = [transcript for transcript in transcripts if transcript.steps]
        for line, spent in self._spent.items():  # kinds in the order of their first count
            columns = zip(Tokens.__struct_fields__, zip(*map(astuple, spent), strict=True), strict=True)
            counted = [(kind, numbers) for kind, numbers in columns if numbers.count(None) < len(numbers)]
            counted.sort(key=lambda column: next(at for at, count in enumerate(column[1]) if count is not None))
            self.report.enter_all(line, {kind: sum(filter(None, numbers)) for kind, numbers in counted}, len(spent))
        self._count_silent(acting)
        steps.add_returns(list(self._returns()), acting)
        return acting

    def _assign(self, child: str, task: Task) -> None:
        """Make a call the spawn of an agent, or a message to one that is spawned already."""
        transcript, parent = self.agents[child], self.agents.get(task.parent)
        if parent is None or not parent.steps:
            return
        above: str | None = task.parent
        while above is not None and above != child:
            above = self._parents.get(above)
        if above is not None:  # it is itself below the child, so it cannot have spawned it
            begin = min(transcript.steps, key=lambda step: step.at, default=None)
            self.report.note(Problem.SPAWN_CYCLE, str(task.place or (begin.place if begin is not None else "")))
            self._cut.add((child, task.parent))
            if isinstance(task.call, ToolCall):
                task.call.purpose = steps.TOOL
            return
        call = self.calls.get((task.parent, task.call)) if isinstance(task.call, str) else task.call
        is_known = child in self._parents
        if call is None or call.target:  # a call that is not in the log, or that has spawned another agent, too
            begin = min(transcript.steps, key=lambda step: step.at, default=call)
            if is_known or begin is None:
                return
            if call is None:
                self.report.note(Problem.SPAWN_INFERRED, str(begin.place))
                call = ToolCall(begin.time, task.place or begin.place, is_inferred=True)
            else:
                call = ToolCall(begin.time, task.place or begin.place, call=call.call, tool=call.tool)
            parent.add(call)
        call.purpose = steps.MESSAGE if is_known else steps.SPAWN
        call.target = transcript.agent
        if not is_known:
            self._parents[child] = task.parent
            call.role, transcript.parent, transcript.is_root = transcript.role, parent.agent, False
            if not transcript.steps and transcript.kind is not steps.SCRIPT:
                self.missing[Missing.TRANSCRIPTS] += 1
                self.report.note(Problem.NO_TRANSCRIPT, str(call.place))

    def _returns(self) -> Iterator[tuple[Transcript, steps.Return]]:
        """Yield the returns of sub-agents: those that the log records, else the results of the calls that waited."""
        recorded = {child for child, _, _ in self._returned}
        for child, done, receiver in self._returned:
            receiver = self._parents.get(child) if receiver is None else receiver
            if receiver is not None and (child, receiver) not in self._cut:
                done.child = self.agents[child].agent
                yield self.agents[receiver], done
        for child in self._parents:
            for task in self._tasks[child] if child not in recorded else ():
                call = task.call if isinstance(task.call, ToolCall) else self.calls.get((task.parent, task.call))
                result = call.answer if call is not None and task.waits else None
                if result is not None:
                    error = result.error or ("agent_error" if result.status is _ERROR else "")
                    name, behind = self.agents[child].agent, result.order + 0.5
                    done = steps.Return(result.time, result.place, behind, name, result.status, error, result.ref)
                    yield self.agents[task.parent], done

    def _count_silent(self, acting: Sequence[Transcript]) -> None:
        """Enter in the ledger the answers without usage, if they were not refused, and the missing transcripts."""
        known = self._explained | self._covered
        silent = 0
        for transcript in acting:
            for step in transcript.steps:
                if type(step) is ModelCall and step.spent is None and id(step) not in known:
                    silent += not (step.error and step.final and not step.ref)
        self.missing[Missing.USAGE] += silent
        if silent:
            self.report.enter(LedgerLine.NO_USAGE, silent)
        if self.missing[Missing.TRANSCRIPTS]:
            self.report.enter(LedgerLine.NO_TRANSCRIPT, self.missing[Missing.TRANSCRIPTS])


def traces_of(
    files: Sequence[LogFile],
    sessions: Callable[[LogFile, ImportReport], Iterable[_Session]],
    trace: Callable[[_Session, LogFile, ImportReport], Trace],
    what: str,
) -> Iterator[Trace]:
    """Yield the traces of files that may hold several sessions, each with a report of its own.

    `sessions` returns the sessions of a file, `trace` makes the trace of one; if none has any `what`, such as `event`,
    EmptyLogError is raised.
    """
    is_empty, report = True, ImportReport()
    for file in files:
        for session in sessions(file, report):
            with suppress(EmptyLogError):
                yield trace(session, file, report)
                is_empty, report = False, ImportReport()
    if is_empty:
        raise EmptyLogError(f"no {what} of an agent in {', '.join(file.name for file in files[:3])}")
