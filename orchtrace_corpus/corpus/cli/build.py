"""`corpus build`."""

import typer

from orchtrace_corpus.base.commands.options import Check
from orchtrace_corpus.corpus import build as building
from orchtrace_corpus.corpus.cli.generated_files import settle
from orchtrace_corpus.corpus.cli.session import CorpusSession

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def build(ctx: typer.Context, check: Check = False) -> int:
    """Regenerate every generated file.

    README.md (its regions), docs/STATS.md, the JSON Schemas in docs/schema, docs/figures.md and the figures in
    docs/figures. The data files are left alone: see "corpus fmt".

    \b
    Examples:
      corpus build --check
    """
    session = CorpusSession(*ctx.obj)
    root = session.writable_root()
    documents = building.generated(root, session.pool())
    return settle(session, root, documents, check=check, mend="corpus build")
