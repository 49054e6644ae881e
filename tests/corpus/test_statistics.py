"""Counts: whole expected results on the toy corpus, invariants on selections, published figures on the real one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.corpus.analysis.attributes import exclusion_attributes, paper_attributes
from orchtrace_corpus.corpus.analysis.statistics import count, count_levels, coverage, cross, summarise
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.model.records import Pool
from orchtrace_corpus.corpus.render.statistics import typical_table
from tests.conftest import ROOT, run_corpus

FIELDS = ("style", "care", "water", "tools", "size", "year", "venue", "authors", "arxiv_id")


def test_counts_follow_the_vocabulary_and_absence_comes_last(toy: Corpus) -> None:
    assert list(toy.counts("style").items()) == [
        *(("formal", 1), ("cottage", 1), ("meadow", 1), ("gravel", 0), ("NA", 1)),
    ]
    assert list(toy.counts("tools").items()) == [("spade", 1), ("rake", 1), ("shears", 1), ("NA", 1), ("", 1)]
    assert list(toy.counts("water").items()) == [("daily", 1), ("weekly", 1), ("", 2)]
    assert list(toy.counts("year").items()) == [(1999, 1), (2021, 1), (2023, 2)]
    assert toy.counts("stage") == {"gate": 1, "path": 1}


def test_levels_count_every_term_at_every_level(toy: Corpus) -> None:
    facet = next(facet for facet in toy.taxonomy.papers if facet.field == "care")

    assert count_levels(toy.papers, facet).counts == {
        "water": {"daily": 1, "weekly": 1},
        "prune": {"daily": 0, "weekly": 2},
    }


def test_families_add_up_terms_that_share_a_code(toy: Corpus) -> None:
    counts = count(toy.papers, paper_attributes(toy.taxonomy)["style"])

    assert counts.families == {"S1": 1, "S2": 2, "S3": 0}


def test_coverage_names_empty_and_sparse_cells_but_not_na(toy: Corpus) -> None:
    attributes = paper_attributes(toy.taxonomy)

    found = coverage(toy.papers, attributes["style"], attributes["size"], sparse_limit=1)

    assert found.size == 8
    assert found.sparse == (("formal", "small"), ("cottage", "small"), ("meadow", "large"))
    assert found.empty == (
        ("formal", "large"),
        ("cottage", "large"),
        ("meadow", "small"),
        ("gravel", "small"),
        ("gravel", "large"),
    )


@given(st.lists(st.integers(0, 3), max_size=12), st.sampled_from(FIELDS), st.sampled_from(FIELDS))
def test_invariants_of_counting(toy: Corpus, chosen: list[int], rows: str, columns: str) -> None:
    papers = [toy.papers[index] for index in chosen]
    attributes = paper_attributes(toy.taxonomy)
    one, crossed = count(papers, attributes[rows]), cross(papers, attributes[rows], attributes[columns])

    assert one.total == len(papers)
    assert all(number > 0 or value in attributes[rows].allowed for value, number in one.counts.items())
    if rows not in ("care", "tools", "authors"):  # fields of one value: each record counts once
        assert sum(one.counts.values()) == len(papers)
    assert list(crossed.row_values) == list(one.counts)
    if columns not in ("care", "tools", "authors"):
        for row, number in one.counts.items():
            assert sum(crossed.count_in(row, column) for column in crossed.column_values) == number
    turned = cross(papers, attributes[columns], attributes[rows])
    assert {(column, row): number for (row, column), number in turned.cells.items()} == crossed.cells


PUBLISHED = {
    "category": {
        "rl_method": 42,
        "benchmark": 18,
        "classical_marl": 10,
        "industry": 6,
        "survey": 5,
        "framework": 3,
    },
    "reward_family": {
        "NA": 33,
        "hybrid": 15,
        "shared": 10,
        "orchestration": 7,
        "verifier": 6,
        "debate": 4,
        "individual": 4,
        "role": 3,
        "process": 2,
        "tool": 0,
    },
    "credit_unit": {
        "NA": 36,
        "agent": 23,
        "role": 10,
        "orchestrator": 8,
        "turn": 5,
        "message": 2,
        "token": 0,
        "tool": 0,
        "team": 0,
    },
}


def test_the_published_counts_are_reproduced() -> None:
    result = run_corpus("--root", str(ROOT), "stats", "--format", "json", "--where", "added<=2026-05-04")
    stats = json.loads(result.stdout)

    assert (stats["schema"], stats["version"], stats["papers"]) == ("orchtrace-corpus/stats", 1, 84)
    for field, counts in PUBLISHED.items():
        assert stats["counts"][field] == counts
    topology = stats["counts"]["topology"]
    assert (topology["centralized"], topology["hierarchical"], topology["debate"]) == (18, 13, 8)


def test_the_published_exclusions_are_reproduced(real: Corpus) -> None:
    published = [exclusion for exclusion in real.exclusions if exclusion.screened <= "2026-05-04"]
    stage = exclusion_attributes(real.taxonomy)["stage"]

    assert len(published) == 32
    assert count(published, stage).counts == {
        "abstract_screen": 16,
        "full_text_screen": 9,
        "artifact_screen": 6,
        "duplicate_screen": 1,
    }


def test_the_sub_decisions_by_level() -> None:
    words = ("stats", "--format", "json", "--where", "added<=2026-05-04")
    stats = json.loads(run_corpus("--root", str(ROOT), *words).stdout)

    assert stats["levels"]["sub_decisions"] == {
        "spawn": {"explicit": 2, "implicit": 3, "designed": 5},
        "delegate": {"explicit": 5, "implicit": 7, "designed": 10},
        "communicate": {"explicit": 8, "implicit": 4, "designed": 15},
        "aggregate": {"explicit": 0, "implicit": 6, "designed": 18},
        "stop": {"explicit": 0, "implicit": 7, "designed": 3},
    }


@pytest.mark.parametrize(
    "field", ["category", "reward_family", "credit_unit", "topology", "stage", "source", "query_family"]
)
def test_counts_agree_with_pandas(real: Corpus, field: str) -> None:
    if field in {facet.field for facet in real.taxonomy.exclusions}:
        tally = {}
        for exclusion in real.exclusions:
            tally[exclusion.tags[field]] = tally.get(exclusion.tags[field], 0) + 1
    else:
        tally = {term: int(n) for term, n in real.to_pandas()[field].value_counts().items() if n}

    assert {term: number for term, number in real.counts(field).items() if number} == tally


def test_papers_that_deviate_from_the_typical_unit_are_counted(real: Corpus) -> None:
    crosstab = summarise(Pool(real.taxonomy, real.papers, real.exclusions)).crosstabs[0]
    table = typical_table(crosstab)

    assert table is not None
    assert table.columns == ("reward_family", "typical", "records", "as_typical", "deviating", "instead")
    assert table.rows[0] == ("shared", "team", 10, 0, 10, "message 1, agent 9")
    assert table.rows[5] == ("debate", "message, turn", 4, 1, 3, "agent 3")
    assert table.rows[-2:] == (("hybrid", "not named", 15, None, None, ""), ("sum of those named", "", 32, 15, 17, ""))
    assert all(term.typical_of("credit_unit") or term.id == "hybrid" for term in real.taxonomy.axes[0].terms)


def test_a_taxonomy_without_typical_terms_has_no_such_table(toy: Corpus) -> None:
    summary = summarise(Pool(toy.taxonomy, toy.papers, toy.exclusions))

    assert list(filter(None, map(typical_table, summary.crosstabs))) == []
