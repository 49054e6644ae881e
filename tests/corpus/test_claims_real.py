"""The claims and disputes of this repository: true, complete, and each claim broken by one edit of the data."""

import csv
import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from orchtrace_corpus.base.findings import RULES, explanation
from orchtrace_corpus.corpus.analysis import claims as core
from orchtrace_corpus.corpus.analysis.stress import Robustness, stress
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.model import disputes, store
from orchtrace_corpus.corpus.model.claim_file import _CLAIM, Agreement, Counts, Number, Over, PoolName
from orchtrace_corpus.corpus.model.disputes import Dispute
from orchtrace_corpus.corpus.model.records import Entries, Pool
from orchtrace_corpus.corpus.render import schema
from tests.conftest import ROOT, run_corpus
from tests.corpus.changed_pools import apply_changes
from tests.corpus.test_schema import as_editors_read
from tests.effort import assert_grows, mostly_slow

FILE = store.CorpusFiles(str(ROOT)).claims
CLAIMS = {claim.id: claim for claim in FILE.claims}
GUIDE = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pool() -> Pool:
    found = store.CorpusFiles(str(ROOT)).loaded.pool
    assert found is not None
    return found


@pytest.fixture(scope="module")
def recorded(pool: Pool) -> Entries[Dispute]:
    return store.CorpusFiles(str(ROOT)).disputes


def test_all_claims_hold_and_all_disputes_are_about_what_the_data_says(pool: Pool, recorded: Entries[Dispute]) -> None:
    assert core.check(FILE, pool) == ()
    assert disputes.check(recorded, pool) == ()
    assert run_corpus("--root", str(ROOT), "claims").code == 0


def test_every_claim_is_about_the_published_state() -> None:
    for claim in CLAIMS.values():
        scope = {condition.field: condition.alternatives for condition in claim.scope}
        assert scope == {"published": ("yes",)}, claim.id


def test_every_claim_but_counts_is_judged_over_the_pool_of_today_too(pool: Pool) -> None:
    published = pool._replace(papers=tuple(paper for paper in pool.papers if paper.published))
    for verdict in core.evaluate(FILE.claims, published):
        is_count = isinstance(verdict.claim.expect, Number | Counts | Agreement) or verdict.claim.over != (Over.PAPERS,)
        is_empty = verdict.expected == "none"
        is_general = is_empty or verdict.claim.over == (Over.SCALE,)
        assert (verdict.claim.only is PoolName.PUBLISHED) == (is_count and not is_general), verdict.claim.id
        assert all(one.holds for one in verdict.pools.values())


# One edit of the data for each claim: record, text, other text. Without a record, the edit is made everywhere.
EDITS = {
    "papers-total": ("published", "  - magrpo\n", ""),
    "exclusions-total": ("published", "  - E001\n", ""),
    "audited-total": ("published", "  - E001\n", ""),
    "categories": ("magrpo", "category: rl_method", "category: framework"),
    "reward-families": ("magrpo", "reward_family: shared", "reward_family: individual"),
    "credit-units": ("magrpo", "credit_unit: agent", "credit_unit: role"),
    "topologies": ("magrpo", "topology: centralized", "topology: swarm"),
    "exclusion-stages": ("E001", "stage: abstract_screen", "stage: full_text_screen"),
    "near-misses": (
        "E003",
        "  near_miss: The survey tested its sparse-credit claims against taking this record in.\n",
        "",
    ),
    "message-credit-rows": ("c3", "credit_unit: message", "credit_unit: turn"),
    "message-credit-sparse": ("", "credit_unit: agent", "credit_unit: message"),
    "orchestrator-credit-rows": ("halo", "credit_unit: role", "credit_unit: orchestrator"),
    "orchestrator-credit-sparse": ("halo", "credit_unit: role", "credit_unit: orchestrator"),
    "no-token-tool-team-credit": ("magrpo", "credit_unit: agent", "credit_unit: team"),
    "no-tool-reward": ("magrpo", "reward_family: shared", "reward_family: tool"),
    "spawn-anchored": ("agentspawn", "{spawn: designed, ", "{"),
    "delegate-anchored": ("puppeteer", "delegate: explicit", "delegate: implicit"),
    "communicate-anchored": ("latentmas", "{communicate: designed, ", "{"),
    "aggregate-anchored": ("m-grpo", "aggregate: implicit", "aggregate: designed"),
    "no-own-signal-for-aggregating": ("m-grpo", "aggregate: implicit", "aggregate: explicit"),
    "stop-rows": ("m-grpo", "stop: implicit", "stop: designed"),
    "stop-no-objective": ("puppeteer", "stop: implicit", "stop: explicit"),
    "industry-rows": ("openai-codex", "category: industry", "category: framework"),
    "kimi-trained-orchestrator": ("kimi-k2-5", "rl: full", "rl: partial"),
    "kimi-k2-6-deployment-only": ("kimi-k2-6", "rl: partial", "rl: none"),
    "spot-check-agreement": ("c3", "credit_unit: message", "credit_unit: turn"),
    "source-readings-agreement": ("published", "  - matpo\n", ""),
    "benchmarks-with-orchestration": ("swe-bench2024", "sub_decisions: {}", "sub_decisions: {stop: designed}"),
    "no-benchmark-measures-all": (
        "multiagentbench2025",
        ", credit: partly}",
        ", safety: partly, parallel_efficiency: partly, credit: partly}",
    ),
    "no-benchmark-measures-parallelism": ("tamas", "parallel_efficiency: unclear", "parallel_efficiency: measured"),
    "experiments-up-to-20-agents": ("scale", 'value: "20"', 'value: "21"'),
    "reported-beyond-experiments": ("published", "  - kimi-k2-5\n  - kimi-k2-6\n", ""),
}


def test_every_claim_has_an_edit_that_breaks_it() -> None:
    assert set(EDITS) == set(CLAIMS)


def with_edit(name: str, folder: Path) -> None:
    """Copy the corpus to a folder, with the edit that breaks a claim."""
    shutil.copytree(ROOT / "data", folder / "data")
    record, old, new = EDITS[name]
    is_part = record not in ("", "published", "scale")
    file = "exclusions" if record.startswith("E") else "papers" if is_part or not record else record
    path = folder / "data" / f"{file}.yaml"
    text = path.read_text(encoding="utf-8")
    start = text.index(f"- {'id' if record.startswith('E') else 'key'}: {record}\n") if is_part else 0
    end = text.find("\n- ", start + 1) if is_part else len(text)
    block = text[start:end]
    assert old in block
    path.write_text(text[:start] + block.replace(old, new) + text[end:], encoding="utf-8")


@pytest.mark.parametrize("name", mostly_slow(EDITS, list(EDITS)[::3]))
def test_one_edit_breaks_the_claim(name: str, tmp_path: Path) -> None:
    with_edit(name, tmp_path)
    edited = store.CorpusFiles(str(tmp_path))
    (claim,) = (claim for claim in edited.claims.claims if claim.id == name)

    (verdict,) = core.evaluate([claim], edited.pool)

    assert (verdict.holds, verdict.problem) == (False, "")


@pytest.mark.parametrize(
    "name", mostly_slow(EDITS, ["papers-total", "near-misses", "message-credit-sparse", "spot-check-agreement"])
)
def test_check_names_the_claim_that_an_edit_breaks(name: str, tmp_path: Path) -> None:
    with_edit(name, tmp_path)

    code, stdout, _ = run_corpus("--root", str(tmp_path), "check")

    failing = [line for line in stdout.splitlines() if ": C101 " in line and line.endswith(f" [{name}]")]
    assert code == 1
    assert len(failing) == 1
    assert CLAIMS[name].claim in failing[0]


# Robustness


@pytest.fixture(scope="module")
def robust(pool: Pool, recorded: Entries[Dispute]) -> dict[str, Robustness]:
    return {found.claim.id: found for found in stress(FILE.claims, pool, recorded.items)}


def test_every_smallest_set_breaks_its_claim_and_nothing_in_it_is_idle(
    pool: Pool, robust: dict[str, Robustness]
) -> None:
    for name, found in robust.items():
        assert found.is_exact
        if found.claim.over == (Over.SCALE,):  # whose observations no change of the pool reaches
            continue
        assert found.smallest, name
        assert not core.evaluate([found.claim], apply_changes(pool, found.smallest))[0].holds
        for index in range(len(found.smallest)):
            fewer = (*found.smallest[:index], *found.smallest[index + 1 :])
            assert core.evaluate([found.claim], apply_changes(pool, fewer))[0].holds


def test_sparse_message_credit_takes_many_changes_and_no_reading_breaks_it(robust: dict[str, Robustness]) -> None:
    found = robust["message-credit-sparse"]

    assert 1 < len(found.smallest) <= 8
    assert (found.flips, found.near_misses, found.left_out) == ((), (), ())
    assert found.breaks_by_all_flips is False


def test_stopping_turns_on_its_contested_rows(robust: dict[str, Robustness]) -> None:
    found = robust["stop-no-objective"]

    assert {change.record for change in found.flips} >= {"puppeteer", "marsrl"}
    assert found.breaks_by_all_flips is True
    assert found.left_out == ()


def test_stress_takes_no_longer_than_some_dozens_of_plain_evaluations() -> None:
    def command(stress: int) -> Callable[[], object]:
        words = ["--root", str(ROOT), "claims", *["--stress"] * stress, "-f", "json"]
        return lambda: len(json.loads(run_corpus(*words).stdout)["claims"]) == len(CLAIMS) or pytest.fail("claims")

    assert_grows(command, 0, 1, 100)


# Disputes


def test_every_disagreement_of_the_two_codings_is_on_record(pool: Pool, recorded: Entries[Dispute]) -> None:
    folder = ROOT / "data" / "audits"
    sheets = []
    for number in (1, 2):
        with open(folder / f"sub-decisions-{number}.csv", encoding="utf-8", newline="") as file:
            sheets.append({row["key"]: row for row in csv.DictReader(file)})
    on_record = {dispute.id: dispute for dispute in recorded.items}
    differing = 0

    for key, first in sheets[0].items():
        for tag in ("spawn", "delegate", "communicate", "aggregate", "stop"):
            codes = (first[tag], sheets[1][key][tag])
            if codes[0] != codes[1]:
                differing += 1
                read = [reading.values for reading in on_record[f"{key}.{tag}"].readings]
                for code in codes:
                    assert ("explicit", "implicit") in read if code == "learned" else (code,) in read
    assert differing == 36


def test_rows_whose_stopping_may_be_learned_are_contested(pool: Pool, recorded: Entries[Dispute]) -> None:
    learned = Corpus(pool).where("stop=explicit,implicit", "added<=2026-05-04").papers

    assert {(paper.key, "stop") for paper in learned} <= disputes.contested_tags(recorded.items)


# The documents


@pytest.mark.parametrize("code", [code for code in RULES if code.startswith("C")])
def test_the_bad_excerpt_of_a_rule_raises_it_alone_and_the_good_one_nothing(code: str, pool: Pool) -> None:
    end = "  boundary: Here.\n  source: https://example.org/a\n"

    def raised(excerpt: str) -> set[str]:
        head, _, text = excerpt.partition("\n")
        if head == "# data/disputes.yaml":
            files = store.CorpusFiles(str(ROOT), {store.DISPUTES: text.encode()})
            return {finding.code for finding in disputes.check(files.disputes, pool, files.coding_rules)}
        records = [f"- id:{part}\n{end}" for part in f"\n{text}".split("\n- id:")[1:]]
        files = store.CorpusFiles("nowhere", {store.CLAIMS: "".join(records).encode()})
        return {finding.code for finding in core.check(files.claims, pool)}

    assert raised(explanation(code).bad) == {code}
    assert raised(explanation(code).good) == set()


def test_the_commands_in_the_guide_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    block = re.search(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
    assert block is not None

    for line in block[1].splitlines():
        assert run_corpus(*shlex.split(line)[1:]).code == 0, line


def test_the_examples_in_the_guide_are_valid(pool: Pool) -> None:
    claim, dispute = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)

    assert core.check(store.CorpusFiles("guide", {store.CLAIMS: claim.encode()}).claims, pool) == ()
    read = store.CorpusFiles(str(ROOT), {store.DISPUTES: dispute.encode()}).disputes
    assert disputes.check(read, pool) == ()
    for one in re.findall(r"^\| (`.+`[^|]*) \| ", GUIDE.split("| `expect` |")[1].split("\n\n")[0], re.MULTILINE):
        for form in re.findall(r"`(\{.+?\}|empty)`", one):
            text = f"- id: one\n  claim: So.\n  expect: {form}\n  boundary: So.\n  source: So.\n"
            file = store.CorpusFiles(str(ROOT), {store.CLAIMS: text.encode()}).claims
            assert {finding.code for finding in core.check(file, pool)} <= {"C101"}, form


def test_the_guide_names_every_field() -> None:
    tables = {part.split("\n", 1)[0]: part for part in GUIDE.split("\n## ")}

    def documented(section: str) -> dict[str, bool]:
        rows = re.findall(r"^\| `(\w+)` \| (yes|no) \|", tables[section], re.MULTILINE)
        return {name: needed == "yes" for name, needed in rows}

    assert documented("claims.yaml") == {name: name in _CLAIM.required for name in _CLAIM.decoders}
    required = {"record", "tag", "stands", "readings", "why", "source"}
    assert documented("disputes.yaml") == {
        name: name in required for name in (*required, "agreed", "state", "arguments")
    }


@pytest.mark.parametrize("name", ["claims", "disputes"])
def test_the_schema_is_valid_and_the_data_passes(name: str, pool: Pool) -> None:
    text = schema.data_schemas([store.data_file(name)], pool.taxonomy)[0]
    wanted = json.loads(text)
    Draft202012Validator.check_schema(wanted)
    data = as_editors_read(ROOT / "data" / f"{name}.yaml")

    assert list(Draft202012Validator(wanted).iter_errors(data)) == []
    assert (ROOT / "docs" / "schema" / f"{name}.schema.json").read_text(encoding="utf-8") == text
    broken = [{**data[0], "boundry": "x"}, {key: value for key, value in data[0].items() if key != "source"}]
    assert all(list(Draft202012Validator(wanted).iter_errors([record])) for record in broken)


def test_of_many_records_a_claim_names_the_contested() -> None:
    words = ("--root", str(ROOT), "claims", "credit-units")
    claim = json.loads(run_corpus(*words, "--format", "json").stdout)["claims"][0]

    shown = run_corpus(*words, "--format", "markdown").stdout
    line = next(line for line in shown.splitlines() if line.startswith("- **rows"))

    assert (len(claim["rows"]), len(claim["contested"]), claim["contested"][:2]) == (
        84,
        21,
        ["agent-lightning", "agentspawn"],
    )
    assert line == f"- **rows (84)**: contested: {', '.join(claim['contested'])}; all: --format json"
