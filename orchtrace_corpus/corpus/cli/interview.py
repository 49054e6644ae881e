"""The common steps of `corpus add` and `corpus exclude`: look papers up, ask questions, write the edit, report it.

Questions go to standard error, with the definitions of the taxonomy. Nothing is written before the last answer, and
Ctrl-C or the end of the input stop the command. A command that ends without writing shows a command line with the
answers so far, to try again.
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
    """The person wants to go back to the previous question."""


class Questions:
    """Asks one question after the other.

    Attributes:
        answers: The answers by the name of the record that they are about. Each is an option, such as `--title`, or
            the field of a facet, and its value.
    """

    def __init__(self, output: Output, taxonomy: Taxonomy) -> None:
        self._output = output
        self._taxonomy = taxonomy
        self.answers: dict[str, list[tuple[str, str]]] = {}
        self._answers_so_far: list[str] | None = None  # the answers that `b` can take back; None without a way back
        self._answers_to_repeat: list[str] = []  # the answers to the next questions, which are not asked

    def ask_with_way_back(self, ask: Callable[[], Answer]) -> Answer:
        """Ask questions. The answer `b` asks all of them again, and gives all answers but the last automatically."""
        self._say(
            "Enter leaves open what is [open]; b goes back to the question before; Ctrl-C stops, with this undecided"
        )
        while True:
            answers: list[str] = []
            self._answers_so_far = answers
            try:
                return ask()
            except _BackError:
                if not answers:
                    raise CommandUseError("that was the first question") from None
                self._answers_to_repeat = answers[:-1]

    def _record_answer(self, name: str, value: str) -> None:
        """Add an answer to the last record in `answers`, unless it is empty."""
        if self.answers and value:
            last_record = next(reversed(self.answers))
            self.answers[last_record].append((name, value))

    def _say(self, text: str) -> None:
        """Show a text, wrapped to the terminal's width; show nothing while answers are repeated."""
        if self._answers_to_repeat:
            return
        for line in text.splitlines():
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
        """Ask for the value of an option. An empty answer means the proposal, which is recorded if `keeps_proposal`."""

        def read_and_record(answer: str) -> Answer:
            value = read(answer or proposal)
            if not answer and keeps_proposal:
                answer = proposal
            self._record_answer(option, answer)
            return value

        if proposal:
            prompt = f"{prompt} [{printable(proposal)}]"
        return self._ask(f"{prompt}: ", read_and_record)

    def complete_draft(self, details: Details, draft: Draft, used_keys: Collection[str]) -> Draft:
        """Ask for all missing fields of a draft, and for a key that is not in use.

        The venue of a preprint is asked for, too, since it may have been published elsewhere.
        """
        paper, optional = draft.paper, self._taxonomy.optional
        authors = "; ".join(paper.authors[:3])
        if len(paper.authors) > 3:
            authors = f"{authors} ..."
        self._begin(draft.name, paper.title, authors, str(paper.year or ""), paper.venue, *paper.urls[:1])
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
        if not paper.urls:
            paper = paper._replace(urls=(self._option("Address", "--url", _read_url),))
        paper = paper._replace(more={**paper.more, **self._ask_values(paper)})
        paper = paper._replace(tags=self._ask_tags(self._taxonomy.papers, paper.tags, draft.candidate))
        if not paper.summary:
            prompt = "Summary, one sentence of your own [leave out]"
            paper = paper._replace(summary=self._option(prompt, "--summary", sentence))
        draft = self._ask_evidence(draft._replace(paper=paper).with_readings(self._taxonomy))
        if details.key:
            return draft
        proposal = propose_key(draft.paper, used_keys)
        key = self._option("Key", "--key", partial(_read_key, used_keys), proposal, keeps_proposal=True)
        return draft._replace(paper=draft.paper._replace(key=key))

    def complete_exclusion(self, name: str, exclusion: Exclusion) -> Exclusion:
        """Ask for all missing fields of an exclusion."""
        self._begin(name, exclusion.id, exclusion.title, exclusion.url)
        if not exclusion.title:
            exclusion = exclusion._replace(title=self._option("Title", "--title", _required))
        if not exclusion.url:
            exclusion = exclusion._replace(url=self._option("Address", "--url", _read_url))
        exclusion = exclusion._replace(tags=self._ask_tags(self._taxonomy.exclusions, exclusion.tags))
        if exclusion.reason:
            return exclusion
        reason = self._option("Reason, in one sentence", "--reason", lambda text: sentence(_required(text)))
        return exclusion._replace(reason=reason)

    def _ask_values(self, paper: Paper) -> dict[str, FieldValue]:
        """Ask for missing values of the survey's own fields; optional ones can be left out."""
        values: dict[str, FieldValue] = {}
        for field in self._taxonomy.fields:
            if field.name in paper.more:
                continue
            self._say(f"\n{field_label(field)}: {field.help}")
            if field.choices:
                self._say(number_names(field.choices))

            def read(answer: str, field: RecordField = field) -> FieldValue | None:
                if answer:
                    return read_value(field, replace_numbers(answer, field.choices) if field.choices else answer)
                if field.required:
                    raise CommandUseError("An answer is needed here.")
                return None

            prompt = field.name if field.required else f"{field.name} [leave out]"
            value = self._option(prompt, option_name(field.name), read)
            if value is not None:
                values[field.name] = value
        return values

    def _begin(self, name: str, *texts: str) -> None:
        """Begin questions about the record with a name, and show `texts`, the fields that it has already."""
        self.answers.setdefault(name, [])
        self._say("\n" + "\n".join(printable(text, limit=300) for text in texts if text))

    def _ask_tags(
        self,
        facets: Sequence[Facet],
        tags: Mapping[str, Tag],
        candidate: Candidate | None = None,
        *,
        is_evidence: bool = False,
    ) -> dict[str, Tag]:
        """Ask for the missing tags, and return all tags, in the order of facets."""
        all_tags: dict[str, Tag] = {}
        for facet in facets:
            tag = tags.get(facet.field)
            if tag is None:
                tag = self._ask_tag(facet, candidate, is_evidence=is_evidence)
            if tag is not None:
                all_tags[facet.field] = tag
        if not is_evidence:
            self._say("")
        return all_tags

    def _ask_evidence(self, draft: Draft) -> Draft:
        """Ask for an item of evidence, which is optional unless a rule of the taxonomy demands one."""
        note, source = draft.note, draft.source
        if not note:
            demands = unmet_demands(draft.paper, self._taxonomy)
            for rule in demands:
                self._say(rule.message)
            prompt = "Evidence: what in the source supports the tags"
            if demands:
                note = self._option(prompt, "--evidence", _required)
            else:
                note = self._option(f"{prompt}, or Enter", "--evidence", str)
            if not note:
                return draft._replace(source="", evidence_tags={})
            prompt = "Source of the evidence"
            source = self._option(prompt, "--evidence-source", _read_url, source, keeps_proposal=True)
        evidence_tags = self._ask_tags(self._taxonomy.evidence, draft.evidence_tags, is_evidence=True)
        return draft._replace(note=note, source=source, evidence_tags=evidence_tags)

    def _ask_tag(self, facet: Facet, candidate: Candidate | None = None, *, is_evidence: bool = False) -> Tag | None:
        """Ask for the tag of a facet, of papers or of evidence; None if it is optional and left out."""
        self._say(f"\n{facet.label}: {facet.definition}")
        self._say_readings(candidate, (facet.field, *(term.id for term in facet.terms)))
        tag = self._ask_levels(facet, candidate) if facet.kind is Kind.LEVELS else self._ask_terms(facet)
        if tag is not None:
            self._record_answer(f"evidence_{facet.field}" if is_evidence else facet.field, format_tag(tag))
        if isinstance(tag, Mapping):
            settled = candidate.settled_levels(facet) if candidate else {}
            return drop_not_arising(sort_levels(facet, {**settled, **tag}))
        return tag

    def _say_readings(self, candidate: Candidate | None, names: Iterable[str]) -> None:
        """Show who has read which value of the fields or terms with these names, if there is a candidate."""
        if candidate is None:
            return
        for reading in candidate.readings:
            if values := [f"{name} {reading.tags[name]}" for name in names if name in reading.tags]:
                self._say(f"  {reading.by} reads {', '.join(values)}")

    def _ask_terms(self, facet: Facet) -> Tag | None:
        prompt = f"{facet.field}, several with commas" if facet.kind is Kind.MANY else facet.field
        # A required facet has no default, not even NA: only a person can decide that a field does not apply.
        needed = "An answer is needed here: a number or a name." if facet.required else ""
        if not facet.required:
            prompt = f"{prompt} [leave out]"
        self._say(number_names(facet.values))
        return self._choose(prompt, facet.values, facet.terms, partial(read_tag, facet), needed)

    def _ask_levels(self, facet: Facet, candidate: Candidate | None) -> dict[str, str]:
        """Ask for the level of each term, or of each open term of a candidate.

        A term needs an answer if a reader of the candidate has read it. Otherwise no answer means that it does not
        arise.
        """
        names = [*(level.id for level in facet.levels), NOT_ARISING]
        self._say(number_names(names))
        levels = {}
        for term in facet.terms:
            if candidate is not None and not candidate.is_open(term.id):
                continue
            prompt = f"  {term.id} ({term.code})" if term.code else f"  {term.id}"
            needed = ""
            if candidate is not None and candidate.values_with_readers(term.id):
                needed = f"Readers have read it, so an answer is needed: a level, or {NOT_ARISING}."
            else:
                prompt = f"{prompt} [does not arise]"
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
        """Ask for one or several of the numbered names. An empty answer is None, or an error with the text `needed`."""

        def read_names(answer: str) -> Answer | None:
            if not answer and needed:
                raise CommandUseError(needed)
            return read(replace_numbers(answer, names)) if answer else None

        return self._ask(f"{prompt}, {_HELP} explains: ", read_names, explained)

    def _ask(self, prompt: str, read: Callable[[str], Answer], explained: Sequence[Term] = ()) -> Answer:
        """Ask until `read` accepts the answer; `?` shows the definitions of the terms in `explained`."""
        while True:
            answer = self._answers_to_repeat.pop(0) if self._answers_to_repeat else self._read_line(prompt)
            if answer == "b" and self._answers_so_far is not None:
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
                if self._answers_so_far is not None:
                    self._answers_so_far.append(answer)
                return value

    def _read_line(self, prompt: str) -> str:
        """Return a line from the terminal, without unprintable characters; the end of the input ends the command."""
        self._output.prompt(prompt)
        line = sys.stdin.buffer.readline().decode(sys.stdin.encoding or "utf-8", "replace")
        if not line:
            raise KeyboardInterrupt
        return " ".join("".join(c for c in line if c.isprintable() or c.isspace()).split())


def _required(answer: Answer) -> Answer:
    """Return the answer; raise `CommandUseError` if it is empty."""
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


def number_names(names: Iterable[str]) -> str:
    """Return the names with their numbers, on one line."""
    return "  " + " ".join(f"{number}{NO_BREAK}{name}" for number, name in enumerate(names, 1))


def replace_numbers(answer: str, names: Sequence[str]) -> str:
    """Return an answer, a list with commas, in which numbers are replaced by the names with these numbers."""
    names_by_number = {str(number): name for number, name in enumerate(names, 1)}
    parts = (part.strip() for part in answer.split(","))
    return ",".join(part if part in names else names_by_number.get(part.lstrip("0"), part) for part in parts)


class Interview:
    """One run of a command that records papers.

    Attributes:
        session: The session of the command.
        corpus: The corpus to edit.
        problems: The errors in the command's words, which are reported together with missing fields.
        repeat: Returns the edit, without questions, for a corpus that somebody has changed since it was read; None if
            the edit cannot be repeated.
    """

    def __init__(self, ctx: Context, options: IntakeOptions) -> None:
        refuse_together(no_fetch=options.no_fetch, offline=options.offline, refresh=options.refresh)
        self.session = CorpusSession(*ctx.obj)
        self.corpus = load_editable(self.session.writable_root())
        self._ctx = ctx
        self._options = options
        self._command_words: dict[str, Sequence[str]] = {}  # that name a paper in a command line, by request
        self.problems: list[TagProblem] = []
        self.repeat: Callable[[CorpusFiles], Proposal] | None = None
        self._questions: Questions | None = None  # None if no questions are asked
        if can_ask() and not options.yes:
            self._questions = Questions(self.session.output, self.corpus.pool.taxonomy)

    def record_papers(
        self,
        requests: Sequence[PaperRequest],
        details: Details,
        propose: Callable[[Sequence[PaperRequest]], Proposal],
        *,
        no_fetch: bool = False,
    ) -> int:
        """Look papers up, write the edit with those that are not refused, report it, and return the exit code.

        `propose` asks the questions and returns the edit. With `no_fetch`, papers are not looked up, even without the
        option `--no-fetch`.
        """
        options, output, pool = self._options, self.session.output, self.corpus.pool
        if self.problems:  # the command will fail, so that requests and questions would be in vain
            no_fetch = True
            self._questions = None
        no_fetch = no_fetch or options.no_fetch
        resolved, messages = resolve(
            requests,
            pool,
            details.apply_to,
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
        verb = "excluded" if self._ctx.spec.name == "exclude" else "added"
        for request in resolved:
            reason = request.problem
            if request.match:
                description = describe_match(request.match, pool.taxonomy.noun.one).rstrip(".")
                reason = f"{description}; {self._advise(request.match)}"
            if request.is_refused:
                output.tell(f"corpus: {printable(request.name)} was not {verb}: {reason}")
            for remark in request.remarks:
                output.note(f"corpus: {printable(request.name)}: {remark}")
        accepted = [request for request in resolved if not request.is_refused]
        self._command_words = {request.name: request.words or (request.name,) for request in accepted}
        if self.problems:
            errors = [problem.error for problem in self.problems]
            refuse_all([*errors, *self._missing_fields(accepted, propose)])
        if unanswered := [request for request in resolved if request.code is ExitCode.UPSTREAM]:
            hint = "To do without the service, add --no-fetch"
            for error in self._missing_fields(unanswered, propose):
                hint = f"{hint}, and give what is missing:\n{error.hint}"
            output.tell(hint)
        code: int = self.finish(partial(propose, accepted)) if accepted else ExitCode.DONE
        if len(resolved) > 1 and code == ExitCode.DONE and not options.dry_run:
            known_count = sum(request.match is not None for request in resolved)
            other_count = len(resolved) - len(accepted) - known_count
            counts = {verb: len(accepted), "already known": known_count, f"not {verb}": other_count}
            output.note(", ".join(f"{count} {state}" for state, count in counts.items() if count))
        return max(code, *(request.code for request in resolved))

    def _missing_fields(
        self, requests: Sequence[PaperRequest], propose: Callable[[Sequence[PaperRequest]], Proposal]
    ) -> list[CommandUseError]:
        """Return the error about missing fields of papers as a list, which is empty if none is missing; ask nothing."""
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
        """Return the papers as complete records; raise a `CommandUseError` if fields are missing after questions."""
        ask = partial(self._questions.complete_draft, details) if self._questions else None
        papers, gaps_by_name = drafts.complete_papers(requests, details, coding, self.corpus.pool, ask)
        self._refuse_gaps(gaps_by_name)
        return papers

    def complete_exclusion(self, name: str, paper: Paper, draft: Exclusion) -> Exclusion:
        """Return a paper as a complete exclusion with the values of a draft; errors are those of `complete_papers`."""
        ask = partial(self._questions.complete_exclusion, name) if self._questions else None
        exclusion, gaps = drafts.complete_exclusion(paper, self.corpus, draft, ask)
        self._refuse_gaps({name: gaps})
        return exclusion

    def _refuse_gaps(self, gaps_by_name: Mapping[str, Sequence[Gap]]) -> None:
        """Raise a `CommandUseError` if records have gaps; its hint lists the option for each missing field."""
        names = []
        gaps: list[Gap] = []
        for name, record_gaps in gaps_by_name.items():
            remaining = [gap for gap in record_gaps if not self._may_be_filled(gap)]
            if remaining:
                names.append(name)
                gaps += remaining
        if not names:
            return
        forms = {name: parameter.form for parameter in self._ctx.spec.parameters for name in parameter.names}
        lines = []
        for gap in gaps:
            text = gap.demand
            if gap.facet:
                # A gap is about a term with levels if its field is the id of a term, else about the facet.
                terms = {term.id: term for term in gap.facet.terms if gap.facet.kind is Kind.LEVELS}
                text = allowed_values(gap.facet, terms.get(gap.field))
            if gap.depends_on:
                text = f"if the tags ask for it: {text}" if text else "if the tags ask for it"
            text += "".join(f"; {reader} reads {printable(value)}" for value, reader in gap.readings)
            option = option_name(gap.field)
            line = f"  {option} {forms.get(option, 'TEXT')}"
            lines.append(f"{line}  {text}" if text else line)
        lines = list(dict.fromkeys(lines))  # several papers can lack the same field
        raise CommandUseError(f"missing for {', '.join(map(printable, names))}:", "\n".join(lines))

    def _may_be_filled(self, gap: Gap) -> bool:
        """Return True if the command has other errors, and a service or the correction of an error may fill a gap."""
        if not self.problems:
            return False
        if gap.field in ("title", "authors", "year", "venue", "url") and not self._options.no_fetch:
            return True
        wrong_fields = {problem.field for problem in self.problems}
        return not wrong_fields.isdisjoint((*gap.depends_on, gap.facet.field if gap.facet else gap.field))

    def finish(self, propose: Callable[[], Proposal]) -> int:
        """Get the edit from `propose`, write it, report it, and return the exit code."""
        try:
            proposal = propose()
            code = self._apply(proposal)
        except KeyboardInterrupt:
            if self._questions and any(self._questions.answers.values()):
                self.session.output.tell("")  # ends the line of the open question
            self._show_answers()
            raise
        except CorpusError:
            self._show_answers()
            raise
        if code == ExitCode.DONE and not self._options.dry_run:
            for line in _describe_records(proposal):
                self.session.output.note(line)
        else:
            self._show_answers()
        return code

    def _apply(self, proposal: Proposal) -> int:
        """Write an edit. If somebody has changed a file since it was read, repeat the edit with the new file."""
        try_count = 1
        while True:
            try:
                return apply(self.session, self.corpus, proposal, dry_run=self._options.dry_run)
            except ChangedError:
                if self.repeat is None or try_count == MAX_EDIT_TRIES:
                    raise
                try_count += 1
                self.corpus = load_editable(self.corpus.root)
                proposal = self.repeat(self.corpus)

    def _advise(self, match: Match) -> str:
        """Return advice about a paper that the corpus has."""
        command, record = self._ctx.spec.name, match.record
        if command == "exclude" and isinstance(record, Paper):
            advice = f"to take it out of the pool: corpus exclude {record.key}"
        elif command != "add" or isinstance(record, Paper):
            advice = f"see corpus show {record.name}"
        elif record.promoted_to:
            advice = f"see corpus show {record.promoted_to}"
        else:
            advice = f"to take it in after all: corpus add {record.id}"
        return f"if it is another work, add --despite-title; {advice}" if match.sign is Sign.TITLE else advice

    def _show_answers(self) -> None:
        """Show command lines with the answers, to try again."""
        if self._questions is None:
            return
        ctx = self._ctx
        options: list[str] = []
        for parameter in ctx.spec.parameters:
            if parameter.names and parameter.name not in ("dry_run", "refresh", "to", "yes"):
                values = ctx.given.get(parameter.name, [])
                for value in values if isinstance(values, list) else [values]:
                    options.append(parameter.names[0])
                    if value is not True:
                        options.append(str(value))
        root_words = ["--root", self.session.root] if self.session.root else []
        for name, answers in self._questions.answers.items():
            if not answers:
                continue
            if ctx.given.get("issue"):  # the form names the paper
                paper_words = []
            else:
                paper_words = [ctx.given["name"]] if "name" in ctx.given else list(self._command_words[name])
            answer_words: list[str] = []
            for field, value in answers:
                if field == "--url" and paper_words[:1] == ["--no-fetch"]:  # the words name no paper yet
                    paper_words.insert(0, value)
                else:
                    answer_words += option_words(ctx, field, value)
            line = shlex.join(["corpus", *root_words, ctx.spec.name, *paper_words, *options, *answer_words])
            self.session.output.tell(f"Your answers, to try again: {printable(line, limit=20_000)}")


def _describe_records(proposal: Proposal) -> Iterator[str]:
    """Yield a line about each record that was written."""
    former_records = (*proposal.removed, *proposal.changed)
    for record in proposal.added or proposal.changed:
        if isinstance(record, Paper):
            verb = f"{proposal.promoted[record.key]} became" if record.key in proposal.promoted else "added"
            yield f"{verb} {record.key}: {printable(record.title)}"
        elif former_records and isinstance(former_records[0], Paper):
            paper = former_records[0]
            yield f"{paper.key} is excluded as {record.id}: {printable(paper.title)}"
        else:
            yield f"excluded as {record.id}: {printable(record.title)}"
