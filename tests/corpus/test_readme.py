"""The generated list: every tag, no way out of its place, stable, and refused where its marks are wrong."""

import re

import cmarkgfm
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.model.records import Paper, Pool, Tag
from orchtrace_corpus.corpus.model.taxonomy import Term
from orchtrace_corpus.corpus.readme import LIST_LIMIT_BYTES, ListSection, item, link_url, list_sections, readme, slug
from tests.conftest import ROOT

DOCUMENT = """\
# Toy

By hand.

## Contents

<!-- corpus:begin contents -->
<!-- corpus:end contents -->

<!-- corpus:begin list -->
old text
<!-- corpus:end list -->

## After

More by hand.
"""
NOTE = "<!-- Generated from data/ by `corpus build`; do not edit between these marks. -->"


def test_a_document_whole(toy: Corpus) -> None:
    assert readme(DOCUMENT, "README.md", toy._pool).text == (
        f"""\
# Toy

By hand.

## Contents

<!-- corpus:begin contents -->
{NOTE}

- [Small](#small)
- [Large](#large)
- [After](#after)

<!-- corpus:end contents -->

<!-- corpus:begin list -->
{NOTE}

## Small

Up to an acre.

- [Röses: A Garden in Four Beds](https://example.org/roses) - Journal of Beds 2021. `S1 Formal` `C1 Watering: Daily` \
Lays out four beds of roses.
- [Borders without Lines](https://example.org/borders) - Beds 2023. `S2 Cottage` `C1 Watering: Weekly` \
Plants mixed borders, 𝒜 to 𝒵.
- [The Yard](https://example.org/yard) - Report 1999. `C2 Pruning: Weekly` Describes a yard.

## Large

More than that.

- [Long Grass and How to Keep It](https://example.org/grass) - arXiv 2023. `S2 Meadow` Keeps a meadow without any tool.

<!-- corpus:end list -->

## After

More by hand.
"""
    )


def test_the_code_of_a_paper_is_linked(toy: Corpus) -> None:
    rose = toy["rose-garden"]._replace(code="https://github.com/beds/roses")

    assert item(rose, ()) == (
        "- [Röses: A Garden in Four Beds](https://example.org/roses) - Journal of Beds 2021, "
        "[code](https://github.com/beds/roses). Lays out four beds of roses."
    )


LISTED = [
    (
        {"style": "formal", "care": {"water": "weekly", "prune": "weekly"}},
        "`S1 Formal` `C1 Watering, C2 Pruning: Weekly` ",
    ),
    ({"style": "formal", "care": {"water": "weekly", "prune": "daily"}}, "`S1 Formal` `C2 Pruning: Daily` "),
    ({"style": "NA", "care": {}, "tools": ("NA",)}, ""),
    ({"care": {}}, ""),
    ({"style": "NA", "care": {}, "tools": ("spade", "shears")}, "`Spade, Shears` "),
]


@pytest.mark.parametrize(("tags", "chips"), LISTED)
def test_what_does_not_apply_or_is_absent_has_no_chip(toy: Corpus, tags: dict[str, Tag], chips: str) -> None:
    yard = toy["terminal-yard"]._replace(tags=tags)

    assert (
        item(yard, toy.taxonomy.papers)
        == f"- [The Yard](https://example.org/yard) - Report 1999. {chips}Describes a yard."
    )


def test_a_label_is_shown_as_written_whatever_it_holds(toy: Corpus) -> None:
    labels = ["iOS <b>RAG</b> | *x*", "a `b` c", "`` ends", "RL"]
    style = toy.taxonomy.papers[0]
    yard = toy["terminal-yard"]._replace(tags={"style": "t"})

    told = [item(yard, [style._replace(terms=(Term("t", label, "D."),))]).split(". ", 1)[1] for label in labels]

    assert told == [
        "`iOS <b>RAG</b> | *x*` Describes a yard.",
        "`` a `b` c `` Describes a yard.",
        "``` `` ends ``` Describes a yard.",
        "`RL` Describes a yard.",
    ]
    assert re.findall("<code>(.*?)</code>", cmarkgfm.github_flavored_markdown_to_html(f"{told[1]} {told[2]}")) == [
        "a `b` c",
        "`` ends",
    ]


def paged(toy: Corpus) -> Pool:
    """The toy, its list with one chip, and with a page for the small gardens."""
    style, *others, size = toy.taxonomy.papers
    small, large = size.terms
    facets = (
        style,
        others[0],
        others[1]._replace(listed=True),
        size._replace(terms=(small._replace(own_page=True), large)),
    )
    return toy._pool._replace(taxonomy=toy.taxonomy._replace(papers=facets))


def test_the_taxonomy_says_what_the_list_shows_and_which_section_is_a_page(toy: Corpus) -> None:
    pool = paged(toy)

    made = readme("<!-- corpus:begin list -->\n<!-- corpus:end list -->\n", "README.md", pool)

    assert made.text == (
        f"""\
<!-- corpus:begin list -->
{NOTE}

## Small

Up to an acre.

[3 papers](docs/list/small.md)

## Large

More than that.

- [Long Grass and How to Keep It](https://example.org/grass) - arXiv 2023. Keeps a meadow without any tool.

<!-- corpus:end list -->
"""
    )
    assert made.pages == {
        "docs/list/small.md": """\
# Small

Up to an acre. Part of [the list](../../README.md).

- [Röses: A Garden in Four Beds](https://example.org/roses) - Journal of Beds 2021. `Spade, Shears` Lays out four beds of roses.
- [Borders without Lines](https://example.org/borders) - Beds 2023. `Rake` Plants mixed borders, 𝒜 to 𝒵.
- [The Yard](https://example.org/yard) - Report 1999. Describes a yard.
"""
    }


def test_making_it_twice_changes_nothing(toy: Corpus) -> None:
    once = readme(DOCUMENT, "README.md", toy._pool).text

    assert readme(once, "README.md", toy._pool).text == once


LIST = "<!-- corpus:begin list -->\n<!-- corpus:end list -->\n"


def own_pages(pool: Pool, room: int = LIST_LIMIT_BYTES) -> dict[str, bool | None]:
    return {section.heading: section.own_page for section in list_sections(pool, (), room)}


def with_sections(toy: Corpus, small: bool | None, large: bool | None, page_above: float = 64) -> Pool:
    *others, size = toy.taxonomy.papers
    terms = tuple(term._replace(own_page=own) for term, own in zip(size.terms, (small, large), strict=True))
    facets = (*others, size._replace(terms=terms))
    return toy._pool._replace(taxonomy=toy.taxonomy._replace(papers=facets, page_above=page_above))


def test_a_section_above_a_size_is_a_page_unless_the_taxonomy_says_otherwise(toy: Corpus) -> None:
    assert own_pages(toy._pool) == {"Small": False, "Large": False}
    assert own_pages(with_sections(toy, None, None, page_above=0.2)) == {"Small": True, "Large": False}
    assert own_pages(with_sections(toy, None, None, page_above=0)) == {"Small": True, "Large": True}
    assert own_pages(with_sections(toy, False, None, page_above=0)) == {"Small": False, "Large": True}
    assert own_pages(with_sections(toy, None, True)) == {"Small": False, "Large": True}


def test_the_largest_sections_move_until_the_list_fits(toy: Corpus) -> None:
    sizes = {section.heading: section.size for section in list_sections(toy._pool, (), LIST_LIMIT_BYTES)}
    assert sizes["Small"] > sizes["Large"]

    assert own_pages(toy._pool, sizes["Large"]) == {"Small": True, "Large": False}
    assert own_pages(with_sections(toy, False, None), sizes["Large"]) == {"Small": False, "Large": True}


def test_the_list_takes_the_room_that_other_regions_leave(toy: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{LIST}<!-- corpus:begin terms style -->\n<!-- corpus:end terms style -->\n"
    whole = len(readme(text, "README.md", toy._pool).text.encode())

    for limit, moved in ((whole, []), (whole - 150, ["docs/list/small.md"])):
        monkeypatch.setattr("orchtrace_corpus.corpus.readme.SIZE_LIMIT_BYTES", limit)
        monkeypatch.setattr("orchtrace_corpus.corpus.readme.RESERVED_BYTES", 0)
        assert list(readme(text, "README.md", toy._pool).pages) == moved


def test_a_section_that_is_too_large_for_one_page_has_several(toy: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchtrace_corpus.corpus.readme.PAGE_LIMIT_BYTES", 250)

    made = readme(LIST, "README.md", with_sections(toy, True, False))

    first, second = "docs/list/small.md", "docs/list/small--2.md"
    assert f"\n\n[3 papers]({first}), continued on pages [2]({second})\n\n" in made.text
    heads = [text.partition("\n- ")[0] for text in made.pages.values()]
    assert dict(zip(made.pages, heads, strict=True)) == {
        first: "# Small\n\nUp to an acre. Part of [the list](../../README.md). Pages: 1, [2](small--2.md).\n",
        second: "# Small, page 2\n\nUp to an acre. Part of [the list](../../README.md). Pages: [1](small.md), 2.\n",
    }
    assert [text.count("\n- [") for text in made.pages.values()] == [1, 2]


def test_a_list_without_sections_can_be_a_page(toy: Corpus) -> None:
    *others, size = toy.taxonomy.papers
    taxonomy = toy.taxonomy._replace(papers=(*others, size._replace(required=False)), page_above=0)

    made = readme(LIST, "README.md", toy._pool._replace(taxonomy=taxonomy))

    assert "## Papers\n\n[4 papers](docs/list/papers.md)\n" in made.text
    assert made.pages["docs/list/papers.md"].startswith("# Papers\n\nPart of [the list](../../README.md).\n\n- [")


def test_no_two_sections_share_a_page(toy: Corpus) -> None:
    *others, size = toy.taxonomy.papers
    small, large = size.terms
    facets = (*others, size._replace(terms=(small._replace(id="A.b"), large._replace(id="A b"))))
    papers = tuple(
        paper._replace(tags={**paper.tags, "size": {"small": "A.b", "large": "A b"}[str(paper.tags["size"])]})
        for paper in toy.papers
    )
    pool = toy._pool._replace(taxonomy=toy.taxonomy._replace(papers=facets, page_above=0), papers=papers)

    assert list(readme(LIST, "README.md", pool).pages) == ["docs/list/a-b.md", "docs/list/a-b--term-2.md"]


def test_an_empty_section_is_left_out(toy: Corpus) -> None:
    pool = toy._pool._replace(papers=toy.papers[:1])

    assert own_pages(pool) == {"Small": False}
    assert ListSection("A", "", (), "a.md", None).size == 0


def test_other_regions(toy: Corpus) -> None:
    def region(name: str) -> str:
        text = readme(f"<!-- corpus:begin {name} -->\n<!-- corpus:end {name} -->\n", "README.md", toy._pool).text
        return text.split(NOTE)[1].split("<!-- corpus:end")[0].strip()

    assert region("terms style") == (
        """\
| code | Style   | meaning         | papers | keys          |
| ---- | ------- | --------------- | -----: | ------------- |
| S1   | Formal  | Straight lines. |      1 | rose-garden   |
| S2   | Cottage | Mixed borders.  |      1 | mixed-borders |
| S2   | Meadow  | Long grass.     |      1 | long-grass    |
| S3   | Gravel  | Stones.         |      0 |               |"""
    )
    assert region("terms care") == (
        """\
| code | Care     | meaning        | Daily | Weekly |
| ---- | -------- | -------------- | ----: | -----: |
| C1   | Watering | When to water. |     1 |      1 |
| C2   | Pruning  | What to prune. |     0 |      2 |"""
    )
    assert region("papers size=large").splitlines()[2] == (
        "| [Long Grass and How to Keep It](https://example.org/grass) | 2023 | arXiv | Keeps a meadow without any tool. |"
    )
    assert region("page").startswith("```console\n$ corpus stats\n4 papers and 2 exclusions")
    assert region("counts").startswith(
        "4 papers and 2 exclusions: 6 audited records. The newest record is of 2023-06-07."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- corpus:begin list -->\n", r"README\.md:1: region 'list' never ends"),
        ("\n<!-- corpus:end list -->\n", r"README\.md:2: region 'list' ends, but none has begun"),
        ("<!-- corpus:begin list -->\n<!-- corpus:begin counts -->\n", r"README\.md:2: region 'list' is still open"),
        (
            "<!-- corpus:begin lst -->\n<!-- corpus:end lst -->\n",
            r"README\.md:1: region 'lst': there is no such region",
        ),
        (
            "\n<!-- corpus:begin terms key -->\n<!-- corpus:end terms key -->\n",
            r"README\.md:2: region 'terms key': unknown axis or facet 'key' \(allowed: style, care, tools, size\)",
        ),
        (
            "<!-- corpus:begin terms stylee -->\n<!-- corpus:end terms stylee -->\n",
            r"README\.md:1: region 'terms stylee': unknown axis or facet 'stylee' \(did you mean 'style'\?",
        ),
    ],
)
def test_wrong_marks_are_refused(toy: Corpus, text: str, message: str) -> None:
    with pytest.raises(DataFileError, match=message):
        readme(text, "README.md", toy._pool)


def test_an_item_without_a_summary_ends_with_what_is_known(toy: Corpus) -> None:
    rose = toy["rose-garden"]._replace(summary="", venue="Beds 2021", code="")
    bare = Paper(title="A Wall", urls=("https://example.org/wall",))

    assert item(rose, ()) == f"- [Röses: A Garden in Four Beds]({rose.urls[0]}) - Beds 2021."
    assert item(bare, ()) == "- [A Wall](https://example.org/wall)"


def test_all_wrong_regions_are_reported_at_once(toy: Corpus) -> None:
    regions = ("counts", "terms colour", "papers colour=red", "terms style", "lst")
    text = "".join(f"<!-- corpus:begin {name} -->\n<!-- corpus:end {name} -->\n" for name in regions)

    with pytest.raises(DataFileError) as refused:
        readme(text, "README.md", toy._pool)

    lines = str(refused.value).splitlines()
    assert [line.partition(" (allowed")[0] for line in lines] == [
        "README.md:3: region 'terms colour': unknown axis or facet 'colour'",
        "README.md:5: region 'papers colour=red': unknown field 'colour'",
        "README.md:9: region 'lst': there is no such region",
        "There are: contents, counts, page, list, terms FIELD, papers FILTER ..., claims, figures NAME ....",
        "Correct each name, or remove the region: its begin line, its end line, and what is between them.",
    ]


def test_a_wrong_filter_in_a_region_is_refused(toy: Corpus) -> None:
    text = "<!-- corpus:begin papers size=lrge -->\n<!-- corpus:end papers size=lrge -->\n"

    with pytest.raises(DataFileError, match=r"README\.md:1: region 'papers size=lrge': size has no value 'lrge'"):
        readme(text, "README.md", toy._pool)


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_text_cannot_leave_its_item(toy: Corpus, title: str, summary: str, venue: str, url: str) -> None:
    paper = Paper(
        title=title, summary=summary, venue=venue, authors=("A, B",), year=2020, urls=(f"https://e.org/{url}",)
    )

    text = item(paper, toy.taxonomy.papers)

    # Without the escaped characters, what is left of the markup is ours: one link.
    bare = re.sub(r"\\.", "", text, flags=re.DOTALL)
    assert bare.count("[") == bare.count("]") == 1
    assert bare.count("<") == bare.count(">") == 0
    assert "`" not in bare
    target = re.search(r"\]\((.*?)\) - ", bare, re.DOTALL)
    assert target is not None
    assert re.fullmatch(r"https://e\.org/[^\s()<>\[\]\"'`|\\]*", target[1])


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        (r"$k_n$-NN in $O(\sqrt{T})$ *now*", r"$k_n$-NN in $O(\sqrt{T})$ \*now\*"),
        ("From $5 to $6 a_b", r"From $5 to $6 a\_b"),
        ("$x[i]_1$ | $a<b$", r"$x\[i\]\_1$ \| $a\<b$"),
    ],
)
def test_mathematics_in_a_title_is_kept_as_written(toy: Corpus, title: str, shown: str) -> None:
    assert item(toy["rose-garden"]._replace(title=title), ()).startswith(f"- [{shown}](https://example.org/roses) - ")


def test_addresses_are_encoded_where_markdown_would_trip() -> None:
    assert link_url("https://e.org/a_(b)?q=1&r=é#x") == "https://e.org/a_%28b%29?q=1&r=%C3%A9#x"


def test_anchors_are_those_of_github() -> None:
    taken: dict[str, int] = {}

    assert slug("What You See", taken) == "what-you-see"
    assert slug("RL & MARL: a-b", taken) == "rl--marl-a-b"
    assert slug("What You See", taken) == "what-you-see-1"


def test_the_list_has_the_published_order_whatever_that_of_the_file(real: Corpus) -> None:
    text = "<!-- corpus:begin list -->\n<!-- corpus:end list -->\n"
    pool = real._pool
    assert pool.published is not None
    pool = pool._replace(papers=tuple(paper for paper in pool.papers if paper.published))

    made = readme(text, "x.md", pool).text

    assert made == readme(text, "x.md", pool._replace(papers=pool.papers[::-1])).text
    titles = {paper.key: f"[{paper.title}]" for paper in pool.papers}
    methods = [key for key in pool.published.papers if real[key].tags["category"] == "rl_method"][:9]
    places = [made.index(titles[key]) for key in methods]
    assert places == sorted(places)


def test_every_paper_is_in_the_list_once_and_no_address_twice(real: Corpus) -> None:
    documents = (ROOT / "README.md", *sorted((ROOT / "docs" / "list").glob("*.md")))
    text = "\n".join(path.read_text(encoding="utf-8") for path in documents)
    links = re.findall(r"^- \[.*?\]\((https?://[^)]+)\) - ", text, re.MULTILINE)

    assert len(links) == len(real) == len(set(links))
