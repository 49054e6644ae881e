"""Scripted runs of SDKs for agents: the script of a model, and the truth about its tokens."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_KINDS = ("input", "output", "cache_read", "reasoning")


class Step(NamedTuple):
    """An answer of a scripted model: text, tool calls, or a failure.

    Attributes:
        text: The text of the answer.
        calls: The tools that the model calls, each with arguments.
        fails: True if the call of the model fails; then it reports no tokens.
        usage: The numbers of input, output, cached input and reasoning tokens; the input includes the cached input.
        seconds: The time that the answer takes.
    """

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    fails: bool = False
    usage: tuple[int, int, int, int] = (0, 0, 0, 0)
    seconds: float = 0.01


class Truth:
    """The tokens that scripted models have reported, by agent."""

    def __init__(self) -> None:
        self.agents: dict[str, dict[str, int]] = {}
        self._lock = threading.Lock()

    def note(self, agent: str, usage: tuple[int, int, int, int]) -> None:
        """Add the tokens that a call has reported, in the form of `Step.usage`."""
        all_input, output, cached, reasoning = usage
        with self._lock:
            totals = self.agents.setdefault(agent, dict.fromkeys(("calls", *_KINDS), 0))
            totals["calls"] += 1
            totals["input"] += all_input - cached
            totals["output"] += output
            totals["cache_read"] += cached
            totals["reasoning"] += reasoning

    def as_data(self) -> dict[str, Any]:
        """Return the tokens as they are written to JSON."""
        total = {kind: sum(agent[kind] for agent in self.agents.values()) for kind in ("calls", *_KINDS)}
        return {"total": total, "agents": dict(sorted(self.agents.items()))}


def write(path: Path, values: Sequence[Any], *, lines: bool) -> None:
    """Write values as JSON Lines, or the only value as JSON."""
    text = json.dumps(values[0], indent=1) + "\n"
    if lines:
        text = "".join(f"{json.dumps(value)}\n" for value in values)
    path.write_text(text, encoding="utf-8")


def asks(tool: str, input_tokens: int, output_tokens: int, argument: str = "q", seconds: float = 0.01) -> Step:
    """Return an answer that calls one tool; `argument` is the name of its argument, or empty if it has none."""
    arguments = {argument: f"about {input_tokens}"} if argument else {}
    return Step(calls=((tool, arguments),), usage=(input_tokens, output_tokens, 0, 0), seconds=seconds)
