"""Shows what `corpus validate` finds, without Typer."""

from collections.abc import Sequence

from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.findings import has_errors, is_malformed
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.findings import FindingsFormat
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.corpus.checks import find_problems, fixed_documents
from orchtrace_corpus.corpus.cli.session import CorpusSession


def report(
    session: CorpusSession,
    wanted: Sequence[str] = (),
    ignored: Sequence[str] = (),
    fix: bool = False,
    strict: bool = False,
    max_findings: int = 0,
    form: FindingsFormat = FindingsFormat.TEXT,
) -> ExitCode:
    """Show every mistake in the data, and return the exit code.

    Args:
        session: The corpus, and where the output goes.
        wanted: Codes, or beginnings of codes, several of them in a text if there are commas in it; all if empty.
        ignored: Those that are left out.
        fix: Whether to mend first what needs no decision.
        strict: Whether warnings fail, too.
        max_findings: How many are shown; 0 for all.
        form: The form of the output.

    Raises:
        CommandUseError: Options contradict each other.
        CorpusError: There is no corpus, or it cannot be read.
    """
    root = session.writable_root()
    for _ in range(5 if fix else 0):
        from orchtrace_corpus.corpus import build

        documents = fixed_documents(root, wanted, ignored)
        for document in documents:
            session.output.tell(document.diff.rstrip("\n"))
        for name in build.write(root, documents):
            session.output.note(f"mended {name}")
        if not documents:
            break
    validation = find_problems(root, wanted, ignored)
    findings, pool = validation.findings, validation.pool
    limit = max_findings or len(findings)
    session.show_findings(findings, form, limit)
    if len(findings) > limit:
        session.output.note(f"… and {len(findings) - limit} more; --max-findings {limit} leaves them out")
    checked = "the taxonomy"
    if pool is not None:
        checked = f"{pluralize(len(pool.papers), 'paper')} and {pluralize(len(pool.exclusions), 'exclusion')}"
    others = f"; {validation.left_out} more left out by --select or --ignore" if validation.left_out else ""
    session.output.note(f"{render.summary(findings)} in {checked}{others}")
    if not fix and validation.is_fixable:
        session.output.note("Some of these can be mended for you: corpus validate --fix")
    if is_malformed(findings):
        return ExitCode.UNREADABLE
    return ExitCode.FINDINGS if has_errors(findings) or (strict and findings) else ExitCode.DONE
