"""What a build has to do: what is new or changed, what stands, and what is no longer there.

A file stands as it was if its size and its time of change are the same; if only the time is another, as after a copy,
the digest of its content decides. A session stands if it has the same files, and all of them stand.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from orchtrace_corpus.trace.dataset.folder import Done, Unit
from orchtrace_corpus.trace.dataset.journal import Kept
from orchtrace_corpus.trace.dataset.sources import Source, digest, place, size, state

MOST_BYTES = 32 * 1024 * 1024
MOST_SESSIONS = 250
"""A unit takes sessions until it has so many, or so many bytes; a larger session is a unit by itself."""


class Task(NamedTuple):
    """A unit to be made."""

    name: str
    sources: tuple[Source, ...]


class Plan(NamedTuple):
    """What is to be done.

    Attributes:
        tasks: Units to be made, the largest sessions first.
        shrunk: Units that lose sessions, each with those that it keeps.
        renewed: Units of which nothing but the times of files has changed.
        unchanged: How many sessions stand as they were.
        kept: How many sessions stay although their logs are not there, or were not named.
        removed: How many of these go.
    """

    tasks: list[Task]
    shrunk: list[tuple[Unit, tuple[Done, ...]]]
    renewed: list[Unit]
    unchanged: list[Done]
    kept: int
    removed: int


def plan(sources: Sequence[Source], units: Sequence[Unit], settings: str, salt: bytes, *, prune: bool) -> Plan:
    """Compare what is to be in a dataset with what is in it.

    Args:
        sources: What is to be read.
        units: What the dataset is made of.
        settings: Those of this build; units with others are made anew.
        salt: Of the dataset.
        prune: Whether sessions go whose logs are not there any more, or are not named.
    """
    wanted = _by_identity(sources)
    taken = {(path, begin) for _, paths, begin in wanted for path in paths}
    shrunk, renewed = [], []
    unchanged: list[Done] = []
    vanished = 0
    for unit in units:
        kept: list[Done] = []
        is_renewed = False
        for done in unit.sessions:
            identity = _identity(done)
            source = wanted.get(identity)
            if source is not None and unit.settings == settings:
                now = _standing(source, done)
                if now is not None:
                    is_renewed = is_renewed or now != done
                    kept.append(now)
                    unchanged.append(now)
                    del wanted[identity]
            elif not any((file.path, done.begin) in taken for file in done.files):
                vanished += 1
                kept += [] if prune else [done]
        if len(kept) < len(unit.sessions):
            shrunk.append((unit, tuple(kept)))
        elif is_renewed:
            renewed.append(replace(unit, sessions=tuple(kept)))
    removed = vanished if prune else 0
    return Plan(_tasks(list(wanted.values()), salt), shrunk, renewed, unchanged, vanished - removed, removed)


def taken_over(kept: Iterable[Kept], sources: Iterable[Source], settings: str, salt: bytes) -> dict[Source, Kept]:
    """The sources that need not be read, since a journal has the rows that reading them would give.

    Args:
        kept: What journals hold.
        sources: What is to be read.
        settings: Those of this build.
        salt: Of the dataset.
    """
    usable = [one for one in kept if one.settings == settings]
    wanted = _by_identity(sources) if usable else {}
    found = {}
    for one in usable:
        source = wanted.get(_identity(one.done))
        if source is not None and source.key(salt) == one.done.key:
            now = _standing(source, one.done)
            if now is not None:
                found[source] = one._replace(done=now)
    return found


_Identity = tuple[str, tuple[str, ...], int]


def _identity(done: Done) -> _Identity:
    return done.form, tuple(file.path for file in done.files), done.begin


def _by_identity(sources: Iterable[Source]) -> dict[_Identity, Source]:
    return {(source.form, tuple(place(file.path) for file in source.files), source.begin): source for source in sources}


def _standing(source: Source, done: Done) -> Done | None:
    """What was read of a source, with its files as they are now, if they hold what they did."""
    if source.end != done.end:
        return None
    found = []
    for file, known in zip(source.files, done.files, strict=True):
        now = state(file)
        is_same_part = done.end >= 0 and now.size >= done.end
        if not known.digest or (now.size != known.size and not is_same_part):
            return None
        if (now.size, now.mtime_ns) != (known.size, known.mtime_ns) and (
            digest(file.path, done.begin, done.end) != known.digest
        ):
            return None
        now.name, now.digest = known.name, known.digest
        found.append(now)
    return replace(done, files=tuple(found))


def _tasks(sources: list[Source], salt: bytes) -> list[Task]:
    """The sources in units of bounded size, in their order; units of one session come first."""
    batches: list[list[Source]] = []
    alone: list[list[Source]] = []
    room = 0
    for source in sources:
        weight = sum(map(size, source.files)) if source.end < 0 else source.end - source.begin
        if weight >= MOST_BYTES:
            alone.append([source])
            continue
        if weight > room or len(batches[-1]) >= MOST_SESSIONS:
            batches.append([])
            room = MOST_BYTES
        batches[-1].append(source)
        room -= weight
    return [Task(_name(batch, salt), tuple(batch)) for batch in (*alone, *batches)]


def _name(sources: Sequence[Source], salt: bytes) -> str:
    """The name of a unit: the same for the same sessions."""
    return hashlib.blake2b("".join(source.key(salt) for source in sources).encode(), digest_size=8).hexdigest()
