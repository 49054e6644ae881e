"""`corpus fmt`."""

import typer

from orchtrace_corpus.base.commands.options import Check
from orchtrace_corpus.corpus import build
from orchtrace_corpus.corpus.cli.generated_files import settle
from orchtrace_corpus.corpus.cli.session import CorpusSession

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def fmt(ctx: typer.Context, check: Check = False) -> int:
    """Write the data files in canonical form.

    Fields in their order, one line for each scalar, quotes only where they are needed. Comments
    stay: at the head of the file, before a record, before a field, at a line's end.

    \b
    Examples:
      corpus fmt --check
    """
    session = CorpusSession(*ctx.obj)
    root = session.writable_root()
    return settle(session, root, build.data_documents(root, session.taxonomy()), check=check, mend="corpus fmt")
