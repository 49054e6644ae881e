"""The checks of a corpus, as values that `corpus check` shows.

Functions import what only they need: start-up is most of the time of a command.
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

_EXAMPLE_MARKS = ("\nday:", "example", "retrieval", "retrieves", "no licence")
"""Texts, in lower case, that mark a line of a starter file as an example; every new corpus has to replace it."""

_MERGE_FILES = ("AUTO_MERGE", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
"""Files that git keeps in its folder during a merge, or during a command that merges."""


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
        is_skipped: Whether the part was skipped because the data has errors.
        coverage: The share of sourced tags that have evidence.
        contested: The number of claims that count papers with contested tags.
        falling: The claims that hold as written, but fail over the pool of today.
        fell: The claims in `falling` that did not fail with the papers of the last commit; None if the last commit is
            unknown or has the same papers.
        examples: The places (`FILE:LINE`) that still have an example of `corpus init`.
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
        """The worst exit code of a part; `ExitCode.DONE` if the corpus passes."""
        return max(part.exit_code for part in self.parts)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all parts."""
        return tuple(finding for part in self.parts for finding in part.findings)


def check(root: str = "") -> Check:
    """Run every check that a pull request must pass, except for those of traces.

    Args:
        root: The folder that holds `data/`. By default it is the nearest one, or the corpus of the installation.

    Raises:
        CorpusError: There is no corpus, or it cannot be read.
    """
    return Check(tuple(check_parts(CorpusFiles(root or store.find_root().path))))


def check_parts(files: CorpusFiles) -> Iterator[Part]:
    """Yield the parts of a check as soon as they are done; raise the errors of `check`."""
    merge_error = _unmerged_error(files.root)
    if merge_error is not None:
        yield Part(PartName.MERGE, ExitCode.FINDINGS, failure=merge_error)
    files.check_form()
    findings = tuple(files.findings(PartName.DATA))
    fixes = fixing_commands(files, findings) if has_errors(findings) else ()
    yield Part(PartName.DATA, exit_code_of(findings), findings, fixes=fixes)
    rows_by_part = {row.part or row.name: row for row in store.DATA_FILES if files.has_any(row)}
    del rows_by_part[PartName.DATA]
    has_arxiv = rows_by_part.pop(PartName.ARXIV, None) is not None
    if files.loaded.pool is None or has_errors(findings):
        skipped = [*rows_by_part, PartName.FORM, PartName.BUILD]
        if has_arxiv:
            skipped.append(PartName.ARXIV)
        yield from (Part(name, is_skipped=True) for name in skipped)
        return
    from orchtrace_corpus.corpus import build
    from orchtrace_corpus.corpus.analysis.statistics import summarise

    summary = summarise(files.pool)
    if summary.evidence:
        yield Part(PartName.EVIDENCE, coverage=summary.evidence[-1])  # of all fields together
    for name, row in rows_by_part.items():
        if row.path == store.CLAIMS:
            yield _check_claims(files)
        else:
            findings = files.findings_of(row)
            yield Part(name, exit_code_of(findings), findings, total=files.content(row.name).total)
    part_by_crlf_file: dict[str, str] = {}
    yield _compare(PartName.FORM, lambda: build.data_documents(files), part_by_crlf_file)
    yield _compare(PartName.BUILD, lambda: build.generated(files, summary), part_by_crlf_file)
    if has_arxiv:
        yield _compare(PartName.ARXIV, lambda: build.arxiv_documents(files), part_by_crlf_file)
    if part_by_crlf_file:
        yield Part(PartName.LINE_ENDS, ExitCode.FINDINGS, failure=_crlf_error(part_by_crlf_file))
    examples = tuple(_find_examples(files))
    if examples:
        yield Part(PartName.EXAMPLE, examples=examples)


def fixing_commands(files: CorpusFiles, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return commands that fix some of the findings; empty if there are none."""
    if not findings:
        return ()
    from orchtrace_corpus.corpus.edit.fixes import fixed_values, tag_commands

    commands = ["corpus check --fix"] if fixed_values(files, findings) else []
    return (*commands, *tag_commands(files, findings))


def exit_code_of(findings: Sequence[Finding], *, strict: bool = False) -> ExitCode:
    """Return the exit code of a command that reports these findings; with `strict`, warnings count as errors."""
    if is_malformed(findings):
        return ExitCode.UNREADABLE
    if has_errors(findings) or (strict and findings):
        return ExitCode.FINDINGS
    return ExitCode.DONE


def _check_claims(files: CorpusFiles) -> Part:
    """Check the claims over the published pool and over the pool of today."""
    from orchtrace_corpus.corpus.analysis.claims import check, evaluate, falling_today

    claims = files.claims.claims
    verdicts = evaluate(claims, files.pool, files.disputes.items)
    findings = check(files.claims, files.pool, verdicts)
    falling = falling_today(verdicts)
    fell = None
    committed_pool = read_committed(files) if falling else None
    if committed_pool is not None:
        falling_before = falling_today(evaluate(claims, committed_pool))
        fell = tuple(claim_id for claim_id in falling if claim_id not in falling_before)
    part = Part("claims", exit_code_of(findings), findings, total=len(claims), falling=falling, fell=fell)
    return part._replace(contested=len([verdict for verdict in verdicts if verdict.contested]))


def _find_examples(files: CorpusFiles) -> Iterator[str]:
    """Yield the places (`FILE:LINE`) that still have an example of a starter file."""
    templates = os.path.join(os.path.dirname(__file__), "templates")
    for name in ("README.md", "LICENSE", *(row.path for row in store.DATA_FILES), "requirements.txt"):
        template = read_text(templates, name) or ""
        marks = [mark for mark in _EXAMPLE_MARKS if mark in f"\n{template.lower()}"]
        lines = template.splitlines(keepends=True)
        examples = [line for line in lines if any(mark in f"\n{line.lower()}" for mark in marks)]
        if name == "requirements.txt":
            examples.append("orchtrace-corpus @ file:")  # no other machine can install it
        if not examples:
            continue
        text = files.text(name) or ""
        if any(example in text for example in examples):  # a fast test before the lines are numbered
            for number, line in enumerate(text.split("\n"), 1):
                if f"{line}\n".startswith(tuple(examples)):
                    yield f"{name}:{number}"


def _unmerged_error(root: str) -> CorpusError | None:
    """Return the error about data files that a merge of git has left undecided; None if there are none."""
    folder = os.path.abspath(root)
    git_folder = os.path.join(folder, ".git")
    while not os.path.lexists(git_folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        git_folder = os.path.join(folder, ".git")
    if os.path.isfile(git_folder):  # a linked working tree or a submodule: the file names the folder
        with open(git_folder, encoding="utf-8", errors="surrogateescape") as file:
            git_folder = os.path.join(folder, file.readline().removeprefix("gitdir:").strip())
    if not any(os.path.lexists(os.path.join(git_folder, name)) for name in _MERGE_FILES):
        return None  # without running git, which takes longer
    from orchtrace_corpus.corpus.sources import revisions

    try:
        paths = revisions.list_unmerged(root)
    except CorpusError:  # git is not installed, so it does not merge
        return None
    if not paths:
        return None
    command = f"{store.MERGE_DRIVER} && git checkout --merge {' '.join(paths)}"
    message = f"git has two versions of {', '.join(paths)}; decide, then git add; or merge by records: {command}"
    return DataFileError(message)


def read_committed(files: CorpusFiles) -> Pool | None:
    """Return the corpus with the papers of the last commit; None if it is unknown, or if the papers are the same."""
    from orchtrace_corpus.corpus.sources import revisions

    try:
        committed = revisions.find_revision(files.root, "HEAD").read(store.PAPERS)
        if not committed or committed[store.PAPERS] == files.data(store.PAPERS):
            return None
        return CorpusFiles(files.root, committed).loaded.pool
    except CorpusError:  # no repository, no commit, or no git
        return None


def _compare(name: str, make_documents: "Callable[[], Sequence[Document]]", part_by_crlf_file: dict[str, str]) -> Part:
    """Return the part that compares files with the data.

    Files that differ only in their line ends are not in the part: they are added to `part_by_crlf_file`.
    """
    try:
        stale = [document for document in make_documents() if document.is_stale]
    except CorpusError as error:
        return Part(name, error.exit_code, failure=error)
    for document in stale:
        if document.differs_in_line_ends:
            part_by_crlf_file.setdefault(document.name, name)
    stale = [document for document in stale if document.name not in part_by_crlf_file]
    return Part(name, ExitCode.FINDINGS if stale else ExitCode.DONE, stale=tuple(stale))


def _crlf_error(part_by_crlf_file: Mapping[str, str]) -> CorpusError:
    """Return the error that names the files with CRLF line ends, and the commands that fix them."""
    from orchtrace_corpus.base.text.layout import first_names_and_more, pluralize

    parts = dict.fromkeys(part_by_crlf_file.values())
    commands = ", then ".join("corpus check --fix" if name == PartName.FORM else f"corpus {name}" for name in parts)
    subject = pluralize(len(part_by_crlf_file), "file has CRLF line ends", "files have CRLF line ends")
    message = f"{subject}, not LF: {first_names_and_more(list(part_by_crlf_file), 4)}; to fix: {commands}"
    return DataFileError(f"{message}; with '* text=auto eol=lf' in .gitattributes, git writes LF")


def read_codes(select_codes: Sequence[str], ignore_codes: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the selected codes (an empty list selects all) and the ignored codes.

    Each argument holds texts with codes, or beginnings of codes, separated by commas.
    """
    selected = _expand_codes(select_codes)
    ignored = _expand_codes(ignore_codes)
    if selected and set(selected) <= set(ignored):
        raise CommandUseError("--ignore leaves out everything that --select names", "Give one of them.")
    return selected, ignored


def _expand_codes(texts: Sequence[str]) -> list[str]:
    prefixes = [prefix.strip() for text in texts for prefix in text.split(",")]
    return [code for prefix in prefixes for code in codes_with_prefix(prefix)]
