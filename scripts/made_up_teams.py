"""Made-up runs of teams: in each round, a lead asks workers, which read files and answer."""

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
    """An answer of a model, and the output of the tool that it calls.

    Attributes:
        start: When the model begins, in seconds since the session began.
        end: When the model has answered.
        done: When the tool has answered.
        text: The text of the model.
        printed: The output of the tool; empty if no tool is called.
        usage: The numbers of input, output, cached input and reasoning tokens; the input includes the cached input.
    """

    start: float
    end: float
    done: float
    text: str
    printed: str
    usage: tuple[int, int, int, int]


class Work(NamedTuple):
    """The work of one worker: its task and its turns. The last turn is its answer."""

    name: str
    task: str
    turns: list[Turn]


class Round(NamedTuple):
    """An answer of the lead that asks workers, and their work."""

    lead: Turn
    works: list[Work]


def round_(chance: random.Random, number: int) -> Round:
    """Return a round of a session: the lead asks, and the workers work in parallel."""
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
    """Return a text of half to one and a half times a length."""
    wanted_length = chance.randint(length // 2, length * 3 // 2)
    text = ""
    while len(text) < wanted_length:
        text += chance.choice(PIECES)
    return text


def _usage(chance: random.Random) -> tuple[int, int, int, int]:
    """Return random numbers of tokens, as in `Turn.usage`."""
    cached = chance.randint(0, 40_000)
    input_tokens = cached + chance.randint(10, 3_000)
    output_tokens = chance.randint(50, 1_500)
    return input_tokens, output_tokens, cached, chance.randint(0, 50)


def moment(second: float) -> str:
    """Return a moment of a session as logs write it."""
    return datetime.fromtimestamp(START + second, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def end_of(team_round: Round) -> float:
    """Return the second at which the last worker of a round is done."""
    return max(work.turns[-1].done for work in team_round.works)
