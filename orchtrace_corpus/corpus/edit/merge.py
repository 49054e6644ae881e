"""Merges records of another file into the pool, by their keys.

A format holds some fields of a record, not all. Those that it lacks stay as they are, and so does a
value that says the same. One problem anywhere, and nothing is merged.
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
from orchtrace_corpus.corpus.model.tagging import assign, read_level, read_term
from orchtrace_corpus.corpus.model.taxonomy import Facet, Taxonomy


class Merge(NamedTuple):
    """The outcome of a merge.

    Attributes:
        text: The new text of the papers' file; the old one if anything is wrong.
        updated: The keys of the papers that change.
        added: The keys of the papers that are new.
        unchanged: The keys of the papers that say the same already.
        problems: The problems of the records, by their lines in the file that they come from.
        blank: Fields that a paper has and keeps although its cell is empty, each with the paper's key.
        lines: The line of each paper in the file that it comes from, by key.
    """

    text: str
    updated: tuple[str, ...]
    added: tuple[str, ...]
    unchanged: tuple[str, ...]
    problems: tuple[Problem, ...]
    blank: tuple[tuple[str, str], ...] = ()
    lines: Mapping[str, int] = {}


class _Part(NamedTuple):
    """The fields of a record in the other file: all of a new paper, or those of a known paper that differ."""

    key: str
    line: int
    values: Mapping[str, Value]
    place: int | None
    remark: str


def merge(
    file: YamlFile, items: Sequence[Item], taxonomy: Taxonomy, today: str, remarks: Mapping[int, str] = {}
) -> Merge:
    """Merge records of another file into the papers.

    Args:
        file: The papers.
        items: Records of another file, each with the fields that it has.
        taxonomy: What a record can be tagged with, and must be.
        today: When new papers are added, unless they say it themselves.
        remarks: Messages about new papers that the corpus knows under another key, by their lines.

    Raises:
        DataFileError: A record of the papers cannot be edited in place.
    """
    present = raw_records(file)
    places: dict[object, list[int]] = {}
    for place, record in enumerate(present):
        places.setdefault(record.get("key"), []).append(place)
    for place, record in enumerate(present):
        if record.get("cite_key"):  # the key that an entry came with, and leaves with
            places.setdefault(record["cite_key"], [place])
    problems = _wrong_keys(items, places, taxonomy.noun.one)
    taken = {*places, *(item.values.get("key") for item in items)}
    parts = []
    blank = []
    for item in items:
        key = str(item.values.get("key", ""))
        here = places.get(key, [None])[0]
        if not key:
            continue
        values, wrong = complete_item(item, None if here is None else present[here])
        if here is None:
            said, wrong_keywords = said_of_new(item, taxonomy)
            values = {**said, **values}
            wrong += wrong_keywords
        values |= by_term(values, taxonomy)
        if here is not None:
            values["key"] = key = str(present[here].get("key", key))
        elif item.cited and not is_key(key) and is_cite_key(key):  # of a bibliography: cited by it as before
            values["cite_key"], values["key"] = key, _own_key(key, taken)
            key = str(values["key"])
            taken.add(key)
        deep = [name for name, value in values.items() if _depth(value) > 3]  # evidence: lists in mappings in a list
        wrong += (f"{printable(name)} holds lists in lists; no field does" for name in deep)
        problems += (Problem(item.line, f"{message} {_record(key)}") for message in wrong)
        if deep:
            continue
        if here is None:
            values.setdefault("added", today)
            pages = (ADDRESSES[kind] + str(values[kind.value]) for kind in IdentifierKind if values.get(kind.value))
            values |= {"urls": [page]} if not values.get("urls") and (page := next(pages, "")) else {}
        else:
            blank += [(key, name) for name in item.blank if present[here].get(name)]
            values = {
                name: value
                for name, value in values.items()
                if plain_value(value) != plain_value(present[here].get(name))
            }
        parts.append(_Part(key, item.line, values, here, remarks.get(item.line, "")))
    new = [part for part in parts if part.place is None]
    changing = [part for part in parts if part.place is not None and part.values]
    problems += _missing(new, present, taxonomy)
    problems += _wrong_values([*changing, *new], taxonomy)
    text = file.text
    if not problems:
        style = paper_style(taxonomy)
        text = change_records(file, {part.place: part.values for part in changing if part.place is not None}, style)
        text = add_records(YamlFile(file.path, text.encode()), [part.values for part in new], style)
    return Merge(
        text,
        tuple(part.key for part in changing),
        tuple(part.key for part in new),
        tuple(part.key for part in parts if part.place is not None and not part.values),
        tuple(sorted(problems)),
        tuple(blank),
        {part.key: part.line for part in parts},
    )


def said_of_new(item: Item, taxonomy: Taxonomy) -> tuple[dict[str, Value], list[str]]:
    """Return the tags and the summary that a citation gives of a new paper, and what is wrong with its keywords."""
    tags: dict[str, Tag] = {}
    try:
        for keyword in item.keywords:
            name, _, text = keyword.partition("=")
            assign(tags, taxonomy.papers, name.strip(), text)
    except CommandUseError as error:
        return {}, [f"its keywords: {error}"]
    said = {field: tag_value(tag) for field, tag in tags.items()}
    return {**said, **({"summary": item.annotation} if item.annotation else {})}, []


def by_term(values: Mapping[str, Value], taxonomy: Taxonomy) -> dict[str, Value]:
    """Return the tags by their terms, where the file has labels or codes; an unknown word stays, to be refused."""

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


def _own_key(cited: str, taken: Collection[object]) -> str:
    """Return a record key for an entry whose own key has another form: lower case, with hyphens, and not taken."""
    plain = unicodedata.normalize("NFKD", cited).encode("ascii", "ignore").decode().lower()
    base = "-".join(re.findall("[a-z0-9]+", plain)) or "entry"
    further = (f"{base}-{number}" for number in count(2))
    return next(name for name in chain((base,), further) if name not in taken)


def _wrong_keys(items: Sequence[Item], places: Mapping[object, Sequence[object]], noun: str) -> list[Problem]:
    """Return the problems of keys that are missing, or do not say which record is meant."""
    problems = []
    first: dict[object, int] = {}
    for item in items:
        key, message = item.values.get("key"), ""
        record = places.get(key, [key])[0]  # by its key or its citation key
        if not key:
            message = "this record has no key"
        elif record in first:
            message = f"key {quote(str(key))} is used twice (first on line {first[record]}); keep one record"
        elif len(places.get(key, ())) > 1:
            message = f"key {quote(str(key))} is used twice in the corpus; give each {noun} its own key first"
        problems += [Problem(item.line, message)] if message else []
        first.setdefault(record, item.line)
    return problems


def _missing(new: Sequence[_Part], present: Sequence[Mapping[str, object]], taxonomy: Taxonomy) -> list[Problem]:
    """Return the fields that new papers miss; a paper that is there under another key is named."""
    required, noun = paper_schema(taxonomy).required, taxonomy.noun.one
    problems = []
    known = {(kind, record[kind]): record.get("key") for kind in IdentifierKind for record in present if kind in record}
    for part in new:
        missing = ", ".join(name for name in required if name not in part.values)
        keys = (known.get((kind, part.values.get(kind))) for kind in IdentifierKind)
        same = next((key for key in keys if key), None)
        if same is not None:
            message = f"no {noun} has this key, but {quote(str(same))} has its identifier; write that key"
        elif missing:
            message = (
                part.remark or f"no {noun} has this key yet, and a new one needs {missing}; corpus add asks for them"
            )
        else:
            continue
        problems.append(Problem(part.line, f"{message} {_record(part.key)}"))
    return problems


def _wrong_values(parts: Sequence[_Part], taxonomy: Taxonomy) -> list[Problem]:
    """Return the problems that decoding the values finds, each record written and read for itself."""
    parts = sorted(parts, key=lambda part: part.key)  # as they are written
    records = [{"key": part.key, **part.values} for part in parts]
    try:
        text = add_records(YamlFile("", b"[]\n"), records, paper_style(taxonomy))
    except TooLongError:
        if len(parts) > 1:
            return [problem for part in parts for problem in _wrong_values([part], taxonomy)]
        part = parts[0]
        longest = max(part.values, key=lambda name: len(str(part.values[name])))
        message = f"{longest} is longer than {MAX_TEXT // 1000} kB; shorten it"
        return [Problem(part.line, f"Y115 {message} {_record(part.key)}")]
    file = YamlFile("", text.encode())
    places = decode_papers(file, taxonomy)[1]
    starts = [places.locate(index) for index in range(len(parts))] if file.findings else []
    problems = []
    for finding in file.findings:
        index = bisect_right(starts, finding.location) - 1
        part = parts[index]
        if finding.code != "F101" or finding.location != starts[index]:  # `_missing` says it once
            problems.append(Problem(part.line, f"{finding.code} {finding.message} {_record(part.key)}"))
    return problems


def _record(key: str) -> str:
    return f"[{printable(key, limit=60)}]"


def _depth(value: Value) -> int:
    """Return how deeply lists and mappings are nested in a value."""
    if isinstance(value, (str, int, float)):
        return 0
    parts = value.values() if isinstance(value, Mapping) else value
    return 1 + max((_depth(part) for part in parts), default=0)
