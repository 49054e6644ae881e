"""Merge three versions of a data file, as git does, without losing anything of either side.

A record, a field, or the level of a term that only one side changed is taken from that side. If both changed it
differently, the text holds both values between git's markers. A comment belongs to the field or record below it. If
both sides added an exclusion under the same id, both exclusions stay, one of them under a new id.
"""

import re
from collections.abc import Mapping, Sequence

from orchtrace_corpus.base.annotations import TypeVar
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.base.yamlfile.record import node_content
from orchtrace_corpus.base.yamlfile.writer import Style, field_lines, field_rank
from orchtrace_corpus.corpus.model.metadata import Metadata, encode

_T = TypeVar("_T")
_HEAD_COMMENTS = "the comments at the head"
_FINAL_COMMENTS = "the comments at the end"
_RUN = "the run of "  # begins the name of a run of searches
_FIELD_START = re.compile(r"  ([^\s#-][^:]*):")


class Conflict(NamedTuple):
    """A record that both sides changed or added, and the fields that differ; no fields if one side removed it."""

    name: str
    fields: tuple[str, ...]
    is_new: bool = False


class ThreeWay(NamedTuple):
    """The merged text and the conflicts in it.

    `ids` has new ids of exclusions that `theirs` added under an id that `ours` gave to another work, by the old id.
    """

    text: str
    conflicts: tuple[Conflict, ...] = ()
    ids: Mapping[str, str] = {}


def merge_versions(style: Style, key_fields: Sequence[str], base: str, ours: str, theirs: str) -> ThreeWay:
    """Merge three versions of a data file, each in canonical form or with a blank line between its records.

    `key_fields` are the fields that distinguish records. If there are none, records such as runs of searches never
    change: the merged file has the records of both sides, sorted by day. Raise `DataFileError` if a record has no name,
    has the name of another record, or shares a line with one.
    """
    base_blocks = _blocks(base, key_fields)
    our_blocks = _blocks(ours, key_fields)
    their_blocks = _blocks(theirs, key_fields)
    new_ids = _new_ids(base_blocks, our_blocks, their_blocks)
    for old_id, new_id in new_ids.items():
        their_blocks[new_id] = re.sub("- id: .*", f"- id: {new_id}", their_blocks.pop(old_id), count=1)

    def sort_key(name: str) -> tuple[str, int]:
        return name if style.key else _day(name), _number(name)

    blocks: dict[str, str] = {}
    conflicts = []
    for name in sorted({**our_blocks, **their_blocks}, key=sort_key):
        sides = base_blocks.get(name), our_blocks.get(name), their_blocks.get(name)
        if _is_conflict(*sides):
            blocks[name], fields = _merge_record(style, *sides)
            if fields is not None:
                conflicts.append(Conflict(name, fields, is_new=name not in base_blocks))
        else:
            block = _changed(*sides)
            if block is not None:
                blocks[name] = block
    head = blocks.pop(_HEAD_COMMENTS, "")
    foot = blocks.pop(_FINAL_COMMENTS, "")
    records = list(blocks.values()) or ["[]\n"]
    return ThreeWay("\n".join(part for part in (head, *records, foot) if part), tuple(conflicts), new_ids)


def merge_arxiv(base: Mapping[str, Metadata], ours: Mapping[str, Metadata], theirs: Mapping[str, Metadata]) -> ThreeWay:
    """Merge three versions of arXiv's metadata, by arXiv id."""
    our_merged: dict[str, Metadata] = {}  # the merged file; it differs from `their_merged` only in conflicts
    their_merged: dict[str, Metadata] = {}
    conflicts = []
    for arxiv_id in sorted({*ours, *theirs}):
        own = ours.get(arxiv_id)
        other = theirs.get(arxiv_id)
        if _is_conflict(base.get(arxiv_id), own, other):
            conflicts.append(Conflict(arxiv_id, ("arXiv's answer",), is_new=arxiv_id not in base))
        else:
            own = _changed(base.get(arxiv_id), own, other)
            other = own
        if own is not None:
            our_merged[arxiv_id] = own
        if other is not None:
            their_merged[arxiv_id] = other
    piece_start = r'(?m)^(?=    "|  \})'  # a paper, or the end of the papers
    our_pieces = re.split(piece_start, encode(our_merged))
    return ThreeWay(with_markers(our_pieces, re.split(piece_start, encode(their_merged))), tuple(conflicts))


def with_markers(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """Return two texts, in pieces of whole lines, as one; differing pieces are between git's markers."""
    from difflib import SequenceMatcher

    parts: list[str] = []
    for kind, start, end, their_start, their_end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        own = ours[start:end]
        if kind == "equal":
            parts += own
        else:
            parts += ("<<<<<<< ours\n", *own, "=======\n", *theirs[their_start:their_end], ">>>>>>> theirs\n")
    return "".join(parts)


def _blocks(text: str, key_fields: Sequence[str]) -> dict[str, str]:
    """Return the parts of a file: each record by its name, and the comments at the head and at the end."""
    blocks: dict[str, str] = {}
    has_record = False
    for part in text.strip("\n").split("\n\n"):
        lines = [line for line in part.splitlines(keepends=True) if line.strip() not in ("", "[]")]
        block = "".join(lines).rstrip("\n") + "\n"
        if all(line.startswith("#") for line in lines):
            name = _FINAL_COMMENTS if has_record else _HEAD_COMMENTS
            if lines:
                blocks[name] = f"{blocks[name]}\n{block}" if name in blocks else block
            continue
        has_record = True
        nodes = list(YamlFile("", block.encode()).records())
        is_one_record = len(nodes) == 1 and lines[-1][0] in " -"
        fields = _fields(block) if is_one_record else {}
        name = ".".join(str(fields[field]) for field in key_fields if field in fields)
        if not key_fields and fields:
            name = _run_name(fields, blocks)
        if not name or name in blocks:
            raise DataFileError(f"{quote(name)} names no record, or two", "See corpus check data.")
        blocks[name] = block
    return blocks


def _run_name(fields: Mapping[str, object], blocks: Mapping[str, str]) -> str:
    """Return an unused name of a run of searches; it begins with the day, and equal runs get numbers."""
    number = 0
    while True:
        name = f"{_RUN}{fields.get('day', '')} {number} {fields}"
        if name not in blocks:
            return name
        number += 1


def _day(name: str) -> str:
    """Return the day of a run of searches; empty for other records."""
    return name.removeprefix(_RUN).partition(" ")[0] if name.startswith(_RUN) else ""


def _number(name: str) -> int:
    """Return the number in an exclusion's id, by which the log is sorted; 0 for the key of a paper."""
    return int(name[1:]) if name[:1] == "E" and name[1:].isdecimal() else 0


def _is_conflict(base: _T, ours: _T, theirs: _T) -> bool:
    """Return True if both sides changed a value, and differently; None means that a side does not have it."""
    return ours not in (base, theirs) and theirs != base


def _changed(base: _T, ours: _T, theirs: _T) -> _T:
    """Return the value after the change of either side; there must be no conflict."""
    return theirs if ours == base else ours


def _new_ids(base: Mapping[str, str], ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """Return unused ids for their new exclusions, by the ids that ours uses for other works."""
    number = max((_number(name) for name in (*base, *ours, *theirs)), default=0)
    new_ids = {}
    for name, block in theirs.items():
        if not _number(name) or name not in ours or name in base:
            continue
        if _fields(ours[name]).get("identifier") != _fields(block).get("identifier"):
            number += 1
            new_ids[name] = f"E{number:03}"
    return new_ids


def _fields(block: str) -> dict[str, object]:
    """Return the fields of the first record of a text."""
    for node in YamlFile("", block.encode()).records():
        fields = node_content(node)
        return fields if isinstance(fields, dict) else {}
    return {}


def _merge_record(
    style: Style, base: str | None, ours: str | None, theirs: str | None
) -> tuple[str, tuple[str, ...] | None]:
    """Return a record's merged text, and the fields in conflict: None without a conflict, () if one side removed it."""
    if ours is None or theirs is None:
        return with_markers([ours or ""], [theirs or ""]), ()
    base_by_field = _pieces(base or "")
    ours_by_field = _pieces(ours)
    theirs_by_field = _pieces(theirs)
    # Two new records may be different works, so a field that only one of them has is a conflict.
    absent = None if base else ""
    our_pieces = []
    their_pieces = []
    conflicts = []
    for name in sorted({**ours_by_field, **theirs_by_field}, key=lambda name: field_rank(name, style)):
        sides = base_by_field.get(name, absent), ours_by_field.get(name), theirs_by_field.get(name)
        if _is_conflict(*sides):
            our_piece, their_piece = _merge_levels(name, style, sides) or sides[1:]
        else:
            our_piece = _changed(*sides)
            their_piece = our_piece
        our_pieces.append(our_piece or "")
        their_pieces.append(their_piece or "")
        if our_piece != their_piece:
            conflicts.append(name)
    for pieces in (our_pieces, their_pieces):  # the first field begins the record
        pieces[0] = re.sub(r"(?m)^  (?=[^ #])", "- ", pieces[0], count=1)
    return with_markers(our_pieces, their_pieces), tuple(conflicts) or None


def _pieces(block: str) -> dict[str, str]:
    """Return the lines of a record by field, equally indented, each with the comments above it."""
    pieces: dict[str, str] = {}
    name = "comments"
    comments_above = ""
    for line in re.sub(r"(?m)^- ", "  ", block, count=1).splitlines(keepends=True):
        field = _FIELD_START.match(line)
        if field is None and re.match("(?:  )?#", line):
            comments_above += line
            continue
        if field is not None:
            name = field[1]
        pieces[name] = pieces.get(name, "") + comments_above + line
        comments_above = ""
    pieces[name] = pieces.get(name, "") + comments_above
    return pieces


def _merge_levels(name: str, style: Style, sides: Sequence[str | None]) -> tuple[str, str] | None:
    """Return a mapping of levels for each side, with the other's changes; None for another field or with comments."""
    levels = []
    for side in sides:
        if name not in style.flow or side is None or "#" in side:
            return None
        value = _fields(f"-\n{side}").get(name)
        if not isinstance(value, dict):
            return None
        levels.append(value)
    before, own, other = levels
    texts = []
    for side_levels in (own, other):
        merged: dict[str, tuple[int, reader.Node]] = {}
        for term in dict.fromkeys((*own, *other)):
            versions = before.get(term), own.get(term), other.get(term)
            level = side_levels.get(term) if _is_conflict(*versions) else _changed(*versions)
            if level is not None:
                merged[term] = (0, reader.Scalar(str(level), 0))
        texts.append("".join(f"  {line}\n" for line in field_lines(name, reader.Mapping(merged, 0), style, {})))
    return texts[0], texts[1]
