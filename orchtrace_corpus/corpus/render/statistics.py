"""Statistics as tables, documents, JSON and CSV."""

from collections.abc import Sequence

from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.base.text.table import Cell, Missing, Table, csv, envelope, markdown, markdown_text, records
from orchtrace_corpus.corpus.analysis.evidence import EvidenceCoverage, EvidenceState, ListedTag
from orchtrace_corpus.corpus.analysis.statistics import Counts, Crosstab, LevelCounts, Summary
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.records import ReadingName

SOURCES_NOUN = "reading of the sources"
SOURCES_TITLE = SOURCES_NOUN.capitalize()
"""What heads a report on the tags that readers of the sources agree on."""

ABSENT_LABEL = Missing.ABSENT.value
"""How people see that a record has no value."""


def counts_tables(counts: Counts, published: Counts | None = None) -> list[Table]:
    """Counts by an attribute, and by family where terms share codes; beside those as published, if they are given."""
    name = counts.attribute.name
    terms = {term.id: term for term in counts.attribute.terms}
    has_codes = any(term.code for term in terms.values())
    rows: list[tuple[Cell, ...]] = []
    others = {} if published is None else published.counts
    # A value may occur in one reading only; those of a vocabulary keep its order.
    values = {value: None for value in terms if value in counts.counts or value in others} | counts.counts | others
    for value in values:
        term = terms.get(value)
        number = counts.counts.get(value, 0)
        code = ((term.code if term else "") or None,) if has_codes else ()
        beside = () if published is None else (others.get(value, 0),)
        rows.append((value or Missing.ABSENT, *code, number, _share(number, counts.total), *beside))
    further = () if published is None else (ReadingName.PUBLISHED.value,)
    title = counts.attribute.label if published is None else f"{counts.attribute.label}: {SOURCES_NOUN}"
    columns = (name, *(("code",) if has_codes else ()), "count", "share_percent", *further)
    notes: tuple[str, ...] = ()
    if sum(counts.counts.values()) > counts.total:
        notes = (f"A record with several values counts under each; {counts.total} records in all.",)
    tables = [Table(name, title, columns, tuple(rows), notes)]
    if counts.families:
        families = {} if published is None else published.families
        family_rows = tuple(
            (code, number, _share(number, counts.total), *((families[code],) if families else ()))
            for code, number in counts.families.items()
        )
        title = f"{counts.attribute.label}, by code"
        tables.append(Table(f"{name}_codes", title, ("code", "count", "share_percent", *further), family_rows))
    return tables


def levels_table(levels: LevelCounts) -> Table:
    """The terms of a facet of kind `levels`, by level."""
    facet = levels.facet
    ids = [level.id for level in facet.levels]
    has_codes = any(term.code for term in facet.terms)
    rows: list[tuple[Cell, ...]] = []
    for term in facet.terms:
        numbers = [levels.counts[term.id][level] for level in ids]
        rows.append((term.id, *((term.code,) if has_codes else ()), *numbers, levels.total - sum(numbers)))
    columns = (facet.field, *(("code",) if has_codes else ()), *ids, "absent")
    notes = ("absent: records that do not have the term.",)
    return Table(facet.field, f"{facet.label}, by level", columns, tuple(rows), notes)


def levels_matrix(levels: LevelCounts) -> Table:
    """Return the level of every term for each record that has the facet."""
    terms = [term.id for term in levels.facet.terms]
    rows = tuple((name, *(tag.get(term, "") for term in terms)) for name, tag in levels.by_record.items())
    title = f"{levels.facet.label}, by record"
    return Table(f"{levels.facet.field}_by_record", title, ("key", *terms), rows, whole="key")


def crosstab_table(crosstab: Crosstab) -> Table:
    """Two attributes against each other, with totals of records in the last column."""
    columns = tuple(value or ABSENT_LABEL for value in crosstab.column_values)
    rows: list[tuple[Cell, ...]] = []
    for row in crosstab.row_values:
        numbers = [crosstab.number(row, column) for column in crosstab.column_values]
        rows.append((row or Missing.ABSENT, *numbers, sum(numbers)))
    return Table(crosstab_name(crosstab), crosstab_title(crosstab), (crosstab.rows.name, *columns, "sum"), tuple(rows))


def typical_table(crosstab: Crosstab) -> Table | None:
    """Return how often the columns' term is the one that the survey expects; None where it expects none."""
    rows: list[tuple[Cell, ...]] = []
    totals = [0, 0, 0]
    for term in crosstab.rows.terms:
        typical = term.typical_of(crosstab.columns.name)
        numbers = {value: crosstab.number(term.id, value) for value in crosstab.column_values}
        rated = {value: number for value, number in numbers.items() if number and value not in ("", NOT_APPLICABLE)}
        records = sum(rated.values())
        if typical:
            others = {value: number for value, number in rated.items() if value not in typical}
            counted = (records, records - sum(others.values()), sum(others.values()))
            totals = [total + number for total, number in zip(totals, counted, strict=True)]
            instead = ", ".join(f"{value} {number}" for value, number in others.items())
            rows.append((term.id, ", ".join(typical), *counted, instead))
        elif term.id != NOT_APPLICABLE:
            rows.append((term.id, "not named", records, None, None, ""))
    if not any(term.typical_of(crosstab.columns.name) for term in crosstab.rows.terms):
        return None
    rows.append(("sum of those named", "", *totals, ""))
    label = crosstab.columns.label.lower()
    notes = (f"typical: the {label} that the survey expects; records to which none applies are left out.",)
    title = f"{crosstab.rows.label}: typical {label}"
    columns = (crosstab.rows.name, "typical", "records", "as_typical", "deviating", "instead")
    return Table(f"{crosstab_name(crosstab)}_typical", title, columns, tuple(rows), notes)


def crosstab_name(crosstab: Crosstab) -> str:
    """What programs call a cross-tabulation."""
    return f"{crosstab.rows.name}_by_{crosstab.columns.name}"


def crosstab_title(crosstab: Crosstab) -> str:
    """What people call a cross-tabulation."""
    return f"{crosstab.rows.label} by {crosstab.columns.label}"


def cells(crosstab: Crosstab) -> dict[str, dict[str, int]]:
    """The counts of a cross-tabulation by row, then by column, zeros included."""
    return {
        row: {column: crosstab.number(row, column) for column in crosstab.column_values} for row in crosstab.row_values
    }


def summary_tables(summary: Summary, published: Summary | None = None) -> list[Table]:
    """All published statistics, one table each; counts of tags beside those as published, if they are given."""
    beside = {counts.attribute.name: counts for counts in (() if published is None else published.facets)}
    tables = [
        table
        for counts in (*summary.axes, *summary.descriptions)
        for table in counts_tables(counts, beside.get(counts.attribute.name))
    ]
    for levels in summary.levels:
        tables += [levels_table(levels), *([levels_matrix(levels)] if levels.by_record else [])]
    tables += counts_tables(summary.years)
    tables += [crosstab_table(crosstab) for crosstab in summary.crosstabs]
    tables += filter(None, map(typical_table, summary.crosstabs))
    for counts in summary.exclusions:
        title = f"Exclusions: {counts.attribute.label}"
        tables.append(counts_tables(counts)[0]._replace(name=f"exclusion_{counts.attribute.name}", title=title))
    return [*tables, *([evidence_table(summary.evidence)] if summary.evidence else [])]


def evidence_table(rows: Sequence[EvidenceCoverage]) -> Table:
    """How far the tags of each sourced field are covered by evidence."""
    notes = (
        "Each tag other than NA counts once in primary, secondary or none, by its best source.",
        "It also counts once in supported, partly, contradicted or none, by the evidence that supports it least.",
    )
    return Table("evidence", "Evidence for the tags", EvidenceCoverage._fields, tuple(rows), notes)


def evidence_data(rows: Sequence[EvidenceCoverage]) -> dict[str, dict[str, int]]:
    """The same for programs, by field."""
    return {row.field: dict(zip(row._fields[1:], row[1:], strict=True)) for row in rows}


def listed_table(state: EvidenceState, listed: Sequence[ListedTag]) -> Table:
    """The tags in a state of evidence: a row for each item that puts them there."""
    rows: list[tuple[Cell, ...]] = []
    for paper, field, items in listed:
        value = paper.tags[field]
        tag = value if isinstance(value, (str, tuple)) else tuple(f"{term} {level}" for term, level in value.items())
        rows += [(paper.key, field, tag, item.note, item.source) for item in items] or [(paper.key, field, tag, "", "")]
    return Table("tags", f"Tags: {state}", ("key", "field", "tag", "note", "source"), tuple(rows), whole="key")


def listed_json(state: EvidenceState, listed: Sequence[ListedTag]) -> str:
    """The same as a document for programs."""
    table = listed_table(state, listed)
    return envelope("evidence", {"state": state.value, "tags": records(table)})


def evidence_json(rows: Sequence[EvidenceCoverage]) -> str:
    """The same as a document for programs."""
    return envelope("evidence", {"evidence": evidence_data(rows)})


def summary_markdown(summary: Summary, title: str, published: Summary | None = None) -> str:
    """All statistics as a document; arguments as for `summary_tables`."""
    head = f"# {markdown_text(title)}\n\n{markdown_text(totals(summary))}\n"
    return "\n".join((head, *(markdown(table) for table in summary_tables(summary, published))))


def counts_json(tables: Sequence[Table], reading: ReadingName) -> str:
    """Counts by some fields for programs, with the reading that they are by."""
    return envelope("counts", {"reading": reading.value, **{table.name: records(table) for table in tables}})


def summary_json(summary: Summary, published: Summary | None = None) -> str:
    """All statistics for programs: every count by its term; absence counts under the empty string.

    Args:
        summary: The statistics.
        published: Those of the tags as published, where these are by the reading of the sources.
    """
    beside = {} if published is None else {counts.attribute.name: counts.counts for counts in published.facets}
    return envelope(
        "stats",
        {
            "reading": (ReadingName.PUBLISHED if published is None else ReadingName.SOURCES).value,
            "papers": summary.papers,
            "exclusions": summary.excluded,
            "records": None if summary.excluded is None else summary.papers + summary.excluded,
            "newest": summary.newest or None,
            "counts": {counts.attribute.name: counts.counts for counts in (*summary.facets, summary.years)},
            "codes": {counts.attribute.name: counts.families for counts in summary.facets if counts.families},
            "levels": {levels.facet.field: levels.counts for levels in summary.levels},
            "crosstabs": {crosstab_name(crosstab): cells(crosstab) for crosstab in summary.crosstabs},
            "exclusion_counts": {counts.attribute.name: counts.counts for counts in summary.exclusions},
            "typical": {table.name: records(table) for table in filter(None, map(typical_table, summary.crosstabs))},
            "evidence": evidence_data(summary.evidence),
            **({"published_counts": beside} if beside else {}),
        },
    )


def summary_csv(summary: Summary) -> str:
    """All statistics in one long table: statistic, value, second value of a pair, count."""
    rows: list[tuple[Cell, ...]] = [("papers", "", "", summary.papers)]
    if summary.excluded is not None:
        rows.append(("exclusions", "", "", summary.excluded))
    for counts in (*summary.facets, summary.years):
        rows += [(counts.attribute.name, value, "", number) for value, number in counts.counts.items()]
        rows += [(f"{counts.attribute.name}_codes", code, "", number) for code, number in counts.families.items()]
    pairs = [(levels.facet.field, levels.counts) for levels in summary.levels]
    pairs += [(crosstab_name(crosstab), cells(crosstab)) for crosstab in summary.crosstabs]
    pairs += [("evidence", evidence_data(summary.evidence))]
    for name, counted in pairs:
        rows += [(name, one, other, number) for one, numbers in counted.items() for other, number in numbers.items()]
    for counts in summary.exclusions:
        rows += [(f"exclusion_{counts.attribute.name}", value, "", number) for value, number in counts.counts.items()]
    return csv(("statistic", "value", "second_value", "count"), rows)


def totals(summary: Summary) -> str:
    """The head counts in words; records were audited where some were screened and left out."""
    papers = summary.noun.counted(summary.papers)
    if not summary.excluded:
        return papers
    exclusions = pluralize(summary.excluded, "exclusion")
    return f"{papers} and {exclusions}: {summary.papers + summary.excluded} audited records"


def _share(number: int, total: int) -> float:
    return round(100 * number / total, 1) if total else 0.0
