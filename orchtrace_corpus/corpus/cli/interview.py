"""A paper's way from its name to the edit: look it up, ask for what is missing, write, show what was done.

Where a command ends before it writes, the answers are given back as a command line.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from orchtrace_corpus.base.budget import MAX_EDIT_TRIES
from orchtrace_corpus.base.commands import progress
from orchtrace_corpus.base.commands.declarations import Context
from orchtrace_corpus.base.commands.options import refuse_together
from orchtrace_corpus.base.errors import CommandUseError, CorpusError, ExitCode
from orchtrace_corpus.base.files import ChangedError
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus.analysis.matching import Match, Sign
from orchtrace_corpus.corpus.cli.facets import (
    IntakeOptions,
    TagProblem,
    field_metavar,
    metavar_of,
    option_name,
    option_words,
    refuse_all,
    values_of,
)
from orchtrace_corpus.corpus.cli.outcome import apply
from orchtrace_corpus.corpus.cli.questions import Questions, can_ask
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.proposal import Proposal, load_editable
from orchtrace_corpus.corpus.intake import drafts
from orchtrace_corpus.corpus.intake.drafts import Coding, Details, Gap
from orchtrace_corpus.corpus.intake.lookup import NamedPaper, Service, resolve
from orchtrace_corpus.corpus.intake.papers import describe_match
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.model.taxonomy import Kind

_METAVARS = {"authors": "NAMES", "year": "YEAR", "url": "URL", "evidence": "NOTE", "evidence_source": "URL"}
"""The form of what an option takes, where it is not a text."""


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
        candidates: Sequence[NamedPaper],
        pool: Pool,
        details: Details,
        propose: Callable[[Sequence[NamedPaper]], Proposal],
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
            (one,) = resolved
            output.tell(f"corpus: {printable(one.name)} could not be looked up: {one.problem}; you are asked instead")
            resolved = [one.refuse("", ExitCode.DONE)]
        done = "excluded" if self._ctx.spec.name == "exclude" else "added"
        for one in resolved:
            why = one.problem
            if one.match:
                why = f"{describe_match(one.match, pool.taxonomy.noun.one).rstrip('.')}; {self._advise(one.match)}"
            if one.is_refused:
                output.tell(f"corpus: {printable(one.name)} was not {done}: {why}")
            for remark in one.remarks:
                output.note(f"corpus: {printable(one.name)}: {remark}")
        new = [one for one in resolved if not one.is_refused]
        code = max(one.code for one in resolved)
        self._calls = {one.name: one.words or (one.name,) for one in new}
        if self.problems:
            refuse_all([*(problem.error for problem in self.problems), *self._missing(new, propose)])
        if unknown := [one for one in resolved if one.code is ExitCode.UPSTREAM]:
            gaps = [f", and give what is missing:\n{error.hint}" for error in self._missing(unknown, propose)]
            output.tell(f"To do without the service, add --no-fetch{''.join(gaps)}")
        outcome = self.finish(partial(propose, new)) if new else ExitCode.DONE
        if len(resolved) > 1 and outcome == ExitCode.DONE and not options.dry_run:
            matched = sum(one.match is not None for one in resolved)
            counts = ((len(new), done), (matched, "already known"), (len(resolved) - len(new) - matched, f"not {done}"))
            output.note(", ".join(f"{count} {what}" for count, what in counts if count))
        return max(code, outcome)

    def _missing(
        self, papers: Sequence[NamedPaper], propose: Callable[[Sequence[NamedPaper]], Proposal]
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

    def complete_papers(self, candidates: Sequence[NamedPaper], details: Details, coding: Coding) -> list[Paper]:
        """The candidates as records that lack nothing.

        Raises:
            CommandUseError: Something is missing, and nobody is to be asked; the message names all of it.
        """
        ask = partial(self._questions.complete_draft, details) if self._questions else None
        papers, gaps = drafts.complete_papers(candidates, details, coding, self.corpus.pool, ask)
        _refuse_gaps({name: left for name, missing in gaps.items() if (left := self._certain(missing))})
        return papers

    def complete_exclusion(self, name: str, paper: Paper, said: Exclusion) -> Exclusion:
        """A paper, by what it was called, as an exclusion that lacks nothing; errors as for `complete_papers`."""
        ask = partial(self._questions.complete_exclusion, name) if self._questions else None
        exclusion, gaps = drafts.complete_exclusion(paper, self.corpus, said, ask)
        left = self._certain(gaps)
        _refuse_gaps({name: left} if left else {})
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


def _refuse_gaps(gaps: Mapping[str, Sequence[Gap]]) -> None:
    """Refuse records that lack something, by what they are called, with every option that is missing."""
    if not gaps:
        return
    lines: dict[str, None] = {}
    for gap in (gap for missing in gaps.values() for gap in missing):
        terms = gap.facet.terms if gap.facet is not None and gap.facet.kind is Kind.LEVELS else ()
        term = next((term for term in terms if term.id == gap.field), None)
        metavar = metavar_of(gap.facet, term) if gap.facet else _METAVARS.get(gap.field, "TEXT")
        metavar = field_metavar(gap.declared) if gap.declared else metavar
        values = values_of(gap.facet, term) if gap.facet else gap.demand
        values = f"if the tags ask for it{': ' * bool(values)}{values}" if gap.depends_on else values
        values += "".join(f"; {reader} reads {printable(value)}" for value, reader in gap.read)
        lines[f"  {option_name(gap.field)} {metavar}{f'  {values}' if values else ''}"] = None
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
