"""What comes back from sub-agents in a Claude Code session, and what agents say to one another."""

from orchtrace_corpus.trace.importers.conversations.claude_code.family import Family
from orchtrace_corpus.trace.importers.conversations.claude_code.reading import MAIN, Reading
from orchtrace_corpus.trace.importers.conversations.claude_code.spawn_evidence import Aimed, Arrival
from orchtrace_corpus.trace.importers.conversations.returns import Back, add_returns
from orchtrace_corpus.trace.importers.conversations.transcript import Act, Deed, Thread
from orchtrace_corpus.trace.model.trace import Status

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


def bring_back(reading: Reading, family: Family) -> None:
    """Add what comes back to the threads that it comes to, and aim messages, waits and ends at agents."""
    _Returning(reading, family).bring_back()


class _Returning:
    def __init__(self, reading: Reading, family: Family) -> None:
        self._reading = reading
        self._family = family
        self._clues = reading.content.clues
        self._tasks = {spawn.result.task: spawn for spawn in self._clues.spawns if spawn.result and spawn.result.task}
        self._spawns = {spawn.id: spawn for spawn in self._clues.spawns if spawn.id}

    def bring_back(self) -> None:
        for aimed in self._clues.aimed:
            self._aim(aimed)
        backs = [*self._results(), *self._notices(), *self._waits()]
        add_returns(backs, self._reading.threads.values())
        sent: dict[tuple[str, int], list[Act]] = {}
        for aimed in self._clues.aimed:
            if aimed.act.deed is Deed.MESSAGE and aimed.mark:
                sent.setdefault((aimed.act.target, aimed.mark), []).append(aimed.act)
        for arrival in self._clues.arrivals:
            self._deliver(arrival, sent)

    def _results(self) -> list[Back]:
        spawns = [(spawn, spawn.act.target) for spawn in self._clues.spawns if spawn.act.deed is Deed.SPAWN]
        spawns += [(spawn, spawn.act.target) for spawn, _ in self._family.again]
        found = []
        for spawn, child in spawns:
            result = spawn.result
            if result is not None and not result.launched and child and not result.answer.is_repeated:
                answer = result.answer
                found.append(Back(answer, spawn.thread, child, answer.status, answer.error, answer.ref))
        return found

    def _notices(self) -> list[Back]:
        found = []
        for notice in self._clues.notices:
            told = notice.told
            spawn = self._tasks.get(told.task) or self._spawns.get(told.call)
            child = spawn.act.target if spawn is not None else self._family.names.get(told.task, "")
            status = _STATUSES.get(told.status)
            if child and child != notice.thread.agent and status is not None:
                error = told.status if status is Status.ERROR else ""
                found.append(Back(notice.step, notice.thread, child, status, error, notice.ref))
        return found

    def _waits(self) -> list[Back]:
        found = []
        for aimed in self._clues.aimed:
            result = aimed.result
            if aimed.act.deed is Deed.JOIN and result is not None and result.done and not result.answer.is_repeated:
                found.append(Back(result.answer, aimed.thread, aimed.act.target, ref=result.answer.ref))
        return found

    def _aim(self, aimed: Aimed) -> None:
        act = aimed.act
        target = self._called(aimed.name, aimed.thread) if aimed.name else ""
        if act.deed is Deed.MESSAGE:
            act.target = target or self._stranger(aimed.name or "(nobody)")
            return
        is_done = aimed.result is not None and not aimed.result.refused and aimed.result.answer.status is Status.OK
        if target and target != aimed.thread.agent and (act.deed is Deed.JOIN or is_done):
            act.target = target
        else:
            if act.tool == "TeamDelete" and is_done:
                self._close_team(aimed)
            act.deed = Deed.TOOL

    def _close_team(self, aimed: Aimed) -> None:
        """A team is dissolved, and with it every teammate that this agent has spawned."""
        for spawn in self._clues.spawns:
            if spawn.team and spawn.thread is aimed.thread and spawn.act.deed is Deed.SPAWN:
                end = Act(
                    aimed.act.time, aimed.act.place, deed=Deed.CLOSE, call=aimed.act.call, target=spawn.act.target
                )
                end.order = aimed.act.order
                aimed.thread.steps.append(end)

    def _called(self, name: str, thread: Thread) -> str:
        """The agent that goes by a name, or by a name and its team; empty where there is none."""
        found = self._family.names.get(name) or self._family.names.get(name.partition("@")[0], "")
        return found or (thread.parent or MAIN if name == LEAD else "")

    def _stranger(self, name: str) -> str:
        """A name for an agent of which the log says nothing else."""
        if name not in self._family.names:
            self._family.names[name] = self._reading.name(name)
        return self._family.names[name]

    def _deliver(self, arrival: Arrival, sent: dict[tuple[str, int], list[Act]]) -> None:
        """A message that arrives is the one that was sent, where the log has that, too."""
        step, thread = arrival.step, arrival.thread
        step.sender = self._called(arrival.name, thread) or self._stranger(arrival.name)
        waiting = sent.get((thread.agent, arrival.mark), [])
        for number, act in enumerate(waiting[:10]):
            if act.time <= step.time:
                step.sent = waiting.pop(number)
                return
        if step.sender == thread.agent:
            step.sender = ""  # what it tells itself is but a note
