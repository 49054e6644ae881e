"""What a claim comes to over some records: whether it holds, what is found, and which later records make it fall."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import Severity, quote, suggestion
from orchtrace_corpus.corpus.analysis import coding
from orchtrace_corpus.corpus.analysis.attributes import Attribute, ValueKind
from orchtrace_corpus.corpus.analysis.coding import Column, Sheet
from orchtrace_corpus.corpus.analysis.query import Filter, Query, is_open
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.claim_file import Agreement, AuditSheet, Bounds, Claim, Counts, Keys, Number, Share
from orchtrace_corpus.corpus.model.disputes import disputable
from orchtrace_corpus.corpus.model.records import Pool, Record
from orchtrace_corpus.corpus.model.taxonomy import Facet, Taxonomy


class Part(NamedTuple):
    """What one record contributes to a claim.

    Attributes:
        selected: Whether it passes the claim's `where`.
        counted: Whether it passes the filters that a share is taken of.
        values: Its values of the field that counts and values are given by.
    """

    selected: bool
    counted: bool
    values: tuple[str, ...]


class Filters(NamedTuple):
    """A claim's filters on one kind of record; `compared` are the columns that readers are compared on."""

    scope: Query
    where: Query
    of: Query
    by: Attribute | None
    compared: tuple[str, ...] = ()

    def part(self, record: Record) -> Part | None:
        """What a record contributes; None if it is out of scope."""
        if not self.scope.matches(record):
            return None
        return Part(self.where.matches(record), self.of.matches(record), self.values(record))

    @property
    def conditions(self) -> tuple[Filter, ...]:
        """All filters, in the order in which they are asked."""
        return (*self.scope.filters, *self.where.filters, *self.of.filters)

    def values(self, record: Record) -> tuple[str, ...]:
        """What a record has of the field that counts and values are given by."""
        return (self.by.values(record) or ("",)) if self.by is not None else ()


class Member(NamedTuple):
    """A record that a claim is about: of a share, one of those that it is taken of."""

    record: Record
    wanted: Filters
    is_selected: bool


class Undecided(NamedTuple):
    """A candidate whose part in a claim rests on tags that are open.

    Attributes:
        tags: The names of these tags.
    """

    candidate: Candidate
    wanted: Filters
    tags: frozenset[str]

    def variants(self, known: Mapping[str, Facet]) -> list[Member]:
        """The candidate as each reader reads it who reads all of these tags, where the claim is about it then."""
        candidate = self.candidate
        read = (one for one in candidate.readings if self.tags.isdisjoint(candidate.open_after(one, known)))
        papers = (candidate.read_by(reading, known) for reading in read)
        about = (paper for paper in papers if self.wanted.scope.matches(paper) and self.wanted.of.matches(paper))
        return [Member(paper, self.wanted, self.wanted.where.matches(paper)) for paper in about]


def candidate_members(candidates: Iterable[Candidate], wanted: Filters) -> tuple[list[Member], list[Undecided]]:
    """The candidates that a claim is about by their settled tags, and those whose open tags decide it."""
    members, undecided = [], []
    about = (*wanted.scope.filters, *wanted.of.filters)
    for candidate in candidates:
        paper, open_tags = candidate.paper, candidate.open_tags
        names = {one.attribute.name for one in about if is_open(one, paper, open_tags)}
        if not all(one.attribute.name in names or one.matches(paper) for one in about):
            continue
        asked = {one.attribute.name for one in wanted.where.filters if is_open(one, paper, open_tags)}
        is_selected = all(one.attribute.name in asked or one.matches(paper) for one in wanted.where.filters)
        if is_selected:  # by what is settled, so that the rest decides
            names |= asked | ({wanted.by.name} & open_tags if wanted.by is not None else set())
        if names:
            undecided.append(Undecided(candidate, wanted, frozenset(names)))
        else:
            members.append(Member(paper, wanted, is_selected))
    return members, undecided


def could_fall_by(
    claim: Claim, members: Sequence[Member], undecided: Iterable[Undecided], taxonomy: Taxonomy
) -> tuple[str, ...]:
    """The undecided candidates by which a claim that holds would fall, each in the reading that serves it least.

    They are found as those of `falls_by` are. Whether more or fewer records serve the claim least is tried.
    """
    if not outcome(claim, members)[0]:
        return ()
    known = disputable(taxonomy)
    possible = [variants for one in undecided if (variants := one.variants(known))]
    for is_selected in (True, False):
        worst = [
            min(those, key=lambda one: (one.is_selected is not is_selected, outcome(claim, [*members, one])[0]))
            if len(those) > 1
            else those[0]
            for those in possible
        ]
        if outcome(claim, [*members, *worst])[0]:
            continue
        kept, found = list(members), set()
        # First those that only enlarge the whole, since they never break it.
        for one in sorted(worst, key=lambda one: one.is_selected is is_selected):
            kept.append(one)
            if not outcome(claim, kept)[0]:
                found.add(kept.pop().record.name)
        return tuple(one.record.name for one in worst if one.record.name in found)
    return ()


def falls_by(claim: Claim, members: Iterable[Member]) -> tuple[str, ...]:
    """The later records without which a claim would hold; taken in one after another, each that breaks it is left out.

    Of a share that is bounded above, those that only enlarge the whole come first, since they never break it.
    """
    members = [member for member in members if member.is_selected or isinstance(claim.expect, Share)]
    kept = [member for member in members if member.record.published]
    later = [member for member in members if not member.record.published]
    if not later or not outcome(claim, kept)[0]:
        return ()
    is_bounded_above = isinstance(claim.expect, Share) and claim.expect.bounds.high is not None
    found = set()
    for member in sorted(later, key=lambda member: member.is_selected == is_bounded_above):
        kept.append(member)
        if not outcome(claim, kept)[0]:
            found.add(kept.pop().record.name)
    return tuple(name for member in later if (name := member.record.name) in found)


def outcome(claim: Claim, members: Sequence[Member]) -> tuple[bool, str, tuple[str, ...]]:
    """Whether a claim holds of some records, what is found in them, and which of them it counts."""
    selected = [member for member in members if member.is_selected]
    rows = tuple(member.record.name for member in selected)
    return (*_comparison(claim, rows, len(members), selected), rows)


def _comparison(claim: Claim, rows: tuple[str, ...], counted: int, selected: Sequence[Member]) -> tuple[bool, str]:
    expect = claim.expect
    if isinstance(expect, Number):
        return _is_within(len(rows), 1, expect.bounds), str(len(rows))
    if isinstance(expect, Share):
        if not counted:
            return False, "no record to take a share of"
        share = f"{len(rows)} of {counted} ({100 * len(rows) / counted:.1f}%)"
        return _is_within(len(rows) * 10_000, counted, expect.bounds), share
    if isinstance(expect, Keys):
        missing = [key for key in expect.keys if key not in rows]
        further = [key for key in rows if key not in expect.keys]
        parts = [f"without {', '.join(missing)}"] * bool(missing) + [f"also {', '.join(further)}"] * bool(further)
        return not parts, "; ".join(parts) or ", ".join(expect.keys)
    if isinstance(expect, Counts):
        tally = Counter(value for member in selected for value in member.wanted.values(member.record))
        found = {value: tally[value] for value in expect.counts}
        wrong = [f"{value} {number}" for value, number in found.items() if number != expect.counts[value]]
        rest = _REST if 0 < len(wrong) < len(found) else ""
        return not wrong, ", ".join(wrong or (f"{value} {number}" for value, number in found.items())) + rest
    if isinstance(expect, Agreement):
        cells = Counter(cell for member in selected for cell in member.wanted.values(member.record))
        numbers = {name: agreement_of(name, cells) for name in expect.agreement}
        return numbers == expect.agreement, _agreement_text(numbers)
    having = {member.record.name: member.wanted.values(member.record) for member in selected}
    named = {key: having.get(key, ()) for key in expect.values}
    wrong = [key for key, values in named.items() if expect.values[key] not in values]
    shown = {
        key: " and ".join(values) or "without a value" if values else "not among the rows"
        for key, values in named.items()
    }
    rest = _REST if 0 < len(wrong) < len(named) else ""
    return not wrong, ", ".join(f"{key} {shown[key]}" for key in (wrong or named)) + rest


_REST = "; the rest as expected"


def _is_within(value: int, per: int, bounds: Bounds) -> bool:
    return (bounds.low is None or value >= bounds.low * per) and (bounds.high is None or value <= bounds.high * per)


def expected_text(claim: Claim) -> str:
    """What a claim expects, in words."""
    expect = claim.expect
    if isinstance(expect, Number):
        low, high = (None if end is None else str(end) for end in expect.bounds)
        return "none" if high == "0" else low if low == high and low is not None else _bounded(low, high)
    if isinstance(expect, Share):
        percentages = (None if end is None else f"{end / 100:.2f}".rstrip("0").rstrip(".") for end in expect.bounds)
        return _bounded(*(None if end is None else f"{end}%" for end in percentages))
    if isinstance(expect, Keys):
        return ", ".join(expect.keys)
    if isinstance(expect, Agreement):
        return _agreement_text(expect.agreement)
    pairs: Mapping[str, object] = expect.counts if isinstance(expect, Counts) else expect.values
    return ", ".join(f"{name} {value}" for name, value in pairs.items())


EQUAL, DIFFERENT = " equal", " different"
"""What marks the cell of a column, as a value of a paper that two readers coded."""


def agreement_of(name: str, cells: Mapping[str, int]) -> tuple[int, int]:
    """How many cells of a column are equal, and how many there are; of all columns under the empty name."""
    equal, different = (
        sum(number for cell, number in cells.items() if (cell.endswith(mark) if not name else cell == name + mark))
        for mark in (EQUAL, DIFFERENT)
    )
    return equal, equal + different


def _agreement_text(numbers: Mapping[str, tuple[int, int]]) -> str:
    return ", ".join(f"{name} {equal} of {total}".strip() for name, (equal, total) in numbers.items())


def _bounded(low: str | None, high: str | None) -> str:
    ends = (("at least", low), ("at most", high))
    return ", ".join(f"{word} {end}" for word, end in ends if end is not None)


def cell_attribute(expect: Agreement, pool: Pool) -> tuple[Attribute, tuple[str, ...]]:
    """What two readers make of a paper, for a claim about their sheets; of one sheet, the corpus is the other reader.

    Args:
        expect: The sheets, and the columns to compare.
        pool: The corpus.

    Returns:
        An attribute whose values are the cells that both coded, each equal or different, and the columns compared.

    Raises:
        CommandUseError: A column does not exist, or a sheet cannot be read or has errors.
    """
    every = {column.name: column for column in coding.columns(pool.taxonomy)}
    for name in filter(None, expect.agreement):
        if name not in every:
            raise CommandUseError(f"{quote(name)} cannot be coded{suggestion(name, list(every))}")
    sheets = [_read(sheet, tuple(every.values()), pool) for sheet in expect.sheets]
    compared = tuple(name for name in every if "" in expect.agreement or name in expect.agreement)
    wanted = [every[name] for name in compared]

    def values(record: Any) -> tuple[str, ...]:
        one = sheets[0].codes.get(record.key)
        if one is None:
            return ()
        second = sheets[1] if len(sheets) > 1 else coding.as_coded([record], wanted)
        other = second.codes.get(record.key, {})
        both = (name for name in compared if name in one and name in other)
        return tuple(name + (EQUAL if one[name] == other[name] else DIFFERENT) for name in both)

    return Attribute("agreement", "Agreement", ValueKind.TEXT, values), compared


def _read(file: AuditSheet, columns: Sequence[Column], pool: Pool) -> Sheet:
    if file.text is None:
        raise CommandUseError(f"cannot read the sheet {quote(file.path)}")
    sheet, found = coding.decode(file.text, file.path, columns, [paper.key for paper in pool.papers])
    lines: dict[str, list[str]] = {}
    for one in found:
        # A record that is no longer there has no cell; the number of cells tells.
        if one.severity is Severity.ERROR and one.code != "K103":
            lines.setdefault(one.message, []).append(str(one.location.line))
    wrong = [f"{file.path}:{', '.join(numbers)}: {message}" for message, numbers in lines.items()]
    if wrong:
        raise CommandUseError("; ".join(wrong))
    return sheet
