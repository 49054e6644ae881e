"""JSON Schema (draft 2020-12) of the data files, made from the taxonomy, so that editors complete tags.

A YAML language server reads numbers and dates by YAML's implicit types, so `year` is an integer here
while the reader of this package sees text. The schema says what a single record may look like; what
holds between records is for `corpus validate`.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from orchtrace_corpus.base.yamlfile.writer import scalar_text
from orchtrace_corpus.corpus.formats.issue_form import Question, questions
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, Term

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
                "location": _described(_TEXT, "Where in the source: a page, section or line."),
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
        "near_miss": _described(_TEXT, "What made it come close to being retained; one sentence."),
        "promoted_to": _described(_KEY, "The key of the paper that it became."),
        "waive": _WAIVERS,
    }
    fixed = ("id", "title", "identifier", "url", "screened", "reason")
    return _document(f"{taxonomy.title}: exclusions", _record(properties, (*fixed, *_required(taxonomy.exclusions))))


def scale_schema(taxonomy: Taxonomy) -> str:
    """The schema of `scale.yaml`, which no facet has a part in."""
    from orchtrace_corpus.corpus.model.scale import OBSERVATION, UNKNOWN, Group, Support

    properties = {
        "system": _described(_TEXT, "The system or method."),
        "group": _described({"enum": list(Group)}, "In use, or trained and evaluated in a publication."),
        "record": _described(_KEY, "The key of the paper in the pool, if it is there."),
        "quantity": _described(_TEXT, "What is counted; observations of one quantity are compared."),
        "value": {
            "description": f"A number, or a range such as 3-5, either after <=, <, >= or ~; or {UNKNOWN}.",
            "anyOf": [
                {"const": UNKNOWN},
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": r"^(<=|>=|<|~)?[0-9]+(\.[0-9]+)?(-[0-9]+(\.[0-9]+)?)?$"},
            ],
        },
        "unit": _described(_TEXT, "What the number counts."),
        "evidence": _described({"enum": list(Support)}, "What kind of source the number was read in."),
        "sources": {"type": "array", "items": _TEXT, "minItems": 1, "uniqueItems": True},
        "verified": _described({"type": "boolean"}, "Whether the number was read in the publication itself."),
        "note": _described(_TEXT, "What else a reader must know."),
    }
    return _document(f"{taxonomy.title}: scale", _record(properties, OBSERVATION.required))


def claims_schema(taxonomy: Taxonomy) -> str:
    """The schema of `claims.yaml`; whether its filters make sense is for `corpus check`."""
    from orchtrace_corpus.corpus.model.claim_file import Over, PoolName, Strength

    value = {"type": ["string", "number", "boolean"]}
    filters = {
        "type": "object",
        "description": "Filters: a field, or a field and an operator such as 'added<=', to a value or several.",
        "additionalProperties": {"anyOf": [value, {"type": "array", "items": value, "minItems": 1}]},
    }
    number = {"type": "integer", "minimum": 0}
    percentage = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]{1,2})?%$"}
    texts = {"type": "array", "items": _TEXT, "minItems": 1, "uniqueItems": True}
    share = {"at_least": percentage, "at_most": percentage, "of": filters}
    forms: tuple[dict[str, Any], ...] = (
        {"count": number},
        {"at_least": number},
        {"at_most": number},
        {"at_least": number, "at_most": number},
        {"share": {**_record(share, ()), "minProperties": 1}},
        {"keys": texts},
        {"by": _TEXT, "counts": {"type": "object", "additionalProperties": number, "minProperties": 1}},
        {"by": _TEXT, "values": {"type": "object", "additionalProperties": _TEXT, "minProperties": 1}},
    )
    expectation = {
        "description": "What the records that pass the filters must be.",
        "oneOf": [{"const": "empty"}, *(_record(form, tuple(form)) for form in forms)],
    }
    kind = {"enum": list(Over)}
    reading = {"name": _TEXT, "keys": texts, "why": _TEXT}
    counter = {"rows": texts, "note": _TEXT, "strength": {"enum": list(Strength)}, "source": _TEXT}
    properties = {
        "id": _described(_KEY, "Lower-case letters, digits and single hyphens; unique among claims."),
        "claim": _described(_TEXT, "The sentence."),
        "over": {"anyOf": [kind, {"type": "array", "items": kind, "minItems": 1, "uniqueItems": True}]},
        "scope": filters,
        "only": _described(
            {"enum": [PoolName.PUBLISHED]}, "Given where the sentence makes no sense over the pool of today."
        ),
        "where": filters,
        "expect": expectation,
        "readings": {"type": "array", "items": _record(reading, tuple(reading))},
        "boundary": _described(_TEXT, "What the sentence does not say."),
        "counter": {"type": "array", "items": _record(counter, ("note", "strength", "source"))},
        "source": _described(_TEXT, "Where the claim was made, or what it rests on."),
    }
    required = ("id", "claim", "expect", "boundary", "source")
    return _document(f"{taxonomy.title}: claims", _record(properties, required))


def disputes_schema(taxonomy: Taxonomy) -> str:
    """The schema of `disputes.yaml`."""
    from orchtrace_corpus.corpus.model.disputes import State, disputable, values_for

    tags = disputable(taxonomy)
    values = dict.fromkeys(value for facet in tags.values() for value in values_for(facet))
    readings = {"type": "object", "additionalProperties": _TEXT, "minProperties": 2}
    properties = {
        "record": _described(_KEY, "The key of the paper."),
        "tag": _described({"enum": list(tags)}, "The field, or the term that has a level, such as stop."),
        "stands": _described({"enum": list(values)}, "The value that the paper has."),
        "readings": _described(readings, "Who reads what; several values with commas between them say: one of these."),
        "state": _described({"enum": list(State)}, "open unless said."),
        "why": _described(_TEXT, "Why the value stands."),
        "source": _described(_TEXT, "Where the disagreement is recorded."),
    }
    required = ("record", "tag", "stands", "readings", "why", "source")
    return _document(f"{taxonomy.title}: disputes", _record(properties, required))


def published_schema(taxonomy: Taxonomy) -> str:
    """The schema of `published.yaml`, which is one mapping; whether its records exist is for `corpus validate`."""
    from orchtrace_corpus.corpus.model.published import PUBLISHED_POOL

    ids = {"type": "string", "pattern": "^E[0-9]{3,}$"}
    papers, exclusions = ({"type": "array", "items": item, "minItems": 1, "uniqueItems": True} for item in (_KEY, ids))
    properties = {
        "day": _described(_DATE, "The day of publication, in quotes."),
        "source": _described(_TEXT, "Where it was published."),
        "papers": _described(papers, "The keys of the papers, in the published order."),
        "exclusions": _described(exclusions, "The ids of the exclusions."),
    }
    schema = {"$schema": DIALECT, "title": f"{taxonomy.title}: published pool"}
    return json.dumps({**schema, **_record(properties, PUBLISHED_POOL.required)}, ensure_ascii=False, indent=2) + "\n"


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


_HEAD = """\
# Generated from data/taxonomy.yaml by `corpus build`; do not edit.
name: Suggest a paper
description: Name a paper that belongs in the corpus, and tag it as far as you can.
title: "Paper: "
body:
  - type: markdown
    attributes:
      value: An id is enough. Tags that you are not sure of are best left open; a maintainer will read the paper.
"""


def form(taxonomy: Taxonomy) -> str:
    """The form, as GitHub reads it."""
    return _HEAD + "".join(f"{line}\n" for question in questions(taxonomy) for line in _lines(question))


def _lines(question: Question) -> Iterator[str]:
    options = question.options
    yield f"  - type: {'dropdown' if options else 'textarea' if question.is_long else 'input'}"
    section = "evidence" if question.is_evidence else "paper"
    yield f"    id: {section}-{re.sub('[^A-Za-z0-9]+', '-', question.name)}"
    yield "    attributes:"
    yield f"      label: {scalar_text(question.label)}"
    yield f"      description: {scalar_text(_description(question))}"
    if question.facet is not None and question.facet.kind is Kind.MANY:
        yield "      multiple: true"
    if options:
        yield "      options:"
        yield from (f"        - {scalar_text(option)}" for option in options)
    if question.name == "identifier":
        yield "    validations:"
        yield "      required: true"


def _description(question: Question) -> str:
    """What to answer, and what each answer means."""
    if question.facet is None or question.term is not None:
        levels = question.facet.levels if question.facet is not None else ()
    else:
        levels = question.facet.terms
    return " ".join((question.about, *(f"{level.label}: {level.definition}" for level in levels)))
