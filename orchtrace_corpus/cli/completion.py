"""Completion of words in a shell: commands, options and their values.

`--install-completion` installs a script of Typer in the shell. The script starts the program, with the words so far in
environment variables, and this module answers. That takes 2 to 6 times as long as the start of the bare interpreter.
Typer could answer, too, but would take 15 times as long even for a program with one command, because Typer 0.29 imports
Pydantic; and in bash, it completes nothing after a `=`.
"""

import os
import re
from collections.abc import Collection, Sequence
from enum import StrEnum

from orchtrace_corpus.base.commands.declarations import Offers, Parameter, Place
from orchtrace_corpus.base.commands.output import CORPUS, Output
from orchtrace_corpus.base.commands.plain import follow, sort_words
from orchtrace_corpus.base.errors import CorpusError, ExitCode
from orchtrace_corpus.cli.table import program

_BASH_WORD_BREAKS = re.compile(r"[=:<>]+")


class Shell(StrEnum):
    """The shells for which Typer has a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"
    PWSH = "pwsh"


def answer(instruction: str, output: Output) -> int | None:
    """Write the words that can complete the command line, in the form that the script of a shell reads.

    Returns:
        The exit code; None if Typer has to answer, because the instruction is not `complete_` with a shell's name.
    """
    prefix, _, name = instruction.partition("_")
    if prefix != "complete" or name not in list(Shell):
        return None
    shell = Shell(name)
    words_before, word, kept_count = _bash_words() if shell is Shell.BASH else _words(shell)
    offers = []
    try:
        for value, meaning in offer(words_before, word, output.program):
            if value.lower().startswith(word.lower()):
                offers.append((value, meaning))
    except CorpusError:  # if the corpus cannot be read, nothing is offered; the command itself says why
        offers = []
    match shell:
        case Shell.BASH:
            output.write("".join(f"{value[kept_count:]}\n" for value, _ in offers))
        case Shell.ZSH:
            items = []
            for value, meaning in offers:
                description = f':"{_escape_for_zsh(meaning)}"' if meaning else ""
                items.append(f'"{_escape_for_zsh(value)}"{description}')
            text = "\n".join(items)
            output.write(f"_arguments '*: :(({text}))'\n" if text else "_files\n")
        case Shell.FISH:
            if os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":  # the exit code says if there are words
                return ExitCode.DONE if offers else ExitCode.FINDINGS
            output.write("".join(f"{value}\t{meaning}\n" if meaning else f"{value}\n" for value, meaning in offers))
        case Shell.POWERSHELL | Shell.PWSH:
            output.write("".join(f"{value}:::{meaning or ' '}\n" for value, meaning in offers))
    return ExitCode.DONE


def _words(shell: Shell) -> tuple[list[str], str, int]:
    """Return the whole words after the program's name, the incomplete word, and 0: no other shell is like bash."""
    text = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    _, *words = re.findall(r"""(?:[^\s"'\\]|\\.|"[^"]*"?|'[^']*'?)+""", text) or [""]
    words = [_unquote(word) for word in words]
    is_incomplete = not text[-1:].isspace()
    if shell in (Shell.POWERSHELL, Shell.PWSH):
        is_incomplete = os.environ.get("_TYPER_COMPLETE_WORD_TO_COMPLETE", "") != ""
    if words and is_incomplete:
        return words[:-1], words[-1], 0
    return words, "", 0


def _bash_words() -> tuple[list[str], str, int]:
    """Return the whole words after the program's name, the incomplete word, and the number of its characters to keep.

    Bash splits words at `=` and `:`, and replaces only the part of a word after the last of them.
    """
    pieces = os.environ.get("COMP_WORDS", "").split("\n")[1:]
    last_index = os.environ.get("COMP_CWORD", "")  # that of the incomplete word, the program's name included
    if last_index.isdecimal():
        pieces = pieces[: int(last_index)]
    words = [""]
    joins_next = True
    for piece in pieces:
        is_break = _BASH_WORD_BREAKS.fullmatch(piece) is not None
        if joins_next or is_break:
            words[-1] += piece
        else:
            words.append(piece)
        joins_next = is_break
    *words_before, word = words
    kept_count = 0
    for match in _BASH_WORD_BREAKS.finditer(word):
        kept_count = match.end()
    return [_unquote(each) for each in words_before], word.lstrip("\"'"), kept_count


def _unquote(word: str) -> str:
    """Return a word without its quotes and backslashes."""
    return re.sub(r"""["']|\\(?=.)""", "", word)


def _escape_for_zsh(text: str) -> str:
    """Return a text as zsh reads it in a list of completions."""
    text = text.replace('"', '""').replace("'", "''").replace("$", "\\$").replace("`", "\\`")
    return text.replace(":", r"\\:")


def offer(before: Sequence[str], word: str, name: str = CORPUS) -> Offers:
    """Yield the words that can be in place of an incomplete word, each with its meaning.

    Words with another beginning are yielded, too.

    Args:
        before: The whole words after the program's name.
        word: The incomplete word.
        name: The name of the program.

    Raises:
        CorpusError: The words come from a corpus that cannot be read.
    """
    group = program(name)
    line = follow(group, name, before)
    if line is None or line.head.pending:  # an unknown command, or a global option whose value is incomplete
        return
    if line.group is not None:
        if not word.startswith("-"):
            for commands in line.group.commands.values():
                for command_name, command in commands.items():
                    yield command_name, command.help
            return
        yield from _options(line.spec.parameters, set())
        yield from line.group.added.items()
        yield "--help", "Show the help."
        return
    place = Place(line.root, line.words)
    words = sort_words(line.spec.parameters, line.words)
    if words.pending is not None:
        yield from _values(words.pending, word, place)
        return
    option_name, equals, value = word.partition("=")
    options = [parameter for parameter in line.spec.parameters if option_name in parameter.names]
    if options and equals:
        for offered, meaning in _values(options[0], value, place):
            yield f"{option_name}={offered}", meaning
    elif word.startswith("-"):
        used = {option.name for option, _ in words.options if not option.is_many}
        yield from _options(line.spec.parameters, used)
        yield "--help", "Show the help."
    else:
        arguments = [parameter for parameter in line.spec.parameters if not parameter.names]
        if len(words.arguments) < len(arguments):
            yield from _values(arguments[len(words.arguments)], word, place)
        elif arguments and arguments[-1].is_many:
            yield from _values(arguments[-1], word, place)


def _options(parameters: Sequence[Parameter], used: Collection[str]) -> Offers:
    """Yield the long names of options, each with its help, except those of the parameters that are used already."""
    for parameter in parameters:
        if parameter.name not in used:
            text, _, _ = parameter.option.help.partition(" [")
            for name in parameter.names:
                if name.startswith("--"):
                    yield name, text


def _values(parameter: Parameter, word: str, place: Place) -> Offers:
    """Yield the values of a parameter: its choices, and the values that its declaration offers."""
    for choice in parameter.choices:
        yield str(choice), ""
    if parameter.option.offers is not None:
        yield from parameter.option.offers(word, place)
