"""Fixtures of the corpus tests: a copy of the toy corpus to change, and a local arXiv."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import TOY
from tests.corpus.arxiv_server import ArxivServer
from tests.corpus.files import FIRST_OF_MARCH


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the folder of a copy of the toy corpus."""
    return shutil.copytree(TOY, tmp_path / "corpus")


@pytest.fixture
def in_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the copy of the toy corpus the working folder."""
    monkeypatch.chdir(root)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give commands a cache that does not exist yet."""
    monkeypatch.setenv("ORCHTRACE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def on_first_of_march(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make today the first of March 2024."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", FIRST_OF_MARCH)


@pytest.fixture
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ArxivServer]:
    """Start a local arXiv that has the papers in `ARXIV` of the test's module, and send commands to it."""
    with ArxivServer(request.module.ARXIV) as server:
        monkeypatch.setenv("ORCHTRACE_ARXIV_URL", server.url)
        monkeypatch.setenv("ORCHTRACE_ARXIV_SPACING", "0.0001")
        yield server
