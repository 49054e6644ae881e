"""The end of every command that edits data: judge the edit, show what it brings and breaks, write it."""

from collections.abc import Callable, Mapping, Sequence

from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.findings import Finding, printable
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.layout import MAX_LINES, first_and_more
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.proposal import Judgement, Proposal, judge, write
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.store import CorpusFiles

_SHOWN = 3
_MOST_LINES = 1000
"""A difference of more lines is counted, and not shown."""

_KINDS = (
    ("C1", "claim", "claims", "corpus claims {names} shows the records; data/claims.yaml says what is expected"),
    ("C201", "dispute", "disputes", "take what is disputed about {names} out of data/disputes.yaml"),
    ("C2", "dispute", "disputes", "write what {names} has now as 'stands' in data/disputes.yaml, with why"),
    ("F119", "published record", "published records", "put {names} back, or take it out of data/published.yaml"),
    ("D11", "candidate", "candidates", "take {names} out of data/candidates.yaml"),
    ("P103", "correction", "corrections", "change the row in data/corrections.csv, or remove it"),
    ("P1", "published value", "published values", "give each a row in data/corrections.csv, with its source"),
    ("B10", "case of the codebook", "cases of the codebook", "change the case in data/codebook.yaml, or the record"),
    ("S1", "row of scale", "rows of scale", "name another record in data/scale.yaml, or leave the field out"),
    ("", "entry of another file", "entries of other files", "corpus check shows all of them"),
)
"""Kinds of what an edit can break: the beginning of its codes, its nouns, and the command that fixes it."""


def apply(
    session: CorpusSession,
    corpus: CorpusFiles,
    proposal: Proposal,
    *,
    dry_run: bool = False,
    show: Callable[[str], None] | None = None,
    agree: Callable[[], bool] | None = None,
    lines: Mapping[str, str] | None = None,
) -> int:
    """Write an edit if it brings no new error, and show what changes; return the exit code.

    The diff goes to standard output, everything else to standard error. A diff of more than 1,000 lines is counted.

    Args:
        session: Where the output goes.
        corpus: The corpus.
        proposal: The edit.
        dry_run: Show the diff, and write nothing.
        show: Shows the diff instead, for a command with other things on standard output.
        agree: Asks whether to go on, after it was said what the edit would break; without it, nobody is asked.
        lines: By the keys of papers that were imported, the file and the line that each comes from, which findings
            about them name instead of their place in the data.

    Raises:
        DataFileError: A file cannot be read or written, or has changed since it was read.
    """
    output = session.output
    judgement = judge(corpus, proposal)
    if not judgement.documents:
        output.note("corpus: nothing changes")
        return ExitCode.DONE
    is_written = judgement.is_allowed and not dry_run
    asks = agree if is_written else None
    if asks is not None or dry_run:
        _show_broken(session, judgement.broken, is_made=False)
    if asks is not None and not asks():
        return ExitCode.DONE
    written = write(judgement) if is_written else ()
    if dry_run or written:
        _show_difference(session, judgement, show)
    if judgement.new:
        count = render.summary(judgement.new)
        counted = "lines are counted with the edit made:" if lines is None else "at these lines:"
        head = f"corpus: the edit would bring {count}; {counted}" if dry_run else f"corpus: the edit brings {count}:"
        if not judgement.is_allowed:
            head = f"corpus: the edit would bring {count}, so nothing was written; {counted}"
        said = []
        for finding in judgement.new:
            text, line = str(finding), (lines or {}).get(finding.record)
            is_imported = line is not None and finding.location.path == store.PAPERS
            said.append(f"{line}: {text.removeprefix(f'{finding.location}: ')}" if is_imported else text)
        output.tell("\n".join((head, *first_and_more(said, MAX_LINES, "and {:,} more"))))
    for name in written:
        output.note(f"wrote {name}")
    for verdict in judgement.falling if judgement.is_allowed else ():
        verb = "would fall" if dry_run else "falls"
        sentence = printable(verdict.claim.claim, limit=300)
        output.tell(f"corpus: no error, but over the pool of today {verdict.claim.id} {verb}: {sentence}")
    if asks is None and not dry_run:
        _show_broken(session, judgement.broken, is_made=True)
    if not {store.PAPERS, store.EXCLUSIONS, store.CANDIDATES}.isdisjoint(written):
        output.note("corpus build regenerates the rest; CONTRIBUTING.md says whether to commit it")
    if dry_run and judgement.is_allowed:
        output.note("corpus: nothing was written (--dry-run)")
    return ExitCode.DONE if judgement.is_allowed else ExitCode.FINDINGS


def _show_difference(session: CorpusSession, judgement: Judgement, show: Callable[[str], None] | None) -> None:
    """Show what an edit changes; of a change that nobody would read, how large it is."""
    diff = judgement.diff
    number = diff.count("\n")
    if number <= _MOST_LINES:
        session.output.write(diff) if show is None else show(diff.rstrip("\n"))
        return
    changes = [line[0] for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    names = ", ".join(document.name for document in judgement.documents)
    counts = f"{changes.count('+'):,} lines added, {changes.count('-'):,} removed"
    session.output.note(f"corpus: {names}: {counts}; a difference of {number:,} lines is not shown")


def _show_broken(session: CorpusSession, broken: Sequence[Finding], *, is_made: bool) -> None:
    """Show what an edit breaks, or would break, and how each kind of it is mended."""
    if not broken:
        return
    lines, counts, left = [], [], list(broken)
    for start, one, several, mend in _KINDS:
        some = [finding for finding in left if finding.code.startswith(start)]
        left = [finding for finding in left if finding not in some]
        if not some:
            continue
        names = list(dict.fromkeys(printable(finding.record) for finding in some))
        count = len(names) if start == "C1" else len(some)  # a claim can break in more than one way
        counts.append(f"{count} {one if count == 1 else several}")
        lines += first_and_more([str(finding) for finding in some], _SHOWN, "... and {} more; see corpus check")
        lines.append(f"To mend: {mend.format(names=' '.join(first_and_more(names, _SHOWN, '...')))}.")
    parts = " and ".join(part for part in (", ".join(counts[:-1]), counts[-1]) if part)
    verb = f"breaks {parts}: corpus check fails until that is mended"
    if not is_made:
        verb = f"would break {parts}, and corpus check would fail"
    session.output.tell("\n".join((f"corpus: the edit {verb}:", *lines)))
