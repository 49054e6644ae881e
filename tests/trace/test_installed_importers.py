"""Importers of other packages: the one in docs/relay_importer, installed and used; and what is refused."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.trace import importers
from tests.conftest import ROOT, Result, run_corpus

EXAMPLE = ROOT / "docs" / "relay_importer"
MODULE = (EXAMPLE / "relay_importer.py").read_text(encoding="utf-8")
LOG = (EXAMPLE / "run.jsonl").read_text(encoding="utf-8")


def install(site: Path, entry_points: str, **modules: str) -> None:
    """Put a package into a folder, as `pip install --target` does: its modules, and what its wheel says of itself."""
    described = site / "relay_importer-1.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: relay-importer\nVersion: 1.0\n", "utf-8")
    (described / "entry_points.txt").write_text(f"[orchtrace_corpus.importers]\n{entry_points}\n", "utf-8")
    for name, text in modules.items():
        (site / f"{name}.py").write_text(text, "utf-8")


def run(site: Path, *arguments: str) -> Result:
    """Run `corpus` as a process does that finds the package."""
    loaded = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site)
        forget()
        try:
            return run_corpus(*arguments)
        finally:
            forget()
            for name in {"relay_importer", "broken", "half"} & (set(sys.modules) - loaded):
                del sys.modules[name]


def forget() -> None:
    """Forget which importers there are."""
    for known in (importers.installed, importers.importer):
        known.cache_clear()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the importer of the documentation, installed as its pyproject.toml says."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (entry_point,) = project["entry-points"]["orchtrace_corpus.importers"].items()
    install(tmp_path / "site", " = ".join(entry_point), relay_importer=MODULE)
    (tmp_path / "run.jsonl").write_text(LOG, "utf-8")
    return tmp_path / "site"


def only_trace(done: Result) -> dict[str, Any]:
    assert done.code == 0, done.stderr
    (line,) = done.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_the_importer_of_the_documentation_is_complete_in_less_than_80_lines() -> None:
    assert len(MODULE.splitlines()) < 80


@pytest.mark.parametrize("choice", [(), ("--from", "relay")])
def test_the_importer_of_the_documentation_reads_its_logs(site: Path, choice: tuple[str, ...]) -> None:
    words = ("trace", "import", str(site.parent / "run.jsonl"), *choice)
    if choice:
        trace = only_trace(run(site, *words))
    else:
        command = [sys.executable, "-m", "orchtrace_corpus", *words]
        trace = json.loads(subprocess.check_output(command, env={**os.environ, "PYTHONPATH": str(site)}))

    assert (trace["system"], trace["topology"], trace["costs"]["tokens"]) == ("relay", "centralized", 279)
    assert [
        (event["type"], event["agent"], event["t"], event.get("t_end"), event.get("status"), event.get("tokens"))
        for event in trace["events"]
    ] == [
        ("orchestrator_decision", "lead", 0.0, 0.0, None, {"input": 90, "output": 12}),
        ("spawn", "lead", 0.1, None, None, None),
        ("tool_call", "reader", 0.2, None, None, None),
        ("tool_result", "reader", 0.9, None, "error", None),
        ("inference", "reader", 0.9, 1.5, None, {"input": 40, "output": 7}),
        ("return", "reader", 1.6, None, "ok", None),
        ("aggregate", "lead", 1.6, 2.5, None, {"input": 110, "output": 20}),
        ("despawn", "reader", 1.6, None, None, None),
        ("stop", "lead", 2.5, None, None, None),
    ]
    assert {one["type"] for one in trace["edges"]} == {"causal", "spawn", "tool_dependency", "return", "temporal"}


def test_every_command_reads_the_format_and_names_it(site: Path) -> None:
    screen = run(site, "trace", "doctor", str(site.parent / "run.jsonl"))

    assert screen.code == 0, screen.stderr
    assert screen.stdout.splitlines()[0] == "Relay logs r1"


def test_our_own_formats_are_read_without_looking_for_others(site: Path) -> None:
    log = ROOT / "tests" / "data" / "session"
    code = "import sys\nfrom orchtrace_corpus.cli.main import run\nrun(sys.argv[1:])\n"
    code += "print([name for name in ('importlib.metadata', 'relay_importer') if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code, "trace", "import", str(log), "-o", str(site.parent / "out.jsonl")],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(site)},
    )  # fmt: skip

    assert done.stdout == "[]\n", done.stderr


BROKEN = "raise RuntimeError('no wheel for this machine')"


@pytest.mark.parametrize(
    ("entry_point", "modules", "said"),
    [
        ("relay = broken", {"broken": BROKEN}, "RuntimeError: no wheel for this machine"),
        ("relay = half", {"half": "def recognises(beginning): return True"}, "it lacks recognises or read"),
        ("relay = nowhere", {}, "ModuleNotFoundError: No module named 'nowhere'"),
    ],
)
def test_an_importer_that_cannot_be_loaded_is_told_and_the_others_are_used(
    tmp_path: Path, entry_point: str, modules: dict[str, str], said: str
) -> None:
    install(tmp_path / "site", f"{entry_point}\ngood = relay_importer", relay_importer=MODULE, **modules)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "run.jsonl").write_text(LOG, "utf-8")
    (tmp_path / "logs" / "other.jsonl").write_text('{"a": 1}\n', "utf-8")
    name, module = entry_point.split(" = ")
    sentence = f"the importer '{name}' of '{module}' is not used: {said}"

    done = run(tmp_path / "site", "trace", "import", str(tmp_path / "logs"))
    assert only_trace(done)["events"][0]["source"]["file"] == "run.jsonl"
    assert f"corpus: {sentence}\n" in done.stderr

    refused = run(tmp_path / "site", "trace", "import", str(tmp_path / "logs"), "--from", "relay")
    assert refused.code == 2
    assert "there is no log format 'relay'" in refused.stderr
    assert sentence in " ".join(refused.stderr.split())


def test_a_name_of_ours_is_not_given_to_another(tmp_path: Path) -> None:
    install(tmp_path / "site", "codex = relay_importer", relay_importer=MODULE)
    (tmp_path / "run.jsonl").write_text(LOG, "utf-8")

    done = run(tmp_path / "site", "trace", "import", str(tmp_path / "run.jsonl"))
    assert done.code == 3
    assert "is not a log in a known format" in done.stderr
    said = "the importer 'codex' of 'relay_importer' is not used: there is another of this name."
    assert said in " ".join(done.stderr.split())
