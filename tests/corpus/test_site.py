"""The corpus as a site: which files, what they say, the same bytes each time, nothing of the data as markup."""

import errno
import html
import json
import re
import shutil
import struct
import tempfile
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.files import replace_folder, text_beside
from orchtrace_corpus.base.html import source_hash
from orchtrace_corpus.corpus import site
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.candidates import Decision
from orchtrace_corpus.corpus.model.taxonomy import Kind
from orchtrace_corpus.corpus.rules.tags import cannot_arise
from orchtrace_corpus.corpus.site import feed
from orchtrace_corpus.corpus.site.metadata import page_title
from orchtrace_corpus.corpus.site.papers import count_pairs, read_fields
from orchtrace_corpus.corpus.site.source import Place
from tests.conftest import ROOT, TOY, run_corpus, run_toy
from tests.corpus.sites import files_of, hostile_source, source_of

BASE = Place("https://owner.example/corpus", "https://github.com/owner/corpus")


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._is_data = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._is_data = tag == "script"

    def handle_endtag(self, _tag: str) -> None:
        self._is_data = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._is_data else data

    def all(self, tag: str) -> Iterator[dict[str, str | None]]:
        """The attributes of each element of a name."""
        return (attributes for name, attributes in self.elements if name == tag)


def main_text(page: str) -> str:
    """What the main part of a page says, blanks as one, a line for each block."""
    main = re.findall(r"<main[^>]*>(.*)</main>", page, re.DOTALL)[0]
    lines = (
        " ".join(line.split())
        for line in Elements(re.sub(r"(</(p|h\d|li|tr|pre|dd|dt)>)", r"\1\n", main)).text.split("\n")
    )
    return "\n".join(line for line in lines if line)


@pytest.fixture(scope="module")
def of_toy(toy: Corpus) -> dict[str, str | bytes]:
    return files_of(source_of(toy, TOY))


@pytest.fixture(scope="module")
def of_toy_with_base(toy: Corpus) -> dict[str, str | bytes]:
    return files_of(source_of(toy, TOY), BASE)


@pytest.fixture(scope="module")
def of_real(real: Corpus) -> dict[str, str | bytes]:
    return files_of(source_of(real, ROOT))


def test_a_site_has_these_files_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    outcome = run_toy("site", "-o", str(tmp_path / "one"))
    again = run_toy("site", "-o", str(tmp_path / "two"))

    written = {
        str(path.relative_to(tmp_path / "one")): path.read_bytes()
        for path in (tmp_path / "one").rglob("*")
        if path.is_file()
    }
    assert sorted(written) == sorted(
        "404.html bibtex.js card.png feed.xml figures/papers-by-year.svg figures/screening-flow.svg icon.svg index.html "
        "papers-data-1.js papers-data.js papers.html papers.js papers/long-grass.html papers/mixed-borders.html papers/rose-garden.html papers/terminal-yard.html "
        "robots.txt screening.html site.css site.js taxonomy.html".split()
    )
    assert outcome == (0, "", f"wrote {tmp_path}/one: 21 files\nOpen {tmp_path}/one/index.html in a browser.\n")
    assert again.code == 0
    assert written == {
        str(path.relative_to(tmp_path / "two")): path.read_bytes()
        for path in (tmp_path / "two").rglob("*")
        if path.is_file()
    }


def test_a_page_of_a_paper_says_all_that_is_recorded(of_toy_with_base: dict[str, str | bytes]) -> None:
    page = of_toy_with_base["papers/rose-garden.html"]

    assert (
        main_text(str(page))
        == """\
Papers › rose-garden
Röses: A Garden in Four Beds
Müller, Änne; O'Neill, Tom; others
Journal of Beds, 2021 · Garden School · added 2021-05-01
example.org/roses example.org/roses/code arXiv 2101.00001 doi 10.5555/roses.1
Copy BibTeX
Cite
BibTeX
@article{rose-garden,
title = {R{\\"o}ses: A Garden in Four Beds},
author = {M{\\"u}ller, {\\"A}nne and O'Neill, Tom and others},
journal = {Journal of Beds},
year = {2021},
eprint = {2101.00001},
archivePrefix = {arXiv},
doi = {10.5555/roses.1},
url = {https://example.org/roses},
}
CSL-JSON
[{"id": "rose-garden", "type": "article-journal", "title": "Röses: A Garden in Four Beds", "author": [{"family": "Müller", "given": "Änne"}, {"family": "O'Neill", "given": "Tom"}, {"literal": "others"}], "issued": {"date-parts": [[2021]]}, "container-title": "Journal of Beds", "archive": "arXiv", "archive_location": "2101.00001", "DOI": "10.5555/roses.1", "URL": "https://example.org/roses", "keyword": "style=formal, water=daily, prune=weekly, tools=spade, tools=shears, size=small", "annote": "Lays out four beds of roses."}]
Lays out four beds of roses.
Tags
FieldTagMeaning
StyleS1 FormalStraight lines.
CareC1 Watering: DailyWhen to water. Every day.
C2 Pruning: WeeklyWhat to prune. Every week.
ToolsSpadeA spade.
ShearsShears.
SizeSmallUp to an acre.
Evidence
1. For Care (visit, high confidence)
The gardener waters every day.
example.org/roses
Fix this record
Report a mistake: opens an issue with the record's name filled in.
In a clone, the record is rose-garden in data/papers.yaml; corpus tag rose-garden sets a tag."""
    )


def test_a_disputed_tag_says_who_reads_what_and_why(of_real: dict[str, str | bytes]) -> None:
    page = str(of_real["papers/puppeteer.html"])

    mark = 'O5 Stop Implicit <a class="mark" href="papers/puppeteer.html#dispute-stop"'
    assert str(of_real["papers.html"]).count(mark) == 1  # in the list, leads to what is said below
    chip = 'O5 Stop: Implicit</a> <a class="chip contested" href="#dispute-stop">contested</a>'
    assert page.count(chip) == page.count('<section class="card" id="dispute-stop"') == 1
    text = main_text(page)
    assert "O5 Stop: Implicit contested" in text
    assert "O5 Stop: Implicit stands. Open.\nImplicit by adjudication\nDesigned by first coder\n" in text


def test_what_speaks_against_a_claim_is_said_beside_it(of_real: dict[str, str | bytes]) -> None:
    start, claims = main_text(str(of_real["index.html"])), str(of_real["claims.html"])

    assert start.partition("What there is, and what is missing\n")[2].partition("Two fields crossed")[0] == (
        "Eight published entries give credit to an orchestrator, five of them to a trained one. "
        "strong counter-evidence falls by the reading of the sources outdated by any addition Why\n"
        "No published entry gives credit to single tokens, to tool calls or to the team as a whole. "
        "strong counter-evidence falls by the reading of the sources falls with the candidates Why\n"
        "No published entry has a reward for tool calls (R5). moderate counter-evidence Why\n"
    )
    table = [re.findall(r">([^<>]+)</t[hd]>|>([^<>]+)</a></th>", row) for row in claims.split("<tr>")[1:]]
    cells = {plain or linked: [one for one, _ in rest] for (plain, linked), *rest in table if rest}
    assert cells["Claim"] == [
        "Published",
        "Today",
        "Candidates",
        "By the sources",
        "Against it",
        "Records",
        "Contested",
    ]
    wanted = {
        "The published pool has 84 entries.": ["holds", "-", "-", "holds", "-", "84", "0"],
        "No published entry gives credit to single tokens, to tool calls or to the team as a whole.": [
            *("holds", "holds", "falls at 1/2", "falls", "strong", "0", "7")
        ],
    }
    assert {claim: cells[claim] for claim in wanted} == wanted
    tags = "matpo credit_unit team, not role", "sirius2025 credit_unit team, not turn"
    linked = [f'<a href="papers/{tag.split()[0]}.html#dispute-credit_unit">{tag}</a>; ' for tag in tags]
    assert f"<dt>Falls by the sources</dt><dd>{''.join(linked)}<a href=" in claims


def test_claims_come_in_the_order_of_the_command_line_and_name_none_of_its_options(
    of_real: dict[str, str | bytes],
) -> None:
    page = str(of_real["claims.html"])
    listed = run_corpus("--root", str(ROOT), "claims", "--all").stdout.splitlines()[1:33]

    assert re.findall(r'<section class="claim" aria-labelledby="([^"]+)">', page) == [
        line.split()[0] for line in listed
    ]
    assert re.findall(r'<p class="muted">(.*)</p>', page)[-1] == (
        "falls at N/M: the first N of M candidates make it fall"
    )


def test_the_page_of_scale_shows_the_verdicts_of_its_claims(of_real: dict[str, str | bytes]) -> None:
    rows = re.findall(r'<a href="claims.html#([a-z0-9-]+)">.*?</th>(.*)</tr>', str(of_real["scale.html"]))
    assert {claim: re.findall(r"<td[^>]*>([^<]*)</td>", cells) for claim, cells in rows} == {
        "reported-beyond-experiments": ["holds", "holds", "holds", "holds", "strong", "2", "0"],
        "experiments-up-to-20-agents": ["holds", "holds", "holds", "holds", "weak", "0", "0"],
    }
    counted = str(of_real["claims.html"]).partition('<h2 id="reported-beyond-experiments">')[2]
    assert '<li><a href="scale.html">Kimi K2.6 Agent Swarm: agents</a></li>' in counted


def test_the_start_page_says_how_many_more_papers_are_of_the_last_day(
    of_real: dict[str, str | bytes], of_toy: dict[str, str | bytes]
) -> None:
    real, toy = (main_text(str(files["index.html"])).partition("Added last\n")[2] for files in (of_real, of_toy))

    assert real.endswith("2026-05-04\nAnd 76 further papers of 2026-05-04.\nFeed of added papers")
    assert toy == (
        "Borders without Lines 2023-06-07\nLong Grass and How to Keep It 2023-02-03\n"
        "Röses: A Garden in Four Beds 2021-05-01\nThe Yard 2021-05-01\nFeed of added papers"
    )


def test_no_cell_is_called_a_gap_where_a_field_does_not_apply(of_real: dict[str, str | bytes]) -> None:
    table = re.findall(r'<table class="matrix".*?</table>', str(of_real["index.html"]), re.DOTALL)[0]
    heads = re.findall(r"<th [^>]*>([^<]+)</th>", table.partition("</thead>")[0])
    for row in table.partition("<tbody>")[2].split("<tr>")[1:]:
        label = re.findall(r"<th [^>]*>([^<]+)</th>", row)[0]
        kinds = re.findall(
            r'<td class="(\w+)">0</td>', re.sub(r'<td class="(heat|imp).*?</td>', '<td class="x">0</td>', row)
        )
        for head, kind in zip(heads, kinds, strict=True):
            assert kind in ("x", "aside" if "Not applicable" in (head, label) else "empty"), (label, head)


def test_all_candidates_are_listed_by_proposal(of_real: dict[str, str | bytes], real: Corpus) -> None:
    page = str(of_real["candidates.html"])
    file = store.CorpusFiles(str(ROOT)).candidates
    keys = {one.value: [each.name for each in file.items if each.proposal is one] for one in Decision}
    include, unclear, exclude = (len(keys[name]) for name in ("include", "unclear", "exclude"))

    assert main_text(page).split("\n")[1] == (
        f"{len(file.items)} papers found, awaiting a person's decision: {include} include, {unclear} unclear, "
        f"{exclude} exclude. None is in the pool. A proposal is not a decision."
    )
    listed = re.findall(r'<details class="candidate" id="([^"]+)">', page)
    assert listed == [key for those in keys.values() for key in those]
    assert min(include, unclear, exclude) > 0


@pytest.mark.parametrize("name", ["toy", "real"])
def test_every_cell_is_a_count_of_the_corpus(name: str, request: pytest.FixtureRequest) -> None:
    corpus: Corpus = request.getfixturevalue(name)
    fields = [field for field in read_fields(corpus.papers, corpus.taxonomy) if field.name != "code"]

    for one in fields:
        for other in fields:
            wanted = corpus.cross(one.name, other.name).crosstab
            counted = count_pairs(one, other)
            for row, numbers in zip(one.values, counted, strict=True):
                for column, number in zip(other.values, numbers, strict=True):
                    assert number == wanted.number(row.id, column.id), (one.name, other.name, row.id, column.id)


def test_pairs_that_a_rule_forbids_cannot_arise(real: Corpus) -> None:
    attributes = paper_attributes(real.taxonomy)

    def pairs(rows: str, columns: str) -> set[tuple[str, str]]:
        return set(cannot_arise(real.taxonomy, attributes[rows], attributes[columns]))

    assert pairs("category", "tier") == {("industry", "core"), ("industry", "supporting")}
    assert pairs("rl", "stop") == {("none", "explicit"), ("none", "implicit")}
    assert pairs("stop", "rl") == {("explicit", "none"), ("implicit", "none")}
    local = ("individual", "role", "hybrid")
    assert pairs("reward_family", "credit_unit") == {(family, "team") for family in local}
    assert pairs("topology", "credit_unit") == set()
    assert pairs("spawn", "stop") == set()  # terms of one facet
    assert pairs("credit_unit", "stop") == set()  # the rule asks for any sub-decision, which another term can be
    assert pairs("year", "rl") == set()


def test_no_paper_is_in_a_cell_that_cannot_arise(real: Corpus) -> None:
    attributes = {name: one for name, one in paper_attributes(real.taxonomy).items() if one.terms}
    names = [
        name for name in attributes if attributes[name].facet is None or attributes[name].facet.kind is not Kind.LEVELS
    ]

    for one in names:
        for other in names:
            crossed = real.cross(one, other)
            for row, column in cannot_arise(real.taxonomy, attributes[one], attributes[other]):
                assert crossed.get(row, {}).get(column, 0) == 0


def test_links_stay_in_the_site_and_lead_somewhere(of_real: dict[str, str | bytes]) -> None:
    pages = {name: Elements(str(page)) for name, page in of_real.items() if name.endswith(".html")}
    ids = {name: {attributes.get("id") for _, attributes in page.elements} for name, page in pages.items()}

    for name, page in pages.items():
        for tag, attributes in page.elements:
            for address in (attributes.get("href"), attributes.get("src")):
                if address is None or address.startswith(("https://", "http://")):
                    assert address is None or tag == "a", (name, address)
                    continue
                path, _, fragment = address.partition("#")
                target = str(Path(Path(name).parent, path)) if path else name
                target = target.replace("papers/../", "")
                assert target in of_real, (name, address)
                assert not fragment or "=" in fragment or fragment in ids[target], (name, address)


def test_hostile_texts_become_no_markup(tmp_path: Path) -> None:
    files = files_of(hostile_source(tmp_path), BASE)

    allowed = {
        "html",
        "head",
        "meta",
        "title",
        "link",
        "script",
        "body",
        "a",
        "header",
        "nav",
        "ul",
        "li",
        "main",
        "h1",
        "h2",
        "h3",
    }
    allowed |= {
        "p",
        "form",
        "label",
        "select",
        "option",
        "button",
        "div",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "td",
        "th",
    }
    allowed |= {
        "span",
        "figure",
        "img",
        "figcaption",
        "details",
        "summary",
        "footer",
        "fieldset",
        "legend",
        "input",
        "pre",
        "dl",
    }
    allowed |= {"dt", "dd", "section", "strong", "code", "ol", "br", "q", "kbd"}
    for name, content in files.items():
        if not name.endswith(".html"):
            continue
        page = Elements(str(content))
        assert {tag for tag, _ in page.elements} <= allowed, name
        for tag, attributes in page.elements:
            assert not any(key.startswith("on") for key in attributes), (name, tag, attributes)
            address = attributes.get("href") or attributes.get("src") or ""
            assert not address.startswith(("javascript:", "x", "data:")), (name, address)
        assert {one.get("type") for one in page.all("script") if "src" not in one} <= {
            "application/json",
            "application/ld+json",
        }
        assert {one["src"] for one in page.all("img")} <= {
            "figures/papers-by-year.svg",
            "figures/screening-flow.svg",
            "figures/scale-gap.svg",
        }
    for name in ("feed.xml", "sitemap.xml"):
        ET.fromstring(str(files[name]))  # well formed
    assert "<" not in str(files["bibtex.js"])


def test_every_page_forbids_scripts_but_its_own(of_toy: dict[str, str | bytes]) -> None:
    for name, page in of_toy.items():
        if name.endswith(".html"):
            policy = next(
                one for one in Elements(str(page)).all("meta") if one.get("http-equiv") == "Content-Security-Policy"
            )
            own = f" {source_hash(text_beside(site.__file__, 'missing.js'))}" if name == "404.html" else ""
            assert policy["content"] == (
                f"default-src 'none'; script-src 'self'{own}; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
            )


def test_a_base_url_gives_previews_and_a_map(
    of_toy: dict[str, str | bytes], of_toy_with_base: dict[str, str | bytes]
) -> None:
    files = of_toy_with_base

    metas = {
        one.get("property"): one.get("content") for one in Elements(str(files["papers/long-grass.html"])).all("meta")
    }
    assert metas["og:title"] == "Long Grass and How to Keep It"
    assert metas["og:description"] == "Keeps a meadow without any tool."
    assert metas["og:url"] == "https://owner.example/corpus/papers/long-grass.html"
    assert metas["og:image"] == "https://owner.example/corpus/card.png"
    addresses = re.findall("<loc>(.*)</loc>", str(files["sitemap.xml"]))
    assert addresses == [
        f"https://owner.example/corpus/{name}"
        for name in (
            "index.html",
            "papers.html",
            "screening.html",
            "taxonomy.html",
            "papers/rose-garden.html",
            "papers/long-grass.html",
            "papers/mixed-borders.html",
            "papers/terminal-yard.html",
        )
    ]
    assert 'href="https://owner.example/corpus/site.css"' in str(files["404.html"])  # shown at any address
    assert "sitemap.xml" not in of_toy


def test_a_page_of_a_paper_can_be_cited(
    of_toy: dict[str, str | bytes], of_toy_with_base: dict[str, str | bytes]
) -> None:
    page = str(of_toy_with_base["papers/rose-garden.html"])
    metas = [(one.get("name"), one.get("content")) for one in Elements(page).all("meta")]
    data = json.loads(re.findall(r'<script type="application/ld\+json">(.*)</script>', page)[0])

    # The names that Google Scholar asks for, and those that Zotero reads beside them.
    assert [(name, content) for name, content in metas if str(name).startswith("citation_")] == [
        ("citation_title", "Röses: A Garden in Four Beds"),
        ("citation_author", "Müller, Änne"),
        ("citation_author", "O'Neill, Tom"),
        ("citation_publication_date", "2021"),
        ("citation_journal_title", "Journal of Beds"),
        ("citation_doi", "10.5555/roses.1"),
        ("citation_arxiv_id", "2101.00001"),
        ("citation_pdf_url", "https://arxiv.org/pdf/2101.00001"),
        ("citation_public_url", "https://example.org/roses"),
        ("citation_abstract_html_url", "https://owner.example/corpus/papers/rose-garden.html"),
    ]
    assert data == {
        "@context": "https://schema.org",
        "@type": "ScholarlyArticle",
        "headline": "Röses: A Garden in Four Beds",
        "name": "Röses: A Garden in Four Beds",
        "author": [{"@type": "Person", "name": "Änne Müller"}, {"@type": "Person", "name": "Tom O'Neill"}],
        "datePublished": "2021",
        "isPartOf": {"@type": "Periodical", "name": "Journal of Beds"},
        "identifier": [
            {"@type": "PropertyValue", "propertyID": "DOI", "value": "10.5555/roses.1"},
            {"@type": "PropertyValue", "propertyID": "arXiv", "value": "2101.00001"},
        ],
        "url": "https://example.org/roses",
        "sameAs": ["https://doi.org/10.5555/roses.1", "https://arxiv.org/abs/2101.00001"],
        "mainEntityOfPage": "https://owner.example/corpus/papers/rose-garden.html",
        "description": "Lays out four beds of roses.",
    }
    assert '<meta property="og:type" content="article">' in page
    assert "citation_abstract_html_url" not in str(of_toy["papers/rose-garden.html"])
    assert '"@type":"Dataset"' in str(of_toy_with_base["index.html"])
    assert of_toy_with_base["robots.txt"] == (
        "User-agent: *\nAllow: /\n\nSitemap: https://owner.example/corpus/sitemap.xml\n"
    )
    assert of_toy["robots.txt"] == "User-agent: *\nAllow: /\n"


def test_titles_fit_lists_of_results(of_real: dict[str, str | bytes]) -> None:
    titles = [
        re.findall("<title>(.*)</title>", str(page))[0] for name, page in of_real.items() if name.endswith(".html")
    ]

    assert max(len(html.unescape(title)) for title in titles) < 70
    assert page_title("Roses", "Gardens") == "Roses · Gardens"
    assert page_title("Gardens", "Gardens") == "Gardens"
    assert page_title(60 * "r", "Gardens of the world") == 60 * "r"
    assert page_title(20 * "rose ", "Gardens") == 12 * "rose " + "rose…"
    assert page_title(100 * "r", "Gardens") == 68 * "r" + "…"


def test_the_page_of_what_is_not_found_needs_no_base_url(
    of_toy: dict[str, str | bytes], of_toy_with_base: dict[str, str | bytes]
) -> None:
    assert re.findall(r"<script>([^<]*)</script>", str(of_toy["404.html"])) == [
        text_beside(site.__file__, "missing.js")
    ]
    assert "<script>" not in str(of_toy_with_base["404.html"])


def test_the_feed_has_the_latest_papers_first_under_lasting_names(
    of_toy: dict[str, str | bytes], of_toy_with_base: dict[str, str | bytes]
) -> None:
    atom = "{http://www.w3.org/2005/Atom}"
    here, there = (ET.fromstring(str(files["feed.xml"])) for files in (of_toy, of_toy_with_base))

    assert [one.findtext(f"{atom}title") for one in here.iter(f"{atom}entry")] == [
        "Borders without Lines", "Long Grass and How to Keep It", "Röses: A Garden in Four Beds", "The Yard",
    ]  # fmt: skip
    assert here.findtext(f"{atom}updated") == "2023-06-07T00:00:00Z"
    assert [one.text for one in here.iter(f"{atom}id")] == [one.text for one in there.iter(f"{atom}id")]
    assert [one.attrib["href"] for one in there.iter(f"{atom}link")][:2] == [
        "https://owner.example/corpus/feed.xml", "https://owner.example/corpus/index.html",
    ]  # fmt: skip


def test_the_picture_shows_the_counts() -> None:
    png = feed.picture([[0, 12], [3, 0]])

    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        size, name = struct.unpack(">I4s", png[at : at + 8])
        data = png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size])[0] == zlib.crc32(name + data)
        chunks[name] = data
        at += 12 + size
    assert chunks[b"IHDR"] == struct.pack(">IIBBBBB", 1200, 630, 8, 3, 0, 0, 0)
    pixels = zlib.decompress(chunks[b"IDAT"])
    rows = [pixels[line * 1201 + 1 : (line + 1) * 1201] for line in range(630)]
    # A corner of each square: none, many, few, none; as indices into the palette.
    assert [rows[y][x] for y, x in ((35, 35), (35, 605), (320, 35), (320, 605))] == [1, 5, 2, 1]
    assert {7, 5} == set(rows[160][605:1160])  # the digits of 12, and what they stand on


def test_a_new_corpus_with_other_axes_has_a_site(tmp_path: Path) -> None:
    assert run_corpus("init", str(tmp_path / "new")).code == 0

    outcome = run_corpus("--root", str(tmp_path / "new"), "site", "-o", str(tmp_path / "site"))

    assert outcome.code == 0, outcome.stderr
    text = main_text((tmp_path / "site" / "index.html").read_text(encoding="utf-8"))
    assert text.startswith("Retrieval-augmented generation (an example)\n3 papers and 1 exclusion: 4 audited records.")
    assert "Papers by Retriever and " in text


def test_a_folder_without_its_option_is_refused_with_the_option(tmp_path: Path) -> None:
    refused = run_corpus("--root", str(TOY), "site", str(tmp_path / "public"))

    assert (refused.code, refused.stdout) == (2, "")
    usage, _, _, error, advice = refused.stderr.splitlines()
    assert usage == "Usage: corpus site [OPTIONS]"
    assert error.endswith(f"({tmp_path / 'public'})")
    assert advice == "Name where to write with -o: corpus site -o DIR"
    assert "-o" not in run_corpus("--root", str(TOY), "gaps", "style", "size", "tools").stderr


def test_a_site_replaces_one_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    assert run_toy("site", "-o", str(folder)).code == 0
    (folder / "papers" / "gone.html").write_text("of a paper that is no longer there", encoding="utf-8")

    assert run_toy("site", "-o", str(folder)).code == 0
    assert not (folder / "papers" / "gone.html").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site"]

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("<p>mine</p>", encoding="utf-8")
    refused = run_toy("site", "-o", str(tmp_path / "mine"))
    assert (refused.code, (tmp_path / "mine" / "index.html").read_text(encoding="utf-8")) == (3, "<p>mine</p>")
    assert "mine holds something else\nName a new folder, or an empty one.\n" in refused.stderr


def test_a_site_is_not_written_over_its_corpus(tmp_path: Path) -> None:
    shutil.copytree(TOY, tmp_path / "toy")

    for folder in (tmp_path / "toy", tmp_path):
        outcome = run_corpus("--root", str(tmp_path / "toy"), "site", "-o", str(folder))
        assert outcome.code == 2
        assert "cannot hold the site: the corpus is in it" in outcome.stderr
    assert (tmp_path / "toy" / "data" / "papers.yaml").exists()


@pytest.mark.parametrize("option", ["--base-url", "--repository"])
def test_addresses_of_a_site_are_those_of_the_web(option: str, tmp_path: Path) -> None:
    outcome = run_toy("site", "-o", str(tmp_path / "site"), option, "javascript:alert(1)")

    assert (outcome.code, outcome.stderr) == (
        2, f"corpus: {option} is not a web address: 'javascript:alert(1)'\nWrite one that begins with https://\n",
    )  # fmt: skip
    assert not (tmp_path / "site").exists()


def test_a_folder_that_cannot_be_made_is_said_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, made = tempfile.mkdtemp, list[str]()

    def second_fails(**options: str) -> str:
        if made:
            raise OSError(errno.ENOSPC, "No space left on device")
        made.append(make(**options))
        return made[0]

    monkeypatch.setattr(tempfile, "mkdtemp", second_fails)
    outcome = run_toy("site", "-o", str(tmp_path / "site"))

    assert outcome.code == 3
    assert outcome.stderr.endswith("site: No space left on device\nNothing was changed.\n")
    assert (len(made), list(tmp_path.iterdir())) == (1, [])


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    replace_folder(str(target), [("a/b.txt", "old")], lambda _: True)
    (tmp_path / ".corpus-folder-left.tmp").mkdir()  # by a writer that was killed

    def failing() -> Iterator[tuple[str, str]]:
        yield "a/b.txt", "new"
        raise DataFileError("no more")

    with pytest.raises(DataFileError, match="no more"):
        replace_folder(str(target), failing(), lambda _: True)

    assert (target / "a" / "b.txt").read_text(encoding="utf-8") == "old"
    assert replace_folder(str(target), [("c.bin", b"\0"), ("d/e/f.txt", "é")], lambda _: True) == 2
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == [
        "folder/c.bin",
        "folder/d/e/f.txt",
    ]


def test_a_large_corpus_is_listed_on_several_pages_without_a_script(toy: Corpus) -> None:
    papers = tuple(toy.papers[0]._replace(key=f"rose-{number:03}") for number in range(201))
    large = Corpus(source_of(toy, TOY).pool._replace(papers=papers))

    files = files_of(source_of(large, TOY))

    names = [name for name in files if re.fullmatch(r"papers(-\d)?\.html", name)]
    assert names == ["papers.html", "papers-2.html", "papers-3.html"]
    listed = [str(files[name]).count('<th scope="row">') for name in names]
    assert listed == [100, 100, 1]
    assert "papers-data.js" not in str(files["papers-2.html"])
