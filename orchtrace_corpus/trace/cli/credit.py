"""The command `corpus trace credit`."""

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
from orchtrace_corpus.trace.cli.arguments import Files, OutcomesFile, SessionName
from orchtrace_corpus.trace.cli.loading import STANDARD_INPUT, STANDARD_INPUT_NAME, documents_of, sound_traces
from orchtrace_corpus.trace.credit.assign import Choices, Method, assign
from orchtrace_corpus.trace.credit.evidence import find_evidence
from orchtrace_corpus.trace.credit.methods import DEFAULT_SAMPLES
from orchtrace_corpus.trace.model.store import InvalidTraceError
from orchtrace_corpus.trace.render.names import agent_names
from orchtrace_corpus.trace.render.tables import credit_data, credit_tables, exact_credit
from orchtrace_corpus.trace.view import TraceView


def credit(
    ctx: Context,
    paths: Files,
    name: SessionName = "",
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
    ] = DEFAULT_SAMPLES,
    seed: Annotated[int, Option("--seed", help="shapley: the seed of the sampling.")] = 0,
    with_people: Annotated[
        bool, Option("--with-people", help="Also give credit to people, not only to agents.")
    ] = False,
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Divide a run's reward among its tokens, turns, messages, calls, agents or roles.

    The methods difference and shapley compare coalitions: by the values of runs without some members (--values), else
    by a proxy on the trace's graph; the output says which. The method group compares several runs of one task; gae and
    mean need the value of each step (--values). docs/credit.md gives the formulas.

    Shapley values are exact for any number of players with the proxy, and for up to 12 players with --values. With more
    players, as many random orders as --samples says are used, and each figure has a standard error.

    Credit does not locate faults: the output says how often it found faults planted in test runs, and what finds more.

    Logs contain no rewards: --outcomes gives them, as in corpus trace import. Exit code 1: an outcome belongs
    to no run, or a run without a reward was left out; 2: no run has one.

    \b
    Examples:
      corpus trace credit data/traces/swarm.json
      corpus trace credit data/traces/swarm.json --unit role --method difference
      corpus trace credit data/traces/swarm.json --channel orchestration --format json
    """
    session = Session(*ctx.obj)
    if values == STANDARD_INPUT and STANDARD_INPUT in paths:
        raise CommandUseError("standard input can be read only once", "Name a file for the traces, or for --values.")
    views, channel = rewarded_traces(session, paths, name, outcomes_file, channel)
    rewarded = views if values else [view for view in views if channel in view.trace.rewards]
    if rewarded:  # if no run has a reward, `assign` raises an error about the first run
        unrewarded = [view.trace.trace_id for view in views if view not in rewarded]
        reasons = [f"the trace {quote(trace_id)} has no reward {quote(channel)}" for trace_id in unrewarded]
        logs.report_left_out(session, reasons, "trace")
        views = rewarded
    choices = Choices(
        channel=channel,
        values=_read_values(values) if values else None,
        values_path=STANDARD_INPUT_NAME if values == STANDARD_INPUT else values,
        gamma=gamma,
        lam=lam,
        samples=samples,
        seed=seed,
        with_people=with_people,
    )
    assignments = assign(views, unit, method, choices)
    for assignment in assignments:
        for warning in assignment.warnings:
            session.output.note(f"corpus: {printable(assignment.trace_id)}: {warning}")
    quality = find_evidence(unit, method, has_values=bool(values))
    if output_format is Format.JSON:
        session.output.write(envelope("trace-credit", credit_data(assignments, unit, method, channel, quality)))
        return ExitCode.DONE
    if output_format.is_exact:
        tables = [exact_credit(assignments, unit)]
    else:
        names = [agent_names(view) if unit in ("agent", "orchestrator") else {} for view in views]
        tables = credit_tables(assignments, unit, names, quality)
    session.show_tables(tables, "trace-credit", output_format)
    return ExitCode.DONE


def rewarded_traces(
    session: Session, paths: Sequence[str], name: str, outcomes_file: str, channel: str
) -> tuple[list[TraceView], str]:
    """Return traces with the outcomes of a file, and the reward channel.

    Without a channel, it is `team`, or the only one that the traces have. That is reported, as are outcomes that match
    no run.
    """
    outcomes = logs.load_outcomes(outcomes_file)
    views = [view for _, view in sound_traces(session, documents_of(session, paths, name))]
    if outcomes is not None:
        for view in views:
            outcome = outcomes.take(view.trace.trace_id)
            if outcome is not None:
                outcome.apply(view.trace)
    logs.report_unused(session, outcomes)
    channels = {reward_channel for view in views for reward_channel in view.trace.rewards}
    if outcomes and outcomes.unused and not channels:  # the outcomes are those of other runs
        raise InvalidTraceError("no run that was read has a reward")
    if channel:
        return views, channel
    default_channel = Choices().channel
    if len(channels) != 1 or default_channel in channels:
        return views, default_channel
    (channel,) = channels
    session.output.note(f"corpus: taking the reward {quote(channel)}, the only one there is")
    return views, channel


def _read_values(path: str) -> str:
    """Return the text of a file of values, or of standard input."""
    try:
        if path == STANDARD_INPUT:
            if sys.stdin is None or sys.stdin.isatty():
                raise CommandUseError("there is nothing on standard input", "Name a file of values, or pipe one in.")
            return sys.stdin.buffer.read().decode("utf-8")
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise DataFileError(f"cannot read {quote_path(path)}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataFileError(f"cannot read {quote_path(path)}: not UTF-8") from error
