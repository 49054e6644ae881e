"""Search arXiv, page by page, until every result of a query was seen once.

Pages are asked for in the order of submission, the oldest first, so that new papers come at the end. Results can change
between two pages: each page begins with the last paper of the page before, and if that paper differs, all pages are
read again. Each page is stored at once, so that a later run continues where this one was interrupted.
"""

from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import quote_plus

from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.sources.arxiv.feed import Feed, FeedError, FeedExchange, RefusedQueryError
from orchtrace_corpus.corpus.sources.http import TooLongError
from orchtrace_corpus.corpus.sources.limiter import AnswerFolder, BusyError

PAGE_SIZE = 100
"""The papers on a page. arXiv allows 2,000 and has been seen to cut long pages short."""

MAX_RESULTS = 10_000
"""The results of one query that arXiv pages through."""

MAX_SWEEPS = 3
"""The passes over the pages before the results count as unsettled."""

MAX_REPEATS = 2
"""The number of repeated requests for a page that is too short."""


class Failure(StrEnum):
    """The reason why a query has no answer."""

    THROTTLED = "throttled"
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    UNSETTLED = "unsettled"
    TOO_MANY = "too_many"
    UNASKED = "unasked"


class Results(NamedTuple):
    """All results of a query.

    Attributes:
        papers: By arXiv id, in the order of submission.
        total: How many results the service counts.
        messages: The problems of entries that could not be read.
    """

    papers: Mapping[str, Metadata]
    total: int
    messages: tuple[str, ...] = ()


class SearchAnswer(NamedTuple):
    """The answers of a service to several queries, each by its name in one of the two mappings.

    Attributes:
        found: The results of queries that were answered in full.
        failed: The kind of failure of each other query, and what happened in words.
    """

    found: Mapping[str, Results]
    failed: Mapping[str, tuple[Failure, str]] = {}


class _FailedError(Exception):
    """A query has no answer, for a reason that is about this query alone."""

    def __init__(self, failure: Failure, reason: str) -> None:
        super().__init__(reason)
        self.failure = failure


class Searcher:
    """One run of searches. Stored pages are used up to an age in seconds; None means any age, and no requests."""

    def __init__(self, exchange: FeedExchange, cache: AnswerFolder, max_age_seconds: float | None) -> None:
        self._exchange = exchange
        self._cache = cache
        self._max_age_seconds = max_age_seconds

    def search(self, queries: Mapping[str, str], *, count_only: bool = False) -> SearchAnswer:
        """Answer queries, one after the other. Once the service stays busy, the remaining ones fail, too.

        Raises:
            UpstreamError: The service cannot be reached, or refuses us.
            CacheError: The cache cannot be written.
        """
        found: dict[str, Results] = {}
        failed: dict[str, tuple[Failure, str]] = {}
        is_busy = ""
        self._exchange.report()
        for name, query in queries.items():
            try:
                if is_busy:
                    raise BusyError(is_busy)
                if count_only:
                    page = self._page(query, 0, 1, is_fresh=False)
                    papers = {paper.arxiv_id: paper for paper in page.entries}
                    found[name] = Results(papers, page.total or 0, page.messages)
                else:
                    found[name] = self._collect(query)
            except _FailedError as error:
                failed[name] = error.failure, str(error)
            except BusyError as error:
                is_busy = str(error)
                failed[name] = Failure.THROTTLED, is_busy
            except RefusedQueryError as error:
                failed[name] = Failure.REFUSED, str(error)
            except (FeedError, TooLongError) as error:
                failed[name] = Failure.UNREADABLE, str(error)
            self._exchange.done += 1
            self._exchange.report()
        return SearchAnswer(found, failed)

    def _collect(self, query: str) -> Results:
        """Return all results of a query."""
        papers: dict[str, Metadata] = {}
        messages: dict[str, None] = {}
        total = 0
        for sweep in range(MAX_SWEEPS):
            total, is_settled = self._sweep(query, papers, messages, is_fresh=sweep > 0)
            # Papers of one moment may be in another order on each page: then all sweeps together have every paper.
            if is_settled or (sweep and len(papers) + len(messages) == total):
                ordered = sorted(papers.values(), key=lambda paper: (paper.published, paper.arxiv_id))
                return Results({paper.arxiv_id: paper for paper in ordered}, total, tuple(messages))
        seen = f"{len(papers)} of {pluralize(total, 'answer')}"
        reason = f"the answers changed whenever they were paged through; {seen} were seen in {MAX_SWEEPS} attempts"
        raise _FailedError(Failure.UNSETTLED, reason)

    def _sweep(
        self, query: str, papers: dict[str, Metadata], messages: dict[str, None], *, is_fresh: bool
    ) -> tuple[int, bool]:
        """Go through the pages once; return the number of results, and True if each of them was seen."""
        start, last, seen = 0, "", set[str]()
        unreadable: set[str] = set()
        while True:
            page = self._page(query, start, PAGE_SIZE, is_fresh=is_fresh)
            self._exchange.report()
            total = page.total or 0
            if total > MAX_RESULTS:
                reason = f"{total:,} answers are more than the {MAX_RESULTS:,} that can be paged through"
                raise _FailedError(Failure.TOO_MANY, f"{reason}; narrow the query or the days")
            ids = [paper.arxiv_id for paper in page.entries]
            messages |= dict.fromkeys(page.messages)
            unreadable.update(page.messages)
            papers |= zip(ids, page.entries, strict=True)
            is_shifted = start > 0 and not page.messages and ids[:1] != [last]
            seen.update(ids)
            end = start + page.size
            if is_shifted or end >= total or page.size < 2:
                is_whole = end >= total and len(seen) + len(unreadable) >= total
                return total, is_whole and not is_shifted
            start, last = end - 1, ids[-1] if ids else ""

    def _page(self, query: str, start: int, size: int, *, is_fresh: bool) -> Feed:
        """Return a page, from the cache if it may be; ask again for one that is too short."""
        asked = f"{self._exchange.service.url} {query} {start} {size}"
        if not is_fresh or self._max_age_seconds is None:
            stored = self._cache.read_answer(asked, Feed, self._max_age_seconds)
            if stored is not None:
                return stored
        if self._max_age_seconds is None:
            raise _FailedError(Failure.UNASKED, "nothing is kept of it")
        url = (
            f"{self._exchange.service.url}?search_query={quote_plus(query)}&start={start}&max_results={size}"
            "&sortBy=submittedDate&sortOrder=ascending"
        )
        for attempt in range(MAX_REPEATS + 1):
            page = self._exchange.ask(url, f"the query {quote(query)}")
            if page.total is None:
                raise _FailedError(Failure.UNREADABLE, "the feed does not say how many answers there are")
            # No result at all is most often true, and has been seen to be wrong: ask once more.
            is_whole = page.size >= max(min(page.total - start, size), 1)
            if is_whole or (attempt and not page.total):
                break
        self._cache.write_answer(asked, page)
        return page
