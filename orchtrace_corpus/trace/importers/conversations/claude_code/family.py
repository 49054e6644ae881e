"""The family of a Claude Code session: which call, or which script of a workflow, spawned which agent."""

from collections.abc import Iterator
from typing import Any

from orchtrace_corpus.base.cycles import closing_links
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace.importers.conversations.claude_code import rows
from orchtrace_corpus.trace.importers.conversations.claude_code.reading import Reading
from orchtrace_corpus.trace.importers.conversations.claude_code.sources import Part, Source
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.values import text_field
from orchtrace_corpus.trace.model.import_report import LedgerLine, Problem
from orchtrace_corpus.trace.model.trace import Status

_MOST_COMPARED = 100
"""Among so many spawns with the same task, that of the same name is looked for."""


class Family:
    """Who spawned whom in a session.

    Attributes:
        children: The spawn that each child comes from, by the child's name in the log.
        again: Spawns that set an agent going again that another spawn had brought into being.
        names: The agents' names in the trace, by every name under which the log speaks of them.
    """

    def __init__(self, reading: Reading) -> None:
        self.children: dict[str, rows.Spawn] = {}
        self.again: list[rows.Spawn] = []
        self.names: dict[str, str] = {key: thread.agent for key, thread in reading.threads.items()}
        self._reading = reading
        self._threads = reading.threads
        self._evidence = reading.content.evidence
        self._meta = dict(self._meta_files())
        results: dict[tuple[str, str], rows.Result] = {}
        for result in reading.content.results:
            results.setdefault((result.thread.key, result.id), result)
        calls: list[rows.Spawn | rows.Aimed] = [*self._evidence.spawns, *self._evidence.aimed]
        for call in calls:
            call.result = results.get((call.thread.key, call.id)) if call.id else None

    def _meta_files(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What the files beside transcripts say of agents."""
        for one in self._reading.sources:
            if one.part is not Part.META:
                continue
            try:
                value = logs.JsonDocument(one.file).value
            except DataFileError:
                value = None
            if isinstance(value, dict):
                yield one.agent, value
                if one.agent in self._threads:
                    self._threads[one.agent].role = masked(text_field(value, "agentType"))
            else:
                self._reading.report.note(Problem.UNREADABLE_META, one.shown)

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
                if not spawn.tool_call.target and spawn.prompt and spawn.tool_call.tool != rows.WORKFLOW_TOOL:
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
        """Make an agent the child of a spawn; whether it became that."""
        thread = self._threads.get(key)
        if spawn is None or spawn.tool_call.target or thread is None or thread is spawn.thread:
            return False
        if thread.is_root or thread.aside:
            return False
        if key in self.children:
            spawn.tool_call.purpose, spawn.tool_call.target = steps.MESSAGE, thread.agent
            self.again.append(spawn)
            return False
        self.children[key] = spawn
        spawn.tool_call.target = thread.agent
        thread.parent, thread.is_warm_up = spawn.thread.agent, False
        thread.role = spawn.tool_call.role = spawn.tool_call.role or thread.role
        if spawn.name:
            self.names.setdefault(spawn.name, thread.agent)
        return True

    def take_names(self) -> None:
        """Call agents what those who spawned them do, where that is a name and not only an id."""
        renamed: dict[str, str] = {}
        for key, thread in self._threads.items():
            name = self.children[key].name if key in self.children else ""
            name = name or text_field(self._meta.get(key), "name")
            if name and not thread.is_root and not thread.aside:
                renamed[thread.agent] = thread.agent = self._reading.name(name)
        for thread in self._threads.values():
            thread.parent = renamed.get(thread.parent, thread.parent)
        for spawn in self._evidence.spawns:
            spawn.tool_call.target = renamed.get(spawn.tool_call.target, spawn.tool_call.target)
        self.names = {name: renamed.get(agent, agent) for name, agent in self.names.items()}

    def break_cycles(self) -> None:
        """Take back spawns by which an agent would be above itself."""
        parents = {thread.agent: (thread.parent,) for thread in self._threads.values() if thread.parent}
        keys = {thread.agent: key for key, thread in self._threads.items() if key in self.children}
        for _, agent in closing_links(parents):
            spawn = self.children.pop(keys[agent])
            self._threads[keys[agent]].parent = ""
            spawn.tool_call.purpose, spawn.tool_call.target = steps.TOOL, ""
            self._reading.report.note(Problem.SPAWN_CYCLE, str(spawn.tool_call.place))

    def name_childless(self) -> int:
        """Name the sub-agents of which there is no transcript, and say how many."""
        missing = 0
        for spawn in self._evidence.spawns:
            tool_call, result = spawn.tool_call, spawn.result
            if tool_call.target or tool_call.purpose is not steps.SPAWN:
                continue
            named = (result.agent or result.run or result.tail) if result is not None else ""
            if result is not None and result.answer.status is Status.ERROR and not named:
                tool_call.purpose = steps.TOOL  # nothing came into being
                continue
            tool_call.target = self._reading.name(
                spawn.name or named or f"{tool_call.role or 'agent'}:{tool_call.id[-8:]}"
            )
            for name in (named, spawn.name, spawn.id):
                if name:
                    self.names.setdefault(name, tool_call.target)
            if tool_call.tool != rows.WORKFLOW_TOOL:
                missing += 1
                self._reading.report.note(Problem.NO_TRANSCRIPT, str(tool_call.place))
        return missing

    def report_orphans(self) -> None:
        """Say which sub-agents nobody is known to have spawned."""
        for key, thread in self._threads.items():
            if thread.steps and not (thread.parent or thread.is_root or thread.aside or thread.is_warm_up):
                self._reading.report.note(Problem.NO_SPAWN, str(thread.steps[0].place))
                self.names.setdefault(key, thread.agent)


def find_workflows(reading: Reading, family: Family) -> None:
    """Give each run of a workflow a thread of its own, which spawns the agents of its folder."""
    runs: dict[str, list[Source]] = {}
    for one in reading.sources:
        if one.run:
            runs.setdefault(one.run, []).append(one)
    starts = {spawn.result.run: spawn for spawn in reading.content.evidence.spawns if spawn.result is not None}
    for run, sources in runs.items():
        _find_run(run, sources, starts.get(run), reading, family)


def _find_run(run: str, sources: list[Source], start: rows.Spawn | None, reading: Reading, family: Family) -> None:
    members = [one.agent for one in sources if one.part is Part.AGENT and reading.threads[one.agent].steps]
    members = [key for key in dict.fromkeys(members) if key not in family.children]
    if not members:
        return
    summary = _summary(sources, reading)
    thread = reading.threads[run] = steps.Transcript(reading.name(run), run, role="workflow", kind=steps.SCRIPT)
    family.names.setdefault(run, thread.agent)
    labels = _labels(summary, reading)
    returned: set[str] | None = None  # the agents of which the run's journal has a result
    if journal := next((one for one in sources if one.part is Part.JOURNAL), None):
        noted = logs.rows(journal.file._replace(name=journal.shown), reading.report)
        returned = {text_field(row, "agentId") for _, row in noted if row.get("type") == "result"}
    for key in members:
        child = reading.threads[key]
        child.role = labels.get(key, "") or child.role
        first = min(child.steps, key=lambda step: step.at)
        last = max(child.steps, key=lambda step: (step.last_time, step.order))
        tool_call = steps.ToolCall(
            first.time, first.place, purpose=steps.SPAWN, target=child.agent, role=child.role, is_inferred=True
        )
        thread.add(tool_call)
        child.parent = thread.agent
        family.children[key] = rows.Spawn(tool_call, thread, "")
        if returned is None or key in returned:
            thread.add(steps.Return(last.last_time, last.place, child=child.agent, is_inferred=True))
    if start is not None and not start.tool_call.target:
        start.tool_call.role = masked(text_field(summary, "workflowName")) or thread.role
        family.take(run, start)


def _summary(sources: list[Source], reading: Reading) -> dict[str, Any]:
    """What the program itself says of the run when it is over."""
    one = next((one for one in sources if one.part is Part.RUN), None)
    try:
        value = logs.JsonDocument(one.file).value if one is not None else None
    except DataFileError:
        reading.report.note(Problem.UNREADABLE_WORKFLOW, one.shown if one is not None else "")
        value = None
    summary = value if isinstance(value, dict) else {}
    total = summary.get("totalTokens")
    if type(total) is int and total >= 0:
        reading.report.enter(LedgerLine.WORKFLOW_TOTAL, total=total)
    return summary


def _labels(summary: dict[str, Any], reading: Reading) -> dict[str, str]:
    """What the script calls each agent, by the agent's name in the log."""
    listed = summary.get("workflowProgress")
    found = {}
    for one in listed if isinstance(listed, list) else []:
        key = text_field(one, "agentId")
        if key:
            found[key] = masked(text_field(one, "label"))
            if key not in reading.threads:
                reading.report.note(Problem.NO_WORKFLOW_TRANSCRIPT, masked(key))
    return found
