"""The files of a corpus in a test: read, changed, compared."""

from pathlib import Path

from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.records import Pool
from tests.conftest import Result, run_corpus

FIRST_OF_MARCH = "1709251200"
"""The first of March 2024, in seconds since 1970."""


def run_in(root: Path, *words: str) -> Result:
    """Run `corpus` on a corpus without making it the working folder."""
    return run_corpus("--root", str(root), *words)


def edit(root: Path, old: str, new: str, name: str = store.PAPERS) -> None:
    """Replace the first occurrence of a text, which must be there, in a file of a corpus."""
    path = root / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def write_data(root: Path, **texts: str) -> None:
    """Write data files, each by its name without an ending."""
    for name, text in texts.items():
        (root / "data" / f"{name}.yaml").write_text(text, encoding="utf-8")


def contents(root: Path) -> dict[str, bytes]:
    """Return the content of each file below a folder, by relative path."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def pool_of(root: Path) -> Pool:
    """Return the pool of a corpus without errors."""
    pool = store.CorpusFiles(str(root)).loaded.pool
    assert pool is not None
    return pool
