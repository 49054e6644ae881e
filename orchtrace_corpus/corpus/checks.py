"""The whole check of a corpus, as values that `corpus check` shows.

Modules that only some parts of a check need are imported there: start-up is most of the time of a command.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.errors import CommandUseError, CorpusError, DataFileError, ExitCode
from orchtrace_corpus.base.files import read_text
from orchtrace_corpus.base.findings import Finding, codes_with_prefix, has_errors, is_malformed
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.evidence import EvidenceCoverage
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.records import Pool
from orchtrace_corpus.corpus.model.store import CorpusFiles

if TYPE_CHECKING:
    from orchtrace_corpus.base.files import Document

_EXAMPLE = ("\nday:", "example", "retrieval", "retrieves", "no licence")
"""The marks, in small letters, of a line of a starter file that a new corpus has to replace."""

_MERGING = ("AUTO_MERGE", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
"""The names in git's folder while a merge, or a command that merges, is under way."""


class PartName(StrEnum):
    """The parts of a check that are not about one data file; the others are named in `store.DATA_FILES`."""

    MERGE = "merge"
    DATA = "data"
    EVIDENCE = "evidence"
    FORM = "form"
    BUILD = "build"
    ARXIV = "arxiv"
    LINE_ENDS = "line ends"
    EXAMPLE = "example"


class Part(NamedTuple):
    """One part of a check.

    Attributes:
        name: A `PartName`, or the part of a data file.
        exit_code: The exit code of a check with this part alone.
        findings: The problems of the data.
        stale: The files that differ from the data.
        failure: The error that stopped the part.
        total: The number of entries of a data file, such as claims.
        is_skipped: Whether errors in the data prevented the part.
        coverage: The share of sourced tags that have evidence.
        contested: The number of claims that count papers with contested tags.
        falling: The claims that hold as written, and fail over the pool of today.
        fell: The claims among them that did not fail with the papers of the last commit; None if that is not known or
            nothing has changed since.
        examples: The places that still have the example text of `corpus init`.
        fixes: The commands that fix some of the findings.
    """

    name: str
    exit_code: ExitCode = ExitCode.DONE
    findings: tuple[Finding, ...] = ()
    stale: "tuple[Document, ...]" = ()
    failure: CorpusError | None = None
    total: int = 0
    is_skipped: bool = False
    coverage: EvidenceCoverage | None = None
    contested: int = 0
    falling: tuple[str, ...] = ()
    fell: tuple[str, ...] | None = None
    examples: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()


class Check(NamedTuple):
    """The result of a check."""

    parts: tuple[Part, ...]

    @property
    def exit_code(self) -> ExitCode:
        """The worst exit code of any part; `ExitCode.DONE` where the corpus passes."""
        return max(part.exit_code for part in self.parts)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all parts."""
        return tuple(finding for part in self.parts for finding in part.findings)


def check(root: str = "") -> Check:
    """Check a corpus as a pull request is checked, except for its traces.

    Args:
        root: The folder that holds `data/`; else the nearest one, else the corpus of the installation.

    Raises:
        CorpusError: There is no corpus, or it cannot be read.
    """
    return Check(tuple(check_parts(CorpusFiles(root or store.find_root().path))))


def check_parts(files: CorpusFiles) -> Iterator[Part]:
    """Yield the parts of a check as soon as they are done; raise the errors of `check`."""
    if undecided := _unmerged(files.root):
        yield Part(PartName.MERGE, ExitCode.FINDINGS, failure=undecided)
    files.check_form()
    findings = tuple(files.findings(PartName.DATA))
    fixes = fixing_commands(files, findings) if has_errors(findings) else ()
    yield Part(PartName.DATA, exit_code_of(findings), findings, fixes=fixes)
    parts = {row.part or row.name: row for row in store.DATA_FILES if files.has_any(row)}
    parts.pop(PartName.DATA)
    has_arxiv = parts.pop(PartName.ARXIV, None) is not None
    if files.loaded.pool is None or has_errors(findings):
        others = [PartName.FORM, PartName.BUILD, *([PartName.ARXIV] if has_arxiv else [])]
        yield from (Part(name, is_skipped=True) for name in (*parts, *others))
        return
    from orchtrace_corpus.corpus import build
    from orchtrace_corpus.corpus.analysis.statistics import summarise

    summary = summarise(files.pool)
    if summary.evidence:
        yield Part(PartName.EVIDENCE, coverage=summary.evidence[-1])
    for name, row in parts.items():
        if row.path == store.CLAIMS:
            yield _check_claims(files)
        else:
            problems = files.findings_of(row)
            yield Part(name, exit_code_of(problems), problems, total=files.content(row.name).total)
    crlf: dict[str, str] = {}
    yield _compare(PartName.FORM, lambda: build.data_documents(files), crlf)
    yield _compare(PartName.BUILD, lambda: build.generated(files, summary), crlf)
    if has_arxiv:
        yield _compare(PartName.ARXIV, lambda: build.arxiv_documents(files), crlf)
    if crlf:
        yield Part(PartName.LINE_ENDS, ExitCode.FINDINGS, failure=_crlf_error(crlf))
    if examples := tuple(_examples(files)):
        yield Part(PartName.EXAMPLE, examples=examples)


def fixing_commands(files: CorpusFiles, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return the commands that fix some of the findings."""
    if not findings:
        return ()
    from orchtrace_corpus.corpus.edit.fixes import changes, tag_commands

    return (*(("corpus check --fix",) if changes(files, findings) else ()), *tag_commands(files, findings))


def exit_code_of(findings: Sequence[Finding], *, strict: bool = False) -> ExitCode:
    """Return the exit code of a command that reports these findings; `strict` makes warnings errors."""
    if is_malformed(findings):
        return ExitCode.UNREADABLE
    return ExitCode.FINDINGS if has_errors(findings) or (strict and findings) else ExitCode.DONE


def _check_claims(files: CorpusFiles) -> Part:
    """Check the claims over the published pool and over the pool of today."""
    from orchtrace_corpus.corpus.analysis.claims import check, evaluate, falling_today

    claims = files.claims.claims
    verdicts = evaluate(claims, files.pool, files.disputes.items)
    findings, falling = check(files.claims, files.pool, verdicts), falling_today(verdicts)
    before = committed(files) if falling else None
    fell = None
    if before is not None:
        fallen_before = falling_today(evaluate(claims, before))
        fell = tuple(name for name in falling if name not in fallen_before)
    contested = sum(bool(verdict.contested) for verdict in verdicts)
    part = Part("claims", exit_code_of(findings), findings, total=len(claims), contested=contested)
    return part._replace(falling=falling, fell=fell)


def _examples(files: CorpusFiles) -> Iterator[str]:
    """Yield the places that still say what `corpus init` wrote as an example."""
    templates = os.path.join(os.path.dirname(__file__), "templates")
    for name in ("README.md", "LICENSE", *(row.path for row in store.DATA_FILES), "requirements.txt"):
        template = read_text(templates, name) or ""
        lowered = f"\n{template.lower()}"
        marks = [mark for mark in _EXAMPLE if mark in lowered]
        lines = template.splitlines(keepends=True)
        known = [line for line in lines if any(mark in f"\n{line.lower()}" for mark in marks)]
        if name == "requirements.txt":
            known.append("orchtrace-corpus @ file:")  # no other machine can install it
        text = (files.text(name) or "") if known else ""
        if any(line in text for line in known):
            for position, line in enumerate(text.split("\n"), 1):
                if f"{line}\n".startswith(tuple(known)):
                    yield f"{name}:{position}"


def _unmerged(root: str) -> CorpusError | None:
    """Return the error while git merges and data files are undecided; git is asked only if a merge has left a trace."""
    folder = os.path.abspath(root)
    while not os.path.lexists(git := os.path.join(folder, ".git")) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    if os.path.isfile(git):  # of a further working tree, or a submodule
        with open(git, encoding="utf-8", errors="surrogateescape") as file:
            git = os.path.join(folder, file.readline().removeprefix("gitdir:").strip())
    if not any(os.path.lexists(os.path.join(git, name)) for name in _MERGING):
        return None
    from orchtrace_corpus.corpus.sources import revisions

    try:
        names = revisions.list_unmerged(root)
    except CorpusError:  # no git, so none that merges
        return None
    again = f"{store.MERGE_DRIVER} && git checkout --merge {' '.join(names)}"
    message = f"git has two versions of {', '.join(names)}; decide, then git add; or merge by records: {again}"
    return DataFileError(message) if names else None


def committed(files: CorpusFiles) -> Pool | None:
    """Return the corpus with the papers of the last commit, if it is known and they are other papers."""
    from orchtrace_corpus.corpus.sources import revisions

    try:
        before = revisions.find_revision(files.root, "HEAD").read(store.PAPERS)
        is_new = before and before[store.PAPERS] != files.data(store.PAPERS)
        return CorpusFiles(files.root, before).loaded.pool if is_new else None
    except CorpusError:  # no repository, no commit, or no git
        return None


def _compare(name: str, make_documents: "Callable[[], Sequence[Document]]", crlf: dict[str, str]) -> Part:
    """Compare files with the data; those that differ only in line ends go into `crlf`, with the part."""
    try:
        stale = [document for document in make_documents() if document.is_stale]
    except CorpusError as error:
        return Part(name, error.exit_code, failure=error)
    for document in stale:
        if document.differs_in_line_ends:
            crlf.setdefault(document.name, name)
    stale = [document for document in stale if document.name not in crlf]
    return Part(name, ExitCode.FINDINGS if stale else ExitCode.DONE, stale=tuple(stale))


def _crlf_error(crlf: Mapping[str, str]) -> CorpusError:
    """Return the error that names the files with CRLF line ends, and the commands that fix them."""
    from orchtrace_corpus.base.text.layout import first_names_and_more, pluralize

    parts = dict.fromkeys(crlf.values())
    commands = ", then ".join("corpus check --fix" if name == PartName.FORM else f"corpus {name}" for name in parts)
    files = pluralize(len(crlf), "file has CRLF line ends", "files have CRLF line ends")
    message = f"{files}, not LF: {first_names_and_more(list(crlf), 4)}; to fix: {commands}"
    return DataFileError(f"{message}; with '* text=auto eol=lf' in .gitattributes, git writes LF")


def read_codes(select_codes: Sequence[str], ignore_codes: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the codes that are selected, all if empty, and those that are ignored.

    Each text holds codes, or beginnings of codes, separated by commas.
    """
    chosen, ignored = (
        [code for text in texts for prefix in text.split(",") for code in codes_with_prefix(prefix.strip())]
        for texts in (select_codes, ignore_codes)
    )
    if chosen and set(chosen) <= set(ignored):
        raise CommandUseError("--ignore leaves out everything that --select names", "Give one of them.")
    return chosen, ignored
