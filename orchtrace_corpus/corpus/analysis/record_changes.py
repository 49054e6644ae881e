"""The changes between two versions of a data file: every value by its path, before and after.

The comparison does not know the fields of a file, only which of them name its records. Records are paired by name and
by work, items of lists by a field in which they differ. A file that cannot be read as values is compared by lines.
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
from orchtrace_corpus.base.yamlfile.record import node_content
from orchtrace_corpus.base.yamlfile.writer import comments
from orchtrace_corpus.corpus.model.field_table import EXCLUSION_FIELDS, PAPER_FIELDS, ReviewTopic
from orchtrace_corpus.corpus.model.records import Pool, folded_title, folded_url

Value: TypeAlias = Any
"""A text, a list of values, or values by name."""

Place: TypeAlias = tuple[str | int | None, ...]
"""The path of a value in one version: names of fields and indexes of items; None for an item that is not there."""

Pair: TypeAlias = tuple[int | None, int | None]
"""The index of an item in the earlier list and in the later one; None in a list without the item."""

MIN_SHARE_OF_RENAMED = 0.75
"""The least share of unchanged fields of a renamed record; only for records without identifier, address and title."""

MAX_LABEL = 60
"""The most characters of a name by which an item is called; an item with a longer name is called by its number."""

MAX_OTHER_BYTES = 1_000_000
"""The size of the largest file of unknown format, such as a trace, whose content is compared."""

MAX_COMPARISONS = 250_000
"""The most pairs of records without a common name that are compared with each other."""


class ValueChange(NamedTuple):
    """A value that was added, removed or changed; `before` is None for an added value, `after` for a removed one.

    Attributes:
        path: The names of the fields from the record down to the value; items of lists are in brackets.
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
    """A record that was added, removed or changed. A file that is no list of records is one record without a name.

    Attributes:
        name: The later name; for a removed record, the earlier one.
        was: The earlier name; empty for an added record.
        values: The values that changed; for an added or removed record, all of its fields.
    """

    name: str
    was: str
    change: Action
    line: int
    values: tuple[ValueChange, ...]


class FileDifference(NamedTuple):
    """The changes of a data file, by its path below the corpus's folder.

    Attributes:
        subject: The name of the file without its ending, or of its folder: `papers`, `audits`.
        records: The changed records, then the removed ones, then the added ones.
        asides: The changes of form: lists in another order, as the names of their items, and comments.
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
    """A data file as values and their lines; `root` is None for a table and for a file that is not readable as YAML."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.data = path, data
        self.text = data.decode("utf-8", "backslashreplace")
        self.file = YamlFile(path, data)
        self.is_table = path.endswith(".csv")
        node = self.file.root() if path.endswith((".yaml", ".json")) else None
        self.root = None if self.file.findings else node
        self._row_lines: list[int] = []  # filled by `_rows`

    @cached_property
    def content(self) -> Value | None:
        """The content of the file; None if it cannot be read as values.

        In JSON, a text that looks like another value, such as `"1"` or `"null"`, keeps its quotes.
        """
        if self.is_table:
            return self._rows()
        if self.root is None:
            return None
        json_text = self.text if self.path.endswith(".json") else ""
        matches = re.finditer(r'"(?:-?[0-9.eE+-]+|true|false|null)"', json_text)
        return node_content(self.root, {match.start(): match[0] for match in matches})

    def _rows(self) -> Value | None:
        """Return each row of a table by column names; None if a row has more or fewer cells, such as a comment."""
        table = csv.DictReader(StringIO(self.text, newline=""), strict=True)
        rows: list[Value] = []
        try:
            for row in table:
                rows.append(row)
                self._row_lines.append(table.line_num)
        except csv.Error:
            return None
        header = table.fieldnames or []
        has_distinct_names = len(set(header)) == len(header)
        # None is the key of cells beyond the header, and the value of missing cells.
        has_other_cells = any(None in (*row, *row.values()) for row in rows)
        return rows if has_distinct_names and not has_other_cells else None

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
    old_bytes, new_bytes = before or b"", after or b""
    comparison = _Comparison(DataText(path, old_bytes), DataText(path, new_bytes), names, unordered)
    old: Value = comparison.old.content
    new: Value = comparison.new.content
    empty: Value = [] if isinstance(old or new, list) else {}
    if before is None:
        old = empty
    if after is None:
        new = empty
    is_large = names is None and max(len(old_bytes), len(new_bytes)) > MAX_OTHER_BYTES
    has_long_line = max(map(len, f"{comparison.old.text}\n{comparison.new.text}".split("\n"))) > reader.MAX_TEXT
    is_opaque = is_large or has_long_line
    records: list[RecordChange] = []
    changes: list[ValueChange] = []
    if not is_opaque:
        if _are_records(old, new):
            records = list(comparison.records(old, new))
        elif _are_mappings(old, new):
            changes = list(comparison.values(old, new))
        else:
            changes = list(comparison.lines())
    is_missing = before is None or after is None
    if (is_opaque or is_missing) and not records and not changes:
        changes = [ValueChange(("file",), _file_text(before), _file_text(after), 1)]
    if changes:
        records = [RecordChange("", "", _action(before, after), changes[0].line, tuple(changes))]
    records.sort(key=lambda record: [*Action].index(record.change))
    subject = path.split("/")[1].partition(".")[0]
    return FileDifference(path, subject, tuple(records), (*comparison.reordered, *comparison.comments()))


def _file_text(data: bytes | None) -> str | None:
    return None if data is None else f"{len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}"


def _action(before: object, after: object) -> Action:
    if before is None:
        return Action.ADDED
    return Action.REMOVED if after is None else Action.CHANGED


def _are_mappings(*sides: Value) -> bool:
    return all(isinstance(side, dict) for side in sides)


def _are_records(*sides: Value) -> bool:
    """Return True if all sides are lists of mappings, or empty lists."""
    return all(isinstance(side, list) and _are_mappings(*side) for side in sides)


class _Comparison:
    """Compares two versions of a file; collects in `reordered` the lists of which only the order has changed."""

    def __init__(self, old: DataText, new: DataText, names: Sequence[str] | None, unordered: Collection[str]) -> None:
        self.old, self.new, self._names, self._unordered = old, new, names, unordered
        self.reordered: list[ValueChange] = []
        self._record: tuple[str, ...] = ()  # the name of the record that is being compared, as the start of a path

    def records(self, before: list[Value], after: list[Value]) -> Iterator[RecordChange]:
        """Yield the change of each record, in the order of the later version; removed records come last."""
        names = self._names or _distinguishing_field(before, after)
        pairs = pair_items(before, after, names, MIN_SHARE_OF_RENAMED)
        for old_index, new_index in pairs:
            old: Value = {}
            new: Value = {}
            old_name = name = ""
            if old_index is not None:
                old = before[old_index]
                old_name = name = _label(old, names, old_index, is_record=True)
            if new_index is not None:
                new = after[new_index]
                name = _label(new, names, new_index, is_record=True)
            self._record = (name,)
            changes = tuple(self.values(old, new, old_at=(old_index,), new_at=(new_index,)))
            if changes:
                line = self.old.line((old_index,)) if new_index is None else self.new.line((new_index,))
                yield RecordChange(name, old_name, _action(old_index, new_index), line, changes)
        self._record = ()
        order = self._order((), pairs, before, names, 1)
        if order and self._names is None:  # in a file of unknown format, the order may have a meaning
            yield RecordChange("", "", Action.CHANGED, 1, order)
        else:
            self.reordered += order

    def values(
        self, old: Value, new: Value, path: tuple[str, ...] = (), old_at: Place = (), new_at: Place = ()
    ) -> Iterator[ValueChange]:
        """Yield the values inside a value that differ; `path` leads to it, `old_at` and `new_at` are its places."""
        if old == new:
            return
        are_lists = isinstance(old, list) and isinstance(new, list)
        if _are_mappings(old, new):
            for name in dict.fromkeys((*old, *new)):
                old_place, new_place = (*old_at, name), (*new_at, name)
                yield from self.values(old.get(name), new.get(name), (*path, name), old_place, new_place)
        elif are_lists and not all(isinstance(item, str) for item in (*old, *new)):
            names = _distinguishing_field(old, new)
            pairs = pair_items(old, new, names)
            for old_index, new_index in pairs:
                before = None if old_index is None else old[old_index]
                after = None if new_index is None else new[new_index]
                index = new_index if new_index is not None else old_index
                label = _label(before if after is None else after, names, index or 0).strip("[]")
                if label.isdecimal():
                    label += _context(before, after)
                old_place, new_place = (*old_at, old_index), (*new_at, new_index)
                yield from self.values(before, after, (*path, f"[{label}]"), old_place, new_place)
            order = self._order(path, pairs, old, names, self.new.line(new_at))
            if self._names is None:
                yield from order
            else:
                self.reordered += (change._replace(path=(*self._record, *change.path)) for change in order)
        elif are_lists and path and path[-1] in self._unordered and sorted(old) == sorted(new):
            self.reordered.append(ValueChange((*self._record, *path), old, new, self.new.line(new_at)))
        else:
            line = self.old.line(old_at) if new is None else self.new.line(new_at)
            yield ValueChange(path, old, new, line)

    def _order(
        self, path: tuple[str, ...], pairs: Iterable[Pair], before: list[Value], names: Sequence[str], line: int
    ) -> tuple[ValueChange, ...]:
        """Return the change of the order of the items that are in both versions; nothing if the order is the same."""
        indexes = [was for was, now in pairs if was is not None and now is not None]  # in the later order
        if indexes == sorted(indexes):
            return ()
        labels = {index: _label(before[index], names, index, is_record=not path) for index in indexes}
        old_order = [labels[index] for index in sorted(labels)]
        return (ValueChange((*path, "order"), old_order, list(labels.values()), line),)

    def lines(self) -> Iterator[ValueChange]:
        """Yield the lines that differ."""
        before, after = self.old.text.split("\n"), self.new.text.split("\n")
        for kind, start, end, new_start, new_end in SequenceMatcher(None, before, after).get_opcodes():
            if kind != "equal":
                for index, (was, now) in enumerate(zip_longest(before[start:end], after[new_start:new_end])):
                    line = (start if now is None else new_start) + index + 1
                    yield ValueChange((f"line {line}",), was, now, line)

    def comments(self) -> Iterator[ValueChange]:
        """Yield the comments of a YAML file if they have changed."""
        if self.old.data and self.new.data and self.new.path.endswith(".yaml"):
            was = [comment for _, comment in comments(self.old.text)]
            now = [comment for _, comment in comments(self.new.text)]
            if was != now:
                yield ValueChange(("comments",), was, now, 1)


def _label(item: Value, names: Sequence[str], index: int, *, is_record: bool = False) -> str:
    """Return the name of an item of a list, or its number in brackets if its name is missing or a sentence."""
    label = " ".join(str(item.get(name, "")) for name in names).strip() if names else ""
    is_short = len(label) <= MAX_LABEL and len(label.split()) <= 2
    return label if label and (is_record or is_short) else f"[{index + 1}]"


def _context(before: Value, after: Value) -> str:
    """Return the beginning of an unchanged text of an item without a name, so that readers recognise the item."""
    if not _are_mappings(before, after):
        return ""
    for name, text in after.items():
        if isinstance(text, str) and text == before.get(name) and (" " in text or "://" in text):
            return f": {text}" if len(text) <= MAX_LABEL else f": {text[:MAX_LABEL]}…"
    return ""


def _distinguishing_field(before: Sequence[Value], after: Sequence[Value]) -> tuple[str, ...]:
    """Return the field whose texts differ within each list and are most often in both lists; nothing if none is."""
    if not _are_records(before, after):
        return ()
    best, most_shared = "", 0
    for name in dict.fromkeys(name for item in (*before, *after) for name in item):
        old_texts = [item.get(name) for item in before]
        new_texts = [item.get(name) for item in after]
        are_texts = all(isinstance(text, str) for text in (*old_texts, *new_texts))
        if are_texts and len(set(old_texts)) == len(old_texts) and len(set(new_texts)) == len(new_texts):
            shared = len({*old_texts} & {*new_texts})
            if shared > most_shared:
                best, most_shared = name, shared
    return (best,) if best else ()


def signs(record: Value) -> list[Hashable]:
    """Return what two records about one work have in common, the surest first: identifiers, an address, a title."""
    if not isinstance(record, Mapping):
        return []
    texts = {name: value for name, value in record.items() if isinstance(value, str)}
    urls = [url for url in record.get("urls") or [] if isinstance(url, str)] + [texts.get("url", "")]
    signs: list[Hashable] = [Identifier(kind, texts[kind.value]) for kind in IdentifierKind if kind.value in texts]
    identifiers = (recognise(texts.get("identifier", "")), *map(recognise_url, urls))
    signs += [identifier for identifier in identifiers if identifier is not None]
    signs += [sign for sign in (folded_url(urls[0]), folded_title(texts.get("title", ""))) if sign]
    return signs


def _unchanged_share(old: Value, new: Value) -> float:
    """Return the share of the later item's fields that are unchanged; without fields, 1.0 for values of one type."""
    if not _are_mappings(old, new):
        return float(type(old) is type(new))
    unchanged = [name for name, value in new.items() if old.get(name) == value]
    return len(unchanged) / max(len(new), 1)


def pair_items(
    before: Sequence[Value], after: Sequence[Value], names: Sequence[str], least_share: float = 0.5
) -> list[Pair]:
    """Return each item with its counterpart, in the order of the later list; removed items come last.

    Equal items are paired first, then items with the same name and work, then renamed items with the same work, then
    items with the same name. So a paper that got the key of another paper is not paired with it. Remaining items are
    paired if at least `least_share` of the later item's fields are unchanged.
    """

    def name_of(item: Value) -> list[Hashable]:
        return [tuple(str(item.get(name, "")) for name in names)] if names else []

    old_by_new: dict[int, int] = {}  # the index of an item in `after` -> that of its counterpart in `before`
    paired: set[int] = set()  # indexes in `before`
    for features_of in (
        lambda item: [repr(item)],
        lambda item: [(name, sign) for name in name_of(item) for sign in signs(item)],
        signs,
        name_of,
    ):
        unpaired_by_feature: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for index, item in enumerate(before):
            if index not in paired:
                for feature in features_of(item):
                    unpaired_by_feature[feature].append(index)
        for index, item in enumerate(after):
            if index in old_by_new:
                continue
            for feature in features_of(item):
                candidates = unpaired_by_feature[feature]
                while candidates and candidates[0] in paired:  # by another feature
                    candidates.popleft()
                if candidates:
                    old_by_new[index] = candidates.popleft()
                    paired.add(old_by_new[index])
                    break
    old_rest = [index for index, item in enumerate(before) if index not in paired and not signs(item)]
    new_rest = [index for index, item in enumerate(after) if index not in old_by_new and not signs(item)]
    if len(old_rest) * len(new_rest) > MAX_COMPARISONS:
        new_rest = []
    for index in new_rest:
        shares = [_unchanged_share(before[was], after[index]) for was in old_rest]
        if shares and max(shares) >= least_share:
            old_by_new[index] = old_rest.pop(shares.index(max(shares)))
            paired.add(old_by_new[index])
    pairs: list[Pair] = [(old_by_new.get(index), index) for index in range(len(after))]
    return pairs + [(index, None) for index in range(len(before)) if index not in paired]


class ToJudge(NamedTuple):
    """Questions that a reviewer should answer about a record; `path` is empty for papers and exclusions."""

    path: str
    record: str
    is_new: bool
    questions: tuple[ReviewTopic, ...]


def to_judge(files: Iterable[FileDifference], before: Pool, after: Pool) -> list[ToJudge]:
    """Return the questions to a reviewer: about changed and removed records, then about new papers and exclusions."""
    taxonomy = after.taxonomy
    tags = {facet.field for facet in (*taxonomy.papers, *taxonomy.exclusions)}
    topics_by_field = {field.name: field.review for field in (*taxonomy.fields, *PAPER_FIELDS, *EXCLUSION_FIELDS)}
    published_fields = {column.field for column in (*taxonomy.published, *taxonomy.published_exclusions)}
    published_names = {record.name for pool in (before, after) for record in pool.records if record.published}
    judged: list[ToJudge] = []
    for file in files:
        for record in file.records:
            is_new = record.change is Action.ADDED
            topics: set[ReviewTopic] = set()
            changes = record.values
            if record.change is Action.REMOVED:
                topics = {ReviewTopic.REMOVED}
                changes = ()
            elif is_new and not file.is_pool:
                changes = ()
            for change in changes:
                field = change.path[0]
                if not file.is_pool:
                    topics.add(ReviewTopic.CHANGED)
                elif field == "evidence":
                    # The path is: evidence, item, field of the item. Without the field it is a whole item.
                    item_field = change.path[2] if len(change.path) > 2 else ""
                    if item_field in ("level", "confidence", ""):
                        topics.add(ReviewTopic.LEVELS)
                    if item_field not in ("level", "confidence"):
                        topics.add(ReviewTopic.SOURCES)
                elif field in tags:
                    topics.add(ReviewTopic.TAGS)
                    if not is_new and field in published_fields and record.name in published_names:
                        topics.add(ReviewTopic.PUBLISHED)
                elif topic := topics_by_field.get(field):
                    topics.add(topic)
                elif not is_new:
                    topics.add(ReviewTopic.CHANGED)
            if topics:
                path = "" if file.is_pool and record.name else file.path
                questions = tuple(topic for topic in ReviewTopic if topic in topics)
                judged.append(ToJudge(path, record.name, is_new, questions))
    return sorted(judged, key=lambda judgement: judgement.is_new)
