"""One run of a team of agents while its log is read: what each agent did and spent, who spawned whom, what came back.

An importer reads its rows into a `Run`, in the order of the log, and asks it for the trace. Agents go by the keys that
they have in the log, and calls by their ids. A call, its result, the agent that it spawned and the rows of that agent
may come in any order: when all is read, results go to their calls, sub-agents to those who spawned them, messages to
their receivers, and the whole becomes a trace.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import Any, TypeVar

from msgspec.structs import astuple

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.identity import Names
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.transcript import ModelCall, Place, Purpose, Step, ToolCall, Transcript
from orchtrace_corpus.trace.importers.core.transcript_events import add_events
from orchtrace_corpus.trace.importers.core.usage import Usage, counts, divided, has_odd
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.terms import Status, TokenBasis, Topology, Unit
from orchtrace_corpus.trace.model.trace import Tokens, Trace

ROOT = ""
"""The key of the agent that people talk to, where the log has one."""

_MAIN = "main"
_Session = TypeVar("_Session")
_OWN, _REPORTED, _OK, _ERROR = LedgerLine.OWN, TokenBasis.REPORTED, Status.OK, Status.ERROR  # soonest found so


class Task(NamedTuple):
    """The task of a sub-agent, given with its spawn or later."""

    parent: str  # the key of the agent that called
    call: ToolCall | str  # the call, or its id; empty where the log does not say
    place: Place | None  # where the log says so; None for where the sub-agent begins
    waits: bool  # whether the result of the call is what the sub-agent gives back


class Run:
    """The agents of a run, each by the key that it has in the log.

    Attributes:
        name: What the run is called.
        trace_id: What its trace is called, if not as the run.
        system: What ran, if that is not called as the format of its log.
        version: The version of the program that wrote the log.
        report: What becomes of the records of the log.
        privacy: How contents are referred to.
        agents: What each agent did.
        calls: The calls of each agent, by its key and their ids.
        missing: How many records lack their tokens, for what the run cannot see by itself.

    Args:
        form: The format of the log.
        privacy: How contents are referred to.
        report: A report that has been begun.
        are_peers: Whether no agent is known by `ROOT`, and none needs to be spawned, as in a group chat.
    """

    def __init__(
        self, form: str, privacy: Privacy, report: ImportReport | None = None, *, are_peers: bool = False
    ) -> None:
        self.name = self.trace_id = self.system = self.version = ""
        self.report, self.privacy = report or ImportReport(), privacy
        self.agents: dict[str, Transcript] = {}
        self.calls: dict[tuple[str, str], ToolCall] = {}
        self.missing = dict.fromkeys((Missing.TRANSCRIPTS, Missing.USAGE, Missing.NUMBERS, Missing.INPUT), 0)
        self.masked = cache(masked)  # of models and tools there are few, which are met again and again
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
        self._senders: list[tuple[steps.Delivery, Transcript]] = []
        self._explained: set[int] = set()  # answers whose usage is 0 or no number, by `id`
        self._covered: set[int] = set()  # answers whose usage is counted with another, by `id`

    def agent(self, key: str, name: str = "", role: str = "") -> Transcript:
        """Return what an agent did, to which steps are added; empty when it is first asked for.

        Args:
            key: Its key in the log.
            name: What it is called, where that is not its key; the first name counts.
            role: What it is for; the first role counts.
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
        """Return what a program let a model do beside the conversation of an agent, such as to find a title.

        Args:
            key: The agent.
            what: What is done.
            file: The key of the transcript in the log, where it has one of its own.
        """
        return self._asides.setdefault((key, file), Transcript("", file or key, aside=what))

    def answer(
        self, key: str, time: float, place: Place, model: str = "", *, error: str = "", ref: str = ""
    ) -> ModelCall:
        """Add an answer of a model to what an agent did; more may be said of it."""
        call = ModelCall(time, place, end=time, model=model, error=error, ref=ref)
        (self.agents.get(key) or self.agent(key)).add(call)
        return call

    def prompt(
        self, key: str, time: float, place: Place, content: Any, *, waited: bool = True, is_command: bool = False
    ) -> None:
        """Add what a person typed for an agent."""
        ref = self.privacy.reference(content)
        self.agent(key).add(steps.UserInput(time, place, ref=ref, waited=waited, is_command=is_command))

    def interrupt(self, key: str, time: float, place: Place) -> None:
        """Add that a person broke off what an agent did."""
        self.agent(key).add(steps.UserInput(time, place, waited=False, status=Status.CANCELLED))

    def note(self, key: str, time: float, place: Place) -> steps.Note:
        """Add that an agent was given something else to read."""
        note = steps.Note(time, place)
        self.agent(key).add(note)
        return note

    def call(
        self, key: str, call_id: str, tool: str, time: float, place: Place, arguments: Any, answer: ModelCall | None
    ) -> ToolCall:
        """Add a call of a tool by an agent; one that is written again is the same call.

        Args:
            key: The agent.
            call_id: The id of the call; empty where it has none.
            tool: The tool.
            time: When it was called.
            place: Where the log says so.
            arguments: What it was given.
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
        """Add the result of a call, which may be read before the call is; with an error, it has failed."""
        if status is None:
            status = _ERROR if error else _OK
        result = steps.ToolResult(time, place, 0.0, None, False, status, error, self.privacy.reference(content))
        (self.agents.get(key) or self.agent(key)).add(result)
        self._results.append((key, call_id, result))
        return result

    def result_of(self, key: str, call_id: str) -> steps.ToolResult | None:
        """Return the first result of a call of an agent; None where there is none."""
        for agent, other_id, result in self._results[self._indexed :]:
            self._first_results.setdefault((agent, other_id), result)
        self._indexed = len(self._results)
        return self._first_results.get((key, call_id))

    def settle(self, key: str, call_id: str, error: str, status: Status = _ERROR) -> None:
        """Say how a call of an agent ended, where the log says so apart from its result, which may be read later."""
        self._settled.append((key, call_id, error, status))

    def address(self, call: ToolCall, receiver: str, purpose: Purpose = steps.MESSAGE) -> None:
        """Say that a call is about another agent: a message to it, a wait for it, or its end."""
        call.purpose = purpose
        self._addressed.append((call, self.agent(receiver)))

    def message(
        self, sender: str, receiver: str, time: float, place: Place, ref: str = "", answer: ModelCall | None = None
    ) -> None:
        """Add a message that an agent sends without a call of a tool, and that another receives."""
        reader, sent = self.agent(receiver), ToolCall(time, place, 0.0, steps.MESSAGE, answer, "", "", ref)
        self._addressed.append((sent, reader))
        self.agent(sender).add(sent)
        reader.add(steps.Delivery(time, place, 0.0, "", "", sent))

    def spawn(
        self, child: str, parent: str, call: ToolCall | str = "", place: Place | None = None, *, waits: bool = True
    ) -> None:
        """Say that an agent was spawned by a call of another, or, if it is known already, that it was told more.

        Without a call, the spawn is concluded from where the child begins. A spawn by which an agent would be above
        itself is left out.

        Args:
            child: The agent.
            parent: The agent that called.
            call: The call, or its id, which may be read later; empty where the log does not say.
            place: Where the log says so; None for where the child begins.
            waits: Whether the result of the call is what the agent gives back.
        """
        if child != ROOT or self._are_peers:
            self._children.setdefault((parent, call if isinstance(call, str) else call.id), child)
            self._tasks.setdefault(child, []).append(Task(parent, call, place, waits))

    def skip(self, kind: str, *, is_known: bool) -> None:
        """Count a row that says nothing about agents, calls or tokens, as far as its kind is known."""
        if is_known:
            self.report.pass_over(masked(kind))
        else:
            self.report.note_unknown(masked(kind) or "(no type)")

    def end_in_background(self, child: str, receiver: str, time: float, place: Place, status: Status) -> None:
        """Say that a sub-agent has ended, of which its parent is told only if no call of it waited."""
        if child and not self.waits_for(child):
            self.returned(child, self.note(receiver, time, place), status)

    def is_spawned(self, child: str) -> bool:
        """Return True if anybody is known to have spawned an agent."""
        return child in self._tasks

    def waits_for(self, child: str) -> bool:
        """Return True if the result of a call is what an agent gives back."""
        return any(task.waits for task in self._tasks.get(child, ()))

    def child_of(self, parent: str, call_id: str) -> str:
        """Return the agent that a call has spawned; empty where that is none."""
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
        """Say that a sub-agent has told whoever spawned it, at a step of theirs, what came of its work.

        This goes before the results of the calls that spawned it.

        Args:
            child: The sub-agent.
            step: The step at which its result arrived.
            status: How it ended.
            ref: What refers to its result.
            error: What went wrong, if `status` says so.
            receiver: Whose step it is; None for that of the agent that spawned it.
            is_inferred: Whether the log does not say so.
        """
        done = steps.Return.at_step(step, "", status, error if status is _ERROR else "", ref)
        done.is_inferred = is_inferred
        self._returned.append((child, done, receiver))

    def sent_by(self, delivery: steps.Delivery, sender: str) -> None:
        """Say who sent a message that arrives, where the log has no call that did."""
        self._senders.append((delivery, self.agent(sender)))

    def spend(
        self,
        call: ModelCall,
        stated: tuple[Any, ...],
        line: LedgerLine = _OWN,
        *,
        caches_apart: bool = False,
        reasoning_apart: bool = False,
    ) -> tuple[int | None, ...]:
        """Count what an answer spent, as the log states it.

        Args:
            call: The answer.
            stated: Input, output, cache reads, cache writes, reasoning; None for what is not stated.
            line: The line of the ledger.
            caches_apart: Whether the input is stated without what came from and went to caches.
            reasoning_apart: Whether the output is stated without reasoning.

        Returns:
            The same with None for what is no count.
        """
        known = counts(stated)
        if known is not stated and has_odd(stated, known):
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
        """Enter a usage record on a line, whose place in the ledger is that of the first."""
        if line not in self._spent:
            self.report.enter(line, 0)
            self._spent[line] = []
        self._spent[line].append(tokens)

    def miss_number(self, call: ModelCall | None) -> None:
        """Say that something is stated for the tokens of an answer that is no number; None for one without a row."""
        self.report.enter(LedgerLine.NO_NUMBER)
        self.missing[Missing.NUMBERS] += 1
        if call is not None:
            self._explained.add(id(call))

    def miss_zero(self, call: ModelCall) -> None:
        """Say that the tokens of an answer are stated as 0, which no answer takes."""
        self.report.enter(LedgerLine.ZERO)
        self.missing[Missing.USAGE] += 1
        self._explained.add(id(call))

    def spend_counts(self, usage: Usage, line: LedgerLine) -> Tokens:
        """Count what was spent by no answer that is a step, such as by a span, and return it."""
        tokens = divided(usage, self.report)
        self._enter(line, tokens)
        return tokens

    def count(self, call: ModelCall, tokens: Tokens, line: LedgerLine) -> None:
        """Count what an answer spent, for formats that find that out themselves, with the basis that the answer has."""
        call.spent = tokens
        self._enter(line, tokens)

    def spend_output(self, call: ModelCall, stated: Any) -> None:
        """Count the output of an answer, of which the log states nothing else; leave it out where that is counted."""
        usage = (None, stated, None, None, None)
        if call.spent is not None or id(call) in self._covered:
            self.leave_out(LedgerLine.REPEATED_USAGE, usage)
        elif self.spend(call, usage, LedgerLine.OUTPUT_ALONE)[1]:
            self.report.enter(LedgerLine.NO_INPUT)
            self.missing[Missing.INPUT] += 1

    def restate(self, line: LedgerLine, call: ModelCall) -> None:
        """Note that the log states the usage of an answer again, which is counted."""
        self._enter(line, call.spent or Tokens())

    def leave_out(
        self, line: LedgerLine, stated: tuple[Any, ...], *, caches_apart: bool = False, reasoning_apart: bool = False
    ) -> None:
        """Note usage that is counted elsewhere, stated as for `spend`."""
        self._enter(line, divided(counts(stated), self._unused, caches_apart, reasoning_apart))

    def cover(self, calls: Iterable[ModelCall]) -> None:
        """Say of answers without usage that it is counted with another."""
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
            unit: `STEP` where the log has no times, and those of the steps only count.
            unread: How many lines could not be read, of which nobody knows what they say; None for all.
            nothing: The message of the error if nothing ran, where the run has no name to be known by.

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
        return self.builder.trace(
            masked(self.trace_id) or name,
            name,
            masked(self.system) or self._form,
            topology=arranged,
            missing=self.missing,
            unit=unit,
            unread=unread,
        )

    @cached_property
    def builder(self) -> Builder:
        """Return the writer of events, made on first use with the version that is known then.

        Formats whose rows have both ends and say what belongs to what, as spans do, write events themselves.
        """
        return Builder(self._form, masked(self.version), self.report)

    def _link(self) -> list[Transcript]:
        """Return the transcripts of those who did something, linked to one another."""
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
            self.agent(key)  # also one without rows has a name
        names = Names()
        names.new(steps.USER)
        for key, transcript in self.agents.items():  # of equal names, later ones get a number
            wanted = _MAIN if transcript.is_root and key == ROOT else masked(self._called.get(key) or key)
            transcript.agent = names.new(wanted or "agent")
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
        for delivery, sender in self._senders:
            delivery.sender = sender.agent
        acting = [transcript for transcript in transcripts if transcript.steps]
        for line, spent in self._spent.items():  # summed up at once, kinds in the order in which they were met
            columns = zip(Tokens.__struct_fields__, zip(*map(astuple, spent), strict=True), strict=True)
            counted = [(kind, numbers) for kind, numbers in columns if numbers.count(None) < len(numbers)]
            counted.sort(key=lambda column: next(at for at, count in enumerate(column[1]) if count is not None))
            self.report.enter_all(line, {kind: sum(filter(None, numbers)) for kind, numbers in counted}, len(spent))
        self._count_silent(acting)
        steps.add_returns(list(self._returns()), acting)
        return acting

    def _assign(self, child: str, task: Task) -> None:
        """Let a call spawn an agent; to one that lives already, it is a message."""
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
        if call is None or call.target:  # one that nobody noted, or that has spawned another, too
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
        """Yield what comes back from sub-agents: what the log records, else the results of the calls that waited."""
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
                    name = self.agents[child].agent
                    yield self.agents[task.parent], steps.Return.at_step(result, name, result.status, error, result.ref)

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
