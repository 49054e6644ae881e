"""Tags as people type them: by id, label or code, in capitals or not; anything else names the nearest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.corpus.api import Corpus, load
from orchtrace_corpus.corpus.cli.facets import format_tag
from orchtrace_corpus.corpus.model.tagging import join_tags, read_tag
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind
from tests.conftest import TOY

FACETS = {facet.field: facet for facet in load(str(TOY)).taxonomy.papers}


@pytest.mark.parametrize(
    ("field", "text", "tag"),
    [
        ("style", "formal", "formal"),
        ("style", " FORMAL ", "formal"),
        ("style", "S1", "formal"),
        ("style", "na", "NA"),
        ("size", "Large", "large"),
        ("tools", "spade", ("spade",)),
        ("tools", "rake, Spade,rake", ("rake", "spade")),
        ("tools", "NA", ("NA",)),
        ("care", "prune=weekly, water=DAILY", {"water": "daily", "prune": "weekly"}),
        ("care", "C1=daily", {"water": "daily"}),
        ("care", "none", {}),
        ("care", "{}", {}),
        ("care", "", {}),
    ],
)
def test_what_is_typed_is_the_tag_that_is_meant(field: str, text: str, tag: object) -> None:
    assert read_tag(FACETS[field], text) == tag


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        (
            "style",
            "frmal",
            "unknown style 'frmal' (did you mean 'formal'? allowed: formal, cottage, meadow, gravel, NA)",
        ),
        ("style", "S2", "'S2' is the code of 2 terms of style: cottage, meadow"),
        ("style", "", "unknown style ''"),
        ("size", "NA", "unknown size 'NA' (allowed: small, large)"),
        ("size", "small\x1b[31m", r"unknown size 'small\x1b[31m'"),
        ("tools", "spade,NA", "NA in tools must stand alone"),
        ("tools", " , ", "tools is given no term (allowed: spade, rake, shears, NA)"),
        ("care", "water", "'water' is not part of care\nWrite TERM=LEVEL, such as water=daily, or none."),
        ("care", "water=dayly", "unknown level of care 'dayly' (did you mean 'daily'? allowed: daily, weekly, none)"),
        ("care", "watr=daily", "unknown term of care 'watr' (did you mean 'water'? allowed: water, prune)"),
        ("care", "water=daily,C1=weekly", "water of care is given twice"),
    ],
)
def test_what_is_not_in_the_taxonomy_is_refused_with_what_is(field: str, text: str, message: str) -> None:
    with pytest.raises(CommandUseError) as caught:
        read_tag(FACETS[field], text)

    assert str(caught.value).startswith(message)


def test_levels_given_one_by_one_come_together_and_must_not_contradict() -> None:
    care = FACETS["care"]

    assert join_tags(care, {"prune": "weekly"}, {"water": "daily"}) == {"water": "daily", "prune": "weekly"}
    assert join_tags(care, {"water": "daily"}, {"water": "daily"}) == {"water": "daily"}
    assert join_tags(care, None, {"water": "daily"}) == {"water": "daily"}
    with pytest.raises(CommandUseError, match="water of care is given twice: daily and weekly"):
        join_tags(care, {"water": "daily"}, {"water": "weekly"})


def test_a_tag_given_twice_is_one_only_where_there_can_be_several() -> None:
    style, tools = FACETS["style"], FACETS["tools"]

    assert join_tags(style, "formal", "formal") == "formal"
    assert join_tags(tools, ("spade",), ("rake", "spade")) == ("spade", "rake")
    with pytest.raises(CommandUseError, match="style is given twice: formal and cottage"):
        join_tags(style, "formal", "cottage")
    with pytest.raises(CommandUseError, match="tools is given twice: spade and NA"):
        join_tags(tools, ("spade",), ("NA",))


@given(st.data())
def test_a_tag_format_tag_is_read_back(data: st.DataObject) -> None:
    facet: Facet = data.draw(st.sampled_from(list(FACETS.values())))
    terms = [term.id for term in facet.terms]
    if facet.kind is Kind.SINGLE:
        tag: object = data.draw(st.sampled_from(terms))
    elif facet.kind is Kind.MANY:
        tag = tuple(data.draw(st.lists(st.sampled_from(terms), min_size=1, unique=True)))
    else:
        levels = st.sampled_from([level.id for level in facet.levels])
        chosen = data.draw(st.dictionaries(st.sampled_from(terms), levels))
        tag = {term: chosen[term] for term in terms if term in chosen}

    assert read_tag(facet, format_tag(tag)) == tag  # type: ignore[arg-type]


def test_every_term_of_the_real_taxonomy_can_be_typed(real: Corpus) -> None:
    for facet in (*real.taxonomy.papers, *real.taxonomy.exclusions, *real.taxonomy.evidence):
        for term in facet.terms if facet.kind is not Kind.LEVELS else ():
            assert read_tag(facet, term.id) in (term.id, (term.id,))
