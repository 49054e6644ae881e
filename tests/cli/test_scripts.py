"""The scripts: made-up corpora validate and are reproducible; the bench reports what it measured."""

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from orchtrace_corpus.corpus.api import load
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.api import read_traces, validate_traces
from orchtrace_corpus.trace.importers.core.builder import as_data
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from tests.conftest import ROOT, TOY, run_corpus
from tests.effort import mostly_slow


def test_a_synthesized_corpus_validates_and_is_reproducible(tmp_path: Path) -> None:
    for name in ("one", "two"):
        subprocess.run([sys.executable, ROOT / "scripts" / "synthesize.py", "50", tmp_path / name], check=True)

    assert len(load(str(tmp_path / "one"))) == 50
    papers = [(tmp_path / name / "data" / "papers.yaml").read_bytes() for name in ("one", "two")]
    assert papers[0] == papers[1]


def test_pairs_of_new_papers_are_merged_with_git_and_counted(tmp_path: Path) -> None:
    """Two keys far apart merge; a key between the same two papers does not."""
    root = shutil.copytree(TOY, tmp_path / "toy", ignore=shutil.ignore_patterns("README.md"))
    with (root / "data" / "taxonomy.yaml").open("a", encoding="utf-8") as file:
        file.write("by_key: true\n")
    assert run_corpus("--root", str(root), "check", "form", "--fix").code == 0
    table = tmp_path / "candidates.csv"
    script = [sys.executable, ROOT / "scripts" / "merge_pairs.py", table, "--root", root, "--pairs", "4"]

    table.write_text("title,year,water\nAcorns,2023,weekly\nZinnias,,\n")
    apart = subprocess.run(script, check=False, capture_output=True, text=True)
    table.write_text("title,size\nMoss,small\nNettles,small\n")
    close = subprocess.run(script, check=False, capture_output=True, text=True)

    assert apart.stdout == (
        "4 of 4 pairs of 2 papers merge without conflict, 4 of these 4 merged files are valid and canonical (seed 1)\n"
    )
    assert close.stdout.startswith("0 of 4 pairs of 2 papers merge without conflict")
    assert apart.returncode == close.returncode == 0


def test_two_installations_are_compared_by_what_they_print_and_write(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("corpus")
    other = tmp_path / "bin" / "corpus"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho something else\necho new > docs/new.md\nexit 1\n")
    other.chmod(0o755)
    script = [sys.executable, ROOT / "scripts" / "compare_outputs.py", "--only", "show E007"]

    same = subprocess.run([*script, program, program], check=False, capture_output=True, text=True)
    different = subprocess.run([*script, program, other], check=False, capture_output=True, text=True)

    assert (same.returncode, same.stdout) == (0, "1 of 1 invocations give the same\n")
    assert different.returncode == 1
    assert different.stdout.startswith("== sound: show E007\n--- before\n+++ after\n")
    for line in ("+exit code 1", "+stdout: something else", "+wrote docs/new.md", "+docs/new.md: new"):
        assert f"\n{line}\n" in different.stdout
    assert different.stdout.endswith("0 of 1 invocations give the same\n")


@pytest.mark.parametrize("events", mostly_slow([1, 20, 21, 100], [1, 21]))
def test_synthesized_traces_validate_and_are_reproducible(events: int, tmp_path: Path) -> None:
    for name in ("one.jsonl", "two.jsonl"):
        command = [sys.executable, ROOT / "scripts" / "synthesize_traces.py", str(events), tmp_path / name]
        subprocess.run([*command, "--traces", "3"], check=True)

    assert validate_traces(tmp_path / "one.jsonl") == ()
    assert [len(trace.events) for trace in read_traces(tmp_path / "one.jsonl")] == [events] * 3
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


READERS = ("Read", "read", "shell", "read_file")
KINDS = ("input", "output", "cache_read")
LOGS = (
    *("claude_code", "codex", "openai_agents", "otlp_genai", "otlp_openinference", "langsmith", "atif"),
    *("opencode", "inspect_ai", "autogen"),
    *("qwen_code", "gemini_cli", "copilot_cli", "kimi_code"),
)


def test_synthesized_logs_of_all_formats_are_of_one_run_and_reproducible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is the same in every format of the one session that each folder holds."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import synthesize_logs

    monkeypatch.setattr(synthesize_logs, "SESSION_BYTES", 400_000)
    again = "import sys, pathlib, synthesize_logs as s; s.SESSION_BYTES = 400_000"
    again += "; [s.write(form, pathlib.Path(sys.argv[1], form), 1) for form in sys.argv[2:]]"
    subprocess.run([sys.executable, "-c", again, tmp_path / "two", *LOGS], check=True, cwd=ROOT / "scripts")
    facts = set()
    for form in LOGS:
        synthesize_logs.write(form, tmp_path / "one" / form, 1)
        files = sorted((tmp_path / "one" / form).rglob("*.json*"))
        assert [(tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes() for path in files] == [
            path.read_bytes() for path in files
        ]
        (session,) = importers.sessions(str(tmp_path / "one" / form))
        (trace,) = map(as_data, importers.read(session, Privacy(b"salt")))
        tokens: Counter[str] = Counter()
        for event in trace["events"]:
            tokens.update({kind: number for kind, number in event.get("tokens", {}).items() if kind != "reasoning"})
        count = Counter(event["type"] for event in trace["events"])
        calls, results = (sum(event.get("tool") in READERS for event in trace["events"] if event["type"] == kind)
                          for kind in ("tool_call", "tool_result"))  # fmt: skip
        facts.add((count["spawn"], count["return"], calls, results, *(tokens[kind] for kind in KINDS)))

    assert len(facts) == 1


def test_the_bench_compares_start_up_and_says_what_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import bench

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(bench, "CORPUS", (sys.executable, "-m", "orchtrace_corpus"))
    monkeypatch.setattr(bench, "START_UP_LIMITS", {name: bench.START_UP_LIMITS[name] for name in ("--help", "stats")})
    monkeypatch.setattr(bench, "COMPLETED", bench.COMPLETED[:1])
    claims = bench.start_up_claims(1)
    report = bench.report([claims[0]._replace(measured=9.5, limit=10.0), claims[1]._replace(measured=9.5, limit=9.0)])

    assert [claim.what for claim in claims] == [
        f"`corpus {words}` against the bare interpreter" for words in ("--help", "stats", "s[TAB]")
    ]
    assert all(claim.measured > 0 for claim in claims)
    assert "| 9.50 | 10.00 | holds |" in report
    assert "| 9.50 | 9.00 | **missed** |" in report


def test_the_script_writes_logs_of_the_size_that_was_asked_for(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "synthesize_logs.py"
    subprocess.run([sys.executable, script, "codex", "1", tmp_path / "logs"], check=True)

    assert sum(file.stat().st_size for file in (tmp_path / "logs").rglob("*.jsonl")) > 1_000_000


@pytest.mark.slow
def test_the_bench_reports_ratios_and_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import bench_importers

    sizes = ["--records", "50", "100", "--events", "40", "100", "--traces", "3", "--logs", "1"]
    command = [sys.executable, ROOT / "scripts" / "bench.py", *sizes, "--rounds", "1", "--peers", "nowhere"]

    report = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert report.startswith("# Performance\n")
    claims = [line.split(" | ") for line in report.splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert {cells[3] for cells in claims} == {"holds", "**missed**"}
    assert all(float(cells[2]) > 0 and cells[1] == f"{float(cells[1]):.2f}" for cells in claims)
    for form in bench_importers.LOGS.values():
        assert sum(f" of logs, {form}, against" in cells[0] for cells in claims) == 2, form  # `import` and `doctor`
