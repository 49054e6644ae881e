"""Inspect AI: the same samples from JSON and from archives, however they are compressed; spans, scores, what was paid."""

import json
import random
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from orchtrace_corpus.base import budget
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core.builder import as_data
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from tests.conftest import run_corpus
from tests.effort import tries
from tests.trace.conversationlogs import LOGS, ledger, moment, of_type, problems, told, trace_of, traces
from tests.trace.test_import_fuzz import mutated_value

TEAM = LOGS / "inspect_ai" / "team.json"
LOG = json.loads(TEAM.read_bytes())
(SAMPLE,) = LOG["samples"]

Event = dict[str, Any]


def span(name: str, kind: str, parent: str | None = None, begin: float = 0, end: float = 50) -> list[Event]:
    """The beginning and the end of a span that is called as its id."""
    one = {
        "event": "span_begin",
        "id": name,
        "span_id": name,
        "parent_id": parent,
        "type": kind,
        "name": name.rstrip("_"),
    }
    return [{**one, "timestamp": moment(begin)}, {"event": "span_end", "id": name, "timestamp": moment(end)}]


def model(around: str, begin: float, end: float, usage: Any = None, **more: Any) -> Event:
    output = {"model": "m", "choices": [{"message": {"content": "A"}, "stop_reason": "stop"}], "usage": usage}
    found = {
        "event": "model",
        "span_id": around,
        "timestamp": moment(begin),
        "completed": moment(end),
        "output": output,
    }
    return {**found, **more}


def used(put: Any, got: Any, read: Any = None, total: Any = None) -> dict[str, Any]:
    return {"input_tokens": put, "output_tokens": got, "input_tokens_cache_read": read, "total_tokens": total}


def tool(around: str, name: str, call: str, begin: float, end: float, **more: Any) -> Event:
    found = {"event": "tool", "span_id": around, "function": name, "id": call, "arguments": {}, "result": "x"}
    return {**found, "timestamp": moment(begin), "completed": moment(end), **more}


def log(*events: Event, **sample: Any) -> dict[str, Any]:
    """A log of one sample; the events of an agent `lead` are in its span."""
    all_ = [*span("lead", "agent"), *events]
    return {**LOG, "samples": [{"id": "s", "epoch": 1, "uuid": "u", "events": all_, "scores": {}, **sample}]}


def write(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document), "utf-8")
    return path


def archive(path: Path, document: dict[str, Any], method: int = 93, *, died: bool = False) -> Path:
    """The same as an archive; of a run that died, without its header."""
    head = json.dumps({name: value for name, value in document.items() if name != "samples"}).encode()
    members = {"_journal/start.json": head}
    members |= {
        f"samples/{one['id']}_epoch_{one['epoch']}.json": json.dumps(one).encode() for one in document["samples"]
    }
    members |= {} if died else {"header.json": head}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED if method == 93 else method) as made:
        for name, data in members.items():
            made.writestr(name, pyarrow.compress(data, codec="zstd", asbytes=True) if method == 93 else data)
    if method == 93:
        whole = bytearray(path.read_bytes())
        for mark, place in ((b"PK\3\4", 8), (b"PK\1\2", 10)):  # where the two kinds of headers have the method
            at = whole.find(mark)
            while at >= 0:
                struct.pack_into("<H", whole, at + place, 93)
                at = whole.find(mark, at + 4)
        for at, data in local_headers(whole, members):  # Python 3.14 reads zstd itself, and compares these
            struct.pack_into("<I", whole, at + 14, zlib.crc32(data))
            struct.pack_into("<I", whole, at + 22, len(data))
        path.write_bytes(central(whole, members))
    return path


def local_headers(whole: bytearray, members: dict[str, bytes]) -> list[tuple[int, bytes]]:
    return [(whole.find(name.encode()) - 30, data) for name, data in members.items()]


def central(whole: bytearray, members: dict[str, bytes]) -> bytes:
    """The archive with checksums and sizes of what is compressed in its directory."""
    begin = whole.find(b"PK\1\2")
    for name, data in members.items():
        at = whole.find(name.encode(), begin) - 46
        struct.pack_into("<I", whole, at + 16, zlib.crc32(data))
        struct.pack_into("<I", whole, at + 24, len(data))
    return bytes(whole)


def said(trace: dict[str, Any]) -> dict[str, Any]:
    """A trace without where its events were found."""
    for event in trace["events"]:
        del event["source"]
    del trace["import_report"]
    return trace


# The same sample, however it is kept


def test_the_fixture_gives_what_its_text_says() -> None:
    trace = trace_of(TEAM)

    assert told(trace) == (LOGS / "told" / "inspect_ai" / "team.txt").read_text("utf-8")
    assert trace["run"] == {"group": "Run01 lines count", "attempt": 2}
    assert trace["rewards"] == {"team": 1.0}
    assert trace["metrics"] == {
        "feedback.includes": 1.0, "task_success": 1.0, "total_time_s": 47.7, "working_time_s": 45.7,
    }  # fmt: skip


@pytest.mark.parametrize("method", [93, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize("died", [False, True])
def test_an_archive_gives_the_trace_of_the_json(tmp_path: Path, method: int, died: bool) -> None:
    path = archive(tmp_path / "one.eval", LOG, method, died=died)

    assert said(trace_of(path)) == said(trace_of(TEAM))


def test_every_sample_is_a_trace_and_one_that_is_broken_is_named(tmp_path: Path) -> None:
    samples = [{**SAMPLE, "id": name, "uuid": name} for name in ("a", "b")]
    path = archive(tmp_path / "one.eval", {**LOG, "samples": samples}, zipfile.ZIP_DEFLATED)
    assert [trace["trace_id"] for trace in traces(path)] == ["a", "b"]

    whole = bytearray(path.read_bytes())
    at = whole.find(b"samples/a") + 200
    whole[at : at + 50] = b"\0" * 50
    path.write_bytes(whole)
    done = run_corpus("trace", "import", str(path))
    assert (done.code, len(done.stdout.splitlines())) == (1, 1)
    assert "'samples/a_epoch_2.json' in" in done.stderr


def test_an_archive_with_zstd_says_what_is_missing_without_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(tmp_path / "one.eval", LOG)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "env" / "python"))
    monkeypatch.setattr("orchtrace_corpus.base.errors.__file__", str(tmp_path / "package" / "base" / "errors.py"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(DataFileError, match="without pyarrow: it is compressed with zstd") as raised:
        traces(path)
    assert raised.value.hint == "Install it: env/python -m pip install -e '.[parquet]'"


def test_a_member_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, method in enumerate((93, zipfile.ZIP_DEFLATED)):
        path = archive(tmp_path / f"{number}.eval", LOG, method)
        monkeypatch.setattr(budget, "MAX_DOCUMENT_BYTES", 2_000)
        with pytest.raises(DataFileError, match="is larger than"):
            traces(path)
        monkeypatch.undo()


# Tokens


def test_input_that_has_caches_in_it_is_told_by_the_total(tmp_path: Path) -> None:
    answers = [model("lead", 1, 2, used(100, 10, 40, 150)), model("lead", 3, 4, used(140, 10, 40, 150))]
    trace = trace_of(write(tmp_path / "x.json", log(*answers)))

    assert [event["tokens"]["input"] for event in trace["events"] if "tokens" in event] == [100, 100]
    assert trace["costs"]["tokens"] == 300


def test_an_answer_from_a_cache_was_not_paid_for(tmp_path: Path) -> None:
    answers = [model("lead", 1, 2, used(9, 1, 0, 10)), model("lead", 3, 4, used(9, 1, 0, 10), cache="read")]
    trace = trace_of(write(tmp_path / "x.json", log(*answers)))

    assert trace["costs"]["tokens"] == 10
    assert ledger(trace) == {
        "counted: model call's own usage": 1,
        "left out: answer that was kept from an earlier run, and that nobody paid for again": 1,
    }


def test_usage_that_is_not_there_is_unknown_and_a_sum_that_differs_is_reported(tmp_path: Path) -> None:
    answers = [model("lead", 1, 2, used(9, 1, 0, 10)), model("lead", 3, 4)]
    trace = trace_of(write(tmp_path / "x.json", log(*answers, model_usage={"m": used(50, 5, 0, 55)})))

    assert trace["costs"]["tokens"] is None
    assert problems(trace) == {"usage that is stated twice, with different figures: that of the call itself counts": 1}


# Agents, calls, people, ends


def test_a_handoff_is_a_spawn_and_agents_that_are_collected_have_no_parent(tmp_path: Path) -> None:
    events = [
        *span("expert", "handoff", "lead"), *span("transfer", "tool", "expert"), *span("expert_", "agent", "transfer", 5, 9),
        model("lead", 1, 2, used(1, 1, 0, 2)), tool("lead", "transfer", "c1", 3, 9), model("expert_", 6, 7, used(1, 1, 0, 2)),
    ]  # fmt: skip
    trace = trace_of(write(tmp_path / "x.json", log(*events)))
    assert of_type(trace, "spawn", "return") == ["lead spawn transfer > expert", "expert return > lead"]

    both = [
        span(f"t{n}", "task") + span(f"r {n}", "agent", f"t{n}") + span(f"r_{n}", "agent", f"r {n}") for n in (1, 2)
    ]
    asked = [model(f"r_{n}", 1, 2, used(1, 1, 0, 2)) for n in (1, 2)]
    document = {**LOG, "samples": [{**SAMPLE, "events": [*both[0], *both[1], *asked]}]}
    trace = trace_of(write(tmp_path / "x.json", document))
    assert [agent["id"] for agent in trace["agents"]] == ["r_1", "r_2"]
    assert of_type(trace, "spawn") == []


def test_parallel_calls_of_one_tool_have_each_its_own_agent(tmp_path: Path) -> None:
    events: list[Event] = []
    for name, begin in (("a", 5), ("b", 6)):
        events += [
            *span(f"work{'_' * begin}", "tool", "lead", begin),
            *span(f"w{name}", "agent", f"work{'_' * begin}", begin, 9),
        ]
        events.append(model(f"w{name}", 6, 8, used(1, 1, 0, 2)))
    events += [
        tool("lead", "work", "c1", 5, 9, agent_span_id="wb"),
        tool("lead", "work", "c2", 5, 9, agent_span_id="wa"),
    ]
    trace = trace_of(write(tmp_path / "x.json", log(model("lead", 1, 2, used(1, 1, 0, 2)), *events)))

    spawns = {event["call_id"]: event["to"] for event in trace["events"] if event["type"] == "spawn"}
    assert spawns == {"c1": "wb", "c2": "wa"}


def test_people_and_approvals(tmp_path: Path) -> None:
    events = [
        model("lead", 1, 2, used(1, 1, 0, 2)),
        {"event": "input", "span_id": "lead", "timestamp": moment(5), "input": "Go on.", "input_ansi": ""},
        {"event": "approval", "span_id": "lead", "timestamp": moment(6), "approver": "human", "decision": "reject"},
        model("lead", 7, 8, used(1, 1, 0, 2)),
        {"event": "telepathy", "timestamp": moment(9)},
    ]
    trace = trace_of(write(tmp_path / "x.json", log(*events)))

    assert of_type(trace, "human_intervention", "safety_event") == [
        "user human_intervention > lead", "lead safety_event human (cancelled)",
    ]  # fmt: skip
    assert trace["import_report"]["unknown_kinds"] == {"event telepathy": 1}


@pytest.mark.parametrize(
    ("sample", "ending"),
    [
        ({"error": {"message": "ValueError('x')"}}, "(error ValueError)"),
        ({"limit": {"type": "token", "limit": 5}}, "(error token_limit)"),
        ({}, ""),
    ],
)
def test_an_error_or_a_limit_is_how_the_sample_stopped(tmp_path: Path, sample: dict[str, Any], ending: str) -> None:
    trace = trace_of(write(tmp_path / "x.json", log(model("lead", 1, 2, used(1, 1, 0, 2)), **sample)))

    assert of_type(trace, "stop") == [f"lead stop {ending}".strip()]


def test_working_time_is_without_waiting(tmp_path: Path) -> None:
    events = [
        model("lead", 1, 9, used(1, 1, 0, 2), working_time=3.0),
        tool("lead", "open", "c", 10, 20, working_time=4.0),
    ]
    trace = trace_of(write(tmp_path / "x.json", log(*events)))
    found = {event["type"]: event for event in trace["events"]}

    assert (found["inference"]["t"], found["inference"]["t_request"], found["inference"]["t_end"]) == (0, 5, 8)
    assert (found["tool_call"]["t_end"] - found["tool_call"]["t"], found["tool_call"]["run_time"]) == (10, 4)


@pytest.mark.parametrize(
    ("scores", "metrics"),
    [
        ({"a": {"value": "P"}, "b": {"value": 0.25}}, {"feedback.a": 0.5, "feedback.b": 0.25, "task_success": 0.5}),
        ({"a": {"value": {"x": True, "y": "?"}}}, {"feedback.a.x": 1.0}),
        ({"a": {"value": [1]}, "b": 5}, {}),
        (None, {}),
    ],
)
def test_scores_are_outcomes(tmp_path: Path, scores: Any, metrics: dict[str, float]) -> None:
    trace = trace_of(write(tmp_path / "x.json", log(model("lead", 1, 2, used(1, 1, 0, 2)), scores=scores)))

    assert trace.get("metrics", {}) == metrics


def test_long_texts_are_found_among_the_attachments_where_contents_are_kept(tmp_path: Path) -> None:
    output = {"choices": [{"message": {"content": "attachment://h1"}}], "usage": used(1, 1, 0, 2)}
    called = tool(
        "lead", "open", "c", 3, 4, arguments={"path": "attachment://h2"}, result=[{"text": "attachment://h1"}]
    )
    held = {"h1": "Long words.", "h2": "a.txt"}
    path = write(tmp_path / "x.json", log(model("lead", 1, 2, output=output), called, attachments=held))
    (session,) = importers.sessions(str(path))
    (trace,) = map(as_data, importers.read(session, Privacy(b"", True)))

    assert [event["content_ref"] for event in trace["events"] if "content_ref" in event] == [
        "Long words.", '{"path":"a.txt"}', '[{"text":"Long words."}]',
    ]  # fmt: skip


# What is no log, or is damaged


def test_a_log_without_samples_has_nothing_in_it(tmp_path: Path) -> None:
    for path in (
        write(tmp_path / "x.json", {**LOG, "samples": []}),
        archive(tmp_path / "x.eval", {**LOG, "samples": []}),
    ):
        with pytest.raises(EmptyLogError):
            traces(path, form="inspect_ai")


def test_an_archive_of_something_else_is_not_recognised(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.eval", "w") as made:
        made.writestr("notes.txt", "header of a letter")

    with pytest.raises(DataFileError, match="is not a log in a known format"):
        importers.sessions(str(tmp_path / "x.eval"))


@pytest.mark.parametrize("kept", [write, archive])
def test_damaged_logs_give_sound_traces_or_none(tmp_path: Path, kept: Any) -> None:
    chance, number = random.Random(7), 0
    path = tmp_path / ("x.json" if kept is write else "x.eval")
    for _ in range(tries(150, 30)):
        document = json.loads(TEAM.read_bytes())
        events = document["samples"][0]["events"]
        for _ in range(chance.randint(1, 8)):
            place = chance.randrange(len(events))
            events[place] = mutated_value(events[place], chance)
        if chance.random() < 0.3:
            document["samples"] = mutated_value(document["samples"], chance)
        try:
            kept(path, document)
        except (AttributeError, KeyError, TypeError, ValueError):  # no JSON, or no sample that names a member
            continue
        data = bytearray(path.read_bytes())
        if chance.random() < 0.2:
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        try:
            number += len(traces(path, form="inspect_ai"))
        except DataFileError:
            continue
    assert number > tries(30, 6)
