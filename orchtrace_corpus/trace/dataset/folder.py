"""The folder of a dataset: its tables, and a private subfolder that records which logs the tables are made from.

    DIR/traces/part-UNIT-0.parquet      also in the folders events, edges, agents, ledger and answers
    DIR/copies/part-all.parquet         answers that are counted in another trace; written last, from all units
    DIR/.build/dataset.json             the salt of the hashes; only the owner may read it
    DIR/.build/units/UNIT.json          the record of a unit; written after its files, so a unit is complete or absent
    DIR/.build/staged/UNIT.ATTEMPT/     a unit that is not committed yet; its `staged.json` is written last
    DIR/.build/unfinished               exists while a build is running, and after a build that was interrupted

A process stages a unit: it writes its files to a folder of their own. The process that runs the build then commits the
unit: it moves the files into the tables. The files that a killed build leaves behind belong to no unit and are not
read. The next build commits units that are staged completely, and removes all other leftovers. To publish a dataset,
copy it without `.build`.
"""

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.files import locked, remove_temporary_files, write_atomic
from orchtrace_corpus.base.findings import quote, quote_path
from orchtrace_corpus.trace.dataset.columns import TABLES

ANSWERS = "answers"
"""The file of a unit with the answers whose ids are known."""

COPIES = "copies"
"""The table of the answers that are counted in another trace."""

FILES = (*TABLES, ANSWERS)
"""The names of the files of a unit: one for each table, and `answers`."""

_PRIVATE = ".build"
_MANIFEST = "staged.json"
_LOCK_WAIT_SECONDS = 2.0
_UNREADABLE = (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class FileState(Struct, gc=False):
    """A log file as it was when it was read.

    Attributes:
        path: The real path; see `plan.stored_path`.
        name: The name for messages.
        size: The size in bytes; -1 if the file did not exist.
        mtime_ns: The modification time in nanoseconds.
        digest: BLAKE2b of the bytes that were read; empty if they could not be read, so the next build tries again.
    """

    path: str
    name: str
    size: int
    mtime_ns: int
    digest: str = ""


class SourceRecord(Struct, gc=False):
    """The record of a source that was read: a session, or a part of a file of finished traces.

    Attributes:
        form: The format of the files.
        files: The files of the source.
        key: The prefix of the names of its traces in the tables.
        begin: The byte at which the part of the file begins.
        end: The byte at which the part ends; -1 for the end of the file.
        traces: The number of its traces.
        errors: Messages about traces that were left out.
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
        """The identity of the source, which is the same in each build."""
        return self.form, tuple(file.path for file in self.files), self.begin


class Unit(Struct, rename={"records": "sessions"}):  # `sessions` in the files of existing datasets
    """A group of sources whose rows are in one file of each table.

    Attributes:
        name: The name of the unit.
        records: The records of the sources.
        settings: A hash of the settings of the build: with another price table or program version, rows differ.
        generation: How often the unit was rewritten without some of its sources.
        prices: The date of the price table that its costs were computed with; empty without one.
        answers: The number of answers with ids.
    """

    name: str
    records: tuple[SourceRecord, ...]
    settings: str
    generation: int = 0
    prices: str = ""
    answers: int = 0

    @property
    def file(self) -> str:
        """The name of the file of the unit in each table."""
        return f"part-{self.name}-{self.generation}.parquet"


LeftOut = tuple[tuple[str, str], ...]
"""The name of each source that crashed the process that read it, and the cause."""


class StagedUnit(Struct):
    """A unit that is completely written and can be committed, with the sources that were left out of it."""

    unit: Unit
    left_out: LeftOut = ()


class _Identity(Struct):
    """The content of `dataset.json`; the salt is in hexadecimal digits."""

    salt: str


class Folder:
    """The folder of a dataset.

    Attributes:
        staging_folder: The folder for units that are not committed.
        copies: The file of the answers that are counted in another trace.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.staging_folder = self.private("staged")
        self.copies = os.path.join(path, COPIES, "part-all.parquet")
        self._identity_file = self.private("dataset.json")
        self._unfinished = self.private("unfinished")

    def private(self, *names: str) -> str:
        """Return the path of a file or folder in the private subfolder."""
        return os.path.join(self.path, _PRIVATE, *names)

    @contextmanager
    def writing(self, salt: str) -> Iterator[bytes]:
        """Lock the folder for a build, creating it if needed, and yield the salt of its hashes.

        A new dataset gets the given salt, or a random one if the salt is empty.

        Raises:
            CommandUseError: The dataset has another salt.
            DataFileError: The folder is not a dataset, cannot be written, or another process writes to it.
        """
        try:
            os.makedirs(self.path, exist_ok=True)
        except OSError as error:
            raise DataFileError(f"cannot make {quote_path(self.path)}: {error.strerror}") from error
        with locked(self.path, _LOCK_WAIT_SECONDS):
            try:
                dataset_salt = self._require_salt(salt)
                self._clean_up()
                write_atomic(self._unfinished, "")
                yield dataset_salt
            except BrokenPipeError:  # from writing the progress to a closed standard output, not from the dataset
                raise
            except OSError as error:
                message = f"cannot write the dataset {quote_path(self.path)}: {error.strerror}"
                raise DataFileError(message, "Run the command again: it goes on with what is whole.") from error

    def finish(self) -> None:
        """Record that the build is complete: every source is in a unit, or was left out."""
        # Errors are ignored, since an executor may still write a unit that another executor has finished.
        shutil.rmtree(self.staging_folder, ignore_errors=True)
        os.unlink(self._unfinished)

    @property
    def is_unfinished(self) -> bool:
        """True if a build is running, or was interrupted."""
        return os.path.exists(self._unfinished)

    def _require_salt(self, salt: str) -> bytes:
        """Return the salt of the dataset; create the dataset with the given salt if it is new."""
        requested = salt.encode("utf-8", "replace")
        hint = "Restore it from a copy, or build a new dataset."
        try:
            with open(self._identity_file, "rb") as file:
                stored = bytes.fromhex(msgspec.json.decode(file.read(), type=_Identity).salt)
        except FileNotFoundError:
            return self._create(requested or os.urandom(16))
        except (*_UNREADABLE, ValueError) as error:
            raise DataFileError(f"cannot read {quote_path(self._identity_file)}: {error}", hint) from error
        if not stored:
            raise DataFileError(f"{quote_path(self._identity_file)} has no salt", hint)
        if requested and requested != stored:
            hint = "Leave --salt out, or build a new dataset: hashes must be comparable."
            raise CommandUseError("the dataset has another salt", hint)
        return stored

    def _create(self, salt: bytes) -> bytes:
        """Make the folder a dataset, and return its salt. The file of the salt is private, and written atomically."""
        names = set(os.listdir(self.path)) - {_PRIVATE}
        if names.issuperset(TABLES):  # a published dataset
            raise DataFileError(
                f"{quote_path(self.path)} has the tables of a dataset without its .build: it can be described and "
                "queried, not built on",
                "Copy .build to it from where it was built. Or build what is new into another folder, with -o; put "
                "together, the files of both in each table are one dataset.",
            )
        if names:
            hint = "Name a new folder, or the folder of a dataset."
            raise DataFileError(f"{quote_path(self.path)} is not a dataset, and not empty", hint)
        temporary = f"{self._identity_file}.new"
        try:
            os.makedirs(self.private(), mode=0o700, exist_ok=True)
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(_Identity(salt.hex())))
            os.rename(temporary, self._identity_file)
        except OSError as error:
            raise DataFileError(f"cannot write in {quote_path(self.path)}: {error.strerror}") from error
        return salt

    def _clean_up(self) -> None:
        """Commit the complete units that a killed build has staged, and remove its other files."""
        unit_folders = [os.path.join(self.path, table) for table in FILES]
        for folder in (self.staging_folder, self.private("units"), *unit_folders, os.path.join(self.path, COPIES)):
            os.makedirs(folder, exist_ok=True)
        remove_temporary_files(self.private())
        remove_temporary_files(self.private("units"))
        committed_parts = {part for unit in self.units() for part in _file_parts(unit)}
        for folder in _files(self.staging_folder):
            staged = self._read_staged(folder)
            if staged is not None and committed_parts.isdisjoint(_file_parts(staged.unit)):
                self.commit(folder)
                committed_parts |= _file_parts(staged.unit)
        shutil.rmtree(self.staging_folder, ignore_errors=True)
        os.makedirs(self.staging_folder, exist_ok=True)
        unit_files = {unit.file for unit in self.units()}
        leftovers = _files(self.private(), ".log")
        for folder in unit_folders:
            leftovers += _files(folder, ".parquet")
        for path in leftovers:
            name = os.path.basename(path)
            if name.startswith(("worker-", "part-")) and name not in unit_files:
                os.unlink(path)

    def units(self) -> list[Unit]:
        """Return the units in the order of their names; none if the folder has no private subfolder.

        Raises:
            DataFileError: A unit cannot be read.
        """
        units = []
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
            units.append(unit)
        return units

    def parts(self) -> dict[str, list[str]]:
        """Return the files of each table.

        Raises:
            DataFileError: The folder is not a dataset, or is empty.
        """
        parts: dict[str, list[str]] = {}
        if os.path.isdir(self.private()):
            units = self.units()
            for table in TABLES:
                parts[table] = [self.part(table, unit) for unit in units]
        else:  # a published dataset
            for table in TABLES:
                parts[table] = _files(os.path.join(self.path, table), ".parquet")
        for table, files in parts.items():
            if not files:
                hint = "corpus trace dataset build LOGS... -o DIR makes one."
                raise DataFileError(f"{quote_path(self.path)} is not a dataset, or is empty: no {table}", hint)
        return {**parts, COPIES: [self.copies]}

    def commit(self, folder: str) -> StagedUnit:
        """Move a staged unit into the dataset, and return it.

        Its files are moved first, and its record is written last, so that this can be repeated after a crash.
        """
        staged = _read_manifest(folder)
        if staged.unit.records:
            for table in FILES:
                with suppress(FileNotFoundError):  # moved by an earlier attempt
                    os.replace(os.path.join(folder, f"{table}.parquet"), self.part(table, staged.unit))
            self.write_unit(staged.unit)
        shutil.rmtree(folder, ignore_errors=True)
        return staged

    def _read_staged(self, folder: str) -> StagedUnit | None:
        """Return the unit that is staged in a folder; None if it is incomplete."""
        try:
            staged = _read_manifest(folder)
        except _UNREADABLE:
            return None
        unit_name, _, _ = os.path.basename(folder).rpartition(".")
        if unit_name != staged.unit.name:
            return None
        for table in FILES:
            is_staged_file = os.path.exists(os.path.join(folder, f"{table}.parquet"))
            is_committed_file = os.path.exists(self.part(table, staged.unit))  # moved before the build was killed
            if not is_staged_file and not is_committed_file:
                return None
        return staged

    def part(self, table: str, unit: Unit) -> str:
        """Return the path of a unit's file in a table."""
        return os.path.join(self.path, table, unit.file)

    def write_unit(self, unit: Unit) -> None:
        """Write the record of a unit."""
        write_atomic(self._unit_file(unit), msgspec.json.encode(unit))

    def keep(self, unit: Unit, records: tuple[SourceRecord, ...]) -> None:
        """Reduce a unit to some of its sources, and renew their records; remove the unit if there are none."""
        if len(records) == len(unit.records):
            self.write_unit(replace(unit, records=records))
            return
        if not records:
            os.unlink(self._unit_file(unit))
        else:
            reduced = replace(unit, records=records, generation=unit.generation + 1)
            keys = {record.key for record in records}
            for table in FILES:  # the new files belong to no unit until its record is written
                _copy_rows(self.part(table, unit), self.part(table, reduced), keys)
            self.write_unit(reduced)
        for table in FILES:
            os.unlink(self.part(table, unit))

    def _unit_file(self, unit: Unit) -> str:
        return self.private("units", f"{unit.name}.json")


def stage(staged: StagedUnit, folder: str) -> None:
    """Record that a folder holds a complete unit, after all its files are on the disk."""
    for path in _files(folder):
        with open(path, "r+b") as file:
            os.fsync(file.fileno())
    write_atomic(os.path.join(folder, _MANIFEST), msgspec.json.encode(staged))


def is_staged(folder: str) -> bool:
    """Return True if a folder holds a complete unit."""
    return os.path.exists(os.path.join(folder, _MANIFEST))


def _read_manifest(folder: str) -> StagedUnit:
    with open(os.path.join(folder, _MANIFEST), "rb") as file:
        return msgspec.json.decode(file.read(), type=StagedUnit)


def _file_parts(unit: Unit) -> set[tuple[str, int]]:
    """Return the parts of files from which a unit was read: the path of each, and the byte at which the part begins."""
    return {(file.path, record.begin) for record in unit.records for file in record.files}


def _files(folder: str, suffix: str = "") -> list[str]:
    """Return the paths of the files with a suffix in a folder, sorted; none if the folder does not exist."""
    if not os.path.isdir(folder):
        return []
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(suffix)]


def _copy_rows(old: str, new: str, keys: Collection[str]) -> None:
    """Copy the rows of the sources with some keys to a new Parquet file; one row group is in memory at a time."""
    import pyarrow
    from pyarrow import parquet

    with (
        parquet.ParquetFile(old) as source,
        parquet.ParquetWriter(new, source.schema_arrow, compression="zstd") as target,
    ):
        for index in range(source.num_row_groups):
            rows = source.read_row_group(index)
            is_kept = []
            for trace in rows.column("trace").to_pylist():  # the key of the source, and the number of the trace in it
                key, _, _ = str(trace).rpartition("-")
                is_kept.append(key in keys)
            target.write_table(rows.filter(pyarrow.array(is_kept, pyarrow.bool_())))
