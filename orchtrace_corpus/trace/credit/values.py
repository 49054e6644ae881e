"""Values that the user supplies, since no log holds them: of coalitions, from ablations; of steps, from a critic."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from orchtrace_corpus.errors import DataFileError
from orchtrace_corpus.findings import quote

COALITIONS = '{"values": [{"members": ["a", "b"], "value": 0.7}, ...]}'
"""How values of coalitions are written."""

STEPS = '{"steps": [{"id": "e1", "value": 0.4, "reward": 0}, ...]}'
"""How values of steps are written; rewards may be left out."""

_MOST = 1e100


class StepValue(NamedTuple):
    """The value estimated for the state before a step, and the reward at it; None where none is given."""

    value: float
    reward: float | None


def coalition_values(text: str, path: str) -> dict[frozenset[str], float]:
    """What each coalition of a file achieves.

    Raises:
        DataFileError: The text is not of the form `COALITIONS`, or values a coalition twice.
    """
    found: dict[frozenset[str], float] = {}
    try:
        for row in _rows(text, "values"):
            members = frozenset(_text(member) for member in row["members"])
            if members in found:
                raise _twice(path, f"the coalition of {', '.join(sorted(members)) or 'nobody'}")
            found[members] = _figure(row["value"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        message = f"{quote(path)} does not give values of coalitions"
        raise DataFileError(message, f"Write: {COALITIONS}, with a run of each coalition that is asked for.") from error
    return found


def step_values(text: str, path: str) -> dict[str, StepValue]:
    """The values and rewards of steps by event id.

    Raises:
        DataFileError: The text is not of the form `STEPS`, or values a step twice.
    """
    found: dict[str, StepValue] = {}
    try:
        for row in _rows(text, "steps"):
            name, reward = _text(row["id"]), row.get("reward")
            if name in found:
                raise _twice(path, f"the step {name}")
            found[name] = StepValue(_figure(row["value"]), None if reward is None else _figure(reward))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        message = f"{quote(path)} does not give values of steps"
        raise DataFileError(message, f"Write: {STEPS}; rewards may be left out.") from error
    return found


def _rows(text: str, name: str) -> Iterator[dict[str, Any]]:
    for row in json.loads(text, parse_constant=_refuse)[name]:
        if not isinstance(row, dict):
            raise TypeError(row)
        yield row


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _figure(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    if not abs(value) <= _MOST:  # nor is it NaN
        raise ValueError(value)
    return float(value)


def _refuse(word: str) -> NoReturn:
    raise ValueError(word)


def _twice(path: str, what: str) -> DataFileError:
    return DataFileError(f"{quote(path)} gives two values for {quote(what)}", "Keep one of them.")
