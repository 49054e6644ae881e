"""The short forms of commands: fields without options, formats by a file's ending, parts of a build."""

import shutil
from pathlib import Path

import pytest

from orchtrace_corpus.corpus.formats import registry
from tests.conftest import TOY, run_corpus, run_toy


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("style", "--by style"),
        ("style size", "--cross style size"),
        ("stage", "--by stage"),
        ("size --where style=formal --format csv", "--by size --where style=formal --format csv"),
    ],
)
def test_fields_of_stats_need_no_option(short: str, long: str) -> None:
    result = run_toy("stats", *short.split())

    assert (result.code, result.stderr) == (0, "")
    assert result == run_toy("stats", *long.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("a b c", "two fields can be crossed, not 3\nFor each alone: --by FIELD --by FIELD\n"),
        (
            "style --by size",
            "a field without an option and --by exclude each other\n"
            "To cross two: corpus stats style size; for each alone: corpus stats --by style --by size\n",
        ),
        (
            "stage --cross style size",
            "a field without an option and --cross exclude each other\n"
            "To cross two: corpus stats stage style; for each alone: corpus stats --by stage --by style\n",
        ),
        ("style --full", "--full shows all statistics; leave out --by, --cross and --evidence\n"),
    ],
)
def test_fields_of_stats_are_named_once(words: str, message: str) -> None:
    assert run_toy("stats", *words.split()) == (2, "", f"corpus: {message}")


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(TOY, tmp_path / "corpus")
    monkeypatch.chdir(tmp_path / "corpus")
    return tmp_path / "corpus"


ENDINGS = [(ending, one) for one in registry.FORMATS.values() for ending in one.endings]


@pytest.mark.parametrize(("ending", "name"), [(ending, one.name) for ending, one in ENDINGS if not one.is_binary])
def test_the_ending_of_a_file_says_its_format(copied: Path, ending: str, name: str) -> None:
    assert run_corpus("export", f"papers{ending}") == (
        0,
        "",
        run_corpus("export", name, "-o", "x").stderr.replace("wrote x", f"wrote papers{ending}"),
    )
    assert Path(f"papers{ending}").read_bytes() == Path("x").read_bytes()

    assert run_corpus("import", f"papers{ending}") == (
        0,
        "",
        "corpus: nothing changes\n0 updated, 0 added, 4 unchanged\n",
    )


def test_a_list_in_a_json_file_is_csl(copied: Path) -> None:
    assert run_corpus("export", "csl", "-o", "zotero.json").code == 0

    assert run_corpus("import", "zotero.json") == (0, "", "corpus: nothing changes\n0 updated, 0 added, 4 unchanged\n")


def test_a_file_that_is_called_like_a_format_stands_behind_it(copied: Path) -> None:
    assert run_corpus("export", "csv", "-o", "csv").code == 0

    assert run_corpus("import", "csv", "csv").stderr.endswith("0 updated, 0 added, 4 unchanged\n")


ALL_ENDINGS = ".bib, .bibtex, .csv, .json, .jsonl, .ndjson, .ris, .csl.json, .csl, .parquet"


@pytest.mark.parametrize("command", ["import", "export"])
def test_an_ending_that_no_format_has_is_named_with_all_that_are(copied: Path, command: str) -> None:
    hint = f"Name the format before the file, or let the file end in {ALL_ENDINGS}."
    assert run_corpus(command, "papers.xml") == (
        2,
        "",
        f"corpus: the name 'papers.xml' does not say which format the file has\n{hint}\n",
    )


def test_an_export_goes_to_one_file(copied: Path) -> None:
    result = run_corpus("export", "papers.bib", "-o", "x.bib")

    assert result == (2, "", "corpus: the export would have two files\nWrite: corpus export FORMAT -o x.bib\n")
    assert run_corpus("export", "data/papers.csv").code == 0
    assert run_corpus("export", "data/papers.csv").code == 2  # which is there now


def test_a_kind_of_generated_files_is_built_alone(copied: Path) -> None:
    Path("README.md").write_text("<!-- corpus:begin list -->\n<!-- corpus:end list -->\n", encoding="utf-8")
    for part in ("readme", "stats", "figures", "schema"):
        alone = run_corpus("build", part, "--check")
        assert (alone.code, alone.stderr.splitlines()[-1].partition("; ")[2]) == (1, f"to fix: corpus build {part}")
    assert run_corpus("figures", "--check").stdout == run_corpus("build", "figures", "--check").stdout

    assert run_corpus("build", "schema", "readme").stderr.splitlines()[-1] == "wrote README.md"
    assert run_corpus("build", "readme", "schema", "--check") == (0, "", "")
    assert run_corpus("build", "--check").code == 1  # the figures are missing still
    assert "'reademe' is not one of 'readme', 'stats', 'figures', 'schema'" in run_corpus("build", "reademe").stderr


@pytest.mark.parametrize("name", ["ROSE-GARDEN", "Rose-Garden", " rose-garden "])
def test_keys_ignore_case(copied: Path, name: str) -> None:
    assert run_corpus("show", name) == run_corpus("show", "rose-garden")
    assert run_corpus("show", "e001") == run_corpus("show", "E001")
    assert "in the pool already as 'rose-garden'" in run_corpus("add", name, "--no-fetch").stderr
    assert run_corpus("tag", name, "size=large").code == 0
    assert (
        run_corpus("list", "--where", "size=large", "--columns", "key", "--format", "csv").stdout
        == "key\nrose-garden\nlong-grass\n"
    )


@pytest.mark.parametrize(
    ("words", "same"),
    [
        ("list --where style=s2", "list --where style=cottage,meadow"),
        ("list --where C1=daily", "list --where water=daily"),
        ("list --where style!=S2", "list --where style!=cottage,meadow"),
        ("stats C1", "stats water"),
        ("gaps c1 style", "gaps water style"),
        ("tag rose-garden style=S3 C2=daily --dry-run", "tag rose-garden style=gravel prune=daily --dry-run"),
        ("add --no-fetch https://a.org/b --title A --authors B --year 2020 --venue C --style S3 --tag C1=weekly --size small --dry-run",
         "add --no-fetch https://a.org/b --title A --authors B --year 2020 --venue C --style gravel --water weekly --size small --dry-run"),
    ],
)  # fmt: skip
def test_a_code_stands_for_its_terms(copied: Path, words: str, same: str) -> None:
    result = run_corpus(*words.split())

    assert result.code == 0
    assert result.stdout == run_corpus(*same.split()).stdout != ""


def test_a_code_of_two_terms_is_no_tag(copied: Path) -> None:
    message = "corpus: 'S2' is the code of 2 terms of style: cottage, meadow\nName one of them."

    assert run_corpus("tag", "rose-garden", "style=S2").stderr.startswith(message)
