"""`corpus validate`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import FindingsForm, Strict
from orchtrace_corpus.base.text.findings import FindingsFormat
from orchtrace_corpus.corpus.cli.options import option
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.cli.validation import report


def validate(
    ctx: typer.Context,
    wanted: Annotated[
        list[str] | None, option("--select", "CODE", "Only these codes, such as D or V1 (repeatable).")
    ] = None,
    ignored: Annotated[list[str] | None, option("--ignore", "CODE", "Leave these codes out (repeatable).")] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend what needs no decision, show the diff, then report the rest.")
    ] = False,
    strict: Strict = False,
    max_findings: Annotated[
        int, typer.Option("--max-findings", metavar="N", min=0, help="Show no more than N findings; 0 shows all.")
    ] = 0,
    output_format: FindingsForm = FindingsFormat.TEXT,
) -> int:
    """Report every mistake in the data, at its line.

    Each finding is a line "file:line:column: CODE message [record]"; "corpus rule CODE" explains
    it. Exit code 0: nothing wrong, or warnings only; 1: errors; 3: a file is not readable as YAML.
    Findings of syntax (Y) are always shown, since they hide what stands behind them.

    \b
    Examples:
      corpus validate
      corpus validate --strict --ignore M105
      corpus validate --select D --max-findings 20
      corpus validate --format github
      corpus validate --fix --select M106
      corpus --root path/to/corpus validate
    """
    session = CorpusSession(*ctx.obj)
    return report(session, wanted or (), ignored or (), fix, strict, max_findings, output_format)
