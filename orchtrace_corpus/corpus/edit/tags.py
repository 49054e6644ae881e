"""Sets the tags of a record, written as the filter language's `field=value`, and adds evidence for them.

field=term         one term, spelled as `tagging` reads it
field=a,b          several terms, for a field of kind `many`
field=NA           coded as not applicable
field=             no tag any more, where it is optional
code=URL           another field that is settable (`settable_fields`), likewise
term=level         one level of a field of kind `levels`, such as stop=explicit; its other levels stay
term=none          no level: this term does not arise; term= says the same
field=none         for a field of kind `levels`: no term arises

Disagreements of second readers about tags become disputes on record.
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
from orchtrace_corpus.corpus.model.disputes import Argument, Dispute, Reading, State, disputable, value_of
from orchtrace_corpus.corpus.model.field_table import EXCLUSION_FIELDS, PAPER_FIELDS, RecordField
from orchtrace_corpus.corpus.model.record_fields import (
    Value,
    argument_fields,
    dispute_fields,
    evidence_fields,
    tag_value,
)
from orchtrace_corpus.corpus.model.records import EvidenceVerdict, Paper, Tag, classified_evidence
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.model.tagging import (
    NO_TERM,
    in_order,
    read_level,
    read_tag,
    read_value,
    settable_fields,
)
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, Term

_TEXTS = {
    field.name: field for field in (*PAPER_FIELDS, *EXCLUSION_FIELDS) if field.name in ("summary", "notes", "reason")
}
"""Texts of a record that are set like tags."""


_BY_HAND = {
    "waive": "Write it into the record in the file: waive: [{code: CODE, why: ...}]",
    "evidence": "Add an item of evidence: --evidence NOTE --evidence-source URL",
}
"""Instructions for fields that `corpus tag` does not change."""


class NewEvidence(NamedTuple):
    """An item of evidence to add.

    Attributes:
        note: What in the source supports the tags.
        source: The address of the source.
        location: Where in it: a page, section or line.
        supported: The fields that it supports; else those being set.
        facets: The facets of evidence, by field.
        copy: Whether a hosted copy of the record's own work was read.
    """

    note: str
    source: str = ""
    location: str = ""
    supported: tuple[str, ...] = ()
    facets: Mapping[str, Tag] = {}
    copy: bool = False


def tag(corpus: CorpusFiles, target: Target, words: Iterable[str], evidence: NewEvidence | None = None) -> Proposal:
    """Tags of one record change, and an item of evidence for them is added.

    Args:
        corpus: The corpus.
        target: The record.
        words: One assignment each; those that change nothing are left out.
        evidence: The item of evidence, for a paper.

    Raises:
        CommandUseError: A word is no assignment, or the item of evidence lacks something.
        DataFileError: The record cannot be edited in place.
    """
    taxonomy = corpus.pool.taxonomy
    is_paper = isinstance(target.record, Paper)
    facets = taxonomy.papers if is_paper else taxonomy.exclusions
    attributes = (paper_attributes if is_paper else exclusion_attributes)(taxonomy)
    present = raw_records(corpus.file(target.name))[target.position]
    settable = {name: field for name, field in {**settable_fields(taxonomy), **_TEXTS}.items() if name in attributes}
    changes = _read_assignments(words, facets, attributes, present, settable)
    if evidence is not None:
        if not is_paper:
            raise CommandUseError(f"{target.record.name} is an exclusion, which has a reason instead of evidence")
        refuse_unknown_facets(evidence.supported, taxonomy)
        supportable = (*(facet.field for facet in facets), *taxonomy.facts)
        tagged = tuple(field for field in changes if field in supportable)
        item = _evidence_item(evidence._replace(supported=evidence.supported or tagged), taxonomy)
        items = present.get("evidence", [])
        if not isinstance(items, list):
            message = f"the evidence of {target.record.name} is not a list"
            raise DataFileError(message, "Mend it first; see corpus check data.")
        changes["evidence"] = [*items, item]
    differing = {
        field: value for field, value in changes.items() if plain_value(value) != plain_value(present.get(field))
    }
    return change(corpus, target, differing)


def refuse_published(
    paper: Paper, changes: Mapping[str, Value | None], taxonomy: Taxonomy, before: Paper, evidence: NewEvidence | None
) -> None:
    """Refuse to change tags that were published, since every published count must be reproduced.

    Args:
        paper: The paper as it was until now.
        changes: Its changed fields.
        taxonomy: The corpus's vocabulary.
        before: The paper as of the last commit, whose values were published.
        evidence: What was to be added for the new values.

    Raises:
        CommandUseError: Such a tag changes; the hint is the command that records the other reading.
    """
    published = {column.field for column in taxonomy.published} & paper.tags.keys() & changes.keys()
    readings = {}
    for field, facet in disputable(taxonomy).items():
        if field in published and (new := str(changes[field] or NOT_APPLICABLE)) != value_of(before, facet, field):
            readings[field] = new
    if readings:
        why = shlex.quote(evidence.note) if evidence else "TEXT"
        source = shlex.quote(evidence.source) if evidence and evidence.source else "URL"
        commands = (
            f"corpus dispute {paper.key} {field}={new} --why {why} --source {source}" for field, new in readings.items()
        )
        raise CommandUseError(
            f"{paper.key} is in the published pool, whose tags stay as published: {', '.join(readings)}",
            "\n".join(("Record the other reading instead:", *commands)),
        )


def remarks(paper: Paper, changes: Mapping[str, Value | None], taxonomy: Taxonomy) -> Iterator[str]:
    """Yield objections to changes of a paper's tags: evidence for the old value.

    Args:
        paper: The paper as it was until now.
        changes: Its changed fields.
        taxonomy: The corpus's vocabulary.
    """
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
    """Refuse names of fields that evidence cannot support.

    Raises:
        CommandUseError: A name is unknown; the message names the nearest.
    """
    known = [*(facet.field for facet in taxonomy.papers), *taxonomy.facts]
    for name in names:
        if name not in known:
            raise CommandUseError(f"evidence cannot support {quote(name)}{suggestion(name, known)}")


def _evidence_item(evidence: NewEvidence, taxonomy: Taxonomy) -> dict[str, Value]:
    """An item of evidence as it is written, with all that the taxonomy asks of one."""
    facets = evidence.facets
    missing = [] if evidence.source else ["source"]
    missing += [facet.field for facet in taxonomy.evidence if facet.required and facet.field not in facets]
    if missing:
        options = ", ".join(f"--evidence-{name.replace('_', '-')}" for name in missing)
        raise CommandUseError(f"an item of evidence needs {', '.join(missing)}", f"Add {options}.")
    if not evidence.supported:
        raise CommandUseError("an item of evidence names the tags that it supports", "Name them with --evidence-tags.")
    item = classified_evidence(evidence.supported, evidence.note, evidence.source, facets, taxonomy)
    return evidence_fields(item._replace(location=evidence.location, copy=evidence.copy))


def _read_assignments(
    words: Iterable[str],
    facets: tuple[Facet, ...],
    attributes: Attributes,
    present: Mapping[str, object],
    settable: Mapping[str, RecordField],
) -> dict[str, Value | None]:
    """The new values of tags by field, None for one that is taken away; levels that no word names stay as present."""
    tags: dict[str, Value | None] = {}
    seen: set[str] = set()
    for word in words:
        match = re.fullmatch(r"\s*(?P<name>[A-Za-z][\w-]*)\s*=(?P<value>[^=].*|)", word, re.DOTALL)
        if match is None:
            raise CommandUseError(f"{quote(word)} sets no tag", "Write field=value; corpus terms shows the fields.")
        name, value = match["name"].replace("-", "_").lower(), match["value"].strip()
        if name in settable:
            attribute, facet = attributes[name], None
        else:
            attribute, facet = _find_facet(name, facets, attributes, settable)
        if attribute.name in seen:
            raise CommandUseError(f"{attribute.name} is set twice", "Set it once; write several terms as a,b.")
        seen.add(attribute.name)
        if facet is None:
            read = read_value(settable[name], value) if value else None
            tags[name] = (list(read) or None) if isinstance(read, tuple) else read
        elif attribute.facet is None:
            held = tags.get(facet.field, present.get(facet.field))
            levels = {str(term): str(level) for term, level in held.items()} if isinstance(held, Mapping) else {}
            levels.pop(attribute.name, None)
            if value:
                with _explain(facet.levels):
                    levels[attribute.name] = read_level(facet, value)
            tags[facet.field] = tag_value(in_order(facet, levels))
        elif value:
            with _explain(facet.terms):
                tags[facet.field] = tag_value(read_tag(facet, value))
        elif facet.required:
            hint = f"Set another term; corpus terms {facet.field} shows them."
            if facet.kind is Kind.LEVELS:
                hint = f"Write {facet.field}={NO_TERM} where no term arises."
            raise CommandUseError(f"{facet.field} is required and cannot be taken away", hint)
        else:
            tags[facet.field] = None
    return tags


def _find_facet(
    name: str, facets: tuple[Facet, ...], attributes: Attributes, settable: Iterable[str]
) -> tuple[Attribute, Facet]:
    """The facet of a name, or of the term with levels that it names."""
    by_name = {facet.field: facet for facet in facets}
    by_name |= {term.id: facet for facet in facets if facet.kind is Kind.LEVELS for term in facet.terms}
    hint = _BY_HAND.get(name, "Change it in the file itself; corpus check data checks it.")
    if (name in attributes or name in _BY_HAND) and name not in by_name:
        raise CommandUseError(f"{name} is not a tag but another field", hint)
    known = {name: attributes[name] for name in (*by_name, *settable)}
    try:
        attribute = find(name, known)
    except CommandUseError as error:
        raise CommandUseError(
            str(error), "corpus terms shows the fields, corpus terms FIELD the terms of one."
        ) from error
    return attribute, by_name[attribute.name]


@contextmanager
def _explain(allowed: tuple[Term, ...]) -> Iterator[None]:
    """Add to the refusal of a term what the terms mean."""
    try:
        yield
    except CommandUseError as error:
        raise CommandUseError(str(error), "\n".join(f"  {term.id}: {term.definition}" for term in allowed)) from error


class Recorded(NamedTuple):
    """Disputes to write.

    Attributes:
        added: New disputes, as their fields.
        extended: New readings of disputes that are on record, by the index of each.
        left_out: Tags in disagreement that a dispute cannot be about: those of several terms.
    """

    added: list[dict[str, Value]]
    extended: dict[int, dict[str, Value]]
    left_out: list[tuple[str, str]]


def propose_disputes(
    corpus: Sheet,
    sheets: Sequence[Sheet],
    merges: Mapping[str, Sequence[str]],
    known: Sequence[Dispute],
    taxonomy: Taxonomy,
    source: str = "",
    *,
    by_name: bool = False,
) -> Recorded:
    """The disputes that follow from sheets that do not read what the corpus has.

    A reading on a coarser scale, such as `learned`, stands for any of its terms, and is no disagreement with
    one of them. Readings that are on record already are not added again; a new one opens a settled dispute.

    Args:
        corpus: The corpus's own tags.
        sheets: What the readers coded.
        merges: The terms that each name of a coarser scale stands for.
        known: The disputes on record.
        taxonomy: The vocabulary.
        source: Where the readings are; the readers' names where nothing is said.
        by_name: Whether a reading on record is new if the reader is, who joins those that read the same.
    """
    tags, source = disputable(taxonomy), source or " and ".join(one.name for one in sheets)
    places = {(dispute.record, dispute.tag): index for index, dispute in enumerate(known)}
    proposed = Recorded([], {}, [])
    for key, own in corpus.codes.items():
        for column, stands in own.items():
            readings = _readings(key, column, stands, sheets, merges)
            if not readings:
                continue
            if column not in tags:
                proposed.left_out.append((key, column))
            elif (key, column) in places:
                index = places[key, column]
                on_record = {",".join(reading.values): reading.by for reading in known[index].readings}
                new = dict[str, str]()
                for values, reader in readings.items():
                    present = on_record[values].split(" and ") if values in on_record else []
                    names = dict.fromkeys((*present, *reader.split(" and ")))
                    if not present or (by_name and len(names) > len(present)):
                        new[values] = " and ".join(names)
                if new:
                    said: dict[str, Value] = {"state": State.OPEN.value} if known[index].state is State.SETTLED else {}
                    arguments = (*known[index].arguments, *_arguments(key, column, sheets, source))
                    if arguments:
                        said["arguments"] = argument_fields(arguments)
                    proposed.extended[index] = {"readings": {**on_record, **new}, **said}
            else:
                agreeing = [sheet.name for sheet in sheets if sheet.codes.get(key, {}).get(column) == stands]
                by = {stands: " and ".join(("the corpus", *agreeing)), **readings}
                read = tuple(Reading(tuple(values.split(",")), names) for values, names in by.items())
                dispute = Dispute(key, column, stands, read, "Not decided yet; this value is kept until then.", source)
                arguments = _arguments(key, column, sheets, source)
                proposed.added.append(dispute_fields(dispute._replace(arguments=arguments)))
    return proposed


def _arguments(key: str, column: str, sheets: Sequence[Sheet], source: str) -> tuple[Argument, ...]:
    """Return what each reader of a tag says for the reading, apart from what others say."""
    return tuple(
        Argument(sheet.name, sheet.notes[key], source)
        for sheet in sheets
        if key in sheet.notes and column in sheet.codes.get(key, {})
    )


def _readings(
    key: str, column: str, stands: str, sheets: Sequence[Sheet], merges: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Return the readers of each value other than the one that stands, by value."""
    readers: dict[str, list[str]] = {}
    for sheet in sheets:
        code = sheet.codes.get(key, {}).get(column)
        if code is not None and stands not in (code, *merges.get(code, ())):
            readers.setdefault(",".join(merges.get(code, (code,))), []).append(sheet.name)
    return {values: " and ".join(names) for values, names in readers.items()}
