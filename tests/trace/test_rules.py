"""Traces checked: every rule on its own, the places, what a file may be, and the published traces."""

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.findings import RULES, explanation
from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.cli import loading
from orchtrace_corpus.trace.model.decode import Document, decode, documents, documents_in
from tests.conftest import ROOT, TOY, run_corpus
from tests.effort import assert_grows, tries

BASE: dict[str, Any] = {
    "trace_id": "t",
    "task_id": "k",
    "events": [{"id": "a", "t": 0, "type": "message", "agent": "lead"}],
    "edges": [],
    "rewards": {},
    "costs": {"tokens": 100, "wall_clock_s": 100},
}
SHOWN = [code for code in RULES if code.startswith("T") and code not in {"T102", "T103", "T227"}]


def codes(text: str) -> list[str]:
    """The codes that the fields of an excerpt raise, the rest of the trace filled in."""
    given = [f'"{name}": {json.dumps(value)}' for name, value in BASE.items() if f'"{name}": ' not in text]
    document = "{" + ",\n".join((*given, text)) + "}"
    return [finding.code for finding in rules.check(decode(Document(document.encode(), "trace.json")))]


def test_the_rulebook_speaks_true_of_traces() -> None:
    for code in SHOWN:
        assert (code, codes(explanation(code).bad), codes(explanation(code).good)) == (code, [code], [])


def found(trace: dict[str, Any]) -> list[str]:
    text = json.dumps({**BASE, **trace}, indent=1, ensure_ascii=False)
    return [str(finding) for finding in rules.check(decode(Document(text.encode(), "trace.json")))]


def event(name: str, t: float, kind: str, agent: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "t": t, "type": kind, "agent": agent, **more}


def test_a_part_is_no_more_than_the_whole_and_a_turn_ends_after_it_begins() -> None:
    tokens = {"input": 1, "output": 2, "reasoning": 3, "cache_write": 4, "cache_write_1h": 5}
    turn = {"agent": "a", "t": 3, "t_end": 1, "run_time": 1}

    assert [line.partition(": ")[2] for line in found(
        {"events": [event("e1", 0, "inference", "a", t_end=1, tokens=tokens)], "turns": [turn]}
    ) if " T218 " in line or " T220 " in line] == [
        "T220 $.events[0].tokens.reasoning: 3 tokens of reasoning in 2 tokens of output [t]",
        "T220 $.events[0].tokens.cache_write_1h: 5 tokens kept for an hour in 4 tokens written to caches [t]",
        "T218 $.turns[0].t_end: the turn ends at 1, before it begins at 3 [t]",
    ]  # fmt: skip


def test_each_finding_stands_at_its_line_and_column() -> None:
    events = [event("e1", 0, "spawn", "é", to="w"), event("e1", -1, "spwn", "w", to=3), event("", 0, "message", "w")]

    assert found({"events": events, "edges": [{"src": "e1"}], "extra": {}}) == [
        "trace.json:14:9: T115 $.events[1].t: -1 is out of range; at least 0 [t]",
        "trace.json:15:12: T114 $.events[1].type: unknown word 'spwn' (did you mean 'spawn'? allowed: "
        "orchestrator_decision, spawn, despawn, message, tool_call, tool_result, return, aggregate, "
        "human_intervention, safety_event, stop, inference) [t]",
        "trace.json:17:10: T112 $.events[1].to: expected text, got 3 [t]",
        "trace.json:20:10: T115 $.events[2].id: empty [t]",
        "trace.json:27:3: T111 $.edges[0]: missing field 'dst' [t]",
        "trace.json:27:3: T111 $.edges[0]: missing field 'type' [t]",
        "trace.json:36:11: T113 $: unknown field 'extra' (allowed: $schema, trace_id, task_id, system, topology, clock, "
        "agents, turns, events, edges, rewards, costs, metrics, reasons, excluded_human_wait_s, baseline, run, "
        "effectful_tools, subtasks, "
        "import_report) [t]",
    ]


def test_graph_rules_name_both_sides() -> None:
    events = [
        event("e1", 0, "spawn", "lead", to="scout"),
        event("e2", 1, "inference", "scout"),
        event("e3", 2, "despawn", "lead", to="scout"),
        event("e4", 3, "message", "scout", to="lead"),
    ]
    edges = [{"src": "e2", "dst": "e1", "type": "causal"}, {"src": "e1", "dst": "e2", "type": "spawn"}]

    assert [line.partition(": ")[2] for line in found({"events": events, "edges": edges})] == [
        "T208 $.events[3].t: 'scout' acts at 3, after 'e3' ended it at 2 [t]",
        "T203 $.edges[0]: the edges form a cycle: 'e1' -> 'e2' -> 'e1'; remove the edge that leads "
        "back, or reverse it [t]",
        "T204 $.edges[0]: the edge goes back in time, from t 1 to t 0; reverse it, correct the times, or declare "
        "$.clock.skew [t]",
    ]


def test_an_agent_that_is_spawned_again_may_act_again() -> None:
    events = [
        event("e1", 0, "spawn", "lead", to="scout"),
        event("e2", 1, "despawn", "lead", to="scout"),
        event("e3", 2, "spawn", "lead", to="scout"),
        event("e4", 3, "inference", "scout"),
    ]

    assert found({"events": events, "edges": [{"src": "e3", "dst": "e4", "type": "spawn"}]}) == []


def test_a_skew_excuses_clocks_that_disagree() -> None:
    events = [event("e1", 1, "spawn", "lead", to="scout"), event("e2", 0.5, "inference", "scout")]
    edges = [{"src": "e1", "dst": "e2", "type": "spawn"}]

    assert len(found({"events": events, "edges": edges})) == 2
    assert found({"events": events, "edges": edges, "clock": {"skew": 0.5}}) == []


def agents_at_work(*edges: str) -> dict[str, Any]:
    """A lead spawns a scout, which returns, and the lead goes on; with edges such as `e1>e2`."""
    events = [
        event("e0", 0, "inference", "lead"),
        event("e1", 1, "spawn", "lead", to="scout"),
        event("e2", 2, "inference", "scout"),
        event("e3", 3, "return", "scout", to="lead"),
        event("e4", 4, "inference", "lead"),
    ]
    ends = (edge.split(">") for edge in edges)
    return {"events": events, "edges": [{"src": src, "dst": dst, "type": "causal"} for src, dst in ends]}


def short(trace: dict[str, Any]) -> list[tuple[str, str]]:
    """The codes of the findings, each with the value that it is about."""
    return short_of(found(trace))


def short_of(lines: list[str]) -> list[tuple[str, str]]:
    """The same of findings as they are shown."""
    return [re.findall(r": (T\d+) (?:warning: )?(\S+): ", line)[0] for line in lines]


def test_a_forgotten_edge_between_two_agents_is_a_warning() -> None:
    assert found(agents_at_work("e1>e2", "e3>e4")) == []
    assert short(agents_at_work("e1>e2")) == [("T224", "$.events[3]")]
    assert short(agents_at_work("e3>e4")) == [("T223", "$.events[1]")]
    assert short(agents_at_work("e0>e1", "e1>e4", "e3>e4")) == [("T223", "$.events[1]")]
    assert short(agents_at_work("e0>e3")) == [("T224", "$.events[3]")]
    assert short(agents_at_work("e0>e1", "e2>e3")) == [("T225", "$.edges")]
    assert short(agents_at_work()) == [("T225", "$.edges")]


def test_a_return_may_be_the_last_that_happens_above() -> None:
    run = agents_at_work("e1>e2")
    run["events"][4] = event("e4", 4, "despawn", "lead", to="scout")
    assert found(run) == []

    run["events"][4] = event("e4", 4, "inference", "other")
    assert found(run) == []

    run["events"][3] = event("e3", 4, "return", "scout", to="lead", seq=2)
    run["events"][4] = event("e4", 4, "inference", "lead", seq=1)
    assert found(run) == []


def test_a_return_to_nobody_known_is_unused_where_anybody_goes_on() -> None:
    events = [event("e1", 1, "message", "a", to="b"), event("e2", 2, "return", "b"), event("e3", 3, "inference", "c")]
    edges = [{"src": "e1", "dst": "e2", "type": "message"}]

    assert [line.partition(": ")[2] for line in found({"events": events, "edges": edges})] == [
        "T224 warning: $.events[1]: no event depends on what 'b' returns, though 'c' goes on; "
        "add an edge to the event that goes on with it [t]"
    ]
    assert found({"events": events[:2], "edges": edges}) == []


def test_a_result_goes_on_with_one_above_the_agent_that_it_returns_to() -> None:
    events = [
        event("e1", 0, "spawn", "lead", to="boss"),
        event("e2", 1, "spawn", "boss", to="hand"),
        event("e3", 2, "return", "hand", to="boss"),
        event("e4", 3, "inference", "lead"),
    ]
    edges = [{"src": "e1", "dst": "e2", "type": "spawn"}, {"src": "e2", "dst": "e3", "type": "spawn"}]

    assert short({"events": events, "edges": edges}) == [("T224", "$.events[2]")]


def test_nothing_is_said_of_edges_between_agents_where_others_are_lost() -> None:
    run = agents_at_work("e1>e2", "e3>e9")

    assert short(run) == [("T202", "$.edges[1].dst")]


@pytest.mark.parametrize("path", sorted((ROOT / "data" / "traces").glob("*.json")), ids=lambda path: path.stem)
def test_the_traces_of_the_corpus_lack_no_edge(path: Path) -> None:
    assert {finding.code for finding in rules.check(decode(Document(path.read_bytes(), path.name)))} <= {"T211"}


def test_a_circle_is_shown_at_the_edge_that_leads_back() -> None:
    assert short(agents_at_work("e4>e0", "e0>e1", "e1>e2", "e2>e3", "e3>e4"))[0] == ("T203", "$.edges[0]")

    events = [event(f"e{number}", 0, "inference", "lead", seq=number) for number in range(3)]
    pairs = [("e2", "e0"), ("e0", "e1"), ("e1", "e2")]
    edges = [{"src": src, "dst": dst, "type": "causal"} for src, dst in pairs]
    assert short({"events": events, "edges": edges}) == [("T203", "$.edges[0]"), ("T204", "$.edges[0]")]


def test_of_two_events_at_one_time_seq_says_which_an_edge_may_lead_from() -> None:
    def between(first: int | None, second: int | None, **more: Any) -> list[str]:
        events = [event("a", 5, "inference", "lead", seq=first), event("b", 5, "inference", "lead", seq=second)]
        return found({"events": events, "edges": [{"src": "a", "dst": "b", "type": "causal"}], **more})

    assert [line.partition("T204 ")[2] for line in between(5, 2)] == [
        "$.edges[0]: the edge goes back in time: at t 5, from seq 5 to seq 2; reverse it, or correct the seq of "
        "either [t]"
    ]
    assert short_of(between(5, 2, clock={"skew": 9})) == [("T204", "$.edges[0]")]
    assert between(2, 5) == between(2, 2) == between(5, None) == between(None, 0) == []


def test_edges_back_in_time_are_found_beside_edges_to_no_event() -> None:
    events = [event("a", 5, "inference", "lead"), event("b", 4, "inference", "lead")]
    edges = [{"src": "a", "dst": "x", "type": "causal"}, {"src": "a", "dst": "b", "type": "causal"}]

    assert short({"events": events, "edges": edges}) == [("T202", "$.edges[0].dst"), ("T204", "$.edges[1]")]


def test_a_result_comes_after_its_call() -> None:
    def called(t: float, seq: int | None, **more: Any) -> list[tuple[str, str]]:
        events = [
            event("c", t, "tool_call", "lead", call_id="1", seq=seq),
            event("r", 3, "tool_result", "lead", call_id="1", seq=2),
        ]
        return short({"events": events, **more})

    assert called(5, None) == [("T228", "$.events[1].t")]
    assert called(5, None, clock={"skew": 1}) == [("T228", "$.events[1].t")]
    assert called(3, 4, clock={"skew": 1}) == [("T228", "$.events[1].seq")]
    assert called(5, 1, clock={"skew": 2}) == called(3, 1) == called(3, None) == []


def test_a_return_goes_to_an_agent_that_has_not_stopped() -> None:
    stop = event("e3", 2, "stop", "lead")
    run = {
        "events": [
            event("e1", 0, "spawn", "lead", to="scout"), event("e2", 1, "inference", "scout"), stop,
            event("e4", 3, "return", "scout", to="lead"),
        ],
        "edges": [{"src": "e1", "dst": "e2", "type": "spawn"}],
    }  # fmt: skip

    assert [line.partition("T212 ")[2] for line in found(run)] == [
        "$.events[3].to: 'lead' no longer lives: 'e3' stopped at 2 [t]"
    ]
    assert found({**run, "clock": {"skew": 1}}) == []
    stop["t"] = 3
    assert found(run) == []


def test_a_return_may_go_to_an_agent_that_has_stopped_and_was_spawned_again() -> None:
    run = {
        "events": [
            event("e1", 0, "spawn", "boss", to="lead"), event("e2", 1, "spawn", "lead", to="scout"),
            event("e3", 2, "stop", "lead"), event("e4", 3, "despawn", "boss", to="lead"),
            event("e5", 4, "spawn", "boss", to="lead"), event("e6", 5, "return", "scout", to="lead"),
            event("e7", 6, "despawn", "boss", to="lead"), event("e8", 7, "return", "scout", to="lead"),
        ],
        "edges": [{"src": "e1", "dst": "e2", "type": "spawn"}, {"src": "e2", "dst": "e6", "type": "spawn"}],
    }  # fmt: skip

    assert [line.partition("T212 ")[2] for line in found(run)] == [
        "$.events[7].to: 'lead' no longer lives: 'e7' ended it at 6 [t]"
    ]


def test_an_agent_that_has_stopped_acts_again_only_when_it_is_spawned_again() -> None:
    def codes_of(*between: dict[str, Any]) -> list[str]:
        first = [event("e1", 0, "spawn", "boss", to="w"), event("e2", 1, "inference", "w"), event("e3", 2, "stop", "w")]
        edges = [{"src": "e1", "dst": "e2", "type": "spawn"}]
        run = {"events": [*first, *between, event("e9", 5, "inference", "w")], "edges": edges}
        return [line.split()[1] for line in found(run) if "T214" in line]

    assert codes_of() == ["T214"]
    assert codes_of(event("e4", 3, "spawn", "boss", to="w")) == []


def spawned_by(*spawners: str, **more: Any) -> list[str]:
    """What is found where agents spawn the same one, one after another."""
    events = [event(f"s{t}", t, "spawn", agent, to="w") for t, agent in enumerate(spawners)]
    edge = {"src": "s0", "dst": "i", "type": "spawn"}
    return found({"events": [*events, event("i", 9, "inference", "w")], "edges": [edge], **more})


def test_an_agent_that_two_others_spawn_has_two_parents() -> None:
    assert [line.partition(": ")[2] for line in spawned_by("lead", "lead", "clerk")] == [
        "T219 warning: $.events[2].agent: 'clerk' spawns 'w', and so does 'lead', by 's0'; give each agent a name of "
        "its own, or correct who spawns it [t]"
    ]
    assert spawned_by("lead", "lead") == []


def test_where_a_parent_is_declared_each_spawn_is_held_against_it_once() -> None:
    agents = [{"id": "w", "parent": "clerk"}]

    assert short_of(spawned_by("lead", "clerk", agents=agents)) == [("T219", "$.events[0].agent")]


def test_who_an_agent_says_its_parent_is_is_held_against_its_first_spawn() -> None:
    events = [
        event("i", 5, "inference", "w", parent_agent="boss"),
        event("s2", 2, "spawn", "b", to="w"),
        event("s1", 1, "spawn", "z", to="w"),
    ]

    assert [line.partition("T219 warning: ")[2] for line in found({"events": events})][:1] == [
        "$.events[0].parent_agent: 'w' was spawned by 'z' [t]"
    ]


def test_a_circle_of_parents_stands_where_the_parent_is_stated() -> None:
    events = [
        event("i", 0, "inference", "a", parent_agent="b"),
        event("j", 0, "inference", "b", parent_agent="a"),
        event("k", 0, "inference", "a", parent_agent="b"),
    ]
    assert ("T221", "$.events[0].parent_agent") in short({"events": events})

    declared = [{"id": "a", "parent": "b"}]
    assert ("T221", "$.agents[0].parent") in short({"events": events, "agents": declared})


def test_returns_without_receiver_are_held_against_others_than_the_sender() -> None:
    joined = [{"src": "e1", "dst": "e2", "type": "message"}]
    events = [event("e1", 0, "message", "a"), event("e2", 1, "return", "b"), event("e3", 2, "inference", "b")]

    assert found({"events": events, "edges": joined}) == []
    events[0]["t"] = 1
    assert short({"events": events, "edges": joined}) == [("T224", "$.events[1]")]


SOME = ["a", "b", "c", "d"]
PLACES = st.none() | st.integers(0, 2)


@given(
    st.lists(st.tuples(st.sampled_from(SOME), st.integers(0, 3), PLACES), min_size=1, max_size=6),
    st.lists(st.tuples(st.sampled_from(SOME), st.integers(0, 3), PLACES, st.sampled_from(["", *SOME])), max_size=3),
    st.lists(st.integers(0, 2), max_size=3),
)
def test_a_return_is_unused_where_its_receiver_or_one_above_goes_on(
    acts: list[tuple[str, int, int | None]], returns: list[tuple[str, int, int | None, str]], up: list[int]
) -> None:
    """By definition: some event of those above is not certainly earlier than the return."""
    made = [event(f"m{n}", t, "message", agent, seq=seq) for n, (agent, t, seq) in enumerate(acts)]
    made += [event(f"r{n}", t, "return", agent, seq=seq, to=to) for n, (agent, t, seq, to) in enumerate(returns)]
    parents = {SOME[n + 1]: SOME[min(above, n)] for n, above in enumerate(up)}
    agents = [{"id": agent, "parent": parent} for agent, parent in parents.items()]
    joined = [event("y", 0, "message", "x"), event("z", 0, "message", "y")]
    edges = [{"src": "y", "dst": "z", "type": "message"}]
    trace = {"events": [*made, *joined], "edges": edges, "agents": agents}

    def is_later(one: dict[str, Any], other: dict[str, Any]) -> bool:
        if one["t"] == other["t"] and None not in (one["seq"], other["seq"]):
            return bool(one["seq"] > other["seq"])
        return bool(one["t"] > other["t"])

    wanted = set()
    for number, one in enumerate(made):
        if one["type"] == "return":
            receiver = one["to"] or parents.get(one["agent"], "")
            above = []
            while receiver:
                above.append(receiver)
                receiver = parents.get(receiver, "")
            others = {"a", "b", "c", "d", "x", "y"} - {one["agent"]}
            whole = [*made, *({**one, "seq": None} for one in joined)]
            of = [other for other in whole if other["agent"] in (above or others)]
            if any(not is_later(one, other) for other in of):
                wanted.add(("T224", f"$.events[{number}]"))
    assert {line for line in short(trace) if line[0] == "T224"} == wanted


def _many_ends(n: int) -> list[dict[str, Any]]:
    ends = [event(f"d{i}", 1, "despawn", "l", to="a", seq=i) for i in range(n)]
    return [event("e", 0, "message", "a"), *ends, *(event(f"m{i}", 1, "message", "a", seq=2 * i) for i in range(n))]


def _many_spawns(n: int) -> list[dict[str, Any]]:
    spawns = [event(f"s{i}", 1, "spawn", "l", to="a", seq=n + i) for i in range(n)]
    return [*spawns, *(event(f"m{i}", 1, "message", "a", seq=i) for i in range(n))]


def _many_circles(n: int) -> list[dict[str, Any]]:
    return [event(f"e{i}", 0, "message", f"a{i}", parent_agent=f"a{i ^ 1}") for i in reversed(range(n))]


def _many_returns(n: int) -> list[dict[str, Any]]:
    return [event("e", 0, "spawn", "l", to="r0"), *(event(f"r{i}", 1, "return", f"r{i}") for i in range(n))]


def _deep_returns(n: int) -> list[dict[str, Any]]:
    spawns = [event(f"s{i}", i, "spawn", f"a{i}", to=f"a{i + 1}") for i in range(n)]
    up = [event(f"r{i}", n + 1, "return", f"a{i}", to=f"a{i - 1}") for i in range(1, n)]
    return [*spawns, *up, *(event(f"x{i}", n + 2, "return", f"a{i}", to="nobody") for i in range(1, n))]


def _many_spawners(n: int) -> list[dict[str, Any]]:
    spawns = [event(f"s{i}", 0, "spawn", f"k{i}", to="w") for i in range(n)]
    return [*spawns, *(event(f"m{i}", 1, "message", "w", parent_agent="no") for i in range(n))]


@pytest.mark.parametrize(
    "made", [_many_ends, _many_spawns, _many_circles, _many_returns, _deep_returns, _many_spawners]
)
def test_what_is_wrong_many_times_takes_time_that_grows_with_it(
    made: Callable[[int], list[dict[str, Any]]],
) -> None:
    """Were any of this quadratic, 8 times as much would take 64 times as long."""

    def prepare(n: int) -> Callable[[], object]:
        events = made(n)
        edges = [{"src": events[0]["id"], "dst": events[1]["id"], "type": "causal"}]
        document = Document(json.dumps({**BASE, "events": events, "edges": edges}).encode(), "trace.json")

        def call() -> None:
            assert rules.check(decode(document))

        return call

    assert_grows(prepare, tries(1_000, 400), tries(8_000, 3_200), 22)


def test_an_id_of_no_event_is_compared_with_those_there_are() -> None:
    events = [event("stop", 0, "inference", "lead"), event("e11", 1, "inference", "lead")]
    edges = [{"src": "stopp", "dst": "e12", "type": "causal"}]

    assert [line.partition("T202 ")[2] for line in found({"events": events, "edges": edges})] == [
        "$.edges[0].src: there is no event 'stopp' (did you mean 'stop'?); correct the id, or remove the edge [t]",
        "$.edges[0].dst: there is no event 'e12'; correct the id, or remove the edge [t]",
    ]


def test_a_result_without_a_call_is_shown_the_calls_without_a_result() -> None:
    events = [
        event("e1", 0, "tool_call", "lead", call_id="c1"),
        event("e2", 1, "tool_result", "lead", call_id="cX"),
    ]

    assert found({"events": events})[1].endswith(
        "T209 $.events[1].call_id: no call has the call_id 'cX' (calls without a result: 'c1'); "
        "correct it, or add the call [t]"
    )


def test_many_findings_of_one_rule_are_cut_and_counted() -> None:
    edges = [{"src": "a", "dst": f"x{number}", "type": "causal"} for number in range(250)]
    lines = found({"edges": edges})

    assert len(lines) == 101
    assert [line for line in lines if "250 findings of this rule; the first 100 are given" in line]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "1:1: T102 nothing in the file; a trace is a JSON object"),
        (b" \n\n", "3:1: T102 nothing in the file"),
        (b'{"a":\n1,}', "2:2: T101 not JSON: a comma with nothing behind it; remove it"),
        (b'{"a":\n NaN}', "2:2: T104 'NaN' is not a finite number; write null for unknown"),
        (b'{"a": -Infinity}', "1:7: T104 '-Infinity' is not a finite number"),
        (rb'{"a": "\ud800"}', "1:8: T101 half of a surrogate pair"),
        (rb'{"a": "\udc00"}', "1:8: T101 half of a surrogate pair"),
        (b'{"a": "\xff"}', "1:8: T103 not UTF-8"),
        (b"[" * 100_000, "1:1: T101 nested too deeply"),
        (b'{"a":' * 100_000, "1:1: T101 nested too deeply"),
        (b"[]", "1:1: T112 a trace is an object"),
        (b"3", "1:1: T112 a trace is an object"),
        (b'{"trace_id": "x"\n', "1:17: T101 not JSON: the text ends in the middle of an object, which begins at 1:1\n"),
        (b'{"a": [1, {"b": 2}\n ,', "2:3: T101 not JSON: the text ends in the middle of a list, which begins at 1:7\n"),
        (b'{"a":\n "x', "2:4: T101 not JSON: the text ends in the middle of a string, which begins at 2:2\n"),
        (
            b"\xef\xbb\xbf{}",
            "1:1: T101 begins with a byte order mark, which JSON does not have; save the file in UTF-8 with",
        ),
        (b"{\n  'a': 1}", "2:3: T101 not JSON: expecting property name enclosed in double quotes\n"),
        (b'{\n  // hi\n  "a": 1}', "2:3: T101 not JSON: a comment, which JSON does not have; remove it\n"),
        (b'{"a": 1,\n\n\n  b: 2}', "4:3: T101 not JSON: expecting property name enclosed in double quotes\n"),
        (b'{"a": 1\n "b": 2}', "1:8: T101 not JSON: a comma is missing\n"),
        (b'{"a": [1, 2,\n]}', "1:12: T101 not JSON: a comma with nothing behind it; remove it\n"),
        ('{"é": True}'.encode(), "1:7: T101 not JSON: expecting value\n"),
        (b'{"a" 1}', "1:6: T101 not JSON: expecting ':' delimiter\n"),
        (b'{"a": 01}', "1:8: T101 not JSON: expecting ',' delimiter\n"),
        (b'{"a": [1}', "1:9: T101 not JSON: expecting ',' delimiter\n"),
        (b'{"a": "\t"}', "1:8: T101 not JSON: invalid control character\n"),
        (
            b'{"a":\n1}\n}',
            "3:1: T101 not JSON: the trace has ended before this; in JSON Lines each trace stands on one l",
        ),
    ],
)
def test_what_is_no_trace_is_refused_at_its_place(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    result = run_corpus("trace", "validate", str(path))

    assert result.code == (1 if "T112" in message else 3)
    assert result.stdout.startswith(f"{path}:{message}")


def test_json_lines_are_checked_line_by_line(tmp_path: Path) -> None:
    sound = json.dumps(BASE)
    path = tmp_path / "traces.jsonl"
    path.write_text(f"{sound}\n\n{sound[:-1]}\n{json.dumps({**BASE, 'topology': 'ring'})}\n", encoding="utf-8")
    result = run_corpus("trace", "validate", str(path))

    assert result.code == 3
    assert [line.split(" ")[0].rpartition("/")[2] for line in result.stdout.splitlines()] == [
        "traces.jsonl:3:177:", "traces.jsonl:4:191:",
    ]  # fmt: skip
    assert (
        result.stderr == "2 errors in 3 traces; the rules of the graph are checked in 2 of them once these are fixed\n"
    )


@pytest.mark.parametrize("name", ["traces.jsonl", "traces.NDJSON"])
def test_json_lines_of_which_the_first_is_broken_are_read_line_by_line_where_the_name_says_what_they_are(
    name: str, tmp_path: Path
) -> None:
    sound = json.dumps(BASE)
    path = tmp_path / name
    path.write_text(f"\n{sound[:-1]}\n{json.dumps({**BASE, 'topology': 'ring'})}\n{sound}\n", encoding="utf-8")
    result = run_corpus("trace", "validate", str(path))

    assert [line.split(" ")[:2] for line in result.stdout.splitlines()] == [
        [f"{path}:2:177:", "T101"], [f"{path}:3:191:", "T114"],
    ]  # fmt: skip
    assert result.stderr.startswith("2 errors in 3 traces; ")


def test_json_lines_are_held_in_memory_one_at_a_time_even_where_the_first_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text("{\n" + f"{json.dumps(BASE)}\n" * 3, encoding="utf-8")

    with path.open("rb") as file:
        found = documents_in(file, "traces.jsonl", is_lines=True)
        assert (next(found).data, next(found).line) == (b"{\n", 2)


def test_a_file_by_another_name_is_one_trace_unless_its_first_line_is_one(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(BASE, indent=1), encoding="utf-8")
    (tmp_path / "two.txt").write_text(f"{json.dumps(BASE)}\n" * 2, encoding="utf-8")

    assert [len(list(documents(str(tmp_path / name)))) for name in ("one.json", "two.txt")] == [1, 2]


def test_an_empty_file_of_json_lines_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(b"\n\n")

    assert run_corpus("trace", "validate", str(tmp_path / "t.jsonl")).stdout.startswith(f"{tmp_path}/t.jsonl:3:1: T102")


def test_the_graph_is_said_to_be_unchecked_where_the_schema_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps({**BASE, "topology": "ring"}), encoding="utf-8")
    (tmp_path / "u.json").write_text(json.dumps({**BASE, "topology": "ring", "system": 3}), encoding="utf-8")

    assert [run_corpus("trace", "validate", str(tmp_path / name)).stderr for name in ("t.json", "u.json")] == [
        "1 error in 1 trace; the rules of the graph are checked once it is fixed\n",
        "2 errors in 1 trace; the rules of the graph are checked once these are fixed\n",
    ]


def test_two_traces_of_one_name_are_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    path.write_text(f"{json.dumps(BASE)}\n{json.dumps(BASE)}\n", encoding="utf-8")
    result = run_corpus("trace", "validate", str(path))

    assert (result.code, result.stdout) == (
        0, f"{path}:2:1: T227 warning: $.trace_id: 't' is that of {path}:1, too; give each run its own [t]\n"
    )  # fmt: skip
    (tmp_path / "one.json").write_text(json.dumps(BASE), encoding="utf-8")
    assert run_corpus("trace", "validate", str(tmp_path / "one.json"), str(tmp_path / "one.json")).stdout == ""


def test_a_trace_comes_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in ("validate", "show", "replay", "measure"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(BASE).encode())))
        result = run_corpus("trace", command, "-")
        assert result.code == 0
        assert "t" in result.stdout or result.stderr == "no problems in 1 trace\n"

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{")))
    assert run_corpus("trace", "validate", "-").stdout.startswith("<stdin>:1:2: T101 not JSON")
    assert "can be read only once" in run_corpus("trace", "validate", "-", "-").stderr
    monkeypatch.setattr(sys, "stdin", None)
    assert run_corpus("trace", "show", "-").code == 2


@pytest.mark.parametrize("data", [b"", b'{"costs": NaN}', b'{"trace_id": "x"'])
def test_what_is_no_json_is_not_called_a_trace_with_errors(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(data)
    for command in ("show", "replay", "measure"):
        result = run_corpus("trace", command, str(tmp_path / "t.json"))
        assert result.code == 3
        assert result.stderr.startswith("corpus: this is not JSON, so there is no trace in it:\n")
        assert "\nAccepted: traces in JSON or JSON Lines, and logs in these formats: claude_code, " in result.stderr


@pytest.mark.parametrize(
    ("log", "title"),
    [("claude_code/waits.jsonl", "Claude Code transcripts"), ("google_adk/session.json", "Google ADK sessions")],
)
def test_a_log_on_standard_input_is_refused_by_the_name_of_its_format(
    log: str, title: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (ROOT / "tests" / "data" / "logs" / log).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    result = run_corpus("trace", "measure", "-")

    assert result.code == 2
    assert result.stderr.startswith(f"corpus: standard input holds a log of {title}")
    assert result.stderr.endswith("Logs are read from files and folders: name the file or folder that holds it.\n")


def test_one_broken_file_is_left_out_of_the_measures_of_a_folder_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(BASE), encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps({**BASE, "topology": "ring"}), encoding="utf-8")
    result = run_corpus("trace", "measure", str(tmp_path), "--only", "steps", "--format", "csv")

    assert (result.code, result.stdout) == (1, f"trace,steps,task_id,system,format,file\nt,1,k,,,{tmp_path}/a.json\n")
    assert result.stderr.startswith(f"corpus: left out: {tmp_path / 'b.json'}:1:")
    assert result.stderr.count("\n") == 1


def test_warnings_of_several_traces_are_told_in_one_line(tmp_path: Path) -> None:
    call = event("e1", 0, "tool_call", "lead", call_id="c")
    for name in "ab":
        trace = {**BASE, "events": [call], "trace_id": name}
        (tmp_path / f"{name}.json").write_text(json.dumps(trace), encoding="utf-8")

    assert run_corpus("trace", "measure", str(tmp_path)).stderr == (
        "corpus: 2 warnings in 2 traces; see corpus trace validate\n"
    )
    assert run_corpus("trace", "show", str(tmp_path / "a.json")).stderr == (
        f"corpus: {tmp_path / 'a.json'}:1: 1 warning; see corpus trace validate\n"
    )


def test_reading_a_large_file_is_told_at_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_LARGE_BYTES", 100)
    (tmp_path / "t.json").write_text(json.dumps(BASE), encoding="utf-8")
    assert run_corpus("trace", "validate", str(tmp_path)).stderr == "no problems in 1 trace\n"

    monkeypatch.setattr(Output, "stderr_width", 80)
    assert run_corpus("trace", "validate", str(tmp_path)).stderr == (
        f"corpus: reading {tmp_path / 't.json'}, 0 MB\nno problems in 1 trace\n"
    )
    assert run_corpus("--quiet", "trace", "validate", str(tmp_path)).stderr == ""


def test_warnings_pass_unless_strict(tmp_path: Path) -> None:
    call = event("e1", 0, "tool_call", "lead", call_id="c")
    (tmp_path / "t.json").write_text(json.dumps({**BASE, "events": [call]}), encoding="utf-8")

    assert run_corpus("trace", "validate", str(tmp_path)).code == 0
    assert run_corpus("trace", "validate", str(tmp_path), "--strict").code == 1


def test_an_empty_folder_and_an_absent_file_are_said(tmp_path: Path) -> None:
    assert run_corpus("trace", "validate", str(tmp_path)).code == 3
    assert "cannot read" in run_corpus("trace", "validate", str(tmp_path / "none.json")).stderr


def test_the_trace_published_as_an_example_is_sound() -> None:
    """Eight events of the kinds, edges and totals that the published example has."""
    kinds = ["orchestrator_decision", "spawn", "spawn", "message", "tool_call", "tool_result", "return", "aggregate"]
    agents = ["lead", "lead", "lead", "planner", "executor", "executor", "executor", "lead"]
    events = [
        event(f"e{number}", number, kind, agent, **({"to": to} if to else {}))
        for number, (kind, agent, to) in enumerate(
            zip(kinds, agents, ["", "planner", "executor", "executor", "", "", "lead", ""], strict=True)
        )
    ]
    pairs = [(0, 1, "spawn"), (0, 2, "spawn"), (1, 3, "causal"), (3, 4, "message"), (4, 5, "return"), (5, 6, "return"),
             (6, 7, "aggregate"), (2, 4, "causal")]  # fmt: skip
    edges = [{"src": f"e{source}", "dst": f"e{target}", "type": kind} for source, target, kind in pairs]

    assert found({
        "topology": "planner_executor_critic", "events": events, "edges": edges,
        "rewards": {"team": 1.0, "orchestration": 0.3, "tool": 0.1},
        "costs": {"tokens": 12000, "wall_clock_s": 420, "tool_calls": 1, "messages": 1},
        "metrics": {"task_success": 1, "protocol_overhead": 0.18, "error_amplification": 0},
    }) == []  # fmt: skip


def test_the_trace_library_is_loaded_by_trace_commands_alone() -> None:
    program = (
        "import sys; from orchtrace_corpus.cli.main import run; run(['stats']); "
        "sys.exit(any(name.split('.')[0] in {'msgspec', 'jsonschema'} for name in sys.modules))"
    )

    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


def checked(tmp_path: Path, name: str, data: bytes) -> tuple[int, list[str]]:
    """What `corpus check` says of a corpus with a trace."""
    shutil.copytree(TOY, tmp_path / "corpus", dirs_exist_ok=True)
    (tmp_path / "corpus" / "data" / "traces").mkdir()
    if name:
        (tmp_path / "corpus" / "data" / "traces" / name).write_bytes(data)
    result = run_corpus("--root", str(tmp_path / "corpus"), "check")
    return result.code, [line for line in result.stdout.splitlines() if "traces" in line]


def test_check_includes_the_traces_of_a_corpus(tmp_path: Path) -> None:
    code, lines = checked(tmp_path, "t.json", json.dumps({**BASE, "topology": "ring"}).encode())

    assert code == 1
    assert lines[0].startswith("data/traces/t.json:1:")
    assert lines[1] == "traces    failed 1 error in 1 trace; to fix: see corpus trace validate data/traces"


def test_check_tells_warnings_about_traces_in_number(tmp_path: Path) -> None:
    call = event("e1", 0, "tool_call", "lead", call_id="c")
    _, lines = checked(tmp_path, "t.json", json.dumps({**BASE, "events": [call]}).encode())

    assert lines == ["traces    ok     1 warning in 1 trace"]


def test_check_counts_names_that_two_traces_have(tmp_path: Path) -> None:
    _, lines = checked(tmp_path, "two.jsonl", f"{json.dumps(BASE)}\n{json.dumps(BASE)}\n".encode())

    assert lines == ["traces    ok     1 warning in 2 traces"]


def test_check_of_what_is_no_trace_ends_as_unreadable(tmp_path: Path) -> None:
    assert checked(tmp_path, "t.json", b"{")[0] == 3


def test_check_of_an_empty_folder_of_traces_fails(tmp_path: Path) -> None:
    code, lines = checked(tmp_path, "", b"")

    assert code == 3
    assert lines[0].startswith("traces    failed no trace in ")


@pytest.mark.parametrize(("unit", "span"), [("s", 100), ("ms", 100_000)])
def test_a_total_of_seconds_below_the_span_of_the_events_is_found_in_every_unit(unit: str, span: float) -> None:
    events = [event("a", 5, "message", "lead"), event("b", 5 + span, "message", "lead")]

    def codes_of(seconds: float, **more: Any) -> list[str]:
        costs = {"tokens": 0, "wall_clock_s": seconds}
        return [line.split()[1] for line in found({"events": events, "clock": {"unit": unit}, "costs": costs, **more})]

    assert (codes_of(100), codes_of(98), codes_of(0.1)) == ([], ["T215"], ["T215"])
    assert (codes_of(60, excluded_human_wait_s=40), codes_of(58, excluded_human_wait_s=40)) == ([], ["T215"])
