"""Identifiers of papers: arXiv, DOI, OpenReview and ACL Anthology, in all usual spellings.

References: arXiv's identifier scheme (https://info.arxiv.org/help/arxiv_identifier.html), the DOI Handbook, section 2.2
(DOIs are case-insensitive), the ACL Anthology's id formats before and after 2020.
"""

import re
from enum import StrEnum
from functools import lru_cache

from orchtrace_corpus.base.named_tuples import NamedTuple


class IdentifierKind(StrEnum):
    """The registries; the value is the field of a record that holds the id."""

    ARXIV = "arxiv_id"
    DOI = "doi"
    OPENREVIEW = "openreview_id"
    ACL = "acl_id"


class Identifier(NamedTuple):
    """An identifier in its normal form: no version, no URL, a DOI in lower case."""

    kind: IdentifierKind
    value: str


# Only ASCII digits: an id with others is in no registry. Blanks of any kind end a DOI.
_MONTH = "[0-9]{2}(?:0[1-9]|1[0-2])"
_ARXIV_FORM = rf"{_MONTH}\.[0-9]{{4,5}}|[a-z]+(?:-[a-z]+)*(?:\.[A-Z]{{2}})?/{_MONTH}[0-9]{{3}}"
_DOI_FORM = r"10\.[0-9]{4,9}/\S+"
_OPENREVIEW_FORM = r"[A-Za-z0-9_-]{6,20}"
_ACL_FORM = r"[0-9]{4}\.[a-z0-9]+-[a-z0-9_]+\.[0-9]+|[A-Z][0-9]{2}-[0-9]{4}"

# Patterns are texts: `re` compiles each on first use, and most runs use few of them.
_FORMS: dict[IdentifierKind, str] = {
    IdentifierKind.ARXIV: _ARXIV_FORM,
    IdentifierKind.DOI: _DOI_FORM,
    IdentifierKind.OPENREVIEW: _OPENREVIEW_FORM,
    IdentifierKind.ACL: _ACL_FORM,
}

_SPELLINGS: dict[IdentifierKind, tuple[str, ...]] = {
    IdentifierKind.ARXIV: (
        rf"(?:(?ai:https?://))?(?:[A-Za-z0-9-]+\.)*(?ai:arxiv\.org)/(?:abs|pdf|html)/(?P<id>{_ARXIV_FORM})(?:v[0-9]+)?(?:\.pdf)?/?(?:[?#].*)?",
        rf"(?:(?ai:(?:https?://)?(?:dx\.)?doi\.org/)|(?ai:doi:)\s*)?10\.48550/(?ai:arxiv)\.(?P<id>{_ARXIV_FORM})",
        rf"(?:(?ai:arxiv):\s*)?(?P<id>{_ARXIV_FORM})(?:v[0-9]+)?",
    ),
    IdentifierKind.DOI: (rf"(?:(?ai:(?:https?://)?(?:dx\.)?doi\.org/)|(?ai:doi:)\s*)?(?P<id>{_DOI_FORM})",),
    IdentifierKind.OPENREVIEW: (
        rf"(?ai:(?:https?://)?(?:www\.)?openreview\.net)/(?:forum|pdf)\?(?:.*&)?id=(?P<id>{_OPENREVIEW_FORM})(?:[&#].*)?",
        rf"(?ai:openreview):\s*(?P<id>{_OPENREVIEW_FORM})",
    ),
    IdentifierKind.ACL: (
        rf"(?ai:(?:https?://)?(?:www\.)?aclanthology\.org)/(?P<id>{_ACL_FORM})(?:\.pdf|\.bib)?/?(?:[?#].*)?",
        rf"(?:(?ai:acl):\s*)?(?P<id>{_ACL_FORM})",
    ),
}


ADDRESSES = {
    IdentifierKind.ARXIV: "https://arxiv.org/abs/",
    IdentifierKind.DOI: "https://doi.org/",
    IdentifierKind.OPENREVIEW: "https://openreview.net/forum?id=",
    IdentifierKind.ACL: "https://aclanthology.org/",
}
"""The beginning of the address of an id's page."""

_USUAL = (
    *((kind, before, "/" if kind is IdentifierKind.ACL else "") for kind, before in ADDRESSES.items()),
    *((IdentifierKind.ARXIV, before, "") for before in ("https://arxiv.org/html/", "http://arxiv.org/abs/", "arXiv:")),
    (IdentifierKind.OPENREVIEW, "OpenReview:", ""),
    (IdentifierKind.ACL, "ACL:", ""),
)
"""The usual text before and after ids. Ids in this form are recognised without compiling a pattern."""


def recognise(text: str) -> Identifier | None:
    """Return the identifier in a bare id, a prefixed id or a URL; None if there is none.

    A version (`v3`) is dropped, because it names a revision of the same paper. An arXiv DOI (`10.48550/arXiv.…`) gives
    an arXiv id. A bare word is not recognised as an OpenReview id, because any word could be one.
    """
    candidate = text.strip()
    for kind, before, after in _USUAL:
        if candidate.startswith(before) and candidate.endswith(after):
            value = candidate[len(before) : len(candidate) - len(after)]
            value = value.lower() if kind is IdentifierKind.DOI else value
            bare, _, version = value.rpartition("v")
            if kind is IdentifierKind.ARXIV and version.isascii() and version.isdigit():
                value = bare
            if "%" not in value and is_normal(kind, value):
                return Identifier(kind, value)
    if set(candidate).isdisjoint("0123456789") and "openreview" not in candidate.lower():
        return None  # only an OpenReview id can have no digit, and it needs its name in front
    for kind, patterns in _SPELLINGS.items():
        match = next(filter(None, (re.fullmatch(pattern, candidate) for pattern in patterns)), None)
        if match is not None:
            value = match["id"]
            if kind is IdentifierKind.DOI and "%" in value:
                from urllib.parse import unquote  # the import takes as long as checking the ids of a corpus

                value = unquote(value)
            return Identifier(kind, value.lower() if kind is IdentifierKind.DOI else value)
    return None


@lru_cache(maxsize=4096)
def recognise_url(url: str) -> Identifier | None:
    """Return the identifier in a URL, as `recognise` does; faster if there is none."""
    lowered = url.lower()
    if "arxiv.org/" in lowered or "doi.org/" in lowered or "openreview.net/" in lowered or "aclanthology" in lowered:
        return recognise(url)
    return None


def arxiv_year(arxiv_id: str) -> int:
    """Return the year of an arXiv id in its normal form, from its first digits (YYMM).

    Ids of the old form (`astro-ph/0601001`) begin in 1991.
    """
    digits = int(arxiv_id.rpartition("/")[2][:2])
    return 1900 + digits if "/" in arxiv_id and digits >= 91 else 2000 + digits


def is_normal(kind: IdentifierKind, value: str) -> bool:
    """Return True if the value is an id of a kind in its normal form."""
    if kind is IdentifierKind.DOI and (value.startswith("10.48550/arxiv.") or value != value.lower()):
        return False  # a paper on arXiv has its arXiv id instead
    month, point, digits = value[:4], value[4:5], value[5:]
    if kind is IdentifierKind.ARXIV and point == "." and month.isdigit() and value.isascii():  # nearly all ids
        return "01" <= month[2:] <= "12" and digits.isdigit() and len(digits) in (4, 5)
    return re.fullmatch(_FORMS[kind], value) is not None
