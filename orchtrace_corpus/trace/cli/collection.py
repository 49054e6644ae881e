"""The request to `corpus trace doctor`, and the figures and totals of runs that are read one after another."""

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
from orchtrace_corpus.trace.render.imports import answers_without_ids
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:  # a screen of one run needs no totals
    from datetime import tzinfo

    from orchtrace_corpus.base.text.table import Table
    from orchtrace_corpus.trace.diagnosis.totals import Grouping
    from orchtrace_corpus.trace.importers import Imported
    from orchtrace_corpus.trace.model.trace import Trace

Run: TypeAlias = tuple[TraceView, Origin]


class Request(NamedTuple):
    """The request to `corpus trace doctor`.

    Attributes:
        name: The name of the only session to show; empty for all.
        form: The format of the logs; recognised if empty.
        price: A function that sets costs; None if no prices are given.
        limit: The most rows of a table.
        output_format: The output format.
        html: The HTML file to write; empty for none.
        with_content: Whether contents are shown: in the HTML file, and the first words of runs in lists.
        groupings: The groupings of totals, if only totals are shown.
        zone: The time zone of days; None for the local one.
        zone_name: The name of the time zone.
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
    """The main figures and the totals of runs, which are added one after another.

    Attributes:
        summaries: The main figures of each run.
        totals: The totals.
        has_prices: Whether costs are known, or prices are given.
        prices: The prices that costs were computed with; None if there are none.
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
        """Return the totals as tables: by the groupings of the request in full, else by the usual ones in part."""
        from orchtrace_corpus.trace.render import totals as render_totals

        request = self._request
        groupings = request.groupings or render_totals.DEFAULT_GROUPINGS
        if request.output_format.is_exact:
            return render_totals.exact_tables(self.totals, groupings)
        limit = None if request.groupings else request.limit
        breakdowns = {grouping: self.totals.by(grouping, limit) for grouping in groupings}
        everything = self.totals.all()
        tables = render_totals.tables(breakdowns, everything, has_prices=self.has_prices, width=width)
        notes = [*render_totals.notes(breakdowns, everything, len(self.totals), request.zone_name, prices=self.prices)]
        if request.groupings:  # else it is a note of the list of runs
            notes += answers_without_ids(self.totals.shared)
        return [*tables[:-1], tables[-1]._replace(notes=tuple(notes))]

    def run_table(self, width: int | None) -> "Table":
        """Return a table with a row for each run."""
        request, projects = self._request, self.totals.projects
        if request.output_format.is_exact:
            return render.exact_overview(self.summaries, projects, with_content=request.with_content)
        return render.overview(
            self.summaries,
            self.totals.shared,
            projects=projects,
            has_prices=self.has_prices,
            most=request.limit,
            width=width,
            with_content=request.with_content,
        )

    def data(self) -> dict[str, Any]:
        """Return the totals for programs."""
        from orchtrace_corpus.trace.diagnosis.totals import Grouping
        from orchtrace_corpus.trace.render import totals as render_totals

        usual = (Grouping.DAY, Grouping.MONTH, Grouping.PROJECT, Grouping.MODEL)
        return render_totals.data(self.totals, self._request.zone_name, self._request.groupings or usual)

    def show_totals(self, session: Session) -> None:
        """Show only the totals."""
        request = self._request
        if request.output_format is Format.JSON:
            from orchtrace_corpus.base.text.table import envelope

            session.output.write(envelope("trace-totals", self.data()))
            return
        session.show_tables(self.tables(session.output.width), "trace-totals", request.output_format)


class Folders:
    """Finds the folders in which sessions ran; a log file with many sessions is read once."""

    def __init__(self) -> None:
        self._by_file: dict[str, Mapping[str, str]] = {}  # for each file, the folders of its sessions

    def of(self, form: str, paths: Sequence[str], trace: "Trace") -> str:
        """Return the folder in which a session in some log files ran; empty if unknown."""
        from orchtrace_corpus.trace.importers import homes, importer
        from orchtrace_corpus.trace.importers.core.logs import LogFile

        first_file = _first_file(trace)
        path = next((path for path in paths if first_file and path.endswith(first_file)), paths[0])
        read_folders = getattr(importer(form), "folders", None)
        if read_folders is not None:
            if path not in self._by_file:
                self._by_file[path] = read_folders(LogFile(path, os.path.basename(path)))
            if folder := self._by_file[path].get(trace.trace_id):
                return homes.project_folder(folder)
        return homes.folder_of(form, path)


def _first_file(trace: "Trace") -> str:
    """Return the log file of the first event; empty if unknown."""
    source = trace.events[0].source if trace.events else None
    return source.file if isinstance(source, Source) else ""


def run_of_log(imported: "Imported", trace: "Trace", folders: Folders, request: Request) -> Run:
    """Return an imported session with its costs and its origin."""
    from orchtrace_corpus.trace.importers import title

    if request.price is not None:
        request.price(trace)
    form = title(imported.form).partition(" (")[0]
    has_prices = request.price is not None or any(event.cost_usd is not None for event in trace.events)
    folder = folders.of(imported.form, imported.files, trace)
    return TraceView(trace), Origin(form, _first_file(trace), has_prices, imported.answers, folder)
