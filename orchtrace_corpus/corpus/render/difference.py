"""A change of the corpus as a JSON document, and that document in sentences, which `comment` writes as Markdown.

A sentence is a sequence of words. Words of this tool are `Own`; all others are texts of the data, which must not act as
markup. In a changed value, `Gone` parts are in the earlier text only, and `New` parts in the later one only; if they
look alike, their code points are added. Sentences are made from the document alone, and this module imports only the
standard library and `base`, since the comment is written where nothing else is installed.
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
    """A sentence, the details below it, and the place in a data file; in the earlier state if `is_gone`."""

    lines: Sequence[Words]
    path: str = ""
    line: int = 0
    is_gone: bool = False


class Section(NamedTuple):
    """A heading and its entries; if `is_new`, no entry is about a record of the earlier state."""

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
"""For each change of a claim its heading, and its name in the headline for one claim and for several."""

_PIPE_WIDTH = 100
_COLON, _ARROW, _COMMA, _SEMICOLON = Own(": "), Own(" -> "), Own(", "), Own("; ")
MAX_FILES = 1000
"""The most files outside the data that the document names; the others are counted."""
MAX_FILES_NAMED = 20
"""The most of them that a text for the terminal names."""
MAX_PATH = 200
"""The most characters that are shown of a path outside the data, so that none fills a comment."""
_MAX_SUBJECTS = 25
"""The most kinds of files that have sections of their own."""
_MIN_GROUP = 3
"""The fewest records with the same changes that are named together."""
_MAX_NAMES = 40
"""The most records in a line."""
_SHORT = 40
"""The most characters of a text that is shown whole, and the context that is shown around a change of a longer text."""
_LONG = 2000
"""The most characters of a text that is shown whole if it has little in common with the other text."""
_MAX_TOKENS = 600
"""The most words that are compared with each other, since the time grows with the square of their number."""
_MAX_CODE_POINTS = 8
"""The most characters beyond ASCII that are named by their code points."""
_LOOKALIKES = str.maketrans("1I|0", "lllO")
_TYPE_NAMES = {str: "text", list: "list", dict: "fields", int: "number", bool: "truth"}

_QUESTIONS = {
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
"""Questions for a reviewer, by topic."""


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
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value


def refusal(names: tuple[str, str], outside: Sequence[str], reason: str) -> dict[str, Any]:
    """Return the document of a pull request whose data cannot be compared."""
    return {"before": names[0], "after": names[1], "refused": reason, "outside": _outside(outside)}


def _outside(files: Sequence[str]) -> dict[str, Any]:
    return {"total": len(files), "files": list(files[:MAX_FILES])}


def _claim_data(turn: "ClaimTurn") -> dict[str, Any]:
    was, now = turn
    pools = {}
    for name, pool in now.pools.items():
        held = was.pools[name].holds if was is not None and name in was.pools else None
        by = list(pool.falls_by)
        pools[name.value] = {"before": held, "after": pool.holds, "found": pool.found, "falls_by": by}
    return {
        "id": now.claim.id,
        "turn": turn.turn,
        "claim": now.claim.claim,
        "before": None if was is None else was.holds,
        "after": now.holds,
        "expected": now.expected,
        "found": now.found,
        "pools": pools,
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
    available = width or _PIPE_WIDTH
    head = headline(document) if document["has_meaning"] else meaningless_change(document)
    sentences = [files_outside(document, MAX_FILES_NAMED), [head], *([remark] for remark in document["remarks"])]
    blocks = [[part for sentence in sentences if sentence for part in _lines(sentence, available)]]
    for section in sections(document):
        lines: list[Line] = [line(section.title, "heading")]
        for entry in section.entries:
            sentence, *details = entry.lines
            lines += _lines(sentence, available, "  ", "    ")
            for detail in details:
                lines += _lines(detail, available, "    ", "      ")
        blocks.append(lines)
    blocks += [table.lines(shifts, width) for shifts in shift_tables(document)]
    left = claims_left(document)
    if document["has_meaning"] and left:
        blocks.append(_lines(left, available))
    return separated(blocks)


def _lines(words: Words, width: int, first: str = "", rest: str = "") -> list[Line]:
    """Return words for a terminal, broken into lines that begin with `first` and `rest`."""
    marks = {Gone: ("[-", "-]"), New: ("{+", "+}")}
    sentence = ""
    for word in words:
        opening, closing = marks.get(type(word), ("", ""))
        sentence += f"{opening}{printable(word, limit=len(word))}{closing}"
    return [line(part) for part in wrap(sentence, width, first=first, rest=rest)]


def files_outside(document: Document, limit: int) -> Words:
    """Name up to `limit` files that a pull request changes outside data/; empty if it changes none."""
    total, files = document["outside"]["total"], document["outside"]["files"][:limit]
    if not total:
        return ()
    files = [name if len(name) <= MAX_PATH else f"{name[:MAX_PATH]}…" for name in files]
    more = f", and {total - len(files)} more." if total > len(files) else "."
    return [Own(f"This pull request changes {pluralize(total, 'file')} outside data/: "), *_list(files), Own(more)]


def meaningless_change(document: Document) -> Own:
    """Return the sentence for a change without meaning."""
    files = document["files"]
    if not files:
        return Own("No change: the data is the same.")
    changed = "comments or the order of records" if any(file["asides"] for file in files) else "the layout"
    return Own(f"No change in meaning: only {changed} changed.")


def headline(document: Document) -> Own:
    """Return a line with the numbers of changes: of records by subject, of claims, and of findings."""
    parts = []
    for subject, files in _by_subject(document):
        counts = dict.fromkeys(("changed", "removed", "added"), 0)
        for record in (record for file in files for record in file["records"]):
            # Of a file that is no list of records, the values are counted.
            counts[record["change"]] += 1 if record["name"] else len(record["values"])
        nonzero = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        if nonzero:
            parts.append(f"{subject}: {nonzero}")
    counts_and_nouns = [(len(_turned_claims(document, turn)), one, more) for turn, (_, one, more) in _TURNS.items()]
    counts_and_nouns.append((len(document["findings"]["new"]), "finding new", "findings new"))
    counts_and_nouns.append((len(document["findings"]["gone"]), "finding gone", "findings gone"))
    parts += [pluralize(count, one, more) for count, one, more in counts_and_nouns if count]
    return Own("; ".join(parts) + ".")


def sections(document: Document) -> Iterator[Section]:
    """Yield the sections that have entries: what broke, what changed of earlier records, then what is new."""

    def claims(turn: str) -> Section:
        entries = [_claim_entry(claim) for claim in _turned_claims(document, turn)]
        return Section(Own(_TURNS[turn][0]), entries, is_new=turn == "new")

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
    """Return tables of the counts that changed, and of the cells that are filled or empty now."""
    counts = []
    for name, (before, after) in document["totals"].items():
        if before != after:
            counts.append(("total", name, before, after, f"{after - before:+d}"))
    for shift in document["counts"]:
        change = f"{shift['after'] - shift['before']:+d}"
        counts.append((shift["fields"][0], shift["values"][0], shift["before"], shift["after"], change))
    cells = []
    for cell in document["cells"]:
        fields, values = " x ".join(cell["fields"]), " x ".join(cell["values"])
        cells.append((fields, values, cell["before"], cell["after"], cell["turn"]))
    tables = (
        Table("counts", "Counts", ("field", "value", "before", "after", "change"), tuple(counts)),
        Table("cells", "Cells", ("fields", "values", "before", "after", "what"), tuple(cells)),
    )
    return [table for table in tables if table.rows]


def claims_left(document: Document) -> Words:
    """Return how many claims the change does not affect, and which of them fail today; empty without such claims."""
    left, falling = document["claims"]["left"], document["claims"]["falling"]
    if not left:
        return ()
    words: list[str] = [Own(f"{left} {'claim is' if left == 1 else 'claims are'} as before.")]
    if falling:
        verb = "falls" if len(falling) == 1 else "fall"
        words.append(Own(f" Of these {len(falling)} {verb} over the pool of today: "))
        words += _list(falling[:_MAX_NAMES])
        words.append(Own(f" and {len(falling) - _MAX_NAMES} more." if len(falling) > _MAX_NAMES else "."))
    return words


def _by_subject(document: Document) -> Iterable[tuple[str, list[Document]]]:
    """Return the changed files by subject, such as `papers`; a subject that is no plain noun could act as markup."""
    subjects: dict[str, list[Document]] = {}
    for file in document["files"]:
        subject = document["noun"][1] if file["subject"] == "papers" else str(file["subject"])
        if not is_noun(subject) or (len(subjects) >= _MAX_SUBJECTS and subject not in subjects):
            subject = "other files"
        subjects.setdefault(subject, []).append(file)
    return subjects.items()


def _records(document: Document, subject: str, files: Sequence[Document], kind: str) -> Section:
    """Return the records of a subject that were added, removed or changed; records with the same changes together."""
    groups: dict[str, list[tuple[Document, Document]]] = {}  # by changes: the file and the record
    for file in files:
        for record in file["records"]:
            if record["change"] == kind:
                values = [(value["path"], value["before"], value["after"]) for value in record["values"]]
                groups.setdefault(repr(values), []).append((file, record))
    entries = []
    for group in groups.values():
        names = [_name(document, file, record) for file, record in group]
        if len(names) >= _MIN_GROUP:
            names = [[Own(f"{len(names)} {subject}: "), *_join(names, _COMMA)]]
        for name, (file, record) in zip(names, group, strict=False):  # one name stands for a whole group
            lines = _with_values(name, record["values"], kind)
            entries.append(Entry(lines, file["path"], record["line"], kind == "removed"))
    return Section(Own(f"{subject[:1].upper()}{subject[1:]} {kind}"), entries, is_new=kind == "added")


def _name(document: Document, file: Document, record: Document) -> Words:
    """Return the name of a record, and its file unless it is the usual file of its subject."""
    words: list[str] = [record["name"]]
    if not record["name"]:
        words = [file["path"]]
    elif file["path"] != f"data/{file['subject']}.yaml":
        words = [file["path"], Own(" "), record["name"]]
    if record["change"] == "changed" and record["was"] != record["name"]:
        words += [Own(", until now "), record["was"]]
    exclusion = document["moved"].get(record["name"]) if file["path"] == "data/papers.yaml" else None
    if exclusion and record["change"] != "changed":
        words += [Own(", promoted from " if record["change"] == "added" else ", excluded as "), exclusion]
    return words


def _with_values(name: Words, values: Sequence[Document], kind: str) -> list[Words]:
    """Return the changes of a record: a single change in the line of its name, several in a line each."""
    lines = [words for value in values for words in _value_lines(value, is_whole=kind != "changed")]
    return [[*name, _COLON, *lines[0]]] if len(lines) == 1 else [name, *lines]


def _value_lines(value: Document, *, is_whole: bool) -> Iterator[Words]:
    """Yield the change of a value in a line; mappings in a list that was added or removed have a line each.

    If `is_whole`, the whole record was added or removed, which is not repeated here.
    """
    path = "".join(part if part.startswith("[") else f".{part}" for part in value["path"]).removeprefix(".")
    before, after = value["before"], value["after"]
    if before is not None and after is not None:
        yield [path, _COLON, *compare(before, after)]
        return
    only, verb = before, Own(" removed: ")
    if before is None:
        only, verb = after, Own(" added: ")
    if is_whole:
        verb = _COLON
    if isinstance(only, list) and only and all(isinstance(item, Mapping) for item in only):
        for position, item in enumerate(only, 1):
            yield [f"{path}[{position}]", verb, *_value(item)]
    else:
        yield [path, verb, *_value(only)]


def compare(before: Any, after: Any) -> list[str]:
    """Return the earlier and the later value with their differences marked, even if both look alike."""
    if before == after:
        return _value(before)
    if isinstance(before, str) and isinstance(after, str):
        return _compare_texts(before, after)
    are_lists = isinstance(before, list) and isinstance(after, list)
    if are_lists and all(isinstance(item, str) for item in (*before, *after)):
        return _compare_lists(before, after)
    if type(before) is type(after):
        return [*_value(before), _ARROW, *_value(after)]
    old_type, new_type = (Own(f"({_TYPE_NAMES[type(side)]}) ") for side in (before, after))
    return [old_type, *_value(before), _ARROW, new_type, *_value(after)]


def _compare_texts(before: str, after: str) -> list[str]:
    """Return both texts whole if they are short or have little in common, else one text with changes marked in it."""
    runs = _text_runs(before, after)
    shared = sum(len(was) for was, _, is_equal in runs if is_equal)
    longer = max(len(before), len(after))
    is_short = longer <= _SHORT and "://" not in before
    is_another = 2 * shared < longer <= _LONG
    if is_short or is_another:
        return [*_value(before), _ARROW, *_value(after), *_code_points(before, after)]
    words: list[str] = []
    for index, (was, now, is_equal) in enumerate(runs):
        is_first, is_last = index == 0, index == len(runs) - 1
        if not is_equal:
            if was:
                words.append(Gone(was))
            if now:
                words.append(New(now))
            code_point_words = _code_points(was, now)
            words += code_point_words
            if code_point_words and not is_last:
                words.append(Own(" "))
        elif len(was) <= 2 * _SHORT:
            words.append(Part(was))
        else:  # shorten the equal run, if possible between two words
            if not is_first:
                words += [Part(re.sub(r"\S*$", "", was[:_SHORT]) or was[:_SHORT]), Own(" …")]
            if not is_last:
                words += [Own("… " if is_first else " "), Part(re.sub(r"^\S*", "", was[-_SHORT:]) or was[-_SHORT:])]
    return words


def _compare_lists(before: Sequence[str], after: Sequence[str]) -> list[str]:
    parts: list[Words] = []
    for old, new, is_equal in _runs(before, after):
        if is_equal and len(old) > 4:
            parts.append([Own(f"({len(old)} that are as before)")])
            continue
        for was, now in zip_longest(old, new):
            if is_equal:
                parts.append([was] if len(was) <= 2 * _SHORT else [was[:_SHORT], Own(" …")])
            elif was is None:
                parts.append([New(now)])
            elif now is None:
                parts.append([Gone(was)])
            else:
                parts.append([now] if was == now else _compare_texts(was, now))
    order = [Own(" (the same in another order)")] if sorted(before) == sorted(after) else []
    return [*_join(parts, _SEMICOLON), *order]


def _runs(before: Sequence[str], after: Sequence[str]) -> list[tuple[list[str], list[str], bool]]:
    """Return the runs of two sequences in order: the items of each sequence, and True if these are equal."""
    shorter = min(len(before), len(after))
    head = 0  # the number of equal items at the beginning
    while head < shorter and before[head] == after[head]:
        head += 1
    tail = 0  # the number of equal items at the end
    while tail < shorter - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    old, new = list(before[head : len(before) - tail]), list(after[head : len(after) - tail])
    inner = [(old, new, False)]
    if max(len(old), len(new)) <= _MAX_TOKENS:
        codes = SequenceMatcher(None, old, new).get_opcodes()
        inner = [(old[a:b], new[c:d], kind == "equal") for kind, a, b, c, d in codes]
    beginning, end = list(before[:head]), list(before[len(before) - tail :])
    runs = [(beginning, beginning, True), *inner, (end, end, True)]
    return [(was, now, is_equal) for was, now, is_equal in runs if was or now]


def _text_runs(before: str, after: str) -> list[tuple[str, str, bool]]:
    """Return the runs of two texts by words. Blanks and punctuation between two changes belong to the changes."""
    runs: list[tuple[str, str, bool]] = []
    tokens = re.compile(r"\w+|\s+|[^\w\s]")
    for old, new, is_equal in _runs(tokens.findall(before), tokens.findall(after)):
        was, now = "".join(old), "".join(new)
        if runs:
            last_was, last_now, last_is_equal = runs[-1]
            is_between = is_equal and not last_is_equal and not re.search(r"\w", was)
            if is_between or last_is_equal == is_equal:
                runs[-1] = (last_was + was, last_now + now, last_is_equal)
                continue
        runs.append((was, now, is_equal))
    return runs


def _code_points(before: str, after: str) -> list[str]:
    """Name the characters in which two texts first differ, if they look alike or differ in a few beyond ASCII."""
    beyond_ascii = [character for character in set(before) ^ set(after) if not character.isascii()]
    if _appearance(before) != _appearance(after) and not 0 < len(beyond_ascii) <= _MAX_CODE_POINTS:
        return []
    was: list[str] = []
    now: list[str] = []
    for old, new, is_equal in _runs(before, after):
        if not is_equal:
            was, now = old, new
            break
    return [Own(f" ({code_points(was) or 'nothing'}"), _ARROW, Own(f"{code_points(now) or 'nothing'})")]


def _appearance(text: str) -> str:
    """Return a text without what is hard to see: blanks, and differences between characters such as l and 1."""
    normalized = unicodedata.normalize("NFKC", printable(text, limit=len(text)))
    return re.sub(r"\s+", "", normalized).translate(_LOOKALIKES)


def _value(value: object, *, is_inner: bool = False) -> list[str]:
    """Return a value in words; a list or mapping inside another value has brackets, which show where it ends."""
    if value is None:
        return [Own("(none)")]
    if value == "":
        return [Own("(empty)")]
    if isinstance(value, Mapping):
        parts = [[name, _COLON, *_value(part, is_inner=True)] for name, part in value.items()]
        opening, closing = Own("{"), Own("}")
    elif isinstance(value, list):
        parts = [_value(part, is_inner=True) for part in value]
        opening, closing = Own("("), Own(")")
    else:
        return [str(value)]
    words = _join(parts, _SEMICOLON) or [Own("(empty)")]
    return [opening, *words, closing] if is_inner else words


def _questions(reviews: Iterable[Document]) -> Iterator[Entry]:
    """Yield the questions to a reviewer; records with the same questions share a line."""
    names_by_questions: dict[tuple[str, ...], list[Words]] = {}
    for review in reviews:
        name = _list((part for part in (review["path"], review["record"]) if part), Own(" "))
        names_by_questions.setdefault(tuple(review["questions"]), []).append(name)
    for questions, names in names_by_questions.items():
        sentences = _list((_QUESTIONS[question] for question in questions), _SEMICOLON)
        for start in range(0, len(names), _MAX_NAMES):
            yield Entry([[*_join(names[start : start + _MAX_NAMES], _COMMA), _COLON, *sentences]])


def _asides(document: Document) -> Iterator[Entry]:
    """Yield the changes of comments and of the order of lists."""
    for file in document["files"]:
        for value in file["asides"]:
            yield Entry(_with_values([file["path"]], [value], "changed"), file["path"], value["line"])


def _join(parts: Iterable[Words], separator: Own) -> list[str]:
    words: list[str] = []
    for part in parts:
        if words:
            words.append(separator)
        words += part
    return words


def _list(texts: Iterable[str], separator: Own = _COMMA) -> list[str]:
    return _join(([text] for text in texts), separator)


def _turned_claims(document: Document, turn: str) -> list[Document]:
    return [claim for claim in document["claims"]["changed"] if claim["turn"] == turn]


def _claim_entry(claim: Document) -> Entry:
    pools: list[str] = []  # the verdicts over both pools
    published, today = claim["pools"].get("published"), claim["pools"].get("today")
    if published and today:
        pools.append(Own(f"published pool: {'holds' if published['after'] else 'fails'}; today: "))
        pools.append(Own("holds" if today["after"] else "falls"))
        if today["falls_by"]:
            pools += [Own(", by "), *_list(today["falls_by"])]
    if claim["after"]:
        words = [_COLON, *pools] if pools else [Own(" holds")]
    else:
        words = [Own(" fails: expected "), claim["expected"], Own("; found "), claim["found"]]
        if pools:
            words += [Own(" ("), *pools, Own(")")]
    return Entry([[claim["id"], *words, Own(". "), claim["claim"]]])
