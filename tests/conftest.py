"""What the tests share: the toy corpus, and the command line run inside this process."""

import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from orchtrace_corpus.cli.main import run
from orchtrace_corpus.corpus.api import Corpus, load

ROOT = Path(__file__).parents[1]
TOY = Path(__file__).parent / "data" / "toy"


class Result(NamedTuple):
    """The outcome of a command: exit code, standard output, standard error."""

    code: int
    stdout: str
    stderr: str


def run_corpus(*arguments: str) -> Result:
    """Run `corpus` in this process, with output that is no terminal."""
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    saved = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = stdout, stderr
    try:
        code = run(list(arguments))
    finally:
        sys.stdout, sys.stderr = saved
    for stream in (stdout, stderr):
        stream.seek(0)
    return Result(code, stdout.read(), stderr.read())


def run_toy(*arguments: str) -> Result:
    """Run `corpus` on the toy corpus."""
    return run_corpus("--root", str(TOY), *arguments)


@pytest.fixture(scope="session", autouse=True)
def _temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder for the temporary files of commands, such as locks, that goes with the tests; any user may write there."""
    tmp_path_factory.getbasetemp()  # its place is where it always is
    with tempfile.TemporaryDirectory(prefix="corpus-tests-") as folder, pytest.MonkeyPatch.context() as patch:
        os.chmod(folder, 0o1777)
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", None)
        yield


@pytest.fixture(scope="session")
def toy() -> Corpus:
    """The toy corpus."""
    return load(str(TOY))


@pytest.fixture(scope="session")
def real() -> Corpus:
    """The corpus of this repository."""
    return load(str(ROOT))
