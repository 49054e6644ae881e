"""The options of `corpus trace doctor`, and the figures and totals of runs that are read one after another."""

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
"""A run, and where it comes from."""


class Request(NamedTuple):
    """The options of `corpus trace doctor`.

    Attributes:
        name: The name of the only session to show; empty for all.
        form: The format of the logs; empty to recognise it.
        set_costs: A function that sets the costs of a trace; None if no prices are given.
        limit: The largest number of rows in a table.
        output_format: The output format.
        html: The HTML file to write; empty for none.
        with_content: True to show contents: all in the HTML file, and the first words of runs in lists.
        groupings: The groupings of the totals, if only totals are shown; else empty.
        zone: The time zone of days; None for the local one.
        zone_name: The name of the time zone.
    """

    name: str = ""
    form: str = ""
    set_costs: logs.Pricing | None = None
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
        has_prices: True if costs are known, or prices are given.
        prices: The prices that costs were computed with; None if no prices are given, or before the first run.
    """

    def __init__(self, request: Request) -> None:
        from orchtrace_corpus.trace.diagnosis.totals import Totals

        self.summaries: list[Summary] = []
        self.totals: Totals = Totals(request.zone)
        self.has_prices = request.set_costs is not None
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
        if summary.cost_usd is not None:
            self.has_prices = True
        if self._request.set_costs is not None and self.prices is None:
            report = report_of(view.trace) or ImportReport()
            self.prices = report.prices
        return summary

    def tables(self, width: int | None) -> "list[Table]":
        """Return the totals as tables: in full by the groupings of the request, or else the usual ones, shortened."""
        from orchtrace_corpus.trace.render import totals as render_totals

        request = self._request
        groupings = request.groupings or render_totals.DEFAULT_GROUPINGS
        if request.output_format.is_exact:
            return render_totals.exact_tables(self.totals, groupings)
        limit = None if request.groupings else request.limit
        breakdowns = {grouping: self.totals.by(grouping, limit) for grouping in groupings}
        everything = self.totals.all()
        run_count = len(self.totals)
        notes = [*render_totals.notes(breakdowns, everything, run_count, request.zone_name, prices=self.prices)]
        if request.groupings:  # without groupings, a list of runs follows, which has this note
            notes += answers_without_ids(self.totals.shared)
        tables = render_totals.tables(breakdowns, everything, has_prices=self.has_prices, width=width)
        *first_tables, last_table = tables
        return [*first_tables, last_table._replace(notes=tuple(notes))]

    def run_table(self, width: int | None) -> "Table":
        """Return a table with a row for each run."""
        request = self._request
        projects = self.totals.projects
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

        groupings = self._request.groupings or (Grouping.DAY, Grouping.MONTH, Grouping.PROJECT, Grouping.MODEL)
        return render_totals.data(self.totals, self._request.zone_name, groupings)

    def show_totals(self, session: Session) -> None:
        """Show only the totals."""
        request = self._request
        if request.output_format is Format.JSON:
            from orchtrace_corpus.base.text.table import envelope

            session.output.write(envelope("trace-totals", self.data()))
            return
        session.show_tables(self.tables(session.output.width), "trace-totals", request.output_format)


class Folders:
    """Finds the folders in which sessions ran. A log file with many sessions is read once."""

    def __init__(self) -> None:
        self._folders_by_file: dict[str, Mapping[str, str]] = {}  # for each log file, the folders of its sessions

    def find(self, form: str, paths: Sequence[str], trace: "Trace") -> str:
        """Return the folder in which a session ran; empty if unknown.

        Args:
            form: The format of the log.
            paths: The paths of the files of the session.
            trace: The session as a trace.
        """
        from orchtrace_corpus.trace.importers import homes, importer
        from orchtrace_corpus.trace.importers.core.logs import LogFile

        path = paths[0]
        first_file = _first_file(trace)
        if first_file:
            path = next((path for path in paths if path.endswith(first_file)), path)
        read_folders = getattr(importer(form), "folders", None)  # some formats name the folder in the log
        if read_folders is not None:
            if path not in self._folders_by_file:
                self._folders_by_file[path] = read_folders(LogFile(path, os.path.basename(path)))
            folder = self._folders_by_file[path].get(trace.trace_id)
            if folder:
                return homes.project_folder(folder)
        return homes.folder_of(form, path)


def _first_file(trace: "Trace") -> str:
    """Return the log file that has the first event; empty if unknown."""
    if not trace.events:
        return ""
    source = trace.events[0].source
    return source.file if isinstance(source, Source) else ""


def run_of_log(imported: "Imported", trace: "Trace", folders: Folders, request: Request) -> Run:
    """Return an imported session with its costs and its origin."""
    from orchtrace_corpus.trace.importers import title

    if request.set_costs is not None:
        request.set_costs(trace)
    form, _, _ = title(imported.form).partition(" (")  # without the explanation in parentheses
    has_prices = request.set_costs is not None or any(event.cost_usd is not None for event in trace.events)
    folder = folders.find(imported.form, imported.files, trace)
    return TraceView(trace), Origin(form, _first_file(trace), has_prices, imported.answers, folder)
