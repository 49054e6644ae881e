"""The generated regions of README.md: an awesome list that GitHub and awesome-lint read as one.

Papers stand in the published order, later ones behind; by key where the corpus has no published pool.

Regions: `contents` (the sections below it), `counts` (head counts), `page` (what `corpus stats` shows),
`list` (every paper, a section for each term of the first plain facet, on a page of its own where the taxonomy says
so), `terms FIELD` (what a field's terms mean and who has them), `papers FILTER ...` (the papers that pass, as a table),
`claims` (what claims come to over each pool), `figures NAME ...` (pictures that `corpus figures` draws, each with its
numbers in words).
"""

import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from orchtrace_corpus.base.errors import CommandUseError, CorpusError, DataFileError, InvalidCorpusError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.text.layout import plain, pluralize
from orchtrace_corpus.base.text.regions import Region, find_regions, replace_regions
from orchtrace_corpus.base.text.table import Cell, Table, markdown, markdown_text
from orchtrace_corpus.corpus.analysis.attributes import find, paper_attributes
from orchtrace_corpus.corpus.analysis.query import parse
from orchtrace_corpus.corpus.analysis.statistics import Summary, count_levels, summarise
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import Paper, Pool, Tag, in_published_order
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Term

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.analysis.claims import Verdict
    from orchtrace_corpus.corpus.model.scale import Observation
    from orchtrace_corpus.corpus.render.figures.plan import Figure, Source

REGIONS = "contents, counts, page, list, terms FIELD, papers FILTER ..., claims, figures NAME ..."

SIZE_LIMIT_BYTES = 512 * 1024
"""GitHub cuts a README that is larger."""

LIST_FOLDER = "docs/list"
"""Where sections of the list are that have a page of their own."""

_PAGE_WIDTH = 80


def readme(
    text: str,
    path: str,
    pool: Pool,
    observations: Callable[[], Sequence["Observation"]] = tuple,
    contested: Callable[[], Collection[tuple[str, str]]] = tuple,
    verdicts: Callable[[], Sequence["Verdict"]] = tuple,
) -> str:
    """The document with every region made anew.

    Args:
        text: The document.
        path: What messages call it.
        pool: The corpus.
        observations: Gives what is known of the scale of systems, if a region asks for the figure of it.
        contested: Gives the tags in open dispute, as pairs of a key and a tag, if a region shows tags.
        verdicts: Gives what the claims come to, if a region shows them.

    Raises:
        DataFileError: A region is unknown or not closed, or its field or filter is wrong.
        InvalidCorpusError: What is known of scale, the disputes, the claims or the candidates have errors.
    """
    pool = pool._replace(papers=in_published_order(pool.papers, pool.published))
    sources = _Sources(pool, cache(lambda: summarise(pool)), observations, cache(contested), verdicts)

    def body(region: Region) -> str:
        where = f"{path}:{text.count(chr(10), 0, region.start)}: region {quote(region.name)}"
        try:
            return _body(region.name, sources)
        except InvalidCorpusError:  # of what the region is made from; the region itself is right
            raise
        except CorpusError as error:
            raise DataFileError(f"{where}: {error}") from error

    filled = replace_regions(text, find_regions(text, path), body)
    # Contents last: they name the sections that the other regions bring.
    regions = [region for region in find_regions(filled, path) if region.name == "contents"]
    return replace_regions(filled, regions, lambda _: _contents(filled))


def item(paper: Paper, facets: Sequence[Facet], contested: Collection[tuple[str, str]] = ()) -> str:
    """A paper as a list item: link, venue, code, tags as chips, summary. A contested tag ends in a question mark."""
    title, summary = markdown_text(paper.title), markdown_text(paper.summary)
    names_year = re.search(r"(?<![^\s()])[0-9]{4}(?![^\s()])", paper.venue)  # like `NeurIPS 2025`
    source = markdown_text(paper.venue) + ("" if names_year else f" {paper.cited_year}")
    code = f", [code]({address(paper.code)})" if paper.code else ""
    tags = (_tag(paper.key, paper.tags.get(facet.field), facet, contested) for facet in facets)
    chips = (_chip(tag) for tag in tags if tag)
    sentence = summary if summary.endswith((".", "!", "?")) else f"{summary}."
    return f"- [{title}]({address(paper.urls[0])}) - {' '.join((f'{source}{code}.', *chips, sentence))}"


def section_pages(pool: Pool, contested: Callable[[], Collection[tuple[str, str]]] = tuple) -> dict[str, str]:
    """The sections of the list that have a page of their own, as documents by their paths below the corpus's folder."""
    section = pool.taxonomy.section
    pages = {}
    own = [term for term in section.terms if term.own_page] if section else []
    for term in own:
        if papers := _section(pool, term):
            items = _items(in_published_order(papers, pool.published), pool, contested())
            back = "Part of [the list](../../README.md)."
            head = f"# {markdown_text(term.label)}\n\n{markdown_text(term.definition)} {back}"
            pages[_page_path(term)] = f"{head}\n\n{items}\n"
    return pages


def address(url: str) -> str:
    """A URL as it can stand in a Markdown link, whatever it holds."""
    if re.fullmatch(r"[\w!#$%&*+,./:;=?@^{}~-]*", url, re.ASCII):
        return url
    from urllib.parse import quote as percent_encode  # takes as long to import as all other addresses to write

    return percent_encode(url, safe="!#$%&*+,-./:;=?@^_{}~")


def image(figure: "Figure", source: "Source", path: str) -> str:
    """A figure as Markdown, with its main numbers for who does not see it."""
    from orchtrace_corpus.corpus.render.figures.plan import caption

    said = caption(figure, source)
    return f"![{markdown_text(f'{said.title}. {said.text}')}]({address(path)})"


def slug(heading: str, taken: dict[str, int]) -> str:
    """The anchor that GitHub gives a heading; `taken` counts those given before."""
    base = "".join(c for c in heading.lower() if c.isalnum() or c in "_- ").replace(" ", "-")
    number = taken.get(base, 0)
    taken[base] = number + 1
    return f"{base}-{number}" if number else base


class _Sources(NamedTuple):
    """What regions are made from; all but the pool is only read if a region asks for it."""

    pool: Pool
    summary: Callable[[], Summary]
    observations: Callable[[], Sequence["Observation"]]
    contested: Callable[[], Collection[tuple[str, str]]]
    verdicts: Callable[[], Sequence["Verdict"]]


def _body(name: str, sources: _Sources) -> str:
    kind, _, argument = name.partition(" ")
    pool, summary = sources.pool, sources.summary
    if kind == "contents":
        return ""
    if kind == "counts":
        from orchtrace_corpus.corpus.render.statistics import counts_tables, levels_table, totals

        newest = f" The newest record is of {summary().newest}." if summary().newest else ""
        tables = [counts_tables(counts)[0] for counts in summary().axes] + list(map(levels_table, summary().levels))
        bare = [markdown(table._replace(title="", notes=())) for table in tables]
        return "\n".join((f"{totals(summary())}.{newest}\n", *bare))
    if kind == "page":
        from orchtrace_corpus.corpus.render import statistics_page

        return f"```console\n$ corpus stats\n{plain(statistics_page.page(summary(), pool.taxonomy, _PAGE_WIDTH))}```"
    if kind == "list":
        return _list(pool, sources.contested())
    if kind == "terms" and argument:
        return _terms(pool, argument.strip())
    if kind == "claims" and not argument:
        from orchtrace_corpus.corpus.render.pools import pools_table

        return markdown(pools_table(sources.verdicts()))
    if kind == "papers":
        papers = parse(argument.split(), paper_attributes(pool.taxonomy)).select(pool.papers)
        rows = tuple((paper.title, paper.year, paper.venue, paper.summary) for paper in papers)
        links = tuple(address(paper.urls[0]) for paper in papers)
        return markdown(Table("papers", "", ("title", "year", "venue", "summary"), rows, links=links))
    if kind == "figures" and argument:
        return _figures(argument.split(), sources)
    raise CommandUseError("there is no such region", f"There are: {REGIONS}.")


def _contents(text: str) -> str:
    _, _, below = text.partition("<!-- corpus:end contents -->")
    taken: dict[str, int] = {"contents": 1}
    lines, in_code = [], False
    for line in below.splitlines():
        in_code ^= line.startswith("```")
        if line.startswith("## ") and not in_code:
            heading = line[3:].strip()
            anchor = slug(heading, taken)
            lines += [f"- [{heading}](#{anchor})"] if heading != "Contributing" else []
    return "\n".join(lines)


def _list(pool: Pool, contested: Collection[tuple[str, str]]) -> str:
    section = pool.taxonomy.section
    if section is None:
        return "## Papers\n\n" + _items(pool.papers, pool, contested)
    parts = []
    for term in section.terms:
        if papers := _section(pool, term):
            count = f"[{pluralize(len(papers), 'paper')}]({address(_page_path(term))})"
            listed = count if term.own_page else _items(papers, pool, contested)
            parts.append(f"## {markdown_text(term.label)}\n\n{markdown_text(term.definition)}\n\n{listed}\n")
    return "\n".join(parts)


def _section(pool: Pool, term: Term) -> list[Paper]:
    field = pool.taxonomy.section.field if pool.taxonomy.section else ""
    return [paper for paper in pool.papers if paper.tags.get(field) == term.id]


def _items(papers: Sequence[Paper], pool: Pool, contested: Collection[tuple[str, str]]) -> str:
    listed = tuple(facet for facet in pool.taxonomy.papers if facet.listed) or pool.taxonomy.axes
    return "\n".join(item(paper, listed, contested) for paper in papers)


def _page_path(term: Term) -> str:
    return f"{LIST_FOLDER}/{re.sub('[^a-z0-9]+', '-', term.id.lower()).strip('-')}.md"


def _terms(pool: Pool, field: str) -> str:
    attribute = find(field, paper_attributes(pool.taxonomy))
    facet = attribute.facet
    if facet is None:
        raise CommandUseError("the field is not a facet of the taxonomy", "See corpus terms.")
    first = 0 if any(term.code for term in facet.terms) else 1
    if facet.kind is Kind.LEVELS:
        numbers = count_levels(pool.papers, facet).counts
        heads = ("code", facet.label, "meaning", *(level.label for level in facet.levels))
        levelled: list[tuple[Cell, ...]] = [
            (one.code, one.label, one.definition, *numbers[one.id].values()) for one in facet.terms
        ]
        return markdown(Table(field, "", heads[first:], tuple(row[first:] for row in levelled)))
    rows = []
    for term in facet.terms:
        keys = [paper.key for paper in pool.papers if term.id in attribute.values(paper)]
        rows.append((term.code, term.label, term.definition, len(keys), ", ".join(keys)))
    columns = ("code", facet.label, "meaning", "papers", "keys")
    return markdown(Table(field, "", columns[first:], tuple(row[first:] for row in rows)))


def _figures(names: Sequence[str], sources: _Sources) -> str:
    from orchtrace_corpus.corpus.render.figures.plan import SCALE_GAP, Source, chosen, contested_values, figures_of

    pool = sources.pool
    known = sources.observations() if SCALE_GAP in names else ()
    source = Source(pool, sources.summary(), known, contested_values(pool, sources.contested()))
    figures = chosen(names, figures_of(source))
    return "\n".join(f"{image(figure, source, figure.path)}\n" for figure in figures)


def _tag(key: str, tag: Tag | None, facet: Facet, contested: Collection[tuple[str, str]]) -> str:
    """A tag in the words of its labels; of levels, the highest that the paper has. Nothing for what does not apply."""

    def mark(name: str) -> str:
        return "?" if (key, name) in contested else ""

    if tag is None or tag == NOT_APPLICABLE or tag == (NOT_APPLICABLE,):
        return ""
    if isinstance(tag, str):
        return _name(tag, facet.terms) + mark(facet.field)
    if isinstance(tag, tuple):
        return ", ".join(_name(term, facet.terms) for term in tag) + mark(facet.field)
    level = next((level for level in facet.levels if level.id in tag.values()), None)
    if level is None:
        return ""
    return f"{', '.join(_name(term, facet.terms) + mark(term) for term in tag if tag[term] == level.id)}: {level.label}"


def _name(value: str, terms: Sequence[Term]) -> str:
    """A term by its code and its label."""
    return next((f"{term.code} {term.label}".strip() for term in terms if term.id == value), value)


def _chip(text: str) -> str:
    """The text as code, whatever it holds, which GitHub shows as a chip."""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"
