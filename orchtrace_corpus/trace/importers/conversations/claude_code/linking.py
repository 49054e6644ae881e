"""The returns and messages of the agents of a Claude Code session."""

from collections.abc import Iterator

from orchtrace_corpus.trace.importers.conversations.claude_code import rows
from orchtrace_corpus.trace.importers.conversations.claude_code.background import ENDS
from orchtrace_corpus.trace.importers.conversations.claude_code.family import Family
from orchtrace_corpus.trace.importers.conversations.claude_code.reading import MAIN, Reading
from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.model.trace import Status

LEAD = "team-lead"
"""The name by which teammates know the agent that the user talks to."""

_MOST_COMPARED = 10
"""Among so many messages of the same text, the one that arrives is looked for."""


class Links:
    """Adds what comes back to the run, and addresses messages, waits and ends to agents.

    Attributes:
        answers: The step with which the last result of each agent arrived that ended well, by the agent's key, with a
            reference to that result.
    """

    def __init__(self, reading: Reading, family: Family) -> None:
        self.answers: dict[str, tuple[steps.Step, str]] = {}
        self._run, self._reading, self._family = reading.run, reading, family
        self._evidence = reading.content.evidence

    def link(self) -> None:
        """Link all that the log records."""
        for addressed in self._evidence.addressed:
            self._address(addressed)
        self._return_results()
        self._return_notices()
        for addressed in self._evidence.addressed:
            result = addressed.result
            is_wait = addressed.call.purpose is steps.JOIN
            if is_wait and result is not None and result.done and not result.answer.is_repeated:
                self._return(self._find(addressed), addressed.thread, result.answer, ref=result.answer.ref)
        for key, step, spawn in self._unrecorded_returns():
            self._run.returned(key, step, ref=step.ref, receiver=spawn.thread.key, is_inferred=True)
        self._deliver_messages()

    def _return(
        self,
        child: str,
        receiver: steps.Transcript,
        step: steps.Step,
        status: Status = Status.OK,
        ref: str = "",
        error: str = "agent_error",
    ) -> None:
        self._run.returned(child, step, status, ref, error, receiver.key)
        if status is Status.OK and (child not in self.answers or self.answers[child][0].at <= step.at):
            self.answers[child] = step, ref

    def _return_results(self) -> None:
        for spawn in self._evidence.spawns:
            result = spawn.result
            if spawn.child and result is not None and not result.launched and not result.answer.is_repeated:
                answer = result.answer
                self._return(spawn.child, spawn.thread, answer, answer.status, answer.ref, answer.error)

    def _return_notices(self) -> None:
        by_task = {spawn.result.task: spawn for spawn in self._evidence.spawns if spawn.result and spawn.result.task}
        by_call = {spawn.id: spawn for spawn in self._evidence.spawns if spawn.id}
        for notice in self._evidence.notices:
            task = notice.task
            spawn = by_task.get(task.task) or by_call.get(task.call)
            child = spawn.child if spawn is not None else self._family.keys.get(task.task, "")
            status = ENDS.get(task.status) if task.status else Status.OK
            if child and child != notice.thread.key and status is not None:
                self._return(child, notice.thread, notice.step, status, notice.ref, task.status)

    def _unrecorded_returns(self) -> Iterator[tuple[str, steps.ModelCall, rows.Spawn]]:
        """Yield the last answers of agents whose call has no result, though the caller went on when they were given.

        Such a call waits for the child, so a caller that did something before, or was interrupted, had no answer.
        """
        for key, spawn in self._family.children.items():
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

    def _address(self, addressed: rows.Addressed) -> None:
        call, key, result = addressed.call, self._find(addressed), addressed.result
        if call.purpose is steps.MESSAGE:
            self._run.address(call, key or self._add_stranger(addressed.name or "(nobody)"))
            return
        is_done = result is not None and not result.refused and result.answer.status is Status.OK
        if key and key != addressed.thread.key and (call.purpose is steps.JOIN or is_done):
            self._run.address(call, key, call.purpose)
            return
        if call.tool == "TeamDelete" and is_done:
            self._close_team(addressed)
        call.purpose = steps.TOOL

    def _close_team(self, addressed: rows.Addressed) -> None:
        """Close every teammate that an agent has spawned, which dissolves its team."""
        call = addressed.call
        for spawn in self._evidence.spawns:
            if spawn.team and spawn.thread is addressed.thread and spawn.child:
                end = steps.ToolCall(call.time, call.place, call.order, call=call.call)
                self._run.address(end, spawn.child, steps.CLOSE)
                addressed.thread.steps.append(end)

    def _find(self, addressed: rows.Addressed) -> str:
        return self._find_by_name(addressed.name, addressed.thread) if addressed.name else ""

    def _find_by_name(self, name: str, thread: steps.Transcript) -> str:
        """Return the key of an agent by a name, or by a name and its team; empty where there is none."""
        key = self._family.keys.get(name) or self._family.keys.get(name.partition("@")[0], "")
        if key or name != LEAD:
            return key
        return self._family.children[thread.key].thread.key if thread.key in self._family.children else MAIN

    def _add_stranger(self, name: str) -> str:
        """Add an agent of which the log says nothing but its name."""
        if name not in self._family.keys:
            self._family.keys[name] = f"{name} (stranger)"
            self._run.agent(self._family.keys[name], name)
        return self._family.keys[name]

    def _deliver_messages(self) -> None:
        """Join the messages that arrive to those that were sent, where the log has both."""
        sent: dict[tuple[str, int], list[steps.ToolCall]] = {}
        for addressed in self._evidence.addressed:
            if addressed.call.purpose is steps.MESSAGE and addressed.mark:
                key = self._find(addressed) or self._add_stranger(addressed.name or "(nobody)")
                sent.setdefault((key, addressed.mark), []).append(addressed.call)
        for arrival in self._evidence.arrivals:
            step, thread = arrival.step, arrival.thread
            sender = self._find_by_name(arrival.name, thread) or self._add_stranger(arrival.name)
            calls = sent.get((thread.key, arrival.mark), [])
            earlier = next((call for call in calls[:_MOST_COMPARED] if call.time <= step.time), None)
            if earlier is not None:
                calls.remove(earlier)
                step.sent = earlier
            elif sender != thread.key:  # what it tells itself is but a note
                self._run.sent_by(step, sender)
