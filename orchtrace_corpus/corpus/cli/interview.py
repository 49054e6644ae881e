"""A paper's way from its name to the edit: look it up, ask for what is missing, write, show what was done.

Questions go to standard error, with the taxonomy's definitions at hand. Ctrl-C and the end of the input stop the
command; nothing is written before the last answer. Where a command ends before it writes, the answers are given back as
a command line.
"""

import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from orchtrace_corpus.base.budget import MAX_EDIT_TRIES
from orchtrace_corpus.base.commands import progress
from orchtrace_corpus.base.commands.declarations import CommandSpec, Context
from orchtrace_corpus.base.commands.options import refuse_together
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.errors import CommandUseError, CorpusError, ExitCode
from orchtrace_corpus.base.files import ChangedError
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import wrap
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.matching import Match, Sign
from orchtrace_corpus.corpus.cli.facets import (
    IntakeOptions,
    TagProblem,
    format_tag,
    option_name,
    option_words,
    refuse_all,
    values_of,
)
from orchtrace_corpus.corpus.cli.outcome import apply
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.proposal import Proposal, load_editable
from orchtrace_corpus.corpus.intake import drafts
from orchtrace_corpus.corpus.intake.drafts import Coding, Details, Draft, Gap
from orchtrace_corpus.corpus.intake.lookup import PaperRequest, Service, resolve
from orchtrace_corpus.corpus.intake.papers import PREPRINT, describe_match, propose_key, unmet_demands
from orchtrace_corpus.corpus.model.author_names import typed
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.field_table import FieldValue, RecordField, field_label
from orchtrace_corpus.corpus.model.fields import is_key, url_problem
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, Tag
from orchtrace_corpus.corpus.model.store import CorpusFiles
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


class Interview:
    """One run of a command that records papers.

    Attributes:
        session: Where the output goes.
        corpus: The corpus that is edited.
        problems: What is wrong with the words of the command; it is reported with what is missing.
        repeat: Makes the edit again, without asking, for a corpus that others have changed meanwhile; None where the
            edit depends on what was there.
    """

    def __init__(self, ctx: Context, options: IntakeOptions) -> None:
        refuse_together(no_fetch=options.no_fetch, offline=options.offline, refresh=options.refresh)
        self.session = CorpusSession(*ctx.obj)
        self.corpus = load_editable(self.session.writable_root())
        self._ctx = ctx
        self._options = options
        self._calls: dict[str, Sequence[str]] = {}
        self.problems: list[TagProblem] = []
        self.repeat: Callable[[CorpusFiles], Proposal] | None = None
        asks = can_ask() and not options.yes
        self._questions = Questions(self.session.output, self.corpus.pool.taxonomy) if asks else None

    def take_in(
        self,
        candidates: Sequence[PaperRequest],
        pool: Pool,
        details: Details,
        propose: Callable[[Sequence[PaperRequest]], Proposal],
        *,
        no_fetch: bool = False,
    ) -> int:
        """Look papers up, and finish with those that are not refused; return the exit code.

        Args:
            candidates: The papers.
            pool: The corpus that may know them already.
            details: What was said of them.
            propose: Makes the edit of those that are not refused, and asks the questions.
            no_fetch: Whether no service is asked, whatever the options say.
        """
        options, output = self._options, self.session.output
        no_fetch = no_fetch or options.no_fetch or bool(self.problems)
        self._questions = None if self.problems else self._questions
        resolved, messages = resolve(
            candidates,
            pool,
            details.describe,
            Service(no_fetch, options.offline, options.refresh, options.arxiv_url),
            despite_title=options.despite_title,
            show_progress=partial(progress.shown, output),
        )
        for text in messages:
            output.tell(f"corpus: {printable(text, limit=300)}")
        if self._questions and len(resolved) == 1 and resolved[0].code is ExitCode.UPSTREAM:
            (request,) = resolved
            output.tell(
                f"corpus: {printable(request.name)} could not be looked up: {request.problem}; you are asked instead"
            )
            resolved = [request.refuse("", ExitCode.DONE)]
        done = "excluded" if self._ctx.spec.name == "exclude" else "added"
        for request in resolved:
            why = request.problem
            if request.match:
                known = describe_match(request.match, pool.taxonomy.noun.one).rstrip(".")
                why = f"{known}; {self._advise(request.match)}"
            if request.is_refused:
                output.tell(f"corpus: {printable(request.name)} was not {done}: {why}")
            for remark in request.remarks:
                output.note(f"corpus: {printable(request.name)}: {remark}")
        new = [request for request in resolved if not request.is_refused]
        code = max(request.code for request in resolved)
        self._calls = {request.name: request.words or (request.name,) for request in new}
        if self.problems:
            refuse_all([*(problem.error for problem in self.problems), *self._missing(new, propose)])
        if unknown := [request for request in resolved if request.code is ExitCode.UPSTREAM]:
            gaps = [f", and give what is missing:\n{error.hint}" for error in self._missing(unknown, propose)]
            output.tell(f"To do without the service, add --no-fetch{''.join(gaps)}")
        outcome = self.finish(partial(propose, new)) if new else ExitCode.DONE
        if len(resolved) > 1 and outcome == ExitCode.DONE and not options.dry_run:
            matched = sum(request.match is not None for request in resolved)
            counts = ((len(new), done), (matched, "already known"), (len(resolved) - len(new) - matched, f"not {done}"))
            output.note(", ".join(f"{count} {what}" for count, what in counts if count))
        return max(code, outcome)

    def _missing(
        self, papers: Sequence[PaperRequest], propose: Callable[[Sequence[PaperRequest]], Proposal]
    ) -> list[CommandUseError]:
        """Return the refusal of papers by what is missing of them, without a question; nothing if nothing is."""
        asked, self._questions = self._questions, None
        try:
            if papers:
                propose(papers)
        except CommandUseError as error:
            return [error]
        finally:
            self._questions = asked
        return []

    def complete_papers(self, candidates: Sequence[PaperRequest], details: Details, coding: Coding) -> list[Paper]:
        """The candidates as records that lack nothing.

        Raises:
            CommandUseError: Something is missing, and nobody is to be asked; the message names all of it.
        """
        ask = partial(self._questions.complete_draft, details) if self._questions else None
        papers, gaps = drafts.complete_papers(candidates, details, coding, self.corpus.pool, ask)
        _refuse_gaps(self._ctx.spec, {name: left for name, missing in gaps.items() if (left := self._certain(missing))})
        return papers

    def complete_exclusion(self, name: str, paper: Paper, said: Exclusion) -> Exclusion:
        """A paper, by what it was called, as an exclusion that lacks nothing; errors as for `complete_papers`."""
        ask = partial(self._questions.complete_exclusion, name) if self._questions else None
        exclusion, gaps = drafts.complete_exclusion(paper, self.corpus, said, ask)
        left = self._certain(gaps)
        _refuse_gaps(self._ctx.spec, {name: left} if left else {})
        return exclusion

    def _certain(self, gaps: Sequence[Gap]) -> Sequence[Gap]:
        """Return the gaps that remain whatever a service would say, and however what is wrong would be mended."""
        if not self.problems:
            return gaps
        wrong, is_asked = {problem.field for problem in self.problems}, not self._options.no_fetch
        given = [
            gap for gap in gaps if wrong.isdisjoint((*gap.depends_on, gap.facet.field if gap.facet else gap.field))
        ]
        return [gap for gap in given if not (is_asked and gap.field in ("title", "authors", "year", "venue", "url"))]

    def finish(self, propose: Callable[[], Proposal]) -> int:
        """Make an edit, which asks for what is missing; write it, and show what was done; return the exit code."""
        try:
            proposal = propose()
            code = self._apply(proposal)
        except (KeyboardInterrupt, CorpusError) as error:
            if not isinstance(error, CorpusError) and self._questions and any(self._questions.answers.values()):
                self.session.output.tell("")  # behind the question that was not answered
            self._show_answers()
            raise
        if code == ExitCode.DONE and not self._options.dry_run:
            for line in _summarise(proposal):
                self.session.output.note(line)
        else:
            self._show_answers()
        return code

    def _apply(self, proposal: Proposal) -> int:
        """Write an edit; where others have changed a file meanwhile, make it again from what is there now."""
        for _ in range(MAX_EDIT_TRIES - 1 if self.repeat else 0):
            try:
                return apply(self.session, self.corpus, proposal, dry_run=self._options.dry_run)
            except ChangedError:
                self.corpus = load_editable(self.corpus.root)
                assert self.repeat is not None
                proposal = self.repeat(self.corpus)
        return apply(self.session, self.corpus, proposal, dry_run=self._options.dry_run)

    def _advise(self, match: Match) -> str:
        """Return what to do about a known paper instead of the command."""
        command, record = self._ctx.spec.name, match.record
        despite = "if it is another work, add --despite-title; " if match.sign is Sign.TITLE else ""
        if command == "exclude" and isinstance(record, Paper):
            return f"{despite}to take it out of the pool: corpus exclude {record.key}"
        if command != "add" or isinstance(record, Paper):
            return f"{despite}see corpus show {record.name}"
        if record.promoted_to:
            return f"{despite}see corpus show {record.promoted_to}"
        return f"{despite}to take it in after all: corpus add {record.id}"

    def _show_answers(self) -> None:
        """Show the command lines that give the answers again; nothing where there are none."""
        ctx, root = self._ctx, self.session.root
        for name, answers in self._questions.answers.items() if self._questions else ():
            called = [ctx.given["name"]] if "name" in ctx.given else self._calls[name]
            call = [] if ctx.given.get("issue") else list(called)
            words: list[str] = []
            for field, value in answers:
                if field == "--url" and call[:1] == ["--no-fetch"]:  # an entry of a file that nothing else names
                    call.insert(0, value)
                else:
                    words += option_words(ctx, field, value)
            if answers:
                head = ("corpus", *(("--root", root) if root else ()), ctx.spec.name)
                line = shlex.join((*head, *call, *_given_options(ctx), *words))
                self.session.output.tell(f"Your answers, to try again: {printable(line, limit=20_000)}")


def _summarise(proposal: Proposal) -> Iterator[str]:
    """Yield a line about each record that was written."""
    before = next(iter((*proposal.removed, *proposal.changed)), None)
    for record in proposal.added or proposal.changed:
        if isinstance(record, Paper):
            head = f"{proposal.promoted[record.key]} became" if record.key in proposal.promoted else "added"
            yield f"{head} {record.key}: {printable(record.title)}"
        elif isinstance(before, Paper):
            yield f"{before.key} is excluded as {record.id}: {printable(before.title)}"
        else:
            yield f"excluded as {record.id}: {printable(record.title)}"


def _refuse_gaps(spec: CommandSpec, gaps: Mapping[str, Sequence[Gap]]) -> None:
    """Refuse records that lack something, by what they are called, with every option that is missing."""
    if not gaps:
        return
    forms = {name: parameter.form for parameter in spec.parameters for name in parameter.names}
    lines: dict[str, None] = {}
    for gap in (gap for missing in gaps.values() for gap in missing):
        terms = gap.facet.terms if gap.facet is not None and gap.facet.kind is Kind.LEVELS else ()
        term = next((term for term in terms if term.id == gap.field), None)
        values = values_of(gap.facet, term) if gap.facet else gap.demand
        values = f"if the tags ask for it{': ' * bool(values)}{values}" if gap.depends_on else values
        values += "".join(f"; {reader} reads {printable(value)}" for value, reader in gap.read)
        option = option_name(gap.field)
        lines[f"  {option} {forms.get(option, 'TEXT')}{f'  {values}' if values else ''}"] = None
    shown = ", ".join(printable(name) for name in gaps)
    raise CommandUseError(f"missing for {shown}:", "\n".join(lines))


def _given_options(ctx: Context) -> Iterator[str]:
    """Yield the options that the command was given, as words."""
    for parameter in ctx.spec.parameters:
        if not parameter.names or parameter.name in ("dry_run", "refresh", "to", "yes"):
            continue
        value = ctx.given.get(parameter.name, [])
        for text in value if isinstance(value, list) else [value]:
            yield from parameter.names[:1] if text is True else (parameter.names[0], str(text))
