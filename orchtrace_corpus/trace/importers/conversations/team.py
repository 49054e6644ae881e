"""A session in the making, for formats that name their agents: transcripts, who spawned whom, what was spent.

The importers of OpenCode, Inspect, AutoGen and ADK read their records into the transcripts of a `Team`, which counts
the tokens of every answer once and makes the trace.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import DecodeError, Raw

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import quote_path
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.identity import Names
from orchtrace_corpus.trace.importers.core.json_parts import Part, encoded, whole
from orchtrace_corpus.trace.importers.core.logs import MOST_LINE_BYTES, EmptyLogError, LogFile, contents, rows
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.times import NO_TIME
from orchtrace_corpus.trace.importers.core.transcript_events import add_events
from orchtrace_corpus.trace.importers.core.usage import Spent, counts, divided, has_odd
from orchtrace_corpus.trace.model.decode import LINES
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.trace import Status, TokenBasis, Topology, Trace, Unit

_Session = TypeVar("_Session")
_OWN, _REPORTED, _ERROR, _OK = LedgerLine.OWN, TokenBasis.REPORTED, Status.ERROR, Status.OK  # soonest found so


def documents(file: LogFile, report: ImportReport) -> Iterator[Part]:
    """The objects of a file, undecoded: the document that it is, those of its array, or one on each line.

    Raises:
        DataFileError: The file cannot be read.
    """
    if not file.path.endswith(LINES):
        with suppress(DecodeError, RecursionError):
            top = whole(contents(file))
            yield from top.elements() if top.is_array else (top,)
            return
    for line, raw in rows(file, report, Raw):
        data = bytes(raw) if isinstance(raw, Raw) else encoded(raw)
        yield Part(data, Raw(data), 0, line)


def object_lines(file: LogFile) -> int:
    """How many lines of a log are objects, whole or not; others are what programs print besides.

    Raises:
        DataFileError: The file cannot be read.
    """
    try:
        with open(file.path, "rb") as handle:
            return sum(line.lstrip()[:1] == b"{" for line in iter(lambda: handle.readline(MOST_LINE_BYTES), b""))
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(file.path)}: {error.strerror}") from error


def traces_of(
    files: Sequence[LogFile],
    parts: Callable[[LogFile, ImportReport], Iterator[_Session]],
    trace: Callable[[_Session, LogFile, ImportReport], Trace | None],
    what: str,
) -> Iterator[Trace]:
    """The traces of the sessions in files, each with a report of its own.

    Args:
        files: The files.
        parts: The sessions of a file.
        trace: Makes the trace of one; None where nothing ran in it.
        what: What none of them has if there is no trace, such as `event`.

    Raises:
        DataFileError: A file cannot be read.
        EmptyLogError: Nothing ran in any of them.
    """
    found, report = 0, ImportReport()
    for file in files:
        for part in parts(file, report):
            made = trace(part, file, report)
            if made is not None:
                found += 1
                yield made
                report = ImportReport()
    if not found:
        raise EmptyLogError(f"no {what} of an agent in {', '.join(file.name for file in files[:3])}")


class Team:
    """The transcripts of one session, and what becomes of their usage.

    Attributes:
        privacy: How contents are referred to.
        report: What becomes of the records.
        threads: The transcripts, in the order in which they were begun.
        missing: How many records lack their tokens.

    Args:
        privacy: How contents are referred to.
        report: Where it is said what becomes of the records.
    """

    def __init__(self, privacy: Privacy, report: ImportReport) -> None:
        self.privacy, self.report, self._spent = privacy, report, Spent(report)
        self.threads: list[steps.Transcript] = []
        self.missing: dict[Missing, int] = {}
        self._returns: list[tuple[steps.Transcript, steps.Return]] = []
        self._names = Names()
        self._names.new(steps.USER)

    def thread(self, wanted: str, *, key: str = "", role: str = "", is_root: bool = False) -> steps.Transcript:
        """A new agent's transcript; of a name that is in use, with a number behind it."""
        found = steps.Transcript(self._names.new(masked(wanted) or "agent"), key=key, role=masked(role))
        found.is_root = is_root
        self.threads.append(found)
        return found

    def spend(
        self,
        call: steps.ModelCall,
        stated: tuple[Any, ...],
        *,
        caches_apart: bool = False,
        reasoning_apart: bool = False,
    ) -> None:
        """Give an answer the tokens that the log states.

        Args:
            call: The answer.
            stated: Input, output, cache reads, cache writes, reasoning; None for what is not stated.
            caches_apart: Whether the input is stated without what came from and went to caches.
            reasoning_apart: Whether the output is stated without reasoning.
        """
        given = counts(stated)
        put, got, read, written, thought = given
        is_odd = has_odd(stated, given)
        is_known = put is not None or got is not None
        if is_odd:
            self.report.note(Problem.USAGE_NO_NUMBER, str(call.place))
        if is_odd or not is_known or not any(given):
            line = LedgerLine.NO_NUMBER if is_odd else LedgerLine.ZERO if is_known else LedgerLine.NO_USAGE
            if not is_odd and call.error and call.final and not call.ref:  # the service refused, and was paid nothing
                return
            self.report.enter(line)
            self.lack(Missing.NUMBERS if is_odd else Missing.USAGE)
            if not is_known or not any(given):
                return
        if caches_apart and put is not None:
            put += (read or 0) + (written or 0)
        if reasoning_apart and got is not None:
            got += thought or 0
        call.spent, call.basis = divided((put, got, read, written, thought), self.report), _REPORTED
        self._spent.enter(_OWN, call.spent)

    def lack(self, what: Missing) -> None:
        """Note that a record lacks its tokens."""
        self.missing[what] = self.missing.get(what, 0) + 1

    def result(
        self, call: steps.ToolCall, thread: steps.Transcript, time: float, place: steps.Place, error: str, ref: str
    ) -> None:
        """The result of a call, whose error is empty where nothing went wrong; a second one is left out."""
        if call.answer is not None:
            self.report.note(Problem.SECOND_RESULT, str(place))
            return
        found = steps.ToolResult(time, place, status=_ERROR if error else _OK, error=error, ref=ref)
        thread.add(found)
        steps.answer(call, found)

    def spawn(self, parent: steps.Transcript, child: steps.Transcript, call: steps.ToolCall | None = None) -> None:
        """Let an agent spawn another by a call; where there is none, it is concluded from the child's beginning.

        A spawn by which an agent would be above itself is left out. To an agent that lives already a call is a message.
        """
        if call is not None and child.parent:
            call.purpose, call.target = steps.MESSAGE, child.agent
            return
        above: steps.Transcript | None = parent
        while above is not None and above is not child:
            above = next((one for one in self.threads if above.parent and one.agent == above.parent), None)
        if above is child:
            self.report.note(Problem.SPAWN_CYCLE, str(call.place if call is not None else _begin(child).place))
            return
        if call is None:
            first = _begin(child)
            call = steps.ToolCall(first.time, first.place, is_inferred=True)
            parent.add(call)
            self.report.note(Problem.SPAWN_INFERRED, str(first.place))
        call.purpose, call.target, call.role = steps.SPAWN, child.agent, child.role
        child.parent, child.is_root = parent.agent, False

    def spawn_absent(self, call: steps.ToolCall, wanted: str, role: str = "") -> None:
        """Let a call spawn an agent of which the log has no transcript."""
        call.purpose, call.target, call.role = steps.SPAWN, self._names.new(masked(wanted) or "agent"), masked(role)
        self.lack(Missing.TRANSCRIPTS)
        self.report.note(Problem.NO_TRANSCRIPT, str(call.place))
        self.report.enter(LedgerLine.NO_TRANSCRIPT)

    def returns(self, thread: steps.Transcript, step: steps.Return) -> None:
        """What comes back to an agent from one that it spawned."""
        self._returns.append((thread, step))

    def return_all(self) -> None:
        """Let every result of a call that spawned, or called again, an agent be that agent's return."""
        spawned = {thread.agent for thread in self.threads if thread.parent}
        for thread in self.threads:
            for call in [step for step in thread.steps if isinstance(step, steps.ToolCall)]:
                if call.answer is not None and (call.purpose is steps.SPAWN or call.target in spawned):
                    done = call.answer
                    error = "agent_error" if done.status is Status.ERROR else ""
                    self.returns(thread, steps.Return.at_step(done, call.target, done.status, error, done.ref))

    def trace(
        self,
        name: str,
        *,
        form: str,
        version: str = "",
        system: str = "",
        topology: Topology = Topology.UNKNOWN,
        unit: Unit = Unit.SECOND,
        unread: int | None = None,
    ) -> Trace | None:
        """The trace; None where nothing ran.

        Args:
            name: What the session is called.
            form: The format of the log.
            version: The version of the program that wrote it.
            system: What ran, if that is not called as its format.
            topology: How the agents are arranged, if no spawn says so.
            unit: `STEP` where the log has no times, and those of the steps only count.
            unread: How many lines could not be read, of which nobody knows what they say; None for all.
        """
        self._spent.settle()
        threads = [thread for thread in self.threads if thread.steps]
        for thread in threads:
            thread.fill_times()
        steps.note_deciders(threads)
        steps.add_returns(self._returns, threads)
        called = masked(name) or "session"
        builder = Builder(called, called, system=masked(system) or form, form=form, version=masked(version),
                          privacy=self.privacy, report=self.report)  # fmt: skip
        add_events(threads, builder)
        if not builder:
            return None
        arranged = steps.topology(threads)
        arranged = topology if arranged is Topology.UNKNOWN else arranged
        return builder.trace(topology=arranged, missing=self.missing, unit=unit, unread=unread)


def _begin(thread: steps.Transcript) -> steps.Step:
    """The first step of an agent; one without a place where it has none."""
    return min(thread.steps, key=lambda step: step.at, default=steps.Note(NO_TIME, steps.Place("", 1)))
