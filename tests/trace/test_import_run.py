"""The ground under all importers: rows are added to a `Run` in whatever order the log has them, and make one trace."""

from collections.abc import Callable
from itertools import permutations

import pytest

from orchtrace_corpus.trace.importers.core import transcript as steps
from orchtrace_corpus.trace.importers.core.builder import as_data, token_totals
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.run import ROOT, Run
from orchtrace_corpus.trace.importers.core.transcript import ModelCall, Note, Place
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import EventType, Status
from orchtrace_corpus.trace.model.trace import Event, Tokens
from tests.trace.conversationlogs import told
from tests.trace.spanlogs import checked

START = 1_772_355_600.0  # 2026-03-01T09:00:00Z


def place(line: int) -> Place:
    """Return a line of the only file."""
    return Place("toy.jsonl", line)


def run_of(*, are_peers: bool = False) -> Run:
    """Return a run whose root has answered once, with a call `c1` of the tool `task` still to come."""
    run = Run("toy", Privacy(b"salt"), are_peers=are_peers)
    run.name = "toy"
    return run


def answer(run: Run, key: str, second: float, line: int, spent: tuple[int | None, ...] = (10, 2)) -> ModelCall:
    """Add an answer that has spent something."""
    call = ModelCall(START + second, place(line), end=START + second, model="m")
    run.agent(key).add(call)
    run.spend(call, (*spent, None, None, None))
    return call


def text(run: Run) -> str:
    """Return what the trace of a run says, which is sound."""
    trace = as_data(run.trace())
    checked(trace)
    return told(trace)


EXPECTED = """\
toy centralized
log of toy
trace_id toy
clock {'unit': 's', 'epoch': '2026-03-01T09:00:01Z'}

agents
  id user, kind human
  id main, model m, kind model
  id reader, role reads, model m, parent main, kind model

events
  e1   0-0 main orchestrator_decision m | reported: input 10 output 2 | inferred (toy.jsonl:1)
  e2   1 main spawn task > reader [c1] | as reads | content_ref (toy.jsonl:2)
  e5   2-7 reader inference m | reported: input 10 output 2 | inferred (toy.jsonl:4)
  e3   8 reader return > main content_ref (toy.jsonl:5)
  e4   8-15 main aggregate m | reported: input 10 output 2 | inferred (toy.jsonl:6)
  e6   8 reader despawn inferred (toy.jsonl:5)
  e7   15 main stop inferred (toy.jsonl:6)

edges
  e1 -causal-> e2
  e1 -temporal-> e4
  e2 -spawn-> e5
  e3 -return-> e4
  e4 -causal-> e7
  e5 -causal-> e3

costs tokens 36, wall_clock_s 15.0, tool_calls 0, messages 0

read 0, repaired 0, out of order 0
ledger: counted: model call's own usage: 3 (input 30, output 6)
"""


def test_a_call_its_result_and_the_rows_of_its_agent_may_come_in_any_order() -> None:
    def call(run: Run) -> None:
        by = answer(run, ROOT, 1, 1)
        run.call(ROOT, "c1", "task", START + 2, place(2), "read it", by)

    def result(run: Run) -> None:
        run.result(ROOT, "c1", START + 9, place(5), "it says so")
        answer(run, ROOT, 16, 6)

    def agent(run: Run) -> None:
        run.agent("a-1", "reader", "reads").add(Note(START + 3, place(3)))
        answer(run, "a-1", 8, 4)

    def spawn(run: Run) -> None:
        run.spawn("a-1", ROOT, "c1", place(2))

    traces = set()
    for order in permutations((call, result, agent, spawn)):
        run = run_of()
        run.agent(ROOT)
        add: Callable[[Run], None]
        for add in order:
            add(run)
        traces.add(text(run))

    assert traces == {EXPECTED}


def test_what_the_log_says_of_a_call_apart_from_its_result_settles_it() -> None:
    run = run_of()
    run.end_call(ROOT, "c1", steps.REJECTED)
    run.call(ROOT, "c1", "rm", START + 2, place(2), None, answer(run, ROOT, 1, 1))
    run.result(ROOT, "c1", START + 9, place(3), "The person said no.")

    (result,) = [event for event in run.trace().events if event.type == "tool_result"]
    assert (result.status, result.error_type) == (Status.ERROR, "rejected")


def test_what_a_sub_agent_reports_goes_before_the_result_of_its_call() -> None:
    run = run_of()
    run.call(ROOT, "c1", "task", START + 2, place(2), None, answer(run, ROOT, 1, 1))
    run.result(ROOT, "c1", START + 2, place(3), "started")
    run.spawn("a-1", ROOT, "c1", place(2), waits=False)
    answer(run, "a-1", 8, 4)
    note = Note(START + 9, place(5))
    run.agent(ROOT).add(note)
    run.add_return("a-1", note, Status.ERROR)

    (returned,) = [event for event in run.trace().events if event.type == "return"]
    assert (returned.agent, returned.target, returned.t) == ("a-1", "main", 8.0)
    assert (returned.status, returned.error_type) == (Status.ERROR, "agent_error")


def test_an_agent_cannot_spawn_itself_by_way_of_another() -> None:
    run = run_of()
    for key, line in ((ROOT, 1), ("a", 2), ("b", 3)):
        answer(run, key, line, line)
    run.spawn("b", "a", place=place(2))
    run.spawn("a", "b", place=place(3))

    trace = run.trace()
    assert {agent.id: agent.parent for agent in trace.agents if agent.parent} == {"b": "a"}
    assert trace.import_report["problems"]["spawn by which an agent would be above itself: left out"]["number"] == 1


def test_agents_of_one_name_are_numbered_and_people_keep_theirs() -> None:
    run = run_of(are_peers=True)
    for key, name in (("x", "coder"), ("y", "coder"), ("z", "user")):
        run.agent(key, name)
        answer(run, key, 1, 1)

    assert {agent.id for agent in run.trace().agents} == {"user", "coder", "coder#2", "user#2"}


@pytest.mark.parametrize(
    ("stated", "line", "reason"),
    [
        ((0, 0), LedgerLine.ZERO, "answers without usage: 1"),
        (("many", 2), LedgerLine.NO_NUMBER, "usage that is not a number: 1"),
        ((None, None), LedgerLine.NO_USAGE, "answers without usage: 1"),
    ],
)
def test_usage_that_is_not_known_makes_the_total_unknown(
    stated: tuple[int | None, ...], line: LedgerLine, reason: str
) -> None:
    run = run_of()
    answer(run, ROOT, 1, 1)
    answer(run, ROOT, 2, 2, stated)

    trace = run.trace()
    assert trace.costs["tokens"] is None
    assert trace.reasons["costs.tokens"] == reason
    assert trace.import_report["token_ledger"][line]["records"] == 1


def test_a_run_without_a_step_is_empty() -> None:
    with pytest.raises(EmptyLogError, match="no message of an agent in toy"):
        run_of().trace()


@pytest.mark.parametrize(
    ("result_at", "expected"),
    [((2.0, 1.0), (2.0, 1.0)), ((1.0, 3.0), (1.0, 3.0)), ((1.0, 1.0), (1.0, 2.5)), ((0.5, 3.0), (1.0, 2.5))],
)
def test_a_result_comes_behind_its_call_whatever_its_clock_says(
    result_at: tuple[float, float], expected: tuple[float, float]
) -> None:
    call = steps.ToolCall(1.0, place(1), order=2.0)
    result = steps.ToolResult(result_at[0], place(2), order=result_at[1])

    assert steps.join(call, result, ImportReport())
    assert (result.time, result.order) == expected


@pytest.mark.parametrize("line", [line for line in LedgerLine if line.startswith("unknown: ")])
def test_unknown_usage_has_an_event_only_if_it_is_of_an_answer(line: LedgerLine) -> None:
    of_answers = (LedgerLine.NO_USAGE, LedgerLine.NO_NUMBER, LedgerLine.SILENT_CALL, LedgerLine.ZERO)
    report = ImportReport()
    report.enter(line)

    assert report.missing_elsewhere() is (line not in of_answers)


def test_totals_of_tokens_list_the_kinds_that_are_counted() -> None:
    events = [
        Event(id="e1", t=0.0, type=EventType.INFERENCE, agent="a", model="m", tokens=Tokens(input=3, output=0)),
        Event(id="e2", t=1.0, type=EventType.INFERENCE, agent="a", model="n", tokens=Tokens(input=4)),
    ]

    assert token_totals(events) == {
        "agent": {"a": {"input": 7, "output": 0}},
        "model": {"m": {"input": 3, "output": 0}, "n": {"input": 4}},
    }


def test_a_report_counts_all_and_names_three_places_and_a_hundred_kinds() -> None:
    report = ImportReport()
    for line in range(5):
        report.note(Problem.SECOND_RESULT, f"x:{line}")
    for kind in range(103):
        report.note_unknown(f"kind {kind}")

    data = report.as_data()
    assert data["problems"] == {Problem.SECOND_RESULT: {"number": 5, "for_example": ["x:0", "x:1", "x:2"]}}
    assert len(data["unknown_kinds"]) == 101
    assert data["unknown_kinds"]["(further kinds)"] == 3
