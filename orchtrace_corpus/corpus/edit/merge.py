"""Merge records of another file, such as a bibliography, into the papers, by their keys.

Fields that the other file does not have stay unchanged. If one record has a problem, nothing is merged.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.identifiers import ADDRESSES, IdentifierKind
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.reader import MAX_TEXT, YamlFile
from orchtrace_corpus.base.yamlfile.splice import TooLongError
from orchtrace_corpus.corpus.edit.edits import add_records, change_records, comparable, raw_records
from orchtrace_corpus.corpus.formats import Item, Problem, complete_item
from orchtrace_corpus.corpus.model.decode import decode_papers, paper_schema
from orchtrace_corpus.corpus.model.fields import is_cite_key, is_key
from orchtrace_corpus.corpus.model.record_fields import Value, paper_style, tag_value
from orchtrace_corpus.corpus.model.records import Tag
from orchtrace_corpus.corpus.model.tagging import assign_tag, read_level, read_term
from orchtrace_corpus.corpus.model.taxonomy import Facet, Taxonomy

_MAX_DEPTH = 3
"""The deepest nesting of a field: evidence is a list of mappings that hold lists."""


class Merge(NamedTuple):
    """The result of a merge.

    Attributes:
        text: The new text of the file of papers; the old text if there are problems.
        updated, added, unchanged: The keys of the papers.
        blank: The key and the field of each value that is kept although its cell in the other file is empty.
        lines: The line of each paper in the other file, by key.
    """

    text: str
    updated: tuple[str, ...]
    added: tuple[str, ...]
    unchanged: tuple[str, ...]
    problems: tuple[Problem, ...]
    blank: tuple[tuple[str, str], ...] = ()
    lines: Mapping[str, int] = {}


class _Change(NamedTuple):
    """The fields of a new paper, or the fields of a present paper (at `paper_index`) whose values differ."""

    key: str
    line: int
    values: Mapping[str, Value]
    paper_index: int | None
    remark: str


def merge(
    file: YamlFile, items: Sequence[Item], taxonomy: Taxonomy, today: str, remarks: Mapping[int, str] = {}
) -> Merge:
    """Merge records of another file (`items`) into the papers; raise `DataFileError` if one cannot be edited in place.

    New papers without a date are dated `today`. `remarks` are errors about new papers that the corpus has under another
    key, by the line of their record.
    """
    present = raw_records(file)
    indexes_by_key: dict[object, list[int]] = {}
    for index, record in enumerate(present):
        indexes_by_key.setdefault(record.get("key"), []).append(index)
    for index, record in enumerate(present):
        if record.get("cite_key"):  # a bibliography names the paper by this key
            indexes_by_key.setdefault(record["cite_key"], [index])
    problems = _check_keys(items, indexes_by_key, taxonomy.noun.one)
    used_keys = {*indexes_by_key, *(item.values.get("key") for item in items)}
    changes: list[_Change] = []
    blank: list[tuple[str, str]] = []
    for item in items:
        key = str(item.values.get("key", ""))
        if not key:
            continue
        paper_index = indexes_by_key[key][0] if key in indexes_by_key else None
        paper = None if paper_index is None else present[paper_index]
        values, messages = complete_item(item, paper)
        if paper is None:
            tags, keyword_messages = tags_of_citation(item, taxonomy)
            values = {**tags, **values}
            messages += keyword_messages
        values |= by_term(values, taxonomy)
        if paper is not None:
            key = str(paper.get("key", key))
            values["key"] = key
        elif item.cited and not is_key(key) and is_cite_key(key):
            values["cite_key"] = key
            key = _new_key(key, used_keys)
            values["key"] = key
            used_keys.add(key)
        too_deep = [name for name, value in values.items() if _depth(value) > _MAX_DEPTH]
        messages += (f"{printable(name)} holds lists in lists; no field does" for name in too_deep)
        problems += (Problem(item.line, f"{message} {_record(key)}") for message in messages)
        if too_deep:
            continue
        if paper is None:
            values.setdefault("added", today)
            urls = [ADDRESSES[kind] + str(values[kind.value]) for kind in IdentifierKind if values.get(kind.value)]
            if urls and not values.get("urls"):
                values["urls"] = urls[:1]
        else:
            blank += [(key, name) for name in item.empty_fields if paper.get(name)]
            values = {name: new for name, new in values.items() if comparable(new) != comparable(paper.get(name))}
        changes.append(_Change(key, item.line, values, paper_index, remarks.get(item.line, "")))
    added = [change for change in changes if change.paper_index is None]
    updated = [change for change in changes if change.paper_index is not None and change.values]
    problems += _missing_fields(added, present, taxonomy)
    problems += _check_values([*updated, *added], taxonomy)
    text = file.text
    if not problems:
        style = paper_style(taxonomy)
        text = change_records(file, {indexes_by_key[change.key][0]: change.values for change in updated}, style)
        text = add_records(YamlFile(file.path, text.encode()), [change.values for change in added], style)
    return Merge(
        text,
        updated=tuple(change.key for change in updated),
        added=tuple(change.key for change in added),
        unchanged=tuple(change.key for change in changes if change.paper_index is not None and not change.values),
        problems=tuple(sorted(problems)),
        blank=tuple(blank),
        lines={change.key: change.line for change in changes},
    )


def tags_of_citation(item: Item, taxonomy: Taxonomy) -> tuple[dict[str, Value], list[str]]:
    """Return the tags and the summary in a citation's keywords and annotation, and errors in the keywords."""
    tags: dict[str, Tag] = {}
    try:
        for keyword in item.keywords:
            name, _, text = keyword.partition("=")
            assign_tag(tags, taxonomy.papers, name.strip(), text)
    except CommandUseError as error:
        return {}, [f"its keywords: {error}"]
    values = {field: tag_value(tag) for field, tag in tags.items()}
    if item.annotation:
        values["summary"] = item.annotation
    return values, []


def by_term(values: Mapping[str, Value], taxonomy: Taxonomy) -> dict[str, Value]:
    """Return the tags among some values, with terms in place of labels and codes; unknown words stay as they are."""

    def find_term(read: Callable[[Facet, str], str], facet: Facet, text: Value) -> Value:
        if not isinstance(text, str) or text in facet.values:
            return text
        with suppress(CommandUseError):
            return read(facet, text)
        return text

    tags: dict[str, Value] = {}
    for facet in taxonomy.papers:
        value = values.get(facet.field)
        if isinstance(value, str):
            tags[facet.field] = find_term(read_term, facet, value)
        elif isinstance(value, Mapping):
            levels: dict[str, Value] = {}
            for name, level in value.items():
                levels[str(find_term(read_term, facet, name))] = find_term(read_level, facet, level)
            tags[facet.field] = levels
        elif isinstance(value, (list, tuple)):
            tags[facet.field] = [find_term(read_term, facet, term) for term in value]
    return tags


def _new_key(cite_key: str, used_keys: Collection[object]) -> str:
    """Return an unused key for an entry: its citation key in lower case, with hyphens between words."""
    ascii_text = unicodedata.normalize("NFKD", cite_key).encode("ascii", "ignore").decode().lower()
    base = "-".join(re.findall("[a-z0-9]+", ascii_text)) or "entry"
    key = base
    number = 1
    while key in used_keys:
        number += 1
        key = f"{base}-{number}"
    return key


def _check_keys(items: Sequence[Item], indexes_by_key: Mapping[object, Sequence[object]], noun: str) -> list[Problem]:
    """Return the problems of keys that are missing, repeated or ambiguous."""
    problems = []
    first_lines: dict[object, int] = {}  # by the index of the paper; by the key for a new paper
    for item in items:
        key = item.values.get("key")
        indexes = indexes_by_key.get(key, [])
        paper = indexes[0] if indexes else key
        message = ""
        if not key:
            message = "this record has no key"
        elif paper in first_lines:
            message = f"key {quote(str(key))} is used twice (first on line {first_lines[paper]}); keep one record"
        elif len(indexes) > 1:
            message = f"key {quote(str(key))} is used twice in the corpus; give each {noun} its own key first"
        if message:
            problems.append(Problem(item.line, message))
        first_lines.setdefault(paper, item.line)
    return problems


def _missing_fields(
    added: Sequence[_Change], present: Sequence[Mapping[str, object]], taxonomy: Taxonomy
) -> list[Problem]:
    """Return problems of new papers: missing fields, and identifiers of papers that have another key."""
    required = paper_schema(taxonomy).required
    noun = taxonomy.noun.one
    problems = []
    keys_by_identifier: dict[tuple[str, object], object] = {}
    for kind in IdentifierKind:
        for record in present:
            if kind in record:
                keys_by_identifier[kind, record[kind]] = record.get("key")
    for change in added:
        missing = ", ".join(name for name in required if name not in change.values)
        keys = [keys_by_identifier.get((kind, change.values.get(kind))) for kind in IdentifierKind]
        same_papers = [key for key in keys if key]
        if same_papers:
            message = f"no {noun} has this key, but {quote(str(same_papers[0]))} has its identifier; write that key"
        elif missing and change.remark:
            message = change.remark
        elif missing:
            message = f"no {noun} has this key yet, and a new one needs {missing}; corpus add asks for them"
        else:
            continue
        problems.append(Problem(change.line, f"{message} {_record(change.key)}"))
    return problems


def _check_values(changes: Sequence[_Change], taxonomy: Taxonomy) -> list[Problem]:
    """Write the values as records, and return the problems of decoding them."""
    changes = sorted(changes, key=lambda change: change.key)  # the order in which `add_records` writes them
    records = [{"key": change.key, **change.values} for change in changes]
    try:
        text = add_records(YamlFile("", b"[]\n"), records, paper_style(taxonomy))
    except TooLongError:
        if len(changes) > 1:  # find the record that is too long
            return [problem for change in changes for problem in _check_values([change], taxonomy)]
        (change,) = changes
        longest = max(change.values, key=lambda name: len(str(change.values[name])))
        message = f"{longest} is longer than {MAX_TEXT // 1000} kB; shorten it"
        return [Problem(change.line, f"Y115 {message} {_record(change.key)}")]
    file = YamlFile("", text.encode())
    _, places = decode_papers(file, taxonomy)
    problems: list[Problem] = []
    if not file.findings:
        return problems
    starts = [places.locate(index) for index in range(len(changes))]
    for finding in file.findings:
        index = bisect_right(starts, finding.location) - 1  # of the record in which the finding is
        if finding.code == "F101" and finding.location == starts[index]:
            continue  # `_missing_fields` reports the missing fields of a paper
        change = changes[index]
        problems.append(Problem(change.line, f"{finding.code} {finding.message} {_record(change.key)}"))
    return problems


def _record(key: str) -> str:
    """Return the end of a message, which names the record."""
    return f"[{printable(key, limit=60)}]"


def _depth(value: Value) -> int:
    """Return how deeply lists and mappings are nested in a value."""
    if isinstance(value, (str, int, float)):
        return 0
    parts = value.values() if isinstance(value, Mapping) else value
    return 1 + max((_depth(part) for part in parts), default=0)
