"""The corpus as a static site: a folder of pages that need no server, no network and no build step.

Pages are complete without scripts, which only add filters. Embedded data is JSON that cannot run. Pages depend on
nothing but the data and the URLs of the site.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import product
from operator import attrgetter
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


class Drawn(NamedTuple):
    """A figure of a page: its path, its picture, its title, its numbers in words, and its size in pixels."""

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
        self._figures = {}  # by kind, those of sketches by the field of their facet
        for figure in plan.figures_of(source.drawn):
            if figure.kind in _FIGURES:
                caption = plan.caption(figure, source.drawn)
                svg = draw(figure, source.drawn, caption)
                width, height = (int(number) for number in re.findall(r'viewBox="0 0 (\d+) (\d+)"', svg)[0])
                drawn = Drawn(f"figures/{figure.name}.svg", svg, caption.title, caption.text, width, height)
                self._figures[figure.field or figure.kind.value] = drawn
        self._gaps = GapPages(source)
        self._start = pages.start(source, self._fields, self._gaps, place.base_url)
        self._pages = list(self._named_pages())
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
        yield from ((drawn.path, drawn.svg) for drawn in self._figures.values())
        for name, _, template, heading, values in self._pages:
            yield name, self._render(template, name, {"title": heading, **values})
        yield from papers.list_files(source, self._fields, papers.read_columns(self._fields, taxonomy))
        if source.has_candidates:
            fields = papers.candidate_fields(pages.by_proposal(source.candidates), taxonomy)
            data = papers.filter_data(fields, len(source.candidates), taxonomy.noun)
            yield "candidates-data.js", papers.data_script(data)
        yield from self._papers()
        yield from self._claims()
        yield from self._gap_pages()
        yield from self._for_programs()

    def _named_pages(self) -> Iterator[tuple[str, str, str, str, Mapping[str, Any]]]:
        """Yield the pages of the menu and 404.html: file, label in the menu, template, heading, values."""
        source, title = self._source, self._source.taxonomy.title
        noun = source.taxonomy.noun
        total = noun.counted(len(source.pool.papers))
        text = f"{title}: {total}, tagged and sourced."
        newest = max((paper.added for paper in source.pool.papers), default="")
        metadata = dataset(source, text, self._place.address(""), newest)
        yield START, "Start", "start", title, {**self._start, "dataset": metadata, "description": text}
        columns = papers.read_columns(self._fields, source.taxonomy)
        shown = [column for column in columns if column.is_shown]
        rows = list(papers.table_rows(source, self._fields, shown, self._environment))
        parts = [rows[at : at + papers.ROWS_OF_A_PAGE] for at in range(0, len(rows), papers.ROWS_OF_A_PAGE)] or [[]]
        for position, part in enumerate(parts, 1):
            name = papers.PAPERS_PAGE if position == 1 else f"papers-{position}.html"
            values = {
                "description": f"{total}, to search, filter and export.",
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
            yield name, label, "papers", noun.heading, values
        others: dict[str, tuple[object, Callable[[Source], Mapping[str, Any]]]] = {
            "claims": (source.verdicts, pages.claims),
            "scale": (source.scale, pages.scale_page),
            "screening": (source.drawn.is_screened, pages.screening),
            "candidates": (source.has_candidates, pages.candidates),
            "taxonomy": (True, lambda source: pages.taxonomy(source, self._fields, self._gaps)),
            "protocol": (source.protocol, pages.protocol),
        }
        for page, (has_page, read_values) in others.items():
            if has_page:
                yield f"{page}.html", page.capitalize(), page, page.capitalize(), read_values(source)
        yield "404.html", "", "missing", "Not found", {"description": "There is no such page."}

    def _papers(self) -> Iterator[tuple[str, str | bytes]]:
        """Yield a page for each paper, and the BibTeX entries that the script exports."""
        made = papers.PaperPages(self._source, self._environment, self._place.repository)
        noun = self._source.taxonomy.noun.heading_one
        rows, columns = self._start["rows"], self._start["columns"]
        entries = []
        for index, paper in enumerate(self._source.pool.papers):
            name = f"papers/{paper.key}.html"
            entry, values, metadata = made.page(paper, self._place.address(name))
            entries.append(entry)
            cells = list(product(rows.column[index], columns.column[index]))
            card = (f"{noun} {paper.year or ''}", paper.title, paper.summary, cells, "series0")
            yield from self._subpage("paper", name, paper.title, paper.summary, values, card, metadata)
        yield "bibtex.js", f"window.corpusEntries = {inert_json(entries)};\n"

    def _claims(self) -> Iterator[tuple[str, str | bytes]]:
        """Yield a page for each claim, so that it can be shared."""
        colours = {pages.Outcome.HOLDS: "series3", pages.Outcome.DOUBTED: "series1", pages.Outcome.FAILS: "series5"}
        for judged in pages.judge(self._source, self._source.verdicts):
            claim, outcome, doubts = judged["verdict"].claim, judged["outcome"], judged["doubts"]
            text = f"{outcome.capitalize()}{': ' * bool(doubts)}{'; '.join(doubts)}. {claim.boundary}"
            name, card = pages.claim_address(judged["verdict"]), (f"Claim: {outcome}", claim.claim, text, ())
            yield from self._subpage("claim", name, claim.claim, text, {"one": judged}, (*card, colours[outcome]))

    def _gap_pages(self) -> Iterator[tuple[str, str | bytes]]:
        """Yield a page for each gap, and a script with the addresses of all, for fields that readers cross."""
        axes = [self._start["rows"], self._start["columns"]]
        places = [{value.id: place for place, value in enumerate(field.values)} for field in axes]
        for name, cell in self._gaps.cells.items():
            label, sentence = self._gaps.label(cell), self._gaps.sentence(cell)
            kind = "Cannot arise" if cell.why else "Not in this corpus"
            title = f"{'Cannot arise' if cell.why else f'No {self._source.taxonomy.noun.one}'}: {label}"
            is_crossed = [field for field, _ in cell.filters] == [field.name for field in axes]
            cells = [(places[0][cell.filters[0][1]], places[1][cell.filters[1][1]])] if is_crossed else []
            values, card = self._gaps.values(cell, self._place.repository), (kind, label, sentence, cells, "series5")
            yield from self._subpage("gap", name, title, sentence, values, card)
        yield "gaps.js", f"window.corpusGaps = {inert_json(self._gaps.data())};\n"

    @cached_property
    def _frame(self) -> list[str]:
        """The frame of a page in a folder, split: every second part is the name of a value, the others are HTML."""
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
        """Yield a page in a folder, and its picture for links, of the arguments `card`, where one can be drawn."""
        picture = self._cards.draw(*card) if self._cards else None
        path = CARD if picture is None else f"{name.removesuffix('.html')}.png"
        texts = {
            "name": escape_text(name),
            "title": escape_text(title),
            "document_title": escape_text(page_title(title, self._source.taxonomy.title)),
            "description": escape_text(description),
            "metadata": metadata,
            "card": escape_text(path),
            "main": self._environment.get_template(f"{template}.html.jinja").render(values),
        }
        yield name, "".join(texts[part] if index % 2 else part for index, part in enumerate(self._frame))
        if picture is not None:
            yield path, picture

    def _for_programs(self) -> Iterator[tuple[str, str | bytes]]:
        """Yield the feed, the picture of the start page, robots.txt and the map of the site."""
        taxonomy = self._source.taxonomy
        newest = sorted(self._source.pool.papers, key=attrgetter("added"), reverse=True)
        values = {
            "id": _permanent_id(taxonomy.source, taxonomy.title),
            "updated": newest[0].added if newest else "1970-01-01",
            "entries": [
                (_permanent_id(next(iter(paper.urls), ""), paper.key), paper) for paper in newest[:_FEED_ENTRIES]
            ],
        }
        yield "feed.xml", self._environment.get_template("feed.xml.jinja").render(values)
        start = self._start
        if self._cards and (card := self._cards.draw("", start["statement"], start["purpose"], (), "series0")):
            yield CARD, card
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
        if template == "missing":  # shown at any address: its links are absolute, or a script makes them so
            script = "" if self._place.base_url else read_text_beside(__file__, "missing.js")
            sources = [OWN_FILES, source_hash(script)] if script else [OWN_FILES]
            policy = content_security_policy(sources, [OWN_FILES], [OWN_FILES])
            context |= {"root": self._place.address(""), "script": join_html([script]), "policy": policy}
        if "document_title" not in context:
            context["document_title"] = page_title(context["title"], self._source.taxonomy.title)
        return self._environment.get_template(f"{template}.html.jinja").render(context)


def _permanent_id(address: str, name: str) -> str:
    """Return an id of a feed or of an entry that stays the same wherever the site moves."""
    return uuid5(NAMESPACE_URL, f"{address}#{name}").urn


def is_site(folder: str) -> bool:
    """Return True if a folder has a site made by this program."""
    try:
        with open(os.path.join(folder, START), encoding="utf-8", errors="replace") as file:
            return f'<meta name="generator" content="{GENERATOR} ' in file.read(10_000)
    except OSError:
        return False
