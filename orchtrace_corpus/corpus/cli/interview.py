"""The commands that record papers, from the papers' names to the edit: look up, ask, write, report.

Questions go to standard error, and show the taxonomy's definitions. Ctrl-C and the end of the input stop the command:
nothing is written before the last answer. If a command ends before it writes, it shows a command line that repeats the
answers.
"""

import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from orchtrace_corpus.base.annotations import TypeVar
from orchtrace_corpus.base.budget import MAX_EDIT_TRIES
from orchtrace_corpus.base.commands import progress
from orchtrace_corpus.base.commands.declarations import Context
from orchtrace_corpus.base.commands.options import refuse_together
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.errors import CommandUseError, CorpusError, ExitCode
from orchtrace_corpus.base.files import ChangedError
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import NO_BREAK, wrap
from orchtrace_corpus.corpus.analysis.matching import Match, Sign
from orchtrace_corpus.corpus.cli.facets import (
    IntakeOptions,
    TagProblem,
    allowed_values,
    format_tag,
    option_name,
    option_words,
    refuse_all,
)
from orchtrace_corpus.corpus.cli.outcome import apply
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.proposal import Proposal, load_editable
from orchtrace_corpus.corpus.intake import drafts
from orchtrace_corpus.corpus.intake.drafts import Coding, Details, Draft, Gap
from orchtrace_corpus.corpus.intake.lookup import PaperRequest, Service, resolve
from orchtrace_corpus.corpus.intake.papers import PREPRINT, describe_match, propose_key, unmet_demands
from orchtrace_corpus.corpus.model.author_names import parse_authors
from orchtrace_corpus.corpus.model.candidates import Candidate
from orchtrace_corpus.corpus.model.disputes import NOT_ARISING
from orchtrace_corpus.corpus.model.field_table import FieldValue, RecordField, field_label
from orchtrace_corpus.corpus.model.fields import is_key, url_problem
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Tag
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.model.tagging import (
    drop_not_arising,
    read_level,
    read_tag,
    read_value,
    sentence,
    sort_levels,
)
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, Term

Answer = TypeVar("Answer")

_HELP = "?"


def can_ask() -> bool:
    """Return True if standard input and standard error are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


class _BackError(Exception):
    """A person asks for the previous question."""


class Questions:
    """Asks one question after the other.

    Attributes:
        answers: The answers by the name of the record they are about: each as an option, such as `--title`, or the
            field of a facet, and its value.
    """

    def __init__(self, output: Output, taxonomy: Taxonomy) -> None:
        self._output = output
        self._taxonomy = taxonomy
        self.answers: dict[str, list[tuple[str, str]]] = {}
        self._kept: list[str] | None = None
        self._again: list[str] = []

    def with_way_back(self, ask: Callable[[], Answer]) -> Answer:
        """Ask questions, with `b` to go back to the previous one: all earlier answers are given again."""
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
        """Show a text, wrapped to the terminal's width; nothing while answers are given again."""
        for line in text.splitlines() if not self._again else ():
            indent = " " * (len(line) - len(line.lstrip()))
            for part in wrap(line, shutil.get_terminal_size().columns - 1, first=indent, rest=indent):
                self._output.tell(part)

    def _option(
        self,
        prompt: str,
        option: str,
        read: Callable[[str], Answer],
        proposal: str = "",
        *,
        keeps_proposal: bool = False,
    ) -> Answer:
        """Ask for the value of an option. An empty answer accepts the proposal, and repeats it if `keeps_proposal`."""

        def read_and_note(answer: str) -> Answer:
            value = read(answer or proposal)
            self._note(option, answer or (proposal if keeps_proposal else ""))
            return value

        return self._ask(f"{prompt}{f' [{printable(proposal)}]' if proposal else ''}: ", read_and_note)

    def complete_draft(self, details: Details, draft: Draft, used_keys: Collection[str]) -> Draft:
        """Ask for all missing fields of a draft, and for a key that is not in use.

        The venue of a preprint is asked for, too: it may have been published elsewhere since.
        """
        paper, optional = draft.paper, self._taxonomy.optional
        authors = "; ".join(paper.authors[:3]) + (" ..." if len(paper.authors) > 3 else "")
        self._begin(draft.name, paper.title, authors, str(paper.year or ""), paper.venue, next(iter(paper.urls), ""))
        if not paper.title:
            paper = paper._replace(title=self._option("Title", "--title", _required))
        if not paper.authors and "authors" not in optional:
            prompt = "Authors, as Family, Given; Family, Given"
            names = self._option(prompt, "--authors", lambda answer: _required(parse_authors(answer)))
            paper = paper._replace(authors=names)
        if not paper.year and "year" not in optional:
            paper = paper._replace(year=self._option("Year", "--year", _read_year))
        if not details.venue and paper.venue in ("", PREPRINT) and "venue" not in optional:
            venue = self._option("Venue, such as NeurIPS 2025", "--venue", _required, paper.venue)
            paper = paper._replace(venue=venue)
        paper = paper._replace(
            urls=paper.urls or (self._option("Address", "--url", _read_url),),
            more={**paper.more, **self._values(paper)},
            tags=self._tags(self._taxonomy.papers, paper.tags, draft.candidate),
            summary=paper.summary
            or self._option("Summary, one sentence of your own [leave out]", "--summary", sentence),
        )
        draft = self._evidence(draft._replace(paper=paper).with_readings(self._taxonomy))
        if details.key:
            return draft
        proposal = propose_key(draft.paper, used_keys)
        key = self._option("Key", "--key", partial(_read_key, used_keys), proposal, keeps_proposal=True)
        return draft._replace(paper=draft.paper._replace(key=key))

    def complete_exclusion(self, name: str, exclusion: Exclusion) -> Exclusion:
        """Ask for all missing fields of an exclusion."""
        self._begin(name, exclusion.id, exclusion.title, exclusion.url)
        return exclusion._replace(
            title=exclusion.title or self._option("Title", "--title", _required),
            url=exclusion.url or self._option("Address", "--url", _read_url),
            tags=self._tags(self._taxonomy.exclusions, exclusion.tags),
            reason=exclusion.reason
            or self._option("Reason, in one sentence", "--reason", lambda text: sentence(_required(text))),
        )

    def _values(self, paper: Paper) -> dict[str, FieldValue]:
        """Ask for missing values of the survey's own fields; optional ones may be left out."""
        values: dict[str, FieldValue] = {}
        for field in self._taxonomy.fields:
            if field.name in paper.more:
                continue
            self._say(f"\n{field_label(field)}: {field.help}")
            if field.choices:
                self._say(numbered(field.choices))

            def read(answer: str, field: RecordField = field) -> FieldValue | None:
                if answer:
                    return read_value(field, spelled(answer, field.choices) if field.choices else answer)
                if field.required:
                    raise CommandUseError("An answer is needed here.")
                return None

            prompt = f"{field.name}{'' if field.required else ' [leave out]'}"
            value = self._option(prompt, option_name(field.name), read)
            if value is not None:
                values[field.name] = value
        return values

    def _begin(self, name: str, *texts: str) -> None:
        """Begin with the record of a name, and show what it has already."""
        self.answers.setdefault(name, [])
        self._say("\n" + "\n".join(printable(text, limit=300) for text in texts if text))

    def _tags(
        self,
        facets: Sequence[Facet],
        tags: Mapping[str, Tag],
        candidate: Candidate | None = None,
        *,
        is_evidence: bool = False,
    ) -> dict[str, Tag]:
        """Return the tags, with answers for missing ones; for a candidate, for all that is open."""
        answers: dict[str, Tag | None] = {}
        for facet in facets:
            tag = tags.get(facet.field)
            answers[facet.field] = self._tag(facet, candidate, is_evidence=is_evidence) if tag is None else tag
        if not is_evidence:
            self._say("")
        return {field: tag for field, tag in answers.items() if tag is not None}

    def _evidence(self, draft: Draft) -> Draft:
        """Ask for an item of evidence, which the taxonomy may demand."""
        note, source = draft.note, draft.source
        if not note:
            demands = unmet_demands(draft.paper, self._taxonomy)
            for rule in demands:
                self._say(rule.message)
            enter = "" if demands else ", or Enter"
            prompt = f"Evidence: what in the source supports the tags{enter}"
            note = self._option(prompt, "--evidence", lambda answer: _required(answer) if demands else answer)
            if not note:
                return draft._replace(source="", evidence_tags={})
            prompt = "Source of the evidence"
            source = self._option(prompt, "--evidence-source", _read_url, source, keeps_proposal=True)
        facets = self._tags(self._taxonomy.evidence, draft.evidence_tags, is_evidence=True)
        return draft._replace(note=note, source=source, evidence_tags=facets)

    def _tag(self, facet: Facet, candidate: Candidate | None = None, *, is_evidence: bool = False) -> Tag | None:
        """Ask for the tag of a facet, of papers or of evidence; None if it is optional and left out."""
        self._say(f"\n{facet.label}: {facet.definition}")
        self._say_readings(candidate, (facet.field, *(term.id for term in facet.terms)))
        tag = self._levels(facet, candidate) if facet.kind is Kind.LEVELS else self._term(facet)
        if tag is not None:
            self._note(f"evidence_{facet.field}" if is_evidence else facet.field, format_tag(tag))
        if isinstance(tag, Mapping):
            settled = candidate.settled_levels(facet) if candidate else {}
            return drop_not_arising(sort_levels(facet, {**settled, **tag}))
        return tag

    def _say_readings(self, candidate: Candidate | None, tags: Iterable[str]) -> None:
        """Show the readings of some tags, with their readers."""
        for reading in candidate.readings if candidate else ():
            if values := [f"{tag} {reading.tags[tag]}" for tag in tags if tag in reading.tags]:
                self._say(f"  {reading.by} reads {', '.join(values)}")

    def _term(self, facet: Facet) -> Tag | None:
        several = ", several with commas" if facet.kind is Kind.MANY else ""
        # A required facet proposes nothing, not even NA: that a field does not apply is a person's decision.
        prompt = f"{facet.field}{several}{'' if facet.required else ' [leave out]'}"
        needed = "An answer is needed here: a number or a name." if facet.required else ""
        self._say(numbered(facet.values))
        return self._choose(prompt, facet.values, facet.terms, partial(read_tag, facet), needed)

    def _levels(self, facet: Facet, candidate: Candidate | None) -> dict[str, str]:
        """Ask for the level of each term; for a candidate, of open ones: a term with readings needs an answer."""
        names = [*(level.id for level in facet.levels), NOT_ARISING]
        self._say(numbered(names))
        levels = {}
        for term in (term for term in facet.terms if candidate is None or candidate.is_open(term.id)):
            is_read = candidate is not None and bool(candidate.values_with_readers(term.id))
            needed = f"Readers have read it, so an answer is needed: a level, or {NOT_ARISING}." if is_read else ""
            code = f" ({term.code})" if term.code else ""
            prompt = f"  {term.id}{code}{'' if is_read else ' [does not arise]'}"
            level = self._choose(prompt, names, (term, *facet.levels), partial(read_level, facet), needed)
            if level or candidate is not None:
                levels[term.id] = level or NOT_ARISING
        return levels

    def _choose(
        self,
        prompt: str,
        names: Sequence[str],
        explained: Sequence[Term],
        read: Callable[[str], Answer],
        needed: str = "",
    ) -> Answer | None:
        """Ask for one or several of the numbered names; an empty answer is None, or refused with the text `needed`."""

        def read_names(answer: str) -> Answer | None:
            if not answer and needed:
                raise CommandUseError(needed)
            return read(spelled(answer, names)) if answer else None

        return self._ask(f"{prompt}, {_HELP} explains: ", read_names, explained)

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
        """Return a line from the terminal, without unprintable characters; the end of the input ends the command."""
        self._output.prompt(prompt)
        line = sys.stdin.buffer.readline().decode(sys.stdin.encoding or "utf-8", "replace")
        if not line:
            raise KeyboardInterrupt
        return " ".join("".join(c for c in line if c.isprintable() or c.isspace()).split())


def _required(answer: Answer) -> Answer:
    if not answer:
        raise CommandUseError("An answer is needed here; Ctrl-C stops without writing anything.")
    return answer


def _read_url(answer: str) -> str:
    if problem := url_problem(answer):
        raise CommandUseError(f"This {problem}.")
    return answer


def _read_year(answer: str) -> int:
    if len(answer) == 4 and answer.isascii() and answer.isdigit():
        return int(answer)
    raise CommandUseError("Write four digits.")


def _read_key(used_keys: Collection[str], answer: str) -> str:
    if answer in used_keys:
        raise CommandUseError(f"{answer} is the key of another paper.")
    if not is_key(answer):
        raise CommandUseError("Use lower-case letters, digits and single hyphens.")
    return answer


def numbered(names: Iterable[str]) -> str:
    """Return names with their numbers, on one line."""
    return "  " + " ".join(f"{position}{NO_BREAK}{name}" for position, name in enumerate(names, 1))


def spelled(answer: str, names: Sequence[str]) -> str:
    """Return the answer with numbers replaced by the names that they stand for."""
    numbers = {str(position): name for position, name in enumerate(names, 1)}
    parts = (part.strip() for part in answer.split(","))
    return ",".join(part if part in names else numbers.get(part.lstrip("0"), part) for part in parts)


class Interview:
    """One run of a command that records papers.

    Attributes:
        session: The session of the command.
        corpus: The corpus to edit.
        problems: The errors in the command's words, which are reported together with missing fields.
        repeat: Repeats the edit, without questions, for a corpus that somebody else has changed meanwhile; None if the
            edit depends on the former state.
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
        requests: Sequence[PaperRequest],
        details: Details,
        propose: Callable[[Sequence[PaperRequest]], Proposal],
        *,
        no_fetch: bool = False,
    ) -> int:
        """Look papers up, make the edit with those that are not refused, and return the exit code.

        `propose` asks the questions and returns the edit. `no_fetch` prevents requests whatever the options say.
        """
        options, output, pool = self._options, self.session.output, self.corpus.pool
        no_fetch = no_fetch or options.no_fetch or bool(self.problems)
        self._questions = None if self.problems else self._questions
        resolved, messages = resolve(
            requests,
            pool,
            details.describe,
            Service(no_fetch, options.offline, options.refresh, options.arxiv_url),
            despite_title=options.despite_title,
            show_progress=partial(progress.show_progress, output),
        )
        for text in messages:
            output.tell(f"corpus: {printable(text, limit=300)}")
        if self._questions and len(resolved) == 1 and resolved[0].code is ExitCode.UPSTREAM:
            (request,) = resolved
            name = printable(request.name)
            output.tell(f"corpus: {name} could not be looked up: {request.problem}; you are asked instead")
            resolved = [request.refuse("", ExitCode.DONE)]
        done = "excluded" if self._ctx.spec.name == "exclude" else "added"
        for request in resolved:
            why = request.problem
            if request.match:
                description = describe_match(request.match, pool.taxonomy.noun.one).rstrip(".")
                why = f"{description}; {self._advise(request.match)}"
            if request.is_refused:
                output.tell(f"corpus: {printable(request.name)} was not {done}: {why}")
            for remark in request.remarks:
                output.note(f"corpus: {printable(request.name)}: {remark}")
        new = [request for request in resolved if not request.is_refused]
        self._calls = {request.name: request.words or (request.name,) for request in new}
        if self.problems:
            refuse_all([*(problem.error for problem in self.problems), *self._missing(new, propose)])
        if unknown := [request for request in resolved if request.code is ExitCode.UPSTREAM]:
            gaps = [f", and give what is missing:\n{error.hint}" for error in self._missing(unknown, propose)]
            output.tell(f"To do without the service, add --no-fetch{''.join(gaps)}")
        outcome = self.finish(partial(propose, new)) if new else ExitCode.DONE
        if len(resolved) > 1 and outcome == ExitCode.DONE and not options.dry_run:
            matched = sum(request.match is not None for request in resolved)
            counts = {done: len(new), "already known": matched, f"not {done}": len(resolved) - len(new) - matched}
            output.note(", ".join(f"{count} {state}" for state, count in counts.items() if count))
        return max(outcome, *(request.code for request in resolved))

    def _missing(
        self, requests: Sequence[PaperRequest], propose: Callable[[Sequence[PaperRequest]], Proposal]
    ) -> list[CommandUseError]:
        """Return the error that names the missing fields of papers, if any are missing, without a question."""
        questions, self._questions = self._questions, None
        try:
            if requests:
                propose(requests)
        except CommandUseError as error:
            return [error]
        finally:
            self._questions = questions
        return []

    def complete_papers(self, requests: Sequence[PaperRequest], details: Details, coding: Coding) -> list[Paper]:
        """Return the papers as complete records; a `CommandUseError` names missing fields that cannot be asked for."""
        ask = partial(self._questions.complete_draft, details) if self._questions else None
        papers, gaps = drafts.complete_papers(requests, details, coding, self.corpus.pool, ask)
        self._refuse_gaps(gaps)
        return papers

    def complete_exclusion(self, name: str, paper: Paper, draft: Exclusion) -> Exclusion:
        """Return a paper as a complete exclusion, with the values of a draft; errors are those of `complete_papers`."""
        ask = partial(self._questions.complete_exclusion, name) if self._questions else None
        exclusion, gaps = drafts.complete_exclusion(paper, self.corpus, draft, ask)
        self._refuse_gaps({name: gaps})
        return exclusion

    def _refuse_gaps(self, gaps: Mapping[str, Sequence[Gap]]) -> None:
        """Refuse records with missing fields, by name; the error lists the option for each field.

        If the command has other problems, only those fields count that neither a service nor a corrected option gives.
        """
        if self.problems:
            wrong = {problem.field for problem in self.problems}
            looked_up = () if self._options.no_fetch else ("title", "authors", "year", "venue", "url")
            gaps = {
                name: [
                    gap
                    for gap in missing
                    if gap.field not in looked_up
                    and wrong.isdisjoint((*gap.depends_on, gap.facet.field if gap.facet else gap.field))
                ]
                for name, missing in gaps.items()
            }
        names = [name for name, missing in gaps.items() if missing]
        if not names:
            return
        forms = {name: parameter.form for parameter in self._ctx.spec.parameters for name in parameter.names}
        lines: dict[str, None] = {}
        for gap in (gap for missing in gaps.values() for gap in missing):
            values = gap.demand
            if gap.facet:
                terms = gap.facet.terms if gap.facet.kind is Kind.LEVELS else ()
                values = allowed_values(gap.facet, next((term for term in terms if term.id == gap.field), None))
            if gap.depends_on:
                values = f"if the tags ask for it{': ' * bool(values)}{values}"
            values += "".join(f"; {reader} reads {printable(value)}" for value, reader in gap.readings)
            option = option_name(gap.field)
            lines[f"  {option} {forms.get(option, 'TEXT')}{f'  {values}' if values else ''}"] = None
        raise CommandUseError(f"missing for {', '.join(map(printable, names))}:", "\n".join(lines))

    def finish(self, propose: Callable[[], Proposal]) -> int:
        """Make an edit, write it, report it, and return the exit code."""
        try:
            proposal = propose()
            code = self._apply(proposal)
        except (KeyboardInterrupt, CorpusError) as error:
            if not isinstance(error, CorpusError) and self._questions and any(self._questions.answers.values()):
                self.session.output.tell("")  # ends the line of the open question
            self._show_answers()
            raise
        if code == ExitCode.DONE and not self._options.dry_run:
            for line in _summarise(proposal):
                self.session.output.note(line)
        else:
            self._show_answers()
        return code

    def _apply(self, proposal: Proposal) -> int:
        """Write an edit; if somebody else has changed a file meanwhile, repeat it for the present state."""
        tries = 1
        while True:
            try:
                return apply(self.session, self.corpus, proposal, dry_run=self._options.dry_run)
            except ChangedError:
                if self.repeat is None or tries == MAX_EDIT_TRIES:
                    raise
                tries += 1
                self.corpus = load_editable(self.corpus.root)
                proposal = self.repeat(self.corpus)

    def _advise(self, match: Match) -> str:
        """Return advice for a paper that the corpus has."""
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
        """Show command lines that repeat the answers."""
        ctx, root = self._ctx, self.session.root
        options: list[str] = []
        for parameter in ctx.spec.parameters:
            if parameter.names and parameter.name not in ("dry_run", "refresh", "to", "yes"):
                values = ctx.given.get(parameter.name, [])
                for value in values if isinstance(values, list) else [values]:
                    options += parameter.names[:1] if value is True else (parameter.names[0], str(value))
        for name, answers in self._questions.answers.items() if self._questions else ():
            called = [ctx.given["name"]] if "name" in ctx.given else self._calls[name]
            call = [] if ctx.given.get("issue") else list(called)
            words: list[str] = []
            for field, value in answers:
                if field == "--url" and call[:1] == ["--no-fetch"]:  # an entry of a file without any other name
                    call.insert(0, value)
                else:
                    words += option_words(ctx, field, value)
            if answers:
                head = ("corpus", *(("--root", root) if root else ()), ctx.spec.name)
                line = shlex.join((*head, *call, *options, *words))
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
