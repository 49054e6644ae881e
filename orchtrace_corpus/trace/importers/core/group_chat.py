"""A group chat: agents that take turns, each of which reads what people wrote and what the agent before it said."""

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.transcript import Delivery, ModelCall, Step, ToolCall, UserInput


class Utterance(NamedTuple):
    """The last utterance or act of an agent."""

    agent: str
    step: Step
    ref: str = ""  # what refers to what it said
    answer: ModelCall | None = None  # the answer that decided who is next, if one has


class GroupChat:
    """The last speaker in a run of peers, and what the next one has to read.

    Attributes:
        last: The last turn; None where a person has spoken since, or nobody has.
    """

    def __init__(self, run: Run) -> None:
        self.last: Utterance | None = None
        self._run = run
        self._typed: list[UserInput] = []
        self._handoff: tuple[ToolCall, str] | None = None

    def hear(self, typed: UserInput) -> None:
        """Take what a person has typed, for whoever speaks next."""
        self._typed.append(typed)
        self.last = None

    def hand_over(self, call: ToolCall, receiver: str) -> None:
        """Note that an agent lets another take over, by a call."""
        self._run.address(call, receiver)
        self._handoff = call, receiver

    def deliver(self, receiver: str) -> None:
        """Let an agent read, when its turn comes, what people wrote, and what the one before it said."""
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

    def end(self) -> None:
        """End the run with the last word of an agent that nobody has spawned."""
        if self.last is not None:
            self._run.agent(self.last.agent).is_root = not self._run.is_spawned(self.last.agent)
