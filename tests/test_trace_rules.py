"""Traces checked: every rule on its own, the places, what a file may be, and the published traces."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.findings import RULES
from orchtrace_corpus.rulebook import ENTRIES
from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.decode import Document, decode
from tests.conftest import TOY, run_corpus

BASE: dict[str, Any] = {
    "trace_id": "t",
    "task_id": "k",
    "events": [{"id": "a", "t": 0, "type": "message", "agent": "lead"}],
    "edges": [],
    "rewards": {},
    "costs": {"tokens": 100, "wall_clock_s": 100},
}
SHOWN = [code for code in RULES if code.startswith("T") and code not in {"T102", "T103"}]


def codes(text: str) -> list[str]:
    """The codes that the fields of an excerpt raise, the rest of the trace filled in."""
    given = [f'"{name}": {json.dumps(value)}' for name, value in BASE.items() if f'"{name}": ' not in text]
    document = "{" + ",\n".join((*given, text)) + "}"
    return [finding.code for finding in rules.check(decode(Document(document.encode(), "trace.json")))]


@pytest.mark.parametrize("code", SHOWN)
def test_the_rulebook_speaks_true_of_traces(code: str) -> None:
    assert codes(ENTRIES[code].bad) == [code]
    assert codes(ENTRIES[code].good) == []


def found(trace: dict[str, Any]) -> list[str]:
    text = json.dumps({**BASE, **trace}, indent=1, ensure_ascii=False)
    return [str(finding) for finding in rules.check(decode(Document(text.encode(), "trace.json")))]


def event(name: str, t: float, kind: str, agent: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "t": t, "type": kind, "agent": agent, **more}


def test_each_finding_stands_at_its_line_and_column() -> None:
    events = [event("e1", 0, "spawn", "é", to="w"), event("e1", -1, "spwn", "w", to=3), event("", 0, "message", "w")]

    assert found({"events": events, "edges": [{"src": "e1"}], "extra": {}}) == [
        "trace.json:14:9: T115 $.events[1].t: -1 is out of range; at least 0",
        "trace.json:15:12: T114 $.events[1].type: unknown word 'spwn' (did you mean 'spawn'? allowed: "
        "orchestrator_decision, spawn, despawn, message, tool_call, tool_result, return, aggregate, "
        "human_intervention, safety_event, stop, inference)",
        "trace.json:17:10: T112 $.events[1].to: expected text, got 3",
        "trace.json:20:10: T115 $.events[2].id: empty",
        "trace.json:27:3: T111 $.edges[0]: missing field 'dst'",
        "trace.json:27:3: T111 $.edges[0]: missing field 'type'",
        "trace.json:36:11: T113 $: unknown field 'extra' (allowed: $schema, trace_id, task_id, system, topology, clock, "
        "agents, events, edges, rewards, costs, metrics, reasons, excluded_human_wait_s, baseline, import_report)",
    ]


def test_graph_rules_name_both_sides() -> None:
    events = [
        event("e1", 0, "spawn", "lead", to="scout"),
        event("e2", 1, "inference", "scout"),
        event("e3", 2, "despawn", "lead", to="scout"),
        event("e4", 3, "message", "scout", to="lead"),
    ]
    edges = [{"src": "e2", "dst": "e1", "type": "causal"}, {"src": "e1", "dst": "e2", "type": "spawn"}]

    assert [line.partition(": ")[2] for line in found({"events": events, "edges": edges})] == [
        "T208 $.events[3].t: 'scout' acts at 3, after 'e3' ended it at 2 [t]",
        "T203 $.edges[0]: the edges go round in a circle: 'e1' -> 'e2' -> 'e1' [t]",
        "T204 $.edges[0]: the edge goes back in time, from t 1 to t 0; turn it round, correct the times, or declare "
        "$.clock.skew [t]",
    ]


def test_an_agent_that_is_spawned_again_may_act_again() -> None:
    events = [
        event("e1", 0, "spawn", "lead", to="scout"),
        event("e2", 1, "despawn", "lead", to="scout"),
        event("e3", 2, "spawn", "lead", to="scout"),
        event("e4", 3, "inference", "scout"),
    ]

    assert found({"events": events}) == []


def test_a_skew_excuses_clocks_that_disagree() -> None:
    events = [event("e1", 1, "spawn", "lead", to="scout"), event("e2", 0.5, "inference", "scout")]

    assert len(found({"events": events})) == 1
    assert found({"events": events, "clock": {"skew": 0.5}}) == []


def test_many_findings_of_one_rule_are_cut_and_counted() -> None:
    edges = [{"src": "a", "dst": f"x{number}", "type": "causal"} for number in range(250)]
    lines = found({"edges": edges})

    assert len(lines) == 101
    assert [line for line in lines if "250 findings of this rule; the first 100 are given" in line]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "1:1: T102 nothing in the file; a trace is a JSON object"),
        (b" \n\n", "3:1: T102 nothing in the file"),
        (b'{"a":\n1,}', "2:3: T101 not JSON: expecting property name"),
        (b'{"a":\n NaN}', "2:2: T104 'NaN' is no finite number; write null for unknown"),
        (b'{"a": -Infinity}', "1:7: T104 '-Infinity' is no finite number"),
        (rb'{"a": "\ud800"}', "1:8: T101 half of a surrogate pair"),
        (rb'{"a": "\udc00"}', "1:8: T101 half of a surrogate pair"),
        (b'{"a": "\xff"}', "1:8: T103 not UTF-8"),
        (b"[" * 100_000, "1:1: T101 nested too deeply"),
        (b'{"a":' * 100_000, "1:1: T101 nested too deeply"),
        (b"[]", "1:1: T112 a trace is an object"),
        (b"3", "1:1: T112 a trace is an object"),
        (b'{"trace_id": "x"', "1:17: T101 not JSON: expecting ',' delimiter"),
        (b"\xef\xbb\xbf{}", "1:1: T101"),
    ],
)
def test_what_is_no_trace_is_refused_at_its_place(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    result = run_corpus("trace", "validate", str(path))

    assert result.code == (1 if "T112" in message else 3)
    assert result.stdout.startswith(f"{path}:{message}")


def test_json_lines_are_checked_line_by_line(tmp_path: Path) -> None:
    sound = json.dumps(BASE)
    path = tmp_path / "traces.jsonl"
    path.write_text(f"{sound}\n\n{sound[:-1]}\n{json.dumps({**BASE, 'topology': 'ring'})}\n", encoding="utf-8")
    result = run_corpus("trace", "validate", str(path))

    assert result.code == 3
    assert [line.split(" ")[0].rpartition("/")[2] for line in result.stdout.splitlines()] == [
        "traces.jsonl:3:177:", "traces.jsonl:4:191:",
    ]  # fmt: skip
    assert result.stderr == "2 errors in 3 traces\n"


def test_warnings_pass_unless_strict(tmp_path: Path) -> None:
    call = event("e1", 0, "tool_call", "lead", call_id="c")
    (tmp_path / "t.json").write_text(json.dumps({**BASE, "events": [call]}), encoding="utf-8")

    assert run_corpus("trace", "validate", str(tmp_path)).code == 0
    assert run_corpus("trace", "validate", str(tmp_path), "--strict").code == 1


def test_an_empty_folder_and_an_absent_file_are_said(tmp_path: Path) -> None:
    assert run_corpus("trace", "validate", str(tmp_path)).code == 3
    assert "cannot read" in run_corpus("trace", "validate", str(tmp_path / "none.json")).stderr


def test_the_trace_published_as_an_example_is_sound() -> None:
    """Eight events of the kinds, edges and totals that the published example has."""
    kinds = ["orchestrator_decision", "spawn", "spawn", "message", "tool_call", "tool_result", "return", "aggregate"]
    agents = ["lead", "lead", "lead", "planner", "executor", "executor", "executor", "lead"]
    events = [
        event(f"e{number}", number, kind, agent, **({"to": to} if to else {}))
        for number, (kind, agent, to) in enumerate(
            zip(kinds, agents, ["", "planner", "executor", "executor", "", "", "lead", ""], strict=True)
        )
    ]
    pairs = [(0, 1, "spawn"), (0, 2, "spawn"), (1, 3, "causal"), (3, 4, "message"), (4, 5, "return"), (5, 6, "return"),
             (6, 7, "aggregate"), (2, 4, "causal")]  # fmt: skip
    edges = [{"src": f"e{source}", "dst": f"e{target}", "type": kind} for source, target, kind in pairs]

    assert found({
        "topology": "planner_executor_critic", "events": events, "edges": edges,
        "rewards": {"team": 1.0, "orchestration": 0.3, "tool": 0.1},
        "costs": {"tokens": 12000, "wall_clock_s": 420, "tool_calls": 1, "messages": 1},
        "metrics": {"task_success": 1, "protocol_overhead": 0.18, "error_amplification": 0},
    }) == []  # fmt: skip


def test_the_trace_library_is_loaded_by_trace_commands_alone() -> None:
    program = (
        "import sys; from orchtrace_corpus.cli.main import run; run(['stats']); "
        "sys.exit(any(name.split('.')[0] in {'msgspec', 'jsonschema'} for name in sys.modules))"
    )

    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


def checked(tmp_path: Path, name: str, data: bytes) -> tuple[int, list[str]]:
    """What `corpus check` says of a corpus with a trace."""
    shutil.copytree(TOY, tmp_path / "corpus", dirs_exist_ok=True)
    (tmp_path / "corpus" / "data" / "traces").mkdir()
    if name:
        (tmp_path / "corpus" / "data" / "traces" / name).write_bytes(data)
    result = run_corpus("--root", str(tmp_path / "corpus"), "check")
    return result.code, [line for line in result.stdout.splitlines() if "traces" in line]


def test_check_includes_the_traces_of_a_corpus(tmp_path: Path) -> None:
    code, lines = checked(tmp_path, "t.json", json.dumps({**BASE, "topology": "ring"}).encode())

    assert code == 1
    assert lines[0].startswith("data/traces/t.json:1:")
    assert lines[1] == "traces    failed 1 error in 1 trace; to mend: see corpus trace validate data/traces"


def test_check_tells_warnings_about_traces_in_number(tmp_path: Path) -> None:
    call = event("e1", 0, "tool_call", "lead", call_id="c")
    _, lines = checked(tmp_path, "t.json", json.dumps({**BASE, "events": [call]}).encode())

    assert lines == ["traces    ok     1 warning in 1 trace"]


def test_check_of_what_is_no_trace_ends_as_unreadable(tmp_path: Path) -> None:
    assert checked(tmp_path, "t.json", b"{")[0] == 3


def test_check_of_an_empty_folder_of_traces_fails(tmp_path: Path) -> None:
    code, lines = checked(tmp_path, "", b"")

    assert code == 3
    assert lines[0].startswith("traces    failed no trace in ")
