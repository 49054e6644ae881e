"""A survey of other things than papers: its own noun and fields, some fixed ones switched off, and no Python."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from orchtrace_corpus.corpus import scaffold
from tests.conftest import TOY, run_corpus
from tests.corpus.files import run_in

DECLARED = """\
by_key: true
noun: {one: dataset, many: datasets}
omit: [affiliation, code]
fields:
  - {field: rows, label: Rows, kind: number, help: How many rows it has., listed: true, bibtex: rows, csl: dimensions, ris: C1}
  - {field: released, label: Released on, kind: date, help: The day of its release.}
  - {field: open_access, label: Open access, kind: flag, help: Whether anybody may download it., listed: true}
  - {field: mirrors, label: Mirrors, kind: urls, help: Where else it is., listed: true}
  - {field: license, label: SPDX License, kind: text, help: The name of its license., required: true, listed: true}
"""
ADDED = (
    *("https://example.org/tides", "--title", "Tides of a Year", "--authors", "Doe, Jane", "--year", "2024"),
    *("--venue", "Zenodo", "--retriever", "NA", "--knowledge", "tables", "--stages", "none", "--category", "benchmark"),
    *("--summary", "Holds the tides of a year.", "--no-fetch", "--yes"),
)
OWN = (
    *("--rows", "1250.5", "--released", "2024-05-06", "--open-access", "yes", "--license", "CC0-1.0"),
    *("--mirrors", "https://example.org/m1,https://example.org/m2"),
)
RECORD = """\
- key: tides-year
  title: Tides of a Year
  authors: ["Doe, Jane"]
  year: 2024
  venue: Zenodo
  urls: [https://example.org/tides]
  retriever: NA
  knowledge: [tables]
  stages: {}
  category: benchmark
  rows: 1250.5
  released: "2024-05-06"
  open_access: true
  mirrors: [https://example.org/m1, https://example.org/m2]
  license: CC0-1.0
  summary: Holds the tides of a year.
  added: "2024-07-01"
"""
ITEM = (
    "- [Tides of a Year](https://example.org/tides) - Zenodo 2024, [Mirrors](https://example.org/m1), "
    "[Mirrors](https://example.org/m2). `Rows: 1250.5` `Open access` `SPDX License: CC0-1.0` `Tables` "
    "Holds the tides of a year."
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new corpus whose taxonomy declares fields and a noun, its records filled in."""
    monkeypatch.setattr(scaffold, "requirement", lambda: "orchtrace-corpus==0.1.0")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1719835200")  # 2024-07-01
    folder = tmp_path / "survey"
    assert run_corpus("init", str(folder)).code == 0
    edit(folder / "data" / "taxonomy.yaml", ("by_key: true\n", DECLARED))
    edit(
        folder / "data" / "papers.yaml",
        ("  affiliation: Example University\n", ""),
        *((f"  category: {name}\n", f"  category: {name}\n  license: MIT\n") for name in ("method", "system")),
        ("  category: benchmark\n", "  category: benchmark\n  rows: 300\n  open_access: false\n  license: MIT\n"),
    )
    assert run_in(folder, "check", "form", "--fix").code == 0
    return folder


def edit(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")


def written(root: Path, name: str) -> str:
    return (root / name).read_text(encoding="utf-8")


@pytest.fixture
def grown(root: Path) -> Path:
    """The corpus with a record more, which `corpus add` has written."""
    result = run_in(root, "add", *ADDED, *OWN)
    assert result.code == 0, result.stderr
    return root


def test_a_record_is_added_with_an_option_for_each_field(root: Path) -> None:
    help_text = run_in(root, "add", "--help").stdout
    refused = run_in(root, "add", *ADDED, "--rows", "many", "--open-access", "perhaps")
    lacking = run_in(root, "add", *ADDED)
    unknown = run_in(root, "add", *ADDED, "--affiliation", "Example University")

    assert (
        "Fields:\n"
        "  --rows NUMBER             How many rows it has.\n"
        "  --released YYYY-MM-DD     The day of its release.\n"
        "  --open-access true|false  Whether anybody may download it.\n"
        "  --mirrors URL,...         Where else it is.\n"
        "  --license TEXT            The name of its license. [required]\n"
    ) in help_text
    assert "--affiliation" not in help_text
    assert (refused.code, lacking.code, unknown.code) == (2, 2, 2)
    assert "- rows 'many' is not a number: write digits, with a decimal point if needed\n" in refused.stderr
    assert "- open_access is either true or false, not 'perhaps'\n" in refused.stderr
    assert "  --license TEXT  The name of its license.\n" in lacking.stderr
    assert "No such option: --affiliation" in unknown.stderr


def test_what_is_added_is_written_validated_and_listed(grown: Path) -> None:
    built = run_in(grown, "build")

    assert RECORD in written(grown, "data/papers.yaml")
    assert built.code == 0
    assert ITEM in written(grown, "README.md").splitlines()
    assert "4 datasets and 1 exclusion: 5 audited records." in written(grown, "README.md")
    assert run_in(grown, "check", "data").stderr == "no problems in 4 datasets and 1 exclusion\n"
    assert run_in(grown, "check", "form").code == 0
    assert run_in(grown, "build", "--check").code == 0


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        (["rows>1000"], ["tides-year"]),
        (["rows=300"], ["example-citations"]),
        (["rows="], ["example-answers", "example-helpdesk"]),
        (["released>=2024-01-01", "released<2025-01-01"], ["tides-year"]),
        (["open_access=false"], ["example-citations"]),
        (["open_access!="], ["example-citations", "tides-year"]),
        (["mirrors~m2"], ["tides-year"]),
        (["license=CC0-1.0"], ["tides-year"]),
    ],
)
def test_fields_are_filters(grown: Path, filters: list[str], keys: list[str]) -> None:
    words = [word for text in filters for word in ("--where", text)]
    result = run_in(grown, "list", *words, "--columns", "key", "--format", "csv")

    assert result.stdout.splitlines()[1:] == keys
    assert result.stderr == f"{len(keys)} dataset{'s' * (len(keys) != 1)}\n"


def test_filters_know_what_a_field_can_hold(grown: Path) -> None:
    assert "open_access" in run_in(grown, "list", "--where", "open_access=maybe").stderr
    assert "unknown field 'affiliation'" in run_in(grown, "list", "--where", "affiliation=x").stderr
    assert run_in(grown, "list", "--where", "rows>9999").stderr.startswith("0 datasets\ncorpus: no dataset passes")


def test_a_record_is_shown_with_its_fields(grown: Path) -> None:
    card = run_in(grown, "show", "tides-year").stdout
    (record,) = json.loads(run_in(grown, "show", "tides-year", "--format", "json").stdout)["records"]

    assert (
        "rows         1250.5\n"
        "released     2024-05-06\n"
        "open_access  true\n"
        "mirrors      https://example.org/m1 https://example.org/m2\n"
        "license      CC0-1.0\n"
    ) in card
    assert (record["rows"], record["open_access"]) == (1250.5, True)
    assert record["mirrors"] == ["https://example.org/m1", "https://example.org/m2"]


def test_fields_sort_count_and_are_found(grown: Path) -> None:
    filtered = run_in(grown, "list", "--where", "license~cc", "--where", "rows>1000", "--format", "csv").stdout
    assert filtered.splitlines()[0] == "key,year,retriever,knowledge,license,rows,title"
    assert filtered.splitlines()[1].startswith("tides-year,2024,NA,tables,CC0-1.0,1250.5,")
    assert "(did you mean 'license'?" in run_in(grown, "tag", "tides-year", "licence=MIT").stderr
    listed = run_in(grown, "list", "--sort", "-rows", "--columns", "key,rows", "--format", "csv").stdout
    counted = run_in(grown, "stats", "--by", "open_access", "--format", "csv").stdout

    assert listed.splitlines()[:3] == ["key,rows", "tides-year,1250.5", "example-citations,300"]
    assert counted.splitlines()[:3] == ["open_access,count,share_percent", "true,1,25.0", "false,1,25.0"]
    assert run_in(grown, "search", "CC0").stdout.splitlines()[1].startswith("tides-year")
    assert "Fields of datasets\n" in run_in(grown, "terms").stdout
    assert "  license      text: The name of its license.\n" in run_in(grown, "terms").stdout


def test_fields_are_set_like_tags(grown: Path) -> None:
    assert run_in(grown, "tag", "tides-year", "rows=13", "open_access=no", "mirrors=").code == 0
    wrong = run_in(grown, "tag", "tides-year", "released=yesterday")
    lost = run_in(grown, "tag", "tides-year", "license=")

    changed = RECORD.replace("rows: 1250.5", "rows: 13").replace("open_access: true", "open_access: false")
    changed = changed.replace("  mirrors: [https://example.org/m1, https://example.org/m2]\n", "")
    assert changed in written(grown, "data/papers.yaml")
    assert (wrong.code, wrong.stderr) == (2, "corpus: released 'yesterday' is not a date\nWrite YYYY-MM-DD.\n")
    assert lost.code == 1
    assert "missing field 'license'" in lost.stdout + lost.stderr


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "bibtex"])
def test_what_is_exported_is_imported_again_unchanged(grown: Path, form: str, tmp_path: Path) -> None:
    before = written(grown, "data/papers.yaml")
    file = tmp_path / f"exported.{form}"
    assert run_in(grown, "export", form, "-o", str(file)).code == 0

    again = run_in(grown, "import", form, str(file))
    edit(file, ("1250.5", "9.25"))
    changed = run_in(grown, "import", form, str(file))

    assert "0 updated, 0 added, 4 unchanged\n" in again.stderr + again.stdout
    assert "1 updated, 0 added, 3 unchanged\n" in changed.stderr + changed.stdout
    assert written(grown, "data/papers.yaml") == before.replace("rows: 1250.5", "rows: 9.25")


def test_a_citation_says_which_own_fields_it_leaves_out(grown: Path) -> None:
    noted = {
        form: run_in(grown, "export", form, "--where", "rows>1000").stderr for form in ("bibtex", "csl", "ris", "csv")
    }

    lacking = "released (1 dataset), open_access (1 dataset), mirrors (1 dataset), license (1 dataset)"
    assert noted == {
        "bibtex": f"1 dataset\nBibTeX has no place for {lacking}\n",
        "csl": f"1 dataset\nCSL-JSON has no place for {lacking}\n",
        "ris": f"1 dataset\nRIS has no place for {lacking}\n",
        "csv": "1 dataset\n",
    }


def test_an_export_and_a_bibliography_have_what_they_have_a_place_for(grown: Path) -> None:
    (cells,) = csv.DictReader(io.StringIO(run_in(grown, "export", "csv", "--where", "rows>1000").stdout))
    entry = run_in(grown, "export", "bibtex", "--where", "rows>1000").stdout
    (item,) = json.loads(run_in(grown, "export", "csl", "--where", "rows>1000").stdout)
    lines = run_in(grown, "export", "ris", "--where", "rows>1000").stdout.splitlines()

    assert "affiliation" not in cells
    assert "code" not in cells
    assert [cells[name] for name in ("rows", "released", "open_access")] == ["1250.5", "2024-05-06", "true"]
    assert (item["dimensions"], "C1  - 1250.5" in lines) == ("1250.5", True)
    assert "  rows          = {1250.5},\n" in entry
    assert entry.startswith("@article{tides-year,\n  title         = {Tides of a Year},\n")


def test_a_wrong_value_is_reported_at_its_place(grown: Path) -> None:
    edit(
        grown / "data" / "papers.yaml",
        ("rows: 1250.5", "rows: 1250.50"),
        ('released: "2024-05-06"', "released: in May"),
        ("open_access: true", "open_access: perhaps"),
        ("mirrors: [https://example.org/m1,", "mirrors: [example.org/m1,"),
        ("  license: CC0-1.0\n", "  affiliation: Example University\n"),
    )

    result = run_in(grown, "check", "data")

    lines = [line.partition("papers.yaml:")[2] for line in result.stdout.splitlines() if "papers.yaml:" in line]
    number = written(grown, "data/papers.yaml").splitlines().index("- key: tides-year") + 1
    assert [line.partition(" [tides-year]")[0].partition(" (allowed: key")[0] for line in lines] == [
        f"{number}:3: F101 missing field 'license'",
        f"{number + 10}:9: F105 '1250.50' must be written as 1250.5",
        f"{number + 11}:13: F106 'in May' is not a date: write YYYY-MM-DD",
        f"{number + 12}:16: V102 unknown value of open_access 'perhaps' (allowed: true, false)",
        f"{number + 13}:13: F114 'example.org/m1' is not a web address; begin it with https://",
        f"{number + 14}:3: F102 the taxonomy omits the field 'affiliation'; remove it here or there",
    ]


def test_editors_learn_the_fields_from_the_schema(grown: Path) -> None:
    assert run_in(grown, "build").code == 0
    items = json.loads(written(grown, "docs/schema/papers.schema.json"))["items"]

    assert items["properties"]["rows"] == {"description": "How many rows it has.", "type": "number"}
    assert items["properties"]["open_access"]["type"] == "boolean"
    assert items["properties"]["released"]["pattern"] == "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
    assert items["properties"]["mirrors"]["type"] == "array"
    assert items["properties"]["license"]["type"] == "string"
    assert "license" in items["required"]
    assert not {"affiliation", "code"} & items["properties"].keys()
    supported = items["properties"]["evidence"]["items"]["properties"]["tags"]["items"]["enum"]
    assert supported[-5:] == ["rows", "released", "open_access", "mirrors", "license"]


def test_evidence_can_support_a_field(grown: Path) -> None:
    evidence = ("--evidence", "The page says so.", "--evidence-source", "https://example.org/tides")
    words = ("tides-year", "rows=14", *evidence, "--evidence-level", "paper", "--evidence-confidence", "high")

    assert run_in(grown, "tag", *words).code == 0

    assert "    - tags: [rows]\n      note: The page says so.\n" in written(grown, "data/papers.yaml")


def test_the_issue_form_asks_for_the_fields(grown: Path, tmp_path: Path) -> None:
    form = grown / ".github" / "ISSUE_TEMPLATE" / "suggest-a-paper.yml"
    form.parent.mkdir(parents=True)
    form.write_text("", encoding="utf-8")
    answers = (
        ("arXiv id, DOI or address", "https://example.org/waves"),
        *(("Title", "Waves of a Day"), ("Authors", "Doe, Jane"), ("Year", "2024"), ("Venue", "Zenodo")),
        *(("Retriever", "Not applicable (NA)"), ("Knowledge source", "Tables (tables)")),
        *((f"Stage: {step}", "Does not arise") for step in ("Rewrite", "Rerank", "Read", "Cite")),
        *(("Category", "Benchmarks (benchmark)"), ("Summary", "Holds the waves of a day.")),
        *(("Rows", "12"), ("Open access", "Yes"), ("SPDX License", "MIT"), ("Released on", "some day")),
    )
    issue = tmp_path / "issue.md"
    issue.write_text("".join(f"### {label}\n\n{answer}\n\n" for label, answer in answers), encoding="utf-8")

    assert run_in(grown, "build").code == 0
    result = run_in(grown, "add", "--from-issue", str(issue), "--no-fetch", "--yes")

    text = form.read_text(encoding="utf-8")
    assert "name: Suggest a dataset\n" in text
    assert "      label: SPDX License\n      description: The name of its license.\n" in text
    assert "Affiliation" not in text
    assert result.code == 0, result.stderr
    assert "the answer to 'Released on' is left out: released 'some day' is not a date" in result.stderr
    assert "  rows: 12\n  open_access: true\n  license: MIT\n" in written(grown, "data/papers.yaml")


def test_the_site_shows_filters_and_exports_the_fields(grown: Path, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    assert run_in(grown, "site", "-o", str(folder)).code == 0

    page = written(folder, "papers/tides-year.html")
    listed = written(folder, "papers.html")
    data, records = (
        json.loads(written(folder, name).partition(before)[2].rpartition(after)[0])
        for name, before, after in (
            ("papers-data.js", "window.corpusData = ", ";"),
            ("papers-data-1.js", "corpusAdd(0, ", ");"),
        )
    )
    columns = {column[0]: column[1] for column in data["columns"]}
    row = next(dict(zip(data["names"], record, strict=False)) for record in records if record[0] == "tides-year")

    assert "<dt>Rows</dt><dd>1250.5</dd>" in page
    assert "<dt>Open access</dt><dd>Yes</dd>" in page
    assert '<dd><a href="https://example.org/m1" rel="noreferrer">https://example.org/m1</a>;' in page
    assert "<h1>Datasets</h1>" in listed
    assert columns["license"] == "SPDX License"
    assert (row["rows"], row["mirrors"]) == (
        1250.5,
        ["https://example.org/m1", "https://example.org/m2"],
    )
    assert "open_access" in [field["name"] for field in data["fields"]]
    assert "affiliation" not in columns


def test_a_change_is_told_in_the_words_of_the_survey(grown: Path, tmp_path: Path) -> None:
    before = tmp_path / "before"
    shutil.copytree(grown, before)
    assert run_in(grown, "tag", "tides-year", "rows=15").code == 0
    assert (
        run_in(grown, "add", *ADDED[:2], "Waves of a Day", "--url", "https://example.org/w", *ADDED[3:], *OWN).code != 0
    )
    edit(grown / "data" / "papers.yaml", ("- key: tides-year\n", "- key: waves-year\n"))

    told = run_in(grown, "diff", str(before), str(grown)).stdout

    assert "Datasets changed\n  waves-year, until now tides-year\n    key: tides-year -> waves-year\n" in told
    assert "    rows: 1250.5 -> 15\n" in told


def test_a_list_of_programs_needs_no_authors_years_and_venues(root: Path, tmp_path: Path) -> None:
    edit(root / "data" / "taxonomy.yaml", ("\nfields:\n", "\noptional: [authors, year, venue]\nfields:\n"))
    edit(
        root / "data" / "papers.yaml",
        ('  authors: ["{Example Company}"]\n', ""),
        ("  venue: Product documentation\n", ""),
    )
    named = ("https://example.org/tool", "--title", "A Tool", "--summary", "Lends a hand.", "--license", "MIT")
    tagged = ("--retriever", "NA", "--knowledge", "code", "--stages", "none", "--category", "benchmark")

    added = run_in(root, "add", *named, *tagged, "--no-fetch", "--yes")
    built = run_in(root, "build")
    assert (added.code, built.code) == (0, 0), added.stderr + built.stderr
    (item,) = json.loads(run_in(root, "export", "csl", "--where", "authors=", "--where", "year=").stdout)

    assert "- [A Tool](https://example.org/tool) - `SPDX License: MIT` `Code` Lends a hand.\n" in written(
        root, "README.md"
    )
    assert "(https://example.org/helpdesk) - 2024. `SPDX License" in written(root, "README.md")
    assert {"author", "issued"}.isdisjoint(item)
    assert run_in(root, "export", "bibtex", "--where", "year=").stdout == (
        "@misc{tool,\n  title         = {A Tool},\n  url           = {https://example.org/tool},\n}\n"
    )
    assert "PY" not in run_in(root, "export", "ris", "--where", "year=").stdout
    assert "year" not in json.loads(run_in(root, "show", "tool", "--format", "json").stdout)["records"][0]
    for command in ("check", "stats", "gaps", "list", "figures", "check data"):
        assert run_in(root, *command.split()).code == 0, command
    assert run_in(root, "site", "-o", str(tmp_path / "site")).code == 0


@pytest.mark.parametrize(
    ("declared", "finding"),
    [
        ("noun: {one: dataset}\n", "F101 missing field 'many'"),
        ("noun: {one: '*data*', many: datasets}\n", "F107 '*data*' is not a noun: write words of letters and digits"),
        ("optional: [title]\n", "V101 unknown field that can be optional 'title'"),
        ("omit: [title]\n", "V101 unknown optional field 'title'"),
        ("fields: [{field: year, label: Y, kind: year, help: H.}]\n", "F107 'year' is the name of a fixed field"),
        ("fields: [{field: retriever, label: R, kind: text, help: H.}]\n", "F108 'retriever' is the name of another"),
        ("fields: [{field: size, label: S, kind: choice, help: H.}]\n", "F101 missing field 'choices'"),
        ("fields: [{field: size, label: S, kind: text, help: H., choices: [a]}]\n", "F102 only a field of kind"),
        ("fields: [{field: size, label: S, kind: colour, help: H.}]\n", "V102 unknown kind 'colour'"),
    ],
)
def test_a_mistake_in_what_is_declared_is_reported(root: Path, declared: str, finding: str) -> None:
    edit(root / "data" / "taxonomy.yaml", (DECLARED, f"by_key: true\n{declared}"))

    result = run_in(root, "check", "data")

    assert result.code == 1
    assert finding in result.stdout


def test_a_missing_tag_says_how_it_is_set_and_how_the_field_becomes_optional(tmp_path: Path) -> None:
    shutil.copytree(TOY, tmp_path / "corpus")
    path = tmp_path / "corpus" / "data" / "papers.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("  size: small\n", "", 1), encoding="utf-8")

    result = run_corpus("--root", str(tmp_path / "corpus"), "check", "data")

    hint = "set it: corpus tag rose-garden size=..., or write required: false for it in data/taxonomy.yaml"
    assert f"F101 missing field 'size'; {hint} [rose-garden]\n" in result.stdout


def test_a_misspelt_field_is_not_also_to_be_set(tmp_path: Path) -> None:
    shutil.copytree(TOY, tmp_path / "corpus")
    path = tmp_path / "corpus" / "data" / "papers.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("  size: small\n", "  siez: small\n", 1), encoding="utf-8")

    result = run_corpus("--root", str(tmp_path / "corpus"), "check", "data")

    assert "F102 unknown field 'siez' (did you mean 'size'?) [rose-garden]\n" in result.stdout
    assert "F101 missing field 'size' [rose-garden]\n" in result.stdout
