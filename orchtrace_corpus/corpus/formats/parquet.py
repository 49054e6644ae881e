"""Papers as Parquet: the columns of `to_pandas()`, with their types. Needs pyarrow, which is optional."""

from collections.abc import Mapping, Sequence

from orchtrace_corpus.base.errors import MissingLibraryError
from orchtrace_corpus.corpus.formats.frame import to_pandas
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy


def write(papers: Sequence[Paper], taxonomy: Taxonomy, profile: str, categories: Mapping[str, str]) -> bytes:
    """The papers as a Parquet file, `key` its first column.

    Raises:
        MissingLibraryError: pyarrow is not installed.
    """
    del profile, categories
    import importlib.util

    if importlib.util.find_spec("pyarrow") is None:
        raise MissingLibraryError("Parquet", "pyarrow", "parquet")
    written: bytes = to_pandas(papers, taxonomy).reset_index().to_parquet(engine="pyarrow", index=False)
    return written
