"""`corpus trace doctor` without a path, and `--list`: the sessions that programs have left below the home folder."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchtrace_corpus.trace.cli import recent
from tests.conftest import ROOT, run_corpus
from tests.loopback import loopback_only  # noqa: F401 - guards every test here
from tests.trace import test_import_opencode as opencode
from tests.trace.test_import import LOGS, SESSION, on_terminal

(MAIN,) = SESSION.glob("*.jsonl")
UTC = ("--timezone", "UTC")
CODEX = LOGS / "codex" / "family"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with a session of Claude Code of 2026-03-02 and one of Codex, with sub-agents, a day older."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "OPENCODE_DB", "COPILOT_HOME", "KIMI_CODE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    project = "".join(character if character.isalnum() else "-" for character in str(tmp_path)) + "-src-shop"
    shutil.copytree(SESSION, tmp_path / ".claude" / "projects" / project)
    shutil.copytree(CODEX, tmp_path / ".codex" / "sessions" / "2026" / "03" / "01")
    for path in tmp_path.rglob("*.jsonl"):
        time = 1_772_445_600 - ("codex" in str(path)) * 86_400
        os.utime(path, (time, time))
    return tmp_path


def list_of(*words: str) -> list[str]:
    """The lines of `--list` from its heading on, without the totals above it."""
    result = run_corpus("trace", "doctor", "--list", "--timezone", "UTC", *words)
    assert result.code == 0, result.stderr
    lines = result.stdout.splitlines()
    return lines[next(number for number, line in enumerate(lines) if "last written" in line) :]


def test_without_a_path_the_newest_session_is_taken_with_its_sub_agents(home: Path) -> None:
    result = run_corpus("trace", "doctor")

    assert result.code == 0
    assert result.stdout == run_corpus("trace", "doctor", str(SESSION)).stdout
    (main,) = home.glob(".claude/projects/*/*.jsonl")
    assert result.stderr == f"corpus: the newest session, of Claude Code in shop: {main}\n"


def test_the_newest_session_of_codex_has_the_threads_that_it_spawned(home: Path) -> None:
    shutil.rmtree(home / ".claude")

    result = run_corpus("trace", "doctor")

    assert result.code == 0
    assert result.stdout == run_corpus("trace", "doctor", str(CODEX)).stdout
    assert result.stderr.startswith("corpus: the newest session, of Codex")


LEFT = {
    "qwen_code": ("background", ".qwen/projects/-src-shop", "Qwen Code in demo"),
    "gemini_cli": ("team", ".gemini/tmp/shop", "Gemini CLI in shop"),
    "copilot_cli": ("team", ".copilot", "GitHub Copilot CLI"),
    "pi": ("team", ".pi/agent/sessions/--src-shop--", "Pi in plan"),
    "kimi_code": ("team", ".kimi-code/sessions/wd_shop_c6604f1ed37b", "Kimi Code in shop"),
}
"""A session of each further program, where it keeps it, and how it is told."""


@pytest.mark.parametrize("form", LEFT)
def test_the_session_of_a_program_is_found_where_it_keeps_it(home: Path, form: str) -> None:
    log, folder, said = LEFT[form]
    shutil.copytree(LOGS / form / log, home / folder)

    newest = run_corpus("trace", "doctor")
    listed = list_of()[1]
    named = run_corpus("trace", "doctor", "--session", newest.stdout.split("\n")[0].split()[-1])

    assert newest.code == 0
    assert newest.stdout == named.stdout == run_corpus("trace", "doctor", str(LOGS / form / log)).stdout
    assert newest.stderr.startswith(f"corpus: the newest session, of {said}: {home}")
    assert listed.startswith(said.partition(" in ")[0])


@pytest.mark.parametrize("variable", ["", "XDG_DATA_HOME", "OPENCODE_DB"])
def test_the_sessions_of_a_database_are_listed_one_by_one(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    folder = home / ("elsewhere" if variable else ".local/share") / "opencode"
    folder.mkdir(parents=True)
    more = opencode.export(
        ("user", 0, [], {}), ("assistant", 1, [opencode.finish(opencode.used(3, 4))], {}), name="ses_2"
    )
    opencode.write_database(folder / "opencode.db", *opencode.EXPORTS, more)
    if variable:
        monkeypatch.setenv(variable, str(folder / "opencode.db" if variable == "OPENCODE_DB" else folder.parent))

    listed = [line.split()[-1] for line in list_of()[1:3]]

    assert listed == ["ses_2", "ses_lead"]
    assert run_corpus("trace", "doctor", "--session", "ses_lead").stdout.startswith("OpenCode sessions ses_lead\n")


def test_sessions_are_listed_the_newest_first(home: Path) -> None:
    (claude, codex) = [line.split() for line in list_of() if line.startswith(("Claude", "Codex"))]
    assert claude == [*"Claude Code shop 2026-03-02 10:00 3 5 min 12 s 46,215".split(), MAIN.stem[:13]]
    assert codex[0] == "Codex"
    assert "2026-03-01" in codex
    only = json.loads(run_corpus("trace", "doctor", "--list", "--limit", "1", "--format", "json", *UTC).stdout)
    assert (only["schema"], only["version"]) == ("orchtrace-corpus/trace-recent", 1)
    assert only["sessions"] == [
        {
            "program": "claude_code",
            "project": "shop",
            "last written": "2026-03-02 10:00",
            "agents": 3,
            "time": 312.0,
            "tokens": 46215.0,
            "session": MAIN.stem,
            "file": str(next(home.glob(".claude/projects/*/*.jsonl"))),
            "tokens_at_least": False,
            "cost_usd": None,
            "cost_at_least": True,
        }
    ]
    assert only["totals"]["all"]["tokens"] == 46215


def test_a_large_session_is_listed_unread(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MAX_READ_BYTES", 1 << 10)

    result = run_corpus("trace", "doctor", "--list")

    assert [line.split()[-1] for line in result.stdout.splitlines() if line.startswith("Claude")] == [MAIN.stem[:13]]
    assert "46,215" not in result.stdout
    assert "Without figures: larger than 0 MB, and not read for a list." in result.stdout


def test_the_folders_that_programs_are_told_to_use_come_before_the_home_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "elsewhere"))
    monkeypatch.setenv("CODEX_HOME", str(home / "nowhere"))

    nothing = run_corpus("trace", "doctor")
    shutil.copytree(SESSION, home / "elsewhere" / "projects" / "-srv-site")
    there = run_corpus("trace", "doctor")

    assert (nothing.code, nothing.stdout) == (3, "")
    assert nothing.stderr == (
        "corpus: no session of a known program in "
        f"'{home}/elsewhere/projects', '{home}/nowhere/sessions', '{home}/.qwen/projects', '{home}/.gemini/tmp', "
        f"'{home}/.local/share/opencode', '{home}/.copilot/session-state', '{home}/.kimi-code/sessions' and 1 more\n"
        "Name a log or a trace.\n"
    )
    assert there.stderr.startswith("corpus: the newest session, of Claude Code in shop: ")


def test_a_session_is_found_by_its_name_below_the_home_folder(home: Path) -> None:
    other = home / ".claude" / "projects" / "-srv-site" / "0ther.jsonl"
    other.parent.mkdir()
    other.write_text(MAIN.read_text("utf-8").replace(MAIN.stem, "0ther"), encoding="utf-8")

    one = run_corpus("trace", "doctor", "--session", MAIN.stem[:13])
    wrong = run_corpus("trace", "doctor", "--session", "nobody")

    assert (one.code, one.stderr) == (0, "")
    assert one.stdout == run_corpus("trace", "doctor", str(SESSION)).stdout
    assert run_corpus("trace", "doctor", "--session", "0th").stdout.startswith("Claude Code transcripts 0ther\n")
    assert (wrong.code, wrong.stdout) == (2, "")
    assert wrong.stderr == (
        "corpus: no session below the home folder has 'nobody' in its file's name\n"
        "--list shows the newest. Name a path for a session that is elsewhere.\n"
    )


def test_a_narrow_list_keeps_what_is_typed_next(home: Path) -> None:
    listed, code = on_terminal("--list", command="doctor", columns=60, NO_COLOR="1", TERM="dumb")

    assert code == 0
    heading, claude = (line.split() for line in listed.rpartition("\n\n")[2].splitlines()[:2])
    assert heading == ["project", "last", "written", "time", "tokens", "session"]
    assert claude == ["shop", "2026-03-02", "10:00", "5", "min", "12", "s", "46,215", MAIN.stem[:13]]


def test_a_list_is_of_all_sessions(home: Path) -> None:
    result = run_corpus("trace", "doctor", str(home), "--list")

    assert (result.code, result.stdout) == (2, "")
    assert "--list takes no PATH" in result.stderr


@pytest.mark.parametrize("path", [MAIN, ROOT / "data" / "traces" / "swarm.json"], ids=["log", "trace"])
def test_doctor_imports_what_its_screen_needs_and_no_more(path: Path) -> None:
    is_log = path == MAIN
    unneeded = ["typer", "jsonschema", "pandas", "genai_prices", "pydantic", "shutil", "subprocess"]
    unneeded.append("orchtrace_corpus.base.text.table")
    ours = "orchtrace_corpus.trace"
    unneeded += [f"{ours}.rules", f"{ours}.importers.spans"] if is_log else [f"{ours}.importers", "hashlib"]
    code = "import sys; from orchtrace_corpus.cli.main import run\n"
    code += f"code = run(['trace', 'doctor', {str(path)!r}])\n"
    code += f"print([name for name in {unneeded!r} if name in sys.modules], file=sys.stderr); sys.exit(code)"

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (result.returncode, result.stderr.splitlines()[-1]) == (0, "[]")


def test_two_runs_that_are_named_are_compared() -> None:
    swarm, chain = (str(ROOT / "data" / "traces" / f"{name}.json") for name in ("swarm", "hierarchical"))

    both = run_corpus("trace", "doctor", swarm, chain)

    assert both.code == 0
    compared = run_corpus("trace", "diff", swarm, chain).stdout
    listed = run_corpus("trace", "doctor", swarm, chain, "--session", "swarm").stdout
    assert listed == run_corpus("trace", "doctor", swarm).stdout
    assert both.stdout.startswith("B took 10 s less than A: 10 s, not 20 s.\non the critical path")
    assert compared.startswith("B took 10 s less than A: 10 s, not 20 s.\npart ")
    assert both.stdout.endswith("\n\n" + compared.partition("\n")[2])


@pytest.mark.parametrize("is_log_first", [True, False])
def test_a_log_and_a_trace_are_compared_in_the_order_in_which_they_are_named(*, is_log_first: bool) -> None:
    paths = [str(MAIN), str(ROOT / "data" / "traces" / "swarm.json")][:: 1 if is_log_first else -1]

    both = run_corpus("trace", "doctor", *paths)

    assert both.code == 0
    assert both.stdout.endswith("\n\n" + run_corpus("trace", "diff", *paths).stdout.partition("\n")[2])
