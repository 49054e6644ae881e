"""Which records a survey has published, by `data/published.yaml`: a list, so that no date lets a later one in."""

from collections.abc import Collection
from typing import NamedTuple

from orchtrace_corpus.base.findings import Finding, quote
from orchtrace_corpus.base.yamlfile.reader import Mapping, Sequence, YamlFile
from orchtrace_corpus.corpus.model import fields
from orchtrace_corpus.corpus.model.fields import Report, Schema, decode_record


class PublishedPool(NamedTuple):
    """The records that a survey has published.

    Attributes:
        day: The day of publication, as `YYYY-MM-DD`.
        source: Where it was published.
        papers: The keys of the papers, in the published order.
        exclusions: The ids of the exclusions.
    """

    day: str
    source: str
    papers: tuple[str, ...]
    exclusions: tuple[str, ...] = ()


PUBLISHED_POOL = Schema(
    "the published pool",
    "day",
    {
        "day": fields.iso_date("day"),
        "source": fields.text("source"),
        "papers": fields.text_list("papers"),
        "exclusions": fields.text_list("exclusions"),
    },
    ("day", "source", "papers"),
)


def decode_published(file: YamlFile) -> PublishedPool | None:
    """Decode `data/published.yaml`; problems become findings. None if there are any."""
    node = file.root()
    values = None if node is None else decode_record(node, PUBLISHED_POOL, Report(file))
    return None if values is None or file.findings else PublishedPool(**values)


def missing_records(
    file: YamlFile, pool: PublishedPool, papers: Collection[str] | None, exclusions: Collection[str] | None
) -> tuple[Finding, ...]:
    """The records of the published pool that are not there, each at its place in the list.

    Args:
        file: The file that `pool` was decoded from.
        pool: The published pool.
        papers: The keys that there are; None if that is not known, since a part of the papers cannot be read.
        exclusions: The ids that there are, likewise.
    """
    found = []
    node = file.root()
    for field, noun, known in (("papers", "paper", papers), ("exclusions", "exclusion", exclusions)):
        listed = node.entries[field][1] if type(node) is Mapping and field in node.entries else None
        for name, item in zip(getattr(pool, field), listed.items if type(listed) is Sequence else (), strict=True):
            if known is not None and name not in known:
                message = f"there is no {noun} {quote(name)}, which the published pool has"
                found.append(Finding("F119", message, file.location(item.at), name))
    return tuple(found)
