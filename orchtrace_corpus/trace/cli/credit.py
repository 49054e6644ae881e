"""`corpus trace credit`."""

import sys
from collections.abc import Sequence
from typing import Annotated

from orchtrace_corpus.base.commands.declarations import Context, Option
from orchtrace_corpus.base.commands.options import OutputFormat
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import printable, quote, quote_path
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.table import envelope
from orchtrace_corpus.trace.cli import logs
from orchtrace_corpus.trace.cli.arguments import Files, Name, OutcomesFile
from orchtrace_corpus.trace.cli.loading import documents_of, sound_traces
from orchtrace_corpus.trace.credit.assign import Choices, Method, assign
from orchtrace_corpus.trace.credit.evidence import evidence
from orchtrace_corpus.trace.model.store import InvalidTraceError
from orchtrace_corpus.trace.render.names import names_in
from orchtrace_corpus.trace.render.tables import credit_data, credit_tables, exact_credit
from orchtrace_corpus.trace.view import TraceView

_STANDARD_INPUT, _ITS_NAME = "-", "<stdin>"


def credit(
    ctx: Context,
    paths: Files,
    name: Name = "",
    unit: Annotated[
        str, Option("--unit", help="token, turn, message, tool, agent, role, orchestrator or team.")
    ] = "agent",
    method: Annotated[Method, Option("--method", help="How credit is assigned.")] = Method.SHAPLEY,
    channel: Annotated[
        str, Option("--channel", help="The reward to divide (default: team, or the only channel).")
    ] = "",
    values: Annotated[
        str,
        Option("--values", metavar="FILE", help="Values of coalitions, or of steps, as JSON; - for standard input."),
    ] = "",
    outcomes_file: OutcomesFile = "",
    gamma: Annotated[float, Option("--gamma", min=0, max=1, help="gae: the discount.")] = 1.0,
    lam: Annotated[
        float, Option("--lambda", min=0, max=1, help="gae: from one step (0) to the whole return (1).")
    ] = 0.95,
    samples: Annotated[
        int, Option("--samples", min=4, help="shapley with --values: random orders, for more than 12 players.")
    ] = 2000,
    seed: Annotated[int, Option("--seed", help="shapley: the seed of the sampling.")] = 0,
    with_people: Annotated[
        bool, Option("--with-people", help="Also give credit to people, not only to agents.")
    ] = False,
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Divide a run's reward among its tokens, turns, messages, calls, agents or roles.

    difference and shapley compare coalitions: with runs made without some members (--values), else with a proxy
    on the trace's graph; the output says which. group compares several runs of one task; gae and mean need the
    value of each step (--values). docs/credit.md gives the formulas.

    Shapley values are exact for any number of players with the proxy, and for up to 12 players with --values.
    With more players, --samples random orders are used, and each figure has a standard error.

    Credit is no search for faults: the output says how often the method found planted ones, and what finds more.

    Logs contain no rewards: --outcomes gives them, as in corpus trace import. Exit code 1: an outcome belongs
    to no run, or a run without a reward was left out; 2: no run has one.

    \b
    Examples:
      corpus trace credit data/traces/swarm.json
      corpus trace credit data/traces/swarm.json --unit role --method difference
      corpus trace credit data/traces/swarm.json --channel orchestration --format json
    """
    session = Session(*ctx.obj)
    if values == _STANDARD_INPUT and _STANDARD_INPUT in paths:
        raise CommandUseError("standard input can be read only once", "Name a file for the traces, or for --values.")
    traces, channel = rewarded_traces(session, paths, name, outcomes_file, channel)
    lacking = [] if values else [view for view in traces if channel not in view.trace.rewards]
    if len(lacking) < len(traces):
        said = [f"the trace {quote(view.trace.trace_id)} has no reward {quote(channel)}" for view in lacking]
        logs.leave_out(session, said, "trace")
        traces = [view for view in traces if view not in lacking]
    shown = _ITS_NAME if values == _STANDARD_INPUT else values
    choices = Choices(channel, _read(values) if values else None, shown, gamma, lam, samples, seed, with_people)
    assignments = assign(traces, unit, method, choices)
    for assignment in assignments:
        for warning in assignment.warnings:
            session.output.note(f"corpus: {printable(assignment.trace_id)}: {warning}")
    known = evidence(unit, method, has_values=bool(values))
    if output_format is Format.JSON:
        session.output.write(envelope("trace-credit", credit_data(assignments, unit, method, channel, known)))
    else:
        names = [names_in(view) if unit in ("agent", "orchestrator") else {} for view in traces]
        are_exact = output_format.is_exact
        tables = [exact_credit(assignments, unit)] if are_exact else credit_tables(assignments, unit, names, known)
        session.show_tables(tables, "trace-credit", output_format)
    return ExitCode.DONE


def rewarded_traces(
    session: Session, paths: Sequence[str], name: str, outcomes_file: str, channel: str
) -> tuple[list[TraceView], str]:
    """Traces with the outcomes of a file put on them, and the reward that counts; outcomes of no run are said.

    Raises:
        CommandUseError: Standard input is wanted twice; or no trace, or several, have the name.
        DataFileError: A file cannot be read.
        InvalidTraceError: All traces have errors; or no run has a reward, and an outcome is of none of them.
    """
    known = logs.outcomes(outcomes_file)
    views = [view for _, view in sound_traces(session, documents_of(session, paths, name))]
    for view in views:
        if known and (outcome := known.take(view.trace.trace_id)):
            outcome.apply(view.trace)
    logs.tell_unused(session, known)
    if known and known.unused and not any(view.trace.rewards for view in views):
        raise InvalidTraceError("no run that was read has a reward")
    return views, channel or _channel(session, views)


def _channel(session: Session, traces: Sequence[TraceView]) -> str:
    """The reward that is taken where none is named: `team`, or the only one that there is, which is said."""
    usual = Choices().channel
    there = {channel for view in traces for channel in view.trace.rewards}
    if len(there) != 1 or usual in there:
        return usual
    (channel,) = there
    session.output.note(f"corpus: taking the reward {quote(channel)}, the only one there is")
    return channel


def _read(path: str) -> str:
    try:
        if path == _STANDARD_INPUT:
            if sys.stdin is None or sys.stdin.isatty():
                raise CommandUseError("there is nothing on standard input", "Name a file of values, or pipe one in.")
            return sys.stdin.buffer.read().decode("utf-8")
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(path)}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataFileError(f"cannot read {quote_path(path)}: not UTF-8") from error
