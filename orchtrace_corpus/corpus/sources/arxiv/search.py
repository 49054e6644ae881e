"""Search arXiv, page by page, until everything that a query has was seen once.

Pages are asked for in the order of submission, the oldest first, so that what is new comes at the end. The answers can
change all the same while they are paged through: each page begins with the last paper of the one before, and where that
is another paper the pages are gone through again. Each page is kept as soon as it is there, so that a run that is
interrupted goes on where it was.
"""

from collections.abc import Callable, Mapping
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

MOST_ANSWERS = 10_000
"""The results of one query that arXiv pages through."""

MOST_SWEEPS = 3
"""The passes over the pages before the results count as unsettled."""

MOST_SHORT = 2
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
    """All answers to a query.

    Attributes:
        papers: By arXiv id, in the order of submission.
        total: How many answers the service counts.
        messages: What could not be read of single entries.
    """

    papers: Mapping[str, Metadata]
    total: int
    messages: tuple[str, ...] = ()


class SearchAnswer(NamedTuple):
    """The answers of a service to several queries, each by its name in one of the two mappings.

    Attributes:
        found: Those that were answered in full.
        failed: The others, each with the kind of failure and what happened in words.
    """

    found: Mapping[str, Results]
    failed: Mapping[str, tuple[Failure, str]] = {}


class _FailedError(Exception):
    """A query has no answer, for a reason that is about this query alone."""

    def __init__(self, failure: Failure, reason: str) -> None:
        super().__init__(reason)
        self.failure = failure


class Searcher:
    """One run of searches.

    Args:
        exchange: How the service is asked.
        cache: The pages that are kept.
        max_age_seconds: How old a kept page may be; less than 0 for none, None for any age, and to ask no service.
        report: Called after each page and each query.
    """

    def __init__(
        self, exchange: FeedExchange, cache: AnswerFolder, max_age_seconds: float | None, report: Callable[[], None]
    ) -> None:
        self._exchange = exchange
        self._cache = cache
        self._max_age_seconds = max_age_seconds
        self._report = report
        self.found: dict[str, Results] = {}
        self.failed: dict[str, tuple[Failure, str]] = {}

    def search(self, queries: Mapping[str, str], *, count_only: bool = False) -> SearchAnswer:
        """Answer queries, one after the other. Once the service is busy beyond patience, the rest is given up, too.

        Args:
            queries: In arXiv's syntax, by name.
            count_only: Ask how many answers there are, and for none of them but the first.

        Raises:
            UpstreamError: The service cannot be reached, or refuses us.
            CacheError: The cache cannot be written.
        """
        is_busy = ""
        for name, query in queries.items():
            try:
                if is_busy:
                    raise _FailedError(Failure.THROTTLED, is_busy)
                if count_only:
                    page = self._page(query, 0, 1, is_fresh=False)
                    papers = {paper.arxiv_id: paper for paper in page.entries}
                    self.found[name] = Results(papers, page.total or 0, page.messages)
                else:
                    self.found[name] = self._collect(query)
            except _FailedError as error:
                self.failed[name] = error.failure, str(error)
            except BusyError as error:
                is_busy = str(error)
                self.failed[name] = Failure.THROTTLED, is_busy
            except RefusedQueryError as error:
                self.failed[name] = Failure.REFUSED, str(error)
            except (FeedError, TooLongError) as error:
                self.failed[name] = Failure.UNREADABLE, str(error)
            self._report()
        return SearchAnswer(self.found, self.failed)

    def _collect(self, query: str) -> Results:
        """Return all answers to a query."""
        papers: dict[str, Metadata] = {}
        messages: dict[str, None] = {}
        total = 0
        for sweep in range(MOST_SWEEPS):
            total, is_settled = self._sweep(query, papers, messages, is_fresh=sweep > 0)
            # Papers of one moment may stand in another order on each page: then the rounds have them all together.
            if is_settled or (sweep and len(papers) + len(messages) == total):
                ordered = sorted(papers.values(), key=lambda paper: (paper.published, paper.arxiv_id))
                return Results({paper.arxiv_id: paper for paper in ordered}, total, tuple(messages))
        seen = f"{len(papers)} of {pluralize(total, 'answer')}"
        reason = f"the answers changed whenever they were paged through; {seen} were seen in {MOST_SWEEPS} attempts"
        raise _FailedError(Failure.UNSETTLED, reason)

    def _sweep(
        self, query: str, papers: dict[str, Metadata], messages: dict[str, None], *, is_fresh: bool
    ) -> tuple[int, bool]:
        """Go through the pages once; return the number of answers, and whether each of them was seen."""
        start, last, seen = 0, "", set[str]()
        unreadable: dict[str, None] = {}
        while True:
            page = self._page(query, start, PAGE_SIZE, is_fresh=is_fresh)
            self._report()
            total = page.total or 0
            if total > MOST_ANSWERS:
                reason = f"{total:,} answers are more than the {MOST_ANSWERS:,} that can be paged through"
                raise _FailedError(Failure.TOO_MANY, f"{reason}; narrow the query or the days")
            ids = [paper.arxiv_id for paper in page.entries]
            messages |= dict.fromkeys(page.messages)
            unreadable |= dict.fromkeys(page.messages)
            papers |= zip(ids, page.entries, strict=True)
            is_shifted = start > 0 and not page.messages and ids[:1] != [last]
            seen |= set(ids)
            end = start + page.size
            if is_shifted or end >= total or page.size < 2:
                is_whole = end >= total and len(seen) + len(unreadable) >= total
                return total, is_whole and not is_shifted
            start, last = end - 1, ids[-1] if ids else ""

    def _page(self, query: str, start: int, size: int, *, is_fresh: bool) -> Feed:
        """Return a page, from the cache if it may be; one that is shorter than it should be is asked for again."""
        asked = f"{self._exchange.service.url} {query} {start} {size}"
        if not is_fresh or self._max_age_seconds is None:
            kept = self._cache.read_answer(asked, Feed, self._max_age_seconds)
            if kept is not None:
                return kept
        page = self._ask(query, start, size)
        for _ in range(MOST_SHORT):
            # None at all is most often true, and has been seen to be wrong.
            if page.size >= max(min((page.total or 0) - start, size), 1):
                break
            page = self._ask(query, start, size)
            if not page.total:
                break
        self._cache.write_answer(asked, page)
        return page

    def _ask(self, query: str, start: int, size: int) -> Feed:
        if self._max_age_seconds is None:
            raise _FailedError(Failure.UNASKED, "nothing is kept of it")
        url = (
            f"{self._exchange.service.url}?search_query={quote_plus(query)}&start={start}&max_results={size}"
            "&sortBy=submittedDate&sortOrder=ascending"
        )
        feed = self._exchange.ask(url, f"the query {quote(query)}")
        if feed.total is None:
            raise _FailedError(Failure.UNREADABLE, "the feed does not say how many answers there are")
        return feed
