"""Start a cluster of Spark on this machine, for tests and benchmarks: a master, its workers, or a Connect server.

It needs pyspark and Java. Each service ends with its `with` block.
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
    *(f"spark.{process}.extraJavaOptions=-XX:TieredStopAtLevel=1" for process in ("driver", "executor")),
)
"""Settings for little data: one partition, no adaptive plans, and only fast compilation."""

_START_SECONDS = 120
"""The time in which a service must start."""


@contextmanager
def java(*words: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a service of Spark; it ends with the `with` block."""
    pyspark = find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        raise RuntimeError("pyspark is not installed")
    home = Path(pyspark.origin).parent
    settings = {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
    }
    process = subprocess.Popen(
        [str(home / "bin" / "spark-class"), *words],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **settings, **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def master() -> Iterator[str]:
    """Start a standalone master, and yield its URL."""
    port = _free_port()
    words = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
    with java("org.apache.spark.deploy.master.Master", *words):
        _wait_for(port)
        yield f"spark://127.0.0.1:{port}"


@contextmanager
def connect_server(*conf: str) -> Iterator[str]:
    """Start a Connect server with two cores of this machine and some settings, and yield its URL."""
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
    """Start a worker of a master. For each application, it starts one executor with one core.

    Args:
        process: The process of the worker.
        folder: The working folder of the worker. Its executors are found by their working folders below it.
    """

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process = process
        self._folder = folder

    def kill(self) -> None:
        """Kill the worker and its executors, as if their machine failed."""
        self._process.kill()
        for path in Path("/proc").glob("[0-9]*/cwd"):
            try:
                if path.resolve().is_relative_to(self._folder):
                    os.kill(int(path.parent.name), signal.SIGKILL)
            except OSError:
                continue


@contextmanager
def worker(master: str, folder: Path, **environment: str) -> Iterator[Node]:
    """Start a worker of a master."""
    words = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(folder))
    with java("org.apache.spark.deploy.worker.Worker", *words, master, **environment) as process:
        yield Node(process, folder)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        _, port = listener.getsockname()
        return int(port)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens at port {port} after {_START_SECONDS} seconds")
