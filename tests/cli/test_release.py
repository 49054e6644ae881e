"""A tag is released only if version, citation, Zenodo's record and changelog agree with it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

CHANGELOG = """\
# Changelog

## [Unreleased]

## [1.2.0] - 2026-01-02

### Added

- A rake.

## [1.1.0] - 2025-01-02

- A spade.

[1.1.0]: https://example.org/1.1.0
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project at version 1.2.0."""
    for folder in ("scripts", "orchtrace_corpus/base"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "release_notes.py", tmp_path / "scripts")
    (tmp_path / "orchtrace_corpus" / "base" / "__init__.py").write_text('"""T."""\n\n__version__ = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.2.0\n")
    (tmp_path / ".zenodo.json").write_text(json.dumps({"version": "1.2.0"}))
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    return tmp_path


def release_notes(project: Path, *words: str) -> tuple[int, str, str]:
    command = [sys.executable, str(project / "scripts" / "release_notes.py"), *words]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout, result.stderr


def test_the_notes_are_the_section_of_the_tag(project: Path) -> None:
    assert release_notes(project, "v1.2.0") == (0, "### Added\n\n- A rake.\n", "")


def test_each_file_that_names_another_version_is_reported(project: Path) -> None:
    assert release_notes(project, "v1.3.0") == (
        1,
        "",
        "orchtrace_corpus/base/__init__.py: __version__ is 1.2.0, not 1.3.0\n"
        "CITATION.cff: version is 1.2.0, not 1.3.0\n"
        ".zenodo.json: version is 1.2.0, not 1.3.0\n"
        "CHANGELOG.md: missing or empty section, ## [1.3.0] - YYYY-MM-DD\n",
    )


@pytest.mark.parametrize(
    "text", ["## [1.2.0]\n\n- A rake.\n", "## [1.2.0] - 2026-01-02\n\n## [1.1.0] - 2025-01-02\n- A spade.\n"]
)
def test_a_section_without_a_date_or_a_line_is_none(project: Path, text: str) -> None:
    (project / "CHANGELOG.md").write_text(text)

    message = "CHANGELOG.md: missing or empty section, ## [1.2.0] - YYYY-MM-DD\n"
    assert release_notes(project, "v1.2.0") == (1, "", message)


@pytest.mark.parametrize("tag", ["1.2.0", "v1.2", "vnext", "v1.2.0; echo"])
def test_a_tag_of_another_form_is_refused(project: Path, tag: str) -> None:
    assert release_notes(project, tag) == (1, "", f"{tag} is not a tag of a release, such as v0.1.0\n")


def test_a_tag_is_needed(project: Path) -> None:
    assert release_notes(project) == (2, "", "usage: release_notes.py TAG\n")
