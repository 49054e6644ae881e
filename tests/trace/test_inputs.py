"""Every command about traces reads raw logs, too, by the same recognition; of several sessions one can be named."""

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT, run_corpus
from tests.loopback import loopback_only  # noqa: F401 - guards every test here
from tests.trace.test_import import FORMS, LOGS, SESSION

NAME = "7ea30000-0000-4000-8000-000000000001"
(MAIN,) = SESSION.glob("*.jsonl")
SWARM = ROOT / "data" / "traces" / "swarm.json"


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    """The trace that `corpus trace import` makes of the session."""
    path = tmp_path / "imported.jsonl"
    assert run_corpus("trace", "import", str(SESSION), "-o", str(path), "--salt", "s").code == 0
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["show"],
        ["measure", "--only", "worked,span,tokens,steps"],
        ["measure", "--ledger", "agent"],
        ["measure", "--profile"],
        ["replay"],
        ["graph"],
        ["graph", "--format", "svg"],
        ["label"],
        ["doctor", "--format", "json"],
    ],
    ids=" ".join,
)
def test_a_command_says_of_a_log_what_it_says_of_the_trace_made_of_it(words: list[str], imported: Path) -> None:
    of_log = run_corpus("trace", *words, str(MAIN))
    of_trace = run_corpus("trace", *words, str(imported))

    assert (of_log.code, of_trace.code) == (0, 0)
    if words[0] != "doctor":
        assert of_log.stdout == of_trace.stdout
        return
    (figures,), (same,) = (json.loads(one.stdout)["sessions"] for one in (of_log, of_trace))
    assert (figures.pop("form"), same.pop("form")) == ("Claude Code transcripts", "Trace")
    assert (figures.pop("file"), same.pop("file")) == (MAIN.name, str(imported))
    assert figures == same


def test_a_log_is_valid_once_it_is_imported() -> None:
    result = run_corpus("trace", "validate", str(MAIN), str(SWARM))

    assert (result.code, result.stdout) == (0, "")
    assert result.stderr == "no problems in 2 traces\n"


def test_a_log_is_exported_and_compared_as_its_trace(imported: Path) -> None:
    exported = run_corpus("trace", "export", str(MAIN))

    trace, known = json.loads(exported.stdout), json.loads(imported.read_text(encoding="utf-8"))
    assert [event["id"] for event in trace["events"]] == [event["id"] for event in known["events"]]
    assert run_corpus("trace", "diff", str(MAIN), str(imported), "--exit-code").code == 0


def test_a_log_has_no_reward_to_divide() -> None:
    result = run_corpus("trace", "credit", str(MAIN))

    assert (result.code, result.stdout) == (2, "")
    assert "reward" in result.stderr


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A folder with two sessions: the one of this test, and a copy under another name, later."""
    folder = tmp_path / "logs"
    shutil.copytree(SESSION, folder)
    for path in sorted(SESSION.rglob("*.jsonl")):
        text = path.read_text(encoding="utf-8").replace(NAME, "b2" + NAME[2:]).replace("2026-03-02", "2026-03-03")
        text = text.replace('"uuid":"', '"uuid":"b').replace('"parentUuid":"', '"parentUuid":"b')
        target = folder / str(path.relative_to(SESSION)).replace(NAME, "b2" + NAME[2:])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("command", ["replay", "graph", "label", "export"])
def test_where_one_session_is_wanted_the_others_are_named_and_one_can_be_chosen(command: str, two: Path) -> None:
    unclear = run_corpus("trace", command, str(two))

    assert (unclear.code, unclear.stdout) == (2, "")
    assert f"holds 2 traces, and one is wanted\nName one with --session: {NAME}, b2" in unclear.stderr
    chosen = run_corpus("trace", command, str(two), "--session", "b2")
    assert chosen.code == 0
    assert chosen.stdout
    absent = run_corpus("trace", command, str(two), "--session", "zz")
    assert (absent.code, absent.stdout) == (2, "")
    assert f"no session begins with 'zz'\nSessions found: {NAME}, b2" in absent.stderr


@pytest.mark.parametrize("command", ["show", "measure", "validate", "credit"])
def test_one_of_several_sessions_can_be_chosen_where_several_may_be(command: str, two: Path) -> None:
    shutil.copy(SWARM, two)

    one = run_corpus("trace", command, str(two), "--session", "swarm")

    assert one == run_corpus("trace", command, str(SWARM))


def test_sessions_of_two_logs_are_compared(two: Path) -> None:
    same = run_corpus("trace", "diff", str(two), str(two), "--session", NAME, "--session", "b2", "--exit-code")

    assert same.code == 0
    assert run_corpus("trace", "diff", str(two), str(SWARM), "--session", "b2", "--exit-code").code == 1
    assert "more than twice" in run_corpus("trace", "diff", "a", "b", *["--session", "x"] * 3).stderr


def test_traces_and_logs_may_lie_in_one_folder_with_what_is_neither(two: Path) -> None:
    shutil.copy(SWARM, two)
    (two / "notes.json").write_text('{"a": 1}')

    result = run_corpus("trace", "measure", str(two), "--only", "steps", "--format", "csv")

    assert [line.partition(",")[0] for line in result.stdout.splitlines()] == ["trace", "swarm", NAME, "b2" + NAME[2:]]
    assert "skipped 1 file that is not a log in a known format (notes.json)" in result.stderr


def test_what_is_neither_a_trace_nor_a_log_is_shown_with_its_mistakes(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"a": 1}')

    result = run_corpus("trace", "validate", str(tmp_path))

    assert result.code == 1
    assert "T113" in result.stdout


@pytest.mark.parametrize("form", FORMS)
def test_every_log_of_the_tests_can_be_shown_and_measured(form: str) -> None:
    assert run_corpus("trace", "show", str(LOGS / form)).code == 0
    assert run_corpus("trace", "measure", str(LOGS / form)).code == 0


FOLDER_COMMANDS = (
    *("show", "doctor", "doctor --format json", "validate", "label", "replay", "graph", "reward"),
    *("measure", "measure --only steps,tokens --format csv", "measure --ledger agent", "measure --profile"),
)


@pytest.mark.parametrize("words", FOLDER_COMMANDS)
def test_a_session_that_cannot_be_read_leaves_the_others_and_ends_with_an_error(words: str, tmp_path: Path) -> None:
    shutil.copytree(SESSION, tmp_path / "logs")
    (tmp_path / "logs" / "broken.json").write_text('{"resourceSpans": [{"scopeSpans": [{"spans": [')
    alone = run_corpus("trace", *words.split(), str(SESSION))

    result = run_corpus("trace", *words.split(), str(tmp_path / "logs"))

    said = "corpus: left out: 'broken.json' is not JSON: Input data was truncated\n"
    assert (result.code, result.stdout, result.stderr.splitlines(keepends=True)[0]) == (1, alone.stdout, said)


@pytest.mark.parametrize("words", FOLDER_COMMANDS)
def test_a_trace_with_errors_leaves_the_others_and_ends_with_an_error(words: str, tmp_path: Path) -> None:
    shutil.copy(SWARM, tmp_path)
    bad = json.loads(SWARM.read_text(encoding="utf-8")) | {"trace_id": "bad"}
    bad["edges"].append({"src": "nobody", "dst": "none", "type": "causal"})
    (tmp_path / "bad.jsonl").write_text(json.dumps(bad) + "\n")
    alone = run_corpus("trace", *words.split(), str(SWARM))
    several = words.split()[0] not in ("label", "replay", "graph")

    result = run_corpus("trace", *words.split(), str(tmp_path), *([] if several else ["--session", "swarm"]))

    assert result.code == several
    if words == "validate":
        assert [line.split()[1] for line in result.stdout.splitlines()] == ["T202", "T202"]
        assert result.stderr == "2 errors in 2 traces\n"
        return
    place = f"{tmp_path}/bad.jsonl:1:"
    assert "nobody" in result.stderr if several else not result.stderr
    assert result.stderr.startswith(f"corpus: left out: {place}" if several else "")
    if words.split()[0] != "reward" and words not in (
        "measure",
        FOLDER_COMMANDS[-3],
    ):  # of two that are given one is shown in a table of several
        assert result.stdout.replace(f"{tmp_path}/swarm.json", str(SWARM)) == alone.stdout


ADK = LOGS / "google_adk" / "session.json"


@pytest.mark.parametrize("command", ["doctor", "show", "measure", "validate", "import"])
def test_a_document_that_is_cut_off_is_no_log_in_which_nothing_ran(command: str, tmp_path: Path) -> None:
    (tmp_path / "adk.json").write_bytes(ADK.read_bytes()[:2000])
    said = "'adk.json' is not JSON: Input data was truncated\n"

    alone = run_corpus("trace", command, str(tmp_path))
    shutil.copytree(SESSION, tmp_path / "logs")
    beside = run_corpus("trace", command, str(tmp_path))

    assert alone == (3, "", f"corpus: {said}")
    assert (beside.code, beside.stderr.partition("left out: ")[2].partition("\n")[0] + "\n") == (1, said)


@pytest.mark.parametrize("command", ["show", "measure", "validate", "label"])
def test_lines_that_could_not_be_read_are_told_by_every_command(command: str, tmp_path: Path) -> None:
    rubbish = b'rubbish\n{"cut": 1'
    log = tmp_path / MAIN.name
    log.write_bytes(MAIN.read_bytes() + rubbish)
    last = len(log.read_bytes().splitlines())

    result = run_corpus("trace", command, str(log))

    said = [f"not JSON (such as {log.name}:{last - 1})", f"cut off at the end (such as {log.name}:{last})"]
    assert result.code == 0
    assert result.stderr.splitlines()[:2] == [f"corpus: left out: 1 x {one}" for one in said]


@pytest.mark.parametrize("command", ["doctor", "show", "measure", "validate", "import"])
def test_a_file_that_is_no_text_is_named_once_and_none_of_it_is_shown(command: str, tmp_path: Path) -> None:
    (tmp_path / "picture.jsonl").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\n" * 500)
    alone = run_corpus("trace", command, str(tmp_path / "picture.jsonl"))
    shutil.copytree(SESSION, tmp_path / "logs")
    beside = run_corpus("trace", command, str(tmp_path))

    assert (alone.code, alone.stdout) == (3, "")
    said = f"'{tmp_path}/picture.jsonl' is not a log in a known format: it is not text"
    assert alone.stderr.startswith(f"corpus: {said}\nFormats: claude_code, ")
    assert beside.code == 0
    assert "corpus: skipped 1 file that is not a log in a known format (picture.jsonl)\n" in beside.stderr


def test_an_empty_folder_is_refused_with_the_endings_of_logs_and_traces(tmp_path: Path) -> None:
    hint = "Traces and logs end in .jsonl, .ndjson, .json, .db, .eval."
    for command in ("doctor", "measure"):
        said = f"corpus: no trace or log in '{tmp_path}'\n{hint}\n"
        assert run_corpus("trace", command, str(tmp_path)) == (3, "", said)


def test_where_nothing_can_be_read_the_first_reason_is_given(tmp_path: Path) -> None:
    bad = json.loads(SWARM.read_text(encoding="utf-8"))
    bad["edges"].append({"src": "nobody", "dst": "none", "type": "causal"})
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    of_trace = run_corpus("trace", "doctor", str(tmp_path))
    (tmp_path / "broken.json").write_text('{"resourceSpans": [{"scopeSpans": [{"spans": [')

    measured, shown = run_corpus("trace", "measure", str(tmp_path)), run_corpus("trace", "doctor", str(tmp_path))

    assert (of_trace.code, measured.code, shown.code) == (1, 1, 3)
    assert "corpus: the trace has errors, so nothing derived from it would be true:\n" in of_trace.stderr
    assert of_trace.stderr in measured.stderr
    assert shown.stderr.endswith("\ncorpus: there is no run that can be read\n")
    assert not of_trace.stdout + measured.stdout + shown.stdout
