"""`corpus readme`."""

import typer

from orchtrace_corpus.base.commands.options import Check
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.corpus import build
from orchtrace_corpus.corpus.cli.generated_files import settle
from orchtrace_corpus.corpus.cli.session import CorpusSession

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def readme(ctx: typer.Context, check: Check = False) -> int:
    """Regenerate the list and the tables in README.md.

    Only the text between the marks "<!-- corpus:begin NAME -->" and "<!-- corpus:end NAME -->" is
    written. Regions: contents, counts, page, list, terms FIELD, papers FILTER, figures NAME.

    \b
    Examples:
      corpus readme --check
    """
    session = CorpusSession(*ctx.obj)
    root = session.writable_root()
    document = build.readme_document(root, session.pool())
    if document is None:
        raise DataFileError(f"there is no {build.README} in {root}", "Write one with a region: corpus readme --help")
    return settle(session, root, [document], check=check, mend="corpus readme")
