"""`corpus trace validate`."""

from typing import Annotated

import typer

from orchtrace_corpus.cli.session import Session
from orchtrace_corpus.cli.trace.loading import FILES_HELP, documents_of
from orchtrace_corpus.errors import ExitCode
from orchtrace_corpus.findings import Finding, has_errors
from orchtrace_corpus.render import findings as render
from orchtrace_corpus.render.findings import FindingsFormat
from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.decode import Document, decode
from orchtrace_corpus.trace.parallel import in_order
from orchtrace_corpus.trace.rules.across import Names
from orchtrace_corpus.trace.store import is_unreadable

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def validate(
    ctx: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="FILE...", help=FILES_HELP)],
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings fail, too.")] = False,
    max_findings: Annotated[
        int, typer.Option("--max-findings", metavar="N", min=0, help="Show no more than N findings; 0 shows all.")
    ] = 0,
    output_format: Annotated[
        FindingsFormat, typer.Option("--format", "-f", help="The form of the output.")
    ] = FindingsFormat.TEXT,
) -> int:
    """Report every mistake in traces: against the schema, and against the rules of the graph.

    A file holds one trace, or one on each line. What is no JSON, or does not follow the schema (T1..), is held
    against the rules of the graph (T2..) only once it is mended. Exit code 0: nothing wrong, or warnings only;
    1: errors; 3: a file cannot be read as JSON.

    \b
    Examples:
      corpus trace validate data/traces
      corpus trace validate data/traces/centralized.json --strict
      corpus trace validate data/traces --format json
    """
    session = Session(*ctx.obj)
    found: list[Finding] = []
    count = half_checked = 0
    names = Names()
    for findings, name, path, line in in_order(_check, documents_of(session, paths)):
        count += 1
        half_checked += not name
        found += findings
        if name:
            found += names.check(name, path, line)
    shown = found[: max_findings or len(found)]
    if output_format is FindingsFormat.TEXT:
        session.output.show(render.text(shown))
    elif output_format is FindingsFormat.GITHUB:
        session.output.write(render.github(shown))
    elif output_format is FindingsFormat.SARIF:
        from orchtrace_corpus.render import sarif

        session.output.write(sarif.document(shown))
    else:
        session.output.write(render.data(shown, max_findings or len(found)))
    session.output.note(_summary(found, count, half_checked))
    if is_unreadable(found):
        return ExitCode.UNREADABLE
    return ExitCode.FINDINGS if has_errors(found) or (strict and found) else ExitCode.DONE


def _check(document: Document) -> tuple[tuple[Finding, ...], str, str, int]:
    """What is wrong with a trace; its name, empty where it follows no schema; where it stands."""
    decoded = decode(document)
    name = decoded.trace.trace_id if decoded.trace is not None else ""
    return rules.check(decoded), name, document.path, document.line


def _summary(found: list[Finding], count: int, half_checked: int) -> str:
    text = f"{render.summary(found)} in {count} {'trace' if count == 1 else 'traces'}"
    if half_checked:
        where = "" if count == 1 else f" of {half_checked} of them"
        text += f"; the rules of the graph{where} are checked once {'it is' if len(found) == 1 else 'these are'} mended"
    return text
