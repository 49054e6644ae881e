"""Turns disagreements between second readers and the corpus into disputes on record."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from orchtrace_corpus.corpus.analysis.coding import Sheet
from orchtrace_corpus.corpus.model.disputes import Dispute, State, disputable
from orchtrace_corpus.corpus.model.record_fields import Value
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy


class Recorded(NamedTuple):
    """What there is to write.

    Attributes:
        added: New disputes, as their fields.
        extended: New readings of disputes that are on record, by the index of each.
        left_out: Tags in disagreement that a dispute cannot be about: those of several terms.
    """

    added: list[dict[str, Value]]
    extended: dict[int, dict[str, Value]]
    left_out: list[tuple[str, str]]


def propose_disputes(
    corpus: Sheet,
    sheets: Sequence[Sheet],
    merges: Mapping[str, Sequence[str]],
    known: Sequence[Dispute],
    taxonomy: Taxonomy,
) -> Recorded:
    """The disputes that follow from sheets that do not read what the corpus has.

    A reading on a coarser scale, such as `learned`, stands for any of its terms, and is no disagreement with
    one of them. Readings that are on record already are not added again; a new one opens a settled dispute.

    Args:
        corpus: The corpus's own tags.
        sheets: What the readers coded.
        merges: The terms that each name of a coarser scale stands for.
        known: The disputes on record.
        taxonomy: The vocabulary.
    """
    tags = disputable(taxonomy)
    places = {(dispute.record, dispute.tag): index for index, dispute in enumerate(known)}
    found = Recorded([], {}, [])
    for key, own in corpus.codes.items():
        for column, stands in own.items():
            readings = _readings(key, column, stands, sheets, merges)
            if not readings:
                continue
            if column not in tags:
                found.left_out.append((key, column))
            elif (key, column) in places:
                index = places[key, column]
                on_record = {",".join(reading.values): reading.by for reading in known[index].readings}
                if new := {values: by for values, by in readings.items() if values not in on_record}:
                    reopened = {"state": State.OPEN.value} if known[index].state is State.SETTLED else {}
                    found.extended[index] = {"readings": {**on_record, **new}, **reopened}
            else:
                agreeing = [sheet.name for sheet in sheets if sheet.codes.get(key, {}).get(column) == stands]
                found.added.append(
                    {
                        "record": key,
                        "tag": column,
                        "stands": stands,
                        "readings": {stands: " and ".join(("the corpus", *agreeing)), **readings},
                        "state": State.OPEN.value,
                        "why": "Not decided yet; the published reading is kept.",
                        "source": " and ".join(sheet.name for sheet in sheets),
                    }
                )
    return found


def _readings(
    key: str, column: str, stands: str, sheets: Sequence[Sheet], merges: Mapping[str, Sequence[str]]
) -> dict[str, Value]:
    """Who reads what instead of the value that stands, by the values."""
    found: dict[str, list[str]] = {}
    for sheet in sheets:
        code = sheet.codes.get(key, {}).get(column)
        if code is not None and stands not in (code, *merges.get(code, ())):
            found.setdefault(",".join(merges.get(code, (code,))), []).append(sheet.name)
    return {values: " and ".join(names) for values, names in found.items()}
