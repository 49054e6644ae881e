"""The strict YAML reader: every value as text, every value at its place, every refusal with its place."""

import json
import os
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.base.yamlfile.lines import Lines, UnclearError
from orchtrace_corpus.base.yamlfile.parser import Parser
from orchtrace_corpus.base.yamlfile.reader import Mapping, Node, Scalar, Sequence, YamlFile, read

ROOT = Path(__file__).resolve().parents[2]

# Text that YAML can hold between double quotes on one line, astral and combining characters included.
LINE_TEXT = st.text(
    st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufeff\ufffe\uffff\u2028\u2029"), min_size=1
)


def values(node: Node | None) -> object:
    """The node as plain lists, mappings and texts."""
    if isinstance(node, Mapping):
        return {key: values(value) for key, (_, value) in node.entries.items()}
    if isinstance(node, Sequence):
        return [values(item) for item in node.items]
    return node.text if isinstance(node, Scalar) else None


def problems(text: str | bytes) -> list[str]:
    """The findings of a document, each as `line:column code`."""
    file = YamlFile("x.yaml", text if isinstance(text, bytes) else text.encode())
    file.root()
    return [f"{f.location.line}:{f.location.column} {f.code}" for f in file.findings]


def test_a_text_of_a_printable_file_may_be_unprintable_by_an_escape_only() -> None:
    plain, escaped = (YamlFile("x.yaml", f'- a: "ç: #d"\n- a: "{text}"\n'.encode()) for text in ("e", "\\x07"))

    assert [values(node) for node in plain.records()] == [{"a": "ç: #d"}, {"a": "e"}]
    assert [values(node) for node in escaped.records()] == [{"a": "ç: #d"}, {"a": "\x07"}]
    assert (plain.is_simple, escaped.is_simple) == (True, False)
    assert not YamlFile("x.yaml", "a: b\u0301\u202a\n".encode()).is_simple


@pytest.mark.parametrize(("limit", "expected"), [(3, b"abcd"), (4, b"abcde"), (5, b"abcde"), (6, b"abcde")])
def test_of_a_file_no_more_is_read_than_shows_that_it_is_too_large(limit: int, expected: bytes, tmp_path: Path) -> None:
    path, pipe = tmp_path / "a.yaml", tmp_path / "pipe"
    path.write_bytes(b"abcde")
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(b"abcde",))
    writer.start()

    assert reader.read_bytes(str(path), "a.yaml", limit) == expected
    assert reader.read_bytes(str(pipe), "pipe", limit) == expected
    writer.join()


def test_every_value_stays_text() -> None:
    text = "a: 2504.16120\nb: no\nc: 2026-05-04\nd: ~\ne: 0x1F\nf: 1e3\ng: .inf\nh:\ni: 'it''s'\nj: \"\\u00e9\"\n"

    node = YamlFile("x.yaml", text.encode()).root()

    assert values(node) == {
        "a": "2504.16120",
        "b": "no",
        "c": "2026-05-04",
        "d": "~",
        "e": "0x1F",
        "f": "1e3",
        "g": ".inf",
        "h": "",
        "i": "it's",
        "j": "é",
    }


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), LINE_TEXT), min_size=1, unique_by=lambda pair: pair[0]))
def test_every_value_has_its_true_line_and_column(pairs: list[tuple[str, str]]) -> None:
    # A comment and a flow list with wide text before each value, so that no column is trivial.
    lines = [f"{key}: [𝒜é, {json.dumps(text, ensure_ascii=False)}]  # {text}" for key, text in pairs]
    file = YamlFile("x.yaml", "\n".join(lines).encode())

    node = file.root()

    assert file.findings == []
    assert isinstance(node, Mapping)
    for number, (line, (key, text)) in enumerate(zip(lines, pairs, strict=True), start=1):
        key_at, items = node.entries[key]
        assert isinstance(items, Sequence)
        found = items.items[1]
        assert isinstance(found, Scalar)
        assert found.text == text
        assert file.location(key_at) == ("x.yaml", number, 1)
        assert file.location(found.at) == ("x.yaml", number, line.index('"') + 1)


@given(
    st.recursive(
        LINE_TEXT,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner),
        max_leaves=12,
    )
)
def test_reading_json_gives_its_values(document: object) -> None:
    # Without control characters, JSON is YAML in flow style.
    node = YamlFile("x.yaml", json.dumps(document, ensure_ascii=False).encode()).root()

    assert values(node) == document


PIECES = st.sampled_from(
    'a: |b: |c:|a,b: |\'a\': |"b!=": |- |- a: |- - |x|x y|x: y|x # y|x#y|x:|y:z|-1|-|=|é 𝒜|"x"|"x: # y"|"x \\" y"|'
    "\"\\\\\"|\"\\n\"|'x'|[]|{}|[x, y z]|[x, \"y, z\"]|[x, ]|[x: y]|[x,y]|[https://x/y?z#a]|[https://x/y#a]|[x#, y]|[x #y]|'it''s: #1'|a: ''|{a: x, b: [y, {c: z}]}|"
    '{"a!=": x}|{a: x, a: y}|{<<: x}|[x|x]|>-|>|# x|<<: x|&x y|*x|!x y|--- x|? x'.split("|")
)
"""What lines are made of: what `corpus check --fix` writes, and what it does not."""

LINES = st.builds(
    lambda indent, parts, end: " " * indent + "".join(parts) + end,
    st.sampled_from([0, 0, 2, 2, 4, 6, 1]),
    st.lists(PIECES, max_size=3),
    st.sampled_from(["", "", "", " ", "  # x"]),
)


@settings(max_examples=1000)
@given(st.lists(LINES, min_size=1, max_size=7))
def test_what_is_read_line_by_line_is_what_the_parser_reads(lines: list[str]) -> None:
    text = "\n".join([*lines, ""])
    try:
        found = Lines(text).root()
    except UnclearError:
        return
    file = YamlFile("x.yaml", text.encode())

    assert Parser(file).root() == found
    assert file.findings == []


@settings(max_examples=300)
@given(st.lists(LINES, min_size=1, max_size=5), st.lists(LINES, max_size=3))
def test_records_are_the_same_where_lines_become_unclear(lines: list[str], others: list[str]) -> None:
    text = "\n".join(["- a: x", "  b: [y]", "", "- a: z", *lines, "- a: x", *others, ""])
    file, other = YamlFile("x.yaml", text.encode()), YamlFile("x.yaml", text.encode())

    assert list(file.records()) == list(Parser(other).records())
    assert (file.findings, file.cut_off) == (other.findings, other.cut_off)


@pytest.mark.parametrize("path", sorted((ROOT / "data").rglob("*.yaml")), ids=lambda path: path.stem)
def test_the_real_data_is_read_line_by_line(path: Path) -> None:
    file = YamlFile(path.name, path.read_bytes())

    assert Lines(file.text).root() == Parser(file).root()


def test_places_survive_windows_line_ends() -> None:
    file = YamlFile("x.yaml", "a: é\r\n\r\nb: two\r\n".encode())

    node = file.root()

    assert isinstance(node, Mapping)
    assert file.location(node.entries["b"][1].at) == ("x.yaml", 3, 4)
    assert values(node) == {"a": "é", "b": "two"}


@given(st.lists(st.dictionaries(st.sampled_from(["key", "b", "c"]), LINE_TEXT, min_size=1), min_size=1, max_size=5))
def test_a_record_read_again_is_the_same_at_the_same_place(records: list[dict[str, str]]) -> None:
    blocks = []
    for record in records:
        lines = [f"{name}: {json.dumps(text, ensure_ascii=False)}" for name, text in record.items()]
        blocks.append("- " + "\n  ".join(lines) + "\n  # a comment - \n")
    file = YamlFile("x.yaml", "\n".join(blocks).encode())

    nodes = list(file.records())

    ends = [*(node.at for node in nodes[1:]), len(file.text)]
    assert [file.record_at(node.at, end) for node, end in zip(nodes, ends, strict=True)] == nodes


def test_records_before_a_syntax_error_are_still_read() -> None:
    file = YamlFile("x.yaml", b"- a: one\n- b: [two\n- c: three\n")

    assert [values(node) for node in file.records()] == [{"a": "one"}]
    assert [finding.code for finding in file.findings] == ["Y104"]


def test_all_refusals_of_a_document_are_reported() -> None:
    text = "a: &x one\nb: *x\nc: !!str two\na: three\n<<: {d: e}\n? [f]\n: g\n"

    assert problems(text) == ["1:4 Y106", "2:4 Y107", "3:4 Y108", "4:1 Y105", "5:1 Y109", "6:3 Y113"]


def test_anchors_and_tags_on_lists_mappings_and_keys_are_refused() -> None:
    assert problems("&a\nb: &c [d]\n? !e f\n: &g {h: i}\n") == ["1:1 Y106", "2:4 Y106", "3:3 Y108", "4:3 Y106"]
    file = YamlFile("x.yaml", b"!list\n- a\n")
    assert [values(node) for node in file.records()] == ["a"]
    assert [finding.code for finding in file.findings] == ["Y108"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("é: ".encode() + b"\xff", ["1:4 Y101"]),
        (b"\xef\xbb\xbfa: b", ["1:1 Y102"]),
        ("a: b\nç\x00: d\x07\n".encode(), ["2:2 Y103", "2:6 Y103"]),
        ("a: \x85".encode(), ["1:4 Y103"]),
        ("a: \u2028b".encode(), ["1:4 Y103"]),
        (b"a: b\rc: d", ["1:5 Y103"]),
        (b"a: b\n---\nc: d\n", ["2:1 Y110"]),
        (b"%YAML 1.1\n---\na: b\n", ["1:1 Y110"]),
        (b"", ["1:1 Y114"]),
        (b"# only a comment\n", ["1:1 Y114"]),
        (b"[" * 40, ["1:17 Y111"]),
        (b"a: 'b", ["1:4 Y104"]),
        (b"a: b: c", ["1:5 Y104"]),
        (b"a:\n\tb: c", ["2:1 Y104"]),
    ],
)
def test_refusals_name_their_place(data: bytes, expected: list[str]) -> None:
    assert problems(data) == expected


def test_endless_nesting_is_refused_by_us_or_by_the_parser() -> None:
    assert problems(b"[" * 100_000) in (["1:17 Y111"], ["1:1001 Y104"])  # the latter from PyYAML 6.0.4 on


def test_a_page_of_forbidden_characters_is_summed_up() -> None:
    file = YamlFile("x.yaml", b"\x01" * 50)

    assert len(file.findings) == 21
    assert file.findings[-1].message == "30 more forbidden characters from here on"


def test_a_file_too_large_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_BYTES", 10)

    file = YamlFile("x.yaml", b"a: " + b"b" * 8)

    assert [finding.code for finding in file.findings] == ["Y112"]
    assert file.root() is None


def test_a_file_that_cannot_be_read_is_named() -> None:
    with pytest.raises(DataFileError, match=r"cannot read data/none\.yaml: No such file or directory"):
        read("/nonexistent/none.yaml", "data/none.yaml")


def test_a_document_that_is_no_list_has_no_records() -> None:
    file = YamlFile("x.yaml", b"a: b\n")

    assert list(file.records()) == []
    assert [str(finding) for finding in file.findings] == [
        "x.yaml:1:1: F103 expected a list of records, each beginning with '- '"
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("- é: a\n- b: " + "x" * 100_000, "2:1 Y115"),
        ("- a: b\n- c: " + "x y\n    " * 30_000, "2:6 Y115"),
        ("- a: b\n- " + "x y\n  " * 30_000, "2:3 Y115"),
        ("- a: '" + "x y\n  " * 30_000 + "'", "1:6 Y115"),
    ],
)
def test_a_text_too_long_to_read_is_refused(text: str, place: str) -> None:
    assert problems(text) == [place]


def test_a_long_file_of_short_lines_is_read() -> None:
    assert problems("- a: b\n" * 50_000) == []
    assert problems("a: " + "x" * (reader.MAX_TEXT - 3)) == []


def test_a_huge_line_is_refused_before_it_is_decoded() -> None:
    file = YamlFile("x.yaml", b"- a: b\n- c: " + b"\xff" * 20_000_000)

    assert [finding.code for finding in file.findings] == ["Y115"]
    assert len(file.text) == len("- a: b\n")
