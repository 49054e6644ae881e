"""`corpus trace measure`."""

from collections.abc import Sequence
from functools import partial
from itertools import chain, islice
from typing import Annotated, Any

import typer

from orchtrace_corpus.base.commands.options import OutputFormat, refuse_together, split_names
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.table import Cell, Table, csv, csv_rows, envelope
from orchtrace_corpus.trace.cli.loading import FILES_HELP, derived, documents_of, sound_traces
from orchtrace_corpus.trace.measures import DEFINITIONS, concurrency_profile, measure_subject
from orchtrace_corpus.trace.measures.ledger import GROUPINGS, ledger
from orchtrace_corpus.trace.render import measures as render
from orchtrace_corpus.trace.view.view import Subject

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(name="measure")
def measure_traces(
    ctx: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="FILE...", help=FILES_HELP)],
    only: Annotated[str, typer.Option("--only", metavar="A,B,...", help="Which measures, in which order.")] = "",
    spent_by: Annotated[
        str, typer.Option("--ledger", metavar="BY", help="Tokens and cost instead, by agent, role, model or type.")
    ] = "",
    profile: Annotated[
        bool, typer.Option("--profile", help="Instead, for how long how many events were worked on at once.")
    ] = False,
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Measure traces: work and span, steps, team, tokens, errors.

    A measure that a trace does not support has no value, and the reason why. docs/measures.md gives the
    formula and the source of each. Several traces are one row each; one with errors stops them all, and is
    named.

    \b
    Examples:
      corpus trace measure data/traces/swarm.json
      corpus trace measure data/traces --only work,span,parallelism --format csv
      corpus trace measure data/traces/swarm.json --ledger model
      corpus trace measure data/traces/swarm.json --profile
    """
    session = Session(*ctx.obj)
    refuse_together(ledger=bool(spent_by), only=bool(only), profile=profile)
    names = tuple(dict.fromkeys(split_names(only))) if only else ()
    for name in names:
        if name not in DEFINITIONS:
            raise CommandUseError(f"there is no measure {quote(name)}{suggestion(name, list(DEFINITIONS))}")
    if spent_by and spent_by not in GROUPINGS:
        raise CommandUseError(f"cannot keep a ledger by {quote(spent_by)}{suggestion(spent_by, GROUPINGS)}")
    if spent_by:
        _show_ledgers(session, paths, spent_by, output_format)
        return ExitCode.DONE
    if profile:
        _show_profiles(session, paths, output_format)
        return ExitCode.DONE
    exact = output_format in (Format.JSON, Format.CSV)
    given = documents_of(session, paths)
    if output_format is Format.JSON:
        content = list(derived(session, given, partial(_data, names)))
        session.output.write(envelope("trace-measures", {"traces": content}))
        return ExitCode.DONE
    first = list(islice(given, 2))
    if len(first) == 1:
        (table,) = derived(session, first, partial(_table, names, exact))
    elif output_format is Format.CSV:
        lines = "".join(derived(session, chain(first, given), partial(_line, names)))
        session.output.write(csv(render.columns(names or tuple(DEFINITIONS)), ()) + lines)
        return ExitCode.DONE
    else:
        rows = list(derived(session, chain(first, given), partial(_row, names)))
        table = render.several(names or tuple(DEFINITIONS), rows)
    session.show_tables([table], "trace-measures", output_format)
    return ExitCode.DONE


def _show_ledgers(session: Session, paths: Sequence[str], by: str, output_format: Format) -> None:
    ledgers = [(trace.trace_id, ledger(trace, by)) for trace in sound_traces(session, paths)]
    if output_format is Format.JSON:
        session.output.write(envelope("trace-ledger", render.spent_data(ledgers, by)))
    elif output_format is Format.CSV:
        session.show_tables([render.spent_exact(ledgers, by)], "trace-ledger", output_format)
    else:
        width = session.output.width if output_format is Format.TABLE else None
        tables = [render.spent(name, by, entries, width) for name, entries in ledgers]
        session.show_tables(tables, "trace-ledger", output_format)


def _show_profiles(session: Session, paths: Sequence[str], output_format: Format) -> None:
    found = [(trace.trace_id, concurrency_profile(trace)) for trace in sound_traces(session, paths)]
    if output_format is Format.JSON:
        session.output.write(envelope("trace-concurrency", render.concurrent_data(found)))
    elif output_format is Format.CSV:
        session.show_tables([render.concurrent_exact(found)], "trace-concurrency", output_format)
    else:
        session.show_tables([render.concurrent(*one) for one in found], "trace-concurrency", output_format)


def _data(names: Sequence[str], subject: Subject) -> dict[str, Any]:
    return render.data(subject.trace, measure_subject(subject, names))


def _row(names: Sequence[str], subject: Subject) -> tuple[Cell, ...]:
    return render.row(subject.trace, measure_subject(subject, names), exact=False)


def _line(names: Sequence[str], subject: Subject) -> str:
    return csv_rows([render.row(subject.trace, measure_subject(subject, names), exact=True)])


def _table(names: Sequence[str], exact: bool, subject: Subject) -> Table:
    return render.one(subject.trace, measure_subject(subject, names), exact=exact)
