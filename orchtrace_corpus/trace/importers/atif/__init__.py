"""ATIF trajectories, the Agent Trajectory Interchange Format: an agent, with its sub-agents embedded or in other files.

A session is put together here: which call delegated to which trajectory, what continues it, what came back. A
trajectory that we have exported ourselves is restored from its steps and what it keeps in `extra`.
"""

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter

from msgspec import DecodeError, json

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import quote_path
from orchtrace_corpus.trace.importers.atif.documents import decode, lines
from orchtrace_corpus.trace.importers.atif.reading import Delegation, Notification, Trajectory, below
from orchtrace_corpus.trace.importers.atif.restoration import restore
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.identity import Names
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, Head, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked, masked_path
from orchtrace_corpus.trace.importers.core.times import NO_TIME
from orchtrace_corpus.trace.importers.core.transcript_events import add_events
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.trace import Status, Trace, Unit

_NEVER = float("inf")
_VERSION = re.compile(r'"schema_version"\s*:\s*"(?:ATIF-v)?\d+\.\d+"')
_NAMING = (b'"trajectory_path"', b'"continued_trajectory_ref"')
"""The members that name files."""
_PIECE_BYTES = 256 * 1024
_OVERLAP = max(map(len, _NAMING))
"""So much of a piece is looked at with the next one, too: a name may lie across both."""
_FILE = re.compile(rb'"(?:trajectory_path|continued_trajectory_ref)"\s*:\s*("(?:[^"\\]|\\.){1,1000}")')


def recognises(beginning: Head) -> bool:
    """Whether a file that begins like this is an ATIF trajectory: by its version, or by members that it must have."""
    names = beginning.outline
    if "schema_version" in names and _VERSION.search(beginning.text):
        return "agent" in names or "steps" in names
    given = beginning.rows[0].get("steps") if beginning.rows and "agent" in names else None
    first = given[0] if isinstance(given, list) and given else None
    return {"agent", "steps", "step_id", "source"} <= (names | first.keys() if isinstance(first, dict) else names)


def ties(opened: Opened) -> Sequence[str]:
    """What ties a trajectory to others: the files that it names. Many programs give all sessions the same id.

    Raises:
        DataFileError: The file cannot be read.
    """
    further = _named_files(opened.file, opened.contents()) if _names_files(opened) else ()
    return [os.path.realpath(opened.file.path), *further]


def _names_files(opened: Opened) -> bool:
    """Whether a trajectory names files: read piece by piece, which takes half as long as the whole."""
    buffer, at = bytearray(_OVERLAP + _PIECE_BYTES), 0
    piece = memoryview(buffer)[_OVERLAP:]
    try:
        while size := opened.read_into(piece, at):
            if any(buffer.find(name, 0, _OVERLAP + size) >= 0 for name in _NAMING):
                return True
            buffer[:_OVERLAP] = buffer[size : size + _OVERLAP]
            at += size
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(opened.file.path)}: {error.strerror}") from error
    return False


def beside(opened: Opened) -> Sequence[LogFile]:
    """The files that a trajectory names, and those that these name, where they are there."""
    found: dict[str, LogFile] = {}
    waiting = deque([opened.file])
    while waiting:
        file = waiting.popleft()
        for path in _named_files(file, logs.contents(file)):
            if path not in found and os.path.isfile(path):
                found[path] = LogFile(path, masked_path(os.path.basename(path)))
                waiting.append(found[path])
    return list(found.values())


def _named_files(file: LogFile, data: bytes) -> list[str]:
    """The files that a trajectory names, with all folders; none outside its own folder."""
    if not any(name in data for name in _NAMING):
        return []
    folder = os.path.dirname(os.path.realpath(file.path))
    found = (_in_folder(folder, name) for name in map(_text, dict.fromkeys(_FILE.findall(data))) if name)
    return [path for path in found if path]


def _text(raw: bytes) -> str:
    with suppress(DecodeError, UnicodeDecodeError):
        return str(json.decode(raw))
    return ""


def _in_folder(folder: str, name: str) -> str:
    """The path of a file in a folder or below it; empty for one outside, and for a name that no file can have."""
    path = os.path.realpath(os.path.join(folder, name)) if "\0" not in name else ""
    return path if path.startswith(folder + os.sep) else ""


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """The traces of trajectories that name one another: one for each that no other names.

    Raises:
        DataFileError: A file cannot be read or is no JSON, or nothing ran in it.
    """
    for session in _sessions(files) if len(files) > 1 else (files,):
        report = ImportReport()
        trees: dict[str, Trajectory] = {}
        for file in session:
            data = logs.contents(file)
            try:
                document = decode(data)
            except (DecodeError, RecursionError) as error:
                raise DataFileError(f"{quote_path(file.name)} is not a trajectory: {error}") from error
            is_ours = len(session) == 1 and document.is_ours
            if is_ours and (trace := restore(data, file, privacy, report)) is not None:
                yield trace
                break
            path, at = os.path.realpath(file.path), lines(data, document)
            trees[path] = Trajectory(file, document, at, "", privacy, report)
            for one in below([trees[path]]):
                for number, embedded in enumerate(one.embedded):
                    one.children.append(Trajectory(file, embedded, at, one.pointer_to(number), privacy, report))
        else:
            yield _Session(trees, report).trace(privacy)


def _sessions(files: Sequence[LogFile]) -> Iterator[list[LogFile]]:
    """The files by session: each that no other names, with all those that it leads to."""
    by_path = {os.path.realpath(file.path): file for file in files}
    targets = {
        path: [name for name in _named_files(file, logs.contents(file)) if name in by_path]
        for path, file in by_path.items()
    }
    named = {target for path, found in targets.items() for target in found if target != path}
    seen: set[str] = set()
    for path in (*(path for path in by_path if path not in named), *by_path):  # last those in a circle
        if path not in seen:
            session = [path]
            seen.add(path)
            for one in session:
                further = [target for target in targets[one] if target not in seen]
                seen.update(further)
                session += further
            yield [by_path[one] for one in session]


class _Session:
    """Links the trajectories of one session, given by their files; the first is that of the agent that people ask."""

    def __init__(self, trees: Mapping[str, Trajectory], report: ImportReport) -> None:
        self._report = report
        self._trees = trees
        self._all = list(below(list(trees.values())))
        self._first = self._all[0]
        self._names = Names()
        self._homes = {id(child): one for one in self._all for child in one.children}
        self._by_id = {(id(one), child.id): child for one in self._all for child in reversed(one.children)}
        self._spawns: dict[int, steps.ToolCall] = {}  # by the trajectory spawned
        self._parents: dict[int, Trajectory] = {}
        self._absent: list[tuple[Trajectory, Delegation, steps.ToolCall]] = []
        self._joins: list[tuple[Trajectory, Delegation, Trajectory]] = []
        self._heads: dict[int, Trajectory] = {}  # of a continuation, what it continues from the beginning
        self._continue()
        self._spawn()

    def _continue(self) -> None:
        """Put the steps of a trajectory that continues another behind those of the other."""
        for one in self._all:
            head = self._heads.get(id(one), one)
            path = _in_folder(os.path.dirname(os.path.realpath(one.file.path)), one.continued) if one.continued else ""
            further = self._trees.get(path)
            if further is None or further is head or id(further) in self._heads or further is self._first:
                continue
            self._heads[id(further)] = head
            for step in further.thread.steps:
                head.thread.add(step)
            further.thread.steps = []

    def _spawn(self) -> None:
        """Find who spawned whom: by the references, else by where a trajectory is embedded."""
        self._first.thread.is_root = True
        self._first.thread.agent = self._names.new(self._first.name or "agent")
        for one in self._all:
            for reference in one.references:
                child = self._resolve(one, reference)
                if child is None:
                    self._spawn_absent(one, reference)
                elif not self._is_above(child, one) and id(child) not in self._parents:
                    self._adopt(one, child, reference.call, reference.step, reference.name)
                    self._joins.append((one, reference, child))
        for one in self._all:
            for child in one.children:
                if id(child) not in self._parents:
                    first = child.thread.steps[0] if child.thread.steps else steps.Note(NO_TIME, _begin(child))
                    self._report.note(Problem.SPAWN_INFERRED, str(first.place))
                    self._adopt(one, child, None, steps.Note(first.time, first.place, 1.0), "")
        for one in self._all:
            if not one.thread.agent and id(one) not in self._heads:
                one.thread.agent = self._names.new(one.name or masked(one.id) or "agent")
                self._report.note(Problem.NO_SPAWN, str(_begin(one)))
        for one in self._all:
            if (parent := self._parents.get(id(one))) is not None:
                one.thread.parent = parent.thread.agent

    def _resolve(self, one: Trajectory, reference: Delegation) -> Trajectory | None:
        """The trajectory that a reference means: embedded here or around it, or in a file."""
        path = _in_folder(os.path.dirname(os.path.realpath(one.file.path)), reference.path) if reference.path else ""
        if path in self._trees:
            return self._trees[path]
        home: Trajectory | None = one
        while home is not None and reference.id:
            if (child := self._by_id.get((id(home), reference.id))) is not None:
                return child
            home = self._homes.get(id(home))
        return None

    def _is_above(self, one: Trajectory, other: Trajectory) -> bool:
        above: Trajectory | None = self._heads.get(id(other), other)
        while above is not None and above is not one:
            above = self._parents.get(id(above))
        return above is one or one is self._first or id(one) in self._heads

    def _adopt(
        self, one: Trajectory, child: Trajectory, call: steps.ToolCall | None, step: steps.Step, name: str
    ) -> None:
        """Let an agent spawn another, by a call of its own or, where there is none, by what is concluded."""
        parent = self._heads.get(id(one), one)
        child.thread.role = child.thread.role or name
        wanted = child.name if child.name not in ("", self._first.name) else masked(child.id) or child.name
        child.thread.agent = self._names.new(wanted or "agent")
        self._parents[id(child)] = parent
        self._spawns[id(child)] = self._spawning(parent, call, step, child.thread.agent, child.thread.role)
        child.thread.steps = [
            steps.Note(given.time, given.place, given.order) if isinstance(given, steps.UserInput) else given
            for given in child.thread.steps
        ]

    def _spawn_absent(self, one: Trajectory, reference: Delegation) -> None:
        """A sub-agent whose trajectory is not there."""
        parent = self._heads.get(id(one), one)
        stem = os.path.basename(reference.path).removesuffix(".json")
        agent = self._names.new(masked(reference.id) or reference.name or masked_path(stem) or "agent")
        call = self._spawning(parent, reference.call, reference.step, agent, reference.name)
        self._absent.append((parent, reference, call))
        self._report.note(Problem.NO_TRANSCRIPT, str(reference.step.place))

    def _spawning(
        self, parent: Trajectory, call: steps.ToolCall | None, step: steps.Step, agent: str, role: str
    ) -> steps.ToolCall:
        if call is None or call.target:
            call = steps.ToolCall(step.time, step.place, step.order - 0.5, purpose=steps.SPAWN, is_inferred=True)
            parent.thread.steps.append(call)
        call.purpose, call.target, call.role = steps.SPAWN, agent, role
        return call

    def _fill_times(self) -> Unit:
        """Give every step a time; where none has one, they are counted, those of a sub-agent after its spawn."""
        parents = (*self._parents.values(), *(parent for parent, _, _ in self._absent))
        for thread in {id(one.thread): one.thread for one in parents}.values():
            thread.steps.sort(key=attrgetter("order"))  # spawns may have been put in between
        if any(one.has_times for one in self._all):
            for one in self._all:
                spawn = self._spawns.get(id(one))
                times = [step.time for step in one.thread.steps]
                if spawn is not None and times.count(NO_TIME) == len(times) > 0:
                    one.thread.steps[0].time = times[0] = spawn.time
                if NO_TIME in times:
                    self._report.note(Problem.NO_ROW_TIME, str(one.thread.steps[times.index(NO_TIME)].place))
                    one.thread.fill_times()
            return Unit.SECOND
        spawned = {id(call): child.thread for child in self._all if (call := self._spawns.get(id(child)))}
        count = 0.0
        for root in (one.thread for one in self._all if id(one) not in self._spawns):
            waiting = [iter(root.steps)]
            while waiting:
                for step in waiting[-1]:
                    step.time, count = count, count + 1
                    if isinstance(step, steps.ModelCall):
                        step.end = step.time
                    if id(step) in spawned:
                        waiting.append(iter(spawned[id(step)].steps))
                        break
                else:
                    waiting.pop()
        return Unit.STEP

    def _returns(self) -> Iterator[tuple[steps.Transcript, steps.Return]]:
        """What comes back from sub-agents: with the result of their call, or later, where they worked on."""
        deferred = [(self._heads.get(id(one), one), reference, child) for one, reference, child in self._joins]
        receivers = [*(one for one, _, _ in deferred), *(parent for parent, _, _ in self._absent)]
        telling = {id(reference.step) for _, reference, _ in (*self._joins, *self._absent)}
        after: dict[int, float] = {}  # for each step that tells of a sub-agent the time of the next that is later
        for thread in {id(one.thread): one.thread for one in receivers}.values():
            later, before = _NEVER, _NEVER
            for step in reversed(thread.steps):
                later, before = before if before > step.time else later, step.time
                if id(step) in telling:
                    after[id(step)] = later
        told: dict[int, list[Notification]] = {}
        for one in self._all:
            for said in one.notifications:
                if (call := one.calls.get(said.call)) is not None:
                    told.setdefault(id(call), []).append(said)
        for receiver, reference, child in deferred:
            step, agent = reference.step, child.thread.agent
            later_words = told.get(id(reference.call), [])
            for said in later_words:
                yield receiver.thread, _returned(said.step, agent, said.status, said.ref)
            last = max((done.last_time for done in child.thread.steps), default=step.time)
            if not later_words and isinstance(step, steps.ToolResult) and last <= after.get(id(step), last):
                found = _returned(step, agent, step.status, step.ref)
                found.time = max(last, step.time)
                yield receiver.thread, found
        for parent, reference, spawn in self._absent:
            step = reference.step
            if isinstance(step, steps.ToolResult):
                found = _returned(step, spawn.target, step.status, step.ref)
                found.time = after[id(step)] if after.get(id(step), _NEVER) < _NEVER else step.time
                yield parent.thread, found

    def trace(self, privacy: Privacy) -> Trace:
        """The trace of the session.

        Raises:
            EmptyLogError: Nothing ran in it.
        """
        first, report = self._first, self._report
        unit = self._fill_times()
        threads = [one.thread for one in self._all if one.thread.steps]
        steps.note_deciders(threads)
        steps.add_returns(list(self._returns()), threads)
        self._compare_totals()
        odd, absent = sum(one.odd for one in self._all), len(self._absent)
        without = sum(one.without for one in self._all) - odd
        lines = (LedgerLine.NO_USAGE, without), (LedgerLine.NO_NUMBER, odd), (LedgerLine.NO_TRANSCRIPT, absent)
        for line, number in lines:
            if number > 0:
                report.enter(line, number)
        name = masked(first.id or first.session) or masked_path(os.path.splitext(os.path.basename(first.file.path))[0])
        builder = Builder(name, name, system=first.name or "atif", form="atif", version=first.version, privacy=privacy,
                          report=report)  # fmt: skip
        add_events(threads, builder)
        if not builder:
            raise EmptyLogError(f"no step of an agent in {first.file.name}")
        missing = {Missing.TRANSCRIPTS: absent, Missing.USAGE: without, Missing.NUMBERS: odd}
        return builder.trace(topology=steps.topology(threads), missing=missing, unit=unit)

    def _compare_totals(self) -> None:
        """Totals are never counted: they may be of a trajectory, of all below it, or of all that it continues."""
        sums = {id(one): one.spent for one in self._all}
        for one in reversed(self._all):
            if (parent := self._parents.get(id(one))) is not None:
                sums[id(parent)] = _sum((sums[id(parent)], sums[id(one)]))
        before = (0, 0)
        for one in self._all:
            is_chained = one is self._first or id(one) in self._heads
            before = _sum((before, sums[id(one)])) if is_chained else before
            if one.totals is None:
                continue
            self._report.enter(LedgerLine.FINAL_METRICS, total=sum(one.totals))
            possible = one.spent, sums[id(one)], before
            if one.totals not in possible and not self._absent and not one.without:
                self._report.note(Problem.FINAL_METRICS_DIFFER, str(_begin(one)))


def _begin(one: Trajectory) -> steps.Place:
    """Where a trajectory begins, as far as its steps say."""
    return one.thread.steps[0].place if one.thread.steps else steps.Place(one.file.name, 1)


def _returned(step: steps.Step, child: str, status: Status, ref: str) -> steps.Return:
    return steps.Return.at_step(step, child, status, "agent_error" if status is Status.ERROR else "", ref)


def _sum(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    one, other = zip(*pairs, strict=True)
    return sum(one), sum(other)
