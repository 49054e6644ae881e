"""Find new papers by the protocol's searches, and propose the edit that records them as candidates.

A run sends every query of the protocol to arXiv for a window of days, and follows citations at OpenAlex. Papers that
the corpus has under any identifier, URL or similar title are left out and counted; a preprint and its published version
are one paper. Texts from services become plain text before they are compared or written.
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
from orchtrace_corpus.corpus.intake.lookup import similar_title_remarks
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.author_names import bibtex_author, without_separators
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
"""The value of `--since` for the last day that a query has searched."""

OVERLAP_DAYS = 14
"""The days that a search overlaps the previous one: a paper has the date of submission, and can appear much later."""

CITATIONS = "citations"
"""The name of the search that follows citations."""


class SearchResult(NamedTuple):
    """A search that was answered.

    Attributes:
        search: The search, with 0 new papers, since they are counted later.
        papers: The papers found, each with its reasons: the name of a query or file, or texts such as `cites halo`.
    """

    search: Search
    papers: tuple[tuple[Paper, tuple[str, ...]], ...]


class Discovery(NamedTuple):
    """The outcome of a run of searches.

    Attributes:
        run: The run to record, with the searches that were answered in full.
        new: The new candidates.
        by_title: The papers that were left out for a similar title alone, each with the record that has that title.
        refused: The papers that cannot be recorded, by title or key, each with its errors.
        failed: The searches without an answer, each with the reason.
        messages: Problems that did not end the run.
        metadata: arXiv's metadata of the new candidates, by arXiv id.
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


def import_candidates(corpus: CorpusFiles, items: Sequence[Item], file_name: str, day: date) -> Discovery:
    """Return the items of a file that are new papers, as a run with a single search that has the file's name."""
    papers = tuple((intake.from_item(item), (file_name,)) for item in items)
    result = SearchResult(Search(file_name, file_name, new=0, found=len(papers)), papers)
    discovery = _deduplicate(corpus, [result], day, Maker.IMPORT, None)
    records = RecordIndex([*corpus.pool.papers, *corpus.pool.exclusions])
    messages: list[str] = []
    for candidate in discovery.new:
        messages += (f"{candidate.name}: {remark}" for remark in similar_title_remarks(candidate.paper, records))
    return discovery._replace(messages=tuple(messages))


class _NewPaper(NamedTuple):
    """A new paper, the search that found it first, and the reasons of all searches, in their order."""

    search: Search
    paper: Paper
    reasons: dict[str, None]


def _deduplicate(
    corpus: CorpusFiles, results: Sequence[SearchResult], day: date, maker: Maker, query_field: str | None
) -> Discovery:
    """Return the new papers as candidates, and count the others.

    A candidate's tag is its first reason for the facet `query_field`, else the source, if the facet has such a term.
    """
    pool = corpus.pool
    candidate_papers = [candidate.paper for candidate in corpus.candidates.items]
    recorded = RecordIndex([*pool.papers, *pool.exclusions, *candidate_papers])
    files_by_identity = {id(paper): store.PAPERS for paper in pool.papers}
    files_by_identity |= {id(paper): store.CANDIDATES for paper in candidate_papers}
    present_counts = Counter[str]()  # of papers that the corpus has, by data file
    found_recorded = RecordIndex()  # the papers found so far that the corpus has
    found_new = RecordIndex()  # the others
    new_papers: dict[int, _NewPaper] = {}  # by the identity of the paper in `found_new`
    by_title: dict[str, tuple[Paper, Match]] = {}
    repeated = 0
    for result in results:
        for raw_paper, reasons in result.papers:
            authors = tuple(filter(None, map(_plain, raw_paper.authors)))
            paper = raw_paper._replace(title=_plain(raw_paper.title), authors=authors)
            match = found_new.find(paper) or recorded.find(paper)
            if match is None:
                found_new.add(paper)
                new_papers[id(paper)] = _NewPaper(result.search, paper, dict.fromkeys(reasons))
                continue
            if id(match.record) in new_papers:
                repeated += 1
                new_papers[id(match.record)].reasons.update(dict.fromkeys(reasons))
            elif found_recorded.find(paper):
                repeated += 1
                continue  # listed at its first occurrence, if at all
            else:
                found_recorded.add(paper)
                present_counts[files_by_identity.get(id(match.record), store.EXCLUSIONS)] += 1
            if match.sign is Sign.TITLE:
                by_title.setdefault(_name_in_run(paper), (paper, match))
    used_keys = {paper.key for paper in (*pool.papers, *candidate_papers)}
    reserved = {new_paper.paper.key for new_paper in new_papers.values()}  # keys for none but their own papers
    candidates: list[Candidate] = []
    for search, paper, reasons_in_order in new_papers.values():
        key = intake.propose_key(paper, used_keys, reserved)
        used_keys.add(key)
        found_by = tuple(reasons_in_order)
        tags: dict[str, Tag] = {}
        for facet in screening_facets(pool.taxonomy):
            name = found_by[0] if facet.field == query_field else search.source
            if name in facet.values:
                tags[facet.field] = name
        paper = paper._replace(key=key, tags={}, evidence=())
        candidates.append(Candidate(paper, Decision.UNREAD, found=day.isoformat(), found_by=found_by, screening=tags))
    errors = _find_errors(corpus, candidates)
    accepted = tuple(candidate for candidate in candidates if candidate.name not in errors)
    refused = [candidate for candidate in candidates if candidate.name in errors]
    new_counts = Counter[Search]()
    for new_paper, candidate in zip(new_papers.values(), candidates, strict=True):
        if candidate.name not in errors:
            new_counts[new_paper.search] += 1
    run = Run(
        day.isoformat(),
        maker,
        tuple(result.search._replace(new=new_counts[result.search]) for result in results),
        repeated=repeated,
        in_pool=present_counts[store.PAPERS],
        in_log=present_counts[store.EXCLUSIONS],
        in_candidates=present_counts[store.CANDIDATES],
        refused=len(errors),
        new=tuple(_name_in_run(candidate.paper) for candidate in accepted),
    )
    refused_papers = tuple((candidate.paper.title or candidate.name, errors[candidate.name]) for candidate in refused)
    return Discovery(run, accepted, tuple(by_title.values()), refused_papers)


def propose(corpus: CorpusFiles, outcome: Discovery) -> Proposal:
    """Propose to record a run, with its candidates and arXiv's metadata.

    The repeated import of a file is not recorded if it brings no new papers.
    """
    texts: dict[str, str] = {}
    if outcome.new:
        records = [candidate_fields(candidate, corpus.pool.taxonomy) for candidate in outcome.new]
        texts[store.CANDIDATES] = edit_file(corpus, store.CANDIDATES, added=records)
    run = outcome.run
    imports = [recorded for recorded in corpus.searches.require() if recorded.by is Maker.IMPORT]
    imported = {search.query for recorded in imports for search in recorded.searches}
    is_repeated = run.by is Maker.IMPORT and imported.issuperset(search.query for search in run.searches)
    if run.searches and (outcome.new or not is_repeated):
        texts[store.SEARCHES] = edit_file(corpus, store.SEARCHES, added=[run_fields(run)])
    if outcome.metadata:
        texts[store.ARXIV] = arxiv_text(corpus, outcome.metadata)
    return Proposal(texts)


def arxiv_text(corpus: CorpusFiles, answers: Mapping[str, Metadata]) -> str:
    """Return the new text of `data/arxiv.json`: the metadata of papers and candidates, updated with `answers`."""
    papers = (*corpus.pool.papers, *(item.paper for item in corpus.candidates.items))
    ids = [paper.arxiv_id for paper in papers if paper.arxiv_id]
    return encode(merge(corpus.arxiv, answers, dict.fromkeys((*ids, *answers))))


def _find_errors(corpus: CorpusFiles, candidates: Sequence[Candidate]) -> dict[str, tuple[Finding, ...]]:
    """Return the errors of new candidates by name: those of the candidates' file with the new ones added."""
    if not candidates:
        return {}
    records = [candidate_fields(candidate, corpus.pool.taxonomy) for candidate in candidates]
    text = edit_file(corpus, store.CANDIDATES, added=records)
    file = CorpusFiles(corpus.root, {store.CANDIDATES: text.encode()}).candidates
    names = {candidate.name for candidate in candidates}
    if len(file.items) < len(corpus.candidates.items) + len(candidates):
        raise DataFileError(f"{store.CANDIDATES} cannot be added to", "See corpus check data.")
    errors: dict[str, tuple[Finding, ...]] = {}
    for finding in candidate_rules.check(file, corpus.loaded):
        if finding.record in names and finding.severity is Severity.ERROR:
            errors[finding.record] = (*errors.get(finding.record, ()), finding)
    return errors


def _name_in_run(paper: Paper) -> str:
    """Return the name of a paper in a run: its first identifier, else its URL, else its title."""
    return identifier_text(paper) or "".join(paper.urls[:1]) or paper.title


def _plain(text: str) -> str:
    """Return a text from a service without HTML and Markdown; unpaired quotation marks are removed."""
    text = intake.plain_text(text)
    if re.search(r"[<`]|\]\(|&[#\w]+;", text):
        text = re.sub(r"<[^<>]*>|[<>`]", " ", unescape(text))  # tags, and single signs
        text = text.replace("](", "] (")  # links of Markdown
    if text.count('"') % 2:
        text = text.replace('"', "")
    return " ".join(text.split())


def plan_searches(
    protocol: Protocol, runs: Sequence[Run], today: date, *, since: str = "", names: Sequence[str] = ()
) -> tuple[Search, ...]:
    """Return the searches of a run at arXiv, each from a first day to yesterday, a day that is over in all time zones.

    The first day is `since`; if that is empty or `LAST`, the last day that the query has searched, with an overlap.
    `names` are names of queries, or ids or labels of families, in any case; if empty, all queries are used.
    """
    if not protocol.queries:
        raise CommandUseError(f"{store.PROTOCOL} has no queries", "docs/data.md of orchtrace-corpus describes them.")
    allowed = dict.fromkeys([query.name for query in protocol.queries] + [family.id for family in protocol.families])
    ids_by_label = {family.label.casefold(): family.id for family in protocol.families}
    selected = set()
    for name in names:
        folded = name.casefold()
        matches = {name} if name in allowed else {other for other in allowed if other.casefold() == folded}
        if not matches and folded in ids_by_label:
            matches = {ids_by_label[folded]}
        if not matches:
            raise CommandUseError(f"there is no query or family {quote(name)}{suggestion(name, tuple(allowed))}")
        selected |= matches
    until = (today - timedelta(days=1)).isoformat()
    searches = []
    for query in protocol.queries:
        if names and selected.isdisjoint((query.name, query.family)):
            continue
        first_day = _first_day(protocol, runs, query.name, ARXIV, since, until)
        asked = f"({query.query})"  # the query string that is sent
        if protocol.search_categories:
            categories = " OR ".join(f"cat:{name}" for name in protocol.search_categories)
            asked += f" AND ({categories})"
        asked += f" AND submittedDate:[{first_day.replace('-', '')}0000 TO {until.replace('-', '')}2359]"
        searches.append(Search(query.name, ARXIV, new=0, since=first_day, until=until, asked=asked))
    return tuple(searches)


def _first_day(protocol: Protocol, runs: Sequence[Run], query: str, source: str, since: str, until: str) -> str:
    """Return the first day of a search whose last day is `until`; `since` is the option of the command."""
    if since and since != LAST:
        if not is_iso_date(since):
            raise CommandUseError(f"--since {quote(since)} is not a date", f"Write YYYY-MM-DD, or {LAST}.")
        if since > until:
            raise CommandUseError(f"--since {since} is after {until}, the last day that is over", "Name a day before.")
        return since
    searched_until = last_day(runs, query, source)
    if searched_until is not None:
        return (date.fromisoformat(searched_until) - timedelta(days=OVERLAP_DAYS)).isoformat()
    return min(protocol.search_from or protocol.day, until)  # a first search; `day` is the protocol's


def followed_papers(protocol: Protocol, pool: Pool) -> tuple[Paper, ...]:
    """Return the papers whose citations the protocol follows, except those without an id that OpenAlex knows."""
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
    """Make the planned searches at arXiv, follow citations if `openalex` is given, and return the new papers.

    Citations are followed to works published from `since` on; if it is empty or `LAST`, from the last day to which
    citations were followed, with an overlap.
    """
    results: list[SearchResult] = []
    failed: dict[str, str] = {}
    messages: list[str] = []
    metadata: dict[str, Metadata] = {}
    error: UpstreamError | None = None
    try:
        answer = client.search({search.query: search.asked or "" for search in planned}, progress=progress)
        failed = {name: text for name, (_, text) in answer.failed.items()}
        for search in planned:
            result = answer.found.get(search.query)
            if result is not None:
                messages += result.messages
                metadata |= result.papers
                papers = tuple((intake.from_metadata(paper), (search.query,)) for paper in result.papers.values())
                results.append(SearchResult(search._replace(found=len(papers)), papers))
        if openalex is not None:
            until = (day - timedelta(days=1)).isoformat()
            first_day = _first_day(protocol, corpus.searches.require(), CITATIONS, OPENALEX, since, until)
            followed, minimum = followed_papers(protocol, corpus.pool), protocol.citing_least
            works = _follow_citations(openalex, followed, minimum, first_day, progress)
            asked = f"works that cite, or are cited by, at least {minimum} of {len(followed)} papers"
            search = Search(CITATIONS, OPENALEX, new=0, since=first_day, until=until, asked=asked, found=len(works))
            results.append(SearchResult(search, tuple(works)))
    except UpstreamError as caught:
        error = caught
    outcome = _deduplicate(corpus, results, day, Maker.DISCOVER, protocol.query_field)
    new_ids = {candidate.paper.arxiv_id for candidate in outcome.new}
    new_metadata = {arxiv_id: value for arxiv_id, value in metadata.items() if arxiv_id in new_ids}
    return outcome._replace(failed=failed, messages=tuple(messages), metadata=new_metadata, error=error)


def _follow_citations(
    openalex: OpenAlex, papers: Sequence[Paper], minimum: int, since: str, progress: Callable[[Progress], None] | None
) -> list[tuple[Paper, tuple[str, ...]]]:
    """Return the works that cite at least `minimum` of the papers, or are cited by as many, each with the reasons."""
    works = []
    for work in openalex.follow(papers, since, progress):
        reasons: list[str] = []
        if len(work.cites) >= minimum:
            reasons += (f"cites {key}" for key in work.cites)
        if len(work.cited_by) >= minimum:
            reasons += (f"cited by {key}" for key in work.cited_by)
        if reasons:
            authors = [bibtex_author(intake.plain_text(name)) for name in without_separators(work.values["authors"])]
            works.append((intake.from_fields({**work.values, "authors": authors}), tuple(reasons)))
    return works
