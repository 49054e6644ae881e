"""`corpus trace doctor`."""

from typing import Annotated

from orchtrace_corpus.base.commands.declarations import Argument, Context, Option
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.trace.cli import logs, screen
from orchtrace_corpus.trace.cli.arguments import Content, Cost, LogFormat, Name, Page, PriceTable
from orchtrace_corpus.trace.cli.loading import TextOrJson


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
    limit: Annotated[int, Option("--limit", min=1, help="List at most this many sessions.")] = 15,
    output_format: Annotated[
        TextOrJson,
        Option("--format", "-f", help="text for people; json with all figures of all sessions, for programs."),
    ] = TextOrJson.TEXT,
    html: Page = "",
    with_content: Content = False,
) -> int:
    """Show on one page where the time and money of a logged run went.

    Shows who spawned whom, what ran in parallel, which steps delayed the end, the tokens by agent and model,
    and what is wrong with the log. Several sessions get one line each, most expensive first; two that are named
    separately are compared, largest differences first. --html writes one run, or two side by side, as a page
    with a timeline and a replay; without it, nothing is written.

    Without a PATH, shows the newest session below the home folder, or with --session the one of that name: of
    Claude Code, Codex, Qwen Code, Gemini CLI, OpenCode, Copilot CLI or Kimi Code. Variables such as
    CLAUDE_CONFIG_DIR and CODEX_HOME, which move their folders, are followed.

    Exit code 1: some sessions could not be read. 3: there is no session to read.

    \b
    Examples:
      corpus trace doctor
      corpus trace doctor --list
      corpus trace doctor path/to/logs
      corpus trace doctor data/traces/hierarchical.json
      corpus trace doctor data/traces/swarm.json data/traces/hierarchical.json
      corpus trace doctor data/traces/swarm.json --format json
      corpus trace doctor data/traces/swarm.json --html run.html
    """
    session, as_data = Session(*ctx.obj), output_format is TextOrJson.JSON
    if is_list:
        if paths or name or form or price_table or is_cost or html:
            raise CommandUseError("--list takes no PATH, and of the options only --limit and --format")
        from orchtrace_corpus.trace.cli import recent

        recent.show_list(session, limit, Format.JSON if as_data else Format.TABLE)
        return ExitCode.DONE
    if html and as_data:
        raise CommandUseError("--html and --format json contradict each other", "Give one of them.")
    price = logs.pricing(price_table, is_wanted=is_cost)
    return screen.show(session, paths or (), screen.Request(name, form, price, limit, as_data, html, with_content))
