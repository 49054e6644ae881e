"""The corpus wing as a Python interface: what it names is there, and importing it costs next to nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import orchtrace_corpus as oc
from orchtrace_corpus import corpus
from orchtrace_corpus.base.errors import DataFileError, ExitCode
from orchtrace_corpus.corpus.analysis.record_changes import ValueChange
from tests.conftest import ROOT, TOY


def test_every_public_name_is_there() -> None:
    assert {name for name in corpus.__all__ if getattr(corpus, name) is not None} == set(corpus.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        corpus.nothing  # noqa: B018


def test_it_is_the_same_as_that_of_the_package() -> None:
    for name in ("Corpus", "Evidence", "Exclusion", "Finding", "Paper", "claims", "load", "validate"):
        assert getattr(oc, name) is getattr(corpus, name)


def test_importing_it_imports_nothing_below() -> None:
    code = (
        "import sys, orchtrace_corpus.corpus; "
        "print(*sorted(name for name in sys.modules if name.startswith('orchtrace_corpus')))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.split() == [
        "orchtrace_corpus",
        "orchtrace_corpus.base",
        "orchtrace_corpus.base.annotations",
        "orchtrace_corpus.base.errors",
        "orchtrace_corpus.base.findings",
        "orchtrace_corpus.base.named_tuples",
        "orchtrace_corpus.corpus",
        "orchtrace_corpus.corpus.codes",
    ]


@pytest.mark.parametrize(
    "words",
    ["--help", "stats", "gaps", "list", "show puppeteer", "claims", "check", "check data", "build readme --check"],
)
def test_commands_that_are_called_often_do_not_import_typing(words: str) -> None:
    code = "import os, sys; leave = os._exit; "
    code += "os._exit = lambda code: (print('typing' in sys.modules, file=sys.stderr, flush=True), leave(code)); "
    code += f"sys.argv = ['corpus', *{words.split()!r}]; from orchtrace_corpus.__main__ import main; main()"
    settings = {name: value for name, value in os.environ.items() if not name.startswith("COV")}

    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, env=settings
    )

    assert result.stderr.splitlines()[-1] == "False"


def test_check_of_a_sound_corpus() -> None:
    result = corpus.check(str(ROOT))

    assert result.exit_code is ExitCode.DONE
    assert [part.name for part in result.parts] == [
        "data",
        "evidence",
        "claims",
        "disputes",
        "published",
        "codebook",
        "protocol",
        "searches",
        "form",
        "build",
    ]
    assert result.findings == ()
    assert result.parts[2].total == len(corpus.claims(str(ROOT)))


def test_check_names_what_is_stale_and_what_was_not_asked(tmp_path: Path) -> None:
    root = tmp_path / "toy"
    shutil.copytree(TOY, root)

    stale = corpus.check(str(root))

    assert stale.exit_code is ExitCode.FINDINGS
    build = stale.parts[-1]
    assert build.name is corpus.PartName.BUILD
    assert "docs/STATS.md" in [document.name for document in build.stale]

    papers = root / "data" / "papers.yaml"
    papers.write_text(papers.read_text(encoding="utf-8").replace("size: small", "size: smal", 1), encoding="utf-8")
    broken = corpus.check(str(root))

    assert broken.exit_code is ExitCode.FINDINGS
    assert [finding.code for finding in broken.findings] == ["V102"]
    assert [part.name for part in broken.parts if part.is_skipped] == ["form", "build"]


def test_diff_of_two_folders(tmp_path: Path) -> None:
    root = tmp_path / "toy"
    shutil.copytree(TOY, root)
    papers = root / "data" / "papers.yaml"
    papers.write_text(papers.read_text(encoding="utf-8").replace("size: small", "size: large", 1), encoding="utf-8")

    change = corpus.diff(str(TOY), str(root))

    assert change.has_meaning
    (record,) = (record for file in change.files for record in file.records)
    assert (record.name, record.values) == ("rose-garden", (ValueChange(("size",), "small", "large", 14),))
    assert not corpus.diff(str(TOY), str(TOY)).has_meaning
    with pytest.raises(DataFileError):
        corpus.diff(str(tmp_path / "nothing"), str(TOY), root=str(TOY))
