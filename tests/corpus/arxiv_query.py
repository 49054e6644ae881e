"""What a search for papers at arXiv means: the syntax of its query API, and which papers a query has.

From the user manual (https://info.arxiv.org/help/api/user-manual.html#query_details): a field and a colon before a word
or a phrase in double quotes; AND, OR and ANDNOT; parentheses; a span of days in brackets. What the manual does not say
is as the service does it: without an operator OR is meant, ANDNOT and AND come before OR, words are compared by their
stems, a hyphen parts words, and `all` has the authors, too. The program has a reader of its own, which is stricter.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache

from orchtrace_corpus.corpus.model.metadata import Metadata

Matches = Callable[[Metadata], bool]

_TOKEN = r'\s*(?:(?P<mark>[()])|(?P<op>AND|OR|ANDNOT)(?![\w:])|(?P<field>[A-Za-z]+):|\[(?P<span>[^\]]*)\]|"(?P<phrase>[^"]*)"|(?P<word>[^\s()"\[\]]+))'
_FIELDS = ("ti", "au", "abs", "co", "jr", "cat", "rn", "all")


class QueryError(ValueError):
    """The query cannot be read; the service answers 400."""


@cache
def parse(query: str) -> Matches:
    """What tells whether a paper is among the answers to a query."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while query[at:].strip():
        found = re.match(_TOKEN, query[at:])
        if found is None:
            raise QueryError(f"Invalid query string: {query}")
        tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
        at += found.end()
    matches, rest = _any(tokens)
    if rest:
        raise QueryError(f"Invalid query string: {query}")
    return matches


def _any(tokens: Sequence[tuple[str, str]]) -> tuple[Matches, Sequence[tuple[str, str]]]:
    first, tokens = _every(tokens)
    parts = [first]
    while tokens and tokens[0] != ("mark", ")"):
        if tokens[0] == ("op", "OR"):
            tokens = tokens[1:]
        part, tokens = _every(tokens)
        parts.append(part)
    return (lambda paper: any(part(paper) for part in parts)), tokens


def _every(tokens: Sequence[tuple[str, str]]) -> tuple[Matches, Sequence[tuple[str, str]]]:
    first, tokens = _one(tokens)
    wanted, unwanted = [first], []
    while tokens and tokens[0] in (("op", "AND"), ("op", "ANDNOT")):
        chosen = wanted if tokens[0][1] == "AND" else unwanted
        part, tokens = _one(tokens[1:])
        chosen.append(part)
    return (lambda paper: all(part(paper) for part in wanted) and not any(part(paper) for part in unwanted)), tokens


def _one(tokens: Sequence[tuple[str, str]]) -> tuple[Matches, Sequence[tuple[str, str]]]:
    if tokens[:1] == [("mark", "(")]:
        matches, rest = _any(tokens[1:])
        if rest[:1] != [("mark", ")")]:
            raise QueryError("Invalid query string: a parenthesis is not closed")
        return matches, rest[1:]
    if len(tokens) < 2 or tokens[0][0] != "field":
        raise QueryError("Invalid query string: a field is missing")
    (_, field), (kind, value), *rest = tokens
    if field == "submittedDate" and kind == "span":
        found = re.fullmatch(r"(\d{12}) TO (\d{12})", value)
        if found is None:
            raise QueryError(f"Invalid query string: no days: {value}")
        low, high = found.groups()
        return (lambda paper: low <= re.sub(r"\D", "", paper.published)[:12] <= high), rest
    if field not in _FIELDS or kind not in ("word", "phrase") or not words(value):
        raise QueryError(f"Invalid query string: {field}:{value}")
    if field == "cat":
        return (lambda paper: value in paper.categories), rest
    wanted = words(value)
    return (lambda paper: any(_has(text, wanted) for text in _texts(paper, field))), rest


def _texts(paper: Metadata, field: str) -> Sequence[str]:
    by_field = {
        "ti": (paper.title,),
        "au": paper.authors,
        "abs": (paper.abstract,),
        "co": (paper.comment or "",),
        "jr": (paper.journal_ref or "",),
        "rn": (),
    }
    return [text for texts in by_field.values() for text in texts] if field == "all" else by_field[field]


def _has(text: str, wanted: tuple[str, ...]) -> bool:
    own = words(text)
    return any(own[at : at + len(wanted)] == wanted for at in range(len(own) - len(wanted) + 1))


@cache
def words(text: str) -> tuple[str, ...]:
    """The stems of the words of a text."""
    return tuple(map(_stem, re.findall(r"[^\W_]+", text.casefold())))


def _stem(word: str) -> str:
    """A word without the usual endings, in the manner of Porter's first step."""
    for ending, left in (("sses", "ss"), ("ies", "y"), ("ss", "ss"), ("us", "us"), ("is", "is"), ("s", "")):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            word = word.removesuffix(ending) + left
            break
    for ending in ("ing", "ed"):
        if word.endswith(ending) and re.search("[aeiou]", word.removesuffix(ending)) and len(word) > len(ending) + 2:
            word = re.sub(r"([^aeioulsz])\1$", r"\1", word.removesuffix(ending))
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word
