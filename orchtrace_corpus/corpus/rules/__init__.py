"""The rules of a decoded corpus, beyond the form of single fields.

A rule is a function from a loaded corpus to findings; its docstring describes what it finds. To add one, write it in
the module of its subject, declare its code in `corpus.codes`, explain it in `rules.toml`, and add it to `CHECKS`.
"""

from collections.abc import Callable, Iterator, Sequence

from orchtrace_corpus.base.findings import Finding, Location, Severity, is_malformed
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

_NETWORK_SECTIONS = ("A", "L")
"""The first letters of codes that only `corpus fetch` and `corpus links` raise, not `CHECKS`."""


def check(loaded: Loaded) -> tuple[Finding, ...]:
    """Return the findings of decoding and of all rules, without waived ones, sorted by file and line."""
    findings = list(loaded.findings)
    if loaded.pool is not None:
        # The fields of a cut-off record after the syntax error were not read, so a rule may wrongly miss them.
        cut_off = (loaded.paper_places.cut_off_record, loaded.exclusion_places.cut_off_record)
        for rule in CHECKS:
            findings += [finding for finding in rule(loaded) if (finding.location.path, finding.record) not in cut_off]
        findings = apply_waivers(findings, loaded)
    paths = list(dict.fromkeys(finding.location.path for finding in findings))

    def sort_key(finding: Finding) -> tuple[int, Location, str, str]:
        return paths.index(finding.location.path), finding.location, finding.code, finding.message

    return tuple(sorted(findings, key=sort_key))


def apply_waivers(
    findings: list[Finding],
    loaded: Loaded,
    was_checked: Callable[[str, str], bool] = lambda _, code: not code.startswith(_NETWORK_SECTIONS),
) -> list[Finding]:
    """Return the findings without those that their record waives, and report waivers that waive nothing.

    `was_checked` returns True if the rule of a code was run for a record (its name). Only then can a waiver be unused.
    """
    papers: tuple[Sequence[Record], Places] = (loaded.papers, loaded.paper_places)
    places_by_waiver: dict[tuple[str, str], list[tuple[Places, int, int]]] = {}  # by the record's name and the code
    for records, places in (papers, (loaded.exclusions, loaded.exclusion_places)):
        for index, record in enumerate(records):
            for position, waiver in enumerate(record.waive):
                places_by_waiver.setdefault((record.name, waiver.code), []).append((places, index, position))
    if not places_by_waiver:
        return findings
    raised = {(finding.record, finding.code) for finding in findings}
    with_errors = {finding.record for finding in findings if finding.severity is Severity.ERROR}
    remaining = [finding for finding in findings if (finding.record, finding.code) not in places_by_waiver]
    if is_malformed(findings):  # the text that the waiver is about may follow the syntax error
        return remaining
    for (name, code), waiver_places in places_by_waiver.items():
        # An error in a record may keep a rule from running.
        if (name, code) not in raised and name not in with_errors and was_checked(name, code):
            message = f"nothing in the record raises {code}; remove the waiver"
            for places, index, position in waiver_places:
                remaining.append(Finding("F112", message, places.locate(index, "waive", position), name))
    return remaining
