"""What people and programs see, whole, on the toy corpus."""

import csv
import html
import io
import json
import re

import cmarkgfm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchtrace_corpus.base.text import table
from orchtrace_corpus.base.text.layout import ASCII, clip, display_width, fit, pad, plain, wrap
from orchtrace_corpus.base.text.table import Table, lines, markdown, markdown_text
from orchtrace_corpus.corpus.analysis.statistics import summarise
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.readme import item
from orchtrace_corpus.corpus.render import statistics as statistics_page
from orchtrace_corpus.corpus.render.figures.plan import Source, figures_of
from tests.conftest import run_toy
from tests.effort import tries


def test_the_page() -> None:
    assert run_toy("stats").stdout == (
        """\
4 papers and 2 exclusions: 6 audited records (newest added 2023-06-07)

tools  spade 1 · rake 1 · shears 1 · NA 1 · (absent) 1
size   small 3 · large 1
year   1999 1 · 2021 1 · 2023 2

Style
S1 formal    1 ███████████████████████
S2 cottage   1 ███████████████████████
S2 meadow    1 ███████████████████████
S3 gravel    ·
   NA        1

Care (papers by level)
          daily █  weekly ▓
C1 water        1         1  ████████████████████████▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
C2 prune        ·         2  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓

Sparse (up to 2) and empty
style         gravel 0 · formal 1 · cottage 1 · meadow 1
care          no daily method for prune
style x size  4 of 7 cells empty

Next: corpus gaps | corpus list | corpus terms | corpus --help
"""
    )


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 200])
def test_the_page_fits_the_terminal(real: Corpus, width: int) -> None:
    page = statistics_page.page(summarise(real._pool), real.taxonomy, width, ASCII)

    text = plain(page)
    assert text.isascii()
    assert max(len(line) for line in text.splitlines()) <= max(width, 40)


@pytest.mark.parametrize("width", [40, 80, 100])
def test_bars_keep_their_room_beside_long_terms(toy: Corpus, width: int) -> None:
    long = "formal_in_the_manner_of_the_gardens_of_great_houses"
    style, care, *others = toy.taxonomy.papers
    facets = (
        style._replace(terms=(style.terms[0]._replace(id=long), *style.terms[1:])),
        care._replace(terms=(care.terms[0]._replace(id=long.upper()), care.terms[1])),
        *others,
    )
    rose = toy["rose-garden"]
    rose = rose._replace(tags={**rose.tags, "style": long, "care": {long.upper(): "weekly", "prune": "weekly"}})
    pool = toy._pool._replace(papers=(rose, *toy.papers[1:]), taxonomy=toy.taxonomy._replace(papers=facets))

    drawn = plain(statistics_page.page(summarise(pool), pool.taxonomy, width)).splitlines()

    assert max(map(display_width, drawn[: drawn.index("Sparse (up to 2) and empty")])) <= width
    if width == 80:
        assert "S1 formal_in_the_m…   1 ██████████████" in drawn
        assert "C1 FORMAL_IN_THE_MA…        ·         1  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓" in drawn


def test_without_screening_on_record_nothing_is_said_of_it(toy: Corpus) -> None:
    pool = toy._pool._replace(exclusions=())
    source = Source(pool, summarise(pool))
    screened = source._replace(pool=toy._pool)

    assert plain(statistics_page.page(summarise(pool), pool.taxonomy, 80)).startswith(
        "4 papers (newest added 2023-06-07)\n"
    )
    assert {one.name for one in figures_of(screened)} - {one.name for one in figures_of(source)} == {"screening-flow"}


def test_counts_as_a_table() -> None:
    assert run_toy("stats", "--by", "style").stdout == (
        """\
Style
style    code  count  share_percent
formal   S1        1           25.0
cottage  S2        1           25.0
meadow   S2        1           25.0
gravel   S3        0            0.0
NA                 1           25.0

Style, by code
code  count  share_percent
S1        1           25.0
S2        2           50.0
S3        0            0.0
"""
    )


def test_a_crosstab_in_markdown() -> None:
    assert run_toy("stats", "--cross", "style", "size", "--format", "markdown").stdout == (
        """\
## Style by size

| style   | small | large | sum |
| ------- | ----: | ----: | --: |
| formal  |     1 |     0 |   1 |
| cottage |     1 |     0 |   1 |
| meadow  |     0 |     1 |   1 |
| gravel  |     0 |     0 |   0 |
| NA      |     1 |     0 |   1 |
"""
    )


def test_list() -> None:
    result = run_toy("list", "--sort", "-year", "--columns", "key,year,tools,care,authors")

    assert result.stdout == (
        """\
key            year  tools          care                       authors
long-grass     2023                                            Meadow Team
mixed-borders  2023  rake           water=weekly               李, 明
rose-garden    2021  spade; shears  water=daily; prune=weekly  Müller, Änne; O'Neill, Tom; others
terminal-yard  1999  NA             prune=weekly               Anonymous
"""
    )
    assert result.stderr == "4 papers\n"


def test_csv_holds_no_formula_of_a_spreadsheet() -> None:
    rows = [("=1+1", "+x", "-x"), ("@x", ("=a", "b"), "'=1"), ("a=b", "'quoted'", -3)]

    assert table.csv(("a", "b", "c"), rows) == ("a,b,c\n'=1+1,'+x,'-x\n'@x,'=a ; b,''=1\na=b,'quoted',-3\n")


def test_list_as_csv_reads_back() -> None:
    text = run_toy("list", "--columns", "key,title,tools,authors", "--format", "csv").stdout

    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows[0] == {
        "key": "rose-garden",
        "title": "Röses: A Garden in Four Beds",
        "tools": "spade ; shears",
        "authors": "Müller, Änne ; O'Neill, Tom ; others",
    }


def test_list_as_json() -> None:
    text = run_toy("list", "--where", "key=long-grass", "--columns", "key,year,tools,authors", "-f", "json").stdout

    assert json.loads(text) == {
        "schema": "orchtrace-corpus/list",
        "version": 1,
        "papers": [{"key": "long-grass", "year": 2023, "tools": None, "authors": ["Meadow Team"]}],
    }


def test_list_of_exclusions() -> None:
    assert run_toy("list", "--exclusions").stdout == (
        """\
id    title         reason
E001  A Window Box  Too small to count as a garden.
E003  A Car Park    Nothing grows there.
"""
    )


def test_show_a_paper() -> None:
    assert run_toy("show", "arXiv:2101.00001v3").stdout == (
        """\
rose-garden
Röses: A Garden in Four Beds
authors      Müller, Änne; O'Neill, Tom; others
affiliation  Garden School
year         2021
venue        Journal of Beds
arxiv_id     2101.00001
doi          10.5555/roses.1
urls         https://example.org/roses https://example.org/roses/code
summary      Lays out four beds of roses.
added        2021-05-01

style        S1 formal
care         C1 water daily, C2 prune weekly
tools        spade, shears
size         small

evidence     for care (visit, high confidence)
             The gardener waters every day.
             https://example.org/roses
"""
    )


def test_show_as_data() -> None:
    record = json.loads(run_toy("show", "terminal-yard", "--format", "json").stdout)["records"][0]

    assert record == {
        "kind": "paper",
        "key": "terminal-yard",
        "title": "The Yard",
        "authors": ["Anonymous"],
        "year": 1999,
        "venue": "Report",
        "urls": ["https://example.org/yard"],
        "style": "NA",
        "care": {"prune": "weekly"},
        "tools": ["NA"],
        "size": "small",
        "summary": "Describes a yard.",
        "evidence": [],
        "added": "2021-05-01",
    }
    assert run_toy("show", "E003", "--format", "csv").stdout == (
        """\
record,field,value
E003,id,E003
E003,title,A Car Park
E003,identifier,CAR-PARK
E003,url,https://example.org/cars
E003,stage,path
E003,screened,2023-01-02
E003,reason,Nothing grows there.
"""
    )
    assert "rose-garden,evidence.1.tags,care\n" in run_toy("show", "rose-garden", "-f", "csv").stdout


def test_show_in_markdown() -> None:
    assert run_toy("show", "E001", "--format", "markdown").stdout == (
        """\
## A Window Box

`E001`

- **identifier**: arXiv:2001.00009
- **url**: <https://arxiv.org/abs/2001.00009>
- **screened**: 2023-01-01
- **reason**: Too small to count as a garden.
- **stage**: gate
"""
    )


def test_terms() -> None:
    assert run_toy("terms").stdout == (
        """\
Fields of papers
  style  S1 formal, S2 cottage, S2 meadow, S3 gravel, NA
  care   C1 water, C2 prune; each daily, weekly
  tools  spade, rake, shears, NA
  size   small, large

Fields of exclusions
  stage  gate, path

Fields of evidence
  level       visit, photo
  confidence  high, low
  verdict     supported, partly, not_found, contradicted

Definitions: corpus terms FIELD. Filters: corpus list --where FIELD=TERM.
"""
    )
    assert run_toy("terms", "C2").stdout == (
        """\
Care
term   code  label    count  definition
prune  C2    Pruning      2  What to prune.

Care: levels
level   label   definition
daily   Daily   Every day.
weekly  Weekly  Every week.
"""
    )
    assert run_toy("terms", "tools", "--sort", "-term", "--columns", "term,count", "-f", "csv").stdout == (
        "term,count\nspade,1\nshears,1\nrake,1\nNA,1\n"
    )
    assert run_toy("terms", "level").stdout.splitlines()[2] == "visit  Visit      1  The garden itself."


def test_statistics_as_csv_hold_every_count() -> None:
    rows = list(csv.reader(io.StringIO(run_toy("stats", "--format", "csv").stdout)))

    assert rows[:3] == [
        ["statistic", "value", "second_value", "count"],
        ["papers", "", "", "4"],
        ["exclusions", "", "", "2"],
    ]
    assert ["care", "prune", "weekly", "2"] in rows
    assert ["style_by_size", "formal", "small", "1"] in rows
    assert ["exclusion_stage", "gate", "", "1"] in rows


def test_statistics_in_full_have_one_table_each() -> None:
    titles = [line for line in run_toy("stats", "--format", "markdown").stdout.splitlines() if line.startswith("#")]

    assert titles == [
        "# A toy garden",
        "## Style",
        "## Style, by code",
        "## Tools",
        "## Size",
        "## Care, by level",
        "## Year",
        "## Style by size",
        "## Exclusions: Stage",
    ]
    full = run_toy("stats", "--full").stdout
    assert [title for title in titles[1:] if title.removeprefix("## ") not in full] == []


def test_filtered_statistics_leave_exclusions_out() -> None:
    stats = json.loads(run_toy("stats", "--where", "size=small", "--format", "json").stdout)

    assert (stats["papers"], stats["exclusions"], stats["records"], stats["exclusion_counts"]) == (3, None, None, {})
    assert run_toy("stats", "--where", "size=small").stdout.startswith("3 papers (newest added 2023-06-07)\n")


def test_markup_in_data_stays_text() -> None:
    table = Table("x", "A *b*", ("c|d",), (("<b> [x](y) `z` & |\\",),))

    assert markdown(table).splitlines() == [
        "## A \\*b\\*",
        "",
        "| c\\|d                            |",
        "| ------------------------------- |",
        "| \\<b\\> \\[x\\](y) \\`z\\` &amp; \\|\\\\ |",
    ]


def test_columns_shrink_to_the_terminal_widest_first() -> None:
    table = Table("x", "", ("key", "title"), (("a-key", "A rather long title of a paper"), ("b", "李明" * 12)))

    assert plain(lines(table, 24)) == "key   title\na-key A rather long tit…\nb     李明李明李明李明…\n"
    assert max(display_width(line) for line in plain(lines(table, 24)).splitlines()) <= 24


def test_widths_count_terminal_cells() -> None:
    assert [display_width(text) for text in ("abc", "é", "e\u0301", "李", "𝒜", "a\u200db")] == [3, 1, 1, 2, 1, 2]
    assert clip("abcdef", 4) == "abc…"
    assert clip("李明李", 4) == "李…"
    assert pad("李", 4) + "|" == "李  |"
    assert fit([30, 10, 3], 25) == [12, 10, 3]
    assert fit([30, 30], 4) == [6, 6]
    assert wrap("one two three", 8, first="> ", rest="  ") == ["> one", "  two", "  three"]
    assert wrap("", 8, first="x ") == ["x "]


ACTIVE = (
    *(
        "https://evil.test",
        "HTTP://evil.test/a_b?c=d#1",
        "ftp://evil.test",
        "https://evil.test/a|b",
        "https://x\\y.test",
    ),
    *(
        "jane@evil.test",
        "mailto:jane@evil.test",
        "xmpp:jane@evil.test/x",
        "@moss",
        "`@moss",
        "(@moss/team)",
        "@a@b",
        "x @a:b:",
    ),
    *(
        "#12",
        "moss#12",
        "owner/repo#12",
        "gh-12",
        "0123456789abcdef0123456789abcdef01234567",
        "abc1234",
        "owner/repo@abc1234",
    ),
    *(":smile:", ":+1:", "::smile::", ":a::b:", "a:smile:b", "$@moss$", "$:smile:$", "$x$ @moss", "www.evil.test"),
)
ON_GITHUB = re.compile(
    r"https?://|ftp://|\w@\w+\.|(?<!\w)@\w|#\d|(?i:\bgh-\d)|(?<![\w:.-])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}(?![\w-])"
    r"|:[a-z_]+:|:\+1:",
    re.IGNORECASE,
)
"""What GitHub looks for in the text of what Markdown has become, but for code."""


def _assert_inert(text: str) -> None:
    for source in (markdown_text(text), markdown(Table("t", "", ("a", "b"), ((text, "x"), ("y", text))))):
        rendered = cmarkgfm.github_flavored_markdown_to_html(source)
        outside = html.unescape(re.sub("<[^>]*>", "", re.sub(r"<code>.*?</code>", " ", rendered, flags=re.DOTALL)))
        assert ("href" in rendered, ON_GITHUB.findall(outside)) == (False, []), (source, rendered)


@pytest.mark.parametrize("text", ACTIVE)
def test_what_github_would_act_on_is_inert_in_markdown_for_pasting(text: str) -> None:
    _assert_inert(text)
    _assert_inert(f"See {text}, or ({text}).")
    shown = cmarkgfm.github_flavored_markdown_to_html(markdown_text(text))
    assert html.unescape(re.sub("<[^>]*>", "", shown)).strip() == text


@settings(max_examples=tries(1000, 150))
@given(
    st.lists(
        st.sampled_from((*ACTIVE, " ", "`", "``", "\\", "|", "$", "[", "](", ")", "<", ".", "a", "1", ":")), max_size=6
    )
)
def test_no_mixture_of_it_acts(parts: list[str]) -> None:
    _assert_inert("".join(parts))


@pytest.mark.parametrize(
    "text",
    ["C++ at 12:30:45", "2604.17009", "1234567", "v1.0:0", "sha256:0123456789abcdef", "a@b", "effaced", "e.g. x/y"],
)
def test_what_only_looks_a_little_like_it_stays_text(text: str) -> None:
    assert markdown_text(text) == text


@pytest.mark.parametrize(
    "text",
    ["~~x~~ and ~y~", "see www.evil.test", "(WWW.evil.test/a~b)", "| a | www.e.test ~~z~~", "$~~x~~$ or $Www.e.test$"],
)
def test_no_text_strikes_out_or_becomes_a_link_in_any_markdown(text: str, toy: Corpus) -> None:
    paper = toy.papers[0]._replace(title=text, summary=text, venue=text, authors=(text,))
    shown = {
        markdown_text(text): [],
        markdown(Table("t", text, ("a", text), ((text, "x"),), notes=(text,))): [],
        item(paper, ()): ["https://example.org/roses"],
        markdown(Table("t", "", ("a", "b"), ((text, "x"),), links=("https://e.org/",))): ["https://e.org/"],
    }
    for source, links in shown.items():
        rendered = cmarkgfm.github_flavored_markdown_to_html(source)
        assert ("<del>" in rendered, re.findall(r'href="([^"]+)"', rendered)) == (False, links)
        assert text.split()[-1] in rendered
