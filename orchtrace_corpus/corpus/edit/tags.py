"""Set tags of a record and add evidence for them; record disagreements of second readers as disputes.

Tags are set by words:

field=term         one term, by its id, label or code
field=a,b          several terms, for a facet of kind `many`
field=NA           not applicable
field=             remove the tag, if it is optional
code=URL           set another field (`settable_fields`); without a value, remove it
term=level         the level of one term of a facet of kind `levels`, such as stop=explicit; other terms stay
term=none          the record does not have this term; also term=
field=none         the record has no term of a facet of kind `levels`
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.attributes import (
    Attribute,
    Attributes,
    exclusion_attributes,
    find,
    paper_attributes,
)
from orchtrace_corpus.corpus.analysis.coding import Sheet
from orchtrace_corpus.corpus.edit.edits import comparable, raw_records
from orchtrace_corpus.corpus.edit.proposal import Proposal, Target, change
from orchtrace_corpus.corpus.model.disputes import NOT_ARISING, Argument, Dispute, Reading, State, disputable, value_of
from orchtrace_corpus.corpus.model.field_table import EXCLUSION_FIELDS, PAPER_FIELDS, RecordField
from orchtrace_corpus.corpus.model.record_fields import (
    Value,
    argument_fields,
    dispute_fields,
    evidence_fields,
    tag_value,
)
from orchtrace_corpus.corpus.model.records import Evidence, EvidenceVerdict, Paper
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.model.tagging import read_level, read_tag, read_value, settable_fields, sort_levels
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, Term

_TEXT_FIELDS = {
    field.name: field for field in (*PAPER_FIELDS, *EXCLUSION_FIELDS) if field.name in ("summary", "notes", "reason")
}
"""Text fields of a record that can be set like tags, by name."""

_INSTRUCTIONS = {
    "waive": "Write it into the record in the file: waive: [{code: CODE, why: ...}]",
    "evidence": "Add an item of evidence: --evidence NOTE --evidence-source URL",
}
"""Instructions for fields that `corpus tag` does not set."""


def tag(corpus: CorpusFiles, target: Target, words: Iterable[str], evidence: Evidence | None = None) -> Proposal:
    """Propose new tags of a record, one for each word, and an item of evidence (for the new tags if it names none).

    Raises:
        CommandUseError: A word sets nothing, or the evidence is incomplete.
        DataFileError: The record cannot be edited in place.
    """
    taxonomy = corpus.pool.taxonomy
    is_paper = isinstance(target.record, Paper)
    facets = taxonomy.papers if is_paper else taxonomy.exclusions
    attributes = paper_attributes(taxonomy) if is_paper else exclusion_attributes(taxonomy)
    present = raw_records(corpus.file(target.path))[target.position]
    settable = {**settable_fields(taxonomy), **_TEXT_FIELDS}
    settable = {name: field for name, field in settable.items() if name in attributes}
    changes = _read_assignments(words, facets, attributes, present, settable)
    if evidence is not None:
        if not is_paper:
            raise CommandUseError(f"{target.record.name} is an exclusion, which has a reason instead of evidence")
        refuse_unknown_facets(evidence.tags, taxonomy)
        supportable = (*(facet.field for facet in facets), *taxonomy.facts)
        new_tags = tuple(field for field in changes if field in supportable)
        evidence = evidence._replace(tags=evidence.tags or new_tags)
        _require_complete(evidence, taxonomy)
        items = present.get("evidence", [])
        if not isinstance(items, list):
            message = f"the evidence of {target.record.name} is not a list"
            raise DataFileError(message, "Fix it first; see corpus check data.")
        changes["evidence"] = [*items, evidence_fields(evidence)]
    changes = {field: value for field, value in changes.items() if comparable(value) != comparable(present.get(field))}
    return change(corpus, target, changes)


def refuse_published(
    paper: Paper, changes: Mapping[str, Value | None], taxonomy: Taxonomy, before: Paper, evidence: Evidence | None
) -> None:
    """Refuse to change published tags, because the corpus must reproduce every published count.

    The published values are those of `before`, the paper in the last commit.

    Raises:
        CommandUseError: A published tag changes. The hint is the command that records the new value as a reading.
    """
    published = {column.field for column in taxonomy.published} & paper.tags.keys() & changes.keys()
    new_values = {}
    for field, facet in disputable(taxonomy).items():
        if field in published:
            new_value = str(changes[field] or NOT_APPLICABLE)
            if new_value != value_of(before, facet, field):
                new_values[field] = new_value
    if new_values:
        why = shlex.quote(evidence.note) if evidence else "TEXT"
        source = shlex.quote(evidence.source) if evidence and evidence.source else "URL"
        lines = ["Record the other reading instead:"]
        for field, new_value in new_values.items():
            lines.append(f"corpus dispute {paper.key} {field}={new_value} --why {why} --source {source}")
        message = f"{paper.key} is in the published pool, whose tags stay as published: {', '.join(new_values)}"
        raise CommandUseError(message, "\n".join(lines))


def remarks(paper: Paper, changes: Mapping[str, Value | None], taxonomy: Taxonomy) -> Iterator[str]:
    """Yield a remark if some evidence of the paper, before the change, is for a value that changes."""
    changed = {facet.field for facet in taxonomy.papers if facet.field in changes and facet.field in paper.tags}
    changed |= {name for name in taxonomy.facts if name in changes and paper.value(name)}
    numbers = []
    for number, item in enumerate(paper.evidence, 1):
        if item.verdict is EvidenceVerdict.SUPPORTED and not changed.isdisjoint(item.tags):
            numbers.append(str(number))
    if numbers:
        advice = "is for the old value; change it, or add --evidence"
        if "evidence" in changes:
            advice = "is older than the new value; see in data/papers.yaml whether it fits"
        yield f"evidence {', '.join(numbers)} of {paper.key} {advice}"


def refuse_unknown_facets(names: Iterable[str], taxonomy: Taxonomy) -> None:
    """Raise `CommandUseError` for a field that evidence cannot support."""
    fields = [*(facet.field for facet in taxonomy.papers), *taxonomy.facts]
    for name in names:
        if name not in fields:
            raise CommandUseError(f"evidence cannot support {quote(name)}{suggestion(name, fields)}")


def _require_complete(evidence: Evidence, taxonomy: Taxonomy) -> None:
    missing = [] if evidence.source else ["source"]
    required = [facet.field for facet in taxonomy.evidence if facet.required]
    missing += [name for name in required if name not in evidence.more and not getattr(evidence, name, "")]
    if missing:
        options = ", ".join(f"--evidence-{name.replace('_', '-')}" for name in missing)
        raise CommandUseError(f"an item of evidence needs {', '.join(missing)}", f"Add {options}.")
    if not evidence.tags:
        raise CommandUseError("an item of evidence names the tags that it supports", "Name them with --evidence-tags.")


def _read_assignments(
    words: Iterable[str],
    facets: tuple[Facet, ...],
    attributes: Attributes,
    present: Mapping[str, object],
    settable: Mapping[str, RecordField],
) -> dict[str, Value | None]:
    """Return the new values by field, None for a removed field; terms that no word names keep their level.

    `present` has the values of the record as YAML, `settable` the fields without terms that can be set.
    """
    tags: dict[str, Value | None] = {}
    names: set[str] = set()
    for word in words:
        match = re.fullmatch(r"\s*(?P<name>[A-Za-z][\w-]*)\s*=(?P<value>[^=].*|)", word, re.DOTALL)
        if match is None:
            raise CommandUseError(f"{quote(word)} sets no tag", "Write field=value; corpus terms shows the fields.")
        name = match["name"].replace("-", "_").lower()
        value = match["value"].strip()
        facet: Facet | None = None
        if name in settable:
            attribute = attributes[name]
        else:
            attribute, facet = _find_facet(name, facets, attributes, settable)
        if attribute.name in names:
            raise CommandUseError(f"{attribute.name} is set twice", "Set it once; write several terms as a,b.")
        names.add(attribute.name)
        if facet is None:
            field_value = read_value(settable[name], value) if value else None
            if isinstance(field_value, tuple):
                tags[name] = list(field_value) or None
            else:
                tags[name] = field_value
        elif attribute.facet is None:  # a term with a level
            tag = tags.get(facet.field, present.get(facet.field))
            levels: dict[str, str] = {}
            if isinstance(tag, Mapping):
                levels = {str(term): str(level) for term, level in tag.items() if term != attribute.name}
            if value:
                with _explain(facet.levels):
                    levels[attribute.name] = read_level(facet, value)
            tags[facet.field] = tag_value(sort_levels(facet, levels))
        elif value:
            with _explain(facet.terms):
                tags[facet.field] = tag_value(read_tag(facet, value))
        elif facet.required:
            hint = f"Set another term; corpus terms {facet.field} shows them."
            if facet.kind is Kind.LEVELS:
                hint = f"Write {facet.field}={NOT_ARISING} where no term arises."
            raise CommandUseError(f"{facet.field} is required and cannot be taken away", hint)
        else:
            tags[facet.field] = None
    return tags


def _find_facet(
    name: str, facets: tuple[Facet, ...], attributes: Attributes, settable: Iterable[str]
) -> tuple[Attribute, Facet]:
    """Return the attribute with a name, which is a facet or a term with levels, and the facet."""
    facets_by_name = {facet.field: facet for facet in facets}
    for facet in facets:
        if facet.kind is Kind.LEVELS:
            facets_by_name.update((term.id, facet) for term in facet.terms)
    if (name in attributes or name in _INSTRUCTIONS) and name not in facets_by_name:
        hint = _INSTRUCTIONS.get(name, "Change it in the file itself; corpus check data checks it.")
        raise CommandUseError(f"{name} is not a tag but another field", hint)
    findable = {field: attributes[field] for field in (*facets_by_name, *settable)}  # also for the suggestion of `find`
    try:
        attribute = find(name, findable)
    except CommandUseError as error:
        hint = "corpus terms shows the fields, corpus terms FIELD the terms of one."
        raise CommandUseError(str(error), hint) from error
    return attribute, facets_by_name[attribute.name]


@contextmanager
def _explain(allowed: tuple[Term, ...]) -> Iterator[None]:
    """Add the definitions of the allowed terms to the error about an unknown term."""
    try:
        yield
    except CommandUseError as error:
        raise CommandUseError(str(error), "\n".join(f"  {term.id}: {term.definition}" for term in allowed)) from error


class DisputeChanges(NamedTuple):
    """New disputes, and the changed fields of recorded disputes by their index.

    `left_out` has the key and the field of tags that cannot be disputed, because they have several terms.
    """

    added: list[dict[str, Value]]
    extended: dict[int, dict[str, Value]]
    left_out: list[tuple[str, str]]


def propose_disputes(
    corpus: Sheet,
    sheets: Sequence[Sheet],
    merges: Mapping[str, Sequence[str]],
    recorded: Sequence[Dispute],
    taxonomy: Taxonomy,
    source: str = "",
    *,
    by_name: bool = False,
) -> DisputeChanges:
    """Return the changes of `recorded` disputes that follow if readers' sheets differ from the corpus's own tags.

    `merges` has codes that stand for several terms, such as `learned`; such a code does not contradict these terms. The
    `source` of new disputes is the readers' names by default. A new value is always added, and opens the dispute again;
    with `by_name`, a new reader of a recorded value is added, too.
    """
    facets_by_tag = disputable(taxonomy)
    source = source or " and ".join(sheet.name for sheet in sheets)
    indexes = {(dispute.record, dispute.tag): index for index, dispute in enumerate(recorded)}
    proposed = DisputeChanges(added=[], extended={}, left_out=[])
    for key, own_tags in corpus.codes.items():
        for column, value in own_tags.items():
            readers_by_values = _contradicting_readers(key, column, value, sheets, merges)
            if not readers_by_values:
                continue
            if column not in facets_by_tag:
                proposed.left_out.append((key, column))
                continue
            coded = [sheet for sheet in sheets if column in sheet.codes.get(key, {})]
            arguments = tuple(Argument(sheet.name, sheet.notes[key], source) for sheet in coded if key in sheet.notes)
            if (key, column) not in indexes:
                agreeing = [sheet.name for sheet in coded if sheet.codes[key][column] == value]
                readers_by_values = {value: " and ".join(("the corpus", *agreeing)), **readers_by_values}
                readings = tuple(Reading(tuple(values.split(",")), by) for values, by in readers_by_values.items())
                reason = "Not decided yet; this value is kept until then."
                dispute = Dispute(key, column, value, readings, reason, source, arguments=arguments)
                proposed.added.append(dispute_fields(dispute))
                continue
            index = indexes[key, column]
            changes = _extend(recorded[index], readers_by_values, arguments, by_name=by_name)
            if changes:
                proposed.extended[index] = changes
    return proposed


def _extend(
    dispute: Dispute, readers_by_values: Mapping[str, str], arguments: Sequence[Argument], *, by_name: bool
) -> dict[str, Value]:
    """Return the fields of a dispute that change with further readings; empty if all are recorded."""
    recorded_readers = {",".join(reading.values): reading.by for reading in dispute.readings}
    new_readers: dict[str, str] = {}
    for values, by in readers_by_values.items():
        present = recorded_readers[values].split(" and ") if values in recorded_readers else []
        names = dict.fromkeys((*present, *by.split(" and ")))
        if not present or (by_name and len(names) > len(present)):
            new_readers[values] = " and ".join(names)
    if not new_readers:
        return {}
    changes: dict[str, Value] = {"readings": {**recorded_readers, **new_readers}}
    if dispute.state is State.SETTLED:
        changes["state"] = State.OPEN.value
    if dispute.arguments or arguments:
        changes["arguments"] = argument_fields((*dispute.arguments, *arguments))
    return changes


def _contradicting_readers(
    key: str, column: str, value: str, sheets: Sequence[Sheet], merges: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Return the readers whose code contradicts the corpus's value, joined by `and`, by their values, joined by `,`."""
    names_by_values: dict[str, list[str]] = {}
    for sheet in sheets:
        code = sheet.codes.get(key, {}).get(column)
        if code is not None and value not in (code, *merges.get(code, ())):
            values = ",".join(merges.get(code, (code,)))
            names_by_values.setdefault(values, []).append(sheet.name)
    return {values: " and ".join(names) for values, names in names_by_values.items()}
