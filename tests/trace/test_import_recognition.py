"""Which program wrote a log: each is recognised by what only it writes, and none is taken for another.

The logs are made up in the shapes of the programs named, each of which has the marks that others share, too.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core.identity import is_qwen, program_of
from orchtrace_corpus.trace.importers.core.logs import LogFile, LogReader
from tests.conftest import run_corpus
from tests.trace.conversationlogs import LOGS, SESSION, Claude, claude_usage, moment, text, trace_of, write

ROW = {"uuid": "u1", "parentUuid": None, "sessionId": SESSION, "timestamp": moment(0), "cwd": "/w", "version": "0.24.4"}
CLAUDE = {**ROW, "isSidechain": False, "userType": "external"}
IFLOW = {**CLAUDE, "sessionId": f"session-{SESSION}", "version": "1.0.0"}

Content = list[dict[str, Any]] | dict[str, Any]
OTHERS: dict[str, tuple[str, Content]] = {
    "iflow": ("iFlow", [
        {**IFLOW, "type": "user", "message": {"role": "user", "content": "Go."}},
        {**IFLOW, "type": "assistant", "message": {"id": "m1", "role": "assistant", "model": "glm-5", "stop_reason": None,
         "content": [text("A")], "usage": {"input_tokens": 0, "output_tokens": 0}}},
    ]),
    "iflow-result": ("iFlow", [
        {**CLAUDE, "type": "user", "toolUseResult": {"toolName": "read_file", "status": "success", "timestamp": 1},
         "message": {"role": "user", "content": [
             {"type": "tool_result", "tool_use_id": "c1", "content": {"functionResponse": {"id": "c1"}}},
         ]}},
    ]),
    "gemini-prompts": ("the list of prompts of Gemini CLI", [
        {"sessionId": SESSION, "messageId": 0, "type": "user", "message": "Go.", "timestamp": moment(0)},
    ]),
    "kimi-cli": ("kimi-cli", [
        {"type": "metadata", "protocol_version": "1.2"},
        {"timestamp": 1.5, "message": {"type": "TurnBegin", "payload": {"user_input": "Go."}}},
    ]),
}  # fmt: skip
"""Logs of programs that are not read: which program, and its lines or its document."""

NEARLY: dict[str, tuple[str, Content]] = {
    "qwen-user": ("qwen_code", [{**ROW, "type": "user", "message": {"role": "user", "parts": [{"text": "Go."}]}}]),
    "qwen-system": ("qwen_code", [
        {**ROW, "type": "system", "subtype": "ui_telemetry", "systemPayload": {"uiEvent": {"input_token_count": 9}}},
    ]),
    "qwen-child": ("qwen_code", [
        {**ROW, "type": "user", "agentId": "a1", "isSidechain": True, "message": {"role": "user", "parts": []}},
    ]),
    "qwen-meta": ("qwen_code", {
        "agentId": "a1", "agentType": "general", "toolUseId": "call_1", "parentSessionId": SESSION, "subagentName": "g",
    }),
    "gemini": ("gemini_cli", [
        {"sessionId": SESSION, "projectHash": "ab", "startTime": moment(0), "lastUpdated": moment(0), "kind": "main"},
        {"id": "m1", "timestamp": moment(1), "type": "user", "content": [{"text": "Go."}]},
    ]),
    "gemini-document": ("gemini_cli", {
        "lastUpdated": moment(1), "messages": [{"id": "u1", "type": "user", "content": "Go.", "timestamp": moment(0)}],
        "projectHash": "ab", "sessionId": SESSION, "startTime": moment(0),
    }),
    "copilot": ("copilot_cli", [
        {"type": "session.start", "data": {"sessionId": SESSION, "producer": "copilot-agent"}, "id": "1", "parentId": None},
        {"type": "user.message", "data": {"content": "Go."}, "id": "2", "parentId": "1"},
    ]),
    "kimi": ("kimi_code", [
        {"type": "metadata", "protocol_version": "1.5", "created_at": 1}, {"type": "turn.prompt", "time": 2},
    ]),
    "kimi-state": ("kimi_code", {"id": "session_1", "version": 2, "createdAt": 1, "archived": False, "agents": {}}),
    "pi": ("pi", [{"type": "session", "version": 3, "id": SESSION, "timestamp": moment(0), "cwd": "/w"}]),
    "pi-1": ("pi", [{"type": "session", "id": SESSION, "timestamp": moment(0), "cwd": "/w", "provider": "p", "modelId": "m"}]),
    "pi-headless": ("pi", [
        {"type": "message", "id": "a1", "parentId": None, "timestamp": moment(0), "message": {"role": "user", "content": "Go."}},
    ]),
    "entire": ("entire", [
        {"v": 1, "agent": "pi", "cli_version": "0.8", "type": "user", "ts": moment(0), "content": [{"text": "Go."}]},
    ]),
    "atof": ("atof", [
        {"kind": "mark", "atof_version": "0.1", "uuid": "u1", "parent_uuid": None, "timestamp": moment(0), "name": "start"},
    ]),
    "autogen-wrapped": ("autogen", [
        {"time": 1.5, "logger": "autogen_core.events", "msg": json.dumps({"type": "LLMCall", "agent_id": "a/b"})},
    ]),
    "autogen-stream": ("autogen", [
        {"id": "u1", "source": "user", "models_usage": None, "created_at": moment(0), "content": "Go.", "type": "TextMessage"},
    ]),
    "autogen-state": ("autogen", {"type": "TeamState", "version": "1.0.0", "agent_states": {}}),
    "autogen-agent": ("autogen", {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": []}}),
}  # fmt: skip
"""Logs that have marks of another program, too: whose they are, and their lines or their document."""

OURS = [(form, path) for form in importers.FORMATS for path in sorted((LOGS / form).rglob("*.json*"))
        if path.name != "truth.json"]  # fmt: skip
LAYOUTS = [(suffix, indent) for suffix in (".jsonl", ".json", ".meta.json") for indent in (None, 2)]


def written(path: Path, content: Content, *, indent: int | None) -> Path:
    """Lines, or a document: laid out, or on one line."""
    if isinstance(content, list):
        return write(path, content)
    path.write_text(json.dumps(content, indent=indent), "utf-8")
    return path


def recognisers(path: Path) -> list[str]:
    """The formats whose importers take a file for theirs, by its first row or by its beginning."""
    with LogReader(LogFile(str(path), path.name)) as reader:
        beginnings = reader.first(), reader.head()
        return [form for form in importers.FORMATS if any(map(importers.importer(form).recognises, beginnings))]


@pytest.mark.parametrize("name", OTHERS)
def test_no_log_of_another_program_is_taken_for_one_of_ours(tmp_path: Path, name: str) -> None:
    program, content = OTHERS[name]
    for suffix, indent in LAYOUTS:
        path = written(tmp_path / f"agent-1{suffix}", content, indent=indent)

        assert (suffix, indent, recognisers(path)) == (suffix, indent, [])
        with pytest.raises(
            DataFileError, match=f"is not a log in a known format: it is of {program}, which is not read"
        ):
            importers.sessions(str(path))


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        *(("iflow", mark) for mark in ("sessionId", "userType")),
        *(("gemini-prompts", mark) for mark in ("sessionId", "messageId", "type", "message")),
        *(("kimi-cli", mark) for mark in ("type", "payload")),
    ],
)
def test_a_row_without_one_of_the_marks_of_a_program_is_not_said_to_be_its(
    tmp_path: Path, name: str, mark: str
) -> None:
    _, content = OTHERS[name]
    row = json.loads(json.dumps(content[-1]))
    for part in (row, row["message"]):
        if isinstance(part, dict):
            part.pop(mark, None)
    path = write(tmp_path / "x.jsonl", [row])

    with LogReader(LogFile(str(path), path.name)) as reader:
        assert program_of(reader.head()) == ""


@pytest.mark.parametrize(
    ("row", "is_row_of_qwen"),
    [
        ({"message": {"parts": []}}, True),
        ({"systemPayload": {}}, True),
        ({"agentType": "general", "parentSessionId": SESSION}, True),
        ({"agentType": "general"}, False),
        ({"parentSessionId": SESSION}, False),
        ({"message": {"content": []}}, False),
    ],
)
def test_a_row_of_qwen_code_is_known_by_its_parts_its_payload_or_its_parent(
    row: dict[str, Any], is_row_of_qwen: bool
) -> None:
    assert is_qwen(row) is is_row_of_qwen


@pytest.mark.parametrize("name", NEARLY)
def test_a_log_that_looks_like_another_is_recognised(tmp_path: Path, name: str) -> None:
    form, content = NEARLY[name]
    for suffix, indent in LAYOUTS:
        path = written(tmp_path / f"agent-1{suffix}", content, indent=indent)
        assert (suffix, indent, recognisers(path)) == (suffix, indent, [form])


@pytest.mark.parametrize("form", importers.FORMATS)
def test_each_of_our_logs_is_recognised_by_its_own_importer_alone(form: str) -> None:
    for path in (path for one, path in OURS if one == form):
        expected = ([form],) if "agent-" not in path.name else ([form], [])
        assert recognisers(path) in expected, path
        with LogReader(LogFile(str(path), path.name)) as reader:
            assert program_of(reader.head()) == "", path


RECOGNISE = """
import sys
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core.logs import LogFile, LogReader
for path in sys.argv[1:]:
    with LogReader(LogFile(path, path)) as reader:
        found = importers.recognise(reader)
    ends = tuple(f"importers.{folder}{one}" for folder in ("", "spans.", "conversations.") for one in importers.FORMATS)
    loaded = sorted(name.rpartition(".")[2] for name in sys.modules if name.endswith(ends))
    print(path, found, *loaded)
    if not found:  # of these all were asked
        sys.exit()
"""
"""Says of files which format they are recognised to be of, and which formats are loaded by then."""


@pytest.mark.parametrize("form", importers.FORMATS)
def test_a_file_is_recognised_without_loading_other_formats(form: str) -> None:
    """By itself, and not only after a file of its format."""
    paths = [str(path) for one, path in OURS if one == form and recognisers(path)]
    done = subprocess.run([sys.executable, "-c", RECOGNISE, *paths], capture_output=True, text=True, check=True)

    assert paths
    assert done.stdout.splitlines() == [f"{path} {form} {form}" for path in paths]


def test_files_beside_a_session_are_recognised_by_their_members(tmp_path: Path) -> None:
    for number, content in enumerate(
        ({"agentType": "Explore"}, {"toolUseId": "c"}, {"runId": "r", "workflowName": "w"})
    ):
        assert recognisers(written(tmp_path / f"{number}.json", content, indent=1)) == ["claude_code"]
    for number, content in enumerate(({"note": "agentType"}, {"note": '"toolUseId"'}, {"runId": "r"}), 10):
        assert recognisers(written(tmp_path / f"{number}.json", content, indent=1)) == []


OPENCODE: dict[str, Content] = {
    "run": [
        {"type": "step_start", "timestamp": 1, "sessionID": "ses_1", "part": {"id": "prt_1", "type": "step-start"}}
    ],
    "part": {"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", "type": "step-start"},
    "message": {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": 1}},
    "session": {"id": "ses_1", "projectID": "global", "directory": "/w", "version": "1.1"},
    "export": {"info": {"id": "ses_1", "projectID": "global", "directory": "/w", "version": "1.1"}, "messages": []},
}


@pytest.mark.parametrize("name", OPENCODE)
@pytest.mark.parametrize("indent", [None, 2])
def test_every_record_of_opencode_is_recognised_by_its_importer_alone(
    tmp_path: Path, name: str, indent: int | None
) -> None:
    assert recognisers(written(tmp_path / "x.json", OPENCODE[name], indent=indent)) == ["opencode"]


def test_a_folder_of_several_programs_gives_ours_and_names_the_others(tmp_path: Path) -> None:
    main = Claude()
    main.say(0, "Go.")
    main.answer(1, "m1", text("A"))
    main.write(tmp_path)
    for name in ("gemini-prompts", "iflow", "iflow-result"):
        written(tmp_path / f"{name}.jsonl", OTHERS[name][1], indent=None)

    done = run_corpus("trace", "import", str(tmp_path), "--to", "jsonl")
    assert len(done.stdout.splitlines()) == 1
    for said in ("2 files are of iFlow", "1 file is of the list of prompts of Gemini CLI"):
        assert f"corpus: {said}, which is not read" in done.stderr


# Usage of 0 tokens


def test_usage_of_no_tokens_is_unknown_and_not_at_least_nothing(tmp_path: Path) -> None:
    main = Claude()
    main.say(0, "Go.")
    for number in (1, 2):
        main.answer(number, f"m{number}", text("A"), stop=None)["message"]["usage"] = {
            "input_tokens": 0, "output_tokens": 0,
        }  # fmt: skip
    main.write(tmp_path)

    trace = trace_of(tmp_path)
    assert trace["costs"]["tokens"] is None
    assert trace["reasons"] == {"costs.tokens": "answers without usage: 2"}
    assert trace["import_report"]["token_ledger"] == {
        "unknown: usage of 0 tokens, which no call has": {"records": 2, "tokens": {}}
    }
    screen = run_corpus("trace", "doctor", str(tmp_path)).stdout
    assert "at least 0" not in screen


def test_an_answer_that_failed_may_have_taken_nothing(tmp_path: Path) -> None:
    main = Claude()
    main.say(0, "Go.")
    main.answer(1, "m1", text("A"), usage=(5, 2, 0, 0))
    failed = main.answer(2, "m2", text("API Error"), isApiErrorMessage=True, model="<synthetic>")
    failed["message"]["usage"] = claude_usage(0, 0)
    main.write(tmp_path)

    assert trace_of(tmp_path)["costs"]["tokens"] == 7
