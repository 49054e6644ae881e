"""Evaluates the claims of a corpus about itself.

`evaluate` depends on claims and records alone, so that the same claims can be evaluated on two corpora. A claim about
the published pool has the scope `published: "yes"`; without this scope it is also evaluated over the current pool.
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

_QueryKey: TypeAlias = tuple[Over, bool, tuple[tuple[str, tuple[str, ...]], ...]]
"""A kind of records, True if the claim is about several kinds, and its conditions: what a parsed query depends on."""


class PoolVerdict(NamedTuple):
    """The verdict on a claim over one pool. Only that over the pool with candidates has the last three attributes.

    Attributes:
        found: The result in words.
        falls_by: The keys or ids of the records outside the published pool that make the claim fail: with all other
            records it holds. Empty if the claim holds, and if it also fails over the published pool.
        could_fall_by: The candidates that make the claim fail in some reading of their undecided tags.
        counted: The candidates that the claim counts.
        undecided: The number of candidates for which undecided tags decide if the claim counts them.
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
        return next((position for position, name in enumerate(self.counted, 1) if name in self.falls_by), 0)


class Verdict(NamedTuple):
    """The verdict on a claim as it is written.

    Attributes:
        expected: The expectation in words.
        found: The result in words.
        rows: The keys or ids of the records that the claim counts.
        contested: The keys of the papers for which an open dispute decides if the claim counts them.
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
    """Return the verdict on each claim. Without candidates, the pool with candidates is not evaluated."""
    judge = Judge(pool, candidates, disputes)
    return tuple(judge.verdict(claim) for claim in claims)


def falling_today(verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """Return the ids of the claims that hold over the published pool and fail over the current one."""
    over_both = [verdict for verdict in verdicts if verdict.pools.keys() >= {PoolName.PUBLISHED, PoolName.TODAY}]
    return tuple(verdict.claim.id for verdict in over_both if verdict.holds and not verdict.pools[PoolName.TODAY].holds)


def check(file: ClaimFile, pool: Pool, verdicts: Iterable[Verdict] = ()) -> tuple[Finding, ...]:
    """Return the findings of the file: errors of decoding, and claims that fail or cannot be evaluated.

    Claims without one of the `verdicts` are evaluated here.
    """
    findings = list(file.findings)
    judge = Judge(pool)
    verdicts_by_id = {verdict.claim.id: verdict for verdict in verdicts}
    record_names = {record.name for record in pool.records}
    for index, claim in enumerate(file.claims):
        verdict = verdicts_by_id.get(claim.id) or judge.verdict(claim, over_pools=False)
        if verdict.problem:
            findings += _problems(file, index, judge, verdict.problem)
        elif not verdict.holds:
            texts = (claim.claim, verdict.expected, verdict.found)
            sentence, expected, found = (printable(text, limit=_SENTENCE_LIMIT) for text in texts)
            message = f"claim fails: {sentence} Expected: {expected}; found: {found}"
            findings.append(Finding("C101", message, file.locate(index, "claim"), claim.id))
        names = record_names.union(observation.name for observation in claim.observations)
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
    """The contribution of a record to a claim.

    Attributes:
        selected: True if the record passes the filters `where`.
        counted: True if it belongs to the whole that a share is taken of; also if the claim is about no share.
        values: Its values in the field that the claim counts by.
    """

    selected: bool
    counted: bool
    values: tuple[str, ...]


class Filters(NamedTuple):
    """A claim's filters on one kind of records.

    Attributes:
        scope: The filters on the records that the claim is about.
        where: The filters on the records that it counts.
        of: The filters on the whole that a share is taken of.
        by: The field that the claim counts by, if any.
        compared: The columns of coding sheets for which it compares readers.
    """

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
        """Return the values of a record in the field `by`, or an empty text; nothing without such a field."""
        if self.by is None:
            return ()
        return self.by.values(record) or ("",)

    def disputed_tags(self, facets: Mapping[str, Facet]) -> set[str]:
        """Return the tags that the claim depends on; `facets` has the facets of all tags that can be disputed."""
        fields = {*self.compared, *(condition.attribute.name for condition in self.conditions)}
        if self.by is not None:
            fields.add(self.by.name)
        return {tag for tag, facet in facets.items() if tag in fields or facet.field in fields}


class Member(NamedTuple):
    """A record that a claim is about; if not `is_selected`, it only belongs to the whole that a share is taken of."""

    record: Record
    wanted: Filters
    is_selected: bool


def candidate_members(
    candidates: Iterable[Candidate], wanted: Filters, facets: Mapping[str, Facet]
) -> tuple[list[Member], list[list[Member]]]:
    """Return the candidates that a claim is about by their decided tags, and variants of undecided candidates.

    A candidate is undecided if the claim depends on its undecided tags. Each of its readings that decides these tags
    gives a variant, if the claim is about the candidate by that reading. `facets` are as in `Filters.disputed_tags`.
    """
    members: list[Member] = []
    variants_of_undecided: list[list[Member]] = []
    for candidate in candidates:
        tags = _undecided_tags((*wanted.scope.filters, *wanted.of.filters), candidate)
        if tags is None:
            continue
        tags_of_where = _undecided_tags(wanted.where.filters, candidate)
        could_be_selected = tags_of_where is not None
        if tags_of_where is not None:
            tags |= tags_of_where
            if wanted.by is not None and wanted.by.name in candidate.open_tags:
                tags.add(wanted.by.name)
        if not tags:
            members.append(Member(candidate.paper, wanted, could_be_selected))
            continue
        variants = []
        for reading in candidate.readings:
            if tags.isdisjoint(candidate.open_tags_without(reading, facets)):
                paper = candidate.paper_as_read(reading, facets)
                part = wanted.part(paper)
                if part is not None and part.counted:
                    variants.append(Member(paper, wanted, part.selected))
        variants_of_undecided.append(variants)
    return members, variants_of_undecided


def _undecided_tags(filters: Sequence[Filter], candidate: Candidate) -> set[str] | None:
    """Return the undecided tags that filters depend on; None if the candidate fails them whatever these become."""
    paper, open_tags = candidate.paper, candidate.open_tags
    names = {condition.attribute.name for condition in filters if is_open(condition, paper, open_tags)}
    passes = all(condition.attribute.name in names or condition.matches(paper) for condition in filters)
    return names if passes else None


def could_fall_by(claim: Claim, members: Sequence[Member], undecided: Iterable[list[Member]]) -> tuple[str, ...]:
    """Return the undecided candidates, given by their variants, that could make a claim fail."""
    with_variants = [variants for variants in undecided if variants]
    # What is worst for a claim depends on its bounds: candidates that it counts, or a larger whole of a share.
    for is_selected in (True, False):

        def favour(member: Member, is_selected: bool = is_selected) -> tuple[bool, bool]:
            """Sort the variant that is worst for the claim first: as selected as asked, then failing alone."""
            return member.is_selected is not is_selected, outcome(claim, [*members, member])[0]

        worst = [variants[0] if len(variants) == 1 else min(variants, key=favour) for variants in with_variants]
        if not outcome(claim, [*members, *worst])[0]:
            return _breaking(claim, members, worst, selected_last=is_selected)
    return ()


def _breaking(
    claim: Claim, members: Iterable[Member], later: Sequence[Member], *, selected_last: bool
) -> tuple[str, ...]:
    """Add later members one after another, and return the names of the members that would make the claim fail.

    Such a member is left out again. With `selected_last`, members that only enlarge the whole of a share come first,
    since alone they never make the share too large; without it, they come last.
    """
    accepted = list(members)
    breaking = set()
    for member in sorted(later, key=lambda member: member.is_selected is selected_last):
        accepted.append(member)
        if not outcome(claim, accepted)[0]:
            accepted.pop()
            breaking.add(member.record.name)
    return tuple(member.record.name for member in later if member.record.name in breaking)


def falls_by(claim: Claim, members: Iterable[Member]) -> tuple[str, ...]:
    """Return the records outside the published pool that make a claim fail; see `PoolVerdict.falls_by`."""
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
        differences = []
        if missing:
            differences.append(f"without {missing}")
        if further:
            differences.append(f"also {further}")
        return not differences, "; ".join(differences) or ", ".join(expect.keys)
    if isinstance(expect, claim_file.Values):
        values = {member.record.name: member.wanted.values(member.record) for member in selected}
        texts = dict.fromkeys(expect.values, "not among the rows")
        texts |= {key: " and ".join(values[key]) or "without a value" for key in texts if key in values}
        return _compare(texts, [key for key, value in expect.values.items() if value not in values.get(key, ())])
    tally = Counter(value for member in selected for value in member.wanted.values(member.record))
    if isinstance(expect, claim_file.Counts):
        counts = {value: str(tally[value]) for value in expect.counts}
        return _compare(counts, [value for value, expected in expect.counts.items() if tally[value] != expected])
    agreement = {name: agreement_of(name, tally) for name in expect.agreement}
    return agreement == expect.agreement, _agreement_text(agreement)


def _compare(texts: Mapping[str, str], wrong: Sequence[str]) -> tuple[bool, str]:
    """Return True if no name is wrong, and in words the results of the wrong names, or else of all names."""
    rest = "; the rest as expected" if 0 < len(wrong) < len(texts) else ""
    return not wrong, ", ".join(f"{name} {texts[name]}" for name in (wrong or texts)) + rest


def _is_within(value: int, factor: int, bounds: Bounds) -> bool:
    """Return True if a value is within bounds that are multiplied by a factor."""
    if bounds.low is not None and value < bounds.low * factor:
        return False
    return bounds.high is None or value <= bounds.high * factor


def expected_text(claim: Claim) -> str:
    """Return the expectation of a claim in words."""
    expect = claim.expect
    if isinstance(expect, claim_file.Number):
        low, high = expect.bounds
        if high == 0:
            return "none"
        return str(low) if low == high else _bounded(low, high)
    if isinstance(expect, claim_file.Share):
        low_text, high_text = (None if bound is None else f"{bound / 100:g}%" for bound in expect.bounds)
        return _bounded(low_text, high_text)
    if isinstance(expect, claim_file.Keys):
        return ", ".join(expect.keys)
    if isinstance(expect, claim_file.Agreement):
        return _agreement_text(expect.agreement)
    pairs: Mapping[str, object] = expect.counts if isinstance(expect, claim_file.Counts) else expect.values
    return ", ".join(f"{name} {value}" for name, value in pairs.items())


def whole_of(claim: Claim) -> Sequence[Condition]:
    """Return the filters on the whole that a share is taken of; nothing for another claim."""
    return claim.expect.of if isinstance(claim.expect, claim_file.Share) else ()


EQUAL, DIFFERENT = " equal", " different"
"""The endings of values of `cell_attribute`, which begin with the name of the column: `topology equal`."""


def agreement_of(column: str, cells: Mapping[str, int]) -> tuple[int, int]:
    """Return the number of a column's equal cells and of all its cells; for the empty name, of all columns.

    `cells` has the number of cells by value of `cell_attribute`.
    """
    equal = different = 0
    for cell, count in cells.items():
        if cell == column + EQUAL or (not column and cell.endswith(EQUAL)):
            equal += count
        elif cell == column + DIFFERENT or (not column and cell.endswith(DIFFERENT)):
            different += count
    return equal, equal + different


def _agreement_text(agreement: Mapping[str, tuple[int, int]]) -> str:
    return ", ".join(f"{name} {equal} of {total}".strip() for name, (equal, total) in agreement.items())


def _bounded(low: object, high: object) -> str:
    """Return bounds in words; None stands for no bound."""
    bounds = (("at least", low), ("at most", high))
    return ", ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)


def cell_attribute(expect: claim_file.Agreement, pool: Pool) -> tuple[Attribute, tuple[str, ...]]:
    """Return the attribute of the cells that two readers coded, and the names of the compared columns.

    A paper has a value for each of its cells, such as `topology equal` or `topology different`.
    """
    columns = {column.name: column for column in coding.columns(pool.taxonomy)}
    for name in filter(None, expect.agreement):
        if name not in columns:
            raise CommandUseError(f"{quote(name)} cannot be coded{suggestion(name, list(columns))}")
    sheets = [_read_sheet(sheet, tuple(columns.values()), pool) for sheet in expect.sheets]
    compares_all = "" in expect.agreement
    compared = tuple(name for name in columns if compares_all or name in expect.agreement)

    def values(record: Any) -> tuple[str, ...]:
        first = sheets[0].codes.get(record.key)
        if first is None:
            return ()
        if len(sheets) > 1:
            second_sheet = sheets[1]
        else:  # the corpus is the second reader of a single sheet
            second_sheet = coding.tags_as_sheet([record], [columns[name] for name in compared])
        second = second_sheet.codes.get(record.key, {})
        coded_twice = [name for name in compared if name in first and name in second]
        return tuple(name + (EQUAL if first[name] == second[name] else DIFFERENT) for name in coded_twice)

    return Attribute("agreement", "Agreement", ValueKind.TEXT, values), compared


def _read_sheet(file: claim_file.AuditSheet, columns: Sequence[coding.Column], pool: Pool) -> coding.Sheet:
    if file.text is None:
        raise CommandUseError(f"cannot read the sheet {quote(file.path)}")
    sheet, findings = coding.decode(file.text, file.path, columns, [paper.key for paper in pool.papers])
    lines_by_message: dict[str, list[str]] = {}
    for finding in findings:
        # K103: the record was removed later; the claim counts fewer cells than expected.
        if finding.severity is Severity.ERROR and finding.code != "K103":
            lines_by_message.setdefault(finding.message, []).append(str(finding.location.line))
    if lines_by_message:
        messages = [f"{file.path}:{', '.join(lines)}: {message}" for message, lines in lines_by_message.items()]
        raise CommandUseError("; ".join(messages))
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
        self._cell_attributes: dict[str, tuple[Attribute, tuple[str, ...]]] = {}  # by claim id
        self._queries: dict[_QueryKey, Query] = {}
        self._in_scope: dict[_QueryKey, tuple[Any, ...]] = {}
        self._facets_by_tag = disputable(pool.taxonomy)
        self._papers = {paper.key: paper for paper in pool.papers}
        # By key, the disputed tags of a paper, each with the paper as it would be by another reading of the tag.
        self._other_readings: dict[str, list[tuple[str, Paper]]] = {}
        for dispute in disputes:
            paper = self._papers.get(dispute.record)
            facet = self._facets_by_tag.get(dispute.tag)
            if dispute.state is State.OPEN and paper is not None and facet is not None:
                for value in dispute.alternatives:
                    other = with_value(paper, facet, dispute.tag, value)
                    self._other_readings.setdefault(paper.key, []).append((dispute.tag, other))

    def records(self, kind: Over, claim: Claim) -> Sequence[Any]:
        """Return all records of a kind; an observation of scale is published if its paper is."""
        if kind is Over.SCALE:
            published = {key: paper.published for key, paper in self._papers.items()}
            return [item._replace(published=published.get(item.record or "")) for item in claim.observations]
        return self.pool.papers if kind is Over.PAPERS else self.pool.exclusions

    def filters(self, claim: Claim) -> dict[Over, Filters]:
        """Return the claim's filters by kind of records; raise `CommandUseError` for an unknown field or term."""
        expect, of = claim.expect, whole_of(claim)
        if len(claim.over) > 1:
            for condition in (*claim.scope, *claim.where, *of):
                error = self.wrong_everywhere(condition, claim.over)
                if error is not None:
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
                if claim.id not in self._cell_attributes:
                    self._cell_attributes[claim.id] = cell_attribute(expect, self.pool)
                by, compared = self._cell_attributes[claim.id]
            scope = self._query(kind, claim.scope, claim.over)
            where = self._query(kind, claim.where, claim.over)
            filters[kind] = Filters(scope, where, self._query(kind, of, claim.over), by, compared)
        return filters

    def verdict(self, claim: Claim, *, over_pools: bool = True) -> Verdict:
        """Return the verdict on a claim, with the verdicts over each pool unless `over_pools` is False."""
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
        """Return the verdict over each pool; `written`, `members` and `initial` are those of the claim as written."""

        def is_about_published_pool(condition: Condition) -> bool:
            return condition.field.rstrip("= ") == "published" and condition.alternatives == ("yes",)

        other_conditions = [condition for condition in claim.scope if not is_about_published_pool(condition)]
        if len(other_conditions) == len(claim.scope):
            return {PoolName.TODAY: written, **self._with_candidates(claim, members, initial)}
        if claim.only is not None:
            return {claim.only: written}
        current = claim._replace(scope=tuple(other_conditions))
        filters = self.filters(current)
        if any(self._scoped(current, kind, filters) != self._scoped(claim, kind, initial) for kind in filters):
            members = self._members(current, filters)
        verdicts = {PoolName.PUBLISHED: written, PoolName.TODAY: _pool_verdict(current, members)}
        return {**verdicts, **self._with_candidates(current, members, filters)}

    def _with_candidates(
        self, claim: Claim, members: Sequence[Member], filters: Mapping[Over, Filters]
    ) -> dict[PoolName, PoolVerdict]:
        """Return the verdict over the current pool with the candidates; nothing if candidates were not given."""
        if self.candidates is None:
            return {}
        if Over.PAPERS not in filters:
            return {PoolName.CANDIDATES: _pool_verdict(claim, members)}
        candidates = self.candidates
        if isinstance(claim.expect, claim_file.Values):
            candidates = [candidate for candidate in candidates if candidate.name in claim.expect.values]
        added, undecided = candidate_members(candidates, filters[Over.PAPERS], self._facets_by_tag)
        members = [*members, *added]
        verdict = _pool_verdict(claim, members)
        possible = could_fall_by(claim, members, undecided) if verdict.holds else ()
        counted = tuple(member.record.name for member in added if member.is_selected)
        verdict = verdict._replace(could_fall_by=possible, counted=counted, undecided=len(undecided))
        return {PoolName.CANDIDATES: verdict}

    def _members(self, claim: Claim, filters: Mapping[Over, Filters]) -> list[Member]:
        """Return the records that a claim counts; for a share, also the others that it is taken of."""
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
        """Return conditions as filters; in a claim about several kinds of records, without those on unknown fields."""
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
        """Return the papers that contribute otherwise to a claim by another reading of a tag in open dispute."""
        wanted = filters.get(Over.PAPERS)
        if wanted is None or not self._other_readings:
            return ()
        tags = wanted.disputed_tags(self._facets_by_tag)
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
    """Return the errors in the filters of a claim that cannot be evaluated; if there are none, its problem."""
    claim = file.claims[index]
    findings = []
    for condition in (*claim.scope, *claim.where, *whole_of(claim)):
        error = judge.wrong_everywhere(condition, claim.over)
        if error is not None:
            findings.append(Finding("C102", _sentence(error), condition.location, claim.id))
    return findings or [Finding("C102", problem, file.locate(index, "expect"), claim.id)]


def _sentence(error: CommandUseError) -> str:
    return str(error).replace("\n", ". ").rstrip(".")
