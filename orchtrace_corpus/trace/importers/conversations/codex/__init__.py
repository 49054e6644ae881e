"""Codex CLI rollouts: threads that spawn one another, one file for each."""

import re
from collections.abc import Iterable, Iterator, Sequence

from orchtrace_corpus.trace.importers.conversations.codex import rows
from orchtrace_corpus.trace.importers.conversations.codex.rollout import LEAD_NAME, LEAD_PATH, Rollout, Spawn
from orchtrace_corpus.trace.importers.conversations.codex.rows import recognises, session_keys
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, LogFile, LogReader
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.model.terms import Status
from orchtrace_corpus.trace.model.trace import Trace

__all__ = ["read", "recognises", "session_keys"]


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of the threads in some rollouts."""
    run = Run("codex", privacy)
    threads: dict[str, tuple[rows.Meta, list[LogFile]]] = {}
    for file in sorted(files, key=rows.shown):
        with LogReader(file) as reader:
            meta = rows.first_meta(reader)
        threads.setdefault(meta.id, (meta, []))[1].append(file)
    sources = {source for meta, _ in threads.values() for source in (meta.parent, meta.forked)}
    rollouts = [Rollout(own, meta, run, is_source=meta.id in sources) for meta, own in threads.values()]
    by_id = {rollout.meta.id: rollout for rollout in rollouts}
    for rollout in rollouts:
        rollout.leave_out_copies(by_id)
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
    """The agents of a session, under all the names by which its threads speak of one another."""

    def __init__(self, run: Run, rollouts: Sequence[Rollout]) -> None:
        self._run, self._rollouts = run, rollouts
        self._by_id = {rollout.meta.id: rollout for rollout in rollouts}
        self._keys: dict[str, str] = {}
        self._spawned: set[int] = set()  # the calls that have spawned a thread, by `id`
        # the calls of a thread that spawn agents, by all that may name these; those that name no thread at hand also
        # by marks of their tasks
        self._spawns: dict[str, tuple[dict[str, Spawn], dict[int, list[Spawn]]]] = {}
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
        for rollout in sorted(self._rollouts, key=lambda rollout: rollout.meta.created or 0.0):
            meta = rollout.meta
            parent = self._by_id.get(meta.parent)
            if parent is None or not rollout.thread.steps:
                continue
            spawn = self._find_spawn(rollout, parent)
            if spawn is not None:
                self._spawned.add(id(spawn))
                self._run.agent(meta.id, role=spawn.call.role)
                self._note_names(spawn.names, meta.id)
            self._run.spawn(meta.id, parent.meta.id, spawn.call if spawn is not None else "", waits=False)
        for rollout in self._rollouts:
            refused = rollout.refused()
            threads = {start.call_id: thread for thread, start in reversed(rollout.started.items())}
            for spawn in rollout.spawns:
                answer = spawn.call.answer
                if id(spawn) in self._spawned:
                    continue
                if id(spawn.call) in refused and answer is not None:
                    answer.status, answer.error = Status.ERROR, answer.error or "tool_error"
                if answer is not None and answer.status is Status.ERROR:  # a call that failed has spawned none
                    spawn.call.purpose = steps.TOOL
                else:
                    self._add_absent_agent(spawn, rollout, threads.get(spawn.call_id, ""))
        for rollout in self._rollouts:
            calls = {spawn.call_id for spawn in rollout.spawns}
            for thread, start in rollout.started.items():
                is_known = self._keys.get(thread) or self._keys.get(start.path)
                if thread and not is_known and start.call_id not in calls:  # a script may have called
                    self._run.agent(thread, rows.path_leaf(start.path))
                    rollout.thread.steps.append(start.concluded)
                    self._run.spawn(thread, rollout.meta.id, start.concluded, waits=False)
                    self._note_names((thread, start.path, rows.path_leaf(start.path)), thread)

    def _find_spawn(self, rollout: Rollout, parent: Rollout) -> Spawn | None:
        meta = rollout.meta
        if parent.meta.id not in self._spawns:
            self._spawns[parent.meta.id] = self._index_spawns(parent)
        by_name, by_task = self._spawns[parent.meta.id]
        start = parent.started.get(meta.id)
        started = (start.call_id or start.path) if start else ""
        names = (started, meta.call, meta.id, meta.path, rows.path_leaf(meta.path))
        spawn = next((by_name[name] for name in names if name in by_name), None)
        if spawn is not None and id(spawn) not in self._spawned:
            return spawn
        candidates = by_task.get(rollout.arrivals[0].text_mark, []) if rollout.arrivals else []
        while candidates and id(candidates[0]) in self._spawned:
            del candidates[0]
        return candidates[0] if candidates else None

    def _index_spawns(self, rollout: Rollout) -> tuple[dict[str, Spawn], dict[int, list[Spawn]]]:
        by_name: dict[str, Spawn] = {}
        by_task: dict[int, list[Spawn]] = {}
        refused = rollout.refused()
        for spawn in rollout.spawns:
            is_refused = id(spawn.call) in refused
            for name in (spawn.call_id, *(() if is_refused else spawn.names)):
                if name:
                    by_name.setdefault(name, spawn)
            if not is_refused and not any(name in self._by_id for name in spawn.names):
                by_task.setdefault(spawn.task_mark, []).append(spawn)
        return by_name, by_task

    def _add_absent_agent(self, spawn: Spawn, rollout: Rollout, thread: str) -> None:
        """Add a sub-agent without a rollout, called as its task, else as its thread, else as its role."""
        call, key = spawn.call, f"{rollout.meta.id} {spawn.call.order}"
        tasks = [leaf for name in spawn.names if not re.fullmatch(rows.UUID, name) and (leaf := rows.path_leaf(name))]
        names = [*reversed(tasks), thread, *spawn.names, f"{call.role or 'agent'}:{call.id[-8:]}"]
        self._run.agent(key, spawn.nickname or next(filter(None, names)), call.role)
        self._run.spawn(key, rollout.meta.id, call, waits=False)
        self._note_names((*spawn.names, thread, spawn.nickname), key)

    def link_messages(self) -> None:
        """Link messages, ends and returns to agents, and what arrives to what was sent."""
        for rollout in self._rollouts:
            for addressed in rollout.addressed:
                call, key = addressed.call, self._find(addressed.name)
                if call.purpose is steps.MESSAGE:
                    self._run.address(call, key or self._find_or_add(addressed.name), text=addressed.text_mark)
                elif call.answer and call.answer.status is Status.OK and key not in ("", rollout.meta.id):
                    self._run.address(call, key, steps.CLOSE)
                else:
                    call.purpose = steps.TOOL
            for ending in rollout.endings:
                key = self._find(ending.name)
                if not key and isinstance(ending.step, steps.Delivery):
                    self._run.receive(rollout.meta.id, ending.step, self._find_or_add(ending.name))
                elif key not in ("", rollout.meta.id):
                    self._run.add_return(key, ending.step, ending.status, ref=ending.ref, receiver=rollout.meta.id)
            for arrival in rollout.arrivals:
                author = self._find_or_add(arrival.author) if arrival.author else ""
                self._run.receive(rollout.meta.id, arrival.step, author, arrival.text_mark)
