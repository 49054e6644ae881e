"""A group chat: agents take turns, and each reads what people wrote and what the agent before it said."""

from msgspec import Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.transcript import Delivery, ModelCall, Note, Step, ToolCall, UserInput


class Utterance(NamedTuple):
    """The last utterance or act of an agent."""

    agent: str
    step: Step
    ref: str = ""  # the reference to its text
    answer: ModelCall | None = None  # the answer that decided who speaks next


class _OpenCall(Struct):
    """A call without its result, inside which other agents may work."""

    caller: str
    call: ToolCall
    task: Note | None = None  # what it has given another agent to do


class GroupChat:
    """The last speaker in a run of peers, what the next one has to read, and the calls inside which agents work."""

    def __init__(self, run: Run) -> None:
        self.last: Utterance | None = None  # the last turn; None if nobody spoke, or a person did since
        self._run = run
        self._typed: list[UserInput] = []
        self._handoff: tuple[ToolCall, str] | None = None
        self._open_calls: dict[str, _OpenCall] = {}

    def hear(self, typed: UserInput) -> None:
        """Keep the input of a person for the agent that speaks next."""
        self._typed.append(typed)
        self.last = None

    def hand_over(self, call: ToolCall, receiver: str) -> None:
        """Note that an agent hands over to another by a call."""
        self._run.address(call, receiver)
        self._handoff = call, receiver

    def deliver(self, receiver: str) -> None:
        """Give an agent, when its turn comes, what people wrote and what the agent before it said."""
        agent = self._run.agent(receiver)
        for typed in self._typed:
            agent.add(typed)
        self._typed = []
        if self.last is None or self.last.agent == receiver:
            return
        sender, step, ref, answer = self.last
        if self._handoff is not None and self._handoff[1] == receiver:
            agent.add(Delivery(step.last_time, step.place, sent=self._handoff[0]))
        else:
            self._run.message(sender, receiver, step.last_time, step.place, ref, answer)
        self._handoff = None

    def begin_call(self, caller: str, call_id: str, call: ToolCall) -> None:
        """Note a call: until its result is there, agents may work inside it, such as a team that is a tool."""
        self._open_calls[call_id] = _OpenCall(caller, call)

    def end_call(self, call_id: str) -> str:
        """Return the caller of a call whose result is there; empty if no such call was open."""
        called = self._open_calls.pop(call_id, None)
        return called.caller if called is not None else ""

    def give_task(self, task: Note) -> bool:
        """Add the task that the last open call has for its agent, and return True; False if no call is open."""
        for called in reversed(self._open_calls.values()):
            called.task = task
            return True
        return False

    def is_inside_call(self, agent: str) -> bool:
        """Return True if an agent works inside a call of another."""
        return self._call_around(agent) is not None

    def _call_around(self, agent: str) -> _OpenCall | None:
        """Return the call in which an agent works: the last one of its name, else the last one with a task."""
        others = [called for called in self._open_calls.values() if called.caller != agent]
        by_name = [called for called in others if called.call.tool == agent]
        return next(reversed(by_name or [called for called in others if called.task is not None]), None)

    def begin_turn(self, agent: str) -> bool:
        """Let an agent read what it has to before it answers, and return True if it works inside a call of another."""
        called, run = self._call_around(agent), self._run
        if called is None:
            self.deliver(agent)
            return False
        child = run.child_of(called.caller, called.call.id)
        if not child:
            if called.task is not None:
                run.agent(agent).add(called.task)
            run.spawn(agent, called.caller, called.call)
        elif agent != child and not run.is_spawned(agent):  # another agent of a team that is a tool
            run.spawn(agent, called.caller)
        return True

    def end(self) -> None:
        """End the run with the last agent's turn: it is the root unless another spawned it."""
        if self.last is not None:
            self._run.agent(self.last.agent).is_root = not self._run.is_spawned(self.last.agent)
