"""Write made-up logs of agent teams in every format that can be imported, for speed and scale tests.

    python scripts/synthesize_logs.py claude_code 40 /tmp/logs     # about 40 MB, several sessions

In every session a lead again and again asks workers, which read files and answer. Contents are as long as in
logs of real work: what tools print is most of it. The same numbers and seed give the same bytes.
"""

import argparse
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from made_up_teams import START, Files, Round, Turn, end_of, moment, round_
from synthesize_coding_agents import copilot_cli, gemini_cli, kimi_code, qwen_code
from synthesize_programs import autogen, google_adk, inspect_ai, opencode
from synthesize_spans import langsmith, openai_agents, otlp_genai, otlp_openinference

SESSION_BYTES = 4_000_000
PLAIN = ("claude_code", "codex", "qwen_code", "gemini_cli", "copilot_cli", "kimi_code")
"""Formats of programs in JavaScript and Rust, whose JSON does not escape letters beyond ASCII."""


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("form", choices=WRITERS, help="the format")
    parser.add_argument("megabytes", type=int, help="how much to write, in 10^6 bytes; a little more is written")
    parser.add_argument("folder", type=Path, help="the folder to write to")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    write(arguments.form, arguments.folder, arguments.megabytes * 1_000_000, arguments.seed)


def write(form: str, folder: Path, least_bytes: int, seed: int = 1) -> None:
    """Write sessions until they have at least a number of bytes."""
    chance = random.Random(seed)
    number = output_tokens = 0
    while output_tokens < least_bytes:
        size = 0
        rounds: list[Round] = []
        while size < SESSION_BYTES:
            rounds.append(round_(chance, len(rounds)))
            # In any format, about half of the bytes are texts.
            for work in rounds[-1].works:
                size += 2 * sum(len(turn.text) + len(turn.printed) for turn in work.turns)
        for name, rows in WRITERS[form](number, rounds).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            is_plain = form in PLAIN
            indent = 2 if form == "atif" else None  # as Harbor and NVIDIA write them
            text = "".join(json.dumps(row, ensure_ascii=not is_plain, indent=indent) + "\n" for row in rows)
            output_tokens += path.write_bytes(text.encode("utf-8"))
        number += 1


# Claude Code


def claude_code(number: int, rounds: list[Round]) -> Files:
    """Return a transcript of the lead, and one of each worker."""
    session = f"{number:08x}-0000-4000-8000-000000000000"
    main = _Transcript(session, "")
    files = {f"{session}.jsonl": main.rows}
    main.user(0, "Review the reader, and say what is slow.")
    for team_round in rounds:
        call_ids = [(_use(f"{session[:8]}{work.name}"), work) for work in team_round.works]
        calls = [("Agent", call_id, {"subagent_type": "reader", "prompt": work.task}) for call_id, work in call_ids]
        main.answer(team_round.lead, f"lead{team_round.lead.start:.0f}", calls)
        for call_id, work in call_ids:
            agent = f"a{number:x}x{work.name}"
            worker = _Transcript(session, agent)
            files[f"{session}/subagents/agent-{agent}.jsonl"] = worker.rows
            worker.user(work.turns[0].start, work.task)
            for index, turn in enumerate(work.turns):
                read_id = _use(f"{agent}{index}")
                called = (
                    [("Read", read_id, {"file_path": f"/home/someone/project/{read_id}.py"})] if turn.printed else []
                )
                worker.answer(turn, f"{agent}{index}", called)
                if turn.printed:
                    worker.result(turn.done, read_id, turn.printed, {"type": "text", "file": {"content": turn.printed}})
            last = work.turns[-1]
            told = {"agentId": agent, "status": "completed", "totalTokens": 9, "usage": _claude_usage(last.usage)}
            main.result(last.done, call_id, last.text, {**told, "content": [{"type": "text", "text": last.text}]})
    return files


def _use(call: str) -> str:
    """Return the id of a call: letters and digits, like those of the service."""
    return f"toolu_{call.replace('-', 'x')}"


def _claude_usage(usage: tuple[int, int, int, int]) -> dict[str, int]:
    input_tokens, output_tokens, cached, _ = usage
    return {
        "input_tokens": input_tokens - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": output_tokens,
    }


class _Transcript:
    """Builds a transcript of Claude Code."""

    def __init__(self, session: str, agent: str) -> None:
        self.rows: list[dict[str, Any]] = []
        self._fixed = {
            "isSidechain": bool(agent),
            "userType": "external",
            "cwd": "/home/someone/project",
            "sessionId": session,
            "version": "2.1.180",
            "gitBranch": "main",
        }
        self._fixed |= {"agentId": agent} if agent else {}
        self._key = agent or session

    def user(self, second: float, content: Any, **more: Any) -> None:
        self._add("user", second, message={"role": "user", "content": content}, **more)

    def result(self, second: float, use: str, text: str, result: Mapping[str, Any]) -> None:
        block = {"tool_use_id": use, "type": "tool_result", "content": text}
        self.user(second, [block], toolUseResult=result)

    def answer(self, turn: Turn, key: str, calls: list[tuple[str, str, dict[str, Any]]]) -> None:
        """Add an answer as several rows: one for the text, and one for each call."""
        blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.text}]
        blocks += [
            {"type": "tool_use", "id": call_id, "name": tool, "input": arguments} for tool, call_id, arguments in calls
        ]
        for block in blocks:
            message = {
                "id": f"msg_{key}",
                "type": "message",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": [block],
                "stop_reason": None,
                "usage": _claude_usage(turn.usage),
            }
            self._add("assistant", turn.end, message=message, requestId=f"req_{key}")

    def _add(self, kind: str, second: float, **more: Any) -> None:
        number = len(self.rows)
        above = self.rows[-1]["uuid"] if self.rows else None
        name = f"{self._key}-{number:08d}"
        self.rows.append(
            {"parentUuid": above, **self._fixed, "type": kind, **more, "uuid": name, "timestamp": moment(second)}
        )


# Codex


def codex(number: int, rounds: list[Round]) -> Files:
    """Return a rollout of the lead, and one of each worker."""
    lead = _Rollout(f"{number:08x}-0000-7000-8000-ffffffffffff", 0)
    files = {lead.name: lead.rows}
    lead.event(0, "user_message", message="Review the reader.")
    for team_round in rounds:
        lead.think(team_round.lead)
        works = [
            (f"{number:08x}-0000-7000-8000-{work.name.replace('-', '').zfill(12)}", work) for work in team_round.works
        ]
        for work in team_round.works:
            lead.call(team_round.lead.end, f"call{work.name}", "spawn_agent", {"message": work.task})
        wait = f"wait{team_round.works[0].name}"
        lead.call(team_round.lead.end, wait, "wait", {"ids": []})
        lead.count(team_round.lead)
        for thread, work in works:
            lead.output(team_round.lead.end, f"call{work.name}", json.dumps({"agent_id": thread}))
        status = {thread: {"completed": work.turns[-1].text} for thread, work in works}
        lead.output(end_of(team_round), wait, json.dumps({"status": status, "timed_out": False}))
        for thread, work in works:
            worker = _Rollout(thread, work.turns[0].start, lead.thread)
            files[worker.name] = worker.rows
            worker.event(work.turns[0].start, "user_message", message=work.task)
            for index, turn in enumerate(work.turns):
                worker.think(turn)
                if turn.printed:
                    worker.call(turn.end, f"call{index}", "shell", {"command": ["bash", "-lc", f"cat file{index}.py"]})
                    worker.count(turn)
                    worker.output(turn.done, f"call{index}", turn.printed)
                else:
                    worker.count(turn)
    return files


class _Rollout:
    """Builds a rollout of Codex."""

    def __init__(self, thread: str, second: float, parent: str = "") -> None:
        self.thread = thread
        stamp = moment(second)
        self.name = f"2026/11/21/rollout-{stamp[:19].replace(':', '-')}-{thread}.jsonl"
        self.rows: list[dict[str, Any]] = []
        spawn = {"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1, "agent_role": "reader"}}}
        self._add(
            second,
            "session_meta",
            id=thread,
            timestamp=stamp,
            cwd="/home/someone/project",
            cli_version="0.150.0",
            source=spawn if parent else "cli",
        )
        self._add(second, "turn_context", cwd="/home/someone/project", model="gpt-5-codex")
        self._total = [0, 0, 0, 0]

    def event(self, second: float, kind: str, **payload: Any) -> None:
        self._add(second, "event_msg", type=kind, **payload)

    def think(self, turn: Turn) -> None:
        """Add reasoning, which is encrypted, and a text, which is written twice."""
        secret = (turn.text.encode().hex() * 4)[:1_200]
        self._add(turn.end, "response_item", type="reasoning", summary=[], content=None, encrypted_content=secret)
        content = [{"type": "output_text", "text": turn.text}]
        self._add(turn.end, "response_item", type="message", role="assistant", content=content)
        self.event(turn.end, "agent_message", message=turn.text)

    def call(self, second: float, name: str, tool: str, arguments: Mapping[str, Any]) -> None:
        given = json.dumps(arguments)
        self._add(second, "response_item", type="function_call", name=tool, arguments=given, call_id=name)

    def output(self, second: float, name: str, text: str) -> None:
        self._add(second, "response_item", type="function_call_output", call_id=name, output=text)

    def count(self, turn: Turn) -> None:
        """Add the counter of tokens, which is written twice."""
        input_tokens, output_tokens, cached, reasoning_tokens = turn.usage
        last = [input_tokens, cached, output_tokens, reasoning_tokens]
        self._total = [old + new for old, new in zip(self._total, last, strict=True)]
        names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
        info = {
            "total_token_usage": dict(zip(names, self._total, strict=True)),
            "last_token_usage": dict(zip(names, last, strict=True)),
            "model_context_window": 272_000,
        }
        for _ in range(2):
            self.event(turn.end, "token_count", info=info, rate_limits={"primary": {"used_percent": 4.0}})

    def _add(self, second: float, kind: str, **payload: Any) -> None:
        self.rows.append({"timestamp": moment(second), "type": kind, "payload": payload})


# ATIF


def atif(number: int, rounds: list[Round]) -> Files:
    """Return a trajectory with the trajectories of all workers inside."""
    session = f"{number:08x}-0000-4000-8000-000000000000"
    lead = _Trajectory(session, "lead", "user", "Review the reader, and say what is slow.", 0)
    below = []
    for team_round in rounds:
        call_ids = [f"call_{number:08x}{work.name.replace('-', 'x')}" for work in team_round.works]
        calls = [
            (call_id, "delegate", {"task": work.task}) for call_id, work in zip(call_ids, team_round.works, strict=True)
        ]
        step = lead.answer(team_round.lead, calls)
        for call_id, work in zip(call_ids, team_round.works, strict=True):
            worker = _Trajectory(session, work.name, "user", work.task, work.turns[0].start)
            below.append(worker.document)
            for index, turn in enumerate(work.turns):
                read_id = f"{call_id}x{index}"
                if turn.printed:
                    answer = worker.answer(
                        turn, [(read_id, "read_file", {"path": f"/home/someone/project/{read_id}.py"})]
                    )
                    answer["observation"] = {"results": [{"source_call_id": read_id, "content": turn.printed}]}
                else:
                    worker.answer(turn, [])
            told: dict[str, Any] = {"source_call_id": call_id, "content": work.turns[-1].text}
            told["subagent_trajectory_ref"] = [{"trajectory_id": work.name}]
            step.setdefault("observation", {"results": []})["results"].append(told)
    lead.document["subagent_trajectories"] = below
    return {f"{session}.json": [lead.document]}


def _definition(tool: str) -> dict[str, Any]:
    arguments = {"path": {"type": "string", "description": "Absolute path of the file, inside the project."}}
    parameters = {"type": "object", "properties": arguments, "required": ["path"]}
    described = "Gives the content of a file, with numbers of lines; at most 2,000 lines from an offset on."
    return {"type": "function", "function": {"name": tool, "description": described, "parameters": parameters}}


class _Trajectory:
    """Builds a trajectory of ATIF."""

    def __init__(self, session: str, name: str, source: str, task: str, second: float) -> None:
        self._steps: list[dict[str, Any]] = [
            {"step_id": 1, "timestamp": moment(second), "source": source, "message": task}
        ]
        self.document: dict[str, Any] = {
            "schema_version": "ATIF-v1.7",
            "session_id": session,
            "trajectory_id": name,
            "agent": {
                "name": name,
                "version": "1.0",
                "model_name": "example-large",
                "tool_definitions": [_definition(name) for name in ("read_file", "search", "delegate")],
            },
            "steps": self._steps,
        }

    def answer(self, turn: Turn, calls: list[tuple[str, str, dict[str, Any]]]) -> dict[str, Any]:
        input_tokens, output_tokens, cached, _ = turn.usage
        step: dict[str, Any] = {
            "step_id": len(self._steps) + 1,
            "timestamp": moment(turn.end),
            "source": "agent",
            "model_name": "example-large",
            "message": turn.text,
            "reasoning_content": turn.text[::-1],
            "metrics": {
                "prompt_tokens": input_tokens,
                "completion_tokens": output_tokens,
                "cached_tokens": cached,
                "cost_usd": input_tokens / 1e6,
            },
        }
        step["extra"] = self._extra(f"model-{len(self._steps)}", "example-large", turn.start, turn.end)
        if calls:
            step["tool_calls"] = [
                {
                    "tool_call_id": call_id,
                    "function_name": tool,
                    "arguments": arguments,
                    "extra": self._extra(call_id, tool, turn.end, turn.done),
                }
                for call_id, tool, arguments in calls
            ]
        self._steps.append(step)
        return step

    def _extra(self, key: str, what: str, begin: float, end: float) -> dict[str, Any]:
        """Return the caller and the times of a step, by the convention of NVIDIA."""
        name = self.document["trajectory_id"]
        return {
            "ancestry": {"function_id": key, "function_name": what, "parent_id": name, "parent_name": name},
            "invocation": {
                "invocation_id": key,
                "framework": "langchain",
                "status": "completed",
                "start_timestamp": START + begin,
                "end_timestamp": START + end,
            },
        }


WRITERS: dict[str, Callable[[int, list[Round]], Files]] = {
    "claude_code": claude_code,
    "codex": codex,
    "openai_agents": openai_agents,
    "otlp_genai": otlp_genai,
    "otlp_openinference": otlp_openinference,
    "langsmith": langsmith,
    "atif": atif,
    "opencode": opencode,
    "inspect_ai": inspect_ai,
    "autogen": autogen,
    "google_adk": google_adk,
    "qwen_code": qwen_code,
    "gemini_cli": gemini_cli,
    "copilot_cli": copilot_cli,
    "kimi_code": kimi_code,
}


if __name__ == "__main__":
    main()
