"""The meaning of a change: as a JSON document, and that document in sentences, which `comment` writes as Markdown.

A sentence is a sequence of words: words of this tool are `Own`, all others are texts of the data, which must not act
as markup. In a changed value, the earlier part is `Gone` and the later one `New`; code points tell parts apart that
look alike. Sentences come from the document alone, and this module imports only the standard library and `base`: the
comment is written where no code of the pull request runs and nothing else is installed.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any, TypeAlias
from orchtrace_corpus.base.findings import Finding, is_noun, printable
from orchtrace_corpus.base.lookalikes import code_points
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text import table
from orchtrace_corpus.base.text.layout import Line, line, pluralize, separated, wrap
from orchtrace_corpus.base.text.table import Table

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.analysis.difference import ClaimTurn, Difference


class Own(str):
    """Words of this tool."""

    __slots__ = ()


class Part(str):
    """A part of a changed text of the data: unchanged, unless it is `Gone` or `New`."""

    __slots__ = ()


class Gone(Part):
    """A part of the earlier text only."""


class New(Part):
    """A part of the later text only."""


Words: TypeAlias = Sequence[str]
Document: TypeAlias = Mapping[str, Any]


class Entry(NamedTuple):
    """A sentence and those below it, with their line in a data file, in the earlier state if `is_gone`."""

    lines: Sequence[Words]
    path: str = ""
    line: int = 0
    is_gone: bool = False


class Section(NamedTuple):
    """A heading and its entries; with `is_new`, no entry is about a record of the earlier state."""

    title: Own
    entries: Sequence[Entry]
    is_new: bool = False


_TURNS = {
    "broken": ("Claims broken", "claim broken", "claims broken"),
    "falls today": ("Claims that fall today", "claim falls today", "claims fall today"),
    "made true": ("Claims made true", "claim made true", "claims made true"),
    "holds today again": ("Claims that hold today again", "claim holds today again", "claims hold today again"),
    "new": ("Claims new", "claim new", "claims new"),
}
"""The changes of claims: the heading, and the nouns of the headline."""

_PIPE_WIDTH = 100
_COLON, _ARROW, _COMMA, _SEMICOLON = Own(": "), Own(" -> "), Own(", "), Own("; ")
MAX_FILES = 1000
"""The most files outside the data that the document names; the others are counted."""
MAX_FILES_NAMED = 20
MAX_PATH = 200
"""The most characters that are shown of a path outside the data, so that none fills a comment."""
_MAX_SUBJECTS = 25
"""The most kinds of files with sections of their own."""
_MANY_ALIKE = 3
"""The fewest records with the same changes that are named together."""
_MAX_NAMES = 40
"""The most records in a line."""
_SHORT = 40
"""The longest text that is shown whole, and the length that is shown around a change of a longer one."""
_LONG = 2000
"""The longest text that is shown whole if it has little in common with the other one."""
_MAX_TOKENS = 600
"""The most words that are compared with each other, since time grows with their square."""
_MAX_CODE_POINTS = 8
"""The most characters beyond ASCII in which two texts that look alike can differ."""
_ALIKE = str.maketrans("1I|0", "lllO")
_KINDS = {str: "text", list: "list", dict: "fields", int: "number", bool: "truth"}

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
    "changed": Own("there is a reason for each change, and what is now is right"),
    "removed": Own("there is a reason to remove it"),
}
"""The questions to a person, by topic."""


def as_document(change: "Difference") -> dict[str, Any]:
    """Return the change as a JSON document, without its envelope."""
    return {
        "noun": list(change.vocabulary.noun),
        "before": change.names[0],
        "after": change.names[1],
        "has_meaning": change.has_meaning,
        **{name: _plain(getattr(change, name)) for name in ("remarks", "files", "moved", "to_judge")},
        "totals": {shift.fields[0]: [shift.before, shift.after] for shift in change.totals},
        "counts": _plain(change.counts),
        "cells": [{**_plain(shift), "turn": shift.turn} for shift in change.cells],
        "findings": {
            "new": list(map(_finding_data, change.findings_new)),
            "gone": list(map(_finding_data, change.findings_gone)),
        },
        "claims": {
            "changed": list(map(_claim_data, change.claims)),
            "left": change.claims_left,
            "falling": list(change.claims_falling),
        },
        "outside": _outside(change.outside),
    }


def _plain(value: Any) -> Any:
    """Return named tuples as mappings, and other tuples as lists."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def refusal(names: tuple[str, str], outside: Sequence[str], reason: str) -> dict[str, Any]:
    """Return the document of a pull request whose data cannot be compared."""
    return {"before": names[0], "after": names[1], "refused": reason, "outside": _outside(outside)}


def _outside(files: Sequence[str]) -> dict[str, Any]:
    return {"total": len(files), "files": list(files[:MAX_FILES])}


def _claim_data(turn: "ClaimTurn") -> dict[str, Any]:
    was, now = turn
    return {
        "id": now.claim.id,
        "turn": turn.turn,
        "claim": now.claim.claim,
        "before": None if was is None else was.holds,
        "after": now.holds,
        "expected": now.expected,
        "found": now.found,
        "pools": {
            name.value: {
                "before": was.pools[name].holds if was is not None and name in was.pools else None,
                "after": pool.holds,
                "found": pool.found,
                "falls_by": list(pool.falls_by),
            }
            for name, pool in now.pools.items()
        },
    }


def _finding_data(finding: Finding) -> dict[str, Any]:
    return {
        "path": finding.location.path,
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "record": finding.record,
    }


def text(document: Document, width: int | None) -> list[Line]:
    """Return the change for a terminal."""
    room = width or _PIPE_WIDTH
    head = headline(document) if document["has_meaning"] else nothing(document)
    sentences = [files_outside(document, MAX_FILES_NAMED), [head], *([remark] for remark in document["remarks"])]
    blocks = [[part for sentence in sentences if sentence for part in _lines(sentence, room)]]
    for section in sections(document):
        lines: list[Line] = [line(section.title, "heading")]
        for entry in section.entries:
            for index, words in enumerate(entry.lines):
                lines += _lines(words, room, "    " if index else "  ", "      " if index else "    ")
        blocks.append(lines)
    blocks += [table.lines(shifts, width) for shifts in shift_tables(document)]
    if document["has_meaning"] and (left := claims_left(document)):
        blocks.append(_lines(left, room))
    return separated(blocks)


def _lines(words: Words, width: int, first: str = "", rest: str = "") -> list[Line]:
    """Return words for a terminal, broken into lines."""
    marks = {Gone: ("[-", "-]"), New: ("{+", "+}")}
    shown = ""
    for word in words:
        opened, closed = marks.get(type(word), ("", ""))
        shown += f"{opened}{printable(word, limit=len(word))}{closed}"
    return [line(part) for part in wrap(shown, width, first=first, rest=rest)]


def files_outside(document: Document, most: int) -> Words:
    """Name the files that a pull request changes outside data/, at most so many; empty without any."""
    total, files = document["outside"]["total"], document["outside"]["files"][:most]
    if not total:
        return ()
    files = [name if len(name) <= MAX_PATH else f"{name[:MAX_PATH]}…" for name in files]
    more = f", and {total - len(files)} more." if total > len(files) else "."
    return [Own(f"This pull request changes {pluralize(total, 'file')} outside data/: "), *_listed(files), Own(more)]


def nothing(document: Document) -> Own:
    """Return the sentence for a change without meaning."""
    files = document["files"]
    if not files:
        return Own("No change: the data is the same.")
    changed = "comments or the order of records" if any(file["asides"] for file in files) else "the layout"
    return Own(f"No change in meaning: only {changed} changed.")


def headline(document: Document) -> Own:
    """Return the change in a line."""
    parts = []
    for subject, files in _by_subject(document):
        records = [record for file in files for record in file["records"]]
        counts = {
            kind: sum(1 if record["name"] else len(record["values"]) for record in records if record["change"] == kind)
            for kind in ("changed", "removed", "added")
        }
        shown = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        parts += [f"{subject}: {shown}"] if shown else []
    counted = [(len(_turned(document, turn)), singular, plural) for turn, (_, singular, plural) in _TURNS.items()]
    counted += [(len(document["findings"][kind]), f"finding {kind}", f"findings {kind}") for kind in ("new", "gone")]
    return Own("; ".join([*parts, *(pluralize(*part) for part in counted if part[0])]) + ".")


def sections(document: Document) -> Iterator[Section]:
    """Yield the sections that have entries: what broke, what changed of earlier records, then what is new."""

    def claims(turn: str) -> Section:
        return Section(Own(_TURNS[turn][0]), list(map(_claim, _turned(document, turn))), is_new=turn == "new")

    def questions(title: str, *, is_new: bool) -> Section:
        reviews = [review for review in document["to_judge"] if review["is_new"] is is_new]
        return Section(Own(title), list(_questions(reviews)), is_new)

    subjects = _by_subject(document)
    ordered = (
        *map(claims, ("broken", "falls today")),
        *(_records(document, *subject, kind) for kind in ("changed", "removed") for subject in subjects),
        questions("To be judged by a person", is_new=False),
        Section(Own("Changed without another meaning"), list(_asides(document))),
        *map(claims, ("made true", "holds today again")),
        *(Section(Own(f"Findings {kind}"), _findings(document, kind), is_new=True) for kind in ("new", "gone")),
        claims("new"),
        *(_records(document, *subject, "added") for subject in subjects),
        questions("To be judged of what is new", is_new=True),
    )
    yield from (section for section in ordered if section.entries)


def _findings(document: Document, kind: str) -> list[Entry]:
    entries = []
    for finding in document["findings"][kind]:
        record = (Own(" ["), finding["record"], Own("]")) if finding["record"] else ()
        entries.append(Entry([[finding["path"], _COLON, finding["code"], Own(" "), finding["message"], *record]]))
    return entries


def shift_tables(document: Document) -> list[Table]:
    """Return the counts that changed, and the cells that are filled or empty now, as tables."""
    shifts = [("total", name, *pair) for name, pair in document["totals"].items() if pair[0] != pair[1]]
    shifts += [(row["fields"][0], row["values"][0], row["before"], row["after"]) for row in document["counts"]]
    counts = tuple((*shift, f"{shift[-1] - shift[-2]:+d}") for shift in shifts)
    cells = tuple(
        (" x ".join(cell["fields"]), " x ".join(cell["values"]), cell["before"], cell["after"], cell["turn"])
        for cell in document["cells"]
    )
    tables = (
        Table("counts", "Counts", ("field", "value", "before", "after", "change"), counts),
        Table("cells", "Cells", ("fields", "values", "before", "after", "what"), cells),
    )
    return [shifted for shifted in tables if shifted.rows]


def claims_left(document: Document) -> Words:
    """Return how many claims the change does not affect, and which of these fall today; empty without any."""
    left, falling = document["claims"]["left"], document["claims"]["falling"]
    if not left:
        return ()
    words: list[str] = [Own(f"{left} {'claim is' if left == 1 else 'claims are'} as before.")]
    if falling:
        words.append(Own(f" Of these {len(falling)} fall{'s' * (len(falling) == 1)} over the pool of today: "))
        words += _listed(falling[:_MAX_NAMES])
        words.append(Own(f" and {len(falling) - _MAX_NAMES} more." if len(falling) > _MAX_NAMES else "."))
    return words


def _by_subject(document: Document) -> Iterable[tuple[str, list[Document]]]:
    """Return the files of each subject, which is a plain noun, since it is among our own words."""
    subjects: dict[str, list[Document]] = {}
    for file in document["files"]:
        subject = document["noun"][1] if file["subject"] == "papers" else str(file["subject"])
        if not is_noun(subject) or (len(subjects) >= _MAX_SUBJECTS and subject not in subjects):
            subject = "other files"
        subjects.setdefault(subject, []).append(file)
    return subjects.items()


def _records(document: Document, subject: str, files: Sequence[Document], kind: str) -> Section:
    """Return the records of a subject that were added, removed or changed; those with the same changes together."""
    alike: dict[str, list[tuple[Document, Document]]] = {}
    for file in files:
        for record in file["records"]:
            if record["change"] == kind:
                values = [(value["path"], value["before"], value["after"]) for value in record["values"]]
                alike.setdefault(repr(values), []).append((file, record))
    entries = []
    for group in alike.values():
        names = [_name(document, file, record) for file, record in group]
        if len(names) >= _MANY_ALIKE:
            names = [[Own(f"{len(names)} {subject}: "), *_joined(names, _COMMA)]]
        for name, (file, record) in zip(names, group, strict=False):
            lines = _with_values(name, record["values"], kind)
            entries.append(Entry(lines, file["path"], record["line"], kind == "removed"))
    return Section(Own(f"{subject[:1].upper()}{subject[1:]} {kind}"), entries, is_new=kind == "added")


def _name(document: Document, file: Document, record: Document) -> Words:
    """Return the name of a record, and its file unless it is the usual one of its subject."""
    is_elsewhere = not record["name"] or file["path"] != f"data/{file['subject']}.yaml"
    words = _listed(filter(None, (file["path"] * is_elsewhere, record["name"])), Own(" "))
    if record["change"] == "changed" and record["was"] != record["name"]:
        words += [Own(", until now "), record["was"]]
    exclusion = document["moved"].get(record["name"]) if file["path"] == "data/papers.yaml" else None
    if exclusion and record["change"] != "changed":
        words += [Own(", promoted from " if record["change"] == "added" else ", excluded as "), exclusion]
    return words


def _with_values(name: Words, values: Sequence[Document], kind: str) -> list[Words]:
    """Return the changes of a record: a single one in the line of its name, several in a line each."""
    lines = [words for value in values for words in _value_lines(value, is_whole=kind != "changed")]
    return [[*name, _COLON, *lines[0]]] if len(lines) == 1 else [name, *lines]


def _value_lines(value: Document, *, is_whole: bool) -> Iterator[Words]:
    """Yield the change of a value in a line; items that were added or removed in a line each."""
    path = "".join(part if part.startswith("[") else f".{part}" for part in value["path"]).removeprefix(".")
    before, after = value["before"], value["after"]
    if before is not None and after is not None:
        yield [path, _COLON, *compared(before, after)]
        return
    only = after if before is None else before
    verb = _COLON if is_whole else Own(" added: " if before is None else " removed: ")
    if isinstance(only, list) and only and all(isinstance(item, Mapping) for item in only):
        for position, item in enumerate(only, 1):
            yield [f"{path}[{position}]", verb, *_value(item)]
    else:
        yield [path, verb, *_value(only)]


def compared(before: Any, after: Any) -> list[str]:
    """Return what was and what is, with what differs between them marked; never two halves that look alike."""
    if before == after:
        return _value(before)
    if isinstance(before, str) and isinstance(after, str):
        return _compared_texts(before, after)
    are_lists = isinstance(before, list) and isinstance(after, list)
    if are_lists and all(isinstance(item, str) for item in (*before, *after)):
        return _compared_lists(before, after)
    sides = [_value(side) for side in (before, after)]
    if type(before) is not type(after):
        for words, side in zip(sides, (before, after), strict=True):
            words.insert(0, Own(f"({_KINDS[type(side)]}) "))
    return [*sides[0], _ARROW, *sides[1]]


def _compared_texts(before: str, after: str) -> list[str]:
    runs = _text_runs(before, after)
    shared = sum(len(was) for was, _, is_equal in runs if is_equal)
    is_short = max(len(before), len(after)) <= _SHORT and "://" not in before
    is_another = 2 * shared < max(len(before), len(after)) <= _LONG
    if is_short or is_another:
        return [*_value(before), _ARROW, *_value(after), *_code_points(before, after)]
    words: list[str] = []
    for index, (was, now, is_equal) in enumerate(runs):
        if not is_equal:
            named = _code_points(was, now)
            words += [*([Gone(was)] if was else []), *([New(now)] if now else []), *named]
            words += [Own(" ")] if named and index < len(runs) - 1 else []
            continue
        if len(was) <= 2 * _SHORT:
            words.append(Part(was))
            continue
        if index > 0:
            words += [Part(re.sub(r"\S*$", "", was[:_SHORT]) or was[:_SHORT]), Own(" …")]
        if index < len(runs) - 1:
            words += [Own(" " if index > 0 else "… "), Part(re.sub(r"^\S*", "", was[-_SHORT:]) or was[-_SHORT:])]
    return words


def _compared_lists(before: Sequence[str], after: Sequence[str]) -> list[str]:
    parts: list[Words] = []
    for old, new, is_equal in _runs(before, after):
        if is_equal:
            kept = [[item] if len(item) <= 2 * _SHORT else [item[:_SHORT], Own(" …")] for item in old]
            parts += kept if len(kept) <= 4 else [[Own(f"({len(kept)} that are as before)")]]
            continue
        for was, now in zip_longest(old, new):
            if was is not None and now is not None and was != now:
                parts.append(_compared_texts(was, now))
            else:
                parts.append([Gone(was)] if now is None else [now if was == now else New(now)])
    is_order = sorted(before) == sorted(after)
    return [*_joined(parts, _SEMICOLON), *([Own(" (the same in another order)")] if is_order else [])]


def _runs(before: Sequence[str], after: Sequence[str]) -> list[tuple[list[str], list[str], bool]]:
    """Return the runs of two sequences that are equal or differ, in turn."""
    shortest = min(len(before), len(after))
    head = next((at for at in range(shortest) if before[at] != after[at]), shortest)
    tail = next((at for at in range(shortest - head) if before[-1 - at] != after[-1 - at]), shortest - head)
    old, new = [*before[head : len(before) - tail]], [*after[head : len(after) - tail]]
    inner = [(old, new, False)]
    if max(len(old), len(new)) <= _MAX_TOKENS:
        codes = SequenceMatcher(None, old, new).get_opcodes()
        inner = [(old[a:b], new[c:d], kind == "equal") for kind, a, b, c, d in codes]
    start, end = [*before[:head]], [*before[len(before) - tail :]]
    return [run for run in ((start, start, True), *inner, (end, end, True)) if run[0] or run[1]]


def _text_runs(before: str, after: str) -> list[tuple[str, str, bool]]:
    """Return the runs of two texts, word by word; signs between two changes are a part of them."""
    runs: list[tuple[str, str, bool]] = []
    for old, new, is_equal in _runs(*(re.findall(r"\w+|\s+|[^\w\s]", side) for side in (before, after))):
        was, now = "".join(old), "".join(new)
        is_between = is_equal and bool(runs) and not runs[-1][2] and not re.search(r"\w", was)
        if runs and (is_between or runs[-1][2] == is_equal):
            runs[-1] = (runs[-1][0] + was, runs[-1][1] + now, runs[-1][2])
        else:
            runs.append((was, now, is_equal))
    return runs


def _code_points(before: str, after: str) -> list[str]:
    """Name the characters in which two texts differ, if they look alike or differ in letters beyond ASCII."""
    old, new = set(before), set(after)
    beyond_ascii = [character for character in old ^ new if not character.isascii()]
    if _look(before) != _look(after) and not 0 < len(beyond_ascii) <= _MAX_CODE_POINTS:
        return []
    (was, now, _), *_ = [run for run in _runs(before, after) if not run[2]] or [([], [], False)]
    return [Own(f" ({code_points(was) or 'nothing'}"), _ARROW, Own(f"{code_points(now) or 'nothing'})")]


def _look(text: str) -> str:
    """Return a text as it looks: without blanks, letters and digits that are drawn alike as one."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", printable(text, limit=len(text)))).translate(_ALIKE)


def _value(value: object, *, is_inner: bool = False) -> list[str]:
    """Return a value in words; inside another one in brackets, so that it shows where it ends."""
    if isinstance(value, Mapping):
        parts = [[name, _COLON, *_value(part, is_inner=True)] for name, part in value.items()]
        opened, closed = Own("{"), Own("}")
    elif isinstance(value, list):
        parts, opened, closed = [_value(part, is_inner=True) for part in value], Own("("), Own(")")
    else:
        return [str(value)] if value not in ("", None) else [Own("(none)" if value is None else "(empty)")]
    words = _joined(parts, _SEMICOLON) or [Own("(empty)")]
    return [opened, *words, closed] if is_inner else words


def _questions(reviews: Iterable[Document]) -> Iterator[Entry]:
    """Yield the questions to a person, those about the same topics together."""
    records: dict[tuple[str, ...], list[Words]] = {}
    for review in reviews:
        name = _listed(filter(None, (review["path"], review["record"])), Own(" "))
        records.setdefault(tuple(review["questions"]), []).append(name)
    for questions, names in records.items():
        asked = _listed((_ASKED[question] for question in questions), _SEMICOLON)
        for start in range(0, len(names), _MAX_NAMES):
            yield Entry([[*_joined(names[start : start + _MAX_NAMES], _COMMA), _COLON, *asked]])


def _asides(document: Document) -> Iterator[Entry]:
    """Yield the changes of comments and of the order of lists."""
    for file in document["files"]:
        for value in file["asides"]:
            yield Entry(_with_values([file["path"]], [value], "changed"), file["path"], value["line"])


def _joined(parts: Iterable[Words], separator: Own) -> list[str]:
    words: list[str] = []
    for part in parts:
        words += [*([separator] if words else []), *part]
    return words


def _listed(texts: Iterable[str], separator: Own = _COMMA) -> list[str]:
    return _joined(([text] for text in texts), separator)


def _turned(document: Document, turn: str) -> list[Document]:
    return [claim for claim in document["claims"]["changed"] if claim["turn"] == turn]


def _claim(claim: Document) -> Entry:
    words: list[str] = []
    published, today = (claim["pools"].get(name) for name in ("published", "today"))
    if published and today:
        words.append(Own(f"published pool: {'holds' if published['after'] else 'fails'}; today: "))
        words.append(Own("holds" if today["after"] else "falls"))
        words += [Own(", by "), *_listed(today["falls_by"])] if today["falls_by"] else []
    if claim["after"]:
        words = [_COLON, *words] if words else [Own(" holds")]
    else:
        pools = (Own(" ("), *words, Own(")")) if words else ()
        words = [Own(" fails: expected "), claim["expected"], Own("; found "), claim["found"], *pools]
    return Entry([[claim["id"], *words, Own(". "), claim["claim"]]])
