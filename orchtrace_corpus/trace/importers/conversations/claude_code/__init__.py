"""Claude Code transcripts: sessions with their sub-agents, teammates and workflows."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace.importers.conversations.claude_code import rows
from orchtrace_corpus.trace.importers.conversations.claude_code.rows import (
    Part,
    Reading,
    further_files,
    recognises,
    session_keys,
)
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.identity import current_answer_ids
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.values import mapping, objects, text_field
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import Status, TokenBasis
from orchtrace_corpus.trace.model.trace import Tokens, Trace

__all__ = ["further_files", "read", "recognises", "session_keys"]

_LEAD = "team-lead"  # the name among teammates of the agent that the user talks to
_MAX_SAME_TASK = 100  # the most spawns with the same task among which one of the same name is searched


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a session."""
    run = Run("claude_code", privacy)
    run.system = "claude-code"
    reading = Reading(files, run)
    family = Family(reading)
    family.find_by_ids()
    family.find_by_task()
    family.find_workflows()
    family.name_agents()
    family.link()
    account(reading, family)
    yield run.trace(empty_message=f"no row of a conversation in {reading.sources[0].shown}")


class Family:
    """The sub-agents of a session and their spawns."""

    def __init__(self, reading: Reading) -> None:
        self.answers: dict[str, tuple[steps.Step, str]] = {}  # by agent, the arrival of its last good result, and a ref
        self.children: dict[str, rows.Spawn] = {}  # the spawn of each child, by the child's key
        # the keys of agents, by all names in the log
        self.keys = {key: rows.MAIN if thread.aside else key for key, thread in reading.threads.items()}
        self._run, self._reading, self._threads = reading.run, reading, reading.threads
        self._meta: dict[str, dict[str, Any]] = {}  # the descriptions of agents in files of their own
        for source in reading.sources:
            if source.part is not Part.META:
                continue
            value = None
            with suppress(DataFileError):
                value = logs.document(source.file).value()
            if type(value) is not dict:
                self._run.report.note(Problem.UNREADABLE_META, source.shown)
                continue
            self._meta[source.agent] = value
            if source.agent in self._threads:
                self._threads[source.agent].role = masked(text_field(value, "agentType"))
        results: dict[tuple[str, str], rows.Result] = {}
        for result in reading.results:
            results.setdefault((result.thread.key, result.id), result)
        calls: list[rows.AgentCall] = [*reading.spawns, *reading.addressed]
        for call in calls:
            call.result = results.get((call.thread.key, call.id)) if call.id else None

    def find_by_ids(self) -> None:
        """Find children by the ids of calls and agents."""
        spawns, reading = self._reading.spawns, self._reading
        by_id = {spawn.id: spawn for spawn in reversed(spawns) if spawn.id}
        by_row = {spawn.row: spawn for spawn in reversed(spawns) if spawn.row}
        named = [(key, by_id.get(text_field(details, "toolUseId"))) for key, details in self._meta.items()]
        named += [(spawn.result.agent, spawn) for spawn in spawns if spawn.result is not None]
        named += [(key, by_id.get(call)) for key, call in reading.progress.items()]
        named += [(spawn.result.tail, spawn) for spawn in spawns if spawn.result and not spawn.result.agent]
        for key, spawn in named:
            self.take(key, spawn)
        for key, beginning in reading.beginnings.items():
            if key not in self.children:
                self.take(key, by_row.get(beginning.parent_row))

    def find_by_task(self) -> None:
        """Find children by their task: first those with the same name, then those without a name on one side."""
        for must_have_name in (True, False):
            free: dict[int, list[rows.Spawn]] = {}
            for spawn in self._reading.spawns:
                if not spawn.child and spawn.mark and spawn.call.tool != rows.WORKFLOW_TOOL:
                    free.setdefault(spawn.mark, []).append(spawn)
            for key, beginning in self._reading.beginnings.items():
                if key in self.children or key not in self._threads:
                    continue
                name = text_field(self._meta.get(key), "name")
                for spawn in free.get(beginning.prompt, [])[:_MAX_SAME_TASK]:
                    agree = name == spawn.name if must_have_name else not name or not spawn.name
                    if agree and (name or not must_have_name) and self.take(key, spawn):
                        free[beginning.prompt].remove(spawn)
                        break

    def take(self, key: str, spawn: rows.Spawn | None) -> bool:
        """Make an agent the child of a spawn, and return True if it was none; a second spawn continues its work."""
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

    def find_workflows(self) -> None:
        """Give each run of a workflow a thread of its own, which spawns the agents of its folder."""
        runs: dict[str, list[rows.Source]] = {}
        for source in self._reading.sources:
            if source.run:
                runs.setdefault(source.run, []).append(source)
        starts = {spawn.result.run: spawn for spawn in self._reading.spawns if spawn.result is not None}
        for run_id, sources in runs.items():
            members = [source.agent for source in sources if source.part is Part.AGENT]
            members = [key for key in dict.fromkeys(members) if self._threads[key].steps and key not in self.children]
            if members:
                self._add_workflow(run_id, sources, members, starts.get(run_id))

    def _add_workflow(
        self, run_id: str, sources: list[rows.Source], members: list[str], start: rows.Spawn | None
    ) -> None:
        run, summary = self._run, dict[str, Any]()
        files = {source.part: source for source in reversed(sources)}
        if Part.RUN in files:  # what the program writes when it is over
            try:
                summary = mapping(logs.document(files[Part.RUN].file).value())
            except DataFileError:
                run.report.note(Problem.UNREADABLE_WORKFLOW, files[Part.RUN].shown)
        total = summary.get("totalTokens")
        if type(total) is int and total >= 0:
            run.report.enter(LedgerLine.WORKFLOW_TOTAL, total=total)
        labels: dict[str, str] = {}  # the names that the script gives its agents
        for progress in objects(summary.get("workflowProgress")):
            if key := text_field(progress, "agentId"):
                labels[key] = masked(text_field(progress, "label"))
                if key not in self._threads:
                    run.report.note(Problem.NO_WORKFLOW_TRANSCRIPT, masked(key))
        thread = self._threads[run_id] = run.agent(run_id, role="workflow")
        thread.kind = steps.SCRIPT
        self.keys.setdefault(run_id, run_id)
        returned = set(members)
        if Part.JOURNAL in files:  # it has the results of agents
            journal = files[Part.JOURNAL]
            noted = logs.rows(journal.file._replace(name=journal.shown), run.report)
            returned = {text_field(row, "agentId") for _, row in noted if row.get("type") == "result"}
        for key in members:
            child = self._threads[key]
            child.role = labels.get(key, "") or child.role
            first = min(child.steps, key=lambda step: step.at)
            last = max(child.steps, key=lambda step: (step.last_time, step.order))
            call = steps.ToolCall(first.time, first.place, is_inferred=True)
            thread.add(call)
            run.spawn(key, run_id, call, waits=False)
            self.children[key] = rows.Spawn(call, thread, "", child=key)
            if key in returned:
                run.add_return(key, steps.Note(last.last_time, last.place, call.order), is_inferred=True)
        if start is not None and not start.child:
            start.call.role = masked(text_field(summary, "workflowName")) or thread.role
            self.take(run_id, start)

    def name_agents(self) -> None:
        """Name agents whose spawns have no names by their own files, and add agents without a transcript."""
        for key, details in self._meta.items():
            if key in self._run.agents and not self._run.agents[key].is_root:
                self._run.agent(key, text_field(details, "name"))
        for spawn in self._reading.spawns:
            call, result = spawn.call, spawn.result
            if spawn.child:
                continue
            named = (result.agent or result.run or result.tail) if result is not None else ""
            if result is not None and result.answer.status is Status.ERROR and not named:
                call.purpose = steps.TOOL  # no agent was spawned
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

    def link(self) -> None:
        """Link messages, waits, ends and returns."""
        for addressed in self._reading.addressed:
            self._address(addressed)
        for spawn in self._reading.spawns:
            result = spawn.result
            if spawn.child and result is not None and not result.launched and not result.answer.is_repeated:
                answer = result.answer
                self._return(spawn.child, spawn.thread, answer, answer.status, answer.ref, answer.error)
        by_task = {spawn.result.task: spawn for spawn in self._reading.spawns if spawn.result and spawn.result.task}
        by_call = {spawn.id: spawn for spawn in self._reading.spawns if spawn.id}
        for sign in self._reading.signs:
            spawn_of = by_task.get(sign.task) or by_call.get(sign.call)
            child = spawn_of.child if spawn_of is not None else self.keys.get(sign.task, "")
            status = sign.end if sign.status else Status.OK
            if sign.thread is not None and child not in ("", sign.thread.key) and status is not None:
                self._return(child, sign.thread, sign.step, status, sign.ref, sign.status)
        for addressed in self._reading.addressed:
            result = addressed.result
            is_wait = addressed.call.purpose is steps.JOIN
            if is_wait and result is not None and result.done and not result.answer.is_repeated:
                child = self._find(addressed.name, addressed.thread)
                self._return(child, addressed.thread, result.answer, ref=result.answer.ref)
        for key, step, spawn in self._unrecorded_returns():
            self._run.add_return(key, step, ref=step.ref, receiver=spawn.thread.key, is_inferred=True)
        for arrival in self._reading.arrivals:
            sender = self._find(arrival.name, arrival.thread) or self._add_stranger(arrival.name)
            self._run.receive(arrival.thread.key, arrival.step, sender, arrival.mark)

    def _return(
        self,
        child: str,
        receiver: steps.Transcript,
        step: steps.Step,
        status: Status = Status.OK,
        ref: str = "",
        error: str = "agent_error",
    ) -> None:
        self._run.add_return(child, step, status, ref, error, receiver.key)
        if status is Status.OK and (child not in self.answers or self.answers[child][0].at <= step.at):
            self.answers[child] = step, ref

    def _unrecorded_returns(self) -> Iterator[tuple[str, steps.ModelCall, rows.Spawn]]:
        """Yield the last answers of agents whose calls have no results, but whose callers waited and went on."""
        for key, spawn in self.children.items():
            call, done = spawn.call, self._reading.threads[key].steps
            if spawn.result is not None or spawn.in_background or call.is_inferred or not done:
                continue
            last = max(done, key=lambda step: (step.last_time, step.order))
            later = (step for step in spawn.thread.steps if step.order > call.order and step is not call.call)
            after = next((step for step in later if isinstance(step, (steps.ModelCall, steps.UserInput))), None)
            if not (isinstance(last, steps.ModelCall) and last.final and isinstance(after, steps.ModelCall)):
                continue
            if after.time >= last.end:
                arrival = steps.ModelCall(last.end, last.place, call.order, ref=last.ref)
                yield key, arrival, spawn

    def _address(self, addressed: rows.AgentCall) -> None:
        call, key, result = addressed.call, self._find(addressed.name, addressed.thread), addressed.result
        if call.purpose is steps.MESSAGE:
            key = key or self._add_stranger(addressed.name or "(nobody)")
            self._run.address(call, key, text=addressed.mark or None)
            return
        is_done = result is not None and not result.refused and result.answer.status is Status.OK
        if key and key != addressed.thread.key and (call.purpose is steps.JOIN or is_done):
            self._run.address(call, key, call.purpose)
            return
        call.purpose = steps.TOOL
        for spawn in self._reading.spawns if call.tool == "TeamDelete" and is_done else ():
            if spawn.team and spawn.thread is addressed.thread and spawn.child:  # the end of a team ends its agents
                end = steps.ToolCall(call.time, call.place, call.order, call=call.call)
                self._run.address(end, spawn.child, steps.CLOSE)
                addressed.thread.steps.append(end)

    def _find(self, name: str, thread: steps.Transcript) -> str:
        """Return the key of an agent by a name, or by a name and its team; empty where there is none."""
        key = self.keys.get(name) or self.keys.get(name.partition("@")[0], "")
        if key or name != _LEAD:
            return key
        return self.children[thread.key].thread.key if thread.key in self.children else rows.MAIN

    def _add_stranger(self, name: str) -> str:
        """Add an agent of which the log has only the name."""
        if name not in self.keys:
            self.keys[name] = f"{name} (stranger)"
            self._run.agent(self.keys[name], name)
        return self.keys[name]


_OPEN, _WHOLE, _ANSWER = LedgerLine.PLACEHOLDER, LedgerLine.LAST_ROW, LedgerLine.RESULT_ANSWER
_PLACEHOLDER, _REPORTED, _ONCE = TokenBasis.PLACEHOLDER, TokenBasis.REPORTED, TokenBasis.DEDUPLICATED
"""Members of enumerations: looking them up is slow on Python 3.11."""


def account(reading: Reading, family: Family) -> None:
    """Give every answer its tokens, and enter them in the ledger."""
    run, written = reading.run, reading.written
    by_call = {id(answer.call): answer for answer in written}
    replaced: set[int] = set()
    for answer in written:
        call = answer.call
        if answer.tokens is not None:
            call.basis = _ONCE if answer.rows > 1 else _REPORTED
            if rows.is_placeholder(answer):
                call.basis = _PLACEHOLDER
    for key, spawn in family.children.items():
        if spawn.result is None or spawn.result.launched:
            continue
        if spawn.result.total is not None:
            run.report.enter(LedgerLine.RESULT_CONTEXT, total=spawn.result.total)
        last = _last_answer(reading.threads[key])
        answer_of_last = by_call.get(id(last))
        if last is None or answer_of_last is None or (key in reading.relayed and not last.final):
            continue
        if _takes_output(answer_of_last, spawn, run.report):
            replaced.add(id(last))
        if last.basis is _REPORTED:
            answer_of_last.is_open = False
            last.basis = _PLACEHOLDER if rows.is_placeholder(answer_of_last) else _REPORTED
    _add_last_answers(reading, family)
    for answer in written:
        call, tokens = answer.call, answer.tokens
        if answer.is_odd:
            run.miss_number(call)
        if tokens is None:
            continue
        if not any(tokens.values()) and not call.error:  # programs write 0 for unknown
            call.basis = TokenBasis.UNKNOWN
            run.miss_zero(call)
            continue
        line = _OPEN if call.basis is _PLACEHOLDER else _WHOLE
        run.count(call, Tokens(**tokens), LedgerLine.RESULT_OUTPUT if id(call) in replaced else line)


def _last_answer(thread: steps.Transcript) -> steps.ModelCall | None:
    calls = [step for step in thread.steps if isinstance(step, steps.ModelCall)]
    return max(calls, key=lambda call: call.at, default=None)


def _takes_output(answer: rows.Written, spawn: rows.Spawn, report: ImportReport) -> bool:
    """Take the output of a sub-agent's last answer from its result, and return True if that changed it."""
    stated = spawn.result.usage if spawn.result is not None else None
    if not stated or answer.tokens is None:
        return False
    more = stated.get("output", 0) - answer.tokens.get("output", 0)
    if more < 0 or any(
        stated.get(kind, 0) != answer.tokens.get(kind, 0) for kind in ("input", "cache_read", "cache_write")
    ):
        report.note(Problem.RESULT_USAGE_DIFFERS, str(spawn.call.place))
        return False
    if answer.call.basis is _PLACEHOLDER or more:
        answer.tokens = {**answer.tokens, "output": stated.get("output", 0)}
        answer.call.basis = _REPORTED
    return more > 0


def _add_last_answers(reading: Reading, family: Family) -> None:
    """Add the last answers of sub-agents of which only progress is known, from their results."""
    for key in sorted(reading.relayed):
        thread = reading.threads[key]
        before = _last_answer(thread)
        if before is None or before.final or key not in family.answers:
            continue
        arrival, ref = family.answers[key]
        if arrival.time < before.end:
            continue
        result = family.children[key].result if key in family.children else None
        answer = steps.ModelCall(arrival.time, arrival.place, end=arrival.time, model=before.model, ref=ref)
        thread.add(answer)
        if result is None or result.launched or not result.usage:
            continue
        if len(result.id) >= rows.LEAST_ID_LENGTH:
            current_answer_ids().note(result.id, "last answer", arrival.place.file, arrival.place.line)
        answer.basis = _REPORTED
        if before.basis is _PLACEHOLDER:
            answer.basis = _PLACEHOLDER
            reading.run.report.enter(_OPEN, 0)
        reading.run.count(answer, Tokens(**result.usage), _ANSWER)
