"""The data of this repository: valid, in its written form, and documented where it departs from the published one."""

import re

import pytest

from orchtrace_corpus.corpus.api import Corpus, validate
from orchtrace_corpus.corpus.model.records import Paper
from tests.conftest import ROOT


def test_the_data_has_no_problem() -> None:
    assert [str(finding) for finding in validate(str(ROOT))] == []


def test_papers_are_those_of_the_published_pool(real: Corpus) -> None:
    assert len(real.where("added<=2026-05-04")) == 84
    published = [exclusion.id for exclusion in real.exclusions if exclusion.screened <= "2026-05-04"]
    assert published == [f"E{number:03}" for number in range(1, 33)]


SENTENCE = re.compile(r"[^\W_].*[.]")


@pytest.mark.parametrize("field", ["summary", "notes"])
def test_sentences_end_with_a_period(real: Corpus, field: str) -> None:
    texts = [getattr(paper, field) for paper in real.papers if getattr(paper, field)]

    assert [text for text in texts if not SENTENCE.fullmatch(text)] == []


def test_every_published_paper_says_what_its_sub_decisions_rest_on(real: Corpus) -> None:
    def supported(paper: Paper) -> bool:
        return any("sub_decisions" in item.tags for item in paper.evidence)

    assert [paper.key for paper in real.where("added<=2026-05-04").papers if not supported(paper)] == []


def test_terms_and_definitions_are_complete(real: Corpus) -> None:
    for facet in (*real.taxonomy.papers, *real.taxonomy.exclusions, *real.taxonomy.evidence):
        for term in (*facet.terms, *facet.levels):
            assert SENTENCE.fullmatch(term.definition), term
    codes = [term.code for facet in real.taxonomy.axes for term in facet.terms if term.code]
    assert codes == ["R1", "R2", "R3", "R4", "R5", "R6", "R6", "R7", "R8", "O1", "O2", "O3", "O4", "O5"]
