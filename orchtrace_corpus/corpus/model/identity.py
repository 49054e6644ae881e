"""What makes two records one: the identifiers, the address and the title that they share, however spelled."""

import re
import unicodedata
from collections.abc import Iterator
from typing import TypeAlias

from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, recognise_url
from orchtrace_corpus.corpus.model.records import Paper

Path: TypeAlias = tuple[str | int, ...]
"""Where in a record a value stands, such as `("urls", 0)`."""

_KINDS = tuple((kind, kind.value) for kind in IdentifierKind)


def identities(paper: Paper) -> Iterator[tuple[Identifier, Path]]:
    """The paper's identifiers: those of its fields, and those that only a URL carries."""
    for kind, name in _KINDS:
        value = getattr(paper, name)
        if value is not None:
            yield Identifier(kind, value), (name,)
    for number, url in enumerate(paper.urls):
        found = recognise_url(url)
        if found is not None and getattr(paper, found.kind.value) is None:
            yield found, ("urls", number)


def address(url: str) -> str:
    """What two spellings of a URL have in common: no scheme, no `www.`, no final slash, the host in lower case."""
    host, slash, path = url.partition("://")[2].partition("/")
    return (host.lower().removeprefix("www.") + slash + path).rstrip("/")


def folded_title(title: str, *, between: str = "") -> str:
    """What two spellings of a title have in common: letters and digits, without case and accents.

    Args:
        title: The title.
        between: What stands between two words; nothing, so that `Long-Horizon` is `Longhorizon`.
    """
    if not title.isascii():
        title = "".join(c for c in unicodedata.normalize("NFKD", title) if not unicodedata.combining(c))
    return re.sub(r"[\W_]+", between, title.casefold())
