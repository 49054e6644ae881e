"""Shell completion: what is offered behind TAB, in the form that each shell reads, and in a real bash."""

import os
import pty
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchtrace_corpus.cli import completion
from tests.conftest import ROOT, TOY, run_corpus


@pytest.fixture(autouse=True)
def garden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the toy corpus, which is the working folder."""
    shutil.copytree(TOY, tmp_path / "corpus")
    monkeypatch.chdir(tmp_path / "corpus")
    return tmp_path / "corpus"


def offered(line: str) -> list[str]:
    """What is offered for the last word of a line."""
    *before, word = line.split(" ")
    return [value for value, _ in completion.offer(before, word) if value.startswith(word)]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("s", ["stats", "show", "search", "site", "scale", "screen"]),
        ("--r", ["--root"]),
        ("--quiet ga", ["gaps"]),
        ("--in", ["--install-completion"]),
        ("lst x", []),
        ("--root ", []),
        ("stats --scr", ["--screening"]),
        ("stats --full --fu", []),
        ("stats --by size --by", ["--by"]),
        ("stats sty", ["style"]),
        ("stats --by c", ["code", "cite_key", "care", "confidence", "contested"]),
        ("stats --cross style si", ["size"]),
        ("tag rose-garden size=small style=g", ["style=gravel"]),
        ("exclude rose-garden lo", []),
        ("add E", ["E001", "E003"]),
        ("gaps st", ["stage", "style"]),
        ("gaps C", ["C1", "C2"]),
        ("terms too", ["tools"]),
        ("list --format m", ["markdown"]),
        ("list --format=j", ["--format=json"]),
        ("list --columns key,ti", ["key,title"]),
        ("list --where siz", ["size=small", "size=large"]),
        ("list --where s", ["summary", "style", "size"]),
        ("list --exclusions --where st", ["stage=gate", "stage=path"]),
        ("list --where titl", ["title=", "title!=", "title~"]),
        ("list --where style!=f", ["style!=formal"]),
        ("list --where style=formal,S", ["style=formal,S1", "style=formal,S2", "style=formal,S2", "style=formal,S3"]),
        ("list --where water=w", ["water=weekly"]),
        ("list --where C2=d", ["C2=daily"]),
        ("list --where=size=s", ["--where=size=small"]),
        ("list --where hight=x", []),
        ("show rose", ["rose-garden"]),
        ("show rose-garden lo", ["long-grass"]),
        ("show E", ["E001", "E003"]),
        ("rule V10", ["V101", "V102", "V103", "V104", "V105", "V106"]),
        ("export bib", ["bibtex"]),
        ("build readme f", ["figures"]),
        ("audit sam", ["sample"]),
        ("audit sample --st", ["--stratify"]),
        ("trace dataset b", ["build"]),
        ("trace validate --str", ["--strict"]),
        ("tag rose", ["rose-garden"]),
        ("tag rose-garden style=g", ["style=gravel"]),
        ("add x --sty", ["--style"]),
        ("add x --style m", ["meadow"]),
        ("add x --water d", ["daily"]),
        ("add x --to c", ["candidates"]),
    ],
)
def test_what_can_follow_is_offered(line: str, values: list[str]) -> None:
    try:
        found = offered(line)
    except completion.CorpusError:
        found = []

    assert found == values


def test_keys_are_offered_in_any_case_and_from_the_corpus_that_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert asked(monkeypatch, "bash", "show ROSE") == "rose-garden\n"
    monkeypatch.chdir(tmp_path)
    assert asked(monkeypatch, "bash", "--root corpus show ROSE") == "rose-garden\n"
    assert asked(monkeypatch, "bash", "--root nowhere gaps s") == ""


def asked(monkeypatch: pytest.MonkeyPatch, shell: str, line: str, action: str = "get-args") -> str:
    """What the program answers to a shell's script."""
    monkeypatch.setenv("_CORPUS_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", "\n".join(["corpus", *line.split(" ")]))
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" "))))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", f"corpus {line}")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", action)
    monkeypatch.setenv("_TYPER_COMPLETE_WORD_TO_COMPLETE", line.rpartition(" ")[2])
    result = run_corpus()
    assert result.stderr == ""
    return result.stdout if action == "get-args" else str(result.code)


def test_each_shell_gets_its_form(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, "bash", "list --where size = s") == "small\n"
    assert asked(monkeypatch, "bash", "list --where size = small,l") == "small,large\n"
    assert asked(monkeypatch, "bash", "list --where = size =") == "small\nlarge\n"
    assert asked(monkeypatch, "zsh", "list --where size=s") == """_arguments '*: :(("size=small":"Small"))'\n"""
    assert asked(monkeypatch, "zsh", "stats st") == ("""_arguments '*: :(("stage":"Stage"\n"style":"Style"))'\n""")
    assert asked(monkeypatch, "zsh", "import x") == "_files\n"
    assert asked(monkeypatch, "fish", 'list --where "size=s') == "size=small\tSmall\n"
    assert asked(monkeypatch, "fish", "show rose") == "rose-garden\n"
    assert asked(monkeypatch, "fish", "show rose", "is-args") == "0"
    assert asked(monkeypatch, "fish", "import x", "is-args") == "1"
    assert asked(monkeypatch, "pwsh", "list --where size=s") == "size=small:::Small\n"
    assert asked(monkeypatch, "powershell", "show rose-garden lo") == "long-grass::: \n"
    assert asked(monkeypatch, "fish", "show rose-garden ") == "".join(
        f"{key}\n" for key in ("rose-garden", "long-grass", "mixed-borders", "terminal-yard", "E001", "E003")
    )


def test_orchtrace_completes_the_commands_of_traces() -> None:
    assert [value for value, _ in completion.offer([], "d", "orchtrace") if value.startswith("d")] == [
        "doctor",
        "dataset",
        "diff",
    ]


@pytest.mark.parametrize(("shell", "start"), [("bash", "_corpus_completion() {"), ("zsh", "#compdef corpus")])
def test_the_script_of_a_shell_can_be_shown_and_installed(shell: str, start: str, tmp_path: Path) -> None:
    code = f"import shellingham; shellingham.detect_shell = lambda *_: ('{shell}', '/bin/{shell}')\n"
    code += "import sys; from orchtrace_corpus.__main__ import main; sys.argv[0] = 'corpus'; main()"
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}

    def run(option: str) -> str:
        command = [sys.executable, "-c", code, option]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout

    assert run("--show-completion").startswith(start)
    assert f"{shell} completion installed in {tmp_path}" in run("--install-completion")


PROGRAM = """#!/bin/bash
[ -n "$_CORPUS_COMPLETE" ] && exec {python} -m orchtrace_corpus
printf '%s\\n' "$*" >> {said}
"""


@pytest.fixture
def typed(tmp_path: Path, garden: Path) -> Iterator[object]:
    """Types keys into a real bash with the completion installed, and gives the commands that it ran."""
    said, folder = tmp_path / "said", tmp_path / "bin"
    folder.mkdir()
    (folder / "corpus").write_text(PROGRAM.format(python=sys.executable, said=said))
    (folder / "corpus").chmod(0o755)
    script = subprocess.run(
        [sys.executable, "-c", "from typer._completion_shared import get_completion_script as g; print(g(prog_name='corpus', complete_var='_CORPUS_COMPLETE', shell='bash'))"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    (tmp_path / "rc").write_text(f"{script}\nPATH={folder}:$PATH\nPYTHONPATH={ROOT}\nexport PYTHONPATH\n")

    def run(*lines: str) -> list[str]:
        controller, terminal = pty.openpty()
        command = ["bash", "--rcfile", str(tmp_path / "rc"), "-i"]
        environment = {**os.environ, "TERM": "dumb", "HOME": str(tmp_path), "INPUTRC": "/dev/null"}
        child = subprocess.Popen(
            command,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=garden,
            env=environment,
            start_new_session=True,
        )
        os.close(terminal)
        os.write(controller, "".join(f"{line}\r" for line in (*lines, "exit")).encode())
        while child.poll() is None:
            if select.select([controller], [], [], 0.05)[0]:
                try:
                    os.read(controller, 65536)
                except OSError:
                    break
        assert child.wait() == 0
        os.close(controller)
        return said.read_text().splitlines()

    return run


@pytest.mark.posix
@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")
def test_a_real_bash_completes(typed: object) -> None:
    assert callable(typed)
    assert typed(
        "corpus sho\trose\t",
        "corpus list --where siz\ts\t",
        "corpus list --where=water=d\t",
        "corpus list --where style=formal,mea\t",
        "corpus stats sty\tsiz\t",
        "corpus check --stale n\t",
    ) == [
        "show rose-garden",
        "list --where size=small",
        "list --where=water=daily",
        "list --where style=formal,meadow",
        "stats style size",
        "check --stale notice",
    ]


def test_completion_imports_neither_typer_nor_anything_heavy() -> None:
    lines = ["s", "show ro", "list --where size=s", "stats st", "gaps "]
    lines += ["add ", "tag ro", "tag rose-garden sty", "add E"]
    code = (
        "import os, sys; from orchtrace_corpus.cli.main import run\n"
        "for line in sys.argv[1:]:\n"
        "    words = ['corpus', *line.split(' ')]\n"
        "    os.environ.update(COMP_WORDS='\\n'.join(words), COMP_CWORD=str(len(words) - 1))\n"
        "    print(line, run([]))\n"
        "sys.exit(str([name for name in ('typer', 'pandas', 'rich', 'requests', 'jsonschema') if name in sys.modules]))"
    )
    environment = {**os.environ, "_CORPUS_COMPLETE": "complete_bash", "PYTHONPATH": str(ROOT)}
    child = subprocess.run([sys.executable, "-c", code, *lines], env=environment, capture_output=True, text=True)

    assert child.stderr == "[]\n"
    assert [line for line in lines if f"{line} 0\n" not in child.stdout] == []
