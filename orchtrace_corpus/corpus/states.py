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
    """A pull request, with its changes to files other than data.

    Attributes:
        revisions: The commit where it left its base, and its last commit.
        outside: The files that it changes and that are no data, by their paths in the repository.
        odd: The data files that it makes links, executables or other repositories, by their paths.
    """

    revisions: tuple[Revision, Revision]
    outside: tuple[str, ...]
    odd: tuple[str, ...]


class Side(NamedTuple):
    """One of the two states that are compared, with the bytes of its data files by their paths below its folder.

    The folder of a revision is that of the corpus that it is a revision of.
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
    """Return the result of `diff`; the corpus's own folder is looked for only where it is needed."""
    proposal = find_proposal(before, after, find_root)
    if proposal is None:
        first, second = _sides(before, after, find_root)
    elif proposal.odd:
        raise DataFileError(
            f"{first_names_and_more(list(map(quote, proposal.odd)), 3, ' and {} more')} of {proposal.revisions[1]}: "
            "data files must be plain files, not links, executables or submodules",
            "For an executable: git update-index --chmod=-x FILE",
        )
    else:
        first, second = map(_of_revision, proposal.revisions)
    if store.PAPERS not in first.texts and store.PAPERS not in second.texts:
        raise DataFileError(f"neither {quote(first.name)} nor {quote(second.name)} holds {store.PAPERS}")
    key_fields = {row.path: row.key_fields for row in store.DATA_FILES}
    change = compare(_state(first, second), _state(second, first), key_fields)
    return change if proposal is None else change._replace(outside=proposal.outside)


def find_proposal(before: str, after: str, find_root: Callable[[], str]) -> Proposal | None:
    """Return the pull request that `BASE...HEAD` names; None for other states. Errors are those of `diff`."""
    _, dots, head = _split(before, after)
    if dots != "...":
        return None
    root = find_root()
    last = revisions.find_revision(root, head or "HEAD")
    first, last = revisions.find_revision(root, before), last._replace(name=last.commit)
    data = revisions.data_prefix(root)
    outside, odd = [], []
    for path, mode in revisions.file_changes(first, last):
        if not f"{path}/".startswith(data) or _is_hidden(path.removeprefix(data)):
            outside.append(path)
        elif mode not in (_GONE, _PLAIN_FILE):
            odd.append(path)
    return Proposal((first, last), tuple(outside), tuple(odd))


def _split(before: str, after: str) -> tuple[str, str, str]:
    """Return two names and the dots that joined them in one word; without dots, the names as they are."""
    if not after and not _is_corpus(before) and not before.startswith((".", "/")):
        for dots in ("...", ".."):
            if dots in before:
                return before.partition(dots)
    return before, "", after


def _rows() -> list[DataFile]:
    """Return the data files that the rules are about."""
    return [row for row in store.DATA_FILES if row.path.endswith(".yaml")]


def _sides(before: str, after: str, find_root: Callable[[], str]) -> tuple[Side, Side]:
    """Return the two states to compare."""
    old, dots, new = _split(before, after)
    first = _side(old, find_root)
    if new or dots:
        return first, _side(new or "HEAD", find_root)
    return first, _of_folder(find_root(), "the working tree")


def _side(name: str, find_root: Callable[[], str]) -> Side:
    return _of_folder(name, name) if _is_corpus(name) else _of_revision(revisions.find_revision(find_root(), name))


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


def _of_revision(revision: Revision) -> Side:
    texts = revision.read(*(row.path for row in _rows()))
    contents = revision.list_files("data")
    others = _others(contents)
    blobs = revision.blobs([contents[path] for path in others])
    return _require_data(Side(str(revision), revision.folder, texts | dict(zip(others, blobs, strict=True))))


def _require_data(side: Side) -> Side:
    """Return the side, unless one of its data files is only a pointer."""
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
    """Return a side's records, with their findings and the verdicts on its claims."""
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
    named = []
    for finding in found:
        path = f"data/{os.path.basename(finding.location.path)}"
        named.append(finding._replace(location=finding.location._replace(path=path)))
    return State(
        pool,
        tuple(named),
        verdicts,
        {os.fsencode(path).decode("utf-8", "backslashreplace"): data for path, data in side.texts.items()},
        side.name,
        None if is_malformed(own.findings) or "" in own.unread else frozenset(own.unread),
        not any(is_malformed(corpus.file(path).findings) for path in (store.PAPERS, store.EXCLUSIONS)),
        tuple(remarks),
    )


def _corpus(side: Side, other: Side, remarks: list[str]) -> tuple[CorpusFiles, tuple[Finding, ...]]:
    """Return the corpus of a side, and the findings in its taxonomy.

    A missing or wrong taxonomy is replaced by that of the other side, and so is a missing published pool.
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
