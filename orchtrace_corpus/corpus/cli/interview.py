"""Asks for what a record lacks, and gives the answers back as a command line where a command ends before it writes."""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.corpus.cli.facets import coding_words, metavar_of, option_name, option_words, values_of
from orchtrace_corpus.corpus.cli.questions import Questions
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.intake import papers as intake
from orchtrace_corpus.corpus.intake.drafts import Details, Draft, Gap, propose_key
from orchtrace_corpus.corpus.model.fields import TO_BE_WRITTEN
from orchtrace_corpus.corpus.model.records import Exclusion, Tag
from orchtrace_corpus.corpus.model.taxonomy import Facet, Taxonomy

_SHOWN_AUTHORS = 3
_VENUE = "Venue, such as NeurIPS 2025"
_NOT_REPEATED = ("dry_run", "refresh", "yes")
_LONGEST_LINE = 20_000
_METAVARS = {"authors": "NAMES", "year": "YEAR", "url": "URL", "evidence": "NOTE", "evidence_source": "URL"}
"""The form of what an option takes, where it is not a text."""


def ask_paper(
    questions: Questions, taxonomy: Taxonomy, details: Details, draft: Draft, taken: Collection[str]
) -> Draft:
    """Ask for everything that a draft lacks, with a key that is not taken.

    A paper on arXiv may have been published elsewhere since, so its venue is asked for, too.
    """
    paper = draft.paper
    questions.begin(draft.name)
    authors = "; ".join(paper.authors[:_SHOWN_AUTHORS]) + (" ..." if len(paper.authors) > _SHOWN_AUTHORS else "")
    _show(questions, (paper.title, authors, str(paper.year or ""), paper.venue, next(iter(paper.urls), "")))
    has_venue = bool(details.venue) or paper.venue not in ("", intake.PREPRINT)
    paper = paper._replace(
        title=paper.title or questions.text("Title", option="--title"),
        authors=paper.authors or questions.authors(),
        year=paper.year or questions.year(),
        venue=paper.venue if has_venue else questions.text(_VENUE, paper.venue, option="--venue"),
        urls=paper.urls or (questions.address("Address", option="--url"),),
    )
    paper = paper._replace(tags=_ask_tags(questions, taxonomy.papers, paper.tags))
    questions.say("")
    summary = paper.summary or questions.text("Summary, one sentence of your own", TO_BE_WRITTEN, option="--summary")
    draft = _ask_evidence(questions, taxonomy, draft._replace(paper=paper._replace(summary=summary)))
    if details.key:
        return draft
    key = questions.key(propose_key(draft.paper, taken), taken)
    return draft._replace(paper=draft.paper._replace(key=key))


def ask_exclusion(questions: Questions, taxonomy: Taxonomy, name: str, exclusion: Exclusion) -> Exclusion:
    """Ask for everything that an exclusion lacks."""
    questions.begin(name)
    _show(questions, (exclusion.id, exclusion.title, exclusion.url))
    exclusion = exclusion._replace(
        title=exclusion.title or questions.text("Title", option="--title"),
        url=exclusion.url or questions.address("Address", option="--url"),
    )
    exclusion = exclusion._replace(tags=_ask_tags(questions, taxonomy.exclusions, exclusion.tags))
    questions.say("")
    return exclusion._replace(reason=exclusion.reason or questions.text("Reason, in one sentence", option="--reason"))


def refuse_gaps(gaps: Mapping[str, Sequence[Gap]]) -> None:
    """Refuse records that lack something, by what they are called, with every option that is missing.

    Raises:
        CommandUseError: There is one.
    """
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


def show_answers(
    session: CorpusSession, ctx: Any, questions: Questions | None, calls: Mapping[str, Sequence[str]]
) -> None:
    """Show the command lines that give the answers again; nothing where there are none.

    Args:
        session: Where the output goes.
        ctx: The command's context (of the Click that Typer brings), which knows what it was given.
        questions: What was asked; None where nobody was.
        calls: How each thing that questions were about is called on a command line.
    """
    if questions is None:
        return
    for name, answers in questions.answers.items():
        call = list(calls[name])
        words: list[str] = []
        for field, value in answers:
            if field == "--url" and call[:1] == ["--no-fetch"]:  # an entry of a file that nothing else names
                call.insert(0, value)
            else:
                words += option_words(ctx, field, value)
        if answers:
            root = ["--root", session.root] if session.root else []
            line = shlex.join(("corpus", *root, str(ctx.info_name), *call, *_given_options(ctx), *words))
            session.output.tell(f"Your answers, to try again: {printable(line, limit=_LONGEST_LINE)}")


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
        demands = intake.unmet_demands(draft.paper, taxonomy)
        for rule in demands:
            questions.say(rule.message)
        enter = "" if demands else ", or Enter"
        prompt = f"Evidence: what in the source supports the tags{enter}"
        note = questions.text(prompt, option="--evidence", needed=bool(demands))
        if not note:
            return draft._replace(source="", facets={})
        source = questions.address("Source of the evidence", source, option="--evidence-source")
    facets = _ask_tags(questions, taxonomy.evidence, draft.facets, is_evidence=True)
    return draft._replace(note=note, source=source, facets=facets)
