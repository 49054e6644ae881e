"""What `corpus trace doctor` does, without Typer: the runs found, the one chosen, its screen or its figures shown."""

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.trace.cli import logs
from orchtrace_corpus.trace.cli.loading import Named, choose, deliver, in_files, sound_traces
from orchtrace_corpus.trace.diagnosis import diagnose, summarize
from orchtrace_corpus.trace.diagnosis.values import Origin, Summary
from orchtrace_corpus.trace.measures.shared_answers import Shared
from orchtrace_corpus.trace.model.trace import Source
from orchtrace_corpus.trace.render import doctor as render
from orchtrace_corpus.trace.view import TraceView

_Run: TypeAlias = tuple[TraceView, Origin]


class Request(NamedTuple):
    """What is asked of `corpus trace doctor`.

    Attributes:
        name: Of several sessions, the one that is wanted; all where empty.
        form: The format of the logs; recognised where empty.
        price: Puts costs on a trace; None where none are wanted.
        limit: So many of several sessions are listed.
        as_data: Whether figures are wanted, for programs.
        html: The file that a page is written to; empty where none is wanted.
        with_content: Whether the page holds what was written in the run.
    """

    name: str = ""
    form: str = ""
    price: logs.Pricing | None = None
    limit: int = 15
    as_data: bool = False
    html: str = ""
    with_content: bool = False


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
    if request.with_content and not request.html:
        raise CommandUseError("--content says what is in a page, and no page is asked for", "Add --html FILE.")
    given = logs.inputs(session, paths, request.form, is_log=True) if paths else _recent(session, request.name)
    of_traces, of_logs = _of_traces(session, given, request), _of_logs(session, given, request)
    both = (of_logs, of_traces) if _begins_with_logs(paths, given) else (of_traces, of_logs)
    runs = _some(chain(*both))
    if request.name:
        named = (Named(view.trace.trace_id, origin.file, (view, origin)) for view, origin in runs)
        runs = iter((choose(named, request.name),))
    if request.html:
        _write_page(session, runs, request)
    elif request.as_data:
        from orchtrace_corpus.base.text.table import envelope

        data, summaries, shared, views = [], [], Shared(), list[TraceView]()
        for view, origin in runs:
            diagnosis = diagnose(view, origin)
            shared.add(view.trace, origin.answers)
            data.append(render.as_data(diagnosis))
            summaries.append(diagnosis.summary)
            views = [*views, view] if len(summaries) <= 2 == len(paths) else []
        found: dict[str, object] = {"sessions": data, "all": render.sums(summaries, shared)}
        if len(views) == 2:
            from orchtrace_corpus.trace.diagnosis.comparison import compare
            from orchtrace_corpus.trace.render.tables import difference_data

            found["differences"] = difference_data(compare(views[0], views[1]))
        session.output.write(envelope("trace-doctor", found, version=3))
    else:
        _show_runs(session, paths, runs, request)
    return ExitCode.DONE


def _write_page(session: Session, runs: Iterator[_Run], request: Request) -> None:
    """Write the page of one run or two."""
    shown: list[_Run] = []
    for run in runs:
        shown.append(run)
        if len(shown) > 2:
            raise CommandUseError("a page shows one run or two, and there are more", "Choose one with --session.")
    from orchtrace_corpus.trace.page import page  # which brings all that draws

    text = page([diagnose(*run) for run in shown], with_content=request.with_content)
    deliver(session, request.html, text)


def _begins_with_logs(paths: Sequence[str], given: logs.Inputs) -> bool:
    """Whether the first of the paths is one of logs, so that runs are shown in the order in which they are named."""
    inside = os.path.join(paths[0], "") if paths else "\0"
    files = (file.path for one in given.sessions for file in one.files)
    return any(path in paths[:1] or path.startswith(inside) for path in files)


def _show_runs(session: Session, paths: Sequence[str], runs: Iterator[_Run], request: Request) -> None:
    """One run on a screen; two that were named one by one side by side; more of them as a list."""
    first: list[_Run] = []
    summaries: list[Summary] = []
    shared = Shared()
    for run in runs:
        shared.add(run[0].trace, run[1].answers)
        summaries.append(summarize(run[0], run[1].file))
        first += [run] if len(summaries) <= 2 else []
        if len(summaries) > 2:
            first = []  # a list is enough, and takes no memory for runs
    if len(summaries) == 1:
        width = session.output.width
        size = None if width is None else (width, _height())
        lines = render.page(diagnose(*first[0]), size, session.output.glyphs)
        renamed = session.output.renamed  # commands have the name by which the program was started
        session.output.show([tuple(span._replace(text=renamed(span.text)) for span in one) for one in lines])
        return
    if len(first) == len(paths) == 2:
        from orchtrace_corpus.trace.diagnosis.comparison import compare
        from orchtrace_corpus.trace.render.names import names_in
        from orchtrace_corpus.trace.render.tables import MOST_DIFFERENCES, difference_table, path_table, verdict

        (one, _), (other, _) = first
        sides, names = ((paths[0], one.trace), (paths[1], other.trace)), (names_in(one), names_in(other))
        found = compare(one, other, names)
        tables = [path_table(*(diagnose(*run) for run in first))] if summaries[0].unit == summaries[1].unit else []
        differences = difference_table(found, sides, exact=False, most=MOST_DIFFERENCES)
        tables.append(differences._replace(title="" if tables else verdict(*summaries)))
    else:
        has_prices, width = any(one.cost_usd is not None for one in summaries), session.output.width
        tables = [render.overview(summaries, shared, has_prices=has_prices, most=request.limit, width=width)]
    session.show_tables(tables, "trace-sessions", Format.TABLE)


def _recent(session: Session, name: str) -> logs.Inputs:
    from orchtrace_corpus.trace.cli import recent

    return recent.named(name) if name else recent.newest(session)


def _height() -> int:
    import shutil

    return shutil.get_terminal_size().lines


def _of_logs(session: Session, given: logs.Inputs, request: Request) -> Iterator[_Run]:
    if not given.sessions:
        return
    from orchtrace_corpus.trace.importers import title

    how = logs.privacy(keep_content=request.with_content)
    for one, trace in logs.traces(session, given.sessions, how, is_all=not given.traces):
        if request.price is not None:
            request.price(trace)
        source = trace.events[0].source if trace.events else None
        file = source.file if isinstance(source, Source) else ""
        form = title(one.form).partition(" (")[0]
        has_prices = request.price is not None or any(event.cost_usd is not None for event in trace.events)
        yield TraceView(trace), Origin(form, file, has_prices, answers=one.answers)


def _some(runs: Iterator[_Run]) -> Iterator[_Run]:
    """Runs, of which there must be one."""
    first = next(runs, None)
    if first is None:
        raise DataFileError("there is no run that can be read")
    yield first
    yield from runs


def _of_traces(session: Session, given: logs.Inputs, request: Request) -> Iterator[_Run]:
    if not given.traces:
        return
    for document, view in sound_traces(session, in_files(session, given.traces), is_all=not given.sessions):
        if request.price is not None:
            request.price(view.trace)
            view = TraceView(view.trace)
        has_prices = request.price is not None or any(event.cost_usd is not None for event in view.trace.events)
        yield view, Origin(file=document.path, has_prices=has_prices)
