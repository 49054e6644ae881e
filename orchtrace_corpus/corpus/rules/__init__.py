"""The rules that a decoded corpus is held to, beyond what each record's fields say by themselves.

A rule is a function from a loaded corpus to findings. To add one: write it in the module of its
subject, declare its code in `findings.RULES`, explain it in `rulebook`, and name it in `CHECKS`.
"""

from collections.abc import Callable, Iterator

from orchtrace_corpus.base.findings import Finding
from orchtrace_corpus.corpus.model.records import Loaded
from orchtrace_corpus.corpus.rules import dates, duplicates, evidence, exclusions, identifiers, tags, texts, waivers

CHECKS: tuple[Callable[[Loaded], Iterator[Finding]], ...] = (
    duplicates.check_keys,
    duplicates.check_exclusion_ids,
    duplicates.check_papers,
    duplicates.check_exclusions,
    duplicates.check_excluded_papers,
    exclusions.check_order,
    exclusions.check_promotions,
    identifiers.check_urls,
    identifiers.check_arxiv_years,
    dates.check_years,
    dates.check_days,
    texts.check_markup,
    texts.check_quotes,
    texts.check_sentences,
    texts.check_placeholders,
    tags.check_rules,
    evidence.check_sparse,
)
"""Every rule, in the order in which they run."""


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
        findings = waivers.apply(findings, loaded)
    files = {path: order for order, path in enumerate(dict.fromkeys(f.location.path for f in findings))}
    return tuple(sorted(findings, key=lambda f: (files[f.location.path], f.location, f.code, f.message)))
