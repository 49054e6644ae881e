"""The issue form and its answers: what the form asks is understood, and nothing else gets in."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.corpus.api import Corpus, load
from orchtrace_corpus.corpus.formats.issue_form import MAX_ANSWER_CHARACTERS, NO_ANSWER, questions, read
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Role, Taxonomy, Term
from orchtrace_corpus.corpus.render.schema import form
from tests.conftest import ROOT, TOY

TAXONOMY = load(str(TOY)).taxonomy

BODY = """\
### arXiv id, DOI or address

2401.00001

### Title

_No response_

### Style

Formal (formal)

### Care: Watering

Weekly (weekly)

### Care: Pruning

Does not arise

### Tools

Spade (spade), Shears (shears)

### Size

Large (large)

### Summary

Plants **roses** in
[rows](https://example.org).

### Evidence

They stand in rows.

### Source of the evidence

https://example.org/rows

### Evidence level

A photo

### Confidence

High (high)

### Notes

_No response_
"""


def body(**answers: str) -> str:
    return "".join(f"### {label.replace('_', ' ')}\n\n{answer}\n\n" for label, answer in answers.items())


def test_a_filled_form_is_understood() -> None:
    answers = read(BODY, TAXONOMY)

    assert answers.texts == {
        "identifier": "2401.00001",
        "summary": "Plants roses in rows (https://example.org).",
        "note": "They stand in rows.",
        "source": "https://example.org/rows",
    }
    assert answers.tags == {
        "style": "formal",
        "care": {"water": "weekly"},
        "tools": ("spade", "shears"),
        "size": "large",
    }
    assert answers.evidence == {"confidence": "high"}
    assert answers.remarks == (
        "the answer to 'Summary' had markup, and is now 'Plants roses in rows (https://example.org).'",
        "the answer to 'Evidence level' is left out: unknown level 'A photo' (did you mean 'photo'? "
        "allowed: visit, photo)",
    )


def test_line_ends_of_windows_change_nothing() -> None:
    assert read(BODY.replace("\n", "\r\n"), TAXONOMY) == read(BODY, TAXONOMY)


@pytest.mark.parametrize("answer", ["Formal (formal)", "formal", "FORMAL", "Formal", "S1"])
def test_a_term_may_be_answered_by_option_id_label_or_code(answer: str) -> None:
    assert read(body(Style=answer), TAXONOMY).tags == {"style": "formal"}


def test_a_heading_may_be_the_name_of_the_field() -> None:
    assert read("### style\nformal\n### SIZE\nsmall\n", TAXONOMY).tags == {"style": "formal", "size": "small"}


def test_what_is_not_answered_is_not_tagged_and_what_does_not_arise_is() -> None:
    nothing = "".join(f"### {question.label}\n\n{NO_ANSWER}\n\n" for question in questions(TAXONOMY))

    assert read(nothing, TAXONOMY) == ({}, {}, {}, (), {})
    assert read("### Care: Watering\n\nDoes not arise\n", TAXONOMY).tags == {"care": {}}
    assert read("", TAXONOMY) == ({}, {}, {}, (), {})
    assert read("No headings at all.", TAXONOMY) == ({}, {}, {}, (), {})


def test_headings_that_are_repeated_or_unknown_are_passed_over_with_a_remark() -> None:
    answers = read("### Size\nsmall\n### Size\nlarge\n### Key\nevil\n### \x1b[31mred\nx\n", TAXONOMY)

    assert answers.tags == {"size": "small"}
    assert answers.texts == {}
    assert answers.remarks == (
        "'Size' is answered twice; only the first counts",
        "'Key' is not a question of the form",
        "'\\x1b[31mred' is not a question of the form",
    )


HOSTILE = [
    ("<script>alert(1)</script>Text.", "alert(1) Text."),
    ("<scr<b></b>ipt>x</script>", "< scr ipt>x"),
    ("&lt;script&gt;x&lt;/script&gt;", "x"),
    ("&amp;lt;img src=x onerror=y&amp;gt; z", "z"),
    ("[a](javascript:alert(1)) b", "a b"),
    ("![a](https://evil.example/x.png)b", "ab"),
    ("[a](x)(y", "a(y"),
    ("x<y and y>z", "x< y and y>z"),
    ("if a<b and b>c, a <think> block", "if a< b and b>c, a < think> block"),
    ("x<b>y</b><br/><a href='https://example.org'>z</a>", "x y z"),
    (
        "[the code](https://example.org/a_(b) 'Title'), [](https://example.org/c)",
        "the code (https://example.org/a_(b)), https://example.org/c",
    ),
    ("[https://example.org](https://example.org)", "https://example.org"),
    ("<!-- corpus:begin x --> y <!-- never closed", "y"),
    ("`code` ```and``` **bold**", "code and bold"),
    ("one\n- key: two\n  title: three", "one - key: two title: three"),
    ("a\u202eb\u200bc\x00d\x1b[31m", "abcd[31m"),
    ("x <img y", "x < img y"),
    ("](", "] ("),
    ("![a]", "![a]"),
]


@pytest.mark.parametrize(("answer", "text"), HOSTILE)
def test_markup_of_any_kind_is_text(answer: str, text: str) -> None:
    shown = read(body(Summary=answer), TAXONOMY).texts.get("summary", "")

    assert shown == text


@given(st.text(alphabet=st.sampled_from("ab<>!-/[]()&;#lt`*\"' \n\\$"), max_size=200))
def test_no_text_keeps_what_a_browser_or_markdown_acts_on(answer: str) -> None:
    text = read(body(Summary=answer), TAXONOMY).texts.get("summary", "")

    assert text.isprintable()
    assert "](" not in text
    assert "`" not in text
    assert not any(f"<{letter}" in text for letter in "ab!/")


@given(st.text(max_size=3000))
def test_no_body_is_too_odd_to_read(text: str) -> None:
    answers = read(text, TAXONOMY)

    assert answers.tags.keys() <= {facet.field for facet in TAXONOMY.papers}
    assert all(remark.isprintable() for remark in answers.remarks)


@pytest.mark.parametrize("heading", ["arXiv id, DOI or address", "Source of the evidence"])
def test_where_an_address_is_asked_for_a_link_is_its_address(heading: str) -> None:
    answers = read(f"### {heading}\n\n[the paper](https://example.org/rows)\n", TAXONOMY)

    assert list(answers.texts.values()) == ["https://example.org/rows"]


def test_an_answer_of_a_book_s_length_is_left_out() -> None:
    answers = read(body(Summary="x" * (MAX_ANSWER_CHARACTERS + 1), Size="small"), TAXONOMY)

    assert answers.texts == {}
    assert answers.tags == {"size": "small"}
    assert answers.remarks == (
        f"the answer to 'Summary' is longer than {MAX_ANSWER_CHARACTERS} characters, and left out",
    )


def test_nested_links_take_no_time() -> None:
    assert read(body(Summary="[" * 900 + "a" + "](b)" * 250), TAXONOMY).texts["summary"].endswith("a")


def test_every_answer_that_the_form_offers_is_read_as_its_term() -> None:
    for question in questions(TAXONOMY):
        for option, term in question.options.items():
            answers = read(f"### {question.label}\n\n{option}\n", TAXONOMY)
            chosen = answers.evidence if question.is_evidence else answers.tags
            facet = question.facet
            assert facet is not None
            expected: object = (term,) if facet.kind is Kind.MANY else term
            if question.term is not None:
                expected = {question.term.id: term} if term else {}
            assert chosen == {facet.field: expected}, (question.label, option)
            assert answers.remarks == ()


def test_labels_with_commas_can_be_chosen_beside_others() -> None:
    terms = (Term("a", "One, two", "."), Term("b", "Two", "."), Term("c", "One", "."))
    facet = Facet("many", "Many", Kind.MANY, Role.FACET, ".", terms)
    taxonomy = TAXONOMY._replace(papers=(facet,))

    assert read("### Many\n\nOne, two (a), Two (b), One (c)\n", taxonomy).tags == {"many": ("a", "b", "c")}


def test_questions_of_one_label_are_told_apart() -> None:
    facets = tuple(facet._replace(label="Title") for facet in TAXONOMY.papers if facet.kind is Kind.SINGLE)
    labels = [question.label for question in questions(TAXONOMY._replace(papers=facets))]

    assert [label for label in labels if label.startswith("Title")] == [
        "Title (title)",
        "Title (style)",
        "Title (size)",
    ]
    assert len({label.casefold() for label in labels}) == len(labels)


def github_problems(taxonomy: Taxonomy) -> list[str]:
    """What GitHub refuses in a form, by the rules of its documentation."""
    document = yaml.safe_load(form(taxonomy))
    inputs = [item for item in document["body"] if item["type"] != "markdown"]
    problems = [name for name in ("name", "description", "body") if not document.get(name)]
    for name, values in (
        ("id", [item["id"] for item in inputs]),
        ("label", [item["attributes"]["label"].casefold() for item in inputs]),
    ):
        problems += [f"{name} {value} twice" for value in values if values.count(value) > 1]
    for item in inputs:
        options = item["attributes"].get("options", [])
        if item["type"] == "dropdown" and (not options or len(set(options)) < len(options)):
            problems.append(f"options of {item['id']}")
        problems += [
            f"option {option!r}" for option in options if not isinstance(option, str) or option.lower() == "none"
        ]
        problems += [f"id {item['id']}"] if not item["id"].replace("-", "").isalnum() else []
    return problems


def test_github_accepts_the_form(real: Corpus) -> None:
    assert github_problems(TAXONOMY) == []
    assert github_problems(real.taxonomy) == []


def test_the_form_asks_for_every_tag_with_its_definition(real: Corpus) -> None:
    asked = [item["attributes"] for item in yaml.safe_load(form(real.taxonomy))["body"]]

    for facet in (*real.taxonomy.papers, *real.taxonomy.evidence):
        shown = [about for about in asked if about.get("label", "").startswith(facet.label)]
        for term in facet.terms:
            assert any(term.definition in about["description"] for about in shown), (facet.field, term.id)
    assert [about["label"] for about in asked if "Stop" in about.get("label", "")] == [
        "Orchestration sub-decision: Stop"
    ]


def test_the_form_of_the_toy_corpus_begins_as_it_should() -> None:
    assert form(TAXONOMY).startswith(
        """\
# Generated from data/taxonomy.yaml by `corpus build`; do not edit.
name: Suggest a paper
description: Name a paper that belongs in the corpus, and tag it as far as you can.
title: "Paper: "
body:
  - type: markdown
    attributes:
      value: An id is enough. Tags that you are not sure of are best left open; a maintainer will read the paper.
  - type: input
    id: paper-identifier
    attributes:
      label: arXiv id, DOI or address
      description: Such as 2605.08686, a DOI, or the address of the paper's page.
    validations:
      required: true
"""
    )
    assert """\
  - type: dropdown
    id: paper-tools
    attributes:
      label: Tools
      description: "Tools in use. Spade: A spade. Rake: A rake. Shears: Shears."
      multiple: true
      options:
        - Spade (spade)
        - Rake (rake)
        - Shears (shears)
        - Not applicable (NA)
""" in form(TAXONOMY)


def test_the_form_in_this_repository_is_that_of_its_taxonomy(real: Corpus) -> None:
    path = Path(ROOT) / ".github" / "ISSUE_TEMPLATE" / "suggest-a-paper.yml"

    assert path.read_text(encoding="utf-8") == form(real.taxonomy), "stale; run: corpus build"
