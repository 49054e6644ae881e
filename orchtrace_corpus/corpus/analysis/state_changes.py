"""The counts of two states compared.

Each state is counted by its own vocabulary, so that a term or a field that only one of them has counts 0 in the other.
"""

from collections.abc import Iterable, Iterator, Sequence

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.attributes import Attribute, Attributes, exclusion_attributes, paper_attributes
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, count, cross
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import Pool, Record
from orchtrace_corpus.corpus.model.taxonomy import Facet


class Shift(NamedTuple):
    """A count that is another now.

    Attributes:
        field: The field, or the two fields of a cell.
        value: The value, or the two values.
    """

    field: tuple[str, ...]
    value: tuple[str, ...]
    before: int
    after: int

    @property
    def turn(self) -> str:
        """What became of a cell: it fills (was 0), empties (is 0), has one paper left, or one no longer."""
        if self.before == self.after:
            return ""
        if not self.before or not self.after:
            return "empties" if self.before else "fills"
        return "one left" if self.after == 1 else "more than one now" if self.before == 1 else ""


def paper_shifts(before: Pool, after: Pool) -> Iterator[Shift]:
    """The counts of papers that shifted, by the fields of the taxonomy; of levels, term by term."""
    attributes = paper_attributes(before.taxonomy), paper_attributes(after.taxonomy)
    for name in _counted_names((*after.taxonomy.papers, *before.taxonomy.papers)):
        yield from _shifts((before.papers, after.papers), attributes, name)


def exclusion_shifts(before: Pool, after: Pool) -> Iterator[Shift]:
    """The counts of exclusions that shifted."""
    attributes = exclusion_attributes(before.taxonomy), exclusion_attributes(after.taxonomy)
    for name in _counted_names((*after.taxonomy.exclusions, *before.taxonomy.exclusions)):
        yield from _shifts((before.exclusions, after.exclusions), attributes, name)


def cell_shifts(before: Pool, after: Pool) -> Iterator[Shift]:
    """The cells that turn: of axes that are crossed (else of the first pair that is), and of terms with levels.

    As in `statistics.coverage`, NA and absence are no cells.
    """
    attributes = paper_attributes(before.taxonomy), paper_attributes(after.taxonomy)
    crossed = dict.fromkeys((*after.taxonomy.crosstabs, *before.taxonomy.crosstabs))
    axes = {facet.field for pool in (before, after) for facet in pool.taxonomy.axes}
    for rows, columns in [pair for pair in crossed if axes.issuperset(pair)] or list(crossed)[:1]:
        old, new = (
            cross(pool.papers, own[rows], own[columns]).cells if rows in own and columns in own else {}
            for pool, own in zip((before, after), attributes, strict=True)
        )
        for row in _values(rows, attributes):
            for column in _values(columns, attributes):
                cell = row, column
                shift = Shift((rows, columns), cell, old.get(cell, 0), new.get(cell, 0))
                if shift.turn and {ABSENT, NOT_APPLICABLE}.isdisjoint(cell):
                    yield shift
    for name in _counted_names(facet for facet in (*after.taxonomy.papers, *before.taxonomy.papers) if facet.levels):
        yield from (shift for shift in _shifts((before.papers, after.papers), attributes, name) if shift.turn)


def _counted_names(facets: Iterable[Facet]) -> list[str]:
    """What is counted by: the facets by name, and in the place of one with levels its terms; each once."""
    names = (
        name for facet in facets for name in ([term.id for term in facet.terms] if facet.levels else [facet.field])
    )
    return list(dict.fromkeys(names))


def _shifts(
    records: tuple[Sequence[Record], Sequence[Record]], attributes: tuple[Attributes, Attributes], name: str
) -> Iterator[Shift]:
    old, new = (
        count(one, own[name]).counts if name in own else {} for one, own in zip(records, attributes, strict=True)
    )
    for value in _values(name, attributes):
        if old.get(value, 0) != new.get(value, 0):
            yield Shift((name,), (value,), old.get(value, 0), new.get(value, 0))


def _values(name: str, attributes: tuple[Attributes, Attributes]) -> list[str]:
    """The values that a field can have in either state, those of the later one first."""
    known: list[Attribute] = [own[name] for own in reversed(attributes) if name in own]
    return list(dict.fromkeys(value for attribute in known for value in attribute.allowed))
