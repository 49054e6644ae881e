"""The scale of systems in use and of experiments: in words, as tables, as JSON."""

from collections.abc import Sequence

from orchtrace_corpus.base.text.layout import UNICODE, Glyphs, Line, line, separated, wrap
from orchtrace_corpus.base.text.table import Cell, Table, envelope, lines, markdown, markdown_text, records
from orchtrace_corpus.corpus.model.scale import BOUNDS, Amount, Comparison, Observation, Support, compare, span

BOUNDARY = "Reported envelopes against open evaluation regimes, not verified training traces."
"""The limits of the comparison, in words of the survey. An envelope is the range of sizes that a vendor reports."""

_SOURCES = {
    Support.PAPER: "publication",
    Support.CODE: "code",
    Support.PAPER_COPY: "publication, copy",
    Support.VENDOR: "vendor",
    Support.VENDOR_COPY: "vendor, copy",
    Support.THIRD_PARTY: "third party",
}
_COLUMNS = ("value", "phase", "status", "read in")
_SECOND_HAND = "Copies and third parties are second-hand: the page they speak of was not read itself."


def amount(value: Amount | None) -> str:
    """Return an amount in words, such as `up to 300`, `3 to 5` or `unknown`."""
    if value is None:
        return "unknown"
    numbers = dict.fromkeys((value.low, value.high))
    return f"{BOUNDS.get(value.bound, '')} {' to '.join(f'{number:,.15g}' for number in numbers)}".lstrip()


def status(observation: Observation) -> str:
    """Return the status of an observation: `verified`, `reported`, or `unknown` if it has no number."""
    if observation.value is None:
        return "unknown"
    return "verified" if observation.verified else "reported"


def extents(comparison: Comparison) -> tuple[str, str, str]:
    """Return a quantity, its range in systems in use, and its range in experiments, in words."""
    parts = []
    for observations in (comparison.deployments, comparison.academic):
        counts, limits, unknown = _divide(observations)
        texts = []
        if counts:
            texts.append(f"{amount(span(counts))} ({len(counts)} counted)")
        if limits:
            texts.append(f"limits of {amount(span(limits))} ({len(limits)} given)")
        if unknown:
            texts.append(f"unknown of {unknown}" if texts else f"unknown ({unknown})")
        parts.append(", ".join(texts))
    in_use, in_experiments = parts
    return f"{comparison.quantity[:1].upper()}{comparison.quantity[1:]}", in_use, in_experiments


def overview(comparison: Comparison) -> str:
    """Return the ranges of a quantity in a sentence."""
    quantity, in_use, in_experiments = extents(comparison)
    return f"{quantity}: in use {in_use}; in experiments {in_experiments}."


def _divide(observations: Sequence[Observation]) -> tuple[list[Observation], list[Observation], int]:
    """Return the observations that are counts, those that are limits, and the number of those without a number."""
    limits = [observation for observation in observations if observation.is_limit]
    counts = [observation for observation in observations if observation.value and not observation.is_limit]
    return counts, limits, len(observations) - len(counts) - len(limits)


_PIPE_WIDTH = 80
_OTHERS = "others"
"""The name of the table of quantities that cannot be compared; it is the last table."""


def page(observations: Sequence[Observation], width: int | None, glyphs: Glyphs = UNICODE) -> list[Line]:
    """Return the comparison with its boundary, then tables of all numbers; these are not cut if no width is given."""
    available = width or _PIPE_WIDTH
    head = [line(part, "heading") for text in sentences(observations) for part in wrap(text, available)]
    head += [line(part, "muted") for part in wrap(BOUNDARY, available)]
    scale_tables = tables(observations)
    if scale_tables and scale_tables[-1].name == _OTHERS:
        scale_tables[-1] = _by_system(scale_tables[-1])
    return separated([head, *(lines(table, width, glyphs) for table in scale_tables)])


def document(observations: Sequence[Observation]) -> str:
    """Return the comparison with its boundary, then tables of all numbers, in Markdown."""
    texts = [f"{markdown_text(text)}\n" for text in (*sentences(observations), BOUNDARY)]
    return "\n".join((*texts, *map(markdown, tables(observations))))


def sentences(observations: Sequence[Observation]) -> list[str]:
    """Return a sentence for each quantity that can be compared, or one that says that there is none."""
    return [overview(comparison) for comparison in compare(observations)] or ["No quantity is known of both groups."]


def tables(observations: Sequence[Observation]) -> list[Table]:
    """Return two tables for each quantity that can be compared, and one of all other quantities."""
    comparisons = compare(observations)
    tables = []
    for comparison in comparisons:
        groups = (("in use", comparison.deployments), ("in experiments", comparison.academic))
        for group, group_observations in groups:
            name = f"{comparison.quantity} {group}"
            rows = tuple(map(_row, group_observations))
            tables.append(Table(name.replace(" ", "_"), name[:1].upper() + name[1:], ("system", *_COLUMNS), rows))
    compared = {comparison.quantity for comparison in comparisons}
    others = [observation for observation in observations if observation.quantity not in compared]
    if others:
        rows = tuple((observation.quantity, *_row(observation)) for observation in others)
        title = "What is known of one group only" if tables else "What is known"
        tables.append(Table(_OTHERS, title, ("quantity", "system", *_COLUMNS), rows, wrapped="quantity"))
    if tables and any(observation.is_second_hand for observation in observations):
        tables[-1] = tables[-1]._replace(notes=(*tables[-1].notes, _SECOND_HAND))
    return tables


def _by_system(table: Table) -> Table:
    """Return the table of other quantities with the system in a row of its own, so that it fits into 80 columns."""
    rows: list[tuple[Cell, ...]] = []
    for system in dict.fromkeys(row[1] for row in table.rows):
        rows.append((system, *("" for _ in _COLUMNS)))
        rows += [(f"  {row[0]}", *row[2:]) for row in table.rows if row[1] == system]
    return table._replace(columns=("quantity", *table.columns[2:]), rows=tuple(rows), wrapped="value")


def data(observations: Sequence[Observation]) -> str:
    """Return every observation and the comparisons as JSON."""
    return envelope(
        "scale",
        {
            "boundary": BOUNDARY,
            "comparisons": [
                {"quantity": quantity, "deployment": _extent(deployments), "academic": _extent(academic)}
                for quantity, deployments, academic in compare(observations)
            ],
            "observations": records(all_table(observations)),
        },
    )


def all_table(observations: Sequence[Observation]) -> Table:
    """Return every observation with all of its fields, a row for each."""
    columns = "system group record quantity phase value bound low high unit status evidence second_hand sources"
    rows: list[tuple[Cell, ...]] = []
    for observation in observations:
        value = observation.value
        bound = value.bound or None if value else None
        row = (observation.system, observation.group.value, observation.record, observation.quantity)
        measured = (observation.phase, amount(value), bound, *_ends(value), observation.unit, status(observation))
        second_hand = "yes" if observation.is_second_hand else "no"
        source = (observation.evidence.value, second_hand, observation.sources, observation.quote, observation.note)
        rows.append((*row, *measured, *source))
    return Table("observations", "", (*columns.split(), "quote", "note"), tuple(rows))


def _extent(observations: Sequence[Observation]) -> dict[str, float | None]:
    counts, limits, unknown = _divide(observations)
    extent = dict(zip(("low", "high"), _ends(span(counts)), strict=True)) | {"counted": len(counts)}
    extent |= zip(("lowest_limit", "highest_limit"), _ends(span(limits)), strict=True)
    return extent | {"limits": len(limits), "unknown": unknown}


def _row(observation: Observation) -> tuple[Cell, ...]:
    shown = amount(observation.value)
    counted = shown if observation.value is None else f"{shown} {observation.unit}"
    return observation.system, counted, observation.phase, status(observation), _SOURCES[observation.evidence]


def _ends(value: Amount | None) -> tuple[float | None, float | None]:
    """Return the lowest and the highest number of an amount, whole numbers as integers."""
    if value is None:
        return None, None
    low, high = (int(end) if end.is_integer() else end for end in (value.low, value.high))
    return low, high
