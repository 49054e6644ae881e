"""The corpus as a static site: a folder of pages that need no server, no network and no build step.

Pages are HTML that says everything without a script; one script adds filters. Data is embedded as JSON that cannot
run. Nothing in a page depends on anything but the data and where the site will be read.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from operator import attrgetter
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from orchtrace_corpus.base import __version__
from orchtrace_corpus.base.files import text_beside
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
from orchtrace_corpus.corpus.formats.records import csl_item
from orchtrace_corpus.corpus.render.figures import plan
from orchtrace_corpus.corpus.render.figures.pictures import draw
from orchtrace_corpus.corpus.site import cards, pages, papers
from orchtrace_corpus.corpus.site.gaps import GapPages
from orchtrace_corpus.corpus.site.metadata import dataset, page_title
from orchtrace_corpus.corpus.site.source import Place, Source, term_label

START = "index.html"
CARD = "card.png"
GENERATOR = "orchtrace-corpus"
"""The maker that the start page names; a folder without it is none of ours."""

_FEED_ENTRIES = 50
_FIGURES = (plan.FigureKind.SKETCHES, plan.FigureKind.SCREENING, plan.FigureKind.SCALE)


class Drawn(NamedTuple):
    """A figure of a page: its path, its picture, its title, its numbers in words, and its size in pixels."""

    path: str
    svg: str
    title: str
    text: str
    width: int
    height: int


class Site:
    """A site in the making: its pages by name, each made when it is asked for."""

    def __init__(self, source: Source, place: Place) -> None:
        """Take what it is made from.

        Args:
            source: The corpus and what is recorded about it.
            place: Where the site will be read.
        """
        self._source = source
        self._place = place
        self._environment = environment(__file__)
        self._fields = papers.read_fields(source.pool.papers, source.taxonomy, source.contested)
        self._figures = {}  # of sketches there may be several, each of a facet
        for figure in plan.figures_of(source.drawn):
            if figure.kind in _FIGURES:
                caption = plan.caption(figure, source.drawn)
                svg = draw(figure, source.drawn, caption)
                width, height = (int(number) for number in re.findall(r'viewBox="0 0 (\d+) (\d+)"', svg)[0])
                drawn = Drawn(f"figures/{figure.name}.svg", svg, caption.title, caption.text, width, height)
                self._figures[figure.field or figure.kind.value] = drawn
        self._gaps = GapPages(source)
        self._pages = list(self._named_pages())
        title = source.taxonomy.title
        self._cards: cards.Cards | None = None
        if place.base_url and cards.is_available():
            self._cards = cards.Cards(title, self._pages[0][-1]["matrix"])
        self._environment.globals |= {
            "site": title,
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
        """Every file of the site, by its path below the site's folder."""
        yield "site.css", style_sheet() + text_beside(__file__, "site.css")
        yield "site.js", text_beside(__file__, "site.js")
        yield "papers.js", text_beside(__file__, "papers.js")
        yield "icon.svg", text_beside(__file__, "icon.svg")
        for drawn in self._figures.values():
            yield drawn.path, drawn.svg
        for name, _, template, heading, description, values in self._pages:
            yield name, self._render(template, name, {"title": heading, "description": description, **values})
        yield from papers.list_files(
            self._source, self._fields, papers.read_columns(self._fields, self._source.taxonomy)
        )
        if self._source.has_candidates:
            listed = pages.by_proposal(self._source.candidates)
            fields, taxonomy = papers.candidate_fields(listed, self._source.taxonomy), self._source.taxonomy
            yield "candidates-data.js", papers.data_script(papers.filter_data(fields, len(listed), taxonomy.noun))
        yield from self._papers()
        yield from self._claims()
        yield from self._gap_pages()
        yield from self._for_programs()

    def _named_pages(self) -> Iterator[tuple[str, str, str, str, str, Mapping[str, Any]]]:
        """The pages with a name of their own: file, label in the menu, template, heading, description, values."""
        source, title = self._source, self._source.taxonomy.title
        noun = source.taxonomy.noun
        total = noun.counted(len(source.pool.papers))
        text = f"{title}: {total}, tagged and sourced."
        newest = max((paper.added for paper in source.pool.papers), default="")
        described = dataset(source, text, self._place.address(""), newest)
        start = pages.start(source, self._fields, self._gaps, self._place.base_url)
        yield START, "Start", "start", title, text, {**start, "dataset": described}
        columns = papers.read_columns(self._fields, source.taxonomy)
        shown = [column for column in columns if column.is_shown]
        rows = list(papers.table_rows(source, self._fields, shown, self._environment))
        parts = [rows[at : at + papers.ROWS_OF_A_PAGE] for at in range(0, len(rows), papers.ROWS_OF_A_PAGE)] or [[]]
        for position, part in enumerate(parts, 1):
            name = papers.PAPERS_PAGE if position == 1 else f"papers-{position}.html"
            values = {
                "columns": columns,
                "groups": papers.grouped(self._fields),
                "part": part,
                "parts": len(parts),
                "number": position,
                "total": len(rows),
                "is_first": position == 1,
                "has_contested": bool(source.contested),
            }
            label = noun.heading if position == 1 else ""
            yield name, label, "papers", noun.heading, f"{total}, to search, filter and export.", values
        claimed = "What the corpus claims about itself, held against its records."
        sized = "How large systems in use are, and how large experiments are."
        screened = "What was screened, and what was left out, with the reason."
        found = "What was found, and awaits a decision."
        tagged = f"What {noun.many} are tagged with, and what each tag means."
        admitted = f"How {noun.many} come into the corpus."
        named: tuple[tuple[str, object, str, Callable[[Source], Mapping[str, Any]]], ...] = (
            ("claims", source.verdicts, claimed, pages.claims),
            ("scale", source.scale, sized, pages.scale_page),
            ("screening", source.drawn.is_screened, screened, pages.screening),
            ("candidates", source.has_candidates, found, pages.candidates),
            ("taxonomy", True, tagged, lambda source: pages.taxonomy(source, self._fields, self._gaps)),
            ("protocol", source.protocol, admitted, pages.protocol),
        )
        for page, has_page, text, read_values in named:
            if has_page:
                yield f"{page}.html", page.capitalize(), page, page.capitalize(), text, read_values(source)
        yield "404.html", "", "missing", "Not found", "There is no such page.", {}

    def _papers(self) -> Iterator[tuple[str, str | bytes]]:
        """A page for each paper, and the entries for BibTeX that the script exports."""
        made = papers.PaperPages(self._source, self._environment, self._place.repository)
        noun = self._source.taxonomy.noun.heading_one
        rows, columns = (self._pages[0][-1][name] for name in ("rows", "columns"))
        entries = []
        whole = self._whole("paper")
        for index, paper in enumerate(self._source.pool.papers):
            entry = made.bibtex(paper)
            entries.append(entry)
            cells = list(product(rows.column[index], columns.column[index]))
            card = (f"{noun} {paper.year or ''}", paper.title, paper.summary, cells, "series0")
            name = f"papers/{paper.key}.html"
            item = csl_item(paper, self._source.taxonomy)
            metadata = made.metadata(paper, item, self._place.address(name))
            yield from whole(name, paper.title, paper.summary, made.values(paper, entry, item), card, metadata)
        yield "bibtex.js", f"window.corpusEntries = {inert_json(entries)};\n"

    def _claims(self) -> Iterator[tuple[str, str | bytes]]:
        """A page for each claim, so that it can be shared."""
        colours = {pages.Outcome.HOLDS: "series3", pages.Outcome.DOUBTED: "series1", pages.Outcome.FAILS: "series5"}
        whole = self._whole("claim")
        for judged in pages.judge(self._source, self._source.verdicts):
            claim, outcome = judged["verdict"].claim, judged["outcome"]
            doubts = ": " * bool(judged["doubts"]) + "; ".join(judged["doubts"])
            text = f"{outcome.capitalize()}{doubts}. {claim.boundary}"
            card = (f"Claim: {outcome}", claim.claim, text, (), colours[outcome])
            yield from whole(pages.claim_address(judged["verdict"]), claim.claim, text, {"one": judged}, card)

    def _gap_pages(self) -> Iterator[tuple[str, str | bytes]]:
        """A page for each gap, and the addresses of all for what readers cross or filter at will."""
        axes = [self._pages[0][-1][name] for name in ("rows", "columns")]
        places = [{value.id: place for place, value in enumerate(field.values)} for field in axes]
        whole = self._whole("gap")
        for name, cell in self._gaps.cells.items():
            label, sentence = self._gaps.label(cell), self._gaps.sentence(cell)
            kind = "Cannot arise" if cell.why else "Not in this corpus"
            title = f"{'Cannot arise' if cell.why else f'No {self._source.taxonomy.noun.one}'}: {label}"
            is_crossed = [filter_name for filter_name, _ in cell.filters] == [field.name for field in axes]
            cells = [(places[0][cell.filters[0][1]], places[1][cell.filters[1][1]])] if is_crossed else []
            values = self._gaps.values(cell, self._place.repository)
            yield from whole(name, title, sentence, values, (kind, label, sentence, cells, "series5"))
        yield "gaps.js", f"window.corpusGaps = {inert_json(self._gaps.data())};\n"

    def _whole(self, template: str) -> Callable[..., Iterator[tuple[str, str | bytes]]]:
        """Return a function that yields a page in its folder, and its picture where one can be drawn.

        It takes the name, the title, the description and the values of a page, what its picture shows, and further
        metadata.
        """
        main, shell = self._environment.get_template(f"{template}.html.jinja"), self._shell("../")

        def whole(
            name: str,
            title: str,
            description: str,
            values: Mapping[str, Any],
            card: tuple[Any, ...],
            metadata: str = "",
        ) -> Iterator[tuple[str, str | bytes]]:
            picture = self._cards.draw(*card) if self._cards else None
            path = CARD if picture is None else f"{name.removesuffix('.html')}.png"
            yield name, shell(name, title, description, metadata, main.render(values), path)
            if picture is not None:
                yield path, picture

        return whole

    def _for_programs(self) -> Iterator[tuple[str, str | bytes]]:
        newest, taxonomy = (
            sorted(self._source.pool.papers, key=attrgetter("added"), reverse=True),
            self._source.taxonomy,
        )
        recent = newest[:_FEED_ENTRIES]
        values = {
            "id": _permanent_id(taxonomy.source, taxonomy.title),
            "updated": newest[0].added if newest else "1970-01-01",
            "entries": [(_permanent_id(next(iter(paper.urls), ""), paper.key), paper) for paper in recent],
        }
        yield "feed.xml", self._environment.get_template("feed.xml.jinja").render(values)
        start = self._pages[0][-1]
        if self._cards and (card := self._cards.draw("", start["statement"], start["purpose"], (), "series0")):
            yield CARD, card
        yield "robots.txt", self._environment.get_template("robots.txt.jinja").render()
        if self._place.base_url:
            keys = [f"papers/{paper.key}.html" for paper in self._source.pool.papers]
            keys += [*map(pages.claim_address, self._source.verdicts), *self._gaps.cells]
            names = [name for name, *_ in self._pages if name != "404.html"]
            values = {"addresses": [f"{self._place.base_url}/{name}" for name in (*names, *keys)]}
            yield "sitemap.xml", self._environment.get_template("sitemap.xml.jinja").render(values)

    def _shell(self, root: str) -> Callable[..., str]:
        """Return a function that puts the frame around the main part of a page.

        It takes name, title, description, further metadata, the part, and the picture for links. Made once for many
        pages: a frame costs as much as what is in it.
        """
        marks = ("name", "title", "document_title", "description", "metadata", "card", "main")
        frame = self._render("shell", "", {mark: f"\0{mark}\0" for mark in marks}, root)
        parts = frame.split("\0")  # which no text of the data holds: its reader refuses it
        places = [(at, part) for at, part in enumerate(parts) if at % 2]

        def fill(name: str, title: str, description: str, metadata: str, main: str, card: str) -> str:
            texts = {
                "name": escape_text(name),
                "title": escape_text(title),
                "document_title": escape_text(page_title(title, self._source.taxonomy.title)),
                "description": escape_text(description),
                "metadata": metadata,
                "card": escape_text(card),
                "main": main,
            }
            filled = parts.copy()
            for at, mark in places:
                filled[at] = texts[mark]
            return "".join(filled)

        return fill

    def _render(self, template: str, name: str, values: Mapping[str, Any], root: str = "") -> str:
        """Return a page from its template.

        A missing page is shown at any address: its links are whole if they can be, else a script of its own fixes them.
        """
        context = {"root": root, "name": name, "card": CARD, **values}
        if template == "missing":
            script = "" if self._place.base_url else text_beside(__file__, "missing.js")
            sources = [OWN_FILES, source_hash(script)] if script else [OWN_FILES]
            policy = content_security_policy(sources, [OWN_FILES], [OWN_FILES])
            context |= {"root": self._place.address(""), "script": join_html([script]), "policy": policy}
        if "document_title" not in context:
            context["document_title"] = page_title(context["title"], self._source.taxonomy.title)
        return self._environment.get_template(f"{template}.html.jinja").render(context)


def _permanent_id(address: str, name: str) -> str:
    """Return the name of a feed or of its entry for ever, wherever the site is: made from an address of its own."""
    return uuid5(NAMESPACE_URL, f"{address}#{name}").urn


def is_site(folder: str) -> bool:
    """Return True if a folder holds a site that was made here: its start page names its maker."""
    try:
        with open(os.path.join(folder, START), encoding="utf-8", errors="replace") as file:
            return f'<meta name="generator" content="{GENERATOR} ' in file.read(10_000)
    except OSError:
        return False
