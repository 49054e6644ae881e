"""Evaluates the claims of a corpus about itself.

`evaluate` is a pure function of claims and records, so that the same claims can be evaluated on two corpora. A claim
about the published pool, which has the scope `published: "yes"`, is also evaluated over the current pool, without it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from orchtrace_corpus.base.annotations import Any, TypeAlias
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
    """The verdict on a claim over one pool. The last three attributes are those of the pool with candidates.

    Attributes:
        found: The result in words.
        falls_by: The later records that make the claim fail, by key or id, in their order: with all others it holds.
            Empty if it holds, or fails without later records, too.
        could_fall_by: The candidates that make the claim fail in some reading of their undecided tags.
        counted: The candidates that the claim counts, in their order.
        undecided: The number of candidates whose part in the claim depends on undecided tags.
    """

    holds: bool
    found: str
    falls_by: tuple[str, ...] = ()
    could_fall_by: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    undecided: int = 0

    @property
    def falls_at(self) -> int:
        """The position, from 1, of the first counted candidate that makes the claim fail; 0 if there is none."""
        return next((at for at, name in enumerate(self.counted, 1) if name in self.falls_by), 0)


class Verdict(NamedTuple):
    """The verdict on a claim as it is written, with the expectation and the result in words.

    Attributes:
        rows: The records that the claim counts, by key or id, in their order.
        contested: The papers whose part in the claim depends on an open dispute, in their order.
        problem: The reason why the claim cannot be evaluated; empty if it can.
        pools: The verdict over each pool; empty if these were not asked for.
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
    """Return the verdict on each claim, in their order; the claims can be of another state of the corpus.

    Without disputes, no paper is contested. Without candidates, the pool with candidates is not evaluated.
    """
    judge = Judge(pool, candidates, disputes)
    return tuple(judge.verdict(claim) for claim in claims)


def falling_today(verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """Return the ids of the claims that hold over the published pool and fail over the current one."""
    judged = (verdict for verdict in verdicts if verdict.pools.keys() >= {PoolName.PUBLISHED, PoolName.TODAY})
    return tuple(v.claim.id for v in judged if v.holds and not v.pools[PoolName.TODAY].holds)


def check(file: ClaimFile, pool: Pool, verdicts: Iterable[Verdict] = ()) -> tuple[Finding, ...]:
    """Return the findings of the file: errors of decoding, and claims that fail or cannot be evaluated."""
    findings = list(file.findings)
    judge = Judge(pool)
    judged = {verdict.claim.id: verdict for verdict in verdicts}
    known = {record.name for record in pool.records}
    for index, claim in enumerate(file.claims):
        verdict = judged.get(claim.id) or judge.verdict(claim, over_pools=False)
        if verdict.problem:
            findings += _problems(file, index, judge, verdict.problem)
        elif not verdict.holds:
            sentence, expected, found = (
                printable(text, limit=_SENTENCE_LIMIT) for text in (claim.claim, verdict.expected, verdict.found)
            )
            message = f"claim fails: {sentence} Expected: {expected}; found: {found}"
            findings.append(Finding("C101", message, file.locate(index, "claim"), claim.id))
        names = known.union(observation.name for observation in claim.observations)
        for counter_index, counter in enumerate(claim.counter):
            for row_index, row in enumerate(counter.rows):
                if row not in names:
                    place = file.locate(index, "counter", counter_index, "rows", row_index)
                    findings.append(Finding("C103", f"there is no record {quote(row)}", place, claim.id))
        if verdict.problem:
            continue
        for reading_index, reading in enumerate(claim.readings):
            uncounted = [key for key in reading.keys if key not in verdict.rows]
            if uncounted:
                message = f"reading {quote(reading.name)} names {quote(uncounted[0])}, which the claim does not count"
                place = file.locate(index, "readings", reading_index, "keys")
                findings.append(Finding("C104", message, place, claim.id))
    return tuple(findings)


class Part(NamedTuple):
    """The contribution of a record to a claim: whether it passes `where`, and the filters on the whole of a share."""

    selected: bool
    counted: bool
    values: tuple[str, ...]


class Filters(NamedTuple):
    """A claim's filters on one kind of records, the field it counts by, and the columns that it compares readers on."""

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
        """All filters, in the order in which they are applied."""
        return (*self.scope.filters, *self.where.filters, *self.of.filters)

    def values(self, record: Record) -> tuple[str, ...]:
        """Return the values of a record in the field `by`, at least the empty one; nothing without such a field."""
        return (self.by.values(record) or ("",)) if self.by is not None else ()

    def disputed_tags(self, known: Mapping[str, Facet]) -> set[str]:
        """Return the tags that the claim depends on, among those of `disputes.disputable` with their facets."""
        fields = {*self.compared, *(condition.attribute.name for condition in self.conditions)}
        if self.by is not None:
            fields.add(self.by.name)
        return {tag for tag, facet in known.items() if tag in fields or facet.field in fields}


class Member(NamedTuple):
    """A record that a claim is about; `is_selected` is False for those that only enlarge the whole of a share."""

    record: Record
    wanted: Filters
    is_selected: bool


def candidate_members(
    candidates: Iterable[Candidate], wanted: Filters, known: Mapping[str, Facet]
) -> tuple[list[Member], list[list[Member]]]:
    """Return the candidates that a claim is about by their decided tags, and variants of the other candidates.

    The variants are those by each reading that decides the tags that the claim depends on.
    """
    members: list[Member] = []
    undecided: list[list[Member]] = []
    for candidate in candidates:
        names = _undecided_tags((*wanted.scope.filters, *wanted.of.filters), candidate)
        if names is None:
            continue
        asked = _undecided_tags(wanted.where.filters, candidate)
        if asked is not None:
            names |= asked
            if wanted.by is not None and wanted.by.name in candidate.open_tags:
                names.add(wanted.by.name)
        if not names:
            members.append(Member(candidate.paper, wanted, asked is not None))
            continue
        undecided.append([])
        for reading in candidate.readings:
            if names.isdisjoint(candidate.open_tags_without(reading, known)):
                paper = candidate.paper_as_read(reading, known)
                part = wanted.part(paper)
                if part is not None and part.counted:
                    undecided[-1].append(Member(paper, wanted, part.selected))
    return members, undecided


def _undecided_tags(filters: Sequence[Filter], candidate: Candidate) -> set[str] | None:
    """Return the undecided tags that filters depend on; None if the candidate fails them by its decided tags."""
    paper, open_tags = candidate.paper, candidate.open_tags
    names = {condition.attribute.name for condition in filters if is_open(condition, paper, open_tags)}
    passes = all(condition.attribute.name in names or condition.matches(paper) for condition in filters)
    return names if passes else None


def could_fall_by(claim: Claim, members: Sequence[Member], undecided: Iterable[list[Member]]) -> tuple[str, ...]:
    """Return the undecided candidates that could make a claim fail, each by its least favourable reading."""
    possible = list(filter(None, undecided))
    for is_selected in (True, False):  # either can be less favourable to a claim

        def favour(member: Member, is_selected: bool = is_selected) -> tuple[bool, bool]:
            return member.is_selected is not is_selected, outcome(claim, [*members, member])[0]

        worst = [min(variants, key=favour) if len(variants) > 1 else variants[0] for variants in possible]
        if not outcome(claim, [*members, *worst])[0]:
            return _breaking(claim, members, worst, selected_last=is_selected)
    return ()


def _breaking(
    claim: Claim, members: Iterable[Member], later: Sequence[Member], *, selected_last: bool
) -> tuple[str, ...]:
    """Add later members one after another, without those that make the claim fail; return the names of these.

    With `selected_last`, members that only enlarge the whole of a share come first: alone they never make it too large.
    """
    accepted, names = list(members), set()
    for member in sorted(later, key=lambda member: member.is_selected is selected_last):
        accepted.append(member)
        if not outcome(claim, accepted)[0]:
            names.add(accepted.pop().record.name)
    return tuple(member.record.name for member in later if member.record.name in names)


def falls_by(claim: Claim, members: Iterable[Member]) -> tuple[str, ...]:
    """Return the records outside the published pool that make a claim fail, as `PoolVerdict` has them."""
    share = claim.expect if isinstance(claim.expect, claim_file.Share) else None
    members = [member for member in members if member.is_selected or share is not None]
    published = [member for member in members if member.record.published]
    later = [member for member in members if not member.record.published]
    if not later or not outcome(claim, published)[0]:
        return ()
    return _breaking(claim, published, later, selected_last=share is not None and share.bounds.high is not None)


def outcome(claim: Claim, members: Sequence[Member]) -> tuple[bool, str]:
    """Return True if a claim holds for some records, and the result in words."""
    expect = claim.expect
    selected = [member for member in members if member.is_selected]
    count = len(selected)
    if isinstance(expect, claim_file.Number):
        return _is_within(count, 1, expect.bounds), str(count)
    if isinstance(expect, claim_file.Share):
        if not members:
            return False, "no record to take a share of"
        share = f"{count} of {len(members)} ({100 * count / len(members):.1f}%)"
        return _is_within(count * 10_000, len(members), expect.bounds), share
    if isinstance(expect, claim_file.Keys):
        rows = [member.record.name for member in selected]
        missing = ", ".join(key for key in expect.keys if key not in rows)
        further = ", ".join(key for key in rows if key not in expect.keys)
        differences = [f"{word} {keys}" for word, keys in (("without", missing), ("also", further)) if keys]
        return not differences, "; ".join(differences) or ", ".join(expect.keys)
    if isinstance(expect, claim_file.Counts):
        tally = Counter(value for member in selected for value in member.wanted.values(member.record))
        counts = {value: str(tally[value]) for value in expect.counts}
        return _differences(counts, [value for value, expected in expect.counts.items() if tally[value] != expected])
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
        low, high = expect.bounds
        if high == 0:
            return "none"
        return str(low) if low == high else _bounded(low, high)
    if isinstance(expect, claim_file.Share):
        return _bounded(*(None if end is None else f"{end / 100:g}%" for end in expect.bounds))
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
"""The endings of values of `cell_attribute`, which begin with the name of the column."""


def agreement_of(name: str, cells: Mapping[str, int]) -> tuple[int, int]:
    """Return the number of equal cells of a column and of all its cells; of all columns for the empty name."""
    equal, different = (
        sum(count for cell, count in cells.items() if cell == name + ending or (not name and cell.endswith(ending)))
        for ending in (EQUAL, DIFFERENT)
    )
    return equal, equal + different


def _agreement_text(numbers: Mapping[str, tuple[int, int]]) -> str:
    return ", ".join(f"{name} {equal} of {total}".strip() for name, (equal, total) in numbers.items())


def _bounded(low: object, high: object) -> str:
    ends = (("at least", low), ("at most", high))
    return ", ".join(f"{word} {end}" for word, end in ends if end is not None)


def cell_attribute(expect: claim_file.Agreement, pool: Pool) -> tuple[Attribute, tuple[str, ...]]:
    """Return the attribute of the cells that two readers coded, each equal or different, and the compared columns."""
    every = {column.name: column for column in coding.columns(pool.taxonomy)}
    for name in filter(None, expect.agreement):
        if name not in every:
            raise CommandUseError(f"{quote(name)} cannot be coded{suggestion(name, list(every))}")
    sheets = [_read(sheet, tuple(every.values()), pool) for sheet in expect.sheets]
    compared = tuple(name for name in every if "" in expect.agreement or name in expect.agreement)

    def values(record: Any) -> tuple[str, ...]:
        codes = sheets[0].codes.get(record.key)
        if codes is None:
            return ()
        # The corpus is the second reader of a single sheet.
        second = sheets[1] if len(sheets) > 1 else coding.as_coded([record], [every[name] for name in compared])
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
        # K103: a record that was removed since; it is missing from the number of cells.
        if finding.severity is Severity.ERROR and finding.code != "K103":
            lines.setdefault(finding.message, []).append(str(finding.location.line))
    if lines:
        wrong = (f"{file.path}:{', '.join(numbers)}: {message}" for message, numbers in lines.items())
        raise CommandUseError("; ".join(wrong))
    return sheet


class Judge:
    """Evaluates claims on one corpus; filters that claims share are parsed and applied once."""

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
        self._other_readings: dict[str, list[tuple[str, Paper]]] = {}  # by paper, each with its disputed tag
        for dispute in disputes:
            paper = self._papers.get(dispute.record)
            facet = self._disputable.get(dispute.tag)
            if dispute.state is State.OPEN and paper is not None and facet is not None:
                others = [(dispute.tag, with_value(paper, facet, dispute.tag, value)) for value in dispute.alternatives]
                self._other_readings.setdefault(paper.key, []).extend(others)

    def records(self, kind: Over, claim: Claim) -> Sequence[Any]:
        """Return the records of a kind that the claim could be about."""
        if kind is Over.SCALE:
            published = {key: paper.published for key, paper in self._papers.items()}
            return [item._replace(published=published.get(item.record or "")) for item in claim.observations]
        return self.pool.papers if kind is Over.PAPERS else self.pool.exclusions

    def filters(self, claim: Claim) -> dict[Over, Filters]:
        """Return the claim's filters by kind of records; a `CommandUseError` for an unknown filter, field or term."""
        expect, of = claim.expect, whole_of(claim)
        if len(claim.over) > 1:
            for condition in (*claim.scope, *claim.where, *of):
                if (error := self.wrong_everywhere(condition, claim.over)) is not None:
                    raise error
        filters = {}
        for kind in claim.over:
            by = None
            if isinstance(expect, (claim_file.Counts, claim_file.Values)):
                by = find(expect.by, self.attributes[kind])
                values = expect.counts if isinstance(expect, claim_file.Counts) else expect.values.values()
                for value in values:
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
        """Return the verdict on a claim, with those over each pool unless `over_pools` is False."""
        expected = expected_text(claim)
        try:
            filters = self.filters(claim)
        except CommandUseError as error:
            problem = _sentence(error)
            return Verdict(claim, False, expected, f"cannot be evaluated: {problem}", problem=problem)
        members = self._members(claim, filters)
        holds, found = outcome(claim, members)
        rows = tuple(member.record.name for member in members if member.is_selected)
        pools = self._pools(claim, PoolVerdict(holds, found), members, filters) if over_pools else {}
        return Verdict(claim, holds, expected, found, rows, self._contested(filters), pools=pools)

    def _pools(
        self, claim: Claim, written: PoolVerdict, members: Sequence[Member], initial: Mapping[Over, Filters]
    ) -> dict[PoolName, PoolVerdict]:
        """Return the verdict over each pool; `written`, `members` and `initial` are of the claim as it is written."""
        rest = tuple(c for c in claim.scope if (c.field.rstrip("= "), c.alternatives) != ("published", ("yes",)))
        if len(rest) == len(claim.scope):
            return {PoolName.TODAY: written, **self._with_candidates(claim, members, initial)}
        if claim.only is not None:
            return {claim.only: written}
        current = claim._replace(scope=rest)
        filters = self.filters(current)
        if any(self._scoped(current, kind, filters) != self._scoped(claim, kind, initial) for kind in filters):
            members = self._members(current, filters)
        verdicts = {PoolName.PUBLISHED: written, PoolName.TODAY: _pool_verdict(current, members)}
        return {**verdicts, **self._with_candidates(current, members, filters)}

    def _with_candidates(
        self, claim: Claim, members: Sequence[Member], filters: Mapping[Over, Filters]
    ) -> dict[PoolName, PoolVerdict]:
        """Return the verdict over the current pool with the candidates, if there are any."""
        if self.candidates is None:
            return {}
        if Over.PAPERS not in filters:
            return {PoolName.CANDIDATES: _pool_verdict(claim, members)}
        named_keys = claim.expect.values if isinstance(claim.expect, claim_file.Values) else None
        about = [candidate for candidate in self.candidates if named_keys is None or candidate.name in named_keys]
        added, undecided = candidate_members(about, filters[Over.PAPERS], self._disputable)
        members = [*members, *added]
        verdict = _pool_verdict(claim, members)
        possible = could_fall_by(claim, members, undecided) if verdict.holds else ()
        counted = tuple(member.record.name for member in added if member.is_selected)
        verdict = verdict._replace(could_fall_by=possible, counted=counted, undecided=len(undecided))
        return {PoolName.CANDIDATES: verdict}

    def _members(self, claim: Claim, filters: Mapping[Over, Filters]) -> list[Member]:
        """Return the records that a claim counts, or all records that a share is taken of."""
        members = []
        for kind, wanted in filters.items():
            in_scope = self._scoped(claim, kind, filters)
            within = wanted.of.select(in_scope) if wanted.of.filters else in_scope
            if isinstance(claim.expect, claim_file.Share):
                members += [Member(record, wanted, wanted.where.matches(record)) for record in within]
            else:
                members += [Member(record, wanted, True) for record in wanted.where.select(within)]
        if isinstance(claim.expect, claim_file.Agreement):
            members = [member for member in members if any(member.wanted.values(member.record))]
        if isinstance(claim.expect, claim_file.Values):
            members = [member for member in members if member.record.name in claim.expect.values]
        return members

    def _scoped(self, claim: Claim, kind: Over, filters: Mapping[Over, Filters]) -> Sequence[Any]:
        """Return the records of a kind that pass the claim's scope; many claims share one."""
        key = (kind, len(claim.over) > 1, _content(claim.scope))
        if key not in self._in_scope:
            self._in_scope[key] = filters[kind].scope.select(self.records(kind, claim))
        return self._in_scope[key]

    def _query(self, kind: Over, conditions: Sequence[Condition], over: Sequence[Over]) -> Query:
        """Return conditions as filters; in a claim over several kinds of records, without those that do not fit one."""
        key = (kind, len(over) > 1, _content(conditions))
        if key not in self._queries:
            if len(over) > 1:
                conditions = [condition for condition in conditions if self._error(condition, kind) is None]
            self._queries[key] = parse_conditions(conditions, self.attributes[kind])
        return self._queries[key]

    def _error(self, condition: Condition, kind: Over) -> CommandUseError | None:
        try:
            parse_conditions([condition], self.attributes[kind])
        except CommandUseError as error:
            return error
        return None

    def wrong_everywhere(self, condition: Condition, over: Sequence[Over]) -> CommandUseError | None:
        """Return the first error of a condition if it is wrong for each kind of records."""
        errors = [self._error(condition, kind) for kind in over]
        return None if None in errors else errors[0]

    def _contested(self, filters: Mapping[Over, Filters]) -> tuple[str, ...]:
        """Return the papers whose part in a claim depends on an open dispute, in their order."""
        wanted = filters.get(Over.PAPERS)
        if wanted is None or not self._other_readings:
            return ()
        tags = wanted.disputed_tags(self._disputable)
        contested = []
        for key, paper in self._papers.items():
            others = [other for tag, other in self._other_readings.get(key, ()) if tag in tags]
            if others:
                part = wanted.part(paper)
                if any(wanted.part(other) != part for other in others):
                    contested.append(key)
        return tuple(contested)


def _pool_verdict(claim: Claim, members: Sequence[Member]) -> PoolVerdict:
    holds, found = outcome(claim, members)
    return PoolVerdict(holds, found, () if holds else falls_by(claim, members))


def _content(conditions: Sequence[Condition]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((condition.field, condition.alternatives) for condition in conditions)


def _problems(file: ClaimFile, index: int, judge: Judge, problem: str) -> list[Finding]:
    """Return the errors in the filters of a claim that cannot be evaluated; its problem if they have none."""
    claim = file.claims[index]
    findings = []
    for condition in (*claim.scope, *claim.where, *whole_of(claim)):
        error = judge.wrong_everywhere(condition, claim.over)
        if error is not None:
            findings.append(Finding("C102", _sentence(error), condition.location, claim.id))
    return findings or [Finding("C102", problem, file.locate(index, "expect"), claim.id)]


def _sentence(error: CommandUseError) -> str:
    return str(error).replace("\n", ". ").rstrip(".")
