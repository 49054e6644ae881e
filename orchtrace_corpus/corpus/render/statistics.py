"""Statistics as the page that `corpus stats` opens with, as tables, documents, JSON and CSV."""

from collections.abc import Mapping, Sequence

from orchtrace_corpus.base.annotations import TypeAlias
from orchtrace_corpus.base.text import layout
from orchtrace_corpus.base.text.layout import UNICODE, Glyphs, Line, Span, display_width, line, pad, pluralize, wrap
from orchtrace_corpus.base.text.table import Cell, Missing, Table, csv, envelope, markdown, markdown_text, records
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.analysis.evidence import EvidenceCoverage, EvidenceState, ListedTag
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, MISSING, Counts, Crosstab, LevelCounts, Summary
from orchtrace_corpus.corpus.model.records import ReadingName
from orchtrace_corpus.corpus.model.taxonomy import Noun, Role, Taxonomy
from orchtrace_corpus.corpus.rules.tags import possible_cells

SOURCES_NOUN = "reading of the sources"
SOURCES_TITLE = SOURCES_NOUN.capitalize()
"""The title of a report on the tags that readers of the sources agree on."""
ABSENT_LABEL = Missing.ABSENT.value
"""The label of a missing value."""
PIPE_WIDTH = 80
"""The width of the page where the output is no terminal."""
_TWO_COLUMNS_WIDTH = 76
_SHORT_LABEL_WIDTH = 14
SPARSE_LIMIT = 2
"""The most papers of a sparse value."""
_NEXT_STEPS = "Next: corpus gaps | corpus list | corpus terms | corpus --help"
_CountsByValue: TypeAlias = Mapping[str, int]


def page(
    summary: Summary,
    taxonomy: Taxonomy,
    width: int,
    glyphs: Glyphs = UNICODE,
    published: Summary | None = None,
    note: str = "",
) -> list[Line]:
    """Return one page that shows the state of the field: totals, axes as bars, sparse and empty values.

    If the summary is by the reading of the sources, `published` has the published counts. A published count that
    differs is shown in brackets.
    """
    width = max(min(width, 100), 40)
    published_counts = {counts.attribute.name: counts.counts for counts in (published.facets if published else ())}
    blocks = _headline(summary, width, glyphs, published_counts)
    if not summary.papers:
        return layout.separated(blocks)
    chart_width = (width - 4) // 2 if width >= _TWO_COLUMNS_WIDTH else width
    labels = [label for counts in summary.axes for label in _labels(counts).values()]
    label_width = min(max(map(display_width, labels), default=0), chart_width // 2)
    # The longest bar is that of the largest count of all charts, so that bars of different charts can be compared.
    bar_counts = [count for axis in summary.axes for value, count in axis.counts.items() if value != NOT_APPLICABLE]
    sizes = chart_width, label_width, max(bar_counts, default=0)
    charts = [_chart(axis, glyphs, *sizes, published_counts.get(axis.attribute.name)) for axis in summary.axes]
    if len(charts) == 2 and width >= _TWO_COLUMNS_WIDTH:
        charts = [layout.side_by_side(charts[0], charts[1], chart_width + 4)]
    blocks += charts
    for levels in summary.levels:
        if levels.facet.role is Role.AXIS:
            blocks.append(_level_chart(levels, width, glyphs, summary.noun))
    gaps = _gap_lines(summary, taxonomy, width, glyphs)
    if gaps:
        blocks.append([line(f"Sparse (up to {SPARSE_LIMIT}) and empty", "heading"), *gaps])
    blocks.append([line(text, "muted") for part in (note, _NEXT_STEPS) if part for text in wrap(part, width)])
    return layout.separated(blocks)


def _published_note(number: int, value: str, published: _CountsByValue | None) -> str:
    """Return the published count of a value in brackets; empty if it equals the count, or is not known."""
    published_number = number if published is None else published.get(value, 0)
    return "" if published_number == number else f" ({published_number})"


def _headline(
    summary: Summary, width: int, glyphs: Glyphs, published: Mapping[str, _CountsByValue]
) -> list[list[Line]]:
    """Return the totals, and the counts of descriptions and years, as blocks of lines."""
    newest = f" (newest added {summary.newest})" if summary.newest else ""
    title: list[Line] = [line(text, "heading") for text in wrap(totals(summary) + newest, width)]
    if published:
        title += [line(text, "muted") for text in wrap(f"{SOURCES_TITLE}; in brackets as published.", width)]
    texts_by_field: dict[str, list[str]] = {}
    for counts in summary.descriptions:
        name = counts.attribute.name
        texts_by_field[name] = []
        for value in dict.fromkeys((*counts.counts, *published.get(name, ()))):
            number = counts.counts.get(value, 0)
            note = _published_note(number, value, published.get(name))
            if number or note:
                texts_by_field[name].append(f"{value or ABSENT_LABEL} {number}{note}")
    years = [value for value in summary.years.counts if value != ABSENT]
    if years:
        texts_by_field["year"] = [f"{year} {summary.years.counts[year]}" for year in years[-4:]]
        earlier = sum(summary.years.counts[year] for year in years[:-4])
        if earlier and len(years) > 5:
            texts_by_field["year"].insert(0, f"{years[0]}-{years[-5]} {earlier}")
    label_width = max(map(display_width, texts_by_field), default=0) + 2
    lines: list[Line] = []
    for name, parts in texts_by_field.items():
        text = glyphs.separator.join(part.replace(" ", layout.NO_BREAK) for part in parts)
        lines += layout.entry(name, text, label_width, width)
    return [title, lines]


def _labels(counts: Counts) -> dict[str, str]:
    """Return the label of each value: its name, after the code of its term if terms have codes."""
    terms = counts.attribute.terms
    code_width = max((display_width(term.code) + 1 for term in terms if term.code), default=0)
    labels = {term.id: pad(term.code, code_width) + term.id for term in terms}
    if ABSENT in counts.counts:
        labels[ABSENT] = pad("", code_width) + ABSENT_LABEL
    return labels


def _chart(
    counts: Counts, glyphs: Glyphs, width: int, label_width: int, largest: int, published: _CountsByValue | None
) -> list[Line]:
    """Return the counts of an axis as bars; `largest` is the count with the longest bar."""
    labels = _labels(counts)
    numbers = {name: counts.counts.get(name, 0) for name in labels}
    notes = {name: _published_note(number, name, published) for name, number in numbers.items()}
    number_width = max(len(str(counts.total)), 3) + max(map(len, notes.values()), default=0)
    bar_width = width - label_width - number_width - 2
    lines: list[Line] = [line(counts.attribute.label, "heading")]
    for name, number in numbers.items():
        bar = layout.bar(number, largest, bar_width, glyphs.bar)
        style = "" if number else "warning"
        if name == NOT_APPLICABLE:
            bar = ""  # its bar would dwarf the others
            style = "muted"
        label = layout.clip(labels[name], label_width, glyphs.ellipsis)
        number_text = f"{number or glyphs.empty}{notes[name]}"
        text = f"{pad(label, label_width)} {pad(number_text, number_width, right=True)} "
        lines.append((Span(text, style), Span(bar, "bar")))
    return lines


def _level_chart(levels: LevelCounts, width: int, glyphs: Glyphs, noun: Noun) -> list[Line]:
    """Return the counts of each term by level: in a column for each level, and as a bar with a shade for each level."""
    facet = levels.facet
    code_width = max(display_width(f"{term.code} ") if term.code else 0 for term in facet.terms)
    widest = max(code_width + display_width(term.id) for term in facet.terms)
    label_width = min(widest, max(width // 4, _SHORT_LABEL_WIDTH))
    ids = [level.id for level in facet.levels]
    shades = [glyphs.shades[index % len(glyphs.shades)] for index in range(len(ids))]
    is_narrow = label_width + sum(len(level) + 4 for level in ids) + 4 > width
    headings = [f"{level[:3] if is_narrow else level} {shade}" for level, shade in zip(ids, shades, strict=True)]
    widths = [display_width(heading) for heading in headings]
    largest = max((sum(by_level.values()) for by_level in levels.counts.values()), default=0)
    bar_width = width - label_width - sum(widths) - 2 * len(widths) - 2 - len(ids)
    lines: list[Line] = [line(text, "heading") for text in wrap(f"{facet.label} ({noun.many} by level)", width)]
    lines.append(line(" " * label_width + "".join(f"  {heading}" for heading in headings), "muted"))
    for term in facet.terms:
        cells, bars = [], []
        for level, shade, cell_width in zip(ids, shades, widths, strict=True):
            number = levels.counts[term.id][level]
            text = "  " + pad(str(number or glyphs.empty), cell_width, right=True)
            cells.append(Span(text, "" if number else "warning"))
            bars.append(Span(layout.bar(number, largest, bar_width, shade), level))
        label = layout.clip(pad(term.code, code_width) + term.id, label_width, glyphs.ellipsis)
        lines.append((Span(pad(label, label_width)), *cells, Span("  "), *bars))
    return lines


def _gap_lines(summary: Summary, taxonomy: Taxonomy, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the sparse and empty values of axes and of levels, and the number of empty cells of the first pair."""
    entries: list[tuple[str, str]] = []
    for axis in summary.axes:
        sparse = [value for value, count in axis.counts.items() if count <= SPARSE_LIMIT and value not in MISSING]
        parts = [f"{value} {axis.counts[value]}" for value in sorted(sparse, key=axis.counts.__getitem__)]
        if parts:
            entries.append((axis.attribute.name, glyphs.separator.join(parts)))
    for levels in (levels for levels in summary.levels if levels.facet.role is Role.AXIS):
        for level in levels.facet.levels:
            missing = [term.id for term in levels.facet.terms if not levels.counts[term.id][level.id]]
            if missing:
                entries.append((levels.facet.field, f"no {level.id} method for {' and '.join(missing)}"))
    for crosstab in summary.crosstabs[:1]:
        possible = possible_cells(taxonomy, crosstab.rows, crosstab.columns, crosstab.cells)
        pair = f"{crosstab.rows.name} x {crosstab.columns.name}"
        entries.append((pair, f"{len(possible - crosstab.cells.keys())} of {len(possible)} cells empty"))
    label_width = max((display_width(name) for name, _ in entries), default=0) + 2
    lines: list[Line] = []
    for name, text in entries:
        if label_width > width // 2:  # too narrow for two columns
            lines += [line(name, "muted"), *(line(part) for part in wrap(text, width, first="  ", rest="  "))]
        else:
            lines += layout.entry(name, text, label_width, width)
    return lines


def contested_text(contested: int, agreed: int, total: int, noun: Noun) -> str:
    """Return how many of the records shown have a contested tag, and how many --reading sources changes."""
    if not contested:
        return ""
    verb = "has" if contested == 1 else "have"
    changes = f"; --reading sources changes {agreed} of them" if agreed else ""
    return f"{contested} of {noun.counted(total)} {verb} a contested tag here{changes}"


def counts_tables(counts: Counts, published: Counts | None = None) -> list[Table]:
    """Return the counts by an attribute, and the counts by code if terms share codes; with the published counts."""
    name, label, total = counts.attribute.name, counts.attribute.label, counts.total
    codes = {term.id: term.code for term in counts.attribute.terms}
    published_counts = published.counts if published else {}
    # A value may occur in one reading only; terms keep the order of the vocabulary.
    counted = counts.counts | published_counts
    values = list(dict.fromkeys((*(value for value in codes if value in counted), *counted)))
    numbers = [counts.counts.get(value, 0) for value in values]
    columns: dict[str, Sequence[Cell]] = {name: [value or Missing.ABSENT for value in values]}
    if any(codes.values()):
        columns["code"] = [codes.get(value) or None for value in values]
    columns |= {"count": numbers, "share_percent": [_share(number, total) for number in numbers]}
    families: dict[str, Sequence[Cell]] = {"code": list(counts.families), "count": list(counts.families.values())}
    families["share_percent"] = [_share(number, total) for number in counts.families.values()]
    title = label
    if published:
        title = f"{label}: {SOURCES_NOUN}"
        columns[ReadingName.PUBLISHED.value] = [published_counts.get(value, 0) for value in values]
        families[ReadingName.PUBLISHED.value] = [published.families[code] for code in counts.families]
    notes: tuple[str, ...] = ()
    if sum(counts.counts.values()) > total:
        notes = (f"A record with several values counts under each; {total} records in all.",)
    tables = [_table_of_columns(name, title, columns, notes)]
    if counts.families:
        tables.append(_table_of_columns(f"{name}_codes", f"{label}, by code", families))
    return tables


def _table_of_columns(
    name: str, title: str, columns: Mapping[str, Sequence[Cell]], notes: tuple[str, ...] = ()
) -> Table:
    return Table(name, title, tuple(columns), tuple(zip(*columns.values(), strict=True)), notes)


def levels_table(levels: LevelCounts) -> Table:
    """Return how many records have each term of a facet of kind `levels`, by level."""
    facet = levels.facet
    columns: dict[str, Sequence[Cell]] = {facet.field: [term.id for term in facet.terms]}
    if any(term.code for term in facet.terms):
        columns["code"] = [term.code for term in facet.terms]
    columns |= {level.id: [levels.counts[term.id][level.id] for term in facet.terms] for level in facet.levels}
    columns["absent"] = [levels.total - sum(levels.counts[term.id].values()) for term in facet.terms]
    notes = ("absent: records that do not have the term.",)
    return _table_of_columns(facet.field, f"{facet.label}, by level", columns, notes)


def levels_matrix(levels: LevelCounts) -> Table:
    """Return the level of every term for each record that has the facet."""
    terms = [term.id for term in levels.facet.terms]
    rows = tuple((name, *(tag.get(term, "") for term in terms)) for name, tag in levels.by_record.items())
    title = f"{levels.facet.label}, by record"
    return Table(f"{levels.facet.field}_by_record", title, ("key", *terms), rows, uncut="key")


def crosstab_table(crosstab: Crosstab) -> Table:
    """Return two attributes crossed, with the sums of rows in the last column."""
    columns = (crosstab.rows.name, *(value or ABSENT_LABEL for value in crosstab.column_values), "sum")
    rows: list[tuple[Cell, ...]] = []
    for row, by_column in cells(crosstab).items():
        rows.append((row or Missing.ABSENT, *by_column.values(), sum(by_column.values())))
    return Table(crosstab_name(crosstab), crosstab_title(crosstab), columns, tuple(rows))


def typical_table(crosstab: Crosstab) -> Table | None:
    """Return how many records have the column that the survey expects for their row; None if it expects none."""
    column_name = crosstab.columns.name
    if not any(term.typical_of(column_name) for term in crosstab.rows.terms):
        return None
    rows: list[tuple[Cell, ...]] = []
    all_records = all_deviating = 0
    for term in crosstab.rows.terms:
        typical = term.typical_of(column_name)
        counts = {}
        for value in crosstab.column_values:
            count = crosstab.count_in(term.id, value)
            if count and value not in MISSING:
                counts[value] = count
        records = sum(counts.values())
        if typical:
            others = {value: count for value, count in counts.items() if value not in typical}
            deviating = sum(others.values())
            all_records += records
            all_deviating += deviating
            instead = ", ".join(f"{value} {count}" for value, count in others.items())
            rows.append((term.id, ", ".join(typical), records, records - deviating, deviating, instead))
        elif term.id != NOT_APPLICABLE:
            rows.append((term.id, "not named", records, None, None, ""))
    rows.append(("sum of those named", "", all_records, all_records - all_deviating, all_deviating, ""))
    label = crosstab.columns.label.lower()
    notes = (f"typical: the {label} that the survey expects; records to which none applies are left out.",)
    title = f"{crosstab.rows.label}: typical {label}"
    columns = (crosstab.rows.name, "typical", "records", "as_typical", "deviating", "instead")
    return Table(f"{crosstab_name(crosstab)}_typical", title, columns, tuple(rows), notes)


def crosstab_name(crosstab: Crosstab) -> str:
    """Return the name of a cross-tabulation for programs."""
    return f"{crosstab.rows.name}_by_{crosstab.columns.name}"


def crosstab_title(crosstab: Crosstab) -> str:
    """Return the title of a cross-tabulation."""
    return f"{crosstab.rows.label} by {within_sentence(crosstab.columns.label)}"


def within_sentence(label: str) -> str:
    """Return a label with a small first letter, unless it begins with a code or an acronym."""
    return label[:1].lower() + label[1:] if label[1:2].islower() else label


def cells(crosstab: Crosstab) -> dict[str, dict[str, int]]:
    """Return the counts of a cross-tabulation by row, then by column, zeros included."""
    return {
        row: {column: crosstab.count_in(row, column) for column in crosstab.column_values}
        for row in crosstab.row_values
    }


def summary_tables(summary: Summary, published: Summary | None = None) -> list[Table]:
    """Return all statistics, a table for each; with the `published` statistics, counts of tags are next to these."""
    published_counts = {counts.attribute.name: counts for counts in (published.facets if published else ())}
    tables: list[Table] = []
    for counts in (*summary.axes, *summary.descriptions):
        tables += counts_tables(counts, published_counts.get(counts.attribute.name))
    for levels in summary.levels:
        tables.append(levels_table(levels))
        if levels.by_record:
            tables.append(levels_matrix(levels))
    tables += counts_tables(summary.years)
    tables += [crosstab_table(crosstab) for crosstab in summary.crosstabs]
    tables += filter(None, map(typical_table, summary.crosstabs))
    for counts in summary.exclusions:
        title = f"Exclusions: {counts.attribute.label}"
        tables.append(counts_tables(counts)[0]._replace(name=f"exclusion_{counts.attribute.name}", title=title))
    if summary.evidence:
        tables.append(evidence_table(summary.evidence))
    return tables


def evidence_table(rows: Sequence[EvidenceCoverage]) -> Table:
    """Return the evidence for the tags of each sourced field."""
    notes = (
        "Each tag other than NA counts once in primary, secondary or none, by its best source.",
        "It also counts once in supported, partly, contradicted or none, by the evidence that supports it least.",
    )
    return Table("evidence", "Evidence for the tags", EvidenceCoverage._fields, tuple(rows), notes)


def evidence_data(rows: Sequence[EvidenceCoverage]) -> dict[str, dict[str, int]]:
    """Return the counts of evidence for the tags of each field, by the names of counts."""
    return {row.field: dict(zip(row._fields[1:], row[1:], strict=True)) for row in rows}


def listed_table(state: EvidenceState, tags: Sequence[ListedTag]) -> Table:
    """Return the tags in a state of evidence, with a row for each item of evidence behind that state."""
    rows: list[tuple[Cell, ...]] = []
    for paper, field, items in tags:
        tag = paper.tags[field]
        cell = tag if isinstance(tag, (str, tuple)) else tuple(f"{term} {level}" for term, level in tag.items())
        rows += [(paper.key, field, cell, item.note, item.source) for item in items]
        if not items:
            rows.append((paper.key, field, cell, "", ""))
    return Table("tags", f"Tags: {state}", ("key", "field", "tag", "note", "source"), tuple(rows), uncut="key")


def summary_markdown(summary: Summary, title: str, published: Summary | None = None) -> str:
    """Return all statistics as a Markdown document."""
    head = f"# {markdown_text(title)}\n\n{markdown_text(totals(summary))}\n"
    return "\n".join((head, *(markdown(table) for table in summary_tables(summary, published))))


def summary_json(summary: Summary, published: Summary | None = None) -> str:
    """Return all statistics as JSON, counts by term; records without a value count under the empty string."""
    published_counts = {counts.attribute.name: counts.counts for counts in (published.facets if published else ())}
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
            **({"published_counts": published_counts} if published_counts else {}),
        },
    )


def summary_csv(summary: Summary) -> str:
    """Return all statistics in one long table: statistic, value, second value of a pair, count."""
    rows: list[tuple[Cell, ...]] = [("papers", "", "", summary.papers)]
    if summary.excluded is not None:
        rows.append(("exclusions", "", "", summary.excluded))
    for counts in (*summary.facets, summary.years):
        rows += [(counts.attribute.name, value, "", number) for value, number in counts.counts.items()]
        rows += [(f"{counts.attribute.name}_codes", code, "", number) for code, number in counts.families.items()]
    statistics = {levels.facet.field: levels.counts for levels in summary.levels}
    statistics |= {crosstab_name(crosstab): cells(crosstab) for crosstab in summary.crosstabs}
    statistics["evidence"] = evidence_data(summary.evidence)
    for name, counts_by_row in statistics.items():
        for row, by_column in counts_by_row.items():
            rows += [(name, row, column, count) for column, count in by_column.items()]
    for counts in summary.exclusions:
        rows += [(f"exclusion_{counts.attribute.name}", value, "", number) for value, number in counts.counts.items()]
    return csv(("statistic", "value", "second_value", "count"), rows)


def totals(summary: Summary) -> str:
    """Return the numbers of papers, exclusions and audited records in words; without exclusions only of papers."""
    papers = summary.noun.counted(summary.papers)
    if not summary.excluded:
        return papers
    exclusions = pluralize(summary.excluded, "exclusion")
    return f"{papers} and {exclusions}: {summary.papers + summary.excluded} audited records"


def _share(number: int, total: int) -> float:
    return round(100 * number / total, 1) if total else 0.0
