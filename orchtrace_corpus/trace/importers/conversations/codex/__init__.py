"""Import Codex CLI rollouts: the logs of threads, which spawn one another."""

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
    """Yield the trace of a session, given by the rollouts of its threads."""
    run = Run("codex", privacy)
    metas: dict[str, rows.Meta] = {}  # by id of the thread
    files_by_thread: dict[str, list[LogFile]] = {}
    for file in sorted(files, key=rows.file_name):
        with LogReader(file) as reader:
            meta = rows.first_meta(reader)
        metas.setdefault(meta.id, meta)
        files_by_thread.setdefault(meta.id, []).append(file)
    sources = {meta.parent for meta in metas.values()} | {meta.forked_from for meta in metas.values()}
    rollouts = []
    for thread, meta in metas.items():
        rollouts.append(Rollout(files_by_thread[thread], meta, run, is_source=thread in sources))
    by_id = {rollout.meta.id: rollout for rollout in rollouts}
    for rollout in rollouts:
        rollout.leave_out_copies(by_id)
    acting = [rollout.meta for rollout in rollouts if rollout.thread.steps]
    if not acting:
        raise EmptyLogError(f"no item of a conversation in {', '.join(map(rows.file_name, files[:3]))}")
    first = min(acting, key=lambda meta: (bool(meta.parent), meta.created or 0.0))
    run.name, run.version = first.id, first.version
    links = Links(run, rollouts)
    links.link_spawns()
    links.link_messages()
    yield run.trace()


class Links:
    """The links between the agents of a session. An agent's key is the id of its thread."""

    def __init__(self, run: Run, rollouts: Sequence[Rollout]) -> None:
        self._run, self._rollouts = run, rollouts
        self._by_id = {rollout.meta.id: rollout for rollout in rollouts}
        self._keys: dict[str, str] = {}  # of agents, by each name that the log has for them
        self._used_spawns: set[int] = set()  # the `id` of each `Spawn` whose thread is known
        self._indexed_spawns: dict[str, tuple[dict[str, Spawn], dict[int, list[Spawn]]]] = {}  # see `_index_spawns`
        for rollout in rollouts:
            meta = rollout.meta
            self._note_names((meta.id, meta.path, meta.nickname, rows.path_leaf(meta.path)), meta.id)
            if rollout.thread.is_root:
                self._note_names([LEAD_PATH], meta.id)

    def _note_names(self, names: Iterable[str], key: str) -> None:
        """Note names of an agent; a name that another agent has remains that agent's."""
        for name in names:
            if name:
                self._keys.setdefault(name, key)

    def _find(self, name: str) -> str:
        """Return the key of an agent by a name or a path; empty if there is no such agent."""
        return self._keys.get(name) or self._keys.get(name.rpartition("/")[2], "")

    def _find_or_add(self, name: str) -> str:
        """Return the key of an agent by a name or a path; add an agent of which the log has only the name."""
        key = self._find(name)
        if not key:
            key = self._keys[name] = f"{name} (stranger)"
            short_name = rows.path_leaf(name) or "(unknown)"
            if name == LEAD_PATH:
                short_name = LEAD_NAME
            self._run.agent(key, short_name)
        return key

    def link_spawns(self) -> None:
        """Link each thread to the call that spawned it, and add the agents without a rollout.

        Without such a call, `Run.spawn` infers the spawn from the thread.
        """
        for rollout in sorted(self._rollouts, key=lambda rollout: rollout.meta.created or 0.0):
            meta = rollout.meta
            parent = self._by_id.get(meta.parent)
            if parent is None or not rollout.thread.steps:
                continue
            spawn = self._find_spawn(rollout, parent)
            if spawn is None:
                self._run.spawn(meta.id, parent.meta.id, waits=False)
                continue
            self._used_spawns.add(id(spawn))
            self._run.agent(meta.id, role=spawn.call.role)
            self._note_names(spawn.names, meta.id)
            self._run.spawn(meta.id, parent.meta.id, spawn.call, waits=False)
        for rollout in self._rollouts:
            refused = rollout.refused_calls()
            threads = {
                start.call_id: thread for thread, start in reversed(rollout.started.items())
            }  # by call, the first
            for spawn in rollout.spawns:
                result = spawn.call.result
                if id(spawn) in self._used_spawns:
                    continue
                if id(spawn.call) in refused and result is not None:
                    result.status, result.error = Status.ERROR, result.error or "tool_error"
                if result is not None and result.status is Status.ERROR:  # it spawned no agent
                    spawn.call.purpose = steps.TOOL
                else:
                    self._add_absent_agent(spawn, rollout, threads.get(spawn.call_id, ""))
        for rollout in self._rollouts:
            call_ids = {spawn.call_id for spawn in rollout.spawns}
            for thread, start in rollout.started.items():
                is_known = thread in self._keys or start.path in self._keys
                if thread and not is_known and start.call_id not in call_ids:  # a script may have spawned it
                    self._run.agent(thread, rows.path_leaf(start.path))
                    rollout.thread.steps.append(start.inferred_call)
                    self._run.spawn(thread, rollout.meta.id, start.inferred_call, waits=False)
                    self._note_names((thread, start.path, rows.path_leaf(start.path)), thread)

    def _find_spawn(self, rollout: Rollout, parent: Rollout) -> Spawn | None:
        """Return the spawn of a thread by its parent: by ids and names, else by the prompt; None if unknown."""
        meta = rollout.meta
        if parent.meta.id not in self._indexed_spawns:
            self._indexed_spawns[parent.meta.id] = self._index_spawns(parent)
        by_name, by_prompt = self._indexed_spawns[parent.meta.id]
        start = parent.started.get(meta.id)
        stated_name = (start.call_id or start.path) if start else ""
        for name in (stated_name, meta.call_id, meta.id, meta.path, rows.path_leaf(meta.path)):
            if name in by_name:
                if id(by_name[name]) not in self._used_spawns:
                    return by_name[name]
                break
        candidates = by_prompt.get(rollout.arrivals[0].text_mark, []) if rollout.arrivals else []
        while candidates and id(candidates[0]) in self._used_spawns:
            del candidates[0]
        return candidates[0] if candidates else None

    def _index_spawns(self, rollout: Rollout) -> tuple[dict[str, Spawn], dict[int, list[Spawn]]]:
        """Return a thread's spawns by id of the call and names of the agent, and by mark of the prompt.

        A spawn that names a thread at hand is not found by its prompt.
        """
        by_name: dict[str, Spawn] = {}
        by_prompt: dict[int, list[Spawn]] = {}
        refused = rollout.refused_calls()
        for spawn in rollout.spawns:
            is_refused = id(spawn.call) in refused
            names = [spawn.call_id] if is_refused else [spawn.call_id, *spawn.names]
            for name in names:
                if name:
                    by_name.setdefault(name, spawn)
            if not is_refused and not any(name in self._by_id for name in spawn.names):
                by_prompt.setdefault(spawn.prompt_mark, []).append(spawn)
        return by_name, by_prompt

    def _add_absent_agent(self, spawn: Spawn, rollout: Rollout, thread: str) -> None:
        """Add a sub-agent without a rollout. Its name is its nickname, else its path, its thread or its role."""
        call, key = spawn.call, f"{rollout.meta.id} {spawn.call.order}"
        paths = [rows.path_leaf(name) for name in reversed(spawn.names) if not re.fullmatch(rows.UUID, name)]
        names = [spawn.nickname, *paths, thread, *spawn.names, f"{call.role or 'agent'}:{call.id[-8:]}"]
        self._run.agent(key, next(filter(None, names)), call.role)
        self._run.spawn(key, rollout.meta.id, call, waits=False)
        self._note_names((*spawn.names, thread, spawn.nickname), key)

    def link_messages(self) -> None:
        """Link messages, ends and returns to the agents that they concern."""
        for rollout in self._rollouts:
            for agent_call in rollout.agent_calls:
                call, key = agent_call.call, self._find(agent_call.name)
                if call.purpose is steps.MESSAGE:
                    self._run.address(call, key or self._find_or_add(agent_call.name), text=agent_call.text_mark)
                elif call.result and call.result.status is Status.OK and key not in ("", rollout.meta.id):
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
