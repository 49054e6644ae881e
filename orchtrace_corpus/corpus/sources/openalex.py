"""Follow citations at OpenAlex: the works that cite papers, and the works that these papers cite.

Reference: https://docs.openalex.org. OpenAlex requires a key, which is free. It is read from `OPENALEX_API_KEY`, and is
only in requests: not in the cache, not in messages.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote as escaped
from urllib.parse import quote_plus, urlsplit

from orchtrace_corpus.base.errors import UpstreamError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.identifiers import IdentifierKind, recognise, recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.progress import Progress
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.sources import limiter
from orchtrace_corpus.corpus.sources.http import MAX_RETRIES_UNREADABLE, Exchange, Response, Transport, Trouble

KEY = "OPENALEX_API_KEY"
"""The environment variable that holds the key."""

SPACING_SECONDS = 0.2
MAX_AGE_SECONDS = 86400.0
PAGE_SIZE = 100
MAX_PAGES = 20
"""The pages of works that cite one paper; a paper with more is too general to follow."""

BATCH = 50
"""The works in one request."""

_URL = "https://api.openalex.org"
_SELECT = "id,doi,title,publication_date,ids,locations,authorships"
_MAX_AUTHORS = 100


class Work(NamedTuple):
    """A work as OpenAlex describes it, and the keys of the papers that it cites, or that cite it.

    Attributes:
        values: The fields of a record that OpenAlex gives.
        cites: The papers that it cites.
        cited_by: The papers that cite it.
    """

    values: Mapping[str, Any]
    cites: tuple[str, ...] = ()
    cited_by: tuple[str, ...] = ()


class OpenAlex:
    """The service.

    Args:
        key: The key of its user.
        refresh: Ask again for what is in the cache.

    Raises:
        CommandUseError: `ORCHTRACE_OPENALEX_URL` is not a web address, or `ORCHTRACE_OPENALEX_SPACING` not a number.
    """

    def __init__(self, key: str, *, refresh: bool = False) -> None:
        url = (os.environ.get("ORCHTRACE_OPENALEX_URL") or _URL).rstrip("/")
        limiter.check_web_address("ORCHTRACE_OPENALEX_URL", url)
        spacing_seconds = limiter.spacing_of("ORCHTRACE_OPENALEX_SPACING", SPACING_SECONDS)
        service = limiter.named_service(url, urlsplit(url).hostname or "", spacing_seconds)
        folder = os.path.join(limiter.default_folder(), "openalex", "openalex.org" if url == _URL else service.folder)
        self._service = service._replace(name="OpenAlex")
        self._key = key
        self._max_age_seconds = -1.0 if refresh else MAX_AGE_SECONDS
        self._clock = limiter.Clock()
        self._cache = limiter.AnswerFolder(folder, self._clock.wall)

    def follow(
        self, papers: Sequence[Paper], since: str, progress: Callable[[Progress], None] | None = None
    ) -> list[Work]:
        """Return the works that cite papers since a day (`YYYY-MM-DD`), and those that the papers cite.

        Papers without an arXiv id or a DOI are skipped, as are those that OpenAlex does not know.

        Raises:
            UpstreamError: The service cannot be reached, refuses us, or has no time; answers so far are stored.
            CacheError: The cache cannot be written.
        """
        works: dict[str, Mapping[str, Any]] = {}
        cites: defaultdict[str, list[str]] = defaultdict(list)
        cited: defaultdict[str, list[str]] = defaultdict(list)
        with Transport() as transport:
            time_file = f"{self._cache.folder}.time"
            self._exchange = _WorksExchange(self._service, time_file, transport, progress, len(papers), self._clock)
            for paper in papers:
                own = self._work_of(paper)
                if own is not None:
                    for work in self._list_works(f"cites:{_short(own['id'])},from_publication_date:{since}"):
                        works[work["id"]] = work
                        cites[work["id"]].append(paper.key)
                    for reference in own.get("referenced_works") or ():
                        if _short(reference):
                            cited[reference].append(paper.key)
                self._exchange.done += 1
                self._exchange.report()
            shared = [name for name, keys in cited.items() if len(keys) > 1 and name not in works]
            for at in range(0, len(shared), BATCH):
                names = "|".join(map(_short, shared[at : at + BATCH]))
                works |= {work["id"]: work for work in self._list_works(f"ids.openalex:{names}")}
        linked = (Work(_values(work), tuple(cites[name]), tuple(cited.get(name, ()))) for name, work in works.items())
        return [work for work in linked if work.values["title"]]

    def _work_of(self, paper: Paper) -> Mapping[str, Any] | None:
        """Return the work of a paper; None where OpenAlex does not know it."""
        arxiv_doi = f"10.48550/arxiv.{paper.arxiv_id}" if paper.arxiv_id else ""
        for doi in filter(None, (arxiv_doi, paper.doi)):
            work = self._ask(f"/works/doi:{escaped(doi, safe='/:;()._-')}?select=id,doi,referenced_works")
            if _short(work.get("id")):
                return work
        return None

    def _list_works(self, condition: str) -> Iterator[Mapping[str, Any]]:
        """Yield the works that a filter selects, page by page."""
        cursor: object = "*"
        for _ in range(MAX_PAGES):
            if not isinstance(cursor, str) or not cursor:
                return
            path = f"/works?filter={escaped(condition, safe=':,|')}&select={_SELECT}&per_page={PAGE_SIZE}"
            page = self._ask(f"{path}&cursor={quote_plus(cursor)}")
            results, meta = page.get("results"), page.get("meta")
            if not isinstance(results, list) or not isinstance(meta, dict):
                raise UpstreamError("OpenAlex answers with a list that has no results", "Try again later.")
            yield from (work for work in _objects(results) if _short(work.get("id")))
            cursor = meta.get("next_cursor") if results else None

    def _ask(self, path: str) -> Mapping[str, Any]:
        """Return the answer to a request, from the cache if it may be; empty where there is no such work."""
        stored = self._cache.read_answer(path, dict[str, Any], self._max_age_seconds)
        if stored is not None:
            return stored
        separator = "&" if "?" in path else "?"
        url = f"{self._service.url}{path}{separator}api_key={quote_plus(self._key)}"
        try:
            answer: Mapping[str, Any] = self._exchange.ask(url, quote(path.partition("?")[0]))
        except UpstreamError as error:
            message = str(error)
            for form in {self._key, quote_plus(self._key), escaped(self._key, safe="")} - {""}:
                message = message.replace(form, "***")  # a server may send the address of the request back
            raise UpstreamError(message) from None
        self._cache.write_answer(path, answer)
        return answer


class _WorksExchange(Exchange[Mapping[str, Any]]):
    """Requests to OpenAlex; a work that it does not know is an empty answer."""

    accept = "application/json"
    busy_statuses = (403,)  # which stands for an allowance that is used up as well as for asking too fast
    read_statuses = (404,)

    def read(self, response: Response) -> Mapping[str, Any] | Trouble:
        if response.status == 404:
            return {}
        if response.status == 400:
            raise UpstreamError(f"OpenAlex refuses the request: {self.describe(response)}")
        with suppress(ValueError, RecursionError):
            document = json.loads(response.body)
            if isinstance(document, dict):
                return document
        final = UpstreamError(f"OpenAlex sends something else than JSON: {self.describe(response)}")
        return Trouble(final, self.service.spacing_seconds, MAX_RETRIES_UNREADABLE)

    def describe(self, response: Response) -> str:
        message = ""
        with suppress(ValueError, RecursionError, KeyError, TypeError):
            message = str(json.loads(response.body)["message"] or "")
        return f"HTTP {response.status} ({quote(message[:200])})" if message else f"HTTP {response.status}"


def _short(name: object) -> str:
    """Return the id of a work, such as `W2741809807`, without its address; empty for other values."""
    match = isinstance(name, str) and re.fullmatch(r"(?:https://openalex\.org/)?(W[0-9]{1,12})", name, re.ASCII)
    return match[1] if match else ""


def _values(work: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record that a work gives; values of another type than documented are left out."""
    title, date = work.get("title"), work.get("publication_date")
    places, authorships = (_objects(work.get(name)) for name in ("locations", "authorships"))
    addresses = [str(place.get("landing_page_url") or "") for place in places]
    doi = recognise(str(work.get("doi") or ""))
    recognised = [doi, *map(recognise_url, addresses)]
    identifiers = {identifier.kind.value: identifier.value for identifier in reversed(recognised) if identifier}
    authors = _objects([authorship.get("author") for authorship in authorships[:_MAX_AUTHORS]])
    names = [str(author.get("display_name") or "") for author in authors]
    own = [str(work["doi"])] if doi is not None and doi.kind is IdentifierKind.DOI else []
    return {
        "title": title if isinstance(title, str) else "",
        "authors": [name for name in names if name],
        "year": date[:4] if isinstance(date, str) else "",
        "urls": [*own, *addresses, str(work["id"])],
        **identifiers,
    }


def _objects(values: object) -> list[Mapping[str, Any]]:
    """Return the objects in a list; nothing for other values."""
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
