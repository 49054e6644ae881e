"""Rules of candidates: those of papers for settled tags, and no candidate that is decided already."""

from collections.abc import Iterator, Mapping
from functools import partial

from orchtrace_corpus.base.findings import Finding, is_malformed, quote
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.disputes import disputable, value_of
from orchtrace_corpus.corpus.model.records import Entries, Exclusion, Loaded, Places, Pool, Record, address
from orchtrace_corpus.corpus.model.taxonomy import ANY_EVIDENCE, Facet, Taxonomy
from orchtrace_corpus.corpus.rules import apply_waivers, consistency, duplicates, tags, texts
from orchtrace_corpus.corpus.rules.duplicates import Sign, signs

_CHECKS = (
    duplicates.check_keys,
    duplicates.check_papers,
    consistency.check_urls,
    consistency.check_arxiv_years,
    consistency.check_years,
    texts.check_markup,
    texts.check_names,
    texts.check_quotes,
    texts.check_sentences,
    texts.check_lookalikes,
)


def check(file: Entries[Candidate], loaded: Loaded) -> tuple[Finding, ...]:
    """Return all findings of the file of candidates, in the order of its lines."""
    if file.places is None or loaded.pool is None:
        return file.findings
    taxonomy, places = loaded.pool.taxonomy, file.places
    papers = tuple(candidate.paper for candidate in file.items)
    candidates = Loaded(Pool(taxonomy, papers, ()), places, Places(places.file, []), file.findings)
    findings = [finding for rule in _CHECKS for finding in rule(candidates)]
    findings += _tag_findings(file, candidates, taxonomy)
    findings += texts.find_markup(_texts(file.items, places))
    findings += texts.find_unpaired_quotes(_texts(file.items, places))
    facets = disputable(taxonomy)
    for index, candidate in enumerate(file.items):
        findings += texts.sentence_findings("reason", candidate.reason, places, index, candidate.name)
        findings += _contradicted(candidate, index, places, facets)
    findings += _decided(file.items, places, loaded)
    # The text after a syntax error may hold what a rule misses.
    raised = [finding for finding in findings if (finding.location.path, finding.record) != places.cut_off_record]
    everything = [*file.findings, *raised]
    if is_malformed(loaded.findings):  # what a waiver is about may be among the records that cannot be read
        remaining = apply_waivers(everything, candidates, lambda *_: False)
    else:
        remaining = apply_waivers(everything, candidates)
    return tuple(sorted(remaining, key=lambda finding: (finding.location, finding.code, finding.message)))


def _tag_findings(file: Entries[Candidate], loaded: Loaded, taxonomy: Taxonomy) -> Iterator[Finding]:
    """Yield the broken rules of the taxonomy, whatever the open tags will be; readings count as evidence."""
    rules = tuple(rule for rule in taxonomy.rules if not rule.sparse and rule.evidence != (ANY_EVIDENCE,))
    facets = disputable(taxonomy)
    papers = tuple(
        candidate.paper_with_evidence(
            candidate.paper.tags, {tag: facet for tag, facet in facets.items() if tag not in candidate.open_tags}
        )
        for candidate in file.items
    )
    judged = loaded._replace(pool=Pool(taxonomy._replace(rules=rules), papers, ()))
    unread = {item.name for item in file.items if not item.readings}
    for finding in tags.check_rules(judged, [candidate.open_tags for candidate in file.items]):
        is_open = finding.code in ("E101", "E102") and finding.record in unread  # evidence is given with the last tags
        if finding.code != "X103" and not is_open:  # which is said where the papers are judged
            yield finding


def _texts(candidates: tuple[Candidate, ...], places: Places) -> Iterator[texts.PlacedText]:
    """Yield the texts that only candidates have."""
    for index, candidate in enumerate(candidates):
        yield candidate.reason, "reason", partial(places.locate, index, "reason"), candidate.name
        for position, reading in enumerate(candidate.readings):
            for field in ("by", "note", "location"):
                if text := getattr(reading, field):
                    yield text, field, partial(places.locate, index, "readings", position, field), candidate.name


def _contradicted(candidate: Candidate, index: int, places: Places, facets: Mapping[str, Facet]) -> Iterator[Finding]:
    """Yield the settled tags that a reader reads differently."""
    for position, reading in enumerate(candidate.readings):
        for tag, value in reading.tags.items():
            if tag in candidate.open_tags:
                continue
            held = value_of(candidate.paper, facets[tag], tag)
            if held and held != value:
                message = f"{quote(reading.by)} reads {tag} {quote(value)}, and the record says {quote(held)}"
                fix = "take the tag out of the record, which leaves it open"
                place = places.locate(index, "readings", position, "tags", tag)
                yield Finding("X104", f"{message}; {fix}", place, candidate.name)


def _decided(candidates: tuple[Candidate, ...], places: Places, loaded: Loaded) -> Iterator[Finding]:
    """Yield the candidates that are in the pool or excluded already, by key, identifier, address or title."""
    decided: dict[object, Record] = {("key", paper.key): paper for paper in loaded.papers if paper.key}
    records: tuple[Record, ...] = (*loaded.papers, *loaded.exclusions)
    decided |= {value: record for record in records for _, _, value in signs(record)}
    decided |= {("address", address(exclusion.url)): exclusion for exclusion in loaded.exclusions}
    for index, candidate in enumerate(candidates):
        key: Sign = ("key", ("key",), ("key", candidate.name))
        for field, path, value in (key, *signs(candidate.paper)):
            if value in decided:
                record = decided[value]
                noun = "exclusion" if isinstance(record, Exclusion) else loaded.noun.one
                message = f"the {field} is that of the {noun} {quote(record.name)}, so it is decided"
                code = "D112" if field == "title" else "D111"
                yield Finding(code, f"{message}; remove the candidate", places.locate(index, *path), candidate.name)
                break
