"""Counts and claims with the tags that readers of the sources agree on, in place of the published ones."""

import csv
import json
import re
from pathlib import Path

import pytest

from orchtrace_corpus.base.errors import CommandUseError, InvalidCorpusError
from orchtrace_corpus.corpus.analysis.stress import compare_readings
from orchtrace_corpus.corpus.api import claims, load
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.disputes import State, disputes_as_read, pool_as_read
from orchtrace_corpus.corpus.model.records import ReadingName
from tests.conftest import ROOT
from tests.corpus.files import run_in, write_data

DISPUTES = """\
- record: rose-garden
  tag: style
  stands: formal
  readings: {formal: the list, cottage: two visitors}
  agreed: {value: cottage, source: https://example.org/roses, rule: style 2}
  why: The list is kept.
  source: https://example.org/visits

- record: rose-garden
  tag: water
  stands: daily
  readings: {daily: the list, none: two visitors}
  agreed: {value: none, source: https://example.org/roses, rule: water 1}
  state: settled
  why: The list is kept.
  source: https://example.org/visits

- record: mixed-borders
  tag: size
  stands: small
  readings: {small: the list, large: a visitor}
  why: One visitor is not enough.
  source: https://example.org/visits
"""
END = "  boundary: Gardens of the toy corpus only.\n  source: https://example.org/claims\n"
CLAIMS = f"""\
- id: one-formal
  claim: One garden is formal.
  where: {{style: formal}}
  expect: {{count: 1}}
{END}
- id: small-gardens
  claim: At most three gardens are small.
  where: {{size: small}}
  expect: {{at_most: 3}}
{END}
- id: two-cottages
  claim: Two gardens are cottage gardens.
  where: {{style: cottage}}
  expect: {{count: 2}}
{END}"""


@pytest.fixture
def root(root: Path) -> Path:
    write_data(root, disputes=DISPUTES, claims=CLAIMS)
    return root


# Values


def test_the_corpus_as_readers_of_its_sources_read_it(root: Path) -> None:
    pool = store.CorpusFiles(str(root)).loaded.pool
    assert pool is not None
    disputes = store.CorpusFiles(str(root)).disputes.items

    read = pool_as_read(pool, disputes, ReadingName.SOURCES)

    assert read.papers[0].tags == {**pool.papers[0].tags, "style": "cottage", "care": {"prune": "weekly"}}
    assert read.papers[1:] == pool.papers[1:]
    assert pool_as_read(pool, disputes, ReadingName.PUBLISHED) == pool
    assert [one.stands for one in disputes_as_read(disputes, ReadingName.SOURCES)] == ["cottage", "none", "small"]
    assert [one.alternatives for one in disputes_as_read(disputes, ReadingName.SOURCES)] == [
        ("formal",),
        ("daily",),
        ("large",),
    ]
    assert disputes_as_read(disputes, ReadingName.PUBLISHED) == disputes


def test_the_interface_has_both_readings(root: Path) -> None:
    assert load(str(root), reading="sources").counts("style") == {
        "formal": 0,
        "cottage": 2,
        "meadow": 1,
        "gravel": 0,
        "NA": 1,
    }
    assert load(str(root), reading="sources")["rose-garden"].tags["style"] == "cottage"
    assert load(str(root)).counts("style") == {"formal": 1, "cottage": 1, "meadow": 1, "gravel": 0, "NA": 1}
    assert [one.holds for one in claims(str(root))] == [True, True, False]
    assert [one.holds for one in claims(str(root), reading="sources")] == [False, True, True]
    for asked in (load, claims):
        with pytest.raises(CommandUseError, match=r"there is no reading 'source' \(did you mean 'sources'"):
            asked(str(root), reading="source")


# The tags that change


def test_the_tags_that_are_read_otherwise_are_a_table(root: Path) -> None:
    csv_text = "paper,field,published,sources\nrose-garden,style,formal,cottage\nrose-garden,water,daily,none\n"

    assert run_in(root, "readings", "-f", "csv") == (0, csv_text, "2 tags of 1 paper read otherwise\n")
    assert json.loads(run_in(root, "readings", "--format", "json", "--where", "size=small").stdout)["readings"][1] == {
        "paper": "rose-garden",
        "field": "water",
        "published": "daily",
        "sources": "none",
    }
    nobody = run_in(root, "readings", "--where", "year=1900", "-f", "csv")
    assert (nobody.code, nobody.stdout) == (0, "paper,field,published,sources\n")
    assert nobody.stderr.startswith("0 tags of 0 papers read otherwise\ncorpus: no paper passes the filters")


def test_a_list_of_contested_tags_shows_them_and_what_was_published(root: Path) -> None:
    shown = run_in(root, "list", "--where", "contested=style", "--reading", "sources").stdout

    assert shown == (
        "key          year  style                        contested  title\n"
        "rose-garden  2021  cottage (published: formal)  style      Röses: A Garden in Four Beds\n"
        "?: sources or readers disagree; see corpus show KEY.\n"
    )
    exact = run_in(root, "list", "--where", "contested=style", "--reading", "sources", "-f", "csv").stdout
    assert [row["style"] for row in csv.DictReader(exact.splitlines())] == ["cottage"]


# Counts


def test_counts_stand_beside_the_published_ones(root: Path) -> None:
    assert run_in(root, "stats", "--by", "style", "--reading", "sources").stdout == (
        "Style: reading of the sources\n"
        "style    code  count  share_percent  published\n"
        "formal   S1        0            0.0          1\n"
        "cottage  S2        2           50.0          1\n"
        "meadow   S2        1           25.0          1\n"
        "gravel   S3        0            0.0          0\n"
        "NA                 1           25.0          1\n"
        "\n"
        "Style, by code\n"
        "code  count  share_percent  published\n"
        "S1        0            0.0          1\n"
        "S2        3           75.0          2\n"
        "S3        0            0.0          0\n"
    )
    assert "published" not in run_in(root, "stats", "--by", "style").stdout


def test_levels_pairs_and_filters_go_by_the_reading(root: Path) -> None:
    assert run_in(root, "stats", "--by", "care", "--reading", "sources").stdout.splitlines()[:4] == [
        "Care, by level: reading of the sources",
        "care   code  daily  weekly  absent",
        "water  C1        0       1       3",
        "prune  C2        0       2       2",
    ]
    assert run_in(root, "stats", "--cross", "style", "size", "--reading", "sources").stdout == (
        "Style by size: reading of the sources\n"
        "style    small  large  sum\n"
        "formal       0      0    0\n"
        "cottage      2      0    2\n"
        "meadow       0      1    1\n"
        "gravel       0      0    0\n"
        "NA           1      0    1\n"
    )
    words = ("stats", "--where", "style=cottage", "--by", "size", "-f", "json")
    told = [json.loads(run_in(root, *words, "--reading", name).stdout) for name in ("sources", "published")]
    assert told == [
        {
            "schema": "orchtrace-corpus/counts",
            "version": 1,
            "reading": "sources",
            "size": [
                {"size": "small", "count": 2, "share_percent": 100.0, "published": 1},
                {"size": "large", "count": 0, "share_percent": 0.0, "published": 0},
            ],
        },
        {
            "schema": "orchtrace-corpus/counts",
            "version": 1,
            "reading": "published",
            "size": [
                {"size": "small", "count": 1, "share_percent": 100.0},
                {"size": "large", "count": 0, "share_percent": 0.0},
            ],
        },
    ]


def test_the_page_shows_published_counts_in_brackets(root: Path) -> None:
    lines = run_in(root, "stats", "--reading", "sources").stdout.splitlines()

    assert lines[1] == "Reading of the sources; in brackets as published."
    start = lines.index("Style")
    assert [line.rstrip("█ ") for line in lines[start : start + 6]] == [
        "Style",
        "S1 formal    · (1)",
        "S2 cottage   2 (1)",
        "S2 meadow        1",
        "S3 gravel        ·",
        "   NA            1",
    ]
    told = json.loads(run_in(root, "stats", "--reading", "sources", "-f", "json").stdout)
    assert told["reading"] == "sources"
    assert (told["counts"]["style"], told["published_counts"]["style"]) == (
        {"formal": 0, "cottage": 2, "meadow": 1, "gravel": 0, "NA": 1},
        {"formal": 1, "cottage": 1, "meadow": 1, "gravel": 0, "NA": 1},
    )
    assert json.loads(run_in(root, "stats", "-f", "json").stdout)["reading"] == "published"


def test_the_page_keeps_a_value_that_only_the_published_tags_have(root: Path) -> None:
    grass = (
        "- record: long-grass\n  tag: size\n  stands: large\n  readings: {large: the list, small: two visitors}\n"
        "  agreed: {value: small, source: https://example.org/grass, rule: size 1}\n"
        "  why: The list is kept.\n  source: https://example.org/visits\n"
    )
    (root / "data" / "disputes.yaml").write_text(grass, encoding="utf-8")

    assert "size   small 4 (3) · large 0 (1)" in run_in(root, "stats", "--reading", "sources").stdout.splitlines()
    assert "size   small 3 · large 1" in run_in(root, "stats").stdout.splitlines()


def test_gaps_by_the_sources(root: Path) -> None:
    assert run_in(root, "gaps", "--reading", "sources").stdout == (
        """\
Style by size: reading of the sources, 4 papers

        small large  sum
formal      ·     ·    0
cottage     2     ·    2
meadow      x     1    1
gravel      ·     ·    0
sum         2     1    3
NA          1     ·    1
(x: cannot arise; sums without NA)

5 of 7 cells are empty, 2 sparse (1 to 2); 1 more cannot arise
No paper at all: style formal, gravel (4 of the empty cells)
Cannot arise: A meadow needs room, so its size is large.
"""
    )
    shown, filtered = (run_in(root, "gaps", *words, "-f", "json") for words in ((), ("--where", "style=cottage")))
    assert json.loads(shown.stdout)["reading"] == "published"
    assert json.loads(filtered.stdout)["papers"] == 1
    by_sources = json.loads(
        run_in(root, "gaps", "--where", "style=cottage", "--reading", "sources", "-f", "json").stdout
    )
    assert (by_sources["reading"], by_sources["papers"]) == ("sources", 2)


@pytest.mark.parametrize(
    ("words", "foot"),
    [
        (("stats",), "2 of 4 papers have a contested tag here; --reading sources changes 1 of them"),
        (("stats", "style"), "1 of 4 papers has a contested tag here; --reading sources changes 1 of them"),
        (("stats", "style", "size"), "2 of 4 papers have a contested tag here; --reading sources changes 1 of them"),
        (("stats", "year", "--where", "size=small"), "1 of 3 papers has a contested tag here"),
        (("stats", "water"), ""),  # it is settled
        (("stats", "stage"), ""),
        (("stats", "style", "--reading", "sources"), ""),
        (("stats", "style", "--format", "markdown"), ""),
        (("gaps",), "2 of 4 papers have a contested tag here; --reading sources changes 1 of them"),
        (("gaps", "water", "style"), "1 of 4 papers has a contested tag here; --reading sources changes 1 of them"),
        (("gaps", "--reading", "sources"), ""),
        (("claims",), "contested: papers of disputed tags, 2 in all; --reading sources changes 1"),
        (("claims", "--reading", "sources"), ""),
    ],
)
def test_the_foot_counts_papers_with_contested_tags(root: Path, words: tuple[str, ...], foot: str) -> None:
    lines = run_in(root, *words).stdout.splitlines()

    assert [one for one in lines if "contested tag" in one or "contested: " in one] == [foot][: bool(foot)]


def test_the_document_of_statistics_is_of_the_published_reading(root: Path) -> None:
    assert run_in(root, "build", "stats", "--check", "--reading", "sources").code == 2


def test_disputes_with_mistakes_are_no_reason_to_count_the_published_tags(root: Path) -> None:
    (root / "data" / "disputes.yaml").write_text(DISPUTES.replace("tag: style", "tag: stile"), encoding="utf-8")

    for command in ("stats", "claims"):
        code, stdout, stderr = run_in(root, command, "--reading", "sources")
        assert (code, stdout) == (1, "")
        assert stderr.startswith("corpus: the disputes have errors:\n")
    with pytest.raises(InvalidCorpusError, match="C202 unknown tag 'stile'"):
        load(str(root), reading="sources")
    assert load(str(root)).counts("style")["formal"] == 1


# Claims


def test_a_claim_that_falls_by_the_sources_names_the_tags_and_is_no_error(root: Path) -> None:
    (root / "data" / "claims.yaml").write_text(CLAIMS.split("- id: two-cottages")[0], encoding="utf-8")

    assert run_in(root, "claims", "--reading", "sources") == (
        0,
        "Reading of the sources: 1 of 2 claims falls by it\n"
        "claim          verdict  rows  contested  sentence\n"
        "one-formal     falls       0          1  One garden is formal.\n"
        "small-gardens  holds       3          1  At most three gardens are small.\n"
        "one-formal: expected 1; found 0; by rose-garden style cottage, not formal\n",
        "",
    )


def test_a_claim_that_falls_by_the_sources_is_said_to_fall_over_the_published_pool_too(root: Path) -> None:
    papers = "[rose-garden, long-grass, mixed-borders, terminal-yard]"
    listed = f'day: "2023-12-31"\nsource: https://example.org/survey\npapers: {papers}\nexclusions: [E001]\n'
    (root / "data" / "published.yaml").write_text(listed, encoding="utf-8")
    path = root / "data" / "claims.yaml"
    scoped = path.read_text(encoding="utf-8").replace("  where:", '  scope: {published: "yes"}\n  where:')
    path.write_text(scoped, encoding="utf-8")

    code, stdout, _ = run_in(root, "claims", "one-formal", "--reading", "sources")

    assert (code, stdout.splitlines()[0]) == (0, "one-formal  falls")
    assert "pools      published pool: falls; today: falls (found: 0)" in stdout.splitlines()
    assert "fails" not in stdout


def test_a_claim_that_fails_as_published_is_an_error_by_each_reading(root: Path) -> None:
    assert run_in(root, "claims", "two-cottages").code == 1
    code, stdout, _ = run_in(root, "claims", "two-cottages", "--reading", "sources")

    assert (code, stdout.splitlines()[0]) == (1, "two-cottages  holds")
    assert "reading   sources; published: fails" in stdout.splitlines()


def test_the_card_of_a_claim_names_the_rule_and_the_source(root: Path) -> None:
    code, stdout, _ = run_in(root, "claims", "one-formal", "--reading", "sources")

    assert code == 0
    assert stdout == (
        "one-formal  falls\n"
        "One garden is formal.\n"
        "expected   1\n"
        "found      0\n"
        "reading    sources; published: holds\n"
        "falls by   rose-garden style cottage, not formal (by rule 2 of the codebook for style;\n"
        "           https://example.org/roses)\n"
        "where      style=formal\n"
        "rows (0)   none\n"
        "contested  rose-garden: would count in another reading on record\n"
        "boundary   Gardens of the toy corpus only.\n"
        "source     https://example.org/claims\n"
    )
    markdown = run_in(root, "claims", "one-formal", "--reading", "sources", "-f", "markdown").stdout
    assert "- **reading**: sources; published: holds\n- **falls by**: rose-garden style cottage, not formal" in markdown


def test_a_strict_reading_counts_only_what_the_claim_counts_by_the_sources(root: Path) -> None:
    strict = "  readings:\n    - {name: strict, keys: [mixed-borders, rose-garden], why: They are old.}\n"
    text = CLAIMS.replace("  expect: {count: 2}\n", "  expect: {count: 2}\n" + strict)
    (root / "data" / "claims.yaml").write_text(text.replace("style: cottage}", "style: formal}"), encoding="utf-8")
    shown = [
        next(line for line in run_in(root, "claims", "two-cottages", *words).stdout.splitlines() if "strict" in line)
        for words in ((), ("--reading", "sources"))
    ]

    assert shown == [
        "strict (1)  rose-garden: They are old. Not counted here: mixed-borders.",
        "strict (0)  none: They are old. Not counted here: mixed-borders, rose-garden.",
    ]
    told = run_in(root, "claims", "two-cottages", "--reading", "sources", "-f", "json").stdout
    assert json.loads(told)["claims"][0]["readings"] == [
        {"name": "strict", "keys": [], "why": "They are old.", "not_counted": ["mixed-borders", "rose-garden"]}
    ]


def test_programs_are_told_both_verdicts(root: Path) -> None:
    told = json.loads(run_in(root, "claims", "--reading", "sources", "-f", "json").stdout)

    assert (told["reading"], told["hold"], told["fail"]) == ("sources", 2, 1)
    assert [one["published_reading"] for one in told["claims"]] == [
        {
            "holds": True,
            "falls_by": [
                {
                    "record": "rose-garden",
                    "tag": "style",
                    "published": "formal",
                    "value": "cottage",
                    "source": "https://example.org/roses",
                    "rule": "style 2",
                }
            ],
        },
        {"holds": True, "falls_by": []},
        {"holds": False, "falls_by": []},
    ]
    rows = list(csv.DictReader(run_in(root, "claims", "--reading", "sources", "-f", "csv").stdout.splitlines()))
    assert [(row["holds"], row["published_reading"], row["falls_by_readings"]) for row in rows] == [
        ("no", "yes", "rose-garden style cottage, not formal"),
        ("yes", "yes", ""),
        ("yes", "no", ""),
    ]
    published = json.loads(run_in(root, "claims", "-f", "json").stdout)
    assert published["reading"] == "published"
    assert not any("published_reading" in one for one in published["claims"])


def test_stress_reads_the_published_value_as_the_other_way(root: Path) -> None:
    told = json.loads(run_in(root, "claims", "two-cottages", "--stress", "--reading", "sources", "-f", "json").stdout)

    assert told["claims"][0]["stress"]["disputes"]["alone"] == [
        {"kind": "flip", "record": "rose-garden", "tag": "style", "value": "formal"}
    ]


# The data of this repository


def test_the_readme_says_how_many_claims_there_are_and_how_many_fall() -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    published, sources = claims(str(ROOT)), claims(str(ROOT), reading="sources")

    assert all(one.holds for one in published)
    assert f"All {len(published)} [claims](docs/claims.md) of the survey hold as published." in text
    fallen = sum(not one.holds for one in sources)
    assert f"With the tags that readers of the sources agree on, {fallen} do not." in text


def test_the_counts_by_the_sources() -> None:
    read = load(str(ROOT), reading="sources").where("published=yes")

    assert read.counts("reward_family") == {
        "shared": 18,
        "individual": 4,
        "role": 2,
        "process": 1,
        "tool": 0,
        "debate": 4,
        "verifier": 5,
        "orchestration": 6,
        "hybrid": 9,
        "NA": 35,
    }
    assert read.counts("credit_unit") == {
        "token": 0,
        "turn": 5,
        "message": 2,
        "tool": 0,
        "agent": 22,
        "role": 9,
        "orchestrator": 7,
        "team": 3,
        "NA": 36,
    }
    assert read.counts("topology") == {
        "centralized": 19,
        "planner_executor_critic": 6,
        "debate": 7,
        "swarm": 4,
        "hierarchical": 11,
        "harness": 3,
        "NA": 34,
    }


def test_which_claims_fall_by_the_sources_and_by_which_tags() -> None:
    pool = store.CorpusFiles(str(ROOT)).loaded.pool
    assert pool is not None
    disputes = store.CorpusFiles(str(ROOT)).disputes.items

    compared = compare_readings(store.CorpusFiles(str(ROOT)).claims.claims, pool, disputes)

    assert all(one.published for one in compared.values())
    falling = {name: [one.id for one in verdict.falls_by] for name, verdict in compared.items() if verdict.falls_by}
    assert {name: len(ids) for name, ids in falling.items()} == {
        "reward-families": 15,
        "credit-units": 4,
        "topologies": 5,
        "orchestrator-credit-rows": 1,
        "no-token-tool-team-credit": 3,
        "spot-check-agreement": 2,
    }
    assert falling["spot-check-agreement"] == ["artifactsbench2025.reward_family", "owl2025.reward_family"]
    assert falling["orchestrator-credit-rows"] == ["wideseek-r1-2026.credit_unit"]
    assert falling["no-token-tool-team-credit"] == [
        "matpo.credit_unit",
        "sirius2025.credit_unit",
        "wideseek-r1-2026.credit_unit",
    ]


def test_every_tag_that_a_reader_of_the_sources_finds_contradicted_is_in_open_dispute() -> None:
    pool = store.CorpusFiles(str(ROOT)).loaded.pool
    assert pool is not None
    recorded = {one.id: one for one in store.CorpusFiles(str(ROOT)).disputes.items}
    with open(ROOT / "data" / "audits" / "sources-1.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    contradicted = [f"{row['key']}.{tag}" for row in rows for tag in re.findall(r"(\w+): contradicts ", row["notes"])]

    assert len(contradicted) == 22
    assert {recorded[name].state for name in contradicted} == {State.OPEN}
    assert sum(recorded[name].agreed is not None for name in contradicted) == 20
    assert {f"kimi-k2-6.{tag}" for tag in ("reward_family", "credit_unit")} <= recorded.keys()


def test_every_tag_that_readers_agree_on_differently_is_in_open_dispute() -> None:
    pool = store.CorpusFiles(str(ROOT)).loaded.pool
    assert pool is not None
    agreed = [one for one in store.CorpusFiles(str(ROOT)).disputes.items if one.agreed is not None]

    assert len(agreed) == 24
    for one in agreed:
        assert one.state is State.OPEN
        assert any("first and second reader" in reading.by for reading in one.readings), one.id


# Records


CANDIDATES = """\
- key: late-garden
  title: A Late Garden
  authors: ["Moss, Ada"]
  year: 2024
  venue: arXiv
  urls: [https://example.org/late]
  style: cottage
  care: {}
  size: large
  proposal: include
  reason: It fits.
  found: "2024-02-03"
  found_by: [a visitor]
"""


def test_records_are_listed_found_and_exported_by_either_reading(root: Path) -> None:
    by_sources = ("--where", "style=cottage", "--reading", "sources")

    assert run_in(root, "list", *by_sources, "--columns", "key,style,water") == (
        0,
        "key            style    water\nrose-garden    cottage\nmixed-borders  cottage  weekly\n",
        "2 papers\n",
    )
    assert run_in(root, "search", "garden", "--all", *by_sources, "--columns", "key,style").stdout == (
        "key            style\nrose-garden    cottage\nmixed-borders  cottage\n"
    )
    exported = run_in(root, "export", "csv", *by_sources).stdout
    assert [row["style"] for row in csv.DictReader(exported.splitlines())] == ["cottage", "cottage"]


def test_a_tag_that_readers_agree_on_is_contested_by_the_published_reading_only(root: Path) -> None:
    words = ("list", "--where", "size=small", "--where", "style!=NA", "--columns", "key,style,size")

    assert run_in(root, *words).stdout == (
        "key            style    size\n"
        "rose-garden    formal?  small\n"
        "mixed-borders  cottage  small?\n"
        "?: sources or readers disagree; see corpus show KEY.\n"
    )
    assert run_in(root, *words, "--reading", "sources").stdout == (
        "key            style    size\nrose-garden    cottage  small\nmixed-borders  cottage  small?\n"
        "?: sources or readers disagree; see corpus show KEY.\n"
    )


def test_the_contested_tags_of_a_paper_are_a_field(root: Path) -> None:
    words = ("list", "--where", "contested=style,size", "--columns", "key,size,contested")

    assert run_in(root, *words).stdout == (
        "key            size    contested\nrose-garden    small   style\nmixed-borders  small?  size\n"
        "?: sources or readers disagree; see corpus show KEY.\n"
    )
    assert run_in(root, *words, "--reading", "sources").stdout == (
        "key            size    contested\nrose-garden    small   style\nmixed-borders  small?  size\n"
        "?: sources or readers disagree; see corpus show KEY.\n"
    )
    assert run_in(root, "list", "--where", "style=formal,cottage", "--format", "csv").stdout == (
        "key,year,style,contested,title\n"
        "rose-garden,2021,formal,style,Röses: A Garden in Four Beds\n"
        "mixed-borders,2023,cottage,size,Borders without Lines\n"
    )
    assert json.loads(run_in(root, *words, "--format", "json").stdout)["papers"] == [
        {"key": "rose-garden", "size": "small", "contested": ["style"]},
        {"key": "mixed-borders", "size": "small", "contested": ["size"]},
    ]
    whole = json.loads(run_in(root, "list", "--format", "json").stdout)["records"]
    assert [one.get("contested") for one in whole] == [["style"], None, ["size"], None]
    assert run_in(root, "stats", "contested").stdout == (
        "Contested\n"
        "contested  code  count  share_percent\n"
        "style                1           25.0\n"
        "size                 1           25.0\n"
        "water      C1        0            0.0\n"
        "prune      C2        0            0.0\n"
        "(absent)             2           50.0\n"
    )
    assert run_in(root, "list", "--where", "contested=sort")[2] == (
        "corpus: contested has no value 'sort' (allowed: style, size, water, prune)\n"
    )


def test_the_contested_tags_in_python(root: Path) -> None:
    published, sources = load(str(root)), load(str(root), reading="sources")

    assert {paper.key: paper.contested for paper in published.papers} == {
        "rose-garden": ("style",),
        "long-grass": (),
        "mixed-borders": ("size",),
        "terminal-yard": (),
    }
    assert published.counts("contested") == {"style": 1, "size": 1, "water": 0, "prune": 0, "": 2}
    assert [paper.key for paper in sources.where("contested!=").papers] == ["mixed-borders"]
    assert published.to_pandas()["contested"].tolist() == [("style",), (), ("size",), ()]


@pytest.mark.parametrize(
    ("words", "out", "head"),
    [
        (("list", "--columns", "key"), "key\n", "0 papers\n"),
        (("search", "garden"), "", "0 papers\n"),
        (("export", "bibtex"), "", "0 papers\n"),
        (("stats", "venue"), "Venue\nvenue  count  share_percent\n", ""),
        (("gaps",), "", ""),
    ],
)
def test_where_no_paper_passes_the_filters_it_is_said_what_does(
    root: Path, words: tuple[str, ...], out: str, head: str
) -> None:
    (root / "data" / "candidates.yaml").write_text(CANDIDATES, encoding="utf-8")
    none = "corpus: no paper passes the filters"
    late = ("--where", "style=cottage", "--where", "size=large")
    rose = ("--where", "style=cottage", "--where", "year<2022")
    formal = ("--where", "style=formal", "--reading", "sources")

    assert run_in(root, *words, *late) == (0, out, f"{head}{none}; 1 candidate (see corpus candidates)\n")
    assert run_in(root, *words, *rose) == (0, out, f"{head}{none}; 1 paper by --reading sources\n")
    assert run_in(root, *words, *formal)[2] == f"{head}{none}; 1 paper by --reading published\n"
    assert run_in(root, *words, "--where", "year=1900") == (0, out, f"{head}{none}\n")


def test_a_file_of_no_paper_is_written_and_said_to_be_empty(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "none.bib"

    assert run_in(root, "export", str(path), "--where", "style=gravel") == (
        0,
        "",
        f"wrote {path}: 0 papers\ncorpus: no paper passes the filters\n",
    )
    assert path.read_text(encoding="utf-8") == ""


def test_a_tag_in_open_dispute_is_marked_where_a_search_finds_it(root: Path) -> None:
    assert run_in(root, "search", "formal").stdout == (
        "key          year  matched        title\n"
        "rose-garden  2021  style formal?  Röses: A Garden in Four Beds\n"
        "?: sources or readers disagree; see corpus show KEY.\n"
    )
    settled = run_in(root, "search", "daily")
    assert "water daily " in settled.stdout
    assert "?" not in settled.stdout


def test_keys_choose_the_papers_whose_readings_are_listed(root: Path) -> None:
    every, roses = (
        run_in(root, "readings", "--format", "csv"),
        run_in(root, "readings", "Rose-Garden", "--format", "csv"),
    )

    assert roses.code == 0
    assert roses.stdout == every.stdout
    assert roses.stderr == "2 tags of 1 paper read otherwise\n"
    assert run_in(root, "readings", "long-grass").stderr == "0 tags of 0 papers read otherwise\n"
    assert "no record 'rose-gardn'" in run_in(root, "readings", "rose-gardn").stderr
    assert run_in(root, "readings", "rose-garden", "--where", "size=small") == (
        2,
        "",
        "corpus: keys name the papers of the list\nLeave out --where.\n",
    )


def test_all_tags_that_make_a_claim_fall_are_shown_on_request(root: Path) -> None:
    sizes = {paper.key: paper.tags["size"] for paper in load(str(root)).papers}
    other = {"small": "large", "large": "small"}
    disputes = [
        f"- record: {key}\n  tag: size\n  stands: {size}\n  readings: {{{size}: the list, {other[size]}: two visitors}}\n"
        f"  agreed: {{value: {other[size]}, source: https://example.org/{key}, rule: size 1}}\n"
        "  why: The list is kept.\n  source: https://example.org/visits\n"
        for key, size in sizes.items()
    ]
    (root / "data" / "disputes.yaml").write_text("\n".join(disputes), encoding="utf-8")
    claim = f"- id: three-small\n  claim: Three are small.\n  where: {{size: small}}\n  expect: {{count: 3}}\n{END}"
    (root / "data" / "claims.yaml").write_text(claim, encoding="utf-8")

    short = run_in(root, "claims", "--reading", "sources").stdout
    whole = run_in(root, "claims", "--reading", "sources", "--all").stdout

    assert "and 1 more" in short
    assert "more" not in whole
    assert [f"{key} size {other[size]}, not {size}" in whole for key, size in sizes.items()] == [True] * 4
