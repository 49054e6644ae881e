"""A single value that changes anywhere in the data stands in the comment, with what was and what is."""

import copy
import csv
import json
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import cmarkgfm
import pytest

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus.analysis.difference import Difference
from orchtrace_corpus.corpus.analysis.record_changes import DataText, compare_files, to_judge
from orchtrace_corpus.corpus.model.records import Pool
from orchtrace_corpus.corpus.model.store import DATA_FILES, CorpusFiles
from orchtrace_corpus.corpus.render.comment import MOST_BYTES, comment
from orchtrace_corpus.corpus.render.difference import as_document
from orchtrace_corpus.corpus.states import diff
from tests.conftest import ROOT, TOY
from tests.effort import FULL

KEY_FIELDS = {row.path: row.key_fields for row in DATA_FILES}
CASES = 600


class Case(NamedTuple):
    """A value of a data file and what becomes of it."""

    root: Path
    path: str
    place: tuple[str | int, ...]
    before: Any
    after: Any


class Lines(HTMLParser):
    """The items of lists in a rendered comment, each as pieces: the marks around a text, and the text."""

    def __init__(self, markdown: str) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[list[tuple[frozenset[str], str]]] = []
        self._open: list[str] = []
        self.feed(cmarkgfm.github_flavored_markdown_to_html(markdown))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs
        if tag == "li":
            self.lines.append([])
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "li" in self._open and data.strip("\n"):
            self.lines[-1].append((frozenset(self._open) & {"code", "del", "strong"}, data))


def halves(line: list[tuple[frozenset[str], str]]) -> tuple[str, str]:
    """What was and what is, as a line of the comment shows them: the texts of the data, the marks taken off."""
    behind = next(
        (
            at
            for at, (_, text) in enumerate(line)
            if " added: " in text or " removed: " in text or text.startswith(": ")
        ),
        0,
    )
    arrow = next((at for at, (marks, text) in enumerate(line) if not marks and "→" in text and "U+" not in text), None)
    values = [(marks, text if "code" in marks else "") for marks, text in line]
    if arrow is not None and not any(marks & {"del", "strong"} for marks, _ in line):
        return "".join(text for _, text in values[behind:arrow]), "".join(text for _, text in values[arrow:])
    was = "".join(text for marks, text in values[behind:] if "strong" not in marks)
    return was, "".join(text for marks, text in values[behind:] if "del" not in marks)


def look(text: str) -> str:
    """A text as a reader sees it: blanks, letters of other scripts and letters drawn alike do not tell it apart."""
    plain = unicodedata.normalize("NFKC", text).translate(str.maketrans("аеорсхуі1I|0", "aeopcxyilllO"))
    return re.sub(r"\s+", "", plain)


def scalars(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every text below a value, and where it stands."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inner:
        yield from scalars(part, (*place, name))
    if isinstance(value, str):
        yield place, value


def lists(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], list[str]]]:
    """Every list of texts below a value, and where it stands."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inner:
        yield from lists(part, (*place, name))
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        yield place, value


LOOK_ALIKES = str.maketrans("aeopcxyi", "аеорсхуі")


def changed(text: str, chosen: random.Random) -> str:
    """The text with one thing otherwise: a letter, a word, a look-alike, an end, a blank, or all of it."""
    at = chosen.randrange(len(text)) if text else 0
    words = text.split(" ")
    word = chosen.randrange(len(words))
    ways = [
        text[:at] + ("x" if text[at : at + 1] != "x" else "y") + text[at + 1 :],
        " ".join([*words[:word], *words[word + 1 :]]),
        " ".join([*words[:word], "not", *words[word:]]),
        text.translate(LOOK_ALIKES) if chosen.random() < 0.5 else text[:at] + text[at:].translate(LOOK_ALIKES),
        f"{text}/v2" if "://" in text else f"{text} Not so.",
        text.replace(" ", "  ", 1),
        text.upper() if chosen.random() < 0.5 else text.lower(),
        text.replace("l", "I", 1),
        "",
    ]
    return next(way for way in chosen.sample(ways, len(ways)) if way != text)


@cache
def content(root: Path, path: str) -> Any:
    """What a file says."""
    return DataText(path, (root / path).read_bytes()).content


def paths(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in (root / "data").rglob("*") if path.is_file())


@cache
def cases() -> list[Case]:
    """Changes of every field of every file; further ones of the same fields up to the number asked for."""
    chosen = random.Random(33)
    by_field: dict[Any, list[Case]] = {}
    for root in (TOY, ROOT):
        for path in paths(root):
            for place, text in scalars(content(root, path)):
                field = (
                    root,
                    path.rsplit("/", 1)[0] if path.count("/") > 1 else path,
                    *(step for step in place if isinstance(step, str)),
                )
                by_field.setdefault(field, []).append(Case(root, path, place, text, None))
            for place, texts in lists(content(root, path)):
                field = (root, path, "list", *(step for step in place if isinstance(step, str)))
                by_field.setdefault(field, []).append(Case(root, path, place, texts, None))
    groups = list(by_field.values())
    for group in groups:
        chosen.shuffle(group)
    found: list[Case] = []
    while len(found) < CASES:
        for group in groups:
            if group and (len(found) < CASES or group is not groups[0]):
                case = group.pop()
                found.append(case._replace(after=otherwise(case.before, chosen)))
    return found


def otherwise(value: Any, chosen: random.Random) -> Any:
    if isinstance(value, str):
        return changed(value, chosen)
    at = chosen.randrange(len(value))
    ways = [value[:at] + value[at + 1 :], [*value[:at], "another", *value[at:]], value[::-1]]
    return next(way for way in chosen.sample(ways, 3) if way != value)


def written(path: str, value: Any) -> bytes:
    """A file that says something, in the simplest form."""
    if path.endswith(".csv"):
        out = StringIO()
        rows = csv.DictWriter(out, list(dict.fromkeys(name for row in value for name in row)))
        rows.writeheader()
        rows.writerows(value)
        return out.getvalue().encode()
    return json.dumps(value, indent=1, ensure_ascii=False).encode()


@cache
def unchanged(root: Path) -> tuple[Difference, Pool]:
    """A difference without any, and the pool."""
    return diff(str(root), str(root)), CorpusFiles(str(root)).pool


def shown(case: Case) -> str:
    """The comment on a change of one value."""
    before = content(case.root, case.path)
    after = copy.deepcopy(before)
    inner = after
    for step in case.place[:-1]:
        inner = inner[step]
    inner[case.place[-1]] = case.after
    old, new = (written(case.path, side) for side in (before, after))
    file = compare_files(case.path, old, new, KEY_FIELDS.get(case.path))
    nothing, pool = unchanged(case.root)
    files = (file,)
    return comment(as_document(nothing._replace(files=files, to_judge=tuple(to_judge(files, pool, pool)))))


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+|[^\w\s]", text))


def assert_told(case: Case) -> None:
    markdown = shown(case)
    assert len(markdown.encode()) <= MOST_BYTES
    assert "<details>" not in markdown
    lines = Lines(markdown).lines
    field = next(step for step in reversed(case.place) if isinstance(step, str))
    telling = [
        line
        for line in lines
        if any("→" in text for _, text in line) or any(marks & {"del", "strong"} for marks, _ in line)
    ]
    telling += [line for line in lines if any(text in (" added: ", " removed: ") for _, text in line)]
    assert telling, markdown
    ours = [line for line in telling if field in "".join(text for _, text in line)] or telling
    pairs = [(*halves(line), "".join(text for _, text in line)) for line in ours]
    for was, now, whole in pairs:
        assert look(was) != look(now) or "U+" in whole, markdown
    was, now = ("".join(pair[side] for pair in pairs) for side in (0, 1))
    if isinstance(case.before, str):
        old, new = words(case.before), words(case.after)
        assert all(printable(word) in was for word in old - new), markdown
        assert all(printable(word) in now for word in new - old), markdown
    else:
        gone = [item for item in case.before if item not in case.after]
        come = [item for item in case.after if item not in case.before]
        assert all(printable(item, limit=len(item)) in was for item in gone), markdown
        assert all(item in now for item in come), markdown


def test_every_field_of_every_file_is_changed() -> None:
    touched = {(case.root, case.path) for case in cases()}
    files = {(root, path) for root in (TOY, ROOT) for path in paths(root) if content(root, path)}

    assert len(cases()) >= 500
    assert {path for _, path in files if "/" not in path[5:]} == {path for _, path in touched if "/" not in path[5:]}


@pytest.mark.parametrize("part", range(6))
def test_each_changed_value_is_told_with_what_was_and_what_is(part: int) -> None:
    quick = 1 if FULL else 10
    for case in cases()[part :: 6 * quick]:
        assert_told(case)
