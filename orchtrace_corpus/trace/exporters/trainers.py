"""Write trajectories in the formats of three RL trainers: verl, SkyRL and agent-lightning.

`scripts/trainer_readers.py` reads the output of this module with the trainers' own code.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import count
from typing import Any

from orchtrace_corpus.trace.exporters.training import Trajectory, Turn

Object = dict[str, Any]
_CALL_SPAN, _REWARD_SPAN = "openai.chat.completion", "agentlightning.annotation"
"""The names by which agent-lightning's adapter finds the spans of model calls and rewards."""


class Shape(StrEnum):
    """The trainer whose format is written."""

    VERL = "verl"
    AGENT_LIGHTNING = "agent-lightning"
    SKYRL = "skyrl"


def as_verl(runs: Sequence[Trajectory]) -> Iterator[Object]:
    """Yield each turn as an `AgentLoopOutput` of verl 0.9, with its ids and rewards in `extra_fields`.

    `uid`, `session_id` and `index` are the three parts of the name under which verl stores an output. `turn_scores` is
    the field to which verl's own tool agent writes the rewards of turns.
    """
    for run in runs:
        for index, turn in enumerate(run.turns):
            yield {
                "prompt_ids": turn.tokens.prompt,
                "response_ids": turn.tokens.response,
                "response_mask": [1] * len(turn.tokens.response),
                "response_logprobs": turn.tokens.logprobs or None,
                "reward_score": turn.reward,
                "num_turns": 2,
                "metrics": {},
                "extra_fields": {
                    "uid": run.task_id,
                    "session_id": run.repetition,
                    "index": index,
                    "turn_scores": [turn.reward],
                    **_extra_fields(run, turn),
                },
            }


def as_skyrl(runs: Sequence[Trajectory]) -> Object:
    """Return all turns as one `GeneratorOutput` of SkyRL 0.3 for step-wise training; turns of a run are adjacent.

    Each turn has a list of rewards by token: its own reward at the last token, 0 at the others. If any turn has no
    tokens, each turn has a single number instead.
    """
    turns = [(run, turn) for run in runs for turn in run.turns]
    has_tokens = all(turn.tokens.response for _, turn in turns)
    has_logprobs = all(turn.tokens.logprobs for _, turn in turns)
    is_last: list[bool] = []
    for run in runs:
        is_last += [turn is run.turns[-1] for turn in run.turns]
    sizes = [len(turn.tokens.response) for _, turn in turns]
    logprobs = [turn.tokens.logprobs for _, turn in turns] if has_logprobs else None
    rewards: list[Any] = [turn.reward for _, turn in turns]
    if has_tokens:
        rewards = [[0.0] * (size - 1) + [reward] for size, reward in zip(sizes, rewards, strict=True)]
    return {
        "prompt_token_ids": [turn.tokens.prompt for _, turn in turns],
        "response_ids": [turn.tokens.response for _, turn in turns],
        "rewards": rewards,
        "loss_masks": [[1] * size for size in sizes],
        "stop_reasons": [turn.event.finish_reason or "stop" for _, turn in turns],
        "rollout_metrics": None,
        "rollout_logprobs": logprobs,
        "trajectory_ids": [{"instance_id": run.task_id, "repetition_id": run.repetition} for run, _ in turns],
        "trajectory_generation_times": None,
        "rollout_expert_indices": None,
        "is_last_step": is_last,
        "env_metrics": [_extra_fields(run, turn) for run, turn in turns],
        "pixel_values": None,
        "image_grid_thw": None,
    }


def as_agent_lightning(runs: Sequence[Trajectory]) -> Iterator[Object]:
    """Yield the spans of each run for agent-lightning 0.3: the run, its agents, then each model call and its reward.

    A reward has three dimensions: the rewards of the turn, of its agent and of the run. The times of spans are indices
    in the run, not seconds, so that the adapter pairs each reward with its call even if calls overlap. The times of the
    trace are among the attributes.
    """
    for run in runs:
        turns_by_agent: dict[str, list[int]] = {}
        for index, turn in enumerate(run.turns):
            turns_by_agent.setdefault(turn.event.agent, []).append(index)
        sequence = count(1)
        run_id = _span_id(run, "run", key="")
        yield _span(
            run,
            sequence_id=next(sequence),
            span_id=run_id,
            parent_id=None,
            name="run",
            start=0,
            end=2 * len(run.turns),
            attributes={"orchtrace.task_id": run.task_id},
        )
        for agent, indices in turns_by_agent.items():
            yield _span(
                run,
                sequence_id=next(sequence),
                span_id=_span_id(run, "agent", agent),
                parent_id=run_id,
                name="agent",
                start=2 * indices[0],
                end=2 * indices[-1] + 1,
                attributes={"agent.name": agent},
            )
        for index, turn in enumerate(run.turns):
            event = turn.event
            agent_id = _span_id(run, "agent", event.agent)
            yield _span(
                run,
                sequence_id=next(sequence),
                span_id=_span_id(run, _CALL_SPAN, event.id),
                parent_id=agent_id,
                name=_CALL_SPAN,
                start=2 * index,
                end=2 * index + 1,
                attributes=_call_attributes(turn),
            )
            yield _span(
                run,
                sequence_id=next(sequence),
                span_id=_span_id(run, _REWARD_SPAN, event.id),
                parent_id=agent_id,
                name=_REWARD_SPAN,
                start=2 * index + 1,
                end=2 * index + 1,
                attributes=_reward_attributes(run, turn),
            )


def _span_id(run: Trajectory, kind: str, key: str) -> str:
    """Return the id of a span, given a key that is unique among the spans of its kind in the run."""
    return _hex(f"{run.trace_id} {kind} {key}", 16)


def _span(
    run: Trajectory,
    *,
    sequence_id: int,
    span_id: str,
    parent_id: str | None,
    name: str,
    start: int,
    end: int,
    attributes: Object,
) -> Object:
    return {
        "rollout_id": run.trace_id,
        "attempt_id": str(run.repetition),
        "sequence_id": sequence_id,
        "trace_id": _hex(run.trace_id, 32),
        "span_id": span_id,
        "parent_id": parent_id,
        "name": name,
        "status": {"status_code": "OK"},
        "attributes": attributes,
        "events": [],
        "links": [],
        "start_time": float(start),
        "end_time": float(end),
        "context": None,
        "parent": None,
        "resource": {"attributes": {}, "schema_url": ""},
    }


def _call_attributes(turn: Turn) -> Object:
    """Return the attributes of a model call, without empty ones."""
    event = turn.event
    attributes: Object = {
        "gen_ai.response.id": event.id,
        "gen_ai.response.model": event.model,
        "gen_ai.response.finish_reason": event.finish_reason,
        "prompt_token_ids": turn.tokens.prompt,
        "response_token_ids": turn.tokens.response,
        "orchtrace.role": turn.role,
    }
    attributes = {name: value for name, value in attributes.items() if value}
    attributes["orchtrace.t"] = event.t
    if event.t_end is not None:
        attributes["orchtrace.t_end"] = event.t_end
    return attributes


def _reward_attributes(run: Trajectory, turn: Turn) -> Object:
    """Return the rewards of a turn, and the link to its model call."""
    rewards = {"turn": turn.reward, "agent": turn.agent_reward, "run": run.reward}
    attributes: Object = {}
    for dimension, (name, value) in enumerate(rewards.items()):
        attributes[f"agentlightning.reward.{dimension}.name"] = name
        attributes[f"agentlightning.reward.{dimension}.value"] = value
    attributes["agentlightning.link.0.key_match"] = "gen_ai.response.id"
    attributes["agentlightning.link.0.value_match"] = turn.event.id
    if run.advantage is not None:
        attributes["orchtrace.advantage"] = run.advantage
    return attributes


def _hex(name: str, digits: int) -> str:
    """Return so many hexadecimal digits of the hash of a name."""
    return hashlib.sha256(name.encode()).hexdigest()[:digits]


def _extra_fields(run: Trajectory, turn: Turn) -> Object:
    """Return the ids of a turn and its rewards at every level, for which verl and SkyRL have no field."""
    return {
        "trace_id": run.trace_id,
        "agent": turn.event.agent,
        "role": turn.role,
        "event": turn.event.id,
        "turn_reward": turn.reward,
        "agent_reward": turn.agent_reward,
        "run_reward": run.reward,
        "advantage": run.advantage,
    }


def text(shape: Shape, runs: Sequence[Trajectory]) -> str:
    """Return runs in the format of a trainer: one JSON object for SkyRL, JSON Lines for the others."""
    rows: Iterable[Object]
    if shape is Shape.SKYRL:
        rows = [as_skyrl(runs)]
    elif shape is Shape.VERL:
        rows = as_verl(runs)
    else:
        rows = as_agent_lightning(runs)
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
