"""Statistics as tables, documents, JSON and CSV."""

from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.base.text.table import Cell, Missing, Table, csv, envelope, markdown, markdown_text
from orchtrace_corpus.corpus.analysis.statistics import Counts, Crosstab, LevelCounts, Summary

ABSENT_LABEL = Missing.ABSENT.value
"""How people see that a record has no value."""


def counts_tables(counts: Counts) -> list[Table]:
    """Counts by an attribute, and by family where terms share codes."""
    name = counts.attribute.name
    terms = {term.id: term for term in counts.attribute.terms}
    has_codes = any(term.code for term in terms.values())
    rows: list[tuple[Cell, ...]] = []
    for value, number in counts.counts.items():
        term = terms.get(value)
        code = ((term.code if term else "") or None,) if has_codes else ()
        rows.append((value or Missing.ABSENT, *code, number, _share(number, counts.total)))
    columns = (name, *(("code",) if has_codes else ()), "count", "share_percent")
    notes: tuple[str, ...] = ()
    if sum(counts.counts.values()) > counts.total:
        notes = (f"A record with several values counts under each; {counts.total} records in all.",)
    tables = [Table(name, counts.attribute.label, columns, tuple(rows), notes)]
    if counts.families:
        family_rows = tuple((code, number, _share(number, counts.total)) for code, number in counts.families.items())
        title = f"{counts.attribute.label}, by code"
        tables.append(Table(f"{name}_codes", title, ("code", "count", "share_percent"), family_rows))
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


def crosstab_table(crosstab: Crosstab) -> Table:
    """Two attributes against each other, with totals of records in the last column."""
    columns = tuple(value or ABSENT_LABEL for value in crosstab.column_values)
    rows: list[tuple[Cell, ...]] = []
    for row in crosstab.row_values:
        numbers = [crosstab.number(row, column) for column in crosstab.column_values]
        rows.append((row or Missing.ABSENT, *numbers, sum(numbers)))
    return Table(crosstab_name(crosstab), crosstab_title(crosstab), (crosstab.rows.name, *columns, "sum"), tuple(rows))


def crosstab_name(crosstab: Crosstab) -> str:
    """What programs call a cross-tabulation."""
    return f"{crosstab.rows.name}_by_{crosstab.columns.name}"


def crosstab_title(crosstab: Crosstab) -> str:
    """What people call a cross-tabulation."""
    return f"{crosstab.rows.label} by {lower_first(crosstab.columns.label)}"


def cells(crosstab: Crosstab) -> dict[str, dict[str, int]]:
    """The counts of a cross-tabulation by row, then by column, zeros included."""
    return {
        row: {column: crosstab.number(row, column) for column in crosstab.column_values} for row in crosstab.row_values
    }


def summary_tables(summary: Summary) -> list[Table]:
    """All published statistics, one table each."""
    tables = [table for counts in (*summary.axes, *summary.descriptions) for table in counts_tables(counts)]
    tables += [levels_table(levels) for levels in summary.levels]
    tables += counts_tables(summary.years)
    tables += [crosstab_table(crosstab) for crosstab in summary.crosstabs]
    for counts in summary.exclusions:
        title = f"Exclusions: {lower_first(counts.attribute.label)}"
        tables.append(counts_tables(counts)[0]._replace(name=f"exclusion_{counts.attribute.name}", title=title))
    return tables


def summary_markdown(summary: Summary, title: str) -> str:
    """All statistics as a document."""
    head = f"# {markdown_text(title)}\n\n{markdown_text(totals(summary))}\n"
    return "\n".join((head, *(markdown(table) for table in summary_tables(summary))))


def summary_json(summary: Summary) -> str:
    """All statistics for programs: every count by its term; absence counts under the empty string."""
    return envelope(
        "stats",
        {
            "papers": summary.papers,
            "exclusions": summary.excluded,
            "records": None if summary.excluded is None else summary.papers + summary.excluded,
            "newest": summary.newest or None,
            "counts": {counts.attribute.name: counts.counts for counts in (*summary.facets, summary.years)},
            "codes": {counts.attribute.name: counts.families for counts in summary.facets if counts.families},
            "levels": {levels.facet.field: levels.counts for levels in summary.levels},
            "crosstabs": {crosstab_name(crosstab): cells(crosstab) for crosstab in summary.crosstabs},
            "exclusion_counts": {counts.attribute.name: counts.counts for counts in summary.exclusions},
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
    for name, counted in pairs:
        rows += [(name, one, other, number) for one, numbers in counted.items() for other, number in numbers.items()]
    for counts in summary.exclusions:
        rows += [(f"exclusion_{counts.attribute.name}", value, "", number) for value, number in counts.counts.items()]
    return csv(("statistic", "value", "second_value", "count"), rows)


def totals(summary: Summary) -> str:
    """The head counts in words."""
    papers = pluralize(summary.papers, "paper")
    if summary.excluded is None:
        return papers
    exclusions = pluralize(summary.excluded, "exclusion")
    return f"{papers} and {exclusions}: {summary.papers + summary.excluded} audited records"


def _share(number: int, total: int) -> float:
    return round(100 * number / total, 1) if total else 0.0


def lower_first(label: str) -> str:
    """The label as it stands inside a sentence."""
    return label if label.isupper() else label[:1].lower() + label[1:]


def heat(number: int, largest: int) -> int:
    """0 for nothing, else the quarter of the scale, 1 to 4, that the count falls in."""
    return min(4, 1 + (number - 1) * 4 // largest) if number and largest else 0
