"""A tagged literature corpus that is read, checked, compared and changed.

This is its Python interface. Names are imported when they are first used, so that the command line starts fast:

    from orchtrace_corpus import corpus

    pool = corpus.load()                     # a Corpus: papers, exclusions, counts, filters, export
    corpus.validate()                        # every problem in the data, as findings
    corpus.check().exit_code                 # the checks that a pull request must pass
    corpus.claims()                          # the verdict on each claim of the corpus about itself
    corpus.candidates()                      # papers that were found and await a decision
    corpus.diff("HEAD~1", "HEAD").added      # a change in meaning: papers, tags, counts, claims
    details = corpus.Details(title="A Team", authors="Doe, Jo", year=2026, venue="Blog")
    corpus.add(["https://example.org/team"], details, {"rl": "none", ...}, dry_run=True)  # dry_run writes no file
"""

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any
from orchtrace_corpus.corpus import codes as codes

if TYPE_CHECKING:
    from orchtrace_corpus.base.findings import Finding
    from orchtrace_corpus.corpus.analysis.claims import Verdict
    from orchtrace_corpus.corpus.analysis.difference import Difference
    from orchtrace_corpus.corpus.api import Corpus, candidates, claims, load, validate
    from orchtrace_corpus.corpus.checks import Check, Part, PartName, check
    from orchtrace_corpus.corpus.intake.drafts import Addition, Details, add
    from orchtrace_corpus.corpus.model.candidates import Candidate
    from orchtrace_corpus.corpus.model.records import Evidence, Exclusion, Paper, Pool
    from orchtrace_corpus.corpus.model.taxonomy import Taxonomy
    from orchtrace_corpus.corpus.states import diff

__all__ = ["Addition", "Candidate", "Check", "Corpus", "Details", "Difference", "Evidence", "Exclusion", "Finding"]
__all__ += ["Paper", "Part", "PartName", "Pool", "Taxonomy", "Verdict"]
__all__ += ["add", "candidates", "check", "claims", "diff", "load", "validate"]

_MODULES = {
    "base.findings": ("Finding",),
    "corpus.analysis.claims": ("Verdict",),
    "corpus.analysis.difference": ("Difference",),
    "corpus.api": ("Corpus", "candidates", "claims", "load", "validate"),
    "corpus.checks": ("Check", "Part", "PartName", "check"),
    "corpus.intake.drafts": ("Addition", "Details", "add"),
    "corpus.model.candidates": ("Candidate",),
    "corpus.model.records": ("Evidence", "Exclusion", "Paper", "Pool"),
    "corpus.model.taxonomy": ("Taxonomy",),
    "corpus.states": ("diff",),
}
"""The module below `orchtrace_corpus` that each name comes from."""


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            from importlib import import_module  # Python also calls this for submodules, which do not need it

            return getattr(import_module(f"orchtrace_corpus.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
