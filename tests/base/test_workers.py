"""Many traces are worked on by several processes: same results, in order, and nothing left behind."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchtrace_corpus.base import workers as parallel
from orchtrace_corpus.base.workers import Worker, WorkerError, map_in_order, wait_for_any
from orchtrace_corpus.trace.model.decode import Document
from tests.base.work import doubled, dying, failing, numbered, reporting
from tests.conftest import ROOT
from tests.effort import tries
from tests.trace.traces import event, raw

CORPUS = (sys.executable, "-m", "orchtrace_corpus")


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "BATCH_BYTES", 10)


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_results_come_in_the_order_of_the_documents(jobs: int) -> None:
    found = list(map_in_order(doubled, numbered(200), jobs, size_bytes=Document.size))

    assert [number for number, _ in found] == list(range(0, 400, 2))
    assert len({process for _, process in found}) == (1 if jobs == 1 else jobs + 1)


def test_a_first_batch_needs_no_other_process() -> None:
    assert {process for _, process in map_in_order(doubled, numbered(5), 4, size_bytes=Document.size)} == {os.getpid()}


def test_documents_are_read_only_as_far_ahead_as_they_are_worked_on() -> None:
    read = []

    def noted() -> Iterator[Document]:
        for document in numbered(2000):
            read.append(document)
            yield document

    results = map_in_order(doubled, noted(), 2, size_bytes=Document.size)
    for _ in range(50):
        next(results)
    results.close()

    assert len(read) < 150


def test_a_large_batch_stays_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "MAX_SENT_BYTES", 5)

    assert {process for _, process in map_in_order(doubled, numbered(50), 4, size_bytes=Document.size)} == {os.getpid()}


def test_the_death_of_a_worker_is_an_error_and_no_wait() -> None:
    with pytest.raises(WorkerError, match=r"died \(exit code -9\)"):
        list(map_in_order(dying, numbered(200), 2, size_bytes=Document.size))


def test_an_error_in_a_worker_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(failing, numbered(200), 2, size_bytes=Document.size))


def test_the_first_worker_too_begins_with_interrupts_blocked() -> None:
    # In a fresh process: the first worker brings the resource tracker with it, whose start unblocks signals.
    code = (
        "import signal\n"
        "from orchtrace_corpus.base.workers import Worker\n"
        "from tests.base.work import reporting\n"
        "if __name__ == '__main__':\n"
        "    workers = [Worker(reporting, name) for name in 'ab']\n"
        "    print([(name, signal.SIGINT in blocked, ignored == signal.SIG_IGN)"
        " for name, blocked, ignored in (worker.receive() for worker in workers)])\n"
        "    print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert result.stdout == "[('a', True, True), ('b', True, True)]\nFalse\n"


def test_a_worker_starts_where_signals_cannot_be_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "pthread_sigmask")
    monkeypatch.delattr(os, "sched_getaffinity")

    assert [number for number, _ in map_in_order(doubled, numbered(20), 2, size_bytes=Document.size)] == [
        *range(0, 40, 2)
    ]
    assert parallel.processors() >= 1


def test_of_several_workers_the_one_that_answers_or_dies_is_heard() -> None:
    workers = [Worker(reporting, name) for name in "ab"]
    try:
        assert [worker.receive()[0] for worker in workers] == ["a", "b"]
        workers[1].send("answer")
        assert [worker.receive() for worker in wait_for_any(workers)] == ["alive"]
        workers[0].send("die")
        (dead,) = wait_for_any(workers)
        with pytest.raises(WorkerError):
            dead.receive()
        assert [worker.exit_code for worker in workers] == [3, None]
    finally:
        for worker in workers:
            worker.end()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of so many traces that a command works on it for seconds in several processes."""
    path = tmp_path_factory.mktemp("many") / "many.jsonl"
    events = [event(f"e{n}", n, "inference", f"a{n % 3}", t_end=n + 0.5) for n in range(40)]
    edges = " ".join(f"e{n}>e{n + 1}" for n in range(39))
    with path.open("w", encoding="utf-8") as file:
        for number in range(4000):
            file.write(json.dumps(raw(events, edges, trace_id=f"run-{number}")) + "\n")
    return path


def test_a_command_says_the_same_of_many_traces_as_of_each(many: Path, tmp_path: Path) -> None:
    count = tries(4000, 1000)
    lines = many.read_text(encoding="utf-8").splitlines(keepends=True)[:count]
    (tmp_path / "one.json").write_text(lines[-1], encoding="utf-8")
    (tmp_path / "all.jsonl").write_text("".join(lines), encoding="utf-8")

    whole = subprocess.run([*CORPUS, "trace", "measure", str(tmp_path / "all.jsonl"), "--format", "csv"],
                           cwd=ROOT, capture_output=True, text=True, check=True)  # fmt: skip
    one = subprocess.run([*CORPUS, "trace", "measure", str(tmp_path / "one.json"), "--format", "json"],
                         cwd=ROOT, capture_output=True, text=True, check=True)  # fmt: skip

    rows = list(csv.DictReader(whole.stdout.splitlines()))
    measures = json.loads(one.stdout)["traces"][0]["measures"]
    values = {name: "" if found["value"] is None else f"{found['value']:.15g}" for name, found in measures.items()}
    known = {"trace": f"run-{count - 1}", "task_id": "k", "file": str(tmp_path / "all.jsonl")}
    assert {name: value for name, value in rows[-1].items() if value} == {
        name: value for name, value in (known | values).items() if value
    }
    assert [row["trace"] for row in rows] == [f"run-{number}" for number in range(count)]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or parallel.processors() < 2, reason="needs two processors")
@pytest.mark.parametrize(("end", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_no_process_outlives_the_command(many: Path, end: signal.Signals, code: int) -> None:
    child = subprocess.Popen([*CORPUS, "trace", "measure", str(many), "--format", "csv"], cwd=ROOT,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)  # fmt: skip
    _until(lambda: len(_group(child.pid)) > 2, "the workers begin")
    os.killpg(child.pid, end) if end == signal.SIGINT else child.send_signal(end)
    _, stderr = child.communicate(timeout=20)

    assert child.returncode == code
    assert end == signal.SIGKILL or stderr == b"corpus: interrupted\n"
    _until(lambda: not _group(child.pid), "all processes end")


def _group(leader: int) -> list[int]:
    """The living processes of a process group."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            if int(fields[2]) == leader and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def _until(holds: Callable[[], bool], what: str) -> None:
    for _ in range(400):
        if holds():
            return
        time.sleep(0.05)
    pytest.fail(f"waited 20 s in vain until {what}")
