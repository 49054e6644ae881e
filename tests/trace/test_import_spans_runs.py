"""What happened in a run, as span trees tell it: agents that spawn, hand over, join and decide."""

from tests.trace.spanlogs import LOGS, edges, imported, said


def test_agents_called_like_tools_are_spawned_and_return() -> None:
    (trace,) = imported(LOGS / "openai_agents" / "nested.json", form="openai_agents")

    assert said(trace) == [
        "top orchestrator_decision",
        "top spawn ask_middle > middle",
        "middle orchestrator_decision",
        "middle spawn ask_leaf > leaf",
        "leaf inference",
        "leaf inference",
        "leaf tool_call look_up",
        "leaf tool_result look_up",
        "leaf inference",
        "leaf return > middle",
        "leaf despawn",
        "middle aggregate",
        "middle return > top",
        "middle despawn",
        "top aggregate",
        "top stop",
    ]
    assert [event.get("status") for event in trace["events"] if event["type"] == "inference"] == ["error", "ok", "ok"]
    assert edges(trace) == {
        "top orchestrator_decision -causal- top spawn ask_middle > middle",
        "top spawn ask_middle > middle -spawn- middle orchestrator_decision",
        "middle orchestrator_decision -causal- middle spawn ask_leaf > leaf",
        "middle spawn ask_leaf > leaf -spawn- leaf inference",
        "leaf inference -temporal- leaf inference",
        "leaf inference -causal- leaf tool_call look_up",
        "leaf tool_call look_up -tool_dependency- leaf tool_result look_up",
        "leaf tool_result look_up -tool_dependency- leaf inference",
        "leaf inference -causal- leaf return > middle",
        "leaf inference -causal- leaf despawn",
        "leaf return > middle -return- middle aggregate",
        "middle aggregate -causal- middle return > top",
        "middle aggregate -causal- middle despawn",
        "middle return > top -return- top aggregate",
        "top aggregate -causal- top stop",
    }
    assert trace["topology"] == "hierarchical"


def test_parallel_agents_fork_from_one_answer_and_join_in_another() -> None:
    (trace,) = imported(LOGS / "openai_agents" / "parallel.json", form="openai_agents")
    workers = ["worker", "worker#2", "worker_2", "worker_3", "worker_4"]
    found = edges(trace)

    for number, worker in enumerate(workers):
        assert f"lead orchestrator_decision -causal- lead spawn ask_{number} > {worker}" in found
        assert f"{worker} return > lead -aggregate- lead aggregate" in found
    assert [agent["id"] for agent in trace["agents"]] == ["lead", *workers]
    assert [agent["role"] for agent in trace["agents"]] == ["lead", "worker", *workers[:1], *workers[2:]]
    failed = [event for event in trace["events"] if event.get("status") == "error"]
    assert [(event["agent"], event["type"], event["error_type"]) for event in failed] == [
        ("worker_3", "tool_result", "tool_error")
    ]


def test_a_handoff_passes_control_and_the_agent_may_come_back() -> None:
    (trace,) = imported(LOGS / "openai_agents" / "handoffs.json", form="openai_agents")

    assert said(trace) == [
        "first orchestrator_decision",
        "first message > second",
        "second orchestrator_decision",
        "second message > first",
        "first orchestrator_decision",
        "first message > second",
        "second inference",
        "second tool_call look_up",
        "second tool_result look_up",
        "second inference",
        "second stop",
    ]
    assert "first message > second -message- second inference" in edges(trace)


def test_guardrails_are_safety_events_and_what_they_ask_is_no_aggregate() -> None:
    (trace,) = imported(LOGS / "openai_agents" / "guardrail.json", form="openai_agents")

    checks = [(event["tool"], event["status"]) for event in trace["events"] if event["type"] == "safety_event"]
    assert checks == [("ask_judge", "ok"), ("refuse", "cancelled")]
    assert "judge return > ward -causal- ward safety_event ask_judge" in edges(trace)
    assert "ward aggregate" not in said(trace)


def test_agents_that_a_program_runs_follow_those_that_had_ended() -> None:
    (trace,) = imported(LOGS / "openai_agents" / "sequence.json", form="openai_agents")

    assert {words for words in edges(trace) if "-temporal-" in words} == {
        f"p{number} inference -temporal- judge inference" for number in (1, 2, 3)
    }
    (stop,) = (event for event in trace["events"] if event["type"] == "stop" and event["agent"] == "judge")
    assert (stop["status"], stop["error_type"]) == ("error", "max_turns_exceeded")


def test_pushed_tasks_are_spawned_and_joined_through_a_node_without_a_model() -> None:
    for name in ("send", "requests"):
        (trace,) = imported(LOGS / "langsmith" / f"{name}.jsonl", form="langsmith")
        found = edges(trace)
        workers = ["worker", "worker#2", "worker#3"]

        for worker in workers:
            assert f"lead orchestrator_decision -causal- lead spawn > {worker}" in found
            assert f"lead spawn > {worker} -spawn- {worker} inference" in found
            assert f"{worker} message > merge -aggregate- merge aggregate" in found
        assert [agent["id"] for agent in trace["agents"]] == ["lead", *workers, "merge"]


def test_a_team_inside_a_node_is_spawned_by_it_and_joined_by_its_triggers() -> None:
    (trace,) = imported(LOGS / "langsmith" / "joined.jsonl", form="langsmith")
    found = edges(trace)

    assert {(agent["id"], agent.get("parent")) for agent in trace["agents"]} == {
        *(("boss", None), ("team", None), ("final", None)),
        *((name, "team") for name in ("lead", "w0", "w1", "w2", "merge")),
    }
    for number in range(3):
        assert f"lead message > w{number} -message- w{number} inference" in found
        assert f"w{number} message > merge -aggregate- merge aggregate" in found
    assert "boss message > team -message- team spawn > lead" in found
    assert "merge return > team -causal- team message > final" in found


def test_a_supervisor_that_says_who_is_next_decides() -> None:
    (trace,) = imported(LOGS / "langsmith" / "command.jsonl", form="langsmith")

    assert said(trace) == [
        "boss orchestrator_decision",
        "boss message > writer",
        "writer orchestrator_decision",
        "writer message > boss",
        "boss orchestrator_decision",
        "boss message > critic",
        "critic orchestrator_decision",
        "critic message > boss",
        "boss inference",
        "boss stop",
    ]


def test_a_graph_that_is_one_agents_loop_is_one_agent() -> None:
    (trace,) = imported(LOGS / "langsmith" / "react.jsonl", form="langsmith")

    assert [(agent["id"], agent.get("parent")) for agent in trace["agents"]] == [("chief", None), ("helper", "chief")]
    calls = [event["call_id"] for event in trace["events"] if event["type"] in ("spawn", "tool_call")]
    assert sorted(calls) == ["call_chief_0", "call_helper_0", "call_helper_1"]
