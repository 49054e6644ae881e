"""Which record of one state of a corpus is which of another: by name, by identifier or address, by title."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from orchtrace_corpus.base.identifiers import recognise, recognise_url
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Record, address, folded_title, identities

RecordType = TypeVar("RecordType", Paper, Exclusion)


def signs(record: Record) -> list[Hashable]:
    """What two records that are about one work have in common, the strongest first."""
    if isinstance(record, Paper):
        found: list[Hashable] = [identifier for identifier, _ in identities(record)]
        found += [address(record.urls[0])] if record.urls else []
    else:
        known = (recognise(record.identifier), recognise_url(record.url))
        found = [identifier for identifier in known if identifier is not None]
        found += [address(record.url)] if record.url else []
    title = folded_title(record.title)
    return [*found, *([title] if title else [])]


def paired(
    before: Sequence[RecordType], after: Sequence[RecordType]
) -> list[tuple[RecordType | None, RecordType | None]]:
    """Each record with its counterpart, in the order of the later state; those that are gone come last.

    Records that share name and work go together first; then those that share the work, which were
    renamed; then those that share the name alone, which were corrected beyond recognition. So a key
    that was given to another paper is not taken for a correction of the paper that had it.
    """
    counterparts: dict[int, int] = {}
    taken: set[int] = set()
    for features in (_name_and_signs, signs, _name):
        waiting = _by_feature(before, features, taken)
        for index, record in enumerate(after):
            if index in counterparts:
                continue
            for feature in features(record):
                found = waiting.get(feature, deque())
                while found and found[0] in taken:
                    found.popleft()
                if found:
                    counterparts[index] = found.popleft()
                    taken.add(counterparts[index])
                    break
    pairs: list[tuple[RecordType | None, RecordType | None]] = [
        (before[counterparts[index]] if index in counterparts else None, record) for index, record in enumerate(after)
    ]
    return pairs + [(record, None) for index, record in enumerate(before) if index not in taken]


def _name(record: Record) -> Iterable[Hashable]:
    return [record.name] if record.name else []


def _name_and_signs(record: Record) -> Iterable[Hashable]:
    return [(name, sign) for name in _name(record) for sign in signs(record)]


def _by_feature(
    records: Sequence[Record], features: Callable[[Record], Iterable[Hashable]], taken: set[int]
) -> dict[Hashable, deque[int]]:
    """The records that have each feature, by their indexes, in order; those taken left out."""
    found: dict[Hashable, deque[int]] = {}
    for index, record in enumerate(records):
        if index not in taken:
            for feature in features(record):
                found.setdefault(feature, deque()).append(index)
    return found
