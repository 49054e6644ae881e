"""The corpus as a static site: a folder of pages that need no server, no network and no build step.

Pages are complete without scripts, which only add filters. Embedded data is JSON that cannot run. The same data and the
same URLs give the same pages.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import product
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from orchtrace_corpus.base import __version__
from orchtrace_corpus.base.files import read_text_beside
from orchtrace_corpus.base.html import (
    OWN_FILES,
    content_security_policy,
    environment,
    escape_text,
    inert_json,
    join_html,
    source_hash,
    style_sheet,
)
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.corpus.render.figures import plan
from orchtrace_corpus.corpus.render.figures.pictures import draw
from orchtrace_corpus.corpus.site import cards, pages, papers
from orchtrace_corpus.corpus.site.gaps import GapPages
from orchtrace_corpus.corpus.site.metadata import dataset, page_title
from orchtrace_corpus.corpus.site.source import Place, Source, term_label

START = "index.html"
CARD = "card.png"
GENERATOR = "orchtrace-corpus"
"""The name in the head of the start page by which `is_site` recognises a site of this program."""

_FEED_ENTRIES = 50
_FIGURES = (plan.FigureKind.SKETCHES, plan.FigureKind.SCREENING, plan.FigureKind.SCALE)


class Picture(NamedTuple):
    """A figure of a page: its path, the picture, its title, its numbers in words, and its size in pixels."""

    path: str
    svg: str
    title: str
    text: str
    width: int
    height: int


class Site:
    """A site; `files` makes its files one by one."""

    def __init__(self, source: Source, place: Place) -> None:
        self._source = source
        self._place = place
        self._environment = environment(__file__)
        self._fields = papers.read_fields(source.pool.papers, source.taxonomy, source.contested)
        self._figures = {}  # by kind; sketches of terms by the field of their facet
        for figure in plan.figures_of(source.figure_source):
            if figure.kind in _FIGURES:
                caption = plan.caption(figure, source.figure_source)
                svg = draw(figure, source.figure_source, caption)
                width, height = (int(number) for number in re.findall(r'viewBox="0 0 (\d+) (\d+)"', svg)[0])
                picture = Picture(f"figures/{figure.name}.svg", svg, caption.title, caption.text, width, height)
                self._figures[figure.field or figure.kind.value] = picture
        self._gaps = GapPages(source)
        self._start = pages.start(source, self._fields, self._gaps, place.base_url)
        self._pages = list(self._main_pages())
        self._cards: cards.Cards | None = None
        if place.base_url and cards.is_available():
            self._cards = cards.Cards(source.taxonomy.title, self._start["matrix"])
        self._environment.globals |= {
            "site": source.taxonomy.title,
            "version": __version__,
            "generator": GENERATOR,
            "policy": content_security_policy([OWN_FILES], [OWN_FILES], [OWN_FILES]),
            "navigation": [(name, label) for name, label, *_ in self._pages if label],
            "place": place,
            "license": source.taxonomy.license,
            "claim_address": pages.claim_address,
            "has_cards": self._cards is not None,
            "term_label": term_label,
            "tag_labels": source.tag_labels,
            "value_label": source.value_label,
            "noun": source.taxonomy.noun,
            "pluralize": pluralize,
            "figures": self._figures,
        }

    def files(self) -> Iterator[tuple[str, str | bytes]]:
        """Yield the files of the site, each with its path below the site's folder."""
        source, taxonomy = self._source, self._source.taxonomy
        yield "site.css", style_sheet() + read_text_beside(__file__, "site.css")
        for name in ("site.js", "papers.js", "icon.svg"):
            yield name, read_text_beside(__file__, name)
        yield from ((picture.path, picture.svg) for picture in self._figures.values())
        for name, _, template, heading, values in self._pages:
            yield name, self._render(template, name, {"title": heading, **values})
        yield from papers.data_files(source, self._fields, papers.read_columns(self._fields, taxonomy))
        if source.has_candidates:
            fields = papers.candidate_fields(pages.by_proposal(source.candidates), taxonomy)
            data = papers.filter_data(fields, len(source.candidates), taxonomy.noun)
            yield "candidates-data.js", papers.data_script(data)
        yield from self._paper_pages()
        yield from self._claim_pages()
        yield from self._gap_pages()
        yield from self._files_for_programs()

    def _main_pages(self) -> Iterator[tuple[str, str, str, str, Mapping[str, Any]]]:
        """Yield the pages of the menu, further pages of the list of papers, and 404.html.

        Each is a file name, a label in the menu (empty if it is not there), a template, a heading, and values.
        """
        source, title = self._source, self._source.taxonomy.title
        noun = source.taxonomy.noun
        total = noun.counted(len(source.pool.papers))
        text = f"{title}: {total}, tagged and sourced."
        newest = max((paper.added for paper in source.pool.papers), default="")
        metadata = dataset(source, text, self._place.address(""), newest)
        yield START, "Start", "start", title, {**self._start, "dataset": metadata, "description": text}
        columns = papers.read_columns(self._fields, source.taxonomy)
        shown_columns = [column for column in columns if column.is_shown]
        rows = list(papers.table_rows(source, self._fields, shown_columns, self._environment))
        size = papers.ROWS_OF_A_PAGE
        parts = [rows[start : start + size] for start in range(0, max(len(rows), 1), size)]  # at least one page
        for position, part in enumerate(parts, 1):
            name = papers.PAPERS_PAGE if position == 1 else f"papers-{position}.html"
            values = {
                "description": f"{total}, to search, filter and export.",
                "columns": columns,
                "groups": papers.group_fields(self._fields),
                "part": part,
                "parts": len(parts),
                "number": position,
                "total": len(rows),
                "is_first": position == 1,
                "has_contested": bool(source.contested),
            }
            label = noun.heading if position == 1 else ""
            yield name, label, "papers", noun.heading, values
        others: dict[str, tuple[object, Callable[[Source], Mapping[str, Any]]]] = {
            "claims": (source.verdicts, pages.claims),
            "scale": (source.scale, pages.scale_page),
            "screening": (source.figure_source.is_screened, pages.screening),
            "candidates": (source.has_candidates, pages.candidates),
            "taxonomy": (True, lambda source: pages.taxonomy(source, self._fields, self._gaps)),
            "protocol": (source.protocol, pages.protocol),
        }
        for page, (has_page, read_values) in others.items():
            if has_page:
                yield f"{page}.html", page.capitalize(), page, page.capitalize(), read_values(source)
        yield "404.html", "", "missing", "Not found", {"description": "There is no such page."}

    def _paper_pages(self) -> Iterator[tuple[str, str | bytes]]:
        """Yield a page for each paper, and the BibTeX entries that the script exports."""
        paper_pages = papers.PaperPages(self._source, self._environment, self._place.repository)
        noun = self._source.taxonomy.noun.heading_one
        rows, columns = self._start["rows"], self._start["columns"]
        entries = []
        for index, paper in enumerate(self._source.pool.papers):
            name = f"papers/{paper.key}.html"
            entry, values, metadata = paper_pages.page(paper, self._place.address(name))
            entries.append(entry)
            cells = list(product(rows.indices_by_paper[index], columns.indices_by_paper[index]))
            card = (f"{noun} {paper.year or ''}", paper.title, paper.summary, cells, "series0")
            yield from self._subpage("paper", name, paper.title, paper.summary, values, card, metadata)
        yield "bibtex.js", f"window.corpusEntries = {inert_json(entries)};\n"

    def _claim_pages(self) -> Iterator[tuple[str, str | bytes]]:
        """Yield a page for each claim, so that people can link to it."""
        colours = {pages.Outcome.HOLDS: "series3", pages.Outcome.DOUBTED: "series1", pages.Outcome.FAILS: "series5"}
        for described in pages.describe_claims(self._source, self._source.verdicts):
            claim, outcome = described["verdict"].claim, described["outcome"]
            text = outcome.capitalize()
            if described["doubts"]:
                text += f": {'; '.join(described['doubts'])}"
            text += f". {claim.boundary}"
            name = pages.claim_address(described["verdict"])
            card = (f"Claim: {outcome}", claim.claim, text, (), colours[outcome])
            yield from self._subpage("claim", name, claim.claim, text, {"one": described}, card)

    def _gap_pages(self) -> Iterator[tuple[str, str | bytes]]:
        """Yield a page for each gap, and a script with the addresses of all gaps, for the fields that readers cross."""
        rows, columns = self._start["rows"], self._start["columns"]
        row_ids = [value.id for value in rows.values]
        column_ids = [value.id for value in columns.values]
        for name, cell in self._gaps.cells.items():
            label, sentence = self._gaps.label(cell), self._gaps.sentence(cell)
            kind = "Cannot arise" if cell.why else "Not in this corpus"
            title = f"Cannot arise: {label}" if cell.why else f"No {self._source.taxonomy.noun.one}: {label}"
            cells = []  # of the matrix in the picture
            if [field for field, _ in cell.filters] == [rows.name, columns.name]:
                (_, row), (_, column) = cell.filters
                cells = [(row_ids.index(row), column_ids.index(column))]
            values = self._gaps.values(cell, self._place.repository)
            yield from self._subpage("gap", name, title, sentence, values, (kind, label, sentence, cells, "series5"))
        yield "gaps.js", f"window.corpusGaps = {inert_json(self._gaps.data())};\n"

    @cached_property
    def _frame(self) -> list[str]:
        """The frame of a page in a folder as parts: HTML and the name of a value in turn.

        It is rendered once, with names in place of values, since there are many such pages.
        """
        names = ("name", "title", "document_title", "description", "metadata", "card", "main")
        frame = self._render("shell", "", {name: f"\0{name}\0" for name in names}, "../")
        return frame.split("\0")  # a character that texts of the data cannot contain

    def _subpage(
        self,
        template: str,
        name: str,
        title: str,
        description: str,
        values: Mapping[str, Any],
        card: tuple[Any, ...],
        metadata: str = "",
    ) -> Iterator[tuple[str, str | bytes]]:
        """Yield a page in a folder, and its picture for links if it can be drawn; `card` are the arguments for it."""
        picture = self._cards.draw(*card) if self._cards else None
        picture_path = CARD if picture is None else f"{name.removesuffix('.html')}.png"
        texts = {
            "name": escape_text(name),
            "title": escape_text(title),
            "document_title": escape_text(page_title(title, self._source.taxonomy.title)),
            "description": escape_text(description),
            "metadata": metadata,
            "card": escape_text(picture_path),
            "main": self._environment.get_template(f"{template}.html.jinja").render(values),
        }
        yield name, "".join(texts[part] if index % 2 else part for index, part in enumerate(self._frame))
        if picture is not None:
            yield picture_path, picture

    def _files_for_programs(self) -> Iterator[tuple[str, str | bytes]]:
        """Yield the feed, the picture of the start page, robots.txt and the map of the site."""
        taxonomy = self._source.taxonomy
        newest = sorted(self._source.pool.papers, key=lambda paper: paper.added, reverse=True)
        urls = [paper.urls[0] if paper.urls else "" for paper in newest]
        entries = [(_permanent_id(url, paper.key), paper) for url, paper in zip(urls, newest, strict=True)]
        values = {
            "id": _permanent_id(taxonomy.source, taxonomy.title),
            "updated": newest[0].added if newest else "1970-01-01",
            "entries": entries[:_FEED_ENTRIES],
        }
        yield "feed.xml", self._environment.get_template("feed.xml.jinja").render(values)
        if self._cards:
            picture = self._cards.draw("", self._start["statement"], self._start["purpose"], (), "series0")
            if picture:
                yield CARD, picture
        yield "robots.txt", self._environment.get_template("robots.txt.jinja").render()
        if self._place.base_url:
            names = [name for name, *_ in self._pages if name != "404.html"]
            names += [f"papers/{paper.key}.html" for paper in self._source.pool.papers]
            names += [*map(pages.claim_address, self._source.verdicts), *self._gaps.cells]
            values = {"addresses": [f"{self._place.base_url}/{name}" for name in names]}
            yield "sitemap.xml", self._environment.get_template("sitemap.xml.jinja").render(values)

    def _render(self, template: str, name: str, values: Mapping[str, Any], root: str = "") -> str:
        """Return a page from its template."""
        context = {"root": root, "name": name, "card": CARD, **values}
        if template == "missing":  # it is shown at any address, so its links are absolute, or a script makes them so
            script = "" if self._place.base_url else read_text_beside(__file__, "missing.js")
            sources = [OWN_FILES, source_hash(script)] if script else [OWN_FILES]
            policy = content_security_policy(sources, [OWN_FILES], [OWN_FILES])
            context |= {"root": self._place.address(""), "script": join_html([script]), "policy": policy}
        if "document_title" not in context:
            context["document_title"] = page_title(context["title"], self._source.taxonomy.title)
        return self._environment.get_template(f"{template}.html.jinja").render(context)


def _permanent_id(address: str, name: str) -> str:
    """Return an id of a feed or of an entry that stays the same if the site moves."""
    return uuid5(NAMESPACE_URL, f"{address}#{name}").urn


def is_site(folder: str) -> bool:
    """Return True if a folder has a site made by this program."""
    try:
        with open(os.path.join(folder, START), encoding="utf-8", errors="replace") as file:
            return f'<meta name="generator" content="{GENERATOR} ' in file.read(10_000)
    except OSError:
        return False
