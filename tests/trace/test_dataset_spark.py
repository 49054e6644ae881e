"""Datasets on Spark: the same rows and figures as on this machine, whoever is killed and whatever is wrong.

Needs pyspark and Java. A master and its workers are started on loopback. Where something is missing the tests are skipped;
where the environment variable ORCHTRACE_EXTERNAL is "required", that is a failure.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
import spark_cluster
from spark_cluster import BRIEF, LOOPBACK, worker

from orchtrace_corpus.trace.dataset.folder import FILES, Folder
from tests.conftest import ROOT, Result, run_corpus
from tests.effort import tries
from tests.trace.datasets import HOOK, built, rows, summary, transcript, unit_count, various_traces

pytestmark = [pytest.mark.external, pytest.mark.posix, pytest.mark.xdist_group("spark")]

SESSIONS = 22  # with the one that was forked, three units of nine


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
    with spark_build(folder / "logs", folder / "local", "", "unit=2", "--salt", "x") as process:
        assert (process.wait(300), unit_count(folder / "local")) == (0, 12)
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
        settings = (word for one in (*LOOPBACK, *BRIEF) for word in ("--spark-conf", one))
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


@pytest.fixture(scope="module")
def master() -> Iterator[str]:
    with spark_cluster.master() as url:
        yield url


def wait_for_units(process: subprocess.Popen[str], folder: Path, number: int) -> None:
    """Wait until a build has committed so many units."""
    until = time.monotonic() + 240
    while process.poll() is None and unit_count(folder) < number and time.monotonic() < until:
        time.sleep(0.02)
    assert process.poll() is None
    assert unit_count(folder) >= number


@pytest.mark.parametrize("number", range(tries(10, 1)))
def test_a_build_goes_on_when_its_driver_and_then_a_worker_are_killed(
    number: int, logs: Path, master: str, tmp_path: Path
) -> None:
    folder, chance = tmp_path / "d", random.Random(number)
    with worker(master, tmp_path / "one") as victim, worker(master, tmp_path / "two"):
        with spark_build(logs, folder, master, "unit=2,slow=0.2", "--salt", "x") as process:
            wait_for_units(process, folder, 1 + number % 3)
            time.sleep(chance.uniform(0, 0.5))
            process.kill()
        before = {unit.name for unit in Folder(str(folder)).units()}
        with spark_build(logs, folder, master, "unit=2,slow=0.4") as process:
            wait_for_units(process, folder, len(before) + 1 + number % 3)
            time.sleep(chance.uniform(0, 0.5))
            victim.kill()
            (told,) = said(process)
    assert told.startswith(f"{SESSIONS + 1} traces in the dataset: ")
    assert before <= {unit.name for unit in Folder(str(folder)).units()}
    assert parts(folder) == parts(logs.parent / "local")


def test_a_file_that_one_executor_does_not_see_is_named_with_it(logs: Path, master: str, tmp_path: Path) -> None:
    folder, hook = tmp_path / "d", tmp_path / "hook"
    with (
        worker(master, tmp_path / "blind", HAND="blind=s20.jsonl", PYTHONPATH=str(hook)),
        spark_build(logs, folder, master, "unit=9", "--salt", "x") as process,
    ):
        told, _ = said(process)
    assert process.returncode == 3
    assert f"{tmp_path}/blind/app-" in told
    assert told.endswith(f" does not see '{logs / 's20.jsonl'}' as the driver does")
    names = {done.files[0].name for unit in Folder(str(folder)).units() for done in unit.records}
    assert "s20.jsonl" not in names
    assert built(logs, folder, "--salt", "x").startswith(f"{SESSIONS + 1} traces in the dataset: 5 sources read")
    assert rows(folder) == rows(logs.parent / "local")


RUN = """
import json, sys
from tests.conftest import run_corpus
for words in json.load(sys.stdin):
    print(json.dumps(run_corpus("trace", "dataset", *words)))
"""
"""Commands of one process, and so with one start of Java."""


def ran(url: str, hook: Path, unit: int, *commands: Sequence[str]) -> list[Result]:
    """The results of commands on Spark; nothing else may be on standard error, such as the remarks of Java.

    Args:
        url: Of Spark.
        hook: A folder for the hook.
        unit: The most sources of a unit.
        commands: The words of each.
    """
    settings = () if url.startswith("sc:") else (*LOOPBACK, *BRIEF)
    engine = ["--engine", "spark", "--master", url, *(word for one in settings for word in ("--spark-conf", one))]
    words = [[*some, *engine] for some in commands]
    (hook / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(words), capture_output=True, text=True, timeout=900,
        env={**os.environ, "HAND": f"unit={unit}", "PYTHONPATH": f"{hook}{os.pathsep}{ROOT}"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return [Result(*json.loads(line)) for line in done.stdout.splitlines()]


HANDS = {
    "python=3.99": (3, "[PYTHON_VERSION_MISMATCH]"),
    "version=0.0.1": (3, "has version '0.0.1' of orchtrace-corpus, and the driver "),
    "full=1": (3, "No space left on device"),
    "fatal=s04.jsonl": (1, "corpus: left out: s04.jsonl: the process that read it died: SIGKILL"),
}
"""What is wrong on an executor, and how it is told."""

GROUPS = ("system,model", "topology", "")[: tries(3, 1)]
"""What statistics are divided by; the one that has most in it comes first."""


@pytest.fixture(scope="module")
def various(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of traces that differ in all that statistics look at."""
    folder = tmp_path_factory.mktemp("various")
    various_traces(folder / "t.jsonl")
    built(folder / "t.jsonl", folder / "d", "--salt", "x")
    return folder / "d"


def statistics_by_groups(folder: Path) -> list[list[str]]:
    return [["stats", str(folder), "--format", "json", "--by", by] for by in GROUPS]


def test_what_is_wrong_on_an_executor_is_named_and_statistics_are_those_of_duckdb(
    logs: Path, various: Path, tmp_path: Path
) -> None:
    build = ("build", str(logs), "--salt", "x", "-o")
    hands = [[*build, str(tmp_path / name), "--spark-conf", f"spark.executorEnv.HAND={name},unit=9"] for name in HANDS]
    results = ran("local[2]", tmp_path, 9, *statistics_by_groups(various), *hands)
    figures, told = results[: len(GROUPS)], results[len(GROUPS) :]

    assert [one.stderr for one in figures] == [""] * len(GROUPS)
    for words, result in zip(statistics_by_groups(various), figures, strict=True):
        assert json.loads(result.stdout) == json.loads(run_corpus("trace", "dataset", *words).stdout)
    for (name, (code, message)), result in zip(HANDS.items(), told, strict=True):
        assert (result.code, message in result.stderr) == (code, True), result.stderr
        assert unit_count(tmp_path / name) == (3 if code == 1 else 0)
        again = built(logs, tmp_path / name, "--salt", "x")
        assert again.startswith(f"{SESSIONS + 1} traces in the dataset: {1 if code == 1 else SESSIONS + 1} source")
        assert rows(tmp_path / name) == rows(logs.parent / "local")


@pytest.fixture(scope="module")
def connect() -> Iterator[str]:
    with spark_cluster.connect_server(*BRIEF) as url:
        yield url


def test_connect_builds_the_same_bytes_and_computes_the_same_figures(
    logs: Path, various: Path, connect: str, tmp_path: Path
) -> None:
    words = ["build", str(logs), "-o", str(tmp_path / "d"), "--salt", "x"]
    build, *figures = ran(connect, tmp_path, 2, words, *statistics_by_groups(various))

    assert build == Result(0, "", summary(SESSIONS + 1, SESSIONS + 1))
    assert parts(tmp_path / "d") == parts(logs.parent / "local")
    for by, result in zip(statistics_by_groups(various), figures, strict=True):
        assert json.loads(result.stdout) == json.loads(run_corpus("trace", "dataset", *by).stdout)


def test_the_one_remark_of_pyspark_on_pandas_is_its_only_one() -> None:
    """Where this fails because there is no remark any more, the filter in `spark.py` can go."""
    code = "import warnings, pyspark.sql.pandas.utils as utils; warnings.simplefilter('error'); utils.require_minimum_pandas_version()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    is_said = "FutureWarning: PySpark does not yet fully support pandas" in done.stderr
    assert is_said == (int(version("pandas").partition(".")[0]) >= 3), done.stderr
    assert bool(done.returncode) == is_said, done.stderr
