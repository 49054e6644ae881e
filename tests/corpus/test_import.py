"""`corpus import`: what another program wrote comes back into the data, all of it or nothing."""

import io
import json
import shutil
import sys
from pathlib import Path

import pytest

from orchtrace_corpus.corpus.api import Corpus, load
from orchtrace_corpus.corpus.formats import registry
from orchtrace_corpus.corpus.model import store
from tests.conftest import ROOT, run_corpus
from tests.effort import mostly_slow

pytestmark = pytest.mark.usefixtures("in_root")

PROFILES = [(name, profile) for name in registry.readable_formats() for profile in registry.FORMATS[name].profiles]
TOY_PROFILES = [(name, profile) for name, profile in PROFILES if profile != "published"]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def exported(corpus: Corpus, folder: Path, name: str, profile: str = "") -> Path:
    """The corpus in another format, in a file."""
    written = registry.FORMATS[name].write(corpus.papers, corpus.taxonomy, profile)
    path = folder / f"papers.{name}"
    path.write_bytes(written if isinstance(written, bytes) else written.encode())
    return path


@pytest.mark.parametrize(("name", "profile"), TOY_PROFILES)
def test_what_was_exported_changes_nothing(root: Path, toy: Corpus, name: str, profile: str) -> None:
    before = (root / store.PAPERS).read_bytes()
    path = exported(toy, root, name, profile)

    result = run_corpus("import", name, str(path), "--profile", profile)

    assert result == (0, "", "corpus: nothing changes\n0 updated, 0 added, 4 unchanged\n")
    assert (root / store.PAPERS).read_bytes() == before


@pytest.mark.parametrize(
    ("name", "profile"), mostly_slow(PROFILES, [("bibtex", "tagged"), ("csv", "published"), ("json", "records")])
)
def test_the_real_corpus_comes_back_as_it_was(tmp_path: Path, real: Corpus, name: str, profile: str) -> None:
    shutil.copytree(ROOT / "data", tmp_path / "data")
    before = (tmp_path / store.PAPERS).read_bytes()
    path = exported(real, tmp_path, name, profile)

    result = run_corpus("--root", str(tmp_path), "import", name, str(path), "--profile", profile)

    assert (result.code, result.stdout) == (0, "")
    assert result.stderr.endswith(f"0 updated, 0 added, {len(real.papers)} unchanged\n")
    assert (tmp_path / store.PAPERS).read_bytes() == before


def test_what_differs_is_changed_and_nothing_else(root: Path, toy: Corpus) -> None:
    path = exported(toy, root, "json")
    edit(path, "Long Grass and How to Keep It", "Long Grass: How to Keep It")
    edit(root / store.PAPERS, "title: Long Grass and How to Keep It", "title: Long Grass and How to Keep It  # sic")

    assert run_corpus("import", "json", str(path)) == (
        0,
        """\
--- a/data/papers.yaml
+++ b/data/papers.yaml
@@ -22,7 +22,7 @@
   added: "2021-05-01"
\x20
 - key: long-grass
-  title: Long Grass and How to Keep It  # sic
+  title: "Long Grass: How to Keep It"  # sic
   authors: ["{Meadow Team}"]
   year: 2023
   venue: arXiv
""",
        "wrote data/papers.yaml\ncorpus build regenerates the rest; CONTRIBUTING.md says whether to commit it\n1 updated, 0 added, 3 unchanged\n",
    )


def test_a_corpus_is_filled_from_another(root: Path, toy: Corpus) -> None:
    path = exported(toy, root, "jsonl")
    (root / store.PAPERS).write_text("[]\n")

    result = run_corpus("import", "jsonl", str(path))

    assert (result.code, result.stderr.splitlines()[-1]) == (0, "0 updated, 4 added, 0 unchanged")
    assert load(str(root)).papers == toy.papers


def test_a_dry_run_writes_nothing(root: Path, toy: Corpus) -> None:
    path = exported(toy, root, "jsonl")
    edit(path, "How to Keep It", "How to Lose It")
    before = (root / store.PAPERS).read_bytes()

    result = run_corpus("import", "jsonl", str(path), "--dry-run")

    assert (result.code, "+  title: Long Grass and How to Lose It\n" in result.stdout) == (0, True)
    assert result.stderr == "corpus: nothing was written (--dry-run)\n1 updated, 0 added, 3 unchanged\n"
    assert (root / store.PAPERS).read_bytes() == before


def test_standard_input_is_a_file_like_any_other(root: Path, toy: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    data = exported(toy, root, "jsonl").read_bytes()

    for words in (["jsonl"], ["jsonl", "-"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert run_corpus("import", *words) == (0, "", "corpus: nothing changes\n0 updated, 0 added, 4 unchanged\n")


def test_all_problems_are_told_at_their_lines_and_nothing_is_written(root: Path) -> None:
    before = (root / store.PAPERS).read_bytes()
    records = [
        {"key": "rose-garden", "style": "frmal"},
        {"key": "pond", "title": "A Pond"},
        {"key": "long-grass", "title": "Grass"},
        {"key": "long-grass", "title": "Grass"},
    ]
    (root / "new.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))

    assert run_corpus("import", "jsonl", "new.jsonl") == (
        1,
        "",
        "corpus: nothing was written, since some records cannot be imported:\n"
        "new.jsonl:1: V102 unknown style 'frmal' (did you mean 'formal'? allowed: formal, cottage, meadow, gravel, NA) "
        "[rose-garden]\n"
        "new.jsonl:2: no paper has this key yet, and a new one needs authors, year, venue, urls, style, care, "
        "size; corpus add asks for them [pond]\n"
        "new.jsonl:4: key 'long-grass' is used twice (first on line 3); keep one record\n",
    )
    assert (root / store.PAPERS).read_bytes() == before


def test_an_import_that_breaks_a_rule_is_not_written(root: Path) -> None:
    before = (root / store.PAPERS).read_bytes()
    (root / "new.jsonl").write_text('{"key": "long-grass", "size": "small", "doi": "10.5555/roses.1"}\n')

    result = run_corpus("import", "jsonl", "new.jsonl")

    assert (result.code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[0] == (
        "corpus: the edit would bring 2 errors, so nothing was written; at these lines:"
    )
    assert [line.split(" ")[:2] for line in result.stderr.splitlines()[1:]] == [
        ["new.jsonl:1:", "D103"],
        ["new.jsonl:1:", "X101"],
    ]
    assert (root / store.PAPERS).read_bytes() == before


LABELS = [
    (
        "jsonl",
        '{"key": "long-grass", "style": "FORMAL", "care": {"C1": "Weekly", "Pruning": "Daily"}, "tools": ["Spade"]}\n',
    ),
    ("csv", "key,style,water,prune,tools\nlong-grass,Formal,Weekly,daily,Spade\n"),
]


@pytest.mark.parametrize(("name", "text"), LABELS)
def test_labels_and_codes_stand_for_terms(root: Path, name: str, text: str) -> None:
    (root / f"new.{name}").write_text(text)

    assert run_corpus("import", name, f"new.{name}").code == 0
    assert load(str(root))["long-grass"].tags == {
        "style": "formal",
        "care": {"water": "weekly", "prune": "daily"},
        "tools": ("spade",),
        "size": "large",
    }


def test_a_code_of_two_terms_is_refused_at_its_line(root: Path) -> None:
    (root / "new.csv").write_text("key,style\nlong-grass,S2\n")

    result = run_corpus("import", "csv", "new.csv")

    assert (result.code, result.stderr.splitlines()[1]) == (
        1,
        "new.csv:2: V106 'S2' is the code of 2 terms of style, cottage and meadow; name one of them [long-grass]",
    )


def test_a_new_paper_that_the_corpus_knows_or_nearly_knows_by_its_title_is_told_as_corpus_add_tells_it(
    root: Path,
) -> None:
    (root / "new.bib").write_text(
        '@misc{beds, title = {R{\\"o}ses: A Garden in Four Bed}}\n'
        "@misc{gate, title = {Anything}, eprint = {2001.00009}}\n"
        '@misc{other, title = {R{\\"o}ses: A Garden in Four Bed}, eprint = {2201.00007}}\n'
        "@misc{new, title = {Nothing of the Kind}, keywords = {style=formal}}\n"
        "@misc{rose-garden, year = {2021}}\n"
    )

    told = [run_corpus("import", "new.bib", *words).stderr.splitlines() for words in (["--dry-run"], [])]

    needed = "no paper has this key yet, and a new one needs authors, year,"
    assert told[0] == [
        "corpus: new.bib:3: its title is nearly that of rose-garden, which has another arXiv id; compare them",
        "corpus: nothing was written, since some records cannot be imported:",
        "new.bib:1: in the pool already as 'rose-garden', known by its title, 'Röses: A Garden in Four Beds' [beds]",
        "new.bib:2: excluded as E001 on 2023-01-01, stage: gate: Too small to count as a garden. It is known by "
        "its identifier arXiv:2001.00009 [gate]",
        f"new.bib:3: {needed} style, care, size; corpus add asks for them [other]",
        f"new.bib:4: {needed} venue, urls, care, size; corpus add asks for them [new]",
    ]
    assert told[0] == told[1]


def test_of_an_excluded_paper_that_lacks_nothing_the_decision_is_told_first(root: Path, toy: Corpus) -> None:
    record = json.loads(exported(toy, root, "jsonl").read_text(encoding="utf-8").splitlines()[1])
    record = {**record, "key": "gate", "title": "Gate", "arxiv_id": "2001.00009", "urls": []}
    (root / "new.jsonl").write_text(json.dumps(record) + "\n")

    assert run_corpus("import", "new.jsonl").stderr.splitlines()[:3] == [
        "corpus: new.jsonl:1: excluded as E001 on 2023-01-01, stage: gate: Too small to count as a garden. It is known "
        "by its identifier arXiv:2001.00009",
        "corpus: the edit would bring 1 error, 1 warning, so nothing was written; at these lines:",
        "data/exclusions.yaml:3:15: D109 the identifier is that of the paper 'gate'; keep one record, or write "
        "promoted_to: gate [E001]",
    ]


def test_a_huge_difference_is_counted_and_not_shown(root: Path) -> None:
    fixed = {"authors": ["Anonymous"], "year": 2024, "venue": "Beds", "summary": "A garden.", "size": "small"}
    tags = {"style": "cottage", "care": {"water": "weekly"}}
    records = [
        {"key": f"garden-{n}", "title": f"Garden {n}", "urls": [f"https://example.org/{n}"], **fixed, **tags}
        for n in range(120)
    ]
    (root / "new.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))

    tried, done = (run_corpus("import", "jsonl", "new.jsonl", *words) for words in (["--dry-run"], []))

    counted = "corpus: data/papers.yaml: 1,440 lines added, 0 removed; a difference of 1,446 lines is not shown"
    assert (tried.code, tried.stdout, tried.stderr.splitlines()[0]) == (0, "", counted)
    assert (done.code, done.stdout, done.stderr.splitlines()[0]) == (0, "", counted)
    assert done.stderr.splitlines()[-1] == "0 updated, 120 added, 0 unchanged"
    assert len(load(str(root)).papers) == 124


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["jsn", "x"], 2, "corpus: unknown format 'jsn' (did you mean 'json'? allowed: bibtex, csv, json, "),
        (["parquet", "x"], 2, "Parquet is written only, not read\nReadable: bibtex, csv, "),
        (["csv", "x", "--profile", "publshed"], 2, "csv has no profile 'publshed' (did you mean 'published'? "),
        (["json", "nowhere.json"], 3, "corpus: cannot read nowhere.json: No such file or directory\n"),
        (["json", "."], 3, "corpus: cannot read .: Is a directory\n"),
        (["json", "no\x1bwhere"], 3, "corpus: cannot read no\\x1bwhere: No such file or directory\n"),
    ],
)
def test_what_cannot_be_read_is_said(root: Path, words: list[str], code: int, message: str) -> None:
    (root / "x").write_text("[]")

    result = run_corpus("import", *words)

    assert (result.code, result.stdout) == (code, "")
    assert message in result.stderr


def test_without_a_file_nobody_is_kept_waiting(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)

    assert run_corpus("import", "json") == (
        2,
        "",
        "corpus: there is nothing on standard input\nName a file, or pipe one in.\n",
    )


def test_an_emptied_cell_changes_nothing_and_that_is_said(root: Path, toy: Corpus) -> None:
    before = (root / store.PAPERS).read_bytes()
    one = root / "one.csv"
    one.write_text("key,summary,water,prune\nrose-garden,,daily,weekly\n", encoding="utf-8")
    several = root / "several.csv"
    several.write_text("key,style,size,water,prune,notes\nrose-garden,,,,,\nlong-grass,meadow,,,,\n", encoding="utf-8")
    fix = "To take a field away, remove it in data/papers.yaml; an optional tag: corpus tag KEY FIELD=\n"

    assert run_corpus("import", "csv", str(one)) == (
        0,
        "",
        "corpus: nothing changes\n0 updated, 0 added, 1 unchanged\n"
        f"corpus: 1 empty cell changes nothing: the record keeps summary of rose-garden\n{fix}",
    )
    assert run_corpus("import", "csv", str(several)) == (
        0,
        "",
        "corpus: nothing changes\n0 updated, 0 added, 2 unchanged\n"
        "corpus: 5 empty cells change nothing: the records keep style of rose-garden, size of rose-garden, "
        f"care of rose-garden and 2 more\n{fix}",
    )
    assert (root / store.PAPERS).read_bytes() == before


@pytest.mark.parametrize(
    ("name", "text"), [("bibtex", ""), ("bibtex", "% nothing\n"), ("jsonl", ""), ("csl", "[]"), ("csv", "key,title\n")]
)
def test_a_file_without_entries_is_no_import(root: Path, name: str, text: str) -> None:
    path = root / "nothing"
    path.write_text(text, encoding="utf-8")

    assert run_corpus("import", name, str(path)) == (
        3,
        "",
        f"corpus: there are no entries in {path}\nNothing was imported.\n",
    )


def test_formats_that_cannot_be_read_are_not_offered(root: Path) -> None:
    assert run_corpus("import", "nope").stderr == (
        "corpus: unknown format 'nope' (allowed: bibtex, csv, json, jsonl, ris, csl)\n"
    )
