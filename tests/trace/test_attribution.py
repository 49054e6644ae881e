"""Made runs have the fault that is planted, records are read in both forms, and ranks and intervals are right."""

import json
from pathlib import Path
from typing import Any

import attribution
import pytest
from attribution import RERUN, interval, rank, ranks, read_record, titled
from planted_faults import Case, Fault, made_run

from orchtrace_corpus.trace import validate
from orchtrace_corpus.trace.measures.measure import steps
from orchtrace_corpus.trace.model.terms import EventType, Status

ALGORITHM: dict[str, Any] = {
    "is_correct": "False",
    "question_ID": "a",
    "history": [
        {"content": "Count the even numbers.", "role": "assistant", "name": "Checker"},
        {"content": "There are three.", "role": "user", "name": "Counter"},
        {"content": "Confirmed: 3.", "role": "user", "name": "Checker"},
    ],
    "mistake_agent": "Counter",
    "mistake_step": "1",
}
BY_HAND: dict[str, Any] = {
    "is_corrected": "False",
    "question_ID": "b",
    "history": [
        {"content": "Which shop opens first?", "role": "human"},
        {"content": "Ask the surfer.", "role": "Orchestrator (thought)"},
        {"content": "Open the page.", "role": "Orchestrator (-> WebSurfer)"},
        {"content": "I opened an advertisement.", "role": "WebSurfer"},
    ],
    "mistake_agent": "WebSurfer",
    "mistake_step": "3",
}


RECORDS = """\
**3 records**

| method            | agent first            | place | step first            | place of step |
| ----------------- | ---------------------- | ----- | --------------------- | ------------- |
| chance            | 50.0%                  | 0.50  | 33.3%                 | 0.50          |
| first to act      | 33.3% (6.1% to 79.2%)  | 0.67  | 0.0% (0.0% to 56.1%)  | 0.75          |
| last to act       | 66.7% (20.8% to 93.9%) | 0.33  | 33.3% (6.1% to 79.2%) | 0.50          |
| credit, the most  | 33.3% (6.1% to 79.2%)  | 0.67  | 0.0% (0.0% to 56.1%)  | 0.67          |
| credit, the least | 66.7% (20.8% to 93.9%) | 0.33  | 33.3% (6.1% to 79.2%) | 0.33          |
| diagnosis         | 50.0% (12.5% to 87.5%) | 0.50  | 33.3% (6.1% to 79.2%) | 0.50          |
| reward            | 50.0% (12.5% to 87.5%) | 0.50  | 33.3% (6.1% to 79.2%) | 0.50          |
"""
"""Credit of agents: Checker 2/3, Counter 1/3; Orchestrator 3/4, WebSurfer 1/4. The first record is there twice."""


def test_the_place_of_the_one_at_fault_shares_ties_evenly() -> None:
    assert rank({"a": 2, "b": 1}, "a", "abcd") == (1.0, 0.0, 0.25)
    assert rank({"a": 2, "b": 1}, "b", "abcd") == (0.0, 1 / 3, 0.25)
    assert rank({"a": 2, "b": 1}, "c", "abcd") == (0.0, 2.5 / 3, 0.25)
    assert rank({"a": -1}, "c", "abcd") == (1 / 3, 1 / 3, 0.25)
    assert rank({}, "a", "abcd") == (0.25, 0.5, 0.25)
    assert rank({}, "a", "a") == (1.0, 0.0, 1.0)
    assert rank({"x": 1}, "x", "abcd") == (0.0, 1.0, 0.0)


def test_the_interval_is_wilsons() -> None:
    assert interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)  # R. G. Newcombe, 1998, table I
    assert interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


@pytest.mark.parametrize("fault", Fault)
def test_a_made_run_is_sound_and_has_its_fault_at_a_step_of_the_agent(fault: Fault) -> None:
    for seed in range(20):
        case = made_run(fault, seed)
        trace = case.view.trace
        asked = [trace.events[number] for number in steps(trace)]

        assert [str(finding) for finding in validate(trace) if finding.severity == "error"] == []
        assert [event.agent for event in asked if event.id == case.step] == [case.agent]
        assert set(case.outcomes) == {event.id for event in asked} | {event.agent for event in trace.events}
        assert set(case.outcomes.values()) <= {1.0, -1.0}
        assert made_run(fault, seed).view.trace == trace


def test_a_duplicate_repeats_the_calls_of_a_sibling_in_one_half_of_the_runs() -> None:
    repeating = 0
    for seed in range(40):
        events = made_run(Fault.DUPLICATE, seed).view.trace.events
        calls = [(event.agent, event.content_ref) for event in events if event.type is EventType.TOOL_CALL]
        first = {content: agent for agent, content in reversed(calls)}
        repeating += any(agent.endswith("'") and first[content] != agent for agent, content in calls)
    assert 12 <= repeating <= 28


def test_a_late_stop_is_behind_a_merge_of_the_same_agent() -> None:
    for seed in range(20):
        case = made_run(Fault.LATE_STOP, seed)
        of_agent = [event for event in case.view.trace.events if event.agent == case.agent]
        kinds = [event.type for event in of_agent]
        step = [event.id for event in of_agent].index(case.step)
        assert EventType.AGGREGATE in kinds[:step]
        assert kinds[step] is EventType.INFERENCE


def read(folder: Path, record: dict[str, Any], **labels: str) -> Case:
    """A record as a case."""
    path = folder / "record.json"
    path.write_text(json.dumps({**record, **labels}), "utf-8")
    return read_record(path)


@pytest.mark.parametrize(
    ("record", "agents", "at_fault"),
    [
        (ALGORITHM, ["Checker", "Counter", "Checker"], ("Counter", 1.0)),
        (BY_HAND, ["Orchestrator", "Orchestrator", "WebSurfer"], ("WebSurfer", 3.0)),
    ],
)
def test_records_are_read_in_both_forms_without_their_labels(
    record: dict[str, Any], agents: list[str], at_fault: tuple[str, float], tmp_path: Path
) -> None:
    case = read(tmp_path, record)
    trace = case.view.trace
    asked = {trace.events[number].id: trace.events[number] for number in steps(trace)}

    assert [event.agent for event in asked.values()] == agents
    assert (case.agent, asked[case.step].t_end) == at_fault
    assert {(event.status, event.error_type) for event in trace.events} == {(Status.UNKNOWN, "")}
    assert trace.metrics == {}


def test_a_mistake_of_a_terminal_is_one_of_the_step_that_called_it(tmp_path: Path) -> None:
    printed = {"content": "18", "role": "ComputerTerminal"}
    longer = {**BY_HAND, "history": [*BY_HAND["history"], printed], "mistake_step": "4"}
    of_agent, of_step = ranks(read(tmp_path, longer), lambda case: ({"WebSurfer": 1.0}, {case.step: 1.0}))

    assert of_agent.first == of_step.first == 1.0
    assert (of_agent.chance, of_step.chance) == (1 / 2, 1 / 3)  # neither people nor terminals are suspected


def test_a_record_may_name_an_agent_in_other_letters(tmp_path: Path) -> None:
    assert read(tmp_path, BY_HAND, mistake_agent="websurfer ").agent == "WebSurfer"
    assert read(tmp_path, BY_HAND, mistake_agent="FileSurfer").agent == "FileSurfer"
    with pytest.raises(ValueError, match="its labels name no agent and step"):
        read(tmp_path, BY_HAND, mistake_step="99")


def test_suspicion_of_an_event_is_that_of_the_step_that_led_to_it() -> None:
    case = made_run(Fault.WRONG_ANSWER, 0)
    trace = case.view.trace
    back = next(event for event in trace.events if event.type is EventType.RETURN and event.agent == case.agent)
    own = [trace.events[number].id for number in steps(trace) if trace.events[number].agent == case.agent]
    last = Case(case.fault, case.view, case.agent, own[-1])

    assert ranks(last, lambda _: ({case.agent: 1.0}, {back.id: 1.0})) == (
        rank({case.agent: 1.0}, case.agent, list(dict.fromkeys(trace.events[n].agent for n in steps(trace)))),
        (1.0, 0.0, 1 / len(steps(trace))),
    )


def test_the_command_measures_records_and_names_what_it_cannot_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in (("a", ALGORITHM), ("b", BY_HAND), ("c", {"history": []})):
        (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")
    (tmp_path / "d.json").write_text(json.dumps({**ALGORITHM, "mistake_agent": "Checker"}), "utf-8")
    monkeypatch.setattr("sys.argv", ["attribution.py", "--records", str(tmp_path)])
    attribution.main()
    passed_over, strange, *shown = capsys.readouterr().out.splitlines()

    assert passed_over.startswith(f"{tmp_path / 'c.json'}: passed over: ")
    assert strange == f"{tmp_path / 'd.json'}: the step at fault is of Counter, and the record names Checker"
    assert "\n".join(shown) == RECORDS


def test_runs_made_again_find_the_agent_that_is_replaced_more_often_the_more_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = [made_run(Fault.WRONG_ANSWER, seed) for seed in range(20)]
    methods = {RERUN: attribution.by_reruns}
    found = []
    for reruns in (1, 64):
        monkeypatch.setattr(attribution, "RERUNS", reruns)
        found.append(sum(ranks(case, attribution.by_reruns)[0].first for case in cases))
    row = titled("", cases, methods).splitlines()[-1]

    assert found[0] < found[1] == 20
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [RERUN, "100.0% (83.9% to 100.0%)", "0.00", "", ""]
