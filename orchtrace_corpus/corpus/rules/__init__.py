"""The rules that a decoded corpus is held to, beyond what each record's fields say by themselves.

A rule is a function from a loaded corpus to findings. To add one: write it in the module of its
subject, declare its code in `corpus.codes`, explain it in `rules.toml`, and name it in `CHECKS`.
"""

from collections.abc import Callable, Iterator

from orchtrace_corpus.base.findings import Finding, Severity
from orchtrace_corpus.corpus.model.records import Loaded, Places
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
    consistency.check_years,
    consistency.check_days,
    texts.check_markup,
    texts.check_quotes,
    texts.check_sentences,
    texts.check_placeholders,
    tags.check_rules,
    tags.check_sparse,
)
"""Every rule, in the order in which they run."""

_OUTSIDE = ("A", "L")
"""What the codes begin with that only a command which asks others can raise: `fetch` and `links`."""


def check(loaded: Loaded) -> tuple[Finding, ...]:
    """All findings of a corpus, those of decoding included and those waived left out, in the order of the lines."""
    findings = list(loaded.findings)
    if loaded.pool is not None:
        cut_off = {places.cut_off for places in (loaded.paper_places, loaded.exclusion_places)} - {None}
        for rule in CHECKS:
            for finding in rule(loaded):
                # What stands behind a syntax error may be just what the rule misses.
                if (finding.location.path, finding.record) not in cut_off:
                    findings.append(finding)  # noqa: PERF401
        findings = apply_waivers(findings, loaded)
    files = {path: order for order, path in enumerate(dict.fromkeys(f.location.path for f in findings))}
    return tuple(sorted(findings, key=lambda f: (files[f.location.path], f.location, f.code, f.message)))


def _is_seen_in_data(record: str, code: str) -> bool:
    """Whether the data alone shows if a waiver of the code waives anything; drift and dead links it does not."""
    del record
    return not code.startswith(_OUTSIDE)


def apply_waivers(
    findings: list[Finding], loaded: Loaded, is_judged: Callable[[str, str], bool] = _is_seen_in_data
) -> list[Finding]:
    """Leave out the warnings that their record waives, and report waivers that waived nothing.

    Args:
        findings: What was found.
        loaded: The corpus, with its waivers.
        is_judged: Whether the findings would hold a code of a record, by key and code, if there were
            anything to waive; a waiver of what nobody looked for is left alone.
    """
    waivers = list(_waivers(loaded))
    if not waivers:
        return findings
    waived = {(record, code) for record, code, _, _ in waivers}
    used = {(finding.record, finding.code) for finding in findings} & waived
    broken = {finding.record for finding in findings if finding.severity is Severity.ERROR}
    kept = [finding for finding in findings if (finding.record, finding.code) not in used]
    for record, code, places, (index, number) in waivers:
        unused = is_judged(record, code) and (record, code) not in used
        if unused and record not in broken:  # errors may have kept a rule from running
            message = f"nothing in the record raises {code}; remove the waiver"
            kept.append(Finding("F112", message, places.locate(index, "waive", number), record))
    return kept


def _waivers(loaded: Loaded) -> Iterator[tuple[str, str, Places, tuple[int, int]]]:
    """Every waiver: its record, its code, and where it stands."""
    for index, paper in enumerate(loaded.papers):
        for number, waiver in enumerate(paper.waive):
            yield paper.key, waiver.code, loaded.paper_places, (index, number)
    for index, exclusion in enumerate(loaded.exclusions):
        for number, waiver in enumerate(exclusion.waive):
            yield exclusion.id, waiver.code, loaded.exclusion_places, (index, number)
