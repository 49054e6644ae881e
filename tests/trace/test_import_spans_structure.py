"""Every trap of structure in span trees: ids, calls, handoffs and branches in all the forms in which they are written."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.trace.importers.spans.span import Kind, Span
from orchtrace_corpus.trace.importers.spans.tree import SpanRoles, build_tree
from orchtrace_corpus.trace.model.import_report import ImportReport
from tests.conftest import run_corpus
from tests.trace.spanlogs import (
    GENAI,
    LOGS,
    answer,
    chat,
    counts,
    edges,
    imported,
    node,
    one,
    otel_span,
    outline,
    request,
    run,
    said,
    sdk_span,
    usage,
)


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
        rows.append(sdk_span(f"m{number}", f"b{number}", "generation", begin, begin + 1))
        rows.append(sdk_span(f"d{number}", "a", "agent", begin + 10, begin + 12, name="d"))
        rows.append(sdk_span(f"n{number}", f"d{number}", "generation", begin + 10, begin + 11))
    for number, begin in enumerate((30, 33, 40)):
        rows.append(sdk_span(f"c{number}", None, "agent", begin, begin + 5, name="c"))
        rows.append(sdk_span(f"g{number}", f"c{number}", "generation", begin, begin + 1))
    trace = one(tmp_path / "x.jsonl", rows, "openai_agents")

    assert [agent["id"] for agent in trace["agents"]] == ["a", "b", "b#2", "d", "d#2", "c", "c#2"]
    assert [event["agent"] for event in trace["events"] if event["type"] == "inference"] == [
        "b", "b#2", "d", "d#2", "c", "c#2", "c",
    ]  # fmt: skip


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


def test_a_task_follows_those_that_chose_it_and_those_that_chose_nothing(tmp_path: Path) -> None:
    def task(name: str, step: int, begin: float, output: Any = None) -> list[dict[str, Any]]:
        metadata = node(name, step)
        inside = {"title": "ChatOpenAI", "metadata": metadata, "outputs": answer(10, 1)}
        return [
            run(name, "g", "chain", begin, begin + 2, metadata=metadata, outputs={"output": output}),
            run(f"{name} model", name, "llm", begin, begin + 1, **inside),
        ]

    rows = [
        run("g", None, "chain", 0, 9, title="LangGraph"),
        *task("chooses", 1, 1, "write"), *task("chooses other", 1, 1, "check"), *task("chooses nothing", 1, 1),
        *task("write", 2, 4), *task("check", 2, 4),
    ]  # fmt: skip
    trace = one(tmp_path / "x.jsonl", rows, "langsmith")

    assert {edge for edge in edges(trace) if " -aggregate- " in edge} == {
        "chooses message > write -aggregate- write aggregate",
        "chooses other message > check -aggregate- check aggregate",
        "chooses nothing message > write -aggregate- write aggregate",
        "chooses nothing message > check -aggregate- check aggregate",
    }


@pytest.mark.parametrize("kind", [Kind.INFERENCE, Kind.TOOL, Kind.HANDOFF, Kind.GUARDRAIL, Kind.PERSON])
def test_an_agent_has_acted_if_a_span_below_it_is_an_act(kind: Kind) -> None:
    spans = [
        Span(id="a", parent="", kind=Kind.AGENT, name="lead", file="f", line=1, start=1.0, end=4.0),
        Span(id="b", parent="a", kind=kind, name="x", file="f", line=2, start=2.0, end=3.0),
    ]
    tree = build_tree(spans, ImportReport())

    assert SpanRoles(tree, ()).has_acts[0]


# Failures of spans that are no events


def crashed(error: str, **more: Any) -> list[dict[str, Any]]:
    """A LangGraph run whose model answered, and whose next node, which only computes, raised an error."""
    return [
        run("g", None, "chain", 0, 5, title="graph", error=error),
        run("ask", "g", "chain", 1, 3, metadata=node("ask", 1)),
        run("m", "ask", "llm", 1, 2, metadata=node("ask", 1), outputs=answer(10, 1)),
        run("parse", "g", "chain", 3, 4, metadata=node("parse", 2), error=error, **more),
    ]


def ends(trace: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The events with a status other than ok: when, whose, what, how they ended."""
    return [
        (event["t"], event["agent"], event["type"], event.get("tool"), event["status"], event.get("error_type"))
        for event in trace["events"]
        if event.get("status", "ok") != "ok"
    ]


def test_a_run_that_crashed_in_a_node_without_a_model_stops_with_the_error(tmp_path: Path) -> None:
    trace = one(tmp_path / "x.jsonl", crashed("ValueError('no JSON in the answer')Traceback …"), "langsmith")

    assert said(trace) == ["ask inference", "ask tool_result parse", "ask stop"]
    assert ends(trace) == [
        (3.0, "ask", "tool_result", "parse", "error", "ValueError"),
        (4.0, "ask", "stop", None, "error", "ValueError"),
    ]
    assert edges(trace) >= {
        "ask inference -causal- ask tool_result parse", "ask tool_result parse -causal- ask stop",
    }  # fmt: skip
    assert not any("JSON" in json.dumps(event) for event in trace["events"])


def test_doctor_and_the_tables_count_a_crash(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in crashed("ValueError('x')")), "utf-8")

    screen = run_corpus("trace", "doctor", str(path)).stdout
    assert "none found" not in screen
    assert "2 events failed" in screen
    assert run_corpus("trace", "import", str(path), "-o", str(tmp_path / "tables.parquet")).code == 0
    statuses = parquet.read_table(tmp_path / "tables.parquet" / "events.parquet")["status"].to_pylist()
    assert statuses.count("error") == 2


def test_an_error_that_the_graph_got_over_is_an_event_and_no_end(tmp_path: Path) -> None:
    rows = crashed("ValueError('x')")
    rows[0]["error"] = None
    trace = one(tmp_path / "x.jsonl", rows, "langsmith")

    assert ends(trace) == [(3.0, "ask", "tool_result", "parse", "error", "ValueError")]
    assert said(trace)[-1] == "ask stop"


def test_an_error_is_told_once_by_the_innermost_event_and_by_the_end_of_the_run(tmp_path: Path) -> None:
    error = "RateLimitError('slow down')"
    rows = [
        run("g", None, "chain", 0, 5, title="graph", error=error),
        run("ask", "g", "chain", 1, 4, metadata=node("ask", 1), error=error),
        run("seq", "ask", "chain", 1, 4, metadata=node("ask", 1), error=error),
        run("m", "seq", "llm", 1, 4, metadata=node("ask", 1), error=error),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "langsmith")

    assert ends(trace) == [
        (0.0, "ask", "inference", None, "error", "RateLimitError"),
        (4.0, "ask", "stop", None, "error", "RateLimitError"),
    ]


def test_a_run_that_failed_before_any_model_was_asked_is_a_failed_run(tmp_path: Path) -> None:
    rows = [
        run("g", None, "chain", 0, 5, title="graph", error="KeyError('x')"),
        run("load", "g", "chain", 1, 4, metadata=node("load", 1), error="KeyError('x')"),
    ]
    trace = one(tmp_path / "x.jsonl", rows, "langsmith")

    assert said(trace) == ["graph tool_result load", "graph stop"]
    assert [each[-1] for each in ends(trace)] == ["KeyError", "KeyError"]


def test_an_error_within_an_agent_that_goes_on_is_its_event(tmp_path: Path) -> None:
    spans = [
        otel_span(1, 0, "invoke_agent a", 0, 9, **GENAI),
        {**otel_span(2, 1, "parse", 1, 2), "status": {"code": 2, "message": "ValueError: x"}},
        chat(3, 1, 3, 4, **counts(10, 2)),
    ]
    trace = one(tmp_path / "x.jsonl", [request(spans)], "otlp")

    assert ends(trace) == [(0.0, "a", "tool_result", "parse", "error", "ValueError")]
    assert "a tool_result parse -tool_dependency- a inference" in edges(trace)


@pytest.mark.parametrize("error", ["ParentCommand(Command(goto='b'))", "GraphInterrupt(())"])
def test_what_is_raised_to_go_on_elsewhere_is_no_error(tmp_path: Path, error: str) -> None:
    trace = one(tmp_path / "x.jsonl", crashed(error), "langsmith")

    assert ends(trace) == []


# Agents that do nothing, calls that two libraries have seen


def of_library(name: str, *spans: dict[str, Any]) -> dict[str, Any]:
    """Spans as a request of OTLP, written by an instrumentation."""
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": name}, "spans": list(spans)}]}]}


def seen_by_langchain(number: int, parent: int, begin: float, end: float, read: int, **more: Any) -> dict[str, Any]:
    """A model call in the words of OpenInference."""
    counts = {"llm__token_count__prompt": read, "llm__token_count__completion": 5, "llm__model_name": "m-large"}
    return otel_span(number, parent, "ChatModel", begin, end, openinference__span__kind="LLM", **{**counts, **more})


def seen_by_client(number: int, parent: int, begin: float, end: float, read: int, **more: Any) -> dict[str, Any]:
    """The same call in the words of GenAI."""
    model = {"gen_ai__response__model": "m-large-2026-01-15"}
    return chat(number, parent, begin, end, **{**counts(read, 5), **model, **more})


def test_one_agent_whose_parts_call_themselves_agents_is_one(tmp_path: Path) -> None:
    """The spans of a LangChain agent: ten of its eleven agents ask no model and call no tool."""
    kind = {"openinference__span__kind": "AGENT"}
    spans = [otel_span(1, 0, "executor", 0, 60, **kind, agent__name="executor")]
    for number in range(5):
        begin = 10 * number
        spans += [
            otel_span(10 + number, 1, f"route {number}", begin, begin + 1, **kind, agent__name=f"route {number}"),
            otel_span(20 + number, 10 + number, f"check {number}", begin, begin + 1, **kind),
            seen_by_langchain(30 + number, 1, begin + 2, begin + 4, 100 + number),
        ]
    trace = one(tmp_path / "x.jsonl", [of_library("langchain", *spans)], "otlp")

    assert [agent["id"] for agent in trace["agents"]] == ["executor"]
    assert said(trace) == ["executor inference"] * 5 + ["executor stop"]


def test_an_agent_that_says_only_what_it_has_spent_is_one(tmp_path: Path) -> None:
    spans = [
        otel_span(1, 0, "invoke_agent a", 0, 9, **GENAI),
        chat(2, 1, 1, 2, **counts(10, 2)),
        otel_span(3, 1, "invoke_agent b", 3, 5, **{**GENAI, "gen_ai__agent__name": "b"}, **counts(7, 1)),
        otel_span(4, 1, "invoke_agent c", 6, 8, **{**GENAI, "gen_ai__agent__name": "c"}),
    ]
    trace = one(tmp_path / "x.jsonl", [request(spans)], "otlp")

    assert [agent["id"] for agent in trace["agents"]] == ["a", "b"]


@pytest.mark.parametrize("parent", [1, 10], ids=["beside", "inside"])
def test_calls_that_two_libraries_have_instrumented_are_taken_once(tmp_path: Path, parent: int) -> None:
    spans = [otel_span(1, 0, "invoke_agent a", 0, 30, **GENAI)]
    ours, theirs = [], []
    for number in range(3):
        begin = 2 + 8 * number
        ours.append(seen_by_langchain(10 + number, 1, begin, begin + 4, 100 + number))
        above = 1 if parent == 1 else parent + number
        cached = {"gen_ai__usage__cache_read__input_tokens": 40}
        theirs.append(seen_by_client(20 + number, above, begin + 0.004, begin + 3.996, 100 + number, **cached))
    trace = one(
        tmp_path / "x.jsonl", [of_library("a", *spans), of_library("b", *ours), of_library("c", *theirs)], "otlp"
    )

    assert said(trace) == ["a inference"] * 3 + ["a stop"]
    assert trace["costs"]["tokens"] == 303 + 15
    assert trace["events"][0]["tokens"] == {"input": 60, "output": 5, "cache_read": 40}
    report = trace["import_report"]
    assert report["problems"]["model call that two libraries have instrumented: taken once"]["number"] == 3
    assert report["token_ledger"]["left out: model call that another library has instrumented, too"]["records"] == 3


def test_twins_may_be_known_by_their_answer_alone(tmp_path: Path) -> None:
    said_by_both = {"output__value": "Forty-two."}
    ours = otel_span(2, 1, "ChatModel", 1, 3, openinference__span__kind="LLM", **said_by_both)
    theirs = chat(3, 1, 1.01, 2.99, **counts(10, 2), **said_by_both)
    spans = [
        of_library("a", otel_span(1, 0, "invoke_agent a", 0, 9, **GENAI)),
        of_library("b", ours),
        of_library("c", theirs),
    ]
    trace = one(tmp_path / "x.jsonl", spans, "otlp")

    assert (said(trace), trace["costs"]["tokens"]) == (["a inference", "a stop"], 12)


@pytest.mark.parametrize(
    ("library", "later", "read", "model"),
    [
        ("b", 0.004, 100, "m-large"),  # one library saw two calls
        ("c", 0.5, 100, "m-large"),  # too late
        ("c", 0.004, 101, "m-large"),  # another usage
        ("c", 0.004, 100, "n-small"),  # another model
    ],
)
def test_calls_that_are_alike_are_two(tmp_path: Path, library: str, later: float, read: int, model: str) -> None:
    first = seen_by_langchain(2, 1, 1, 4, 100)
    second = seen_by_client(3, 1, 1 + later, 4 + later, read, gen_ai__response__model=model)
    spans = [of_library("a", otel_span(1, 0, "invoke_agent a", 0, 9, **GENAI))]
    spans += [of_library("b", first), of_library(library, second)]
    trace = one(tmp_path / "x.jsonl", spans, "otlp")

    assert said(trace) == ["a inference", "a inference", "a stop"]
    assert trace["import_report"]["problems"] == {}
