"""Finds papers by the protocol: what is asked where, about which days, what of it is new, and the edit that records it.

A run asks every query of the protocol about a window of days, and follows citations. What the corpus knows, under any
identifier, address or near title, is left out and counted; a preprint and its published version are one. What comes
from outside becomes plain text before it is compared or written.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from html import unescape

from orchtrace_corpus.base.dates import is_iso_date
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, UpstreamError
from orchtrace_corpus.base.findings import Finding, Severity, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.progress import Progress
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.matching import Match, RecordIndex, Sign, identifier_text
from orchtrace_corpus.corpus.analysis.query import parse
from orchtrace_corpus.corpus.edit.edits import edit_file
from orchtrace_corpus.corpus.edit.proposal import Proposal
from orchtrace_corpus.corpus.formats import Item
from orchtrace_corpus.corpus.intake import papers as intake
from orchtrace_corpus.corpus.intake.lookup import near_title
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.arxiv_file import encode, merged
from orchtrace_corpus.corpus.model.author_names import bibliographic, people
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision, screening_facets
from orchtrace_corpus.corpus.model.codebook import Protocol
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.model.record_fields import candidate_fields
from orchtrace_corpus.corpus.model.records import Paper, Pool, Tag
from orchtrace_corpus.corpus.model.searches import ARXIV, OPENALEX, Maker, Run, Search, last_day, run_fields
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.rules import candidates as candidate_rules
from orchtrace_corpus.corpus.sources.arxiv.client import Client
from orchtrace_corpus.corpus.sources.openalex import OpenAlex


class SearchResult(NamedTuple):
    """A search, without counts, and the papers that it found, each with its ties to the search."""

    search: Search
    papers: tuple[tuple[Paper, tuple[str, ...]], ...]


class Discovery(NamedTuple):
    """The outcome of a run of searches.

    Attributes:
        run: The run as it goes on record, with the searches that were answered in full.
        new: The candidates that are new.
        by_title: The papers left out by their title alone, each with the record or new paper of nearly the same title.
        refused: The papers that could not be recorded: title or key, and findings.
        failed: The searches without an answer, each with the reason.
        messages: Problems that did not end the run.
        metadata: arXiv's metadata of the new candidates.
        error: The error that ended the run early.
    """

    run: Run
    new: tuple[Candidate, ...] = ()
    by_title: tuple[tuple[Paper, Match], ...] = ()
    refused: tuple[tuple[str, tuple[Finding, ...]], ...] = ()
    failed: Mapping[str, str] = {}
    messages: tuple[str, ...] = ()
    metadata: Mapping[str, Metadata] = {}
    error: UpstreamError | None = None


def take_items(corpus: CorpusFiles, items: Sequence[Item], name: str, day: date) -> Discovery:
    """Return the new entries of a file, as a run of their own.

    Args:
        corpus: The corpus.
        items: The entries.
        name: The file's name.
        day: The current day.
    """
    papers = tuple((intake.from_item(item), (name,)) for item in items)
    result = SearchResult(Search(name, name, 0, found=len(papers)), papers)
    discovery = deduplicate(corpus, [result], day, Maker.IMPORT, None)
    known = RecordIndex([*corpus.pool.papers, *corpus.pool.exclusions])
    remarks = (
        f"{candidate.name}: {remark}" for candidate in discovery.new for remark in near_title(candidate.paper, known)
    )
    return discovery._replace(messages=tuple(remarks))


def deduplicate(
    corpus: CorpusFiles, results: Sequence[SearchResult], day: date, maker: Maker, query_field: str | None
) -> Discovery:
    """Return the new papers that searches have found, as candidates, with counts of the rest.

    Args:
        corpus: The corpus.
        results: The searches and their papers.
        day: The current day.
        maker: The command that makes the run.
        query_field: The facet of exclusions that names queries.
    """
    pool = corpus.pool
    awaiting = [candidate.paper for candidate in corpus.candidates.items]
    index = RecordIndex([*pool.papers, *pool.exclusions, *awaiting])
    places = {id(paper): store.PAPERS for paper in pool.papers} | {id(paper): store.CANDIDATES for paper in awaiting}
    fresh = RecordIndex()
    drafts: list[tuple[int, Paper, list[str], str]] = []
    by_title: dict[str, tuple[Paper, Match]] = {}
    known = Counter[str]()
    repeated = 0
    seen = RecordIndex()
    for number, result in enumerate(results):
        for raw_paper, ties in result.papers:
            authors = tuple(filter(None, map(_plain, raw_paper.authors)))
            paper = raw_paper._replace(title=_plain(raw_paper.title), authors=authors)
            again = fresh.find(paper)
            if again is not None:
                repeated += 1
                if again.sign is Sign.TITLE:
                    by_title.setdefault(_name(paper), (paper, again))
                at = fresh.records.index(again.record)
                drafts[at][2].extend(tie for tie in ties if tie not in drafts[at][2])
                continue
            match = index.find(paper)
            if match is not None:
                if seen.find(paper) is not None:
                    repeated += 1
                    continue
                seen.add(paper)
                known[places.get(id(match.record), store.EXCLUSIONS)] += 1
                if match.sign is Sign.TITLE:
                    by_title.setdefault(_name(paper), (paper, match))
                continue
            fresh.add(paper)
            drafts.append((number, paper, list(ties), result.search.source))
    taken = {paper.key for paper in (*pool.papers, *awaiting)}
    reserved = {paper.key for _, paper, _, _ in drafts}
    screened_by = screening_facets(pool.taxonomy)
    candidates: list[Candidate] = []
    for _, paper, came_by, source in drafts:
        key = intake.propose_key(paper, taken, reserved)
        taken.add(key)
        tags: dict[str, Tag] = {}
        for facet in screened_by:
            name = came_by[0] if facet.field == query_field else source
            if name in facet.values:
                tags[facet.field] = name
        draft = Candidate(paper._replace(key=key, tags={}, evidence=()), Decision.UNREAD, found=day.isoformat())
        candidates.append(draft._replace(found_by=tuple(dict.fromkeys(came_by)), screening=tags))
    errors = _errors(corpus, candidates)
    kept = [place for place, candidate in enumerate(candidates) if candidate.name not in errors]
    new = tuple(candidates[place] for place in kept)
    counts = [sum(drafts[place][0] == number for place in kept) for number in range(len(results))]
    searches = tuple(result.search._replace(new=count) for result, count in zip(results, counts, strict=True))
    run = Run(
        day.isoformat(),
        maker,
        searches,
        repeated,
        known[store.PAPERS],
        known[store.EXCLUSIONS],
        known[store.CANDIDATES],
        len(errors),
        tuple(_name(candidate.paper) for candidate in new),
    )
    refused = tuple(
        (candidate.paper.title or candidate.name, errors[candidate.name])
        for candidate in candidates
        if candidate.name in errors
    )
    return Discovery(run, new, tuple(by_title.values()), refused)


def propose(corpus: CorpusFiles, outcome: Discovery) -> Proposal:
    """Return the edit that puts a run on record: its new candidates, the run itself, and arXiv's metadata of them.

    The same file imported again without anything new is no run.

    Raises:
        DataFileError: A file cannot be read, or is not written record below record.
        InvalidCorpusError: The searches on record have errors.
    """
    texts: dict[str, str] = {}
    if outcome.new:
        records = [candidate_fields(candidate, corpus.pool.taxonomy) for candidate in outcome.new]
        texts[store.CANDIDATES] = edit_file(corpus, store.CANDIDATES, added=records)
    before = {search.query for run in corpus.searches.sound() if run.by is Maker.IMPORT for search in run.searches}
    is_again = (
        outcome.run.by is Maker.IMPORT and not outcome.new and before.issuperset(s.query for s in outcome.run.searches)
    )
    if outcome.run.searches and not is_again:
        texts[store.SEARCHES] = edit_file(corpus, store.SEARCHES, added=[run_fields(outcome.run)])
    if outcome.metadata:
        texts[store.ARXIV] = arxiv_text(corpus, outcome.metadata)
    return Proposal(texts)


def arxiv_text(corpus: CorpusFiles, found: Mapping[str, Metadata]) -> str:
    """Return the text of arXiv's metadata of papers and candidates, with new answers.

    Raises:
        DataFileError: What it said before cannot be read.
    """
    papers = (*corpus.pool.papers, *(item.paper for item in corpus.candidates.items))
    ids = [paper.arxiv_id for paper in papers if paper.arxiv_id]
    return encode(merged(corpus.arxiv, found, dict.fromkeys((*ids, *found))))


def _errors(corpus: CorpusFiles, candidates: Sequence[Candidate]) -> dict[str, tuple[Finding, ...]]:
    """Return the errors of new candidates, by their keys."""
    if not candidates:
        return {}
    records = [candidate_fields(candidate, corpus.pool.taxonomy) for candidate in candidates]
    text = edit_file(corpus, store.CANDIDATES, added=records)
    file = CorpusFiles(corpus.root, {store.CANDIDATES: text.encode()}).candidates
    keys = {candidate.name for candidate in candidates}
    if len(file.items) < len(corpus.candidates.items) + len(candidates):
        raise DataFileError(f"{store.CANDIDATES} cannot be added to", "See corpus check data.")
    errors: dict[str, tuple[Finding, ...]] = {}
    for finding in candidate_rules.check(file, corpus.loaded):
        if finding.record in keys and finding.severity is Severity.ERROR:
            errors[finding.record] = (*errors.get(finding.record, ()), finding)
    return errors


def _name(paper: Paper) -> str:
    """Return the name of a paper in a run: its first identifier, else its address, else its title."""
    return identifier_text(paper) or next(iter(paper.urls), "") or paper.title


def _plain(text: str) -> str:
    text = intake.plain(text)
    if re.search(r"[<`]|\]\(|&[#\w]+;", text):
        text = re.sub(r"<[^<>]*>|[<>`]", " ", unescape(text)).replace("](", "] (")
    if text.count('"') % 2:
        text = text.replace('"', "")
    return " ".join(text.split())


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
    tied = []
    for work in openalex.follow(papers, since, progress).works:
        ties = [f"cites {key}" for key in work.cites] if len(work.cites) >= least else []
        ties += [f"cited by {key}" for key in work.cited_by] if len(work.cited_by) >= least else []
        if ties:
            authors = [bibliographic(intake.plain(name)) for name in people(work.values["authors"])]
            tied.append((intake.from_fields({**work.values, "authors": authors}), tuple(ties)))
    asked = f"works that cite, or are cited by, at least {least} of {len(papers)} papers"
    return SearchResult(Search(CITATIONS, OPENALEX, 0, since, until, asked, len(tied)), tuple(tied))
