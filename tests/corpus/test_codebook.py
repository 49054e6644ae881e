"""The codebook and the protocol: read strictly, held against the records, shown as pages and on the terminal."""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from orchtrace_corpus.base.errors import InvalidCorpusError
from orchtrace_corpus.corpus.checks import check
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.render.codebook import protocol_page
from orchtrace_corpus.corpus.render.schema import data_schemas
from tests.conftest import ROOT
from tests.corpus.files import run_in, write_data
from tests.corpus.test_schema import as_editors_read

CODEBOOK = """\
- tag: care
  rules: [Ask the gardener first., "Code what was seen, not what was said."]

- tag: water
  include: [Any watering by hand.]
  exclude: [Rain.]
  cases:
    - {record: rose-garden, value: daily, why: The gardener waters every day.}
    - {record: long-grass, value: none, why: Nobody waters *grass*.}

- tag: size
  rules: [Measure the ground.]
"""
PROTOCOL = """\
kind: A walk through gardens.
day: "2023-06-07"
source: https://example.org/walk
stage_field: stage
sources: [The guide book]
include:
  - {id: open, rule: It is open to visitors.}
exclude:
  - {id: shut, rule: It is a car park.}
stages:
  - {stage: gate, rule: It was shut.}
update: [Walk again next year.]
"""


@pytest.fixture
def root(root: Path) -> Path:
    """Add a codebook and a protocol to the toy corpus."""
    write_data(root, codebook=CODEBOOK, protocol=PROTOCOL)
    return root


def problems(root: Path, name: str, text: str) -> list[str]:
    """The findings of a file, by line and code, with their messages."""
    (root / "data" / f"{name}.yaml").write_text(text, encoding="utf-8")
    assert run_in(root, "check").code == 1
    findings = (finding for part in check(str(root)).parts for finding in part.findings)
    return [
        f"{one.location.line} {one.code} {one.message}"
        for one in findings
        if one.location.path.endswith(f"{name}.yaml")
    ]


def test_terms_shows_how_a_field_is_coded(root: Path) -> None:
    assert run_in(root, "terms", "water").stdout == (
        "Care\n"
        "term   code  label     count  definition\n"
        "water  C1    Watering      2  When to water.\n"
        "\n"
        "Care: levels\n"
        "level   label   definition\n"
        "daily   Daily   Every day.\n"
        "weekly  Weekly  Every week.\n"
        "\n"
        "How to code water\n"
        "include   Any watering by hand.\n"
        "exclude   Rain.\n"
        "case      rose-garden: daily. The gardener waters every day.\n"
        "case      long-grass: none. Nobody waters *grass*.\n"
        "\n"
        "How to code care\n"
        "rule 1    Ask the gardener first.\n"
        "rule 2    Code what was seen, not what was said.\n"
    )


def test_terms_of_a_decision_shows_the_rules_of_all_decisions_below_its_own(root: Path) -> None:
    rules = "\nHow to code care\nrule 1    Ask the gardener first.\nrule 2    Code what was seen, not what was said.\n"

    assert run_in(root, "terms", "water").stdout.endswith(f"Nobody waters *grass*.\n{rules}")
    assert run_in(root, "terms", "care").stdout.endswith(rules)
    assert "How to code water" not in run_in(root, "terms", "care").stdout


def test_a_term_or_a_code_is_shown_with_its_records_and_its_own_cases(root: Path) -> None:
    cases = "  cases:\n    - {record: rose-garden, value: small, why: Paced.}\n"
    cases += "    - {record: long-grass, value: large, why: Seen.}\n"
    (root / "data" / "codebook.yaml").write_text(CODEBOOK + cases, encoding="utf-8")

    assert run_in(root, "terms", "Small") == (
        0,
        "Size\n"
        "term   label  count  definition\n"
        "small  Small      3  Up to an acre.\n"
        "size=small: rose-garden, mixed-borders, terminal-yard\n"
        "\n"
        "How to code size\n"
        "rule 1    Measure the ground.\n"
        "case      rose-garden: small. Paced.\n",
        "",
    )
    assert run_in(root, "terms", "s2").stdout == (
        "Style\n"
        "term     code  label    count  definition\n"
        "cottage  S2    Cottage      1  Mixed borders.\n"
        "meadow   S2    Meadow       1  Long grass.\n"
        "style=cottage: mixed-borders\n"
        "style=meadow: long-grass\n"
    )
    assert run_in(root, "terms", "gate").stdout == (
        "Stage\nterm  label  count  definition\ngate  Gate       1  At the gate.\nstage=gate: E001\n"
    )
    assert json.loads(run_in(root, "terms", "small", "-f", "json").stdout)["size"] == [
        {"term": "small", "label": "Small", "count": 3, "definition": "Up to an acre."}
    ]


@pytest.mark.parametrize("name", ["gravl", "published"])
def test_what_is_neither_a_field_nor_a_term_is_refused(root: Path, name: str) -> None:
    result = run_in(root, "terms", name)

    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"corpus: unknown field or term '{name}' (")


def test_rule_10_of_the_sub_decisions_is_that_of_single_agents() -> None:
    pool = store.CorpusFiles(str(ROOT)).loaded.pool
    assert pool is not None
    rules = next(one.rules for one in store.CorpusFiles(str(ROOT)).codebook.require() if one.tag == "sub_decisions")

    assert rules[9].startswith("Surveys, benchmarks, single-agent papers")


def test_an_error_of_the_protocol_names_no_record(root: Path) -> None:
    path = root / "data" / "protocol.yaml"
    path.write_text(re.sub("^day: .*", 'day: "2024-05-99"', path.read_text(encoding="utf-8"), flags=re.M))

    shown = run_in(root, "check").stdout

    assert "F106 '2024-05-99' is not a day of the calendar\n" in shown
    assert re.search("^build     failed the protocol has errors: .*protocol.yaml:2:6: F106", shown, re.M)


def test_a_field_without_rules_shows_its_terms_alone(root: Path) -> None:
    assert "How to code" not in run_in(root, "terms", "style").stdout


def test_the_page_of_the_codebook_has_definitions_rules_and_cases(root: Path) -> None:
    assert run_in(root, "build").code == 0

    page = (root / "docs" / "codebook.md").read_text(encoding="utf-8")
    assert page.partition("## Size")[0] == (
        "# Codebook: A toy garden\n"
        "\n"
        "<!-- Generated from data/ by `corpus build`; do not edit. -->\n"
        "\n"
        "## Care\n"
        "\n"
        "Which care the garden gets, and how.\n"
        "\n"
        "| level  | meaning     |\n"
        "| ------ | ----------- |\n"
        "| daily  | Every day.  |\n"
        "| weekly | Every week. |\n"
        "\n"
        "A record that lacks a term has `none`: the decision does not arise.\n"
        "\n"
        "1. Ask the gardener first.\n"
        "2. Code what was seen, not what was said.\n"
        "\n"
        "### C1 Watering\n"
        "\n"
        "When to water.\n"
        "\n"
        "Include:\n"
        "\n"
        "- Any watering by hand.\n"
        "\n"
        "Exclude:\n"
        "\n"
        "- Rain.\n"
        "\n"
        "| record      | level | why                            |\n"
        "| ----------- | ----- | ------------------------------ |\n"
        "| rose-garden | daily | The gardener waters every day. |\n"
        "| long-grass  | none  | Nobody waters \\*grass\\*.       |\n"
        "\n"
    )
    assert "## Evidence level\n\nWhat was seen.\n" in page


def test_the_page_of_the_protocol(root: Path) -> None:
    assert run_in(root, "build").code == 0

    assert (root / "docs" / "protocol.md").read_text(encoding="utf-8") == (
        "# Protocol: A toy garden\n"
        "\n"
        "<!-- Generated from data/ by `corpus build`; do not edit. -->\n"
        "\n"
        "A walk through gardens. The protocol is of 2023-06-07: <https://example.org/walk>.\n"
        "\n"
        "## Sources\n"
        "\n"
        "- The guide book\n"
        "\n"
        "## Included\n"
        "\n"
        "A paper is included if at least one of these holds.\n"
        "\n"
        "- It is open to visitors.\n"
        "\n"
        "## Excluded\n"
        "\n"
        "A paper is excluded if it is only one of these.\n"
        "\n"
        "- It is a car park.\n"
        "\n"
        "## Screening\n"
        "\n"
        "| stage | a paper is excluded if |\n"
        "| ----- | ---------------------- |\n"
        "| Gate  | It was shut.           |\n"
        "\n"
        "## Updates\n"
        "\n"
        "- Walk again next year.\n"
    )


def test_the_page_speaks_of_a_published_pool_only_where_the_corpus_has_one() -> None:
    pool = store.CorpusFiles(str(ROOT)).loaded.pool
    assert pool is not None
    taxonomy = pool.taxonomy
    protocol = store.CorpusFiles(str(ROOT)).protocol.require()
    assert protocol is not None

    pages = [protocol_page(protocol, one).splitlines() for one in (taxonomy, taxonomy._replace(published=()))]

    assert [(one, other) for one, other in zip(*pages, strict=True) if one != other] == [
        (
            f"{protocol.kind} The published pool is of 2026-05-04: <https://arxiv.org/abs/2605.02801>.",
            f"{protocol.kind} The protocol is of 2026-05-04: <https://arxiv.org/abs/2605.02801>.",
        ),
        (
            "Terms as published. They are not query strings of one database.",
            "They are not query strings of one database.",
        ),
        (
            "In the search syntax of arXiv's API. `ours` marks a string of this project; the survey published none.",
            "In the search syntax of arXiv's API. `ours` marks a string of this project.",
        ),
    ]


def test_a_corpus_without_them_has_no_pages(root: Path) -> None:
    for name in ("codebook", "protocol"):
        (root / "data" / f"{name}.yaml").unlink()

    assert run_in(root, "build").code == 0
    assert not (root / "docs" / "codebook.md").exists()
    assert not (root / "docs" / "protocol.md").exists()


def test_all_mistakes_of_a_codebook_are_reported_at_their_places(root: Path) -> None:
    text = (
        "- tag: colour\n"
        "  rules: [Look.]\n"
        "- tag: water\n"
        "  cases:\n"
        "    - {record: rose-garden, value: weekly, why: x}\n"
        "    - {record: rose-gardn, value: daily, why: x}\n"
        "    - {record: long-grass, value: never, why: x}\n"
        "- tag: water\n"
        "  rules: []\n"
        "- tag: size\n"
        "  cases:\n"
        "    - {record: rose-garden, value: small}\n"
    )

    assert problems(root, "codebook", text) == [
        "1 V101 unknown axis or facet 'colour' (allowed: style, care, tools, size, water, prune)",
        "5 B104 'rose-garden' has water 'daily', not 'weekly'; change the record or the case",
        "6 B103 there is no paper 'rose-gardn' (did you mean 'rose-garden'?)",
        "7 B102 water has no value 'never' (allowed: daily, weekly, none)",
        "9 F104 'rules' is an empty list; name at least one",
        "12 F101 missing field 'why'",
    ]
    assert run_in(root, "terms", "water").code == 1


def test_all_mistakes_of_a_protocol_are_reported_at_their_places(root: Path) -> None:
    text = PROTOCOL.replace("stage: gate", "stage: roof").replace('"2023-06-07"', "June").replace("kind: A", "kin: A")

    assert problems(root, "protocol", text) == [
        "1 F102 unknown field 'kin' (did you mean 'kind'?)",
        "1 F101 missing field 'kind'",
        "2 F106 'June' is not a date: write YYYY-MM-DD",
        "11 V102 unknown term of stage_field 'roof' (allowed: gate, path)",
    ]


def test_a_query_of_no_family_is_reported(root: Path) -> None:
    families = 'families:\n  - {id: beds, label: Beds, terms: [bed]}\nqueries:\n  - {name: gate, family: bed, query: "all:x", by: ours}\n'

    assert problems(root, "protocol", PROTOCOL.replace("stages:", f"query_field: stage\n{families}stages:")) == [
        "14 B105 there is no family 'bed' (did you mean 'beds'? allowed: beds)"
    ]


def test_pages_are_not_made_from_a_file_with_mistakes(root: Path) -> None:
    (root / "data" / "codebook.yaml").write_text("- tag: colour\n", encoding="utf-8")
    pool = store.CorpusFiles(str(root)).loaded.pool
    assert pool is not None

    with pytest.raises(InvalidCorpusError, match="the codebook has errors"):
        store.CorpusFiles(str(root)).codebook.require()


@pytest.mark.parametrize("name", ["codebook", "protocol"])
def test_the_schema_is_valid_and_the_data_passes(name: str) -> None:
    pool = store.CorpusFiles(str(ROOT)).loaded.pool
    assert pool is not None
    schema = json.loads(data_schemas([store.data_file(name)], pool.taxonomy)[0])

    Draft202012Validator.check_schema(schema)
    assert list(Draft202012Validator(schema).iter_errors(as_editors_read(ROOT / "data" / f"{name}.yaml"))) == []


def test_every_name_of_a_query_in_the_log_has_a_query_and_a_family() -> None:
    pool = store.CorpusFiles(str(ROOT)).loaded.pool
    assert pool is not None
    protocol = store.CorpusFiles(str(ROOT)).protocol.require()
    assert protocol is not None
    names = next(facet for facet in pool.taxonomy.exclusions if facet.field == protocol.query_field).values

    assert len(protocol.families) == 7
    assert [query.name for query in protocol.queries] == list(names)
    assert {query.by for query in protocol.queries} == {"ours"}
    assert {query.family for query in protocol.queries} == {family.id for family in protocol.families}


def test_each_sub_decision_has_positive_and_negative_cases() -> None:
    pool = store.CorpusFiles(str(ROOT)).loaded.pool
    assert pool is not None
    codings = {coding.tag: coding for coding in store.CorpusFiles(str(ROOT)).codebook.require()}

    for term in ("spawn", "delegate", "communicate", "aggregate", "stop"):
        values = {case.value for case in codings[term].cases}
        assert "none" in values
        assert values - {"none"}
        assert codings[term].include
        assert codings[term].exclude
    for field in ("sub_decisions", "reward_family", "credit_unit", "topology"):
        assert codings[field].rules


def test_an_edit_tells_the_case_of_the_codebook_that_it_breaks(root: Path) -> None:
    path = root / "data" / "codebook.yaml"

    assert run_in(root, "tag", "long-grass", "water=weekly").stderr == (
        "wrote data/papers.yaml\n"
        "corpus: the edit breaks 1 case of the codebook: corpus check fails until that is fixed:\n"
        f"{path}:9:35: B104 'long-grass' has water 'weekly', not 'none'; change the record or the case [water]\n"
        "To fix: change the case in data/codebook.yaml, or the record.\n"
        "corpus build regenerates the rest; CONTRIBUTING.md says whether to commit it\n"
    )
