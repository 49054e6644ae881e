"""`corpus trace import` as its users meet it: what is written, what is said, what happens when something goes wrong."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert

from orchtrace_corpus.base.findings import quote_path
from orchtrace_corpus.base.text.layout import display_width
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core.builder import as_data
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.render.imports import Tally
from tests.conftest import ROOT, run_corpus
from tests.effort import tries
from tests.loopback import loopback_only  # noqa: F401 - guards every test here
from tests.terminal import run_on_terminal

CORPUS = [sys.executable, "-m", "orchtrace_corpus"]
LOGS = ROOT / "tests" / "data" / "logs"
SESSION = ROOT / "tests" / "data" / "session"
"""A session of Claude Code with two sub-agents, each in a file of its own, and a price table."""

KINDS = ("input", "output", "cache_read", "cache_write")
FORMS = tuple(importers.FORMATS)


def imported(*words: str) -> list[dict[str, Any]]:
    result = run_corpus("trace", "import", *words)
    assert result.code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def process(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CORPUS, "trace", "import", *words], capture_output=True, text=True, encoding="utf-8", **options
    )


def on_terminal(
    *words: str, command: str = "import", columns: int = 80, to_file: Path | None = None, **environment: str
) -> tuple[str, int]:
    """Run a command on traces on a terminal; return what it shows there, and its exit code."""
    full = [*CORPUS, "trace", command, *words]
    if to_file is None:
        shown, code = run_on_terminal(full, columns=columns, environment=environment)
    else:
        with to_file.open("wb") as stdout:
            shown, code = run_on_terminal(full, columns=columns, environment=environment, stdout=stdout)
    return shown.replace("\r\n", "\n"), code


def copies(folder: Path, number: int) -> Path:
    """A folder of that many sessions, each with an id of its own."""
    text = next(SESSION.glob("*.jsonl")).read_text(encoding="utf-8")
    folder.mkdir()
    for place in range(number):
        name = f"7ea30000-0000-4000-8000-{place:012}"
        (folder / f"{name}.jsonl").write_text(
            text.replace("7ea30000-0000-4000-8000-000000000001", name), encoding="utf-8"
        )
    return folder


def made(*events: dict[str, Any], **fields: Any) -> Trace:
    """A trace of a few events; what they lack is made up."""
    complete = [{"id": f"e{number}", "t": 0, "type": "inference", "agent": "main", **event}
                for number, event in enumerate(events)]  # fmt: skip
    costs = {"tokens": None, "wall_clock_s": None}
    whole = {"trace_id": "t", "task_id": "t", "events": complete, "edges": [], "rewards": {}, "costs": costs, **fields}
    return convert(whole, Trace)


def total(tokens: Mapping[str, float]) -> float:
    return sum(tokens.get(kind) or 0 for kind in KINDS)


# What is written


def test_a_session_with_its_sub_agents_is_one_trace_that_validate_accepts(tmp_path: Path) -> None:
    result = run_corpus("trace", "import", str(SESSION), "-o", str(tmp_path / "traces.jsonl"))

    assert (result.code, result.stdout) == (0, "")
    assert run_corpus("trace", "validate", str(tmp_path / "traces.jsonl")).code == 0
    (trace,) = [json.loads(line) for line in (tmp_path / "traces.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {event["agent"] for event in trace["events"]} == {"main", "e1", "f2", "user"}
    assert trace["costs"]["tokens"] == 46_215


@pytest.mark.parametrize("form", FORMS)
def test_every_log_of_the_tests_gives_traces_without_errors(form: str, tmp_path: Path) -> None:
    result = run_corpus("trace", "import", str(LOGS / form), "-o", str(tmp_path / "traces.jsonl"))

    assert result.code == 0, result.stderr
    assert run_corpus("trace", "validate", str(tmp_path / "traces.jsonl")).code == 0


def test_to_a_name_that_ends_in_json_goes_one_trace_laid_out(tmp_path: Path) -> None:
    run_corpus("trace", "import", str(SESSION), "-o", str(tmp_path / "run.json"))

    lines = (tmp_path / "run.json").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "{"
    assert sum(line.startswith('    {"id": "e') and '"t":' in line for line in lines) == 29


@pytest.mark.parametrize("output", [True, False])
def test_json_holds_one_trace_and_nothing_is_written_of_several(tmp_path: Path, output: bool) -> None:
    words = ["-o", str(tmp_path / "run.json")] if output else ["--to", "json"]

    result = run_corpus("trace", "import", str(copies(tmp_path / "logs", 2)), *words)

    assert (result.code, result.stdout) == (2, "")
    assert "corpus: there are several traces, and --to json writes only one\nWrite --to jsonl" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_to_parquet_goes_a_folder_of_five_tables(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")

    result = run_corpus("trace", "import", str(SESSION), "--to", "parquet", "-o", str(tmp_path / "tables"))

    assert result.code == 0, result.stderr
    names = sorted(path.name for path in (tmp_path / "tables").iterdir())
    assert names == ["agents.parquet", "edges.parquet", "events.parquet", "ledger.parquet", "traces.parquet"]
    assert parquet.read_table(tmp_path / "tables" / "events.parquet").num_rows == 29
    assert parquet.read_table(tmp_path / "tables" / "traces.parquet").to_pylist()[0]["stated_tokens"] == 46_215


@pytest.mark.parametrize("name", ["tables.parquet", "tables.parquet/"])
def test_a_name_that_ends_in_parquet_means_tables(tmp_path: Path, name: str) -> None:
    pytest.importorskip("pyarrow.parquet")

    result = run_corpus("trace", "import", str(SESSION), "-o", f"{tmp_path}/{name}")

    assert result.code == 0
    assert (tmp_path / "tables.parquet" / "events.parquet").is_file()


def test_a_name_whose_ending_means_no_form_is_refused_unless_the_form_is_said(tmp_path: Path) -> None:
    refused = run_corpus("trace", "import", str(SESSION), "-o", str(tmp_path / "out.csv"))
    said = run_corpus("trace", "import", str(SESSION), "-o", str(tmp_path / "out.log"), "--to", "jsonl")

    assert (refused.code, refused.stderr) == (
        2,
        "corpus: no form of traces ends in '.csv'\n"
        "Name a file in .jsonl, .ndjson, .json, .parquet, or say --to jsonl|json|parquet.\n",
    )
    assert (said.code, [path.name for path in tmp_path.iterdir()]) == (0, ["out.log"])


def test_parquet_needs_a_folder_and_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = run_corpus("trace", "import", str(SESSION), "--to", "parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    without = run_corpus("trace", "import", str(SESSION), "--to", "parquet", "-o", str(tmp_path / "tables"))

    assert (nowhere.code, nowhere.stderr) == (
        2,
        "corpus: Parquet is written to a folder\nName a new one: --to parquet -o FOLDER\n",
    )
    assert (without.code, list(tmp_path.iterdir())) == (2, [])
    assert " -m pip install " in without.stderr


def test_the_same_salt_gives_the_same_hashes_and_none_gives_others() -> None:
    first, second = (imported(str(SESSION), "--salt", "ours") for _ in range(2))
    third, fourth = (imported(str(SESSION)) for _ in range(2))

    assert first == second
    references = [{event.get("content_ref", "") for event in run["events"]} - {""} for (run,) in (first, third, fourth)]
    assert all(references)
    assert not references[0] & references[1]
    assert not references[1] & references[2]


# What stays on the machine

PRIVATE = [
    {"type": "user", "message": {"role": "user", "content": "Mail zoltan@lovelace.example about /home/zoltan/engine, sk-zoltan1842analytical"}},
    {
        "type": "assistant",
        "requestId": "r1",
        "message": {
            "id": "m1",
            "role": "assistant",
            "model": "claude /Users/zoltan/model",
            "content": [
                {"type": "text", "text": "Dear Zoltan"},
                {"type": "tool_use", "id": "t1", "name": "send zoltan@lovelace.example", "input": {"to": "zoltan@lovelace.example"}},
                {"type": "tool_use", "id": "t2", "name": "Agent", "input": {"subagent_type": "/home/zoltan/agent", "prompt": "Zoltan"}},
            ],
            "usage": {"input_tokens": 5, "output_tokens": 7},
        },
    },
    {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "Zoltan"}]}},
    {"type": "novelty of /home/zoltan"},
]  # fmt: skip


@pytest.fixture
def private(tmp_path: Path) -> Path:
    folder = tmp_path / "logs" / "-home-zoltan-engine" / "zoltan@lovelace.example"
    folder.mkdir(parents=True)
    rows = [
        {
            "uuid": f"u{number}",
            "timestamp": f"2026-03-01T09:00:0{number}Z",
            "sessionId": "s",
            "cwd": "/home/zoltan",
            **row,
        }
        for number, row in enumerate(PRIVATE)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows) + "Zoltan's half row"
    (folder / "session.jsonl").write_text(text, encoding="utf-8")
    shutil.copy(LOGS / "openai_agents" / "single.json", folder / "single.json")
    shutil.copy(LOGS / "otlp" / "single.genai.json", folder / "zoltan@lovelace.example.json")
    shutil.copy(LOGS / "langsmith" / "react.jsonl", folder / "react.jsonl")
    return tmp_path / "logs"


def test_nothing_private_is_in_a_trace_or_in_the_report(private: Path) -> None:
    result = run_corpus("trace", "import", str(private))

    assert result.code == 0
    assert len(result.stdout.splitlines()) == 4
    for text in (result.stdout, result.stderr):
        assert "zoltan" not in text.lower()


def test_contents_are_kept_where_that_is_asked_and_it_is_said(private: Path) -> None:
    result = run_corpus("trace", "import", str(private), "--keep-content")

    assert "Mail zoltan@lovelace.example about /home/zoltan/engine" in result.stdout
    assert "Contents are kept in full: be careful who gets these traces.\n" in result.stderr


# The report


def test_the_report_says_what_became_of_every_record() -> None:
    result = run_corpus("trace", "import", str(SESSION), "--prices", str(SESSION / "prices.yaml"))

    assert result.stderr == (
        "1 trace: 23 records read, 29 events created.\n"
        "Token ledger                            records  input  output  from cache  to cache  tokens     USD\n"
        "Counted\n"
        "  usage of the last row of an answer         10  3,870   2,045      27,800    12,500  46,215\n"
        "Left out\n"
        "  row before the last of its answer\n"
        "    (same message.id and requestId)           2  2,400       2                12,000  14,402\n"
        "  totalTokens of a sub-agent's result\n"
        "    (its last context, not a sum)             2                                        5,890\n"
        "By agent\n"
        "  main                                           2,460   1,020      20,700     7,800  31,980  0.0969\n"
        "  e1                                               750     625       3,900     2,700   7,975  0.0076\n"
        "  f2                                               660     400       3,200     2,000   6,260  0.0055\n"
        "By model\n"
        "  example-large-20260115                         2,460   1,020      20,700     7,800  31,980  0.0969\n"
        "  example-small                                  1,410   1,025       7,100     4,700  14,235  0.0131\n"
        "Cost at the prices of 2026-03-01, older than the run of 2026-03-02: 0.1100 USD.\n"
    )


@pytest.mark.parametrize("form", FORMS)
def test_what_is_counted_is_what_the_events_the_agents_and_the_models_have(form: str) -> None:
    spent = 0.0
    for session in importers.sessions(str(LOGS / form)):
        for trace in map(as_data, importers.read(session, Privacy(b"salt"))):
            report = trace["import_report"]
            events = [one for one in trace["events"] if "tokens" in one and not one.get("copied_context")]
            for kind in (*KINDS, "reasoning"):
                counted = sum(
                    entry["tokens"].get(kind, 0)
                    for line, entry in report["token_ledger"].items()
                    if line.startswith("counted")
                )
                assert counted == sum(one["tokens"].get(kind) or 0 for one in events)
                for names in report["token_totals"].values():
                    assert counted == sum(kinds.get(kind, 0) for kinds in names.values())
            if trace["costs"]["tokens"] is not None:
                assert trace["costs"]["tokens"] == sum(total(one["tokens"]) for one in events)
            spent += sum(total(one["tokens"]) for one in events)
    assert (spent > 0) == (form != "who_and_when")  # which has no tokens


def test_a_ledger_that_does_not_add_up_says_so() -> None:
    ((trace,),) = (importers.read(session, Privacy(b"salt")) for session in importers.sessions(str(SESSION)))
    trace.events = [event for event in trace.events if event.agent != "e1"]
    tally = Tally()
    tally.add(trace, {})

    assert tally.lines(None)[-1] == "The ledger does not add up: it counts 46,215 tokens, and the events have 38,240."


def test_one_and_several_are_told_apart() -> None:
    def said(number: int) -> str:
        report = {
            "records_read": number, "repaired": number, "out_of_order": number, "dropped": {}, "skipped": {},
            "unknown_kinds": {}, "problems": {}, "token_ledger": {"unknown: answers": {"records": number, "tokens": {}}},
        }  # fmt: skip
        tally = Tally()
        for _ in range(number):
            tally.add(made({}, import_report=report, reasons={"costs.tokens": "none"}), {})
        return "\n".join(tally.lines(None))

    assert said(1) == (
        "1 trace: 1 record read, 1 event created.\n"
        "1 record is of an earlier time than the one before: sorted by time.\n"
        "1 record had bytes that are not UTF-8, which were replaced.\n"
        "Token ledger  records\nUnknown\n  answers        1\n"
        "The total is unknown: none"
    )
    assert "2 traces: 4 records read, 2 events created." in said(2)
    assert "4 records are of an earlier time" in said(2)
    assert "The total is unknown in 2 traces; each says why, under `reasons`." in said(2)


def test_a_thousand_sessions_are_no_flood() -> None:
    tally = Tally()
    for number in range(1000):
        report = {
            "records_read": 1, "repaired": 0, "out_of_order": 0, "skipped": {f"kind {number}": 1},
            "dropped": {f"reason {number}": {"number": 1, "for_example": [f"{number}.jsonl:1"]}},
            "unknown_kinds": {f"new kind {number}": 1},
            "problems": {f"problem {number}": {"number": 1, "for_example": []}},
            "token_ledger": {"counted: call": {"records": 1, "tokens": {"input": number}}},
            "prices": {"date": "2026-01-01", "currency": "USD", "events": 0, "without": {f"model {number}": 1}},
        }  # fmt: skip
        event = {"model": f"model {number}", "tokens": {"input": number}}
        tally.add(made(event, trace_id=f"session {number}", import_report=report), {})

    lines = tally.lines(80)

    assert len(lines) < 90
    assert "  992  of 992 more kinds" in lines
    assert any(line.startswith("  992 more ") for line in lines)
    assert "more models." in " ".join("\n".join(lines).split())


def test_the_report_fits_the_terminal_and_loses_nothing() -> None:
    tally, counted = Tally(), 0
    for form in FORMS:
        for session in importers.sessions(str(LOGS / form)):
            for trace in importers.read(session, Privacy(b"salt")):
                tally.add(trace, {})
                events = [one for one in as_data(trace)["events"] if not one.get("copied_context")]
                counted += sum(total(one["tokens"]) for one in events if "tokens" in one)

    for width in (40, 60, 80, 100, 200):
        lines = tally.lines(width)
        text = " ".join(" ".join(lines).split())
        assert [line for line in lines if display_width(line) > width and " " in line.strip()] == []
        for figure in ("37,386", f"{counted:,}"):
            assert figure in text


def test_text_of_a_log_cannot_reach_the_terminal(tmp_path: Path) -> None:
    hostile = "\x1b[2J\x07\r\u202e"
    rows = [
        {"type": hostile, "uuid": "u0"},
        {"type": "user", "uuid": "u1", "timestamp": "2026-03-01T09:00:00Z", "sessionId": hostile, "message": {"role": "user", "content": "x"}},
        {"type": "assistant", "uuid": "u2", "timestamp": "2026-03-01T09:00:05Z", "sessionId": hostile, "requestId": "r", "message": {"id": "m", "model": hostile, "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}},
    ]  # fmt: skip
    (tmp_path / f"a{hostile}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    result = run_corpus("trace", "import", str(tmp_path))

    assert result.code == 0
    assert not set(hostile) & set(result.stderr) - set("[2J")


def test_quiet_says_nothing_of_what_went_well() -> None:
    result = run_corpus("--quiet", "trace", "import", str(SESSION))

    assert (result.code, result.stderr) == (0, "")


# What is given


def test_standard_input_is_refused_with_what_to_do() -> None:
    assert run_corpus("trace", "import", "-") == (
        2,
        "",
        "corpus: logs are read from files and folders, not from standard input\n"
        "A session can be several files; name the file or folder that holds it.\n",
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "it is empty"),
        ("# Notes\n", "it begins with '# Notes\\n'"),
        ('{"name": "x", "private": true}\n', "it begins with an object of 'name', 'private'"),
        ("\x89PNG\x00\x01\x02", "it is not text"),
    ],
)
def test_a_file_that_is_no_log_is_refused_with_what_was_found(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "notes.txt").write_text(content, encoding="utf-8")

    result = run_corpus("trace", "import", str(tmp_path / "notes.txt"))

    assert (result.code, result.stdout) == (3, "")
    assert f"notes.txt' is not a log in a known format: {said}\nFormats: claude_code, codex" in result.stderr


def test_what_is_not_there_and_a_folder_without_logs_are_told_apart(tmp_path: Path) -> None:
    nowhere = run_corpus("trace", "import", str(tmp_path / "nowhere"))
    empty = run_corpus("trace", "import", str(tmp_path))
    (tmp_path / "package.json").write_text('{"name": "x"}', encoding="utf-8")
    other = run_corpus("trace", "import", str(tmp_path))

    assert "nowhere': No such file or directory" in nowhere.stderr
    assert "corpus: no log in " in empty.stderr
    assert "is not a log in a known format: it begins with an object of 'name'" in other.stderr
    assert [result.code for result in (nowhere, empty, other)] == [3, 3, 3]


def test_traces_are_no_logs_and_the_message_says_so() -> None:
    result = run_corpus("trace", "import", str(ROOT / "data" / "traces"))

    assert (result.code, result.stdout) == (3, "")
    assert "holds traces already, not logs\nGive them to corpus trace validate, show" in result.stderr


def test_files_that_are_no_logs_are_passed_over_and_counted(tmp_path: Path) -> None:
    folder = copies(tmp_path / "logs", 1)
    for name in "abcdefghij":
        (folder / f"{name}.json").write_text("[1, 2]", encoding="utf-8")
    (folder / "README.md").write_text("# Logs", encoding="utf-8")

    result = run_corpus("trace", "import", str(folder))

    assert (result.code, len(result.stdout.splitlines())) == (0, 1)
    assert result.stderr.startswith(
        "corpus: skipped 10 files that are not logs in a known format (a.json, b.json, c.json, d.json, e.json, f.json, "
        "g.json, h.json, …)\n"
    )


def test_a_session_given_twice_is_imported_once() -> None:
    assert len(imported(str(SESSION), str(SESSION), str(next(SESSION.glob("*.jsonl"))))) == 1


def test_another_format_can_be_forced_and_a_misspelt_one_is_found_out() -> None:
    misspelt = run_corpus("trace", "import", str(SESSION), "--from", "claude-code")
    forced = run_corpus("trace", "import", str(next(SESSION.glob("*.jsonl"))), "--from", "claude_code")

    assert (misspelt.code, forced.code) == (2, 0)
    assert "corpus: there is no log format 'claude-code' (did you mean 'claude_code'?" in misspelt.stderr


def forbid(monkeypatch: pytest.MonkeyPatch, is_forbidden: Callable[[str], bool], why: int = errno.EACCES) -> None:
    """Let files not be opened, as those of others are not, by whoever runs the tests."""
    opened = os.open

    def refuse(path: Any, *options: Any, **named: Any) -> int:
        if is_forbidden(str(path)):
            raise OSError(why, os.strerror(why), path)
        return opened(path, *options, **named)

    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.parametrize("why", [errno.EACCES, errno.EIO])
def test_a_session_that_cannot_be_read_does_not_stop_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: int
) -> None:
    folder = copies(tmp_path / "logs", 3)
    forbidden = sorted(folder.iterdir())[1]
    forbid(monkeypatch, lambda path: path == str(forbidden), why)

    result = run_corpus("trace", "import", str(folder), "-o", str(tmp_path / "traces.jsonl"))

    assert result.code == 1
    assert f"corpus: left out: cannot read {quote_path(str(forbidden))}: {os.strerror(why)}\n" in result.stderr
    assert "2 traces: " in result.stderr
    assert len((tmp_path / "traces.jsonl").read_text(encoding="utf-8").splitlines()) == 2


def test_of_many_that_cannot_be_read_the_first_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copies(tmp_path / "logs", 8)
    readable = sorted(folder.iterdir())[0]
    forbid(monkeypatch, lambda path: path.startswith(f"{folder}/") and path != str(readable))

    some = run_corpus("trace", "import", str(folder))
    readable.unlink()
    none = run_corpus("trace", "doctor", str(folder))

    assert (some.code, len(some.stdout.splitlines())) == (1, 1)
    assert some.stderr.count("corpus: left out: cannot read ") == 5
    assert "corpus: left out: 2 more sessions\n" in some.stderr
    assert (none.code, none.stdout) == (3, "")
    assert none.stderr.endswith(": Permission denied\n")


def test_a_log_in_which_nothing_ran_is_passed_over_and_no_failure(tmp_path: Path) -> None:
    folder = copies(tmp_path / "logs", 1)
    (folder / "summary.jsonl").write_text('{"type": "summary", "summary": "x", "leafUuid": "u"}\n', encoding="utf-8")

    both = run_corpus("trace", "import", str(folder))
    alone = run_corpus("trace", "import", str(folder / "summary.jsonl"), "-o", str(tmp_path / "out.jsonl"))

    assert both.code == 0
    assert both.stderr.startswith(
        "corpus: skipped, because nothing ran in it: no row of a conversation in summary.jsonl\n"
    )
    assert (alone.code, alone.stderr) == (
        3,
        "corpus: no row of a conversation in summary.jsonl\nNothing ran in it, or it is a log of another format.\n",
    )
    assert not (tmp_path / "out.jsonl").exists()


def test_a_wrong_price_table_is_found_out_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("date: 2026-01-01\ncurrency: EUR\nmodels: {}\n", encoding="utf-8")

    result = run_corpus("trace", "import", str(tmp_path / "nowhere"), "--prices", str(tmp_path / "prices.yaml"))

    assert result.code == 3
    assert f"{tmp_path}/prices.yaml:2:11: prices are in USD, not in 'EUR'" in result.stderr


# Files and processes


@pytest.mark.parametrize("words", [["-o", "out"], ["--to", "parquet", "-o", "out"]])
def test_what_exists_is_never_replaced(tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").write_text("precious", encoding="utf-8")

    result = run_corpus("trace", "import", str(SESSION), *words)

    assert (result.code, result.stderr) == (3, "corpus: 'out' exists already\nChoose a new name, or remove it first.\n")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "precious"


def test_what_came_meanwhile_is_not_replaced_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.jsonl"
    read = importers.read

    def slowly(*arguments: Any) -> Any:
        out.write_text("precious", encoding="utf-8")
        return read(*arguments)

    monkeypatch.setattr(importers, "read", slowly)
    result = run_corpus("trace", "import", str(SESSION), "-o", str(out))

    assert result.code == 3
    assert "out.jsonl' exists already" in result.stderr
    assert out.read_text(encoding="utf-8") == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize("comes_meanwhile", [False, True])
def test_on_a_disk_without_links_the_file_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comes_meanwhile: bool
) -> None:
    out = tmp_path / "out.jsonl"

    def link(_: str, target: str) -> None:
        if comes_meanwhile:
            Path(target).write_text("precious", encoding="utf-8")
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    result = run_corpus("trace", "import", str(SESSION), "-o", str(out))

    assert result.code == (3 if comes_meanwhile else 0)
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    assert (out.read_text(encoding="utf-8") == "precious") == comes_meanwhile


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = run_corpus("trace", "import", str(SESSION), "-o", str(tmp_path / "no" / "out.jsonl"))

    assert result.code == 3
    assert "no/out.jsonl': No such file or directory" in result.stderr


def test_a_full_disk_leaves_nothing_and_is_said(tmp_path: Path) -> None:
    limit = "import resource, sys; sys.dont_write_bytecode = True; resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)); "
    limit += "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    code = f"{limit}from orchtrace_corpus.__main__ import main; main()"
    out = tmp_path / "out.jsonl"

    result = subprocess.run(
        [sys.executable, "-c", code, "trace", "import", str(SESSION), "-o", str(out)], capture_output=True, text=True
    )

    assert result.returncode == 3
    assert "corpus: cannot write " in result.stderr
    assert list(tmp_path.iterdir()) == []


def started(folder: Path, out: Path) -> subprocess.Popen[bytes]:
    """An import that has written something, and has not ended."""
    child = subprocess.Popen(
        [*CORPUS, "trace", "import", str(folder), "-o", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and child.poll() is None:
        if any(path.stat().st_size > 0 for path in out.parent.glob("*.part")):
            return child
        time.sleep(0.005)
    raise AssertionError("nothing was written, or all at once")


def test_a_killed_import_leaves_no_half_file_under_the_name(tmp_path: Path) -> None:
    folder, out = copies(tmp_path / "logs", 600), tmp_path / "out.jsonl"
    child = started(folder, out)

    child.kill()
    child.communicate()

    assert not out.exists()
    for path in sorted(folder.iterdir())[50:]:
        path.unlink()
    assert run_corpus("trace", "import", str(folder), "-o", str(out)).code == 0
    assert len(out.read_text(encoding="utf-8").splitlines()) == 50


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_import_ends_with_130_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    folder, out = copies(tmp_path / "logs", 600), tmp_path / "out.jsonl"
    child = started(folder, out)

    child.send_signal(number)
    _, said = child.communicate(timeout=30)

    assert (child.returncode, said) == (130, b"corpus: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_a_reader_that_has_seen_enough_ends_it_quietly(tmp_path: Path) -> None:
    folder = copies(tmp_path / "logs", 200)
    child = subprocess.Popen([*CORPUS, "trace", "import", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline().startswith(b'{"trace_id"')
    child.stdout.close()
    assert child.stderr is not None
    said = child.stderr.read()
    child.stderr.close()

    assert (child.wait(timeout=60), said) == (0, b"")


def test_a_terminal_shows_how_far_it_has_come_and_a_pipe_does_not(tmp_path: Path) -> None:
    folder = copies(tmp_path / "logs", 5)
    shown, code = on_terminal(str(folder), to_file=tmp_path / "out.jsonl")
    piped = process(str(folder))

    assert code == 0
    assert "5 sessions" in shown
    assert "\r\x1b[K5 traces: " in shown, "the line is gone before the report"
    assert "sessions" not in piped.stderr
    assert "\x1b" not in piped.stderr


def test_traces_on_the_terminal_itself_are_not_mixed_with_progress(tmp_path: Path) -> None:
    shown, code = on_terminal(str(SESSION))

    assert code == 0
    assert shown.startswith('{"trace_id"')
    assert "\x1b" not in shown


@pytest.mark.parametrize("columns", [30, 60, 132])
def test_the_report_fits_the_terminal_of_standard_error(tmp_path: Path, columns: int) -> None:
    shown, code = on_terminal(str(SESSION), columns=columns, to_file=tmp_path / "out.jsonl", TERM="dumb")

    assert code == 0
    assert "Token ledger" in shown
    assert max(map(display_width, shown.splitlines())) <= columns


def test_without_utf_8_everything_can_still_be_said(tmp_path: Path) -> None:
    result = process(str(SESSION), env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"})

    assert result.returncode == 0
    assert json.loads(result.stdout)["trace_id"].startswith("7ea30000")


def test_nothing_heavy_is_loaded() -> None:
    heavy = ("bibtexparser", "duckdb", "jsonschema", "numpy", "pandas", "pyarrow", "requests", "rich", "yaml")
    code = "import sys; from orchtrace_corpus.cli.main import run\n"
    code += (
        "for command in ('import', 'doctor'): print(run(['--quiet', 'trace', command, sys.argv[1]]), file=sys.stderr)\n"
    )
    code += f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", code, str(SESSION)], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "0\n0\n[]\n")


# Whatever becomes of a log


@st.composite
def damage(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    """Some things that happen to the lines of a log: what, to which line, and a second number."""
    what = st.sampled_from(["drop", "repeat", "swap", "cut"])
    return draw(st.lists(st.tuples(what, st.integers(0, 30), st.integers(0, 400)), max_size=6))


def damaged(lines: list[str], done: list[tuple[str, int, int]]) -> str:
    for what, first, second in done:
        place, other = first % len(lines), second % len(lines)
        if what == "drop" and len(lines) > 1:
            del lines[place]
        elif what == "repeat":
            lines.insert(other, lines[place])
        elif what == "swap":
            lines[place], lines[other] = lines[other], lines[place]
        elif what == "cut":
            lines[place] = lines[place][:second]
    return "\n".join(lines)


@settings(max_examples=tries(60, 12), deadline=None)
@given(damage(), damage(), st.sampled_from(["claude_code/parallel", "codex/family", "langsmith/send.jsonl"]))
def test_of_a_damaged_log_the_ledger_still_adds_up(first: Any, second: Any, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        given = LOGS / name
        copy = shutil.copytree(given, f"{folder}/log") if given.is_dir() else shutil.copy(given, folder)
        files = sorted(Path(folder).rglob("*.jsonl"))
        for file, done in zip(files, (first, second, []), strict=False):
            file.write_text(damaged(file.read_text(encoding="utf-8").split("\n"), done), encoding="utf-8")
        result = run_corpus("trace", "import", str(copy))

        assert result.code in (0, 3), result.stderr
        assert "does not add up" not in result.stderr
        out = Path(folder) / "out.jsonl"
        out.write_text(result.stdout, encoding="utf-8")
        assert not result.stdout or run_corpus("trace", "validate", str(out)).code == 0


def test_paths_without_a_log_are_refused_by_the_first_three(tmp_path: Path) -> None:
    for name in "abcd":
        (tmp_path / name).write_text("no log\n", encoding="utf-8")

    result = run_corpus("trace", "import", *(str(tmp_path / name) for name in "abcd"))

    first_three = ", ".join(f"'{tmp_path / name}'" for name in "abc")
    assert result.code == 3
    assert result.stderr.startswith(f"corpus: {first_three} is not a log in a known format: of 4 files the first, 'a',")
