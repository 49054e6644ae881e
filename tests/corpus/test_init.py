"""`corpus init`, and what it stands for: another survey brings its own axes and changes no Python."""

import json
import os
import re
import secrets  # noqa: F401 - writing imports it, which may not be possible without privileges
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import orchtrace_corpus as oc
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.corpus import scaffold as module
from orchtrace_corpus.corpus.scaffold import scaffold, starter_files
from tests.conftest import ROOT, run_corpus
from tests.effort import tries

TEMPLATES = ROOT / "orchtrace_corpus" / "corpus" / "templates"
STARTER = [
    ".gitattributes",
    ".github/dependabot.yml",
    ".github/workflows/check.yml",
    ".github/workflows/comment.yml",
    ".gitignore",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "data/exclusions.yaml",
    "data/papers.yaml",
    "data/protocol.yaml",
    "data/taxonomy.yaml",
    "requirements.txt",
]

FIGURES = (
    *("artifact", "category", "knowledge", "papers-by-year", "retriever-by-category", "retriever", "screening-flow"),
    "stages",
)
BUILT = sorted(
    [
        *STARTER,
        *("docs/STATS.md", "docs/figures.md", "docs/protocol.md"),
        *(f"docs/schema/{name}.schema.json" for name in ("exclusions", "papers", "protocol")),
        *(f"docs/figures/{name}.svg" for name in FIGURES),
    ]
)
"""What `corpus init` leaves: the starter files, and what `corpus build` makes of them."""


@pytest.fixture(autouse=True)
def _installed_from_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the starter ask for the package as if it came from an index."""
    monkeypatch.setattr(module, "requirement", lambda: "orchtrace-corpus==0.1.0")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the starter corpus."""
    scaffold(str(tmp_path / "new"), module.starter_files())
    return tmp_path / "new"


@contextmanager
def without_privileges() -> Iterator[None]:
    """Let file permissions count, also where the tests are run by root."""
    files = module.starter_files()  # which only root may be able to read
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "starter_files", lambda: files)
        if os.geteuid() != 0:
            yield
            return
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def test_init_writes_the_starter_corpus_and_says_what_to_type_next(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "survey"

    result = run_corpus("init", str(folder))

    assert result.code == 0
    assert files(folder) == BUILT
    assert sorted(result.stdout.splitlines()) == [str(folder / name) for name in BUILT]
    assert result.stderr.splitlines() == [
        "Next:",
        f"  cd {folder}",
        "  corpus check",
        "  corpus stats",
        "Then make data/taxonomy.yaml yours; its comments say how.",
    ]
    as_shipped = [name for name in STARTER if name not in ("README.md", "requirements.txt")]
    assert all((folder / name).read_bytes() == (TEMPLATES / name).read_bytes() for name in as_shipped)
    assert run_corpus("--root", str(folder), "check").code == 0


def test_check_names_every_line_of_the_example_until_it_is_replaced(folder: Path) -> None:
    places = {
        "README.md": "1, 3",
        "LICENSE": "1",
        "data/taxonomy.yaml": "5, 21, 22, 236",
        "data/papers.yaml": "3, 5, 6, 7, 8, 10, 11, 12, 22, 26, 28, 29, 32, 33, 42, 46, 48, 49, 50, 53, 63, 67",
        "data/exclusions.yaml": "3, 6, 7, 8, 11",
        "data/protocol.yaml": "3, 5, 6, 7, 11, 13, 18, 21",
        "requirements.txt": "1",
    }
    (folder / "requirements.txt").write_text("orchtrace-corpus @ file:///here\n", encoding="utf-8")
    run_corpus("--root", str(folder), "build")

    told = run_corpus("--root", str(folder), "check")

    shown = "; ".join(f"{name}:{lines}" for name, lines in places.items())
    line = f"example   ok     43 lines are still those of corpus init's example; to make yours: {shown}"
    assert (told.code, told.stdout.splitlines()[-1]) == (0, line)
    for name in places:
        text = (folder / name).read_text(encoding="utf-8").replace("xample", "nstance").replace("etriev", "ead")
        text = text.replace("EXAMPLE", "MINE").replace("No licence", "CC0").replace("file:", "https:")
        (folder / name).write_text(text.replace('day: "2024-01-31', 'day: "2024-01-30'), encoding="utf-8")
    run_corpus("--root", str(folder), "build")
    fixed = run_corpus("--root", str(folder), "check")
    assert (fixed.code, fixed.stdout.splitlines()[-1]) == (0, "build     ok     up to date")


@pytest.mark.parametrize(
    ("recorded", "origin", "asked"),
    [
        (None, "", f"orchtrace-corpus=={oc.__version__}"),
        (
            {"url": "https://me:secret@e.org/us/corpus", "vcs_info": {"vcs": "git", "commit_id": "abc123"}},
            "",
            "orchtrace-corpus @ git+https://e.org/us/corpus@abc123",
        ),
        ({"url": "https://e.org/corpus.whl", "archive_info": {}}, "", "orchtrace-corpus @ https://e.org/corpus.whl"),
        (
            {"dir_info": {"editable": True}},
            "https://token@e.org/us/corpus.git",
            "orchtrace-corpus @ git+https://e.org/us/corpus.git",
        ),
        ({"dir_info": {}}, "git@e.org:us/corpus.git", "orchtrace-corpus @ git+https://e.org/us/corpus.git"),
        ({"dir_info": {}}, "ssh://git@e.org/us/corpus", "orchtrace-corpus @ git+https://e.org/us/corpus"),
        ({"dir_info": {}}, "/srv/git/corpus", "orchtrace-corpus @ {folder}"),
        ({"dir_info": {}}, "", "orchtrace-corpus @ {folder}"),
    ],
)
def test_the_starter_installs_the_package_from_where_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: dict[str, object] | None, origin: str, asked: str
) -> None:
    monkeypatch.undo()
    clone = tmp_path / "a clone"
    clone.mkdir()
    if origin:
        for words in (["init", "--quiet"], ["remote", "add", "origin", origin]):
            subprocess.run(["git", "-C", str(clone), *words], check=True)
    text = None if recorded is None else json.dumps({"url": clone.as_uri(), **recorded})
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: Distribution(text))

    assert starter_files()["requirements.txt"] == f"{asked.format(folder=clone.as_uri())}\n"
    told = run_corpus("init", str(tmp_path / "new")).stderr
    line = (
        "requirements.txt names a folder of this machine; before you share, write: "
        "orchtrace-corpus @ git+https://ADDRESS@COMMIT\n"
    )
    assert (line in told) is ("{folder}" in asked)


class Distribution:
    """An installation that knows where it came from."""

    def __init__(self, text: str | None) -> None:
        self._text = text

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self._text


def test_init_in_the_working_folder_needs_no_cd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    result = run_corpus("init", ".")

    assert result.code == 0
    assert files(tmp_path) == BUILT
    assert "cd" not in result.stderr
    assert run_corpus("check", "data").code == 0


@pytest.mark.parametrize("name", ["with spaces", "Übersicht über 検索", "it's", "two\nlines", os.fsdecode(b"caf\xe9")])
def test_any_name_of_a_folder_will_do(name: str, tmp_path: Path) -> None:
    folder = str(tmp_path / name)

    result = run_corpus("init", folder)

    assert result.code == 0
    assert len(result.stdout.splitlines()) == len(BUILT)
    assert run_corpus("--root", folder, "check", "data").code == 0
    if name.isprintable():
        assert shlex.split(result.stderr.splitlines()[1]) == ["cd", folder]


def test_what_a_folder_already_holds_stays(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("mine", encoding="utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "notes.txt").write_text("mine", encoding="utf-8")

    assert run_corpus("init", str(tmp_path)).code == 0
    assert files(tmp_path) == sorted([*BUILT, ".git/config", "data/notes.txt"])


@pytest.mark.parametrize("name", BUILT)
def test_nothing_is_overwritten(name: str, tmp_path: Path) -> None:
    mine = tmp_path / name
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine", encoding="utf-8")

    result = run_corpus("init", str(tmp_path))

    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"corpus: {mine} is there already")
    assert files(tmp_path) == [name]
    assert mine.read_text(encoding="utf-8") == "mine"


def test_a_link_that_leads_nowhere_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "README.md").symlink_to(tmp_path / "elsewhere")

    assert run_corpus("init", str(tmp_path / "new")).code == 2
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")

    assert run_corpus("init", str(tmp_path / "file")) == (
        2,
        "",
        f"corpus: {tmp_path}/file is not a folder\nName a new folder, or an empty one.\n",
    )
    assert run_corpus("init", str(tmp_path / "file" / "new")).code == 3
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "data").write_text("mine", encoding="utf-8")
    assert "a file of that name is in the way" in run_corpus("init", str(tmp_path / "new")).stderr
    assert files(tmp_path) == ["file", "new/data"]


def test_a_parent_that_cannot_be_written_to() -> None:
    with tempfile.TemporaryDirectory() as parent:
        os.chmod(parent, 0o555)
        with without_privileges(), pytest.raises(DataFileError, match=r"cannot create .*: Permission denied"):
            scaffold(os.path.join(parent, "new"), module.starter_files())
        assert os.listdir(parent) == []


def test_a_folder_that_cannot_be_written_to() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        with without_privileges(), pytest.raises(DataFileError, match=r"cannot (create|write) .*: Permission denied"):
            scaffold(folder, module.starter_files())
        assert os.listdir(folder) == []


@pytest.mark.parametrize("reason", [DataFileError("the disk is full"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_failure_half_way_leaves_nothing_behind(
    reason: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = module.write_atomic

    def fail_late(path: str, text: str) -> None:
        write(path, text)
        if path.endswith("papers.yaml"):
            raise reason

    monkeypatch.setattr(module, "write_atomic", fail_late)
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")

    for folder in (tmp_path, tmp_path / "new" / "survey"):
        with pytest.raises(type(reason)):
            scaffold(str(folder), module.starter_files())

    assert os.listdir(tmp_path) == ["mine.txt"]


def test_of_several_at_once_one_succeeds(tmp_path: Path) -> None:
    command, count = [sys.executable, "-m", "orchtrace_corpus", "--quiet", "init", str(tmp_path / "new")], tries(4, 2)

    runs = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(count)]

    assert sorted(run.wait(60) for run in runs) == [0, *[2] * (count - 1)]
    assert files(tmp_path / "new") == BUILT


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--root", "x", "init", "y"], "corpus: init makes a new corpus and takes no --root\nWrite: corpus init DIR\n"),
        (["init", ""], "corpus: the folder's name is empty\nWrite: corpus init DIR\n"),
        (["init"], "Missing argument 'DIR'"),
    ],
)
def test_mistakes_on_the_command_line(words: list[str], message: str) -> None:
    result = run_corpus(*words)

    assert result.code == 2
    assert message in result.stderr


def test_the_starter_corpus_is_valid_without_a_warning(folder: Path) -> None:
    result = run_corpus("--root", str(folder), "check", "data")

    assert (result.code, result.stdout) == (0, "")
    assert result.stderr.startswith("no problems in 3 papers and 1 exclusion")


def test_the_starter_corpus_has_other_axes_of_every_kind(folder: Path) -> None:
    ours, theirs = oc.load(str(ROOT)).taxonomy, oc.load(str(folder)).taxonomy

    assert {axis.field for axis in ours.axes} & {axis.field for axis in theirs.axes} == set()
    assert {axis.kind.value for axis in theirs.axes} == {"single", "many", "levels"}
    assert any(term.code for axis in theirs.axes if axis.kind == "single" for term in axis.terms)


def test_the_starter_records_cannot_be_taken_for_real_ones(folder: Path) -> None:
    corpus = oc.load(str(folder))

    for record in (*corpus.papers, *corpus.exclusions):
        assert record.title.startswith("Example: ")
    assert all(url.startswith("https://example.org/") for paper in corpus.papers for url in paper.urls)


def test_the_starter_corpus_can_be_looked_at(folder: Path) -> None:
    statistics = run_corpus("--root", str(folder), "stats")
    coverage = run_corpus("--root", str(folder), "gaps", "--format", "csv")

    assert statistics.stdout.startswith("3 papers and 1 exclusion: 4 audited records")
    for line in (r"T3 hybrid +1 ", r"text +3 ", r"S2 rerank +1 +· +·"):
        assert re.search(line, statistics.stdout)
    assert coverage.code == 0
    assert "hybrid" in coverage.stdout


def test_the_rules_of_the_starter_taxonomy_are_applied(folder: Path) -> None:
    papers = folder / "data" / "papers.yaml"
    text = papers.read_text(encoding="utf-8")
    papers.write_text(
        text.replace("retriever: hybrid", "retriever: NA").replace("[retriever, stages]", "[retriever]"),
        encoding="utf-8",
    )

    result = run_corpus("--root", str(folder), "check", "data")

    assert result.code == 1
    assert [line.partition(" [")[2] for line in result.stdout.splitlines()] == ["example-answers]"] * 2
    assert "A method retrieves something" in result.stdout
    assert "warning: That a step is trained is easily assumed" in result.stdout


def test_the_starter_corpus_passes_the_check_that_it_brings(folder: Path) -> None:
    assert run_corpus("--root", str(folder), "check", "form").code == 0
    assert run_corpus("--root", str(folder), "build").code == 0
    assert run_corpus("--root", str(folder), "check").code == 0


# Three surveys that have nothing in common with ours, and one of each kind of axis between them.

WITH_LEVELS = (
    """\
title: Bread
papers:
  - field: steps
    label: Step
    kind: levels
    role: axis
    definition: Who does what.
    terms:
      - {id: knead, code: B1, label: Knead, definition: Works the dough.}
      - {id: bake, code: B2, label: Bake, definition: Uses the oven.}
    levels:
      - {id: by_hand, label: By hand, definition: A baker does it.}
      - {id: by_machine, label: By machine, definition: A machine does it.}
exclusions:
  - field: reason_code
    label: Reason
    kind: single
    role: facet
    definition: Why it was left out.
    terms:
      - {id: cake, label: Cake, definition: It is a cake.}
rules:
  - id: bakers-knead
    severity: warning
    message: who bakes by hand kneads by hand
    when: {bake: by_hand}
    require: {knead: by_hand}
""",
    "  steps: {knead: by_hand, bake: by_machine}\n",
    "  reason_code: cake\n",
    ["knead", "bake"],
)
WITH_MANY = (
    """\
title: Tea
papers:
  - field: leaves
    label: Leaf
    kind: many
    role: axis
    allows_na: true
    definition: What is in it.
    terms:
      - {id: green, label: Green, definition: Not oxidised.}
      - {id: black, label: Black, definition: Oxidised.}
  - field: country
    label: Country
    kind: single
    role: facet
    required: false
    definition: Where it grows.
    terms:
      - {id: ceylon, label: Ceylon, definition: An island.}
      - {id: assam, label: Assam, definition: A valley.}
exclusions:
  - field: place
    label: Place
    kind: single
    role: facet
    definition: Where it was found.
    terms:
      - {id: shop, label: Shop, definition: In a shop.}
crosstabs:
  - [leaves, country]
rules:
  - id: black-tea-comes-from-somewhere
    message: name the country of a black tea
    when: {leaves: black}
    require: {country: [ceylon, assam]}
""",
    "  leaves: [green, black]\n  country: assam\n",
    "  place: shop\n",
    [],
)
BARE = (
    """\
title: Chairs
papers:
  - field: legs
    label: Legs
    kind: single
    role: axis
    definition: How many there are.
    terms:
      - {id: three, code: L3, label: Three, definition: A stool.}
      - {id: four, code: L4, label: Four, definition: A chair.}
  - field: wood
    label: Wood
    kind: single
    role: axis
    allows_na: true
    definition: What it is made of.
    terms:
      - {id: beech, label: Beech, definition: A tree.}
""",
    "  legs: four\n  wood: NA\n",
    "",
    ["legs", "wood"],
)


@pytest.mark.parametrize(
    ("taxonomy", "tags", "exclusion_tags", "axes"),
    [WITH_LEVELS, WITH_MANY, BARE],
    ids=["levels", "many", "no rules and no exclusion facets"],
)
@pytest.mark.parametrize("with_exclusion", [True, False], ids=["an exclusion", "no exclusion"])
def test_another_taxonomy_needs_no_other_python(
    taxonomy: str, tags: str, exclusion_tags: str, axes: list[str], with_exclusion: bool, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "taxonomy.yaml").write_text(taxonomy, encoding="utf-8")
    (data / "papers.yaml").write_text(
        "- key: one\n  title: The One\n  authors: [Anonymous]\n  year: 2001\n  venue: Report\n"
        f"  urls: [https://example.org/one]\n{tags}"
        "  summary: Says one thing.\n  added: '2002-03-04'\n",
        encoding="utf-8",
    )
    (data / "exclusions.yaml").write_text(
        "- id: E001\n  title: Another\n  identifier: ANOTHER\n  url: https://example.org/another\n"
        f"{exclusion_tags}  screened: '2002-03-04'\n  reason: It is out of scope.\n"
        if with_exclusion
        else "[]\n",
        encoding="utf-8",
    )
    corpus = oc.load(str(tmp_path))
    fields = [facet.field for facet in corpus.taxonomy.papers]

    def ask(*words: str) -> str:
        result = run_corpus("--root", str(tmp_path), *words)
        assert (words, result.code, result.stderr if result.code else "") == (words, 0, "")
        return result.stdout

    ask("check", "data")
    for output_format in ("table", "markdown", "csv", "json"):
        for words in (["stats"], ["stats", "--full"], ["gaps", *axes], ["list"], ["show", "one"], ["terms"]):
            assert ask(*words, "--format", output_format)
    for field in fields:
        assert field in ask("stats", "--by", field)
    shown = ask("show", "one")
    assert [field for field in fields if field not in shown] == []
    assert ask("list", "--columns", ",".join(["key", *fields])).startswith("key")
    assert len(corpus.to_pandas()) == 1
    if with_exclusion:
        assert "It is out of scope." in ask("show", "E001")
