"""The command `corpus trace doctor`: a screen of one run, the differences of two runs, totals and a list of many."""

import os
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

from orchtrace_corpus.base.commands.declarations import Argument, Context, Option
from orchtrace_corpus.base.commands.options import OutputFormat, refuse_together, split_names
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.trace.cli import logs
from orchtrace_corpus.trace.cli.arguments import Cost, LogFormat, Page, PriceTable, SessionName
from orchtrace_corpus.trace.cli.collection import Collected, Folders, Request, Run, run_of_log
from orchtrace_corpus.trace.cli.loading import Candidate, choose_by_name, documents_in_files, sound_traces, write_output
from orchtrace_corpus.trace.diagnosis import diagnose, first_words, summarize
from orchtrace_corpus.trace.diagnosis.values import Origin
from orchtrace_corpus.trace.render import doctor as render
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:
    from datetime import tzinfo

    from orchtrace_corpus.trace.diagnosis.totals import Grouping


def doctor(
    ctx: Context,
    paths: Annotated[
        list[str] | None,
        Argument(
            metavar="[PATH...]",
            help="Logs or traces, or folders of them (default: the newest session in the home folder).",
            show_default=False,
        ),
    ] = None,
    name: SessionName = "",
    form: LogFormat = "",
    price_table: PriceTable = "",
    is_cost: Cost = False,
    is_list: Annotated[bool, Option("--list", help="List the newest sessions below the home folder instead.")] = False,
    by: Annotated[
        str,
        Option("--by", metavar="A,B,...", help="Show only totals, in full, by day, month, project, model or session."),
    ] = "",
    timezone: Annotated[
        str, Option("--timezone", metavar="NAME", help="Days are those of this zone, as Europe/Berlin. Default: local.")
    ] = "",
    limit: Annotated[int, Option("--limit", min=1, help="At most N rows of a table, or N sessions of --list.")] = 15,
    output_format: OutputFormat = Format.TABLE,
    html: Page = "",
    with_content: Annotated[
        bool, Option("--content", help="Show contents, too: all on the page of --html, else the first words.")
    ] = False,
) -> int:
    """Show on one page where the time and money of a logged run went.

    Shows who spawned whom, what ran in parallel, which steps delayed the end, the tokens by agent and model,
    and what is wrong with the log. Several sessions get totals by day, project and model, and one line each, most
    expensive first. Two that are named separately are compared, largest differences first. --html writes one run,
    or two side by side, as a page with a timeline and a replay; without it, nothing is written.

    Without a PATH, shows the newest session below the home folder; --session selects another by its name. The sessions
    of Claude Code, Codex, Qwen Code, Gemini CLI, OpenCode, Copilot CLI, Kimi Code and Pi are found there. Variables
    such as CLAUDE_CONFIG_DIR and CODEX_HOME, which move their folders, are followed. --list lists the newest sessions
    there with their totals; with --by, the totals of all of them.

    Totals count each answer once, on the day on which it was complete, whatever copies of it other sessions have.

    Exit code 1: some sessions could not be read. 3: there is no session to read.

    \b
    Examples:
      corpus trace doctor
      corpus trace doctor --list
      corpus trace doctor --list --by month,model --cost
      corpus trace doctor path/to/logs
      corpus trace doctor path/to/logs --by day --format csv
      corpus trace doctor data/traces/hierarchical.json
      corpus trace doctor data/traces/swarm.json data/traces/hierarchical.json
      corpus trace doctor data/traces/swarm.json --format json
      corpus trace doctor data/traces/swarm.json --html run.html
    """
    session = Session(*ctx.obj)
    if is_list and (paths or name or form or html):
        raise CommandUseError("--list takes no PATH, --session, --from or --html")
    refuse_together(html=bool(html), by=bool(by))
    refuse_together(by=bool(by), content=with_content)
    if html and output_format is not Format.TABLE:
        raise CommandUseError(f"--html and --format {output_format} contradict each other", "Give one of them.")
    zone, zone_name = _time_zone(timezone)
    request = Request(
        name=name,
        form=form,
        set_costs=logs.load_pricing(price_table, is_wanted=is_cost),
        limit=limit,
        output_format=output_format,
        html=html,
        with_content=with_content,
        groupings=_groupings(by),
        zone=zone,
        zone_name=zone_name,
    )
    if is_list:
        from orchtrace_corpus.trace.cli import recent

        return recent.show_list(session, request)
    return show(session, paths or (), request)


def _groupings(by: str) -> "tuple[Grouping, ...]":
    """Return the groupings of totals that a comma-separated list names."""
    if not by:
        return ()
    from orchtrace_corpus.trace.diagnosis.totals import Grouping

    known = [grouping.value for grouping in Grouping]
    names = tuple(dict.fromkeys(split_names(by)))
    for name in names:
        if name not in known:
            raise CommandUseError(f"there are no totals by {quote(name)}{suggestion(name, known)}")
    return tuple(map(Grouping, names))


def _time_zone(name: str) -> "tuple[tzinfo | None, str]":
    """Return the time zone with a name, or None for the local one if the name is empty; and its name for people."""
    if not name:
        import time

        local_names = dict.fromkeys(time.tzname)  # those of winter and summer, often equal
        return None, f"the local time zone ({'/'.join(local_names)})"
    if name == "UTC":
        from datetime import UTC

        return UTC, name
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name), name
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise CommandUseError(f"there is no time zone {quote(name)}", "Names are those as Europe/Berlin.") from error


def show(session: Session, paths: Sequence[str], request: Request) -> ExitCode:
    """Show where the time and the money of runs went, and return the exit code.

    Without paths, it is the session below the home folder that the request names, or the newest one.
    """
    logs.refuse_standard_input(paths)
    if paths:
        inputs = logs.find_inputs(session, paths, request.form, is_log=True)
    else:
        from orchtrace_corpus.trace.cli import recent

        inputs = recent.find_by_name(request.name) if request.name else recent.find_newest(session)
    runs = _runs(session, paths, inputs, request)
    if request.name:
        candidates = (Candidate(view.trace.trace_id, origin.file, (view, origin)) for view, origin in runs)
        runs = iter([choose_by_name(candidates, request.name)])
    if request.html:
        _write_page(session, runs, request)
    elif request.groupings:
        collected = Collected(request)
        for view, origin in runs:
            collected.add(view, origin)
        collected.show_totals(session)
    elif request.output_format is Format.JSON:
        _write_data(session, paths, runs, request)
    else:
        _show_runs(session, paths, runs, request)
    return ExitCode.DONE


def _runs(session: Session, paths: Sequence[str], inputs: logs.Inputs, request: Request) -> Iterator[Run]:
    """Return the runs of traces and of logs, in the order of paths: first logs if the first path is one of logs.

    Raises:
        DataFileError: There is no run.
    """
    runs_of_traces = _runs_of_traces(session, inputs, request)
    runs_of_logs = _runs_of_logs(session, inputs, request)
    if paths and _has_log(inputs, paths[0]):
        runs = chain(runs_of_logs, runs_of_traces)
    else:
        runs = chain(runs_of_traces, runs_of_logs)
    first = next(runs, None)
    if first is None:
        raise DataFileError("there is no run that can be read")
    return chain([first], runs)


def _has_log(inputs: logs.Inputs, path: str) -> bool:
    """Return True if a path is a log of the inputs, or a folder with one."""
    folder = os.path.join(path, "")
    for log_session in inputs.sessions:
        for file in log_session.files:
            if file.path == path or file.path.startswith(folder):
                return True
    return False


def _runs_of_logs(session: Session, inputs: logs.Inputs, request: Request) -> Iterator[Run]:
    if not inputs.sessions:
        return
    folders = Folders()
    privacy = logs.make_privacy(keep_content=request.with_content)
    for imported, trace in logs.read_sessions(session, inputs.sessions, privacy, is_only_input=not inputs.traces):
        yield run_of_log(imported, trace, folders, request)


def _runs_of_traces(session: Session, inputs: logs.Inputs, request: Request) -> Iterator[Run]:
    if not inputs.traces:
        return
    documents = documents_in_files(session, inputs.traces)
    for document, view in sound_traces(session, documents, is_only_input=not inputs.sessions):
        if request.set_costs is not None:
            request.set_costs(view.trace)
            view = TraceView(view.trace)  # the old view may have kept figures without the costs
        has_prices = request.set_costs is not None or any(event.cost_usd is not None for event in view.trace.events)
        yield view, Origin(file=document.path, has_prices=has_prices)


def _write_page(session: Session, runs: Iterator[Run], request: Request) -> None:
    """Write one run, or two side by side, as an HTML file."""
    chosen = list(islice(runs, 3))
    if len(chosen) > 2:
        raise CommandUseError("a page shows one run or two, and there are more", "Choose one with --session.")
    from orchtrace_corpus.trace.page import page  # imported here, because it imports everything that draws

    diagnoses = [diagnose(view, origin) for view, origin in chosen]
    write_output(session, request.html, page(diagnoses, with_content=request.with_content))


def _write_data(session: Session, paths: Sequence[str], runs: Iterator[Run], request: Request) -> None:
    """Write the figures of all runs as JSON, each as soon as it is read, so that one run at a time is in memory.

    If two paths are given and each is a single run, their differences follow.
    """
    from orchtrace_corpus.base.text.table import envelope_parts

    collected = Collected(request)
    compared: list[TraceView] = []  # the two runs of two paths; emptied if there are more runs

    def sessions() -> Iterator[dict[str, Any]]:
        for view, origin in runs:
            summary = collected.add(view, origin)
            if len(paths) == 2 and len(collected.summaries) <= 2:
                compared.append(view)
            else:
                compared.clear()
            data = render.as_data(diagnose(view, origin))
            if request.with_content:
                data["first_words"] = summary.first_words or None
            yield data

    def members_after_sessions() -> dict[str, object]:
        members: dict[str, object] = {"all": render.sums(collected.summaries, collected.totals.shared)}
        if len(compared) == 2:
            from orchtrace_corpus.trace.diagnosis.comparison import compare
            from orchtrace_corpus.trace.render.tables import difference_data

            members["differences"] = difference_data(compare(compared[0], compared[1]))
        members["totals"] = collected.data()
        return members

    for part in envelope_parts("trace-doctor", "sessions", sessions(), members_after_sessions):
        session.output.write(part)


def _show_runs(session: Session, paths: Sequence[str], runs: Iterator[Run], request: Request) -> None:
    """Show one run on a screen, two runs of two paths as a comparison, and any others as totals and a list."""
    # One more run than can be shown without a list, to know if there are more.
    first_runs = list(islice(runs, 3 if len(paths) == 2 else 2))
    if request.output_format is Format.TABLE and len(first_runs) == 1:
        _show_screen(session, first_runs[0], request)
        return
    if request.output_format is Format.TABLE and len(first_runs) == len(paths) == 2:
        if request.with_content:
            raise CommandUseError("a comparison shows no content", "Add --html FILE, or leave out --content.")
        _show_comparison(session, paths, first_runs)
        return
    collected = Collected(request)
    while first_runs:  # `pop`, so that the memory of each run is freed
        view, origin = first_runs.pop(0)
        collected.add(view, origin)
    for view, origin in runs:
        collected.add(view, origin)
    width = session.output.width
    session.show_tables([*collected.tables(width), collected.run_table(width)], "trace-sessions", request.output_format)


def _show_screen(session: Session, run: Run, request: Request) -> None:
    """Show one run, fitted to the size of the terminal if there is one."""
    size = None
    if session.output.width is not None:
        import shutil

        size = session.output.width, shutil.get_terminal_size().lines
    view, origin = run
    diagnosis = diagnose(view, origin)
    if request.with_content:
        summary = diagnosis.summary._replace(first_words=first_words(view.trace))
        diagnosis = diagnosis._replace(summary=summary)
    lines = render.page(diagnosis, size, session.output.glyphs)
    renamed = session.output.renamed  # commands in the text get the name under which the program was started
    session.output.show([tuple(span._replace(text=renamed(span.text)) for span in line) for line in lines])


def _show_comparison(session: Session, paths: Sequence[str], runs: Sequence[Run]) -> None:
    """Show the critical paths of two runs and their largest differences."""
    from orchtrace_corpus.trace.diagnosis.comparison import compare
    from orchtrace_corpus.trace.render.names import agent_names
    from orchtrace_corpus.trace.render.tables import MAX_DIFFERENCES, difference_table, path_table, verdict

    (before, before_origin), (after, after_origin) = runs
    before_summary = summarize(before)
    after_summary = summarize(after)
    differences = compare(before, after, (agent_names(before), agent_names(after)))
    sides = (paths[0], before.trace), (paths[1], after.trace)
    table = difference_table(differences, sides, exact=False, most=MAX_DIFFERENCES)
    if before_summary.unit == after_summary.unit:
        tables = [path_table(diagnose(before, before_origin), diagnose(after, after_origin)), table]
    else:  # critical paths in different units of time cannot be compared
        tables = [table._replace(title=verdict(before_summary, after_summary))]
    session.show_tables(tables, "trace-sessions", Format.TABLE)
