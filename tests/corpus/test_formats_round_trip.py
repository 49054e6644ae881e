"""What a format carries comes back as it was: for papers with hostile texts, and for all real ones."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.formats import PUBLICATION_FIELDS, FormatError, complete_item
from orchtrace_corpus.corpus.formats.registry import FORMATS
from orchtrace_corpus.corpus.model.record_fields import Value, fields
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy
from tests.corpus.made_papers import POOLS
from tests.effort import tries

CITATION = ("key", "title", "authors", "year", "venue", "arxiv_id", "doi", "urls")
ENTRY = (*CITATION, "bibtex")
CARRIED = {
    ("bibtex", "bibtex"): ENTRY,
    ("bibtex", "biblatex"): ENTRY,
    ("bibtex", "tagged"): ENTRY,
    ("ris", "citation"): ENTRY,
    ("csl", "citation"): ENTRY,
    ("csv", "full"): (),
    ("json", "records"): (),
    ("jsonl", "records"): (),
}
"""The fields that each format carries, by its name and profile; all of them where none is named."""


def same(value: object) -> object:
    """A value with lists for tuples and without the difference between NA and a list of it."""
    if isinstance(value, dict):
        return {name: same(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [same(part) for part in value]
        return "NA" if parts == ["NA"] else parts
    return value


def came_back(papers: tuple[Paper, ...] | list[Paper], taxonomy: Taxonomy, name: str, profile: str) -> None:
    """Write papers, read them, and compare every field that the format carries."""
    one = FORMATS[name]
    written = one.write(papers, taxonomy, profile)
    assert isinstance(written, str)
    assert written == one.write(papers, taxonomy, profile)
    items = one.read(written.encode(), taxonomy, profile)

    assert len(items) == len(papers)
    for paper, item in zip(papers, items, strict=True):
        record: dict[str, Value] = fields(paper, taxonomy)
        carried = {field: record[field] for field in CARRIED[name, profile] or record if field in record}
        if CARRIED[name, profile]:  # a citation gives the key that a paper came with, and what is known of its venue
            carried["key"] = record.get("cite_key", record["key"])
            for field, own in PUBLICATION_FIELDS.items():
                if own in record:
                    del carried[field]
                    carried[own] = record[own]
        values, problems = complete_item(item, record)
        assert problems == []
        kept = {field: record[field] for field in item.first_items if field in record}
        assert same({**kept, **values}) == same(carried)


@pytest.mark.parametrize(("name", "profile"), CARRIED)
def test_every_real_paper_comes_back(name: str, profile: str, real: Corpus) -> None:
    came_back(real.papers, real.taxonomy, name, profile)


@pytest.mark.parametrize(("name", "profile"), CARRIED)
def test_every_toy_paper_comes_back(name: str, profile: str, toy: Corpus) -> None:
    came_back(toy.papers, toy.taxonomy, name, profile)


def test_hostile_papers_come_back(toy: Corpus) -> None:
    @settings(max_examples=tries(60, 6), deadline=None)
    @given(POOLS)
    def check(papers: list[Paper]) -> None:
        for name, profile in CARRIED:
            came_back(papers, toy.taxonomy, name, profile)

    check()


def test_every_readable_format_is_tested_here() -> None:
    profiles = {(one.name, profile) for one in FORMATS.values() if one.can_read for profile in one.profiles}

    assert profiles == {*CARRIED, ("csv", "published")}


PIECES = (
    *(
        "{",
        "}",
        '"',
        ",",
        "=",
        "@",
        "#",
        "\n",
        "\r",
        "\\",
        "\\url{",
        "$",
        "^",
        " and ",
        '@string{a = "b"}',
        "@comment{",
    ),
    *("author", "title = ", "[", "]", "null", "NaN", "1.5", "true", ":", '"key"', "ER  - ", "TY  - JOUR", "AU  - "),
    *(";", "'", "\x00", "\u2028", '{"a": 1}', "crossref = {x},", 'year = jan # "2"', "@article{x,", "\\foo", "\t"),
)


@pytest.mark.parametrize(("name", "profile"), [*CARRIED, ("csv", "published")])
def test_a_damaged_file_is_read_or_refused_but_never_crashes_the_reader(name: str, profile: str, real: Corpus) -> None:
    whole = str(FORMATS[name].write(real.papers[:2], real.taxonomy, profile))

    @settings(max_examples=tries(100, 15), deadline=None)
    @given(
        st.lists(
            st.tuples(st.integers(0, len(whole)), st.integers(0, 40), st.sampled_from(("", *PIECES))),
            min_size=1,
            max_size=4,
        )
    )
    def check(damages: list[tuple[int, int, str]]) -> None:
        text = whole
        for at, length, piece in damages:
            text = text[:at] + piece + text[at + length :]
        with suppress(FormatError):
            FORMATS[name].read(text.encode(), real.taxonomy, profile)

    check()
