"""Merge three versions of a data file, as git does, without losing anything of either side.

A record, a field, or a level of a field of kind `levels` that only one side changed is taken from that side. If both
changed it differently, the text holds both values between git's markers. Comments go with the field or record below
them. Two exclusions with one id, added on different sides, both stay.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import count

from orchtrace_corpus.base.annotations import TypeVar
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.base.yamlfile.record import values
from orchtrace_corpus.base.yamlfile.writer import Style, field_lines, rank
from orchtrace_corpus.corpus.model.metadata import Metadata, encode

_T = TypeVar("_T")
_ABOUT_THE_FILE = ("the comments at the head", "the comments at the end")
_ANSWER = "arXiv's answer"
_RUN = "the run of "
_FIELD = re.compile(r"  ([^\s#-][^:]*):")


class Conflict(NamedTuple):
    """A record that both sides changed or added, and the fields that differ; none if one side removed it."""

    name: str
    fields: tuple[str, ...]
    is_new: bool = False


class ThreeWay(NamedTuple):
    """The merged text, the conflicts in it, and new ids of exclusions of theirs, by the ids that ours uses, too."""

    text: str
    conflicts: tuple[Conflict, ...] = ()
    ids: Mapping[str, str] = {}


def merge_versions(style: Style, names: Sequence[str], base: str, ours: str, theirs: str) -> ThreeWay:
    """Merge three versions of a data file, each in canonical form or with a blank line between its records.

    `names` are the fields that tell records apart. Without any, records never change, such as runs of searches: the
    merged file has those of both sides, by day. A `DataFileError` says that a record is unnamed, has the name of
    another, or shares a line with it.
    """
    before, own, theirs_blocks = (_blocks(text, names) for text in (base, ours, theirs))
    other, ids = _renumbered(before, own, theirs_blocks)
    blocks: dict[str, str] = {}
    conflicts = []
    for name in sorted({**own, **other}, key=lambda name: (name if style.key else _day(name), _number(name))):
        sides = before.get(name), own.get(name), other.get(name)
        resolved = _resolve(*sides)
        if resolved is None:
            blocks[name], fields = _merge_record(style, *sides)
            if fields is not None:
                conflicts.append(Conflict(name, fields, sides[0] is None))
        elif resolved[0] is not None:
            blocks[name] = resolved[0]
    head, foot = (blocks.pop(name, "") for name in _ABOUT_THE_FILE)
    text = "\n".join(part for part in (head, *(blocks.values() or ("[]\n",)), foot) if part)
    return ThreeWay(text, tuple(conflicts), ids)


def merge_arxiv(base: Mapping[str, Metadata], ours: Mapping[str, Metadata], theirs: Mapping[str, Metadata]) -> ThreeWay:
    """Merge three versions of arXiv's metadata, paper by paper."""
    sides: tuple[dict[str, Metadata], dict[str, Metadata]] = ({}, {})
    conflicts = []
    for name in sorted({*ours, *theirs}):
        resolved = _resolve(base.get(name), ours.get(name), theirs.get(name))
        if resolved is None:
            conflicts.append(Conflict(name, (_ANSWER,), name not in base))
        for side, answer in zip(sides, resolved * 2 if resolved else (ours.get(name), theirs.get(name)), strict=True):
            if answer is not None:
                side[name] = answer
    own, other = (re.split(r'(?m)^(?=    "|  \})', encode(side)) for side in sides)
    return ThreeWay(with_markers(own, other), tuple(conflicts))


def with_markers(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """Return two texts, in pieces of whole lines, as one; differing pieces are between git's markers."""
    from difflib import SequenceMatcher

    parts: list[str] = []
    for kind, start, end, their_start, their_end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        own, other = ours[start:end], theirs[their_start:their_end]
        parts += own if kind == "equal" else ("<<<<<<< ours\n", *own, "=======\n", *other, ">>>>>>> theirs\n")
    return "".join(parts)


def _blocks(text: str, names: Sequence[str]) -> dict[str, str]:
    """Return the parts of a file: each record by its name, and the comments about the file."""
    blocks: dict[str, str] = {}
    for part in text.strip("\n").split("\n\n"):
        lines = [line for line in part.splitlines(keepends=True) if line.strip() not in ("", "[]")]
        block = "".join(lines).rstrip("\n") + "\n"
        if all(line.startswith("#") for line in lines):
            name = _ABOUT_THE_FILE[any(name not in _ABOUT_THE_FILE for name in blocks)]
            if lines:
                blocks[name] = "\n".join(filter(None, (blocks.get(name), block)))
            continue
        nodes = list(YamlFile("", block.encode()).records())
        fields = _fields(block) if len(nodes) == 1 and lines[-1][0] in " -" else {}
        name = ".".join(str(fields[name]) for name in names if name in fields)
        if not names and fields:
            runs = (f"{_RUN}{fields.get('day', '')} {number} {fields}" for number in count())
            name = next(run for run in runs if run not in blocks)
        if not name or name in blocks:
            raise DataFileError(f"{quote(name)} names no record, or two", "See corpus check data.")
        blocks[name] = block
    return blocks


def _day(name: str) -> str:
    """Return the day of a run of searches; empty for other records."""
    return name.removeprefix(_RUN).partition(" ")[0] if name.startswith(_RUN) else ""


def _number(name: str) -> int:
    """Return the number in an exclusion's id, by which the log is sorted; 0 for the key of a paper."""
    return int(name[1:]) if name[:1] == "E" and name[1:].isdecimal() else 0


def _resolve(base: _T, ours: _T, theirs: _T) -> tuple[_T] | None:
    """Return the value, in a tuple, if only one side changed it, or both alike; None for a conflict."""
    if ours in (theirs, base):
        return (theirs,)
    return (ours,) if theirs == base else None


def _renumbered(
    base: Mapping[str, str], ours: Mapping[str, str], theirs: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return their blocks, with free ids for new exclusions whose ids ours gives to other works; and the new ids."""
    free = count(max((_number(name) for name in (*base, *ours, *theirs)), default=0) + 1)
    shared = (name for name in theirs if _number(name) and name in ours and name not in base)
    works = ((name, [_fields(side[name]).get("identifier") for side in (ours, theirs)]) for name in shared)
    ids = {name: f"E{next(free):03}" for name, (own, other) in works if own != other}
    blocks = {name: block for name, block in theirs.items() if name not in ids}
    return blocks | {new: re.sub("- id: .*", f"- id: {new}", theirs[old], count=1) for old, new in ids.items()}, ids


def _fields(block: str) -> dict[str, object]:
    fields = next((values(node) for node in YamlFile("", block.encode()).records()), None)
    return fields if isinstance(fields, dict) else {}


def _merge_record(
    style: Style, base: str | None, ours: str | None, theirs: str | None
) -> tuple[str, tuple[str, ...] | None]:
    """Return a record's merged text, and the fields in conflict: None for no conflict, () if one side removed it."""
    if ours is None or theirs is None:
        return with_markers([ours or ""], [theirs or ""]), ()
    before, own, other = (_pieces(text or "") for text in (base, ours, theirs))
    pairs: dict[str, Sequence[str | None]] = {}
    for name in sorted({**own, **other}, key=lambda name: rank(name, style)):
        unlike = None if base else ""  # two new records may be two works: only values of both are certain
        sides = before.get(name, unlike), own.get(name), other.get(name)
        resolved = _resolve(*sides)
        pairs[name] = resolved * 2 if resolved else _merge_levels(name, style, sides) or sides[1:]
    records = [[pair[side] or "" for pair in pairs.values()] for side in (0, 1)]
    for record in records:
        record[0] = re.sub(r"(?m)^  (?=[^ #])", "- ", record[0], count=1)
    return with_markers(*records), tuple(name for name, pair in pairs.items() if pair[0] != pair[1]) or None


def _pieces(block: str) -> dict[str, str]:
    """Return the lines of a record by field, equally indented, each with the comments above it."""
    pieces: dict[str, str] = {}
    name, above = "comments", ""
    for line in re.sub(r"(?m)^- ", "  ", block, count=1).splitlines(keepends=True):
        if (field := _FIELD.match(line)) is None and re.match("(?:  )?#", line):
            above += line
            continue
        name = field[1] if field else name
        pieces[name] = pieces.get(name, "") + above + line
        above = ""
    pieces[name] = pieces.get(name, "") + above
    return pieces


def _merge_levels(name: str, style: Style, sides: Sequence[str | None]) -> tuple[str, str] | None:
    """Return a field of levels for each side, with the other's changes; None for another field or with comments."""
    if name not in style.flow or any(side is None or "#" in side for side in sides):
        return None
    levels = [field for side in sides if isinstance(field := _fields(f"-\n{side}").get(name), dict)]
    if len(levels) < len(sides):
        return None
    before, own, other = levels
    texts = []
    for side in (own, other):
        merged: dict[str, tuple[int, reader.Node]] = {}
        for term in dict.fromkeys((*own, *other)):
            resolved = _resolve(before.get(term), own.get(term), other.get(term)) or (side.get(term),)
            if resolved[0] is not None:
                merged[term] = (0, reader.Scalar(str(resolved[0]), 0))
        texts += [f"  {line}\n" for line in field_lines(name, reader.Mapping(merged, 0), style, {})]
    return texts[0], texts[1]
