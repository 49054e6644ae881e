"""Imports against sessions that were counted by hand: the figures below are from the raw rows, and from no program.

Each comment says how a figure comes about. `docs/accuracy.md` shows the same figures.
"""

import re
from collections import Counter
from typing import NamedTuple

import pytest

from orchtrace_corpus.trace.diagnosis import diagnose
from orchtrace_corpus.trace.model.import_report import has_all_tokens
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.timing import longest_path
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
        waited: Seconds that people were waited for.
        worked: Seconds of work of all agents: the least, if open calls only waited, and the most.
        span: The same of the longest chain of work.
        is_least: Whether more tokens were spent than the rows say.
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
    waited: float
    worked: tuple[float, float]
    span: tuple[float, float]
    is_least: bool = False

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.input + self.output + self.cache_read + self.cache_write


def sure(*seconds: float) -> tuple[float, float]:
    """A time in which no open call has a part: one value."""
    return sum(seconds), sum(seconds)


LEAD, WORKER = 0.010575 + 0.010562, 0.020801 + 0.020979 + 0.041709  # of parallel: its lead, and the slowest of its five
TEAM = LEAD + WORKER + 0.010912 + 0.072081 + 0.083475 + 0.074196 + 0.08333

SESSIONS = (
    Counted(
        "session", "Claude Code 2.1.0",
        1200 + 900 + 300 + 60 + (400 + 150 + 200) + (380 + 120 + 160),  # m1 to m4, x1 to x3, y1 to y3: their last rows
        240 + 410 + 280 + 90 + (60 + 45 + 520) + (50 + 40 + 310),
        0 + 6000 + 7100 + 7600 + (0 + 1500 + 2400) + (0 + 1400 + 1800),
        6000 + 1100 + 500 + 200 + (1500 + 900 + 300) + (1400 + 400 + 200),
        3, 2, 2, 1,  # main, e1, f2; the calls t1 and t2, and their results; b1 failed
        1092 - 780,  # 09:00:00 to 09:18:12, less 09:04:35 to 09:17:35, when nobody answered the question
        780,
        sure(18.4 + 28 + 24 + 1 + 12, 11.5 + 2 + 23 + 1 + 42, 7.4 + 145 + 9 + 48 + 18),  # main, e1, f2
        sure(18.4, 7.4 + 145 + 9 + 48 + 18, 28 + 24 + 1 + 12),  # main, f2, main
    ),
    Counted(
        "logs/claude_code/parallel", "Claude Code 2.1.180",
        10 + 12 + 14 + 15 + 3 * 5 + 6 + 3,  # m1 to m4, a1 to a3, b1, c1
        120 + 30 + 40 + 25 + (8 + 30 + 645) + 94 + 7,  # the row of a3 says 28, the result of a111 645
        100 + 150 + 170 + 200 + (300 + 380 + 400) + 500 + 50,
        50 + 20 + 10 + 5 + (100 + 90 + 100) + 100 + 10,
        4, 3, 3, 1,  # main, a111, b222, c333 below a111; the user refused toolu_rm
        3742.1 - 60 - 3600.5 - 30,  # a question, an hour until the next prompt, a call that was refused
        60 + 3600.5 + 30,
        sure(6 + 5 + 3 + 3.5, 3.5 + 2 + 8 + 2, 32, 5),  # main, a111, b222, c333
        sure(6, 32, 5 + 3 + 3.5),  # main, b222, main
        is_least=True,  # b222 and c333 say what they wrote before they had written it
    ),
    Counted(
        "logs/claude_code/waits.jsonl", "Claude Code 2.1.180",
        10 + 4 * 5,
        20 + 10 + 6 + 9 + 7,
        100 + 105 + 110 + 120,
        100,
        1, 0, 0, 1,  # the wait for a task was broken off
        4190 - 120 - 60,  # without the 79 minutes until /exit, and with the hour between two prompts, when nothing ran
        (460 - 340) + (4186 - 4126),  # until the first of two prompts, and behind the interruption; not the shell command
        (4 + 4 + 3 + 3 + 6 + 60 + 4, 4 + 326 + 4 + 3 + 3 + 6 + 60 + 4),  # an Edit of 326 s perhaps waited
        (4 + 4 + 3 + 3 + 6 + 60 + 4, 4 + 326 + 4 + 3 + 3 + 6 + 60 + 4),
    ),
    Counted(
        "logs/claude_code/settled.jsonl", "Claude Code 2.1.228",
        3 + 3 + 2 + 2 + 2 + 2 + 4,
        60 + 30 + 210 + 90 + 80 + 50 + 45,
        30_000 + 30_500 + 31_000 + 31_400 + 31_600 + 31_900 + 32_100,
        500 + 300 + 400 + 200 + 300 + 200 + 100,
        1, 0, 0, 2,  # make test ran out of time, and the program was not logged in
        1706 - 865,
        580 + 92 + 94 + 99,  # the push, of which 28.4 s of 608.4 s are stated; before three prompts
        sure(4 + 4 + 4 + 4 + 5.8 + 5.95 + 1 + 6, 20, 1500 - 704, 121.2),  # the model; git push, make image, make test
        sure(4 + 20 + 4, 4 + (1500 - 704), 5.95 + 1 + 6),  # to the push, the image, and from its notification on
    ),
    Counted(
        "logs/claude_code/relayed.jsonl", "Claude Code 2.1.34",
        5 + 2 + (3 + 3 + 0),  # main, and the developer: two answers in rows of progress, the last in its result
        2 + 2 + (3 + 2 + 1),
        14_000 + 17_000 + (9_000 + 13_000 + 13_700),
        3_000 + 500 + (4_000 + 700 + 400),
        2, 1, 1, 0,
        1224 - 1190,
        1224.5 - 34.5,  # in make test, from 09:00:13.4 on
        sure(5 + 4.6, 3.9 + 0.4 + 4 + 10 + 6),  # main, the developer
        sure(5, 3.9 + 0.4 + 4 + 10 + 6, 4.6),
        is_least=True,
    ),
    Counted(
        "logs/codex/family", "Codex 0.150.0",
        (9700 - 8100) + (1200 - 600) + (2700 - 1700) - (1000 - 400),  # the last totals, less the history that C copied
        280 + 100 + 170 - 90,
        8100 + 600 + 1700 - 400,
        0,
        3, 2, 2, 1,  # two spawn_agent, both completed in the output of wait; call_1 ended with exit code 1
        109 - 60.5,  # 09:00:01 to 09:01:50, less 09:00:47 to 09:01:47.5, when the user had the last word
        60.5,
        sure(3 + 2.1 + 1.4 + 0.7 + 2.9 + 2.5 + 2.5, 3.4 + 2 + 17.5, 2.2 + 26 + 5),  # main, Ada, Bob
        sure(3 + 2.1, 2.2 + 26 + 5, 2.9 + 2.5 + 2.5),  # main, Bob, main
    ),
    Counted(
        "logs/codex/approvals", "Codex 0.150.0",
        100 + (150 - 50) + (200 - 100),
        10 + 12 + 20,
        50 + 100,
        0,
        1, 0, 0, 0,
        87 - 57.9 - 9,
        57.9 + 9,  # the first call asked for 60 s, and ran 2.1 s of them; a row follows the second approval
        sure(4, 2.1, 4, 3.9, 4),  # both calls say how long they ran
        sure(4, 2.1, 4, 3.9, 4),
    ),
    Counted(
        "logs/codex/scripts", "Codex 0.150.0",
        200 + 7 * 100,
        50 + 20 + 20 + 60 + 70 + 15 + 90 + 40,
        800 + 1000 + 1100 + 1200 + 1300 + 1400 + 1500 + 1600,
        0,
        2, 1, 1, 2,  # a script whose command ended with exit code 2, and a spawn that was refused
        129.8 - 48,
        48,  # the command that asked took 60 s, and ran 12 s of them
        sure(4 + 2 + 2 + 2 + 2 + 3 + 5 + 4, 10 + 10 + 5.5 + 0.1 + 12, 23.2),  # models, tools, read_tests
        sure(4 + 10 + 2 + 10 + 2 + 5.5 + 2 + 0.1 + 2, 23.2, 5 + 12 + 4),  # main, read_tests, main
        is_least=True,  # there is no rollout of read_tests
    ),
    Counted(
        "logs/codex/slept.jsonl", "Codex 0.150.0",
        200 + 100 + 500,
        50 + 40 + 4000,
        800 + 1000 + 2500,
        0,
        1, 0, 0, 0,
        149 - 49.5,
        49.5,  # from the first answer to the second prompt
        sure(4 + 0.5 + 5 + 60),  # of the last 90 s the machine slept for 30, as the turn says
        sure(4 + 0.5 + 5 + 60),
        is_least=True,  # the new counter stands at 2,100 tokens beside the answer, of answers that are not there
    ),
    Counted(
        "logs/openai_agents/parallel.json", "OpenAI Agents SDK 0.24.0",
        500 + (100 + 101 + 102 + 103 + 104) + (200 + 201 + 202 + 203 + 204) + 900 - 832,  # of 12 generations
        50 + 5 * 10 + 5 * 20 + 90,
        5 * 64 + 512,
        0,
        6, 5, 5, 1,  # lead and five workers; break_down failed
        0.121712,  # 51.064116, the first generation, to 51.185828, the end of lead
        0,
        sure(TEAM),  # 12 generations and five calls
        sure(LEAD, WORKER),
    ),
    Counted(
        "logs/otlp/parallel.genai.json", "OpenTelemetry GenAI, opentelemetry-sdk 1.45.2",
        500 + (100 + 101 + 102 + 103 + 104) + (200 + 201 + 202 + 203 + 204) + 900 - 832,  # the same run as above
        50 + 5 * 10 + 5 * 20 + 90,
        5 * 64 + 512,
        0,
        6, 5, 5, 1,
        0.121712,
        0,
        sure(TEAM),
        sure(LEAD, WORKER),
    ),
    Counted(
        "logs/langsmith/send.jsonl", "LangGraph 1.2.22, langsmith 0.14.17",
        50 + (100 + 101 + 102 - 3 * 32) + 300,  # lead, three workers, merge
        5 + 3 * 10 + 30,
        3 * 32,
        0,
        5, 3, 0, 0,  # lead sends to three workers; these hand on to merge, and nothing goes back to lead
        0.08092,  # 53.039031, the call of lead, to 53.119951, the end of merge
        0,
        sure(0.015983, 0.017747 + 0.011107, 0.020676 + 0.013252, 0.031427 + 0.010753, 0.010747),  # lead, workers, merge
        sure(0.015983, 0.031427 + 0.010753, 0.010747),  # lead, the slowest worker, merge
    ),
    Counted(
        "logs/atif/team.json", "ATIF 1.7",
        (2000 - 1200 - 300) + (2300 - 2000) + (2500 - 2300) + (900 - 500) + (1000 - 900) + 800 + (870 - 700),
        150 + 45 + 70 + (40 + 60) + (30 + 25),
        1200 + 2000 + 2300 + (500 + 900) + 700,
        300,
        3, 2, 2, 1,  # planner, reader, tester; the shell of tester failed
        60,  # 09:00:00 to 09:01:00
        0,
        # planner to 20, from 31 (reader's return is there; the request goes out at 33) to 40, from 52 to 60; reader
        # from 21 to 25 and to 31; tester from 21 to 24, its shell from 24.5 to 44.5, and to 50
        sure(20 + 9 + 8, 4 + 6, 3 + 20 + 5.5),
        sure(20, 3 + 20 + 5.5, 8),  # planner, tester, planner
    ),
    Counted(
        "logs/opencode/team", "OpenCode 1.18.33",
        1000 + 200 + 120 + (400 + 50) + (420 + 60),  # main, explore, general; each kind apart
        (80 + 20) + (40 + 10) + 60 + (30 + 40) + (35 + 25 + 5),
        1500 + 1800 + (200 + 700) + 800,
        500 + 100 + 300,
        3, 2, 2, 1,  # main, explore, general; two tasks; bash ended with 1
        50 - 20,  # 09:00:00 to 09:00:50, less the question
        20,
        sure(6 + 2.5 + 4, 2.8 + 0.5 + 3.5, 2.8 + 10 + 4),  # main; explore from 5.2, general from 6.2
        sure(6, 2.8 + 10 + 4, 2.5 + 4),  # main, general, main
    ),
    Counted(
        "logs/inspect_ai/team.json", "Inspect AI 0.3.285",
        500 + 100 + (200 + 50) + (300 + 40),  # lead, reader, checker; caches are apart
        60 + 40 + (20 + 30) + (25 + 15),
        100 + 650 + 200 + 300,
        50,
        3, 2, 2, 1,  # lead, reader, checker; bash ran out of time
        47 - 1,  # the first answer begins at 09:00:01, lead ends at 09:00:47
        0,
        sure(5 + 4 + 0.5, 6 + 1.2 + 4.5, 3.5 + 20 + 6),  # lead, reader, whose open worked for 1.2 s of 1.5 s, checker
        sure(5, 3.5 + 20 + 6, 4 + 0.5),  # lead, checker, lead
    ),
    Counted(
        "logs/autogen/team.events.jsonl", "AutoGen 0.7.5",
        (100 + 200) + (50 + 80) + (300 - 100),  # lead, adder, checker; its LLMCall says what came from the cache
        (10 + 20) + (5 + 8) + 30,
        100,
        0,
        3, 1, 1, 1,  # lead, adder that is its tool, checker; add failed
        26,
        0,
        sure(5 + 5, 3.5 + 2 + 3, 6),  # lead, adder from the task on, checker
        sure(5, 3.5 + 2 + 3, 5, 6),  # lead, adder, lead, checker
    ),
    Counted(
        "logs/google_adk/session.json", "Google ADK 2.13",
        (100 + 150 - 50) + (120 - 20) + 300 + (320 - 200 + 340 - 300 + 360 - 300),  # reader, checker, judge, clerk
        (10 + 15) + (12 + 3) + (8 + 5) + (6 + 9 + 7),  # thoughts are apart
        50 + 20 + 200 + 300 + 300,
        0,
        4, 0, 0, 1,  # nobody is spawned; open failed
        46 - 24,  # 09:00:00 to 09:00:46, less the confirmation
        24,
        sure(6 + 4, 10, 3, 4),  # each answer from its date until the next event that can have read it
        sure(6 + 4, 3, 4),  # reader, or checker; judge, clerk
    ),
    Counted(
        "logs/who_and_when/hand.json", "Who&When",
        0, 0, 0, 0,  # no record says
        2, 0, 0, 1,  # Orchestrator, WebSurfer; the step that the label names
        6,  # steps: seven, the first at 0
        0,
        sure(1 + 1, 1, 1, 1, 1),  # Orchestrator, WebSurfer, Orchestrator, its terminal, Orchestrator
        sure(1 + 1, 1, 1, 1, 1),
        is_least=True,
    ),
    Counted(
        "logs/qwen_code/background", "Qwen Code 0.24.4",
        1000 + (1300 - 900) + (1500 - 1300) + (1800 - 1500) + 600 + (700 - 500) + (600 - 100) + (800 - 600),
        100 + 50 + 15 + 60 + (30 + 20) + (40 + 25 + 10),  # of the first answer of c2 the total has 25 thoughts besides
        900 + 1300 + 1500 + 500 + (100 + 600),
        0,
        3, 2, 2, 3,  # main, c1, c2; both are told of at 09:00:40; a shell and a file failed, and c2 itself
        46,
        0,
        sure(8 + 6 + 3 + 3.5 + 6, 7 + 1 + 8, 11 + 1 + 9),  # main; c1 and c2 from 9, when they had their prompts
        sure(8, 11 + 1 + 9, 6),  # main, c2, main
    ),
    Counted(
        "logs/gemini_cli/team", "Gemini CLI 0.61",
        (1000 - 200) + (1500 + 60 - 1000) + (1700 - 1500) + (1800 - 1600) + (1750 - 1500)  # m1 to m5, m4 was rewound
        + 500 + (660 - 60 - 400) + 500 + (550 - 300),  # a1, a2, b1, b2
        (50 + 20) + 40 + (30 + 10) + 25 + (35 + 5) + 20 + 60 + (25 + 5) + 30,
        200 + 1000 + 1500 + 1600 + 1500 + 400 + 300,
        0,
        3, 2, 2, 3,  # main, A, B; a file failed, B had too many turns, and one answer did not come
        130 - 70,
        60 + 10,  # 09:00:44 to 09:01:44, 09:01:50 to 09:02:00
        sure(6 + 6 + 3 + 5 + 6 + 3 + 7, 5.5 + 1 + 16 + 0.5, 9.5 + 2 + 7.5),  # main, A, B
        sure(6, 5.5 + 1 + 16 + 0.5, 6 + 3 + 5 + 6 + 3 + 7),  # main, A, main
    ),
    Counted(
        "logs/copilot_cli/team", "Copilot CLI 1.0.102",
        (1000 - 200 - 50) + (1300 - 1000) + (1400 - 1300) + (1500 - 1400) + 500 + (560 - 400) + 500 + (600 - 450),
        100 + 50 + 20 + 35 + (30 + 40) + (20 + 25),  # main, reader-1, reader-2
        200 + 1000 + 1300 + 1400 + 400 + 450,
        50,
        3, 2, 2, 2,  # a command of reader-2 ended with exit code 1, and a person refused an edit
        66.2 - 13.2,
        0.5 + 10.3 + 2.4,  # of the 30 s for reader-2's command: until main went on, while it asked, too, and at the end
        sure(8 + 6 + 6 + 6.1, 6 + 1 + 7.8, 10 + 3 + 7.8),  # main, reader-1, reader-2
        sure(8, 6 + 1 + 7.8, 6 + 6 + 6.1),  # main, reader-1, main
    ),
    Counted(
        "logs/copilot_cli/outputs.jsonl", "Copilot CLI 1.0.72",
        0, 40 + 55 + 30 + 60, 0, 0,  # api-2 has two messages, of which one states the output; api-4 states none
        2, 1, 1, 1,  # a command of main ended with exit code 1
        23.2, 0,
        sure(3 + 3.9 + 4, 2 + 1, 3.8 + 6),  # main, its commands, Explore
        sure(3 + 2 + 3.9, 3.8 + 6, 4),  # main, Explore, main
        is_least=True,
    ),
    Counted(
        "logs/kimi_code/team", "Kimi Code 2.1.0",
        800 + 300 + 150 + 200 + 100 + 500 + (400 + 100) + (410 + 120),  # main and its summary, agent-0, agent-1
        100 + 25 + 15 + 30 + 12 + 60 + (20 + 30) + (22 + 18),
        200 + 900 + 1150 + 1200 + 1400 + 400 + 410,
        50,
        3, 2, 2, 2,  # a person refused Bash, and a file of agent-1 failed
        140 - 87,
        8 + 67 + 12,  # until Bash was refused, 09:00:49 to 09:01:56, and after the turn was broken off
        sure(8 + 6 + 5 + 5.5 + 6 + 3, 5.5 + 0.8 + 8, 11.5 + 0.005 + 8.5),  # main, agent-0, agent-1; Read says how long
        sure(8, 5.5 + 0.8 + 8, 6 + 5 + 5.5 + 6 + 3),  # main, agent-0, main
    ),
    Counted(
        "logs/pi/team", "Pi 0.73.1",
        10 + 20 + 30 + 40 + 12 + (5 + 6) + (7 + 8) + (9 + 4) + 3,  # main, scout, planner, worker, reviewer; all kinds apart
        200 + 100 + 150 + 120 + 80 + (30 + 40) + (50 + 60) + (70 + 35) + 25,
        1500 + 1800 + 2000 + 1500 + (100 + 120) + 90 + 80,
        1500 + 300 + 200 + 250 + 100 + 10 + (90 + 20) + (80 + 15) + 60,
        5, 4, 4, 4,  # a file and a command failed, an answer of reviewer, and so reviewer itself
        131 - 28,
        25 + 3,  # 09:01:35 to 09:02:00, and after the answer was broken off, 09:02:03 to 09:02:06
        sure(6 + 1 + 1.5 + 4.5 + 6 + 5 + 3 + 5 - 6 * 0.01, 4, 8, 10 + 13.7, 19.9),  # main, asked 10 ms later; the others
        sure(6 + 1.5 + 4.5 - 0.02, 8, 5.99, 10 + 13.7, 5 + 3 + 5 - 0.03),  # main, planner, main, worker, main
        is_least=True,
    ),
    Counted(
        "logs/entire/checkpoint", "Entire 0.8.42",
        8000 + 9000 + 9900 + 10100, 300 + 120 + 80 + 60, 0, 0,  # of each answer once; what it does not say of caches
        2, 1, 1, 1,  # main, Explore; make failed
        68,
        0,  # the last call before the second prompt has no result: the turn was not over
        sure(5.5 + 13.5 + 25 + 8),  # tools and Explore are at once, since results have no times
        sure(5.5 + 13.5 + 25 + 8),
        is_least=True,
    ),
    Counted(
        "logs/autogen/wrapped.jsonl", "AutoGen 0.7.5, records of a logging handler",
        100 + (150 - 90) + (220 - 100) + (260 - 150) + 40,  # planner, coder, planner, coder, memory, of which no message tells
        20 + 30 + 25 + 15 + 5,
        90 + 100 + 150,
        0,
        3, 0, 0, 1,  # test failed
        26,
        0,
        sure(4 + 7.9, 5 + 3 + 3 + 6),  # planner; coder, whose two calls ran side by side
        sure(4, 5 + 3, 7.9, 6),  # planner, coder, planner, coder
    ),
    Counted(
        "logs/atof/team.jsonl", "ATOF 0.1, NeMo Relay 0.10.4",
        (1000 - 400) + 50 + (2000 - 1500) + 200 + (300 - 100),  # lead, scout, planner
        100 + 60 + 150 + 20 + 30,
        400 + 70 + 1500 + 100,
        80,
        3, 2, 2, 1,  # lookup failed
        39.5,  # the first answer begins at 09:00:00.5
        0,
        sure(3.5 + 2 + 5 + 2.5 + 8, 9.5, 15.5),  # lead, whose guardrail is no work, scout, planner
        sure(3.5, 15.5, 5 + 2.5 + 8),  # lead, planner, lead
    ),
)  # fmt: skip


@pytest.mark.parametrize("session", SESSIONS, ids=lambda one: one.path)
def test_an_import_has_what_a_person_counted(session: Counted) -> None:
    document = trace_of(ROOT / "tests" / "data" / session.path)
    found = Counter(event["type"] for event in document["events"])
    people = {agent["id"] for agent in document["agents"] if agent.get("kind") == "human"}
    spent = tokens(document)
    view = TraceView(trace(document))
    times, readings = view.timing, (view.timing_if_waiting, view.timing)
    spans = [longest_path(one, one.works, overlapping=True).length for one in readings]

    assert session == session._replace(
        **{kind: spent[kind] for kind in ("input", "output", "cache_read", "cache_write")},
        agents=len({event["agent"] for event in document["events"]} - people),
        spawns=found["spawn"],
        returns=found["return"],
        errors=sum(event.get("status") == "error" for event in document["events"]),
        elapsed=pytest.approx(times.elapsed, abs=1e-6),
        waited=pytest.approx(times.waited, abs=1e-6),
        worked=pytest.approx(tuple(sum(one.works) for one in readings), abs=1e-6),
        span=pytest.approx(tuple(spans), abs=1e-6),
        is_least=not has_all_tokens(view.trace),
    )
    assert diagnose(view).tokens.known == (session.tokens or None)
    assert bool(view.open_calls) == (session.worked[0] < session.worked[1])


def test_the_page_of_accuracy_shows_the_figures_that_are_tested() -> None:
    page = (ROOT / "docs" / "accuracy.md").read_text("utf-8")
    shown = [
        tuple(cell.strip(" `") for cell in row.strip("|").split("|")) for row in re.findall(r"^\| `.*$", page, re.M)
    ]

    assert shown == [
        (
            one.path,
            one.program,
            *(f"{number:,}" for number in one[2:6]),
            shown_tokens(one),
            *(f"{number:,}" for number in one[6:10]),
            *(f"{seconds:,.6g} s" for seconds in (one.elapsed, one.waited)),
            *map(shown_range, (one.worked, one.span)),
        )
        for one in SESSIONS
    ]


def shown_tokens(session: Counted) -> str:
    """All tokens as the page shows them."""
    least = "at least " if session.is_least else ""
    return f"{least}{session.tokens:,}" if session.tokens else "unknown"


def shown_range(seconds: tuple[float, float]) -> str:
    """A time as the page shows it."""
    least, most = seconds
    return f"{most:,.6g} s" if least == most else f"{least:,.6g} to {most:,.6g} s"


def test_every_format_is_counted() -> None:
    from orchtrace_corpus.trace.importers import FORMATS

    assert {one.path.split("/")[1] for one in SESSIONS if "/" in one.path} == set(FORMATS)
