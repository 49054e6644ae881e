"""JSON and JSON Lines: whole records, strictly read, each problem at its line."""

import json

import pytest

from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.formats import FormatError, Item
from orchtrace_corpus.corpus.formats.registry import FORMATS
from tests.conftest import run_toy

JSON, LINES = FORMATS["json"], FORMATS["jsonl"]

LONG_GRASS = {
    "key": "long-grass",
    "title": "Long Grass and How to Keep It",
    "authors": ["{Meadow Team}"],
    "year": 2023,
    "venue": "arXiv",
    "arxiv_id": "2302.00002",
    "urls": ["https://example.org/grass"],
    "style": "meadow",
    "care": {},
    "size": "large",
    "summary": "Keeps a meadow without any tool.",
    "added": "2023-02-03",
    "notes": "Seen in summer only.",
}
HEAD = '{"schema": "orchtrace-corpus/papers", "version": 1, "records": '


def refused(name: str, text: str, toy: Corpus) -> list[str]:
    with pytest.raises(FormatError) as raised:
        FORMATS[name].read(text.encode(), toy.taxonomy, path="x")
    return str(raised.value).splitlines()


def test_a_document_names_its_schema_and_version(toy: Corpus) -> None:
    written = str(JSON.write(toy.papers[1:2], toy.taxonomy))

    assert json.loads(written) == {"schema": "orchtrace-corpus/papers", "version": 1, "records": [LONG_GRASS]}
    assert list(json.loads(written)["records"][0]) == list(LONG_GRASS)
    assert written.endswith("}\n")


def test_lines_hold_a_record_each(toy: Corpus) -> None:
    written = str(LINES.write(toy.papers, toy.taxonomy))

    assert [json.loads(line)["key"] for line in written.splitlines()] == [paper.key for paper in toy.papers]
    assert json.loads(written.splitlines()[1]) == LONG_GRASS
    assert "Röses" in written


def test_records_know_their_lines(toy: Corpus) -> None:
    text = f'{HEAD}[\n\n  {{"key": "a"}},\n  {{"key":\n "b", "title": "\\"records\\": [{{"}}, {{"key": "c"}}\n]}}'

    assert JSON.read(text.encode(), toy.taxonomy) == [
        Item({"key": "a"}, 3),
        Item({"key": "b", "title": '"records": [{'}, 4),
        Item({"key": "c"}, 5),
    ]
    assert JSON.read(f"{HEAD}[]}}".encode(), toy.taxonomy) == []


def test_the_report_of_corpus_list_is_read_as_well(toy: Corpus) -> None:
    report = run_toy("list", "--format", "json").stdout

    items = JSON.read(report.encode(), toy.taxonomy)

    assert items[1].values == LONG_GRASS
    assert items[3].values["tools"] == ["NA"]


def test_a_report_on_exclusions_is_refused(toy: Corpus) -> None:
    found = refused("json", run_toy("list", "--exclusions", "--format", "json").stdout, toy)

    assert found[0] == "x:5: only papers can be read, not a record of kind 'exclusion'"
    assert len(found) == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "x:1: not valid JSON: there is nothing in it"),
        ('{"a":\n1,}', "x:2: not valid JSON: a comma with nothing behind it; remove it"),
        ("[" * 100000, "x:1: not valid JSON: nested too deeply"),
        ("[]", 'x:1: the document must begin {"schema": "orchtrace-corpus/papers", "version": 1, "records": [...]}'),
        (f'{HEAD}[{{}}], "more": 1}}', "x:1: the document must have a list 'records', and nothing else beside schema"),
        (HEAD.replace("1", "2") + "[]}", "x:1: version '2' is not one that this release reads, which is 1"),
        (f'{HEAD}[{{"key": "a", "key": "b"}}]}}', "x:1: 'key' is given twice in one object"),
        (f'{HEAD}[{{"year": NaN}}]}}', "x:1: not valid JSON: 'NaN' is not a finite number"),
        (f"{HEAD}[\n1]}}", "x:2: a record must be an object of fields"),
        (f'{HEAD}[\n{{"notes": null}}]}}', "x:2: notes is null; write a text in quotes, or leave the field out"),
        (f'{HEAD}[{{"urls": [true]}}]}}', "x:1: urls is true; write a text in quotes, or leave the field out"),
        (f'{HEAD}[{{"year": 2020.5}}]}}', "x:1: year is 2020.5; write a text in quotes, or leave the field out"),
        (f'{HEAD}[{{"title": "\\ud800"}}]}}', "x:1: title holds half of a surrogate pair, which is not a character"),
        (f'{HEAD}[{{"year": {"9" * 5000}}}]}}', "x:1: not valid JSON: a number of more than 4300 digits"),
    ],
)
def test_what_is_no_document_is_refused(text: str, problem: str, toy: Corpus) -> None:
    found = refused("json", text, toy)

    assert len(found) == 1
    assert found[0].startswith(problem)


def test_every_line_that_is_no_record_is_named(toy: Corpus) -> None:
    assert refused("jsonl", '{"key": "a"}\n\n{"key": }\n[]\n{"key": "b"\n', toy) == [
        "x:3: not valid JSON: expecting value",
        "x:4: a record must be an object of fields",
        "x:5: not valid JSON: the text ends in the middle of an object, which begins at 5:1",
    ]
