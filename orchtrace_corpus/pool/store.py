"""Finds a corpus on disk and reads it. Nothing else in `pool` knows about files."""

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

from orchtrace_corpus.errors import DataFileError
from orchtrace_corpus.pool.decode import decode_exclusions, decode_papers
from orchtrace_corpus.pool.model import Loaded, Places, Pool
from orchtrace_corpus.pool.taxonomy import decode_taxonomy
from orchtrace_corpus.yamlfile import reader

PAPERS = "data/papers.yaml"
EXCLUSIONS = "data/exclusions.yaml"
TAXONOMY = "data/taxonomy.yaml"

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


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
    for bundled in (os.path.join(_PACKAGE, "bundled"), os.path.dirname(_PACKAGE)):
        if os.path.isfile(os.path.join(bundled, PAPERS)):
            return Root(bundled, bundled=True)
    raise DataFileError(f"no {PAPERS} here or in any folder above", "Name the corpus with --root DIR.")


def load(root: str, *, keep: bool = False, instead: Mapping[str, bytes] = MappingProxyType({})) -> Loaded:
    """Read and decode the corpus in a folder, with all problems of syntax, fields and vocabulary.

    Args:
        root: The folder that holds `data/`.
        keep: Whether the files keep their records as read, for whoever wants to see their form, too.
        instead: What to read instead of some files, by their names below the folder: an edit that
            is not written yet, or an earlier revision.

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
    findings = (*papers_file.findings, *exclusions_file.findings)
    return Loaded(Pool(taxonomy, papers, exclusions), paper_places, exclusion_places, findings)


def read_file(root: str, name: str, instead: bytes | None = None) -> reader.YamlFile:
    """Read one data file of a corpus, or what stands in for it.

    Raises:
        DataFileError: It is absent or cannot be read.
    """
    path = os.path.join(root, *name.split("/"))
    shown_as = os.path.relpath(path)
    if instead is not None:
        return reader.YamlFile(shown_as, instead)
    if name == EXCLUSIONS and not os.path.lexists(path):
        raise DataFileError(f"cannot read {shown_as}: No such file or directory", "Without exclusions it holds: []")
    return reader.read(path, path if shown_as.startswith(os.pardir + os.sep) else shown_as)


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
