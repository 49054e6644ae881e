"""Inputs that would never end or take all memory: each is refused in words, within limits of the process."""

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from orchtrace_corpus.base import budget
from tests.conftest import ROOT, Result, run_corpus
from tests.effort import mostly_slow
from tests.trace.conversationlogs import LOGS

TEAM = LOGS / "inspect_ai" / "team.json"
SWARM = ROOT / "data" / "traces" / "swarm.json"
MAX_MEMORY_BYTES = 1 << 30
MAX_PROCESSOR_SECONDS = 20
READING = ("doctor", "show", "measure", "label", "validate")
ADVICE = "Save its content in a regular file and name that. A trace can also be piped to standard input: name it -.\n"


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_PROCESSOR_SECONDS, MAX_PROCESSOR_SECONDS))


def run_limited(*words: str | Path) -> Result:
    """Run `corpus trace` as a process that may take 1 GiB and 20 s of processor time."""
    command = [sys.executable, "-m", "orchtrace_corpus", "trace", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    # The timeout is for an input that is waited for, which takes no processor time.
    child = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment,
        preexec_fn=_limit,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    return Result(child.returncode, child.stdout, child.stderr)


@pytest.fixture
def irregular(tmp_path: Path) -> dict[str, Path]:
    """A pipe that nobody writes to, a link to a device that never ends, and a socket."""
    folder = tmp_path / "irregular"
    folder.mkdir()
    paths = {"pipe": folder / "pipe.jsonl", "device": folder / "zero.json", "socket": folder / "socket.json"}
    os.mkfifo(paths["pipe"])
    paths["device"].symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(paths["socket"]))  # the absolute path may be too long for a socket
    return paths


@pytest.mark.parametrize("kind", ["pipe", "device", "socket"])
@pytest.mark.parametrize("command", READING)
def test_a_file_that_is_not_regular_is_refused_where_it_is_named(
    irregular: dict[str, Path], command: str, kind: str
) -> None:
    result = run_limited(command, irregular[kind])

    message = f"corpus: cannot read '{irregular[kind]}': it is a {kind}, not a regular file\n{ADVICE}"
    assert (result.code, result.stdout, result.stderr) == (3, "", message)


@pytest.mark.parametrize("command", READING)
def test_files_that_are_not_regular_are_skipped_in_a_folder_and_named(irregular: dict[str, Path], command: str) -> None:
    folder = irregular["pipe"].parent
    shutil.copy(SWARM, folder)

    result = run_limited(command, folder)

    assert result.code == 0
    skipped = "corpus: skipped 3 entries that are not regular files (pipe.jsonl, socket.json, zero.json)\n"
    assert skipped in result.stderr


def test_a_folder_of_nothing_else_holds_no_log(irregular: dict[str, Path]) -> None:
    folder = irregular["pipe"].parent

    result = run_limited("doctor", folder)

    assert (result.code, result.stdout) == (3, "")
    assert f"no log in '{folder}'" in result.stderr
    assert "skipped 3 entries that are not regular files (pipe.jsonl, socket.json, zero.json)" in result.stderr


def test_a_trace_still_comes_from_standard_input() -> None:
    command = [sys.executable, "-m", "orchtrace_corpus", "trace", "validate", "-"]
    with SWARM.open("rb") as file:
        child = subprocess.run(command, stdin=file, capture_output=True, text=True, cwd=ROOT)

    assert (child.returncode, child.stderr) == (0, "no problems in 1 trace\n")


def eval_log(path: Path, members: int, sample_bytes: int = 0) -> Path:
    """Write an archive of Inspect with samples in which a model answered once; the last one may be padded."""
    header = json.dumps({"version": 2, "status": "success", "eval": {"eval_id": "e", "task": "t"}})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", header)
        for index in range(members):
            model = {"event": "model", "timestamp": f"2026-03-01T12:00:{index % 60:02}Z", "model": "m"}
            sample = {"id": index, "epoch": 1, "uuid": f"u{index}", "events": [model] if index < 10 else []}
            archive.writestr(f"samples/{index}_epoch_1.json", json.dumps(sample))
        if sample_bytes:
            with archive.open("samples/padded_epoch_1.json", "w", force_zip64=True) as member:
                for _ in range(sample_bytes >> 20):
                    member.write(b" " * (1 << 20))
    return path


@pytest.mark.parametrize("members", mostly_slow([16_000, 100_000], [16_000]))
def test_an_archive_takes_time_in_proportion_to_its_members(tmp_path: Path, members: int) -> None:
    result = run_limited("import", eval_log(tmp_path / "many.eval", members), "--salt", "s")

    assert (result.code, result.stdout.count("\n")) == (0, 10)


@pytest.mark.parametrize("megabytes", mostly_slow([200, 1_500], [200]))
def test_an_archive_that_expands_too_far_is_refused_with_the_limit(tmp_path: Path, megabytes: int) -> None:
    path = eval_log(tmp_path / "bomb.eval", 1, megabytes << 20)

    result = run_limited("doctor", path)

    allowed = max(64, 200 * path.stat().st_size >> 20)
    assert (result.code, result.stdout[:20]) == (1, "Inspect AI logs u0\n1"), "the sample that can be read is shown"
    assert (
        f"cannot read 'samples/padded_epoch_1.json' in '{path}': the archive expands to more than 200 times its size; "
        f"the limit is {allowed} MiB"
    ) in result.stderr


def test_an_archive_of_too_many_members_is_refused_with_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "MAX_ARCHIVE_MEMBERS", 10)
    path = eval_log(tmp_path / "many.eval", 10)

    result = run_corpus("trace", "doctor", str(path))

    assert (result.code, result.stdout) == (3, "")
    assert result.stderr == (
        f"corpus: the archive '{path}' has 11 members; at most 10 are read\n"
        "If you trust it, make it JSON first: inspect log convert --to json --output-dir DIR FILE "
        "Set ORCHTRACE_MAX_ARCHIVE_MEMBERS to a higher number, if you trust the input.\n"
    )


def test_members_that_overlap_count_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small members, together above the limit, are refused from the one on that exceeds it."""
    monkeypatch.setattr(budget, "UNCHECKED_EXPANSION_BYTES", 1_000)
    monkeypatch.setattr(budget, "MAX_EXPANSION_RATIO", 0)
    path = eval_log(tmp_path / "many.eval", 10)

    result = run_corpus("trace", "import", str(path), "--salt", "s")

    assert 0 < result.stdout.count("\n") < 10
    assert "expands to more than 0 times its size; the limit is 0 MiB" in result.stderr
