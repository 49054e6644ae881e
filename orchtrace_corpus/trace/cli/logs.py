"""Reads the traces of logs for commands: finds sessions, reads them in turn, reports failures."""

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

if TYPE_CHECKING:  # who names traces needs no importer
    from orchtrace_corpus.trace import importers
    from orchtrace_corpus.trace.analysis.outcomes import Outcomes
    from orchtrace_corpus.trace.analysis.prices import AnyPrices
    from orchtrace_corpus.trace.importers.core.logs import LogFile
    from orchtrace_corpus.trace.importers.core.privacy import Privacy
    from orchtrace_corpus.trace.model.trace import Trace

Pricing: TypeAlias = Callable[["Trace"], None]

_MOST_TOLD = 5


def traces(
    session: Session, runs: Sequence["importers.Session"], how: "Privacy", *, is_shown: bool = True, is_all: bool = True
) -> Iterator[tuple["importers.Imported", "Trace"]]:
    """The traces of sessions, and where each is from; what cannot be read is told, and does not stop the rest.

    Args:
        session: Where remarks go.
        runs: The sessions.
        how: How contents are referred to.
        is_shown: Whether a terminal shows how far it has come.
        is_all: Whether there is nothing else to read, so that it is an error if none of them can be read.

    Raises:
        DataFileError: There is no trace at all, nor anything else; the message is about the first session.
    """
    from orchtrace_corpus.base.progress import Progress
    from orchtrace_corpus.trace import importers
    from orchtrace_corpus.trace.importers.core.logs import EmptyLogError

    failed: list[DataFileError] = []
    read = 0

    def followed() -> Iterator["importers.Session"]:
        for index, one in enumerate(runs):
            if show is not None:
                show(Progress(index, len(runs)))
            yield one

    with progress.shown(session.output, "sessions") if is_shown else nullcontext() as show:
        for one in importers.import_sessions(followed(), how):
            if one.trace is not None:
                read += 1
                yield one, one.trace
            elif one.error is not None:
                failed.append(one.error)
    if failed and not read and is_all:
        is_empty = isinstance(failed[0], EmptyLogError)
        hint = "Nothing ran in it, or it is a log of another format." if is_empty else failed[0].hint
        raise DataFileError(str(failed[0].args[0]), hint) from failed[0]
    empty = [error for error in failed if isinstance(error, EmptyLogError)]
    broken = [error for error in failed if not isinstance(error, EmptyLogError)]
    _tell([str(one.args[0]) for one in empty], "skipped, because nothing ran in it", session.output.note)
    leave_out(session, [str(one.args[0]) for one in broken])


def leave_out(session: Session, said: Sequence[str], noun: str = "session") -> None:
    """Say which sessions or traces are not in the output, and why: a sentence for each."""
    session.output.is_partial |= bool(said)
    _tell(said, "left out", session.output.tell, noun)


def _tell(said: Sequence[str], words: str, say: Callable[[str], None], noun: str = "session") -> None:
    for one in said[:_MOST_TOLD]:
        say(f"corpus: {words}: {printable(one, limit=300)}")
    more = len(said) - _MOST_TOLD
    if more > 0:
        say(f"corpus: {words}: {more:,} more {noun if more == 1 else noun + 's'}")


def privacy(salt: str = "", *, keep_content: bool = False) -> "Privacy":
    """Return how contents are pseudonymised; without a salt, by a random one that no other run knows."""
    from orchtrace_corpus.trace.importers.core.privacy import Privacy

    return Privacy(salt.encode("utf-8", "replace") if salt else os.urandom(16), keep_content)


def pricing(path: str, *, is_wanted: bool = False) -> Pricing | None:
    """A function that puts costs on a trace, by the prices of `price_table`; None where none are wanted.

    Raises:
        CommandUseError: Both sorts of prices are wanted.
        DataFileError: There are no such prices.
    """
    table = price_table(path, is_wanted=is_wanted)
    if table is None:
        return None
    from orchtrace_corpus.trace.analysis import prices

    return partial(prices.apply, table)


def price_table(path: str, *, is_wanted: bool = False) -> "AnyPrices | None":
    """A price table; None where there is none.

    Args:
        path: The user's table.
        is_wanted: Whether the prices of the package genai-prices are wanted instead.

    Raises:
        CommandUseError: Both are wanted.
        DataFileError: The table cannot be read, is wrong, or of a day that has not come; the package is not installed.
    """
    if path and is_wanted:
        raise CommandUseError("--prices and --cost contradict each other", "Give one of them.")
    if not path and not is_wanted:
        return None
    from orchtrace_corpus.base.dates import today
    from orchtrace_corpus.trace.analysis import prices  # which brings PyYAML, for who has prices

    if is_wanted:
        return prices.load_package(today())
    table = prices.load(path)
    if date.fromisoformat(table.date) > today() + timedelta(days=1):  # tomorrow has begun somewhere on earth
        where, hint = printable(path, limit=300), "Date it by the day on which the prices were looked up."
        raise DataFileError(f"{where}: the day of the prices, {table.date}, has not come yet", hint)
    return table


def outcomes(path: str) -> "Outcomes | None":
    """Return the outcomes of runs; None without a file.

    Raises:
        DataFileError: The file cannot be read, or has mistakes.
    """
    if not path:
        return None
    from orchtrace_corpus.trace.analysis.outcomes import Outcomes, load  # which brings PyYAML, for who has outcomes

    return Outcomes(load(path))


def tell_unused(session: Session, known: "Outcomes | None") -> None:
    """Say which outcomes are of no run that was read."""
    unused = known.unused if known else {}
    for name, outcome in unused.items():
        session.output.tell(f"corpus: {outcome.place}: none of the runs read is called {quote(name)}")
    if known and unused:
        session.output.is_partial = True
        named = first_names_and_more([printable(run) for run in known.runs], 5, ", …")
        session.output.tell(f"corpus: the runs read are called {named}")


def found(session: Session, paths: Sequence[str], form: str) -> list["importers.Session"]:
    """The sessions in files and folders that hold nothing but logs; files that are no log are told in number.

    Raises:
        CommandUseError: There is no such format, or standard input is asked for.
        DataFileError: There is no log there.
    """
    refuse_standard_input(paths)
    from orchtrace_corpus.trace import importers

    there = importers.find(paths, form)
    if not there.sessions and there.traces:
        hint = "Give them to corpus trace validate, show, doctor, measure or replay."
        raise DataFileError(f"{quote_path(paths[0])} holds traces already, not logs", hint)
    if not there.sessions:
        importers.refuse(paths, there)
    pass_over(session, there.passed_over, [*there.traces, *there.others])
    return there.sessions


def refuse_standard_input(paths: Sequence[str]) -> None:
    """See that logs are in files.

    Raises:
        CommandUseError: Standard input is named.
    """
    if "-" in paths:
        hint = "A session can be several files; name the file or folder that holds it."
        raise CommandUseError("logs are read from files and folders, not from standard input", hint)


def pass_over(session: Session, said: Sequence[str], others: Sequence["LogFile"]) -> None:
    """Say what was not looked into, and which files are not what was asked for."""
    for one in said:
        session.output.note(f"corpus: {one}")
    if others:
        named = first_names_and_more([printable(other.name, limit=100) for other in others], 8, ", …")
        what = "file that is not a log" if len(others) == 1 else "files that are not logs"
        session.output.note(f"corpus: skipped {len(others):,} {what} in a known format ({named})")


class Inputs(NamedTuple):
    """The inputs that a user names: files of traces, and sessions of logs.

    Attributes:
        traces: The files of traces, and those that are nothing that we know if there is no log among them.
        sessions: The sessions of logs.
    """

    traces: list[str]
    sessions: Sequence["importers.Session"]


def _trace_files(path: str) -> Iterator[str]:
    """The file itself, or the traces in a folder; none where it holds logs of other endings alone.

    Raises:
        DataFileError: There is neither.
    """
    try:
        yield from trace_files(path)
    except DataFileError as error:
        from orchtrace_corpus.trace.importers.core.logs import SUFFIXES

        if not any(name.endswith(SUFFIXES) for _, _, names in os.walk(path) for name in names):
            hint = f"Traces and logs end in {', '.join(SUFFIXES)}."
            raise DataFileError(f"no trace or log in {quote_path(path)}", hint) from error


def inputs(session: Session, paths: Sequence[str], form: str = "", *, is_log: bool = False) -> Inputs:
    """Return the traces and the sessions of logs in files and folders, as `importers.find` recognises them.

    What is neither beside others is told, in number. Pipes and devices are never read: see `open_regular`.

    Args:
        session: Where remarks go.
        paths: The files and folders.
        form: The format of all of them, which then are logs; recognised where empty.
        is_log: Whether what is neither, and stands alone, is refused as a log of no known format; else it is taken
            for a trace, whose mistakes are shown.

    Raises:
        CommandUseError: There is no such format.
        DataFileError: There is nothing of a name, no file in a folder, or nothing that is a log.
    """
    traces: list[str] = []
    unclear: list[str] = []
    for path in paths:
        files = list[str]()
        for file in _trace_files(path) if not form else ():
            if not holds_traces(file) and (is_log or os.path.exists(file)):
                files.clear()
                break
            files.append(file)
        traces += files
        unclear += [] if files else [path]
    if not unclear:
        return Inputs(traces, [])
    from orchtrace_corpus.trace import importers
    from orchtrace_corpus.trace.importers.core.logs import head

    there = importers.find(unclear, form)
    is_all = not there.sessions and not (is_log and there.traces)  # then mistakes are shown, whatever it shall be
    others = [other for other in there.others if is_all and not importers.is_binary(head(other))]
    if is_all and not traces and (is_log or not others + there.traces):
        importers.refuse(unclear, there)
    pass_over(session, there.passed_over, [one for one in there.others if one not in others])
    found = sorted(there.traces + others, key=lambda one: one.path)
    return Inputs([*traces, *(one.path for one in found)], there.sessions)
