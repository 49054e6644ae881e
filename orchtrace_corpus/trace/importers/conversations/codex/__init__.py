"""Codex CLI rollouts: threads that spawn one another, one file for each.

A session is put together here: which call spawned which thread, what came back, what was copied.
"""

from collections.abc import Iterable, Iterator, Sequence

from orchtrace_corpus.trace.importers.conversations.codex.conversation import Arrival, Spawn, SpawnEvidence
from orchtrace_corpus.trace.importers.conversations.codex.counting import spend
from orchtrace_corpus.trace.importers.conversations.codex.reading import Rollout, Trails, boundary
from orchtrace_corpus.trace.importers.conversations.codex.rows import is_uuid
from orchtrace_corpus.trace.importers.conversations.codex.sources import Meta, first_meta, recognises, shown, ties
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.identity import Names
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.times import NO_TIME
from orchtrace_corpus.trace.importers.core.transcript_events import add_events
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.trace import Excluded, Status, Trace

__all__ = ["read", "recognises", "ties"]

MAIN = "main"
"""The agent that the user talks to."""

LEAD_PATH = "/root"
"""The path of that agent, at which those of all others begin."""


def link(rollouts: Sequence[Rollout], report: ImportReport) -> steps.Linked:
    """Put a session together."""
    trails = {one.meta.id: Trails(one.trail) for one in rollouts}
    restarts = sum(_leave_out_copies(rollout, trails, report) for rollout in rollouts)
    links = _Links(rollouts, report)
    links.find_parents()
    missing = links.name_childless()
    links.aim()
    without = sum(_count_unpaid(rollout, report) for rollout in rollouts)
    if missing:
        report.enter(LedgerLine.NO_ROLLOUT, missing)
    odd = sum(rollout.conversation.odd for rollout in rollouts)
    if odd:
        report.enter(LedgerLine.NO_NUMBER, odd)
    lacking = {
        Missing.ROLLOUTS: missing,
        Missing.USAGE: without,
        Missing.NUMBERS: odd,
        Missing.RESTARTS: restarts,
    }
    return steps.Linked([rollout.thread for rollout in rollouts if rollout.thread.steps], lacking)


def _leave_out_copies(rollout: Rollout, trails: dict[str, Trails], report: ImportReport) -> int:
    """Leave history that was copied into a thread out of it, and give its own answers their tokens.

    Returns how often its counter began anew with tokens of answers that the log does not have.
    """
    meta, thread, counts = rollout.meta, rollout.thread, rollout.conversation.counts
    is_child = bool(meta.parent or meta.forked)
    end = 0
    if is_child:
        others = (trails[other] for other in (meta.forked, meta.parent) if other in trails and other != meta.id)
        end = boundary(rollout.trail, next(others, None), meta)
    copied, restarts = spend(counts, end, is_child=is_child, report=report)
    if not end:
        return restarts
    kept = [step for step in thread.steps if step.order > end]
    paid = {id(count.call): count for count in counts if count.row > end and count.call is not None}
    for step in thread.steps:
        if step.order <= end and isinstance(step, steps.ModelCall) and id(step) in paid:
            count = paid[id(step)]  # its tokens are the thread's own, so it is, too
            step.place, step.order = count.place, float(count.row)
            kept.append(step)
    first = min((step.time for step in kept), default=0.0)
    begins = next((step for step in kept if step.order > end), None)
    if not meta.parent and isinstance(begins, steps.UserInput):
        copied_steps = (step for step in thread.steps if step.order <= end)
        begins.since = max((step.last_time for step in copied_steps), default=NO_TIME)
    steps.part(step for step in thread.steps if step.order <= end)
    if copied is not None:
        kept.append(steps.CopiedHistory(first, steps.Place(counts[0].place.file, counts[0].place.line), 0.0, copied))
    thread.steps = kept
    evidence = rollout.conversation.evidence
    evidence.spawns = [spawn for spawn in evidence.spawns if spawn.tool_call.order > end]
    evidence.aimed = [aimed for aimed in evidence.aimed if aimed.tool_call.order > end]
    evidence.endings = [ending for ending in evidence.endings if ending.step.order > end]
    evidence.arrivals = [arrival for arrival in evidence.arrivals if arrival.step.order > end]
    rollout.conversation.turns = [turn for turn in rollout.conversation.turns if turn.row > end]
    return restarts


def _count_unpaid(rollout: Rollout, report: ImportReport) -> int:
    """How many answers have no tokens, and none behind them in the thread that would contain theirs."""
    calls = [step for step in rollout.thread.steps if isinstance(step, steps.ModelCall)]
    last = max((step.order for step in calls if step.tokens is not None), default=-1.0)
    without = [step for step in calls if step.tokens is None]
    unknown = sum(step.order > last for step in without)
    if len(without) > unknown:
        report.enter(LedgerLine.COVERED, len(without) - unknown)
    unknown = max(unknown - rollout.conversation.odd, 0)
    if unknown:
        report.enter(LedgerLine.NO_USAGE, unknown)
    return unknown


class _Links:
    """Who spawned whom in a session."""

    def __init__(self, rollouts: Sequence[Rollout], report: ImportReport) -> None:
        self._rollouts = rollouts
        self._report = report
        self._by_id = {rollout.meta.id: rollout for rollout in rollouts}
        self._parents: dict[str, Rollout] = {}
        self._indices: dict[str, tuple[dict[str, Spawn], dict[int, list[Spawn]]]] = {}  # see `_index`
        self._agents = Names()
        self._names: dict[str, str] = {}  # agents by every name under which the log speaks of them
        for rollout in rollouts:
            meta, thread = rollout.meta, rollout.thread
            thread.is_root = not meta.parent
            thread.agent = self._new_name(MAIN if thread.is_root else meta.nickname or _leaf(meta.path) or meta.id)
            known = (meta.id, meta.path, meta.nickname, _leaf(meta.path))
            self._note_names(filter(None, known), thread.agent)
            if thread.is_root:
                self._note_names([LEAD_PATH], thread.agent)

    def _note_names(self, names: Iterable[str], agent: str) -> None:
        for name in names:
            self._names.setdefault(name, agent)

    def _new_name(self, wanted: str) -> str:
        return self._agents.new(masked(wanted) or "agent")

    def find_parents(self) -> None:
        """Find the call that spawned each thread; where there is none, conclude it from the thread itself."""
        for rollout in sorted(self._rollouts, key=lambda one: one.meta.created or 0.0):
            if not rollout.meta.parent or not rollout.thread.steps:
                continue
            parent = self._by_id.get(rollout.meta.parent)
            if parent is None or self._is_above(rollout, parent):
                self._report.note(Problem.NO_PARENT_ROLLOUT, str(rollout.thread.steps[0].place))
                continue
            rollout.thread.parent = parent.thread.agent
            self._parents[rollout.meta.id] = parent
            spawn = self._spawn_of(rollout, parent)
            if spawn is not None:
                spawn.tool_call.target = rollout.thread.agent
                spawn.tool_call.role = rollout.thread.role = rollout.thread.role or spawn.tool_call.role
                self._note_names(spawn.names, rollout.thread.agent)
                continue
            first = min(rollout.thread.steps, key=lambda step: step.at)
            concluded = steps.ToolCall(first.time, first.place, purpose=steps.SPAWN, is_inferred=True)
            concluded.target, concluded.role = rollout.thread.agent, rollout.thread.role
            parent.thread.add(concluded)
            self._report.note(Problem.SPAWN_INFERRED, str(first.place))

    def _is_above(self, one: Rollout, other: Rollout) -> bool:
        """Whether one thread is the other or above it, so that it cannot be its child."""
        above: Rollout | None = other
        while above is not None and above is not one:
            above = self._parents.get(above.meta.id)
        return above is one

    def _spawn_of(self, rollout: Rollout, parent: Rollout) -> Spawn | None:
        meta, evidence = rollout.meta, parent.conversation.evidence
        if parent.meta.id not in self._indices:
            self._indices[parent.meta.id] = self._index(evidence)
        by_name, by_task = self._indices[parent.meta.id]
        started = evidence.started.get(meta.id, "")
        names = (started, meta.call, meta.id, meta.path, _leaf(meta.path))
        found = next((by_name[name] for name in names if name in by_name), None)
        if found is None or found.tool_call.target:
            arrivals = rollout.conversation.evidence.arrivals
            waiting = by_task.get(arrivals[0].mark, []) if arrivals else []
            while waiting and waiting[0].tool_call.target:
                del waiting[0]
            found = waiting[0] if waiting else None
        return found

    def _index(self, evidence: SpawnEvidence) -> tuple[dict[str, Spawn], dict[int, list[Spawn]]]:
        """The spawns of a thread by what may name their children, and by the tasks of those that name none."""
        by_name: dict[str, Spawn] = {}
        by_task: dict[int, list[Spawn]] = {}
        for spawn in evidence.spawns:
            by_name.setdefault(spawn.id, spawn)
            if evidence.is_refused(spawn):
                continue
            for name in filter(None, spawn.names):
                by_name.setdefault(name, spawn)
            if not any(name in self._by_id for name in spawn.names):
                by_task.setdefault(spawn.mark, []).append(spawn)
        return by_name, by_task

    def name_childless(self) -> int:
        """Name the sub-agents of which there is no rollout, and say how many."""
        missing = 0
        for rollout in self._rollouts:
            evidence = rollout.conversation.evidence
            started = {call: thread for thread, call in reversed(evidence.started.items())}
            for spawn in evidence.spawns:
                tool_call = spawn.tool_call
                if tool_call.target:
                    continue
                result = tool_call.answer
                if evidence.is_refused(spawn) and result is not None:
                    result.status, result.error = Status.ERROR, result.error or "tool_error"
                if result is not None and result.status is Status.ERROR:
                    tool_call.purpose = steps.TOOL  # nothing came into being
                    continue
                names = [name for name in (*spawn.names, started.get(spawn.id, "")) if name]
                tool_call.target = self._new_name(spawn.nickname or self._name_of(spawn, names))
                self._note_names(filter(None, [*names, spawn.nickname]), tool_call.target)
                missing += 1
                self._report.note(Problem.NO_ROLLOUT, str(tool_call.place))
        return missing

    def _name_of(self, spawn: Spawn, names: Sequence[str]) -> str:
        """Choose a name for an agent of which there is only the call: that of its task, else its id, else its role."""
        tasks = [leaf for name in names if not is_uuid(name) and (leaf := _leaf(name))]
        if tasks:
            return tasks[-1]
        return names[-1] if names else f"{spawn.tool_call.role or 'agent'}:{spawn.tool_call.id[-8:]}"

    def aim(self) -> None:
        """Aim messages, ends and returns at agents, and tie what arrives to what was sent."""
        returns = []
        sent: dict[tuple[str, int], list[steps.ToolCall]] = {}
        for rollout in self._rollouts:
            thread = rollout.thread
            for aimed in rollout.conversation.evidence.aimed:
                tool_call, target = aimed.tool_call, self._called(aimed.name)
                if tool_call.purpose is steps.MESSAGE:
                    tool_call.target = target or self._stranger(aimed.name)
                    sent.setdefault((tool_call.target, aimed.mark), []).append(tool_call)
                elif tool_call.answer and tool_call.answer.status is Status.OK and target not in ("", thread.agent):
                    tool_call.target = target
                else:
                    tool_call.purpose = steps.TOOL
            for ending in rollout.conversation.evidence.endings:
                child = self._called(ending.name)
                if child and child != thread.agent:
                    error = "agent_error" if ending.status is Status.ERROR else ""
                    step = steps.Return.at_step(ending.step, child, ending.status, error, ending.ref)
                    returns.append((thread, step))
                elif not child and isinstance(ending.step, steps.Delivery):
                    ending.step.sender = self._stranger(ending.name)
        steps.note_deciders(rollout.thread for rollout in self._rollouts)
        steps.add_returns(returns, (rollout.thread for rollout in self._rollouts))
        for rollout in self._rollouts:
            for arrival in rollout.conversation.evidence.arrivals:  # of a message that was sent, or else of its task
                waiting = sent.get((rollout.thread.agent, arrival.mark), [])
                if waiting and waiting[0].time <= arrival.step.time:
                    arrival.step.sent = waiting.pop(0)
                elif arrival.author:
                    self._receive(arrival, rollout.thread)

    def _receive(self, arrival: Arrival, thread: steps.Transcript) -> None:
        """A message that no known call has sent."""
        sender = self._called(arrival.author) or self._stranger(arrival.author)
        arrival.step.sender = sender if sender != thread.agent else ""

    def _called(self, name: str) -> str:
        return self._names.get(name) or self._names.get(name.rpartition("/")[2], "")

    def _stranger(self, name: str) -> str:
        """A name for an agent of which the log says nothing else."""
        if name not in self._names:
            is_lead = name == LEAD_PATH
            self._names[name] = self._new_name(MAIN if is_lead else _leaf(name) or "(nobody)")
        return self._names[name]


def _leaf(path: str) -> str:
    """Return the last name of an agent's path below `/root`, which is the lead of the tree, and no folder."""
    return path.removeprefix(f"{LEAD_PATH}/").rpartition("/")[2]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """The trace of the threads in some rollouts.

    Raises:
        DataFileError: A file cannot be read, or none has an item of a conversation.
    """
    report = ImportReport()
    by_thread: dict[str, tuple[Meta, list[LogFile]]] = {}
    for file in sorted(files, key=shown):
        with Opened(file) as opened:
            said = first_meta(opened)
        by_thread.setdefault(said.id, (said, []))[1].append(file)
    sources = {source for said, _ in by_thread.values() for source in (said.parent, said.forked)}
    rollouts = [Rollout(own, said, privacy, report, is_source=said.id in sources) for said, own in by_thread.values()]
    linked = link(rollouts, report)
    if not linked.threads:
        raise EmptyLogError(f"no item of a conversation in {', '.join(map(shown, files[:3]))}")
    first = min(
        (one for one in rollouts if one.thread.steps), key=lambda one: (bool(one.meta.parent), one.meta.created or 0.0)
    )
    name = masked(first.meta.id) or "session"
    builder = Builder(name, name, system="codex", form="codex", version=masked(first.meta.version), privacy=privacy,
                      report=report)  # fmt: skip
    add_events(linked.threads, builder)
    if not builder:
        raise EmptyLogError(f"no item of a conversation in {shown(files[0])}")
    for rollout in rollouts:
        for turn in rollout.conversation.turns if rollout.thread.steps else ():
            builder.turn(rollout.thread.agent, turn.begin, turn.end, turn.run_time, Excluded.SLEEP)
    yield builder.trace(topology=steps.topology(linked.threads), missing=linked.missing)
