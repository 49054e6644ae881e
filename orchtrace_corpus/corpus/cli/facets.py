"""Options made from the taxonomy at run time: one for each facet, and one for each term that has levels.

They are those of the corpus that the command is about. Where its taxonomy cannot be read, they are
missing, and the command says why when it reads the corpus itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from typer.core import TyperCommand, TyperOption

from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, CorpusError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import Tag
from orchtrace_corpus.corpus.model.tagging import NO_TERM, joined, read_level, read_tag
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, decode_taxonomy

_KEY = "orchtrace_corpus.facets"
_TAGS, _EVIDENCE = "Tags", "Evidence"


class Given(NamedTuple):
    """What the options of the taxonomy were given: tags by field, and facets of evidence by field."""

    tags: dict[str, Tag]
    evidence: dict[str, Tag]

    def over(self, others: "Given") -> "Given":
        """These tags, and the others where these give none."""
        return Given({**others.tags, **self.tags}, {**others.evidence, **self.evidence})


class _State(NamedTuple):
    """What a command keeps in its context: its own options by section, and what they were given."""

    options: dict[str, list[TyperOption]]
    given: Given


class PaperCommand(TyperCommand):
    """A command with an option for every facet of papers and of evidence.

    Contexts and formatters are `Any`: their classes belong to the Click that Typer brings.
    """

    def facets(self, taxonomy: Taxonomy) -> tuple[Facet, ...]:
        """The facets that get options."""
        return taxonomy.papers

    def evidence(self, taxonomy: Taxonomy) -> tuple[Facet, ...]:
        """The facets of evidence that get options."""
        return taxonomy.evidence

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters: those of the command's function, then those of the taxonomy."""
        own = super().get_params(ctx)
        return [*own[:-1], *(option for options in self._state(ctx).options.values() for option in options), own[-1]]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the command's own options, then of those of the taxonomy under their own headings."""
        options = self._state(ctx).options
        of_taxonomy = [option for section in options.values() for option in section]
        own = [param for param in self.get_params(ctx) if param not in of_taxonomy]
        arguments = [param for param in own if param.param_type_name == "argument"]
        sections = {"Arguments": arguments, "Options": [param for param in own if param not in arguments], **options}
        for title, params in sections.items():
            records = [record for param in params if (record := param.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def _state(self, ctx: Any) -> _State:
        if _KEY not in ctx.meta:
            given = Given({}, {})
            taken = {word for param in self.params for word in param.opts}
            taxonomy = _taxonomy(ctx.obj)
            tags = self.facets(taxonomy) if taxonomy is not None else ()
            evidence = self.evidence(taxonomy) if taxonomy is not None else ()
            options = {
                _TAGS: [option for option in _tag_options(tags, given.tags) if taken.isdisjoint(option.opts)],
                _EVIDENCE: [option for option in _evidence_options(evidence, given) if taken.isdisjoint(option.opts)],
            }
            ctx.meta[_KEY] = _State(options, given)
        state: _State = ctx.meta[_KEY]
        return state


class ExclusionCommand(PaperCommand):
    """A command with an option for every facet of exclusions."""

    def facets(self, taxonomy: Taxonomy) -> tuple[Facet, ...]:
        """The facets that get options."""
        return taxonomy.exclusions

    def evidence(self, taxonomy: Taxonomy) -> tuple[Facet, ...]:
        """None: exclusions have no evidence."""
        del taxonomy
        return ()


def given(ctx: Any, facets: tuple[Facet, ...], others: list[str] | None) -> Given:
    """What the options of the taxonomy were given, `--tag FIELD=VALUE` included.

    Raises:
        CommandUseError: A tag names what the taxonomy does not have.
    """
    state: _State = ctx.meta[_KEY]
    tags = dict(state.given.tags)
    for text in others or []:
        field, equals, value = text.partition("=")
        if not equals:
            raise CommandUseError(f"--tag {quote(text)} names no value", "Write --tag FIELD=VALUE.")
        facet, tag = _read(field.strip().replace("-", "_"), value, facets)
        tags[facet.field] = joined(facet, tags.get(facet.field), tag)
    return Given({facet.field: tags[facet.field] for facet in facets if facet.field in tags}, state.given.evidence)


def chosen(ctx: Any) -> list[tuple[str, str]]:
    """What the options of the taxonomy were given, `--tag` left out: fields (of evidence, `evidence_FIELD`)."""
    given: Given = ctx.meta[_KEY].given
    tags = [(field, in_words(tag)) for field, tag in given.tags.items()]
    return tags + [(f"evidence_{field}", in_words(tag)) for field, tag in given.evidence.items()]


def word_for(ctx: Any, name: str, value: str) -> tuple[str, str]:
    """The words of a command line that give a value: to an option, such as `--title`, or to the field of a facet.

    A facet whose option another has taken is reached by `--tag`.
    """
    state: _State = ctx.meta[_KEY]
    options = {word for section in state.options.values() for option in section for word in option.opts}
    if name.startswith("--") or option_name(name) in options:
        return (name if name.startswith("--") else option_name(name)), value
    return "--tag", f"{name}={value}"


def option_name(field: str) -> str:
    """The option of a field, such as `--credit-unit`."""
    return f"--{field.replace('_', '-')}"


def in_words(tag: Tag) -> str:
    """A tag as an option takes it."""
    if isinstance(tag, str):
        return tag
    parts = [f"{term}={level}" for term, level in tag.items()] if isinstance(tag, Mapping) else tag
    return ",".join(parts) or NO_TERM


def metavar_of(facet: Facet) -> str:
    """The form of what a facet's option takes."""
    return {Kind.SINGLE: "TERM", Kind.MANY: "TERM,...", Kind.LEVELS: "TERM=LEVEL,..."}[facet.kind]


def values_of(facet: Facet) -> str:
    """What a facet's option takes, in words."""
    terms = ", ".join(term.id for term in facet.terms)
    if facet.kind is Kind.LEVELS:
        return f"{terms}, each at {', '.join(level.id for level in facet.levels)}; or {NO_TERM}"
    return f"{terms}, {NOT_APPLICABLE}" if facet.allows_na else terms


def _read(name: str, value: str, facets: tuple[Facet, ...]) -> tuple[Facet, Tag]:
    """The facet of that name and its tag; a term that has levels may be named instead of its facet."""
    for facet in facets:
        if facet.field == name:
            return facet, read_tag(facet, value)
        if facet.kind is Kind.LEVELS and name in (term.id for term in facet.terms):
            return facet, {name: read_level(facet, value)}
    raise CommandUseError(f"unknown axis or facet {quote(name)}{suggestion(name, [facet.field for facet in facets])}")


def _tag_options(facets: tuple[Facet, ...], tags: dict[str, Tag]) -> Iterator[TyperOption]:
    for facet in facets:
        yield _option(
            facet.field, metavar_of(facet), f"{facet.definition} {_sentence(values_of(facet))}", _taking(facet, tags)
        )
        if facet.kind is Kind.LEVELS:
            levels = ", ".join(level.id for level in facet.levels)
            for term in facet.terms:
                help_text = f"{term.definition} {_sentence(levels)}"
                yield _option(term.id, "LEVEL", help_text, _taking(facet, tags, term.id))


def _evidence_options(facets: tuple[Facet, ...], found: Given) -> Iterator[TyperOption]:
    for facet in facets:
        help_text = f"{facet.definition} {_sentence(values_of(facet))}"
        yield _option(f"evidence_{facet.field}", metavar_of(facet), help_text, _taking(facet, found.evidence))


def _taking(facet: Facet, tags: dict[str, Tag], term: str = "") -> Callable[[str], None]:
    """What takes down the value of an option in `tags`."""

    def take(value: str) -> None:
        tag: Tag = {term: read_level(facet, value)} if term else read_tag(facet, value)
        tags[facet.field] = joined(facet, tags.get(facet.field), tag)

    return take


def _option(name: str, metavar: str, help_text: str, take: Callable[[str], None]) -> TyperOption:
    def callback(ctx: Any, param: Any, values: Sequence[str] | None) -> None:
        del ctx, param
        for value in values or ():
            take(value)

    return TyperOption(
        param_decls=[f"facet_{name}", option_name(name)],
        metavar=metavar,
        help=help_text,
        callback=callback,
        multiple=True,
        expose_value=False,
    )


def _sentence(values: str) -> str:
    return f"[{values}]"


def _taxonomy(settings: object) -> Taxonomy | None:
    """The taxonomy of the corpus that the command is about; None if it cannot be read, which the command will say."""
    try:
        root = settings.root if isinstance(settings, Session) and settings.root else store.find_root().path
        file = store.read_file(root, store.TAXONOMY)
    except CorpusError:
        return None
    return decode_taxonomy(file)
