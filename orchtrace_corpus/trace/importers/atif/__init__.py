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
from orchtrace_corpus.trace.importers.core.identity import families
from orchtrace_corpus.trace.importers.core.json_parts import decoded
from orchtrace_corpus.trace.importers.core.logs import Head, LogFile, Opened
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
    given = beginning.rows[0].get("steps") if beginning.rows and "agent" in names else None
    first = given[0] if isinstance(given, list) and given else None
    return {"agent", "steps", "step_id", "source"} <= (names | first.keys() if isinstance(first, dict) else names)


def ties(opened: Opened) -> Sequence[str]:
    """Return the files that a trajectory names; session ids are no ties: many programs give all the same."""
    further = _named_files(opened.file, opened.contents()) if _names_files(opened) else ()
    return [os.path.realpath(opened.file.path), *further]


def _names_files(opened: Opened) -> bool:
    """Return True if a trajectory names files; reading in pieces takes half the time of reading all at once."""
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
    """Return the existing files that a trajectory names, and those that these name."""
    files: dict[str, LogFile] = {}
    waiting = deque([opened.file])
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
    for session in _sessions(files) if len(files) > 1 else (files,):
        run = Run("atif", privacy)
        by_file: dict[str, list[Trajectory]] = {}
        for file in session:
            data = logs.contents(file)
            try:
                document = reading.decode(data)
            except (DecodeError, RecursionError) as error:
                raise DataFileError(f"{quote_path(file.name)} is not a trajectory: {error}") from error
            is_ours = len(session) == 1 and document.is_ours
            if is_ours and (trace := restore(data, file, privacy, run.report)) is not None:
                yield trace
                break
            by_file[os.path.realpath(file.path)] = reading.read_trajectories(file, data, document, run)
        else:
            yield _Session(by_file, run).trace()


def _sessions(files: Sequence[LogFile]) -> Iterator[list[LogFile]]:
    """Yield the files of each session: one that no other names, with all that it names directly or by others."""
    by_path = {os.path.realpath(file.path): file for file in files}
    named = {path: _named_files(file, logs.contents(file)) for path, file in by_path.items()}
    for session in families({path: [name for name in names if name in by_path] for path, names in named.items()}):
        yield [by_path[path] for path in session]


class _Session:
    """Links the trajectories of a session, given by their files; the first is that of the agent that people ask."""

    def __init__(self, by_file: Mapping[str, list[Trajectory]], run: Run) -> None:
        self._run = run
        self._trees = {path: trees[0] for path, trees in by_file.items()}  # the outermost trajectory of each file
        self._all = [tree for trees in by_file.values() for tree in trees]
        self._first = self._all[0]
        # by the `id` of a trajectory, as references to one another would keep them all in memory
        self._homes = {id(child): tree for tree in self._all for child in tree.children}  # the trajectory around it
        self._heads: dict[int, Trajectory] = {}  # the first trajectory that it continues
        self._parents: dict[int, Trajectory] = {}  # the trajectory of the agent that spawned its agent
        self._spawns: dict[str, steps.ToolCall] = {}  # by the key of the spawned agent
        self._spawning: set[int] = set()  # calls that have spawned an agent, by `id`
        self._delegations: list[tuple[Trajectory, Delegation, str]] = []  # with parent and key of the sub-agent
        self._continue()
        self._link_subagents()

    def _head(self, tree: Trajectory) -> Trajectory:
        return self._heads.get(id(tree), tree)

    def _continue(self) -> None:
        """Add the steps of a trajectory that continues another behind those of the other."""
        for tree in self._all:
            further = self._trees.get(_path_beside(tree.file, tree.continued))
            head = self._head(tree)
            if further is None or id(further) in self._heads or further in (head, self._first):
                continue
            self._heads[id(further)] = head
            for step in further.thread.steps:
                head.thread.add(step)
            further.thread.steps = []

    def _link_subagents(self) -> None:
        """Find the parent of each agent: by references, else the trajectory in which its own is embedded."""
        self._add(self._first, self._first.name)
        self._first.thread.is_root = True
        for tree in self._all:
            for reference in tree.references:
                child = self._resolve(tree, reference)
                if child is None:  # its trajectory is missing
                    key = f"absent {len(self._run.agents)}"
                    stem = masked_path(os.path.basename(reference.path).removesuffix(".json"))
                    name = masked(reference.id) or reference.name or stem or "agent"
                    self._run.agent(key, name, reference.name)
                elif id(child) in self._parents or self._is_above(child, tree):
                    continue
                else:
                    key = child.thread.key
                    self._adopt(tree, child, reference.name)
                self._delegations.append((self._head(tree), reference, key))
                self._spawn(tree, key, reference.call, reference.step)
        for tree in self._all:
            for child in tree.children:
                if id(child) not in self._parents:
                    first = child.thread.steps[0] if child.thread.steps else steps.Note(NO_TIME, child.begin)
                    self._run.report.note(Problem.SPAWN_INFERRED, str(first.place))
                    self._adopt(tree, child)
                    self._spawn(tree, child.thread.key, None, steps.Note(first.time, first.place, 1.0))
        for tree in self._all:
            if tree.thread.key not in self._run.agents and id(tree) not in self._heads:
                self._add(tree, tree.name or masked(tree.id))

    def _add(self, tree: Trajectory, name: str, role: str = "") -> None:
        self._run.agents[tree.thread.key] = tree.thread
        self._run.agent(tree.thread.key, name or "agent", role)

    def _resolve(self, tree: Trajectory, reference: Delegation) -> Trajectory | None:
        """Return the trajectory that a reference names: in a file, or embedded in this one or one around it."""
        child = self._trees.get(_path_beside(tree.file, reference.path))
        home: Trajectory | None = tree
        while child is None and home is not None and reference.id:
            child, home = home.by_id.get(reference.id), self._homes.get(id(home))
        return child

    def _is_above(self, tree: Trajectory, other: Trajectory) -> bool:
        """Return True for an ancestor of another trajectory, and for one that cannot be spawned."""
        above: Trajectory | None = self._head(other)
        while above is not None and above is not tree:
            above = self._parents.get(id(above))
        return above is tree or tree is self._first or id(tree) in self._heads

    def _adopt(self, tree: Trajectory, child: Trajectory, role: str = "") -> None:
        """Make a trajectory that of a sub-agent, whose inputs come from its parent and not from a person."""
        name = child.name if child.name not in ("", self._first.name) else masked(child.id) or child.name
        self._add(child, name, role)
        self._parents[id(child)] = self._head(tree)
        child.thread.steps = [
            steps.Note(step.time, step.place, step.order) if isinstance(step, steps.UserInput) else step
            for step in child.thread.steps
        ]

    def _spawn(self, tree: Trajectory, child: str, call: steps.ToolCall | None, step: steps.Step) -> None:
        """Add a spawn by a call of the parent or, if there is none, before a step."""
        parent = self._head(tree).thread
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
        if any(tree.has_times for tree in self._all):
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

    def _note_returns(self) -> None:
        """Note the returns of sub-agents: with the result of their call, or later if they worked on."""
        referring = {id(reference.step) for _, reference, _ in self._delegations}
        after: dict[int, float] = {}  # the time of the next later step, for each result that refers to a sub-agent
        for thread in {id(receiver): receiver.thread for receiver, _, _ in self._delegations}.values():
            later, before = _NEVER, _NEVER
            for step in reversed(thread.steps):
                later, before = before if before > step.time else later, step.time
                if id(step) in referring:
                    after[id(step)] = later
        notifications: dict[int, list[Notification]] = {}
        for tree in self._all:
            for notification in tree.notifications:
                if (call := tree.calls.get(notification.call_id)) is not None:
                    notifications.setdefault(id(call), []).append(notification)
        for _, reference, child in self._delegations:
            step, done = reference.step, self._run.agents[child].steps
            received = notifications.get(id(reference.call), []) if done else []
            for notification in received:
                self._run.returned(child, notification.step, notification.status, notification.ref)
            if received or not isinstance(step, steps.ToolResult):
                continue
            if done:
                last = max(done_step.last_time for done_step in done)
                time = max(last, step.time) if last <= after.get(id(step), last) else None
            else:
                time = after[id(step)] if after.get(id(step), _NEVER) < _NEVER else step.time
            if time is not None:
                self._run.returned(child, steps.Note(time, step.place, step.order), step.status, step.ref)

    def trace(self) -> Trace:
        """Return the trace of the session."""
        first, run = self._first, self._run
        unit = self._fill_times()
        self._note_returns()
        self._compare_totals()
        run.name = masked(first.id or first.session) or first.file.stem
        run.system, run.version = first.name, first.version
        return run.trace(unit=unit, nothing=f"no step of an agent in {first.file.name}")

    def _compare_totals(self) -> None:
        """Compare stated totals with the sums: of a trajectory, of all below it, or of all that it continues."""
        sums = {id(tree): tree.spent for tree in self._all}
        for tree in reversed(self._all):
            if (parent := self._parents.get(id(tree))) is not None:
                sums[id(parent)] = _sum((sums[id(parent)], sums[id(tree)]))
        before = (0, 0)
        has_absent = any(not self._run.agents[child].steps for _, _, child in self._delegations)
        for tree in self._all:
            if tree is self._first or id(tree) in self._heads:
                before = _sum((before, sums[id(tree)]))
            if tree.totals is None:
                continue
            self._run.report.enter(LedgerLine.FINAL_METRICS, total=sum(tree.totals))
            if tree.totals not in (tree.spent, sums[id(tree)], before) and not has_absent and not tree.without:
                self._run.report.note(Problem.FINAL_METRICS_DIFFER, str(tree.begin))


def _sum(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    prompts, completions = zip(*pairs, strict=True)
    return sum(prompts), sum(completions)
