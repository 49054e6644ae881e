"""Which records are the published pool, as data; claims over that pool and over the pool of today."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from orchtrace_corpus.corpus.analysis import claims as core
from orchtrace_corpus.corpus.api import Corpus, load, validate
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.claim_file import PoolName
from orchtrace_corpus.corpus.model.records import PublishedPool
from tests.conftest import ROOT, TOY, copy_published, run_corpus
from tests.corpus.files import pool_of, run_in, write_data

PUBLISHED = """\
day: "2023-12-31"
source: https://example.org/survey
papers: [mixed-borders, rose-garden, long-grass]
exclusions: [E001]
"""
END = "  boundary: Gardens of the toy corpus only.\n  source: https://example.org/claims\n"
SCOPE = '  scope: {published: "yes"}\n'
CLAIMS = f"""\
- id: total
  claim: The published pool has three gardens.
{SCOPE}  only: published
  expect: {{count: 3}}
{END}
- id: two-small
  claim: Two gardens are small.
{SCOPE}  where: {{size: small}}
  expect: {{at_most: 2}}
{END}
- id: mostly-small
  claim: At least half of the gardens are small.
{SCOPE}  where: {{size: small}}
  expect: {{share: {{at_least: 50%}}}}
{END}"""


@pytest.fixture
def root(root: Path) -> Path:
    """The toy corpus, three of whose four papers are published; the fourth is dated as early as the first."""
    write_data(root, published=PUBLISHED, claims=CLAIMS)
    return root


# The published pool as data


def test_records_are_filtered_by_the_list_and_by_no_date(root: Path) -> None:
    def listed(*words: str) -> list[str]:
        return [line.split(",")[0] for line in run_in(root, "list", *words, "-f", "csv").stdout.splitlines()[1:]]

    assert listed("--where", "published=yes") == ["rose-garden", "long-grass", "mixed-borders"]
    assert listed("--where", "published=no") == ["terminal-yard"]
    assert listed("--exclusions", "--where", "published=no") == ["E003"]
    assert load(str(root)).counts("published") == {"yes": 3, "no": 1}
    (root / "data" / "published.yaml").unlink()
    assert listed("--where", "published=") == ["rose-garden", "long-grass", "mixed-borders", "terminal-yard"]


def test_a_rule_of_the_taxonomy_can_be_about_published_records(root: Path) -> None:
    path = root / "data" / "taxonomy.yaml"
    rule = '  - {id: aired, message: A later garden is formal., when: {published: "no"}, require: {style: formal}}\n'
    path.write_text(path.read_text(encoding="utf-8").rstrip("\n") + "\n" + rule, encoding="utf-8")

    assert [(one.code, one.record) for one in validate(str(root))] == [("X101", "terminal-yard")]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("rose-garden", "rose-gardn", ["F119 3:25 there is no paper 'rose-gardn', which the published pool has"]),
        ("[E001]", "[E002]", ["F119 4:14 there is no exclusion 'E002', which the published pool has"]),
        ("day:", "date:", ["F102 1:1 unknown field 'date'", "F101 1:1 missing field 'day'"]),
        ("long-grass]", "rose-garden]", ["F108 3:38 "]),
        ("2023-12-31", "2023-12-32", ["F106 1:6 "]),
        ('day: "2023-12-31"\n', "", ["F101 1:1 missing field 'day'"]),
    ],
)
def test_mistakes_in_the_list_are_found_at_their_place(root: Path, old: str, new: str, expected: list[str]) -> None:
    write_data(root, published=PUBLISHED.replace(old, new))
    found = [f"{one.code} {one.location.line}:{one.location.column} {one.message}" for one in validate(str(root))]

    assert len(found) == len(expected), found
    for message, beginning in zip(sorted(found), sorted(expected), strict=True):
        assert message.startswith(beginning)
    assert run_in(root, "check", "data").code == 1


def test_a_published_record_can_be_removed_and_it_is_said_what_that_breaks(root: Path) -> None:
    result = run_in(root, "remove", "long-grass", "--yes")

    assert result.code == 0
    assert "F119 there is no paper 'long-grass', which the published pool has [long-grass]\n" in result.stderr
    assert "To fix: put long-grass back, or take it out of data/published.yaml." in result.stderr
    assert run_in(root, "check").code == 1


def test_of_papers_that_cannot_be_read_none_is_said_to_be_missing(root: Path) -> None:
    path = root / "data" / "papers.yaml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("title: Long Grass", "title: [Long Grass"), encoding="utf-8"
    )

    assert "F119" not in {one.code for one in validate(str(root))}


def test_the_published_table_keeps_the_published_order(root: Path) -> None:
    path = root / "data" / "taxonomy.yaml"
    table = "published:\n  - {column: id, field: key}\n"
    path.write_text(path.read_text(encoding="utf-8").rstrip("\n") + "\n" + table, encoding="utf-8")

    expected = "id\nmixed-borders\nrose-garden\nlong-grass\n"
    assert run_in(root, "export", "csv", "--profile", "published", "--where", "published=yes").stdout == expected
    assert load(str(root)).export("csv", "published") == expected + "terminal-yard\n"


def test_the_published_pool_of_this_repository(real: Corpus) -> None:
    pool = store.CorpusFiles(str(ROOT)).loaded.pool
    assert pool is not None
    assert pool.published is not None
    assert (pool.published.day, len(pool.published.papers), len(pool.published.exclusions)) == ("2026-05-04", 84, 32)
    assert {paper.key for paper in real.where("published=yes").papers} == {
        paper.key for paper in real.papers if paper.added == "2026-05-04"
    }
    schema = json.loads((ROOT / "docs" / "schema" / "published.schema.json").read_text(encoding="utf-8"))
    listed = {
        **pool.published._asdict(),
        "papers": [*pool.published.papers],
        "exclusions": [*pool.published.exclusions],
    }
    assert Draft202012Validator(schema).is_valid(listed)
    assert not Draft202012Validator(schema).is_valid({**listed, "papers": []})


# Claims over both pools


def test_both_verdicts_in_the_overview(root: Path) -> None:
    assert run_in(root, "claims") == (
        0,
        "claim         published  today                    rows  contested  sentence\n"
        "two-small     holds      falls, by terminal-yard     2          0  Two gardens are small.\n"
        "total         holds      -                           3          0  The published pool has three gardens.\n"
        "mostly-small  holds      holds                       2          0  At least half of the gardens are small.\n"
        "3 claims hold\n"
        "over the pool of today 1 of 2 falls: two-small, by terminal-yard (-: not about that pool)\n",
        "",
    )


def test_check_counts_the_claims_that_fall_and_says_whether_that_is_new(root: Path) -> None:
    def line() -> str:
        return next(one for one in run_in(root, "check").stdout.splitlines() if one.startswith("claims "))

    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", root, *words], check=True)

    assert line() == "claims    ok     3 hold; 1 falls over the pool of today, which is no error: two-small", (
        "in no repository"
    )
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "Begin")
    assert line() == "claims    ok     3 hold; 1 falls over the pool of today, which is no error: two-small", (
        "nothing has changed"
    )

    papers = root / "data" / "papers.yaml"
    small = papers.read_text(encoding="utf-8")
    before, yard = small.split("- key: terminal-yard\n")
    papers.write_text(small.replace("1999", "1998"), encoding="utf-8")
    falls = "1 falls over the pool of today"
    assert (
        line() == f"claims    ok     3 hold; {falls}, none of them since the last commit, which is no error: two-small"
    )

    large = f"{before}- key: terminal-yard\n{yard.replace('size: small', 'size: large')}"
    papers.write_text(large, encoding="utf-8")
    assert line() == "claims    ok     3 hold"
    git("commit", "--quiet", "--all", "--message", "It is large")
    papers.write_text(small, encoding="utf-8")
    assert line() == f"claims    ok     3 hold; {falls}, 1 of them since the last commit, which is no error: two-small"

    disputed = "- record: rose-garden\n  tag: size\n  stands: small\n  readings: {small: a list, large: a visitor}\n"
    write_data(root, disputes=f"{disputed}  why: The list is kept.\n  source: https://example.org/visits\n")
    assert line().startswith("claims    ok     3 hold, 2 of them with contested tags; 1 falls over")


def test_both_verdicts_in_every_other_form(root: Path) -> None:
    lines = run_in(root, "claims", "two-small").stdout.splitlines()
    assert lines[4] == "pools     published pool: holds; today: falls, by terminal-yard (found: 3)"
    assert (
        run_in(root, "claims", "total").stdout.splitlines()[4]
        == "pools     published pool: holds; the claim is about no other pool"
    )
    assert "- **pools**: published pool: holds; today: falls, by terminal-yard (found: 3)\n" in (
        run_in(root, "claims", "two-small", "-f", "markdown").stdout
    )
    csv = run_in(root, "claims", "-f", "csv").stdout.splitlines()
    assert csv[0].endswith(",source,today,falls_by")
    assert [line.split(",")[-2:] for line in csv[1:]] == [["", ""], ["no", "terminal-yard"], ["yes", ""]]
    told = json.loads(run_in(root, "claims", "two-small", "-f", "json").stdout)["claims"][0]
    assert told["pools"] == {
        "published": {"holds": True, "found": "2", "falls_by": []},
        "today": {"holds": False, "found": "3", "falls_by": ["terminal-yard"]},
    }


def test_only_the_claim_as_it_is_written_fails_the_check(root: Path) -> None:
    run_in(root, "build")
    assert run_in(root, "check").code == 0
    write_data(root, claims=CLAIMS.replace("{at_most: 2}", "{at_most: 1}"))
    fails = run_in(root, "claims")
    assert fails.code == 1
    assert "two-small     fails      falls " in fails.stdout, "and by no later record alone"
    assert run_in(root, "check").code == 1
    write_data(root, claims=CLAIMS.replace(SCOPE, "").replace("  only: published\n", ""))
    assert run_in(root, "claims").code == 1, "without a scope a claim is about the pool of today"
    assert {*core.evaluate(store.CorpusFiles(str(root)).claims.claims, pool_of(root))[0].pools} == {PoolName.TODAY}


def test_a_claim_is_made_for_no_other_pool_alone(root: Path) -> None:
    write_data(root, claims=CLAIMS.replace("only: published", "only: today"))

    assert "C102 unknown pool 'today' (allowed: published)" in run_in(root, "claims").stderr


# Which records make a claim fall

TOY_POOL = pool_of(TOY)
FILE = store.CorpusFiles("nowhere", {store.CLAIMS: "\n".join(
        f"- id: c{number}\n  claim: It is so.\n{SCOPE}  where: {{size: small}}\n  expect: {expect}\n{END}"
        for number, expect in enumerate(
            ("empty", "{at_most: 1}", "{at_most: 3}", "{keys: [a, b]}", "{share: {at_most: 40%}}", "{share: {at_least: 60%}}",
             "{by: size, counts: {small: 2}}")
        )
    ).encode()}).claims  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans(), st.booleans()), unique_by=lambda one: one[0]))
def test_without_the_records_it_falls_by_a_claim_holds_and_each_of_them_is_needed(
    records: list[tuple[str, bool, bool]],
) -> None:
    one = TOY_POOL.papers[0]
    papers = tuple(
        one._replace(key=key, tags={**one.tags, "size": "small" if small else "large"}) for key, small, _ in records
    )
    listed = tuple(key for key, _, published in records if published)
    pool = store.with_published(TOY_POOL._replace(papers=papers), PublishedPool("2024-01-01", "Here.", listed))

    for claim, verdict in zip(FILE.claims, core.evaluate(FILE.claims, pool), strict=True):
        today = verdict.pools[PoolName.TODAY]
        assert set(today.falls_by).isdisjoint(listed)
        assert bool(today.falls_by) == (verdict.holds and not today.holds)

        def holds(without: set[str], claim: core.Claim = claim) -> bool:
            left = tuple(paper for paper in papers if paper.key not in without)
            return core.evaluate([claim._replace(scope=())], pool._replace(papers=left))[0].holds

        if today.falls_by:
            assert holds(set(today.falls_by))
            if claim.id not in ("c5",):  # a share that is too small can be fixed by other records, too
                assert not any(holds(set(today.falls_by) - {key}) for key in today.falls_by)


# The difference


EXAMPLE_TEAM = """\
- key: example-team
  title: "Example: Training a Team That Knows When to Stop"
  authors: ["Example, Ada", "Sample, Ben", others]
  affiliation: Example University
  year: 2026
  venue: arXiv
  urls: [https://example.org/team]
  category: rl_method
  tier: supporting
  rl: full
  reward_family: orchestration
  credit_unit: orchestrator
  sub_decisions: {delegate: implicit, stop: explicit}
  topology: centralized
  scenario: general
  verified: full
  summary: Rewards the coordinator of a team for ending a run as soon as its answer is settled.
  evidence:
    - tags: [reward_family, credit_unit, sub_decisions, topology]
      note: One coordinator picks who acts next, trained by the outcome alone; the reward holds a term on the step at which it stops.
      source: https://example.org/team
      level: paper
      confidence: high
  added: "2026-06-01"
"""


def test_a_new_record_that_contradicts_claims_is_named_with_every_one_of_them(tmp_path: Path) -> None:
    before, after = (copy_published(tmp_path / name) for name in ("before", "after"))
    with (after / "data" / "papers.yaml").open("a", encoding="utf-8") as file:
        file.write("\n" + EXAMPLE_TEAM)

    falling = {
        verdict.claim.id
        for verdict in core.evaluate(store.CorpusFiles(str(ROOT)).claims.claims, pool_of(after))
        if not verdict.pools.get(PoolName.TODAY, verdict).holds
    }
    assert falling >= {"stop-no-objective", "stop-rows"}
    for words in ((), ("--format", "markdown")):
        shown = " ".join(run_corpus("diff", str(before), str(after), *words).stdout.replace("`", "").split())
        assert f"{len(falling)} claims fall today" in shown
        for name in falling:
            assert f"{name}: published pool: holds; today: falls, by example-team." in shown
    assert run_in(after, "claims").code == 0


def test_a_claim_that_fell_before_is_told_apart_and_one_that_holds_again_is_named(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root, tmp_path / "later")
    later = tmp_path / "later"
    path = later / "data" / "papers.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("venue: Report", "venue: Reports"), encoding="utf-8")
    shown = run_corpus("diff", str(root), str(later)).stdout
    assert shown.splitlines()[0] == "papers: 1 changed."
    assert shown.endswith("\n3 claims are as before. Of these 1 falls over the pool of today: two-small.\n")

    head, yard = text.split("- key: terminal-yard")
    path.write_text(head + "- key: terminal-yard" + yard.replace("size: small", "size: large"), encoding="utf-8")
    shown = run_corpus("diff", str(root), str(later)).stdout
    assert shown.splitlines()[0] == "papers: 1 changed; 1 claim holds today again."
    assert "  two-small: published pool: holds; today: holds. Two gardens are small.\n" in shown
    document = json.loads(run_corpus("diff", str(root), str(later), "--format", "json").stdout)
    assert document["claims"]["changed"][0]["pools"]["today"] == {
        "before": False, "after": True, "found": "2", "falls_by": []
    }  # fmt: skip


def test_a_state_without_the_list_is_judged_by_that_of_the_other(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root, tmp_path / "earlier")
    (tmp_path / "earlier" / "data" / "published.yaml").unlink()
    shown = run_corpus("diff", str(tmp_path / "earlier"), str(root)).stdout

    assert shown.splitlines()[0] == "published: 4 added."
    assert "Published added\n  data/published.yaml\n    day: 2023-12-31\n" in shown
