"""The scripts: made-up corpora validate and are reproducible; the bench reports what it measured."""

import subprocess
import sys
from pathlib import Path

from orchtrace_corpus.api import load
from tests.conftest import ROOT


def test_a_synthesized_corpus_validates_and_is_reproducible(tmp_path: Path) -> None:
    for name in ("one", "two"):
        subprocess.run([sys.executable, ROOT / "scripts" / "synthesize.py", "50", tmp_path / name], check=True)

    assert len(load(str(tmp_path / "one"))) == 50
    papers = [(tmp_path / name / "data" / "papers.yaml").read_bytes() for name in ("one", "two")]
    assert papers[0] == papers[1]


def test_the_bench_reports_ratios_and_verdicts() -> None:
    command = [sys.executable, ROOT / "scripts" / "bench.py", "--records", "50", "100", "--rounds", "1"]

    report = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert report.startswith("# Performance\n")
    assert report.count("| holds |") + report.count("| **missed** |") == 11
