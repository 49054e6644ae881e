"""A data file that corpora do not have: reviews of papers. Its row and this module are all that it takes."""

from collections.abc import Collection
from typing import NamedTuple

from orchtrace_corpus.base.findings import Finding, quote
from orchtrace_corpus.base.yamlfile.decoders import Report, Schema, decode_record
from orchtrace_corpus.base.yamlfile.reader import Mapping, YamlFile
from orchtrace_corpus.base.yamlfile.writer import Style
from orchtrace_corpus.corpus.model.field_table import FieldKind, RecordField
from orchtrace_corpus.corpus.model.fields import field_decoder
from orchtrace_corpus.corpus.model.store import DataFile

ROW = DataFile(
    "reviews",
    "data/reviews.yaml",
    ("model.reviews:decode_reviews", "data/reviews.yaml", "known_keys"),
    schema="model.reviews:REVIEW_FIELDS",
    style=("model.reviews:review_style",),
    key_fields=("paper", "by"),
    is_formatted=True,
)

REVIEW_FIELDS = (
    RecordField("paper", FieldKind.KEY, "The paper's key.", required=True),
    RecordField("by", FieldKind.TEXT, "Who wrote it.", required=True),
    RecordField("stars", FieldKind.NUMBER, "From 1 to 5."),
    RecordField("text", FieldKind.TEXT, "The review.", required=True),
)


class ReviewFile(NamedTuple):
    """The reviews as read, and the mistakes."""

    reviews: tuple[dict[str, object], ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def total(self) -> int:
        """How many reviews there are."""
        return len(self.reviews)


def decode_reviews(file: YamlFile | None, keys: Collection[str] | None) -> ReviewFile:
    """Decode a list of reviews, if there is one, of papers that are there."""
    if file is None:
        return ReviewFile()
    required = tuple(field.name for field in REVIEW_FIELDS if field.required)
    schema = Schema("a review", "paper", {field.name: field_decoder(field) for field in REVIEW_FIELDS}, required)
    report, reviews = Report(file), []
    for node in file.records():
        report.record = ""
        values = decode_record(node, schema, report) or {}
        key = values.get("paper")
        if type(node) is Mapping and key is not None and keys is not None and key not in keys:
            report.add("V102", node.entries["paper"][1].at, f"there is no paper {quote(key)}")
        reviews.append(values)
    return ReviewFile(tuple(reviews), tuple(file.findings))


def review_style() -> Style:
    """Return how reviews are written."""
    return Style(tuple(field.name for field in REVIEW_FIELDS), bare=frozenset({"stars"}))
