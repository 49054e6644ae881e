"""Edits of the data files: values become YAML, a record becomes its fields, one list item at a time."""

from pathlib import Path

import pytest

from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.base.yamlfile.splice import remove_record
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.edit.edits import add_records, change_records, raw_records
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.decode import decode_exclusions, decode_papers
from orchtrace_corpus.corpus.model.record_fields import exclusion_style, fields, paper_style
from orchtrace_corpus.corpus.model.records import Evidence, EvidenceVerdict, Paper, Waiver
from tests.conftest import ROOT, TOY


def papers_file(root: Path = TOY) -> YamlFile:
    return store.CorpusFiles(str(root)).file(store.PAPERS)


def test_a_record_as_its_fields(toy: Corpus) -> None:
    assert list(fields(toy.papers[0], toy.taxonomy).items()) == [
        ("key", "rose-garden"),
        ("title", "Röses: A Garden in Four Beds"),
        ("authors", ["Müller, Änne", "O'Neill, Tom", "others"]),
        ("affiliation", "Garden School"),
        ("year", 2021),
        ("venue", "Journal of Beds"),
        ("arxiv_id", "2101.00001"),
        ("doi", "10.5555/roses.1"),
        ("urls", ["https://example.org/roses", "https://example.org/roses/code"]),
        ("style", "formal"),
        ("care", {"water": "daily", "prune": "weekly"}),
        ("tools", ["spade", "shears"]),
        ("size", "small"),
        ("summary", "Lays out four beds of roses."),
        (
            "evidence",
            [
                {
                    "tags": ["care"],
                    "note": "The gardener waters every day.",
                    "source": "https://example.org/roses",
                    "level": "visit",
                    "confidence": "high",
                }
            ],
        ),
        ("added", "2021-05-01"),
    ]


def test_what_is_coded_as_nothing_is_a_field_and_what_is_absent_is_none(toy: Corpus) -> None:
    grass, yard = toy.papers[1], toy.papers[3]

    assert fields(grass, toy.taxonomy)["care"] == {}
    assert "tools" not in fields(grass, toy.taxonomy)
    assert fields(yard, toy.taxonomy)["tools"] == "NA"


def test_waivers_and_further_facets_of_evidence_are_kept(toy: Corpus) -> None:
    item = Evidence(("care",), "n", "https://example.org", "visit", "high", {"season": ("spring", "autumn")}, "p. 3")
    paper = Paper(key="a", evidence=(item,), waive=(Waiver("I105", "It was printed late."),))

    assert fields(paper, toy.taxonomy) == {
        "key": "a",
        "evidence": [
            {
                "tags": ["care"],
                "note": "n",
                "source": "https://example.org",
                "location": "p. 3",
                "level": "visit",
                "confidence": "high",
                "season": ["spring", "autumn"],
            }
        ],
        "waive": [{"code": "I105", "why": "It was printed late."}],
    }


def test_no_field_of_evidence_is_forgotten() -> None:
    given = Evidence(*(f"the {name}" for name in Evidence._fields))._replace(  # type: ignore[arg-type]
        tags=("t",), more={"m": "x"}, verdict=EvidenceVerdict.PARTLY, copy=True
    )
    paper = Paper(key="a", evidence=(given,))

    (item,) = fields(paper, store.CorpusFiles(str(TOY)).loaded.pool.taxonomy)["evidence"]  # type: ignore[union-attr, misc]
    assert set(item) == {*Evidence._fields, "m"} - {"more"}


@pytest.mark.parametrize("root", [TOY, ROOT])
def test_the_fields_of_all_records_are_the_file_again(root: Path) -> None:
    pool = store.CorpusFiles(str(root)).loaded.pool
    assert pool is not None
    empty = YamlFile("x.yaml", b"[]\n")

    papers = add_records(empty, [fields(paper, pool.taxonomy) for paper in pool.papers], paper_style(pool.taxonomy))
    exclusions = add_records(
        empty, [fields(exclusion, pool.taxonomy) for exclusion in pool.exclusions], exclusion_style(pool.taxonomy)
    )

    read = decode_papers(YamlFile("x.yaml", papers.encode()), pool.taxonomy)[0]
    screened = decode_exclusions(YamlFile("x.yaml", exclusions.encode()), pool.taxonomy)[0]
    again = store.with_published(pool._replace(papers=read, exclusions=screened), pool.published)
    assert (again.papers, again.exclusions) == (pool.papers, pool.exclusions)
    text = papers_file(root).text
    assert papers == text[text.index("- key:") :] or "  #" in text  # comments are no fields


def test_one_record_is_added_changed_and_removed(toy: Corpus) -> None:
    file, style = papers_file(), paper_style(toy.taxonomy)

    longer = add_records(file, [{"key": "pond", "title": "no", "year": 2024, "care": {}, "tools": ["rake"]}], style)
    assert longer == file.text + '\n- key: pond\n  title: "no"\n  year: 2024\n  care: {}\n  tools: [rake]\n'
    sorted_style = style._replace(key="key")
    between = add_records(file, [{"key": "nettles"}, {"key": "moss"}], sorted_style)
    assert between == file.text.replace("- key: terminal-yard", "- key: moss\n\n- key: nettles\n\n- key: terminal-yard")
    first = add_records(file, [{"key": "acorn"}], sorted_style)
    assert first == file.text.replace("- key: rose-garden", "- key: acorn\n\n- key: rose-garden")
    assert remove_record(YamlFile("x.yaml", longer.encode()), 4) == file.text
    fixed = change_records(file, {2: {"care": {"water": "daily"}, "doi": "10.5/x", "tools": None}}, style)
    assert fixed == file.text.replace("care: {water: weekly}\n  tools: [rake]\n", "care: {water: daily}\n").replace(
        "venue: Beds 2023\n", "venue: Beds 2023\n  doi: 10.5/x\n"
    )


def test_no_change_is_the_same_text(toy: Corpus) -> None:
    file, style = papers_file(), paper_style(toy.taxonomy)

    assert change_records(file, {}, style) == change_records(file, {1: {}}, style) == file.text
    everything = {index: fields(paper, toy.taxonomy) for index, paper in enumerate(toy.papers)}
    assert change_records(file, everything, style) == file.text


def test_records_as_written_keep_what_is_wrong_with_them() -> None:
    file = YamlFile("x.yaml", b"- key: a\n  care: {mow: never}\n- no record\n- {}\n")

    assert raw_records(file) == [{"key": "a", "care": {"mow": "never"}}, {}, {}]
