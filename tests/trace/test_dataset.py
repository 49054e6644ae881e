"""Datasets: what a build keeps through kills and changes, statistics against a plain loop, queries that only read."""

import csv
import hmac
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import plain_statistics
import pytest
from msgspec import convert
from synthesize_traces import trace as synthesized

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.files import locked
from orchtrace_corpus.base.text.layout import display_width, plain
from orchtrace_corpus.base.text.table import Table, lines
from orchtrace_corpus.trace.dataset import spark
from orchtrace_corpus.trace.dataset.columns import TABLES
from orchtrace_corpus.trace.dataset.folder import Folder
from orchtrace_corpus.trace.dataset.tables import Writer, write
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.render import dataset as render
from tests.conftest import ROOT, run_corpus
from tests.effort import FULL, mostly_slow
from tests.trace.datasets import (
    building,
    built,
    finished,
    left_alive,
    rows,
    run_build,
    summary,
    transcript,
    unit_count,
    various_traces,
)
from tests.trace.traces import EXAMPLES, event, example, raw


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Twelve sessions, and a file of finished traces."""
    for number in range(12):
        transcript(tmp_path / "logs" / f"s{number:02}.jsonl", f"s{number:02}", tokens=number)
    chance = random.Random(3)
    made = [json.dumps(synthesized(f"run-{number}", 20, chance)) for number in range(5)]
    (tmp_path / "logs" / "traces.jsonl").write_text("\n".join(made) + "\n", encoding="utf-8")
    return tmp_path / "logs"


def asked(folder: Path, query: str, *options: str) -> Any:
    """The rows that a query gives."""
    result = run_corpus("trace", "dataset", "sql", str(folder), query, "--format", "json", *options)
    assert result.code == 0, result.stderr
    return json.loads(result.stdout)["rows"]


def test_columns_have_names_of_their_own_that_any_engine_takes() -> None:
    for columns in TABLES.values():
        names = [column.name for column in columns]
        assert len(names) == len(set(names))
        assert [name for name in names if not re.fullmatch(r"[a-z][a-z0-9_]*", name)] == []


def test_the_example_traces_as_rows(tmp_path: Path) -> None:
    number = write([example(path.stem) for path in EXAMPLES], str(tmp_path / "tables"))

    assert number == len(EXAMPLES)
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == sorted(f"{name}.parquet" for name in TABLES)
    assert os.listdir(tmp_path) == ["tables"]
    with pytest.raises(DataFileError, match="exists already"):
        write([], str(tmp_path / "tables"))


def test_unknown_is_null_and_a_refused_measure_has_its_reason(tmp_path: Path) -> None:
    from pyarrow import parquet

    events = [
        event("a", 0, "inference", "lead", model="m"),
        event("b", 2, "tool_call", "lead", tool="t", call_id="c", t_end=3, cost_usd=0.5),
    ]
    document = raw(events, "a>b", clock={"unit": "ms"}, metrics={"task_success": None})
    document["reasons"]["metrics.task_success"] = "Nobody judged."
    write([convert(document, Trace)] * 2, str(tmp_path / "tables"))
    table = {name: parquet.read_table(tmp_path / "tables" / f"{name}.parquet").to_pylist() for name in TABLES}

    first, second = table["traces"]
    assert (first["trace"], second["trace"]) == ("t", "t#2")
    assert (first["system"], first["tokens"], first["stated_tokens"], first["epoch"]) == (None, None, None, None)
    assert dict(first["refused"])["tokens"] == "1 inference has no tokens: a"
    assert dict(first["reasons"])["costs.tokens"] == "Made for a test."
    assert (first["cost"], first["cost_at_least"], first["tokens_at_least"]) == (None, 0.5, None)
    assert first["metrics"] == [("task_success", None)]
    assert (first["event_count"], first["edge_count"], first["records_read"]) == (2, 1, None)
    told = table["events"][1]
    assert (told["t"], told["t_end"], told["number"], told["tool"], told["model"]) == (0.002, 0.003, 1, "t", None)
    assert (told["input_tokens"], told["token_basis"], told["trusted"]) == (None, None, None)
    assert table["edges"][0] == {"trace": "t", "src": "a", "dst": "b", "type": "causal"}
    assert [agent["agent"] for agent in table["agents"]] == ["lead", "lead"]
    assert table["ledger"] == []


def test_a_trace_with_errors_is_no_row(tmp_path: Path) -> None:
    from orchtrace_corpus.trace.model.store import InvalidTraceError

    with pytest.raises(InvalidTraceError, match="T2"):
        write([convert(raw([event("a", 1, "inference", "x")] * 2), Trace)], str(tmp_path / "tables"))
    assert os.listdir(tmp_path) == []


def test_import_reports_of_any_shape_do_no_harm(tmp_path: Path) -> None:
    for number, report in enumerate(
        [{"token_ledger": 3}, {"token_ledger": {"x": 4}}, {"token_ledger": {"x": {"tokens": 1, "records": 1e300}}},
         {"dropped": {"x": {}}, "problems": [], "records_read": True}]
    ):  # fmt: skip
        document = raw([event("a", 1, "inference", "x", t_end=2)], import_report=report)
        assert write([convert(document, Trace)], str(tmp_path / str(number))) == 1


def test_a_session_becomes_rows_without_its_contents(tmp_path: Path) -> None:
    transcript(tmp_path / "logs" / "s.jsonl", "s", text="A secret of jo@example.org in /home/jo")
    told = built(tmp_path / "logs", tmp_path / "d")

    assert told == "1 trace in the dataset: 1 source read, 0 as they were.\n"
    everything = "".join(text for table in rows(tmp_path / "d").values() for text in table)
    assert "secret" not in everything
    assert "jo@example.org" not in everything
    (trace,) = asked(tmp_path / "d", "SELECT trace_id, format, tokens, records_read FROM traces")
    assert trace == {"trace_id": "s", "format": "claude_code", "tokens": 10.0, "records_read": 2}
    assert asked(tmp_path / "d", "SELECT sum(output_tokens) n FROM ledger WHERE statement LIKE 'counted%'") == [
        {"n": 3}
    ]


def test_contents_that_a_finished_trace_keeps_become_hashes(tmp_path: Path) -> None:
    document = raw(
        [
            event("a", 1, "inference", "x", content_ref="what was said"),
            event("b", 1, "inference", "x", content_ref="sha256:ab"),
        ]
    )
    (tmp_path / "t.json").write_text(json.dumps(document), encoding="utf-8")
    built(tmp_path / "t.json", tmp_path / "d")

    found = [row["content_ref"] for row in asked(tmp_path / "d", "SELECT content_ref FROM events ORDER BY number")]
    assert re.fullmatch(r"sha256:[0-9a-f]{24}", found[0])
    assert found[1] == "sha256:ab"


def test_the_salt_stays_with_the_dataset_and_out_of_sight(logs: Path, tmp_path: Path) -> None:
    built(logs, tmp_path / "d")
    private = tmp_path / "d" / ".build"

    assert (private.stat().st_mode & 0o777, (private / "dataset.json").stat().st_mode & 0o777) == (0o700, 0o600)
    built(logs, tmp_path / "one", "--salt", "ours")
    built(logs, tmp_path / "two", "--salt", "ours")
    assert rows(tmp_path / "one") == rows(tmp_path / "two") != rows(tmp_path / "d")
    result = run_build(str(logs), "-o", str(tmp_path / "one"), "--salt", "theirs")
    assert result.code == 2
    assert "another salt" in result.stderr


def test_a_second_build_reads_only_what_is_new_or_changed(logs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    built(logs, folder, "--salt", "x")
    transcript(logs / "s03.jsonl", "s03", tokens=100)
    transcript(logs / "new.jsonl", "new")
    os.utime(logs / "s04.jsonl", (1, 1))  # copied, say: the same content at another time

    told = built(logs, folder)

    assert told == "18 traces in the dataset: 2 sources read, 12 as they were.\n"
    assert asked(folder, "SELECT tokens FROM traces WHERE trace_id = 's03'") == [{"tokens": 103.0}]
    built(logs, tmp_path / "fresh", "--salt", "x")
    assert rows(folder) == rows(tmp_path / "fresh")
    assert built(logs, folder) == "18 traces in the dataset: 0 sources read, 14 as they were.\n"


def test_a_change_that_keeps_the_size_is_seen(logs: Path, tmp_path: Path) -> None:
    built(logs, tmp_path / "d")
    transcript(logs / "s03.jsonl", "s03", tokens=9)

    assert "1 source read" in built(logs, tmp_path / "d")
    assert asked(tmp_path / "d", "SELECT tokens FROM traces WHERE trace_id = 's03'") == [{"tokens": 12.0}]


def test_a_session_that_gets_another_file_is_read_anew(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "s.jsonl"
    transcript(log, "s")
    built(tmp_path / "logs", tmp_path / "d")
    side = [{**json.loads(row), "isSidechain": True, "agentId": "b1"} for row in log.read_text().splitlines()]
    side[1]["message"]["id"] = "m-other"
    (log.parent / "s" / "subagents").mkdir(parents=True)
    (log.parent / "s" / "subagents" / "agent-b1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in side))

    assert built(tmp_path / "logs", tmp_path / "d").startswith("1 trace in the dataset: 1 source read")
    assert asked(tmp_path / "d", "SELECT agents FROM traces") == [{"agents": 2.0}]  # the person is none


def test_logs_that_are_gone_keep_their_rows_until_they_are_pruned(logs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    built(logs, folder, "--salt", "x")
    (logs / "s00.jsonl").unlink()
    transcript(logs / "s01.jsonl", "s01", tokens=50)

    assert built(logs, folder) == (
        "17 traces in the dataset: 1 source read, 11 as they were, "
        "1 kept whose logs are gone or were not named (--prune drops them).\n"
    )
    assert built(logs, folder, "--prune") == (
        "16 traces in the dataset: 0 sources read, 12 as they were, 1 dropped whose logs are gone or were not named.\n"
    )
    built(logs, tmp_path / "fresh", "--salt", "x")
    assert rows(folder) == rows(tmp_path / "fresh")


def test_another_price_table_makes_other_rows(logs: Path, tmp_path: Path) -> None:
    built(logs, tmp_path / "d")
    (tmp_path / "prices.yaml").write_text(
        "date: 2026-05-04\ncurrency: USD\nmodels:\n  small: {input: 1000000, output: 0}\n", encoding="utf-8"
    )

    assert "13 sources read" in built(logs, tmp_path / "d", "--prices", str(tmp_path / "prices.yaml"))
    assert asked(tmp_path / "d", "SELECT cost FROM traces WHERE trace_id = 's07'") == [{"cost": 7.0}]
    assert "0 sources read" in built(logs, tmp_path / "d", "--prices", str(tmp_path / "prices.yaml"))

    transcript(logs / "s03.jsonl", "s03", tokens=100)  # rewrites a unit, which keeps its date
    built(logs, tmp_path / "d", "--prices", str(tmp_path / "prices.yaml"))
    assert built(logs, tmp_path / "d").splitlines() == [
        "17 traces in the dataset: 13 sources read, 0 as they were.",
        "Costs are left out: 12 sources had been read with --prices, and not this time.",  # finished traces keep theirs
    ]
    assert built(logs, tmp_path / "d") == summary(17, 0, 13)


def test_what_cannot_be_read_is_told_and_does_not_stop_the_rest(logs: Path, tmp_path: Path) -> None:
    bad = raw([event("a", 1, "inference", "x"), event("a", 1, "inference", "x")])
    good = raw([event("a", 1, "inference", "x")])
    (logs / "bad.jsonl").write_text(
        f"{json.dumps(good)}\n{json.dumps(bad)}\n{{\n{json.dumps(good)}\n", encoding="utf-8"
    )
    (logs / "notes.json").write_text('{"what": "no log"}', encoding="utf-8")

    told = built(logs, tmp_path / "d", code=1).splitlines()

    assert told[:2] == [
        "19 traces in the dataset: 14 sources read, 0 as they were.",
        "1 file skipped: not logs or traces in a known format.",
    ]
    assert told[2].startswith("corpus: left out: bad.jsonl: bad.jsonl:2: T201 $.events[1].id:")
    assert told[3].startswith("corpus: left out: bad.jsonl: bad.jsonl:3:")
    assert built(logs, tmp_path / "d", code=1).splitlines()[2:] == told[2:]


def test_nothing_to_read_and_folders_that_are_no_datasets_are_refused(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("{}", encoding="utf-8")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine", encoding="utf-8")
    for words, message in (
        ((str(tmp_path / "notes.json"), "-o", str(tmp_path / "d")), "none is a log or a trace"),
        ((str(logs), "-o", str(tmp_path / "full")), "is not a dataset, and not empty"),
        ((str(logs), "-o", str(tmp_path / "notes.json")), "cannot make"),
        ((str(logs / "none"), "-o", str(tmp_path / "d")), "No such file"),
    ):
        result = run_build(*words)
        assert result.code == 3
        assert message in result.stderr
    assert os.listdir(tmp_path / "full") == ["mine.txt"]
    assert run_build(str(logs), "-o", str(tmp_path / "d"), "--from", "codx").code == 2
    assert run_corpus("trace", "dataset", "stats", str(tmp_path / "full")).code == 3


def test_two_builds_do_not_meet(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchtrace_corpus.trace.dataset import folder

    monkeypatch.setattr(folder, "_LOCK_WAIT_SECONDS", 0.1)
    built(logs, tmp_path / "d")
    with locked(str(tmp_path / "d")):
        result = run_build(str(logs), "-o", str(tmp_path / "d"))

    assert result.code == 3
    assert "another corpus command is writing" in result.stderr


def test_a_large_file_of_traces_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchtrace_corpus.trace.dataset import plan

    chance = random.Random(4)
    made = [json.dumps(synthesized(f"run-{number}", chance.randint(1, 40), chance)) + "\n" for number in range(30)]
    (tmp_path / "many.jsonl").write_text("".join(made), encoding="utf-8")
    whole = [line for _, line in plan.lines(str(tmp_path / "many.jsonl"), 0, 10**9)]
    for size in (len(made[0]), len(made[0]) + 1, max(map(len, made)), 10_000):
        monkeypatch.setattr(plan, "PART_BYTES", size)
        parts = plan.find([str(tmp_path / "many.jsonl")], "")
        path = parts.sources[0].files[0].path
        assert [line for part in parts.sources for _, line in plan.lines(path, part.begin, part.end)] == whole
    monkeypatch.setattr(plan, "PART_BYTES", 50_000)
    built(tmp_path / "many.jsonl", tmp_path / "d")
    assert asked(tmp_path / "d", "SELECT count(DISTINCT trace_id) ids, count(*) n FROM traces") == [
        {"ids": 30, "n": 30}
    ]
    with (tmp_path / "many.jsonl").open("a") as file:
        file.write(json.dumps(synthesized("late", 5, chance)) + "\n")
    assert "31 traces in the dataset: 1 source read" in built(tmp_path / "many.jsonl", tmp_path / "d")


# Answers that several sessions have.


def forked(log: Path, path: Path) -> None:
    """A copy of a session as programs make it that fork one: the same answers under new ids of rows."""
    copied = [{**json.loads(row), "sessionId": path.stem} for row in log.read_text().splitlines()]
    for number, row in enumerate(copied):
        row["uuid"], row["parentUuid"] = f"{path.stem}-{number}", f"{path.stem}-{number - 1}" if number else None
    path.write_text("".join(json.dumps(row) + "\n" for row in copied), encoding="utf-8")


@pytest.mark.parametrize("in_a_unit", mostly_slow([1, 2, 100], [2]))
def test_an_answer_that_several_sessions_have_counts_once_in_whatever_units_they_are(
    in_a_unit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orchtrace_corpus.trace.dataset import plan

    monkeypatch.setattr(plan, "MAX_SESSIONS", in_a_unit)
    folder, logs = tmp_path / "d", tmp_path / "logs"
    for name in "abc":
        transcript(logs / f"{name}.jsonl", name, tokens=100)
    forked(logs / "a.jsonl", logs / "z.jsonl")
    forked(logs / "a.jsonl", logs / "y.jsonl")
    built(logs, folder, "--salt", "x")

    assert asked(folder, "SELECT trace_id, number FROM copies JOIN traces USING (trace) ORDER BY trace_id") == [
        {"trace_id": "y", "number": 1},
        {"trace_id": "z", "number": 1},
    ]
    assert spent(folder) == [("small-20260101", 3, 300, 9)]
    for gone, copies in ("a", 1), ("y", 0), ("z", 0):  # whichever of them counts, another does when it is gone
        (logs / f"{gone}.jsonl").unlink()
        built(logs, folder, "--prune")
        assert asked(folder, "SELECT count(*) AS n FROM copies") == [{"n": copies}]
        if FULL or gone == "z":
            assert spent(folder) == [("small-20260101", 3, 300, 9) if gone != "z" else ("small-20260101", 2, 200, 6)]


@pytest.mark.parametrize("salt", ["x", "y", "z"])
def test_of_copies_that_differ_the_one_of_most_tokens_counts_whatever_the_salt(salt: str, tmp_path: Path) -> None:
    transcript(tmp_path / "logs" / "a.jsonl", "a", tokens=100)
    rows = (tmp_path / "logs" / "a.jsonl").read_text()
    for name, tokens in ("b", 200), ("c", 199), ("marked", 201):
        (tmp_path / "logs" / f"{name}.jsonl").write_text(rows.replace(": 100,", f": {tokens},"))
        forked(tmp_path / "logs" / f"{name}.jsonl", tmp_path / "logs" / f"{name}.jsonl")
    marked = tmp_path / "logs" / "marked.jsonl"
    marked.write_text(marked.read_text().replace('{"type"', '{"forkedFrom": {"sessionId": "a"}, "type"'))
    built(tmp_path / "logs", tmp_path / "d", "--salt", salt)

    assert spent(tmp_path / "d") == [("small-20260101", 1, 200, 3)]
    assert asked(tmp_path / "d", "SELECT trace_id FROM copies JOIN traces USING (trace) ORDER BY trace_id") == [
        {"trace_id": "a"},
        {"trace_id": "c"},
    ]


def spent(folder: Path) -> list[tuple[Any, ...]]:
    """What the statistics say of each model: its name, events, input and output."""
    result = run_corpus("trace", "dataset", "stats", str(folder), "--format", "json")
    return [(row["asked"], row["events"], row["input"], row["output"]) for row in json.loads(result.stdout)["models"]]


def test_rewards_are_columns_that_statistics_describe(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    built(ROOT / "data" / "traces", folder)
    stats = run_corpus("trace", "dataset", "stats", str(folder), "--format", "json")
    described = {row["measure"]: row for row in json.loads(stats.stdout)["measures"]}

    rows = asked(
        folder, "SELECT trace_id, reward_outcome AS team, reward_team_speed_up AS faster FROM traces ORDER BY trace_id"
    )
    assert [(row["trace_id"], row["team"], row["faster"]) for row in rows if row["faster"] not in (None, 1)] == [
        ("hierarchical", None, 1.25),
        ("swarm", 0.8, pytest.approx(29 / 14)),
    ]
    assert (described["reward_returned"]["n"], described["reward_returned"]["null"]) == (7, 2)


def test_ids_of_answers_are_hashed_by_the_salt_of_the_dataset(tmp_path: Path) -> None:
    from pyarrow import parquet

    transcript(tmp_path / "logs" / "a.jsonl", "a")
    for salt in "xy":
        built(tmp_path / "logs", tmp_path / salt, "--salt", salt)
    found = [parquet.read_table(tmp_path / salt / "answers")["answer"].to_pylist() for salt in "xy"]

    expected = [hmac.digest(salt, b"m-a\0r-a", "sha256").hex()[:24] for salt in (b"x", b"y")]
    assert found == [[one] for one in expected]


# Builds that are killed, or that meet with trouble.

# Replaced files: the mark, the copies, then six of a unit and what it is made of. Writes: the mark, then one for each unit.
KILLS = [
    "replace=1",
    "replace=2",
    "replace=5",
    "replace=8",
    "replace=12",
    "replace=31",
    "write=1",
    "write=2",
    "write=3",
    "units=2",
]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """Logs, and the rows that a build without any trouble makes of them."""
    folder = tmp_path_factory.mktemp("undisturbed")
    for number in range(12):
        transcript(folder / "logs" / f"s{number:02}.jsonl", f"s{number:02}", tokens=number)
    built(folder / "logs", folder / "d", "--salt", "x")
    return folder / "logs", rows(folder / "d")


@pytest.mark.parametrize("moment", mostly_slow(KILLS, ["replace=5", "replace=30", "units=2"]))
def test_a_killed_build_goes_on_where_it_was(
    moment: str, undisturbed: tuple[Path, dict[str, list[str]]], tmp_path: Path
) -> None:
    logs, expected = undisturbed
    folder = tmp_path / "d"
    name, _, number = moment.partition("=")
    with building(logs, folder, moment if name != "units" else "slow=0.1") as process:
        if name == "units":
            while process.poll() is None and unit_count(folder) < int(number):
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert left_alive(process.pid) == []
    units, taken = map(len, finished(folder))
    assert units == {"replace=12": 3, "replace=31": 12, "write=3": 3}.get(moment, units if name == "units" else 0)

    told = built(logs, folder, "--salt", "x")

    assert told == summary(12, 12 - units - taken, units + taken)
    assert rows(folder) == expected
    for table in TABLES:
        assert set(os.listdir(folder / table)) == {unit.file for unit in Folder(str(folder)).units()}
    assert sorted(os.listdir(folder / ".build")) == ["dataset.json", "units"]


def test_finished_units_of_a_killed_build_can_be_described(logs: Path, tmp_path: Path) -> None:
    with building(logs, tmp_path / "d", "replace=12") as process:
        process.communicate(timeout=60)

    result = run_corpus("trace", "dataset", "stats", str(tmp_path / "d"), "--format", "json")

    assert result.code == 0
    assert "a build is at work here, or was broken off" in result.stderr
    (unit,) = Folder(str(tmp_path / "d")).units()
    assert json.loads(result.stdout)["overview"][0] == {
        "what": "traces",
        "number": sum(s.traces for s in unit.records),
    }


@pytest.mark.parametrize(
    ("how", "cause"), [("fatal", "SIGKILL, perhaps for want of memory"), ("bug", "exit code 1; see")]
)
def test_a_worker_that_dies_takes_down_one_session_which_is_named(
    how: str, cause: str, logs: Path, tmp_path: Path
) -> None:
    with building(logs, tmp_path / "d", f"{how}=s04.jsonl", "--jobs", "1") as process:
        _, told = process.communicate(timeout=60)

    assert process.returncode == 1
    first, second = told.splitlines()
    assert first == "16 traces in the dataset: 13 sources read, 0 as they were."
    assert second.startswith(f"corpus: left out: s04.jsonl: the process that read it died: {cause}")
    logged = [path.read_text() for path in (tmp_path / "d" / ".build").glob("worker-*.log")]
    assert [text.splitlines()[-1] for text in logged] == (["RuntimeError: a bug of ours"] if how == "bug" else [])
    assert built(logs, tmp_path / "d") == "17 traces in the dataset: 1 source read, 12 as they were.\n"


def test_files_may_be_called_anything(tmp_path: Path) -> None:
    transcript(tmp_path / "logs" / "s.jsonl", "s")
    os.rename(tmp_path / "logs" / "s.jsonl", os.fsencode(tmp_path / "logs") + b"/caf\xe9\x1b[31m'.jsonl")
    (tmp_path / "logs" / "a '$[*]\u202e.json").write_bytes(EXAMPLES[0].read_bytes())

    folder = tmp_path / "the '*' [a-z]? {set}"
    assert built(tmp_path / "logs", folder) == "2 traces in the dataset: 2 sources read, 0 as they were.\n"
    assert built(tmp_path / "logs", folder) == "2 traces in the dataset: 0 sources read, 2 as they were.\n"
    assert asked(folder, "SELECT count(*) AS n FROM traces") == [{"n": 2}]
    assert run_corpus("trace", "dataset", "stats", str(folder)).code == 0


def test_a_dataset_among_its_logs_is_no_log(tmp_path: Path) -> None:
    transcript(tmp_path / "s.jsonl", "s")

    assert built(tmp_path, tmp_path / "d") == "1 trace in the dataset: 1 source read, 0 as they were.\n"
    assert built(tmp_path, tmp_path / "d") == "1 trace in the dataset: 0 sources read, 1 as they were.\n"


def test_a_full_disk_stops_a_build_with_a_word(logs: Path, tmp_path: Path) -> None:
    with building(logs, tmp_path / "d", "full=1", "--jobs", "1") as process:
        _, told = process.communicate(timeout=60)

    assert process.returncode == 3
    assert told == f"corpus: cannot go on in '{tmp_path / 'd'}': No space left on device\n"


def test_workers_that_all_die_stop_a_build(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with building(logs, tmp_path / "d", "start=3", "--jobs", "1") as process:
        _, told = process.communicate(timeout=120)

    assert process.returncode == 3
    assert "4 processes died, and nothing got done; the last: exit code 7" in told


def test_an_interrupted_build_keeps_what_is_finished_and_leaves_nobody_behind(logs: Path, tmp_path: Path) -> None:
    mask = tmp_path / "mask"
    with building(logs, tmp_path / "d", f"slow=0.3,unit=2,mask={mask}", anew=True) as process:
        while process.poll() is None and unit_count(tmp_path / "d") < 2:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: workers get it, too
        _, told = process.communicate(timeout=60)

    assert process.returncode == 130
    # Every worker begins with interrupts blocked. So does the first: with it begins the resource tracker, which unblocks.
    assert mask.read_text() == "True\nTrue\n"
    assert re.fullmatch(
        r"corpus: \d+ of 13 sources were read; finished units are kept; the same command goes on\ncorpus: interrupted\n",
        told,
    )
    assert left_alive(process.pid) == []
    units, taken = map(len, finished(tmp_path / "d"))
    assert units >= 4
    assert units + taken >= int(told.split()[1]) - 2 * 2  # each of two processes may have been at a unit of two
    assert built(logs, tmp_path / "d") == summary(17, 13 - units - taken, units + taken)


# Statistics.


@pytest.fixture(scope="module")
def various(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of traces that differ: systems, models, clocks, unknown figures, outliers, copied context, costs."""
    folder = tmp_path_factory.mktemp("various")
    various_traces(folder / "t.jsonl")
    result = run_build(str(folder / "t.jsonl"), str(ROOT / "data" / "traces"), "-o", str(folder / "d"))
    assert result.code == 0, result.stderr
    return folder / "d"


@pytest.mark.parametrize(
    "by", mostly_slow(["", "system", "topology,clock_unit", "model,system,model"], ["", "topology,clock_unit"])
)
def test_statistics_are_those_of_a_plain_loop_in_every_figure(
    by: str, various: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--by", by) if by else ()
    ours = run_corpus("trace", "dataset", "stats", str(various), "--format", "json", *words)
    monkeypatch.setattr(sys, "argv", ["plain_statistics.py", str(various), "--by", by])
    plain_statistics.main()
    theirs = json.loads(capsys.readouterr().out)

    assert ours.code == 0, ours.stderr
    assert json.loads(ours.stdout) == theirs
    found = json.loads(ours.stdout)
    assert found["outliers"] or by
    assert {one["unit"] for one in found["measures"]} >= {"s", "step", "token", "usd", "1"}


@pytest.mark.parametrize(
    "dialect", mostly_slow(["duckdb", "databricks", "clickhouse", "postgres"], ["databricks", "clickhouse"])
)
def test_other_engines_have_words_for_all_statistics(dialect: str) -> None:
    from orchtrace_corpus.trace.dataset.statistics import queries

    for name, query in queries(("system", "model"), dialect).items():
        assert "GROUP BY" in query, name


def test_one_table_of_the_statistics_is_a_csv_file_of_its_own(various: Path) -> None:
    result = run_corpus("trace", "dataset", "stats", str(various), "--table", "overview", "--format", "csv")

    assert (result.code, result.stderr) == (0, "")
    assert result.stdout == (
        "what,number\ntraces,159\ndifferent trace_ids,84\nevents,4996\nedges,5208\nwarnings of the graph rules,1\n"
        "records left out at import,0\nrecords of unknown kinds,0\nother problems of the import,0\n"
    )


def test_the_overview_is_divided_as_all_tables_are(various: Path) -> None:
    result = run_corpus(
        "trace", "dataset", "stats", str(various), "--by", "topology", "--table", "overview", "-f", "csv"
    )
    rows = [line.split(",") for line in result.stdout.splitlines()]

    assert rows[0] == ["topology", "what", "number"]
    assert sum(int(number) for _, what, number in rows[1:] if what == "traces") == 159
    assert len({topology for topology, *_ in rows[1:]}) == len(rows[1:]) / 8 > 1


def test_statistics_by_hand(tmp_path: Path) -> None:
    documents = []
    for number, (end, tokens) in enumerate([(1, 10), (2, 20), (3, None), (10, 40)]):
        more = {} if tokens is None else {"tokens": {"input": tokens}}
        documents.append(
            {
                **raw([event("a", 0, "inference", "x", t_end=end, model="m", **more)]),
                "trace_id": f"t{number}",
                "costs": {"tokens": tokens, "wall_clock_s": None},
            }
        )
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents), encoding="utf-8")
    built(tmp_path / "t.jsonl", tmp_path / "d")

    result = run_corpus("trace", "dataset", "stats", str(tmp_path / "d"), "--format", "json")

    found = json.loads(result.stdout)
    by_name = {one["measure"]: one for one in found["measures"]}
    assert by_name["worked"] == {
        "measure": "worked", "unit": "s", "n": 4, "null": 0, "mean": 4, "min": 1,
        "p5": 1.15, "p25": 1.75, "p50": 2.5, "p75": 4.75, "p95": 8.95, "max": 10,
    }  # fmt: skip
    assert (by_name["tokens"]["n"], by_name["tokens"]["null"], by_name["tokens"]["mean"]) == (3, 1, 23.3333333333)
    assert found["models"] == [
        {"asked": "m", "events": 3, "without tokens": 1, "input": 70, "output": None, "cache_read": None,
         "cache_write": None, "reasoning": None, "total": 70, "cost_usd": None, "at_least": True,
         "cost_at_least": False}
    ]  # fmt: skip
    assert found["sub_decisions"][4] == {
        "code": "O5", "sub-decision": "stop", "in traces": 4, "of": 4, "share": 1, "events": 4,
    }  # fmt: skip
    assert found["outliers"] == []

    shown = run_corpus("trace", "dataset", "stats", str(tmp_path / "d")).stdout
    row = next(line for line in shown.splitlines() if line.startswith("m "))
    assert row.split() == ["m", "3", "1", "70", "at", "least", "70"]


def test_tokens_and_costs_of_a_model_are_at_least_what_is_known_of_them(tmp_path: Path) -> None:
    calls = [
        [{"model": "all", "cost_usd": 0.5}, {"model": "some", "cost_usd": 0.25}, {"model": "some"}],
        [{"model": "cut", "cost_usd": 0.5}],
    ]
    documents = []
    for number, fields in enumerate(calls):
        events = [event(f"e{at}", at, "inference", "x", tokens={"input": 10}, **one) for at, one in enumerate(fields)]
        tokens = None if number else 30
        reasons = {"costs.tokens": "cut off", "costs.wall_clock_s": "-"}
        documents.append({**raw(events), "costs": {"tokens": tokens, "wall_clock_s": None}, "reasons": reasons})
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents), encoding="utf-8")
    built(tmp_path / "t.jsonl", tmp_path / "d")
    words = ("trace", "dataset", "stats", str(tmp_path / "d"), "--table", "models")

    assert run_corpus(*words).stdout == (
        "Tokens by model\n"
        "asked  events  without tokens  input  output  cache_read  cache_write  reasoning  total        cost_usd\n"
        "some        2               0     20                                              20           at least 0.25\n"
        "all         1               0     10                                              10           0.5\n"
        "cut         1               0     10                                              at least 10  at least 0.5\n"
        "Reasoning is a part of output. Copied context is not counted. At least: some traces in which the model was asked "
        "do not record all of it.\n"
    )
    assert run_corpus(*words, "-f", "csv").stdout == (
        "asked,events,without tokens,input,output,cache_read,cache_write,reasoning,total,cost_usd,at_least,"
        "cost_at_least\n"
        "some,2,0,20,,,,,20,0.25,False,True\nall,1,0,10,,,,,10,0.5,False,False\ncut,1,0,10,,,,,10,0.5,True,True\n"
    )


def test_outliers_are_named(tmp_path: Path) -> None:
    documents = []
    for number in range(40):
        end = 500 if number == 7 else 10 + number % 5
        documents.append({**raw([event("a", 0, "inference", "x", t_end=end)]), "trace_id": f"t{number}"})
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents), encoding="utf-8")
    built(tmp_path / "t.jsonl", tmp_path / "d")

    found = json.loads(run_corpus("trace", "dataset", "stats", str(tmp_path / "d"), "--format", "json").stdout)

    assert {(one["measure"], one["trace_id"]) for one in found["outliers"]} == {
        (measure, "t7") for measure in ("worked", "span", "elapsed", "brent_bound")
    }
    assert found["outliers"][0]["ranges"] == 243.5


def test_wrong_groupings_are_refused(various: Path) -> None:
    result = run_corpus("trace", "dataset", "stats", str(various), "--by", "sytem")

    assert result.code == 2
    assert "did you mean 'system'?" in result.stderr


def test_a_dataset_handed_on_without_its_private_part_says_the_same(various: Path, tmp_path: Path) -> None:
    shutil.copytree(various, tmp_path / "given", ignore=shutil.ignore_patterns(".build"))
    first, second = (run_corpus("trace", "dataset", "stats", str(folder)) for folder in (various, tmp_path / "given"))

    assert first == second
    assert first.code == 0


def test_a_dataset_handed_on_without_its_private_part_is_not_built_on(logs: Path, tmp_path: Path) -> None:
    built(logs, tmp_path / "d")
    shutil.move(tmp_path / "d" / ".build", tmp_path / "private")

    result = run_build(str(logs), "-o", str(tmp_path / "d"))

    assert (result.code, result.stdout) == (3, "")
    message, hint = result.stderr.splitlines()
    assert message.endswith("without its .build: it can be described and queried, not built on")
    assert hint.startswith("Copy .build to it from where it was built.")
    assert not (tmp_path / "d" / ".build").exists()
    shutil.move(tmp_path / "private", tmp_path / "d" / ".build")
    assert built(logs, tmp_path / "d") == summary(17, 0, 13)


@pytest.mark.parametrize("width", [50, 80, 150])
def test_figures_are_never_cut_on_narrow_terminals(width: int) -> None:
    columns = ("system", "measure", "unit", "n", "null", "mean", "min", "p5", "p25", "p50", "p75", "p95", "max")
    wide = Table("m", "", columns, (("alpha", "coordination_efficiency", "token", *(123456.5 + n for n in range(10))),))

    narrow = render.narrow(wide, width)

    for line in lines(narrow, width):
        assert display_width(plain([line]).rstrip("\n")) <= width
    assert "123465.5" in plain(lines(narrow, width))
    assert (narrow.columns == columns) == (width == 150)
    assert "unit" in narrow.columns  # without it, seconds and steps would be two rows of one name


# Questions in SQL.


REFUSED = {
    "SELECT * FROM read_csv('/etc/passwd')": "file system operations are disabled",
    "SELECT * FROM read_text('/etc/hostname')": "file system operations are disabled",
    "SELECT * FROM '/etc/passwd'": "does not exist",
    "SELECT * FROM glob('/*')": "file system operations are disabled",
    "SELECT * FROM read_parquet('https://example.org/a.parquet')": "",
    "COPY traces TO '{out}'": "COPY is not allowed",
    "COPY traces TO '{part}' (USE_TMP_FILE false)": "COPY is not allowed",
    "EXPLAIN ANALYZE COPY traces TO '{out}'": "EXPLAIN is not allowed",
    "ATTACH '{out}' AS other": "ATTACH is not allowed",
    "EXPORT DATABASE '{out}'": "EXPORT is not allowed",
    "INSTALL httpfs": "LOAD is not allowed",
    "LOAD httpfs": "LOAD is not allowed",
    "SET enable_external_access = true": "is not allowed",
    "CREATE TABLE mine AS SELECT 1": "CREATE is not allowed",
    "DROP VIEW traces": "DROP is not allowed",
    "SELECT 1; DROP VIEW traces": "one statement is wanted, and there are 2",
    "": "one statement is wanted, and there are 0",
    "SELECT * FROM rows": "Table with name rows does not exist",
}


@pytest.mark.parametrize("query", REFUSED)
def test_queries_read_nothing_else_and_write_nothing(query: str, various: Path, tmp_path: Path) -> None:
    out, part = tmp_path / "out", Folder(str(various)).parts()["traces"][0]
    before = Path(part).read_bytes()

    result = run_corpus("trace", "dataset", "sql", str(various), query.format(out=out, part=part))

    assert (result.code, result.stdout) == (2, "")
    assert REFUSED[query] in result.stderr
    assert not out.exists()
    assert Path(part).read_bytes() == before


def test_mistakes_in_sql_are_shown_at_their_place(various: Path) -> None:
    result = run_corpus("trace", "dataset", "sql", str(various), "SELECT\n  trce_id FROM traces")

    assert result.code == 2
    line, mark = result.stderr.splitlines()[-2:]
    assert line == "LINE 2:   trce_id FROM traces"
    assert re.fullmatch(r" {10}\^+", mark)


def test_answers_in_all_forms_hold_nothing_that_a_terminal_obeys(various: Path) -> None:
    query = "SELECT chr(27) || '[2J' || chr(155) AS a, [1, 2] AS b, {'x': NULL} AS c, 1.5::DECIMAL AS d, 'nan'::DOUBLE AS e, true AS f"
    for form in ("table", "markdown", "csv", "json"):
        shown = run_corpus("trace", "dataset", "sql", str(various), query, "--format", form).stdout
        assert not set(shown) & {"\x1b", "\x9b"}
    assert json.loads(shown)["rows"] == [
        {"a": "\x1b[2J\x9b", "b": [1, 2], "c": {"x": None}, "d": "1.500", "e": "nan", "f": True}
    ]


def test_numbers_are_rounded_for_people_and_exact_for_programs(various: Path) -> None:
    query = "SELECT 1/3 AS a, 2.0::DOUBLE AS b, [1/3, 1e-9] AS c, 'inf'::DOUBLE AS d, 1e300 AS e, 12345678 AS f"
    shown = {
        form: run_corpus("trace", "dataset", "sql", str(various), query, "--format", form).stdout
        for form in ("table", "markdown", "csv", "json")
    }

    assert shown["table"].splitlines()[1].split() == "0.333333 2 0.333333, 1e-09 inf 1e+300 12345678".split()
    assert "| 0.333333 |   2 | 0.333333, 1e-09 | inf | 1e+300 | 12345678 |" in shown["markdown"]
    assert shown["csv"].splitlines()[1].startswith('0.3333333333333333,2.0,"0.3333333333333333, 1e-09",inf,')
    assert json.loads(shown["json"])["rows"] == [
        {"a": 1 / 3, "b": 2.0, "c": [1 / 3, 1e-9], "d": "inf", "e": 1e300, "f": 12345678}
    ]


def test_long_texts_are_whole_in_every_form_but_on_a_terminal(various: Path) -> None:
    for form in ("markdown", "csv", "json"):
        shown = run_corpus(
            "trace", "dataset", "sql", str(various), "SELECT repeat('ab', 500) AS a", "--format", form
        ).stdout
        assert "ab" * 500 in shown


def test_an_answer_with_many_rows_is_whole_in_csv_and_cut_with_a_word_in_a_table(various: Path) -> None:
    query = "SELECT range AS n FROM range(25000)"
    text = run_corpus("trace", "dataset", "sql", str(various), query, "--format", "csv").stdout
    shown = run_corpus("trace", "dataset", "sql", str(various), query).stdout

    assert [int(row["n"]) for row in csv.DictReader(io.StringIO(text))] == list(range(25000))
    assert shown.splitlines()[-1] == "The first 1,000 rows; --format csv or json has all."
    assert len(shown.splitlines()) == 1002


def test_two_columns_of_one_name_are_no_json(various: Path) -> None:
    result = run_corpus("trace", "dataset", "sql", str(various), "SELECT 1 AS a, 2 AS a", "--format", "json")

    assert result.code == 2
    assert "Name them with AS." in result.stderr


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("duckdb", ["stats", "{folder}"]),
        ("duckdb", ["sql", "{folder}", "SELECT 1"]),
        ("ibis", ["stats", "{folder}"]),
        ("pyarrow", ["build", "{traces}", "-o", "{new}"]),
    ],
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    module: str, words: list[str], various: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    places = {"folder": various, "traces": ROOT / "data" / "traces", "new": tmp_path / "new"}

    result = run_corpus("trace", "dataset", *(word.format(**places) for word in words))

    assert (result.code, result.stdout) == (2, "")
    message, hint = result.stderr.splitlines()
    assert message.endswith(f"needs {module}, which is not installed")
    assert hint.startswith("Install it: ")
    assert hint.endswith("[scale]'")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--master", "local[2]"), "--master and --spark-conf are for --engine spark"),
        (("--spark-conf", "a=b"), "--master and --spark-conf are for --engine spark"),
        (("--engine", "spark"), "--engine spark needs --master URL"),
        (("--engine", "spark", "--master", "local[2]", "--spark-conf", "cores"), "wants NAME=VALUE, not 'cores'"),
        (("--engine", "dask"), "'dask' is not one of 'local', 'spark'"),
    ],
)
def test_engines_are_named_as_a_whole(options: tuple[str, ...], message: str, various: Path, tmp_path: Path) -> None:
    for words in (("build", str(EXAMPLES[0]), "-o", str(tmp_path / "d")), ("stats", str(various))):
        result = run_corpus("trace", "dataset", *words, *options)
        assert (result.code, message in result.stderr) == (2, True), result.stderr
    assert not (tmp_path / "d").exists()


def test_spark_brings_no_jobs_and_its_extra_is_named(
    various: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    result = run_corpus("trace", "dataset", "stats", str(various), "--engine", "spark", "--master", "local[2]")
    assert (result.code, "Spark needs pyspark, which is not installed" in result.stderr) == (2, True)
    assert "[spark]" in result.stderr
    monkeypatch.undo()
    monkeypatch.setattr(spark, "require_library", lambda *_: None)
    words = ("-o", str(tmp_path / "d"), "--engine", "spark", "--master", "local[2]", "--jobs", "2")
    result = run_corpus("trace", "dataset", "build", str(EXAMPLES[0]), *words)
    assert (result.code, "--jobs is for the local engine" in result.stderr) == (2, True)


def test_a_table_that_is_not_there_is_answered_with_those_that_are(various: Path) -> None:
    result = run_corpus("trace", "dataset", "sql", str(various), "SELECT * FROM runs")

    assert result.code == 2
    assert result.stderr.endswith(
        "The tables are traces, events, edges, agents, ledger, copies; DESCRIBE shows the columns of one.\n"
    )


def test_help_loads_no_engine() -> None:
    code = (
        "import sys; from orchtrace_corpus.cli.main import run; run(['trace', 'dataset', 'stats', '--help'])\n"
        "print(any(name in sys.modules for name in ('duckdb', 'ibis', 'pyarrow', 'pandas')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "False\n"


def test_a_writer_asks_for_what_it_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(CommandUseError, match="scale"):
        Writer(str(tmp_path))


def test_what_the_document_shows_works(various: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "dataset.md").read_text(encoding="utf-8")
    (tmp_path / "dataset").symlink_to(various)
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    queries = [query for block in re.findall(r"```sql\n(.*?)```", text, re.DOTALL) for query in block.split(";\n")]

    assert (len(programs), len(queries)) == (2, 5)
    with warnings.catch_warnings(action="ignore"):  # of engines, on their own ways
        for program in programs:
            exec(compile(program, "docs/dataset.md", "exec"), {})
    for query in queries[:-1]:
        result = run_corpus("trace", "dataset", "sql", "dataset", "--", query)
        assert result.code == 0, result.stderr


def test_whole_numbers_stay_whole_and_sums_beyond_64_bits_are_unknown(tmp_path: Path) -> None:
    most = 2**53 - 1
    events = [
        event("a", 0, "inference", "x", tokens={"input": 5.0, "output": 7}, seq=2.0),
        event("b", 1, "inference", "x", tokens={"input": 3}),
        *(event(f"c{n}", 2 + n, "inference", "y", tokens={"input": most, "cache_read": 1}) for n in range(1025)),
    ]
    write([convert(raw(events), Trace)], str(tmp_path / "tables"))

    from pyarrow import parquet

    found = parquet.read_table(tmp_path / "tables" / "events.parquet").slice(0, 3).to_pydict()
    spent = parquet.read_table(tmp_path / "tables" / "agents.parquet").to_pydict()
    assert [found[name] for name in ("seq", "input_tokens", "output_tokens", "cache_read_tokens")] == [
        [2, None, None],
        [5, 3, most],
        [7, None, None],
        [None, None, 1],
    ]
    assert [spent[name] for name in ("agent", "input_tokens", "cache_read_tokens", "tokens")] == [
        ["x", "y"],
        [8, None],
        [None, 1025],
        [15, None],
    ]


def _damaged_journals() -> list[tuple[str, bytes, bytes, str]]:
    return [
        ("dataset.json", b'"salt":"', b'"salt":"\xff', "cannot read '{file}': 'utf-8' codec can't decode byte 0xff"),
        ("dataset.json", b'"salt":"', b'"salt":"no hex', "cannot read '{file}': non-hexadecimal number found"),
        ("dataset.json", b'"salt":"78', b'"salt":"', "'{file}' has no salt"),
        ("dataset.json", b"}", b',"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}", "cannot read '{file}': maximum recursion"),
        ("units/*.json", b'"name":"', b'"name":"\xff', "cannot read '{file}': 'utf-8' codec can't decode byte 0xff"),
        ("units/*.json", b'"name":"', b'"name":"../../', "'{file}' is of another unit, '../../"),
        ("units/*.json", b'"sessions":', b'"x":' + b"[" * 50_000 + b"]" * 50_000 + b',"sessions":',
         "cannot read '{file}': maximum recursion"),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "sound", "damaged", "message"), _damaged_journals(), ids=range(7))
def test_a_damaged_journal_is_refused_in_words(
    logs: Path, tmp_path: Path, name: str, sound: bytes, damaged: bytes, message: str
) -> None:
    folder = tmp_path / "dataset"
    built(logs, folder, "--salt", "x")
    (file,) = (folder / ".build").glob(name)
    data = file.read_bytes()
    assert sound in data
    file.write_bytes(data.replace(sound, damaged, 1))

    commands = [run_build(str(logs), "-o", str(folder))]
    if name.startswith("units"):
        commands.append(run_corpus("trace", "dataset", "stats", str(folder)))
    for result in commands:
        assert (result.code, result.stdout) == (3, "")
        assert result.stderr.startswith(f"corpus: {message.format(file=file)}")
        assert re.search("Restore it from a copy|Remove it; what it stands for", result.stderr)
