"""The limits of one input: each has a default, which the environment may raise."""

import importlib
from collections.abc import Iterator

import pytest

from orchtrace_corpus.base import budget
from orchtrace_corpus.base.errors import CommandUseError


@pytest.fixture(autouse=True)
def _defaults_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield
    monkeypatch.undo()
    importlib.reload(budget)


def test_the_environment_raises_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHTRACE_MAX_LINE_BYTES", "200000000")
    importlib.reload(budget)
    assert (budget.MAX_LINE_BYTES, budget.MAX_ARCHIVE_MEMBERS) == (200_000_000, 200_000)


@pytest.mark.parametrize("text", ["many", "-1", "1e9", "9" * 19, "٣"])
def test_what_is_no_limit_is_said_so(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHTRACE_MAX_LINE_BYTES", text)
    with pytest.raises(
        CommandUseError,
        match=r"^ORCHTRACE_MAX_LINE_BYTES is .*, not a whole number\nThe limit without it is 67,108,864.$",
    ):
        importlib.reload(budget)
