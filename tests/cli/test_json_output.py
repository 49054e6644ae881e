"""JSON that commands print or write: a terminal obeys nothing in it, and a reader finds every text as it was."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.findings import escape_controls
from tests.conftest import run_corpus
from tests.trace.traces import event, raw

OBEYED = "\x7f\x80\x9b\x9f\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069"
NAME = f"é{OBEYED}"
RUN = raw(
    [
        event("plan", 0, "inference", NAME, t_end=1, role=NAME, of_my_own=NAME),
        event(NAME, 1, "tool_call", NAME, tool=NAME, call_id=NAME),
        event("merge", 2, "aggregate", NAME, t_end=3),
    ],
    "plan>merge",
    rewards={"team": 1},
    costs={"tokens": 1, "wall_clock_s": 9},
    trace_id=NAME,
    task_id=NAME,
)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_escapes_mean_the_same_text(text: str) -> None:
    written = escape_controls(json.dumps(text, ensure_ascii=False))

    assert json.loads(written) == text
    assert not set(OBEYED) & set(written)


def test_other_text_stays_as_it_is() -> None:
    assert escape_controls('{"é": "中文 \u200d"}') == '{"é": "中文 \u200d"}'


@pytest.fixture
def run(tmp_path: Path) -> str:
    """A file with a trace whose names hold all that a terminal obeys."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps(RUN), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "command",
    [
        ["export", "RUN"],
        ["export", "RUN", "--profile", "published"],
        ["replay", "RUN", "-f", "json"],
        ["measure", "RUN", "-f", "json"],
        ["measure", "RUN", "--ledger", "agent", "-f", "json"],
        ["credit", "RUN", "--unit", "agent", "--method", "shapley", "-f", "json"],
        ["label", "RUN", "-f", "json"],
        ["diff", "RUN", "RUN", "-f", "json"],
        ["doctor", "RUN", "--format", "json"],
        ["validate", "RUN", "-f", "json"],
        ["validate", "RUN", "-f", "sarif"],
    ],
    ids=" ".join,
)
def test_no_json_of_a_trace_holds_what_a_terminal_obeys(command: list[str], run: str) -> None:
    result = run_corpus("trace", *(run if word == "RUN" else word for word in command))

    assert result.code == 0, result.stderr
    assert result.stdout
    assert not set(OBEYED) & set(result.stdout)


@pytest.mark.parametrize("command", ["export", "label"])
def test_nor_does_a_file_that_a_trace_is_written_to(command: str, run: str, tmp_path: Path) -> None:
    assert run_corpus("trace", command, run, "-o", str(tmp_path / "new.json")).code == 0
    text = (tmp_path / "new.json").read_text(encoding="utf-8")

    assert not set(OBEYED) & set(text)
    assert json.loads(text)["events"][0]["of_my_own"] == NAME


def test_a_picture_shows_escapes_in_place_of_what_turns_writing_round(run: str) -> None:
    picture = run_corpus("trace", "graph", run, "--format", "svg").stdout

    assert not set(OBEYED) & set(picture)
    assert r"\u202e" in "".join(ElementTree.fromstring(picture).itertext())
