"""Set tags of a record, each word as in the filter language, and add evidence for them.

field=term         one term, spelled as `tagging` reads it
field=a,b          several terms, for a field of kind `many`
field=NA           coded as not applicable
field=             remove the tag, if it is optional
code=URL           another settable field (`settable_fields`), likewise
term=level         one level of a field of kind `levels`, such as stop=explicit; its other levels stay
term=none          this term does not arise; also term=
field=none         no term of a field of kind `levels` arises

Disagreements of second readers about tags are recorded as disputes.
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
from orchtrace_corpus.corpus.edit.edits import plain_value, raw_records
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

_TEXTS = {
    field.name: field for field in (*PAPER_FIELDS, *EXCLUSION_FIELDS) if field.name in ("summary", "notes", "reason")
}
"""Text fields of a record that are set like tags."""

_INSTRUCTIONS = {
    "waive": "Write it into the record in the file: waive: [{code: CODE, why: ...}]",
    "evidence": "Add an item of evidence: --evidence NOTE --evidence-source URL",
}
"""Instructions for fields that `corpus tag` does not set."""


def tag(corpus: CorpusFiles, target: Target, words: Iterable[str], evidence: Evidence | None = None) -> Proposal:
    """Propose new tags of a record, one for each word, and an item of evidence; without `tags`, it supports the new.

    Raises:
        CommandUseError: A word sets nothing, or the evidence is incomplete.
        DataFileError: The record cannot be edited in place.
    """
    taxonomy = corpus.pool.taxonomy
    is_paper = isinstance(target.record, Paper)
    facets = taxonomy.papers if is_paper else taxonomy.exclusions
    attributes = (paper_attributes if is_paper else exclusion_attributes)(taxonomy)
    present = raw_records(corpus.file(target.path))[target.position]
    settable = {name: field for name, field in {**settable_fields(taxonomy), **_TEXTS}.items() if name in attributes}
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
    differing = {
        field: value for field, value in changes.items() if plain_value(value) != plain_value(present.get(field))
    }
    return change(corpus, target, differing)


def refuse_published(
    paper: Paper, changes: Mapping[str, Value | None], taxonomy: Taxonomy, before: Paper, evidence: Evidence | None
) -> None:
    """Refuse to change published tags, since every published count must be reproduced.

    The published values are those of `before`, the paper in the last commit. The hint of the `CommandUseError` is the
    command that records the new value as another reading, with the evidence given for it.
    """
    published = {column.field for column in taxonomy.published} & paper.tags.keys() & changes.keys()
    readings = {}
    for field, facet in disputable(taxonomy).items():
        if field in published and (new := str(changes[field] or NOT_APPLICABLE)) != value_of(before, facet, field):
            readings[field] = new
    if readings:
        why = shlex.quote(evidence.note) if evidence else "TEXT"
        source = shlex.quote(evidence.source) if evidence and evidence.source else "URL"
        assignments = (f"{field}={new}" for field, new in readings.items())
        commands = (f"corpus dispute {paper.key} {each} --why {why} --source {source}" for each in assignments)
        message = f"{paper.key} is in the published pool, whose tags stay as published: {', '.join(readings)}"
        raise CommandUseError(message, "\n".join(("Record the other reading instead:", *commands)))


def remarks(paper: Paper, changes: Mapping[str, Value | None], taxonomy: Taxonomy) -> Iterator[str]:
    """Yield a remark if evidence of the paper, as it was, is for a tag that changes."""
    tagged = {facet.field for facet in taxonomy.papers if facet.field in changes and facet.field in paper.tags}
    changed = tagged | {name for name in taxonomy.facts if name in changes and paper.value(name)}
    items = enumerate(paper.evidence, 1)
    numbers = [str(at) for at, item in items if item.verdict is EvidenceVerdict.SUPPORTED and changed & {*item.tags}]
    if numbers:
        advice = "is for the old value; change it, or add --evidence"
        if "evidence" in changes:
            advice = "is older than the new value; see in data/papers.yaml whether it fits"
        yield f"evidence {', '.join(numbers)} of {paper.key} {advice}"


def refuse_unknown_facets(names: Iterable[str], taxonomy: Taxonomy) -> None:
    """Refuse, with a `CommandUseError`, fields that evidence cannot support."""
    fields = [*(facet.field for facet in taxonomy.papers), *taxonomy.facts]
    for name in names:
        if name not in fields:
            raise CommandUseError(f"evidence cannot support {quote(name)}{suggestion(name, fields)}")


def _require_complete(evidence: Evidence, taxonomy: Taxonomy) -> None:
    missing = [] if evidence.source else ["source"]
    required = (facet.field for facet in taxonomy.evidence if facet.required)
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
    """Return the new values by field, None to remove one; levels that no word names stay as in `present`."""
    tags: dict[str, Value | None] = {}
    names: set[str] = set()
    for word in words:
        match = re.fullmatch(r"\s*(?P<name>[A-Za-z][\w-]*)\s*=(?P<value>[^=].*|)", word, re.DOTALL)
        if match is None:
            raise CommandUseError(f"{quote(word)} sets no tag", "Write field=value; corpus terms shows the fields.")
        name, value = match["name"].replace("-", "_").lower(), match["value"].strip()
        if name in settable:
            attribute, facet = attributes[name], None
        else:
            attribute, facet = _find_facet(name, facets, attributes, settable)
        if attribute.name in names:
            raise CommandUseError(f"{attribute.name} is set twice", "Set it once; write several terms as a,b.")
        names.add(attribute.name)
        if facet is None:
            new = read_value(settable[name], value) if value else None
            tags[name] = (list(new) or None) if isinstance(new, tuple) else new
        elif attribute.facet is None:
            tag = tags.get(facet.field, present.get(facet.field))
            levels = {str(term): str(level) for term, level in tag.items()} if isinstance(tag, Mapping) else {}
            levels.pop(attribute.name, None)
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
    """Return the attribute of a name, and its facet: the facet itself, or that of a term with levels."""
    by_name = {facet.field: facet for facet in facets}
    by_name |= {term.id: facet for facet in facets if facet.kind is Kind.LEVELS for term in facet.terms}
    hint = _INSTRUCTIONS.get(name, "Change it in the file itself; corpus check data checks it.")
    if (name in attributes or name in _INSTRUCTIONS) and name not in by_name:
        raise CommandUseError(f"{name} is not a tag but another field", hint)
    settable_attributes = {name: attributes[name] for name in (*by_name, *settable)}
    try:
        attribute = find(name, settable_attributes)
    except CommandUseError as error:
        hint = "corpus terms shows the fields, corpus terms FIELD the terms of one."
        raise CommandUseError(str(error), hint) from error
    return attribute, by_name[attribute.name]


@contextmanager
def _explain(allowed: tuple[Term, ...]) -> Iterator[None]:
    """Add to the refusal of a term what the terms mean."""
    try:
        yield
    except CommandUseError as error:
        raise CommandUseError(str(error), "\n".join(f"  {term.id}: {term.definition}" for term in allowed)) from error


class DisputeChanges(NamedTuple):
    """Changes of the disputes on record: new ones, and changed fields of present ones by index.

    No dispute can be about the tags `left_out` (key and field), since they have several terms.
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
    """Return the disputes that follow if readers' sheets differ from the corpus's own tags.

    A name of `merges`, such as `learned`, stands for any of its terms, so it does not contradict them. A reading that
    is on record is not added again, except `by_name`: then its new reader is. A new reading opens a settled dispute.
    The `source` defaults to the readers' names.
    """
    tags, source = disputable(taxonomy), source or " and ".join(sheet.name for sheet in sheets)
    places = {(dispute.record, dispute.tag): index for index, dispute in enumerate(recorded)}
    proposed = DisputeChanges([], {}, [])
    for key, own_tags in corpus.codes.items():
        for column, value in own_tags.items():
            readings = _other_readings(key, column, value, sheets, merges)
            if not readings:
                continue
            if column not in tags:
                proposed.left_out.append((key, column))
                continue
            coded = [sheet for sheet in sheets if column in sheet.codes.get(key, {})]
            arguments = tuple(Argument(sheet.name, sheet.notes[key], source) for sheet in coded if key in sheet.notes)
            if (key, column) not in places:
                agreeing = [sheet.name for sheet in coded if sheet.codes[key][column] == value]
                readers = {value: " and ".join(("the corpus", *agreeing)), **readings}
                all_readings = tuple(Reading(tuple(values.split(",")), names) for values, names in readers.items())
                reason = "Not decided yet; this value is kept until then."
                dispute = Dispute(key, column, value, all_readings, reason, source)
                proposed.added.append(dispute_fields(dispute._replace(arguments=arguments)))
                continue
            index = places[key, column]
            dispute = recorded[index]
            on_record = {",".join(reading.values): reading.by for reading in dispute.readings}
            new: dict[str, str] = {}
            for values, reader in readings.items():
                present = on_record[values].split(" and ") if values in on_record else []
                names = dict.fromkeys((*present, *reader.split(" and ")))
                if not present or (by_name and len(names) > len(present)):
                    new[values] = " and ".join(names)
            if new:
                changes: dict[str, Value] = {"readings": {**on_record, **new}}
                if dispute.state is State.SETTLED:
                    changes["state"] = State.OPEN.value
                if dispute.arguments or arguments:
                    changes["arguments"] = argument_fields((*dispute.arguments, *arguments))
                proposed.extended[index] = changes
    return proposed


def _other_readings(
    key: str, column: str, value: str, sheets: Sequence[Sheet], merges: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Return the readers of each value that contradicts the corpus's own, by that value."""
    readers: dict[str, list[str]] = {}
    for sheet in sheets:
        code = sheet.codes.get(key, {}).get(column)
        if code is not None and value not in (code, *merges.get(code, ())):
            readers.setdefault(",".join(merges.get(code, (code,))), []).append(sheet.name)
    return {values: " and ".join(names) for values, names in readers.items()}
