"""Gaps: which cells are empty, which cannot arise, and how far each is below what its row and column lead to expect."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.statistics import Coverage, Crosstab, Gap, coverage, expected_counts
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.rules.tags import cannot_arise
from tests.conftest import ROOT, TOY, run_corpus, run_toy

PLAN = {("formal", "small"): 3, ("formal", "large"): 1, ("cottage", "small"): 2, ("meadow", "large"): 2}
"""How many gardens have a style and a size: of cottage gardens one expects some that are large, and finds none."""


def gardens(numbers: dict[tuple[str, str], int]) -> list[Paper]:
    """Papers with these tags, the later ones of a cell a year newer than the one before."""
    return [
        Paper(key=f"{style}-{size}-{number}", year=2000 + number, tags={"style": style, "size": size})
        for (style, size), most in numbers.items()
        for number in range(most)
    ]


def gaps_of(papers: Sequence[Paper], toy: Corpus, rows: str = "style", columns: str = "size") -> Coverage:
    attributes = paper_attributes(toy.taxonomy)
    axes = attributes[rows], attributes[columns]
    return coverage(papers, *axes, impossible=cannot_arise(toy.taxonomy, *axes))


def test_the_matrix_has_totals_and_tells_apart_what_cannot_arise() -> None:
    assert run_toy("gaps", "--sparse", "1") == (
        0,
        """\
Style by size, 4 papers

        small large  sum
formal      1     ·    1
cottage     1     ·    1
meadow      x     1    1
gravel      ·     ·    0
sum         2     1    3
NA          1     ·    1
(x: cannot arise; sums without NA)

4 of 7 cells are empty, 3 sparse (1); 1 more cannot arise
No paper at all: style gravel (2 of the empty cells)
Cannot arise: A meadow needs room, so its size is large.
""",
        "",
    )


def test_a_demand_forbids_a_cell_whatever_else_the_rule_requires(toy: Corpus) -> None:
    rule = next(rule for rule in toy.taxonomy.rules if rule.message.startswith("A meadow"))
    further = rule.require[0]._replace(field="summary", alternatives=("It is roomy.",))
    taxonomy = toy.taxonomy._replace(rules=(rule._replace(require=(*rule.require, further)),))
    attributes = paper_attributes(taxonomy)

    assert list(cannot_arise(taxonomy, attributes["style"], attributes["size"])) == [("meadow", "small")]


def test_the_widest_gap_comes_first_with_the_papers_near_it() -> None:
    shown = run_corpus("--root", str(ROOT), "gaps", "--where", "added<=2026-05-04").stdout

    assert shown.endswith(
        """\
54 of 69 cells are empty, 7 sparse (1 to 2); 3 more cannot arise
No paper at all: reward_family tool; credit_unit token, tool, team (29 of the
  empty cells)
Cannot arise: An individual, role-specific or hybrid reward differs between
  agents, so credit does not go to the undivided team.

Furthest below the number expected from the sums of rows and columns
reward_family  credit_unit   papers  expected  nearest
orchestration  agent              0       3.4  halo, agent-qmix2026
shared         role               0       2.1  collm-maac2026, lamo2026
shared         orchestrator       0       1.5  collm-maac2026, agentspawn
role           agent              0       1.5  lamo2026, ippo2020
hybrid         orchestrator       1       2.2  owl2025, depart2026
shared         turn               0       1.1  c3, sirius2025
verifier       agent              0       1.0  sage2026, comas2026
individual     role               0       0.9  ippo2020, lamo2026
expected: if both tags were independent; nearest: papers of the closest cells.
53 more empty or sparse cells; --format csv lists all
36 of 84 papers have a contested tag here; --reading sources changes 15 of them
"""
    )
    assert max(map(len, shown.splitlines())) <= 80


def test_gaps_are_ranked_by_what_their_totals_lead_to_expect(toy: Corpus) -> None:
    found = gaps_of(gardens(PLAN), toy)

    assert found.impossible == (("meadow", "small"),)
    assert found.empty == (("cottage", "large"), ("gravel", "small"), ("gravel", "large"))
    assert found.sparse == (("formal", "large"), ("cottage", "small"), ("meadow", "large"))
    # Meadows can only be large; of the 6 other gardens 1 is large, so 2 / 6 of a cottage garden would be.
    assert tuple(gap._replace(expected=round(gap.expected, 2)) for gap in found.gaps) == (
        Gap("cottage", "large", 0, 0.33, ("cottage-small-1", "formal-large-0", "cottage-small-0")),
        Gap("meadow", "large", 2, 2.0, ("meadow-large-1", "meadow-large-0", "formal-large-0")),
        Gap("gravel", "small", 0, 0.0, ("cottage-small-1", "cottage-small-0", "formal-small-2")),
        Gap("gravel", "large", 0, 0.0, ("meadow-large-1", "meadow-large-0", "formal-large-0")),
        Gap("formal", "large", 1, 0.67, ("formal-large-0", "formal-small-2", "meadow-large-1")),
        Gap("cottage", "small", 2, 1.67, ("cottage-small-1", "cottage-small-0", "formal-small-2")),
    )


def test_a_forbidden_cell_with_papers_is_a_cell_like_others(toy: Corpus) -> None:
    found = gaps_of(gardens({**PLAN, ("meadow", "small"): 1}), toy)

    assert found.impossible == ()
    assert ("meadow", "small") in found.sparse


def test_the_terms_that_nothing_has_are_named(toy: Corpus) -> None:
    assert gaps_of(gardens({("formal", "small"): 1}), toy).unused == (("cottage", "meadow", "gravel"), ("large",))
    assert gaps_of([], toy).unused == (("formal", "cottage", "meadow", "gravel"), ("small", "large"))
    assert gaps_of([], toy).gaps[0] == Gap("formal", "small", 0, 0.0, ())


CELLS = [(row, column) for row in "abc" for column in "xyz"]


def table_of(numbers: Sequence[int], toy: Corpus) -> Crosstab:
    attribute = paper_attributes(toy.taxonomy)["style"]
    counted = dict(zip(CELLS, numbers, strict=True))
    return Crosstab(attribute, attribute, tuple("abc"), tuple("xyz"), counted, sum(numbers))


@given(st.lists(st.integers(0, 9), min_size=9, max_size=9))
def test_where_all_can_arise_the_totals_multiply(toy: Corpus, numbers: list[int]) -> None:
    crosstab = table_of(numbers, toy)
    rows, columns, whole = crosstab.row_totals, crosstab.column_totals, sum(numbers)

    for (row, column), expected in expected_counts(crosstab, CELLS).items():
        assert expected == pytest.approx(rows[row] * columns[column] / whole if whole else 0)


@given(st.lists(st.integers(1, 9), min_size=9, max_size=9), st.sampled_from(CELLS))
def test_what_cannot_arise_leaves_the_totals_of_the_rest(
    toy: Corpus, numbers: list[int], forbidden: tuple[str, str]
) -> None:
    numbers[CELLS.index(forbidden)] = 0
    crosstab = table_of(numbers, toy)

    expected = expected_counts(crosstab, [pair for pair in CELLS if pair != forbidden])

    assert forbidden not in expected
    for row, total in crosstab.row_totals.items():
        assert sum(number for pair, number in expected.items() if pair[0] == row) == pytest.approx(total, rel=1e-6)
    for column, total in crosstab.column_totals.items():
        assert sum(number for pair, number in expected.items() if pair[1] == column) == pytest.approx(total, rel=1e-6)


def test_gaps_as_data() -> None:
    assert json.loads(run_toy("gaps", "water", "size", "--format", "json").stdout) == {
        "schema": "orchtrace-corpus/gaps",
        "version": 1,
        "rows": "water",
        "columns": "size",
        "reading": "published",
        "papers": 4,
        "cells": {
            "daily": {"small": 1, "large": 0},
            "weekly": {"small": 1, "large": 0},
            "": {"small": 1, "large": 1},
        },
        "row_totals": {"daily": 1, "weekly": 1, "": 2},
        "column_totals": {"small": 3, "large": 1},
        "sparse_limit": 2,
        "empty": [["daily", "large"], ["weekly", "large"]],
        "sparse": [["daily", "small"], ["weekly", "small"]],
        "impossible": [],
        "gaps": [
            {"row": row, "column": column, "papers": papers, "expected": expected, "nearest": nearest}
            for row, column, papers, expected, nearest in (
                ("daily", "small", 1, 1.0, ["rose-garden", "mixed-borders"]),
                ("daily", "large", 0, 0.0, ["rose-garden"]),
                ("weekly", "small", 1, 1.0, ["mixed-borders", "rose-garden"]),
                ("weekly", "large", 0, 0.0, ["mixed-borders"]),
            )
        ],
    }
    assert json.loads(run_toy("gaps", "--format", "json").stdout)["impossible"] == [["meadow", "small"]]
    assert ["meadow", "small"] in json.loads(run_toy("gaps", "--format", "json").stdout)["empty"]
    assert run_toy("gaps", "water", "size", "--format", "csv").stdout == (
        """\
water,size,count,state,expected,nearest
daily,small,1,sparse,1.0,rose-garden ; mixed-borders
daily,large,0,empty,0.0,rose-garden
weekly,small,1,sparse,1.0,mixed-borders ; rose-garden
weekly,large,0,empty,0.0,mixed-borders
,small,1,not applicable,,
,large,1,not applicable,,
"""
    )
    assert "meadow,small,0,impossible,,\n" in run_toy("gaps", "--format", "csv").stdout


def test_gaps_as_a_document() -> None:
    assert run_toy("gaps", "size", "style", "--format", "markdown").stdout == (
        """\
## Size by style

| size  | formal | cottage | meadow | gravel | sum |  NA |
| ----- | -----: | ------: | ------ | -----: | --: | --: |
| small |      1 |       1 | x      |      0 |   2 |   1 |
| large |      0 |       0 | 1      |      0 |   1 |   0 |
| sum   |      1 |       1 | 1      |      0 |   3 |   1 |

4 of 7 cells are empty, 3 sparse (1 to 2); 1 more cannot arise.

No paper at all: style gravel (2 of the empty cells).

Cannot arise: A meadow needs room, so its size is large.

x: cannot arise.

sums without NA.

## Furthest below the number expected from the sums of rows and columns

| size  | style   | papers | expected | nearest                    |
| ----- | ------- | -----: | -------: | -------------------------- |
| small | formal  |      1 |      1.0 | rose-garden, mixed-borders |
| small | cottage |      1 |      1.0 | mixed-borders, rose-garden |
| small | gravel  |      0 |      0.0 | mixed-borders, rose-garden |
| large | formal  |      0 |      0.0 | long-grass, rose-garden    |
| large | cottage |      0 |      0.0 | long-grass, mixed-borders  |
| large | meadow  |      1 |      1.0 | long-grass                 |
| large | gravel  |      0 |      0.0 | long-grass                 |

expected: if both tags were independent; nearest: papers of the closest cells.
"""
    )


def candidate(key: str, proposal: str, tags: str) -> str:
    """A garden that awaits a decision."""
    fixed = "authors: [Moss], year: 2024, venue: arXiv, urls: [https://example.org/late], found: 2024-02-03"
    return f'- {{key: {key}, title: "{key}", {fixed}, proposal: {proposal}, reason: It fits., care: {{}}, {tags}}}\n'


def reading(tags: str) -> str:
    return f"readings: [{{by: a visitor, level: visit, confidence: high, note: Seen., tags: {tags}}}]"


def test_the_cells_that_candidates_would_fill_are_marked_and_name_them(tmp_path: Path) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(TOY, root)
    (root / "data" / "candidates.yaml").write_text(
        candidate("open-style", "include", f"size: large, {reading('{style: cottage}')}")
        + candidate("open-size", "include", f"style: gravel, {reading('{size: small}')}")
        + candidate("settled", "include", "style: gravel, size: small")
        + candidate("left-out", "exclude", "style: gravel, size: large"),
        encoding="utf-8",
    )
    words = ("--root", str(root), "gaps", "--with", "candidates")

    assert run_corpus(*words) == (
        0,
        """\
Style by size, 4 papers

        small large  sum
formal      1     ·    1
cottage     1    ·?    1
meadow      x     1    1
gravel     ·+     ·    0
sum         2     1    3
NA          1     ·    1
(x: cannot arise; + and ?: candidates would fill it, or could; sums without NA)

4 of 7 cells are empty, 3 sparse (1 to 2); 1 more cannot arise
No paper at all: style gravel (2 of the empty cells)
Cannot arise: A meadow needs room, so its size is large.

Furthest below the number expected from the sums of rows and columns
style    size   papers  expected  candidates
cottage  large       0       0.0  open-style?
gravel   small       0       0.0  settled, open-size?
expected: if both tags were independent; candidates: those with both tags, ? by a reading of an open tag.
5 more empty or sparse cells; --format csv lists all
""",
        "",
    )
    assert run_corpus(*words, "--format", "csv").stdout.splitlines()[3:8] == [
        "cottage,small,1,sparse,1.0,mixed-borders ; rose-garden,",
        "cottage,large,0,empty,0.0,mixed-borders ; long-grass,open-style?",
        "meadow,small,0,impossible,,,",
        "meadow,large,1,sparse,1.0,long-grass,",
        "gravel,small,0,empty,0.0,mixed-borders ; rose-garden,settled ; open-size?",
    ]
    assert json.loads(run_corpus(*words, "--where", "size=small", "--format", "json").stdout)["candidates"] == [
        {"row": "gravel", "column": "small", "keys": ["settled"]}
    ]


def test_the_sums_are_those_that_the_expected_numbers_are_made_of() -> None:
    shown = run_corpus("--root", str(ROOT), "gaps", "--where", "added<=2026-05-04").stdout.splitlines()

    assert [text.split()[-2] for text in shown[:14] if text.startswith(("hybrid  ", "sum "))] == ["15", "47"]
    assert shown[0] == "Reward family by credit unit, 84 papers"
    assert "hybrid         orchestrator       1       2.2  owl2025, depart2026" in shown  # 15 * 7 / 47


def test_the_caption_of_a_latex_table_is_that_of_fields_and_filters_or_the_one_given() -> None:
    by_filters = run_toy("stats", "style", "size", "--where", "style=formal", "-f", "latex").stdout
    own = run_toy("stats", "style", "size", "--caption", "Beds & paths", "-f", "latex").stdout
    papers = run_toy("list", "--caption", "Beds & paths", "-f", "latex").stdout
    gaps = run_toy("gaps", "style", "size", "--caption", "Beds & paths", "-f", "latex").stdout

    assert r"\caption{Style by size: Style is Formal}\label{tab:style-by-size-style-is-formal}" in by_filters
    assert r"\caption{Beds \& paths}\label{tab:beds-paths}" in own
    assert r"\caption{Beds \& paths}\label{tab:beds-paths}" in papers
    assert len(set(re.findall(r"\\label\{tab:beds-paths-\w[^}]*\}", gaps))) == 2
    for words in (["list"], ["stats", "style", "-f", "csv"], ["gaps", "-f", "markdown"]):
        message = "corpus: --caption is for tables in LaTeX\nAdd: -f latex\n"
        assert run_toy(*words, "--caption", "Beds") == (2, "", message)
