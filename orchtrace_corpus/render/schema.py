"""JSON Schema (draft 2020-12) of the data files, made from the taxonomy, so that editors complete tags.

A YAML language server reads numbers and dates by YAML's implicit types, so `year` is an integer here
while the reader of this package sees text. The schema says what a single record may look like; what
holds between records is for `corpus validate`.
"""

import json
from typing import Any

from orchtrace_corpus.pool.fields import NOT_APPLICABLE
from orchtrace_corpus.pool.taxonomy import Facet, Kind, Taxonomy, Term

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TEXT = {"type": "string", "minLength": 1, "pattern": "\\S"}
_DATE = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
_KEY = {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"}


def papers_schema(taxonomy: Taxonomy) -> str:
    """The schema of `papers.yaml`."""
    evidence = {
        "type": "array",
        "items": _record(
            {
                "tags": {
                    "type": "array",
                    "items": {"enum": [facet.field for facet in taxonomy.papers]},
                    "minItems": 1,
                    "uniqueItems": True,
                },
                "note": _described(_TEXT, "What in the source supports the tags."),
                "source": _described(_TEXT, "The address of the source."),
                "level": _TEXT,
                "confidence": _TEXT,
                **{facet.field: _facet(facet) for facet in taxonomy.evidence},
            },
            ("tags", "note", "source", "level", "confidence"),
        ),
    }
    properties = {
        "key": _described(_KEY, "Lower-case letters, digits and single hyphens; unique; never changed."),
        "title": _described(_TEXT, "The title, one line."),
        "authors": _described(
            {"type": "array", "items": _TEXT, "minItems": 1},
            "Family, Given; a collective without comma; others at the end of a list cut short.",
        ),
        "affiliation": _TEXT,
        "year": _described({"type": "integer", "minimum": 0, "maximum": 9999}, "The year as published."),
        "venue": _TEXT,
        "arxiv_id": _described(_TEXT, "Without version and prefix, in quotes."),
        "doi": _described(_TEXT, "In lower case, without https://doi.org/."),
        "openreview_id": _TEXT,
        "acl_id": _TEXT,
        "urls": {"type": "array", "items": _TEXT, "minItems": 1, "uniqueItems": True},
        **{facet.field: _facet(facet) for facet in taxonomy.papers},
        "summary": _described(_TEXT, "One sentence that ends with a period."),
        "evidence": evidence,
        "added": _described(_DATE, "The day the record came in, in quotes."),
        "notes": _TEXT,
        "waive": _WAIVERS,
    }
    fixed = ("key", "title", "authors", "year", "venue", "urls", "summary", "added")
    return _document(f"{taxonomy.title}: papers", _record(properties, (*fixed, *_required(taxonomy.papers))))


def exclusions_schema(taxonomy: Taxonomy) -> str:
    """The schema of `exclusions.yaml`."""
    properties = {
        "id": _described({"type": "string", "pattern": "^E[0-9]{3,}$"}, "E and three digits or more; never reused."),
        "title": _TEXT,
        "identifier": _TEXT,
        "url": _TEXT,
        **{facet.field: _facet(facet) for facet in taxonomy.exclusions},
        "screened": _described(_DATE, "The day of screening, in quotes."),
        "reason": _described(_TEXT, "Why it was left out; one sentence."),
        "promoted_to": _described(_KEY, "The key of the paper that it became."),
        "waive": _WAIVERS,
    }
    fixed = ("id", "title", "identifier", "url", "screened", "reason")
    return _document(f"{taxonomy.title}: exclusions", _record(properties, (*fixed, *_required(taxonomy.exclusions))))


def _facet(facet: Facet) -> dict[str, Any]:
    choices = _choices(facet.terms, allows_na=facet.allows_na)
    described = f"{facet.label}. {facet.definition}"
    if facet.kind is Kind.SINGLE:
        return {"description": described, "oneOf": choices}
    if facet.kind is Kind.MANY:
        terms = {"type": "array", "items": {"oneOf": _choices(facet.terms)}, "minItems": 1, "uniqueItems": True}
        na = [{"const": NOT_APPLICABLE}, {"const": [NOT_APPLICABLE]}] if facet.allows_na else []
        return {"description": described, "anyOf": [terms, *na]}
    levels = {"oneOf": _choices(facet.levels)}
    properties = {term.id: {"description": f"{term.label}. {term.definition}", **levels} for term in facet.terms}
    return {"description": described, "type": "object", "properties": properties, "additionalProperties": False}


def _choices(terms: tuple[Term, ...], *, allows_na: bool = False) -> list[dict[str, str]]:
    choices = [{"const": term.id, "title": term.label, "description": term.definition} for term in terms]
    na = [{"const": NOT_APPLICABLE, "title": "Not applicable", "description": "The facet does not apply."}]
    return choices + (na if allows_na else [])


def _record(properties: dict[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_WAIVERS = {
    "type": "array",
    "description": "Warnings that are right for other records but not for this one, each with the reason.",
    "items": _record({"code": _TEXT, "why": _TEXT}, ("code", "why")),
}


def _described(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, **schema}


def _required(facets: tuple[Facet, ...]) -> tuple[str, ...]:
    return tuple(facet.field for facet in facets if facet.required)


def _document(title: str, item: dict[str, Any]) -> str:
    schema = {"$schema": DIALECT, "title": title, "type": "array", "items": item}
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"
