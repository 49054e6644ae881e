"""The command `corpus trace import`."""

import itertools
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

from orchtrace_corpus.base.commands.declarations import Argument, Context, Option
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.files import new_file
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.trace.cli import logs
from orchtrace_corpus.trace.cli.arguments import Cost, LogFormat, OutcomesFile, PriceTable
from orchtrace_corpus.trace.cli.loading import cannot_write, format_by_ending, refuse_json_lines
from orchtrace_corpus.trace.importers.core.builder import as_data
from orchtrace_corpus.trace.model.json_text import one_line, text
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.render.imports import Tally
from orchtrace_corpus.trace.rules import import_error


class Form(StrEnum):
    """The formats in which traces are written."""

    JSONL = "jsonl"
    JSON = "json"
    PARQUET = "parquet"


_FORMS_BY_ENDING = {
    "": Form.JSONL,
    ".jsonl": Form.JSONL,
    ".ndjson": Form.JSONL,
    ".json": Form.JSON,
    ".parquet": Form.PARQUET,
}


def import_(
    ctx: Context,
    paths: Annotated[
        list[str], Argument(metavar="PATH...", help="Logs, or folders of logs; name all files of a session together.")
    ],
    output: Annotated[
        str, Option("--output", "-o", metavar="OUT", help="Write to a new file; for Parquet, to a new folder.")
    ] = "",
    to: Annotated[
        Form | None,
        Option("--to", help="A trace per line, an event per line, or five tables (default: by the ending of OUT)."),
    ] = None,
    form: LogFormat = "",
    keep_content: Annotated[bool, Option("--keep-content", help="Keep contents in full instead of hashes.")] = False,
    salt: Annotated[
        str,
        Option(
            "--salt", metavar="TEXT", help="The salt of the hashes, for equal hashes in every run (default: random)."
        ),
    ] = "",
    price_table: PriceTable = "",
    is_cost: Cost = False,
    outcomes_file: OutcomesFile = "",
) -> int:
    """Convert the logs of agent teams to traces.

    Each session, with its sub-agents, becomes one trace, which corpus trace validate accepts. Contents stay in
    the log: a trace has only salted hashes of them, and e-mail addresses, home folders and keys are removed
    from names. Standard error reports what became of every record, and how the tokens were counted.

    Exit code 1: some sessions could not be read, or an outcome belongs to no run; the rest is written. 3: there
    is no session to read.

    \b
    Examples:
      corpus trace import path/to/logs > traces.jsonl
      corpus trace import path/to/logs -o traces.jsonl --salt ours
      corpus trace import path/to/logs --to parquet -o tables
    """
    session = Session(*ctx.obj)
    output_form = to or format_by_ending(output, _FORMS_BY_ENDING, "traces", "--to")
    if output_form is Form.PARQUET and not output:
        raise CommandUseError("Parquet is written to a folder", "Name a new one: --to parquet -o FOLDER")
    if output_form is Form.JSON:
        refuse_json_lines(output)
    set_costs = logs.load_pricing(price_table, is_wanted=is_cost)
    outcomes = logs.load_outcomes(outcomes_file)
    if output and os.path.lexists(output):
        raise cannot_write(output, FileExistsError())
    sessions = logs.find_sessions(session, paths, form)
    tally = Tally()
    errors: list[DataFileError] = []

    def traces() -> Iterator[Trace]:
        writes_to_terminal = not output and session.output.width is not None
        privacy = logs.make_privacy(salt, keep_content=keep_content)
        for imported, trace in logs.read_sessions(session, sessions, privacy, shows_progress=not writes_to_terminal):
            error = import_error(trace)
            if error is not None:
                errors.append(error)
                continue
            if set_costs is not None:
                set_costs(trace)
            outcome = outcomes.take(trace.trace_id) if outcomes else None
            if outcome is not None:
                outcome.apply(trace)
            tally.add(trace, imported.answers)
            yield trace

    # SIGTERM is treated like Ctrl-C, so that it, too, leaves no incomplete file.
    previous_handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _write(session, output_form, output, traces())
    finally:
        signal.signal(signal.SIGTERM, previous_handler)
    if session.output.is_closed:
        return ExitCode.DONE
    for error in errors:
        session.output.tell(f"corpus: left out: {printable(str(error), limit=600)}")
        session.output.is_partial = True
    for line in tally.lines(session.output.stderr_width):
        session.output.note(line)
    if keep_content:
        session.output.note("Contents are kept in full: be careful who gets these traces.")
    if output:
        session.output.note(f"wrote {printable(output, limit=300)}")
    logs.report_unused(session, outcomes)
    return ExitCode.DONE


def _write(session: Session, form: Form, path: str, traces: Iterable[Trace]) -> None:
    """Write traces in a format."""
    if form is Form.PARQUET:
        from orchtrace_corpus.trace.dataset import tables

        tables.write(traces, path)
        return
    with _writer(session, path) as write:
        if form is Form.JSON:
            trace, *others = itertools.islice(traces, 2)
            if others:
                hint = "Write --to jsonl, or name the files of one session."
                raise CommandUseError("there are several traces, and --to json writes only one", hint)
            write(text(as_data(trace)))
            return
        for trace in traces:
            write(one_line(as_data(trace)))
            if session.output.is_closed:
                break


@contextmanager
def _writer(session: Session, path: str) -> Iterator[Callable[[str], object]]:
    """Provide a function that writes to standard output, or to a file that appears only when all is written."""
    if not path:
        yield session.output.write
        return
    try:
        with new_file(path) as file:
            yield file.write
    except OSError as error:
        raise cannot_write(path, error) from error
