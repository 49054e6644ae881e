"""The same thing twice: keys, ids, URLs, titles; among papers, among exclusions, and across both.

Each record is held against a dictionary of those before it, so that the time grows with the number
of records. Of a pair, only the strongest sign is reported: an id, else a URL, else a title.
"""

from collections.abc import Callable, Iterator, Sequence

from orchtrace_corpus.base.findings import Finding, quote
from orchtrace_corpus.base.identifiers import Identifier, recognise, recognise_url
from orchtrace_corpus.corpus.model.records import Exclusion, Loaded, Places, Record, address, folded_title, identities


def check_keys(loaded: Loaded) -> Iterator[Finding]:
    """Two papers with one key, or one to cite: the second could never be shown, cited or updated by it."""
    for name, line, index in _repeats(loaded.papers, loaded.paper_places, "key"):
        message = f"key {quote(name)} is used twice (first on line {line}); give each {loaded.noun.one} its own key"
        yield Finding("D101", message, loaded.paper_places.locate(index, "key"), name)
    keys = {paper.key: index for index, paper in reversed(list(enumerate(loaded.papers))) if paper.key}
    for index, paper in enumerate(loaded.papers):
        first = keys.setdefault(paper.cite_key, index) if paper.cite_key else index
        if first != index:
            other = _named(loaded.papers[first].key, loaded.paper_places, first)
            message = (
                f"cite_key {quote(paper.cite_key or '')} is a key of {other}, too; give each its own, or remove it"
            )
            yield Finding("D101", message, loaded.paper_places.locate(index, "cite_key"), paper.key)


def check_exclusion_ids(loaded: Loaded) -> Iterator[Finding]:
    """Two exclusions with one id: ids are cited in reasons and never reused."""
    for name, line, index in _repeats(loaded.exclusions, loaded.exclusion_places, "id"):
        message = f"exclusion id {quote(name)} is used twice (first on line {line}); give the record the next free id"
        yield Finding("D102", message, loaded.exclusion_places.locate(index, "id"), name)


def check_papers(loaded: Loaded) -> Iterator[Finding]:
    """Two papers with one identifier, one URL of their own or one title: most likely one paper under two keys."""
    papers, places = loaded.papers, loaded.paper_places
    ids: dict[Identifier, int] = {}
    urls: dict[str, int] = {}
    titles: dict[str, int] = {}
    for index, paper in enumerate(papers):
        known = False
        for identifier, path in identities(paper):
            first = ids.setdefault(identifier, index)
            if first != index:
                known = True
                other = _named(papers[first].key, places, first)
                message = f"{identifier.kind} {quote(identifier.value)} is that of {other}, too; keep one record"
                yield Finding("D103", message, places.locate(index, *path), paper.key)
        first = urls.setdefault(address(paper.urls[0]), index) if paper.urls else index
        if first != index and not known:
            known = True
            other = _named(papers[first].key, places, first)
            message = f"the first URL, the {loaded.noun.one}'s own, is that of {other}, too; keep one record"
            yield Finding("D104", message, places.locate(index, "urls", 0), paper.key)
        title = folded_title(paper.title)
        first = titles.setdefault(title, index) if title else index
        if first != index and not known:
            other = _named(papers[first].key, places, first)
            message = f"the title is that of {other}, too; keep one record if both are one {loaded.noun.one}"
            yield Finding("D105", message, places.locate(index, "title"), paper.key)


def check_exclusions(loaded: Loaded) -> Iterator[Finding]:
    """Two exclusions with one identifier, URL or title: one record screened twice."""
    exclusions, places = loaded.exclusions, loaded.exclusion_places
    readers: tuple[tuple[str, str, Callable[[Exclusion], object]], ...] = (
        ("D106", "identifier", lambda exclusion: recognise(exclusion.identifier) or exclusion.identifier.casefold()),
        ("D107", "url", lambda exclusion: recognise_url(exclusion.url) or address(exclusion.url)),
        ("D108", "title", lambda exclusion: folded_title(exclusion.title)),
    )
    seen: dict[tuple[str, object], int] = {}
    for index, exclusion in enumerate(exclusions):
        known = False
        for code, field, read in readers:
            value = read(exclusion)
            first = seen.setdefault((code, value), index) if value else index
            if first != index and not known:
                known = True
                other = _named(exclusions[first].id, places, first)
                message = f"{field} {quote(getattr(exclusion, field))} is that of {other}, too; keep one record"
                yield Finding(code, message, places.locate(index, field), exclusion.id)


def check_excluded_papers(loaded: Loaded) -> Iterator[Finding]:
    """A paper of the pool that was excluded, too, and whose exclusion does not say that it was promoted."""
    if not loaded.exclusions:
        return
    papers = [paper for paper in reversed(loaded.papers) if paper.key]  # the first of several comes last, and stays
    ids = {identifier: paper.key for paper in papers for identifier, _ in identities(paper)}
    urls = {address(paper.urls[0]): paper.key for paper in papers if paper.urls}
    titles = {title: paper.key for paper in papers if (title := folded_title(paper.title))}
    for index, exclusion in enumerate(loaded.exclusions):
        named, linked = recognise(exclusion.identifier), recognise_url(exclusion.url)
        signs = (
            ("D109", "identifier", ids.get(named) if named else None),
            ("D109", "url", ids.get(linked) if linked else urls.get(address(exclusion.url))),
            ("D110", "title", titles.get(folded_title(exclusion.title))),
        )
        code, field, key = next((sign for sign in signs if sign[2]), ("", "", None))
        if key and exclusion.promoted_to != key:
            other = f"{loaded.noun.one} {quote(key)}"
            message = f"the {field} is that of the {other}; keep one record, or write promoted_to: {key}"
            yield Finding(code, message, loaded.exclusion_places.locate(index, field), exclusion.id)


def _repeats(records: Sequence[Record], places: Places, field: str) -> Iterator[tuple[str, int, int]]:
    """Each name that was used before, with the line of its first use and the later record's index; empty ones not."""
    seen: dict[str, int] = {}
    for index, record in enumerate(records):
        if record.name:
            first = seen.setdefault(record.name, index)
            if first != index:
                yield record.name, places.locate(first, field).line, index


def _named(name: str, places: Places, index: int) -> str:
    """Return the name of a record in messages: its key or id, else its line."""
    return quote(name) if name else f"the record on line {places.locate(index).line}"
