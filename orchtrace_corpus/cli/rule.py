"""`corpus rule`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import codes, quote
from orchtrace_corpus.base.text import rules as render
from orchtrace_corpus.corpus.cli.session import CorpusSession

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_WIDTH = 100


@app.command()
def rule(
    ctx: typer.Context,
    code: Annotated[
        str, typer.Argument(metavar="[CODE]", help="A code, or the beginning of several.", show_default=False)
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="Explain every rule.")] = False,
) -> int:
    """Explain a rule: why it exists, what breaks it, and the same mended.

    \b
    Examples:
      corpus rule V102
      corpus rule D
      corpus rule --all
    """
    session = CorpusSession(*ctx.obj)
    if every and code:
        raise CommandUseError(f"--all explains {quote(code)}, too; give one of the two")
    if not every and not code:
        raise CommandUseError(
            "which rule?", "Name a code, such as corpus rule V102, or see them all: corpus rule --all"
        )
    chosen = [known for known in render.ordered() if every or known in codes(code)]
    session.output.show(render.lines(chosen, min(session.output.width or _WIDTH, _WIDTH)))
    return ExitCode.DONE
