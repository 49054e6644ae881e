"""What `import` writes, `validate` accepts: logs whose ids are confused at random, and an importer that errs."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace import api, importers
from orchtrace_corpus.trace.importers.core.builder import as_data
from orchtrace_corpus.trace.importers.core.identity import UniqueNames
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from tests.conftest import run_corpus
from tests.effort import tries
from tests.trace.conversationlogs import LOGS, Claude, Codex, text, use
from tests.trace.spanlogs import checked

FILES = [
    path
    for form in importers.FORMATS
    for path in sorted((LOGS / form).rglob("*.json*"))
    if path.name != "truth.json" and path.stat().st_size < 400_000
]
IDS = re.compile(r"(?:id|Id|ID|uuid|name|author|recipient|type|kind|model)$")
MOMENTS = ("", "main", "user", "x", None, 5, [], "2026-03-01T09:00:00Z", "1900-01-01T00:00:00Z")

Place = tuple[dict[str, Any], str]


def texts(value: Any) -> Iterator[Place]:
    """The objects in a value, each with a member that is a text."""
    if isinstance(value, dict):
        for name, inner in list(value.items()):
            if isinstance(inner, str):
                yield value, name
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def confuse(rows: list[Any], chance: random.Random) -> None:
    """Have spans fail, give ids away twice, repeat rows, lose them, mix them up, put something else into texts."""
    for row in rows:
        if isinstance(row, dict) and row.keys() & {"run_type", "span_data"} and chance.random() < 0.2:
            row["error"] = "ValueError('x')" if "run_type" in row else {"message": "ValueError: x"}
    places = list(texts(rows))
    by_name: dict[str, list[Place]] = {}
    for value, name in places:
        if IDS.search(name):
            by_name.setdefault(name, []).append((value, name))
    for _ in range(chance.randint(1, 12) if by_name else 0):
        draw, same = chance.random(), by_name[chance.choice(list(by_name))]
        one, other = chance.choice(same), chance.choice(same)
        if draw < 0.5:
            one[0][one[1]] = other[0][other[1]]
        elif draw < 0.6:
            for value, name in same:
                value[name] = one[0][one[1]]
        elif draw < 0.75:
            rows.insert(chance.randrange(len(rows) + 1), json.loads(json.dumps(chance.choice(rows))))
        elif draw < 0.82 and len(rows) > 1:
            del rows[chance.randrange(len(rows))]
        elif draw < 0.95:
            value, name = chance.choice(places)
            value[name] = chance.choice(MOMENTS)
        else:
            chance.shuffle(rows)


def write_confused(folder: Path, chance: random.Random) -> None:
    """Write a fixture, alone or with those beside it, each with its ids confused."""
    folder.mkdir()
    first = chance.choice(FILES)
    group = [path for path in FILES if path.parent == first.parent][:6] if chance.random() < 0.4 else [first]
    for path in group:
        try:
            rows = [json.loads(line) for line in path.read_bytes().splitlines() if line]
        except ValueError:  # a document, or a line that is broken
            (folder / path.name).write_bytes(path.read_bytes())
            continue
        confuse(rows, chance)
        (folder / path.name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def test_logs_with_confused_ids_give_traces_that_validate_accepts(tmp_path: Path) -> None:
    made = 0
    number = tries(2_000, 70)
    for seed in range(number):
        folder = tmp_path / str(seed)
        write_confused(folder, random.Random(seed))
        try:
            sessions = importers.sessions(str(folder))
        except DataFileError:
            continue
        for one in importers.import_sessions(sessions, Privacy(b"salt")):
            if one.trace is not None:
                checked(as_data(one.trace))
                made += 1
    assert made > number // 2


def one_id_for_all(self: UniqueNames, wanted: str) -> str:
    """What an importer would do that errs."""
    return wanted


@pytest.fixture
def erring_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sessions, of which an importer that gives an id away twice spoils one."""
    claude, codex = Claude(), Codex("0199c000-0000-7000-8000-000000000001")
    claude.say(0, "Go.")
    claude.answer(1, "m1", text("A"))
    codex.typed(0, "Go.")
    for number in (1, 2):
        codex.call(number, "shell", "c1")
        codex.output(number + 0.5, "c1", "done")
    for one in (claude, codex):
        one.write(tmp_path / "logs")
    monkeypatch.setattr(UniqueNames, "add", one_id_for_all)
    return tmp_path


def test_a_trace_that_validate_would_refuse_is_not_written(erring_import: Path) -> None:
    out = erring_import / "out.jsonl"
    done = run_corpus("trace", "import", str(erring_import / "logs"), "-o", str(out))

    assert done.code == 1
    assert "left out: the trace of '0199c000-0000-7000-8000-000000000001': T210 $.events[" in done.stderr
    assert [json.loads(line)["system"] for line in out.read_text("utf-8").splitlines()] == ["claude-code"]
    assert run_corpus("trace", "validate", str(out)).code == 0


def test_python_is_given_the_error_instead_of_such_a_trace(erring_import: Path) -> None:
    found = list(api.import_logs(str(erring_import / "logs"), salt="ours"))

    assert [one.trace is None for one in found] == [False, True]
    assert "T210" in str(found[1].error)


def test_use_of_one_id_for_two_calls_is_reported_and_told_apart(tmp_path: Path) -> None:
    claude = Claude()
    claude.say(0, "Go.")
    claude.answer(1, "m1", use("toolu_1", "Read"))
    claude.result(2, "toolu_1", "done")
    claude.write(tmp_path)
    agent = Claude(agent="a1")
    agent.say(3, "Look.")
    agent.answer(4, "m2", use("toolu_1", "Grep"))
    agent.result(5, "toolu_1", "done")
    agent.write(tmp_path)

    (one,) = api.import_logs(str(tmp_path), salt="ours")
    assert one.trace is not None
    assert [event.call_id for event in one.trace.events if event.call_id] == [
        "toolu_1", "toolu_1", "toolu_1#2", "toolu_1#2",
    ]  # fmt: skip
    assert one.trace.import_report["problems"]["call id used again: numbered"]["number"] == 1
