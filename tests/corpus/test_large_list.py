"""A made-up list of 2,000 records with 14 facets, 300 of them articles: in from BibTeX, and out again without loss."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from orchtrace_corpus.corpus.formats.bibtex import Entry, _entries
from tests.conftest import run_corpus

FACETS, TERMS, RECORDS, ARTICLES = 14, 8, 2000, 300
WORDS = "garden river cloud stone bridge candle window harbor meadow forest copper silver winter lantern anchor".split()
KEYS = (
    "Doe{}:2019a",
    "DBLP:journals/corr/abs-{}",
    "doe_{}_title",
    "O'Neil{}+x",
    "müller{}",
    "paper-{}",
    "K&R.{}",
    "a#{}~b",
)
JOURNALS = ("Journal of Beds", "Nature", "Proceedings of the Yard Academy", "PoS", "AAAI 2026", "arXiv preprint")
NUMBERS, PAGES = ("7", "3--4", "38", "S1"), ("101--119", "e1234", "12, 17--19", "L7")
VENUES: dict[str, tuple[dict[str, str], ...]] = {
    "inproceedings": (
        {"booktitle": "Proceedings of the 3rd Bed Conference", "pages": "1--9"},
        {"booktitle": "Rows 2020"},
    ),
    "conference": ({"booktitle": "Bed Days"},),
    "incollection": ({"booktitle": "All Beds", "publisher": "Bed Press", "pages": "3--5"},),
    "book": ({"publisher": "Bed Press", "volume": "2", "series": "Beds"},),
    "phdthesis": ({"school": "University of Beds"},),
    "mastersthesis": ({"school": "University of Rows"},),
    "techreport": ({"institution": "Bed Lab", "number": "TR-12"},),
    "misc": ({"howpublished": "Web page"},),
    "online": ({"howpublished": "Web page"},),
    "dataset": ({"howpublished": "Bed Archive"},),
    "software": ({"howpublished": "Bed Forge"},),
    "unpublished": ({"howpublished": "Manuscript", "note": "In draft"},),
}


class MadeUpEntry(NamedTuple):
    """An entry of the list: its type, its key and its fields."""

    type: str
    key: str
    fields: Mapping[str, str]

    @property
    def text(self) -> str:
        """The entry as BibTeX."""
        fields = "".join(f"  {name} = {{{value}}},\n" for name, value in self.fields.items())
        return f"@{self.type}{{{self.key},\n{fields}}}\n"


def taxonomy() -> str:
    lines = ["title: A made-up list", "source: https://example.org/list", "papers:"]
    for facet in range(FACETS):
        kind, role = "many" if facet % 3 == 2 else "single", "axis" if facet < 4 else "facet"
        lines += [f"  - field: facet_{facet}", f"    label: Facet {facet}", f"    kind: {kind}", f"    role: {role}"]
        lines += ["    definition: A facet.", "    terms:"]
        for term in range(TERMS):
            lines.append(f"      - {{id: term_{facet}_{term}, label: Term {facet} {term}, definition: A term.}}")
    return "\n".join(lines) + "\n"


def made_up_entries() -> Iterator[MadeUpEntry]:
    random = Random(20261127)
    types = list(VENUES)
    for number in range(RECORDS):
        title = " ".join(random.choice(WORDS) for _ in range(7)).title()
        fields = {
            "title": f"{title} {number}",
            "author": f"Doe{number}, Jane and Roe, Rich",
            "year": str(1995 + number % 30),
        }
        kind = "article" if number < ARTICLES else types[number % len(types)]
        if kind == "article":
            fields["journal"] = JOURNALS[number % len(JOURNALS)]
            fields |= {"volume": str(number % 90 + 1), "number": NUMBERS[number % 4], "pages": PAGES[number // 4 % 4]}
        else:
            fields |= VENUES[kind][number % len(VENUES[kind])]
        fields["url"] = f"https://example.org/{number}"
        terms = (f"facet_{facet}=term_{facet}_{(number * 7 + facet * facet) % TERMS}" for facet in range(FACETS))
        fields["keywords"] = ", ".join(terms)
        fields["annotation"] = (
            f"Describes the made-up work {number} in one whole sentence, of about the length that a sentence of a real summary has, or a little more."
        )
        yield MadeUpEntry(kind, KEYS[number % len(KEYS)].format(number), fields)


def read(text: str) -> dict[str, Entry]:
    problems: list[object] = []
    entries = {entry.key: entry for entry in _entries(text, problems)}  # type: ignore[arg-type]
    assert problems == []
    return entries


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of the list, imported from BibTeX."""
    folder = tmp_path_factory.mktemp("list")
    (folder / "data").mkdir()
    (folder / "data" / "taxonomy.yaml").write_text(taxonomy(), encoding="utf-8")
    for name in ("papers", "exclusions"):
        (folder / "data" / f"{name}.yaml").write_text("[]\n", encoding="utf-8")
    (folder / "README.md").write_text(
        "# List\n\n<!-- corpus:begin list -->\n<!-- corpus:end list -->\n", encoding="utf-8"
    )
    (folder / "list.bib").write_text("\n".join(entry.text for entry in made_up_entries()), encoding="utf-8")
    result = run_corpus("--root", str(folder), "import", str(folder / "list.bib"))
    assert (result.code, result.stderr.splitlines()[-1]) == (0, "0 updated, 2000 added, 0 unchanged")
    return folder


@pytest.mark.parametrize("profile", ["bibtex", "biblatex", "tagged"])
def test_bibtex_comes_out_as_it_came_in(root: Path, profile: str) -> None:
    result = run_corpus("--root", str(root), "export", "bibtex", "--profile", profile)
    written = read(result.stdout)

    assert list(written) == [entry.key for entry in made_up_entries()]
    for entry in made_up_entries():
        same = written[entry.key]
        assert same.type == entry.type
        for name, value in entry.fields.items():
            if name not in ("title", "keywords", "annotation"):
                assert (entry.key, name, same.text(name)) == (entry.key, name, value)


@pytest.mark.parametrize("name", ["csl", "ris"])
def test_another_format_keeps_key_volume_number_pages_and_that_an_article_is_one(
    root: Path, tmp_path: Path, name: str
) -> None:
    exported = tmp_path / f"list.{ {'csl': 'json', 'ris': 'ris'}[name] }"
    assert run_corpus("--root", str(root), "export", name, "-o", str(exported)).code == 0
    again = run_corpus("--root", str(root), "import", name, str(exported))
    assert (again.code, again.stderr) == (0, "corpus: nothing changes\n0 updated, 0 added, 2000 unchanged\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "taxonomy.yaml").write_text(taxonomy(), encoding="utf-8")
    for file in ("papers", "exclusions"):
        (tmp_path / "data" / f"{file}.yaml").write_text("[]\n", encoding="utf-8")

    assert run_corpus("--root", str(tmp_path), "import", name, str(exported)).code == 0

    written = read(run_corpus("--root", str(tmp_path), "export", "bibtex", "--profile", "biblatex").stdout)
    assert list(written) == [entry.key for entry in made_up_entries()]
    for entry in made_up_entries():
        same = written[entry.key]
        assert (same.type == "article") == (entry.type == "article")
        for field in ("volume", "number", "pages"):
            assert (entry.key, field, same.text(field)) == (entry.key, field, entry.fields.get(field, ""))


def test_the_readme_stays_below_what_github_shows_and_large_sections_are_pages(root: Path) -> None:
    assert run_corpus("--root", str(root), "build").code == 0

    text = (root / "README.md").read_text(encoding="utf-8")
    pages = {path.name: path.read_text(encoding="utf-8") for path in (root / "docs" / "list").glob("*.md")}
    assert len(pages) == TERMS
    for document in (text, *pages.values()):
        assert len(document.encode()) < 512 * 1024
    for name, page in pages.items():
        assert f"[250 papers](docs/list/{name})" in text
        assert "Part of [the list](../../README.md)." in page
    listed = re.findall(r"^- \[.*?\]\((https://example\.org/\d+)\)", "\n".join((text, *pages.values())), re.MULTILINE)
    assert len(listed) == len(set(listed)) == RECORDS
    checked = run_corpus("--root", str(root), "check")
    assert (checked.code, checked.stdout.splitlines()[-1]) == (0, "build     ok     up to date")
