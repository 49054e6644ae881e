"""`corpus trace doctor`."""

import os
import shutil
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import typer

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.table import envelope
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.cli import logs
from orchtrace_corpus.trace.cli.loading import sound_documents
from orchtrace_corpus.trace.importers import FORMATS
from orchtrace_corpus.trace.model.import_report import report_of
from orchtrace_corpus.trace.model.trace import Source, Trace
from orchtrace_corpus.trace.render import case as trace_case
from orchtrace_corpus.trace.render import doctor as render
from orchtrace_corpus.trace.render.sessions import Glance, glance, overview
from orchtrace_corpus.trace.render.story import Case

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_MOST_NAMED = 5


class _Choice(NamedTuple):
    """The run that is shown on a page, what is said of all, and the figures of those that are asked for."""

    case: Case | None
    glances: list[Glance]
    data: list[dict[str, Any]]


class Form(StrEnum):
    """For whom a run is described."""

    TEXT = "text"
    JSON = "json"


@app.command()
def doctor(
    ctx: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Logs or traces, or folders of them; all files of a session at once."),
    ],
    name: Annotated[
        str,
        typer.Option(
            "--session", metavar="NAME", help="Of several, the one whose name begins like this, or whose file it is."
        ),
    ] = "",
    form: Annotated[
        str, typer.Option("--from", metavar="FORMAT", help=f"One of {', '.join(FORMATS)} (else recognised).")
    ] = "",
    price_table: Annotated[
        str, typer.Option("--prices", metavar="FILE", help="A dated price table, for costs (see docs/importers.md).")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="List so many of several sessions.")] = 15,
    output_format: Annotated[
        Form, typer.Option("--format", help="For people; or all figures of all sessions, for programs.")
    ] = Form.TEXT,
) -> int:
    """Say in a page where the time and the money of a logged run went.

    Who was spawned by whom, what ran in parallel, which steps the end waited for, the tokens by agent and
    model, and what is wrong with the log. Several sessions are a line each, the dearest first. Nothing is
    written.

    Exit code 1: some sessions could not be read. 3: there is no session to read.

    \b
    Examples:
      corpus trace doctor path/to/logs
      corpus trace doctor data/traces/hierarchical.json
      corpus trace doctor data/traces/swarm.json --format json
    """
    session = Session(*ctx.obj)
    price = logs.pricing(price_table)
    reading = logs.Reading(session)
    try:
        cases = _of_logs(reading, paths, logs.found(session, paths, form), price)
    except logs.TracesGivenError:
        cases = _of_traces(session, paths, price)
    as_data = output_format is Form.JSON
    choice = _choose(cases, name, as_data=as_data)
    if as_data:
        session.output.write(envelope("trace-doctor", {"sessions": choice.data}))
    elif choice.case is not None:
        page = render.page(choice.case, _size(session), session.output.glyphs)
        session.output.show(page)
    else:
        has_prices = any(one.cost_usd is not None for one in choice.glances)
        tables = [overview(choice.glances, has_prices=has_prices, most=limit, width=session.output.width)]
        session.show_tables(tables, "trace-sessions", Format.TABLE)
    return ExitCode.FINDINGS if reading.failed else ExitCode.DONE


def _of_logs(
    reading: logs.Reading, paths: Sequence[str], sessions: Sequence[importers.Session], price: logs.Pricing | None
) -> Iterator[Case]:
    for imported in reading.traces(sessions, logs.privacy("", keep_content=False)):
        if price is not None:
            price(imported.trace)
        trace = imported.trace
        form = FORMATS[imported.form].partition(" (")[0]
        yield Case(trace, form, price is not None, _hint(paths, trace), _file(trace))


def _of_traces(session: Session, paths: Sequence[str], price: logs.Pricing | None) -> Iterator[Case]:
    for document, trace in sound_documents(session, paths):
        if price is not None:
            price(trace)
            yield Case(trace, "Trace", has_prices=True, file=document.path)
        else:
            has_costs = any(event.cost_usd is not None for event in trace.events)
            yield Case(trace, "Trace", has_costs, file=document.path)


def _file(trace: Trace) -> str:
    """The file that the first event is from."""
    source = trace.events[0].source if trace.events else None
    return source.file if isinstance(source, Source) else ""


def _choose(cases: Iterator[Case], name: str, *, as_data: bool) -> _Choice:
    """The only run, or the one that is asked for; else a glance at each.

    Raises:
        CommandUseError: None is called so, or several are.
    """
    rank, alike = 0, list[Glance]()
    best: Case | None = None
    glances: list[Glance] = []
    data: list[dict[str, Any]] = []
    for case in cases:
        glances.append(glance(case.trace, case.file))
        if as_data and not name:
            data.append(trace_case.as_data(case))
        fit = _fit(glances[-1], name)
        if fit > rank:
            rank, alike, best = fit, [glances[-1]], case
        elif fit and fit == rank:
            alike.append(glances[-1])
            best = None
    if name and len(alike) != 1:
        raise _wrong_name(name, alike, glances)
    if as_data and name and best is not None:
        data.append(trace_case.as_data(best))
    return _Choice(best, glances, data)


def _fit(one: Glance, name: str) -> int:
    """How well a name says which session is meant: its file, its very name, the beginning of it; 0 for not at all."""
    if name and one.file:
        given, own = (os.sep + os.path.normpath(path) for path in (name, one.file))
        if given.endswith(own) or own.endswith(given):
            return 3
    return 2 if one.name == name else 1 if one.name.startswith(name) else 0


def _wrong_name(name: str, found: Sequence[Glance], others: Sequence[Glance]) -> CommandUseError:
    if not found:
        return CommandUseError(f"no session begins with {quote(name)}", f"There are: {_listed(others)}")
    verb = "begin with" if found[0].name.startswith(name) else "are in"
    are_alike = len({one.name for one in found}) < len(found)
    hint = "Write more of the name." if not are_alike else "Name the file of the one that you mean: --session FILE"
    said = f"{len(found)} sessions {verb} {quote(name)}: {_listed(found, with_files=are_alike)}"
    return CommandUseError(said, hint)


def _listed(some: Sequence[Glance], *, with_files: bool = False) -> str:
    shown = [
        printable(one.name) + (f" ({printable(one.file, limit=100)})" if with_files and one.file else "")
        for one in some[:_MOST_NAMED]
    ]
    return ", ".join(shown) + (", …" if len(some) > _MOST_NAMED else "")


def _size(session: Session) -> tuple[int, int] | None:
    width = session.output.width
    return None if width is None else (width, shutil.get_terminal_size().lines)


def _hint(paths: Sequence[str], trace: Trace) -> str:
    """Where the transcripts are that the log speaks of, but that were not given."""
    report = report_of(trace)
    has_missing = report is not None and report.lacks_transcripts()
    folder = os.path.splitext(paths[0])[0] if paths else ""
    if not has_missing or len(paths) != 1 or not os.path.isfile(paths[0]) or not os.path.isdir(folder):
        return ""
    return f"Transcripts of its sub-agents may be in {printable(folder, limit=200)}: name that folder, too."
