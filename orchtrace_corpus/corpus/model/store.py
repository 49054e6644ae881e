"""A corpus on disk: its folder, its data files, and their contents, each file read and decoded once."""

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from types import MappingProxyType

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar
from orchtrace_corpus.base.errors import DataFileError, InvalidCorpusError
from orchtrace_corpus.base.files import TextFile, installed_path
from orchtrace_corpus.base.findings import Finding, has_errors, printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.corpus.model.decode import decode_exclusions, decode_papers
from orchtrace_corpus.corpus.model.records import Entries, Loaded, Places, Pool, PublishedPool, ReadingName
from orchtrace_corpus.corpus.model.taxonomy import PAPER_NOUN, Noun, Taxonomy, decode_taxonomy

if TYPE_CHECKING:
    from orchtrace_corpus.base.yamlfile.writer import FormCheck, Style
    from orchtrace_corpus.corpus.model.candidates import Candidate
    from orchtrace_corpus.corpus.model.claim_file import ClaimFile
    from orchtrace_corpus.corpus.model.codebook import Coding, ProtocolFile
    from orchtrace_corpus.corpus.model.corrections import PublishedBibliography
    from orchtrace_corpus.corpus.model.disputes import Dispute
    from orchtrace_corpus.corpus.model.metadata import ArxivFile, Metadata
    from orchtrace_corpus.corpus.model.scale import Observation
    from orchtrace_corpus.corpus.model.searches import Run

PAPERS = "data/papers.yaml"
EXCLUSIONS = "data/exclusions.yaml"
CANDIDATES = "data/candidates.yaml"
TAXONOMY = "data/taxonomy.yaml"
ARXIV = "data/arxiv.json"
CLAIMS = "data/claims.yaml"
DISPUTES = "data/disputes.yaml"
SCALE = "data/scale.yaml"
PUBLISHED = "data/published.yaml"
PUBLISHED_TABLE = "data/published.csv"
CORRECTIONS = "data/corrections.csv"
CODEBOOK = "data/codebook.yaml"
PROTOCOL = "data/protocol.yaml"
SEARCHES = "data/searches.yaml"

MERGE_DRIVER = 'git config merge.corpus.driver "corpus merge-file %O %A %B"'
"""The command that makes git merge data files by records, if .gitattributes names the driver."""

Content = TypeVar("Content")
Call: TypeAlias = tuple[str, ...]
"""A function, as `module:function` below `orchtrace_corpus.corpus`, then its arguments. An argument is the name of an
attribute of `CorpusFiles`, or the path of a data file. A path is passed as `YamlFile` or `TextFile`, or as None if the
file is missing."""


class DataFile(NamedTuple):
    """A data file that a corpus has, or can have.

    Functions are given by name and imported at their first call: start-up is most of the time of a command.

    Attributes:
        name: The name of the file; docs/schema/NAME.schema.json is its JSON Schema.
        path: The path below the corpus's folder.
        decode: Returns the content of the file. It has `findings`, and `total` (the number of entries) if a line of
            `corpus check` counts them. If the file is missing, every argument is None. Empty for the files that
            `CorpusFiles.loaded` decodes together.
        required: Whether every corpus must have the file.
        schema: The key of its JSON Schema in `render/schemas.json`, or its table of fields as `module:name`.
        style: Returns the style in which commands write its records; empty if no command writes them.
        checks: Returns all findings of the file, those of decoding included; empty if decoding finds all.
        key_fields: The fields that distinguish its records; empty if only the whole record does.
        part: The line of `corpus check` that counts its findings; the file's name if empty.
        is_list: Whether the file holds a list of records, not one mapping.
        is_formatted: Whether `corpus check --fix` rewrites the file in its style.
    """

    name: str
    path: str
    decode: Call = ()
    required: bool = False
    schema: str = ""
    style: Call = ()
    checks: Call = ()
    key_fields: tuple[str, ...] = ()
    part: str = ""
    is_list: bool = True
    is_formatted: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the file and of others that are decoded with it."""
        return (self.path, *(value for value in self.decode if "/" in value))


DATA_FILES = (
    DataFile("taxonomy", TAXONOMY, required=True, part="data", is_list=False),
    DataFile(
        "papers",
        PAPERS,
        required=True,
        schema="papers",
        style=("model.record_fields:paper_style", "taxonomy"),
        checks=("rules:check", "loaded"),
        key_fields=("key",),
        part="data",
        is_formatted=True,
    ),
    DataFile(
        "exclusions",
        EXCLUSIONS,
        required=True,
        schema="exclusions",
        style=("model.record_fields:exclusion_style", "taxonomy"),
        key_fields=("id",),
        part="data",
        is_formatted=True,
    ),
    DataFile(
        "candidates",
        CANDIDATES,
        ("model.candidates:decode_candidates", CANDIDATES, "taxonomy"),
        schema="candidates",
        style=("model.record_fields:candidate_style", "taxonomy"),
        checks=("rules.candidates:check", "candidates", "loaded"),
        key_fields=("key",),
        part="data",
        is_formatted=True,
    ),
    DataFile(
        "published",
        PUBLISHED,
        ("model.decode:decode_published", PUBLISHED),
        schema="published pool",
        checks=("model.decode:missing_records", PUBLISHED, "published", "loaded"),
        part="data",
        is_list=False,
    ),
    DataFile(
        "claims",
        CLAIMS,
        ("model.claim_file:decode_claims", CLAIMS, "read_sheet", "scale"),
        schema="claims",
        checks=("analysis.claims:check", "claims", "pool"),
        key_fields=("id",),
    ),
    DataFile(
        "disputes",
        DISPUTES,
        ("model.disputes:decode_disputes", DISPUTES, "taxonomy"),
        schema="disputes",
        style=("model.record_fields:dispute_style",),
        checks=("model.disputes:check", "disputes", "pool", "coding_rules"),
        key_fields=("record", "tag"),
    ),
    DataFile(
        "scale",
        SCALE,
        ("model.scale:decode_scale", SCALE, "known_keys", "noun"),
        schema="scale",
        key_fields=("system", "quantity"),
        part="data",
    ),
    DataFile(
        "bibliography",
        PUBLISHED_TABLE,
        ("model.corrections:decode", PUBLISHED_TABLE, CORRECTIONS),
        checks=("rules.corrections:check", "bibliography", "loaded"),
        part="published",
    ),
    DataFile(
        "codebook",
        CODEBOOK,
        ("model.codebook:decode_codebook", CODEBOOK, "pool", "are_records_sound"),
        schema="codebook",
        key_fields=("tag",),
    ),
    DataFile(
        "protocol",
        PROTOCOL,
        ("model.codebook:decode_protocol", PROTOCOL, "taxonomy"),
        schema="protocol",
        is_list=False,
    ),
    DataFile(
        "searches",
        SEARCHES,
        ("model.searches:decode_searches", SEARCHES, "noun"),
        schema="searches",
        style=("model.searches:search_style",),
        checks=("analysis.flow:check", "searches", "pool", "candidates"),
        is_formatted=True,
    ),
    DataFile("arxiv", ARXIV, ("model.metadata:decode_arxiv", ARXIV), part="arxiv", is_list=False),
)
"""Every data file. To add one, add a row here, and the module that decodes it."""


def data_file(name: str) -> DataFile:
    """Return the row of `DATA_FILES` with a name."""
    (row,) = (row for row in DATA_FILES if row.name == name)
    return row


class Root(NamedTuple):
    """The folder of a corpus; `bundled` is true for the copy that came with the installation."""

    path: str
    bundled: bool = False


def find_root() -> Root:
    """Return the nearest folder, from the working folder upwards, that holds a corpus.

    If no folder holds one, return the corpus that came with the installation: inside an installed wheel, or the
    source tree of an editable installation. Raise `DataFileError` if there is none, either.
    """
    folder = os.getcwd()
    while not os.path.isfile(os.path.join(folder, PAPERS)):
        parent = os.path.dirname(folder)
        if parent == folder:
            installed = installed_path(PAPERS)
            if not installed:
                raise DataFileError(f"no {PAPERS} here or in any folder above", "Name the corpus with --root DIR.")
            return Root(installed.removesuffix(f"/{PAPERS}"), bundled=True)
        folder = parent
    return Root(folder)


class Decoded(Generic[Content]):
    """An attribute of `CorpusFiles`: the decoded content of the row of `DATA_FILES` that has the attribute's name."""

    def __set_name__(self, owner: "type[CorpusFiles]", name: str) -> None:
        self._name = name

    def __get__(self, files: "CorpusFiles", owner: "type[CorpusFiles]") -> Content:
        content: Content = files.content(self._name)
        return content


class CorpusFiles:
    """The data files of one corpus, each read and decoded once, on first use.

    An attribute with the name of a row in `DATA_FILES` holds the decoded content of that file.

    Attributes:
        root: The corpus's folder, which holds `data/`.
        overrides: File contents by path, used instead of files in the folder: an edit that is not written yet, or the
            files of a git revision. None means that the file is missing.
    """

    published: "Decoded[PublishedPool | None]" = Decoded()
    candidates: "Decoded[Entries[Candidate]]" = Decoded()
    scale: "Decoded[Entries[Observation]]" = Decoded()
    claims: "Decoded[ClaimFile]" = Decoded()
    disputes: "Decoded[Entries[Dispute]]" = Decoded()
    bibliography: "Decoded[PublishedBibliography]" = Decoded()
    codebook: "Decoded[Entries[Coding]]" = Decoded()
    protocol: "Decoded[ProtocolFile]" = Decoded()
    searches: "Decoded[Entries[Run]]" = Decoded()

    def __init__(self, root: str, overrides: Mapping[str, bytes | None] = MappingProxyType({})) -> None:
        self.root = root
        self.overrides = overrides
        self._present: dict[str, bool] = {}
        self._files: dict[str, YamlFile] = {}
        self._text_files: dict[str, TextFile | None] = {}
        self._forms: dict[str, FormCheck] = {}
        self._contents: dict[str, Any] = {}

    def has(self, path: str) -> bool:
        """Return True if the corpus has the file with a path."""
        if path not in self._present:
            if path in self.overrides:
                self._present[path] = self.overrides[path] is not None
            else:
                self._present[path] = os.path.lexists(self._full_path(path))
        return self._present[path]

    def has_any(self, row: DataFile) -> bool:
        """Return True if the corpus has the file of a row, or another file that is decoded with it."""
        return any(self.has(path) for path in row.paths)

    def paths(self) -> list[str]:
        """Return the paths of all data files that the corpus has."""
        paths = dict.fromkeys(path for row in DATA_FILES for path in row.paths)
        return [path for path in paths if self.has(path)]

    def data(self, path: str) -> bytes | None:
        """Return the bytes of a file, None if it is missing; raise `DataFileError` if it cannot be read."""
        if path in self.overrides:
            return self.overrides[path]
        if not self.has(path):
            return None
        return reader.read_bytes(self._full_path(path), self.display_path(path))

    def file(self, path: str) -> YamlFile:
        """Return a YAML file (a missing optional one as an empty list); raise `DataFileError` if it cannot be read."""
        file = self._files.get(path)
        if file is None:
            data = self.data(path)
            if data is None and any(row.path == path for row in DATA_FILES if row.required):
                hint = "Without exclusions it holds: []" if path == EXCLUSIONS else ""
                raise DataFileError(f"cannot read {self.display_path(path)}: No such file or directory", hint)
            file = YamlFile(self.display_path(path), b"[]\n" if data is None else data)
            if any(row.path == path and row.style for row in DATA_FILES):  # `corpus merge-file` needs a style
                file.merge_command = f'{MERGE_DRIVER} && git checkout --merge "{file.path}"'
            self._files[path] = file
        return file

    def text_file(self, path: str) -> TextFile | None:
        """Return a file that is not YAML, None if it is missing; raise `DataFileError` if it cannot be read."""
        if path not in self._text_files:
            data = self.data(path)
            display_path = self.display_path(path)
            try:
                self._text_files[path] = None if data is None else TextFile(display_path, data.decode("utf-8"))
            except UnicodeDecodeError as error:
                raise DataFileError(f"cannot read {printable(display_path, limit=300)}: not UTF-8") from error
        return self._text_files[path]

    def text(self, path: str) -> str | None:
        """Return the text of a file, None if it is missing; raise `DataFileError` if it cannot be read."""
        if path.endswith(".yaml"):
            return self.file(path).text if self.has(path) else None
        file = self.text_file(path)
        return None if file is None else file.text

    def display_path(self, path: str) -> str:
        """Return a file's path for messages: relative to the working folder if the file is below it."""
        full_path = self._full_path(path)
        relative_path = os.path.relpath(full_path)
        return full_path if relative_path.startswith(os.pardir + os.sep) else relative_path

    def _full_path(self, path: str) -> str:
        return os.path.join(self.root, *path.split("/"))

    @cached_property
    def _taxonomy(self) -> Taxonomy | None:
        with _pause_garbage_collection():
            return decode_taxonomy(self.file(TAXONOMY))

    @property
    def taxonomy(self) -> Taxonomy:
        """The vocabulary; raises `DataFileError`, or an `InvalidCorpusError` that lists the errors of the file."""
        findings = self.file(TAXONOMY).findings
        if self._taxonomy is None or findings:
            raise InvalidCorpusError("\n".join(("the taxonomy has errors:", *map(str, findings))))
        return self._taxonomy

    @cached_property
    def loaded(self) -> Loaded:
        """The papers and exclusions, with the findings of decoding them and the taxonomy; raises `DataFileError`."""
        taxonomy = self._taxonomy
        taxonomy_file = self.file(TAXONOMY)
        papers_file = self.file(PAPERS)
        exclusions_file = self.file(EXCLUSIONS)
        if taxonomy is None or taxonomy_file.findings:
            no_places = Places(taxonomy_file, [])
            return Loaded(None, no_places, no_places, tuple(taxonomy_file.findings))
        with _pause_garbage_collection():
            papers, paper_places = decode_papers(papers_file, taxonomy)
            exclusions, exclusion_places = decode_exclusions(exclusions_file, taxonomy)
            pool = with_published(Pool(taxonomy, papers, exclusions), self.published)
        findings = [*papers_file.findings, *exclusions_file.findings]
        if self.has(PUBLISHED):
            findings += self.file(PUBLISHED).findings
        return Loaded(pool, paper_places, exclusion_places, tuple(findings))

    @property
    def pool(self) -> Pool:
        """The records, even if they have findings; raises the errors of `taxonomy` and `loaded`."""
        return self.loaded.pool or Pool(self.taxonomy, (), ())

    @property
    def noun(self) -> Noun:
        """The survey's name for its records."""
        return self._taxonomy.noun if self._taxonomy else PAPER_NOUN

    @property
    def known_keys(self) -> frozenset[str] | None:
        """The keys of the papers; None if a key, or the syntax of the file, has an error: some are unknown then."""
        return self.loaded.known_keys

    @cached_property
    def are_records_sound(self) -> bool:
        """True if papers, exclusions and candidates have no errors, so that other files can be compared with them."""
        return not has_errors(self.loaded.findings) and not has_errors(self.candidates.findings)

    def content(self, name: str) -> Any:
        """Return the decoded content of a data file (empty if it is missing); raise `DataFileError`."""
        if name not in self._contents:
            row = data_file(name)
            if self.has_any(row):
                with _pause_garbage_collection():
                    self._contents[name] = self.call(row.decode)
            else:
                function_name, *arguments = row.decode
                self._contents[name] = import_named(function_name)(*(None for _ in arguments))
        return self._contents[name]

    def call(self, function_with_arguments: Call) -> Any:
        """Call a function that a row of `DATA_FILES` names, and return its result."""
        function_name, *arguments = function_with_arguments
        values: list[Any] = []
        for argument in arguments:
            if "/" not in argument:
                values.append(getattr(self, argument))
            elif not argument.endswith(".yaml"):
                values.append(self.text_file(argument))
            else:
                values.append(self.file(argument) if self.has(argument) else None)
        return import_named(function_name)(*values)

    @property
    def coding_rules(self) -> dict[str, int] | None:
        """The number of coding rules by tag; None if the codebook is missing or has findings."""
        if self.codebook.findings or not self.codebook.items:
            return None
        return {coding.tag: len(coding.rules) for coding in self.codebook.items if coding.rules}

    @property
    def arxiv(self) -> "Mapping[str, Metadata]":
        """The metadata that arXiv last reported, by arXiv id; raises `DataFileError` if the file cannot be decoded."""
        file: ArxivFile = self.content("arxiv")
        return file.papers

    def style(self, path: str) -> "Style":
        """Return the style in which the records of a file are written."""
        (row,) = [row for row in DATA_FILES if row.path == path]
        style: Style = self.call(row.style)
        return style

    def check_form(self) -> None:
        """Prepare to compare each file that `corpus check --fix` writes with its canonical form.

        Call this first: records are compared while they are read. It raises `DataFileError`.
        """
        if self._taxonomy is None or self.file(TAXONOMY).findings:
            return
        from orchtrace_corpus.base.yamlfile.writer import FormCheck

        for row in DATA_FILES:
            if row.is_formatted and (row.required or self.has(row.path)):
                file = self.file(row.path)
                form = FormCheck(file, self.style(row.path))
                file.on_record = form.add
                self._forms[row.path] = form

    def is_canonical(self, path: str) -> bool:
        """Return True if `check_form` was called before a file was read, and the file is in canonical form."""
        return path in self._forms and self._forms[path].is_canonical

    def findings_of(self, row: DataFile) -> tuple[Finding, ...]:
        """Return the findings of a file, none if it is missing; raise `DataFileError`. The taxonomy must be valid.

        If the records have errors, other files are decoded but not compared with them.
        """
        if not self.has_any(row):
            return ()
        findings: tuple[Finding, ...] = ()
        if row.checks and (row.part == "data" or self.are_records_sound):
            findings = tuple(self.call(row.checks))
        elif row.decode:
            findings = tuple(self.content(row.name).findings)
        if row.path in (PAPERS, EXCLUSIONS, CANDIDATES):  # the checks of these files look for lookalikes themselves
            return findings
        if not row.path.endswith(".yaml") or not self.has(row.path):
            return findings
        return findings + tuple(import_named("rules.texts:find_lookalikes")(self.file(row.path)))

    def findings(self, part: str = "") -> Iterator[Finding]:
        """Yield the findings of all files, or of one line (`part`) of `corpus check`; raise `DataFileError`."""
        for row in DATA_FILES:
            if self.loaded.pool is None and row.path != PAPERS:
                continue  # the taxonomy has errors: the checks of the papers report them, and nothing can be decoded
            if not part or part == (row.part or row.name):
                yield from self.findings_of(row)

    def open_tags(self, reading: ReadingName = ReadingName.PUBLISHED) -> dict[tuple[str, str], bool]:
        """Return the tags in open dispute, as `(record, tag)`, and for each True if readers agree on a value.

        With the reading `SOURCES`, such a value counts, so only the other tags are open.
        """
        if not self.has(DISPUTES):
            return {}
        from orchtrace_corpus.corpus.model.disputes import open_tags

        file = self.file(DISPUTES)
        with _pause_garbage_collection():
            tags = open_tags(YamlFile(file.path, file.text.encode()))  # takes a third of the time of `self.disputes`
        if reading is ReadingName.PUBLISHED:
            return tags
        return {tag: is_agreed for tag, is_agreed in tags.items() if not is_agreed}

    def with_contested(self, pool: Pool, reading: ReadingName = ReadingName.PUBLISHED) -> Pool:
        """Return a pool whose papers have their tags in open dispute as `contested`, in the order of the file."""
        tags_by_key: dict[str, tuple[str, ...]] = {}
        for key, tag in self.open_tags(reading):
            tags_by_key[key] = (*tags_by_key.get(key, ()), tag)
        papers = tuple(paper._replace(contested=tags_by_key.get(paper.key, ())) for paper in pool.papers)
        return pool._replace(papers=papers)

    def read_sheet(self, path: str) -> str | None:
        """Return the text of a coding sheet (CSV); None if it is missing or cannot be read."""
        try:
            data = self.data(path)
            return None if data is None else data.decode("utf-8").removeprefix("\ufeff")
        except (DataFileError, UnicodeDecodeError):
            return None


def import_named(name: str) -> Any:
    """Import an object that is named as `module:name` below `orchtrace_corpus.corpus`."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(f"orchtrace_corpus.corpus.{module}"), attribute)


def with_published(pool: Pool, published: PublishedPool | None) -> Pool:
    """Return a pool with `published` set on each record; unchanged if there is no published pool."""
    if published is None:
        return pool
    keys = frozenset(published.papers)
    ids = frozenset(published.exclusions)
    return pool._replace(
        papers=tuple(paper._replace(published=paper.key in keys) for paper in pool.papers),
        exclusions=tuple(exclusion._replace(published=exclusion.id in ids) for exclusion in pool.exclusions),
        published=published,
    )


@contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """Disable garbage collection, which would walk a growing heap of records and double the time of decoding."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
