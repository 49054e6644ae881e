"""The declaration of commands: the signature of a function gives the `CommandSpec` of a command.

`plain` parses command lines by these specifications. `typer_commands` makes commands of Typer from them, to report
errors. Completion in a shell uses them to offer the next word. This module does not import Typer, because the import
takes longer than most commands.
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
    """The context of a word that is being completed in a shell: the folder of the corpus, and the words before it."""

    root: str
    words: Sequence[str]


Offers: TypeAlias = Iterator[tuple[str, str]]
"""Words that can complete a word, each with its meaning, which may be empty."""

Provider: TypeAlias = Callable[[str, Place], Offers]
"""A function that offers values of an option or argument. Its first parameter is the beginning of the word."""


class Option:
    """The declaration of an option in the signature of a command.

    Attributes:
        names: The names; if empty, the name follows from that of the parameter.
        metavar: The form of a value in the help, such as `N`; if empty, it follows from the type.
        help: The help.
        min: The smallest allowed number; None for no bound.
        max: The largest allowed number; None for no bound.
        show_default: True to name the default in the help.
        offers: The function that offers values for completion; None for none.
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
        self.names = names
        self.metavar = metavar
        self.help = help
        self.min = min
        self.max = max
        self.show_default = show_default
        self.offers = offers


class Argument(Option):
    """The declaration of an argument. It has the attributes of an option, but no names."""


class Parameter(NamedTuple):
    """An option or argument of a command.

    Attributes:
        name: The name of the function's parameter.
        names: The names of the option; empty for an argument.
        kind: The type of one value: `str`, `int`, `float`, `bool`, a `StrEnum` or a `Literal`.
        option: The declaration.
        word_count: The number of words of a value; 0 for a flag.
        is_many: True if it can be given several times.
        is_required: True if it must be given.
        default: The value if it is not given.
        section: Its heading in `--help`; empty for `Options` or `Arguments`.
        group: The parameter of the function that gets its value in one object with others; empty if the parameter
            `name` gets it.
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
        """The form of a value, as the help shows it: a name such as `DIR`, or the choices."""
        if self.option.metavar:
            return self.option.metavar
        if self.choices:
            return "|".join(self.choices)
        if self.kind is int:
            return "N"
        return "X" if self.kind is float else "TEXT"

    @property
    def label(self) -> str:
        """The names and the form of the value, as the help shows them."""
        names = ", ".join(sorted(self.names, key=len))
        return f"{names} {self.form}".strip() if self.word_count else names

    @property
    def help(self) -> str:
        """The help, with the default and the bounds, and a note if the parameter is required."""
        notes = []
        if self.option.show_default and self.default not in (None, False, ""):
            notes.append(f"default: {self.default}")
        low = self.option.min
        high = self.option.max
        if low is not None and high is not None:
            notes.append(f"{low}<=x<={high}")
        elif low is not None:
            notes.append(f"x>={low}")
        elif high is not None:
            notes.append(f"x<={high}")
        if self.is_required:
            notes.append("required")
        return f"{self.option.help}  [{'; '.join(notes)}]" if notes else self.option.help


OptionsMaker: TypeAlias = Callable[[Sequence[Parameter], str, str], Sequence[Parameter]]
"""A function that makes options when a command is used, such as an option for each field of a taxonomy.

It annotates the parameter that gets their values as a dict. Its arguments are the parameters of the command so far, the
name of the annotated parameter, and the folder of the corpus (empty for the default). It returns all parameters.
"""


class Context(NamedTuple):
    """The call of a command, with the name `obj` that Typer gives to an object of the program.

    Attributes:
        obj: The global options and the output.
        spec: The command.
        given: The values that were given on the command line, by the name of the parameter.
    """

    obj: "Session"
    spec: "CommandSpec"
    given: Mapping[str, Any]


class CommandSpec(NamedTuple):
    """A command, as its function declares it.

    Attributes:
        path: The name of the command after those of the program and of its group: `corpus audit sample`.
        function: The function that runs the command. Its first parameter is a `Context`.
        parameters: The parameters, in the order of the help.
        groups: For each parameter of the function that gets the values of several options or arguments in one object,
            the class of the object.
    """

    path: str
    function: Callable[..., Any]
    parameters: Sequence[Parameter]
    groups: Mapping[str, Callable[..., Any]]

    @property
    def name(self) -> str:
        """The name of the command."""
        return self.path.rpartition(" ")[2]

    @property
    def help(self) -> str:
        """The help: the docstring of the function."""
        from inspect import cleandoc  # only help needs it

        return cleandoc(self.function.__doc__ or "")

    def call(self, session: "Session", given: Mapping[str, Any]) -> Any:
        """Call the function with the given values, and return its result."""
        values: dict[str, Any] = {}
        group_values: dict[str, dict[str, Any]] = {name: {} for name in self.groups}
        for parameter in self.parameters:
            if parameter.name in given:
                target = group_values[parameter.group] if parameter.group else values
                target[parameter.name] = given[parameter.name]
        for name, members in group_values.items():
            make_group = self.groups[name]
            values[name] = make_group(**members)
        return self.function(Context(session, self, given), **values)


class Command(NamedTuple):
    """A command in the table of a program, which can be listed without importing the command.

    Attributes:
        place: The module and function, such as `corpus.cli.counts:stats`; for a group of commands, only the module,
            whose attribute `app` is the `CommandGroup`.
        help: The help in one line.
    """

    place: str
    help: str

    def load(self) -> Any:
        """Import the function or the group."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(f"orchtrace_corpus.{module}"), name or "app")


CommandTable = Mapping[str, Mapping[str, Command]]
"""For each heading of `--help`, the commands by name."""


class CommandGroup(NamedTuple):
    """A program, or a command with commands below it; the docstring of `callback` is its help.

    Attributes:
        commands: The commands.
        callback: A function whose parameters are the options in front of a command. It returns the session for the
            command, or None if the program is to end.
        epilog: The last line of the help.
        added: Options that Typer adds to the program, with their help.
        moved: Commands that do not exist but that users look for, each with the command to use.
    """

    commands: CommandTable
    callback: Callable[..., Any]
    epilog: str = ""
    added: Mapping[str, str] = {}
    moved: Mapping[str, str] = {}

    def find(self, name: str) -> Command | None:
        """Return a command by name; None if it does not exist."""
        for commands in self.commands.values():
            if name in commands:
                return commands[name]
        return None

    def names(self) -> list[str]:
        """Return the names of all commands."""
        return [name for commands in self.commands.values() for name in commands]


def command_spec(function: Callable[..., Any], path: str, root: str = "") -> CommandSpec:
    """Make the specification of a command from the signature of its function.

    Args:
        function: The function. Its first parameter is the `Context`. Each other parameter is annotated with an
            `Option`, an `Argument` or an `OptionsMaker`, or with a named tuple whose fields are annotated so.
        path: The names of the program, the group and the command.
        root: The folder of the corpus; empty for the default.
    """
    # `inspect.signature` would do this, but its import takes too long.
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    positional_defaults = function.__defaults__ or ()
    names_with_default = names[code.co_argcount - len(positional_defaults) : code.co_argcount]
    defaults = dict(zip(names_with_default, positional_defaults, strict=True))
    defaults |= function.__kwdefaults__ or {}
    parameters: list[Parameter] = []
    groups: dict[str, Callable[..., Any]] = {}
    for name in names[1:]:
        annotation = function.__annotations__[name]
        if hasattr(annotation, "_fields"):  # a named tuple
            groups[name] = annotation
            for field in annotation._fields:
                parameter = _parameter(field, annotation.__annotations__[field], annotation._field_defaults)
                parameters.append(parameter._replace(group=name))
            continue
        declaration = annotation.__metadata__[0]
        if callable(declaration):  # an `OptionsMaker`
            groups[name] = dict
            parameters = list(declaration(parameters, name, root))
        else:
            parameters.append(_parameter(name, annotation, defaults))
    return CommandSpec(path, function, parameters, groups)


def _parameter(name: str, annotation: Any, defaults: Mapping[str, Any]) -> Parameter:
    kind = annotation.__origin__
    option = annotation.__metadata__[0]
    if isinstance(kind, UnionType):  # `X | None`
        kind = next(member for member in kind.__args__ if member is not type(None))
    container = getattr(kind, "__origin__", None)
    word_count = 1
    if container is tuple:
        word_count = len(kind.__args__)
    if container in (list, tuple):
        kind = kind.__args__[0]
    if kind is bool:
        word_count = 0
    names = option.names
    if not names and not isinstance(option, Argument):
        names = (f"--{name.replace('_', '-')}",)
    return Parameter(
        name,
        names,
        kind,
        option,
        word_count,
        is_many=container is list,
        is_required=name not in defaults,
        default=defaults.get(name),
    )
