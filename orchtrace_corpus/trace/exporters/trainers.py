"""Trajectories in the shapes that three trainers read: verl, SkyRL and agent-lightning.

`scripts/trainer_readers.py` holds what is written here to the trainers' own code.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import count
from typing import Any

from orchtrace_corpus.trace.exporters.training import Trajectory, Turn

Object = dict[str, Any]
_CALL, _REWARD = "openai.chat.completion", "agentlightning.annotation"
"""The names of spans of agent-lightning: its adapter finds model calls and rewards by them."""


class Shape(StrEnum):
    """The trainers in whose shape runs are written."""

    VERL = "verl"
    AGENT_LIGHTNING = "agent-lightning"
    SKYRL = "skyrl"


def as_verl(runs: Sequence[Trajectory]) -> Iterator[Object]:
    """Each turn as an `AgentLoopOutput` of verl 0.9, with what names it in `extra_fields`.

    verl keeps outputs of one rollout under `{uid}_{session_id}_{index}`, which are fields here; `turn_scores` is
    the field in which its own tool agent has the rewards of turns.
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
                    **_names(run, turn),
                },
            }


def as_skyrl(runs: Sequence[Trajectory]) -> Object:
    """All turns as one `GeneratorOutput` of SkyRL 0.3 for step-wise training, the turns of a run side by side.

    The reward of a turn is at its last token. Where a turn has no tokens, rewards are numbers instead of lists.
    """
    turns = [(run, turn) for run in runs for turn in run.turns]
    has_tokens = all(turn.tokens.response for _, turn in turns)
    has_logprobs = all(turn.tokens.logprobs for _, turn in turns)
    ends = [index == len(run.turns) - 1 for run in runs for index in range(len(run.turns))]
    sizes = [len(turn.tokens.response) for _, turn in turns]
    at_last = ([0.0] * (size - 1) + [turn.reward] for size, (_, turn) in zip(sizes, turns, strict=True))
    return {
        "prompt_token_ids": [turn.tokens.prompt for _, turn in turns],
        "response_ids": [turn.tokens.response for _, turn in turns],
        "rewards": list(at_last) if has_tokens else [turn.reward for _, turn in turns],
        "loss_masks": [[1] * size for size in sizes],
        "stop_reasons": [turn.event.finish_reason or "stop" for _, turn in turns],
        "rollout_metrics": None,
        "rollout_logprobs": [turn.tokens.logprobs for _, turn in turns] if has_logprobs else None,
        "trajectory_ids": [{"instance_id": run.task_id, "repetition_id": run.repetition} for run, _ in turns],
        "trajectory_generation_times": None,
        "rollout_expert_indices": None,
        "is_last_step": ends,
        "env_metrics": [_names(run, turn) for run, turn in turns],
        "pixel_values": None,
        "image_grid_thw": None,
    }


def as_agent_lightning(runs: Sequence[Trajectory]) -> Iterator[Object]:
    """Each run as spans of agent-lightning 0.3: agents, their model calls, and behind each of these its reward.

    The first dimension of a reward is that of the turn; those of the agent and of the run follow. Times are places
    in the order of the run, so that the adapter matches each reward with its call whatever ran at once; those of
    the trace are attributes.
    """
    for run in runs:
        inside: dict[str, list[int]] = {}
        for index, turn in enumerate(run.turns):
            inside.setdefault(turn.event.agent, []).append(index)
        numbers = count(1)
        yield _span(run, next(numbers), "run", "", 0, 2 * len(run.turns), {"orchtrace.task_id": run.task_id})
        for agent, places in inside.items():
            ends = 2 * places[0], 2 * places[-1] + 1
            yield _span(run, next(numbers), "agent", agent, *ends, {"agent.name": agent})
        for index, turn in enumerate(run.turns):
            own, begin, end = turn.event, 2 * index, 2 * index + 1
            yield _span(run, next(numbers), _CALL, own.id, begin, end, _call(turn), own.agent)
            rewards = {"turn": turn.reward, "agent": turn.agent_reward, "run": run.reward}
            given: Object = {}
            for place, (name, value) in enumerate(rewards.items()):
                given |= {f"agentlightning.reward.{place}.name": name, f"agentlightning.reward.{place}.value": value}
            given["agentlightning.link.0.key_match"] = "gen_ai.response.id"
            given["agentlightning.link.0.value_match"] = own.id
            if run.advantage is not None:
                given["orchtrace.advantage"] = run.advantage
            yield _span(run, next(numbers), _REWARD, own.id, end, end, given, own.agent)


def _span(
    run: Trajectory, number: int, kind: str, key: str, start: int, end: int, attributes: Object, agent: str = ""
) -> Object:
    """A span; its key tells it from others of its kind in the run."""
    parent = None if kind == "run" else f"{run.trace_id} run " if kind == "agent" else f"{run.trace_id} agent {agent}"
    return {
        "rollout_id": run.trace_id,
        "attempt_id": str(run.repetition),
        "sequence_id": number,
        "trace_id": _hex(run.trace_id, 32),
        "span_id": _hex(f"{run.trace_id} {kind} {key}", 16),
        "parent_id": None if parent is None else _hex(parent, 16),
        "name": kind,
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


def _call(turn: Turn) -> Object:
    """The attributes of a model call: those that have a value."""
    event = turn.event
    known = {
        "gen_ai.response.id": event.id,
        "gen_ai.response.model": event.model,
        "gen_ai.response.finish_reason": event.finish_reason,
        "prompt_token_ids": turn.tokens.prompt,
        "response_token_ids": turn.tokens.response,
        "orchtrace.role": turn.role,
    }
    times = {"orchtrace.t": event.t, **({} if event.t_end is None else {"orchtrace.t_end": event.t_end})}
    return {name: value for name, value in known.items() if value} | times


def _hex(name: str, digits: int) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:digits]


def _names(run: Trajectory, turn: Turn) -> Object:
    """Return the names of a turn and of its rewards at every level, which trainers have no field for."""
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
    """Runs in the shape of a trainer: one JSON object for SkyRL, JSON Lines for the others."""
    shaped = {Shape.VERL: as_verl, Shape.AGENT_LIGHTNING: as_agent_lightning}
    rows = [as_skyrl(runs)] if shape is Shape.SKYRL else shaped[shape](runs)
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
