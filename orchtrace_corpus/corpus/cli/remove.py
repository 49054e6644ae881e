"""`corpus remove`."""

import sys
from functools import partial
from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import DryRun
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus.cli.amend import Target, amend, editable
from orchtrace_corpus.corpus.cli.amend import target as find_target
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.edits import removed
from orchtrace_corpus.corpus.model.records import Paper, Pool

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def remove(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="KEY", help="A key, exclusion id, arXiv id, DOI or URL.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    unpublished: Annotated[
        bool, typer.Option("--unpublished", help="Remove the newest exclusion, too: nobody has seen its id.")
    ] = False,
    dry_run: DryRun = False,
) -> int:
    """Remove one record, and the comments directly above it.

    For a record that should never have been there. A paper that no longer belongs to the pool is
    better taken out by "corpus demote", which keeps the reason. Ids of exclusions are never used
    again: the next is one above the highest, so the newest exclusion is not removed.

    \b
    Examples:
      corpus remove puppeteer --dry-run
      corpus remove E012 --dry-run
    """
    session = CorpusSession(*ctx.obj)
    root = session.writable_root()
    loaded, pool = editable(root)
    target = find_target(loaded, name)
    _refuse_if_needed(target, pool, unpublished=unpublished)
    texts = {target.name: removed(target.file, target.place)}
    agreed = None if yes else partial(_agreed, session, target)
    return amend(session, root, texts, was=loaded, dry_run=dry_run, agreed=agreed)


def _refuse_if_needed(target: Target, pool: Pool, *, unpublished: bool) -> None:
    """Refuse to remove what something else rests on."""
    record = target.record
    if isinstance(record, Paper):
        promoted = [exclusion.id for exclusion in pool.exclusions if exclusion.promoted_to == record.key]
        if promoted:
            raise CommandUseError(
                f"{record.key} was promoted from {', '.join(promoted)}, which would lead nowhere",
                f"To take it back: corpus demote {record.key}",
            )
        return
    number = int(record.id[1:] or 0)
    others = [int(exclusion.id[1:] or 0) for exclusion in pool.exclusions if exclusion is not record]
    next_number = max(others, default=0) + 1
    if number >= next_number and not unpublished:
        raise CommandUseError(
            f"{record.id} is the newest exclusion, and the next would be given its id, which may be cited",
            "Correct the record in data/exclusions.yaml; or add --unpublished, if nobody has seen the id.",
        )
    if number > next_number:
        raise CommandUseError(
            f"{record.id} keeps the ids below it from being given again: E{next_number:03} was used before",
            "Correct the record in data/exclusions.yaml instead.",
        )


def _agreed(session: CorpusSession, target: Target) -> bool:
    """Whether whoever sits at the terminal agrees; that nothing happens is said, else.

    Raises:
        CommandUseError: There is no terminal to ask at.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise CommandUseError("remove asks first, and there is no terminal to ask at", "Add --yes, or --dry-run.")
    question = f"Remove {printable(target.called)} ({printable(target.record.title)}) from {target.name}? [y/N] "
    print(question, end="", file=sys.stderr, flush=True)  # noqa: T201 - Typer's own question goes to standard output
    is_agreed = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not is_agreed:
        session.output.note("corpus: nothing was removed")
    return is_agreed
