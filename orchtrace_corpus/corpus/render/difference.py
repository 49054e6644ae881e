"""Describes the meaning of a change from its JSON document; `comment` writes the same as Markdown.

Every sentence is a sequence of words: those of this tool are `Own`, all others are texts of the data, whatever they
look like. So a form in which texts of the data must not act, such as Markdown, knows which they are. Of a value that
changed, what was is `Gone` and what is is `New`, and two that look alike are told apart by code points. Nothing here
may import more than the standard library and `base`, since the comment is written where nothing else is installed.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, TypeAlias

from orchtrace_corpus.base.findings import is_noun, printable
from orchtrace_corpus.base.lookalikes import code_points
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text import table
from orchtrace_corpus.base.text.layout import Line, Span, line, pluralize, wrap
from orchtrace_corpus.base.text.table import Table


class Own(str):
    """Words of this tool; what is no `Own` is text of the data."""

    __slots__ = ()


class Part(str):
    """A part of a text of the data that changed: the same before and after, unless it is `Gone` or `New`."""

    __slots__ = ()


class Gone(Part):
    """A part that was and is no longer."""


class New(Part):
    """A part that is and was not before."""


Words: TypeAlias = Sequence[str]
Document: TypeAlias = Mapping[str, Any]


class Entry(NamedTuple):
    """A sentence and those below it, with the place in a data file that they are about.

    Attributes:
        path: The file; empty where there is no place.
        line: The line.
        is_gone: Whether the place is in the earlier state, since there is none in the later one.
    """

    lines: Sequence[Words]
    path: str = ""
    line: int = 0
    is_gone: bool = False


class Section(NamedTuple):
    """A heading and its entries; `is_new` says that they tell nothing of records that were there before."""

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
MAX_FILES_NAMED = 20
MAX_PATH = 200
"""The characters that are shown of a path outside the data: endless ones must not fill a comment."""
_MOST_SUBJECTS = 25
"""So many kinds of files have sections of their own."""

_MANY_ALIKE = 3
"""So many records with the same changes are told together."""

_MOST_NAMES = 40
"""So many records with the same questions stand in a line."""

_SHORT = 40
"""Texts up to this length are shown whole; so much of a longer one is shown around a change."""

_LONG = 2000
"""Texts up to this length that have little in common are shown whole."""

_MOST_TOKENS = 600
"""Between what two texts share at both ends, so many words are compared: the time grows with their square."""

_MOST_CODE_POINTS = 8
"""Texts that differ in more characters beyond ASCII than these do not look alike."""

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


def text(document: Document, width: int | None) -> list[Line]:
    """Return the change for a terminal."""
    room = width or _PIPE_WIDTH
    head = headline(document) if document["has_meaning"] else nothing(document)
    sentences = [files_outside(document, MAX_FILES_NAMED), *([sentence] for sentence in (head, *document["remarks"]))]
    lines = [line(part) for sentence in sentences if sentence for part in wrap(_shown(sentence), room)]
    for section in sections(document):
        lines += [(), (Span(section.title, "heading"),)]
        for entry in section.entries:
            for index, words in enumerate(entry.lines):
                indent = "    " if index else "  "
                lines += [line(part) for part in wrap(_shown(words), room, first=indent, rest=f"{indent}  ")]
    for shifts in shift_tables(document):
        lines += [(), *table.lines(shifts, width)]
    left = claims_left(document) if document["has_meaning"] else ()
    return [*lines, *([(), *(line(part) for part in wrap(_shown(left), room))] if left else [])]


def files_outside(document: Document, most: int) -> Words:
    """Name the files that a pull request changes beside data, so many at most; nothing where there are none."""
    total, files = document["outside"]["total"], document["outside"]["files"][:most]
    if not total:
        return ()
    files = [name if len(name) <= MAX_PATH else f"{name[:MAX_PATH]}…" for name in files]
    left = total - len(files)
    more = [Own(f", and {left} more")] if left else []
    named = f"This pull request changes {pluralize(total, 'file')} outside data/: "
    return [Own(named), *_joined(([name] for name in files), _COMMA), *more, Own(".")]


def nothing(document: Document) -> Own:
    """Return the sentence for a change without meaning."""
    files = document["files"]
    if not files:
        return Own("No change: the data is the same.")
    what = "comments or the order of records" if any(file["asides"] for file in files) else "the layout"
    return Own(f"No change in meaning: only {what} changed.")


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
    """Yield what there is to tell: what broke, what changed of what there was, then what is new."""
    records = [
        (subject, [(file, record) for file in files for record in file["records"]])
        for subject, files in _by_subject(document)
    ]
    judged = [[review for review in document["to_judge"] if review["is_new"] is is_new] for is_new in (False, True)]
    broken, falling, true, holding, new = (
        Section(Own(title), [_claim(claim) for claim in _turned(document, turn)], is_new=turn == "new")
        for turn, (title, _, _) in _TURNS.items()
    )
    findings = []
    for kind in ("new", "gone"):
        entries = []
        for finding in document["findings"][kind]:
            record = (Own(" ["), finding["record"], Own("]")) if finding["record"] else ()
            entries.append(Entry([[finding["path"], _COLON, finding["code"], Own(" "), finding["message"], *record]]))
        findings.append(Section(Own(f"Findings {kind}"), entries, is_new=True))
    found = (
        *(broken, falling),
        *(_records(document, subject, kind, pairs) for kind in ("changed", "removed") for subject, pairs in records),
        Section(Own("To be judged by a person"), list(_questions(judged[0]))),
        Section(Own("Changed without another meaning"), list(_asides(document))),
        *(true, holding, *findings, new),
        *(_records(document, subject, "added", pairs) for subject, pairs in records),
        Section(Own("To be judged of what is new"), list(_questions(judged[1])), is_new=True),
    )
    yield from (section for section in found if section.entries)


def shift_tables(document: Document) -> list[Table]:
    """The counts that shifted, and the cells that turned."""
    tables = []
    shifts = [("total", name, *pair) for name, pair in document["totals"].items() if pair[0] != pair[1]]
    shifts += [(row["fields"][0], row["values"][0], row["before"], row["after"]) for row in document["counts"]]
    if shifts:
        counts = tuple((*shift, f"{shift[-1] - shift[-2]:+d}") for shift in shifts)
        tables.append(Table("counts", "Counts", ("field", "value", "before", "after", "change"), counts))
    cells = tuple(
        (" x ".join(cell["fields"]), " x ".join(cell["values"]), cell["before"], cell["after"], cell["turn"])
        for cell in document["cells"]
    )
    if cells:
        tables.append(Table("cells", "Cells", ("fields", "values", "before", "after", "what"), cells))
    return tables


def claims_left(document: Document) -> Words:
    """Say how many claims the change leaves as they were; empty if there are none."""
    left, falling = document["claims"]["left"], document["claims"]["falling"]
    if not left:
        return ()
    words: list[str] = [Own(f"{left} {'claim is' if left == 1 else 'claims are'} as before.")]
    if falling:
        words.append(Own(f" Of these {len(falling)} fall{'s' * (len(falling) == 1)} over the pool of today: "))
        words += _joined(([name] for name in falling[:_MOST_NAMES]), _COMMA)
        words.append(Own(f" and {len(falling) - _MOST_NAMES} more." if len(falling) > _MOST_NAMES else "."))
    return words


def _by_subject(document: Document) -> Iterable[tuple[str, list[Document]]]:
    """Return the files of each subject; what it is called is no markup, since it stands among our own words."""
    subjects: dict[str, list[Document]] = {}
    for file in document["files"]:
        subject = document["noun"][1] if file["subject"] == "papers" else str(file["subject"])
        if not is_noun(subject) or (len(subjects) >= _MOST_SUBJECTS and subject not in subjects):
            subject = "other files"
        subjects.setdefault(subject, []).append(file)
    return subjects.items()


def _records(document: Document, subject: str, kind: str, pairs: Sequence[tuple[Document, Document]]) -> Section:
    """Tell the records of a subject that are new, gone or changed; those with the same changes together."""
    alike: dict[str, list[tuple[Document, Document]]] = {}
    for file, record in pairs:
        if record["change"] == kind:
            what = [(value["path"], value["before"], value["after"]) for value in record["values"]]
            alike.setdefault(repr(what), []).append((file, record))
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
    """Name a record, and its file where that is not the one of its subject."""
    is_elsewhere = not record["name"] or file["path"] != f"data/{file['subject']}.yaml"
    words = _joined([[name] for name in (file["path"] * is_elsewhere, record["name"]) if name], Own(" "))
    if record["change"] == "changed" and record["was"] != record["name"]:
        words += [Own(", until now "), record["was"]]
    exclusion = document["moved"].get(record["name"]) if file["path"] == "data/papers.yaml" else None
    if exclusion and record["change"] != "changed":
        words += [Own(", promoted from " if record["change"] == "added" else ", excluded as "), exclusion]
    return words


def _with_values(name: Words, values: Sequence[Document], kind: str) -> list[Words]:
    """Tell what became of the values of a record: in a line if it is one change, else a line for each."""
    lines = [words for value in values for words in _value_lines(value, is_whole=kind != "changed")]
    return [[*name, _COLON, *lines[0]]] if len(lines) == 1 else [name, *lines]


def _value_lines(value: Document, *, is_whole: bool) -> Iterator[Words]:
    """Tell what became of a value; of a list of items that is new or gone, each in a line."""
    path = "".join(part if part.startswith("[") else f".{part}" for part in value["path"]).removeprefix(".")
    before, after = value["before"], value["after"]
    if before is not None and after is not None:
        yield [path, _COLON, *compared(before, after)]
        return
    only = after if before is None else before
    what = _COLON if is_whole else Own(" added: " if before is None else " removed: ")
    if isinstance(only, list) and only and all(isinstance(item, Mapping) for item in only):
        for position, item in enumerate(only, 1):
            yield [f"{path}[{position}]", what, *_value(item)]
    else:
        yield [path, what, *_value(only)]


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
    if max(len(old), len(new)) <= _MOST_TOKENS:
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
    """Name the characters in which two texts differ, where they look alike or letters beyond ASCII could deceive."""
    old, new = set(before), set(after)
    beyond_ascii = [character for character in old ^ new if not character.isascii()]
    if _look(before) != _look(after) and not 0 < len(beyond_ascii) <= _MOST_CODE_POINTS:
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


def _questions(judged: Iterable[Document]) -> Iterator[Entry]:
    """Tell what is to be judged of which records: those with the same questions together."""
    records: dict[tuple[str, ...], list[Words]] = {}
    for review in judged:
        name = [part for part in (review["path"], review["record"]) if part]
        records.setdefault(tuple(review["questions"]), []).append(_joined(([part] for part in name), Own(" ")))
    for questions, names in records.items():
        asked = _joined(([_ASKED[question]] for question in questions), _SEMICOLON)
        for start in range(0, len(names), _MOST_NAMES):
            yield Entry([[*_joined(names[start : start + _MOST_NAMES], _COMMA), _COLON, *asked]])


def _asides(document: Document) -> Iterator[Entry]:
    """Tell what changed of a file without a meaning: the order of its lists, and its comments."""
    for file in document["files"]:
        for value in file["asides"]:
            yield Entry(_with_values([file["path"]], [value], "changed"), file["path"], value["line"])


def _shown(words: Words) -> str:
    """Return words for a terminal."""
    marks = {Gone: ("[-", "-]"), New: ("{+", "+}")}
    shown = ""
    for word in words:
        opened, closed = marks.get(type(word), ("", ""))
        shown += f"{opened}{printable(word, limit=len(word))}{closed}"
    return shown


def _joined(parts: Iterable[Words], separator: Own) -> list[str]:
    words: list[str] = []
    for part in parts:
        words += [*([separator] if words else []), *part]
    return words


def _turned(document: Document, turn: str) -> list[Document]:
    return [claim for claim in document["claims"]["changed"] if claim["turn"] == turn]


def _claim(claim: Document) -> Entry:
    words: list[str] = []
    published, today = (claim["pools"].get(name) for name in ("published", "today"))
    if published and today:
        words.append(Own(f"published pool: {'holds' if published['after'] else 'fails'}; today: "))
        words.append(Own("holds" if today["after"] else "falls"))
        words += [Own(", by "), *_joined(([name] for name in today["falls_by"]), _COMMA)] if today["falls_by"] else []
    if not claim["after"]:
        context = (Own(" ("), *words, Own(")")) if words else ()
        words = [Own(" fails: expected "), claim["expected"], Own("; found "), claim["found"], *context]
    else:
        words = [_COLON, *words] if words else [Own(" holds")]
    return Entry([[claim["id"], *words, Own(". "), claim["claim"]]])
