"""Second readings: the draw, the blinded sheet, what may be wrong with a sheet, and how far readers agree."""

import csv
import io
import json
import random
import re
import shlex
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.findings import RULES, Finding, explanation
from orchtrace_corpus.corpus.analysis import coding
from orchtrace_corpus.corpus.analysis.agreement import Agreement, compare
from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.coding import Column, Sheet, sample
from orchtrace_corpus.corpus.api import Corpus
from orchtrace_corpus.corpus.edit.tags import propose_disputes
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.disputes import Dispute, Reading, State
from tests.conftest import ROOT, TOY, run_corpus, run_toy

X = [Column("x", "x", ("0", "1", "2", "3", "4", "5", "a", "b", "c", "d", "e"))]
AUDITS = [str(ROOT / "data" / "audits" / f"sub-decisions-{number}.csv") for number in (1, 2)]


def sheets(*readings: str) -> list[Sheet]:
    """One sheet for each line of codes; `.` is not coded."""
    return [
        Sheet(f"reader {number}", {f"p{unit}": {"x": code} for unit, code in enumerate(line.split()) if code != "."})
        for number, line in enumerate(readings)
    ]


def coefficients(*readings: str) -> Agreement:
    return compare(sheets(*readings), X, resamples=0)[0]


def from_table(table: list[list[int]]) -> Agreement:
    pairs = [(i, j) for i, row in enumerate(table) for j, number in enumerate(row) for _ in range(number)]
    return coefficients(" ".join(str(i) for i, _ in pairs), " ".join(str(j) for _, j in pairs))


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        # Worked examples that textbooks and reference articles on kappa share.
        ([[20, 5], [10, 15]], 0.400),
        ([[45, 15], [25, 15]], 0.130),
        ([[25, 35], [5, 35]], 0.259),
    ],
)
def test_kappa_of_published_worked_examples(table: list[list[int]], kappa: float) -> None:
    assert from_table(table).kappa.value == pytest.approx(kappa, abs=0.0005)


@pytest.mark.parametrize(
    ("readings", "alpha"),
    [
        # K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011): sections A, B and C.
        (("0 1 0 0 0 0 0 0 1 0", "1 1 1 0 0 1 0 0 0 0"), 0.095),
        (("a a b b d c c c e d d a", "b a b b b c c c e d d d"), 0.692),
        (
            (
                "1 2 3 3 2 1 4 1 2 . . .",
                "1 2 3 3 2 2 4 1 2 5 . 3",
                ". 3 3 3 2 3 4 2 2 5 1 .",
                "1 2 3 3 2 4 4 1 2 5 1 .",
            ),
            0.743,
        ),
    ],
)
def test_alpha_of_published_worked_examples(readings: tuple[str, ...], alpha: float) -> None:
    assert coefficients(*readings).alpha.value == pytest.approx(alpha, abs=0.0005)


def test_kappa_is_for_two_readers() -> None:
    found = coefficients("a b", "a b", "a b")

    assert (found.kappa.value, found.kappa.reason) == (None, "kappa is for two readers; alpha takes any number")
    assert (found.observed, found.alpha.value) == (1.0, 1.0)


def test_where_only_one_code_occurs_no_coefficient_is_defined() -> None:
    found = coefficients("a a a", "a a a")

    assert (found.observed, found.kappa.value, found.alpha.value) == (1.0, None, None)
    assert "chance cannot be told from agreement" in found.alpha.reason


def defined_kappa(pairs: list[tuple[str, str]]) -> float:
    """Cohen's definition, spelled out."""
    n = len(pairs)
    observed = sum(a == b for a, b in pairs) / n
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    expected = sum(first[code] * second[code] for code in first) / n**2
    return (observed - expected) / (1 - expected)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=2, max_size=30))
def test_kappa_is_its_definition(pairs: list[tuple[str, str]]) -> None:
    found = coefficients(" ".join(a for a, _ in pairs), " ".join(b for _, b in pairs))

    if len({code for pair in pairs for code in pair}) > 1:
        assert found.kappa.value == pytest.approx(defined_kappa(pairs))
        assert found.alpha.value is not None
        assert found.alpha.value <= 1
    assert found.observed == sum(a == b for a, b in pairs) / len(pairs)
    assert len(found.disagreements) == sum(a != b for a, b in pairs)


def test_intervals_hold_the_estimate_and_follow_the_seed() -> None:
    readings = sheets("a a b b d c c c e d d a", "b a b b b c c c e d d d")
    one, again, other = (compare(readings, X, resamples=400, seed=seed)[0].kappa for seed in (1, 1, 2))

    assert one == again
    assert one != other
    assert one.low is not None
    assert one.high is not None
    assert one.value is not None
    assert one.low < one.value < one.high <= 1


def test_the_double_coding_of_the_sub_decisions_gives_the_published_kappas() -> None:
    result = run_corpus(
        "--root", str(ROOT), "audit", "compare", *AUDITS, "--merge", "learned=explicit,implicit", "--format", "json",
        "--resamples", "0",
    )  # fmt: skip

    assert result.code == 0
    document = json.loads(result.stdout)
    assert document["schema"] == "orchtrace-corpus/audit"
    assert [(one["field"], one["cells"], round(one["kappa"]["value"], 2)) for one in document["agreement"]] == [
        ("sub_decisions", 255, 0.73),
        ("spawn", 51, 0.84),
        ("delegate", 51, 0.83),
        ("communicate", 51, 0.79),
        ("aggregate", 51, 0.66),
        ("stop", 51, 0.39),
    ]
    assert len(document["disagreements"]) == 36


def filled(toy: Corpus, codes: dict[str, dict[str, str]] | None = None) -> str:
    """A sheet of the whole toy corpus, coded as the corpus is, or otherwise."""
    columns = coding.columns(toy.taxonomy)
    own = coding.tags_as_sheet(toy.papers, columns).codes
    text = io.StringIO()
    out = csv.DictWriter(text, ["key", *(column.name for column in columns)], lineterminator="\n")
    out.writeheader()
    for key, row in (codes or own).items():
        out.writerow({"key": key, **row})
    return text.getvalue()


def test_a_sheet_equal_to_the_corpus_agrees_wholly(toy: Corpus, tmp_path: Path) -> None:
    (tmp_path / "sheet.csv").write_text(filled(toy), encoding="utf-8")
    result = run_toy("audit", "compare", str(tmp_path / "sheet.csv"), "--format", "json", "--resamples", "0")

    agreements = json.loads(result.stdout)["agreement"]
    assert result.code == 0
    assert {one["observed"] for one in agreements} == {1.0}
    assert {one[name]["value"] for one in agreements for name in ("kappa", "alpha")} <= {1.0, None}
    assert json.loads(result.stdout)["disagreements"] == []


def test_a_permuted_sheet_gives_what_the_formula_says(toy: Corpus, tmp_path: Path) -> None:
    column = next(column for column in coding.columns(toy.taxonomy) if not column.is_many)
    own = {key: row[column.name] for key, row in coding.tags_as_sheet(toy.papers, [column]).codes.items()}
    shuffled = list(own.values())
    random.Random(5).shuffle(shuffled)
    permuted = {key: {column.name: code} for key, code in zip(own, shuffled, strict=True)}
    (tmp_path / "sheet.csv").write_text(filled(toy, permuted), encoding="utf-8")
    result = run_toy("audit", "compare", str(tmp_path / "sheet.csv"), "--format", "json", "--resamples", "0")

    (found,) = json.loads(result.stdout)["agreement"]
    assert found["kappa"]["value"] == pytest.approx(defined_kappa(list(zip(shuffled, own.values(), strict=True))))


def problems(text: str, real: Corpus, *keys: str) -> list[Finding]:
    columns = coding.columns(real.taxonomy)
    parts = text.split("\n\n")
    read = [coding.decode(part, f"{number}.csv", columns, keys) for number, part in enumerate(parts)]
    sheets = [sheet for sheet, _ in read]
    found = [finding for _, found in read for finding in found]
    return [*found, *coding.missing_cells(sheets), *coding.missing_rows(sheets)]


@pytest.mark.parametrize("code", [code for code in RULES if code.startswith("K")])
def test_the_rulebook_speaks_true_of_sheets(code: str, real: Corpus) -> None:
    assert {finding.code for finding in problems(explanation(code).bad, real, "p-0", "p-1")} == {code}
    assert problems(explanation(code).good, real, "p-0", "p-1") == []


def test_what_is_wrong_with_a_sheet_is_said_at_its_line(real: Corpus) -> None:
    text = 'key,topology,notes\np-0,"debate","two\nlines"\np-1,debat,\np-2,debate,\np-1,,\n'

    assert [str(finding) for finding in problems(text, real, "p-0", "p-1")] == [
        "0.csv:4:1: K105 unknown topology 'debat' (did you mean 'debate'? allowed: centralized, "
        "planner_executor_critic, debate, swarm, hierarchical, harness, NA) [p-1]",
        "0.csv:5:1: K103 no record 'p-2' in the corpus (did you mean 'p-1'?) [p-2]",
        "0.csv:6:1: K104 'p-1' is there twice; keep one row [p-1]",
    ]


@given(st.text(max_size=200))
def test_no_text_makes_the_reading_of_a_sheet_stumble(text: str) -> None:
    sheet, found = coding.decode(f"key,x\n{text}", "sheet.csv", X, ["a", "b"])

    assert set(sheet.codes) <= {"a", "b"}
    assert all(finding.code.startswith("K1") for finding in found)


def test_a_coarser_scale_takes_terms_as_one() -> None:
    columns = [Column("stop", "s", ("explicit", "implicit", "designed", "none")), Column("style", "t", ("implicit",))]
    merges = {"learned": ("explicit", "implicit")}
    sheet = Sheet(
        "s", {"a": {"stop": "implicit", "style": "implicit"}, "b": {"stop": "learned"}, "c": {"stop": "none"}}
    )

    assert coding.merge_terms(sheet, columns, merges).codes == {
        "a": {"stop": "learned", "style": "implicit"},
        "b": {"stop": "learned"},
        "c": {"stop": "none"},
    }
    assert [column.allowed[-1] for column in coding.allow_merged_terms(columns, merges)] == ["learned", "implicit"]


def test_the_sheet_says_who_and_where_but_nothing_of_the_tags(real: Corpus) -> None:
    result = run_corpus("--root", str(ROOT), "audit", "sample", "--n", "200")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))

    assert result.code == 0
    assert [row["key"] for row in rows] == [paper.key for paper in real.papers]
    assert {name: value for name, value in rows[0].items() if value} == {
        "key": real.papers[0].key,
        "title": real.papers[0].title,
        "links": " ; ".join(real.papers[0].urls),
    }
    assert list(rows[0]) == ["key", "title", "links", *(c.name for c in coding.columns(real.taxonomy)), "notes"]


def test_a_blank_sheet_is_read_back_as_not_coded(real: Corpus) -> None:
    columns = coding.columns(real.taxonomy)
    sheet, found = coding.decode(
        coding.blank_sheet(real.papers, columns), "s.csv", columns, [p.key for p in real.papers]
    )

    assert {tuple(row) for row in sheet.codes.values()} == {()}
    assert found == []
    assert {finding.code for finding in coding.missing_cells([sheet])} == {"K106"}


def test_of_several_sheets_a_cell_is_missing_where_another_has_it(real: Corpus) -> None:
    one = "key,topology,stop\np-0,debate,\np-1,,none\n"
    other = "key,topology,stop\np-0,,\np-1,swarm,none\n"

    assert [str(finding) for finding in problems(f"{one}\n{other}", real, "p-0", "p-1")] == [
        "0.csv:3:1: K106 warning: not coded: topology [p-1]",
        "1.csv:2:1: K106 warning: not coded: topology [p-0]",
    ]
    assert [str(finding) for finding in problems(other, real, "p-0", "p-1")] == [
        "0.csv:2:1: K106 warning: not coded: topology, stop [p-0]",
    ]


def test_the_columns_and_words_of_the_published_table_are_read(real: Corpus) -> None:
    columns = coding.columns(real.taxonomy)
    text = (
        "key,is_rl,reward_type,credit_granularity,orchestration_form,is_core,verified\n"
        "p-0,yes,hybrid,NA,swarm,core,no\n"
        "p-1,no,NA,agent,NA,case,none\n"
    )
    sheet, found = coding.decode(text, "s.csv", columns, ["p-0", "p-1"])

    assert found == []
    assert sheet.codes == {
        "p-0": {
            "rl": "full",
            "reward_family": "hybrid",
            "credit_unit": "NA",
            "topology": "swarm",
            "tier": "core",
            "verified": "none",
        },
        "p-1": {
            "rl": "none",
            "reward_family": "NA",
            "credit_unit": "agent",
            "topology": "NA",
            "tier": "case",
            "verified": "none",
        },
    }


def test_what_is_wrong_with_published_columns(real: Corpus) -> None:
    assert [str(finding) for finding in problems("key,is_rl,tier\np-0,maybe,core\n", real, "p-0")] == [
        "0.csv:2:1: K105 unknown is_rl 'maybe' (allowed: full, partial, none, yes, no) [p-0]",
    ]
    assert [str(finding) for finding in problems("key,is_rl,rl\np-0,yes,full\n", real, "p-0")] == [
        "0.csv:1:1: K101 column 'rl' is there twice",
    ]


def test_the_published_spot_check_in_its_own_columns_agrees_as_published(tmp_path: Path) -> None:
    text = (ROOT / "data" / "audits" / "spot-check.csv").read_text(encoding="utf-8").partition("\n")[2]
    own = csv.DictReader(io.StringIO(text))
    words = {"full": "yes", "partial": "partial", "none": "no"}
    rows = [f"{row['key']},{words[row['rl']]},{row['credit_unit']}\n" for row in own]
    (tmp_path / "s.csv").write_text("key,is_rl,credit_granularity\n" + "".join(rows), encoding="utf-8")
    words_of = ["--root", str(ROOT), "audit", "compare", str(tmp_path / "s.csv"), "--resamples", "0", "-f", "json"]

    result = run_corpus(*words_of)

    assert (result.code, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert [(one["field"], one["cells"]) for one in told["agreement"]] == [("rl", 32), ("credit_unit", 32)]
    assert told["disagreements"] == [
        {"key": "halo", "field": "credit_unit", "readings": {"s": "orchestrator", "corpus": "role"}}
    ]


@given(st.integers(0, 100), st.integers(0, 5))
def test_the_draw_is_of_its_size_and_in_proportion(real: Corpus, size: int, seed: int) -> None:
    category = paper_attributes(real.taxonomy)["category"]
    drawn = sample(real.papers, size, stratify=category, seed=seed)

    assert len(drawn) == min(size, len(real.papers))
    assert drawn == sample(tuple(reversed(real.papers)), size, stratify=category, seed=seed)[::-1]
    of_all, of_drawn = (Counter(str(paper.tags["category"]) for paper in papers) for papers in (real.papers, drawn))
    if size >= len(of_all):
        assert set(of_drawn) == set(of_all)
    assert all(of_drawn[value] <= number for value, number in of_all.items())
    assert all(abs(of_drawn[value] - len(drawn) * number / len(real.papers)) < 3 for value, number in of_all.items())


def test_sparse_rows_are_drawn_in_any_case(real: Corpus) -> None:
    result = run_corpus("--root", str(ROOT), "audit", "sample", "--n", "5", "--include-sparse")

    keys = {row["key"] for row in csv.DictReader(io.StringIO(result.stdout))}
    assert {paper.key for paper in real.where("credit_unit=message").papers} <= keys


def test_a_sheet_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text("hours of work", encoding="utf-8")
    result = run_toy("audit", "sample", "--output", str(path))

    assert (result.code, path.read_text(encoding="utf-8")) == (3, "hours of work")
    assert "exists already, and may hold a reader's work" in result.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "K101 not a coding sheet: empty"),
        ("a,b\n1,2\n", "K101 not a coding sheet: no column 'key', only 'a', 'b'"),
        ('key,size\n"rose-garden,small\n', "K101 not readable as CSV"),
    ],
)
def test_a_file_that_is_no_sheet_ends_with_3(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "sheet.csv").write_text(content, encoding="utf-8")
    result = run_toy("audit", "compare", str(tmp_path / "sheet.csv"))

    assert (result.code, result.stdout) == (3, "")
    assert message in result.stderr


def test_a_sheet_as_a_spreadsheet_saves_it_is_read(real: Corpus) -> None:
    text = '\ufeffkey;topology;notes\r\np-0;debate;"a;b"\r\n'
    sheet, found = coding.decode(text, "s.csv", coding.columns(real.taxonomy), ["p-0"])

    assert (sheet.codes, found) == ({"p-0": {"topology": "debate"}}, [])


def test_a_column_of_the_reader_s_own_costs_no_cell(real: Corpus) -> None:
    sheet, found = coding.decode("key,mine,topology\np-0,x,debate\n", "s.csv", coding.columns(real.taxonomy), ["p-0"])

    assert sheet.codes == {"p-0": {"topology": "debate"}}
    assert [finding.code for finding in found] == ["K102"]


def test_a_row_that_ends_before_its_key_is_an_error_at_its_line(real: Corpus) -> None:
    sheet, found = coding.decode("topology,key\ndebate\n", "s.csv", coding.columns(real.taxonomy), ["p-0"])

    assert sheet.codes == {}
    assert list(map(str, found)) == ["s.csv:2:1: K101 1 cells, but the heading has 2"]


def test_cells_that_do_not_count_are_counted_in_the_output() -> None:
    result = run_corpus("--root", str(ROOT), "audit", "compare", *AUDITS, "--resamples", "0")

    assert result.code == 1
    assert "Left out: 78 cells with codes that the taxonomy does not have.\n" in result.stdout
    assert "--merge NAME=TERM,TERM makes a name for terms taken as one" in result.stderr
    assert len(result.stderr.splitlines()) < 25


def test_a_new_reading_opens_a_settled_dispute(real: Corpus) -> None:
    settled = Dispute(
        "a", "stop", "none", (Reading(("none",), "x"), Reading(("designed",), "y")), "w", "s", State.SETTLED
    )
    own = Sheet("corpus", {"a": {"stop": "none"}})
    found = propose_disputes(own, [Sheet("new", {"a": {"stop": "implicit"}})], {}, [settled], real.taxonomy)

    assert found.extended == {
        0: {"readings": {"none": "x", "designed": "y", "implicit": "new"}, "state": "open"},
    }


def test_the_same_sheet_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("key\n", encoding="utf-8")
    result = run_toy("audit", "compare", *[str(tmp_path / "s.csv")] * 2)

    assert result.code == 2
    assert "a sheet is named twice" in result.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the toy corpus, without its generated files."""
    shutil.copytree(TOY / "data", tmp_path / "data")
    return tmp_path


def test_disagreements_go_on_record_as_open_disputes(copy: Path, toy: Corpus) -> None:
    column = next(column for column in coding.columns(toy.taxonomy) if column.field != column.name)
    own = {key: row[column.name] for key, row in coding.tags_as_sheet(toy.papers, [column]).codes.items()}
    key, stands = next(iter(own.items()))
    other, third = [code for code in column.allowed if code != stands][:2]
    for name, code in (("one.csv", other), ("two.csv", stands)):
        (copy / name).write_text(f"key,{column.name}\n{key},{code}\n", encoding="utf-8")
    words = ["--root", str(copy), "audit", "compare", "--record"]
    first = run_corpus(*words, str(copy / "one.csv"), str(copy / "two.csv"))

    assert first.code == 0
    written = (copy / "data" / "disputes.yaml").read_text(encoding="utf-8")
    assert f"- record: {key}\n  tag: {column.name}\n  stands: {stands}\n" in written
    (dispute,) = store.CorpusFiles(str(copy)).disputes.items
    assert [(reading.values, reading.by) for reading in dispute.readings] == [
        ((stands,), "the corpus and two"),
        ((other,), "one"),
    ]
    assert "nothing changes" in run_corpus(*words, str(copy / "one.csv")).stderr

    (copy / "three.csv").write_text(f"key,{column.name}\n{key},{third}\n", encoding="utf-8")
    assert "0 new disputes, 1 with new readings" in run_corpus(*words, str(copy / "three.csv")).stderr
    (dispute,) = store.CorpusFiles(str(copy)).disputes.items
    assert dispute.alternatives == (other, third)


ROSES = """\
- record: rose-garden
  tag: style
  stands: formal
  readings:
    formal: the corpus
    cottage: a reader of the source
  state: open
  why: Not decided yet; this value is kept until then.
  source: https://example.org/roses
  arguments:
    - by: a reader of the source
      why: Half of the beds are mixed.
      source: https://example.org/roses
"""


def argument(by: str, why: str, source: str) -> str:
    return f"    - by: {by}\n      why: {why}\n      source: https://example.org/{source}\n"


SOURCE = ("--source", "https://example.org/roses")


def test_one_reading_goes_on_record_without_a_sheet_and_a_second_says_which_it_is(copy: Path) -> None:
    words = ("--root", str(copy), "dispute", "rose-garden", "style=Cottage", "--why", "Half of the beds are mixed.")

    result = run_corpus(*words, *SOURCE)

    assert (result.code, result.stderr.splitlines()[:2]) == (
        0,
        ["1 new dispute, 0 with new readings", "wrote data/disputes.yaml"],
    )
    path = copy / "data" / "disputes.yaml"
    assert path.read_text(encoding="utf-8") == ROSES
    again = (
        "dispute",
        "rose-garden",
        "style=meadow",
        "--why",
        "It is mown.",
        "--by",
        "a visitor",
        "--source",
        "https://example.org/leaf",
    )
    assert run_corpus("--root", str(copy), *again).code == 0
    joined = ROSES.replace("source\n  state", "source\n    meadow: a visitor\n  state")
    assert path.read_text(encoding="utf-8") == joined + argument("a visitor", "It is mown.", "leaf")
    assert run_corpus("--root", str(copy), "check", "--stale", "notice").code == 0
    shown = run_corpus("--root", str(copy), "show", "rose-garden").stdout
    assert "a reader of the source: Half of the beds are mixed. (https://example.org/roses)" in " ".join(shown.split())
    assert "a visitor: It is mown. (https://example.org/leaf)" in shown
    shown = run_corpus("--root", str(copy), "show", "rose-garden", "--format", "json").stdout
    assert json.loads(shown)["records"][0]["disputes"][0]["arguments"][1] == {
        "by": "a visitor",
        "why": "It is mown.",
        "source": "https://example.org/leaf",
    }


def test_what_cannot_be_disputed_is_said(copy: Path) -> None:
    words = ("--why", "It is so.", *SOURCE)

    assert run_corpus("--root", str(copy), "dispute", "rose-garden", "tools=rake", *words) == (
        2,
        "",
        "corpus: 'tools' of rose-garden cannot be disputed (allowed: style, size, water, prune)\n",
    )
    assert run_corpus("--root", str(copy), "dispute", "rose-garden", "style=formal", *words) == (
        2,
        "",
        "corpus: style of rose-garden stands as formal already\nGive a reading that is another.\n",
    )
    words = ("--root", str(copy), "dispute", "rose-garden", "style=meadow", "--why", "It is so.", "--source")
    assert run_corpus(*words, "notaurl").stderr == (
        "corpus: --source 'notaurl' is not a web address; begin it with https://\n"
    )
    assert run_corpus(*words, "https://a.example/1 and more").stderr == (
        "corpus: --source 'https://a.example/1 and more' holds a blank, which no web address can; write %20, or remove it\n"
    )
    assert not (copy / "data" / "disputes.yaml").exists()


def test_a_second_reader_of_a_value_joins_the_first_and_twice_the_same_is_refused(copy: Path) -> None:
    words = ("--root", str(copy), "dispute", "rose-garden", "style=cottage", *SOURCE)
    why = ("--why", "Half of the beds are mixed")
    assert run_corpus(*words, *why).code == 0
    (path := copy / "data" / "disputes.yaml").write_text(ROSES.replace("open", "settled"), encoding="utf-8")

    assert run_corpus(*words, *why, "--by", "Ben").code == 0
    joined = ROSES.replace("cottage: a reader of the source", "cottage: a reader of the source and Ben")
    joined += argument("Ben", "Half of the beds are mixed.", "roses")
    assert path.read_text(encoding="utf-8") == joined, "open again"
    leaf = ("--why", "It is mixed.", "--by", "Cleo", "--source", "https://example.org/leaf")
    assert run_corpus(*words, *leaf).code == 0
    joined = joined.replace("and Ben", "and Ben and Cleo") + argument("Cleo", "It is mixed.", "leaf")
    assert path.read_text(encoding="utf-8") == joined
    assert run_corpus(*words, "--why", "It is otherwise.", "--by", "Ben and Cleo") == (
        2,
        "",
        "corpus: this reading is recorded already: style=cottage of rose-garden by Ben and Cleo\n"
        "To change its argument, edit data/disputes.yaml; for another reader, add --by NAME.\n",
    )


def test_a_reading_without_telling_which_of_two_goes_on_record_in_the_order_of_the_taxonomy(copy: Path) -> None:
    words = ("--root", str(copy), "dispute", "rose-garden", "style=meadow,cottage", "--why", "It is mixed", *SOURCE)

    assert run_corpus(*words).code == 0
    written = (copy / "data" / "disputes.yaml").read_text(encoding="utf-8")
    assert written == ROSES.replace("cottage", "cottage,meadow").replace("Half of the beds are", "It is")


def test_a_note_of_a_sheet_is_the_reason_and_its_place_the_source(copy: Path) -> None:
    (copy / "data" / "me.csv").write_text("key,style,notes\nrose-garden,cottage,Half is mixed.\n", encoding="utf-8")

    result = run_corpus("--root", str(copy), "audit", "compare", str(copy / "data" / "me.csv"), "--record")

    assert result.code == 0
    written = (copy / "data" / "disputes.yaml").read_text(encoding="utf-8")
    assert written == ROSES.replace("a reader of the source", "me").replace(
        "Half of the beds are mixed.", "Half is mixed."
    ).replace("https://example.org/roses", "data/me.csv")


def test_a_reading_on_a_coarser_scale_is_no_disagreement_with_one_of_its_terms(real: Corpus) -> None:
    merges = {"learned": ("explicit", "implicit")}
    own = Sheet("corpus", {"a": {"stop": "implicit"}, "b": {"stop": "none"}})
    sheet = Sheet("s", {"a": {"stop": "learned"}, "b": {"stop": "learned"}})
    found = propose_disputes(own, [sheet], merges, [], real.taxonomy)

    assert [(one["record"], one["readings"]) for one in found.added] == [
        ("b", {"none": "the corpus", "explicit,implicit": "s"})
    ]


def test_the_double_coding_is_on_record_whole() -> None:
    result = run_corpus(
        "--root", str(ROOT), "audit", "compare", *AUDITS, "--merge", "learned=explicit,implicit", "--record"
    )

    assert (result.code, result.stdout) == (0, "")
    assert "nothing changes" in result.stderr


@pytest.mark.parametrize("names", [("spot-check",), ("sources-1", "sources-2")])
def test_every_other_reading_of_an_audit_is_on_record(names: tuple[str, ...]) -> None:
    sheets = [str(ROOT / "data" / "audits" / f"{name}.csv") for name in names]
    result = run_corpus("--root", str(ROOT), "audit", "compare", *sheets, "--record")

    assert (result.code, result.stdout) == (0, "")
    assert "nothing changes" in result.stderr


def test_the_guide_speaks_true(monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (ROOT / "docs" / "audits.md").read_text(encoding="utf-8")
    monkeypatch.chdir(ROOT)
    commands = re.findall(r"^corpus (.+?)(?: > .+)?$", guide, re.MULTILINE)
    few = {command: ["--resamples", "20"] for command in commands if command.startswith("audit compare")}
    results = [run_corpus(*shlex.split(command), *few.get(command, [])) for command in commands]

    assert [result.code for result in results] == [0, 0, 0, 0, 0]
    kappas = re.findall(r"^\w+ +\d+ +[\d.]+ +([\d.]+)", results[1].stdout, re.MULTILINE)
    assert [f"{float(kappa):.2f}" for kappa in kappas] == re.findall(r"0\.\d\d", guide.split("Their kappa is")[1])


def test_remarks_of_a_sheet_stand_beside_its_figures_and_keep_the_lines_of_findings(tmp_path: Path) -> None:
    sheet = tmp_path / "chosen.csv"
    original = (ROOT / "data" / "audits" / "spot-check.csv").read_text(encoding="utf-8").split("\n", 1)[1]
    sheet.write_text(f"# Rows were chosen.\n# Not blinded.\n{original}nobody,rl_method,,,,,\n", encoding="utf-8")

    shown = run_corpus("audit", "compare", str(sheet))
    data = json.loads(run_corpus("audit", "compare", str(sheet), "--format", "json").stdout)

    assert "chosen: Rows were chosen.\nchosen: Not blinded.\nIntervals: 95%, bootstrap over papers.\n" in shown.stdout
    assert f"{sheet}:36:1: K103 no record 'nobody' in the corpus" in shown.stderr
    assert data["remarks"] == ["chosen: Rows were chosen.", "chosen: Not blinded."]
