"""The generated regions of README.md: an awesome list that GitHub and awesome-lint read as one.

Papers stand in the published order, later ones behind; by key where the corpus has no published pool.

Regions: `contents` (the sections below it), `counts` (head counts), `page` (what `corpus stats` shows),
`list` (every paper, a section for each term of the first plain facet), `terms FIELD` (what a field's
terms mean and who has them), `papers FILTER ...` (the papers that pass, as a table), `claims` (what claims come to
over each pool), `figures NAME ...` (pictures that `corpus figures` draws, each with its numbers in words).
"""

import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from orchtrace_corpus.base.errors import CommandUseError, CorpusError, DataFileError, InvalidCorpusError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.text.layout import plain
from orchtrace_corpus.base.text.regions import Region, find_regions, replace_regions
from orchtrace_corpus.base.text.table import Cell, Table, markdown, markdown_text
from orchtrace_corpus.corpus.analysis.attributes import find, paper_attributes
from orchtrace_corpus.corpus.analysis.query import parse
from orchtrace_corpus.corpus.analysis.statistics import Summary, count_levels, summarise
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE, OTHERS, is_collective
from orchtrace_corpus.corpus.model.records import Paper, Pool, in_published_order
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Role, Term
from orchtrace_corpus.corpus.render import statistics_page
from orchtrace_corpus.corpus.render.statistics import counts_tables, levels_table, totals

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.analysis.claims import Verdict
    from orchtrace_corpus.corpus.model.scale import Observation
    from orchtrace_corpus.corpus.render.figures.plan import Figure, Source

REGIONS = "contents, counts, page, list, terms FIELD, papers FILTER ..., claims, figures NAME ..."

SIZE_LIMIT_BYTES = 512 * 1024
"""GitHub cuts a README that is larger."""

_PAGE_WIDTH = 80

_LINK_NAMES = {
    "github.com": "code",
    "gitlab.com": "code",
    "huggingface.co": "model",
    "openreview.net": "OpenReview",
    "aclanthology.org": "ACL Anthology",
    "arxiv.org": "arXiv",
    "doi.org": "publisher",
}


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
    """A paper as a list item: link, summary, who and where, further links, and every tag; marked if contested."""
    title, url, summary = markdown_text(paper.title), address(paper.urls[0]), markdown_text(paper.summary)
    sentence = summary if summary.endswith((".", "!", "?")) else f"{summary}."
    author = paper.first_author if is_collective(paper.authors[0]) else paper.authors[0].partition(",")[0]
    author += " et al." if len(paper.authors) > 1 or OTHERS in paper.authors else ""
    names_year = re.search(r"(?<![^\s()])[0-9]{4}(?![^\s()])", paper.venue)  # like `NeurIPS 2025`
    source = f"{markdown_text(author)}, {markdown_text(paper.venue)}{'' if names_year else f', {paper.cited_year}'}"
    further = paper.urls[1:] if paper.code is None or paper.code in paper.urls else (paper.code, *paper.urls[1:])
    links = [f"[{'code' if other == paper.code else _link_name(other)}]({address(other)})" for other in further]
    also = f" Also: {', '.join(links)}." if links else ""
    return f"- [{title}]({url}) - {sentence} {source}.{also}<br>{_tags(paper, facets, contested)}"


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
        newest = f" The newest record is of {summary().newest}." if summary().newest else ""
        tables = [counts_tables(counts)[0] for counts in summary().axes] + list(map(levels_table, summary().levels))
        return "\n".join((f"{totals(summary())}.{newest}\n", *map(_bare, tables)))
    if kind == "page":
        return f"```console\n$ corpus stats\n{plain(statistics_page.page(summary(), _PAGE_WIDTH))}```"
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
        return markdown(Table("papers", "", ("title", "year", "venue", "summary"), rows))
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


def _bare(table: Table) -> str:
    """A table as Markdown, without its title and notes."""
    return markdown(table._replace(title="", notes=()))


def _list(pool: Pool, contested: Collection[tuple[str, str]]) -> str:
    section = pool.taxonomy.section
    others = [facet for facet in pool.taxonomy.papers if facet is not section]
    facets = sorted(others, key=lambda facet: facet.role is not Role.AXIS)  # what the survey is about comes first
    if section is None:
        return "## Papers\n\n" + "\n".join(item(paper, facets, contested) for paper in pool.papers)
    parts = []
    for term in section.terms:
        papers = [paper for paper in pool.papers if paper.tags.get(section.field) == term.id]
        if papers:
            items = "\n".join(item(paper, facets, contested) for paper in papers)
            parts.append(f"## {markdown_text(term.label)}\n\n{markdown_text(term.definition)}\n\n{items}\n")
    return "\n".join(parts)


def _terms(pool: Pool, field: str) -> str:
    attribute = find(field, paper_attributes(pool.taxonomy))
    facet = attribute.facet
    if facet is None:
        raise CommandUseError("the field is no facet of the taxonomy", "See corpus terms.")
    first = 0 if any(term.code for term in facet.terms) else 1
    if facet.kind is Kind.LEVELS:
        numbers = count_levels(pool.papers, facet).counts
        heads = ("code", facet.label.lower(), "meaning", *(level.label.lower() for level in facet.levels))
        levelled: list[tuple[Cell, ...]] = [
            (one.code, one.label, one.definition, *numbers[one.id].values()) for one in facet.terms
        ]
        return markdown(Table(field, "", heads[first:], tuple(row[first:] for row in levelled)))
    rows = []
    for term in facet.terms:
        keys = [paper.key for paper in pool.papers if term.id in attribute.values(paper)]
        rows.append((term.code, term.label, term.definition, len(keys), ", ".join(keys)))
    columns = ("code", facet.label.lower(), "meaning", "papers", "keys")
    return markdown(Table(field, "", columns[first:], tuple(row[first:] for row in rows)))


def _figures(names: Sequence[str], sources: _Sources) -> str:
    from orchtrace_corpus.corpus.render.figures.plan import SCALE_GAP, Source, chosen, contested_values, plan

    pool = sources.pool
    known = sources.observations() if SCALE_GAP in names else ()
    source = Source(pool, sources.summary(), known, contested_values(pool, sources.contested()))
    figures = chosen(names, plan(pool.taxonomy, with_scale=bool(source.scale)))
    return "\n".join(f"{image(figure, source, figure.path)}\n" for figure in figures)


def _tags(paper: Paper, facets: Sequence[Facet], contested: Collection[tuple[str, str]]) -> str:
    """Every tag in words; what does not apply, or does not arise, is named last."""

    def mark(tag: str) -> str:
        return " (contested)" if (paper.key, tag) in contested else ""

    applied, not_applicable = [], []
    for facet in facets:
        tag = paper.tags.get(facet.field)
        label = markdown_text(facet.label)
        if tag is None and not facet.required:
            continue
        if tag == NOT_APPLICABLE or tag == (NOT_APPLICABLE,):
            not_applicable.append(f"{_lower(label)}{mark(facet.field)}")
        elif isinstance(tag, str):
            applied.append(f"{label}: {_term(tag, facet.terms)}{mark(facet.field)}")
        elif isinstance(tag, tuple):
            applied.append(f"{label}: {', '.join(_term(term, facet.terms) for term in tag)}")
        elif tag is None:
            not_applicable.append(f"{_lower(label)} (not coded)")
        elif tag:
            parts = (f"{_term(term, facet.terms)} {markdown_text(level)}{mark(term)}" for term, level in tag.items())
            applied.append(f"{label}: {', '.join(parts)}")
        else:
            not_applicable.append(_lower(label))
    if not_applicable:
        applied.append(f"Not applicable: {', '.join(not_applicable)}")
    return " · ".join(applied) + "."


def _term(term: str, terms: Sequence[Term]) -> str:
    known = next((candidate for candidate in terms if candidate.id == term), None)
    if known is None:
        return markdown_text(term)
    return markdown_text(f"{known.code} {_lower(known.label)}" if known.code else _lower(known.label))


def _link_name(url: str) -> str:
    host = url.partition("://")[2].partition("/")[0].removeprefix("www.").lower()
    known = (name for site, name in _LINK_NAMES.items() if f".{host}".endswith(f".{site}"))
    return next(known, markdown_text(host) or "link")


def _lower(label: str) -> str:
    first = label.split(" ", 1)[0]
    is_word = first[1:].islower() or len(first) == 1
    return label[:1].lower() + label[1:] if is_word else label  # RL and MARL stay as they are
