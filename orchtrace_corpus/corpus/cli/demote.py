"""`corpus demote`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import DryRun
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus.cli import options, repeating
from orchtrace_corpus.corpus.cli.amend import amend, editable, target
from orchtrace_corpus.corpus.cli.facets import ExclusionCommand, given
from orchtrace_corpus.corpus.cli.questions import Questions, can_ask
from orchtrace_corpus.corpus.cli.screening import day_of, exclusion_of, whole
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.edits import added, changed, removed
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.record_fields import Value, exclusion_style, fields, tag_value
from orchtrace_corpus.corpus.model.records import Paper

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=ExclusionCommand)
def demote(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="KEY", help="The paper: its key, arXiv id, DOI or URL.")],
    reason: options.Reason = "",
    screened: options.Screened = "",
    tags: options.OtherTags = None,
    yes: options.Yes = False,
    dry_run: DryRun = False,
) -> int:
    """Take a paper out of the pool and put it on record as excluded, with the reason.

    A paper that was promoted goes back to the exclusion that it came from, which is no longer
    promoted; its reason and tags stay, unless new ones are given. Any other paper gets an exclusion
    under the next free id. Both files are written in one edit, or none.

    \b
    Examples:
      corpus demote halo --stage full_text_screen --reason "Nothing is trained." --dry-run
    """
    session = CorpusSession(*ctx.obj)
    root = session.writable_root()
    loaded, pool = editable(root)
    style = exclusion_style(pool.taxonomy)
    tagged = given(ctx, pool.taxonomy.exclusions, tags).tags
    found = target(loaded, name)
    paper = found.record
    if not isinstance(paper, Paper):
        raise CommandUseError(f"{found.called} is excluded already", f"See corpus show {found.called}.")
    origins = [place for place, other in enumerate(loaded.exclusions) if other.promoted_to == paper.key]
    questions = Questions(session.output) if can_ask() and not yes else None
    with repeating.kept(session, ctx, questions, {paper.key: (name,)}):
        if origins:
            exclusion = loaded.exclusions[origins[0]]
            changes: dict[str, Value | None] = {"promoted_to": None}
            changes |= {field: tag_value(tag) for field, tag in tagged.items()}
            changes |= {"reason": reason} if reason else {}
            changes |= {"screened": day_of(screened)} if reason or screened else {}
            text = changed(loaded.exclusion_places.file, origins[0], changes, style)
        else:
            exclusion = exclusion_of(paper, loaded, reason, screened, tagged)
            exclusion = whole(exclusion, paper.key, pool.taxonomy, questions)
            text = added(loaded.exclusion_places.file, fields(exclusion, pool.taxonomy), style)
        texts = {store.PAPERS: removed(found.file, found.place), store.EXCLUSIONS: text}
        outcome = amend(session, root, texts, was=loaded, dry_run=dry_run)
    if outcome == ExitCode.DONE and not dry_run:
        session.output.note(f"{paper.key} is excluded as {exclusion.id}: {printable(paper.title)}")
    else:
        repeating.tell(session, ctx, questions, {paper.key: (name,)})
    return outcome
