"""Conversation logs for tests: rows of Claude Code and Codex built from a few words, imported, and told line by line."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core.builder import as_data
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.model.import_report import LedgerLine
from tests.conftest import ROOT
from tests.trace.spanlogs import checked

LOGS = ROOT / "tests" / "data" / "logs"
SESSION = "5e551000-0000-4000-8000-000000000000"
KINDS = ("input", "output", "cache_read", "cache_write", "reasoning")
START = 1_772_355_600  # 2026-03-01T09:00:00Z


def moment(second: float) -> str:
    """A moment as both programs write it."""
    return datetime.fromtimestamp(START + second, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def write(path: Path, rows: Sequence[Any]) -> Path:
    """Write rows as JSON Lines; bytes are written as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows]
    path.write_bytes(b"".join(lines))
    return path


def traces(*paths: Path, form: str = "", keep_content: bool = False) -> list[dict[str, Any]]:
    """The traces of files and folders, each sound, each with a ledger that adds up to its events."""
    found = []
    for session in importers.sessions([str(path) for path in paths], form):
        for trace in map(as_data, importers.read(session, Privacy(b"salt", keep_content))):
            checked(trace)
            assert counted(trace) == tokens(trace)
            found.append(trace)
    return found


def trace_of(*paths: Path, form: str = "") -> dict[str, Any]:
    """The only trace of files and folders."""
    (found,) = traces(*paths, form=form)
    return found


def tokens(trace: Mapping[str, Any], agent: str = "") -> dict[str, int]:
    """The tokens of a trace by kind, or those of one agent; copied history is not among them."""
    found: Counter[str] = Counter()
    for event in trace["events"]:
        if not event.get("copied_context") and agent in ("", event["agent"]):
            found.update(event.get("tokens", {}))
    return {kind: found[kind] for kind in KINDS}


def counted(trace: Mapping[str, Any]) -> dict[str, int]:
    """The tokens that the ledger says were counted, by kind."""
    found: Counter[str] = Counter()
    for line, entry in trace["import_report"]["token_ledger"].items():
        if line.startswith("counted:"):
            found.update(entry["tokens"])
    return {kind: found[kind] for kind in KINDS}


def by_agent(trace: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The tokens of each agent that has any: input, output, cache reads, cache writes, reasoning."""
    agents = {event["agent"] for event in trace["events"] if "tokens" in event}
    return {agent: tuple(tokens(trace, agent).values()) for agent in sorted(agents)}


def parents(trace: Mapping[str, Any]) -> dict[str, str]:
    """Who spawned each agent; empty where nobody is known to have."""
    return {agent["id"]: agent.get("parent", "") for agent in trace["agents"]}


def problems(trace: Mapping[str, Any]) -> dict[str, int]:
    """What the report calls odd, with how often."""
    return {what: entry["number"] for what, entry in trace["import_report"]["problems"].items()}


def ledger(trace: Mapping[str, Any]) -> dict[str, int]:
    """The lines of the token ledger with their numbers of records."""
    return {line: entry["records"] for line, entry in trace["import_report"]["token_ledger"].items()}


def of_type(trace: Mapping[str, Any], *kinds: str) -> list[str]:
    """The events of some types: who did what, to whom, with which tool, how it ended."""
    return [_said(event) for event in trace["events"] if event["type"] in kinds]


def links(trace: Mapping[str, Any], *kinds: str) -> list[str]:
    """The edges of some types between events as `of_type` tells them."""
    said = {event["id"]: _said(event) for event in trace["events"]}
    return sorted(f"{said[edge['src']]} -> {said[edge['dst']]}" for edge in trace["edges"] if edge["type"] in kinds)


def _said(event: Mapping[str, Any]) -> str:
    target = f" > {event['to']}" if "to" in event else ""
    tool = f" {event['tool']}" if "tool" in event else ""
    status = event.get("status", "ok")
    ending = "" if status == "ok" else f" ({' '.join(filter(None, (status, event.get('error_type', ''))))})"
    return f"{event['agent']} {event['type']}{tool}{target}{ending}"


FURTHER_FIELDS = ("t_request", "t_first_token", "run_time", "finish_reason", "cost_usd", "trusted")
"""The fields of events that only some logs have."""


def told(trace: Mapping[str, Any]) -> str:
    """All that a trace says, but for the hashes of contents, in lines that a person can check."""
    lines = [f"{trace['system']} {trace['topology']}"]
    source = trace["events"][0]["source"]
    lines.append(f"log of {source['format']} {source.get('version', '')}".rstrip())
    lines += [f"{name} {trace[name]}" for name in ("trace_id", "clock", "metrics", "run") if name in trace]
    lines += ["", "agents"]
    lines += ["  " + ", ".join(f"{key} {value}" for key, value in agent.items()) for agent in trace["agents"]]
    lines += ["", "events"]
    for event in trace["events"]:
        end = f"-{event['t_end']:g}" if "t_end" in event else ""
        spent = " ".join(f"{kind} {number}" for kind, number in event.get("tokens", {}).items())
        more = [
            f"[{event['call_id']}]" if "call_id" in event else "",
            f"as {event['role']}" if "role" in event else "",
            event.get("model", ""),
            f"{event['token_basis']}: {spent}" if spent else event.get("token_basis", ""),
            *(
                name
                for name in ("copied_context", "inferred", "background", "unfinished", "content_ref")
                if name in event
            ),
            *(f"{name} {event[name]}" for name in FURTHER_FIELDS if name in event),
        ]
        place = f"{event['source']['file'].rpartition('/')[2]}:{event['source']['line']}"
        lines.append(f"  {event['id']:4} {event['t']:g}{end} {_said(event)} {' | '.join(filter(None, more))} ({place})")
    lines += [
        f"  turn of {turn['agent']} {turn['t']:g}-{turn['t_end']:g}: {turn['run_time']:g} s"
        + (f" without {turn['excludes']}" if "excludes" in turn else "")
        for turn in trace.get("turns", ())
    ]
    lines += ["", "edges"]
    lines += sorted((f"  {edge['src']} -{edge['type']}-> {edge['dst']}" for edge in trace["edges"]), key=_by_number)
    lines += ["", "costs " + ", ".join(f"{name} {value}" for name, value in trace["costs"].items())]
    lines += [f"reason {name}: {why}" for name, why in trace.get("reasons", {}).items()]
    report = trace["import_report"]
    lines += [
        "",
        f"read {report['records_read']}, repaired {report['repaired']}, out of order {report['out_of_order']}",
    ]
    for title in ("dropped", "problems"):
        for what, entry in report[title].items():
            places = ", ".join(place.rpartition("/")[2] for place in entry["for_example"])
            lines.append(f"{title}: {what}: {entry['number']} ({places})")
    lines += [f"skipped: {kind}: {number}" for kind, number in report["skipped"].items()]
    lines += [f"unknown: {kind}: {number}" for kind, number in report["unknown_kinds"].items()]
    lines += [f"context window: {model}: {size}" for model, size in report.get("context_windows", {}).items()]
    for line, entry in report["token_ledger"].items():
        spent = ", ".join(f"{kind} {number}" for kind, number in entry["tokens"].items())
        lines.append(f"ledger: {line}: {entry['records']} ({spent})")
    return "\n".join(lines) + "\n"


def _by_number(edge: str) -> tuple[int, ...]:
    return tuple(int(word[1:]) for word in edge.replace("->", " ").split("-")[0].split() if word[1:].isdecimal())


def documented(importer: str) -> list[str]:
    """The lines of the ledger that docs/importers.md says an importer writes."""
    text = (ROOT / "docs" / "importers.md").read_text("utf-8")
    table = text.partition("| line of the ledger | importers |\n")[2].partition("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[1:]]
    return sorted(line for line, importers in rows if f"`{importer}`" in importers)


def ledger_lines(*folders: str) -> list[str]:
    """The lines that the modules in folders of importers can write into a ledger."""
    files = (file for folder in folders for file in (Path(importers.__file__).parent / folder).glob("*.py"))
    names = {name for file in files for name in re.findall(r"LedgerLine\.([A-Z_]+)", file.read_text("utf-8"))}
    return sorted(LedgerLine[name] for name in names)


class Claude:
    """The rows of one Claude Code file; each goes behind the one before unless `parentUuid` says otherwise."""

    def __init__(self, session: str = SESSION, agent: str = "") -> None:
        self.session, self.agent = session, agent
        self.rows: list[Any] = []
        self.last: str | None = None

    def row(self, kind: str, second: float, **fields: Any) -> dict[str, Any]:
        """Add a row of any type."""
        uuid = f"{self.agent or 'main'}-{self.session[0]}{self.session[-4:]}-{len(self.rows):024}"
        row: dict[str, Any] = {
            "parentUuid": self.last, "isSidechain": bool(self.agent), "sessionId": self.session, "version": "2.1.180",
            "type": kind, "uuid": uuid, "timestamp": moment(second),
        }  # fmt: skip
        if self.agent:
            row["agentId"] = self.agent
        row.update(fields)
        self.rows.append(row)
        self.last = row["uuid"]
        return row

    def say(self, second: float, text: Any, **fields: Any) -> dict[str, Any]:
        """Add a user row with a text."""
        return self.row("user", second, message={"role": "user", "content": text}, **fields)

    def answer(
        self,
        second: float,
        name: str,
        *blocks: Any,
        usage: Any = (1, 1, 0, 0),
        stop: str | None = "end_turn",
        **fields: Any,
    ) -> dict[str, Any]:
        """Add a row of a model's answer; `usage` is input, output, cache reads, cache writes."""
        message = {"id": name, "role": "assistant", "model": fields.pop("model", "claude-x"), "content": list(blocks),
                   "stop_reason": stop}  # fmt: skip
        if usage is not None:
            message["usage"] = claude_usage(*usage)
        return self.row("assistant", second, message=message, **{"requestId": f"req_{name}", **fields})

    def result(self, second: float, use: str, text: Any, details: Any = None, **fields: Any) -> dict[str, Any]:
        """Add the result of a call."""
        block = {"type": "tool_result", "tool_use_id": use, "content": text, **fields}
        more = {} if details is None else {"toolUseResult": details}
        return self.row("user", second, message={"role": "user", "content": [block]}, **more)

    def write(self, folder: Path, below: str = "") -> Path:
        """Write the file where Claude Code of today puts it."""
        if self.agent:
            return write(folder / self.session / "subagents" / below / f"agent-{self.agent}.jsonl", self.rows)
        return write(folder / f"{self.session}.jsonl", self.rows)


def claude_usage(read: int, written: int, cached: int = 0, stored: int = 0) -> dict[str, int]:
    """A usage as Claude reports it."""
    return {
        "input_tokens": read, "output_tokens": written, "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": stored,
    }  # fmt: skip


def text(words: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": words}


def use(name: str, tool: str, /, **given: Any) -> dict[str, Any]:
    """A block that calls a tool."""
    return {"type": "tool_use", "id": name, "name": tool, "input": given}


def spawn(name: str, prompt: str, tool: str = "Agent", /, **given: Any) -> dict[str, Any]:
    """A block that spawns a sub-agent."""
    return use(name, tool, subagent_type="worker", prompt=prompt, **given)


class Codex:
    """The rows of one Codex rollout, with the state of its counter."""

    def __init__(self, thread: str, created: float = 0, **meta: Any) -> None:
        self.thread = thread
        self.rows: list[Any] = []
        self.total = (0, 0, 0, 0)
        self.row(created, "session_meta", id=thread, timestamp=moment(created), cli_version="0.150.0",
                 **{"source": "cli", **meta})  # fmt: skip

    def row(self, second: float, kind: str, /, **payload: Any) -> None:
        """Add a row of any type."""
        self.rows.append({"timestamp": moment(second), "type": kind, "payload": payload})

    def item(self, second: float, kind: str, /, **payload: Any) -> None:
        """Add an item of the conversation."""
        self.row(second, "response_item", type=kind, **payload)

    def event(self, second: float, kind: str, /, **payload: Any) -> None:
        """Add an event."""
        self.row(second, "event_msg", type=kind, **payload)

    def typed(self, second: float, words: str) -> None:
        """Somebody enters a text."""
        self.event(second, "user_message", message=words)

    def says(self, second: float, words: str) -> None:
        """The model answers with a text."""
        self.item(second, "message", role="assistant", content=[{"type": "output_text", "text": words}])

    def call(self, second: float, tool: str, name: str, /, **given: Any) -> None:
        """The model calls a tool."""
        self.item(second, "function_call", name=tool, arguments=json.dumps(given), call_id=name)

    def output(self, second: float, name: str, said: Any) -> None:
        """A tool has an output."""
        said = said if isinstance(said, str) else json.dumps(said)
        self.item(second, "function_call_output", call_id=name, output=said)

    def count(self, second: float, *spent: int, rows: int = 2, total: tuple[int, ...] | None = None) -> None:
        """The counter moves by input, cached input, output, reasoning, and says so in some rows."""
        self.total = total or tuple(map(sum, zip(self.total, spent, strict=True)))  # type: ignore[assignment]
        info = {"total_token_usage": codex_usage(*self.total), "last_token_usage": codex_usage(*spent)}
        for number in range(rows):
            self.event(second + number / 100, "token_count", info=info, rate_limits={"used": second + number})

    def write(self, folder: Path) -> Path:
        """Write the rollout under the name that Codex gives it."""
        return write(folder / f"rollout-2026-03-01T09-00-00-{self.thread}.jsonl", self.rows)


def codex_usage(read: int, cached: int, written: int, thought: int) -> dict[str, int]:
    """A usage as Codex reports it."""
    return {
        "input_tokens": read, "cached_input_tokens": cached, "output_tokens": written,
        "reasoning_output_tokens": thought, "total_tokens": read + written,
    }  # fmt: skip


def spawned(parent: str, **more: Any) -> dict[str, Any]:
    """The source of a thread that another has spawned."""
    return {"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1, **more}}}
