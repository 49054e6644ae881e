"""Codex CLI rollouts: threads that spawn one another, one file for each."""

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from orchtrace_corpus.trace.importers.conversations.codex import rows
from orchtrace_corpus.trace.importers.conversations.codex.conversation import Evidence, Spawn, Start
from orchtrace_corpus.trace.importers.conversations.codex.reading import LEAD_NAME, LEAD_PATH, Rollout, Trails
from orchtrace_corpus.trace.importers.conversations.codex.rows import recognises, ties
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, LogFile, Opened
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import Trace

__all__ = ["read", "recognises", "ties"]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of the threads in some rollouts."""
    run = Run("codex", privacy)
    threads: dict[str, tuple[rows.Meta, list[LogFile]]] = {}
    for file in sorted(files, key=rows.shown):
        with Opened(file) as opened:
            meta = rows.first_meta(opened)
        threads.setdefault(meta.id, (meta, []))[1].append(file)
    sources = {source for meta, _ in threads.values() for source in (meta.parent, meta.forked)}
    rollouts = [Rollout(own, meta, run, is_source=meta.id in sources) for meta, own in threads.values()]
    trails = {rollout.meta.id: Trails(rollout.trail) for rollout in rollouts}
    for rollout in rollouts:
        rollout.leave_out_copies(trails)
    acting = [rollout.meta for rollout in rollouts if rollout.thread.steps]
    if not acting:
        raise EmptyLogError(f"no item of a conversation in {', '.join(map(rows.shown, files[:3]))}")
    first = min(acting, key=lambda meta: (bool(meta.parent), meta.created or 0.0))
    run.name, run.version = first.id, first.version
    links = Links(run, rollouts)
    links.link_spawns()
    links.link_messages()
    yield run.trace()


class Links:
    """The agents of a session, under all the names by which its threads speak of one another.

    Args:
        run: The run that has the threads, each by its id.
        rollouts: The threads.
    """

    def __init__(self, run: Run, rollouts: Sequence[Rollout]) -> None:
        self._run, self._rollouts = run, rollouts
        self._by_id = {rollout.meta.id: rollout for rollout in rollouts}
        self._keys: dict[str, str] = {}
        self._indices: dict[str, _SpawnIndex] = {}
        for rollout in rollouts:
            meta = rollout.meta
            self._note_names((meta.id, meta.path, meta.nickname, rows.path_leaf(meta.path)), meta.id)
            if rollout.thread.is_root:
                self._note_names([LEAD_PATH], meta.id)

    def _note_names(self, names: Iterable[str], key: str) -> None:
        for name in names:
            if name:
                self._keys.setdefault(name, key)

    def _find(self, name: str) -> str:
        """Return the key of an agent by what the log calls it; empty where it has none of that name."""
        return self._keys.get(name) or self._keys.get(name.rpartition("/")[2], "")

    def _find_or_add(self, name: str) -> str:
        """Return the key of an agent by what the log calls it; one that it does not know otherwise is added."""
        key = self._find(name)
        if not key:
            key = self._keys[name] = f"{name} (stranger)"
            self._run.agent(key, LEAD_NAME if name == LEAD_PATH else rows.path_leaf(name) or "(unknown)")
        return key

    def link_spawns(self) -> None:
        """Link each thread to the call that spawned it; where there is none, the spawn follows from the thread."""
        spawned: set[int] = set()
        for rollout in sorted(self._rollouts, key=lambda rollout: rollout.meta.created or 0.0):
            meta = rollout.meta
            parent = self._by_id.get(meta.parent)
            if parent is None or not rollout.thread.steps:
                continue
            spawn = self._find_spawn(rollout, parent, spawned)
            if spawn is None:
                self._run.spawn(meta.id, parent.meta.id, waits=False)
                continue
            spawned.add(id(spawn))
            self._run.agent(meta.id, role=spawn.call.role)
            self._run.spawn(meta.id, parent.meta.id, spawn.call, waits=False)
            self._note_names(spawn.names, meta.id)
        for rollout in self._rollouts:
            evidence = rollout.conversation.evidence
            refused = evidence.refused()
            threads = {start.call_id: thread for thread, start in reversed(evidence.started.items())}
            for spawn in evidence.spawns:
                if id(spawn) in spawned:
                    continue
                if id(spawn.call) in refused and spawn.call.answer is not None:
                    spawn.call.answer.status = Status.ERROR
                    spawn.call.answer.error = spawn.call.answer.error or "tool_error"
                self._add_absent_agent(spawn, rollout, threads.get(spawn.call_id, ""))
        for rollout in self._rollouts:
            evidence = rollout.conversation.evidence
            calls = {spawn.call_id for spawn in evidence.spawns}
            for thread, start in evidence.started.items():
                is_known = self._keys.get(thread) or self._keys.get(start.path)
                if thread and not is_known and start.call_id not in calls:
                    self._add_started_agent(thread, start, rollout)

    def _find_spawn(self, rollout: Rollout, parent: Rollout, spawned: set[int]) -> Spawn | None:
        meta = rollout.meta
        index = self._indices.get(parent.meta.id)
        if index is None:
            index = self._indices[parent.meta.id] = _SpawnIndex(parent.conversation.evidence, self._by_id)
        start = parent.conversation.evidence.started.get(meta.id)
        started = (start.call_id or start.path) if start else ""
        for name in (started, meta.call, meta.id, meta.path, rows.path_leaf(meta.path)):
            if name in index.by_name:
                spawn = index.by_name[name]
                if id(spawn) not in spawned:
                    return spawn
                break
        arrivals = rollout.conversation.evidence.arrivals
        candidates = index.by_task.get(arrivals[0].text_mark, []) if arrivals else []
        while candidates and id(candidates[0]) in spawned:
            del candidates[0]
        return candidates[0] if candidates else None

    def _add_absent_agent(self, spawn: Spawn, rollout: Rollout, thread: str) -> None:
        """Add a sub-agent that has no rollout among the files; a call that failed spawned none."""
        call = spawn.call
        if call.answer is not None and call.answer.status is Status.ERROR:
            call.purpose = steps.TOOL
            return
        key = f"{rollout.meta.id} {call.order}"
        self._run.agent(key, spawn.nickname or _choose_name(spawn, thread), call.role)
        self._run.spawn(key, rollout.meta.id, call, waits=False)
        self._note_names((*spawn.names, thread, spawn.nickname), key)

    def _add_started_agent(self, thread: str, start: Start, rollout: Rollout) -> None:
        """Add a sub-agent that has no rollout, and no call that spawned it: a script may have called."""
        self._run.agent(thread, rows.path_leaf(start.path))
        rollout.thread.steps.append(start.concluded)
        self._run.spawn(thread, rollout.meta.id, start.concluded, waits=False)
        self._note_names((thread, start.path, rows.path_leaf(start.path)), thread)

    def link_messages(self) -> None:
        """Link messages, ends and returns to agents, and what arrives to what was sent."""
        sent: dict[tuple[str, int], list[steps.ToolCall]] = {}
        for rollout in self._rollouts:
            for addressed in rollout.conversation.evidence.addressed:
                call, key = addressed.call, self._find(addressed.name)
                if call.purpose is steps.MESSAGE:
                    key = key or self._find_or_add(addressed.name)
                    self._run.address(call, key)
                    sent.setdefault((key, addressed.text_mark), []).append(call)
                elif call.answer and call.answer.status is Status.OK and key not in ("", rollout.meta.id):
                    self._run.address(call, key, steps.CLOSE)
                else:
                    call.purpose = steps.TOOL
            for ending in rollout.conversation.evidence.endings:
                key = self._find(ending.name)
                if not key and isinstance(ending.step, steps.Delivery):
                    self._receive(ending.name, ending.step, rollout)
                elif key not in ("", rollout.meta.id):
                    self._run.returned(key, ending.step, ending.status, ref=ending.ref, receiver=rollout.meta.id)
        for calls in sent.values():
            calls.sort(key=attrgetter("time"))
        for rollout in self._rollouts:
            for arrival in rollout.conversation.evidence.arrivals:
                calls = sent.get((rollout.meta.id, arrival.text_mark), [])
                if calls and calls[0].time <= arrival.step.time:
                    arrival.step.sent = calls.pop(0)
                elif arrival.author:
                    self._receive(arrival.author, arrival.step, rollout)

    def _receive(self, author: str, delivery: steps.Delivery, rollout: Rollout) -> None:
        """Say who wrote a message that no known call has sent."""
        key = self._find_or_add(author)
        if key != rollout.meta.id:
            self._run.sent_by(delivery, key)


class _SpawnIndex:
    """The calls of a thread that spawn agents."""

    def __init__(self, evidence: Evidence, threads: Iterable[str]) -> None:
        self.by_name: dict[str, Spawn] = {}  # the calls by all that may name their sub-agents
        # the calls by marks of their tasks, those that name no thread at hand
        self.by_task: dict[int, list[Spawn]] = {}
        refused = evidence.refused()
        for spawn in evidence.spawns:
            if spawn.call_id:
                self.by_name.setdefault(spawn.call_id, spawn)
            if id(spawn.call) in refused:
                continue
            for name in spawn.names:
                if name:
                    self.by_name.setdefault(name, spawn)
            if not any(name in threads for name in spawn.names):
                self.by_task.setdefault(spawn.task_mark, []).append(spawn)


def _choose_name(spawn: Spawn, thread: str) -> str:
    """Choose a name for an agent that has only a call: that of its task, else its thread, else its role."""
    tasks = [leaf for name in spawn.names if not rows.is_uuid(name) and (leaf := rows.path_leaf(name))]
    if tasks:
        return tasks[-1]
    names = [name for name in (thread, *spawn.names) if name]
    return names[0] if names else f"{spawn.call.role or 'agent'}:{spawn.call.id[-8:]}"
