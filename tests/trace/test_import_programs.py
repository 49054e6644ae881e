"""What holds for logs of OpenCode, Inspect, AutoGen, ADK, Who&When, Pi, Entire and ATOF alike: privacy, memory."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from orchtrace_corpus.base.errors import DataFileError
from tests.conftest import run_corpus
from tests.effort import tries
from tests.trace.conversationlogs import LOGS, traces
from tests.trace.test_import_fuzz import SECRETS, WORDS, mutated_value, peaks
from tests.trace.test_import_recognition import recognisers

FORMS = ("opencode", "inspect_ai", "autogen", "google_adk", "who_and_when", "pi", "entire", "atof")
ALL = [(form, path) for form in FORMS for path in sorted((LOGS / form).rglob("*.json*"))]
NAMES = [f"{form}-{path.stem}" for form, path in ALL]
WRITTEN = frozenset(
    ("text", "content", "prompt", "output", "input", "arguments", "args", "result", "cmd", "command", "filePath", "path",
     "error", "message", "question", "answer", "explanation", "title", "directory", "cwd", "target", "ground_truth",
     "mistake_reason", "request", "x", "y")
)  # fmt: skip
FIXED = frozenset(
    (
        "type",
        "timestamp",
        "role",
        "kind",
        "status",
        "created_at",
        "event",
        "delivery_stage",
        "category",
        "scope_category",
    )
)


def seeded(value: Any, chance: random.Random, key: str = "") -> Any:
    """The value with words and secrets in what people, models and tools wrote, and secrets in other texts at times."""
    if isinstance(value, dict):
        return {name: seeded(inner, chance, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [seeded(inner, chance, key) for inner in value]
    if not isinstance(value, str) or key in FIXED:
        return value
    if key in ("payload", "msg") and value.startswith("{"):
        return json.dumps(seeded(json.loads(value), chance))
    if key in WRITTEN:
        return f"{value} {WORDS} {chance.choice(SECRETS)}"
    return f"{value} {chance.choice(SECRETS)}" if chance.random() < 0.25 else value


def lines(path: Path) -> list[Any]:
    """The values of a fixture: its lines, or the one document; what is no JSON as it is."""
    if path.suffix == ".json":
        return [json.loads(path.read_bytes())]
    return [json.loads(line) if line.startswith("{") else line for line in path.read_text("utf-8").splitlines()]


def write(path: Path, values: list[Any]) -> Path:
    rows = (value if isinstance(value, str) else json.dumps(value) for value in values)
    path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    return path


@pytest.mark.parametrize(("form", "path"), ALL, ids=NAMES)
def test_addresses_home_folders_keys_and_contents_stay_in_the_log(tmp_path: Path, form: str, path: Path) -> None:
    made = 0
    for seed in range(tries(8, 4)):
        chance = random.Random(seed)
        copy = write(tmp_path / path.name, [seeded(value, chance) for value in lines(path)])
        for trace in traces(copy, form=form):
            made += 1
            said = json.dumps(trace, ensure_ascii=False)
            assert [secret for secret in (*SECRETS, *WORDS.split(), "someone") if secret in said] == []
    assert made >= tries(8, 4)


@pytest.mark.parametrize(("form", "path"), ALL, ids=NAMES)
def test_contents_are_kept_where_that_is_wanted(tmp_path: Path, form: str, path: Path) -> None:
    copy = write(tmp_path / path.name, [seeded(value, random.Random(1)) for value in lines(path)])

    assert WORDS in json.dumps(traces(copy, form=form, keep_content=True))


@pytest.mark.parametrize(("form", "path"), ALL, ids=NAMES)
def test_no_importer_of_another_format_takes_the_log(form: str, path: Path) -> None:
    assert recognisers(path) == [form]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "words", ["", "\n\n", "[]", "{}", "[" * 100_000, '{"type": ' * 50_000, "\x00" * 1000, "null\n" * 9]
)
def test_what_is_no_log_is_refused(tmp_path: Path, form: str, words: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(words, "utf-8")

    with pytest.raises(DataFileError):
        traces(path, form=form)


@pytest.mark.parametrize("form", FORMS)
def test_a_log_may_end_anywhere(tmp_path: Path, form: str) -> None:
    for path in (path for one, path in ALL if one == form):
        whole = path.read_bytes()
        for part in range(1, 12):
            copy = tmp_path / path.name
            copy.write_bytes(whole[: len(whole) * part // 12])
            try:
                traces(copy, form=form)
            except DataFileError:
                continue


@pytest.mark.parametrize("form", FORMS)
def test_commands_on_damaged_logs_end_with_0_1_or_3(tmp_path: Path, form: str) -> None:
    chance, codes = random.Random(11), set()
    paths = [path for one, path in ALL if one == form]
    for number in range(tries(60, 12)):
        path = chance.choice(paths)
        values = [mutated_value(value, chance) if isinstance(value, dict) else value for value in lines(path)]
        try:
            copy = write(tmp_path / f"{number}{path.suffix}", values)
        except ValueError:  # an object was put into itself
            continue
        data = bytearray(copy.read_bytes())
        if chance.random() < 0.3:
            data[chance.randrange(len(data))] = chance.randrange(256)
        copy.write_bytes(data)
        codes.add(run_corpus("trace", "import", str(copy), "--from", form).code)
    assert codes <= {0, 1, 3}
    assert 0 in codes


def grown(form: str, folder: Path, size: int) -> None:
    """A log with long contents: the fixture, its texts made longer."""

    def longer(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: longer(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [longer(inner, key) for inner in value]
        is_written = isinstance(value, str) and key in ("text", "content", "output", "result")
        return value + "x" * size if is_written and value[-1:] != "?" else value  # but for questions

    folder.mkdir()
    for path in (path for one, path in ALL if one == form and "result" not in path.name):
        values = [longer(value) for value in lines(path)]
        for value in values:
            if isinstance(value, dict) and isinstance(value.get("payload"), str) and value["payload"].startswith("{"):
                value["payload"] = json.dumps(longer(json.loads(value["payload"])))
        write(folder / path.name, values)


def test_memory_is_bounded_by_the_largest_file(tmp_path: Path) -> None:
    folders = [tmp_path / f"{size}-{form}" for form in FORMS for size in ("small", "large")]
    for folder in folders:
        size, _, form = folder.name.partition("-")
        grown(form, folder, 10 if size == "small" else tries(1_000_000, 500_000))

    found = peaks(*folders)
    for form, (few, little), (many, much), folder in zip(FORMS, found[::2], found[1::2], folders[1::2], strict=True):
        largest = max(file.stat().st_size for file in folder.iterdir()) / 1_000_000
        assert (form, few) == (form, many)
        assert much - little < 5 * largest, form
