"""Workflows of Claude Code: a script that spawns agents, each with a transcript in the folder of its run."""

from typing import Any

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace.importers.conversations.claude_code.family import Family
from orchtrace_corpus.trace.importers.conversations.claude_code.reading import Reading
from orchtrace_corpus.trace.importers.conversations.claude_code.sources import Part, Source
from orchtrace_corpus.trace.importers.conversations.claude_code.spawn_evidence import Spawn, text_field
from orchtrace_corpus.trace.importers.conversations.transcript import SCRIPT, Act, Call, Deed, Return, Step, Thread
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.logs import JsonDocument
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.model.import_report import LedgerLine, Problem


def find(reading: Reading, family: Family) -> None:
    """Give each run of a workflow a thread of its own, which spawns the agents of its folder."""
    runs: dict[str, list[Source]] = {}
    for one in reading.sources:
        if one.run:
            runs.setdefault(one.run, []).append(one)
    starts = {spawn.result.run: spawn for spawn in reading.content.clues.spawns if spawn.result is not None}
    for run, sources in runs.items():
        _find_run(run, sources, starts.get(run), reading, family)


def _find_run(run: str, sources: list[Source], start: Spawn | None, reading: Reading, family: Family) -> None:
    members = [one.agent for one in sources if one.part is Part.AGENT and reading.threads[one.agent].steps]
    members = [key for key in dict.fromkeys(members) if key not in family.children]
    if not members:
        return
    summary = _summary(sources, reading)
    thread = reading.threads[run] = Thread(reading.name(run), run, role="workflow", kind=SCRIPT)
    family.names.setdefault(run, thread.agent)
    labels = _labels(summary, reading)
    returned = _returned(sources, reading)
    for key in members:
        child = reading.threads[key]
        child.role = labels.get(key, "") or child.role
        first, last = _bounds(child)
        act = Act(first.time, first.place, deed=Deed.SPAWN, target=child.agent, role=child.role, is_inferred=True)
        thread.add(act)
        child.parent = thread.agent
        family.children[key] = Spawn(act, thread, "")
        if returned is None or key in returned:
            end = last.end if isinstance(last, Call) else last.time
            thread.add(Return(end, last.place, child=child.agent, is_inferred=True))
    if start is not None and not start.act.target:
        start.act.role = masked(text_field(summary, "workflowName")) or thread.role
        family.take(run, start)


def _bounds(thread: Thread) -> tuple[Step, Step]:
    """The first step of a thread, and that which ends last."""
    last = max(thread.steps, key=lambda step: (step.end if isinstance(step, Call) else step.time, step.order))
    return min(thread.steps, key=lambda step: (step.time, step.order)), last


def _summary(sources: list[Source], reading: Reading) -> dict[str, Any]:
    """What the program itself says of the run when it is over."""
    for one in sources:
        if one.part is Part.RUN:
            try:
                value = JsonDocument(one.file).value
            except DataFileError:
                reading.report.note(Problem.UNREADABLE_WORKFLOW, one.shown)
                return {}
            total = value.get("totalTokens") if isinstance(value, dict) else None
            if type(total) is int and total >= 0:
                reading.report.enter(LedgerLine.WORKFLOW_TOTAL, total=total)
            return value if isinstance(value, dict) else {}
    return {}


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


def _returned(sources: list[Source], reading: Reading) -> set[str] | None:
    """The agents of which the run's journal has a result; None where it has no journal."""
    for one in sources:
        if one.part is Part.JOURNAL:
            rows = (row for _, row in logs.rows(one.file._replace(name=one.shown), reading.report))
            return {text_field(row, "agentId") for row in rows if row.get("type") == "result"}
    return None
