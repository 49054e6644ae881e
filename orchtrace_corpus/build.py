"""Every generated file of a corpus: what it should say, and whether it does.

`generated` is the one list that `corpus build` writes and `corpus check` compares, so the two cannot
disagree. Nothing in these files depends on the clock, the locale or the machine.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from orchtrace_corpus.errors import DataFileError
from orchtrace_corpus.files import diff, locked, sweep, write_atomic
from orchtrace_corpus.findings import Finding
from orchtrace_corpus.pool import fixes
from orchtrace_corpus.pool.canonical import exclusion_style, paper_style
from orchtrace_corpus.pool.model import Loaded, Pool
from orchtrace_corpus.pool.statistics import summarise
from orchtrace_corpus.pool.store import EXCLUSIONS, PAPERS, read_file
from orchtrace_corpus.pool.taxonomy import Taxonomy
from orchtrace_corpus.render import readme, regions, schema, statistics
from orchtrace_corpus.yamlfile.reader import YamlFile
from orchtrace_corpus.yamlfile.splice import replace_values
from orchtrace_corpus.yamlfile.writer import MisplacedCommentError, Style, canonical

README = "README.md"
STATISTICS = "docs/STATS.md"
PAPERS_SCHEMA = "docs/schema/papers.schema.json"
EXCLUSIONS_SCHEMA = "docs/schema/exclusions.schema.json"

_GENERATED = "<!-- Generated from data/ by `corpus build`; do not edit. -->\n\n"


class Document(NamedTuple):
    """A file with the text it has and the text it should have.

    Attributes:
        name: The path below the corpus's folder.
        present: The text on disk; None where there is no such file.
        wanted: The text that it should have.
    """

    name: str
    present: str | None
    wanted: str

    @property
    def is_stale(self) -> bool:
        """Whether the file has to be written."""
        return self.present != self.wanted

    @property
    def diff(self) -> str:
        """What writing it would change, as a unified diff."""
        return diff(self.name, self.present or "", self.wanted)


def data_documents(root: str, taxonomy: Taxonomy, loaded: Loaded | None = None) -> list[Document]:
    """The data files and their canonical form; those of `loaded`, if it kept its nodes, are not read again.

    Raises:
        DataFileError: A file cannot be read or has errors of syntax, or a comment stands where the
            canonical form has no line for it.
    """
    papers = loaded.paper_places.file if loaded else read_file(root, PAPERS)
    exclusions = loaded.exclusion_places.file if loaded else read_file(root, EXCLUSIONS)
    return [
        _canonical(PAPERS, papers, paper_style(taxonomy)),
        _canonical(EXCLUSIONS, exclusions, exclusion_style(taxonomy)),
    ]


def mended_documents(root: str, loaded: Loaded, findings: Sequence[Finding]) -> list[Document]:
    """The data files with those findings mended that have a mend; nothing else in them changes.

    Args:
        root: The corpus's folder.
        loaded: Its data, with the records of its files kept.
        findings: What to mend; findings without a mend are passed over.

    Raises:
        DataFileError: A value cannot be changed in place.
    """
    documents = []
    for name, places in ((PAPERS, loaded.paper_places), (EXCLUSIONS, loaded.exclusion_places)):
        changes = fixes.changes(places.file, findings)
        if changes:
            documents.append(Document(name, _read(root, name), replace_values(places.file, changes)))
    return documents


def readme_document(root: str, pool: Pool) -> Document | None:
    """README.md with its regions made anew; None where the corpus has no README.

    Raises:
        DataFileError: A region is unknown or not closed.
    """
    present = _read(root, README)
    return None if present is None else Document(README, present, readme.readme(present, README, pool))


def statistics_document(root: str, pool: Pool) -> Document:
    """docs/STATS.md."""
    text = statistics.summary_markdown(summarise(pool, include_empty=True), pool.taxonomy.title)
    title, _, rest = text.partition("\n\n")
    return Document(STATISTICS, _read(root, STATISTICS), f"{title}\n\n{_GENERATED}{rest}")


def schema_documents(root: str, taxonomy: Taxonomy) -> list[Document]:
    """The JSON Schemas of the data files."""
    wanted = ((PAPERS_SCHEMA, schema.papers_schema(taxonomy)), (EXCLUSIONS_SCHEMA, schema.exclusions_schema(taxonomy)))
    return [Document(name, _read(root, name), text) for name, text in wanted]


def generated(root: str, pool: Pool) -> list[Document]:
    """Every generated file of a corpus."""
    documents = [statistics_document(root, pool), *schema_documents(root, pool.taxonomy)]
    front = readme_document(root, pool)
    if front is not None:
        documents.insert(0, front)
    return documents


def write(root: str, documents: Sequence[Document]) -> list[str]:
    """Write those documents that are stale, and return their names.

    Raises:
        DataFileError: A file cannot be written, or is no longer what it was when the documents were
            made; it and those after it are as they were.
    """
    stale = [document for document in documents if document.is_stale]
    if stale:
        with locked(root):
            for document in stale:
                if _read(root, document.name) != document.present:
                    raise DataFileError(
                        f"{document.name} was changed by somebody else meanwhile", "Run the command again."
                    )
                path = os.path.join(root, document.name)
                _make_folder(os.path.dirname(path))
                sweep(os.path.dirname(os.path.realpath(path)))
                write_atomic(path, document.wanted)
    return [document.name for document in stale]


def edited_regions(document: Document) -> list[str]:
    """The names of a README's regions whose text differs from what the data gives."""
    if document.present is None:
        return []
    old = regions.find_regions(document.present, document.name)
    new = regions.find_regions(document.wanted, document.name)
    return [
        before.name
        for before, after in zip(old, new, strict=True)
        if document.present[before.start : before.end] != document.wanted[after.start : after.end]
    ]


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise DataFileError(f"cannot make the folder {os.path.relpath(folder)}: {error.strerror}") from error


def _canonical(name: str, file: YamlFile, style: Style) -> Document:
    try:
        return Document(name, file.text, canonical(file, style))
    except MisplacedCommentError as error:
        raise DataFileError(
            f"{file.location(error.at)}: this comment has no place in the canonical form",
            "Move it above its record or its field, or to the end of a line.",
        ) from error
    except ValueError as error:
        raise DataFileError(f"{file.path} cannot be formatted: it has errors", "See corpus validate.") from error


def _read(root: str, name: str) -> str | None:
    try:
        with open(os.path.join(root, name), encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise DataFileError(f"cannot read {name}: {reason}") from error
