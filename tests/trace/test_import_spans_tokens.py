"""Every trap of tokens in span trees: totals over others, counters that agents share, usage that is given twice."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trace.spanlogs import (
    GENAI,
    KINDS,
    LOGS,
    answer,
    chat,
    counts,
    imported,
    ledger,
    one,
    otel_span,
    request,
    run,
    sdk_span,
    tokens,
    truth,
    usage,
)


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


def test_hidden_reasoning_beside_an_output_of_nothing_is_added_to_it(tmp_path: Path) -> None:
    more = {"gen_ai__usage__reasoning__output_tokens": 9}
    trace = one(tmp_path / "x.jsonl", [request([chat(1, 0, 0, 1, **counts(100, 0, **more))])], "otlp")

    assert trace["events"][0]["tokens"] == {"input": 100, "output": 9, "reasoning": 9}
    assert "repaired" in {line.partition(":")[0] for line in ledger(trace)}
