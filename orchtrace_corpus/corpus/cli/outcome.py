"""The last step of every command that edits data: check the edit, show its effects, write it."""

from collections.abc import Callable, Mapping, Sequence

from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.findings import Finding, printable
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.layout import MAX_LINES, first_and_more
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.proposal import Judgement, Proposal, judge, write
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.store import CorpusFiles

_MAX_FINDINGS = 3  # of one kind that are shown
_MAX_DIFF_LINES = 1000

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
"""The kinds of findings that an edit can cause in other files: prefix of the code, noun in singular and plural, fix.

A finding is of the first kind that fits."""


def apply(
    session: CorpusSession,
    corpus: CorpusFiles,
    proposal: Proposal,
    *,
    dry_run: bool = False,
    show: Callable[[str], None] | None = None,
    confirm: Callable[[], bool] | None = None,
    origins: Mapping[str, str] | None = None,
) -> int:
    """Write an edit unless it causes errors, show its effects, and return the exit code.

    The diff goes to standard output, or to `show`; everything else goes to standard error. After the effects are
    shown, `confirm` asks if the edit is to be written. `origins` has the file and line of each imported paper, by key;
    findings name them, not their own location. A `DataFileError` is raised if a file cannot be written, or has changed.
    """
    output = session.output
    judgement = judge(corpus, proposal)
    if not judgement.documents:
        output.note("corpus: nothing changes")
        return ExitCode.DONE
    can_write = judgement.is_allowed and not dry_run
    is_asked = can_write and confirm is not None
    if is_asked or dry_run:
        _show_broken(session, judgement.broken, is_written=False)
    if is_asked and confirm is not None and not confirm():
        return ExitCode.DONE
    written = write(judgement) if can_write else ()
    if dry_run or written:
        _show_diff(session, judgement, show)
    if judgement.new_findings:
        count = render.summary(judgement.new_findings)
        where = "lines are counted with the edit made:" if origins is None else "at these lines:"
        if not judgement.is_allowed:
            head = f"corpus: the edit would bring {count}, so nothing was written; {where}"
        elif dry_run:
            head = f"corpus: the edit would bring {count}; {where}"
        else:
            head = f"corpus: the edit brings {count}:"
        texts = []
        for finding in judgement.new_findings:
            text = str(finding)
            if origins and finding.record in origins and finding.location.path == store.PAPERS:
                text = f"{origins[finding.record]}: {text.removeprefix(f'{finding.location}: ')}"
            texts.append(text)
        output.tell("\n".join((head, *first_and_more(texts, MAX_LINES, "and {:,} more"))))
    for name in written:
        output.note(f"wrote {name}")
    if judgement.is_allowed:
        for verdict in judgement.falling:
            verb = "would fall" if dry_run else "falls"
            sentence = printable(verdict.claim.claim, limit=300)
            output.tell(f"corpus: no error, but over the pool of today {verdict.claim.id} {verb}: {sentence}")
    if not is_asked and not dry_run:
        _show_broken(session, judgement.broken, is_written=True)
    if not {store.PAPERS, store.EXCLUSIONS, store.CANDIDATES}.isdisjoint(written):
        output.note("corpus build regenerates the rest; CONTRIBUTING.md says whether to commit it")
    if dry_run and judgement.is_allowed:
        output.note("corpus: nothing was written (--dry-run)")
    return ExitCode.DONE if judgement.is_allowed else ExitCode.FINDINGS


def _show_diff(session: CorpusSession, judgement: Judgement, show: Callable[[str], None] | None) -> None:
    """Show the diff of an edit; of a long one, only its size."""
    diff = judgement.diff
    size = diff.count("\n")
    if size <= _MAX_DIFF_LINES:
        session.output.write(diff) if show is None else show(diff.rstrip("\n"))
        return
    changes = [line[0] for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    names = ", ".join(document.name for document in judgement.documents)
    counts = f"{changes.count('+'):,} lines added, {changes.count('-'):,} removed"
    session.output.note(f"corpus: {names}: {counts}; a difference of {size:,} lines is not shown")


def _show_broken(session: CorpusSession, broken: Sequence[Finding], *, is_written: bool) -> None:
    """Show the findings that an edit causes in other files, by kind, each kind with its fix."""
    if not broken:
        return
    lines: list[str] = []
    counts: list[str] = []
    remaining = list(broken)
    for prefix, singular, plural, fix in _KINDS:
        findings = [finding for finding in remaining if finding.code.startswith(prefix)]
        remaining = [finding for finding in remaining if finding not in findings]
        if not findings:
            continue
        names = list(dict.fromkeys(printable(finding.record) for finding in findings))
        count = len(names) if prefix == "C1" else len(findings)  # a claim can have several findings
        counts.append(f"{count} {singular if count == 1 else plural}")
        texts = [str(finding) for finding in findings]
        lines += first_and_more(texts, _MAX_FINDINGS, "... and {} more; see corpus check")
        lines.append(f"To fix: {fix.format(names=' '.join(first_and_more(names, _MAX_FINDINGS, '...')))}.")
    all_counts = " and ".join(part for part in (", ".join(counts[:-1]), counts[-1]) if part)
    if is_written:
        effect = f"breaks {all_counts}: corpus check fails until that is fixed"
    else:
        effect = f"would break {all_counts}, and corpus check would fail"
    session.output.tell("\n".join((f"corpus: the edit {effect}:", *lines)))
