"""Reads values that the user supplies, since no log holds them.

The value of a coalition is the outcome of a run in which only its members take part. A log holds one run, in which all
agents take part; the outcome without an agent is known only from further runs (ablations). The value of a step is the
estimate of a critic.
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

_MAX_VALUE = 1e100  # sums of such values are still finite
_MAX_LISTED = 5
_MESSAGE_FORMATS = {  # of a syntax fault
    Kind.EMPTY: "nothing in the file",
    Kind.NOT_FINITE: "{0.word} is not a finite number",
    Kind.BYTE_ORDER_MARK: "{0.message}",
    Kind.TOO_DEEP: "{0.message}",
}
_TYPE_NAMES = {
    type(None): "null",
    bool: "true or false",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}


class StepValue(NamedTuple):
    """The estimated value of the state before a step, and the reward of the step; None if no reward is given."""

    value: float
    reward: float | None


class SuppliedValues:
    """The values of coalitions from ablation runs, read from JSON in the format `COALITIONS`.

    Call it with a coalition to look up its value. A coalition without a value has the value 0, so that a method can
    go on; call `require_complete` before you use its result, which then reports all missing coalitions at once.

    Args:
        text: The text of the file.
        path: The path of the file, for messages.
        units: The names of the players of each credit unit. The first unit is the requested one.

    Raises:
        DataFileError: The text does not have that format, has two values for a coalition, or names a member that is
            not a player. The message says where.
    """

    def __init__(self, text: str, path: str, units: Mapping[str, Sequence[str]]) -> None:
        self._path = path
        self._players = next(iter(units.values()))  # of the requested unit
        self._values: dict[Coalition, float] = {}
        self._requested: dict[Coalition, None] = {}  # a dict as an ordered set
        file = _ValuesFile(text, path, f"Write: {COALITIONS}, with a run of each coalition that is asked for.")
        first_paths: dict[str, Path] = {}  # where each player is named first
        for row_path, row in file.rows("values"):
            members = file.value(row, row_path, "members", list)
            names: set[str] = set()
            for index in range(len(members)):
                name = file.value(members, (*row_path, "members"), index, str)
                if name in names:
                    raise file.error((*row_path, "members", index), f"{quote(name)} is named twice in one coalition")
                names.add(name)
                first_paths.setdefault(name, (*row_path, "members", index))
            coalition = frozenset(names)
            if coalition in self._values:
                listed = ", ".join(map(printable, members)) or "nobody"
                raise file.error(row_path, f"a second value of the coalition of {listed}", "Keep one of them.")
            self._values[coalition] = file.number(row, row_path, "value")
        players = set(self._players)
        unknown = [name for name in first_paths if name not in players]
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
        missing.sort(key=lambda coalition: (len(coalition), sorted(positions[name] for name in coalition)))
        rows = []  # the lines that the user should add to the file
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
    """Return an error about members that are not players; its hint names a unit that has them, or the known players."""
    requested_unit = next(iter(units))
    listed = first_names_and_more(list(map(quote, members)), _MAX_LISTED)
    message = f"{place}: the unit asked for is {requested_unit}, and the trace has no {requested_unit} {listed}"
    for unit, players in units.items():
        if set(members) <= set(players):
            return DataFileError(message, f"These are names of the unit {unit}: use --unit {unit}.")
    listed_players = first_names_and_more(list(map(quote, units[requested_unit])), _MAX_LISTED)
    return DataFileError(message, f"Known names: {listed_players}.")


def read_step_values(text: str, path: str) -> dict[str, StepValue]:
    """Return the values and rewards of steps by event id, read from JSON in the format `STEPS`.

    Raises:
        DataFileError: The text does not have that format, or has two values for a step. The message says where.
    """
    file = _ValuesFile(text, path, f"Write: {STEPS}; rewards may be left out.")
    steps: dict[str, StepValue] = {}
    for row_path, row in file.rows("steps"):
        event_id = file.value(row, row_path, "id", str)
        if event_id in steps:
            raise file.error(row_path, f"a second value of the step {quote(event_id)}", "Keep one of them.")
        reward = None
        if row.get("reward") is not None:
            reward = file.number(row, row_path, "reward")
        steps[event_id] = StepValue(file.number(row, row_path, "value"), reward)
    return steps


class _ValuesFile:
    """A JSON file of values. Its errors state the place of a value.

    The path of a value is the keys and indices that lead to it.

    Args:
        text: The text of the file.
        path: The path of the file, for messages.
        hint: The hint of errors: a sentence that shows the format.

    Raises:
        DataFileError: The text is not JSON.
    """

    def __init__(self, text: str, path: str, hint: str) -> None:
        self._hint = hint
        path_text = printable(path, limit=300)
        if fault := first_fault(text):
            message = _MESSAGE_FORMATS.get(fault.kind, "not JSON: {0.message}").format(fault)
            raise DataFileError(f"{path_text}:{fault.line}:{fault.column}: {message}", hint)
        self._places = Places(text.encode(), path_text)
        self._content = json.loads(text, parse_int=float)

    def place(self, value_path: Path) -> str:
        """Return the place of a value in the file, as `path:line:column`."""
        return str(self._places.locate(value_path))

    def error(self, value_path: Path, message: str, hint: str = "") -> DataFileError:
        """Return an error about a value, with its place in the file."""
        return DataFileError(f"{self.place(value_path)}: {message}", hint or self._hint)

    def rows(self, name: str) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Yield the objects of a list of the file, each after its path."""
        if not isinstance(self._content, dict):
            raise self.error((), f"{_TYPE_NAMES[type(self._content)]}, where an object with {quote(name)} is wanted")
        rows = self.value(self._content, (), name, list)
        for index in range(len(rows)):
            yield (name, index), self.value(rows, (name,), index, dict)

    def value(self, container: Any, container_path: Path, key: str | int, expected: type) -> Any:
        """Return the value at a key of an object or list; raise an error if it is not of the expected type."""
        if isinstance(container, dict) and key not in container:
            names = ", ".join(map(quote, list(container)[:_MAX_LISTED]))
            others = f", only {names}" if names else " in an empty object"
            raise self.error(container_path, f"there is no {quote(str(key))}{others}")
        value = container[key]
        if not isinstance(value, expected):
            subject = quote(key) if isinstance(key, str) else "an item"
            message = f"{subject} is {_TYPE_NAMES[type(value)]}, and {_TYPE_NAMES[expected]} is wanted"
            raise self.error((*container_path, key), message)
        return value

    def number(self, row: Mapping[str, Any], row_path: Path, name: str) -> float:
        """Return a value that must be a number, and small enough to be summed."""
        value: float = self.value(row, row_path, name, float)
        if abs(value) > _MAX_VALUE:
            raise self.error((*row_path, name), f"{quote(name)} is beyond {_MAX_VALUE:g}")
        return value
