"""ATIF trajectories, the Agent Trajectory Interchange Format: an agent, with its sub-agents embedded or in other files.

The trajectories of a session are linked here: by the calls that delegate to others, and by files that continue others.
A trajectory that this package exported is restored from its steps and its `extra`.
"""

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from msgspec import DecodeError

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import quote_path
from orchtrace_corpus.trace.importers.atif import reading
from orchtrace_corpus.trace.importers.atif.reading import Delegation, Notification, Trajectory
from orchtrace_corpus.trace.importers.atif.restoration import restore
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.identity import group_families
from orchtrace_corpus.trace.importers.core.json_parts import decoded
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, LogReader
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked, masked_path
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.times import NO_TIME
from orchtrace_corpus.trace.importers.core.values import string
from orchtrace_corpus.trace.model.import_report import LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import Unit
from orchtrace_corpus.trace.model.trace import Trace

_NEVER = float("inf")
_VERSION = re.compile(r'"schema_version"\s*:\s*"(?:ATIF-v)?\d+\.\d+"')
_NAMING = (b'"trajectory_path"', b'"continued_trajectory_ref"')  # the members that name files
_PIECE_BYTES = 256 * 1024
_OVERLAP = max(map(len, _NAMING))  # the end of a piece that is searched again with the next one: a name may span both
_FILE = re.compile(rb'"(?:trajectory_path|continued_trajectory_ref)"\s*:\s*("(?:[^"\\]|\\.){1,1000}")')


def recognises(beginning: Head) -> bool:
    """Return True for the beginning of an ATIF trajectory, by its version or by members that all have."""
    names = beginning.outline
    if "schema_version" in names and _VERSION.search(beginning.text):
        return "agent" in names or "steps" in names
    if beginning.rows and "agent" in names:
        given = beginning.rows[0].get("steps")
        if isinstance(given, list) and given and isinstance(given[0], dict):
            names = names | given[0].keys()  # those of the first step
    return {"agent", "steps", "step_id", "source"} <= names


def session_keys(reader: LogReader) -> Sequence[str]:
    """Return the files that a trajectory names; session ids are no keys: many programs use one for all."""
    further = _named_files(reader.file, reader.contents()) if _mentions_files(reader) else ()
    return [os.path.realpath(reader.file.path), *further]


def _mentions_files(reader: LogReader) -> bool:
    """Return True if a trajectory names files; reading in pieces takes half the time of reading all at once."""
    buffer, at = bytearray(_OVERLAP + _PIECE_BYTES), 0
    piece = memoryview(buffer)[_OVERLAP:]
    try:
        while size := reader.read_into(piece, at):
            if any(buffer.find(name, 0, _OVERLAP + size) >= 0 for name in _NAMING):
                return True
            buffer[:_OVERLAP] = buffer[size : size + _OVERLAP]
            at += size
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(reader.file.path)}: {error.strerror}") from error
    return False


def further_files(reader: LogReader) -> Sequence[LogFile]:
    """Return the existing files that a trajectory names, and those that these name."""
    files: dict[str, LogFile] = {}
    waiting = deque([reader.file])
    while waiting:
        file = waiting.popleft()
        for path in _named_files(file, logs.contents(file)):
            if path not in files and os.path.isfile(path):
                files[path] = LogFile(path, masked_path(os.path.basename(path)))
                waiting.append(files[path])
    return list(files.values())


def _named_files(file: LogFile, data: bytes) -> list[str]:
    """Return the full paths of the files that a trajectory names inside its own folder."""
    if not any(name in data for name in _NAMING):
        return []
    names = (string(decoded(raw)) for raw in dict.fromkeys(_FILE.findall(data)))
    return [path for name in names if (path := _path_beside(file, name))]


def _path_beside(file: LogFile, name: str) -> str:
    """Return the path of a file that a trajectory names; empty for no name and for a file outside its folder."""
    folder = os.path.dirname(os.path.realpath(file.path))
    path = os.path.realpath(os.path.join(folder, name)) if name and "\0" not in name else ""
    return path if path.startswith(folder + os.sep) else ""


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield a trace for each trajectory that no other names, with all that it names."""
    sessions: Iterable[Sequence[LogFile]] = [files] if len(files) == 1 else _sessions(files)
    for session in sessions:
        run = Run("atif", privacy)
        restored = None
        by_file: dict[str, list[Trajectory]] = {}
        for file in session:
            data = logs.contents(file)
            try:
                document = reading.decode(data)
            except (DecodeError, RecursionError) as error:
                raise DataFileError(f"{quote_path(file.name)} is not a trajectory: {error}") from error
            if len(session) == 1 and document.is_ours:
                restored = restore(data, file, privacy, run.report)
            if restored is None:
                by_file[os.path.realpath(file.path)] = reading.read_trajectories(file, data, document, run)
        yield _Session(by_file, run).trace() if restored is None else restored


def _sessions(files: Sequence[LogFile]) -> Iterator[list[LogFile]]:
    """Yield the files of each session: one that no other names, with all that it names directly or by others."""
    by_path = {os.path.realpath(file.path): file for file in files}
    named = {path: _named_files(file, logs.contents(file)) for path, file in by_path.items()}
    links = {path: [name for name in names if name in by_path] for path, names in named.items()}
    for session in group_families(links):
        yield [by_path[path] for path in session]


class _Session:
    """Links the trajectories of a session, given by their files; the first is that of the root agent."""

    def __init__(self, by_file: Mapping[str, list[Trajectory]], run: Run) -> None:
        self._run = run
        self._outermost = {path: trajectories[0] for path, trajectories in by_file.items()}
        self._all = [trajectory for trajectories in by_file.values() for trajectory in trajectories]
        self._first = self._all[0]
        # keys are the `id` of a trajectory: trajectories that refer to one another would stay in memory
        self._enclosing = {id(child): outer for outer in self._all for child in outer.children}
        self._chain_starts: dict[int, Trajectory] = {}  # the first trajectory that it continues
        self._parents: dict[int, Trajectory] = {}  # the trajectory of the agent that spawned its agent
        self._spawns: dict[str, steps.ToolCall] = {}  # by the key of the spawned agent
        self._spawning: set[int] = set()  # calls that have spawned an agent, by `id`
        self._delegations: list[tuple[Trajectory, Delegation, str]] = []  # with parent and key of the sub-agent
        self._join_continuations()
        self._link_subagents()

    def _chain_start(self, trajectory: Trajectory) -> Trajectory:
        return self._chain_starts.get(id(trajectory), trajectory)

    def _join_continuations(self) -> None:
        """Append the steps of each continuation to the trajectory that it continues."""
        for trajectory in self._all:
            continuation = self._outermost.get(_path_beside(trajectory.file, trajectory.continued))
            start = self._chain_start(trajectory)
            if continuation is None or id(continuation) in self._chain_starts or continuation in (start, self._first):
                continue
            self._chain_starts[id(continuation)] = start
            for step in continuation.thread.steps:
                start.thread.add(step)
            continuation.thread.steps = []

    def _link_subagents(self) -> None:
        """Find the parent of each agent: by references, else the trajectory in which its own is embedded."""
        self._add(self._first, self._first.name)
        self._first.thread.is_root = True
        for trajectory in self._all:
            for reference in trajectory.references:
                child = self._resolve(trajectory, reference)
                if child is None:  # its trajectory is missing
                    key = f"absent {len(self._run.agents)}"
                    stem = masked_path(os.path.basename(reference.path).removesuffix(".json"))
                    name = masked(reference.id) or reference.name or stem or "agent"
                    self._run.agent(key, name, reference.name)
                elif id(child) in self._parents or self._cannot_spawn(trajectory, child):
                    continue
                else:
                    key = child.thread.key
                    self._adopt(trajectory, child, reference.name)
                self._delegations.append((self._chain_start(trajectory), reference, key))
                self._spawn(trajectory, key, reference.call, reference.step)
        for trajectory in self._all:
            for child in trajectory.children:
                if id(child) not in self._parents:
                    first = child.thread.steps[0] if child.thread.steps else steps.Note(NO_TIME, child.begin)
                    self._run.report.note(Problem.SPAWN_INFERRED, str(first.place))
                    self._adopt(trajectory, child)
                    self._spawn(trajectory, child.thread.key, None, steps.Note(first.time, first.place, order=1.0))
        for trajectory in self._all:
            if trajectory.thread.key not in self._run.agents and id(trajectory) not in self._chain_starts:
                self._add(trajectory, trajectory.name or masked(trajectory.id))

    def _add(self, trajectory: Trajectory, name: str, role: str = "") -> None:
        self._run.agents[trajectory.thread.key] = trajectory.thread
        self._run.agent(trajectory.thread.key, name or "agent", role)

    def _resolve(self, trajectory: Trajectory, reference: Delegation) -> Trajectory | None:
        """Return the trajectory that a reference names: in a file, or embedded in this one or one around it."""
        child = self._outermost.get(_path_beside(trajectory.file, reference.path))
        around: Trajectory | None = trajectory
        while child is None and around is not None and reference.id:
            child, around = around.by_id.get(reference.id), self._enclosing.get(id(around))
        return child

    def _cannot_spawn(self, parent: Trajectory, child: Trajectory) -> bool:
        """Return True if one trajectory cannot spawn another: its ancestor, the root, or a continuation."""
        above: Trajectory | None = self._chain_start(parent)
        while above is not None and above is not child:
            above = self._parents.get(id(above))
        return above is child or child is self._first or id(child) in self._chain_starts

    def _adopt(self, trajectory: Trajectory, child: Trajectory, role: str = "") -> None:
        """Register a trajectory as a sub-agent's, whose inputs come from its parent and not from a person."""
        name = child.name
        if name in ("", self._first.name):  # of no use to tell them apart
            name = masked(child.id) or name
        self._add(child, name, role)
        self._parents[id(child)] = self._chain_start(trajectory)
        child.thread.steps = [
            steps.Note(step.time, step.place, step.order) if isinstance(step, steps.UserInput) else step
            for step in child.thread.steps
        ]

    def _spawn(self, trajectory: Trajectory, child: str, call: steps.ToolCall | None, step: steps.Step) -> None:
        """Add a spawn by a call of the parent or, if there is none, before a step."""
        parent = self._chain_start(trajectory).thread
        if call is None or id(call) in self._spawning:
            call = steps.ToolCall(step.time, step.place, step.order - 0.5, is_inferred=True)
            parent.steps.append(call)
        self._spawning.add(id(call))
        self._spawns[child] = call
        self._run.spawn(child, parent.key, call, waits=False)

    def _fill_times(self) -> Unit:
        """Give every step a time; if none has one, number the steps, those of a sub-agent after its spawn."""
        for agent in self._run.agents.values():
            agent.steps.sort(key=attrgetter("order"))  # spawns may have been added in between
        if any(trajectory.has_times for trajectory in self._all):
            for key, agent in self._run.agents.items():
                undated = [step for step in agent.steps if step.time == NO_TIME]
                if key in self._spawns and len(undated) == len(agent.steps) > 0:
                    agent.steps[0].time = self._spawns[key].time
                if (first := agent.fill_times()) is not None:
                    self._run.report.note(Problem.NO_ROW_TIME, str(first.place))
            return Unit.SECOND
        spawned = {id(call): self._run.agents[child] for child, call in self._spawns.items()}
        count = 0.0
        for root in (agent for key, agent in self._run.agents.items() if key not in self._spawns):
            waiting = [iter(root.steps)]  # the rest of each agent's steps, below those of the agent it spawned
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

    def _note_returns(self) -> None:
        """Note the returns of sub-agents: with the result of their call, or later if they worked on."""
        referring = {id(reference.step) for _, reference, _ in self._delegations}
        after: dict[int, float] = {}  # the time of the next later step, for each result that refers to a sub-agent
        for thread in {id(receiver): receiver.thread for receiver, _, _ in self._delegations}.values():
            later, following = _NEVER, _NEVER
            for step in reversed(thread.steps):
                if following > step.time:
                    later = following
                following = step.time
                if id(step) in referring:
                    after[id(step)] = later
        notifications: dict[int, list[Notification]] = {}
        for trajectory in self._all:
            for notification in trajectory.notifications:
                if (call := trajectory.calls.get(notification.call_id)) is not None:
                    notifications.setdefault(id(call), []).append(notification)
        for _, reference, child in self._delegations:
            step, done = reference.step, self._run.agents[child].steps
            received = notifications.get(id(reference.call), []) if done else []
            for notification in received:
                self._run.add_return(child, notification.step, notification.status, notification.ref)
            if received or not isinstance(step, steps.ToolResult):
                continue
            next_time = after.get(id(step), _NEVER)
            time = step.time
            if done:
                last = max(done_step.last_time for done_step in done)
                if last > next_time:  # it worked on after the parent had gone on: no return is known
                    continue
                time = max(last, time)
            elif next_time < _NEVER:
                time = next_time
            self._run.add_return(child, steps.Note(time, step.place, step.order), step.status, step.ref)

    def trace(self) -> Trace:
        """Return the trace of the session."""
        first, run = self._first, self._run
        unit = self._fill_times()
        self._note_returns()
        self._compare_totals()
        run.name = masked(first.id or first.session) or first.file.stem
        run.system, run.version = first.name, first.version
        return run.trace(unit=unit, empty_message=f"no step of an agent in {first.file.name}")

    def _compare_totals(self) -> None:
        """Compare stated totals with the sums: of a trajectory, of all below it, or of all that it continues."""
        sums = {id(trajectory): trajectory.spent for trajectory in self._all}
        for trajectory in reversed(self._all):
            if (parent := self._parents.get(id(trajectory))) is not None:
                sums[id(parent)] = _add_counts(sums[id(parent)], sums[id(trajectory)])
        spent_so_far = (0, 0)  # by the first trajectory and its continuations
        has_absent = any(not self._run.agents[child].steps for _, _, child in self._delegations)
        for trajectory in self._all:
            if trajectory is self._first or id(trajectory) in self._chain_starts:
                spent_so_far = _add_counts(spent_so_far, sums[id(trajectory)])
            if trajectory.totals is None:
                continue
            self._run.report.enter(LedgerLine.FINAL_METRICS, total=sum(trajectory.totals))
            is_complete = not has_absent and not trajectory.calls_without_usage
            if is_complete and trajectory.totals not in (trajectory.spent, sums[id(trajectory)], spent_so_far):
                self._run.report.note(Problem.FINAL_METRICS_DIFFER, str(trajectory.begin))


def _add_counts(counts: tuple[int, int], further: tuple[int, int]) -> tuple[int, int]:
    return counts[0] + further[0], counts[1] + further[1]
