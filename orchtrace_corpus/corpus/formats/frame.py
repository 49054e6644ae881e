"""The papers as a pandas frame, and as Parquet, which needs pyarrow."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.errors import MissingLibraryError
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Kind, Taxonomy

if TYPE_CHECKING:
    import pandas

_FIXED = ("title", "authors", "first_author", "affiliation", "year", "venue")
_MORE = ("arxiv_id", "doi", "openreview_id", "acl_id", "urls", "summary", "added", "notes")


def to_pandas(papers: Sequence[Paper], taxonomy: Taxonomy) -> "pandas.DataFrame":
    """One row for each paper, indexed by `key`; columns are fields, then facets in the taxonomy's order.

    A facet of one term is an ordered categorical over its vocabulary, so that a cross-tabulation can
    show unused terms; `NA` is one of its categories, and only an absent tag is missing. A facet of
    kind `levels` gives a column for each of its terms, whose values are the levels. `authors` and
    `urls` hold tuples, `added` is a date, `year` an integer. Evidence is left out: it has rows of its own.
    """
    import pandas as pd

    columns: dict[str, Any] = {name: [getattr(paper, name) for paper in papers] for name in (*_FIXED, *_MORE)}
    columns["added"] = pd.to_datetime(pd.Series(columns["added"], dtype="str"), format="%Y-%m-%d").to_numpy()
    for facet in taxonomy.papers:
        tags = [paper.tags.get(facet.field) for paper in papers]
        if facet.kind is Kind.LEVELS:
            levels = [level.id for level in facet.levels]
            for term in facet.terms:
                values = [tag.get(term.id) if isinstance(tag, dict) else None for tag in tags]
                columns[term.id] = pd.Categorical(values, levels, ordered=True)
        elif facet.kind is Kind.SINGLE:
            terms = [term.id for term in facet.terms] + (["NA"] if facet.allows_na else [])
            columns[facet.field] = pd.Categorical([str(tag) if tag else None for tag in tags], terms, ordered=True)
        else:
            columns[facet.field] = tags
    return pd.DataFrame(columns, index=pd.Index([paper.key for paper in papers], name="key"))


def write(papers: Sequence[Paper], taxonomy: Taxonomy, _profile: str, _categories: Mapping[str, str]) -> bytes:
    """The papers as a Parquet file, `key` its first column.

    Raises:
        MissingLibraryError: pyarrow is not installed.
    """
    import importlib.util

    if importlib.util.find_spec("pyarrow") is None:
        raise MissingLibraryError("Parquet", "pyarrow", "parquet")
    written: bytes = to_pandas(papers, taxonomy).reset_index().to_parquet(engine="pyarrow", index=False)
    return written
