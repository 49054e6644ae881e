"""`corpus add`."""

from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import DryRun, refuse_together
from orchtrace_corpus.base.dates import today
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus.cli import options, repeating
from orchtrace_corpus.corpus.cli.amend import amend, editable
from orchtrace_corpus.corpus.cli.drafts import Words, finished, refuse_words, with_words
from orchtrace_corpus.corpus.cli.facets import PaperCommand, given
from orchtrace_corpus.corpus.cli.issue import read_issue
from orchtrace_corpus.corpus.cli.lookup import Service, looked_up, named, recognised, refused_if_known, told
from orchtrace_corpus.corpus.cli.questions import Questions, can_ask
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.edits import all_added
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.record_fields import fields, paper_style
from orchtrace_corpus.corpus.model.records import Paper, Record

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=PaperCommand)
def add(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID_OR_URL...",
            help="An arXiv id, DOI, OpenReview or ACL id, address, or .bib file.",
            show_default=False,
        ),
    ] = None,
    issue: Annotated[
        str,
        typer.Option("--from-issue", metavar="FILE", help="Take the answers of an issue form; - is standard input."),
    ] = "",
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
    """Add papers to the pool.

    Each paper is called by an arXiv id in any spelling, a DOI, an OpenReview or ACL id, or an
    address; a .bib file stands for all its entries. Title, authors and year come from arXiv or the
    registry; the tags are yours: each is an option, and at a terminal what is missing is asked for,
    with definitions. What the pool has or has excluded is refused, with the reason. Nothing is
    written unless every paper that is not refused is complete and without errors; each is then
    added at the end, and the diff shown. Exit code 0: all added; 1: some refused; 2: something is
    missing or misspelt; 4: a service could not be asked.

    \b
    Examples:
      corpus add 2605.08686
      corpus add https://arxiv.org/abs/2605.08687v2 arXiv:2605.08688 --tier supporting
      corpus add references.bib --category benchmark --rl none
      corpus add https://example.org/team --title "A Team" --authors "Example, Ada" --year 2026 --venue Blog
      corpus add --from-issue issue.md --dry-run
    """
    session = CorpusSession(*ctx.obj)
    refuse_together(no_fetch=no_fetch, offline=offline, refresh=refresh)
    root = session.writable_root()
    loaded, pool = editable(root)
    tagged = given(ctx, pool.taxonomy.papers, tags)
    said = Words(
        key, title, authors, year, venue, affiliation, tuple(urls or ()), summary, notes, note, source, supported
    )
    asked = named(names or [], pool)
    if issue:
        if names:
            raise CommandUseError("--from-issue names the paper itself", "Leave out the other names.")
        form = read_issue(session, issue, pool.taxonomy)
        asked, said, tagged = [recognised(form.name, pool)], said.over(form.words), tagged.over(form.tagged)
    if not asked:
        raise CommandUseError("name a paper to add", "Write an arXiv id, a DOI or an address: corpus add 2605.08686")
    refuse_words(asked, said, tagged, pool)
    asked = refused_if_known(asked, pool, _instead, by_title=False)
    asked = looked_up(session, asked, Service(no_fetch, offline, refresh, arxiv_url))
    asked = [one._replace(paper=with_words(one.paper, said)) for one in asked]
    asked = refused_if_known(asked, pool, _instead, by_title=not despite_title)
    new, code = told(session, asked)
    if not new:
        return code
    questions = Questions(session.output) if can_ask() and not yes else None
    calls = {one.name: () if issue else one.words for one in new}
    with repeating.kept(session, ctx, questions, calls):
        papers = finished(new, said, tagged, pool, today().isoformat(), questions)
        records = [fields(paper, pool.taxonomy) for paper in papers]
        text = all_added(loaded.paper_places.file, records, paper_style(pool.taxonomy))
        outcome = amend(session, root, {store.PAPERS: text}, was=loaded, dry_run=dry_run)
    if outcome == ExitCode.DONE and not dry_run:
        for paper in papers:
            session.output.note(f"added {paper.key}: {printable(paper.title)}")
    else:
        repeating.tell(session, ctx, questions, calls)
    return max(code, outcome)


def _instead(record: Record) -> str:
    """What to do about a paper that the corpus knows, instead of adding it."""
    if isinstance(record, Paper):
        return f"see corpus show {record.key}"
    if record.promoted_to:
        return f"see corpus show {record.promoted_to}"
    return f"to take it in after all: corpus promote {record.id}"
