"""Made-up teams at work: a lead that again and again asks workers, which read files and answer."""

import random
from datetime import UTC, datetime
from typing import Any, NamedTuple

START = 1_795_219_200  # 2026-11-21T00:00:00Z
WORKERS = 3
TURNS = 6
PIECES = (
    "    for path in sorted(folder.iterdir()):\n",
    '        if path.suffix == ".py" and "test" not in path.name:\n',
    "            yield Module(path, path.read_text(encoding='utf-8'))\n",
    "\n",
    "def report(found: Sequence[Finding]) -> str:\n",
    '    """What was found, each on a line of its own."""\n',
    "The function reads the whole folder before it answers, which is why the first call is slow.\n",
    "tests/test_reader.py::test_that_a_folder_without_modules_is_empty PASSED   [ 41%]\n",
    "   214→\treturn [line for line in lines if not line.startswith('#')]\n",
    "- `reader.py`: opens a file for each module, and closes none of them\n",
)
Files = dict[str, list[dict[str, Any]]]
"""The rows of each file."""


class Turn(NamedTuple):
    """One answer of a model, and what the tool that it called has printed.

    Attributes:
        start: When the model began, in seconds since the session began.
        end: When it had answered.
        done: When the tool had.
        text: What the model says.
        printed: What the tool prints; empty where none was called.
        usage: Input, output, cached input and reasoning tokens; the input includes the cached.
    """

    start: float
    end: float
    done: float
    text: str
    printed: str
    usage: tuple[int, int, int, int]


class Work(NamedTuple):
    """What one worker does: its task and its turns, the last of which is its answer."""

    name: str
    task: str
    turns: list[Turn]


class Round(NamedTuple):
    """The lead's answer that asks workers, and what they do."""

    lead: Turn
    works: list[Work]


def round_(chance: random.Random, number: int) -> Round:
    """One round of a session: the lead asks, the workers work side by side."""
    start = number * 600.0
    lead = Turn(start, start + 8, start + 8, _text(chance, 600), "", _usage(chance))
    works = []
    for worker in range(WORKERS):
        turns = []
        time = start + 8.5
        for _ in range(TURNS - 1):
            end = time + chance.randint(2, 20)
            done = end + chance.random() * 5
            turns.append(Turn(time, end, done, _text(chance, 300), _text(chance, 2_500), _usage(chance)))
            time = done + 0.01
        turns.append(Turn(time, time + 9, time + 9, _text(chance, 1_500), "", _usage(chance)))
        works.append(Work(f"{number}-{worker}", _text(chance, 500), turns))
    return Round(lead, works)


def _text(chance: random.Random, length: int) -> str:
    """A text of half to one and a half times a length."""
    pieces: list[str] = []
    wanted, size = chance.randint(length // 2, length * 3 // 2), 0
    while size < wanted:
        pieces.append(chance.choice(PIECES))
        size += len(pieces[-1])
    return "".join(pieces)


def _usage(chance: random.Random) -> tuple[int, int, int, int]:
    cached = chance.randint(0, 40_000)
    return cached + chance.randint(10, 3_000), chance.randint(50, 1_500), cached, chance.randint(0, 50)


def moment(second: float) -> str:
    """A moment of a session as logs write it."""
    return datetime.fromtimestamp(START + second, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def end_of(one: Round) -> float:
    """When the last worker of a round is done."""
    return max(work.turns[-1].done for work in one.works)
