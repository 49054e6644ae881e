"""Builds that are killed at any moment: nothing is lost, and each process repeats at most the unit that it was at."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from msgspec import convert

from orchtrace_corpus.trace.dataset.columns import TABLES
from orchtrace_corpus.trace.dataset.folder import FILES, Folder, StagedUnit, stage
from orchtrace_corpus.trace.dataset.tables import Writer
from orchtrace_corpus.trace.model.trace import Trace
from tests.effort import mostly_slow, tries
from tests.trace.datasets import Forked, building, built, finished, left_alive, rows, summary, transcript
from tests.trace.traces import event, raw

pytestmark = pytest.mark.posix  # builds are killed

JOBS = 2
UNIT = 7
SESSIONS = 80
MOMENTS = tries(12, 2)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """Many small sessions, and the rows that a build without any trouble makes of them."""
    folder = tmp_path_factory.mktemp("resume")
    for number in range(SESSIONS):
        transcript(folder / "logs" / f"s{number:02}.jsonl", f"s{number:02}", tokens=number)
    built(folder / "logs", folder / "d", "--salt", "x")
    return folder / "logs", rows(folder / "d")


def read_by(reads: Path) -> list[tuple[int, str]]:
    """The sources that were begun, each with the process."""
    lines = reads.read_text().splitlines(keepends=True) if reads.exists() else []
    return [(int(line.split()[0]), line.split()[1]) for line in lines if line.endswith("\n")]


def wait_until_read(process: subprocess.Popen[str] | Forked, reads: Path, number: int) -> None:
    """Wait until so many sources were begun."""
    until = time.monotonic() + 60
    while process.poll() is None and len(read_by(reads)) < number and time.monotonic() < until:
        time.sleep(0.002)


@pytest.mark.parametrize("moments", [MOMENTS, pytest.param(12, marks=pytest.mark.slow)])
def test_after_each_of_many_kills_a_build_reads_again_only_the_unit_that_a_process_was_at(
    moments: int, undisturbed: tuple[Path, dict[str, list[str]]], tmp_path: Path
) -> None:
    logs, expected = undisturbed
    folder = tmp_path / "d"
    chance = random.Random(7)
    for moment in range(moments):
        done = set.union(*finished(folder))
        reads = tmp_path / f"reads-{moment}"
        with building(logs, folder, f"slow=0.01,unit={UNIT},reads={reads}") as process:
            wait_until_read(process, reads, UNIT + 2 + moment % 5)
            time.sleep(chance.uniform(0, 0.03))
            if moment % 2:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        assert left_alive(process.pid) == []
        names = [name for _, name in read_by(reads)]
        assert len(names) == len(set(names))
        assert not done & set(names)
        assert done <= set.union(*finished(folder))
        assert len(set(names) - set.union(*finished(folder))) <= JOBS * UNIT
    kept = len(set.union(*finished(folder)))

    assert built(logs, folder, "--salt", "x") == summary(SESSIONS, SESSIONS - kept, kept)

    assert rows(folder) == expected
    assert sorted(os.listdir(folder / ".build")) == ["dataset.json", "units"]
    for table in FILES:
        assert set(os.listdir(folder / table)) == {unit.file for unit in Folder(str(folder)).units()}


def test_when_processes_are_killed_what_they_read_is_named_and_left_out_and_nothing_is_lost_or_doubled(
    undisturbed: tuple[Path, dict[str, list[str]]], tmp_path: Path
) -> None:
    logs, expected = undisturbed
    folder, reads = tmp_path / "d", tmp_path / "reads"
    with building(logs, folder, f"slow=0.02,unit=20,reads={reads}") as process:
        for number in (4, 9, 17, 30)[: tries(4, 2)]:
            wait_until_read(process, reads, number)
            os.kill(read_by(reads)[-1][0], signal.SIGKILL)
        _, told = process.communicate(timeout=60)

    assert process.returncode == 1
    left_out = told.count("corpus: left out:")
    assert 1 <= left_out <= 4
    assert {name for _, name in read_by(reads)} == {f"s{number:02}.jsonl" for number in range(SESSIONS)}
    assert built(logs, folder, "--salt", "x") == summary(SESSIONS, left_out, SESSIONS - left_out)
    assert rows(folder) == expected


# What is left of a build: staged units, whole or not.


def build_eight(folder: Path) -> tuple[Path, Path]:
    """The logs of eight sessions, and a dataset in which they are one unit."""
    logs = folder / "logs"
    for number in range(8):
        transcript(logs / f"s{number}.jsonl", f"s{number}", tokens=number)
    built(logs, folder / "d", "--salt", "x")
    return logs, folder / "d"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, list[str]]]:
    """Logs and a dataset of them, which nobody changes, and its rows."""
    logs, folder = build_eight(tmp_path_factory.mktemp("whole"))
    return logs, folder, rows(folder)


@pytest.fixture
def staged(whole: tuple[Path, Path, dict[str, list[str]]], tmp_path: Path) -> tuple[Path, Path, Path]:
    """The logs of eight sessions, a dataset in which they are one unit that is staged and not committed, and the unit."""
    folder = shutil.copytree(whole[1], tmp_path / "d")
    return whole[0], folder, uncommit(folder)


def uncommit(folder: Path) -> Path:
    """Make the unit of a dataset one that is staged; where."""
    (unit,) = Folder(str(folder)).units()
    place = folder / ".build" / "staged" / f"{unit.name}.1"
    place.mkdir(parents=True)
    for table in FILES:
        (folder / table / unit.file).rename(place / f"{table}.parquet")
    (folder / ".build" / "units" / f"{unit.name}.json").unlink()
    stage(StagedUnit(unit), str(place))
    return place


@pytest.mark.parametrize("moved", mostly_slow(range(len(FILES) + 1), [0, 1, len(FILES)]))
def test_a_staged_unit_is_taken_over_however_far_its_commit_had_come(
    moved: int, staged: tuple[Path, Path, Path], whole: tuple[Path, Path, dict[str, list[str]]]
) -> None:
    logs, folder, place = staged
    unit = json.loads((place / "staged.json").read_text())["unit"]["name"]
    for table in FILES[:moved]:
        (place / f"{table}.parquet").rename(folder / table / f"part-{unit}-0.parquet")

    assert built(logs, folder) == summary(8, 0, 8)
    assert rows(folder) == whole[2]
    assert sorted(os.listdir(folder / ".build")) == ["dataset.json", "units"]


@pytest.mark.parametrize(
    "damage", mostly_slow(["no manifest", "torn manifest", "no table", "no folder"], ["torn manifest", "no table"])
)
def test_what_is_not_staged_as_a_whole_is_made_again(
    damage: str, staged: tuple[Path, Path, Path], whole: tuple[Path, Path, dict[str, list[str]]]
) -> None:
    logs, folder, place = staged
    if damage == "no manifest":
        (place / "staged.json").unlink()
    elif damage == "torn manifest":
        (place / "staged.json").write_bytes((place / "staged.json").read_bytes()[:-9])
    elif damage == "no table":
        (place / "agents.parquet").unlink()
    else:
        shutil.rmtree(place)

    assert built(logs, folder) == summary(8, 8)
    assert rows(folder) == whole[2]
    assert sorted(os.listdir(folder / ".build")) == ["dataset.json", "units"]


def test_a_unit_that_was_staged_twice_is_committed_once(
    staged: tuple[Path, Path, Path], whole: tuple[Path, Path, dict[str, list[str]]]
) -> None:
    logs, folder, place = staged
    shutil.copytree(place, place.with_name(f"{place.name}2"))

    assert built(logs, folder) == summary(8, 0, 8)
    assert rows(folder) == whole[2]
    for table in TABLES:
        assert len(os.listdir(folder / table)) == 1


def test_of_a_staged_unit_only_logs_that_have_changed_since_are_read_again(tmp_path: Path) -> None:
    logs, folder = build_eight(tmp_path)
    uncommit(folder)
    transcript(logs / "s0.jsonl", "s0", tokens=900)
    os.utime(logs / "s1.jsonl", (1, 1))  # copied, say: the same content at another time
    transcript(logs / "another.jsonl", "another")
    (logs / "s2.jsonl").unlink()

    assert built(logs, folder, "--prune") == (
        "8 traces in the dataset: 2 sources read, 6 as they were, 1 dropped whose logs are gone or were not named.\n"
    )
    built(logs, folder.with_name("fresh"), "--salt", "x")
    assert rows(folder) == rows(folder.with_name("fresh"))
    assert built(logs, folder) == summary(8, 0, 8)


def test_rows_without_the_costs_of_this_build_are_not_taken_over(
    staged: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    logs, folder, _ = staged
    prices = tmp_path / "prices.yaml"
    prices.write_text("date: 2026-05-04\ncurrency: USD\nmodels:\n  small: {input: 1, output: 0}\n", encoding="utf-8")

    assert built(logs, folder, "--prices", str(prices)) == summary(8, 8)
    assert Folder(str(folder)).units()[0].prices == "2026-05-04"


def test_row_groups_are_full_however_traces_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import parquet

    from orchtrace_corpus.trace.dataset import tables

    monkeypatch.setattr(tables, "MAX_ROWS", 10)
    with Writer(str(tmp_path)) as writer:
        for number in range(9):
            document = raw([event(f"e{n}", n, "inference", "x", t_end=n + 1) for n in range(7)])
            writer.add(convert(document, Trace), str(number))
        writer.flush()

    file = parquet.ParquetFile(tmp_path / "events.parquet")
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [10, 10, 10, 10, 10, 10, 3]
    assert [row["number"] for row in file.read().to_pylist()] == list(range(7)) * 9
