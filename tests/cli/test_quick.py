"""What hooks run without Typer does exactly what it does with Typer."""

import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchtrace_corpus.base.commands.declarations import Argument, Context, Option, parse
from orchtrace_corpus.base.commands.lazy import typer_function
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.cli import quick
from tests.conftest import ROOT, TOY, run_corpus, run_in_one_process
from tests.effort import tries

INVOCATIONS = (
    ["check"],
    ["validate"],
    ["stats"],
    ["list"],
    ["readme", "--check"],
    ["trace", "validate", "traces"],
    ["trace", "validate", "a.json", "lost.json"],
    ["trace", "doctor", "traces/one.json"],
)


@pytest.mark.parametrize("words", INVOCATIONS)
@pytest.mark.parametrize("state", ["sound", "wrong", "unreadable", "nothing"])
def test_a_quick_invocation_ends_as_typer_would_end_it(
    state: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path, state)
    monkeypatch.chdir(tmp_path)

    quickly = run_corpus(*words)

    monkeypatch.setattr(quick, "run", lambda words, output: None)
    assert quickly == run_corpus(*words)
    expected = {"sound": 0, "wrong": 1, "unreadable": 3, "nothing": 3}[state]
    if words in (["check"], ["readme", "--check"]) and state == "sound":
        expected = 1  # nothing is generated yet
    elif "lost.json" in words:
        expected = 3
    assert quickly.code == expected


def lay_out(folder: Path, state: str) -> None:
    """A corpus with a trace, in a folder: sound, with mistakes, no text of its format, or not there."""
    trace = (ROOT / "data" / "traces" / "swarm.json").read_text(encoding="utf-8")
    papers = (TOY / "data" / "papers.yaml").read_text(encoding="utf-8")
    if state == "nothing":
        (folder / "data").mkdir()
        (folder / "data" / "papers.yaml").write_bytes(b"\xff")
        (folder / "traces").mkdir()
        return
    changes = {
        "sound": (papers, trace),
        "wrong": (papers.replace("- key: ", "- key: X ", 1), trace.replace('"t": 0', '"t": -1', 1)),
        "unreadable": (papers + "  : [", trace[:-3]),
    }
    for path in sorted(TOY.rglob("*")):
        if path.is_file():
            target = folder / path.relative_to(TOY)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (folder / "data" / "papers.yaml").write_text(changes[state][0], encoding="utf-8")
    region = "<!-- corpus:begin list -->\n<!-- corpus:end list -->\n"
    (folder / "README.md").write_text(region, encoding="utf-8")
    (folder / "traces").mkdir()
    for name in ("traces/one.json", "a.json"):
        (folder / name).write_text(changes[state][1], encoding="utf-8")


def test_a_quick_invocation_does_not_import_typer() -> None:
    plain = ("check", "validate", "stats", "list", "readme --check", "trace validate data/traces",
             "trace doctor data/traces/swarm.json", "trace doctor tests/data/session")  # fmt: skip

    assert run_in_one_process(plain, ["typer"]) == [[words, 0, []] for words in plain]


@pytest.mark.parametrize(
    "words",
    ["", "--help", "check --help", "check x", "check --stale loud", "check --stale", "--quiet check", "lst", "trace", "trace validate",
     "trace validate -- a", "trace validate --limit 2", "trace doctor a --limit 0", "list -wx=y", "show", "readme --check x", "readme --check=yes",
     "gaps a b c", "stats --cross a", "add 2401.00001", "audit", "audit sample --n few", "diff"],
)  # fmt: skip
def test_whatever_is_wrong_or_is_not_plain_is_left_to_typer(words: str) -> None:
    assert quick.run(words.split(), Output()) is None


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


def declared(
    ctx: Context,
    name: Annotated[str, Argument(metavar="NAME")],
    others: Annotated[list[str] | None, Argument(metavar="[OTHER]...")] = None,
    *,
    _: None = None,
) -> int:
    raise NotImplementedError


def full(
    ctx: Context,
    name: Annotated[str, Argument(metavar="NAME")],
    others: Annotated[list[str] | None, Argument(metavar="[OTHER]...")] = None,
    filters: Annotated[list[str] | None, Option("--where", "-w")] = None,
    pair: Annotated[tuple[str, str] | None, Option("--pair")] = None,
    size: Annotated[Size, Option()] = Size.SMALL,
    sizes: Annotated[list[Size] | None, Option("--size-of")] = None,
    number: Annotated[int | None, Option("--number", "-n", min=1, max=20)] = None,
    check: Annotated[bool, Option("--check")] = False,
) -> int:
    CALLS.append({"name": name, "others": others, "filters": filters, "pair": pair, "size": size, "sizes": sizes,
                  "number": number, "check": check})  # fmt: skip
    return 0


CALLS: list[dict[str, Any]] = []
WORDS = ("a", "-", "--", "", "-1", "7", "21", "small", "LARGE", "--where", "-w", "-wx", "--where=x=y", "--pair", "--size", "--size=large",
         "--size-of", "-n", "-n7", "--number=07", "--check", "--check=1", "--no-check", "--wher", "--help", "x=--check", "²")  # fmt: skip


@settings(max_examples=tries(2000, 150), deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=7))
@example(["a", "b", "--pair", "--check", "-w", "--where", "-", "--size", "large", "--size-of", "small", "-n", "7"])
def test_what_is_read_without_typer_is_what_typer_reads(words: list[str]) -> None:
    values = parse(full, words)

    if values is not None:
        CALLS.clear()
        app = typer.Typer()
        app.command()(typer_function(full))
        runner = typer.main.get_command(app)
        assert runner.main(args=words, prog_name="corpus", standalone_mode=False, obj=None) == 0
        full(None, **values)  # type: ignore[arg-type]
        assert CALLS[0] == CALLS[1]


def test_a_function_with_parameters_of_typer_is_not_read_without_it() -> None:
    def command(ctx: typer.Context, name: Annotated[str, Argument()]) -> int:
        raise NotImplementedError

    assert parse(command, ["a"]) is None
    assert parse(declared, ["a"]) is None


def test_every_plain_command_declares_itself_without_typer() -> None:
    code = (
        "import sys\n"
        "from orchtrace_corpus.cli.table import COMMANDS\n"
        "for table in COMMANDS.values():\n"
        "    for name, command in table.items():\n"
        f"        name in {WITH_TYPER!r} or command.find()\n"
        "sys.exit('typer' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


WITH_TYPER = ("add", "exclude", "promote", "demote", "tag", "remove", "screen")
"""Commands with options that the taxonomy declares, or that ask at a terminal."""
