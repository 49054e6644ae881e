"""The values for the templates of the start page and of the pages on claims, scale, screening, candidates and terms."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
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
    group_fields,
    heat_level,
    impossible_pairs,
    matrix,
    papers_address,
)
from orchtrace_corpus.corpus.site.source import Source

_MAX_NEWEST = 5
_MAX_CLAIMS = 7
_MAX_YEARS = 10


class Grid(NamedTuple):
    """A table of a page: each cell is a text and its address, or an empty one; `numeric` is True for number columns."""

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[tuple[str, str]]]
    numeric: tuple[bool, ...]
    notes: tuple[str, ...] = ()


def grid(table: Table, links: Mapping[str, str] = {}) -> Grid:
    """Return a table of a report for a page; texts with an entry in `links`, and web addresses, become links."""
    rows = []
    for row in table.rows:
        texts = [cell_text(cell) for cell in row]
        rows.append([(text, links.get(text) or ("" if " " in text else web_address(text))) for text in texts])
    numeric = []
    for index in range(len(table.columns)):
        has_numbers = all(isinstance(row[index], (int, float)) for row in table.rows)
        numeric.append(has_numbers and len(table.rows) > 0)
    names = tuple(name.replace("_", " ").capitalize() for name in table.columns)
    return Grid(table.title, names, rows, tuple(numeric), table.notes)


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
    """Yield the doubts about a claim that holds: other data with which it fails, and counter-evidence if not weak."""
    today = verdict.pools.get(PoolName.TODAY)
    with_candidates = verdict.pools.get(PoolName.CANDIDATES)
    if not verdict.claim.is_exact:  # any addition outdates an exact count, which is no doubt about it
        if today is not None and not today.holds:
            yield "falls today"
        elif with_candidates is not None and not with_candidates.holds:
            yield "falls with the candidates"
    if verdict.claim.id in source.readings_by_claim and source.readings_by_claim[verdict.claim.id].falls_by:
        yield "falls by the reading of the sources"
    strengths = {counter.strength for counter in verdict.claim.counter} - {Strength.WEAK}
    if strengths:
        yield f"{max(strengths, key=list(Strength).index).value} counter-evidence"


def claim_address(verdict: Verdict, root: str = "") -> str:
    """Return the address of a claim's page; `root` is the way from the linking page to the folder of the site."""
    return f"{root}claims/{verdict.claim.id}.html"


def start(source: Source, fields: Sequence[Field], gaps: GapPages, base_url: str) -> dict[str, Any]:
    """Return the values of the start page: its purpose, two fields crossed, claims, levels, years, newest papers."""
    rows, columns = front_pair(source.taxonomy, fields)
    impossible = impossible_pairs(fields, source.taxonomy)
    crossed = matrix(rows, columns, impossible.get((rows.name, columns.name), frozenset()), gaps.address)
    newest = sorted(source.pool.papers, key=lambda paper: paper.added, reverse=True)
    updated = newest[0].added if newest else ""
    levels = [level_matrix(facet, fields, gaps) for facet in source.taxonomy.axes if facet.kind is Kind.LEVELS]
    # Claims that fail, then other claims, then exact counts, each in the order of the survey.
    verdicts = sorted(source.verdicts, key=lambda verdict: (verdict.holds, verdict.claim.is_exact))
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
        "sentences": [(verdict, outcome(verdict, source)) for verdict in verdicts[:_MAX_CLAIMS]],
        "captions": [] if source.verdicts else list(_captions(source)),
        "newest": [paper for paper in newest if paper.added > newest[-1].added][:_MAX_NEWEST],
        "data": {
            "noun": [source.taxonomy.noun.one, source.taxonomy.noun.many],
            "fields": [field.data(is_short=True) for field in fields],
            "impossible": {" ".join(names): sorted(pairs) for names, pairs in impossible.items()},
        },
    }


def front_pair(taxonomy: Taxonomy, fields: Sequence[Field]) -> tuple[Field, Field]:
    """Return the two fields that the start page crosses: the first pair of the taxonomy, else the first two fields."""
    fields_by_name = {field.name: field for field in fields}
    for rows, columns in taxonomy.crosstabs:
        if rows in fields_by_name and columns in fields_by_name:
            return fields_by_name[rows], fields_by_name[columns]
    return fields[0], fields[min(1, len(fields) - 1)]


def statement(rows: Field, columns: Field, crossed: Sequence[MatrixRow], noun: Noun) -> str:
    """Return how many combinations of two fields no paper has, in a sentence; the script writes the same."""
    cells = [cell for row in crossed for cell in row.cells if not cell.is_aside and not cell.is_impossible]
    empty = sum(not cell.number for cell in cells)
    pair = f"{within_sentence(rows.label)} and {within_sentence(columns.label)}"
    if not empty:
        return f"Every combination of {pair} has {noun.with_article}"
    verb = "has" if empty == 1 else "have"
    return f"{empty:,} of {len(cells):,} combinations of {pair} {verb} no {noun.one}"


def _numbers(source: Source, gaps: GapPages) -> list[tuple[int, str, str]]:
    """Return the three large numbers of the start page, each with its label and the address that it links to."""
    noun, papers = source.taxonomy.noun, len(source.pool.papers)
    outcomes = Counter(outcome(verdict, source) for verdict in source.verdicts)
    terms_with_levels = set()
    for facet in source.taxonomy.papers:
        if facet.kind is Kind.LEVELS:
            terms_with_levels |= {term.id for term in facet.terms}
    single_values = [(path, cell) for path, cell in gaps.cells.items() if len(cell.wanted) == 1]
    numbers = [(papers, f"{noun.one if papers == 1 else noun.many} read and tagged", "papers.html")]
    if single_values:

        def weight(gap: tuple[str, EmptyCell]) -> tuple[bool, int]:
            """Prefer levels to other values, then the gap that most claims are about."""
            _, cell = gap
            return cell.wanted[0].attribute.name in terms_with_levels, len(claims_about(cell, source.verdicts))

        path, cell = max(single_values, key=weight)
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
    """Return a sentence on the purpose of a survey that does not state one."""
    noun, labels = source.taxonomy.noun, [facet.label.lower() for facet in source.taxonomy.axes]
    purpose = f"{noun.counted(len(source.pool.papers))}, tagged and sourced"
    if len(labels) > 1:
        purpose += f" by {', '.join(labels[:-1])} and {labels[-1]}"
    return f"{purpose}: what there is, and which combinations no {noun.one} has."


def _captions(source: Source) -> Iterator[str]:
    """Yield the captions of the figures of the axes, which a corpus without claims shows in place of claims."""
    kinds = (plan.FigureKind.COVERAGE, plan.FigureKind.TERMS, plan.FigureKind.LEVELS)
    figures = [figure for figure in plan.figures_of(source.figure_source) if figure.kind in kinds]
    yield from (plan.caption(figure, source.figure_source).text for figure in figures[:3])


def _years(fields: Sequence[Field]) -> Iterator[dict[str, Any]]:
    """Yield a bar for each of the latest years, with papers or without, and one for all earlier years together."""
    counts: dict[int, int] = {}
    for field in fields:
        if field.name == "year":
            counts = {int(year): count for year, count in field.count_by_value().items() if year}
    if not counts:
        return
    first = max(min(counts), max(counts) - _MAX_YEARS + 1)
    earlier = [year for year in counts if year < first]
    bars = []  # label, number of papers, values of the filter
    if earlier:
        bars.append((f"<{first}", sum(counts[year] for year in earlier), ",".join(map(str, earlier))))
    bars += [(str(year), counts.get(year, 0), str(year)) for year in range(first, max(counts) + 1)]
    largest = max(papers for _, papers, _ in bars)
    for label, papers, value in bars:
        address = papers_address(("year", value)) if papers else ""
        yield {"label": label, "papers": papers, "height": round(100 * papers / largest), "address": address}


def level_matrix(
    facet: Facet, fields: Sequence[Field], gaps: GapPages
) -> tuple[Facet, list[MatrixRow], list[tuple[str, bool]]]:
    """Return a facet with levels, its terms by level as a matrix, and the headings of the columns."""
    counts = [(field, field.count_by_value()) for field in fields if field.facet is facet]
    largest = max((by_level.get(level.id, 0) for _, by_level in counts for level in facet.levels), default=0)
    rows = []
    for field, by_level in counts:
        cells = []
        for level in facet.levels:
            number, pair = by_level.get(level.id, 0), (field.name, level.id)
            address = papers_address(pair) if number else gaps.address(pair)
            heat = heat_level(number, largest)
            cells.append(MatrixCell(number, heat, is_impossible=False, is_aside=False, address=address))
        rows.append(MatrixRow(Value(field.name, field.label), tuple(cells)))
    return facet, rows, [(level.label, False) for level in facet.levels]


def _citation(source: Source, updated: str, base_url: str) -> str:
    """Return a BibTeX entry for the survey itself, with the year of its latest paper."""
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
    """Return the values of the page of claims: the claims by outcome, those that fail first."""
    described = describe_claims(source, source.verdicts)
    description = "What the corpus claims about itself, held against its records."
    return {"description": description, "groups": groupby(described, itemgetter("outcome")), "total": len(described)}


def describe_claims(source: Source, verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return the values of each claim for templates, by outcome, exact counts after other claims."""
    pools = pools_of(source.verdicts)
    worst_first = list(Outcome)[::-1]

    def rank(verdict: Verdict) -> tuple[int, bool, tuple[int, int]]:
        return worst_first.index(outcome(verdict, source)), verdict.claim.is_exact, doubt_rank(verdict)

    described = []
    for verdict in sorted(verdicts, key=rank):
        robustness = source.robustness_by_claim.get(verdict.claim.id)
        compared = source.readings_by_claim.get(verdict.claim.id)
        words = [(name.value, pool_word(verdict, name)) for name in pools]
        if compared:
            words.append(("by the sources", reading_word(compared)))
        falling = []
        pool = verdict.pools.get(PoolName.CANDIDATES)
        if pool:
            falling = [("Falls by", pool.falls_by), ("Could fall by", pool.could_fall_by)]
        agreed = compared.falls_by if compared else ()
        uncounted = [key for key in verdict.contested if key not in verdict.rows]
        described.append(
            {
                "verdict": verdict,
                "outcome": outcome(verdict, source),
                "doubts": list(doubts(verdict, source)) if verdict.holds else [],
                "words": [(name, word) for name, word in words if word != "-"],
                "reach": reach_text(pool) if pool else "",
                "falling": [(label, _records(keys, source)) for label, keys in falling if keys],
                "agreed": [(dispute, source.papers_by_key[dispute.record].title) for dispute in agreed],
                "readings": [(reading, _records(reading.keys, source)) for reading in verdict.claim.readings],
                "records": _records(verdict.rows, source),
                "beside": _records(uncounted, source),
                "stress": list(_stress(robustness, source)) if robustness and robustness.holds else [],
            }
        )
    return described


def _records(names: Iterable[str], source: Source) -> list[tuple[str, str, str]]:
    """Return the names of records with their titles and addresses."""
    return [(name, *source.record(name)) for name in names]


def _stress(robust: Robustness, source: Source) -> Iterator[tuple[str, str, dict[str, list[tuple[str, str, str]]]]]:
    """Yield what breaks a claim: a label, a sentence, and by change the records that would have to change."""
    smallest = "no change that was tried"
    if robust.smallest:
        smallest = pluralize(len(robust.smallest), "change")
        if not robust.is_exact:
            smallest = f"at most {smallest}"
    yield "Breaks by", smallest, _records_by_change(robust.smallest, source)
    for label, alone, all_break in (
        ("Disputes", robust.flips, robust.breaks_by_all_flips),
        ("Near misses", robust.near_misses, robust.breaks_by_all_near_misses),
    ):
        if all_break is not None:
            text = f"{len(alone)} break it alone" if len(alone) > 1 else f"{len(alone) or 'none'} breaks it alone"
            text += f"; all at once {'break' if all_break else 'do not break'} it"
            yield label, text, _records_by_change(alone, source)
    texts = {0: "none breaks it alone", 1: "any breaks it"}
    count = len(robust.left_out)  # the page lists these records below
    yield "Rows left out", texts.get(count, f"any of {count} breaks it"), {}


def _records_by_change(changes: Iterable[Change], source: Source) -> dict[str, list[tuple[str, str, str]]]:
    """Return the changed records by the change in words."""
    names: dict[str, list[str]] = {}
    for change in changes:
        text = "left out"
        if change.kind is ChangeKind.FLIP:
            value = source.value_label(change.tag, change.value)
            text = f"{source.tag_labels[change.tag]} read as {value}"
            if change.is_settled:
                text += " (settled)"
        elif change.kind is ChangeKind.TAKE_IN:
            tags = [f"{source.tag_labels[field]} {source.tag_text(field, tag)}" for field, tag in change.tags.items()]
            text = f"taken in with {', '.join(tags)}" if tags else "taken in"
        names.setdefault(text, []).append(change.record)
    return {text: _records(records, source) for text, records in names.items()}


def scale_page(source: Source) -> dict[str, Any]:
    """Return the values of the page on scale: each quantity in a sentence, and each number with its sources."""
    observations_by_quantity: dict[str, list[Observation]] = {}
    for observation in source.scale:
        observations_by_quantity.setdefault(observation.quantity, []).append(observation)
    return {
        "description": "How large systems in use are, and how large experiments are.",
        "compared": list(map(scale.extents, compare(source.scale))),
        "boundary": scale.BOUNDARY,
        "quantities": observations_by_quantity,
        "amount": scale.amount,
        "status": scale.status,
        "keys": source.papers_by_key,
        "claims": describe_claims(source, [verdict for verdict in source.verdicts if Over.SCALE in verdict.claim.over]),
    }


def screening(source: Source) -> dict[str, Any]:
    """Return the values of the page on screening: counts of exclusions by their facets, and every exclusion."""
    facets = source.taxonomy.exclusions
    grids = []
    for counts in source.summary.exclusions:
        label, terms = counts.attribute.label, counts.attribute.terms
        rows = [[(plan.value_label(value, terms), ""), (str(count), "")] for value, count in counts.counts.items()]
        grids.append(Grid(f"Exclusions by {label}", (label, "Records"), rows, (False, True)))
    exclusions = []
    for exclusion in source.pool.exclusions:
        cells = []
        for facet in facets:
            labels = {term.id: term.label for term in facet.terms}
            tag = exclusion.tags.get(facet.field, "")
            terms_of_tag = (tag,) if isinstance(tag, str) else tag
            cells.append("; ".join(labels.get(term, term) for term in terms_of_tag))
        exclusions.append((exclusion, cells))
    description = "What was screened, and what was left out, with the reason."
    return {"description": description, "counts": grids, "facets": facets, "exclusions": exclusions}


def candidates(source: Source) -> dict[str, Any]:
    """Return the values of the page of candidates: these with their tags, in the order of their proposals."""
    attributes = candidate_attributes(source.taxonomy)
    ordered = by_proposal(source.candidates)
    with_tags = []
    for candidate in ordered:
        open_tags = "; ".join(source.tag_labels[tag] for tag in attributes["open"].values(candidate))
        tags = []
        for facet in source.taxonomy.papers:
            tag = candidate.tags.get(facet.field)
            if tag:
                tags.append((facet.label, source.tag_text(facet.field, tag)))
        with_tags.append((candidate, tags, open_tags))
    counts = Counter(candidate.proposal for candidate in source.candidates)
    return {
        "description": "What was found, and awaits a decision.",
        "candidates": with_tags,
        "proposals": [(decision.value, counts[decision]) for decision in Decision if counts[decision]],
        "groups": group_fields(candidate_fields(ordered, source.taxonomy)),
    }


def by_proposal(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates in the order of the proposed decisions."""
    return sorted(candidates, key=lambda candidate: list(Decision).index(candidate.proposal))


def taxonomy(source: Source, fields: Sequence[Field], gaps: GapPages) -> dict[str, Any]:
    """Return the values of the page on the taxonomy: each facet with its terms, their counts and coding rules."""
    counts = {field.name: field.count_by_value() for field in fields}
    codings_by_tag = {coding.tag: coding for coding in source.codings}
    addresses = {key: f"papers/{key}.html" for key in source.papers_by_key}
    grids = {}
    for levels in source.summary.levels:
        if levels.by_record:
            grids[levels.facet.field] = grid(levels_matrix(levels), addresses)

    def count_with_address(name: str, value: str) -> tuple[int, str]:
        """Return the number of papers with a value, and the page that lists them or describes the gap."""
        number = counts[name].get(value, 0)
        return number, papers_address((name, value)) if number else gaps.address((name, value))

    sections = []
    for facet in source.taxonomy.papers:
        names, numbers = [facet.field], []
        for term in facet.terms:
            if facet.kind is Kind.LEVELS:
                names.append(term.id)
                numbers.append((term, [count_with_address(term.id, level.id) for level in facet.levels]))
            else:
                numbers.append((term, [count_with_address(facet.field, term.id)]))
        codings = [codings_by_tag[name] for name in names if name in codings_by_tag]
        sections.append((facet, numbers, codings, grids.get(facet.field)))
    description = f"What {source.taxonomy.noun.many} are tagged with, and what each tag means."
    others = (*source.taxonomy.exclusions, *source.taxonomy.evidence)
    return {"description": description, "sections": sections, "others": others}


def protocol(source: Source) -> dict[str, Any]:
    """Return the values of the page on the protocol; empty if the corpus has none."""
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
