"""Complete the options and arguments of commands on a corpus: fields, filters, keys, codes, formats.

Every command imports this module, but only completion calls its functions. So each imports what it needs.
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
    """Offer the names of fields, and the codes of terms with levels; in a list with commas, for its last item."""
    previous_items = word[: word.rfind(",") + 1]
    for name, attribute in _names_and_codes(_attributes(place)):
        yield f"{previous_items}{name}", attribute.label


def vocabularies(_word: str, place: Place) -> Offers:
    """Offer the fields that have a vocabulary."""
    for name, attribute in _names_and_codes(_attributes(place)):
        if attribute.terms:
            yield name, attribute.label


def filters(word: str, place: Place) -> Offers:
    """Offer fields, or if the word begins a single field, filters with its terms."""
    from orchtrace_corpus.corpus.analysis.attributes import find

    attributes = _attributes(place, is_filter=True)
    if match := re.match(_FILTER, word):
        field, operator, value = match["field"], match["operator"], match["value"]
    else:
        names = [name for name in attributes if name.startswith(word)]
        if len(names) != 1:
            yield from ((name, attributes[name].label) for name in names)
            return
        field, operator, value = names[0], "=", ""
        if not attributes[field].terms:
            yield from ((f"{field}{operator}", "") for operator in ("=", "!=", "~"))
    start = f"{field}{operator}{value[: value.rfind(',') + 1]}"
    for term in find(field, attributes).terms:
        yield f"{start}{term.id}", term.label
        if term.code and value:
            yield f"{start}{term.code}", term.label


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
    """Offer the keys and ids in data files. A search in the text is faster than reading the YAML."""
    from orchtrace_corpus.corpus.model import store

    for name in files:
        path = os.path.join(place.root or store.find_root().path, store.data_file(name).path)
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                for record_name in re.findall(r"^- (?:key|id): [\"']?([\w-]+)", file.read(), re.MULTILINE):
                    yield record_name, ""


def _attributes(place: Place, *, is_filter: bool = False) -> Mapping[str, Any]:
    """Return the fields of papers and exclusions by name; for a filter, of either, depending on --exclusions."""
    from orchtrace_corpus.corpus.analysis.attributes import exclusion_attributes, paper_attributes
    from orchtrace_corpus.corpus.model import store

    taxonomy = store.CorpusFiles(place.root or store.find_root().path).taxonomy
    if not is_filter:
        return {**exclusion_attributes(taxonomy), **paper_attributes(taxonomy, contested=True)}
    if "--exclusions" in place.words:
        return exclusion_attributes(taxonomy)
    return paper_attributes(taxonomy, contested=True)


def _names_and_codes(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes with their names, then those of terms with levels with their codes."""
    yield from attributes.items()
    facets = (attribute.facet for attribute in attributes.values() if attribute.facet and attribute.facet.levels)
    yield from ((term.code, attributes[term.id]) for facet in facets for term in facet.terms if term.code)
