"""The changes between two versions of a data file: every value by its path, before and after.

Nothing here knows a file's fields. Records are paired by their names and by the work that they are about; items of
lists inside them by the field that tells them apart. A file that is not read as records is compared line by line.
"""

import csv
import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from functools import cached_property
from io import StringIO
from itertools import zip_longest
from typing import Any, TypeAlias

from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, recognise, recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.base.yamlfile.record import values
from orchtrace_corpus.base.yamlfile.writer import comments
from orchtrace_corpus.corpus.model.field_table import EXCLUSION_FIELDS, PAPER_FIELDS, ReviewTopic
from orchtrace_corpus.corpus.model.records import Pool, address, folded_title

Value: TypeAlias = Any
"""A text, a list of values, or values by name."""

Place: TypeAlias = tuple[str | int | None, ...]
"""The path of a value: names of fields and indexes of items; None in a version that lacks it."""

Pair: TypeAlias = tuple[int | None, int | None]
"""An item of a list and its counterpart in another one, as indexes; None where there is none."""

MIN_SHARE_OF_RENAMED = 0.75
"""A record with another name, and no identifier, address or title, was renamed if so much of it is as it was."""

MAX_LABEL = 60
"""Items with longer names are called by their numbers."""

MAX_OTHER_BYTES = 1_000_000
"""Files that are not known as data, such as traces, are compared by their contents up to this size."""

MAX_COMPARISONS = 250_000
"""Records of two versions that share no name are compared with each other up to so many pairs."""


class ValueChange(NamedTuple):
    """A value that is new, gone or another one.

    Attributes:
        path: The names of the fields that lead to it from its record, items of lists in brackets.
        before: What was; None where there was nothing.
        after: What is; None where there is nothing.
        line: Where it stands in the file, as it is or, if it is gone, as it was; 0 where that is not known.
    """

    path: tuple[str, ...]
    before: Value | None
    after: Value | None
    line: int = 0


class Action(StrEnum):
    """The change of a record."""

    CHANGED = "changed"
    REMOVED = "removed"
    ADDED = "added"


class RecordChange(NamedTuple):
    """A record that is new, gone or changed; a file that is no list of records is one without a name.

    Attributes:
        name: What it is called, as it is or, if it is gone, as it was.
        was: What it was called; empty for a new one.
        change: What became of it.
        line: Where it begins, as for a value.
        values: The values that changed; of a new or removed record, all of its fields.
    """

    name: str
    was: str
    change: Action
    line: int
    values: tuple[ValueChange, ...]


class FileDifference(NamedTuple):
    """The changes of a data file.

    Attributes:
        path: Its path below the corpus's folder.
        subject: The name of the file or, for a file in a folder below the data, of the folder: papers, audits.
        records: The records that changed, then those that are gone, then the new ones.
        asides: What has another form and no other meaning: lists in another order, as names of their items; comments.
    """

    path: str
    subject: str
    records: tuple[RecordChange, ...]
    asides: tuple[ValueChange, ...]

    @property
    def is_pool(self) -> bool:
        """Return True if it holds the records of the pool, papers or exclusions."""
        return self.path in ("data/papers.yaml", "data/exclusions.yaml")


class DataText:
    """A data file as values with places; None in `content` where it is not read as such."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.data = path, data
        self.text = data.decode("utf-8", "backslashreplace")
        self.file = YamlFile(path, data)

        self.is_table = path.endswith(".csv")
        node = None if self.is_table or not path.endswith((".yaml", ".json")) else self.file.root()
        self.root = None if self.file.findings else node
        self._row_lines: list[int] = []

    @cached_property
    def content(self) -> Value | None:
        """Return the content of the file; in JSON, a text that would be a number without quotes keeps them."""
        if self.is_table:
            return self._rows()
        if self.root is None:
            return None
        quoted = re.finditer(r'"(?:-?[0-9.eE+-]+|true|false|null)"', self.text if self.path.endswith(".json") else "")
        return values(self.root, {match.start(): match[0] for match in quoted})

    def _rows(self) -> Value | None:
        """Return the rows of a table by its column names; None where a row has other columns, as a comment has."""
        table = csv.DictReader(StringIO(self.text, newline=""), strict=True)
        rows: list[Value] = []
        try:
            for row in table:
                rows.append(row)
                self._row_lines.append(table.line_num)
        except csv.Error:
            return None
        header = table.fieldnames or []
        is_regular = len(set(header)) == len(header) and not any(None in (*row, *row.values()) for row in rows)
        return rows if is_regular else None

    def line(self, place: Place) -> int:
        """Return the line of a value; 0 where the file is not read as values."""
        if self.is_table and place:
            return self._row_lines[int(place[0] or 0)]
        node = self.root
        for step in place:
            if isinstance(node, reader.Mapping):
                node = node.entries[str(step)][1]
            elif isinstance(node, reader.Sequence):
                node = node.items[int(step or 0)]
        return 0 if node is None else self.file.location(node.at).line


def compare_files(
    path: str, before: bytes | None, after: bytes | None, names: Sequence[str] | None, unordered: Collection[str] = ()
) -> FileDifference:
    """Return what changed between two versions of a data file; None stands for a file that is missing.

    Args:
        path: Its path below the corpus's folder.
        before: The earlier version.
        after: The later one.
        names: The fields that tell its records apart; None for a file that is not known as data.
        unordered: The fields whose lists have no order.
    """
    comparison = _Comparison(DataText(path, before or b""), DataText(path, after or b""), names, unordered)
    old: Value = comparison.old.content
    new: Value = comparison.new.content
    if before is None or after is None:
        empty: Value = [] if isinstance(old or new, list) else {}
        old, new = empty if before is None else old, empty if after is None else new
    sums = ValueChange(("file",), _checksum(before), _checksum(after), 1)
    is_large = names is None and max(len(before or b""), len(after or b"")) > MAX_OTHER_BYTES
    if is_large or max(map(len, (comparison.old.text + "\n" + comparison.new.text).split("\n"))) > reader.MAX_TEXT:
        records = _whole_file(before, after, [sums])
    elif _are_records(old, new):
        records = list(comparison.records(old, new))
    elif _are_mappings(old, new):
        records = _whole_file(before, after, comparison.values(old, new))
    else:
        records = _whole_file(before, after, comparison.lines())
    if not records and (before is None or after is None):
        records = _whole_file(before, after, [sums])
    records.sort(key=lambda record: [*Action].index(record.change))
    subject = path.split("/")[1].partition(".")[0]
    return FileDifference(path, subject, tuple(records), (*comparison.reordered, *comparison.comments()))


def _checksum(data: bytes | None) -> str | None:
    return None if data is None else f"{len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}"


def _whole_file(before: bytes | None, after: bytes | None, changes: Iterable[ValueChange]) -> list[RecordChange]:
    changed = tuple(changes)
    return [RecordChange("", "", _action(before, after), changed[0].line, changed)] if changed else []


def _action(before: object, after: object) -> Action:
    if before is None:
        return Action.ADDED
    return Action.REMOVED if after is None else Action.CHANGED


def _are_mappings(*sides: Value) -> bool:
    return all(isinstance(side, dict) for side in sides)


def _are_records(*sides: Value) -> bool:
    """Return True if all are lists of mappings; an empty list is one."""
    return all(isinstance(side, list) and _are_mappings(*side) for side in sides)


class _Comparison:
    """Compares two versions of a file; `reordered` collects the lists whose order has changed without a meaning."""

    def __init__(self, old: DataText, new: DataText, names: Sequence[str] | None, unordered: Collection[str]) -> None:
        self.old, self.new, self._names, self._unordered = old, new, names, unordered
        self.reordered: list[ValueChange] = []
        self._record: tuple[str, ...] = ()

    def records(self, before: list[Value], after: list[Value]) -> Iterator[RecordChange]:
        """Yield the change of each record, in the order of the later version; those that are gone come last."""
        names = self._names or _telling_apart(before, after)
        pairs = pair_items(before, after, names, MIN_SHARE_OF_RENAMED)
        for was, now in pairs:
            old_name = "" if was is None else _label(before[was], names, was, is_record=True)
            name = old_name if now is None else _label(after[now], names, now, is_record=True) or old_name
            old, new = {} if was is None else before[was], {} if now is None else after[now]
            self._record = (name,)
            if changes := tuple(self.values(old, new, (), (was,), (now,))):
                line = self.old.line((was,)) if now is None else self.new.line((now,))
                yield RecordChange(name, old_name, _action(was, now), line, changes)
        self._record = ()
        order = self._order((), pairs, before, names, 1)
        if order and self._names is None:
            yield RecordChange("", "", Action.CHANGED, 1, order)
        else:
            self.reordered += order

    def values(
        self, old: Value, new: Value, path: tuple[str, ...] = (), old_at: Place = (), new_at: Place = ()
    ) -> Iterator[ValueChange]:
        """Yield the values that differ below a path."""
        if old == new:
            return
        if _are_mappings(old, new):
            for name in dict.fromkeys((*old, *new)):
                inner = (*path, name), (*old_at, name), (*new_at, name)
                yield from self.values(old.get(name), new.get(name), *inner)
        elif isinstance(old, list) and isinstance(new, list) and not all(isinstance(i, str) for i in (*old, *new)):
            names = _telling_apart(old, new)
            pairs = pair_items(old, new, names)
            for was, now in pairs:
                before, after = None if was is None else old[was], None if now is None else new[now]
                index = was or 0 if now is None else now
                label = _label(before if after is None else after, names, index).strip("[]")
                label += _context(before, after) if label.isdecimal() else ""
                yield from self.values(before, after, (*path, f"[{label}]"), (*old_at, was), (*new_at, now))
            order = self._order(path, pairs, old, names, self.new.line(new_at))
            if self._names is None:
                yield from order
            else:
                self.reordered += (change._replace(path=(*self._record, *change.path)) for change in order)
        elif path[-1:] and path[-1] in self._unordered and _unordered(old) == _unordered(new):
            self.reordered.append(ValueChange((*self._record, *path), old, new, self.new.line(new_at)))
        else:
            yield ValueChange(path, old, new, self.old.line(old_at) if new is None else self.new.line(new_at))

    def _order(
        self, path: tuple[str, ...], pairs: Iterable[Pair], before: list[Value], names: Sequence[str], line: int
    ) -> tuple[ValueChange, ...]:
        """Return the change of the order of the items that both versions of a list have, by their names."""
        kept = [was for was, now in pairs if was is not None and now is not None]
        if kept == sorted(kept):
            return ()
        was, now = ([_label(before[i], names, i, is_record=not path) for i in order] for order in (sorted(kept), kept))
        return (ValueChange((*path, "order"), was, now, line),)

    def lines(self) -> Iterator[ValueChange]:
        """Yield the lines that differ."""
        before, after = (text.text.split("\n") for text in (self.old, self.new))
        for kind, start, end, new_start, new_end in SequenceMatcher(None, before, after).get_opcodes():
            if kind != "equal":
                for index, (was, now) in enumerate(zip_longest(before[start:end], after[new_start:new_end])):
                    line = (start if now is None else new_start) + index + 1
                    yield ValueChange((f"line {line}",), was, now, line)

    def comments(self) -> Iterator[ValueChange]:
        """Yield the comments of a YAML file that both versions have, if they are other ones."""
        if self.old.data and self.new.data and self.new.path.endswith(".yaml"):
            was, now = ([comment for _, comment in comments(text.text)] for text in (self.old, self.new))
            if was != now:
                yield ValueChange(("comments",), was, now, 1)


def _unordered(value: Value) -> Value:
    return sorted(map(str, value)) if isinstance(value, list) else value


def _label(item: Value, names: Sequence[str], index: int, *, is_record: bool = False) -> str:
    """Return what an item of a list is called by the fields that tell it apart; its number, if they are sentences."""
    label = " ".join(str(item.get(name, "")) for name in names).strip() if names else ""
    is_name = len(label) <= MAX_LABEL and len(label.split()) <= 2
    return label if label and (is_record or is_name) else f"[{index + 1}]"


def _context(before: Value, after: Value) -> str:
    """Return the beginning of a text that has not changed in an item without a name, so that a reader finds it."""
    if not _are_mappings(before, after):
        return ""
    kept = (text for name, text in after.items() if isinstance(text, str) and text == before.get(name))
    text = next((text for text in kept if " " in text or "://" in text), "")
    return f": {text[:MAX_LABEL]}{'…' if len(text) > MAX_LABEL else ''}" if text else ""


def _telling_apart(before: Sequence[Value], after: Sequence[Value]) -> tuple[str, ...]:
    """Return the field that tells the items of two lists apart: each has another text there; most are in both lists."""
    chosen: tuple[str, ...] = ()
    most_shared = 0
    if not _are_records(before, after):
        return chosen
    for name in dict.fromkeys(name for item in (*before, *after) for name in item):
        sides = [[item.get(name) for item in side] for side in (before, after)]
        if all(all(isinstance(text, str) for text in side) and len(set(side)) == len(side) for side in sides):
            shared = len(set(sides[0]) & set(sides[1]))
            if shared > most_shared:
                chosen, most_shared = (name,), shared
    return chosen


def signs(record: Value) -> list[Hashable]:
    """Return what two records about one work have in common, the strongest first; nothing for what is no record."""
    if not isinstance(record, Mapping):
        return []
    texts = {name: value for name, value in record.items() if isinstance(value, str)}
    urls = [url for url in record.get("urls") or [] if isinstance(url, str)] + [texts.get("url", "")]
    signs: list[Hashable] = [Identifier(kind, texts[kind.value]) for kind in IdentifierKind if kind.value in texts]
    known = (recognise(texts.get("identifier", "")), *map(recognise_url, urls))
    signs += [identifier for identifier in known if identifier is not None]
    return [*signs, *filter(None, (address(urls[0]), folded_title(texts.get("title", ""))))]


def _share(old: Value, new: Value) -> float:
    """Return how much of the later of two items is in the earlier one: all, if both are texts or both are lists."""
    if not _are_mappings(old, new):
        return float(type(old) is type(new))
    return len([name for name, value in new.items() if old.get(name) == value]) / max(len(new), 1)


def pair_items(
    before: Sequence[Value], after: Sequence[Value], names: Sequence[str], least_share: float = 0.5
) -> list[Pair]:
    """Return each item with its counterpart, as indexes, in the order of the later list; those that are gone come last.

    Items that say the same go together first; then those that share name and work; then those that share the work,
    which were renamed; then those that share the name alone. So a key that was given to another paper is not taken for
    a correction of the paper that had it. Of the others, those go together that share so much of their fields.
    """

    def named(item: Value) -> list[Hashable]:
        return [tuple(str(item.get(name, "")) for name in names)] if names else []

    counterparts: dict[int, int] = {}
    taken: set[int] = set()
    for features in (
        lambda item: [repr(item)],
        lambda item: [(name, sign) for name in named(item) for sign in signs(item)],
        signs,
        named,
    ):
        waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)  # those not taken, by each feature, in order
        for index, item in enumerate(before):
            for feature in features(item) if index not in taken else ():
                waiting[feature].append(index)
        for index, item in enumerate(after):
            if index in counterparts:
                continue
            for feature in features(item):
                candidates = waiting[feature]
                while candidates and candidates[0] in taken:
                    candidates.popleft()
                if candidates:
                    counterparts[index] = candidates.popleft()
                    taken.add(counterparts[index])
                    break
    left = [index for index, item in enumerate(before) if index not in taken and not signs(item)]
    new = [index for index, item in enumerate(after) if index not in counterparts and not signs(item)]
    for index in new if len(left) * len(new) <= MAX_COMPARISONS else ():
        shares = [_share(before[was], after[index]) for was in left]
        if shares and max(shares) >= least_share:
            counterparts[index] = left.pop(shares.index(max(shares)))
            taken.add(counterparts[index])
    pairs: list[Pair] = [(counterparts.get(index), index) for index in range(len(after))]
    return pairs + [(index, None) for index in range(len(before)) if index not in taken]


_TOPICS = {field.name: field.review for field in (*PAPER_FIELDS, *EXCLUSION_FIELDS) if field.review is not None}
"""The question that a change of a fixed field asks; for evidence it depends on the part that changed."""

_LEVEL_FIELDS = frozenset({"level", "confidence"})


class ToJudge(NamedTuple):
    """A question about a record; the path of its file is empty for papers and exclusions."""

    path: str
    record: str
    is_new: bool
    questions: tuple[ReviewTopic, ...]


def to_judge(files: Iterable[FileDifference], before: Pool, after: Pool) -> list[ToJudge]:
    """Return the questions about each record that a person has to judge: all changed and removed ones, then new ones.

    Of new records, those of papers and exclusions are judged.

    Args:
        files: What changed.
        before: The earlier state.
        after: The later state.
    """
    taxonomy = after.taxonomy
    tags = {facet.field for facet in (*taxonomy.papers, *taxonomy.exclusions)}
    own = {field.name: field.review for field in taxonomy.fields}
    coded = {column.field for column in (*taxonomy.published, *taxonomy.published_exclusions)}
    published = {record.name for pool in (before, after) for record in pool.records if record.published}
    judged: list[ToJudge] = []
    for file in files:
        for record in file.records:
            is_new = record.change is Action.ADDED
            topics: set[ReviewTopic] = {ReviewTopic.REMOVED} if record.change is Action.REMOVED else set()
            for change in () if topics or (is_new and not file.is_pool) else record.values:
                field = change.path[0]
                if not file.is_pool:
                    topics.add(ReviewTopic.CHANGED)
                elif field == "evidence":
                    parts = change.path[2:3] or ("source", "level")
                    topics |= {ReviewTopic.LEVELS if part in _LEVEL_FIELDS else ReviewTopic.SOURCES for part in parts}
                elif field in tags:
                    topics.add(ReviewTopic.TAGS)
                    if not is_new and field in coded and record.name in published:
                        topics.add(ReviewTopic.PUBLISHED)
                elif topic := _TOPICS.get(field) or own.get(field):
                    topics.add(topic)
                elif not is_new:
                    topics.add(ReviewTopic.CHANGED)
            if topics:
                path = "" if file.is_pool and record.name else file.path
                questions = tuple(topic for topic in ReviewTopic if topic in topics)
                judged.append(ToJudge(path, record.name, is_new, questions))
    return sorted(judged, key=lambda judgement: judgement.is_new)
