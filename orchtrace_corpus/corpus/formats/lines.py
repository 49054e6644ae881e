"""Whole records as JSON Lines: one record on each line, in the shape of the data file."""

import json
from collections.abc import Mapping, Sequence

from orchtrace_corpus.base.json_syntax import JsonError, loads
from orchtrace_corpus.corpus.formats.item import FormatError, Item, Problem
from orchtrace_corpus.corpus.formats.jsontext import record
from orchtrace_corpus.corpus.model.record_fields import fields
from orchtrace_corpus.corpus.model.records import Paper
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy


def write(papers: Sequence[Paper], taxonomy: Taxonomy, profile: str, categories: Mapping[str, str]) -> str:
    """The papers, one on each line."""
    del profile, categories
    return "".join(json.dumps(fields(paper, taxonomy), ensure_ascii=False) + "\n" for paper in papers)


def read(text: str, taxonomy: Taxonomy, profile: str, path: str) -> list[Item]:
    """The records; blank lines are passed over.

    Raises:
        FormatError: A line is not a record; the message lists all that are not.
    """
    del taxonomy, profile
    items: list[Item] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                items.append(Item(record(loads(line, number), number, problems), number))
            except JsonError as error:
                problems.append(Problem(number, str(error)))
    if problems:
        raise FormatError(path, problems)
    return items
