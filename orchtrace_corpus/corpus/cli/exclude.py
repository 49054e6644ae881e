"""`corpus exclude`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import DryRun, refuse_together
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus.cli import options, repeating
from orchtrace_corpus.corpus.cli.amend import amend, editable
from orchtrace_corpus.corpus.cli.facets import ExclusionCommand, given
from orchtrace_corpus.corpus.cli.lookup import Service, looked_up, recognised, refused_if_known, told
from orchtrace_corpus.corpus.cli.questions import Questions, can_ask
from orchtrace_corpus.corpus.cli.screening import exclusion_of, whole
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.edits import added
from orchtrace_corpus.corpus.intake import proposal as intake
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.record_fields import exclusion_style, fields
from orchtrace_corpus.corpus.model.records import Paper, Record

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=ExclusionCommand)
def exclude(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="ID_OR_URL", help="An arXiv id, DOI, OpenReview or ACL id, or address.")
    ],
    reason: options.Reason = "",
    title: options.Title = "",
    identifier: Annotated[
        str,
        typer.Option(
            "--identifier", metavar="TEXT", help="What the log calls it (else the id, or a name in capitals)."
        ),
    ] = "",
    screened: options.Screened = "",
    tags: options.OtherTags = None,
    despite_title: options.DespiteTitle = False,
    yes: options.Yes = False,
    dry_run: DryRun = False,
    no_fetch: options.NoFetch = False,
    offline: options.Offline = False,
    refresh: options.Refresh = False,
    arxiv_url: options.ArxivUrl = "",
) -> int:
    """Put a paper on record that was screened and left out, with the reason.

    The record gets the next free id; ids are never used again. A paper that is in the pool or was
    excluded before is refused. What is missing is asked for at a terminal.

    \b
    Examples:
      corpus exclude 2605.08686 --stage abstract_screen --reason "Nothing is trained."
      corpus exclude https://example.org/docs --title "Documentation of a Team" --dry-run
    """
    session = CorpusSession(*ctx.obj)
    refuse_together(no_fetch=no_fetch, offline=offline, refresh=refresh)
    root = session.writable_root()
    loaded, pool = editable(root)
    tagged = given(ctx, pool.taxonomy.exclusions, tags).tags
    asked = refused_if_known([recognised(name.strip(), pool)], pool, _instead, by_title=False)
    if not title:
        asked = looked_up(session, asked, Service(no_fetch, offline, refresh, arxiv_url))
    asked = [one._replace(paper=one.paper._replace(title=title or one.paper.title)) for one in asked]
    new, code = told(session, refused_if_known(asked, pool, _instead, by_title=not despite_title))
    if not new:
        return code
    exclusion = exclusion_of(new[0].paper, loaded, reason, screened, tagged)
    questions = Questions(session.output) if can_ask() and not yes else None
    with repeating.kept(session, ctx, questions, {new[0].name: (name,)}):
        exclusion = whole(exclusion, new[0].name, pool.taxonomy, questions)
        called = identifier or intake.screened_identifier(new[0].paper._replace(title=exclusion.title))
        exclusion = exclusion._replace(identifier=called)
        style = exclusion_style(pool.taxonomy)
        text = added(loaded.exclusion_places.file, fields(exclusion, pool.taxonomy), style)
        outcome = amend(session, root, {store.EXCLUSIONS: text}, was=loaded, dry_run=dry_run)
    if outcome == ExitCode.DONE and not dry_run:
        session.output.note(f"excluded as {exclusion.id}: {printable(exclusion.title)}")
    else:
        repeating.tell(session, ctx, questions, {new[0].name: (name,)})
    return outcome


def _instead(record: Record) -> str:
    """What to do about a paper that the corpus knows, instead of excluding it."""
    if isinstance(record, Paper):
        return f"to take it out of the pool: corpus demote {record.key}"
    return f"see corpus show {record.id}"
