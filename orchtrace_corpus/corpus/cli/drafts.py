"""Makes records whole: from what services say, what options say, and what somebody answers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from orchtrace_corpus.base.commands.options import split_names
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import printable, quote, suggestion
from orchtrace_corpus.corpus.cli.facets import Given, metavar_of, option_name, values_of
from orchtrace_corpus.corpus.cli.lookup import Asked
from orchtrace_corpus.corpus.cli.questions import Questions
from orchtrace_corpus.corpus.intake import proposal as intake
from orchtrace_corpus.corpus.model.author_names import typed
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE, TO_BE_WRITTEN, is_key
from orchtrace_corpus.corpus.model.records import Evidence, Paper, Pool, Tag
from orchtrace_corpus.corpus.model.tag_rules import ANY_EVIDENCE
from orchtrace_corpus.corpus.model.taxonomy import Facet, Taxonomy

_SHOWN_AUTHORS = 3


class Words(NamedTuple):
    """What somebody says of a paper beside its tags, in options or in a form; empty where they say nothing.

    Attributes:
        authors: As `Family, Given; Family, Given`.
        urls: Further addresses.
        note: What in a source supports the tags.
        source: Where that is to be seen.
        supported: The fields that it supports, with commas.
    """

    key: str = ""
    title: str = ""
    authors: str = ""
    year: int = 0
    venue: str = ""
    affiliation: str = ""
    urls: tuple[str, ...] = ()
    summary: str = ""
    notes: str = ""
    note: str = ""
    source: str = ""
    supported: str = ""

    def over(self, others: "Words") -> "Words":
        """These words, and the others where these say nothing."""
        mine = {name: value for name, value in self._asdict().items() if value}
        return others._replace(**mine)

    @property
    def of_one_paper(self) -> list[str]:
        """The options given that can be true of one paper only."""
        names = {"urls": "url", "note": "evidence", "source": "evidence-source"}
        of_many = ("year", "venue", "affiliation", "supported")
        return [f"--{names.get(name, name)}" for name, value in self._asdict().items() if value and name not in of_many]


class Gap(NamedTuple):
    """What a record lacks: the option that gives it, and what that takes."""

    option: str
    values: str = ""


def finished(
    asked: Sequence[Asked], words: Words, given: Given, pool: Pool, day: str, questions: Questions | None
) -> list[Paper]:
    """The papers as records that lack nothing.

    Args:
        asked: The papers, with what was said of them in words.
        words: What was said of them beside that: key and evidence.
        given: The tags that they were given.
        pool: The corpus that they come to.
        day: When they are added, as `YYYY-MM-DD`.
        questions: Asks for what is missing; None where nobody is to be asked.

    Raises:
        CommandUseError: Something is missing, and nobody is to be asked; the message names all of it.
    """
    taken = {paper.key for paper in pool.papers}
    papers = []
    gaps: dict[str, list[Gap]] = {}
    for one in asked:
        paper = one.paper._replace(tags=given.tags, added=day)
        source = words.source or one.source or next(iter(paper.urls), "")
        facets: Mapping[str, Tag] = given.evidence
        note = words.note
        if questions is not None:
            questions.about(one.name)
            paper = _answered(paper, words, pool.taxonomy, questions)
            note, source, facets = _evidence_answered(paper, note, source, facets, pool.taxonomy, questions)
        if note:
            fields = split_names(words.supported) if words.supported else _supported(paper, pool.taxonomy)
            more = {name: tag for name, tag in facets.items() if name not in Evidence._fields}
            fixed = {name: str(tag) for name, tag in facets.items() if name in Evidence._fields}
            level, confidence = fixed.get("level", ""), fixed.get("confidence", "")
            paper = paper._replace(evidence=(Evidence(fields, note, source, level, confidence, more),))
        missing = list(_gaps(paper, facets, pool.taxonomy))
        gaps |= {one.name: missing} if missing else {}
        proposal = paper.key if paper.key and paper.key not in taken else intake.key_for(paper, taken)
        key = words.key or (proposal if questions is None else questions.key(proposal, taken))
        taken.add(key)
        papers.append(paper._replace(key=key, summary=paper.summary or TO_BE_WRITTEN))
    if gaps:
        raise incomplete(gaps)
    return papers


def refuse_words(asked: Sequence[Asked], words: Words, given: Given, pool: Pool) -> None:
    """Refuse what words cannot mean, whatever the papers are.

    Raises:
        CommandUseError: They say of several papers what can be true of one, or name what is not there.
    """
    if len(asked) > 1 and words.of_one_paper:
        raise CommandUseError(f"{', '.join(words.of_one_paper)} can be true of one paper only", "Name one paper.")
    if words.key and not is_key(words.key):
        raise CommandUseError(f"{quote(words.key)} is no key: use lower-case letters, digits and single hyphens")
    if words.key in {paper.key for paper in pool.papers}:
        raise CommandUseError(f"{quote(words.key)} is the key of another paper", "Leave out --key for a proposal.")
    typed(words.authors)
    if (words.source or words.supported or given.evidence) and not words.note:
        raise CommandUseError(
            "an item of evidence needs a note", "Say with --evidence what in the source supports the tags."
        )
    known = [facet.field for facet in pool.taxonomy.papers]
    for name in split_names(words.supported) if words.supported else ():
        if name not in known:
            raise CommandUseError(f"unknown axis or facet {quote(name)}{suggestion(name, known)}")


def with_words(paper: Paper, words: Words) -> Paper:
    """A paper with what was said of it, which goes before what services say."""
    return paper._replace(
        title=words.title or paper.title,
        authors=typed(words.authors) or paper.authors,
        year=words.year or paper.year,
        venue=words.venue or paper.venue,
        affiliation=words.affiliation or paper.affiliation,
        urls=tuple(dict.fromkeys((*paper.urls, *words.urls))),
        summary=words.summary or paper.summary,
        notes=words.notes or paper.notes,
    )


def _supported(paper: Paper, taxonomy: Taxonomy) -> tuple[str, ...]:
    """The fields that an item of evidence is about: the axes tagged, and what the taxonomy demands evidence for."""
    axes = [facet.field for facet in taxonomy.axes if _says_something(paper.tags.get(facet.field))]
    demanded = [field for rule in intake.unmet_demands(paper, taxonomy) for field in rule.evidence]
    fields = tuple(dict.fromkeys(field for field in (*axes, *demanded) if field != ANY_EVIDENCE))
    return fields or tuple(paper.tags)[:1]


def _says_something(tag: Tag | None) -> bool:
    return bool(tag) and tag not in (NOT_APPLICABLE, (NOT_APPLICABLE,))


def _answered(paper: Paper, words: Words, taxonomy: Taxonomy, questions: Questions) -> Paper:
    """The paper with answers to everything that is missing, the key and the evidence apart.

    A paper on arXiv may have been published elsewhere since, so its venue is asked for, too.
    """
    authors = "; ".join(paper.authors[:_SHOWN_AUTHORS]) + (" ..." if len(paper.authors) > _SHOWN_AUTHORS else "")
    known = (paper.title, authors, str(paper.year or ""), paper.venue, next(iter(paper.urls), ""))
    questions.say("\n" + "\n".join(printable(text, limit=300) for text in known if text))
    is_known = bool(words.venue) or paper.venue not in ("", intake.PREPRINT)
    paper = paper._replace(
        title=paper.title or questions.text("Title", option="--title"),
        authors=paper.authors or questions.authors(),
        year=paper.year or questions.year(),
        venue=paper.venue if is_known else questions.text("Venue, such as NeurIPS 2025", paper.venue, option="--venue"),
        urls=paper.urls or (questions.address("Address", option="--url"),),
    )
    tags: dict[str, Tag] = {}
    for facet in taxonomy.papers:
        tag = paper.tags[facet.field] if facet.field in paper.tags else questions.tag(facet)
        if tag is not None:
            tags[facet.field] = tag
    questions.say("")
    summary = paper.summary or questions.text("Summary, one sentence of your own", TO_BE_WRITTEN, option="--summary")
    return paper._replace(tags=tags, summary=summary)


def _evidence_answered(
    paper: Paper, note: str, source: str, facets: Mapping[str, Tag], taxonomy: Taxonomy, questions: Questions
) -> tuple[str, str, Mapping[str, Tag]]:
    """The note, the source and the facets of an item of evidence; an empty note where there is none."""
    if not note:
        demands = intake.unmet_demands(paper, taxonomy)
        for rule in demands:
            questions.say(rule.message)
        enter = "" if demands else ", or Enter"
        prompt = f"Evidence: what in the source supports the tags{enter}"
        note = questions.text(prompt, option="--evidence", needed=bool(demands))
        if not note:
            return "", "", {}
        source = questions.address("Source of the evidence", source, option="--evidence-source")
    answers = dict(facets)
    for facet in taxonomy.evidence:
        tag = answers[facet.field] if facet.field in answers else questions.tag(facet, is_evidence=True)
        if tag is not None:
            answers[facet.field] = tag
    return note, source, answers


def _gaps(paper: Paper, evidence: Mapping[str, Tag], taxonomy: Taxonomy) -> Iterator[Gap]:
    """What the record lacks."""
    for name, example in (("title", "TEXT"), ("authors", "NAMES"), ("year", "YEAR"), ("venue", "TEXT")):
        if not getattr(paper, name):
            yield Gap(f"--{name} {example}")
    if not paper.urls:
        yield Gap("--url URL")
    for facet in taxonomy.papers:
        if facet.required and facet.field not in paper.tags:
            yield facet_gap(facet, facet.field)
    if not paper.evidence:
        for rule in intake.unmet_demands(paper, taxonomy):
            yield Gap("--evidence NOTE", rule.message)
    elif not paper.evidence[0].source:
        yield Gap("--evidence-source URL")
    for facet in taxonomy.evidence if paper.evidence else ():
        if facet.required and facet.field not in evidence:
            yield facet_gap(facet, f"evidence_{facet.field}")


def facet_gap(facet: Facet, name: str) -> Gap:
    """What a record lacks without the tag of a facet, whose option has a name."""
    return Gap(f"{option_name(name)} {metavar_of(facet)}", values_of(facet))


def incomplete(gaps: Mapping[str, Sequence[Gap]]) -> CommandUseError:
    """The refusal of records that lack something, by what they are called, with every option that is missing."""
    shown = ", ".join(printable(name) for name in gaps)
    every = dict.fromkeys(gap for missing in gaps.values() for gap in missing)
    lines = [f"  {gap.option}{f'  {gap.values}' if gap.values else ''}" for gap in every]
    return CommandUseError(
        f"{shown} {'lacks' if len(gaps) == 1 else 'lack'} what a record needs; give", "\n".join(lines)
    )
