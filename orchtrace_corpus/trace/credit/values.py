"""Read values that the user supplies because no log holds them: of coalitions from ablations, of steps from a critic.

A log holds one run, in which every agent took part. The outcome without an agent is known only from runs without that
agent; the user supplies these outcomes. Without them, the proxy `reach` estimates the outcome from the graph of the
run, and is always named as a proxy.
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
"""The format of a file with values of coalitions."""

STEPS = '{"steps": [{"id": "e1", "value": 0.4, "reward": 0}, ...]}'
"""The format of a file with values of steps; rewards are optional."""

_MAX_VALUE = 1e100
_MAX_LISTED = 5
_MESSAGES = {
    Kind.EMPTY: "nothing in the file",
    Kind.NOT_FINITE: "{0.word} is not a finite number",
    Kind.BYTE_ORDER_MARK: "{0.message}",
    Kind.TOO_DEEP: "{0.message}",
}
_KINDS = {type(None): "null", bool: "true or false", float: "a number", str: "text", list: "a list", dict: "an object"}


class StepValue(NamedTuple):
    """The estimated value of the state before a step, and the reward of the step; None if no reward is given."""

    value: float
    reward: float | None


class SuppliedValues:
    """The values of coalitions from ablation runs, read from JSON in the format `COALITIONS`; called with a coalition.

    A coalition that is not in the file has the value 0 and is remembered. Call `require_complete` before using a
    result: it reports all missing coalitions at once.

    Args:
        text: The text of the file.
        path: The path of the file, for messages.
        units: The players of each credit unit; the first unit is the requested one.

    Raises:
        DataFileError: The text does not have that format, has two values for a coalition, or names a member that is
            not a player. The message says where.
    """

    def __init__(self, text: str, path: str, units: Mapping[str, Sequence[str]]) -> None:
        self._path = path
        self._players = next(iter(units.values()))
        self._values: dict[Coalition, float] = {}
        self._requested: dict[Coalition, None] = {}
        file = _File(text, path, f"Write: {COALITIONS}, with a run of each coalition that is asked for.")
        first_paths: dict[str, Path] = {}  # where each member is named first
        for where, row in file.rows("values"):
            members = file.member(row, where, "members", list)
            coalition: set[str] = set()
            for index in range(len(members)):
                name = file.member(members, (*where, "members"), index, str)
                if name in coalition:
                    raise file.error((*where, "members", index), f"{quote(name)} is named twice in one coalition")
                coalition.add(name)
                first_paths.setdefault(name, (*where, "members", index))
            if frozenset(coalition) in self._values:
                names = ", ".join(map(printable, members)) or "nobody"
                raise file.error(where, f"a second value of the coalition of {names}", "Keep one of them.")
            self._values[frozenset(coalition)] = file.number(row, where, "value")
        players = set(self._players)
        unknown = [member for member in first_paths if member not in players]
        if unknown:
            raise _unknown_members(unknown, file.place(first_paths[unknown[0]]), units)

    def __call__(self, coalition: Coalition) -> float:
        """Return the value of a coalition; 0 if the file has no value for it."""
        self._requested[coalition] = None
        return self._values.get(coalition, 0.0)

    def require_complete(self) -> None:
        """Check that the file has a value for each coalition that was requested so far.

        Raises:
            CommandUseError: Values are missing; the message lists coalitions without a value, the smallest first.
        """
        missing = [coalition for coalition in self._requested if coalition not in self._values]
        if not missing:
            return
        positions = {name: position for position, name in enumerate(self._players)}
        missing.sort(key=lambda coalition: (len(coalition), sorted(map(positions.__getitem__, coalition))))
        rows = []
        for coalition in missing:
            members = json.dumps([name for name in self._players if name in coalition], ensure_ascii=False)
            rows.append("  " + printable(f'{{"members": {members}, "value": ?}}', limit=300))
        listed = first_and_more(rows, _MAX_LISTED, "  … and {:,} more")
        count = f"{len(missing):,} of {len(self._requested):,} coalitions that are asked for"
        raise CommandUseError(
            "\n".join((f"{quote(self._path)} has no value for {count}:", *listed)),
            "Add a run with exactly these members for each (of nobody: mostly 0), "
            "or leave out --values to use the proxy.",
        )


def _unknown_members(members: Sequence[str], place: str, units: Mapping[str, Sequence[str]]) -> DataFileError:
    """Return an error about members that are not players, with the unit that they belong to, or the known players."""
    requested = next(iter(units))
    listed = first_names_and_more(list(map(quote, members)), _MAX_LISTED)
    message = f"{place}: the unit asked for is {requested}, and the trace has no {requested} {listed}"
    for unit, players in units.items():
        if set(members) <= set(players):
            return DataFileError(message, f"These are names of the unit {unit}: use --unit {unit}.")
    players_listed = first_names_and_more(list(map(quote, units[requested])), _MAX_LISTED)
    return DataFileError(message, f"Sessions found: {players_listed}.")


def read_step_values(text: str, path: str) -> dict[str, StepValue]:
    """Return the values and rewards of steps by event id, read from JSON in the format `STEPS`.

    Raises:
        DataFileError: The text does not have that format, or has two values for a step. The message says where.
    """
    file = _File(text, path, f"Write: {STEPS}; rewards may be left out.")
    steps: dict[str, StepValue] = {}
    for where, row in file.rows("steps"):
        name = file.member(row, where, "id", str)
        if name in steps:
            raise file.error(where, f"a second value of the step {quote(name)}", "Keep one of them.")
        reward = None if row.get("reward") is None else file.number(row, where, "reward")
        steps[name] = StepValue(file.number(row, where, "value"), reward)
    return steps


class _File:
    """A JSON file of values whose errors say where they are; `hint` is a sentence that shows the format.

    Raises:
        DataFileError: The text is not JSON.
    """

    def __init__(self, text: str, path: str, hint: str) -> None:
        self._hint = hint
        shown = printable(path, limit=300)
        if fault := first_fault(text):
            message = _MESSAGES.get(fault.kind, "not JSON: {0.message}").format(fault)
            raise DataFileError(f"{shown}:{fault.line}:{fault.column}: {message}", hint)
        self._places = Places(text.encode(), shown)
        self._content = json.loads(text, parse_int=float)

    def place(self, where: Path) -> str:
        """Return where a value is in the file, as `path:line:column`."""
        return str(self._places.locate(where))

    def error(self, where: Path, message: str, hint: str = "") -> DataFileError:
        """Return an error about a value, with its place in the file."""
        return DataFileError(f"{self.place(where)}: {message}", hint or self._hint)

    def rows(self, name: str) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Yield the objects of a list of the file, each with its path."""
        if not isinstance(self._content, dict):
            raise self.error((), f"{_KINDS[type(self._content)]}, where an object with {quote(name)} is wanted")
        rows = self.member(self._content, (), name, list)
        for index in range(len(rows)):
            yield (name, index), self.member(rows, (name,), index, dict)

    def member(self, container: Any, where: Path, name: str | int, kind: type) -> Any:
        """Return a member of an object or list, which must be of a kind."""
        if isinstance(container, dict) and name not in container:
            names = ", ".join(map(quote, list(container)[:_MAX_LISTED]))
            others = f", only {names}" if names else " in an empty object"
            raise self.error(where, f"there is no {quote(str(name))}{others}")
        value = container[name]
        if not isinstance(value, kind):
            subject = quote(name) if isinstance(name, str) else "an item"
            raise self.error((*where, name), f"{subject} is {_KINDS[type(value)]}, and {_KINDS[kind]} is wanted")
        return value

    def number(self, row: Mapping[str, Any], where: Path, name: str) -> float:
        """Return a member that must be a number, and small enough to be summed."""
        value: float = self.member(row, where, name, float)
        if abs(value) > _MAX_VALUE:
            raise self.error((*where, name), f"{quote(name)} is beyond {_MAX_VALUE:g}")
        return value
