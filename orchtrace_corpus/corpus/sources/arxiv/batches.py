"""Asks for batches of ids until each has an outcome, whatever the service answers.

What a trouble is about decides what happens. About one id: the id gets its outcome, and the rest is
asked again without it. About the moment (busy, broken, cut short): the same again, after a wait that
doubles. About the service (refused, unreachable, redirected elsewhere): an error, since the next batch
would fare no better. A request that was refused as malformed is never repeated: arXiv penalises that.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from orchtrace_corpus.base.errors import UpstreamError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.sources.arxiv.cache import Cache, is_versioned, stored_form
from orchtrace_corpus.corpus.sources.arxiv.feed import (
    Feed,
    FeedError,
    Received,
    RefusedQueryError,
    UnreadableFeedError,
    parse,
)
from orchtrace_corpus.corpus.sources.arxiv.service import Limiter, Service, Turn
from orchtrace_corpus.corpus.sources.http import (
    DroppedError,
    OverlongError,
    Response,
    TimedOutError,
    Transport,
    UnreachableError,
)

MOST_IDS = 100
"""In one request. arXiv refuses an address of more than about 640 of them."""

MOST_REFUSALS = 10
"""How often a query may be refused for one of its ids, and be sent again without it."""

MOST_RETRIES = 7
MOST_RETRIES_UNREADABLE = 3
MOST_RETRIES_UNREACHABLE = 2
BUSY_SPACINGS = 10
"""The first wait for a busy service, in units of its spacing: 30 s for arXiv. Each further one is twice as long."""

LONGEST_WAIT_SECONDS = 600.0
JITTER = 0.25


class Miss(StrEnum):
    """Why an id has no description; `Answer` says what each means."""

    MISSING = "missing"
    MALFORMED = "malformed"
    THROTTLED = "throttled"
    UNPARSEABLE = "unparseable"
    UNASKED = "unasked"


Outcome: TypeAlias = Metadata | Miss


class _BusyError(UpstreamError):
    """The service has no answer now."""


class _TooLongError(UpstreamError):
    """The request or its answer is too long; half of it may not be."""


class _Trouble(NamedTuple):
    """Something that may go better next time: what to raise if it does not, and the waits (the service's own last)."""

    error: UpstreamError
    first_seconds: float
    most_retries: int
    least_seconds: float = 0.0


class Asker:
    """One run of questions to a service.

    Attributes:
        outcomes: By id as it was asked for.
        messages: What went wrong and did not end the run.
        doubtful: Ids that are missing in an answer that held nothing at all.
    """

    def __init__(
        self, service: Service, cache: Cache, limiter: Limiter, transport: Transport, patience_seconds: float
    ) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self.messages: list[str] = []
        self.doubtful: set[str] = set()
        self._service = service
        self._cache = cache
        self._limiter = limiter
        self._transport = transport
        self._clock, self._pause = limiter.clock, limiter.pause
        self._patience_seconds = self._left_seconds = patience_seconds
        self._refusals = 0
        self._is_swept = False

    def ask(
        self, ids: Sequence[str], settled: Callable[[], None], cached: Callable[[str], Metadata | None] | None = None
    ) -> None:
        """Ask for ids, all with a version or all without, and give each an outcome.

        Args:
            ids: As arXiv is asked for them.
            settled: Called after each batch.
            cached: Gives what another process may have been answered meanwhile; None to ask all the same.

        Raises:
            UpstreamError: The service cannot be reached, or refuses us.
            CacheError: The cache cannot be written.
        """
        waiting, size = list(ids), MOST_IDS
        while waiting:
            batch: list[str] = []
            rest = waiting
            try:
                with self._limiter.turn(self._patience_seconds) as turn:
                    if not self._is_swept:  # of what killed runs left, in our turn: then nobody else writes there
                        self._cache.sweep()
                        self._is_swept = True
                    batch, rest = self._next_batch(waiting, size, cached)
                    if batch:
                        self._settle(batch, self._feed(batch, turn))
                waiting = rest
            except _TooLongError as error:
                size = max(len(batch) // 2, 1)
                if len(batch) == 1:
                    self._give_up(batch, Miss.UNPARSEABLE, str(error))
                    batch = []
                waiting = batch + rest
            except RefusedQueryError as error:
                waiting = self._without_refused(batch, error) + rest
            except FeedError as error:
                self._give_up(batch, Miss.UNPARSEABLE, str(error))
                waiting = rest
            except (_BusyError, TimeoutError) as error:
                reason = str(error) or f"another process was asking for more than {self._patience_seconds:g} s"
                self._give_up(batch + rest, Miss.THROTTLED, reason)
                waiting = []
            settled()

    def _next_batch(
        self, waiting: list[str], size: int, cached: Callable[[str], Metadata | None] | None
    ) -> tuple[list[str], list[str]]:
        """The ids to ask for now, and those for later, without what another process has asked for meanwhile."""
        batch: list[str] = []
        for index, asked in enumerate(waiting):
            if len(batch) == size:
                return batch, waiting[index:]
            metadata = cached(asked) if cached else None
            if metadata is None:
                batch.append(asked)
            else:
                self.outcomes[asked] = metadata
        return batch, []

    def _settle(self, batch: list[str], feed: Feed) -> None:
        """Give each id of a batch what the feed says of it, and keep that."""
        described: dict[str, Metadata] = {}
        for entry in feed.entries:
            name = stored_form(entry.arxiv_id)
            described[f"{name}v{entry.version}"] = entry
            if name not in described or described[name].version < entry.version:
                described[name] = entry
        self.messages += [problem.message for problem in feed.problems]
        unreadable = {stored_form(problem.arxiv_id) for problem in feed.problems}
        for asked in batch:
            metadata = described.get(asked)
            if metadata is not None:
                self._cache.write(asked, metadata)
                self.outcomes[asked] = metadata
            else:  # an entry that does not say of which paper it is may be that of any
                is_there = "" in unreadable or re.sub(r"v\d+$", "", asked) in unreadable
                self.outcomes[asked] = Miss.UNPARSEABLE if is_there else Miss.MISSING
        if not feed.entries and not feed.problems and len(batch) > 1:
            self.doubtful.update(batch)

    def _give_up(self, ids: Sequence[str], outcome: Miss, reason: str) -> None:
        self.outcomes |= dict.fromkeys(ids, outcome)
        self.messages.append(f"no answer from {self._service.name} about {pluralize(len(ids), 'paper')}: {reason}")

    def _without_refused(self, batch: list[str], error: RefusedQueryError) -> list[str]:
        """What is left of a refused batch without the id that it was refused for; nothing if that is not said."""
        self._refusals += 1
        if error.bad_id not in batch or self._refusals > MOST_REFUSALS:
            self._give_up(batch, Miss.UNPARSEABLE, str(error))
            return []
        self.outcomes[error.bad_id] = Miss.MALFORMED
        self.messages.append(f"{self._service.name} takes {quote(error.bad_id)} for no id")
        return [asked for asked in batch if asked != error.bad_id]

    def _feed(self, batch: list[str], turn: Turn) -> Feed:
        """Ask for a batch until there is an answer, or no patience: a `_BusyError` where there might be one later."""
        retries: Counter[type[UpstreamError]] = Counter()
        while True:
            began = self._clock.steady()
            answer = self._once(batch, turn)
            if isinstance(answer, Feed):
                return answer
            error, first_seconds, most_retries, least_seconds = answer
            retried = retries[type(error)]
            backoff_seconds = first_seconds * 2**retried * (1 + JITTER * random.random())
            wait_seconds = max(min(backoff_seconds, LONGEST_WAIT_SECONDS), least_seconds)
            self._left_seconds -= self._clock.steady() - began
            if retried >= most_retries or wait_seconds > self._left_seconds:
                raise error
            retries[type(error)] += 1
            self._left_seconds -= wait_seconds
            self._pause(wait_seconds, str(error))

    def _once(self, batch: list[str], turn: Turn) -> Feed | _Trouble:
        """Ask for a batch once; an `UpstreamError` where the next time would be no better."""
        spacing_seconds = self._service.spacing_seconds
        url = f"{self._service.url}?id_list={','.join(batch)}&max_results={len(batch)}"
        try:
            response = self._transport.get(
                url,
                accept="application/atom+xml",
                allowed_hosts=self._service.hosts,
                before_request=lambda _: turn.begin(),
            )
        except UnreachableError as error:
            message = f"{self._service.name} could not be asked about {pluralize(len(batch), 'paper')}: {error}"
            hint = "Check the network and try again; --offline answers from the cache alone."
            return _Trouble(UpstreamError(message, hint), min(spacing_seconds, 1.0), MOST_RETRIES_UNREACHABLE)
        except (DroppedError, TimedOutError) as error:
            return _Trouble(_BusyError(str(error)), spacing_seconds, MOST_RETRIES)
        except OverlongError as error:
            raise _TooLongError(str(error)) from error
        finally:
            turn.end()
        if response.status == 414:
            raise _TooLongError("HTTP 414: the address is too long")
        if response.status in (408, 425, 429) or response.status >= 500:
            least_seconds = self._retry_after(response)
            asks = f"; it asks to wait {least_seconds:.0f} s" if least_seconds else ""
            busy = _BusyError(f"{_shown(response)}{asks}")
            return _Trouble(busy, BUSY_SPACINGS * spacing_seconds, MOST_RETRIES, least_seconds)
        if response.status != 400 and not 200 <= response.status < 300:
            raise self._refusal(response)
        return self._read(response)

    def _read(self, response: Response) -> Feed | _Trouble:
        try:
            feed = parse(response.body)
        except UnreadableFeedError as error:
            if response.status == 400 or error.received in (Received.DECLARATIONS, Received.OTHER_XML):
                raise
            if error.received is Received.OVERLONG:
                raise _TooLongError(str(error)) from error
            # A page or a text is about us, not about this batch.
            final = self._refusal(response) if error.received in (Received.PAGE, Received.TEXT) else error
            return _Trouble(final, self._service.spacing_seconds, MOST_RETRIES_UNREADABLE)
        if response.status == 400:
            raise RefusedQueryError("HTTP 400", None)
        return feed

    def _refusal(self, response: Response) -> UpstreamError:
        what = "refuses to answer"
        hint = "Wait an hour before you try again; what it has answered so far is kept."
        if 200 <= response.status < 300:
            what = "sends something else than metadata"
            hint = (
                "The login page of a network or a proxy may stand between, or the service is at work on itself. "
                "Open its address in a browser, or try again in an hour; what it has answered so far is kept."
            )
        return UpstreamError(f"{self._service.name} {what}: {_shown(response)}", hint)

    def _retry_after(self, response: Response) -> float:
        """How long the service asks to wait: seconds, or until a time (RFC 9110, section 10.2.3); 0 if it does not."""
        from email.utils import parsedate_to_datetime

        given = response.headers.get("retry-after", "").strip()
        if re.fullmatch(r"[0-9]{1,9}", given):
            return float(given)
        try:
            return max(parsedate_to_datetime(given).timestamp() - self._clock.wall(), 0.0)
        except (ValueError, TypeError, OverflowError):
            return 0.0


def split_by_version(ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """The ids without a version and those with one.

    They are asked for apart, because an answer does not say which entry is for which of the ids, and
    an id without a version means the newest.
    """
    return [asked for asked in ids if not is_versioned(asked)], [asked for asked in ids if is_versioned(asked)]


def _shown(response: Response) -> str:
    """A status and what came with it."""
    try:
        parse(response.body)
    except FeedError as error:
        what = f"{error.received}{error.detail}" if isinstance(error, UnreadableFeedError) else str(error)
        return f"HTTP {response.status} ({what})"
    return f"HTTP {response.status}"
