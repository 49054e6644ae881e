"""Ask arXiv about papers: politely, resumably, and with a reason for every paper that is not found.

    answer = Client(cache_folder=default_folder()).fetch(["2401.00001", "arXiv:math.GT/0309136v2"])
    answer.found["2401.00001"].title

Batches of ids are asked for until each id has an outcome, whatever the service answers. An id that the service refuses
is left out, and the rest is asked for again. A request that was refused as malformed is never repeated, because arXiv
penalises that. docs/arxiv.md says what is asked, how often, and what is stored.
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
"""In one request. arXiv refuses an address of more than about 640 of them."""

MAX_REFUSALS = 10
"""The number of refusals of a query for one of its ids, before it is given up."""


def base_url(option: str = "") -> str:
    """Return the address to ask: the option's, else that of `ORCHTRACE_ARXIV_URL`, else arXiv's.

    Raises:
        CommandUseError: It is not an http or https address, or has a query, a fragment or credentials.
    """
    source = "the arXiv URL" if option else "ORCHTRACE_ARXIV_URL"
    url = option or os.environ.get("ORCHTRACE_ARXIV_URL", "")
    if not url:
        return DEFAULT_URL
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    is_plain = url.isascii() and url.isprintable() and set(" ?#@\\").isdisjoint(url)
    if parts.scheme not in ("http", "https") or not is_plain or not re.fullmatch(r"[a-z0-9._-]+|[0-9a-f:.]+", host):
        raise CommandUseError(
            f"{source} is not the address of a service: {quote(url)}",
            f"It looks like {DEFAULT_URL}, without a query.",
        )
    if _is_arxiv(host):  # it redirects http, at the cost of a request
        return f"https://{host.rstrip('.')}{parts.path.rstrip('/')}"
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def service(url: str, spacing_seconds: float | None = None) -> limiter.Service:
    """Return the service at an address that `base_url` returned.

    Without `spacing_seconds`, the time between requests is that of `ORCHTRACE_ARXIV_SPACING`, else three seconds; arXiv
    itself never gets a shorter one. Raise `CommandUseError` if the variable is not a number.
    """
    host = urlsplit(url).hostname or ""
    if spacing_seconds is None:
        spacing_seconds = limiter.spacing_of("ORCHTRACE_ARXIV_SPACING", SPACING_SECONDS)
    if _is_arxiv(host):
        hosts = ("arxiv.org", "export.arxiv.org")
        return limiter.Service(url, "arXiv", "arxiv.org", max(spacing_seconds, SPACING_SECONDS), hosts)
    return limiter.named_service(url, host, spacing_seconds)


def _is_arxiv(host: str) -> bool:
    return f".{host.rstrip('.')}".endswith(".arxiv.org")


def request_form(text: str) -> str | None:
    """Return the id in a text as arXiv is asked for it, with its version if it names one; None if there is none.

    arXiv looks up whatever contains an id, and finds nothing if there is a prefix or a blank. It stores old ids, such
    as `math.GT/0309136`, without their subject class.
    """
    identifier = recognise(text) if text.isascii() else None
    if identifier is None or identifier.kind is not IdentifierKind.ARXIV:
        return None
    match = re.match(r"v(\d+)", text.partition(identifier.value)[2])
    if match and not re.fullmatch(r"[1-9]\d{0,3}", match[1]):
        return None
    return without_subject_class(identifier.value) + (match[0] if match else "")


def without_subject_class(arxiv_id: str) -> str:
    """Return an id as arXiv stores it: without a subject class."""
    return re.sub(r"^([a-z-]+)\.[A-Z]{2}/", r"\1/", arxiv_id)


def is_versioned(arxiv_id: str) -> bool:
    """Return True if an id, as arXiv is asked for it, names a version."""
    return re.search(r"v\d+$", arxiv_id) is not None


class Cache(limiter.AnswerFolder):
    """The answers of one service about papers, a file for each id."""

    def read(self, arxiv_id: str, max_age_seconds: float | None = None) -> Metadata | None:
        """Return the answer stored for an id as the service is asked for it; None without one of that age."""
        metadata = self.read_answer(arxiv_id, Metadata, max_age_seconds)
        if metadata is None:
            return None
        name = without_subject_class(metadata.arxiv_id)
        return metadata if arxiv_id in (name, f"{name}v{metadata.version}") else None

    def is_missing(self, arxiv_id: str) -> bool:
        """Return True if the last answer was that there is no such paper."""
        return self.read_answer(arxiv_id, bool) is False

    def path_of(self, arxiv_id: str) -> str:
        """Return the file of an id. Ids have no underscore, and only the slash cannot stand in a file name."""
        return os.path.join(self.folder, f"{arxiv_id.replace('/', '_')}.json")


class Miss(StrEnum):
    """The reasons why an id has no description; `Answer` says what each means."""

    MISSING = "missing"
    MALFORMED = "malformed"
    THROTTLED = "throttled"
    UNPARSEABLE = "unparseable"
    UNASKED = "unasked"


Outcome: TypeAlias = Metadata | Miss


class Answer(NamedTuple):
    """The outcome of each id after a run; every id given is in exactly one of the first six, as it was given.

    Attributes:
        found: The service's description of a paper: of the version asked for, else of the newest.
        missing: The service has no such paper, or no such version.
        malformed: Not an arXiv id, as we or the service see it.
        throttled: Given up because the service was busy or kept breaking off; a later run may find it.
        unparseable: The answer could not be read.
        unasked: Not asked about, because the client is offline and has no earlier answer.
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
        """Return True if the service has an answer for every id, even if only that there is no such paper."""
        return not (self.throttled or self.unparseable or self.unasked)


class Client:
    """A service that is asked about papers, and the cache of its answers.

    Args:
        url: The service's address; empty for `base_url()`.
        cache_folder: The folder of the cache; empty for `default_folder()`.
        offline: Answer from the cache alone, however old it is.
        refresh: Ask again for what is in the cache.
        patience_seconds: How long to go on after trouble before the rest is given up.
        spacing_seconds: The time from one request to the next; None for the service's own. arXiv is never asked more
            often than every three seconds. Waits after trouble grow with it.
        clock: The times to go by.
        open_transport: Makes the connection.

    Raises:
        CommandUseError: The address is invalid.
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
        self._service = service(base_url(url), spacing_seconds)
        self._max_age_seconds: float | None = -1.0 if refresh else MAX_AGE_SECONDS  # no answer is younger than 0
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
        """Find papers in the cache, and ask the service for the others, a hundred at a time.

        Each answer is stored at once, so a later run continues where this one was interrupted. An id that was found
        before, or that is in an answer without any entry, is asked for a second time before it is missing, because
        arXiv has been seen to find nothing by mistake. The cache then forgets what it had of a missing paper.

        Args:
            ids: In any spelling; with a version for that version.
            known: Ids that were found before, besides those in the cache.
            progress: Called whenever something changes, and each second while nothing does.

        Raises:
            UpstreamError: The service cannot be reached, refuses us, or redirects to another host.
            CacheError: The cache cannot be written.
        """
        forms = {spelling: request_form(spelling) for spelling in ids}
        wanted = list(dict.fromkeys(form for form in forms.values() if form))
        outcomes: dict[str, Outcome] = {}
        messages: list[str] = []
        for arxiv_id in wanted:
            metadata = self._cache.read(arxiv_id, self._max_age_seconds)
            if metadata is not None:
                outcomes[arxiv_id] = metadata
            elif self._max_age_seconds is None:
                outcomes[arxiv_id] = Miss.MISSING if self._cache.is_missing(arxiv_id) else Miss.UNASKED
        new_ids = [arxiv_id for arxiv_id in wanted if arxiv_id not in outcomes]
        if new_ids:
            with self._open_transport() as transport:
                asker = _Asker(self._exchange(transport, progress, len(wanted)), self._cache, outcomes, messages)
                asker.ask(new_ids, self._max_age_seconds)
                missing = [arxiv_id for arxiv_id in new_ids if outcomes[arxiv_id] is Miss.MISSING]
                doubtful = asker.unanswered | set(map(request_form, known))
                doubtful |= {arxiv_id for arxiv_id in missing if self._cache.read(arxiv_id) is not None}
                missing = [arxiv_id for arxiv_id in missing if arxiv_id in doubtful]
                asker.ask(missing)
                for arxiv_id in missing:
                    if outcomes[arxiv_id] is Miss.MISSING:
                        self._cache.write_answer(arxiv_id, False)
        found: dict[str, Metadata] = {}
        missed: dict[str, list[str]] = {str(miss): [] for miss in Miss}
        for spelling, form in forms.items():
            outcome = Miss.MALFORMED if form is None else outcomes[form]
            if isinstance(outcome, Metadata):
                found[spelling] = outcome
            else:
                missed[outcome].append(spelling)
        return Answer(found, messages=tuple(messages), **{miss: tuple(names) for miss, names in missed.items()})

    def search(
        self,
        queries: Mapping[str, str],
        *,
        count_only: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> SearchAnswer:
        """Find the papers that match queries, page by page: pages in the cache, and the others from the service.

        Args:
            queries: In arXiv's syntax, by name.
            count_only: Only count the papers that match.
            progress: As in `fetch`; it counts queries.

        Raises:
            UpstreamError: The service cannot be reached, refuses us, or redirects to another host.
            CacheError: The cache cannot be written.
        """
        pages = limiter.AnswerFolder(os.path.join(self._cache.folder, "searches"), self._clock.wall)
        with self._open_transport() as transport:
            exchange = self._exchange(transport, progress, len(queries))
            return Searcher(exchange, pages, self._max_age_seconds).search(queries, count_only=count_only)

    def _exchange(self, transport: Transport, progress: Callable[[Progress], None] | None, total: int) -> FeedExchange:
        time_file = f"{self._cache.folder}.time"
        return FeedExchange(self._service, time_file, transport, progress, total, self._clock, self._patience_seconds)


class _Asker:
    """One run of questions to a service.

    Attributes:
        unanswered: Ids in requests that were answered without any entry.
    """

    def __init__(self, exchange: FeedExchange, cache: Cache, outcomes: dict[str, Outcome], messages: list[str]) -> None:
        self.unanswered: set[str] = set()
        self._exchange = exchange
        self._cache = cache
        self._outcomes = outcomes
        self._messages = messages
        self._refusals = 0
        self._is_swept = False
        self._report()

    def ask(self, ids: Sequence[str], max_age_seconds: float | None = -1.0) -> None:
        """Give each id an outcome: from the cache, if another process has asked meanwhile, else from the service.

        Ids with a version and ids without one are asked for apart, because an answer does not say which entry is for
        which id, and an id without a version means the newest.
        """
        for has_version in (False, True):
            size = MAX_IDS
            waiting = [arxiv_id for arxiv_id in ids if is_versioned(arxiv_id) == has_version]
            while waiting:
                batch: list[str] = []
                rest = list(waiting)
                try:
                    with self._exchange.turn():
                        if not self._is_swept:  # no other process writes during our turn
                            self._cache.sweep()
                            self._is_swept = True
                        while rest and len(batch) < size:
                            arxiv_id = rest.pop(0)
                            metadata = self._cache.read(arxiv_id, max_age_seconds)
                            if metadata is None:
                                batch.append(arxiv_id)
                            else:
                                self._outcomes[arxiv_id] = metadata
                        if batch:
                            query = f"id_list={','.join(batch)}&max_results={len(batch)}"
                            url = f"{self._exchange.service.url}?{query}"
                            self._settle(batch, self._exchange.ask(url, pluralize(len(batch), "paper")))
                    waiting = rest
                except TooLongError as error:
                    size = max(len(batch) // 2, 1)
                    waiting = batch + rest
                    if len(batch) == 1:
                        self._give_up(batch, Miss.UNPARSEABLE, error)
                        waiting = rest
                except RefusedQueryError as error:
                    waiting = self._without_refused(batch, error) + rest
                except FeedError as error:
                    self._give_up(batch, Miss.UNPARSEABLE, error)
                    waiting = rest
                except limiter.BusyError as error:
                    self._give_up(batch + rest, Miss.THROTTLED, error)
                    waiting = []
                self._report()

    def _report(self) -> None:
        self._exchange.done = len(self._outcomes)
        self._exchange.report()

    def _settle(self, batch: list[str], feed: Feed) -> None:
        """Give each id of a batch the outcome in the feed, and store it."""
        described: dict[str, Metadata] = {}
        for entry in feed.entries:
            name = without_subject_class(entry.arxiv_id)
            described[f"{name}v{entry.version}"] = entry
            if name not in described or described[name].version < entry.version:
                described[name] = entry
        self._messages += feed.messages
        unreadable = {without_subject_class(problem.arxiv_id) for problem in feed.problems}
        for arxiv_id in batch:
            metadata = described.get(arxiv_id)
            if metadata is not None:
                self._cache.write_answer(arxiv_id, metadata)
                self._outcomes[arxiv_id] = metadata
            else:  # an entry that does not say of which paper it is may be that of any
                is_there = "" in unreadable or re.sub(r"v\d+$", "", arxiv_id) in unreadable
                self._outcomes[arxiv_id] = Miss.UNPARSEABLE if is_there else Miss.MISSING
        if not feed.entries and not feed.problems and len(batch) > 1:
            self.unanswered.update(batch)

    def _give_up(self, ids: Sequence[str], outcome: Miss, reason: Exception) -> None:
        self._outcomes |= dict.fromkeys(ids, outcome)
        papers = pluralize(len(ids), "paper")
        self._messages.append(f"no answer from {self._exchange.service.name} about {papers}: {reason}")

    def _without_refused(self, batch: list[str], error: RefusedQueryError) -> list[str]:
        """Return a refused batch without the id that it was refused for; an empty list if the refusal names no id."""
        self._refusals += 1
        if error.bad_id not in batch or self._refusals > MAX_REFUSALS:
            self._give_up(batch, Miss.UNPARSEABLE, error)
            return []
        self._outcomes[error.bad_id] = Miss.MALFORMED
        self._messages.append(f"{self._exchange.service.name} takes {quote(error.bad_id)} for no id")
        return [arxiv_id for arxiv_id in batch if arxiv_id != error.bad_id]
