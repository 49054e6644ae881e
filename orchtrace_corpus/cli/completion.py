"""What a shell offers behind TAB: commands, options, fields, filters, terms, keys, rules and formats.

Typer writes the scripts that `--install-completion` installs; they start the program with the words so far in its
environment. The answer is made here, from the same declarations that Typer reads and from the corpus at hand.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import FunctionType
from typing import Any, NamedTuple

from orchtrace_corpus.base.commands.declarations import (
    Command,
    CommandGroup,
    CommandTable,
    Parameter,
    find_command,
    parameters,
)
from orchtrace_corpus.base.commands.output import CORPUS, Output
from orchtrace_corpus.base.errors import CorpusError, ExitCode
from orchtrace_corpus.cli.table import COMMANDS

Offers = Iterator[tuple[str, str]]
"""Words, each with what it means; empty where there is nothing to say."""

_GLOBAL = {
    "--root": "The corpus's folder.",
    "--quiet": "Leave out remarks.",
    "--no-color": "No colours.",
    "--version": "Print the version.",
    "--help": "Show the help.",
}
_BREAKS_OF_BASH = re.compile(r"[=:<>]+")
FILTER = re.compile(r"(?P<field>[A-Za-z][\w-]*)(?P<operator>!=|<=|>=|[=<>~])(?P<value>.*)", re.DOTALL)


class Shell(StrEnum):
    """The shells that are answered here; Typer answers the others."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def answer(instruction: str, output: Output) -> int | None:
    """Write what can follow the words of a command line, in the form that a shell's script reads.

    Args:
        instruction: What the script asks for: `complete_` and the name of the shell.
        output: Where the answer goes.

    Returns:
        The exit code; None for a shell that Typer answers.
    """
    shell = next((one for one in Shell if instruction == f"complete_{one}"), None)
    if shell is None:
        return None
    before, word, hidden = _words(shell)
    try:
        offers = [one for one in offer(before, word, output.program) if one[0].lower().startswith(word.lower())]
    except CorpusError:  # a corpus that cannot be read has no names to offer; the command itself says why
        offers = []
    match shell:
        case Shell.BASH:
            output.write("".join(f"{value[hidden:]}\n" for value, _ in offers))
        case Shell.ZSH:
            items = "\n".join(f'"{_zsh(value)}"' + (f':"{_zsh(text)}"' if text else "") for value, text in offers)
            output.write(f"_arguments '*: :(({items}))'\n" if items else "_files\n")
        case Shell.FISH:
            if os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
                return ExitCode.DONE if offers else ExitCode.FINDINGS
            output.write("".join(f"{value}\t{text}\n" if text else f"{value}\n" for value, text in offers))
    return ExitCode.DONE


def _words(shell: Shell) -> tuple[list[str], str, int]:
    """The words behind the program's name, the one that is being written, and how much of that bash keeps itself."""
    if shell is not Shell.BASH:
        text = os.environ.get("_TYPER_COMPLETE_ARGS", "")
        words = [_unquoted(word) for word in re.findall(r"""(?:[^\s"'\\]|\\.|"[^"]*"?|'[^']*'?)+""", text)]
        return (words[1:-1], words[-1], 0) if words[1:] and not text[-1].isspace() else (words[1:], "", 0)
    # Bash takes words apart at = and :, and replaces what stands behind the last of them.
    number = os.environ.get("COMP_CWORD", "")
    pieces = os.environ.get("COMP_WORDS", "").split("\n")[1 : int(number) + 1 if number.isdecimal() else None]
    words, is_open = [""], True
    for piece in pieces:
        is_break = _BREAKS_OF_BASH.fullmatch(piece) is not None
        if is_open or is_break:
            words[-1] += piece
        else:
            words.append(piece)
        is_open = is_break
    last = max((match.end() for match in _BREAKS_OF_BASH.finditer(words[-1])), default=0)
    return [_unquoted(word) for word in words[:-1]], words[-1].lstrip("\"'"), last


def _unquoted(word: str) -> str:
    return re.sub(r"""["']|\\(?=.)""", "", word)


def _zsh(text: str) -> str:
    text = text.replace('"', '""').replace("'", "''").replace("$", "\\$").replace("`", "\\`")
    return text.replace(":", r"\\:")


class Place(NamedTuple):
    """Where in a command line a word is being written: behind which command, and in which corpus.

    `found` is what the command is; None where its forms say enough to import it only if need be.
    """

    found: Any
    command: Command | None
    words: Sequence[str]
    root: str


def offer(before: Sequence[str], word: str, program: str = CORPUS) -> Offers:
    """What can follow some words.

    Args:
        before: The whole words behind the program's name.
        word: What there is of the next one.
        program: The program's name: `corpus`, or `orchtrace` for its group `trace`.

    Raises:
        CorpusError: What is offered is in the corpus, which cannot be read.
    """
    place = place_of(before if program == CORPUS else ["trace", *before])
    if place is None:
        return
    if isinstance(place.found, CommandGroup):
        if word.startswith("-"):
            yield from _GLOBAL.items() if place.command is None or program != CORPUS else [("--help", "")]
        else:
            yield from ((name, one.help) for group in place.found.commands.values() for name, one in group.items())
        return
    rest = list(place.words)
    needs_options = any(one.startswith("-") for one in (*rest, word))
    known = list(parameters_of(place) if needs_options else arguments_of(place))
    options = {name: one for one in known for name in one.names}
    used: set[str] = set()
    bare = 0
    while rest:
        name, equals, _ = rest.pop(0).partition("=")
        option = options.get(name)
        used.add(option.name if option and not option.is_many else "")
        if option is not None and not equals:
            if len(rest) < option.word_count:
                yield from _values(option, word, place)
                return
            del rest[: option.word_count]
        bare += not name.startswith("-")
    name, equals, value = word.partition("=")
    if name in options and equals:
        yield from ((f"{name}={found}", text) for found, text in _values(options[name], value, place))
    elif word.startswith("-"):
        yield from ((n, _text(one)) for n, one in options.items() if n.startswith("--") and one.name not in used)
        yield "--help", "Show the help."
    else:
        arguments = [one for one in known if not one.names]
        number = min(bare, len(arguments) - 1)
        if arguments and (bare == number or arguments[number].is_many):
            yield from _values(arguments[number], word, place)


def place_of(before: Sequence[str]) -> Place | None:
    """The command of a line; None where the word that is written is the folder of a global option."""
    commands: CommandTable = COMMANDS
    found: Any = CommandGroup(commands, lambda: None)
    command, root, rest = None, "", list(before)
    while rest and isinstance(found, CommandGroup):
        word = rest.pop(0)
        if word == "--root":
            if not rest:
                return None
            root = rest.pop(0)
        elif not word.startswith("-"):
            command = find_command(found.commands, word)
            if command is None:
                return None
            found = None if command.forms else command.find()
    return Place(found, command, rest, root)


def arguments_of(place: Place) -> Iterator[Parameter]:
    """What a command takes if there are no options: by the forms in the table, where they are there."""
    if place.command is None or not place.command.forms:
        yield from parameters_of(place)
        return
    for form in place.command.forms.split():
        yield Parameter(form, (), str, 1, form.endswith("..."), True, {"metavar": form})


def parameters_of(place: Place) -> Iterator[Parameter]:
    """What a command takes, as it declares it, or as Typer has it of the corpus's own taxonomy."""
    declared = parameters(place.found) if isinstance(place.found, FunctionType) else None
    if declared is not None:
        yield from declared
        return
    from orchtrace_corpus.base.commands.lazy import load
    from orchtrace_corpus.base.commands.session import Session

    assert place.command is not None
    command = load(place.command)
    context = command.make_context("", [], resilient_parsing=True, obj=Session(Output(), place.root))
    for one in command.get_params(context):
        names = tuple(one.opts) if one.param_type_name == "option" else ()
        count = 0 if getattr(one, "is_flag", False) else max(one.nargs, 1)
        choices = getattr(one.type, "choices", ())
        settings = {"metavar": one.metavar or "", "help": getattr(one, "help", "") or "", "choices": choices}
        yield Parameter(one.name, names, str, count, one.multiple or one.nargs < 0, one.required, settings)


def _text(parameter: Parameter) -> str:
    return str(parameter.settings.get("help", "")).partition(" [")[0]


def _values(parameter: Parameter, word: str, place: Place) -> Offers:
    """What a parameter can be given, by its type, else by the form of its value."""
    if isinstance(parameter.kind, type) and issubclass(parameter.kind, StrEnum):
        yield from ((value.value, "") for value in parameter.kind)
        return
    yield from ((str(getattr(value, "value", value)), "") for value in parameter.settings.get("choices", ()))
    form = form_of(parameter)
    if form == "KEY" and parameter.names:  # of a record that is new
        return
    offers = _OFFERS.get(form)
    if offers is not None:
        yield from offers(word, place)
    elif form.startswith(("TERM", "LEVEL")):
        yield from _terms_of(parameter.names[0].lstrip("-").replace("-", "_").removeprefix("evidence_"), place)


def form_of(parameter: Parameter) -> str:
    """The form of a parameter's value, as its help shows it, without brackets and dots."""
    return re.sub(r"[\[\].]", "", str(parameter.settings.get("metavar") or "")).strip()


def _attributes(place: Place, *, is_filter: bool = False) -> Mapping[str, Any]:
    """What can be counted, papers and exclusions alike; or what the records can be filtered by."""
    from orchtrace_corpus.base.commands.session import Session
    from orchtrace_corpus.corpus.analysis.attributes import exclusion_attributes, paper_attributes
    from orchtrace_corpus.corpus.cli.session import CorpusSession

    output = Output()
    output.quiet = True
    taxonomy = CorpusSession(*Session(output, place.root)).taxonomy()
    if is_filter:
        excluded = "--exclusions" in place.words
        return exclusion_attributes(taxonomy) if excluded else paper_attributes(taxonomy, marked=True)
    return {**exclusion_attributes(taxonomy), **paper_attributes(taxonomy, marked=True)}


def _fields(word: str, place: Place) -> Offers:
    """The fields by name, and the codes of terms with levels; those behind the last comma of a list."""
    head = word[: word.rfind(",") + 1]
    yield from ((f"{head}{name}", one.label) for name, one in _named(_attributes(place)))


def _vocabularies(_word: str, place: Place) -> Offers:
    yield from ((name, one.label) for name, one in _named(_attributes(place)) if one.terms)


def _named(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from attributes.items()
    facets = (one.facet for one in attributes.values() if one.facet is not None and one.facet.levels)
    yield from ((term.code, attributes[term.id]) for facet in facets for term in facet.terms if term.code)


def _filters(word: str, place: Place) -> Offers:
    """Fields, and the values of one as soon as it is the only one."""
    from orchtrace_corpus.corpus.analysis.attributes import find

    attributes = _attributes(place, is_filter=True)
    match = FILTER.match(word)
    if match is None:
        near = [name for name in attributes if name.startswith(word)]
        if len(near) != 1:
            yield from ((name, attributes[name].label) for name in near)
            return
        match = FILTER.match(f"{near[0]}=")
        assert match is not None
        if not attributes[near[0]].terms:
            yield from ((f"{near[0]}{operator}", "") for operator in ("=", "!=", "~"))
    attribute = find(match["field"], attributes)
    head = match["field"] + match["operator"] + match["value"][: match["value"].rfind(",") + 1]
    for term in attribute.terms:
        yield f"{head}{term.id}", term.label
        if term.code and match["value"]:
            yield f"{head}{term.code}", term.label


def _terms_of(name: str, place: Place) -> Offers:
    attribute = _attributes(place).get(name)
    yield from ((term.id, term.label) for term in (attribute.terms if attribute else ()))


def _keys(_word: str, place: Place) -> Offers:
    """The names of all records, found without reading the files as YAML."""
    from orchtrace_corpus.corpus.model import store

    root = place.root or store.find_root().path
    for name in (store.PAPERS, store.EXCLUSIONS, store.CANDIDATES):
        path = os.path.join(root, name)
        if os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                found = re.findall(r"^- (?:key|id): [\"']?([\w-]+)", file.read(), re.MULTILINE)
            yield from ((key, "") for key in found)


def claim_ids(root: str) -> Offers:
    """The ids of the claims of a corpus, found without reading the file as YAML."""
    from orchtrace_corpus.corpus.model import store

    path = os.path.join(root, store.CLAIMS)
    if os.path.isfile(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            yield from ((name, "") for name in re.findall(r"^- id: ([\w-]+)", file.read(), re.MULTILINE))


def _ids(word: str, place: Place) -> Offers:
    """Claims, for the command about them; else exclusions, which are promoted."""
    from orchtrace_corpus.corpus.model import store

    if place.command is not None and place.command.place.endswith(":claims"):
        yield from claim_ids(place.root or store.find_root().path)
    else:
        yield from ((key, text) for key, text in _keys(word, place) if re.fullmatch(r"E\d+", key))


def _codes(_word: str, _: Place) -> Offers:
    import orchtrace_corpus.base.yamlfile  # noqa: F401  # registers its rules
    from orchtrace_corpus.base.findings import RULES

    yield from ((code, rule.title) for code, rule in RULES.items())


def _formats(_word: str, _: Place) -> Offers:
    from orchtrace_corpus.corpus.formats.registry import FORMATS

    yield from ((name, one.label) for name, one in FORMATS.items())


_OFFERS: dict[str, Callable[[str, Place], Offers]] = {
    **dict.fromkeys(("FIELD", "FIELD FIELD", "A B", "A,B,", "COLUMN"), _fields),
    **dict.fromkeys(("ROWS", "COLUMNS"), _vocabularies),
    **dict.fromkeys(("FILTER", "FIELD=VALUE"), _filters),
    **dict.fromkeys(("KEY", "ID_OR_URL"), _keys),
    "ID": _ids,
    "CODE": _codes,
    **dict.fromkeys(("FORMAT", "FORMAT|FILE"), _formats),
}
"""What is offered for a value, by the form that a command declares for it."""
