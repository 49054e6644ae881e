"""A cluster of Spark on loopback: a master, its workers, or a Connect server, for tests and benchmarks.

Needs pyspark and Java. Everything that is started ends with the `with` statement that started it.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

LOOPBACK = ("spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1", "spark.executor.memory=512m")
"""Settings of a driver with executors on this machine."""

BRIEF = (
    *("spark.sql.shuffle.partitions=1", "spark.sql.adaptive.enabled=false"),
    *(f"spark.{one}.extraJavaOptions=-XX:TieredStopAtLevel=1" for one in ("driver", "executor")),
)
"""Settings for little data, which is neither divided nor planned again, nor worth much compiling."""

_START_SECONDS = 120


@contextmanager
def java(*words: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A service of Spark."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise RuntimeError("pyspark is not installed")
    home = Path(found.origin).parent
    ours = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1"}
    process = subprocess.Popen(
        [str(home / "bin" / "spark-class"), *words],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **ours, **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def master() -> Iterator[str]:
    """The URL of a standalone master."""
    port = _free_port()
    words = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
    with java("org.apache.spark.deploy.master.Master", *words):
        _wait_for(port)
        yield f"spark://127.0.0.1:{port}"


@contextmanager
def connect_server(*conf: str) -> Iterator[str]:
    """The URL of a Connect server with two cores of this machine, and with more settings."""
    port = _free_port()
    settings = (f"spark.connect.grpc.binding.port={port}", "spark.ui.enabled=false", *LOOPBACK, *conf)
    words = [
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--name", "test"),
        *("--master", "local[2]", *(word for setting in settings for word in ("--conf", setting)), "spark-internal"),
    ]
    with java("org.apache.spark.deploy.SparkSubmit", *words, PYSPARK_PYTHON=sys.executable):
        _wait_for(port)
        yield f"sc://127.0.0.1:{port}"


class Node:
    """A worker of a master, with one executor of one core for each application.

    Args:
        process: The worker.
        folder: The working folder, which tells its executors from those of others.
    """

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process = process
        self._folder = folder

    def kill(self) -> None:
        """Kill the worker and its executors, as the end of a machine does."""
        self._process.kill()
        for path in Path("/proc").glob("[0-9]*/cwd"):
            try:
                if path.resolve().is_relative_to(self._folder):
                    os.kill(int(path.parent.name), signal.SIGKILL)
            except OSError:
                continue


@contextmanager
def worker(master: str, folder: Path, **environment: str) -> Iterator[Node]:
    """A worker of a master."""
    words = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(folder))
    with java("org.apache.spark.deploy.worker.Worker", *words, master, **environment) as process:
        yield Node(process, folder)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait_for(port: int) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens at port {port} after {_START_SECONDS} seconds")
