"""`corpus trace doctor`."""

from typing import TYPE_CHECKING, Annotated

from orchtrace_corpus.base.commands.declarations import Argument, Context, Option
from orchtrace_corpus.base.commands.options import OutputFormat, refuse_together, split_names
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.trace.cli import logs, screen
from orchtrace_corpus.trace.cli.arguments import Cost, LogFormat, Name, Page, PriceTable
from orchtrace_corpus.trace.cli.collection import Request

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
    name: Name = "",
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
    limit: Annotated[int, Option("--limit", min=1, help="The most rows of a table, and the sessions of --list.")] = 15,
    output_format: OutputFormat = Format.TABLE,
    html: Page = "",
    with_content: Annotated[
        bool, Option("--content", help="Show what was written: on the page of --html, in lists the first words.")
    ] = False,
) -> int:
    """Show on one page where the time and money of a logged run went.

    Shows who spawned whom, what ran in parallel, which steps delayed the end, the tokens by agent and model,
    and what is wrong with the log. Several sessions get totals by day, project and model, and one line each, most
    expensive first. Two that are named separately are compared, largest differences first. --html writes one run,
    or two side by side, as a page with a timeline and a replay; without it, nothing is written.

    Without a PATH, shows the newest session below the home folder, or with --session the one of that name: of
    Claude Code, Codex, Qwen Code, Gemini CLI, OpenCode, Copilot CLI or Kimi Code. Variables such as
    CLAUDE_CONFIG_DIR and CODEX_HOME, which move their folders, are followed. --list lists the newest sessions there
    with their totals; with --by it reads all of them.

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
        name,
        form,
        logs.pricing(price_table, is_wanted=is_cost),
        limit,
        output_format,
        html,
        with_content,
        _groupings(by),
        zone,
        zone_name,
    )
    if is_list:
        from orchtrace_corpus.trace.cli import recent

        return recent.show_list(session, request)
    return screen.show(session, paths or (), request)


def _groupings(by: str) -> "tuple[Grouping, ...]":
    """Return the groupings of totals with some names.

    Raises:
        CommandUseError: There is no such grouping.
    """
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
    """Return the time zone of a name, None for the local one, and what to call it.

    Raises:
        CommandUseError: There is no such zone.
    """
    if not name:
        import time

        return None, f"the local time zone ({'/'.join(dict.fromkeys(time.tzname))})"
    if name == "UTC":
        from datetime import UTC

        return UTC, name
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name), name
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise CommandUseError(f"there is no time zone {quote(name)}", "Names are those as Europe/Berlin.") from error
