"""Logs of further programs, damaged at random: a sound trace, or a refusal with words. A folder of fixtures joins by itself."""

import random
from pathlib import Path

import pytest

from orchtrace_corpus.trace import importers
from tests.conftest import run_corpus
from tests.effort import tries
from tests.trace.conversationlogs import LOGS
from tests.trace.test_import_fuzz import mutated

ELSEWHERE = ("claude_code", "codex", "openai_agents", "otlp", "langsmith", "atif")
"""Formats whose tests damage their logs in ways of their own."""
FIXTURES = [
    (form, path) for form in importers.FORMATS if form not in ELSEWHERE for path in sorted((LOGS / form).iterdir())
]
TEXTS = (".json", ".jsonl", ".ndjson", ".txt", ".log")


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Bytes with some of them cut out, repeated or replaced."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 10))):
        place = chance.randrange(len(found) + 1)
        found[place : place + chance.randrange(40)] = chance.choice(
            (b"", b"{", b'"', b"\n", b"\xff", b"\\u", b"[]", b"\0\0", bytes(found[:30]))
        )
    return bytes(found)


def write_damaged(source: Path, folder: Path, chance: random.Random) -> None:
    """Write a fixture with some of its files damaged."""
    files = [source] if source.is_file() else sorted(path for path in source.rglob("*") if path.is_file())
    pool = [line for file in files if file.suffix in TEXTS for line in file.read_bytes().splitlines() if line]
    for file in files:
        data, draw = file.read_bytes(), chance.random()
        target = folder / file.relative_to(source.parent)
        if draw < 0.05 and len(files) > 1:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if draw < 0.8 or len(files) == 1:
            is_text = file.suffix in TEXTS and chance.random() < 0.85
            data = b"\n".join(mutated(data.splitlines(), chance, pool)) if is_text else damaged(data, chance)
        target.write_bytes(data)


@pytest.mark.parametrize("form", sorted({form for form, _ in FIXTURES}))
def test_damaged_logs_give_sound_traces_or_are_refused(form: str, tmp_path: Path) -> None:
    """Exit codes 0, 1 and 3 only, of what people run first; 10,000 in all under `.ci/full`."""
    number = tries(10_000, 110) // len({form for form, _ in FIXTURES})
    sources = [path for one, path in FIXTURES if one == form]
    codes = []
    for seed in range(number):
        chance = random.Random(f"{form} {seed}")
        folder = tmp_path / str(seed)
        folder.mkdir()
        write_damaged(chance.choice(sources), folder, chance)
        words = ("import", str(folder)) if chance.random() < 0.7 else ("doctor", str(folder))
        done = run_corpus(
            "trace", *words, *(("--from", form) if words[0] == "import" and chance.random() < 0.6 else ())
        )
        assert done.code in (0, 1, 3), (seed, done.stderr)
        if done.code == 0 and words[0] == "import":
            made = tmp_path / "made.jsonl"
            made.write_text(done.stdout, "utf-8")
            assert run_corpus("trace", "validate", str(made)).code == 0, seed
        codes.append(done.code)
    assert codes.count(0) > number / 8
