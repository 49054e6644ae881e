"""Candidates: what awaits a decision is read, checked, listed, taken over, and tried against the claims."""

import csv
import json
import re
import shutil
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import orchtrace_corpus as oc
from orchtrace_corpus import corpus
from orchtrace_corpus.base.errors import InvalidCorpusError
from orchtrace_corpus.corpus.analysis import claims as core
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision, SourceReading, select_proposed
from orchtrace_corpus.corpus.model.claim_file import Claim, PoolName
from tests.conftest import ROOT, TOY, Result, run_corpus
from tests.corpus.files import write_data
from tests.corpus.test_schema import as_editors_read

HILL = """\
- key: hill-garden
  title: A Hill Garden
  authors: ["Hill, Ida", "{Slope Team}"]
  year: 2023
  venue: Hills 2023
  arxiv_id: "2303.00003"
  urls: [https://arxiv.org/abs/2303.00003]
  style: formal
  care: {water: weekly, prune: none}
  size: small
  summary: Cuts a garden into a hill.
  proposal: include
  reason: It has terraces, which no garden of the pool has.
  found: "2023-12-01"
  readings:
    - by: first reader
      inclusion: include
      tags: {style: formal, water: weekly, prune: none, size: small}
      level: visit
      confidence: high
      note: The terraces are straight and watered each week.
      sources: [https://example.org/hill]
    - by: second reader
      inclusion: unclear
      tags: {style: formal, water: weekly, prune: none, size: small}
      level: photo
      confidence: low
      note: A photo shows terraces.
      location: A photo in a shop
"""
MOSS = """\
- key: moss-garden
  title: Moss
  year: 2023
  urls: [https://example.org/moss]
  style: cottage
  care: {prune: none}
  proposal: include
  reason: It needs no shears.
  found: "2023-12-02"
  readings:
    - by: first reader
      tags: {style: cottage, water: daily, prune: none, size: small}
      level: visit
      confidence: high
      note: A small garden, watered every day.
      sources: [https://example.org/moss, https://example.org/moss/diary]
      copy: "yes"
    - by: second reader
      tags: {style: cottage, water: weekly, prune: none, size: large}
      level: photo
      confidence: low
      note: It looks large.
      sources: [https://example.org/photo]
"""
SAND = """\
- key: sand-garden
  title: Sand
  urls: [https://example.org/sand]
  proposal: exclude
  reason: Nothing grows in sand.
  found: "2023-12-03"
"""
CANDIDATES = f"{HILL}\n{MOSS}\n{SAND}"
END = "  boundary: Gardens of the toy corpus only.\n  source: https://example.org/claims\n"
CLAIMS = "\n".join(
    f"- id: {name}\n  claim: {sentence}\n  where: {where}\n  expect: {expect}\n{END}"
    for name, sentence, where, expect in (
        ("few-small", "At most four gardens are small.", "{size: small}", "{at_most: 4}"),
        ("three-small", "At most three gardens are small.", "{size: small}", "{at_most: 3}"),
        ("mostly-small", "Most gardens are small.", "{size: small}", "{share: {at_least: 70%}}"),
        ("no-gravel", "No garden is of gravel.", "{style: gravel}", "empty"),
        ("few-daily", "One garden is watered daily.", "{care: daily}", "{count: 1}"),
    )
)

PROPERTIES = "\n".join(
    f"- id: c{number}\n  claim: It is so.\n  where: {{size: small}}\n  expect: {expect}\n{END}"
    for number, expect in enumerate(
        ("{at_most: 4}", "{at_least: 3}", "{count: 3}", "{keys: [rose-garden, mixed-borders, terminal-yard]}",
         "{share: {at_most: 80%}}", "{share: {at_least: 60%}}", "{by: size, counts: {small: 3}}")
    )
)  # fmt: skip


@pytest.fixture
def root(root: Path, in_root: None, on_first_of_march: None) -> Path:
    """Add three candidates to the toy corpus."""
    write_data(root, candidates=CANDIDATES, claims=CLAIMS)
    return root


def text_of(root: Path, name: str) -> str:
    return (root / "data" / f"{name}.yaml").read_text(encoding="utf-8")


def findings(root: Path) -> list[str]:
    return [f"{one.code} {one.location.line}:{one.location.column} {one.record}" for one in corpus.validate(str(root))]


# The file


def test_a_candidate_has_the_settled_tags_and_the_names_of_the_open_ones(root: Path) -> None:
    hill, moss, sand = corpus.candidates(str(root))

    assert (hill.paper.tags, hill.open_tags) == (
        {"style": "formal", "care": {"water": "weekly"}, "size": "small"},
        frozenset(),
    )
    assert (moss.paper.tags, moss.open_tags) == ({"style": "cottage", "care": {}}, {"care", "water", "size"})
    assert (sand.paper.tags, sand.open_tags) == ({}, {"style", "care", "water", "prune", "size"})
    assert (sand.proposal, sand.reason, sand.found) == (Decision.EXCLUDE, "Nothing grows in sand.", "2023-12-03")
    assert (moss.readings[0].copy, moss.readings[1].copy) == (True, False)
    assert moss.readings[1].tags == {"style": "cottage", "water": "weekly", "prune": "none", "size": "large"}
    assert len(oc.load(str(root))) == 4, "no candidate is in the pool"


def test_a_corpus_without_the_file_has_no_candidates(tmp_path: Path) -> None:
    assert corpus.candidates(str(TOY)) == ()
    result = run_corpus("--root", str(TOY), "candidates")
    assert (result.code, result.stderr.splitlines()[0]) == (3, "corpus: this corpus has no data/candidates.yaml")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("proposal: exclude", "proposal: perhaps", ["V102 58:13 sand-garden"]),
        ('found: "2023-12-03"', "found: later", ["F106 60:10 sand-garden"]),
        ("  title: Sand\n", "", ["F101 55:3 sand-garden"]),
        ("title: Sand", "title: Sand\n  added: 2023-12-04", ["F102 57:3 sand-garden"]),
        ("care: {prune: none}", "care: {prune: yearly}", ["V103 36:17 moss-garden"]),
        ("water: daily, prune: none, size: small}", "stop: daily}", ["V101 42:30 moss-garden"]),
        ("water: daily, prune: none, size: small}", "size: none}", ["V102 42:36 moss-garden"]),
        ('copy: "yes"', 'copy: "no"', ["V102 47:13 moss-garden"]),
        ("level: photo\n      confidence: low\n      note: It", "level: dream\n      note: It", [
            "F101 48:7 moss-garden",
            "V102 50:14 moss-garden",
        ]),
        # The rules of papers
        ("key: sand-garden", "key: moss-garden", ["D101 55:8 moss-garden"]),
        ("https://example.org/sand]", "https://example.org/moss/]", ["D104 57:10 sand-garden"]),
        ("title: Sand", "title: Moss", ["D105 56:10 sand-garden"]),
        ('arxiv_id: "2303.00003"', 'arxiv_id: "2303.00004"', ["I101 7:10 hill-garden"]),
        ("year: 2023\n  venue: Hills 2023", "year: 2031\n  venue: Hills 2023", [
            "F115 4:9 hill-garden",
            "I105 4:9 hill-garden",
        ]),
        ("reason: Nothing grows in sand.", "reason: Nothing <b>grows</b> in sand", [
            "M104 59:11 sand-garden",
            "M106 59:11 sand-garden",
        ]),
        ("note: It looks large.", "note: It looks `large`.", ["M104 52:13 moss-garden"]),
        ("note: It looks large.", 'note: It looks "large.', ["M107 52:13 moss-garden"]),
        # Rules of the taxonomy, as far as tags are there
        ("style: formal\n", "style: meadow\n", ["X101 10:9 hill-garden", "X104 18:21 hill-garden", "X104 25:21 hill-garden"]),
        ("style: cottage\n", "style: meadow\n", ["X104 42:21 moss-garden", "X104 49:21 moss-garden"]),
        ("care: {water: weekly, prune: none}", "care: {water: daily, prune: none}", [
            "X104 18:36 hill-garden",
            "X104 25:36 hill-garden",
        ]),
        # What is decided already
        ("key: sand-garden", "key: rose-garden", ["D111 55:8 rose-garden"]),
        ("https://example.org/sand]", "https://example.org/cars]", ["D111 57:10 sand-garden"]),
        ('"2303.00003"\n  urls: [https://arxiv.org/abs/2303.00003]', '"2001.00009"\n  urls: [https://example.org/h]', [
            "I105 4:9 hill-garden",
            "D111 6:13 hill-garden",
        ]),
        ("title: Sand", "title: The Yard", ["D112 56:10 sand-garden"]),
        ("title: Sand", "title: The Yard\n  waive: [{code: D112, why: Another one.}]", []),
    ],
)  # fmt: skip
def test_mistakes_are_found_at_their_line(root: Path, old: str, new: str, expected: list[str]) -> None:
    assert CANDIDATES.count(old) == 1
    write_data(root, candidates=CANDIDATES.replace(old, new))

    assert sorted(findings(root)) == sorted(expected)
    assert {one.location.path for one in corpus.validate(str(root))} <= {"data/candidates.yaml"}


def test_no_rule_is_broken_where_an_open_tag_may_decide_it(root: Path) -> None:
    write_data(root, candidates=CANDIDATES.replace("style: cottage", "style: meadow"))

    assert findings(root) == [], "a meadow must be large, and its size is open"
    settled = CANDIDATES.replace("style: cottage", "style: meadow").replace(
        "care: {prune: none}\n", "care: {prune: none}\n  size: small\n"
    )
    write_data(root, candidates=settled)
    assert findings(root) == ["X101 37:9 moss-garden", "X104 50:63 moss-garden"]


def test_readings_are_evidence_for_the_tags_that_they_give(root: Path) -> None:
    daily = HILL.replace("water: weekly", "water: daily")
    write_data(root, candidates=daily)
    assert findings(root) == []
    write_data(root, candidates=daily.replace("      sources: [https://example.org/hill]\n", ""))
    assert findings(root) == ["E101 9:17 hill-garden"], "and a reading without an address is none"


def test_mistakes_fail_the_check_and_keep_claims_from_being_judged(root: Path) -> None:
    run_corpus("build")
    assert run_corpus("check").code == 0
    write_data(root, candidates=CANDIDATES.replace("proposal: exclude", "proposal: perhaps"))
    assert run_corpus("check").code == 1
    with pytest.raises(InvalidCorpusError, match="the candidates have errors:"):
        corpus.candidates(str(root))
    assert run_corpus("claims").code == 1
    with pytest.raises(InvalidCorpusError, match="the claims have errors:"):
        corpus.claims(str(root))


def test_fmt_and_schema_know_the_file(root: Path) -> None:
    assert run_corpus("check", "form").code == 0
    write_data(root, candidates=f"{SAND}\n{MOSS}\n{HILL.replace('  year: 2023', '  year:   2023')}")
    run_corpus("check", "form", "--fix")
    assert text_of(root, "candidates") == CANDIDATES
    run_corpus("build", "schema")
    schema = json.loads((root / "docs" / "schema" / "candidates.schema.json").read_text(encoding="utf-8"))
    validator = Draft202012Validator(schema)
    assert validator.is_valid(as_editors_read(root / "data" / "candidates.yaml"))
    for old, new in (("prune: none}\n  size", "prune: yearly}\n  size"), ("proposal: exclude", "proposal: perhaps")):
        write_data(root, candidates=CANDIDATES.replace(old, new))
        assert not validator.is_valid(as_editors_read(root / "data" / "candidates.yaml"))


def test_what_needs_no_decision_is_mended_in_candidates_too(root: Path) -> None:
    write_data(root, candidates=CANDIDATES.replace("Nothing grows in sand.", "Nothing grows in sand"))

    assert "--fix" in run_corpus("check", "data").stderr
    assert run_corpus("check", "data", "--fix").code == 0
    assert text_of(root, "candidates") == CANDIDATES


def test_two_versions_merge_by_the_keys(root: Path) -> None:
    for name, text in (
        ("base", CANDIDATES),
        ("ours", CANDIDATES.replace("It needs no shears.", "It is green.")),
        ("theirs", CANDIDATES.replace(f"\n{SAND}", "").replace("It looks large.", "It looks very large.")),
    ):
        (root / name).write_text(text, encoding="utf-8")

    assert run_corpus("merge-file", "base", "ours", "theirs").code == 0
    merged = f"{HILL}\n{MOSS}".replace("It needs no shears.", "It is green.").replace("looks large", "looks very large")
    assert (root / "ours").read_text(encoding="utf-8") == merged


# Look


def test_candidates_are_listed_by_what_is_proposed(root: Path) -> None:
    assert run_corpus("candidates") == (
        0,
        "key          year  proposal  title\n"
        "hill-garden  2023  include   A Hill Garden\n"
        "moss-garden  2023  include   Moss\n"
        "sand-garden        exclude   Sand\n",
        "3 candidates (2 include, 1 exclude)\n",
    )
    assert run_corpus("candidates", "--where", "size=", "--where", "proposal!=exclude", "-f", "csv").stdout == (
        "key,year,proposal,size,title\nmoss-garden,2023,include,,Moss\n"
    )
    asked = ("--where", "open~water", "--where", "found>=2023-12-02", "--columns", "key,open,by", "--limit", "1")
    assert run_corpus("candidates", *asked) == (
        0,
        "key          open         by\nmoss-garden  water; size  first reader; second reader\n",
        "2 candidates (1 include, 1 exclude), 1 shown\n",
    )
    told = json.loads(run_corpus("candidates", "--where", "key=sand-garden", "-f", "json").stdout)
    assert told["records"] == [
        {
            "kind": "candidate",
            "key": "sand-garden",
            "title": "Sand",
            "urls": ["https://example.org/sand"],
            "proposal": "exclude",
            "reason": "Nothing grows in sand.",
            "found": "2023-12-03",
            "open": ["care", "prune", "size", "style", "water"],
            "readings": [],
        }
    ]
    assert run_corpus("candidates", "--where", "added=").code == 2
    assert run_corpus("candidates", "--where", "open=", "--columns", "key").stdout == "key\nhill-garden\n"


MOSS_CARD = """\
moss-garden (candidate: include)
Moss
year    2023
urls    https://example.org/moss
reason  It needs no shears.
found   2023-12-02

style   S2 cottage
care    C1 water (open: daily by first reader; weekly by second reader), C2 prune none
tools   (absent)
size    (open: small by first reader; large by second reader)

reading first reader: visit (a copy), high confidence
        style cottage, water daily, prune none, size small
        A small garden, watered every day.
        https://example.org/moss, https://example.org/moss/diary

reading second reader: photo, low confidence
        style cottage, water weekly, prune none, size large
        It looks large.
        https://example.org/photo
"""


def test_show_has_the_proposal_and_every_reading(root: Path) -> None:
    assert run_corpus("show", "moss-garden").stdout == MOSS_CARD
    markdown = run_corpus("show", "arXiv:2303.00003v2", "-f", "markdown").stdout
    assert "- **candidate**: include\n" in markdown
    assert "- **reading**: second reader, unclear: photo, low confidence; style formal," in markdown
    both = json.loads(run_corpus("show", "rose-garden", "sand-garden", "-f", "json").stdout)["records"]
    assert [one["kind"] for one in both] == ["paper", "candidate"]
    assert "sand-garden,reason,Nothing grows in sand.\n" in run_corpus("show", "sand-garden", "-f", "csv").stdout
    assert "Did you mean: moss-garden (Moss), " in run_corpus("show", "mos-garden").stderr


def test_search_finds_candidates_and_says_so(root: Path) -> None:
    assert run_corpus("search", "looks", "large") == (
        0,
        "Candidates\nkey          proposal  matched   title\nmoss-garden  include   evidence  Moss\n",
        "0 papers and 1 candidate\n",
    )


# Decide


def test_add_takes_a_candidate_over(root: Path) -> None:
    result = run_corpus("add", "hill-garden")

    assert result.code == 0, result.stderr
    assert text_of(root, "candidates") == f"{MOSS}\n{SAND}"
    assert (
        text_of(root, "papers").partition("\n- key: hill-garden\n")[2]
        == """\
  title: A Hill Garden
  authors: ["Hill, Ida", "{Slope Team}"]
  year: 2023
  venue: Hills 2023
  arxiv_id: "2303.00003"
  urls: [https://arxiv.org/abs/2303.00003]
  style: formal
  care: {water: weekly}
  size: small
  summary: Cuts a garden into a hill.
  evidence:
    - tags: [style, care, size]
      note: The terraces are straight and watered each week.
      source: https://example.org/hill
      level: visit
      confidence: high
  added: "2024-03-01"
"""
    )
    assert findings(root) == []


def test_what_is_open_is_asked_for_and_what_is_given_settles_it(root: Path) -> None:
    before = {name: text_of(root, name) for name in ("papers", "candidates")}
    lacking = run_corpus("add", "https://example.org/moss/")
    assert (lacking.code, lacking.stdout) == (2, "")
    assert [line.split()[0] for line in lacking.stderr.splitlines()[1:]] == [
        "--authors",
        "--venue",
        "--water",
        "--size",
    ]
    assert lacking.stderr.splitlines()[3:] == [
        "  --water LEVEL  daily, weekly, none; first reader reads daily; second reader reads weekly",
        "  --size TERM  small, large; first reader reads small; second reader reads large",
    ]
    assert {name: text_of(root, name) for name in before} == before

    said = ("--authors", "Moss, Max", "--venue", "Moss 2023", "--water", "daily", "--size", "small")
    assert run_corpus("add", "moss-garden", *said).code == 0
    moss = oc.load(str(root))["moss-garden"]
    assert moss.tags == {"style": "cottage", "care": {"water": "daily"}, "size": "small"}
    assert [(item.tags, item.verdict.value, item.source) for item in moss.evidence] == [
        (("style", "care", "size"), "supported", "https://example.org/moss"),
        (("style", "care", "size"), "supported", "https://example.org/moss/diary"),
        (("style",), "supported", "https://example.org/photo"),
        (("care",), "partly", "https://example.org/photo"),
        (("size",), "contradicted", "https://example.org/photo"),
    ]
    assert moss.summary == ""


WHY = "Chosen when the candidate was taken in; a reader of its sources reads otherwise. Not decided by the codebook."


def test_what_a_reader_reads_otherwise_becomes_an_open_dispute_of_the_same_edit(root: Path) -> None:
    said = ("--authors", "Moss, Max", "--venue", "Moss 2023", "--water", "none", "--size", "large")

    assert run_corpus("add", "moss-garden", *said).code == 0
    assert oc.load(str(root))["moss-garden"].tags["care"] == {}
    assert (
        text_of(root, "disputes")
        == f"""\
- record: moss-garden
  tag: size
  stands: large
  readings:
    large: second reader
    small: first reader
  state: open
  why: {WHY}
  source: https://example.org/moss ; https://example.org/moss/diary ; https://example.org/photo

- record: moss-garden
  tag: water
  stands: none
  readings:
    none: the decision to take it in
    daily: first reader
    weekly: second reader
  state: open
  why: {WHY}
  source: https://example.org/moss ; https://example.org/moss/diary ; https://example.org/photo
"""
    )
    assert [one.partition(" ")[0] for one in findings(root)] == ["M109"], "there is no summary yet"


def test_a_settled_tag_that_is_set_otherwise_is_disputed_with_both_readers(root: Path) -> None:
    assert run_corpus("add", "hill-garden", "--size", "large").code == 0

    dispute = yaml.safe_load(text_of(root, "disputes"))
    assert [(one["tag"], one["readings"], one["source"]) for one in dispute] == [
        (
            "size",
            {"large": "the decision to take it in", "small": "first reader and second reader"},
            "https://example.org/hill ; A photo in a shop",
        )
    ]
    verdicts = [(item.tags, item.verdict.value) for item in oc.load(str(root))["hill-garden"].evidence]
    assert verdicts == [(("style", "care"), "supported"), (("size",), "contradicted")]


@pytest.mark.parametrize("words", [("--care", "water=none"), ("--water", "none"), ("--care", "none")])
def test_that_an_open_term_does_not_arise_can_be_said(root: Path, words: tuple[str, ...]) -> None:
    said = ("--authors", "Moss, Max", "--venue", "Moss 2023", "--size", "small")

    assert run_corpus("add", "moss-garden", *said, *words).code == 0
    assert oc.load(str(root))["moss-garden"].tags["care"] == {}
    assert run_corpus("tag", "moss-garden", "water=daily", "prune=none").code == 0
    assert oc.load(str(root))["moss-garden"].tags["care"] == {"water": "daily"}
    assert run_corpus("tag", "moss-garden", "water=none").code == 0
    assert oc.load(str(root))["moss-garden"].tags["care"] == {}


def test_a_level_settles_its_own_term_and_no_other(root: Path) -> None:
    """What another sub-decision is stays a question, which only somebody's answer settles."""
    write_data(root, candidates=CANDIDATES.replace("  care: {prune: none}\n", ""))
    said = ("--authors", "Moss, Max", "--venue", "Moss 2023", "--size", "small", "--water", "daily")

    lacking = run_corpus("add", "moss-garden", *said)

    assert (lacking.code, lacking.stderr.splitlines()[1:]) == (
        2,
        ["  --prune LEVEL  daily, weekly, none; first reader reads none; second reader reads none"],
    )
    assert run_corpus("add", "moss-garden", *said, "--prune", "none").code == 0


def test_nothing_is_taken_over_by_an_edit_that_is_not_made(root: Path) -> None:
    before = {name: text_of(root, name) for name in ("papers", "candidates", "exclusions")}

    shown = run_corpus("add", "hill-garden", "--dry-run")
    assert (shown.code, shown.stdout.count("\n+++ b/data/")) == (0, 2)
    assert run_corpus("exclude", "sand-garden", "--stage", "gate", "--dry-run").code == 0
    assert {name: text_of(root, name) for name in before} == before


def test_exclude_takes_a_candidate_over_with_its_reason(root: Path) -> None:
    assert run_corpus("exclude", "sand-garden", "--stage", "path").code == 0
    assert text_of(root, "candidates") == f"{HILL}\n{MOSS}"
    assert (
        text_of(root, "exclusions").partition("\n- id: E004\n")[2]
        == """\
  title: Sand
  identifier: SAND
  url: https://example.org/sand
  stage: path
  screened: "2024-03-01"
  reason: Nothing grows in sand.
"""
    )
    refused = run_corpus("exclude", "moss-garden", "--stage", "gate")
    assert (refused.code, "--reason" in refused.stderr) == (2, True), "why it was proposed to be taken in is no reason"


def test_a_candidate_without_an_address_is_excluded_with_one_that_is_given(root: Path) -> None:
    write_data(root, candidates=SAND.replace("  urls: [https://example.org/sand]\n", ""))

    lacking = run_corpus("exclude", "sand-garden", "--stage", "path")
    assert (lacking.code, lacking.stderr) == (2, "corpus: missing for sand-garden:\n  --url URL\n")
    assert run_corpus("exclude", "sand-garden", "--stage", "path", "--url", "https://example.org/dune").code == 0
    assert oc.load(str(root)).exclusions[-1].url == "https://example.org/dune"
    assert text_of(root, "candidates") == "[]\n"


def test_the_claims_that_fall_today_by_a_new_record_are_named_in_a_line_each(root: Path) -> None:
    """A claim of the published pool stays true there, so nothing is broken, yet it is true of that pool only."""
    write_data(
        root,
        published='day: "2023-12-31"\nsource: https://example.org/survey\npapers: [mixed-borders, rose-garden]\n',
    )
    claim = CLAIMS.partition("\n- id: three-small")[0].replace("at_most: 4", "at_most: 3")
    write_data(root, claims=claim.replace("  where:", '  scope: {published: "yes"}\n  where:'))

    line = "corpus: no error, but over the pool of today few-small {}: At most four gardens are small.\n"
    assert line.format("would fall") in run_corpus("add", "hill-garden", "--dry-run").stderr
    assert line.format("falls") in run_corpus("add", "hill-garden").stderr
    assert "over the pool" not in run_corpus("tag", "hill-garden", "tools=rake").stderr, "it fell before"


def test_a_venue_of_another_year_gives_the_year_that_citations_give(root: Path) -> None:
    result = run_corpus("add", "hill-garden", "--venue", "Hill Days 2024")

    assert (result.code, "I106" in result.stderr) == (0, False)
    hill = oc.load(str(root))["hill-garden"]
    assert (hill.year, hill.venue_year, hill.cited_year) == (2023, 2024, 2024)
    said = ("--authors", "Moss, Max", "--venue", "Days 2024 and 2025", "--care", "none", "--size", "small")
    two = run_corpus("add", "moss-garden", *said, "--dry-run")
    assert (two.code, "I106" in two.stderr) == (0, True)
    assert "venue_year" not in two.stdout, "which of the two is for somebody to say"


def test_optional_fields_are_set_when_a_paper_is_added_and_later(root: Path) -> None:
    sets = ("code=https://example.org/code", "base_models=Rake-7B, Hoe-8B", "venue-year=2024")
    assert run_corpus("add", "hill-garden", *(word for text in sets for word in ("--set", text))).code == 0
    hill = oc.load(str(root))["hill-garden"]
    assert (hill.code, hill.more["base_models"], hill.venue_year) == (
        "https://example.org/code",
        ("Rake-7B", "Hoe-8B"),
        2024,
    )

    changed = run_corpus(
        "tag", "hill-garden", "code=", "venue_year=2025", "algorithm=PPO", "benchmarks=Hills", "size=large"
    )
    assert changed.code == 0
    hill = oc.load(str(root))["hill-garden"]
    assert (hill.code, hill.venue_year) == (None, 2025)
    assert (hill.more["algorithm"], hill.more["benchmarks"]) == (("PPO",), ("Hills",))
    assert hill.tags["size"] == "large"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("add", "hill-garden", "--set", "colour=red"), "--set 'colour=red' sets no field"),
        (("add", "hill-garden", "--set", "code"), "--set 'code' sets no field"),
        (("add", "hill-garden", "--set", "venue_year=soon"), "venue_year 'soon' is not a year"),
        (("tag", "rose-garden", "venue_year=24"), "venue_year '24' is not a year"),
        (("tag", "rose-garden", "code=a", "code=b"), "code is set twice"),
        (("tag", "E001", "code=https://example.org/code"), "unknown field 'code'"),
    ],
)
def test_optional_fields_that_cannot_be_set(root: Path, words: tuple[str, ...], message: str) -> None:
    refused = run_corpus(*words)

    assert (refused.code, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"corpus: {message}")


def test_the_api_takes_candidates_over_too(root: Path) -> None:
    addition = corpus.add(["hill-garden"], root=str(root))

    assert addition.written == ("data/papers.yaml", "data/candidates.yaml")
    assert [one.name for one in corpus.candidates(str(root))] == ["moss-garden", "sand-garden"]


def test_an_interrupted_edit_leaves_both_records_and_the_check_says_so(root: Path) -> None:
    run_corpus("add", "hill-garden")
    write_data(root, candidates=CANDIDATES)

    assert findings(root) == ["D111 1:8 hill-garden"]


def test_a_record_that_is_added_by_another_name_is_said_to_be_a_candidate(root: Path) -> None:
    said = ("--title", "Moss!", "--authors", "Moss, Max", "--year", "2023", "--venue", "Moss 2023", "--no-fetch")
    tags = ("--style", "cottage", "--care", "none", "--size", "small")
    result = run_corpus("add", "https://example.org/green", *said, *tags)

    assert result.code == 0
    assert (
        "D112 warning: the title is that of the paper 'moss', so it is decided; remove the candidate" in result.stderr
    )
    assert "To fix: take moss-garden out of data/candidates.yaml." in result.stderr


def test_a_difference_tells_candidates_whole(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root, tmp_path / "before")
    moss = MOSS.replace("It needs no shears.", "It is green.").replace("proposal: include", "proposal: unclear")
    write_data(root, candidates=f"{moss}\n{SAND.replace('sand', 'salt').replace('Sand', 'The Yard')}")

    shown = run_corpus("diff", str(tmp_path / "before"), str(root))

    assert shown.stdout.splitlines()[:9] == [
        "candidates: 1 changed, 2 removed, 1 added; 1 finding new.",
        "",
        "Candidates changed",
        "  moss-garden",
        "    proposal: include -> unclear",
        "    reason: It needs no shears. -> It is green.",
        "",
        "Candidates removed",
        "  hill-garden",
    ]
    assert "data/candidates.yaml: D112 the title is that of the paper 'terminal-yard'" in " ".join(shown.stdout.split())


# Claims


OVERVIEW = """\
claim         today  candidates       rows  contested  sentence
three-small   holds  falls at 1/1        3          0  At most three gardens are small.
few-small     holds  could fall by 1     3          0  At most four gardens are small.
mostly-small  holds  could fall by 1     3          0  Most gardens are small.
few-daily     holds  could fall by 1     1          0  One garden is watered daily.
no-gravel     holds  holds               0          0  No garden is of gravel.
5 claims hold
with the candidates 1 of 5 falls: three-small
falls at N/M: the first N of M candidates make it fall; see --with candidates
3 could fall through open tags; see --with candidates
"""


def test_a_third_pool_has_the_candidates_proposed_for_inclusion(root: Path) -> None:
    assert run_corpus("claims") == (0, OVERVIEW, "")
    verdicts = {one.claim.id: one.pools[PoolName.CANDIDATES] for one in corpus.claims(str(root))}
    assert {name: (one.holds, one.found, one.falls_by, one.could_fall_by) for name, one in verdicts.items()} == {
        "few-small": (True, "4", (), ("moss-garden",)),
        "three-small": (False, "4", ("hill-garden",), ()),
        "mostly-small": (True, "4 of 5 (80.0%)", (), ("moss-garden",)),
        "no-gravel": (True, "0", (), ()),
        "few-daily": (True, "1", (), ("moss-garden",)),
    }


def test_every_form_has_the_third_pool(root: Path) -> None:
    told = json.loads(run_corpus("claims", "few-small", "-f", "json").stdout)["claims"][0]["pools"]
    by_open_tags = {
        "could_fall_by": ["moss-garden"],
        "counted": ["hill-garden"],
        "falls_at": None,
        "left_out_by_open_tags": 1,
    }
    assert told == {
        "today": {"holds": True, "found": "3", "falls_by": []},
        "candidates": {"holds": True, "found": "4", "falls_by": [], **by_open_tags},
    }
    whole = re.sub(r"\n {2,}", " ", run_corpus("claims", "three-small", "few-small").stdout)
    pools = [line for line in whole.splitlines() if "pools" in line]
    assert pools == [
        "pools     today: holds; with candidates: falls, by hill-garden; counts 1 candidate, "
        "falls from the 1st on (hill-garden); open tags leave out 1 (with candidates found: 4)",
        "pools     today: holds; with candidates: holds, could fall by moss-garden through open tags; "
        "counts 1 candidate; open tags leave out 1",
    ]
    rows = list(csv.DictReader(run_corpus("claims", "-f", "csv").stdout.splitlines()))
    assert [(row["today"], row["candidates"], row["candidates_fall_by"], row["could_fall_by"]) for row in rows[:2]] == [
        ("yes", "yes", "", "moss-garden"),
        ("yes", "no", "hill-garden", ""),
    ]
    only = run_corpus("claims", "--pool", "candidates").stdout
    assert only.startswith("claim         candidates       rows  contested  sentence\n")
    (root / "README.md").write_text("# Gardens\n\n<!-- corpus:begin claims -->\n<!-- corpus:end claims -->\n")
    run_corpus("build", "readme")
    shown = (root / "README.md").read_text(encoding="utf-8")
    assert "| At most three gardens are small. | holds | falls at 1/1    |\n" in shown
    assert "| Most gardens are small.          | holds | could fall by 1 |\n" in shown


AS_IF = """\
as if the candidates proposed for inclusion were entries, first those that only enlarge a share's
whole, and each claim were about all entries:

"""
LEFT_OUT = "\ncandidates not proposed for inclusion: 1 exclude\n"
CAUSES = f"""\
{AS_IF}few-small  could fall
At most four gardens are small.
expected at most 4; with the candidates found 4
counts 1 candidate; open tags leave out 1
  moss-garden: size small or large
    https://example.org/moss
    https://example.org/moss/diary (a copy)
    https://example.org/photo

three-small  falls
At most three gardens are small.
expected at most 3; with the candidates found 4
counts 1 candidate, falls from the 1st on (hill-garden); open tags leave out 1
  hill-garden: size small
    https://example.org/hill

mostly-small  could fall
Most gardens are small.
expected at least 70%; with the candidates found 4 of 5 (80.0%)
counts 1 candidate; open tags leave out 1
  moss-garden: size small or large
    https://example.org/moss
    https://example.org/moss/diary (a copy)
    https://example.org/photo

few-daily  could fall (an exact count, which any addition outdates)
One garden is watered daily.
expected 1; with the candidates found 1
counts 0 candidates; open tags leave out 1
  moss-garden: water daily or weekly
    https://example.org/moss
    https://example.org/moss/diary (a copy)
    https://example.org/photo
{LEFT_OUT}"""


def test_with_candidates_names_records_tags_and_sources(root: Path) -> None:
    assert run_corpus("claims", "--with", "candidates") == (0, CAUSES, "")
    told = json.loads(run_corpus("claims", "three-small", "--with", "candidates", "-f", "json").stdout)
    assert told["causes"] == [
        {
            "claim": "three-small",
            "exact": False,
            "candidate": "hill-garden",
            "proposal": "include",
            "certain": True,
            "tags": {"size": ["small"]},
            "sources": ["https://example.org/hill"],
            "copies": [],
        }
    ]
    nothing = "no claim that holds today would fall, or could fall, if the candidates were taken in\n"
    assert run_corpus("claims", "no-gravel", "--with", "candidates").stdout == nothing + LEFT_OUT
    certain = run_corpus("claims", "three-small", "--with", "candidates").stdout
    assert certain.endswith(f"    https://example.org/hill\n\nno claim could fall through open tags\n{LEFT_OUT}")
    rows = "three-small,falls,hill-garden,include,size small,https://example.org/hill\n"
    assert rows in run_corpus("claims", "--with", "candidates", "-f", "csv").stdout
    assert run_corpus("claims", "--with", "candidates", "--stress").code == 2
    (root / "data" / "candidates.yaml").unlink()
    assert run_corpus("claims", "--with", "candidates").code == 3
    assert run_corpus("claims").stdout.startswith("claim         verdict  rows")


def test_candidates_not_proposed_that_would_make_a_thesis_fall_are_named(root: Path) -> None:
    sand = f"{SAND}  style: formal\n  size: small\n"
    gravel = HILL.replace("hill", "grit").replace("formal", "gravel").replace("proposal: include", "proposal: unclear")
    write_data(root, candidates=f"{sand}\n{gravel}")
    write_data(root, claims=CLAIMS.replace("{at_most: 3}", "{count: 3}"))
    papers = "[rose-garden, long-grass, mixed-borders, terminal-yard]"
    write_data(
        root,
        published=f'day: "2023-12-31"\nsource: https://example.org/survey\npapers: {papers}\nexclusions: [E001]\n',
    )
    exact, thesis = "three-small", "no-gravel"

    shown = run_corpus("claims", exact, thesis, "--with", "candidates").stdout
    told = json.loads(run_corpus("claims", exact, thesis, "--with", "candidates", "-f", "json").stdout)["causes"]

    assert shown == (
        "no claim that holds today would fall, or could fall, if the candidates were taken in\n\n"
        "candidates not proposed for inclusion: 1 unclear, 1 exclude\n"
        "  no-gravel falls by grit-garden (unclear): style gravel\n"
    )
    assert [(one["claim"], one["exact"], one["candidate"], one["proposal"]) for one in told] == [
        ("three-small", True, "sand-garden", "exclude"),
        ("three-small", True, "grit-garden", "unclear"),
        ("no-gravel", False, "grit-garden", "unclear"),
    ]


def test_the_overview_counts_the_exact_counts_that_candidates_outdate(root: Path) -> None:
    papers = "[rose-garden, long-grass, mixed-borders, terminal-yard]"
    write_data(
        root,
        published=f'day: "2023-12-31"\nsource: https://example.org/survey\npapers: {papers}\nexclusions: [E001]\n',
    )
    for expect, note in (
        ("{count: 3}", "with the candidates 1 of 5 falls; 1 is an exact count, outdated by any addition: three-small"),
        ("{at_most: 3}", "with the candidates 1 of 5 falls: three-small"),
    ):
        write_data(root, claims=CLAIMS.replace("{at_most: 3}", expect))
        assert [one for one in run_corpus("claims").stdout.splitlines() if one.startswith("with the")] == [note]


def test_a_tag_that_nobody_read_breaks_nothing_and_could_break_nothing(root: Path) -> None:
    write_data(root, candidates=SAND.replace("exclude", "include"))
    verdicts = [one.pools[PoolName.CANDIDATES] for one in corpus.claims(str(root))]

    assert all(one.holds and one.could_fall_by == () for one in verdicts)


SETTLED = st.sampled_from([("small",), ("large",)])
OPEN = st.sampled_from([(None,), (None, "small"), (None, "large"), (None, "small", "large")])


@given(st.lists(st.one_of(SETTLED, OPEN), max_size=5))
def test_open_tags_break_no_claim_and_a_claim_could_fall_exactly_if_some_readings_break_it(
    sizes: list[tuple[str | None, ...]],
) -> None:
    pool = store.CorpusFiles(str(TOY)).loaded.pool
    assert pool is not None
    claims = store.CorpusFiles("nowhere", {store.CLAIMS: PROPERTIES.encode()}).claims.claims
    one = pool.papers[0]

    def made(key: str, size: str | None) -> oc.Paper:
        return one._replace(key=key, tags={**one.tags, "size": size} if size else {"style": "formal", "care": {}})

    candidates = [
        Candidate(
            made(f"c-{number}", values[0]),
            Decision.INCLUDE,
            readings=tuple(SourceReading("", "", "", "", tags={"size": value}) for value in values[1:] if value),
            open_tags=frozenset(() if values[0] else ("size",)),
        )
        for number, values in enumerate(sizes)
    ]
    settled = tuple(candidate.paper for candidate in candidates if not candidate.open_tags)
    read = [
        [made(candidate.name, reading.tags["size"]) for reading in candidate.readings]
        for candidate in candidates
        if candidate.open_tags and candidate.readings
    ]
    for verdict in core.evaluate(claims, pool, candidates=candidates):
        judged = verdict.pools[PoolName.CANDIDATES]

        def holds(papers: tuple[oc.Paper, ...], claim: Claim = verdict.claim) -> bool:
            return core.evaluate([claim], pool._replace(papers=(*pool.papers, *papers)))[0].holds

        assert judged.holds is holds(settled)
        breaks = any(not holds((*settled, *chosen)) for chosen in product(*read))
        assert bool(judged.could_fall_by) is (judged.holds and breaks)
        assert set(judged.could_fall_by) <= {candidate.name for candidate in candidates if candidate.open_tags}


# The candidates of this repository


@pytest.fixture(scope="module")
def awaiting() -> dict[str, Candidate]:
    """Those of the searches of November 2026 that nobody has decided on; each decision leaves fewer of them."""
    found = [one for one in corpus.candidates(str(ROOT)) if one.found == "2026-11-01" and not one.screened]
    return {one.name: one for one in found}


def test_the_searches_of_november_2026_are_on_record(awaiting: dict[str, Candidate], real: oc.Corpus) -> None:
    proposals = Counter(one.proposal.value for one in awaiting.values())
    assert proposals <= Counter({"include": 79, "exclude": 14, "unclear": 13})
    readers = Counter(reading.by for one in awaiting.values() for reading in one.readings)
    assert readers <= Counter({"first reader": 106, "second reader": 45, "sample check": 2})
    published = real.where("published=yes")
    assert len(published) == 84, "no paper enters the published pool by being found"
    schema = json.loads((ROOT / "docs" / "schema" / "candidates.schema.json").read_text(encoding="utf-8"))
    whole = as_editors_read(ROOT / "data" / "candidates.yaml")
    assert Draft202012Validator(schema).is_valid(whole)


def test_a_tag_of_an_axis_is_settled_exactly_where_two_readers_agree(awaiting: dict[str, Candidate]) -> None:
    decisions = ("spawn", "delegate", "communicate", "aggregate", "stop")
    for one in awaiting.values():
        readings = {reading.by: reading.tags for reading in one.readings if reading.by != "sample check"}
        for tag in ("reward_family", "credit_unit", "topology", *decisions):
            values = [tags[tag] for tags in readings.values() if tag in tags]
            is_agreed = len(values) == 2 and len(set(values)) == 1
            assert one.is_open(tag) is not is_agreed, (one.name, tag)
            if is_agreed:
                levels = one.tags.get("sub_decisions", {})
                assert isinstance(levels, dict)
                assert (levels.get(tag, "none") if tag in decisions else one.tags[tag]) == values[0]
    assert sum(one.tags.get("credit_unit") == "orchestrator" for one in awaiting.values()) <= 15
    agreed = {
        (one.name, tag)
        for one in awaiting.values()
        for tag, level in dict(one.tags.get("sub_decisions", {})).items()
        if level == "explicit" and tag != "delegate"
    }
    assert agreed <= {
        ("recursive-agent-optimization", "spawn"),
        ("maestro", "aggregate"),
        ("majority-not-always", "aggregate"),
        ("rumad", "communicate"),
        ("learning-interrupt-language-based", "communicate"),
        ("lemon", "communicate"),
        ("tracer", "communicate"),
    }


def test_what_the_candidates_would_do_to_the_claims(awaiting: dict[str, Candidate]) -> None:
    whole = store.CorpusFiles(str(ROOT)).loaded.pool
    assert whole is not None
    pool = whole._replace(papers=tuple(paper for paper in whole.papers if paper.published))
    awaited = [one for one in select_proposed(store.CorpusFiles(str(ROOT)).candidates.items) if one.name in awaiting]
    verdicts = core.evaluate(store.CorpusFiles(str(ROOT)).claims.claims, pool, candidates=awaited)
    pools = {one.claim.id: one.pools.get(PoolName.CANDIDATES) for one in verdicts}
    judged = {name: one for name, one in pools.items() if one is not None}
    expected = {
        "message-credit-rows": ("learning-interrupt-language-based",),
        "orchestrator-credit-rows": ORCHESTRATORS,
        "orchestrator-credit-sparse": ORCHESTRATORS[2:],
        "no-token-tool-team-credit": ("general-learned-delegation", "learning-adaptive-parallel"),
        "no-own-signal-for-aggregating": ("maestro",),
        "stop-rows": ("iterative-critique-and-routing-controller", "recursive-agent-optimization"),
        "industry-rows": (
            "kimi-code-cli",
            "kimi-k3",
            "run-agent-teams",
            "sakana-fugu-technical",
            "subagents-codex-documentation",
        ),
    }

    assert len(judged) == 21
    for name, one in judged.items():
        assert set(one.falls_by) <= set(expected.get(name, ())), name
        assert one.falls_by or not awaiting.keys() & set(expected.get(name, ())) or name in SHARES, name


SHARES = {"orchestrator-credit-sparse"}
"""The claims that one candidate alone does not break."""
ORCHESTRATORS = (
    "agentconductor",
    "controlling-performance-budget",
    "easy",
    "evomas",
    "learning-orchestrate-agents",
    "maestro",
    "mas-orchestra",
    "multi-agent-coordination-adaptation",
    "router-r1",
    "rumad",
    "sciorch",
    "slms-multi-agent-routers",
    "todycomm",
    "toolorchestra",
    "uno-orchestra",
)


def run(*words: str) -> Result:
    return run_corpus("--root", str(ROOT), *words)


SUMMARIES = (
    *("alphaxiv.org", "chatpaper.ai", "deeppaper.ai", "deeptrendlab.com", "emergentmind.com", "kurate.org", "newx.sg"),
    *("papernotes.org", "papers.cool", "pith.science", "prismix.dev", "scholarfeed.org", "sciencestack.ai"),
    *("themoonlight.io", "tomesphere.com"),
)
"""Hosts of third parties' summaries: what is read there is no copy of the work."""


def test_a_third_partys_summary_is_no_copy_of_the_work(awaiting: dict[str, Candidate], real: oc.Corpus) -> None:
    read = [(*one.sources, one) for candidate in awaiting.values() for one in candidate.readings]
    read += [(one.source, one) for paper in real.papers for one in paper.evidence]  # type: ignore[misc]
    found = [item for *sources, item in read if any(host in str(source) for source in sources for host in SUMMARIES)]

    assert found
    for item in found:
        assert (item.level, item.confidence != "high", item.copy) == ("secondary", True, False), item.note


def test_no_candidate_waits_for_what_only_the_survey_can_say(awaiting: dict[str, Candidate], tmp_path: Path) -> None:
    """How far the survey checked its row is no question about a later record; its table says `no` for it."""
    shutil.copytree(ROOT / "data", tmp_path / "data")
    assert not any(one.is_open("verified") for one in awaiting.values())
    settled = [one.name for one in awaiting.values() if not one.open_tags]
    listed = run("candidates", "--where", "open=", "--columns", "key", "-f", "csv").stdout.split()[1:]
    assert set(settled) <= set(listed)

    for name in settled[-1:]:
        added = run_corpus("--root", str(tmp_path), "add", name, "--no-fetch", "--yes")
        assert added.code == 0, added.stderr
        rows = run_corpus("--root", str(tmp_path), "export", "csv", "--profile", "published").stdout.splitlines()
        assert {row["key"]: row["verified"] for row in csv.DictReader(rows)}[name] == "no"
    assert all("verified" in paper.tags for paper in oc.load(str(ROOT)).papers if paper.published)


def test_the_listing_fits_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchtrace_corpus.base.commands.output.Output.width", property(lambda _: 80))

    lines = run("candidates").stdout.splitlines()
    known = corpus.candidates(str(ROOT))
    groups = len({candidate.proposal for candidate in known})
    assert (len(lines), max(map(len, lines)) <= 80) == (len(known) + 3 * groups - 1, True)
    assert {line.index("title") for line in lines if line.startswith("key ")} == {31}, "most of the line is the title's"


def test_a_claim_falls_from_the_candidate_on_that_is_one_too_many(root: Path) -> None:
    more = "\n".join(HILL.replace("hill", name).replace("Hill", name.title()) for name in ("dale", "fell", "glen"))
    write_data(root, candidates=f"{more}\n{SAND}")
    verdict = next(one for one in corpus.claims(str(root)) if one.claim.id == "few-small").pools[PoolName.CANDIDATES]

    assert verdict.counted == ("dale-garden", "fell-garden", "glen-garden")
    assert (verdict.falls_by, verdict.falls_at) == (("fell-garden", "glen-garden"), 2)
    assert "few-small     holds  falls at 2/3 " in run_corpus("claims").stdout
    card = re.sub(r"\n {2,}", " ", run_corpus("claims", "few-small").stdout)
    assert (
        "counts 3 candidates, falls from the 2nd on (fell-garden), after dale-garden; open tags leave out none" in card
    )


def test_validate_counts_candidates_among_what_it_read(root: Path) -> None:
    write_data(root, candidates=CANDIDATES.replace("style: cottage", "style: cottages"))

    assert run_corpus("check", "data").stderr.splitlines()[0].endswith(" in 4 papers, 2 exclusions and 3 candidates")
