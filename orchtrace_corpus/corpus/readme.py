"""The generated regions of README.md, with an awesome list that follows the rules of awesome-lint.

Papers are in the published order, followed by later ones; by key if the corpus has no published pool.

Regions: `contents` (the sections below it), `counts` (the number of records for each term), `page` (the output of
`corpus stats`), `list` (every paper, in sections by the terms of the first required facet that is no axis; large
sections on pages of their own), `terms FIELD` (the terms of a field, with the papers that have them), `papers FILTER
...` (matching papers as a table), `claims` (the verdicts over each pool), `figures NAME ...` (pictures of `corpus
figures`, with their numbers in words).
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
"""The size of the list in the README, if the text around it leaves as much."""

RESERVED_BYTES = 16 * 1024
"""The part of the README for contents and headings, which are made after the list."""

PAGE_LIMIT_BYTES = 480 * 1024
"""The size of a page of the list. GitHub shows no larger Markdown file as a page."""

_LIST = "list"
_PAGE_WIDTH = 80


class ListSection(NamedTuple):
    """A section of the list, with a line for each paper.

    `path` is that of its own page, below the corpus's folder. `own_page` is True if the section is there; None leaves
    it to the size.
    """

    heading: str
    definition: str
    items: tuple[str, ...]
    path: str
    own_page: bool | None

    @property
    def size(self) -> int:
        """The bytes of its items."""
        return sum(len(line.encode()) + 1 for line in self.items)

    @property
    def parts(self) -> dict[str, list[str]]:
        """The items by the path of their page: one page, or several if one would be too large."""
        parts: dict[str, list[str]] = {self.path: []}
        path, size = self.path, 0
        for line in self.items:
            length = len(line.encode()) + 1
            if size and size + length > PAGE_LIMIT_BYTES:
                path, size = f"{self.path.removesuffix('.md')}--{len(parts) + 1}.md", 0
                parts[path] = []
            parts[path].append(line)
            size += length
        return parts


class Readme(NamedTuple):
    """README.md, and the pages of its list by their paths."""

    text: str
    pages: Mapping[str, str]


def readme(text: str, path: str, pool: Pool, files: "CorpusFiles | None" = None) -> Readme:
    """Return the document with every region made anew, and the pages of its list.

    Args:
        text: The document.
        path: The path to show in messages.
        pool: The corpus.
        files: Its files; without them, it has no observations of scale, disputes, claims and candidates.

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
            except InvalidCorpusError:  # of the data of the region; the region itself is right
                raise
            except CorpusError as error:
                line = document.count("\n", 0, region.start)
                problems.append(f"{path}:{line}: region {quote(region.name)}: {error}")
                return ""

        return replace_regions(document, to_fill, body)

    # The list follows the others and takes the room that they leave; the contents, which name all sections, come last.
    around = fill(text, [region for region in find_regions(text, path) if region.name != _LIST])
    lists = [region for region in find_regions(around, path) if region.name == _LIST]
    taken = len(around.encode()) - sum(len(around[region.start : region.end].encode()) for region in lists)
    regions.room = min(LIST_LIMIT_BYTES, SIZE_LIMIT_BYTES - RESERVED_BYTES - taken)
    filled = fill(around, lists)
    if problems:
        hint = "Correct each name, or remove the region: its begin line, its end line, and what is between them."
        raise DataFileError("\n".join(problems), hint)
    pages = dict(_pages(regions.sections)) if lists else {}
    contents = [region for region in find_regions(filled, path) if region.name == "contents"]
    return Readme(replace_regions(filled, contents, lambda _: _contents(filled)), pages)


def list_sections(pool: Pool, contested: Collection[tuple[str, str]], room: int) -> tuple[ListSection, ...]:
    """Return the sections of the list, each with `own_page` decided; `pool` is in the order of the list.

    A section has its own page where the taxonomy says so, and where it is larger than the taxonomy's `page_above`.
    While the rest is larger than the bytes of `room`, the largest section moves as well.
    """
    listed = tuple(facet for facet in pool.taxonomy.papers if facet.listed) or pool.taxonomy.axes
    own = tuple(field for field in pool.taxonomy.paper_fields if field.is_listed)
    facet = pool.taxonomy.section
    if facet is None:
        lines = tuple(item(paper, listed, contested, own) for paper in pool.papers)
        heading = markdown_text(pool.taxonomy.noun.heading)
        sections = [ListSection(heading, "", lines, f"{LIST_FOLDER}/papers.md", None)]
    else:
        by_term: dict[object, list[Paper]] = {}
        for paper in pool.papers:
            by_term.setdefault(paper.tags.get(facet.field), []).append(paper)
        paths = _page_paths(facet.terms)
        sections = []
        for term in facet.terms:
            lines = tuple(item(paper, listed, contested, own) for paper in by_term.get(term.id, ()))
            heading, definition = markdown_text(term.label), markdown_text(term.definition)
            sections.append(ListSection(heading, definition, lines, paths[term.id], term.own_page))
    sizes = [section.size for section in sections]
    moved = {index for index, section in enumerate(sections) if section.own_page}
    free = [index for index, section in enumerate(sections) if section.own_page is None]
    moved |= {index for index in free if sizes[index] > pool.taxonomy.page_above * 1024}
    remaining = sum(size for index, size in enumerate(sizes) if index not in moved)
    for index in sorted(free, key=lambda index: -sizes[index]):
        if remaining > room and index not in moved:
            moved.add(index)
            remaining -= sizes[index]
    decided = (section._replace(own_page=index in moved) for index, section in enumerate(sections))
    return tuple(section for section in decided if section.items or facet is None)


def item(
    paper: Paper,
    facets: Sequence[Facet],
    contested: Collection[tuple[str, str]] = (),
    own_fields: Sequence[RecordField] = (),
) -> str:
    """Return a paper as a list item: link, venue, code, the survey's own fields and tags as chips, summary.

    Own fields with addresses are links after that of the code. A contested tag ends in a question mark.
    """
    title, summary = markdown_text(paper.title), markdown_text(paper.summary)
    names_year = re.search(r"(?<![^\s()])[0-9]{4}(?![^\s()])", paper.venue)  # like `NeurIPS 2025`
    year = "" if names_year or not paper.cited_year else str(paper.cited_year)
    source = " ".join(filter(None, (markdown_text(paper.venue), year)))
    code = f", [code]({address(paper.code)})" if paper.code else ""
    tags = (_tag(paper.key, paper.tags.get(facet.field), facet, contested) for facet in facets)
    links = "".join(
        f", [{markdown_text(field_label(field))}]({address(url)})"
        for field in own_fields
        if field.kind in _ADDRESSES
        for url in value_texts(paper.value(field.name))
    )
    values = (_field_chip(paper, field) for field in own_fields if field.kind not in _ADDRESSES)
    chips = (_chip(text) for text in (*values, *tags) if text)
    origin = (f"{source}{code}{links}.".removeprefix(", "),) if source or code or links else ()
    sentence = (summary if summary.endswith((".", "!", "?")) else f"{summary}.",) if summary else ()
    described = " ".join((*origin, *chips, *sentence))
    return f"- [{title}]({address(paper.urls[0])}){' - ' * bool(described)}{described}"


_ADDRESSES = (FieldKind.URL, FieldKind.URLS)


def _field_chip(paper: Paper, field: RecordField) -> str:
    """Return a field with its value; a flag as its label alone if it is set; empty without a value."""
    value = paper.value(field.name)
    if isinstance(value, bool):
        return field_label(field) if value else ""
    texts = ", ".join(map(bare_author, value_texts(value)))
    return f"{field_label(field)}: {texts}" if texts else ""


def address(url: str) -> str:
    """Return a URL in the form that a Markdown link can have."""
    if re.fullmatch(r"[\w!#$%&*+,./:;=?@^{}~-]*", url, re.ASCII):
        return url
    from urllib.parse import quote as percent_encode  # takes as long to import as all other addresses to write

    return percent_encode(url, safe="!#$%&*+,-./:;=?@^_{}~")


def slug(heading: str, taken: dict[str, int]) -> str:
    """Return the anchor that GitHub gives a heading; `taken` counts the anchors so far."""
    base = anchor(heading)
    repeated = taken.get(base, 0)
    taken[base] = repeated + 1
    return f"{base}-{repeated}" if repeated else base


class _Regions:
    """The regions of a README; all but the pool is read only if a region asks for it."""

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

            newest = f" The newest record is of {self.summary.newest}." if self.summary.newest else ""
            tables = [counts_tables(counts)[0] for counts in self.summary.axes]
            tables += map(levels_table, self.summary.levels)
            bare = [markdown(table._replace(title="", notes=())) for table in tables]
            return "\n".join((f"{totals(self.summary)}.{newest}\n", *bare))
        if kind == "page":
            from orchtrace_corpus.corpus.render.statistics import page

            return f"```console\n$ corpus stats\n{plain(page(self.summary, self.pool.taxonomy, _PAGE_WIDTH))}```"
        if kind == _LIST:
            texts = []
            for section in self.sections:
                listed = _links(section, self.pool.taxonomy.noun) if section.own_page else "\n".join(section.items)
                texts.append("\n\n".join(filter(None, (f"## {section.heading}", section.definition, listed))))
            return "\n\n".join(texts) + "\n"
        if kind == "terms" and argument:
            return _terms(self.pool, argument.strip())
        if kind == "claims" and not argument:
            return self._claims()
        if kind == "papers":
            papers = parse(argument.split(), paper_attributes(self.pool.taxonomy)).select(self.pool.papers)
            rows = tuple((paper.title, paper.year or None, paper.venue, paper.summary) for paper in papers)
            links = tuple(address(paper.urls[0]) for paper in papers)
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
        claims, awaiting = self.files.claims, self.files.candidates
        raise_findings("the claims have errors:", claims.findings)
        proposed = select_proposed(awaiting.require()) if awaiting.places else None
        return markdown(pools_table(evaluate(claims.claims, self.files.pool, candidates=proposed)))

    def _figures(self, names: list[str]) -> str:
        from orchtrace_corpus.corpus.render.figures import plan

        observations = self.files.scale.require() if self.files and plan.SCALE_GAP in names else ()
        contested = plan.contested_values(self.pool, self.contested)
        source = plan.Source(self.pool, self.summary, observations, contested)
        lines = []
        for figure in plan.chosen(names, plan.figures_of(source)):
            caption = plan.caption(figure, source)
            lines.append(f"![{markdown_text(f'{caption.title}. {caption.text}')}]({address(figure.path)})\n")
        return "\n".join(lines)


def _contents(text: str) -> str:
    _, _, below = text.partition("<!-- corpus:end contents -->")
    taken: dict[str, int] = {"contents": 1}
    lines, in_code = [], False
    for line in below.splitlines():
        in_code ^= line.startswith("```")
        if line.startswith("## ") and not in_code:
            heading = line[3:].strip()
            target = slug(heading, taken)
            lines += [f"- [{heading}](#{target})"] if heading != "Contributing" else []
    return "\n".join(lines)


def _links(section: ListSection, noun: Noun) -> str:
    """Link the pages of a section."""
    first, *others = section.parts
    further = (f"[{page}]({address(path)})" for page, path in enumerate(others, 2))
    whole = f"[{noun.counted(len(section.items))}]({address(first)})"
    return f"{whole}, continued on pages {', '.join(further)}" if others else whole


def _pages(sections: Sequence[ListSection]) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page of the sections that have their own."""
    for section in sections:
        if not section.own_page:
            continue
        parts = section.parts
        names = [path.rpartition("/")[2] for path in parts]
        for page, (name, lines) in enumerate(zip(names, parts.values(), strict=True), 1):
            head = " ".join(filter(None, (section.definition, "Part of [the list](../../README.md).")))
            if len(names) > 1:
                links = (str(at) if path == name else f"[{at}]({address(path)})" for at, path in enumerate(names, 1))
                head += f" Pages: {', '.join(links)}."
            title = section.heading if page == 1 else f"{section.heading}, page {page}"
            yield f"{LIST_FOLDER}/{name}", "\n\n".join((f"# {title}", head, "\n".join(lines))) + "\n"


def _page_paths(terms: Sequence[Term]) -> dict[str, str]:
    """Return the path of each term's page, all different, also from further pages of other terms."""
    names: dict[str, str] = {}
    for position, term in enumerate(terms, 1):
        name = re.sub("[^a-z0-9]+", "-", term.id.lower()).strip("-")
        names[term.id] = name if name and name not in names.values() else f"{name}--term-{position}".lstrip("-")
    return {term: f"{LIST_FOLDER}/{name}.md" for term, name in names.items()}


def _terms(pool: Pool, field: str) -> str:
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
        values = paper_attributes(pool.taxonomy)[field].values
        keys = {term.id: [paper.key for paper in pool.papers if term.id in values(paper)] for term in facet.terms}
        cells = {term: (len(those), ", ".join(those)) for term, those in keys.items()}
    first = 0 if any(term.code for term in facet.terms) else 1
    rows = tuple((term.code, term.label, term.definition, *cells[term.id])[first:] for term in facet.terms)
    return markdown(Table(field, "", ("code", facet.label, "meaning", *heads)[first:], rows))


def _tag(key: str, tag: Tag | None, facet: Facet, contested: Collection[tuple[str, str]]) -> str:
    """Return a tag in the words of its labels; of levels, the highest that the paper has. Empty if none applies."""

    def mark(name: str) -> str:
        return "?" if (key, name) in contested else ""

    if tag is None or tag == NOT_APPLICABLE or tag == (NOT_APPLICABLE,):
        return ""
    if isinstance(tag, (str, tuple)):
        terms = (tag,) if isinstance(tag, str) else tag
        return ", ".join(_name(term, facet.terms) for term in terms) + mark(facet.field)
    level = next((level for level in facet.levels if level.id in tag.values()), None)
    if level is None:
        return ""
    return f"{', '.join(_name(term, facet.terms) + mark(term) for term in tag if tag[term] == level.id)}: {level.label}"


def _name(value: str, terms: Sequence[Term]) -> str:
    """Return a term by its code and its label."""
    return next((f"{term.code} {term.label}".strip() for term in terms if term.id == value), value)


def _chip(text: str) -> str:
    """Return the text as Markdown code, which GitHub shows as a chip."""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"
