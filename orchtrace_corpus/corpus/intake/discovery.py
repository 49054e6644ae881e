"""Find papers by the protocol: plan its searches, make them, keep new papers, and propose the edit that records them.

A run sends every query of the protocol for a window of days, and follows citations. Papers that the corpus has under
any identifier, URL or similar title are left out and counted; a preprint and its published version are one paper. Texts
from outside become plain text before they are compared or written.
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
from orchtrace_corpus.corpus.model.author_names import bibliographic, people
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision, screening_facets
from orchtrace_corpus.corpus.model.codebook import Protocol
from orchtrace_corpus.corpus.model.metadata import Metadata, encode, merge
from orchtrace_corpus.corpus.model.record_fields import candidate_fields
from orchtrace_corpus.corpus.model.records import Paper, Pool, Tag
from orchtrace_corpus.corpus.model.searches import ARXIV, OPENALEX, Maker, Run, Search, last_day, run_fields
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.rules import candidates as candidate_rules
from orchtrace_corpus.corpus.sources.arxiv.client import Client
from orchtrace_corpus.corpus.sources.openalex import OpenAlex

LAST = "last"
"""In place of a date: the last day that a query has searched."""

OVERLAP_DAYS = 14
"""The days that a search overlaps the previous one: a paper is dated by submission, and may appear much later."""

CITATIONS = "citations"
"""The name of the search that follows citations."""


class SearchResult(NamedTuple):
    """A search, without its count of new papers, and its papers, each with the reason: a query, or papers cited."""

    search: Search
    papers: tuple[tuple[Paper, tuple[str, ...]], ...]


class Discovery(NamedTuple):
    """The outcome of a run of searches.

    Attributes:
        run: The run to record, with the searches that were answered in full.
        new: The new candidates.
        by_title: The papers left out by their title alone, each with the record or new paper that has a similar one.
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
    """Return the new entries of a file, as a run of one search with the file's name."""
    papers = tuple((intake.from_item(item), (name,)) for item in items)
    result = SearchResult(Search(name, name, 0, found=len(papers)), papers)
    discovery = _deduplicate(corpus, [result], day, Maker.IMPORT, None)
    records = RecordIndex([*corpus.pool.papers, *corpus.pool.exclusions])
    remarks = (
        f"{candidate.name}: {remark}" for candidate in discovery.new for remark in near_title(candidate.paper, records)
    )
    return discovery._replace(messages=tuple(remarks))


def _deduplicate(
    corpus: CorpusFiles, results: Sequence[SearchResult], day: date, maker: Maker, query_field: str | None
) -> Discovery:
    """Return the papers that are new as candidates, and count the others.

    `query_field` is the facet of exclusions whose terms are names of queries.
    """
    pool = corpus.pool
    awaiting = [candidate.paper for candidate in corpus.candidates.items]
    index = RecordIndex([*pool.papers, *pool.exclusions, *awaiting])
    files = {id(paper): store.PAPERS for paper in pool.papers} | {id(paper): store.CANDIDATES for paper in awaiting}
    present_counts = Counter[str]()
    present, new = RecordIndex(), RecordIndex()
    drafts: list[tuple[Search, Paper, dict[str, None]]] = []
    by_title: dict[str, tuple[Paper, Match]] = {}
    repeated = 0
    for result in results:
        for raw_paper, ties in result.papers:
            authors = tuple(filter(None, map(_plain, raw_paper.authors)))
            paper = raw_paper._replace(title=_plain(raw_paper.title), authors=authors)
            if match := new.find(paper):
                repeated += 1
                drafts[new.records.index(match.record)][2].update(dict.fromkeys(ties))
            elif match := index.find(paper):
                if present.find(paper):
                    repeated += 1
                    continue
                present.add(paper)
                present_counts[files.get(id(match.record), store.EXCLUSIONS)] += 1
            else:
                new.add(paper)
                drafts.append((result.search, paper, dict.fromkeys(ties)))
            if match and match.sign is Sign.TITLE:
                by_title.setdefault(_name(paper), (paper, match))
    used_keys = {paper.key for paper in (*pool.papers, *awaiting)}
    reserved = {paper.key for _, paper, _ in drafts}
    screened_by = screening_facets(pool.taxonomy)
    candidates: list[Candidate] = []
    for search, paper, found_by in drafts:
        key = intake.propose_key(paper, used_keys, reserved)
        used_keys.add(key)
        tags: dict[str, Tag] = {}
        for facet in screened_by:
            name = next(iter(found_by)) if facet.field == query_field else search.source
            if name in facet.values:
                tags[facet.field] = name
        paper = paper._replace(key=key, tags={}, evidence=())
        candidates.append(
            Candidate(paper, Decision.UNREAD, found=day.isoformat(), found_by=tuple(found_by), screening=tags)
        )
    errors = _errors(corpus, candidates)
    accepted = tuple(candidate for candidate in candidates if candidate.name not in errors)
    refused = [candidate for candidate in candidates if candidate.name in errors]
    counts = Counter(
        search for (search, *_), candidate in zip(drafts, candidates, strict=True) if candidate.name not in errors
    )
    run = Run(
        day.isoformat(),
        maker,
        tuple(result.search._replace(new=counts[result.search]) for result in results),
        repeated,
        present_counts[store.PAPERS],
        present_counts[store.EXCLUSIONS],
        present_counts[store.CANDIDATES],
        len(errors),
        tuple(_name(candidate.paper) for candidate in accepted),
    )
    named_errors = tuple((candidate.paper.title or candidate.name, errors[candidate.name]) for candidate in refused)
    return Discovery(run, accepted, tuple(by_title.values()), named_errors)


def propose(corpus: CorpusFiles, outcome: Discovery) -> Proposal:
    """Propose to record a run, with its candidates and arXiv's metadata; no second run of a file without new papers."""
    texts: dict[str, str] = {}
    if outcome.new:
        records = [candidate_fields(candidate, corpus.pool.taxonomy) for candidate in outcome.new]
        texts[store.CANDIDATES] = edit_file(corpus, store.CANDIDATES, added=records)
    run = outcome.run
    imported = {search.query for run in corpus.searches.require() if run.by is Maker.IMPORT for search in run.searches}
    is_again = (
        run.by is Maker.IMPORT and not outcome.new and imported.issuperset(search.query for search in run.searches)
    )
    if run.searches and not is_again:
        texts[store.SEARCHES] = edit_file(corpus, store.SEARCHES, added=[run_fields(run)])
    if outcome.metadata:
        texts[store.ARXIV] = arxiv_text(corpus, outcome.metadata)
    return Proposal(texts)


def arxiv_text(corpus: CorpusFiles, answers: Mapping[str, Metadata]) -> str:
    """Return the text of arXiv's metadata of papers and candidates, with new answers."""
    papers = (*corpus.pool.papers, *(item.paper for item in corpus.candidates.items))
    ids = [paper.arxiv_id for paper in papers if paper.arxiv_id]
    return encode(merge(corpus.arxiv, answers, dict.fromkeys((*ids, *answers))))


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
    """Return the name of a paper in a run: its first identifier, else its URL, else its title."""
    return identifier_text(paper) or next(iter(paper.urls), "") or paper.title


def _plain(text: str) -> str:
    text = intake.plain(text)
    if re.search(r"[<`]|\]\(|&[#\w]+;", text):
        text = re.sub(r"<[^<>]*>|[<>`]", " ", unescape(text)).replace("](", "] (")
    if text.count('"') % 2:
        text = text.replace('"', "")
    return " ".join(text.split())


def plan_searches(
    protocol: Protocol, runs: Sequence[Run], today: date, *, since: str = "", names: Sequence[str] = ()
) -> tuple[Search, ...]:
    """Return the searches of a run at arXiv, each from a first day to yesterday, which is over everywhere.

    The first day is `since`; without it, or with `LAST`, the last day that each query has searched. `names` are those
    of queries, or ids or labels of families, in any case; without any, all queries are made.
    """
    if not protocol.queries:
        raise CommandUseError(f"{store.PROTOCOL} has no queries", "docs/data.md of orchtrace-corpus describes them.")
    allowed = dict.fromkeys([query.name for query in protocol.queries] + [family.id for family in protocol.families])
    labels = {family.label.casefold(): family.id for family in protocol.families}
    wanted = set()
    for name in names:
        same = {other for other in allowed if other.casefold() == name.casefold()}
        if name in same:
            same = {name}
        elif not same and name.casefold() in labels:
            same = {labels[name.casefold()]}
        if not same:
            raise CommandUseError(f"there is no query or family {quote(name)}{suggestion(name, tuple(allowed))}")
        wanted |= same
    until = (today - timedelta(days=1)).isoformat()
    searches = []
    for query in protocol.queries:
        if names and wanted.isdisjoint((query.name, query.family)):
            continue
        first = _window_start(protocol, runs, query.name, ARXIV, since, until)
        asked = f"({query.query})"
        if protocol.search_categories:
            asked += f" AND ({' OR '.join(f'cat:{name}' for name in protocol.search_categories)})"
        asked += f" AND submittedDate:[{first.replace('-', '')}0000 TO {until.replace('-', '')}2359]"
        searches.append(Search(query.name, ARXIV, 0, first, until, asked))
    return tuple(searches)


def _window_start(protocol: Protocol, runs: Sequence[Run], query: str, source: str, since: str, until: str) -> str:
    """Return the first day of a search's window, which ends on `until`."""
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
    """Return the papers whose citations the protocol follows, if they have an id that OpenAlex knows."""
    if not protocol.citing:
        return ()
    papers = parse(protocol.citing, paper_attributes(pool.taxonomy)).select(pool.papers)
    return tuple(paper for paper in papers if paper.arxiv_id or paper.doi)


def discover(
    corpus: CorpusFiles,
    protocol: Protocol,
    planned: Sequence[Search],
    day: date,
    *,
    client: Client,
    openalex: OpenAlex | None = None,
    since: str = "",
    progress: Callable[[Progress], None] | None = None,
) -> Discovery:
    """Make the planned searches at arXiv, follow citations at OpenAlex, if given, from `since` on, and deduplicate."""
    results: list[SearchResult] = []
    failed: dict[str, str] = {}
    messages: list[str] = []
    metadata: dict[str, Metadata] = {}
    error: UpstreamError | None = None
    try:
        answer = client.search({search.query: search.asked or "" for search in planned}, progress=progress)
        failed = {name: text for name, (_, text) in answer.failed.items()}
        for search in planned:
            if (answered := answer.found.get(search.query)) is not None:
                messages += answered.messages
                metadata |= answered.papers
                papers = tuple((intake.from_metadata(paper), (search.query,)) for paper in answered.papers.values())
                results.append(SearchResult(search._replace(found=len(papers)), papers))
        if openalex is not None:
            until = (day - timedelta(days=1)).isoformat()
            first = _window_start(protocol, corpus.searches.require(), CITATIONS, OPENALEX, since, until)
            cited = citing_papers(protocol, corpus.pool)
            results.append(_follow_citations(openalex, cited, protocol.citing_least, first, until, progress))
    except UpstreamError as caught:
        error = caught
    outcome = _deduplicate(corpus, results, day, Maker.DISCOVER, protocol.query_field)
    ids = {candidate.paper.arxiv_id for candidate in outcome.new}
    of_new = {arxiv_id: value for arxiv_id, value in metadata.items() if arxiv_id in ids}
    return outcome._replace(failed=failed, messages=tuple(messages), metadata=of_new, error=error)


def _follow_citations(
    openalex: OpenAlex,
    papers: Sequence[Paper],
    least: int,
    since: str,
    until: str,
    progress: Callable[[Progress], None] | None,
) -> SearchResult:
    """Return the works that cite at least so many of the papers, or are cited by so many."""
    works = []
    for work in openalex.follow(papers, since, progress):
        ties = [f"cites {key}" for key in work.cites] if len(work.cites) >= least else []
        ties += [f"cited by {key}" for key in work.cited_by] if len(work.cited_by) >= least else []
        if ties:
            authors = [bibliographic(intake.plain(name)) for name in people(work.values["authors"])]
            works.append((intake.from_fields({**work.values, "authors": authors}), tuple(ties)))
    asked = f"works that cite, or are cited by, at least {least} of {len(papers)} papers"
    return SearchResult(Search(CITATIONS, OPENALEX, 0, since, until, asked, len(works)), tuple(works))
