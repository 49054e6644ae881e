"""The family of a Claude Code session: the call, or the script of a workflow, that spawned each agent.

The spawn of a sub-agent follows from, the most certain first: `toolUseId` in its `.meta.json`; the agent that the
result of the call names; rows of progress; the `agentId:` at the end of the result's text; for rows among those
of the session, their parent row; the text of the task.
"""

from collections.abc import Iterator
from typing import Any

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace.importers.conversations.claude_code import rows
from orchtrace_corpus.trace.importers.conversations.claude_code.reading import MAIN, Reading
from orchtrace_corpus.trace.importers.conversations.claude_code.sources import Part, Source
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.values import mapping, objects, text_field
from orchtrace_corpus.trace.model.import_report import LedgerLine, Problem
from orchtrace_corpus.trace.model.trace import Status

_MOST_COMPARED = 100
"""Among so many spawns with the same task, that of the same name is looked for."""


class Family:
    """The sub-agents of a session and their spawns.

    Attributes:
        children: The spawn that each child comes from, by the child's key.
        keys: The keys of agents, by every name under which the log speaks of them.
    """

    def __init__(self, reading: Reading) -> None:
        self.children: dict[str, rows.Spawn] = {}
        self.keys = {key: MAIN if thread.aside else key for key, thread in reading.threads.items()}
        self._run, self._reading, self._threads = reading.run, reading, reading.threads
        self._evidence = reading.content.evidence
        self._meta = dict(self._meta_files())
        results: dict[tuple[str, str], rows.Result] = {}
        for result in reading.content.results:
            results.setdefault((result.thread.key, result.id), result)
        calls: list[rows.Spawn | rows.Addressed] = [*self._evidence.spawns, *self._evidence.addressed]
        for call in calls:
            call.result = results.get((call.thread.key, call.id)) if call.id else None

    def _meta_files(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what the files beside transcripts say of agents."""
        for source in self._reading.sources:
            if source.part is not Part.META:
                continue
            try:
                value = logs.JsonDocument(source.file).value
            except DataFileError:
                value = None
            if isinstance(value, dict):
                yield source.agent, value
                if source.agent in self._threads:
                    self._threads[source.agent].role = masked(text_field(value, "agentType"))
            else:
                self._run.report.note(Problem.UNREADABLE_META, source.shown)

    def find_by_ids(self) -> None:
        """Find children by what names the call or the child."""
        spawns = self._evidence.spawns
        by_id = {spawn.id: spawn for spawn in reversed(spawns) if spawn.id}
        by_row = {spawn.row: spawn for spawn in reversed(spawns) if spawn.row}
        for key, details in self._meta.items():
            self.take(key, by_id.get(text_field(details, "toolUseId")))
        for spawn in spawns:
            if spawn.result is not None:
                self.take(spawn.result.agent, spawn)
        for key, call in self._evidence.progress.items():
            self.take(key, by_id.get(call))
        for spawn in spawns:
            if spawn.result is not None and not spawn.result.agent:
                self.take(spawn.result.tail, spawn)
        for key, beginning in self._evidence.beginnings.items():
            if key not in self.children:
                self.take(key, by_row.get(beginning.parent_row))

    def find_by_task(self) -> None:
        """Find children by their task: first where the names agree, too, then where one side has none."""
        for must_have_name in (True, False):
            free: dict[int, list[rows.Spawn]] = {}
            for spawn in self._evidence.spawns:
                if not spawn.child and spawn.prompt and spawn.call.tool != rows.WORKFLOW_TOOL:
                    free.setdefault(spawn.prompt, []).append(spawn)
            for key, beginning in self._evidence.beginnings.items():
                if key in self.children or key not in self._threads:
                    continue
                name = text_field(self._meta.get(key), "name")
                for spawn in free.get(beginning.prompt, [])[:_MOST_COMPARED]:
                    agree = name == spawn.name if must_have_name else not name or not spawn.name
                    if agree and (name or not must_have_name) and self.take(key, spawn):
                        free[beginning.prompt].remove(spawn)
                        break

    def take(self, key: str, spawn: rows.Spawn | None) -> bool:
        """Make an agent the child of a spawn, and return True if it became that; a second spawn sets it going again."""
        thread = self._threads.get(key)
        if spawn is None or spawn.child or thread is None or thread is spawn.thread or thread.is_root or thread.aside:
            return False
        spawn.child = key
        self._run.spawn(key, self.keys[spawn.thread.key], spawn.call, waits=False)
        if key in self.children:
            return False
        self.children[key] = spawn
        thread.is_warm_up = False
        thread.role = spawn.call.role or thread.role
        self._run.agent(key, spawn.name)
        if spawn.name:
            self.keys.setdefault(spawn.name, key)
        return True

    def name_agents(self) -> None:
        """Name agents as their own files do, where nobody who spawned them did, and add those without a transcript."""
        for key, details in self._meta.items():
            if key in self._run.agents and not self._run.agents[key].is_root:
                self._run.agent(key, text_field(details, "name"))
        for spawn in self._evidence.spawns:
            call, result = spawn.call, spawn.result
            if spawn.child:
                continue
            named = (result.agent or result.run or result.tail) if result is not None else ""
            if result is not None and result.answer.status is Status.ERROR and not named:
                call.purpose = steps.TOOL  # nothing came into being
                continue
            spawn.child = f"{spawn.thread.key} {call.order} (absent)"
            absent = self._run.agent(spawn.child, spawn.name or named or f"{call.role or 'agent'}:{call.id[-8:]}")
            absent.role = call.role
            if call.tool == rows.WORKFLOW_TOOL:
                absent.kind = steps.SCRIPT
            self._run.spawn(spawn.child, self.keys[spawn.thread.key], call, waits=False)
            for name in (named, spawn.name, spawn.id):
                if name:
                    self.keys.setdefault(name, spawn.child)


def find_workflows(reading: Reading, family: Family) -> None:
    """Give each run of a workflow a thread of its own, which spawns the agents of its folder."""
    runs: dict[str, list[Source]] = {}
    for source in reading.sources:
        if source.run:
            runs.setdefault(source.run, []).append(source)
    starts = {spawn.result.run: spawn for spawn in reading.content.evidence.spawns if spawn.result is not None}
    for run_id, sources in runs.items():
        _find_run(run_id, sources, starts.get(run_id), reading, family)


def _find_run(run_id: str, sources: list[Source], start: rows.Spawn | None, reading: Reading, family: Family) -> None:
    members = [source.agent for source in sources if source.part is Part.AGENT and reading.threads[source.agent].steps]
    members = [key for key in dict.fromkeys(members) if key not in family.children]
    if not members:
        return
    run, summary = reading.run, _summary(sources, reading)
    thread = reading.threads[run_id] = run.agent(run_id, role="workflow")
    thread.kind = steps.SCRIPT
    family.keys.setdefault(run_id, run_id)
    labels = _labels(summary, reading)
    returned: set[str] | None = None  # the agents of which the run's journal has a result
    if journal := next((source for source in sources if source.part is Part.JOURNAL), None):
        noted = logs.rows(journal.file._replace(name=journal.shown), run.report)
        returned = {text_field(row, "agentId") for _, row in noted if row.get("type") == "result"}
    for key in members:
        child = reading.threads[key]
        child.role = labels.get(key, "") or child.role
        first = min(child.steps, key=lambda step: step.at)
        last = max(child.steps, key=lambda step: (step.last_time, step.order))
        call = steps.ToolCall(first.time, first.place, is_inferred=True)
        thread.add(call)
        run.spawn(key, run_id, call, waits=False)
        family.children[key] = rows.Spawn(call, thread, "", child=key)
        if returned is None or key in returned:
            run.returned(key, steps.Note(last.last_time, last.place, call.order), is_inferred=True)
    if start is not None and not start.child:
        start.call.role = masked(text_field(summary, "workflowName")) or thread.role
        family.take(run_id, start)


def _summary(sources: list[Source], reading: Reading) -> dict[str, Any]:
    """Return the summary of a run that the program writes when it is over; empty if there is none."""
    summary: dict[str, Any] = {}
    source = next((source for source in sources if source.part is Part.RUN), None)
    if source is not None:
        try:
            summary = mapping(logs.JsonDocument(source.file).value)
        except DataFileError:
            reading.run.report.note(Problem.UNREADABLE_WORKFLOW, source.shown)
    total = summary.get("totalTokens")
    if type(total) is int and total >= 0:
        reading.run.report.enter(LedgerLine.WORKFLOW_TOTAL, total=total)
    return summary


def _labels(summary: dict[str, Any], reading: Reading) -> dict[str, str]:
    """Return the names that the script gives its agents, by their keys."""
    labels = {}
    for progress in objects(summary.get("workflowProgress")):
        key = text_field(progress, "agentId")
        if key:
            labels[key] = masked(text_field(progress, "label"))
            if key not in reading.threads:
                reading.run.report.note(Problem.NO_WORKFLOW_TRANSCRIPT, masked(key))
    return labels
