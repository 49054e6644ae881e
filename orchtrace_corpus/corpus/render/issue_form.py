"""The issue form "suggest a paper", made from the taxonomy: what it asks, `corpus add --from-issue` understands."""

import re
from collections.abc import Iterator

from orchtrace_corpus.base.yamlfile.writer import scalar_text
from orchtrace_corpus.corpus.formats.issue_form import Question, questions
from orchtrace_corpus.corpus.model.taxonomy import Kind, Taxonomy

_HEAD = """\
# Generated from data/taxonomy.yaml by `corpus build`; do not edit.
name: Suggest a paper
description: Name a paper that belongs in the corpus, and tag it as far as you can.
title: "Paper: "
body:
  - type: markdown
    attributes:
      value: An id is enough. Tags that you are not sure of are best left open; a maintainer will read the paper.
"""


def form(taxonomy: Taxonomy) -> str:
    """The form, as GitHub reads it."""
    return _HEAD + "".join(f"{line}\n" for question in questions(taxonomy) for line in _lines(question))


def _lines(question: Question) -> Iterator[str]:
    options = question.options
    yield f"  - type: {'dropdown' if options else 'textarea' if question.is_long else 'input'}"
    section = "evidence" if question.is_evidence else "paper"
    yield f"    id: {section}-{re.sub('[^A-Za-z0-9]+', '-', question.name)}"
    yield "    attributes:"
    yield f"      label: {scalar_text(question.label)}"
    yield f"      description: {scalar_text(_description(question))}"
    if question.facet is not None and question.facet.kind is Kind.MANY:
        yield "      multiple: true"
    if options:
        yield "      options:"
        yield from (f"        - {scalar_text(option)}" for option in options)
    if question.name == "identifier":
        yield "    validations:"
        yield "      required: true"


def _description(question: Question) -> str:
    """What to answer, and what each answer means."""
    if question.facet is None or question.term is not None:
        levels = question.facet.levels if question.facet is not None else ()
    else:
        levels = question.facet.terms
    return " ".join((question.about, *(f"{level.label}: {level.definition}" for level in levels)))
