"""Search arXiv, page by page, until every result of a query was seen once.

Results are in the order of submission, the oldest first, so that new papers come at the end. They can change between
two requests, so each page begins with the last paper of the previous one; if it is another paper, all pages are read
again. Each page is stored at once, so that a later run continues where this one was interrupted.
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
"""The number of papers on a page. arXiv allows 2,000, but sometimes truncates long pages."""

MAX_RESULTS = 10_000
"""The number of results of one query that arXiv's API can page through."""

MAX_PASSES = 3
"""The number of passes over all pages. If results change during each of them, the query fails as `unsettled`."""

MAX_REPEATS = 2
"""The number of repeated requests for a page that is too short."""


class Failure(StrEnum):
    """The reason why a query has no results."""

    THROTTLED = "throttled"
    REFUSED = "refused"
    UNREADABLE = "unreadable"
    UNSETTLED = "unsettled"
    TOO_MANY = "too_many"
    UNASKED = "unasked"


class Results(NamedTuple):
    """All results of a query.

    Attributes:
        papers: The metadata by arXiv id, in the order of submission.
        total: The number of results that the service states.
        messages: The problems of entries that cannot be read.
    """

    papers: Mapping[str, Metadata]
    total: int
    messages: tuple[str, ...] = ()


class SearchAnswer(NamedTuple):
    """The answers to several queries. Each query is in one of the two mappings, by its name.

    Attributes:
        found: The results of queries that were answered in full.
        failed: The kind of failure of each other query, and a message.
    """

    found: Mapping[str, Results]
    failed: Mapping[str, tuple[Failure, str]] = {}


class _QueryError(Exception):
    """A query has no results, for a reason that does not concern the other queries."""

    def __init__(self, failure: Failure, reason: str) -> None:
        super().__init__(reason)
        self.failure = failure


class Searcher:
    """One run of searches. Stored pages are used up to `max_age_seconds`; None accepts any age, and no requests."""

    def __init__(self, exchange: FeedExchange, cache: AnswerFolder, max_age_seconds: float | None) -> None:
        self._exchange = exchange
        self._cache = cache
        self._max_age_seconds = max_age_seconds

    def search(self, queries: Mapping[str, str], *, count_only: bool = False) -> SearchAnswer:
        """Answer queries, one after the other. If the service stays busy for one, all later ones fail, too.

        Raises:
            UpstreamError: The service cannot be reached, or refuses to answer.
            CacheError: The cache cannot be written.
        """
        found: dict[str, Results] = {}
        failed: dict[str, tuple[Failure, str]] = {}
        busy_message = ""
        self._exchange.report()
        for name, query in queries.items():
            try:
                if busy_message:
                    raise BusyError(busy_message)
                if count_only:
                    page = self._page(query, 0, 1, is_fresh=False)
                    papers = {paper.arxiv_id: paper for paper in page.entries}
                    found[name] = Results(papers, page.total or 0, page.messages)
                else:
                    found[name] = self._collect(query)
            except _QueryError as error:
                failed[name] = error.failure, str(error)
            except BusyError as error:
                busy_message = str(error)
                failed[name] = Failure.THROTTLED, busy_message
            except RefusedQueryError as error:
                failed[name] = Failure.REFUSED, str(error)
            except (FeedError, TooLongError) as error:
                failed[name] = Failure.UNREADABLE, str(error)
            self._exchange.done_count += 1
            self._exchange.report()
        return SearchAnswer(found, failed)

    def _collect(self, query: str) -> Results:
        """Return all results of a query."""
        papers: dict[str, Metadata] = {}
        messages: dict[str, None] = {}
        total = 0
        for pass_index in range(MAX_PASSES):
            total, is_complete = self._read_pages(query, papers, messages, is_fresh=pass_index > 0)
            # Papers with the same time can be in another order on each page. Together, the passes see all of them.
            if is_complete or (pass_index > 0 and len(papers) + len(messages) == total):
                ordered = sorted(papers.values(), key=lambda paper: (paper.published, paper.arxiv_id))
                return Results({paper.arxiv_id: paper for paper in ordered}, total, tuple(messages))
        seen = f"{len(papers)} of {pluralize(total, 'answer')}"
        reason = f"the answers changed whenever they were paged through; {seen} were seen in {MAX_PASSES} attempts"
        raise _QueryError(Failure.UNSETTLED, reason)

    def _read_pages(
        self, query: str, papers: dict[str, Metadata], messages: dict[str, None], *, is_fresh: bool
    ) -> tuple[int, bool]:
        """Read all pages once and add to `papers` and `messages`; with `is_fresh`, not from the cache.

        Return the number of results, and True if this pass saw each of them.
        """
        start = 0
        last_id = ""  # of the previous page
        seen_ids: set[str] = set()
        unreadable: set[str] = set()
        while True:
            page = self._page(query, start, PAGE_SIZE, is_fresh=is_fresh)
            self._exchange.report()
            total = page.total or 0
            if total > MAX_RESULTS:
                reason = f"{total:,} answers are more than the {MAX_RESULTS:,} that can be paged through"
                raise _QueryError(Failure.TOO_MANY, f"{reason}; narrow the query or the days")
            ids = [paper.arxiv_id for paper in page.entries]
            messages |= dict.fromkeys(page.messages)
            unreadable.update(page.messages)
            papers |= zip(ids, page.entries, strict=True)
            seen_ids.update(ids)
            # With unreadable entries, the first readable one need not be the first of the page.
            has_changed = start > 0 and not page.messages and ids[:1] != [last_id]
            end = start + page.size
            if has_changed or end >= total or page.size < 2:
                has_all = end >= total and len(seen_ids) + len(unreadable) >= total
                return total, has_all and not has_changed
            start = end - 1
            last_id = ids[-1] if ids else ""

    def _page(self, query: str, start: int, size: int, *, is_fresh: bool) -> Feed:
        """Return a page, not from the cache if `is_fresh`; repeat the request if the page is too short."""
        cache_key = f"{self._exchange.service.url} {query} {start} {size}"
        if not is_fresh or self._max_age_seconds is None:
            stored = self._cache.read_answer(cache_key, Feed, self._max_age_seconds)
            if stored is not None:
                return stored
        if self._max_age_seconds is None:
            raise _QueryError(Failure.UNASKED, "nothing is kept of it")
        url = (
            f"{self._exchange.service.url}?search_query={quote_plus(query)}&start={start}&max_results={size}"
            "&sortBy=submittedDate&sortOrder=ascending"
        )
        for attempt in range(MAX_REPEATS + 1):
            page = self._exchange.ask(url, f"the query {quote(query)}")
            if page.total is None:
                raise _QueryError(Failure.UNREADABLE, "the feed does not say how many answers there are")
            # An answer without results is mostly true, but can be a mistake of arXiv: it is requested twice.
            is_complete = page.size >= max(min(page.total - start, size), 1)
            if is_complete or (attempt > 0 and not page.total):
                break
        self._cache.write_answer(cache_key, page)
        return page
