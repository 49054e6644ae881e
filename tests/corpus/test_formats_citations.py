"""RIS and CSL-JSON, and Parquet: what is written, what is read from others, and what is refused."""

import io
import json
import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.formats import FormatError, Item, citation, complete_item
from orchtrace_corpus.corpus.formats.citation import EntryDetails, VenueKind, merge_entry
from orchtrace_corpus.corpus.formats.registry import FORMATS
from orchtrace_corpus.corpus.model.field_table import PAPER_FIELDS, CitationNames
from orchtrace_corpus.corpus.model.records import Paper
from tests.corpus.made_papers import POOLS
from tests.effort import tries

RIS, CSL, PARQUET = FORMATS["ris"], FORMATS["csl"], FORMATS["parquet"]

ROSE_GARDEN_RIS = """\
TY  - JOUR
ID  - rose-garden
TI  - Röses: A Garden in Four Beds
AU  - Müller, Änne
AU  - O'Neill, Tom
AU  - others
PY  - 2021
T2  - Journal of Beds
AN  - arXiv:2101.00001
DO  - 10.5555/roses.1
UR  - https://example.org/roses
UR  - https://example.org/roses/code
KW  - style=formal
KW  - water=daily
KW  - prune=weekly
KW  - tools=spade
KW  - tools=shears
KW  - size=small
N1  - Lays out four beds of roses.
ER  -\x20
"""
ROSE_GARDEN_CSL = {
    "id": "rose-garden",
    "type": "article-journal",
    "title": "Röses: A Garden in Four Beds",
    "author": [
        {"family": "Müller", "given": "Änne"},
        {"family": "O'Neill", "given": "Tom"},
        {"literal": "others"},
    ],
    "issued": {"date-parts": [[2021]]},
    "container-title": "Journal of Beds",
    "archive": "arXiv",
    "archive_location": "2101.00001",
    "DOI": "10.5555/roses.1",
    "URL": "https://example.org/roses",
    "keyword": "style=formal, water=daily, prune=weekly, tools=spade, tools=shears, size=small",
    "annote": "Lays out four beds of roses.",
}


def refused(name: str, text: str, toy: Corpus) -> list[str]:
    with pytest.raises(FormatError) as raised:
        FORMATS[name].read(text.encode(), toy.taxonomy, path="x")
    return str(raised.value).splitlines()


def test_a_paper_as_ris(toy: Corpus) -> None:
    assert RIS.write(toy.papers[:1], toy.taxonomy) == ROSE_GARDEN_RIS
    assert str(RIS.write(toy.papers, toy.taxonomy)).count("\n\nTY  - ") == 3


@settings(max_examples=tries(60, 6), deadline=None)
@given(POOLS)
def test_every_line_of_ris_begins_with_its_tag_and_no_value_makes_another(toy: Corpus, papers: list[Paper]) -> None:
    lines = str(RIS.write(papers, toy.taxonomy)).split("\n")

    assert [line for line in lines if line and line[2:6] != "  - "] == []
    assert sum(line.startswith("TY") for line in lines) == sum(line.startswith("ER") for line in lines) == len(papers)


def test_a_fixed_field_is_carried_as_its_row_says(toy: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    names = CitationNames("organization", "event-place", "AD")
    rows = [field._replace(citation_names=names) if field.name == "affiliation" else field for field in PAPER_FIELDS]
    monkeypatch.setattr(citation, "PAPER_FIELDS", rows)
    papers = [toy.papers[0]._replace(affiliation="Kew & Co.")]

    assert "\nAD  - Kew & Co.\n" in str(RIS.write(papers, toy.taxonomy))
    assert json.loads(CSL.write(papers, toy.taxonomy))[0]["event-place"] == "Kew & Co."
    assert "\n  organization  = {Kew \\& Co.},\n" in str(FORMATS["bibtex"].write(papers, toy.taxonomy))


def test_ris_of_others(toy: Corpus) -> None:
    text = """\ufeffTY  - CPAPER
ID  - Doe2024
T1  - A Title That
  Goes On
A1  - King, Martin, Jr.
A1  - OpenAI
Y1  - 2024/05/01/
BT  - Beds 2024
DO  - https://doi.org/10.48550/arXiv.2401.00001
UR  -
ER  -
""".replace("\n", "\r\n")

    assert RIS.read(text.encode(), toy.taxonomy) == [
        Item(
            {
                "key": "Doe2024",
                "title": "A Title That Goes On",
                "authors": ["King, Jr., Martin", "OpenAI"],
                "arxiv_id": "2401.00001",
            },
            1,
            cited={"venue": "Beds 2024", "year": 2024},
            details=EntryDetails(VenueKind.CONFERENCE, month=5),
        )
    ]


def test_ris_that_cannot_be_read_is_refused(toy: Corpus) -> None:
    assert refused("ris", "TI  - A\nTY  - JOUR\nPY  - soon\nTY  - JOUR\nDO  - x\n", toy) == [
        "x:1: 'A' belongs to no record; one begins with TY",
        "x:2: this record is not closed by ER before another begins on line 4",
        "x:4: this record is not closed by ER",
    ]
    assert refused("ris", "TY  - JOUR\nPY  - soon\nER  - \n", toy) == ["x:1: the year 'soon' is not one of four digits"]


def test_a_paper_as_csl(toy: Corpus) -> None:
    assert json.loads(str(CSL.write(toy.papers[:1], toy.taxonomy))) == [ROSE_GARDEN_CSL]


def test_the_type_of_an_item_follows_from_its_venue(real: Corpus) -> None:
    items = json.loads(str(CSL.write(real.papers, real.taxonomy)))

    types = {item["type"]: item.get("container-title", item.get("publisher")) for item in items}
    assert set(types) == {"article-journal", "paper-conference", "article", "webpage"}


def test_csl_of_others(toy: Corpus) -> None:
    text = """[
  {"id": 7, "type": "article", "title": "A\\n Title", "publisher": "arXiv", "number": "arXiv:2401.00001",
   "author": [{"family": "Berg", "non-dropping-particle": "van der", "given": "Jan", "suffix": "Jr."},
              {"literal": "Kimi Team"}],
   "issued": {"date-parts": [["2024", 5, 1]]}, "URL": "https://example.org/a", "accessed": {"raw": "now"}},
  {"id": "b", "issued": {"date-parts": [[2020]]}, "DOI": "10.5555/ABC"}]"""

    assert CSL.read(text.encode(), toy.taxonomy) == [
        Item(
            {
                "key": "7",
                "title": "A Title",
                "authors": ["van der Berg, Jr., Jan", "{Kimi Team}"],
                "arxiv_id": "2401.00001",
            },
            2,
            {"urls": "https://example.org/a"},
            cited={"venue": "arXiv", "year": 2024},
            details=EntryDetails(VenueKind.PREPRINT, month=5),
        ),
        Item({"key": "b", "doi": "10.5555/abc"}, 6, cited={"year": 2020}, details=EntryDetails()),
    ]


JOURNAL_RIS = """TY  - JOUR
ID  - Doe:2024
TI  - Beds
AU  - Doe, Jane
ED  - Roe, Rich
PY  - 2024
DA  - 2024/07//
T2  - Yard & Garden
VL  - B7
IS  - 3
SP  - 101
EP  - 119
PB  - Bed Press
SN  - 1234-5678
KW  - size=small
KW  - beds
N1  - Lays out beds.
ER  -
"""
JOURNAL_CSL = """[{"id": "Doe:2024", "type": "article-journal", "title": "Beds",
  "author": [{"family": "Doe", "given": "Jane"}], "editor": [{"family": "Roe", "given": "Rich"}],
  "issued": {"date-parts": [[2024, 7]]}, "container-title": "Yard & Garden", "volume": "B7", "issue": 3,
  "page": "101-119", "publisher": "Bed Press", "ISSN": "1234-5678", "keyword": "size=small, beds",
  "annote": "Lays out beds."}]"""


@pytest.mark.parametrize(("name", "text"), [("ris", JOURNAL_RIS), ("csl", JOURNAL_CSL)])
def test_an_article_of_others_is_one_with_volume_number_and_pages(name: str, text: str, toy: Corpus) -> None:
    (item,) = FORMATS[name].read(text.encode(), toy.taxonomy)

    values, problems = complete_item(item, None)
    assert problems == []
    assert (item.keywords, item.annotation) == (("size=small",), "Lays out beds.")
    assert values == {
        "key": "Doe:2024",
        "title": "Beds",
        "authors": ["Doe, Jane"],
        "year": 2024,
        "venue": "Yard & Garden",
        "bibtex": {
            "volume": "B7",
            "number": "3",
            "pages": "101--119",
            "publisher": "Bed Press",
            "issn": "1234-5678",
            "editor": "Roe, Rich",
            "month": "July",
        },
    }


def test_what_a_record_keeps_of_its_entry_stays_where_the_file_says_the_same(toy: Corpus) -> None:
    (item,) = FORMATS["ris"].read(JOURNAL_RIS.encode(), toy.taxonomy)
    kept = {"type": "article", "volume": "B7", "pages": "101-119", "number": "4", "note": r"\emph{Sic}", "month": "7"}

    values, _ = complete_item(item, {"key": "doe", "venue": "Yard & Garden", "bibtex": kept})

    assert values["bibtex"] == {
        **kept,
        "number": "3",
        "publisher": "Bed Press",
        "issn": "1234-5678",
        "editor": "Roe, Rich",
    }


@pytest.mark.parametrize(
    ("number", "latex"), [("3-4", "3--4"), ("3\u20134", "3--4"), ("TR-12", "TR-12"), ("50% & up", r"50\% \& up")]
)
def test_a_number_becomes_latex(number: str, latex: str) -> None:
    assert merge_entry(EntryDetails(texts={"number": number}), {}, "Beds")["number"] == latex


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("{}", ["x:1: the document must be a list of items"]),
        ("[1,\n2]", ["x:1: an item must be an object", "x:2: an item must be an object"]),
        ('[{"title": 1.5}]', ["x:1: title must be a text"]),
        ('[{"author": "Doe"}]', ["x:1: author must be a list of names"]),
        ('[{"author": ["Doe"]}]', ["x:1: a name must be an object of texts"]),
        ('[{"author": [{"given": "Jan"}]}]', ["x:1: a name must have a family or a literal"]),
        ('[{"issued": {"raw": "2020"}}]', ['x:1: issued must give a year: {"date-parts": [[2025]]}']),
        ('[{"issued": {"date-parts": [[20]]}}]', ['x:1: issued must give a year: {"date-parts": [[2025]]}']),
        ("[", ["x:1: not valid JSON: the text ends in the middle of a list, which begins at 1:1"]),
    ],
)
def test_csl_that_cannot_be_read_is_refused(text: str, problems: list[str], toy: Corpus) -> None:
    assert refused("csl", text, toy) == problems


def test_parquet_holds_the_frame_with_its_types(toy: Corpus) -> None:
    pytest.importorskip("pyarrow")
    data = PARQUET.write(toy.papers, toy.taxonomy)
    assert isinstance(data, bytes)

    frame = pd.read_parquet(io.BytesIO(data))

    expected = toy.to_pandas().reset_index()
    assert list(frame.columns) == list(expected.columns)
    assert list(frame["style"].cat.categories) == ["formal", "cottage", "meadow", "gravel", "NA"]
    assert [list(authors) for authors in frame["authors"]] == [list(paper.authors) for paper in toy.papers]
    assert frame["added"].tolist() == expected["added"].tolist()
    assert data == PARQUET.write(toy.papers, toy.taxonomy)


def test_parquet_of_nothing_keeps_its_columns(toy: Corpus) -> None:
    pytest.importorskip("pyarrow")
    data = PARQUET.write((), toy.taxonomy)
    assert isinstance(data, bytes)

    assert list(pd.read_parquet(io.BytesIO(data)).columns) == list(toy.to_pandas().reset_index().columns)


@pytest.mark.parametrize(
    ("installed", "folder", "command"),
    [
        ("tree/orchtrace_corpus", "tree", "env/bin/python -m pip install -e '.[parquet]'"),
        ("tree/orchtrace_corpus", "elsewhere", "{0}/tree/env/bin/python -m pip install -e '{0}/tree[parquet]'"),
        ("site/orchtrace_corpus", "tree", "env/bin/python -m pip install 'orchtrace-corpus[parquet]'"),
    ],
    ids=["in the source tree", "outside the source tree", "from a wheel"],
)
def test_without_pyarrow_the_command_that_installs_it_is_named(
    installed: str, folder: str, command: str, toy: Corpus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("tree", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "tree" / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path / folder)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "tree" / "env" / "bin" / "python"))
    monkeypatch.setattr("orchtrace_corpus.base.errors.__file__", str(tmp_path / installed / "base" / "errors.py"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("orchtrace_corpus.corpus.formats.table.find_spec", lambda name: None)

    with pytest.raises(CommandUseError) as raised:
        PARQUET.write(toy.papers, toy.taxonomy)

    assert str(raised.value) == (
        f"Parquet needs pyarrow, which is not installed\nInstall it: {command.format(tmp_path)}"
    )


def test_parquet_is_written_only(toy: Corpus) -> None:
    with pytest.raises(CommandUseError) as raised:
        PARQUET.read(b"", toy.taxonomy)

    assert str(raised.value) == "Parquet is written only, not read\nReadable: bibtex, csv, json, jsonl, ris, csl."
