"""Runs as training data: turns in the shapes of three trainers, rewards that sum up, baselines that depend on stopping."""

import json
from functools import partial
from math import fsum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.trace.credit.methods import group_relative_advantages
from orchtrace_corpus.trace.credit.stopping import estimate_gradients, stopping_biases
from orchtrace_corpus.trace.exporters.trainers import Shape, as_agent_lightning, as_skyrl, as_verl, text
from orchtrace_corpus.trace.exporters.training import Division, RunReward, TokenFiles, Trajectory, trajectories
from orchtrace_corpus.trace.measures.measure import steps
from orchtrace_corpus.trace.view import TraceView
from tests.conftest import ROOT, run_corpus
from tests.effort import assert_grows
from tests.trace.conversationlogs import trace_of
from tests.trace.test_import_atif import call, observed, result, step, trajectory
from tests.trace.traces import EXAMPLES, documents, event, raw, trace

SWARM = str(ROOT / "data" / "traces" / "swarm.json")


def run(name: str = "r1", reward: float = 1.0, *, calls: int = 0, folder: Path | None = None) -> dict[str, Any]:
    """A lead asks a worker, which thinks a number of times more, and answers; with tokens in a file where wanted."""
    turns = [event("ask", 0, "orchestrator_decision", "lead", t_end=1)]
    turns += [event(f"w{n}", n + 1, "inference", "worker", t_end=n + 2, model="m") for n in range(calls + 1)]
    turns += [event("join", 20, "aggregate", "lead", t_end=21)]
    if folder:
        ids = [{"prompt": [1, n], "response": [7] * (n + 1), "logprobs": [-0.5] * (n + 1)} for n in range(len(turns))]
        (folder / f"{name}.ids.json").write_text(json.dumps(ids), "utf-8")
        for n, one in enumerate(turns):
            place = f"{name}.ids.json#/{n}"
            names = {"input_ids": "prompt", "output_ids": "response", "logprobs": "logprobs"}
            one["token_refs"] = {kind: f"{place}/{part}" for kind, part in names.items()}
    back = event("back", 15, "return", "worker", to="lead")
    edges = ["ask>w0", *(f"w{n}>w{n + 1}" for n in range(calls)), f"w{calls}>back", "back>join:return"]
    agents = [{"id": "lead", "role": "orchestrator"}, {"id": "worker", "role": "solver"}]
    return {**raw([*turns, back], " ".join(edges), agents=agents), "trace_id": name, "rewards": {"team": reward}}


def exported(
    given: list[dict[str, Any]], division: Division = Division.TURN, folder: Path | str = "", **paid: Any
) -> list[Trajectory]:
    """Runs as training data, paid what they state unless something else is said."""
    views = [TraceView(trace(one)) for one in given]
    rewards = [paid.get(v.trace.trace_id, RunReward(v.trace.rewards.get("team", 0.0))) for v in views]
    return trajectories(views, division, rewards, TokenFiles(str(folder)))


def test_turns_have_their_share_of_the_reward_and_their_tokens(tmp_path: Path) -> None:
    (found,) = exported([run(folder=tmp_path)], folder=tmp_path)

    # Of four events of the making, ask needs itself; w0 needs ask, too; back belongs to nobody; join needs all three.
    shares = {"ask": 1 / 3 + 1 / 6 + 1 / 9, "w0": 1 / 6 + 1 / 9, "join": 1 / 9}
    assert [(turn.event.id, turn.event.agent, turn.role) for turn in found.turns] == [
        ("ask", "lead", "orchestrator"), ("w0", "worker", "solver"), ("join", "lead", "orchestrator"),
    ]  # fmt: skip
    assert [turn.reward for turn in found.turns] == pytest.approx(list(shares.values()))
    assert found.turns[0].agent_reward == pytest.approx(shares["ask"] + shares["join"])
    assert found.turns[2].tokens == ([1, 2], [7, 7, 7], [-0.5, -0.5, -0.5])
    assert found[:5] == ("r1", "k", 0, 1.0, None)


@pytest.mark.parametrize("division", Division)
@given(st.data())
def test_the_rewards_of_turns_sum_up_to_those_of_agents_and_of_the_run(division: Division, data: st.DataObject) -> None:
    document = data.draw(documents())
    view = TraceView(trace(document))
    events = view.trace.events
    paid = data.draw(st.dictionaries(st.integers(0, len(events) - 1), st.floats(-2, 2)))
    of_agents = data.draw(st.dictionaries(st.sampled_from([one.agent for one in events]), st.floats(-2, 2)))
    run_reward = RunReward(data.draw(st.floats(-5, 5)), paid, of_agents)
    total = run_reward.total
    assume(steps(view.trace))
    try:
        (found,) = trajectories([view], division, [run_reward], TokenFiles(""))
    except CommandUseError:
        assume(False)  # nothing that led to the result belongs to a turn

    assert fsum(turn.reward for turn in found.turns) == pytest.approx(total, abs=1e-9)
    by_agent = {turn.event.agent: turn.agent_reward for turn in found.turns}
    assert fsum(by_agent.values()) == pytest.approx(total, abs=1e-9)
    assert [turn.event.id for turn in found.turns] == [
        events[n].id for n in view.sequence if n in set(steps(view.trace))
    ]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_training_data_whose_rewards_sum_up(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    reward = next(iter(document["rewards"].values()), 0.5)
    view = TraceView(trace(document))
    (found,) = trajectories([view], Division.TURN, [RunReward(reward)], TokenFiles(""))

    assert fsum(turn.reward for turn in found.turns) == pytest.approx(reward)


def test_the_reward_of_an_agent_is_at_its_last_turn_and_that_of_the_team_at_the_last_of_all() -> None:
    (agents,), (team,) = exported([run()], Division.AGENT), exported([run()], Division.TEAM)

    # Five events of the making: ask needs the lead, the others need both.
    assert [turn.reward for turn in agents.turns] == pytest.approx([0, 3 / 8, 5 / 8])
    assert [turn.reward for turn in team.turns] == [0, 0, 1]


def test_what_is_paid_for_an_event_goes_to_the_turn_that_led_to_it() -> None:
    back = next(n for n, one in enumerate(run()["events"]) if one["id"] == "back")
    (found,) = exported([run()], Division.TEAM, r1=RunReward(1.5, {back: 0.5}))

    assert [turn.reward for turn in found.turns] == [0, 0.5, 1.5]


def test_runs_of_one_task_have_group_relative_advantages() -> None:
    other = {**run("x", 0.3), "task_id": "other"}
    found = exported([run("r1", 1.0), other, run("r2", 0.0), run("r3", 0.5)])
    advantages = group_relative_advantages({"r1": 1.0, "r2": 0.0, "r3": 0.5})

    assert [(one.trace_id, one.repetition) for one in found] == [("r1", 0), ("r2", 1), ("r3", 2), ("x", 0)]
    assert {one.trace_id: one.advantage for one in found} == {**advantages, "x": None}
    assert fsum(one.advantage or 0.0 for one in found) == pytest.approx(0)


AGENT_LOOP_OUTPUT = {
    "type": "object",
    "required": ["prompt_ids", "response_ids", "response_mask", "metrics"],
    "additionalProperties": False,
    "properties": {
        "prompt_ids": {"type": "array", "items": {"type": "integer"}},
        "response_ids": {"type": "array", "items": {"type": "integer"}},
        "response_mask": {"type": "array", "items": {"enum": [0, 1]}},
        "response_logprobs": {"type": ["array", "null"], "items": {"type": "number"}},
        "reward_score": {"type": ["number", "null"]},
        "num_turns": {"type": "integer"},
        "metrics": {"type": "object", "additionalProperties": {"type": "number"}},
        "extra_fields": {"type": "object"},
    },
}
"""The fields of `AgentLoopOutput` in verl 0.9 that are written; scripts/trainer_readers.py holds them to verl itself."""


def test_verl_gets_an_output_of_an_agent_loop_for_each_turn(tmp_path: Path) -> None:
    runs = exported([run("r1", 1.0, folder=tmp_path), run("r2", 0.0, calls=1, folder=tmp_path)], folder=tmp_path)
    rows = [json.loads(line) for line in text(Shape.VERL, runs).splitlines()]

    for row in rows:
        Draft202012Validator(AGENT_LOOP_OUTPUT).validate(row)
        assert len(row["response_ids"]) == len(row["response_mask"]) == len(row["response_logprobs"])
    assert rows == list(as_verl(runs))
    keys = [tuple(row["extra_fields"][name] for name in ("uid", "session_id", "index")) for row in rows]
    assert keys == [("k", 0, 0), ("k", 0, 1), ("k", 0, 2), ("k", 1, 0), ("k", 1, 1), ("k", 1, 2), ("k", 1, 3)]
    assert fsum(row["reward_score"] for row in rows[:3]) == pytest.approx(1.0)
    assert {**rows[1], "reward_score": 0, "extra_fields": {**rows[1]["extra_fields"], "turn_scores": [0]}} == {
        "prompt_ids": [1, 1],
        "response_ids": [7, 7],
        "response_mask": [1, 1],
        "response_logprobs": [-0.5, -0.5],
        "reward_score": 0,
        "num_turns": 2,
        "metrics": {},
        "extra_fields": {
            "uid": "k", "session_id": 0, "index": 1, "turn_scores": [0], "trace_id": "r1", "agent": "worker",
            "role": "solver", "event": "w0", "turn_reward": runs[0].turns[1].reward,
            "agent_reward": runs[0].turns[1].agent_reward, "run_reward": 1.0, "advantage": 1.0,
        },
    }  # fmt: skip


def test_skyrl_gets_one_batch_with_the_reward_of_a_turn_at_its_last_token(tmp_path: Path) -> None:
    runs = exported([run("r1", 1.0, folder=tmp_path), run("r2", 0.0, folder=tmp_path)], Division.TEAM, tmp_path)
    batch = json.loads(text(Shape.SKYRL, runs))

    assert batch == as_skyrl(runs)
    metrics = batch.pop("env_metrics")
    assert [(one["trace_id"], one["event"], one["advantage"]) for one in metrics][2:4] == [
        ("r1", "join", 1.0), ("r2", "ask", -1.0),
    ]  # fmt: skip
    assert batch == {
        "prompt_token_ids": [[1, 0], [1, 1], [1, 2]] * 2,
        "response_ids": [[7], [7, 7], [7, 7, 7]] * 2,
        "rewards": [[0.0], [0.0, 0.0], [0.0, 0.0, 1.0], [0.0], [0.0, 0.0], [0.0, 0.0, 0.0]],
        "loss_masks": [[1], [1, 1], [1, 1, 1]] * 2,
        "stop_reasons": ["stop"] * 6,
        "rollout_metrics": None,
        "rollout_logprobs": [[-0.5], [-0.5] * 2, [-0.5] * 3] * 2,
        "trajectory_ids": [{"instance_id": "k", "repetition_id": n} for n in (0, 0, 0, 1, 1, 1)],
        "trajectory_generation_times": None,
        "rollout_expert_indices": None,
        "is_last_step": [False, False, True] * 2,
        "pixel_values": None,
        "image_grid_thw": None,
    }


def test_skyrl_gets_numbers_for_rewards_where_there_is_no_token_to_put_them_at() -> None:
    batch = as_skyrl(exported([run()], Division.TEAM))

    assert batch["rewards"] == [0.0, 0.0, 1.0]
    assert batch["rollout_logprobs"] is None


SPAN = {
    "type": "object",
    "required": [
        "rollout_id", "attempt_id", "sequence_id", "trace_id", "span_id", "parent_id", "name", "status", "attributes",
        "events", "links", "start_time", "end_time", "context", "parent", "resource",
    ],
    "additionalProperties": False,
    "properties": {
        "sequence_id": {"type": "integer"},
        "trace_id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
        "span_id": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
        "parent_id": {"type": ["string", "null"], "pattern": "^[0-9a-f]{16}$"},
        "status": {"properties": {"status_code": {"enum": ["UNSET", "OK", "ERROR"]}}},
        "attributes": {"additionalProperties": {"type": ["string", "number", "boolean", "array"]}},
        "resource": {"required": ["attributes", "schema_url"]},
        **{name: {"type": "string"} for name in ("rollout_id", "attempt_id", "name")},
        **{name: {"type": "array"} for name in ("events", "links")},
        **{name: {"type": ["number", "null"]} for name in ("start_time", "end_time")},
        **{name: {"type": ["object", "null"]} for name in ("context", "parent")},
    },
}  # fmt: skip
"""The fields of `Span` in agent-lightning 0.3."""


def test_agent_lightning_gets_a_span_for_each_call_and_one_for_its_reward(tmp_path: Path) -> None:
    runs = exported([run(folder=tmp_path)], folder=tmp_path)
    spans = [json.loads(line) for line in text(Shape.AGENT_LIGHTNING, runs).splitlines()]

    assert spans == list(as_agent_lightning(runs))
    for one in spans:
        Draft202012Validator(SPAN).validate(one)
    names = {one["span_id"]: f"{one['name']} {one['attributes'].get('agent.name', '')}".strip() for one in spans}
    assert [(one["name"], one["start_time"], one["end_time"], names.get(one["parent_id"])) for one in spans] == [
        ("run", 0.0, 6.0, None),
        ("agent", 0.0, 5.0, "run"),
        ("agent", 2.0, 3.0, "run"),
        ("openai.chat.completion", 0.0, 1.0, "agent lead"),
        ("agentlightning.annotation", 1.0, 1.0, "agent lead"),
        ("openai.chat.completion", 2.0, 3.0, "agent worker"),
        ("agentlightning.annotation", 3.0, 3.0, "agent worker"),
        ("openai.chat.completion", 4.0, 5.0, "agent lead"),
        ("agentlightning.annotation", 5.0, 5.0, "agent lead"),
    ]
    assert spans[5]["attributes"] == {
        "gen_ai.response.id": "w0", "gen_ai.response.model": "m", "prompt_token_ids": [1, 1],
        "response_token_ids": [7, 7], "orchtrace.role": "solver", "orchtrace.t": 1, "orchtrace.t_end": 2,
    }  # fmt: skip
    worker = runs[0].turns[1]
    assert spans[6]["attributes"] == {
        "agentlightning.reward.0.name": "turn", "agentlightning.reward.0.value": worker.reward,
        "agentlightning.reward.1.name": "agent", "agentlightning.reward.1.value": worker.agent_reward,
        "agentlightning.reward.2.name": "run", "agentlightning.reward.2.value": 1.0,
        "agentlightning.link.0.key_match": "gen_ai.response.id", "agentlightning.link.0.value_match": "w0",
    }  # fmt: skip
    assert len(names) == len(spans)


def test_tokens_that_are_unknown_are_refused_unless_they_are_asked_for(tmp_path: Path) -> None:
    refused = run_corpus("trace", "export", SWARM, "--profile", "verl")
    asked = run_corpus("trace", "export", SWARM, "--profile", "verl", "--without-tokens", "--credit", "team")

    assert refused.code == 2
    assert refused.stdout == ""
    assert refused.stderr == (
        "corpus: 8 of 8 turns have no token ids, first 'split' of 'swarm'\n"
        "Logs in ATIF can hold them (token_refs). With --without-tokens, turns are written with empty lists.\n"
    )
    assert asked.code == 0
    assert [json.loads(line)["reward_score"] for line in asked.stdout.splitlines()] == [0] * 7 + [0.8]
    assert asked.stderr == (
        "corpus: 8 of 8 turns have no token ids, first 'split' of 'swarm'; join them by run and event before training\n"
        "corpus: wrote 8 turns of 1 run of 1 task\n"
    )


def written(folder: Path, *given: dict[str, Any]) -> list[str]:
    """Traces as files."""
    for one in given:
        (folder / f"{one['trace_id']}.json").write_text(json.dumps(one), "utf-8")
    return [str(folder / f"{one['trace_id']}.json") for one in given]


def test_the_command_reads_the_tokens_beside_the_trace_or_where_it_is_told(tmp_path: Path) -> None:
    (path,) = written(tmp_path, run(folder=tmp_path))
    beside = run_corpus("trace", "export", path, "--profile", "skyrl", "--credit", "team")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "r1.ids.json").rename(tmp_path / "elsewhere" / "r1.ids.json")
    missing = run_corpus("trace", "export", path, "--profile", "skyrl")
    target = str(tmp_path / "batch.json")
    told = ("--tokens", str(tmp_path / "elsewhere"), "--credit", "team", "-o", target)
    named = run_corpus("trace", "export", path, "--profile", "skyrl", *told)

    assert beside.stderr == "corpus: wrote 3 turns of 1 run of 1 task\n"
    assert json.loads(beside.stdout)["response_ids"] == [[7], [7, 7], [7, 7, 7]]
    assert missing.code == 3
    assert missing.stderr.endswith("Name the folder of the log that the trace was made of: --tokens DIR.\n")
    assert named.stderr == f"wrote {target}\ncorpus: wrote 3 turns of 1 run of 1 task\n"
    assert Path(target).read_text("utf-8") == beside.stdout


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("../secret.json#/0", "'../secret.json#/0' leads out of the folder"),
        ("ids.json#/9", "there is nothing at 'ids.json#/9', where a trace has its tokens"),
        ("ids.json#/a~1b", "'ids.json#/a~1b' is not a list of token ids"),
        ("broken.json#/0", "not JSON"),
    ],
)
def test_a_reference_that_leads_nowhere_is_refused(reference: str, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (tmp_path / "secret.json").write_text("[[1]]")
    (folder / "ids.json").write_text('{"a/b": [1.5]}')
    (folder / "broken.json").write_text("{")
    document = run()
    document["events"][0]["token_refs"] = {"input_ids": reference}

    with pytest.raises(DataFileError) as error:
        exported([document], folder=folder)
    assert message in str(error.value)


def test_log_probabilities_must_be_as_many_as_the_tokens(tmp_path: Path) -> None:
    document = run(folder=tmp_path)
    document["events"][1]["token_refs"]["logprobs"] = "r1.ids.json#/2/logprobs"

    with pytest.raises(DataFileError, match="'w0' has 3 log-probabilities for 2 tokens"):
        exported([document], folder=tmp_path)


def test_options_for_trainers_and_several_traces_are_refused_for_other_profiles() -> None:
    credited = run_corpus("trace", "export", SWARM, "--credit", "team")
    several = run_corpus("trace", "export", SWARM, SWARM, "--profile", "atif")

    assert (credited.code, several.code) == (2, 2)
    assert credited.stderr == (
        "corpus: the profile full writes no rewards of turns\n"
        "--credit, --channel, --spec, --outcomes, --tokens, --without-tokens: for verl, agent-lightning, skyrl.\n"
    )
    assert several.stderr == "corpus: the profile atif is for one trace, and 2 are given\n"


def test_two_runs_of_one_name_are_refused() -> None:
    refused = run_corpus("trace", "export", SWARM, SWARM, "--profile", "agent-lightning", "--without-tokens")

    assert refused.code == 2
    assert refused.stderr.startswith("corpus: two runs are called 'swarm': ")


def test_a_run_without_a_reward_is_refused(tmp_path: Path) -> None:
    (path,) = written(tmp_path, {**run(), "rewards": {}})
    refused = run_corpus("trace", "export", path, "--profile", "verl", "--without-tokens")
    (tmp_path / "outcomes.csv").write_text("run,reward\nr1,0.25\n")
    given = run_corpus(
        *("trace", "export", path, "--profile", "verl", "--without-tokens", "--credit", "team"),
        *("--outcomes", str(tmp_path / "outcomes.csv")),
    )

    assert refused.code == 2
    assert "has no reward that could be divided" in refused.stderr
    assert [json.loads(line)["reward_score"] for line in given.stdout.splitlines()] == [0, 0, 0.25]


def test_what_led_to_the_result_must_be_somebodys() -> None:
    events = [event("think", 0, "inference", "a"), event("back", 1, "return", "user")]
    lone = {**raw(events, agents=[{"id": "user", "kind": "human"}]), "rewards": {"team": 1.0}}

    with pytest.raises(CommandUseError, match="nothing that led to the result of 't' belongs to any turn"):
        exported([lone])


HALVES = [[1.0, 0.0], [1.0, 3.0, 0.0], [1.0, 0.0], [1.0, 1.0, 2.0]]
"""Four runs: after the second turn, two of four go on."""


def test_a_baseline_by_turn_takes_what_further_turns_earn_off_the_decision_to_go_on() -> None:
    (found,) = stopping_biases(HALVES)

    # Means by turn: 1, (0 + 3 + 0 + 1) / 4 = 1, (0 + 2) / 2 = 1. Who goes on earns 1 there on average.
    # Gradient: (-1/2 · 1 + 1/2 · 4 - 1/2 · 1 + 1/2 · 4) / 4 = 0.75. Bias: -1 · 1/2 · 1/2 · 1.
    assert found == (2, 4, 2, 1.0, 0.75, -0.25)


def test_where_further_turns_earn_less_than_they_cost_the_sign_turns() -> None:
    (found,) = stopping_biases([[0.0], [0.0, 1.0]] * 2 + [[0.5]] * 4)

    assert found.gradient == pytest.approx(0.125)  # (2 · 0.75 · 1 - 4 · 0.25 · 0.5) / 8
    assert found.bias == pytest.approx(-0.1875)
    assert abs(found.bias) > found.gradient


def test_runs_that_end_alike_have_no_stopping_bias() -> None:
    assert stopping_biases([[1.0, 2.0], [0.0, 1.0]]) == []
    assert stopping_biases([[1.0]]) == []
    assert stopping_biases([]) == []


lengths = st.lists(st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=5), min_size=2, max_size=8)


@given(lengths)
def test_the_bias_is_what_the_baseline_by_turn_does_to_the_gradient(runs: list[list[float]]) -> None:
    """By the definition: the mean of score times baseline over all runs."""
    longest = max(map(len, runs))
    by_turn = [[run[turn] for run in runs if len(run) > turn] for turn in range(longest)]
    means = [fsum(one) / len(one) for one in by_turn]
    for found in stopping_biases(runs):
        go_on = (found.reached - found.stopped) / found.reached
        scores = [(len(run) > found.turn) - go_on if len(run) >= found.turn else 0.0 for run in runs]
        baselines = [fsum(means[: len(run)]) for run in runs]
        told = fsum(one * baseline for one, baseline in zip(scores, baselines, strict=True)) / len(runs)
        assert found.bias == pytest.approx(-told)
        mean = fsum(map(fsum, runs)) / len(runs)
        same = fsum(one * (fsum(run) - mean) for one, run in zip(scores, runs, strict=True)) / len(runs)
        assert found.gradient == pytest.approx(same)  # a baseline that is the same for all leaves the gradient


def test_biases_take_time_that_grows_with_the_turns() -> None:
    def of(turns: int) -> Any:
        runs = [[0.5] * (turns - 7 * number) for number in range(64)]
        return partial(stopping_biases, runs)

    assert_grows(of, 1_000, 8_000, 24)  # squared: 64 times


def test_simulated_groups_have_the_bias_and_baselines_of_whole_runs_have_none() -> None:
    runs = HALVES * 4
    (found,) = stopping_biases(runs)
    drawn = estimate_gradients(runs, found.turn, groups=3000)

    assert abs(drawn.by_run - found.gradient) < 4 * drawn.standard_errors[0]
    assert abs(drawn.by_turn - found.gradient - found.bias) < 0.1 * abs(found.bias) + 4 * drawn.standard_errors[2]
    assert drawn == estimate_gradients(runs, found.turn, groups=3000)
    assert drawn != estimate_gradients(runs, found.turn, groups=3000, seed=1)


def test_the_command_warns_where_a_baseline_depends_on_when_runs_stopped(tmp_path: Path) -> None:
    group = [run("r1", 1.0), run("r2", 0.2, calls=2), run("r3", 0.0), run("r4", 0.9, calls=2)]
    paths = written(tmp_path, *group)
    warned = run_corpus(
        "trace", "export", *paths, "--profile", "agent-lightning", "--without-tokens", "--credit", "team"
    )
    alike = run_corpus(
        *("trace", "export", *paths[::2], "--profile", "agent-lightning", "--without-tokens", "--credit", "team")
    )

    (warning,) = (line for line in warned.stderr.splitlines() if "task" in line and "baseline" in line)
    assert warning == (
        "corpus: task 'k': 2 of 4 runs end with turn 3; there a baseline by turn index takes 0.55 off going on. "
        "The gradient of going on is 0.0125; with that baseline, groups drawn from these runs make it -0.122 (± 0.004)"
    )
    assert "baseline" not in alike.stderr


SPEC = """\
title: What the team has, less a tenth for each step, and a bonus for agents.
terms:
  - name: team
    function: outcome
    options: {channel: shared}
  - name: late
    function: steps
    weight: -0.1
  - name: own
    function: agent_outcomes
    weight: 0.5
"""


def test_a_computed_reward_is_paid_to_events_to_agents_and_for_the_rest_to_those_who_led_there(tmp_path: Path) -> None:
    (tmp_path / "design.yaml").write_text(SPEC, "utf-8")
    document = run()
    document["agents"] = [{**one, "reward": {"lead": 0.2, "worker": 0.6}[one["id"]]} for one in document["agents"]]
    document["rewards"] = {"shared": 1.0}
    (path,) = written(tmp_path, document)
    args = ("trace", "export", path, "--profile", "verl", "--without-tokens", "--credit", "team")
    result = run_corpus(*args, "--spec", str(tmp_path / "design.yaml"))
    paid = [json.loads(line)["reward_score"] for line in result.stdout.splitlines()]
    # 1 for the team, at the last turn; -0.1 for each of three steps; half of the mean of 0.2 and 0.6 for agents.
    assert paid == pytest.approx([-0.1, -0.1 + 0.15, -0.1 + 0.05 + 1.0])
    assert fsum(paid) == pytest.approx(0.9)


def test_a_reward_that_a_run_cannot_have_is_refused_with_what_to_add(tmp_path: Path) -> None:
    (tmp_path / "design.yaml").write_text(SPEC, "utf-8")
    (path,) = written(tmp_path, run())
    refused = run_corpus("trace", "export", path, "--profile", "verl", "--spec", str(tmp_path / "design.yaml"))
    both = run_corpus("trace", "export", path, "--profile", "verl", "--spec", "x", "--channel", "team")

    assert refused.code == 2
    assert refused.stderr == (
        "corpus: the reward of 'r1' lacks its term 'team'\n"
        "the trace states no reward `shared`: give it with --outcomes, as `reward.shared`\n"
    )
    assert both.stderr == "corpus: --channel and --spec contradict each other\nGive one of them.\n"


def test_a_log_in_atif_is_training_data_with_its_own_tokens(tmp_path: Path) -> None:
    def tokens(prompt: list[int], response: list[int]) -> dict[str, Any]:
        logprobs = [-0.25] * len(response)
        return {"prompt_token_ids": prompt, "completion_token_ids": response, "logprobs": logprobs}

    child = trajectory(step("user", "Do it."), step("agent", metrics=tokens([5], [6])), trajectory_id="c", name="b")
    asked = step("agent", tool_calls=[call("1")], **observed(result("1", "c")), metrics=tokens([1, 2], [3]))
    answered = step("agent", "Done.", metrics=tokens([1, 2, 3, 4], [7, 8]))
    lead = trajectory(step("user", "Go."), asked, answered, subagent_trajectories=[child])
    (tmp_path / "run.json").write_text(json.dumps(lead), "utf-8")
    name = trace_of(tmp_path / "run.json")["trace_id"]
    (tmp_path / "outcomes.csv").write_text(f"run,reward\n{name},1\n")
    folder = ("--outcomes", str(tmp_path / "outcomes.csv"))
    shown = run_corpus("trace", "export", str(tmp_path / "run.json"), "--profile", "verl", *folder)

    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [(row["extra_fields"]["agent"], row["prompt_ids"], row["response_ids"]) for row in rows] == [
        ("lead", [1, 2], [3]), ("b", [5], [6]), ("lead", [1, 2, 3, 4], [7, 8]),
    ]  # fmt: skip
    assert [row["response_logprobs"] for row in rows] == [[-0.25], [-0.25], [-0.25, -0.25]]
    assert fsum(row["reward_score"] for row in rows) == pytest.approx(1)


def test_definitions_of_a_trainer_are_read_from_its_installed_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trainer_readers import definitions

    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "__init__.py").write_text("raise ImportError('no GPU')\n")
    (tmp_path / "trainer" / "rollout.py").write_text("import torch\n\n\ndef check(batch):\n    return total(batch)\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    assert definitions("trainer", "rollout.py", ("check",), {"total": sum})["check"]([1, 2]) == 3
    with pytest.raises(SystemExit, match="has no verify"):
        definitions("trainer", "rollout.py", ("check", "verify"), {})
    with pytest.raises(SystemExit, match="no_such_trainer is not installed"):
        definitions("no_such_trainer", "rollout.py", ("check",), {})
