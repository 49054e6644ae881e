"""Show what `corpus trace doctor` finds in runs: a screen of one, differences of two, totals and a list of many."""

import os
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.trace.cli import logs
from orchtrace_corpus.trace.cli.collection import (
    Collected,
    Folders,
    Request,
    Run,
    collected_list,
    run_of_log,
    show_collected,
)
from orchtrace_corpus.trace.cli.loading import Named, choose, deliver, in_files, sound_traces
from orchtrace_corpus.trace.diagnosis import diagnose, first_words, summarize
from orchtrace_corpus.trace.diagnosis.values import Origin
from orchtrace_corpus.trace.render import doctor as render
from orchtrace_corpus.trace.view import TraceView


def show(session: Session, paths: Sequence[str], request: Request) -> ExitCode:
    """Show where the time and the money of runs went, and return the exit code.

    Args:
        session: Where it is shown.
        paths: Logs and traces; where there are none, the newest session of the programs that are known, or the one
            that is asked for by name.
        request: What is asked.

    Raises:
        CommandUseError: There is no session of the name that is asked for, or there are several; standard input is
            named; or a page is asked for of more runs than it can hold.
        DataFileError: There is nothing to read, or the page cannot be written.
        InvalidTraceError: All traces have errors.
    """
    logs.refuse_standard_input(paths)
    given = logs.inputs(session, paths, request.form, is_log=True) if paths else _recent(session, request.name)
    of_traces, of_logs = _of_traces(session, given, request), _of_logs(session, given, request)
    both = (of_logs, of_traces) if _begins_with_logs(paths, given) else (of_traces, of_logs)
    runs = _some(chain(*both))
    if request.name:
        named = (Named(view.trace.trace_id, origin.file, (view, origin)) for view, origin in runs)
        runs = iter((choose(named, request.name),))
    if request.html:
        _write_page(session, runs, request)
    elif request.groupings:
        _show_totals(session, runs, request)
    elif request.output_format is Format.JSON:
        _write_data(session, paths, runs, request)
    else:
        _show_runs(session, paths, runs, request)
    return ExitCode.DONE


def _write_page(session: Session, runs: Iterator[Run], request: Request) -> None:
    """Write the page of one run or two."""
    chosen: list[Run] = []
    for run in runs:
        chosen.append(run)
        if len(chosen) > 2:
            raise CommandUseError("a page shows one run or two, and there are more", "Choose one with --session.")
    from orchtrace_corpus.trace.page import page  # which brings all that draws

    text = page([diagnose(*run) for run in chosen], with_content=request.with_content)
    deliver(session, request.html, text)


def _show_totals(session: Session, runs: Iterator[Run], request: Request) -> None:
    """Show the totals that are asked for, and nothing else."""
    collected = Collected(request)
    for run in runs:
        collected.add(*run)
    show_collected(session, collected, request)


def _write_data(session: Session, paths: Sequence[str], runs: Iterator[Run], request: Request) -> None:
    """Write the figures of all runs as JSON, each as soon as it is read, so that one at a time is in memory."""
    from orchtrace_corpus.base.text.table import envelope_parts

    collected, views = Collected(request), list[TraceView]()

    def diagnosed() -> Iterator[dict[str, Any]]:
        for view, origin in runs:
            summary = collected.add(view, origin)
            number = len(collected.summaries)
            views[:] = [*views, view] if number <= 2 == len(paths) else []
            words = {"first_words": summary.first_words or None} if request.with_content else {}
            yield {**render.as_data(diagnose(view, origin)), **words}

    def further() -> dict[str, object]:
        sums: dict[str, object] = {"all": render.sums(collected.summaries, collected.totals.shared)}
        if len(views) == 2:
            from orchtrace_corpus.trace.diagnosis.comparison import compare
            from orchtrace_corpus.trace.render.tables import difference_data

            sums["differences"] = difference_data(compare(views[0], views[1]))
        return {**sums, "totals": collected.data()}

    for part in envelope_parts("trace-doctor", "sessions", diagnosed(), further):
        session.output.write(part)


def _begins_with_logs(paths: Sequence[str], inputs: logs.Inputs) -> bool:
    """Return True if the first path is one of logs, so that runs are shown in the order in which they are named."""
    inside = os.path.join(paths[0], "") if paths else "\0"
    files = (file.path for session in inputs.sessions for file in session.files)
    return any(path in paths[:1] or path.startswith(inside) for path in files)


def _show_runs(session: Session, paths: Sequence[str], runs: Iterator[Run], request: Request) -> None:
    """Show one run on a screen, two that were named one by one side by side, more of them as totals and a list."""
    first = list(islice(runs, 3 if len(paths) == 2 else 2))
    if request.output_format is Format.TABLE and len(first) == 1:
        _show_screen(session, first[0], request)
        return
    if request.output_format is Format.TABLE and len(first) == len(paths) == 2:
        if request.with_content:
            raise CommandUseError("a comparison shows no content", "Add --html FILE, or leave out --content.")
        _show_comparison(session, paths, first)
        return
    collected = Collected(request)
    while first:
        collected.add(*first.pop(0))
    for run in runs:
        collected.add(*run)
    width = session.output.width
    tables = [*collected.tables(width), collected_list(collected, request, width)]
    session.show_tables(tables, "trace-sessions", request.output_format)


def _show_screen(session: Session, run: Run, request: Request) -> None:
    width = session.output.width
    size = None if width is None else (width, _height())
    diagnosis = diagnose(*run)
    if request.with_content:
        summary = diagnosis.summary._replace(first_words=first_words(diagnosis.view.trace))
        diagnosis = diagnosis._replace(summary=summary)
    lines = render.page(diagnosis, size, session.output.glyphs)
    renamed = session.output.renamed  # commands have the name by which the program was started
    session.output.show([tuple(span._replace(text=renamed(span.text)) for span in line) for line in lines])


def _show_comparison(session: Session, paths: Sequence[str], runs: Sequence[Run]) -> None:
    """Show the critical paths of two runs and their largest differences."""
    from orchtrace_corpus.trace.diagnosis.comparison import compare
    from orchtrace_corpus.trace.render.names import names_in
    from orchtrace_corpus.trace.render.tables import MOST_DIFFERENCES, difference_table, path_table, verdict

    (before, _), (after, _) = runs
    summaries = summarize(before), summarize(after)
    sides = (paths[0], before.trace), (paths[1], after.trace)
    differences = compare(before, after, (names_in(before), names_in(after)))
    tables = [path_table(*(diagnose(*run) for run in runs))] if summaries[0].unit == summaries[1].unit else []
    table = difference_table(differences, sides, exact=False, most=MOST_DIFFERENCES)
    tables.append(table._replace(title="" if tables else verdict(*summaries)))
    session.show_tables(tables, "trace-sessions", Format.TABLE)


def _recent(session: Session, name: str) -> logs.Inputs:
    from orchtrace_corpus.trace.cli import recent

    return recent.named(name) if name else recent.newest(session)


def _height() -> int:
    import shutil

    return shutil.get_terminal_size().lines


def _of_logs(session: Session, inputs: logs.Inputs, request: Request) -> Iterator[Run]:
    if not inputs.sessions:
        return
    folders = Folders()
    privacy = logs.privacy(keep_content=request.with_content)
    for imported, trace in logs.traces(session, inputs.sessions, privacy, is_all=not inputs.traces):
        yield run_of_log(imported, trace, folders, request)


def _some(runs: Iterator[Run]) -> Iterator[Run]:
    """Yield runs, of which there must be one.

    Raises:
        DataFileError: There is none.
    """
    first = next(runs, None)
    if first is None:
        raise DataFileError("there is no run that can be read")
    yield first
    yield from runs


def _of_traces(session: Session, inputs: logs.Inputs, request: Request) -> Iterator[Run]:
    if not inputs.traces:
        return
    for document, view in sound_traces(session, in_files(session, inputs.traces), is_all=not inputs.sessions):
        if request.price is not None:
            request.price(view.trace)
            view = TraceView(view.trace)
        has_prices = request.price is not None or any(event.cost_usd is not None for event in view.trace.events)
        yield view, Origin(file=document.path, has_prices=has_prices)
