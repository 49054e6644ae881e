"""Finds a corpus on disk and reads it. Nothing else below `build` reads its files."""

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.files import installed_path, read_text
from orchtrace_corpus.base.findings import Finding, is_malformed, printable
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.corpus.model.decode import decode_exclusions, decode_papers, decode_published, missing_records
from orchtrace_corpus.corpus.model.records import Loaded, Places, Pool, PublishedPool, ReadingName
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy, decode_taxonomy

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.model.candidates import CandidateFile
    from orchtrace_corpus.corpus.model.claim_file import ClaimFile
    from orchtrace_corpus.corpus.model.codebook import Codebook, ProtocolFile
    from orchtrace_corpus.corpus.model.corrections import PublishedBibliography
    from orchtrace_corpus.corpus.model.disputes import DisputeFile
    from orchtrace_corpus.corpus.model.metadata import Metadata
    from orchtrace_corpus.corpus.model.scale import ScaleFile
    from orchtrace_corpus.corpus.model.searches import SearchFile

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

Result = TypeVar("Result")
_LAST: dict[str, tuple[tuple[str, tuple[Finding, ...], object], Any]] = {}


class Root(NamedTuple):
    """The folder of a corpus. `bundled` says that it is the copy that came with the installation."""

    path: str
    bundled: bool = False


def find_root(start: str = "") -> Root:
    """The nearest folder, from `start` (else the working folder) upwards, that holds a corpus.

    Where there is none, the corpus that came with the installation: inside an installed wheel, or
    the source tree of an editable installation.

    Raises:
        DataFileError: There is no corpus anywhere, not even a bundled one.
    """
    folder = os.path.abspath(start or os.getcwd())
    while True:
        if os.path.isfile(os.path.join(folder, PAPERS)):
            return Root(folder)
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return bundled_root()


def bundled_root() -> Root:
    """The corpus that came with the installation.

    Raises:
        DataFileError: None did.
    """
    if installed := installed_path(PAPERS):
        return Root(installed.removesuffix(f"/{PAPERS}"), bundled=True)
    raise DataFileError(f"no {PAPERS} here or in any folder above", "Name the corpus with --root DIR.")


def load(root: str, *, keep: bool = False, instead: Mapping[str, bytes] = MappingProxyType({})) -> Loaded:
    """Read and decode the corpus in a folder, with all problems of syntax, fields and vocabulary.

    Args:
        root: The folder that holds `data/`.
        keep: Whether the files keep their records as read, for whoever wants to see their form, too.
        instead: What to read instead of some files, by their names below the folder: an edit that
            is not written yet, or an earlier revision. No bytes in the place of `PUBLISHED` stand for no such file.

    Raises:
        DataFileError: A data file is absent or cannot be read.
    """
    with _collector_paused():
        taxonomy_file = read_file(root, TAXONOMY, instead.get(TAXONOMY))
        taxonomy = decode_taxonomy(taxonomy_file)
        papers_file = read_file(root, PAPERS, instead.get(PAPERS))
        exclusions_file = read_file(root, EXCLUSIONS, instead.get(EXCLUSIONS))
        papers_file.keep = exclusions_file.keep = keep
        if taxonomy is None or taxonomy_file.findings:
            nowhere = Places(taxonomy_file, [])
            return Loaded(None, nowhere, nowhere, tuple(taxonomy_file.findings))
        papers, paper_places = decode_papers(papers_file, taxonomy)
        exclusions, exclusion_places = decode_exclusions(exclusions_file, taxonomy)
        pool = Pool(taxonomy, papers, exclusions)
        findings = (*papers_file.findings, *exclusions_file.findings)
        missing: tuple[Finding, ...] = ()
        if instead[PUBLISHED] if PUBLISHED in instead else os.path.lexists(os.path.join(root, *PUBLISHED.split("/"))):
            published_file = read_file(root, PUBLISHED, instead.get(PUBLISHED))
            keys = None if is_malformed(papers_file.findings) else {paper.key for paper in papers}
            ids = None if is_malformed(exclusions_file.findings) else {exclusion.id for exclusion in exclusions}
            published = decode_published(published_file)
            pool, findings = with_published(pool, published), (*findings, *published_file.findings)
            missing = missing_records(published_file, published, keys, ids) if published else ()
    return Loaded(pool, paper_places, exclusion_places, findings, missing)


def with_published(pool: Pool, published: PublishedPool | None) -> Pool:
    """The corpus with each record marked by whether it is one of the published pool; as it is if that is not known."""
    if published is None:
        return pool
    keys, ids = frozenset(published.papers), frozenset(published.exclusions)
    return pool._replace(
        papers=tuple(paper._replace(published=paper.key in keys) for paper in pool.papers),
        exclusions=tuple(exclusion._replace(published=exclusion.id in ids) for exclusion in pool.exclusions),
        published=published,
    )


def read_file(root: str, name: str, instead: bytes | None = None) -> reader.YamlFile:
    """Read one data file of a corpus, or what stands in for it.

    Raises:
        DataFileError: It is absent or cannot be read.
    """
    path = os.path.join(root, *name.split("/"))
    shown_as = os.path.relpath(path)
    if name == EXCLUSIONS and instead is None and not os.path.lexists(path):
        raise DataFileError(f"cannot read {shown_as}: No such file or directory", "Without exclusions it holds: []")
    shown_as = path if shown_as.startswith(os.pardir + os.sep) else shown_as
    return reader.read(path, shown_as) if instead is None else reader.YamlFile(shown_as, instead)


def read_bytes(root: str, names: Iterable[str]) -> dict[str, bytes]:
    """The bytes of those of some data files that there are, by their names below the folder.

    Raises:
        DataFileError: One is there, but cannot be read.
    """
    paths = {name: os.path.join(root, *name.split("/")) for name in names}
    return {name: reader.read_bytes(path, name) for name, path in paths.items() if os.path.lexists(path)}


def read_candidates(
    root: str, taxonomy: Taxonomy, instead: bytes | None = None, *, keep: bool = False
) -> "CandidateFile":
    """What was found and awaits a decision, as read, mistakes included; nothing where a corpus has no file of it.

    Args:
        root: The folder that holds `data/`.
        taxonomy: What records can be tagged with.
        instead: What to read instead of the file; no bytes stand for no such file.
        keep: Whether the file keeps its records as read.

    Raises:
        DataFileError: The file cannot be read.
    """
    # Imported only for who checks or shows candidates.
    from orchtrace_corpus.corpus.model.candidates import CandidateFile, decode_candidates

    is_there = os.path.lexists(os.path.join(root, *CANDIDATES.split("/"))) if instead is None else bool(instead)
    if not is_there:
        return CandidateFile()
    with _collector_paused():
        file = read_file(root, CANDIDATES, instead)
        file.keep = keep
        return decode_candidates(file, taxonomy)


def read_claims(root: str, instead: bytes | None = None) -> "ClaimFile":
    """The claims of a corpus as read, mistakes and the sheets that they name included; none where it has no file.

    Raises:
        DataFileError: The file cannot be read.
    """
    # Imported only for who asks what the corpus claims.
    from orchtrace_corpus.corpus.model.claim_file import ClaimFile, decode_claims, with_sheets

    if instead is None and not os.path.lexists(os.path.join(root, *CLAIMS.split("/"))):
        return ClaimFile()
    with _collector_paused():
        return with_sheets(decode_claims(read_file(root, CLAIMS, instead)), lambda path: _sheet(root, path))


def _sheet(root: str, path: str) -> str | None:
    """The text of a coding sheet; None where it cannot be read."""
    try:
        with open(os.path.join(root, *path.split("/")), encoding="utf-8-sig", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def read_disputes(root: str, taxonomy: Taxonomy, instead: bytes | None = None) -> "DisputeFile":
    """The disputes of a corpus as read, mistakes included; none where it has no file of them.

    Raises:
        DataFileError: The file cannot be read.
    """
    # Imported only for who marks what is contested.
    from orchtrace_corpus.corpus.model.disputes import DisputeFile, decode_disputes

    if instead is None and not os.path.lexists(os.path.join(root, *DISPUTES.split("/"))):
        return DisputeFile()
    with _collector_paused():
        return decode_disputes(read_file(root, DISPUTES, instead), taxonomy)


def read_open_tags(root: str, reading: ReadingName = ReadingName.PUBLISHED) -> dict[tuple[str, str], bool]:
    """The tags in open dispute by a reading, each with whether something is agreed; errors as for `read_disputes`."""
    from orchtrace_corpus.corpus.model.disputes import open_tags

    if not os.path.lexists(os.path.join(root, *DISPUTES.split("/"))):
        return {}
    with _collector_paused():
        found = open_tags(read_file(root, DISPUTES))
        return {tag: agreed for tag, agreed in found.items() if not agreed or reading is ReadingName.PUBLISHED}


def with_contested(pool: Pool, root: str, reading: ReadingName = ReadingName.PUBLISHED) -> Pool:
    """The corpus with the tags in open dispute of each paper, in the order of the file; as for `read_open_tags`."""
    tags: dict[str, tuple[str, ...]] = {}
    for key, tag in read_open_tags(root, reading):
        tags[key] = (*tags.get(key, ()), tag)
    return pool._replace(papers=tuple(one._replace(contested=tags.get(one.key, ())) for one in pool.papers))


def read_scale(root: str, corpus: Pool | Loaded, instead: bytes | None = None) -> "ScaleFile":
    """What is known of the scale of systems, as read, mistakes included; nothing where a corpus has no file of it.

    Where the taxonomy cannot be read, this is not read, either; where a part of the papers cannot, no
    record is said to be missing.

    Raises:
        DataFileError: The file cannot be read.
    """
    from orchtrace_corpus.corpus.model.scale import ScaleFile, decode_scale  # only for who shows or checks it

    findings = corpus.findings if isinstance(corpus, Loaded) else ()
    is_absent = instead is None and not os.path.lexists(os.path.join(root, *SCALE.split("/")))
    if is_absent or (isinstance(corpus, Loaded) and corpus.pool is None):
        return ScaleFile()
    keys = None if is_malformed(findings) else {paper.key for paper in corpus.papers}
    with _collector_paused():
        return decode_scale(read_file(root, SCALE, instead), keys)


def read_codebook(root: str, pool: Pool) -> "Codebook":
    """How tags are coded, as read, mistakes included; nothing where a corpus has no file of it.

    Raises:
        DataFileError: The file cannot be read.
    """
    from orchtrace_corpus.corpus.model.codebook import Codebook, decode_codebook  # only for who shows or checks it

    if not os.path.lexists(os.path.join(root, *CODEBOOK.split("/"))):
        return Codebook()
    with _collector_paused():
        return _decoded(read_file(root, CODEBOOK), pool, lambda file: decode_codebook(file, pool))


def read_protocol(root: str, taxonomy: Taxonomy) -> "ProtocolFile":
    """How papers come in, as read, mistakes included; nothing where a corpus has no file of it.

    Raises:
        DataFileError: The file cannot be read.
    """
    from orchtrace_corpus.corpus.model.codebook import ProtocolFile, decode_protocol  # likewise

    if not os.path.lexists(os.path.join(root, *PROTOCOL.split("/"))):
        return ProtocolFile()
    with _collector_paused():
        return _decoded(read_file(root, PROTOCOL), taxonomy, lambda file: decode_protocol(file, taxonomy))


def read_searches(root: str, instead: bytes | None = None) -> "SearchFile":
    """What was searched and found, as read, mistakes included; nothing where a corpus has no file of it.

    Raises:
        DataFileError: The file cannot be read.
    """
    from orchtrace_corpus.corpus.model.searches import SearchFile, decode_searches  # only for who searches or counts it

    if instead is None and not os.path.lexists(os.path.join(root, *SEARCHES.split("/"))):
        return SearchFile()
    with _collector_paused():
        return _decoded(read_file(root, SEARCHES, instead), None, decode_searches)


def read_bibliography(root: str) -> "PublishedBibliography":
    """Return the published table and its corrections as read, mistakes included; empty where a corpus has neither.

    Raises:
        DataFileError: A file cannot be read.
    """
    from orchtrace_corpus.corpus.model import corrections  # only for who checks it

    published, corrected = (os.path.relpath(os.path.join(root, *n.split("/"))) for n in (PUBLISHED_TABLE, CORRECTIONS))
    paths = corrections.Paths(published, corrected)
    return corrections.decode(read_text(root, PUBLISHED_TABLE), read_text(root, CORRECTIONS), paths)


def read_arxiv(root: str) -> "dict[str, Metadata]":
    """What arXiv said last of the papers, by id; nothing where the corpus has no file of it.

    Raises:
        DataFileError: The file cannot be read, or is not in its form.
    """
    from orchtrace_corpus.corpus.model import arxiv_file  # only for who fetches, or checks what was fetched

    path = os.path.join(root, *ARXIV.split("/"))
    near = os.path.relpath(path)
    shown_as = printable(path if near.startswith(os.pardir + os.sep) else near, limit=300)
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return arxiv_file.decode(file.read(), shown_as)
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise DataFileError(f"cannot read {shown_as}: {reason}") from error


def _decoded(file: reader.YamlFile, context: object, decode: Callable[[reader.YamlFile], Result]) -> Result:
    """What a file says; what the same text said last in the same context is not decoded again, as in a check."""
    content = file.text, tuple(file.findings), context
    known = _LAST.get(file.path)
    if known is None or known[0][:2] != content[:2] or known[0][2] is not context:
        known = _LAST[file.path] = content, decode(file)
    result: Result = known[1]
    return result


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep the garbage collector from walking a growing heap of records, which halves the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
