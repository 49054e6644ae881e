"""Reads what `corpus trace export` wrote for a trainer with the trainer's own code, and prints the reward of each run.

    pip install agentlightning==0.3.0
    pip install --no-deps verl==0.9.1 skyrl==0.3.0
    python scripts/trainer_readers.py verl runs.jsonl
    python scripts/trainer_readers.py agent-lightning spans.jsonl
    python scripts/trainer_readers.py skyrl batch.json

agent-lightning is imported whole. verl and SkyRL ask for PyTorch and Ray when they are imported, so the definitions
that read or check a rollout are taken from their installed source, unchanged, and run by themselves.
"""

import argparse
import ast
import dataclasses
import json
import logging
from collections import defaultdict
from collections.abc import Iterable
from importlib.util import find_spec
from math import fsum
from pathlib import Path
from typing import Any


def definitions(package: str, module: str, names: Iterable[str], given: dict[str, Any]) -> dict[str, Any]:
    """Some functions and classes of an installed module, with the other names that they use.

    Raises:
        SystemExit: The package is not installed, or lacks one of them.
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package} is not installed; run: pip install --no-deps {package}")
    path = Path(spec.submodule_search_locations[0], module)
    wanted = set(names)
    body = [one for one in ast.parse(path.read_text(encoding="utf-8")).body if getattr(one, "name", "") in wanted]
    if missing := wanted - {getattr(one, "name", "") for one in body}:
        raise SystemExit(f"{path} has no {', '.join(sorted(missing))}")
    space = {"__name__": f"{package}.read", **given}
    exec(compile(ast.Module(body, []), str(path), "exec"), space)
    return space


def read_verl(text: str) -> dict[str, list[float]]:
    """The rewards of turns by run, each line read as verl's `AgentLoopOutput`."""
    from typing import Optional

    from pydantic import BaseModel

    names = ("AgentLoopMetrics", "AgentLoopOutput")
    given = {"BaseModel": BaseModel, "Any": Any, "Optional": Optional}
    model = definitions("verl", "experimental/agent_loop/agent_loop.py", names, given)["AgentLoopOutput"]
    found: dict[str, list[float]] = defaultdict(list)
    for line in text.splitlines():
        output = model.model_validate_json(line, strict=True)
        assert len(output.response_ids) == len(output.response_mask)
        found[output.extra_fields["trace_id"]].append(output.reward_score)
    return found


def read_skyrl(text: str) -> dict[str, list[float]]:
    """The rewards of turns by run, of a batch that passes SkyRL's own checks for step-wise training."""
    import numpy

    given = {"np": numpy, "logger": logging.getLogger(), "GeneratorOutput": dict}
    names = ("validate_generator_output", "_validate_step_wise_fields")
    check = definitions("skyrl", "train/utils/trainer_utils.py", names, given)["validate_generator_output"]
    given = {"dataclass": dataclasses.dataclass}
    identity = definitions("skyrl", "train/generators/base.py", ("TrajectoryID",), given)["TrajectoryID"]
    batch = json.loads(text)
    batch["trajectory_ids"] = [identity(**one) for one in batch["trajectory_ids"]]
    check(len({one.instance_id for one in batch["trajectory_ids"]}), batch, step_wise=True)
    found: dict[str, list[float]] = defaultdict(list)
    for names_of_turn, reward in zip(batch["env_metrics"], batch["rewards"], strict=True):
        found[names_of_turn["trace_id"]].append(fsum(reward) if isinstance(reward, list) else reward)
    return found


def read_agent_lightning(text: str) -> dict[str, list[float]]:
    """The rewards of triplets by run, as agent-lightning's adapter makes them of the spans."""
    from agentlightning.adapter import TracerTraceToTriplet
    from agentlightning.types import Span

    spans = defaultdict(list)
    for line in text.splitlines():
        span = Span.model_validate_json(line)
        spans[span.rollout_id].append(span)
    triplets = {run: TracerTraceToTriplet().adapt(given) for run, given in spans.items()}
    for run, found in triplets.items():
        rewarded = {one.metadata["response_id"]: (one.metadata["agent_name"], one.reward) for one in found}
        agents = {one.span_id: one.attributes["agent.name"] for one in spans[run] if one.name == "agent"}
        told = {
            one.attributes["agentlightning.link.0.value_match"]: (
                agents[one.parent_id],
                one.attributes["agentlightning.reward.0.value"],
            )
            for one in spans[run]
            if one.name == "agentlightning.annotation"
        }
        assert rewarded == told, f"{run}: the adapter gives a call another reward or agent"
    return {run: [one.reward or 0.0 for one in found] for run, found in triplets.items()}


READERS = {"verl": read_verl, "skyrl": read_skyrl, "agent-lightning": read_agent_lightning}


def main() -> None:
    """Read a file, and print how many turns each run has and what they sum up to."""
    parser = argparse.ArgumentParser(description="Read an export for a trainer with the trainer's own code.")
    parser.add_argument("profile", choices=READERS)
    parser.add_argument("file", type=Path)
    chosen = parser.parse_args()
    for run, rewards in READERS[chosen.profile](chosen.file.read_text(encoding="utf-8")).items():
        print(f"{run}: {len(rewards)} turns, reward {fsum(rewards):.6g}")


if __name__ == "__main__":
    main()
