"""Commands on a terminal: run to their end, or answered prompt by prompt."""

import os
import pty
import select
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from tests.corpus import processes


def run_on_terminal(
    command: Sequence[str], *, columns: int = 80, environment: dict[str, str] | None = None, **streams: Any
) -> tuple[str, int]:
    """Run a command with all its streams on a terminal, except those given; return what it shows, and its exit code."""
    controller, terminal = pty.openpty()
    variables = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm", **(environment or {})}
    all_streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal, **streams}
    with subprocess.Popen(command, env=variables, **all_streams) as child:
        os.close(terminal)
        shown = b""
        while select.select([controller], [], [], 30)[0]:
            try:
                part = os.read(controller, 65536)
            except OSError:  # the child has closed its end
                break
            if not part:
                break
            shown += part
        os.close(controller)
    return shown.decode(), child.returncode


class Terminal:
    """A process on a terminal of its own, answered prompt by prompt."""

    def __init__(self, *arguments: str, command: str = "add") -> None:
        self._controller, terminal = pty.openpty()
        settings = {"COLUMNS": "100", "TERM": "xterm"}
        self._child = processes.fork(
            processes.command, command, *arguments, files=[terminal] * 3, terminal=True, **settings
        )
        os.close(terminal)
        self._pressed = b""
        self.shown = ""

    def until(self, prompt: str) -> None:
        """Read until a prompt is shown."""
        start = len(self.shown)
        while not self.shown[start:].endswith(prompt):
            assert select.select([self._controller], [], [], 30)[0], self.shown
            part = self._read()
            assert part, self.shown
            self.shown += part

    def answer(self, answers: Sequence[tuple[str, str]]) -> None:
        """Give the answer to each prompt, when it is shown."""
        for prompt, text in answers:
            self.until(prompt)
            os.write(self._controller, f"{text}\n".encode())

    def press(self, keys: bytes) -> None:
        """Press keys, again and again until the process ends."""
        self._pressed = keys
        os.write(self._controller, keys)

    def kill(self) -> int | None:
        """Kill the process, and return its exit code."""
        return processes.killed(self._child, signal.SIGKILL)

    def end(self) -> int | None:
        """Read until the process ends, and return its exit code."""
        while True:
            if not select.select([self._controller], [], [], 5)[0]:
                os.write(
                    self._controller, self._pressed
                )  # an interrupt just before a read is seen at the next one only
            elif part := self._read():
                self.shown += part
            else:
                break
        os.close(self._controller)
        self._child.join(30)
        return self._child.exitcode

    def _read(self) -> str:
        try:
            return os.read(self._controller, 65536).decode().replace("\r\n", "\n")
        except OSError:  # the child has closed its end
            return ""
