"""Plain invocations, read without Typer: importing it takes longer than what most commands do.

The words mean what Typer takes them to mean. Those that do not make an invocation are left to it, which says why.
Classes are plain: each named tuple that start-up makes takes 2 % of what the interpreter does.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchtrace_corpus.base.commands.declarations import MORE, CommandGroup, CommandSpec, Parameter, command_spec
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import ExitCode
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import wrap

HELP_OPTIONS = ("--help", "-h")
HELP_WIDTH = 78
_NUMERALS = frozenset("+-.0123456789")


class Words:
    """The words of a command line by their meaning.

    Attributes:
        options: The options, each with the words of its value.
        arguments: The words that are no part of an option.
        rest: The words behind the first of those, where the options in front of a command are read.
        pending: The option that the last words are the beginning of.
        wrong: The words that are no option.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.options: list[tuple[Parameter, list[str]]] = []
        self.arguments: list[str] = []
        self.rest = list(words)
        self.pending: Parameter | None = None
        self.wrong: list[str] = []


def sort_words(parameters: Sequence[Parameter], words: Sequence[str], *, is_head: bool = False) -> Words:
    """Sort the words of a command line by their meaning.

    Args:
        parameters: What the command takes.
        words: The words.
        is_head: Whether a command follows, with options of its own.
    """
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


def parse(spec: CommandSpec, words: Sequence[str]) -> dict[str, Any] | None:
    """Return the values that words give to the parameters of a command, by name; None if they make no invocation.

    Args:
        spec: The command.
        words: The words behind its name.
    """
    sorted_words = sort_words(spec.parameters, words)
    bare, given = sorted_words.arguments, list(sorted_words.options)
    arguments = [parameter for parameter in spec.parameters if not parameter.names]
    while bare and arguments and not arguments[0].is_many:
        given.append((arguments.pop(0), [bare.pop(0)]))
    while bare and arguments and not arguments[-1].is_many:  # those behind one that takes many
        given.append((arguments.pop(), [bare.pop()]))
    if arguments and arguments[0].is_many:
        given += [(arguments[0], [word]) for word in bare]
        bare = []
    if bare or sorted_words.wrong or sorted_words.pending:
        return None
    return _values(spec, given)


def _values(spec: CommandSpec, given: Sequence[tuple[Parameter, list[str]]]) -> dict[str, Any] | None:
    """Return the values of what is given, by name; None if a text is no value, or something is missing."""
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
    """Return the value that a text is for a parameter; None if it is none."""
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


class Line:
    """Where the words of a command line lead.

    Attributes:
        head: The words in front of the first command, by the global options that they give.
        root: The folder of the corpus that those name; empty if they name none.
        spec: The command; the callback of the group where none is named.
        group: The group that the words lead to; None for a command.
        words: The words behind the name of the command.
    """

    def __init__(self, head: Words, root: str, spec: CommandSpec, group: CommandGroup | None, words: list[str]) -> None:
        self.head, self.root, self.spec, self.group, self.words = head, root, spec, group, words


def follow(group: CommandGroup, program: str, words: Sequence[str]) -> Line | None:
    """Follow words from a program to the command that they name; None if there is none of that name.

    Args:
        group: The commands of the program.
        program: Its name.
        words: The words behind it.
    """
    spec = command_spec(group.callback, program)
    head = sort_words(spec.parameters, words, is_head=True)
    root = next((texts[0] for option, texts in reversed(head.options) if option.name == "root"), "")
    rest = head.rest
    while rest and not rest[0].startswith("-"):
        command = group.find(rest[0])
        if command is None:
            return None
        path, found = f"{spec.path} {rest.pop(0)}", command.find()
        if not isinstance(found, CommandGroup):
            return Line(head, root, command_spec(found, path, root), None, rest)
        group, spec = found, command_spec(found.callback, path)
    return Line(head, root, spec, group, rest)


def run(group: CommandGroup, words: Sequence[str], output: Output) -> int | None:
    """Run an invocation and return its exit code; None if Typer is needed for it."""
    line = follow(group, output.program, words)
    if line is None:
        return None
    behind = [*line.head.wrong, *line.words]
    if line.group is not None and behind and behind[0] in HELP_OPTIONS:
        output.write(output.renamed(group_help(line.group, line.spec, output.width or HELP_WIDTH)))
        return ExitCode.DONE
    if line.head.wrong or line.head.pending:
        return None
    program = command_spec(group.callback, output.program)
    session = program.call(Session(output, ""), _values(program, line.head.options) or {})
    if session is None:  # an option in front of the command was all
        return ExitCode.DONE
    if line.group is not None:
        if line.words:
            return None
        output.tell(group_help(line.group, line.spec, HELP_WIDTH))
        return ExitCode.USAGE
    values = parse(line.spec, line.words)
    return None if values is None else int(line.spec.call(session, values))


def group_help(group: CommandGroup, spec: CommandSpec, width: int) -> str:
    """Return the help of a group: its options, and its commands under their headings; of further ones the names."""
    width = min(width, HELP_WIDTH)
    lines = [f"Usage: {spec.path} [OPTIONS] COMMAND [ARGS]...", ""]
    for paragraph in spec.help.split("\n\n"):
        kept = paragraph.removeprefix("\b\n")
        text = [f"  {line}" for line in kept.splitlines()]
        lines += [*(text if kept != paragraph else wrap(" ".join(paragraph.split()), width, first="  ", rest="  ")), ""]
    options = {
        f"{', '.join(sorted(one.names, key=len))} {one.form if one.word_count else ''}": one.help
        for one in spec.parameters
    }
    lines += [
        "Options:",
        *_definitions({**options, **group.added, "-h, --help": "Show this message and exit."}, width),
        "",
    ]
    for heading, commands in group.commands.items():
        helps = {name: command.help for name, command in commands.items()}
        names = wrap(", ".join(helps), width, first="  ", rest="  ")
        lines += [f"{heading}:", *(names if heading == MORE else _definitions(helps, width)), ""]
    if group.epilog:
        lines += [*wrap(group.epilog, width, first="  ", rest="  "), ""]
    return "\n".join(lines[:-1]) + "\n"


def _definitions(texts: Mapping[str, str], width: int) -> Iterator[str]:
    """Yield names and their texts as lines of two columns."""
    column = max(len(name.strip()) for name in texts) + 4
    for name, text in texts.items():
        yield from wrap(text, width, first=f"  {name.strip()}".ljust(column), rest=" " * column)
