"""The command that shows the terms of a corpus's fields, and the coding rules: `terms`."""

from collections import Counter

from orchtrace_corpus.base.commands.options import split_names
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.table import Table, arranged
from orchtrace_corpus.corpus.analysis.attributes import exclusion_attributes, find, paper_attributes
from orchtrace_corpus.corpus.analysis.statistics import count
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.model.records import Pool, evidence_facets
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy
from orchtrace_corpus.corpus.render import codebook, statistics


def show_terms(session: CorpusSession, axis: str, sort: str, columns: str, output_format: Format) -> None:
    """Show the terms of one field, or of all."""
    pool = session.pool_as_read()
    if not axis and output_format is Format.TABLE and not sort and not columns:
        session.output.show(codebook.overview(pool.taxonomy, session.output.width))
        return
    tables = _term_tables(pool, axis) if axis else [codebook.all_terms_table(pool.taxonomy)]
    wanted = split_names(columns) if columns else ()
    tables = [arranged(tables[0], wanted, sort), *tables[1:]]
    if output_format is Format.CSV:
        tables = tables[:1]
    session.show_tables(tables, "terms", output_format)
    if axis and output_format is Format.TABLE:
        _show_codings(session, pool, axis)


def _show_codings(session: CorpusSession, pool: Pool, name: str) -> None:
    """Show the coding rules of a field, or of a term with levels and then of its field."""
    codings = session.files.codebook.require()
    values = {facet.field: facet.values for facet in _with_terms(pool.taxonomy, name)}
    names = tuple(values)
    if not values:
        attribute = find(name, {**exclusion_attributes(pool.taxonomy), **paper_attributes(pool.taxonomy)})
        levels = (facet for facet in pool.taxonomy.papers if facet.kind is Kind.LEVELS)
        whole = (facet.field for facet in levels if attribute.name in (term.id for term in facet.terms))
        names = (attribute.name, *whole)  # the rules of the field hold for each of its terms with levels
    chosen = [coding for name in names for coding in codings if coding.tag == name]
    if values:
        chosen = [
            coding._replace(cases=tuple(case for case in coding.cases if case.value in values[coding.tag]))
            for coding in chosen
        ]
    session.output.show(codebook.lines(chosen, session.output.width))


def _with_terms(taxonomy: Taxonomy, name: str) -> list[Facet]:
    """Return the facets with a term of this name or code, reduced to that term; none if it is the name of a field."""
    if name in {**exclusion_attributes(taxonomy), **paper_attributes(taxonomy)}:
        return []
    facets = []
    for facet in (*taxonomy.papers, *taxonomy.exclusions):
        terms = tuple(term for term in facet.terms if name.lower() in (term.id.lower(), term.code.lower()))
        if terms and facet.kind is not Kind.LEVELS:
            facets.append(facet._replace(terms=terms, allows_na=False))
    return facets


def _term_tables(pool: Pool, name: str) -> list[Table]:
    papers, exclusions = paper_attributes(pool.taxonomy), exclusion_attributes(pool.taxonomy)
    attributes = {**exclusions, **papers}
    vocabularies = {name: attributes[name] for name in attributes if attributes[name].terms and name != "published"}
    evidence = {facet.field: facet for facet in evidence_facets(pool.taxonomy)}
    if name in evidence:
        tally = Counter(getattr(item, name, "") for paper in pool.papers for item in paper.evidence)
        return [codebook.terms_table(evidence[name], tally)]
    facets = with_term = _with_terms(pool.taxonomy, name)
    if not with_term:
        if name in attributes and name not in vocabularies and name != "published":
            raise CommandUseError(f"the field {quote(name)} has no terms", f"To count its values: corpus stats {name}")
        attribute = find(name, vocabularies, "field or term")
        if attribute.field is not None:
            return statistics.counts_tables(count(pool.papers, attribute))
        # A sub-decision is a term of its facet; its own values are the facet's levels.
        of_term = (facet for facet in pool.taxonomy.papers if attribute.name in [term.id for term in facet.terms])
        facet = attribute.facet or next(of_term)
        terms = tuple(term for term in facet.terms if attribute.facet is not None or term.id == attribute.name)
        facets = [facet._replace(terms=terms)]
    tables = []
    for facet in facets:
        records, values = pool.papers if facet.field in papers else pool.exclusions, vocabularies[facet.field].values
        having = {term: [record.name for record in records if term in values(record)] for term in facet.values}
        counts = {term: len(keys) for term, keys in having.items()}
        tables += [codebook.terms_table(facet, counts, having if with_term else {})]
        tables += [codebook.levels_table(facet)] if facet.levels else []
    return tables
