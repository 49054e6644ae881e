"""What a change to a corpus means: not which lines differ, but which papers, tags, cells, findings and claims do.

Two states of a corpus are compared record by record. The order of records, comments and layout have no
meaning. A paper that has another key now, but an identifier or a title as before, was renamed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from orchtrace_corpus.findings import Finding, Location, beyond
from orchtrace_corpus.identifiers import Identifier, recognise, recognise_url
from orchtrace_corpus.pool.attributes import Attribute, exclusion_attributes, paper_attributes
from orchtrace_corpus.pool.claims import Verdict
from orchtrace_corpus.pool.edits import Value, fields
from orchtrace_corpus.pool.identity import folded_title, identities
from orchtrace_corpus.pool.model import Exclusion, Paper, Pool, Record
from orchtrace_corpus.pool.statistics import ABSENT, count, cross
from orchtrace_corpus.pool.tag_rules import TagRule
from orchtrace_corpus.pool.taxonomy import Facet, Taxonomy

RecordType = TypeVar("RecordType", Paper, Exclusion)

_NOWHERE = Location("", 0, 0)


class State(NamedTuple):
    """A corpus at one time.

    Attributes:
        pool: Its records.
        findings: What is wrong with its data.
        verdicts: What its claims come to, by the claims of the later state.
        texts: The bytes of its data files by name, to tell a change of layout from none.
    """

    pool: Pool
    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]
    texts: Mapping[str, bytes]


class Change(NamedTuple):
    """A field that has another value now; None where the record did not have it, or no longer does."""

    field: str
    before: Value | None
    after: Value | None


class Changed(NamedTuple):
    """A record that was changed.

    Attributes:
        before: The record as it was.
        after: The record as it is.
        tags: What changed of its tags.
        rest: What changed of its other fields.
    """

    before: Record
    after: Record
    tags: tuple[Change, ...]
    rest: tuple[Change, ...]


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
        """What became of it: `fills` (it was 0), `empties` (it is 0), or nothing of that kind."""
        return "fills" if not self.before else "empties" if not self.after else ""


class Difference(NamedTuple):
    """What changed from one state of a corpus to another.

    Attributes:
        added: Papers that are new.
        removed: Papers that are gone, to the exclusions or altogether.
        changed: Papers that are there before and after; a renamed one has another key.
        excluded: Exclusions that are new.
        readmitted: Exclusions that are gone.
        rescreened: Exclusions that were changed.
        promoted: New papers that an exclusion says it was promoted to, by the exclusion's id.
        demoted: Removed papers that are excluded now, by the new exclusion's id.
        taxonomy: What changed in the vocabulary, in sentences.
        totals: How many papers and exclusions there were and are.
        counts: The counts of fields that shifted.
        cells: The cells of crossed fields that filled or emptied, and those of levels.
        findings_new: Findings that there were not before.
        findings_gone: Findings that there are no longer.
        claims: The claims that hold or fail otherwise than before, each as it was (None for a new claim) and as it is.
        claims_left: How many claims are as they were.
        reordered: Whether only the order of records changed.
        relaid: Whether the files differ at all.
    """

    added: tuple[Paper, ...]
    removed: tuple[Paper, ...]
    changed: tuple[Changed, ...]
    excluded: tuple[Exclusion, ...]
    readmitted: tuple[Exclusion, ...]
    rescreened: tuple[Changed, ...]
    promoted: Mapping[str, Paper]
    demoted: Mapping[str, Paper]
    taxonomy: tuple[str, ...]
    totals: tuple[Shift, Shift]
    counts: tuple[Shift, ...]
    cells: tuple[Shift, ...]
    findings_new: tuple[Finding, ...]
    findings_gone: tuple[Finding, ...]
    claims: tuple[tuple[Verdict | None, Verdict], ...]
    claims_left: int
    reordered: bool
    relaid: bool

    @property
    def has_meaning(self) -> bool:
        """Whether anything changed that somebody who cites the corpus would see."""
        return any(
            (
                *(self.added, self.removed, self.changed, self.excluded, self.readmitted, self.rescreened),
                *(self.taxonomy, self.findings_new, self.findings_gone, self.claims),
            )
        )


def compare(before: State, after: State) -> Difference:
    """What changed between two states of a corpus."""
    papers = _matched(before.pool.papers, after.pool.papers)
    exclusions = _paired(before.pool.exclusions, after.pool.exclusions, lambda exclusion: exclusion.id)
    excluded = tuple(new for old, new in exclusions if old is None and new is not None)
    removed = tuple(old for old, new in papers if new is None and old is not None)
    added = tuple(new for old, new in papers if old is None and new is not None)
    by_key = {paper.key: paper for paper in added}
    verdicts = {verdict.claim.id: verdict for verdict in before.verdicts}
    turned = tuple(
        (verdicts.get(verdict.claim.id), verdict)
        for verdict in after.verdicts
        if verdict.claim.id not in verdicts or verdicts[verdict.claim.id].holds != verdict.holds
    )
    return Difference(
        added,
        removed,
        _changes(papers, before.pool.taxonomy, after.pool.taxonomy),
        excluded,
        tuple(old for old, new in exclusions if new is None and old is not None),
        _changes(exclusions, before.pool.taxonomy, after.pool.taxonomy),
        {one.id: by_key[one.promoted_to] for one in after.pool.exclusions if one.promoted_to in by_key},
        _demoted(removed, excluded),
        tuple(_taxonomy_changes(before.pool.taxonomy, after.pool.taxonomy)),
        (
            Shift(("papers",), (), len(before.pool.papers), len(after.pool.papers)),
            Shift(("exclusions",), (), len(before.pool.exclusions), len(after.pool.exclusions)),
        ),
        tuple(_count_shifts(before.pool, after.pool)),
        tuple(_cell_shifts(before.pool, after.pool)),
        beyond(before.findings, after.findings),
        beyond(after.findings, before.findings),
        turned,
        len(after.verdicts) - len(turned),
        [paper.key for paper in before.pool.papers] != [paper.key for paper in after.pool.papers]
        or [one.id for one in before.pool.exclusions] != [one.id for one in after.pool.exclusions],
        dict(before.texts) != dict(after.texts),
    )


def _matched(before: Sequence[Paper], after: Sequence[Paper]) -> list[tuple[Paper | None, Paper | None]]:
    """Papers before and after: by key, then by what else makes two records one paper."""
    pairs = _paired(before, after, lambda paper: paper.key)
    gone: dict[Identifier | str, Paper] = {}
    for old, new in pairs:
        if new is None and old is not None:
            for sign in _signs(old):
                gone.setdefault(sign, old)
    renamed: dict[str, Paper] = {}
    taken: set[str] = set()
    for old, new in pairs:
        if old is None and new is not None:
            found = next((gone[sign] for sign in _signs(new) if sign in gone and gone[sign].key not in taken), None)
            if found is not None:
                renamed[new.key] = found
                taken.add(found.key)
    return [
        (renamed[new.key], new) if new is not None and old is None and new.key in renamed else (old, new)
        for old, new in pairs
        if not (new is None and old is not None and old.key in taken)
    ]


def _signs(paper: Paper) -> list[Identifier | str]:
    return [*(identifier for identifier, _ in identities(paper)), folded_title(paper.title)]


def _paired(
    before: Sequence[RecordType], after: Sequence[RecordType], name: Callable[[RecordType], str]
) -> list[tuple[RecordType | None, RecordType | None]]:
    """Records of one name, in the order of the later state; those that are gone come last."""
    known = {name(record): record for record in before}
    present = {name(record) for record in after}
    pairs: list[tuple[RecordType | None, RecordType | None]] = [(known.get(name(record)), record) for record in after]
    return pairs + [(record, None) for record in before if name(record) not in present]


def _changes(
    pairs: Iterable[tuple[Record | None, Record | None]], before: Taxonomy, after: Taxonomy
) -> tuple[Changed, ...]:
    found = []
    for old, new in pairs:
        if old is None or new is None:
            continue
        was, now = fields(old, before), fields(new, after)
        names = dict.fromkeys((*was, *now))
        changes = [Change(name, was.get(name), now.get(name)) for name in names if was.get(name) != now.get(name)]
        tagged = {*old.tags, *new.tags}
        if changes:
            tags = tuple(change for change in changes if change.field in tagged)
            found.append(Changed(old, new, tags, tuple(change for change in changes if change.field not in tagged)))
    return tuple(found)


def _demoted(removed: Iterable[Paper], excluded: Iterable[Exclusion]) -> dict[str, Paper]:
    """The new exclusions that are papers that went, by the identifier or the title that they share."""
    known: dict[Identifier | str, Paper] = {sign: paper for paper in removed for sign in _signs(paper)}
    found = {}
    for exclusion in excluded:
        signs = (recognise(exclusion.identifier), recognise_url(exclusion.url), folded_title(exclusion.title))
        paper = next((known[sign] for sign in signs if sign is not None and sign in known), None)
        if paper is not None:
            found[exclusion.id] = paper
    return found


def _taxonomy_changes(before: Taxonomy, after: Taxonomy) -> Iterator[str]:
    """What changed in the vocabulary, in sentences without a final period."""
    for section in ("papers", "exclusions", "evidence"):
        old = {facet.field: facet for facet in getattr(before, section)}
        new = {facet.field: facet for facet in getattr(after, section)}
        yield from (f"field {name} is new" for name in new if name not in old)
        yield from (f"field {name} is gone" for name in old if name not in new)
        for name in new:
            if name in old and new[name] != old[name]:
                yield from _facet_changes(old[name], new[name])
    if before.rules != after.rules:
        yield from _rule_changes(before, after)


def _facet_changes(old: Facet, new: Facet) -> Iterator[str]:
    for part in ("terms", "levels"):
        known = {term.id: term for term in getattr(old, part)}
        present = {term.id: term for term in getattr(new, part)}
        noun = part.removesuffix("s")
        yield from (f"{noun} {name} of {new.field} is new" for name in present if name not in known)
        yield from (f"{noun} {name} of {new.field} is gone" for name in known if name not in present)
        for name, term in present.items():
            if name in known and known[name] != term:
                what = " and ".join(
                    field for field in term._fields if getattr(known[name], field) != getattr(term, field)
                )
                yield f"{noun} {name} of {new.field} has another {what}"
    for field in ("label", "kind", "role", "definition", "allows_na", "required"):
        if getattr(old, field) != getattr(new, field):
            yield f"field {new.field} has another {field.replace('_', ' ')}"


def _rule_changes(before: Taxonomy, after: Taxonomy) -> Iterator[str]:
    old = {rule.id: rule for rule in before.rules}
    new = {rule.id: rule for rule in after.rules}
    yield from (f"rule {name} is new" for name in new if name not in old)
    yield from (f"rule {name} is gone" for name in old if name not in new)
    for name, rule in new.items():
        if name in old and _without_places(rule) != _without_places(old[name]):
            yield f"rule {name} says something else"


def _without_places(rule: TagRule) -> TagRule:
    """The rule without where its conditions stand, which every line above them moves."""
    conditions = [tuple(one._replace(location=_NOWHERE) for one in part) for part in (rule.when, rule.require)]
    return rule._replace(when=conditions[0], require=conditions[1])


def _count_shifts(before: Pool, after: Pool) -> Iterator[Shift]:
    """The counts of each field with a vocabulary that shifted, in the later taxonomy's order."""
    for old_records, new_records, attributes in (
        (before.papers, after.papers, paper_attributes(after.taxonomy)),
        (before.exclusions, after.exclusions, exclusion_attributes(after.taxonomy)),
    ):
        for attribute in attributes.values():
            if attribute.facet is not None:
                yield from _shifts(old_records, new_records, attribute)


def _shifts(before: Sequence[Record], after: Sequence[Record], attribute: Attribute) -> Iterator[Shift]:
    old, new = (count(records, attribute).counts for records in (before, after))
    for value in dict.fromkeys((*attribute.allowed, *old, *new)):
        if old.get(value, 0) != new.get(value, 0) and value != ABSENT:
            yield Shift((attribute.name,), (value,), old.get(value, 0), new.get(value, 0))


def _cell_shifts(before: Pool, after: Pool) -> Iterator[Shift]:
    """The cells of crossed fields, and of terms with levels, that fill or empty."""
    attributes = paper_attributes(after.taxonomy)
    for rows, columns in after.taxonomy.crosstabs:
        old, new = (cross(pool.papers, attributes[rows], attributes[columns]) for pool in (before, after))
        pairs = dict.fromkeys((*old.cells, *new.cells))
        order = {value: place for place, value in enumerate((*attributes[rows].allowed, *attributes[columns].allowed))}
        for pair in sorted(pairs, key=lambda pair: (order.get(pair[0], -1), order.get(pair[1], -1), pair)):
            shift = Shift((rows, columns), pair, old.number(*pair), new.number(*pair))
            if shift.turn and ABSENT not in pair:
                yield shift
    for attribute in attributes.values():
        if attribute.facet is None and attribute.terms:
            for shift in _shifts(before.papers, after.papers, attribute):
                if shift.turn:
                    yield shift
