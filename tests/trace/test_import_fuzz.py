"""Conversation logs that were damaged at random, that hold secrets, that are huge: imported, refused, never more."""

import builtins
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base import budget
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core.builder import as_data
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from tests.conftest import ROOT
from tests.effort import assert_grows, cpu_seconds, tries
from tests.trace.conversationlogs import LOGS, Claude, Codex, counted, moment, spawn, spawned, tokens, trace_of, traces
from tests.trace.spanlogs import checked

FORMATS = ("claude_code", "codex")
FIXTURES = {form: sorted((LOGS / form).iterdir()) for form in FORMATS}
LINES = {
    form: [line for file in sorted((LOGS / form).rglob("*.jsonl")) for line in file.read_bytes().splitlines() if line]
    for form in FORMATS
}
ALL = [(form, path) for form in FORMATS for path in FIXTURES[form]]
NAMES = [f"{form}-{path.stem}" for form, path in ALL]
JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 10**30, 1e308, "", "x", "\x00", "é" * 5, [], {}, [[]], {"a": {"b": []}},
    "2026-03-01T09:00:06.500Z", "1900-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01",
    "main", "a111", "b222", "toolu_a", "call_a", "user", "assistant",
)  # fmt: skip
MOST_TIMES = 100


# Mutation


def mutated_value(value: Any, chance: random.Random, depth: int = 0) -> Any:
    """The value with one thing changed somewhere in it."""
    if isinstance(value, (dict, list)) and value and chance.random() < 0.85 and depth < 8:
        keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        key, draw = chance.choice(keys), chance.random()
        if draw < 0.12:
            del value[key]
        elif draw < 0.2:
            value[chance.choice(keys)] = value[key]
        else:
            value[key] = mutated_value(value[key], chance, depth + 1)
        return value
    return deepcopy(chance.choice(JUNK))  # what is put in may be changed by the next call


def mutated(lines: list[bytes], chance: random.Random, pool: list[bytes]) -> list[bytes]:
    """Lines removed, doubled, moved, borrowed, cut, damaged, given one time, or changed inside."""
    for _ in range(chance.randint(1, 8)):
        if not lines:
            break
        place, draw = chance.randrange(len(lines)), chance.random()
        if draw < 0.1:
            del lines[place]
        elif draw < 0.18:
            lines.insert(chance.randrange(len(lines) + 1), lines[place])
        elif draw < 0.26:
            other = chance.randrange(len(lines))
            lines[place], lines[other] = lines[other], lines[place]
        elif draw < 0.31:
            lines.insert(place, chance.choice(pool))
        elif draw < 0.34:
            chance.shuffle(lines)
        elif draw < 0.38:
            lines[place] = lines[place][: chance.randrange(len(lines[place]) + 1)]
        elif draw < 0.43:
            stamp = json.dumps(moment(chance.randrange(60))).encode()
            lines = [re.sub(rb'(?<="timestamp": )"[^"]*"', stamp, line) for line in lines]
        elif draw < 0.46 and lines[place]:
            damaged = bytearray(lines[place])
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            lines[place] = bytes(damaged)
        else:
            try:
                value = json.loads(lines[place])
            except ValueError:
                continue
            lines[place] = json.dumps(mutated_value(value, chance)).encode()
    return lines


def copied(form: str, source: Path, folder: Path) -> Iterator[tuple[Path, list[bytes]]]:
    """The files of a fixture with their lines, and where they go below a folder."""
    for file in [source] if source.is_file() else sorted(source.rglob("*.json*")):
        target = folder / file.relative_to(LOGS / form)
        target.parent.mkdir(parents=True, exist_ok=True)
        yield target, file.read_bytes().splitlines()


def attempt(folder: Path, form: str, *, keep_content: bool) -> int:
    """Import what is in a folder; whatever comes of it is sound, and how many traces that are."""
    number = 0
    try:
        sessions = importers.sessions(str(folder), form)
    except DataFileError:
        return 0
    for session in sessions:
        try:
            for trace in map(as_data, importers.read(session, Privacy(b"salt", keep_content))):
                checked(trace)
                if session.form in FORMATS:
                    assert counted(trace) == tokens(trace)
                number += 1
        except DataFileError:
            continue
    return number


def survive(form: str, seed: int, folder: Path) -> int:
    """Damage one of the fixtures, and import it."""
    chance = random.Random(seed)
    for target, lines in copied(form, chance.choice(FIXTURES[form]), folder):
        kept = mutated(lines, chance, LINES[form]) if chance.random() < 0.7 else lines
        target.write_bytes(b"\n".join(kept) + (b"\n" if chance.random() < 0.9 else b""))
    number, words = 0, (form if chance.random() < 0.2 else "", chance.random() < 0.3)

    def call() -> None:
        nonlocal number
        number = attempt(folder, words[0], keep_content=words[1])

    assert cpu_seconds(call) < MOST_TIMES * plain_seconds(form)
    return number


@cache
def plain_seconds(form: str) -> float:
    """What all sound logs of a format take together."""
    return max(cpu_seconds(partial(attempt, LOGS / form, form, keep_content=False)), 0.01)


@pytest.mark.parametrize("form", FORMATS)
def test_damaged_logs_give_sound_traces_or_none(tmp_path: Path, form: str) -> None:
    traces_made = [survive(form, seed, tmp_path / str(seed)) for seed in range(tries(80, 25))]

    assert sum(traces_made) > tries(40, 12)


@pytest.mark.parametrize(
    ("form", "seed"),
    [("claude_code", 1141), ("claude_code", 1921), ("claude_code", 1993), ("claude_code", 3907), ("codex", 1896)],
)
def test_what_a_spawned_agent_does_at_that_instant_comes_after_its_spawn(form: str, seed: int, tmp_path: Path) -> None:
    """Damaged times put a spawn, what the agent does, and what follows from it at one instant."""
    assert survive(form, seed, tmp_path) > 0


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_thousands_of_damaged_logs_give_sound_traces_or_none(tmp_path: Path, form: str) -> None:
    import shutil

    for seed in range(1000, 4000):
        survive(form, seed, tmp_path / str(seed))
        shutil.rmtree(tmp_path / str(seed))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "words", ["", "\n\n", "[]", "[" * 100_000, '{"type": ' * 50_000, "\ufeff{}", "\x00" * 1000, "null\n" * 10]
)
def test_what_is_no_log_is_refused(tmp_path: Path, form: str, words: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(words, "utf-8")

    with pytest.raises(DataFileError):
        list(importers.read(importers.sessions(str(path), form)[0], Privacy(b"salt")))


@pytest.mark.parametrize(("form", "path"), ALL, ids=NAMES)
def test_a_log_may_end_anywhere(tmp_path: Path, form: str, path: Path) -> None:
    """As it does while it is written."""
    for target, lines in copied(form, path, tmp_path):
        target.write_bytes(b"\n".join(lines))
        whole = target.read_bytes()
        for part in range(1, 12, tries(1, 2)):
            target.write_bytes(whole[: len(whole) * part // 12])
            attempt(tmp_path, "", keep_content=False)
        target.write_bytes(whole)


@pytest.mark.parametrize("form", FORMATS)
def test_a_row_that_is_nested_deeply_is_dropped(tmp_path: Path, form: str) -> None:
    depth = tries(100_000, 10_000)
    deep = b"[" * depth + b"]" * depth
    if form == "codex":
        codex = Codex("t1")
        codex.typed(1, "Go.")
        codex.rows.append(b'{"timestamp": "", "type": "event_msg", "payload": {"type": "x", "deep": ' + deep + b"}}\n")
        codex.write(tmp_path)
    else:
        main = Claude()
        main.say(1, "Go.")
        main.rows.append(b'{"type": "user", "message": {"content": ' + deep + b"}}\n")
        main.write(tmp_path)

    assert trace_of(tmp_path)["import_report"]["dropped"]["not JSON"]["number"] == 1


# Files


@pytest.mark.parametrize(("form", "path"), ALL, ids=NAMES)
def test_no_file_outside_the_given_paths_is_opened(
    tmp_path: Path, form: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret" / f"{path.stem}.jsonl"
    secret.parent.mkdir()
    secret.write_bytes(LINES[form][0])
    folder = tmp_path / "given"
    for target, lines in copied(form, path, folder):
        named = [
            re.sub(rb'"(cwd|version)": "[^"]*"', rb'"\1": "' + str(secret).encode() + b'"', line) for line in lines
        ]
        target.write_bytes(b"\n".join(named))
        (target.parent / "link.jsonl").unlink(missing_ok=True)
        (target.parent / "link.jsonl").symlink_to(secret)
    opened: list[str] = []

    def noting(plain_open: Callable[..., Any]) -> Callable[..., Any]:
        def open_(file: Any, *more: Any, **options: Any) -> Any:
            if not isinstance(file, int):  # a descriptor is of a file that was opened before
                opened.append(os.fsdecode(file))
            return plain_open(file, *more, **options)

        return open_

    importers.importer(form)  # loads the module now, which opens files, too
    for module in (builtins, os):
        monkeypatch.setattr(module, "open", noting(module.open))
    for session in importers.sessions(str(folder)):
        list(importers.read(session, Privacy(b"salt")))

    assert opened
    allowed = folder.resolve(), Path(importers.__file__).parent  # the package reads files of its own on first use
    assert [name for name in opened if not any(map(Path(name).resolve().is_relative_to, allowed))] == []


# Privacy

SECRETS = ("someone.else@example.org", "/home/someone/private/plan", "/Users/someone/plan", "sk-ant-0123456789abcdefghij",
           "ghp_0123456789abcdefghij", "AKIA0123456789ABCDEF")  # fmt: skip
WORDS = "quokka wombat numbat"
TEXTS = frozenset(("text", "content", "message", "prompt", "command", "arguments", "output", "input", "script", "stdout",
                   "stderr", "result", "file_path", "cwd", "gitBranch", "last_agent_message", "description"))  # fmt: skip
FIXED = frozenset(("type", "timestamp", "role", "kind", "status", "subtype", "stop_reason"))


def seeded(value: Any, chance: random.Random, key: str = "") -> Any:
    """The value with words in its texts, and with a secret in any of its strings now and then."""
    if isinstance(value, dict):
        return {name: seeded(inner, chance, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [seeded(inner, chance, key) for inner in value]
    if not isinstance(value, str) or key in FIXED:
        return value
    if value.startswith("{"):  # JSON as text
        return json.dumps(seeded(json.loads(value), chance, key))
    more = f" {WORDS}" if key in TEXTS else ""
    return f"{value}{more} {chance.choice(SECRETS)}" if key in TEXTS or chance.random() < 0.3 else value + more


def with_secrets(form: str, path: Path, folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    for target, lines in copied(form, path, folder):
        if target.suffix == ".json":
            target.write_text(json.dumps(seeded(json.loads(b"\n".join(lines)), chance)), "utf-8")
            continue
        rows = []
        for line in lines:
            try:
                rows.append(json.dumps(seeded(json.loads(line), chance)).encode())
            except ValueError:
                rows.append(line)
        target.write_bytes(b"\n".join(rows))


@pytest.mark.parametrize(("form", "path"), ALL, ids=NAMES)
def test_addresses_home_folders_keys_and_contents_stay_in_the_log(tmp_path: Path, form: str, path: Path) -> None:
    for seed in range(tries(5, 2)):
        folder = tmp_path / f"{seed} someone.else@example.org"
        with_secrets(form, path, folder, seed)
        made = traces(folder)
        assert made
        for trace in made:
            said = json.dumps(trace, ensure_ascii=False)
            assert [secret for secret in (*SECRETS, *WORDS.split(), "someone") if secret in said] == []


@pytest.mark.parametrize(("form", "path"), ALL, ids=NAMES)
def test_contents_are_kept_where_that_is_wanted(tmp_path: Path, form: str, path: Path) -> None:
    with_secrets(form, path, tmp_path, 1)
    found = [
        as_data(trace)
        for session in importers.sessions(str(tmp_path))
        for trace in importers.read(session, Privacy(b"", True))
    ]

    assert WORDS in json.dumps(found)


def test_the_same_salt_gives_the_same_hashes_and_another_gives_others(tmp_path: Path) -> None:
    main = Claude()
    main.say(0, "Go.")
    main.say(1, "Go.")
    path = main.write(tmp_path)

    def references(salt: bytes) -> list[str]:
        (session,) = importers.sessions(str(path))
        return [
            event["content_ref"]
            for trace in importers.read(session, Privacy(salt))
            for event in as_data(trace)["events"]
        ]

    one, again, other = references(b"1"), references(b"1"), references(b"2")
    assert one == again
    assert one[0] == one[1]
    assert set(one).isdisjoint(other)


# Size


PEAKS = """
import os, resource, sys
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core.privacy import Privacy
for form in importers.FORMATS:
    importers.importer(form)
for folder in sys.argv[1:]:
    if process := os.fork():
        assert os.waitpid(process, 0)[1] == 0
        continue
    events = 0
    for session in importers.sessions(folder):
        for trace in importers.read(session, Privacy(b"salt")):
            events += len(trace.events)
    print(events, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)
    os._exit(0)
"""


def peaks(*folders: Path) -> list[tuple[int, float]]:
    """How many events the logs in each folder give, and the most megabytes that importing them took, each by itself."""
    done = subprocess.run(
        [sys.executable, "-c", PEAKS, *folders], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    found = (line.split() for line in done.stdout.splitlines())
    return [(int(events), int(kilobytes) / 1024) for events, kilobytes in found]


def long_log(form: str, folder: Path, rows: int, size: int, largest: int = 0) -> None:
    """A log with a number of calls and outputs of some size, and one output that is larger."""
    body = "x" * size
    if form == "codex":
        codex = Codex("t1")
        for number in range(rows):
            codex.call(number, "shell", f"c{number}", command=[body[:100]])
            codex.count(number + 0.1, 10, 0, 1, 0, rows=1)
            codex.output(number + 0.5, f"c{number}", "y" * largest if largest and not number else body)
        codex.write(folder)
    else:
        main = Claude()
        for number in range(rows):
            main.answer(number, f"m{number}", {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}})
            main.result(number + 0.5, f"t{number}", "y" * largest if largest and not number else body, {"stdout": body})
        main.write(folder)


@pytest.mark.parametrize("form", FORMATS)
def test_memory_grows_with_the_events_and_not_with_what_was_written(tmp_path: Path, form: str) -> None:
    long_log(form, tmp_path / "small", 300, 100)
    long_log(form, tmp_path / "large", 300, tries(150_000, 70_000))

    (few, little), (many, much) = peaks(tmp_path / "small", tmp_path / "large")
    assert few == many
    assert sum(file.stat().st_size for file in (tmp_path / "large").iterdir()) > tries(40_000_000, 20_000_000)
    assert much - little < 15


@pytest.mark.parametrize("form", FORMATS)
def test_memory_is_bounded_by_the_largest_record(tmp_path: Path, form: str) -> None:
    long_log(form, tmp_path / "small", 10, 100)
    megabytes = tries(20, 10)
    long_log(form, tmp_path / "large", 10, 100, largest=megabytes * 1_000_000)

    (few, little), (many, much) = peaks(tmp_path / "small", tmp_path / "large")
    assert few == many
    assert much - little < 6 * megabytes


def test_a_line_beyond_all_measure_is_left_out_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(budget, "MAX_LINE_BYTES", 10_000)
    main = Claude()
    main.say(0, "Go.")
    main.say(1, "x" * 50_000)
    main.answer(2, "m1", spawn("t1", "Do it."))
    main.write(tmp_path)

    report = trace_of(tmp_path)["import_report"]
    assert report["dropped"]["line too long"]["number"] == 1
    assert report["records_read"] == 2


@pytest.mark.parametrize("form", FORMATS)
def test_thousands_of_sub_agents_are_put_together_in_time_that_grows_with_them(tmp_path: Path, form: str) -> None:
    """All have the same task, so that nothing but their order tells them apart."""
    assert_grows(lambda number: many_agents(tmp_path / str(number), form, number), 100, tries(800, 500), tries(22, 11))


def many_agents(tmp_path: Path, form: str, number: int) -> Callable[[], None]:
    """Write logs of so many sub-agents; return the call that imports them."""
    tmp_path.mkdir()
    if form == "codex":
        codex = Codex("t0")
        for place in range(number):
            codex.call(1, "spawn_agent", f"c{place}", message="Do it.")
            child = Codex(f"t{place + 1}", 2, source=spawned("t0"))
            child.typed(3, "Do it.")
            child.says(4, "Done.")
            child.count(4, 1, 0, 1, 0)
            child.write(tmp_path)
        codex.count(1, 1, 0, 1, 0)
        codex.write(tmp_path)
    else:
        main = Claude()
        for place in range(number):
            main.answer(1, "m1", spawn(f"t{place}", "Do it."))
            agent = Claude(agent=f"a{place}")
            agent.say(3, "Do it.")
            agent.answer(4, f"c{place}", {"type": "text", "text": "Done."})
            agent.write(tmp_path)
        main.write(tmp_path)

    def call() -> None:
        (session,) = importers.sessions(str(tmp_path))
        (trace,) = importers.read(session, Privacy(b"salt"))
        assert sum(event.type == "spawn" for event in trace.events) == number

    return call
