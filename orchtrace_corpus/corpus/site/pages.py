"""The pages of a site that are not about papers one by one: what the template of each is filled with."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from orchtrace_corpus.base.html import web_address
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.table import Table, cell_text
from orchtrace_corpus.corpus.analysis.attributes import candidate_attributes
from orchtrace_corpus.corpus.analysis.claims import Verdict
from orchtrace_corpus.corpus.analysis.statistics import LevelCounts
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision
from orchtrace_corpus.corpus.model.claim_file import Claim, Over, PoolName, Strength
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.scale import Observation
from orchtrace_corpus.corpus.model.taxonomy import Kind, Noun, Taxonomy
from orchtrace_corpus.corpus.render import scale
from orchtrace_corpus.corpus.render.claims import (
    agreed_text,
    doubt_rank,
    pool_summary,
    pool_word,
    pools_of,
    reach_text,
    reading_word,
    stress_entries,
)
from orchtrace_corpus.corpus.render.figures import plan
from orchtrace_corpus.corpus.render.statistics import levels_matrix, totals
from orchtrace_corpus.corpus.site.papers import (
    Field,
    candidate_fields,
    grouped,
    impossible_pairs,
    matrix,
    papers_address,
)
from orchtrace_corpus.corpus.site.source import Source, term_label

_LATEST = 8


class Grid(NamedTuple):
    """A table of a page.

    Attributes:
        rows: Each cell a text and the address behind it, empty for none.
        numeric: Which columns hold numbers.
    """

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[tuple[str, str]]]
    numeric: tuple[bool, ...]
    notes: tuple[str, ...] = ()


def grid(table: Table, links: Mapping[str, str] = {}) -> Grid:
    """A table of a report as one of a page; a cell whose text has a link becomes one, and so does a web address."""
    texts = [[cell_text(cell) for cell in row] for row in table.rows]
    rows = [[(text, links.get(text) or ("" if " " in text else web_address(text))) for text in row] for row in texts]
    numeric = tuple(
        bool(table.rows) and all(isinstance(row[index], (int, float)) for row in table.rows)
        for index in range(len(table.columns))
    )
    names = tuple(name.replace("_", " ").capitalize() for name in table.columns)
    return Grid(table.title, names, rows, numeric, table.notes)


def newest_first(papers: Iterable[Paper]) -> list[Paper]:
    """Return papers by the day on which they were added, the latest first; those of a day in their order."""
    return sorted(papers, key=lambda paper: paper.added, reverse=True)


def start(source: Source, fields: Sequence[Field]) -> dict[str, Any]:
    """The start page: what the field has and lacks, two fields crossed, levels, years, what is new."""
    named = {field.name: field for field in fields}
    pairs = [pair for pair in source.taxonomy.crosstabs if {*pair} <= named.keys()]
    rows, columns = (named[name] for name in pairs[0]) if pairs else (fields[0], fields[1 if len(fields) > 1 else 0])
    impossible = impossible_pairs(fields, source.taxonomy)
    by_day = newest_first(source.pool.papers)
    newest = by_day[:_LATEST]
    return {
        "totals": totals(source.summary),
        "sentences": list(_sentences(source)),
        "source": web_address(source.taxonomy.source),
        "fields": fields,
        "rows": rows,
        "columns": columns,
        "matrix": matrix(rows, columns, impossible.get((rows.name, columns.name), frozenset())),
        "levels": [level_grid(level, source.taxonomy.noun) for level in source.summary.levels],
        "years": [(one.id, number) for one, number in zip(named["year"].values, named["year"].counts(), strict=True)],
        "newest": newest,
        "further": sum(paper.added == newest[-1].added for paper in by_day[_LATEST:]) if newest else 0,
        "data": {
            "fields": [field.data(is_short=True) for field in fields],
            "impossible": {" ".join(names): sorted(pairs) for names, pairs in impossible.items()},
        },
    }


def _sentences(source: Source) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield what the corpus has and lacks, its address, and what speaks against it: claims, else the axes.

    Of the claims that hold over the pool of today, too, the one with the most records, and two with none.
    """
    general = []
    for verdict in source.verdicts:
        today = verdict.pools.get(PoolName.TODAY)
        if verdict.holds and today is not None and today.holds:
            general.append(verdict)
    most = sorted((verdict for verdict in general if verdict.rows), key=lambda verdict: -len(verdict.rows))[:1]
    for verdict in (*most, *[verdict for verdict in general if not verdict.rows][:2]):
        yield verdict.claim.claim, f"claims.html#{verdict.claim.id}", tuple(_doubts(verdict, source))
    if not general:
        kinds = (plan.FigureKind.COVERAGE, plan.FigureKind.TERMS, plan.FigureKind.LEVELS)
        figures = [one for one in plan.plan(source.taxonomy, with_scale=False) if one.kind in kinds]
        yield from ((plan.caption(figure, source.drawn).text, "taxonomy.html", ()) for figure in figures[:3])


def _doubts(verdict: Verdict, source: Source) -> Iterator[str]:
    """Yield the doubts about a claim that holds: the strongest evidence against it, and where it falls."""
    if strength := _strongest(verdict.claim):
        yield f"{strength} counter-evidence"
    if verdict.claim.id in source.by_sources and source.by_sources[verdict.claim.id].falls_by:
        yield "falls by the reading of the sources"
    awaited = verdict.pools.get(PoolName.CANDIDATES)
    if awaited is not None and not awaited.holds:
        yield "outdated by any addition" if verdict.claim.is_exact else "falls with the candidates"


def _strongest(claim: Claim) -> str:
    """Return the strength of the strongest evidence against a claim; empty where there is none."""
    return max((one.strength for one in claim.counter), key=list(Strength).index).value if claim.counter else ""


def level_grid(levels: LevelCounts, noun: Noun) -> Grid:
    """The terms of a facet with levels, by level, each number with a link to its papers."""
    facet = levels.facet
    rows = []
    for term in facet.terms:
        row = [(term_label(term), f"taxonomy.html#{facet.field}")]
        for level, count in levels.counts[term.id].items():
            row.append((str(count), papers_address((term.id, level)) if count else ""))
        rows.append(row)
    columns = ("", *(level.label for level in facet.levels))
    return Grid(f"{facet.label}: {noun.many} by level", columns, rows, (False, *(True,) * len(facet.levels)))


def claims(source: Source) -> dict[str, Any]:
    """Every claim, the most doubtful first: its verdicts, the records behind it, what is against it or breaks it."""
    pools = pools_of(source.verdicts)
    later = (name for name in pools if name is not PoolName.PUBLISHED)
    return {
        **_judged(source, source.verdicts),
        "agreed_text": agreed_text,
        "reach_text": reach_text,
        "notes": [note for name in later for note in pool_summary(source.verdicts, name, hint="")],
        "candidate_keys": {candidate.name for candidate in source.candidates},
    }


def _judged(source: Source, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return claims with their verdicts, the most doubtful first, and the names of the pools they are judged over."""
    pools = pools_of(source.verdicts)
    shown = []
    for verdict in sorted(verdicts, key=doubt_rank):
        robust, compared = source.robust.get(verdict.claim.id), source.by_sources.get(verdict.claim.id)
        shown.append(
            {
                "verdict": verdict,
                "words": [(name.value, pool_word(verdict, name)) for name in pools],
                "by_sources": reading_word(compared) if compared else "",
                "agreed": compared.falls_by if compared else (),
                "against": _strongest(verdict.claim),
                "records": [_counted_record(name, source) for name in verdict.rows],
                "awaited": verdict.pools.get(PoolName.CANDIDATES),
                "stress": list(stress_entries(robust)) if robust is not None and robust.holds else [],
            }
        )
    return {"claims": shown, "pools": [name.value for name in pools], "has_reading": bool(source.by_sources)}


def _counted_record(name: str, source: Source) -> tuple[str, str, str]:
    """Return the name of a record that a claim counts, with its title and address."""
    if name in source.keys:
        return name, source.keys[name].title, f"papers/{name}.html"
    if any(name == observation.name for observation in source.scale):
        return name, name, "scale.html"
    return name, name, f"screening.html#{name}"


def scale_page(source: Source) -> dict[str, Any]:
    """Return what is known of the scale of systems: each quantity in a sentence, and every number with its sources."""
    by_quantity: dict[str, list[Observation]] = {}
    for observation in source.scale:
        by_quantity.setdefault(observation.quantity, []).append(observation)
    return {
        "answers": scale.answers(source.scale),
        "boundary": scale.BOUNDARY,
        "quantities": by_quantity,
        "amount": scale.amount,
        "status": scale.status,
        "keys": source.keys,
        **_judged(source, [verdict for verdict in source.verdicts if Over.SCALE in verdict.claim.over]),
    }


def screening(source: Source) -> dict[str, Any]:
    """From screened to retained records: by the facets of exclusions, then every exclusion."""
    facets = source.taxonomy.exclusions
    counts = []
    for counted in source.summary.exclusions:
        label, terms = counted.attribute.label, counted.attribute.terms
        rows = [[(plan.called(value, terms), ""), (str(count), "")] for value, count in counted.counts.items()]
        counts.append(Grid(f"Exclusions by {label}", (label, "Records"), rows, (False, True)))
    labels = {facet.field: {term.id: term.label for term in facet.terms} for facet in facets}
    exclusions = []
    for exclusion in source.pool.exclusions:
        cells = []
        for field, names in labels.items():
            tag = exclusion.tags.get(field, "")
            cells.append("; ".join(names.get(term, term) for term in ((tag,) if isinstance(tag, str) else tag)))
        exclusions.append((exclusion, cells))
    return {"counts": counts, "facets": facets, "exclusions": exclusions}


def candidates(source: Source) -> dict[str, Any]:
    """Return the candidates, with what each reader reads, in the order of their proposals."""
    attributes = candidate_attributes(source.taxonomy)
    listed = []
    for candidate in by_proposal(source.candidates):
        open_tags = "; ".join(source.tag_labels[tag] for tag in attributes["open"].values(candidate))
        listed.append((candidate, list(_candidate_tags(candidate, source.taxonomy)), open_tags))
    counts = Counter(candidate.proposal for candidate in source.candidates)
    return {
        "candidates": listed,
        "proposals": [(decision.value, counts[decision]) for decision in Decision if counts[decision]],
        "groups": grouped(candidate_fields(by_proposal(source.candidates), source.taxonomy)),
        "tag_labels": source.tag_labels,
        "value_label": source.value_label,
    }


def by_proposal(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates in the order of the proposed decisions."""
    return sorted(candidates, key=lambda candidate: list(Decision).index(candidate.proposal))


def _candidate_tags(candidate: Candidate, taxonomy: Taxonomy) -> Iterator[tuple[str, str]]:
    for facet in taxonomy.papers:
        tag = candidate.tags.get(facet.field)
        names = {term.id: term_label(term) for term in facet.terms}
        if isinstance(tag, str):
            yield facet.label, names.get(tag, tag)
        elif isinstance(tag, tuple):
            yield facet.label, ", ".join(names.get(one, one) for one in tag)
        elif tag:
            levels = {level.id: term_label(level) for level in facet.levels}
            yield facet.label, ", ".join(f"{names[term]}: {levels[level]}" for term, level in tag.items())


def taxonomy(source: Source, fields: Sequence[Field]) -> dict[str, Any]:
    """Every facet with its terms, how many papers have each, and how it is coded."""
    counts = {field.name: dict(zip((one.id for one in field.values), field.counts(), strict=True)) for field in fields}
    by_tag = {coding.tag: coding for coding in source.codings}
    papers = {key: f"papers/{key}.html" for key in source.keys}
    by_record = [levels for levels in source.summary.levels if levels.by_record]
    matrices = {levels.facet.field: grid(levels_matrix(levels), papers) for levels in by_record}
    sections = []
    for facet in source.taxonomy.papers:
        names, numbers = [facet.field], []
        for term in facet.terms:
            if facet.kind is Kind.LEVELS:
                names.append(term.id)
                numbers.append((term, [(level, counts[term.id].get(level.id, 0)) for level in facet.levels]))
            else:
                numbers.append((term, [(term, counts[facet.field].get(term.id, 0))]))
        codings = [by_tag[name] for name in names if name in by_tag]
        sections.append((facet, numbers, codings, matrices.get(facet.field)))
    labels = {"tag_labels": source.tag_labels, "value_label": source.value_label}
    return {**labels, "sections": sections, "others": (*source.taxonomy.exclusions, *source.taxonomy.evidence)}


def protocol(source: Source) -> dict[str, Any]:
    """Return how papers come into the corpus; nothing where it has no protocol."""
    protocol = source.protocol
    if protocol is None:
        return {}
    labels = {family.id: family.label for family in protocol.families}
    stages = {term.id: term.label for facet in source.taxonomy.exclusions for term in facet.terms}
    return {
        "protocol": protocol,
        "source": web_address(protocol.source),
        "queries": [(query.name, labels[query.family], query.query, query.by.value) for query in protocol.queries],
        "stages": [(stages[stage.stage], stage.rule) for stage in protocol.stages],
    }
