"""Searches on record: queries that arXiv can read, runs that add up, the flow of screening, whole libraries."""

import json
import re
import shutil
from datetime import date
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from orchtrace_corpus.base.yamlfile.reader import YamlFile
from orchtrace_corpus.corpus.checks import check
from orchtrace_corpus.corpus.edit.edits import add_records
from orchtrace_corpus.corpus.intake.discovery import plan_searches
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.searches import (
    Maker,
    QuerySyntaxError,
    Run,
    Search,
    check_query,
    decode_searches,
    run_fields,
    search_style,
)
from orchtrace_corpus.corpus.render.schema import data_schemas
from tests.conftest import ROOT, Result, run_corpus
from tests.corpus import arxiv_query
from tests.corpus.arxiv_server import ArxivServer
from tests.corpus.files import write_data
from tests.corpus.left_out import hidden_papers, made_papers, served
from tests.corpus.test_discover import PROTOCOL
from tests.corpus.test_schema import as_editors_read
from tests.effort import tries
from tests.loopback import loopback_only  # noqa: F401 - guards every test here

SEARCHES = """\
# Runs.
- day: "2024-02-01"
  by: discover
  searches:
    - query: gate
      source: arXiv
      from: "2024-01-01"
      to: "2024-01-31"
      asked: ti:rose
      found: 6
      new: 3
    - query: citations
      source: OpenAlex
      found: 2
      new: 1
  repeated: 1
  in_pool: 1
  in_log: 1
  refused: 1
  new: ["arXiv:2001.00009", "arXiv:2302.00002", "arXiv:2401.00011", https://example.org/cars]

- day: "2024-02-02"
  by: hand
  searches:
    - query: path
      source: the guide book
      new: 2
  new: [Sand, "arXiv:2401.00012"]
"""
CANDIDATES = """\
- key: rose-bed
  title: A Rose Bed
  arxiv_id: "2401.00011"
  proposal: unread
  found: "2024-02-01"

- key: shelf
  title: A Shelf
  arxiv_id: "2401.00012"
  proposal: include
  reason: It holds pots.
  found: "2024-02-02"
  screened: "2024-02-03"
"""


@pytest.fixture
def root(root: Path, in_root: None, on_first_of_march: None) -> Path:
    """The toy corpus with two runs on record: what they brought is included, excluded, awaiting, or nowhere."""
    protocol = PROTOCOL.replace("query_field: stage\n", "stage_field: stage\n").replace(
        "queries:", "stages: []\nqueries:"
    )
    protocol = protocol[: protocol.index("families:")] + "update: [Walk again.]\n"
    write_data(root, protocol=protocol, searches=SEARCHES, candidates=CANDIDATES)
    exclusions = root / "data" / "exclusions.yaml"
    text = exclusions.read_text(encoding="utf-8").replace("Nothing grows there.", "It is a car park.")
    exclusions.write_text(text, encoding="utf-8")
    return root


def test_two_versions_have_the_runs_of_both_in_the_order_of_days(root: Path) -> None:
    def run(day: str, query: str) -> str:
        return f'\n- day: "{day}"\n  by: hand\n  searches:\n    - query: {query}\n      source: the guide book\n      new: 0\n'

    run_corpus("check", "form", "--fix")
    base = (root / "data" / "searches.yaml").read_text(encoding="utf-8")
    ours = base + run("2024-02-09", "gate") + run("2024-02-09", "gate")
    theirs = base + run("2024-02-05", "path") + run("2024-02-09", "gate") + run("2024-02-09", "path")
    for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
        (root / name).write_text(text, encoding="utf-8")

    assert run_corpus("merge-file", "base", "ours", "theirs") == (0, "", "")
    same, further = 2 * run("2024-02-09", "gate"), run("2024-02-09", "path")
    assert (root / "ours").read_text(encoding="utf-8") == base + run("2024-02-05", "path") + same + further


def test_fmt_and_check_know_the_runs(root: Path) -> None:
    run_corpus("check", "form", "--fix")
    path = root / "data" / "searches.yaml"
    canonical = path.read_text(encoding="utf-8")
    path.write_text(canonical.replace("by: hand", "by:   'hand'"), encoding="utf-8")

    assert "data/searches.yaml" in run_corpus("check").stdout
    assert run_corpus("check", "form").code == 1
    assert run_corpus("check", "form", "--fix").stderr == "wrote data/searches.yaml\n"
    assert path.read_text(encoding="utf-8") == canonical


# Query strings


@pytest.mark.parametrize(
    "query",
    [
        "all:electron",
        'ti:"multi agent" AND (abs:LLM OR abs:LLMs)',
        "au:del_maestro ANDNOT ti:checkerboard",
        "cat:cs.MA AND submittedDate:[202601010000 TO 202601312359]",
        '((ti:a OR ti:b) AND all:"c d") ANDNOT cat:cs.RO',
        "jr:nature OR co:accepted OR rn:abc-1",
    ],
)
def test_queries_of_the_documented_grammar_are_read_here_and_by_the_server(query: str) -> None:
    check_query(query)
    arxiv_query.parse(query)


@pytest.mark.parametrize(
    ("query", "at", "problem"),
    [
        ("agents", 0, "'agents' is not a term; write a field before it, such as all:agents"),
        ("ti:a ti:b", 5, "an operator is missing; write AND, OR or ANDNOT"),
        ("ti:a OR ti:b AND ti:c", 13, "OR stands beside AND or ANDNOT; put one of them in parentheses"),
        ("ti:a and ti:b", 5, "'and' is not a term; write a field before it, such as all:and"),
        ("AND ti:a", 0, "AND has nothing before it"),
        ("ti:a AND", 8, "a term is missing at the end"),
        ("(ti:a", 5, "a '(' is not closed"),
        ("ti:a)", 4, "')' closes nothing"),
        ("()", 1, "')' follows no term"),
        ("title:a", 0, "there is no field 'title'; fields: ti, au, abs, co, jr, cat, rn, all, submittedDate"),
        ('ti:"a', 0, "'ti:\"a' is not a term; write a field before it, such as all:ti:\"a"),
        ('ti:"-"', 0, "ti looks for nothing"),
        ("submittedDate:[2026 TO 2027]", 0, "submittedDate takes [YYYYMMDDHHMM TO YYYYMMDDHHMM]"),
        ("", 0, "a term is missing at the end"),
    ],
)
def test_what_arxiv_could_not_read_is_refused_at_its_place(query: str, at: int, problem: str) -> None:
    with pytest.raises(QuerySyntaxError) as error:
        check_query(query)

    assert (error.value.at, str(error.value)) == (at, problem)


def test_every_query_of_our_protocol_is_in_the_grammar_as_it_is_asked() -> None:
    pool = store.CorpusFiles(str(ROOT)).loaded.pool
    assert pool is not None
    protocol = store.CorpusFiles(str(ROOT)).protocol.require()
    assert protocol is not None
    from datetime import date

    planned = plan_searches(protocol, (), date(2026, 11, 22), since="2026-05-01")

    assert len(planned) == 12
    facet = next(one for one in pool.taxonomy.exclusions if one.field == protocol.query_field)
    assert {one.query for one in planned} == set(facet.values), "each name of the log has its query"
    for one in planned:
        check_query(one.asked or "")
        arxiv_query.parse(one.asked or "")


def findings(root: Path, code: str) -> list[str]:
    return [
        f"{one.location.line}:{one.location.column} {one.message}"
        for part in check(str(root)).parts
        for one in part.findings
        if one.code == code
    ]


def test_a_query_that_arxiv_cannot_read_is_reported(root: Path) -> None:
    text = PROTOCOL.replace("query: ti:path OR ti:bed,", "query: ti:path OR bed,")
    (root / "data" / "protocol.yaml").write_text(text, encoding="utf-8")

    assert findings(root, "B106") == [
        "19:39 arXiv cannot read the query at 'bed': 'bed' is not a term; write a field before it, such as all:bed"
    ]


# Runs


def test_runs_are_read_and_written_as_they_were() -> None:
    file = YamlFile("searches.yaml", SEARCHES.encode())
    runs = decode_searches(file).require()

    assert [(run.day, run.by, run.found, run.known) for run in runs] == [
        ("2024-02-01", Maker.DISCOVER, 8, 2),
        ("2024-02-02", Maker.HAND, None, 0),
    ]
    written = add_records(YamlFile("searches.yaml", b"# Runs.\n[]\n"), map(run_fields, runs), search_style())
    assert decode_searches(YamlFile("searches.yaml", written.encode())).require() == runs
    assert (
        '      from: "2024-01-01"\n      to: "2024-01-31"\n      asked: ti:rose\n      found: 6\n      new: 3\n'
        in written
    )


def test_the_schema_for_editors_takes_the_runs(root: Path) -> None:
    pool = store.CorpusFiles(str(root)).loaded.pool
    assert pool is not None
    schema, path = (
        json.loads(data_schemas([store.data_file("searches")], pool.taxonomy)[0]),
        root / "data" / "searches.yaml",
    )

    assert list(Draft202012Validator(schema).iter_errors(as_editors_read(path))) == []
    path.write_text(SEARCHES.replace("hand", "foot"), encoding="utf-8")
    assert list(Draft202012Validator(schema).iter_errors(as_editors_read(path))) != []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "  repeated: 1\n",
            "  repeated: 2\n",
            "4:3 8 records were found, and 9 are repeated, known, refused or new; correct the counts",
        ),
        (
            "      new: 2\n",
            "      new: 3\n",
            "24:3 the searches have 3 new papers, and 'new' lists 2; correct one of the two",
        ),
    ],
)
def test_counts_that_do_not_add_up_are_errors(root: Path, old: str, new: str, expected: str) -> None:
    (root / "data" / "searches.yaml").write_text(SEARCHES.replace(old, new), encoding="utf-8")

    found = findings(root, "B107")

    assert [one.partition(" ")[2] for one in found] == [expected.partition(" ")[2]]
    assert run_corpus("stats", "--screening").code == 1


def test_a_count_that_is_none_is_reported(root: Path) -> None:
    (root / "data" / "searches.yaml").write_text(SEARCHES.replace("found: 6", "found: six"), encoding="utf-8")

    assert findings(root, "F103") == ["10:14 'found' must be a count such as 12, not 'six'"]


def test_a_paper_that_has_left_without_a_decision_is_a_warning(root: Path) -> None:
    assert findings(root, "B108") == [
        "28:9 'Sand' is neither in the pool nor in the log nor a candidate; add it, or exclude it with the reason"
    ]
    assert "searches  ok     1 warning\n" in run_corpus("check").stdout


# The flow


def stats(*words: str) -> Result:
    return run_corpus("stats", "--screening", *words)


def test_the_flow_is_counted_by_run_and_in_all(root: Path) -> None:
    assert stats() == (
        0,
        "Screening\n"
        "run         published  2024-02-01 discover  2024-02-02 hand  all runs\n"
        "identified                               8                          8\n"
        "duplicates                               1  0                       1\n"
        "known                                    2  0                       2\n"
        "refused                                  1  0                       1\n"
        "new                                      4  2                       6\n"
        "screened    6                            3  1                       4\n"
        "excluded    2                            2  0                       2\n"
        "included    4                            1  0                       1\n"
        "open        0                            0  1                       1\n"
        "awaiting    0                            1  0                       1\n"
        "\n"
        "Excluded since\n"
        "stage  rule   records\n"
        "Gate   other        1\n"
        "Path   shut         1\n",
        "",
    )


def test_the_flow_for_programs_has_sources_stages_and_rules(root: Path) -> None:
    assert stats("--format", "csv").stdout.splitlines()[1] == "published,,,,,,6,2,4,0,0"
    document = json.loads(stats("--format", "json").stdout)

    assert document["published"] == {"included": 4, "excluded": 2}
    assert document["runs"][0]["by_source"] == {"arXiv": 6, "OpenAlex": 2}
    assert document["runs"][0]["excluded"] == [
        {"stage": "gate", "rule": None, "records": 1},
        {"stage": "path", "rule": "shut", "records": 1},
    ]
    assert document["runs"][1]["found"] is None


def test_records_that_no_run_brought_are_counted_as_added_by_hand(root: Path) -> None:
    listed = 'day: "2024-01-01"\nsource: https://example.org/survey\npapers: [rose-garden, mixed-borders]\nexclusions: [E001]\n'
    (root / "data" / "published.yaml").write_text(listed, encoding="utf-8")

    with open(root / "data" / "exclusions.yaml", "a", encoding="utf-8") as file:
        file.write("\n- id: E004\n  title: A Pot\n  identifier: POT\n  url: https://example.org/pot\n")
        file.write('  stage: path\n  screened: "2024-02-03"\n  reason: It is no garden.\n')

    assert stats().stdout == (
        "Screening\n"
        "run         published  2024-02-01 discover  2024-02-02 hand  all runs  added by hand\n"
        "identified                               8                          8\n"
        "duplicates                               1  0                       1  0\n"
        "known                                    2  0                       2  0\n"
        "refused                                  1  0                       1  0\n"
        "new                                      4  2                       6  2\n"
        "screened    3                            3  1                       4  2\n"
        "excluded    1                            2  0                       2  1\n"
        "included    2                            1  0                       1  1\n"
        "open        0                            0  1                       1  0\n"
        "awaiting    0                            1  0                       1  0\n"
        "\n"
        "Excluded since\n"
        "stage  rule   records\n"
        "Gate   other        1\n"
        "Path   other        1\n"
        "Path   shut         1\n"
    )
    assert json.loads(stats("--format", "json").stdout)["by_hand"] == {
        "run": "added by hand",
        "found": None,
        "repeated": 0,
        "known": 0,
        "refused": 0,
        "new": 2,
        "screened": 2,
        "included": 1,
        "coding": 0,
        "awaiting": 0,
        "by_source": {},
        "excluded": [{"stage": "path", "rule": None, "records": 1}],
    }
    run_corpus("figures", "screening-flow")
    drawn = (root / "docs" / "figures" / "screening-flow.svg").read_text(encoding="utf-8")
    words = " ".join(re.findall(r">([^<>\n]+)</text>", drawn))
    boxes = "From these searches 1 Added by hand 1 Records added by 2 hand Excluded 1 Included, tags open 0 Awaiting"
    assert boxes in words
    assert words.endswith("Total studies 4 included in review")
    assert "Added by hand 2, of which 1 included. In all 4 papers." in drawn


@pytest.mark.parametrize("words", [("--by", "size"), ("--full",), ("--where", "size=small")])
def test_the_flow_takes_no_other_options(root: Path, words: tuple[str, ...]) -> None:
    assert stats(*words) == (
        2,
        "",
        "corpus: --screening counts runs of searches; leave out other options but --format\n",
    )


def test_the_figure_is_that_of_an_updated_review(root: Path) -> None:
    run_corpus("figures", "screening-flow")
    drawn = (root / "docs" / "figures" / "screening-flow.svg").read_text(encoding="utf-8")

    for text in ("Studies included in", "Records removed", "Duplicate records", "Records screened", "arXiv",
                 "New studies", "Total studies"):  # fmt: skip
        assert text in drawn
    assert (
        "Previous review: 4 papers included, 2 records excluded. Since then, in 2 runs: identified 8, removed before "
        "screening 4, new 6, screened 4, excluded 2, included 1, included with open tags 1, awaiting a decision 1. In all "
        "4 papers." in drawn
    )


def test_without_runs_the_figure_stays_as_it_was(root: Path) -> None:
    (root / "data" / "searches.yaml").unlink()
    run_corpus("figures", "screening-flow")
    drawn = (root / "docs" / "figures" / "screening-flow.svg").read_text(encoding="utf-8")

    assert "Records audited" in drawn
    assert "previous version" not in drawn


# Libraries

LIBRARY = """\
@article{beet2024, title = {A Rose {B}ed}, author = {Beet, Rosa}, year = 2024, eprint = {2401.00011}, archiveprefix = {arXiv}}
@article{kale, title = {On Kale}, author = {Kale, Ida and {Garden Team}}, year = 2023, doi = {10.1000/kale}, journal = {Beds}}
@misc{kale2, title = {On Kale}, author = {Kale, Ida}, year = 2023}
@misc{roses, title = {Röses: A Garden in Four Beds}, author = {Müller, Änne}, year = 2021}
@misc{cars, title = {Cars}, url = {https://example.org/cars}, author = {Ford, H.}, year = 1920}
"""
KALE = """\
- key: kale
  title: On Kale
  authors: ["Kale, Ida", "{Garden Team}"]
  year: 2023
  venue: Beds
  doi: 10.1000/kale
  urls: [https://doi.org/10.1000/kale]
  proposal: unread
  found: "2024-03-01"
  found_by: [library.bib]

"""


def test_a_library_becomes_candidates_but_for_what_is_known(root: Path) -> None:
    (root / "lib").mkdir()
    (root / "lib" / "library.bib").write_text(LIBRARY, encoding="utf-8")

    result = run_corpus("add", "lib/library.bib", "--to", "candidates")

    assert result == (
        0,
        "",
        "wrote data/candidates.yaml\nwrote data/searches.yaml\n"
        "1 new candidate; left out: 1 in the pool, 1 excluded before, 1 among the candidates, 1 found more than once\n"
        "left out by a title that is the same, or nearly:\n"
        "  kale2: On Kale (as kale: On Kale)\n"
        "  roses: Röses: A Garden in Four Beds (as rose-garden: Röses: A Garden in Four Beds)\n",
    )
    assert (root / "data" / "candidates.yaml").read_text(encoding="utf-8") == f"{KALE}{CANDIDATES}"
    run = store.CorpusFiles(str(root)).searches.require()[-1]
    assert run == Run(
        "2024-03-01",
        Maker.IMPORT,
        (Search("library.bib", "library.bib", 1, found=5),),
        repeated=1,
        in_pool=1,
        in_log=1,
        in_candidates=1,
        new=("DOI:10.1000/kale",),
    )


def test_an_import_to_the_pool_names_a_candidate_as_corpus_add_does(root: Path) -> None:
    (root / "library.bib").write_text(LIBRARY.splitlines()[0], encoding="utf-8")

    assert run_corpus("import", "library.bib").stderr == (
        "corpus: nothing was written, since some records cannot be imported:\n"
        "library.bib:1: it is the candidate rose-bed; to include it: corpus add rose-bed [beet2024]\n"
    )


def test_a_candidate_with_nearly_the_title_of_a_paper_and_another_arxiv_id_is_named(root: Path) -> None:
    near = 'title = {R{\\"o}ses: A Garden in Four Bed}, author = {Kale, Ida}, year = 2022, eprint = {2201.00007}'
    (root / "library.bib").write_text(f"@misc{{near, {near}}}\n", encoding="utf-8")

    assert run_corpus("add", "library.bib", "--to", "candidates").stderr.splitlines()[2:] == [
        "1 new candidate; left out: 0 in the pool, 0 excluded before, 0 among the candidates, 0 found more than once",
        "corpus: near: its title is nearly that of rose-garden, which has another arXiv id; compare them",
    ]


def test_tags_among_the_keywords_of_a_library_are_named_as_not_taken(root: Path) -> None:
    tagged = (
        "@misc{fern, title = {Fern}, author = {Moss, Ida}, year = 2020, url = {https://example.org/fern}, keywords = {"
    )
    (root / "library.bib").write_text(f"{tagged}shade, style=meadow, water=daily}}}}\n", encoding="utf-8")

    result = run_corpus("add", "library.bib", "--to", "candidates")

    assert (result.code, result.stderr) == (
        0,
        "wrote data/candidates.yaml\nwrote data/searches.yaml\n"
        "corpus: a candidate has no tags before it is read, so these are not taken:\n"
        "  fern: style=meadow, water=daily\n"
        "1 new candidate; left out: 0 in the pool, 0 excluded before, 0 among the candidates, 0 found more than once\n",
    )
    assert (
        "style: meadow" not in (root / "data" / "candidates.yaml").read_text(encoding="utf-8").partition("- key: h")[0]
    )
    assert run_corpus("add", "library.bib", "--to", "candidates").stderr == (
        "0 new candidates; left out: 0 in the pool, 0 excluded before, 1 among the candidates, 0 found more than once\n"
    ), "of what is left out anyway, no tag is missed"


FERN = """\
- key: fern
  title: Fern
  authors: ["Moss, Ida"]
  year: 2020
  venue: Beds
  urls: [https://example.org/fern]
  cite_key: Fern_2020
  bibtex: {volume: "3"}
  proposal: unread
  found: "2024-03-01"
  found_by: [library.bib]

"""


def test_a_candidate_keeps_what_else_its_entry_says_and_is_no_run_again(root: Path) -> None:
    entry = (
        "@article{Fern_2020, title = {Fern}, author = {Moss, Ida}, year = 2020, journal = {Beds}, volume = {3},"
        " url = {https://example.org/fern}}\n"
    )
    (root / "library.bib").write_text(entry, encoding="utf-8")
    before = (root / "data" / "candidates.yaml").read_text(encoding="utf-8")

    run_corpus("add", "library.bib", "--to", "candidates")

    written = (root / "data" / "candidates.yaml").read_text(encoding="utf-8")
    assert written == f"{FERN}{before}"
    searches = (root / "data" / "searches.yaml").read_bytes()
    again = run_corpus("add", "library.bib", "--to", "candidates")
    assert again == (
        0,
        "",
        "0 new candidates; left out: 0 in the pool, 0 excluded before, 1 among the candidates, 0 found more than once\n",
    )
    assert (root / "data" / "searches.yaml").read_bytes() == searches
    assert run_corpus("add", "library.bib") == (
        2,
        "",
        "corpus: library.bib:1 was not added: it is the candidate fern; to include it: corpus add fern\n",
    )


def test_an_entry_that_cannot_be_a_candidate_is_named(root: Path) -> None:
    (root / "library.bib").write_text("@book{moss2020, author={Moss, Ida}, year={2020}}\n", encoding="utf-8")

    result = run_corpus("add", "library.bib", "--to", "candidates")

    assert result.code == 1
    assert "corpus: library.bib: moss2020 is left out: F101 missing field 'title'\n" in result.stderr


def test_an_identifier_that_is_none_is_not_lost_on_the_way(root: Path) -> None:
    about = "title = {Moss}, author = {Moss, Ida}, year = 2020, url = {https://example.org/moss}, eprint = {26O7.01234}"
    (root / "library.bib").write_text(f"@misc{{moss, {about}, archiveprefix = {{arXiv}}}}\n", encoding="utf-8")

    assert run_corpus("add", "library.bib", "--to", "candidates").stderr.endswith(
        "corpus: library.bib: Moss is left out: "
        "F111 arxiv_id '26O7.01234' is not in its plain form, such as 2505.19591\n"
    )
    assert run_corpus("add", "library.bib") == (
        2,
        "",
        "corpus: library.bib:1 was not added: '26O7.01234' cannot be its arxiv_id; correct it in the file\n",
    )


def test_a_dry_run_of_a_library_shows_the_difference(root: Path) -> None:
    (root / "library.bib").write_text(LIBRARY, encoding="utf-8")
    before = (root / "data" / "candidates.yaml").read_bytes()

    result = run_corpus("add", "library.bib", "--to", "candidates", "--dry-run")

    assert "+- key: kale\n" in result.stdout
    assert (root / "data" / "candidates.yaml").read_bytes() == before


def test_add_takes_only_libraries_to_the_candidates(root: Path) -> None:
    assert run_corpus("add", "2401.00099", "--to", "candidates") == (
        2,
        "",
        "corpus: --to candidates takes files of papers\nFiles end in .bib, .ris, .csl.json, .csv, .json or .jsonl.\n",
    )


# The leave-out test


def test_hidden_records_are_found_by_their_own_titles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest twenty of the pool leave it, and are served among made entries and the candidates."""
    root = tmp_path / "corpus"
    shutil.copytree(ROOT / "data", root / "data")
    pool = store.CorpusFiles(str(ROOT)).loaded.pool
    assert pool is not None
    hidden = hidden_papers(pool)
    keys = {paper.key for paper in hidden}
    text = (root / "data" / "papers.yaml").read_text(encoding="utf-8")
    head, *records = text.split("\n- key: ")
    kept = [record for record in records if record.partition("\n")[0] not in keys]
    (root / "data" / "papers.yaml").write_text("\n- key: ".join((head, *kept)), encoding="utf-8")
    for name in ("published", "claims", "disputes", "scale", "codebook"):
        (root / "data" / f"{name}.yaml").unlink()
    candidates = store.CorpusFiles(str(ROOT)).candidates.items
    real = [served(one.paper) for one in candidates if one.paper.arxiv_id and "." in one.paper.arxiv_id]
    monkeypatch.setenv("ORCHTRACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795564800")
    monkeypatch.delenv("OPENALEX_API_KEY", raising=False)
    monkeypatch.chdir(root)
    with ArxivServer([*made_papers(tries(2000, 300)), *real, *map(served, hidden)]) as server:
        monkeypatch.setenv("ORCHTRACE_ARXIV_URL", server.url)
        monkeypatch.setenv("ORCHTRACE_ARXIV_SPACING", "0.0001")
        result = run_corpus("discover", "--since", "2016-01-01")

    assert result.code == 0
    run = store.CorpusFiles(str(root)).searches.require()[-1]
    found = {name.removeprefix("arXiv:") for name in run.new}
    recalled = [paper.title for paper in hidden if paper.arxiv_id in found]
    page = (ROOT / "docs" / "discovery.md").read_text(encoding="utf-8")
    assert f"queries find {len(recalled)} of {len(hidden)} by title" in " ".join(page.split())
    assert all(f"- {paper.title}\n" in page for paper in hidden if paper.arxiv_id not in found), "misses are listed"
    protocol = store.CorpusFiles(str(ROOT)).protocol.require()
    assert protocol is not None
    planned = plan_searches(protocol, (), date(2026, 11, 25), since="2016-01-01")
    queries = [arxiv_query.parse(one.asked or "") for one in planned]
    assert run.in_candidates == sum(any(asks_for(paper) for asks_for in queries) for paper in real)


@pytest.mark.slow
def test_the_page_of_figures_is_what_the_script_makes() -> None:
    from screening_figures import page

    assert (ROOT / "docs" / "discovery.md").read_text(encoding="utf-8") == page()
