"""What is wrong with a corpus, as values: all that `corpus check` asks of it, and what `corpus validate` reports.

What only some parts of a check need is imported where they are made: start-up is most of the time of a command.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from orchtrace_corpus.base.errors import CommandUseError, CorpusError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import Finding, codes, has_errors, is_malformed, select
from orchtrace_corpus.corpus import rules
from orchtrace_corpus.corpus.analysis.evidence import EvidenceCoverage
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.records import Loaded, Pool

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.build import Document
    from orchtrace_corpus.corpus.model.candidates import CandidateFile
    from orchtrace_corpus.corpus.model.disputes import DisputeFile

_EXAMPLE = rb"(?im)^(?:day:|.*(?:example|retriev(?:al|es)|no licence)).*\n"
"""A line of a starter file that says what a corpus of somebody's own cannot say."""

_MERGING = ("AUTO_MERGE", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
"""What git's folder holds while a merge, or what else merges, is under way."""


class PartName(StrEnum):
    """The parts of a check, in their order."""

    MERGE = "merge"
    VALIDATE = "validate"
    EVIDENCE = "evidence"
    CLAIMS = "claims"
    DISPUTES = "disputes"
    PUBLISHED = "published"
    CODEBOOK = "codebook"
    PROTOCOL = "protocol"
    SEARCHES = "searches"
    FMT = "fmt"
    BUILD = "build"
    ARXIV = "arxiv"
    EXAMPLE = "example"


class Part(NamedTuple):
    """One part of a check.

    Attributes:
        name: What was asked.
        exit_code: How a command ends whose only part this is.
        findings: What is wrong, for the parts that look at the data.
        stale: The files that differ from what the data gives, for the parts that compare.
        failure: What kept the part from comparing.
        total: How many claims, disputes, corrections of the published bibliography, entries of the codebook, queries of
            the protocol or runs of searches were held against the data.
        coverage: How far the tags of sourced fields are covered by evidence.
        is_skipped: Whether errors in the data kept it from being asked.
        contested: How many claims count papers with contested tags.
        falling: The claims that hold as written, and fall over the pool of today.
        examples: The places that still say what `corpus init` wrote as an example.
        fell: Those of them that did not fall by the papers of the last commit; None where that is not known, or nothing
            has changed since.
    """

    name: PartName
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

    @property
    def is_merely_stale(self) -> bool:
        """Whether nothing is wrong but that generated files are older than the data: building mends all of it."""
        return self.name is PartName.BUILD and bool(self.stale)


class Check(NamedTuple):
    """Everything that was asked of a corpus."""

    parts: tuple[Part, ...]

    @property
    def exit_code(self) -> ExitCode:
        """The worst exit code of any part; `ExitCode.DONE` where the corpus passes."""
        return max(part.exit_code for part in self.parts)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all parts."""
        return tuple(finding for part in self.parts for finding in part.findings)


class Validation(NamedTuple):
    """What validating a corpus found.

    Attributes:
        pool: What could be read; None if the taxonomy could not.
        findings: The findings that were asked for.
        left_out: How many others there are.
        is_fixable: Whether `fixed_documents` would change anything.
    """

    pool: Pool | None
    findings: tuple[Finding, ...]
    left_out: int
    is_fixable: bool
    candidates: int = 0


def check(root: str = "") -> Check:
    """Ask of a corpus everything that a pull request is asked, except for its traces.

    Args:
        root: The folder that holds `data/`; else the nearest one, else the corpus of the installation.

    Raises:
        CorpusError: There is no corpus, or it cannot be read.
    """
    return Check(tuple(check_parts(root or store.find_root().path)))


def check_parts(root: str) -> Iterator[Part]:
    """The parts of a check, each as soon as it is done; errors as for `check`."""
    if undecided := _unmerged(root):
        yield Part(PartName.MERGE, ExitCode.FINDINGS, failure=undecided)
    loaded = store.load(root, keep=True)
    scale = store.read_scale(root, loaded)
    candidates = _read_candidates(root, loaded)
    awaiting = _candidate_findings(candidates, loaded)
    findings = (*rules.check(loaded), *awaiting, *loaded.missing, *scale.findings)
    yield Part(PartName.VALIDATE, _exit_code(findings, failed=has_errors(findings)), findings)
    if loaded.pool is None or has_errors(findings):
        files = {PartName.CLAIMS: store.CLAIMS, PartName.DISPUTES: store.DISPUTES, PartName.ARXIV: store.ARXIV}
        files |= {PartName.CODEBOOK: store.CODEBOOK, PartName.PROTOCOL: store.PROTOCOL}
        files |= {PartName.SEARCHES: store.SEARCHES, PartName.PUBLISHED: store.PUBLISHED_TABLE}
        never = (PartName.MERGE, PartName.VALIDATE, PartName.EVIDENCE, PartName.EXAMPLE)
        asked = (name for name in PartName if name not in never)
        present = (name for name in asked if os.path.lexists(os.path.join(root, files.get(name, ""))))
        yield from (Part(name, is_skipped=True) for name in present)
        return
    from orchtrace_corpus.corpus import build
    from orchtrace_corpus.corpus.analysis.statistics import summarise

    pool = loaded.pool
    summary = summarise(pool)
    if summary.evidence:
        yield Part(PartName.EVIDENCE, coverage=summary.evidence[-1])
    disputes = store.read_disputes(root, pool.taxonomy)
    yield from _check_statements(root, loaded, disputes, candidates)
    yield _compare(PartName.FMT, lambda: build.data_documents(root, pool.taxonomy, loaded, candidates))
    yield _compare(PartName.BUILD, lambda: build.generated(root, pool, scale, disputes, candidates, summary))
    if os.path.lexists(os.path.join(root, store.ARXIV)):
        yield _compare(PartName.ARXIV, lambda: build.arxiv_documents(root))
    if examples := tuple(_examples(root)):
        yield Part(PartName.EXAMPLE, examples=examples)


def find_problems(root: str, select_codes: Sequence[str] = (), ignore_codes: Sequence[str] = ()) -> Validation:
    """Validate a corpus, and report some of the findings.

    Args:
        root: The folder that holds `data/`.
        select_codes: Codes, or beginnings of codes, several of them in a text if there are commas in it; all if empty.
        ignore_codes: Those that are left out.

    Raises:
        CommandUseError: There is no such code, or both name the same.
        DataFileError: A data file cannot be read.
    """
    chosen, ignored = _read_codes(select_codes, ignore_codes)
    loaded = store.load(root)
    awaiting = _read_candidates(root, loaded)
    everything = _validate(root, loaded, awaiting)
    findings = select(everything, chosen, ignored)
    left_out, number = len(everything) - len(findings), len(awaiting.candidates) if awaiting else 0
    return Validation(loaded.pool, findings, left_out, _is_fixable(root, findings), number)


def fixed_documents(root: str, select_codes: Sequence[str] = (), ignore_codes: Sequence[str] = ()) -> "list[Document]":
    """The data files with those findings mended that need no decision; arguments and errors as for `find_problems`.

    A value may have several mistakes, and is mended one at a time: write the documents and ask again.
    """
    from orchtrace_corpus.corpus import build

    chosen, ignored = _read_codes(select_codes, ignore_codes)
    loaded = store.load(root, keep=True)
    candidates = _read_candidates(root, loaded)
    findings = (*rules.check(loaded), *_candidate_findings(candidates, loaded))
    return build.mended_documents(root, loaded, select(findings, chosen, ignored), candidates)


def validate(root: str, loaded: Loaded) -> tuple[Finding, ...]:
    """Every problem of a corpus as read, file by file; errors as for `find_problems`."""
    return _validate(root, loaded, _read_candidates(root, loaded))


def _validate(root: str, loaded: Loaded, candidates: "CandidateFile | None") -> tuple[Finding, ...]:
    scale = store.read_scale(root, loaded).findings
    return (*rules.check(loaded), *_candidate_findings(candidates, loaded), *loaded.missing, *scale)


def _read_candidates(root: str, loaded: Loaded) -> "CandidateFile | None":
    """The candidates with their records as read; None where there is no file of them, or no taxonomy to read it by."""
    if loaded.pool is None or not os.path.lexists(os.path.join(root, store.CANDIDATES)):
        return None
    return store.read_candidates(root, loaded.pool.taxonomy, keep=True)


def _candidate_findings(file: "CandidateFile | None", loaded: Loaded) -> tuple[Finding, ...]:
    if file is None:
        return ()
    from orchtrace_corpus.corpus.rules.candidates import check

    return check(file, loaded)


def _exit_code(findings: Sequence[Finding], *, failed: bool) -> ExitCode:
    if not failed:
        return ExitCode.DONE
    return ExitCode.UNREADABLE if is_malformed(findings) else ExitCode.FINDINGS


def _check_statements(
    root: str, loaded: Loaded, disputes: "DisputeFile", candidates: "CandidateFile | None"
) -> Iterator[Part]:
    """Hold claims and disputes against the data, for each of these files that there is."""
    pool = loaded.pool
    assert pool is not None
    if os.path.lexists(os.path.join(root, store.CLAIMS)):
        from orchtrace_corpus.corpus.analysis.claims import check, evaluate, falling_today

        file = store.read_claims(root)
        verdicts = evaluate(file.claims, pool, disputes.disputes)
        findings, falling = check(file, pool, verdicts), falling_today(verdicts)
        before = committed(root) if falling else None
        known = None if before is None else falling_today(evaluate(file.claims, before))
        part = Part(PartName.CLAIMS, _exit_code(findings, failed=bool(findings)), findings, total=len(file.claims))
        yield part._replace(
            contested=sum(bool(one.contested) for one in verdicts),
            falling=falling,
            fell=None if known is None else tuple(name for name in falling if name not in known),
        )
    if disputes.places is not None:
        from orchtrace_corpus.corpus.model.disputes import check as check_disputes

        findings = check_disputes(disputes, pool.papers, pool.taxonomy, store.read_codebook(root, pool).rules())
        number = len(disputes.disputes)
        yield Part(PartName.DISPUTES, _exit_code(findings, failed=bool(findings)), findings, total=number)
    if any(os.path.lexists(os.path.join(root, name)) for name in (store.PUBLISHED_TABLE, store.CORRECTIONS)):
        from orchtrace_corpus.corpus.rules.corrections import check as check_corrections

        bibliography = store.read_bibliography(root)
        findings = check_corrections(bibliography, loaded)
        number = len(bibliography.corrections)
        yield Part(PartName.PUBLISHED, _exit_code(findings, failed=bool(findings)), findings, total=number)
    if os.path.lexists(os.path.join(root, store.CODEBOOK)):
        book = store.read_codebook(root, pool)
        code = _exit_code(book.findings, failed=bool(book.findings))
        yield Part(PartName.CODEBOOK, code, book.findings, total=len(book.codings))
    if os.path.lexists(os.path.join(root, store.PROTOCOL)):
        protocol, found = store.read_protocol(root, pool.taxonomy)
        number = len(protocol.queries) if protocol else 0
        yield Part(PartName.PROTOCOL, _exit_code(found, failed=bool(found)), found, total=number)
    if os.path.lexists(os.path.join(root, store.SEARCHES)):
        from orchtrace_corpus.corpus.analysis.flow import check as check_searches

        searches = store.read_searches(root)
        found = check_searches(searches, pool, candidates.candidates if candidates else ())
        yield Part(PartName.SEARCHES, _exit_code(found, failed=has_errors(found)), found, total=len(searches.runs))


def _examples(root: str) -> Iterator[str]:
    """The places that still say what `corpus init` wrote as an example."""
    names = ("README.md", "LICENSE", store.TAXONOMY, store.PAPERS, store.EXCLUSIONS, store.PROTOCOL, "requirements.txt")
    starter = store.read_bytes(os.path.join(os.path.dirname(__file__), "templates"), names)
    for name, data in store.read_bytes(root, names).items():
        known = set(re.findall(_EXAMPLE, starter.get(name, b"")))
        for number, line in enumerate(data.splitlines(keepends=True), 1):
            if line in known or line.startswith(b"orchtrace-corpus @ file:"):  # which no other machine can install
                yield f"{name}:{number}"


def _unmerged(root: str) -> CorpusError | None:
    """What is wrong while git merges and data files are undecided; git is asked only if a merge has left a trace."""
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
        names = revisions.unmerged(root)
    except CorpusError:  # no git, so none that merges
        return None
    message = f"git has two versions of {', '.join(names)}; decide, then git add"
    return DataFileError(message) if names else None


def committed(root: str) -> Pool | None:
    """The corpus with the papers of the last commit, if it is known and they are other papers."""
    from orchtrace_corpus.corpus.sources import revisions

    try:
        files = revisions.find(root, "HEAD").read(store.PAPERS)
        is_new = files and files[store.PAPERS] != store.read_bytes(root, [store.PAPERS])[store.PAPERS]
        return store.load(root, instead=files).pool if is_new else None
    except CorpusError:  # no repository, no commit, or no git
        return None


def _compare(name: PartName, make_documents: "Callable[[], Sequence[Document]]") -> Part:
    try:
        stale = tuple(document for document in make_documents() if document.is_stale)
    except CorpusError as error:
        return Part(name, error.exit_code, failure=error)
    return Part(name, ExitCode.FINDINGS if stale else ExitCode.DONE, stale=stale)


def _read_codes(select_codes: Sequence[str], ignore_codes: Sequence[str]) -> tuple[list[str], list[str]]:
    chosen, ignored = (
        [code for text in texts for prefix in text.split(",") for code in codes(prefix.strip())]
        for texts in (select_codes, ignore_codes)
    )
    if chosen and set(chosen) <= set(ignored):
        raise CommandUseError("--ignore leaves out everything that --select names", "Give one of them.")
    return chosen, ignored


def _is_fixable(root: str, findings: Sequence[Finding]) -> bool:
    if not findings:
        return False
    from orchtrace_corpus.corpus.edit.fixes import FIXABLE, changes

    if not any(finding.code in FIXABLE for finding in findings):
        return False
    loaded = store.load(root, keep=True)
    candidates = _read_candidates(root, loaded)
    of_candidates = candidates.places if candidates else None
    places = (loaded.paper_places, loaded.exclusion_places, of_candidates)
    taxonomy = loaded.pool.taxonomy if loaded.pool is not None else None
    return taxonomy is not None and any(changes(each.file, findings, taxonomy) for each in places if each is not None)
