"""Asks somebody at a terminal for what is missing of a record, with the taxonomy's definitions at hand.

Questions go to standard error. Ctrl-C and the end of the input stop the command; nothing is written
before the last answer.
"""

import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import wrap
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.cli.facets import format_tag
from orchtrace_corpus.corpus.intake.drafts import Details, Draft
from orchtrace_corpus.corpus.intake.papers import PREPRINT, propose_key, unmet_demands
from orchtrace_corpus.corpus.model.author_names import typed
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.field_table import FieldValue, RecordField, field_label
from orchtrace_corpus.corpus.model.fields import is_key, url_problem
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Tag
from orchtrace_corpus.corpus.model.tagging import NO_TERM, arising, in_order, read_level, read_tag, read_value, sentence
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, Term

Answer = TypeVar("Answer")

_HELP = "?"
_GLUE = "\0"  # a blank at which no line is broken


def can_ask() -> bool:
    """Return True if standard input and standard error are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


class _BackError(Exception):
    """Somebody asks for the question before."""


class Questions:
    """Asks one question after the other.

    Attributes:
        answers: The answers so far, by what they are about: each with the option, such as `--title`, or
            the field of the facet that it is for, in the words of a command line.
    """

    def __init__(self, output: Output, taxonomy: Taxonomy) -> None:
        self._output = output
        self._taxonomy = taxonomy
        self.answers: dict[str, list[tuple[str, str]]] = {}
        self._kept: list[str] | None = None
        self._again: list[str] = []

    def with_way_back(self, ask: Callable[[], Answer]) -> Answer:
        """Return the answers to questions, of which `b` asks the previous one again."""
        self._say(
            "Enter leaves open what is [open]; b goes back to the question before; Ctrl-C stops, with this undecided"
        )
        while True:
            self._kept = kept = list[str]()
            try:
                return ask()
            except _BackError:
                if not kept:
                    raise CommandUseError("that was the first question") from None
                self._again = kept[:-1]

    def _note(self, name: str, value: str) -> None:
        if self.answers and value:
            self.answers[next(reversed(self.answers))].append((name, value))

    def _say(self, text: str) -> None:
        """Say something on lines that fit the terminal."""
        for line in text.splitlines() if not self._again else ():
            indent = " " * (len(line) - len(line.lstrip()))
            for part in wrap(line, shutil.get_terminal_size().columns - 1, first=indent, rest=indent):
                self._output.tell(part.replace(_GLUE, " "))

    def _option(
        self,
        prompt: str,
        option: str,
        read: Callable[[str], Answer],
        proposal: str = "",
        *,
        keeps_proposal: bool = False,
    ) -> Answer:
        """Ask for what an option would give; an empty answer takes the proposal, which may count as an answer."""

        def keep(answer: str) -> Answer:
            value = read(answer or proposal)
            self._note(option, answer or (proposal if keeps_proposal else ""))
            return value

        return self._ask(f"{prompt}{f' [{printable(proposal)}]' if proposal else ''}: ", keep)

    def complete_draft(self, details: Details, draft: Draft, taken: Collection[str]) -> Draft:
        """Ask for everything that a draft lacks, with a key that is not taken.

        A paper on arXiv may have been published elsewhere since, so its venue is asked for, too.
        """
        paper = draft.paper
        authors = "; ".join(paper.authors[:3]) + (" ..." if len(paper.authors) > 3 else "")
        self._begin(draft.name, paper.title, authors, str(paper.year or ""), paper.venue, next(iter(paper.urls), ""))
        venue = paper.venue
        paper = paper._replace(
            title=paper.title or self._option("Title", "--title", _read_text),
        )
        optional = self._taxonomy.optional
        if not paper.authors and "authors" not in optional:
            names = self._option("Authors, as Family, Given; Family, Given", "--authors", _read_authors)
            paper = paper._replace(authors=names)
        if not paper.year and "year" not in optional:
            paper = paper._replace(year=self._option("Year", "--year", _read_year))
        if not details.venue and venue in ("", PREPRINT) and "venue" not in optional:
            venue = self._option("Venue, such as NeurIPS 2025", "--venue", _read_text, venue)
        paper = paper._replace(
            venue=venue,
            urls=paper.urls or (self._option("Address", "--url", _read_address),),
            more={**paper.more, **self._values(paper)},
            tags=self._tags(self._taxonomy.papers, paper.tags, draft.awaiting),
            summary=paper.summary
            or self._option("Summary, one sentence of your own [leave out]", "--summary", sentence),
        )
        draft = self._evidence(draft._replace(paper=paper).with_readings(self._taxonomy))
        if details.key:
            return draft
        key = self._option(
            "Key", "--key", partial(_read_key, taken), propose_key(draft.paper, taken), keeps_proposal=True
        )
        return draft._replace(paper=draft.paper._replace(key=key))

    def complete_exclusion(self, name: str, exclusion: Exclusion) -> Exclusion:
        """Ask for everything that an exclusion lacks."""
        self._begin(name, exclusion.id, exclusion.title, exclusion.url)
        return exclusion._replace(
            title=exclusion.title or self._option("Title", "--title", _read_text),
            url=exclusion.url or self._option("Address", "--url", _read_address),
            tags=self._tags(self._taxonomy.exclusions, exclusion.tags),
            reason=exclusion.reason
            or self._option("Reason, in one sentence", "--reason", lambda text: sentence(_read_text(text))),
        )

    def _values(self, paper: Paper) -> dict[str, FieldValue]:
        """Ask for the survey's own fields that a paper lacks; one that is optional may be left out."""
        values: dict[str, FieldValue] = {}
        for field in self._taxonomy.fields:
            if field.name in paper.more:
                continue
            self._say(f"\n{field_label(field)}: {field.help}")
            if field.choices:
                self._say(numbered(field.choices))

            def read(answer: str, field: RecordField = field) -> FieldValue | None:
                if not answer and field.required:
                    raise CommandUseError("An answer is needed here.")
                return (
                    read_value(field, spelled(answer, field.choices) if field.choices else answer) if answer else None
                )

            prompt = f"{field.name}{'' if field.required else ' [leave out]'}"
            value = self._option(prompt, f"--{field.name.replace('_', '-')}", read)
            if value is not None:
                values[field.name] = value
        return values

    def _begin(self, name: str, *texts: str) -> None:
        """Take what follows as answers about something, by what it is called, and show what is known of it."""
        self.answers.setdefault(name, [])
        self._say("\n" + "\n".join(printable(text, limit=300) for text in texts if text))

    def _tags(
        self,
        facets: Sequence[Facet],
        tags: Mapping[str, Tag],
        awaiting: Candidate | None = None,
        *,
        is_evidence: bool = False,
    ) -> dict[str, Tag]:
        """The tags with answers for every facet that has none; of a candidate, for what of it is open."""
        answers = {
            facet.field: tags[facet.field]
            if facet.field in tags
            else self._tag(facet, awaiting, is_evidence=is_evidence)
            for facet in facets
        }
        if not is_evidence:
            self._say("")
        return {field: tag for field, tag in answers.items() if tag is not None}

    def _evidence(self, draft: Draft) -> Draft:
        """The draft with an item of evidence, if there is one."""
        note, source = draft.note, draft.source
        if not note:
            demands = unmet_demands(draft.paper, self._taxonomy)
            for rule in demands:
                self._say(rule.message)
            enter = "" if demands else ", or Enter"
            prompt = f"Evidence: what in the source supports the tags{enter}"
            note = self._option(prompt, "--evidence", _read_text if demands else str)
            if not note:
                return draft._replace(source="", facets={})
            source = self._option(
                "Source of the evidence", "--evidence-source", _read_address, source, keeps_proposal=True
            )
        facets = self._tags(self._taxonomy.evidence, draft.facets, is_evidence=True)
        return draft._replace(note=note, source=source, facets=facets)

    def _tag(self, facet: Facet, awaiting: Candidate | None = None, *, is_evidence: bool = False) -> Tag | None:
        """Ask for the tag of a facet, of papers or of evidence; None where it may be, and is, left out."""
        self._say(f"\n{facet.label}: {facet.definition}")
        self._say_readings(awaiting, (facet.field, *(term.id for term in facet.terms)))
        tag = self._levels(facet, awaiting) if facet.kind is Kind.LEVELS else self._term(facet)
        if tag is not None:
            self._note(f"evidence_{facet.field}" if is_evidence else facet.field, format_tag(tag))
        if isinstance(tag, Mapping):
            settled = awaiting.settled_levels(facet) if awaiting else {}
            return arising(in_order(facet, {**settled, **tag}))
        return tag

    def _say_readings(self, awaiting: Candidate | None, tags: Iterable[str]) -> None:
        """Say who reads what of some tags."""
        for reading in awaiting.readings if awaiting else ():
            if read := [f"{tag} {reading.tags[tag]}" for tag in tags if tag in reading.tags]:
                self._say(f"  {reading.by} reads {', '.join(read)}")

    def _term(self, facet: Facet) -> Tag | None:
        names = [term.id for term in facet.terms] + ([NOT_APPLICABLE] if facet.allows_na else [])
        self._say(numbered(names))
        proposal = "" if facet.required else "leave out"  # that a field does not apply is for somebody to say

        def read(answer: str) -> Tag | None:
            if not answer and not proposal:
                raise CommandUseError("An answer is needed here: a number or a name.")
            return read_tag(facet, spelled(answer, names)) if answer else None

        several = ", several with commas" if facet.kind is Kind.MANY else ""
        prompt = f"{facet.field}{several}{f' [{proposal}]' if proposal else ''}, {_HELP} explains: "
        return self._ask(prompt, read, facet.terms)

    def _levels(self, facet: Facet, awaiting: Candidate | None) -> dict[str, str]:
        """The levels that are answered; of a candidate for what is open, which takes an answer where it was read."""
        names = [*(level.id for level in facet.levels), NO_TERM]
        self._say(numbered(names))
        levels = {}
        for term in (term for term in facet.terms if awaiting is None or awaiting.is_open(term.id)):
            is_read = awaiting is not None and bool(awaiting.readers_of(term.id))

            def read(answer: str, is_read: bool = is_read) -> str:
                if is_read and not answer:
                    raise CommandUseError(f"Readers have read it, so an answer is needed: a level, or {NO_TERM}.")
                return read_level(facet, spelled(answer, names)) if answer else ""

            code = f" ({term.code})" if term.code else ""
            proposal = "" if is_read else " [does not arise]"
            level = self._ask(f"  {term.id}{code}{proposal}, {_HELP} explains: ", read, (term, *facet.levels))
            if level or awaiting is not None:
                levels[term.id] = level or NO_TERM
        return levels

    def _ask(self, prompt: str, read: Callable[[str], Answer], explained: Sequence[Term] = ()) -> Answer:
        """Ask until the answer can be read; `?` explains terms."""
        while True:
            answer = self._again.pop(0) if self._again else self._line(prompt)
            if answer == "b" and self._kept is not None:
                raise _BackError
            if answer == _HELP and explained:
                for term in explained:
                    self._say(f"  {term.id}: {term.definition}")
                continue
            try:
                value = read(answer)
            except CommandUseError as error:
                self._say(str(error))
            else:
                if self._kept is not None:
                    self._kept.append(answer)
                return value

    def _line(self, prompt: str) -> str:
        """A line that somebody typed, without what does not print; the end of the input ends the command."""
        self._output.prompt(prompt)
        line = sys.stdin.buffer.readline().decode(sys.stdin.encoding or "utf-8", "replace")
        if not line:
            raise KeyboardInterrupt
        return " ".join("".join(c for c in line if c.isprintable() or c.isspace()).split())


def _read_text(answer: str) -> str:
    if not answer:
        raise CommandUseError("An answer is needed here; Ctrl-C stops without writing anything.")
    return answer


def _read_address(answer: str) -> str:
    if problem := url_problem(answer):
        raise CommandUseError(f"This {problem}.")
    return answer


def _read_authors(answer: str) -> tuple[str, ...]:
    return typed(_read_text(answer if typed(answer) else ""))


def _read_year(answer: str) -> int:
    if len(answer) == 4 and answer.isascii() and answer.isdigit():
        return int(answer)
    raise CommandUseError("Write four digits.")


def _read_key(taken: Collection[str], answer: str) -> str:
    if answer in taken:
        raise CommandUseError(f"{answer} is the key of another paper.")
    if not is_key(answer):
        raise CommandUseError("Use lower-case letters, digits and single hyphens.")
    return answer


def numbered(names: Iterable[str]) -> str:
    """Names with the numbers that stand for them, on one line."""
    return "  " + " ".join(f"{position}{_GLUE}{name}" for position, name in enumerate(names, 1))


def spelled(answer: str, names: Sequence[str]) -> str:
    """The answer with numbers replaced by the names that they stand for."""
    numbers = {str(position): name for position, name in enumerate(names, 1)}
    parts = (part.strip() for part in answer.split(","))
    return ",".join(part if part in names else numbers.get(part.lstrip("0"), part) for part in parts)
