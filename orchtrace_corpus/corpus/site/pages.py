"""The values for the templates of the start page and of the pages on claims, scale, screening, candidates and terms."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from orchtrace_corpus.base.html import web_address
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.base.text.table import Table, cell_text
from orchtrace_corpus.corpus.analysis.attributes import candidate_attributes
from orchtrace_corpus.corpus.analysis.claims import Verdict
from orchtrace_corpus.corpus.analysis.gaps import EmptyCell, claims_about
from orchtrace_corpus.corpus.analysis.stress import Change, ChangeKind, Robustness
from orchtrace_corpus.corpus.formats import registry
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision
from orchtrace_corpus.corpus.model.claim_file import Over, PoolName, Strength
from orchtrace_corpus.corpus.model.fields import bare_author
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.scale import Observation, compare
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Noun, Taxonomy
from orchtrace_corpus.corpus.render import scale
from orchtrace_corpus.corpus.render.claims import doubt_rank, pool_word, pools_of, reach_text, reading_word
from orchtrace_corpus.corpus.render.figures import plan
from orchtrace_corpus.corpus.render.statistics import levels_matrix, within_sentence
from orchtrace_corpus.corpus.site.gaps import GapPages
from orchtrace_corpus.corpus.site.papers import (
    Field,
    MatrixCell,
    MatrixRow,
    Value,
    candidate_fields,
    grouped,
    impossible_pairs,
    matrix,
    papers_address,
    share_heat,
)
from orchtrace_corpus.corpus.site.source import Source

_LATEST = 5
_CLAIMS_SHOWN = 7
_YEARS_SHOWN = 10


class Grid(NamedTuple):
    """A table of a page: cells are texts, each with an address or none; `numeric` says which columns hold numbers."""

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[tuple[str, str]]]
    numeric: tuple[bool, ...]
    notes: tuple[str, ...] = ()


def grid(table: Table, links: Mapping[str, str] = {}) -> Grid:
    """Return a table of a report for a page; texts with an entry in `links`, and web addresses, become links."""
    texts = [[cell_text(cell) for cell in row] for row in table.rows]
    rows = [[(text, links.get(text) or ("" if " " in text else web_address(text))) for text in row] for row in texts]
    numeric = tuple(
        bool(table.rows) and all(isinstance(row[index], (int, float)) for row in table.rows)
        for index in range(len(table.columns))
    )
    names = tuple(name.replace("_", " ").capitalize() for name in table.columns)
    return Grid(table.title, names, rows, numeric, table.notes)


class Outcome(StrEnum):
    """The verdict on a claim at a glance."""

    HOLDS = "holds"
    DOUBTED = "in doubt"
    FAILS = "fails"


def outcome(verdict: Verdict, source: Source) -> Outcome:
    """Return the verdict on a claim: it fails over its own pool, holds with a doubt, or holds."""
    if not verdict.holds:
        return Outcome.FAILS
    return Outcome.DOUBTED if any(doubts(verdict, source)) else Outcome.HOLDS


def doubts(verdict: Verdict, source: Source) -> Iterator[str]:
    """Yield what makes a claim fall that holds, and the counter-evidence if that is more than weak."""
    today, awaited = (verdict.pools.get(name) for name in (PoolName.TODAY, PoolName.CANDIDATES))
    if not verdict.claim.is_exact:  # any addition outdates an exact count, which is no doubt about it
        if today is not None and not today.holds:
            yield "falls today"
        elif awaited is not None and not awaited.holds:
            yield "falls with the candidates"
    if verdict.claim.id in source.by_sources and source.by_sources[verdict.claim.id].falls_by:
        yield "falls by the reading of the sources"
    strengths = {counter.strength for counter in verdict.claim.counter} - {Strength.WEAK}
    if strengths:
        yield f"{max(strengths, key=list(Strength).index).value} counter-evidence"


def claim_address(verdict: Verdict, root: str = "") -> str:
    """Return the page of a claim."""
    return f"{root}claims/{verdict.claim.id}.html"


def start(source: Source, fields: Sequence[Field], gaps: GapPages, base_url: str) -> dict[str, Any]:
    """Return the start page: its purpose, two fields crossed, claims, levels, years, the newest papers."""
    rows, columns = front_pair(source.taxonomy, fields)
    impossible = impossible_pairs(fields, source.taxonomy)
    crossed = matrix(rows, columns, impossible.get((rows.name, columns.name), frozenset()), gaps.address)
    by_day = sorted(source.pool.papers, key=attrgetter("added"), reverse=True)
    updated = by_day[0].added if by_day else ""
    levels = [level_matrix(facet, fields, gaps) for facet in source.taxonomy.axes if facet.kind is Kind.LEVELS]
    # Claims that fail, then theses, then counts, as the survey orders them.
    telling = sorted(source.verdicts, key=lambda verdict: (verdict.holds, verdict.claim.is_exact))[:_CLAIMS_SHOWN]
    return {
        "purpose": source.taxonomy.purpose or _purpose(source),
        "authors": [bare_author(author) for author in source.taxonomy.authors],
        "updated": updated,
        "numbers": _numbers(source, gaps),
        "awaiting": len(source.candidates),
        "source": web_address(source.taxonomy.source),
        "fields": fields,
        "rows": rows,
        "columns": columns,
        "matrix": crossed,
        "column_heads": [(value.label, value.is_aside) for value in columns.values],
        "citation": _citation(source, updated, base_url),
        "statement": statement(rows, columns, crossed, source.taxonomy.noun),
        "levels": levels,
        "years": list(_years(fields)),
        "sentences": [(verdict, outcome(verdict, source)) for verdict in telling],
        "captions": [] if source.verdicts else list(_captions(source)),
        "newest": [paper for paper in by_day if paper.added > by_day[-1].added][:_LATEST],
        "data": {
            "noun": [source.taxonomy.noun.one, source.taxonomy.noun.many],
            "fields": [field.data(is_short=True) for field in fields],
            "impossible": {" ".join(names): sorted(pairs) for names, pairs in impossible.items()},
        },
    }


def front_pair(taxonomy: Taxonomy, fields: Sequence[Field]) -> tuple[Field, Field]:
    """Return the two fields that the start page crosses: the first pair of the taxonomy, else the first two."""
    named = {field.name: field for field in fields}
    for rows, columns in taxonomy.crosstabs:
        if rows in named and columns in named:
            return named[rows], named[columns]
    return fields[0], fields[:2][-1]


def statement(rows: Field, columns: Field, crossed: Sequence[MatrixRow], noun: Noun) -> str:
    """Return how many combinations of two fields no paper has, in a sentence; the script writes the same."""
    cells = [cell for row in crossed for cell in row.cells if not cell.is_aside and not cell.is_impossible]
    empty = sum(not cell.number for cell in cells)
    pair = f"{within_sentence(rows.label)} and {within_sentence(columns.label)}"
    if not empty:
        return f"Every combination of {pair} has {noun.with_article}"
    return f"{empty:,} of {len(cells):,} combinations of {pair} {'has' if empty == 1 else 'have'} no {noun.one}"


def _numbers(source: Source, gaps: GapPages) -> list[tuple[int, str, str]]:
    """Return the three large numbers of the start page, each with its label and the page that it links."""
    noun, papers = source.taxonomy.noun, len(source.pool.papers)
    outcomes = Counter(outcome(verdict, source) for verdict in source.verdicts)
    levels = {term.id for facet in source.taxonomy.papers if facet.kind is Kind.LEVELS for term in facet.terms}
    alone = [(path, cell) for path, cell in gaps.cells.items() if len(cell.wanted) == 1]
    numbers = [(papers, f"{noun.one if papers == 1 else noun.many} read and tagged", "papers.html")]
    if alone:

        def weight(gap: tuple[str, EmptyCell]) -> tuple[bool, int]:
            return gap[1].filters[0][0] in levels, len(claims_about(gap[1], source.verdicts))

        path, cell = max(alone, key=weight)  # a level before a value, and the one that most claims are about
        disputed = len({dispute.record for dispute in cell.disputes})
        text = f"{noun.many} with {gaps.label(cell)}"
        numbers.append((0, f"{text}, {disputed} in dispute" if disputed else text, path))
    if source.verdicts:
        text = f"of {pluralize(len(source.verdicts), 'claim')} hold, {outcomes[Outcome.DOUBTED] or 'none'} in doubt"
        numbers.append((outcomes[Outcome.HOLDS], text, "claims.html"))
    if source.candidates:
        numbers.append((len(source.candidates), "candidates await a decision", "candidates.html"))
    if source.pool.exclusions:
        numbers.append((len(source.pool.exclusions), "records screened and left out", "screening.html"))
    terms = sum(len(facet.terms) for facet in source.taxonomy.papers)
    return [*numbers, (terms, "tags, each with its definition", "taxonomy.html")][:3]


def _purpose(source: Source) -> str:
    """Return a purpose for a survey that states none."""
    noun, labels = source.taxonomy.noun, [facet.label.lower() for facet in source.taxonomy.axes]
    tagged = f"{noun.counted(len(source.pool.papers))}, tagged and sourced"
    by = f" by {', '.join(labels[:-1])} and {labels[-1]}" if len(labels) > 1 else ""
    return f"{tagged}{by}: what there is, and which combinations no {noun.one} has."


def _captions(source: Source) -> Iterator[str]:
    """Yield the captions of the figures of the axes, which a corpus without claims shows instead."""
    kinds = (plan.FigureKind.COVERAGE, plan.FigureKind.TERMS, plan.FigureKind.LEVELS)
    figures = [figure for figure in plan.figures_of(source.drawn) if figure.kind in kinds]
    yield from (plan.caption(figure, source.drawn).text for figure in figures[:3])


def _years(fields: Sequence[Field]) -> Iterator[dict[str, Any]]:
    """Yield the bars of the latest years, with papers or without, and of all earlier ones together."""
    field = next((field for field in fields if field.name == "year"), None)
    counts = {int(year): count for year, count in field.count_by_value().items() if year} if field else {}
    if not counts:
        return
    first = max(min(counts), max(counts) - _YEARS_SHOWN + 1)
    older = [year for year in counts if year < first]
    bars = [(f"<{first}", sum(counts[year] for year in older), ",".join(map(str, older)))] if older else []
    bars += [(str(year), counts.get(year, 0), str(year)) for year in range(first, max(counts) + 1)]
    most = max(papers for _, papers, _ in bars)
    for label, papers, value in bars:
        address = papers_address(("year", value)) if papers else ""
        yield {"label": label, "papers": papers, "height": round(100 * papers / most), "address": address}


def level_matrix(
    facet: Facet, fields: Sequence[Field], gaps: GapPages
) -> tuple[Facet, list[MatrixRow], list[tuple[str, bool]]]:
    """Return a facet with levels, its terms by level as a matrix, and the heads of the columns."""
    counts = [(field, field.count_by_value()) for field in fields if field.facet is facet]
    most = max((by_level.get(level.id, 0) for _, by_level in counts for level in facet.levels), default=0)
    rows = []
    for field, by_level in counts:
        cells = []
        for level in facet.levels:
            number, pair = by_level.get(level.id, 0), (field.name, level.id)
            address = papers_address(pair) if number else gaps.address(pair)
            cells.append(MatrixCell(number, share_heat(number, most), False, False, address))
        rows.append(MatrixRow(Value(field.name, field.label), tuple(cells)))
    return facet, rows, [(level.label, False) for level in facet.levels]


def _citation(source: Source, updated: str, base_url: str) -> str:
    """Return the survey's own entry for BibTeX, dated by its latest paper."""
    taxonomy = source.taxonomy
    key = re.sub(r"[^a-z0-9]+", "-", taxonomy.title.lower()).strip("-")[:40].rstrip("-")
    survey = Paper(
        key or "survey",
        taxonomy.title,
        authors=taxonomy.authors,
        year=int(updated[:4] or 0),
        urls=(base_url or web_address(taxonomy.source),),
        notes=f"Data of {updated}" if updated else None,
    )
    return str(registry.find("bibtex").write((survey,), taxonomy, "", {}))


def claims(source: Source) -> dict[str, Any]:
    """Return the claims by outcome, those that fail first."""
    judged = judge(source, source.verdicts)
    description = "What the corpus claims about itself, held against its records."
    return {"description": description, "groups": groupby(judged, itemgetter("outcome")), "total": len(judged)}


def judge(source: Source, verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return claims by outcome, theses before counts, each with its verdicts, records and counter-evidence."""
    pools = pools_of(source.verdicts)
    worst_first = list(Outcome)[::-1]

    def rank(verdict: Verdict) -> tuple[int, bool, tuple[int, int]]:
        return worst_first.index(outcome(verdict, source)), verdict.claim.is_exact, doubt_rank(verdict)

    shown = []
    for verdict in sorted(verdicts, key=rank):
        robust, compared = source.robust.get(verdict.claim.id), source.by_sources.get(verdict.claim.id)
        awaited = verdict.pools.get(PoolName.CANDIDATES)
        falling = [("Falls by", awaited.falls_by), ("Could fall by", awaited.could_fall_by)] if awaited else []
        words = [(name.value, pool_word(verdict, name)) for name in pools]
        words += [("by the sources", reading_word(compared))] if compared else []
        agreed = compared.falls_by if compared else ()
        uncounted = [key for key in verdict.contested if key not in verdict.rows]
        shown.append(
            {
                "verdict": verdict,
                "outcome": outcome(verdict, source),
                "doubts": list(doubts(verdict, source)) if verdict.holds else [],
                "words": [(name, word) for name, word in words if word != "-"],
                "reach": reach_text(awaited) if awaited else "",
                "falling": [(label, _records(keys, source)) for label, keys in falling if keys],
                "agreed": [(dispute, source.keys[dispute.record].title) for dispute in agreed],
                "readings": [(reading, _records(reading.keys, source)) for reading in verdict.claim.readings],
                "records": _records(verdict.rows, source),
                "beside": _records(uncounted, source),
                "stress": list(_stress(robust, source)) if robust is not None and robust.holds else [],
            }
        )
    return shown


def _records(names: Iterable[str], source: Source) -> list[tuple[str, str, str]]:
    """Return records by name with their titles and addresses."""
    return [(name, *source.record(name)) for name in names]


def _stress(robust: Robustness, source: Source) -> Iterator[tuple[str, str, dict[str, list[tuple[str, str, str]]]]]:
    """Yield what breaks a claim: a label, a sentence, and the records that would have to change, by the change."""
    fewest = "no change that was tried"
    if robust.smallest:
        fewest = f"{'' if robust.is_exact else 'at most '}{pluralize(len(robust.smallest), 'change')}"
    yield "Breaks by", fewest, _by_change(robust.smallest, source)
    for label, alone, at_once in (
        ("Disputes", robust.flips, robust.breaks_by_all_flips),
        ("Near misses", robust.near_misses, robust.breaks_by_all_near_misses),
    ):
        if at_once is not None:
            text = f"{len(alone) or 'none'} break{'s' * (len(alone) < 2)} it alone"
            yield label, f"{text}; all at once {'break' if at_once else 'do not break'} it", _by_change(alone, source)
    breaking = {0: "none breaks it alone", 1: "any breaks it"}
    number = len(robust.left_out)  # the records themselves are listed below
    yield "Rows left out", breaking.get(number, f"any of {number} breaks it"), {}


def _by_change(changes: Iterable[Change], source: Source) -> dict[str, list[tuple[str, str, str]]]:
    """Return the records that changes are about, by the change in words."""
    names: dict[str, list[str]] = {}
    for change in changes:
        text = "left out"
        if change.kind is ChangeKind.FLIP:
            value = source.value_label(change.tag, change.value)
            text = f"{source.tag_labels[change.tag]} read as {value}{' (settled)' * change.is_settled}"
        elif change.kind is ChangeKind.TAKE_IN:
            tags = [f"{source.tag_labels[field]} {source.tag_text(field, tag)}" for field, tag in change.tags.items()]
            text = f"taken in{' with ' * bool(tags)}{', '.join(tags)}"
        names.setdefault(text, []).append(change.record)
    return {text: _records(records, source) for text, records in names.items()}


def scale_page(source: Source) -> dict[str, Any]:
    """Return what is known of the scale of systems: each quantity in a sentence, and each number with its sources."""
    by_quantity: dict[str, list[Observation]] = {}
    for observation in source.scale:
        by_quantity.setdefault(observation.quantity, []).append(observation)
    return {
        "description": "How large systems in use are, and how large experiments are.",
        "compared": list(map(scale.extents, compare(source.scale))),
        "boundary": scale.BOUNDARY,
        "quantities": by_quantity,
        "amount": scale.amount,
        "status": scale.status,
        "keys": source.keys,
        "claims": judge(source, [verdict for verdict in source.verdicts if Over.SCALE in verdict.claim.over]),
    }


def screening(source: Source) -> dict[str, Any]:
    """Return the counts of exclusions by their facets, then every exclusion."""
    facets = source.taxonomy.exclusions
    counts = []
    for counted in source.summary.exclusions:
        label, terms = counted.attribute.label, counted.attribute.terms
        rows = [[(plan.value_label(value, terms), ""), (str(count), "")] for value, count in counted.counts.items()]
        counts.append(Grid(f"Exclusions by {label}", (label, "Records"), rows, (False, True)))
    labels = {facet.field: {term.id: term.label for term in facet.terms} for facet in facets}
    exclusions = []
    for exclusion in source.pool.exclusions:
        cells = []
        for field, names in labels.items():
            tag = exclusion.tags.get(field, "")
            cells.append("; ".join(names.get(term, term) for term in ((tag,) if isinstance(tag, str) else tag)))
        exclusions.append((exclusion, cells))
    description = "What was screened, and what was left out, with the reason."
    return {"description": description, "counts": counts, "facets": facets, "exclusions": exclusions}


def candidates(source: Source) -> dict[str, Any]:
    """Return the candidates with their tags, in the order of their proposals."""
    attributes = candidate_attributes(source.taxonomy)
    ordered = by_proposal(source.candidates)
    listed = []
    for candidate in ordered:
        open_tags = "; ".join(source.tag_labels[tag] for tag in attributes["open"].values(candidate))
        tags = [
            (facet.label, source.tag_text(facet.field, candidate.tags[facet.field]))
            for facet in source.taxonomy.papers
            if candidate.tags.get(facet.field)
        ]
        listed.append((candidate, tags, open_tags))
    counts = Counter(candidate.proposal for candidate in source.candidates)
    return {
        "description": "What was found, and awaits a decision.",
        "candidates": listed,
        "proposals": [(decision.value, counts[decision]) for decision in Decision if counts[decision]],
        "groups": grouped(candidate_fields(ordered, source.taxonomy)),
    }


def by_proposal(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates in the order of the proposed decisions."""
    return sorted(candidates, key=lambda candidate: list(Decision).index(candidate.proposal))


def taxonomy(source: Source, fields: Sequence[Field], gaps: GapPages) -> dict[str, Any]:
    """Return each facet with its terms, how many papers have each term, and the rules of coding."""
    counts = {field.name: field.count_by_value() for field in fields}
    by_tag = {coding.tag: coding for coding in source.codings}
    papers = {key: f"papers/{key}.html" for key in source.keys}
    by_record = [levels for levels in source.summary.levels if levels.by_record]
    matrices = {levels.facet.field: grid(levels_matrix(levels), papers) for levels in by_record}

    def counted(name: str, value: str) -> tuple[int, str]:
        """Return how many papers have a value, and the page that lists them, or that describes the gap."""
        number = counts[name].get(value, 0)
        return number, papers_address((name, value)) if number else gaps.address((name, value))

    sections = []
    for facet in source.taxonomy.papers:
        names, numbers = [facet.field], []
        for term in facet.terms:
            if facet.kind is Kind.LEVELS:
                names.append(term.id)
                numbers.append((term, [counted(term.id, level.id) for level in facet.levels]))
            else:
                numbers.append((term, [counted(facet.field, term.id)]))
        codings = [by_tag[name] for name in names if name in by_tag]
        sections.append((facet, numbers, codings, matrices.get(facet.field)))
    description = f"What {source.taxonomy.noun.many} are tagged with, and what each tag means."
    others = (*source.taxonomy.exclusions, *source.taxonomy.evidence)
    return {"description": description, "sections": sections, "others": others}


def protocol(source: Source) -> dict[str, Any]:
    """Return the protocol; empty where the corpus has none."""
    protocol = source.protocol
    if protocol is None:
        return {}
    labels = {family.id: family.label for family in protocol.families}
    stages = {term.id: term.label for facet in source.taxonomy.exclusions for term in facet.terms}
    return {
        "description": f"How {source.taxonomy.noun.many} come into the corpus.",
        "protocol": protocol,
        "source": web_address(protocol.source),
        "queries": [(query.name, labels[query.family], query.query, query.by.value) for query in protocol.queries],
        "stages": [(stages[stage.stage], stage.rule) for stage in protocol.stages],
    }
