"""What arXiv said last (`data/arxiv.json`): one form, read strictly, and what in it withdraws a paper."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.corpus.model.metadata import Metadata, decode, encode, merge, suspected_withdrawal
from tests.conftest import ROOT

SCHEMA = json.loads((ROOT / "docs" / "schema" / "arxiv.schema.json").read_text(encoding="utf-8"))

ROSES = Metadata(
    "2101.00001",
    2,
    "Röses: A Garden in Four Beds",
    ("Änne Müller", "Tom O'Neill"),
    "",
    "2021-01-01T09:00:00Z",
    "2021-02-03T10:11:12Z",
    "cs.MA",
    ("cs.MA", "cs.AI"),
)
OLD = ROSES._replace(
    arxiv_id="hep-th/9901001", version=1, comment='Seen "in print"', journal_ref="J. Beds 3", doi="10.5555/roses.1"
)
FILE = """\
{
  "schema": "orchtrace-corpus/arxiv",
  "version": 1,
  "papers": {
    "2101.00001": {
      "version": 2,
      "title": "Röses: A Garden in Four Beds",
      "authors": ["Änne Müller", "Tom O'Neill"],
      "published": "2021-01-01T09:00:00Z",
      "updated": "2021-02-03T10:11:12Z",
      "primary_category": "cs.MA",
      "categories": ["cs.MA", "cs.AI"]
    },
    "hep-th/9901001": {
      "version": 1,
      "title": "Röses: A Garden in Four Beds",
      "authors": ["Änne Müller", "Tom O'Neill"],
      "published": "2021-01-01T09:00:00Z",
      "updated": "2021-02-03T10:11:12Z",
      "primary_category": "cs.MA",
      "categories": ["cs.MA", "cs.AI"],
      "comment": "Seen \\"in print\\"",
      "journal_ref": "J. Beds 3",
      "doi": "10.5555/roses.1"
    }
  }
}
"""

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
TIME = st.datetimes().map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0"))
ID = st.one_of(
    st.from_regex(r"[0-9]{2}(0[1-9]|1[0-2])\.[0-9]{4,5}", fullmatch=True),
    st.from_regex(r"[a-z]{2,5}/[0-9]{2}(0[1-9]|1[0-2])[0-9]{3}", fullmatch=True),
)


@st.composite
def metadata(draw: st.DrawFn) -> Metadata:
    categories = tuple(draw(st.lists(TEXT, min_size=1, max_size=3, unique=True)))
    optional = st.none() | TEXT
    return Metadata(
        draw(ID),
        draw(st.integers(1, 20)),
        draw(TEXT),
        tuple(draw(st.lists(TEXT, min_size=1, max_size=3))),
        draw(st.sampled_from(["", "This paper has been withdrawn by its authors."])),
        draw(TIME),
        draw(TIME),
        draw(st.sampled_from(categories)),
        categories,
        draw(optional),
        draw(optional),
        draw(optional),
    )


def test_the_file_has_one_line_for_each_field_and_is_sorted_by_id() -> None:
    assert encode({OLD.arxiv_id: OLD, ROSES.arxiv_id: ROSES}) == FILE
    assert decode(FILE, "data/arxiv.json") == {ROSES.arxiv_id: ROSES, OLD.arxiv_id: OLD}


def test_a_file_without_papers() -> None:
    text = '{\n  "schema": "orchtrace-corpus/arxiv",\n  "version": 1,\n  "papers": {}\n}\n'

    assert encode({}) == text
    assert decode(text, "x") == {}


@given(st.lists(metadata(), max_size=4))
def test_what_is_written_is_read_back_and_written_the_same(papers: list[Metadata]) -> None:
    known = {paper.arxiv_id: paper for paper in papers}

    text = encode(known)

    assert decode(text, "x") == known
    assert encode(dict(reversed(known.items()))) == text
    assert text.replace("\n", "").isprintable()
    Draft202012Validator(SCHEMA).validate(json.loads(text))


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_an_abstract_is_kept_with_what_arxiv_says() -> None:
    withdrawn = ROSES._replace(abstract="This paper has been withdrawn by the authors.")

    roses = ROSES._replace(abstract="On roses.")

    assert decode(encode({"2101.00001": roses}), "x") == {"2101.00001": roses}
    assert "abstract" not in encode({"2101.00001": ROSES._replace(abstract="")})
    assert decode(encode({"2101.00001": withdrawn}), "x") == {"2101.00001": withdrawn}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"version": 2,', '"version": 2', "data/arxiv.json:6:19: not valid JSON: a comma is missing"),
        ('"version": 2,', '"version": "2",', "papers.'2101.00001'.version must be a number from 1 on"),
        ('"version": 2,', '"version": 0,', "papers.'2101.00001'.version must be a number from 1 on"),
        ('"version": 2,', '"version": true,', "papers.'2101.00001'.version must be a number from 1 on"),
        ('"version": 2,', '"version": NaN,', "data/arxiv.json:6:18: not valid JSON: 'NaN' is not a finite number"),
        (
            '"version": 2,',
            '"version": 2, "version": 3,',
            "data/arxiv.json:6:21: 'version' is given twice in one object",
        ),
        ('      "version": 2,\n', "", "papers.'2101.00001' lacks version"),
        ('"doi":', '"dio":', "papers.'hep-th/9901001' has an unknown field 'dio'"),
        ('"2101.00001"', '"2101.00001v2"', "papers.'2101.00001v2': not an arXiv id in its plain form"),
        ('"2101.00001"', '"\\u001b[31m"', r"papers.'\x1b[31m': not an arXiv id in its plain form"),
        ('["cs.MA", "cs.AI"]', '"cs.MA"', "papers.'2101.00001'.categories must be a list of texts, at least one"),
        ('["cs.MA", "cs.AI"]', "[]", "papers.'2101.00001'.categories must be a list of texts, at least one"),
        ('["cs.MA", "cs.AI"]', '["cs.AI"]', "papers.'2101.00001'.primary_category is not among the categories"),
        ('"Röses: A Garden in Four Beds"', "null", "papers.'2101.00001'.title must be a text"),
        ('"Röses: A Garden in Four Beds"', '" "', "papers.'2101.00001'.title must be a text"),
        ('"Röses: A Garden in Four Beds"', r'"\ud800"', "papers.'2101.00001'.title must be a text"),
        (
            "2021-02-03T10:11:12Z",
            "2021-02-03",
            "papers.'2101.00001'.updated must be a time such as 2026-05-04T12:00:00Z",
        ),
        ("orchtrace-corpus/arxiv", "other", "schema is not 'orchtrace-corpus/arxiv', or version is not a number"),
        ('"version": 1,\n  "papers"', '"version": 9,\n  "papers"', "version 9 is not one that this release reads"),
        (FILE, "[]", "the document must be an object"),
        (FILE, '{"schema": "orchtrace-corpus/arxiv", "version": 1, "papers": []}', "papers must be an object"),
        (FILE, "[" * 100000, "not valid JSON: nested too deeply; at most 500 levels are read"),
        (FILE, "1" * 10000, "not valid JSON: a number of more than 4300 digits"),
        (FILE, "", "data/arxiv.json:1:1: not valid JSON: there is nothing in it"),
    ],
)
def test_what_is_not_in_the_form_is_refused_with_its_place(old: str, new: str, message: str) -> None:
    assert old in FILE

    with pytest.raises(DataFileError) as caught:
        decode(FILE.replace(old, new, 1), "data/arxiv.json")

    assert str(caught.value).startswith("data/arxiv.json:")
    assert message in str(caught.value)
    assert str(caught.value).endswith("Restore the file from git, or remove it and run corpus fetch --write.")


@given(st.integers(0, len(FILE)), st.integers(0, 40), st.text(st.sampled_from('{}[]",:\\u01e5.-x \n\x00'), max_size=6))
def test_no_damage_is_too_odd_to_be_told(at: int, length: int, text: str) -> None:
    damaged = FILE[:at] + text + FILE[at + length :]
    try:
        papers = decode(damaged, "data/arxiv.json")
    except DataFileError:
        return
    assert decode(encode(papers), "x") == papers


def test_an_answer_replaces_what_was_known_unless_it_is_older() -> None:
    newer, older = ROSES._replace(version=3), ROSES._replace(version=1)
    known = {ROSES.arxiv_id: ROSES, OLD.arxiv_id: OLD}

    assert merge(known, {ROSES.arxiv_id: newer}, [ROSES.arxiv_id, OLD.arxiv_id, "2302.00002"]) == {
        ROSES.arxiv_id: newer,
        OLD.arxiv_id: OLD,
    }
    assert merge(known, {ROSES.arxiv_id: older}, [ROSES.arxiv_id]) == {ROSES.arxiv_id: ROSES}
    changed = ROSES._replace(comment="8 pages")
    assert merge(known, {ROSES.arxiv_id: changed}, [ROSES.arxiv_id]) == {ROSES.arxiv_id: changed}


@pytest.mark.parametrize(
    "comment",
    [
        "This paper has been withdrawn by Zelai Xu",
        "withdrawn by Zelai Xu",
        "Withdrawn",
        "Withdrawn from arXiv",
        "WITHDRAWN: error in the proof",
        "(withdrawn)",
        "Withdrawn by the authors due to a crucial error in equation 1",
        "This submission has been administratively withdrawn due to disputed authorship",
        "arXiv admin note: this paper has been withdrawn by arXiv administrators",
        "arXiv admin note: submission has been removed by arXiv administrators because of copyright",
        "We have decided to withdraw",
        "We have decided to withdraw this submission because of an error",
        "The authors wish to withdraw this manuscript.",
        "The authors have decided to withdraw it from arXiv",
        "We would like to withdraw this paper from arXiv",
        "I am withdrawing this paper",
        "We withdraw our paper: Lemma 2 is false",
        "12 pages, 3 figures. This paper is withdrawn until the data is checked",
        "The paper has been temporarily withdrawn",
        "Paper withdrawn due to a bug in the code",
        "Withdrawal of this preprint was requested by a co-author",
        "The first author requested withdrawal",
        "This article has been retracted",
    ],
)
def test_a_comment_that_withdraws_the_paper_is_suspected(comment: str) -> None:
    assert suspected_withdrawal(ROSES._replace(comment=comment)) in comment
    assert suspected_withdrawal(ROSES._replace(comment=comment))


@pytest.mark.parametrize(
    "comment",
    [
        "12 pages",
        "Withdrawn from ICLR 2026",
        "Withdrawn ICLR 2026 submission",
        "This paper was withdrawn from NeurIPS and accepted at ICML",
        "We withdraw our submission from ICLR and thank the reviewers",
        "We have decided to withdraw from the leaderboard",
        "On tool withdrawal for agents",
        "this version withdraws the claim of Theorem 2",
        "v3 withdraws the paper's second claim",
        "Withdraws the statement in Section 3",
        "v2 was withdrawn by mistake; v3 restores the paper",
        "Version 2 withdrawn by mistake",
        "v2 withdrawn by a co-author in error, v3 is the same as v1",
        "This paper was withdrawn by mistake and is restored",
        "The paper was previously withdrawn",
        "The paper has not been withdrawn",
        "Section 4 removed, now in the appendix",
    ],
)
def test_a_comment_that_is_only_near_a_withdrawal_is_not(comment: str) -> None:
    assert suspected_withdrawal(ROSES._replace(comment=comment)) == ""


@pytest.mark.parametrize(
    ("abstract", "words"),
    [
        ("This paper has been withdrawn by the authors due to an error.", True),
        ("We study agents. This submission has been withdrawn because data leaked. Sorry.", True),
        ("We have decided to withdraw this paper.", True),
        ("We study how agents withdraw cash and how funds withdrawn by users are tracked.", False),
        ("Of the papers that we follow, each paper was withdrawn or retracted by its authors.", False),
        ("Agents that withdraw from a negotiation do better.", False),
        ("We show that authors decided to withdraw after review.", False),
    ],
)
def test_in_an_abstract_only_phrases_about_this_paper_count(abstract: str, words: bool) -> None:
    assert bool(suspected_withdrawal(ROSES._replace(abstract=abstract))) is words


def test_the_words_are_those_of_one_sentence() -> None:
    comment = "12 pages. This paper has been withdrawn by the authors. See elsewhere."

    assert suspected_withdrawal(ROSES._replace(comment=comment)) == "This paper has been withdrawn by the authors."
