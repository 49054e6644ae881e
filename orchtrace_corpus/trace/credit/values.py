"""Values that the user supplies, since no log holds them: of coalitions, from ablations; of steps, from a critic.

A log holds one run, in which everybody took part. What would have come out without somebody is known only
from runs that were made without them, whose outcomes the user supplies; or it is put as a proxy (`reach`), which
is a statement about the graph and not about the world, and is always named as such.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.base.json_places import Path, Places
from orchtrace_corpus.base.json_syntax import Kind, first_fault
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import first_and_more, first_names_and_more
from orchtrace_corpus.trace.credit.methods import Coalition

COALITIONS = '{"values": [{"members": [], "value": 0}, {"members": ["a", "b"], "value": 0.7}, ...]}'
"""The form of a file with values of coalitions."""

STEPS = '{"steps": [{"id": "e1", "value": 0.4, "reward": 0}, ...]}'
"""The form of a file with values of steps; rewards are optional."""

_MOST = 1e100
_MOST_NAMED = 5
_MESSAGES = {
    Kind.EMPTY: "nothing in the file",
    Kind.NOT_FINITE: "{0.word} is not a finite number",
    Kind.BYTE_ORDER_MARK: "{0.message}",
    Kind.TOO_DEEP: "{0.message}",
}
_KINDS = {type(None): "null", bool: "true or false", float: "a number", str: "text", list: "a list", dict: "an object"}


class StepValue(NamedTuple):
    """The value estimated for the state before a step, and the reward at it; None where none is given."""

    value: float
    reward: float | None


class Supplied:
    """The values of ablation runs, from JSON of the form `COALITIONS`.

    A coalition that the file lacks counts 0 and is remembered, so that all of them can be named at once:
    call `see_complete` before a result is used.

    Args:
        text: The file's text.
        path: Its path, to show.
        units: The players, by credit unit: those of the unit that is asked for first.

    Raises:
        DataFileError: The text is not of that form, values a coalition twice, or names members that are no players;
            with the place.
    """

    def __init__(self, text: str, path: str, units: Mapping[str, Sequence[str]]) -> None:
        self._path = path
        self._players = next(iter(units.values()))
        self._known: dict[Coalition, float] = {}
        self._asked: dict[Coalition, None] = {}
        file = _File(text, path, f"Write: {COALITIONS}, with a run of each coalition that is asked for.")
        named: dict[str, Path] = {}
        for where, row in file.rows("values"):
            members = file.member(row, where, "members", list)
            coalition: set[str] = set()
            for index in range(len(members)):
                name = file.member(members, (*where, "members"), index, str)
                if name in coalition:
                    raise file.wrong((*where, "members", index), f"{quote(name)} is named twice in one coalition")
                coalition.add(name)
                named.setdefault(name, (*where, "members", index))
            if frozenset(coalition) in self._known:
                shown = ", ".join(map(printable, members)) or "nobody"
                raise file.wrong(where, f"a second value of the coalition of {shown}", "Keep one of them.")
            self._known[frozenset(coalition)] = file.figure(row, where, "value")
        players = set(self._players)
        strangers = [member for member in named if member not in players]
        if strangers:
            raise _strange(strangers, file.place(named[strangers[0]]), units)

    def __call__(self, coalition: Coalition) -> float:
        """The value of a coalition; 0 where the file has none."""
        self._asked[coalition] = None
        return self._known.get(coalition, 0.0)

    def see_complete(self) -> None:
        """See that the file had a value for each coalition that was asked for.

        Raises:
            CommandUseError: It had not; the message names the first of them, the smallest before others.
        """
        places = {name: place for place, name in enumerate(self._players)}
        missing = [one for one in self._asked if one not in self._known]
        missing.sort(key=lambda one: (len(one), sorted(map(places.__getitem__, one))))
        if not missing:
            return
        members = [json.dumps([name for name in self._players if name in one], ensure_ascii=False) for one in missing]
        rows = ["  " + printable(f'{{"members": {names}, "value": ?}}', limit=300) for names in members]
        shown = first_and_more(rows, _MOST_NAMED, "  … and {:,} more")
        number = f"{len(missing):,} of {len(self._asked):,} coalitions that are asked for"
        raise CommandUseError(
            "\n".join((f"{quote(self._path)} has no value for {number}:", *shown)),
            "Add a run with exactly these members for each (of nobody: mostly 0), "
            "or leave out --values to use the proxy.",
        )


def _strange(strangers: Sequence[str], place: str, units: Mapping[str, Sequence[str]]) -> DataFileError:
    """Return the message about members that are no players: their unit, and the players of the run."""
    asked = next(iter(units))
    shown = first_names_and_more(list(map(quote, strangers)), _MOST_NAMED)
    message = f"{place}: the unit asked for is {asked}, and the trace has no {asked} {shown}"
    fitting = [unit for unit, players in units.items() if set(strangers) <= set(players)]
    if fitting:
        return DataFileError(message, f"These are names of the unit {fitting[0]}: use --unit {fitting[0]}.")
    return DataFileError(
        message, f"Sessions found: {first_names_and_more(list(map(quote, units[asked])), _MOST_NAMED)}."
    )


def step_values(text: str, path: str) -> dict[str, StepValue]:
    """The values and rewards of steps by event id.

    Raises:
        DataFileError: The text is not of the form `STEPS`, or values a step twice; with the place.
    """
    file = _File(text, path, f"Write: {STEPS}; rewards may be left out.")
    found: dict[str, StepValue] = {}
    for where, row in file.rows("steps"):
        name = file.member(row, where, "id", str)
        if name in found:
            raise file.wrong(where, f"a second value of the step {quote(name)}", "Keep one of them.")
        reward = None if row.get("reward") is None else file.figure(row, where, "reward")
        found[name] = StepValue(file.figure(row, where, "value"), reward)
    return found


class _File:
    """A file of values as JSON, in which everything that is wrong has a place.

    Raises:
        DataFileError: It is not JSON; the hint is how such a file is written, in a sentence.
    """

    def __init__(self, text: str, path: str, form: str) -> None:
        self._form = form
        shown = printable(path, limit=300)
        if fault := first_fault(text):
            message = _MESSAGES.get(fault.kind, "not JSON: {0.message}").format(fault)
            raise DataFileError(f"{shown}:{fault.line}:{fault.column}: {message}", form)
        self._places = Places(text.encode(), shown)
        self._content = json.loads(text, parse_int=float)

    def place(self, where: Path) -> str:
        """Return the place of a value, as `path:line:column`."""
        return str(self._places.locate(where))

    def wrong(self, where: Path, message: str, hint: str = "") -> DataFileError:
        """Return an error about a value, with its place."""
        return DataFileError(f"{self.place(where)}: {message}", hint or self._form)

    def rows(self, name: str) -> Iterator[tuple[Path, dict[str, Any]]]:
        """The objects of the file's list, each with its path."""
        if not isinstance(self._content, dict):
            raise self.wrong((), f"{_KINDS[type(self._content)]}, where an object with {quote(name)} is wanted")
        rows = self.member(self._content, (), name, list)
        for index in range(len(rows)):
            yield (name, index), self.member(rows, (name,), index, dict)

    def member(self, inside: Any, where: Path, name: str | int, kind: type) -> Any:
        """A member of an object or list, which is of a kind."""
        if isinstance(inside, dict) and name not in inside:
            names = ", ".join(map(quote, list(inside)[:_MOST_NAMED]))
            instead = f", only {names}" if names else " in an empty object"
            raise self.wrong(where, f"there is no {quote(str(name))}{instead}")
        value = inside[name]
        if not isinstance(value, kind):
            what = quote(name) if isinstance(name, str) else "an item"
            raise self.wrong((*where, name), f"{what} is {_KINDS[type(value)]}, and {_KINDS[kind]} is wanted")
        return value

    def figure(self, row: Mapping[str, Any], where: Path, name: str) -> float:
        """A member that is a number, and not too large to be summed."""
        value: float = self.member(row, where, name, float)
        if abs(value) > _MOST:
            raise self.wrong((*where, name), f"{quote(name)} is beyond {_MOST:g}")
        return value
