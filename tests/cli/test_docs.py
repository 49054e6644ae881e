"""The documents say what is true: their commands run, their output is the program's, their files exist."""

import importlib
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from document import tool_documents

import orchtrace_corpus as oc
from orchtrace_corpus.corpus.model.decode import exclusion_schema, paper_schema
from tests.conftest import ROOT, run_corpus

README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
DATA = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "orchtrace_corpus"
MOST_WORDS = 31_000


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_quick_start_is_two_single_lines() -> None:
    blocks = re.findall(r"```sh\n(.*?)\n```", README.split("## Quick Start")[1], re.DOTALL)

    assert len(blocks[:2]) == 2
    assert [block for block in blocks[:2] if "\n" in block] == []


def test_the_readme_opens_with_two_pictures_three_answers_and_the_install_lines() -> None:
    first_screen = README.split("## Quick Start")[0]
    questions = re.findall(r"^- .+?\? (.*?)\*\*(.+?)\*\*.*?: `corpus (.+?)`\.$", first_screen, re.MULTILINE)

    assert re.findall(r'<img src="(.+?)"', first_screen) == ["docs/matrix.png", "docs/run.png"]
    assert len(questions) == 3
    for _, answer, command in questions:
        told = run_corpus(*shlex.split(command))
        assert "published=yes" in command or not command.startswith("list")  # else a new paper makes it untrue
        assert answer in " ".join(f"{told.stdout} {told.stderr}".split()), command
    assert len(first_screen.encode()) < 2000


def test_the_readme_stays_small() -> None:
    assert len(README.encode()) <= 40_000


def test_what_the_first_answers_say_besides() -> None:
    corpus = oc.load(str(ROOT))

    stopping = ("stop=explicit,implicit", "published=yes")
    assert len(corpus.where(*stopping, "contested=stop")) == len(corpus.where(*stopping)) == 7
    undisputed = run_corpus("list", *(f"-w{one}" for one in (*stopping, "contested!=stop")))
    assert undisputed.stderr == "0 papers\ncorpus: no paper passes the filters\n"  # nor by another reading
    listed = run_corpus("list", "--where", "credit_unit=message", "--where", "published=yes").stdout
    assert "debate-as-reward  2026  debate         message?  " in listed


def test_every_command_in_the_readme_works() -> None:
    commands = re.findall(r"`corpus ([^`]+)`", README)

    assert len(commands) > 6
    for command in commands:
        assert (command, run_corpus(*shlex.split(command)).code) == (command, 0)


def test_python_in_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(compile(block, "README.md", "exec"), {})

    assert "['c3', 'debate-as-reward']" in capsys.readouterr().out


@pytest.mark.parametrize(
    "document", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")), ids=lambda path: path.name
)
def test_relative_links_lead_somewhere(document: Path) -> None:
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", prose)

    assert [link for link in links if not (document.parent / link).exists()] == []


def anchors(document: Path) -> set[str]:
    """What links to the headings of a document end in, on GitHub."""
    prose = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", sorted(ROOT.glob("docs/**/*.md")), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_headings_lead_to_one(document: Path) -> None:
    links = re.findall(r"\]\(([\w/.-]*?\.md|)#([^)]+)\)", document.read_text(encoding="utf-8"))

    assert [link for link in links if link[1] not in anchors(document.parent / link[0] if link[0] else document)] == []


def test_the_documents_about_the_tool_say_what_the_tool_says() -> None:
    for name, text in tool_documents().items():
        assert (ROOT / name).read_text(encoding="utf-8") == text, "stale; run: python scripts/document.py"


def test_contributing_names_sessions_that_exist() -> None:
    sessions = re.findall(r"^@nox\.session\ndef (\w+)", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.M)
    listed = re.findall(r"^\| `nox -s (\w+)` \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.M)

    assert len(listed) == 10
    assert [name for name in listed if name not in sessions] == []


def test_the_architecture_has_a_row_for_each_package() -> None:
    table = ARCHITECTURE.split("## The packages")[1].split("\n## ")[0]
    named = {
        name for cell in re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE) for name in re.findall(r"`([^`]+)/`", cell)
    }
    packages = {str(path.parent.relative_to(PACKAGE)) for path in PACKAGE.rglob("__init__.py")} - {"."}

    parts = ("corpus/render/figures", "corpus/sources/arxiv", "trace/cli/dataset", "trace/importers/")
    assert named == {name for name in packages if not name.startswith(parts)}


def test_the_journeys_of_the_architecture_name_what_there_is() -> None:
    stations = re.findall(r"`([\w/]+)\.py:([\w.]+)`", ARCHITECTURE)

    assert len(stations) > 15
    for path, name in stations:
        found: object = importlib.import_module("orchtrace_corpus." + path.removesuffix("/__init__").replace("/", "."))
        for part in name.split("."):
            found = getattr(found, part)


def test_files_named_for_changes_exist() -> None:
    for cell in re.findall(r"^\| .+? \| (.+) \|$", ARCHITECTURE.split("## Where to change what")[1], re.MULTILINE)[2:]:
        for name in re.findall(r"`([\w/.]+(?:\.py|\.yaml|/))`", cell):
            assert (PACKAGE / name).exists() or (ROOT / name).exists() or name == "sources/", name


def test_the_data_document_names_every_field() -> None:
    taxonomy = oc.load().taxonomy
    papers, exclusions = paper_schema(taxonomy), exclusion_schema(taxonomy)
    tables = {part.split("\n", 1)[0]: part for part in DATA.split("\n## ")}

    for schema, section, facets in (
        (papers, "papers.yaml", taxonomy.papers),
        (exclusions, "exclusions.yaml", taxonomy.exclusions),
    ):
        rows = re.findall(r"^\| (`.+?) \| (yes|no) \|", tables[section], re.MULTILINE)
        documented = {name: needed == "yes" for cell, needed in rows for name in re.findall(r"`(\w+)`", cell)}
        fixed = set(schema.decoders) - {facet.field for facet in facets}
        assert documented == {name: name in schema.required for name in fixed}


def test_the_example_in_the_data_document_is_valid(tmp_path: Path) -> None:
    import shutil

    shutil.copytree(ROOT / "data", tmp_path / "data", ignore=shutil.ignore_patterns("scale.yaml", "published.yaml"))
    example = re.search(r"```yaml\n(- key: .*?)```", DATA, re.DOTALL)
    assert example is not None
    (tmp_path / "data" / "papers.yaml").write_text(example[1], encoding="utf-8")

    assert oc.validate(str(tmp_path)) == ()


def words_by_hand(text: str) -> int:
    """The words of a document, but for what is generated, and for fenced blocks: tests run these commands and programs."""
    fenced = r"^ *```.*?^ *```$"
    by_hand = re.sub(rf"<!-- corpus:begin .*?<!-- corpus:end [^\n]*|{fenced}", "", text, flags=re.DOTALL | re.MULTILINE)
    if re.search("<!-- Generated |[Mm]easured by `python scripts/bench", by_hand):
        return 0
    return sum(re.search(r"\w", word) is not None for word in by_hand.split())


def test_words_by_hand_are_those_outside_of_generated_parts() -> None:
    region = "<!-- corpus:begin list -->\n1 2\n<!-- corpus:end list -->"

    assert words_by_hand(f"# Three words\n{region}\n| here |\n\n```sh\ncorpus stats\n```\n") == 3
    assert words_by_hand("# Codebook\n<!-- Generated from data/ -->\nwords") == 0


def test_the_documents_are_short() -> None:
    """A bound that is raised on purpose, together with a new capability, and by nothing else."""
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]

    assert sum(words_by_hand(page.read_text(encoding="utf-8")) for page in pages) <= MOST_WORDS


def test_versions_agree() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")

    assert f"version: {oc.__version__}" in citation.splitlines()
    assert json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))["version"] == oc.__version__
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dynamic"]


def test_licences_are_in_place() -> None:
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("MIT License")
    assert "CC0 1.0 Universal" in (ROOT / "LICENSE-DATA").read_text(encoding="utf-8")
