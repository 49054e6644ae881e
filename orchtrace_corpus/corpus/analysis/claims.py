"""Evaluates what a corpus claims about itself: whether each claim holds, and by which records.

`evaluate` is a pure function of claims and records, so that two corpora can be held against the same claims. A claim
about the published pool, by the scope `published: "yes"`, is also judged over the pool of today: without that scope.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import Finding, Severity, printable, quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.analysis import coding
from orchtrace_corpus.corpus.analysis.attributes import (
    Attribute,
    Attributes,
    ValueKind,
    exclusion_attributes,
    find,
    paper_attributes,
    scale_attributes,
)
from orchtrace_corpus.corpus.analysis.query import Filter, Query, is_open, parse_conditions
from orchtrace_corpus.corpus.model import claim_file
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.claim_file import Bounds, Claim, ClaimFile, Over, PoolName
from orchtrace_corpus.corpus.model.disputes import Dispute, State, disputable, with_value
from orchtrace_corpus.corpus.model.records import Paper, Pool, Record
from orchtrace_corpus.corpus.model.taxonomy import Condition, Facet

_SENTENCE_LIMIT = 300

_Key: TypeAlias = tuple[Over, bool, tuple[tuple[str, tuple[str, ...]], ...]]


class PoolVerdict(NamedTuple):
    """The verdict on a claim over one pool.

    Attributes:
        found: What was found, in words.
        falls_by: The records outside the published pool without which the claim would hold, by key or id: no fewer
            than it takes, and no more than are needed one after another, in their order. Empty if it holds, or would
            fail without them, too.
        could_fall_by: Of the pool with candidates: those by which the claim would fall in a reading of tags that are
            open, found likewise. Empty if it falls by tags that are settled.
        counted: Of the pool with candidates: those candidates that the claim counts, in their order.
        undecided: Of the pool with candidates: how many are left out, since open tags decide about them.
    """

    holds: bool
    found: str
    falls_by: tuple[str, ...] = ()
    could_fall_by: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    undecided: int = 0

    @property
    def falls_at(self) -> int:
        """At which of the candidates that the claim counts it falls, from 1; 0 if it falls at none of them."""
        return next((at for at, name in enumerate(self.counted, 1) if name in self.falls_by), 0)


class Verdict(NamedTuple):
    """The verdict on a claim, as it is written.

    Attributes:
        expected: What must be found, in words.
        found: What was found, in words.
        rows: The records that pass the claim's filters, by key or id, in their order; of a claim about
            values, those that it names.
        contested: The papers whose part in the claim an open dispute would change, in their order.
        problem: Why the claim cannot be evaluated; empty if it can.
        pools: Whether it holds over each pool that it is judged over; empty if it cannot be, or nobody asked.
    """

    claim: Claim
    holds: bool
    expected: str
    found: str
    rows: tuple[str, ...] = ()
    contested: tuple[str, ...] = ()
    problem: str = ""
    pools: Mapping[PoolName, PoolVerdict] = {}


def evaluate(
    claims: Iterable[Claim], pool: Pool, disputes: Sequence[Dispute] = (), candidates: Sequence[Candidate] | None = None
) -> tuple[Verdict, ...]:
    """Hold claims against a corpus, in their order.

    Args:
        claims: The claims, which may have been written for another state of the corpus.
        pool: The corpus.
        disputes: Its disputes; without them no row is marked as contested.
        candidates: Those proposed for inclusion; without them no claim is judged over the pool that they would make.
    """
    judge = Judge(pool, candidates, disputes)
    return tuple(judge.verdict(claim) for claim in claims)


def falling_today(verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """The ids of the claims about the published pool that fall over that of today."""
    asked = {PoolName.PUBLISHED, PoolName.TODAY}
    judged = (verdict for verdict in verdicts if asked <= verdict.pools.keys() and verdict.holds)
    return tuple(verdict.claim.id for verdict in judged if not verdict.pools[PoolName.TODAY].holds)


def check(file: ClaimFile, pool: Pool, verdicts: Iterable[Verdict] = ()) -> tuple[Finding, ...]:
    """All findings of the file: those of decoding, claims that fail, and claims that make no sense here.

    Args:
        file: The claims.
        pool: The corpus.
        verdicts: Those over this corpus that are known already.
    """
    findings = list(file.findings)
    judge = Judge(pool)
    judged = {verdict.claim.id: verdict for verdict in verdicts}
    known = {record.name for record in pool.records}
    for index, claim in enumerate(file.claims):
        verdict = judged.get(claim.id) or judge.verdict(claim, over_pools=False)
        if verdict.problem:
            findings += _problems(file, index, judge)
        elif not verdict.holds:
            sentence = printable(claim.claim, limit=_SENTENCE_LIMIT)
            found = printable(verdict.found, limit=_SENTENCE_LIMIT)
            expected = printable(verdict.expected, limit=_SENTENCE_LIMIT)
            message = f"claim fails: {sentence} Expected: {expected}; found: {found}"
            findings.append(Finding("C101", message, file.locate(index, "claim"), claim.id))
        names = known.union(observation.name for observation in claim.observations)
        for number, counter in enumerate(claim.counter):
            for at, row in enumerate(counter.rows):
                if row not in names:
                    place = file.locate(index, "counter", number, "rows", at)
                    findings.append(Finding("C103", f"there is no record {quote(row)}", place, claim.id))
        for number, reading in enumerate(claim.readings if not verdict.problem else ()):
            beyond = [key for key in reading.keys if key not in verdict.rows]
            if beyond:
                message = f"reading {quote(reading.name)} names {quote(beyond[0])}, which the claim does not count"
                findings.append(Finding("C104", message, file.locate(index, "readings", number, "keys"), claim.id))
    return tuple(findings)


class Part(NamedTuple):
    """The contribution of one record to a claim.

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
        """Return the contribution of a record; None if it is out of scope."""
        if not self.scope.matches(record):
            return None
        return Part(self.where.matches(record), self.of.matches(record), self.values(record))

    @property
    def conditions(self) -> tuple[Filter, ...]:
        """All filters, in the order in which they are asked."""
        return (*self.scope.filters, *self.where.filters, *self.of.filters)

    def values(self, record: Record) -> tuple[str, ...]:
        """Return the values of a record in the field that counts and values are given by."""
        return (self.by.values(record) or ("",)) if self.by is not None else ()

    def disputed_tags(self, known: Mapping[str, Facet]) -> set[str]:
        """Return the tags that the filters look at; `known` are those of `disputes.disputable`, each with its facet."""
        fields = {*self.compared, *(condition.attribute.name for condition in self.conditions)}
        fields |= {self.by.name} if self.by is not None else set()
        return {tag for tag, facet in known.items() if tag in fields or facet.field in fields}


class Member(NamedTuple):
    """A record that a claim is about: of a share, one of those that it is taken of."""

    record: Record
    wanted: Filters
    is_selected: bool


class Undecided(NamedTuple):
    """A candidate whose part in a claim rests on tags that are open; `tags` has their names."""

    candidate: Candidate
    wanted: Filters
    tags: frozenset[str]

    def variants(self, known: Mapping[str, Facet]) -> list[Member]:
        """Return the candidate in each reading that settles all of these tags, where the claim is about it then."""
        candidate, variants = self.candidate, []
        for reading in candidate.readings:
            if self.tags.isdisjoint(candidate.open_after(reading, known)):
                paper = candidate.read_by(reading, known)
                part = self.wanted.part(paper)
                if part is not None and part.counted:
                    variants.append(Member(paper, self.wanted, part.selected))
        return variants


def candidate_members(candidates: Iterable[Candidate], wanted: Filters) -> tuple[list[Member], list[Undecided]]:
    """Return the candidates that a claim is about by their settled tags, and those whose open tags decide it."""
    members, undecided = [], []
    about = (*wanted.scope.filters, *wanted.of.filters)
    for candidate in candidates:
        paper, open_tags = candidate.paper, candidate.open_tags
        names = {condition.attribute.name for condition in about if is_open(condition, paper, open_tags)}
        if not all(condition.attribute.name in names or condition.matches(paper) for condition in about):
            continue
        where = wanted.where.filters
        asked = {condition.attribute.name for condition in where if is_open(condition, paper, open_tags)}
        is_selected = all(condition.attribute.name in asked or condition.matches(paper) for condition in where)
        if is_selected:  # by what is settled, so that the rest decides
            names |= asked | ({wanted.by.name} & open_tags if wanted.by is not None else set())
        if names:
            undecided.append(Undecided(candidate, wanted, frozenset(names)))
        else:
            members.append(Member(paper, wanted, is_selected))
    return members, undecided


def could_fall_by(
    claim: Claim, members: Sequence[Member], undecided: Iterable[Undecided], known: Mapping[str, Facet]
) -> tuple[str, ...]:
    """Return the undecided candidates by which a claim that holds would fall, each in the reading that serves it least.

    They are found as those of `falls_by` are. Whether more or fewer records serve the claim least is tried.
    """
    possible = [variants for candidate in undecided if (variants := candidate.variants(known))]
    for is_selected in (True, False):

        def service(member: Member, is_selected: bool = is_selected) -> tuple[bool, bool]:
            return member.is_selected is not is_selected, outcome(claim, [*members, member])[0]

        worst = [min(variants, key=service) if len(variants) > 1 else variants[0] for variants in possible]
        if not outcome(claim, [*members, *worst])[0]:
            # First those that only enlarge the whole, since they never break it.
            return _breaking(claim, members, worst, selected_last=is_selected)
    return ()


def _breaking(
    claim: Claim, members: Iterable[Member], later: Sequence[Member], *, selected_last: bool
) -> tuple[str, ...]:
    """Take later members in one after another; return those that break the claim, which are left out."""
    kept, names = list(members), set()
    for member in sorted(later, key=lambda member: member.is_selected is selected_last):
        kept.append(member)
        if not outcome(claim, kept)[0]:
            names.add(kept.pop().record.name)
    return tuple(member.record.name for member in later if member.record.name in names)


def falls_by(claim: Claim, members: Iterable[Member]) -> tuple[str, ...]:
    """The later records without which a claim would hold; taken in one after another, each that breaks it is left out.

    Of a share that is bounded above, those that only enlarge the whole come first, since they never break it.
    """
    members = [member for member in members if member.is_selected or isinstance(claim.expect, claim_file.Share)]
    kept = [member for member in members if member.record.published]
    later = [member for member in members if not member.record.published]
    if not later or not outcome(claim, kept)[0]:
        return ()
    is_bounded_above = isinstance(claim.expect, claim_file.Share) and claim.expect.bounds.high is not None
    return _breaking(claim, kept, later, selected_last=is_bounded_above)


def outcome(claim: Claim, members: Sequence[Member]) -> tuple[bool, str, tuple[str, ...]]:
    """Return True if a claim holds of some records, what is found in them, and which of them it counts."""
    selected = [member for member in members if member.is_selected]
    rows = tuple(member.record.name for member in selected)
    return (*_comparison(claim, rows, len(members), selected), rows)


def _comparison(claim: Claim, rows: tuple[str, ...], counted: int, selected: Sequence[Member]) -> tuple[bool, str]:
    expect = claim.expect
    if isinstance(expect, claim_file.Number):
        return _is_within(len(rows), 1, expect.bounds), str(len(rows))
    if isinstance(expect, claim_file.Share):
        if not counted:
            return False, "no record to take a share of"
        share = f"{len(rows)} of {counted} ({100 * len(rows) / counted:.1f}%)"
        return _is_within(len(rows) * 10_000, counted, expect.bounds), share
    if isinstance(expect, claim_file.Keys):
        missing = [key for key in expect.keys if key not in rows]
        further = [key for key in rows if key not in expect.keys]
        parts = [f"without {', '.join(missing)}"] * bool(missing) + [f"also {', '.join(further)}"] * bool(further)
        return not parts, "; ".join(parts) or ", ".join(expect.keys)
    if isinstance(expect, claim_file.Counts):
        tally = Counter(value for member in selected for value in member.wanted.values(member.record))
        counts = {value: str(tally[value]) for value in expect.counts}
        return _differences(counts, [value for value, count in expect.counts.items() if tally[value] != count])
    if isinstance(expect, claim_file.Agreement):
        cells = Counter(cell for member in selected for cell in member.wanted.values(member.record))
        numbers = {name: agreement_of(name, cells) for name in expect.agreement}
        return numbers == expect.agreement, _agreement_text(numbers)
    having = {member.record.name: member.wanted.values(member.record) for member in selected}
    shown = dict.fromkeys(expect.values, "not among the rows")
    shown |= {key: " and ".join(having[key]) or "without a value" for key in shown if key in having}
    return _differences(shown, [key for key, value in expect.values.items() if value not in having.get(key, ())])


def _differences(shown: Mapping[str, str], wrong: Sequence[str]) -> tuple[bool, str]:
    rest = "; the rest as expected" if 0 < len(wrong) < len(shown) else ""
    return not wrong, ", ".join(f"{name} {shown[name]}" for name in (wrong or shown)) + rest


def _is_within(value: int, per: int, bounds: Bounds) -> bool:
    return (bounds.low is None or value >= bounds.low * per) and (bounds.high is None or value <= bounds.high * per)


def expected_text(claim: Claim) -> str:
    """Return the expectation of a claim in words."""
    expect = claim.expect
    if isinstance(expect, claim_file.Number):
        low, high = (None if end is None else str(end) for end in expect.bounds)
        if high == "0":
            return "none"
        return low if low == high and low is not None else _bounded(low, high)
    if isinstance(expect, claim_file.Share):
        percentages = (None if end is None else f"{end / 100:.2f}".rstrip("0").rstrip(".") for end in expect.bounds)
        return _bounded(*(None if end is None else f"{end}%" for end in percentages))
    if isinstance(expect, claim_file.Keys):
        return ", ".join(expect.keys)
    if isinstance(expect, claim_file.Agreement):
        return _agreement_text(expect.agreement)
    pairs: Mapping[str, object] = expect.counts if isinstance(expect, claim_file.Counts) else expect.values
    return ", ".join(f"{name} {value}" for name, value in pairs.items())


def whole_of(claim: Claim) -> Sequence[Condition]:
    """Return the filters on what a share is taken of; none for another claim."""
    return claim.expect.of if isinstance(claim.expect, claim_file.Share) else ()


EQUAL, DIFFERENT = " equal", " different"
"""The marks of the cell of a column, as a value of a paper that two readers coded."""


def agreement_of(name: str, cells: Mapping[str, int]) -> tuple[int, int]:
    """Count the equal cells of a column, and all of its cells; of all columns under the empty name."""
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


def cell_attribute(expect: claim_file.Agreement, pool: Pool) -> tuple[Attribute, tuple[str, ...]]:
    """Return the cells of two readers of a paper, for a claim about their sheets; the corpus stands in for a second.

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
        codes = sheets[0].codes.get(record.key)
        if codes is None:
            return ()
        second = sheets[1] if len(sheets) > 1 else coding.as_coded([record], wanted)
        other = second.codes.get(record.key, {})
        both = (name for name in compared if name in codes and name in other)
        return tuple(name + (EQUAL if codes[name] == other[name] else DIFFERENT) for name in both)

    return Attribute("agreement", "Agreement", ValueKind.TEXT, values), compared


def _read(file: claim_file.AuditSheet, columns: Sequence[coding.Column], pool: Pool) -> coding.Sheet:
    if file.text is None:
        raise CommandUseError(f"cannot read the sheet {quote(file.path)}")
    sheet, found = coding.decode(file.text, file.path, columns, [paper.key for paper in pool.papers])
    lines: dict[str, list[str]] = {}
    for finding in found:
        # A record that is no longer there has no cell; the number of cells tells.
        if finding.severity is Severity.ERROR and finding.code != "K103":
            lines.setdefault(finding.message, []).append(str(finding.location.line))
    if lines:
        wrong = (f"{file.path}:{', '.join(numbers)}: {message}" for message, numbers in lines.items())
        raise CommandUseError("; ".join(wrong))
    return sheet


class Judge:
    """Evaluates claims on one corpus; filters that several claims share are read and applied once."""

    def __init__(
        self, pool: Pool, candidates: Sequence[Candidate] | None = None, disputes: Sequence[Dispute] = ()
    ) -> None:
        self.pool = pool
        self.candidates = candidates
        self.attributes: dict[Over, Attributes] = {
            Over.PAPERS: paper_attributes(pool.taxonomy),
            Over.EXCLUSIONS: exclusion_attributes(pool.taxonomy),
            Over.SCALE: scale_attributes(),
        }
        self._by_sheets: dict[str, tuple[Attribute, tuple[str, ...]]] = {}
        self._queries: dict[_Key, Query] = {}
        self._in_scope: dict[_Key, tuple[Any, ...]] = {}
        self._disputable = disputable(pool.taxonomy)
        self._papers = {paper.key: paper for paper in pool.papers}
        self._open: list[tuple[Dispute, Paper, list[Paper]]] = []
        for dispute in disputes:
            paper = self._papers.get(dispute.record)
            facet = self._disputable.get(dispute.tag)
            if dispute.state is State.OPEN and paper is not None and facet is not None:
                others = [with_value(paper, facet, dispute.tag, value) for value in dispute.alternatives]
                self._open.append((dispute, paper, others))

    def records(self, kind: Over, claim: Claim) -> Sequence[Any]:
        """Return the records of a kind that the claim could be about."""
        if kind is Over.SCALE:
            published = {key: paper.published for key, paper in self._papers.items()}
            return [item._replace(published=published.get(item.record or "")) for item in claim.observations]
        return self.pool.papers if kind is Over.PAPERS else self.pool.exclusions

    def filters(self, claim: Claim) -> dict[Over, Filters]:
        """The claim's filters, by kind of record.

        Raises:
            CommandUseError: A filter, field or term of the claim does not exist.
        """
        expect, of = claim.expect, whole_of(claim)
        for condition in (*claim.scope, *claim.where, *of) if len(claim.over) > 1 else ():
            if (error := self.wrong_everywhere(condition, claim.over)) is not None:
                raise error
        filters = {}
        for kind in claim.over:
            by = None
            if isinstance(expect, (claim_file.Counts, claim_file.Values)):
                by = find(expect.by, self.attributes[kind])
                for value in expect.counts if isinstance(expect, claim_file.Counts) else expect.values.values():
                    if by.terms and value not in by.allowed:
                        raise CommandUseError(f"{by.name} has no value {quote(value)}{suggestion(value, by.allowed)}")
            compared: tuple[str, ...] = ()
            if isinstance(expect, claim_file.Agreement):
                if kind is not Over.PAPERS:
                    raise CommandUseError("readers agree on papers: leave 'over' out")
                by, compared = self._by_sheets.get(claim.id) or cell_attribute(expect, self.pool)
                self._by_sheets[claim.id] = by, compared
            scope, where, shared = (self._query(kind, asked, claim.over) for asked in (claim.scope, claim.where, of))
            filters[kind] = Filters(scope, where, shared, by, compared)
        return filters

    def verdict(self, claim: Claim, *, over_pools: bool = True) -> Verdict:
        """Return the verdict on a claim; also over the other pools, if that is asked for."""
        expected = expected_text(claim)
        try:
            filters = self.filters(claim)
        except CommandUseError as error:
            problem = _sentence(error)
            return Verdict(claim, False, expected, f"cannot be evaluated: {problem}", problem=problem)
        members = self._members(claim, filters)
        holds, found, rows = outcome(claim, members)
        pools = self._pools(claim, PoolVerdict(holds, found), members, filters) if over_pools else {}
        return Verdict(claim, holds, expected, found, rows, self._contested(filters), pools=pools)

    def _pools(
        self, claim: Claim, written: PoolVerdict, members: Sequence[Member], own: Mapping[Over, Filters]
    ) -> dict[PoolName, PoolVerdict]:
        """Return the verdict over each pool; that of the claim as it is written is known, with members and filters."""
        rest = tuple(
            condition
            for condition in claim.scope
            if condition.field.rstrip("= ") != "published" or condition.alternatives != ("yes",)
        )
        if len(rest) == len(claim.scope):
            return {PoolName.TODAY: written, **self._awaited(claim, members)}
        if claim.only is not None:
            return {claim.only: written}
        today = claim._replace(scope=rest)
        filters = self.filters(today)
        holds, found = written.holds, written.found
        if any(self._scoped(today, kind, filters) != self._scoped(claim, kind, own) for kind in filters):
            members = self._members(today, filters)
            holds, found, _ = outcome(today, members)
        by = () if holds else falls_by(today, members)
        verdicts = {PoolName.PUBLISHED: written, PoolName.TODAY: PoolVerdict(holds, found, by)}
        return {**verdicts, **self._awaited(today, members)}

    def _awaited(self, claim: Claim, members: Sequence[Member]) -> dict[PoolName, PoolVerdict]:
        """The verdict over the pool with the candidates, if they are given: `members` are those of today."""
        if self.candidates is None:
            return {}
        wanted = self.filters(claim).get(Over.PAPERS)
        undecided: list[Undecided] = []
        awaiting: list[Member] = []
        if wanted is not None:
            named = claim.expect.values if isinstance(claim.expect, claim_file.Values) else None
            about = [candidate for candidate in self.candidates if named is None or candidate.name in named]
            awaiting, undecided = candidate_members(about, wanted)
            members = [*members, *awaiting]
        holds, found, _ = outcome(claim, members)
        by = () if holds else falls_by(claim, members)
        possible = could_fall_by(claim, members, undecided, self._disputable) if holds else ()
        counted = tuple(member.record.name for member in awaiting if member.is_selected)
        return {PoolName.CANDIDATES: PoolVerdict(holds, found, by, possible, counted, len(undecided))}

    def _members(self, claim: Claim, filters: Mapping[Over, Filters]) -> list[Member]:
        """Return the records that a claim counts; of a share, all that it is taken of, each with whether it counts."""
        members = []
        is_share = isinstance(claim.expect, claim_file.Share)
        for kind, wanted in filters.items():
            in_scope = self._scoped(claim, kind, filters)
            within = wanted.of.select(in_scope) if wanted.of.filters else in_scope
            if is_share:
                members += [Member(record, wanted, wanted.where.matches(record)) for record in within]
            else:
                members += [Member(record, wanted, True) for record in wanted.where.select(within)]
        if isinstance(claim.expect, claim_file.Agreement):
            members = [member for member in members if any(member.wanted.values(member.record))]
        if isinstance(claim.expect, claim_file.Values):
            members = [member for member in members if member.record.name in claim.expect.values]
        return members

    def _scoped(self, claim: Claim, kind: Over, filters: Mapping[Over, Filters]) -> Sequence[Any]:
        """Return the records of a kind that the claim is about at all; many claims are about the same."""
        key = (kind, len(claim.over) > 1, _content(claim.scope))
        if key not in self._in_scope:
            self._in_scope[key] = filters[kind].scope.select(self.records(kind, claim))
        return self._in_scope[key]

    def _query(self, kind: Over, conditions: Sequence[Condition], over: Sequence[Over]) -> Query:
        """The conditions as filters; of several kinds of records, each has those on fields that it has."""
        key = (kind, len(over) > 1, _content(conditions))
        if key not in self._queries:
            known = self.attributes[kind]
            if len(over) > 1:
                conditions = [condition for condition in conditions if _wrong(condition, known) is None]
            self._queries[key] = parse_conditions(conditions, known)
        return self._queries[key]

    def wrong_everywhere(self, condition: Condition, over: Sequence[Over]) -> CommandUseError | None:
        """Return the error of a condition for the first kind of records, if there is one for each."""
        errors = [_wrong(condition, self.attributes[kind]) for kind in over]
        return None if None in errors else errors[0]

    def _contested(self, filters: Mapping[Over, Filters]) -> tuple[str, ...]:
        """Return the papers whose part in a claim an open dispute would change, in their order."""
        wanted = filters.get(Over.PAPERS)
        if wanted is None or not self._open:
            return ()
        tags = wanted.disputed_tags(self._disputable)
        parts: dict[str, Part | None] = {}
        marked = set()
        for dispute, paper, others in self._open:
            key = paper.key
            if dispute.tag in tags and key not in marked:
                if key not in parts:
                    parts[key] = wanted.part(paper)
                if any(wanted.part(other) != parts[key] for other in others):
                    marked.add(key)
        return tuple(key for key in self._papers if key in marked)


def _content(conditions: Sequence[Condition]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((condition.field, condition.alternatives) for condition in conditions)


def _wrong(condition: Condition, attributes: Attributes) -> CommandUseError | None:
    try:
        parse_conditions([condition], attributes)
    except CommandUseError as error:
        return error
    return None


def _problems(file: ClaimFile, index: int, judge: Judge) -> list[Finding]:
    """Return the errors that keep a claim from being evaluated, each at its place."""
    claim = file.claims[index]
    conditions = (*claim.scope, *claim.where, *whole_of(claim))
    judged = ((judge.wrong_everywhere(condition, claim.over), condition.location) for condition in conditions)
    found = [(error, place) for error, place in judged if error is not None]
    if not found:
        try:
            judge.filters(claim)
        except CommandUseError as error:
            found.append((error, file.locate(index, "expect")))
    return [Finding("C102", _sentence(error), place, claim.id) for error, place in found]


def _sentence(error: CommandUseError) -> str:
    return str(error).replace("\n", ". ").rstrip(".")
