"""Span logs that no program would write: mutated ones of the real SDKs, and spans made of anything."""

import json
import os
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orchtrace_corpus
from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core.builder import as_data
from orchtrace_corpus.trace.importers.core.logs import EmptyLogError, LogFile, LogReader
from orchtrace_corpus.trace.importers.core.privacy import Privacy
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.spans.events import write_events
from orchtrace_corpus.trace.importers.spans.span import Bundle, Call, Kind, Span, Task, Usage
from tests.effort import tries
from tests.trace.spanlogs import MODULES, checked, fixtures, imported

ALL = [(form, path) for form in MODULES for path in fixtures(form)]
LONGEST_SECONDS = 20

WATCHERS: list[list[str]] = []
"""Whoever wants to know which files are opened; a hook cannot be taken back."""


def _note_opened(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        for watcher in WATCHERS:
            watcher.append(os.path.realpath(os.fsdecode(arguments[0])))


sys.addaudithook(_note_opened)


@contextmanager
def watched(inside: Path) -> Iterator[None]:
    """Nothing outside of a folder is opened meanwhile but code and files of the package, and it takes no longer than an import may."""
    opened: list[str] = []
    before = signal.signal(signal.SIGALRM, _give_up)
    WATCHERS.append(opened)
    signal.alarm(LONGEST_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        WATCHERS.remove(opened)
        signal.signal(signal.SIGALRM, before)
    ours = Path(orchtrace_corpus.__file__).resolve().parent
    outside = {path for path in opened if not any(map(Path(path).is_relative_to, (inside.resolve(), ours)))}
    assert {path for path in outside if not path.endswith((".py", ".pyc"))} == set()


def _give_up(*_: object) -> None:
    raise AssertionError(f"an import takes longer than {LONGEST_SECONDS} s")


def assert_ledger_adds_up(trace: dict[str, Any]) -> None:
    """The lines of the ledger that count have the tokens of the events, exactly."""
    counted: dict[str, int] = {}
    for line, entry in trace["import_report"]["token_ledger"].items():
        if line.startswith("counted"):
            for kind, number in entry["tokens"].items():
                counted[kind] = counted.get(kind, 0) + number
    spent: dict[str, int] = {}
    for event in trace["events"]:
        for kind, number in event.get("tokens", {}).items():
            spent[kind] = spent.get(kind, 0) + number
    assert spent == counted
    assert len({agent["id"] for agent in trace["agents"]}) == len(trace["agents"])


# Mutated logs


STRANGE = [
    None, True, 0, -1, 1e300, 2**63, "", "x", "0", [], {}, [[]], {"a": 1}, "2026-01-01", 1e17, "\x00\u202e", "a" * 300,
    ["x"], {"key": "x"}, -5, 3.5, "NaN", "1795219238166300160", "/etc/hostname", "../../etc/hostname", "\\ud800", "{[",
]  # fmt: skip


def _places(value: Any) -> list[tuple[Any, Any]]:
    waiting, found = [value], []
    while waiting:
        current = waiting.pop()
        members = current.items() if isinstance(current, dict) else enumerate(current)
        for name, member in members:
            found.append((current, name))
            if isinstance(member, (dict, list)):
                waiting.append(member)
    return found


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _mutate(value: Any, chance: random.Random) -> None:
    for _ in range(chance.choice([1, 1, 2, 3, 6, 15])):
        places = _places(value)
        if not places:
            return
        holder, name = chance.choice(places)
        other, other_name = chance.choice(places)
        way = chance.randrange(5)
        if way == 0:
            holder[name] = chance.choice(STRANGE)
        elif way == 1:
            del holder[name]
        elif way == 2:
            holder[name] = _copy(other[other_name])
        elif way == 3 and isinstance(holder, list):
            holder.append(_copy(holder[name]))
        elif isinstance(holder, dict):
            twins = [place for place in places if place[1] == name and isinstance(place[0], dict)]
            other, other_name = chance.choice(twins)
            holder[name], other[name] = other[name], holder[name]


def _mutated(path: Path, chance: random.Random) -> bytes:
    text = path.read_text("utf-8")
    if chance.random() < 0.2:
        data = bytearray(text.encode())
        for _ in range(chance.choice([1, 3, 10])):
            place = chance.randrange(len(data))
            data[place : place + chance.randrange(40)] = chance.choice([b"", b"{", b'"', b"\n", b"\xff", b"\\u", b"[]"])
        return bytes(data)
    lines = path.suffix == ".jsonl"
    value = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
    _mutate(value, chance)
    return "\n".join(map(json.dumps, value)).encode() if lines else json.dumps(value, indent=1).encode()


def _import_mutated(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        chance = random.Random(seed)
        form, path = chance.choice(ALL)
        broken = tmp_path / f"x{path.suffix}"
        broken.write_bytes(_mutated(path, chance))
        try:
            with watched(tmp_path):
                with LogReader(LogFile(str(broken), broken.name)) as reader:
                    importers.recognise(reader)
                traces = imported(broken, form=form)
            for trace in traces:
                assert_ledger_adds_up(trace)
        except DataFileError:
            pass  # refused, which is one of the two right answers
        except Exception as error:
            raise AssertionError(f"seed {seed}: {path.name}") from error


def test_mutated_logs_are_imported_soundly_or_refused(tmp_path: Path) -> None:
    _import_mutated(tmp_path, range(tries(400, 50)))


@pytest.mark.slow
def test_many_mutated_logs_are_imported_soundly_or_refused(tmp_path: Path) -> None:
    _import_mutated(tmp_path, range(1_000, 16_000))


def test_a_log_that_names_files_opens_none_and_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    secret, folder = tmp_path / "secret.jsonl", tmp_path / "logs"
    folder.mkdir()
    for form, path in ALL:
        text = path.read_text("utf-8").replace("scripted", str(secret).replace("/", "\\/"))
        (folder / f"{form}-{path.name}").write_text(text, "utf-8")
    secret.write_text((folder / "langsmith-react.jsonl").read_text("utf-8"), "utf-8")
    (folder / "link.jsonl").symlink_to(secret)

    with watched(folder):
        sessions = importers.sessions(str(folder))
        traces = [as_data(trace) for session in sessions for trace in importers.read(session, Privacy(b"salt"))]

    assert len(traces) >= len(ALL) - len(sessions) // 2
    assert "secret" not in {event["source"]["file"] for trace in traces for event in trace["events"]}


# Spans made of anything


NAMES = st.sampled_from(["a", "b", "agent", "a#2", ""])
MOMENTS = st.none() | st.integers(1, 12).map(float)


@st.composite
def bundles(draw: st.DrawFn) -> Bundle:
    """Spans that no program would write."""
    bundle = Bundle("t")
    count = draw(st.integers(1, 14))
    ids = st.integers(0, count).map(str)
    tasks = st.builds(
        Task, st.integers(0, 3), st.sampled_from("abc"), st.sampled_from([("__pregel_push",), ("join:a+b:c",), ()]),
        st.sampled_from(["n1", "n2", "n3"]),
    )  # fmt: skip
    numbers = st.none() | st.integers(0, 9)
    for number in range(count):
        bundle.spans.append(
            Span(
                id=draw(st.just(str(number)) | ids),
                parent=draw(ids | st.just("")),
                kind=draw(st.sampled_from(Kind)),
                name=draw(NAMES),
                file="f",
                line=number + 1,
                start=draw(MOMENTS),
                end=draw(MOMENTS),
                is_named=draw(st.booleans()),
                agent=draw(NAMES),
                target=draw(NAMES),
                follows=draw(NAMES),
                usage=draw(st.none() | st.builds(Usage, numbers, numbers, numbers, numbers, numbers, numbers)),
                is_cumulative=draw(st.booleans()),
                call_id=draw(st.sampled_from(["", "c1", "c2"])),
                calls=tuple(
                    draw(st.lists(st.builds(Call, st.sampled_from(["", "c1"]), NAMES, st.just("")), max_size=2))
                ),
                is_error=draw(st.booleans()),
                is_triggered=draw(st.booleans()),
                is_interrupted=draw(st.booleans()),
                task=draw(st.none() | tasks),
                routes=tuple(draw(st.lists(st.sampled_from(["a", "b", "__end__"]), max_size=2))),
            )
        )
    return bundle


def _check_bundle(bundle: Bundle) -> None:
    run = Run("otlp", Privacy(b"salt"))
    with suppress(EmptyLogError):
        trace = as_data(run.trace(topology=write_events(bundle, run)))
        checked(trace)
        assert_ledger_adds_up(trace)


@given(bundles())
@settings(max_examples=tries(200, 12), deadline=None)
def test_any_spans_give_a_sound_trace_whose_ledger_adds_up(bundle: Bundle) -> None:
    _check_bundle(bundle)


@pytest.mark.slow
@given(bundles())
@settings(max_examples=4_000, deadline=None)
def test_many_spans_give_sound_traces_whose_ledgers_add_up(bundle: Bundle) -> None:
    _check_bundle(bundle)
