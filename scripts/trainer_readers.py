"""Read an export of `corpus trace export` with the trainer's own code, and print the reward of each run.

    pip install agentlightning==0.3.0
    pip install --no-deps verl==0.9.1 skyrl==0.3.0
    python scripts/trainer_readers.py verl runs.jsonl
    python scripts/trainer_readers.py agent-lightning spans.jsonl
    python scripts/trainer_readers.py skyrl batch.json

agent-lightning is imported as a whole. verl and SkyRL need PyTorch and Ray when they are imported. So only the
definitions that read or check a rollout are taken from their installed source, unchanged, and run without the rest.
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
    """Return some functions and classes of an installed module, run without the rest of the module.

    Args:
        package: The installed package.
        module: The path of the module in the package.
        names: The names of the functions and classes.
        given: The other names that they use.

    Raises:
        SystemExit: The package is not installed, or lacks one of them.
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package} is not installed; run: pip install --no-deps {package}")
    path = Path(spec.submodule_search_locations[0], module)
    missing = set(names)
    body = []
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        name = getattr(statement, "name", "")
        if name in names:
            body.append(statement)
            missing.discard(name)
    if missing:
        raise SystemExit(f"{path} has no {', '.join(sorted(missing))}")
    namespace = {"__name__": f"{package}.read", **given}
    exec(compile(ast.Module(body, []), str(path), "exec"), namespace)
    return namespace


def read_verl(text: str) -> dict[str, list[float]]:
    """Return the rewards of turns by run; each line is read as verl's `AgentLoopOutput`."""
    from typing import Optional

    from pydantic import BaseModel

    names = ("AgentLoopMetrics", "AgentLoopOutput")
    given = {"BaseModel": BaseModel, "Any": Any, "Optional": Optional}
    model = definitions("verl", "experimental/agent_loop/agent_loop.py", names, given)["AgentLoopOutput"]
    rewards: dict[str, list[float]] = defaultdict(list)
    for line in text.splitlines():
        output = model.model_validate_json(line, strict=True)
        assert len(output.response_ids) == len(output.response_mask)
        rewards[output.extra_fields["trace_id"]].append(output.reward_score)
    return rewards


def read_skyrl(text: str) -> dict[str, list[float]]:
    """Return the rewards of turns by run, from a batch that passes SkyRL's own checks for step-wise training."""
    import numpy

    given = {"np": numpy, "logger": logging.getLogger(), "GeneratorOutput": dict}
    names = ("validate_generator_output", "_validate_step_wise_fields")
    check = definitions("skyrl", "train/utils/trainer_utils.py", names, given)["validate_generator_output"]
    given = {"dataclass": dataclasses.dataclass}
    identity = definitions("skyrl", "train/generators/base.py", ("TrajectoryID",), given)["TrajectoryID"]
    batch = json.loads(text)
    batch["trajectory_ids"] = [identity(**trajectory_id) for trajectory_id in batch["trajectory_ids"]]
    check(len({trajectory_id.instance_id for trajectory_id in batch["trajectory_ids"]}), batch, step_wise=True)
    rewards: dict[str, list[float]] = defaultdict(list)
    for metrics, reward in zip(batch["env_metrics"], batch["rewards"], strict=True):
        turn_reward = fsum(reward) if isinstance(reward, list) else reward  # a list has one for each token
        rewards[metrics["trace_id"]].append(turn_reward)
    return rewards


def read_agent_lightning(text: str) -> dict[str, list[float]]:
    """Return the rewards of triplets by run, as agent-lightning's adapter makes them from spans."""
    from agentlightning.adapter import TracerTraceToTriplet
    from agentlightning.types import Span

    spans_by_run = defaultdict(list)
    for line in text.splitlines():
        span = Span.model_validate_json(line)
        spans_by_run[span.rollout_id].append(span)
    rewards: dict[str, list[float]] = {}
    for run, spans in spans_by_run.items():
        triplets = TracerTraceToTriplet().adapt(spans)
        # By the id of a call: the agent and the reward, as the adapter has them, and as the spans state them.
        adapted = {}
        for triplet in triplets:
            adapted[triplet.metadata["response_id"]] = (triplet.metadata["agent_name"], triplet.reward)
        agents = {span.span_id: span.attributes["agent.name"] for span in spans if span.name == "agent"}
        stated = {}
        for span in spans:
            if span.name == "agentlightning.annotation":
                call_id = span.attributes["agentlightning.link.0.value_match"]
                stated[call_id] = (agents[span.parent_id], span.attributes["agentlightning.reward.0.value"])
        assert adapted == stated, f"{run}: the adapter gives a call another reward or agent"
        rewards[run] = [triplet.reward or 0.0 for triplet in triplets]
    return rewards


READERS = {"verl": read_verl, "skyrl": read_skyrl, "agent-lightning": read_agent_lightning}


def main() -> None:
    """Read a file, and print the number of turns and the reward of each run."""
    parser = argparse.ArgumentParser(description="Read an export for a trainer with the trainer's own code.")
    parser.add_argument("profile", choices=READERS)
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    read = READERS[arguments.profile]
    for run, rewards in read(arguments.file.read_text(encoding="utf-8")).items():
        print(f"{run}: {len(rewards)} turns, reward {fsum(rewards):.6g}")


if __name__ == "__main__":
    main()
