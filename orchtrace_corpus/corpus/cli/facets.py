"""Options that depend on the taxonomy: one for each facet, each term with levels, and each field of the survey.

They are made at run time from the taxonomy of the corpus that the command edits. If it cannot be read, the options are
missing, and the command reports the error.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from orchtrace_corpus.base.annotations import Annotated, TypeAlias
from orchtrace_corpus.base.commands.declarations import Context, Option, OptionsMaker, Parameter
from orchtrace_corpus.base.commands.options import DryRun
from orchtrace_corpus.base.errors import CommandUseError, CorpusError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.cli import offers
from orchtrace_corpus.corpus.cli.options import ArxivUrl, Offline, Refresh, Title, option
from orchtrace_corpus.corpus.intake.drafts import Coding
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.disputes import NOT_ARISING
from orchtrace_corpus.corpus.model.field_table import FieldKind, FieldValue, RecordField
from orchtrace_corpus.corpus.model.records import Tag, evidence_facets
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.model.tagging import assign_tag, drop_not_arising, errors_by_part, read_value
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, Term, decode_taxonomy

_EVIDENCE_PREFIX = "evidence_"
"""The beginning of the names of options for evidence."""


class DetailOptions(NamedTuple):
    """The options for a paper's `intake.drafts.Details`, under the same names, with `sets` for `values`."""

    key: Annotated[str, option("--key", "KEY", "The paper's key (default: made from the title).")] = ""
    title: Title = ""
    authors: Annotated[str, option("--authors", "NAMES", '"Family, Given; ..."; with "; others" if cut short.')] = ""
    year: Annotated[int, Option("--year", metavar="YEAR", help="The year.", show_default=False)] = 0
    venue: Annotated[str, option("--venue", "TEXT", 'The venue, such as "NeurIPS 2025".')] = ""
    affiliation: Annotated[str, option("--affiliation", "TEXT", "The affiliation of the authors.")] = ""
    urls: Annotated[list[str] | None, option("--url", "URL", "A further address, such as of code (repeatable).")] = None
    sets: Annotated[
        list[str] | None, option("--set", "FIELD=VALUE", "Another field, such as code (repeatable).", offers.filters)
    ] = None
    summary: Annotated[str, option("--summary", "TEXT", "One sentence of your own; may follow later.")] = ""
    notes: Annotated[str, option("--notes", "TEXT", "A remark for users, in one sentence.")] = ""
    note: Annotated[str, option("--evidence", "NOTE", "What in the source supports the tags.")] = ""
    source: Annotated[str, option("--evidence-source", "URL", "The source's address (default: the paper's).")] = ""
    supported: Annotated[
        str,
        option("--evidence-tags", "A,B,...", "Fields it supports (default: all sourced fields).", offers.fields),
    ] = ""


class IntakeOptions(NamedTuple):
    """Options of the commands that look papers up and record them."""

    tags: Annotated[
        list[str] | None, option("--tag", "FIELD=VALUE", "A tag by its field (repeatable).", offers.filters)
    ] = None
    despite_title: Annotated[
        bool, Option("--despite-title", help="Add it although a known title is nearly the same.")
    ] = False
    yes: Annotated[bool, Option("--yes", "-y", help="Ask no questions; accept the proposed values.")] = False
    dry_run: DryRun = False
    no_fetch: Annotated[
        bool, Option("--no-fetch", help="Make no requests; use only the options.", show_default=False)
    ] = False
    offline: Offline = False
    refresh: Refresh = False
    arxiv_url: ArxivUrl = ""


class TagProblem(NamedTuple):
    """An error in the words of a command, and the field that they set; empty if it is about no field."""

    field: str
    error: CommandUseError


@contextmanager
def collect_errors(problems: list[TagProblem], field: str = "") -> Iterator[None]:
    """Add a `CommandUseError` to the problems instead of raising it."""
    try:
        yield
    except CommandUseError as error:
        problems.append(TagProblem(field, error))


def taxonomy_options(records: str, *, has_evidence: bool = False, has_fields: bool = False) -> OptionsMaker:
    """Declare options for the facets of `records`: "papers", "exclusions", or "" for none.

    With `has_evidence`, facets of evidence have options, too; with `has_fields`, the survey's own fields of papers.
    Declared options for fields that the taxonomy omits are dropped.
    """

    def make(declared: Sequence[Parameter], group: str, root: str) -> Sequence[Parameter]:
        try:
            taxonomy = decode_taxonomy(CorpusFiles(root or store.find_root().path).file(store.TAXONOMY))
        except CorpusError:  # the command reports it when it reads the corpus
            taxonomy = None
        if taxonomy is None:
            return declared
        fields = taxonomy.fields if has_fields else ()
        facets = getattr(taxonomy, records) if records else ()
        evidence = evidence_facets(taxonomy) if has_evidence else ()
        sections = {
            "Fields": [_field_option(field) for field in fields],
            'Tags (see "corpus terms FIELD")': _facet_options(facets),
            'Evidence (see "corpus terms FIELD")': _facet_options(evidence, _EVIDENCE_PREFIX),
        }
        used_names = {name for parameter in declared for name in parameter.names}
        all_options = [parameter for parameter in declared if parameter.name not in taxonomy.omit]
        for section, parameters in sections.items():
            for parameter in parameters:
                if used_names.isdisjoint(parameter.names):
                    parameter = parameter._replace(section=section, group=group, is_only_named=section != "Fields")
                    all_options.append(parameter)
        return all_options

    return make


PaperOptions: TypeAlias = Annotated[
    Mapping[str, list[str]], taxonomy_options("papers", has_evidence=True, has_fields=True)
]
ExclusionOptions: TypeAlias = Annotated[Mapping[str, list[str]], taxonomy_options("exclusions")]
EvidenceOptions: TypeAlias = Annotated[Mapping[str, list[str]], taxonomy_options("", has_evidence=True)]


def read_coding(
    options: Mapping[str, Sequence[str]],
    taxonomy: Taxonomy,
    problems: list[TagProblem],
    facets: tuple[Facet, ...] = (),
    tag_words: Sequence[str] | None = None,
) -> Coding:
    """Return the tags in the options for facets and evidence, and in `tag_words`, the values of `--tag`.

    `facets` are the facets of papers or exclusions that have options. Errors are added to `problems`.
    """
    tags = _read_tags(options, facets, problems)
    evidence = _read_tags(options, evidence_facets(taxonomy), problems, _EVIDENCE_PREFIX)
    fields = [facet.field for facet in facets]
    for text in tag_words or ():
        field, equals, value = text.partition("=")
        name = field.strip().replace("-", "_")
        with collect_errors(problems, name if name in fields else ""):
            if not equals:
                raise CommandUseError(f"--tag {quote(text)} names no value", "Write --tag FIELD=VALUE.")
            if not assign_tag(tags, facets, name, value):
                raise CommandUseError(f"unknown axis or facet {quote(name)}{suggestion(name, fields)}")
    ordered_tags = {field: tags[field] for field in fields if field in tags}
    return Coding(ordered_tags, {field: drop_not_arising(tag) for field, tag in evidence.items()})


def _read_tags(
    options: Mapping[str, Sequence[str]], facets: Sequence[Facet], problems: list[TagProblem], prefix: str = ""
) -> dict[str, Tag]:
    """Return the tags in the options for facets; `prefix` begins the names of the options."""
    tags: dict[str, Tag] = {}
    for name, facet, _ in _option_names(facets):
        for text in options.get(f"facet_{prefix}{name}", ()):
            try:
                assign_tag(tags, (facet,), name, text)
            except CommandUseError as error:
                # The option of a facet can have several wrong terms.
                errors = errors_by_part(facet, text, error) if name == facet.field else [error]
                problems.extend(TagProblem(facet.field, mistake) for mistake in errors)
    return tags


def read_values(
    options: Mapping[str, Sequence[str]], taxonomy: Taxonomy, problems: list[TagProblem]
) -> dict[str, FieldValue]:
    """Return the values in the options for the survey's own fields. Errors are added to `problems`."""
    values: dict[str, FieldValue] = {}
    for field in taxonomy.fields:
        for text in options.get(f"field_{field.name}", ()):
            with collect_errors(problems, field.name):
                if field.name in values:
                    raise CommandUseError(f"{field.name} is given twice", "Give it once.")
                values[field.name] = read_value(field, text)
    return values


def refuse_all(errors: Sequence[CommandUseError]) -> None:
    """Raise all errors of a command as one; do nothing if there are none."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        lines = ("- " + str(error).replace("\n", "\n  ") for error in errors)
        raise CommandUseError("\n".join((f"{len(errors)} problems, so nothing was written:", *lines)))


def option_words(ctx: Context, name: str, value: str) -> tuple[str, str]:
    """Return the words of a command line that set an option, such as `--title`, or a facet's field, to a value.

    If another field has an option of that name, the facet has none, and `--tag` sets it.
    """
    if name.startswith("--"):
        return name, value
    options = {word for parameter in ctx.spec.parameters if parameter.section for word in parameter.names}
    option = option_name(name)
    return (option, value) if option in options else ("--tag", f"{name}={value}")


def option_name(field: str) -> str:
    """Return the option of a field, such as `--credit-unit`."""
    return f"--{field.replace('_', '-')}"


def format_tag(tag: Tag) -> str:
    """Return a tag in the form of an option's value."""
    if isinstance(tag, str):
        return tag
    parts = [f"{term}={level}" for term, level in tag.items()] if isinstance(tag, Mapping) else tag
    return ",".join(parts) or NOT_ARISING


def allowed_values(facet: Facet, term: Term | None = None) -> str:
    """Return the allowed values of a facet's option, or of the option of one of its terms with levels, as text."""
    if term:
        return ", ".join((*(level.id for level in facet.levels), NOT_ARISING))
    terms = ", ".join(term.id for term in facet.terms)
    if facet.kind is Kind.LEVELS:
        return f"{terms}, each at {', '.join(level.id for level in facet.levels)}; or {NOT_ARISING}"
    return f"{terms}, {NOT_APPLICABLE}" if facet.allows_na else terms


def _option_names(facets: Sequence[Facet]) -> Iterator[tuple[str, Facet, Term | None]]:
    """Yield the field of each facet with the facet and None, then the id of each term with levels, facet and term."""
    for facet in facets:
        yield facet.field, facet, None
        if facet.kind is Kind.LEVELS:
            yield from ((term.id, facet, term) for term in facet.terms)


def _facet_options(facets: Sequence[Facet], prefix: str = "") -> list[Parameter]:
    """Return the options of facets; without a prefix, also those of terms with levels."""
    metavars = {Kind.SINGLE: "TERM", Kind.MANY: "TERM,...", Kind.LEVELS: "TERM=LEVEL,..."}
    options = []
    for name, facet, term in _option_names(facets):
        if term and prefix:
            continue
        if term:
            metavar, definition, values = "LEVEL", term.definition, facet.levels
        else:
            metavar, definition, values = metavars[facet.kind], facet.definition, facet.terms
        help_text = f"{definition} [{allowed_values(facet, term)}]"
        completions = offers.fixed([(value.id, value.label) for value in values])
        option = Option(metavar=metavar, help=help_text, offers=completions)
        name = f"{prefix}{name}"
        options.append(Parameter(f"facet_{name}", (option_name(name),), str, option, is_many=True))
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
    """Return the option of a field that the survey itself declares."""
    metavar = "|".join(field.choices) if field.kind is FieldKind.CHOICE else _METAVARS.get(field.kind, "TEXT")
    help_text = f"{field.help} [required]" if field.required else field.help
    completions = offers.fixed([(choice, "") for choice in field.choices])
    option = Option(metavar=metavar, help=help_text, offers=completions)
    return Parameter(f"field_{field.name}", (option_name(field.name),), str, option, is_many=True)
