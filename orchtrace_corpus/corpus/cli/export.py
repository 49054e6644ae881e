"""`corpus export`."""

import os
import sys
from typing import Annotated

import typer

from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.files import write_atomic
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.corpus.cli.options import Where
from orchtrace_corpus.corpus.cli.session import CorpusSession, paper_query
from orchtrace_corpus.corpus.formats import registry
from orchtrace_corpus.corpus.model.records import in_published_order
from orchtrace_corpus.corpus.model.store import read_arxiv

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_STANDARD_OUTPUT = "-"


@app.command()
def export(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="FORMAT", help=f"One of {', '.join(registry.FORMATS)}.")],
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help="A variant of the format; see docs/formats.md.")
    ] = "",
    where: Where = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of standard output.")
    ] = _STANDARD_OUTPUT,
) -> int:
    """Write papers in another format.

    bibtex has the profiles bibtex (LaTeX for letters beyond ASCII), biblatex (Unicode) and tagged
    (with tags as keywords, for reference managers); csv has full (every field) and published (the
    survey's table). "corpus import" reads all formats but parquet. For exclusions see "corpus list
    --exclusions --columns all".

    \b
    Examples:
      corpus export bibtex
      corpus export bibtex --profile tagged --where reward_family=orchestration
      corpus export csv --profile published --where published=yes
      corpus export csl --where "year>=2025" -o papers.json
    """
    session = CorpusSession(*ctx.obj)
    one = registry.find(name)
    chosen = one.profile(profile)
    to_stdout = output == _STANDARD_OUTPUT
    if one.is_binary and to_stdout and sys.stdout.isatty():
        raise CommandUseError(f"{one.label} is no text for a terminal", f"Write it to a file: -o papers.{one.name}")
    root = session.root_folder()
    if not to_stdout:
        _refuse_target(output, root)
    pool = session.pool()
    papers = paper_query(where or [], pool.taxonomy).select(pool.papers)
    if chosen == "published":
        papers = in_published_order(papers, pool.published)
    known = read_arxiv(root) if one.has_categories else {}
    categories = {arxiv_id: metadata.primary_category for arxiv_id, metadata in known.items()}
    content = one.write(papers, pool.taxonomy, chosen, categories)
    if not to_stdout:
        write_atomic(output, content)
    elif isinstance(content, str) and sys.stdout.isatty():
        session.output.write(content)
    else:  # a file is UTF-8, whatever the terminal is
        session.output.write_bytes(content.encode() if isinstance(content, str) else content)
    papers_written = f"{len(papers)} paper{'' if len(papers) == 1 else 's'}"
    session.output.note(papers_written if to_stdout else f"wrote {printable(output, limit=300)}: {papers_written}")
    if chosen == "bibtex" and isinstance(content, str) and not content.isascii():
        session.output.note("Some letters have no command of LaTeX's own and stay as they are; pdflatex may lack them.")
    return ExitCode.DONE


def _refuse_target(path: str, root: str) -> None:
    """Refuse a file that an export must not replace.

    Raises:
        CommandUseError: It is one of the corpus's own data files, or no file.
        DataFileError: Its folder does not exist.
    """
    target = os.path.realpath(path)
    data = os.path.join(os.path.realpath(root), "data")
    if os.path.exists(target) and os.path.commonpath((target, data)) == data:
        raise CommandUseError(f"{quote(path)} is one of the corpus's own files", "Choose another name for the export.")
    if os.path.exists(target) and not os.path.isfile(target):
        hint = "Leave out -o to write to standard output." if not os.path.isdir(target) else "Name a file in it."
        raise CommandUseError(f"{quote(path)} is no file", hint)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise DataFileError(f"there is no folder {quote(os.path.dirname(path))}", "Make it first.")
