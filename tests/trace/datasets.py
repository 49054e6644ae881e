"""Datasets for tests: logs, builds, builds with a hand in them that stops or kills them, and the rows that come of it."""

import json
import multiprocessing
import os
import random
import subprocess
import sys
import time
from functools import cache
from multiprocessing.context import BaseContext
from pathlib import Path

import pytest
from msgspec.json import decode
from synthesize_traces import trace as synthesized

from orchtrace_corpus.trace.dataset.folder import Folder, StagedUnit
from tests.conftest import Result, run_corpus
from tests.effort import FULL
from tests.trace import hands


def transcript(path: Path, name: str, tokens: int = 7, text: str = "Go on.") -> None:
    """A transcript of Claude Code: one question, one answer."""
    rows = [
        {"type": "user", "uuid": f"{name}-u", "parentUuid": None, "sessionId": name, "isSidechain": False,
         "timestamp": "2026-05-01T10:00:00.000Z", "version": "2.1.0", "cwd": "/home/jo/secret",
         "message": {"role": "user", "content": text}},
        {"type": "assistant", "uuid": f"{name}-a", "parentUuid": f"{name}-u", "sessionId": name, "isSidechain": False,
         "timestamp": "2026-05-01T10:00:05.000Z", "version": "2.1.0", "requestId": f"r-{name}",
         "message": {"id": f"m-{name}", "role": "assistant", "model": "small-20260101",
                     "content": [{"type": "text", "text": "Done."}],
                     "usage": {"input_tokens": tokens, "output_tokens": 3}}},
    ]  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def various_traces(path: Path) -> None:
    """Traces that differ: systems, models, clocks, unknown figures, outliers, copied context, costs."""
    chance = random.Random(5)
    documents = []
    for number in range(150):
        one = synthesized(f"run-{number // 2}", chance.randint(1, 60), chance)
        one["system"] = chance.choice(["", "alpha", "beta", "gam ma"])
        one["topology"] = chance.choice(["centralized", "swarm", "unknown"])
        one["clock"] = {"unit": chance.choice(["s", "ms", "step"])}
        for part in one["events"]:
            if chance.random() < 0.1:
                part.pop("tokens", None)
            if chance.random() < 0.3:
                part["cost_usd"] = chance.random()
            if chance.random() < 0.1 and "tokens" in part:
                part["copied_context"] = True
            if chance.random() < 0.02:
                part["t_end"] = part["t"] + 10_000
            part["model"] = chance.choice(["", "small", "large"])
        one["costs"] = {"tokens": None, "wall_clock_s": None}
        one["reasons"] = {"costs.tokens": "-", "costs.wall_clock_s": "-"}
        documents.append(one)
    path.write_text("".join(json.dumps(one) + "\n" for one in documents), encoding="utf-8")


@cache
def _loaded() -> BaseContext:
    """Starts processes by a fork of one that has loaded what workers need; on Windows, which has no fork, anew."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    loaded = ["orchtrace_corpus.cli.main", "orchtrace_corpus.trace.importers.conversations.claude_code"]
    context.set_forkserver_preload([*loaded, "pandas", "pyarrow.parquet", "tests.trace.hands"])
    return context


def run_build(*words: str) -> Result:
    """Run `corpus trace dataset build` in this process; its workers, which load much, are forked and not started anew."""
    context = _loaded()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multiprocessing, "get_context", lambda method: context)
        return run_corpus("trace", "dataset", "build", *words)


def built(logs: Path, folder: Path, *options: str, code: int = 0) -> str:
    """What a build says that has to succeed, but for what it leaves out."""
    result = run_build(str(logs), "-o", str(folder), "--jobs", "1", *options)
    assert (result.code, result.stdout) == (code, ""), result.stderr
    return result.stderr


def rows(folder: Path) -> dict[str, list[str]]:
    """The rows of all tables, in no order."""
    from pyarrow import parquet

    return {
        table: sorted(repr(row) for file in files for row in parquet.ParquetFile(file).read().to_pylist())
        for table, files in Folder(str(folder)).parts().items()
    }


# Real processes, with a hand in them: the hook is loaded by every Python that starts, workers included.

HOOK = r"""
import os, signal, sys, time
if os.environ.get("HAND") and "resource_tracker" not in " ".join(sys.orig_argv):
    from orchtrace_corpus.trace.dataset import folder, plan, staging
    os.fsync = lambda file: None
    hand = dict(part.split("=") for part in os.environ["HAND"].split(","))
    plan.MAX_SESSIONS = int(hand.get("unit", 3))
    read, replace, write = staging._read, os.replace, folder.write_atomic
    done = {"replace": 0, "write": 0}
    if "mask" in hand and "--multiprocessing-fork" in sys.orig_argv:
        with open(hand["mask"], "a") as file:
            file.write(f"{signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])}\n")
    def reading(source, job, writer, answers):
        if "reads" in hand:
            with open(hand["reads"], "a") as file:
                file.write(f"{os.getpid()} {source.name}\n")
        time.sleep(float(hand.get("slow", 0)))
        if source.name == hand.get("fatal"):
            os.kill(os.getpid(), signal.SIGKILL)
        if source.name == hand.get("bug"):
            raise RuntimeError("a bug of ours")
        return read(source, job, writer, answers)
    def counted(name, call):
        def counting(*arguments):
            done[name] += 1
            if done[name] == int(hand.get(name, -1)):
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments)
        return counting
    if "start" in hand:
        def serve(connection, job, log_file):
            os._exit(7)
        staging.serve.__code__ = serve.__code__
        staging.MAX_CRASHES = int(hand["start"])
    if "full" in hand:
        def flush(writer):
            raise OSError(28, "No space left on device")
        staging.Writer.flush = flush
    if "pyspark.daemon" in sys.orig_argv:  # on an executor
        from types import SimpleNamespace
        from pyspark import worker_util
        from orchtrace_corpus import base
        if "python" in hand:
            python = tuple(map(int, hand["python"].split(".")))
            worker_util.sys = SimpleNamespace(**{**vars(sys), "version_info": python})
        from orchtrace_corpus.trace.dataset import spark
        look = spark.state
        base.__version__ = hand.get("version", base.__version__)
        spark.state = lambda file: look(file._replace(path="/none") if file.name == hand.get("blind") else file)
    staging._read = reading
    if "--multiprocessing-fork" not in sys.orig_argv:
        folder.write_atomic, os.replace = counted("write", write), counted("replace", replace)
"""


class Forked:
    """A build in a process that is forked, and so has loaded everything. It is asked as a `subprocess.Popen` is."""

    def __init__(self, words: str, arguments: list[str], told: Path) -> None:
        self._told = told
        self._process = _loaded().Process(target=hands.build, args=(HOOK, words, arguments, str(told)))
        self._process.start()
        self.pid = self._process.pid or 0

    def __enter__(self) -> "Forked":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.join()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def communicate(self, timeout: float) -> tuple[str, str]:
        self._process.join(timeout)
        return "", self._told.read_text(encoding="utf-8")


def building(
    logs: Path, folder: Path, words: str, *options: str, anew: bool = FULL
) -> "subprocess.Popen[str] | Forked":
    """A build in a process of its own, with a hand in it.

    Args:
        logs: What is read.
        folder: The dataset.
        words: What the hand does, as `NAME=VALUE,...`: see `HOOK`.
        options: More words of the command.
        anew: Whether all processes are started as users start them, and load everything.
    """
    arguments = ["trace", "dataset", "build", str(logs), "-o", str(folder), "--jobs", "2", "--salt", "x", *options]
    if not anew:
        return Forked(words, arguments, folder.with_suffix(".told"))
    hook = folder.parent / "hook"
    hook.mkdir(exist_ok=True)
    (hook / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-m", "orchtrace_corpus", *arguments], stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "HAND": words, "PYTHONPATH": str(hook)},
    )  # fmt: skip


def finished(folder: Path) -> tuple[set[str], set[str]]:
    """The names of the sources that a dataset has in its units, and of those that are only staged."""
    if not (folder / ".build").exists():
        return set(), set()
    manifests = (folder / ".build" / "staged").glob("*/staged.json")
    units = [*Folder(str(folder)).units(), *(decode(path.read_bytes(), type=StagedUnit).unit for path in manifests)]
    committed = {session.files[0].name for unit in Folder(str(folder)).units() for session in unit.records}
    return committed, {session.files[0].name for unit in units for session in unit.records} - committed


def summary(traces: int, read: int, unchanged: int = 0) -> str:
    """What a build says that left nothing out."""
    parts = [f"{read} source{'s' * (read != 1)} read", f"{unchanged} as they were"]
    return f"{traces} traces in the dataset: {', '.join(parts)}.\n"


def unit_count(folder: Path) -> int:
    return len(list((folder / ".build" / "units").glob("*.json")))


def alive(group: int) -> list[str]:
    """The processes of a group that run."""
    listed = subprocess.run(["ps", "-A", "-o", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    processes = (line.split(maxsplit=2) for line in listed.splitlines())
    return [args for pgid, state, args in processes if int(pgid) == group and "Z" not in state]


def left_alive(group: int) -> list[str]:
    """The processes of a group that run on, some time after the one that started them has ended."""
    until = time.monotonic() + 20
    while alive(group) and time.monotonic() < until:
        time.sleep(0.05)
    return alive(group)
