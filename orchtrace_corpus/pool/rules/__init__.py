"""The rules that a decoded corpus is held to, beyond what each record's fields say by themselves.

A rule is a function from a loaded corpus to findings. To add one: write it in the module of its
subject, declare its code in `findings.RULES`, and name it in `CHECKS`.
"""

from collections.abc import Callable, Iterator

from orchtrace_corpus.findings import Finding
from orchtrace_corpus.pool.model import Loaded
from orchtrace_corpus.pool.rules import duplicates

CHECKS: tuple[Callable[[Loaded], Iterator[Finding]], ...] = (
    duplicates.check_keys,
    duplicates.check_exclusion_ids,
    duplicates.check_identifiers,
)
"""Every rule, in the order in which they run."""


def check(loaded: Loaded) -> tuple[Finding, ...]:
    """All findings of a corpus, those of decoding included, in the order of the files' lines."""
    findings = list(loaded.findings)
    if loaded.pool is not None:
        for rule in CHECKS:
            findings.extend(rule(loaded))
    files = {path: order for order, path in enumerate(dict.fromkeys(f.location.path for f in findings))}
    return tuple(sorted(findings, key=lambda f: (files[f.location.path], f.location, f.code, f.message)))
