"""The canonical form: no value and no comment is lost, and what is canonical stays as it is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.yamlfile.reader import Mapping, YamlFile
from orchtrace_corpus.base.yamlfile.record import node_content
from orchtrace_corpus.base.yamlfile.writer import (
    FormCheck,
    MisplacedCommentError,
    Style,
    canonical,
    record_text,
    scalar_text,
)
from orchtrace_corpus.corpus.model import record_fields as styles
from orchtrace_corpus.corpus.model.store import EXCLUSIONS, PAPERS, CorpusFiles
from tests.conftest import ROOT

STYLE = Style(("key", "title", "year", "authors", "care", "evidence"), frozenset({"year"}), frozenset({"care"}))

TEXTS = st.text(
    st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufeff\ufffe\uffff\u2028\u2029"), max_size=30
)
KEYS = st.sampled_from(["key", "title", "year", "authors", "care", "evidence", "other", "more: of", "no"])
VALUES = st.one_of(
    TEXTS,
    st.lists(TEXTS, max_size=4),
    st.dictionaries(st.sampled_from(["spawn", "stop"]), TEXTS, max_size=2),
    st.lists(
        st.dictionaries(st.sampled_from(["tags", "note"]), st.one_of(TEXTS, st.lists(TEXTS)), min_size=1), max_size=2
    ),
)
RECORDS = st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=5), min_size=1, max_size=4)
COMMENTS = st.sampled_from(["", "# plain", "# with 'quotes\" and: [brackets]", "#tight", "# ünïcode 𝒜"])


def yaml_file(text: str) -> YamlFile:
    return YamlFile("x.yaml", text.encode())


def loaded(text: str) -> list[object]:
    file = yaml_file(text)
    records = [node_content(node) for node in file.records()]
    assert file.findings == []
    return records


@given(RECORDS)
def test_formatting_keeps_every_value_and_is_idempotent(records: list[object]) -> None:
    text = "".join(f"- {json.dumps(record, ensure_ascii=False)}\n" for record in records)

    formatted = canonical(yaml_file(text), STYLE)

    assert loaded(formatted) == records
    assert canonical(yaml_file(formatted), STYLE) == formatted


@given(RECORDS, st.lists(st.tuples(COMMENTS, COMMENTS, COMMENTS), min_size=4, max_size=4), COMMENTS)
def test_comments_are_kept_in_all_four_places(
    records: list[dict[str, object]], comments: list[tuple[str, str, str]], header: str
) -> None:
    lines = [header, ""] if header else []
    for record, (before, above, behind) in zip(records, comments, strict=False):
        lines += [before] if before else []
        for position, (key, value) in enumerate(record.items()):
            mark = "- " if position == 0 else "  "
            if above and position > 0:
                lines.append(f"  {above}")
            tail = f" {behind}" if behind and position == 0 else ""
            shown = json.dumps(value, ensure_ascii=False)
            lines.append(f"{mark}{json.dumps(key)}: {shown}{tail}")
    text = "".join(f"{line}\n" for line in lines)
    given_comments = sorted(line.strip() for line in lines if line.strip().startswith("#"))

    try:
        formatted = canonical(yaml_file(text), STYLE)
    except MisplacedCommentError:
        # Behind a closing bracket that has become a block, a comment has no line.
        assert any(behind for _, _, behind in comments)
        return

    assert loaded(formatted) == loaded(text)
    assert canonical(yaml_file(formatted), STYLE) == formatted
    own_lines = [line.strip() for line in formatted.splitlines() if line.strip().startswith("#")]
    assert sorted(own_lines) == given_comments
    for _, _, behind in comments[: len(records)]:
        assert behind in formatted


def is_canonical(text: str, style: Style = STYLE) -> bool:
    file = yaml_file(text)
    form = FormCheck(file, style)
    file.on_record = form.add
    list(file.records())
    return form.is_canonical


@given(RECORDS, st.lists(COMMENTS, min_size=5, max_size=5), st.sampled_from(["", "key"]))
def test_a_canonical_file_is_recognised_while_it_is_read(
    records: list[object], comments: list[str], sort_key: str
) -> None:
    head, *above, end = (f"{comment}\n" if comment else "" for comment in comments)
    lines = [f"{head}\n" if head else ""]
    for record, comment in zip(records, (*above, ""), strict=False):
        lines.append(f"{comment}- {json.dumps(record, ensure_ascii=False)}\n")
    style = STYLE._replace(key=sort_key)

    formatted = canonical(yaml_file("".join([*lines, end])), style)

    assert is_canonical(formatted, style)


@given(RECORDS, st.data())
def test_no_file_in_another_form_is_taken_for_canonical(records: list[object], data: st.DataObject) -> None:
    text = "".join(f"- {json.dumps(record, ensure_ascii=False)}\n" for record in records)
    formatted = f"# head\n\n{canonical(yaml_file(text), STYLE)}\n# end\n"
    at = data.draw(st.integers(0, len(formatted)))
    cut = data.draw(st.integers(0, 3))
    inserted = data.draw(
        st.sampled_from(["", "\n", " ", "#", "# c\n", "\n# c\n", "  # c", '"', "x", "- {}\n", "- a\n"])
    )
    changed = formatted[:at] + inserted + formatted[at + cut :]

    if is_canonical(changed):
        assert canonical(yaml_file(changed), STYLE) == changed


@pytest.mark.parametrize(
    "text",
    [
        "- key: b\n\n- key: a\n",
        "- key: a\n- key: b\n",
        "- key: a\n\n\n- key: b\n",
        "# one\n\n# two\n\n- key: a\n",
        "# one \n\n- key: a\n",
        "- key: a\n\n# end",
        "- {}\n",
        "[]\n",
        "- key: a\n  key: b\n",
        "- title: a\n  key: b\n",
    ],
)
def test_what_is_not_known_to_be_canonical_is_not_said_to_be(text: str) -> None:
    assert not is_canonical(text, STYLE._replace(key="key"))


@given(TEXTS, st.booleans())
def test_a_scalar_reads_back_as_itself_here_and_in_yaml_1_1(text: str, in_flow: bool) -> None:
    import yaml

    shown = scalar_text(text, in_brackets=in_flow)
    document = f"a: [{shown}]" if in_flow else f"a: {shown}"

    assert node_content(yaml_file(document).root()) == {"a": [text] if in_flow else text}  # type: ignore[arg-type]
    assert yaml.safe_load(document) == {"a": [text] if in_flow else text}


def test_the_canonical_form_whole() -> None:
    text = """\
# Head of the file

# before the record
- title: 'A: b'   # a colon
  # before the field
  key:   x
  year: 2020
  care: {water: "weekly",
         prune: daily}
  evidence:
  - {note: no, tags: [care]}
  authors:
    - Dang, Yufan
    - others
  unknown: yes
- key: z
# the end
"""
    assert canonical(yaml_file(text), STYLE) == (
        """\
# Head of the file

# before the record
# before the field
- key: x
  title: "A: b"  # a colon
  year: 2020
  authors: ["Dang, Yufan", others]
  care: {water: weekly, prune: daily}
  evidence:
    - note: "no"
      tags: [care]
  unknown: "yes"

- key: z

# the end
"""
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- key: x\n  authors:\n    # inside a list\n    - a\n", 3),
        ("- key: x\n  care: {water: daily,  # one\n         prune: weekly}  # two\n", 2),
        ("# over a bare dash\n-   # here\n  key: x\n", 2),
    ],
)
def test_a_comment_without_a_place_is_refused(text: str, line: int) -> None:
    with pytest.raises(MisplacedCommentError) as raised:
        canonical(yaml_file(text), STYLE)

    assert raised.value.at < 0 or text.count("\n", 0, raised.value.at) + 1 == line


@pytest.mark.parametrize("name", [PAPERS, EXCLUSIONS])
def test_the_real_data_is_in_canonical_form(name: str, real: object) -> None:
    taxonomy = real.taxonomy  # type: ignore[attr-defined]
    style = styles.paper_style(taxonomy) if name == PAPERS else styles.exclusion_style(taxonomy)
    file = CorpusFiles(str(ROOT)).file(name)

    assert canonical(file, style) == file.text
    assert is_canonical(file.text, style)


def test_an_empty_list_stays_as_it_is() -> None:
    for text in ("[]\n", "# head\n\n[]\n", "# head\n[] # none\n"):
        assert canonical(yaml_file(text), STYLE) == text


def test_a_record_as_text() -> None:
    node = yaml_file('{title: "x: y", key: a, year: "2020", authors: []}').root()
    assert isinstance(node, Mapping)

    assert record_text(node, STYLE) == '- key: a\n  title: "x: y"\n  year: 2020\n  authors: []\n'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- key: a\n  authors:\n    - x\n    # the end of the list\n  year: 2020\n", 4),
        ("- key: a\n  evidence:\n    - note: n\n      # the end of the item\n  year: 2020\n", 4),
        ("- key: a\n  title: b\n  # the end of the record\n- key: b\n", 3),
        ("- key: a\n  title: b\n\n  # the end of the last record\n", 4),
    ],
)
def test_a_comment_at_an_end_is_not_moved_to_what_comes_next(text: str, line: int) -> None:
    with pytest.raises(MisplacedCommentError) as raised:
        canonical(yaml_file(text), STYLE)

    assert text.count("\n", 0, raised.value.at) + 1 == line


def test_a_comment_set_in_less_than_what_follows_belongs_to_it() -> None:
    text = "- key: a\n# about the year\n  year: 2020\n# about b\n- key: b\n# the end\n"

    assert canonical(yaml_file(text), STYLE) == (
        "- key: a\n  # about the year\n  year: 2020\n\n# about b\n- key: b\n\n# the end\n"
    )
