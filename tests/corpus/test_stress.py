"""Robustness of claims: what `stress` says about small corpora is what trying every set of changes says."""

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchtrace_corpus.base.findings import Location, Severity
from orchtrace_corpus.corpus.analysis import stress as core
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.claims import evaluate
from orchtrace_corpus.corpus.analysis.query import parse
from orchtrace_corpus.corpus.analysis.stress import Change, ChangeKind, Robustness, near_misses, possible_tags
from orchtrace_corpus.corpus.model.claim_file import (
    Bounds,
    Claim,
    Counts,
    Expectation,
    Keys,
    Number,
    Over,
    Share,
    Values,
)
from orchtrace_corpus.corpus.model.disputes import Dispute, Reading, disputable, value_of, values_for
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, Tag
from orchtrace_corpus.corpus.model.taxonomy import Condition, Facet, Kind, Role, TagRule, Taxonomy, Term
from tests.corpus.changed_pools import apply_changes
from tests.effort import tries

NOWHERE = Location("claims.yaml", 1, 1)


def conditions(**filters: str) -> tuple[Condition, ...]:
    return tuple(Condition(field, (value,), NOWHERE) for field, value in filters.items())


def rule(name: str, when: tuple[Condition, ...], require: tuple[Condition, ...]) -> TagRule:
    return TagRule(name, "It is so.", Severity.ERROR, when, require, (), {})


def terms(*names: str) -> tuple[Term, ...]:
    return tuple(Term(name, name.title(), "It is so.") for name in names)


UNIT = Facet("unit", "Unit", Kind.SINGLE, Role.AXIS, "It is so.", terms("a", "b"), allows_na=True)
RL = Facet("rl", "RL", Kind.SINGLE, Role.FACET, "It is so.", terms("full", "none"))
STEPS = Facet(
    "steps", "Steps", Kind.LEVELS, Role.AXIS, "It is so.", terms("spawn", "stop"), terms("explicit", "designed")
)
TOOLS = Facet("tools", "Tools", Kind.MANY, Role.FACET, "It is so.", terms("x", "y", "z"), required=False)
STAGE = Facet("stage", "Stage", Kind.SINGLE, Role.FACET, "It is so.", terms("early", "late"))
RULES = (
    rule("trained", conditions(steps="explicit"), conditions(rl="full")),
    rule("decides", conditions(unit="b"), (Condition("steps!=", ("",), NOWHERE),)),
)
TAXONOMY = Taxonomy("Toy", "", (UNIT, RL, STEPS), (STAGE,), (), (), RULES)
KNOWN = disputable(TAXONOMY)


# Small corpora, their disputes, and claims about them

LEVELS = st.dictionaries(st.sampled_from(["spawn", "stop"]), st.sampled_from(["explicit", "designed"]))


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    papers = [
        Paper(
            key=f"p{number}",
            year=2020 + number,
            added="2026-01-01",
            tags={
                "unit": draw(st.sampled_from(["a", "b", "NA"])),
                "rl": draw(st.sampled_from(["full", "none"])),
                "steps": draw(LEVELS),
            },
        )
        for number in range(draw(st.integers(0, 4)))
    ]
    exclusions = [
        Exclusion(
            id=f"E00{number}",
            screened="2025-12-31",
            tags={"stage": draw(st.sampled_from(["early", "late"]))},
            near_miss=draw(st.sampled_from([None, "It came close."])),
        )
        for number in range(draw(st.integers(0, 2)))
    ]
    return Pool(TAXONOMY, tuple(papers), tuple(exclusions))


@st.composite
def disputes_about(draw: st.DrawFn, pool: Pool) -> tuple[Dispute, ...]:
    found = []
    for paper in pool.papers:
        for tag, facet in KNOWN.items():
            if draw(st.integers(0, 3)) == 0:
                stands = value_of(paper, facet, tag)
                others = [value for value in values_for(facet) if value != stands]
                read = draw(st.lists(st.sampled_from(others), min_size=1, max_size=2, unique=True))
                readings = (Reading((stands,), "one"), Reading(tuple(read), "two"))
                found.append(Dispute(paper.key, tag, stands, readings, "So.", "Somewhere."))
    return tuple(found)


FILTERS = st.sampled_from(
    [
        ("unit", ("a",)),
        ("unit", ("a", "b")),
        ("unit!=", ("a",)),
        ("unit", ("NA",)),
        ("rl", ("full",)),
        ("rl!=", ("full",)),
        ("steps", ("explicit",)),
        ("steps!=", ("designed",)),
        ("steps", ("",)),
        ("steps!=", ("",)),
        ("stop", ("explicit",)),
        ("stop", ("",)),
        ("stop!=", ("designed",)),
        ("spawn", ("designed", "explicit")),
        ("year>=", ("2021",)),
        ("key", ("p0", "E000")),
    ]
)


@st.composite
def queries(draw: st.DrawFn, most: int = 2) -> tuple[Condition, ...]:
    chosen = draw(st.lists(FILTERS, max_size=most, unique_by=lambda one: one[0]))
    return tuple(Condition(field, alternatives, NOWHERE) for field, alternatives in chosen)


@st.composite
def expectations(draw: st.DrawFn) -> Expectation:
    number = st.integers(0, 4)
    key = st.sampled_from(["p0", "p1", "p2", "E000", "gone"])
    kind = draw(st.sampled_from(["number", "share", "keys", "counts", "values"]))
    if kind == "number":
        return Number(Bounds(*draw(st.sampled_from([(0, 0), (1, 1), (2, 2), (None, 1), (None, 2), (1, None), (1, 3)]))))
    if kind == "share":
        ends = st.sampled_from([2_500, 5_000, 6_666])
        bounds = draw(st.sampled_from([Bounds(None, draw(ends)), Bounds(draw(ends), None), Bounds(1_000, draw(ends))]))
        return Share(bounds, draw(queries(1)))
    if kind == "keys":
        return Keys(tuple(draw(st.lists(key, max_size=3, unique=True))))
    by = draw(st.sampled_from(["unit", "rl", "stop", "spawn"]))
    value = {"unit": ["a", "b", "NA"], "rl": ["full", "none"]}.get(by, ["explicit", "designed"])
    if kind == "counts":
        return Counts(by, draw(st.dictionaries(st.sampled_from(value), number, min_size=1)))
    return Values(by, draw(st.dictionaries(key, st.sampled_from(value), min_size=1, max_size=2)))


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    expect = draw(expectations())
    over = draw(st.sampled_from([(Over.PAPERS,), (Over.PAPERS,), (Over.EXCLUSIONS,), (Over.PAPERS, Over.EXCLUSIONS)]))
    if Over.EXCLUSIONS not in over:
        return Claim("one", "So.", expect, "", "", over, (), draw(queries()))
    if isinstance(expect, (Counts, Values)):
        expect = Number(Bounds(0, 2))
    if isinstance(expect, Share):
        expect = Share(expect.bounds)
    where = draw(st.sampled_from([(), conditions(stage="early")]))
    return Claim("one", "So.", expect, "", "", over, (), where)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Claim, Pool, tuple[Dispute, ...]]:
    pool = draw(pools())
    return draw(claims()), pool, draw(disputes_about(pool))


# Trying everything


def every_tag() -> list[dict[str, Tag]]:
    """All tags that a record can have by the taxonomy's rules."""
    levels = [None, "explicit", "designed"]
    found = []
    for unit, rl, spawn, stop in product(["a", "b", "NA"], ["full", "none"], levels, levels):
        steps = {name: level for name, level in (("spawn", spawn), ("stop", stop)) if level}
        if (rl == "full" or "explicit" not in steps.values()) and (unit != "b" or steps):
            found.append({"unit": unit, "rl": rl, "steps": steps})
    return found


EVERY_TAG = every_tag()
Choice = tuple[Change, ...]


def flips(disputes: tuple[Dispute, ...], key: str, *, all_of_them: bool = False) -> list[Choice]:
    own = [dispute for dispute in disputes if dispute.record == key]
    choices = [
        [
            *([] if all_of_them else [()]),
            *((Change(ChangeKind.FLIP, key, one.tag, value),) for value in one.alternatives),
        ]
        for one in own
    ]
    return [tuple(change for part in parts for change in part) for parts in product(*choices)]


def entrances(key: str) -> list[Choice]:
    return [(Change(ChangeKind.TAKE_IN, key, tags=tags),) for tags in EVERY_TAG]


def choices(claim: Claim, pool: Pool, disputes: tuple[Dispute, ...]) -> list[list[Choice]]:
    """For each record, everything that it could be; of an exclusion to be left out only where the claim is about it."""
    found = [[*flips(disputes, paper.key), (Change(ChangeKind.LEAVE_OUT, paper.key),)] for paper in pool.papers]
    for exclusion in pool.exclusions:
        leaving = [(Change(ChangeKind.LEAVE_OUT, exclusion.id),)] if Over.EXCLUSIONS in claim.over else []
        entering = entrances(exclusion.id) if exclusion.near_miss else []
        found.append([(), *leaving, *entering])
    return found


def sets_of(size: int, options: list[list[Choice]]) -> Iterator[Choice]:
    """Every set of so many changes."""
    if not options:
        yield from [()] if size == 0 else []
        return
    for choice in options[0]:
        if len(choice) <= size:
            for rest in sets_of(size - len(choice), options[1:]):
                yield (*choice, *rest)


def breaks(claim: Claim, pool: Pool, changes: Choice) -> bool:
    return not evaluate([claim], apply_changes(pool, changes))[0].holds


def stressed(claim: Claim, pool: Pool, disputes: tuple[Dispute, ...]) -> Robustness:
    (found,) = core.stress([claim], pool, disputes)
    return found


@settings(deadline=None, max_examples=tries(400, 25))
@given(cases())
def test_no_smaller_set_breaks_the_claim(case: tuple[Claim, Pool, tuple[Dispute, ...]]) -> None:
    claim, pool, _ = case
    found = stressed(*case)
    options = choices(*case)

    assert found.holds == evaluate([claim], pool)[0].holds
    if not found.holds:
        assert found.smallest == ()
        return
    assert found.is_exact
    if found.smallest:
        assert breaks(claim, pool, found.smallest)
    for size in range(1, min(len(found.smallest) or 3, 3)):
        assert [changes for changes in sets_of(size, options) if breaks(claim, pool, changes)] == []


@settings(deadline=None, max_examples=tries(150, 15))
@given(cases())
def test_single_changes_and_all_at_once(case: tuple[Claim, Pool, tuple[Dispute, ...]]) -> None:
    claim, pool, disputes = case
    found = stressed(*case)
    if not found.holds:
        return

    alone = [changes[0] for changes in sets_of(1, choices(*case)) if breaks(claim, pool, changes)]
    for kind, told in (
        (ChangeKind.FLIP, found.flips),
        (ChangeKind.TAKE_IN, found.near_misses),
        (ChangeKind.LEAVE_OUT, found.left_out),
    ):
        assert {(one.record, one.tag) for one in told} == {(one.record, one.tag) for one in alone if one.kind is kind}
        assert all(breaks(claim, pool, (change,)) for change in told)
    every = [flips(disputes, paper.key, all_of_them=True) for paper in pool.papers]
    flipped = any(breaks(claim, pool, tuple(c for part in parts for c in part)) for parts in product(*every))
    assert bool(found.breaks_by_all_flips) == flipped
    taken = [entrances(exclusion.id) for exclusion in near_misses(pool)]
    assert bool(found.breaks_by_all_near_misses) == any(
        breaks(claim, pool, tuple(c for part in parts for c in part)) for parts in product(*taken)
    )


# What is easier to see in an example


def paper(key: str, unit: str = "NA", **steps: str) -> Paper:
    return Paper(key=key, added="2026-01-01", tags={"unit": unit, "rl": "full", "steps": steps})


def exclusion(number: int, near_miss: str | None = "It came close.") -> Exclusion:
    return Exclusion(id=f"E00{number}", screened="2025-12-31", tags={"stage": "early"}, near_miss=near_miss)


def about_a(expect: Expectation, scope: tuple[Condition, ...] = ()) -> Claim:
    return Claim("few-a", "Few are a.", expect, "", "", scope=scope, where=conditions(unit="a"))


def test_the_smallest_set_mixes_kinds_of_changes() -> None:
    pool = Pool(
        TAXONOMY, (paper("p0", "a"), *(paper(f"p{n}") for n in range(1, 5))), (exclusion(0), exclusion(1, None))
    )
    dispute = Dispute("p1", "unit", "NA", (Reading(("NA",), "one"), Reading(("a", "b"), "two")), "So.", "Here.")

    found = stressed(about_a(Share(Bounds(None, 4_000))), pool, (dispute,))

    assert [str(change) for change in found.smallest] == ["p1: unit read as a", "E000 taken in with unit a"]
    assert (found.flips, found.near_misses, found.left_out) == ((), (), ())
    assert (found.breaks_by_all_flips, found.breaks_by_all_near_misses) == (False, False)


def test_a_near_miss_from_outside_the_scope_changes_nothing() -> None:
    pool = Pool(TAXONOMY, (paper("p0", "a"),), (exclusion(0),))
    scoped = about_a(Number(Bounds(None, 1)), conditions(**{"added<=": "2025-01-01"}))

    assert stressed(scoped, pool, ()).near_misses == ()
    assert stressed(about_a(Number(Bounds(None, 1))), pool, ()).near_misses != ()


def test_an_exclusion_that_was_promoted_is_no_near_miss_any_more() -> None:
    promoted = exclusion(0)._replace(promoted_to="p0")

    assert near_misses(Pool(TAXONOMY, (), (promoted, exclusion(1), exclusion(2, None)))) == (exclusion(1),)


def test_a_claim_that_nothing_breaks() -> None:
    found = stressed(about_a(Number(Bounds(0, None))), Pool(TAXONOMY, (paper("p0"),), ()), ())

    assert (found.holds, found.smallest, found.is_exact) == (True, (), True)
    assert (found.breaks_by_all_flips, found.breaks_by_all_near_misses) == (None, None)


def test_too_many_readings_of_one_record_are_bounded_and_said_to_be() -> None:
    names = [f"t{number}" for number in range(11)]
    wide = Facet("steps", "Steps", Kind.LEVELS, Role.AXIS, "It is so.", terms(*names), terms("explicit"))
    taxonomy = Taxonomy("Toy", "", (wide,), (), (), ())
    pool = Pool(taxonomy, (Paper(key="p0", tags={"steps": dict.fromkeys(names, "explicit")}),), ())
    readings = (Reading(("explicit",), "one"), Reading(("none",), "two"))
    disputes = tuple(Dispute("p0", name, "explicit", readings, "So.", "Here.") for name in names)
    some = Claim("some", "Some are.", Number(Bounds(1, None)), "", "", where=conditions(steps="explicit"))

    found = stressed(some, pool, disputes)
    few = stressed(some, pool, disputes[:3])

    assert (found.is_exact, found.breaks_by_all_flips, len(found.smallest)) == (False, True, 1)
    assert (few.is_exact, few.breaks_by_all_flips) == (True, False)


def test_hypothetical_tags_keep_the_rules_that_they_decide() -> None:
    def possible(*filters: str) -> list[dict[str, Tag]]:
        return list(possible_tags(TAXONOMY, parse(filters, paper_attributes(TAXONOMY)).filters))

    assert {"rl": "none", "steps": {"stop": "explicit"}} not in possible("stop=explicit", "rl=none")
    assert {"rl": "none", "steps": {}} in possible("stop=explicit", "rl=none"), "for the other levels, too"
    assert {"unit": "b", "steps": {}} in possible("unit=b", "stop="), "spawn is free to meet the rule"
    assert {"unit": "b", "steps": {}} not in possible("unit=b", "steps=")
    assert possible() == [{}]


def test_hypothetical_tags_of_several_terms_are_as_many_as_it_takes() -> None:
    taxonomy = Taxonomy("Toy", "", (TOOLS,), (), (), ())
    filters = parse(["tools=x", "tools=y"], paper_attributes(taxonomy)).filters

    assert [tags.get("tools") for tags in possible_tags(taxonomy, filters)] == [
        ("x",),
        ("y",),
        ("z",),
        ("x", "y"),
        ("x", "z"),
        ("y", "z"),
        None,
    ]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Change(ChangeKind.FLIP, "p0", "stop", "explicit"), "p0: stop read as explicit"),
        (Change(ChangeKind.LEAVE_OUT, "p0"), "p0 left out"),
        (Change(ChangeKind.TAKE_IN, "E000"), "E000 taken in"),
        (
            Change(ChangeKind.TAKE_IN, "E000", tags={"unit": "a", "steps": {"stop": "explicit"}, "tools": ("x", "y")}),
            "E000 taken in with unit a, steps stop explicit, tools x and y",
        ),
        (Change(ChangeKind.TAKE_IN, "E000", tags={"steps": {}}), "E000 taken in with steps none"),
    ],
)
def test_changes_in_words(change: Change, text: str) -> None:
    assert str(change) == text
