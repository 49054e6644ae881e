"""Ask for batches of ids until each has an outcome, whatever the service answers.

What is wrong with one id is its outcome, and the rest is asked again without it; `exchange` deals with the moment and
with the service. A request that was refused as malformed is never repeated: arXiv penalises that.
"""

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TypeAlias

from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.sources.arxiv.cache import Cache, is_versioned, stored_form
from orchtrace_corpus.corpus.sources.arxiv.feed import Feed, FeedError, FeedExchange, RefusedQueryError
from orchtrace_corpus.corpus.sources.exchange import TooLongError
from orchtrace_corpus.corpus.sources.limiter import BusyError

MOST_IDS = 100
"""In one request. arXiv refuses an address of more than about 640 of them."""

MOST_REFUSALS = 10
"""The number of refusals of a query for one of its ids, before it is given up."""


class Miss(StrEnum):
    """Why an id has no description; `Answer` says what each means."""

    MISSING = "missing"
    MALFORMED = "malformed"
    THROTTLED = "throttled"
    UNPARSEABLE = "unparseable"
    UNASKED = "unasked"


Outcome: TypeAlias = Metadata | Miss


class Asker:
    """One run of questions to a service.

    Attributes:
        outcomes: By id as it was asked for.
        messages: What went wrong and did not end the run.
        doubtful: Ids that are missing in an answer that held nothing at all.
    """

    def __init__(self, exchange: FeedExchange, cache: Cache, report: Callable[[], None]) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self.messages: list[str] = []
        self.doubtful: set[str] = set()
        self._exchange = exchange
        self._cache = cache
        self._report = report
        self._refusals = 0
        self._is_swept = False

    def ask(self, ids: Sequence[str], cached: Callable[[str], Metadata | None] | None = None) -> None:
        """Ask for ids, all with a version or all without, and give each an outcome.

        Args:
            ids: As arXiv is asked for them.
            cached: Returns the answer that another process may have had meanwhile; None to ask all the same.

        Raises:
            UpstreamError: The service cannot be reached, or refuses us.
            CacheError: The cache cannot be written.
        """
        waiting, size = list(ids), MOST_IDS
        while waiting:
            batch: list[str] = []
            rest = waiting
            try:
                with self._exchange.turn():
                    if not self._is_swept:  # of what killed runs left, in our turn: then nobody else writes there
                        self._cache.sweep()
                        self._is_swept = True
                    batch, rest = self._next_batch(waiting, size, cached)
                    if batch:
                        subject = pluralize(len(batch), "paper")
                        query = f"id_list={','.join(batch)}&max_results={len(batch)}"
                        self._settle(batch, self._exchange.ask(f"{self._exchange.service.url}?{query}", subject))
                waiting = rest
            except TooLongError as error:
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
            except BusyError as error:
                self._give_up(batch + rest, Miss.THROTTLED, str(error))
                waiting = []
            self._report()

    def _next_batch(
        self, waiting: list[str], size: int, cached: Callable[[str], Metadata | None] | None
    ) -> tuple[list[str], list[str]]:
        """Return the ids to ask for now and those for later, without what another process asked for meanwhile."""
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
        self.messages += feed.messages
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
        self.messages.append(
            f"no answer from {self._exchange.service.name} about {pluralize(len(ids), 'paper')}: {reason}"
        )

    def _without_refused(self, batch: list[str], error: RefusedQueryError) -> list[str]:
        """Return a refused batch without the id that it was refused for; nothing where the refusal names none."""
        self._refusals += 1
        if error.bad_id not in batch or self._refusals > MOST_REFUSALS:
            self._give_up(batch, Miss.UNPARSEABLE, str(error))
            return []
        self.outcomes[error.bad_id] = Miss.MALFORMED
        self.messages.append(f"{self._exchange.service.name} takes {quote(error.bad_id)} for no id")
        return [asked for asked in batch if asked != error.bad_id]


def split_by_version(ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the ids without a version and those with one.

    They are asked for apart, because an answer does not say which entry is for which of the ids, and
    an id without a version means the newest.
    """
    return [asked for asked in ids if not is_versioned(asked)], [asked for asked in ids if is_versioned(asked)]
