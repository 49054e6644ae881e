"""Describes values and combinations of values that no paper has: papers near them, candidates, disputes and claims.

`statistics.coverage` finds the empty cells of two axes; here each is described by itself, and so is a single value that
no paper has, such as the level `explicit` of `stop`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product

from orchtrace_corpus.base.findings import Severity
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.attributes import Attribute
from orchtrace_corpus.corpus.analysis.claims import Verdict
from orchtrace_corpus.corpus.analysis.statistics import NO_CELLS, count, coverage, fills, first_in_turn
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.claim_file import Over
from orchtrace_corpus.corpus.model.disputes import Dispute, State
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Condition, Kind, Taxonomy


class Wanted(NamedTuple):
    """A value of a field that a paper would need."""

    attribute: Attribute
    value: str


class EmptyCell(NamedTuple):
    """A value that no paper has, or two that no paper has together.

    Attributes:
        why: The reason why it cannot arise; empty if it can.
        expected: The number of papers with both values if the fields were independent; 0.0 if unknown.
        nearest: The keys of papers near it.
        candidates: The keys of candidates with these values, as `statistics.fills` returns them.
        disputes: The open disputes that have a reading in which a paper has these values.
    """

    wanted: tuple[Wanted, ...]
    why: str = ""
    expected: float = 0.0
    nearest: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    disputes: tuple[Dispute, ...] = ()

    @property
    def filters(self) -> tuple[tuple[str, str], ...]:
        """The filters that papers with these values pass, each a field and a value."""
        return tuple((wanted.attribute.name, wanted.value) for wanted in self.wanted)


def empty_cells(
    papers: Sequence[Paper],
    rows: Attribute,
    columns: Attribute,
    impossible: Mapping[tuple[str, str], str],
    *,
    disputes: Sequence[Dispute] = (),
    candidates: Iterable[Candidate] = (),
) -> Iterator[EmptyCell]:
    """Yield the cells of two axes without papers; the `impossible` ones come last, each with its reason."""
    covered = coverage(papers, rows, columns, sparse_limit=0, impossible=impossible)
    gaps = {(gap.row, gap.column): gap for gap in covered.gaps}
    filling = fills(candidates, rows, columns)
    moving = _moves(papers, disputes, rows, columns)
    for pair in covered.empty:
        wanted, gap = (Wanted(rows, pair[0]), Wanted(columns, pair[1])), gaps[pair]
        yield EmptyCell(wanted, "", gap.expected, gap.nearest, filling.get(pair, ()), tuple(moving.get(pair, ())))
    for pair in covered.impossible:
        yield EmptyCell((Wanted(rows, pair[0]), Wanted(columns, pair[1])), impossible[pair])


def empty_values(
    papers: Sequence[Paper],
    attribute: Attribute,
    others: Sequence[Attribute] = (),
    *,
    disputes: Sequence[Dispute] = (),
    candidates: Iterable[Candidate] = (),
) -> Iterator[EmptyCell]:
    """Yield the values of a field that no paper has.

    Papers near them are those with the closest values in the order of the field's vocabulary, and in turn those with
    the same value of one of the `others`.
    """
    counts = count(papers, attribute).counts
    missing = [value for value in attribute.allowed if not counts[value] and value not in NO_CELLS]
    if not missing:
        return
    filling = fills(candidates, attribute, attribute)
    moving = _moves(papers, disputes, attribute, attribute)
    newest = sorted(papers, key=lambda paper: -paper.year)
    places = {value: place for place, value in enumerate(attribute.allowed) if value not in NO_CELLS}
    holding = {value: [paper.key for paper in newest if value in attribute.values(paper)] for value in places}
    for value in missing:
        closest = sorted(places, key=lambda other: abs(places[other] - places[value]))
        keys = (key for other in closest for key in holding[other])
        alike = (paper.key for paper in newest if any(value in other.values(paper) for other in others))
        nearest, pair = first_in_turn(keys, alike), (value, value)
        moved = tuple(moving.get(pair, ()))
        yield EmptyCell((Wanted(attribute, value),), "", 0.0, nearest, filling.get(pair, ()), moved)


def _moves(
    papers: Iterable[Paper], disputes: Iterable[Dispute], rows: Attribute, columns: Attribute
) -> dict[tuple[str, str], list[Dispute]]:
    """Return the open disputes by the pairs of values that a paper has in one of their readings."""
    by_paper: dict[str, list[Dispute]] = {}
    for dispute in disputes:
        if dispute.state is State.OPEN and dispute.tag in (rows.name, columns.name):
            by_paper.setdefault(dispute.record, []).append(dispute)
    moving: dict[tuple[str, str], list[Dispute]] = {}
    for paper in papers:
        own_disputes = by_paper.get(paper.key)
        if own_disputes is None:
            continue
        values: list[dict[str, list[Dispute]]] = []
        for axis in (rows, columns):
            possible: dict[str, list[Dispute]] = {value: [] for value in axis.values(paper)}
            for dispute in own_disputes:
                if dispute.tag == axis.name:
                    agreed = (dispute.agreed.value,) if dispute.agreed else ()
                    for value in {*dispute.alternatives, *agreed} - possible.keys():
                        possible[value] = [dispute]
            values.append(possible)
        for row, column in product(*values):
            deciding = dict.fromkeys((*values[0][row], *values[1][column]))
            moving.setdefault((row, column), []).extend(deciding)
    return moving


def demands(cell: EmptyCell, taxonomy: Taxonomy) -> list[str]:
    """Return the messages of the rules that apply to papers with these values; nothing if a rule forbids the cell."""
    if cell.why:
        return []
    cell_values = set(cell.filters)
    for facet in taxonomy.papers:
        if facet.kind is Kind.LEVELS:  # a rule can name the facet for any of its terms
            terms = {term.id for term in facet.terms}
            cell_values |= {(facet.field, value) for name, value in cell.filters if name in terms}
    rules = (rule for rule in taxonomy.rules if rule.severity is Severity.ERROR and rule.when)
    return [rule.message for rule in rules if _are_met(rule.when, cell_values)]


def claims_about(cell: EmptyCell, verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts on the claims whose only filters are one of these values, or both."""
    cell_values = set(cell.filters)
    about = (verdict for verdict in verdicts if verdict.claim.over == (Over.PAPERS,) and verdict.claim.where)
    return [verdict for verdict in about if _are_met(verdict.claim.where, cell_values)]


def _are_met(conditions: Iterable[Condition], pairs: Collection[tuple[str, str]]) -> bool:
    """Return True if the given fields and values meet every condition."""
    return all(any((condition.field, value) in pairs for value in condition.alternatives) for condition in conditions)
