"""Waivers: a record says which warnings do not apply to it, and why."""

from collections.abc import Callable, Iterator

from orchtrace_corpus.base.findings import Finding, Severity
from orchtrace_corpus.corpus.codes import OUTSIDE
from orchtrace_corpus.corpus.model.records import Loaded, Places


def is_seen_in_data(record: str, code: str) -> bool:
    """Whether the data alone shows if a waiver of the code waives anything; drift and dead links it does not."""
    del record
    return not code.startswith(OUTSIDE)


def apply(
    findings: list[Finding], loaded: Loaded, is_judged: Callable[[str, str], bool] = is_seen_in_data
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
