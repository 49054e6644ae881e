"""Parse and run command lines without Typer, whose import takes longer than most commands.

Words have the meaning that Typer gives them. If a command line is not valid, Typer is called, which reports why.
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
_NOT_WRAPPED = "\b\n"
"""Click's mark of a paragraph whose lines are not wrapped."""

_NUMBER_CHARACTERS = frozenset("+-.0123456789")


class Words:
    """The words of a command line, sorted by their meaning.

    Attributes:
        options: The options, each with the words of its value.
        arguments: The words that are no part of an option.
        rest: If only the options in front of a command are read: the words from the command on; else empty.
        pending: The option at the end whose value is incomplete; None if there is none.
        wrong: The words that look like options but are none.
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
        parameters: The parameters of the command.
        words: The words after its name.
        is_head: True to read only options, up to the name of a command below this one.
    """
    options = {name: parameter for parameter in parameters for name in parameter.names}
    sorted_words = Words(words)
    rest = sorted_words.rest
    while rest:
        word = rest.pop(0)
        is_long_option = word.startswith("--")
        if word == "--" and not is_head:  # all words after it are arguments
            sorted_words.arguments.extend(rest)
            rest.clear()
        elif not word.startswith("-") or word == "-":
            if is_head:
                rest.insert(0, word)
                break
            sorted_words.arguments.append(word)
        else:
            if is_long_option:
                name, equals, value = word.partition("=")
                has_value = bool(equals)
            else:
                name, value = word[:2], word[2:]
                has_value = bool(value)
            option = options.get(name)
            if option is None or (option.word_count == 0 and is_long_option and has_value):
                sorted_words.wrong.append(word)
                continue
            if has_value:  # in the same word; after the letter of a flag, it is the letter of another option
                rest.insert(0, value if option.word_count else f"-{value}")
            if len(rest) < option.word_count:
                sorted_words.pending = option
                break
            sorted_words.options.append((option, rest[: option.word_count]))
            del rest[: option.word_count]
    return sorted_words


def parse(spec: CommandSpec, words: Words) -> dict[str, Any] | None:
    """Return the values that words give to the parameters of a command, by name; None if they are not valid."""
    bare_words = list(words.arguments)
    given = list(words.options)
    arguments = [parameter for parameter in spec.parameters if not parameter.names]
    while bare_words and arguments and not arguments[0].is_many:
        given.append((arguments.pop(0), [bare_words.pop(0)]))
    # An argument with several values can be followed by arguments with one value: these take the last words.
    while bare_words and arguments and not arguments[-1].is_many:
        given.append((arguments.pop(), [bare_words.pop()]))
    if arguments and arguments[0].is_many:
        given += [(arguments[0], [word]) for word in bare_words]
        bare_words = []
    if bare_words or words.wrong or words.pending:
        return None
    return _values(spec, given)


def _values(spec: CommandSpec, given: Sequence[tuple[Parameter, list[str]]]) -> dict[str, Any] | None:
    """Return the values of parameters by name; None if one is invalid, or a required one is missing.

    `given` are the parameters on the command line, each with the words of its value.
    """
    last_index = {parameter.name: index for index, (parameter, _) in enumerate(given)}
    values: dict[str, Any] = {}
    for index, (parameter, words) in enumerate(given):
        if not parameter.is_many and index < last_index[parameter.name]:  # given again later: the last one counts
            continue
        parts = [_value(parameter, word) for word in words]
        if None in parts:
            return None
        value: Any = tuple(parts)
        if parameter.word_count == 0:  # a flag
            value = True
        elif parameter.word_count == 1:
            value = parts[0]
        if parameter.is_many:
            values.setdefault(parameter.name, []).append(value)
        else:
            values[parameter.name] = value
    for parameter in spec.parameters:
        if parameter.is_required and parameter.name not in values:
            return None
    return values


def _value(parameter: Parameter, word: str) -> Any:
    """Return the value of a word for a parameter; None if it is invalid."""
    kind = parameter.kind
    if kind is str:
        return word
    if kind not in (int, float):
        for choice in parameter.choices:
            if choice == word:
                return choice
        return None
    if not _NUMBER_CHARACTERS.issuperset(word):
        return None
    try:
        number = kind(word)
    except ValueError:
        return None
    low = parameter.option.min
    high = parameter.option.max
    if (low is not None and number < low) or (high is not None and number > high):
        return None
    return number


class Line(NamedTuple):
    """The command that a command line names.

    Attributes:
        head: The words in front of the first command, sorted.
        root: The folder of the corpus that the option `--root` names; empty without the option.
        spec: The command; if the line names only a group, the callback of the group.
        group: The group if the line names only a group; None if it names a command.
        words: The words after the name of the command or group.
    """

    head: Words
    root: str
    spec: CommandSpec
    group: CommandGroup | None
    words: list[str]


def follow(group: CommandGroup, program: str, words: Sequence[str]) -> Line | None:
    """Return the command that the words after a program's name lead to; None if there is no such command."""
    spec = command_spec(group.callback, program)
    head = sort_words(spec.parameters, words, is_head=True)
    root = ""
    for option, values in head.options:
        if option.name == "root":
            root = values[0]
    rest = head.rest
    while rest and not rest[0].startswith("-"):
        command = group.find(rest[0])
        if command is None:
            return None
        path = f"{spec.path} {rest.pop(0)}"
        target = command.load()
        if not isinstance(target, CommandGroup):
            return Line(head, root, command_spec(target, path, root), None, rest)
        group = target
        spec = command_spec(group.callback, path)
    return Line(head, root, spec, group, rest)


def run(group: CommandGroup, words: Sequence[str], output: Output) -> int | None:
    """Run a command line and return its exit code; None if the line is not valid, so that Typer is needed."""
    line = follow(group, output.program, words)
    if line is None:
        return None
    parameters = line.spec.parameters if line.group is None else ()
    command_words = sort_words(parameters, line.words)
    wrong = [*command_words.wrong, *line.head.wrong]
    if wrong:  # `--help` is not declared, so it is among the wrong options
        is_help = HELP_OPTIONS.issuperset(wrong) and not command_words.pending
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
    values = parse(line.spec, command_words)
    return None if values is None else int(line.spec.call(session, values))


def help_text(spec: CommandSpec, group: CommandGroup | None, width: int) -> str:
    """Return the help of a command, or of a group with its commands.

    Args:
        spec: The command, or the callback of the group.
        group: The group; None for a command.
        width: The width of the terminal; the help is not wider than `HELP_WIDTH`.
    """
    width = min(width, HELP_WIDTH)
    if group:
        argument_forms = ["COMMAND [ARGS]..."]
    else:
        argument_forms = [parameter.form for parameter in spec.parameters if not parameter.names]
    lines = [" ".join(["Usage:", spec.path, "[OPTIONS]", *argument_forms]), ""]
    for paragraph in spec.help.split("\n\n"):
        if paragraph.startswith(_NOT_WRAPPED):
            lines += [f"  {line}" for line in paragraph.removeprefix(_NOT_WRAPPED).splitlines()]
        else:
            lines += wrap(paragraph, width, first="  ", rest="  ")
        lines.append("")
    sections: dict[str, dict[str, str]] = {"Arguments": {}, "Options": {}}  # texts by label
    for parameter in spec.parameters:
        heading = parameter.section
        if not heading:
            heading = "Options" if parameter.names else "Arguments"
        section = sections.setdefault(heading, {})
        if parameter.is_only_named:
            section[parameter.names[0]] = ""
        else:
            section[parameter.label] = parameter.help
    if group:
        sections["Options"].update(group.added)
    sections["Options"]["-h, --help"] = "Show this message and exit."
    if group:
        for heading, commands in group.commands.items():
            section = sections[heading] = {}
            for name, command in commands.items():
                section[name] = "" if heading == MORE else command.help
    for heading, texts in sections.items():
        if texts:
            lines += [f"{heading}:", *_definitions(texts, width), ""]
    if group and group.epilog:
        lines += [*wrap(group.epilog, width, first="  ", rest="  "), ""]
    return "\n".join(lines[:-1]) + "\n"


def _definitions(texts: Mapping[str, str], width: int) -> Iterator[str]:
    """Yield the lines of labels and their texts in two columns; if all texts are empty, a list of the labels.

    A label that is wider than its column has a line of its own.
    """
    if not any(texts.values()):
        yield from wrap(", ".join(texts), width, first="  ", rest="  ")
        return
    column = min(max(map(len, texts)) + 4, MAX_NAME_WIDTH + 4)
    for label, text in texts.items():
        first = f"  {label}".ljust(column)
        if len(label) > MAX_NAME_WIDTH:
            yield first
            first = " " * column
        yield from wrap(text, width, first=first, rest=" " * column)
