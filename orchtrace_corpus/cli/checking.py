"""What `corpus check` does."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchtrace_corpus.base.errors import CorpusError, ExitCode
from orchtrace_corpus.base.findings import Finding, Severity, has_errors, is_malformed
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.layout import Line, Span
from orchtrace_corpus.corpus import build, rules
from orchtrace_corpus.corpus.build import Document
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.records import Pool

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.model.disputes import DisputeFile

_DIFF_LINES = 40
"""How much of each file's difference is shown; more would push the summary off the screen."""

_TRACES = os.path.join("data", "traces")

_MENDS = {"arxiv": "corpus fetch --offline --write"}
"""The commands that mend a part, where it is not the command of the part's name."""


def check(session: CorpusSession) -> ExitCode:
    """Show a line for each part of what CI asks, and return the worst exit code.

    Raises:
        CorpusError: There is no corpus, or it cannot be read.
    """
    root = session.writable_root()
    loaded = store.load(root, keep=True)
    scale = store.read_scale(root, loaded)
    found = (*rules.check(loaded), *loaded.missing, *scale.findings)
    session.output.show(render.text(found))
    malformed, failed = is_malformed(found), has_errors(found)
    parts = [_line("validate", not failed, render.summary(found), "mend what is listed above")]
    code = ExitCode.UNREADABLE if malformed else ExitCode.FINDINGS if failed else ExitCode.DONE
    if loaded.pool is None or failed:
        present = {"claims": store.CLAIMS, "disputes": store.DISPUTES, "fmt": "", "build": "", "arxiv": store.ARXIV}
        skipped = (name for name, file in present.items() if os.path.lexists(os.path.join(root, file)))
        parts += [(Span(f"{name:9} skipped: the data has errors", "muted"),) for name in skipped]
    else:
        pool = loaded.pool
        disputes = store.read_disputes(root, pool.taxonomy)
        claimed, claim_code = _claims(session, root, pool, disputes)
        parts += claimed
        code = max(code, claim_code)
        makers: dict[str, Callable[[], list[Document]]] = {
            "fmt": lambda: build.data_documents(root, pool.taxonomy, loaded),
            "build": lambda: build.generated(root, pool, scale, disputes),
        }
        if os.path.lexists(os.path.join(root, store.ARXIV)):
            makers["arxiv"] = lambda: build.arxiv_documents(root)
        for name, documents in makers.items():
            try:
                stale = [document for document in documents() if document.is_stale]
            except CorpusError as error:
                parts.append(_line(name, False, str(error).replace("\n", "; "), ""))
                code = max(code, error.exit_code)
                continue
            for document in stale:
                session.output.write(_shortened(document.diff, name))
            parts.append(_line(name, not stale, _summary(stale), _MENDS.get(name, f"corpus {name}")))
            code = max(code, ExitCode.FINDINGS) if stale else code
    if os.path.isdir(os.path.join(root, _TRACES)):
        line, trace_code = _traces(session, root)
        parts.append(line)
        code = max(code, trace_code)
    session.output.show(parts)
    return code


def _traces(session: CorpusSession, root: str) -> tuple[Line, ExitCode]:
    """Check the example traces: their line, and the exit code. Warnings are told in number only."""
    from orchtrace_corpus.trace.model.decode import decode, documents
    from orchtrace_corpus.trace.model.store import is_unreadable, trace_files
    from orchtrace_corpus.trace.rules import check
    from orchtrace_corpus.trace.rules.across import Names

    found: list[Finding] = []
    names = Names()
    count = 0
    try:
        for path in trace_files(os.path.join(root, _TRACES)):
            for document in documents(path):
                count += 1
                decoded = decode(document._replace(path=os.path.relpath(path, root)))
                found += check(decoded)
                if decoded.trace is not None:
                    found += names.check(decoded.trace.trace_id, decoded.document.path, document.line)
    except CorpusError as error:
        return _line("traces", False, str(error).replace("\n", "; "), ""), error.exit_code
    session.output.show(render.text([finding for finding in found if finding.severity is Severity.ERROR]))
    summary = f"{render.summary(found)} in {count} {'trace' if count == 1 else 'traces'}"
    code = ExitCode.FINDINGS if has_errors(found) else ExitCode.DONE
    code = ExitCode.UNREADABLE if is_unreadable(found) else code
    return _line("traces", code is ExitCode.DONE, summary, "see corpus trace validate data/traces"), code


def _claims(session: CorpusSession, root: str, pool: Pool, disputes: "DisputeFile") -> tuple[list[Line], ExitCode]:
    """Hold claims and disputes against the data: a line for each of these files that there is, and the exit code."""
    checked: list[tuple[str, tuple[Finding, ...], str]] = []
    if os.path.lexists(os.path.join(root, store.CLAIMS)):
        from orchtrace_corpus.corpus.analysis.claims import check

        file = store.read_claims(root)
        number = len(file.claims)
        checked.append(("claims", check(file, pool), f"{number} hold{'s' * (number == 1)}"))
    if disputes.places is not None:
        from orchtrace_corpus.corpus.model.disputes import check as check_disputes

        found = check_disputes(disputes, pool.papers, pool.taxonomy)
        checked.append(("disputes", found, f"{len(disputes.disputes)}, as in the data"))
    parts, code = [], ExitCode.DONE
    for name, findings, summary in checked:
        session.output.show(render.text(findings))
        parts.append(_line(name, not findings, render.summary(findings) if findings else summary, "see above"))
        if findings:
            code = max(code, ExitCode.UNREADABLE if is_malformed(findings) else ExitCode.FINDINGS)
    return parts, code


def _shortened(text: str, name: str) -> str:
    lines = text.splitlines(keepends=True)
    more = len(lines) - _DIFF_LINES
    rest = f"... {more} more lines" if name in _MENDS else f"... {more} more lines: corpus {name} --check"
    return text if more <= 0 else "".join((*lines[:_DIFF_LINES], f"{rest}\n"))


def _line(name: str, passed: bool, summary: str, mend: str) -> Line:
    verdict = Span("ok     ", "explicit") if passed else Span("failed ", "warning")
    action = "" if passed or not mend else f"; to mend: {mend}"
    return (Span(f"{name:9} "), verdict, Span(f"{summary}{action}"))


def _summary(stale: Sequence[Document]) -> str:
    if not stale:
        return "up to date"
    names = []
    for document in stale:
        regions = build.edited_regions(document) if document.name == build.README else []
        inside = f" (region {', '.join(regions)})" if regions else ""
        names.append(f"{document.name}{inside}" if document.present is not None else f"{document.name} (missing)")
    return f"differs from the data, or was edited by hand: {', '.join(names)}"
