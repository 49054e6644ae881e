"""A command declared once, by the signature of its function: `CommandSpec`, and what a signature is made of.

Three readers go by it: `plain` reads the words of an invocation, `typer_commands` makes Typer's command of it, which
writes help and errors, and completion offers what can follow. Nothing here imports Typer: that takes longer than what
most commands do.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, get_origin

from orchtrace_corpus.base.named_tuples import NamedTuple

if TYPE_CHECKING:
    from orchtrace_corpus.base.commands.session import Session

MORE = "More"
"""The heading of commands that `--help` names in one line, without a description."""


class Place:
    """The context of a word that is being completed: the corpus of the global options, and the words of the command."""

    def __init__(self, root: str, words: Sequence[str]) -> None:
        self.root, self.words = root, words


Offers: TypeAlias = Iterator[tuple[str, str]]
"""Words, each with its meaning; empty where there is nothing to say."""

Provider: TypeAlias = Callable[[str, Place], Offers]
"""Offers values for an option or argument, by what is written of the word."""


class Option:
    """An option: its names, the form of its value, its help, its bounds, and the provider of its values.

    Without names it is called after its parameter. The form of a value follows from its type where `metavar` is empty.
    """

    def __init__(
        self,
        *names: str,
        metavar: str = "",
        help: str = "",  # noqa: A002  # as Typer calls it
        min: float | None = None,  # noqa: A002
        max: float | None = None,  # noqa: A002
        show_default: bool = True,
        offers: Provider | None = None,
    ) -> None:
        self.names, self.metavar, self.help = names, metavar, help
        self.min, self.max, self.show_default, self.offers = min, max, show_default, offers


class Argument(Option):
    """An argument, declared as an option is; it has no names."""


class MadeOptions:
    """Options that are made when a command is asked for, such as those of the taxonomy of a corpus.

    The parameter of the function that they annotate takes what they were given, by name.

    Attributes:
        make: Returns all parameters of the command, from those that it declares, the name of that parameter of the
            function, and the folder of the corpus, empty if none is named.
    """

    def __init__(self, make: Callable[[Sequence["Parameter"], str, str], Sequence["Parameter"]]) -> None:
        self.make = make


class Parameter(NamedTuple):
    """An option or argument of a command.

    Attributes:
        name: The name of the function's parameter.
        names: The names of the option; none for an argument.
        kind: The type of one value: `str`, `int`, `float`, `bool`, a `StrEnum` or a `Literal`.
        option: Its declaration.
        word_count: How many words a value is made of; 0 for an option that is there or not.
        is_many: Whether it takes several values.
        is_required: Whether it must be given.
        default: The value without it.
        section: Its heading in `--help`, if it has one of its own.
        is_only_named: Whether `--help` only names it below that heading.
        group: The parameter of the function that takes it together with others.
    """

    name: str
    names: tuple[str, ...]
    kind: Any
    option: Option
    word_count: int = 1
    is_many: bool = False
    is_required: bool = False
    default: Any = None
    section: str = ""
    group: str = ""
    is_only_named: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """The values to choose from; none where any word will do."""
        if get_origin(self.kind) is Literal:
            return get_args(self.kind)
        return tuple(self.kind) if issubclass(self.kind, StrEnum) else ()

    @property
    def form(self) -> str:
        """The form of a value, as help shows it."""
        numbers = {int: "N", float: "X"}
        return self.option.metavar or "|".join(self.choices) or numbers.get(self.kind, "TEXT")

    @property
    def label(self) -> str:
        """Its names and the form of its value, as help shows them."""
        names = ", ".join(sorted(self.names, key=len))
        return f"{names} {self.form}".strip() if self.word_count else names

    @property
    def help(self) -> str:
        """The help, with the default, the bounds, and whether it must be given."""
        low, high = self.option.min, self.option.max
        bounds = f"{'' if low is None else f'{low}<='}x{'' if high is None else f'<={high}'}"
        if high is None:
            bounds = f"x>={low}"
        notes = []
        if self.option.show_default and self.default not in (None, False, ""):
            notes.append(f"default: {self.default}")
        if low is not None or high is not None:
            notes.append(bounds)
        if self.is_required:
            notes.append("required")
        return f"{self.option.help}  [{'; '.join(notes)}]" if notes else self.option.help


class Context:
    """A call of a command.

    Attributes:
        obj: The global options.
        spec: The command.
        given: The values of the parameters that were given, by name.
    """

    def __init__(self, obj: "Session", spec: "CommandSpec", given: Mapping[str, Any]) -> None:
        self.obj, self.spec, self.given = obj, spec, given


class CommandSpec:
    """A command, as its function declares it.

    Attributes:
        path: Its name, with that of the program and of its group: `corpus audit sample`.
        function: The function, which takes a `Context` first.
        parameters: What it takes, in the order of its help.
        groups: By parameters of the function that take several of these together, what makes the value of them.
    """

    def __init__(
        self,
        path: str,
        function: Callable[..., Any],
        parameters: Sequence[Parameter],
        groups: Mapping[str, Callable[..., Any]],
    ) -> None:
        self.path, self.function, self.parameters, self.groups = path, function, parameters, groups

    @property
    def name(self) -> str:
        """Its name."""
        return self.path.rpartition(" ")[2]

    @property
    def help(self) -> str:
        """The docstring of its function, which is its help."""
        from inspect import cleandoc  # only help needs it

        return cleandoc(self.function.__doc__ or "")

    def call(self, session: "Session", given: Mapping[str, Any]) -> Any:
        """Call the function with the values that were given."""
        values: dict[str, Any] = {}
        together: dict[str, dict[str, Any]] = {name: {} for name in self.groups}
        for parameter in self.parameters:
            if parameter.name in given:
                target = together[parameter.group] if parameter.group else values
                target[parameter.name] = given[parameter.name]
        made = {name: self.groups[name](**members) for name, members in together.items()}
        return self.function(Context(session, self, given), **values, **made)


class Command(NamedTuple):
    """A line of a table: where the command is in `orchtrace_corpus`, and its help line.

    Attributes:
        place: A module and a function or `CommandGroup` of it: `corpus.cli.word_counts:stats`.
        help: The help line.
    """

    place: str
    help: str

    def find(self) -> Any:
        """Import the function or the group."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(f"orchtrace_corpus.{module}"), name or "app")


CommandTable = Mapping[str, Mapping[str, Command]]
"""Commands by name, under the headings of a `--help`."""


class CommandGroup(NamedTuple):
    """A command that has others below it; the docstring of `callback` is its help.

    Attributes:
        commands: The commands.
        callback: Declares the options in front of a command, and makes the session of them; most groups have none.
        epilog: The last line of its help.
        added: Options that Typer adds to the program, with their help.
        moved: Words that commands are looked for under, each with the command that does it.
    """

    commands: CommandTable
    callback: Callable[..., Any]
    epilog: str = ""
    added: Mapping[str, str] = {}
    moved: Mapping[str, str] = {}

    def find(self, name: str) -> Command | None:
        """Return the command of that name; None if there is none."""
        return next((commands[name] for commands in self.commands.values() if name in commands), None)

    def names(self) -> list[str]:
        """Return the names of all commands."""
        return [name for commands in self.commands.values() for name in commands]


def command_spec(function: Callable[..., Any], path: str, root: str = "") -> CommandSpec:
    """Make the specification of a command from the signature of its function.

    Args:
        function: The function. Its first parameter is the `Context`; each other one is annotated with an `Option`, an
            `Argument` or `MadeOptions`, or is a named tuple whose fields are.
        path: The name of the command, with that of the program and of its group.
        root: The folder of the corpus that the command is about; empty if none is named.
    """
    code, types = function.__code__, function.__annotations__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    positional = function.__defaults__ or ()
    defaults = dict(zip(names[code.co_argcount - len(positional) : code.co_argcount], positional, strict=True))
    defaults |= function.__kwdefaults__ or {}
    parameters: list[Parameter] = []
    groups: dict[str, Callable[..., Any]] = {}
    for name in names[1:]:
        annotation = types[name]
        if hasattr(annotation, "_fields"):
            groups[name] = annotation
            parameters += [
                _parameter(field, annotation.__annotations__[field], annotation._field_defaults)._replace(group=name)
                for field in annotation._fields
            ]
        elif isinstance(made := annotation.__metadata__[0], MadeOptions):
            groups[name] = dict
            parameters = list(made.make(parameters, name, root))
        else:
            parameters.append(_parameter(name, annotation, defaults))
    return CommandSpec(path, function, parameters, groups)


def _parameter(name: str, annotation: Any, defaults: Mapping[str, Any]) -> Parameter:
    kind, option = annotation.__origin__, annotation.__metadata__[0]
    if isinstance(kind, UnionType):  # `X | None`
        kind = next(member for member in get_args(kind) if member is not type(None))
    is_many, word_count = get_origin(kind) is list, 1
    if get_origin(kind) is tuple:
        word_count = len(get_args(kind))
    if get_origin(kind) in (list, tuple):
        kind = get_args(kind)[0]
    if kind is bool:
        word_count = 0
    names = () if isinstance(option, Argument) else option.names or (f"--{name.replace('_', '-')}",)
    return Parameter(name, names, kind, option, word_count, is_many, name not in defaults, defaults.get(name))
