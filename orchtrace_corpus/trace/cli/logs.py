"""How commands come by the traces of logs: sessions found, read one after another, what fails told."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from orchtrace_corpus.base.commands import progress
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import printable, quote_path
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core import logs
from orchtrace_corpus.trace.importers.core.privacy import Privacy

if TYPE_CHECKING:
    from orchtrace_corpus.trace.model.trace import Trace

Pricing: TypeAlias = Callable[["Trace"], None]

_MOST_TOLD = 5


class TracesGivenError(DataFileError):
    """What was given are traces already, and no logs."""


class Reading:
    """Reads the sessions of logs.

    Attributes:
        failed: How many sessions could not be read. Logs in which nothing ran are none of them.
    """

    def __init__(self, session: Session) -> None:
        self.failed = 0
        self._session = session

    def traces(
        self, sessions: Sequence[importers.Session], how: Privacy, *, is_shown: bool = True
    ) -> Iterator[tuple[str, "Trace"]]:
        """The traces of sessions, each with its format; what cannot be read is told, and does not stop the rest.

        Args:
            sessions: The sessions.
            how: How contents are referred to.
            is_shown: Whether a terminal shows how far it has come.

        Raises:
            DataFileError: There is no trace at all; the message is about the first session.
        """
        from orchtrace_corpus.base.progress import Progress

        failed: list[DataFileError] = []
        read = 0

        def followed() -> Iterator[importers.Session]:
            for number, one in enumerate(sessions):
                if show is not None:
                    show(Progress(number, len(sessions)))
                yield one

        with progress.shown(self._session.output, "sessions") if is_shown else nullcontext() as show:
            for form, _, trace, error in importers.import_sessions(followed(), how):
                if trace is not None:
                    read += 1
                    yield form, trace
                elif error is not None:
                    failed.append(error)
        if failed and not read:
            is_empty = isinstance(failed[0], logs.EmptyLogError)
            hint = "Nothing ran in it, or it is a log of another format." if is_empty else failed[0].hint
            raise DataFileError(str(failed[0].args[0]), hint) from failed[0]
        empty = [error for error in failed if isinstance(error, logs.EmptyLogError)]
        broken = [error for error in failed if not isinstance(error, logs.EmptyLogError)]
        self.failed = len(broken)
        self._tell(empty, "corpus: passed over, since nothing ran in it", self._session.output.note)
        self._tell(broken, "corpus: left out", self._session.output.tell)

    def _tell(self, errors: Sequence[DataFileError], words: str, say: Callable[[str], None]) -> None:
        for error in errors[:_MOST_TOLD]:
            say(f"{words}: {printable(str(error.args[0]), limit=300)}")
        more = len(errors) - _MOST_TOLD
        if more > 0:
            say(f"{words}: {more:,} more {'session' if more == 1 else 'sessions'}")


def privacy(salt: str, *, keep_content: bool) -> Privacy:
    """How contents are referred to; without a salt by one that nobody knows, not even the next run."""
    return Privacy(salt.encode("utf-8", "replace") if salt else os.urandom(16), keep_content)


def pricing(path: str) -> Pricing | None:
    """A function that puts costs on a trace, by a price table; None where there is no table.

    Raises:
        DataFileError: The table cannot be read, is wrong, or of a day that has not come.
    """
    if not path:
        return None
    from orchtrace_corpus.base.dates import today
    from orchtrace_corpus.trace.analysis import prices  # which brings PyYAML, for who has prices

    table = prices.load(path)
    if date.fromisoformat(table.date) > today() + timedelta(days=1):  # tomorrow has begun somewhere on earth
        where, hint = printable(path, limit=300), "Date it by the day on which the prices were looked up."
        raise DataFileError(f"{where}: the day of the prices, {table.date}, has not come yet", hint)
    return partial(prices.apply, table)


def found(session: Session, paths: Sequence[str], form: str) -> list[importers.Session]:
    """The sessions in files and folders; files that are no log are told in number.

    Raises:
        CommandUseError: There is no such format, or standard input is asked for.
        DataFileError: There is no log there.
        TracesGivenError: There are only traces.
    """
    if "-" in paths:
        hint = "A session can be several files; name the file or folder that holds it."
        raise CommandUseError("logs are read from files and folders, not from standard input", hint)
    there = importers.find(paths, form)
    if not there.sessions:
        if there.has_traces:
            hint = "Give them to corpus trace validate, show, doctor, measure or replay."
            raise TracesGivenError(f"{quote_path(paths[0])} holds traces already, and no log", hint)
        importers.refuse(paths, there)
    for said in there.passed_over:
        session.output.note(f"corpus: {said}")
    if there.others:
        named = ", ".join(printable(one.name, limit=100) for one in there.others[:3])
        more = ", …" if len(there.others) > 3 else ""
        what = "file is no log" if len(there.others) == 1 else "files are no logs"
        session.output.note(
            f"corpus: passed over: {len(there.others):,} {what} of a format that we know ({named}{more})"
        )
    return there.sessions
