"""`corpus export`: where it writes, what it refuses, and what comes of `export | import`."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import orchtrace_corpus as oc
from orchtrace_corpus.corpus.formats.citation import apa
from orchtrace_corpus.corpus.formats.registry import FORMATS
from tests.conftest import ROOT, TOY, Result, run_corpus, run_toy
from tests.corpus import processes
from tests.corpus.processes import loaded
from tests.effort import mostly_slow

FORMATS_PAGE = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
CORPUS = [sys.executable, "-m", "orchtrace_corpus"]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the toy corpus."""
    shutil.copytree(TOY / "data", tmp_path / "corpus" / "data")
    return tmp_path / "corpus"


def export(root: Path, *words: str) -> Result:
    return run_corpus("--root", str(root), "export", *words)


def test_a_format_goes_to_standard_output_and_the_count_to_standard_error() -> None:
    result = run_toy("export", "jsonl", "--where", "style=formal,meadow")

    assert (result.code, result.stderr) == (0, "2 papers\n")
    assert result.stdout.count("\n") == 2
    assert run_toy("--quiet", "export", "jsonl").stderr == ""


def test_no_paper_passes_and_nothing_is_written() -> None:
    assert run_toy("export", "bibtex", "--where", "year=1900") == (
        0,
        "",
        "0 papers\ncorpus: no paper passes the filters\n",
    )


def test_the_interface_gives_the_same(toy: oc.Corpus) -> None:
    assert toy.where("style=meadow").export("ris") == run_toy("export", "ris", "--where", "style=meadow").stdout
    assert toy.export("csv", "full") == run_toy("export", "csv").stdout


@pytest.mark.parametrize("name", mostly_slow(FORMATS, ["csv", "parquet"]))
def test_a_file_holds_the_bytes_of_standard_output(name: str, tmp_path: Path) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    file = tmp_path / "papers"

    result = run_toy("export", name, "-o", str(file))
    with open(tmp_path / "piped", "wb") as pipe:
        child = processes.fork(processes.command, "--root", str(TOY), "export", name, files=[pipe.fileno()] * 2)
    child.join(60)

    assert (result.code, result.stdout, result.stderr.splitlines()[0]) == (0, "", f"wrote {file}: 4 papers")
    assert child.exitcode == 0
    assert (tmp_path / "piped").read_bytes() == file.read_bytes()


def test_a_file_is_replaced_whole_and_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "papers.bib"
    file.write_text("old")
    file.chmod(0o640)

    assert run_toy("export", "bibtex", "-o", str(file)).code == 0

    assert file.read_text(encoding="utf-8").startswith("@article{rose-garden,\n")
    assert file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["papers.bib"]


@pytest.mark.parametrize("name", ["papers.yaml", "taxonomy.yaml", "../data/exclusions.yaml", "traces/a.json"])
def test_the_corpus_itself_is_never_replaced(name: str, copied: Path) -> None:
    (copied / "data" / "traces").mkdir()
    (copied / "data" / "traces" / "a.json").write_text("{}")
    before = {path: path.read_bytes() for path in (copied / "data").rglob("*.*")}

    result = export(copied, "csv", "-o", str(copied / "data" / name))

    assert (result.code, result.stdout) == (2, "")
    assert "is one of the corpus's own files\nChoose another name for the export." in result.stderr
    assert {path: path.read_bytes() for path in before} == before


def test_a_link_to_a_file_of_the_corpus_is_followed_before_it_is_judged(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "out.csv").symlink_to(copied / "data" / "papers.yaml")

    assert export(copied, "csv", "-o", str(tmp_path / "out.csv")).code == 2


def test_what_cannot_be_a_file_is_refused(tmp_path: Path) -> None:
    folder = run_toy("export", "csv", "-o", str(tmp_path))
    device = run_toy("export", "csv", "-o", "/dev/null")
    nowhere = run_toy("export", "csv", "-o", str(tmp_path / "no" / "x.csv"))

    assert (folder.code, folder.stderr) == (2, f"corpus: '{tmp_path}' is not a file\nName a file in it.\n")
    assert (device.code, device.stderr) == (
        2,
        "corpus: '/dev/null' is not a file\nLeave out -o to write to standard output.\n",
    )
    assert (nowhere.code, nowhere.stderr) == (3, f"corpus: there is no folder '{tmp_path / 'no'}'\nCreate it first.\n")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bibtx"], "corpus: unknown format 'bibtx' (did you mean 'bibtex'? allowed: bibtex, csv, json, jsonl, ris, "),
        (
            ["csv", "--profile", "publshed"],
            "corpus: csv has no profile 'publshed' (did you mean 'published'? allowed: ",
        ),
        (["csv", "--profile", "published"], "corpus: the taxonomy declares no published table\n"),
        (["csv", "--where", "styl=formal"], "corpus: unknown field 'styl' (did you mean 'style'?"),
        *(
            (["csv", "--where", f"stage{operator}gate"], "corpus: 'stage' is a field of exclusions, not of papers\n")
            for operator in ("=", "!=", "~", "<", ">=")
        ),
    ],
)
def test_what_does_not_exist_ends_with_2(words: list[str], message: str) -> None:
    result = run_toy("export", *words)

    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.startswith(message)


def test_a_corpus_with_errors_is_not_exported(copied: Path) -> None:
    papers = copied / "data" / "papers.yaml"
    papers.write_text(papers.read_text(encoding="utf-8").replace("size: small", "size: smal"), encoding="utf-8")

    result = export(copied, "csv")

    assert (result.code, result.stdout) == (1, "")
    assert "V102 unknown size 'smal'" in result.stderr


def test_bytes_are_refused_at_a_terminal() -> None:
    controller, terminal = pty.openpty()
    result = subprocess.run(
        [*CORPUS, "export", "parquet"], stdout=terminal, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    os.close(terminal)
    os.close(controller)

    assert result.returncode == 2
    assert result.stderr == "corpus: Parquet is not text for a terminal\nWrite it to a file: -o papers.parquet\n"


def test_a_pipe_gets_utf8_whatever_the_encoding_of_the_output() -> None:
    settings = {**os.environ, "PYTHONIOENCODING": "ascii"}

    result = subprocess.run([*CORPUS, "--root", str(TOY), "export", "csv"], capture_output=True, env=settings, cwd=ROOT)

    assert "Röses" in result.stdout.decode()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_said_so() -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run([*CORPUS, "export", "json"], stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT)

    assert result.returncode == 3
    assert "corpus: cannot write the output: No space left on device" in result.stderr


def test_letters_without_a_command_are_mentioned() -> None:
    remark = "Some letters have no command of LaTeX's own and stay as they are; pdflatex may lack them.\n"

    lacking = "BibTeX has no place for further urls (1 paper)\n"
    assert run_toy("export", "bibtex").stderr == f"4 papers\n{lacking}{remark}"
    assert run_toy("export", "bibtex", "--where", "style=formal").stderr == f"1 paper\n{lacking}"
    assert run_toy("export", "bibtex", "--profile", "biblatex").stderr == f"4 papers\n{lacking}"
    assert run_toy("export", "ris").stderr == "4 papers\n"


def test_the_category_that_arxiv_gives_goes_into_bibtex(copied: Path) -> None:
    from orchtrace_corpus.corpus.model.metadata import Metadata, encode

    day = "2021-01-01T00:00:00Z"
    known = Metadata("2101.00001", 1, "Roses", ("Änne Müller",), "", day, day, "cs.MA", ("cs.MA", "cs.AI"))
    (copied / "data" / "arxiv.json").write_text(encode({"2101.00001": known}), encoding="utf-8")

    assert re.findall("primaryClass.*", export(copied, "bibtex").stdout) == ["primaryClass  = {cs.MA},"]


@pytest.mark.parametrize(
    ("name", "profile"),
    mostly_slow(
        [(one.name, profile) for one in FORMATS.values() if one.can_read for profile in one.profiles],
        [("bibtex", "bibtex"), ("csv", "published"), ("jsonl", "records")],
    ),
)
def test_export_and_import_leave_the_data_as_it_is(name: str, profile: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "data", tmp_path / "data")
    file = tmp_path / "papers"
    before = (tmp_path / "data" / "papers.yaml").read_bytes()

    assert export(tmp_path, name, "--profile", profile, "-o", str(file)).code == 0
    result = run_corpus("--root", str(tmp_path), "import", name, str(file), "--profile", profile)

    assert result.code == 0, result.stderr
    assert (tmp_path / "data" / "papers.yaml").read_bytes() == before


def test_what_changes_in_an_exported_file_is_all_that_an_import_changes(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "data", tmp_path / "data")
    papers = tmp_path / "data" / "papers.yaml"
    before = papers.read_text(encoding="utf-8")
    text = export(tmp_path, "bibtex").stdout.replace("{Second Conference on", "{The Second Conference on")
    text = text.replace("{NeurIPS 2025 SEA Workshop}", "{SEA Workshop 2025}")
    (tmp_path / "papers.bib").write_text(text, encoding="utf-8")

    assert run_corpus("--root", str(tmp_path), "import", "bibtex", str(tmp_path / "papers.bib")).code == 0

    expected = before.replace("proceedings: Second Conference on", "proceedings: The Second Conference on")
    assert before.count("proceedings: Second Conference on") == 2
    assert papers.read_text(encoding="utf-8") == expected.replace("NeurIPS 2025 SEA Workshop", "SEA Workshop 2025")


def test_the_formats_page_names_every_format_and_profile() -> None:
    rows = re.findall(r"^\| (?:`(\w+)`)? ?\| `(\w+)`( \(default\))? \|.*\| (.*) \|$", FORMATS_PAGE, re.M)
    named: dict[str, list[str]] = {}
    for name, profile, _, _ in rows:
        named.setdefault(name or list(named)[-1], []).append(profile)

    assert named == {one.name: list(one.profiles) for one in FORMATS.values()}
    assert [profile for _, profile, default, _ in rows if default] == ["bibtex", "full"]
    assert {name for name, _, _, read in rows if read == "no"} == {
        one.name for one in FORMATS.values() if not one.can_read
    }


HEAVY = {"bibtexparser", "pandas", "pyarrow", "pylatexenc"}


def test_export_imports_only_what_its_format_needs() -> None:
    for words in ("export --help", "import --help", "export csv", "export bibtex"):
        assert not HEAVY & loaded()[words], words


# Papers by their keys


def test_keys_choose_the_papers_and_an_unknown_one_is_an_error(copied: Path) -> None:
    both = export(copied, "csl", "terminal-yard", "Rose-Garden", "rose-garden")

    assert [item["id"] for item in json.loads(both.stdout)] == ["terminal-yard", "rose-garden"]
    for words in (["rose-gardn"], ["--where", "key=rose-gardn"], ["rose-garden", "--where", "size=small"], ["E001"]):
        result = export(copied, "bibtex", *words, "-o", str(copied / "x.bib"))
        assert (result.code, (copied / "x.bib").exists()) == (2, False), words
    assert "no record 'rose-gardn'\nDid you mean: rose-garden (" in export(copied, "bibtex", "rose-gardn").stderr


def test_a_paper_is_cited_in_three_forms(copied: Path) -> None:
    def cite(*words: str) -> Result:
        return run_corpus("--root", str(copied), "cite", *words)

    assert cite("rose-garden") == (0, export(copied, "bibtex", "rose-garden").stdout, "")
    assert cite("rose-garden", "-f", "csl") == (0, export(copied, "csl", "rose-garden").stdout, "")
    assert cite("rose-garden", "long-grass", "--format", "apa") == (
        0,
        "Müller, Ä., O'Neill, T., et al. (2021). Röses: A Garden in Four Beds. Journal of Beds. "
        "https://doi.org/10.5555/roses.1\n"
        "Meadow Team. (2023). Long Grass and How to Keep It (arXiv:2302.00002). arXiv. https://example.org/grass\n",
        "",
    )
    assert cite("nobody").code == 2
    target = copied / "cited.bib"
    assert cite("rose-garden", "-o", str(target)) == (0, "", f"wrote {target}: 1 paper\n")
    assert target.read_text(encoding="utf-8") == cite("rose-garden").stdout
    assert cite("rose-garden", "-o", str(copied / "data" / "papers.yaml")).code == 2


def test_the_style_of_the_apa_has_initials_an_ampersand_and_no_more_than_twenty_names() -> None:
    paper = oc.Paper(title="Is It?", authors=("Doe, Jo-Ann B.", "Roe, Jr, Al"), year=2020, venue="ICML 2020")
    many = paper._replace(authors=tuple(f"N{number}, A" for number in range(22)), urls=("https://example.org",))

    assert apa(paper) == "Doe, J.-A. B., & Roe, A., Jr. (2020). Is It? In ICML 2020."
    assert apa(many).startswith("N0, A., N1, A.,")
    assert "N18, A., … N21, A. (2020)" in apa(many)
    assert apa(oc.Paper(title="Nobody", year=2020, venue="Blog")) == "Nobody. (2020). Blog."
