"""The scripts: made-up corpora validate and are reproducible; the bench reports what it measured."""

import subprocess
import sys
from pathlib import Path

import pytest

from orchtrace_corpus.api import load
from orchtrace_corpus.trace.api import read_traces, validate_traces
from tests.conftest import ROOT


def test_a_synthesized_corpus_validates_and_is_reproducible(tmp_path: Path) -> None:
    for name in ("one", "two"):
        subprocess.run([sys.executable, ROOT / "scripts" / "synthesize.py", "50", tmp_path / name], check=True)

    assert len(load(str(tmp_path / "one"))) == 50
    papers = [(tmp_path / name / "data" / "papers.yaml").read_bytes() for name in ("one", "two")]
    assert papers[0] == papers[1]


@pytest.mark.parametrize("events", [1, 20, 21, 100])
def test_synthesized_traces_validate_and_are_reproducible(events: int, tmp_path: Path) -> None:
    for name in ("one.jsonl", "two.jsonl"):
        command = [sys.executable, ROOT / "scripts" / "synthesize_traces.py", str(events), tmp_path / name]
        subprocess.run([*command, "--traces", "3"], check=True)

    assert validate_traces(tmp_path / "one.jsonl") == ()
    assert [len(trace.events) for trace in read_traces(tmp_path / "one.jsonl")] == [events] * 3
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_the_bench_reports_ratios_and_verdicts() -> None:
    sizes = ["--records", "50", "100", "--events", "40", "100", "--traces", "3"]
    command = [sys.executable, ROOT / "scripts" / "bench.py", *sizes, "--rounds", "1", "--peers", "nowhere"]

    report = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert report.startswith("# Performance\n")
    assert report.count("| holds |") + report.count("| **missed** |") == 18
