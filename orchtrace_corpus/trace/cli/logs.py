"""Read logs for commands: find sessions, import one after another as traces, and report failures."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from orchtrace_corpus.base.commands import progress
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import printable, quote, quote_path
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import first_names_and_more
from orchtrace_corpus.trace.model.decode import holds_traces
from orchtrace_corpus.trace.model.store import trace_files

if TYPE_CHECKING:  # commands on trace files need no importer
    from orchtrace_corpus.trace import importers
    from orchtrace_corpus.trace.analysis.outcomes import Outcomes
    from orchtrace_corpus.trace.analysis.prices import AnyPrices
    from orchtrace_corpus.trace.importers.core.logs import LogFile
    from orchtrace_corpus.trace.importers.core.privacy import Privacy
    from orchtrace_corpus.trace.model.trace import Trace

Pricing: TypeAlias = Callable[["Trace"], None]
"""A function that sets the costs of a trace."""

_MAX_REPORTED = 5
"""The number of reasons that are reported one by one; further ones are counted."""


def read_sessions(
    session: Session,
    log_sessions: Sequence["importers.Session"],
    privacy: "Privacy",
    *,
    shows_progress: bool = True,
    is_only_input: bool = True,
) -> Iterator[tuple["importers.Imported", "Trace"]]:
    """Yield each session of some logs with its trace; sessions that cannot be read are reported and skipped.

    Args:
        session: The session of the command, for reports. The others are sessions of agent programs.
        log_sessions: The sessions of the logs.
        privacy: How contents are pseudonymised.
        shows_progress: True to show the progress on a terminal.
        is_only_input: True if there is nothing else to read: then it is an error if no session can be read.
    """
    from orchtrace_corpus.base.progress import Progress
    from orchtrace_corpus.trace import importers
    from orchtrace_corpus.trace.importers.core.logs import EmptyLogError

    errors: list[DataFileError] = []
    has_any = False

    def with_progress() -> Iterator["importers.Session"]:
        for index, log_session in enumerate(log_sessions):
            if show is not None:
                show(Progress(index, len(log_sessions)))
            yield log_session

    with progress.show_progress(session.output, "sessions") if shows_progress else nullcontext() as show:
        for imported in importers.import_sessions(with_progress(), privacy):
            if imported.trace is not None:
                has_any = True
                yield imported, imported.trace
            elif imported.error is not None:
                errors.append(imported.error)
    if errors and not has_any and is_only_input:
        hint = errors[0].hint
        if isinstance(errors[0], EmptyLogError):
            hint = "Nothing ran in it, or it is a log of another format."
        raise DataFileError(str(errors[0].args[0]), hint) from errors[0]
    empty: list[str] = []
    unreadable: list[str] = []
    for error in errors:
        reasons = empty if isinstance(error, EmptyLogError) else unreadable
        reasons.append(str(error.args[0]))
    _report(empty, "skipped, because nothing ran in it", session.output.note)
    report_left_out(session, unreadable)


def report_left_out(session: Session, reasons: Sequence[str], noun: str = "session") -> None:
    """Report the sessions or traces that are not in the output, with a reason for each."""
    if reasons:
        session.output.is_partial = True
    _report(reasons, "left out", session.output.tell, noun)


def _report(reasons: Sequence[str], verb: str, write: Callable[[str], None], noun: str = "session") -> None:
    """Write a line for each of the first reasons, and one with the number of the others."""
    for reason in reasons[:_MAX_REPORTED]:
        write(f"corpus: {verb}: {printable(reason, limit=300)}")
    others = len(reasons) - _MAX_REPORTED
    if others > 0:
        write(f"corpus: {verb}: {others:,} more {noun if others == 1 else noun + 's'}")


def make_privacy(salt: str = "", *, keep_content: bool = False) -> "Privacy":
    """Return how contents are pseudonymised: with a salt, or a random one if it is empty."""
    from orchtrace_corpus.trace.importers.core.privacy import Privacy

    salt_bytes = salt.encode("utf-8", "replace") if salt else os.urandom(16)
    return Privacy(salt_bytes, keep_content)


def load_pricing(path: str, *, is_wanted: bool = False) -> Pricing | None:
    """Return a function that sets costs by the prices of `load_prices`; None without prices."""
    table = load_prices(path, is_wanted=is_wanted)
    if table is None:
        return None
    from orchtrace_corpus.trace.analysis import prices

    return partial(prices.apply, table)


def load_prices(path: str, *, is_wanted: bool = False) -> "AnyPrices | None":
    """Return the price table of a file; or, if costs are wanted, that of the package genai-prices; else None."""
    if path and is_wanted:
        raise CommandUseError("--prices and --cost contradict each other", "Give one of them.")
    if not path and not is_wanted:
        return None
    from orchtrace_corpus.base.dates import today
    from orchtrace_corpus.trace.analysis import prices  # imports PyYAML

    if is_wanted:
        return prices.load_package(today())
    table = prices.load(path)
    tomorrow = today() + timedelta(days=1)  # in some time zone, it is today
    if date.fromisoformat(table.date) > tomorrow:
        message = f"{printable(path, limit=300)}: the day of the prices, {table.date}, has not come yet"
        raise DataFileError(message, "Date it by the day on which the prices were looked up.")
    return table


def load_outcomes(path: str) -> "Outcomes | None":
    """Return the outcomes of runs in a file; None without a file."""
    if not path:
        return None
    from orchtrace_corpus.trace.analysis.outcomes import Outcomes, load  # imports PyYAML

    return Outcomes(load(path))


def report_unused(session: Session, outcomes: "Outcomes | None") -> None:
    """Report the outcomes that match no run, and the names of the runs."""
    if outcomes is None or not outcomes.unused:
        return
    for name, outcome in outcomes.unused.items():
        session.output.tell(f"corpus: {outcome.place}: none of the runs read is called {quote(name)}")
    session.output.is_partial = True
    names = first_names_and_more([printable(run) for run in outcomes.runs], 5, ", …")
    session.output.tell(f"corpus: the runs read are called {names}")


def find_sessions(session: Session, paths: Sequence[str], form: str) -> list["importers.Session"]:
    """Return the sessions in files and folders of logs; report files that are no logs.

    `form` is the format of the logs; an empty text to recognise it.
    """
    refuse_standard_input(paths)
    from orchtrace_corpus.trace import importers

    result = importers.find(paths, form)
    if not result.sessions and result.traces:
        hint = "Give them to corpus trace validate, show, doctor, measure or replay."
        raise DataFileError(f"{quote_path(paths[0])} holds traces already, not logs", hint)
    if not result.sessions:
        importers.refuse(paths, result)
    _report_skipped(session, result.skipped, [*result.traces, *result.others])
    return result.sessions


def refuse_standard_input(paths: Sequence[str]) -> None:
    """Raise CommandUseError if standard input is named, since logs are read from files only."""
    if "-" in paths:
        hint = "A session can be several files; name the file or folder that holds it."
        raise CommandUseError("logs are read from files and folders, not from standard input", hint)


def _report_skipped(session: Session, notes: Sequence[str], files: Sequence["LogFile"]) -> None:
    """Report the places that were not searched, and the files that are no logs."""
    for note in notes:
        session.output.note(f"corpus: {note}")
    if files:
        names = first_names_and_more([printable(file.name, limit=100) for file in files], 8, ", …")
        noun = "file that is not a log" if len(files) == 1 else "files that are not logs"
        session.output.note(f"corpus: skipped {len(files):,} {noun} in a known format ({names})")


class Inputs(NamedTuple):
    """The inputs of a command.

    Attributes:
        traces: The files of traces. If there is no log, also files of an unknown kind, to report what is wrong with
            them as traces.
        sessions: The sessions of logs.
    """

    traces: list[str]
    sessions: Sequence["importers.Session"]


def find_inputs(session: Session, paths: Sequence[str], form: str = "", *, is_log: bool = False) -> Inputs:
    """Return the traces and the sessions of logs in files and folders, and report how many files are neither.

    Pipes and devices are never read: see `open_regular`.

    Args:
        session: The session of the command, for reports.
        paths: The files and folders.
        form: The format of the logs, if all paths are logs; an empty text to recognise traces and logs.
        is_log: True to refuse a file of an unknown kind as a log, if there is nothing else. False to return it as a
            trace, so that its problems are reported.
    """
    traces: list[str] = []
    log_paths: list[str] = []
    for path in paths:
        files = [] if form else _traces_only(path, is_log=is_log)
        traces += files
        if not files:
            log_paths.append(path)
    if not log_paths:
        return Inputs(traces, [])
    from orchtrace_corpus.trace import importers
    from orchtrace_corpus.trace.importers.core.logs import head

    result = importers.find(log_paths, form)
    unknown: list[LogFile] = []  # returned as traces
    if not result.sessions and not (is_log and result.traces):
        unknown = [file for file in result.others if not importers.is_binary(head(file))]
        has_traces = bool(traces or unknown or result.traces)
        if not has_traces or (is_log and not traces):
            importers.refuse(log_paths, result)
    _report_skipped(session, result.skipped, [file for file in result.others if file not in unknown])
    traces += sorted(file.path for file in (*result.traces, *unknown))
    return Inputs(traces, result.sessions)


def _traces_only(path: str, *, is_log: bool) -> list[str]:
    """Return the trace files of a path; empty if there is any other file, because then it is a path of logs."""
    traces = []
    for file in _possible_traces(path):
        # Without `is_log`, a missing file counts as a trace, so that it is reported as one.
        if not holds_traces(file) and (is_log or os.path.exists(file)):
            return []
        traces.append(file)
    return traces


def _possible_traces(path: str) -> Iterator[str]:
    """Yield a file, or the files in a folder that may hold traces; none if the folder has only logs, by their endings.

    Raises:
        DataFileError: The folder has no trace and no log.
    """
    try:
        yield from trace_files(path)
    except DataFileError as error:
        from orchtrace_corpus.trace.importers.core.logs import SUFFIXES

        for _, _, names in os.walk(path):
            if any(name.endswith(SUFFIXES) for name in names):
                return
        hint = f"Traces and logs end in {', '.join(SUFFIXES)}."
        raise DataFileError(f"no trace or log in {quote_path(path)}", hint) from error
