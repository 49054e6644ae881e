"""Rules of candidates: the rules of papers, which ignore open tags, and rules that only candidates can break."""

from collections.abc import Iterator, Mapping
from functools import partial

from orchtrace_corpus.base.findings import Finding, is_malformed, quote
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.disputes import disputable, value_of
from orchtrace_corpus.corpus.model.records import Entries, Exclusion, Loaded, Places, Pool, Record, folded_url
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
    taxonomy = loaded.pool.taxonomy
    places = file.places
    papers = tuple(candidate.paper for candidate in file.items)
    as_pool = Loaded(Pool(taxonomy, papers, ()), places, Places(places.file, []), file.findings)
    findings = [finding for rule in _CHECKS for finding in rule(as_pool)]
    findings += _check_tags(file, as_pool, taxonomy)
    findings += texts.find_markup(_candidate_texts(file.items, places))
    findings += texts.find_unpaired_quotes(_candidate_texts(file.items, places))
    facets_by_tag = disputable(taxonomy)
    for index, candidate in enumerate(file.items):
        findings += texts.sentence_findings("reason", candidate.reason, places, index, candidate.name)
        findings += _check_readings(candidate, index, places, facets_by_tag)
    findings += _find_decided(file.items, places, loaded)
    # The fields of a cut-off record after the syntax error were not read, so a rule may wrongly miss them.
    cut_off = places.cut_off_record
    findings = [finding for finding in findings if (finding.location.path, finding.record) != cut_off]
    findings = [*file.findings, *findings]
    if is_malformed(loaded.findings):  # a record that cannot be read may be the reason for a waiver
        remaining = apply_waivers(findings, as_pool, was_checked=lambda *_: False)
    else:
        remaining = apply_waivers(findings, as_pool)
    return tuple(sorted(remaining, key=lambda finding: (finding.location, finding.code, finding.message)))


def _check_tags(file: Entries[Candidate], loaded: Loaded, taxonomy: Taxonomy) -> Iterator[Finding]:
    """Yield the rules of the taxonomy that are broken whatever the open tags will be; readings count as evidence."""
    rules = tuple(rule for rule in taxonomy.rules if not rule.sparse and rule.evidence != (ANY_EVIDENCE,))
    facets_by_tag = disputable(taxonomy)
    papers = []
    for candidate in file.items:
        settled = {tag: facet for tag, facet in facets_by_tag.items() if tag not in candidate.open_tags}
        papers.append(candidate.paper_with_evidence(candidate.paper.tags, settled))
    with_readings = loaded._replace(pool=Pool(taxonomy._replace(rules=rules), tuple(papers), ()))
    unread = {candidate.name for candidate in file.items if not candidate.readings}
    for finding in tags.check_rules(with_readings, [candidate.open_tags for candidate in file.items]):
        if finding.code == "X103":  # about the taxonomy, and reported by the check of papers
            continue
        if finding.code in ("E101", "E102") and finding.record in unread:  # evidence comes with the readings
            continue
        yield finding


def _candidate_texts(candidates: tuple[Candidate, ...], places: Places) -> Iterator[texts.PlacedText]:
    """Yield the texts that only candidates have."""
    for index, candidate in enumerate(candidates):
        yield candidate.reason, "reason", partial(places.locate, index, "reason"), candidate.name
        for position, reading in enumerate(candidate.readings):
            for field in ("by", "note", "location"):
                text = getattr(reading, field)
                if text:
                    yield text, field, partial(places.locate, index, "readings", position, field), candidate.name


def _check_readings(
    candidate: Candidate, index: int, places: Places, facets_by_tag: Mapping[str, Facet]
) -> Iterator[Finding]:
    """Yield a finding for each settled tag that differs from a reading."""
    for position, reading in enumerate(candidate.readings):
        for tag, value in reading.tags.items():
            if tag in candidate.open_tags:
                continue
            settled = value_of(candidate.paper, facets_by_tag[tag], tag)
            if settled and settled != value:
                message = f"{quote(reading.by)} reads {tag} {quote(value)}, and the record says {quote(settled)}"
                fix = "take the tag out of the record, which leaves it open"
                place = places.locate(index, "readings", position, "tags", tag)
                yield Finding("X104", f"{message}; {fix}", place, candidate.name)


def _find_decided(candidates: tuple[Candidate, ...], places: Places, loaded: Loaded) -> Iterator[Finding]:
    """Yield a finding for each candidate with the key, identifier, URL or title of a paper or exclusion."""
    records_by_sign: dict[object, Record] = {("key", paper.key): paper for paper in loaded.papers if paper.key}
    records: tuple[Record, ...] = (*loaded.papers, *loaded.exclusions)
    records_by_sign |= {value: record for record in records for _, _, value in signs(record)}
    records_by_sign |= {("address", folded_url(exclusion.url)): exclusion for exclusion in loaded.exclusions}
    for index, candidate in enumerate(candidates):
        key: Sign = ("key", ("key",), ("key", candidate.name))
        for field, path, value in (key, *signs(candidate.paper)):
            if value in records_by_sign:
                record = records_by_sign[value]
                noun = "exclusion" if isinstance(record, Exclusion) else loaded.noun.one
                message = f"the {field} is that of the {noun} {quote(record.name)}, so it is decided"
                code = "D112" if field == "title" else "D111"
                yield Finding(code, f"{message}; remove the candidate", places.locate(index, *path), candidate.name)
                break
