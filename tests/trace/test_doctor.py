"""`corpus trace doctor`: one screen on where the time and the money of a run went, true and readable."""

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchtrace_corpus.base.text.layout import ASCII, display_width, line, plain
from orchtrace_corpus.cli.main import run
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.diagnosis import diagnose, summarize
from orchtrace_corpus.trace.diagnosis.findings import FindingKind
from orchtrace_corpus.trace.diagnosis.lever import Lever, biggest_lever
from orchtrace_corpus.trace.diagnosis.values import Activity, Diagnosis, Origin
from orchtrace_corpus.trace.importers.core.builder import as_data
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.measures.shared_answers import SharedAnswers
from orchtrace_corpus.trace.model.import_report import ImportReport, Problem
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.page.tables import Tables
from orchtrace_corpus.trace.render.doctor import as_data as figures
from orchtrace_corpus.trace.render.doctor import overview, page
from orchtrace_corpus.trace.render.names import break_lines, distinct_names, duration, money
from orchtrace_corpus.trace.render.show import event_page
from orchtrace_corpus.trace.view.agent_tree import AgentSpan
from tests.conftest import ROOT, run_corpus
from tests.loopback import loopback_only  # noqa: F401 - guards every test here
from tests.trace import conversationlogs
from tests.trace.spanlogs import checked
from tests.trace.test_import import FORMS, LOGS, SESSION, copies, on_terminal
from tests.trace.traces import documents

EXAMPLES = ROOT / "data" / "traces"


def trace_of(path: Path) -> Trace:
    (session,) = importers.sessions(str(path))
    (trace,) = importers.read(session, Privacy(b"salt"))
    return checked(as_data(trace))


def shown(trace: Trace, columns: int = 80, rows: int = 24, **more: Any) -> str:
    return plain(page(diagnose(trace, Origin(**more)), (columns, rows)))


def made(*events: dict[str, Any], **fields: Any) -> Trace:
    """A trace of a few events; what they lack is made up."""
    complete = [{"id": f"e{number}", "t": 0, "agent": "main", **event} for number, event in enumerate(events)]
    costs = {"tokens": None, "wall_clock_s": None}
    whole = {"trace_id": "made", "task_id": "made", "events": complete, "edges": [], "rewards": {}, "costs": costs}
    return msgspec.convert({**whole, **fields}, Trace)


# One run


def test_the_page_says_where_the_time_and_the_money_went() -> None:
    shown_there, code = on_terminal_doctor(str(SESSION), "--prices", str(SESSION / "prices.yaml"))

    assert code == 0
    assert shown_there == (
        "Claude Code transcripts 7ea30000-0000-4000-8000-000000000001\n"
        "3 agents, 29 events, 5 min 12 s elapsed, not counting 13 min waiting for people.\n"
        "           0                                                  5 min 12 s  tokens\n"
        "user       h····················································h\n"
        "main       ████s···········································████████████e  31,980\n"
        "  Explore      ███████████████r                                            7,975\n"
        "  tester       █░░░░░░░░░░░░░░░░░░░░░░░░░░░░x█░░░░░░░░░███·r               6,260\n"
        "█ model, ░ tool, · idle, s spawn, r return, h person, e stop, x error\n"
        "Parallel  several at once 25% of the time (at most 2), one alone 74%. Work:\n"
        "          6 min 30 s (models 3 min 13 s, tools 3 min 17 s); speed-up 1.25.\n"
        "Path      critical path, 5 min 12 s: main 18.4 s -> tester 3 min 47 s (mostly\n"
        "          Bash) -> main 1 min 05 s; 1.2 s in small gaps. With these steps and no\n"
        "          waiting: at least 5 min 11 s.\n"
        "Errors    1 event failed: Bash of tester, tool_error (e22 at 2 min 51 s).\n"
        "Tokens    46,215 (3,870 input, 2,045 output, 27,800 from cache,\n"
        "          12,500 to cache). By agent: main 69%, Explore 17%, tester 14%.\n"
        "          By model: example-large-20260115 69%, example-small 31%.\n"
        "          Ignored as duplicates: 14,402 tokens of 2 records.\n"
        "Cost      0.1100 USD at the prices of 2026-03-01, older than the run of\n"
        "          2026-03-02 (main 0.0969, Explore 0.0076, tester 0.0055).\n"
        "          By model: example-large-20260115 0.0969, example-small 0.0131.\n"
        "          By tool: Agent 0.0495, no tool 0.0378, Edit 0.0152, Bash 0.0033, ….\n"
        "Saving    Bash in tester: up to 2 min 29 s of 5 min 12 s.\n"
    )


def test_the_page_names_three_problems_of_the_log_and_counts_the_rest() -> None:
    kinds = (Problem.SECOND_RESULT, Problem.NO_PARENT, Problem.HANDOFF_TO_NOBODY, Problem.NO_PARENT_SPAN)
    report = ImportReport()
    for count, problem in enumerate(kinds, 1):
        for row in range(count):
            report.note(problem, f"x.jsonl:{row}")
    run = made({"type": "inference", "t": 0, "t_end": 1}, import_report=report.as_data())

    assert "".join(shown(run).partition("Log ")[1:]) == (
        "Log       4 x parent is not in the log: the span stands by itself (x.jsonl:0)\n"
        "          3 x handoff to an agent that does not act afterwards (x.jsonl:0)\n"
        "          2 x sub-agent whose parent is not among the files (orphan) (x.jsonl:0)\n"
        "          1 more kind; corpus trace import tells all.\n"
        "Saving    model calls of main: up to 1 s of 1 s.\n"
    )


def test_the_page_draws_sixteen_agents_at_most() -> None:
    def lanes(count: int) -> int:
        events = [{"type": "inference", "agent": f"a{n:02}", "t": n, "t_end": n + 1} for n in range(count)]
        text = plain(page(diagnose(made(*events), Origin()), None))
        return sum("\u2588" in line for line in text.splitlines() if line.startswith("a"))

    assert [lanes(15), lanes(16), lanes(17), lanes(40)] == [15, 16, 16, 16]


def test_the_biggest_lever_is_what_shortens_the_run_most() -> None:
    waits = made(
        {"type": "inference", "t": 0, "t_end": 2},
        {"type": "tool_call", "tool": "Bash", "t": 2, "t_end": 5},
        {"type": "inference", "t": 5, "t_end": 7},
        {"type": "tool_call", "tool": "Bash", "t": 7, "t_end": 10},
        {"type": "tool_call", "tool": "Grep", "t": 10, "t_end": 14},
        edges=[{"src": f"e{n}", "dst": f"e{n + 1}", "type": "causal"} for n in range(4)],
    )
    idle = made({"type": "inference", "t": 0, "t_end": 2}, {"type": "inference", "t": 10, "t_end": 12})
    instant = made({"type": "inference", "t": 0})

    approving, quick = approved(), approved(seconds=100)
    # The longer worker takes 14 s of the path; without it, the run would wait for the other one until 12 s.
    beside = made(
        {"type": "inference", "agent": "lead", "t": 0, "t_end": 2},
        {"type": "inference", "agent": "long", "t": 2, "t_end": 16},
        {"type": "inference", "agent": "short", "t": 2, "t_end": 12},
        {"type": "inference", "agent": "lead", "t": 16, "t_end": 20},
        edges=[{"src": "e0", "dst": f"e{n}", "type": "spawn"} for n in (1, 2)]
        + [{"src": f"e{n}", "dst": "e3", "type": "return"} for n in (1, 2)],
    )

    assert biggest_lever(diagnose(approving)) == Lever("tester", Activity.OPEN, "Bash", 4157.0, 4181.0, 4107.0)
    assert biggest_lever(diagnose(quick)) == Lever("tester", Activity.TOOL, "Bash", 100.0, 124.0, 50.0)
    assert biggest_lever(diagnose(waits)) == Lever("main", Activity.TOOL, "Bash", 6.0, 14.0, 6.0)
    assert biggest_lever(diagnose(idle)) == Lever("", Activity.IDLE, "", 8.0, 12.0, 8.0)
    assert biggest_lever(diagnose(instant)) is None
    assert biggest_lever(diagnose(beside)) == Lever("lead", Activity.MODEL, "", 6.0, 20.0, 6.0)
    assert shown(waits).endswith("Saving    Bash in main: up to 6 s of 14 s.\n")
    assert shown(idle).endswith("Saving    idle time: up to 8 s of 12 s.\n")
    assert "Saving" not in shown(instant)


def on_terminal_doctor(*words: str, **options: Any) -> tuple[str, int]:
    text, code = on_terminal(*words, command="doctor", LINES="24", NO_COLOR="1", TERM="dumb", **options)
    return "".join(line.rstrip() + "\n" for line in text.splitlines()), code


def logs() -> list[Path]:
    return [path for form in FORMS for path in sorted((LOGS / form).iterdir()) if path.name != "truth.json"]


@pytest.mark.parametrize("path", [*logs(), SESSION], ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_log_of_the_tests_fits_one_screen_and_its_times_add_up(path: Path) -> None:
    for session in importers.sessions(str(path)):
        for found in importers.read(session, Privacy(b"salt")):
            trace = checked(as_data(found))
            for columns in (40, 80, 100):
                lines = shown(trace, columns).splitlines()
                assert (columns, [line for line in lines if display_width(line) > columns]) == (columns, [])
                if columns >= 80:
                    assert len(lines) < 24
            check_times(trace)


@pytest.mark.parametrize("columns", range(30, 101, 7))
def test_a_figure_and_its_unit_stay_on_one_line(columns: int) -> None:
    text = shown(trace_of(SESSION), columns)
    lines = [line.strip() for line in text[text.index("Parallel") :].splitlines()]

    assert [line for line in lines if re.match(r"(s|ms|min|h|agents?|events?|tokens)\b", line)] == []
    assert "critical path" in " ".join(text.split())


def big(team: int) -> Trace:
    """A lead that runs many workers of three kinds at once, the slowest of them early."""
    events: list[dict[str, Any]] = [
        {"type": "orchestrator_decision", "t": 0, "t_end": 10, "tokens": {"input": 5}, "agent": "lead"}
    ]
    edges: list[dict[str, str]] = []
    for number in range(team):
        worker, begin = f"w{number}", 10 + number
        events += [
            {"type": "spawn", "agent": "lead", "to": worker, "role": f"kind {number % 3}", "t": begin},
            {"type": "inference", "agent": worker, "t": begin, "t_end": 400 if number == 1 else begin + 20, "tokens": {"input": number}},
            {"type": "return", "agent": worker, "to": "lead", "t": 400 if number == 1 else begin + 20},
        ]  # fmt: skip
        first = len(events) - 3
        edges += [
            {"src": "e0", "dst": f"e{first}", "type": "causal"},
            {"src": f"e{first}", "dst": f"e{first + 1}", "type": "spawn"},
            {"src": f"e{first + 1}", "dst": f"e{first + 2}", "type": "causal"},
            {"src": f"e{first + 2}", "dst": f"e{3 * team + 1}", "type": "return"},
        ]
    events.append({"type": "aggregate", "agent": "lead", "t": 401, "t_end": 420, "tokens": {"input": 7}})
    return made(*events, edges=edges)


@pytest.mark.parametrize("rows", [24, 30, 50])
def test_a_large_team_fills_the_screen_and_no_more(rows: int) -> None:
    lines = shown(big(200), rows=rows).splitlines()

    assert rows - 2 <= len(lines) <= rows - 1
    assert any(re.match(r"… and 1\d\d more agents", line) for line in lines)
    assert "Team      lead spawned 67 x kind 0, 67 x kind 1, 66 x kind 2." in lines


def test_who_is_on_the_critical_path_is_shown_before_who_spent_most() -> None:
    text = shown(big(200))

    assert "critical path, 7 min: lead 10 s -> kind 1 w1 6 min 29 s -> lead 19 s; 2 s in small gaps." in " ".join(
        text.split()
    )
    assert re.search(r"^  kind 1 w1 +█", text, re.M)


def test_where_no_time_passes_nothing_is_said_of_time() -> None:
    text = shown(made({"type": "inference", "t": 5, "t_end": 5, "tokens": {"input": 3, "output": 1}}))

    assert "1 agent, 1 event, no time elapsed: all is of one instant.\n" in text
    assert "Parallel" not in text
    assert "Path" not in text


def test_where_no_event_has_an_end_it_is_said_and_not_taken_as_nothing() -> None:
    text = shown(made({"type": "inference"}, {"type": "inference", "t": 9}))

    assert "Parallel  unknown: the log does not say how long anything took.\n" in text


def test_work_without_its_calls_that_have_no_end_is_a_least() -> None:
    acts = [{"type": "inference", "t": 0, "t_end": 2}, {"type": "tool_call", "tool": "Bash", "t": 2}]
    found = diagnose(made(*acts, {"type": "inference", "t": 3, "t_end": 4}))
    table = Tables(found, {"main": "main"}).figures()

    assert "Work: at least 3 s (models 3 s)." in " ".join(shown(found.view.trace).split())
    assert [figures(found)[name] for name in ("worked", "speed_up")] == [
        {"if_working": 3, "if_waiting": 3, "at_least": True},
        {"if_working": 0.75, "if_waiting": 0.75, "at_least": True},
    ]
    assert [(row[0], row[1].text) for row in table.rows[2:6]] == [
        ("worked", "at least 3\u00a0s"), ("longest path of work", "at least 3\u00a0s"),
        ("speed-up", "at least 0.75"), ("most at once", "at least 1"),
    ]  # fmt: skip
    assert table.notes == ("1 call without an end: taken as 0 s.",)


def test_steps_are_not_called_seconds() -> None:
    text = shown(
        made({"type": "inference", "t_end": 1}, {"type": "inference", "t": 4, "t_end": 6}, clock={"unit": "step"})
    )

    assert "6 steps elapsed" in text
    assert not re.search(r"\d s\b", text)


def test_what_is_unknown_is_never_0() -> None:
    text = shown(made({"type": "inference", "t_end": 3}, reasons={"costs.tokens": "nobody counted."}), has_prices=True)

    assert "Tokens    unknown (nobody counted).\n" in text
    assert "Cost      unknown: no tokens are known.\n" in text


def test_what_is_known_in_part_is_a_least() -> None:
    known = {
        "type": "inference",
        "t_end": 3,
        "tokens": {"input": 1000, "output": 500},
        "model": "dear",
        "cost_usd": 1.5,
    }
    trace = made(known, {"type": "inference", "t": 4, "t_end": 5}, reasons={"costs.tokens": "1 call has no usage"})

    text = shown(trace, has_prices=True)

    assert "Tokens    at least 1,500 (1,000 input, 500 output). " in text
    assert "          Not known: 1 call has no usage.\n" in text
    assert "Cost      at least 1.50 USD, as the trace states it.\n" in text


def test_models_without_a_price_are_named(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text(
        "date: 2026-03-02\ncurrency: USD\nmodels:\n  example-small: {input: 1, output: 5, cache_read: 0.1, cache_write: 1.25}\n"
    )

    result = run_corpus("trace", "doctor", str(SESSION), "--prices", str(tmp_path / "prices.yaml"))

    assert (
        "Cost      at least 0.0131 USD at the prices of 2026-03-02 (Explore 0.0076, tester 0.0055).\n" in result.stdout
    )
    assert "          Not included, because a price or a count is missing: example-large-20260115.\n" in result.stdout


def test_problems_are_told_in_the_order_of_how_many() -> None:
    report = {
        "problems": {"rare": {"number": 1, "for_example": ["a:1"]}, "often": {"number": 5000, "for_example": []}},
        "dropped": {"cut off": {"number": 2, "for_example": ["a:9"]}},
        "unknown_kinds": {"new": 3},
    }
    run = made({"type": "tool_call", "tool": "Bash", "call_id": "c", "status": "error"}, import_report=report)
    text = shown(run)

    wanted = {"rare": 1, "often": 5000, "cut off": 2, "record of an unknown kind": 3}
    assert figures(diagnose(run))["problems"] == wanted  # for programs, in the order of the report

    assert text.endswith(
        "Log       5,000 x often\n"
        "          3 x record of an unknown kind\n"
        "          2 x cut off (a:9)\n"
        "          1 more kind; corpus trace import tells all.\n"
    )
    assert "Errors    1 event failed: Bash of main (e0 at 0 s).\n" in text


def test_text_of_a_log_cannot_reach_the_terminal() -> None:
    hostile = "\x1b[2J\ue000\u202e\r"
    trace = made(
        {"type": "spawn", "agent": hostile, "to": f"{hostile}2", "role": hostile},
        {"type": "inference", "agent": f"{hostile}2", "t": 1, "t_end": 3, "model": hostile, "tokens": {"input": 1}},
        {"type": "tool_call", "agent": hostile, "t": 3, "t_end": 4, "tool": hostile, "call_id": "c", "status": "error"},
        {"type": "tool_result", "agent": hostile, "t": 4, "tool": hostile, "call_id": "c"},
        import_report={"problems": {hostile: {"number": 1, "for_example": [hostile]}}},
        reasons={"costs.tokens": hostile},
    )

    told = [shown(trace), *(plain(event_page(trace, one.id, 80)) for one in trace.events)]
    assert not {"\x1b", "\ue000", "\u202e", "\r"} & set("".join(told))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
parts = st.sampled_from(["problems", "dropped", "unknown_kinds", "token_ledger", "prices", "number", "tokens", "date"])


@given(st.dictionaries(parts, json_values | st.dictionaries(parts, json_values, max_size=3), max_size=4))
def test_an_import_report_of_another_form_is_no_trouble(report: dict[str, Any]) -> None:
    text = shown(made({"type": "inference", "t_end": 1}, import_report=report), has_prices=True)

    assert ("Findings  none" in text) != ("Log  " in text)


def test_without_unicode_the_lanes_are_drawn_in_ascii() -> None:
    lines = plain(page(diagnose(big(40)), (80, 24), ASCII))

    assert lines.isascii()
    assert "# model, - tool, . idle, s spawn, r return" in lines


def test_agents_that_nobody_spawned_are_told_apart() -> None:
    loose = [{"type": "inference", "agent": name, "t": t, "t_end": t + 1} for t, name in enumerate(("a", "b"))]
    spawned = {"type": "spawn", "agent": "a", "to": "c", "t": 0.5}

    assert "Team      nobody spawned another.\n" in shown(made(*loose))
    assert "Team      a spawned c; unknown who spawned b.\n" in shown(made(*loose, spawned))


def test_of_a_long_critical_path_it_is_said_whose_it_is() -> None:
    events: list[dict[str, Any]] = []
    for turn in range(20):
        who = ("a", "b")[turn % 2]
        events.append({"type": "tool_call" if who == "b" else "inference", "agent": who, "t": turn * 10, "t_end": turn * 10 + 9 + turn % 2, "tool": "Bash" if who == "b" else ""})  # fmt: skip
    edges = [{"src": f"e{turn}", "dst": f"e{turn + 1}", "type": "causal"} for turn in range(19)]

    text = " ".join(shown(made(*events, edges=edges)).split())

    assert (
        "critical path, 3 min 20 s: b 1 min 40 s (10 times), a 1 min 30 s (10 times); the longest stretch: b 10 s (Bash); "
        "10 s in small gaps. With these steps and no waiting: at least 3 min 10 s." in text
    )


def late(*, gap: float = 29.0) -> Trace:
    """A lead that waits for two workers: one that works longer, and one that begins, and so ends, later."""
    events = [
        {"type": "orchestrator_decision", "agent": "lead", "t": 0, "t_end": 1},
        {"type": "spawn", "agent": "lead", "to": "long", "t": 1},
        {"type": "spawn", "agent": "lead", "to": "late", "t": 1},
        {"type": "inference", "agent": "long", "t": 2, "t_end": 40},
        {"type": "inference", "agent": "late", "t": 1 + gap, "t_end": 60},
        {"type": "aggregate", "agent": "lead", "t": 61, "t_end": 65},
    ]
    pairs = [(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5)]
    return made(*events, edges=[{"src": f"e{a}", "dst": f"e{b}", "type": "causal"} for a, b in pairs])


def test_the_critical_path_is_what_the_end_waited_for_and_not_the_most_work() -> None:
    text = " ".join(shown(late()).split())

    assert (
        "critical path, 1 min 05 s: lead 1 s -> gap 29 s (long worked 28 s of it) -> late 30 s -> lead 4 s; 1 s in small gaps. "
        "With these steps and no waiting: at least 43 s (lead 1 s -> long 38 s -> lead 4 s)." in text
    )


def test_a_gap_of_the_path_is_idle_only_where_nobody_worked() -> None:
    """What somebody works beside the path is told of the gap, and no lever is called idle time for it."""
    two = made(
        {"type": "inference", "agent": "a", "t": 0, "t_end": 20},
        {"type": "tool_call", "tool": "Bash", "agent": "c", "t": 10, "t_end": 25},
        {"type": "inference", "agent": "b", "t": 30, "t_end": 31},
    )

    assert biggest_lever(diagnose(late())) == Lever("late", Activity.MODEL, "", 30.0, 65.0, 22.0)
    assert biggest_lever(diagnose(two)) == Lever("", Activity.IDLE, "", 5.0, 31.0, 5.0)
    assert diagnose(late()).path.idle == 2.0  # a second before and one after the workers
    assert shown(two) == (
        "Trace made\n"
        "3 agents, 3 events, 31 s elapsed.\n"
        "   0                                                                      31 s\n"
        "a  ████████████████████████████████████████████████·\n"
        "c                          ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░·\n"
        "b                                                                          ██·\n"
        "█ model, ░ tool, · idle\n"
        "Team      nobody spawned another.\n"
        "Parallel  several at once 32% of the time (at most 2), one alone 52%, nobody\n"
        "          16%. Work: 36 s (models 21 s, tools 15 s); speed-up 1.16.\n"
        "Path      critical path, 31 s: gap 30 s (2 agents worked 25 s of it) -> b 1 s.\n"
        "          With these steps and no waiting: at least 20 s (a 20 s).\n"
        "Findings  none seen: nothing lost between agents, all of the log read. Whether a\n"
        "          call failed is not known, since none has a status.\n"
        "Tokens    unknown.\n"
        "Cost      unknown without prices: --cost, or a table with --prices FILE.\n"
        "Saving    idle time: up to 5 s of 31 s.\n"
    )


def test_time_before_an_event_that_waited_for_nothing_known_is_a_gap() -> None:
    trace = made(
        {"type": "inference", "agent": "a", "t": 0, "t_end": 10},
        {"type": "inference", "agent": "b", "t": 30, "t_end": 50},
    )

    assert "Path      critical path, 50 s: gap 30 s (a worked 10 s of it) -> b 20 s." in shown(trace)


def test_time_of_an_agent_that_nobody_saw_is_told_as_assumed() -> None:
    trace = made(
        {"type": "inference", "t_end": 4, "model": "m"},
        {"type": "spawn", "to": "unseen", "t": 4},
        {"type": "inference", "agent": "unseen", "t": 4, "t_end": 20, "inferred": True},
        {"type": "inference", "t": 20, "t_end": 24, "model": "m", "inferred": True},
        edges=[{"src": f"e{n}", "dst": f"e{n + 1}", "type": "causal"} for n in range(3)],
    )

    text = shown(trace)

    assert "Work: 24 s (models 24 s; 16 s of it assumed)." in " ".join(text.split())
    assert "Path      critical path, 24 s: main 4 s -> unseen 16 s (assumed) -> main 4 s." in text
    assert "█ model, ▓ assumed, ░ tool" in text
    assert re.search(r"^  unseen +▓+·?$", text, re.M)
    assert not re.search(r"^main .*▓", text, re.M)


def test_calls_without_usage_make_the_total_a_least() -> None:
    ledger = {
        "counted: usage": {"records": 1, "tokens": {"input": 4, "output": 1}},
        "unknown: model call without usage": {"records": 1, "tokens": {}},
    }
    known = {"type": "inference", "t_end": 3, "tokens": {"input": 4, "output": 1}, "cost_usd": 0.5}
    costs = {"tokens": 5, "wall_clock_s": 3}
    trace = made(known, {"type": "inference", "t": 3}, costs=costs, import_report={"token_ledger": ledger})

    text = shown(trace, has_prices=True)

    assert "Tokens    at least 5 (4 input, 1 output).\n" in text
    assert "          Not known: 1 x model call without usage.\n" in text
    assert "Cost      at least 0.5000 USD" in text


def test_what_sums_up_others_is_no_duplicate_since_totals_overlap() -> None:
    screen = run_corpus("trace", "doctor", str(LOGS / "kimi_code" / "team")).stdout

    assert "          Ignored as duplicates: 8,562 tokens of 9 records.\n" in screen  # not the totals of two sub-agents


def test_an_agent_whose_tokens_are_the_least_it_spent_is_marked_in_all_forms() -> None:
    log = str(LOGS / "claude_code" / "parallel")
    lines = run_corpus("trace", "doctor", log).stdout.splitlines()
    found = json.loads(run_corpus("trace", "doctor", log, "--format", "json").stdout)["sessions"][0]["agents"]

    assert [line.split()[-1] for line in lines[4:8]] == ["971", "2,068+", "70", "700"]
    assert lines[8].endswith(", x error, + at least")
    assert [(one["name"], one["tokens"], one["tokens_at_least"]) for one in found] == [
        ("user", None, False),
        ("main", 971, False),
        ("reader a111", 2068, True),
        ("timer", 70, False),
        ("reader b222", 700, False),
    ]


def test_a_problem_of_two_events_is_shown_at_its_place_in_the_log() -> None:
    noted = {"number": 2, "for_example": ["e0 -> e1"]}
    second = {"type": "inference", "t": 1, "t_end": 2, "source": {"file": "log.jsonl", "line": 7}}
    trace = made({"type": "inference"}, second, import_report={"problems": {"dependency left out": noted}})

    assert "Log       2 x dependency left out (log.jsonl:7)\n" in shown(trace)


# Names and figures


@pytest.mark.parametrize(
    ("seconds", "unit", "said"),
    [
        (0, "s", "0 s"),
        (0.000401, "s", "0.401 ms"),
        (0.9994, "s", "999 ms"),
        (1, "s", "1 s"),
        (59.94, "s", "59.9 s"),
        (59.97, "s", "1 min"),
        (300, "s", "5 min"),
        (61, "s", "1 min 01 s"),
        (3600, "s", "1 h"),
        (7500, "s", "2 h 05 min"),
        (335_520, "s", "93 h 12 min"),
        (1, "step", "1 step"),
        (6, "step", "6 steps"),
    ],
)
def test_durations_are_said_as_people_say_them(seconds: float, unit: str, said: str) -> None:
    assert break_lines(duration(seconds, unit), 80) == [said]


@pytest.mark.parametrize(
    ("usd", "said"), [(0, "0.00"), (0.00001, "<0.0001"), (0.0042, "0.0042"), (1.005, "1.00"), (12_345.6, "12,345.60")]
)
def test_a_little_money_is_not_shown_as_none(usd: float, said: str) -> None:
    assert money(usd) == said


def test_agents_are_called_by_what_people_know_them_by() -> None:
    def one(agent: str, role: str = "") -> AgentSpan:
        return AgentSpan(agent, 0, role, "", 0.0, 1.0, [], None)

    team = [
        one("user"), one("main"), one("cccc333", "Explore"), one("aaaa111111111111", "tester"), one("bbbb2222", "tester"),
        one("worker#2", "worker"), one("Ada", "reviewer"), one("lead", "lead"), one("w1", "kind"), one("w2", "kind"),
    ]  # fmt: skip

    assert list(distinct_names(team, frozenset({"user"})).values()) == [
        "user", "main", "Explore", "tester aaaa1111", "tester bbbb2222",
        "worker#2", "Ada (reviewer)", "lead", "kind w1", "kind w2",
    ]  # fmt: skip


def test_agents_have_one_name_on_every_screen_and_their_ids_for_programs(tmp_path: Path) -> None:
    logs, outcomes = str(LOGS / "claude_code" / "siblings"), tmp_path / "outcomes.csv"
    outcomes.write_text("run,reward\n5e55104a-0000-4000-8000-000000000003,1\n", encoding="utf-8")
    rewarded = [logs, "--outcomes", str(outcomes)]
    screens = {
        command[0]: run_corpus("trace", *command).stdout
        for command in (
            ["doctor", logs], ["show", logs], ["measure", logs, "--ledger", "agent"], ["credit", *rewarded],
            ["reward", *rewarded, "--family", "R7", "--by", "agent"], ["label", logs, "--events"], ["graph", logs],
        )
    }  # fmt: skip
    agents = json.loads(run_corpus("trace", "doctor", logs, "--format", "json").stdout)["sessions"][0]["agents"]
    credit = json.loads(run_corpus("trace", "credit", *rewarded, "--format", "json").stdout)["traces"][0]["credits"]

    assert {one["agent"]: one["name"] for one in agents}["5eac4"] == "Explore 5eac4"
    assert {one["part"] for one in credit} >= {"5eac4"}
    for command, screen in screens.items():
        assert screen.count("Explore 5eac4") == screen.count("5eac4") >= (command != "label"), command


def test_no_two_agents_are_called_the_same() -> None:
    alike = [AgentSpan(f"aaaaaaaa{number:08}", 0, "tester", "", 0.0, 1.0, [], None) for number in range(50)]

    assert len(set(distinct_names(alike, frozenset()).values())) == 50


# Several runs


def test_several_sessions_are_a_line_each_and_one_can_be_named(tmp_path: Path) -> None:
    folder = copies(tmp_path / "logs", 20)

    several = run_corpus("trace", "doctor", str(folder))
    one = run_corpus("trace", "doctor", str(folder), "--session", "7ea30000-0000-4000-8000-000000000007")

    assert several.code == 0
    lines = several.stdout.splitlines()
    lines = lines[lines.index("20 sessions") :]
    assert lines[1].split() == ["session", "project", "began", "agents", "events", "errors", "time", "tokens"]
    assert len(lines) == 2 + 15 + 2 + 5
    assert lines[17].split()[:3] == ["5", "more", "sessions"]
    assert (lines[18].split()[0], lines[18].split()[-1]) == ("all", "31,980+")
    assert lines[-1] == "To see one: --session, with the beginning of its name."
    assert lines[-2] == "--limit says how many sessions are listed; --format csv lists all."
    assert lines[-3].startswith("In the last line, each answer counts once: 607,620 tokens of ")
    assert lines[-4].startswith("+ at least: "), "none of the copies has its sub-agents"
    assert one.stdout.startswith("Claude Code transcripts 7ea30000-0000-4000-8000-000000000007\n")


def test_a_name_of_none_or_of_several_is_told_with_what_there_is(tmp_path: Path) -> None:
    folder = copies(tmp_path / "logs", 3)

    none = run_corpus("trace", "doctor", str(folder), "--session", "zz")
    several = run_corpus("trace", "doctor", str(folder), "--session", "7ea3")

    assert (none.code, several.code) == (2, 2)
    assert "corpus: no session begins with 'zz'\nSessions found: 7ea30000-" in none.stderr
    assert "corpus: 3 sessions begin with '7ea3': 7ea30000-" in several.stderr
    assert several.stderr.endswith("Write more of the name.\n")


def test_the_very_name_goes_before_longer_ones(tmp_path: Path) -> None:
    for name in ("run", "run-2", "run-3"):
        trace = json.loads((EXAMPLES / "swarm.json").read_text(encoding="utf-8"))
        (tmp_path / f"{name}.json").write_text(json.dumps({**trace, "trace_id": name}), encoding="utf-8")

    result = run_corpus("trace", "doctor", str(tmp_path), "--session", "run")

    assert result.stdout.startswith("Trace run\n")


def test_the_dearest_session_comes_first_and_unpriced_ones_stand_by_their_tokens_then_the_longest() -> None:
    def run(name: str, seconds: float, tokens: int | None, usd: float | None) -> Trace:
        event: dict[str, Any] = {"type": "inference", "t_end": seconds}
        event |= {} if tokens is None else {"tokens": {"input": tokens}}
        event |= {} if usd is None else {"cost_usd": usd}
        return made(event, trace_id=name, costs={"tokens": tokens, "wall_clock_s": seconds})

    runs = [
        run("short", 1, None, None),
        run("long", 2000, None, None),
        run("many", 1, 10**7, None),
        run("dear", 1, 5, 0.25),
        run("few", 1, 4, None),
        run("cheap", 1, 5, 0.05),
    ]

    table = overview([summarize(one) for one in runs], SharedAnswers(), has_prices=True, most=10)

    assert [row[0] for row in table.rows] == ["many", "dear", "few", "cheap", "long", "short", "all"]
    assert [name.strip() for name in table.columns[-2:]] == ["tokens", "USD"]
    assert [
        name.strip()
        for name in overview(
            [summarize(one) for one in runs], SharedAnswers(), has_prices=True, most=1, width=40
        ).columns
    ] == ["session", "time", "tokens", "USD"]
    assert [str(row[-2]).strip() for row in table.rows] == [
        "10,000,000", "5", "4", "5", "", "", "10,000,014+"
    ]  # fmt: skip
    assert [str(row[-1]).strip() for row in table.rows] == ["", "0.2500", "", "0.0500", "", "", "0.3000+"]
    assert "Sessions without a price stand where their tokens would at the average price." in table.notes


def test_a_session_that_goes_on_in_another_file_long_after_says_so_in_its_log_and_in_the_list() -> None:
    def run(name: str, later: float) -> Trace:
        files = [{"source": {"file": f"{file}.jsonl", "line": 1}} for file in ("a", "b", "c")]
        times = ((0, 10), (20, 30), (later, later + 5))
        events = [
            {"type": "inference", "agent": agent, "t": begin, "t_end": end, **file}
            for agent, (begin, end), file in zip(("main", "helper", "main"), times, files, strict=True)
        ]
        return made(*events, trace_id=name)

    late, soon = run("one", 7300), run("one", 40)
    table = overview([summarize(one, "a.jsonl") for one in (late, soon)], SharedAnswers(), has_prices=False, most=10)

    assert "Log       1 x another file of the session, an hour or more later (c.jsonl:1)\n" in shown(late)
    assert "another file" not in shown(soon)
    assert [(row[0], row[-1]) for row in table.rows] == [("one", "3 files: a.jsonl")] * 2 + [("all", "")]


def test_a_sum_with_something_unknown_in_it_is_a_least() -> None:
    def run(name: str, tokens: int | None, stated: int | None) -> Trace:
        event = {"type": "inference", "t_end": 1} | ({} if tokens is None else {"tokens": {"input": tokens}})
        return made(event, trace_id=name, costs={"tokens": stated, "wall_clock_s": 1})

    runs = [run("whole", 7, 7), run("part", 5, None), run("nothing", None, None)]

    table = overview([summarize(one) for one in runs], SharedAnswers(), has_prices=False, most=10)
    whole = overview([summarize(one) for one in runs[:1] * 2], SharedAnswers(), has_prices=False, most=10)

    assert [(row[0], str(row[-1]).strip()) for row in table.rows] == [
        ("whole", "7"), ("part", "5+"), ("nothing", ""), ("all", "12+"),
    ]  # fmt: skip
    assert "+ at least: the logs do not record all of it. Empty: nothing of it is known." in table.notes
    assert not any("+" in str(cell) for row in whole.rows for cell in row)


def test_a_run_of_tokens_without_a_price_makes_every_cost_a_least() -> None:
    event = {"type": "inference", "t_end": 1, "tokens": {"input": 5}}
    costs = {"tokens": 5, "wall_clock_s": 1}
    runs = [made({**event, **more}, trace_id="run", costs=costs) for more in ({"cost_usd": 1.5}, {})]

    assert [figures(diagnose(one))["cost_usd"] | {"by_agent": 0, "by_model": 0, "by_tool": 0} for one in runs] == [
        {"known": known, "at_least": is_least, "by_agent": 0, "by_model": 0, "by_tool": 0, "stated": None}
        for known, is_least in ((1.5, False), (None, True))
    ]
    table = overview([summarize(one) for one in runs], SharedAnswers(), has_prices=True, most=10)
    assert [str(row[-2]).strip() for row in table.rows] == ["1.50", "", "1.50+"]


def test_sessions_of_one_name_are_told_apart_by_their_files(tmp_path: Path) -> None:
    document = json.loads((EXAMPLES / "swarm.json").read_text(encoding="utf-8"))
    for number in range(3):
        (tmp_path / f"run{number}.json").write_text(json.dumps(document), encoding="utf-8")

    several = run_corpus("trace", "doctor", str(tmp_path))
    unclear = run_corpus("trace", "doctor", str(tmp_path), "--session", "swarm")
    by_name = run_corpus("trace", "doctor", str(tmp_path), "--session", "run1.json")
    by_path = run_corpus("trace", "doctor", str(tmp_path), "--session", str(tmp_path / "run1.json"))

    listed = several.stdout.partition("\n3 sessions\n")[2].splitlines()
    assert listed[0].split()[-1] == "file"
    assert listed[2].endswith("run1.json")
    assert unclear.code == 2
    assert f"3 sessions begin with 'swarm': swarm ({tmp_path / 'run0.json'})" in unclear.stderr.replace("\n", " ")
    assert unclear.stderr.endswith("Name the file of the one that you mean: --session FILE\n")
    assert by_name.stdout.startswith("Trace swarm\n")
    assert by_path.stdout == by_name.stdout


def test_programs_are_given_the_figures_of_all_sessions_or_of_one(tmp_path: Path) -> None:
    for name in ("swarm", "debate"):
        shutil.copy(EXAMPLES / f"{name}.json", tmp_path)

    both = json.loads(run_corpus("trace", "doctor", str(tmp_path), "--format", "json").stdout)
    one = json.loads(run_corpus("trace", "doctor", str(tmp_path), "--format", "json", "--session", "swarm").stdout)

    assert (both["schema"], both["version"]) == ("orchtrace-corpus/trace-doctor", 1)
    assert [run["session"] for run in both["sessions"]] == ["debate", "swarm"]
    (swarm,) = one["sessions"]
    assert swarm == both["sessions"][1]
    assert (swarm["elapsed"], swarm["waited"], swarm["tokens"]) == (
        20,
        0,
        {"known": 8240, "at_least": False, "hidden": 0},
    )
    assert (swarm["worked"], swarm["span"]) == (
        {"if_working": 35, "if_waiting": 35, "at_least": False},
        {"if_working": 20, "if_waiting": 20, "at_least": False},
    )
    assert {name: swarm["agents"][0][name] for name in ("elapsed", "worked", "waited", "idle", "open")} == {
        "elapsed": 20, "worked": 6, "waited": 14, "idle": 0, "open": 0
    }  # fmt: skip
    chain = swarm["critical_path"]
    assert sum(step["worked"] + step["gap_before"] for step in chain) + swarm["critical_path_gap_after"] == 20


# What is given


NEXT_DAY = 24 * 3600
"""When the session of the example begins, in seconds from the begin of rows that are made up."""
ASSUMED = (
    "critical path, 5 min 12 s: main 18.4 s -> tester 3 min 49 s (assumed) -> main 1 min 05 s. "
    "With these steps and no waiting: at least 5 min 12 s."
)
SEEN = (
    "critical path, 5 min 12 s: main 18.4 s -> tester 3 min 47 s (mostly Bash) -> main 1 min 05 s; "
    "1.2 s in small gaps. With these steps and no waiting: at least 5 min 11 s."
)


@pytest.mark.parametrize(
    ("agents", "path"),
    [((), ASSUMED), (("e1",), ASSUMED), (("f2",), SEEN), (("e1", "f2"), SEEN), (("e1", "f2", "a9"), SEEN)],
    ids=["main alone", "a short sub-agent", "the long one", "both", "and one that nobody spawned"],
)
def test_more_files_of_a_session_make_no_other_path_and_its_parts_are_its_length(
    tmp_path: Path, agents: tuple[str, ...], path: str
) -> None:
    (main,) = SESSION.glob("*.jsonl")
    shutil.copy(main, tmp_path)
    for name in agents:
        for file in (SESSION / main.stem / "subagents").glob(f"agent-{name}.*"):
            below = tmp_path / main.stem / "subagents"
            below.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, below)
    if "a9" in agents:  # nobody spawned it, and it works for 7 s
        stray = conversationlogs.Claude(main.stem, "a9")
        stray.say(NEXT_DAY + 100, "Look around.")
        stray.answer(NEXT_DAY + 107, "m9", conversationlogs.text("Nothing."))
        stray.write(tmp_path)

    shown_there = run_corpus("trace", "doctor", str(tmp_path / main.name)).stdout
    shown_path = " ".join(shown_there.partition("Path  ")[2].partition("\nErrors")[0].partition("\nWaits")[0].split())
    (run,) = json.loads(run_corpus("trace", "doctor", str(tmp_path), "--format", "json").stdout)["sessions"]
    parts = [step["worked"] + step["gap_before"] for step in run["critical_path"]]

    assert shown_path == path
    assert run["elapsed"] == 312
    assert sum(parts) + run["critical_path_gap_after"] == pytest.approx(312)


def test_a_finished_trace_is_read_as_well() -> None:
    one = run_corpus("trace", "doctor", str(EXAMPLES / "hierarchical.json"))
    all_of_them = run_corpus("trace", "doctor", str(EXAMPLES))

    assert (one.code, all_of_them.code) == (0, 0)
    assert one.stdout.startswith("Trace hierarchical\n")
    assert "Team      lead (director) spawned manager; manager spawned worker w1, worker w2.\n" in one.stdout
    assert f"{len(list(EXAMPLES.iterdir()))} sessions" in all_of_them.stdout


def test_an_imported_trace_gives_the_page_of_its_log(tmp_path: Path) -> None:
    prices = ("--prices", str(SESSION / "prices.yaml"))
    run_corpus("trace", "import", str(SESSION), "-o", str(tmp_path / "run.json"), *prices)

    log = run_corpus("trace", "doctor", str(SESSION), *prices)
    trace = run_corpus("trace", "doctor", str(tmp_path / "run.json"))
    priced_again = run_corpus("trace", "doctor", str(tmp_path / "run.json"), *prices)

    assert trace.stdout == log.stdout.replace("Claude Code transcripts", "Trace")
    assert priced_again.stdout == trace.stdout


def test_a_trace_with_errors_is_refused(tmp_path: Path) -> None:
    trace = json.loads((EXAMPLES / "swarm.json").read_text(encoding="utf-8"))
    trace["edges"].append({"src": "nobody", "dst": "nobody", "type": "causal"})
    (tmp_path / "run.json").write_text(json.dumps(trace), encoding="utf-8")

    result = run_corpus("trace", "doctor", str(tmp_path / "run.json"))

    assert (result.code, result.stdout) == (1, "")
    assert "the trace has errors, so nothing derived from it would be true" in result.stderr


def test_the_sub_agents_beside_a_session_are_read_with_it(tmp_path: Path) -> None:
    shutil.copytree(SESSION, tmp_path / "logs")
    (main,) = (tmp_path / "logs").glob("*.jsonl")

    alone = run_corpus("trace", "doctor", str(main))

    assert alone.stdout == run_corpus("trace", "doctor", str(tmp_path / "logs")).stdout
    assert "3 agents, 29 events" in alone.stdout


def test_transcripts_in_the_folder_of_a_session_are_those_of_its_own_sub_agents(tmp_path: Path) -> None:
    """Claude Code 2.0 kept `agent-ID.jsonl` of all sessions of a project beside these."""
    (main,) = SESSION.glob("*.jsonl")
    shutil.copy(main, tmp_path)
    for path in sorted((main.with_suffix("") / "subagents").glob("agent-*.jsonl")):
        shutil.copy(path, tmp_path)
        strange = path.read_text(encoding="utf-8").replace("7ea30000-0000-4000-8000-000000000001", "another-session")
        (tmp_path / f"agent-of-others-{path.name}").write_text(strange, encoding="utf-8")

    assert "3 agents, " in run_corpus("trace", "doctor", str(tmp_path / main.name)).stdout


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(SESSION, tmp_path / "logs")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))

    run_corpus("trace", "doctor", "logs")

    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-"], 2, "corpus: logs are read from files and folders, not from standard input"),
        (["nowhere"], 3, "corpus: cannot read 'nowhere': No such file or directory"),
        (["README.md"], 3, "corpus: 'README.md' is not a log in a known format: it begins with "),
        (["data/traces", "--prices", "nowhere.yaml"], 3, "corpus: cannot read nowhere.yaml: No such file or directory"),
    ],
)
def test_what_cannot_be_read_is_said(words: list[str], code: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    result = run_corpus("trace", "doctor", *words)

    assert (result.code, result.stdout) == (code, "")
    assert result.stderr.startswith(said)


# The documentation


def test_commands_in_the_documentation_give_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(SESSION, tmp_path / "session")
    text = (ROOT / "docs" / "importers.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.M | re.S)
    (tmp_path / "prices.yaml").write_text(table, encoding="utf-8")
    (tmp_path / "session" / "prices.yaml").unlink()
    monkeypatch.chdir(tmp_path)
    ran = 0

    for command, output in re.findall(r"^```console\n\$ corpus (.*?)\n(.*?)^```$", text, re.M | re.S):
        result = run_corpus(*shlex.split(command))
        assert (result.code, result.stdout + result.stderr) == (0, output), command
        ran += 1

    assert ran == 2


def test_the_documentation_names_every_format_and_every_part_of_the_report() -> None:
    text = (ROOT / "docs" / "importers.md").read_text(encoding="utf-8")
    (session,) = importers.sessions(str(SESSION))
    (trace,) = importers.read(session, Privacy(b"salt"))

    for name in (*importers.FORMATS, *trace.import_report):
        assert f"`{name}`" in text


# Calls that perhaps waited


def approved(*, seconds: float = 4157.0) -> Trace:
    """A lead whose tester waits for leave to run the tests, while a reader works."""
    return made(
        {"type": "inference", "agent": "lead", "t": 0, "t_end": 4},
        {"type": "spawn", "agent": "lead", "to": "tester", "t": 4},
        {"type": "spawn", "agent": "lead", "to": "reader", "t": 4},
        {"type": "tool_call", "agent": "tester", "tool": "Bash", "call_id": "c", "t": 4, "t_end": 4 + seconds},
        {"type": "inference", "agent": "reader", "t": 4, "t_end": 64},
        {"type": "inference", "agent": "tester", "t": 4 + seconds, "t_end": 14 + seconds},
        {"type": "inference", "agent": "lead", "t": 14 + seconds, "t_end": 24 + seconds},
        edges=[{"src": f"e{a}", "dst": f"e{b}", "type": "causal"} for a, b in ((0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 6), (5, 6))],
    )  # fmt: skip


def test_a_call_that_perhaps_waited_makes_ranges_and_is_drawn_as_open() -> None:
    assert shown(approved()) == (
        "Trace made\n"
        "3 agents, 7 events, 1 h 09 min elapsed.\n"
        "          0                                                         1 h 09 min\n"
        "lead      █··································································█\n"
        "  tester  ???????????????????????????????????????????????????????????????????█\n"
        "  reader  █·\n"
        "█ model, ░ tool, · idle, ? open\n"
        "Team      lead spawned tester, reader.\n"
        "Parallel  several at once 0% to 1% of the time (at most 2), one alone 2% to 99%,\n"
        "          nobody 0% to 98%. Work: 1 min 24 s to 1 h 10 min (models 1 min 24 s,\n"
        "          tools 0 s to 1 h 09 min); speed-up 0.0201 to 1.01.\n"
        "Path      critical path, 1 h 09 min: lead 4 s -> tester 1 h 09 min (mostly Bash,\n"
        "          perhaps waiting) -> lead 10 s. With these steps and no waiting: at\n"
        "          least 1 min 14 s (lead 4 s -> reader 1 min -> lead 10 s), or\n"
        "          1 h 09 min if open calls worked.\n"
        "Open      1 call, perhaps waiting instead of working: Bash of tester 1 h 09 min.\n"
        "Findings  Lead idle while its team was blocked, if open calls waited (lead):\n"
        "          1 h 08 min; e5 at 1 h 09 min.\n"
        "More      corpus trace show LOG --event e5 shows one of these events.\n"
        "Tokens    unknown.\n"
        "Cost      unknown without prices: --cost, or a table with --prices FILE.\n"
        "Saving    Bash in tester, perhaps waiting: up to 1 h 08 min of 1 h 09 min.\n"
    )


def test_waste_is_the_lever_from_a_tenth_of_the_time_on() -> None:
    def searching(seconds: float) -> Trace:
        """Two searchers, the later of which repeats the first call of the other before one of its own."""
        call = {"type": "tool_call", "tool": "Search", "content_ref": "x"}
        return made(
            {"type": "inference", "agent": "lead", "t_end": 1},
            {"type": "spawn", "agent": "lead", "to": "one", "t": 1},
            {"type": "spawn", "agent": "lead", "to": "two", "t": 1},
            {**call, "agent": "one", "t": 1, "t_end": 1 + seconds},
            {**call, "agent": "two", "t": 2, "t_end": 2 + seconds},
            {"type": "tool_call", "agent": "two", "tool": "Fetch", "t": 2 + seconds, "t_end": 22 + seconds},
            {"type": "return", "agent": "two", "to": "lead", "t": 22 + seconds},
            {"type": "return", "agent": "one", "to": "lead", "t": 1 + seconds},
            {"type": "inference", "agent": "lead", "t": 22 + seconds, "t_end": 23 + seconds},
            edges=[
                {"src": f"e{a}", "dst": f"e{b}", "type": kind}
                for a, b, kind in ((0, 1, "causal"), (0, 2, "causal"), (1, 3, "spawn"), (2, 4, "spawn"), (4, 5, "causal"),
                                   (5, 6, "causal"), (3, 7, "causal"), (6, 8, "return"), (7, 8, "return"))
            ],
        )  # fmt: skip

    large, small = searching(6), searching(2)

    assert biggest_lever(diagnose(large)) == Lever("", Activity.FINDING, "", 6.0, 29.0, 6.0, FindingKind.REPEATED_CALL)
    assert shown(large).endswith("Saving    calls that siblings repeat: up to 6 s of 29 s.\n")
    assert biggest_lever(diagnose(small)) == Lever("two", Activity.TOOL, "Fetch", 20.0, 25.0, 20.0)


@given(documents())
def test_a_screen_says_that_nothing_is_wrong_only_where_it_shows_nothing_wrong(document: dict[str, Any]) -> None:
    text = shown(msgspec.convert({**document, "import_report": {}}, Trace))

    assert text.count("Findings  ") <= 1
    if "Findings  none" in text:
        assert not re.search(r"^(Errors|Open|Log|More)  ", text, re.M)


def test_the_screen_advises_the_command_under_the_name_that_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(ROOT / "tests" / "data" / "findings" / "unread_message")

    assert run(["doctor", path], "orchtrace") == 0
    assert "\nMore      orchtrace show LOG --event e10 shows one of these events.\n" in capsys.readouterr().out
    both = [path, str(SESSION)]
    assert run(["doctor", *both], "orchtrace") == 0
    assert "smaller: orchtrace diff A B --all.\n" in capsys.readouterr().out
    assert run(["diff", *both], "orchtrace") == 0
    assert "smaller: orchtrace diff A B --all.\n" in capsys.readouterr().out


def test_without_open_calls_every_time_is_one_value() -> None:
    text = " ".join(shown(approved(seconds=100)).split())

    assert "Work: 3 min 04 s (models 1 min 24 s, tools 1 min 40 s); speed-up 1.48." in text
    assert "With these steps and no waiting: at least 2 min 04 s. Findings none seen: nothing lost" in text
    assert "perhaps" not in text


def test_no_errors_are_claimed_only_where_a_call_has_a_status() -> None:
    call = {"type": "tool_call", "tool": "Bash", "t_end": 1}
    message = {"type": "message", "target": "b", "status": "ok"}

    assert "none: no errors, nothing lost" in shown(made({**call, "status": "ok"}, call, message))
    assert "Whether a" in shown(made(call, message))
    assert "no errors" not in shown(made(call, message))


def test_programs_are_given_both_readings_of_open_calls_and_how_each_agent_spent_its_time() -> None:
    data = figures(diagnose(approved()))

    assert {name: data[name] for name in ("elapsed", "waited", "worked", "span", "open_calls")} == {
        "elapsed": 4181, "waited": 0,
        "worked": {"if_working": 4241, "if_waiting": 84, "at_least": False},
        "span": {"if_working": 4181, "if_waiting": 74, "at_least": False},
        "open_calls": [
            {"event": "e3", "agent": "tester", "tool": "Bash", "cause": "long", "open": 4157, "in_waits": 0, "begin": 4,
             "usual": None},
        ],
    }  # fmt: skip
    times = ("elapsed", "worked", "waited", "idle", "open")
    assert {one["agent"]: tuple(one[name] for name in times) for one in data["agents"]} == {
        "lead": (4181, 14, 4167, 0, 0), "tester": (4167, 4167, 0, 0, 4157), "reader": (60, 60, 0, 0, 0)
    }  # fmt: skip


def check_times(trace: Trace) -> None:
    """What holds of the times of every run."""
    run = diagnose(trace)
    elapsed, path, close = run.summary.elapsed, run.path, pytest.approx
    for one, spent in run.view.agent_times.items():
        assert min(spent) >= -1e-6, one
        assert spent.worked + spent.waited + spent.idle == close(spent.elapsed, abs=1e-6)
        assert spent.open - 1e-6 <= spent.worked <= elapsed + 1e-6
    for work_path in (path.span, path.span_if_waiting):
        assert sum(stretch.seconds for stretch in work_path.stretches) == close(work_path.length, abs=1e-6)
    assert sum(stretch.seconds for stretch in path.stretches) + path.small_gaps == close(elapsed, abs=1e-6)
    assert path.span_if_waiting.length <= path.span.length + 1e-6
    assert run.view.open_calls or path.span_if_waiting == path.span
    working, waiting = run.parallelism, run.parallelism_if_waiting
    for one in filter(None, (working, waiting)):
        assert one.parallel_share + one.single_share + one.idle_share == close(1)
    if working and waiting:
        assert run.view.open_calls or working == waiting
        assert waiting.worked == close(working.worked - working.open, abs=1e-6)
        assert (waiting.idle_share, -waiting.parallel_share) >= (
            working.idle_share - 1e-9,
            -working.parallel_share - 1e-9,
        )
    printed = " ".join(plain(page(run, (100, 60))).replace("\n", " ").split())
    if elapsed and path.span.length:
        assert f"critical path, {printed_time(elapsed, run)}:" in printed
    lever = biggest_lever(run)
    assert lever is None or 0 < lever.seconds <= elapsed + 1e-6


def printed_time(seconds: float, run: Diagnosis) -> str:
    return plain([line(break_lines(duration(seconds, run.summary.unit), 80)[0])]).strip()


SAMPLES = os.environ.get("CORPUS_LOG_SAMPLES", str(LOGS))
"""A folder of folders of logs: real ones, which are not ours to keep here, where it is named; else those of the tests."""


def test_times_of_whole_folders_of_logs_add_up() -> None:
    read = 0
    for folder in sorted(entry.path for entry in os.scandir(SAMPLES) if entry.is_dir() and entry.name != "told"):
        for one in importers.import_sessions(importers.find([folder], "").sessions, Privacy(b"salt")):
            if one.trace is not None:
                check_times(one.trace)
                read += 1
    assert read


@given(documents())
def test_times_of_made_up_traces_add_up(document: dict[str, Any]) -> None:
    for call in (one for one in document["events"] if one["type"] == "tool_call"):
        call["tool"], call["t_end"] = "Edit", call["t"] + (call["t_end"] - call["t"]) * 20
    check_times(msgspec.convert(document, Trace))
