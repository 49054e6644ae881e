"""What went wrong between agents: each finding on a run made for it, whole; and near misses, which are no findings."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from orchtrace_corpus.base.text.layout import plain
from orchtrace_corpus.trace.diagnosis import diagnose
from orchtrace_corpus.trace.diagnosis.contexts import WindowSource, find_window
from orchtrace_corpus.trace.diagnosis.findings import FindingKind, find
from orchtrace_corpus.trace.diagnosis.values import Diagnosis, Origin
from orchtrace_corpus.trace.measures.definitions import measure
from orchtrace_corpus.trace.render.doctor import as_data, page
from orchtrace_corpus.trace.rewards import FUNCTIONS
from orchtrace_corpus.trace.rewards.terms import Team
from orchtrace_corpus.trace.view import TraceView
from tests.conftest import ROOT
from tests.trace import conversationlogs
from tests.trace.conversationlogs import Claude, Codex, text, use
from tests.trace.traces import documents, event, raw, trace

CASES = ROOT / "tests" / "data" / "findings"


def diagnosis(path: Path) -> Diagnosis:
    """The diagnosis of a trace, or of the log in a folder."""
    document = conversationlogs.trace_of(path) if path.is_dir() else json.loads(path.read_text("utf-8"))
    return diagnose(trace(document), Origin("Claude Code transcripts" if path.is_dir() else "Trace"))


@pytest.mark.parametrize("kind", FindingKind, ids=lambda kind: kind.value)
def test_each_finding_on_a_run_that_has_it(kind: FindingKind) -> None:
    path = CASES / (kind.value if (CASES / kind.value).is_dir() else f"{kind.value}.json")
    found = diagnosis(path)

    assert {one.kind for one in found.team_findings.findings} == {kind}
    assert plain(page(found, (80, 40))) == (CASES / f"{kind.value}.txt").read_text("utf-8")
    figures = {name: as_data(found)[name] for name in ("findings", "waits", "contexts")}
    assert figures == json.loads((CASES / f"{kind.value}.figures.json").read_text("utf-8"))


def kinds(document: dict[str, Any]) -> list[str]:
    return [one.kind.value for one in find(TraceView(trace(document))).findings]


def infer(name: str, begin: float, end: float, agent: str, kind: str = "inference", **more: Any) -> dict[str, Any]:
    return event(name, begin, kind, agent, t_end=end, **more)


TEAM = [
    infer("plan", 0, 4, "lead", "orchestrator_decision"),
    event("s", 4, "spawn", "lead", to="child"),
    infer("c1", 4, 10, "child"),
]
BACK = [event("r", 10, "return", "child", to="lead"), infer("sum", 10, 20, "lead", "aggregate")]
EDGES = "plan>s s>c1:spawn c1>r r>sum:return "
PEOPLE = [{"id": "ann", "kind": "human"}]


def test_of_a_log_that_is_cut_off_an_agent_without_a_return_is_no_saving() -> None:
    whole = raw(TEAM, "plan>s s>c1:spawn")
    cut = {**whole, "import_report": {"dropped": {"cut off at the end": {"number": 1, "for_example": ["a:9"]}}}}
    told, told_of_cut = (" ".join(plain(page(diagnose(trace(one)), (80, 40))).split()) for one in (whole, cut))

    assert "Findings 1 agent spawned that never returned (child): 6 s; s at 4 s." in told
    assert told.endswith("Saving agents that never returned: up to 6 s of 10 s.")
    assert "Findings 1 agent spawned that never returned, as far as the log goes (child): 6 s; s at 4 s." in told_of_cut
    assert told_of_cut.endswith("Saving model calls of child: up to 6 s of 10 s.")


def test_the_run_that_the_near_misses_are_made_of_has_no_finding() -> None:
    assert kinds(raw([*TEAM, *BACK], EDGES)) == []


@pytest.mark.parametrize(
    "more",
    [
        [event("m", 8, "message", "lead", to="child"), infer("c2", 8, 9, "child")],  # it took a step
        [event("m", 8, "message", "child", to="ann")],  # people read without a trace
        [event("m", 8, "message", "lead")],  # to nobody in particular
        [event("m", 8, "message", "lead", to="stranger")],  # of whom the log shows nothing
        [event("m", 11, "message", "lead", to="child"), event("d", 12, "despawn", "lead", to="child")],  # goodbye
    ],
    ids=["read", "to a person", "to all", "to an agent without a record", "goodbye"],
)
def test_a_message_that_somebody_may_have_read_is_no_finding(more: list[dict[str, Any]]) -> None:
    assert kinds(raw([*TEAM, *more, *BACK], EDGES, agents=PEOPLE)) == []


def test_a_message_that_came_too_late_or_did_not_arrive_is_one() -> None:
    late = event("m", 12, "message", "lead", to="child")
    lost = event("m", 2, "message", "lead", to="child", status="error")

    assert kinds(raw([*TEAM, *BACK, late], EDGES)) == ["unread_message"]
    assert kinds(raw([*TEAM, *BACK, lost], EDGES)) == ["unread_message"]


def test_a_message_within_the_skew_of_the_clocks_may_have_been_read() -> None:
    just_late = event("m", 4.4, "message", "lead", to="child")

    assert kinds(raw([*TEAM, *BACK, just_late], EDGES)) == ["unread_message"]
    assert kinds(raw([*TEAM, *BACK, just_late], EDGES, clock={"unit": "s", "skew": 0.5})) == []


def test_a_result_may_be_used_without_an_edge_where_no_return_has_one() -> None:
    assert kinds(raw([*TEAM, *BACK], "plan>s s>c1:spawn c1>r plan>sum")) == []
    assert kinds(raw([*TEAM, BACK[0]], "plan>s s>c1:spawn c1>r")) == ["unused_result"]


def test_a_return_that_failed_is_told_as_an_error_and_not_as_a_finding() -> None:
    back = event("r", 10, "return", "child", to="lead", status="error")

    assert kinds(raw([*TEAM, back], "plan>s s>c1:spawn c1>r")) == []


@pytest.mark.parametrize(
    ("more", "edges"),
    [
        ([event("m", 10, "message", "child", to="lead"), infer("l", 10, 12, "lead")], "c1>m m>l:message"),
        ([infer("l", 10, 12, "lead")], "c1>l"),
        ([event("stop", 10, "stop", "child")], "c1>stop"),
    ],
    ids=["message", "edge", "ends the run, as behind a handoff"],
)
def test_an_agent_whose_work_reaches_another_or_that_ends_by_itself_did_return(
    more: list[dict[str, Any]], edges: str
) -> None:
    assert kinds(raw([*TEAM, *more], f"plan>s s>c1:spawn {edges}")) == []
    assert kinds(raw(TEAM, "plan>s s>c1:spawn")) == ["no_return"]


def test_an_agent_that_was_spawned_again_and_returned_before_did_not_return_since() -> None:
    again = [event("s2", 21, "spawn", "lead", to="child"), infer("c2", 21, 30, "child", tokens={"input": 5})]
    found = find(TraceView(trace(raw([*TEAM, *BACK, *again], EDGES + "sum>s2 s2>c2:spawn")))).findings

    assert [(one.kind.value, one.agents, one.seconds, one.tokens) for one in found] == [
        ("no_return", ("child", "lead"), 9.0, 5)
    ]


def searches(*calls: tuple[str, str, str, str]) -> dict[str, Any]:
    """Two siblings that call tools: agent, tool, content, status."""
    events = [
        *TEAM,
        event("s2", 4, "spawn", "lead", to="other"),
        infer("o1", 4, 10, "other"),
        event("r2", 10, "return", "other", to="lead"),
        *BACK,
    ]
    edges = EDGES + "plan>s2 s2>o1:spawn o1>r2 r2>sum:return "
    for number, (agent, tool, content, status) in enumerate(calls):
        given = {"content_ref": content} if content else {}
        events.append(event(f"t{number}", 5 + number, "tool_call", agent, tool=tool, call_id=f"c{number}", **given))
        events.append(event(f"a{number}", 5.5 + number, "tool_result", agent, tool=tool, call_id=f"c{number}", status=status))  # fmt: skip
        edges += f"t{number}>a{number}:tool_dependency "
    return raw(events, edges)


@pytest.mark.parametrize(
    "calls",
    [
        (("child", "search", "x", "ok"), ("other", "search", "y", "ok")),
        (("child", "search", "x", "ok"), ("other", "fetch", "x", "ok")),
        (("child", "search", "x", "ok"), ("child", "search", "x", "ok")),
        (("child", "search", "x", "error"), ("other", "search", "x", "ok")),
        (("child", "list", "", "ok"), ("other", "list", "", "ok")),
        (("child", "search", "x", "ok"), ("lead", "search", "x", "ok")),
        (("child", "complete_task", "x", "ok"), ("other", "complete_task", "x", "ok")),
    ],
    ids=[
        "other arguments",
        "other tool",
        "one agent",
        "the first failed",
        "no arguments",
        "no siblings",
        "a result is handed in",
    ],
)
def test_calls_that_do_not_repeat_a_siblings_work_are_no_finding(calls: tuple[Any, ...]) -> None:
    assert kinds(searches(*calls)) == []


def test_handing_in_the_same_result_counts_as_no_repetition() -> None:
    calls = [("child", "submit", "x", "ok"), ("other", "submit", "x", "ok"), ("other", "search", "y", "ok")]
    run = trace(searches(*calls))

    assert measure(run, ["duplicate_call_rate"])["duplicate_call_rate"].value == 0
    assert FUNCTIONS["tool_repeats"].compute(Team(TraceView(run)), {"tools": ()}).value == 0


def test_a_call_that_a_sibling_made_before_costs_its_own_time_once() -> None:
    calls = ("child", "search", "x", "ok"), ("other", "search", "x", "ok"), ("other", "search", "x", "ok")
    (found,) = find(TraceView(trace(searches(*calls)))).findings

    assert (found.kind, found.agents, found.seconds, found.tool) == (
        FindingKind.REPEATED_CALL, ("child", "other"), 0.5, "search"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("second", "more", "expected"),
    [
        (30.0, [], ["idle_lead"]),
        (10.5, [], []),  # less than a second
        (30.0, [infer("l", 10.2, 29.7, "lead")], []),  # the lead works meanwhile
        (30.0, [infer("o", 10, 30, "other")], []),  # somebody of the team works
        (30.0, [event("h", 10, "human_intervention", "ann", t_end=30)], []),  # a person is waited for
    ],
    ids=["idle", "a moment", "the lead works", "another works", "waits for a person"],
)
def test_a_lead_idles_where_its_team_is_stuck_and_nobody_works(
    second: float, more: list[dict[str, Any]], expected: list[str]
) -> None:
    spawn = [event("s2", 4, "spawn", "lead", to="other"), event("stop", 60, "stop", "other")] if more else []
    goes_on = [
        infer("c2", second, 40, "child"),
        event("r", 40, "return", "child", to="lead"),
        infer("sum", 40, 50, "lead", "aggregate"),
    ]
    edges = "plan>s s>c1:spawn c1>c2 c2>r r>sum:return" + (" plan>s2" if spawn else "")

    assert kinds(raw([*TEAM, *spawn, *more, *goes_on], edges, agents=PEOPLE)) == expected


def test_a_team_that_has_reported_is_not_blocked() -> None:
    message = event("m", 10, "message", "child", to="lead")
    later = [infer("c2", 40, 50, "child"), event("r", 50, "return", "child", to="lead"), infer("l", 50, 55, "lead")]
    answer = [infer("l0", 38, 39, "lead"), event("m2", 39, "message", "lead", to="child")]
    edges = "plan>s s>c1:spawn c1>m m>l0:message l0>m2 m2>c2:message c2>r r>l:return"

    assert kinds(raw([*TEAM, message, *answer, *later], edges)) == []


def test_waits_are_by_edge_from_the_end_of_the_own_work_to_the_event_that_released_it() -> None:
    found = find(TraceView(trace(raw([*TEAM, *BACK], EDGES)))).waits

    assert [(one.agent, one.awaited, one.seconds) for one in found] == [("lead", "child", 6.0)]


def test_who_works_or_has_returned_waits_for_nobody() -> None:
    busy = [infer("l", 4, 10, "lead")]
    again = [event("s2", 30, "spawn", "lead", to="child"), infer("c2", 31, 33, "child"),
             event("r2", 33, "return", "child", to="lead"), infer("l2", 33, 34, "lead")]  # fmt: skip
    edges = EDGES + "sum>s2 s2>c2:spawn c2>r2 r2>l2:return"
    found = find(TraceView(trace(raw([*TEAM, *busy, *BACK, *again], edges)))).waits

    assert [(one.agent, one.awaited, one.seconds) for one in found] == [("lead", "child", 3.0)]


def test_a_window_is_known_from_the_log_else_from_the_table_else_not() -> None:
    assert find_window("gpt-5-codex", 10, {"gpt-5-codex": 272_000}) == (272_000, WindowSource.LOG)
    assert find_window("claude-sonnet-4-5-20250929", 10, {}) == (200_000, WindowSource.TABLE)
    assert find_window("anthropic/claude-sonnet-4-5@20250929", 10, {}) == (200_000, WindowSource.TABLE)
    assert find_window("gpt-4.1-2025-04-14", 10, {}) == (1_047_576, WindowSource.TABLE)
    assert find_window("claude-sonnet-4-5-20250929", 250_000, {}) == (None, WindowSource.UNKNOWN)
    assert find_window("claude-sonnet-4-5-turbo", 10, {}) == (None, WindowSource.UNKNOWN)
    assert find_window("", 10, {}) == (None, WindowSource.UNKNOWN)


@pytest.mark.parametrize(("size", "expected"), [(100_000, []), (100_001, ["large_context"])])
def test_a_context_of_just_half_its_window_is_no_finding(size: int, expected: list[str]) -> None:
    one = infer("a", 0, 5, "lead", model="claude-sonnet-4-5", tokens={"input": 1, "cache_read": size - 1})

    assert kinds(raw([one])) == expected
    assert kinds(raw([{**one, "copied_context": True}, infer("b", 5, 6, "lead")])) == []


def test_sums_of_several_answers_say_nothing_of_any_context() -> None:
    one = infer("a", 0, 5, "lead", model="claude-sonnet-4-5", tokens={"input": 150_000})
    line = "counted: total of a span without model calls in the log"
    report = {"token_ledger": {line: {"records": 1, "tokens": {"input": 150_000}}}}

    assert kinds(raw([one])) == ["large_context"]
    assert kinds(raw([one], import_report=report)) == []


def test_codex_states_the_windows_of_its_models(tmp_path: Path) -> None:
    thread = Codex("019fbc00-0000-7000-8000-00000000000a")
    thread.row(0, "turn_context", model="gpt-5-codex")
    thread.typed(1, "Go on.")
    thread.says(5, "Done.")
    thread.count(5, 150_000, 100_000, 10, 0)
    for row in thread.rows:
        if row["payload"].get("info"):
            row["payload"]["info"]["model_context_window"] = 258_400
    found = find(TraceView(trace(conversationlogs.trace_of(thread.write(tmp_path)))))

    assert [one[:5] for one in found.contexts] == [("main", "gpt-5-codex", 150_000, 258_400, WindowSource.LOG)]
    assert [one.kind for one in found.findings] == [FindingKind.LARGE_CONTEXT]


def test_a_message_that_a_teammate_answers_is_none(tmp_path: Path) -> None:
    session = Claude()
    session.say(0, "Go on.")
    session.answer(5, "m1", use("t1", "SendMessage", recipient="alice", content="More."), stop="tool_use")
    session.result(6, "t1", '{"success": true}')
    session.answer(9, "m2", text("Done."))
    session.write(tmp_path)

    assert kinds(conversationlogs.trace_of(tmp_path)) == []  # the log shows nothing of alice


@pytest.mark.parametrize("path", sorted((ROOT / "data" / "traces").glob("*.json")), ids=lambda path: path.stem)
def test_the_published_traces_have_but_one_finding(path: Path) -> None:
    expected = ["no_return"] if path.stem == "failing" else []

    assert kinds(json.loads(path.read_text("utf-8"))) == expected


@given(documents())
def test_findings_of_any_sound_trace_name_their_events_and_cost_no_more_than_there_was(
    document: dict[str, Any],
) -> None:
    view = TraceView(trace(document))
    found = find(view)
    spent = sum(sum(one.get("tokens", {}).values()) for one in document["events"])

    for one in (*found.findings, *found.waits):
        assert one.seconds is None or 0 <= one.seconds <= view.timing.elapsed * len(view.agents) + 1e-9
        assert all(0 <= number < len(document["events"]) for number in one.events)
    assert all(one.tokens is None or one.tokens <= spent for one in found.findings)
    assert all(one.seconds <= view.timing.elapsed for one in found.findings if one.kind is FindingKind.IDLE_LEAD)
