"""The comment on a pull request: whatever stands in the document, it is code in the tree that GitHub's parser builds."""

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus.render import comment as module
from orchtrace_corpus.corpus.render import difference
from orchtrace_corpus.corpus.render.comment import (
    FAILED,
    MARKER,
    MOST_BYTES,
    DocumentError,
    code_span,
    comment,
    fence,
    one_line,
    read,
)
from orchtrace_corpus.corpus.render.difference import Own
from tests.conftest import ROOT, TOY, run_corpus
from tests.effort import tries

SCHEMA = json.loads((ROOT / "docs" / "schema" / "diff.schema.json").read_text(encoding="utf-8"))
WORDS_OF_OURS = {"schema", "questions", "turn", "severity", "change"}
"""The properties whose texts the schema enumerates."""

CLAIM = """
- id: {0}
  claim: There is one {0}.
  {1}
  where: {{style: {0}}}
  expect: {{count: 1}}
  boundary: In this garden.
  source: Seen.
"""
PUBLISHED = 'day: "2023-12-31"\nsource: https://example.org/survey\npapers: [rose-garden, long-grass, mixed-borders]\n'
LATER = """
- key: {0}
  title: Stones
  authors: ["Stone, Sten"]
  year: 2024
  venue: Beds 2024
  urls: [https://example.org/{0}]
  style: {1}
  care: {{water: daily}}
  size: large
  summary: Piles stones.
  evidence:
    - {{tags: [care], note: Seen., source: https://example.org/{0}, level: photo, confidence: low}}
  added: "2022-01-01"
"""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A difference with something in each of its parts."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (TOY / "data").iterdir()}
    old, new = (tmp_path_factory.mktemp(name) / "data" for name in ("old", "new"))
    claims = CLAIM.format("meadow", 'scope: {published: "yes"}') + CLAIM.format("formal", "over: papers")
    papers = texts["papers.yaml"]
    gone = papers[papers.index("- key: terminal-yard") :]
    dispute = "- {record: rose-garden, tag: size, stands: small, readings: {small: a, large: b}, why: So., source: S}\n"
    for folder, changes in (
        (old, {"published.yaml": PUBLISHED, "claims.yaml": claims + CLAIM.format("gravel", "over: papers")}),
        (
            new,
            {
                "published.yaml": PUBLISHED,
                "disputes.yaml": dispute,
                "claims.yaml": claims.replace("There is", "There was") + CLAIM.format("cottage", "over: papers"),
                "papers.yaml": papers.replace(gone, LATER.format("rocks", "meadow") + LATER.format("lawn", "formal"))
                .replace("level: visit", "level: photo")
                .replace("size: large", "size: small", 1)
                .replace("venue: Journal of Beds", "venue: Beds")
                .replace("tools: [spade, shears]", "tools: [shears, spade]")
                .replace("# A made-up corpus", "# Another corpus"),
                "exclusions.yaml": texts["exclusions.yaml"]
                .replace("- id: E001", "- id: E002")
                .replace("Nothing grows there.", "Nothing grows.\n  promoted_to: rocks")
                + "\n- {id: E004, title: The Yard, identifier: Y, url: https://example.org/y, stage: gate, "
                'screened: "2024-01-02", reason: No.}\n',
                "taxonomy.yaml": texts["taxonomy.yaml"].replace("label: Gravel", "label: Gravel beds"),
            },
        ),
    ):
        folder.mkdir()
        for name, text in {**texts, **changes}.items():
            (folder / name).write_text(text, encoding="utf-8")
    result = run_corpus("diff", str(old.parent), str(new.parent), "--format", "json")
    assert result.code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    assert run_corpus("diff", str(old.parent), str(new.parent), "--format", "markdown").stdout == comment(found)
    return {**found, "remarks": ["A remark."]}


def test_the_document_has_every_part(document: dict[str, Any]) -> None:
    titles = re.findall(r"^### (.+)|<summary>(.+) \(", comment(document), re.MULTILINE)

    assert ["".join(title) for title in titles] == [
        *("Claims broken", "Claims that fall today", "Taxonomy changed", "Papers changed", "Exclusions changed"),
        *(
            "Claims changed",
            "Papers removed",
            "Claims removed",
            "To be judged by a person",
            "Changed without another meaning",
        ),
        *("Findings new", "Claims new", "Papers added", "Exclusions added", "Claims added"),
        *("Disputes added", "To be judged of what is new", "Counts", "Cells"),
    ]


def replaced(value: Any, body: str, numbers: Iterator[int], name: str = "") -> Any:
    """The document with every text that the schema does not enumerate in the place of another."""
    if name in WORDS_OF_OURS:
        return value
    if isinstance(value, dict):
        is_value = name in ("value", "before", "after")
        is_open = is_value or name == "moved"
        return {
            f"{body}{next(numbers)}" if is_open else key: replaced(
                one, body, numbers, "value" if is_value else "" if is_open else key
            )
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [replaced(one, body, numbers, name) for one in value]
    return body if isinstance(value, str) else value


class Tree(HTMLParser):
    """What a rendered comment holds: tags with attributes, and texts, those within code apart."""

    def __init__(self, markdown: str) -> None:
        super().__init__(convert_charrefs=True)
        self.outside: list[str] = []
        self.code: list[str] = []
        self.text = ""
        self._is_code = False
        html = cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE)
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.outside.append(f"<{tag} {attrs}>")
        if tag == "code":
            self._is_code = True
            self.code.append("")
            self.text += CODE

    def handle_endtag(self, tag: str) -> None:
        self.outside.append(f"</{tag}>")
        self._is_code = self._is_code and tag != "code"

    def handle_comment(self, data: str) -> None:
        self.outside.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.outside.append(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        self.outside.append(f"<?{data}>")

    def handle_data(self, data: str) -> None:
        if self._is_code:
            self.code[-1] += data
        else:
            self.text += data


CODE = "\ue000"
"""What stands for code in the text of a comment."""


def own_words(document: Any) -> str:
    """The text of the comment on a difference, made of our own words alone; without blanks."""

    def text(words: Iterable[str]) -> str:
        return "".join(word.replace(" -> ", " → ") if isinstance(word, Own) else CODE for word in words)

    parts = [difference.headline(document), f"Compared: {CODE} with {CODE}.", CODE * len(document["remarks"])]
    for section in difference.sections(document):
        is_folded = section.is_new and len(section.entries) >= 6
        parts += [section.title, f"({len(section.entries)})" if is_folded else ""]
        parts += [text(words) for entry in section.entries for words in entry.lines]
    for table in difference.shift_tables(document):
        parts += [table.title, f"({len(table.rows)})" if len(table.rows) >= 12 else "", CODE]
    return re.sub(r"\s", "", "".join([*parts, text(difference.claims_left(document))]))


NAMED = (
    "[x][r]\n\n[r]: https:\\/\\/evil.test",
    "[x][r] [r]: https:&#47;&#47;evil.test",
    "[x][r]\n[r]: //evil.test",
    "![x][r]\n\n[r]: //evil.test/a.png",
    "&#64;name",
    "owner/repo#1",
    "see www.evil.test now",
    "~~x~~",
    "`` ` ``` [a](b) ```` ` ``",
    "`" * 100 + "[a](//b)" + "`" * 100,
    "``` \n[a](b)\n```",
    "\\`[a](b)\\`",
    "|`a|b`| \\| \\\\| [a](b)",
    "</code></pre><a href=//b>c</a><!-- --><?php ?><![CDATA[x]]>",
    "</summary></details>\n\n[a](b)",
    ":smile: $x$ $$y$$ #1 GH-1 @moss 0123456789abcdef0123456789abcdef01234567 https://x.org <https://x.org>",
    "\u202egnp.a\u2066 \x1b[31m \x00 \u2028 \t \r\n# h\n- x\n> y\n---\n1. z",
)
PIECES = (
    *("`", "``", "```", "~~~", "\\", "\\`", "[", "]", "(", ")", "![", "][", "]:", "<", ">", "<!--", "-->", "&#96;"),
    *("&lt;", "|", "*", "_", "#", "@moss", "\n", "\n\n", "\r", "\t", " ", "    ", "//evil.test", "https:", "www.x.org"),
    *(
        "$",
        ":a:",
        "~~",
        "- ",
        "1. ",
        "> ",
        "o/r#1",
        "x",
        "é",
        "字",
        "\u200b",
        "\u202e",
        "\x00",
        "<a href=//b>",
        "</code>",
    ),
)


@settings(max_examples=tries(500, 30))
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join) | st.text(min_size=1, max_size=40))
@example("x")
def test_no_text_from_outside_becomes_anything_but_code(body: str) -> None:
    _assert_code_only(body)


@pytest.mark.parametrize("body", NAMED)
def test_the_bodies_that_filters_missed_stay_code(body: str) -> None:
    _assert_code_only(body)


DOCUMENT: dict[str, Any] = {}
"""The document of the fixture, for tests that Hypothesis calls."""


@pytest.fixture(scope="module", autouse=True)
def _keep(document: dict[str, Any]) -> None:
    DOCUMENT.update(document)


def _assert_code_only(body: str) -> None:
    if not body.strip(" "):
        return
    hostile = replaced(DOCUMENT, body, iter(range(10_000)))
    read(json.dumps(hostile).encode(), SCHEMA)
    tree = Tree(comment(hostile))

    assert re.sub(r"\s", "", tree.text) == own_words(hostile)
    assert one_line(body) in tree.code
    assert one_line(body).startswith(
        re.sub("`{21,}", lambda run: f"{'`' * 20}…({len(run[0])} backticks)", printable(body, limit=2000))
    )
    tags = {*("p", "strong", "del", "code", "h3", "ul", "li", "pre", "details", "summary")}
    assert set(tree.outside) <= {f"<{tag} []>" for tag in tags} | {f"</{tag}>" for tag in tags} | {
        "<!-- corpus diff -->"
    }


def test_of_a_long_text_the_rest_is_counted_and_linked(document: dict[str, Any]) -> None:
    long = {"path": ["notes"], "before": None, "after": "x" * 10_000, "line": 7}
    record = {"name": "rocks", "was": "rocks", "change": "changed", "line": 5, "values": [long]}
    files = [{"path": "data/papers.yaml", "subject": "papers", "records": [record], "asides": []}]
    shown = comment({**document, "files": files, "after": "abcdef0123"})

    link = "[`data/papers.yaml:5`](../blob/abcdef0123/data/papers.yaml#L5)"
    assert f"- `rocks`: `notes` added: `{'x' * 4000}` … (6,000 more characters: {link})\n" in shown


def test_a_comment_on_hundreds_of_files_is_no_longer_than_github_takes(document: dict[str, Any]) -> None:
    value = {"path": ["x"], "before": None, "after": "\u202e" * 3000, "line": 1}
    files = [
        {"path": f"data/f{number}.yaml", "subject": f"f{number}", "asides": [value] * 9, "records": [
            {"name": "", "was": "", "change": change, "line": 1, "values": [value] * 9}
            for change in ("changed", "removed", "added")]}
        for number in range(300)
    ]  # fmt: skip
    remarks = ["\u202e" * 1000] * 100
    shown = comment({**document, "files": files, "remarks": remarks, "before": "\u202e" * 1000})

    assert len(shown.encode()) <= MOST_BYTES
    assert "### Other files changed\n" in shown
    refused = {"before": "a", "after": "b", "outside": document["outside"], "refused": "\u202e\n" * 50_000}
    assert len(comment(refused).encode()) <= MOST_BYTES


def test_what_does_not_fit_is_linked_to_its_line_and_nowhere_else(document: dict[str, Any]) -> None:
    body = "](//evil.test) [a](//b) ` #L1" * 400
    hostile = replaced(document, body, iter(range(10_000)))
    hostile["files"][1]["path"] = "data/](//evil.test) <b>`.yaml"
    hostile |= {"before": "0123456789", "after": "abcdef0123"}
    links = [tag for tag in Tree(comment(hostile)).outside if tag.startswith("<a ")]

    assert len(links) > 3
    assert all(re.match(r"<a \[\('href', '\.\./blob/(0123456789|abcdef0123)/", tag) for tag in links)
    assert any("../blob/abcdef0123/data/%5D%28//evil.test%29%20%3Cb%3E%60.yaml#L" in tag for tag in links)
    assert not any(
        tag.startswith("<a ") for tag in Tree(comment({**hostile, "after": "main](//b)", "before": ""})).outside
    )


@pytest.mark.parametrize("text", ["a", "`a", "a`", "``", " a", "a ", " ` ", "`" * 90, "a\nb"])
def test_a_code_span_shows_its_text(text: str) -> None:
    shown = re.sub("`{21,}", lambda run: f"{'`' * 20}…({len(run[0])} backticks)", printable(text, limit=2000))
    assert Tree(code_span(text)).code == [shown]
    assert Tree(fence(shown)).code == [f"{shown.rstrip()}\n"]


def test_look_alikes_are_shown_by_their_code_points(document: dict[str, Any]) -> None:
    body = "W\u043erk at https://ex\u0430mple.org/\u3164"
    shown = f"{body} [U+0430 CYRILLIC SMALL LETTER A, U+043E CYRILLIC SMALL LETTER O, U+3164 HANGUL FILLER]"
    assert shown in Tree(comment(replaced(document, body, iter(range(10_000))))).code


def test_the_module_needs_nothing_but_the_standard_library(tmp_path: Path, document: dict[str, Any]) -> None:
    (tmp_path / "diff.json").write_text(json.dumps(document), encoding="utf-8")
    words = ["-m", module.__name__, str(tmp_path / "diff.json")]
    done = subprocess.run([sys.executable, "-S", *words], cwd=ROOT, capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == comment(document)
    (tmp_path / "diff.json").write_text("[]", encoding="utf-8")
    done = subprocess.run([sys.executable, "-S", *words], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stdout.decode()) == (1, FAILED)
    assert done.stderr == b"This is not what corpus diff writes: $ is not what 'type' asks for\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b" " * 8_000_001, "more than 8000000 bytes"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "nested more than"),
        (b"\xff", "not JSON"),
        (b"1.5", "not JSON"),
        (b"NaN", "not JSON"),
        (b"9" * 10_000, "not JSON"),
        (b"{}", "'required'"),
        (b"true", "'type'"),
    ],
)
def test_what_is_no_difference_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        read(data, SCHEMA)


def paths(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in items:
        yield from paths(one, (*place, name))


def test_our_check_of_the_schema_is_that_of_a_library(document: dict[str, Any]) -> None:
    """Over many documents, each with one value in the place of another; of each that passes, a comment can be made."""
    theirs = Draft202012Validator(SCHEMA)
    places = [place for place in paths(document) if place]
    others: tuple[Any, ...] = (
        None,
        True,
        0,
        -1,
        10**9,
        "",
        "x",
        "x" * 100_001,
        [],
        ["x"] * 20_001,
        [[]],
        {},
        {"x": 1},
        {"": "x"},
    )
    chosen = random.Random(3)
    verdicts = set()
    for place in chosen.sample(places, k=tries(150, 25)):
        changed = json.loads(json.dumps(document))
        inner = changed
        for step in place[:-1]:
            inner = inner[step]
        if chosen.random() < 0.3 and isinstance(inner, dict):
            inner["further"] = chosen.choice(others)
        elif chosen.random() < 0.2:
            del inner[place[-1]]
        else:
            inner[place[-1]] = chosen.choice(others)
        try:
            assert comment(read(json.dumps(changed).encode(), SCHEMA)).startswith(f"{MARKER}\n")
            ours = True
        except DocumentError:
            ours = False
        verdicts.add(ours)
        assert ours == theirs.is_valid(changed), place
    assert verdicts == {True, False}


def test_every_text_and_list_of_the_schema_has_a_bound() -> None:
    def bounded(schema: Any) -> None:
        if isinstance(schema, dict):
            kinds = schema.get("type", ())
            assert kinds != "string" or "maxLength" in schema, schema
            assert kinds != "array" or "maxItems" in schema, schema
            is_open = kinds == "object" and schema.get("additionalProperties") is not False
            closed_names = "enum" in schema.get("propertyNames", {})
            assert not is_open or closed_names or "maxProperties" in schema, schema
            for inner in schema.values():
                bounded(inner)
        elif isinstance(schema, list):
            for inner in schema:
                bounded(inner)

    bounded(SCHEMA)


def test_a_comment_on_the_largest_texts_is_no_longer_than_github_takes(document: dict[str, Any]) -> None:
    part = tries(1, 3)  # each is far longer than a comment may be
    for body in ("字" * (99_000 // part), "` " * (49_000 // part), "\U0010ffff" * (50_000 // part)):
        shown = comment(replaced(document, body, iter(range(10_000))))
        assert len(shown.encode()) <= MOST_BYTES
        assert "`corpus diff` shows all of it" in shown
