"""The commands that count a corpus, and the systems in use: `stats`, `gaps`, `scale`.

Modules that `stats` does not need are imported in functions, since `stats` must start fast.
"""

from collections.abc import Callable, Sequence
from functools import partial

from orchtrace_corpus.base.annotations import Annotated
from orchtrace_corpus.base.commands import options as shared
from orchtrace_corpus.base.commands.declarations import Context, Option
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.layout import Line, line, wrap
from orchtrace_corpus.base.text.table import Table, envelope, markdown, records
from orchtrace_corpus.corpus.analysis.attributes import Attribute, exclusion_attributes, find, paper_attributes
from orchtrace_corpus.corpus.analysis.evidence import EvidenceState, cover, list_tags
from orchtrace_corpus.corpus.analysis.query import Query
from orchtrace_corpus.corpus.analysis.statistics import (
    candidates_by_cell,
    count,
    count_levels,
    coverage,
    cross,
    gap_axes,
    summarise,
)
from orchtrace_corpus.corpus.cli import offers
from orchtrace_corpus.corpus.cli.options import Caption, Reading, Where, With, argument, option
from orchtrace_corpus.corpus.cli.session import CorpusSession, check_caption, paper_query
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.disputes import count_contested
from orchtrace_corpus.corpus.model.records import Pool, ReadingName
from orchtrace_corpus.corpus.model.taxonomy import Kind
from orchtrace_corpus.corpus.render import statistics
from orchtrace_corpus.corpus.render.records import captioned
from orchtrace_corpus.corpus.rules.tags import cannot_arise


def stats(
    ctx: Context,
    names: Annotated[
        list[str] | None,
        argument("[FIELD] [FIELD]", "Count by this field, or by two at once; see --by and --cross.", offers.fields),
    ] = None,
    by: Annotated[list[str] | None, option("--by", "FIELD", "Count by one field (repeatable).", offers.fields)] = None,
    crossed: Annotated[
        tuple[str, str] | None, option("--cross", "A B", "Count by two fields at once.", offers.fields)
    ] = None,
    where: Where = None,
    evidence: Annotated[bool, Option("--evidence", help="Count the evidence for sourced tags, by field.")] = False,
    listed: Annotated[
        EvidenceState | None, Option("--list", help="With --evidence: list the tags of this kind.")
    ] = None,
    screening: Annotated[
        bool, Option("--screening", help="Count the records found, screened and decided on, by run.")
    ] = False,
    full: Annotated[bool, Option("--full", help="All published statistics instead of one page.")] = False,
    reading: Reading = ReadingName.PUBLISHED,
    caption: Caption = "",
    output_format: shared.OutputFormat = Format.TABLE,
) -> int:
    """Count the corpus: one page, one field, or two fields crossed.

    Fields are those of "corpus terms", the sub-decisions by name or code (stop, O5), and those of a record (year,
    venue, ...). Fields of exclusions (stage, source, ...) count exclusions. With --reading sources, counts and filters
    use the tags that readers of the sources agree on (data/disputes.yaml); the published counts are shown beside them.

    --evidence counts the tags, other than NA, of sourced fields: those that need evidence. A tag is "primary" if it has
    evidence from the paper itself, its code or its documentation, "secondary" with other evidence, else "none". By its
    weakest evidence, it is also supported, partly supported or contradicted. --list shows the tags of one of these six
    kinds, with note and source of the evidence.

    --screening counts, from data/searches.yaml, the records that each run identified, those removed before screening
    (found twice, known, refused for errors), screened, excluded, included, and awaiting a decision. Records included
    before all their tags are settled count as "open". Later records that no run found are "added by hand".

    \b
    Examples:
      corpus stats
      corpus stats --screening
      corpus stats reward_family
      corpus stats topology year
      corpus stats --by rl --by tier
      corpus stats --where rl=full --where "year>=2025"
      corpus stats stage
      corpus stats --evidence
      corpus stats --evidence --list contradicted
      corpus stats reward_family --reading sources
      corpus stats --format json
    """
    session = CorpusSession(*ctx.obj)
    check_caption(caption, output_format)
    if names:
        if by or crossed:
            option_name = "--by" if by else "--cross"
            message = f"a field without an option and {option_name} exclude each other"
            first, second = map(printable, (*names, *(by or crossed or ()))[:2])
            separately = f"corpus stats --by {first} --by {second}"
            raise CommandUseError(message, f"To cross two: corpus stats {first} {second}; for each alone: {separately}")
        if len(names) > 2:
            message = f"two fields can be crossed, not {len(names)}"
            raise CommandUseError(message, "For each alone: --by FIELD --by FIELD")
        if len(names) == 1:
            by = names
        else:
            crossed = (names[0], names[1])
    fields = [*(by or ()), *(crossed or ())]
    if by and crossed:
        raise CommandUseError("--by and --cross exclude each other")
    if full and (fields or evidence):
        raise CommandUseError("--full shows all statistics; leave out --by, --cross and --evidence")
    if evidence and (fields or reading is not ReadingName.PUBLISHED):
        message = "--evidence counts what the published tags rest on; leave out --by, --cross and --reading"
        raise CommandUseError(message)
    if caption and (evidence or screening):
        raise CommandUseError("--caption is for counts of fields; leave out --evidence and --screening")
    if screening and (fields or where or evidence or full):
        raise CommandUseError("--screening counts runs of searches; leave out other options but --format")
    if listed and not evidence:
        raise CommandUseError("--list shows tags by their evidence; give it with --evidence")
    if screening:
        return _show_screening(session, output_format)
    as_published = session.pool()
    pool = session.pool_by_reading(as_published, reading, *(where or ()), *fields)
    compared = None if reading is ReadingName.PUBLISHED else as_published  # its counts are shown, too
    query = paper_query(where or [], pool.taxonomy)
    selected = pool._replace(papers=query.select(pool.papers))
    shows_contested = output_format is Format.TABLE and compared is None
    views: dict[Format, Callable[[], str | Sequence[Line]]]
    if evidence:
        rows = cover(selected.papers, pool.taxonomy)
        if not rows:
            raise CommandUseError("no field of the taxonomy is sourced", "Set sourced: true on the fields to count.")
        table = statistics.evidence_table(rows)
        data: dict[str, object] = {"evidence": statistics.evidence_data(rows)}
        if listed is not None:
            table = statistics.listed_table(listed, list_tags(selected.papers, pool.taxonomy, listed))
            data = {"state": listed.value, "tags": records(table)}
        views = {Format.JSON: lambda: envelope("evidence", data)}
        session.show_report(views, lambda: [table], "evidence", output_format)
    elif fields:
        tables = [_cross_table(pool, crossed, query, reading)] if crossed else []
        for name in by or ():
            tables += _count_tables(pool, name, query, compared)
        counts = {table.name: records(table) for table in tables}
        views = {Format.JSON: lambda: envelope("counts", {"reading": reading.value, **counts})}
        session.show_report(views, lambda: captioned(tables, query, caption), "counts", output_format)
        found = [_find_field(pool, name, query) for name in fields]
        paper_fields = [attribute.name for attribute, is_of_papers in found if is_of_papers]
        if shows_contested and (note := _contested_note(session, selected, paper_fields, query)):
            session.output.show([(), *map(line, wrap(note, session.output.width or statistics.PIPE_WIDTH))])
    else:
        count_all = partial(summarise, with_exclusions=not query.filters)
        summary = count_all(selected)
        other = None if compared is None else count_all(pool._replace(papers=query.select(compared.papers)))
        views = {
            Format.JSON: lambda: statistics.summary_json(summary, other),
            Format.CSV: lambda: statistics.summary_csv(summary),
            Format.MARKDOWN: lambda: statistics.summary_markdown(summary, pool.taxonomy.title, other),
        }
        if not full:
            width, glyphs = session.output.width or statistics.PIPE_WIDTH, session.output.glyphs
            note = ""
            if shows_contested:
                facets = [facet.field for facet in pool.taxonomy.papers]
                note = _contested_note(session, selected, facets, query)
            views[Format.TABLE] = lambda: statistics.page(summary, pool.taxonomy, width, glyphs, other, note)
        session.show_report(
            views, lambda: captioned(statistics.summary_tables(summary, other), query, caption), "stats", output_format
        )
    if query.filters and not selected.papers:
        session.note_no_paper(query, as_published, reading)
    return ExitCode.DONE


def _contested_note(session: CorpusSession, pool: Pool, names: Sequence[str], query: Query) -> str:
    """Return a note on the papers with a contested tag in `names` or in the filters; empty if there are none."""
    fields = {*names, *(condition.attribute.name for condition in query.filters)}
    contested = count_contested(pool.papers, session.files.open_tags(), fields, pool.taxonomy)
    return statistics.contested_text(*contested, len(pool.papers), pool.taxonomy.noun)


def _show_screening(session: CorpusSession, output_format: Format) -> int:
    from orchtrace_corpus.corpus.analysis import flow
    from orchtrace_corpus.corpus.render import screening as render

    pool, files = session.pool(), session.files
    runs, protocol = files.searches.require(), files.protocol.require()
    counts = flow.screening(pool, runs, files.candidates.items, protocol)
    session.show_report(
        {Format.JSON: lambda: render.data(counts)},
        lambda: render.tables(counts, turned=output_format is Format.TABLE),
        "screening",
        output_format,
    )
    return ExitCode.DONE


def _count_tables(pool: Pool, name: str, query: Query, published: Pool | None) -> list[Table]:
    """Return the tables of counts by one field; `published` has the published tags, if `pool` has other ones."""
    attribute, is_of_papers = _find_field(pool, name, query)
    if not is_of_papers:
        return statistics.counts_tables(count(pool.exclusions, attribute))
    papers = query.select(pool.papers)
    facet = attribute.facet
    if facet is not None and facet.kind is Kind.LEVELS and facet.field == attribute.name:
        table = statistics.levels_table(count_levels(papers, facet))
        return [table if published is None else _with_sources_title(table)]
    published_counts = None if published is None else count(query.select(published.papers), attribute)
    return statistics.counts_tables(count(papers, attribute), published_counts)


def _cross_table(pool: Pool, names: tuple[str, str], query: Query, reading: ReadingName) -> Table:
    rows, rows_are_of_papers = _find_field(pool, names[0], query)
    columns, columns_are_of_papers = _find_field(pool, names[1], query)
    if rows_are_of_papers != columns_are_of_papers:
        raise CommandUseError(f"{rows.name} and {columns.name} cannot be crossed: one is a field of exclusions")
    records = query.select(pool.papers) if rows_are_of_papers else pool.exclusions
    table = statistics.crosstab_table(cross(records, rows, columns))
    return table if reading is ReadingName.PUBLISHED else _with_sources_title(table)


def _with_sources_title(table: Table) -> Table:
    """Return the table with a title that says that it counts the tags on which readers of the sources agree."""
    return table._replace(title=f"{table.title}: {statistics.SOURCES_NOUN}")


def _find_field(pool: Pool, name: str, query: Query) -> tuple[Attribute, bool]:
    """Return the field with a name, and True if it is a field of papers; theirs take precedence over exclusions'."""
    papers, exclusions = paper_attributes(pool.taxonomy, contested=True), exclusion_attributes(pool.taxonomy)
    if name not in papers and name in exclusions:
        if query.filters:
            raise CommandUseError(f"--where filters {pool.taxonomy.noun.many}, but {name} is a field of exclusions")
        return exclusions[name], False
    return find(name, {**exclusions, **papers}), True


def gaps(
    ctx: Context,
    rows: Annotated[str, argument("[ROWS]", "The first axis.", offers.vocabularies)] = "",
    columns: Annotated[str, argument("[COLUMNS]", "The second axis.", offers.vocabularies)] = "",
    sparse: Annotated[int, Option("--sparse", min=1, help="A cell with up to this many papers is sparse.")] = 2,
    where: Where = None,
    reading: Reading = ReadingName.PUBLISHED,
    with_records: With = None,
    caption: Caption = "",
    output_format: shared.OutputFormat = Format.TABLE,
) -> int:
    """Show which cells of two axes are empty or sparse.

    Without arguments, shows the first pair that the taxonomy crosses. Any field with a vocabulary can be an axis,
    including a single sub-decision, with its levels as values.

    Cells that a rule of the taxonomy forbids are marked x. The other empty and sparse cells are ranked by how far they
    fall below the number of papers expected if the two tags were independent. Each is listed with papers of the nearest
    cells that have papers. With --reading sources, counts and filters use the tags on which readers of the sources
    agree (data/disputes.yaml). --with candidates names the candidates proposed for inclusion that have both tags; "?"
    marks those of which one of these tags is open, but chosen by a reader.

    \b
    Examples:
      corpus gaps
      corpus gaps --with candidates
      corpus gaps topology credit_unit
      corpus gaps stop reward_family --where rl=full
      corpus gaps --format csv
    """
    from orchtrace_corpus.corpus.render import coverage as render

    session = CorpusSession(*ctx.obj)
    check_caption(caption, output_format)
    as_published = session.pool()
    axes = gap_axes(rows, columns, as_published.taxonomy)
    pool = session.pool_by_reading(as_published, reading, *(where or ()))
    query = paper_query(where or [], pool.taxonomy)
    papers = query.select(pool.papers)
    if not papers:
        session.note_no_paper(query, as_published, reading)
        return ExitCode.DONE
    impossible = cannot_arise(pool.taxonomy, *axes)
    cells = coverage(papers, *axes, sparse_limit=sparse, impossible=impossible)
    cells = cells._replace(reading=reading, noun=pool.taxonomy.noun)
    if with_records:
        from orchtrace_corpus.corpus.model.candidates import select_proposed

        proposed = select_proposed(session.files.candidates.require())
        matching = [candidate for candidate in proposed if query.matches(candidate.paper)]
        cells = cells._replace(candidates=candidates_by_cell(matching, *axes))
    note = ""
    if output_format is Format.TABLE and reading is ReadingName.PUBLISHED:
        names = [axis.name for axis in axes]
        note = _contested_note(session, pool._replace(papers=papers), names, query)
    views: dict[Format, Callable[[], str | Sequence[Line]]] = {
        Format.TABLE: lambda: render.page(cells, session.output.width, session.output.glyphs, note),
        Format.MARKDOWN: lambda: "\n".join(map(markdown, render.document(cells))),
        Format.JSON: lambda: render.json(cells),
    }
    tables = render.document(cells) if output_format is Format.LATEX else (render.table(cells),)
    session.show_report(views, lambda: captioned(tables, query, caption), "gaps", output_format)
    return ExitCode.DONE


def scale(ctx: Context, output_format: shared.OutputFormat = Format.TABLE) -> int:
    """Compare the size of deployed systems with that of experiments.

    From data/scale.yaml: how many agents run together, and other published figures. Vendors' numbers are unverified
    reports; "unknown" means that no number was found. The sizes that vendors report are compared with those of open
    evaluations; neither come from verified training traces.

    \b
    Examples:
      corpus scale
      corpus scale --format markdown
      corpus scale --format csv
    """
    from orchtrace_corpus.corpus.render import scale as render

    session = CorpusSession(*ctx.obj)
    if not session.files.has(store.SCALE):
        raise DataFileError(f"this corpus has no {store.SCALE}", "docs/data.md of orchtrace-corpus describes its form.")
    session.pool()  # reports the errors of the records first
    observations = session.files.scale.require()
    session.show_report(
        {
            Format.TABLE: lambda: render.page(observations, session.output.width, session.output.glyphs),
            Format.MARKDOWN: lambda: render.document(observations),
            Format.JSON: lambda: render.data(observations),
        },
        lambda: [render.all_table(observations)],
        "scale",
        output_format,
    )
    if output_format is Format.TABLE and session.files.has(store.CLAIMS):
        ids = [claim.id for claim in session.files.claims.claims if claim.observations]
        if ids:
            session.output.note(f"Claims about these numbers: corpus claims {' '.join(ids)}")
    return ExitCode.DONE
