"""Citations: the year and the name of the venue, entries that leave as they came, and what a format has no place for."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.corpus.api import Corpus, load
from orchtrace_corpus.corpus.formats import complete_item
from orchtrace_corpus.corpus.formats.registry import FORMATS
from orchtrace_corpus.corpus.model.author_names import parse_authors
from orchtrace_corpus.corpus.model.records import Paper
from tests.conftest import ROOT, TOY, run_corpus
from tests.effort import tries

BIBTEX = FORMATS["bibtex"]
NAMES = {
    "AAAI": "AAAI Conference",
    "AAMAS": "Autonomous Agents and MultiAgent Systems",
    "ACL": "Meeting of the Association for Computational Linguistics",
    "ACM AISec": "Artificial Intelligence and Security",
    "COLM": "Conference on Language Modeling",
    "Findings of ACL": "Findings of the Association for Computational Linguistics",
    "ICLR": "International Conference on Learning Representations",
    "ICML": "Machine Learning",
    "NeurIPS": "Neural Information Processing Systems",
    "TMLR": "Transactions on Machine Learning Research",
}
"""What the proceedings of each venue are called; a journal is called by its name."""

with (ROOT / "tests" / "data" / "venues.csv").open(encoding="utf-8", newline="") as file:
    VENUES = {row["key"]: row for row in csv.DictReader(file)}
"""The published papers whose venue was confirmed by a publisher's record or by lists that agree, in November 2026."""


def entries(corpus: Corpus, profile: str = "bibtex") -> dict[str, dict[str, str]]:
    """The fields of each exported entry, by its key, with its type as `type`."""
    found = re.findall(r"^@(\w+)\{(\S+),\n(.*?)^\}$", str(corpus.export("bibtex", profile)), re.M | re.S)
    fields = {key: re.findall(r"^  (\w+) += \{(.*)\},$", body, re.M) for _, key, body in found}
    return {key: {"type": kind, **dict(fields[key])} for kind, key, _ in found}


@pytest.mark.parametrize("key", VENUES)
def test_an_entry_says_what_is_certain_of_its_venue(key: str, real: Corpus) -> None:
    row, entry = VENUES[key], entries(real)[key]

    container = entry.get("booktitle", entry.get("journal", ""))
    name = row["venue"] if row["venue"] in container else NAMES[row["venue"]]
    assert (name in container, entry["year"]) == (True, row["year"])
    for field in ("volume", "number"):
        assert entry.get(field, "") == row[field]
    assert entry.get("pages", "").replace("--", "-") == row["pages"]
    assert row["doi"] in ("", entry.get("doi"))


def test_only_a_certain_venue_has_a_year_and_a_name_of_its_own(real: Corpus) -> None:
    published = real.where("published=yes").papers

    assert {paper.key for paper in published if paper.venue_year} == set(VENUES)
    assert {paper.key for paper in published if paper.proceedings} <= set(VENUES)


@pytest.mark.parametrize("profile", BIBTEX.profiles)
def test_no_year_contradicts_its_venue(profile: str, real: Corpus) -> None:
    for key, entry in entries(real, profile).items():
        for field in ("booktitle", "journal", "howpublished"):
            years = re.findall(r"\b(?:19|20)\d\d\b", entry.get(field, ""))
            assert not years or entry["year"] in years, key
            assert not re.search("spotlight|submi", entry.get(field, ""), re.IGNORECASE), key


def test_year_and_venue_of_a_citation_are_the_same_in_every_format(real: Corpus) -> None:
    (malt,) = (paper for paper in real.papers if paper.key == "malt")
    ris = str(FORMATS["ris"].write([malt], real.taxonomy))
    (csl,) = json.loads(str(FORMATS["csl"].write([malt], real.taxonomy)))

    assert (malt.year, malt.venue) == (2024, "COLM 2025")
    assert "PY  - 2025\nT2  - Second Conference on Language Modeling\n" in ris
    assert (csl["issued"], csl["container-title"]) == (
        {"date-parts": [[2025]]},
        "Second Conference on Language Modeling",
    )
    assert (entries(real)["malt"]["year"], entries(real)["malt"]["booktitle"]) == ("2025", csl["container-title"])


COUPLING = r"""@article{Doe:2024abc,
  title         = {Coupled Beds},
  author        = {{The Bed Collaboration} and Doe, Jane},
  journal       = {Phys. Rev. XYZ},
  year          = {2024},
  volume        = {12},
  number        = {3},
  pages         = {045--67},
  month         = jun,
  editor        = {M{\"u}ller, {\"A}nne},
  type          = {Letter},
  doi           = {10.5555/coupled},
  url           = {https://example.org/coupled},
}
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A copy of the toy corpus, with an entry added from a BibTeX file."""
    shutil.copytree(TOY / "data", tmp_path / "data")
    (tmp_path / "refs.bib").write_text(COUPLING, encoding="utf-8")
    tags = ("--style", "formal", "--care", "none", "--tools", "NA", "--size", "small", "--summary", "Couples beds.")
    added = run_corpus("--root", str(tmp_path), "add", str(tmp_path / "refs.bib"), "--no-fetch", "--yes", *tags)
    assert added.code == 0, added.stderr
    return tmp_path


def test_an_imported_entry_keeps_its_type_its_key_and_its_fields_and_leaves_as_it_came(corpus: Path) -> None:
    paper = load(str(corpus))["coupled-beds"]

    assert paper.authors == ("{The Bed Collaboration}", "Doe, Jane")
    assert (paper.cite_key, dict(paper.bibtex)) == (
        "Doe:2024abc",
        {
            "type": "article",
            "volume": "12",
            "number": "3",
            "pages": "045--67",
            "month": "June",
            "editor": r"M{\"u}ller, {\"A}nne",
            "type_field": "Letter",
        },
    )
    result = run_corpus("--root", str(corpus), "export", "bibtex", "--where", "key=coupled-beds")
    assert (result.stdout, result.stderr) == (COUPLING, "1 paper\n")


def test_a_record_is_known_by_the_key_that_it_came_with(corpus: Path) -> None:
    root = ("--root", str(corpus))
    before = (corpus / "data" / "papers.yaml").read_bytes()

    assert run_corpus(*root, "show", "Doe:2024abc").stdout.startswith("coupled-beds\n")
    assert load(str(corpus))["Doe:2024abc"].key == "coupled-beds"
    again = run_corpus(*root, "add", "Doe:2024abc", "--no-fetch")
    assert (again.code, "in the pool already as 'coupled-beds'" in again.stderr) == (1, True)
    exported = run_corpus(*root, "export", "bibtex").stdout
    (corpus / "papers.bib").write_text(exported.replace("{045--67}", "{045--68}"), encoding="utf-8")
    assert run_corpus(*root, "import", "bibtex", str(corpus / "papers.bib")).stderr.endswith(
        "1 updated, 0 added, 4 unchanged\n"
    )
    assert (corpus / "data" / "papers.yaml").read_bytes() == before.replace(b"045--67", b"045--68")


def test_what_a_citation_has_no_place_for_is_said(corpus: Path) -> None:
    def export(name: str) -> tuple[str, str]:
        result = run_corpus("--root", str(corpus), "export", name, "--where", "key=coupled-beds,rose-garden")
        return result.stdout, result.stderr

    ris, said_of_ris = export("ris")
    csl, said_of_csl = export("csl")
    (item,) = (item for item in json.loads(csl) if item["id"] == "Doe:2024abc")

    lacking = "type_field (1 paper)"
    assert said_of_ris == f"2 papers\nRIS has no place for {lacking}\n"
    assert said_of_csl == f"2 papers\nCSL-JSON has no place for further urls (1 paper), {lacking}\n"
    assert "TY  - JOUR\nID  - Doe:2024abc\n" in ris
    assert "AU  - The Bed Collaboration\n" in ris
    assert "ED  - Müller, Änne\nPY  - 2024\nDA  - 2024/06//\nT2  - Phys. Rev. XYZ\n" in ris
    assert item["editor"] == [{"family": "Müller", "given": "Änne"}]
    assert item["issued"] == {"date-parts": [[2024, 6]]}
    assert "VL  - 12\nIS  - 3\nSP  - 045\nEP  - 67\n" in ris
    assert (item["type"], item["author"][0], item["volume"], item["issue"], item["page"]) == (
        "article-journal",
        {"literal": "The Bed Collaboration"},
        "12",
        "3",
        "045-67",
    )


BOOK = r"""@book{gardens,
  title         = {All Gardens},
  publisher     = {MIT Press},
  year          = {2024},
  editor        = {Doe, Jane and Roe, Max},
  series        = {Beds of the World},
  volume        = {7},
  month         = mar,
  url           = {https://example.org/gardens},
}
"""


def test_a_book_of_editors_leaves_as_it_came_and_has_its_publisher_everywhere(tmp_path: Path) -> None:
    shutil.copytree(TOY / "data", tmp_path / "data")
    (tmp_path / "refs.bib").write_text(BOOK, encoding="utf-8")
    root = ("--root", str(tmp_path))
    tags = ("--style", "formal", "--care", "none", "--tools", "NA", "--size", "small")
    added = run_corpus(*root, "add", str(tmp_path / "refs.bib"), "--no-fetch", "--yes", *tags)
    assert added.code == 0, added.stderr
    one = ("--where", "key=gardens")

    assert load(str(tmp_path))["gardens"].authors == ("Doe, Jane", "Roe, Max")
    assert run_corpus(*root, "export", "bibtex", *one).stdout == BOOK
    assert "To be written" not in run_corpus(*root, "export", "bibtex", "--profile", "tagged", *one).stdout
    (item,) = json.loads(run_corpus(*root, "export", "csl", *one).stdout)
    assert {name: value for name, value in item.items() if name not in ("id", "keyword")} == {
        "type": "book",
        "title": "All Gardens",
        "editor": [{"family": "Doe", "given": "Jane"}, {"family": "Roe", "given": "Max"}],
        "issued": {"date-parts": [[2024, 3]]},
        "collection-title": "Beds of the World",
        "volume": "7",
        "publisher": "MIT Press",
        "URL": "https://example.org/gardens",
    }
    ris, said = run_corpus(*root, "export", "ris", *one)[1:]
    assert [line for line in ris.splitlines() if not line.startswith("KW")] == [
        "TY  - BOOK",
        "ID  - gardens",
        "TI  - All Gardens",
        "ED  - Doe, Jane",
        "ED  - Roe, Max",
        "PY  - 2024",
        "DA  - 2024/03//",
        "PB  - MIT Press",
        "T3  - Beds of the World",
        "VL  - 7",
        "UR  - https://example.org/gardens",
        "ER  - ",
    ]
    assert said == "1 paper\n"


def test_a_journal_named_like_its_publisher_leaves_as_it_came(toy: Corpus) -> None:
    text = "@article{a, title={T}, author={Doe, J}, year={2025}, journal={Annals}, publisher={Annals}}"
    (item,) = BIBTEX.read(text.encode(), toy.taxonomy)
    values, _ = complete_item(item, None)
    paper = Paper("a", "T", ("Doe, J",), year=2025, venue="Annals", bibtex=dict(values["bibtex"]))

    written = str(BIBTEX.write([paper], toy.taxonomy))

    assert ("journal       = {Annals}," in written, "publisher     = {Annals}," in written) == (True, True)


def test_a_new_venue_takes_the_place_of_the_journal_that_an_entry_came_with(toy: Corpus) -> None:
    text = "@article{a, title={T}, author={Doe, J}, year={2025}, journal={arXiv preprint arXiv:2505.19591}}"
    (item,) = BIBTEX.read(text.encode(), toy.taxonomy)
    values, _ = complete_item(item, None)
    kept = values["bibtex"]
    assert kept == {"type": "article", "journal": "arXiv preprint arXiv:2505.19591"}
    paper = Paper("a", "T", ("Doe, J",), year=2025, venue="arXiv", arxiv_id="2505.19591", bibtex=dict(kept))
    published = paper._replace(venue="TMLR")

    assert "journal       = {arXiv preprint arXiv:2505.19591}," in str(BIBTEX.write([paper], toy.taxonomy))
    assert "journal       = {TMLR}," in str(BIBTEX.write([published], toy.taxonomy))
    assert (BIBTEX.left_out([paper], toy.taxonomy), BIBTEX.left_out([published], toy.taxonomy)) == ({}, {"journal": 1})


WORDS = st.from_regex(r"[A-Za-z0-9]{1,8}( [A-Za-z0-9]{1,8}){0,2}", fullmatch=True)
LATEX = st.one_of(WORDS, st.sampled_from([r"M{\"u}ller", r"\emph{a} {B}", "1--2", "{Kept} Capitals", "50\\%"]))
FIELDS = (
    "volume",
    "number",
    "pages",
    "editor",
    "series",
    "address",
    "publisher",
    "note",
    "issn",
    "edition",
    "language",
)
TYPES = {"article": "journal", "inproceedings": "booktitle", "incollection": "booktitle", "phdthesis": "school"}


@settings(max_examples=tries(200, 20), deadline=None)
@given(
    st.from_regex(r"[A-Za-z][A-Za-z0-9:+-]{0,9}", fullmatch=True),
    st.sampled_from([*TYPES, "misc"]),
    WORDS,
    st.dictionaries(st.sampled_from(FIELDS), LATEX),
)
def test_every_field_of_an_entry_comes_back(toy: Corpus, key: str, kind: str, venue: str, more: dict[str, str]) -> None:
    fields = {"title": "Beds", "author": "Doe, Jane", TYPES.get(kind, "howpublished"): venue, "year": "2024", **more}
    text = f"@{kind}{{{key},\n" + "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items()) + "}\n"
    (item,) = BIBTEX.read(text.encode(), toy.taxonomy)
    values, problems = complete_item(item, None)
    assert problems == []
    kept = values.get("bibtex", {})
    assert isinstance(kept, dict)
    paper = Paper("beds", "Beds", ("Doe, Jane",), year=2024, venue=str(values["venue"]), cite_key=key, bibtex=kept)

    written = str(BIBTEX.write([paper], toy.taxonomy))

    assert written.startswith(f"@{kind}{{{key},\n")
    assert dict(re.findall(r"^  (\w+) += \{(.*)\},$", written, re.M)) == fields
    assert BIBTEX.left_out([paper], toy.taxonomy) == {}


def test_a_collective_keeps_its_braces_in_bibtex_only(real: Corpus) -> None:
    only = real.where("key=kimi-k2-6")

    assert only.papers[0].authors == ("{Kimi Team}",)
    assert "author        = {{Kimi Team}}," in str(only.export("bibtex"))
    assert '"author": [\n      {\n        "literal": "Kimi Team"\n      }\n    ]' in str(only.export("csl"))
    assert "AU  - Kimi Team\n" in str(only.export("ris"))
    assert ",Kimi Team,Moonshot AI,2026," in str(only.export("csv", "published"))
    assert only.papers == real.where("authors=Kimi Team", "first_author=Kimi Team", "key=kimi-k2-6").papers


def test_a_comma_or_an_and_within_braces_separates_no_names() -> None:
    assert parse_authors("{Beds, Borders and Co}; Doe, Jane and {Kimi Team}") == (
        "{Beds, Borders and Co}",
        "Doe, Jane",
        "{Kimi Team}",
    )


def test_the_published_exclusions_have_the_published_columns_words_and_counts(real: Corpus) -> None:
    table = str(real.export("csv", "published", exclusions=True))
    rows = list(csv.DictReader(table.splitlines()))

    assert table == run_corpus("export", "csv", "--profile", "published", "--exclusions").stdout
    assert table.splitlines()[0] == (
        "record_id,source,query_family,screening_label,identifier,url,date_screened,stage,exclusion_reason"
    )
    published = [row for row in rows if row["date_screened"] <= "2026-05-04"]
    assert [row["record_id"] for row in published] == [f"E{number:03}" for number in range(1, 33)]
    stages = [row["stage"] for row in published]
    assert {stage: stages.count(stage) for stage in stages} == {
        "abstract_screen": 16,
        "full_text_screen": 9,
        "artifact_screen": 6,
        "duplicate_screen": 1,
    }


def test_an_affiliation_that_nobody_knows_is_called_so_in_the_published_table_only(real: Corpus) -> None:
    table = str(real.where("published=yes").export("csv", "published"))
    rows = {row["key"]: row for row in csv.DictReader(table.splitlines())}

    assert {row["affiliation"] == "unknown" for key, row in rows.items() if not real[key].affiliation} == {True}
    items = FORMATS["csv"].read(table.encode(), real.taxonomy, "published")
    assert {"affiliation" in item.values for item in items if item.values["key"] == "sharp"} == {False}
    assert {"affiliation" in item.empty_fields for item in items if item.values["key"] == "sharp"} == {True}


@pytest.mark.parametrize(
    ("name", "profile", "message"),
    [
        ("csv", "full", "csv --profile full holds no exclusions\nUse csv --profile published. Whole ones: corpus list"),
        ("ris", "", "ris --profile citation holds no exclusions\nUse csv --profile published."),
        ("csv", "published", "the taxonomy declares no published table of exclusions\nDeclare its columns under 'pub"),
    ],
)
def test_exclusions_have_one_form(name: str, profile: str, message: str, toy: Corpus) -> None:
    with pytest.raises(CommandUseError) as raised:
        toy.export(name, profile, exclusions=True)

    assert str(raised.value).startswith(message)
