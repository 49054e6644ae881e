"""Completion of options and arguments of commands on a corpus: fields, filters, keys, codes, formats.

Commands only name these functions, and completion calls them: so each imports what it needs.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.commands.declarations import Offers, Place, Provider

_FILTER = r"(?s)(?P<field>[A-Za-z][\w-]*)(?P<operator>!=|<=|>=|[=<>~])(?P<value>.*)"


def fixed(values: Sequence[tuple[str, str]]) -> Provider:
    """Return a provider of fixed values, each with its meaning."""
    return lambda _word, _place: iter(values)


def fields(word: str, place: Place) -> Offers:
    """Offer fields by name, and terms with levels by code, also after a comma."""
    head = word[: word.rfind(",") + 1]
    for name, attribute in _named(_attributes(place)):
        yield f"{head}{name}", attribute.label


def vocabularies(_word: str, place: Place) -> Offers:
    """Offer the fields that have a vocabulary."""
    for name, attribute in _named(_attributes(place)):
        if attribute.terms:
            yield name, attribute.label


def filters(word: str, place: Place) -> Offers:
    """Offer fields; once only one matches, its values."""
    from orchtrace_corpus.corpus.analysis.attributes import find

    attributes = _attributes(place, is_filter=True)
    match = re.match(_FILTER, word)
    if match is None:
        names = [name for name in attributes if name.startswith(word)]
        if len(names) != 1:
            yield from ((name, attributes[name].label) for name in names)
            return
        match = re.match(_FILTER, f"{names[0]}=")
        assert match is not None
        if not attributes[names[0]].terms:
            yield from ((f"{names[0]}{operator}", "") for operator in ("=", "!=", "~"))
    head = match["field"] + match["operator"] + match["value"][: match["value"].rfind(",") + 1]
    for term in find(match["field"], attributes).terms:
        yield f"{head}{term.id}", term.label
        if term.code and match["value"]:
            yield f"{head}{term.code}", term.label


def keys(_word: str, place: Place) -> Offers:
    """Offer the names of all records."""
    return _names(place, "papers", "exclusions", "candidates")


def claim_ids(_word: str, place: Place) -> Offers:
    """Offer the ids of claims."""
    return _names(place, "claims")


def codes(_word: str, _place: Place) -> Offers:
    """Offer the codes of rules on a corpus."""
    import orchtrace_corpus.base.yamlfile  # noqa: F401  # registers its rules
    from orchtrace_corpus.base.findings import RULES

    for code, rule in RULES.items():
        yield code, rule.title


def formats(_word: str, _place: Place) -> Offers:
    """Offer the formats of exports and imports."""
    from orchtrace_corpus.corpus.formats.registry import FORMATS

    for name, form in FORMATS.items():
        yield name, form.label


def _names(place: Place, *files: str) -> Offers:
    """Offer the keys and ids in data files, which are searched as text: that is faster than YAML."""
    from orchtrace_corpus.corpus.model import store

    for name in files:
        path = os.path.join(place.root or store.find_root().path, store.data_file(name).path)
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                for entry in re.findall(r"^- (?:key|id): [\"']?([\w-]+)", file.read(), re.MULTILINE):
                    yield entry, ""


def _attributes(place: Place, *, is_filter: bool = False) -> Mapping[str, Any]:
    """Return the fields of papers and exclusions; for a filter, those of the records that the command lists."""
    from orchtrace_corpus.corpus.analysis.attributes import exclusion_attributes, paper_attributes
    from orchtrace_corpus.corpus.model import store

    taxonomy = store.CorpusFiles(place.root or store.find_root().path).taxonomy
    of_papers, of_exclusions = paper_attributes(taxonomy, marked=True), exclusion_attributes(taxonomy)
    if is_filter:
        return of_exclusions if "--exclusions" in place.words else of_papers
    return {**of_exclusions, **of_papers}


def _named(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield fields by name, then terms with levels by code."""
    yield from attributes.items()
    facets = (attribute.facet for attribute in attributes.values() if attribute.facet and attribute.facet.levels)
    yield from ((term.code, attributes[term.id]) for facet in facets for term in facet.terms if term.code)
