"""Scripted runs of SDKs for agents: the script of a model, and the truth about its tokens."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_KINDS = ("input", "output", "cache_read", "reasoning")


class Step(NamedTuple):
    """One answer of a scripted model: text, or tool calls, or a failure.

    Attributes:
        text: What it says.
        calls: The tools that it calls, each with arguments.
        fails: Whether the call fails, and reports nothing.
        usage: Input, output, cached input and reasoning tokens; the input includes the cached.
        seconds: How long it takes.
    """

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    fails: bool = False
    usage: tuple[int, int, int, int] = (0, 0, 0, 0)
    seconds: float = 0.01


class Truth:
    """The tokens that scripted models have reported, by agent, and the answers that they gave."""

    def __init__(self) -> None:
        self.agents: dict[str, dict[str, int]] = {}
        self._lock = threading.Lock()

    def note(self, agent: str, usage: tuple[int, int, int, int]) -> None:
        """Note what one call has reported."""
        fresh, output, cached, reasoning = usage[0] - usage[2], usage[1], usage[2], usage[3]
        with self._lock:
            known = self.agents.setdefault(agent, dict.fromkeys(("calls", *_KINDS), 0))
            for kind, number in zip(("calls", *_KINDS), (1, fresh, output, cached, reasoning), strict=True):
                known[kind] += number

    def as_data(self) -> dict[str, Any]:
        """The truth as JSON has it."""
        total = {kind: sum(agent[kind] for agent in self.agents.values()) for kind in ("calls", *_KINDS)}
        return {"total": total, "agents": dict(sorted(self.agents.items()))}


def write(path: Path, values: Sequence[Any], *, lines: bool) -> None:
    """Write JSON, or JSON Lines."""
    text = "".join(json.dumps(value) + "\n" for value in values) if lines else json.dumps(values[0], indent=1) + "\n"
    path.write_text(text, encoding="utf-8")


def asks(tool: str, read: int, written: int, argument: str = "q", seconds: float = 0.01) -> Step:
    """An answer that calls one tool."""
    arguments = {argument: f"about {read}"} if argument else {}
    return Step(calls=((tool, arguments),), usage=(read, written, 0, 0), seconds=seconds)
