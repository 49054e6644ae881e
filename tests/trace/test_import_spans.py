"""Span trees imported: logs of the real SDKs, the same run in two formats, and rows that are anything."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError
from tests.conftest import ROOT
from tests.effort import tries
from tests.trace.conversationlogs import documented, ledger_lines
from tests.trace.spanlogs import (
    KINDS,
    LOGS,
    MODULES,
    answer,
    chat,
    counts,
    fixtures,
    imported,
    ledger,
    node,
    one,
    otel_span,
    outline,
    request,
    run,
    sdk_span,
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
            hidden = (" safety_event", "judge return", "ward stop", "ward tool_result turn")
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
            for spent in (generation["message"]["kwargs"]["usage_metadata"] for generation in batch):
                attributes["llm__token_count__prompt"] = spent["input_tokens"]
                attributes["llm__token_count__completion"] = spent["output_tokens"]
                attributes["llm__token_count__prompt_details__cache_read"] = spent["input_token_details"]["cache_read"]
                attributes["llm__token_count__completion_details__reasoning"] = spent["output_token_details"][
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
    lines = sorted({*documented("spans"), *documented("inspect_ai")})

    assert ledger_lines("spans") == lines


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
    number = tries(10_000, 1_500)  # half again as deep as calls may be
    trace = one(tmp_path / "x.jsonl", make(number), "openai_agents")

    assert len(trace["events"]) >= events * (number - 1)


def test_call_ids_that_look_numbered_are_told_apart(tmp_path: Path) -> None:
    names = ["c" + "#2" * number for number in range(tries(2_000, 600))] + ["c", "c"]
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
