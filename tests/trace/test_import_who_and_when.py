"""Who&When: both shapes of records, whose labels say where the decisive mistake was made."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace import importers
from tests.effort import tries
from tests.trace.conversationlogs import LOGS, of_type, problems, told, trace_of, traces
from tests.trace.test_import_fuzz import mutated_value

FIXTURES = LOGS / "who_and_when"
HAND, ALGORITHM = (json.loads((FIXTURES / f"{name}.json").read_bytes()) for name in ("hand", "algorithm"))


def record(path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps({**HAND, **changes}, indent=1), "utf-8")
    return path


@pytest.mark.parametrize("name", ["hand", "algorithm"])
def test_the_fixtures_give_what_their_text_says(name: str) -> None:
    found = told(trace_of(FIXTURES / f"{name}.json"))

    assert found == (LOGS / "told" / "who_and_when" / f"{name}.txt").read_text("utf-8")


def test_labels_are_outcomes_and_the_error_of_a_step() -> None:
    for name, step in (("hand", 4.0), ("algorithm", 1.0)):
        trace = trace_of(FIXTURES / f"{name}.json")
        mistakes = [event["t_end"] for event in trace["events"] if event.get("error_type") == "mistake"]

        assert trace["metrics"] == {"task_success": 0.0, "mistake_step": step}
        assert mistakes == [step]
        assert problems(trace) == {}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mistake_agent": "WebSurfer"}, 1),  # who does not act at that step
        ({"mistake_step": "99"}, 1),
        ({"mistake_step": "four"}, 1),
        ({"mistake_step": 4}, 0),
        ({"mistake_agent": "orchestrator"}, 0),
        ({"mistake_agent": "Orchestrator (-> WebSurfer)"}, 0),
    ],
)
def test_labels_that_do_not_fit_are_reported_and_not_mended(tmp_path: Path, changes: dict[str, Any], said: int) -> None:
    trace = trace_of(record(tmp_path / "x.json", **changes))

    name = "label that names another agent than acts at its step: it stays with the step"
    assert problems(trace).get(name, 0) == said


def test_a_mistake_of_a_terminal_is_its_result(tmp_path: Path) -> None:
    trace = trace_of(record(tmp_path / "x.json", mistake_agent="ComputerTerminal", mistake_step="5"))

    assert of_type(trace, "tool_result") == ["Orchestrator tool_result ComputerTerminal (error mistake)"]


def test_a_long_history_before_the_labels_is_recognised(tmp_path: Path) -> None:
    long = [HAND["history"][0], *({"content": "x" * 5_000, "role": "WebSurfer"} for _ in range(100))]
    path = record(tmp_path / "x.json", history=long)
    (session,) = importers.sessions(str(path))

    assert session.form == "who_and_when"


def test_records_of_an_array_are_a_trace_each(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps([HAND, ALGORITHM]), "utf-8")

    assert [trace["trace_id"] for trace in traces(tmp_path / "x.json")] == ["hand-1", "algo-1"]


def test_damaged_records_give_sound_traces_or_none(tmp_path: Path) -> None:
    chance, number = random.Random(2), 0
    for _ in range(tries(150, 40)):
        document = json.loads(json.dumps(chance.choice((HAND, ALGORITHM))))
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(document["history"]))
            document["history"][place] = mutated_value(document["history"][place], chance)
        document = mutated_value(document, chance) if chance.random() < 0.5 else document
        (tmp_path / "x.json").write_text(json.dumps(document), "utf-8")
        try:
            number += len(traces(tmp_path / "x.json", form="who_and_when"))
        except DataFileError:
            continue
    assert number > tries(80, 15)
