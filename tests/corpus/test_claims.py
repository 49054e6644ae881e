"""Claims: read strictly, held against the records, shown with what is behind them and against them."""

import json
from pathlib import Path

import pytest

import orchtrace_corpus as oc
from orchtrace_corpus.corpus.analysis import claims as core
from orchtrace_corpus.corpus.analysis.stress import causes, compare_readings
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.claim_file import ClaimFile
from tests.conftest import TOY, run_toy
from tests.corpus.files import pool_of, run_in, write_data

END = "  boundary: Gardens of the toy corpus only.\n  source: https://example.org/claims\n"
CLAIMS = f"""\
- id: two-small-or-more
  claim: At least two gardens are small.
  where: {{size: small}}
  expect: {{at_least: 2}}
{END}
- id: watered
  claim: Two gardens are watered, one of them daily.
  scope: {{"added<=": "2023-12-31"}}
  where: {{water: [daily, weekly]}}
  expect: {{keys: [rose-garden, mixed-borders]}}
  readings:
    - {{name: strict, keys: [rose-garden], why: It is watered every day.}}
  counter:
    - {{rows: [mixed-borders], note: A week is long in summer., strength: weak, source: A gardener.}}
{END}"""
DISPUTES = """\
- record: mixed-borders
  tag: water
  stands: weekly
  readings: {weekly: the gardener, none: a neighbour}
  why: The gardener knows.
  source: https://example.org/quarrel
"""


@pytest.fixture
def root(root: Path) -> Path:
    write_data(root, claims=CLAIMS, disputes=DISPUTES)
    return root


def read(text: str) -> ClaimFile:
    return store.CorpusFiles("nowhere", {store.CLAIMS: text.encode()}).claims


def claim(expect: str, more: str = "") -> str:
    return f"- id: one\n  claim: It is so.\n{more}  expect: {expect}\n{END}"


def verdict(expect: str, more: str = "") -> core.Verdict:
    file = read(claim(expect, more))
    assert file.findings == ()
    return core.evaluate(file.claims, pool_of(TOY))[0]


def wrong(text: str) -> list[str]:
    """The codes, places and messages of what is wrong with claims about the toy corpus."""
    found = core.check(read(text), pool_of(TOY))
    return [f"{one.code} {one.location.line}:{one.location.column} {one.message}" for one in found]


# What a claim can expect

SMALL = "  where: {size: small}\n"


@pytest.mark.parametrize(
    ("expect", "more", "holds", "expected", "found"),
    [
        ("{count: 4}", "", True, "4", "4"),
        ("{count: 3}", "", False, "3", "4"),
        ("{at_least: 3}", SMALL, True, "at least 3", "3"),
        ("{at_most: 2}", SMALL, False, "at most 2", "3"),
        ("{at_least: 3, at_most: 3}", SMALL, True, "3", "3"),
        ("{at_least: 1, at_most: 2}", SMALL, False, "at least 1, at most 2", "3"),
        ("empty", "  where: {style: gravel}\n", True, "none", "0"),
        ("empty", SMALL, False, "none", "3"),
        ("{share: {at_most: 75%}}", SMALL, True, "at most 75%", "3 of 4 (75.0%)"),
        ("{share: {at_most: 74.99%}}", SMALL, False, "at most 74.99%", "3 of 4 (75.0%)"),
        ("{share: {at_least: 75.5%}}", SMALL, False, "at least 75.5%", "3 of 4 (75.0%)"),
        ("{share: {at_least: 100%, of: {style!=: meadow}}}", SMALL, True, "at least 100%", "3 of 3 (100.0%)"),
        ("{share: {at_most: 10%, of: {style: gravel}}}", SMALL, False, "at most 10%", "no record to take a share of"),
        ("{keys: [long-grass]}", "  where: {size: large}\n", True, "long-grass", "long-grass"),
        (
            "{keys: [long-grass, gone]}",
            SMALL,
            False,
            "long-grass, gone",
            "without long-grass, gone; also rose-garden, mixed-borders, terminal-yard",
        ),
        (
            "{by: style, counts: {formal: 1, gravel: 0, NA: 1}}",
            "",
            True,
            "formal 1, gravel 0, NA 1",
            "formal 1, gravel 0, NA 1",
        ),
        (
            "{by: style, counts: {formal: 1, meadow: 2}}",
            "",
            False,
            "formal 1, meadow 2",
            "meadow 1; the rest as expected",
        ),
        ("{by: tools, counts: {spade: 1, rake: 1, NA: 1}}", "", True, "spade 1, rake 1, NA 1", "spade 1, rake 1, NA 1"),
        (
            "{by: water, values: {rose-garden: daily}}",
            "",
            True,
            "rose-garden daily",
            "rose-garden daily",
        ),
        (
            "{by: water, values: {rose-garden: weekly, long-grass: daily, gone: daily, mixed-borders: weekly}}",
            "",
            False,
            "rose-garden weekly, long-grass daily, gone daily, mixed-borders weekly",
            "rose-garden daily, long-grass without a value, gone not among the rows; the rest as expected",
        ),
        ("{count: 2}", "  over: exclusions\n", True, "2", "2"),
        (
            "{count: 5}",
            '  over: [papers, exclusions]\n  scope: {"added<=": "2023-03-01", "screened!=": "1999-01-01"}\n',
            True,
            "5",
            "5",
        ),
    ],
)
def test_expectations(expect: str, more: str, holds: bool, expected: str, found: str) -> None:
    told = verdict(expect, more)

    assert (told.holds, told.expected, told.found) == (holds, expected, found)


def test_the_rows_behind_a_claim_are_those_that_pass_its_filters() -> None:
    assert verdict("{at_least: 1}", SMALL).rows == ("rose-garden", "mixed-borders", "terminal-yard")
    assert verdict("{share: {at_most: 99%, of: {care: weekly}}}", SMALL).rows == (
        "rose-garden",
        "mixed-borders",
        "terminal-yard",
    )
    assert verdict("{by: water, values: {rose-garden: daily}}").rows == ("rose-garden",)


def test_a_later_record_breaks_no_claim_of_an_earlier_scope(root: Path) -> None:
    papers = root / "data" / "papers.yaml"
    text = papers.read_text(encoding="utf-8")
    first = text[text.index("- key: mixed-borders") : text.index("- key: terminal-yard")]
    later = (
        first.replace("mixed-borders", "later").replace("Borders without Lines", "Later").replace("/borders", "/later")
    )
    papers.write_text(text.rstrip("\n") + "\n\n" + later.replace("2023-06-07", "2024-06-07"), encoding="utf-8")

    assert run_in(root, "claims").code == 0


# What is wrong with a file of claims


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        (claim("{count: 4}", "  boundry: x\n"), ["F102 3:3 unknown field 'boundry' (did you mean 'boundary'?)"]),
        (
            "- id: one\n  claim: It is so.\n",
            [f"F101 1:3 missing field '{n}'" for n in ("expect", "boundary", "source")],
        ),
        (
            claim("{count: 4}", "  where: {stile: formal}\n"),
            ["C102 3:11 unknown field 'stile' (did you mean 'title'? allowed: key,"],
        ),
        (
            claim("{count: 4}", "  scope: {style: formel}\n"),
            [
                "C102 3:11 style has no value 'formel' (did you mean 'formal'? allowed: formal, cottage, meadow, gravel, NA)"
            ],
        ),
        (
            claim("{share: {at_most: 5%, of: {tyle: x}}}"),
            ["C102 3:38 unknown field 'tyle' (did you mean 'style'? allowed: key,"],
        ),
        (
            claim("{count: 4}", "  over: [papers, exclusions]\n  where: {stagy: gate}\n"),
            ["C102 4:11 unknown field 'stagy' ("],
        ),
        (
            claim("{by: stile, counts: {formal: 1}}"),
            ["C102 3:11 unknown field 'stile' (did you mean 'title'? allowed: key,"],
        ),
        (claim("{by: style, counts: {formel: 1}}"), ["C102 3:11 style has no value 'formel' (did you mean 'formal'?"]),
        (claim("{by: water, values: {rose-garden: hourly}}"), ["C102 3:11 water has no value 'hourly'"]),
        (claim("{by: style}"), ["C102 3:11 'expect' must be the word 'empty' where there must be none, or a mapping "]),
        (claim("nothing"), ["F103 3:11 'expect' must be the word 'empty' where there must be none, or a mapping "]),
        (claim("{}"), ["C102 3:11 'expect' must be the word 'empty' where there must be none, or a mapping "]),
        (claim("{count: -1}"), ["C102 3:19 '-1' is not a number of records: write digits"]),
        (claim("{share: {at_most: 10}}"), ["C102 3:29 '10' is not a percentage: write 10%, or 2.5%"]),
        (claim("{share: {at_most: 100.01%}}"), ["C102 3:29 '100.01%' is not a percentage"]),
        (
            claim("{share: {of: {style: formal}}}"),
            ["F101 3:19 missing field 'at_least' or 'at_most', which bounds the share"],
        ),
        (claim("{by: style, counts: {}}"), ["F103 3:31 'counts' must be a mapping such as {one: ..., two: ...}"]),
        (
            claim("{count: 4}", "  over: people\n"),
            ["C102 3:9 unknown kind of record 'people' (allowed: papers, exclusions, scale)"],
        ),
        (
            claim("{count: 4}", "  counter:\n    - {note: No., strength: huge, source: Somebody.}\n"),
            ["C102 4:29 unknown strength 'huge' (allowed: weak, moderate, strong)"],
        ),
        (
            claim(
                "{count: 4}", "  counter:\n    - {rows: [rose-garden, gone], note: No., strength: weak, source: He.}\n"
            ),
            ["C103 4:28 there is no record 'gone'"],
        ),
        (
            claim("{count: 3}", SMALL + "  readings:\n    - {name: strict, keys: [long-grass], why: So.}\n"),
            ["C104 5:28 reading 'strict' names 'long-grass', which the claim does not count"],
        ),
        (
            claim("{count: 4}") + claim("{count: 4}"),
            ["C105 6:7 claim id 'one' is used twice; give each its own"],
        ),
        (claim("{count: 3}"), ["C101 2:10 claim fails: It is so. Expected: 3; found: 4"]),
        ("one: two\n", ["F103 1:1 expected a list of records, each beginning with '- '"]),
    ],
)
def test_findings_of_claims(text: str, findings: list[str]) -> None:
    found = wrong(text)

    assert len(found) == len(findings), found
    for told, beginning in zip(found, findings, strict=True):
        assert told.startswith(beginning)


def test_text_from_outside_cannot_steer_the_terminal() -> None:
    found = wrong(claim("{count: 4}", '  where: {"sty\\u001ble": formal}\n'))

    assert found[0].startswith("C102 3:11 'sty\\x1ble' is not a filter")
    assert wrong(claim('{by: title, counts: {"\\x1b[31m": 0}}'))[0].startswith(
        "M101 3:32 'a name in counts' holds the "
    )


def test_a_filter_with_control_characters_is_shown_escaped(root: Path) -> None:
    text = claim("empty", '  where: {"title~": "\\x1b[31m"}\n')
    (root / "data" / "claims.yaml").write_text(text, encoding="utf-8")

    assert "where     title~\\x1b[31m\n" in run_in(root, "claims", "one").stdout


# The command


def test_an_overview_of_all_claims(root: Path) -> None:
    assert run_in(root, "claims") == (
        0,
        "claim              verdict  rows  contested  sentence\n"
        "watered            holds       2          1  Two gardens are watered, one of them daily.\n"
        "two-small-or-more  holds       3          0  At least two gardens are small.\n"
        "2 claims hold\n",
        "",
    )


def test_one_claim_in_full(root: Path) -> None:
    assert run_in(root, "claims", "watered").stdout == (
        "watered  holds\n"
        "Two gardens are watered, one of them daily.\n"
        "expected    rose-garden, mixed-borders\n"
        "found       rose-garden, mixed-borders\n"
        "scope       added<=2023-12-31\n"
        "where       water=daily,weekly\n"
        "rows (2)    rose-garden, mixed-borders (contested)\n"
        "strict (1)  rose-garden: It is watered every day.\n"
        "boundary    Gardens of the toy corpus only.\n"
        "against     weak; mixed-borders: A week is long in summer. (A gardener)\n"
        "source      https://example.org/claims\n"
    )


def test_one_claim_in_full_under_stress(root: Path) -> None:
    lines = run_in(root, "claims", "watered", "--stress").stdout.splitlines()

    assert lines[-4:] == [
        "breaks by      1 change: mixed-borders: water read as none",
        "disputes       1 breaks it alone: mixed-borders: water read as none; all at once break it",
        "near misses    no near miss concerns it",
        "rows left out  any of 2 breaks it: rose-garden, mixed-borders",
    ]


def test_all_claims_under_stress(root: Path) -> None:
    assert run_in(root, "claims", "--stress") == (
        0,
        """\
claim              fewest  disputes  near misses  rows
watered            1       1         -            any
two-small-or-more  2       -         -            none
fewest: the changes that it takes to break the claim. disputes: those that break
it alone, read the other way; all: only all at once. near misses, rows: those
that break it taken in or left out; any: each. corpus claims ID --stress: which.
""",
        "",
    )


MANY = "".join(claim("{at_least: 1}").replace("id: one", f"id: one-{number:02}") for number in range(20))
"""Claims of which there is nothing to say, as many as fill a screen."""


def test_a_long_list_leaves_out_claims_of_which_there_is_nothing_to_say(root: Path) -> None:
    (root / "data" / "claims.yaml").write_text(f"{MANY}\n{CLAIMS}\n{claim('{count: 3}')}", encoding="utf-8")

    assert run_in(root, "claims").stdout == (
        """\
claim    verdict  rows  contested
one      fails       4          0
watered  holds       2          1
one: expected 3; found 4
1 of 23 claims fails: one
21 others hold, and no reading on record contests them; --all shows them
corpus claims ID shows a claim with its sentence
"""
    )
    whole = run_in(root, "claims", "--all").stdout.splitlines()
    assert [line.split()[0] for line in whole[:6]] == ["claim", "one", "watered", "one-00", "one-01", "one-02"]
    assert len(run_in(root, "claims", "--format", "csv").stdout.splitlines()) == 24
    assert len(json.loads(run_in(root, "claims", "--format", "json").stdout)["claims"]) == 23


def test_a_long_list_under_stress_leaves_out_what_any_record_breaks(root: Path) -> None:
    single = MANY.replace("{at_least: 1}", "{count: 4}")
    (root / "data" / "claims.yaml").write_text(f"{single}\n{CLAIMS}", encoding="utf-8")

    assert run_in(root, "claims", "--stress").stdout.splitlines()[:4] == [
        "claim              fewest  disputes  near misses  rows",
        "watered            1       1         -            any",
        "two-small-or-more  2       -         -            none",
        "20 others break by any one record, and by no dispute; --all shows them",
    ]
    assert "one-19             1       -         -            any" in run_in(root, "claims", "--stress", "--all").stdout


def test_claims_as_markdown(root: Path) -> None:
    overview, section = run_in(root, "claims", "-f", "markdown"), run_in(root, "claims", "watered", "-f", "markdown")

    assert overview.stdout.splitlines()[0].startswith("| claim             | verdict | rows | contested | sentence")
    assert section.stdout.startswith(
        "## watered: holds\n\nTwo gardens are watered, one of them daily.\n\n- **expected**: rose-garden, mixed-borders\n"
    )


def test_claims_as_csv(root: Path) -> None:
    lines = run_in(root, "claims", "-f", "csv").stdout.splitlines()

    assert lines[0] == "claim,holds,sentence,expected,found,rows,contested,boundary,source"
    assert lines[2].split(",")[:2] == ["watered", "yes"]
    assert "rose-garden ; mixed-borders,mixed-borders,Gardens" in lines[2]


def test_claims_as_json(root: Path) -> None:
    told = json.loads(run_in(root, "claims", "watered", "--stress", "-f", "json").stdout)

    assert {key: told[key] for key in ("schema", "version", "hold", "fail", "unread")} == {
        "schema": "orchtrace-corpus/claims",
        "version": 1,
        "hold": 1,
        "fail": 0,
        "unread": 0,
    }
    assert told["claims"][0] == {
        "id": "watered",
        "claim": "Two gardens are watered, one of them daily.",
        "holds": True,
        "expected": "rose-garden, mixed-borders",
        "found": "rose-garden, mixed-borders",
        "rows": ["rose-garden", "mixed-borders"],
        "contested": ["mixed-borders"],
        "pools": {"today": {"holds": True, "found": "rose-garden, mixed-borders", "falls_by": []}},
        "over": ["papers"],
        "scope": ["added<=2023-12-31"],
        "where": ["water=daily,weekly"],
        "of": [],
        "readings": [{"name": "strict", "keys": ["rose-garden"], "why": "It is watered every day.", "not_counted": []}],
        "boundary": "Gardens of the toy corpus only.",
        "counter": [
            {
                "note": "A week is long in summer.",
                "strength": "weak",
                "source": "A gardener.",
                "rows": ["mixed-borders"],
            }
        ],
        "source": "https://example.org/claims",
        "stress": {
            "disputes": {
                "alone": [{"kind": "flip", "record": "mixed-borders", "tag": "water", "value": "none"}],
                "all_break_it": True,
            },
            "near_misses": {"alone": [], "all_break_it": None},
            "left_out": {
                "alone": [{"kind": "leave out", "record": key} for key in ("rose-garden", "mixed-borders")],
            },
            "smallest": [{"kind": "flip", "record": "mixed-borders", "tag": "water", "value": "none"}],
            "exact": True,
        },
    }


def edited(root: Path, old: str, new: str, name: str = "papers.yaml") -> None:
    path = root / "data" / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_claim_that_fails_ends_with_1(root: Path) -> None:
    edited(root, "care: {water: daily, prune: weekly}", "care: {prune: weekly}")

    code, stdout, _ = run_in(root, "claims")

    assert code == 1
    assert stdout.splitlines()[-2:] == [
        "watered: expected rose-garden, mixed-borders; found without rose-garden",
        "1 of 2 claims fails: watered",
    ]
    assert run_in(root, "claims", "two-small-or-more").code == 1, "whatever is shown, its reading names a lost row"


def test_a_claim_that_fails_breaks_the_check(root: Path) -> None:
    run_in(root, "build")
    edited(root, "care: {water: daily, prune: weekly}", "care: {prune: weekly}")
    run_in(root, "build")

    code, stdout, _ = run_in(root, "check")

    assert code == 1
    assert "C101 claim fails: Two gardens are watered, one of them daily. Expected: rose-garden, " in stdout
    assert stdout.splitlines()[0].endswith("found: without rose-garden [watered]")
    assert "claims    failed 2 errors; to fix: see above\n" in stdout
    assert "disputes  ok     1, as in the data\n" in stdout


def test_claims_of_a_corpus_without_any(root: Path) -> None:
    result = run_toy("claims")

    assert (result.code, result.stdout) == (3, "")
    assert result.stderr.startswith("corpus: this corpus has no data/claims.yaml\n")
    assert "claims" not in run_toy("check").stdout


def test_a_claim_that_is_not_there(root: Path) -> None:
    assert run_in(root, "claims", "waterd") == (2, "", "corpus: there is no claim 'waterd' (did you mean 'watered'?)\n")


def test_a_file_of_claims_that_is_no_yaml(root: Path) -> None:
    (root / "data" / "claims.yaml").write_text("- id: [\n", encoding="utf-8")

    assert run_in(root, "claims").code == 3
    assert run_in(root, "check").code == 3


def test_claims_from_python(root: Path) -> None:
    told = {found.claim.id: (found.holds, found.contested) for found in oc.claims(str(root))}

    assert told == {"two-small-or-more": (True, ()), "watered": (True, ("mixed-borders",))}
    (root / "data" / "claims.yaml").write_text("- id: one\n", encoding="utf-8")
    with pytest.raises(oc.CorpusError, match="missing field 'claim'"):
        oc.claims(str(root))


@pytest.mark.parametrize(
    ("claim_text", "code"),
    [
        (claim("{count: 4}", "  where: size=small\n"), "F103"),
        (claim("none"), "F103"),
        (claim("{atleast: 2}"), "C102"),
        (claim("{share: 10%}"), "F103"),
        (claim("{count: 4}", "  were: {size: small}\n"), "F102"),
        (claim("{count: 4}", "  where: {size: small}\n  where: {size: large}\n"), "Y"),
    ],
)
def test_a_malformed_claim_is_neither_denied_nor_said_to_hold(root: Path, claim_text: str, code: str) -> None:
    (root / "data" / "claims.yaml").write_text(CLAIMS + claim_text, encoding="utf-8")
    ending = 3 if code == "Y" else 1

    asked, overview, told = run_in(root, "claims", "one"), run_in(root, "claims"), run_in(root, "claims", "-f", "json")

    assert (asked.code, asked.stdout) == (ending, "1 claim could not be read: one\n")
    assert f" {code}" in asked.stderr
    assert overview.code == ending
    assert overview.stdout.splitlines()[-2:] == ["2 claims hold", "1 claim could not be read: one"]
    content = json.loads(told.stdout)
    assert (content["hold"], content["fail"], content["unread"], len(content["claims"])) == (2, 0, 1, 2)
    shown = run_in(root, "claims", "watered", "one", "-f", "markdown").stdout
    assert shown.startswith("## watered: holds\n")
    assert shown.endswith("\n\n1 claim could not be read: one\n")


def test_a_claim_that_holds_and_names_what_is_not_there_is_told_apart(root: Path) -> None:
    edited(root, "rows: [mixed-borders], note", "rows: [mixed-bordres], note", "claims.yaml")

    overview, told = run_in(root, "claims"), run_in(root, "claims", "-f", "json")

    assert overview.code == 1
    assert overview.stdout.splitlines()[-2:] == [
        "2 claims hold",
        "1 of these holds, but names records that are not there, or are not counted: watered",
    ]
    assert "C103 there is no record 'mixed-bordres'" in overview.stderr
    assert json.loads(told.stdout)["flawed"] == ["watered"]


def test_ids_of_claims_are_never_cut(root: Path) -> None:
    from orchtrace_corpus.base.text.layout import plain
    from orchtrace_corpus.base.text.table import lines
    from orchtrace_corpus.corpus.analysis import claims as core
    from orchtrace_corpus.corpus.analysis.stress import stress
    from orchtrace_corpus.corpus.render import claims as render

    file, pool = store.CorpusFiles(str(root)).claims, pool_of(root)
    robust = {one.claim.id: one for one in stress(file.claims, pool, ())}
    table = render.overview(render.ClaimReport(core.evaluate(file.claims, pool), robust))

    shown = plain(lines(table, 42)).splitlines()

    assert max(map(len, shown[:3])) <= 42
    assert [line.split()[0] for line in shown[:3]] == ["claim", "two-small-or-more", "watered"]


def test_stress_says_fails_of_a_claim_that_fails_and_settled_of_a_dispute_that_is(root: Path) -> None:
    (root / "data" / "claims.yaml").write_text(CLAIMS + claim("{count: 3}"), encoding="utf-8")
    edited(root, "  why: The gardener knows.", "  state: settled\n  why: The gardener knows.", "disputes.yaml")

    lines = run_in(root, "claims", "--stress").stdout.splitlines()

    assert lines[:2] == [
        "claim              verdict  fewest  disputes  near misses  rows",
        "one                fails    fails   fails     fails        fails",
    ]
    assert lines[-1] == "fails: not tested, since the claim fails already."
    assert "breaks by      1 change: mixed-borders: water read as none (settled)" in (
        run_in(root, "claims", "watered", "--stress").stdout.splitlines()
    )


def test_a_share_is_shown_with_what_it_is_taken_of(root: Path) -> None:
    text = claim("{share: {at_least: 100%, of: {style!=: meadow}}}", SMALL)
    (root / "data" / "claims.yaml").write_text(text, encoding="utf-8")

    assert "share of  style!=meadow\n" in run_in(root, "claims", "one").stdout
    assert json.loads(run_in(root, "claims", "one", "-f", "json").stdout)["claims"][0]["of"] == ["style!=meadow"]


def test_disputes_about_a_record_are_in_every_format(root: Path) -> None:
    lines = run_in(root, "show", "mixed-borders", "-f", "csv").stdout.splitlines()

    assert "mixed-borders,disputes.1.stands,weekly" in lines
    assert "disputes" not in run_in(root, "show", "rose-garden", "-f", "csv").stdout


def test_claims_on_a_narrow_terminal(root: Path) -> None:
    from orchtrace_corpus.base.text.layout import plain
    from orchtrace_corpus.corpus.render import claims as render

    pool = pool_of(root)
    verdicts = core.evaluate(store.CorpusFiles(str(root)).claims.claims, pool)

    shown = plain(render.cards(render.ClaimReport(verdicts[1:2]), 40))

    assert max(len(line) for line in shown.splitlines()) <= 40
    assert "rows (2)    rose-garden, mixed-borders\n" in shown


@pytest.mark.parametrize("expect", ["{by: style, counts: {formel: 1}}", "{by: stile, counts: {formal: 1}}"])
def test_a_claim_that_cannot_be_evaluated_does_not_hold(expect: str) -> None:
    judged = core.evaluate(read(claim(expect)).claims, pool_of(TOY))[0]

    assert (judged.holds, bool(judged.problem), judged.rows, judged.pools) == (False, True, (), {})
    assert judged.found == f"cannot be evaluated: {judged.problem}"


# Agreement of readers

ONE = "key,style,size\nrose-garden,formal,small\nlong-grass,meadow,small\nmixed-borders,,small\n"
OTHER = "key,size,style,notes\nmixed-borders,large,gravel,seen\nrose-garden,small,cottage,\nlong-grass,small,,\n"


def agreement(root: Path, expect: str, more: str = "") -> core.Verdict:
    folder = root / "data" / "audits"
    folder.mkdir(exist_ok=True)
    for name, text in (("one", ONE), ("other", OTHER)):
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    file = store.CorpusFiles(str(root), {store.CLAIMS: claim(expect, more).encode()}).claims
    assert file.findings == ()
    return core.evaluate(file.claims, pool_of(root))[0]


SHEET = "sheets: [data/audits/one.csv]"
BOTH = "sheets: [data/audits/one.csv, data/audits/other.csv]"


@pytest.mark.parametrize(
    ("expect", "more", "found"),
    [
        (f"{{{SHEET}, agreement: {{style: 2 of 2, size: 2 of 3}}}}", "", (True, "style 2 of 2, size 2 of 3")),
        (f"{{{SHEET}, agreement: 4 of 5}}", "", (True, "4 of 5")),
        (f"{{{SHEET}, agreement: {{style: 2 of 3}}}}", "", (False, "style 2 of 2")),
        (f"{{{SHEET}, agreement: 3 of 3}}", "  where: {style: [formal, NA], size: small}\n", (False, "2 of 2")),
        (f"{{{BOTH}, agreement: 2 of 4}}", "", (True, "2 of 4")),
        (f"{{{BOTH}, agreement: {{size: 2 of 3, style: 1 of 1}}}}", "", (False, "size 2 of 3, style 0 of 1")),
        (f"{{{BOTH}, agreement: {{water: 0 of 0}}}}", "", (True, "water 0 of 0")),
    ],
)
def test_a_claim_over_the_agreement_of_readers(root: Path, expect: str, more: str, found: tuple[bool, str]) -> None:
    one = agreement(root, expect, more)

    assert (one.problem, (one.holds, one.found)) == ("", found)


def test_a_claim_over_agreement_counts_the_papers_that_were_coded(root: Path) -> None:
    one = agreement(root, f"{{{SHEET}, agreement: {{style: 2 of 2}}}}")

    assert (one.rows, one.expected) == (("rose-garden", "long-grass"), "style 2 of 2")


def test_a_dispute_about_a_compared_tag_is_one_about_the_claim(root: Path) -> None:
    agreement(root, f"{{{SHEET}, agreement: {{size: 2 of 3}}}}")
    disputed = DISPUTES.replace("tag: water", "tag: size").replace("weekly", "small").replace("none: a", "large: a")
    (root / "data" / "disputes.yaml").write_text(disputed, encoding="utf-8")
    text = claim(f"{{{SHEET}, agreement: {{size: 2 of 3}}}}")
    (root / "data" / "claims.yaml").write_text(text, encoding="utf-8")

    told = json.loads(run_in(root, "claims", "one", "--stress", "-f", "json").stdout)["claims"][0]

    assert told["contested"] == ["mixed-borders"]
    assert told["stress"]["smallest"] == [
        {"kind": "flip", "record": "mixed-borders", "tag": "size", "value": "large"},
    ]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (claim("{sheets: [data/audits/gone.csv], agreement: 1 of 2}"), "cannot read the sheet 'data/audits/gone.csv'"),
        (claim(f"{{{SHEET}, agreement: {{stile: 1 of 2}}}}"), "'stile' cannot be coded (did you mean 'style'?"),
        (claim(f"{{{SHEET}, agreement: most}}"), "'most' says no agreement: write 31 of 32"),
        (claim("{sheets: [a, b, c], agreement: 1 of 2}"), "agreement is between two readers: name one sheet, or two"),
        (claim("{sheets: [../a.csv], agreement: 1 of 2}"), "'../a.csv' is not a path below the corpus, such as data/"),
        (
            claim(f"{{{SHEET}, agreement: 1 of 2}}", "  over: exclusions\n"),
            "readers agree on papers: leave 'over' out",
        ),
        (claim("{sheets: [data/audits/bad.csv], agreement: 1 of 2}"), "data/audits/bad.csv:2: unknown style 'formel'"),
    ],
)
def test_what_is_wrong_with_a_claim_over_agreement(root: Path, text: str, finding: str) -> None:
    agreement(root, f"{{{SHEET}, agreement: 4 of 5}}")
    (root / "data" / "audits" / "bad.csv").write_text("key,style\nrose-garden,formel\n", encoding="utf-8")

    found = core.check(store.CorpusFiles(str(root), {store.CLAIMS: text.encode()}).claims, pool_of(root))

    assert [(one.code, one.message.startswith(finding)) for one in found] == [("C102", True)], found


def test_a_claim_names_every_wrong_line_of_its_sheet_at_once(root: Path) -> None:
    text = "key,style\nrose-garden,formel\nlong-grass,meadow\nmixed-borders,formel\nlong-grass,formal\n"
    (root / "data" / "audits").mkdir(exist_ok=True)
    (root / "data" / "audits" / "bad.csv").write_text(text, encoding="utf-8")
    file = store.CorpusFiles(
        str(root), {store.CLAIMS: claim("{sheets: [data/audits/bad.csv], agreement: 1 of 2}").encode()}
    ).claims

    (found,) = core.check(file, pool_of(root))

    allowed = "formal, cottage, meadow, gravel, NA"
    assert found.message == (
        f"data/audits/bad.csv:2, 4: unknown style 'formel' (did you mean 'formal'? allowed: {allowed}); "
        "data/audits/bad.csv:5: 'long-grass' is there twice; keep one row"
    )


def test_a_coded_record_that_is_gone_makes_cells_fewer_and_is_no_mistake_of_the_claim(root: Path) -> None:
    text = claim(f"{{{SHEET}, agreement: 4 of 5}}")
    agreement(root, f"{{{SHEET}, agreement: 4 of 5}}")
    pool = pool_of(root)
    fewer = pool._replace(papers=tuple(paper for paper in pool.papers if paper.key != "long-grass"))

    (found,) = core.evaluate(store.CorpusFiles(str(root), {store.CLAIMS: text.encode()}).claims.claims, fewer)

    assert (found.problem, found.holds, found.found) == ("", False, "3 of 3")


# Claims over scale

OBSERVATIONS = """\
- system: Park
  group: deployment
  record: long-grass
  quantity: beds
  value: "<=300"
  unit: flower beds
  evidence: vendor_copy
  sources: [https://example.org/park, https://example.com/copy]
  verified: false
- system: Four Beds
  group: academic
  record: rose-garden
  quantity: beds
  phase: training
  value: 4-6
  unit: beds
  evidence: paper
  sources: [https://example.org/four]
  verified: true
- system: Allotment
  group: academic
  quantity: beds
  value: unknown
  unit: beds
  evidence: third_party
  sources: [https://example.org/allotment]
  verified: false
"""

PUBLISHED = """\
day: "2023-12-31"
source: https://example.org/published
papers: [rose-garden]
exclusions: [E001]
"""


def over_scale(root: Path, expect: str, more: str = "") -> core.Verdict:
    (root / "data" / "scale.yaml").write_text(OBSERVATIONS, encoding="utf-8")
    (root / "data" / "claims.yaml").write_text(claim(expect, f"  over: scale\n{more}"), encoding="utf-8")
    files = store.CorpusFiles(str(root))
    assert files.claims.findings == ()
    return core.evaluate(files.claims.claims, files.pool, files.disputes.items, ())[0]


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("{group: academic}", ("Four Beds: beds, training", "Allotment: beds")),
        ('{"highest>": "5"}', ("Park: beds", "Four Beds: beds, training")),
        ('{"lowest>=": "5"}', ("Park: beds",)),
        ('{highest: ""}', ("Allotment: beds",)),
        ("{limit: true}", ("Park: beds",)),
        ("{phase: training, verified: true}", ("Four Beds: beds, training",)),
        ("{evidence: [vendor_copy, third_party]}", ("Park: beds", "Allotment: beds")),
        ("{published: yes}", ("Four Beds: beds, training",)),
        ("{record: long-grass, unit~: FLOWER}", ("Park: beds",)),
    ],
)
def test_a_claim_over_scale_counts_observations(root: Path, where: str, rows: tuple[str, ...]) -> None:
    (root / "data" / "published.yaml").write_text(PUBLISHED, encoding="utf-8")
    judged = over_scale(root, f"{{count: {len(rows)}}}", f"  where: {where}\n")
    assert (judged.holds, judged.rows) == (True, rows)


def test_a_claim_over_published_scale_is_judged_over_every_pool(root: Path) -> None:
    (root / "data" / "published.yaml").write_text(PUBLISHED, encoding="utf-8")
    judged = over_scale(root, "empty", '  scope: {published: yes}\n  where: {"highest>": "20"}\n')
    assert {name.value: (pool.holds, pool.found, pool.falls_by) for name, pool in judged.pools.items()} == {
        "published": (True, "0", ()),
        "today": (False, "1", ("Park: beds",)),
        "candidates": (False, "1", ("Park: beds",)),
    }
    compared = compare_readings([judged.claim], pool_of(root), store.CorpusFiles(str(root)).disputes.items)
    assert compared == {"one": (True, ())}


def test_what_breaks_a_claim_over_scale_is_an_observation_left_out(root: Path) -> None:
    over_scale(root, "{at_least: 1}", '  where: {"highest>": "20"}\n')
    result = run_in(root, "claims", "one", "--stress")
    assert (result.code, result.stdout.splitlines()[-5:]) == (
        0,
        [
            "source         https://example.org/claims",
            "breaks by      1 change: Park: beds left out",
            "disputes       no dispute concerns it",
            "near misses    no near miss concerns it",
            "rows left out  any of 1 breaks it: Park: beds",
        ],
    )


def test_what_is_wrong_with_a_claim_over_scale_is_found(root: Path) -> None:
    judged = over_scale(root, "{at_least: 1}", "  where: {sise: small}\n")
    assert not judged.holds
    assert judged.problem.startswith("unknown field 'sise'")


def test_counter_evidence_may_name_observations(root: Path) -> None:
    counter = (
        '  counter:\n    - {rows: ["Park: beds", "Pond: beds"], note: A limit., strength: weak, source: A gardener.}\n'
    )
    over_scale(root, "{at_least: 1}", counter)
    files = store.CorpusFiles(str(root))
    assert [(one.code, one.message) for one in core.check(files.claims, files.pool)] == [
        ("C103", "there is no record 'Pond: beds'")
    ]


def test_candidates_break_no_claim_over_scale(root: Path) -> None:
    judged = over_scale(root, "{at_least: 1}")
    assert causes([judged], pool_of(root), ()) == ()


def test_the_numbers_name_the_claims_about_them(root: Path) -> None:
    over_scale(root, "{at_least: 1}")
    assert run_in(root, "scale").stderr == "Claims about these numbers: corpus claims one\n"
    assert run_in(root, "scale", "--format", "json").stderr == ""
