"""The commands `corpus trace diff` and `corpus trace export`."""

import os
from enum import StrEnum
from typing import Annotated

from orchtrace_corpus.base.commands.declarations import Argument, Context, Option
from orchtrace_corpus.base.commands.options import OutputFormat, refuse_together
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.trace.cli import logs
from orchtrace_corpus.trace.cli.arguments import Cost, Files, OutcomesFile, PriceTable, SessionName
from orchtrace_corpus.trace.cli.loading import load_one_trace, refuse_json_lines, write_output
from orchtrace_corpus.trace.diagnosis import diagnose, summarize
from orchtrace_corpus.trace.diagnosis.comparison import compare
from orchtrace_corpus.trace.diagnosis.values import Origin
from orchtrace_corpus.trace.exporters.published import losses, publish
from orchtrace_corpus.trace.exporters.trainers import Shape
from orchtrace_corpus.trace.exporters.training import Division
from orchtrace_corpus.trace.model.json_text import loads, text
from orchtrace_corpus.trace.render.names import agent_names
from orchtrace_corpus.trace.render.tables import ALIKE, MAX_DIFFERENCES, SAME, difference_table, verdict
from orchtrace_corpus.trace.view import TraceView


def diff_traces(
    ctx: Context,
    first: Annotated[str, Argument(metavar="A", help="A trace as JSON, or a log; - for a trace on standard input.")],
    second: Annotated[str, Argument(metavar="B", help="Another run of the same task.")],
    names: Annotated[
        list[str] | None, Option("--session", metavar="NAME", help="The session of A; given twice, also that of B.")
    ] = None,
    price_table: PriceTable = "",
    is_cost: Cost = False,
    is_all: Annotated[bool, Option("--all", help="Show every difference, in a fixed order.")] = False,
    exit_code: Annotated[bool, Option("--exit-code", help="Exit with 1 if the runs differ.")] = False,
    output_format: OutputFormat = Format.TABLE,
    html: Annotated[str, Option("--html", metavar="FILE", help="Write both runs side by side as one HTML file.")] = "",
) -> int:
    """Compare two runs of one task: rewards, costs, measures, findings, agents, tools, models, structure.

    Shows only what differs. A table shows only the largest differences, in this order: rewards, elapsed time,
    tokens, cost, findings, measures and counts of events, calls and edges. Ids, times of single events and contents
    are ignored, since they differ between any two runs. The exit code is 0 whether the runs differ or not, unless
    --exit-code is given.

    \b
    Examples:
      corpus trace diff data/traces/swarm.json data/traces/hierarchical.json
      corpus trace diff data/traces/swarm.json data/traces/hierarchical.json --all
      corpus trace diff data/traces/swarm.json data/traces/hierarchical.json --html both.html
    """
    session = Session(*ctx.obj)
    if html and output_format is not Format.TABLE:
        raise CommandUseError(f"--html and --format {output_format} contradict each other", "Give one of them.")
    if first == second == "-":
        raise CommandUseError("standard input can be read only once")
    if names and len(names) > 2:
        raise CommandUseError("--session is given more than twice", "Name a session of A, then one of B.")
    first_name = names[0] if names else ""
    second_name = names[1] if names and len(names) == 2 else ""
    set_costs = logs.load_pricing(price_table, is_wanted=is_cost)
    _, before = load_one_trace(session, first, first_name)
    _, after = load_one_trace(session, second, second_name)
    traces = before.trace, after.trace
    if set_costs is not None:
        for trace in traces:
            set_costs(trace)
        # The old views may have kept figures without the costs.
        before = TraceView(before.trace)
        after = TraceView(after.trace)
    tasks = [trace.task_id for trace in traces]
    # The trace of a log has the name of the session as its task, because logs name no task.
    names_task = any(trace.task_id != trace.trace_id for trace in traces)
    if names_task and tasks[0] != tasks[1]:
        session.output.note(f"corpus: these are different tasks, {quote(tasks[0])} and {quote(tasks[1])}")
    differences = compare(before, after, (agent_names(before), agent_names(after)))
    code = ExitCode.FINDINGS if exit_code and differences else ExitCode.DONE
    if html:
        from orchtrace_corpus.trace.page import page  # imported here, because it imports everything that draws

        origin = Origin(has_prices=True) if set_costs is not None else None
        write_output(session, html, page([diagnose(before, origin), diagnose(after, origin)]))
        return code
    if not differences and output_format is Format.TABLE:
        session.output.write(SAME if traces[0] == traces[1] else ALIKE)
        return code
    if output_format.is_exact:
        differences = compare(before, after)  # with the ids of agents
    limit = MAX_DIFFERENCES if output_format is Format.TABLE and not is_all else None
    sides = (first, before.trace), (second, after.trace)
    table = difference_table(differences, sides, exact=output_format.is_exact, most=limit)
    if output_format is Format.TABLE:
        table = table._replace(title=verdict(summarize(before), summarize(after)))
    session.show_tables([table], "trace-diff", output_format)
    return code


class Profile(StrEnum):
    """The profiles of an export. The last three are for trainers, and take several traces."""

    FULL = "full"
    PUBLISHED = "published"
    ATIF = "atif"
    VERL = "verl"
    AGENT_LIGHTNING = "agent-lightning"
    SKYRL = "skyrl"


def export(
    ctx: Context,
    paths: Files,
    name: SessionName = "",
    profile: Annotated[Profile, Option("--profile", help="The schema, or the trainer, to write for.")] = Profile.FULL,
    output: Annotated[str, Option("--output", "-o", metavar="FILE", help="Write to a new file.")] = "",
    division: Annotated[
        Division | None,
        Option("--credit", help="For trainers: divide the reward among turns or agents, or give it to the last turn."),
    ] = None,
    channel: Annotated[str, Option("--channel", help="For trainers: the reward, as in corpus trace credit.")] = "",
    spec: Annotated[
        str, Option("--spec", metavar="NAME|FILE", help="For trainers: a reward to compute, as in corpus trace reward.")
    ] = "",
    outcomes_file: OutcomesFile = "",
    tokens: Annotated[
        str, Option("--tokens", metavar="DIR", help="For trainers: the folder of the logs that hold token ids.")
    ] = "",
    without_tokens: Annotated[
        bool, Option("--without-tokens", help="For trainers: also write turns whose token ids are unknown.")
    ] = False,
) -> int:
    """Write a trace with one event per line, in our schema or the published one, as ATIF 1.7, or for trainers.

    The profile published leaves out what the schema of arXiv 2605.02801 refuses: our own fields, null figures, and the
    events stop and inference, which new edges bridge. Omissions are reported on standard error.

    The profile atif writes a trajectory, with those of sub-agents embedded. What ATIF cannot express is kept in its
    fields "extra", from which corpus trace import restores the trace, and is listed on standard error.

    The profiles verl, agent-lightning and skyrl write all given runs, turn by turn, with rewards that add up to
    that of the run, and with the group-relative advantage if a task has several runs. docs/credit.md shows
    them.

    \b
    Examples:
      corpus trace export data/traces/swarm.json
      corpus trace export data/traces/swarm.json --profile published
      corpus trace export data/traces/swarm.json --profile verl --without-tokens
    """
    session = Session(*ctx.obj)
    if profile in (Profile.VERL, Profile.AGENT_LIGHTNING, Profile.SKYRL):
        from orchtrace_corpus.trace.cli import training
        from orchtrace_corpus.trace.cli.credit import rewarded_traces

        refuse_together(channel=bool(channel), spec=bool(spec))
        views, channel = rewarded_traces(session, paths, name, outcomes_file, channel)
        folder = tokens
        if not folder:
            folder = paths[0] if os.path.isdir(paths[0]) else os.path.dirname(paths[0])
        return training.export(
            session,
            views,
            channel,
            spec,
            folder,
            Shape(profile.value),
            division or Division.TURN,
            output,
            without_ids=without_tokens,
        )
    if division or channel or spec or outcomes_file or tokens or without_tokens:
        hint = "--credit, --channel, --spec, --outcomes, --tokens, --without-tokens: for verl, agent-lightning, skyrl."
        raise CommandUseError(f"the profile {profile} writes no rewards of turns", hint)
    if len(paths) > 1:
        raise CommandUseError(f"the profile {profile} is for one trace, and {len(paths)} are given")
    refuse_json_lines(output)
    document, _ = load_one_trace(session, paths[0], name)
    trace = loads(document.data)
    if profile is Profile.ATIF:
        from orchtrace_corpus.trace.exporters import atif  # imported here, because it imports the importer, too

        write_output(session, output, text(atif.as_atif(trace)))
        losses_in_atif = atif.losses(trace)
        if losses_in_atif:
            session.output.note(f"corpus: in extra only, since ATIF has no word for it: {'; '.join(losses_in_atif)}")
        return ExitCode.DONE
    exported = publish(trace) if profile is Profile.PUBLISHED else trace
    write_output(session, output, text(exported))
    if profile is Profile.PUBLISHED:
        left_out = losses(trace, exported)
        if left_out:
            session.output.note(f"corpus: left out: {'; '.join(left_out)}")
        else:
            session.output.note("corpus: nothing was left out")
    return ExitCode.DONE
