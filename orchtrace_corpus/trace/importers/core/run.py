"""One run of a team of agents, which an importer fills from a log and then turns into a trace.

An importer adds the rows of a log to a `Run` in their order. It refers to agents by their keys in the log, and to
calls by their ids. A call, its result, the agent that it spawned and the rows of that agent may come in any order:
`Run.trace` joins results to calls, sub-agents to their parents, and messages to their receivers.
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
"""The key of the agent that people talk to, for a log that has such an agent."""

_MAIN = "main"
_Session = TypeVar("_Session")
_OWN, _REPORTED = LedgerLine.OWN, TokenBasis.REPORTED  # Python 3.11 is slow to look up a member of an enumeration
_OK, _ERROR = Status.OK, Status.ERROR


class Task(NamedTuple):
    """A task that an agent gives to a sub-agent, with its spawn or later."""

    parent: str  # the key of the agent that gives the task
    call: ToolCall | str  # the call, or its id; empty if the log does not say
    place: Place | None  # the place in the log; None for the place of the sub-agent's first step
    waits: bool  # True if the result of the call is the sub-agent's result


class Run:
    """The agents, calls and messages of a run.

    Attributes:
        name: The name of the run.
        trace_id: The id of the trace; if empty, the name of the run.
        system: The system that ran; if empty, the format of the log.
        version: The version of the program that wrote the log.
        report: The report of the import.
        privacy: How contents are referred to.
        agents: The transcripts of agents, by key.
        calls: The calls with an id, by the key of the agent and the id.
        missing: The number of records without tokens, by reason. Importers add to it what only they know.

    Args:
        form: The format of the log.
        privacy: How contents are referred to.
        report: The report to continue; None for a new one.
        are_peers: True for a run without a root agent, in which agents need no spawn, such as a group chat.
    """

    def __init__(
        self, form: str, privacy: Privacy, report: ImportReport | None = None, *, are_peers: bool = False
    ) -> None:
        self.name = self.trace_id = self.system = self.version = ""
        self.report, self.privacy = report or ImportReport(), privacy
        self.agents: dict[str, Transcript] = {}
        self.calls: dict[tuple[str, str], ToolCall] = {}
        self.missing = dict.fromkeys((Missing.TRANSCRIPTS, Missing.USAGE, Missing.NUMBERS, Missing.INPUT), 0)
        self.masked = cache(masked)  # a cache of its own for the few names of models and tools
        self._form, self._are_peers = form, are_peers
        self._ledger_tokens: dict[LedgerLine, list[Tokens]] = {}
        self._scratch_report = ImportReport()  # takes notes on usage that is left out, and is thrown away
        self._names: dict[str, str] = {}  # the names of agents, by key
        self._side_transcripts: dict[tuple[str, str], Transcript] = {}  # by the keys of agent and side transcript
        self._results: list[tuple[str, str, steps.ToolResult]] = []  # with the key of the agent and the id of the call
        self._first_results: dict[tuple[str, str], steps.ToolResult] = {}  # by agent and call, up to `_indexed`
        self._indexed = 0  # the number of results that `_first_results` takes account of
        self._call_ends: list[tuple[str, str, str, Status]] = []  # agent, call, error, status
        self._tasks: dict[str, list[Task]] = {}  # by the key of the sub-agent
        self._children: dict[tuple[str, str], str] = {}  # the spawned agents, by parent and call
        self._parents: dict[str, str] = {}  # by child, set while the trace is made
        self._cyclic_spawns: set[tuple[str, str]] = set()  # child and parent of spawns that would make a cycle
        self._addressed: list[tuple[ToolCall, Transcript]] = []
        self._recorded_returns: list[tuple[str, steps.Return, str | None]] = []  # with the child and the receiver
        self._sent_messages: dict[tuple[str, int], list[ToolCall]] = {}  # by receiver and mark of the text
        self._arrivals: list[tuple[steps.Delivery, str, str, int | None]] = []  # with receiver, sender and mark
        self._noted: set[int] = set()  # `id` of answers whose usage is noted as 0 or as no number
        self._covered: set[int] = set()  # `id` of answers whose usage is counted with another answer

    def agent(self, key: str, name: str = "", role: str = "") -> Transcript:
        """Return the transcript of an agent, a new one for a new key. The first name and role that are given count."""
        transcript = self.agents.get(key)
        if transcript is None:
            transcript = self.agents[key] = Transcript("", key, is_root=key == ROOT and not self._are_peers)
        if name and key not in self._names:
            self._names[key] = name
        if role and not transcript.role:
            transcript.role = masked(role)
        return transcript

    def side_transcript(self, key: str, purpose: str = "side calls", file: str = "") -> Transcript:
        """Return the transcript of an agent's model calls outside its conversation; `file` is its key in the log."""
        return self._side_transcripts.setdefault((key, file), Transcript("", file or key, aside=purpose))

    def answer(
        self, key: str, time: float, place: Place, model: str = "", *, error: str = "", ref: str = ""
    ) -> ModelCall:
        """Add an answer of a model to an agent's transcript, and return it; callers set its other fields."""
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
        """Add an interruption of an agent by a person."""
        self.agent(key).add(steps.UserInput(time, place, waited=False, status=Status.CANCELLED))

    def note(self, key: str, time: float, place: Place) -> steps.Note:
        """Add and return another input of an agent, such as its task."""
        note = steps.Note(time, place)
        self.agent(key).add(note)
        return note

    def call(
        self, key: str, call_id: str, tool: str, time: float, place: Place, arguments: Any, answer: ModelCall | None
    ) -> ToolCall:
        """Add and return a call of a tool, for which the model asks in `answer`; return a call with this id again."""
        agent_and_id = key, call_id
        if call_id and agent_and_id in self.calls:
            self.report.note(Problem.CALL_WRITTEN_TWICE, str(place))
            return self.calls[agent_and_id]
        ref = self.privacy.reference(arguments)
        call = ToolCall(time, place, 0.0, steps.TOOL, answer, masked(call_id), self.masked(tool), ref)
        if answer is not None:
            answer.final = False
        if call_id:
            self.calls[agent_and_id] = call
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
        """Add and return the result of a call, which may be read before the call."""
        if status is None:
            status = _ERROR if error else _OK
        result = steps.ToolResult(time, place, 0.0, None, False, status, error, self.privacy.reference(content))
        (self.agents.get(key) or self.agent(key)).add(result)
        self._results.append((key, call_id, result))
        return result

    def result_of(self, key: str, call_id: str) -> steps.ToolResult | None:
        """Return the first result of a call of an agent; None if none was read so far."""
        for result_key, result_call_id, result in self._results[self._indexed :]:
            self._first_results.setdefault((result_key, result_call_id), result)
        self._indexed = len(self._results)
        return self._first_results.get((key, call_id))

    def end_call(self, key: str, call_id: str, error: str, status: Status = _ERROR) -> None:
        """Set how a call ended, for a log that says it outside of the result. The result may be read later."""
        self._call_ends.append((key, call_id, error, status))

    def address(self, call: ToolCall, receiver: str, purpose: Purpose = steps.MESSAGE, text: int | None = None) -> None:
        """Note that a call is a message to an agent, waits for it or ends it; `text` is the `mark` of a message."""
        call.purpose = purpose
        self._addressed.append((call, self.agent(receiver)))
        if text is not None:
            self._sent_messages.setdefault((receiver, text), []).append(call)

    def message(
        self, sender: str, receiver: str, time: float, place: Place, ref: str = "", answer: ModelCall | None = None
    ) -> None:
        """Add a message from one agent to another that no call of a tool sends."""
        reader = self.agent(receiver)
        message = ToolCall(time, place, purpose=steps.MESSAGE, model_call=answer, ref=ref)
        self._addressed.append((message, reader))
        self.agent(sender).add(message)
        reader.add(steps.Delivery(time, place, sent=message))

    def spawn(
        self, child: str, parent: str, call: ToolCall | str = "", place: Place | None = None, *, waits: bool = True
    ) -> None:
        """Note that a call of `parent` spawned `child`. If `child` was spawned before, the call is a message to it.

        `call` may be the id of a call that is read later. If it is empty, the spawn is inferred from the child's first
        step, whose place counts if `place` is None. A spawn that would make an agent its own ancestor is left out.
        `waits` is True if the result of the call is the child's result.
        """
        if child != ROOT or self._are_peers:
            self._children.setdefault((parent, call if isinstance(call, str) else call.id), child)
            self._tasks.setdefault(child, []).append(Task(parent, call, place, waits))

    def skip(self, kind: str, *, is_known: bool) -> None:
        """Count a row of a kind that says nothing about agents, calls or tokens, or whose kind is unknown."""
        if is_known:
            self.report.skip(masked(kind))
        else:
            self.report.note_unknown(masked(kind) or "(no type)")

    def end_in_background(self, child: str, receiver: str, time: float, place: Place, status: Status) -> None:
        """Note that a sub-agent has ended, unless a call waits for its result: then the result is its end."""
        if child and not self.waits_for(child):
            self.add_return(child, self.note(receiver, time, place), status)

    def is_spawned(self, child: str) -> bool:
        """Return True if a spawn of this agent has been noted."""
        return child in self._tasks

    def waits_for(self, child: str) -> bool:
        """Return True if the result of a call is this agent's result."""
        return any(task.waits for task in self._tasks.get(child, ()))

    def child_of(self, parent: str, call_id: str) -> str:
        """Return the agent that a call spawned; empty if it spawned none."""
        return self._children.get((parent, call_id), "")

    def add_return(
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
        """Add the return of a sub-agent, for a log that says more than the result of the call that spawned it.

        `step` is the step of the receiver, by default the parent, at which the result arrived. `error` is used if the
        status is an error. `is_inferred` is True if the log does not say that the sub-agent returned.
        """
        if status is not _ERROR:
            error = ""
        order = step.order + 0.5  # between the step and the next one
        returned = steps.Return(step.time, step.place, order, "", status, error, ref, is_inferred)
        self._recorded_returns.append((child, returned, receiver))

    def receive(self, receiver: str, delivery: steps.Delivery, sender: str, text: int | None = None) -> None:
        """Note that a message has arrived: the first message to the receiver with this text, or else one of `sender`.

        `sender` is empty if the log does not say. `text` is the `mark` of the message; None if no call has sent it.
        """
        if sender:
            self.agent(sender)  # so that a sender without rows has a name
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
        """Count the tokens of an answer as the log states them, and return them with None for values that are no count.

        Args:
            call: The answer of the model.
            stated: Input, output, cache reads, cache writes, reasoning; None for a count that is not stated.
            line: The line of the ledger.
            caches_apart: True if the input excludes tokens that were read from or written to caches.
            reasoning_apart: True if the output excludes reasoning.
        """
        known_counts = counts(stated)
        if known_counts is not stated:
            for count, value in zip(known_counts, stated, strict=True):
                if count is None and value is not None:
                    self.report.note(Problem.USAGE_NO_NUMBER, str(call.place))
                    self.miss_number(call)
                    break
        if known_counts[0] is not None or known_counts[1] is not None:
            if any(known_counts):
                call.spent, call.basis = divided(known_counts, self.report, caches_apart, reasoning_apart), _REPORTED
                self._enter(line, call.spent)
            elif id(call) not in self._noted:
                self.miss_zero(call)
        return known_counts

    def _enter(self, line: LedgerLine, tokens: Tokens) -> None:
        """Add a usage record to a line of the ledger. `_link` adds up the records of each line."""
        if line not in self._ledger_tokens:
            self.report.enter(line, records=0)  # lines stay in the order of their first record
            self._ledger_tokens[line] = []
        self._ledger_tokens[line].append(tokens)

    def miss_number(self, call: ModelCall | None) -> None:
        """Note that the stated tokens of an answer are no number. `call` is None for an answer without a row."""
        self.report.enter(LedgerLine.NO_NUMBER)
        self.missing[Missing.NUMBERS] += 1
        if call is not None:
            self._noted.add(id(call))

    def miss_zero(self, call: ModelCall) -> None:
        """Note that the tokens of an answer are stated as 0, which cannot be true."""
        self.report.enter(LedgerLine.ZERO)
        self.missing[Missing.USAGE] += 1
        self._noted.add(id(call))

    def spend_counts(self, usage: Usage, line: LedgerLine) -> Tokens:
        """Count and return the tokens of a usage that belongs to no step, such as the total of a span."""
        tokens = divided(usage, self.report)
        self._enter(line, tokens)
        return tokens

    def count(self, call: ModelCall, tokens: Tokens, line: LedgerLine) -> None:
        """Count tokens of an answer that the importer computed. The importer sets the basis of the answer, too."""
        call.spent = tokens
        self._enter(line, tokens)

    def spend_output(self, call: ModelCall, stated: Any) -> None:
        """Count the output of an answer whose other tokens the log does not state, or note it if they are counted."""
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
        """Note a usage that is counted elsewhere. The parameters are those of `spend`."""
        self._enter(line, divided(counts(stated), self._scratch_report, caches_apart, reasoning_apart))

    def cover(self, calls: Iterable[ModelCall]) -> None:
        """Note that the usage of answers is counted with that of another answer."""
        covered_before = len(self._covered)
        self._covered.update(map(id, calls))
        new = len(self._covered) - covered_before
        if new:
            self.report.enter(LedgerLine.COVERED, records=new)

    def trace(
        self,
        *,
        topology: Topology = Topology.UNKNOWN,
        unit: Unit = Unit.SECOND,
        unread: int | None = None,
        empty_message: str = "",
    ) -> Trace:
        """Return the trace of all that was added.

        Args:
            topology: How the agents are arranged, if no agent spawned another.
            unit: `STEP` if the log has no times. The times of steps are then their positions.
            unread: The number of unreadable lines that may belong to this run; None for the number in the report.
            empty_message: The message of the error if nothing ran; empty for the usual message.

        Raises:
            EmptyLogError: Nothing ran.
        """
        acting = self._link()
        if acting:
            add_events(acting, self.builder)
        name = masked(self.name) or "session"
        if not self.builder.events:
            raise EmptyLogError(empty_message or f"no message of an agent in {name}")
        inferred = steps.topology({transcript.agent: transcript.parent for transcript in acting if transcript.parent})
        if inferred is not Topology.UNKNOWN:
            topology = inferred
        trace_id, system, missing = masked(self.trace_id) or name, masked(self.system) or self._form, self.missing
        return self.builder.trace(trace_id, name, system, topology=topology, missing=missing, unread=unread, unit=unit)

    @cached_property
    def builder(self) -> Builder:
        """Return the builder of the trace. It is made on first use, when the version is known."""
        return Builder(self._form, masked(self.version), self.report)

    def _link(self) -> list[Transcript]:
        """Return the transcripts that have steps, with links between them."""
        transcripts = [*self.agents.values(), *self._side_transcripts.values()]
        for transcript in transcripts:
            undated = transcript.fill_times()
            if undated is not None:
                self.report.note(Problem.NO_ROW_TIME, str(undated.place))
        for key, call_id, error, status in self._call_ends:
            result_of_call = self.result_of(key, call_id)
            if result_of_call is not None:
                result_of_call.status, result_of_call.error = status, error
        calls, report = self.calls, self.report
        for key, call_id, result in self._results:
            steps.join(calls.get((key, call_id)), result, report)
        for key in (*self._tasks, *(key for key, _ in self._side_transcripts)):
            self.agent(key)  # so that an agent without rows has a name
        names = UniqueNames()
        names.add(steps.USER)
        for key, transcript in self.agents.items():
            wanted = _MAIN if transcript.is_root and key == ROOT else masked(self._names.get(key, key))
            transcript.agent = names.add(wanted or "agent")
        for child, tasks in self._tasks.items():
            for task in tasks:
                self._assign(child, task)
        for (key, _), aside in self._side_transcripts.items():
            aside.agent, aside.parent = self.agents[key].agent, self.agents[key].parent
        if not self._are_peers:
            for transcript in self.agents.values():
                if transcript.steps and not (transcript.is_root or transcript.parent or transcript.is_warm_up):
                    self.report.note(Problem.NO_SPAWN, str(transcript.steps[0].place))
        for call, receiver in self._addressed:
            call.target = receiver.agent
        for messages in self._sent_messages.values():
            messages.sort(key=attrgetter("time"))
        for delivery, reader, sender, text in self._arrivals:
            messages = self._sent_messages.get((reader, text), []) if text is not None else []
            if messages and messages[0].time <= delivery.time:
                delivery.sent = messages.pop(0)
            elif sender and sender != reader:
                delivery.sender = self.agents[sender].agent
        acting = [transcript for transcript in transcripts if transcript.steps]
        self._add_up_ledger()
        self._count_silent(acting)
        steps.add_returns(list(self._returns()), acting)
        return acting

    def _add_up_ledger(self) -> None:
        """Enter the tokens of each ledger line, the kinds in the order in which they were first counted."""
        for line, usages in self._ledger_tokens.items():
            columns = zip(Tokens.__struct_fields__, zip(*map(astuple, usages), strict=True), strict=True)
            counts_by_kind = {kind: counts for kind, counts in columns if counts.count(None) < len(counts)}
            first_usages = {
                kind: next(index for index, count in enumerate(counts) if count is not None)
                for kind, counts in counts_by_kind.items()
            }
            kinds = sorted(first_usages, key=first_usages.__getitem__)
            totals = {kind: sum(filter(None, counts_by_kind[kind])) for kind in kinds}
            self.report.enter_all(line, totals, records=len(usages))

    def _assign(self, child: str, task: Task) -> None:
        """Make the call of a task the spawn of a sub-agent, or a message to it if it was spawned before."""
        transcript, parent = self.agents[child], self.agents.get(task.parent)
        if parent is None or not parent.steps:
            return
        ancestor: str | None = task.parent
        while ancestor is not None and ancestor != child:
            ancestor = self._parents.get(ancestor)
        if ancestor == child:  # the child is above this parent, so the parent cannot have spawned it
            begin = transcript.first_step
            self.report.note(Problem.SPAWN_CYCLE, str(task.place or (begin.place if begin is not None else "")))
            self._cyclic_spawns.add((child, task.parent))
            if isinstance(task.call, ToolCall):
                task.call.purpose = steps.TOOL
            return
        call = self.calls.get((task.parent, task.call)) if isinstance(task.call, str) else task.call
        is_spawned = child in self._parents
        if call is None or call.target:  # the call is not in the log, or has spawned another agent
            begin = transcript.first_step or call
            if is_spawned or begin is None:
                return
            if call is None:
                self.report.note(Problem.SPAWN_INFERRED, str(begin.place))
                call = ToolCall(begin.time, task.place or begin.place, is_inferred=True)
            else:
                call = ToolCall(begin.time, task.place or begin.place, model_call=call.model_call, tool=call.tool)
            parent.add(call)
        call.purpose = steps.MESSAGE if is_spawned else steps.SPAWN
        call.target = transcript.agent
        if not is_spawned:
            self._parents[child] = task.parent
            call.role, transcript.parent, transcript.is_root = transcript.role, parent.agent, False
            if not transcript.steps and transcript.kind is not steps.SCRIPT:
                self.missing[Missing.TRANSCRIPTS] += 1
                self.report.note(Problem.NO_TRANSCRIPT, str(call.place))

    def _returns(self) -> Iterator[tuple[Transcript, steps.Return]]:
        """Yield the returns that the log records, else the results of the calls that waited, with their receivers."""
        recorded = {child for child, _, _ in self._recorded_returns}
        for child, step, receiver in self._recorded_returns:
            if receiver is None:
                receiver = self._parents.get(child)
            if receiver is not None and (child, receiver) not in self._cyclic_spawns:
                step.child = self.agents[child].agent
                yield self.agents[receiver], step
        for child in self._parents:
            for task in self._tasks[child] if child not in recorded else ():
                call = task.call if isinstance(task.call, ToolCall) else self.calls.get((task.parent, task.call))
                result = call.result if call is not None and task.waits else None
                if result is not None:
                    error = result.error or ("agent_error" if result.status is _ERROR else "")
                    name, order = self.agents[child].agent, result.order + 0.5
                    step = steps.Return(result.time, result.place, order, name, result.status, error, result.ref)
                    yield self.agents[task.parent], step

    def _count_silent(self, acting: Sequence[Transcript]) -> None:
        """Enter in the ledger the answers without usage, unless the service refused them, and missing transcripts."""
        accounted = self._noted | self._covered
        silent = 0
        for transcript in acting:
            for step in transcript.steps:
                if type(step) is ModelCall and step.spent is None and id(step) not in accounted:
                    is_refused = step.error and step.final and not step.ref
                    if not is_refused:
                        silent += 1
        self.missing[Missing.USAGE] += silent
        if silent:
            self.report.enter(LedgerLine.NO_USAGE, silent)
        if self.missing[Missing.TRANSCRIPTS]:
            self.report.enter(LedgerLine.NO_TRANSCRIPT, self.missing[Missing.TRANSCRIPTS])


def traces_of(
    files: Sequence[LogFile],
    read_sessions: Callable[[LogFile, ImportReport], Iterable[_Session]],
    make_trace: Callable[[_Session, LogFile, ImportReport], Trace],
    record_noun: str,
) -> Iterator[Trace]:
    """Yield the traces of files that may hold several sessions; `record_noun` is for the error if they are empty."""
    is_empty, report = True, ImportReport()
    for file in files:
        for session in read_sessions(file, report):
            with suppress(EmptyLogError):
                yield make_trace(session, file, report)
                is_empty, report = False, ImportReport()
    if is_empty:
        raise EmptyLogError(f"no {record_noun} of an agent in {', '.join(file.name for file in files[:3])}")
