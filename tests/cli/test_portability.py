"""Nothing here needs POSIX alone: commands that only read work where its modules are missing, as on Windows."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT, run_corpus

POSIX_ONLY = ("fcntl", "grp", "pwd", "resource", "termios")

WITHOUT_POSIX = f"""
import sys
for name in {POSIX_ONLY}:
    sys.modules[name] = None
from orchtrace_corpus.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "words", ["stats", "check data", "trace validate data/traces", "trace import tests/data/logs/claude_code --salt x"]
)
def test_commands_that_read_say_the_same_without_modules_of_posix(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    command = [sys.executable, "-c", WITHOUT_POSIX, *words.split()]

    without = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert (without.returncode, without.stdout, without.stderr) == run_corpus(*words.split())
