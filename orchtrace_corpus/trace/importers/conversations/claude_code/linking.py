"""Puts a Claude Code session together: which call spawned which agent, and what came back.

What tells the spawn of a sub-agent, the most certain first: `toolUseId` in its `.meta.json`; the agent that the
result of the call names; rows of progress; the `agentId:` at the end of the result's text; of rows among those
of the session, their parent row; the text of the task.
"""

from collections.abc import Mapping

from orchtrace_corpus.trace.importers.conversations import transcript as steps
from orchtrace_corpus.trace.importers.conversations.claude_code import rows
from orchtrace_corpus.trace.importers.conversations.claude_code.family import Family, find_workflows
from orchtrace_corpus.trace.importers.conversations.claude_code.reading import MAIN, Reading
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.trace import Status, TokenBasis

LEAD = "team-lead"
"""The name by which teammates know the agent that the user talks to."""

_STATUSES = {
    "completed": Status.OK,
    "": Status.OK,
    "failed": Status.ERROR,
    "killed": Status.CANCELLED,
    "stopped": Status.CANCELLED,
}
"""How a background task says that it has ended; under any other word it goes on."""


def link_returns(reading: Reading, family: Family) -> None:
    """Add what comes back to the threads that it comes to, and aim messages, waits and ends at agents."""
    _Returns(reading, family).link_returns()


class _Returns:
    def __init__(self, reading: Reading, family: Family) -> None:
        self._reading = reading
        self._family = family
        self._evidence = reading.content.evidence
        self._tasks = {
            spawn.result.task: spawn for spawn in self._evidence.spawns if spawn.result and spawn.result.task
        }
        self._spawns = {spawn.id: spawn for spawn in self._evidence.spawns if spawn.id}

    def link_returns(self) -> None:
        for aimed in self._evidence.aimed:
            self._aim(aimed)
        returns = [*self._results(), *self._notices(), *self._waits()]
        steps.add_returns(returns, self._reading.threads.values())
        sent: dict[tuple[str, int], list[steps.ToolCall]] = {}
        for aimed in self._evidence.aimed:
            if aimed.tool_call.purpose is steps.Purpose.MESSAGE and aimed.mark:
                sent.setdefault((aimed.tool_call.target, aimed.mark), []).append(aimed.tool_call)
        for arrival in self._evidence.arrivals:
            self._deliver(arrival, sent)

    def _results(self) -> list[steps.ReturnEvidence]:
        spawns = [
            (spawn, spawn.tool_call.target)
            for spawn in self._evidence.spawns
            if spawn.tool_call.purpose is steps.Purpose.SPAWN
        ]
        spawns += [(spawn, spawn.tool_call.target) for spawn, _ in self._family.again]
        found = []
        for spawn, child in spawns:
            result = spawn.result
            if result is not None and not result.launched and child and not result.answer.is_repeated:
                answer = result.answer
                found.append(steps.ReturnEvidence(answer, spawn.thread, child, answer.status, answer.error, answer.ref))
        return found

    def _notices(self) -> list[steps.ReturnEvidence]:
        found = []
        for notice in self._evidence.notices:
            task = notice.task
            spawn = self._tasks.get(task.task) or self._spawns.get(task.call)
            child = spawn.tool_call.target if spawn is not None else self._family.names.get(task.task, "")
            status = _STATUSES.get(task.status)
            if child and child != notice.thread.agent and status is not None:
                error = task.status if status is Status.ERROR else ""
                found.append(steps.ReturnEvidence(notice.step, notice.thread, child, status, error, notice.ref))
        return found

    def _waits(self) -> list[steps.ReturnEvidence]:
        found = []
        for aimed in self._evidence.aimed:
            result = aimed.result
            if (
                aimed.tool_call.purpose is steps.Purpose.JOIN
                and result is not None
                and result.done
                and not result.answer.is_repeated
            ):
                found.append(
                    steps.ReturnEvidence(result.answer, aimed.thread, aimed.tool_call.target, ref=result.answer.ref)
                )
        return found

    def _aim(self, aimed: rows.Aimed) -> None:
        tool_call = aimed.tool_call
        target = self._called(aimed.name, aimed.thread) if aimed.name else ""
        if tool_call.purpose is steps.Purpose.MESSAGE:
            tool_call.target = target or self._stranger(aimed.name or "(nobody)")
            return
        is_done = aimed.result is not None and not aimed.result.refused and aimed.result.answer.status is Status.OK
        if target and target != aimed.thread.agent and (tool_call.purpose is steps.Purpose.JOIN or is_done):
            tool_call.target = target
        else:
            if tool_call.tool == "TeamDelete" and is_done:
                self._close_team(aimed)
            tool_call.purpose = steps.Purpose.TOOL

    def _close_team(self, aimed: rows.Aimed) -> None:
        """A team is dissolved, and with it every teammate that this agent has spawned."""
        for spawn in self._evidence.spawns:
            if spawn.team and spawn.thread is aimed.thread and spawn.tool_call.purpose is steps.Purpose.SPAWN:
                end = steps.ToolCall(
                    aimed.tool_call.time,
                    aimed.tool_call.place,
                    purpose=steps.Purpose.CLOSE,
                    call=aimed.tool_call.call,
                    target=spawn.tool_call.target,
                )
                end.order = aimed.tool_call.order
                aimed.thread.steps.append(end)

    def _called(self, name: str, thread: steps.Transcript) -> str:
        """The agent that goes by a name, or by a name and its team; empty where there is none."""
        found = self._family.names.get(name) or self._family.names.get(name.partition("@")[0], "")
        return found or (thread.parent or MAIN if name == LEAD else "")

    def _stranger(self, name: str) -> str:
        """A name for an agent of which the log says nothing else."""
        if name not in self._family.names:
            self._family.names[name] = self._reading.name(name)
        return self._family.names[name]

    def _deliver(self, arrival: rows.Arrival, sent: dict[tuple[str, int], list[steps.ToolCall]]) -> None:
        """A message that arrives is the one that was sent, where the log has that, too."""
        step, thread = arrival.step, arrival.thread
        step.sender = self._called(arrival.name, thread) or self._stranger(arrival.name)
        waiting = sent.get((thread.agent, arrival.mark), [])
        for number, tool_call in enumerate(waiting[:10]):
            if tool_call.time <= step.time:
                step.sent = waiting.pop(number)
                return
        if step.sender == thread.agent:
            step.sender = ""  # what it tells itself is but a note


_INPUTS = ("input", "cache_read", "cache_write")


def enter_usage(
    written: list[rows.Written],
    threads: Mapping[str, steps.Transcript],
    children: Mapping[str, rows.Spawn],
    missing: int,
    report: ImportReport,
) -> dict[Missing, int]:
    """Say of every answer how far its tokens can be relied on, and put down in the ledger what was counted.

    Args:
        written: The answers.
        threads: The threads by their names in the log.
        children: The spawns of sub-agents, by the same names.
        missing: How many sub-agents have no transcript.
        report: Where the ledger is kept.

    Returns:
        How many records lack their tokens.
    """
    replaced = set()
    for one in written:
        one.call.basis = _basis(one)
    for key, spawn in children.items():
        if key in threads and spawn.result is not None and not spawn.result.launched:
            call = _last_call(threads[key])
            if call is not None and _takes_output(call, spawn, report):
                replaced.add(id(call))
            if spawn.result.total is not None:
                report.enter(LedgerLine.RESULT_CONTEXT, total=spawn.result.total)
    for one in written:
        tokens, basis = one.call.tokens, one.call.basis
        if one.is_odd:
            report.enter(LedgerLine.NO_NUMBER)
        elif tokens is None:
            report.enter(LedgerLine.NO_USAGE)
        if tokens is not None:
            line = (
                LedgerLine.RESULT_OUTPUT
                if id(one.call) in replaced
                else LedgerLine.PLACEHOLDER
                if basis is TokenBasis.PLACEHOLDER
                else LedgerLine.LAST_ROW
            )
            report.enter(line, **tokens)
    if missing:
        report.enter(LedgerLine.NO_TRANSCRIPT, missing)
    odd = sum(one.is_odd for one in written)
    without = sum(one.call.tokens is None and not one.is_odd for one in written)
    return {Missing.TRANSCRIPTS: missing, Missing.USAGE: without, Missing.NUMBERS: odd}


def _basis(one: rows.Written) -> TokenBasis:
    if one.call.tokens is None:
        return TokenBasis.UNKNOWN
    if one.is_open:
        return TokenBasis.PLACEHOLDER
    return TokenBasis.DEDUPLICATED if one.rows > 1 else TokenBasis.REPORTED


def _last_call(thread: steps.Transcript) -> steps.ModelCall | None:
    return max(
        (step for step in thread.steps if isinstance(step, steps.ModelCall)), key=lambda call: call.at, default=None
    )


def _takes_output(call: steps.ModelCall, spawn: rows.Spawn, report: ImportReport) -> bool:
    """Take the output of a sub-agent's last answer from its result; whether that changed it."""
    stated = spawn.result.usage if spawn.result is not None else None
    if not stated or call.tokens is None:
        return False
    if any(stated.get(kind, 0) != call.tokens.get(kind, 0) for kind in _INPUTS):
        report.note(Problem.RESULT_USAGE_DIFFERS, str(spawn.tool_call.place))
        return False
    more = stated.get("output", 0) - call.tokens.get("output", 0)
    if more < 0:
        report.note(Problem.RESULT_USAGE_DIFFERS, str(spawn.tool_call.place))
        return False
    if call.basis is TokenBasis.PLACEHOLDER or more:
        call.tokens = {**call.tokens, "output": stated.get("output", 0)}
        call.basis = TokenBasis.REPORTED
    return more > 0


def link(reading: Reading) -> steps.Linked:
    """Put a session together."""
    family = Family(reading)
    family.find_by_ids()
    family.find_by_task()
    find_workflows(reading, family)
    family.break_cycles()
    missing = family.name_childless()
    family.report_orphans()
    link_returns(reading, family)
    steps.note_deciders(reading.threads.values())
    written = reading.content.evidence.written
    lacking = enter_usage(written, reading.threads, family.children, missing, reading.report)
    return steps.Linked([thread for thread in reading.threads.values() if thread.steps], lacking)
