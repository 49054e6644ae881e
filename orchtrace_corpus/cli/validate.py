"""`corpus validate`."""

from typing import Annotated

import typer

from orchtrace_corpus.cli.session import Session
from orchtrace_corpus.errors import ExitCode
from orchtrace_corpus.findings import has_errors, is_malformed
from orchtrace_corpus.pool import rules
from orchtrace_corpus.render import findings as render
from orchtrace_corpus.render.findings import FindingsFormat

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def validate(
    ctx: typer.Context,
    output_format: Annotated[
        FindingsFormat, typer.Option("--format", "-f", help="The form of the output.")
    ] = FindingsFormat.TEXT,
) -> int:
    """Report every mistake in the data, at its line.

    Each finding is a line "file:line:column: CODE message [record]". Exit code 0: nothing wrong;
    1: errors; 3: a file is not readable as YAML.

    \b
    Examples:
      corpus validate
      corpus validate --format json
      corpus --root path/to/corpus validate
    """
    session = Session(*ctx.obj)
    loaded = session.load()
    found = rules.check(loaded)
    if output_format is FindingsFormat.JSON:
        session.output.write(render.data(found))
    else:
        session.output.show(render.text(found))
    pool = loaded.pool
    checked = f" in {len(pool.papers)} papers and {len(pool.exclusions)} exclusions" if pool else " in the taxonomy"
    session.output.note(f"{render.summary(found)}{checked}")
    if is_malformed(found):
        return ExitCode.UNREADABLE
    return ExitCode.FINDINGS if has_errors(found) else ExitCode.DONE
