"""Makes exclusions whole, for the commands that screen: what options say, and what somebody answers."""

from collections.abc import Iterator

from orchtrace_corpus.base.dates import today
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import printable, quote
from orchtrace_corpus.corpus.cli.drafts import Gap, facet_gap, incomplete
from orchtrace_corpus.corpus.cli.questions import Questions
from orchtrace_corpus.corpus.intake import proposal as intake
from orchtrace_corpus.corpus.model.fields import is_iso_date
from orchtrace_corpus.corpus.model.records import Exclusion, Loaded, Paper, Tag
from orchtrace_corpus.corpus.model.taxonomy import Taxonomy


def exclusion_of(paper: Paper, loaded: Loaded, reason: str, screened: str, tags: dict[str, Tag]) -> Exclusion:
    """A paper as a record of the log of exclusions, under the next free id.

    Raises:
        CommandUseError: The day of screening is no day.
    """
    text = f"{loaded.exclusion_places.file.text}\n{loaded.paper_places.file.text}"
    return Exclusion(
        id=intake.next_exclusion_id(loaded.exclusions, text),
        title=paper.title,
        identifier=intake.screened_identifier(paper),
        url=next(iter(paper.urls), ""),
        tags=tags,
        screened=day_of(screened),
        reason=reason,
    )


def day_of(text: str) -> str:
    """A day as `YYYY-MM-DD`; today for no text.

    Raises:
        CommandUseError: It is no day.
    """
    if text and not is_iso_date(text):
        raise CommandUseError(f"--screened {quote(text)} is no day", "Write YYYY-MM-DD.")
    return text or today().isoformat()


def whole(exclusion: Exclusion, name: str, taxonomy: Taxonomy, questions: Questions | None) -> Exclusion:
    """The exclusion with everything that it needs.

    Args:
        exclusion: What is known of it.
        name: What it was called.
        taxonomy: Its facets.
        questions: Asks for what is missing; None where nobody is to be asked.

    Raises:
        CommandUseError: Something is missing, and nobody is to be asked; the message names all of it.
    """
    if questions is None:
        gaps = list(_gaps(exclusion, taxonomy))
        if gaps:
            raise incomplete({name: gaps})
        return exclusion
    questions.about(name)
    shown = (exclusion.id, exclusion.title, exclusion.url)
    questions.say("\n" + "\n".join(printable(text, limit=300) for text in shown if text))
    exclusion = exclusion._replace(
        title=exclusion.title or questions.text("Title", option="--title"),
        url=exclusion.url or questions.address("Address", option="--url"),
    )
    tags: dict[str, Tag] = {}
    for facet in taxonomy.exclusions:
        tag = exclusion.tags[facet.field] if facet.field in exclusion.tags else questions.tag(facet)
        if tag is not None:
            tags[facet.field] = tag
    questions.say("")
    return exclusion._replace(
        tags=tags, reason=exclusion.reason or questions.text("Reason, in one sentence", option="--reason")
    )


def _gaps(exclusion: Exclusion, taxonomy: Taxonomy) -> Iterator[Gap]:
    if not exclusion.title:
        yield Gap("--title TEXT")
    for facet in taxonomy.exclusions:
        if facet.required and facet.field not in exclusion.tags:
            yield facet_gap(facet, facet.field)
    if not exclusion.reason:
        yield Gap("--reason TEXT", "why it is left out, in one sentence")
