"""Compute the statistics of a dataset in a plain Python loop, to check the figures and the speed of the engines.

    python scripts/plain_statistics.py DIR [--by system,topology]

The output is that of `corpus trace dataset stats DIR --format json`.
"""

import argparse
import glob
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from fractions import Fraction
from math import floor
from typing import Any

from orchtrace_corpus.base.text import Format, table
from orchtrace_corpus.trace.dataset.columns import COMPUTED, DECISIONS
from orchtrace_corpus.trace.dataset.statistics import (
    EXTRA,
    FENCE,
    MAX_OUTLIERS,
    MIN_VALUES,
    QUANTILES,
    Coverage,
    Distribution,
    ModelUsage,
    Outlier,
    Overview,
    Statistics,
)
from orchtrace_corpus.trace.measures.ledger import KINDS
from orchtrace_corpus.trace.render import dataset as render

MODEL_EVENTS = ("inference", "orchestrator_decision", "aggregate")
"""The types of events in which a model answers."""
UNITS = {**EXTRA, **{name: measure.unit for name, measure in COMPUTED.items()}}
Values = list[tuple[Any, str, str]]
"""For each trace: the value of a measure, the number of the trace in the dataset, and its id."""
Group = tuple[str, ...]
"""The values of the columns by which traces are divided."""


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the dataset")
    parser.add_argument("--by", default="", help="columns of traces, with commas between them")
    arguments = parser.parse_args()
    by = tuple(dict.fromkeys(arguments.by.split(","))) if arguments.by else ()
    tables = render.tables(statistics(arguments.folder, by), exact=True)
    print(table.render(tables, "trace-dataset", Format.JSON), end="")


def statistics(folder: str, by: Group) -> Statistics:
    """Return the statistics of a dataset, computed row by row."""
    totals: dict[Group, Counter[str]] = {} if by else {(): Counter()}
    trace_ids: set[tuple[Group, str]] = set()
    values: dict[tuple[Group, str, str], Values] = defaultdict(list)  # by group, measure and unit
    # For each group and decision: the traces, the traces with the decision, and the events with it.
    coverage: dict[tuple[Group, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    groups: dict[str, Group] = {}
    without_total: set[str] = set()  # the traces whose number of tokens is not known
    for trace in rows(folder, "traces"):
        group = tuple(trace[name] or "" for name in by)
        groups[trace["trace"]] = group
        if trace["tokens"] is None:
            without_total.add(trace["trace"])
        counts = totals.setdefault(group, Counter())
        counts["traces"] += 1
        if (group, trace["trace_id"]) not in trace_ids:
            trace_ids.add((group, trace["trace_id"]))
            counts["trace_ids"] += 1
        for name in Overview._fields[3:]:
            column = {"events": "event_count", "edges": "edge_count"}.get(name, name)
            counts[name] += trace[column] or 0
        for name, unit in UNITS.items():
            trace_unit = "step" if unit == "s" and trace["clock_unit"] == "step" else unit
            values[group, name, trace_unit].append((trace[name], trace["trace"], trace["trace_id"]))
        for decision, column in DECISIONS.items():
            decision_counts = coverage[group, str(decision)]
            decision_counts[0] += 1
            if trace[column] > 0:
                decision_counts[1] += 1
            decision_counts[2] += trace[column]
    overviews = []
    for group, counts in sorted(totals.items()):
        overviews.append(Overview(group, *(counts[name] for name in Overview._fields[1:])))
    measures = list(UNITS)
    distributions = [distribution(group, name, unit, found) for (group, name, unit), found in values.items()]
    distributions.sort(key=lambda row: (row.group, measures.index(row.measure), row.unit))
    all_outliers = [
        outlier for (group, name, unit), found in values.items() for outlier in outliers(group, name, unit, found)
    ]
    all_outliers.sort(key=lambda outlier: (-abs(outlier.ranges), outlier.measure, outlier.trace))
    coverages = []
    for group in sorted({group for group, _ in coverage}):
        coverages += [Coverage(group, decision, *coverage[group, str(decision)]) for decision in DECISIONS]
    return Statistics(
        by,
        overviews,
        distributions,
        coverages,
        sorted(models(folder, groups, without_total), key=lambda row: (row.group, -row.total, row.model)),
        len(all_outliers),
        [rounded(outlier) for outlier in all_outliers[:MAX_OUTLIERS]],
    )


def rows(folder: str, name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a table."""
    from pyarrow import parquet

    for file in sorted(glob.glob(os.path.join(glob.escape(folder), name, "*.parquet"))):
        with parquet.ParquetFile(file) as part:
            for batch in part.iter_batches():
                yield from batch.to_pylist()


def distribution(group: Group, measure: str, unit: str, found: Values) -> Distribution:
    """Return the row of `statistics.distributions` for one measure of one group."""
    known = sorted(value for value, _, _ in found if value is not None)
    if not known:
        return Distribution(group, measure, unit, 0, len(found), None, None, (None,) * len(QUANTILES), None)
    total = exact_sum(known)
    return Distribution(
        group,
        measure,
        unit,
        len(known),
        len(found) - len(known),
        None if total is None else figure(total / len(known)),
        figure(known[0]),
        tuple(figure(quantile(known, share)) for share in QUANTILES),
        figure(known[-1]),
    )


def outliers(group: Group, measure: str, unit: str, found: Values) -> Iterator[Outlier]:
    """Return the rows of `statistics.outliers` for one measure of one group."""
    known = sorted(value for value, _, _ in found if value is not None)
    if len(known) < MIN_VALUES:
        return
    lower = quantile(known, 0.25)
    upper = quantile(known, 0.75)
    if not upper > lower:
        return
    for value, trace, trace_id in found:
        if value is None:
            continue
        distance = 0.0
        if value > upper:
            distance = value - upper
        elif value < lower:
            distance = value - lower
        ranges = distance / (upper - lower)  # in interquartile ranges
        if abs(ranges) > FENCE:
            yield Outlier(group, measure, unit, value, ranges, trace, trace_id)


class _Usage:
    """The sums over the events of one model in one group."""

    def __init__(self) -> None:
        self.with_tokens = 0
        self.without_tokens = 0
        self.tokens: list[int | None] = [None] * len(KINDS)
        self.costs: list[float] = []
        self.tokens_are_least = False  # True if some tokens are not known
        self.cost_is_least = False


def models(folder: str, groups: Mapping[str, Group], without_total: Set[str]) -> Iterator[ModelUsage]:
    """Yield the rows of `statistics.models`; `without_total` are the traces whose number of tokens is not known."""
    usages: dict[tuple[Group, str], _Usage] = defaultdict(_Usage)
    copies = {(event["trace"], event["number"]) for event in rows(folder, "copies")}
    for event in rows(folder, "events"):
        if event["copied_context"] or (event["trace"], event["number"]) in copies:
            continue
        tokens = [event[f"{kind}_tokens"] for kind in KINDS]
        has_tokens = any(token is not None for token in tokens)
        lacks_tokens = not has_tokens and event["type"] in MODEL_EVENTS
        if not has_tokens and not lacks_tokens and event["cost_usd"] is None:
            continue
        usage = usages[groups[event["trace"]], event["model"] or ""]
        if has_tokens:
            usage.with_tokens += 1
        if lacks_tokens:
            usage.without_tokens += 1
        for index, count in enumerate(tokens):
            if count is not None:
                usage.tokens[index] = (usage.tokens[index] or 0) + count
        if event["cost_usd"] is not None:
            usage.costs.append(event["cost_usd"])
        elif has_tokens:
            usage.cost_is_least = True
        if event["trace"] in without_total:
            usage.tokens_are_least = True
            usage.cost_is_least = True
    for (group, model), usage in usages.items():
        total = exact_sum(usage.costs) if usage.costs else None
        cost = None if total is None else figure(total)
        yield ModelUsage(
            group,
            model,
            usage.with_tokens,
            usage.without_tokens,
            tuple(usage.tokens),
            cost,
            usage.tokens_are_least,
            cost is not None and usage.cost_is_least,
        )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values, interpolated (type 7 of Hyndman and Fan)."""
    position = (len(ordered) - 1) * share
    before = floor(position)
    after = min(before + 1, len(ordered) - 1)
    weight = position - before
    return ordered[before] * (1 - weight) + ordered[after] * weight


def exact_sum(values: Sequence[float]) -> Fraction | None:
    """Return the sum of values, each rounded to a billionth; None if one is beyond 10^12."""
    if any(abs(value) > 1e12 for value in values):
        return None
    wholes = sum(floor(value) for value in values)
    return wholes + Fraction(sum(nearest((value - floor(value)) * 1e9) for value in values), 10**9)


def nearest(value: float) -> int:
    """Return the nearest whole number; halves are rounded up."""
    below = floor(value)
    return below + 1 if value - below >= 0.5 else below


def figure(value: float | Fraction) -> float:
    """Return a figure rounded to twelve digits."""
    return float(f"{float(value):.12g}")


def rounded(outlier: Outlier) -> Outlier:
    """Return an outlier with its figures rounded to twelve digits."""
    return outlier._replace(value=figure(outlier.value), ranges=figure(outlier.ranges))


if __name__ == "__main__":
    main()
