"""Metadata of a paper, as every source gives and every comparison takes it."""

import re

from orchtrace_corpus.base.named_tuples import NamedTuple


class Metadata(NamedTuple):
    """One version of a paper, as arXiv describes it.

    Attributes:
        arxiv_id: The id in its normal form, without version.
        version: The version described, from 1 on.
        title: On one line, blanks collapsed; Unicode and TeX as arXiv gives them.
        authors: In arXiv's order, each as `Given Family`.
        abstract: On one line.
        published: When version 1 was submitted, as `YYYY-MM-DDTHH:MM:SSZ`.
        updated: When this version was submitted, in the same form.
        primary_category: The category that the paper is listed under first, such as `cs.MA`.
        categories: All of arXiv's own categories, the primary one included, in arXiv's order.
        comment: The authors' comment on this version.
        journal_ref: Where the paper appeared, in the authors' words.
        doi: The DOI of the published paper, in lower case; never arXiv's own.
    """

    arxiv_id: str
    version: int
    title: str
    authors: tuple[str, ...]
    abstract: str
    published: str
    updated: str
    primary_category: str
    categories: tuple[str, ...]
    comment: str | None = None
    journal_ref: str | None = None
    doi: str | None = None


_PAPER = r"(?:paper|article|submission|manuscript|work|preprint|e-?print|report|document|draft)\b(?!['\u2019]s)"
_GONE = r"(?:withdrawn|retracted)"
# Withdrawn from a venue, or by mistake: the paper itself is still there.
_STAYS = r"(?!\s+(?:from\s+(?!arxiv)|by\s+(?:mistake|accident|error)|in\s+error|erroneously))"
_NOT_NOW = r"(?!\s+(?:previously|once|not|never)\b)"
_OBJECT = rf"(?:this|our|my)\s+(?:\w+\s+)?{_PAPER}{_STAYS}"

_PASSIVE = rf"(?:has\s+been|is(?:\s+being)?|was|had\s+to\s+be){_NOT_NOW}(?:\s+\w+)?\s+{_GONE}\b{_STAYS}"
_WANTED = r"(?:decided|chose|chosen|wish|want|would\s+like|like|request(?:ed)?|have|had|need(?:ed)?|forced)\s+to"
_NO_OBJECT = r"(?=\s*(?:$|[.,;:!)]|(?:due|because|until|and|for|as|since|it)\b|from\s+arxiv))"
_REASON = r"(?:by|due|because|for|from|as|in\s+favou?r|pending|until|at|on)\b"

_IN_BOTH = (
    rf"\b(?:this|our)\s+(?:arxiv\s+|entire\s+)?{_PAPER}\s+{_PASSIVE}",
    r"\badministratively\s+(?:withdrawn|removed)\b",
    rf"\bwithdraw(?:ing|s)?\s+{_OBJECT}",
    rf"\b{_WANTED}\s+withdraw\b{_NO_OBJECT}",
)
_IN_COMMENT = (
    rf"\bthe\s+{_PAPER}\s+{_PASSIVE}",
    rf"\bwithdraw(?:ing|s)?\s+the\s+{_PAPER}{_STAYS}",
    rf"^\W*(?:{_PAPER}\s+)?{_GONE}\b{_STAYS}(?=\s*(?:$|[.,;:!()\u2013\u2014-]|{_REASON}))",
    rf"(?<!\bversion \d )(?<!\bv\d )(?<!\bversion )\b(?:{_GONE}|removed)\s+by\s+(?!mistake|accident|error)",
    rf"\bwithdrawal\s+(?:of|for)\s+(?:this|the|our)\s+(?:\w+\s+)?{_PAPER}",
    r"\b(?:request(?:s|ed|ing)?|asked\s+for)\s+(?:a\s+|the\s+)?withdrawal\b(?!\s+from\s+(?!arxiv))",
)


def suspected_withdrawal(metadata: Metadata) -> str:
    """The words that say that this version withdraws the paper; empty where nothing does.

    The comment is the authors' and the administrators' place for it. In the abstract only phrases
    that speak of this very paper count, since abstracts are about anything.
    """
    for text, patterns in ((metadata.comment or "", (*_IN_BOTH, *_IN_COMMENT)), (metadata.abstract, _IN_BOTH)):
        if re.search("withdr[ae]w|retract|remove", text, re.IGNORECASE):
            for pattern in patterns:
                match = re.search(pattern, text, re.IGNORECASE)
                if match is not None:
                    *_, before = re.split(r"[.;!] ", text[: match.start()])
                    behind, period, _ = text[match.start() :].partition(". ")
                    return (before + behind + period).strip()
    return ""
