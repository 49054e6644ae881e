"""What `corpus trace validate` does, apart from its options."""

from collections.abc import Sequence
from typing import NamedTuple

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.findings import Finding, has_errors
from orchtrace_corpus.base.text import findings as render
from orchtrace_corpus.base.text.findings import FindingsFormat
from orchtrace_corpus.base.workers import in_order
from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.cli.loading import documents_of
from orchtrace_corpus.trace.model.decode import Document, decode
from orchtrace_corpus.trace.model.store import is_unreadable
from orchtrace_corpus.trace.rules.across import Names


class Options(NamedTuple):
    """How findings are reported.

    Attributes:
        strict: Whether warnings fail, too.
        max_findings: How many are shown; 0 for all.
        form: The form of the output.
    """

    strict: bool = False
    max_findings: int = 0
    form: FindingsFormat = FindingsFormat.TEXT


def report(session: Session, paths: Sequence[str], options: Options) -> ExitCode:
    """Show every mistake in traces, and return the exit code.

    Raises:
        CommandUseError: Standard input is wanted twice, or it is a terminal.
        DataFileError: A file cannot be read.
    """
    found: list[Finding] = []
    count = half_checked = 0
    names = Names()
    for findings, name, path, line in in_order(_check, documents_of(session, paths), size_bytes=Document.size):
        count += 1
        half_checked += not name
        found += findings
        if name:
            found += names.check(name, path, line)
    shown = found[: options.max_findings or len(found)]
    if options.form is FindingsFormat.TEXT:
        session.output.show(render.text(shown))
    elif options.form is FindingsFormat.GITHUB:
        session.output.write(render.github(shown))
    elif options.form is FindingsFormat.SARIF:
        from orchtrace_corpus.base.text import sarif

        session.output.write(sarif.document(shown))
    else:
        session.output.write(render.data(shown, options.max_findings or len(found)))
    session.output.note(_summary(found, count, half_checked))
    if is_unreadable(found):
        return ExitCode.UNREADABLE
    return ExitCode.FINDINGS if has_errors(found) or (options.strict and found) else ExitCode.DONE


def _check(document: Document) -> tuple[tuple[Finding, ...], str, str, int]:
    """What is wrong with a trace; its name, empty where it follows no schema; where it stands."""
    decoded = decode(document)
    name = decoded.trace.trace_id if decoded.trace is not None else ""
    return rules.check(decoded), name, document.path, document.line


def _summary(found: list[Finding], count: int, half_checked: int) -> str:
    text = f"{render.summary(found)} in {count} {'trace' if count == 1 else 'traces'}"
    if half_checked:
        where = "" if count == 1 else f" in {half_checked} of them"
        text += f"; the rules of the graph are checked{where} once {'it is' if len(found) == 1 else 'these are'} mended"
    return text
