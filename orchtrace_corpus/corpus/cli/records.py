"""The commands that show records: `list`, `readings`, `candidates`, `show`, `search`."""

from collections import Counter
from collections.abc import Sequence

from orchtrace_corpus.base.annotations import TYPE_CHECKING, Annotated
from orchtrace_corpus.base.commands.declarations import Argument, Context, Option
from orchtrace_corpus.base.commands.options import OutputFormat, split_names
from orchtrace_corpus.base.errors import CommandUseError, DataFileError, ExitCode
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.text import Format
from orchtrace_corpus.base.text.layout import clip, pluralize
from orchtrace_corpus.base.text.table import Table, arranged, envelope
from orchtrace_corpus.corpus.analysis.attributes import (
    CONTESTED,
    candidate_attributes,
    exclusion_attributes,
    find_all,
    paper_attributes,
)
from orchtrace_corpus.corpus.analysis.query import parse
from orchtrace_corpus.corpus.cli import offers, options
from orchtrace_corpus.corpus.cli.options import Caption, Columns, Reading, Sort, Where, argument
from orchtrace_corpus.corpus.cli.session import CorpusSession, check_caption, paper_query
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.disputes import pool_as_read, tag_changes
from orchtrace_corpus.corpus.model.records import ReadingName, Record
from orchtrace_corpus.corpus.render.records import captioned, listing, whole_mapping, with_matches, with_published

if TYPE_CHECKING:
    from orchtrace_corpus.corpus.analysis.reading_order import Score
    from orchtrace_corpus.corpus.model.candidates import Candidate

MATCHED = "matched"
"""The column of a search that names the fields in which words were found."""
_PIPE_WIDTH = 80
_KEY_WIDTH = 30
"""The width of keys in a narrow terminal; longer keys are cut."""
_WIDE = 100
"""The width of a terminal from which lists have columns besides key, title and the fields of filters."""
_WIDTH_FOR_KEYS = 60
"""The width of a terminal from which a search shows whole keys."""


def list_records(
    ctx: Context,
    where: Where = None,
    exclusions: Annotated[bool, Option("--exclusions", help="List exclusions instead of papers.")] = False,
    sort: Sort = "",
    columns: Columns = "",
    limit: options.Limit = None,
    reading: Reading = ReadingName.PUBLISHED,
    caption: Caption = "",
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """List papers or exclusions that match filters.

    Wide columns are cut to fit a terminal, but not in a pipe. "corpus terms" lists the fields and their terms;
    "--columns all" shows every field. JSON without --columns contains whole records. A comma separates
    alternatives; quote a value that contains one. Tags used in filters are shown as columns; with a filter on tags,
    those that are contested are marked. The field "contested" names the contested tags. A filter on "contested"
    with --reading sources shows the tags on which readers of the sources agree, and what was published.

    \b
    Examples:
      corpus list --where credit_unit=message
      corpus list --where stop=explicit,implicit --columns key,stop,title
      corpus list --where "title~debate" --where "year>=2025" --sort -year
      corpus list --where "arxiv_id=" --format json
      corpus list --where 'authors="Liu, Shuo"'
      corpus list --columns all --format csv
      corpus list --where credit_unit=team --reading sources
      corpus list --where contested=stop --columns key,stop,contested
      corpus list --exclusions --where stage=full_text_screen
    """
    session = CorpusSession(*ctx.obj)
    check_caption(caption, output_format)
    as_published = session.pool()
    taxonomy = as_published.taxonomy
    if exclusions:
        attributes = exclusion_attributes(taxonomy)
        query = parse(where or [], attributes)
        names = ["id"]
        if output_format is not Format.TABLE:
            names += (facet.field for facet in taxonomy.exclusions)
    else:
        attributes = paper_attributes(taxonomy, contested=True)
        query = paper_query(where or [], taxonomy)
        names = ["key", "year"]
        is_narrow = output_format is Format.TABLE and (session.output.width or _WIDE) < _WIDE
        if not is_narrow or not any(condition.attribute.terms for condition in query.filters):
            names += (axis.field for axis in taxonomy.axes if axis.kind != "levels")
    # Fields with terms, and the survey's own fields, become columns if a filter is on them.
    survey_fields = {field.name for field in taxonomy.fields}
    filtered_attributes = [condition.attribute for condition in query.filters]
    filtered = [
        attribute.name for attribute in filtered_attributes if attribute.terms or attribute.name in survey_fields
    ]
    # A filter on `contested` compares the tags of the sources with the published ones, also in columns.
    shows_changes = reading is ReadingName.SOURCES and CONTESTED in filtered
    if shows_changes:
        for condition in query.filters:
            if condition.attribute.name == CONTESTED:
                filtered += (field for field in condition.alternatives if field in attributes)
    has_whole_records = output_format is Format.JSON and not columns
    is_for_people = output_format not in (Format.JSON, Format.CSV)
    needs_contested = not exclusions and (bool(filtered) or has_whole_records or columns == "all")
    pool = session.pool_by_reading(as_published, reading, columns, sort, CONTESTED if needs_contested else "")
    if shows_changes:  # with the contested tags as published, so that even those on which readers agree are listed
        pool = pool_as_read(session.files.with_contested(as_published), session.files.disputes.require(), reading)
    names += filtered
    if not is_for_people and any(paper.contested for paper in pool.papers):
        names.append(CONTESTED)
    names = [*dict.fromkeys(names), "title"]
    if exclusions:
        names.append("reason")
    if columns and columns != "all":
        names = ["id" if exclusions and name == "key" else name for name in split_names(columns)]
    shown = tuple(attributes.values()) if columns == "all" else find_all(names, attributes, "column")
    records: Sequence[Record] = query.select(pool.exclusions) if exclusions else query.select(pool.papers)
    total = len(records)
    if sort:
        from orchtrace_corpus.corpus.analysis.search import sort_records

        records = sort_records(records, sort, attributes)
    records = records[:limit]
    if has_whole_records:
        session.output.write(envelope("list", {"records": [whole_mapping(record) for record in records]}))
    else:
        # The columns in which contested tags get a question mark.
        marked = [attribute.name for attribute in shown] if is_for_people and filtered else ()
        table = listing("exclusions" if exclusions else "papers", records, shown, marked=marked)
        if shows_changes and is_for_people:
            changed = tag_changes(as_published, session.files.disputes.require())
            table = with_published(table, [record.name for record in records], changed)
        session.show_tables(captioned([table._replace(wrapped="reason")], query, caption), "list", output_format)
        min_width = len(shown) * 6  # narrower columns cannot be read
        if output_format is Format.TABLE and min_width > (session.output.width or min_width):
            session.output.note(f"corpus: {len(shown)} columns are too many for this terminal; use --format csv")
    left_out = f", {len(records)} shown" if len(records) < total else ""
    shown_total = pluralize(total, "exclusion") if exclusions else taxonomy.noun.counted(total)
    session.output.note(f"{shown_total}{left_out}")
    if query.filters and not total and not exclusions:
        session.note_no_paper(query, as_published, reading)
    if not records and any(", " in text for text in where or ()):
        session.output.note("A comma separates alternatives; for one inside a value write: --where 'field=\"a, b\"'")
    return ExitCode.DONE


def readings(
    ctx: Context,
    keys: Annotated[list[str] | None, argument("[KEY]...", "Only these papers.", offers.keys)] = None,
    where: Where = None,
    sort: Sort = "",
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """List the tags for which readers agree on another value.

    Each row is a tag of data/disputes.yaml for which independent readers agree on another value than the published
    one: it shows the published value, and the value that "--reading sources" of other commands uses; "none" means
    that a decision does not arise. For contested tags without a row, readers do not agree, or agree on the
    published value. "corpus show KEY" shows the readings with their reasons.

    \b
    Examples:
      corpus readings
      corpus readings puppeteer
      corpus readings --where credit_unit=team --format csv
    """
    from orchtrace_corpus.corpus.edit.proposal import find_papers  # `list` starts without it

    session = CorpusSession(*ctx.obj)
    if keys and where:
        raise CommandUseError("keys name the papers of the list", "Leave out --where.")
    as_published = session.pool()
    pool = session.pool_by_reading(as_published, ReadingName.PUBLISHED, *(where or ()))
    query = paper_query(where or [], pool.taxonomy)
    selected_papers = find_papers(pool, keys) if keys else query.select(pool.papers)
    selected = pool._replace(papers=selected_papers)
    changed = tag_changes(selected, session.files.disputes.require())
    table = Table("readings", "", ("paper", "field", "published", "sources"), tuple(map(tuple, changed)), uncut="paper")
    table = arranged(table, (), sort)
    session.show_tables(captioned([table], query), "readings", output_format)
    papers = pool.taxonomy.noun.counted(len({change.paper for change in changed}))
    session.output.note(f"{pluralize(len(changed), 'tag')} of {papers} read otherwise")
    if query.filters and not selected.papers:
        session.note_no_paper(query, as_published, ReadingName.PUBLISHED)
    return ExitCode.DONE


def candidates(
    ctx: Context,
    where: Where = None,
    sort: Sort = "",
    columns: Columns = "",
    order: options.Order = None,
    limit: options.Limit = None,
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """List the papers that were found and await a decision.

    Lists data/candidates.yaml, sorted by the proposed decision. A tag is settled if its readers agree, else open:
    "--where open~stop". "corpus show KEY" shows the reason and every reading, "corpus add KEY" and "corpus exclude
    KEY" decide on a candidate, "corpus screen" goes through all. "--order likely" needs the extra "screen": a
    classifier learns from titles and stored abstracts of papers and exclusions, and each rank is shown with the
    words that led to it. docs/discovery.md measures how well each order works.

    \b
    Examples:
      corpus candidates
      corpus candidates --where proposal=unclear --columns key,reason
      corpus candidates --where credit_unit=orchestrator --where query_family=orchestration
      corpus candidates --where "found>=2026-11-01" --format csv
      corpus candidates --order date --where proposal=unread
    """
    session = CorpusSession(*ctx.obj)
    pool = session.pool_despite_errors()
    file = session.files.candidates
    if file.is_missing:
        raise DataFileError(f"this corpus has no {store.CANDIDATES}", "docs/data.md of orchtrace-corpus describes it.")
    from orchtrace_corpus.corpus.analysis import search as lookup
    from orchtrace_corpus.corpus.model.candidates import Decision
    from orchtrace_corpus.corpus.render import candidates as render

    attributes = candidate_attributes(pool.taxonomy)
    query = parse(where or [], attributes)
    if order and sort:
        raise CommandUseError("--order and --sort contradict each other", "Give one of them.")
    selected = lookup.sort_records(query.select(file.items), sort or "proposal", attributes)
    scores: tuple[Score, ...] = ()
    if order:
        from orchtrace_corpus.corpus.intake import screening

        selected, scores = screening.order_candidates(
            selected, pool, session.files.arxiv, likely=order is options.ReadingOrder.LIKELY
        )
    is_narrow = output_format is Format.TABLE and not columns and (session.output.width or _WIDE) < _WIDE
    first_columns = ("key",) if is_narrow else ("key", "year", "proposal")
    filtered = (condition.attribute.name for condition in query.filters if condition.attribute.terms)
    names = split_names(columns) if columns else tuple(dict.fromkeys((*first_columns, *filtered, "title")))
    shown = tuple(attributes.values()) if columns == "all" else find_all(names, attributes, "column")
    records = selected[:limit]
    if output_format is Format.JSON and not columns:
        session.output.write(envelope("candidates", {"records": render.cards_data((), records)}))
    elif is_narrow and not sort and not order:
        tables = []
        for proposal in Decision:
            if group := [record for record in records if record.proposal is proposal]:
                table = render.listing(group, shown, proposal.value)
                rows = tuple((clip(str(row[0]), _KEY_WIDTH), *row[1:]) for row in table.rows)
                tables.append(table._replace(rows=rows))
        session.show_tables(tables, "candidates", output_format)
    else:
        session.show_tables([render.listing(records, shown, scores=scores)], "candidates", output_format)
    by_proposal = Counter(candidate.proposal.value for candidate in selected).most_common()
    message = pluralize(len(selected), "candidate")
    if by_proposal:
        message += f" ({', '.join(f'{count} {proposal}' for proposal, count in by_proposal)})"
    if len(records) < len(selected):
        message += f", {len(records)} shown"
    session.output.note(message)
    return ExitCode.DONE


def show_records(session: CorpusSession, names: list[str], output_format: Format) -> list[Record]:
    """Show the papers, exclusions and candidates with these names, and return those that are not candidates."""
    from orchtrace_corpus.corpus.analysis import search as lookup
    from orchtrace_corpus.corpus.render import candidates as render

    pool = session.pool_despite_errors()
    records: list[Record] = []
    found_candidates: list[Candidate] = []
    candidates = session.files.candidates.items
    candidate_pool = pool._replace(papers=tuple(candidate.paper for candidate in candidates), exclusions=())
    for name in names:
        matches = lookup.find_records(pool, name)
        keys = {record.name for record in lookup.find_records(candidate_pool, name)}
        if not matches and not keys:
            all_records = pool._replace(papers=(*pool.papers, *candidate_pool.papers))
            raise CommandUseError(f"no record {quote(name)}", lookup.describe_nearest_records(all_records, name))
        records += [record for record in matches if record not in records]
        for candidate in candidates:
            if candidate.name in keys and candidate not in found_candidates:
                found_candidates.append(candidate)
    disputes = session.files.disputes.items
    session.show_report(
        {
            Format.JSON: lambda: envelope(
                "records", {"records": render.cards_data(records, found_candidates, disputes)}
            ),
            Format.MARKDOWN: lambda: render.cards_markdown(records, found_candidates, pool.taxonomy, disputes),
            Format.TABLE: lambda: render.cards(
                records, found_candidates, pool.taxonomy, session.output.width, disputes
            ),
        },
        lambda: [render.cards_table(records, found_candidates, disputes)],
        "records",
        output_format,
    )
    return records


def search(
    ctx: Context,
    words: Annotated[list[str], Argument(metavar="WORDS...", help="Words to look for.")],
    where: Where = None,
    sort: Sort = "",
    columns: Columns = "key,year,matched,title",
    show_all: Annotated[
        bool, Option("--all", help="Also show records with a word only in a field's name or meaning.")
    ] = False,
    reading: Reading = ReadingName.PUBLISHED,
    output_format: OutputFormat = Format.TABLE,
) -> int:
    """Find records by words.

    Searches titles, tags and their definitions, summaries, methods, evidence, notes, names and identifiers; the
    column "matched" shows where words were found. Case, accents and endings do not matter: "stopping" finds "stop".
    Shows the records with every word, best first, or if there are none, those with most of the words. Records with
    a word only in the name or definition of a field are just counted; --all shows them, too. Without filters,
    exclusions and candidates are searched, too; CSV contains papers only.

    \b
    Examples:
      corpus search stopping
      corpus search "reward shaping" GRPO
      corpus search tree search --where scenario=coding
      corpus search mialon --columns key,authors
    """
    from orchtrace_corpus.corpus.analysis import search as lookup

    session = CorpusSession(*ctx.obj)
    if not any(character.isalnum() for word in words for character in word):
        raise CommandUseError("name at least one word to look for")
    as_published = session.pool_despite_errors()
    names = split_names(columns)
    contested = CONTESTED if MATCHED in names else ""  # a match can be in a contested tag, which is marked
    pool = session.pool_by_reading(as_published, reading, columns, sort, *(where or ()), contested)
    attributes = paper_attributes(pool.taxonomy, contested=True)
    shown = find_all([name for name in names if name != MATCHED], attributes, "column")
    candidates = () if where else session.files.candidates.items
    query = paper_query(where or [], pool.taxonomy)
    selected = query.select(pool.papers)
    searched = pool._replace(papers=selected, exclusions=() if where else pool.exclusions)
    results = lookup.search(searched, candidates, words)
    all_hits = [hit for hits in results for hit in hits]
    if any(hit.missing for hit in all_hits):
        session.output.note("corpus: no record holds every word; these hold the most")
    paper_hits, exclusion_hits, candidate_hits = results
    direct = (lookup.direct_hits(paper_hits), lookup.direct_hits(exclusion_hits), lookup.direct_hits(candidate_hits))
    if output_format is Format.TABLE and not show_all and any(direct):
        paper_hits, exclusion_hits, candidate_hits = direct
    if sort:
        order = lookup.sort_records([hit.record for hit in paper_hits], sort, attributes)
        paper_hits = tuple(sorted(paper_hits, key=lambda hit: order.index(hit.record)))
    is_narrow = (session.output.width or _PIPE_WIDTH) < _WIDTH_FOR_KEYS
    tables = []
    if paper_hits or output_format is not Format.TABLE:
        table = listing("papers", [hit.record for hit in paper_hits], shown)
        table = table._replace(uncut="" if is_narrow else "key")  # the column that is never cut
        if MATCHED in names:
            table = with_matches(table, paper_hits, names.index(MATCHED))
        tables.append(table)
    if output_format is not Format.CSV and (exclusion_hits or output_format is Format.JSON):
        exclusion_columns = find_all(("id", "title", "reason"), exclusion_attributes(pool.taxonomy))
        table = listing("exclusions", [hit.record for hit in exclusion_hits], exclusion_columns, "Excluded")
        tables.append(with_matches(table, exclusion_hits, 1)._replace(wrapped="reason"))
    if output_format is not Format.CSV and candidate_hits:
        from orchtrace_corpus.corpus.render import candidates as render

        candidate_columns = find_all(("key", "proposal", "title"), candidate_attributes(pool.taxonomy))
        table = render.listing([hit.record for hit in candidate_hits], candidate_columns, "Candidates")
        if not is_narrow or output_format is not Format.TABLE:
            table = with_matches(table, candidate_hits, 2)
        tables.append(table)
    session.show_tables(tables, "search", output_format)
    noun = pool.taxonomy.noun
    counts = [noun.counted(len(paper_hits))]
    if exclusion_hits:
        counts.append(pluralize(len(exclusion_hits), "exclusion"))
    if candidate_hits:
        counts.append(pluralize(len(candidate_hits), "candidate"))
    session.output.note(" and ".join(part for part in (", ".join(counts[:-1]), counts[-1]) if part))
    if hidden_count := len(all_hits) - len(paper_hits) - len(exclusion_hits) - len(candidate_hits):
        session.output.note(f"corpus: {hidden_count} more only by the name or meaning of a tag's field; see --all")
    # Similar words are suggested unless every word was found as it is written, not only by its stem.
    matches = [match for hit in all_hits for match in hit.matches]
    found_words = {match.word for match in matches}
    missing_words = {word for hit in all_hits for word in hit.missing}
    has_all = matches and found_words | missing_words <= {match.word for match in matches if match.is_same}
    near = lookup.near_words(searched, candidates, words, found_words) if selected and not has_all else ()
    remarks = []
    if not all_hits:
        records = f"{noun.one} that passes the filters" if where else f"{noun.one}, exclusion or candidate"
        remarks.append(f"no {records} holds these words")
    if near:
        remarks.append(f"did you mean: {', '.join(near)}?")
    if remarks and selected:
        session.output.note(f"corpus: {'; '.join(remarks)}")
    if where and not selected:
        session.note_no_paper(query, as_published, reading)
    return ExitCode.DONE
