"""The page that `corpus stats` opens with: the state of a field at a glance."""

from collections.abc import Mapping
from typing import TypeAlias

from orchtrace_corpus.base.text.layout import (
    UNICODE,
    Glyphs,
    Line,
    Span,
    bar,
    beside,
    clip,
    display_width,
    entry,
    line,
    pad,
    wrap,
)
from orchtrace_corpus.corpus.analysis.statistics import ABSENT, Counts, LevelCounts, Summary
from orchtrace_corpus.corpus.model.fields import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.taxonomy import Noun, Role, Taxonomy
from orchtrace_corpus.corpus.render.statistics import ABSENT_LABEL, SOURCES_TITLE, totals
from orchtrace_corpus.corpus.rules.tags import possible_cells

PIPE_WIDTH = 80
"""The width of the page where no terminal says how wide it may be."""

_TWO_COLUMNS_WIDTH = 76
_SHORT_LABEL_WIDTH = 14
_SPARSE_LIMIT = 2
_NEXT_STEPS = "Next: corpus gaps | corpus list | corpus terms | corpus --help"


def page(
    summary: Summary,
    taxonomy: Taxonomy,
    width: int,
    glyphs: Glyphs = UNICODE,
    published: Summary | None = None,
    note: str = "",
) -> list[Line]:
    """One page that lets a newcomer see the state of the field: head counts, axes as bars, gaps.

    Args:
        summary: The statistics.
        taxonomy: The vocabulary behind them.
        width: How many cells a line may take.
        glyphs: The characters to draw with.
        published: The statistics as published, where the others are by the reading of the sources: shown in brackets
            where they differ.
        note: What to say at the foot.
    """
    width = max(min(width, 100), 40)
    others = {counts.attribute.name: counts.counts for counts in (() if published is None else published.facets)}
    lines = _headline(summary, width, glyphs, others)
    if not summary.papers:
        return lines
    chart_width = (width - 4) // 2 if width >= _TWO_COLUMNS_WIDTH else width
    labels = (label for counts in summary.axes for label in _labels(counts).values())
    label_width = min(max(map(display_width, labels), default=0), chart_width // 2)  # what is left is for the bars
    # One scale for all charts, so that equal bars mean equal counts.
    largest = max((n for counts in summary.axes for v, n in counts.counts.items() if v != NOT_APPLICABLE), default=0)
    charts = [
        _chart(counts, glyphs, chart_width, label_width, largest, others.get(counts.attribute.name))
        for counts in summary.axes
    ]
    lines.append(line())
    if len(charts) == 2 and width >= _TWO_COLUMNS_WIDTH:
        lines += beside(charts[0], charts[1], (width - 4) // 2 + 4)
    else:
        for chart in charts:
            lines += [*chart, line()]
    for levels in (levels for levels in summary.levels if levels.facet.role is Role.AXIS):
        lines += [line(), *_level_chart(levels, width, glyphs, summary.noun)]
    gaps = _gap_lines(summary, taxonomy, width, glyphs)
    if gaps:
        lines += [line(), line(f"Sparse (up to {_SPARSE_LIMIT}) and empty", "heading"), *gaps]
    lines += [line(), *(line(text, "muted") for text in wrap(note, width))]
    filled = [any(span.text.strip() for span in one) for one in lines]
    # Of blank lines in a row, the first.
    kept = [one for one, *near in zip(lines, filled, (True, *filled), strict=False) if any(near)]
    return [*kept, *(line(text, "muted") for text in wrap(_NEXT_STEPS, width))]


_CountsByValue: TypeAlias = Mapping[str, int]


def _beside(number: int, value: str, published: _CountsByValue | None) -> str:
    """The published count in brackets, where it is another one."""
    other = number if published is None else published.get(value, 0)
    return f" ({other})" if other != number else ""


def _counted(counts: Counts, published: _CountsByValue | None) -> list[str]:
    """The values that occur in a reading, each with its count and the published one where that is another."""
    numbers = counts.counts | {value: counts.counts.get(value, 0) for value in published or ()}
    shown = {value: f"{number}{_beside(number, value, published)}" for value, number in numbers.items()}
    return [f"{value or ABSENT_LABEL} {text}" for value, text in shown.items() if text != "0"]


def _headline(summary: Summary, width: int, glyphs: Glyphs, others: Mapping[str, _CountsByValue]) -> list[Line]:
    newest = f" (newest added {summary.newest})" if summary.newest else ""
    lines: list[Line] = [line(text, "heading") for text in wrap(totals(summary) + newest, width)]
    if others:
        lines += [line(text, "muted") for text in wrap(f"{SOURCES_TITLE}; in brackets as published.", width)]
    lines.append(line())
    years = [value for value in summary.years.counts if value != ABSENT]
    described = [(one.attribute.name, _counted(one, others.get(one.attribute.name))) for one in summary.descriptions]
    if years:
        recent = [f"{year} {summary.years.counts[year]}" for year in years[-4:]]
        earlier = sum(summary.years.counts[year] for year in years[:-4])
        before = [f"{years[0]}-{years[-5]} {earlier}"] if earlier and len(years) > 5 else []
        described.append(("year", [*before, *recent]))
    label_width = max((display_width(name) for name, _ in described), default=0) + 2
    for name, parts in described:
        # Blanks inside a part must not break, nor must the separator begin a line.
        joined = glyphs.separator.rstrip().join(part.replace(" ", "\0") for part in parts)
        words = joined.replace(glyphs.separator.rstrip(), glyphs.separator)
        texts = wrap(words, width, first=pad(name, label_width), rest=" " * label_width)
        for index, text in enumerate(part.replace("\0", " ") for part in texts):
            lines.append((Span(text[:label_width], "muted" if index == 0 else ""), Span(text[label_width:])))
    return lines


def _labels(counts: Counts) -> dict[str, str]:
    """The label of each value: its code, if terms have codes, and its name."""
    terms = {term.id: term for term in counts.attribute.terms}
    code_width = max((display_width(term.code) + 1 for term in terms.values() if term.code), default=0)
    names = [*terms, *((ABSENT,) if ABSENT in counts.counts else ())]
    return {name: pad(terms[name].code if name in terms else "", code_width) + (name or ABSENT_LABEL) for name in names}


def _chart(
    counts: Counts, glyphs: Glyphs, width: int, label_width: int, largest: int, published: _CountsByValue | None
) -> list[Line]:
    labels = _labels(counts)
    others = {name: _beside(counts.counts.get(name, 0), name, published) for name in labels}
    number_width = max(len(str(counts.total)), 3) + max(map(len, others.values()), default=0)
    bar_width = width - label_width - number_width - 2
    lines: list[Line] = [line(counts.attribute.label, "heading")]
    for name in labels:
        number = counts.counts.get(name, 0)
        # What does not apply is not part of the picture: its bar would dwarf the others.
        drawn = "" if name == NOT_APPLICABLE else bar(number, largest, bar_width, glyphs.bar)
        shown = (str(number) if number else glyphs.empty) + others[name]
        style = "muted" if name == NOT_APPLICABLE else "" if number else "warning"
        label = clip(labels[name], label_width, glyphs.ellipsis)
        text = f"{pad(label, label_width)} {pad(shown, number_width, right=True)} "
        lines.append((Span(text, style), Span(drawn, "bar")))
    return lines


def _level_chart(levels: LevelCounts, width: int, glyphs: Glyphs, noun: Noun) -> list[Line]:
    facet = levels.facet
    code_width = max(display_width(term.code) for term in facet.terms)
    code_width += 1 if code_width else 0
    widest = max(code_width + display_width(term.id) for term in facet.terms)
    label_width = min(widest, max(width // 4, _SHORT_LABEL_WIDTH))
    ids = [level.id for level in facet.levels]
    drawn = [glyphs.shades[index % len(glyphs.shades)] for index in range(len(ids))]
    heads = [f"{level} {glyph}" for level, glyph in zip(ids, drawn, strict=True)]
    if label_width + sum(len(head) + 2 for head in heads) + 4 > width:
        heads = [f"{level[:3]} {glyph}" for level, glyph in zip(ids, drawn, strict=True)]
    widths = [display_width(head) for head in heads]
    largest = max((sum(by_level.values()) for by_level in levels.counts.values()), default=0)
    bar_width = width - label_width - sum(w + 2 for w in widths) - 2 - len(ids)
    title = f"{facet.label} ({noun.many} by level)"
    head = "".join("  " + pad(text, w, right=True) for text, w in zip(heads, widths, strict=True))
    lines: list[Line] = [line(text, "heading") for text in wrap(title, width)]
    lines.append(line(" " * label_width + head, "muted"))
    for term in facet.terms:
        numbers = [levels.counts[term.id][level] for level in ids]
        texts = [
            "  " + pad(str(number or glyphs.empty), w, right=True) for number, w in zip(numbers, widths, strict=True)
        ]
        cells = [Span(text, "" if number else "warning") for text, number in zip(texts, numbers, strict=True)]
        bars = [
            Span(bar(number, largest, bar_width, glyph), level)
            for number, glyph, level in zip(numbers, drawn, ids, strict=True)
        ]
        label = clip(pad(term.code, code_width) + term.id, label_width, glyphs.ellipsis)
        lines.append((Span(pad(label, label_width)), *cells, Span("  "), *bars))
    return lines


def _gap_lines(summary: Summary, taxonomy: Taxonomy, width: int, glyphs: Glyphs) -> list[Line]:
    entries: list[tuple[str, str]] = []
    for counts in summary.axes:
        few = [(number, name) for name, number in counts.counts.items() if number <= _SPARSE_LIMIT]
        few.sort(key=lambda pair: pair[0])
        parts = [f"{name} {number}" for number, name in few if name not in (NOT_APPLICABLE, ABSENT)]
        if parts:
            entries.append((counts.attribute.name, glyphs.separator.join(parts)))
    for levels in (levels for levels in summary.levels if levels.facet.role is Role.AXIS):
        for level in levels.facet.levels:
            none = [term.id for term in levels.facet.terms if not levels.counts[term.id][level.id]]
            if none:
                entries.append((levels.facet.field, f"no {level.id} method for {' and '.join(none)}"))
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
            lines += entry(name, text, label_width, width)
    return lines
