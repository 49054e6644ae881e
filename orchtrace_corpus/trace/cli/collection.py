"""Runs that are read one after another: what is asked of them, their main figures and their totals."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.trace.cli import logs
from orchtrace_corpus.trace.diagnosis import first_words, summarize
from orchtrace_corpus.trace.diagnosis.values import Origin, Summary
from orchtrace_corpus.trace.model.import_report import ImportReport, Prices, report_of
from orchtrace_corpus.trace.model.trace import Source
from orchtrace_corpus.trace.render import doctor as render
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:  # one run needs no totals
    from datetime import tzinfo

    from orchtrace_corpus.base.text.table import Table
    from orchtrace_corpus.trace.diagnosis.totals import Grouping
    from orchtrace_corpus.trace.importers import Imported
    from orchtrace_corpus.trace.model.trace import Trace

Run: TypeAlias = tuple[TraceView, Origin]


class Request(NamedTuple):
    """The request to `corpus trace doctor`.

    Attributes:
        name: Of several sessions, the one that is wanted; all where empty.
        form: The format of the logs; recognised where empty.
        price: Puts costs on a trace; None where none are wanted.
        limit: The most rows of a table.
        output_format: The form of the output.
        html: The file that a page is written to; empty where none is wanted.
        with_content: Whether what was written in a run is shown: on the page, and the first words in lists.
        groupings: What totals alone are shown by; empty for everything else.
        zone: The time zone of days; None for the local one.
        zone_name: What that is called.
    """

    name: str = ""
    form: str = ""
    price: logs.Pricing | None = None
    limit: int = 15
    output_format: Format = Format.TABLE
    html: str = ""
    with_content: bool = False
    groupings: "Sequence[Grouping]" = ()
    zone: "tzinfo | None" = None
    zone_name: str = ""


class Collected:
    """Adds runs up, one after another: their main figures and their totals.

    Attributes:
        summaries: The main figures of each.
        totals: Their totals.
        has_prices: Whether costs are known or were asked for.
        prices: The prices that costs were computed with; None where there are none.

    Args:
        request: What is asked.
    """

    def __init__(self, request: Request) -> None:
        from orchtrace_corpus.trace.diagnosis.totals import Totals

        self.summaries: list[Summary] = []
        self.totals: Totals = Totals(request.zone)
        self.has_prices = request.price is not None
        self.prices: Prices | None = None
        self._request = request

    def add(self, view: TraceView, origin: Origin) -> Summary:
        """Add a run, and return its main figures."""
        day = self.totals.first_day(view)
        summary = summarize(view, origin.file)._replace(folder=origin.folder, day=day)
        if self._request.with_content:
            summary = summary._replace(first_words=first_words(view.trace))
        self.summaries.append(summary)
        self.totals.add(view, summary, origin.answers)
        self.has_prices |= summary.cost_usd is not None
        if self._request.price is not None and self.prices is None:
            self.prices = (report_of(view.trace) or ImportReport()).prices
        return summary

    def tables(self, width: int | None) -> "list[Table]":
        """Return the totals as tables: those that were asked for in full, else the usual ones within the limit."""
        from orchtrace_corpus.trace.render import totals as render_totals

        request = self._request
        groupings = request.groupings or render_totals.USUAL
        if request.output_format.is_exact:
            return render_totals.exact_tables(self.totals, groupings)
        limit = None if request.groupings else request.limit
        breakdowns = {grouping: self.totals.by(grouping, limit) for grouping in groupings}
        everything = self.totals.all()
        tables = render_totals.tables(breakdowns, everything, has_prices=self.has_prices, width=width)
        notes = [*render_totals.notes(breakdowns, everything, len(self.totals), request.zone_name, prices=self.prices)]
        if request.groupings:  # else the list below has it
            notes += render.note_on_missing_ids(self.totals.shared)
        return [*tables[:-1], tables[-1]._replace(notes=tuple(notes))]

    def data(self) -> dict[str, Any]:
        """Return the totals for programs."""
        from orchtrace_corpus.trace.diagnosis.totals import Grouping
        from orchtrace_corpus.trace.render import totals as render_totals

        usual = (Grouping.DAY, Grouping.MONTH, Grouping.PROJECT, Grouping.MODEL)
        return render_totals.data(self.totals, self._request.zone_name, self._request.groupings or usual)


def collected_list(collected: Collected, request: Request, width: int | None) -> "Table":
    """Return the table of the single runs."""
    names = collected.totals.projects
    if request.output_format.is_exact:
        return render.exact_overview(collected.summaries, names, with_content=request.with_content)
    return render.overview(
        collected.summaries,
        collected.totals.shared,
        projects=names,
        has_prices=collected.has_prices,
        most=request.limit,
        width=width,
        with_content=request.with_content,
    )


def show_collected(session: Session, collected: Collected, request: Request) -> None:
    """Show totals and nothing else."""
    if request.output_format is Format.JSON:
        from orchtrace_corpus.base.text.table import envelope

        session.output.write(envelope("trace-totals", collected.data()))
        return
    session.show_tables(collected.tables(session.output.width), "trace-totals", request.output_format)


class Folders:
    """Finds the folders in which sessions ran; a file with many sessions is asked once."""

    def __init__(self) -> None:
        self._of_files: dict[str, Mapping[str, str]] = {}

    def of(self, form: str, paths: Sequence[str], trace: "Trace") -> str:
        """Return the folder in which a session ran, as far as its log says; else an empty text.

        Args:
            form: The format of the log.
            paths: The files of the session.
            trace: The session.
        """
        from orchtrace_corpus.trace.importers import homes, importer
        from orchtrace_corpus.trace.importers.core.logs import LogFile

        path = _main_file(paths, trace)
        ask = getattr(importer(form), "folders", None)
        if ask is not None:
            if path not in self._of_files:
                self._of_files[path] = ask(LogFile(path, os.path.basename(path)))
            if folder := self._of_files[path].get(trace.trace_id):
                return homes.project_folder(folder)
        return homes.folder_of(form, path)


def _main_file(paths: Sequence[str], trace: "Trace") -> str:
    """Return the file that a session begins in."""
    source = trace.events[0].source if trace.events else None
    name = source.file if isinstance(source, Source) else ""
    return next((path for path in paths if name and path.endswith(name)), paths[0])


def run_of_log(imported: "Imported", trace: "Trace", folders: Folders, request: Request) -> Run:
    """Return an imported session with its costs and where it is from."""
    from orchtrace_corpus.trace.importers import title

    if request.price is not None:
        request.price(trace)
    source = trace.events[0].source if trace.events else None
    file = source.file if isinstance(source, Source) else ""
    form = title(imported.form).partition(" (")[0]
    has_prices = request.price is not None or any(event.cost_usd is not None for event in trace.events)
    folder = folders.of(imported.form, imported.files, trace)
    return TraceView(trace), Origin(form, file, has_prices, imported.answers, folder)
