"""What kind of place a venue is, told from its words: bibliographies ask, and a record does not say."""

import re
from enum import StrEnum


class VenueKind(StrEnum):
    """What kind of publication appears at a venue."""

    JOURNAL = "journal"
    CONFERENCE = "conference"
    PREPRINT = "preprint"
    OTHER = "other"


_WORDS = {
    VenueKind.PREPRINT: "arxiv biorxiv corr medrxiv openreview preprint preprints ssrn submission submitted",
    VenueKind.OTHER: "blog book dissertation docs documentation manual page report software thesis web website",
    VenueKind.JOURNAL: "annals bulletin communications jair jmlr journal letters magazine pnas quarterly review tacl "
    "tmlr transactions",
    VenueKind.CONFERENCE: "colloquium conference findings meeting proceedings processing symposium workshop",
}


def venue_kind(venue: str) -> VenueKind:
    """The kind of a venue such as `ICML 2025`, `Nature 2025`, `arXiv` or `Tech Blog`.

    A word that says what it is decides; else an acronym is a conference, and another name a journal.
    """
    words = re.findall(r"[^\W\d_]+", venue)
    folded = {word.casefold() for word in words}
    for kind, names in _WORDS.items():
        if not folded.isdisjoint(names.split()):
            return kind
    has_acronym = any(sum(letter.isupper() for letter in word) > 1 for word in words)
    return VenueKind.CONFERENCE if has_acronym else VenueKind.JOURNAL
