"""The addresses that a corpus names: where they stand, which of them to try, and what trying them tells."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import urlsplit

from orchtrace_corpus.base.findings import Finding, printable, quote
from orchtrace_corpus.corpus.model.records import Loaded, Places

ARXIV_HOST = "arxiv.org"


class Verdict(StrEnum):
    """What is known of an address after trying it."""

    OK = "ok"
    MOVED = "moved"
    GONE = "gone"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


class Tried(NamedTuple):
    """The outcome of trying an address.

    Attributes:
        verdict: What is known.
        reason: The answer in a few words, such as `HTTP 404`.
        address: Where a page that has moved is now; empty for other verdicts.
        answered: Whether the server answered at all.
    """

    verdict: Verdict
    reason: str
    address: str = ""
    answered: bool = True


class Link(NamedTuple):
    """An address at one place of the corpus: in which record of which file, and where in the record."""

    url: str
    places: Places
    number: int
    path: tuple[str | int, ...]
    record: str


_CODES = {Verdict.GONE: "L101", Verdict.MOVED: "L102", Verdict.UNREACHABLE: "L103"}


def listed(loaded: Loaded, keys: Collection[str] | None = None) -> Iterator[Link]:
    """Every address with its place, in file order: URLs and sources of papers, URLs of exclusions.

    Args:
        loaded: The corpus.
        keys: Only those of the papers with these keys.
    """
    for index, paper in enumerate(loaded.papers):
        if keys is None or paper.key in keys:
            for number, url in enumerate(paper.urls):
                yield Link(url, loaded.paper_places, index, ("urls", number), paper.key)
            for number, item in enumerate(paper.evidence):
                yield Link(item.source, loaded.paper_places, index, ("evidence", number, "source"), paper.key)
    for index, exclusion in enumerate(loaded.exclusions if keys is None else ()):
        if exclusion.url:
            yield Link(exclusion.url, loaded.exclusion_places, index, ("url",), exclusion.id)


def is_left_to_fetch(url: str) -> bool:
    """Whether an address is one of arXiv's, whose terms ask robots to use the API instead."""
    host = urlsplit(url).hostname or ""
    return host == ARXIV_HOST or host.endswith(f".{ARXIV_HOST}")


def sample(urls: Collection[str], size: int, seed: str = "") -> tuple[str, ...]:
    """Some of the addresses, the same ones each time, in order: those whose hashes are the smallest.

    Hashes lie evenly, so that no host, year or place in the file is preferred; another seed gives
    another sample, and an address that is added or removed changes the sample by one at most.
    """
    ranked = sorted(set(urls), key=lambda url: (sha256(f"{seed}\n{url}".encode()).digest(), url))
    return tuple(sorted(ranked[:size]))


def findings(links: Sequence[Link], tried: Mapping[str, Tried]) -> Iterator[Finding]:
    """What is wrong with the addresses that were tried, at each place where one stands.

    An address that a server refuses to give to programs is not reported: nothing is known of it.
    """
    for link in links:
        outcome = tried.get(link.url)
        if outcome is None or outcome.verdict not in _CODES:
            continue
        shown, reason = quote(link.url), printable(outcome.reason)
        message = {
            Verdict.GONE: f"{shown} is gone ({reason}); find where the page is now, or a copy in an archive",
            Verdict.MOVED: f"{shown} has moved for good; write {quote(outcome.address)}",
            Verdict.UNREACHABLE: f"{shown} cannot be reached ({reason}); try it in a browser, and again another day",
        }[outcome.verdict]
        yield Finding(_CODES[outcome.verdict], message, link.places.locate(link.number, *link.path), link.record)
