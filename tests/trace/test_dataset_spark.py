"""Datasets on Spark: the same rows and figures as on this machine, whoever is killed and whatever is wrong.

Needs pyspark and Java. A master and its workers are started on loopback. Where something is missing the tests are skipped;
where the environment variable ORCHTRACE_EXTERNAL is "required", that is a failure.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from orchtrace_corpus.trace.dataset.folder import FILES, Folder
from tests.effort import tries
from tests.trace.datasets import HOOK, built, rows, transcript, unit_count

pytestmark = [pytest.mark.external, pytest.mark.posix, pytest.mark.xdist_group("spark")]

SESSIONS = 40
LOOPBACK = ("spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1", "spark.executor.memory=512m")


@pytest.fixture(scope="module", autouse=True)
def _needs_spark() -> None:
    missing = [name for name, there in (("pyspark", find_spec("pyspark")), ("java", shutil.which("java"))) if not there]
    if missing and os.environ.get("ORCHTRACE_EXTERNAL") == "required":
        pytest.fail(f"{', '.join(missing)} must be there")
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sessions, of which one was forked from another, and a dataset `local` of them."""
    folder = tmp_path_factory.mktemp("spark")
    for number in range(SESSIONS):
        transcript(folder / "logs" / f"s{number:02}.jsonl", f"s{number:02}", tokens=number)
    text = (folder / "logs" / "s07.jsonl").read_text(encoding="utf-8")
    fork = text.replace('"uuid": "s07', '"uuid": "s99').replace('parentUuid": "s07', 'parentUuid": "s99')
    (folder / "logs" / "s99.jsonl").write_text(
        fork.replace('"sessionId": "s07"', '"sessionId": "s99"'), encoding="utf-8"
    )
    with spark_build(folder / "logs", folder / "local", "", "unit=3", "--salt", "x") as process:
        assert (process.wait(300), unit_count(folder / "local")) == (0, 14)
    return folder / "logs"


@contextmanager
def spark_build(
    logs: Path, folder: Path, master: str, hand: str, *options: str, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """A build in a process of its own, on Spark if there is a master, with a hand in it as `HOOK` has it."""
    hook = folder.parent / "hook"
    hook.mkdir(exist_ok=True)
    (hook / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
    command = [sys.executable, "-m", "orchtrace_corpus", "trace", "dataset", "build", str(logs), "-o", str(folder)]
    if master:
        settings = (word for one in LOOPBACK for word in ("--spark-conf", one))
        command += ["--engine", "spark", "--master", master, *settings]
    with subprocess.Popen(
        [*command, *options], env={**os.environ, "HAND": hand, "PYTHONPATH": str(hook), **environment},
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> list[str]:
    """What a build says in the end; Spark's own words, which come before, left out."""
    return [
        line
        for line in process.communicate(timeout=300)[1].splitlines()
        if line.startswith("corpus: ") or " dataset" in line
    ]


def parts(folder: Path) -> dict[str, bytes]:
    """All files of the tables of a dataset."""
    return {
        f"{table}/{path.name}": path.read_bytes() for table in (*FILES, "copies") for path in (folder / table).iterdir()
    }


@contextmanager
def java(*words: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A service of Spark, until it is not needed any more."""
    home = Path(find_spec("pyspark").origin).parent  # type: ignore[union-attr, arg-type]
    process = subprocess.Popen(
        [str(home / "bin" / "spark-class"), *words], start_new_session=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", **environment},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for(port: int) -> None:
    """Wait until a service listens."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("no service")


@pytest.fixture(scope="module")
def master() -> Iterator[str]:
    """The URL of a standalone master."""
    port = free_port()
    words = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
    with java("org.apache.spark.deploy.master.Master", *words):
        wait_for(port)
        yield f"spark://127.0.0.1:{port}"


@contextmanager
def worker(master: str, folder: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker of a master, with one executor of one core."""
    words = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(folder))
    with java("org.apache.spark.deploy.worker.Worker", *words, master, **environment) as process:
        yield process


def executors(folder: Path) -> list[int]:
    """The processes of the executors of a worker, which their working folder tells."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if path.resolve().is_relative_to(folder):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def wait_for_units(process: subprocess.Popen[str], folder: Path, number: int) -> None:
    """Wait until a build has committed so many units."""
    until = time.monotonic() + 240
    while process.poll() is None and unit_count(folder) < number and time.monotonic() < until:
        time.sleep(0.02)
    assert process.poll() is None
    assert unit_count(folder) >= number


@pytest.mark.parametrize("number", range(tries(10, 1)))
def test_a_build_survives_a_worker_that_is_killed(number: int, logs: Path, master: str, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    with (
        worker(master, tmp_path / "one") as victim,
        worker(master, tmp_path / "two"),
        spark_build(logs, folder, master, "unit=3,slow=0.3", "--salt", "x") as process,
    ):
        wait_for_units(process, folder, 1 + number % 4)
        time.sleep(random.Random(number).uniform(0, 0.5))
        victim.kill()
        for one in executors(tmp_path / "one"):
            os.kill(one, signal.SIGKILL)
        assert said(process) == [f"{SESSIONS + 1} traces in the dataset: {SESSIONS + 1} sources read, 0 as they were."]
    assert parts(folder) == parts(logs.parent / "local")


@pytest.mark.parametrize("number", range(tries(10, 1)))
def test_a_build_whose_driver_is_killed_goes_on(number: int, logs: Path, master: str, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    with worker(master, tmp_path / "one"), worker(master, tmp_path / "two"):
        with spark_build(logs, folder, master, "unit=3,slow=0.3", "--salt", "x") as process:
            wait_for_units(process, folder, 2 + number % 4)
            time.sleep(random.Random(number).uniform(0, 0.5))
            process.kill()
        before = {unit.name for unit in Folder(str(folder)).units()}
        with spark_build(logs, folder, master, "unit=3") as process:
            (told,) = said(process)
        assert told.startswith(f"{SESSIONS + 1} traces in the dataset: ")
    assert before <= {unit.name for unit in Folder(str(folder)).units()}
    assert parts(folder) == parts(logs.parent / "local")


def test_a_file_that_one_executor_does_not_see_is_named_with_it(logs: Path, master: str, tmp_path: Path) -> None:
    folder, hook = tmp_path / "d", tmp_path / "hook"
    with (
        worker(master, tmp_path / "blind", HAND="blind=s20.jsonl", PYTHONPATH=str(hook)),
        spark_build(logs, folder, master, "unit=3", "--salt", "x") as process,
    ):
        told, _ = said(process)
    assert process.returncode == 3
    assert f"{tmp_path}/blind/app-" in told
    assert told.endswith(f" does not see '{logs / 's20.jsonl'}' as the driver does")
    names = {done.files[0].name for unit in Folder(str(folder)).units() for done in unit.sessions}
    assert "s20.jsonl" not in names
    assert built(logs, folder, "--salt", "x").startswith(f"{SESSIONS + 1} traces in the dataset: 3 sources read")
    assert rows(folder) == rows(logs.parent / "local")


@pytest.mark.parametrize(
    ("hand", "code", "message"),
    [
        ("version=0.0.1", 3, "has version '0.0.1' of orchtrace-corpus, and the driver "),
        ("full=1", 3, "No space left on device"),
        ("fatal=s04.jsonl", 1, "corpus: left out: s04.jsonl: the process that read it died: SIGKILL"),
    ],
)
def test_what_is_wrong_on_an_executor_is_named(hand: str, code: int, message: str, logs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    with spark_build(logs, folder, "local[2]", f"unit=9,{hand}", "--salt", "x") as process:
        told = said(process)
    assert (process.returncode, message in told[-1]) == (code, True), told
    assert unit_count(folder) == (5 if code == 1 else 0)
    left_out = code == 1 and 1
    again = built(logs, folder, "--salt", "x")
    assert again.startswith(f"{SESSIONS + 1} traces in the dataset: {left_out or SESSIONS + 1} source")
    assert rows(folder) == rows(logs.parent / "local")


def test_another_python_on_an_executor_is_refused(logs: Path, tmp_path: Path) -> None:
    names = [f"python3.{minor}" for minor in (11, 12, 13, 14) if minor != sys.version_info.minor]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [
        *filter(None, map(shutil.which, names)),
        *(str(one) for name in names for one in versions.glob(f"*/bin/{name}")),
    ]
    works = (one for one in found if subprocess.run([one, "-c", ""], capture_output=True).returncode == 0)
    other = next(works, None)
    if other is None:
        pytest.skip("there is no other Python")
    with spark_build(logs, tmp_path / "d", "local[2]", "unit=9", PYSPARK_PYTHON=other) as process:
        told = process.communicate(timeout=300)[1]
    assert process.returncode == 3
    assert "PYTHON_VERSION_MISMATCH" in told
    assert unit_count(tmp_path / "d") == 0


@pytest.fixture(scope="module")
def connect() -> Iterator[str]:
    """The URL of a Spark Connect server."""
    port = free_port()
    words = (
        "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--name",
        "test",
        "--master",
        "local[2]",
    )
    settings = (f"spark.connect.grpc.binding.port={port}", "spark.ui.enabled=false", *LOOPBACK)
    confs = [word for one in settings for word in ("--conf", one)]
    with java("org.apache.spark.deploy.SparkSubmit", *words, *confs, "spark-internal", PYSPARK_PYTHON=sys.executable):
        wait_for(port)
        yield f"sc://127.0.0.1:{port}"


COMPARE = """
import sys
from orchtrace_corpus.trace.dataset.folder import Folder
from orchtrace_corpus.trace.dataset.spark import Spark
from orchtrace_corpus.trace.dataset.statistics import statistics
from orchtrace_corpus.trace.dataset.tables import open_tables

parts = Folder(sys.argv[1]).parts()
with Spark(sys.argv[2], {}).open_tables(parts) as spark, open_tables(parts) as duckdb:
    for by in ((), ("model",), ("system", "version")):
        ours, theirs = statistics(duckdb, by), statistics(spark, by)
        print(by, ours.overview.traces, [name for name in ours._fields if getattr(ours, name) != getattr(theirs, name)])
"""


@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_every_statistic_is_that_of_duckdb(kind: str, logs: Path, request: pytest.FixtureRequest) -> None:
    url = "local[2]" if kind == "classic" else request.getfixturevalue("connect")
    words = [sys.executable, "-c", COMPARE, str(logs.parent / "local"), url]
    done = subprocess.run(words, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    number = SESSIONS + 1
    assert done.stdout.splitlines() == [f"{by} {number} []" for by in ((), ("model",), ("system", "version"))]


def test_a_build_on_connect_has_the_same_bytes(logs: Path, connect: str, tmp_path: Path) -> None:
    with spark_build(logs, tmp_path / "d", connect, "unit=3", "--salt", "x") as process:
        assert said(process) == [f"{SESSIONS + 1} traces in the dataset: {SESSIONS + 1} sources read, 0 as they were."]
    assert parts(tmp_path / "d") == parts(logs.parent / "local")
