"""Two states of a corpus, read and compared: folders, or revisions of a git repository."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from orchtrace_corpus.base.errors import DataFileError, InvalidCorpusError
from orchtrace_corpus.base.findings import Finding, Severity, is_malformed, printable, quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.findings import summary
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.corpus import rules
from orchtrace_corpus.corpus.analysis import claims
from orchtrace_corpus.corpus.analysis.difference import Difference, State, compare
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.store import CorpusFiles, DataFile
from orchtrace_corpus.corpus.sources import revisions
from orchtrace_corpus.corpus.sources.revisions import Revision

_EMPTY = b"[]\n"
_GONE, _PLAIN_FILE = "000000", "100644"
"""The modes that git gives to a removed file, and to one that is no link, no executable and no other repository."""
_POINTER = b"version https://git-lfs.github.com/spec/"


class Proposal(NamedTuple):
    """The changes of a pull request beside the meaning of its data.

    Attributes:
        names: The commit where it left its base, and its last one.
        outside: The files that it changes and that are no data, by their paths in the repository.
        odd: The data files that it makes links, executables or other repositories, by their paths.
    """

    names: tuple[str, str]
    outside: tuple[str, ...]
    odd: tuple[str, ...]


class Side(NamedTuple):
    """One of the two states that are compared.

    Attributes:
        name: What it is called.
        folder: Its folder; of a revision, that of the corpus which it is a revision of.
        texts: The bytes of its data files, by their paths below the folder.
    """

    name: str
    folder: str
    texts: Mapping[str, bytes]


def diff(before: str, after: str = "", root: str = "") -> Difference:
    """Return the changes in meaning from one state of a corpus to another.

    Args:
        before: A folder with a corpus, or a git revision. `BASE...HEAD` names both states, and stands for what HEAD
            has changed since the two parted.
        after: The later state, named likewise; without it, the corpus as it is.
        root: The folder of the corpus that revisions are of; else the nearest one.

    Raises:
        CorpusError: A state does not exist or cannot be read, or neither has a taxonomy without errors.
    """
    return compare_states(before, after, lambda: root or store.find_root().path)


def compare_states(before: str, after: str, find_root: Callable[[], str]) -> Difference:
    """The same as `diff`; the corpus's own folder is looked for only where it is needed."""
    proposal = find_proposal(before, after, find_root)
    if proposal is not None and proposal.odd:
        raise DataFileError(
            f"{first_names_and_more(list(map(quote, proposal.odd)), 3, ' and {} more')} of {proposal.names[1]}: "
            "data files must be plain files, not links, executables or submodules",
            "For an executable: git update-index --chmod=-x FILE",
        )
    first, second = _sides(before, after, find_root)
    if store.PAPERS not in first.texts and store.PAPERS not in second.texts:
        raise DataFileError(f"neither {quote(first.name)} nor {quote(second.name)} holds {store.PAPERS}")
    names = {row.path: row.names for row in store.DATA_FILES}
    change = compare(_state(first, second), _state(second, first), names)
    return change if proposal is None else change._replace(outside=proposal.outside)


def find_proposal(before: str, after: str, find_root: Callable[[], str]) -> Proposal | None:
    """Return the pull request that `BASE...HEAD` stands for; None for other states. Errors as for `diff`."""
    if _dots(before, after) != "...":
        return None
    root = find_root()
    first, second = _parted(root, before)
    data = revisions.data_prefix(root)
    outside, odd = [], []
    for path, mode in revisions.file_changes(first, second):
        if not f"{path}/".startswith(data) or _is_hidden(path.removeprefix(data)):
            outside.append(path)
        elif mode not in (_GONE, _PLAIN_FILE):
            odd.append(path)
    return Proposal((str(first), str(second)), tuple(outside), tuple(odd))


def _dots(before: str, after: str) -> str:
    """Return the dots by which one word names two revisions; empty where it names one, or a folder."""
    if after or _is_corpus(before) or before.startswith((".", "/")):
        return ""
    return next((dots for dots in ("...", "..") if dots in before), "")


def _parted(root: str, name: str) -> tuple[Revision, Revision]:
    """Return the commit where the two ends of `BASE...HEAD` parted, and the second end, each by its id."""
    second = revisions.find(root, name.partition("...")[2] or "HEAD")
    return revisions.find(root, name), second._replace(asked=second.commit)


def _rows() -> list[DataFile]:
    """Return the data files that the rules are about."""
    return [row for row in store.DATA_FILES if row.path.endswith(".yaml")]


def _sides(base: str, head: str, find_root: Callable[[], str]) -> tuple[Side, Side]:
    """Return the two states to compare."""
    dots = _dots(base, head)
    if dots == "...":
        root = find_root()
        first, second = _parted(root, base)
        return _of_revision(root, first), _of_revision(root, second)
    if dots:
        old, _, new = base.partition(dots)
        return _side(find_root, old), _side(find_root, new or "HEAD")
    side = _side(find_root, base)
    return side, _side(find_root, head) if head else _of_folder(find_root(), "the working tree")


def _side(find_root: Callable[[], str], name: str) -> Side:
    if _is_corpus(name):
        return _of_folder(name, name)
    root = find_root()
    return _of_revision(root, revisions.find(root, name))


def _is_corpus(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, *store.PAPERS.split("/")))


def _of_folder(folder: str, name: str) -> Side:
    below = (os.path.join(parent, name) for parent, _, names in os.walk(os.path.join(folder, "data")) for name in names)
    paths = {os.path.relpath(path, folder).replace(os.sep, "/"): path for path in below}
    corpus = CorpusFiles(folder)
    texts = {row.path: data for row in _rows() if (data := corpus.data(row.path)) is not None}
    return _require_data(Side(name, folder, texts | {path: _read(paths[path]) for path in _others(paths)}))


def _read(path: str) -> bytes:
    """Return the bytes of a file; of a link, where it leads to, as git keeps it."""
    try:
        return os.fsencode(os.readlink(path)) if os.path.islink(path) else Path(path).read_bytes()
    except OSError as error:
        raise DataFileError(f"cannot read {printable(path, limit=300)}: {error.strerror}") from error


def _of_revision(root: str, revision: Revision) -> Side:
    texts = revision.read(*(row.path for row in _rows()))
    contents = revision.contents("data")
    others = _others(contents)
    blobs = revision.blobs([contents[path] for path in others])
    return _require_data(Side(str(revision), root, texts | dict(zip(others, blobs, strict=True))))


def _require_data(side: Side) -> Side:
    """The side, if its data is there itself."""
    for row in _rows():
        if side.texts.get(row.path, b"").startswith(_POINTER):
            message = f"{row.path} of {side.name} is a pointer of Git LFS: the data itself is kept elsewhere"
            raise DataFileError(message, "Compare two folders in which it is present.")
    return side


def _others(paths: Iterable[str]) -> list[str]:
    """Return the files that belong to a corpus beside those that the rules are about, without what editors leave."""
    known = {row.path for row in _rows()}
    return [path for path in paths if path not in known and not _is_hidden(path)]


def _is_hidden(path: str) -> bool:
    """Return True if a file is what editors and systems keep beside others."""
    return path.endswith("~") or any(part.startswith(".") for part in path.split("/"))


def _state(side: Side, other: Side) -> State:
    """Return a side's records, what is wrong with them, and what its claims come to.

    Raises:
        InvalidCorpusError: Neither side has a taxonomy without errors, so that nothing can be read.
    """
    remarks = [] if store.PAPERS in side.texts else [f"There is no {store.PAPERS} in {side.name}."]
    corpus, found = _corpus(side, other, remarks)
    loaded = corpus.loaded
    pool = loaded.pool
    if pool is None:
        raise InvalidCorpusError("\n".join((f"the taxonomy of {quote(side.name)} has errors:", *map(str, found))))
    unreadable = (*found, *(finding for finding in loaded.findings if finding.severity is Severity.ERROR))
    found = (*found, *rules.check(loaded))
    verdicts = None
    own = corpus.claims
    if unreadable:
        remark = f"Not all of {side.name} could be read ({summary(unreadable)}): counts are of what could"
        remarks.append(f"{remark}, and no claim is judged.")
    else:
        verdicts = claims.evaluate(own.claims, pool)
        for row in _rows():
            if row.path != store.PAPERS:
                found += tuple(finding for finding in corpus.findings_of(row) if finding.code != "C101")
    return State(
        pool,
        tuple(_named(finding) for finding in found),
        verdicts,
        {os.fsencode(path).decode("utf-8", "backslashreplace"): data for path, data in side.texts.items()},
        side.name,
        None if is_malformed(own.findings) or "" in own.unread else frozenset(own.unread),
        not any(is_malformed(corpus.file(path).findings) for path in (store.PAPERS, store.EXCLUSIONS)),
        tuple(remarks),
    )


def _corpus(side: Side, other: Side, remarks: list[str]) -> tuple[CorpusFiles, tuple[Finding, ...]]:
    """A side by the other side's vocabulary where its own is missing or wrong, and what is wrong with it.

    The published pool is that of the other side, too, where the side's own is missing.
    """
    published = side.texts.get(store.PUBLISHED, other.texts.get(store.PUBLISHED))
    texts: dict[str, bytes | None] = {**side.texts, **{row.path: side.texts.get(row.path) for row in _rows()}}
    texts |= {path: side.texts.get(path, _EMPTY) for path in (store.PAPERS, store.EXCLUSIONS)}
    texts[store.PUBLISHED] = published
    found: tuple[Finding, ...] = ()
    if store.TAXONOMY in side.texts:
        corpus = CorpusFiles(side.folder, texts)
        if corpus.loaded.pool is not None:
            return corpus, ()
        found = corpus.loaded.findings
        remarks.append(f"The taxonomy of {side.name} has errors; its records are read by that of {other.name}.")
    elif store.PAPERS in side.texts:
        remarks.append(f"There is no {store.TAXONOMY} in {side.name}; its records are read by that of {other.name}.")
    if store.TAXONOMY not in other.texts:
        raise DataFileError(f"neither {quote(side.name)} nor {quote(other.name)} holds a taxonomy that can be read")
    corpus = CorpusFiles(side.folder, {**texts, store.TAXONOMY: other.texts[store.TAXONOMY]})
    return corpus, found or (() if corpus.loaded.pool else corpus.loaded.findings)


def _named(finding: Finding) -> Finding:
    """The finding at its file's name below the corpus's folder, wherever that is."""
    path = f"data/{os.path.basename(finding.location.path)}"
    return finding._replace(location=finding.location._replace(path=path))
