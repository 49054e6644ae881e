"""Papers that are left out, taken in after all, and taken out again: the log keeps every reason, and no id is lost."""

import io
import re
import shutil
from pathlib import Path

import pytest

import orchtrace_corpus as oc
from orchtrace_corpus.cli.main import run
from tests.conftest import ROOT, Result, run_corpus
from tests.corpus.arxiv_server import ArxivServer, record
from tests.loopback import loopback_only  # noqa: F401 - guards every test here

BOX = record(
    "2001.00009", version=3, title="A Window Box, Revisited", authors=("Jo Doe",), published="2020-01-02T00:00:00Z"
)
POND = record("2401.00008", title="Ponds without Fish", authors=("Pond Team",))
YARD = record("2401.00009", title="The yard", authors=("Anon Ymous",))
TAGS = ("--style", "formal", "--care", "none", "--size", "small", "--summary", "Hangs a box.")


ARXIV = [BOX, POND, YARD]


@pytest.fixture
def root(root: Path, in_root: None, empty_cache: None, on_first_of_march: None, server: ArxivServer) -> Path:
    """Let the toy corpus and the local arXiv be used on the first of March 2024."""
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((root / "data").glob("*.yaml"))}


def exclusion(root: Path, name: str) -> oc.Exclusion:
    return next(each for each in oc.load(str(root)).exclusions if each.id == name)


def is_valid(root: Path) -> bool:
    return run_corpus("check", "data", "--strict").code == 0 and run_corpus("check", "form").code == 0


def unnumbered(diff: str) -> str:
    """A diff without the numbers of its lines."""
    return re.sub(r"@@ .+ @@", "@@ @@", diff)


def refused(result: Result, code: int, message: str) -> None:
    assert (result.code, result.stdout) == (code, "")
    assert message in result.stderr


def test_an_excluded_paper_is_put_at_the_end_under_the_next_id(root: Path) -> None:
    result = run_corpus("exclude", "https://arxiv.org/abs/2401.00008v1", "--stage", "gate", "--reason", "No fish.")

    assert (result.code, unnumbered(result.stdout), result.stderr) == (
        0,
        """\
--- a/data/exclusions.yaml
+++ b/data/exclusions.yaml
@@ @@
   stage: path
   screened: "2023-01-02"
   reason: Nothing grows there.
+
+- id: E004
+  title: Ponds without Fish
+  identifier: arXiv:2401.00008
+  url: https://arxiv.org/abs/2401.00008
+  stage: gate
+  screened: "2024-03-01"
+  reason: No fish.
""",
        "wrote data/exclusions.yaml\ncorpus build regenerates the rest; CONTRIBUTING.md says whether to commit it\n"
        "excluded as E004: Ponds without Fish\n",
    )
    assert is_valid(root)


def test_a_page_is_excluded_without_asking_anybody(root: Path, server: ArxivServer) -> None:
    said = ("--title", "Walls: A Guide", "--tag", "stage=path", "--reason", "A wall.", "--screened", "2024-02-29")

    assert run_corpus("exclude", "example.org/walls", *said).code == 0
    assert (
        run_corpus("exclude", "https://example.org/more", *said, "--despite-title", "--identifier", "MORE-WALLS").code
        == 0
    )
    assert server.requests == []
    walls = exclusion(root, "E004")
    assert (walls.identifier, walls.url, walls.screened) == ("WALLS", "https://example.org/walls", "2024-02-29")
    assert exclusion(root, "E005").identifier == "MORE-WALLS"


def test_an_id_is_not_given_again_even_if_only_a_comment_remembers_it(root: Path) -> None:
    path = root / "data" / "exclusions.yaml"
    path.write_text(f"# E007 was given up.\n\n{path.read_text(encoding='utf-8')}", encoding="utf-8")

    assert run_corpus("exclude", "2401.00008", "--stage", "gate", "--reason", "No fish.").code == 0
    assert exclusion(root, "E008").title == "Ponds without Fish"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["2101.00001"], 1, "to take it out of the pool: corpus exclude rose-garden\n"),
        (
            ["2001.00009"],
            1,
            "excluded as E001 on 2023-01-01, stage: gate: Too small to count as a garden. It is known by",
        ),
        (["E003"], 1, "see corpus show E003\n"),
        (["2401.00009"], 1, "in the pool already as 'terminal-yard', known by its title, 'The Yard'; if it is another"),
        (["2101.0001"], 2, "did you mean 2101.00001, which is in the pool as 'rose-garden'?"),
        (["2401.99999"], 1, "arXiv has no paper 2401.99999"),
        (
            ["2401.00008"],
            2,
            "corpus: missing for 2401.00008:\n  --stage TERM  gate, path\n"
            "  --reason TEXT  why it is left out, in one sentence\n",
        ),
        (["2401.00008", "--stage", "gat"], 2, "unknown stage 'gat' (did you mean 'gate'?"),
        (
            ["2401.00008", "--stage", "gate", "--reason", "X.", "--screened", "today"],
            2,
            "--screened 'today' is not a date",
        ),
        (
            ["2401.00008", "--stage", "gate", "--reason", "X.", "--screened", "2999-01-01"],
            1,
            "F116 2999-01-01 has not come",
        ),
        (["2401.00011", "--offline"], 4, "there is no stored answer for it; omit --offline"),
        (["refs.bib"], 2, "'refs.bib'"),
    ],
)
def test_what_cannot_be_excluded_is_refused_with_the_reason(
    words: list[str], code: int, message: str, root: Path
) -> None:
    before = contents(root)

    refused(run_corpus("exclude", *words), code, message)

    assert contents(root) == before


def test_a_promotion_is_one_edit_of_two_files(root: Path) -> None:
    result = run_corpus("add", "E001", *TAGS, "--key", "window-box")

    assert (result.code, unnumbered(result.stdout)) == (
        0,
        """\
--- a/data/papers.yaml
+++ b/data/papers.yaml
@@ @@
   size: small
   summary: Describes a yard.
   added: "2021-05-01"
+
+- key: window-box
+  title: A Window Box, Revisited
+  authors: ["Doe, Jo"]
+  year: 2020
+  venue: arXiv
+  arxiv_id: "2001.00009"
+  urls: [https://arxiv.org/abs/2001.00009]
+  style: formal
+  care: {}
+  size: small
+  summary: Hangs a box.
+  added: "2024-03-01"
--- a/data/exclusions.yaml
+++ b/data/exclusions.yaml
@@ @@
   stage: gate
   screened: "2023-01-01"
   reason: Too small to count as a garden.
+  promoted_to: window-box
{blank}
 - id: E003
   title: A Car Park
""".replace("{blank}", " "),
    )
    assert result.stderr.endswith("E001 became window-box: A Window Box, Revisited\n")
    assert is_valid(root)
    refused(run_corpus("add", "E001", *TAGS), 1, "E001 was not added: in the pool already as 'window-box'")
    refused(run_corpus("add", "2001.00009", *TAGS), 1, "in the pool already as 'window-box'")


def test_a_page_is_promoted_from_what_options_say(root: Path, server: ArxivServer) -> None:
    by_address = run_corpus("add", "https://example.org/cars", *TAGS)
    refused(by_address, 1, "to take it in after all: corpus add E003")
    missing = run_corpus("add", "E003", *TAGS)
    refused(missing, 2, "corpus: missing for E003:\n  --authors NAMES\n  --year YEAR\n  --venue TEXT\n")

    said = ("--authors", "Car Team", "--year", "2023", "--venue", "Blog")
    assert run_corpus("add", "E003", *TAGS, *said).code == 0
    assert server.requests == []
    assert oc.load(str(root))["car-park"].urls == ("https://example.org/cars",)
    assert exclusion(root, "E003").promoted_to == "car-park"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["rose-garden"], 1, "rose-garden was not added: in the pool already as 'rose-garden'"),
        (["E002"], 2, "'E002' is not an arXiv id"),
        (["E001", "--style", "frmal"], 2, "unknown style 'frmal'"),
        (["E001", "--key", "long-grass"], 2, "'long-grass' is the key of another paper"),
        (["E001", "--offline", *TAGS], 4, "E001 was not added: there is no stored answer for it; omit --offline"),
        (
            ["E001", "--title", "The Yard", *TAGS],
            1,
            "E001 was not added: in the pool already as 'terminal-yard', known by its title",
        ),
    ],
)
def test_what_cannot_be_promoted_is_refused_with_the_reason(
    words: list[str], code: int, message: str, root: Path
) -> None:
    before = contents(root)

    refused(run_corpus("add", *words), code, message)

    assert contents(root) == before


def test_a_dry_run_of_each_writes_nothing(root: Path) -> None:
    before = contents(root)

    for words in (
        ("exclude", "2401.00008", "--stage", "gate", "--reason", "No fish."),
        ("add", "E001", *TAGS),
        ("exclude", "rose-garden", "--stage", "gate", "--reason", "No roses."),
    ):
        result = run_corpus(*words, "--dry-run")
        assert (result.code, result.stdout.startswith("--- a/data/")) == (0, True)
        assert result.stderr.endswith("corpus: nothing was written (--dry-run)\n")
    assert contents(root) == before


def test_a_demoted_paper_becomes_an_exclusion_in_one_edit_of_two_files(root: Path) -> None:
    result = run_corpus("exclude", "rose-garden", "--stage", "gate", "--reason", "No roses.")

    assert result.code == 0
    assert result.stderr.endswith("rose-garden is excluded as E004: Röses: A Garden in Four Beds\n")
    assert "rose-garden" not in [paper.key for paper in oc.load(str(root)).papers]
    assert exclusion(root, "E004") == oc.Exclusion(
        id="E004",
        title="Röses: A Garden in Four Beds",
        identifier="arXiv:2101.00001",
        url="https://example.org/roses",
        tags={"stage": "gate"},
        screened="2024-03-01",
        reason="No roses.",
    )
    assert (
        (root / "data" / "papers.yaml")
        .read_text(encoding="utf-8")
        .startswith("# A made-up corpus for the tests.\n- key: long-grass")
    )
    assert is_valid(root)


def test_there_and_back_again_leaves_every_byte_where_it_was(root: Path) -> None:
    before = contents(root)

    assert run_corpus("add", "E001", *TAGS).code == 0
    result = run_corpus("exclude", "window-box-revisited")

    assert (result.code, contents(root) == before) == (0, True)
    assert result.stderr.endswith("window-box-revisited is excluded as E001: A Window Box, Revisited\n")


def test_a_paper_that_was_promoted_goes_back_to_its_exclusion_with_what_is_new(root: Path) -> None:
    run_corpus("add", "E001", *TAGS)

    assert run_corpus("exclude", "window-box-revisited", "--reason", "Still too small.", "--stage", "path").code == 0
    box = exclusion(root, "E001")
    assert (box.reason, box.tags, box.screened, box.promoted_to) == (
        "Still too small.",
        {"stage": "path"},
        "2024-03-01",
        None,
    )
    assert len(oc.load(str(root)).exclusions) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rose-gardn"], "'rose-gardn' is not an arXiv id"),
        (["rose-garden", "--title", "Roses"], "rose-garden has its title and address\nLeave out --title and --url."),
        (["rose-garden"], "missing for rose-garden:\n  --stage TERM  gate, path\n  --reason TEXT"),
        (["rose-garden", "--stage", "gte"], "unknown stage 'gte' (did you mean 'gate'?"),
    ],
)
def test_what_cannot_be_demoted_is_refused_with_the_reason(words: list[str], message: str, root: Path) -> None:
    before = contents(root)

    refused(run_corpus("exclude", *words), 2, message)

    assert contents(root) == before


def test_what_would_bring_an_error_touches_neither_file(root: Path) -> None:
    before = contents(root)

    refused(run_corpus("add", "E001", "--style", "meadow", *TAGS[2:]), 1, "X101 A meadow needs room")
    refused(run_corpus("exclude", "rose-garden", "--stage", "gate", "--reason", "<script>"), 1, "M104")

    assert contents(root) == before


def test_each_has_options_of_its_own_kind_of_record() -> None:
    helps = {name: run_corpus("--root", str(ROOT), name, "--help").stdout for name in ("exclude", "add")}

    assert "--query-family" in helps["exclude"]
    assert "--credit-unit" not in helps["exclude"]
    assert "--credit-unit" in helps["add"]
    assert "--query-family" not in helps["add"]


def test_the_walk_of_the_real_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "corpus"
    shutil.copytree(ROOT / "data", root / "data")
    monkeypatch.chdir(root)
    monkeypatch.setenv("ORCHTRACE_CACHE", str(tmp_path / "cache"))
    before = contents(root)
    said = (
        *("--category", "framework", "--tier", "supporting", "--rl", "none", "--reward-family", "NA"),
        *("--credit-unit", "NA", "--sub-decisions", "delegate=designed", "--topology", "planner_executor_critic"),
        *("--scenario", "coding", "--verified", "none", "--summary", "Splits work by operating procedures."),
        *("--no-fetch", "--authors", "Hong, Sirui; others", "--year", "2023", "--venue", "ICLR 2024"),
        *("--evidence", "Roles hand over documents.", "--evidence-level", "paper", "--evidence-confidence", "medium"),
    )

    assert run_corpus("add", "E007", *said).code == 0
    assert oc.load(str(root))["metagpt"].arxiv_id == "2308.00352"
    assert exclusion(root, "E007").promoted_to == "metagpt"
    assert run_corpus("check", "form").code == 0
    assert run_corpus("exclude", "metagpt").code == 0
    assert contents(root) == before


def test_it_is_said_which_claims_a_demotion_breaks(root: Path) -> None:
    more = "  boundary: Beds are none.\n  source: https://example.org/gardens\n"
    claims = (
        f"- id: gardens\n  claim: There are four gardens.\n  expect: {{count: 4}}\n{more}"
        f"- id: all\n  claim: There are six records.\n  over: [papers, exclusions]\n  expect: {{count: 6}}\n{more}"
    )
    (root / "data" / "claims.yaml").write_text(claims, encoding="utf-8")
    assert run_corpus("claims").code == 0

    result = run_corpus("exclude", "rose-garden", "--stage", "gate", "--reason", "Withered.", "--yes")

    assert result.code == 0
    assert (
        "corpus: the edit breaks 1 claim: corpus check fails until that is fixed:\n"
        "data/claims.yaml:2:10: C101 claim fails: There are four gardens. Expected: 4; found: 3 [gardens]\n"
        "To fix: corpus claims gardens shows the records; data/claims.yaml says what is expected.\n"
    ) in result.stderr


class Told(io.StringIO):
    """Standard error that passes for a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Typed(io.StringIO):
    """Standard input that passes for a terminal, from which lines are read as bytes."""

    encoding = "utf-8"

    def __init__(self, lines: str) -> None:
        super().__init__()
        self.buffer = io.BytesIO(lines.encode())

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("words", "typed", "repeated"),
    [
        (
            ["exclude", "https://example.org/leaves"],
            "Leaves\ngate\n",
            ["exclude", "https://example.org/leaves", "--title", "Leaves", "--stage", "gate"],
        ),
        (
            ["exclude", "rose-garden", "--screened", "2024-02-01"],
            "gate\n",
            ["exclude", "rose-garden", "--screened", "2024-02-01", "--stage", "gate"],
        ),
        (
            ["add", "E003", "--size", "small"],
            "Pond Team\n2024\n",
            ["add", "E003", "--size", "small", "--authors", "'Pond Team'", "--year", "2024"],
        ),
    ],
)
def test_answers_are_given_back_to_whoever_stops(
    words: list[str], typed: str, repeated: list[str], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(root)
    stderr = Told()
    monkeypatch.setattr("sys.stdin", Typed(typed))
    monkeypatch.setattr("sys.stderr", stderr)

    code = run(words)

    assert code == 130
    assert f"\nYour answers, to try again: corpus {' '.join(repeated)}\ncorpus: interrupted\n" in stderr.getvalue()
    assert contents(root) == before
