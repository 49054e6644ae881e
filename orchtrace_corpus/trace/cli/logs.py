"""Reads logs for commands: finds sessions, reads their traces in turn, and reports failures."""

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


def read_sessions(
    session: Session,
    log_sessions: Sequence["importers.Session"],
    how: "Privacy",
    *,
    is_shown: bool = True,
    is_all: bool = True,
) -> Iterator[tuple["importers.Imported", "Trace"]]:
    """Yield each session of some logs with its trace; sessions that cannot be read are reported and skipped.

    Args:
        session: Where reports go.
        log_sessions: The sessions.
        how: How contents are pseudonymised.
        is_shown: Whether a terminal shows the progress.
        is_all: Whether there is nothing else to read, so that it is an error if no session can be read.
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

    with progress.show_progress(session.output, "sessions") if is_shown else nullcontext() as show:
        for imported in importers.import_sessions(with_progress(), how):
            if imported.trace is not None:
                has_any = True
                yield imported, imported.trace
            elif imported.error is not None:
                errors.append(imported.error)
    if errors and not has_any and is_all:
        is_empty = isinstance(errors[0], EmptyLogError)
        hint = "Nothing ran in it, or it is a log of another format." if is_empty else errors[0].hint
        raise DataFileError(str(errors[0].args[0]), hint) from errors[0]
    empty = [str(error.args[0]) for error in errors if isinstance(error, EmptyLogError)]
    _report(empty, "skipped, because nothing ran in it", session.output.note)
    report_left_out(session, [str(error.args[0]) for error in errors if not isinstance(error, EmptyLogError)])


def report_left_out(session: Session, reasons: Sequence[str], noun: str = "session") -> None:
    """Report which sessions or traces are not in the output: a sentence for each."""
    session.output.is_partial |= bool(reasons)
    _report(reasons, "left out", session.output.tell, noun)


def _report(reasons: Sequence[str], verb: str, say: Callable[[str], None], noun: str = "session") -> None:
    for reason in reasons[:_MAX_REPORTED]:
        say(f"corpus: {verb}: {printable(reason, limit=300)}")
    more = len(reasons) - _MAX_REPORTED
    if more > 0:
        say(f"corpus: {verb}: {more:,} more {noun if more == 1 else noun + 's'}")


def privacy(salt: str = "", *, keep_content: bool = False) -> "Privacy":
    """Return how contents are pseudonymised; without a salt, with a random one."""
    from orchtrace_corpus.trace.importers.core.privacy import Privacy

    return Privacy(salt.encode("utf-8", "replace") if salt else os.urandom(16), keep_content)


def pricing(path: str, *, is_wanted: bool = False) -> Pricing | None:
    """Return a function that sets costs by the prices of `price_table`; None without prices."""
    table = price_table(path, is_wanted=is_wanted)
    if table is None:
        return None
    from orchtrace_corpus.trace.analysis import prices

    return partial(prices.apply, table)


def price_table(path: str, *, is_wanted: bool = False) -> "AnyPrices | None":
    """Return the price table of a file, or the prices of the package genai-prices if these are wanted; else None."""
    if path and is_wanted:
        raise CommandUseError("--prices and --cost contradict each other", "Give one of them.")
    if not path and not is_wanted:
        return None
    from orchtrace_corpus.base.dates import today
    from orchtrace_corpus.trace.analysis import prices  # imports PyYAML

    if is_wanted:
        return prices.load_package(today())
    table = prices.load(path)
    if date.fromisoformat(table.date) > today() + timedelta(days=1):  # in some time zone it may already be tomorrow
        where, hint = printable(path, limit=300), "Date it by the day on which the prices were looked up."
        raise DataFileError(f"{where}: the day of the prices, {table.date}, has not come yet", hint)
    return table


def outcomes(path: str) -> "Outcomes | None":
    """Return the outcomes of runs in a file; None without a file."""
    if not path:
        return None
    from orchtrace_corpus.trace.analysis.outcomes import Outcomes, load  # imports PyYAML

    return Outcomes(load(path))


def report_unused(session: Session, outcomes: "Outcomes | None") -> None:
    """Report the outcomes that match no run."""
    unused = outcomes.unused if outcomes else {}
    for name, outcome in unused.items():
        session.output.tell(f"corpus: {outcome.place}: none of the runs read is called {quote(name)}")
    if outcomes and unused:
        session.output.is_partial = True
        names = first_names_and_more([printable(run) for run in outcomes.runs], 5, ", …")
        session.output.tell(f"corpus: the runs read are called {names}")


def find_sessions(session: Session, paths: Sequence[str], form: str) -> list["importers.Session"]:
    """Return the sessions in files and folders of logs, of a format if it is given; report files that are no logs."""
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
    """The inputs that a user names: trace files and sessions of logs.

    Attributes:
        traces: The trace files; without any log, also files of an unknown kind.
        sessions: The sessions of logs.
    """

    traces: list[str]
    sessions: Sequence["importers.Session"]


def find_inputs(session: Session, paths: Sequence[str], form: str = "", *, is_log: bool = False) -> Inputs:
    """Return the traces and the sessions of logs in files and folders.

    Files that are neither are reported in number. Pipes and devices are never read: see `open_regular`.

    Args:
        session: Where reports go.
        paths: The files and folders.
        form: The format of all of them, which then are logs; recognised if empty.
        is_log: Whether a file of an unknown kind is refused as a log, if there is nothing else. Otherwise it counts
            as a trace, whose mistakes are shown.
    """
    traces: list[str] = []
    other_paths: list[str] = []  # that may hold logs
    for path in paths:
        files: list[str] = []
        for file in () if form else _possible_traces(path):
            if not holds_traces(file) and (is_log or os.path.exists(file)):
                files = []  # any other file makes it a path of logs
                break
            files.append(file)
        traces += files
        if not files:
            other_paths.append(path)
    if not other_paths:
        return Inputs(traces, [])
    from orchtrace_corpus.trace import importers
    from orchtrace_corpus.trace.importers.core.logs import head

    result = importers.find(other_paths, form)
    unknown: list[LogFile] = []  # the files whose mistakes as traces are shown
    if not result.sessions and not (is_log and result.traces):
        unknown = [file for file in result.others if not importers.is_binary(head(file))]
        if not traces and (is_log or not unknown + result.traces):
            importers.refuse(other_paths, result)
    _report_skipped(session, result.skipped, [file for file in result.others if file not in unknown])
    files_of_traces = sorted(result.traces + unknown, key=lambda file: file.path)
    return Inputs([*traces, *(file.path for file in files_of_traces)], result.sessions)


def _possible_traces(path: str) -> Iterator[str]:
    """Yield a file, or the files in a folder that may hold traces; none if it has only logs with other endings."""
    try:
        yield from trace_files(path)
    except DataFileError as error:
        from orchtrace_corpus.trace.importers.core.logs import SUFFIXES

        if not any(name.endswith(SUFFIXES) for _, _, names in os.walk(path) for name in names):
            hint = f"Traces and logs end in {', '.join(SUFFIXES)}."
            raise DataFileError(f"no trace or log in {quote_path(path)}", hint) from error
