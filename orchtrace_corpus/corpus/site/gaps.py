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
    """The gaps of a corpus by the addresses of their pages: empty cells of crossed fields, values without papers."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._attributes = paper_attributes(source.taxonomy)
        self._facets: dict[str, tuple[Facet, Term | None]] = {}
        for facet in source.taxonomy.papers:
            self._facets[facet.field] = facet, None
            if facet.kind is Kind.LEVELS:
                self._facets |= {term.id: (facet, term) for term in facet.terms}
        self._codings = {coding.tag: coding for coding in source.codings}
        self.cells: dict[str, EmptyCell] = {}
        self._addresses: dict[frozenset[tuple[str, str]], str] = {}
        for cell in self._empty():
            filters = frozenset(cell.filters)
            if filters in self._addresses:
                continue
            words = (word for pair in cell.filters for word in pair)
            name = ".".join(re.sub(r"[^A-Za-z0-9_-]+", "-", word) for word in words)
            while f"{FOLDER}/{name}.html" in self.cells:
                name += "-"
            self._addresses[filters] = f"{FOLDER}/{name}.html"
            self.cells[f"{FOLDER}/{name}.html"] = cell

    def _empty(self) -> Iterator[EmptyCell]:
        source, attributes, taxonomy = self._source, self._attributes, self._source.taxonomy
        known: dict[str, Any] = {"disputes": source.disputes, "candidates": source.proposed}
        for facet in taxonomy.papers:
            if facet.kind is Kind.LEVELS:
                by_term = [attributes[term.id] for term in facet.terms]
                for attribute in by_term:
                    beside = [other for other in by_term if other is not attribute]
                    yield from empty_values(source.pool.papers, attribute, beside, **known)
            else:
                yield from empty_values(source.pool.papers, attributes[facet.field], **known)
        for pair in taxonomy.crosstabs:
            rows, columns = (attributes[name] for name in pair)
            impossible = cannot_arise(taxonomy, rows, columns)
            yield from empty_cells(source.pool.papers, rows, columns, impossible, **known)

    def address(self, *filters: tuple[str, str]) -> str:
        """Return the page of a gap by its filters in any order; empty if it has none."""
        return self._addresses.get(frozenset(filters), "")

    def data(self) -> dict[str, Any]:
        """Return for the script the addresses of gaps by their filters, and the definitions of all values."""
        named = ((sorted("=".join(pair) for pair in filters), path) for filters, path in self._addresses.items())
        meanings = {
            name: {value.id: value.definition for value in (facet.levels if term else facet.terms)}
            for name, (facet, term) in self._facets.items()
        }
        return {"addresses": {"&".join(filters): path for filters, path in named}, "meanings": meanings}

    def label(self, cell: EmptyCell) -> str:
        """Return the name of a gap for readers: its values."""
        return " \u00d7 ".join(self._part_label(*pair) for pair in cell.filters)

    def _part_label(self, name: str, value: str) -> str:
        _, term = self._facets[name]
        label = self._source.value_label(name, value)
        return f"{term_label(term)}: {label}" if term else label

    def sentence(self, cell: EmptyCell) -> str:
        """Return the sentence that describes a gap."""
        noun = self._source.taxonomy.noun
        none = f"None of the {noun.counted(len(self._source.pool.papers))} here"
        if len(cell.wanted) == 1:
            return f"{none} has {self.label(cell)}."
        parts = [f"{self._part_label(*pair)} ({self._facets[pair[0]][0].label.lower()})" for pair in cell.filters]
        return f"{none} has both {' and '.join(parts)}."

    def values(self, cell: EmptyCell, repository: str) -> dict[str, Any]:
        """Return the values of the template of a gap's page."""
        source = self._source
        candidates = {candidate.name: candidate.paper.title for candidate in source.candidates}
        tags = "\n".join(f"{name}: {value}" for name, value in cell.filters)
        return {
            "cell": cell,
            "label": self.label(cell),
            "sentence": self.sentence(cell),
            "definitions": [self._definition(*pair) for pair in cell.filters],
            "demands": demands(cell, source.taxonomy),
            "nearest": [(source.keys[key], self._shared(key, cell)) for key in cell.nearest],
            "rest": [
                (self._part_label(*pair), papers_address(pair)) for pair in cell.filters if not self.address(pair)
            ],
            "candidates": [
                (key.rstrip("?"), candidates[key.rstrip("?")], key.endswith("?")) for key in cell.candidates
            ],
            "disputes": [(dispute, source.keys[dispute.record].title) for dispute in cell.disputes],
            "misses": () if cell.why else near_misses(source.pool),
            "claims": claims_about(cell, source.verdicts),
            "issue": new_issue(repository, f"Fills a gap: {self.label(cell)}", f"{tags}\n\n{_ISSUE_BODY}"),
        }

    def _definition(self, name: str, value: str) -> tuple[str, str, str, Any]:
        """Return the label of a value, its address in the taxonomy, its definition, and its rules of coding."""
        facet, term = self._facets[name]
        own = next(known for known in (facet.levels if term else facet.terms) if known.id == value)
        definition = f"{term.definition} {own.definition}" if term else own.definition
        coding = self._codings.get(name) or self._codings.get(facet.field)
        return self._part_label(name, value), f"taxonomy.html#{facet.field}", definition, coding

    def _shared(self, key: str, cell: EmptyCell) -> Sequence[str]:
        """Return the values of a paper near a gap, and the other terms that it has at the level."""
        paper = self._source.keys[key]
        shared = [(wanted.attribute, value) for wanted in cell.wanted for value in wanted.attribute.values(paper)]
        if len(cell.wanted) == 1:
            (name, value), facet = cell.filters[0], self._facets[cell.filters[0][0]][0]
            others = [self._attributes[term.id] for term in facet.terms if facet.levels and term.id != name]
            shared += [(other, value) for other in others if value in other.values(paper)]
        return [self._part_label(attribute.name, value) for attribute, value in shared]
