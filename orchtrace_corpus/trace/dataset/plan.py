"""What a build has to do: what is new or changed, what stands, and what is no longer there.

A file stands as it was if its size and its time of change are the same; if only the time is another, as after a copy,
the digest of its content decides. A session stands if it has the same files, and all of them stand.
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from orchtrace_corpus.trace.dataset.folder import Done, FileState, Unit
from orchtrace_corpus.trace.dataset.sources import Source, digest, place, state

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
    wanted = {
        (source.form, tuple(place(file.path) for file in source.files), source.begin): source for source in sources
    }
    taken = {(path, begin) for _, paths, begin in wanted for path in paths}
    shrunk, renewed = [], []
    unchanged: list[Done] = []
    vanished = 0
    for unit in units:
        kept: list[Done] = []
        is_renewed = False
        for done in unit.sessions:
            identity = done.form, tuple(file.path for file in done.files), done.begin
            source = wanted.get(identity)
            if source is not None and unit.settings == settings and source.end == done.end:
                now = _standing(source, done)
                if now:
                    is_renewed = is_renewed or now != done.files
                    kept.append(Done(done.form, now, done.key, done.begin, done.end, done.traces, done.errors))
                    unchanged.append(kept[-1])
                    del wanted[identity]
            elif not any((file.path, done.begin) in taken for file in done.files):
                vanished += 1
                kept += [] if prune else [done]
        if len(kept) < len(unit.sessions):
            shrunk.append((unit, tuple(kept)))
        elif is_renewed:
            renewed.append(Unit(unit.name, tuple(kept), unit.settings, unit.generation))
    removed = vanished if prune else 0
    return Plan(_tasks(list(wanted.values()), salt), shrunk, renewed, unchanged, vanished - removed, removed)


def _standing(source: Source, done: Done) -> tuple[FileState, ...]:
    """The files of a session as they are now, if they hold what they did; else nothing."""
    found = []
    for file, known in zip(source.files, done.files, strict=True):
        now = state(file)
        is_same_part = done.end >= 0 and now.size >= done.end
        if not known.digest or (now.size != known.size and not is_same_part):
            return ()
        if (now.size, now.mtime_ns) != (known.size, known.mtime_ns) and (
            digest(file.path, done.begin, done.end) != known.digest
        ):
            return ()
        now.name, now.digest = known.name, known.digest
        found.append(now)
    return tuple(found)


def _tasks(sources: list[Source], salt: bytes) -> list[Task]:
    """The sources in units of bounded size, in their order; units of one session come first."""
    batches: list[list[Source]] = []
    alone: list[list[Source]] = []
    room = 0
    for source in sources:
        size = sum(max(state(file).size, 0) for file in source.files) if source.end < 0 else source.end - source.begin
        if size >= MOST_BYTES:
            alone.append([source])
            continue
        if size > room or len(batches[-1]) >= MOST_SESSIONS:
            batches.append([])
            room = MOST_BYTES
        batches[-1].append(source)
        room -= size
    return [Task(_name(batch, salt), tuple(batch)) for batch in (*alone, *batches)]


def _name(sources: Sequence[Source], salt: bytes) -> str:
    """The name of a unit: the same for the same sessions."""
    return hashlib.blake2b("".join(source.key(salt) for source in sources).encode(), digest_size=8).hexdigest()
