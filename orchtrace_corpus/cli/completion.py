"""Completion of words in a shell, by the specifications of commands and the providers of their values.

Typer writes the scripts that `--install-completion` installs; they start the program with the words so far in its
environment. An answer of this module takes 2 to 6 times as long as the bare interpreter takes to start. Typer's own
answer takes 15 times as long, even for a program with a single command, since Typer 0.29 imports Pydantic. It also
completes nothing after a `=` in bash.
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

_BREAKS_OF_BASH = re.compile(r"[=:<>]+")


class Shell(StrEnum):
    """The shells for which Typer has a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"
    PWSH = "pwsh"


def answer(instruction: str, output: Output) -> int | None:
    """Write the words that can follow, as the script of a shell reads them, and return the exit code.

    The instruction of a script is `complete_` and the name of the shell; any other is Typer's, and the answer is None.
    """
    shell = next((shell for shell in Shell if instruction == f"complete_{shell}"), None)
    if shell is None:
        return None
    before, word, kept = _words(shell)
    try:
        offers = [pair for pair in offer(before, word, output.program) if pair[0].lower().startswith(word.lower())]
    except CorpusError:  # a corpus that cannot be read has no names to offer; the command itself says why
        offers = []
    match shell:
        case Shell.BASH:
            output.write("".join(f"{value[kept:]}\n" for value, _ in offers))
        case Shell.ZSH:
            items = "\n".join(f'"{_zsh(value)}"' + (f':"{_zsh(text)}"' if text else "") for value, text in offers)
            output.write(f"_arguments '*: :(({items}))'\n" if items else "_files\n")
        case Shell.FISH:
            if os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":  # the exit code says if there are words
                return ExitCode.DONE if offers else ExitCode.FINDINGS
            output.write("".join(f"{value}\t{text}\n" if text else f"{value}\n" for value, text in offers))
        case Shell.POWERSHELL | Shell.PWSH:
            output.write("".join(f"{value}:::{text or ' '}\n" for value, text in offers))
    return ExitCode.DONE


def _words(shell: Shell) -> tuple[list[str], str, int]:
    """Return the whole words, the incomplete one, and the number of its characters that bash keeps."""
    if shell is not Shell.BASH:
        text = os.environ.get("_TYPER_COMPLETE_ARGS", "")
        words = [_unquoted(word) for word in re.findall(r"""(?:[^\s"'\\]|\\.|"[^"]*"?|'[^']*'?)+""", text)]
        is_open = not text[-1:].isspace()
        if shell in (Shell.POWERSHELL, Shell.PWSH):
            is_open = os.environ.get("_TYPER_COMPLETE_WORD_TO_COMPLETE", "") != ""
        if words[1:] and is_open:
            return words[1:-1], words[-1], 0
        return words[1:], "", 0
    # Bash splits words at = and :, and replaces only the part behind the last of them.
    number = os.environ.get("COMP_CWORD", "")
    pieces = os.environ.get("COMP_WORDS", "").split("\n")[1 : int(number) + 1 if number.isdecimal() else None]
    words, joins_next = [""], True
    for piece in pieces:
        is_break = _BREAKS_OF_BASH.fullmatch(piece) is not None
        if joins_next or is_break:
            words[-1] += piece
        else:
            words.append(piece)
        joins_next = is_break
    last = max((match.end() for match in _BREAKS_OF_BASH.finditer(words[-1])), default=0)
    return [_unquoted(word) for word in words[:-1]], words[-1].lstrip("\"'"), last


def _unquoted(word: str) -> str:
    """Return a word without its quotes and backslashes."""
    return re.sub(r"""["']|\\(?=.)""", "", word)


def _zsh(text: str) -> str:
    """Return a text as zsh reads it in a list of completions."""
    text = text.replace('"', '""').replace("'", "''").replace("$", "\\$").replace("`", "\\`")
    return text.replace(":", r"\\:")


def offer(before: Sequence[str], word: str, name: str = CORPUS) -> Offers:
    """Yield the words that can stand in place of an incomplete word, by the whole words before it; the caller filters.

    Raises:
        CorpusError: The words come from a corpus that cannot be read.
    """
    group = program(name)
    line = follow(group, name, before)
    if line is None or line.head.pending:  # an unknown command, or an option before it without its value
        return
    if line.group is not None:
        if not word.startswith("-"):
            for commands in line.group.commands.values():
                yield from ((command, row.help) for command, row in commands.items())
            return
        yield from _options(line.spec.parameters, set())
        yield from line.group.added.items()  # the options of Typer
        yield ("--help", "Show the help.")
        return
    place = Place(line.root, line.words)
    words = sort_words(line.spec.parameters, line.words)
    if words.pending is not None:
        yield from _values(words.pending, word, place)
        return
    start, equals, value = word.partition("=")
    named = [parameter for parameter in line.spec.parameters if start in parameter.names]
    if named and equals:
        yield from ((f"{start}={offered}", text) for offered, text in _values(named[0], value, place))
    elif word.startswith("-"):
        yield from _options(line.spec.parameters, {option.name for option, _ in words.options if not option.is_many})
        yield "--help", "Show the help."
    else:
        arguments = [parameter for parameter in line.spec.parameters if not parameter.names]
        if len(words.arguments) < len(arguments):
            yield from _values(arguments[len(words.arguments)], word, place)
        elif arguments and arguments[-1].is_many:
            yield from _values(arguments[-1], word, place)


def _options(parameters: Sequence[Parameter], used: Collection[str]) -> Offers:
    """Yield the long names of options that can still be given."""
    for parameter in parameters:
        if parameter.name not in used:
            text = parameter.option.help.partition(" [")[0]
            yield from ((name, text) for name in parameter.names if name.startswith("--"))


def _values(parameter: Parameter, word: str, place: Place) -> Offers:
    """Yield the values of a parameter: its choices, and those of its provider."""
    yield from ((str(choice), "") for choice in parameter.choices)
    if parameter.option.offers is not None:
        yield from parameter.option.offers(word, place)
