"""Answers of models that an import has read so far, by which the same one in two sessions is known."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_MOST_KNOWN = 200_000
"""So many answers are kept in mind, in about 20 MB; of those after them it is not told that they came before."""


class Answers:
    """The answers of one import, whatever session they are of."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    def is_new(self, answer: str, request: str) -> bool:
        """Whether no session before had the answer; it is kept in mind for those that come."""
        mark = hash((answer, request))
        if mark in self._known:
            return False
        if len(self._known) < _MOST_KNOWN:
            self._known.add(mark)
        return True

    @contextmanager
    def kept_in_mind(self) -> Iterator[None]:
        """While this lasts, importers know these answers by `current`."""
        before = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(before)


_CURRENT: ContextVar[Answers | None] = ContextVar("answers", default=None)


def current() -> Answers:
    """The answers of the import that goes on; none are known where a session is read by itself."""
    return _CURRENT.get() or Answers()
