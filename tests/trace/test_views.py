"""Traces shown, replayed, drawn, labelled, compared and handed on."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from orchtrace_corpus.base.text.layout import ASCII, display_width, plain
from orchtrace_corpus.base.text.table import lines
from orchtrace_corpus.trace.analysis.labels import RULES, labels
from orchtrace_corpus.trace.analysis.replay import replay
from orchtrace_corpus.trace.exporters.published import publish
from orchtrace_corpus.trace.measures.ledger import ledger
from orchtrace_corpus.trace.measures.measure import steps
from orchtrace_corpus.trace.model.json_text import text
from orchtrace_corpus.trace.render import graph as trace_graph
from orchtrace_corpus.trace.render.measures import ledger_table
from orchtrace_corpus.trace.render.names import agent_names
from orchtrace_corpus.trace.render.show import page, replay_heading, state_lines
from orchtrace_corpus.trace.view import TraceView
from tests.conftest import ROOT, run_corpus
from tests.terminal import run_on_terminal
from tests.trace.traces import EXAMPLES, documents, event, example, raw, trace

TRACES = ROOT / "data" / "traces"


def test_one_event_with_its_place_and_what_depends_on_it() -> None:
    log = str(ROOT / "tests" / "data" / "findings" / "unread_message")
    sent, late = (run_corpus("trace", "show", log, "--event", name).stdout for name in ("e10", "e13"))

    assert sent == (
        "e10: message SendMessage of main to alice (worker)\n"
        "Time      at 1 min 40 s, no time\n"
        "Status    ok\n"
        "Log       5e55104a-0000-4000-8000-0000000000f1.jsonl:10\n"
        "Follows   e9 (orchestrator decision of main)\n"
        "Leads to  nothing\n"
        "Finding   messages that nobody read\n"
    )
    assert late == (
        "e13: orchestrator decision of main\n"
        "Time      at 1 min 48 s, 1 min 02 s, perhaps waiting\n"
        "Model     claude-sonnet-4-5-20250929\n"
        "Tokens    60 input, 50 output, 1,300 from cache\n"
        "Status    unknown\n"
        "Log       5e55104a-0000-4000-8000-0000000000f1.jsonl:14\n"
        "Follows   e11 (orchestrator decision of main)\n"
        "Leads to  e14 (message SendMessage of main to alice (worker)), e15 (inference of main)\n"
        "Finding   messages that nobody read\n"
    )


def test_the_time_of_an_event_says_what_is_stated_and_what_follows_from_it() -> None:
    logs = ROOT / "tests" / "data" / "logs"
    settled, asked = str(logs / "claude_code" / "settled.jsonl"), str(logs / "kimi_code" / "team")
    shown = ((settled, "e3"), (settled, "e4"), (settled, "e8"), (settled, "e11"), (asked, "e19"))
    times = [
        run_corpus("trace", "show", log, "--event", name).stdout.partition("Status")[0].partition("Time")[2].split()
        for log, name in shown
    ]

    assert list(map(" ".join, times)) == [
        "at 4 s, 20 s, behind 9 min 40 s of waiting that follow from the stated duration of its turn",
        "at 24 s, 20 s after its call",
        "at 32 s, 13 min 16 s, in the background",
        "at 37 s, 2 min 01 s",
        "at 14 s, 800 ms, behind 200 ms that were no work of its own",
    ]


def test_a_call_is_found_by_its_id_in_the_log_and_shown_with_its_result() -> None:
    log = str(ROOT / "tests" / "data" / "session")
    call, known, result = (run_corpus("trace", "show", log, "--event", name).stdout for name in ("b1", "e21", "e22"))
    file = "7ea30000-0000-4000-8000-000000000001/subagents/agent-f2.jsonl"

    assert (
        call
        == known
        == (
            "e21: tool call Bash of tester\n"
            "Time      at 26 s, 2 min 25 s\n"
            "Status    error, tool_error\n"
            f"Log       {file}:2\n"
            "Follows   e20 (inference of tester)\n"
            "Leads to  e22 (tool result Bash of tester)\n"
        )
    )
    assert result == (
        "e22: tool result Bash of tester\n"
        "Time      at 2 min 51 s, 2 min 25 s after its call\n"
        "Status    error, tool_error\n"
        f"Log       {file}:3\n"
        "Follows   e21 (tool call Bash of tester)\n"
        "Leads to  e23 (inference of tester)\n"
    )


def test_a_log_names_no_task() -> None:
    shown = run_corpus("trace", "show", str(ROOT / "tests" / "data" / "session")).stdout

    assert shown.splitlines()[1] == "topology centralized · stated: 46,215 tokens, wall clock 18 min 12 s"


def test_an_event_that_is_not_there_and_one_of_several_traces_are_refused() -> None:
    wrong = run_corpus("trace", "show", str(TRACES / "swarm.json"), "--event", "nothing")
    several = run_corpus("trace", "show", str(TRACES / "swarm.json"), str(TRACES / "debate.json"), "--event", "nothing")

    assert (wrong.code, wrong.stdout) == (2, "")
    assert wrong.stderr == "corpus: there is no event 'nothing'\ncorpus trace replay lists all.\n"
    assert several.stderr == "corpus: --event is of one trace, and there are 2\nName one with --session.\n"


def test_a_trace_on_a_page() -> None:
    assert run_corpus("trace", "show", str(TRACES / "hierarchical.json")).stdout == (
        "hierarchical\n"
        "task write-a-report · topology hierarchical · stated: 4,520 tokens, wall clock 10 s\n"
        "4 agents, 14 events, 10 s elapsed.\n"
        "\n"
        "                 0                                                                       10 s tokens\n"
        "lead (director)  ████████s···························································███████·  1,780\n"
        "  manager                ██████████████s·····························████████████████r         1,790\n"
        "    worker w1                          ██████████████████████████████r                           500\n"
        "    worker w2                          ████████████████r                                         450\n"
        "█ model, ░ tool, · idle, s spawn, r return\n"
        "\n"
        "Path      critical path, 10 s: lead (director) 1 s -> manager 2 s -> worker w1 4 s -> manager 2 s ->\n"
        "          lead (director) 1 s. With these steps and no waiting: at least 10 s.\n"
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("width", [40, 80, 200, None])
def test_a_page_fits_its_width(path: Path, width: int | None) -> None:
    shown = plain(page(example(path.stem), width, ASCII))

    assert shown.isascii()
    assert max(map(display_width, shown.splitlines())) <= min(width or 100, 100)


def test_totals_that_are_not_known_are_said_to_be() -> None:
    head = plain(page(example("mixed"), None)).splitlines()[1]

    assert head == "task plan-a-trip · topology mixed · tokens unknown · time unknown"


def test_text_from_a_trace_cannot_reach_the_terminal(tmp_path: Path) -> None:
    hostile = raw([event("\x1b[31m", 0, "spawn", "a\n", to="\x07"), event("b", 1, "inference", "\x07")])
    (tmp_path / "t.json").write_text(json.dumps(hostile), encoding="utf-8")

    for words in (["show"], ["replay"], ["label", "--events"], ["measure"], ["graph"], ["graph", "-f", "dot"]):
        result = run_corpus("trace", *words, str(tmp_path / "t.json"))
        assert result.code == 0
        assert not set("\x1b\x07") & set(result.stdout + result.stderr)


def test_colours_only_on_a_terminal() -> None:
    command = [sys.executable, "-m", "orchtrace_corpus", "trace", "show", str(TRACES / "failing.json")]
    shown, _ = run_on_terminal(command, environment={"TERM": "xterm-256color"}, stderr=subprocess.DEVNULL)

    assert "\x1b[" in shown
    assert "\x1b" not in run_corpus("trace", "show", str(TRACES / "failing.json")).stdout


def test_a_replay_says_who_lives_what_is_open_and_what_was_spent() -> None:
    assert [
        (state.event.id, state.live, state.open_calls, state.in_flight, state.tokens)
        for state in replay(example("planner_executor_critic"))
    ][:6] == [
        ("p1", ("planner",), (), (), 1100.0),
        ("m1", ("planner",), (), ("m1",), 1100.0),
        ("x1", ("planner", "executor"), (), (), 2700.0),
        ("x1c", ("planner", "executor"), ("t1",), (), 2700.0),
        ("x1r", ("planner", "executor"), (), (), 2700.0),
        ("m2", ("planner", "executor"), (), ("m2",), 2700.0),
    ]


@given(documents(), st.data())
def test_a_prefix_of_a_trace_replays_to_a_prefix_of_its_states(document: dict[str, Any], data: st.DataObject) -> None:
    whole = trace(document)
    states = list(replay(whole))
    assert states == list(replay(whole))

    sequence = TraceView(whole).sequence
    kept = sorted(sequence[: data.draw(st.integers(1, len(sequence)))])
    names = {document["events"][number]["id"] for number in kept}
    part = {
        **document,
        "events": [document["events"][number] for number in kept],
        "edges": [edge for edge in document["edges"] if {edge["src"], edge["dst"]} <= names],
    }
    assert list(replay(trace(part))) == states[: len(kept)]


def replay_of(name: str, *options: str) -> list[str]:
    return run_corpus("trace", "replay", str(TRACES / f"{name}.json"), *options).stdout.splitlines()


def test_a_replay_ends_after_a_time_or_an_event() -> None:
    assert len(replay_of("swarm", "--until", "4")) == 10
    assert replay_of("swarm", "--until", "s2")[-1] == (
        "    4        2 s  s2  lead: spawn -> worker w2  live 3, calls 0, in flight 0, tokens 1,900"
    )


def test_one_state_of_a_replay_is_chosen_by_number_or_as_the_last() -> None:
    whole = replay_of("swarm")

    assert replay_of("swarm", "--step", "3")[:1] == whole[2:3]
    assert replay_of("swarm", "--step", "last")[:1] == whole[-1:]
    assert replay_of("swarm", "--step", "3", "--until", "4")[:1] == whole[2:3]
    assert replay_of("swarm", "--step", "last", "--until", "4")[:1] == whole[9:10]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--until", "x"], "'x' is neither a time nor the id of an event"),
        (["--until", "nan"], "'nan' is not a time: times are numbers of 0 or more"),
        (["--until", "-1"], "'-1' is not a time"),
        (["--until", "inf"], "'inf' is not a time"),
        (["--step", "99"], "there is no event 99: this replay has 17"),
        (["--step", "4", "--until", "0"], "there is no event 4: this replay has 1"),
        (["--step", "0"], "'0' is not the number of an event"),
        (["--step", "first"], "'first' is not the number of an event"),
    ],
)
def test_a_part_of_a_replay_that_there_is_not_is_refused(options: list[str], message: str) -> None:
    result = run_corpus("trace", "replay", str(TRACES / "swarm.json"), *options)

    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr


def test_an_id_that_looks_like_a_time_can_be_named_and_so_can_the_time(tmp_path: Path) -> None:
    numbered = raw([event("9", 2, "inference", "x"), event("2", 3, "inference", "x"), event("c", 9, "inference", "x")])
    (tmp_path / "t.json").write_text(json.dumps(numbered), encoding="utf-8")

    named = run_corpus("trace", "replay", str(tmp_path / "t.json"), "--until", "2")
    assert [line.split()[3] for line in named.stdout.splitlines()] == ["9", "2"]
    assert named.stderr == "corpus: '2' is an event's id; for the time, write +2\n"
    timed = run_corpus("trace", "replay", str(tmp_path / "t.json"), "--until", "+2")
    assert [line.split()[3] for line in timed.stdout.splitlines()] == ["9"]
    early = run_corpus("trace", "replay", str(tmp_path / "t.json"), "--until", "1")
    assert early.stderr.startswith("corpus: nothing has happened by 1 s: the first event is at 2 s")


def test_a_replay_says_times_in_the_unit_of_the_clock() -> None:
    assert replay_of("harness", "--until", "4000")[-1].startswith("    4    4000 ms  edit  coder: inference")
    assert [line[7:16].strip() for line in replay_of("mixed")][:3] == ["0 steps", "1 step", "2 steps"]


def rows(width: int, name: str, count: int) -> list[str]:
    """The first states of a replay as on a terminal."""
    view, unit = TraceView(example(name)), example(name).clock.unit
    shown = [state_lines(state, agent_names(view), unit, width) for state in list(replay(view))[:count]]
    return plain([*replay_heading(width), *(one for lines in shown for one in lines)]).splitlines()


def test_a_replay_on_a_terminal_has_its_counters_in_columns() -> None:
    assert rows(80, "harness", 8) == [
        "    #       time  event                             live calls flight     tokens",
        "    1       0 ms  ask                                  1     0      0          0",
        "                  developer: human_intervention",
        "    2       0 ms  go  lead: orchestrator_decision      2     0      0      2,300",
        "    3    4000 ms  spawn  lead: spawn -> coder          3     0      0      2,300",
        "    4    4000 ms  edit  coder: inference               3     0      0      6,200",
        "    5   10000 ms  push  coder: tool_call git_push      3     1      0      6,200",
        "    6   10500 ms  block  harness: safety_event         4     1      0      6,200",
        "    7   10500 ms  approve                              4     1      0      6,200",
        "                  developer: human_intervention",
        "    8   71500 ms  pushed  coder: tool_result           4     0      0      6,200",
    ]


def test_one_state_says_who_is_active_and_what_is_open() -> None:
    assert replay_of("harness", "--step", "6") == [
        "    6   10500 ms  block  harness: safety_event  live 4, calls 1, in flight 0, tokens 6,200",
        "Active     developer, lead, coder, harness",
        "Open       g1 (coder: tool_call git_push)",
        "In flight  nothing",
    ]


@pytest.mark.parametrize("width", [None, 80, 40])
@pytest.mark.parametrize("tokens", [7, 1234, 123_456_789])
def test_the_tokens_of_agents_have_their_heading_however_narrow_they_are(tokens: int, width: int | None) -> None:
    run = trace(raw([event("a", 0, "inference", "x", t_end=9, tokens={"input": tokens})]))
    heading, lane = next(pairwise(line for line in plain(page(run, width)).splitlines() if line[:3] in ("   ", "x  ")))

    assert (heading.split(), lane.split()[-1]) == (["0", "9", "s", "tokens"], f"{tokens:,}")


def test_a_replay_on_a_narrow_terminal_shows_each_event_whole() -> None:
    assert rows(50, "harness", 8) == [
        "    1       0 ms  ask",
        "                  developer: human_intervention",
        "    2       0 ms  go  lead: orchestrator_decision",
        "    3    4000 ms  spawn  lead: spawn -> coder",
        "    4    4000 ms  edit  coder: inference",
        "    5   10000 ms  push  coder: tool_call git_push",
        "    6   10500 ms  block  harness: safety_event",
        "    7   10500 ms  approve",
        "                  developer: human_intervention",
        "    8   71500 ms  pushed  coder: tool_result",
    ]


def test_a_replay_as_json_lines_names_its_schema_first() -> None:
    head, state = map(json.loads, replay_of("failing", "--step", "5", "--format", "json"))

    assert head == {"schema": "orchtrace-corpus/trace-replay", "version": 1, "trace_id": "failing", "unit": "s"}
    assert state == {
        "step": 5, "event": "q3", "t": 1.0, "live": ["lead", "agent-1", "agent-2"], "open_calls": ["q1", "q3"],
        "in_flight": [], "tokens": 600.0, "without_tokens": 0, "cost_usd": None,
    }  # fmt: skip


HOSTILE = raw([event('"]; click e0 "', 0, "inference", 'a"]\nend', t_end=1), event("<b>&amp;", 1, "return", "%%|x|")])


@pytest.mark.parametrize("draw", [trace_graph.mermaid, trace_graph.dot])
def test_text_in_graphs_stays_text(draw: Any) -> None:
    written = draw(trace(HOSTILE))

    assert "click e0" not in written.replace("#34;#93;#59; click e0 #34;", "").replace(r"\"]; click e0 \"", "")
    assert len(written.splitlines()) < 15


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_picture_is_well_formed_and_says_what_it_shows(path: Path) -> None:
    drawn = trace_graph.timeline(example(path.stem))
    root = ElementTree.fromstring(drawn)

    assert root.find("{http://www.w3.org/2000/svg}title") is not None
    assert "Critical path" in "".join(root.itertext()) or "critical path" in "".join(root.itertext())
    assert trace_graph.timeline(example(path.stem)) == drawn


def test_labels_name_the_rule_that_fired() -> None:
    run = trace(raw([
        event("s", 0, "spawn", "lead", to="w", role="worker"),
        event("d", 1, "orchestrator_decision", "lead", to="w"),
        event("down", 2, "message", "lead", to="w"),
        event("i", 3, "inference", "w"),
        event("side", 4, "message", "w", to="x"),
        event("r", 5, "return", "w", to="lead"),
        event("k", 6, "despawn", "lead", to="w"),
        event("j", 7, "inference", "lead"),
        event("g", 8, "safety_event", "guard", status="cancelled"),
        event("old", 9, "return", "x", sub_decisions=["communicate"], sub_decision_rules={"communicate": "by-hand"}),
        event("own", 9, "return", "x", sub_decisions=["stop"]),
    ], "r>j:return"))  # fmt: skip

    assert labels(run, steps(run)) == labels(run)
    assert [(run.events[one.event].id, one.decision.value, one.rule) for one in labels(run)] == [
        ("s", "spawn", "spawn"),
        ("s", "delegate", "spawn-target"),
        ("d", "delegate", "decide-target"),
        ("down", "delegate", "send-down"),
        ("side", "communicate", "message"),
        ("k", "stop", "end-other"),
        ("j", "aggregate", "join"),
        ("j", "stop", "last-step"),
        ("g", "stop", "abort"),
        ("old", "communicate", "by-hand"),
        ("own", "stop", "given"),
    ]


def test_a_step_that_leads_to_an_act_is_no_stop() -> None:
    run = trace(raw([
        event("plan", 0, "inference", "lead"),
        event("s", 1, "spawn", "lead", to="w"),
        event("a", 2, "inference", "w", parent_agent="lead"),
        event("merge", 3, "inference", "other"),
    ], "plan>s s>a:spawn a>merge"))  # fmt: skip

    stops = [run.events[one.event].id for one in labels(run) if one.decision.value == "stop"]

    assert stops == ["merge"]


def test_every_labelling_rule_fires_somewhere_in_the_tests() -> None:
    fired = {"stop", "aggregate", *(one.rule for path in EXAMPLES for one in labels(example(path.stem)))}

    assert fired | {"spawn-target", "decide-target", "send-down", "message", "end-other", "join", "abort"} >= set(RULES)


def test_a_labelled_trace_is_valid_and_labelling_it_again_changes_nothing(tmp_path: Path) -> None:
    first, second = tmp_path / "one.json", tmp_path / "two.json"
    assert run_corpus("trace", "label", str(TRACES / "swarm.json"), "-o", str(first)).code == 0
    assert run_corpus("trace", "validate", str(first)).code == 0
    assert run_corpus("trace", "label", str(first), "-o", str(second)).code == 0
    assert second.read_bytes() == first.read_bytes()
    assert run_corpus("trace", "label", str(first), "-o", str(second)).code == 3

    labelled = json.loads(first.read_text(encoding="utf-8"))
    assert labelled["events"][-1]["sub_decisions"] == ["stop"]
    assert labelled["events"][-1]["sub_decision_rules"] == {"stop": "stop"}


PUBLISHED = {
    "type": "object",
    "required": ["trace_id", "task_id", "events", "edges", "rewards", "costs"],
    "additionalProperties": False,
    "properties": {
        "trace_id": {"type": "string", "minLength": 1},
        "task_id": {"type": "string", "minLength": 1},
        "system": {"type": "string"},
        "topology": {"enum": ["centralized", "planner_executor_critic", "debate", "swarm", "hierarchical", "harness",
                              "mixed", "unknown"]},
        "events": {"type": "array", "minItems": 1, "items": {
            "type": "object",
            "required": ["id", "t", "type", "agent"],
            "properties": {
                "id": {"type": "string", "minLength": 1},
                "t": {"type": "number", "minimum": 0},
                "type": {"enum": ["orchestrator_decision", "spawn", "despawn", "message", "tool_call", "tool_result",
                                  "return", "aggregate", "human_intervention", "safety_event"]},
                "agent": {"type": "string", "minLength": 1},
                **{name: {"type": "string"} for name in ("role", "from", "to", "tool", "content_ref")},
                "trusted": {"type": "boolean"},
            },
        }},
        "edges": {"type": "array", "items": {
            "type": "object",
            "required": ["src", "dst", "type"],
            "additionalProperties": False,
            "properties": {
                "src": {"type": "string", "minLength": 1},
                "dst": {"type": "string", "minLength": 1},
                "type": {"enum": ["temporal", "causal", "spawn", "message", "tool_dependency", "return", "aggregate",
                                  "safety_flow"]},
            },
        }},
        "rewards": {"type": "object", "additionalProperties": {"type": "number"}},
        "metrics": {"type": "object", "additionalProperties": {"type": "number"}},
        "costs": {
            "type": "object",
            "required": ["tokens", "wall_clock_s"],
            "properties": {name: {"type": "number", "minimum": 0}
                           for name in ("tokens", "wall_clock_s", "tool_calls", "messages")},
            "additionalProperties": {"type": "number"},
        },
    },
}  # fmt: skip
"""The published schema, restated from its description."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_published_form_follows_the_published_schema_and_ours(path: Path) -> None:
    result = run_corpus("trace", "export", str(path), "--profile", "published")

    if path.stem == "mixed":
        assert (result.code, result.stdout) == (2, "")
        assert "costs.tokens and costs.wall_clock_s cannot be left unknown" in result.stderr
        return
    written = json.loads(result.stdout)
    assert list(Draft202012Validator(PUBLISHED).iter_errors(written)) == []
    trace(written)


def test_edges_over_what_the_published_form_lacks_are_bridge() -> None:
    costs = {"costs": {"tokens": 0, "wall_clock_s": 9}}
    run = raw([event("a", 0, "message", "x"), event("b", 1, "inference", "x"), event("c", 2, "inference", "x"),
               event("d", 3, "return", "x")], "a>b b>c c>d:return a>d", **costs)  # fmt: skip

    assert publish(run)["edges"] == [
        {"src": "a", "dst": "d", "type": "return"},
        {"src": "a", "dst": "d", "type": "causal"},
    ]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_full_export_says_the_same_and_keeps_unknown_fields(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    document["events"][0]["of_my_own"] = {"any": ["thing"]}

    assert json.loads(text(document)) == document
    assert run_corpus("trace", "export", str(path)).stdout == path.read_text(encoding="utf-8")


def test_commands_for_one_trace_refuse_several(tmp_path: Path) -> None:
    line = json.dumps(json.loads((TRACES / "swarm.json").read_text(encoding="utf-8")))
    (tmp_path / "two.jsonl").write_text(f"{line}\n{line}\n", encoding="utf-8")
    result = run_corpus("trace", "replay", str(tmp_path / "two.jsonl"))

    assert result.code == 2
    assert "holds 2 traces, and one is wanted" in result.stderr


def test_nothing_is_derived_from_a_trace_with_errors(tmp_path: Path) -> None:
    broken = raw([event("a", 0, "inference", "x"), event("b", 1, "inference", "x")], "a>b b>a")
    (tmp_path / "t.json").write_text(json.dumps(broken), encoding="utf-8")

    for command in ("show", "replay", "measure", "label", "credit", "graph", "export"):
        result = run_corpus("trace", command, str(tmp_path / "t.json"))
        assert (result.code, result.stdout) == (1, "")
        assert "T203" in result.stderr


def test_an_id_longer_than_the_line_goes_on_in_further_lines() -> None:
    run = trace(raw([event("a-very-long-name-of-an-event-漢字漢字漢字", 0, "inference", "x"),
                     event("b" * 22, 1, "inference", "x")]))  # fmt: skip

    shown = [plain(state_lines(state, {}, run.clock.unit, 40)).splitlines() for state in replay(run)]
    assert shown == [
        [
            "    1        0 s  a-very-long-name-of-a",
            "                  n-event-漢字漢字漢字",
            "                  x: inference",
        ],
        ["    2        1 s  bbbbbbbbbbbbbbbbbbbbbb", "                  x: inference"],
    ]


def test_a_graph_is_written_to_a_new_file_only(tmp_path: Path) -> None:
    path = tmp_path / "swarm.svg"
    words = ["trace", "graph", str(TRACES / "swarm.json"), "--format", "svg"]
    result = run_corpus(*words, "-o", str(path))

    assert result == (0, "", f"wrote {path}\n")
    assert path.read_text(encoding="utf-8") == run_corpus(*words).stdout
    again = run_corpus(*words, "-o", str(path))
    assert (again.code, again.stdout) == (3, "")
    assert "exists already" in again.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["label", "-o", "new.json", "--events"], "--output and --events contradict each other"),
        (["label", "-o", "new.json", "--format", "json"], "--output and --format contradict each other"),
        (["measure", "--ledger", "agent", "--only", "worked"], "--ledger and --only contradict each other"),
    ],
)
def test_options_that_would_go_unheard_are_refused(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run_corpus("trace", *words, str(TRACES / "swarm.json"))

    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_measures_named_twice_are_given_once() -> None:
    words = [
        "trace",
        "measure",
        str(TRACES / "swarm.json"),
        str(TRACES / "debate.json"),
        "--only",
        "agents,worked,agents",
    ]

    header, *rows = run_corpus(*words, "--format", "csv").stdout.splitlines()
    assert header == "trace,agents,worked,worked_at_least,task_id,system,format,file"
    assert [row.count(",") for row in rows] == [7, 7]


SPENT = [
    event("a", 0, "inference", "x", role="judge", tokens={"input": 5, "output": 2}, cost_usd=0.123456789),
    event("b", 1, "inference", "y"),
]


def spending(folder: Path) -> list[str]:
    """The files of two traces with the same spending."""
    for name in ("one", "two"):
        (folder / f"{name}.json").write_text(json.dumps(raw(SPENT, trace_id=name)), encoding="utf-8")
    return [str(folder / "one.json"), str(folder / "two.json")]


def test_ledgers_of_several_traces_are_told_apart_by_programs(tmp_path: Path) -> None:
    words = ["trace", "measure", *spending(tmp_path), "--ledger", "role", "--format"]
    entries = [
        {"name": "judge", "events": 1, "input": 5, "output": 2, "cache_read": None, "cache_write": None,
         "reasoning": None, "total": 7, "without_tokens": 0, "cost_usd": 0.123456789, "at_least": False},
        {"name": None, "events": 1, "input": None, "output": None, "cache_read": None, "cache_write": None,
         "reasoning": None, "total": None, "without_tokens": 1, "cost_usd": None, "at_least": True},
    ]  # fmt: skip

    assert json.loads(run_corpus(*words, "json").stdout) == {
        "schema": "orchtrace-corpus/trace-ledger",
        "version": 1,
        "by": "role",
        "traces": [{"trace_id": name, "at_least": True, "entries": entries} for name in ("one", "two")],
    }
    assert run_corpus(*words, "csv").stdout == (
        "trace,role,events,input,output,cache_read,cache_write,reasoning,total,without_tokens,cost_usd,at_least,"
        "trace_at_least\n"
        "one,judge,1,5,2,,,,7,0,0.123456789,False,True\n"
        "one,,1,,,,,,,1,,True,True\n"
        "two,judge,1,5,2,,,,7,0,0.123456789,False,True\n"
        "two,,1,,,,,,,1,,True,True\n"
    )
    assert run_corpus(*words, "table").stdout.count("tokens and cost by role\n") == 2


def test_a_ledger_wider_than_the_terminal_has_a_row_for_each_figure() -> None:
    entries = ledger(trace(raw(SPENT)), "role")

    assert plain(lines(ledger_table("t", "role", entries, 40, is_least=False), 40)) == (
        "t: tokens and cost by role\n"
        "role       figure             value\n"
        "judge      events                 1\n"
        "           input                  5\n"
        "           output                 2\n"
        "           total                  7\n"
        "           without tokens         0\n"
        "           cost_usd        0.123457\n"
        "(no role)  events                 1\n"
        "           without tokens         1\n"
        "Only what is known. Reasoning is a part\n"
        "of output. Copied context is not\n"
        "counted.\n"
    )
    narrow, wide = (ledger_table("t", "role", entries, width, is_least=False) for width in (120, None))
    assert narrow == wide
