"""The corpus on disk as one object, and what a new data file takes: a row and the module that decodes it."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.yamlfile import reader
from orchtrace_corpus.corpus import rules
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.store import CorpusFiles
from tests.conftest import ROOT, TOY, run_corpus
from tests.corpus import made_up_reviews
from tests.corpus.test_difference import git

REVIEW = "- paper: rose-garden\n  by: A Reader\n  stars: 4\n  text: It holds.\n"
TEXT_FILES = [
    row.path
    for row in store.DATA_FILES
    if row.path.endswith(".yaml") and row.name not in ("published", "searches")  # which hold keys alone
]
OTHER = "- paper: long-grass\n  by: A Reader\n  text: It grows.\n"


@pytest.fixture
def root(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the toy corpus, which is the working folder, where corpora can have reviews."""
    monkeypatch.setitem(sys.modules, "orchtrace_corpus.corpus.model.reviews", made_up_reviews)
    monkeypatch.setattr(store, "DATA_FILES", (*store.DATA_FILES, made_up_reviews.ROW))
    monkeypatch.chdir(root)
    (root / "data" / "reviews.yaml").write_text(f"{REVIEW}\n{OTHER}")
    assert run_corpus("build").code == 0
    return root


def test_check_has_a_line_for_a_new_data_file(root: Path) -> None:
    assert "reviews   ok     2 entries\n" in run_corpus("check").stdout

    (root / "data" / "reviews.yaml").write_text(REVIEW.replace("rose-garden", "rose-gardn").replace("stars", "star"))
    result = run_corpus("check")

    assert result.code == 1
    assert "reviews   failed 2 errors" in result.stdout
    assert (
        "data/reviews.yaml:3:3: F102 unknown field 'star' (did you mean 'stars'?) [rose-gardn]\n"
        "data/reviews.yaml:1:10: V102 there is no paper 'rose-gardn' [rose-gardn]\n"
    ) in result.stdout


def test_fmt_writes_a_new_data_file(root: Path) -> None:
    path = root / "data" / "reviews.yaml"
    path.write_text("- by:   A Reader\n  text: 'It holds.'\n  paper: rose-garden\n  stars: 4\n")

    assert run_corpus("check", "form").code == 1
    assert run_corpus("check", "form", "--fix").stderr == "wrote data/reviews.yaml\n"
    assert path.read_text() == REVIEW


def test_schema_describes_a_new_data_file(root: Path) -> None:
    schema = json.loads((root / "docs" / "schema" / "reviews.schema.json").read_text())

    assert schema["title"] == "A toy garden: reviews"
    assert schema["items"] == {
        "type": "object",
        "properties": {
            "paper": {"description": "The paper's key.", "type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
            "by": {"description": "Who wrote it.", "type": "string", "minLength": 1, "pattern": r"\S"},
            "stars": {"description": "From 1 to 5.", "type": "number"},
            "text": {"description": "The review.", "type": "string", "minLength": 1, "pattern": r"\S"},
        },
        "required": ["paper", "by", "text"],
        "additionalProperties": False,
    }


def test_diff_names_what_changed_in_a_new_data_file(root: Path) -> None:
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "base")
    (root / "data" / "reviews.yaml").write_text(REVIEW.replace("It holds.", "It holds well.").replace("4", "many"))

    shown = run_corpus("diff", "HEAD").stdout

    assert (
        "Reviews changed\n"
        "  rose-garden A Reader\n"
        "    stars: 4 -> many\n"
        "    text: It holds. -> It holds well.\n"
        "\n"
        "Reviews removed\n"
        "  long-grass A Reader\n"
    ) in shown
    assert "data/reviews.yaml: F" in shown.partition("Findings new\n")[2]


def test_merge_file_merges_a_new_data_file(root: Path) -> None:
    versions = {
        "base": f"{REVIEW}\n{OTHER}",
        "ours": f"{REVIEW.replace('4', '5')}\n{OTHER}",
        "theirs": f"{REVIEW.replace('It holds.', 'It holds well.')}\n{OTHER.replace('It grows.', 'It grew.')}",
    }
    for name, text in versions.items():
        (root / name).write_text(text)

    assert run_corpus("merge-file", "base", "ours", "theirs").code == 0
    merged = REVIEW.replace("4", "5").replace("It holds.", "It holds well.")
    assert (root / "ours").read_text() == f"{merged}\n{OTHER.replace('It grows.', 'It grew.')}"


def test_an_edit_names_what_it_breaks_in_a_new_data_file(root: Path) -> None:
    told = run_corpus("remove", "long-grass", "--yes").stderr

    assert "1 entry of another file: corpus check fails until that is fixed:\n" in told
    assert "data/reviews.yaml:6:10: V102 there is no paper 'long-grass' [long-grass]\n" in told


def test_every_row_names_functions_that_there_are() -> None:
    for row in store.DATA_FILES:
        for call in (row.decode, row.style, row.checks):
            if call:
                assert callable(store.import_named(call[0])), row.name
        assert all(call[0].startswith("model.") for call in (row.decode, row.style) if call), row.name


def test_a_check_reads_each_file_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: Counter[str] = Counter()
    read_bytes = reader.read_bytes

    def counted(path: str, shown_as: str, limit: int = reader.MAX_BYTES) -> bytes:
        reads[path] += 1
        return read_bytes(path, shown_as, limit)

    monkeypatch.setattr(reader, "read_bytes", counted)

    assert run_corpus("--root", str(ROOT), "check").code == 0
    data = {str(path): reads[str(path)] for path in (ROOT / "data").glob("*.yaml")}
    assert data == dict.fromkeys(data, 1)


def test_an_edit_that_is_not_written_stands_for_the_file() -> None:
    text = (TOY / store.PAPERS).read_bytes().replace(b"rose-garden", b"rose-yard")

    files = CorpusFiles(str(TOY), {store.PAPERS: text, store.EXCLUSIONS: b"[]\n"})

    assert files.loaded.papers[0].key == "rose-yard"
    assert files.pool.exclusions == ()
    assert CorpusFiles(str(TOY)).loaded.papers[0].key == "rose-garden"


def test_a_file_can_be_left_out() -> None:
    assert CorpusFiles(str(ROOT)).claims.claims
    files = CorpusFiles(str(ROOT), {store.CLAIMS: None})

    assert not files.has(store.CLAIMS)
    assert files.claims.claims == ()
    assert files.file(store.CLAIMS).text == "[]\n"
    assert files.text(store.CLAIMS) is None


@pytest.mark.parametrize("path", [store.TAXONOMY, store.PAPERS, store.EXCLUSIONS])
def test_a_required_file_that_is_missing_is_named(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TOY)
    files = CorpusFiles(str(TOY), {path: None})

    with pytest.raises(DataFileError, match=re.escape(f"cannot read {path}: No such file or directory")):
        _ = files.loaded


def test_findings_are_those_of_every_file() -> None:
    scale = b"- system: A\n  group: academic\n  quantity: agents\n  value: many\n"
    files = CorpusFiles(str(TOY), {store.SCALE: scale, store.DISPUTES: b"- record: rose-garden\n"})

    codes = {finding.code for finding in files.findings()}

    assert {finding.code for finding in rules.check(files.loaded)} <= codes
    assert {"S101", "F101"} <= codes
    assert "F101" not in {
        finding.code for finding in files.findings("data") if finding.location.path.endswith("disputes.yaml")
    }


@pytest.mark.parametrize(
    ("inserted", "code"),
    [
        (b"# \xff\n", "Y101"),
        (b"<<<<<<< HEAD\n", "Y104"),
        (b'- key: "unclosed\n', "Y104"),
        (b"- [no, record]\n", "F103"),
        (b'- key: "Not A Key"\n', "F101"),
    ],
    ids=["bad byte", "merge conflict", "open quote", "list", "bad key"],
)
def test_what_follows_from_a_record_that_cannot_be_read_is_not_reported(inserted: bytes, code: str) -> None:
    papers = (ROOT / store.PAPERS).read_bytes()
    start = papers.index(b"- key: marft")
    files = CorpusFiles(str(ROOT), {store.PAPERS: papers[:start] + inserted + papers[start:]})

    findings = list(files.findings())

    assert code in {finding.code for finding in findings}
    assert {finding.location.path.split("/")[-1] for finding in findings} == {"papers.yaml"}


def test_a_promotion_and_a_waiver_are_not_judged_by_papers_that_cannot_be_read() -> None:
    exclusions = (
        (TOY / store.EXCLUSIONS)
        .read_text()
        .replace(
            "a garden.\n",
            "a garden.\n  promoted_to: rose-garden\n  waive: [{code: D110, why: Another one of this name.}]\n",
        )
    )
    for papers in (b"<<<<<<< HEAD\n- key: rose-garden\n", b"\xff"):
        files = CorpusFiles(str(TOY), {store.PAPERS: papers, store.EXCLUSIONS: exclusions.encode()})

        assert {finding.code[0] for finding in files.findings()} == {"Y"}


def test_a_search_is_not_held_against_candidates_that_cannot_be_read() -> None:
    candidates = (ROOT / store.CANDIDATES).read_bytes()
    files = CorpusFiles(str(ROOT), {store.CANDIDATES: b"<<<<<<< HEAD\n" + candidates})

    assert {finding.code for finding in files.findings()} == {"Y104"}


def test_a_paper_that_is_missing_is_still_reported() -> None:
    papers = (ROOT / store.PAPERS).read_bytes().replace(b"- key: marft\n", b"- key: marft-renamed\n")
    files = CorpusFiles(str(ROOT), {store.PAPERS: papers})

    assert {"C201", "P103"} <= {finding.code for finding in files.findings()}


@pytest.mark.parametrize("path", TEXT_FILES)
@pytest.mark.parametrize(
    ("inserted", "code"),
    [("\u0430", "M111"), ("\\u0430", "M111"), ("\u3164", "M113"), ("\u200b", "M101"), ("\u202e", "M102")],
    ids=["letter", "escaped letter", "filler", "invisible", "direction"],
)
def test_look_alikes_are_reported_in_every_data_file(path: str, inserted: str, code: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    names = "summary|reason|claim|why|note|notes|definition|statement|label|title|text|source"
    fields = list(re.finditer(rf"(?m)^ +(?:- )?(?:{names}): ([A-Z][^\"\n]*[a-z])([a-z])([^\"\n]*)$", text))
    field = fields[len(fields) // 2]
    changed = f'{text[: field.start(1)]}"{field[1]}{inserted}{field[2]}{field[3]}"{text[field.end() :]}'

    files = CorpusFiles(str(ROOT), {path: changed.encode()})

    assert code in {finding.code for finding in files.findings()}


def test_look_alikes_are_found_once_and_can_be_waived() -> None:
    papers = (TOY / store.PAPERS).read_text(encoding="utf-8").replace("Garden in", "G\u0430rden in", 1)
    exclusions = (TOY / store.EXCLUSIONS).read_text(encoding="utf-8").replace("Window", "W\u0456ndow", 1)

    def lookalikes(papers: str) -> list[tuple[str, str]]:
        files = CorpusFiles(str(TOY), {store.PAPERS: papers.encode(), store.EXCLUSIONS: exclusions.encode()})
        return [(finding.code, finding.record) for finding in files.findings() if finding.code in ("M111", "F112")]

    waived = papers.replace("- key: rose-garden\n", "- key: rose-garden\n  waive: [{code: M111, why: So called.}]\n")
    assert lookalikes(papers) == [("M111", "rose-garden"), ("M111", "E001")]
    assert lookalikes(waived) == [("M111", "E001")]
