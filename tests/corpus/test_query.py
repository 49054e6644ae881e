"""The filter language, on the toy corpus."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.query import parse
from orchtrace_corpus.corpus.api import Corpus

ROSE, GRASS, BORDERS, YARD = "rose-garden", "long-grass", "mixed-borders", "terminal-yard"


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        ([], [ROSE, GRASS, BORDERS, YARD]),
        (["style=formal"], [ROSE]),
        (["style=formal,meadow"], [ROSE, GRASS]),
        (["style=S2"], [GRASS, BORDERS]),
        (["style=s2"], [GRASS, BORDERS]),
        (["STYLE=Formal"], [ROSE]),
        (["level=visit"], [ROSE]),
        (["confidence="], [GRASS, BORDERS, YARD]),
        (["style!=S2"], [ROSE, YARD]),
        (["style=NA"], [YARD]),
        (["style!=NA"], [ROSE, GRASS, BORDERS]),
        (["tools=rake,spade"], [ROSE, BORDERS]),
        (["tools!=spade"], [GRASS, BORDERS, YARD]),
        (["tools="], [GRASS]),
        (["tools!="], [ROSE, BORDERS, YARD]),
        (["tools=,rake"], [GRASS, BORDERS]),
        (["water=daily"], [ROSE]),
        (["C1=weekly"], [BORDERS]),
        (["c1="], [GRASS, YARD]),
        (["care=water"], [ROSE, BORDERS]),
        (["care="], [GRASS]),
        (["prune!=daily"], [ROSE, GRASS, BORDERS, YARD]),
        (["year<2021"], [YARD]),
        (["year<=2021"], [ROSE, YARD]),
        (["year>2021"], [GRASS, BORDERS]),
        (["year >= 2023"], [GRASS, BORDERS]),
        (["year=2021"], [ROSE]),
        (["added<2023-01-01"], [ROSE, YARD]),
        (["added>=2023-02-03"], [GRASS, BORDERS]),
        (["added=2023-02-03"], [GRASS]),
        (["title~GARDEN"], [ROSE]),
        (["title~garden,yard"], [ROSE, YARD]),
        (["authors~müller"], [ROSE]),
        (["authors=Müller\\, Änne"], [ROSE]),
        (['authors="Müller, Änne"'], [ROSE]),
        (['authors="Müller, Änne",Anonymous'], [ROSE, YARD]),
        (['title~"four beds"'], [ROSE]),
        (["first-author=Anonymous"], [YARD]),
        (["arxiv_id="], [BORDERS, YARD]),
        (["doi!="], [ROSE]),
        (["venue=arXiv"], [GRASS]),
        (["urls~/code"], [ROSE]),
        (["summary~𝒜"], [BORDERS]),
        (["size=small", "year>2000", "tools!=spade"], [BORDERS]),
    ],
)
def test_filters_select(toy: Corpus, filters: list[str], keys: list[str]) -> None:
    assert [paper.key for paper in toy.where(*filters).papers] == keys


FORMS = "field=value, field!=value, field<number, field<=, field>, field>=, field~text"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("style", f"'style' is not a filter\nWrite one of: {FORMS}."),
        ("=formal", f"'=formal' is not a filter\nWrite one of: {FORMS}."),
        ("style==formal", "'style==formal' is not a filter\nWrite 'style=formal', with one '='."),
        ("year=>2021", "'year=>2021' is not a filter\nWrite 'year>=2021'."),
        ("year=>=2021", "'year=>=2021' is not a filter\nWrite 'year>=2021'."),
        ("year<>2021", "'year<>2021' is not a filter\nWrite 'year!=2021'."),
        (
            "style=frmal",
            "style has no value 'frmal' (did you mean 'formal'? allowed: formal, cottage, meadow, gravel, NA)",
        ),
        ("size=NA", "size has no value 'NA' (allowed: small, large)\nFor records without a value write 'size='."),
        ("water=hourly", "water has no value 'hourly' (allowed: daily, weekly)"),
        ("year=soon", "year is a number; 'soon' is not"),
        ("year<1,2", "'<' takes one value, not 2"),
        ("added>2023", "added is a date as YYYY-MM-DD; '2023' is not"),
        ("title~", "'title~' looks for no text\nFor records without a value write 'title='."),
        (
            "style<formal",
            "style has no order, so '<' does not apply\n"
            "Numbers and dates can be compared: year, venue_year, added. Use =, != or ~ here.",
        ),
    ],
)
def test_a_wrong_filter_is_explained(toy: Corpus, text: str, message: str) -> None:
    with pytest.raises(CommandUseError) as raised:
        toy.where(text)

    assert str(raised.value) == message


def test_an_unknown_field_names_the_nearest_and_all(toy: Corpus) -> None:
    with pytest.raises(
        CommandUseError, match=r"unknown field 'stylee' \(did you mean 'style'\? allowed: key, title, .*\)"
    ):
        toy.where("stylee=formal")


WORDS = st.text(st.characters(exclude_categories=("Cc", "Cs", "Z"), exclude_characters="\\"), min_size=1)


@given(st.sampled_from(["title", "venue", "summary"]), st.sampled_from(["=", "!=", "~"]), st.lists(WORDS, min_size=1))
def test_a_filter_printed_reads_back_as_itself(toy: Corpus, field: str, operator: str, words: list[str]) -> None:
    words = [word.lstrip("=") or "x" for word in words]
    text = field + operator + ",".join(word.replace(",", "\\,").replace('"', '\\"') for word in words)

    attributes = paper_attributes(toy.taxonomy)
    query = parse([text], attributes)

    assert query.filters[0].alternatives == tuple(words)
    (again,) = parse([str(query.filters[0])], attributes).filters
    assert again[:3] == query.filters[0][:3]


@given(st.sampled_from(["style", "water", "size", "tools"]), st.data())
def test_equal_and_unequal_divide_the_corpus(toy: Corpus, field: str, data: st.DataObject) -> None:
    terms = paper_attributes(toy.taxonomy)[field].allowed
    values = ",".join(data.draw(st.lists(st.sampled_from([*terms, ""]), min_size=1)))

    having, lacking = toy.where(f"{field}={values}").papers, toy.where(f"{field}!={values}").papers

    assert sorted((*having, *lacking)) == sorted(toy.papers)


def test_what_a_researcher_asks_first_can_be_filtered(real: Corpus) -> None:
    attributes = paper_attributes(real.taxonomy)

    def keys(*texts: str) -> list[str]:
        return [paper.key for paper in parse(texts, attributes).select(real.papers)]

    assert len(keys("code!=")) == 42
    assert keys("benchmarks=GAIA", "trains=orchestrator_only") == ["owl2025"]
    assert keys("benchmarks=GAIA") == ["m-grpo", "matpo", "owl2025", "sharp"]
    assert keys("algorithm=GRPO", "benchmarks=GAIA") == ["sharp"]
    assert keys("algorithm=GRPO", "code!=", "base_models~14B") == ["magic2026"]
    assert len(keys("algorithm!=")) == 49
