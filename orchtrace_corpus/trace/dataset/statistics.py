"""Statistics of a dataset as Ibis expressions, which any engine that Ibis supports can compute.

Figures do not depend on the order in which an engine reads the rows. Quantiles are interpolated between the two
nearest values (type 7 of R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American
Statistician 50, 1996). Sums are exact: the whole parts of the values and their billionths are summed as integers.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from orchtrace_corpus.base.errors import CommandUseError, require_library
from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.dataset.columns import COMPUTED, DECISIONS
from orchtrace_corpus.trace.dataset.tables import Answer, schema
from orchtrace_corpus.trace.measures.ledger import COUNTED_KINDS, KINDS
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES
from orchtrace_corpus.trace.model.terms import Decision, Unit

if TYPE_CHECKING:
    import ibis.expr.types as ir

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
FENCE = 3.0
"""The distance of an outlier from the nearer quartile, in interquartile ranges: J. W. Tukey's far out values (1977)."""

MIN_VALUES = 20
"""The number of values that a measure needs in a group to have outliers: the quartiles of fewer mean too little."""

MAX_OUTLIERS = 20
GROUPINGS = ("system", "topology", "format", "version", "model", "clock_unit", "task_id")
"""The columns of `traces` by which traces can be grouped."""

EXTRA = {"event_count": "1"}
"""Columns that are described in addition to the measures, with their units."""

_LARGEST = 1e12  # a sum of a million such values fits into 64 bits
_BILLION = 1e9


class Engine(Protocol):
    """The open tables of a dataset, which run SQL."""

    dialect: str

    def run(self, sql: str) -> Answer:
        """Run a statement."""


class Overview(NamedTuple):
    """The size of a group of traces, and the number of problems in them."""

    group: tuple[str, ...]
    traces: int
    trace_ids: int
    events: int
    edges: int
    warnings: int
    dropped: int
    unknown_kinds: int
    problems: int


class Distribution(NamedTuple):
    """A measure in a group of traces.

    Attributes:
        group: The values that the traces of the group share; empty for unknown.
        measure: The name of the measure.
        unit: Its unit; `step` for times of traces that count steps, which are described separately.
        n: The number of traces with a value.
        null: The number of traces without a value.
        mean: The mean; None if there is no value, or one beyond 10^12.
        least: The smallest value.
        quantiles: The quantiles, in the order of `QUANTILES`.
        greatest: The largest value.
    """

    group: tuple[str, ...]
    measure: str
    unit: str
    n: int
    null: int
    mean: float | None
    least: float | None
    quantiles: tuple[float | None, ...]
    greatest: float | None


class Coverage(NamedTuple):
    """A sub-decision in a group of traces.

    Attributes:
        group: The values that the traces of the group share; empty for unknown.
        decision: The sub-decision.
        traces: The number of traces in the group.
        having: The number of these with an event that takes the sub-decision.
        events: The number of events that take it.
    """

    group: tuple[str, ...]
    decision: Decision
    traces: int
    having: int
    events: int


class ModelUsage(NamedTuple):
    """The calls, tokens and cost of a model in a group of traces, without events that are counted in another trace.

    Attributes:
        group: The values that the traces of the group share; empty for unknown.
        model: The name of the model; empty if none is given.
        events: The number of events with tokens.
        without_tokens: The number of inferences, decisions and aggregates without tokens.
        tokens: The tokens by kind; None for a kind that no event gives.
        cost_usd: The cost; None if no event has one.
        at_least: True if a trace with calls of the model does not record all tokens.
        cost_at_least: True if there is a cost, but `at_least` holds or an event with tokens has no cost.
    """

    group: tuple[str, ...]
    model: str
    events: int
    without_tokens: int
    tokens: tuple[int | None, ...]
    cost_usd: float | None
    at_least: bool
    cost_at_least: bool

    @property
    def total(self) -> int:
        """Return the sum of all tokens; reasoning tokens are part of the output."""
        return sum(token or 0 for token in self.tokens[: len(COUNTED_KINDS)])


class Outlier(NamedTuple):
    """A trace with a value far outside its group.

    `ranges` is the distance from the nearer quartile in interquartile ranges, negative below the lower quartile.
    """

    group: tuple[str, ...]
    measure: str
    unit: str
    value: float
    ranges: float
    trace: str
    trace_id: str


class Statistics(NamedTuple):
    """All statistics of a dataset. `outlying` is the number of outliers; `outliers` has those farthest away."""

    by: tuple[str, ...]
    overviews: list[Overview]
    distributions: list[Distribution]
    coverage: list[Coverage]
    models: list[ModelUsage]
    outlying: int
    outliers: list[Outlier]


def statistics(tables: Engine, by: Sequence[str]) -> Statistics:
    """Compute the statistics of an open dataset, for groups of traces that share their values in the columns `by`.

    Raises:
        CommandUseError: Ibis is not installed, or traces cannot be grouped by a column.
        DataFileError: The tables cannot be read.
    """
    for name in by:
        if name not in GROUPINGS:
            raise CommandUseError(f"cannot divide traces by {quote(name)}{suggestion(name, GROUPINGS)}")
    require_library("a dataset", "ibis")
    groups = tuple(dict.fromkeys(by))
    measures = [*EXTRA, *COMPUTED]
    sql = queries(groups, tables.dialect)

    def rows(query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, each as its group and the other values."""
        size = len(groups)
        return [(row[:size], *map(_rounded, row[size:])) for batch in tables.run(sql[query]).batches for row in batch]

    distributions = [_distribution(*row) for row in rows("distributions")]
    coverages = [Coverage(group, Decision(name), *row) for group, name, *row in rows("coverage")]
    usages = [_model_usage(*row) for row in rows("models")]
    outlier_rows = rows("outliers")
    return Statistics(
        by=groups,
        overviews=sorted(Overview(group, *(int(value or 0) for value in row)) for group, *row in rows("overview")),
        distributions=sorted(distributions, key=lambda item: (item.group, measures.index(item.measure), item.unit)),
        coverage=sorted(coverages, key=lambda item: (item.group, list(Decision).index(item.decision))),
        models=sorted(usages, key=lambda item: (item.group, -item.total, item.model)),
        outlying=outlier_rows[0][-1] if outlier_rows else 0,
        outliers=[Outlier(*row[:-1]) for row in outlier_rows],
    )


@cache
def queries(by: tuple[str, ...], dialect: str) -> dict[str, str]:
    """Return all statistics as SQL, by name. Cached: writing SQL takes longer than running it on a small dataset."""
    import ibis

    traces = unbound_table("traces")
    expressions = {
        "overview": overview(traces, by),
        "distributions": distributions(traces, by),
        "coverage": coverage(traces, by),
        "outliers": outliers(traces, by),
        "models": models(traces, unbound_table("events"), unbound_table("copies"), by),
    }
    return {name: str(ibis.to_sql(query, dialect=dialect, pretty=False)) for name, query in expressions.items()}


def unbound_table(table: str) -> "ir.Table":
    """Return a table as an Ibis expression that is not bound to an engine."""
    import ibis

    return ibis.table(ibis.Schema.from_pyarrow(schema(table)), name=table)


def overview(traces: "ir.Table", by: Sequence[str] = ()) -> "ir.Table":
    """Return a row for each group: the numbers of traces, events, edges and problems."""
    sums = ("event_count", "edge_count", "warnings", "dropped", "unknown_kinds", "problems")
    return traces.aggregate(
        by=_groups(traces, by),
        traces=traces.count(),
        trace_ids=traces.trace_id.nunique(),
        **{name: traces[name].sum().cast("string") for name in sums},
    )


def measure_values(traces: "ir.Table", by: Sequence[str]) -> "ir.Table":
    """Return a row for each measure of each trace: the group, `measure`, `unit`, `value`, `trace`, `trace_id`.

    The unit of times is `step` in traces that count steps.
    """
    measures = [*EXTRA, *COMPUTED]
    kept = traces.select(
        *_groups(traces, by),
        "trace",
        "trace_id",
        (traces.clock_unit == str(Unit.STEP)).name("counts_steps"),
        *(traces[name].cast("float64").name(name) for name in measures),
    )
    long = kept.pivot_longer(measures, names_to="measure", values_to="value")
    units = {name: definition.unit for name, definition in COMPUTED.items()} | EXTRA
    unit = long.measure.cases(*units.items(), else_="1")
    return long.mutate(unit=(long.counts_steps & (unit == "s")).ifelse("step", unit)).drop("counts_steps")


def distributions(traces: "ir.Table", by: Sequence[str]) -> "ir.Table":
    """Return a row for each measure of each group: group, measure, unit, n, null, sums, least, quantiles, greatest."""
    long = measure_values(traces, by)
    value = long.value
    return long.group_by(*by, "measure", "unit").aggregate(
        n=value.count(),
        null=value.isnull().sum(),
        **_exact_sum(value),
        least=value.min(),
        quantiles=value.quantile(list(QUANTILES)),
        greatest=value.max(),
    )


def coverage(traces: "ir.Table", by: Sequence[str]) -> "ir.Table":
    """Return a row for each sub-decision of each group, with the fields of `Coverage`."""
    columns = {name: str(decision) for decision, name in DECISIONS.items()}
    kept = traces.select(*_groups(traces, by), *(traces[name].name(decision) for name, decision in columns.items()))
    long = kept.pivot_longer(list(columns.values()), names_to="decision", values_to="events")
    groups = long.group_by(*by, "decision")
    return groups.aggregate(traces=long.count(), having=(long.events > 0).sum(), events=long.events.sum())


def models(traces: "ir.Table", events: "ir.Table", copies: "ir.Table", by: Sequence[str]) -> "ir.Table":
    """Return a row for each model of each group: group, model, numbers of events, tokens by kind, sum of the costs.

    Events of `copies` are excluded, because they are counted in another trace.
    """
    import ibis

    kinds = [f"{kind}_tokens" for kind in KINDS]
    has_tokens = ibis.or_(*(events[kind].notnull() for kind in kinds))
    spent = events.filter(~events.copied_context).select(
        "trace",
        "number",
        *kinds,
        asked=events.model.fill_null(""),
        cost=events.cost_usd,
        has_tokens=has_tokens,
        lacks=~has_tokens & events.type.isin(sorted(ANSWER_TYPES)),
    )
    spent = spent.filter(spent.has_tokens | spent.lacks | spent.cost.notnull()).anti_join(copies, ["trace", "number"])
    spent = spent.join(traces.select("trace", *_groups(traces, by), unsure=traces.tokens.isnull()), "trace")
    return spent.group_by(*by, "asked").aggregate(
        events=spent.has_tokens.sum(),
        without=spent.lacks.sum(),
        unsure=spent.unsure.sum(),
        unpriced=(spent.has_tokens & spent.cost.isnull()).sum(),
        **{kind: _sum_as_text(spent[kind]) for kind in kinds},
        **_exact_sum(spent.cost),
    )


def outliers(traces: "ir.Table", by: Sequence[str]) -> "ir.Table":
    """Return the values farthest beyond the fences of their groups.

    Each row has the group, measure, unit, value, ranges, trace, trace_id, and the number of all outliers.
    """
    long = measure_values(traces, by)
    groups = long.group_by(*by, "measure", "unit")
    quartiles = groups.aggregate(n=long.value.count(), quartiles=long.value.quantile([0.25, 0.75]))
    fences = quartiles.select(*by, "measure", "unit", "n", lower=quartiles.quartiles[0], upper=quartiles.quartiles[1])
    fences = fences.filter((fences.n >= MIN_VALUES) & (fences.upper > fences.lower))
    both = long.join(fences, [*by, "measure", "unit"])
    width = both.upper - both.lower
    below = (both.value < both.lower).ifelse((both.value - both.lower) / width, 0.0)
    ranges = (both.value > both.upper).ifelse((both.value - both.upper) / width, below)
    far = both.select(*by, "measure", "unit", "value", ranges=ranges, trace=both.trace, trace_id=both.trace_id)
    far = far.filter(far.ranges.abs() > FENCE)
    far = far.mutate(all=far.count().over())
    return far.order_by(far.ranges.abs().desc(), "measure", "trace").limit(MAX_OUTLIERS)


def _groups(traces: "ir.Table", by: Sequence[str]) -> "list[ir.Value]":
    """Return the columns by which traces are grouped, with null replaced by an empty text, because joins skip nulls."""
    return [traces[name].fill_null("").name(name) for name in by]


def _sum_as_text(value: "ir.Value") -> "ir.Value":
    """Return the sum of whole numbers as text, because it may exceed each type in which the engine is exact."""
    return value.cast("int64").sum().cast("string")


def _exact_sum(value: "ir.Value") -> "dict[str, ir.Value]":
    """Return a sum in two exact parts, whole numbers and billionths, which do not depend on the order of the rows."""
    small = value.abs() <= _LARGEST
    return {
        "wholes": _sum_as_text(small.ifelse(value.floor(), None)),
        "billionths": _sum_as_text(small.ifelse(((value - value.floor()) * _BILLION).round(), None)),
        "large": (~small).sum(),
    }


def _distribution(group: tuple[str, ...], *row: Any) -> Distribution:
    measure, unit, n, null, wholes, billionths, large, least, quantiles, greatest = row
    total = _total(wholes, billionths, large)
    mean = None if total is None else _rounded(total / n)
    quantiles = quantiles or (None,) * len(QUANTILES)
    return Distribution(group, measure, unit, n, null, mean, least, quantiles, greatest)


def _model_usage(group: tuple[str, ...], model: str, events: int, without: int, *row: Any) -> ModelUsage:
    unsure, unpriced, *kinds, wholes, billionths, large = row
    tokens = tuple(None if kind is None else int(kind) for kind in kinds)
    cost = _rounded(_total(wholes, billionths, large))
    return ModelUsage(
        group, model, events, without, tokens, cost, bool(unsure), cost is not None and unsure + unpriced > 0
    )


def _total(wholes: str | None, billionths: str | None, large: int | None) -> Fraction | None:
    """Return the sum of two exact parts; None if there is no value, or one that is too large."""
    if wholes is None or billionths is None or large:
        return None
    return int(wholes) + Fraction(int(billionths), int(_BILLION))


def _rounded(value: Any) -> Any:
    """Round a number, or a list of numbers, to the digits on which all engines agree; return other values unchanged."""
    if isinstance(value, list):
        return tuple(map(_rounded, value))
    if isinstance(value, (float, Fraction)):
        return float(f"{float(value):.12g}")
    return value
