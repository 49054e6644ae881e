"""JSON Schema (draft 2020-12) of the data files, and the issue form, made from the taxonomy.

Editors read YAML with implicit types, so `year` is an integer here, although this package reads it as text. A schema
describes single records; `corpus check data` applies the rules that concern several.
"""

import json
import re
from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.files import read_text_beside
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.base.yamlfile.writer import scalar_text
from orchtrace_corpus.corpus.formats.issue_form import Question, questions
from orchtrace_corpus.corpus.model import field_table
from orchtrace_corpus.corpus.model.field_table import FieldKind, RecordField, Section
from orchtrace_corpus.corpus.model.records import VERDICT
from orchtrace_corpus.corpus.model.store import DataFile, import_named
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, Term

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def data_schemas(rows: Sequence[DataFile], taxonomy: Taxonomy) -> list[str]:
    """Return the schemas of data files, as JSON.

    `schemas.json` has the parts that do not depend on the taxonomy. References in it name a part of its `$defs` or a
    part that is made here, and are replaced by the members of that part.
    """
    from orchtrace_corpus.corpus.model.candidates import READER_DECISIONS, Decision, open_facets, screening_facets
    from orchtrace_corpus.corpus.model.claim_file import Over, Strength
    from orchtrace_corpus.corpus.model.codebook import Origin
    from orchtrace_corpus.corpus.model.disputes import State, disputable, values_for
    from orchtrace_corpus.corpus.model.scale import Group, Phase, Support
    from orchtrace_corpus.corpus.model.searches import Maker

    templates = json.loads(read_text_beside(__file__, "schemas.json"))
    tags = disputable(taxonomy)
    choices = {
        "supportable fields": [*(facet.field for facet in taxonomy.papers), *taxonomy.facts],
        "groups": list(Group),
        "phases": list(Phase),
        "supports": list(Support),
        "kinds of records": list(Over),
        "strengths": list(Strength),
        "disputable tags": list(tags),
        "disputable values": list(dict.fromkeys(value for facet in tags.values() for value in values_for(facet))),
        "states": list(State),
        "coded tags": list(dict.fromkeys((*(facet.field for facet in taxonomy.papers), *tags))),
        "facets of exclusions, by name": [facet.field for facet in taxonomy.exclusions],
        "terms of exclusions": [term.id for facet in taxonomy.exclusions for term in facet.terms],
        "origins": list(Origin),
        "decisions": list(READER_DECISIONS),
        "proposals": list(Decision),
        "makers": list(Maker),
    }
    facets = {"papers": taxonomy.papers, "exclusions": taxonomy.exclusions, "evidence": taxonomy.evidence}
    definitions = {
        **templates["$defs"],
        **{name: {"enum": values} for name, values in choices.items()},
        "verdicts": _facet(VERDICT),
    }
    for kind, kind_facets in facets.items():
        definitions[f"facets of {kind}"] = {facet.field: _facet(facet) for facet in kind_facets}
    paper_fields = [field for field in taxonomy.paper_fields if field.in_candidates and field.name != "waive"]
    definitions["fields of candidates"] = {
        **_expand(_properties(paper_fields, "papers"), definitions),
        **{facet.field: _facet(facet) for facet in (*open_facets(taxonomy), *screening_facets(taxonomy))},
    }
    schemas = []
    for row in rows:
        template = templates.get(row.schema)
        if template is None and ":" in row.schema:
            template = table_template(import_named(row.schema))
        elif template is None:
            template = record_template(row.schema, taxonomy.paper_fields)
        item = _expand(template, definitions)
        item["required"] = [*item["required"], *(facet.field for facet in facets.get(row.name, ()) if facet.required)]
        title = row.name if ":" in row.schema else row.schema
        head = {"$schema": DIALECT, "title": f"{taxonomy.title}: {title}"}
        schema = {**head, "type": "array", "items": item} if row.is_list else {**head, **item}
        schemas.append(_to_json(schema) + "\n")
    return schemas


def record_template(name: str, paper_fields: Sequence[RecordField]) -> dict[str, Any]:
    """Return the schema of papers, exclusions or candidates, with a reference in place of tags.

    In the schema of candidates, a reference also stands for the fields that papers have.
    """
    if name != "candidates":
        return table_template(paper_fields if name == "papers" else field_table.EXCLUSION_FIELDS, name)
    waivers = [field for field in field_table.PAPER_FIELDS if field.name == "waive"]
    template = table_template((*field_table.CANDIDATE_FIELDS, *waivers))
    template["properties"] = {"$ref": "fields of candidates", **template["properties"]}
    template["required"] = ["key", "title", *template["required"]]
    return template


def table_template(record_fields: Sequence[RecordField], tagged: str = "") -> dict[str, Any]:
    """Return the schema of records with some fields, and with the tags of `tagged` records if it names a kind."""
    required = [field.name for field in record_fields if field.required]
    properties = _properties(record_fields, tagged)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_BY_KIND: dict[FieldKind, dict[str, Any]] = {
    **{kind: {"$ref": "text"} for kind in (FieldKind.TEXT, FieldKind.URL, FieldKind.IDENTIFIER)},
    **{kind: {"$ref": "texts"} for kind in (FieldKind.TEXTS, FieldKind.URLS)},
    FieldKind.AUTHORS: {"type": "array", "items": {"$ref": "text"}, "minItems": 1},
    FieldKind.YEAR: {"type": "integer", "minimum": 0, "maximum": 9999},
    FieldKind.DATE: {"$ref": "date"},
    FieldKind.NUMBER: {"type": "number"},
    FieldKind.FLAG: {"type": "boolean"},
    FieldKind.KEY: {"$ref": "key"},
}
_BY_NAME: dict[str, dict[str, Any]] = {
    "id": {"type": "string", "pattern": "^E[0-9]{3,}$"},
    "cite_key": {"$ref": "text"},
    "evidence": {"$ref": "evidence items"},
    "bibtex": {"$ref": "kept entry"},
    "waive": {"$ref": "waivers"},
    "proposal": {"$ref": "proposals"},
    "readings": {"$ref": "readings of candidates"},
}


def _properties(record_fields: Sequence[RecordField], tagged: str = "") -> dict[str, Any]:
    """Return the schemas of fields by name; the facets of `tagged` records come after the fields of the head."""
    head: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for field in record_fields:
        rule = _BY_NAME.get(field.name)
        if rule is None:
            rule = {"enum": list(field.choices)} if field.kind is FieldKind.CHOICE else _BY_KIND[field.kind]
        fields = head if field.section is Section.HEAD else others
        fields[field.name] = {"description": field.help, **rule}
    facets = {"$ref": f"facets of {tagged}"} if tagged else {}
    return {**head, **facets, **others}


def _to_json(value: Any, margin: str = "\n") -> str:
    """Return a value as `json.dumps` writes it with an indent of two, in a fraction of the time."""
    if type(value) is str:
        return encode_basestring(value)
    inner_margin = f"{margin}  "
    if isinstance(value, dict) and value:
        pairs = [(encode_basestring(name), _to_json(part, inner_margin)) for name, part in value.items()]
        members = ",".join([f"{inner_margin}{name}: {part}" for name, part in pairs])
        return f"{{{members}{margin}}}"
    if isinstance(value, list) and value:
        items = ",".join([f"{inner_margin}{_to_json(part, inner_margin)}" for part in value])
        return f"[{items}{margin}]"
    if type(value) in (bool, int):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False)


def _expand(part: Any, definitions: dict[str, Any]) -> Any:
    """Return a part of a schema with the members of definitions in place of the references to them."""
    if isinstance(part, list):
        return [_expand(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    expanded: dict[str, Any] = {}
    for name, value in part.items():
        if name == "$ref":
            expanded |= _expand(definitions[value], definitions)
        else:
            expanded[name] = _expand(value, definitions)
    return expanded


def _facet(facet: Facet) -> dict[str, Any]:
    """Return the schema of a facet's tags."""
    schema: dict[str, Any] = {"description": f"{facet.label}. {facet.definition}"}
    if facet.kind is Kind.SINGLE:
        choices = _choices(facet.terms)
        if facet.allows_na:
            description = "The facet does not apply."
            choices.append({"const": NOT_APPLICABLE, "title": "Not applicable", "description": description})
        return schema | {"oneOf": choices}
    if facet.kind is Kind.MANY:
        terms = {"type": "array", "items": {"oneOf": _choices(facet.terms)}, "minItems": 1, "uniqueItems": True}
        not_applicable = [{"const": NOT_APPLICABLE}, {"const": [NOT_APPLICABLE]}] if facet.allows_na else []
        return schema | {"anyOf": [terms, *not_applicable]}
    levels = {"oneOf": _choices(facet.levels)}
    properties = {term.id: {"description": f"{term.label}. {term.definition}", **levels} for term in facet.terms}
    return schema | {"type": "object", "properties": properties, "additionalProperties": False}


def _choices(terms: tuple[Term, ...]) -> list[dict[str, str]]:
    return [{"const": term.id, "title": term.label, "description": term.definition} for term in terms]


def form(taxonomy: Taxonomy) -> str:
    """Return the issue form, as GitHub reads it."""
    noun = taxonomy.noun
    described = f"Name {noun.with_article} that belongs in the corpus, and tag it as far as you can."
    lead = f"An id is enough. Tags that you are not sure of are best left open; a maintainer will read the {noun.one}."
    head = f"""\
# Generated from data/taxonomy.yaml by `corpus build`; do not edit.
name: {scalar_text(f"Suggest {noun.with_article}")}
description: {scalar_text(described)}
title: {json.dumps(f"{noun.heading_one}: ", ensure_ascii=False)}
body:
  - type: markdown
    attributes:
      value: {scalar_text(lead)}
"""
    return head + "".join(f"{line}\n" for question in questions(taxonomy) for line in _lines(question))


def _lines(question: Question) -> Iterator[str]:
    """Yield the lines of a question in the form's YAML."""
    options, facet = question.options, question.facet
    description = [question.about]
    if facet is not None:
        answers = facet.terms if question.term is None else facet.levels
        description += [f"{answer.label}: {answer.definition}" for answer in answers]
    input_type = "textarea" if question.is_long else "input"
    yield f"  - type: {'dropdown' if options else input_type}"
    section = "evidence" if question.is_evidence else "paper"
    yield f"    id: {section}-{re.sub('[^A-Za-z0-9]+', '-', question.name)}"
    yield "    attributes:"
    yield f"      label: {scalar_text(question.label)}"
    yield f"      description: {scalar_text(' '.join(description))}"
    if facet is not None and facet.kind is Kind.MANY:
        yield "      multiple: true"
    if options:
        yield "      options:"
        yield from (f"        - {scalar_text(option)}" for option in options)
    if question.name == "identifier":
        yield "    validations:"
        yield "      required: true"
