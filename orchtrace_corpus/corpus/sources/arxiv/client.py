"""Ask arXiv about papers: politely, resumably, and telling apart what an absence means.

    answer = Client(cache_folder=default_folder()).fetch(["2401.00001", "arXiv:math.GT/0309136v2"])
    answer.found["2401.00001"].title

docs/arxiv.md says what is asked, how often, and what is kept.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from orchtrace_corpus.base.budget import TRIES_SECONDS
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.progress import Progress
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.sources.arxiv.batches import Asker, Miss, Outcome, split_by_version
from orchtrace_corpus.corpus.sources.arxiv.cache import Cache, asked_form
from orchtrace_corpus.corpus.sources.arxiv.feed import FeedExchange
from orchtrace_corpus.corpus.sources.arxiv.search import SearchAnswer, Searcher
from orchtrace_corpus.corpus.sources.arxiv.service import base_url, service
from orchtrace_corpus.corpus.sources.http import Transport
from orchtrace_corpus.corpus.sources.limiter import Clock, Limiter, default_folder

MAX_AGE_SECONDS = 86400.0
"""The age up to which a cached answer is used: arXiv announces new versions once a day."""

_TICK_SECONDS = 1.0


class Answer(NamedTuple):
    """The outcome of each id after a run; every id given is in exactly one of the first six, as it was given.

    Attributes:
        found: What the service says of a paper: the version asked for, else the newest.
        missing: The service has no such paper, or no such version.
        malformed: No arXiv id, as we or the service see it.
        throttled: Given up because the service was busy or kept breaking off; a later run may find it.
        unparseable: What came could not be read.
        unasked: Not asked about, because the client is offline and has no answer of earlier.
        messages: What went wrong, in words; some quote the service.
    """

    found: Mapping[str, Metadata]
    missing: tuple[str, ...] = ()
    malformed: tuple[str, ...] = ()
    throttled: tuple[str, ...] = ()
    unparseable: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Return True if the service has spoken on every id; what it has said may be that there is none."""
        return not (self.throttled or self.unparseable or self.unasked)


class Client:
    """A service that is asked about papers, and the cache of its answers.

    Args:
        url: The service's address; empty for `base_url()`.
        cache_folder: Where answers are kept; empty for `cache.default_folder()`.
        offline: Answer from the cache alone, however old it is.
        refresh: Ask again for what is in the cache.
        patience_seconds: How long to go on after trouble before the rest is given up.
        spacing_seconds: The time from one request to the next; None for the service's own. arXiv is
            never asked more often than every three seconds. Waits after trouble grow with it.
        clock: The times to go by.
        open_transport: Makes the connection.

    Raises:
        CommandUseError: The address is none.
    """

    def __init__(
        self,
        url: str = "",
        *,
        cache_folder: str = "",
        offline: bool = False,
        refresh: bool = False,
        patience_seconds: float = TRIES_SECONDS,
        spacing_seconds: float | None = None,
        clock: Clock | None = None,
        open_transport: Callable[[], Transport] = Transport,
    ) -> None:
        self._service = service(base_url(url), spacing_seconds)
        self._offline = offline
        self._refresh = refresh
        self._patience_seconds = patience_seconds
        self._clock = clock or Clock()
        self._open_transport = open_transport
        folder = os.path.join(cache_folder or default_folder(), "arxiv", self._service.folder)
        self._cache = Cache(folder, self._clock.wall)
        self._time_file = f"{folder}.time"

    def fetch(
        self, ids: Sequence[str], *, known: Collection[str] = (), progress: Callable[[Progress], None] | None = None
    ) -> Answer:
        """Find out about papers: from the cache, and for the rest from the service, a hundred at a time.

        Each answer is kept as soon as it is there, so that a run which is interrupted goes on where it
        was. An id that was found before, or stands in an answer without any entry, is asked for a
        second time before it is missing: arXiv has been seen to find nothing by mistake. What is missing
        then is forgotten, so that no later run answers with what there was.

        Args:
            ids: In any spelling; with a version for that version.
            known: Ids that are known to have been found before, besides those in the cache.
            progress: Called whenever something changes, and every second while nothing does.

        Raises:
            UpstreamError: The service cannot be reached, refuses us, or redirects to another host.
            CacheError: The cache cannot be written.
        """
        forms = {given: asked_form(given) for given in ids}
        wanted = list(dict.fromkeys(form for form in forms.values() if form))
        outcomes: dict[str, Outcome] = {}
        for asked in wanted if self._offline or not self._refresh else ():
            metadata = self._cached(asked)
            if metadata is not None:
                outcomes[asked] = metadata
            elif self._offline:
                outcomes[asked] = Miss.MISSING if self._cache.is_missing(asked) else Miss.UNASKED
        is_done = len(outcomes) == len(wanted)
        messages = () if is_done else self._ask(wanted, outcomes, set(map(asked_form, known)), progress)
        return _answer(forms, outcomes, messages)

    def search(
        self,
        queries: Mapping[str, str],
        *,
        count_only: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> SearchAnswer:
        """Find all papers that queries have: pages from the cache, and the rest from the service.

        Args:
            queries: In arXiv's syntax, by name.
            count_only: Ask how many answers each has, and for no more.
            progress: As for `fetch`; it counts queries.

        Raises:
            UpstreamError: The service cannot be reached, refuses us, or redirects to another host.
            CacheError: The cache cannot be written.
        """

        def report(waiting_seconds: float = 0.0, reason: str = "") -> None:
            if progress is not None:
                progress(Progress(searcher.done, len(queries), waiting_seconds, reason))

        max_age_seconds: float | None = MAX_AGE_SECONDS
        if self._offline:
            max_age_seconds = None
        elif self._refresh:
            max_age_seconds = -1.0
        with self._open_exchange(report) as exchange:
            searcher = Searcher(exchange, self._cache, max_age_seconds, report)
            report()
            return searcher.search(queries, count_only=count_only)

    @contextmanager
    def _open_exchange(self, report: Callable[[float, str], None]) -> Iterator[FeedExchange]:
        """Open the service to be asked in turns, with waits that are reported every second."""

        def pause(seconds: float, reason: str) -> None:
            left_seconds = seconds
            while left_seconds > 0:
                report(left_seconds, reason)
                self._clock.sleep(min(left_seconds, _TICK_SECONDS))
                left_seconds -= _TICK_SECONDS
            report(0.0, "")

        limiter = Limiter(self._time_file, self._service.spacing_seconds, self._clock, pause)
        with self._open_transport() as transport:
            yield FeedExchange(self._service, limiter, transport, self._patience_seconds)

    def _cached(self, asked: str) -> Metadata | None:
        return self._cache.read(asked, None if self._offline else MAX_AGE_SECONDS)

    def _ask(
        self,
        wanted: Sequence[str],
        outcomes: dict[str, Outcome],
        before: Collection[str | None],
        progress: Callable[[Progress], None] | None,
    ) -> tuple[str, ...]:
        """Ask for what has no outcome yet, and return what went wrong."""

        def report(waiting_seconds: float = 0.0, reason: str = "") -> None:
            if progress is not None:
                progress(Progress(len(outcomes) + len(asker.outcomes), len(wanted), waiting_seconds, reason))

        with self._open_exchange(report) as exchange:
            asker = Asker(exchange, self._cache, report)
            report()
            meanwhile = None if self._refresh else self._cached
            for ids in split_by_version([asked for asked in wanted if asked not in outcomes]):
                asker.ask(ids, meanwhile)
            lost = [
                asked
                for asked, outcome in asker.outcomes.items()
                if outcome is Miss.MISSING
                and (asked in before or asked in asker.doubtful or self._cache.read(asked) is not None)
            ]
            for ids in split_by_version(lost):
                asker.ask(ids)
            for asked in lost:
                if asker.outcomes[asked] is Miss.MISSING:
                    self._cache.write(asked, None)
        outcomes |= asker.outcomes
        return tuple(asker.messages)


def _answer(forms: Mapping[str, str | None], outcomes: Mapping[str, Outcome], messages: tuple[str, ...]) -> Answer:
    """Return the outcome of each id as it was given."""
    found: dict[str, Metadata] = {}
    missed: dict[Miss, list[str]] = {miss: [] for miss in Miss}
    for given, asked in forms.items():
        outcome = Miss.MALFORMED if asked is None else outcomes[asked]
        if isinstance(outcome, Metadata):
            found[given] = outcome
        else:
            missed[outcome].append(given)
    return Answer(found, messages=messages, **{str(miss): tuple(names) for miss, names in missed.items()})
