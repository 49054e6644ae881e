"""Request the metadata of papers from arXiv, politely and resumably, with a reason for every paper that is not found.

    answer = Client(cache_folder=default_folder()).fetch(["2401.00001", "arXiv:math.GT/0309136v2"])
    answer.found["2401.00001"].title

Ids are requested in batches until each has an outcome. If the service refuses a batch because of one id, the batch is
requested again without it. A request that was refused as malformed is never repeated, because arXiv penalises that.
docs/arxiv.md describes the requests, how often they are sent, and what is stored.
"""

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias
from urllib.parse import urlsplit

from orchtrace_corpus.base.budget import TRIES_SECONDS
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.identifiers import IdentifierKind, recognise
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.progress import Progress
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.sources import limiter
from orchtrace_corpus.corpus.sources.arxiv.feed import Feed, FeedError, FeedExchange, RefusedQueryError
from orchtrace_corpus.corpus.sources.arxiv.search import SearchAnswer, Searcher
from orchtrace_corpus.corpus.sources.http import TooLongError, Transport

DEFAULT_URL = "https://export.arxiv.org/api/query"
"""arXiv's host for programs."""

SPACING_SECONDS = 3.0
"""The terms of use ask for no more than one request in three seconds (https://info.arxiv.org/help/api/tou.html)."""

MAX_AGE_SECONDS = 86400.0
"""The age up to which a cached answer is used: arXiv announces new versions once a day."""

MAX_IDS = 100
"""The number of ids in one request. arXiv refuses a URL with more than about 640 of them."""

MAX_REFUSALS = 10
"""The number of refused requests in a run after which a refused batch is given up."""


def base_url(option: str = "") -> str:
    """Return the URL of the service: the option, else `ORCHTRACE_ARXIV_URL`, else arXiv's.

    Raises:
        CommandUseError: It is not an http or https URL, or has a query, a fragment or credentials.
    """
    source = "the arXiv URL" if option else "ORCHTRACE_ARXIV_URL"
    url = option or os.environ.get("ORCHTRACE_ARXIV_URL", "")
    if not url:
        return DEFAULT_URL
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # the empty host is reported below
        parts, host, port = urlsplit(""), "", None
    is_plain = url.isascii() and url.isprintable() and set(" ?#@\\").isdisjoint(url)
    if parts.scheme not in ("http", "https") or not is_plain or not re.fullmatch(r"[a-z0-9._-]+|[0-9a-f:.]+", host):
        raise CommandUseError(
            f"{source} is not the address of a service: {quote(url)}",
            f"It looks like {DEFAULT_URL}, without a query.",
        )
    path = parts.path.rstrip("/")
    if _is_arxiv(host):  # https, since arXiv redirects http, which costs a request
        return f"https://{host.rstrip('.')}{path}"
    if ":" in host:  # IPv6
        host = f"[{host}]"
    return f"{parts.scheme}://{host}:{port}{path}" if port else f"{parts.scheme}://{host}{path}"


def find_service(url: str, spacing_seconds: float | None = None) -> limiter.Service:
    """Return the service at a URL from `base_url`.

    If `spacing_seconds` is None, `ORCHTRACE_ARXIV_SPACING` sets the time between requests; raise `CommandUseError` if
    it is not a number. The default, and the minimum for arXiv itself, is three seconds.
    """
    host = urlsplit(url).hostname or ""
    if spacing_seconds is None:
        spacing_seconds = limiter.read_spacing("ORCHTRACE_ARXIV_SPACING", SPACING_SECONDS)
    if _is_arxiv(host):
        hosts = ("arxiv.org", "export.arxiv.org")
        return limiter.Service(url, "arXiv", "arxiv.org", max(spacing_seconds, SPACING_SECONDS), hosts)
    return limiter.named_service(url, host, spacing_seconds)


def _is_arxiv(host: str) -> bool:
    return f".{host.rstrip('.')}".endswith(".arxiv.org")


def request_form(text: str) -> str | None:
    """Return the arXiv id in a text in the form of requests, with the version if the text has one; None without an id.

    arXiv finds nothing for an id with a prefix or a blank. It stores old ids, such as `math.GT/0309136`, without their
    subject class.
    """
    identifier = recognise(text) if text.isascii() else None
    if identifier is None or identifier.kind is not IdentifierKind.ARXIV:
        return None
    arxiv_id = without_subject_class(identifier.value)
    version = re.match(r"v(\d+)", text.partition(identifier.value)[2])
    if version is None:
        return arxiv_id
    return arxiv_id + version[0] if re.fullmatch(r"[1-9]\d{0,3}", version[1]) else None


def without_subject_class(arxiv_id: str) -> str:
    """Return an id as arXiv stores it: without a subject class."""
    return re.sub(r"^([a-z-]+)\.[A-Z]{2}/", r"\1/", arxiv_id)


def is_versioned(arxiv_id: str) -> bool:
    """Return True if an id in the form of requests names a version."""
    return re.search(r"v\d+$", arxiv_id) is not None


class Cache(limiter.AnswerFolder):
    """The answers of one service about papers, a file for each id."""

    def read(self, arxiv_id: str, max_age_seconds: float | None = None) -> Metadata | None:
        """Return the stored answer for an id in the form of requests; None if there is none of that age."""
        metadata = self.read_answer(arxiv_id, Metadata, max_age_seconds)
        if metadata is None:
            return None
        stored_id = without_subject_class(metadata.arxiv_id)
        return metadata if arxiv_id in (stored_id, f"{stored_id}v{metadata.version}") else None

    def is_missing(self, arxiv_id: str) -> bool:
        """Return True if the stored answer is that there is no such paper: the value `False`."""
        return self.read_answer(arxiv_id, bool) is False

    def path_of(self, arxiv_id: str) -> str:
        """Return the path of an id's file. Only a slash is not allowed in file names, and ids have no underscore."""
        return os.path.join(self.folder, f"{arxiv_id.replace('/', '_')}.json")


class Miss(StrEnum):
    """The reasons why there is no metadata for an id. `Answer` explains them."""

    MISSING = "missing"
    MALFORMED = "malformed"
    THROTTLED = "throttled"
    UNPARSEABLE = "unparseable"
    UNASKED = "unasked"


Outcome: TypeAlias = Metadata | Miss


class Answer(NamedTuple):
    """The outcome of a run. Each requested id is in exactly one of the first six attributes, in the caller's spelling.

    Attributes:
        found: The metadata of the version in the id, or of the newest if the id names no version.
        missing: Ids for which the service has no paper, or no such version.
        malformed: Texts that are not an arXiv id, or that the service refuses as ids.
        throttled: Ids that were given up because the service was busy or kept breaking off; a later run may find them.
        unparseable: Ids whose answer could not be read.
        unasked: Ids that were not requested, because the client is offline and has no stored answer.
        messages: Descriptions of problems; some quote the service.
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
        """Return True if there is an answer for every id, even if it is that there is no such paper."""
        return not (self.throttled or self.unparseable or self.unasked)


class Client:
    """A service with arXiv's API, and the cache of its answers.

    Args:
        url: The URL of the service; empty for `base_url()`.
        cache_folder: The folder of the cache; empty for `default_folder()`.
        offline: Use only answers from the cache, of any age.
        refresh: Use no answers from the cache.
        patience_seconds: The time for all waits and repeated requests, after which the other ids are given up.
        spacing_seconds: The time between two requests, on which waits for a busy service depend, too. None means the
            default. For arXiv it is at least three seconds.
        clock: The functions of time, which tests replace.
        open_transport: The function that returns the connection.

    Raises:
        CommandUseError: The URL is invalid.
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
        clock: limiter.Clock | None = None,
        open_transport: Callable[[], Transport] = Transport,
    ) -> None:
        self._service = find_service(base_url(url), spacing_seconds)
        # None accepts an answer of any age, and sends no requests. A negative age accepts no stored answer.
        self._max_age_seconds: float | None = -1.0 if refresh else MAX_AGE_SECONDS
        if offline:
            self._max_age_seconds = None
        self._patience_seconds = patience_seconds
        self._clock = clock or limiter.Clock()
        self._open_transport = open_transport
        folder = os.path.join(cache_folder or limiter.default_folder(), "arxiv", self._service.folder)
        self._cache = Cache(folder, self._clock.wall)

    def fetch(
        self, ids: Sequence[str], *, known: Collection[str] = (), progress: Callable[[Progress], None] | None = None
    ) -> Answer:
        """Return the metadata of papers, from the cache or the service, which gets up to a hundred ids in a request.

        Each answer is stored at once, so a later run continues where this one was interrupted. An id that is not found
        is requested a second time if it was found before, or if the answer had no entries at all, because arXiv
        sometimes finds nothing by mistake. A paper that is still missing is stored as missing.

        Args:
            ids: Ids in any spelling. An id with a version requests that version.
            known: Ids that were found before, besides those in the cache.
            progress: Called after each change, and each second during a wait.

        Raises:
            UpstreamError: The service cannot be reached, refuses to answer, or redirects to another host.
            CacheError: The cache cannot be written.
        """
        forms = {spelling: request_form(spelling) for spelling in ids}
        valid_ids = list(dict.fromkeys(form for form in forms.values() if form))
        outcomes: dict[str, Outcome] = {}
        messages: list[str] = []
        for arxiv_id in valid_ids:
            metadata = self._cache.read(arxiv_id, self._max_age_seconds)
            if metadata is not None:
                outcomes[arxiv_id] = metadata
            elif self._max_age_seconds is None:
                outcomes[arxiv_id] = Miss.MISSING if self._cache.is_missing(arxiv_id) else Miss.UNASKED
        new_ids = [arxiv_id for arxiv_id in valid_ids if arxiv_id not in outcomes]
        if new_ids:
            with self._open_transport() as transport:
                exchange = self._exchange(transport, progress, len(valid_ids))
                requests = _Requests(exchange, self._cache, outcomes, messages)
                requests.fetch(new_ids, self._max_age_seconds)
                missing = [arxiv_id for arxiv_id in new_ids if outcomes[arxiv_id] is Miss.MISSING]
                doubtful = requests.unanswered | set(map(request_form, known))
                doubtful |= {arxiv_id for arxiv_id in missing if self._cache.read(arxiv_id) is not None}
                repeated = [arxiv_id for arxiv_id in missing if arxiv_id in doubtful]
                requests.fetch(repeated)
                for arxiv_id in repeated:
                    if outcomes[arxiv_id] is Miss.MISSING:
                        self._cache.write_answer(arxiv_id, False)
        found: dict[str, Metadata] = {}
        spellings: dict[str, list[str]] = {str(miss): [] for miss in Miss}
        for spelling, form in forms.items():
            outcome = Miss.MALFORMED if form is None else outcomes[form]
            if isinstance(outcome, Metadata):
                found[spelling] = outcome
            else:
                spellings[outcome].append(spelling)
        # The values of `Miss` are names of attributes of `Answer`.
        misses = {miss: tuple(names) for miss, names in spellings.items()}
        return Answer(found, messages=tuple(messages), **misses)

    def search(
        self,
        queries: Mapping[str, str],
        *,
        count_only: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> SearchAnswer:
        """Return the papers that match queries, page by page, from the cache or the service.

        Args:
            queries: The queries in arXiv's syntax, by name.
            count_only: Only count the papers that match.
            progress: Called as in `fetch`, with counts of queries.

        Raises:
            UpstreamError: The service cannot be reached, refuses to answer, or redirects to another host.
            CacheError: The cache cannot be written.
        """
        pages = limiter.AnswerFolder(os.path.join(self._cache.folder, "searches"), self._clock.wall)
        with self._open_transport() as transport:
            exchange = self._exchange(transport, progress, len(queries))
            return Searcher(exchange, pages, self._max_age_seconds).search(queries, count_only=count_only)

    def _exchange(self, transport: Transport, progress: Callable[[Progress], None] | None, total: int) -> FeedExchange:
        path = f"{self._cache.folder}.time"  # of the limiter's file
        return FeedExchange(self._service, path, transport, progress, total, self._clock, self._patience_seconds)


class _Requests:
    """The requests of one run, which add to `outcomes` by id and to `messages`.

    Attributes:
        unanswered: The ids in requests whose answer had no entries.
    """

    def __init__(self, exchange: FeedExchange, cache: Cache, outcomes: dict[str, Outcome], messages: list[str]) -> None:
        self.unanswered: set[str] = set()
        self._exchange = exchange
        self._cache = cache
        self._outcomes = outcomes
        self._messages = messages
        self._refusal_count = 0
        self._has_cleaned_cache = False
        self._report()

    def fetch(self, ids: Sequence[str], max_age_seconds: float | None = -1.0) -> None:
        """Give each id an outcome, from the service, or from the cache if another process has just stored an answer.

        Ids with a version and ids without one are in different requests, because an entry does not say which id it
        answers, and an id without a version means the newest.
        """
        for has_version in (False, True):
            batch_size = MAX_IDS
            pending = [arxiv_id for arxiv_id in ids if is_versioned(arxiv_id) == has_version]
            while pending:
                batch: list[str] = []
                rest = list(pending)
                try:
                    with self._exchange.turn():
                        if not self._has_cleaned_cache:  # no other process writes during a turn
                            self._cache.remove_temporary_files()
                            self._has_cleaned_cache = True
                        while rest and len(batch) < batch_size:
                            arxiv_id = rest.pop(0)
                            metadata = self._cache.read(arxiv_id, max_age_seconds)
                            if metadata is None:
                                batch.append(arxiv_id)
                            else:
                                self._outcomes[arxiv_id] = metadata
                        if batch:
                            query = f"id_list={','.join(batch)}&max_results={len(batch)}"
                            url = f"{self._exchange.service.url}?{query}"
                            feed = self._exchange.ask(url, pluralize(len(batch), "paper"))
                            self._store_outcomes(batch, feed)
                    pending = rest
                except TooLongError as error:
                    batch_size = max(len(batch) // 2, 1)
                    pending = batch + rest
                    if len(batch) == 1:
                        self._give_up(batch, Miss.UNPARSEABLE, error)
                        pending = rest
                except RefusedQueryError as error:
                    pending = self._without_refused(batch, error) + rest
                except FeedError as error:
                    self._give_up(batch, Miss.UNPARSEABLE, error)
                    pending = rest
                except limiter.BusyError as error:
                    self._give_up(batch + rest, Miss.THROTTLED, error)
                    pending = []
                self._report()

    def _report(self) -> None:
        self._exchange.done_count = len(self._outcomes)
        self._exchange.report()

    def _store_outcomes(self, batch: list[str], feed: Feed) -> None:
        """Give each id of a batch the outcome in the feed, and store it."""
        entries: dict[str, Metadata] = {}  # by id with version, and the newest by id without version
        for entry in feed.entries:
            entry_id = without_subject_class(entry.arxiv_id)
            entries[f"{entry_id}v{entry.version}"] = entry
            if entry_id not in entries or entries[entry_id].version < entry.version:
                entries[entry_id] = entry
        self._messages += feed.messages
        unreadable = {without_subject_class(problem.arxiv_id) for problem in feed.problems}
        for arxiv_id in batch:
            metadata = entries.get(arxiv_id)
            if metadata is not None:
                self._cache.write_answer(arxiv_id, metadata)
                self._outcomes[arxiv_id] = metadata
            # An unreadable entry without an id can be about any paper.
            elif "" in unreadable or re.sub(r"v\d+$", "", arxiv_id) in unreadable:
                self._outcomes[arxiv_id] = Miss.UNPARSEABLE
            else:
                self._outcomes[arxiv_id] = Miss.MISSING
        if not feed.entries and not feed.problems and len(batch) > 1:
            self.unanswered.update(batch)

    def _give_up(self, ids: Sequence[str], outcome: Miss, reason: Exception) -> None:
        self._outcomes |= dict.fromkeys(ids, outcome)
        papers = pluralize(len(ids), "paper")
        self._messages.append(f"no answer from {self._exchange.service.name} about {papers}: {reason}")

    def _without_refused(self, batch: list[str], error: RefusedQueryError) -> list[str]:
        """Return a refused batch without the invalid id; give the batch up and return nothing if no id is named."""
        self._refusal_count += 1
        if error.bad_id not in batch or self._refusal_count > MAX_REFUSALS:
            self._give_up(batch, Miss.UNPARSEABLE, error)
            return []
        self._outcomes[error.bad_id] = Miss.MALFORMED
        self._messages.append(f"{self._exchange.service.name} takes {quote(error.bad_id)} for no id")
        return [arxiv_id for arxiv_id in batch if arxiv_id != error.bad_id]
