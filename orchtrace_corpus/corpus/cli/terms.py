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


def show_terms(session: CorpusSession, name: str, sort: str, columns: str, output_format: Format) -> None:
    """Show the terms of a field, or the term of that name with its field; without a name, all terms."""
    pool = session.pool_despite_errors()
    if not name and output_format is Format.TABLE and not sort and not columns:
        session.output.show(codebook.overview(pool.taxonomy, session.output.width))
        return
    tables = _term_tables(pool, name) if name else [codebook.all_terms_table(pool.taxonomy)]
    column_names = split_names(columns) if columns else ()
    tables[0] = arranged(tables[0], column_names, sort)
    if output_format is Format.CSV:
        tables = tables[:1]
    session.show_tables(tables, "terms", output_format)
    if name and output_format is Format.TABLE:
        _show_codings(session, pool, name)


def _show_codings(session: CorpusSession, pool: Pool, name: str) -> None:
    """Show the coding rules of a field, or of the field of a term. For a term with levels, it has rules of its own."""
    codings = session.files.codebook.require()
    terms_by_field = {facet.field: facet.values for facet in _facets_of_term(pool.taxonomy, name)}
    if terms_by_field:
        names = tuple(terms_by_field)
    else:
        attribute = find(name, {**exclusion_attributes(pool.taxonomy), **paper_attributes(pool.taxonomy)})
        names = (attribute.name,)
        for facet in pool.taxonomy.papers:
            if facet.kind is Kind.LEVELS and attribute.name in [term.id for term in facet.terms]:
                names += (facet.field,)
    shown = [coding for name in names for coding in codings if coding.tag == name]
    if terms_by_field:  # only the cases of that term
        for index, coding in enumerate(shown):
            cases = tuple(case for case in coding.cases if case.value in terms_by_field[coding.tag])
            shown[index] = coding._replace(cases=cases)
    session.output.show(codebook.lines(shown, session.output.width))


def _facets_of_term(taxonomy: Taxonomy, name: str) -> list[Facet]:
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
        counts = Counter(getattr(item, name, "") for paper in pool.papers for item in paper.evidence)
        return [codebook.terms_table(evidence[name], counts)]
    facets = _facets_of_term(pool.taxonomy, name)
    is_term = bool(facets)
    if not is_term:
        if name in attributes and name not in vocabularies and name != "published":
            raise CommandUseError(f"the field {quote(name)} has no terms", f"To count its values: corpus stats {name}")
        attribute = find(name, vocabularies, "field or term")
        if attribute.field is not None:
            return statistics.counts_tables(count(pool.papers, attribute))
        if attribute.facet is not None:
            facets = [attribute.facet]
        else:  # a sub-decision, which is an attribute and a term of its facet
            for facet in pool.taxonomy.papers:
                terms = tuple(term for term in facet.terms if term.id == attribute.name)
                if terms:
                    facets = [facet._replace(terms=terms)]
                    break
    tables = []
    for facet in facets:
        records = pool.papers if facet.field in papers else pool.exclusions
        values_of = vocabularies[facet.field].values
        keys_by_term: dict[str, list[str]] = {}
        for term in facet.values:
            keys_by_term[term] = [record.name for record in records if term in values_of(record)]
        term_counts = {term: len(keys) for term, keys in keys_by_term.items()}
        tables.append(codebook.terms_table(facet, term_counts, keys_by_term if is_term else {}))
        if facet.levels:
            tables.append(codebook.levels_table(facet))
    return tables
