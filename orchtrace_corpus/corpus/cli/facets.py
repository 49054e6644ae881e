"""Options made from the taxonomy at run time: for each facet, each term that has levels, each field of the survey.

They are those of the corpus that the command is about. Where its taxonomy cannot be read, they are
missing, and the command says why when it reads the corpus itself.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from typing import Annotated, Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperOption

from orchtrace_corpus.base.commands.declarations import Option
from orchtrace_corpus.base.commands.options import DryRun
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError, CorpusError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.corpus.cli.options import ArxivUrl, Offline, OtherTags, Refresh, Title, Yes, option
from orchtrace_corpus.corpus.intake.drafts import Coding
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.field_table import PAPER_FIELDS, FieldKind, FieldValue, RecordField, value_texts
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import Tag, evidence_facets
from orchtrace_corpus.corpus.model.store import CorpusFiles
from orchtrace_corpus.corpus.model.tagging import NO_TERM, arising, assign, mistakes, read_value, settable_fields
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Term, decode_taxonomy

_KEY = "orchtrace_corpus.facets"
_SETTABLE = [field.name for field in PAPER_FIELDS if field.is_settable]


class DetailOptions(NamedTuple):
    """Details of a paper beside its tags, the fields of `intake.drafts.Details`; several of them in `sets`."""

    key: Annotated[str, option("--key", "KEY", "The paper's key (default: made from the title).")] = ""
    title: Title = ""
    authors: Annotated[
        str, option("--authors", "NAMES", '"Family, Given; Family, Given"; end with others if the list is incomplete.')
    ] = ""
    year: Annotated[int, Option("--year", metavar="YEAR", help="The year.", show_default=False)] = 0
    venue: Annotated[str, option("--venue", "TEXT", 'The venue, such as "NeurIPS 2025".')] = ""
    affiliation: Annotated[str, option("--affiliation", "TEXT", "The affiliation of the authors.")] = ""
    urls: Annotated[
        list[str] | None, option("--url", "URL", "A further address, such as that of the code (repeatable).")
    ] = None
    sets: Annotated[
        list[str] | None,
        option("--set", "FIELD=VALUE", f"Another field: {', '.join(_SETTABLE)} (repeatable; a,b for several)."),
    ] = None
    summary: Annotated[str, option("--summary", "TEXT", "One sentence in your own words (may be written later).")] = ""
    notes: Annotated[str, option("--notes", "TEXT", "A remark for users of the record, in one sentence.")] = ""
    note: Annotated[str, option("--evidence", "NOTE", "What in the source supports the tags.")] = ""
    source: Annotated[str, option("--evidence-source", "URL", "The address of that source (default: the paper's).")] = (
        ""
    )
    supported: Annotated[
        str,
        option("--evidence-tags", "A,B,...", "The fields that it supports (default: tagged axes and sourced fields)."),
    ] = ""


class IntakeOptions(NamedTuple):
    """Options of how a paper is looked up and recorded."""

    tags: OtherTags = None
    despite_title: Annotated[
        bool, Option("--despite-title", help="Add it even if another work has nearly the same title.")
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


class _State(NamedTuple):
    """The state of a command: its options by section, the values that they were given, their mistakes."""

    command: TyperCommand
    options: dict[str, list[TyperOption]]
    tags: dict[str, Tag]
    evidence: dict[str, Tag]
    values: dict[str, FieldValue]
    problems: list[TagProblem]
    omitted: tuple[str, ...] = ()
    settable: tuple[str, ...] = ()


class PaperCommand(TyperCommand):
    """A command with an option for every facet of papers and of evidence, and every field that the survey declares.

    Contexts and formatters are `Any`: their classes belong to the Click that Typer brings.

    Attributes:
        tagged: What of the taxonomy has the facets that get options; empty for none.
        has_evidence: Whether the facets of evidence get options, too.
        has_fields: Whether the survey's own fields of papers do.
    """

    tagged: ClassVar[str] = "papers"
    has_evidence: ClassVar[bool] = True
    has_fields: ClassVar[bool] = True

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters: those of the command's function, then those of the taxonomy."""
        own = self._own_params(ctx)
        return [*own[:-1], *(option for options in self._state(ctx).options.values() for option in options), own[-1]]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the command's own options, then of those of the taxonomy under their own headings."""
        sections: dict[str, list[Any]] = {"Arguments": [], "Options": [], **self._state(ctx).options}
        for param in self._own_params(ctx):
            sections[f"{param.param_type_name.capitalize()}s"].append(param)
        for title, params in sections.items():
            records = [record for param in params if (record := param.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def _own_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of the command's function, without options for fields that the taxonomy omits."""
        state = self._state(ctx)
        params: list[Any] = []
        param: Any
        for param in super().get_params(ctx):
            if param.name == "sets" and state.settable:
                param.help = f"Another field: {', '.join(state.settable)} (repeatable; a,b for several)."
            if param.name not in state.omitted:
                params.append(param)
        return params

    def _state(self, ctx: Any) -> _State:
        if _KEY not in ctx.meta or ctx.meta[_KEY].command is not self:  # contexts of other commands share it
            state = _State(self, {}, {}, {}, {}, [])
            taken = {word for param in self.params for word in param.opts}
            taxonomy = None
            with suppress(CorpusError):  # the command says it when it reads the corpus itself
                root = ctx.obj.root if isinstance(ctx.obj, Session) and ctx.obj.root else store.find_root().path
                taxonomy = decode_taxonomy(CorpusFiles(root).file(store.TAXONOMY))
            if taxonomy is not None:
                tagged = getattr(taxonomy, self.tagged) if self.tagged else ()
                supported = evidence_facets(taxonomy) if self.has_evidence else ()
                tags = _options(tagged, state.tags, state.problems)
                evidence = _options(supported, state.evidence, state.problems, "evidence_")
                own_fields = taxonomy.fields if self.has_fields else ()
                values = _field_options(own_fields, state.values, state.problems)
                for section, options in (("Fields", values), ("Tags", tags), ("Evidence", evidence)):
                    state.options[section] = [option for option in options if taken.isdisjoint(option.opts)]
                own = {word for option in state.options["Fields"] for word in option.opts}
                settable = tuple(name for name in settable_fields(taxonomy) if option_name(name) not in own)
                state = state._replace(omitted=taxonomy.omit, settable=settable)
            ctx.meta[_KEY] = state
        kept: _State = ctx.meta[_KEY]
        return kept


class ExclusionCommand(PaperCommand):
    """A command with an option for every facet of exclusions, which have no evidence."""

    tagged = "exclusions"
    has_evidence = False
    has_fields = False


class EvidenceCommand(PaperCommand):
    """A command with an option for every facet of evidence; tags and fields are arguments."""

    tagged = ""
    has_fields = False


def read_coding(
    ctx: Any,
    facets: tuple[Facet, ...] = (),
    others: Sequence[str] | None = None,
    mistakes: list[TagProblem] | None = None,
) -> Coding:
    """The tags and the evidence that the options of the taxonomy were given, `--tag FIELD=VALUE` included.

    Args:
        ctx: The command's context.
        facets: The facets that `--tag` can set.
        others: What it was given.
        mistakes: Takes what is wrong, for a command that reports all of them later.

    Raises:
        CommandUseError: A tag names what the taxonomy does not have, and `mistakes` is not given.
    """
    state: _State = ctx.meta[_KEY]
    tags, found = dict(state.tags), list(state.problems)
    for text in others or ():
        field, equals, value = text.partition("=")
        name = field.strip().replace("-", "_")
        try:
            if not equals:
                raise CommandUseError(f"--tag {quote(text)} names no value", "Write --tag FIELD=VALUE.")
            if not assign(tags, facets, name, value):
                known = suggestion(name, [facet.field for facet in facets])
                raise CommandUseError(f"unknown axis or facet {quote(name)}{known}")
        except CommandUseError as error:
            found.append(TagProblem(name if name in (facet.field for facet in facets) else "", error))
    if mistakes is None:
        refuse_all([one.error for one in found])
    else:
        mistakes += found
    evidence = {field: arising(tag) for field, tag in state.evidence.items()}
    return Coding({facet.field: tags[facet.field] for facet in facets if facet.field in tags}, evidence)


def read_values(ctx: Any) -> dict[str, FieldValue]:
    """Return the values that the options of the survey's own fields were given, by field."""
    state: _State = ctx.meta[_KEY]
    return dict(state.values)


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


def coding_words(ctx: Any) -> Iterator[str]:
    """The words of a command line that give the options of the taxonomy again, `--tag` left out."""
    state: _State = ctx.meta[_KEY]
    for name, value in state.values.items():
        yield from option_words(ctx, option_name(name), ",".join(value_texts(value)))
    for prefix, tags in (("", state.tags), ("evidence_", state.evidence)):
        for field, tag in tags.items():
            yield from option_words(ctx, f"{prefix}{field}", format_tag(tag))


def option_words(ctx: Any, name: str, value: str) -> tuple[str, str]:
    """The words of a command line that give a value: to an option, such as `--title`, or to the field of a facet.

    A facet whose option another has taken is reached by `--tag`.
    """
    sections = ctx.meta[_KEY].options.values()
    options = {word for section in sections for option in section for word in option.opts}
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


def metavar_of(facet: Facet, term: Term | None = None) -> str:
    """The form of what the option of a facet takes, or that of one of its terms with levels."""
    return "LEVEL" if term else {Kind.SINGLE: "TERM", Kind.MANY: "TERM,...", Kind.LEVELS: "TERM=LEVEL,..."}[facet.kind]


def values_of(facet: Facet, term: Term | None = None) -> str:
    """Return the values of the option of a facet, or of one of its terms with levels, in words."""
    if term:
        return ", ".join((*(level.id for level in facet.levels), NO_TERM))
    terms = ", ".join(term.id for term in facet.terms)
    if facet.kind is Kind.LEVELS:
        return f"{terms}, each at {', '.join(level.id for level in facet.levels)}; or {NO_TERM}"
    return f"{terms}, {NOT_APPLICABLE}" if facet.allows_na else terms


def _settable(facets: tuple[Facet, ...]) -> Iterator[tuple[str, Facet, Term | None]]:
    """Yield everything that can be set, by name: each facet, and each term that has levels."""
    for facet in facets:
        yield facet.field, facet, None
        yield from ((term.id, facet, term) for term in facet.terms if facet.kind is Kind.LEVELS)


def _options(
    facets: tuple[Facet, ...], tags: dict[str, Tag], problems: list[TagProblem], prefix: str = ""
) -> Iterator[TyperOption]:
    """The options of some facets, whose values go to `tags`; without a prefix, also those of terms with levels."""
    for name, facet, term in _settable(facets):
        if term and prefix:
            continue

        def callback(
            _context: Any, _option: Any, texts: Sequence[str] | None, facet: Facet = facet, name: str = name
        ) -> None:
            for text in texts or ():
                try:
                    assign(tags, (facet,), name, text)
                except CommandUseError as error:
                    wrong = [error] if name != facet.field else mistakes(facet, text, error)
                    problems.extend(TagProblem(facet.field, one) for one in wrong)

        yield TyperOption(
            param_decls=[f"facet_{prefix}{name}", option_name(f"{prefix}{name}")],
            metavar=metavar_of(facet, term),
            help=f"{(term or facet).definition} [{values_of(facet, term)}]",
            callback=callback,
            multiple=True,
            expose_value=False,
        )


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


def field_metavar(field: RecordField) -> str:
    """Return the form of what the option of a field takes."""
    return "|".join(field.choices) if field.kind is FieldKind.CHOICE else _METAVARS.get(field.kind, "TEXT")


def _field_options(
    record_fields: Sequence[RecordField], values: dict[str, FieldValue], problems: list[TagProblem]
) -> Iterator[TyperOption]:
    """Yield the options of the survey's own fields, whose values go to `values`."""
    for field in record_fields:

        def callback(_context: Any, _option: Any, texts: Sequence[str] | None, field: RecordField = field) -> None:
            for text in texts or ():
                try:
                    if field.name in values:
                        raise CommandUseError(f"{field.name} is given twice", "Give it once.")
                    values[field.name] = read_value(field, text)
                except CommandUseError as error:
                    problems.append(TagProblem(field.name, error))

        yield TyperOption(
            param_decls=[f"field_{field.name}", option_name(field.name)],
            metavar=field_metavar(field),
            help=f"{field.help}{' [required]' if field.required else ''}",
            callback=callback,
            multiple=True,
            expose_value=False,
        )


def command(cls: type[TyperCommand] = TyperCommand) -> Callable[[Callable[..., int]], typer.Typer]:
    """A decorator that makes a command of a function; a parameter that is a named tuple stands for its fields."""

    def decorate(function: Callable[..., int]) -> typer.Typer:
        signature = inspect.signature(function)
        groups: dict[str, Any] = {
            name: parameter.annotation
            for name, parameter in signature.parameters.items()
            if hasattr(parameter.annotation, "_fields")
        }
        parameters = []
        for name, parameter in signature.parameters.items():
            members = [parameter]
            if name in groups:
                types, defaults = groups[name].__annotations__, groups[name]._field_defaults
                members = [
                    parameter.replace(name=field, annotation=types[field], default=defaults[field]) for field in types
                ]
            parameters += [member.replace(kind=inspect.Parameter.KEYWORD_ONLY) for member in members]

        @wraps(function)
        def run(**values: Any) -> int:
            for name, group in groups.items():
                defaults = group._field_defaults
                values[name] = group(*(values.pop(field, defaults.get(field)) for field in group._fields))
            return function(**values)

        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {}
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(cls=cls)(run)
        return app

    return decorate
