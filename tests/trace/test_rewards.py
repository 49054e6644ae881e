"""Rewards: values worked by hand, properties, refusals, specifications, two designs compared, and the command."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from math import fsum, log2
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.trace import rewards
from orchtrace_corpus.trace.analysis import outcomes
from orchtrace_corpus.trace.rewards import (
    FUNCTIONS,
    WHOLE,
    Spec,
    Term,
    TermSpec,
    compute,
    load,
    published,
    spec_of_families,
)
from orchtrace_corpus.trace.rewards.comparison import compare
from orchtrace_corpus.trace.rewards.specs import GATES, LEVELS, Vector
from tests.conftest import ROOT, TOY, run_corpus
from tests.trace.traces import EXAMPLES, event, example, raw, trace

DOCUMENT = (ROOT / "docs" / "rewards.md").read_text(encoding="utf-8")
LETTERS = {
    "C": "centralized", "D": "debate", "F": "failing", "H": "harness", "I": "hierarchical", "M": "mixed",
    "P": "planner_executor_critic", "S": "swarm", "U": "unknown",
}  # fmt: skip
EVERY = Spec("every", tuple(TermSpec(name, name) for name in FUNCTIONS))
SWARM = str(ROOT / "data" / "traces" / "swarm.json")


def worked() -> list[dict[tuple[str, str], str]]:
    """The two tables of values worked by hand: from a function and an example to its value."""
    found = []
    for part in DOCUMENT.split("<!-- values -->\n\n")[1:]:
        lines = part.partition("\n\n")[0].splitlines()
        letters = lines[0].strip("|").split("|")[1:]
        rows = [line.strip("|").split("|") for line in lines[2:]]
        found.append(
            {
                (row[0].strip("`"), LETTERS[one]): cell
                for row in rows
                for one, cell in zip(letters, row[1:], strict=True)
            }
        )
    return found


PLAIN, TOLD = worked()


def documented_outcomes(tmp_path: Path) -> str:
    """The file of outcomes that the document shows."""
    path = tmp_path / "outcomes.yaml"
    path.write_text(DOCUMENT.split("With this file:\n\n```yaml\n")[1].partition("```")[0], encoding="utf-8")
    return str(path)


def term(of: Any, function: str, **options: Any) -> Term:
    """One function on a trace."""
    return compute(of, Spec("one", (TermSpec(function, function, options=options),))).terms[0]


def value_of(cell: str) -> Any:
    return None if cell == "–" else pytest.approx(float(cell), rel=1e-5)


def test_every_function_is_worked_by_hand_on_every_example() -> None:
    assert sorted({name for _, name in PLAIN}) == [path.stem for path in EXAMPLES]
    assert {function for function, _ in PLAIN} == set(FUNCTIONS)


@pytest.mark.parametrize("name", sorted(LETTERS.values()))
def test_values_are_those_worked_by_hand(name: str) -> None:
    found = {one.name: one.value for one in compute(example(name), EVERY).terms}

    assert found == {function: value_of(cell) for (function, of), cell in PLAIN.items() if of == name}


@pytest.mark.parametrize("name", sorted({name for _, name in TOLD}))
def test_values_with_outcomes_are_those_worked_by_hand(name: str, tmp_path: Path) -> None:
    run = example(name)
    outcomes.load(documented_outcomes(tmp_path))[run.trace_id].apply(run)
    wanted = {function: value_of(cell) for (function, of), cell in TOLD.items() if of == name}
    found = {one.name: one.value for one in compute(run, EVERY).terms}

    assert {function: found[function] for function in wanted} == wanted


def test_decompositions_are_those_worked_by_hand(tmp_path: Path) -> None:
    swarm, debate = example("swarm"), example("debate")
    told = outcomes.load(documented_outcomes(tmp_path))
    told["debate"].apply(debate)

    assert term(swarm, "team_speed_up").by_agent == {
        "w1": pytest.approx(3 / 14), "w2": pytest.approx(10 / 14), "w3": pytest.approx(2 / 14), "w4": pytest.approx(1),
    }  # fmt: skip
    assert term(swarm, "shaping").by_event == {"r1": 0.25, "r2": 0.25, "r3": 0.25, "r4": 0.25, "join": -1}
    assert term(swarm, "parallel_share").by_agent == {"lead": 1}
    assert term(swarm, "outcome").by_agent == {WHOLE: 0.8}
    assert term(debate, "wins").by_agent == {"pro": 0.5, "con": -1, "judge": 0.5}
    assert term(debate, "wins", roles=("debater",)).by_agent == {"pro": 1, "con": -1}
    assert term(example("planner_executor_critic"), "team_speed_up", baseline="stated").value == pytest.approx(20 / 22)
    told["swarm"].apply(swarm)
    assert term(swarm, "shaping", potential="results").by_event == {
        "r3": pytest.approx(0.2), "r1": pytest.approx(0.3), "r2": pytest.approx(0.4), "r4": pytest.approx(-0.3),
        "join": pytest.approx(-0.6),
    }  # fmt: skip


def test_what_no_example_has_is_computed_all_the_same() -> None:
    events = [
        event("d", 0, "orchestrator_decision", "lead", t_end=1, cost_usd=0.5),
        *[event(f"s{n}", 1, "spawn", "lead", to=f"w{n}") for n in range(3)],
        *[event(f"a{n}", 1, "inference", f"w{n}", t_end=2 + n, cost_usd=0.25) for n in range(3)],
        *[event(f"c{n}", 4 + n, "tool_call", f"w{n}", t_end=5 + n, tool="find", content_ref="x" if n < 2 else "y",
                status="ok") for n in range(3)],
        *[event(f"r{n}", 8, "return", f"w{n}", to="lead", content_ref="yes" if n else "no") for n in range(3)],
        event("m", 8, "aggregate", "lead", t_end=9, cost_usd=1.0),
        event("late", 10, "inference", "lead", t_end=11, cost_usd=0.0),
    ]  # fmt: skip
    edges = "d>s0 d>s1 d>s2 s0>a0:spawn s1>a1:spawn s2>a2:spawn a0>c0 a1>c1 a2>c2 c0>r0 c1>r1 c2>r2 "
    run = trace(raw(events, edges + "r0>m:return r1>m:return r2>m:return m>late"))

    assert term(run, "agreement").by_agent == {"w0": 0, "w1": pytest.approx(1 / 6), "w2": pytest.approx(1 / 6)}
    assert term(run, "agreement").value == pytest.approx(1 / 3)  # of the three pairs, one has the same content
    assert term(run, "usd").value == pytest.approx(2.25)
    assert term(run, "usd", roles=("nobody",)).value is None
    assert term(run, "usd", types=("inference",)).by_agent == {"w0": 0.25, "w1": 0.25, "w2": 0.25, "lead": 0}
    assert term(run, "disjoint").by_event == {"c2": pytest.approx(1 / 3)}  # two siblings make one call
    assert term(run, "tool_repeats").by_event == {"c1": pytest.approx(1 / 3)}
    assert term(run, "late_steps").by_event == {"late": 1}
    assert term(run, "failed_calls").value == 0


def test_an_agent_that_is_spawned_again_has_several_lives_and_copied_spawns_have_none() -> None:
    events = [
        event("d", 0, "orchestrator_decision", "lead", t_end=1, tokens={"input": 1}),
        event("old", 1, "spawn", "lead", to="w", copied_context=True),
        event("s1", 1, "spawn", "lead", to="w"),
        event("a1", 1, "inference", "w", t_end=3, model="small", tokens={"input": 10}),
        event("r1", 3, "return", "w", to="lead"),
        event("s2", 4, "spawn", "lead", to="w"),
        event("a2", 4, "inference", "w", t_end=9, model="small", tokens={"input": 100}),
        event("s3", 5, "spawn", "lead", to="v"),
        event("a3", 5, "inference", "v", t_end=6, model="large", tokens={"input": 1000}),
        event("x2", 9, "despawn", "lead", to="w"),
    ]  # fmt: skip
    edges = "d>s1 s1>a1:spawn a1>r1 r1>s2 s2>a2:spawn s2>s3 s3>a3:spawn a2>x2"
    run = trace(raw(events, edges, metrics={"task_success": 1}))

    assert term(run, "spawns").by_event == {"s1": 1, "s2": 1, "s3": 1}
    assert term(run, "parallel_share").by_event == {"s2": pytest.approx(1 / 3), "s3": pytest.approx(1 / 3)}
    assert term(run, "returned").by_event == {"s1": pytest.approx(1 / 3)}
    settings = {"scale": 1.0, "per_cost": 2.0, "growth": 1.0, "limit": 2.0, "model_sizes": {"small": 1.0, "large": 3.0}}
    assert term(run, "choice_cost", **settings).by_event == {
        "s1": pytest.approx(10 * log2(1 + 1 / 3)),
        "s2": pytest.approx(100 * log2(1 + 2 / 3)),
        "s3": pytest.approx(3 * 1000),
    }
    assert term(run, "last_choice", scale=1.0, growth=1.0, limit=3.0).value == pytest.approx(1.0)


def test_a_call_without_an_id_ends_as_the_result_that_it_leads_to() -> None:
    events = [
        event("c1", 0, "tool_call", "a", t_end=1, tool="find"),
        event("r1", 1, "tool_result", "a", status="error"),
        event("c2", 2, "tool_call", "a", t_end=3, tool="find"),
        event("r2", 3, "tool_result", "a", status="ok"),
    ]
    run = trace(raw(events, "c1>r1 r1>c2 c2>r2"))

    assert term(run, "failed_calls").by_event == {"c1": 1}
    assert term(run, "tool_success").by_event == {"c2": 0.5}


def test_models_without_a_size_or_a_name_refuse_the_cost_of_choices() -> None:
    def run(**fields: Any) -> Term:
        events = [
            event("s1", 0, "spawn", "lead", to="w"),
            event("a1", 0, "inference", "w", t_end=1, tokens={"input": 10}, **fields),
        ]
        return term(trace(raw(events, "s1>a1:spawn")), "choice_cost", model_sizes={"small": 7.0})

    assert run(model="small").value is not None
    assert run(model="huge").refusal == (
        "no size is given for the model 'huge': add it to `model_sizes` of a copy of the specification"
    )
    assert run().refusal == "1 events state no model: a1; add `model`"


def test_subtasks_that_nobody_was_given_are_not_covered() -> None:
    events = [
        event("s1", 0, "spawn", "lead", to="w1", subtask="search"),
        event("s2", 0, "spawn", "lead", to="w2", subtask="search"),
        event("m", 1, "message", "lead", to="w1", subtask="write"),
        event("o", 2, "message", "lead", to="w1", subtask="something else"),
    ]
    run = trace(raw(events, "s1>m", subtasks=["search", "write", "check"]))

    assert (term(run, "covered").value, term(run, "covered").by_event) == (
        pytest.approx(2 / 3),
        {"s1": pytest.approx(1 / 3), "m": pytest.approx(1 / 3)},
    )
    assert term(example("swarm"), "covered").refusal == (
        "the trace states no `subtasks`, so nothing says what the task consists of"
    )


def vectors() -> Iterator[Any]:
    for name in published():
        for vector in load(name).vectors:
            yield pytest.param(name, vector, id=Path(vector.trace).stem)


@pytest.mark.parametrize(("name", "vector"), list(vectors()))
def test_designs_pay_what_the_released_code_pays(name: str, vector: Vector) -> None:
    run = trace(json.loads(Path(vector.trace).read_text(encoding="utf-8")))
    reward = compute(run, load(name).with_options(vector.options))
    terms = {one.name: one.contribution for one in reward.terms}
    by_event, by_agent = reward.by_event(), reward.by_agent()

    assert vector.reward is None or reward.value == pytest.approx(vector.reward, abs=5e-5)
    assert {name: terms[name] for name in vector.terms} == pytest.approx(vector.terms, abs=5e-5)
    assert {name: by_event[name] for name in vector.events} == pytest.approx(vector.events, abs=5e-5)
    assert {name: by_agent[name] for name in vector.agents} == pytest.approx(vector.agents, abs=5e-5)


def test_designs_without_a_vector_say_so() -> None:
    none = {name for name in published() if not load(name).vectors}
    held = run_corpus("trace", "reward", SWARM, "--spec", "agent-qmix2026").stdout
    loose = run_corpus("trace", "reward", SWARM, "--spec", "kimi-k2-5").stdout

    assert none == {"kimi-k2-5", "m-grpo", "marsrl"}
    assert held.endswith("Held to released code: 2 test vectors.\n")
    assert loose.endswith("No test vector: no released code gives a value that this design could be held to.\n")


def test_readings_that_a_design_lacks_or_contradicts_are_listed(tmp_path: Path) -> None:
    readings = tmp_path / "readings.csv"
    cited = load("agent-qmix2026").terms[0].evidence[1]
    readings.write_text(
        "design,term,field,true_value,verdict,source_url,quote\n"
        f"agent-qmix2026,accuracy,weight,1.5,right,{cited.source},{cited.quote}\n"
        f"agent-qmix2026,accuracy,weight,1.75,wrong,{cited.source},{cited.quote}\n"
        "agent-qmix2026,accuracy,cap,3,missing,https://example.org/elsewhere#L1,x\n"
        "nothing,a,weight,1,right,https://example.org,x\n",
        encoding="utf-8",
    )
    script = str(ROOT / "scripts" / "compare_reward_designs.py")
    compared = subprocess.run([sys.executable, script, str(readings)], capture_output=True, text=True, check=False)

    assert compared.returncode == 1
    assert compared.stdout.splitlines()[:4] == [
        "agent-qmix2026 accuracy weight (wrong): WRONG: '1.75' stands nowhere in the design",
        "agent-qmix2026 accuracy cap (missing): MISSING: no place of the design cites the source",
        "nothing a weight (right): MISSING: no such design",
        "2 rows MISSING, 1 rows WRONG, 1 rows accounted for",
    ]


def test_a_run_without_outcomes_is_refused_what_needs_them_and_told_what_to_add() -> None:
    refused = {
        one.name: one.refusal for one in compute(trace(raw([event("a", 0, "inference", "x", t_end=1)])), EVERY).terms
    }

    assert refused["outcome"] == "the trace states no reward `team`: give it with --outcomes, as `reward`"
    assert refused["success"] == "`metrics.task_success` is unknown: give it with --outcomes, as `success`"
    assert refused["agent_outcomes"] == "1 of 1 agents have no reward: x; give it with --outcomes, as `agent.x`"
    assert refused["step_outcomes"] == "no event states a reward: give it with --outcomes, as `event.ID`"
    for name in ("outcome", "success", "agent_outcomes", "role_outcomes", "step_outcomes", "verdicts", "wins"):
        assert term(example("harness"), name).value is None
    assert compute(example("harness"), load("kimi-k2-5")).value is None


@st.composite
def teams(draw: st.DrawFn) -> dict[str, Any]:
    """Sound traces of an orchestrator and workers that call tools, return and are merged; outcomes of some."""
    share = st.one_of(st.none(), st.integers(-4, 4).map(lambda number: number / 4))
    events = [event("d", 0, "orchestrator_decision", "lead", t_end=1, tokens={"input": draw(st.integers(0, 9))})]
    edges, latest, agents = [], 1, [{"id": "lead", "role": "orchestrator"}]
    for number in range(draw(st.integers(0, 4))):
        name, start = f"w{number}", draw(st.integers(1, 4))
        end = start + draw(st.integers(0, 5))
        agents.append({"id": name, "role": draw(st.sampled_from(["worker", "judge"])), "reward": draw(share)})
        events += [
            event(f"s{number}", start, "spawn", "lead", to=name),
            event(f"a{number}", start, "inference", name, t_end=end, tokens={"output": draw(st.integers(0, 9))},
                  reward=draw(share)),
        ]  # fmt: skip
        edges += [f"d>s{number}", f"s{number}>a{number}:spawn"]
        before = f"a{number}"
        for call in range(draw(st.integers(0, 2))):
            content, status = draw(st.sampled_from(["x", "y"])), draw(st.sampled_from(["ok", "error", "cancelled"]))
            one = f"c{number}{call}"
            events.append(
                event(one, end, "tool_call", name, t_end=end + 1, tool="t", content_ref=content, status=status)
            )
            edges.append(f"{before}>{one}")
            before, end = one, end + 1
        if draw(st.booleans()):
            events.append(event(f"r{number}", end, "return", name, to="lead", content_ref="z", reward=draw(share)))
            edges.append(f"{before}>r{number}")
        latest = max(latest, end)
    returned = [one["id"] for one in events if one["type"] == "return"]
    if returned:
        events.append(
            event("m", latest, "aggregate", "lead", t_end=latest + 1, reward=draw(share), tokens={"input": 1})
        )
        edges += [f"{name}>m:return" for name in returned]
    stated = {} if (team := draw(share)) is None else {"team": team}
    return {**raw(events, " ".join(edges)), "agents": agents, "rewards": stated}


@given(teams(), st.sampled_from([0.0, 0.5, 0.9, 1.0]))
def test_terms_add_up_and_hold_their_bounds(document: dict[str, Any], gamma: float) -> None:
    run = trace(document)
    for one in compute(run, EVERY).terms:
        if one.value is None:
            assert one.refusal
            assert (dict(one.by_event), dict(one.by_agent)) == ({}, {})
            continue
        least, most = FUNCTIONS[one.name].bounds
        assert least - 1e-9 <= one.value <= most + 1e-9
        assert fsum(one.by_event.values()) == pytest.approx(one.value, abs=1e-9)
        assert fsum(one.by_agent.values()) == pytest.approx(one.value, abs=1e-9)
    for potential in ("returned", "results"):
        shaped = term(run, "shaping", potential=potential, gamma=gamma)
        assert shaped.value is None or shaped.value == pytest.approx(0, abs=1e-9)


@given(teams(), st.floats(-2, 2), st.sampled_from([None, (-1.0, 1.0), (0.25, 0.5)]), st.booleans())
def test_a_reward_is_the_sum_of_its_weighted_terms(
    document: dict[str, Any], weight: float, bounds: tuple[float, float] | None, is_ramped: bool
) -> None:
    names = ("outcome", "steps", "returned", "step_outcomes", "wins")
    ramp = (5.0, 1.0) if is_ramped else None
    spec = Spec("s", tuple(TermSpec(name, name, weight, range=bounds, ramp=ramp) for name in names))
    reward = compute(trace(document), spec)
    known = [one for one in reward.terms if one.value is not None]

    for one in known:
        assert bounds is None or bounds[0] <= one.value <= bounds[1]
        assert fsum(one.by_event.values()) == pytest.approx(one.value, abs=1e-9)
        assert fsum(one.by_agent.values()) == pytest.approx(one.value, abs=1e-9)
    total = sum(weight * one.value for one in known)
    assert fsum(reward.by_event().values()) == pytest.approx(total, abs=1e-9)
    assert fsum(reward.by_agent().values()) == pytest.approx(total, abs=1e-9)
    assert reward.value == (pytest.approx(total) if len(known) == len(names) else None)


@given(st.lists(teams(), min_size=2, max_size=4), st.floats(0.1, 5))
def test_shaping_leaves_the_order_of_policies_unchanged(documents: list[dict[str, Any]], weight: float) -> None:
    plain = Spec("plain", (TermSpec("outcome", "outcome"),))
    shaped = Spec("shaped", (*plain.terms, TermSpec("shaping", "shaping", weight, {"gamma": 0.9})))
    both = [(compute(run, plain).value, compute(run, shaped).value) for run in map(trace, documents)]
    known = [(one, other) for one, other in both if one is not None and other is not None]

    for (one, other), (second, shaped_second) in combinations(known, 2):
        assert (one < second) == (other < shaped_second - 1e-9)


@given(teams(), st.booleans())
def test_an_idle_agent_never_raises_the_speed_up(document: dict[str, Any], returns: bool) -> None:
    before = term(trace(document), "team_speed_up").value
    idle = [event("idle", 1, "spawn", "lead", to="nobody")]
    idle += [event("back", 1, "return", "nobody", to="lead")] if returns else []
    edges = [*document["edges"], {"src": "d", "dst": "idle", "type": "causal"}]
    edges += [{"src": "idle", "dst": "back", "type": "spawn"}] if returns else []
    after = term(trace({**document, "events": document["events"] + idle, "edges": edges}), "team_speed_up").value

    assert (after is None) == (before is None)
    if before is not None and after is not None:
        assert after <= before + 1e-9


@given(teams(), st.randoms(use_true_random=False))
def test_renaming_and_reordering_change_nothing(document: dict[str, Any], chance: Any) -> None:
    text = json.dumps(document)
    for name in ("lead", "w0", "w1", "w2", "w3"):
        text = text.replace(f'"{name}"', f'"other-{name}"')
    other = json.loads(text)
    for one in other["events"]:
        one["id"] = f"id-{one['id']}"
    for edge in other["edges"]:
        edge["src"], edge["dst"] = f"id-{edge['src']}", f"id-{edge['dst']}"
    chance.shuffle(other["events"])
    chance.shuffle(other["edges"])
    chance.shuffle(other["agents"])

    for one, same in zip(compute(trace(document), EVERY).terms, compute(trace(other), EVERY).terms, strict=True):
        assert (one.name, same.value) == (one.name, None if one.value is None else pytest.approx(one.value, abs=1e-9))
        if one.name != "shaping":  # whose last step may be one of several at one instant
            renamed = {name and f"other-{name}": share for name, share in one.by_agent.items() if abs(share) > 1e-12}
            shares = {name: share for name, share in same.by_agent.items() if abs(share) > 1e-12}
            assert shares == {name: pytest.approx(share) for name, share in renamed.items()}


SCHEMA = json.loads((Path(rewards.__file__).parent / "schema.json").read_text(encoding="utf-8"))


def plain(path: str) -> Any:
    """A specification as JSON has it: numbers where text is a number."""
    import yaml

    return yaml.safe_load(Path(path).read_text(encoding="utf-8"))


def test_the_schema_names_the_functions_and_their_options() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    known = SCHEMA["$defs"]["term"]["properties"]

    assert known["function"]["enum"] == list(FUNCTIONS)
    assert set(known["options"]["properties"]) == {name for one in FUNCTIONS.values() for name in one.defaults}
    assert known["gates"]["items"]["enum"] == list(GATES)
    assert SCHEMA["$defs"]["evidence"]["properties"]["level"]["enum"] == list(LEVELS)


def test_ten_published_rewards_are_specified_with_sources_and_are_of_papers_of_the_pool() -> None:
    papers = CorpusFiles(str(ROOT)).pool.papers
    keys = {paper.key for paper in papers}
    copies = {item.source for paper in papers for item in paper.evidence if item.copy}

    assert len(published()) == 10
    for name, path in published().items():
        assert list(Draft202012Validator(SCHEMA).iter_errors(plain(path))) == []
        spec = load(name)
        assert (spec.name, spec.paper) == (name, name)
        assert spec.paper in keys
        assert spec.title
        for one in spec.terms:
            assert one.evidence, f"{name}: {one.name} has no source"
            assert all(item.source.startswith("https://") for item in one.evidence)
            assert all(item.copy for item in one.evidence if item.source in copies)


WANTED = {
    "agent-qmix2026": 1.5 - 0.0824, "context-folding": None, "kimi-k2-5": 2.8, "m-grpo": None, "magrpo": 0.8,
    "marsrl": None, "matpo": 1, "puppeteer": None, "spiral2026": None, "wideseek-r1-2026": 0.8,
}  # fmt: skip


@pytest.mark.parametrize("name", WANTED)
def test_published_rewards_are_computed_on_the_swarm(name: str) -> None:
    reward = compute(example("swarm"), load(name))

    assert reward.value == (None if WANTED[name] is None else pytest.approx(WANTED[name]))
    assert all((one.value is None) == bool(one.refusal) for one in reward.terms)


def test_roles_and_ramps_of_published_rewards_hold_on_examples(tmp_path: Path) -> None:
    told = outcomes.load(documented_outcomes(tmp_path))
    swarm = example("swarm")
    told["swarm"].apply(swarm)
    debate = example("debate")
    debate.rewards["team"] = 1.0
    alone = compute(debate, load("context-folding")).terms[1]
    debate.rewards["team"] = 0.0
    wrong = compute(debate, load("context-folding")).terms[1]
    long = trace(raw([event("a", 0, "inference", "x", t_end=1, tokens={"output": 4500})], rewards={"team": 1}))

    assert compute(swarm, load("m-grpo")).value == pytest.approx(0.4 + 0.5 * 0.55)
    assert (alone.name, alone.value, alone.contribution) == ("unbranched", 1, -1)
    assert (wrong.value, wrong.refusal) == (0, None)
    assert compute(long, load("wideseek-r1-2026")).value == pytest.approx(1 - 0.1 * 0.75)
    assert compute(example("centralized"), load("matpo")).value == pytest.approx(1)


def test_every_mistake_of_a_specification_is_said_at_its_place(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "titel: x\n"
        "terms:\n"
        "  - function: sucess\n"
        "  - {name: a, function: tokens, weight: much, ramp: [1]}\n"
        "  - {name: a, function: outcome, options: {channel: teem, role: x}, range: [2, 1]}\n"
        "  - {name: b}\n"
        "  - {function: steps, evidence: [{note: n, source: s, level: rumour, copy: no}]}\n"
        "  - {function: usd, options: {types: [tool_call, toolcall]}, gates: [outcom]}\n"
        "  - {function: choice_cost, options: {model_sizes: {a: big}}, open: [{nota: x}]}\n"
        "vectors: [{note: n, source: s, trace: t, terms: {aa: 1}}, {note: n, source: s, trace: t}]\n",
        encoding="utf-8",
    )

    with pytest.raises(DataFileError) as refusal:
        load(str(path))

    message = str(refusal.value)
    assert message.startswith("the specification has mistakes:\n")
    assert message.endswith("docs/rewards.md shows a specification.")
    for wanted in (
        f"{path}:1:1: unknown field 'titel' (did you mean 'title'?",
        f"{path}:3:15: unknown function 'sucess' (did you mean 'success'?",
        f"{path}:4:41: 'much' is not a number",
        f"{path}:4:53: 'ramp' is two different numbers, what counts as 0 first",
        f"{path}:5:53: unknown value of channel 'teem' (did you mean 'team'?",
        f"{path}:5:59: unknown field 'role' (allowed: channel)",
        f"{path}:5:76: 'range' is two different numbers, the lower first",
        f"{path}:5:5: a second term 'a'; give each a name of its own",
        f"{path}:6:5: missing field 'function'",
        f"{path}:7:62: unknown level 'rumour' (allowed: paper, code, docs, secondary)",
        f"{path}:7:76: unknown value of copy 'no' (allowed: yes)",
        f"{path}:8:50: unknown value of types 'toolcall' (did you mean 'tool_call'?",
        f"{path}:8:70: unknown value of gates 'outcom' (did you mean 'outcome'?",
        f"{path}:9:56: 'big' is not a number",
        "unknown field 'nota' (did you mean 'note'?",
        f"{path}:10:50: there is no term 'aa' (did you mean 'a'?",
        f"{path}:10:59: a test vector needs 'reward', 'terms', 'events' or 'agents'",
    ):
        assert wanted in message


@pytest.mark.parametrize(
    "text", ["[]\n", "terms: []\n", "terms: 3\n", "title: x\n", "&a terms:\n  - {function: steps}\n"]
)
def test_what_is_no_specification_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(DataFileError, match="the specification has mistakes"):
        load(str(path))


def test_a_specification_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(CommandUseError, match=r"no specification 'pupeteer' \(did you mean 'puppeteer'"):
        load("pupeteer")
    with pytest.raises(CommandUseError, match=r"no reward family 'R9'"):
        spec_of_families(("R9",))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from("kl"), st.booleans()), max_size=12))
def test_two_rewards_are_compared_pair_by_pair_within_tasks(drawn: list[tuple[int, int, str, bool]]) -> None:
    first = [None if gone else float(one) for one, _, _, gone in drawn]
    found = compare(first, [float(one) for _, one, _, _ in drawn], [task for _, _, task, _ in drawn])

    kept = [(one, other, task) for one, other, task, gone in drawn if not gone]
    pairs = [(a, b) for a, b in combinations(kept, 2) if a[2] == b[2]]
    signs = [((a[0] > b[0]) - (a[0] < b[0]), (a[1] > b[1]) - (a[1] < b[1])) for a, b in pairs]
    apart, other_apart = sum(bool(one) for one, _ in signs), sum(bool(other) for _, other in signs)
    assert (found.pairs, found.left_out) == (len(pairs), len(drawn) - len(kept))
    assert found.discordant == sum(one * other < 0 for one, other in signs)
    assert found.tied == sum(not one or not other for one, other in signs)
    scale = (apart * other_apart) ** 0.5
    assert found.tau == (pytest.approx(sum(one * other for one, other in signs) / scale) if scale else None)
    for run in found.runs:
        same = [one for one, other, task, gone in drawn if not gone and task == drawn[run.run][2]]
        above, level = (sum(one > run.first[0] for one in same), same.count(int(run.first[0])))
        assert run.first[1] == above + (level + 1) / 2


@pytest.mark.parametrize(
    ("first", "second", "correlation"),
    [([0, 1], [0, 1], 1), ([0, 1], [2, 1], -1), ([0, 1, 2], [0, 0, 3], 0.866025), ([1, 1], [0, 1], None),
     ([0, 1], [1, 1], None), ([1], [1], None)],
)  # fmt: skip
def test_two_rewards_are_correlated_if_both_vary(
    first: list[float], second: list[float], correlation: float | None
) -> None:
    assert compare(first, second, ["k"] * len(first)).correlation == pytest.approx(correlation)


def test_the_command_in_the_document_gives_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (content,) = re.findall(r"```console\n(.*?)```", DOCUMENT, re.DOTALL)
    command, _, shown = content.partition("\n")

    assert run_corpus(*shlex.split(command.removeprefix("$ corpus "))).stdout == shown


def test_a_family_is_shown_with_what_to_add() -> None:
    shown = run_corpus("trace", "reward", str(ROOT / "data" / "traces" / "mixed.json"), "--family", "R1,R5")

    assert shown.stdout == (
        "mixed\n"
        "family  function           value  unit    note\n"
        "R1      outcome.team       0.5    reward\n"
        "R1      success                   1       `metrics.task_success` is unknown: give it with --outcomes, as `success`\n"
        "R5      tool_success              1       1 of 1 tool calls have no known end: e3; state the `status` of their results\n"
        "R5      tool_failures             1       1 of 1 tool calls have no known end: e3; state the `status` of their results\n"
        "R5      team_tool_success         1       1 of 1 tool calls have no known end: e3; state the `status` of their results\n"
        "R5      failed_calls              event   1 of 1 tool calls have no known end: e3; state the `status` of their results\n"
        "R5      tool_repeats              1       1 of 1 tool calls have no `content_ref`: e3\n"
        "R5      tool_calls         1      event\n"
        "R5      tool_use           1      1\n"
        "2 reward channels not stated. Use --outcomes, with `reward` or `reward.NAME`.\n"
    )


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_one_run_without_any_reward_fails_and_one_of_several_does_not(tmp_path: Path, form: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(raw([event("a", 0, "inference", "x", t_end=1)])), encoding="utf-8")
    words = ["--spec", "kimi-k2-5", "--format", form]
    alone, beside = (run_corpus("trace", "reward", str(path), *more, *words) for more in ([], [SWARM]))
    some = run_corpus("trace", "reward", str(path), "--family", "R7", "--format", form)

    assert (alone.code, alone.stderr) == (
        1, "corpus: no reward: the trace states no reward `team`: give it with --outcomes, as `reward`\n"
    )  # fmt: skip
    assert "r_perf" in alone.stdout
    assert (beside.code, some.code) == (0, 0)


def test_who_is_paid_is_shown_by_agent_and_by_event() -> None:
    agents = run_corpus("trace", "reward", SWARM, "--spec", "kimi-k2-5", "--by", "agent")
    events = run_corpus("trace", "reward", SWARM, "--spec", "kimi-k2-5", "--by", "event", "--format", "csv")

    assert agents.stdout == (
        "swarm: kimi-k2-5 by agent\n"
        "agent                r_perf  r_parallel  r_finish  reward\n"
        "lead (orchestrator)          1           1              2\n"
        "(whole run)          0.8                              0.8\n"
        "sum                  0.8     1           1            2.8\n"
    )
    assert events.stdout.splitlines()[:3] == [
        "design,event,term,pays",
        "kimi-k2-5,,r_perf,0.8",
        "kimi-k2-5,s1,r_parallel,0.25",
    ]
    functions = run_corpus("trace", "reward", SWARM, "--family", "R1", "--by", "agent")
    assert functions.stdout == (  # functions that are no design have no sum
        "swarm: functions by agent\nagent        outcome.team  success\n(whole run)           0.8        1\n"
        "sum                   0.8        1\n"
    )
    several = run_corpus("trace", "reward", str(ROOT / "data" / "traces"), "--by", "agent")
    assert (several.code, several.stdout) == (2, "")
    assert "--by agent shows one run, and these are several" in several.stderr


def test_several_designs_of_one_run_are_one_table_for_programs() -> None:
    both = ("--spec", "magrpo", "--spec", "spiral2026")
    rows = run_corpus("trace", "reward", SWARM, *both, "--format", "csv")
    shares = run_corpus("trace", "reward", SWARM, *both, "--by", "agent", "--format", "csv")

    assert rows.stdout == (
        "design,term,family,weight,value,unit,pays,note\n"
        "magrpo,joint,R1,1,0.8,reward,0.8,\n"
        "magrpo,reward,R1,,,,0.8,\n"
        'spiral2026,game,R6,1,,1,,"5 of 5 agents have no reward: lead (orchestrator), w1 (worker), w2 (worker), '
        "w3 (worker), w4 (worker); give it with --outcomes, as "
        '`agent.lead`"\n'
        "spiral2026,reward,R6,,,,,\n"
    )
    assert shares.stdout == "design,agent,term,pays\nmagrpo,,joint,0.8\n"


def runs(tmp_path: Path) -> str:
    """Three runs of one task: of a worker, of two side by side, and of two with a worse outcome."""
    lines = []
    for name, workers, reward in (("one", 1, 1.0), ("two", 2, 0.5), ("three", 2, 0.25)):
        events = [event("d", 0, "orchestrator_decision", "lead", t_end=1, tokens={"input": 10})]
        events += [event(f"s{n}", 1, "spawn", "lead", to=f"w{n}") for n in range(workers)]
        events += [event(f"a{n}", 1, "inference", f"w{n}", t_end=3, tokens={"input": 10}) for n in range(workers)]
        events += [event(f"r{n}", 3, "return", f"w{n}", to="lead") for n in range(workers)]
        edges = " ".join(f"d>s{n} s{n}>a{n}:spawn a{n}>r{n}" for n in range(workers))
        lines.append(json.dumps({**raw(events, edges), "trace_id": name, "rewards": {"team": reward}}))
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_two_designs_are_compared_over_runs(tmp_path: Path) -> None:
    given_runs = runs(tmp_path)
    compared = run_corpus("trace", "reward", given_runs, "--spec", "magrpo", "--spec", "kimi-k2-5")
    content = json.loads(
        run_corpus("trace", "reward", given_runs, "--spec", "magrpo", "--spec", "kimi-k2-5", "--format", "json").stdout
    )

    assert compared.stdout == (
        "Ranked differently by magrpo and kimi-k2-5\n"
        "trace  task  magrpo  rank  kimi-k2-5  its rank  moved up\n"
        "one    k          1     1          2         3        -2\n"
        "two    k        0.5     2        2.5         1         1\n"
        "three  k       0.25     3       2.25         2         1\n"
        "3 runs compared; 0 left out: at least one design has no value.\n"
        "Pairs of runs of one task: 3; in opposite orders 2; tied by either 0.\n"
        "Kendall's tau-b -0.333; Pearson's correlation of the rewards -0.655.\n"
        "\n"
        "What each pays for, on average\n"
        "design     term        runs      mean\n"
        "magrpo     reward         3  0.583333\n"
        "magrpo     joint          3  0.583333\n"
        "kimi-k2-5  reward         3      2.25\n"
        "kimi-k2-5  r_perf         3  0.583333\n"
        "kimi-k2-5  r_parallel     3  0.666667\n"
        "kimi-k2-5  r_finish       3         1\n"
    )
    without = run_corpus("trace", "reward", str(ROOT / "data" / "traces"), "--spec", "magrpo", "--spec", "spiral2026")
    assert (
        "0 runs compared; 9 left out: at least one design has no value. Show one of them alone to see what to add; "
        "outcomes are given with --outcomes.\n"
    ) in without.stdout
    assert content["schema"] == "orchtrace-corpus/trace-rewards-compared"
    assert (content["pairs"], content["discordant"]) == (3, 2)
    assert content["runs"][0] == {"trace_id": "one", "first": [1.0, 1.0], "second": [2.0, 3.0], "moved": -2.0}


def test_several_runs_are_a_row_each(tmp_path: Path) -> None:
    rows = run_corpus("trace", "reward", runs(tmp_path), "--spec", "kimi-k2-5", "--format", "csv")
    several = run_corpus("trace", "reward", runs(tmp_path), "--family", "R1")
    data = json.loads(run_corpus("trace", "reward", runs(tmp_path), "--spec", "magrpo", "--format", "json").stdout)

    assert rows.stdout == "trace,reward,r_perf,r_parallel,r_finish\none,2,1,0,1\ntwo,2.5,0.5,1,1\nthree,2.25,0.25,1,1\n"
    assert several.stdout == (
        "trace  outcome.team\none               1\ntwo             0.5\nthree          0.25\n"
        "2 functions without a value for any of these runs.\n"
        "Empty: the trace does not say. Show one of them alone to see what to add; outcomes are given with --outcomes.\n"
    )
    assert [one["rewards"][0]["reward"] for one in data["traces"]] == [1.0, 0.5, 0.25]
    assert data["traces"][0]["rewards"][0]["terms"][0]["by_agent"] == {"": 1.0}


def test_outcomes_of_agents_and_events_come_from_a_file(tmp_path: Path) -> None:
    path = documented_outcomes(tmp_path)
    told = run_corpus("trace", "reward", SWARM, "--family", "R2", "--outcomes", path, "--format", "csv")
    strange = tmp_path / "o.csv"
    strange.write_text("run,agent.w9\nswarm,1\n", encoding="utf-8")
    refused = run_corpus("trace", "reward", SWARM, "--outcomes", str(strange))

    assert "R2,agent_outcomes,0.6,reward,\n" in told.stdout
    assert told.code == 1  # the file has runs that were not read
    assert "none of the runs read is called 'debate'" in told.stderr
    assert (refused.code, refused.stdout) == (3, "")
    assert f"{strange}:2: the run has no agent 'w9'\n" in refused.stderr


def test_a_spec_and_a_family_contradict_each_other_and_two_specs_need_two_names() -> None:
    both = run_corpus("trace", "reward", SWARM, "--family", "R1", "--spec", "magrpo")
    twice = run_corpus("trace", "reward", SWARM, "--spec", "magrpo", "--spec", "magrpo")

    assert (both.code, twice.code) == (2, 2)
    assert "--family and --spec contradict each other" in both.stderr
    assert "two specifications have one name" in twice.stderr


def test_the_whole_check_reads_the_specifications(tmp_path: Path) -> None:
    root = shutil.copytree(TOY, tmp_path / "toy")
    folder = root / "data" / "rewards"
    folder.mkdir()
    shutil.copy(published()["magrpo"], folder)
    sound = run_corpus("--root", str(root), "check")
    (folder / "mine.yaml").write_text("terms:\n  - {function: nothing}\n", encoding="utf-8")
    broken = run_corpus("--root", str(root), "check")

    assert "rewards   ok     1 specification\n" in sound.stdout
    assert broken.code == 3
    assert re.search(
        r"rewards +failed +the specification has mistakes: .*mine\.yaml:2:16: unknown function", broken.stdout
    )


def test_designs_by_their_terms_are_not_cut_and_told_from_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchtrace_corpus.base.commands.output.Output.width", property(lambda _: 80))

    shown = run_corpus("terms", "reward_family").stdout

    assert (
        shown.partition("Published designs by their terms\n")[2]
        == """\
code designs
R1   agent-qmix2026, context-folding, kimi-k2-5, m-grpo, magrpo, matpo,
     puppeteer, wideseek-r1-2026
R2   context-folding, m-grpo
R3
R4   marsrl
R5   context-folding, matpo, wideseek-r1-2026
R6   spiral2026
R7   agent-qmix2026, context-folding, kimi-k2-5, puppeteer, wideseek-r1-2026
R8   agent-qmix2026, context-folding, kimi-k2-5, m-grpo, matpo, puppeteer,
     wideseek-r1-2026
A design stands at each family that a term of it has; its paper is tagged with
one, as counted above.
Compute them with corpus trace reward RUN --family CODE, or --spec DESIGN; see
docs/rewards.md.
"""
    )


def test_records_and_terms_name_what_computes_a_reward() -> None:
    shown = run_corpus("show", "kimi-k2-5")
    terms = run_corpus("terms", "reward_family")

    assert shown.stdout.endswith("Its reward on a run: corpus trace reward RUN --spec kimi-k2-5\n")
    assert "corpus trace reward" not in run_corpus("show", "halo").stdout
    assert "corpus trace reward" not in run_corpus("show", "kimi-k2-5", "--format", "json").stdout
    assert "R6    outcome, verdicts, agreement, wins\n" in terms.stdout
    assert "On a run" not in run_corpus("terms", "credit_unit").stdout
