"""Runs as training data: every turn with its reward, as verl, agent-lightning and SkyRL read it.

A run is one trajectory, and its turns are its steps (`measures.steps`) in the order of the replay. The reward of a
run is divided among its turns, so that the rewards of the turns sum up to it; an agent has the sum of its turns.
Runs of one task are a group, with the group-relative advantage of GRPO (arXiv 2402.03300).
"""

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import fsum
from typing import TYPE_CHECKING, Any

from msgspec import DecodeError
from msgspec.json import decode

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import printable, quote, quote_path
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.credit import methods
from orchtrace_corpus.trace.credit.assign import parts
from orchtrace_corpus.trace.credit.reach import Reach
from orchtrace_corpus.trace.model.events import roles_of
from orchtrace_corpus.trace.model.trace import Event, TokenRefs
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:  # reads YAML, which who exports a trace as it is does not need
    from orchtrace_corpus.trace.rewards import Reward


class Division(StrEnum):
    """Among whom the reward of a run is divided."""

    TURN = "turn"
    AGENT = "agent"
    TEAM = "team"


class TurnTokens(NamedTuple):
    """The single tokens of a turn, empty where they are unknown.

    Attributes:
        prompt: The ids of the tokens that the model was given.
        response: The ids of those that it answered.
        logprobs: The log-probability of each of these.
    """

    prompt: list[int]
    response: list[int]
    logprobs: list[float]


class Turn(NamedTuple):
    """One turn of a run: what a trainer calls a transition.

    Attributes:
        event: The step.
        role: The role of its agent; empty where that is unknown.
        tokens: Its single tokens.
        reward: Its share of the reward of the run.
        agent_reward: The share of its agent: the sum over the agent's turns.
    """

    event: Event
    role: str
    tokens: TurnTokens
    reward: float
    agent_reward: float


class Trajectory(NamedTuple):
    """One run as training data.

    Attributes:
        trace_id: Its name.
        task_id: Its task; runs of one task are a group.
        repetition: Which run of its group it is, from 0.
        reward: Its reward: the sum over the turns.
        advantage: Its group-relative advantage; None where it is the only run of its task.
        turns: Its turns, in the order of the replay.
    """

    trace_id: str
    task_id: str
    repetition: int
    reward: float
    advantage: float | None
    turns: tuple[Turn, ...]


class TokenFiles:
    """Reads the single tokens of turns from the files that `token_refs` name, each a file and a JSON pointer in it.

    Args:
        folder: Where these files are. What a trace refers to outside of it is refused.
    """

    def __init__(self, folder: str) -> None:
        self._folder = os.path.realpath(folder or ".")
        self._path, self._read = "", None

    def of(self, event: Event) -> TurnTokens:
        """The tokens of an event.

        Raises:
            DataFileError: A reference leads nowhere, out of the folder, or to what is not a list of tokens.
        """
        refs = event.token_refs if isinstance(event.token_refs, TokenRefs) else TokenRefs()
        prompt, response = self._list(refs.input_ids, int), self._list(refs.output_ids, int)
        logprobs = self._list(refs.logprobs, float)
        if logprobs and len(logprobs) != len(response):
            what = f"{len(logprobs):,} log-probabilities for {len(response):,} tokens"
            raise DataFileError(f"the event {quote(event.id)} has {what}: {quote(refs.logprobs)}")
        return TurnTokens(prompt, response, logprobs)

    def _list(self, reference: str, kind: type[int] | type[float]) -> list[Any]:
        if not reference:
            return []
        name, _, pointer = reference.rpartition("#")
        found = self._document(name, reference)
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(key)] if isinstance(found, list) else found[key]
            except (LookupError, TypeError, ValueError):
                raise DataFileError(f"there is nothing at {quote(reference)}, where a trace has its tokens") from None
        kinds = (int,) if kind is int else (int, float)
        if not isinstance(found, list) or not all(type(one) in kinds for one in found):
            wanted = "token ids" if kind is int else "log-probabilities"
            raise DataFileError(f"{quote(reference)} is not a list of {wanted}")
        return found

    def _document(self, name: str, reference: str) -> Any:
        path = os.path.realpath(os.path.join(self._folder, name))
        if os.path.commonpath((path, self._folder)) != self._folder:
            raise DataFileError(f"{quote(reference)} leads out of the folder {quote_path(self._folder)}")
        if path != self._path:
            try:
                with open(path, "rb") as file:
                    self._path, self._read = path, decode(file.read())
            except OSError as error:
                hint = "Name the folder of the log that the trace was made of: --tokens DIR."
                raise DataFileError(f"cannot read tokens from {quote_path(path)}: {error.strerror}", hint) from error
            except (DecodeError, UnicodeDecodeError) as error:
                raise DataFileError(f"cannot read tokens from {quote_path(path)}: not JSON") from error
        return self._read


class Payment(NamedTuple):
    """The reward that a design gives in one run.

    Attributes:
        whole: What is paid for the run as a whole.
        events: What is paid for single events, by their numbers.
        agents: What is paid for single agents, by their names.
    """

    whole: float
    events: Mapping[int, float] = {}
    agents: Mapping[str, float] = {}

    @property
    def total(self) -> float:
        """The reward of the run."""
        return fsum((self.whole, *self.events.values(), *self.agents.values()))


def payment(view: TraceView, reward: "Reward") -> Payment:
    """Return the parts of a computed reward: each for the events it names, else for agents, else for the run.

    Raises:
        CommandUseError: A term has no value in this run; the hint says what to add.
    """
    from orchtrace_corpus.trace.rewards import WHOLE

    numbers = {event.id: index for index, event in enumerate(view.trace.events)}
    whole = 0.0
    events: dict[int, float] = {}
    agents: dict[str, float] = {}
    for term in reward.terms:
        if term.refusal is not None:
            said = f"the reward of {quote(view.trace.trace_id)} lacks its term {quote(term.name)}"
            raise CommandUseError(said, printable(term.refusal, limit=300))
        is_of_events = any(name != WHOLE for name in term.by_event)
        for name, share in (term.by_event if is_of_events else term.by_agent).items():
            amount = term.weight * share
            if name == WHOLE:
                whole += amount
            elif is_of_events:
                events[numbers[name]] = events.get(numbers[name], 0.0) + amount
            else:
                agents[name] = agents.get(name, 0.0) + amount
    return Payment(whole, events, agents)


def trajectories(
    views: Sequence[TraceView], division: Division, payments: Sequence[Payment], tokens: TokenFiles
) -> list[Trajectory]:
    """Runs as training data.

    Args:
        views: The runs, in any order of tasks; those of a task are brought together, each in its place.
        division: Among whom what is paid for a run as a whole is divided: Shapley values of turns or agents by
            the proxy `reach`, or nobody: the last turn has it all. An agent's share is at its last turn.
        payments: What a reward pays in each run.
        tokens: Where single tokens are.

    Raises:
        CommandUseError: A trace has no turn, or none that led to its result.
        DataFileError: Tokens cannot be read.
    """
    groups: dict[str, list[int]] = {}
    for index, view in enumerate(views):
        groups.setdefault(view.trace.task_id, []).append(index)
    found = []
    for indices in groups.values():
        known = methods.group_relative({index: payments[index].total for index in indices}) if indices[1:] else {}
        for repetition, index in enumerate(indices):
            turns = _turns(views[index], division, tokens, payments[index])
            trace, total = views[index].trace, payments[index].total
            found.append(Trajectory(trace.trace_id, trace.task_id, repetition, total, known.get(index), turns))
    return found


def _turns(view: TraceView, division: Division, tokens: TokenFiles, payment: Payment) -> tuple[Turn, ...]:
    trace, roles = view.trace, roles_of(view.trace)
    steps = {index for indices in parts(view, "turn").values() for index in indices}
    ordered = [index for index in view.sequence if index in steps]
    rewards = dict.fromkeys(ordered, 0.0)
    home = _homes(view, ordered)
    last = {trace.events[index].agent: index for index in ordered}
    for index, amount in payment.events.items():
        rewards[home[index]] += amount
    for name, amount in payment.agents.items():
        rewards[last.get(name, ordered[-1])] += amount
    for index, amount in _divided(view, division, payment.whole, ordered).items():
        rewards[index] += amount
    of_agents: dict[str, float] = {}
    for index in ordered:
        of_agents[trace.events[index].agent] = of_agents.get(trace.events[index].agent, 0.0) + rewards[index]
    events = ((trace.events[index], rewards[index]) for index in ordered)
    return tuple(
        Turn(event, roles.get(event.agent, ""), tokens.of(event), reward, of_agents[event.agent])
        for event, reward in events
    )


def _homes(view: TraceView, ordered: Sequence[int]) -> dict[int, int]:
    """For each event the turn that it belongs to.

    That is the last turn of its agent up to it, else the agent's first, else the last of the run.
    """
    events, steps = view.trace.events, set(ordered)
    latest: dict[str, int] = {}
    for index in reversed(ordered):
        latest[events[index].agent] = index
    found = {}
    for index in view.sequence:
        if index in steps:
            latest[events[index].agent] = index
        found[index] = latest.get(events[index].agent, ordered[-1])
    return found


def _divided(view: TraceView, division: Division, whole: float, ordered: Sequence[int]) -> dict[int, float]:
    """Divide the reward of the whole run among its turns."""
    if division is Division.TEAM:
        return {ordered[-1]: whole}
    game = Reach(view, parts(view, division), whole)
    if whole and not game.owned:
        whom, name = division.value, quote(view.trace.trace_id)
        hint = "Give the last turn the whole reward: --credit team."
        raise CommandUseError(f"nothing that led to the result of {name} belongs to any {whom}", hint)
    events = view.trace.events
    last = {events[index].id if division is Division.TURN else events[index].agent: index for index in ordered}
    shares = dict.fromkeys(ordered, 0.0)
    for name, share in game.shapley().items():
        shares[last.get(name, ordered[-1])] += share.credit
    return shares


def without_tokens(runs: Sequence[Trajectory]) -> list[tuple[str, str]]:
    """The turns without token ids of their prompt or their response, each as run and event."""
    return [
        (run.trace_id, turn.event.id)
        for run in runs
        for turn in run.turns
        if not (turn.tokens.prompt and turn.tokens.response)
    ]
