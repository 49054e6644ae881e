"""`corpus trace doctor`."""

import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import typer

from orchtrace_corpus.cli.session import Session
from orchtrace_corpus.cli.trace import logs
from orchtrace_corpus.cli.trace.loading import sound_traces
from orchtrace_corpus.errors import CommandUseError, ExitCode
from orchtrace_corpus.findings import printable, quote
from orchtrace_corpus.render import Format
from orchtrace_corpus.render import trace_doctor as render
from orchtrace_corpus.render.trace_sessions import Glance, glance, overview
from orchtrace_corpus.render.trace_story import Case
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.import_report import report_of
from orchtrace_corpus.trace.importers import FORMATS
from orchtrace_corpus.trace.model import Trace

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_MOST_NAMED = 5


class _Choice(NamedTuple):
    """The run that is shown on a page, and what is said of all."""

    case: Case | None
    glances: list[Glance]


@app.command()
def doctor(
    ctx: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Logs or traces, or folders of them; all files of a session at once."),
    ],
    name: Annotated[
        str, typer.Option("--session", metavar="NAME", help="Of several, the one whose name begins like this.")
    ] = "",
    form: Annotated[
        str, typer.Option("--from", metavar="FORMAT", help=f"One of {', '.join(FORMATS)} (else recognised).")
    ] = "",
    price_table: Annotated[
        str, typer.Option("--prices", metavar="FILE", help="A dated price table, for costs (see docs/importers.md).")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="List so many of several sessions.")] = 15,
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
    """
    session = Session(*ctx.obj)
    price = logs.pricing(price_table)
    reading = logs.Reading(session)
    try:
        cases = _of_logs(reading, paths, logs.found(session, paths, form), price)
    except logs.TracesGivenError:
        cases = _of_traces(session, paths, price)
    choice = _choose(cases, name)
    if choice.case is not None:
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
        trace = _decoded(imported.trace)
        yield Case(trace, FORMATS[imported.form].partition(" (")[0], price is not None, _hint(paths, trace))


def _of_traces(session: Session, paths: Sequence[str], price: logs.Pricing | None) -> Iterator[Case]:
    from msgspec import to_builtins

    for trace in sound_traces(session, paths):
        if price is not None:
            plain = to_builtins(trace)
            price(plain)
            yield Case(_decoded(plain), "Trace", has_prices=True)
        else:
            yield Case(trace, "Trace", any(event.cost_usd is not None for event in trace.events))


def _choose(cases: Iterator[Case], name: str) -> _Choice:
    """The only run, or the one that is asked for; else a glance at each.

    Raises:
        CommandUseError: None is called so, or several are.
    """
    rank, alike = 0, list[str]()
    best: Case | None = None
    glances: list[Glance] = []
    for case in cases:
        own = case.trace.trace_id
        fit = 2 if own == name else 1 if own.startswith(name) else 0  # the very name goes before longer ones
        if fit > rank:
            rank, alike, best = fit, [own], case
        elif fit and fit == rank:
            alike.append(own)
            best = None
        glances.append(glance(case.trace))
    if name and len(alike) != 1:
        raise _wrong_name(name, alike, [one.name for one in glances])
    return _Choice(best, glances)


def _wrong_name(name: str, found: Sequence[str], others: Sequence[str]) -> CommandUseError:
    if not found:
        shown = ", ".join(printable(other) for other in others[:_MOST_NAMED])
        more = ", …" if len(others) > _MOST_NAMED else ""
        return CommandUseError(f"no session begins with {quote(name)}", f"There are: {shown}{more}")
    shown = ", ".join(printable(other) for other in found[:_MOST_NAMED])
    more = ", …" if len(found) > _MOST_NAMED else ""
    hint = "Write more of the name." if len(set(found)) > 1 else "Name the file of the one that you mean."
    return CommandUseError(f"{len(found)} sessions begin with {quote(name)}: {shown}{more}", hint)


def _size(session: Session) -> tuple[int, int] | None:
    width = session.output.width
    return None if width is None else (width, shutil.get_terminal_size().lines)


def _decoded(trace: dict[str, Any]) -> Trace:
    from msgspec import convert

    return convert(trace, Trace)


def _hint(paths: Sequence[str], trace: Trace) -> str:
    """Where the transcripts are that the log speaks of, but that were not given."""
    report = report_of(trace)
    has_missing = report is not None and any("without a transcript" in what for what in report.problems)
    folder = os.path.splitext(paths[0])[0] if paths else ""
    if not has_missing or len(paths) != 1 or not os.path.isfile(paths[0]) or not os.path.isdir(folder):
        return ""
    return f"Transcripts of its sub-agents may be in {printable(folder, limit=200)}: name that folder, too."
