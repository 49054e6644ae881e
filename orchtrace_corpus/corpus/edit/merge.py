"""Merge the records of another file into the papers, by their keys.

A format may hold only some fields of a record: the others stay, and so does an equal value. If one record has a
problem, nothing is merged.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.identifiers import ADDRESSES, IdentifierKind
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.reader import MAX_TEXT, YamlFile
from orchtrace_corpus.base.yamlfile.splice import TooLongError
from orchtrace_corpus.corpus.edit.edits import add_records, change_records, plain_value, raw_records
from orchtrace_corpus.corpus.formats import Item, Problem, complete_item
from orchtrace_corpus.corpus.model.decode import decode_papers, paper_schema
from orchtrace_corpus.corpus.model.fields import is_cite_key, is_key
from orchtrace_corpus.corpus.model.record_fields import Value, paper_style, tag_value
from orchtrace_corpus.corpus.model.records import Tag
from orchtrace_corpus.corpus.model.tagging import assign_tag, read_level, read_term
from orchtrace_corpus.corpus.model.taxonomy import Facet, Taxonomy


class Merge(NamedTuple):
    """The outcome of a merge: the papers' new text (the old one if there are problems) and the keys of papers.

    `blank` has the key and the field of each value that is kept although its cell is empty; `lines` has the line of
    each paper in the other file, by key.
    """

    text: str
    updated: tuple[str, ...]
    added: tuple[str, ...]
    unchanged: tuple[str, ...]
    problems: tuple[Problem, ...]
    blank: tuple[tuple[str, str], ...] = ()
    lines: Mapping[str, int] = {}


class _Change(NamedTuple):
    """The fields of a new paper, or the differing ones of a present paper, which is at `place`."""

    key: str
    line: int
    values: Mapping[str, Value]
    place: int | None
    remark: str


def merge(
    file: YamlFile, items: Sequence[Item], taxonomy: Taxonomy, today: str, remarks: Mapping[int, str] = {}
) -> Merge:
    """Merge records of another file into the papers; a `DataFileError` if a paper cannot be edited in place.

    New papers are dated `today` if they have no date. `remarks` are about new papers that the corpus has under another
    key, by their lines.
    """
    present = raw_records(file)
    places: dict[object, list[int]] = {}
    for index, record in enumerate(present):
        places.setdefault(record.get("key"), []).append(index)
    for index, record in enumerate(present):
        if record.get("cite_key"):  # the key of an entry in a bibliography
            places.setdefault(record["cite_key"], [index])
    problems = _wrong_keys(items, places, taxonomy.noun.one)
    used_keys = {*places, *(item.values.get("key") for item in items)}
    changes: list[_Change] = []
    blank: list[tuple[str, str]] = []
    for item in items:
        key = str(item.values.get("key", ""))
        if not key:
            continue
        place = places[key][0] if key in places else None
        paper = None if place is None else present[place]
        values, wrong = complete_item(item, paper)
        if paper is None:
            coding, wrong_keywords = coding_of_new(item, taxonomy)
            values = {**coding, **values}
            wrong += wrong_keywords
        values |= by_term(values, taxonomy)
        if paper is not None:
            values["key"] = key = str(paper.get("key", key))
        elif item.cited and not is_key(key) and is_cite_key(key):
            values["cite_key"], values["key"] = key, _own_key(key, used_keys)
            key = str(values["key"])
            used_keys.add(key)
        deep = [name for name, value in values.items() if _depth(value) > 3]  # evidence: lists in mappings in a list
        wrong += (f"{printable(name)} holds lists in lists; no field does" for name in deep)
        problems += (Problem(item.line, f"{message} {_record(key)}") for message in wrong)
        if deep:
            continue
        if paper is None:
            values.setdefault("added", today)
            pages = (ADDRESSES[kind] + str(values[kind.value]) for kind in IdentifierKind if values.get(kind.value))
            if not values.get("urls") and (page := next(pages, "")):
                values["urls"] = [page]
        else:
            blank += [(key, name) for name in item.empty_fields if paper.get(name)]
            values = {name: new for name, new in values.items() if plain_value(new) != plain_value(paper.get(name))}
        changes.append(_Change(key, item.line, values, place, remarks.get(item.line, "")))
    added = [change for change in changes if change.place is None]
    updated = [change for change in changes if change.place is not None and change.values]
    problems += _missing_fields(added, present, taxonomy)
    problems += _wrong_values([*updated, *added], taxonomy)
    text = file.text
    if not problems:
        style = paper_style(taxonomy)
        text = change_records(file, {places[change.key][0]: change.values for change in updated}, style)
        text = add_records(YamlFile(file.path, text.encode()), [change.values for change in added], style)
    return Merge(
        text,
        tuple(change.key for change in updated),
        tuple(change.key for change in added),
        tuple(change.key for change in changes if change.place is not None and not change.values),
        tuple(sorted(problems)),
        tuple(blank),
        {change.key: change.line for change in changes},
    )


def coding_of_new(item: Item, taxonomy: Taxonomy) -> tuple[dict[str, Value], list[str]]:
    """Return a new paper's tags and summary from a citation's keywords and annotation, and errors in the keywords."""
    tags: dict[str, Tag] = {}
    try:
        for keyword in item.keywords:
            name, _, text = keyword.partition("=")
            assign_tag(tags, taxonomy.papers, name.strip(), text)
    except CommandUseError as error:
        return {}, [f"its keywords: {error}"]
    coding = {field: tag_value(tag) for field, tag in tags.items()}
    if item.annotation:
        coding["summary"] = item.annotation
    return coding, []


def by_term(values: Mapping[str, Value], taxonomy: Taxonomy) -> dict[str, Value]:
    """Return the tags with terms in place of labels and codes; an unknown word stays, and is refused later."""

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
            levels = {name: find_term(read_level, facet, level) for name, level in value.items()}
            tags[facet.field] = {str(find_term(read_term, facet, name)): level for name, level in levels.items()}
        elif isinstance(value, (list, tuple)):
            tags[facet.field] = [find_term(read_term, facet, term) for term in value]
    return tags


def _own_key(cited: str, used_keys: Collection[object]) -> str:
    """Return a free key in the form of ours, in lower case and with hyphens, for an entry that is cited otherwise."""
    plain = unicodedata.normalize("NFKD", cited).encode("ascii", "ignore").decode().lower()
    base = "-".join(re.findall("[a-z0-9]+", plain)) or "entry"
    further = (f"{base}-{number}" for number in count(2))
    return next(name for name in chain((base,), further) if name not in used_keys)


def _wrong_keys(items: Sequence[Item], places: Mapping[object, Sequence[object]], noun: str) -> list[Problem]:
    """Return the problems of keys that are missing or ambiguous."""
    problems = []
    first: dict[object, int] = {}
    for item in items:
        key, message = item.values.get("key"), ""
        record = places.get(key, [key])[0]
        if not key:
            message = "this record has no key"
        elif record in first:
            message = f"key {quote(str(key))} is used twice (first on line {first[record]}); keep one record"
        elif len(places.get(key, ())) > 1:
            message = f"key {quote(str(key))} is used twice in the corpus; give each {noun} its own key first"
        if message:
            problems.append(Problem(item.line, message))
        first.setdefault(record, item.line)
    return problems


def _missing_fields(
    added: Sequence[_Change], present: Sequence[Mapping[str, object]], taxonomy: Taxonomy
) -> list[Problem]:
    """Return the missing fields of new papers; for a paper that has another key here, that key."""
    required, noun = paper_schema(taxonomy).required, taxonomy.noun.one
    problems = []
    keys = {(kind, record[kind]): record.get("key") for kind in IdentifierKind for record in present if kind in record}
    for change in added:
        missing = ", ".join(name for name in required if name not in change.values)
        same = next((key for kind in IdentifierKind if (key := keys.get((kind, change.values.get(kind))))), None)
        if same is not None:
            message = f"no {noun} has this key, but {quote(str(same))} has its identifier; write that key"
        elif missing:
            message = f"no {noun} has this key yet, and a new one needs {missing}; corpus add asks for them"
            message = change.remark or message
        else:
            continue
        problems.append(Problem(change.line, f"{message} {_record(change.key)}"))
    return problems


def _wrong_values(changes: Sequence[_Change], taxonomy: Taxonomy) -> list[Problem]:
    """Write the values as records, and return the problems of decoding them."""
    changes = sorted(changes, key=lambda change: change.key)  # as they are written
    records = [{"key": change.key, **change.values} for change in changes]
    try:
        text = add_records(YamlFile("", b"[]\n"), records, paper_style(taxonomy))
    except TooLongError:
        if len(changes) > 1:
            return [problem for change in changes for problem in _wrong_values([change], taxonomy)]
        (change,) = changes
        longest = max(change.values, key=lambda name: len(str(change.values[name])))
        message = f"{longest} is longer than {MAX_TEXT // 1000} kB; shorten it"
        return [Problem(change.line, f"Y115 {message} {_record(change.key)}")]
    file = YamlFile("", text.encode())
    places = decode_papers(file, taxonomy)[1]
    starts = [places.locate(index) for index in range(len(changes))] if file.findings else []
    problems = []
    for finding in file.findings:
        index = bisect_right(starts, finding.location) - 1
        change = changes[index]
        if finding.code != "F101" or finding.location != starts[index]:  # `_missing_fields` reports it
            problems.append(Problem(change.line, f"{finding.code} {finding.message} {_record(change.key)}"))
    return problems


def _record(key: str) -> str:
    return f"[{printable(key, limit=60)}]"


def _depth(value: Value) -> int:
    """Return how deeply lists and mappings are nested in a value."""
    if isinstance(value, (str, int, float)):
        return 0
    parts = value.values() if isinstance(value, Mapping) else value
    return 1 + max((_depth(part) for part in parts), default=0)
