"""Credit: the axioms of the Shapley value, the definitions of the others, and what the output says it rests on."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.text.table import envelope
from orchtrace_corpus.trace.api import as_data
from orchtrace_corpus.trace.credit import methods
from orchtrace_corpus.trace.credit import reach as proxy
from orchtrace_corpus.trace.credit.assign import Assignment, Choices, Method, assign, find_parts, parts
from orchtrace_corpus.trace.credit.evidence import AGENTS, RUNS_PER_FAULT, STEPS, Basis, find_evidence
from orchtrace_corpus.trace.credit.methods import (
    Coalition,
    Share,
    Value,
    difference_rewards,
    exact_shapley,
    sampled_shapley,
    shapley,
)
from orchtrace_corpus.trace.credit.reach import Reach
from orchtrace_corpus.trace.model.terms import CREDIT_UNITS, EventType
from orchtrace_corpus.trace.render.tables import exact_credit
from orchtrace_corpus.trace.view import TraceView
from tests.conftest import ROOT, run_corpus
from tests.effort import assert_grows
from tests.trace.conversationlogs import Claude, text, trace_of, use
from tests.trace.traces import EXAMPLES, documents, event, raw, trace

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
    return {player: share.credit for player, share in exact_shapley(players, value).items()}


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


def of_a_session(tmp_path: Path) -> TraceView:
    """A real session in which a person asks twice and the model answers, with a reward."""
    log = Claude()
    log.say(0, "Go.")
    log.answer(5, "m1", text("A"))
    log.say(60, "Go on.")
    log.answer(65, "m2", text("B"), use("c1", "Read"))
    log.result(66, "c1", "done")
    log.answer(70, "m3", text("C"))
    log.write(tmp_path)
    return TraceView(trace({**trace_of(tmp_path), "rewards": {"team": 1.0}}))


def test_people_have_no_credit_unless_it_is_asked_for(tmp_path: Path) -> None:
    view = of_a_session(tmp_path)

    for method in (Method.SHAPLEY, Method.DIFFERENCE):
        (found,) = assign([view], "agent", method, Choices())
        assert found.credits == {"main": Share(1.0)}
        assert found.total in (None, 1.0)
    (asked,) = assign([view], "agent", Method.SHAPLEY, Choices(with_people=True))
    assert list(asked.credits) == ["user", "main"]
    assert asked.credits["user"].credit > 0.5
    assert list(parts(view, "team")["team"]) == list(range(len(view.trace.events)))


def test_values_of_coalitions_need_none_with_people(tmp_path: Path) -> None:
    values = json.dumps({"values": [{"members": [], "value": 0}, {"members": ["main"], "value": 1}]})
    view = of_a_session(tmp_path)

    (found,) = assign([view], "agent", Method.SHAPLEY, Choices(values=values, values_path="runs.json"))
    assert found.credits == {"main": Share(1.0)}
    with pytest.raises(CommandUseError, match="2 of 4 coalitions"):
        assign([view], "agent", Method.SHAPLEY, Choices(values=values, values_path="runs.json", with_people=True))


def test_the_command_gives_people_credit_where_it_is_told_to(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**as_data(of_a_session(tmp_path / "log").trace)}))

    plain, asked = (run_corpus("trace", "credit", str(path), *more) for more in ((), ("--with-people",)))
    assert "user" not in plain.stdout
    assert "user" in asked.stdout


def test_sampling_is_within_its_stated_error() -> None:
    players = [f"p{number}" for number in range(8)]
    weights = {player: float(number) for number, player in enumerate(players)}

    def value(coalition: Coalition) -> float:
        return sum(weights[player] for player in coalition) ** 1.5

    truth = shared(players, value)
    missed = 0
    for seed in range(10):
        found = sampled_shapley(players, value, samples=400, seed=seed)
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


def achieved(run: TraceView, players: dict[str, list[int]], outcome: float) -> Value:
    """What a coalition achieves by the proxy: the share of the result's making that it can do by itself."""
    events, of = run.trace.events, run.graph
    incoming: list[list[int]] = [[] for _ in events]
    for source, target in zip(of.sources, of.targets, strict=True):
        incoming[target].append(source)
    last = {events[number].type: number for number in run.sequence}
    making = {last.get(EventType.AGGREGATE, last.get(EventType.RETURN, run.sequence[-1]))}
    for number in reversed(run.sequence):
        making.update(incoming[number] if number in making else ())
    owner = {number: name for name, numbers in players.items() for number in numbers}
    owned = len(making & owner.keys())

    def value(coalition: Coalition) -> float:
        done: set[int] = set()
        for number in run.sequence:
            if number in making and done.issuperset(incoming[number]) and owner.get(number) in (None, *coalition):
                done.add(number)
        return outcome * (len(done & owner.keys()) / owned) if owned else 0.0

    return value


@given(documents(), st.sampled_from(["agent", "turn"]))
def test_the_proxy_grows_with_the_team_from_nothing_to_the_outcome(document: dict[str, Any], unit: str) -> None:
    run = TraceView(trace({**document, "rewards": {"team": 1.0}}))
    if not find_parts(run, unit):  # where only people act
        with pytest.raises(CommandUseError, match=f"no {unit} that credit could go to"):
            parts(run, unit)
        return
    players = parts(run, unit)
    value, whole = achieved(run, players, 1.0), Reach(run, players, 1.0).whole
    names = list(players)[:6]
    everybody = frozenset(players)

    assert value(frozenset()) == 0.0
    assert value(everybody) == whole
    assert whole in (0.0, 1.0)  # 0 where no player had a part in the result
    grown: Coalition = frozenset()
    before = 0.0
    for name in names:
        grown |= {name}
        assert value(grown) >= before
        before = value(grown)


@given(documents(), st.sampled_from(["agent", "turn", "message", "tool"]))
def test_the_proxys_shares_in_closed_form_are_those_by_definition(document: dict[str, Any], unit: str) -> None:
    run = TraceView(trace({**document, "rewards": {"team": 1.0}}))
    players = dict(list(find_parts(run, unit).items())[:9])
    value, game = achieved(run, players, -2.5), Reach(run, players, -2.5)
    found = game.shapley()

    assert found == {
        name: Share(pytest.approx(share.credit)) for name, share in exact_shapley(list(players), value).items()
    }
    assert sum(share.credit for share in found.values()) == pytest.approx(game.whole)
    assert game.difference_rewards() == {
        name: Share(pytest.approx(share.credit)) for name, share in difference_rewards(list(players), value).items()
    }


@given(documents(), st.sampled_from(["agent", "turn"]))
def test_the_proxy_keeps_the_axioms_for_any_number_of_players(document: dict[str, Any], unit: str) -> None:
    """Dummy, symmetry, additivity on the graph itself; efficiency is in the definition."""
    run = TraceView(trace({**document, "rewards": {"team": 1.0}}))
    players = find_parts(run, unit)
    found = {name: share.credit for name, share in Reach(run, players, 1.0).shapley().items()}

    with_dummy = Reach(run, {**players, "dummy": []}, 1.0).shapley()
    assert with_dummy == {**{name: Share(credit) for name, credit in found.items()}, "dummy": Share(0.0)}
    other_way = Reach(run, dict(reversed(players.items())), 1.0).shapley()
    assert {name: share.credit for name, share in other_way.items()} == pytest.approx(found)
    parts_of = Reach(run, players, 0.3).shapley(), Reach(run, players, 0.7).shapley()
    assert {name: parts_of[0][name].credit + parts_of[1][name].credit for name in players} == pytest.approx(found)


def large(agents: int, turns: int) -> dict[str, Any]:
    """A lead that spawns many workers, each with a chain of turns, and merges what they return."""
    events, edges = [event("plan", 0, "orchestrator_decision", "lead")], []
    for agent in range(agents):
        name, before = f"w{agent}", f"s{agent}"
        events.append(event(before, 0, "spawn", "lead", to=name))
        edges.append(f"plan>{before}")
        for turn in range(turns):
            events.append(event(f"{name}.{turn}", turn + 1, "inference", name))
            edges.append(f"{before}>{name}.{turn}")
            before = f"{name}.{turn}"
        edges.append(f"{before}>join")
    events.append(event("join", turns + 1, "aggregate", "lead"))
    return raw(events, " ".join(edges), rewards={"team": 1.0})


def without_evidence(shown: str) -> str:
    """The output without its last table, of how often methods found planted faults."""
    before, title, _ = shown.partition("\nFinds faults? How often ")
    assert title
    return before


def test_the_evidence_is_that_of_the_document() -> None:
    page = (ROOT / "docs" / "credit.md").read_text(encoding="utf-8")
    columns = {"chance": "chance", "most": "credit, the most", "least": "credit, the least",
               "judge": "reward, with a judge", "reruns": "credit, from reruns"}  # fmt: skip
    for found, column in ((AGENTS, 1), (STEPS, 3)):
        for one in found:
            table = page.partition(f"**{one.fault.capitalize()}, {RUNS_PER_FAULT} runs**")[2].partition("**")[0]
            rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if "|" in line]
            shares = {row[0]: row[column].partition(" ")[0] for row in rows}
            for field, name in columns.items():
                share = getattr(one, field)
                assert ("" if share is None else f"{share:.1%}") == shares[name]


def test_the_screen_says_how_often_the_method_found_faults_and_what_finds_more() -> None:
    shown = run_corpus("trace", "credit", SWARM).stdout
    by_difference = run_corpus("trace", "credit", SWARM, "--method", "difference").stdout

    assert shown.partition("\n\n")[2] == (
        "Finds faults? How often the agent at fault came first in 300 made runs\n"
        "by                    wrong answer  duplicated subtask  late stop\n"
        "chance                       17.7%               13.4%      14.9%\n"
        "least credit *               26.5%                0.0%       0.0%\n"
        "most credit *                 0.0%               49.0%      52.0%\n"
        "reward, with a judge         57.0%               35.5%      57.6%\n"
        "difference, 4 reruns         82.5%               82.8%      91.0%\n"
        "* the method used here.\n"
        "A judge rates each agent, rightly 8 times of 10: --outcomes, then corpus trace reward.\n"
        "Reruns replace each agent, simulated: --method difference --values.\n"
        "docs/credit.md says how this was measured.\n"
    )
    assert "*" not in by_difference.partition("\n\n")[2]
    assert "Difference without --values was not measured; credit here is by shapley.\n" in by_difference


@pytest.mark.parametrize(
    ("unit", "method", "has_values", "basis", "faults"),
    [
        ("agent", Method.SHAPLEY, False, Basis.PROXY, 3),
        ("agent", Method.DIFFERENCE, True, Basis.RERUNS, 3),
        ("agent", Method.SHAPLEY, True, Basis.NOT_MEASURED, 3),
        ("turn", Method.SHAPLEY, False, Basis.PROXY, 3),
        ("turn", Method.DIFFERENCE, True, Basis.NOT_MEASURED, 3),
        ("tool", Method.SHAPLEY, False, Basis.NOT_MEASURED, 0),
        ("agent", Method.GROUP, False, Basis.ADVANTAGE, 0),
    ],
)
def test_only_what_was_measured_is_said_to_be(
    unit: str,
    method: Method,
    has_values: bool,
    basis: Basis,
    faults: int,
) -> None:
    known = find_evidence(unit, method, has_values=has_values)

    assert (known.basis, len(known.rates)) == (basis, faults)


def test_programs_are_given_the_evidence() -> None:
    found = json.loads(run_corpus("trace", "credit", SWARM, "--unit", "turn", "--format", "json").stdout)

    assert found["version"] == 1
    assert found["finds_faults"]["basis"] == "proxy"
    assert found["finds_faults"]["runs_of_a_fault"] == 100
    assert found["finds_faults"]["faults"][2] == {
        "fault": "late stop", "chance": 0.035, "most": 0.0, "least": 0.058, "judge": 0.124, "reruns": None,
    }  # fmt: skip


def test_credit_of_a_hundred_agents_and_ten_thousand_events_has_no_error(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(large(100, 98)), encoding="utf-8")
    result = run_corpus("trace", "credit", str(tmp_path / "t.json"))
    lines = without_evidence(result.stdout).splitlines()

    # Of 9902 events the lead owns plan, spawns and join; a worker's events need it and the lead, the join everybody.
    lead = (101 + 100 * 98 / 2 + 1 / 101) / 9902
    assert lines[:4] == ["t", "agent     credit", f"lead     {lead:.6g}", "w0     0.0049495"]
    assert len(lines) == 2 + 101 + 3
    assert lines[-2:] == [
        "Exact for 101 players: nothing was sampled, so there is no error.",
        "Sum of credits 1 = value of the whole team 1 - value of nobody 0.",
    ]


def test_credit_takes_time_that_grows_with_events_and_agents() -> None:
    def prepare(agents: int) -> Callable[[], object]:
        run = trace(large(agents, 40))
        return lambda: assign([run], "agent", Method.SHAPLEY, Choices())

    assert_grows(prepare, 12, 96, 40)  # it was cubic in the agents: 512 times


def test_thousands_of_turns_are_divided_among(tmp_path: Path) -> None:
    run = trace(large(20, 150))
    (found,) = assign([run], "turn", Method.SHAPLEY, Choices())

    assert (len(found.credits), found.samples, found.is_efficient) == (3002, None, True)
    assert found.credits["w0.149"].credit == pytest.approx((1 / 151 + 1 / 3002) / 3002)


def test_a_graph_too_entangled_for_the_proxy_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trace(large(10, 5))
    for name in ("MAX_ADDED", "MAX_BYTES"):
        with monkeypatch.context() as changed:
            changed.setattr(proxy, name, 20)
            with pytest.raises(CommandUseError) as caught:
                assign([run], "turn", Method.SHAPLEY, Choices())
        assert str(caught.value) == (
            "too many parts of the trace depend on too many others for the proxy `reach`\n"
            "Divide among fewer and larger parts: --unit agent, or --unit role."
        )


def test_sampled_shares_say_how_many_orders_and_how_exact(tmp_path: Path) -> None:
    players = [f"p{number:02}" for number in range(13)]
    run = raw([event(name, place, "inference", name) for place, name in enumerate(players)], rewards={"team": 2.0})
    (tmp_path / "t.json").write_text(json.dumps(run), encoding="utf-8")
    rows = [
        {"members": [p for bit, p in enumerate(players) if mask >> bit & 1], "value": float(mask & 3 == 3)}
        for mask in range(2**13)
    ]
    (tmp_path / "v.json").write_text(json.dumps({"values": rows}), encoding="utf-8")
    words = ["trace", "credit", str(tmp_path / "t.json"), "--values", str(tmp_path / "v.json"), "--samples", "101"]
    result = run_corpus(*words)

    assert result.stdout.splitlines()[:5] == [
        "t",
        "agent  credit  standard error",
        "p00       0.5               0",
        "p01       0.5               0",
        "p02         0               0",
    ]
    assert without_evidence(result.stdout).splitlines()[-3:] == [
        f"Basis: values of coalitions from '{tmp_path / 'v.json'}'.",
        "Estimated from 100 orders drawn with seed 0; the largest standard error is 0.",
        "Sum of credits 1 = value of the whole team 1 - value of nobody 0.",
    ]
    assert result.stderr.endswith(
        f"corpus: t: '{tmp_path / 'v.json'}' gives the whole team 1, but its reward 'team' in this run is 2; "
        "the credits rest on 1\n"
    )
    (found,) = json.loads(run_corpus(*words, "--format", "json").stdout)["traces"]
    assert {name: found[name] for name in ("sum", "total", "whole", "nobody", "is_exact", "samples")} == {
        "sum": 1.0, "total": 1.0, "whole": 1.0, "nobody": 0.0, "is_exact": False, "samples": 100,
    }  # fmt: skip
    assert len(found["warnings"]) == 1


def test_nobody_has_credit_where_nothing_that_led_to_the_result_is_anybodys(tmp_path: Path) -> None:
    run = raw([event("a", 0, "message", "x", to="y"), event("b", 1, "inference", "y")], rewards={"team": 1.0})
    (tmp_path / "t.json").write_text(json.dumps(run), encoding="utf-8")
    result = run_corpus("trace", "credit", str(tmp_path / "t.json"), "--unit", "message")

    assert result.stdout.splitlines()[2] == "a             0"
    assert result.stdout.splitlines()[-2:] == [
        "Sum of credits 0 = value of the whole team 0 - value of nobody 0.",
        "Finds faults? Not measured for the unit message: see docs/credit.md.",
    ]
    assert result.stderr.endswith(
        "corpus: t: nothing that led to the result belongs to any message, so nobody has credit\n"
    )


def test_group_relative_advantages() -> None:
    assert methods.group_relative_advantages({"a": 1.0, "b": 3.0}) == {"a": -1.0, "b": 1.0}
    assert methods.group_relative_advantages({"a": 2.0, "b": 2.0}) == {"a": 0.0, "b": 0.0}


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=8))
def test_generalised_advantages_at_the_ends_of_lambda(rows: list[tuple[int, int]]) -> None:
    rewards, values = [float(r) for r, _ in rows], [float(v) for _, v in rows]
    following = [*values[1:], 0.0]

    assert methods.generalised_advantages(rewards, values, gamma=0.5, lam=0.0) == pytest.approx(
        [r + 0.5 * after - v for r, v, after in zip(rewards, values, following, strict=True)]
    )
    returns = [sum(0.5**n * r for n, r in enumerate(rewards[start:])) for start in range(len(rewards))]
    assert methods.generalised_advantages(rewards, values, gamma=0.5, lam=1.0) == pytest.approx(
        [total - v for total, v in zip(returns, values, strict=True)]
    )


@pytest.mark.parametrize("unit", CREDIT_UNITS)
def test_every_unit_of_every_example_has_parts_or_says_that_it_has_none(unit: str) -> None:
    for path in EXAMPLES:
        result = run_corpus("trace", "credit", str(path), "--unit", unit, "--method", "difference", "--channel", "team")
        assert result.code in (0, 2), path
        assert result.stderr if result.code else result.stdout, path


def test_the_output_says_what_it_rests_on_and_that_the_sum_is_right(tmp_path: Path) -> None:
    run = raw([event("a", 0, "inference", "x", t_end=1), event("b", 1, "aggregate", "y", t_end=2)], "a>b",
              rewards={"team": 1.0})  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps(run), encoding="utf-8")
    values = [([], 0), (["x"], 0.2), (["y"], 0.4), (["x", "y"], 1)]
    (tmp_path / "v.json").write_text(
        json.dumps({"values": [{"members": members, "value": value} for members, value in values]}), encoding="utf-8"
    )
    supplied = run_corpus("trace", "credit", str(tmp_path / "t.json"), "--values", str(tmp_path / "v.json"))

    assert without_evidence(supplied.stdout) == (
        "t\n"
        "agent  credit\n"
        "y         0.6\n"
        "x         0.4\n"
        f"Basis: values of coalitions from '{tmp_path / 'v.json'}'.\n"
        "Exact: all 4 coalitions were valued.\n"
        "Sum of credits 1 = value of the whole team 1 - value of nobody 0.\n"
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
        (["--unit", "tool"], "the trace 'swarm' has no tool that credit could go to"),
        (["--unit", "team"], "shapley gives no credit to the unit 'team'"),
        (["--channel", "teem"], "the trace 'swarm' has no reward 'teem' (did you mean 'team'? allowed: team, orch"),
        (["--method", "group"], "a group is several runs of one task, and this is one run"),
        (["--method", "gae", "--unit", "turn"], "gae needs the estimated value of each step, which no log holds"),
    ],
)
def test_what_cannot_be_assigned_is_refused_with_the_way_out(words: list[str], message: str) -> None:
    result = run_corpus("trace", "credit", SWARM, *words)

    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr


FORM = (
    'Write: {"values": [{"members": [], "value": 0}, {"members": ["a", "b"], "value": 0.7}, ...]}, '
    "with a run of each coalition that is asked for."
)
SWARM_PLAYERS = "Known names: 'lead', 'w1', 'w2', 'w3', 'w4'."


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "1:1: nothing in the file", FORM),
        ("[]", "1:1: a list, where an object with 'values' is wanted", FORM),
        ("{}", "1:1: there is no 'values' in an empty object", FORM),
        ('{"coalitions": []}', "1:1: there is no 'values', only 'coalitions'", FORM),
        ('{"values": {"x": 1}}', "1:12: 'values' is an object, and a list is wanted", FORM),
        ('{"values":\n [3]}', "2:3: an item is a number, and an object is wanted", FORM),
        ('{"values":\n [{"value": 3}]}', "2:3: there is no 'members', only 'value'", FORM),
        ('{"values": [{"members": "x", "value": 1}]}', "1:25: 'members' is text, and a list is wanted", FORM),
        ('{"values": [{"members": [1], "value": 1}]}', "1:26: an item is a number, and text is wanted", FORM),
        ('{"values": [{"members": ["x"]}]}', "1:13: there is no 'value', only 'members'", FORM),
        ('{"values": [{"members": [], "value": null}]}', "1:38: 'value' is null, and a number is wanted", FORM),
        ('{"values": [{"members": [], "value": "1"}]}', "1:38: 'value' is text, and a number is wanted", FORM),
        ('{"values": [{"members": [],\n "value": NaN}]}', "2:11: NaN is not a finite number", FORM),
        ('{"values": [{"members": ["NaN"], "value": -Infinity}]}', "1:43: -Infinity is not a finite number", FORM),
        ('{"values": [{"members": [], "value": 1e999}]}', "1:38: 'value' is beyond 1e+100", FORM),
        ('{"values": [{"members": [], "val', "1:33: not JSON: the text ends in the middle of a string, which begins at 1:29", FORM),
        ('{"values": [{"members": []', "1:27: not JSON: the text ends in the middle of an object, which begins at 1:13", FORM),
        ('{"values": [{"members": [],}]}', "1:27: not JSON: a comma with nothing behind it; remove it", FORM),
        ('{"values": ' + "[" * 100_000, "1:1: nested too deeply", FORM),
        ('{"values": [{"members": ["\\ud800"], "value": 1}]}', "1:27: not JSON: half of a surrogate pair", FORM),
        ('{"values": [{"members": ["w1", "w1"], "value": 1}]}', "1:32: 'w1' is named twice in one coalition", FORM),
        ('{"values": [{"members": ["w1", "w2"], "value": 1},\n {"members": ["w2", "w1"], "value": 2}]}',
         "2:2: a second value of the coalition of w2, w1", "Keep one of them."),
        ('{"values": [{"members": ["lead",\n "zz"], "value": 1}, {"members": ["yy"], "value": 1}]}',
         "2:2: the unit asked for is agent, and the trace has no agent 'zz', 'yy'", SWARM_PLAYERS),
        ('{"values": [{"members": ["worker"], "value": 1}]}',
         "1:26: the unit asked for is agent, and the trace has no agent 'worker'",
         "These are names of the unit role: use --unit role."),
    ],
)  # fmt: skip
def test_a_file_of_values_that_does_not_do_is_refused_at_its_place(
    text: str, message: str, hint: str, tmp_path: Path
) -> None:
    (tmp_path / "v.json").write_text(text, encoding="utf-8")
    result = run_corpus("trace", "credit", SWARM, "--values", str(tmp_path / "v.json"))
    said, _, advice = result.stderr.partition("\n")

    assert (result.code, result.stdout) == (3, "")
    assert said.startswith(f"corpus: {tmp_path / 'v.json'}:{message}")
    assert advice == f"{hint}\n"


def test_all_coalitions_that_a_file_lacks_are_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text('{"values": [{"members": ["w1"], "value": 1}]}', encoding="utf-8")
    words = ["trace", "credit", SWARM, "--values", str(tmp_path / "v.json")]
    hint = (
        "Add a run with exactly these members for each (of nobody: mostly 0), or leave out --values to use the proxy."
    )
    result = run_corpus(*words)

    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        f"corpus: '{tmp_path / 'v.json'}' has no value for 31 of 32 coalitions that are asked for:",
        '  {"members": [], "value": ?}',
        '  {"members": ["lead"], "value": ?}',
        '  {"members": ["w2"], "value": ?}',
        '  {"members": ["w3"], "value": ?}',
        '  {"members": ["w4"], "value": ?}',
        "  … and 26 more",
        hint,
    ]
    assert "has no value for 6 of 6 coalitions" in run_corpus(*words, "--method", "difference").stderr


def test_runs_of_several_tasks_are_no_group(tmp_path: Path) -> None:
    for name, task in (("one", "k"), ("two", "other"), ("three", "k")):
        run = raw([event("a", 0, "inference", "x")], rewards={"team": 1.0}, task_id=task, trace_id=name)
        (tmp_path / f"{name}.json").write_text(json.dumps(run), encoding="utf-8")
    files = [str(tmp_path / f"{name}.json") for name in ("one", "two", "three")]
    result = run_corpus("trace", "credit", *files, "--method", "group")

    assert (result.code, result.stdout) == (2, "")
    assert result.stderr == (
        "corpus: a group is several runs of one task, and these are runs of 2 tasks: "
        f"'k' ({files[0]}, {files[2]}), 'other' ({files[1]})\n"
        "Name the files of several runs of the same task.\n"
    )


def test_tokens_have_the_credit_of_their_event(tmp_path: Path) -> None:
    run = raw([event("a", 0, "inference", "x"), event("b", 1, "inference", "y")], rewards={"team": 1.0})
    (tmp_path / "t.json").write_text(json.dumps(run), encoding="utf-8")
    steps_of = '{"steps": [{"id": "a", "value": 0.25}, {"id": "b", "value": 0.5}]}'
    (tmp_path / "s.json").write_text(steps_of, encoding="utf-8")
    words = ["--unit", "token", "--method", "gae", "--lambda", "0", "--values", str(tmp_path / "s.json")]
    result = run_corpus("trace", "credit", str(tmp_path / "t.json"), *words)

    assert result.stdout == (
        "t\n"
        "event  credit\n"
        "b         0.5\n"
        "a        0.25\n"
        "Every token of an event has the credit of the event; a trace has no single tokens.\n"
        f"Basis: values of steps from '{tmp_path / 's.json'}'; the reward 'team' at the last step.\n"
        "Finds faults? Not measured: an advantage says what to train, not who was at fault.\n"
    )


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
    assert mean.stdout == (
        f"trace,role,credit,basis\ntwo,judge,1,values of steps from '{tmp_path / 'v.txt'}'; "
        "the reward 'team' at the last step\n"
    )


def test_difference_rewards_ask_only_for_runs_without_one(tmp_path: Path) -> None:
    everybody = ["lead", "w1", "w2", "w3", "w4"]
    runs = [(everybody, 0.8), *(([one for one in everybody if one != left], 0.8 if left == "w3" else 0.5)
                                for left in everybody)]  # fmt: skip
    rows = [{"members": members, "value": value} for members, value in runs]
    (tmp_path / "v.json").write_text(json.dumps({"values": rows}), encoding="utf-8")
    values = ["--values", str(tmp_path / "v.json"), "--format", "csv"]

    shares = run_corpus("trace", "credit", SWARM, "--method", "difference", *values)
    assert shares.stdout.endswith(f"\nswarm,w3,0,values of coalitions from '{tmp_path / 'v.json'}'\n")
    result = run_corpus("trace", "credit", SWARM, *values)
    assert (result.code, result.stdout) == (2, "")
    assert "has no value for 26 of 32 coalitions that are asked for:" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "v.json:1:1: a list, where an object with 'steps' is wanted"),
        ('{"steps": [{"id": "a", "value": true}]}', "v.json:1:33: 'value' is true or false, and a number is wanted"),
        ('{"steps": [{"id": "a", "value": 1e999}]}', "v.json:1:33: 'value' is beyond 1e+100"),
        ('{"steps": [{"id": "a", "value": 1' + "0" * 5000 + "}]}", "v.json:1:33: 'value' is beyond 1e+100"),
        ('{"steps": [{"id": 1, "value": 1}]}', "v.json:1:19: 'id' is a number, and text is wanted"),
        (
            '{"steps": [{"id": "a", "value": 1, "reward": "x"}]}',
            "v.json:1:46: 'reward' is text, and a number is wanted",
        ),
        ('{"steps": ' + "[" * 100_000 + "}", "v.json:1:1: nested too deeply"),
        (
            '{"steps": [{"id": "a", "value": 1}, {"id": "a", "value": 2}]}',
            "v.json:1:37: a second value of the step 'a'",
        ),
        (
            '{"steps": [{"id": "plan", "value": 1}, {"id": "plam", "value": 1}]}',
            "v.json' has no value for 3 of 4 steps: 'think', 'report', 'answer'\n"
            "It has values for parts that are not in the trace: 'plam'.\n",
        ),
        (
            '{"steps": []}',
            "v.json' has no value for 4 of 4 steps: 'plan', 'think', 'report', 'answer'\n"
            "Each step needs one: what agents think, decide, merge, say, and the tools they call.\n",
        ),
    ],
)
def test_a_file_of_steps_that_does_not_do_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text(text, encoding="utf-8")
    path = str(ROOT / "data" / "traces" / "centralized.json")
    result = run_corpus("trace", "credit", path, "--method", "gae", "--unit", "turn", "--values", f"{tmp_path}/v.json")

    assert (result.code, result.stdout) == (3, "")
    assert message in result.stderr


def test_a_trace_without_steps_has_no_steps_to_credit(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(raw([event("a", 0, "spawn", "x", to="y")])), encoding="utf-8")
    (tmp_path / "v.json").write_text('{"steps": []}', encoding="utf-8")
    result = run_corpus("trace", "credit", str(tmp_path / "t.json"), "--method", "mean", "--values",
                        str(tmp_path / "v.json"))  # fmt: skip

    assert result.code == 2
    assert "has no step that credit could go to" in result.stderr


@given(st.floats(-1e100, 1e100), st.integers(2, 9))
def test_equal_rewards_have_no_advantage_over_one_another(reward: float, runs: int) -> None:
    names = [str(number) for number in range(runs)]

    assert methods.group_relative_advantages(dict.fromkeys(names, reward)) == dict.fromkeys(names, 0.0)
    assert methods.group_relative_advantages({"a": 0.1, "b": 0.1, "c": 0.1}) == {"a": 0.0, "b": 0.0, "c": 0.0}


@given(st.lists(st.floats(-1e100, 1e100), min_size=2, max_size=9).filter(lambda rewards: len(set(rewards)) > 1))
def test_group_relative_advantages_have_mean_0_and_deviation_1(rewards: list[float]) -> None:
    found = methods.group_relative_advantages({str(place): reward for place, reward in enumerate(rewards)}).values()

    if max(rewards) - min(rewards) > 1e-6 * max(map(abs, rewards)):  # else the mean has no digits left
        assert sum(found) / len(found) == pytest.approx(0, abs=1e-6)
        assert sum(one * one for one in found) / len(found) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("value", ["nan", "inf", "-0.5", "1.5"])
@pytest.mark.parametrize(("option", "field"), [("--gamma", "gamma"), ("--lambda", "lam")])
def test_a_discount_that_is_no_number_from_0_to_1_is_refused(option: str, field: str, value: str) -> None:
    result = run_corpus("trace", "credit", SWARM, option, value)
    choices = Choices()._replace(**{field: float(value)})

    assert (result.code, result.stdout) == (2, "")
    with pytest.raises(CommandUseError, match=rf"^{option[2:]} is {value}, and a number from 0 to 1 is wanted$"):
        assign([trace(raw([event("a", 0, "inference", "x")]))], "agent", Method.SHAPLEY, choices)


def test_json_never_has_a_number_that_is_none() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        envelope("trace-credit", {"credit": float("nan")})


def two_runs(folder: Path) -> list[str]:
    """The files of two runs of one task."""
    for name, reward in (("one", 1.0), ("two", 2.0)):
        acts = [event("a", 0, "inference", "x"), event("b", 1, "aggregate", "y")]
        run = raw(acts, "a>b", rewards={"team": reward}, trace_id=name)
        (folder / f"{name}.json").write_text(json.dumps(run), encoding="utf-8")
    return [str(folder / "one.json"), str(folder / "two.json")]


def test_csv_of_several_traces_is_one_table_that_names_the_trace_and_the_basis(tmp_path: Path) -> None:
    result = run_corpus("trace", "credit", *two_runs(tmp_path), "--format", "csv")

    proxy = (
        '"proxy `reach`: the share of what led to the result that the coalition could have done by itself, '
        'times the reward; a statement about this graph, not about runs that were not made"'
    )
    rows = ("one,x,0.75", "one,y,0.25", "two,x,1.5", "two,y,0.5")
    assert result.stdout.splitlines() == ["trace,agent,credit,basis", *(f"{row},{proxy}" for row in rows)]


def test_csv_has_a_column_of_errors_where_some_figure_is_sampled() -> None:
    share, sample = Share(0.5), Share(0.25, 0.125)
    found = [Assignment("one", {"x": share}, "a"), Assignment("two", {"y": sample}, "b", samples=4)]

    assert exact_credit(found, "agent")[2:4] == (
        ("trace", "agent", "credit", "standard error", "basis"),
        (("one", "x", 0.5, None, "a"), ("two", "y", 0.25, 0.125, "b")),
    )


def test_where_no_channel_is_named_it_is_team_or_the_only_one(tmp_path: Path) -> None:
    def credited(rewards: dict[str, float], *words: str) -> Any:
        run = raw([event("a", 0, "inference", "x")], rewards=rewards)
        (tmp_path / "t.json").write_text(json.dumps(run), encoding="utf-8")
        return run_corpus("trace", "credit", str(tmp_path / "t.json"), "--format", "json", *words)

    several, only = credited({"verifier": 3.0, "team": 2.0}), credited({"verifier": 3.0})
    assert [json.loads(one.stdout)["channel"] for one in (several, only)] == ["team", "verifier"]
    assert [json.loads(one.stdout)["traces"][0]["sum"] for one in (several, only)] == [2.0, 3.0]
    assert "taking the reward" not in several.stderr
    assert only.stderr.endswith("corpus: taking the reward 'verifier', the only one there is\n")
    assert "taking" not in credited({"verifier": 3.0}, "--channel", "verifier").stderr

    neither = credited({"verifier": 3.0, "debate": 2.0})
    assert (neither.code, neither.stdout) == (2, "")
    assert neither.stderr.endswith(
        "corpus: the trace 't' has no reward 'team' (allowed: verifier, debate)\n"
        "Say which is to be divided: --channel NAME.\n"
    )
    named = credited({"verifier": 3.0}, "--channel", "team")
    assert "the trace 't' has no reward 'team' (allowed: verifier)" in named.stderr
    none = credited({})
    assert none.stderr.endswith(
        "corpus: the trace 't' has no reward that could be divided\n"
        'Give one with --outcomes FILE, or state it in the trace, such as "rewards": {"team": 1}.\n'
    )


def test_runs_whose_only_rewards_differ_have_to_be_told_which() -> None:
    runs = [raw([event("a", 0, "inference", "x")], rewards={name: 1.0}) for name in ("debate", "verifier")]
    lines = "\n".join(map(json.dumps, runs))
    result = run_with_input(lines, "trace", "credit", "-")

    assert "the trace 't' has no reward 'team' (allowed: debate)" in result.stderr


def test_a_run_without_a_reward_is_left_out_and_named(tmp_path: Path) -> None:
    first, second = two_runs(tmp_path)
    Path(first).write_text(json.dumps(raw([event("a", 0, "inference", "x")], trace_id="none")), encoding="utf-8")

    shares = run_corpus("trace", "credit", first, second, "--format", "json")

    assert [one["trace_id"] for one in json.loads(shares.stdout)["traces"]] == ["two"]
    assert (shares.code, shares.stderr) == (1, "corpus: left out: the trace 'none' has no reward 'team'\n")


def run_with_input(given_text: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A command that something is piped into."""
    command = [sys.executable, "-m", "orchtrace_corpus", *words]
    return subprocess.run(command, input=given_text, capture_output=True, text=True, check=False)


def test_values_are_read_from_standard_input_unless_the_trace_is() -> None:
    everybody = ["lead", "w1", "w2", "w3", "w4"]
    rows = [{"members": [one for one in everybody if one != left], "value": 0.5} for left in ["", *everybody]]
    words = ["trace", "credit", "--method", "difference", "--values", "-"]
    result = run_with_input(json.dumps({"values": rows}), *words, SWARM)

    assert result.returncode == 0
    assert without_evidence(result.stdout).endswith("\nBasis: values of coalitions from '<stdin>'.\n")
    assert run_with_input("[]", *words, SWARM).stderr.startswith("corpus: <stdin>:1:1: a list, where an object")
    both = run_with_input("[]", *words, "-")
    assert (both.returncode, both.stdout) == (2, "")
    assert both.stderr == (
        "corpus: standard input can be read only once\nName a file for the traces, or for --values.\n"
    )


def test_very_many_strangers_in_a_file_of_values_take_time_that_grows_with_them() -> None:
    def prepare(number: int) -> Callable[[], object]:
        names = [f"e{place}" for place in range(number)]
        run = trace(raw([event(name, 0, "inference", "x") for name in names], rewards={"team": 1.0}))
        rows = json.dumps({"steps": [{"id": f"z{name}", "value": 0} for name in names]})
        members = json.dumps({"values": [{"members": [f"z{name}"], "value": 0} for name in names]})

        def call() -> None:
            with pytest.raises(DataFileError, match=rf"has no value for {number:,} of {number:,} steps"):
                assign([run], "turn", Method.GAE, Choices(values=rows))
            with pytest.raises(DataFileError, match=r"the trace has no turn 'ze0'"):
                assign([run], "turn", Method.DIFFERENCE, Choices(values=members))

        return call

    assert_grows(prepare, 500, 4_000, 22)  # looking each up in a set made anew is quadratic: 64 times
