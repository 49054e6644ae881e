"""`corpus trace validate`."""

import os
from collections.abc import Iterator
from typing import Annotated

import typer

from orchtrace_corpus.cli.session import Session
from orchtrace_corpus.errors import DataFileError, ExitCode
from orchtrace_corpus.findings import Finding, has_errors, quote
from orchtrace_corpus.render import findings as render
from orchtrace_corpus.render.findings import FindingsFormat
from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.decode import decode, documents

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_SUFFIXES = (".json", ".jsonl", ".ndjson")
_NO_TRACE = "T10"
"""What the codes of files begin with that could not be read as JSON at all."""


@app.command()
def validate(
    ctx: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="FILE...", help="Traces as JSON or JSON Lines; or folders.")],
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings fail, too.")] = False,
    max_findings: Annotated[
        int, typer.Option("--max-findings", metavar="N", min=0, help="Show no more than N findings; 0 shows all.")
    ] = 0,
    output_format: Annotated[
        FindingsFormat, typer.Option("--format", "-f", help="The form of the output.")
    ] = FindingsFormat.TEXT,
) -> int:
    """Report every mistake in traces: against the schema, and against the rules of the graph.

    A file holds one trace, or one on each line. Exit code 0: nothing wrong, or warnings only; 1: errors;
    3: a file cannot be read as JSON.

    \b
    Examples:
      corpus trace validate data/traces
      corpus trace validate data/traces/centralized.json --strict
      corpus trace validate data/traces --format json
    """
    session = Session(*ctx.obj)
    found: list[Finding] = []
    count = 0
    for path in (file for given in paths for file in _files(given)):
        for document in documents(path):
            count += 1
            found += rules.check(decode(document))
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
    session.output.note(f"{render.summary(found)} in {count} {'trace' if count == 1 else 'traces'}")
    if any(finding.code.startswith(_NO_TRACE) for finding in found):
        return ExitCode.UNREADABLE
    return ExitCode.FINDINGS if has_errors(found) or (strict and found) else ExitCode.DONE


def _files(path: str) -> Iterator[str]:
    """The file itself, or the traces in a folder and below it, by name."""
    if not os.path.isdir(path):
        yield path
        return
    found = False
    for folder, below, names in os.walk(path):
        below.sort()
        for name in sorted(names):
            if name.endswith(_SUFFIXES):
                found = True
                yield os.path.join(folder, name)
    if not found:
        raise DataFileError(f"no trace in {quote(path)}", f"Traces end in {', '.join(_SUFFIXES)}.")
