"""What reading of the disputed tags a report shows, and what differs by it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.corpus.model.records import ReadingName
from orchtrace_corpus.corpus.model.taxonomy import Noun

if TYPE_CHECKING:  # `stats` needs none of it
    from orchtrace_corpus.corpus.analysis.claim_readings import ReadingVerdict
    from orchtrace_corpus.corpus.model.disputes import Dispute


def contested_text(contested: int, agreed: int, total: int, noun: Noun) -> str:
    """Return how many of the records shown have a contested tag, and the other reading; empty without one."""
    has = "has" if contested == 1 else "have"
    other = f"; --reading sources changes {agreed} of them" if agreed else ""
    return f"{contested} of {noun.counted(total)} {has} a contested tag here{other}" if contested else ""


def disputed_text(contested: int, agreed: int, noun: Noun) -> str:
    """Return a note on the column of contested records, with their number over all claims; empty without one."""
    return (
        f"contested: {noun.many} of disputed tags, {contested} in all; --reading sources changes {agreed}"
        if agreed
        else ""
    )


def claim_notes(compared: "Mapping[str, ReadingVerdict]") -> tuple[str, ...]:
    """A title that names the reading of the sources, then each claim that falls by it; an empty title without one."""
    if not compared:
        return ("",)
    from orchtrace_corpus.corpus.render.statistics import SOURCES_TITLE  # only for who asks for that reading

    falling = {name: one for name, one in compared.items() if one.falls_by}
    number = f"{len(falling)} of {pluralize(len(compared), 'claim')} fall{'s' * (len(falling) == 1)} by it"
    named = (f"{name} falls by {'; '.join(map(agreed_text, one.falls_by))}" for name, one in falling.items())
    return (f"{SOURCES_TITLE}: {number}", *named)


def reading_word(compared: "ReadingVerdict") -> str:
    """Return the outcome of a claim by the reading of the sources; one that fails as published cannot fall by it."""
    return "falls" if compared.falls_by else "holds" if compared.published else "fails"


def agreed_text(dispute: "Dispute", *, sourced: bool = False) -> str:
    """A tag as the readers of the sources agree on it and as published; with the rule and the source, if asked for."""
    if dispute.agreed is None:
        raise ValueError(f"nothing is agreed on {dispute.id}")
    text = f"{dispute.record} {dispute.tag} {dispute.agreed.value}, not {dispute.stands}"
    return f"{text} (by {dispute.agreed.rule_text}; {dispute.agreed.source})" if sourced else text


def reading_data(compared: "ReadingVerdict") -> dict[str, Any]:
    """Return the outcome of a claim as published, and the tags by which it falls, for programs."""
    tags = [
        {"record": one.record, "tag": one.tag, ReadingName.PUBLISHED.value: one.stands, **one.agreed._asdict()}
        for one in compared.falls_by
        if one.agreed is not None
    ]
    return {"holds": compared.published, "falls_by": tags}
