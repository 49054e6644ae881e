"""The parts of a comparison of two states: which record is which, and what changed in vocabulary and counts.

Records are matched by name, by identifier or address, and by title. Each state is counted by its own vocabulary, so
that a term or a field that only one of them has counts 0 in the other.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from orchtrace_corpus.base.findings import Location
from orchtrace_corpus.base.identifiers import recognise, recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis.attributes import Attribute, Attributes, exclusion_attributes, paper_attributes
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, count, cross
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, Record, address, folded_title, identities
from orchtrace_corpus.corpus.model.taxonomy import Facet, Taxonomy

_SECTIONS = ("papers", "exclusions", "evidence")


def taxonomy_changes(before: Taxonomy, after: Taxonomy) -> Iterator[str]:
    """What is new, gone, renamed or otherwise now, one sentence each, without a final period; order has no meaning."""
    for part in ("title", "source"):
        if getattr(before, part) != getattr(after, part):
            yield f"the {part} is another"
    for section in _SECTIONS:
        old = {facet.field: facet for facet in getattr(before, section)}
        new = {facet.field: facet for facet in getattr(after, section)}
        yield from _new_and_gone(old, new, "field")
        for name in new:
            if name in old and new[name] != old[name]:
                yield from _facet_changes(old[name], new[name])
    old_pairs, new_pairs = ([" x ".join(pair) for pair in taxonomy.crosstabs] for taxonomy in (before, after))
    yield from _new_and_gone(old_pairs, new_pairs, "cross-tabulation")
    old_rules, new_rules = ({rule.id: rule for rule in taxonomy.rules} for taxonomy in (before, after))
    yield from _new_and_gone(old_rules, new_rules, "rule")
    for name, rule in new_rules.items():
        if name in old_rules and without_places(rule) != without_places(old_rules[name]):
            yield f"rule {name} says something else"


def is_reordered(before: Taxonomy, after: Taxonomy) -> bool:
    """Whether fields, terms, cross-tabulations or rules that are in both stand in another order."""
    old, new = _names(before), _names(after)
    common = {*old} & {*new}
    return [name for name in old if name in common] != [name for name in new if name in common]


def without_places(value: Any) -> Any:
    """A value without where its parts stand in a file, which every line above them moves."""
    if isinstance(value, Location):
        return None
    if isinstance(value, tuple):
        return tuple(without_places(part) for part in value)
    if isinstance(value, Mapping):
        return {name: without_places(part) for name, part in value.items()}
    return value


def _names(taxonomy: Taxonomy) -> list[tuple[str, ...]]:
    facets = [(section, facet) for section in _SECTIONS for facet in getattr(taxonomy, section)]
    terms = [
        (section, facet.field, part, term.id)
        for section, facet in facets
        for part in ("terms", "levels")
        for term in getattr(facet, part)
    ]
    fields = [(section, facet.field) for section, facet in facets]
    return [*fields, *terms, *taxonomy.crosstabs, *((rule.id,) for rule in taxonomy.rules)]


def _facet_changes(old: Facet, new: Facet) -> Iterator[str]:
    for part in ("terms", "levels"):
        known = {term.id: term for term in getattr(old, part)}
        present = {term.id: term for term in getattr(new, part)}
        noun = part.removesuffix("s")
        # Terms that are the same but for the id, and their new ids.
        lost = {term._replace(id=""): name for name, term in known.items() if name not in present}
        alike = {name: term._replace(id="") for name, term in present.items()}
        renamed = {lost[same]: name for name, same in alike.items() if same in lost}
        yield from (f"{noun} {name} of {new.field} is called {renamed[name]} now" for name in known if name in renamed)
        gone = [name for name in known if name not in renamed]
        come = [name for name in present if name not in renamed.values()]
        yield from _new_and_gone(gone, come, noun, f" of {new.field}")
        for name, term in present.items():
            if name in known and known[name] != term:
                fields = [field for field in term._fields if getattr(known[name], field) != getattr(term, field)]
                yield f"{noun} {name} of {new.field} has another {' and '.join(fields)}"
    for field in ("label", "kind", "role", "definition", "allows_na", "required"):
        if getattr(old, field) != getattr(new, field):
            yield f"field {new.field} has another {field.replace('_', ' ')}"


def _new_and_gone(old: Iterable[str], new: Iterable[str], noun: str, behind: str = "") -> Iterator[str]:
    known, present = list(old), list(new)
    yield from (f"{noun} {name}{behind} is new" for name in present if name not in known)
    yield from (f"{noun} {name}{behind} is gone" for name in known if name not in present)


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


RecordType = TypeVar("RecordType", Paper, Exclusion)


def signs(record: Record) -> list[Hashable]:
    """What two records that are about one work have in common, the strongest first."""
    if isinstance(record, Paper):
        found: list[Hashable] = [identifier for identifier, _ in identities(record)]
        found += [address(record.urls[0])] if record.urls else []
    else:
        known = (recognise(record.identifier), recognise_url(record.url))
        found = [identifier for identifier in known if identifier is not None]
        found += [address(record.url)] if record.url else []
    title = folded_title(record.title)
    return [*found, *([title] if title else [])]


def pair_records(
    before: Sequence[RecordType], after: Sequence[RecordType]
) -> list[tuple[RecordType | None, RecordType | None]]:
    """Each record with its counterpart, in the order of the later state; those that are gone come last.

    Records that share name and work go together first; then those that share the work, which were
    renamed; then those that share the name alone, which were corrected beyond recognition. So a key
    that was given to another paper is not taken for a correction of the paper that had it.
    """
    counterparts: dict[int, int] = {}
    taken: set[int] = set()
    for features in (_name_and_signs, signs, _name):
        waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)  # those not taken, by each feature, in order
        for index, record in enumerate(before):
            for feature in features(record) if index not in taken else ():
                waiting[feature].append(index)
        for index, record in enumerate(after):
            if index in counterparts:
                continue
            for feature in features(record):
                found = waiting[feature]
                while found and found[0] in taken:
                    found.popleft()
                if found:
                    counterparts[index] = found.popleft()
                    taken.add(counterparts[index])
                    break
    pairs: list[tuple[RecordType | None, RecordType | None]] = [
        (before[counterparts[index]] if index in counterparts else None, record) for index, record in enumerate(after)
    ]
    return pairs + [(record, None) for index, record in enumerate(before) if index not in taken]


def _name(record: Record) -> Iterable[Hashable]:
    return [record.name] if record.name else []


def _name_and_signs(record: Record) -> Iterable[Hashable]:
    return [(name, sign) for name in _name(record) for sign in signs(record)]
