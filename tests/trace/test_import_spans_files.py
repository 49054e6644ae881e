"""Clocks, lost and repeated spans, several traces in a file, and a trace in several files."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.trace.importers.spans.span import Kind, Span
from orchtrace_corpus.trace.importers.spans.tree import build_tree
from orchtrace_corpus.trace.model.import_report import ImportReport
from tests.trace.conversationlogs import told, trace_of
from tests.trace.spanlogs import (
    GENAI,
    LOGS,
    MODULES,
    answer,
    chat,
    counts,
    edges,
    fixtures,
    imported,
    ledger,
    one,
    otel_span,
    request,
    run,
    said,
    sdk_span,
    tokens,
    usage,
)


@pytest.mark.parametrize(
    "path", [path for form in MODULES for path in fixtures(form)], ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_every_fixture_gives_what_its_text_says(path: Path) -> None:
    expected = LOGS / "told" / path.parent.name / f"{path.stem}.txt"

    assert told(trace_of(path)) == expected.read_text("utf-8")


@pytest.mark.parametrize(
    "attributes",
    [
        [{"key": "service.name", "value": {"stringValue": "planner"}}],
        {"service.name": "planner"},
    ],
)
def test_the_attributes_of_a_resource_may_be_a_list_or_an_object(tmp_path: Path, attributes: Any) -> None:
    document = request([chat(1, 0, 0, 1, **counts(10, 1))])
    document["resourceSpans"][0]["resource"]["attributes"] = attributes

    assert one(tmp_path / "x.jsonl", [document], "otlp")["system"] == "planner"


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
    found = build_tree(spans, ImportReport())

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
