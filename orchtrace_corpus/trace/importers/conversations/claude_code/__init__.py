"""Claude Code transcripts: sessions with their sub-agents, teammates and workflows.

A session is put together here: which call spawned which agent, and what came back.

What tells the spawn of a sub-agent, the most certain first: `toolUseId` in its `.meta.json`; the agent that the
result of the call names; rows of progress; the `agentId:` at the end of the result's text; of rows among those
of the session, their parent row; the text of the task.
"""

from collections.abc import Iterator, Mapping, Sequence

from orchtrace_corpus.trace.importers.conversations.claude_code import rows
from orchtrace_corpus.trace.importers.conversations.claude_code.background import ENDS
from orchtrace_corpus.trace.importers.conversations.claude_code.content import LEAST_ID_LENGTH
from orchtrace_corpus.trace.importers.conversations.claude_code.family import Family, find_workflows
from orchtrace_corpus.trace.importers.conversations.claude_code.reading import MAIN, Reading
from orchtrace_corpus.trace.importers.conversations.claude_code.sources import beside, recognises, ties
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.builder import Builder
from orchtrace_corpus.trace.importers.core.identity import current_answers
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, LogFile
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.transcript_events import add_events
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Missing, Problem
from orchtrace_corpus.trace.model.trace import Status, TokenBasis, Trace

__all__ = ["beside", "read", "recognises", "ties"]

_OPEN, _WHOLE = LedgerLine.PLACEHOLDER, LedgerLine.LAST_ROW  # which Python 3.11 takes long to find
LEAD = "team-lead"
"""The name by which teammates know the agent that the user talks to."""


class _Returns:
    """Adds what comes back to the threads that it comes to, and aims messages, waits and ends at agents."""

    def __init__(self, reading: Reading, family: Family) -> None:
        self._reading = reading
        self._family = family
        self._evidence = reading.content.evidence
        self._tasks = {
            spawn.result.task: spawn for spawn in self._evidence.spawns if spawn.result and spawn.result.task
        }
        self._spawns = {spawn.id: spawn for spawn in self._evidence.spawns if spawn.id}

    def link(self) -> None:
        for aimed in self._evidence.aimed:
            self._aim(aimed)
        returns = [*self._results(), *self._notices(), *self._waits(), *self._ends()]
        steps.add_returns(returns, self._reading.threads.values())
        sent: dict[tuple[str, int], list[steps.ToolCall]] = {}
        for aimed in self._evidence.aimed:
            if aimed.tool_call.purpose is steps.MESSAGE and aimed.mark:
                sent.setdefault((aimed.tool_call.target, aimed.mark), []).append(aimed.tool_call)
        for arrival in self._evidence.arrivals:
            self._deliver(arrival, sent.get((arrival.thread.agent, arrival.mark), []))

    def _results(self) -> Iterator[tuple[steps.Transcript, steps.Return]]:
        spawns = [one for one in self._evidence.spawns if one.tool_call.purpose is steps.SPAWN]
        for spawn in (*spawns, *self._family.again):
            result, child = spawn.result, spawn.tool_call.target
            if result is not None and not result.launched and child and not result.answer.is_repeated:
                answer = result.answer
                yield spawn.thread, steps.Return.at_step(answer, child, answer.status, answer.error, answer.ref)

    def _notices(self) -> Iterator[tuple[steps.Transcript, steps.Return]]:
        for notice in self._evidence.notices:
            task = notice.task
            spawn = self._tasks.get(task.task) or self._spawns.get(task.call)
            child = spawn.tool_call.target if spawn is not None else self._family.names.get(task.task, "")
            status = ENDS.get(task.status) if task.status else Status.OK
            if child and child != notice.thread.agent and status is not None:
                error = task.status if status is Status.ERROR else ""
                yield notice.thread, steps.Return.at_step(notice.step, child, status, error, notice.ref)

    def _waits(self) -> Iterator[tuple[steps.Transcript, steps.Return]]:
        for aimed in self._evidence.aimed:
            call, result = aimed.tool_call, aimed.result
            if call.purpose is steps.JOIN and result and result.done and not result.answer.is_repeated:
                yield aimed.thread, steps.Return.at_step(result.answer, call.target, ref=result.answer.ref)

    def _ends(self) -> Iterator[tuple[steps.Transcript, steps.Return]]:
        """What came back by calls whose result is missing: the caller went on when its child had given its last answer.

        Such a call waits for the child, so a caller that did something before, or was interrupted, had no answer.
        """
        for key, spawn in self._family.children.items():
            call, done = spawn.tool_call, self._reading.threads[key].steps
            if spawn.result is not None or spawn.in_background or call.is_inferred or not done:
                continue
            last = max(done, key=lambda step: (step.last_time, step.order))
            later = (step for step in spawn.thread.steps if step.order > call.order and step is not call.call)
            after = next((step for step in later if isinstance(step, (steps.ModelCall, steps.UserInput))), None)
            if not (isinstance(last, steps.ModelCall) and last.final and isinstance(after, steps.ModelCall)):
                continue
            if after.time >= last.end:
                order, child = call.order + 0.5, call.target
                yield spawn.thread, steps.Return(last.end, last.place, order, child, ref=last.ref, is_inferred=True)

    def _aim(self, aimed: rows.Aimed) -> None:
        tool_call = aimed.tool_call
        target = self._called(aimed.name, aimed.thread) if aimed.name else ""
        if tool_call.purpose is steps.MESSAGE:
            tool_call.target = target or self._stranger(aimed.name or "(nobody)")
            return
        is_done = aimed.result is not None and not aimed.result.refused and aimed.result.answer.status is Status.OK
        if target and target != aimed.thread.agent and (tool_call.purpose is steps.JOIN or is_done):
            tool_call.target = target
        else:
            if tool_call.tool == "TeamDelete" and is_done:
                self._close_team(aimed)
            tool_call.purpose = steps.TOOL

    def _close_team(self, aimed: rows.Aimed) -> None:
        """A team is dissolved, and with it every teammate that this agent has spawned."""
        of = aimed.tool_call
        for spawn in self._evidence.spawns:
            if spawn.team and spawn.thread is aimed.thread and spawn.tool_call.purpose is steps.SPAWN:
                end = steps.ToolCall(of.time, of.place, of.order, purpose=steps.CLOSE, call=of.call)
                end.target = spawn.tool_call.target
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

    def _deliver(self, arrival: rows.Arrival, waiting: list[steps.ToolCall]) -> None:
        """A message that arrives is the one that was sent, where the log has that, too."""
        step, thread = arrival.step, arrival.thread
        step.sender = self._called(arrival.name, thread) or self._stranger(arrival.name)
        for number, tool_call in enumerate(waiting[:10]):
            if tool_call.time <= step.time:
                step.sent = waiting.pop(number)
                return
        if step.sender == thread.agent:
            step.sender = ""  # what it tells itself is but a note


def _enter_usage(reading: Reading, children: Mapping[str, rows.Spawn], missing: int) -> dict[Missing, int]:
    """Say of every answer how far its tokens can be relied on, and put down in the ledger what was counted.

    Args:
        reading: The session.
        children: The spawns of sub-agents, by their names in the log.
        missing: How many sub-agents have no transcript.

    Returns:
        How many records lack their tokens.
    """
    written, report, replaced = reading.content.evidence.written, reading.report, set()
    placeholder, reported, once = TokenBasis.PLACEHOLDER, TokenBasis.REPORTED, TokenBasis.DEDUPLICATED
    by_call = {id(answer.call): answer for answer in written}
    for one in written:
        if one.call.tokens is not None and not any(one.call.tokens.values()) and not one.call.error:
            one.call.tokens, one.is_zero = None, True  # as programs write that know nothing of it
            report.enter(LedgerLine.ZERO)
        if one.call.tokens is not None:
            one.call.basis = placeholder if rows.is_placeholder(one) else once if one.rows > 1 else reported
    for key, spawn in children.items():
        if key in reading.threads and spawn.result is not None and not spawn.result.launched:
            last = _last_answer(reading.threads[key])
            is_relayed = key in reading.relayed and last is not None and not last.final
            if last is not None and not is_relayed and _takes_output(last, spawn, report):
                replaced.add(id(last))
            if last is not None and id(last) in by_call and last.basis is reported:
                by_call[id(last)].is_open = False
                last.basis = placeholder if rows.is_placeholder(by_call[id(last)]) else reported
            if spawn.result.total is not None:
                report.enter(LedgerLine.RESULT_CONTEXT, total=spawn.result.total)
    without = _add_last_answers(reading, children)
    odd = 0
    for one in written:
        tokens = one.call.tokens
        odd += one.is_odd
        without += tokens is None and not one.is_odd
        if one.is_odd or (tokens is None and not one.is_zero):
            report.enter(LedgerLine.NO_NUMBER if one.is_odd else LedgerLine.NO_USAGE)
        if tokens is not None:
            line = _OPEN if one.call.basis is placeholder else _WHOLE
            report.enter_all(LedgerLine.RESULT_OUTPUT if id(one.call) in replaced else line, tokens)
    if missing:
        report.enter(LedgerLine.NO_TRANSCRIPT, missing)
    return {Missing.TRANSCRIPTS: missing, Missing.USAGE: without, Missing.NUMBERS: odd}


def _last_answer(thread: steps.Transcript) -> steps.ModelCall | None:
    calls = [step for step in thread.steps if isinstance(step, steps.ModelCall)]
    return max(calls, key=lambda call: call.at, default=None)


def _add_last_answers(reading: Reading, children: Mapping[str, rows.Spawn]) -> int:
    """Add the last answers of sub-agents of which only progress is known, which their results alone tell of.

    Their counts of output are as sure as those of the answers before. How many of them have no usage is returned.
    """
    returns: dict[str, steps.Return] = {}
    for thread in reading.threads.values():
        for step in thread.steps:
            if isinstance(step, steps.Return) and step.status is Status.OK:
                returns[step.child] = step
    without = 0
    for key in sorted(reading.relayed):
        thread = reading.threads[key]
        before, returned = _last_answer(thread), returns.get(thread.agent)
        if before is None or before.final or returned is None or returned.time < before.end:
            continue
        result = children[key].result if key in children else None
        answer = steps.ModelCall(returned.time, returned.place, end=returned.time, model=before.model, ref=returned.ref)
        thread.add(answer)
        if result is None or result.launched or not result.usage:
            reading.report.enter(LedgerLine.NO_USAGE)
            without += 1
            continue
        if len(result.id) >= LEAST_ID_LENGTH:
            current_answers().note(result.id, "last answer", returned.place.file, returned.place.line)
        answer.tokens, answer.basis = result.usage, TokenBasis.REPORTED
        if before.basis is TokenBasis.PLACEHOLDER:
            answer.basis = TokenBasis.PLACEHOLDER
            reading.report.enter(LedgerLine.PLACEHOLDER, 0)
        reading.report.enter_all(LedgerLine.RESULT_ANSWER, result.usage)
    return without


def _takes_output(call: steps.ModelCall, spawn: rows.Spawn, report: ImportReport) -> bool:
    """Take the output of a sub-agent's last answer from its result; whether that changed it."""
    stated = spawn.result.usage if spawn.result is not None else None
    if not stated or call.tokens is None:
        return False
    more = stated.get("output", 0) - call.tokens.get("output", 0)
    if more < 0 or any(
        stated.get(kind, 0) != call.tokens.get(kind, 0) for kind in ("input", "cache_read", "cache_write")
    ):
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
    family.take_names()
    find_workflows(reading, family)
    family.break_cycles()
    missing = family.name_childless()
    family.report_orphans()
    _Returns(reading, family).link()
    steps.note_deciders(reading.threads.values())
    lacking = _enter_usage(reading, family.children, missing)
    return steps.Linked([thread for thread in reading.threads.values() if thread.steps], lacking)


def read(files: Sequence[LogFile], privacy: Privacy) -> Iterator[Trace]:
    """The trace of a session.

    Raises:
        DataFileError: A file cannot be read, or none has a row of a conversation.
    """
    report = ImportReport()
    reading = Reading(files, privacy, report)
    linked = link(reading)
    builder = Builder(reading.session, reading.session, system="claude-code", form="claude_code",
                      version=reading.version, privacy=privacy, report=report)  # fmt: skip
    add_events(linked.threads, builder)
    if not builder:
        raise EmptyLogError(f"no row of a conversation in {reading.sources[0].shown}")
    yield builder.trace(topology=steps.topology(linked.threads), missing=linked.missing)
