"""The changes between two versions of a data file: every value by its path, before and after.

No fields of files are known here, but their names. Records are paired by their names and by the works that they are
about, items of lists by a field in which they differ. A file that cannot be read as records is compared by lines.
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

from orchtrace_corpus.base.annotations import Any, TypeAlias
from orchtrace_corpus.base.identifiers import Identifier, IdentifierKind, recognise, recognise_url
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.base.yamlfile.record import values
from orchtrace_corpus.base.yamlfile.writer import comments
from orchtrace_corpus.corpus.model.field_table import EXCLUSION_FIELDS, PAPER_FIELDS, ReviewTopic
from orchtrace_corpus.corpus.model.records import Pool, folded_title, folded_url

Value: TypeAlias = Any
"""A text, a list of values, or values by name."""

Place: TypeAlias = tuple[str | int | None, ...]
"""The path of a value: names of fields and indexes of items; None in a version without it."""

Pair: TypeAlias = tuple[int | None, int | None]
"""The indexes of an item and of its counterpart in the later list; None where there is none."""

MIN_SHARE_OF_RENAMED = 0.75
"""The share of unchanged fields from which records without identifier, address and title are one renamed record."""

MAX_LABEL = 60
"""The length of the longest name by which an item is called; others are called by their numbers."""

MAX_OTHER_BYTES = 1_000_000
"""The size of the largest file of unknown format, such as a trace, whose content is compared."""

MAX_COMPARISONS = 250_000
"""The most pairs of records without a common name that are compared with each other."""


class ValueChange(NamedTuple):
    """A value that was added, removed or changed; None before or after if there was none.

    Attributes:
        path: The names of the fields that lead to it from its record, items of lists in brackets.
        line: The line in the later file, or in the earlier one for a removed value; 0 if unknown.
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
    """A record that was added, removed or changed; a file that is no list of records is one without a name.

    Attributes:
        name: The later name, or the earlier one of a removed record.
        was: The earlier name; empty for an added record.
        values: The values that changed; of an added or removed record, all of its fields.
    """

    name: str
    was: str
    change: Action
    line: int
    values: tuple[ValueChange, ...]


class FileDifference(NamedTuple):
    """The changes of a data file, by its path below the corpus's folder.

    Attributes:
        subject: The name of the file, or of its folder below the data: papers, audits.
        records: The changed records, then the removed ones, then the added ones.
        asides: The changes of form: lists in another order, by the names of their items, and comments.
    """

    path: str
    subject: str
    records: tuple[RecordChange, ...]
    asides: tuple[ValueChange, ...]

    @property
    def is_pool(self) -> bool:
        """Return True for the files of papers and exclusions."""
        return self.path in ("data/papers.yaml", "data/exclusions.yaml")


class DataText:
    """A data file as values with places."""

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
        """The content of the file; None if it cannot be read as values.

        In JSON, a text that would be another value without its quotes keeps them.
        """
        if self.is_table:
            return self._rows()
        if self.root is None:
            return None
        quoted = re.finditer(r'"(?:-?[0-9.eE+-]+|true|false|null)"', self.text if self.path.endswith(".json") else "")
        return values(self.root, {match.start(): match[0] for match in quoted})

    def _rows(self) -> Value | None:
        """Return the rows of a table by its column names; None if a row has other columns, such as a comment."""
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
        """Return the line of a value; 0 if the file cannot be read as values."""
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
    """Return the changes between two versions of a data file; None stands for a missing file.

    `names` are the fields that name its records; None for a file of unknown format. `unordered` are the fields whose
    lists have no order.
    """
    comparison = _Comparison(DataText(path, before or b""), DataText(path, after or b""), names, unordered)
    old: Value = comparison.old.content
    new: Value = comparison.new.content
    is_whole = before is None or after is None
    if is_whole:
        empty: Value = [] if isinstance(old or new, list) else {}
        old, new = empty if before is None else old, empty if after is None else new
    is_large = names is None and max(len(before or b""), len(after or b"")) > MAX_OTHER_BYTES
    has_long_line = max(map(len, f"{comparison.old.text}\n{comparison.new.text}".split("\n"))) > reader.MAX_TEXT
    records: list[RecordChange] = []
    changes: list[ValueChange] = []
    if is_large or has_long_line:
        is_whole = True
    elif _are_records(old, new):
        records = list(comparison.records(old, new))
    elif _are_mappings(old, new):
        changes = list(comparison.values(old, new))
    else:
        changes = list(comparison.lines())
    if is_whole and not records and not changes:
        was, now = (
            None if data is None else f"{len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}"
            for data in (before, after)
        )
        changes = [ValueChange(("file",), was, now, 1)]
    if changes:
        records = [RecordChange("", "", _action(before, after), changes[0].line, tuple(changes))]
    records.sort(key=lambda record: [*Action].index(record.change))
    subject = path.split("/")[1].partition(".")[0]
    return FileDifference(path, subject, tuple(records), (*comparison.reordered, *comparison.comments()))


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
    """Compares two versions of a file; `reordered` collects the lists of which only the order has changed."""

    def __init__(self, old: DataText, new: DataText, names: Sequence[str] | None, unordered: Collection[str]) -> None:
        self.old, self.new, self._names, self._unordered = old, new, names, unordered
        self.reordered: list[ValueChange] = []
        self._record: tuple[str, ...] = ()

    def records(self, before: list[Value], after: list[Value]) -> Iterator[RecordChange]:
        """Yield the change of each record, in the order of the later version; removed records come last."""
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
        """Yield the values that differ, with `path` and their places in both versions."""
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
        elif path and path[-1] in self._unordered and type(old) is type(new) is list and sorted(old) == sorted(new):
            self.reordered.append(ValueChange((*self._record, *path), old, new, self.new.line(new_at)))
        else:
            yield ValueChange(path, old, new, self.old.line(old_at) if new is None else self.new.line(new_at))

    def _order(
        self, path: tuple[str, ...], pairs: Iterable[Pair], before: list[Value], names: Sequence[str], line: int
    ) -> tuple[ValueChange, ...]:
        """Return the change of the order of the items that are in both versions of a list, by their names."""
        indexes = [was for was, now in pairs if was is not None and now is not None]
        if indexes == sorted(indexes):
            return ()
        labels = {index: _label(before[index], names, index, is_record=not path) for index in indexes}
        return (ValueChange((*path, "order"), [labels[i] for i in sorted(labels)], [*labels.values()], line),)

    def lines(self) -> Iterator[ValueChange]:
        """Yield the lines that differ."""
        before, after = (text.text.split("\n") for text in (self.old, self.new))
        for kind, start, end, new_start, new_end in SequenceMatcher(None, before, after).get_opcodes():
            if kind != "equal":
                for index, (was, now) in enumerate(zip_longest(before[start:end], after[new_start:new_end])):
                    line = (start if now is None else new_start) + index + 1
                    yield ValueChange((f"line {line}",), was, now, line)

    def comments(self) -> Iterator[ValueChange]:
        """Yield the comments of a YAML file if they have changed."""
        if self.old.data and self.new.data and self.new.path.endswith(".yaml"):
            was, now = ([comment for _, comment in comments(text.text)] for text in (self.old, self.new))
            if was != now:
                yield ValueChange(("comments",), was, now, 1)


def _label(item: Value, names: Sequence[str], index: int, *, is_record: bool = False) -> str:
    """Return the name of an item of a list, or its number if it has none or a sentence for a name."""
    label = " ".join(str(item.get(name, "")) for name in names).strip() if names else ""
    is_name = len(label) <= MAX_LABEL and len(label.split()) <= 2
    return label if label and (is_record or is_name) else f"[{index + 1}]"


def _context(before: Value, after: Value) -> str:
    """Return the beginning of an unchanged text of an item without a name, by which a reader recognises it."""
    if not _are_mappings(before, after):
        return ""
    unchanged = (text for name, text in after.items() if isinstance(text, str) and text == before.get(name))
    text = next((text for text in unchanged if " " in text or "://" in text), "")
    return f": {text[:MAX_LABEL]}{'…' if len(text) > MAX_LABEL else ''}" if text else ""


def _telling_apart(before: Sequence[Value], after: Sequence[Value]) -> tuple[str, ...]:
    """Return the field in which all items of a list have different texts and most texts are in both lists."""
    if not _are_records(before, after):
        return ()
    shared = {}
    for name in dict.fromkeys(name for item in (*before, *after) for name in item):
        sides = [[item.get(name) for item in side] for side in (before, after)]
        if all(all(isinstance(text, str) for text in side) and len(set(side)) == len(side) for side in sides):
            shared[name] = len({*sides[0]} & {*sides[1]})
    best = max(shared, key=shared.__getitem__, default="")
    return (best,) if shared.get(best) else ()


def signs(record: Value) -> list[Hashable]:
    """Return the signs that two records about one work share, the strongest first; nothing for any other value."""
    if not isinstance(record, Mapping):
        return []
    texts = {name: value for name, value in record.items() if isinstance(value, str)}
    urls = [url for url in record.get("urls") or [] if isinstance(url, str)] + [texts.get("url", "")]
    signs: list[Hashable] = [Identifier(kind, texts[kind.value]) for kind in IdentifierKind if kind.value in texts]
    identifiers = (recognise(texts.get("identifier", "")), *map(recognise_url, urls))
    signs += [identifier for identifier in identifiers if identifier is not None]
    return [*signs, *filter(None, (folded_url(urls[0]), folded_title(texts.get("title", ""))))]


def _share(old: Value, new: Value) -> float:
    """Return the share of the fields of the later item that are unchanged; 1 if both are texts or both are lists."""
    if not _are_mappings(old, new):
        return float(type(old) is type(new))
    return len([name for name, value in new.items() if old.get(name) == value]) / max(len(new), 1)


def pair_items(
    before: Sequence[Value], after: Sequence[Value], names: Sequence[str], least_share: float = 0.5
) -> list[Pair]:
    """Return each item with its counterpart, in the order of the later list; removed items come last.

    First equal items are paired, then those with the same name and work, then those with the same work, which were
    renamed, then those with the same name. So a key that was given to another paper is not taken for a correction of
    the earlier one. Of the rest, items are paired that have at least `least_share` of their fields in common.
    """

    def named(item: Value) -> list[Hashable]:
        return [tuple(str(item.get(name, "")) for name in names)] if names else []

    counterparts: dict[int, int] = {}
    paired: set[int] = set()
    for features in (
        lambda item: [repr(item)],
        lambda item: [(name, sign) for name in named(item) for sign in signs(item)],
        signs,
        named,
    ):
        waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)  # items not taken, by each feature, in order
        for index, item in enumerate(before):
            if index not in paired:
                for feature in features(item):
                    waiting[feature].append(index)
        for index, item in enumerate(after):
            if index in counterparts:
                continue
            for feature in features(item):
                candidates = waiting[feature]
                while candidates and candidates[0] in paired:
                    candidates.popleft()
                if candidates:
                    counterparts[index] = candidates.popleft()
                    paired.add(counterparts[index])
                    break
    unpaired = [index for index, item in enumerate(before) if index not in paired and not signs(item)]
    new = [index for index, item in enumerate(after) if index not in counterparts and not signs(item)]
    if len(unpaired) * len(new) > MAX_COMPARISONS:
        new = []
    for index in new:
        shares = [_share(before[was], after[index]) for was in unpaired]
        if shares and max(shares) >= least_share:
            counterparts[index] = unpaired.pop(shares.index(max(shares)))
            paired.add(counterparts[index])
    pairs: list[Pair] = [(counterparts.get(index), index) for index in range(len(after))]
    return pairs + [(index, None) for index in range(len(before)) if index not in paired]


class ToJudge(NamedTuple):
    """A question about a record; the path of its file is empty for papers and exclusions."""

    path: str
    record: str
    is_new: bool
    questions: tuple[ReviewTopic, ...]


def to_judge(files: Iterable[FileDifference], before: Pool, after: Pool) -> list[ToJudge]:
    """Return the questions to a person: about changed and removed records, then about new papers and exclusions."""
    taxonomy = after.taxonomy
    tags = {facet.field for facet in (*taxonomy.papers, *taxonomy.exclusions)}
    topic_of = {field.name: field.review for field in (*taxonomy.fields, *PAPER_FIELDS, *EXCLUSION_FIELDS)}
    coded = {column.field for column in (*taxonomy.published, *taxonomy.published_exclusions)}
    published = {record.name for pool in (before, after) for record in pool.records if record.published}
    judged: list[ToJudge] = []
    for file in files:
        for record in file.records:
            is_new = record.change is Action.ADDED
            topics: set[ReviewTopic] = set()
            changes = record.values
            if record.change is Action.REMOVED:
                topics, changes = {ReviewTopic.REMOVED}, ()
            elif is_new and not file.is_pool:
                changes = ()
            for change in changes:
                field = change.path[0]
                if not file.is_pool:
                    topics.add(ReviewTopic.CHANGED)
                elif field == "evidence":
                    part = change.path[2] if len(change.path) > 2 else ""
                    if part in ("level", "confidence", ""):
                        topics.add(ReviewTopic.LEVELS)
                    if part not in ("level", "confidence"):
                        topics.add(ReviewTopic.SOURCES)
                elif field in tags:
                    topics.add(ReviewTopic.TAGS)
                    if not is_new and field in coded and record.name in published:
                        topics.add(ReviewTopic.PUBLISHED)
                elif topic := topic_of.get(field):
                    topics.add(topic)
                elif not is_new:
                    topics.add(ReviewTopic.CHANGED)
            if topics:
                path = "" if file.is_pool and record.name else file.path
                questions = tuple(topic for topic in ReviewTopic if topic in topics)
                judged.append(ToJudge(path, record.name, is_new, questions))
    return sorted(judged, key=lambda judgement: judgement.is_new)
