"""The pages of gaps: one for each combination of values, and each value, that no paper has."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.gaps import EmptyCell, claims_about, demands, empty_cells, empty_values
from orchtrace_corpus.corpus.analysis.stress import near_misses
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Term
from orchtrace_corpus.corpus.rules.tags import cannot_arise
from orchtrace_corpus.corpus.site.papers import new_issue, papers_address
from orchtrace_corpus.corpus.site.source import Source, term_label

FOLDER = "gaps"
_ISSUE_BODY = "Address of the work (arXiv, DOI or page):\n\nWhere it says so (section, page or line of code):\n"


class GapPages:
    """The gaps of a corpus: empty cells of crossed fields, and values without papers.

    Attributes:
        cells: The gaps by the addresses of their pages.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._attributes = paper_attributes(source.taxonomy)
        self._facets: dict[str, tuple[Facet, Term | None]] = {}  # by field; terms with levels are fields, too
        for facet in source.taxonomy.papers:
            self._facets[facet.field] = facet, None
            if facet.kind is Kind.LEVELS:
                self._facets |= {term.id: (facet, term) for term in facet.terms}
        self._codings = {coding.tag: coding for coding in source.codings}
        self.cells: dict[str, EmptyCell] = {}
        self._addresses: dict[frozenset[tuple[str, str]], str] = {}
        for cell in self._empty_cells():
            filters = frozenset(cell.filters)
            if filters in self._addresses:
                continue
            words = [word for pair in cell.filters for word in pair]
            name = ".".join(re.sub(r"[^A-Za-z0-9_-]+", "-", word) for word in words)
            while f"{FOLDER}/{name}.html" in self.cells:  # of values that differ in other characters only
                name += "-"
            self._addresses[filters] = f"{FOLDER}/{name}.html"
            self.cells[f"{FOLDER}/{name}.html"] = cell

    def _empty_cells(self) -> Iterator[EmptyCell]:
        source, attributes, taxonomy = self._source, self._attributes, self._source.taxonomy
        options: dict[str, Any] = {"disputes": source.disputes, "candidates": source.proposed}
        for facet in taxonomy.papers:
            if facet.kind is Kind.LEVELS:
                term_attributes = [attributes[term.id] for term in facet.terms]
                for attribute in term_attributes:
                    others = [other for other in term_attributes if other is not attribute]
                    yield from empty_values(source.pool.papers, attribute, others, **options)
            else:
                yield from empty_values(source.pool.papers, attributes[facet.field], **options)
        for row_name, column_name in taxonomy.crosstabs:
            rows, columns = attributes[row_name], attributes[column_name]
            impossible = cannot_arise(taxonomy, rows, columns)
            yield from empty_cells(source.pool.papers, rows, columns, impossible, **options)

    def address(self, *filters: tuple[str, str]) -> str:
        """Return the address of a gap's page by its filters in any order; empty if it has no page."""
        return self._addresses.get(frozenset(filters), "")

    def data(self) -> dict[str, Any]:
        """Return the data for the script: the addresses of gaps by their filters, and the definitions of all values."""
        addresses = {}
        for filters, path in self._addresses.items():
            addresses["&".join(sorted(f"{field}={value}" for field, value in filters))] = path
        meanings = {}
        for name, (facet, term) in self._facets.items():
            values = facet.levels if term else facet.terms
            meanings[name] = {value.id: value.definition for value in values}
        return {"addresses": addresses, "meanings": meanings}

    def label(self, cell: EmptyCell) -> str:
        """Return the name of a gap for readers: its values."""
        return " \u00d7 ".join(self._value_label(*pair) for pair in cell.filters)

    def _value_label(self, name: str, value: str) -> str:
        """Return the label of a value; a level comes after the label of its term."""
        _, term = self._facets[name]
        label = self._source.value_label(name, value)
        return f"{term_label(term)}: {label}" if term else label

    def sentence(self, cell: EmptyCell) -> str:
        """Return the sentence that describes a gap."""
        noun = self._source.taxonomy.noun
        none = f"None of the {noun.counted(len(self._source.pool.papers))} here"
        if len(cell.wanted) == 1:
            return f"{none} has {self.label(cell)}."
        values = []
        for field, value in cell.filters:
            facet, _ = self._facets[field]
            values.append(f"{self._value_label(field, value)} ({facet.label.lower()})")
        return f"{none} has both {' and '.join(values)}."

    def values(self, cell: EmptyCell, repository: str) -> dict[str, Any]:
        """Return the values for the template of a gap's page."""
        source = self._source
        titles = {candidate.name: candidate.paper.title for candidate in source.candidates}
        candidates = []
        for key in cell.candidates:
            name = key.removesuffix("?")
            candidates.append((name, titles[name], key.endswith("?")))
        tags = "\n".join(f"{name}: {value}" for name, value in cell.filters)
        with_papers = [pair for pair in cell.filters if not self.address(pair)]
        return {
            "cell": cell,
            "label": self.label(cell),
            "sentence": self.sentence(cell),
            "definitions": [self._definition(*pair) for pair in cell.filters],
            "demands": demands(cell, source.taxonomy),
            "nearest": [(source.papers_by_key[key], self._shared_values(key, cell)) for key in cell.nearest],
            "rest": [(self._value_label(*pair), papers_address(pair)) for pair in with_papers],
            "candidates": candidates,
            "disputes": [(dispute, source.papers_by_key[dispute.record].title) for dispute in cell.disputes],
            "misses": () if cell.why else near_misses(source.pool),
            "claims": claims_about(cell, source.verdicts),
            "issue": new_issue(repository, f"Fills a gap: {self.label(cell)}", f"{tags}\n\n{_ISSUE_BODY}"),
        }

    def _definition(self, name: str, value: str) -> tuple[str, str, str, Any]:
        """Return the label of a value, its address in the taxonomy, its definition, and its rules of coding."""
        facet, term = self._facets[name]
        meaning = next(each for each in (facet.levels if term else facet.terms) if each.id == value)
        definition = f"{term.definition} {meaning.definition}" if term else meaning.definition
        coding = self._codings.get(name) or self._codings.get(facet.field)
        return self._value_label(name, value), f"taxonomy.html#{facet.field}", definition, coding

    def _shared_values(self, key: str, cell: EmptyCell) -> Sequence[str]:
        """Return the values of a paper near a gap in the gap's fields; for a level, also other terms at this level."""
        paper = self._source.papers_by_key[key]
        shared = [(wanted.attribute, value) for wanted in cell.wanted for value in wanted.attribute.values(paper)]
        if len(cell.wanted) == 1:
            name, value = cell.filters[0]
            facet, _ = self._facets[name]
            others = [self._attributes[term.id] for term in facet.terms if facet.levels and term.id != name]
            shared += [(other, value) for other in others if value in other.values(paper)]
        return [self._value_label(attribute.name, value) for attribute, value in shared]
