"""What commands declare of themselves, without Typer: importing it takes longer than what most commands do.

`lazy` makes Typer's commands of these declarations. `parse` reads the words of a plain invocation by the same
ones; whatever it does not understand is left to Typer, and so is every mistake.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from types import UnionType
from typing import Any, Literal, NamedTuple, Protocol, get_args, get_origin

MORE = "More"
"""The heading of commands that `--help` names in one line, without a description."""


class Context(Protocol):
    """What a command is called with first: the global options of its run, a `Session`."""

    obj: Any


class Option:
    """An option: its names, and Typer's settings of it."""

    def __init__(self, *names: str, **settings: Any) -> None:
        self.names, self.settings = names, settings


class Argument(Option):
    """An argument: Typer's settings of it."""


class Command(NamedTuple):
    """A line of a table: where the command is in `orchtrace_corpus`, and its help line.

    Attributes:
        place: A module and a function or `CommandGroup` of it: `corpus.cli.word_counts:stats`. Without a name it is a
            module whose `app` is one of Typer's.
        help: The help line.
        forms: Of a command that Typer declares, the forms of its arguments, for completion without Typer.
    """

    place: str
    help: str
    forms: str = ""

    def find(self) -> Any:
        """Import what the command is."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(f"orchtrace_corpus.{module}"), name or "app")


CommandTable = Mapping[str, Mapping[str, Command]]
"""Commands by name, under the headings of a `--help`."""


class CommandGroup(NamedTuple):
    """A command that has others below it; the docstring of `callback` is its help."""

    commands: CommandTable
    callback: Callable[[], None]


class Parameter(NamedTuple):
    """An option or argument of a command, as its function declares it.

    Attributes:
        name: What the function calls it.
        names: The names of the option; none for an argument.
        kind: The type of one value.
        word_count: How many words a value is made of; 0 for an option that is there or not.
        is_many: Whether it takes several values.
        is_required: Whether it must be given.
        settings: Typer's settings.
    """

    name: str
    names: tuple[str, ...]
    kind: Any
    word_count: int
    is_many: bool
    is_required: bool
    settings: Mapping[str, Any]


def find_command(commands: CommandTable, name: str) -> Command | None:
    """The command of that name in a table; None if there is none."""
    return next((group[name] for group in commands.values() if name in group), None)


def like(place: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator of a command that declares what another does, which is imported when that is asked for."""

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        function.__dict__["declared_by"] = Command(place, "")
        return function

    return decorate


def declaring(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose declarations are those of a command: mostly its own."""
    command = function.__dict__.get("declared_by")
    return function if command is None else command.find()


def parameters(function: Callable[..., Any]) -> Iterator[Parameter] | None:
    """What a command's function declares beside its context; None if some of it is Typer's own."""
    function = declaring(function)
    code, defaults, types = function.__code__, function.__defaults__ or (), function.__annotations__
    first, *names = code.co_varnames[: code.co_argcount]
    declared = {name: next(iter(getattr(types[name], "__metadata__", ())), None) for name in names}
    is_ours = types[first] is Context and all(isinstance(one, Option) for one in declared.values())
    if not is_ours or code.co_kwonlyargcount:
        return None
    first_default = len(names) - len(defaults)
    return (
        _parameter(name, types[name].__origin__, option, number < first_default)
        for number, (name, option) in enumerate(declared.items())
        if option is not None
    )


def _parameter(name: str, kind: Any, option: Option, is_required: bool) -> Parameter:
    if isinstance(kind, UnionType):  # `X | None`
        kind = next(one for one in get_args(kind) if one is not type(None))
    is_many, word_count = get_origin(kind) is list, 1
    if get_origin(kind) in (list, tuple):
        word_count = 1 if is_many else len(get_args(kind))
        kind = get_args(kind)[0]
    names = () if isinstance(option, Argument) else option.names or (f"--{name.replace('_', '-')}",)
    return Parameter(name, names, kind, 0 if kind is bool else word_count, is_many, is_required, option.settings)


def parse(function: Callable[..., Any], words: Sequence[str]) -> dict[str, Any] | None:
    """The values that words give to the parameters of a command; None if it takes Typer to tell.

    Args:
        function: The command's function.
        words: What stands behind the command's name.
    """
    declared = parameters(function)
    if declared is None:
        return None
    known = list(declared)
    options = {name: one for one in known for name in one.names}
    values: dict[str, Any] = {}
    bare, left = [], list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("-") or word == "-":
            bare.append(word)
            continue
        name, equals, value = word.partition("=")
        option = options.get(name)
        if option is None or (not name.startswith("--") and equals) or (option.word_count != 1 and equals):
            return None
        given = [value] if equals else [left.pop(0) for _ in range(min(option.word_count, len(left)))]
        if len(given) < option.word_count or not _take(values, option, given):
            return None
    for argument in (one for one in known if not one.names):
        given = [bare.pop(0) for _ in range(len(bare) if argument.is_many else min(1, len(bare)))]
        if (argument.is_required and not given) or not all(_take(values, argument, [word]) for word in given):
            return None
    return None if bare or any(one.is_required and one.name not in values for one in known) else values


def _take(values: dict[str, Any], parameter: Parameter, words: Sequence[str]) -> bool:
    """Put a value down, and say whether it is one."""
    read = [_read(parameter, word) for word in words]
    if None in read:
        return False
    value = True if not read else read[0] if parameter.word_count == 1 else tuple(read)
    if parameter.is_many:
        values.setdefault(parameter.name, []).append(value)
    else:
        values[parameter.name] = value
    return True


def _read(parameter: Parameter, word: str) -> Any:
    """The value that a word is; None if it takes Typer to tell."""
    kind, settings = parameter.kind, parameter.settings
    if kind is str:
        return word
    if kind is int:
        is_number = word.removeprefix("-").isdecimal() and word.isascii() and len(word) < 10
        is_within = is_number and settings.get("min", int(word)) <= int(word) <= settings.get("max", int(word))
        return int(word) if is_within else None
    is_enum = isinstance(kind, type) and issubclass(kind, StrEnum)
    choices: Any = kind if is_enum else get_args(kind) if get_origin(kind) is Literal else ()
    return next((value for value in choices if value == word), None)
