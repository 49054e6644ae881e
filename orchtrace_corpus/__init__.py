"""Keep a tagged literature corpus true.

`load` reads a corpus, `validate` reports its mistakes; see `orchtrace_corpus.corpus`. Names are imported
when they are first used, so that the command line starts fast.
"""

from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base import __version__

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

_HOMES = {
    "Corpus": "corpus.api",
    "claims": "corpus.api",
    "load": "corpus.api",
    "validate": "corpus.api",
    "CorpusError": "base.errors",
    "Finding": "base.findings",
    "Evidence": "corpus.model.records",
    "Exclusion": "corpus.model.records",
    "Paper": "corpus.model.records",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
