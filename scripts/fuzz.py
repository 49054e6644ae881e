"""Fuzz every reader with coverage as the guide: `python scripts/fuzz.py TARGET --seconds 600`.

Each target takes the bytes of a file and reads them as a command does. What is wrong with a file is a `CorpusError`;
any other exception, more than a gigabyte or more than 20 seconds is a crash. The inputs to begin with, and those that
were found, are in `tests/data/fuzz/TARGET`; `--keep` puts a few of the small inputs that a run found there.
The tests read all of them again without the fuzzer. It is atheris, of the extra `fuzz`: https://github.com/google/atheris.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
INPUTS = ROOT / "tests" / "data" / "fuzz"
TOY = ROOT / "tests" / "data" / "toy"
LOGS = ROOT / "tests" / "data" / "logs"
MAX_INPUT_BYTES = 20_000
MAX_MEGABYTES = 1000
MAX_SECONDS = 20
MAX_KEPT_FILES = 6
MAX_KEPT_BYTES = 4_000

Target = Callable[[bytes], object]


def read_yaml(data: bytes) -> None:
    """Check, format and count a corpus whose papers are the input."""
    from orchtrace_corpus.base.errors import CorpusError
    from orchtrace_corpus.corpus.analysis.statistics import summarise
    from orchtrace_corpus.corpus.model.store import PAPERS, CorpusFiles

    files = CorpusFiles(str(TOY), {PAPERS: data})
    try:
        list(files.findings())
        summarise(files.pool)
    except CorpusError:
        return


def read_taxonomy(data: bytes) -> None:
    """Check a corpus whose taxonomy is the input."""
    from orchtrace_corpus.base.errors import CorpusError
    from orchtrace_corpus.corpus.model.store import TAXONOMY, CorpusFiles

    try:
        list(CorpusFiles(str(TOY), {TAXONOMY: data}).findings())
    except CorpusError:
        return


def read_format(name: str) -> Target:
    """Return the target that reads papers in a format."""

    def read(data: bytes) -> None:
        from orchtrace_corpus.base.errors import CorpusError
        from orchtrace_corpus.corpus.formats import registry

        try:
            registry.find(name).read(data, _taxonomy())
        except CorpusError:
            return

    return read


@cache
def _taxonomy() -> Any:
    from orchtrace_corpus.corpus.model.store import CorpusFiles

    return CorpusFiles(str(TOY)).taxonomy


def compare_corpora(data: bytes) -> None:
    """Render the comment on a change of the papers to the input."""
    with _folder() as folder:
        changed = folder / "changed"
        shutil.copytree(TOY, changed)
        (changed / "data" / "papers.yaml").write_bytes(data)
        _run_command("diff", str(TOY), str(changed), "--format", "markdown")


def _run_command(*words: str) -> None:
    """Run a command without its output.

    Raises:
        AssertionError: The command ended with an unexpected error; the message is its traceback.
    """
    from orchtrace_corpus.base.errors import ExitCode
    from orchtrace_corpus.cli.main import run

    stdout, stderr = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere, tempfile.TemporaryFile("w+", encoding="utf-8") as messages:
        sys.stdout, sys.stderr = nowhere, messages
        try:
            code = run(list(words))
        finally:
            sys.stdout, sys.stderr = stdout, stderr
        messages.seek(0)
        assert code != ExitCode.BUG, messages.read()


def import_log(form: str, ending: str) -> Target:
    """Return the target that imports a log, and measures and diagnoses its traces."""

    def read(data: bytes) -> None:
        from orchtrace_corpus.base.errors import CorpusError
        from orchtrace_corpus.trace.api import DEFINITIONS, TraceView, diagnose, import_logs
        from orchtrace_corpus.trace.measures.definitions import Run

        with _folder() as folder:
            path = folder / f"log{ending}"
            path.write_bytes(data)
            try:
                for imported in import_logs(str(path), form, salt="fuzz"):
                    if imported.trace is not None:
                        run = Run(TraceView(imported.trace))
                        for definition in DEFINITIONS.values():
                            run.measure(definition.compute)
                        diagnose(run.view)
            except CorpusError:
                return

    return read


@contextmanager
def _folder() -> Iterator[Path]:
    """Make a folder that is removed at the end, in memory if the system has such a folder."""
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory) as folder:
        yield Path(folder)


LOG_ENDINGS = {
    "atif": ".json",
    "atof": ".jsonl",
    "autogen": ".jsonl",
    "claude_code": ".jsonl",
    "codex": ".jsonl",
    "copilot_cli": ".jsonl",
    "entire": ".jsonl",
    "gemini_cli": ".jsonl",
    "google_adk": ".json",
    "inspect_ai": ".json",
    "kimi_code": ".jsonl",
    "langsmith": ".jsonl",
    "openai_agents": ".json",
    "otlp": ".json",
    "pi": ".jsonl",
    "qwen_code": ".jsonl",
    "who_and_when": ".json",
}
TARGETS: dict[str, Target] = {
    "yaml": read_yaml,
    "taxonomy": read_taxonomy,
    **{name: read_format(name) for name in ("bibtex", "ris", "csl", "csv", "jsonl")},
    "comment": compare_corpora,
    **{form: import_log(form, ending) for form, ending in LOG_ENDINGS.items()},
    "opencode": import_log("opencode", ".json"),
    "zip": import_log("inspect_ai", ".eval"),
    "sqlite": import_log("opencode", ".db"),
}


def mutate_json(data: bytes, max_size: int, seed: int) -> bytes:
    """Change a value, a key or a row of JSON or JSON Lines; other bytes stay as they are."""
    chance = random.Random(seed)
    rows = data.decode("utf-8", "replace").splitlines()
    is_json_lines = len(rows) > 1 and rows[0].startswith("{") and rows[0].endswith("}")
    index = chance.randrange(len(rows)) if is_json_lines else 0
    try:
        value = json.loads(rows[index] if is_json_lines else data)
    except (ValueError, RecursionError):
        return data
    changed = json.dumps(_changed(value, chance))
    if not is_json_lines:
        return changed.encode()[:max_size]
    action = chance.random()
    if action < 0.1:
        del rows[index]
    elif action < 0.2:  # repeat the row elsewhere
        rows.insert(chance.randrange(len(rows)), rows[index])
    elif action < 0.3:  # move the row
        rows.insert(chance.randrange(len(rows)), rows.pop(index))
    else:
        rows[index] = changed
    return "\n".join(rows).encode()[:max_size]


ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2**63, 10**400, float("nan"), float("inf"), "", "\ud800", "\x00\x1b[2J", "9" * 30),
    *([], {}, [[]], [None], {"": ""}, {"type": "text"}, "2026-03-01T09:00:00Z", "0001-01-01T00:00:00+23:59", "toolu_1"),
)


def _changed(value: Any, chance: random.Random) -> Any:
    """Return a JSON value with one part of it changed."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        members = dict(value)
        action = chance.random()
        if action < 0.1:
            del members[key]
        elif action < 0.2:  # put the values of two members in other places
            old = members[key]
            members[key] = members[chance.choice(list(value))]
            members[chance.choice(list(value))] = old
        else:
            members[key] = _changed(value[key], chance)
        return members
    if isinstance(value, list) and value and chance.random() < 0.9:
        index = chance.randrange(len(value))
        changed = [_changed(value[index], chance)]
        if chance.random() >= 0.8:  # keep the old item, too
            changed.append(value[index])
        return [*value[:index], *changed, *value[index + 1 :]]
    return chance.choice(ODD_VALUES)


def seeds(target: str) -> Iterator[bytes]:
    """Yield the inputs to begin with: files of the tests."""
    if target == "yaml" or target == "comment":
        yield (TOY / "data" / "papers.yaml").read_bytes()
    elif target == "taxonomy":
        yield (TOY / "data" / "taxonomy.yaml").read_bytes()
    elif target in ("bibtex", "ris", "csl", "csv", "jsonl"):
        from orchtrace_corpus.corpus.formats import registry
        from orchtrace_corpus.corpus.model.store import CorpusFiles

        files = CorpusFiles(str(TOY))
        text = registry.find(target).write(files.pool.papers, files.taxonomy)
        yield text if isinstance(text, bytes) else text.encode()
    elif target == "sqlite":
        yield _database()
    elif target == "zip":
        yield _archive()
    else:
        for path in sorted((LOGS / target).rglob("*.json*")):
            if path.stat().st_size <= MAX_INPUT_BYTES:
                yield path.read_bytes()


def _archive() -> bytes:
    """Return an `.eval` archive of the log that the tests have as JSON."""
    from io import BytesIO
    from zipfile import ZipFile

    log = json.loads((LOGS / "inspect_ai" / "team.json").read_text(encoding="utf-8"))
    samples = log.pop("samples")
    file = BytesIO()
    with ZipFile(file, "w") as archive:
        archive.writestr("header.json", json.dumps(log))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    return file.getvalue()


def _database() -> bytes:
    """Return a database of OpenCode with the sessions that the tests have as JSON."""
    import sqlite3

    with _folder() as folder:
        path = folder / "opencode.db"
        database = sqlite3.connect(path)
        database.executescript(
            "pragma page_size = 512;"
            "create table session (id text primary key, parent_id text, agent text, version text, time_created);"
            "create table message (id text primary key, session_id text, time_created integer, data text);"
            "create table part (id text primary key, message_id text, session_id text, data text);"
        )
        for log in sorted((LOGS / "opencode").rglob("*.json")):
            session = json.loads(log.read_text(encoding="utf-8"))
            info = session["info"]
            row = (info["id"], info.get("parentID"), info.get("agent"), info["version"], info["time"]["created"])
            database.execute("insert into session values (?, ?, ?, ?, ?)", row)
            for message in session["messages"]:
                message_info = message["info"]
                values = (message_info["id"], info["id"], 0, json.dumps(message_info))
                database.execute("insert into message values (?, ?, ?, ?)", values)
                for part in message["parts"]:
                    values = (part["id"], message_info["id"], info["id"], json.dumps(part))
                    database.execute("insert into part values (?, ?, ?, ?)", values)
        database.commit()
        database.close()
        return path.read_bytes()


def fuzz(target: str, seconds: int, found: Path) -> int:
    """Fuzz a target in a new process, because the fuzzer ends its process, and return the exit code.

    Args:
        target: The name of the target.
        seconds: The time.
        found: The folder of the inputs, to which new ones are added. Inputs that crash are written next to it.
    """
    found.mkdir(parents=True, exist_ok=True)
    for data in seeds(target):
        (found / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    if (INPUTS / target).is_dir():
        for path in (INPUTS / target).iterdir():
            shutil.copy(path, found)
    words = [
        *(f"-max_total_time={seconds}", f"-rss_limit_mb={MAX_MEGABYTES}", f"-timeout={MAX_SECONDS}"),
        *(f"-max_len={MAX_INPUT_BYTES}", f"-artifact_prefix={found.parent}/{target}-", "-print_final_stats=1"),
    ]
    return subprocess.call([sys.executable, __file__, "--child", target, *words, str(found)], cwd=ROOT)


def run_child(target: str, words: list[str]) -> None:
    """Run the fuzzer of a target in this process."""
    import atheris

    with atheris.instrument_imports(include=["orchtrace_corpus"]):
        for module in ("cli.app", "corpus.api", "trace.api"):
            import_module(f"orchtrace_corpus.{module}")
        for data in seeds(target):
            TARGETS[target](data)  # so that modules that are imported late are instrumented, too

    def mutator(data: bytes, max_size: int, seed: int) -> bytes:
        is_json = target in LOG_ENDINGS or target in ("csl", "jsonl", "opencode")
        if is_json and seed % 4:
            return mutate_json(data, max_size, seed)
        changed: bytes = atheris.Mutate(data, max_size)
        return changed

    atheris.Setup([sys.argv[0], *words], TARGETS[target], custom_mutator=mutator)
    atheris.Fuzz()


def keep(target: str, found: Path) -> None:
    """Keep a few of the small inputs that a run has found; every run of the tests reads them."""
    by_size = sorted(found.iterdir(), key=_size_and_name)
    small = [path for path in by_size if path.stat().st_size <= MAX_KEPT_BYTES] or by_size[:MAX_KEPT_FILES]
    (INPUTS / target).mkdir(parents=True, exist_ok=True)
    for path in random.Random(target).sample(small, min(len(small), MAX_KEPT_FILES)):
        shutil.copy(path, INPUTS / target / path.name[:16])


def _size_and_name(path: Path) -> tuple[int, str]:
    return path.stat().st_size, path.name


def main() -> int:
    """Fuzz the named targets, one after another, and return 1 if one crashed, else 0."""
    if sys.argv[1:2] == ["--child"]:
        run_child(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}; all unless given")
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument("--found", type=Path, help="the folder for what is found (default: a temporary one)")
    parser.add_argument(
        "--keep", action="store_true", help="keep a few of the small inputs that were found in tests/data/fuzz"
    )
    arguments = parser.parse_args()
    found = arguments.found or Path(tempfile.mkdtemp(prefix="fuzz-"))
    crashed = []
    for target in arguments.targets or TARGETS:
        if fuzz(target, arguments.seconds, found / target):
            crashed.append(target)
        if arguments.keep:
            keep(target, found / target)
    if crashed:
        print(f"crashed: {', '.join(crashed)}; the inputs are in {found}", file=sys.stderr)
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())
