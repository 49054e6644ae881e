"""Qwen Code, Gemini CLI, Copilot CLI, Kimi Code: what becomes of their rows, what is counted, who spawned whom."""

from pathlib import Path

import pytest

from orchtrace_corpus.trace import importers
from tests.trace.conversationlogs import LOGS, told, trace_of

FORMS = {"qwen_code": "Qwen Code"}
"""The formats, and how their sections are called in the document."""
FIXTURES = [path for form in FORMS for path in sorted((LOGS / form).iterdir())]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_fixture_gives_what_its_rows_say(path: Path) -> None:
    expected = LOGS / "told" / path.parent.name / f"{path.stem}.txt"

    assert told(trace_of(path)) == expected.read_text("utf-8")


@pytest.mark.parametrize("path", [path for path in FIXTURES if path.is_dir()], ids=lambda path: path.stem)
def test_the_files_of_sub_agents_are_read_with_the_session_that_is_named(path: Path) -> None:
    (one,) = importers.sessions(str(path))
    main = next(file for file in one.files if "agent-" not in file.name)
    (alone,) = importers.sessions(main.path)

    assert sorted(file.path for file in alone.files) == sorted(file.path for file in one.files)
