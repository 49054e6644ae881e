"""OpenCode: the same session from a database, its write-ahead log, a tree of files and exports; what is counted once."""

import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.api import import_logs
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from tests.conftest import run_corpus
from tests.effort import assert_grows, tries
from tests.trace.conversationlogs import (
    LOGS,
    START,
    by_agent,
    ledger,
    of_type,
    problems,
    tokens,
    told,
    trace_of,
    traces,
)
from tests.trace.test_import_fuzz import mutated_value
from tests.trace.test_input_budget import run_limited

TEAM = LOGS / "opencode" / "team"
EXPORTS = [json.loads(path.read_bytes()) for path in sorted(TEAM.glob("*.json"))]
TABLES = """
CREATE TABLE `session` (`id` text PRIMARY KEY, `parent_id` text, `agent` text, `version` text, `time_created` integer);
CREATE TABLE `message` (`id` text PRIMARY KEY, `session_id` text NOT NULL, `time_created` integer, `data` text NOT NULL);
CREATE TABLE `part` (`id` text PRIMARY KEY, `message_id` text NOT NULL, `session_id` text NOT NULL, `data` text NOT NULL);
"""

Export = dict[str, Any]


def ms(second: float) -> int:
    return int((START + second) * 1000)


def used(put: Any, got: Any, reasoning: Any = 0, read: Any = 0, written: Any = 0, **more: Any) -> dict[str, Any]:
    """The tokens of an answer."""
    return {"input": put, "output": got, "reasoning": reasoning, "cache": {"read": read, "write": written}, **more}


def call(name: str, tool: str, begin: float, end: float | None = None, **state: Any) -> dict[str, Any]:
    """A part that calls a tool."""
    times = {"start": ms(begin)} if end is None else {"start": ms(begin), "end": ms(end)}
    found = {"status": "completed" if end is not None else "running", "input": {}, "time": times, **state}
    return {"type": "tool", "tool": tool, "callID": name, "state": found}


def finish(tokens: dict[str, Any]) -> dict[str, Any]:
    return {"type": "step-finish", "reason": "stop", "tokens": tokens}


def export(
    *messages: tuple[str, float, list[dict[str, Any]], dict[str, Any]], name: str = "ses_1", **info: Any
) -> Export:
    """A session of messages: the role, the second, the parts, and further members."""
    found = []
    for number, (role, second, parts, more) in enumerate(messages):
        of = {
            "id": f"msg_{name}_{number}",
            "sessionID": name,
            "role": role,
            "time": {"created": ms(second), "completed": ms(second + 5)},
            **more,
        }
        named = [
            {"id": f"prt_{name}_{number}_{place}", "sessionID": name, "messageID": of["id"], **part}
            for place, part in enumerate(parts)
        ]
        found.append({"info": of, "parts": named})
    about = {"id": name, "projectID": "p", "directory": "/w", "version": "1.18.33", "time": {"created": ms(0)}, **info}
    return {"info": about, "messages": found}  # fmt: skip


ASKED = ("user", 0, [{"type": "text", "text": "Go."}], {})


def write(folder: Path, *exports: Export, indent: int | None = 1) -> Path:
    folder.mkdir(exist_ok=True)
    for one in exports:
        (folder / f"{one['info']['id']}.json").write_text(json.dumps(one, indent=indent), "utf-8")
    return folder


def write_tree(folder: Path, *exports: Export) -> Path:
    """Each record in a file, as before version 1.2."""
    for one in exports:
        records = [("session/global", one["info"])]
        for message in one["messages"]:
            records.append((f"message/{one['info']['id']}", message["info"]))
            records += [(f"part/{message['info']['id']}", part) for part in message["parts"]]
        for where, record in records:
            (folder / "storage" / where).mkdir(parents=True, exist_ok=True)
            (folder / "storage" / where / f"{record['id']}.json").write_text(json.dumps(record, indent=2), "utf-8")
    return folder


def write_database(path: Path, *exports: Export) -> Path:
    database = sqlite3.connect(path)
    database.executescript(f"PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; {TABLES}")
    insert(database, *exports)
    database.close()
    return path


def insert(database: sqlite3.Connection, *exports: Export) -> None:
    def without(record: dict[str, Any]) -> str:
        return json.dumps(
            {name: value for name, value in record.items() if name not in ("id", "sessionID", "messageID")}
        )

    for one in exports:
        info, name = one["info"], one["info"]["id"]
        columns = (name, info.get("parentID"), info.get("agent"), info["version"], info["time"]["created"])
        database.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?)", columns)
        for message in one["messages"]:
            of = message["info"]
            values = (of["id"], name, 0, without(of))
            database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", values)
            for part in message["parts"]:
                database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (part["id"], of["id"], name, without(part)))
    database.commit()


def said(trace: dict[str, Any]) -> dict[str, Any]:
    """A trace without where its events were found."""
    for event in trace["events"]:
        del event["source"]
    return {name: value for name, value in trace.items() if name != "import_report"}


# The same session, however it is kept


def test_the_fixture_gives_what_its_text_says() -> None:
    assert told(trace_of(TEAM)) == (LOGS / "told" / "opencode" / "team.txt").read_text("utf-8")


@pytest.mark.parametrize(
    "kept", [lambda folder: write_tree(folder, *EXPORTS), lambda folder: write_database(folder / "opencode.db", *EXPORTS),
             lambda folder: write(folder, *EXPORTS, indent=None)],
    ids=["tree", "database", "lines"],
)  # fmt: skip
def test_a_tree_a_database_and_exports_on_one_line_give_the_trace_of_the_exports(
    tmp_path: Path, kept: Callable[[Path], Path]
) -> None:
    assert said(trace_of(kept(tmp_path))) == said(trace_of(TEAM))


@pytest.mark.parametrize(
    "kept", [write_tree, write, lambda folder, *them: write_database(folder / "opencode.db", *them)],
    ids=["tree", "exports", "database"],
)  # fmt: skip
def test_agents_of_one_name_are_numbered_in_the_order_in_which_they_begin(
    tmp_path: Path, kept: Callable[..., Path]
) -> None:
    def child(name: str, second: float) -> Export:
        answer = ("assistant", second, [finish(used(second, 1))], {})
        return export(("user", second, [], {}), answer, name=name, parentID="ses_1", agent="general")

    answer = ("assistant", 1, [finish(used(5, 1))], {})
    trace = trace_of(kept(tmp_path, export(ASKED, answer), child("ses_2", 30), child("ses_3", 20)))

    assert {agent: spent[0] for agent, spent in by_agent(trace).items()} == {
        "general": 20, "general#2": 30, "main": 5,
    }  # fmt: skip


@pytest.mark.parametrize("writer", [write_tree, write], ids=["tree", "exports"])
def test_a_call_whose_input_has_messages_is_no_export(tmp_path: Path, writer: Callable[..., Path]) -> None:
    sent = call("c1", "post", 1, 2, input={"messages": [{"text": "Done."}]})
    trace = trace_of(writer(tmp_path, export(ASKED, ("assistant", 1, [sent, finish(used(10, 2))], {}))))

    assert of_type(trace, "tool_call") == ["main tool_call post"]
    assert trace["import_report"]["records_read"] == (6 if writer is write_tree else 2)


def test_rows_that_are_in_the_write_ahead_log_alone_are_read_and_nothing_is_written(tmp_path: Path) -> None:
    for place, first in enumerate((EXPORTS, [])):  # the last rows are in the log alone, or all, tables included
        folder = tmp_path / str(place)
        folder.mkdir()
        live = sqlite3.connect(tmp_path / f"live{place}.db", isolation_level=None)
        live.execute("PRAGMA journal_mode = WAL")
        live.execute("PRAGMA wal_autocheckpoint = 0")
        live.executescript(TABLES)
        if first:
            live.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        insert(live, *EXPORTS)
        for ending in ("", "-wal"):  # as they lie beside a program that is running, or was killed
            (folder / f"opencode.db{ending}").write_bytes((tmp_path / f"live{place}.db{ending}").read_bytes())
        live.close()
        before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}

        assert said(trace_of(folder)) == said(trace_of(TEAM))
        assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


def test_what_run_prints_is_the_root_session_without_those_below(tmp_path: Path) -> None:
    parts = [
        part for message in EXPORTS[0]["messages"] for part in message["parts"] if message["info"]["role"] != "user"
    ]
    rows = [
        {"type": part["type"].replace("-", "_"), "timestamp": 1, "sessionID": "ses_lead", "part": part}
        for part in parts
    ]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    trace = trace_of(tmp_path)

    assert tokens(trace) == {"input": 1320, "output": 210, "cache_read": 3300, "cache_write": 500, "reasoning": 30}
    assert trace["reasons"]["costs.tokens"] == "sub-agents without a transcript among the files: 2"
    assert problems(trace) == {"sub-agent without a transcript": 2}


def test_a_tree_that_was_moved_to_a_database_is_read_once(tmp_path: Path) -> None:
    write_tree(tmp_path, *EXPORTS)
    write_database(tmp_path / "opencode.db", *EXPORTS)

    assert [trace["costs"]["tokens"] for trace in traces(tmp_path)] == [8495]


def test_each_session_that_nobody_spawned_is_a_trace_and_empty_ones_are_none(tmp_path: Path) -> None:
    others = [export(ASKED, ("assistant", 1, [], {"tokens": used(5, 1)}), name=f"ses_{number}") for number in range(3)]
    write_database(tmp_path / "opencode.db", *EXPORTS, *others, export(name="ses_9"))
    assert [trace["trace_id"] for trace in traces(tmp_path)] == ["ses_0", "ses_1", "ses_2", "ses_lead"]

    write_database(tmp_path / "empty.db", export(name="ses_9"))
    (session,) = importers.sessions(str(tmp_path / "empty.db"))
    with pytest.raises(EmptyLogError, match=r"no message of a session in empty\.db"):
        list(importers.read(session, Privacy(b"salt")))


# Tokens


def test_reasoning_that_is_in_the_output_as_well_is_told_by_the_total(tmp_path: Path) -> None:
    of_1_1, of_1_18 = used(100, 36, 7, total=136), used(100, 29, 7, total=136)
    for number, one in enumerate((of_1_1, of_1_18)):
        folder = write(tmp_path / str(number), export(ASKED, ("assistant", 1, [finish(one)], {"tokens": one})))
        assert tokens(trace_of(folder))["output"] == 36


def test_a_message_of_several_steps_is_as_many_answers(tmp_path: Path) -> None:
    start = {"type": "step-start"}
    parts = [start, call("c1", "read", 2, 3), finish(used(10, 1)), start, call("c2", "read", 4, 5), finish(used(20, 2))]
    trace = trace_of(write(tmp_path, export(ASKED, ("assistant", 1, parts, {"tokens": used(20, 2)}))))

    assert [event["tokens"]["input"] for event in trace["events"] if "tokens" in event] == [10, 20]
    assert problems(trace) == {}
    assert ledger(trace) == {
        "left out: usage that the log states again, of calls that are counted": 1, "counted: model call's own usage": 2,
    }  # fmt: skip


@pytest.mark.parametrize("writer", [write, write_tree, lambda path, one: write_database(path / "opencode.db", one)])
@pytest.mark.parametrize(
    ("steps", "message", "expected"),
    [
        ((0.25, 0.5), 0.75, [0.25, 0.5]),
        ((None, None), 0.75, [None, 0.75]),
        ((0.25, None), 9, [0.25, None]),
        ((0, 0), 0, [None, None]),
        (("free", -1), 1e300, [None, None]),
    ],
)
def test_the_cost_that_the_log_states_is_that_of_its_answers(
    tmp_path: Path, writer: Callable[..., Path], steps: tuple[Any, ...], message: Any, expected: list[Any]
) -> None:
    """Each step states its own, and the message their sum; 0 is stated where no price is known."""
    parts = []
    for number, cost in enumerate(steps):
        stated = {} if cost is None else {"cost": cost}
        parts += [{"type": "step-start"}, call(f"c{number}", "read", 2 + number, 3), {**finish(used(10, 1)), **stated}]
    trace = trace_of(writer(tmp_path, export(ASKED, ("assistant", 1, parts, {"cost": message, "modelID": "example"}))))

    assert [event.get("cost_usd") for event in trace["events"] if "tokens" in event] == expected


def test_the_cost_that_the_log_states_stands_beside_that_by_prices(tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("date: 2026-03-01\ncurrency: USD\nmodels:\n  example: {input: 3, output: 15}\n")
    more = {"modelID": "example", "tokens": used(100_000, 2_000)}
    answers = [("assistant", 5 * number, [], {**more, "cost": cost}) for number, cost in ((1, 0.31), (2, 0.25), (3, 0))]
    whole, part = (
        str(write(tmp_path / name, export(ASKED, *answers[:number]))) for name, number in (("whole", 2), ("part", 3))
    )

    def shown(*arguments: str) -> list[str]:
        lines = run_corpus("trace", "doctor", *arguments).stdout.splitlines()
        first = next(number for number, line in enumerate(lines) if line.startswith("Cost"))
        return [line.strip() for line in lines[first : first + 2]]

    assert shown(whole)[0] == "Cost      0.5600 USD, as the log states it."
    assert shown(part)[0] == "Cost      at least 0.5600 USD, as the log states it."
    by_prices = "USD at the prices of 2026-03-01."
    assert shown(whole, "--prices", str(prices)) == [f"Cost      0.6600 {by_prices}", "The log states 0.5600 USD."]
    assert shown(part, "--prices", str(prices)) == [
        f"Cost      0.9900 {by_prices}",
        "The log states at least 0.5600 USD.",
    ]
    figures = json.loads(run_corpus("trace", "doctor", whole, "--prices", str(prices), "--format", "json").stdout)
    assert [figures["sessions"][0]["cost_usd"][name] for name in ("known", "stated")] == [0.66, 0.56]
    page = tmp_path / "run.html"
    run_corpus("trace", "doctor", part, "--prices", str(prices), "--html", str(page))
    row = page.read_text("utf-8").partition("cost in USD that the log states</th>")[2].partition("</tr>")[0]
    assert "at least 0.5600" in row
    report = run_corpus("trace", "import", whole, "--prices", str(prices)).stderr
    assert "Cost at the prices of 2026-03-01: 0.6600 USD.\nThe logs state 0.5600 USD." in report
    assert "Cost as the logs state it: 0.5600 USD." in run_corpus("trace", "import", whole).stderr
    measured = run_corpus("trace", "measure", part).stdout
    assert "at least 0.56" in measured


def test_one_text_is_known_by_its_own_hash_as_in_other_formats(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "Done."}, finish(used(5, 5)), {"type": "step-start"}]
    two = [{"type": "text", "text": "Done."}, {"type": "text", "text": "Quite."}, finish(used(5, 5))]
    trace = trace_of(write(tmp_path, export(ASKED, ("assistant", 5, [*parts, *two], {}))))
    refer = Privacy(b"salt").reference
    twice = refer(refer("Done.") + refer("Quite."))
    assert [one.get("content_ref") for one in trace["events"]] == [refer("Go."), refer("Done."), twice, None]


def test_a_step_and_its_message_that_disagree_are_reported(tmp_path: Path) -> None:
    trace = trace_of(write(tmp_path, export(ASKED, ("assistant", 1, [finish(used(10, 1))], {"tokens": used(11, 1)}))))

    assert trace["costs"]["tokens"] == 11
    assert problems(trace) == {"usage that is stated twice, with different figures: that of the call itself counts": 1}


@pytest.mark.parametrize(
    ("tokens_", "why"),
    [
        (None, "answers without usage: 1"),
        (used(0, 0), "answers without usage: 1"),
        (used(-5, 1), "usage that is not a number: 1"),
        (used("9", 1), "usage that is not a number: 1"),
        ("many", "answers without usage: 1"),
        ({"input": 4, "output": 1, "cache": 7}, None),
    ],
)
def test_what_is_not_known_is_never_nothing(tmp_path: Path, tokens_: Any, why: str | None) -> None:
    trace = trace_of(
        write(tmp_path, export(ASKED, ("assistant", 1, [{"type": "text", "text": "A"}], {"tokens": tokens_})))
    )

    assert trace.get("reasons", {}).get("costs.tokens") == why
    assert trace["costs"]["tokens"] == (None if why else 5)


@pytest.mark.parametrize("mode", ["build", 3])
def test_a_step_whose_usage_is_no_object_is_unknown_also_beside_another_fault(tmp_path: Path, mode: Any) -> None:
    parts = [{"type": "step-finish", "tokens": "many"}]
    more = {"tokens": used(10, 1), "mode": mode}
    trace = trace_of(write(tmp_path, export(ASKED, ("assistant", 1, parts, more))))

    assert trace["costs"]["tokens"] is None
    assert trace["reasons"] == {"costs.tokens": "answers without usage: 1"}


def test_a_fork_counts_in_the_sum_of_all_only_for_what_it_adds(tmp_path: Path) -> None:
    first = ("assistant", 1, [], {"tokens": used(100, 10)})
    forked = [ASKED, first, ("user", 20, [], {}), ("assistant", 21, [], {"tokens": used(7, 3)})]
    write_database(tmp_path / "opencode.db", export(ASKED, first), export(*forked, name="ses_2"))

    assert [trace["costs"]["tokens"] for trace in traces(tmp_path)] == [110, 120]
    done = run_corpus("trace", "doctor", str(tmp_path), "--format", "json")
    assert json.loads(done.stdout)["all"]["tokens"]["known"] == 120


# Agents, calls, people


def test_a_call_on_an_agent_that_lives_is_a_message(tmp_path: Path) -> None:
    task = {"metadata": {"sessionId": "ses_2"}}
    lead = export(
        ASKED,
        ("assistant", 1, [call("c1", "task", 2, 10, **task)], {"tokens": used(1, 1)}),
        ("assistant", 11, [call("c2", "task", 12, 20, **task)], {"tokens": used(1, 1)}),
    )
    answers = [
        ("user", 3, [], {}),
        ("assistant", 4, [], {"tokens": used(1, 1)}),
        ("assistant", 14, [], {"tokens": used(1, 1)}),
    ]
    trace = trace_of(write(tmp_path, lead, export(*answers, name="ses_2", parentID="ses_1", agent="explore")))

    assert of_type(trace, "spawn", "message", "return") == [
        "main spawn task > explore", "explore return > main", "main message task > explore", "explore return > main",
    ]  # fmt: skip


def test_a_session_below_another_without_a_call_is_spawned_by_conclusion_and_an_orphan_is_told(tmp_path: Path) -> None:
    answer = ("assistant", 1, [], {"tokens": used(1, 1)})
    lead = export(ASKED, answer)
    child = export(answer, name="ses_2", parentID="ses_1", agent="explore")
    write(tmp_path / "both", lead, child)
    assert of_type(trace_of(tmp_path / "both"), "spawn") == ["main spawn > explore"]

    trace = trace_of(write(tmp_path / "alone", child))
    assert problems(trace) == {"sub-agent whose parent is not among the files (orphan)": 1}


@pytest.mark.parametrize(("named", "role"), [({"mode": "plan"}, "plan"), ({"mode": "plan", "agent": "build"}, "build")])
def test_the_role_of_a_sub_agent_is_the_agent_or_the_mode_of_its_messages(
    tmp_path: Path, named: dict[str, str], role: str
) -> None:
    answer = ("assistant", 1, [], {"tokens": used(1, 1), **named})
    trace = trace_of(write(tmp_path, export(ASKED, answer), export(answer, name="ses_2", parentID="ses_1")))

    assert [agent.get("role", "") for agent in trace["agents"] if agent["kind"] == "model"] == ["", role]


def test_how_calls_end(tmp_path: Path) -> None:
    ends = [
        call("c1", "bash", 1, 2, metadata={"exit": 2}),
        call("c2", "bash", 1, 2, metadata={"exit": 0}),
        call("c3", "invalid", 1, 2),
        call("c4", "edit", 1, 2, status="error", error="no such file"),
        call("c5", "edit", 1, 2, status="error", error="The user rejected permission to use this specific tool call."),
        call("c6", "edit", 1, 2, status="error", error="Tool execution aborted"),
        call("c7", "edit", 1),
    ]
    trace = trace_of(write(tmp_path, export(ASKED, ("assistant", 1, ends, {"tokens": used(1, 1)}))))
    results = {
        event["call_id"]: event.get("error_type", "") for event in trace["events"] if event["type"] == "tool_result"
    }

    assert results == {
        "c1": "exit_code", "c2": "", "c3": "invalid", "c4": "tool_error", "c5": "rejected", "c6": "interrupted",
    }  # fmt: skip
    assert of_type(trace, "human_intervention") == ["user human_intervention > main"] * 2


def test_an_answer_that_was_broken_off_is_a_person_acting_and_what_it_took_is_unknown(tmp_path: Path) -> None:
    text = [{"type": "text", "text": "I", "time": {"start": ms(2), "end": ms(3)}}]
    stopped = {"error": {"name": "MessageAbortedError"}, "tokens": used(0, 0)}
    trace = trace_of(write(tmp_path, export(ASKED, ("assistant", 1, text, stopped))))

    assert of_type(trace, "human_intervention", "inference") == [
        "user human_intervention > main", "main inference (error MessageAbortedError)",
        "user human_intervention > main (cancelled)",
    ]  # fmt: skip
    assert trace["costs"]["tokens"] is None


# What is no log, or is damaged


def changed(record: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    found = mutated_value(record, chance)
    return found if isinstance(found, dict) else {}


def test_a_database_of_another_program_is_not_recognised(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "other.db")
    database.execute("CREATE TABLE part (id text, session_id text)")
    database.close()

    with pytest.raises(DataFileError, match="is not a log in a known format"):
        importers.sessions(str(tmp_path / "other.db"))


@pytest.mark.parametrize("kept", [write, write_tree, lambda folder, *all_: write_database(folder / "one.db", *all_)])
def test_records_that_were_changed_at_random_give_sound_traces_or_none(
    tmp_path: Path, kept: Callable[..., Path]
) -> None:
    chance, number = random.Random(5), 0
    for place in range(tries(60, 12)):
        exports = json.loads(json.dumps(EXPORTS))
        for _ in range(chance.randint(1, 6)):
            message = chance.choice(chance.choice(exports)["messages"])
            record = chance.choice([message["info"], *message["parts"]])
            kept_names = {name: record[name] for name in ("id", "time")} if "role" in record else {"id": record["id"]}
            record.update({**changed(record, chance), **kept_names})
        folder = tmp_path / str(place)
        folder.mkdir()
        kept(folder, *exports)
        number += len(traces(folder))
    assert number >= tries(60, 12)


def test_a_database_that_is_damaged_is_refused_with_words_or_read(tmp_path: Path) -> None:
    whole = write_database(tmp_path / "whole.db", *EXPORTS).read_bytes()
    chance, refused = random.Random(5), 0
    for _ in range(tries(150, 40)):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 3, 30, 300))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        path = tmp_path / "one.db"
        path.write_bytes(data)
        try:
            traces(path, form="opencode")
        except DataFileError:
            refused += 1
    assert refused > 10

    path.write_bytes(whole[:5000])
    done = run_corpus("trace", "import", str(path), "--from", "opencode")
    assert (done.code, done.stderr.startswith("corpus: cannot read the database")) == (3, True)


ENDLESS = "WITH RECURSIVE endless(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM endless) "


@pytest.mark.parametrize("name", ["session", "message", "part"])
def test_a_view_in_place_of_a_table_is_refused_in_words(tmp_path: Path, name: str) -> None:
    path = write_database(tmp_path / "one.db", *EXPORTS)
    columns = {
        "session": "n AS id, NULL AS parent_id, '' AS agent, '' AS version, 0 AS time_created, '' AS directory",
        "message": "n AS rowid, n AS id, 'ses_1' AS session_id, '{}' AS data",
        "part": "n AS rowid, n AS id, n AS message_id, 'ses_1' AS session_id, '{}' AS data",
    }
    database = sqlite3.connect(path)
    database.execute(f"ALTER TABLE {name} RENAME TO kept_{name}")
    database.execute(f"CREATE VIEW {name} AS {ENDLESS}SELECT {columns[name]} FROM endless")
    database.commit()
    database.close()

    result = run_limited("doctor", path, "--from", "opencode")

    assert (result.code, result.stdout, result.stderr) == (
        3,
        "",
        f"corpus: cannot read the database '{path}': {name} is a view\n"
        "OpenCode keeps its sessions in tables: name the database that it wrote.\n",
    )


def test_a_view_under_a_false_name_and_a_column_that_is_computed_are_refused(tmp_path: Path) -> None:
    hidden = write_database(tmp_path / "hidden.db", *EXPORTS)
    database = sqlite3.connect(hidden)
    database.execute("ALTER TABLE session RENAME TO kept")
    database.execute(f"CREATE VIEW session AS {ENDLESS}SELECT n AS id, NULL AS parent_id, '' AS agent, "
                     "'' AS version, 0 AS time_created FROM endless")  # fmt: skip
    database.execute("PRAGMA writable_schema = ON")
    database.execute("UPDATE sqlite_master SET name = 'other', tbl_name = 'other' WHERE name = 'session'")
    database.commit()
    database.close()
    computed = tmp_path / "computed.db"
    database = sqlite3.connect(computed)
    database.executescript(TABLES.replace("`version` text", "`version` text AS (hex(zeroblob(400000000)))"))
    database.execute("INSERT INTO session (id, time_created) VALUES ('ses_1', 1)")
    database.commit()
    database.close()

    for path in (hidden, computed):
        result = run_limited("doctor", path, "--from", "opencode")
        assert (result.code, result.stdout) == (3, "")
        assert result.stderr.startswith(f"corpus: cannot read the database '{path}': ")


def test_many_sessions_take_linear_time_where_the_database_has_no_index(tmp_path: Path) -> None:
    def prepare(count: int) -> Callable[[], object]:
        path = tmp_path / f"{count}.db"
        database = sqlite3.connect(path)
        database.executescript(f"PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; {TABLES}")
        sessions = [(f"ses_{number}", None, "build", "1.2.3", number) for number in range(count)]
        database.executemany("INSERT INTO session VALUES (?, ?, ?, ?, ?)", sessions)
        messages = [(f"msg_{number}", f"ses_{number // 40}", 0, "no JSON") for number in range(40 * count)]
        database.executemany("INSERT INTO message VALUES (?, ?, ?, ?)", messages)
        database.commit()
        database.close()
        return lambda: list(import_logs(str(path), "opencode", salt="ours"))

    assert_grows(prepare, 100, 1600, 32)
