"""Parse and run invocations without Typer, whose import takes longer than most commands.

Words have the meaning that Typer gives them. Words that make no valid invocation are left to Typer, which reports why.
"""

from collections.abc import Iterator, Mapping, Sequence

from orchtrace_corpus.base.annotations import Any
from orchtrace_corpus.base.commands.declarations import MORE, CommandGroup, CommandSpec, Parameter, command_spec
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import wrap

HELP_OPTIONS = frozenset(("-h", "--help"))
HELP_WIDTH = 78
MAX_NAME_WIDTH = 30
_KEPT = "\b\n"
"""Click's mark of a paragraph whose lines are not wrapped."""

_NUMERALS = frozenset("+-.0123456789")


class Words:
    """The words of a command line by their meaning.

    Attributes:
        options: The options, each with the words of its value.
        arguments: The words that are no part of an option.
        rest: The words from the first argument on, if only the options in front of a command are read.
        pending: The option at the end whose value is incomplete.
        wrong: The words that look like options and are none.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.options: list[tuple[Parameter, list[str]]] = []
        self.arguments: list[str] = []
        self.rest = list(words)
        self.pending: Parameter | None = None
        self.wrong: list[str] = []


def sort_words(parameters: Sequence[Parameter], words: Sequence[str], *, is_head: bool = False) -> Words:
    """Sort the words of a command line by their meaning; with `is_head`, those in front of a command."""
    options = {name: parameter for parameter in parameters for name in parameter.names}
    sorted_words = Words(words)
    rest = sorted_words.rest
    while rest:
        word = rest.pop(0)
        if word == "--" and not is_head:
            sorted_words.arguments.extend(rest)
            rest.clear()
        elif not word.startswith("-") or word == "-":
            if is_head:
                rest.insert(0, word)
                break
            sorted_words.arguments.append(word)
        else:
            name, separator, value = word.partition("=")
            if not word.startswith("--"):
                name, separator, value = word[:2], word[2:], word[2:]
            option = options.get(name)
            if option is None or (option.word_count == 0 and separator and word.startswith("--")):
                sorted_words.wrong.append(word)
                continue
            if separator:
                rest.insert(0, value if option.word_count else f"-{value}")
            if len(rest) < option.word_count:
                sorted_words.pending = option
                break
            sorted_words.options.append((option, rest[: option.word_count]))
            del rest[: option.word_count]
    return sorted_words


def parse(spec: CommandSpec, words: Words) -> dict[str, Any] | None:
    """Return the values that words give to the parameters of a command, by name; None if they are not valid."""
    bare, given = list(words.arguments), list(words.options)
    arguments = [parameter for parameter in spec.parameters if not parameter.names]
    while bare and arguments and not arguments[0].is_many:
        given.append((arguments.pop(0), [bare.pop(0)]))
    while bare and arguments and not arguments[-1].is_many:  # those behind one that takes many
        given.append((arguments.pop(), [bare.pop()]))
    if arguments and arguments[0].is_many:
        given += [(arguments[0], [word]) for word in bare]
        bare = []
    if bare or words.wrong or words.pending:
        return None
    return _values(spec, given)


def _values(spec: CommandSpec, given: Sequence[tuple[Parameter, list[str]]]) -> dict[str, Any] | None:
    """Return the given values by name; None if one is invalid or missing."""
    last = {parameter.name: index for index, (parameter, _) in enumerate(given)}
    values: dict[str, Any] = {}
    for index, (parameter, texts) in enumerate(given):
        if not parameter.is_many and index < last[parameter.name]:  # the last of several counts
            continue
        members = [_value(parameter, text) for text in texts]
        if None in members:
            return None
        value: Any = tuple(members)
        if parameter.word_count < 2:
            value = members[0] if members else True
        if parameter.is_many:
            values.setdefault(parameter.name, []).append(value)
        else:
            values[parameter.name] = value
    if any(parameter.is_required and parameter.name not in values for parameter in spec.parameters):
        return None
    return values


def _value(parameter: Parameter, text: str) -> Any:
    """Return the value of a text for a parameter; None if it is invalid."""
    kind, option = parameter.kind, parameter.option
    if kind is str:
        return text
    if kind not in (int, float):
        return next((choice for choice in parameter.choices if choice == text), None)
    if not _NUMERALS.issuperset(text):
        return None
    try:
        number = kind(text)
    except ValueError:
        return None
    is_low = option.min is not None and number < option.min
    is_high = option.max is not None and number > option.max
    return None if is_low or is_high else number


class Line(NamedTuple):
    """The command that a command line leads to.

    Attributes:
        head: The words in front of the first command.
        root: The folder of the corpus that they name; empty if they name none.
        spec: The command; the callback of the group if no command is named.
        group: The group if no command is named.
        words: The words behind the name of the command.
    """

    head: Words
    root: str
    spec: CommandSpec
    group: CommandGroup | None
    words: list[str]


def follow(group: CommandGroup, program: str, words: Sequence[str]) -> Line | None:
    """Follow the words behind a program's name to the command that they name; None if it does not exist."""
    spec = command_spec(group.callback, program)
    head = sort_words(spec.parameters, words, is_head=True)
    root = next((texts[0] for option, texts in reversed(head.options) if option.name == "root"), "")
    rest = head.rest
    while rest and not rest[0].startswith("-"):
        command = group.find(rest[0])
        if command is None:
            return None
        path, target = f"{spec.path} {rest.pop(0)}", command.find()
        if not isinstance(target, CommandGroup):
            return Line(head, root, command_spec(target, path, root), None, rest)
        group, spec = target, command_spec(target.callback, path)
    return Line(head, root, spec, group, rest)


def run(group: CommandGroup, words: Sequence[str], output: Output) -> int | None:
    """Run an invocation and return its exit code; None if Typer is needed for it."""
    line = follow(group, output.program, words)
    if line is None:
        return None
    behind = sort_words(line.spec.parameters if line.group is None else (), line.words)
    if behind.wrong or line.head.wrong:
        is_help = HELP_OPTIONS.issuperset([*behind.wrong, *line.head.wrong]) and not behind.pending
        if not is_help or (line.head.wrong and line.group is None):
            return None
        output.write(output.renamed(help_text(line.spec, line.group, output.width or HELP_WIDTH)))
        return ExitCode.DONE
    if line.head.pending:
        return None
    program = command_spec(group.callback, output.program)
    session = program.call(Session(output, ""), _values(program, line.head.options) or {})
    if session is None:  # --version
        return ExitCode.DONE
    if line.group is not None:
        output.tell(help_text(line.spec, line.group, HELP_WIDTH))
        return ExitCode.USAGE
    values = parse(line.spec, behind)
    return None if values is None else int(line.spec.call(session, values))


def help_text(spec: CommandSpec, group: CommandGroup | None, width: int) -> str:
    """Return the help of a command, or of a group with the commands below it."""
    width = min(width, HELP_WIDTH)
    arguments = [parameter for parameter in spec.parameters if not parameter.names]
    forms = ["COMMAND [ARGS]..."] if group else [argument.form for argument in arguments]
    lines = [" ".join(["Usage:", spec.path, "[OPTIONS]", *forms]), ""]
    for paragraph in spec.help.split("\n\n"):
        if paragraph.startswith(_KEPT):
            lines += [f"  {line}" for line in paragraph.removeprefix(_KEPT).splitlines()]
        else:
            lines += wrap(paragraph, width, first="  ", rest="  ")
        lines.append("")
    sections: dict[str, dict[str, str]] = {"Arguments": {}, "Options": {}}
    for parameter in spec.parameters:
        section = parameter.section or ("Options" if parameter.names else "Arguments")
        label, text = parameter.label, parameter.help
        if parameter.is_only_named:
            label, text = parameter.names[0], ""
        sections.setdefault(section, {})[label] = text
    sections["Options"] |= {**(group.added if group else {}), "-h, --help": "Show this message and exit."}
    for heading, commands in group.commands.items() if group else ():
        sections[heading] = {name: "" if heading == MORE else command.help for name, command in commands.items()}
    for heading, texts in sections.items():
        if texts:
            lines += [f"{heading}:", *_definitions(texts, width), ""]
    if group and group.epilog:
        lines += [*wrap(group.epilog, width, first="  ", rest="  "), ""]
    return "\n".join(lines[:-1]) + "\n"


def _definitions(texts: Mapping[str, str], width: int) -> Iterator[str]:
    """Yield names and their texts in two columns, with a long name on its own line; without texts, yield a list."""
    if not any(texts.values()):
        yield from wrap(", ".join(texts), width, first="  ", rest="  ")
        return
    column = min(max(map(len, texts)) + 4, MAX_NAME_WIDTH + 4)
    for name, text in texts.items():
        first = f"  {name}".ljust(column)
        if len(name) > MAX_NAME_WIDTH:
            yield first
            first = " " * column
        yield from wrap(text, width, first=first, rest=" " * column)
