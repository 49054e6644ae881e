"""Tags as people type them, such as `shared`, `spade,rake` or `stop=explicit,spawn=designed`."""

from collections.abc import Mapping, Sequence

from orchtrace_corpus.base.dates import is_iso_date
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.disputes import NOT_ARISING
from orchtrace_corpus.corpus.model.field_table import FieldKind, FieldValue, RecordField, number_of
from orchtrace_corpus.corpus.model.fields import is_key
from orchtrace_corpus.corpus.model.records import Tag
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, Term


def read_tag(facet: Facet, text: str) -> Tag:
    """Return the tag that a text means. Terms are named by id, label or code, in upper or lower case.

    Raise `CommandUseError` if the taxonomy has no such term or level, or several; the message names the nearest.
    """
    if facet.kind is Kind.SINGLE:
        return read_term(facet, text)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if facet.kind is Kind.LEVELS:
        if ",".join(parts).lower() in ("", "{}", NOT_ARISING):  # no term arises
            return {}
        levels: dict[str, str] = {}
        for part in parts:
            term, equals, level = part.partition("=")
            if not equals:
                form = f"TERM=LEVEL, such as {facet.terms[0].id}={facet.levels[0].id}"
                raise CommandUseError(f"{quote(part)} is not part of {facet.field}", f"Write {form}, or {NOT_ARISING}.")
            term_id = _find_term(facet.terms, term, facet.field, facet.values, f"term of {facet.field}")
            if term_id in levels:
                raise CommandUseError(f"{term_id} of {facet.field} is given twice")
            levels[term_id] = read_level(facet, level)
        return sort_levels(facet, levels)
    terms = tuple(dict.fromkeys(read_term(facet, part) for part in parts))
    if not terms:
        raise CommandUseError(f"{facet.field} is given no term{suggestion('', facet.values)}")
    if NOT_APPLICABLE in terms and len(terms) > 1:
        raise CommandUseError(f"{NOT_APPLICABLE} in {facet.field} must stand alone")
    return terms


def errors_by_part(facet: Facet, text: str, error: CommandUseError) -> list[CommandUseError]:
    """Return an error for each wrong part of a text that `read_tag` refused; `error` if each part alone is valid."""
    if facet.kind is Kind.SINGLE:
        return [error]
    errors = []
    for part in text.split(","):
        if part.strip():
            try:
                read_tag(facet, part)
            except CommandUseError as part_error:
                errors.append(part_error)
    return errors or [error]


def read_term(facet: Facet, text: str) -> str:
    """Return the one term of a facet that a text means, or `NA` if it is allowed; raise the errors of `read_tag`."""
    if facet.allows_na and text.strip().upper() == NOT_APPLICABLE:
        return NOT_APPLICABLE
    return _find_term(facet.terms, text, facet.field, facet.values)


def read_level(facet: Facet, text: str) -> str:
    """Return the level of a facet that a text means, or `NOT_ARISING`; raise the errors of `read_tag`."""
    if text.strip().casefold() == NOT_ARISING:
        return NOT_ARISING
    allowed = (*(level.id for level in facet.levels), NOT_ARISING)
    return _find_term(facet.levels, text, f"level of {facet.field}", allowed)


def settable_fields(taxonomy: Taxonomy) -> dict[str, RecordField]:
    """Return the fields of a paper that `corpus tag` and `corpus add --set` can set, by name."""
    return {field.name: field for field in taxonomy.paper_fields if field.is_settable}


def read_value(field: RecordField, text: str) -> FieldValue:
    """Return the value of a field that a text means; raise `CommandUseError` if it is no value of the field.

    Commas separate texts, semicolons separate authors.
    """
    text = text.strip()
    if field.kind is FieldKind.AUTHORS:
        from orchtrace_corpus.corpus.model.author_names import parse_authors  # no command that only reads needs it

        return parse_authors(text)
    if field.is_list:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if field.kind is FieldKind.YEAR:
        if len(text) != 4 or not (text.isascii() and text.isdigit()):
            raise CommandUseError(f"{field.name} {quote(text)} is not a year", "Write four digits.")
        return int(text)
    if field.kind is FieldKind.NUMBER:
        try:
            return number_of(text)
        except ValueError as error:
            raise CommandUseError(f"{field.name} {quote(text)} {error}") from None
    if field.kind is FieldKind.FLAG:
        flags = {"true": True, "yes": True, "false": False, "no": False}
        if text.casefold() not in flags:
            raise CommandUseError(f"{field.name} is either true or false, not {quote(text)}")
        return flags[text.casefold()]
    if field.kind is FieldKind.CHOICE and text not in field.choices:
        raise CommandUseError(f"unknown {field.name} {quote(text)}{suggestion(text, field.choices)}")
    if field.kind is FieldKind.DATE and not is_iso_date(text):
        raise CommandUseError(f"{field.name} {quote(text)} is not a date", "Write YYYY-MM-DD.")
    if field.kind is FieldKind.KEY and not is_key(text):
        raise CommandUseError(f"{field.name} {quote(text)} is not a key: use lower-case letters, digits and hyphens")
    return text


def sentence(text: str) -> str:
    """Return a text with a final period; an empty text stays empty."""
    return f"{text}." if text and not text.endswith((".", "!", "?")) else text


def join_tags(facet: Facet, first: Tag | None, second: Tag) -> Tag:
    """Return a tag with the terms of two tags of one facet; raise `CommandUseError` if they contradict each other."""
    if first is None or first == second:
        return second
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for term, level in second.items():
            if term in first and first[term] != level:
                raise CommandUseError(f"{term} of {facet.field} is given twice: {first[term]} and {level}")
        return sort_levels(facet, {**first, **second})
    if isinstance(first, tuple) and isinstance(second, tuple) and (NOT_APPLICABLE,) not in (first, second):
        return tuple(dict.fromkeys((*first, *second)))
    texts = [tag if isinstance(tag, str) else ",".join(tag) for tag in (first, second)]
    raise CommandUseError(f"{facet.field} is given twice: {' and '.join(texts)}", "Give it once.")


def assign_tag(tags: dict[str, Tag], facets: Sequence[Facet], name: str, text: str) -> bool:
    """Add `NAME=TEXT` to `tags`, which are by facet; return False if nothing has the name.

    `name` is a facet, or the id or code of a term with levels. Raise `CommandUseError` if the taxonomy has no such term
    or level, or if it contradicts the tags.
    """
    for facet in facets:
        tag: Tag | None = None
        if facet.kind is Kind.LEVELS:
            for term in facet.terms:
                if term.id == name or (term.code and term.code.casefold() == name.casefold()):
                    tag = {term.id: read_level(facet, text)}
                    break
        if tag is None and facet.field == name:
            tag = read_tag(facet, text)
        if tag is not None:
            tags[facet.field] = join_tags(facet, tags.get(facet.field), tag)
            return True
    return False


def drop_not_arising(tag: Tag) -> Tag:
    """Return a tag without the terms whose level is `NOT_ARISING`, as records have it."""
    if not isinstance(tag, Mapping):
        return tag
    return {term: level for term, level in tag.items() if level != NOT_ARISING}


def sort_levels(facet: Facet, levels: Mapping[str, str]) -> dict[str, str]:
    """Return levels by term in the order of the taxonomy."""
    return {term.id: levels[term.id] for term in facet.terms if term.id in levels}


def _find_term(terms: Sequence[Term], text: str, noun: str, allowed: Sequence[str], unknown_noun: str = "") -> str:
    """Return the id of the term with an id, label or code; errors call an unknown one `unknown_noun`, else `noun`."""
    name = text.strip()
    for attribute in ("id", "label", "code"):
        ids = [term.id for term in terms if name and getattr(term, attribute).casefold() == name.casefold()]
        if len(ids) == 1:
            return ids[0]
        if ids:
            message = f"{quote(name)} is the {attribute} of {len(ids)} terms of {noun}: {', '.join(ids)}"
            raise CommandUseError(message, "Name one of them.")
    raise CommandUseError(f"unknown {unknown_noun or noun} {quote(name)}{suggestion(name, allowed)}")
