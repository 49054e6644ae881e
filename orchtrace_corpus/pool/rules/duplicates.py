"""The same thing twice: keys, exclusion ids, identifiers."""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import TypeVar

from orchtrace_corpus.findings import Finding, quote
from orchtrace_corpus.identifiers import IdentifierKind
from orchtrace_corpus.pool.model import Loaded, Places, Record

RecordType = TypeVar("RecordType", bound=Record)


def check_keys(loaded: Loaded) -> Iterator[Finding]:
    """Two papers with one key: the second could never be shown, cited or updated by it."""
    papers = loaded.pool.papers if loaded.pool else ()
    for first, second in _repeats(papers, lambda paper: paper.key):
        where = _line(loaded.paper_places, first, "key")
        key = papers[second].key
        message = f"key {quote(key)} is used twice (first on line {where}); give each paper its own key"
        yield Finding("D101", message, loaded.paper_places.locate(second, "key"), key)


def check_exclusion_ids(loaded: Loaded) -> Iterator[Finding]:
    """Two exclusions with one id: ids are cited in reasons and never reused."""
    exclusions = loaded.pool.exclusions if loaded.pool else ()
    for first, second in _repeats(exclusions, lambda exclusion: exclusion.id):
        where = _line(loaded.exclusion_places, first, "id")
        number = exclusions[second].id
        message = (
            f"exclusion id {quote(number)} is used twice (first on line {where}); give the record the next free id"
        )
        yield Finding("D102", message, loaded.exclusion_places.locate(second, "id"), number)


def check_identifiers(loaded: Loaded) -> Iterator[Finding]:
    """Two papers with one identifier: most likely one paper under two keys."""
    papers = loaded.pool.papers if loaded.pool else ()
    for kind in IdentifierKind:
        for first, second in _repeats(papers, attrgetter(kind.value)):
            value = getattr(papers[second], kind.value)
            message = f"{kind} {quote(value)} is that of {quote(papers[first].key)}, too; keep one record"
            yield Finding("D103", message, loaded.paper_places.locate(second, kind.value), papers[second].key)


def _repeats(records: Sequence[RecordType], value: Callable[[RecordType], str | None]) -> Iterator[tuple[int, int]]:
    """Pairs of the first index of a value and each later one; empty values do not count."""
    seen: dict[str, int] = {}
    for index, record in enumerate(records):
        this = value(record)
        if this:
            first = seen.setdefault(this, index)
            if first != index:
                yield first, index


def _line(places: Places, index: int, field: str) -> int:
    return places.locate(index, field).line
