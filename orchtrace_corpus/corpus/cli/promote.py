"""`corpus promote`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import DryRun, refuse_together
from orchtrace_corpus.base.dates import today
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus.cli import options, repeating
from orchtrace_corpus.corpus.cli.amend import amend, editable, target
from orchtrace_corpus.corpus.cli.drafts import Words, finished, refuse_words, with_words
from orchtrace_corpus.corpus.cli.facets import PaperCommand, given
from orchtrace_corpus.corpus.cli.lookup import Asked, Service, looked_up, refused_if_known, told
from orchtrace_corpus.corpus.cli.questions import Questions, can_ask
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.edits import added, changed
from orchtrace_corpus.corpus.intake import proposal as intake
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.record_fields import exclusion_style, fields, paper_style
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Record, identities

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=PaperCommand)
def promote(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="ID", help="The exclusion: its id, arXiv id, DOI or URL.")],
    key: options.Key = "",
    title: options.Title = "",
    authors: options.Authors = "",
    year: options.Year = 0,
    venue: options.Venue = "",
    affiliation: options.Affiliation = "",
    urls: options.Urls = None,
    summary: options.Summary = "",
    notes: options.Notes = "",
    note: options.EvidenceNote = "",
    source: options.EvidenceSource = "",
    supported: options.EvidenceTags = "",
    tags: options.OtherTags = None,
    despite_title: options.DespiteTitle = False,
    yes: options.Yes = False,
    dry_run: DryRun = False,
    no_fetch: options.NoFetch = False,
    offline: options.Offline = False,
    refresh: options.Refresh = False,
    arxiv_url: options.ArxivUrl = "",
) -> int:
    """Take an excluded paper into the pool; the exclusion stays, and says what it became.

    Everything else is as with "corpus add": metadata is looked up, tags are options or asked for.
    Both files are written in one edit, or none.

    \b
    Examples:
      corpus promote E007 --dry-run
      corpus promote E007 --tier supporting --key metagpt
    """
    session = CorpusSession(*ctx.obj)
    refuse_together(no_fetch=no_fetch, offline=offline, refresh=refresh)
    root = session.writable_root()
    loaded, pool = editable(root)
    tagged = given(ctx, pool.taxonomy.papers, tags)
    said = Words(
        key, title, authors, year, venue, affiliation, tuple(urls or ()), summary, notes, note, source, supported
    )
    found = target(loaded, name)
    exclusion = found.record
    if not isinstance(exclusion, Exclusion):
        raise CommandUseError(f"{found.called} is in the pool already", f"See corpus show {found.called}.")
    if exclusion.promoted_to:
        hint = f"See corpus show {exclusion.promoted_to}."
        raise CommandUseError(f"{exclusion.id} became the paper {exclusion.promoted_to} already", hint)
    paper = intake.from_exclusion(exclusion)
    asked = [Asked(exclusion.id, paper, source=exclusion.url)]
    refuse_words(asked, said, tagged, pool)
    others = pool._replace(exclusions=tuple(other for other in pool.exclusions if other is not exclusion))
    asked = refused_if_known(asked, others, _instead, by_title=False)
    if next(identities(paper), None) is not None:
        asked = [one._replace(paper=paper._replace(title="")) for one in asked]
        asked = looked_up(session, asked, Service(no_fetch, offline, refresh, arxiv_url))
        asked = [one._replace(paper=_kept(one.paper, exclusion)) for one in asked]
    asked = [one._replace(paper=with_words(one.paper, said)) for one in asked]
    new, code = told(session, refused_if_known(asked, others, _instead, by_title=not despite_title))
    if not new:
        return code
    questions = Questions(session.output) if can_ask() and not yes else None
    with repeating.kept(session, ctx, questions, {exclusion.id: (name,)}):
        promoted = finished(new, said, tagged, pool, today().isoformat(), questions)[0]
        texts = {
            store.PAPERS: added(loaded.paper_places.file, fields(promoted, pool.taxonomy), paper_style(pool.taxonomy)),
            store.EXCLUSIONS: changed(
                found.file, found.place, {"promoted_to": promoted.key}, exclusion_style(pool.taxonomy)
            ),
        }
        outcome = amend(session, root, texts, was=loaded, dry_run=dry_run)
    if outcome == ExitCode.DONE and not dry_run:
        session.output.note(f"{exclusion.id} became {promoted.key}: {printable(promoted.title)}")
    else:
        repeating.tell(session, ctx, questions, {exclusion.id: (name,)})
    return outcome


def _kept(paper: Paper, exclusion: Exclusion) -> Paper:
    """What was looked up, with the title of the exclusion where nothing was."""
    return paper._replace(title=paper.title or exclusion.title)


def _instead(record: Record) -> str:
    """What to do about a paper that the corpus knows from elsewhere."""
    return f"see corpus show {record.key if isinstance(record, Paper) else record.id}"
