"""`corpus trace show`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.trace.cli.loading import FILES_HELP, sound_traces
from orchtrace_corpus.trace.render import page as render

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def show(
    ctx: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="FILE...", help=FILES_HELP)],
    agents: Annotated[int, typer.Option("--agents", metavar="N", min=1, help="Show no more than N agents.")] = 40,
) -> int:
    """Show who spawned whom, and who worked when.

    One line for each agent, indented below the one that spawned it, with its time from left to right.

    \b
    Examples:
      corpus trace show data/traces/swarm.json
    """
    session = Session(*ctx.obj)
    for number, trace in enumerate(sound_traces(session, paths)):
        blank = [()] if number else []
        lines = render.page(trace, session.output.width, session.output.glyphs, most_agents=agents)
        session.output.show([*blank, *lines])
    return ExitCode.DONE
