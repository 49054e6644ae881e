"""CSV: whole records and the published table, what spreadsheets make of it, and what is refused, at its line."""

import csv
import io
from collections import Counter

import pytest

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.corpus.api import Corpus, load
from orchtrace_corpus.corpus.formats import FormatError, Item, complete_item
from orchtrace_corpus.corpus.formats.registry import FORMATS
from orchtrace_corpus.corpus.model.record_fields import fields
from tests.conftest import ROOT, TOY
from tests.corpus.test_formats_round_trip import same

CSV = FORMATS["csv"]

PUBLISHED = (
    "key,title,first_author,affiliation,year,arxiv_id,venue,url,category,is_rl,reward_type,credit_granularity,"
    "orchestration_form,scenario,is_core,one_liner,verified,notes"
).split(",")

TOY_TABLE = """\
key,title,authors,affiliation,year,venue_year,venue,proceedings,arxiv_id,doi,openreview_id,acl_id,urls,code,style,care,water,\
prune,tools,size,base_models,algorithm,algorithm_note,benchmarks,benchmarks_note,summary,evidence,added,cite_key,bibtex,notes,waive
rose-garden,Röses: A Garden in Four Beds,"Müller, Änne ; O'Neill, Tom ; others",Garden School,2021,,Journal of Beds,,\
2101.00001,10.5555/roses.1,,,https://example.org/roses ; https://example.org/roses/code,,formal,,daily,weekly,\
spade ; shears,small,,,,,,Lays out four beds of roses.,"[{""tags"": [""care""], ""note"": ""The gardener waters every day."", \
""source"": ""https://example.org/roses"", ""level"": ""visit"", ""confidence"": ""high""}]",2021-05-01,,,,
long-grass,Long Grass and How to Keep It,{Meadow Team},,2023,,arXiv,,2302.00002,,,,https://example.org/grass,,meadow,{},,,,\
large,,,,,,Keeps a meadow without any tool.,,2023-02-03,,,Seen in summer only.,
"""
COLUMNS = """
published:
  - {column: id, field: key}
  - {column: author, field: first_author}
  - {column: link, field: urls}
  - {column: look, field: style, spellings: {formal: straight, NA: "-"}}
  - {column: gear, field: tools}
"""


def refused(text: str, corpus: Corpus, profile: str = "") -> list[str]:
    with pytest.raises(FormatError) as raised:
        CSV.read(text.encode(), corpus.taxonomy, profile, "x.csv")
    return str(raised.value).splitlines()


@pytest.fixture(scope="module")
def gardens(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The toy corpus with a published table of its own."""
    import shutil

    root = tmp_path_factory.mktemp("gardens")
    shutil.copytree(TOY / "data", root / "data")
    with (root / "data" / "taxonomy.yaml").open("a", encoding="utf-8") as taxonomy:
        taxonomy.write(COLUMNS)
    return load(str(root))


def test_whole_records(toy: Corpus) -> None:
    assert CSV.write(toy.papers[:2], toy.taxonomy) == TOY_TABLE


def test_some_columns_in_any_order_are_read(toy: Corpus) -> None:
    text = 'water,key,tools,year,care\n,a,"rake ; spade",2020,\ndaily,b,,,\n,c,NA,,{}\n'

    assert CSV.read(text.encode(), toy.taxonomy) == [
        Item({"key": "a", "tools": ["rake", "spade"], "year": 2020}, 2, empty_fields=("care",)),
        Item({"key": "b", "care": {"water": "daily"}}, 3, empty_fields=("tools", "year")),
        Item({"key": "c", "tools": "NA", "care": {}}, 4, empty_fields=("year",)),
    ]


def test_lines_are_those_of_the_file_also_behind_cells_of_several_lines(toy: Corpus) -> None:
    items = CSV.read(b'key,title\r\na,"one\r\ntwo"\r\n\r\nb,x\r\n', toy.taxonomy)

    assert [(item.values["key"], item.line) for item in items] == [("a", 2), ("b", 5)]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "'=1", "''-x", "=cmd|' /C calc'!A0"])
def test_a_text_that_a_spreadsheet_would_run_is_kept_a_text(text: str, toy: Corpus) -> None:
    paper = toy.papers[0]._replace(title=text)
    written = str(CSV.write([paper], toy.taxonomy))

    cell = next(csv.DictReader(io.StringIO(written)))["title"]
    assert cell == f"'{text}"
    assert CSV.read(written.encode(), toy.taxonomy)[0].values["title"] == text


@pytest.mark.parametrize("text", ["'tis", "a=b", "x-1", "Röses"])
def test_other_texts_stand_as_they_are(text: str, toy: Corpus) -> None:
    written = str(CSV.write([toy.papers[0]._replace(title=text)], toy.taxonomy))

    assert next(csv.DictReader(io.StringIO(written)))["title"] == text


def test_the_published_table_has_its_eighteen_columns_and_counts(real: Corpus) -> None:
    """The counts are those of the published artifact, read by nothing of ours."""
    written = str(CSV.write(real.where("added<=2026-05-04").papers, real.taxonomy, "published"))

    reader = csv.DictReader(io.StringIO(written))
    rows = list(reader)
    assert list(reader.fieldnames or ()) == PUBLISHED
    assert {column: dict(Counter(row[column] for row in rows)) for column in PUBLISHED[8:15]} == {
        "category": {
            "rl_method": 42,
            "benchmark": 18,
            "classical_marl": 10,
            "industry": 6,
            "survey": 5,
            "framework": 3,
        },
        "is_rl": {"yes": 49, "no": 26, "partial": 9},
        "reward_type": {
            "NA": 33,
            "hybrid": 15,
            "shared": 10,
            "orchestration": 7,
            "verifier": 6,
            "debate": 4,
            "individual": 4,
            "role": 3,
            "process": 2,
        },
        "credit_granularity": {"NA": 36, "agent": 23, "role": 10, "orchestrator": 8, "turn": 5, "message": 2},
        "orchestration_form": {
            "NA": 34,
            "centralized": 18,
            "hierarchical": 13,
            "debate": 8,
            "planner_executor_critic": 4,
            "swarm": 4,
            "harness": 3,
        },
        "scenario": {"general": 45, "coding": 10, "math": 9, "tool_use": 8, "research": 6, "web": 6},
        "is_core": {"core": 54, "supporting": 24, "case": 6},
    }
    assert Counter(row["verified"] for row in rows) == {"yes": 76, "partial": 8}
    years = {"2025": 36, "2026": 23, "2024": 9, "2023": 4, "2018": 3, "2017": 2, "2022": 2, "2020": 2}
    assert Counter(row["year"] for row in rows) == {**years, "2002": 1, "1994": 1, "2001": 1}
    assert [row["key"] for row in rows if " ; " in row["url"]] == [
        paper.key for paper in real.where("added<=2026-05-04").papers if len(paper.urls) > 1
    ]


def test_the_published_table_read_again_changes_no_record(real: Corpus) -> None:
    written = str(CSV.write(real.papers, real.taxonomy, "published"))
    items = CSV.read(written.encode(), real.taxonomy, "published")

    assert len(items) == len(real.papers)
    for paper, item in zip(real.papers, items, strict=True):
        record = fields(paper, real.taxonomy)
        values, problems = complete_item(item, record)
        assert problems == []
        assert {name: same(record.get(name)) for name in values} == same(values)


def test_a_published_table_is_what_the_taxonomy_declares(gardens: Corpus) -> None:
    assert CSV.write(gardens.papers, gardens.taxonomy, "published") == (
        "id,author,link,look,gear\n"
        'rose-garden,"Müller, Änne",https://example.org/roses ; https://example.org/roses/code,straight,spade ; shears\n'
        "long-grass,Meadow Team,https://example.org/grass,meadow,\n"
        'mixed-borders,"李, 明",https://example.org/borders,cottage,rake\n'
        "terminal-yard,Anonymous,https://example.org/yard,'-,NA\n"
    )
    text = "id,author,look,gear\na,Anonymous,straight,rake ; spade\nb,'-x,'-,NA\n"
    assert CSV.read(text.encode(), gardens.taxonomy, "published") == [
        Item({"key": "a", "style": "formal", "tools": ["rake", "spade"]}, 2, {"authors": "Anonymous"}),
        Item({"key": "b", "style": "NA", "tools": ["NA"]}, 3, {"authors": "-x"}),
    ]


def test_without_a_published_table_there_is_none(toy: Corpus) -> None:
    with pytest.raises(CommandUseError, match="the taxonomy declares no published table"):
        CSV.write(toy.papers, toy.taxonomy, "published")
    with pytest.raises(CommandUseError, match="the taxonomy declares no published table"):
        CSV.read(b"key\n", toy.taxonomy, "published")


def test_a_first_author_neither_cuts_a_list_nor_replaces_one() -> None:
    item = Item({"key": "a"}, 2, {"authors": "Liu, Shuo"})

    assert complete_item(item, {"authors": ["Liu, Shuo", "Chen, Tianle"]}) == ({"key": "a"}, [])
    assert complete_item(item, {"authors": ["Chen, Tianle", "Liu, Shuo"]}) == (
        {"key": "a"},
        ["the first author is 'Liu, Shuo', but the record's is 'Chen, Tianle'; change the list in the record itself"],
    )
    assert complete_item(item, None) == ({"key": "a", "authors": ["Liu, Shuo", "others"]}, [])
    assert complete_item(Item({}, 1, {"authors": "Kimi Team"}), None) == ({"authors": ["Kimi Team"]}, [])


def test_an_address_takes_the_place_of_the_first() -> None:
    item = Item({}, 1, {"urls": "https://b.org"})

    assert complete_item(item, {"urls": ["https://b.org", "https://c.org"]}) == ({}, [])
    assert complete_item(item, {"urls": ["https://a.org", "https://b.org", "https://c.org"]}) == (
        {"urls": ["https://b.org", "https://c.org"]},
        [],
    )
    assert complete_item(item, None) == ({"urls": ["https://b.org"]}, [])


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["x.csv:1: the file is empty; it needs a line with the names of its columns"]),
        ("key;title\na;b\n", ["x.csv:1: the columns are separated by semicolons; save the table with commas"]),
        ("title\nA\n", ["x.csv:1: there is no column 'key', which says which record a row is about"]),
        ("key,key,year\n", ["x.csv:1: column 'key' is there 2 times; keep one"]),
        ("key,titel\n", ["x.csv:1: unknown column 'titel' (did you mean 'title'? allowed: "]),
        (
            "key,title\na\nb,c,d\ne,f\n",
            ["x.csv:2: 1 cells under 2 columns", "x.csv:3: 3 cells under 2 columns"],
        ),
        ('key,title\na,"b\n', ["x.csv:2: not a table of comma-separated values: unexpected end of data"]),
        ("key,care\na,none\n", ["x.csv:2: care is 'none'; write {} where no term applies, else nothing"]),
        ("key,care,water\na,{},daily\n", ["x.csv:2: care says that no term applies, but water has a level"]),
        ("key,evidence\na,x\n", ["x.csv:2: evidence is not valid JSON: expecting value"]),
        ('key,evidence\na,"{""a"": 1}"\n', ["x.csv:2: evidence must be a list"]),
        ("key,evidence\na,[1.5]\n", ["x.csv:2: evidence is 1.5; write a text in quotes, or leave the field out"]),
    ],
)
def test_what_is_no_table_is_refused(text: str, problems: list[str], toy: Corpus) -> None:
    found = refused(text, toy)

    assert len(found) == len(problems)
    assert all(line.startswith(expected) for line, expected in zip(found, problems, strict=True)), found


def test_what_is_no_published_table_is_refused(gardens: Corpus) -> None:
    assert refused("look\nstraight\n", gardens, "published") == [
        "x.csv:1: there is no column 'id', which says which record a row is about"
    ]
    assert refused("id,look,gear\na,strait,spade ; spad\nb,formal,\n", gardens, "published") == [
        "x.csv:2: gear has no word 'spad' (did you mean 'spade'? allowed: spade, rake, shears, NA)",
        "x.csv:2: look has no word 'strait' (did you mean 'straight'? allowed: straight, cottage, meadow, gravel, -)",
        "x.csv:3: look has no word 'formal' (allowed: straight, cottage, meadow, gravel, -)",
    ]


def test_pandas_keeps_na_with_the_option_that_the_formats_page_names(toy: Corpus) -> None:
    import pandas as pd

    written = toy.export("csv")
    assert isinstance(written, str)

    read = pd.read_csv(io.StringIO(written), keep_default_na=False)

    assert read["style"].tolist() == ["formal", "meadow", "cottage", "NA"]
    assert "`pd.read_csv(path, keep_default_na=False)`" in (ROOT / "docs/formats.md").read_text(encoding="utf-8")
