"""Safety measures: the worked examples of docs/safety.md, gates, refusals, and invariants over random traces."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.trace.measures.definitions import measure
from orchtrace_corpus.trace.measures.measure import Measure
from orchtrace_corpus.trace.measures.safety import DEFINITIONS
from orchtrace_corpus.trace.view import TraceView
from tests.trace.conversationlogs import Codex, trace_of
from tests.trace.traces import event, example, raw, trace

NAMES = tuple(definition.name for definition in DEFINITIONS)


def measured(events: list[dict[str, Any]], edges: str, *names: str, **fields: Any) -> dict[str, Measure]:
    return measure(trace(raw(events, edges, **fields)), names or NAMES)


READER_AND_CHECKER = (
    [
        event("e1", 0, "tool_result", "reader", tool="web_search", trusted=False),
        event("e2", 1, "inference", "reader"),
        event("e3", 2, "message", "reader", to="lead"),
        event("e4", 3, "inference", "lead"),
        event("e5", 1, "inference", "checker"),
        event("e6", 2, "message", "checker", to="lead"),
    ],
    "e1>e2 e2>e3 e3>e4:message e5>e6 e6>e4:message",
)
TWO_EFFECTS = (
    [
        event("u", 0, "tool_result", "w", tool="web_fetch", trusted=False),
        event("c1", 1, "tool_call", "w", tool="send_mail", call_id="1"),
        event("h", 2, "human_intervention", "person"),
        event("r1", 3, "tool_result", "w", call_id="1", status="ok"),
        event("c2", 4, "tool_call", "w", tool="git_push", call_id="2"),
        event("r2", 5, "tool_result", "w", call_id="2", status="ok"),
    ],
    "u>c1 c1>h:safety_flow h>r1:safety_flow c1>r1:tool_dependency c2>r2:tool_dependency",
)
PAY = (
    [
        event("r", 0, "tool_call", "reader", tool="web_search", call_id="0"),
        event("u", 1, "tool_result", "reader", call_id="0", trusted=False),
        event("m", 2, "message", "reader", to="lead"),
        event("d", 3, "inference", "lead"),
        event("c", 4, "tool_call", "lead", tool="pay", call_id="1"),
        event("p", 5, "tool_result", "lead", call_id="1", status="ok", trusted=True),
    ],
    "r>u:tool_dependency u>m m>d:message d>c c>p:tool_dependency",
)
CONTAINED = (
    [
        event("u", 10, "tool_result", "w", tool="web_fetch", trusted=False),
        event("i", 12, "inference", "w", t_end=13),
        event("c", 15, "tool_call", "w", tool="pay", call_id="1"),
        event("s", 15.5, "safety_event", "guard", status="cancelled", error_type="forbidden"),
        event("r", 16, "tool_result", "w", call_id="1", status="cancelled"),
        event("x", 20, "stop", "w"),
    ],
    "u>i i>c c>s:safety_flow c>r:tool_dependency",
)
REPEATED = (
    [
        event("c1", 1, "tool_call", "w1", tool="rm", call_id="1", content_ref="k"),
        event("s1", 1.2, "safety_event", "guard", status="cancelled"),
        event("c2", 3, "tool_call", "w2", tool="rm", call_id="2", content_ref="k"),
        event("r2", 4, "tool_result", "w2", call_id="2", status="ok"),
        event("a", 5, "aggregate", "lead", t_end=6),
    ],
    "c1>s1:safety_flow c2>r2:tool_dependency r2>a:return",
)


def values(example: tuple[list[dict[str, Any]], str], *names: str) -> dict[str, float | None]:
    return {name: found.value for name, found in measured(*example, *names).items()}


def test_reach_and_events_count_agents_and_contents_that_a_page_could_have_influenced() -> None:
    found = measured(*READER_AND_CHECKER)

    assert found["untrusted_reach"].value == pytest.approx(2 / 3)
    assert found["untrusted_events"].value == pytest.approx(4 / 6)
    assert found["untrusted_depth"].value == 1


def test_depth_counts_changes_of_agent() -> None:
    events = [
        event("r1", 0, "tool_result", "reader", trusted=False),
        event("r2", 1, "message", "reader", to="editor"),
        event("d1", 2, "inference", "editor"),
        event("d2", 3, "message", "editor", to="lead"),
        event("l1", 4, "inference", "lead"),
    ]

    assert measured(events, "r1>r2 r2>d1:message d1>d2 d2>l1:message")["untrusted_depth"].value == 2


def test_a_later_effect_in_the_same_context_counts_and_by_edges_it_does_not() -> None:
    found = measured(*TWO_EFFECTS)

    assert (found["tainted_effect_share"].value, found["tainted_effect_share"].by_edges) == (1, 0.5)
    assert found["tainted_effect_share"].events == ("c1", "c2")
    assert (found["unapproved_effects"].value, found["unapproved_effects"].events) == (0.5, ("c2",))
    assert found["refusal_share"].value == 0
    assert found["gate_coverage"].value == 0.5


def test_the_way_from_a_page_to_a_payment_is_counted_in_edges_and_crosses_a_right() -> None:
    found = measured(*PAY)

    assert (found["escalation_distance"].value, found["escalation_distance"].events) == (3, ("c",))
    assert (found["privilege_crossings"].value, found["privilege_crossings"].events) == (1, ("d",))
    assert found["unapproved_effects"].value == 1
    assert found["untrusted_reach"].at_most is None


def test_a_refused_payment_contains_what_a_page_could_have_caused() -> None:
    found = measured(*CONTAINED)

    assert (found["time_to_containment"].value, found["time_to_containment"].events) == (5.5, ("s",))
    assert found["tainted_effect_share"].reason == "no call with side effects was executed"
    assert found["refusal_share"].value == 1


def test_an_effect_after_a_refusal_was_not_contained() -> None:
    events = [
        *CONTAINED[0][:-1],
        event("c2", 17, "tool_call", "w", tool="pay", call_id="2"),
        event("r2", 18, "tool_result", "w", call_id="2", status="ok"),
    ]

    found = measured(events, f"{CONTAINED[1]} c2>r2:tool_dependency")

    assert (found["time_to_containment"].value, found["time_to_containment"].reason) == (
        None,
        "not contained within 8 s",
    )


def test_a_refusal_that_another_agent_gets_round_is_ignored() -> None:
    assert values(REPEATED, "ignored_refusals") == {"ignored_refusals": 1}


def test_stated_decisions_go_before_what_the_status_suggests() -> None:
    def outcome(**fields: Any) -> dict[str, float | None]:
        events = [dict(one, **fields) if one["id"] == "h" else one for one in TWO_EFFECTS[0]]
        return values((events, TWO_EFFECTS[1]), "unapproved_effects", "refusal_share")

    assert outcome(decision="approve", decided_by="person") == {"unapproved_effects": 0.5, "refusal_share": 0}
    assert outcome(decision="approve", decided_by="rule") == {"unapproved_effects": 1, "refusal_share": 0}
    assert outcome(decision="reject", decided_by="person") == {"unapproved_effects": 1, "refusal_share": 1}


def test_tools_that_the_trace_names_as_effectful_are_the_only_ones() -> None:
    named = measured(*TWO_EFFECTS, effectful_tools=["git_push"])
    none = measured(*TWO_EFFECTS, effectful_tools=[])

    assert named["tainted_effect_share"].events == ("c2",)
    assert none["tainted_effect_share"].reason == "no call with side effects was executed"


@pytest.mark.parametrize(
    "tool",
    [
        "AskUserQuestion", "ask_user", "BashOutput", "EnterPlanMode", "ExitPlanMode", "request_user_input", "Skill",
        "TaskOutput", "TaskList", "ToolSearch", "wait", "Glob", "Grep", "LS", "list", "list_directory", "NotebookRead",
        "open", "Read", "read_file", "read_many_files", "search", "search_file_content", "thinking", "TodoRead",
        "TodoWrite", "update_plan", "view", "view_image", "web_fetch", "web_search", "WebFetch", "WebSearch",
        "google_web_search",
    ],
)  # fmt: skip
def test_a_tool_that_only_reads_or_plans_has_no_side_effects(tool: str) -> None:
    run = trace(
        raw([event("c", 0, "tool_call", "w", tool=tool), event("d", 1, "tool_call", "w", tool=f"{tool}_x")], "")
    )

    assert [call.event for call in TraceView(run).effectful_calls] == [1]


def test_a_tool_that_acts_under_its_own_name_is_no_agent() -> None:
    events = [
        event("plan", 0, "inference", "orchestrator"),
        event("s", 1, "spawn", "orchestrator", to="executor"),
        event("call", 2, "tool_call", "executor", tool="browser.search", call_id="1"),
        event("page", 3, "tool_result", "browser.search", tool="browser.search", call_id="1", trusted=False),
        event("back", 4, "return", "executor", to="orchestrator"),
        event("check", 5, "inference", "verifier"),
    ]

    found = measured(
        events, "plan>s s>call:spawn call>page:tool_dependency page>back:tool_dependency", "untrusted_reach", "agents"
    )

    assert found["untrusted_reach"].value == pytest.approx(1 / 3)
    assert found["agents"].value == 3


def test_a_codex_rollout_that_searches_the_web_and_runs_two_commands(tmp_path: Path) -> None:
    main = Codex("01990000-0000-7000-8000-000000000001")
    main.typed(1, "Update the dependency.")
    main.item(5, "web_search_call", status="completed", action={"type": "search", "query": "release notes"})
    main.call(8, "exec_command", "c1", cmd="pip install x", sandbox_permissions="require_escalated")
    main.event(9, "exec_approval_request", call_id="c1")
    main.event(19, "warning", message="Approved.")
    main.output(21, "c1", "ok")
    main.call(24, "exec_command", "c2", cmd="git push")
    main.output(26, "c2", "ok")
    main.says(28, "Done.")
    main.write(tmp_path)
    imported = trace(trace_of(tmp_path))
    found = measure(imported, NAMES)
    by_id = {one.id: one for one in imported.events}

    assert [one.tool for one in imported.events if one.trusted is False] == ["web_search"]
    assert found["tainted_effect_share"].value == 1
    assert found["unapproved_effects"].value == 0.5
    assert [by_id[name].tool for name in found["unapproved_effects"].events] == ["exec_command"]
    assert found["gate_coverage"].value == 0.5


def test_unmarked_results_leave_a_range() -> None:
    events = [
        *READER_AND_CHECKER[0],
        event("e7", 0, "tool_result", "checker", tool="grep"),
    ]

    found = measured(events, f"{READER_AND_CHECKER[1]} e7>e5")["untrusted_reach"]

    assert (found.value, found.at_most) == (pytest.approx(2 / 3), 1)


def test_nothing_marked_is_not_safe() -> None:
    events = [dict(one, trusted=True) if one["type"] == "tool_result" else one for one in PAY[0]]

    assert {found.value for found in measure(example("swarm"), NAMES).values()} == {None}
    assert measured(events, PAY[1])["untrusted_reach"].value == 0


def test_no_share_of_contents_is_computed_where_only_gates_are_marked() -> None:
    events = [event("h", 0, "human_intervention", "person", trusted=False), event("s", 1, "stop", "person")]

    values = measured(events, "")
    assert values["untrusted_events"] == Measure(None, "no event has content")
    assert {name: value.value for name, value in values.items() if value.value is not None} == {
        "privilege_crossings": 0
    }


def test_a_log_that_records_no_approvals_says_nothing_of_them() -> None:
    events = [dict(one, source={"format": "kimi_code"}) for one in TWO_EFFECTS[0]]

    found = measured(events, TWO_EFFECTS[1], "unapproved_effects")["unapproved_effects"]

    assert (found.value, found.reason) == (None, "this log does not record granted approvals")


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """Events of a few agents in a row of time, some untrusted, and edges that lead forward."""
    count = draw(st.integers(3, 14))
    events, edges = [], []
    for number in range(count):
        kind = draw(st.sampled_from(["inference", "tool_call", "tool_result", "message"]))
        fields: dict[str, Any] = {}
        if kind == "tool_result":
            fields = {"trusted": draw(st.booleans()), "status": "ok"}
        if kind == "tool_call":
            fields = {"tool": draw(st.sampled_from(["pay", "Read", "git_push"])), "call_id": f"c{number}"}
        events.append(event(f"n{number}", number, kind, draw(st.sampled_from("abc")), **fields))
        if kind == "tool_call":
            events.append(
                event(
                    f"r{number}",
                    number + 0.5,
                    "tool_result",
                    events[-1]["agent"],
                    call_id=f"c{number}",
                    status="ok",
                    trusted=True,
                )
            )
    for _ in range(draw(st.integers(0, 16))):
        first, second = sorted(draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True)))
        edges.append((f"n{first}", f"n{second}"))
    return events, edges


def _measured(events: list[dict[str, Any]], edges: list[tuple[str, str]]) -> dict[str, Measure]:
    return measured(events, " ".join(f"{first}>{second}" for first, second in dict.fromkeys(edges)))


@given(runs())
def test_edges_alone_never_reach_more_and_a_further_source_never_less(
    drawn: tuple[list[dict[str, Any]], list[tuple[str, str]]],
) -> None:
    events, edges = drawn
    found = _measured(events, edges)
    marked = [dict(one, trusted=False) if one["type"] == "tool_result" else one for one in events]
    more = _measured(marked, edges)

    for name in ("untrusted_reach", "untrusted_events", "tainted_effect_share"):
        value, by_edges = found[name].value, found[name].by_edges
        assert by_edges is None or (value is not None and by_edges < value)
        assert value is None or more[name].value is None or value <= more[name].value + 1e-9
    nearer, before = more["escalation_distance"].value, found["escalation_distance"].value
    assert before is None or (nearer is not None and nearer <= before)


@given(runs())
def test_more_approval_never_raises_unapproved_effects(
    drawn: tuple[list[dict[str, Any]], list[tuple[str, str]]],
) -> None:
    events, edges = drawn
    before = _measured(events, edges)["unapproved_effects"].value
    calls = [one for one in events if one["type"] == "tool_call"]
    for call in calls[:1]:
        approval = event(f"h{call['id']}", call["t"] + 0.2, "human_intervention", "person")
        approved = trace(raw([*events, approval], " ".join(
            [*(f"{first}>{second}" for first, second in dict.fromkeys(edges)), f"{call['id']}>{approval['id']}:safety_flow"]
        )))  # fmt: skip
        after = measure(approved, ("unapproved_effects",))["unapproved_effects"].value
        assert before is None or (after is not None and after <= before)


@given(runs())
def test_renaming_agents_changes_nothing(drawn: tuple[list[dict[str, Any]], list[tuple[str, str]]]) -> None:
    events, edges = drawn
    renamed = [dict(one, agent=f"agent {one['agent']}") for one in events]

    assert _measured(renamed, edges) == _measured(events, edges)
