"""Import trajectories in ATIF, the Agent Trajectory Interchange Format.

A trajectory is the log of one agent. The trajectories of its sub-agents are embedded in it or in other files, and a
trajectory may continue in another file. This module links the trajectories of a session to one another.
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
from orchtrace_corpus.trace.importers.core.values import as_text
from orchtrace_corpus.trace.model.import_report import LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import Unit
from orchtrace_corpus.trace.model.trace import Trace

_NEVER = float("inf")  # a time after all steps
_VERSION = re.compile(r'"schema_version"\s*:\s*"(?:ATIF-v)?\d+\.\d+"')
_FILE_MEMBERS = (b'"trajectory_path"', b'"continued_trajectory_ref"')  # the members that name files
_PIECE_BYTES = 256 * 1024
_OVERLAP = max(map(len, _FILE_MEMBERS))  # the bytes of each piece that are searched again: a member may span two pieces
_FILE_NAME = re.compile(rb'"(?:trajectory_path|continued_trajectory_ref)"\s*:\s*("(?:[^"\\]|\\.){1,1000}")')


def recognises(beginning: Head) -> bool:
    """Return True for the beginning of an ATIF trajectory: it has the version of ATIF, or the required members."""
    names = beginning.outline
    if "schema_version" in names and _VERSION.search(beginning.text):
        return "agent" in names or "steps" in names
    if beginning.rows and "agent" in names:
        members = beginning.rows[0].get("steps")  # the outline of a document on one line has no names of its steps
        if isinstance(members, list) and members and isinstance(members[0], dict):
            names = names | members[0].keys()
    return {"agent", "steps", "step_id", "source"} <= names


def session_keys(reader: LogReader) -> Sequence[str]:
    """Return the path of a trajectory and of the files that it names; many programs use one session id for all."""
    own_path = os.path.realpath(reader.file.path)
    if not _mentions_files(reader):
        return [own_path]
    return [own_path, *_named_files(reader.file, reader.contents())]


def _mentions_files(reader: LogReader) -> bool:
    """Return True if a trajectory names files. Reading it in pieces takes half the time of reading it at once."""
    buffer = bytearray(_OVERLAP + _PIECE_BYTES)  # the end of the previous piece, then the piece
    piece = memoryview(buffer)[_OVERLAP:]
    offset = 0
    try:
        while size := reader.read_into(piece, offset):
            end = _OVERLAP + size
            if any(buffer.find(member, 0, end) >= 0 for member in _FILE_MEMBERS):
                return True
            buffer[:_OVERLAP] = buffer[size:end]
            offset += size
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(reader.file.path)}: {error.strerror}") from error
    return False


def further_files(reader: LogReader) -> Sequence[LogFile]:
    """Return the existing files that a trajectory names, directly or in another named file."""
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
    """Return the real paths of the files that a trajectory names, without those outside its folder."""
    if not any(member in data for member in _FILE_MEMBERS):
        return []
    encoded_names = dict.fromkeys(_FILE_NAME.findall(data))
    paths = [_path_in_folder(file, as_text(decoded(encoded))) for encoded in encoded_names]
    return [path for path in paths if path]


def _path_in_folder(file: LogFile, name: str) -> str:
    """Return the real path of a file that a trajectory names; empty for an empty name or a file outside its folder."""
    if not name or "\0" in name:
        return ""
    folder = os.path.dirname(os.path.realpath(file.path))
    path = os.path.realpath(os.path.join(folder, name))
    return path if path.startswith(folder + os.sep) else ""


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield a trace for each session: a file that no other file names, with the files that it names."""
    sessions: Iterable[Sequence[LogFile]] = [files]
    if len(files) > 1:
        sessions = _sessions(files)
    for session in sessions:
        run = Run("atif", privacy)
        restored: Trace | None = None  # the trace that this package exported to the file
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
        if restored is None:
            yield _Session(by_file, run).trace()
        else:
            yield restored


def _sessions(files: Sequence[LogFile]) -> Iterator[list[LogFile]]:
    """Yield the files of each session: a file that no other file names, then those it names, directly or indirectly."""
    by_path = {os.path.realpath(file.path): file for file in files}
    named_by_path: dict[str, list[str]] = {}
    for path, file in by_path.items():
        named_by_path[path] = [named for named in _named_files(file, logs.contents(file)) if named in by_path]
    for session in group_families(named_by_path):
        yield [by_path[path] for path in session]


class _Session:
    """The linked trajectories of a session. The first trajectory is the root agent's."""

    def __init__(self, by_file: Mapping[str, list[Trajectory]], run: Run) -> None:
        self._run = run
        self._outermost = {path: trajectories[0] for path, trajectories in by_file.items()}  # of each file
        self._trajectories = [trajectory for trajectories in by_file.values() for trajectory in trajectories]
        self._root = self._trajectories[0]
        # Three mappings from the `id` of a trajectory; as attributes of it they would make cycles that stay in memory.
        self._enclosing = {id(child): outer for outer in self._trajectories for child in outer.children}
        self._chain_starts: dict[int, Trajectory] = {}  # of a continuation: the first trajectory of its chain
        self._parents: dict[int, Trajectory] = {}  # of a sub-agent's trajectory: its parent's
        self._spawns: dict[str, steps.ToolCall] = {}  # by the key of the spawned agent
        self._spawning: set[int] = set()  # the `id` of each call that has spawned an agent
        self._delegations: list[tuple[Trajectory, Delegation, str]] = []  # the parent's, and the key of the sub-agent
        self._join_continuations()
        self._link_subagents()

    def _chain_start(self, trajectory: Trajectory) -> Trajectory:
        return self._chain_starts.get(id(trajectory), trajectory)

    def _join_continuations(self) -> None:
        """Append the steps of each continuation to the trajectory that it continues."""
        for trajectory in self._trajectories:
            continuation = self._outermost.get(_path_in_folder(trajectory.file, trajectory.continued))
            start = self._chain_start(trajectory)
            if continuation is None or continuation in (start, self._root) or id(continuation) in self._chain_starts:
                continue
            self._chain_starts[id(continuation)] = start
            for step in continuation.transcript.steps:
                start.transcript.add(step)
            continuation.transcript.steps = []

    def _link_subagents(self) -> None:
        """Find the parent of each agent: the one that refers to its trajectory, else the one around its trajectory."""
        self._register(self._root, self._root.name)
        self._root.transcript.is_root = True
        for trajectory in self._trajectories:
            for reference in trajectory.references:
                child = self._resolve(trajectory, reference)
                if child is None:  # its trajectory is missing, but the agent ran
                    key = f"absent {len(self._run.agents)}"
                    stem = masked_path(os.path.basename(reference.path).removesuffix(".json"))
                    name = masked(reference.id) or reference.name or stem or "agent"
                    self._run.agent(key, name, role=reference.name)
                elif id(child) in self._parents or self._cannot_spawn(trajectory, child):
                    continue
                else:
                    key = child.transcript.key
                    self._adopt(trajectory, child, role=reference.name)
                self._delegations.append((self._chain_start(trajectory), reference, key))
                self._spawn(trajectory, key, reference.call, reference.result)
        for trajectory in self._trajectories:
            for child in trajectory.children:
                if id(child) not in self._parents:
                    time = child.transcript.steps[0].time if child.transcript.steps else NO_TIME
                    self._run.report.note(Problem.SPAWN_INFERRED, str(child.begin))
                    self._adopt(trajectory, child)
                    # Nothing says which step of the parent spawned it: the spawn goes before the step of order 1.
                    self._spawn(trajectory, child.transcript.key, None, steps.Note(time, child.begin, order=1.0))
        for trajectory in self._trajectories:  # the agents without a parent
            if trajectory.transcript.key not in self._run.agents and id(trajectory) not in self._chain_starts:
                self._register(trajectory, trajectory.name or masked(trajectory.id))

    def _register(self, trajectory: Trajectory, name: str, role: str = "") -> None:
        """Add the agent of a trajectory to the run."""
        self._run.agents[trajectory.transcript.key] = trajectory.transcript
        self._run.agent(trajectory.transcript.key, name or "agent", role)

    def _resolve(self, trajectory: Trajectory, reference: Delegation) -> Trajectory | None:
        """Return the referenced trajectory: of another file, or embedded in this trajectory or in one around it."""
        child = self._outermost.get(_path_in_folder(trajectory.file, reference.path))
        if not reference.id:
            return child
        around: Trajectory | None = trajectory
        while child is None and around is not None:
            child = around.by_id.get(reference.id)
            around = self._enclosing.get(id(around))
        return child

    def _cannot_spawn(self, parent: Trajectory, child: Trajectory) -> bool:
        """Return True if the parent cannot spawn the child: the child is its ancestor, the root or a continuation."""
        if child is self._root or id(child) in self._chain_starts:
            return True
        ancestor: Trajectory | None = self._chain_start(parent)
        while ancestor is not None and ancestor is not child:
            ancestor = self._parents.get(id(ancestor))
        return ancestor is child

    def _adopt(self, trajectory: Trajectory, child: Trajectory, role: str = "") -> None:
        """Register a trajectory as a sub-agent's. Its inputs become notes, as the parent wrote them and no person."""
        name = child.name
        if name in ("", self._root.name):  # sub-agents with the root's name are told apart by their ids
            name = masked(child.id) or name
        self._register(child, name, role)
        self._parents[id(child)] = self._chain_start(trajectory)
        child.transcript.steps = [
            steps.Note(step.time, step.place, step.order) if isinstance(step, steps.UserInput) else step
            for step in child.transcript.steps
        ]

    def _spawn(self, trajectory: Trajectory, child: str, call: steps.ToolCall | None, step: steps.Step) -> None:
        """Note that a call spawned an agent; if no unused call is known, add one to the parent before `step`."""
        parent = self._chain_start(trajectory).transcript
        if call is None or id(call) in self._spawning:
            call = steps.ToolCall(step.time, step.place, step.order - 0.5, is_inferred=True)
            parent.steps.append(call)
        self._spawning.add(id(call))
        self._spawns[child] = call
        self._run.spawn(child, parent.key, call, waits=False)

    def _fill_times(self) -> Unit:
        """Give every step a time: that of the log, else its position. Return the unit of the times."""
        for agent in self._run.agents.values():
            agent.steps.sort(key=attrgetter("order"))  # `_spawn` appends spawns that belong before other steps
        if any(trajectory.has_times for trajectory in self._trajectories):
            for key, agent in self._run.agents.items():
                is_undated = all(step.time == NO_TIME for step in agent.steps)
                if is_undated and agent.steps and key in self._spawns:  # it begins when it is spawned
                    agent.steps[0].time = self._spawns[key].time
                first_undated = agent.fill_times()
                if first_undated is not None:
                    self._run.report.note(Problem.NO_ROW_TIME, str(first_undated.place))
            return Unit.SECOND
        spawned = {id(call): self._run.agents[child] for child, call in self._spawns.items()}
        position = 0.0
        for root in (agent for key, agent in self._run.agents.items() if key not in self._spawns):
            waiting = [iter(root.steps)]  # a stack: at a spawn, all steps of the sub-agent come first
            while waiting:
                step = next(waiting[-1], None)
                if step is None:  # all steps of this agent have a position
                    waiting.pop()
                    continue
                step.time = position
                position += 1
                if isinstance(step, steps.ModelCall):
                    step.end = step.time
                if id(step) in spawned:
                    waiting.append(iter(spawned[id(step)].steps))
        return Unit.STEP

    def _next_times(self) -> dict[int, float]:
        """Return when the parent went on after each result that refers to a sub-agent, by the `id` of the result."""
        referring = {id(reference.result) for _, reference, _ in self._delegations}
        parents = {id(parent): parent for parent, _, _ in self._delegations}
        next_times: dict[int, float] = {}
        for parent in parents.values():
            next_time = following_time = _NEVER
            for step in reversed(parent.transcript.steps):
                if following_time > step.time:  # steps of the same time, such as results, have the same next time
                    next_time = following_time
                following_time = step.time
                if id(step) in referring:
                    next_times[id(step)] = next_time
        return next_times

    def _note_returns(self) -> None:
        """Note the returns of sub-agents: with the result of their call, or later if they worked longer."""
        next_times = self._next_times()
        notifications: dict[int, list[Notification]] = {}
        for trajectory in self._trajectories:
            for notification in trajectory.notifications:
                call = trajectory.calls.get(notification.call_id)
                if call is not None:
                    notifications.setdefault(id(call), []).append(notification)
        for _, reference, child in self._delegations:
            step, child_steps = reference.result, self._run.agents[child].steps
            received = notifications.get(id(reference.call), []) if child_steps else []
            for notification in received:
                self._run.add_return(child, notification.step, notification.status, notification.ref)
            if received or not isinstance(step, steps.ToolResult):
                continue
            next_time = next_times.get(id(step), _NEVER)
            time = step.time
            if child_steps:
                last_time = max(child_step.last_time for child_step in child_steps)
                if last_time > next_time:  # it still worked when the parent went on: no return is known
                    continue
                time = max(last_time, time)
            elif next_time < _NEVER:  # its steps are missing: it may have worked until the parent went on
                time = next_time
            self._run.add_return(child, steps.Note(time, step.place, step.order), step.status, step.ref)

    def trace(self) -> Trace:
        """Return the trace of the session."""
        unit = self._fill_times()
        self._note_returns()
        self._compare_totals()
        root, run = self._root, self._run
        run.name = masked(root.id or root.session) or root.file.stem
        run.system, run.version = root.name, root.version
        return run.trace(unit=unit, empty_message=f"no step of an agent in {root.file.name}")

    def _compare_totals(self) -> None:
        """Note stated totals that are not the tokens of the trajectory, with or without its sub-agents or its chain."""
        sums = {id(trajectory): trajectory.spent for trajectory in self._trajectories}  # with sub-agents
        for trajectory in reversed(self._trajectories):  # sub-agents come after their parents
            parent = self._parents.get(id(trajectory))
            if parent is not None:
                sums[id(parent)] = _add_counts(sums[id(parent)], sums[id(trajectory)])
        spent_so_far = (0, 0)  # by the first trajectory and its continuations
        has_absent = any(not self._run.agents[child].steps for _, _, child in self._delegations)
        for trajectory in self._trajectories:
            if trajectory is self._root or id(trajectory) in self._chain_starts:
                spent_so_far = _add_counts(spent_so_far, sums[id(trajectory)])
            if trajectory.totals is None:
                continue
            self._run.report.enter(LedgerLine.FINAL_METRICS, total=sum(trajectory.totals))
            is_complete = not has_absent and not trajectory.calls_without_usage
            if is_complete and trajectory.totals not in (trajectory.spent, sums[id(trajectory)], spent_so_far):
                self._run.report.note(Problem.FINAL_METRICS_DIFFER, str(trajectory.begin))


def _add_counts(counts: tuple[int, int], further: tuple[int, int]) -> tuple[int, int]:
    return counts[0] + further[0], counts[1] + further[1]
