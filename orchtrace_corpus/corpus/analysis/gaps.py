"""Describes what no paper has: a pair of values of two axes, or one value, such as the level `explicit` of `stop`.

`statistics.coverage` finds the empty cells of two axes. Here each cell gets a description of its own: papers near it,
candidates and disputes that could fill it, and claims about it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product

from orchtrace_corpus.base.findings import Severity
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.attributes import Attribute
from orchtrace_corpus.corpus.analysis.claims import Verdict
from orchtrace_corpus.corpus.analysis.statistics import MISSING, candidates_by_cell, count, coverage, first_in_turn
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.claim_file import Over
from orchtrace_corpus.corpus.model.disputes import Dispute, State
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Condition, Kind, Taxonomy


class Wanted(NamedTuple):
    """A value of a field that a paper would need to fill a cell."""

    attribute: Attribute
    value: str


class EmptyCell(NamedTuple):
    """A value that no paper has, or two that no paper has together.

    Attributes:
        wanted: The value, or the two values.
        why: The reason why the cell cannot arise; empty if it can.
        expected: The number of papers with both values if the fields were independent; 0.0 if unknown.
        nearest: The keys of papers near the cell.
        candidates: The keys of candidates with these values, as `statistics.candidates_by_cell` returns them.
        disputes: The open disputes that could fill the cell: a paper has these values in one of their readings.
    """

    wanted: tuple[Wanted, ...]
    why: str = ""
    expected: float = 0.0
    nearest: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    disputes: tuple[Dispute, ...] = ()

    @property
    def filters(self) -> tuple[tuple[str, str], ...]:
        """The fields and values of the cell, as pairs."""
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
    """Yield the cells of two axes that have no papers; the `impossible` cells come last, each with its reason."""
    cells = coverage(papers, rows, columns, sparse_limit=0, impossible=impossible)
    gaps = {(gap.row, gap.column): gap for gap in cells.gaps}
    candidate_keys = candidates_by_cell(candidates, rows, columns)
    disputes_by_cell = _disputes_by_cell(papers, disputes, rows, columns)
    for pair in cells.empty:
        yield EmptyCell(
            (Wanted(rows, pair[0]), Wanted(columns, pair[1])),
            expected=gaps[pair].expected,
            nearest=gaps[pair].nearest,
            candidates=candidate_keys.get(pair, ()),
            disputes=tuple(disputes_by_cell.get(pair, ())),
        )
    for pair in cells.impossible:
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

    The papers near a value have the closest values in the vocabulary's order, and in turn the same value of one of the
    attributes in `others`.
    """
    counts = count(papers, attribute).counts
    missing = [value for value in attribute.allowed if not counts[value] and value not in MISSING]
    if not missing:
        return
    # A value is looked up as the cell of the field crossed with itself.
    candidate_keys = candidates_by_cell(candidates, attribute, attribute)
    disputes_by_cell = _disputes_by_cell(papers, disputes, attribute, attribute)
    newest = sorted(papers, key=lambda paper: -paper.year)
    ranks = {value: rank for rank, value in enumerate(attribute.allowed) if value not in MISSING}
    keys_by_value = {value: [paper.key for paper in newest if value in attribute.values(paper)] for value in ranks}
    for value in missing:
        closest = sorted(ranks, key=lambda other: abs(ranks[other] - ranks[value]))
        with_close_value = (key for other in closest for key in keys_by_value[other])
        with_same_value = (paper.key for paper in newest if any(value in other.values(paper) for other in others))
        yield EmptyCell(
            (Wanted(attribute, value),),
            nearest=first_in_turn(with_close_value, with_same_value),
            candidates=candidate_keys.get((value, value), ()),
            disputes=tuple(disputes_by_cell.get((value, value), ())),
        )


def _disputes_by_cell(
    papers: Iterable[Paper], disputes: Iterable[Dispute], rows: Attribute, columns: Attribute
) -> dict[tuple[str, str], list[Dispute]]:
    """Return the open disputes by the pairs of values that a paper has in one of their readings."""
    disputes_by_paper: dict[str, list[Dispute]] = {}
    for dispute in disputes:
        if dispute.state is State.OPEN and dispute.tag in (rows.name, columns.name):
            disputes_by_paper.setdefault(dispute.record, []).append(dispute)
    disputes_by_cell: dict[tuple[str, str], list[Dispute]] = {}
    for paper in papers:
        paper_disputes = disputes_by_paper.get(paper.key)
        if paper_disputes is None:
            continue
        # For each axis, the values that the paper could have, with the dispute that would give it the value.
        possible_values: list[dict[str, list[Dispute]]] = []
        for axis in (rows, columns):
            possible: dict[str, list[Dispute]] = {value: [] for value in axis.values(paper)}
            for dispute in paper_disputes:
                if dispute.tag == axis.name:
                    readings = set(dispute.alternatives)
                    if dispute.agreed:
                        readings.add(dispute.agreed.value)
                    for value in readings - possible.keys():
                        possible[value] = [dispute]
            possible_values.append(possible)
        for row, column in product(*possible_values):
            deciding = dict.fromkeys((*possible_values[0][row], *possible_values[1][column]))
            disputes_by_cell.setdefault((row, column), []).extend(deciding)
    return disputes_by_cell


def demands(cell: EmptyCell, taxonomy: Taxonomy) -> list[str]:
    """Return the messages of the rules that a paper with these values must meet; nothing if the cell cannot arise."""
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
    """Return the verdicts on the claims about papers that filter by nothing but values of the cell."""
    cell_values = set(cell.filters)
    about = (verdict for verdict in verdicts if verdict.claim.over == (Over.PAPERS,) and verdict.claim.where)
    return [verdict for verdict in about if _are_met(verdict.claim.where, cell_values)]


def _are_met(conditions: Iterable[Condition], pairs: Collection[tuple[str, str]]) -> bool:
    """Return True if the given fields and values meet every condition."""
    return all(any((condition.field, value) in pairs for value in condition.alternatives) for condition in conditions)
