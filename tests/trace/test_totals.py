"""Totals over many sessions by day, project and model: equal to a count of the lines, in every form, to the cent."""

import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from orchtrace_corpus.trace.cli.collection import Collected, Folders, Request
from orchtrace_corpus.trace.diagnosis.totals import Grouping, Totals
from orchtrace_corpus.trace.diagnosis.values import Origin
from orchtrace_corpus.trace.importers.homes import folder_of
from orchtrace_corpus.trace.model.decode import Document, decode
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.view import TraceView
from tests.conftest import run_corpus
from tests.trace import manysessions
from tests.trace import test_import_opencode as opencode
from tests.trace.conversationlogs import Claude, text
from tests.trace.test_import import LOGS, on_terminal

KINDS = ("input", "output", "cache_read", "cache_write", "answers")


def totals_of(*words: str) -> dict[str, Any]:
    """The JSON of a command that shows totals."""
    result = run_corpus("trace", "doctor", *words, "--format", "json")
    assert result.code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("sessions", [40, pytest.param(500, marks=pytest.mark.slow)])
def test_totals_are_those_of_the_lines_to_the_token_and_the_cent(tmp_path: Path, sessions: int) -> None:
    folder, prices = tmp_path / "logs", tmp_path / "prices.yaml"
    manysessions.make(folder, sessions)
    prices.write_text(manysessions.PRICE_TABLE, encoding="utf-8")
    count = manysessions.Count(folder)

    words = [str(folder), "--timezone", manysessions.ZONE, "--prices", str(prices)]
    found = totals_of(*words, "--by", "day,project,model")
    whole = totals_of(*words)["totals"]

    assert (len(count.by["project"]), len(count.by["model"])) == (5, 3)
    assert {kind: found["all"][kind] for kind in KINDS} == {kind: count.all[kind] for kind in KINDS}
    assert round(found["all"]["cost_usd"], 2) == round(float(count.all_usd), 2)
    assert not found["all"]["tokens_at_least"]
    assert not found["all"]["cost_at_least"]
    for name, groups in count.by.items():
        rows = {row[name]: row for row in found[f"by_{name}"]}
        assert {key: {kind: row[kind] for kind in KINDS} for key, row in rows.items()} == {
            key: {kind: group[kind] for kind in KINDS} for key, group in groups.items()
        }
        assert {key: round(row["cost_usd"], 2) for key, row in rows.items()} == {
            key: round(float(usd), 2) for key, usd in count.usd[name].items()
        }
    assert {name: whole[name] for name in found if name.startswith("by_")} == {
        name: rows for name, rows in found.items() if name.startswith("by_")
    }


def conversation(name: str, *answers: tuple[float, str], project: str = "/home/ada/shop", **fields: Any) -> Claude:
    """A session that answers a prompt at each of these seconds, 5 s after it, with 110 tokens."""
    log = Claude(f"{name}0000000-0000-4000-8000-000000000000")
    for second, answer in answers:
        log.say(second - 5, "Go on.", cwd=project)
        log.answer(second, answer, text("Done."), usage=(100, 10, 0, 0), cwd=project, **fields)
    return log


NIGHT = 14 * 3600 + 59 * 60
"""Seconds from 09:00 UTC to a minute before midnight."""


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """Two sessions around midnight in UTC, of two projects of one name."""
    conversation("a", (NIGHT, "m1"), (NIGHT + 62, "m2"), (NIGHT + 3600, "m3")).write(tmp_path)
    conversation("b", (NIGHT - 3, "m4"), project="/srv/shop", model="claude-y").write(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("zone", "days"),
    [
        ("UTC", {"2026-03-01": 2, "2026-03-02": 2}),
        ("Europe/Berlin", {"2026-03-02": 4}),
        ("America/New_York", {"2026-03-01": 4}),
    ],
)
def test_an_answer_belongs_to_the_day_on_which_it_was_complete(night: Path, zone: str, days: dict[str, int]) -> None:
    found = totals_of(str(night), "--by", "day,month", "--timezone", zone)

    assert (found["schema"], found["version"], found["timezone"]) == ("orchtrace-corpus/trace-totals", 1, zone)
    assert {row["day"]: row["answers"] for row in found["by_day"]} == days
    assert {row["month"]: row["answers"] for row in found["by_month"]} == {"2026-03": 4}


@pytest.mark.posix
@pytest.mark.parametrize(("zone", "days"), [("UTC", 2), ("Asia/Tokyo", 1)])
def test_days_are_those_of_the_local_time_zone_unless_another_is_named(night: Path, zone: str, days: int) -> None:
    code = "import sys; from orchtrace_corpus.cli.main import run\n"
    code += f"sys.exit(run(['trace', 'doctor', {str(night)!r}, '--by', 'day', '--format', 'json']))"
    environment = {**os.environ, "TZ": zone}

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)

    found = json.loads(result.stdout)
    assert len(found["by_day"]) == days
    assert found["timezone"] == f"the local time zone ({'JST' if zone == 'Asia/Tokyo' else 'UTC'})"


def test_the_screen_of_many_sessions_has_totals_above_the_list_of_them(night: Path) -> None:
    result = run_corpus("trace", "doctor", str(night), "--timezone", "UTC")

    assert (
        result.stdout
        == """\
2 sessions by day
day         sessions  answers  input  output  cache read  cache write  tokens  worked
2026-03-01         2        2    200      20                              220    11 s
2026-03-02         1        2    200      20                              220     7 s
all                2        4    400      40                              440    18 s

2 sessions by project
project   sessions  answers  input  output  cache read  cache write  tokens  worked
ada/shop         1        3    300      30                              330    15 s
srv/shop         1        1    100      10                              110     5 s
all              2        4    400      40                              440    18 s

2 sessions by model
model     sessions  answers  input  output  cache read  cache write  tokens  worked
claude-x         1        3    300      30                              330    15 s
claude-y         1        1    100      10                              110     5 s
all              2        4    400      40                              440    18 s
Days are those of UTC; --timezone names another time zone.
Worked: while at least one agent did; by model, while it answered. Sessions side by side count once.

2 sessions
session                               project   began       agents  events  errors  time  tokens
a0000000-0000-4000-8000-000000000000  ada/shop  2026-03-01       1       7          15 s     330
b0000000-0000-4000-8000-000000000000  srv/shop  2026-03-01       1       3           5 s     110
all                                                              2      10                   440
Elapsed time, without waits for people; tokens and costs as far as they are known.
To see one: --session, with the beginning of its name.
"""
    )


def test_rows_beyond_the_limit_are_one_and_shown_by_an_option(tmp_path: Path) -> None:
    day = 86_400
    for number, name in enumerate("abcde"):
        project, model = f"/home/ada/p{number}", f"claude-{number}"
        answers = [(day * number + 100 * n, f"m{name}{n}") for n in range(number + 1)]
        conversation(name, *answers, project=project, model=model).write(tmp_path)
    words = ["trace", "doctor", str(tmp_path), "--timezone", "UTC"]

    few = run_corpus(*words, "--limit", "2").stdout.split("\n\n")
    by_model = run_corpus(*words, "--by", "model", "--limit", "2").stdout.splitlines()

    rows = [[line.split("  ")[0] for line in table.splitlines()[2:6]] for table in few]
    assert rows == [
        ["3 earlier days", "2026-03-04", "2026-03-05", "all"],
        ["p4", "p3", "3 more projects", "all"],
        ["claude-4", "claude-3", "3 more models", "all"],
        ["e0000000-0000-4000-8000-000000000000", "d0000000-0000-4000-8000-000000000000", "3 more sessions", "all"],
    ]
    assert few[0].splitlines()[2].split() == ["3", "earlier", "days", "3", "6", "600", "60", "660", "30", "s"]
    assert few[2].splitlines()[-1] == "All rows: --by day or --by project or --by model."
    assert [line.split()[0] for line in by_model[2:8]] == [*(f"claude-{n}" for n in (4, 3, 2, 1, 0)), "all"]


def test_copies_of_a_session_count_once_wherever_they_are(tmp_path: Path) -> None:
    answers = [(10.0, "m1"), (30.0, "m2")]
    conversation("a", *answers).write(tmp_path / "live")
    conversation("a", *answers).write(tmp_path / "backup")
    conversation("b", *answers, (50.0, "m3")).write(tmp_path / "live")

    found = totals_of(str(tmp_path), "--by", "day,session", "--timezone", "UTC")
    shown = run_corpus("trace", "doctor", str(tmp_path), "--timezone", "UTC").stdout

    assert (found["all"]["answers"], found["all"]["tokens"], found["all"]["worked_s"]) == (3, 330, 15)
    assert sum(row["tokens"] or 0 for row in found["by_session"]) == 330
    without = sum(not row["answers"] for row in found["by_session"])
    assert f"{without} more session" in shown
    assert "no answers of their own: copies of others, or nothing was asked." in shown


def made(*events: Mapping[str, Any], epoch: str | None = "2026-03-01T09:00:00Z", **fields: Any) -> TraceView:
    """A trace of these events."""
    numbered = [{"id": f"e{n}", "t": n, "type": "inference", "agent": "x", **event} for n, event in enumerate(events)]
    trace = {
        "trace_id": "t", "task_id": "k", "edges": [], "rewards": {}, "costs": {"tokens": None, "wall_clock_s": 1},
        "clock": {"unit": "s", "epoch": epoch}, "events": numbered, **fields,
    }  # fmt: skip
    decoded = decode(Document(json.dumps(trace).encode(), "t")).trace
    assert isinstance(decoded, Trace)
    return TraceView(decoded)


def added(*views: TraceView) -> Totals:
    collected = Collected(Request(zone=UTC))
    for view in views:
        collected.add(view, Origin())
    return collected.totals


SPENT = {"tokens": {"input": 10, "output": 1}, "t_end": 5}


def test_what_is_unknown_makes_totals_the_least_and_of_an_answer_only_its_own() -> None:
    report = {"token_ledger": {"unknown: answers without usage": {"records": 1, "tokens": {}}}}
    answer = {"t_end": 3, "model": "m"}
    by_answer = added(
        made({**SPENT, "model": "known"}, answer, import_report=report, reasons={"costs.tokens": "one has none"})
    )
    by_session = added(made({**SPENT, "model": "known"}, reasons={"costs.tokens": "a transcript is missing"}))

    def least(totals: Totals) -> dict[str, tuple[int | None, bool]]:
        return {one.name: (one.total, one.has_more_tokens) for one in totals.by(Grouping.MODEL).totals}

    assert least(by_answer) == {"known": (11, False), "m": (None, True)}
    assert least(by_session) == {"known": (11, True)}
    assert by_answer.all().has_more_tokens
    assert by_answer.all().cost_usd is None
    assert by_answer.all().costs_more


def test_answers_without_ids_may_be_copies_which_totals_alone_say_too() -> None:
    collected = Collected(Request(zone=UTC, groupings=(Grouping.DAY,)))
    for _ in range(2):
        collected.add(made(SPENT, system="claude-code"), Origin())

    (table,) = collected.tables(None)

    assert table.notes[-1] == "2 answers have no ids: other sessions may have them, too."


def test_what_has_no_price_makes_costs_the_least() -> None:
    priced = {**SPENT, "model": "m", "cost_usd": 0.1}
    stated = {"costs": {"tokens": 22, "wall_clock_s": 5}}
    whole, part = added(made(priced, priced, **stated)), added(made(priced, {**SPENT, "model": "n"}, **stated))

    assert (whole.all().cost_usd, whole.all().costs_more) == (0.2, False)
    assert (part.all().cost_usd, part.all().costs_more) == (0.1, True)
    assert {one.name: one.costs_more for one in part.by(Grouping.MODEL).totals} == {"m": False, "n": True}


def test_worked_time_of_sessions_side_by_side_counts_once_and_waits_of_people_not_at_all() -> None:
    session = made(
        {**SPENT, "t": 0, "t_end": 10},
        {"type": "human_intervention", "agent": "ada", "t": 10, "t_end": 100},
        {**SPENT, "t": 100, "t_end": 110},
    )
    beside = made({**SPENT, "t": 5, "t_end": 12})

    assert added(session).all().seconds == 20
    assert added(session, beside).all().seconds == 22
    assert [one.seconds for one in added(session, beside).by(Grouping.SESSION).totals] == [20, 7]


def test_a_call_that_works_past_midnight_is_divided_by_day() -> None:
    view = made(
        {**SPENT, "t": 0, "t_end": 10},
        {"type": "tool_call", "tool": "make", "t": 10, "t_end": 150},
        epoch="2026-03-01T23:59:00Z",
    )

    days = added(view).by(Grouping.DAY).totals

    assert [(one.name, one.answers, one.seconds) for one in days] == [("2026-03-01", 1, 60), ("2026-03-02", 0, 90)]


def test_a_run_without_a_date_or_with_one_of_no_calendar_has_a_row_of_its_own() -> None:
    undated = made(SPENT, epoch=None)
    beyond = made({**SPENT, "t": 9e11, "t_end": 9e11 + 5})
    endless = made({**SPENT, "t_end": 9e14})

    assert [(one.name, one.total) for one in added(undated, undated).by(Grouping.DAY).totals] == [("", 22)]
    assert added(undated, undated).all().seconds == 10
    assert [one.name for one in added(beyond).by(Grouping.DAY).totals] == [""]
    assert added(endless).all().total == 11


def test_the_clocks_of_a_zone_change_within_a_day() -> None:
    collected = Collected(Request(zone=ZoneInfo("Europe/Berlin")))
    collected.add(made({**SPENT, "t": 0, "t_end": 24 * 3600}, epoch="2026-03-28T23:00:00Z"), Origin())

    days = collected.totals.by(Grouping.DAY).totals

    assert [(one.name, one.seconds) for one in days] == [("2026-03-29", 23 * 3600), ("2026-03-30", 3600)]


def test_totals_as_csv_and_markdown_have_every_row(night: Path) -> None:
    words = ["trace", "doctor", str(night), "--timezone", "UTC"]

    one = run_corpus(*words, "--by", "model", "--format", "csv").stdout
    everything = run_corpus(*words, "--format", "csv").stdout.split("\n\n")
    markdown = run_corpus(*words, "--by", "model", "--format", "markdown").stdout

    assert one == (
        "model,sessions,answers,input,output,cache_read,cache_write,tokens,tokens_at_least,cost_usd,cost_at_least,"
        "worked_s,worked_at_least\n"
        "claude-x,1,3,300,30,0,0,330,False,,True,15.0,False\n"
        "claude-y,1,1,100,10,0,0,110,False,,True,5.0,False\n"
    )
    assert [next(csv.reader(io.StringIO(table)))[0] for table in everything] == ["day", "project", "model", "session"]
    assert markdown.startswith("## 2 sessions by model\n\n| model    | sessions |")


def test_a_narrow_terminal_does_without_columns_but_not_without_figures(night: Path) -> None:
    shown, code = on_terminal(str(night), "--timezone", "UTC", command="doctor", columns=50, NO_COLOR="1", TERM="dumb")

    lines = shown.splitlines()
    assert code == 0
    assert lines[1].split() == ["day", "sessions", "input", "output", "tokens", "worked"]
    assert all(len(line) <= 50 for line in lines)


def test_first_words_are_shown_where_contents_are_asked_for(tmp_path: Path) -> None:
    log = conversation("a", (10.0, "m1"))
    log.rows[0]["message"]["content"] = "<command-name>/clear</command-name>"
    log.say(20, "Mend the\n checkout, please.\x1b[31m")
    log.answer(25, "m2", text("Done."))
    log.write(tmp_path)
    one = run_corpus("trace", "doctor", str(tmp_path), "--content").stdout
    conversation("b", (10.0, "m3")).write(tmp_path)

    listed = run_corpus("trace", "doctor", str(tmp_path), "--content").stdout
    without = run_corpus("trace", "doctor", str(tmp_path)).stdout
    data = json.loads(run_corpus("trace", "doctor", str(tmp_path), "--content", "--format", "json").stdout)

    assert one.splitlines()[1].startswith("Began with: Mend the checkout, please.")
    assert "\x1b" not in one + listed
    assert [line.rpartition("  ")[2] for line in listed.splitlines() if line.startswith("b000")] == ["Go on."]
    assert "Mend" in listed
    assert "Mend" not in without
    assert [session["first_words"][:8] for session in data["sessions"]] == ["Mend the", "Go on."]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--by", "week"], "there are no totals by 'week' (allowed: day, month, project, model, session)\n"),
        (["--by", "dya"], "there are no totals by 'dya' (did you mean 'day'?"),
        (["--timezone", "Mars/Base"], "there is no time zone 'Mars/Base'\nNames are those as Europe/Berlin.\n"),
        (["--timezone", "../etc/passwd"], "there is no time zone '../etc/passwd'\n"),
        (["--by", "day", "--html", "x.html"], "--html and --by contradict each other\n"),
        (["--by", "day", "--content"], "--by and --content contradict each other\n"),
    ],
)
def test_totals_that_do_not_exist_are_refused(night: Path, words: list[str], said: str) -> None:
    result = run_corpus("trace", "doctor", str(night), *words)

    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"corpus: {said}")


@pytest.mark.parametrize(
    ("form", "log", "folder"),
    [
        ("claude_code", "claude_code", ""),
        ("kimi_code", "sessions/wd_shop_c6604f1ed37b/session_1/agents/main/wire.jsonl", "shop"),
        ("kimi_code", "logs/team/session_1/agents/main/wire.jsonl", ""),
        ("gemini_cli", "logs/team/chats/session-1.json", ""),
        ("gemini_cli", "tmp/shop/chats/session-1.json", "shop"),
        ("qwen_code", "projects/-srv-shop/chats/1.jsonl", "srv-shop"),
        ("qwen_code", "elsewhere/-srv-shop/chats/1.jsonl", ""),
        ("otlp", "projects/-srv-shop/chats/1.jsonl", ""),
    ],
)
def test_the_project_of_a_log_that_names_no_folder_is_that_of_its_place(
    tmp_path: Path, form: str, log: str, folder: str
) -> None:
    path = tmp_path / log
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")

    assert folder_of(form, str(path)) == folder


def test_a_branch_beside_a_project_is_of_that_project(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"cwd": "/home/ada/shop/.claude/worktrees/idea"}\n')

    assert folder_of("claude_code", str(path)) == "/home/ada/shop"


def test_a_database_names_the_folder_of_each_session(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    opencode.write_database(path, *opencode.EXPORTS)
    with closing(sqlite3.connect(path)) as database:
        database.execute("ALTER TABLE session ADD COLUMN directory text DEFAULT '/srv/demo'")
    (row,) = totals_of(str(tmp_path), "--by", "project")["by_project"]
    broken = tmp_path / "other.db"
    broken.write_bytes(b"SQLite format 3\0" + bytes(100))

    assert row["project"] == "demo"
    view = made(SPENT)
    assert Folders().find("opencode", [str(broken)], view.trace) == ""


def test_all_totals_below_the_home_folder_are_of_all_sessions_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "OPENCODE_DB", "COPILOT_HOME", "KIMI_CODE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for number in range(20):
        log = conversation("a", (10.0 + number, f"m{number}"))
        log.session = f"{number:08}-0000-4000-8000-000000000000"
        log.rows = [{**row, "sessionId": log.session} for row in log.rows]
        log.write(tmp_path / ".claude" / "projects" / "-home-ada-shop")

    listed = run_corpus("trace", "doctor", "--list", "--timezone", "UTC").stdout
    found = totals_of("--list", "--by", "day,project", "--timezone", "UTC")

    assert listed.startswith("15 sessions by day\n")
    assert "5 more are older: --limit lists more, --by day adds all up.\n" in listed
    assert (found["all"]["sessions"], found["all"]["tokens"]) == (20, 20 * 110)
    assert [row["project"] for row in found["by_project"]] == ["shop"]


def test_logs_of_every_program_have_totals() -> None:
    found = totals_of(str(LOGS), "--by", "day,month,project,model,session", "--timezone", "UTC")

    for name in ("day", "month", "project", "model"):
        rows = found[f"by_{name}"]
        assert sum(row["tokens"] or 0 for row in rows) == found["all"]["tokens"]
        assert sum(row["answers"] for row in rows) == found["all"]["answers"]
    assert sum(row["tokens"] or 0 for row in found["by_session"]) == found["all"]["tokens"]
