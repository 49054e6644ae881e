"""Inputs that would never end or take all memory: each is refused in words, within limits of the process."""

import os
import resource
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, Result
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
