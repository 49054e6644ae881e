"""Merges three versions of a data file by the keys of its records, as a merge driver of git does.

A record, or a field of it, that only one side changed is taken from that side. What both changed to
different values is a conflict, and nothing is guessed. Comments go with the record that they belong to.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, YamlFile
from orchtrace_corpus.base.yamlfile.record import values
from orchtrace_corpus.base.yamlfile.splice import change_fields
from orchtrace_corpus.base.yamlfile.writer import Style, comments

_T = TypeVar("_T")
_ABOUT_THE_FILE = ("the comments at the head", "the comments at the end")
_COMMENTS = "comments"


class Conflict(NamedTuple):
    """A record that both sides changed, and the fields with two new values; none where one side removed it."""

    name: str
    fields: tuple[str, ...]


class ThreeWay(NamedTuple):
    """The merged text, and what could not be merged; of a record in conflict the text has our version."""

    text: str
    conflicts: tuple[Conflict, ...]


def merge_versions(style: Style, base: str, ours: str, theirs: str) -> ThreeWay:
    """Merge three versions of a data file, each in canonical form.

    Raises:
        DataFileError: A record has neither key nor id, or one is given twice.
    """
    versions = [_blocks(text) for text in (base, ours, theirs)]
    names = dict.fromkeys((*versions[1], *versions[2]))
    blocks: dict[str, str] = {}
    conflicts = []
    for name in sorted(names, key=lambda name: (name if style.key else "", _number(name))):
        if name in _ABOUT_THE_FILE:
            continue
        block, fields = _merged_block(style, *(version.get(name) for version in versions))
        if fields is not None:
            conflicts.append(Conflict(name, fields))
        if block is not None:
            blocks[name] = block
    for name in _ABOUT_THE_FILE:
        before, own, other = (version.get(name) for version in versions)
        if (taken := _one_sided(before, own, other)) is None:
            conflicts.append(Conflict(name, (_COMMENTS,)))
        elif taken[0]:
            blocks[name] = taken[0]
    head, foot = (blocks.pop(name, "") for name in _ABOUT_THE_FILE)
    return ThreeWay("\n".join(part for part in (head, *(blocks.values() or ("[]\n",)), foot) if part), tuple(conflicts))


def _blocks(text: str) -> dict[str, str]:
    """The parts of a file in canonical form: each record by its name, and the comments about the file."""
    found: dict[str, str] = {}
    for part in text.strip("\n").split("\n\n"):
        lines = [line for line in part.splitlines(keepends=True) if line.strip() != "[]"]
        block = "".join(lines).rstrip("\n") + "\n"
        nodes = list(YamlFile("", block.encode()).records()) if any(line[:1] == "-" for line in lines) else []
        if nodes and type(nodes[0]) is Mapping:
            fields = values(nodes[0])
            assert isinstance(fields, dict)
            name = str(fields.get("key") or fields.get("id") or "")
            if not name or name in found:
                raise DataFileError(f"{quote(name)} names no record, or two", "See corpus validate.")
        elif not block.strip():
            continue
        else:
            name = _ABOUT_THE_FILE[bool(found)]
        found[name] = block
    return found


def _number(name: str) -> int:
    """The number of an exclusion's id, which is its place in the log; 0 for the key of a paper."""
    return int(name[1:]) if name[:1] == "E" and name[1:].isdecimal() else 0


def _one_sided(base: _T, ours: _T, theirs: _T) -> tuple[_T] | None:
    """The value that stands after the change of one side, or of both alike; None if they differ."""
    if ours in (theirs, base):
        return (theirs,)
    return (ours,) if theirs == base else None


def _merged_block(
    style: Style, base: str | None, ours: str | None, theirs: str | None
) -> tuple[str | None, tuple[str, ...] | None]:
    """A record's merged text, and the fields in conflict; None for no text and for no conflict."""
    if (taken := _one_sided(base, ours, theirs)) is not None:
        return taken[0], None
    if ours is None or theirs is None:
        return ours, ()
    sides = (base or "", ours, theirs)
    notes = [[comment for _, comment in comments(text)] for text in sides]
    before, own, other = (_fields(text) for text in sides)
    fields = [] if _one_sided(*notes) else [_COMMENTS]
    result: dict[str, Node | None] = {}
    plain = [{name: values(node) for name, node in record.items()} for record in (before, own, other)]
    for name in dict.fromkeys((*own, *other, *before)):
        taken_value = _one_sided(*(record.get(name) for record in plain))
        if taken_value is None:
            fields.append(name)
        else:
            result[name] = next((side.get(name) for side in (own, other) if _is(side, name, taken_value[0])), None)
    if fields:
        return ours, tuple(fields)
    # The side with the newer comments is edited, so that they stay.
    text, present = (theirs, plain[2]) if notes[1] == notes[0] else (ours, plain[1])
    changes = {
        name: node for name, node in result.items() if (None if node is None else values(node)) != present.get(name)
    }
    return change_fields(YamlFile("", text.encode()), {0: changes}, style) if changes else text, None


def _fields(block: str) -> dict[str, Node]:
    nodes: Sequence[Node] = list(YamlFile("", block.encode()).records()) if block else ()
    return {name: node for name, (_, node) in nodes[0].entries.items()} if nodes and type(nodes[0]) is Mapping else {}


def _is(side: dict[str, Node], name: str, value: object) -> bool:
    return (values(side[name]) if name in side else None) == value
