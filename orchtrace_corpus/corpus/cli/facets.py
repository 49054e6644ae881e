"""Options made from the taxonomy at run time: for each facet, each term that has levels, each field of the survey.

They are those of the corpus that the command is about. Where its taxonomy cannot be read, they are
missing, and the command says why when it reads the corpus itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, TypeAlias

from orchtrace_corpus.base.commands.declarations import Context, Option, OptionsMaker, Parameter
from orchtrace_corpus.base.commands.options import DryRun
from orchtrace_corpus.base.errors import CommandUseError, CorpusError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.cli import offers
from orchtrace_corpus.corpus.cli.options import ArxivUrl, Offline, OtherTags, Refresh, Title, Yes, option
from orchtrace_corpus.corpus.intake.drafts import Coding
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.field_table import FieldKind, FieldValue, RecordField
from orchtrace_corpus.corpus.model.records import Tag, evidence_facets
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.model.tagging import NO_TERM, arising, assign, mistakes, read_value
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, Term, decode_taxonomy

_EVIDENCE = "evidence_"
"""The beginning of the options of evidence."""


class DetailOptions(NamedTuple):
    """Details of a paper beside its tags, the fields of `intake.drafts.Details`; several of them in `sets`."""

    key: Annotated[str, option("--key", "KEY", "The paper's key (default: made from the title).")] = ""
    title: Title = ""
    authors: Annotated[str, option("--authors", "NAMES", '"Family, Given; ..."; with "; others" if cut short.')] = ""
    year: Annotated[int, Option("--year", metavar="YEAR", help="The year.", show_default=False)] = 0
    venue: Annotated[str, option("--venue", "TEXT", 'The venue, such as "NeurIPS 2025".')] = ""
    affiliation: Annotated[str, option("--affiliation", "TEXT", "The affiliation of the authors.")] = ""
    urls: Annotated[list[str] | None, option("--url", "URL", "A further address, such as of code (repeatable).")] = None
    sets: Annotated[
        list[str] | None,
        option("--set", "FIELD=VALUE", "Another field, such as code (repeatable).", offers.filters),
    ] = None
    summary: Annotated[str, option("--summary", "TEXT", "One sentence of your own; may follow later.")] = ""
    notes: Annotated[str, option("--notes", "TEXT", "A remark for users, in one sentence.")] = ""
    note: Annotated[str, option("--evidence", "NOTE", "What in the source supports the tags.")] = ""
    source: Annotated[str, option("--evidence-source", "URL", "Its address (default: the paper's).")] = ""
    supported: Annotated[
        str,
        option(
            "--evidence-tags",
            "A,B,...",
            "The fields it supports (default: sourced ones).",
            offers.fields,
        ),
    ] = ""


class IntakeOptions(NamedTuple):
    """Options of how a paper is looked up and recorded."""

    tags: OtherTags = None
    despite_title: Annotated[
        bool, Option("--despite-title", help="Add it although a known title is nearly the same.")
    ] = False
    yes: Yes = False
    dry_run: DryRun = False
    no_fetch: Annotated[
        bool, Option("--no-fetch", help="Make no requests; use only the options.", show_default=False)
    ] = False
    offline: Offline = False
    refresh: Refresh = False
    arxiv_url: ArxivUrl = ""


class TagProblem(NamedTuple):
    """A mistake in a given tag, with the field of its facet; no field where that is the mistake."""

    field: str
    error: CommandUseError


def taxonomy_options(tagged: str, *, has_evidence: bool = False, has_fields: bool = False) -> OptionsMaker:
    """Declare the options of the corpus's taxonomy, and drop those for fields that it omits.

    Args:
        tagged: The part of the taxonomy whose facets get options, `papers` or `exclusions`; empty for none.
        has_evidence: Whether the facets of evidence get options, too.
        has_fields: Whether the survey's own fields of papers do.
    """

    def make(declared: Sequence[Parameter], group: str, root: str) -> Sequence[Parameter]:
        try:
            taxonomy = decode_taxonomy(CorpusFiles(root or store.find_root().path).file(store.TAXONOMY))
        except CorpusError:  # the command says it when it reads the corpus itself
            taxonomy = None
        if taxonomy is None:
            return declared
        own_fields = taxonomy.fields if has_fields else ()
        sections = {
            "Fields": [_field_option(field) for field in own_fields],
            'Tags (see "corpus terms FIELD")': _facet_options(getattr(taxonomy, tagged) if tagged else ()),
            'Evidence (see "corpus terms FIELD")': _facet_options(
                evidence_facets(taxonomy) if has_evidence else (), _EVIDENCE
            ),
        }
        taken = {name for parameter in declared for name in parameter.names}
        made = [
            parameter._replace(section=section, group=group, is_only_named=section != "Fields")
            for section, parameters in sections.items()
            for parameter in parameters
            if taken.isdisjoint(parameter.names)
        ]
        kept = [parameter for parameter in declared if parameter.name not in taxonomy.omit]
        return [*kept, *made]

    return make


PaperOptions: TypeAlias = Annotated[
    Mapping[str, list[str]], taxonomy_options("papers", has_evidence=True, has_fields=True)
]
ExclusionOptions: TypeAlias = Annotated[Mapping[str, list[str]], taxonomy_options("exclusions")]
EvidenceOptions: TypeAlias = Annotated[Mapping[str, list[str]], taxonomy_options("", has_evidence=True)]


def read_coding(
    coded: Mapping[str, Sequence[str]],
    taxonomy: Taxonomy,
    problems: list[TagProblem],
    facets: tuple[Facet, ...] = (),
    others: Sequence[str] | None = None,
) -> Coding:
    """Return the tags and the evidence that the options of the taxonomy were given, `--tag FIELD=VALUE` included.

    Args:
        coded: What the options were given.
        taxonomy: The taxonomy.
        problems: Takes what is wrong.
        facets: The facets of records that have options, which `--tag` can set.
        others: What `--tag` was given.
    """
    tags = _read_tags(coded, facets, problems)
    evidence = _read_tags(coded, evidence_facets(taxonomy), problems, _EVIDENCE)
    fields = [facet.field for facet in facets]
    for text in others or ():
        field, equals, value = text.partition("=")
        name = field.strip().replace("-", "_")
        try:
            if not equals:
                raise CommandUseError(f"--tag {quote(text)} names no value", "Write --tag FIELD=VALUE.")
            if not assign(tags, facets, name, value):
                raise CommandUseError(f"unknown axis or facet {quote(name)}{suggestion(name, fields)}")
        except CommandUseError as error:
            problems.append(TagProblem(name if name in fields else "", error))
    coding = {field: tags[field] for field in fields if field in tags}
    return Coding(coding, {field: arising(tag) for field, tag in evidence.items()})


def _read_tags(
    coded: Mapping[str, Sequence[str]], facets: Sequence[Facet], problems: list[TagProblem], prefix: str = ""
) -> dict[str, Tag]:
    """Return the tags that the options of some facets were given; mistakes go to `problems`."""
    tags: dict[str, Tag] = {}
    for name, facet, _ in _settable(facets):
        for text in coded.get(f"facet_{prefix}{name}", ()):
            try:
                assign(tags, (facet,), name, text)
            except CommandUseError as error:
                wrong = [error] if name != facet.field else mistakes(facet, text, error)
                problems.extend(TagProblem(facet.field, mistake) for mistake in wrong)
    return tags


def read_values(
    coded: Mapping[str, Sequence[str]], taxonomy: Taxonomy, problems: list[TagProblem]
) -> dict[str, FieldValue]:
    """Return the values that the options of the survey's own fields were given; mistakes go to `problems`."""
    values: dict[str, FieldValue] = {}
    for field in taxonomy.fields:
        for text in coded.get(f"field_{field.name}", ()):
            try:
                if field.name in values:
                    raise CommandUseError(f"{field.name} is given twice", "Give it once.")
                values[field.name] = read_value(field, text)
            except CommandUseError as error:
                problems.append(TagProblem(field.name, error))
    return values


def refuse_all(errors: Sequence[CommandUseError]) -> None:
    """Raise what is wrong with a command, all of it at once; nothing if nothing is.

    Raises:
        CommandUseError: Something is wrong.
    """
    if len(errors) == 1:
        raise errors[0]
    if errors:
        lines = ("- " + str(error).replace("\n", "\n  ") for error in errors)
        raise CommandUseError("\n".join((f"{len(errors)} problems, so nothing was written:", *lines)))


def option_words(ctx: Context, name: str, value: str) -> tuple[str, str]:
    """Return the words of a command line that give a value: to an option, such as `--title`, or to a facet's field.

    A facet whose option another has taken is reached by `--tag`.
    """
    options = {word for parameter in ctx.spec.parameters if parameter.section for word in parameter.names}
    option = name if name.startswith("--") else option_name(name)
    return (option, value) if option in (name, *options) else ("--tag", f"{name}={value}")


def option_name(field: str) -> str:
    """The option of a field, such as `--credit-unit`."""
    return f"--{field.replace('_', '-')}"


def format_tag(tag: Tag) -> str:
    """A tag as an option takes it."""
    if isinstance(tag, str):
        return tag
    parts = [f"{term}={level}" for term, level in tag.items()] if isinstance(tag, Mapping) else tag
    return ",".join(parts) or NO_TERM


def values_of(facet: Facet, term: Term | None = None) -> str:
    """Return the values of the option of a facet, or of one of its terms with levels, in words."""
    if term:
        return ", ".join((*(level.id for level in facet.levels), NO_TERM))
    terms = ", ".join(term.id for term in facet.terms)
    if facet.kind is Kind.LEVELS:
        return f"{terms}, each at {', '.join(level.id for level in facet.levels)}; or {NO_TERM}"
    return f"{terms}, {NOT_APPLICABLE}" if facet.allows_na else terms


def _settable(facets: Sequence[Facet]) -> Iterator[tuple[str, Facet, Term | None]]:
    """Yield everything that can be set, by name: each facet, and each term that has levels."""
    for facet in facets:
        yield facet.field, facet, None
        yield from ((term.id, facet, term) for term in facet.terms if facet.kind is Kind.LEVELS)


def _facet_options(facets: Sequence[Facet], prefix: str = "") -> list[Parameter]:
    """Return the options of some facets; without a prefix, also those of terms with levels."""
    forms = {Kind.SINGLE: "TERM", Kind.MANY: "TERM,...", Kind.LEVELS: "TERM=LEVEL,..."}
    options = []
    for name, facet, term in _settable(facets):
        if term and prefix:
            continue
        values = facet.levels if term else facet.terms
        option = Option(
            metavar="LEVEL" if term else forms[facet.kind],
            help=f"{(term or facet).definition} [{values_of(facet, term)}]",
            offers=offers.fixed([(value.id, value.label) for value in values]),
        )
        option_names = (option_name(f"{prefix}{name}"),)
        options.append(Parameter(f"facet_{prefix}{name}", option_names, str, option, is_many=True))
    return options


_METAVARS = {
    FieldKind.TEXTS: "A,B,...",
    FieldKind.AUTHORS: "NAMES",
    FieldKind.YEAR: "YEAR",
    FieldKind.DATE: "YYYY-MM-DD",
    FieldKind.NUMBER: "NUMBER",
    FieldKind.FLAG: "true|false",
    FieldKind.URL: "URL",
    FieldKind.URLS: "URL,...",
    FieldKind.IDENTIFIER: "ID",
    FieldKind.KEY: "KEY",
}


def _field_option(field: RecordField) -> Parameter:
    """Return the option of a field that the survey declares itself."""
    option = Option(
        metavar="|".join(field.choices) if field.kind is FieldKind.CHOICE else _METAVARS.get(field.kind, "TEXT"),
        help=f"{field.help}{' [required]' if field.required else ''}",
        offers=offers.fixed([(choice, "") for choice in field.choices]),
    )
    return Parameter(f"field_{field.name}", (option_name(field.name),), str, option, is_many=True)
