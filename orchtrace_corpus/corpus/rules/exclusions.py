"""Exclusions as a log: ids that increase, promotions that lead to a paper."""

from collections.abc import Iterator

from orchtrace_corpus.base.findings import Finding, quote
from orchtrace_corpus.corpus.model.records import Loaded


def check_order(loaded: Loaded) -> Iterator[Finding]:
    """An id that is not above all before it: new records are added at the end, under the next id."""
    highest, holder = 0, ""
    for index, exclusion in enumerate(loaded.exclusions):
        number = int(exclusion.id[1:] or 0)
        if number > highest:
            highest, holder = number, exclusion.id
        elif exclusion.id and exclusion.id != holder:
            message = f"exclusion id {quote(exclusion.id)} stands behind {quote(holder)}; put records in order of ids"
            yield Finding("F118", message, loaded.exclusion_places.locate(index, "id"), exclusion.id)


def check_promotions(loaded: Loaded) -> Iterator[Finding]:
    """A promotion to a paper that is not there."""
    keys = {paper.key for paper in loaded.papers}
    for index, exclusion in enumerate(loaded.exclusions):
        if exclusion.promoted_to and exclusion.promoted_to not in keys:
            message = f"there is no paper {quote(exclusion.promoted_to)}; name the paper that the record became"
            yield Finding("F117", message, loaded.exclusion_places.locate(index, "promoted_to"), exclusion.id)
