"""Rules about keys, ids, URLs and titles that two records share: papers, exclusions, or one of each.

Each value is looked up in a dictionary, so the time grows only linearly with the number of records. If two records
share several values, only the strongest sign that they are one work is reported: an identifier, a URL or a title.
"""

from collections.abc import Iterator, Sequence

from orchtrace_corpus.base.annotations import TypeAlias
from orchtrace_corpus.base.findings import Finding, quote
from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, recognise, recognise_url
from orchtrace_corpus.corpus.model.records import (
    Loaded,
    Paper,
    Path,
    Places,
    Record,
    folded_title,
    folded_url,
    identities,
)

_IDENTIFIER_KINDS = frozenset(IdentifierKind)

Sign: TypeAlias = tuple[str, Path, Identifier | tuple[str, str]]
"""A field, its path, and its value: an identifier, or a kind with a text, such as `("title", "atitle")`. Two records
share the value only if they are the same work."""


def signs(record: Record) -> Iterator[Sign]:
    """Yield the signs by which a record can be recognised, the strongest first."""
    if isinstance(record, Paper):
        for identifier, path in identities(record):
            yield identifier.kind, path, identifier
        if record.urls:
            yield "address", ("urls", 0), ("address", folded_url(record.urls[0]))
    else:
        if record.identifier:
            text = ("identifier", record.identifier.casefold())
            yield "identifier", ("identifier",), recognise(record.identifier) or text
        if record.url:
            yield "url", ("url",), recognise_url(record.url) or ("address", folded_url(record.url))
    title = folded_title(record.title)
    if title:
        yield "title", ("title",), ("title", title)


def check_keys(loaded: Loaded) -> Iterator[Finding]:
    """Two papers with one key, or one citation key: no command could name the second one."""
    for name, line, index in _repeats(loaded.papers, loaded.paper_places, "key"):
        message = f"key {quote(name)} is used twice (first on line {line}); give each {loaded.noun.one} its own key"
        yield Finding("D101", message, loaded.paper_places.locate(index, "key"), name)
    index_by_key: dict[str, int] = {}
    for index, paper in enumerate(loaded.papers):
        if paper.key:
            index_by_key.setdefault(paper.key, index)
    for index, paper in enumerate(loaded.papers):
        if not paper.cite_key:
            continue
        first = index_by_key.setdefault(paper.cite_key, index)
        if first != index:
            other = _name_of(loaded.papers, loaded.paper_places, first)
            message = f"cite_key {quote(paper.cite_key)} is a key of {other}, too; give each its own, or remove it"
            yield Finding("D101", message, loaded.paper_places.locate(index, "cite_key"), paper.key)


def check_exclusion_ids(loaded: Loaded) -> Iterator[Finding]:
    """Two exclusions with one id: ids are cited in reasons and never reused."""
    for name, line, index in _repeats(loaded.exclusions, loaded.exclusion_places, "id"):
        message = f"exclusion id {quote(name)} is used twice (first on line {line}); give the record the next free id"
        yield Finding("D102", message, loaded.exclusion_places.locate(index, "id"), name)


def check_papers(loaded: Loaded) -> Iterator[Finding]:
    """Two papers with one identifier, one first URL or one title: most likely one paper under two keys."""
    for index, first, (field, path, value) in _repeated_signs(loaded.papers):
        other = _name_of(loaded.papers, loaded.paper_places, first)
        advice = "keep one record"
        if field == "title":
            code = "D105"
            subject = "the title"
            advice += f" if both are one {loaded.noun.one}"
        elif field == "address":
            code = "D104"
            subject = f"the first URL, the {loaded.noun.one}'s own,"
        else:
            code = "D103"
            _, text = value
            subject = f"{field} {quote(text)}"
        place = loaded.paper_places.locate(index, *path)
        yield Finding(code, f"{subject} is that of {other}, too; {advice}", place, loaded.papers[index].key)


def check_exclusions(loaded: Loaded) -> Iterator[Finding]:
    """Two exclusions with one identifier, URL or title: one work was screened twice."""
    codes = {"identifier": "D106", "url": "D107", "title": "D108"}
    for index, first, (field, _, _) in _repeated_signs(loaded.exclusions):
        exclusion = loaded.exclusions[index]
        other = _name_of(loaded.exclusions, loaded.exclusion_places, first)
        message = f"{field} {quote(getattr(exclusion, field))} is that of {other}, too; keep one record"
        yield Finding(codes[field], message, loaded.exclusion_places.locate(index, field), exclusion.id)


def _repeated_signs(records: Sequence[Record]) -> Iterator[tuple[int, int, Sign]]:
    """Yield a repeated sign with the index of its record and of the first record that has it.

    All identifiers that a record shares are reported, but a URL or title only if nothing stronger is.
    """
    first_indexes: dict[tuple[str, object], int] = {}
    for index, record in enumerate(records):
        is_reported = False
        for sign in signs(record):
            field, _, value = sign
            first = first_indexes.setdefault((field, value), index)
            if first != index and (field in _IDENTIFIER_KINDS or not is_reported):
                is_reported = True
                yield index, first, sign


def check_excluded_papers(loaded: Loaded) -> Iterator[Finding]:
    """Exclusions of a paper of the pool that do not say that it was promoted."""
    if not loaded.exclusions:
        return
    keys_by_sign: dict[object, str] = {}
    for paper in loaded.papers:
        if paper.key:
            for _, _, value in signs(paper):
                keys_by_sign.setdefault(value, paper.key)
    for index, exclusion in enumerate(loaded.exclusions):
        for field, _, value in signs(exclusion):
            if value in keys_by_sign:  # the first shared sign decides
                key = keys_by_sign[value]
                if exclusion.promoted_to != key:
                    other = f"{loaded.noun.one} {quote(key)}"
                    message = f"the {field} is that of the {other}; keep one record, or write promoted_to: {key}"
                    code = "D110" if field == "title" else "D109"
                    yield Finding(code, message, loaded.exclusion_places.locate(index, field), exclusion.id)
                break


def _repeats(records: Sequence[Record], places: Places, field: str) -> Iterator[tuple[str, int, int]]:
    """Yield each repeated key or id, with the line of its first use and the index of the record that repeats it."""
    first_indexes: dict[str, int] = {}
    for index, record in enumerate(records):
        if record.name:
            first = first_indexes.setdefault(record.name, index)
            if first != index:
                yield record.name, places.locate(first, field).line, index


def _name_of(records: Sequence[Record], places: Places, index: int) -> str:
    """Return the name of a record in messages: its key or id, or its line without one."""
    name = records[index].name
    return quote(name) if name else f"the record on line {places.locate(index).line}"
