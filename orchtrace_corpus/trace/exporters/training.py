"""Turn runs into training data for RL: each turn of a run with its reward.

Each run is one trajectory of turns (its steps, see `credit.assign.parts`) in the order of time. The reward of the run
is divided among its turns: their rewards add up to it. The reward of an agent is the sum over its turns.
Runs of one task form a group, with the group-relative advantage of GRPO (arXiv 2402.03300).
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

if TYPE_CHECKING:  # imports YAML, which an export of the trace as it is does not need
    from orchtrace_corpus.trace.rewards import Reward


class Division(StrEnum):
    """The units among which the reward of a run is divided."""

    TURN = "turn"
    AGENT = "agent"
    TEAM = "team"


class TurnTokens(NamedTuple):
    """The token ids of a turn; empty if unknown.

    Attributes:
        prompt: The ids of the prompt tokens.
        response: The ids of the response tokens.
        logprobs: The log-probability of each response token.
    """

    prompt: list[int]
    response: list[int]
    logprobs: list[float]


class Turn(NamedTuple):
    """One turn of a run, which trainers call a transition.

    Attributes:
        event: Its event.
        role: The role of its agent; empty if unknown.
        tokens: Its token ids.
        reward: Its share of the reward of the run.
        agent_reward: The sum of the rewards of all turns of its agent.
    """

    event: Event
    role: str
    tokens: TurnTokens
    reward: float
    agent_reward: float


class Trajectory(NamedTuple):
    """One run as training data.

    Attributes:
        trace_id: The id of its trace.
        task_id: Its task; runs of one task form a group.
        repetition: Its index in the group, from 0.
        reward: The sum of the rewards of its turns.
        advantage: Its group-relative advantage; None for the only run of a task.
        turns: Its turns, in the order of time.
    """

    trace_id: str
    task_id: str
    repetition: int
    reward: float
    advantage: float | None
    turns: tuple[Turn, ...]


class TokenFiles:
    """Reads token ids and log-probabilities from the files that `token_refs` name, each as `FILE#JSON-POINTER`.

    Args:
        folder: The folder of the files. References to files outside it are errors.
    """

    def __init__(self, folder: str) -> None:
        self._folder = os.path.realpath(folder or ".")
        self._path = ""  # of the file that was decoded last
        self._content: Any = None  # of that file

    def read(self, event: Event) -> TurnTokens:
        """Return the tokens of an event.

        Raises:
            DataFileError: The target of a reference does not exist, is outside the folder, or is not a list of tokens.
        """
        refs = event.token_refs if isinstance(event.token_refs, TokenRefs) else TokenRefs()
        prompt = self._list(refs.input_ids, int)
        response = self._list(refs.output_ids, int)
        logprobs = self._list(refs.logprobs, float)
        if logprobs and len(logprobs) != len(response):
            counts = f"{len(logprobs):,} log-probabilities for {len(response):,} tokens"
            raise DataFileError(f"the event {quote(event.id)} has {counts}: {quote(refs.logprobs)}")
        return TurnTokens(prompt, response, logprobs)

    def _list(self, reference: str, kind: type[int] | type[float]) -> list[Any]:
        """Return the list of numbers to which a reference points; empty for no reference."""
        if not reference:
            return []
        name, _, pointer = reference.rpartition("#")
        value = self._document(name, reference)
        for token in pointer.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            try:
                value = value[int(key)] if isinstance(value, list) else value[key]
            except (LookupError, TypeError, ValueError):
                raise DataFileError(f"there is nothing at {quote(reference)}, where a trace has its tokens") from None
        item_types = (int,) if kind is int else (int, float)
        if not isinstance(value, list) or not all(type(item) in item_types for item in value):
            expected = "token ids" if kind is int else "log-probabilities"
            raise DataFileError(f"{quote(reference)} is not a list of {expected}")
        return value

    def _document(self, name: str, reference: str) -> Any:
        """Return the contents of a file in the folder; `reference` is for the message of an error."""
        path = os.path.realpath(os.path.join(self._folder, name))
        if os.path.commonpath((path, self._folder)) != self._folder:
            raise DataFileError(f"{quote(reference)} leads out of the folder {quote_path(self._folder)}")
        if path != self._path:
            try:
                with open(path, "rb") as file:
                    self._path, self._content = path, decode(file.read())
            except OSError as error:
                hint = "Name the folder of the log that the trace was made of: --tokens DIR."
                raise DataFileError(f"cannot read tokens from {quote_path(path)}: {error.strerror}", hint) from error
            except (DecodeError, UnicodeDecodeError) as error:
                raise DataFileError(f"cannot read tokens from {quote_path(path)}: not JSON") from error
        return self._content


class RunReward(NamedTuple):
    """The reward of one run, in three parts that add up to it.

    Attributes:
        whole: The reward for the run as a whole.
        events: The rewards for single events, by index in the trace.
        agents: The rewards for single agents, by name.
    """

    whole: float
    events: Mapping[int, float] = {}
    agents: Mapping[str, float] = {}

    @property
    def total(self) -> float:
        """Return the sum of all parts: the reward of the run."""
        return fsum((self.whole, *self.events.values(), *self.agents.values()))


def divide_reward(view: TraceView, reward: "Reward") -> RunReward:
    """Return a reward in parts. A term that names events is paid to them, any other to agents; `WHOLE` goes to the run.

    Raises:
        CommandUseError: A term has no value in this run; the hint says what to add.
    """
    from orchtrace_corpus.trace.rewards import WHOLE

    indices = {event.id: index for index, event in enumerate(view.trace.events)}
    whole = 0.0
    events: dict[int, float] = {}
    agents: dict[str, float] = {}
    for term in reward.terms:
        if term.refusal is not None:
            message = f"the reward of {quote(view.trace.trace_id)} lacks its term {quote(term.name)}"
            raise CommandUseError(message, printable(term.refusal, limit=300))
        names_events = any(name != WHOLE for name in term.by_event)
        shares = term.by_event if names_events else term.by_agent
        for name, share in shares.items():  # a name is an event id, the name of an agent, or `WHOLE`
            amount = term.weight * share
            if name == WHOLE:
                whole += amount
            elif names_events:
                events[indices[name]] = events.get(indices[name], 0.0) + amount
            else:
                agents[name] = agents.get(name, 0.0) + amount
    return RunReward(whole, events, agents)


def trajectories(
    views: Sequence[TraceView], division: Division, rewards: Sequence[RunReward], tokens: TokenFiles
) -> list[Trajectory]:
    """Return runs as training data, grouped by task.

    Args:
        views: The runs, in any order of tasks; the order within a task is kept.
        division: The units among which the reward for a run as a whole is divided. Turns and agents get Shapley
            values of a proxy (see `credit.reach`); the last turn of an agent gets the agent's share. With `team`, the
            last turn of the run gets all of it.
        rewards: The reward of each run, in the order of `views`.
        tokens: Reads the token ids.

    Raises:
        CommandUseError: A trace has no turn, or none that led to its result.
        DataFileError: Tokens cannot be read.
    """
    groups: dict[str, list[int]] = {}
    for index, view in enumerate(views):
        groups.setdefault(view.trace.task_id, []).append(index)
    runs = []
    for indices in groups.values():
        advantages: dict[int, float] = {}
        if len(indices) > 1:
            advantages = methods.group_relative_advantages({index: rewards[index].total for index in indices})
        for repetition, index in enumerate(indices):
            trace = views[index].trace
            turns = _turns(views[index], division, tokens, rewards[index])
            total, advantage = rewards[index].total, advantages.get(index)
            runs.append(Trajectory(trace.trace_id, trace.task_id, repetition, total, advantage, turns))
    return runs


def _turns(view: TraceView, division: Division, tokens: TokenFiles, reward: RunReward) -> tuple[Turn, ...]:
    """Return the turns of a run, in the order of time; here, a turn is the index of its event."""
    events, roles = view.trace.events, roles_of(view.trace)
    steps: set[int] = set()
    for indices in parts(view, "turn").values():
        steps.update(indices)
    turns = [index for index in view.sequence if index in steps]
    rewards = dict.fromkeys(turns, 0.0)
    turn_by_event = _turn_by_event(view, turns)
    last_turns = {events[turn].agent: turn for turn in turns}  # by agent
    for index, amount in reward.events.items():
        rewards[turn_by_event[index]] += amount
    for name, amount in reward.agents.items():
        rewards[last_turns.get(name, turns[-1])] += amount
    for turn, amount in _divide_among_turns(view, division, reward.whole, turns).items():
        rewards[turn] += amount
    agent_rewards: dict[str, float] = {}
    for turn in turns:
        agent = events[turn].agent
        agent_rewards[agent] = agent_rewards.get(agent, 0.0) + rewards[turn]
    return tuple(
        Turn(
            event=events[turn],
            role=roles.get(events[turn].agent, ""),
            tokens=tokens.read(events[turn]),
            reward=rewards[turn],
            agent_reward=agent_rewards[events[turn].agent],
        )
        for turn in turns
    )


def _turn_by_event(view: TraceView, turns: Sequence[int]) -> dict[int, int]:
    """Map each event to a turn: its agent's latest so far, else the agent's first, else the last of the run."""
    events, turn_set = view.trace.events, set(turns)
    latest_turns: dict[str, int] = {}  # by agent; at the start, the agent's first turn
    for turn in reversed(turns):
        latest_turns[events[turn].agent] = turn
    turn_by_event: dict[int, int] = {}
    for index in view.sequence:
        if index in turn_set:
            latest_turns[events[index].agent] = index
        turn_by_event[index] = latest_turns.get(events[index].agent, turns[-1])
    return turn_by_event


def _divide_among_turns(view: TraceView, division: Division, whole: float, turns: Sequence[int]) -> dict[int, float]:
    """Return the share of each turn in the reward for the run as a whole."""
    if division is Division.TEAM:
        return {turns[-1]: whole}
    game = Reach(view, parts(view, division), whole)
    if whole and not game.owned_event_count:
        name = quote(view.trace.trace_id)
        hint = "Give the last turn the whole reward: --credit team."
        raise CommandUseError(f"nothing that led to the result of {name} belongs to any {division.value}", hint)
    last_turns: dict[str, int] = {}  # by player: the id of an event, or the name of an agent
    for turn in turns:
        event = view.trace.events[turn]
        player = event.id if division is Division.TURN else event.agent
        last_turns[player] = turn
    shares = dict.fromkeys(turns, 0.0)
    for player, share in game.shapley().items():
        shares[last_turns.get(player, turns[-1])] += share.credit
    return shares


def without_tokens(runs: Sequence[Trajectory]) -> list[tuple[str, str]]:
    """Return the trace id and event id of each turn without token ids of its prompt or its response."""
    return [
        (run.trace_id, turn.event.id)
        for run in runs
        for turn in run.turns
        if not (turn.tokens.prompt and turn.tokens.response)
    ]
