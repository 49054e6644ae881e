"""Span trees imported: logs of the real SDKs, the same run in two formats, every trap, and whatever else there is."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from orchtrace_corpus.errors import DataFileError
from orchtrace_corpus.trace.importers import logs
from orchtrace_corpus.trace.importers import usage as usage_rules
from orchtrace_corpus.trace.importers.logs import EmptyLogError
from orchtrace_corpus.trace.importers.report import Report
from orchtrace_corpus.trace.importers.spans import Kind, Span
from orchtrace_corpus.trace.importers.spantree import COPY, tree
from tests.conftest import ROOT
from tests.spanlogs import (
    KINDS,
    LOGS,
    MODULES,
    answer,
    edges,
    fixtures,
    imported,
    ledger,
    node,
    one,
    otel_span,
    outline,
    request,
    run,
    said,
    sdk_span,
    tokens,
    tokens_by_role,
    truth,
    usage,
)

ALL = [(form, path) for form in MODULES for path in fixtures(form)]
SCENARIOS = [path.stem for path in fixtures("openai_agents")]
WITHOUT_DETAILS = {"single", "nested", "parallel", "handoffs", "guardrail", "sequence"}
"""OpenInference writes no cached and no reasoning tokens of the SDK's generation spans, only of its response spans."""


# Logs of the real SDKs, whose scripted models know the truth


@pytest.mark.parametrize(("form", "path"), ALL, ids=[path.name for _, path in ALL])
def test_tokens_are_what_the_models_reported(form: str, path: Path) -> None:
    (trace,) = imported(path, form=form)
    told = truth(path)
    agents = {name: {kind: counts[kind] for kind in KINDS} for name, counts in told["agents"].items()}

    if path.name.endswith(".openinference.jsonl") and path.name.split(".")[0] in WITHOUT_DETAILS:
        for counts in agents.values():
            counts.update(input=counts["input"] + counts["cache_read"], cache_read=0, reasoning=0)
    assert tokens_by_role(trace) == agents
    assert trace["costs"]["tokens"] == sum(told["total"][kind] for kind in ("input", "output", "cache_read"))
    assert ledger(trace)["counted: model call's own usage"] == told["total"]["calls"]


@pytest.mark.parametrize(("form", "path"), ALL, ids=[path.name for _, path in ALL])
def test_every_event_says_where_it_comes_from(form: str, path: Path) -> None:
    (trace,) = imported(path, form=form)
    lines = path.read_text("utf-8").count("\n")

    for event in trace["events"]:
        assert event["source"]["file"] == path.name
        assert event["source"]["format"] == form
        assert 1 <= event["source"]["line"] <= lines


@pytest.mark.parametrize("form", MODULES)
def test_a_format_takes_its_own_files_only(form: str) -> None:
    for other, path in ALL:
        assert MODULES[form].recognises(logs.head(logs.LogFile(str(path), path.name))) == (form == other), path


OTHERS = {
    "claude": '{"type": "assistant", "sessionId": "s", "uuid": "u", "message": {"id": "m", "content": "spanId run_type"}}',
    "codex": '{"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "x", "trace_id": "t"}}',
    "quoted": '{"type": "user", "sessionId": "s", "message": "{\\"resourceSpans\\": [], \\"run_type\\": 1, \\"object\\": 2}"}',
    "package": '{\n "name": "x",\n "data": [{"id": 1}],\n "object": "list"\n}',
    "array": '[{"name": "x", "start_time": 1}]',
    "empty": "",
    "binary": "\x00\x01",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS.keys())
def test_no_format_takes_another_kind_of_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, "utf-8")
    beginning = logs.head(logs.LogFile(str(path), path.name))

    assert [form for form, module in MODULES.items() if module.recognises(beginning)] == []


def test_a_huge_first_line_is_still_recognised(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(run("r", None, "llm", 0, 1, outputs={"text": "x" * 400_000})) + "\n", "utf-8")

    assert MODULES["langsmith"].recognises(logs.head(logs.LogFile(str(path), path.name)))
    assert not MODULES["otlp"].recognises(logs.head(logs.LogFile(str(path), path.name)))


# The same run in two formats


class Lack(NamedTuple):
    """What one export of a run cannot say, so that its trace may differ from another's."""

    export: str
    what: str


DETAILS = Lack("OpenInference", "cached and reasoning tokens of generation spans; they are in the input and the output")
VERDICTS = Lack("OpenInference", "whether a guardrail has stopped something")
GUARDRAILS = Lack("GenAI attributes", "guardrails, for which there is no convention")
CALL_IDS = Lack("the SDK's own export", "call ids where the Responses API is used")
ALLOWED = {"openinference": {DETAILS, VERDICTS, CALL_IDS}, "genai": {GUARDRAILS}}
"""All differences that two exports of one run may make; `docs/importers.md` lists the same."""


def _without_lacks(scenario: str, dialect: str, native: dict[str, Any], other: dict[str, Any]) -> set[Lack]:
    """Takes what an export lacks out of both sides, and says what that was."""
    lacks = set()
    if dialect == "openinference" and scenario in WITHOUT_DETAILS:
        for counts in native["tokens"].values():
            if counts["cache_read"] or counts["reasoning"]:
                lacks.add(DETAILS)
            counts.update(input=counts["input"] + counts["cache_read"], cache_read=0, reasoning=0)
    if dialect == "openinference" and scenario == "responses":
        lacks.add(CALL_IDS)
        for side in (native, other):
            side["calls"] = [(agent, tool) for agent, tool, _ in side["calls"]]
    if dialect == "openinference" and scenario == "guardrail":
        lacks.add(VERDICTS)
        native["failures"].remove(("ward", "safety_event"))
    if dialect == "genai" and scenario == "guardrail":
        lacks.add(GUARDRAILS)
        native["failures"].remove(("ward", "safety_event"))
        for side in (native, other):
            side["events"] = [words for words in side["events"] if " safety_event" not in words]
            hidden = (" safety_event", "judge return", "ward stop")
            side["edges"] = [words for words in side["edges"] if not any(each in words for each in hidden)]
    return lacks


@pytest.mark.parametrize("dialect", ALLOWED)
def test_two_exports_of_one_run_give_one_trace(dialect: str) -> None:
    found = set()
    for scenario in SCENARIOS:
        (native,) = imported(LOGS / "openai_agents" / f"{scenario}.json", form="openai_agents")
        suffix = "jsonl" if dialect == "openinference" else "json"
        (other,) = imported(LOGS / "otlp" / f"{scenario}.{dialect}.{suffix}", form="otlp")
        sides = outline(native), outline(other)
        found |= _without_lacks(scenario, dialect, *sides)
        for part in sides[0]:
            assert sides[0][part] == sides[1][part], f"{scenario}: {part}"
    assert found == ALLOWED[dialect]


def test_the_differences_that_are_allowed_are_those_that_are_documented() -> None:
    _, _, table = (ROOT / "docs" / "importers.md").read_text("utf-8").partition("| export | what it lacks |\n")
    rows = table.partition("\n\n")[0].splitlines()[1:]
    documented = {Lack(*(cell.strip() for cell in row.strip("|").split("|"))) for row in rows}

    assert documented == set().union(*ALLOWED.values())


@pytest.mark.parametrize("path", fixtures("langsmith"), ids=lambda path: path.stem)
def test_runs_and_spans_of_one_graph_give_one_trace(tmp_path: Path, path: Path) -> None:
    (native,) = imported(path, form="langsmith")
    runs: dict[str, Any] = {}
    for row in map(json.loads, path.read_text("utf-8").splitlines()):
        for part in (*row["post"], *row.get("patch", ())) if "post" in row else row.get("patch", (row,)):
            runs.setdefault(part["id"], {}).update({k: v for k, v in part.items() if v is not None})
    other = one(tmp_path / "x.jsonl", [request(list(_as_openinference(runs)))], "otlp")

    assert outline(native) == outline(other)


def _as_openinference(runs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Runs as OpenInference's instrumentation of LangChain writes them."""
    numbers = {name: number for number, name in enumerate(runs, 1)}
    kinds = {"llm": "LLM", "tool": "TOOL"}
    for name, each in runs.items():
        metadata = each["extra"]["metadata"]
        attributes: dict[str, Any] = {
            "openinference__span__kind": kinds.get(each["run_type"], "CHAIN"),
            "metadata": json.dumps(metadata),
            "output__value": json.dumps(each.get("outputs")),
        }
        if each["run_type"] == "tool":
            attributes["tool__name"] = each["name"]
            message = each["outputs"].get("output")
            if isinstance(message, dict):
                attributes["tool_call__id"] = message.get("kwargs", message)["tool_call_id"]
        for batch in (each.get("outputs") or {}).get("generations") or ():
            for counts in (generation["message"]["kwargs"]["usage_metadata"] for generation in batch):
                attributes["llm__token_count__prompt"] = counts["input_tokens"]
                attributes["llm__token_count__completion"] = counts["output_tokens"]
                attributes["llm__token_count__prompt_details__cache_read"] = counts["input_token_details"]["cache_read"]
                attributes["llm__token_count__completion_details__reasoning"] = counts["output_token_details"][
                    "reasoning"
                ]
        if each.get("error"):
            attributes["error__type"] = each["error"].partition("(")[0]
        above = numbers.get(each.get("parent_run_id"), 0)
        span = otel_span(numbers[name], above, each["name"], 0, 0, **attributes)
        for field, moment in (("startTimeUnixNano", "start_time"), ("endTimeUnixNano", "end_time")):
            seconds, _, fraction = each[moment].partition("+")[0].partition(".")
            from datetime import datetime

            whole = int(datetime.fromisoformat(f"{seconds}+00:00").timestamp())
            span[field] = str(whole * 10**9 + int(fraction.ljust(6, "0")) * 1000)
        yield span


def test_every_line_of_the_ledger_is_documented() -> None:
    text = (ROOT / "docs" / "importers.md").read_text("utf-8")
    lines = [value for name, value in vars(usage_rules).items() if name.isupper() and isinstance(value, str)]

    assert len(lines) == 13
    assert [line for line in (*lines, COPY) if f"| {line} |" not in text] == []


# What happened: shapes of runs


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


# Traps of tokens


GENAI = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": "a"}


def chat(number: int, parent: int, begin: float, end: float, **more: Any) -> dict[str, Any]:
    return otel_span(number, parent, "chat m", begin, end, gen_ai__operation__name="chat", **more)


def counts(read: int, written: int, **more: int) -> dict[str, int]:
    return {"gen_ai__usage__input_tokens": read, "gen_ai__usage__output_tokens": written, **more}


def test_an_agents_total_is_left_out_where_its_calls_report(tmp_path: Path) -> None:
    agent = otel_span(1, 0, "invoke_agent a", 0, 5, **GENAI, **counts(30, 5))
    spans = [agent, chat(2, 1, 1, 2, **counts(10, 2)), chat(3, 1, 3, 4, **counts(20, 3))]
    trace = one(tmp_path / "x.json", request(spans), "otlp", lines=False)

    assert tokens(trace) == {"input": 30, "output": 5, "cache_read": 0, "reasoning": 0}
    assert ledger(trace) == {
        "counted: model call's own usage": 2,
        "left out: total of a span whose model calls report, equal to their sum": 1,
    }


def test_a_total_that_is_not_the_sum_of_its_calls_is_said_to_be_so(tmp_path: Path) -> None:
    agent = otel_span(1, 0, "invoke_agent a", 0, 5, **GENAI, **counts(99, 5))
    trace = one(tmp_path / "x.jsonl", [request([agent, chat(2, 1, 1, 2, **counts(10, 2))])], "otlp")

    assert tokens(trace)["input"] == 10
    assert ledger(trace)["left out: total of a span whose model calls report, other than their sum"] == 1
    assert "total of a span is not the sum of its model calls" in trace["import_report"]["problems"]


def test_an_agents_total_is_taken_where_no_call_reports(tmp_path: Path) -> None:
    agent = otel_span(1, 0, "invoke_agent a", 0, 5, **GENAI, **counts(30, 5))
    trace = one(tmp_path / "x.jsonl", [request([agent, chat(2, 1, 1, 2), chat(3, 1, 3, 4)])], "otlp")

    assert tokens(trace) == {"input": 30, "output": 5, "cache_read": 0, "reasoning": 0}
    assert [(event["t"], event["token_basis"]) for event in trace["events"] if "tokens" in event] == [
        (2, "placeholder")
    ]
    assert ledger(trace) == {
        "counted: total of a span whose model calls report nothing, at the last of them": 1,
        "unknown: model call without usage": 1,
    }


def test_an_agent_without_model_calls_in_the_log_bears_its_total(tmp_path: Path) -> None:
    agent = otel_span(1, 0, "invoke_agent a", 0, 5, **GENAI, **counts(30, 5))
    trace = one(tmp_path / "x.jsonl", [request([agent])], "otlp")

    assert [(event["type"], event.get("t_end"), event.get("inferred")) for event in trace["events"]] == [
        ("inference", 5, True),
        ("stop", None, True),
    ]
    assert tokens(trace)["input"] == 30


def test_counters_that_agents_share_are_never_summed(tmp_path: Path) -> None:
    (trace,) = imported(LOGS / "openai_agents" / "parallel.json", form="openai_agents")
    rows = json.loads((LOGS / "openai_agents" / "parallel.json").read_text("utf-8"))["data"]
    turns = [row["span_data"]["data"].get("usage") for row in rows if row.get("span_data", {}).get("name") == "turn"]
    told = truth(LOGS / "openai_agents" / "parallel.json")["total"]

    assert sum(each["input_tokens"] for each in turns if each) > 2 * (told["input"] + told["cache_read"])
    assert tokens(trace) == {kind: told[kind] for kind in KINDS}
    assert ledger(trace)["left out: state of a shared counter"] == len([each for each in turns if each]) + 6  # tasks


def test_the_outermost_counter_is_taken_where_no_call_reports(tmp_path: Path) -> None:
    def counter(name: str, parent: str | None, begin: float, end: float, read: int) -> dict[str, Any]:
        return sdk_span(name, parent, "custom", begin, end, name="task", data={"usage": usage(read, 1)})

    rows = [
        *(counter("task", None, 0, 9, 70), counter("turn", "a", 0, 9, 70), counter("inner", "f", 1, 5, 60)),
        *(sdk_span("a", "task", "agent", 0, 9, name="a"), sdk_span("g", "turn", "generation", 0, 1)),
        *(sdk_span("f", "turn", "function", 1, 6, name="ask"), sdk_span("b", "inner", "agent", 1, 5, name="b")),
        sdk_span("h", "b", "generation", 2, 3),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "openai_agents")

    assert tokens(trace) == {"input": 70, "output": 1, "cache_read": 0, "reasoning": 0}
    assert ledger(trace)["counted: state of the outermost shared counter, since no model call reports"] == 1


def test_a_framework_and_its_client_that_both_log_a_call_count_once(tmp_path: Path) -> None:
    outer = otel_span(1, 0, "ChatModel", 0, 5, openinference__span__kind="LLM", llm__token_count__prompt=10)
    trace = one(tmp_path / "x.jsonl", [request([outer, chat(2, 1, 1, 4, **counts(10, 0))])], "otlp")

    assert tokens(trace)["input"] == 10
    assert ledger(trace) == {
        "counted: model call's own usage": 1,
        "left out: total of a span whose model calls report, equal to their sum": 1,
    }
    assert sum(event["type"] == "inference" for event in trace["events"]) == 1


def test_two_conventions_on_one_span_count_once_and_disagreement_is_said(tmp_path: Path) -> None:
    both = {**counts(10, 2), "llm__token_count__prompt": 11, "llm__token_count__completion": 2}
    trace = one(tmp_path / "x.jsonl", [request([chat(1, 0, 0, 1, **both)])], "otlp")

    assert tokens(trace)["input"] == 10
    assert "token counts of two conventions disagree: those of GenAI are taken" in trace["import_report"]["problems"]


def test_the_input_is_without_what_came_from_caches(tmp_path: Path) -> None:
    cached = {"gen_ai__usage__cache_read__input_tokens": 60, "gen_ai__usage__cache_creation__input_tokens": 30}
    trace = one(tmp_path / "x.jsonl", [request([chat(1, 0, 0, 1, **counts(100, 2, **cached))])], "otlp")

    assert trace["events"][0]["tokens"] == {"input": 10, "output": 2, "cache_read": 60, "cache_write": 30}
    assert trace["costs"]["tokens"] == 102


def test_an_input_smaller_than_its_cached_part_is_taken_to_be_without_it(tmp_path: Path) -> None:
    more = {"gen_ai__usage__cache_read_input_tokens": 500, "gen_ai__usage__reasoning__output_tokens": 9}
    trace = one(tmp_path / "x.jsonl", [request([chat(1, 0, 0, 1, **counts(100, 2, **more))])], "otlp")

    assert trace["events"][0]["tokens"] == {"input": 100, "output": 11, "cache_read": 500, "reasoning": 9}
    assert {line.partition(":")[0] for line in ledger(trace)} == {"counted", "repaired"}


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai__system": "x", "gen_ai__usage__prompt_tokens": 7, "gen_ai__usage__completion_tokens": 3},
        {"gen_ai__system": "x", "gen_ai__usage__input_tokens": "7", "gen_ai__usage__output_tokens": 3.0},
        {"llm__request__type": "chat", "llm__usage__prompt_tokens": 7, "llm__usage__completion_tokens": 3},
        {"openinference__span__kind": "LLM", "llm__token_count__prompt": 7, "llm__token_count__completion": 3},
    ],
    ids=["old", "text", "openllmetry", "openinference"],
)
def test_every_dialect_of_usage_is_read(tmp_path: Path, attributes: dict[str, Any]) -> None:
    attributes = {"gen_ai__request__model": "m", **attributes}
    trace = one(tmp_path / "x.jsonl", [request([otel_span(1, 0, "call", 0, 1, **attributes)])], "otlp")

    assert trace["events"][0]["tokens"] == {"input": 7, "output": 3}
    assert trace["events"][0]["model"] == "m"


def test_a_sum_that_lacks_a_call_is_no_total(tmp_path: Path) -> None:
    rows = [
        sdk_span("g", None, "generation", 0, 1, usage=usage(10, 1)),
        sdk_span("h", None, "generation", 2, 3, error={"message": "x"}),
    ]
    assert one(tmp_path / "x.jsonl", rows, "openai_agents")["costs"]["tokens"] == 11

    trace = one(tmp_path / "x.jsonl", [*rows, sdk_span("i", None, "generation", 4, 5)], "openai_agents")

    assert trace["costs"]["tokens"] is None
    assert trace["reasons"] == {"costs.tokens": "Model calls of the log that do not say what they spent: 1."}


@pytest.mark.parametrize("count", [-1, 2**60, 1.5, True, "many", "1e3"])
def test_a_count_that_is_none_is_unknown(tmp_path: Path, count: Any) -> None:
    rows = [sdk_span("g", None, "generation", 0, 1, usage=usage(count, count))]
    trace = one(tmp_path / "x.jsonl", rows, "openai_agents")

    assert "tokens" not in trace["events"][0]
    assert trace["costs"]["tokens"] is None
    assert ledger(trace) == {"unknown: model call without usage": 1}


def test_zero_tokens_and_a_bare_total_are_unknown(tmp_path: Path) -> None:
    rows = [
        sdk_span("g", None, "generation", 0, 1, usage=usage(0, 0)),
        sdk_span("h", None, "generation", 1, 2, usage={"total_tokens": 9}),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "openai_agents")

    assert trace["costs"]["tokens"] is None
    assert ledger(trace) == {
        "unknown: usage of 0 tokens, which no call has": 1,
        "unknown: only a total, not divided by kind": 1,
        "unknown: model call without usage": 2,
    }


def test_usage_under_details_is_read_as_the_exporter_to_openai_writes_it(tmp_path: Path) -> None:
    details = {"input_tokens_details": {"cached_tokens": 40}, "output_tokens_details": {"reasoning_tokens": 5}}
    rows = [sdk_span("g", None, "generation", 0, 1, usage=usage(100, 10, details=details))]
    trace = one(tmp_path / "x.jsonl", rows, "openai_agents")

    assert trace["events"][0]["tokens"] == {"input": 60, "output": 10, "cache_read": 40, "reasoning": 5}


def test_messages_repeated_in_the_output_of_a_chain_are_not_counted(tmp_path: Path) -> None:
    message = {"usage_metadata": {"input_tokens": 10, "output_tokens": 1}}
    rows = [
        run("root", None, "chain", 0, 5, outputs={"messages": [message]}, total_tokens=11, prompt_tokens=10),
        run("m", "root", "llm", 1, 2, outputs=answer(10, 1), inputs={"messages": [message]}),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "langsmith")

    assert tokens(trace)["input"] == 10
    assert ledger(trace)["left out: total of a span whose model calls report, other than their sum"] == 1


def test_candidates_of_one_prompt_repeat_its_usage(tmp_path: Path) -> None:
    doubled = {"usage_metadata": {"input_tokens": 20, "output_tokens": 2}}  # as LangChain's tracer adds them up
    rows = [run("m", None, "llm", 0, 1, outputs=answer(10, 1, candidates=2), metadata=doubled)]
    prompts = answer(10, 1)["generations"] + answer(30, 3)["generations"]
    more = [run("n", None, "llm", 2, 3, outputs={"generations": prompts})]

    assert tokens(one(tmp_path / "x.jsonl", rows, "langsmith"))["input"] == 10
    assert tokens(one(tmp_path / "y.jsonl", more, "langsmith"))["input"] == 40


@pytest.mark.parametrize(
    "more",
    [
        {"outputs": {"llm_output": {"token_usage": {"prompt_tokens": 8, "completion_tokens": 4}}}},
        {"outputs": {"usage_metadata": {"input_tokens": 8, "output_tokens": 4}}},
        {"metadata": {"usage_metadata": {"input_tokens": 8, "output_tokens": 4}}},
        {"prompt_tokens": 8, "completion_tokens": 4, "total_tokens": 12},
    ],
    ids=["provider", "outputs", "metadata", "server"],
)
def test_every_place_of_langsmiths_usage_is_read(tmp_path: Path, more: dict[str, Any]) -> None:
    trace = one(tmp_path / "x.jsonl", [run("m", None, "llm", 0, 1, **more)], "langsmith")

    assert trace["events"][0]["tokens"] == {"input": 8, "output": 4}


def test_an_embedding_is_a_tool_whose_tokens_count(tmp_path: Path) -> None:
    attributes = {"gen_ai__operation__name": "embeddings", "gen_ai__usage__input_tokens": 12}
    trace = one(tmp_path / "x.jsonl", [request([otel_span(1, 0, "embeddings e", 0, 1, **attributes)])], "otlp")

    assert [(event["type"], event.get("tokens")) for event in trace["events"][:1]] == [("tool_call", {"input": 12})]
    assert trace["costs"]["tokens"] == 12


# Traps of structure


def test_ids_in_hex_or_base64_and_every_container_give_the_same_trace(tmp_path: Path) -> None:
    from base64 import b64encode

    spans = [otel_span(1, 0, "invoke_agent a", 0, 5, **GENAI), chat(2, 1, 1, 2, **counts(10, 2))]
    coded = json.loads(json.dumps(spans))
    for span in coded:
        span["kind"] = "SPAN_KIND_INTERNAL"
        for name in ("traceId", "spanId", "parentSpanId"):
            span[name] = b64encode(bytes.fromhex(span[name])).decode()
        span["startTimeUnixNano"] = int(span["startTimeUnixNano"])
    plain = json.loads(json.dumps(spans))
    for span in plain:
        span["attributes"] = {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}
        span["trace_id"], span["span_id"], span["parent_span_id"] = (
            span.pop(name) for name in ("traceId", "spanId", "parentSpanId")
        )
    old = request(spans)
    for resource in old["resourceSpans"]:
        resource["instrumentationLibrarySpans"] = resource.pop("scopeSpans")
    zeros = [{**spans[0], "parentSpanId": "0" * 16}, spans[1]]

    def trace(content: Any, *, lines: bool) -> dict[str, Any]:
        found = one(tmp_path / "x.json", content, "otlp", lines=lines)
        assert found["trace_id"] == f"{7:032x}"
        assert found["import_report"]["problems"] == {}
        return outline(found)

    expected = trace([request(spans)], lines=True)
    assert expected["events"] == ["a inference", "a stop"]
    for content, lines in (
        ([request(spans[:1]), request(spans[1:])], True),
        (request(spans), False),
        ([request(spans[:1]), request(spans[1:])], False),
        (spans, True),
        (spans, False),
        ([request(coded)], True),
        (request(coded), False),
        (plain, True),
        (plain, False),
        ([old], True),
        (old, False),
        ([{"batches": old["resourceSpans"]}], True),
        ([request(zeros)], True),
    ):
        assert trace(content, lines=lines) == expected


def test_ids_in_capitals_are_the_same_ids(tmp_path: Path) -> None:
    agent = otel_span(0xAB, 0, "invoke_agent a", 0, 5, **GENAI)
    call = {**chat(0xCD, 0xAB, 1, 2), "parentSpanId": f"{0xAB:016X}", "spanId": f"{0xCD:016X}"}

    assert said(one(tmp_path / "x.jsonl", [request([agent, call])], "otlp")) == ["a inference", "a stop"]


def test_spans_of_the_time_of_prompts_and_completions_are_read(tmp_path: Path) -> None:
    old = {
        "gen_ai__system": "x",
        "gen_ai__request__model": "m",
        "gen_ai__prompt__0__content": "well?",
        "gen_ai__completion__0__content": "one moment",
        "gen_ai__completion__0__tool_calls__0__id": "c",
        "gen_ai__completion__0__tool_calls__0__name": "f",
        "gen_ai__usage__prompt_tokens": 7,
        "gen_ai__usage__completion_tokens": 3,
    }
    tool = {"traceloop__span__kind": "tool", "traceloop__entity__name": "f"}
    spans = [otel_span(1, 0, "x.chat", 0, 1, **old), otel_span(2, 0, "f.tool", 1, 2, **tool)]
    trace = one(tmp_path / "x.jsonl", [request(spans)], "otlp")

    answer, call = trace["events"][:2]
    assert (answer["type"], answer["model"], answer["tokens"]) == ("inference", "m", {"input": 7, "output": 3})
    assert answer["content_ref"].startswith("sha256:")
    assert (call["type"], call["tool"], call["call_id"]) == ("tool_call", "f", "c")


def test_a_tool_names_its_call_in_every_dialect(tmp_path: Path) -> None:
    dialects = ({"gen_ai__tool__call__id": "c"}, {"tool_call__id": "c"}, {"tool__id": "c"})
    for number, dialect in enumerate(dialects):
        span = otel_span(1, 0, "f", 0, 1, openinference__span__kind="TOOL", tool__name="f", **dialect)
        assert one(tmp_path / f"{number}.jsonl", [request([span])], "otlp")["events"][0]["call_id"] == "c"


def test_a_transfer_that_returns_to_its_caller_is_a_call(tmp_path: Path) -> None:
    mode = {"gen_ai__transfer__target__name": "b", "gen_ai__transfer__mode": "return_to_caller"}
    inner = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": "b"}
    spans = [otel_span(1, 0, "invoke_agent a", 0, 9, **GENAI), otel_span(2, 1, "transfer", 1, 6, **mode)]
    around = [otel_span(3, 2, "invoke_agent b", 2, 5, **inner), chat(4, 3, 3, 4)]

    assert said(one(tmp_path / "x.jsonl", [request(spans)], "otlp"))[:2] == [
        "a tool_call transfer",
        "a tool_result transfer",
    ]
    assert said(one(tmp_path / "y.jsonl", [request([*spans, *around])], "otlp")) == [
        "a spawn transfer > b",
        "b inference",
        "b return > a",
        "b despawn",
        "a stop",
    ]


@pytest.mark.parametrize(
    ("more", "error_type"),
    [
        ({"status": {"code": 2}}, "other"),
        ({"status": {"code": "STATUS_CODE_ERROR", "message": "ValueError: private"}}, "ValueError"),
        ({"events": [{"attributes": [{"key": "exception.type", "value": {"stringValue": "m.X"}}]}], "status": {"code": 2}}, "X"),
    ],
    ids=["number", "name", "exception"],
)  # fmt: skip
def test_a_span_of_opentelemetry_says_that_it_failed(tmp_path: Path, more: dict[str, Any], error_type: str) -> None:
    trace = one(tmp_path / "x.jsonl", [request([{**chat(1, 0, 0, 1), **more}])], "otlp")

    assert (trace["events"][0]["status"], trace["events"][0]["error_type"]) == ("error", error_type)
    assert "private" not in json.dumps(trace)


def test_a_run_without_an_end_has_no_end_in_the_trace(tmp_path: Path) -> None:
    rows = [
        run("r", None, "chain", 0, None, title="graph"),
        run("t", "r", "tool", 1, None, title="f"),
        run("m", "r", "llm", 2, None, outputs=None),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "langsmith")

    assert said(trace)[:2] == ["graph tool_call f", "graph inference"]
    assert [event for event in trace["events"] if "t_end" in event or event["type"] == "tool_result"] == []


def test_a_span_of_visual_studio_belongs_to_its_virtual_parent(tmp_path: Path) -> None:
    agent = otel_span(1, 0, "invoke_agent a", 0, 5, **GENAI)
    virtual = chat(2, 9, 1, 2, virtual_parent__genai=f"{1:016x}")
    lost = chat(3, 1, 3, 4, virtual_parent__genai=f"{8:016x}")
    trace = one(tmp_path / "x.jsonl", [request([span]) for span in (virtual, lost, agent)], "otlp")

    assert said(trace) == ["a inference", "a inference", "a stop"]
    assert trace["costs"]["tokens"] is None


def test_a_trace_that_calls_itself_an_agent_is_none(tmp_path: Path) -> None:
    kind = {"openinference__span__kind": "AGENT"}
    spans = [
        otel_span(1, 0, "workflow", 0, 9, **kind),
        otel_span(2, 1, "a", 1, 8, **kind, agent__name="a"),
        chat(3, 2, 2, 3),
    ]
    trace = one(tmp_path / "x.jsonl", [request(spans)], "otlp")

    assert [agent["id"] for agent in trace["agents"]] == ["a"]
    assert trace["task_id"] == "workflow"


def test_an_agent_seen_by_two_instrumentations_is_one(tmp_path: Path) -> None:
    inner = otel_span(2, 1, "a", 1, 8, openinference__span__kind="AGENT", agent__name="a")
    spans = [otel_span(1, 0, "invoke_agent a", 0, 9, **GENAI), inner, chat(3, 2, 2, 3)]

    assert said(one(tmp_path / "x.jsonl", [request(spans)], "otlp")) == ["a inference", "a stop"]


def test_function_spans_get_their_call_ids_from_the_answer_that_asked() -> None:
    (trace,) = imported(LOGS / "openai_agents" / "parallel.json", form="openai_agents")

    calls = {event["agent"]: event["call_id"] for event in trace["events"] if event["type"] == "tool_call"}
    assert calls["worker_2"] == "call_worker_2_1"
    assert not any(event.get("inferred") for event in trace["events"] if event["type"] == "tool_call")


def test_calls_of_one_tool_are_told_apart_by_their_arguments(tmp_path: Path) -> None:
    def asked(name: str, arguments: str) -> dict[str, Any]:
        return {"type": "function_call", "call_id": name, "name": "f", "arguments": arguments}

    rows = [
        sdk_span("g", None, "generation", 0, 1, output=[asked("c1", "one"), asked("c2", "two"), asked("c3", "x")]),
        sdk_span("b", None, "function", 1, 3, name="f", input="two"),
        sdk_span("a", None, "function", 1.2, 2, name="f", input="one"),
        sdk_span("c", None, "function", 1.5, 2, name="f", input="repaired"),
        sdk_span("d", None, "function", 2, 3, name="f", input="unasked"),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "openai_agents")

    calls = {event["source"]["line"]: event["call_id"] for event in trace["events"] if event["type"] == "tool_call"}
    assert calls == {2: "c2", 3: "c1", 4: "c3", 5: "span:d"}
    made_up = [event["source"]["line"] for event in trace["events"] if event.get("inferred") and "call_id" in event]
    assert made_up == [5, 5]


def test_a_call_id_given_twice_is_numbered(tmp_path: Path) -> None:
    tool = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "f", "gen_ai__tool__call__id": "c"}
    spans = [otel_span(number, 0, "execute_tool f", number, number + 1, **tool) for number in (1, 2)]
    trace = one(tmp_path / "x.jsonl", [request(spans)], "otlp")

    assert [event["call_id"] for event in trace["events"][:4]] == ["c", "c", "c#2", "c#2"]
    assert "call id used again: numbered" in trace["import_report"]["problems"]


def test_tool_calls_are_found_in_every_form_of_an_answer(tmp_path: Path) -> None:
    answers = [
        {"gen_ai__output__messages": json.dumps([{"parts": [{"type": "tool_call", "id": "c", "name": "f", "arguments": {}}]}])},
        {"llm__output_messages__0__message__tool_calls__0__tool_call__id": "c",
         "llm__output_messages__0__message__tool_calls__0__tool_call__function__name": "f"},
        {"gen_ai__completion__0__tool_calls__0__id": "c", "gen_ai__completion__0__tool_calls__0__name": "f"},
        {"output__value": json.dumps([{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}])},
        {"output__value": json.dumps(answer(1, 1, [("c", "f")]))},
        {"output__value": json.dumps({"choices": [{"message": {"tool_calls": [{"id": "c", "function": {"name": "f"}}]}}]})},
    ]  # fmt: skip
    for number, attributes in enumerate(answers):
        spans = [
            chat(1, 0, 0, 1, **attributes),
            otel_span(2, 0, "f", 1, 2, openinference__span__kind="TOOL", tool__name="f"),
        ]
        trace = one(tmp_path / f"{number}.jsonl", [request(spans)], "otlp")
        assert [event["call_id"] for event in trace["events"] if event["type"] == "tool_call"] == ["c"], attributes


def test_messages_and_arguments_may_be_values_instead_of_text(tmp_path: Path) -> None:
    def value(plain: Any) -> dict[str, Any]:
        if isinstance(plain, list):
            return {"arrayValue": {"values": [value(each) for each in plain]}}
        if isinstance(plain, dict):
            return {"kvlistValue": {"values": [{"key": name, "value": value(each)} for name, each in plain.items()]}}
        return {"stringValue": plain}

    given = {"path": "x.py"}
    message = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "f", "arguments": given}]}
    asks, does = chat(1, 0, 0, 1), otel_span(2, 0, "f", 1, 2, gen_ai__operation__name="execute_tool")
    asks["attributes"].append({"key": "gen_ai.output.messages", "value": value([message])})
    does["attributes"].append({"key": "gen_ai.tool.call.arguments", "value": value(given)})
    does["name"] = "execute_tool f"
    one(tmp_path / "x.jsonl", [request([asks, does])], "otlp")
    (trace,) = imported(tmp_path / "x.jsonl", form="otlp", keep_content=True)

    call = next(event for event in trace["events"] if event["type"] == "tool_call")
    assert (call["call_id"], call["tool"], json.loads(call["content_ref"])) == ("c", "f", given)


def test_spans_without_an_operation_are_known_by_what_they_name(tmp_path: Path) -> None:
    spans = [
        otel_span(1, 0, "agent run", 0, 9, agent_name="a", model_name="m"),
        otel_span(2, 1, "chat m", 1, 2, gen_ai__request__model="m"),
        otel_span(3, 1, "running tool", 3, 4, gen_ai__tool__name="f"),
        otel_span(4, 1, "running tool: e", 5, 6, gen_ai__tool__call__id="c", gen_ai__tool__name="e"),
        otel_span(5, 1, "GET /", 7, 8, http__method="GET"),
    ]

    assert said(one(tmp_path / "x.jsonl", [request(spans)], "otlp")) == [
        *("a inference", "a tool_call f", "a tool_result f", "a tool_call e", "a tool_result e", "a stop"),
    ]


@pytest.mark.parametrize("output", ["c", '{"output": "c"}', '{"goto": "c", "update": {}}'])
def test_what_a_conditional_edge_answers_is_read_from_openinference_too(tmp_path: Path, output: str) -> None:
    def task(number: int, parent: int, kind: str, begin: float, name: str, step: int, **more: str) -> dict[str, Any]:
        metadata = json.dumps(node(name, step))
        span = {"openinference__span__kind": kind, "metadata": metadata, **more}
        return otel_span(number, parent, name, begin, begin + 1, **span)

    spans = [
        otel_span(1, 0, "graph", 0, 20, openinference__span__kind="CHAIN"),
        *(task(2, 1, "CHAIN", 1, "a", 1), task(3, 2, "LLM", 1, "a", 1), task(4, 2, "CHAIN", 2, "a", 1, output__value=output)),
        *(task(5, 1, "CHAIN", 5, "c", 2), task(6, 5, "LLM", 5, "c", 2)),
    ]  # fmt: skip

    assert said(one(tmp_path / "x.jsonl", [request(spans)], "otlp"))[:2] == ["a orchestrator_decision", "a message > c"]


def test_proposed_and_inferred_handoffs_of_opentelemetry(tmp_path: Path) -> None:
    def agent(number: int, name: str, begin: float, **more: Any) -> list[dict[str, Any]]:
        known = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": name, **more}
        return [otel_span(number, 1, name, begin, begin + 2, **known), chat(number + 1, number, begin, begin + 1)]

    def transfer(number: int, parent: int, begin: float, **more: Any) -> dict[str, Any]:
        return otel_span(number, parent, "handoff to b", begin, begin, **more)

    root = otel_span(1, 0, "run", 0, 20)
    for passing in (
        [*agent(2, "a", 1), transfer(8, 2, 2.5, gen_ai__transfer__target__name="b"), *agent(4, "b", 5)],
        [*agent(2, "a", 1), transfer(8, 2, 2.5, gen_ai__agent__handoff__target__name="b"), *agent(4, "b", 5)],
        [*agent(2, "a", 1), transfer(8, 2, 2.5, openinference__span__kind="TOOL", input__value="a"), *agent(4, "b", 5)],
        [*agent(2, "a", 1), *agent(4, "b", 5, graph__node__parent_id="a")],
    ):
        trace = one(tmp_path / "x.jsonl", [request([root, *passing])], "otlp")
        assert said(trace) == ["a orchestrator_decision", "a message > b", "b inference", "b stop"]
        assert "a message > b -message- b inference" in edges(trace)


def test_a_handoff_into_nowhere_is_noted(tmp_path: Path) -> None:
    rows = [
        sdk_span("a", None, "agent", 0, 5, name="a"),
        sdk_span("h", "a", "handoff", 1, 2, from_agent="a", to_agent="b"),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "openai_agents")

    assert said(trace) == ["a message > b", "a stop"]
    assert "handoff to an agent that does not act afterwards" in trace["import_report"]["problems"]


def test_parallel_branches_of_one_step_are_not_put_in_sequence(tmp_path: Path) -> None:
    rows = [run("g", None, "chain", 0, 20, title="graph")]
    for number, (name, begin, end) in enumerate((("a", 1, 4), ("b", 2, 3), ("c", 2, 5))):
        metadata = node(name, 2)
        rows += [run(name, "g", "chain", begin, end, metadata=metadata)]
        rows += [run(f"m{number}", name, "llm", begin, end, metadata=metadata, outputs=answer(10, 1))]
    join = node("d", 3, "join:a+b:d")
    rows += [
        run("d", "g", "chain", 6, 8, metadata=join),
        run("m3", "d", "llm", 6, 7, metadata=join, outputs=answer(10, 1)),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "langsmith")

    between = {words for words in edges(trace) if "inference -" not in words and "-causal-" not in words}
    assert between == {"a message > d -aggregate- d aggregate", "b message > d -aggregate- d aggregate"}


def test_what_led_to_a_node_that_only_computes_leads_on_to_what_it_joins(tmp_path: Path) -> None:
    rows = [run("g", None, "chain", 0, 20, title="graph")]
    for name, step, triggers, has_model in (
        ("a", 1, (), True),
        ("b", 2, (), False),
        ("c", 2, (), True),
        ("d", 3, ("join:b+c:d",), True),
    ):
        metadata = node(name, step, *triggers)
        rows.append(run(name, "g", "chain", 4 * step, 4 * step + 2, metadata=metadata))
        kind = "llm" if has_model else "prompt"
        rows.append(run(f"m{name}", name, kind, 4 * step, 4 * step + 1, metadata=metadata, outputs=answer(9, 1)))
    trace = one(tmp_path / "x.jsonl", rows, "langsmith")

    assert [words for words in said(trace) if "message" in words] == ["a message > c", "a message > d", "c message > d"]


def test_a_chosen_branch_is_not_joined_to_what_chose_another(tmp_path: Path) -> None:
    rows = [run("g", None, "chain", 0, 20, title="graph")]
    for name, step, goto in (("a", 1, "c"), ("b", 1, "d"), ("c", 2, ""), ("d", 2, "")):
        output = {"output": f"Command(update={{}}, goto='{goto}')"} if goto else {}
        rows.append(run(name, "g", "chain", 4 * step, 4 * step + 2, metadata=node(name, step), outputs=output))
        rows.append(
            run(f"m{name}", name, "llm", 4 * step, 4 * step + 1, metadata=node(name, step), outputs=answer(9, 1))
        )
    trace = one(tmp_path / "x.jsonl", rows, "langsmith")

    assert [words for words in said(trace) if "message" in words] == ["a message > c", "b message > d"]


def test_a_tool_around_an_agent_is_its_spawn_and_its_return(tmp_path: Path) -> None:
    rows = [
        sdk_span("a", None, "agent", 0, 10, name="a"),
        sdk_span("f", "a", "function", 1, 9, name="ask", input="well?", output="yes"),
        sdk_span("b", "f", "agent", 2, 8, name="b"),
        sdk_span("g", "b", "generation", 3, 7),
    ]
    one(tmp_path / "x.jsonl", rows, "openai_agents")
    (trace,) = imported(tmp_path / "x.jsonl", form="openai_agents", keep_content=True)

    happened = {event["type"]: (event["t"], event.get("content_ref")) for event in trace["events"]}
    assert (happened["spawn"], happened["return"]) == ((0, "well?"), (8, "yes"))  # the trace begins with the spawn


def test_an_agent_called_again_is_another_and_one_run_again_the_same(tmp_path: Path) -> None:
    rows = [sdk_span("a", None, "agent", 0, 20, name="a")]
    for number, begin in enumerate((1, 5)):
        rows.append(sdk_span(f"f{number}", "a", "function", begin, begin + 3, name="ask", input="x"))
        rows.append(sdk_span(f"b{number}", f"f{number}", "agent", begin, begin + 2, name="b"))
        rows.append(sdk_span(f"d{number}", "a", "agent", begin + 10, begin + 12, name="d"))
    for number, begin in enumerate((30, 33, 40)):
        rows.append(sdk_span(f"c{number}", None, "agent", begin, begin + 5, name="c"))
        rows.append(sdk_span(f"g{number}", f"c{number}", "generation", begin, begin + 1))
    trace = one(tmp_path / "x.jsonl", rows, "openai_agents")

    assert [agent["id"] for agent in trace["agents"]] == ["a", "b", "b#2", "d", "d#2", "c", "c#2"]
    assert [event["agent"] for event in trace["events"] if event["type"] == "inference"] == ["c", "c#2", "c"]


def test_a_call_depends_on_the_answer_that_asked_for_it_not_on_the_last_one(tmp_path: Path) -> None:
    def asks(name: str, tool: str) -> dict[str, Any]:
        return {"output": [{"type": "function_call", "call_id": name, "name": tool, "arguments": ""}], "model": tool}

    rows = [
        sdk_span("a", None, "agent", 0, 20, name="a"),
        sdk_span("g", "a", "generation", 0, 2, **asks("c1", "f")),
        sdk_span("h", "a", "generation", 1, 4, **asks("c2", "e")),
        sdk_span("f", "a", "function", 5, 6, name="f"),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "openai_agents")

    first = next(event["id"] for event in trace["events"] if event.get("model") == "f")
    call = next(event["id"] for event in trace["events"] if event["type"] == "tool_call")
    assert [edge["src"] for edge in trace["edges"] if edge["dst"] == call] == [first]


def test_a_tool_that_asks_a_model_is_not_worked_twice(tmp_path: Path) -> None:
    rows = [
        sdk_span("a", None, "agent", 0, 10, name="a"),
        sdk_span("f", "a", "function", 1, 9, name="summarise", input="x"),
        sdk_span("g", "f", "generation", 2, 8, usage=usage(10, 1)),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "openai_agents")

    spent = {event["type"]: event.get("t_end", event["t"]) - event["t"] for event in trace["events"]}
    assert spent == {"tool_call": 1, "inference": 6, "tool_result": 0, "stop": 0}
    assert edges(trace) == {
        "a tool_call summarise -causal- a inference",
        "a tool_call summarise -tool_dependency- a tool_result summarise",
        "a inference -causal- a tool_result summarise",
        "a tool_result summarise -causal- a stop",
    }


def test_a_model_that_asks_a_person_is_interrupted(tmp_path: Path) -> None:
    metadata, error = node("ask", 1), "GraphInterrupt((Interrupt(value='well?'),))"
    rows = [
        run("g", None, "chain", 0, 5, title="graph", error=error),
        run("ask", "g", "chain", 1, 4, metadata=metadata, error=error),
        run("m", "ask", "llm", 1, 2, metadata=metadata, outputs=answer(10, 1)),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "langsmith")

    assert said(trace) == ["ask inference", "ask human_intervention", "ask stop"]
    assert not any("well" in json.dumps(event) for event in trace["events"])


# Clocks, lost and repeated spans, several traces, several files


def test_times_without_a_zone_are_utc(tmp_path: Path) -> None:
    naive = {**run("m", None, "llm", 0, 1), "start_time": "2026-11-21T00:00:00", "end_time": "2026-11-21T00:00:01.5"}
    trace = one(tmp_path / "x.jsonl", [naive], "langsmith")

    assert trace["clock"]["epoch"] == "2026-11-21T00:00:00Z"
    assert trace["events"][0]["t_end"] == 1.5


def test_a_child_that_begins_before_its_call_moves_the_spawn(tmp_path: Path) -> None:
    rows = [
        sdk_span("a", None, "agent", 0, 9, name="a"),
        sdk_span("f", "a", "function", 3, 8, name="ask", input="x"),
        sdk_span("b", "f", "agent", 2, 9, name="b"),
        sdk_span("g", "b", "generation", 2, 8.5),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "openai_agents")

    assert said(trace) == ["a spawn ask > b", "b inference", "b return > a", "b despawn", "a stop"]
    assert "a spawn ask > b -spawn- b inference" in edges(trace)


def test_lost_circular_and_repeated_spans_are_reported(tmp_path: Path) -> None:
    rows = [
        sdk_span("a", "lost", "agent", 0, 5, name="a"),
        sdk_span("g", "a", "generation", 1, None, usage=usage(5, 1)),
        sdk_span("g", "a", "generation", 1, 2, usage=usage(10, 1)),
        sdk_span("x", "y", "agent", 7, 9, name="x"),
        sdk_span("y", "x", "generation", 8, 9),
        sdk_span("s", "s", "generation", 12, 11),
        sdk_span("n", None, "generation", None, 14),
        sdk_span("g", "a", "function", 3, 4, name="poisoned", input="x"),
        sdk_span("u", "a", "sorcery", 3, 4),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "openai_agents")
    report = trace["import_report"]

    assert {what: entry["number"] for what, entry in report["problems"].items()} == {
        "two spans of one id: both are kept, children go to the first": 1,
        "parent is not in the log: the span stands by itself": 1,
        "spans are their own parents: the first of them stands by itself": 2,
        "span without a beginning: one that fits is taken": 1,
        "span that ends before it begins: taken to have no length": 1,
    }
    assert report["dropped"] == {"copy of a span": {"number": 1, "for_example": ["x.jsonl:2"]}}
    assert report["unknown_kinds"] == {"span of type sorcery": 1}
    assert report["records_read"] == 9
    assert tokens(trace)["input"] == 10
    assert ledger(trace)["left out: copy of a span (by id)"] == 1


def test_the_times_of_a_tree_fit_one_another() -> None:
    def span(name: str, parent: str, start: float | None, end: float | None) -> Span:
        return Span(name, parent, Kind.CHAIN, name, "f", 1, start=start, end=end)

    spans = [span("r", "", None, 9), span("a", "r", 5, 3), span("b", "r", 4, None), span("c", "b", None, 2)]
    found = tree(spans, Report())

    assert found.starts == [4, 5, 4, 2]
    assert found.ends == [9, 5, None, 2]
    assert (found.earliest, found.latest) == ([2, 5, 2, 2], [9, 5, 4, 2])


def test_what_never_ended_has_no_end(tmp_path: Path) -> None:
    rows = [
        sdk_span("a", None, "agent", 0, None, name="a"),
        sdk_span("f", "a", "function", 1, None, name="tool", input="x"),
        sdk_span("h", "a", "function", 1, None, name="ask", input="x"),
        sdk_span("b", "h", "agent", 1, None, name="b"),
        sdk_span("g", "b", "generation", 2, None),
        sdk_span("e", "a", "agent", 3, None, name="never seen"),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "openai_agents")

    assert sorted(said(trace)) == ["a spawn ask > b", "a tool_call tool", "b inference"]
    assert not any("t_end" in event for event in trace["events"])


def test_several_traces_of_a_file_are_several(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    rows = [sdk_span(name, None, "generation", 0, 1, trace=f"t{name}", usage=usage(10, 1)) for name in "abc"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"cut', "utf-8")
    traces = imported(path, form="openai_agents")

    assert [trace["trace_id"] for trace in traces] == ["ta", "tb", "tc"]
    assert [trace["import_report"]["records_read"] for trace in traces] == [1, 1, 1]
    assert [list(trace["import_report"]["dropped"]) for trace in traces] == [["cut off at the end"], [], []]
    assert {trace["reasons"]["costs.tokens"] for trace in traces} == {
        "1 line could not be read, which may have reported tokens"
    }


def test_a_trace_in_several_files_is_one(tmp_path: Path) -> None:
    spans = [otel_span(1, 0, "invoke_agent a", 0, 5, **GENAI), chat(2, 1, 1, 2, **counts(10, 2))]
    for number, span in enumerate(spans):
        (tmp_path / f"{number}.jsonl").write_text(json.dumps(request([span])) + "\n", "utf-8")
    other = {**otel_span(3, 0, "chat", 0, 1, gen_ai__operation__name="chat"), "traceId": f"{9:032x}"}
    (tmp_path / "2.jsonl").write_text(json.dumps(request([other])) + "\n", "utf-8")
    traces = imported(*sorted(tmp_path.iterdir()), form="otlp")

    assert [said(trace) for trace in traces] == [["a inference", "a stop"], ["chat inference", "chat stop"]]
    assert {event["source"]["file"] for event in traces[0]["events"]} == {"0.jsonl", "1.jsonl"}


def test_parts_of_a_run_are_merged_in_any_order(tmp_path: Path) -> None:
    whole = run("m", None, "llm", 0, 1, outputs=answer(10, 1))
    post = {**whole, "end_time": None, "outputs": None}
    patch = {name: whole[name] for name in ("id", "trace_id", "end_time", "outputs")}
    lost = {"id": "lost", "trace_id": "t", "end_time": whole["end_time"]}
    for rows in ([{"post": [post], "patch": [patch]}], [{"patch": [patch, lost]}, {"post": [post]}], [post, patch]):
        trace = one(tmp_path / "x.jsonl", rows, "langsmith")
        assert (tokens(trace)["input"], trace["events"][0]["t_end"]) == (10, 1)
    nested = [{**run("r", None, "chain", 0, 2), "child_runs": [{**whole, "trace_id": None, "parent_run_id": None}]}]
    assert tokens(one(tmp_path / "x.json", nested, "langsmith", lines=False))["input"] == 10
    assert tokens(one(tmp_path / "x.json", {"runs": [whole]}, "langsmith", lines=False))["input"] == 10


def test_the_parent_is_found_in_the_dotted_order_of_old_clients(tmp_path: Path) -> None:
    first = "20261121T000000000000Zroot"
    rows = [
        {**run("root", None, "tool", 0, 3), "dotted_order": first},
        {**run("m", None, "llm", 1, 2, outputs=answer(10, 1)), "dotted_order": f"{first}.20261121T000001000000Zm"},
    ]
    for row in rows:
        del row["parent_run_id"], row["trace_id"]
    trace = one(tmp_path / "x.jsonl", rows, "langsmith")

    assert "root tool_call root -causal- root inference" in edges(trace)


# Strange rows, hostile contents, size


@pytest.mark.parametrize("form", MODULES)
def test_a_strange_row_never_stops_an_import(tmp_path: Path, form: str) -> None:
    good = {
        "openai_agents": sdk_span("g", None, "generation", 0, 1, usage=usage(10, 1)),
        "otlp": request([chat(1, 0, 0, 1, **counts(10, 1))]),
        "langsmith": run("m", None, "llm", 0, 1, outputs=answer(10, 1)),
    }[form]
    strange = (
        b'\n{"id": 5}\n[1, 2]\nnull\n"text"\n{"span_data": "x", "id": "y", "object": "trace.span"}\n{"data": [1, {}]}\n'
    )
    strange += (
        b'{"resourceSpans": [1, {"scopeSpans": [2, {"spans": [3, {"spanId": []}]}]}]}\n{"post": [1], "patch": {}}\n'
    )
    strange += (
        b'{"a": "\xff"}\n{"deep": ' + b"[" * 3000 + b"]" * 3000 + b'}\n{"a": 1e999}\n{"a": "\\ud800"}\nnot json\n'
    )
    path = tmp_path / "x.jsonl"
    path.write_bytes(json.dumps(good).encode() + strange + b'{"cut": "of')
    (trace,) = imported(path, form=form)

    assert trace["costs"]["tokens"] is None
    assert trace["reasons"]["costs.tokens"].endswith("lines could not be read, which may have reported tokens")
    assert trace["import_report"]["dropped"]["cut off at the end"]["number"] == 1
    assert trace["import_report"]["dropped"]["not JSON"]["number"] >= 3


def test_bytes_that_are_no_utf8_are_replaced(tmp_path: Path) -> None:
    row = json.dumps(sdk_span("f", None, "function", 0, 1, name="X", input="x")).encode().replace(b"X", b"caf\xe9")
    (tmp_path / "x.jsonl").write_bytes(row + b"\n" + row.replace(b'"f"', b'"g"'))
    (trace,) = imported(tmp_path / "x.jsonl", form="openai_agents")

    assert [event["tool"] for event in trace["events"][:2]] == ["caf\ufffd", "caf\ufffd"]
    assert trace["import_report"]["repaired"] == 2


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("openai_agents", {"data": [{"object": "trace", "id": "t", "workflow_name": "w"}]}),
        ("otlp", request([otel_span(1, 0, "GET /", 0, 1, http__method="GET")])),
        ("langsmith", [run("p", None, "prompt", 0, 1)]),
    ],
    ids=["openai_agents", "otlp", "langsmith"],
)
def test_a_log_without_a_single_act_is_refused(tmp_path: Path, form: str, content: Any) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content, indent=1), "utf-8")

    with pytest.raises(EmptyLogError, match=r"no agent, model call or tool call in the \d spans of 'x\.json'"):
        imported(path, form=form)


@pytest.mark.parametrize("form", MODULES)
def test_a_log_of_another_format_is_refused_with_the_number_of_its_records(tmp_path: Path, form: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"type": "user"}\n' * 3, "utf-8")

    with pytest.raises(DataFileError, match=f"none of the 3 records of 'x.jsonl' is one of the format {form}"):
        imported(path, form=form)


@pytest.mark.parametrize("form", MODULES)
@pytest.mark.parametrize("text", ["", "\n\n", "not json", '{"cut": [', "[1"])
def test_what_is_no_log_is_refused(tmp_path: Path, form: str, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, "utf-8")

    with pytest.raises(DataFileError):
        imported(path, form=form)


def test_contents_addresses_and_keys_stay_where_they_are(tmp_path: Path) -> None:
    secret, prompt = "sk-abcdefghijklmnop1234", "the plan of the president"
    asked = {"type": "function_call", "call_id": "c", "name": "f", "arguments": prompt}
    error = {"message": f"ValueError: {prompt}", "data": {"error": prompt}}
    rows = [
        {"object": "trace", "id": "t", "workflow_name": "/home/ann/work"},
        sdk_span("a", None, "agent", 0, 9, name="ann@example.org"),
        sdk_span("g", "a", "generation", 1, 2, input=prompt, output=[asked, {"content": secret}], model=secret),
        sdk_span("f", "a", "function", 3, 4, name=f"read {secret}", input=prompt, output=prompt, error=error),
    ]
    text = json.dumps(one(tmp_path / "x.jsonl", rows, "openai_agents"))

    assert not any(private in text for private in ("president", "sk-abc", "example.org", "/home"))
    (kept,) = imported(tmp_path / "x.jsonl", form="openai_agents", keep_content=True)
    assert [event["content_ref"] for event in kept["events"] if event["type"] == "tool_call"] == [prompt]


def _deep(count: int) -> list[dict[str, Any]]:
    rows = [
        sdk_span(f"a{n}", f"a{n - 1}" if n else None, "agent", n, 2 * count - n, name=f"agent {n}")
        for n in range(count)
    ]
    return [*rows, sdk_span("g", f"a{count - 1}", "generation", count, count + 0.5, usage=usage(10, 1))]


def _nested_tools(count: int) -> list[dict[str, Any]]:
    return [sdk_span(f"f{n}", f"f{n - 1}" if n else None, "function", n, 2 * count - n, name="f") for n in range(count)]


def _wide(count: int) -> list[dict[str, Any]]:
    tools = [sdk_span(f"f{n}", "a", "function", 1, 2 + n / count, name="f", input="x") for n in range(count)]
    return [sdk_span("a", None, "agent", 0, 9, name="a"), *tools, sdk_span("g", "a", "generation", 4, 5)]


def _circle(count: int) -> list[dict[str, Any]]:
    return [sdk_span(f"g{n}", f"g{(n + 1) % count}", "generation", n, n + 1) for n in range(count)]


def _chain_of_handoffs(count: int) -> list[dict[str, Any]]:
    rows = []
    for n in range(count):
        rows += [sdk_span(f"a{n}", None, "agent", 3 * n, 3 * n + 2, name=f"a{n % 7}")]
        rows += [sdk_span(f"h{n}", f"a{n}", "handoff", 3 * n + 1, 3 * n + 1, to_agent=f"a{(n + 1) % 7}")]
    return rows


SHAPES = {
    "deep": (_deep, 3), "nested tools": (_nested_tools, 2), "wide": (_wide, 2), "circle": (_circle, 0),
    "handoffs": (_chain_of_handoffs, 1),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_thousand_levels_or_branches_are_nothing_special(tmp_path: Path, shape: str) -> None:
    make, events = SHAPES[shape]
    trace = one(tmp_path / "x.jsonl", make(10_000), "openai_agents")

    assert len(trace["events"]) >= events * 9_999


def test_call_ids_that_look_numbered_are_told_apart(tmp_path: Path) -> None:
    names = ["c" + "#2" * number for number in range(2_000)] + ["c", "c"]
    rows = [
        otel_span(n + 1, 0, "f", n, n + 1, openinference__span__kind="TOOL", tool__name="f", tool__id=name)
        for n, name in enumerate(names)
    ]
    trace = one(tmp_path / "x.jsonl", [request(rows)], "otlp")

    ids = [event["call_id"] for event in trace["events"] if event["type"] == "tool_call"]
    assert len(set(ids)) == len(ids)


def test_two_steps_of_a_hundred_tasks_are_not_joined_each_to_each(tmp_path: Path) -> None:
    rows = [run("g", None, "chain", 0, 20, title="graph")]
    for step in (1, 2):
        for number in range(100):
            name = f"n{step}_{number}"
            rows.append(run(name, "g", "chain", step * 4, step * 4 + 2, metadata=node(name, step)))
            rows.append(run(f"m{name}", name, "llm", step * 4, step * 4 + 1, metadata=node(name, step)))
    trace = one(tmp_path / "x.jsonl", rows, "langsmith")

    assert trace["costs"]["messages"] == 199
