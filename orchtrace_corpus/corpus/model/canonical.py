"""The canonical form of this corpus's data files: which fields in which order, and what stays unquoted."""

from orchtrace_corpus.base.yamlfile.writer import Style
from orchtrace_corpus.corpus.model.decode import exclusion_schema, paper_schema
from orchtrace_corpus.corpus.model.taxonomy import Kind, Taxonomy


def paper_style(taxonomy: Taxonomy) -> Style:
    """How papers are written."""
    flow = frozenset(facet.field for facet in taxonomy.papers if facet.kind is Kind.LEVELS)
    return Style(tuple(paper_schema(taxonomy).decoders), frozenset({"year"}), flow)


def exclusion_style(taxonomy: Taxonomy) -> Style:
    """How exclusions are written."""
    flow = frozenset(facet.field for facet in taxonomy.exclusions if facet.kind is Kind.LEVELS)
    return Style(tuple(exclusion_schema(taxonomy).decoders), frozenset(), flow)


def dispute_style() -> Style:
    """How disputes are written."""
    return Style(("record", "tag", "stands", "readings", "state", "why", "source"))
