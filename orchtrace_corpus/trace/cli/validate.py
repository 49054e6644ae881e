"""The command `corpus trace validate`."""

from typing import Annotated

from orchtrace_corpus.base.commands.declarations import Context, Option
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.findings import has_errors
from orchtrace_corpus.base.text.findings import FindingsFormat, summary
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.trace.cli.arguments import Files, SessionName
from orchtrace_corpus.trace.cli.loading import documents_of
from orchtrace_corpus.trace.model.store import is_unreadable


def validate(
    ctx: Context,
    paths: Files,
    name: SessionName = "",
    strict: Annotated[bool, Option("--strict", help="Treat warnings as errors.")] = False,
    max_findings: Annotated[
        int, Option("--max-findings", metavar="N", min=0, help="Show at most N findings; 0 shows all.")
    ] = 0,
    output_format: Annotated[FindingsFormat, Option("--format", "-f", help="The output format.")] = FindingsFormat.TEXT,
) -> int:
    """Check traces against the schema and the rules of the graph, and report every error.

    A file holds one trace, or one on each line; a log is converted to traces first. The rules of the graph (codes T201
    and up) are checked only for traces that are JSON and follow the schema (T101 to T115). Exit code 0: nothing wrong,
    or warnings only; 1: errors, or a log that cannot be read; 3: a file cannot be read as JSON.

    \b
    Examples:
      corpus trace validate data/traces
      corpus trace validate path/to/logs
      corpus trace validate data/traces/centralized.json --strict
      corpus trace validate data/traces --format json
    """
    from orchtrace_corpus.trace import rules

    session = Session(*ctx.obj)
    result = rules.validate(documents_of(session, paths, name))
    session.show_findings(result.findings, output_format, max_findings or None)
    text = f"{summary(result.findings)} in {pluralize(result.traces, 'trace')}"
    if result.schema_only:  # the number of traces that do not follow the schema
        where = "" if result.traces == 1 else f" in {result.schema_only} of them"
        subject = "it is" if len(result.findings) == 1 else "these are"
        text += f"; the rules of the graph are checked{where} once {subject} fixed"
    session.output.note(text)
    if is_unreadable(result.findings):
        return ExitCode.UNREADABLE
    if has_errors(result.findings) or (strict and result.findings):
        return ExitCode.FINDINGS
    return ExitCode.DONE
