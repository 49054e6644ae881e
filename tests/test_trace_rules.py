"""Traces checked: every rule on its own, the places, what a file may be, and the published traces."""

import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.cli.output import Output
from orchtrace_corpus.cli.trace import loading
from orchtrace_corpus.findings import RULES
from orchtrace_corpus.rulebook import ENTRIES
from orchtrace_corpus.trace import rules
from orchtrace_corpus.trace.decode import Document, decode
from tests.conftest import ROOT, TOY, run_corpus

BASE: dict[str, Any] = {
    "trace_id": "t",
    "task_id": "k",
    "events": [{"id": "a", "t": 0, "type": "message", "agent": "lead"}],
    "edges": [],
    "rewards": {},
    "costs": {"tokens": 100, "wall_clock_s": 100},
}
SHOWN = [code for code in RULES if code.startswith("T") and code not in {"T102", "T103", "T227"}]


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
        "trace.json:14:9: T115 $.events[1].t: -1 is out of range; at least 0 [t]",
        "trace.json:15:12: T114 $.events[1].type: unknown word 'spwn' (did you mean 'spawn'? allowed: "
        "orchestrator_decision, spawn, despawn, message, tool_call, tool_result, return, aggregate, "
        "human_intervention, safety_event, stop, inference) [t]",
        "trace.json:17:10: T112 $.events[1].to: expected text, got 3 [t]",
        "trace.json:20:10: T115 $.events[2].id: empty [t]",
        "trace.json:27:3: T111 $.edges[0]: missing field 'dst' [t]",
        "trace.json:27:3: T111 $.edges[0]: missing field 'type' [t]",
        "trace.json:36:11: T113 $: unknown field 'extra' (allowed: $schema, trace_id, task_id, system, topology, clock, "
        "agents, events, edges, rewards, costs, metrics, reasons, excluded_human_wait_s, baseline, import_report) [t]",
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
        "T203 $.edges[0]: the edges go round in a circle: 'e1' -> 'e2' -> 'e1'; remove the one that leads "
        "back, or turn it round [t]",
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

    assert found({"events": events, "edges": [{"src": "e3", "dst": "e4", "type": "spawn"}]}) == []


def test_a_skew_excuses_clocks_that_disagree() -> None:
    events = [event("e1", 1, "spawn", "lead", to="scout"), event("e2", 0.5, "inference", "scout")]
    edges = [{"src": "e1", "dst": "e2", "type": "spawn"}]

    assert len(found({"events": events, "edges": edges})) == 2
    assert found({"events": events, "edges": edges, "clock": {"skew": 0.5}}) == []


def agents_at_work(*edges: str) -> dict[str, Any]:
    """A lead spawns a scout, which returns, and the lead goes on; with edges such as `e1>e2`."""
    events = [
        event("e0", 0, "inference", "lead"),
        event("e1", 1, "spawn", "lead", to="scout"),
        event("e2", 2, "inference", "scout"),
        event("e3", 3, "return", "scout", to="lead"),
        event("e4", 4, "inference", "lead"),
    ]
    ends = (edge.split(">") for edge in edges)
    return {"events": events, "edges": [{"src": src, "dst": dst, "type": "causal"} for src, dst in ends]}


def short(trace: dict[str, Any]) -> list[tuple[str, str]]:
    """The codes of the findings, each with the value that it is about."""
    return [re.findall(r": (T\d+) (?:warning: )?(\S+): ", line)[0] for line in found(trace)]


def test_a_forgotten_edge_between_two_agents_is_a_warning() -> None:
    assert found(agents_at_work("e1>e2", "e3>e4")) == []
    assert short(agents_at_work("e1>e2")) == [("T224", "$.events[3]")]
    assert short(agents_at_work("e3>e4")) == [("T223", "$.events[1]")]
    assert short(agents_at_work("e0>e1", "e1>e4", "e3>e4")) == [("T223", "$.events[1]")]
    assert short(agents_at_work("e0>e3")) == [("T224", "$.events[3]")]
    assert short(agents_at_work("e0>e1", "e2>e3")) == [("T225", "$.edges")]
    assert short(agents_at_work()) == [("T225", "$.edges")]


def test_a_return_may_be_the_last_that_happens_above() -> None:
    run = agents_at_work("e1>e2")
    run["events"][4] = event("e4", 4, "despawn", "lead", to="scout")
    assert found(run) == []

    run["events"][4] = event("e4", 4, "inference", "other")
    assert found(run) == []

    run["events"][3] = event("e3", 4, "return", "scout", to="lead", seq=2)
    run["events"][4] = event("e4", 4, "inference", "lead", seq=1)
    assert found(run) == []


def test_a_return_to_nobody_known_is_unused_where_anybody_goes_on() -> None:
    events = [event("e1", 1, "message", "a", to="b"), event("e2", 2, "return", "b"), event("e3", 3, "inference", "c")]
    edges = [{"src": "e1", "dst": "e2", "type": "message"}]

    assert [line.partition(": ")[2] for line in found({"events": events, "edges": edges})] == [
        "T224 warning: $.events[1]: no event depends on what 'b' returns, though 'c' goes on; "
        "add an edge to the event that goes on with it [t]"
    ]
    assert found({"events": events[:2], "edges": edges}) == []


def test_a_result_goes_on_with_one_above_the_agent_that_it_returns_to() -> None:
    events = [
        event("e1", 0, "spawn", "lead", to="boss"),
        event("e2", 1, "spawn", "boss", to="hand"),
        event("e3", 2, "return", "hand", to="boss"),
        event("e4", 3, "inference", "lead"),
    ]
    edges = [{"src": "e1", "dst": "e2", "type": "spawn"}, {"src": "e2", "dst": "e3", "type": "spawn"}]

    assert short({"events": events, "edges": edges}) == [("T224", "$.events[2]")]


def test_nothing_is_said_of_edges_between_agents_where_others_are_lost() -> None:
    run = agents_at_work("e1>e2", "e3>e9")

    assert short(run) == [("T202", "$.edges[1].dst")]


@pytest.mark.parametrize("path", sorted((ROOT / "data" / "traces").glob("*.json")), ids=lambda path: path.stem)
def test_the_traces_of_the_corpus_lack_no_edge(path: Path) -> None:
    assert {finding.code for finding in rules.check(decode(Document(path.read_bytes(), path.name)))} <= {"T211"}


def test_a_circle_is_shown_at_the_edge_that_leads_back() -> None:
    assert short(agents_at_work("e4>e0", "e0>e1", "e1>e2", "e2>e3", "e3>e4"))[0] == ("T203", "$.edges[0]")

    events = [event(f"e{number}", 0, "inference", "lead", seq=number) for number in range(3)]
    pairs = [("e2", "e0"), ("e0", "e1"), ("e1", "e2")]
    edges = [{"src": src, "dst": dst, "type": "causal"} for src, dst in pairs]
    assert short({"events": events, "edges": edges}) == [("T203", "$.edges[0]")]


def test_an_id_of_no_event_is_compared_with_those_there_are() -> None:
    events = [event("stop", 0, "inference", "lead"), event("e11", 1, "inference", "lead")]
    edges = [{"src": "stopp", "dst": "e12", "type": "causal"}]

    assert [line.partition("T202 ")[2] for line in found({"events": events, "edges": edges})] == [
        "$.edges[0].src: there is no event 'stopp' (did you mean 'stop'?); correct the id, or remove the edge [t]",
        "$.edges[0].dst: there is no event 'e12'; correct the id, or remove the edge [t]",
    ]


def test_a_result_without_a_call_is_shown_the_calls_without_a_result() -> None:
    events = [
        event("e1", 0, "tool_call", "lead", call_id="c1"),
        event("e2", 1, "tool_result", "lead", call_id="cX"),
    ]

    assert found({"events": events})[1].endswith(
        "T209 $.events[1].call_id: no call has the call_id 'cX' (calls without a result: 'c1'); "
        "correct it, or add the call [t]"
    )


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
        (b'{"a":\n1,}', "2:2: T101 not JSON: a comma with nothing behind it; remove it"),
        (b'{"a":\n NaN}', "2:2: T104 'NaN' is no finite number; write null for unknown"),
        (b'{"a": -Infinity}', "1:7: T104 '-Infinity' is no finite number"),
        (rb'{"a": "\ud800"}', "1:8: T101 half of a surrogate pair"),
        (rb'{"a": "\udc00"}', "1:8: T101 half of a surrogate pair"),
        (b'{"a": "\xff"}', "1:8: T103 not UTF-8"),
        (b"[" * 100_000, "1:1: T101 nested too deeply"),
        (b'{"a":' * 100_000, "1:1: T101 nested too deeply"),
        (b"[]", "1:1: T112 a trace is an object"),
        (b"3", "1:1: T112 a trace is an object"),
        (b'{"trace_id": "x"\n', "1:17: T101 not JSON: the text ends in the middle of an object, which begins at 1:1\n"),
        (b'{"a": [1, {"b": 2}\n ,', "2:3: T101 not JSON: the text ends in the middle of a list, which begins at 1:7\n"),
        (b'{"a":\n "x', "2:4: T101 not JSON: the text ends in the middle of a string, which begins at 2:2\n"),
        (
            b"\xef\xbb\xbf{}",
            "1:1: T101 begins with a byte order mark, which JSON does not have; save the file in UTF-8 with",
        ),
        (b"{\n  'a': 1}", "2:3: T101 not JSON: a name in double quotes is expected, not a single quotation mark\n"),
        (b'{\n  // hi\n  "a": 1}', "2:3: T101 not JSON: a comment, which JSON does not have; remove it\n"),
        (b'{"a": 1,\n\n\n  b: 2}', "4:3: T101 not JSON: a name in double quotes is expected, not 'b'\n"),
        (b'{"a": 1\n "b": 2}', "1:8: T101 not JSON: a comma is missing\n"),
        (b'{"a": [1, 2,\n]}', "1:12: T101 not JSON: a comma with nothing behind it; remove it\n"),
        ('{"é": True}'.encode(), "1:7: T101 not JSON: a value is expected, not 'True'\n"),
        (b'{"a" 1}', "1:6: T101 not JSON: a colon is expected, not '1'\n"),
        (b'{"a": 01}', "1:8: T101 not JSON: a comma or a closing bracket is expected, not '1'\n"),
        (b'{"a": [1}', "1:9: T101 not JSON: a comma or a closing bracket is expected, not '}'\n"),
        (b'{"a": "\t"}', "1:8: T101 not JSON: invalid control character\n"),
        (
            b'{"a":\n1}\n}',
            "3:1: T101 not JSON: the trace has ended before this; in JSON Lines each trace stands on one l",
        ),
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
    assert (
        result.stderr == "2 errors in 3 traces; the rules of the graph of 2 of them are checked once these are mended\n"
    )


def test_the_graph_is_said_to_be_unchecked_where_the_schema_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps({**BASE, "topology": "ring"}), encoding="utf-8")
    (tmp_path / "u.json").write_text(json.dumps({**BASE, "topology": "ring", "system": 3}), encoding="utf-8")

    assert [run_corpus("trace", "validate", str(tmp_path / name)).stderr for name in ("t.json", "u.json")] == [
        "1 error in 1 trace; the rules of the graph are checked once it is mended\n",
        "2 errors in 1 trace; the rules of the graph are checked once these are mended\n",
    ]


def test_two_traces_of_one_name_are_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    path.write_text(f"{json.dumps(BASE)}\n{json.dumps(BASE)}\n", encoding="utf-8")
    result = run_corpus("trace", "validate", str(path))

    assert (result.code, result.stdout) == (
        0, f"{path}:2:1: T227 warning: $.trace_id: 't' is that of {path}:1, too; give each run its own [t]\n"
    )  # fmt: skip
    (tmp_path / "one.json").write_text(json.dumps(BASE), encoding="utf-8")
    assert run_corpus("trace", "validate", str(tmp_path / "one.json"), str(tmp_path / "one.json")).stdout == ""


def test_a_trace_comes_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in ("validate", "show", "replay", "measure"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(BASE).encode())))
        result = run_corpus("trace", command, "-")
        assert result.code == 0
        assert "t" in result.stdout or result.stderr == "no problems in 1 trace\n"

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{")))
    assert run_corpus("trace", "validate", "-").stdout.startswith("<stdin>:1:2: T101 not JSON")
    assert "can be read only once" in run_corpus("trace", "validate", "-", "-").stderr
    monkeypatch.setattr(sys, "stdin", None)
    assert run_corpus("trace", "show", "-").code == 2


@pytest.mark.parametrize("data", [b"", b'{"costs": NaN}', b'{"trace_id": "x"'])
def test_what_is_no_json_is_not_called_a_trace_with_errors(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(data)
    for command in ("show", "replay", "measure"):
        result = run_corpus("trace", command, str(tmp_path / "t.json"))
        assert result.code == 3
        assert result.stderr.startswith("corpus: this is not JSON, so there is no trace in it:\n")


def test_one_broken_file_stops_the_measures_of_a_folder_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(BASE), encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps({**BASE, "topology": "ring"}), encoding="utf-8")
    result = run_corpus("trace", "measure", str(tmp_path))

    assert (result.code, result.stdout) == (1, "")
    assert f"{tmp_path / 'b.json'}:1:" in result.stderr
    assert result.stderr.endswith("mend it, or leave the file out.\n")


def test_warnings_of_several_traces_are_told_in_one_line(tmp_path: Path) -> None:
    call = event("e1", 0, "tool_call", "lead", call_id="c")
    for name in "ab":
        trace = {**BASE, "events": [call], "trace_id": name}
        (tmp_path / f"{name}.json").write_text(json.dumps(trace), encoding="utf-8")

    assert run_corpus("trace", "measure", str(tmp_path)).stderr == (
        "corpus: 2 warnings in 2 traces; see corpus trace validate\n"
    )
    assert run_corpus("trace", "show", str(tmp_path / "a.json")).stderr == (
        f"corpus: {tmp_path / 'a.json'}:1: 1 warning; see corpus trace validate\n"
    )


def test_reading_a_large_file_is_told_at_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_LARGE_BYTES", 100)
    (tmp_path / "t.json").write_text(json.dumps(BASE), encoding="utf-8")
    assert run_corpus("trace", "validate", str(tmp_path)).stderr == "no problems in 1 trace\n"

    monkeypatch.setattr(Output, "talk_width", 80)
    assert run_corpus("trace", "validate", str(tmp_path)).stderr == (
        f"corpus: reading {tmp_path / 't.json'}, 0 MB\nno problems in 1 trace\n"
    )
    assert run_corpus("--quiet", "trace", "validate", str(tmp_path)).stderr == ""


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
