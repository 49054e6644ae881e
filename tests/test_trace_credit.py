"""Credit: the axioms of the Shapley value, the definitions of the others, and what the output says it rests on."""

import json
import random
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.errors import CommandUseError
from orchtrace_corpus.trace.credit import advantages
from orchtrace_corpus.trace.credit.assign import Choices, Method, assign
from orchtrace_corpus.trace.credit.coalitions import Coalition, Value, by_reach
from orchtrace_corpus.trace.credit.shapley import difference_rewards, exact, sampled, shapley
from orchtrace_corpus.trace.credit.units import parts
from orchtrace_corpus.trace.measures.measure import steps
from orchtrace_corpus.trace.model import CREDIT_UNITS
from tests.conftest import ROOT, run_corpus
from tests.traces import EXAMPLES, documents, event, raw, trace

SWARM = str(ROOT / "data" / "traces" / "swarm.json")


@st.composite
def games(draw: st.DrawFn, most: int = 6) -> tuple[list[str], dict[Coalition, float]]:
    """Players, and a value for every coalition of them."""
    players = [f"p{number}" for number in range(draw(st.integers(1, most)))]
    numbers = st.integers(-20, 20).map(float)
    coalitions = [frozenset(p for bit, p in enumerate(players) if mask >> bit & 1) for mask in range(2 ** len(players))]
    return players, {coalition: draw(numbers) for coalition in coalitions}


def by_definition(players: list[str], value: dict[Coalition, float]) -> dict[str, float]:
    """The mean, over all orders, of what a player adds to those before."""
    added = dict.fromkeys(players, 0.0)
    orders = list(permutations(players))
    for order in orders:
        before: Coalition = frozenset()
        for player in order:
            added[player] += value[before | {player}] - value[before]
            before |= {player}
    return {player: total / len(orders) for player, total in added.items()}


def shared(players: list[str], value: Value) -> dict[str, float]:
    return {player: share.credit for player, share in exact(players, value).items()}


@given(games())
def test_shapley_values_are_their_definition_and_efficient(game: tuple[list[str], dict[Coalition, float]]) -> None:
    players, values = game
    found = shared(players, values.__getitem__)

    assert found == pytest.approx(by_definition(players, values))
    assert sum(found.values()) == pytest.approx(values[frozenset(players)] - values[frozenset()])


@given(games(5))
def test_players_who_add_the_same_get_the_same(game: tuple[list[str], dict[Coalition, float]]) -> None:
    players, values = game
    twins = [*players, "twin-1", "twin-2"]

    def value(coalition: Coalition) -> float:
        return values[frozenset(coalition & set(players))] + 3.0 * len(coalition & {"twin-1", "twin-2"}) ** 2

    found = shared(twins, value)
    assert found["twin-1"] == pytest.approx(found["twin-2"])


@given(games(5))
def test_a_player_who_adds_nothing_gets_nothing(game: tuple[list[str], dict[Coalition, float]]) -> None:
    players, values = game
    found = shared([*players, "dummy"], lambda coalition: values[coalition - {"dummy"}])

    assert found["dummy"] == pytest.approx(0.0)


@given(games(5), st.randoms(use_true_random=False))
def test_shares_of_a_sum_of_games_are_sums_of_shares(
    game: tuple[list[str], dict[Coalition, float]], draw: random.Random
) -> None:
    players, one = game
    other = {coalition: float(draw.randint(-9, 9)) for coalition in one}
    both = shared(players, lambda coalition: one[coalition] + other[coalition])

    parts_of = shared(players, one.__getitem__), shared(players, other.__getitem__)
    assert both == pytest.approx({player: parts_of[0][player] + parts_of[1][player] for player in players})


def test_sampling_is_within_its_stated_error() -> None:
    players = [f"p{number}" for number in range(8)]
    weights = {player: float(number) for number, player in enumerate(players)}

    def value(coalition: Coalition) -> float:
        return sum(weights[player] for player in coalition) ** 1.5

    truth = shared(players, value)
    missed = 0
    for seed in range(10):
        found = sampled(players, value, samples=400, seed=seed)
        assert sum(share.credit for share in found.values()) == pytest.approx(value(frozenset(players)))
        missed += sum(abs(found[p].credit - truth[p]) > 3 * (found[p].standard_error or 0) + 1e-9 for p in players)
    assert missed <= 2  # of 80; three standard errors are missed by one in 370


def test_many_players_are_sampled_and_few_are_not() -> None:
    players = [f"p{number}" for number in range(13)]

    assert shapley(players[:12], lambda coalition: float(len(coalition)))["p0"].standard_error is None
    assert shapley(players, lambda coalition: float(len(coalition)), samples=10)["p0"].standard_error == 0.0


@given(games())
def test_difference_rewards_are_their_definition(game: tuple[list[str], dict[Coalition, float]]) -> None:
    players, values = game
    everybody = frozenset(players)

    assert {player: share.credit for player, share in difference_rewards(players, values.__getitem__).items()} == {
        player: values[everybody] - values[everybody - {player}] for player in players
    }


@given(documents(), st.sampled_from(["agent", "turn"]))
def test_the_proxy_grows_with_the_team_from_nothing_to_the_outcome(document: dict[str, Any], unit: str) -> None:
    run = trace({**document, "rewards": {"team": 1.0}})
    if unit == "turn" and not steps(run):
        with pytest.raises(CommandUseError, match="no turn that credit could go to"):
            parts(run, unit)
        return
    players = parts(run, unit)
    value = by_reach(run, players, 1.0)
    names = list(players)[:6]
    everybody = frozenset(players)

    assert value(frozenset()) == 0.0
    assert value(everybody) in (0.0, 1.0)  # 0 where no player had a part in the result
    grown: Coalition = frozenset()
    before = 0.0
    for name in names:
        grown |= {name}
        assert value(grown) >= before
        before = value(grown)


def test_group_relative_advantages() -> None:
    assert advantages.group_relative({"a": 1.0, "b": 3.0}) == {"a": -1.0, "b": 1.0}
    assert advantages.group_relative({"a": 2.0, "b": 2.0}) == {"a": 0.0, "b": 0.0}


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=8))
def test_generalised_advantages_at_the_ends_of_lambda(rows: list[tuple[int, int]]) -> None:
    rewards, values = [float(r) for r, _ in rows], [float(v) for _, v in rows]
    following = [*values[1:], 0.0]

    assert advantages.generalised(rewards, values, gamma=0.5, lam=0.0) == pytest.approx(
        [r + 0.5 * after - v for r, v, after in zip(rewards, values, following, strict=True)]
    )
    returns = [sum(0.5**n * r for n, r in enumerate(rewards[start:])) for start in range(len(rewards))]
    assert advantages.generalised(rewards, values, gamma=0.5, lam=1.0) == pytest.approx(
        [total - v for total, v in zip(returns, values, strict=True)]
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("unit", CREDIT_UNITS)
def test_every_unit_of_every_example_has_parts_or_says_that_it_has_none(path: Path, unit: str) -> None:
    result = run_corpus("trace", "credit", str(path), "--unit", unit, "--method", "difference", "--channel", "team")

    assert result.code in (0, 2)
    assert result.stderr if result.code else result.stdout


def test_the_output_says_what_it_rests_on_and_that_the_sum_is_right(tmp_path: Path) -> None:
    run = raw([event("a", 0, "inference", "x", t_end=1), event("b", 1, "aggregate", "y", t_end=2)], "a>b",
              rewards={"team": 1.0})  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps(run), encoding="utf-8")
    values = [([], 0), (["x"], 0.2), (["y"], 0.4), (["x", "y"], 1)]
    (tmp_path / "v.json").write_text(
        json.dumps({"values": [{"members": members, "value": value} for members, value in values]}), encoding="utf-8"
    )
    supplied = run_corpus("trace", "credit", str(tmp_path / "t.json"), "--values", str(tmp_path / "v.json"))

    assert supplied.stdout == (
        "t\n"
        "agent  credit\n"
        "y         0.6\n"
        "x         0.4\n"
        f"Basis: values of coalitions from '{tmp_path / 'v.json'}'.\n"
        "The credits' sum 1 equals what the whole team adds to nobody, 1.\n"
    )
    proxy = run_corpus("trace", "credit", str(tmp_path / "t.json"), "--format", "json")
    (found,) = json.loads(proxy.stdout)["traces"]
    assert found["basis"].startswith("proxy `reach`")
    assert (found["sum"], found["total"]) == (1.0, 1.0)
    # y's aggregate needs x's inference: x alone does half, y alone nothing.
    assert {one["part"]: one["credit"] for one in found["credits"]} == {"x": 0.75, "y": 0.25}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--unit", "agnt"], "there is no credit unit 'agnt' (did you mean 'agent'?"),
        (["--unit", "tool"], "the trace has no tool that credit could go to"),
        (["--unit", "team"], "shapley gives no credit to the unit 'team'"),
        (["--channel", "teem"], "the trace 'swarm' has no reward 'teem' (did you mean 'team'? allowed: team, orch"),
        (["--method", "group"], "a group is several runs of one task, and there is only one"),
        (["--method", "gae", "--unit", "turn"], "gae needs the estimated value of each step, which no log holds"),
    ],
)
def test_what_cannot_be_assigned_is_refused_with_the_way_out(words: list[str], message: str) -> None:
    result = run_corpus("trace", "credit", SWARM, *words)

    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "does not give values of coalitions"),
        ('{"values": [{"members": ["x"]}]}', "does not give values of coalitions"),
        ('{"values": [{"members": ["x"], "value": NaN}]}', "does not give values of coalitions"),
        ('{"values": [{"members": ["zz"], "value": 1}]}', "names members that the trace does not have: 'zz'"),
        ('{"values": [{"members": ["w1"], "value": 1}]}', "has no value for the coalition of"),
    ],
)
def test_a_file_of_values_that_does_not_do_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text(text, encoding="utf-8")
    result = run_corpus("trace", "credit", SWARM, "--values", str(tmp_path / "v.json"))

    assert result.code in (2, 3)
    assert message in result.stderr


def test_groups_and_steps_from_the_command_line(tmp_path: Path) -> None:
    acts = [event("a", 0, "inference", "x", t_end=1), event("b", 1, "inference", "y", t_end=2, role="judge")]
    for name, reward in (("one", 1.0), ("two", 3.0)):
        run = {**raw(acts, rewards={"team": reward}), "trace_id": name}
        (tmp_path / f"{name}.json").write_text(json.dumps(run), encoding="utf-8")
    (tmp_path / "v.txt").write_text('{"steps": [{"id": "a", "value": 1}, {"id": "b", "value": 2}]}', encoding="utf-8")

    group = assign([trace(json.loads(p.read_text(encoding="utf-8")))
                    for p in sorted(tmp_path.glob("*.json"))], "team", Method.GROUP, Choices())  # fmt: skip
    assert [(one.trace_id, one.sum) for one in group] == [("one", -1.0), ("two", 1.0)]
    mean = run_corpus(
        "trace", "credit", str(tmp_path / "two.json"), "--method", "mean", "--unit", "role", "--values",
        str(tmp_path / "v.txt"), "--format", "csv", "--lambda", "0",
    )  # fmt: skip
    assert mean.stdout == "role,credit\njudge,1\n"


def test_difference_rewards_ask_only_for_runs_without_one(tmp_path: Path) -> None:
    everybody = ["lead", "w1", "w2", "w3", "w4"]
    runs = [(everybody, 0.8), *(([one for one in everybody if one != left], 0.8 if left == "w3" else 0.5)
                                for left in everybody)]  # fmt: skip
    rows = [{"members": members, "value": value} for members, value in runs]
    (tmp_path / "v.json").write_text(json.dumps({"values": rows}), encoding="utf-8")
    values = ["--values", str(tmp_path / "v.json"), "--format", "csv"]

    assert run_corpus("trace", "credit", SWARM, "--method", "difference", *values).stdout.endswith("\nw3,0\n")
    result = run_corpus("trace", "credit", SWARM, *values)
    assert (result.code, result.stdout) == (2, "")
    assert "has no value for the coalition of" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "does not give values of steps"),
        ('{"steps": [{"id": "a", "value": true}]}', "does not give values of steps"),
        ('{"steps": [{"id": "a", "value": 1e999}]}', "does not give values of steps"),
        ('{"steps": [{"id": "a", "value": 1' + "0" * 5000 + "}]}", "does not give values of steps"),
        ('{"steps": [{"id": 1, "value": 1}]}', "does not give values of steps"),
        ('{"steps": ' + "[" * 100_000 + "}", "does not give values of steps"),
        ('{"steps": [{"id": "a", "value": 1}, {"id": "a", "value": 2}]}', "gives two values for 'the step a'"),
        ('{"steps": [{"id": "a", "value": 1}]}', "has no value for 4 of 4 steps: 'plan', 'think', 'report', 'answer'"),
    ],
)
def test_a_file_of_steps_that_does_not_do_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text(text, encoding="utf-8")
    path = str(ROOT / "data" / "traces" / "centralized.json")
    result = run_corpus("trace", "credit", path, "--method", "gae", "--unit", "turn", "--values", f"{tmp_path}/v.json")

    assert (result.code, result.stdout) == (3, "")
    assert message in result.stderr


def test_two_values_of_one_coalition_are_refused(tmp_path: Path) -> None:
    rows = [{"members": ["w1", "w2"], "value": 1}, {"members": ["w2", "w1"], "value": 2}]
    (tmp_path / "v.json").write_text(json.dumps({"values": rows}), encoding="utf-8")
    result = run_corpus("trace", "credit", SWARM, "--values", str(tmp_path / "v.json"))

    assert result.code == 3
    assert "gives two values for 'the coalition of w1, w2'" in result.stderr


def test_a_trace_without_steps_has_no_steps_to_credit(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(raw([event("a", 0, "spawn", "x", to="y")])), encoding="utf-8")
    (tmp_path / "v.json").write_text('{"steps": []}', encoding="utf-8")
    result = run_corpus("trace", "credit", str(tmp_path / "t.json"), "--method", "mean", "--values",
                        str(tmp_path / "v.json"))  # fmt: skip

    assert result.code == 2
    assert "has no step that credit could go to" in result.stderr
