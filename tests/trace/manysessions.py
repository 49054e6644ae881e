"""A folder of made-up sessions of Claude Code, Codex and OpenCode, and what they spent, counted from what they hold.

The count knows nothing of the package: it reads the files that were written, with `json` and `sqlite3`.
"""

import json
import random
import shutil
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

ZONE = "Europe/Berlin"
"""A zone whose clocks change within the time of the sessions, on 2026-03-29."""

PROJECTS = ("/home/ada/src/shop", "/home/ada/src/search", "/home/ada/play/api", "/home/ada/work/api", "C:\\src\\till")
NAMES = dict(zip(PROJECTS, ("shop", "search", "play/api", "work/api", "till"), strict=True))
OPUS, SONNET, GPT = "claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929", "gpt-5.4"
PRICES: dict[str, dict[str, str]] = {
    "claude-opus-4-5": {"input": "5", "output": "25", "cache_read": "0.5", "cache_write": "6.25"},
    "claude-sonnet-4-5": {"input": "3", "output": "15", "cache_read": "0.3", "cache_write": "3.75"},
    "gpt-5.4": {"input": "2.5", "output": "15", "cache_read": "0.25"},
}
PRICE_TABLE = "date: 2026-03-01\ncurrency: USD\nmodels:\n" + "".join(
    f"  {model}: {{{', '.join(f'{kind}: {price}' for kind, price in prices.items())}}}\n"
    for model, prices in PRICES.items()
)

_KINDS = ("input", "output", "cache_read", "cache_write")
_FIRST = datetime(2026, 3, 20, 6, tzinfo=UTC)


class _Maker:
    """Makes sessions, the same ones for the same seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._random = random.Random(seed)

    def claude(self, number: int) -> None:
        """Write a session of Claude Code, some with a sub-agent, some resumed in a file of its own."""
        name = f"{number:08x}-0000-4000-8000-000000000000"
        project, model = self._random.choice(PROJECTS), self._random.choice((OPUS, SONNET))
        below = self._folder / "claude" / "projects" / "".join(c if c.isalnum() else "-" for c in project)
        rows = self._conversation(name, project, model, self._begin(), prefix=f"{number}")
        _write(below / f"{name}.jsonl", rows)
        if number % 5 == 0:
            spawned = self._conversation(name, project, SONNET, rows[-1]["timestamp"], prefix=f"{number}s")
            agent = f"a{number:07x}"
            spawned = [{**row, "isSidechain": True, "agentId": agent} for row in spawned]
            _write(below / name / "subagents" / f"agent-{agent}.jsonl", spawned)
        if number % 7 == 0:
            resumed = f"{number:08x}-0000-4000-8000-00000000000f"
            more = self._conversation(resumed, project, model, rows[-1]["timestamp"], prefix=f"{number}r")
            _write(below / f"{resumed}.jsonl", [{**row, "sessionId": resumed} for row in [*rows, *more]])

    def codex(self, number: int) -> None:
        """Write a session of Codex."""
        name, project = f"019fbc00-0000-7000-8000-{number:012x}", self._random.choice(PROJECTS)
        at = self._begin()
        rows = [
            _codex(at, "session_meta", id=name, timestamp=_iso(at), cwd=project, cli_version="0.150.0", source="cli")
        ]
        rows.append(_codex(at, "turn_context", cwd=project, model=GPT, approval_policy="never"))
        total: Counter[str] = Counter()
        for _ in range(self._random.randint(2, 30)):
            at += timedelta(seconds=self._random.randint(1, 900))
            rows.append(_codex(at, "event_msg", type="user_message", message="Go on."))
            at += timedelta(seconds=self._random.randint(2, 60))
            text = [{"type": "output_text", "text": "Done."}]
            rows.append(_codex(at, "response_item", type="message", role="assistant", content=text))
            cached, thought = self._random.randint(0, 9) * 1024, self._random.randint(0, 90)
            last = {
                "input_tokens": cached + self._random.randint(100, 4000),
                "cached_input_tokens": cached,
                "output_tokens": thought + self._random.randint(5, 900),
                "reasoning_output_tokens": thought,
            }
            last["total_tokens"] = last["input_tokens"] + last["output_tokens"]
            total.update(last)
            info = {"total_token_usage": dict(total), "last_token_usage": last}
            rows += [_codex(at, "event_msg", type="token_count", info=info)] * self._random.randint(1, 2)
        day = f"{at:%Y/%m/%d}"
        _write(self._folder / "codex" / "sessions" / day / f"rollout-{at:%Y-%m-%dT%H-%M-%S}-{name}.jsonl", rows)

    def opencode(self, number: int) -> None:
        """Write a session of OpenCode into the database of all of them."""
        name, project = f"ses_{number:08x}", self._random.choice(PROJECTS)
        at, model = self._begin(), self._random.choice((SONNET, GPT))
        path = self._folder / "opencode" / "opencode.db"
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as database, database:
            database.executescript(_TABLES)
            database.execute("INSERT INTO session VALUES (?, NULL, '1.18.33', ?, ?)", (name, _ms(at), project))
            for answer in range(self._random.randint(2, 20)):
                at += timedelta(seconds=self._random.randint(1, 900))
                _insert(database, name, f"{answer:04}a", at, [{"type": "text", "text": "Go on."}], role="user",
                        time={"created": _ms(at)})  # fmt: skip
                begin, at = at, at + timedelta(seconds=self._random.randint(2, 60))
                caches = {"read": self._random.randint(0, 50_000), "write": 0 if model == GPT else 77}
                tokens = {"input": self._random.randint(10, 3000), "output": self._random.randint(5, 900),
                          "reasoning": 0, "cache": caches}  # fmt: skip
                parts = [{"type": "text", "text": "Done."}, {"type": "step-finish", "reason": "stop", "tokens": tokens}]
                _insert(database, name, f"{answer:04}b", begin, parts, role="assistant", modelID=model, tokens=tokens,
                        time={"created": _ms(begin), "completed": _ms(at)})  # fmt: skip

    def _begin(self) -> datetime:
        return _FIRST + timedelta(minutes=self._random.randint(0, 40 * 24 * 60))

    def _conversation(
        self, name: str, project: str, model: str, begin: datetime | str, prefix: str
    ) -> list[dict[str, Any]]:
        """Make prompts and answers; an answer is one row or several, the last of which has its whole usage."""
        at = datetime.fromisoformat(begin) if isinstance(begin, str) else begin
        rows: list[dict[str, Any]] = []

        def row(kind: str, **fields: Any) -> None:
            uuid = f"{prefix}-{len(rows):024}"
            above = rows[-1]["uuid"] if rows else None
            rows.append({"parentUuid": above, "isSidechain": False, "userType": "external", "cwd": project,
                         "sessionId": name, "version": "2.1.180", "type": kind, "uuid": uuid, "timestamp": _iso(at),
                         **fields})  # fmt: skip

        for answer in range(self._random.randint(2, 30)):
            at += timedelta(seconds=self._random.randint(1, 900))
            row("user", message={"role": "user", "content": f"Prompt {answer} of {prefix}."})
            read, stored = self._random.randint(0, 60_000), self._random.randint(0, 4000)
            written = self._random.randint(30, 2000)
            for part in range(parts := self._random.randint(1, 3)):
                at += timedelta(seconds=self._random.randint(2, 60))
                usage = {
                    "input_tokens": 3 + answer,
                    "output_tokens": written if part == parts - 1 else 1,
                    "cache_read_input_tokens": read,
                    "cache_creation_input_tokens": stored,
                }
                block = {"type": "text", "text": f"Part {part}."}
                message = {"id": f"msg_{prefix}_{answer}", "role": "assistant", "model": model, "content": [block],
                           "stop_reason": "end_turn" if part == parts - 1 else None, "usage": usage}  # fmt: skip
                row("assistant", message=message, requestId=f"req_{prefix}_{answer}")
        return rows


def make(folder: Path, sessions: int, seed: int = 31) -> None:
    """Write sessions: five of ten of Claude Code, three of Codex, two of OpenCode; copies of some are beside them."""
    maker = _Maker(folder, seed)
    for number in range(sessions):
        programs = (maker.claude, maker.codex, maker.claude, maker.opencode, maker.claude)
        (programs[number % 5] if number % 10 != 8 else maker.codex)(number)
    (folder / "backup").mkdir()
    shutil.copy(folder / "opencode" / "opencode.db", folder / "backup")
    for number, path in enumerate(sorted(folder.rglob("*.jsonl"))):
        if number % 10 == 0 and "subagents" not in path.parts:
            shutil.copy(path, folder / "backup")


class Count:
    """What the sessions of a folder spent, by day, project and model: tokens by kind, and billionths of a dollar."""

    def __init__(self, folder: Path, zone: str = ZONE) -> None:
        self._zone = ZoneInfo(zone)
        self.by: dict[str, dict[str, Counter[str]]] = {
            name: defaultdict(Counter) for name in ("day", "project", "model")
        }
        self.usd: dict[str, dict[str, Fraction]] = {name: defaultdict(Fraction) for name in self.by}
        self.all: Counter[str] = Counter()
        self.all_usd = Fraction()
        answers: dict[object, tuple[str, str, str, Mapping[str, int]]] = {}
        for path in sorted(folder.rglob("*.jsonl")):
            rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            answers.update(_codex_answers(rows) if rows[0]["type"] == "session_meta" else _claude_answers(rows))
        for path in folder.rglob("*.db"):
            answers.update(_opencode_answers(path))
        for moment, project, model, tokens in answers.values():
            day = datetime.fromisoformat(moment).astimezone(self._zone).date().isoformat()
            prices = PRICES[model.removesuffix("-20251101").removesuffix("-20250929")]
            usd = sum(Fraction(prices[kind]) * tokens[kind] for kind in _KINDS if tokens[kind]) / 1_000_000
            self.all.update({**tokens, "answers": 1})
            self.all_usd += usd
            for name, key in (("day", day), ("project", NAMES[project]), ("model", model)):
                self.by[name][key].update({**tokens, "answers": 1})
                self.usd[name][key] += usd


def _claude_answers(rows: list[dict[str, Any]]) -> Iterator[tuple[object, tuple[str, str, str, Mapping[str, int]]]]:
    for row in rows:
        if row["type"] == "assistant":
            message, usage = row["message"], row["message"]["usage"]
            tokens = {
                "input": usage["input_tokens"],
                "output": usage["output_tokens"],
                "cache_read": usage["cache_read_input_tokens"],
                "cache_write": usage["cache_creation_input_tokens"],
            }
            yield (message["id"], row["requestId"]), (row["timestamp"], row["cwd"], message["model"], tokens)


def _codex_answers(rows: list[dict[str, Any]]) -> Iterator[tuple[object, tuple[str, str, str, Mapping[str, int]]]]:
    meta, before = rows[0]["payload"], -1
    for row in rows:
        if row["payload"].get("type") == "token_count":
            usage, total = (row["payload"]["info"][name] for name in ("last_token_usage", "total_token_usage"))
            if total["total_tokens"] != before:
                before = total["total_tokens"]
                tokens = {
                    "input": usage["input_tokens"] - usage["cached_input_tokens"],
                    "output": usage["output_tokens"],
                    "cache_read": usage["cached_input_tokens"],
                    "cache_write": 0,
                }
                yield (meta["id"], before), (row["timestamp"], meta["cwd"], GPT, tokens)


def _opencode_answers(path: Path) -> Iterator[tuple[object, tuple[str, str, str, Mapping[str, int]]]]:
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute(
            "SELECT message.id, directory, data FROM message JOIN session ON session.id = session_id"
        ).fetchall()
    for name, project, text in rows:
        data = json.loads(text)
        if data["role"] == "assistant":
            moment = datetime.fromtimestamp(data["time"]["completed"] / 1000, UTC).isoformat()
            used = data["tokens"]
            tokens = {
                "input": used["input"],
                "output": used["output"],
                "cache_read": used["cache"]["read"],
                "cache_write": used["cache"]["write"],
            }
            yield name, (moment, project, data["modelID"], tokens)


_TABLES = """
CREATE TABLE IF NOT EXISTS session (id text, parent_id text, version text, time_created integer, directory text);
CREATE TABLE IF NOT EXISTS message (id text, session_id text, time_created integer, data text);
CREATE TABLE IF NOT EXISTS part (id text, message_id text, session_id text, data text);
"""


def _insert(
    database: sqlite3.Connection, session: str, name: str, at: datetime, parts: list[dict[str, Any]], **data: Any
) -> None:
    """Add a message with its parts."""
    message = f"msg_{session}_{name}"
    database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (message, session, _ms(at), json.dumps(data)))
    for place, part in enumerate(parts):
        values = (f"prt_{session}_{name}_{place}", message, session, json.dumps(part))
        database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", values)


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _codex(at: datetime, kind: str, /, **payload: Any) -> dict[str, Any]:
    return {"timestamp": _iso(at), "type": kind, "payload": payload}


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
