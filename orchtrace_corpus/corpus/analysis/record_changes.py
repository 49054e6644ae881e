"""What became of one record: its fields old and new, evidence item by item, and what of it only a person can judge."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.corpus.model.field_table import EXCLUSION_FIELDS, PAPER_FIELDS, ReviewTopic
from orchtrace_corpus.corpus.model.record_fields import Value, fields
from orchtrace_corpus.corpus.model.records import Pool, Record


class ItemChange(NamedTuple):
    """An item of a list of mappings, such as evidence, that is new (no `before`), gone (no `after`) or changed."""

    before: Mapping[str, Value] | None
    after: Mapping[str, Value] | None


class Change(NamedTuple):
    """A field that has another value now; None where the record did not have it, or no longer does.

    A sub-decision, or whatever else has levels, is a field of its own. `is_unread` says that a value is
    not known since it could not be decoded. `items` are the changes of a list of mappings, item by item.
    """

    field: str
    before: Value | None
    after: Value | None
    is_unread: bool = False
    items: tuple[ItemChange, ...] = ()


class Changed(NamedTuple):
    """A record that was changed.

    Attributes:
        before: The record as it was.
        after: The record as it is.
        tags: What changed of its tags.
        rest: What changed of its other fields.
    """

    before: Record
    after: Record
    tags: tuple[Change, ...]
    rest: tuple[Change, ...]


_TOPICS = {field.name: field.review for field in (*PAPER_FIELDS, *EXCLUSION_FIELDS) if field.review is not None}
"""What there is to judge of a fixed field; of evidence it depends on the part that changed."""

_SOURCE_FIELDS = frozenset({"tags", "note", "source", "location", "verdict", "copy"})


class ToJudge(NamedTuple):
    """A record, by key or id, and what a person has to judge of it."""

    record: str
    topics: tuple[ReviewTopic, ...]


def between(
    old: Record, new: Record, sides: tuple[Mapping[str, Value], Mapping[str, Value]], unread: Collection[str]
) -> Changed | None:
    """Return the changes from one state of a record to another; None without any.

    Args:
        old: The record as it was.
        new: The record as it is.
        sides: Its YAML fields, as they were and as they are.
        unread: The fields of which a value is not known.
    """
    was, now = sides
    tags: list[Change] = []
    rest: list[Change] = []
    for field in dict.fromkeys((*was, *now)):
        before, after, is_unread = was.get(field), now.get(field), field in unread
        if field in old.tags or field in new.tags:
            tags += _tag_changes(field, before, after, is_unread)
        elif _comparable(before) != _comparable(after):
            items = () if is_unread else tuple(_item_changes(before, after))
            rest.append(Change(field, before, after, is_unread, items))
    return Changed(old, new, tuple(tags), tuple(rest)) if tags or rest else None


def _tag_changes(field: str, was: Value | None, now: Value | None, is_unread: bool) -> Iterator[Change]:
    """The change of a tag; of terms with levels, one for each term. Several terms have no order."""
    if not is_unread and (isinstance(was, Mapping) or isinstance(now, Mapping)):
        old, new = (value if isinstance(value, Mapping) else {} for value in (was, now))
        shifted = [Change(term, old.get(term), new.get(term)) for term in dict.fromkeys((*old, *new))]
        shifted = [change for change in shifted if change.before != change.after]
        if shifted:
            yield from shifted
            return
    if _unordered(was) != _unordered(now):
        yield Change(field, was, now, is_unread)


def _item_changes(before: Value | None, after: Value | None) -> Iterator[ItemChange]:
    """Yield the changes of the items of a list of mappings; an item became the one with most fields in common."""
    old, new = (
        [item for item in value or () if isinstance(item, Mapping)] if isinstance(value, Sequence) else []
        for value in (before, after)
    )
    removed = [item for item in old if item not in new]
    added = [item for item in new if item not in old]
    for item in added:
        alike = [sum(other.get(name) == value for name, value in item.items()) for other in removed]
        nearest = max(range(len(removed)), key=alike.__getitem__, default=None)
        is_changed = nearest is not None and (alike[nearest] > 0 or len(removed) == len(added) == 1)
        yield ItemChange(removed.pop(nearest) if is_changed and nearest is not None else None, item)
    yield from (ItemChange(item, None) for item in removed)


def to_judge(pool: Pool, added: Iterable[Record], changed: Iterable[Changed]) -> Iterator[ToJudge]:
    """Yield the questions about each new or changed record that a person has to judge."""
    own = {field.name: field.review for field in pool.taxonomy.fields}
    published = {column.field for column in (*pool.taxonomy.published, *pool.taxonomy.published_exclusions)}
    for record in added:
        topics = {topic for field in fields(record, pool.taxonomy) for topic in _topics(record, field, own)}
        yield ToJudge(record.name, tuple(topic for topic in ReviewTopic if topic in topics))
    for change_of_record in changed:
        topics = {ReviewTopic.TAGS} if change_of_record.tags else set()
        if not published.isdisjoint(
            change.field for change in change_of_record.tags if change_of_record.after.published
        ):
            topics.add(ReviewTopic.PUBLISHED)
        for change in change_of_record.rest:
            parts = {
                name
                for item in change.items
                for old, new in ((item.before or {}, item.after or {}),)
                for name in (*old, *new)
                if old.get(name) != new.get(name)
            }
            topics.update(_topics(change_of_record.after, change.field, own, parts or None))
        if topics:
            yield ToJudge(change_of_record.after.name, tuple(topic for topic in ReviewTopic if topic in topics))


def _topics(
    record: Record, field: str, own: Mapping[str, ReviewTopic | None], parts: Iterable[str] | None = None
) -> Iterator[ReviewTopic]:
    """Yield the topics of a field of a record, or of those parts of its items."""
    if field == "evidence":
        for part in (*_SOURCE_FIELDS, "level") if parts is None else parts:
            yield ReviewTopic.SOURCES if part in _SOURCE_FIELDS else ReviewTopic.LEVELS
    elif field in record.tags:
        yield ReviewTopic.TAGS
    elif topic := _TOPICS.get(field) or own.get(field):
        yield topic


def _unordered(value: Value | None) -> object:
    return value if value is None or isinstance(value, (str, int, float, Mapping)) else sorted(map(str, value))


def _comparable(value: Value | None) -> object:
    """The value without the order of evidence and waivers; that of authors and addresses has a meaning."""
    if (
        value is not None
        and not isinstance(value, (str, int, float, Mapping))
        and any(isinstance(v, Mapping) for v in value)
    ):
        return sorted(repr(_sorted(part)) for part in value)
    return value


def _sorted(part: Value) -> object:
    if isinstance(part, Mapping):
        return sorted((name, _sorted(value)) for name, value in part.items())
    return part if isinstance(part, (str, int, float)) else [_sorted(item) for item in part]
