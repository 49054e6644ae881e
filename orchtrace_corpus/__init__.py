"""Maintain a tagged literature corpus.

`load` reads a corpus, and `validate` reports the problems in it. `orchtrace_corpus.corpus` has further functions. Names
are imported when they are first used, so that the command line starts fast.
"""

from orchtrace_corpus.base import __version__
from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchtrace_corpus.base.errors import CorpusError
    from orchtrace_corpus.base.findings import Finding
    from orchtrace_corpus.corpus.api import Corpus, claims, load, validate
    from orchtrace_corpus.corpus.model.records import Evidence, Exclusion, Paper

__all__ = [
    "Corpus",
    "CorpusError",
    "Evidence",
    "Exclusion",
    "Finding",
    "Paper",
    "__version__",
    "claims",
    "load",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "CorpusError":
        from orchtrace_corpus.base.errors import CorpusError

        return CorpusError
    from orchtrace_corpus import corpus

    return getattr(corpus, name)
