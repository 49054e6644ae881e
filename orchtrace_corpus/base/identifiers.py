"""Identifiers of papers: arXiv, DOI, OpenReview and ACL Anthology, in all usual spellings.

References: arXiv's identifier scheme (https://info.arxiv.org/help/arxiv_identifier.html); the DOI Handbook, section 2.2
(DOIs are case-insensitive); the ACL Anthology's formats of ids, one until 2020 and one since.
"""

import re
from enum import StrEnum
from functools import lru_cache

from orchtrace_corpus.base.named_tuples import NamedTuple


class IdentifierKind(StrEnum):
    """The registries of identifiers. Each value is the name of the field that has the id in a record."""

    ARXIV = "arxiv_id"
    DOI = "doi"
    OPENREVIEW = "openreview_id"
    ACL = "acl_id"


class Identifier(NamedTuple):
    """An identifier in its normal form: without a version, a prefix or a URL; a DOI in lower case."""

    kind: IdentifierKind
    value: str


# `[0-9]` instead of `\d`, because ids have only ASCII digits.
_MONTH = "[0-9]{2}(?:0[1-9]|1[0-2])"
_ARXIV_FORM = rf"{_MONTH}\.[0-9]{{4,5}}|[a-z]+(?:-[a-z]+)*(?:\.[A-Z]{{2}})?/{_MONTH}[0-9]{{3}}"
_DOI_FORM = r"10\.[0-9]{4,9}/\S+"
_OPENREVIEW_FORM = r"[A-Za-z0-9_-]{6,20}"
_ACL_FORM = r"[0-9]{4}\.[a-z0-9]+-[a-z0-9_]+\.[0-9]+|[A-Z][0-9]{2}-[0-9]{4}"

# The normal form of each kind. Patterns are texts: `re` compiles each on first use, and most runs use few of them.
_NORMAL_FORMS: dict[IdentifierKind, str] = {
    IdentifierKind.ARXIV: _ARXIV_FORM,
    IdentifierKind.DOI: _DOI_FORM,
    IdentifierKind.OPENREVIEW: _OPENREVIEW_FORM,
    IdentifierKind.ACL: _ACL_FORM,
}

# All spellings of each kind: URLs first, then ids with or without a prefix. The order of kinds and patterns matters:
# the first match counts.
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
"""The address of an id's page, without the id at the end."""

_USUAL_SPELLINGS = (
    (IdentifierKind.ARXIV, "https://arxiv.org/abs/", ""),
    (IdentifierKind.DOI, "https://doi.org/", ""),
    (IdentifierKind.OPENREVIEW, "https://openreview.net/forum?id=", ""),
    (IdentifierKind.ACL, "https://aclanthology.org/", "/"),
    (IdentifierKind.ARXIV, "https://arxiv.org/html/", ""),
    (IdentifierKind.ARXIV, "http://arxiv.org/abs/", ""),
    (IdentifierKind.ARXIV, "arXiv:", ""),
    (IdentifierKind.OPENREVIEW, "OpenReview:", ""),
    (IdentifierKind.ACL, "ACL:", ""),
)
"""The usual texts before and after an id. Ids between them are recognised without compiling a pattern."""


def recognise(text: str) -> Identifier | None:
    """Return the identifier that a text is: a bare id, a prefixed id or a URL; None if it is none of them.

    A version (`v3`) is dropped, because it names a revision of the same paper. An arXiv DOI (`10.48550/arXiv.…`) gives
    an arXiv id. A bare word is not recognised as an OpenReview id, because any word could be one.
    """
    candidate = text.strip()
    for kind, before, after in _USUAL_SPELLINGS:
        if candidate.startswith(before) and candidate.endswith(after):
            value = candidate[len(before) : len(candidate) - len(after)]
            if kind is IdentifierKind.DOI:
                value = value.lower()
            elif kind is IdentifierKind.ARXIV:
                without_version, _, version = value.rpartition("v")
                if version.isascii() and version.isdigit():
                    value = without_version
            if "%" not in value and is_normal(kind, value):
                return Identifier(kind, value)
    if set(candidate).isdisjoint("0123456789") and "openreview" not in candidate.lower():
        return None  # only an OpenReview id can have no digit, and its URL or prefix names OpenReview
    for kind, patterns in _SPELLINGS.items():
        for pattern in patterns:
            match = re.fullmatch(pattern, candidate)
            if match is None:
                continue
            value = match["id"]
            if kind is IdentifierKind.DOI:
                if "%" in value:
                    from urllib.parse import unquote  # the import takes as long as checking the ids of a corpus

                    value = unquote(value)
                value = value.lower()
            return Identifier(kind, value)
    return None


@lru_cache(maxsize=4096)
def recognise_url(url: str) -> Identifier | None:
    """Return the identifier that a URL is, as `recognise` does; faster than `recognise` for other URLs."""
    lowered = url.lower()
    if "arxiv.org/" in lowered or "doi.org/" in lowered or "openreview.net/" in lowered or "aclanthology" in lowered:
        return recognise(url)
    return None


def arxiv_year(arxiv_id: str) -> int:
    """Return the year of an arXiv id in its normal form. Its first four digits are year and month (YYMM)."""
    _, _, number = arxiv_id.rpartition("/")
    year_of_century = int(number[:2])
    has_old_form = "/" in arxiv_id  # such as `astro-ph/0601001`; the first ids are of 1991
    if has_old_form and year_of_century >= 91:
        return 1900 + year_of_century
    return 2000 + year_of_century


def is_normal(kind: IdentifierKind, value: str) -> bool:
    """Return True if the value is an id of a kind in its normal form."""
    if kind is IdentifierKind.DOI and (value.startswith("10.48550/arxiv.") or value != value.lower()):
        return False  # the normal form of an arXiv DOI is the arXiv id
    if kind is IdentifierKind.ARXIV and value[4:5] == "." and value[:4].isdigit() and value.isascii():
        # Nearly all ids have this form, YYMM.NNNNN; they need no pattern.
        month = value[2:4]
        number = value[5:]
        return "01" <= month <= "12" and number.isdigit() and len(number) in (4, 5)
    return re.fullmatch(_NORMAL_FORMS[kind], value) is not None
