"""The generated regions of README.md. The list of papers follows the rules of awesome-lint.

Papers are in the published order, followed by later ones.

Regions:
    contents: Links to the sections below it.
    counts: The number of records for each term.
    page: The output of `corpus stats`.
    list: Every paper, in sections by the terms of `Taxonomy.section_facet`; large sections have pages of their own.
    terms FIELD: The terms of a field, with the papers that have them.
    papers FILTER ...: Matching papers as a table.
    claims: The verdicts over each pool.
    figures NAME ...: Pictures of `corpus figures`, with their numbers in words.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from orchtrace_corpus.base.annotations import TYPE_CHECKING
from orchtrace_corpus.base.errors import CommandUseError, CorpusError, DataFileError, InvalidCorpusError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import plain
from orchtrace_corpus.base.text.regions import Region, anchor, find_regions, replace_regions
from orchtrace_corpus.base.text.table import Cell, Table, markdown, markdown_text
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.query import parse
from orchtrace_corpus.corpus.analysis.statistics import Summary, count_levels, summarise
from orchtrace_corpus.corpus.model.field_table import FieldKind, RecordField, field_label, value_texts
from orchtrace_corpus.corpus.model.fields import bare_author
from orchtrace_corpus.corpus.model.records import Paper, Pool, Tag, in_published_order, raise_findings
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Noun, Term

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.model.store import CorpusFiles

REGIONS = "contents, counts, page, list, terms FIELD, papers FILTER ..., claims, figures NAME ..."

SIZE_LIMIT_BYTES = 512 * 1024
"""GitHub cuts a README that is larger."""

LIST_FOLDER = "docs/list"
"""The folder of the list's sections with a page of their own."""

LIST_LIMIT_BYTES = 384 * 1024
"""The largest size of the list in the README. It is smaller if the text around it leaves less room."""

RESERVED_BYTES = 16 * 1024
"""The part of the README that is kept free for the contents, which are made after the list, and for headings."""

PAGE_LIMIT_BYTES = 480 * 1024
"""The largest size of a page of the list: GitHub does not show a larger Markdown file as a page."""

_LIST = "list"
_STATS_WIDTH = 80


class ListSection(NamedTuple):
    """A section of the list.

    Attributes:
        items: A line for each paper.
        path: The path of its own page, below the corpus's folder.
        own_page: Whether the section is on its own page; None decides by its size.
    """

    heading: str
    definition: str
    items: tuple[str, ...]
    path: str
    own_page: bool | None

    @property
    def size(self) -> int:
        """The size of its items in bytes."""
        return sum(len(line.encode()) + 1 for line in self.items)

    @property
    def items_by_page(self) -> dict[str, list[str]]:
        """The items by the path of their page: one page, or several if one would be too large."""
        path = self.path
        pages: dict[str, list[str]] = {path: []}
        page_size = 0
        for line in self.items:
            size = len(line.encode()) + 1
            if page_size and page_size + size > PAGE_LIMIT_BYTES:
                path = f"{self.path.removesuffix('.md')}--{len(pages) + 1}.md"
                pages[path] = []
                page_size = 0
            pages[path].append(line)
            page_size += size
        return pages


class Readme(NamedTuple):
    """The text of README.md, and the pages of its list by their paths."""

    text: str
    pages: Mapping[str, str]


def readme(text: str, path: str, pool: Pool, files: "CorpusFiles | None" = None) -> Readme:
    """Return README.md with the current text of every region, and the pages of its list.

    Args:
        text: The present text of README.md.
        path: Its path for messages.
        pool: The corpus.
        files: The files of the corpus; without them, it has no observations of scale, disputes, claims or candidates.

    Raises:
        DataFileError: Regions are unknown or not closed, or their fields or filters are wrong.
        InvalidCorpusError: One of the files that a region needs has errors.
    """
    regions = _Regions(pool._replace(papers=in_published_order(pool.papers, pool.published)), files)
    problems: list[str] = []

    def fill(document: str, to_fill: list[Region]) -> str:
        def body(region: Region) -> str:
            try:
                return regions.body(region.name)
            except InvalidCorpusError:  # about the data of the region; all other errors are about the region itself
                raise
            except CorpusError as error:
                begin_line = document.count("\n", 0, region.start)  # `start` is after the begin line
                problems.append(f"{path}:{begin_line}: region {quote(region.name)}: {error}")
                return ""

        return replace_regions(document, to_fill, body)

    # The list is filled after other regions, and takes the room that they leave. The contents, which name all
    # sections, are filled last.
    without_list = fill(text, [region for region in find_regions(text, path) if region.name != _LIST])
    lists = [region for region in find_regions(without_list, path) if region.name == _LIST]
    used_bytes = len(without_list.encode())
    used_bytes -= sum(len(without_list[region.start : region.end].encode()) for region in lists)
    regions.room = min(LIST_LIMIT_BYTES, SIZE_LIMIT_BYTES - RESERVED_BYTES - used_bytes)
    filled = fill(without_list, lists)
    if problems:
        hint = "Correct each name, or remove the region: its begin line, its end line, and what is between them."
        raise DataFileError("\n".join(problems), hint)
    pages = dict(_pages(regions.sections)) if lists else {}
    contents = [region for region in find_regions(filled, path) if region.name == "contents"]
    return Readme(replace_regions(filled, contents, lambda _: _contents(filled)), pages)


def list_sections(pool: Pool, contested: Collection[tuple[str, str]], room_bytes: int) -> tuple[ListSection, ...]:
    """Return the sections of the list in the order of `pool`; `own_page` is then decided, and no longer None.

    A section has its own page if the taxonomy says so, or if it is larger than the taxonomy's `page_above`. As long as
    the other sections are larger than `room_bytes`, the largest one moves to its own page, too.
    """
    facets = tuple(facet for facet in pool.taxonomy.papers if facet.listed) or pool.taxonomy.axes
    fields = tuple(field for field in pool.taxonomy.paper_fields if field.is_listed)
    section_facet = pool.taxonomy.section_facet
    sections = []
    if section_facet is None:
        lines = tuple(item(paper, facets, contested, fields) for paper in pool.papers)
        heading = markdown_text(pool.taxonomy.noun.heading)
        sections.append(ListSection(heading, "", lines, f"{LIST_FOLDER}/papers.md", own_page=None))
    else:
        papers_by_term: dict[object, list[Paper]] = {}
        for paper in pool.papers:
            papers_by_term.setdefault(paper.tags.get(section_facet.field), []).append(paper)
        paths = _page_paths(section_facet.terms)
        for term in section_facet.terms:
            lines = tuple(item(paper, facets, contested, fields) for paper in papers_by_term.get(term.id, ()))
            heading = markdown_text(term.label)
            definition = markdown_text(term.definition)
            sections.append(ListSection(heading, definition, lines, paths[term.id], term.own_page))
    sizes = [section.size for section in sections]
    on_own_page: set[int] = set()  # indexes of sections
    for index, section in enumerate(sections):
        if section.own_page or (section.own_page is None and sizes[index] > pool.taxonomy.page_above * 1024):
            on_own_page.add(index)
    remaining = sum(size for index, size in enumerate(sizes) if index not in on_own_page)
    for index in sorted(range(len(sections)), key=lambda index: -sizes[index]):
        if remaining > room_bytes and sections[index].own_page is None and index not in on_own_page:
            on_own_page.add(index)
            remaining -= sizes[index]
    sections = [section._replace(own_page=index in on_own_page) for index, section in enumerate(sections)]
    return tuple(section for section in sections if section.items or section_facet is None)  # the undivided list stays


_URL_KINDS = (FieldKind.URL, FieldKind.URLS)


def item(
    paper: Paper,
    facets: Sequence[Facet],
    contested: Collection[tuple[str, str]] = (),
    fields: Sequence[RecordField] = (),
) -> str:
    """Return a paper as a list item: its link, venue, year, links to code and other URLs, chips, and summary.

    Tags of `facets` and values of `fields` are chips, but URLs are links. A contested tag ends in a question mark.
    """
    details = []
    venue = markdown_text(paper.venue)
    venue_has_year = re.search(r"(?:^|[\s()])[0-9]{4}(?:[\s()]|$)", paper.venue)  # such as `NeurIPS 2025`
    if paper.cited_year and not venue_has_year:
        venue = f"{venue} {paper.cited_year}".strip()
    if venue:
        details.append(venue)
    if paper.code:
        details.append(f"[code]({link_url(paper.code)})")
    chips = []
    for field in fields:
        if field.kind in _URL_KINDS:
            label = markdown_text(field_label(field))
            details += [f"[{label}]({link_url(url)})" for url in value_texts(paper.value(field.name))]
        else:
            chips.append(_field_text(paper, field))
    chips += [_tag_text(paper.key, paper.tags.get(facet.field), facet, contested) for facet in facets]
    parts = [f"{', '.join(details)}."] if details else []
    parts += [_chip(text) for text in chips if text]
    summary = markdown_text(paper.summary)
    if summary:
        parts.append(summary if summary.endswith((".", "!", "?")) else f"{summary}.")
    link = f"- [{markdown_text(paper.title)}]({link_url(paper.urls[0])})"
    return f"{link} - {' '.join(parts)}" if parts else link


def _field_text(paper: Paper, field: RecordField) -> str:
    """Return a field with its value; only the label of a flag that is set; empty without a value."""
    value = paper.value(field.name)
    if isinstance(value, bool):
        return field_label(field) if value else ""
    texts = ", ".join(map(bare_author, value_texts(value)))  # changes only authors in braces
    return f"{field_label(field)}: {texts}" if texts else ""


def link_url(url: str) -> str:
    """Return a URL as a Markdown link can hold it, with other characters percent-encoded."""
    if re.fullmatch(r"[\w!#$%&*+,./:;=?@^{}~-]*", url, re.ASCII):
        return url
    from urllib.parse import quote as percent_encode  # few URLs need it, and the import takes as long as all others

    return percent_encode(url, safe="!#$%&*+,-./:;=?@^_{}~")


def slug(heading: str, counts: dict[str, int]) -> str:
    """Return the anchor that GitHub gives a heading; `counts` has the number of earlier headings by anchor."""
    base = anchor(heading)
    repeated = counts.get(base, 0)
    counts[base] = repeated + 1
    return f"{base}-{repeated}" if repeated else base


class _Regions:
    """The texts of the regions; data other than the pool is read only if a region needs it.

    `room` is the size that the list may have, in bytes. Set it before the list is made.
    """

    def __init__(self, pool: Pool, files: "CorpusFiles | None") -> None:
        self.pool = pool
        self.files = files
        self.room = LIST_LIMIT_BYTES

    @cached_property
    def summary(self) -> Summary:
        return summarise(self.pool)

    @cached_property
    def contested(self) -> Collection[tuple[str, str]]:
        from orchtrace_corpus.corpus.model.disputes import contested_tags

        return contested_tags(self.files.disputes.require()) if self.files else ()

    @cached_property
    def sections(self) -> tuple[ListSection, ...]:
        return list_sections(self.pool, self.contested, self.room)

    def body(self, name: str) -> str:
        """Return the text of a region by its name."""
        kind, _, argument = name.partition(" ")
        if kind == "contents":
            return ""
        if kind == "counts":
            from orchtrace_corpus.corpus.render.statistics import counts_tables, levels_table, totals

            head = f"{totals(self.summary)}."
            if self.summary.newest:
                head += f" The newest record is of {self.summary.newest}."
            tables = [counts_tables(counts)[0] for counts in self.summary.axes]  # without the tables of families
            tables += map(levels_table, self.summary.levels)
            return "\n".join((f"{head}\n", *(markdown(table._replace(title="", notes=())) for table in tables)))
        if kind == "page":
            from orchtrace_corpus.corpus.render.statistics import page

            return f"```console\n$ corpus stats\n{plain(page(self.summary, self.pool.taxonomy, _STATS_WIDTH))}```"
        if kind == _LIST:
            texts = []
            for section in self.sections:
                body = "\n".join(section.items)
                if section.own_page:
                    body = _page_links(section, self.pool.taxonomy.noun)
                texts.append("\n\n".join(filter(None, (f"## {section.heading}", section.definition, body))))
            return "\n\n".join(texts) + "\n"
        if kind == "terms" and argument:
            return _terms_table(self.pool, argument.strip())
        if kind == "claims" and not argument:
            return self._claims()
        if kind == "papers":
            papers = parse(argument.split(), paper_attributes(self.pool.taxonomy)).select(self.pool.papers)
            rows = tuple((paper.title, paper.year or None, paper.venue, paper.summary) for paper in papers)
            links = tuple(link_url(paper.urls[0]) for paper in papers)
            return markdown(Table("papers", "", ("title", "year", "venue", "summary"), rows, links=links))
        if kind == "figures" and argument:
            return self._figures(argument.split())
        raise CommandUseError("there is no such region", f"There are: {REGIONS}.")

    def _claims(self) -> str:
        from orchtrace_corpus.corpus.analysis.claims import evaluate
        from orchtrace_corpus.corpus.model.candidates import select_proposed
        from orchtrace_corpus.corpus.render.claims import pools_table

        if self.files is None:
            return markdown(pools_table(()))
        claims = self.files.claims
        raise_findings("the claims have errors:", claims.findings)
        proposed = None
        if not self.files.candidates.is_missing:
            proposed = select_proposed(self.files.candidates.require())
        return markdown(pools_table(evaluate(claims.claims, self.files.pool, candidates=proposed)))

    def _figures(self, names: list[str]) -> str:
        from orchtrace_corpus.corpus.render.figures import plan

        observations = self.files.scale.require() if self.files and plan.SCALE_FIGURE in names else ()
        contested = plan.contested_values(self.pool, self.contested)
        source = plan.Source(self.pool, self.summary, observations, contested)
        lines = []
        for figure in plan.select_figures(names, plan.figures_of(source)):
            caption = plan.caption(figure, source)
            text = markdown_text(f"{caption.title}. {caption.text}")
            lines.append(f"![{text}]({link_url(figure.path)})\n")
        return "\n".join(lines)


def _contents(text: str) -> str:
    """Return links to the headings of the second level below the region `contents`."""
    _, _, below = text.partition("<!-- corpus:end contents -->")
    counts = {"contents": 1}  # the heading above the region
    lines = []
    is_code = False
    for line in below.splitlines():
        if line.startswith("```"):
            is_code = not is_code
        if line.startswith("## ") and not is_code:
            heading = line[3:].strip()
            target = slug(heading, counts)
            if heading != "Contributing":  # awesome lists leave it out of their contents
                lines.append(f"- [{heading}](#{target})")
    return "\n".join(lines)


def _page_links(section: ListSection, noun: Noun) -> str:
    """Return links to the pages of a section."""
    first, *others = section.items_by_page
    link = f"[{noun.counted(len(section.items))}]({link_url(first)})"
    if not others:
        return link
    links = ", ".join(f"[{number}]({link_url(path)})" for number, path in enumerate(others, 2))
    return f"{link}, continued on pages {links}"


def _pages(sections: Sequence[ListSection]) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page of the sections that have pages of their own."""
    for section in sections:
        if not section.own_page:
            continue
        pages = section.items_by_page
        for page_number, (path, lines) in enumerate(pages.items(), 1):
            head = f"{section.definition} Part of [the list](../../README.md).".lstrip()
            if len(pages) > 1:
                links = []
                for number, linked_path in enumerate(pages, 1):
                    name = linked_path.removeprefix(f"{LIST_FOLDER}/")
                    links.append(str(number) if linked_path == path else f"[{number}]({link_url(name)})")
                head += f" Pages: {', '.join(links)}."
            title = section.heading if page_number == 1 else f"{section.heading}, page {page_number}"
            yield path, "\n\n".join((f"# {title}", head, "\n".join(lines))) + "\n"


def _page_paths(terms: Sequence[Term]) -> dict[str, str]:
    """Return the path of each term's first page. Paths differ, also from further pages, such as `NAME--2.md`."""
    names: dict[str, str] = {}
    for number, term in enumerate(terms, 1):
        name = re.sub("[^a-z0-9]+", "-", term.id.lower()).strip("-")
        if not name or name in names.values():
            name = f"{name}--term-{number}".lstrip("-")
        names[term.id] = name
    return {term_id: f"{LIST_FOLDER}/{name}.md" for term_id, name in names.items()}


def _terms_table(pool: Pool, field: str) -> str:
    """Return the terms of a facet as a Markdown table, with the papers that have them."""
    facets = {facet.field: facet for facet in pool.taxonomy.papers}
    facet = facets.get(field)
    if facet is None:
        raise CommandUseError(f"unknown axis or facet {quote(field)}{suggestion(field, list(facets))}")
    heads: tuple[str, ...]
    cells: dict[str, tuple[Cell, ...]]
    if facet.kind is Kind.LEVELS:
        heads = tuple(level.label for level in facet.levels)
        counts = count_levels(pool.papers, facet).counts
        cells = {term.id: tuple(counts[term.id].values()) for term in facet.terms}
    else:
        heads = (pool.taxonomy.noun.many, "keys")
        values_of = paper_attributes(pool.taxonomy)[field].values
        cells = {}
        for term in facet.terms:
            keys = [paper.key for paper in pool.papers if term.id in values_of(paper)]
            cells[term.id] = (len(keys), ", ".join(keys))
    columns = ("code", facet.label, "meaning", *heads)
    rows = [(term.code, term.label, term.definition, *cells[term.id]) for term in facet.terms]
    if not any(term.code for term in facet.terms):  # leave out the column of codes
        columns = columns[1:]
        rows = [row[1:] for row in rows]
    return markdown(Table(field, "", columns, tuple(rows)))


def _tag_text(key: str, tag: Tag | None, facet: Facet, contested: Collection[tuple[str, str]]) -> str:
    """Return the labels of a tag's terms, empty without any; of terms with levels, only those on the highest level."""

    def mark(tag_name: str) -> str:  # a field, or a term of a facet with levels
        return "?" if (key, tag_name) in contested else ""

    names = {term.id: f"{term.code} {term.label}".strip() for term in facet.terms}
    if tag is None or tag == NOT_APPLICABLE or tag == (NOT_APPLICABLE,):
        return ""
    if isinstance(tag, (str, tuple)):
        term_ids = (tag,) if isinstance(tag, str) else tag
        return ", ".join(names.get(term_id, term_id) for term_id in term_ids) + mark(facet.field)
    for level in facet.levels:  # the highest level comes first
        marked_names = [names.get(term, term) + mark(term) for term, level_id in tag.items() if level_id == level.id]
        if marked_names:
            return f"{', '.join(marked_names)}: {level.label}"
    return ""


def _chip(text: str) -> str:
    """Return the text as Markdown code, which GitHub shows as a chip."""
    longest_run = max(map(len, re.findall("`+", text)), default=0)  # of backquotes in the text
    fence = "`" * (longest_run + 1)
    return f"{fence} {text} {fence}" if longest_run else f"`{text}`"
