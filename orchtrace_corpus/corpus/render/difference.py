"""What a change means, in words, made from its JSON document; `comment` writes the same as Markdown.

Every sentence is a sequence of words: those of this tool are `Own`, all others are texts of the data, whatever they
look like. So a form in which texts of the data must not act, such as Markdown, knows which they are. Nothing here may
import more than the standard library and `base`, since the comment is written where nothing else is installed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, TypeAlias

from orchtrace_corpus.base.findings import is_noun, printable
from orchtrace_corpus.base.text import table
from orchtrace_corpus.base.text.layout import Line, Span, line, wrap
from orchtrace_corpus.base.text.table import Table


class Own(str):
    """Words of this tool; what is no `Own` is text of the data."""

    __slots__ = ()


Words: TypeAlias = Sequence[str]
Entry: TypeAlias = Sequence[Words]
"""A sentence, and the sentences below it."""
Document: TypeAlias = Mapping[str, Any]

_PIPE_WIDTH = 100
_UNREAD = Own("(cannot be read)")
_COLON, _ARROW, _COMMA, _SEMICOLON = Own(": "), Own(" -> "), Own(", "), Own("; ")
MAX_FILES_NAMED = 20
_MANY_ALIKE = 3
"""So many papers with the same change of tags are told in one sentence."""

_REORDERED = {"records": "the order of records", "terms": "the order of terms"}
_FORMS = {"comments": "comments", "layout": "the layout"}
_ASKED = {
    "bibliography": Own("title, year, venue and identifiers are those of the work"),
    "fields": Own("the survey's own fields say what the sources say"),
    "authors": Own("the authors are these, in this order"),
    "links": Own("the links lead to this very work"),
    "tags": Own("the tags say what the sources say, by the definitions of the terms"),
    "published": Own("tags of the published pool stay as published, another reading is a dispute"),
    "sources": Own("each source exists, and says what its note says"),
    "levels": Own("level and confidence fit each source"),
    "summary": Own("summary and notes are right, and sentences of our own"),
    "reason": Own("the reason is right, and enough"),
    "waivers": Own("the warnings that are waived are wrong for this record"),
}
"""What a person has to judge, by question."""


def text(document: Document, width: int | None) -> list[Line]:
    """The change for a terminal."""
    room = width or _PIPE_WIDTH
    head = headline(document) if document["has_meaning"] else nothing(document)
    sentences = [files_outside(document, MAX_FILES_NAMED), *([sentence] for sentence in (head, *document["remarks"]))]
    lines = [line(part) for sentence in sentences if sentence for part in wrap(_shown(sentence), room)]
    for title, entries in sections(document):
        lines += [(), (Span(title, "heading"),)]
        for first, *below in entries:
            lines += [line(part) for part in wrap(_shown(first), room, first="  ", rest="    ")]
            for words in below:
                lines += [line(part) for part in wrap(_shown(words), room, first="    ", rest="      ")]
    for one in shift_tables(document):
        lines += [(), *table.lines(one, width)]
    left = claims_left(document) if document["has_meaning"] else ()
    return [*lines, *([(), *(line(part) for part in wrap(_shown(left), room))] if left else [])]


def files_outside(document: Document, most: int) -> Words:
    """Name the files that a pull request changes beside data, so many at most; nothing where there are none."""
    total, files = document["outside"]["total"], document["outside"]["files"][:most]
    if not total:
        return ()
    named = f"{total} {'file' if total == 1 else 'files'} outside data/"
    left = total - len(files)
    more = [Own(f", and {left} more")] if left else []
    return [Own(f"This pull request changes {named}: "), *_joined(([name] for name in files), _COMMA), *more, Own(".")]


def nothing(document: Document) -> Own:
    """What there is to say where nothing has changed in meaning."""
    what = [_REORDERED[name] for name in document["reordered"]] + [_FORMS[name] for name in document["form"]]
    if not what:
        return Own("No change: the data is the same.")
    joined = f"{', '.join(what[:-1])} and {what[-1]}" if len(what) > 1 else what[0]
    return Own(f"No change in meaning: only {joined} changed.")


def _nouns(document: Document) -> tuple[str, str]:
    """Return what one record is called, and several: words that are no markup, since they stand among our own."""
    nouns = [name for name in document.get("noun", ()) if isinstance(name, str) and is_noun(name)]
    return (nouns[0], nouns[1]) if len(nouns) == 2 else ("paper", "papers")


def headline(document: Document) -> Own:
    """The change in a line."""
    one, many = _nouns(document)
    papers, exclusions, findings = document["papers"], document["exclusions"], document["findings"]
    claims = document["claims"]
    parts = [
        _number(papers["added"], f"{one} added", f"{many} added"),
        _number(papers["removed"], f"{one} removed", f"{many} removed"),
        _number([one for one in papers["changed"] if _is_renamed(one)], "renamed", "renamed"),
        _number([one for one in papers["changed"] if one["tags"]], "retagged", "retagged"),
        _number([one for one in papers["changed"] if _corrections(one)], "corrected", "corrected"),
        _number(exclusions["added"], "exclusion added", "exclusions added"),
        _number(exclusions["removed"], "exclusion removed", "exclusions removed"),
        _number(exclusions["changed"], "exclusion changed", "exclusions changed"),
        _number(document["taxonomy"], "change of the taxonomy", "changes of the taxonomy"),
        _number([one for one in claims["changed"] if one["before"] is None], "claim new", "claims new"),
        _number(_turned(document, holds=False), "claim broken", "claims broken"),
        _number(_turned(document, holds=False, today=True), "claim falls today", "claims fall today"),
        _number(_turned(document, holds=True), "claim made true", "claims made true"),
        _number(_turned(document, holds=True, today=True), "claim holds today again", "claims hold today again"),
        _number(claims["reworded"], "claim changed", "claims changed"),
        _number(claims["gone"], "claim gone", "claims gone"),
        _number(document["other_files"], "other data file changed", "other data files changed"),
        _number(findings["new"], "finding new", "findings new"),
        _number(findings["gone"], "finding gone", "findings gone"),
    ]
    return Own(", ".join(part for part in parts if part) + ".")


def sections(document: Document) -> Iterator[tuple[Own, list[Entry]]]:
    """Headings, each with its entries; empty ones left out."""
    papers, exclusions, claims = document["papers"], document["exclusions"], document["claims"]
    many = _nouns(document)[1]
    heading = many[:1].upper() + many[1:]
    promoted = {key: name for name, key in document["promoted"].items()}
    demoted = document["demoted"]
    parts: dict[str, list[Entry]] = {
        "Claims broken": [_claim(one) for one in _turned(document, holds=False)],
        "Claims that fall today": [_claim(one) for one in _turned(document, holds=False, today=True)],
        f"{heading} added": [
            _added(paper, "key", _from(promoted.get(str(paper.get("key", ""))), " promoted from "))
            for paper in papers["added"]
        ],
        f"{heading} removed": [
            [[one["name"], _COLON, one["title"], *_from(demoted.get(one["name"]), " excluded as ")]]
            for one in papers["removed"]
        ],
        f"{heading} renamed": [
            [[one["was"], Own(" is "), one["name"], Own(" now")]] for one in papers["changed"] if _is_renamed(one)
        ],
        f"{heading} retagged": _retagged(papers["changed"], many),
        f"{heading} corrected": [_changed(one, rest) for one in papers["changed"] if (rest := _corrections(one))],
        "Exclusions added": [_added(one, "id") for one in exclusions["added"]],
        "Exclusions removed": [[[one["name"], _COLON, one["title"]]] for one in exclusions["removed"]],
        "Exclusions changed": [_changed(one, [*one["tags"], *one["fields"]]) for one in exclusions["changed"]],
        "To be judged by a person": [
            [[one["record"], _COLON, *_joined(([_ASKED[name]] for name in one["questions"]), _SEMICOLON)]]
            for one in document["to_judge"]
        ],
        "Taxonomy": [[[f"{sentence[:1].upper()}{sentence[1:]}."]] for sentence in document["taxonomy"]],
        "Claims made true": [_claim(one) for one in _turned(document, holds=True)],
        "Claims that hold today again": [_claim(one) for one in _turned(document, holds=True, today=True)],
        "Claims new": [_claim(one) for one in claims["changed"] if one["before"] is None],
        "Claims changed": [[[one["id"], _COLON, one["claim"]]] for one in claims["reworded"]],
        "Claims gone": [[[one["id"], _COLON, one["claim"]]] for one in claims["gone"]],
        "Other data files changed": [
            _beside(name, document["other_entries"].get(name, ())) for name in document["other_files"]
        ],
        "Findings new": [_finding(finding) for finding in document["findings"]["new"]],
        "Findings gone": [_finding(finding) for finding in document["findings"]["gone"]],
    }
    for title, entries in parts.items():
        if entries:
            yield Own(title), entries


def shift_tables(document: Document) -> list[Table]:
    """The counts that shifted, and the cells that turned."""
    tables = []
    shifts = [("total", name, *pair) for name, pair in document["totals"].items() if pair[0] != pair[1]]
    shifts += [(one["fields"][0], one["values"][0], one["before"], one["after"]) for one in document["counts"]]
    if shifts:
        counts = tuple((*shift, f"{shift[-1] - shift[-2]:+d}") for shift in shifts)
        tables.append(Table("counts", "Counts", ("field", "value", "before", "after", "change"), counts))
    cells = tuple(
        (" x ".join(one["fields"]), " x ".join(one["values"]), one["before"], one["after"], one["turn"])
        for one in document["cells"]
    )
    if cells:
        tables.append(Table("cells", "Cells", ("fields", "values", "before", "after", "what"), cells))
    return tables


def claims_left(document: Document) -> Words:
    """How many claims the change leaves as they were; nothing where there is none."""
    left, falling = document["claims"]["left"], document["claims"]["falling"]
    if not left:
        return ()
    words: list[str] = [Own(f"{left} {'claim is' if left == 1 else 'claims are'} as before.")]
    if falling:
        words.append(Own(f" Of these {len(falling)} fall{'s' * (len(falling) == 1)} over the pool of today: "))
        words += [*_joined(([name] for name in falling), _COMMA), Own(".")]
    return words


def _shown(words: Words) -> str:
    return "".join(printable(word, limit=2000) for word in words)


def _joined(parts: Iterable[Words], separator: Own) -> list[str]:
    words: list[str] = []
    for part in parts:
        words += [*([separator] if words else []), *part]
    return words


def _number(things: Sized, one: str, many: str) -> str:
    return f"{len(things)} {one if len(things) == 1 else many}" if things else ""


def _turned(document: Document, *, holds: bool, today: bool = False) -> list[Document]:
    """The claims that hold, or fail, unlike before: as they are written, or over the pool of today alone.

    Over that pool, a claim that falls by other records than before counts, too.
    """
    changed = document["claims"]["changed"]
    if not today:
        return [one for one in changed if one["before"] not in (None, one["after"]) and one["after"] == holds]
    alike = [one for one in changed if one["before"] == one["after"] and "today" in one["pools"]]
    return [one for one in alike if one["pools"]["today"]["after"] == holds]


def _claim(claim: Document) -> Entry:
    pools = claim["pools"]
    words: list[str] = []
    if "published" in pools and "today" in pools:
        published, today = pools["published"], pools["today"]
        words.append(Own(f"published pool: {'holds' if published['after'] else 'fails'}; today: "))
        words.append(Own("holds" if today["after"] else "falls"))
        words += [Own(", by "), *_joined(([name] for name in today["falls_by"]), _COMMA)] if today["falls_by"] else []
    if not claim["after"]:
        told = (Own(" ("), *words, Own(")")) if words else ()
        words = [Own(" fails: expected "), claim["expected"], Own("; found "), claim["found"], *told]
    else:
        words = [_COLON, *words] if words else [Own(" holds")]
    return [[claim["id"], *words, Own(". "), claim["claim"]]]


def _is_renamed(one: Document) -> bool:
    return any(change["field"] == "key" for change in one["fields"])


def _corrections(one: Document) -> list[Document]:
    """The changes of a paper's fields, but for its key."""
    return [change for change in one["fields"] if change["field"] != "key"]


def _from(name: str | None, what: str) -> Words:
    return (Own(f",{what}"), name) if name else ()


def _added(record: Document, name: str, origin: Words = ()) -> Entry:
    """A record whole: a line for each field, and for each item of evidence."""
    entry: list[Words] = [[str(record.get(name, "")), _COLON, str(record.get("title", "")), *origin]]
    for field, value in record.items():
        if field in (name, "title"):
            continue
        if _is_list_of_items(value):
            entry += [[field, Own(f" {number}: "), *_item(item)] for number, item in enumerate(value, 1)]
        else:
            entry.append([field, _COLON, *_value(value)])
    return entry


def _is_list_of_items(value: object) -> bool:
    """Whether a value is a list of mappings, such as evidence."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _item(item: Mapping[str, object]) -> Words:
    return _joined(([name, _COLON, *_value(value)] for name, value in item.items()), _SEMICOLON)


def _value(value: object) -> Words:
    """The value of a field in words."""
    if value is None:
        return (Own("(none)"),)
    if isinstance(value, Mapping):
        parts = ([name, Own(" "), *_value(one)] for name, one in value.items())
        return _joined(parts, _COMMA) or (Own("none arises"),)
    if isinstance(value, list | tuple):
        return _joined((_value(one) for one in value), _SEMICOLON)
    return (str(value),)


def _retagged(changed: Iterable[Document], noun: str) -> list[Entry]:
    """A sentence for each paper, or for several that were retagged in the same way."""
    alike: dict[str, list[Document]] = {}
    for one in changed:
        if one["tags"]:
            alike.setdefault(repr(one["tags"]), []).append(one)
    entries: list[Entry] = []
    for group in alike.values():
        words = _joined((words for change in group[0]["tags"] for words in _change(change)), _SEMICOLON)
        names = [one["name"] for one in group]
        if len(names) < _MANY_ALIKE:
            entries += [[[name, _COLON, *words]] for name in names]
        else:
            listed = _joined(([name] for name in names), _COMMA)
            entries.append([[Own(f"{len(names)} {noun}: "), *words, Own(" ("), *listed, Own(")")]])
    return entries


def _changed(one: Document, changes: Sequence[Document]) -> Entry:
    """A changed record: in a line if it is one change, else a line for each."""
    lines = [words for change in changes for words in _change(change)]
    return [[one["name"], _COLON, *lines[0]]] if len(lines) == 1 else [[one["name"]], *lines]


def _change(change: Document) -> list[Words]:
    """What became of a field, old and new; of a list of items, a sentence for each."""
    field, before, after = change["field"], change["before"], change["after"]
    if change.get("unread"):
        if _is_list_of_items(before) or _is_list_of_items(after):
            return [[field, _COLON, _UNREAD]]
        sides = [(_UNREAD,) if side is None else _value(side) for side in (before, after)]
        return [[field, _COLON, *sides[0], _ARROW, *sides[1]]]
    if change.get("items"):
        return [[field, *_item_change(item["before"], item["after"])] for item in change["items"]]
    if before is None:
        return [[field, Own(" added: "), *_value(after)]]
    if after is None:
        return [[field, Own(" removed: "), *_value(before)]]
    return [[field, _COLON, *_value(before), _ARROW, *_value(after)]]


_UNSAID = {"verdict": "supported", "copy": "no"}
"""What parts of an item of evidence are that it does not say."""


def _item_change(before: Mapping[str, object] | None, after: Mapping[str, object] | None) -> Words:
    if before is None or after is None:
        return [Own(" removed: " if after is None else " added: "), *_item(before or after or {})]
    names = dict.fromkeys((*before, *after))
    other = [name for name in names if before.get(name) != after.get(name)]
    old, new = ({**_UNSAID, **item} for item in (before, after))
    turned = ([name, _COLON, *_value(old.get(name)), _ARROW, *_value(new.get(name))] for name in other)
    same = {name: before[name] for name in names if name not in other}
    unchanged = (Own("; unchanged: "), *_item(same)) if same else ()
    return [Own(" changed: "), *_joined(turned, _SEMICOLON), *unchanged]


def _beside(name: str, entries: Sequence[Document]) -> Entry:
    """A file beside the records, with its entries that are other ones now."""
    parts: list[Words] = []
    for one in entries:
        called = _joined(([part] for part in one["name"]), Own(" "))
        fields = _joined(([field] for field in one["fields"]), _COMMA)
        parts.append([*called, *([Own(" "), *fields] if fields else []), _ENTRY_CHANGES[one["change"]]])
    return [[name, *([_COLON, *_joined(parts, _SEMICOLON)] if parts else [])]]


_ENTRY_CHANGES = {name: Own(f" {name}") for name in ("added", "removed", "changed")}


def _finding(finding: Document) -> Entry:
    record = (Own(" ["), finding["record"], Own("]")) if finding["record"] else ()
    return [[finding["path"], _COLON, finding["code"], Own(" "), finding["message"], *record]]
