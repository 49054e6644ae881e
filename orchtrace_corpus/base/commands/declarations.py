"""A command declared once, by the signature of its function: `CommandSpec`, and the parts of a signature.

Three readers use it: `plain` parses the words of an invocation, `typer_commands` makes a command of Typer, which writes
errors, and completion offers the next word. Nothing here imports Typer: that takes longer than most commands.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from types import UnionType

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Any, TypeAlias
from orchtrace_corpus.base.named_tuples import NamedTuple

if TYPE_CHECKING:
    from orchtrace_corpus.base.commands.session import Session

MORE = "More"
"""The heading of commands that `--help` names in one line, without a description."""


class Place(NamedTuple):
    """The context of a word that is being completed: the folder of the corpus, and the words of the command."""

    root: str
    words: Sequence[str]


Offers: TypeAlias = Iterator[tuple[str, str]]
"""Words, each with its meaning, which may be empty."""

Provider: TypeAlias = Callable[[str, Place], Offers]
"""Offers values for an option or argument, by the beginning of the word."""


class Option:
    """An option: its names, the form of its value, its help, its bounds, and the provider of its values.

    Without names it is named after its parameter. The form of a value follows from its type if `metavar` is empty.
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


class Parameter(NamedTuple):
    """An option or argument of a command.

    Attributes:
        name: The name of the function's parameter.
        names: The names of the option; empty for an argument.
        kind: The type of one value: `str`, `int`, `float`, `bool`, a `StrEnum` or a `Literal`.
        option: Its declaration.
        word_count: The number of words of a value; 0 for a flag.
        is_many: True if it takes several values.
        is_required: True if it must be given.
        default: The value without it.
        section: Its own heading in `--help`; empty for the usual ones.
        group: The parameter of the function that takes it together with others.
        is_only_named: True if `--help` shows only its name.
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
        """The values to choose from; empty if any word is valid."""
        if getattr(self.kind, "__args__", None):  # a Literal
            return tuple(self.kind.__args__)
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
        """The help, with the default and the bounds, and a note if it is required."""
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


OptionsMaker: TypeAlias = Callable[[Sequence[Parameter], str, str], Sequence[Parameter]]
"""Makes options when a command is used, such as those of a taxonomy; annotates the parameter that takes their values.

From the parameters so far, the name of that parameter and the folder of the corpus (empty for the default), it returns
all parameters of the command."""


class Context(NamedTuple):
    """A call of a command: the global options, the command, and the given values of its parameters, by name."""

    obj: "Session"
    spec: "CommandSpec"
    given: Mapping[str, Any]


class CommandSpec(NamedTuple):
    """A command, as its function declares it.

    Attributes:
        path: Its name, with that of the program and of its group: `corpus audit sample`.
        function: The function, which takes a `Context` first.
        parameters: Its parameters, in the order of its help.
        groups: For parameters of the function that take several of these together, what makes their value.
    """

    path: str
    function: Callable[..., Any]
    parameters: Sequence[Parameter]
    groups: Mapping[str, Callable[..., Any]]

    @property
    def name(self) -> str:
        """Its name."""
        return self.path.rpartition(" ")[2]

    @property
    def help(self) -> str:
        """Its help: the docstring of its function."""
        from inspect import cleandoc  # only help needs it

        return cleandoc(self.function.__doc__ or "")

    def call(self, session: "Session", given: Mapping[str, Any]) -> Any:
        """Call the function with the given values."""
        values: dict[str, Any] = {}
        together: dict[str, dict[str, Any]] = {name: {} for name in self.groups}
        for parameter in self.parameters:
            if parameter.name in given:
                target = together[parameter.group] if parameter.group else values
                target[parameter.name] = given[parameter.name]
        made = {name: self.groups[name](**members) for name, members in together.items()}
        return self.function(Context(session, self, given), **values, **made)


class Command(NamedTuple):
    """A row of a table: the module and function, or `CommandGroup`, as `corpus.cli.counts:stats`, and a help line."""

    place: str
    help: str

    def find(self) -> Any:
        """Import the function or the group."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(f"orchtrace_corpus.{module}"), name or "app")


CommandTable = Mapping[str, Mapping[str, Command]]
"""Commands by name, under the headings of `--help`."""


class CommandGroup(NamedTuple):
    """A command with commands below it; the docstring of `callback` is its help.

    Attributes:
        commands: The commands.
        callback: Declares the options in front of a command, and returns their session.
        epilog: The last line of its help.
        added: Options that Typer adds to the program, with their help.
        moved: Names under which users look for a command, each with the command to use.
    """

    commands: CommandTable
    callback: Callable[..., Any]
    epilog: str = ""
    added: Mapping[str, str] = {}
    moved: Mapping[str, str] = {}

    def find(self, name: str) -> Command | None:
        """Return a command by name; None if it does not exist."""
        return next((commands[name] for commands in self.commands.values() if name in commands), None)

    def names(self) -> list[str]:
        """Return the names of all commands."""
        return [name for commands in self.commands.values() for name in commands]


def command_spec(function: Callable[..., Any], path: str, root: str = "") -> CommandSpec:
    """Make the specification of a command from the signature of its function.

    The first parameter of the function is the `Context`. Each other one is annotated with an `Option`, an `Argument` or
    an `OptionsMaker`, or is a named tuple whose fields are. `root` is the folder of the corpus; empty for the default.
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
        elif callable(make := annotation.__metadata__[0]):
            groups[name] = dict
            parameters = list(make(parameters, name, root))
        else:
            parameters.append(_parameter(name, annotation, defaults))
    return CommandSpec(path, function, parameters, groups)


def _parameter(name: str, annotation: Any, defaults: Mapping[str, Any]) -> Parameter:
    kind, option = annotation.__origin__, annotation.__metadata__[0]
    if isinstance(kind, UnionType):  # `X | None`
        kind = next(member for member in kind.__args__ if member is not type(None))
    is_many, word_count = getattr(kind, "__origin__", None) is list, 1
    if getattr(kind, "__origin__", None) is tuple:
        word_count = len(kind.__args__)
    if getattr(kind, "__origin__", None) in (list, tuple):
        kind = kind.__args__[0]
    if kind is bool:
        word_count = 0
    names = () if isinstance(option, Argument) else option.names or (f"--{name.replace('_', '-')}",)
    return Parameter(name, names, kind, option, word_count, is_many, name not in defaults, defaults.get(name))
