"""`corpus import`."""

import sys
from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import DryRun
from orchtrace_corpus.base.dates import today
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus.cli.outcome import apply
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.merge import Merge, merge
from orchtrace_corpus.corpus.edit.proposal import Proposal, load_editable
from orchtrace_corpus.corpus.formats import registry
from orchtrace_corpus.corpus.model import store

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_STANDARD_INPUT = "-"
_SHOWN = 3


@app.command(name="import")
def import_(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="FORMAT", help=f"One of {', '.join(registry.readable())}.")],
    path: Annotated[
        str, typer.Argument(metavar="[FILE]", help="The file, or - for standard input.", show_default=False)
    ] = _STANDARD_INPUT,
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help="The variant of the format, as for corpus export.")
    ] = "",
    dry_run: DryRun = False,
) -> int:
    """Bring records of another format into the pool.

    Papers are found by key. Of one that is there, those fields change that the file has and that
    say something else; all others stay. One that is not there is added, if it has all that a paper
    needs. Nothing is written unless everything in the file is right.

    \b
    Examples:
      corpus import bibtex references.bib --dry-run
      corpus import csv table.csv --profile published
      corpus import jsonl papers.jsonl
    """
    session = CorpusSession(*ctx.obj)
    one = registry.find(name, to_read=True)
    corpus = load_editable(session.writable_root())
    shown = "<standard input>" if path == _STANDARD_INPUT else path
    items = one.read(_data(path), corpus.pool.taxonomy, profile, shown)
    if not items:
        raise DataFileError(f"there are no entries in {printable(shown, limit=300)}", "Nothing can be brought in.")
    merged = merge(corpus.files[store.PAPERS], items, corpus.pool.taxonomy, today().isoformat())
    if merged.problems:
        lines = (f"{printable(shown, limit=300)}:{problem.line}: {problem.message}" for problem in merged.problems)
        session.output.tell(
            "\n".join(("corpus: nothing was written, since some records cannot be brought in:", *lines))
        )
        return ExitCode.FINDINGS
    code = apply(session, corpus, Proposal({store.PAPERS: merged.text}), dry_run=dry_run)
    if code == ExitCode.DONE:
        session.output.note(_counted(merged))
        if merged.blank:
            session.output.note(_kept(merged))
    return code


def _data(path: str) -> bytes:
    """What a file, or standard input, holds.

    Raises:
        CommandUseError: Somebody sits at a terminal and has named no file.
        DataFileError: The file cannot be read.
    """
    if path == _STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.isatty():
            raise CommandUseError("there is nothing on standard input", "Name a file, or pipe one in.")
        return sys.stdin.buffer.read()
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise DataFileError(f"cannot read {printable(path, limit=300)}: {error.strerror}") from error


def _kept(merged: Merge) -> str:
    """What is said of empty cells: they change nothing."""
    number = len(merged.blank)
    shown = ", ".join(f"{field} of {printable(key)}" for key, field in merged.blank[:_SHOWN])
    more = f" and {number - _SHOWN} more" if number > _SHOWN else ""
    head = (
        "1 empty cell changes nothing: the record keeps"
        if number == 1
        else (f"{number} empty cells change nothing: the records keep")
    )
    mend = "To take a field away, remove it in data/papers.yaml; an optional tag: corpus tag KEY FIELD="
    return f"corpus: {head} {shown}{more}\n{mend}"


def _counted(merged: Merge) -> str:
    counts = ((len(merged.updated), "updated"), (len(merged.added), "added"), (len(merged.unchanged), "unchanged"))
    return f"{', '.join(f'{count} {word}' for count, word in counts)}"
