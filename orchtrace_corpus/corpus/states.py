"""Comparison of two states of a corpus: folders, or revisions of a git repository."""

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

_EMPTY_LIST = b"[]\n"
_REMOVED_MODE = "000000"  # git's mode of a removed file
_PLAIN_FILE_MODE = "100644"  # git's mode of a file that is no link, executable or submodule
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


class Proposal(NamedTuple):
    """A pull request.

    Attributes:
        revisions: The commit at which it left its base, and its last commit.
        outside: The paths of changed files that are no data.
        special_files: The paths of data files that it turns into links, executables or submodules.
    """

    revisions: tuple[Revision, Revision]
    outside: tuple[str, ...]
    special_files: tuple[str, ...]


class Side(NamedTuple):
    """One of the two states that are compared.

    Attributes:
        name: Its name in messages.
        folder: The folder of the corpus; a revision has the folder of its repository's corpus.
        files: The bytes of the data files, by their paths below the folder.
    """

    name: str
    folder: str
    files: Mapping[str, bytes]


def diff(before: str, after: str = "", root: str = "") -> Difference:
    """Return the changes in meaning from one state of a corpus to another.

    Args:
        before: A folder with a corpus, or a git revision. `BASE...HEAD` names both states: the changes of HEAD since
            it left BASE.
        after: The later state, likewise; by default the corpus in its folder.
        root: The folder of the corpus for revisions; by default the nearest one.

    Raises:
        CorpusError: A state does not exist or cannot be read, or neither has a taxonomy without errors.
    """
    return compare_states(before, after, lambda: root or store.find_root().path)


def compare_states(before: str, after: str, find_root: Callable[[], str]) -> Difference:
    """Return the result of `diff`; `find_root` is called only if the folder of the corpus is needed."""
    proposal = find_proposal(before, after, find_root)
    if proposal is None:
        first, second = _sides(before, after, find_root)
    elif proposal.special_files:
        _, last = proposal.revisions
        paths = first_names_and_more(list(map(quote, proposal.special_files)), 3, " and {} more")
        message = f"{paths} of {last}: data files must be plain files, not links, executables or submodules"
        raise DataFileError(message, "For an executable: git update-index --chmod=-x FILE")
    else:
        first, second = map(_side_of_revision, proposal.revisions)
    if store.PAPERS not in first.files and store.PAPERS not in second.files:
        raise DataFileError(f"neither {quote(first.name)} nor {quote(second.name)} holds {store.PAPERS}")
    key_fields = {row.path: row.key_fields for row in store.DATA_FILES}
    difference = compare(_state(first, second), _state(second, first), key_fields)
    return difference if proposal is None else difference._replace(outside=proposal.outside)


def find_proposal(before: str, after: str, find_root: Callable[[], str]) -> Proposal | None:
    """Return the pull request that `BASE...HEAD` names; None for other states. Errors are those of `diff`."""
    _, dots, head = _split(before, after)
    if dots != "...":
        return None
    root = find_root()
    last = revisions.find_revision(root, head or "HEAD")
    last = last._replace(name=last.commit)  # messages name the commit: `HEAD` can move
    first = revisions.find_revision(root, before)
    data_prefix = revisions.data_prefix(root)
    outside = []
    special_files = []
    for path, mode in revisions.file_changes(first, last):
        if not f"{path}/".startswith(data_prefix) or _is_hidden(path.removeprefix(data_prefix)):
            outside.append(path)
        elif mode not in (_REMOVED_MODE, _PLAIN_FILE_MODE):
            special_files.append(path)
    return Proposal((first, last), tuple(outside), tuple(special_files))


def _split(before: str, after: str) -> tuple[str, str, str]:
    """Split `A..B` and `A...B` into the two names and the dots between them; without dots, return the two names."""
    if not after and not _is_corpus(before) and not before.startswith((".", "/")):
        for dots in ("...", ".."):
            if dots in before:
                return before.partition(dots)
    return before, "", after


def _yaml_rows() -> list[DataFile]:
    """Return the data files in YAML, which the rules check."""
    return [row for row in store.DATA_FILES if row.path.endswith(".yaml")]


def _sides(before: str, after: str, find_root: Callable[[], str]) -> tuple[Side, Side]:
    """Return the two states to compare."""
    first_name, dots, second_name = _split(before, after)
    first = _side(first_name, find_root)
    if second_name or dots:
        return first, _side(second_name or "HEAD", find_root)
    return first, _side_of_folder(find_root(), "the working tree")


def _side(name: str, find_root: Callable[[], str]) -> Side:
    """Return the state with the name of a folder or a revision."""
    if _is_corpus(name):
        return _side_of_folder(name, name)
    return _side_of_revision(revisions.find_revision(find_root(), name))


def _is_corpus(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, *store.PAPERS.split("/")))


def _side_of_folder(folder: str, name: str) -> Side:
    full_paths: dict[str, str] = {}
    for parent, _, file_names in os.walk(os.path.join(folder, "data")):
        for file_name in file_names:
            full_path = os.path.join(parent, file_name)
            full_paths[os.path.relpath(full_path, folder).replace(os.sep, "/")] = full_path
    corpus = CorpusFiles(folder)
    files: dict[str, bytes] = {}
    for row in _yaml_rows():
        data = corpus.data(row.path)
        if data is not None:
            files[row.path] = data
    for path in _other_files(full_paths):
        files[path] = _read(full_paths[path])
    return _require_data(Side(name, folder, files))


def _read(path: str) -> bytes:
    """Return the bytes of a file; for a link, its target, as git stores it."""
    try:
        return os.fsencode(os.readlink(path)) if os.path.islink(path) else Path(path).read_bytes()
    except OSError as error:
        raise DataFileError(f"cannot read {printable(path, limit=300)}: {error.strerror}") from error


def _side_of_revision(revision: Revision) -> Side:
    files = revision.read(*(row.path for row in _yaml_rows()))
    blob_ids = revision.list_files("data")
    other_files = _other_files(blob_ids)
    blobs = revision.blobs([blob_ids[path] for path in other_files])
    return _require_data(Side(str(revision), revision.folder, files | dict(zip(other_files, blobs, strict=True))))


def _require_data(side: Side) -> Side:
    """Return the side; raise `DataFileError` if a data file is only a pointer of Git LFS."""
    for row in _yaml_rows():
        if side.files.get(row.path, b"").startswith(_LFS_POINTER):
            message = f"{row.path} of {side.name} is a pointer of Git LFS: the data itself is kept elsewhere"
            raise DataFileError(message, "Compare two folders in which it is present.")
    return side


def _other_files(paths: Iterable[str]) -> list[str]:
    """Return the paths of files that are not among `_yaml_rows`, without hidden files."""
    yaml_paths = {row.path for row in _yaml_rows()}
    return [path for path in paths if path not in yaml_paths and not _is_hidden(path)]


def _is_hidden(path: str) -> bool:
    """Return True if a file is hidden, or a backup copy of an editor."""
    return path.endswith("~") or any(part.startswith(".") for part in path.split("/"))


def _state(side: Side, other: Side) -> State:
    """Return a side's records, with their findings and the verdicts on its claims."""
    remarks = [] if store.PAPERS in side.files else [f"There is no {store.PAPERS} in {side.name}."]
    corpus, taxonomy_findings = _corpus(side, other, remarks)
    loaded = corpus.loaded
    pool = loaded.pool
    if pool is None:
        lines = (f"the taxonomy of {quote(side.name)} has errors:", *map(str, taxonomy_findings))
        raise InvalidCorpusError("\n".join(lines))
    errors = [finding for finding in loaded.findings if finding.severity is Severity.ERROR]
    unreadable = (*taxonomy_findings, *errors)
    findings = [*taxonomy_findings, *rules.check(loaded)]
    verdicts = None
    claim_file = corpus.claims
    if unreadable:
        remark = f"Not all of {side.name} could be read ({summary(unreadable)}): counts are of what could"
        remarks.append(f"{remark}, and no claim is judged.")
    else:
        verdicts = claims.evaluate(claim_file.claims, pool)
        for row in _yaml_rows():
            if row.path != store.PAPERS:
                findings += (finding for finding in corpus.findings_of(row) if finding.code != "C101")
    findings_below_data = []  # with paths that are equal in both states
    for finding in findings:
        path = f"data/{os.path.basename(finding.location.path)}"
        findings_below_data.append(finding._replace(location=finding.location._replace(path=path)))
    unread_claims: frozenset[str] | None = frozenset(claim_file.unread)
    if "" in claim_file.unread or is_malformed(claim_file.findings):
        unread_claims = None  # not all ids are known
    return State(
        pool,
        tuple(findings_below_data),
        verdicts,
        files={os.fsencode(path).decode("utf-8", "backslashreplace"): data for path, data in side.files.items()},
        name=side.name,
        unread_claims=unread_claims,
        is_whole=not any(is_malformed(corpus.file(path).findings) for path in (store.PAPERS, store.EXCLUSIONS)),
        remarks=tuple(remarks),
    )


def _corpus(side: Side, other: Side, remarks: list[str]) -> tuple[CorpusFiles, tuple[Finding, ...]]:
    """Return the corpus of a side, and the findings of its taxonomy; add to `remarks` what was replaced.

    If the taxonomy is missing or has errors, that of the other side is used. So is a missing published pool.
    """
    files: dict[str, bytes | None] = dict(side.files)
    for row in _yaml_rows():
        files.setdefault(row.path, None)  # do not read a missing file from the folder
    for path in (store.PAPERS, store.EXCLUSIONS):
        files[path] = side.files.get(path, _EMPTY_LIST)
    files[store.PUBLISHED] = side.files.get(store.PUBLISHED, other.files.get(store.PUBLISHED))
    findings: tuple[Finding, ...] = ()
    if store.TAXONOMY in side.files:
        corpus = CorpusFiles(side.folder, files)
        if corpus.loaded.pool is not None:
            return corpus, ()
        findings = corpus.loaded.findings
        remarks.append(f"The taxonomy of {side.name} has errors; its records are read by that of {other.name}.")
    elif store.PAPERS in side.files:
        remarks.append(f"There is no {store.TAXONOMY} in {side.name}; its records are read by that of {other.name}.")
    if store.TAXONOMY not in other.files:
        raise DataFileError(f"neither {quote(side.name)} nor {quote(other.name)} holds a taxonomy that can be read")
    corpus = CorpusFiles(side.folder, {**files, store.TAXONOMY: other.files[store.TAXONOMY]})
    if not findings and corpus.loaded.pool is None:
        findings = corpus.loaded.findings
    return corpus, findings
