"""Editing record by record and field by field: what is not changed keeps its bytes, what is canonical stays canonical."""

import json
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.yamlfile.reader import Mapping, YamlFile
from orchtrace_corpus.base.yamlfile.record import node_content
from orchtrace_corpus.base.yamlfile.splice import insert_records, remove_record, replace_values
from orchtrace_corpus.base.yamlfile.writer import MisplacedCommentError, Style, canonical, scalar_text
from orchtrace_corpus.corpus.edit.edits import add_records, change_records
from orchtrace_corpus.corpus.model.record_fields import Value

STYLE = Style(
    ("key", "title", "year", "authors", "care", "evidence", "notes"), frozenset({"year"}), frozenset({"care"})
)

TEXTS = st.text(
    st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufeff\ufffe\uffff\u2028\u2029"), max_size=20
)
NAMES = st.sampled_from(["title", "year", "authors", "care", "evidence", "notes", "other", "more: of", "no"])
VALUES = st.one_of(
    TEXTS,
    st.lists(TEXTS, max_size=4),
    st.lists(TEXTS.map(lambda text: text + "x" * 40), min_size=2, max_size=4),  # too long for one line
    st.dictionaries(st.sampled_from(["spawn", "stop"]), TEXTS, max_size=2),
    st.lists(
        st.dictionaries(st.sampled_from(["tags", "note"]), st.one_of(TEXTS, st.lists(TEXTS)), min_size=1), max_size=3
    ),
)
COMMENTS = st.sampled_from(["", "", "# plain", "# with 'quotes\" and: [brackets]", "#tight", "# ünïcode 𝒜"])


def yaml_file(text: str) -> YamlFile:
    return YamlFile("x.yaml", text.encode())


def loaded(text: str) -> list[object]:
    file = yaml_file(text)
    records = [node_content(node) for node in file.records()]
    assert file.findings == []
    return records


def is_canonical(text: str) -> bool:
    return canonical(yaml_file(text), STYLE) == text


class Part(NamedTuple):
    """A field as a file has it: the lines above it, its own, and what they say."""

    name: str
    above: str
    lines: str
    value: Value


def block(value: Value, indent: str) -> str:
    """A value in block style, each kind of scalar quoted another way than the canonical form would."""
    if isinstance(value, str):
        return f" {json.dumps(value, ensure_ascii=False)}"
    if isinstance(value, dict) and value:
        return "".join(f"\n{indent}  {json.dumps(name)}:{block(inner, indent + '  ')}" for name, inner in value.items())
    if isinstance(value, list) and value:
        return "".join(f"\n{indent}-{block(item, indent + '    ')}" for item in value)
    return f" {json.dumps(value)}"


@st.composite
def parts(draw: st.DrawFn, free: bool) -> list[list[Part]]:
    """Records, field by field: in canonical form with comments or, if `free`, in block, flow and quoted styles."""
    records = []
    for number in range(draw(st.integers(1, 4))):
        names = draw(st.lists(NAMES, unique=True, max_size=5))
        if not free:
            names.sort(key=lambda name: STYLE.order.index(name) if name in STYLE.order else 99)
        fields = [Part("key", "", f"key: k{number}", f"k{number}")]
        for name in names:
            value = draw(VALUES)
            above, end = draw(COMMENTS), draw(COMMENTS)
            key = scalar_text(name)
            if not free:
                text = canonical(yaml_file(f"- {json.dumps({name: value}, ensure_ascii=False)}\n"), STYLE)[2:-1]
                text = text.replace("\n", "  " + end + "\n" if end else "\n", 1) if "\n" in text else text
                text += f"  {end}" if end and "\n" not in text else ""
                lines = text
            elif draw(st.booleans()):
                lines = f"{key}:{block(value, '    ')}"
            else:
                lines = f"{key}: {json.dumps(value, ensure_ascii=False)}{f' {end}' if end else ''}"
            gap = draw(st.sampled_from(["", "\n"])) if free else ""
            fields.append(Part(name, gap + (f"  {above}\n" if above else ""), lines, value))
        records.append(fields)
    return records


def whole(records: list[list[Part]], newline: str = "\n") -> str:
    return "\n".join(
        "".join(f"{part.above}{'  ' if number else '- '}{part.lines}\n" for number, part in enumerate(fields))
        for fields in records
    ).replace("\n", newline)


def plain(records: list[list[Part]]) -> list[dict[str, Value]]:
    return [{part.name: part.value for part in fields} for fields in records]


@given(parts(free=True), st.data(), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_replacing_a_field_leaves_every_byte_outside_its_lines(
    records: list[list[Part]], data: st.DataObject, newline: str, ended: bool
) -> None:
    text = whole(records, newline)
    text = text if ended else text.removesuffix(newline)
    index = data.draw(st.integers(0, len(records) - 1))
    place = data.draw(st.integers(0, len(records[index]) - 1))
    value = data.draw(VALUES)
    part = records[index][place]

    result = change_records(yaml_file(text), {index: {part.name: value}}, STYLE)

    head = whole([*records[:index], records[index][:place]], newline) if place else whole(records[:index], newline)
    head += newline if index and not place else ""
    head += part.above.replace("\n", newline) + ("  " if place else "- ")
    tail = text[len(head) + len(part.lines.replace("\n", newline)) :]
    assert text == head + part.lines.replace("\n", newline) + tail
    assert result.startswith(head)
    assert result.endswith(tail)
    expected = plain(records)
    expected[index][part.name] = value
    assert loaded(result) == expected
    assert newline not in text or result.count("\n") == result.count(newline)


@given(parts(free=True), st.data(), VALUES)
def test_inserting_a_field_adds_its_lines_and_touches_no_other(
    records: list[list[Part]], data: st.DataObject, value: Value
) -> None:
    text = whole(records)
    index = data.draw(st.integers(0, len(records) - 1))
    absent = [name for name in ("title", "notes", "other", "evidence") if name not in plain(records)[index]]
    assume(absent)
    name = data.draw(st.sampled_from(absent))

    result = change_records(yaml_file(text), {index: {name: value}}, STYLE)

    alike = (a == b for a, b in zip(text, result, strict=False))
    common = next((at for at, same in enumerate(alike) if not same), len(text))
    assert result.endswith(text[common:])
    expected = plain(records)
    expected[index][name] = value
    assert loaded(result) == expected


@given(parts(free=True), st.data())
def test_removing_a_field_takes_its_comments_and_nothing_else(records: list[list[Part]], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(records) - 1))
    assume(len(records[index]) > 1)
    place = data.draw(st.integers(1, len(records[index]) - 1))
    name = records[index][place].name

    result = change_records(yaml_file(whole(records)), {index: {name: None}}, STYLE)

    del records[index][place]
    assert result == whole(records)


CHANGES = st.dictionaries(st.one_of(NAMES, st.just("key")), st.one_of(st.none(), VALUES), max_size=4)


@given(parts(free=False), st.lists(CHANGES, min_size=4, max_size=4))
def test_a_canonical_file_with_comments_stays_canonical(
    records: list[list[Part]], each: list[dict[str, Value | None]]
) -> None:
    text = whole(records)
    assert is_canonical(text)
    changes = dict(zip(range(len(records)), each, strict=False))
    wanted = [
        {name: value for name, value in {**record, **changes[index]}.items() if value is not None}
        for index, record in enumerate(plain(records))
    ]
    assume(all(wanted))

    result = change_records(yaml_file(text), changes, STYLE)

    assert is_canonical(result)
    assert loaded(result) == wanted
    for fields, record in zip(records, wanted, strict=True):
        for part in fields:
            if part.name in record:
                assert part.above.strip() in result


@given(parts(free=True), st.lists(CHANGES, min_size=4, max_size=4))
def test_changing_many_records_at_once_is_changing_them_one_by_one(
    records: list[list[Part]], each: list[dict[str, Value | None]]
) -> None:
    text = whole(records)
    changes = dict(zip(range(len(records)), each, strict=False))
    for index, record in enumerate(plain(records)):
        assume(any(value is not None for value in {**record, **changes[index]}.values()))

    at_once = change_records(yaml_file(text), changes, STYLE)

    for index, change in changes.items():
        text = change_records(yaml_file(text), {index: change}, STYLE)
    assert at_once == text


@given(parts(free=False), parts(free=False), st.data())
def test_adding_records_keeps_a_file_canonical_and_removing_them_gives_it_back(
    records: list[list[Part]], new: list[list[Part]], data: st.DataObject
) -> None:
    text = whole(records)
    index = data.draw(st.one_of(st.none(), st.integers(0, len(records))))
    at = len(records) if index is None else index

    blocks = [block.rstrip("\n") + "\n" for block in whole(new).split("\n\n")]
    longer = insert_records(yaml_file(text), None if index is None else [index] * len(new), blocks)

    assert is_canonical(longer)
    assert loaded(longer) == [*plain(records)[:at], *plain(new), *plain(records)[at:]]
    for _ in new:
        longer = remove_record(yaml_file(longer), at)
    assert longer == text


FILE = """\
# The head of the file.

# About a.
- key: a  # the key
  # About the title.
  title: 'It''s a'   # the title

  authors:   # people
    - "A, B"  # first
    - C
  care: {water: daily,
         prune: weekly}
  evidence:
  - {tags: [care], note: one}
  - tags:
      - care  # why
    note: "two"  # really
# About b.
- key: b
"""


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ({"key": "z"}, "- key: a  # the key\n", "- key: z  # the key\n"),
        ({"title": "B: c"}, "title: 'It''s a'   # the title\n", 'title: "B: c"  # the title\n'),
        ({"title": None}, "  # About the title.\n  title: 'It''s a'   # the title\n", ""),
        (
            {"authors": ["X", "A, B", "C"]},
            '  authors:   # people\n    - "A, B"  # first\n',
            "\x00",
        ),
        (
            {"authors": ["C", "A long name " * 5, "Another long name " * 5]},
            '  authors:   # people\n    - "A, B"  # first\n    - C\n',
            '  authors:  # people\n    - C\n    - "'
            + "A long name " * 5
            + '"\n    - "'
            + "Another long name " * 5
            + '"\n',
        ),
        (
            {"care": {"water": "weekly"}},
            "  care: {water: daily,\n         prune: weekly}\n",
            "  care: {water: weekly}\n",
        ),
        (
            {"evidence": [{"tags": ["care"], "note": "zero"}, {"tags": ["care"], "note": "two"}]},
            '  evidence:\n  - {tags: [care], note: one}\n  - tags:\n      - care  # why\n    note: "two"  # really\n',
            "  evidence:\n    - tags: [care]\n      note: zero\n    - tags: [care]  # why\n      note: two  # really\n",
        ),
        (
            {"evidence": [{"tags": ["care"], "note": "one"}]},
            '  - {tags: [care], note: one}\n  - tags:\n      - care  # why\n    note: "two"  # really\n',
            "    - tags: [care]\n      note: one\n",
        ),
        (
            {"evidence": None},
            '  evidence:\n  - {tags: [care], note: one}\n  - tags:\n      - care  # why\n    note: "two"  # really\n',
            "",
        ),
        ({"year": 2020}, "the title\n", "the title\n  year: 2020\n"),
        ({"notes": "No: more"}, "# really\n", '# really\n  notes: "No: more"\n'),
        ({"care": None, "year": "2020"}, "  care: {water: daily,\n         prune: weekly}\n", "\x01"),
    ],
)
def test_one_record_in_several_styles(changes: dict[str, Value | None], old: str, new: str) -> None:
    assert FILE.count(old) == 1
    if new == "\x00":  # the comments of the first line and of the first item would come to stand on one line
        with pytest.raises(DataFileError) as raised:
            change_records(yaml_file(FILE), {0: changes}, STYLE)
        assert str(raised.value) == (
            "x.yaml:8:3: this comment has no place in the changed field\n"
            "Move it above the field, or to the end of the field's first line."
        )
    elif new == "\x01":
        expected = FILE.replace(old, "").replace("the title\n", "the title\n  year: 2020\n")
        assert change_records(yaml_file(FILE), {0: changes}, STYLE) == expected
    else:
        assert change_records(yaml_file(FILE), {0: changes}, STYLE) == FILE.replace(old, new)


def test_the_first_field_can_be_preceded_and_removed() -> None:
    text = "- title: t  # end\n  # above\n  year: 2020\n"

    assert (
        change_records(yaml_file(text), {0: {"key": "k"}}, STYLE)
        == "- key: k\n  title: t  # end\n  # above\n  year: 2020\n"
    )
    assert change_records(yaml_file(text), {0: {"title": None}}, STYLE) == "# above\n- year: 2020\n"
    with pytest.raises(DataFileError, match=r"x\.yaml:1:3: nothing would be left of this record"):
        change_records(yaml_file(text), {0: {"title": None, "year": None}}, STYLE)


def test_a_field_goes_behind_the_nearest_that_comes_before_it() -> None:
    text = "- authors: [a]\n  key: k\n  care: {}\n"

    assert (
        change_records(yaml_file(text), {0: {"year": "2020"}}, STYLE)
        == "- authors: [a]\n  key: k\n  year: 2020\n  care: {}\n"
    )


def test_block_texts_and_deep_marks_are_understood() -> None:
    text = "-   key: k\n    notes: |  # kept\n      # no comment\n    title: >-\n      two\n      lines\n- key: l"

    assert change_records(yaml_file(text), {0: {"title": "one"}}, STYLE) == text.replace(
        ">-\n      two\n      lines", "one"
    )
    assert change_records(yaml_file(text), {0: {"notes": "x"}}, STYLE) == text.replace(
        "|  # kept\n      # no comment\n", "x  # kept\n"
    )
    assert change_records(yaml_file(text), {1: {"title": "end"}}, STYLE) == text + "\n  title: end"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("- {key: a, title: b}\n", "x.yaml:1:4: this field does not stand on lines of its own"),
        ("- ? key\n  : a\n", "x.yaml:1:5: this field does not stand on lines of its own"),
        ("[{key: a}]\n", "x.yaml:1:2: this record is not written as a block list item"),
        ("-\n  key: a\n", "x.yaml:2:3: this record is not written as a block list item"),
        ("- a\n", "x.yaml:1:1: this record is not a mapping"),
        ("- key: [a,\n    # inside\n    b]\n", "x.yaml:2:5: this comment has no place in the changed field"),
        ("- key: [a,\n    b\n    # inside\n    ]\n", "x.yaml:3:5: this comment has no place in the changed field"),
        ("- key: a\n  key: b\n", "x.yaml cannot be edited in place"),
        ("- key: a\n- key: [\n", "x.yaml cannot be edited in place"),
    ],
)
def test_what_cannot_be_edited_in_place_is_refused(text: str, place: str) -> None:
    with pytest.raises(DataFileError) as raised:
        change_records(yaml_file(text), {0: {"key": "b"}}, STYLE)

    assert str(raised.value).startswith(place)


def test_comments_go_with_the_record_below_them_and_the_head_stays() -> None:
    text = "# head\n\n# about a\n- key: a\n\n# about b\n# and more\n- key: b\n\n# the end\n"

    assert insert_records(yaml_file(text), [0], ["- key: c\n"]) == text.replace("# about a", "- key: c\n\n# about a")
    assert insert_records(yaml_file(text), [1], ["- key: c\n"]) == text.replace("# about b", "- key: c\n\n# about b")
    assert insert_records(yaml_file(text), None, ["- key: c\n"]) == text.replace("# the end", "- key: c\n\n# the end")
    assert remove_record(yaml_file(text), 0) == "# head\n\n# about b\n# and more\n- key: b\n\n# the end\n"
    assert remove_record(yaml_file(text), 1) == "# head\n\n# about a\n- key: a\n\n# the end\n"
    assert remove_record(yaml_file("# head\n- key: a\n- key: b\n"), 0) == "# head\n- key: b\n"


SPLICED = st.lists(
    st.tuples(TEXTS, st.sampled_from(["", "\n", "# comment\n", "\n# comment 𝒜\n"])), min_size=1, max_size=6
)


def spliced_text(parts: list[tuple[str, str]]) -> str:
    return "".join(
        f"- key: k{number}\n  title: {scalar_text(text)}  # end\n{gap}" for number, (text, gap) in enumerate(parts)
    )


@given(SPLICED, st.data())
def test_inserting_and_removing_a_record_are_inverse(parts: list[tuple[str, str]], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(parts)))
    text = spliced_text(parts)

    longer = insert_records(yaml_file(text), [index], ["- key: new\n"])
    shorter = remove_record(yaml_file(longer), index)

    assert loaded(longer) == [*loaded(text)[:index], {"key": "new"}, *loaded(text)[index:]]
    assert loaded(shorter) == loaded(text)
    assert [line for line in shorter.splitlines() if line.strip()] == [
        line for line in text.splitlines() if line.strip()
    ]


@given(SPLICED, st.data(), TEXTS)
def test_replacing_a_value_leaves_every_other_byte(parts: list[tuple[str, str]], data: st.DataObject, new: str) -> None:
    index = data.draw(st.integers(0, len(parts) - 1))
    text = spliced_text(parts)
    record = list(yaml_file(text).records())[index]
    assert isinstance(record, Mapping)
    at = record.entries["title"][1].at

    result = replace_values(yaml_file(text), {at: new})

    old = scalar_text(parts[index][0])
    assert result == text[:at] + scalar_text(new) + text[at + len(old) :]


def test_splicing_the_first_and_the_last_record_of_a_file() -> None:
    assert insert_records(yaml_file("# head\n[]\n"), [0], ["- key: a\n"]) == "# head\n\n- key: a\n"
    assert insert_records(yaml_file("- key: a"), [1], ["- key: b\n"]) == "- key: a\n\n- key: b\n"
    assert remove_record(yaml_file("# head\n\n- key: a\n"), 0) == "# head\n\n[]\n"


def test_a_value_that_is_not_there_is_not_replaced() -> None:
    with pytest.raises(DataFileError, match="cannot be changed in place"):
        replace_values(yaml_file("- key: a\n"), {1: "b"})


def test_an_empty_list_takes_records() -> None:
    assert insert_records(yaml_file("# not []\n[ ]  # none\n"), None, ["- key: a\n", "- key: b\n"]) == (
        "# not []\n\n- key: a\n\n- key: b\n\n# none\n"
    )
    assert add_records(yaml_file("[]\r\n"), [{"key": "a", "year": 2020}], STYLE) == "- key: a\r\n  year: 2020\r\n"
    assert add_records(yaml_file("[]\n"), [], STYLE) == "[]\n"


def test_a_comment_beside_a_block_text_survives_formatting() -> None:
    assert canonical(yaml_file("- notes: |-  # kept\n    # text\n"), STYLE) == '- notes: "# text"  # kept\n'


def test_two_comments_for_one_line_are_refused_at_their_field() -> None:
    with pytest.raises(MisplacedCommentError) as raised:
        canonical(yaml_file("- key: a\n  authors:  # one\n    - b  # two\n"), STYLE)

    assert raised.value.at == 11
