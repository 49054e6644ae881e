"""The statistics of a dataset in a plain Python loop, without an engine: to check the engine's, and to race it.

    python scripts/plain_statistics.py DIR [--by system,topology]

Prints what `corpus trace dataset stats DIR --format json` prints.
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

ASKED = ("inference", "orchestrator_decision", "aggregate")
UNITS = {**EXTRA, **{name: one.unit for name, one in COMPUTED.items()}}
Values = list[tuple[Any, str, str]]
Group = tuple[str, ...]


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the dataset")
    parser.add_argument("--by", default="", help="columns of traces, with commas between them")
    arguments = parser.parse_args()
    by = tuple(dict.fromkeys(arguments.by.split(","))) if arguments.by else ()
    print(
        table.render(render.tables(statistics(arguments.folder, by), exact=True), "trace-dataset", Format.JSON), end=""
    )


def statistics(folder: str, by: Group) -> Statistics:
    """Return the statistics of a dataset, computed row by row."""
    totals: dict[Group, Counter[str]] = {} if by else {(): Counter()}
    ids: set[tuple[Group, str]] = set()
    values: dict[tuple[Group, str, str], Values] = defaultdict(list)
    covered: dict[tuple[Group, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    groups: dict[str, Group] = {}
    unsure: set[str] = set()
    for trace in rows(folder, "traces"):
        group = tuple(trace[name] or "" for name in by)
        groups[trace["trace"]] = group
        unsure |= {trace["trace"]} if trace["tokens"] is None else set()
        counted = totals.setdefault(group, Counter())
        counted["traces"] += 1
        counted["trace_ids"] += (group, trace["trace_id"]) not in ids
        ids.add((group, trace["trace_id"]))
        for name in Overview._fields[3:]:
            counted[name] += trace[{"events": "event_count", "edges": "edge_count"}.get(name, name)] or 0
        for name, unit in UNITS.items():
            shown = "step" if unit == "s" and trace["clock_unit"] == "step" else unit
            values[group, name, shown].append((trace[name], trace["trace"], trace["trace_id"]))
        for decision, column in DECISIONS.items():
            counts = covered[group, str(decision)]
            counts[0] += 1
            counts[1] += trace[column] > 0
            counts[2] += trace[column]
    described = [distribution(*key, found) for key, found in values.items()]
    far = [outlier for key, found in values.items() for outlier in outliers(*key, found)]
    names, decisions = list(UNITS), [str(decision) for decision in DECISIONS]
    return Statistics(
        by,
        [Overview(group, *map(counted.__getitem__, Overview._fields[1:])) for group, counted in sorted(totals.items())],
        sorted(described, key=lambda one: (one.group, names.index(one.measure), one.unit)),
        [
            Coverage(group, next(one for one in DECISIONS if one == decision), *counts)
            for (group, decision), counts in sorted(
                covered.items(), key=lambda pair: (pair[0][0], decisions.index(pair[0][1]))
            )
        ],
        sorted(models(folder, groups, unsure), key=lambda one: (one.group, -one.total, one.model)),
        len(far),
        [
            figured(one)
            for one in sorted(far, key=lambda one: (-abs(one.ranges), one.measure, one.trace))[:MAX_OUTLIERS]
        ],
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
    lower, upper = quantile(known, 0.25), quantile(known, 0.75)
    if not upper > lower:
        return
    for value, trace, trace_id in found:
        if value is not None:
            beyond = value - upper if value > upper else value - lower if value < lower else 0.0
            ranges = beyond / (upper - lower)
            if abs(ranges) > FENCE:
                yield Outlier(group, measure, unit, value, ranges, trace, trace_id)


def models(folder: str, groups: Mapping[str, Group], unsure: Set[str]) -> Iterator[ModelUsage]:
    """Return the rows of `statistics.models`."""
    found: dict[tuple[Group, str], list[Any]] = defaultdict(lambda: [0, 0, [None] * len(KINDS), [], False, False])
    copies = {(event["trace"], event["number"]) for event in rows(folder, "copies")}
    for event in rows(folder, "events"):
        if (event["trace"], event["number"]) in copies:
            continue
        tokens = [event[f"{kind}_tokens"] for kind in KINDS]
        has_tokens = any(token is not None for token in tokens)
        lacks = not has_tokens and event["type"] in ASKED
        if event["copied_context"] or not (has_tokens or lacks or event["cost_usd"] is not None):
            continue
        entry = found[groups[event["trace"]], event["model"] or ""]
        entry[0] += has_tokens
        entry[1] += lacks
        entry[2] = [old if new is None else (old or 0) + new for old, new in zip(entry[2], tokens, strict=True)]
        if event["cost_usd"] is not None:
            entry[3].append(event["cost_usd"])
        entry[4] |= event["trace"] in unsure
        entry[5] |= event["trace"] in unsure or (has_tokens and event["cost_usd"] is None)
    for (group, model), (events, without, tokens, costs, at_least, costs_more) in found.items():
        total = exact_sum(costs) if costs else None
        cost = None if total is None else figure(total)
        yield ModelUsage(group, model, events, without, tuple(tokens), cost, at_least, cost is not None and costs_more)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values, interpolated (type 7 of Hyndman and Fan)."""
    place = (len(ordered) - 1) * share
    before = floor(place)
    after = min(before + 1, len(ordered) - 1)
    part = place - before
    return ordered[before] * (1 - part) + ordered[after] * part


def exact_sum(values: Sequence[float]) -> Fraction | None:
    """Return the sum of values, each rounded to a billionth; None if one is beyond 10^12."""
    if any(abs(value) > 1e12 for value in values):
        return None
    wholes = sum(floor(value) for value in values)
    return wholes + Fraction(sum(nearest((value - floor(value)) * 1e9) for value in values), 10**9)


def nearest(value: float) -> int:
    """Return the nearest whole number; halves are rounded up."""
    below = floor(value)
    return below + (value - below >= 0.5)


def figure(value: float | Fraction) -> float:
    """Return a figure rounded to twelve digits."""
    return float(f"{float(value):.12g}")


def figured(one: Outlier) -> Outlier:
    """Return an outlier with its figures rounded to twelve digits."""
    return one._replace(value=figure(one.value), ranges=figure(one.ranges))


if __name__ == "__main__":
    main()
