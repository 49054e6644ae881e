"""`corpus trace export`."""

from enum import StrEnum
from typing import Annotated

import typer

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.trace.cli.loading import FILE_HELP, one_document, refuse_lines, write_new
from orchtrace_corpus.trace.exporters.published import losses, published
from orchtrace_corpus.trace.model.json_text import loads, text

app = typer.Typer(add_completion=False, rich_markup_mode=None)


class Profile(StrEnum):
    """The forms of a trace."""

    FULL = "full"
    PUBLISHED = "published"


@app.command()
def export(
    ctx: typer.Context,
    path: Annotated[str, typer.Argument(metavar="FILE", help=FILE_HELP)],
    profile: Annotated[Profile, typer.Option("--profile", help="Which schema the trace shall follow.")] = Profile.FULL,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Write to a new file.")] = "",
) -> int:
    """Write a trace with an event on each line, for our schema or for the published one.

    The profile published leaves out what the schema of arXiv 2605.02801 refuses: our own fields, null
    figures, and the events stop and inference, over which their edges are bridged. What was left out is said
    on standard error.

    \b
    Examples:
      corpus trace export data/traces/swarm.json
      corpus trace export data/traces/swarm.json --profile published
    """
    session = Session(*ctx.obj)
    refuse_lines(output)
    document, _ = one_document(session, path)
    trace = loads(document.data)
    shown = published(trace) if profile is Profile.PUBLISHED else trace
    written = text(shown)
    if output:
        write_new(output, written)
        session.output.note(f"wrote {printable(output, limit=300)}")
    else:
        session.output.write(written)
    if profile is Profile.PUBLISHED:
        left_out = losses(trace, shown)
        session.output.note(f"corpus: left out: {'; '.join(left_out)}" if left_out else "corpus: nothing was left out")
    return ExitCode.DONE
