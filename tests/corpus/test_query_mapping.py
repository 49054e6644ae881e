"""Filters as the taxonomy's rules and the claims write them: a YAML mapping."""

from collections.abc import Sequence

import pytest

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.query import parse, parse_mapping
from orchtrace_corpus.corpus.api import Corpus


@pytest.mark.parametrize(
    ("mapping", "filters"),
    [
        ({"style": "formal"}, ["style=formal"]),
        ({"style": ["formal", "meadow"]}, ["style=formal,meadow"]),
        ({"style!=": ["formal", "NA"]}, ["style!=formal,NA"]),
        ({"added<=": "2023-02-03", "year>": "2000"}, ["added<=2023-02-03", "year>2000"]),
        ({"title ~ ": "garden"}, ["title~garden"]),
        ({"style": "S2"}, ["style=S2"]),
        ({"C1": "weekly"}, ["water=weekly"]),
        ({"tools": ""}, ["tools="]),
        ({"tools=": ["", "NA"]}, ["tools=,NA"]),
        ({"authors": "Müller, Änne"}, ["authors=Müller\\, Änne"]),
        ({"care": ["daily", "weekly"]}, ["care=daily,weekly"]),
        ({}, []),
    ],
)
def test_a_mapping_means_the_same_as_filters(
    mapping: dict[str, str | Sequence[str]], filters: list[str], toy: Corpus
) -> None:
    attributes = paper_attributes(toy.taxonomy)

    one, other = parse_mapping(mapping, attributes), parse(filters, attributes)

    assert [str(condition) for condition in one.filters] == [str(condition) for condition in other.filters]
    assert one.select(toy.papers) == other.select(toy.papers)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"stile": "formal"}, "unknown field 'stile' \\(did you mean 'title'"),
        ({"style": ["formal", "frmal"]}, "style has no value 'frmal' \\(did you mean 'formal'"),
        ({"style==": "formal"}, "'style==' is not a filter"),
        ({"": "formal"}, "'' is not a filter"),
        ({"style<": "formal"}, "style has no order"),
        ({"year<": ["1999", "2000"]}, "'<' takes one value, not 2"),
        ({"title~": ""}, "'title~' looks for no text"),
        ({"care": ["daily", "water"]}, "care has no value 'daily'"),
    ],
)
def test_what_is_wrong_is_said(mapping: dict[str, str | Sequence[str]], message: str, toy: Corpus) -> None:
    with pytest.raises(CommandUseError, match=message):
        parse_mapping(mapping, paper_attributes(toy.taxonomy))


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        (["care=daily"], ["rose-garden"]),
        (["care=weekly"], ["rose-garden", "mixed-borders", "terminal-yard"]),
        (["care!=weekly"], ["long-grass"]),
        (["care=prune"], ["rose-garden", "terminal-yard"]),
    ],
)
def test_levels_of_a_field_of_levels(filters: list[str], keys: list[str], toy: Corpus) -> None:
    assert [paper.key for paper in toy.where(*filters).papers] == keys
