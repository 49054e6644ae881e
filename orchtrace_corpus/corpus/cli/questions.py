"""Asks somebody at a terminal for what is missing of a record, with the taxonomy's definitions at hand.

Questions go to standard error. Ctrl-C and the end of the input stop the command; nothing is written
before the last answer.
"""

import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

import typer

from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.errors import CommandUseError, ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import wrap
from orchtrace_corpus.corpus.cli.facets import format_tag
from orchtrace_corpus.corpus.model.author_names import typed
from orchtrace_corpus.corpus.model.decoders import url_problem
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE, is_key
from orchtrace_corpus.corpus.model.records import Tag
from orchtrace_corpus.corpus.model.tagging import in_order, read_level, read_tag
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Term

Answer = TypeVar("Answer")

_HELP = "?"
_GLUE = "\0"  # a blank at which no line is broken


def can_ask() -> bool:
    """Whether somebody is there to answer: standard input and standard error are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


class Questions:
    """Asks one question after the other.

    Attributes:
        answers: The answers so far, by what they are about: each with the option, such as `--title`, or
            the field of the facet that it is for, in the words of a command line.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self.answers: dict[str, list[tuple[str, str]]] = {}

    def begin(self, name: str) -> None:
        """Take what follows as answers about something, by what it is called."""
        self.answers.setdefault(name, [])

    def _note(self, name: str, value: str) -> None:
        if self.answers and value:
            self.answers[next(reversed(self.answers))].append((name, value))

    def say(self, text: str) -> None:
        """Say something on lines that fit the terminal."""
        for line in text.splitlines():
            indent = " " * (len(line) - len(line.lstrip()))
            for part in wrap(line, shutil.get_terminal_size().columns - 1, first=indent, rest=indent):
                self._output.tell(part.replace(_GLUE, " "))

    def ask(
        self,
        prompt: str,
        option: str,
        read: Callable[[str], Answer],
        proposal: str = "",
        *,
        keeps_proposal: bool = False,
    ) -> Answer:
        """Ask for what an option would give, until the answer can be read; an empty one takes the proposal.

        Args:
            prompt: The question.
            option: The option, such as `--title`.
            read: Reads the answer; raises `CommandUseError` for one that is wrong.
            proposal: What is taken for an empty answer.
            keeps_proposal: Whether the proposal, where it is taken, counts as an answer to give again.
        """

        def keep(answer: str) -> Answer:
            value = read(answer or proposal)
            self._note(option, answer or (proposal if keeps_proposal else ""))
            return value

        return self._ask(f"{prompt}{f' [{printable(proposal)}]' if proposal else ''}: ", keep)

    def tag(self, facet: Facet, *, is_evidence: bool = False) -> Tag | None:
        """Ask for the tag of a facet, of papers or of evidence; None where it may be, and is, left out."""
        self.say(f"\n{facet.label}: {facet.definition}")
        tag = self._levels(facet) if facet.kind is Kind.LEVELS else self._term(facet)
        if tag is not None:
            self._note(f"evidence_{facet.field}" if is_evidence else facet.field, format_tag(tag))
        return tag

    def _term(self, facet: Facet) -> Tag | None:
        names = [term.id for term in facet.terms] + ([NOT_APPLICABLE] if facet.allows_na else [])
        self.say(_numbered(names))
        proposal = "" if facet.required else "none"  # that a field does not apply is for somebody to say

        def read(answer: str) -> Tag | None:
            if not answer and not proposal:
                raise CommandUseError("An answer is needed here: a number or a name.")
            return read_tag(facet, _spelled(answer, names)) if answer else None

        several = ", several with commas" if facet.kind is Kind.MANY else ""
        prompt = f"{facet.field}{several}{f' [{proposal}]' if proposal else ''}, {_HELP} explains: "
        return self._ask(prompt, read, facet.terms)

    def _levels(self, facet: Facet) -> Tag:
        names = [level.id for level in facet.levels]
        self.say(_numbered(names))
        levels = {}
        for term in facet.terms:

            def read(answer: str) -> str:
                return read_level(facet, _spelled(answer, names)) if answer else ""

            code = f" ({term.code})" if term.code else ""
            prompt = f"  {term.id}{code} [does not arise], {_HELP} explains: "
            level = self._ask(prompt, read, (term, *facet.levels))
            if level:
                levels[term.id] = level
        return in_order(facet, levels)

    def _ask(self, prompt: str, read: Callable[[str], Answer], explained: Sequence[Term] = ()) -> Answer:
        """Ask until the answer can be read; `?` explains terms."""
        while True:
            answer = self._line(prompt)
            if answer == _HELP and explained:
                for term in explained:
                    self.say(f"  {term.id}: {term.definition}")
                continue
            try:
                return read(answer)
            except CommandUseError as error:
                self.say(str(error))

    def _line(self, prompt: str) -> str:
        """A line that somebody typed, without what does not print.

        Raises:
            typer.Exit: The input has ended.
        """
        self._output.prompt(prompt)
        line = sys.stdin.buffer.readline().decode(sys.stdin.encoding or "utf-8", "replace")
        if not line:
            raise typer.Exit(ExitCode.INTERRUPTED)
        return " ".join("".join(c for c in line if c.isprintable() or c.isspace()).split())


def read_text(answer: str) -> str:
    """A text that is not empty; like those below, it raises `CommandUseError` for an answer that is wrong."""
    if not answer:
        raise CommandUseError("An answer is needed here; Ctrl-C stops without writing anything.")
    return answer


def read_address(answer: str) -> str:
    """A web address."""
    if problem := url_problem(answer):
        raise CommandUseError(f"This {problem}.")
    return answer


def read_authors(answer: str) -> tuple[str, ...]:
    """A list of authors."""
    return typed(read_text(answer if typed(answer) else ""))


def read_year(answer: str) -> int:
    """A year."""
    if len(answer) == 4 and answer.isascii() and answer.isdigit():
        return int(answer)
    raise CommandUseError("Write four digits.")


def read_key(taken: Collection[str], answer: str) -> str:
    """A key that is not taken."""
    if answer in taken:
        raise CommandUseError(f"{answer} is the key of another paper.")
    if not is_key(answer):
        raise CommandUseError("Use lower-case letters, digits and single hyphens.")
    return answer


def _numbered(names: Iterable[str]) -> str:
    return "  " + " ".join(f"{number}{_GLUE}{name}" for number, name in enumerate(names, 1))


def _spelled(answer: str, names: Sequence[str]) -> str:
    """The answer with numbers replaced by the names that they stand for."""
    numbers = {str(number): name for number, name in enumerate(names, 1)}
    parts = (part.strip() for part in answer.split(","))
    return ",".join(part if part in names else numbers.get(part.lstrip("0"), part) for part in parts)
