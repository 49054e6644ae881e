"""Import Claude Code transcripts: sessions with their sub-agents, teammates and workflows."""

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
from orchtrace_corpus.trace.importers.core.values import as_object, objects_in, text_field
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import Status, TokenBasis
from orchtrace_corpus.trace.model.trace import Tokens, Trace

__all__ = ["further_files", "read", "recognises", "session_keys"]

_MAX_SAME_PROMPT = 100  # of spawns with the same prompt, so many are compared with an agent's name


def read(files: Sequence[logs.LogFile], privacy: Privacy) -> Iterator[Trace]:
    """Yield the trace of a session."""
    run = Run("claude_code", privacy)
    run.system = "claude-code"
    reading = Reading(files, run)
    family = Family(reading)
    family.find_by_ids()
    family.find_by_prompt()
    family.find_workflows()
    family.name_agents()
    family.link()
    count_tokens(reading, family)
    yield run.trace(empty_message=f"no row of a conversation in {reading.sources[0].name}")


class Family:
    """The sub-agents of a session and their spawns. An agent's key is the key of its thread."""

    def __init__(self, reading: Reading) -> None:
        # by agent: the arrival of its last good result, and the reference to this result
        self.last_results: dict[str, tuple[steps.Step, str]] = {}
        self.spawn_by_child: dict[str, rows.Spawn] = {}  # by the key of the spawned agent
        self.keys: dict[str, str] = {}  # of agents, by each name and id that the log has for them
        for key, thread in reading.threads.items():
            self.keys[key] = rows.MAIN if thread.aside else key
        self._run, self._reading, self._threads = reading.run, reading, reading.threads
        self._meta: dict[str, dict[str, Any]] = {}  # by agent: the contents of the file that describes it
        for source in reading.sources:
            if source.part is not Part.META:
                continue
            description = None
            with suppress(DataFileError):
                description = logs.document(source.file).value()
            if type(description) is not dict:
                self._run.report.note(Problem.UNREADABLE_META, source.name)
                continue
            self._meta[source.agent] = description
            if source.agent in self._threads:
                self._threads[source.agent].role = masked(text_field(description, "agentType"))
        results: dict[tuple[str, str], rows.Result] = {}
        for result in reading.results:
            results.setdefault((result.thread.key, result.call_id), result)
        calls: list[rows.AgentCall] = [*reading.spawns, *reading.agent_calls]
        for call in calls:
            if call.id:
                call.result = results.get((call.thread.key, call.id))

    def find_by_ids(self) -> None:
        """Find the children of spawns by ids of calls, agents and rows, the surest evidence first."""
        spawns, reading = self._reading.spawns, self._reading
        by_id = {spawn.id: spawn for spawn in reversed(spawns) if spawn.id}  # of equal ids, the first spawn
        by_row = {spawn.row: spawn for spawn in reversed(spawns) if spawn.row}
        for key, description in self._meta.items():
            self.adopt(key, by_id.get(text_field(description, "toolUseId")))
        for spawn in spawns:
            if spawn.result is not None:
                self.adopt(spawn.result.agent, spawn)
        for key, call_id in reading.progress_calls.items():
            self.adopt(key, by_id.get(call_id))
        for spawn in spawns:
            if spawn.result is not None and not spawn.result.agent:
                self.adopt(spawn.result.agent_in_text, spawn)
        for key, beginning in reading.beginnings.items():
            if key not in self.spawn_by_child:
                self.adopt(key, by_row.get(beginning.parent_row))

    def find_by_prompt(self) -> None:
        """Find the children of spawns by their prompts: first of equal names, then where one of them has no name."""
        for must_have_name in (True, False):
            free_spawns: dict[int, list[rows.Spawn]] = {}  # by the mark of the prompt
            for spawn in self._reading.spawns:
                if not spawn.child and spawn.mark and spawn.call.tool != rows.WORKFLOW_TOOL:
                    free_spawns.setdefault(spawn.mark, []).append(spawn)
            for key, beginning in self._reading.beginnings.items():
                if key in self.spawn_by_child or key not in self._threads:
                    continue
                name = text_field(self._meta.get(key), "name")
                for spawn in free_spawns.get(beginning.prompt_mark, [])[:_MAX_SAME_PROMPT]:
                    if must_have_name and (not name or name != spawn.name):
                        continue
                    if not must_have_name and name and spawn.name:
                        continue
                    if self.adopt(key, spawn):
                        free_spawns[beginning.prompt_mark].remove(spawn)
                        break

    def adopt(self, key: str, spawn: rows.Spawn | None) -> bool:
        """Make an agent the child of a spawn; return False if this is impossible or if the agent has a spawn already.

        A second spawn of an agent continues its work.
        """
        thread = self._threads.get(key)
        if spawn is None or spawn.child or thread is None or thread is spawn.thread or thread.is_root or thread.aside:
            return False
        spawn.child = key
        self._run.spawn(key, self.keys[spawn.thread.key], spawn.call, waits=False)
        if key in self.spawn_by_child:
            return False
        self.spawn_by_child[key] = spawn
        thread.is_warm_up = False
        thread.role = spawn.call.role or thread.role
        self._run.agent(key, spawn.name)
        if spawn.name:
            self.keys.setdefault(spawn.name, key)
        return True

    def find_workflows(self) -> None:
        """Give each run of a workflow a thread, which spawns the agents whose transcripts are in its folder."""
        sources_by_run: dict[str, list[rows.Source]] = {}
        for source in self._reading.sources:
            if source.run:
                sources_by_run.setdefault(source.run, []).append(source)
        starts = {spawn.result.run: spawn for spawn in self._reading.spawns if spawn.result is not None}
        for run_id, sources in sources_by_run.items():
            keys = dict.fromkeys(source.agent for source in sources if source.part is Part.AGENT)
            members = [key for key in keys if self._threads[key].steps and key not in self.spawn_by_child]
            if members:
                self._add_workflow(run_id, sources, members, starts.get(run_id))

    def _add_workflow(
        self, run_id: str, sources: list[rows.Source], members: list[str], start: rows.Spawn | None
    ) -> None:
        """Add a run of a workflow, given by its files, the keys of its agents, and the call that started it."""
        run = self._run
        summary: dict[str, Any] = {}
        files = {source.part: source for source in reversed(sources)}
        if Part.RUN in files:  # the program writes it at the end of the workflow
            try:
                summary = as_object(logs.document(files[Part.RUN].file).value())
            except DataFileError:
                run.report.note(Problem.UNREADABLE_WORKFLOW, files[Part.RUN].name)
        total = summary.get("totalTokens")
        if type(total) is int and total >= 0:
            run.report.enter(LedgerLine.WORKFLOW_TOTAL, total=total)
        labels: dict[str, str] = {}  # by agent: the name that the script gives it
        for progress in objects_in(summary.get("workflowProgress")):
            key = text_field(progress, "agentId")
            if key:
                labels[key] = masked(text_field(progress, "label"))
                if key not in self._threads:
                    run.report.note(Problem.NO_WORKFLOW_TRANSCRIPT, masked(key))
        thread = self._threads[run_id] = run.agent(run_id, role="workflow")
        thread.kind = steps.SCRIPT
        self.keys.setdefault(run_id, run_id)
        returned = set(members)
        if Part.JOURNAL in files:
            journal = files[Part.JOURNAL]
            entries = logs.rows(journal.file._replace(name=journal.name), run.report)
            returned = {text_field(entry, "agentId") for _, entry in entries if entry.get("type") == "result"}
        for key in members:
            child = self._threads[key]
            child.role = labels.get(key, "") or child.role
            first = min(child.steps, key=lambda step: step.at)
            last = max(child.steps, key=lambda step: (step.last_time, step.order))
            call = steps.ToolCall(first.time, first.place, is_inferred=True)
            thread.add(call)
            run.spawn(key, run_id, call, waits=False)
            self.spawn_by_child[key] = rows.Spawn(call, thread, "", child=key)
            if key in returned:
                run.add_return(key, steps.Note(last.last_time, last.place, call.order), is_inferred=True)
        if start is not None and not start.child:
            start.call.role = masked(text_field(summary, "workflowName")) or thread.role
            self.adopt(run_id, start)

    def name_agents(self) -> None:
        """Name agents whose spawns have no names by the files that describe them; add agents without transcripts."""
        for key, description in self._meta.items():
            if key in self._run.agents and not self._run.agents[key].is_root:
                self._run.agent(key, text_field(description, "name"))
        for spawn in self._reading.spawns:
            call, result = spawn.call, spawn.result
            if spawn.child:
                continue
            child_id = ""
            if result is not None:
                child_id = result.agent or result.run or result.agent_in_text
                if not child_id and result.step.status is Status.ERROR:
                    call.purpose = steps.TOOL  # no agent was spawned
                    continue
            spawn.child = f"{spawn.thread.key} {call.order} (absent)"
            name = spawn.name or child_id or f"{call.role or 'agent'}:{call.id[-8:]}"
            absent = self._run.agent(spawn.child, name)
            absent.role = call.role
            if call.tool == rows.WORKFLOW_TOOL:
                absent.kind = steps.SCRIPT
            self._run.spawn(spawn.child, self.keys[spawn.thread.key], call, waits=False)
            for name in (child_id, spawn.name, spawn.id):
                if name:
                    self.keys.setdefault(name, spawn.child)

    def link(self) -> None:
        """Link messages, waits, ends and returns to the agents that they concern."""
        for agent_call in self._reading.agent_calls:
            self._address(agent_call)
        for spawn in self._reading.spawns:
            result = spawn.result
            if spawn.child and result is not None and not result.is_launch and not result.step.is_repeated:
                arrival = result.step
                self._return(spawn.child, spawn.thread, arrival, arrival.status, arrival.ref, arrival.error)
        by_task = {spawn.result.task: spawn for spawn in self._reading.spawns if spawn.result and spawn.result.task}
        by_call = {spawn.id: spawn for spawn in self._reading.spawns if spawn.id}
        for sign in self._reading.signs:
            spawn_of_task = by_task.get(sign.task_id) or by_call.get(sign.call_id)
            child = self.keys.get(sign.task_id, "") if spawn_of_task is None else spawn_of_task.child
            status = sign.end if sign.word else Status.OK
            if sign.thread is not None and child not in ("", sign.thread.key) and status is not None:
                self._return(child, sign.thread, sign.step, status, sign.ref, error=sign.word)
        for agent_call in self._reading.agent_calls:
            result = agent_call.result
            is_wait = agent_call.call.purpose is steps.JOIN
            if is_wait and result is not None and result.is_done and not result.step.is_repeated:
                child = self._find(agent_call.name, agent_call.thread)
                self._return(child, agent_call.thread, result.step, ref=result.step.ref)
        for key, last_answer, spawn in self._unrecorded_returns():
            self._run.add_return(key, last_answer, ref=last_answer.ref, receiver=spawn.thread.key, is_inferred=True)
        for message in self._reading.messages:
            sender = self._find(message.sender, message.thread) or self._add_unknown_agent(message.sender)
            self._run.receive(message.thread.key, message.step, sender, message.mark)

    def _return(
        self,
        child: str,
        receiver: steps.Transcript,
        step: steps.Step,
        status: Status = Status.OK,
        ref: str = "",
        error: str = "agent_error",
    ) -> None:
        """Note that an agent's result arrived at a step of the receiver."""
        self._run.add_return(child, step, status, ref, error, receiver.key)
        if status is Status.OK and (child not in self.last_results or self.last_results[child][0].at <= step.at):
            self.last_results[child] = step, ref

    def _unrecorded_returns(self) -> Iterator[tuple[str, steps.ModelCall, rows.Spawn]]:
        """Yield the last answers of agents whose calls have no results, but whose callers waited and went on."""
        for key, spawn in self.spawn_by_child.items():
            call, child_steps = spawn.call, self._reading.threads[key].steps
            if spawn.result is not None or spawn.in_background or call.is_inferred or not child_steps:
                continue
            last = max(child_steps, key=lambda step: (step.last_time, step.order))
            next_step = None  # the caller's next answer or input
            for step in spawn.thread.steps:
                is_later = step.order > call.order and step is not call.model_call
                if is_later and isinstance(step, (steps.ModelCall, steps.UserInput)):
                    next_step = step
                    break
            if not (isinstance(last, steps.ModelCall) and last.final and isinstance(next_step, steps.ModelCall)):
                continue
            if next_step.time >= last.end:
                arrival = steps.ModelCall(last.end, last.place, call.order, ref=last.ref)
                yield key, arrival, spawn

    def _address(self, agent_call: rows.AgentCall) -> None:
        """Link a message, wait or end to its agent; without an agent, it becomes a call of a tool."""
        call, result = agent_call.call, agent_call.result
        key = self._find(agent_call.name, agent_call.thread)
        if call.purpose is steps.MESSAGE:
            key = key or self._add_unknown_agent(agent_call.name or "(nobody)")
            self._run.address(call, key, text=agent_call.mark or None)
            return
        succeeded = result is not None and not result.is_refused and result.step.status is Status.OK
        if key and key != agent_call.thread.key and (call.purpose is steps.JOIN or succeeded):
            self._run.address(call, key, call.purpose)
            return
        call.purpose = steps.TOOL
        if call.tool == "TeamDelete" and succeeded:  # the end of a team ends its agents
            for spawn in self._reading.spawns:
                if spawn.team and spawn.thread is agent_call.thread and spawn.child:
                    end = steps.ToolCall(call.time, call.place, call.order, model_call=call.model_call)
                    self._run.address(end, spawn.child, steps.CLOSE)
                    agent_call.thread.steps.append(end)

    def _find(self, name: str, thread: steps.Transcript) -> str:
        """Return the key of the agent that a thread calls by a name or by `NAME@TEAM`; empty if there is none."""
        key = self.keys.get(name) or self.keys.get(name.partition("@")[0], "")
        if key or name != rows.LEAD:
            return key
        if thread.key in self.spawn_by_child:
            return self.spawn_by_child[thread.key].thread.key
        return rows.MAIN

    def _add_unknown_agent(self, name: str) -> str:
        """Add an agent of which the log has only the name, and return its key."""
        if name not in self.keys:
            self.keys[name] = f"{name} (stranger)"
            self._run.agent(self.keys[name], name)
        return self.keys[name]


# Python 3.11 is slow to look up a member of an enumeration
_PLACEHOLDER_LINE, _LAST_ROW_LINE = LedgerLine.PLACEHOLDER, LedgerLine.LAST_ROW
_PLACEHOLDER, _REPORTED, _DEDUPLICATED = TokenBasis.PLACEHOLDER, TokenBasis.REPORTED, TokenBasis.DEDUPLICATED


def count_tokens(reading: Reading, family: Family) -> None:
    """Give every answer its tokens, and enter them in the ledger."""
    run = reading.run
    answer_by_call = {id(answer.call): answer for answer in reading.answers}
    corrected: set[int] = set()  # the `id` of each call whose output the result of its agent corrects
    for answer in reading.answers:
        call = answer.call
        if answer.tokens is not None:
            call.basis = _DEDUPLICATED if answer.row_count > 1 else _REPORTED
            if rows.is_placeholder(answer):
                call.basis = _PLACEHOLDER
    for key, spawn in family.spawn_by_child.items():
        if spawn.result is None or spawn.result.is_launch:
            continue
        if spawn.result.total is not None:
            run.report.enter(LedgerLine.RESULT_CONTEXT, total=spawn.result.total)
        last = _last_answer(reading.threads[key])
        answer_of_last = answer_by_call.get(id(last))
        if last is None or answer_of_last is None or (key in reading.only_in_progress and not last.final):
            continue
        if _correct_output(answer_of_last, spawn, run.report):
            corrected.add(id(last))
        if last.basis is _REPORTED:  # the result states the whole output, so its length alone decides
            answer_of_last.is_unfinished = False
            last.basis = _PLACEHOLDER if rows.is_placeholder(answer_of_last) else _REPORTED
    _add_last_answers(reading, family)
    for answer in reading.answers:
        call, tokens = answer.call, answer.tokens
        if answer.has_invalid_count:
            run.miss_number(call)
        if tokens is None:
            continue
        if not any(tokens.values()) and not call.error:  # programs write 0 for unknown
            call.basis = TokenBasis.UNKNOWN
            run.miss_zero(call)
            continue
        line = _PLACEHOLDER_LINE if call.basis is _PLACEHOLDER else _LAST_ROW_LINE
        if id(call) in corrected:
            line = LedgerLine.RESULT_OUTPUT
        run.count(call, Tokens(**tokens), line)


def _last_answer(thread: steps.Transcript) -> steps.ModelCall | None:
    calls = [step for step in thread.steps if isinstance(step, steps.ModelCall)]
    return max(calls, key=lambda call: call.at, default=None)


def _correct_output(answer: rows.Answer, spawn: rows.Spawn, report: ImportReport) -> bool:
    """Correct the output of a sub-agent's last answer by the usage in its result; return True if it was too low."""
    tokens = answer.tokens
    stated = spawn.result.usage if spawn.result is not None else None
    if not stated or tokens is None:
        return False
    is_same_input = all(stated.get(kind, 0) == tokens.get(kind, 0) for kind in ("input", "cache_read", "cache_write"))
    missing_output = stated.get("output", 0) - tokens.get("output", 0)
    if missing_output < 0 or not is_same_input:
        report.note(Problem.RESULT_USAGE_DIFFERS, str(spawn.call.place))
        return False
    if answer.call.basis is _PLACEHOLDER or missing_output:
        answer.tokens = {**tokens, "output": stated.get("output", 0)}
        answer.call.basis = _REPORTED
    return missing_output > 0


def _add_last_answers(reading: Reading, family: Family) -> None:
    """Add the last answers of the agents that only rows of progress show: these rows end before it, results have it."""
    for key in sorted(reading.only_in_progress):
        thread = reading.threads[key]
        previous = _last_answer(thread)
        if previous is None or previous.final or key not in family.last_results:
            continue
        arrival, ref = family.last_results[key]
        if arrival.time < previous.end:
            continue
        answer = steps.ModelCall(arrival.time, arrival.place, end=arrival.time, model=previous.model, ref=ref)
        thread.add(answer)
        result = family.spawn_by_child[key].result if key in family.spawn_by_child else None
        if result is None or result.is_launch or not result.usage:
            continue
        if len(result.call_id) >= rows.MIN_ID_LENGTH:
            current_answer_ids().note(result.call_id, "last answer", arrival.place.file, arrival.place.line)
        answer.basis = _REPORTED
        if previous.basis is _PLACEHOLDER:
            answer.basis = _PLACEHOLDER
            reading.run.report.enter(_PLACEHOLDER_LINE, 0)
        reading.run.count(answer, Tokens(**result.usage), LedgerLine.RESULT_ANSWER)
