"""What bibliographies ask beyond a record's fields: the kind of its venue, and its tags as keywords."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum

from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy


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


def keywords(paper: Paper, taxonomy: Taxonomy) -> Iterator[str]:
    """The tags as filters are written: `credit_unit=agent`, `stop=explicit`; those that are NA are left out."""
    for facet in taxonomy.papers:
        tag = paper.tags.get(facet.field, ())
        if isinstance(tag, Mapping):
            yield from (f"{term}={level}" for term, level in tag.items())
        else:
            terms = (tag,) if isinstance(tag, str) else tag
            yield from (f"{facet.field}={term}" for term in terms if term != NOT_APPLICABLE)
