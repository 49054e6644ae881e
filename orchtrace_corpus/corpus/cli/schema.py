"""`corpus schema`."""

import typer

from orchtrace_corpus.base.commands.options import Check
from orchtrace_corpus.corpus import build
from orchtrace_corpus.corpus.cli.generated_files import settle
from orchtrace_corpus.corpus.cli.session import CorpusSession

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def schema(ctx: typer.Context, check: Check = False) -> int:
    """Write the JSON Schemas of the data files, for editors.

    Made from the taxonomy, so that an editor with a YAML language server completes tags and
    underlines mistakes: the first line of each data file names its schema.

    \b
    Examples:
      corpus schema --check
    """
    session = CorpusSession(*ctx.obj)
    root = session.writable_root()
    return settle(session, root, build.schema_documents(root, session.taxonomy()), check=check, mend="corpus schema")
