"""The faults that keep a text from being JSON: each at the place of the mistake, whatever version of Python decodes."""

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchtrace_corpus.base.json_places import Places
from orchtrace_corpus.base.json_syntax import MAX_DEPTH, JsonError, Kind, exceeds_depth, first_fault, loads

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
PIECES = st.lists(
    st.sampled_from(["{", "}", "[", "]", ",", ":", '"', '"a"', '"a": 1', "1", "-", "01", "1.", "1e5", "true", "nul", "NaN",
                     "-Infinity", "'", "\\", "\\u12", "\\ud800", "\t", "\n", " ", "\u00a0", "\ufeff", "//", "é"]),
    max_size=9,
).map("".join)  # fmt: skip


def is_json(text: str) -> bool:
    """Whether Python takes a text for JSON, and what it takes although JSON has no such thing is not in it."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        json.dumps(json.loads(text, parse_constant=refuse), ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


@given(PIECES)
@example('{"a": [1, 2}')
@example("1\u00a0")
@example("{]")
def test_a_fault_is_found_just_where_a_text_is_no_json(text: str) -> None:
    fault = first_fault(text)

    assert (fault is None) == is_json(text)
    if fault:
        assert (fault.line, fault.column) >= (1, 1)
        assert fault.line <= text.count("\n") + 1
        assert fault.message


@given(VALUES, st.sampled_from([None, 1]), st.integers(0), st.text('{}[]",:\\ue5.-+x \n\x00', max_size=4))
def test_damaged_json_is_told_from_sound_json(value: Any, indent: int | None, at: int, new: str) -> None:
    text = json.dumps(value, indent=indent)
    at %= len(text) + 1

    assert first_fault(text) is None
    assert (first_fault(text[:at] + new + text[at + 1 :]) is None) == is_json(text[:at] + new + text[at + 1 :])


@pytest.mark.parametrize(
    ("text", "kind", "place", "message"),
    [
        ("", Kind.EMPTY, (1, 1), "there is nothing in it"),
        ("\ufeff{}", Kind.BYTE_ORDER_MARK, (1, 1), "begins with a byte order mark"),
        ('{"a":\n1,}', Kind.SYNTAX, (2, 2), "a comma with nothing behind it; remove it"),
        ("[1,\n\n]", Kind.SYNTAX, (1, 3), "a comma with nothing behind it; remove it"),
        ("[,]", Kind.SYNTAX, (1, 2), "expecting value"),
        ('{"a" 1}', Kind.SYNTAX, (1, 6), "expecting ':' delimiter"),
        ('{"a": }', Kind.SYNTAX, (1, 7), "expecting value"),
        ('["a"\n"b"]', Kind.SYNTAX, (1, 5), "a comma is missing"),
        ("[1 2]", Kind.SYNTAX, (1, 3), "a comma is missing"),
        ("[1}", Kind.SYNTAX, (1, 3), "expecting ',' delimiter"),
        ("{1: 2}", Kind.SYNTAX, (1, 2), "expecting property name enclosed in double quotes"),
        ("['a']", Kind.SYNTAX, (1, 2), "expecting value"),
        ("[01]", Kind.SYNTAX, (1, 3), "expecting ',' delimiter"),
        ("[1.]", Kind.SYNTAX, (1, 3), "expecting ',' delimiter"),
        ("[.5]", Kind.SYNTAX, (1, 2), "expecting value"),
        ("[+1]", Kind.SYNTAX, (1, 2), "expecting value"),
        ("[nul]", Kind.SYNTAX, (1, 2), "expecting value"),
        ('["\\q"]', Kind.SYNTAX, (1, 3), r"invalid \escape"),
        ('["\\u12"]', Kind.SYNTAX, (1, 3), r"invalid \uXXXX escape"),
        ('["a\nb"]', Kind.SYNTAX, (1, 4), "invalid control character"),
        ('["a\\ud8ff', Kind.SYNTAX, (1, 10), "the text ends in the middle of a string"),
        ('["a', Kind.SYNTAX, (1, 4), "the text ends in the middle of a string, which begins at 1:2"),
        ('{"a": [1,\n', Kind.SYNTAX, (1, 10), "the text ends in the middle of a list, which begins at 1:7"),
        ("[1] # one", Kind.SYNTAX, (1, 5), "a comment, which JSON does not have; remove it"),
        ("{}\n{}", Kind.EXTRA_DATA, (2, 1), "extra data"),
        ("[NaN]", Kind.NOT_FINITE, (1, 2), "'NaN' is not a finite number"),
        ("[1, -Infinity]", Kind.NOT_FINITE, (1, 5), "'-Infinity' is not a finite number"),
        ('["\\ud83d\\ude00", "\\ude00"]', Kind.HALF_PAIR, (1, 19), "half of a surrogate pair"),
        ("[" * 501 + "]" * 501, Kind.TOO_DEEP, (1, 1), "nested too deeply; at most 500 levels are read"),
    ],
)
def test_every_kind_of_fault_has_its_words_and_its_place(
    text: str, kind: Kind, place: tuple[int, int], message: str
) -> None:
    fault = first_fault(text)

    assert fault is not None
    assert (fault.kind, (fault.line, fault.column)) == (kind, place)
    assert fault.message.startswith(message)


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ('{"a": 1,\n "b": {"a": 2},\n "a": 3}', "'a' is given twice in one object", (3, 2)),
        ('{"a": 1, "\\u0061": 2}', "'a' is given twice in one object", (1, 10)),
        ("[1, -" + "9" * 4301 + "]", "not valid JSON: a number of more than 4300 digits", (1, 5)),
        ("[\nNaN]", "not valid JSON: 'NaN' is not a finite number", (2, 1)),
        ("[" * 501 + "]" * 501, "not valid JSON: nested too deeply; at most 500 levels are read", (1, 1)),
    ],
)
def test_what_only_python_takes_for_json_is_refused(text: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(JsonError, match=re.escape(message)) as caught:
        loads(text)

    assert (caught.value.line, caught.value.column) == place


def nested(depth: int) -> str:
    """Lists and objects in turn, with brackets in strings that close none of them."""
    return '[1, "]}\\"", {"a}": ' * (depth // 2) + "[" * (depth % 2) + "1" + "]" * (depth % 2) + "}]" * (depth // 2)


@pytest.mark.parametrize("blank", ["", " " * 40, "\\\\" * (1 << 19)], ids=["small", "blanks", "in pieces"])
def test_the_depth_is_counted_exactly(blank: str) -> None:
    for depth in (MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, MAX_DEPTH + 2):
        text = f'[{{}}, "{blank}", {nested(depth - 1)}, {"[{}]," * MAX_DEPTH} 1]'
        assert exceeds_depth(text.encode()) == (depth > MAX_DEPTH) == (first_fault(text) is not None)


@given(VALUES, st.sampled_from([None, 1]))
def test_every_value_stands_where_its_path_is_located(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    lines = text.split("\n")
    places = Places(text.encode(), "x")

    def check(part: Any, path: tuple[str | int, ...]) -> None:
        _, line, column = places.locate(path)
        assert json.JSONDecoder().raw_decode("\n".join((lines[line - 1][column - 1 :], *lines[line:])))[0] == part
        for step, inner in (
            part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        ):
            check(inner, (*path, step))

    check(value, ())
