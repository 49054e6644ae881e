"""Follow citations at OpenAlex: the works that cite papers, and the works that these papers cite.

Reference: https://docs.openalex.org. OpenAlex requires a key, which is free. It is read from `OPENALEX_API_KEY`, and
neither the cache nor a message contains it.
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
from orchtrace_corpus.corpus.sources.http import MAX_RETRIES_UNREADABLE, Exchange, Response, Retry, Transport

KEY = "OPENALEX_API_KEY"
"""The environment variable that holds the key."""

SPACING_SECONDS = 0.2
MAX_AGE_SECONDS = 86400.0
PAGE_SIZE = 100
MAX_PAGES = 20
"""The number of pages of citing works that are read for a paper. With more, the paper is too general to follow."""

BATCH_SIZE = 50
"""The number of works that are requested by id at once."""

_URL = "https://api.openalex.org"
_SELECT = "id,doi,title,publication_date,ids,locations,authorships"
_MAX_AUTHORS = 100


class Work(NamedTuple):
    """A work at OpenAlex.

    Attributes:
        values: The fields of a record that OpenAlex has for it.
        cites: The keys of the followed papers that it cites.
        cited_by: The keys of the followed papers that cite it.
    """

    values: Mapping[str, Any]
    cites: tuple[str, ...] = ()
    cited_by: tuple[str, ...] = ()


class OpenAlex:
    """OpenAlex, with a cache of its answers.

    Args:
        key: The user's key.
        refresh: Use no answer from the cache.

    Raises:
        CommandUseError: `ORCHTRACE_OPENALEX_URL` is not a web address, or `ORCHTRACE_OPENALEX_SPACING` not a number.
    """

    def __init__(self, key: str, *, refresh: bool = False) -> None:
        url = (os.environ.get("ORCHTRACE_OPENALEX_URL") or _URL).rstrip("/")
        limiter.check_web_address("ORCHTRACE_OPENALEX_URL", url)
        spacing_seconds = limiter.read_spacing("ORCHTRACE_OPENALEX_SPACING", SPACING_SECONDS)
        service = limiter.named_service(url, urlsplit(url).hostname or "", spacing_seconds)
        name = "openalex.org" if url == _URL else service.folder
        folder = os.path.join(limiter.default_folder(), "openalex", name)
        self._service = service._replace(name="OpenAlex")
        self._key = key
        self._max_age_seconds = -1.0 if refresh else MAX_AGE_SECONDS  # no answer has a negative age
        self._clock = limiter.Clock()
        self._cache = limiter.AnswerFolder(folder, self._clock.wall)

    def follow(
        self, papers: Sequence[Paper], since: str, progress: Callable[[Progress], None] | None = None
    ) -> list[Work]:
        """Return the works since a day (`YYYY-MM-DD`) that cite the papers, and works that several of them cite.

        Papers are skipped if they have neither an arXiv id nor a DOI, or if OpenAlex does not know them.

        Raises:
            UpstreamError: The service cannot be reached, refuses to answer, or has no time; answers so far are stored.
            CacheError: The cache cannot be written.
        """
        works: dict[str, Mapping[str, Any]] = {}
        # By the id of a work: the keys of the papers that cite it, and of the papers that it cites.
        citing_keys: defaultdict[str, list[str]] = defaultdict(list)
        cited_keys: defaultdict[str, list[str]] = defaultdict(list)
        with Transport() as transport:
            limiter_file = f"{self._cache.folder}.time"
            self._exchange = _WorksExchange(self._service, limiter_file, transport, progress, len(papers), self._clock)
            for paper in papers:
                paper_work = self._find_work(paper)
                if paper_work is not None:
                    condition = f"cites:{_short_id(paper_work['id'])},from_publication_date:{since}"
                    for work in self._list_works(condition):
                        works[work["id"]] = work
                        cited_keys[work["id"]].append(paper.key)
                    for reference in paper_work.get("referenced_works") or ():
                        if _short_id(reference):
                            citing_keys[reference].append(paper.key)
                self._exchange.done_count += 1
                self._exchange.report()
            shared = [work_id for work_id, keys in citing_keys.items() if len(keys) > 1 and work_id not in works]
            for start in range(0, len(shared), BATCH_SIZE):
                ids = "|".join(map(_short_id, shared[start : start + BATCH_SIZE]))
                works |= {work["id"]: work for work in self._list_works(f"ids.openalex:{ids}")}
        found = (
            Work(_values(work), cites=tuple(cited_keys[work_id]), cited_by=tuple(citing_keys.get(work_id, ())))
            for work_id, work in works.items()
        )
        return [work for work in found if work.values["title"]]

    def _find_work(self, paper: Paper) -> Mapping[str, Any] | None:
        """Return the work that a paper is; None if OpenAlex does not know it."""
        arxiv_doi = f"10.48550/arxiv.{paper.arxiv_id}" if paper.arxiv_id else ""
        for doi in filter(None, (arxiv_doi, paper.doi)):
            work = self._ask(f"/works/doi:{escaped(doi, safe='/:;()._-')}?select=id,doi,referenced_works")
            if _short_id(work.get("id")):
                return work
        return None

    def _list_works(self, condition: str) -> Iterator[Mapping[str, Any]]:
        """Yield the works that meet a condition in the syntax of OpenAlex's filters, from at most `MAX_PAGES` pages."""
        cursor: object = "*"
        for _ in range(MAX_PAGES):
            if not isinstance(cursor, str) or not cursor:
                return
            path = f"/works?filter={escaped(condition, safe=':,|')}&select={_SELECT}&per_page={PAGE_SIZE}"
            page = self._ask(f"{path}&cursor={quote_plus(cursor)}")
            results, meta = page.get("results"), page.get("meta")
            if not isinstance(results, list) or not isinstance(meta, dict):
                raise UpstreamError("OpenAlex answers with a list that has no results", "Try again later.")
            yield from (work for work in _objects(results) if _short_id(work.get("id")))
            cursor = meta.get("next_cursor") if results else None

    def _ask(self, path: str) -> Mapping[str, Any]:
        """Return the answer to a request, from the cache if it is fresh; empty if there is no such work."""
        stored = self._cache.read_answer(path, dict[str, Any], self._max_age_seconds)
        if stored is not None:
            return stored
        separator = "&" if "?" in path else "?"
        url = f"{self._service.url}{path}{separator}api_key={quote_plus(self._key)}"
        try:
            answer: Mapping[str, Any] = self._exchange.ask(url, quote(path.partition("?")[0]))
        except UpstreamError as error:
            message = str(error)
            # A server can repeat the address of the request, with the key in any of its encodings.
            for key in {self._key, quote_plus(self._key), escaped(self._key, safe="")} - {""}:
                message = message.replace(key, "***")
            raise UpstreamError(message) from None
        self._cache.write_answer(path, answer)
        return answer


class _WorksExchange(Exchange[Mapping[str, Any]]):
    """Requests to OpenAlex. The answer about an unknown work is empty."""

    accept = "application/json"
    busy_statuses = (403,)  # for too many requests, in a second or in a day
    read_statuses = (404,)  # an unknown work

    def read(self, response: Response) -> Mapping[str, Any] | Retry:
        if response.status == 404:
            return {}
        if response.status == 400:
            raise UpstreamError(f"OpenAlex refuses the request: {self.describe(response)}")
        with suppress(ValueError, RecursionError):
            document = json.loads(response.body)
            if isinstance(document, dict):
                return document
        error = UpstreamError(f"OpenAlex sends something else than JSON: {self.describe(response)}")
        return Retry(error, self.service.spacing_seconds, MAX_RETRIES_UNREADABLE)

    def describe(self, response: Response) -> str:
        message = ""
        with suppress(ValueError, RecursionError, KeyError, TypeError):
            message = str(json.loads(response.body)["message"] or "")
        return f"HTTP {response.status} ({quote(message[:200])})" if message else f"HTTP {response.status}"


def _short_id(work_id: object) -> str:
    """Return the id of a work without its address, such as `W2741809807`; empty for any other value."""
    if not isinstance(work_id, str):
        return ""
    match = re.fullmatch(r"(?:https://openalex\.org/)?(W[0-9]{1,12})", work_id, re.ASCII)
    return match[1] if match else ""


def _values(work: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record that a work has; values of another type than documented are left out."""
    title, date = work.get("title"), work.get("publication_date")
    addresses = [str(location.get("landing_page_url") or "") for location in _objects(work.get("locations"))]
    doi = recognise(str(work.get("doi") or ""))
    doi_addresses = [str(work["doi"])] if doi is not None and doi.kind is IdentifierKind.DOI else []
    recognised = [doi, *map(recognise_url, addresses)]
    # Reversed, so that the first identifier of a kind is the one that stays.
    identifiers = {identifier.kind.value: identifier.value for identifier in reversed(recognised) if identifier}
    authorships = _objects(work.get("authorships"))[:_MAX_AUTHORS]
    authors = _objects([authorship.get("author") for authorship in authorships])
    names = [str(author.get("display_name") or "") for author in authors]
    return {
        "title": title if isinstance(title, str) else "",
        "authors": [name for name in names if name],
        "year": date[:4] if isinstance(date, str) else "",
        "urls": [*doi_addresses, *addresses, str(work["id"])],
        **identifiers,
    }


def _objects(values: object) -> list[Mapping[str, Any]]:
    """Return the objects in a list; empty for any other value."""
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
