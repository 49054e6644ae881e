"""The same thing twice: keys, ids, URLs, titles; among papers, among exclusions, and across both.

Signs are looked up in a dictionary, so that the time grows with the number of records. Of a pair, only the strongest
sign is reported: an id, else a URL, else a title.
"""

from collections.abc import Iterator, Sequence

from orchtrace_corpus.base.annotations import TypeAlias
from orchtrace_corpus.base.findings import Finding, quote
from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, recognise, recognise_url
from orchtrace_corpus.corpus.model.records import Loaded, Paper, Path, Places, Record, address, folded_title, identities

_KINDS = frozenset(IdentifierKind)


Sign: TypeAlias = tuple[str, Path, Identifier | tuple[str, str]]
"""A field with its path and a value that two records share only if they are one work; titles are marked as such."""


def signs(record: Record) -> Iterator[Sign]:
    """Yield the signs of a record, the strongest first."""
    if isinstance(record, Paper):
        for identifier, path in identities(record):
            yield identifier.kind, path, identifier
        if record.urls:
            yield "address", ("urls", 0), ("address", address(record.urls[0]))
    else:
        if record.identifier:
            text = ("identifier", record.identifier.casefold())
            yield "identifier", ("identifier",), recognise(record.identifier) or text
        if record.url:
            yield "url", ("url",), recognise_url(record.url) or ("address", address(record.url))
    if title := folded_title(record.title):
        yield "title", ("title",), ("title", title)


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
    for index, first, (field, path, value) in _repeated_signs(loaded.papers):
        other = _named(loaded.papers[first].key, loaded.paper_places, first)
        if field == "title":
            code, shared, advice = "D105", "the title", f"keep one record if both are one {loaded.noun.one}"
        elif field == "address":
            code, shared, advice = "D104", f"the first URL, the {loaded.noun.one}'s own,", "keep one record"
        else:
            code, shared, advice = "D103", f"{field} {quote(value[1])}", "keep one record"
        place = loaded.paper_places.locate(index, *path)
        yield Finding(code, f"{shared} is that of {other}, too; {advice}", place, loaded.papers[index].key)


def check_exclusions(loaded: Loaded) -> Iterator[Finding]:
    """Two exclusions with one identifier, URL or title: one record screened twice."""
    codes = {"identifier": "D106", "url": "D107", "title": "D108"}
    for index, first, (field, _, _) in _repeated_signs(loaded.exclusions):
        exclusion = loaded.exclusions[index]
        other = _named(loaded.exclusions[first].id, loaded.exclusion_places, first)
        message = f"{field} {quote(getattr(exclusion, field))} is that of {other}, too; keep one record"
        yield Finding(codes[field], message, loaded.exclusion_places.locate(index, field), exclusion.id)


def _repeated_signs(records: Sequence[Record]) -> Iterator[tuple[int, int, Sign]]:
    """Yield the indexes of a record and of the first with the same sign; of a pair, every identifier or one sign."""
    first_indexes: dict[tuple[str, object], int] = {}
    for index, record in enumerate(records):
        is_known = False
        for sign in signs(record):
            field, _, value = sign
            first = first_indexes.setdefault((field, value), index)
            if first != index and (field in _KINDS or not is_known):
                is_known = True
                yield index, first, sign


def check_excluded_papers(loaded: Loaded) -> Iterator[Finding]:
    """A paper of the pool that was excluded, too, and whose exclusion does not say that it was promoted."""
    if not loaded.exclusions:
        return
    papers = [paper for paper in reversed(loaded.papers) if paper.key]  # the first of several comes last, and stays
    keys = {value: paper.key for paper in papers for _, _, value in signs(paper)}
    for index, exclusion in enumerate(loaded.exclusions):
        field, key = next(((field, keys[value]) for field, _, value in signs(exclusion) if value in keys), ("", ""))
        if key and exclusion.promoted_to != key:
            other = f"{loaded.noun.one} {quote(key)}"
            message = f"the {field} is that of the {other}; keep one record, or write promoted_to: {key}"
            code = "D110" if field == "title" else "D109"
            yield Finding(code, message, loaded.exclusion_places.locate(index, field), exclusion.id)


def _repeats(records: Sequence[Record], places: Places, field: str) -> Iterator[tuple[str, int, int]]:
    """Yield each name that was used before, with the line of its first use and the later record's index."""
    first_indexes: dict[str, int] = {}
    for index, record in enumerate(records):
        if record.name:
            first = first_indexes.setdefault(record.name, index)
            if first != index:
                yield record.name, places.locate(first, field).line, index


def _named(name: str, places: Places, index: int) -> str:
    """Return the name of a record in messages: its key or id, else its line."""
    return quote(name) if name else f"the record on line {places.locate(index).line}"
