"""The folder of a dataset: its tables, and the private part that says which logs they are made of.

    DIR/traces/part-UNIT-0.parquet      and likewise events, edges, agents, ledger, answers
    DIR/copies/part-all.parquet         answers that are counted in another trace; made last, of all units
    DIR/.build/dataset.json             the salt of the hashes; for the owner's eyes only
    DIR/.build/units/UNIT.json          what a unit is made of; written last, so that a unit is there or is not
    DIR/.build/staged/UNIT.ATTEMPT/     a unit that was made and is not committed; its `staged.json` is written last

Any process may stage a unit; the one that builds commits it. What a killed build leaves behind is in no unit: it is not
read. The next build commits what is staged as a whole, and removes the rest. Whoever hands a dataset on leaves `.build`
out.
"""

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.files import locked, sweep, write_atomic
from orchtrace_corpus.base.findings import quote, quote_path
from orchtrace_corpus.trace.dataset.columns import TABLES

ANSWERS, COPIES = "answers", "copies"
FILES = (*TABLES, ANSWERS)
"""The files of a unit: one for each table, and one for the answers whose ids are known."""

_PRIVATE = ".build"
_MANIFEST = "staged.json"
_LOCK_WAIT_SECONDS = 2.0
_UNREADABLE = (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class FileState(Struct, gc=False):
    """A file of a log as it was when it was read.

    Attributes:
        digest: BLAKE2b of what was read; empty where it could not be read, so that it is tried again.
    """

    path: str
    name: str
    size: int
    mtime_ns: int
    digest: str = ""


class Done(Struct, gc=False):
    """The record of a session that was read, or of a part of a file with finished traces.

    Attributes:
        key: What the keys of its traces begin with.
        begin: The first byte that was read.
        end: The byte behind the last one; -1 for the file's end.
        traces: How many traces it gave.
        errors: What was left out of it, and why.
    """

    form: str
    files: tuple[FileState, ...]
    key: str
    begin: int = 0
    end: int = -1
    traces: int = 0
    errors: tuple[str, ...] = ()

    @property
    def identity(self) -> tuple[str, tuple[str, ...], int]:
        """Return the identity of the source, which is the same in another build."""
        return self.form, tuple(file.path for file in self.files), self.begin


class Unit(Struct):
    """Sessions whose rows are in one file of each table.

    Attributes:
        settings: Of the build: another price table, or another version of the program, makes other rows.
        generation: How often the unit was written anew without some of its sessions.
        prices: The date of the price table behind its costs; empty without one.
        answers: How many answers have ids.
    """

    name: str
    sessions: tuple[Done, ...]
    settings: str
    generation: int = 0
    prices: str = ""
    answers: int = 0

    @property
    def file(self) -> str:
        """The name of its file in each table."""
        return f"part-{self.name}-{self.generation}.parquet"


LeftOut = tuple[tuple[str, str], ...]
"""Sources that killed the process which read them: what they are called, and why."""


class Staged(Struct):
    """A unit that is written as a whole, to be committed, with what was left out of it."""

    unit: Unit
    left_out: LeftOut = ()


class _Identity(Struct):
    salt: str


class Folder:
    """The folder of a dataset.

    Attributes:
        staged: The folder for units that are not committed.
        copies: The file of the answers that are counted in another trace.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.staged = self.private("staged")
        self.copies = os.path.join(path, COPIES, "part-all.parquet")
        self._identity_file = self.private("dataset.json")
        self._unfinished = self.private("unfinished")

    def private(self, *names: str) -> str:
        """A file or folder of the private part."""
        return os.path.join(self.path, _PRIVATE, *names)

    @contextmanager
    def writing(self, salt: str) -> Iterator[bytes]:
        """Be the only one who builds in the folder, which is made if it is not there; gives the salt of its hashes.

        A new dataset gets the salt that is wanted, or a random one.

        Raises:
            CommandUseError: The dataset has another salt.
            DataFileError: The folder is no dataset, cannot be written, or is being written by another process.
        """
        try:
            os.makedirs(self.path, exist_ok=True)
        except OSError as error:
            raise DataFileError(f"cannot make {quote_path(self.path)}: {error.strerror}") from error
        with locked(self.path, _LOCK_WAIT_SECONDS):
            try:
                known = self._prepare(salt)
                self._sweep()
                write_atomic(self._unfinished, "")
                yield known
            except BrokenPipeError:  # of whoever reads the progress
                raise
            except OSError as error:
                message = f"cannot write the dataset {quote_path(self.path)}: {error.strerror}"
                raise DataFileError(message, "Run the command again: it goes on with what is whole.") from error

    def finish(self) -> None:
        """Say that the build has come to its end: every source is in a unit, or was left out."""
        shutil.rmtree(self.staged, ignore_errors=True)  # an executor may still be at a unit that another has made
        os.unlink(self._unfinished)

    @property
    def is_unfinished(self) -> bool:
        """Return True if a build is at work, or was interrupted."""
        return os.path.exists(self._unfinished)

    def _prepare(self, salt: str) -> bytes:
        wanted = salt.encode("utf-8", "replace")
        hint = "Restore it from a copy, or build a new dataset."
        try:
            with open(self._identity_file, "rb") as file:
                known = bytes.fromhex(msgspec.json.decode(file.read(), type=_Identity).salt)
        except FileNotFoundError:
            return self._create(wanted or os.urandom(16))
        except (*_UNREADABLE, ValueError) as error:
            raise DataFileError(f"cannot read {quote_path(self._identity_file)}: {error}", hint) from error
        if not known:
            raise DataFileError(f"{quote_path(self._identity_file)} has no salt", hint)
        if wanted and wanted != known:
            hint = "Leave --salt out, or build a new dataset: hashes must be comparable."
            raise CommandUseError("the dataset has another salt", hint)
        return known

    def _create(self, salt: bytes) -> bytes:
        """Make the folder a dataset; the salt is there for its owner only, and whole or not at all."""
        there = set(os.listdir(self.path)) - {_PRIVATE}
        if there.issuperset(TABLES):
            raise DataFileError(
                f"{quote_path(self.path)} has the tables of a dataset without its .build: it can be described and "
                "queried, not built on",
                "Copy .build to it from where it was built. Or build what is new into another folder, with -o; put "
                "together, the files of both in each table are one dataset.",
            )
        if there:
            hint = "Name a new folder, or the folder of a dataset."
            raise DataFileError(f"{quote_path(self.path)} is not a dataset, and not empty", hint)
        beside = f"{self._identity_file}.new"
        try:
            os.makedirs(self.private(), mode=0o700, exist_ok=True)
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(_Identity(salt.hex())))
            os.rename(beside, self._identity_file)
        except OSError as error:
            raise DataFileError(f"cannot write in {quote_path(self.path)}: {error.strerror}") from error
        return salt

    def _sweep(self) -> None:
        """Commit what a killed build has staged as a whole, remove the rest of it, and make room for this one."""
        tables = [os.path.join(self.path, table) for table in (*FILES, COPIES)]
        for folder in (self.staged, self.private("units"), *tables):
            os.makedirs(folder, exist_ok=True)
        for private in ("", "units"):
            sweep(self.private(private))
        there = {place for unit in self.units() for place in _places(unit)}
        for place in _files(self.staged):
            staged = self._whole(place)
            if staged is not None and there.isdisjoint(_places(staged.unit)):
                self.commit(place)
                there |= _places(staged.unit)
        shutil.rmtree(self.staged, ignore_errors=True)
        os.makedirs(self.staged, exist_ok=True)
        known = {unit.file for unit in self.units()}
        parts = [path for table in tables[:-1] for path in _files(table, ".parquet")]
        for path in (*_files(self.private(), ".log"), *parts):
            name = os.path.basename(path)
            if name.startswith(("worker-", "part-")) and name not in known:
                os.unlink(path)

    def units(self) -> list[Unit]:
        """The units, by name; none where the folder has no private part.

        Raises:
            DataFileError: One cannot be read.
        """
        found = []
        decoder = msgspec.json.Decoder(Unit)
        hint = "Remove it; what it stands for is built again."
        for path in _files(self.private("units"), ".json"):
            try:
                with open(path, "rb") as file:
                    unit = decoder.decode(file.read())
            except _UNREADABLE as error:
                raise DataFileError(f"cannot read {quote_path(path)}: {error}", hint) from error
            if path != self._unit_file(unit):
                raise DataFileError(f"{quote_path(path)} is of another unit, {quote(unit.name)}", hint)
            found.append(unit)
        return found

    def parts(self) -> dict[str, list[str]]:
        """The files of each table.

        Raises:
            DataFileError: There is no dataset, or it holds nothing.
        """
        if os.path.isdir(self.private()):
            names = [unit.file for unit in self.units()]
            found = {table: [os.path.join(self.path, table, name) for name in names] for table in TABLES}
        else:
            found = {table: _files(os.path.join(self.path, table), ".parquet") for table in TABLES}
        if not all(found.values()):
            missing = next(table for table, files in found.items() if not files)
            hint = "corpus trace dataset build LOGS... -o DIR makes one."
            raise DataFileError(f"{quote_path(self.path)} is not a dataset, or is empty: no {missing}", hint)
        return {**found, COPIES: [self.copies]}

    def commit(self, place: str) -> Staged:
        """Take over a staged unit: first its files, at last the unit itself. Broken off, it can be done again."""
        staged = _manifest(place)
        if staged.unit.sessions:
            for table in FILES:
                with suppress(FileNotFoundError):  # it is there, from the first time
                    os.replace(os.path.join(place, f"{table}.parquet"), self.part(table, staged.unit))
            self.note(staged.unit)
        shutil.rmtree(place, ignore_errors=True)
        return staged

    def _whole(self, place: str) -> Staged | None:
        """Return the unit that is staged in a folder; None if it is not whole."""
        try:
            staged = _manifest(place)
        except _UNREADABLE:
            return None
        if os.path.basename(place).rpartition(".")[0] != staged.unit.name:
            return None
        files = ((os.path.join(place, f"{table}.parquet"), self.part(table, staged.unit)) for table in FILES)
        return staged if all(any(map(os.path.exists, pair)) for pair in files) else None

    def part(self, table: str, unit: Unit) -> str:
        """The file of a unit in a table."""
        return os.path.join(self.path, table, unit.file)

    def note(self, unit: Unit) -> None:
        """Write down what a unit is made of."""
        write_atomic(self._unit_file(unit), msgspec.json.encode(unit))

    def keep(self, unit: Unit, sessions: tuple[Done, ...]) -> None:
        """Write a unit anew with some of its sessions, as they are now, or remove it where there is none."""
        if len(sessions) == len(unit.sessions):
            self.note(replace(unit, sessions=sessions))
            return
        if not sessions:
            os.unlink(self._unit_file(unit))
        else:
            renewed = replace(unit, sessions=sessions, generation=unit.generation + 1)
            for table in FILES:  # in no unit until it is noted
                _copy(self.part(table, unit), self.part(table, renewed), {session.key for session in sessions})
            self.note(renewed)
        for table in FILES:
            os.unlink(self.part(table, unit))

    def _unit_file(self, unit: Unit) -> str:
        return self.private("units", f"{unit.name}.json")


def stage(staged: Staged, place: str) -> None:
    """Say that what is in a folder is a whole unit."""
    for path in _files(place):
        with open(path, "r+b") as file:
            os.fsync(file.fileno())
    write_atomic(os.path.join(place, _MANIFEST), msgspec.json.encode(staged))


def is_staged(place: str) -> bool:
    """Return True if a folder holds a whole unit."""
    return os.path.exists(os.path.join(place, _MANIFEST))


def _manifest(place: str) -> Staged:
    with open(os.path.join(place, _MANIFEST), "rb") as file:
        return msgspec.json.decode(file.read(), type=Staged)


def _places(unit: Unit) -> set[tuple[str, int]]:
    """Return the files of a unit, and where in each it begins."""
    return {(file.path, done.begin) for done in unit.sessions for file in done.files}


def _files(folder: str, end: str = "") -> list[str]:
    """The files in a folder whose names have an end, by name; none where there is no folder."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else ()
    return [os.path.join(folder, name) for name in names if name.endswith(end)]


def _copy(old: str, new: str, keys: Collection[str]) -> None:
    """Copy the rows of a Parquet file whose traces' keys begin as given, one row group in memory at a time."""
    import pyarrow
    from pyarrow import parquet

    with parquet.ParquetFile(old) as source, parquet.ParquetWriter(new, source.schema_arrow, compression="zstd") as to:
        for index in range(source.num_row_groups):
            rows = source.read_row_group(index)
            kept = [str(trace).rpartition("-")[0] in keys for trace in rows.column("trace").to_pylist()]
            to.write_table(rows.filter(pyarrow.array(kept, pyarrow.bool_())))
