"""A paper's way from its name to the edit: look it up, ask for what is missing, write, show what was done.

Where a command ends before it writes, the answers are given back as a command line.
"""

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import typer

from orchtrace_corpus.base.commands import progress
from orchtrace_corpus.base.commands.options import refuse_together
from orchtrace_corpus.base.errors import CommandUseError, CorpusError, ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus.cli.facets import coding_words, metavar_of, option_name, option_words, values_of
from orchtrace_corpus.corpus.cli.options import IntakeOptions
from orchtrace_corpus.corpus.cli.outcome import apply
from orchtrace_corpus.corpus.cli.questions import (
    Questions,
    can_ask,
    read_address,
    read_authors,
    read_key,
    read_text,
    read_year,
)
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.proposal import Proposal, load_editable
from orchtrace_corpus.corpus.intake import drafts
from orchtrace_corpus.corpus.intake.drafts import Coding, Details, Draft, Gap, propose_key
from orchtrace_corpus.corpus.intake.lookup import Candidate, Service, resolve
from orchtrace_corpus.corpus.intake.papers import PREPRINT, describe_match, unmet_demands
from orchtrace_corpus.corpus.model.fields import TO_BE_WRITTEN
from orchtrace_corpus.corpus.model.records import Exclusion, Paper, Pool, Record, Tag
from orchtrace_corpus.corpus.model.taxonomy import Facet, Taxonomy

_SHOWN_AUTHORS = 3
_NOT_REPEATED = ("dry_run", "refresh", "yes")
_LONGEST_LINE = 20_000
_METAVARS = {"authors": "NAMES", "year": "YEAR", "url": "URL", "evidence": "NOTE", "evidence_source": "URL"}
"""The form of what an option takes, where it is not a text."""


class Interview:
    """One run of a command that records papers.

    Attributes:
        session: Where the output goes.
        corpus: The corpus that is edited.
    """

    def __init__(self, ctx: Any, options: IntakeOptions) -> None:
        refuse_together(no_fetch=options.no_fetch, offline=options.offline, refresh=options.refresh)
        self.session = CorpusSession(*ctx.obj)
        self.corpus = load_editable(self.session.writable_root())
        self._ctx = ctx  # of the Click that Typer brings; it knows what the command was given
        self._options = options
        self._questions = Questions(self.session.output) if can_ask() and not options.yes else None

    def look_up(
        self, candidates: Sequence[Candidate], pool: Pool, details: Details, *, no_fetch: bool = False
    ) -> tuple[list[Candidate], int]:
        """The candidates not refused, with what is known of them, and the worst exit code; refusals are shown."""
        options, output = self._options, self.session.output
        resolved, messages = resolve(
            candidates,
            pool,
            details.describe,
            Service(options.no_fetch or no_fetch, options.offline, options.refresh, options.arxiv_url),
            despite_title=options.despite_title,
            show_progress=partial(progress.shown, output),
        )
        for text in messages:
            output.tell(f"corpus: {printable(text, limit=300)}")
        for one in resolved:
            if one.is_refused:
                known = (
                    f"{describe_match(one.match).rstrip('.')}; {self._advise(one.match.record)}" if one.match else ""
                )
                output.tell(f"corpus: {printable(one.name)} is refused: {known or one.problem}")
            for remark in one.remarks:
                output.note(f"{printable(one.name)}: {remark}")
        return [one for one in resolved if not one.is_refused], max(one.code for one in resolved)

    def complete_papers(self, candidates: Sequence[Candidate], details: Details, coding: Coding) -> list[Paper]:
        """The candidates as records that lack nothing.

        Raises:
            CommandUseError: Something is missing, and nobody is to be asked; the message names all of it.
        """
        pool = self.corpus.pool
        ask = partial(_ask_paper, self._questions, pool.taxonomy, details) if self._questions else None
        papers, gaps = drafts.complete_papers(candidates, details, coding, pool, ask)
        _refuse_gaps(gaps)
        return papers

    def complete_exclusion(self, name: str, paper: Paper, said: Exclusion) -> Exclusion:
        """A paper, by what it was called, as an exclusion that lacks nothing; errors as for `complete_papers`."""
        ask = partial(_ask_exclusion, self._questions, self.corpus.pool.taxonomy, name) if self._questions else None
        exclusion, gaps = drafts.complete_exclusion(paper, self.corpus, said, ask)
        _refuse_gaps({name: gaps} if gaps else {})
        return exclusion

    def finish(self, propose: Callable[[], Proposal], calls: Mapping[str, Sequence[str]] | None = None) -> int:
        """Ask for what is missing, write the edit, and show what was done; return the exit code.

        Args:
            propose: Makes the edit, and asks the questions.
            calls: How each paper is called on a command line; without it, as the command was given its name.
        """
        answers = self._questions.answers if self._questions else {}
        try:
            proposal = propose()
            code = apply(self.session, self.corpus, proposal, dry_run=self._options.dry_run)
        except (KeyboardInterrupt, typer.Exit, CorpusError) as error:
            if not isinstance(error, CorpusError) and any(answers.values()):
                self.session.output.tell("")  # behind the question that was not answered
            self._show_answers(answers, calls)
            raise
        if code == ExitCode.DONE and not self._options.dry_run:
            for line in _summarise(proposal):
                self.session.output.note(line)
        else:
            self._show_answers(answers, calls)
        return code

    def _advise(self, record: Record) -> str:
        """What to do about a paper that the corpus knows, instead of the command."""
        command = self._ctx.info_name
        if command == "exclude" and isinstance(record, Paper):
            return f"to take it out of the pool: corpus demote {record.key}"
        if command != "add" or isinstance(record, Paper):
            return f"see corpus show {record.name}"
        if record.promoted_to:
            return f"see corpus show {record.promoted_to}"
        return f"to take it in after all: corpus promote {record.id}"

    def _show_answers(
        self, all_answers: Mapping[str, Sequence[tuple[str, str]]], calls: Mapping[str, Sequence[str]] | None
    ) -> None:
        """Show the command lines that give the answers again; nothing where there are none."""
        ctx, root = self._ctx, self.session.root
        for name, answers in all_answers.items():
            call = list(calls[name]) if calls else [ctx.params["name"]]
            words: list[str] = []
            for field, value in answers:
                if field == "--url" and call[:1] == ["--no-fetch"]:  # an entry of a file that nothing else names
                    call.insert(0, value)
                else:
                    words += option_words(ctx, field, value)
            if answers:
                head = ("corpus", *(("--root", root) if root else ()), str(ctx.info_name))
                line = shlex.join((*head, *call, *_given_options(ctx), *words))
                self.session.output.tell(f"Your answers, to try again: {printable(line, limit=_LONGEST_LINE)}")


def _summarise(proposal: Proposal) -> Iterator[str]:
    """What became of each record."""
    before = next(iter((*proposal.removed, *proposal.changed)), None)
    for record in proposal.added or proposal.changed:
        if isinstance(record, Paper):
            head = f"{before.id} became" if isinstance(before, Exclusion) else "added"
            yield f"{head} {record.key}: {printable(record.title)}"
        elif isinstance(before, Paper):
            yield f"{before.key} is excluded as {record.id}: {printable(before.title)}"
        else:
            yield f"excluded as {record.id}: {printable(record.title)}"


def _ask_paper(
    questions: Questions, taxonomy: Taxonomy, details: Details, draft: Draft, taken: Collection[str]
) -> Draft:
    """Ask for everything that a draft lacks, with a key that is not taken.

    A paper on arXiv may have been published elsewhere since, so its venue is asked for, too.
    """
    paper = draft.paper
    questions.begin(draft.name)
    authors = "; ".join(paper.authors[:_SHOWN_AUTHORS]) + (" ..." if len(paper.authors) > _SHOWN_AUTHORS else "")
    _show(questions, (paper.title, authors, str(paper.year or ""), paper.venue, next(iter(paper.urls), "")))
    has_venue = bool(details.venue) or paper.venue not in ("", PREPRINT)
    paper = paper._replace(
        title=paper.title or questions.ask("Title", "--title", read_text),
        authors=paper.authors or questions.ask("Authors, as Family, Given; Family, Given", "--authors", read_authors),
        year=paper.year or questions.ask("Year", "--year", read_year),
        venue=paper.venue
        if has_venue
        else questions.ask("Venue, such as NeurIPS 2025", "--venue", read_text, paper.venue),
        urls=paper.urls or (questions.ask("Address", "--url", read_address),),
    )
    paper = paper._replace(tags=_ask_tags(questions, taxonomy.papers, paper.tags))
    questions.say("")
    summary = paper.summary or questions.ask("Summary, one sentence of your own", "--summary", read_text, TO_BE_WRITTEN)
    draft = _ask_evidence(questions, taxonomy, draft._replace(paper=paper._replace(summary=summary)))
    if details.key:
        return draft
    key = questions.ask("Key", "--key", partial(read_key, taken), propose_key(draft.paper, taken), keeps_proposal=True)
    return draft._replace(paper=draft.paper._replace(key=key))


def _ask_exclusion(questions: Questions, taxonomy: Taxonomy, name: str, exclusion: Exclusion) -> Exclusion:
    """Ask for everything that an exclusion lacks."""
    questions.begin(name)
    _show(questions, (exclusion.id, exclusion.title, exclusion.url))
    exclusion = exclusion._replace(
        title=exclusion.title or questions.ask("Title", "--title", read_text),
        url=exclusion.url or questions.ask("Address", "--url", read_address),
    )
    exclusion = exclusion._replace(tags=_ask_tags(questions, taxonomy.exclusions, exclusion.tags))
    questions.say("")
    return exclusion._replace(
        reason=exclusion.reason or questions.ask("Reason, in one sentence", "--reason", read_text)
    )


def _refuse_gaps(gaps: Mapping[str, Sequence[Gap]]) -> None:
    """Refuse records that lack something, by what they are called, with every option that is missing."""
    if not gaps:
        return
    lines: dict[str, None] = {}
    for gap in (gap for missing in gaps.values() for gap in missing):
        metavar = metavar_of(gap.facet) if gap.facet else _METAVARS.get(gap.field, "TEXT")
        values = values_of(gap.facet) if gap.facet else gap.demand
        lines[f"  {option_name(gap.field)} {metavar}{f'  {values}' if values else ''}"] = None
    shown = ", ".join(printable(name) for name in gaps)
    verb = "lacks" if len(gaps) == 1 else "lack"
    raise CommandUseError(f"{shown} {verb} what a record needs; give", "\n".join(lines))


def _given_options(ctx: Any) -> Iterator[str]:
    """The options that the command was given."""
    for param in ctx.command.params:
        value = ctx.params.get(param.name)
        if param.param_type_name != "option" or not value or param.name in _NOT_REPEATED:
            continue
        if value is True:
            yield param.opts[0]
            continue
        for one in value if isinstance(value, (list, tuple)) else (value,):
            yield from (param.opts[0], str(one))
    yield from coding_words(ctx)


def _show(questions: Questions, texts: Sequence[str]) -> None:
    questions.say("\n" + "\n".join(printable(text, limit=300) for text in texts if text))


def _ask_tags(
    questions: Questions, facets: Sequence[Facet], tags: Mapping[str, Tag], *, is_evidence: bool = False
) -> dict[str, Tag]:
    """The tags with answers for every facet that has none."""
    answers: dict[str, Tag] = {}
    for facet in facets:
        tag = tags[facet.field] if facet.field in tags else questions.tag(facet, is_evidence=is_evidence)
        if tag is not None:
            answers[facet.field] = tag
    return answers


def _ask_evidence(questions: Questions, taxonomy: Taxonomy, draft: Draft) -> Draft:
    """The draft with an item of evidence, if there is one."""
    note, source = draft.note, draft.source
    if not note:
        demands = unmet_demands(draft.paper, taxonomy)
        for rule in demands:
            questions.say(rule.message)
        enter = "" if demands else ", or Enter"
        prompt = f"Evidence: what in the source supports the tags{enter}"
        note = questions.ask(prompt, "--evidence", read_text if demands else str)
        if not note:
            return draft._replace(source="", facets={})
        source = questions.ask("Source of the evidence", "--evidence-source", read_address, source, keeps_proposal=True)
    facets = _ask_tags(questions, taxonomy.evidence, draft.facets, is_evidence=True)
    return draft._replace(note=note, source=source, facets=facets)
