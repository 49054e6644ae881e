"""`corpus figures`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import Check
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus import build
from orchtrace_corpus.corpus.cli.generated_files import settle
from orchtrace_corpus.corpus.cli.session import CorpusSession

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def figures(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these figures.", show_default=False)
    ] = None,
    check: Check = False,
) -> int:
    """Draw the figures, and the page that shows them.

    docs/figures/NAME.svg, for light and dark screens, and docs/figures.md: the first pair of fields
    that the taxonomy crosses as a heat map, every axis and facet, papers by year, the flow of
    screening, and the scale of systems if data/scale.yaml is there. A region "figures NAME ..." in
    README.md shows some of them.

    \b
    Examples:
      corpus figures --check
      corpus figures papers-by-year --check
    """
    session = CorpusSession(*ctx.obj)
    root = session.writable_root()
    source = build.figure_source(root, session.pool())
    documents = build.figure_documents(root, source, names or [])
    mend = " ".join(("corpus figures", *(names or [])))
    code = settle(session, root, documents, check=check, mend=mend)
    orphans = [] if names else build.orphaned_figures(root, source)
    for name in orphans:
        session.output.tell(f"corpus: {printable(name, limit=300)} is drawn no longer; remove it")
    return max(code, ExitCode.FINDINGS) if check and orphans else code
