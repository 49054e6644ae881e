"""Finds papers by the protocol: what is asked where, and about which days.

A run asks every query of the protocol about a window of days, and follows citations; `deduplication` says what of it
is new.
"""

from collections.abc import Callable, Sequence
from datetime import date, timedelta

from orchtrace_corpus.base.dates import is_iso_date
from orchtrace_corpus.base.errors import CommandUseError, UpstreamError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.progress import Progress
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.query import parse
from orchtrace_corpus.corpus.intake import papers as intake
from orchtrace_corpus.corpus.intake.deduplication import Discovery, SearchResult, deduplicate
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.author_names import bibliographic, people
from orchtrace_corpus.corpus.model.codebook import Protocol
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.model.records import Paper, Pool
from orchtrace_corpus.corpus.model.searches import ARXIV, OPENALEX, Maker, Run, Search, last_day
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.sources.arxiv.client import Client
from orchtrace_corpus.corpus.sources.openalex import OpenAlex

LAST = "last"
"""Stands for the day up to which a query was asked."""

OVERLAP_DAYS = 14
"""The days that a search overlaps the one before: a paper has its day of submission, and may appear much later."""

CITATIONS = "citations"
"""The name of the search that follows citations."""


class PlannedSearch(NamedTuple):
    """A search that is to be made.

    Attributes:
        query: The name of the query.
        source: Where it is asked.
        since: The first day of its window, as `YYYY-MM-DD`.
        until: The last day.
        asked: The query string as it is asked.
    """

    query: str
    source: str
    since: str
    until: str
    asked: str


def plan_searches(
    protocol: Protocol, runs: Sequence[Run], today: date, *, since: str = "", names: Sequence[str] = ()
) -> tuple[PlannedSearch, ...]:
    """The searches at arXiv that a run makes.

    Args:
        protocol: The protocol.
        runs: The runs so far.
        today: The current day. A window ends with the day before, which is over everywhere.
        since: The first day, or `LAST`, which is what nothing stands for, too.
        names: The queries to ask, by their names, or the ids or labels of their families, in any case; all without any.

    Raises:
        CommandUseError: A name is that of no query and no family, a day is none, or the protocol has no queries.
    """
    if not protocol.queries:
        raise CommandUseError(f"{store.PROTOCOL} has no queries", "docs/data.md of orchtrace-corpus describes them.")
    allowed = dict.fromkeys([*(query.name for query in protocol.queries), *(one.id for one in protocol.families)])
    labels = {family.label.casefold(): family.id for family in protocol.families}
    wanted = set()
    for name in names:
        alike = {one for one in allowed if one.casefold() == name.casefold()}
        alike = {name} & alike or alike or {labels[one] for one in (name.casefold(),) if one in labels}
        if not alike:
            raise CommandUseError(f"there is no query or family {quote(name)}{suggestion(name, tuple(allowed))}")
        wanted |= alike
    chosen = [query for query in protocol.queries if not names or {query.name, query.family} & wanted]
    until = (today - timedelta(days=1)).isoformat()
    planned = []
    for query in chosen:
        first = window_start(protocol, runs, query.name, ARXIV, since, until)
        asked = f"({query.query})"
        if protocol.search_categories:
            asked += f" AND ({' OR '.join(f'cat:{name}' for name in protocol.search_categories)})"
        asked += f" AND submittedDate:[{first.replace('-', '')}0000 TO {until.replace('-', '')}2359]"
        planned.append(PlannedSearch(query.name, ARXIV, first, until, asked))
    return tuple(planned)


def window_start(protocol: Protocol, runs: Sequence[Run], query: str, source: str, since: str, until: str) -> str:
    """The first day of a search's window; errors as for `plan_searches`."""
    if since and since != LAST:
        if not is_iso_date(since):
            raise CommandUseError(f"--since {quote(since)} is not a date", f"Write YYYY-MM-DD, or {LAST}.")
        if since > until:
            raise CommandUseError(f"--since {since} is after {until}, the last day that is over", "Name a day before.")
        return since
    last = last_day(runs, query, source)
    if last is not None:
        return (date.fromisoformat(last) - timedelta(days=OVERLAP_DAYS)).isoformat()
    return min(protocol.search_from or protocol.day, until)


def citing_papers(protocol: Protocol, pool: Pool) -> tuple[Paper, ...]:
    """The papers whose citations the protocol follows, as far as OpenAlex can know them.

    Raises:
        CommandUseError: A filter of the protocol is none.
    """
    if not protocol.citing:
        return ()
    papers = parse(protocol.citing, paper_attributes(pool.taxonomy)).select(pool.papers)
    return tuple(paper for paper in papers if paper.arxiv_id or paper.doi)


def discover(
    corpus: CorpusFiles,
    protocol: Protocol,
    planned: Sequence[PlannedSearch],
    day: date,
    *,
    client: Client,
    openalex: OpenAlex | None = None,
    citations_since: str = "",
    progress: Callable[[Progress], None] | None = None,
) -> Discovery:
    """Ask all searches, and leave out what is known of what they find.

    Args:
        corpus: The corpus.
        protocol: Its protocol.
        planned: The searches at arXiv.
        day: The current day.
        client: How arXiv is asked.
        openalex: How OpenAlex is asked; without it, citations are not followed.
        citations_since: The first day of publication of works that cite.
        progress: Called with how far the run has come.
    """
    results: list[SearchResult] = []
    failed: dict[str, str] = {}
    messages: list[str] = []
    metadata: dict[str, Metadata] = {}
    error: UpstreamError | None = None
    try:
        answer = client.search({one.query: one.asked for one in planned}, progress=progress)
        failed = {name: text for name, (_, text) in answer.failed.items()}
        for one in planned:
            if (answered := answer.found.get(one.query)) is not None:
                messages += answered.messages
                metadata |= answered.papers
                found = tuple((intake.from_metadata(paper), (one.query,)) for paper in answered.papers.values())
                search = Search(one.query, one.source, 0, one.since, one.until, one.asked, len(found))
                results.append(SearchResult(search, found))
        if openalex is not None:
            papers = citing_papers(protocol, corpus.pool)
            until = planned[0].until if planned else (day - timedelta(days=1)).isoformat()
            results.append(_follow(openalex, papers, protocol, citations_since, until, progress))
    except UpstreamError as caught:
        error = caught
    unique = deduplicate(corpus, results, day, Maker.DISCOVER, protocol.query_field)
    kept = {one.paper.arxiv_id for one in unique.new}
    own = {name: value for name, value in metadata.items() if name in kept}
    return unique._replace(failed=failed, messages=tuple(messages), metadata=own, error=error)


def _follow(
    openalex: OpenAlex,
    papers: Sequence[Paper],
    protocol: Protocol,
    since: str,
    until: str,
    progress: Callable[[Progress], None] | None,
) -> SearchResult:
    """The works that cite enough of the papers, or that enough of them cite."""
    least = protocol.citing_least
    found = []
    for work in openalex.follow(papers, since, progress).works:
        ties = [f"cites {key}" for key in work.cites] if len(work.cites) >= least else []
        ties += [f"cited by {key}" for key in work.cited_by] if len(work.cited_by) >= least else []
        if ties:
            authors = [bibliographic(intake.plain(name)) for name in people(work.values["authors"])]
            found.append((intake.from_fields({**work.values, "authors": authors}), tuple(ties)))
    asked = f"works that cite, or are cited by, at least {least} of {len(papers)} papers"
    return SearchResult(Search(CITATIONS, OPENALEX, 0, since, until, asked, len(found)), tuple(found))
