"""The rules of a decoded corpus, beyond the form of single fields.

A rule is a function from a loaded corpus to findings. To add one: write it in the module of its
subject, declare its code in `corpus.codes`, explain it in `rules.toml`, and name it in `CHECKS`.
"""

from collections.abc import Callable, Iterator, Sequence

from orchtrace_corpus.base.findings import Finding, Severity, is_malformed
from orchtrace_corpus.corpus.model.records import Loaded, Places, Record
from orchtrace_corpus.corpus.rules import consistency, duplicates, tags, texts

CHECKS: tuple[Callable[[Loaded], Iterator[Finding]], ...] = (
    duplicates.check_keys,
    duplicates.check_exclusion_ids,
    duplicates.check_papers,
    duplicates.check_exclusions,
    duplicates.check_excluded_papers,
    consistency.check_order,
    consistency.check_promotions,
    consistency.check_urls,
    consistency.check_arxiv_years,
    consistency.check_venue_years,
    consistency.check_years,
    consistency.check_days,
    texts.check_markup,
    texts.check_quotes,
    texts.check_names,
    texts.check_sentences,
    texts.check_placeholders,
    texts.check_lookalikes,
    tags.check_rules,
    tags.check_sparse,
    tags.check_sourced,
    tags.check_own_sources,
)
"""Every rule, in the order in which they run."""

_OUTSIDE = ("A", "L")
"""The sections of codes that only `fetch` and `links` raise."""


def check(loaded: Loaded) -> tuple[Finding, ...]:
    """Return the findings of a corpus, those of decoding included, without waived ones, in the order of the lines."""
    findings = list(loaded.findings)
    if loaded.pool is not None:
        cut_off = {places.cut_off_record for places in (loaded.paper_places, loaded.exclusion_places)} - {None}
        raised = (finding for rule in CHECKS for finding in rule(loaded))
        # What a rule does not find in such a record may stand after the syntax error.
        findings += (finding for finding in raised if (finding.location.path, finding.record) not in cut_off)
        findings = apply_waivers(findings, loaded)
    files = {path: order for order, path in enumerate(dict.fromkeys(f.location.path for f in findings))}
    return tuple(sorted(findings, key=lambda f: (files[f.location.path], f.location, f.code, f.message)))


def apply_waivers(
    findings: list[Finding],
    loaded: Loaded,
    is_judged: Callable[[str, str], bool] = lambda _, code: not code.startswith(_OUTSIDE),
) -> list[Finding]:
    """Return the findings without those that their record waives, and report waivers that waive nothing.

    `is_judged` returns True if the rules of a code were run for a record. Only then can a waiver be unused.
    """
    papers: tuple[Sequence[Record], Places] = (loaded.papers, loaded.paper_places)
    waivers = [
        (record.name, waiver.code, places, (index, position))
        for records, places in (papers, (loaded.exclusions, loaded.exclusion_places))
        for index, record in enumerate(records)
        for position, waiver in enumerate(record.waive)
    ]
    if not waivers:
        return findings
    waived = {(record, code) for record, code, _, _ in waivers}
    used = {(finding.record, finding.code) for finding in findings} & waived
    broken = {finding.record for finding in findings if finding.severity is Severity.ERROR}
    remaining = [finding for finding in findings if (finding.record, finding.code) not in used]
    if is_malformed(findings):  # the text that the waiver is about may follow the error
        return remaining
    for record, code, places, (index, position) in waivers:
        unused = is_judged(record, code) and (record, code) not in used
        if unused and record not in broken:  # errors may have kept a rule from running
            message = f"nothing in the record raises {code}; remove the waiver"
            remaining.append(Finding("F112", message, places.locate(index, "waive", position), record))
    return remaining
