"""What a part of the team would have achieved: the value of a coalition, as runs without the others have shown it.

A log holds one run, in which everybody took part. What would have come out without somebody is known only
from runs that were made without them, whose outcomes the user supplies; or it is put as a proxy (`reach`), which
is a statement about the graph and not about the world, and is always named as such.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.trace.credit.values import coalition_values

Coalition: TypeAlias = frozenset[str]
Value: TypeAlias = Callable[[Coalition], float]
"""From a coalition of players to what it achieves."""

_MOST_NAMED = 5


class Supplied:
    """The values of ablation runs, from JSON of the form `values.COALITIONS`.

    A coalition that the file lacks counts 0 and is remembered, so that all of them can be named at once:
    call `see_complete` before a result is used.

    Args:
        text: The file's text.
        path: Its path, to show.
        units: The players, by credit unit: those of the unit that is asked for first.

    Raises:
        DataFileError: The text is not of that form, or names members that are no players.
    """

    def __init__(self, text: str, path: str, units: Mapping[str, Sequence[str]]) -> None:
        self._path = path
        self._players = next(iter(units.values()))
        self._known, stated = coalition_values(text, path)
        self._asked: dict[Coalition, None] = {}
        players = set(self._players)
        strangers = [member for member in stated if member not in players]
        if strangers:
            raise _strange(strangers, stated[strangers[0]], units)

    def __call__(self, coalition: Coalition) -> float:
        """The value of a coalition; 0 where the file has none."""
        self._asked[coalition] = None
        return self._known.get(coalition, 0.0)

    def see_complete(self) -> None:
        """See that the file had a value for each coalition that was asked for.

        Raises:
            CommandUseError: It had not; the message names the first of them, the smallest before others.
        """
        missing = sorted((one for one in self._asked if one not in self._known), key=self._rank)
        if not missing:
            return
        shown = [f"  {self._written(coalition)}" for coalition in missing[:_MOST_NAMED]]
        shown += [f"  … and {len(missing) - _MOST_NAMED:,} more"] if len(missing) > _MOST_NAMED else []
        number = f"{len(missing):,} of {len(self._asked):,} coalitions that are asked for"
        raise CommandUseError(
            "\n".join((f"{quote(self._path)} has no value for {number}:", *shown)),
            "Add a run with exactly these members for each (of nobody: mostly 0), "
            "or leave out --values to use the proxy.",
        )

    def _rank(self, coalition: Coalition) -> tuple[int, list[int]]:
        return len(coalition), [place for place, name in enumerate(self._players) if name in coalition]

    def _written(self, coalition: Coalition) -> str:
        """A coalition as the file would have it."""
        members = [name for name in self._players if name in coalition]
        return printable(f'{{"members": {json.dumps(members, ensure_ascii=False)}, "value": ?}}', limit=300)


def _strange(strangers: Sequence[str], place: str, units: Mapping[str, Sequence[str]]) -> DataFileError:
    """What is said of members that are no players: of which unit they are, and which players there are."""
    asked = next(iter(units))
    shown = ", ".join(map(quote, strangers[:_MOST_NAMED]))
    more = f" and {len(strangers) - _MOST_NAMED:,} more" if len(strangers) > _MOST_NAMED else ""
    message = f"{place}: the unit asked for is {asked}, and the trace has no {asked} {shown}{more}"
    fitting = [unit for unit, players in units.items() if set(strangers) <= set(players)]
    if fitting:
        return DataFileError(message, f"These are names of the unit {fitting[0]}: use --unit {fitting[0]}.")
    players = units[asked]
    there = ", ".join(map(quote, players[:_MOST_NAMED]))
    there += f" and {len(players) - _MOST_NAMED:,} more" if len(players) > _MOST_NAMED else ""
    return DataFileError(message, f"There are: {there}.")
