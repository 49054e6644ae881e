"""Imports against sessions that were counted by hand: the figures below are from the raw rows, and from no program.

Each comment says how a figure comes about. `docs/accuracy.md` shows the same figures.
"""

import re
from collections import Counter
from typing import NamedTuple

import pytest

from orchtrace_corpus.trace.view import TraceView
from tests.conftest import ROOT
from tests.trace.conversationlogs import tokens, trace_of
from tests.trace.traces import trace


class Counted(NamedTuple):
    """What a person counted in the raw rows of a session.

    Attributes:
        path: Its file or folder, below tests/data.
        program: What wrote it, or writes like this, in which version.
        input: Input tokens, without those from caches.
        output: Output tokens, with reasoning.
        cache_read: Tokens read from caches.
        cache_write: Tokens written to caches.
        agents: Agents that act, without people.
        spawns: Spawns of agents.
        returns: Results that came back to a spawner.
        errors: Calls that failed.
        elapsed: Seconds from first to last event, without what people were waited for.
    """

    path: str
    program: str
    input: int
    output: int
    cache_read: int
    cache_write: int
    agents: int
    spawns: int
    returns: int
    errors: int
    elapsed: float


SESSIONS = (
    Counted(
        "session", "Claude Code 2.1.0",
        1200 + 900 + 300 + 60 + (400 + 150 + 200) + (380 + 120 + 160),  # m1 to m4, x1 to x3, y1 to y3: their last rows
        240 + 410 + 280 + 90 + (60 + 45 + 520) + (50 + 40 + 310),
        0 + 6000 + 7100 + 7600 + (0 + 1500 + 2400) + (0 + 1400 + 1800),
        6000 + 1100 + 500 + 200 + (1500 + 900 + 300) + (1400 + 400 + 200),
        3, 2, 2, 1,  # main, e1, f2; the calls t1 and t2, and their results; b1 failed
        1092 - 780,  # 09:00:00 to 09:18:12, less 09:04:35 to 09:17:35, when nobody answered the question
    ),
    Counted(
        "logs/claude_code/parallel", "Claude Code 2.1.180",
        10 + 12 + 14 + 15 + 3 * 5 + 6 + 3,  # m1 to m4, a1 to a3, b1, c1
        120 + 30 + 40 + 25 + (8 + 30 + 645) + 94 + 7,  # the row of a3 says 28, the result of a111 645
        100 + 150 + 170 + 200 + (300 + 380 + 400) + 500 + 50,
        50 + 20 + 10 + 5 + (100 + 90 + 100) + 100 + 10,
        4, 3, 3, 1,  # main, a111, b222, c333 below a111; the user refused toolu_rm
        3742.1 - 60 - 3600.5 - 30,  # a question, an hour until the next prompt, a call that was refused
    ),
    Counted(
        "logs/codex/family", "Codex 0.150.0",
        (9700 - 8100) + (1200 - 600) + (2700 - 1700) - (1000 - 400),  # the last totals, less the history that C copied
        280 + 100 + 170 - 90,
        8100 + 600 + 1700 - 400,
        0,
        3, 2, 2, 1,  # two spawn_agent, both completed in the output of wait; call_1 ended with exit code 1
        109 - 60.5,  # 09:00:01 to 09:01:50, less 09:00:47 to 09:01:47.5, when the user had the last word
    ),
    Counted(
        "logs/openai_agents/parallel.json", "OpenAI Agents SDK 0.24.0",
        500 + (100 + 101 + 102 + 103 + 104) + (200 + 201 + 202 + 203 + 204) + 900 - 832,  # of 12 generations
        50 + 5 * 10 + 5 * 20 + 90,
        5 * 64 + 512,
        0,
        6, 5, 5, 1,  # lead and five workers; break_down failed
        0.121712,  # 51.064116, the first generation, to 51.185828, the end of lead
    ),
    Counted(
        "logs/otlp/parallel.genai.json", "OpenTelemetry GenAI, opentelemetry-sdk 1.45.2",
        500 + (100 + 101 + 102 + 103 + 104) + (200 + 201 + 202 + 203 + 204) + 900 - 832,  # the same run as above
        50 + 5 * 10 + 5 * 20 + 90,
        5 * 64 + 512,
        0,
        6, 5, 5, 1,
        0.121712,
    ),
    Counted(
        "logs/langsmith/send.jsonl", "LangGraph 1.2.22, langsmith 0.14.17",
        50 + (100 + 101 + 102 - 3 * 32) + 300,  # lead, three workers, merge
        5 + 3 * 10 + 30,
        3 * 32,
        0,
        5, 3, 0, 0,  # lead sends to three workers; these hand on to merge, and nothing goes back to lead
        0.08092,  # 53.039031, the call of lead, to 53.119951, the end of merge
    ),
    Counted(
        "logs/atif/team.json", "ATIF 1.7",
        (2000 - 1200 - 300) + (2300 - 2000) + (2500 - 2300) + (900 - 500) + (1000 - 900) + 800 + (870 - 700),
        150 + 45 + 70 + (40 + 60) + (30 + 25),
        1200 + 2000 + 2300 + (500 + 900) + 700,
        300,
        3, 2, 2, 1,  # planner, reader, tester; the shell of tester failed
        60,  # 09:00:00 to 09:01:00
    ),
)  # fmt: skip


@pytest.mark.parametrize("session", SESSIONS, ids=lambda one: one.path)
def test_an_import_has_what_a_person_counted(session: Counted) -> None:
    document = trace_of(ROOT / "tests" / "data" / session.path)
    found = Counter(event["type"] for event in document["events"])
    people = {agent["id"] for agent in document["agents"] if agent.get("kind") == "human"}
    spent = tokens(document)

    assert session == session._replace(
        **{kind: spent[kind] for kind in ("input", "output", "cache_read", "cache_write")},
        agents=len({event["agent"] for event in document["events"]} - people),
        spawns=found["spawn"],
        returns=found["return"],
        errors=sum(event.get("status") == "error" for event in document["events"]),
        elapsed=pytest.approx(TraceView(trace(document)).timing.elapsed, abs=1e-6),
    )


def test_the_page_of_accuracy_shows_the_figures_that_are_tested() -> None:
    page = (ROOT / "docs" / "accuracy.md").read_text("utf-8")
    shown = [
        tuple(cell.strip(" `") for cell in row.strip("|").split("|")) for row in re.findall(r"^\| `.*$", page, re.M)
    ]

    assert shown == [
        (
            one.path,
            one.program,
            *(f"{number:,}" for number in one[2:10]),
            f"{one.elapsed:,.6g} s",
        )
        for one in SESSIONS
    ]


def test_every_format_is_counted() -> None:
    from orchtrace_corpus.trace.importers import FORMATS

    assert {one.path.split("/")[1] for one in SESSIONS if "/" in one.path} == set(FORMATS)
