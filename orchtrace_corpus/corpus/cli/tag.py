"""`corpus tag`."""

from collections.abc import Mapping
from typing import Annotated

import typer

from orchtrace_corpus.base.commands.options import DryRun, split_names
from orchtrace_corpus.base.errors import CommandUseError, DataFileError
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.corpus.analysis.attributes import exclusion_attributes, paper_attributes
from orchtrace_corpus.corpus.cli.amend import Target, amend, editable
from orchtrace_corpus.corpus.cli.amend import target as find_target
from orchtrace_corpus.corpus.cli.facets import PaperCommand, given, option_name
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.edit.assignments import assignments
from orchtrace_corpus.corpus.edit.edits import as_written, changed
from orchtrace_corpus.corpus.model.record_fields import Value, exclusion_style, paper_style, tag_value
from orchtrace_corpus.corpus.model.records import Paper, Tag
from orchtrace_corpus.corpus.model.taxonomy import Facet, Taxonomy

app = typer.Typer(add_completion=False, rich_markup_mode=None)


class _EvidenceCommand(PaperCommand):
    """A command with an option for every facet of evidence; tags are arguments."""

    def facets(self, taxonomy: Taxonomy) -> tuple[Facet, ...]:
        """None."""
        del taxonomy
        return ()


@app.command(cls=_EvidenceCommand)
def tag(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="KEY", help="A key, exclusion id, arXiv id, DOI or URL.")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[FIELD=VALUE]...", help="The tags to set.", show_default=False)
    ] = None,
    note: Annotated[
        str,
        typer.Option(
            "--evidence", metavar="NOTE", help="Add an item of evidence: what in the source supports the tags."
        ),
    ] = "",
    source: Annotated[str, typer.Option("--evidence-source", metavar="URL", help="Where that is to be seen.")] = "",
    location: Annotated[
        str, typer.Option("--evidence-location", metavar="TEXT", help="Where in it: a page, section or line.")
    ] = "",
    supported: Annotated[
        str,
        typer.Option("--evidence-tags", metavar="A,B,...", help="The fields that it supports (else those being set)."),
    ] = "",
    dry_run: DryRun = False,
) -> int:
    """Set tags of one record.

    "field=term" sets a tag, "field=a,b" one of several terms, "field=NA" says that it does not
    apply, "field=" takes an optional one away. "stop=explicit" sets one level of sub_decisions and
    keeps the others, "stop=" takes it away, "sub_decisions=none" all of them. Nothing is written if
    the edit would bring new errors.

    \b
    Examples:
      corpus tag puppeteer topology=centralized --dry-run
      corpus tag puppeteer stop=explicit spawn=designed --dry-run
      corpus tag E007 stage=full_text_screen --dry-run
    """
    session = CorpusSession(*ctx.obj)
    root = session.writable_root()
    loaded, pool = editable(root)
    target = find_target(loaded, name)
    facets_of_evidence = given(ctx, (), None).evidence
    if not words and not note:
        raise CommandUseError("there is nothing to set", "Write field=value; corpus terms shows the fields.")
    if not note and (source or location or supported or facets_of_evidence):
        hint = "Say with --evidence what in the source supports the tags."
        raise CommandUseError("an item of evidence needs a note", hint)
    taxonomy = pool.taxonomy
    if isinstance(target.record, Paper):
        style, facets, attributes = paper_style(taxonomy), taxonomy.papers, paper_attributes(taxonomy)
    else:
        style, facets, attributes = exclusion_style(taxonomy), taxonomy.exclusions, exclusion_attributes(taxonomy)
    present = as_written(target.file)[target.place]
    changes = assignments(words or [], facets, attributes, present)
    if note:
        if not isinstance(target.record, Paper):
            raise CommandUseError(f"{target.called} is an exclusion, which has a reason instead of evidence")
        fields = _supported(supported, taxonomy) if supported else tuple(changes)
        item = _evidence(fields, note, (source, location), facets_of_evidence, taxonomy)
        changes["evidence"] = [*_items(present, target), item]
    changes = {field: value for field, value in changes.items() if value != present.get(field)}
    texts = {target.name: changed(target.file, target.place, changes, style)}
    return amend(session, root, texts, was=loaded, dry_run=dry_run)


def _supported(names: str, taxonomy: Taxonomy) -> tuple[str, ...]:
    """The fields that an item of evidence is for."""
    known = [facet.field for facet in taxonomy.papers]
    fields = split_names(names)
    for name in fields:
        if name not in known:
            raise CommandUseError(f"unknown axis or facet {quote(name)}{suggestion(name, known)}")
    return fields


def _items(present: Mapping[str, object], target: Target) -> list[Value]:
    """The evidence that a paper has, as it is written."""
    items = present.get("evidence", [])
    if not isinstance(items, list):
        raise DataFileError(f"the evidence of {target.called} is not a list", "Mend it first; see corpus validate.")
    return items


def _evidence(
    fields: tuple[str, ...], note: str, place: tuple[str, str], given_facets: Mapping[str, Tag], taxonomy: Taxonomy
) -> dict[str, Value]:
    """An item of evidence, with all that the taxonomy asks of one."""
    source, location = place
    missing = [] if source else ["source"]
    missing += [facet.field for facet in taxonomy.evidence if facet.required and facet.field not in given_facets]
    if missing:
        options = ", ".join(option_name(f"evidence_{name}") for name in missing)
        raise CommandUseError(f"an item of evidence needs {', '.join(missing)}", f"Add {options}.")
    if not fields:
        raise CommandUseError("an item of evidence names the tags that it supports", "Name them with --evidence-tags.")
    values = {
        facet.field: tag_value(given_facets[facet.field]) for facet in taxonomy.evidence if facet.field in given_facets
    }
    where: dict[str, Value] = {"location": location} if location else {}
    return {"tags": list(fields), "note": note, "source": source, **where, **values}
