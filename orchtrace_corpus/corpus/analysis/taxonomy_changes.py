"""What changed in the vocabulary of a corpus, in sentences."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from orchtrace_corpus.base.findings import Location
from orchtrace_corpus.corpus.model.tag_rules import TagRule
from orchtrace_corpus.corpus.model.taxonomy import Facet, Taxonomy, Term

_SECTIONS = ("papers", "exclusions", "evidence")


def changes(before: Taxonomy, after: Taxonomy) -> Iterator[str]:
    """What is new, gone, renamed or otherwise now, one sentence each, without a final period; order has no meaning."""
    for part in ("title", "source"):
        if getattr(before, part) != getattr(after, part):
            yield f"the {part} is another"
    for section in _SECTIONS:
        old = {facet.field: facet for facet in getattr(before, section)}
        new = {facet.field: facet for facet in getattr(after, section)}
        yield from _new_and_gone(old, new, "field")
        for name in new:
            if name in old and new[name] != old[name]:
                yield from _facet_changes(old[name], new[name])
    old_pairs, new_pairs = ([" x ".join(pair) for pair in taxonomy.crosstabs] for taxonomy in (before, after))
    yield from _new_and_gone(old_pairs, new_pairs, "cross-tabulation")
    yield from _rule_changes(before.rules, after.rules)


def is_reordered(before: Taxonomy, after: Taxonomy) -> bool:
    """Whether fields, terms, cross-tabulations or rules that are in both stand in another order."""
    old, new = _names(before), _names(after)
    common = {*old} & {*new}
    return [name for name in old if name in common] != [name for name in new if name in common]


def without_places(value: Any) -> Any:
    """A value without where its parts stand in a file, which every line above them moves."""
    if isinstance(value, Location):
        return None
    if isinstance(value, tuple):
        return tuple(without_places(part) for part in value)
    if isinstance(value, Mapping):
        return {name: without_places(part) for name, part in value.items()}
    return value


def _names(taxonomy: Taxonomy) -> list[tuple[str, ...]]:
    facets = [(section, facet) for section in _SECTIONS for facet in getattr(taxonomy, section)]
    terms = [
        (section, facet.field, part, term.id)
        for section, facet in facets
        for part in ("terms", "levels")
        for term in getattr(facet, part)
    ]
    fields = [(section, facet.field) for section, facet in facets]
    return [*fields, *terms, *taxonomy.crosstabs, *((rule.id,) for rule in taxonomy.rules)]


def _facet_changes(old: Facet, new: Facet) -> Iterator[str]:
    for part in ("terms", "levels"):
        known = {term.id: term for term in getattr(old, part)}
        present = {term.id: term for term in getattr(new, part)}
        noun = part.removesuffix("s")
        renamed = _renamed(known, present)
        yield from (f"{noun} {name} of {new.field} is called {renamed[name]} now" for name in known if name in renamed)
        gone = [name for name in known if name not in renamed]
        come = [name for name in present if name not in renamed.values()]
        yield from _new_and_gone(gone, come, noun, f" of {new.field}")
        for name, term in present.items():
            if name in known and known[name] != term:
                fields = [field for field in term._fields if getattr(known[name], field) != getattr(term, field)]
                yield f"{noun} {name} of {new.field} has another {' and '.join(fields)}"
    for field in ("label", "kind", "role", "definition", "allows_na", "required"):
        if getattr(old, field) != getattr(new, field):
            yield f"field {new.field} has another {field.replace('_', ' ')}"


def _renamed(known: Mapping[str, Term], present: Mapping[str, Term]) -> dict[str, str]:
    """The new ids of terms that are the same but for the id."""
    gone = {term._replace(id=""): name for name, term in known.items() if name not in present}
    return {gone[same]: name for name, term in present.items() if (same := term._replace(id="")) in gone}


def _rule_changes(before: Iterable[TagRule], after: Iterable[TagRule]) -> Iterator[str]:
    old, new = ({rule.id: rule for rule in rules} for rules in (before, after))
    yield from _new_and_gone(old, new, "rule")
    for name, rule in new.items():
        if name in old and without_places(rule) != without_places(old[name]):
            yield f"rule {name} says something else"


def _new_and_gone(old: Iterable[str], new: Iterable[str], noun: str, behind: str = "") -> Iterator[str]:
    known, present = list(old), list(new)
    yield from (f"{noun} {name}{behind} is new" for name in present if name not in known)
    yield from (f"{noun} {name}{behind} is gone" for name in known if name not in present)
