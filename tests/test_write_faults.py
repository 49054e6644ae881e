"""Whatever call fails while a command writes, each file is the old one or the new one, and the next run puts all right."""

import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import ROOT, TOY, Result, run_corpus
from tests.effort import FULL
from tests.faults import ERRORS, FaultyDisk

Files = Mapping[str, bytes]
LOGS = ROOT / "data" / "traces"
TAGS = ("--style", "formal", "--size", "small", "--prune", "weekly")
PAPER = (
    "https://example.org/pond",
    "--title",
    "A Pond",
    "--authors",
    "Wet, Ada",
    "--year",
    "2024",
    "--venue",
    "Report",
)
CLAIMS = """\
- id: small
  claim: At least two gardens are small.
  where: {size: small}
  expect: {at_least: 2}
  boundary: Gardens of the toy corpus only.
  source: https://example.org/claims
"""
BIBTEX = """\
@article{fern2020, title = {Ferns}, author = {Frond, Ina}, year = {2020}, journal = {Leaves}, url = {https://example.org/fern}}
"""
SAMPLES = 2
"""How many calls of each kind fail in the quick form of the test, for each command."""


def nothing(folder: Path) -> None:
    """Leave the toy corpus as it is."""


def unformatted(folder: Path) -> None:
    """Write the papers in another form than the canonical one."""
    papers = folder / "data" / "papers.yaml"
    papers.write_text(papers.read_text(encoding="utf-8").replace("size: small", 'size:   "small"'), encoding="utf-8")


def built(folder: Path) -> None:
    """Build the generated files, then let some be stale and one be an orphan."""
    assert run_corpus("--root", str(folder), "build").code == 0
    (folder / "docs" / "STATS.md").write_text("stale\n", encoding="utf-8")
    (folder / "docs" / "figures" / "size.svg").unlink()
    unused = (folder / "docs" / "figures" / "style.svg").read_bytes()
    (folder / "docs" / "figures" / "former.svg").write_bytes(unused)


def with_bibtex(folder: Path) -> None:
    """Put a BibTeX file beside the corpus."""
    (folder / "library.bib").write_text(BIBTEX, encoding="utf-8")


def with_table(folder: Path) -> None:
    """Put a table with a changed value beside the corpus."""
    shown = run_corpus("--root", str(folder), "export", "csv")
    (folder / "papers.csv").write_text(shown.stdout.replace("The Yard", "The Back Yard"), encoding="utf-8", newline="")


def with_site(folder: Path) -> None:
    """Make a site of an earlier state."""
    assert run_corpus("--root", str(folder), "site", "-o", str(folder / "site")).code == 0
    papers = folder / "data" / "papers.yaml"
    papers.write_text(papers.read_text(encoding="utf-8").replace("Long Grass", "Longer Grass"), encoding="utf-8")


def branches(folder: Path) -> None:
    """Put three versions of the papers beside the corpus, of which two changed different papers."""
    text = (folder / "data" / "papers.yaml").read_text(encoding="utf-8")
    (folder / "base.yaml").write_text(text, encoding="utf-8")
    (folder / "ours.yaml").write_text(text.replace("Long Grass", "Longer Grass"), encoding="utf-8")
    (folder / "theirs.yaml").write_text(text.replace("Describes a yard.", "Draws a yard."), encoding="utf-8")


def with_dataset(folder: Path) -> None:
    """Build a dataset of two traces, to be updated with a third."""
    logs = folder / "logs"
    logs.mkdir()
    for name in ("debate", "harness"):
        shutil.copy(LOGS / f"{name}.json", logs)
    assert run_corpus("dataset", "build", str(logs), "-o", str(folder / "tables"), program="orchtrace").code == 0
    shutil.copy(LOGS / "swarm.json", logs)


class Command(NamedTuple):
    """A command that writes: what is there before it, and its words, `{}` in them standing for the folder."""

    words: tuple[str, ...]
    prepare: Callable[[Path], None] = nothing
    program: str = "corpus"


COMMANDS = {
    "check-fix": Command(("check", "--fix", "--stale", "notice"), unformatted),
    "add": Command(("add", *PAPER, *TAGS, "--summary", "Digs a pond.", "--yes")),
    "add-bibtex": Command(("add", "{}/library.bib", *TAGS, "--summary", "Grows ferns.", "--yes"), with_bibtex),
    "tag": Command(("tag", "rose-garden", "size=large")),
    "exclude": Command(
        ("exclude", "https://example.org/wall", "--title", "A Wall", "--stage", "gate", "--reason", "No plants.", "-y")
    ),
    "take-in": Command(
        (
            "add",
            "E003",
            *TAGS,
            "--summary",
            "Keeps cars.",
            "--authors",
            "Park, Una",
            "--year",
            "2020",
            "--venue",
            "arXiv",
            "--key",
            "car-park",
            "--yes",
        )
    ),
    "turn-away": Command(("exclude", "terminal-yard", "--stage", "gate", "--reason", "No garden.", "--yes")),
    "remove": Command(("remove", "terminal-yard", "--yes")),
    "dispute": Command(
        ("dispute", "mixed-borders", "size=large", "--why", "It is wide.", "--source", "https://example.org/borders")
    ),
    "import": Command(("import", "{}/papers.csv"), with_table),
    "build": Command(("build",), built),
    "figures": Command(("build", "figures"), built),
    "figure": Command(("figures", "--by", "style", "-o", "{}/style.pdf")),
    "schema": Command(("build", "schema")),
    "export": Command(("export", "bibtex", "-o", "{}/papers.bib")),
    "site": Command(("site", "-o", "{}/site"), with_site),
    "init": Command(("init", "{}/survey")),
    "merge-file": Command(("merge-file", "{}/base.yaml", "{}/ours.yaml", "{}/theirs.yaml"), branches),
    "trace-import": Command(
        (
            "import",
            str(ROOT / "tests" / "data" / "logs" / "codex" / "slept.jsonl"),
            "--salt",
            "ours",
            "-o",
            "{}/traces.jsonl",
        ),
        program="orchtrace",
    ),
    "trace-export": Command(("export", str(LOGS / "swarm.json"), "-o", "{}/trace.json"), program="orchtrace"),
    "trace-graph": Command(("graph", str(LOGS / "swarm.json"), "-o", "{}/trace.svg"), program="orchtrace"),
    "trace-page": Command(("doctor", str(LOGS / "swarm.json"), "--html", "{}/run.html"), program="orchtrace"),
    "trace-label": Command(("label", str(LOGS / "swarm.json"), "-o", "{}/labelled.json"), program="orchtrace"),
    "dataset": Command(("dataset", "build", "{}/logs", "-o", "{}/tables"), with_dataset, program="orchtrace"),
}


def prepared(command: Command, folder: Path) -> Path:
    """Return a corpus that the command is to change."""
    shutil.copytree(TOY, folder)
    command.prepare(folder)
    return folder


def run(command: Command, folder: Path) -> Result:
    words = [word.replace("{}", str(folder)) for word in command.words]
    root = () if command.program == "orchtrace" or "init" in words else ("--root", str(folder))
    return run_corpus(*root, *words, program=command.program)


def files_of(folder: Path) -> Files:
    """Return the contents of all files by path, and the temporary folders."""
    found: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file():
            found[name] = path.read_bytes()
        elif path.name.startswith(".corpus-"):
            found[f"{name}/"] = b""
    return found


def differing(found: Files, wanted: Files) -> list[str]:
    """Return the files that are not as wanted; of the tables of a dataset, only whether they are there counts."""
    names = sorted({*found, *wanted})
    return [
        name
        for name in names
        if name not in found or name not in wanted or (found[name] != wanted[name] and not name.startswith("tables/"))
    ]


def is_temporary(name: str) -> bool:
    """Return True for what the next run sweeps, and for the tables of a dataset, which its journal finishes."""
    return name.startswith("tables/") or any(part.startswith(".corpus-") for part in name.split("/"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_call_that_fails_tears_nothing_and_the_next_run_leaves_nothing(name: str, tmp_path: Path) -> None:
    command, folder, template = COMMANDS[name], tmp_path / "corpus", tmp_path / "template"
    before = files_of(prepared(command, folder))
    shutil.copytree(folder, template)
    disk = FaultyDisk(folder)
    with disk.mounted():
        undisturbed = run(command, folder)
    after = files_of(folder)
    assert undisturbed.code == 0, undisturbed.stderr
    assert differing(before, after)
    faults = [(kind, at) for kind in ERRORS for at in range(1, disk.calls[kind] + 1)]
    if not FULL:
        chosen = random.Random(name)
        faults = [fault for kind in ERRORS for fault in _some([one for one in faults if one[0] == kind], chosen)]
    wrong = []
    for kind, at in faults:
        shutil.rmtree(folder)
        shutil.copytree(template, folder)
        faulty = FaultyDisk(folder, kind, at)
        with faulty.mounted():
            result = run(command, folder)
        found = files_of(folder)
        neither = {*differing(found, before)} & {*differing(found, after)}
        problems = [f"{path} is neither old nor new" for path in sorted(neither) if not is_temporary(path)]
        if result.code not in (0, 1, 2, 3) or (result.code != 0 and not result.stderr.strip()):
            problems.append(f"ended with {result.code}: {result.stderr[-200:]}")
        if differing(found, after):
            again = run(command, folder)
            rest = differing(files_of(folder), after)
            if rest:
                problems.append(f"the next run ended with {again.code} and leaves {rest}: {again.stderr[-200:]}")
        elif result.code == 0:
            assert faulty.has_failed
        wrong += [f"{kind} {at} of {disk.calls[kind]}: {problem}" for problem in problems]
    assert not wrong, "\n".join(wrong)


def _some(faults: list[tuple[str, int]], chosen: random.Random) -> list[tuple[str, int]]:
    """Return a few of the faults of a kind, the last always: it is the nearest to the end."""
    return [*chosen.sample(faults[:-1], min(len(faults) - 1, SAMPLES - 1)), faults[-1]] if faults else []
