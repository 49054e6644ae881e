"""Group chats: agents take turns, and each agent reads the messages of people and of the previous speaker."""

from msgspec import Struct

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.transcript import Delivery, ModelCall, Note, Step, ToolCall, UserInput


class Utterance(NamedTuple):
    """The last message or action of an agent in its turn."""

    agent: str
    step: Step
    ref: str = ""  # the reference to its text
    answer: ModelCall | None = None  # the answer that decided who speaks next


class _OpenCall(Struct):
    """A call that has no result yet. Other agents may work inside it."""

    caller: str
    call: ToolCall
    task: Note | None = None  # the task that the call gives to another agent


class GroupChat:
    """The state of a run of peers: the last speaker, the unread inputs of people, and the open calls."""

    def __init__(self, run: Run) -> None:
        self.last: Utterance | None = None  # of the previous speaker; None at the start and after input of a person
        self._run = run
        self._unread_inputs: list[UserInput] = []
        self._handoff: tuple[ToolCall, str] | None = None  # the last handoff: its call and its receiver
        self._open_calls: dict[str, _OpenCall] = {}

    def hear(self, typed: UserInput) -> None:
        """Keep the input of a person for the agent that speaks next."""
        self._unread_inputs.append(typed)
        self.last = None

    def hand_over(self, call: ToolCall, receiver: str) -> None:
        """Note a call by which an agent hands over to another agent."""
        self._run.address(call, receiver)
        self._handoff = call, receiver

    def deliver(self, receiver: str) -> None:
        """Give the unread inputs of people and the last message to the agent whose turn begins."""
        agent = self._run.agent(receiver)
        for user_input in self._unread_inputs:
            agent.add(user_input)
        self._unread_inputs = []
        if self.last is None or self.last.agent == receiver:
            return
        sender, step, ref, answer = self.last
        if self._handoff is not None and self._handoff[1] == receiver:
            agent.add(Delivery(step.last_time, step.place, sent=self._handoff[0]))
        else:
            self._run.message(sender, receiver, step.last_time, step.place, ref, answer)
        self._handoff = None

    def begin_call(self, caller: str, call_id: str, call: ToolCall) -> None:
        """Note a call. Until its result is read, agents may work inside it, such as a team that is used as a tool."""
        self._open_calls[call_id] = _OpenCall(caller, call)

    def end_call(self, call_id: str) -> str:
        """Note the result of a call, and return its caller; empty if no such call was open."""
        open_call = self._open_calls.pop(call_id, None)
        return open_call.caller if open_call is not None else ""

    def give_task(self, task: Note) -> bool:
        """Set the task of the call that was opened last, and return True; return False if no call is open."""
        if not self._open_calls:
            return False
        last = next(reversed(self._open_calls.values()))
        last.task = task
        return True

    def is_inside_call(self, agent: str) -> bool:
        """Return True if an agent works inside a call of another agent."""
        return self._call_around(agent) is not None

    def _call_around(self, agent: str) -> _OpenCall | None:
        """Return the open call in which an agent works: the last of a tool with its name, else the last with a task."""
        others = [open_call for open_call in self._open_calls.values() if open_call.caller != agent]
        candidates = [open_call for open_call in others if open_call.call.tool == agent]
        if not candidates:
            candidates = [open_call for open_call in others if open_call.task is not None]
        return candidates[-1] if candidates else None

    def begin_turn(self, agent: str) -> bool:
        """Give an agent what it reads before it answers, and return True if it works inside a call of another agent."""
        open_call, run = self._call_around(agent), self._run
        if open_call is None:
            self.deliver(agent)
            return False
        child = run.child_of(open_call.caller, open_call.call.id)
        if not child:
            if open_call.task is not None:
                run.agent(agent).add(open_call.task)
            run.spawn(agent, open_call.caller, open_call.call)
        elif agent != child and not run.is_spawned(agent):  # another agent of a team that is used as a tool
            run.spawn(agent, open_call.caller)
        return True

    def end(self) -> None:
        """Make the last speaker the root of the run, unless another agent spawned it."""
        if self.last is not None:
            self._run.agent(self.last.agent).is_root = not self._run.is_spawned(self.last.agent)
