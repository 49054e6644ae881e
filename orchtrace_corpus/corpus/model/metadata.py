"""What arXiv says of a paper, as a value that every source gives and every comparison takes."""

from typing import NamedTuple


class Metadata(NamedTuple):
    """One version of a paper, as arXiv describes it.

    Attributes:
        arxiv_id: The id in its normal form, without version.
        version: The version described, from 1 on.
        title: On one line, blanks collapsed; Unicode and TeX as arXiv gives them.
        authors: In arXiv's order, each as `Given Family`.
        abstract: On one line.
        published: When version 1 was submitted, as `YYYY-MM-DDTHH:MM:SSZ`.
        updated: When this version was submitted, in the same form.
        primary_category: The category that the paper is listed under first, such as `cs.MA`.
        categories: All of arXiv's own categories, the primary one included, in arXiv's order.
        comment: The authors' comment on this version.
        journal_ref: Where the paper appeared, in the authors' words.
        doi: The DOI of the published paper, in lower case; never arXiv's own.
    """

    arxiv_id: str
    version: int
    title: str
    authors: tuple[str, ...]
    abstract: str
    published: str
    updated: str
    primary_category: str
    categories: tuple[str, ...]
    comment: str | None = None
    journal_ref: str | None = None
    doi: str | None = None
