"""The commands `corpus trace measure` and `corpus trace label`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Annotated, Any, TypeVar

from orchtrace_corpus.base.commands.declarations import Context, Option
from orchtrace_corpus.base.commands.options import OutputFormat, refuse_together, split_names
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.table import Table, csv, envelope
from orchtrace_corpus.trace.analysis.labels import GIVEN, Label
from orchtrace_corpus.trace.analysis.labels import labels as label_events
from orchtrace_corpus.trace.analysis.marks import Marks
from orchtrace_corpus.trace.cli import loading, logs
from orchtrace_corpus.trace.cli.arguments import Effectful, File, Files, OutcomesFile, SessionName, Untrusted
from orchtrace_corpus.trace.cli.loading import RunDocument, derive_each, sound_traces, with_outcomes
from orchtrace_corpus.trace.measures.definitions import DEFINITIONS, Measure, concurrency_profile, require_known
from orchtrace_corpus.trace.measures.ledger import GROUPINGS, ledger
from orchtrace_corpus.trace.model.decode import Document
from orchtrace_corpus.trace.model.import_report import has_all_tokens
from orchtrace_corpus.trace.render import measures as render
from orchtrace_corpus.trace.render.names import agent_names
from orchtrace_corpus.trace.view import TraceView

Form = TypeVar("Form")


def measure_traces(
    ctx: Context,
    paths: Files,
    name: SessionName = "",
    only: Annotated[str, Option("--only", metavar="A,B,...", help="The measures to show, in this order.")] = "",
    spent_by: Annotated[
        str, Option("--ledger", metavar="BY", help="Show tokens and cost instead, by agent, role, model, type or tool.")
    ] = "",
    profile: Annotated[
        bool, Option("--profile", help="Show instead for how long 1, 2, 3, ... events ran at once.")
    ] = False,
    untrusted: Untrusted = "",
    effectful: Effectful = "",
    outcomes_file: OutcomesFile = "",
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Measure traces: work and span, steps, team, tokens, errors, safety.

    If a trace does not support a measure, the reason is shown instead of a value. docs/measures.md gives the
    formula and the source of each. Several traces get one row each; those with errors are left out, and named.
    Comparisons with a single agent need the figures of its run, in the trace or from --outcomes. Exit code 1: a
    trace was left out, or an outcome belongs to no run.

    \b
    Examples:
      corpus trace measure data/traces/swarm.json
      corpus trace measure path/to/logs
      corpus trace measure data/traces --only worked,span,parallelism --format csv
      corpus trace measure data/traces/swarm.json --ledger model
      corpus trace measure data/traces/swarm.json --profile
      corpus trace measure data/traces/centralized.json --only untrusted_reach --untrusted search
    """
    session = Session(*ctx.obj)
    refuse_together(ledger=bool(spent_by), only=bool(only), profile=profile)
    refuse_together(outcomes=bool(outcomes_file), ledger=bool(spent_by), profile=profile)
    names = tuple(dict.fromkeys(split_names(only))) if only else ()
    require_known(names)
    if spent_by and spent_by not in GROUPINGS:
        raise CommandUseError(f"cannot keep a ledger by {quote(spent_by)}{suggestion(spent_by, GROUPINGS)}")
    documents = loading.documents_of(session, paths, name)
    if spent_by:
        _show_ledgers(session, documents, spent_by, output_format)
    elif profile:
        _show_profiles(session, documents, output_format)
    else:
        outcomes = logs.load_outcomes(outcomes_file)
        marks = Marks(split_names(untrusted) if untrusted else (), split_names(effectful) if effectful else None)
        _show_measures(session, with_outcomes(documents, outcomes), names, marks, output_format)
        logs.report_unused(session, outcomes)
    return ExitCode.DONE


def _show_measures(
    session: Session, runs: Iterator[RunDocument], names: Sequence[str], marks: Marks, output_format: Format
) -> None:
    """Show the measures of one trace with reasons, or those of several traces, a row for each.

    `names` are the measures to show; empty for all, or for the usual ones in a table on a terminal.
    """
    first_runs = list(islice(runs, 2))
    has_one_run = len(first_runs) == 1
    runs = chain(first_runs, runs)
    exact = output_format.is_exact
    shows_usual = not names and not has_one_run and not exact and session.output.width is not None
    if shows_usual:
        names = render.DEFAULT_MEASURES

    def render_each(render_run: Callable[[TraceView, Mapping[str, Measure]], Form]) -> Iterator[Form]:
        return derive_each(session, runs, partial(render.measure_and_present, names, render_run, marks))

    if output_format is Format.JSON:
        session.output.write(envelope("trace-measures", {"traces": list(render_each(render.data))}))
        return
    columns = render.row_columns(names or tuple(DEFINITIONS), exact=exact)
    if has_one_run:
        (table,) = render_each(partial(render.trace_table, exact=exact))
    elif output_format is Format.CSV:
        # Worker processes return lines: they are smaller than cells, and faster to send.
        lines = "".join(render_each(render.csv_line))
        session.output.write(csv(columns, ()) + lines)
        return
    else:
        rows = tuple(render_each(partial(render.trace_row, exact=exact)))
        notes = []
        if any(None in row for row in rows):
            notes.append("Empty: not known; the table of one trace alone gives the reason.")
        if shows_usual:
            notes.append("More measures: --only A,B,...; all: --format csv.")
        table = Table("traces", "", columns, rows, tuple(notes))
    session.show_tables([table], "trace-measures", output_format)


def _show_ledgers(session: Session, documents: Iterator[Document], by: str, output_format: Format) -> None:
    is_for_programs = output_format.is_exact
    ledgers = []
    for _, view in sound_traces(session, documents):
        entries = ledger(view.trace, by)
        if by == "agent" and not is_for_programs:
            names = agent_names(view)
            entries = [entry._replace(name=names.get(entry.name, entry.name)) for entry in entries]
        ledgers.append((view.trace.trace_id, entries, not has_all_tokens(view.trace)))
    if output_format is Format.JSON:
        session.output.write(envelope("trace-ledger", render.ledger_data(ledgers, by)))
        return
    if output_format.is_exact:
        tables = [render.exact_ledgers(ledgers, by)]
    else:
        width = session.output.width if output_format is Format.TABLE else None
        tables = [render.ledger_table(name, by, entries, width, is_least=least) for name, entries, least in ledgers]
    session.show_tables(tables, "trace-ledger", output_format)


def _show_profiles(session: Session, documents: Iterator[Document], output_format: Format) -> None:
    profiles = [(view.trace.trace_id, concurrency_profile(view)) for _, view in sound_traces(session, documents)]
    if output_format is Format.JSON:
        session.output.write(envelope("trace-concurrency", render.concurrency_data(profiles)))
        return
    if output_format.is_exact:
        tables = [render.exact_concurrency(profiles)]
    else:
        tables = [render.concurrency_table(name, profile) for name, profile in profiles]
    session.show_tables(tables, "trace-concurrency", output_format)


def label(
    ctx: Context,
    path: File,
    name: SessionName = "",
    events: Annotated[bool, Option("--events", help="List every labelled event instead of the summary.")] = False,
    output: Annotated[
        str, Option("--output", "-o", metavar="FILE", help="Write the trace with its labels to a new file.")
    ] = "",
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Label the events that take each of the five sub-decisions, with the rule applied.

    Existing labels of the trace are kept. docs/traces.md gives the rules.

    \b
    Examples:
      corpus trace label data/traces/swarm.json
      corpus trace label data/traces/swarm.json --events
    """
    from orchtrace_corpus.trace.render.tables import label_summary, labelled_events

    session = Session(*ctx.obj)
    refuse_together(output=bool(output), events=events)
    refuse_together(output=bool(output), format=output_format is not Format.TABLE)
    loading.refuse_json_lines(output)
    document, view = loading.load_one_trace(session, path, name)
    labels = label_events(view)
    if output:
        from orchtrace_corpus.trace.model.json_text import loads, text

        loading.write_output(session, output, text(_with_labels(loads(document.data), labels)))
        return ExitCode.DONE
    names = {} if output_format.is_exact else agent_names(view)
    table = labelled_events(view.trace, labels, names) if events else label_summary(view.trace, labels)
    session.show_tables([table], "trace-labels", output_format)
    return ExitCode.DONE


def _with_labels(trace: dict[str, Any], labels: list[Label]) -> dict[str, Any]:
    """Add labels to the JSON of a trace, with their rules, unless it has them."""
    for label in labels:
        if label.rule == GIVEN:
            continue
        event = trace["events"][label.event]
        decisions = event.setdefault("sub_decisions", [])
        if label.decision not in decisions:
            decisions.append(label.decision)
            event.setdefault("sub_decision_rules", {})[label.decision] = label.rule
    return trace
