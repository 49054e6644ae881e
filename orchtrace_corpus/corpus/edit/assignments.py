"""Tags as the filter language's `field=value`, read as "let it be so".

field=term         one term; `tagging` says how it may be called
field=a,b          several terms, for a field of kind `many`
field=NA           coded as not applicable
field=             no tag any more, where it is optional
term=level         one level of a field of kind `levels`, such as stop=explicit; its other levels stay
term=              no level: this term does not arise
field=none         for a field of kind `levels`: no term arises
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.corpus.analysis.attributes import Attribute, Attributes, find
from orchtrace_corpus.corpus.model.record_fields import Value, tag_value
from orchtrace_corpus.corpus.model.tagging import NO_TERM, in_order, read_level, read_tag
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Term

_ASSIGNMENT = r"\s*(?P<name>[A-Za-z][\w-]*)\s*=(?P<value>[^=].*|)"


def assignments(
    words: Iterable[str], facets: tuple[Facet, ...], attributes: Attributes, present: Mapping[str, object]
) -> dict[str, Value | None]:
    """The new values of tags by field, None for one that is taken away.

    Args:
        words: One assignment each.
        facets: The facets that the record can be tagged with.
        attributes: What records of its kind can be filtered by.
        present: The record as it is, by field: levels that no word names are taken from it.

    Raises:
        CommandUseError: A word is no assignment, names no tag, or gives a value that the tag cannot
            have; the message says what it can.
    """
    tags: dict[str, Value | None] = {}
    seen: set[str] = set()
    for word in words:
        match = re.fullmatch(_ASSIGNMENT, word, re.DOTALL)
        if match is None:
            raise CommandUseError(f"{quote(word)} sets no tag", "Write field=value; corpus terms shows the fields.")
        attribute, facet = _named(match["name"], facets, attributes)
        if attribute.name in seen:
            raise CommandUseError(f"{attribute.name} is set twice", "Set it once; write several terms as a,b.")
        seen.add(attribute.name)
        value = match["value"].strip()
        if attribute.facet is None:
            held = tags.get(facet.field, present.get(facet.field))
            levels = {str(term): str(level) for term, level in held.items()} if isinstance(held, Mapping) else {}
            levels.pop(attribute.name, None)
            if value:
                with _explained(facet.levels):
                    levels[attribute.name] = read_level(facet, value)
            tags[facet.field] = in_order(facet, levels)
        else:
            tags[facet.field] = _value(facet, value)
    return tags


def _named(name: str, facets: tuple[Facet, ...], attributes: Attributes) -> tuple[Attribute, Facet]:
    """The facet of a name, or of the term with levels that it names."""
    by_name = {facet.field: facet for facet in facets}
    by_name |= {term.id: facet for facet in facets if facet.kind is Kind.LEVELS for term in facet.terms}
    if name in attributes and name not in by_name:
        raise CommandUseError(
            f"{name} is no tag but another field", "Change it in the file itself; corpus validate checks it."
        )
    tags = {name: attribute for name, attribute in attributes.items() if name in by_name}
    try:
        attribute = find(name, tags, "axis or facet")
    except CommandUseError as error:
        definitions = "\n".join(f"  {facet.field}: {facet.definition}" for facet in facets)
        raise CommandUseError(str(error), definitions) from error
    return attribute, by_name[attribute.name]


def _value(facet: Facet, text: str) -> Value | None:
    """The value of a whole tag; None takes it away."""
    if text:
        with _explained(facet.terms):
            return tag_value(read_tag(facet, text))
    if facet.required:
        hint = f"Set another term; corpus terms {facet.field} shows them."
        if facet.kind is Kind.LEVELS:
            hint = f"Write {facet.field}={NO_TERM} where no term arises."
        raise CommandUseError(f"{facet.field} is required and cannot be taken away", hint)
    return None


@contextmanager
def _explained(allowed: tuple[Term, ...]) -> Iterator[None]:
    """Add to the refusal of a term what the terms mean."""
    try:
        yield
    except CommandUseError as error:
        raise CommandUseError(str(error), "\n".join(f"  {term.id}: {term.definition}" for term in allowed)) from error
