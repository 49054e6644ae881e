"""Qwen Code, Gemini CLI, Copilot CLI, Kimi Code: what becomes of their rows, what is counted, who spawned whom."""

from pathlib import Path

import pytest

from orchtrace_corpus.trace import importers
from tests.trace.conversationlogs import LOGS, told, trace_of

FORMS = ("qwen_code", "gemini_cli", "copilot_cli", "kimi_code")
FIXTURES = [path for form in FORMS for path in sorted((LOGS / form).iterdir())]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_fixture_gives_what_its_rows_say(path: Path) -> None:
    expected = LOGS / "told" / path.parent.name / f"{path.stem}.txt"

    assert told(trace_of(path)) == expected.read_text("utf-8")


@pytest.mark.parametrize(
    "main", ["qwen_code/background/chats/*.jsonl", "gemini_cli/team/chats/*.jsonl", "kimi_code/team/*/agents/main/*"]
)
def test_the_files_of_sub_agents_are_read_with_the_session_that_is_named(main: str) -> None:
    (path,) = LOGS.glob(main)
    (one,) = importers.sessions(str(LOGS.joinpath(*main.split("/")[:2])))
    (alone,) = importers.sessions(str(path))

    assert len(one.files) > 2
    assert sorted(file.path for file in alone.files) == sorted(file.path for file in one.files)
