"""Statistics of a dataset as Ibis expressions, which any engine that Ibis supports can compute.

The statistics describe groups of traces. In the functions below, `by` is the names of the columns of `traces` whose
values the traces of a group share, and every row begins with the values of its group in these columns.

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
from orchtrace_corpus.trace.dataset.tables import QueryResult, schema
from orchtrace_corpus.trace.measures.ledger import COUNTED_KINDS, KINDS
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES
from orchtrace_corpus.trace.model.terms import Decision, Unit

if TYPE_CHECKING:
    import ibis.expr.types as ir

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
FENCE = 3.0
"""The distance from the nearer quartile, in interquartile ranges, beyond which a value is an outlier.

These are the values that J. W. Tukey calls "far out" (Exploratory Data Analysis, 1977).
"""

MIN_VALUES = 20
"""The number of values that a measure needs in a group to have outliers: with fewer, quartiles mean too little."""

MAX_OUTLIERS = 20
"""The number of outliers that are listed, the farthest first."""

GROUPINGS = ("system", "topology", "format", "version", "model", "clock_unit", "task_id")
"""The columns of `traces` by which traces can be grouped."""

EXTRA = {"event_count": "1"}
"""Columns that are described in addition to the measures, with their units."""

_MAX_SUMMED = 1e12  # a sum of a million such values fits into 64 bits
_BILLION = 1e9


class OpenTables(Protocol):
    """The open tables of a dataset, which run SQL.

    Attributes:
        dialect: The dialect of their SQL, by its name in Ibis.
    """

    dialect: str

    def run(self, sql: str) -> QueryResult:
        """Run a statement."""


class Overview(NamedTuple):
    """The size of a group of traces, and the number of problems in them.

    `trace_ids` is the number of different ids of traces. The fields from `events` on are sums of columns of `traces`.
    """

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
    """The distribution of a measure in a group of traces.

    Attributes:
        group: The values that the traces of the group share; empty for unknown.
        measure: The name of the measure.
        unit: The unit; `step` for times of traces that count steps, which are described separately.
        n: The number of traces with a value.
        null: The number of traces without a value.
        mean: The mean; None if there is no value, or if a value is beyond 10^12.
        least: The smallest value; None if there is no value.
        quantiles: The quantiles, in the order of `QUANTILES`; None for each if there is no value.
        greatest: The largest value; None if there is no value.
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
    """The number of traces of a group that have events that take a sub-decision.

    Attributes:
        group: The values that the traces of the group share; empty for unknown.
        decision: The sub-decision.
        traces: The number of traces in the group.
        traces_with: The number of traces with an event that takes the sub-decision.
        events: The number of events that take the sub-decision.
    """

    group: tuple[str, ...]
    decision: Decision
    traces: int
    traces_with: int
    events: int


class ModelUsage(NamedTuple):
    """The calls, tokens and cost of a model in a group of traces, without events that are counted in another trace.

    Attributes:
        group: The values that the traces of the group share; empty for unknown.
        model: The name of the model; empty for events that name no model.
        events: The number of events with tokens.
        without_tokens: The number of inferences, decisions and aggregates without tokens.
        tokens: The tokens by kind, in the order of `KINDS`; None for a kind that no event states.
        cost_usd: The cost in US dollars; None if no event has one.
        at_least: True if the tokens are a lower bound: a trace with calls of the model does not record all tokens.
        cost_at_least: True if the cost is a lower bound: the tokens are, or an event with tokens has no cost.
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
        """The sum of all tokens; reasoning tokens are part of the output."""
        return sum(count or 0 for count in self.tokens[: len(COUNTED_KINDS)])


class Outlier(NamedTuple):
    """A trace with a value far outside its group.

    Attributes:
        group: The values that the traces of the group share; empty for unknown.
        measure: The name of the measure.
        unit: The unit of the value.
        value: The value.
        ranges: The distance from the nearer quartile in interquartile ranges; negative below the lower quartile.
        trace: The name of the trace in the tables.
        trace_id: The id of the trace.
    """

    group: tuple[str, ...]
    measure: str
    unit: str
    value: float
    ranges: float
    trace: str
    trace_id: str


class Statistics(NamedTuple):
    """All statistics of a dataset.

    Attributes:
        by: The columns of `traces` by which traces are grouped.
        overviews: An overview of each group.
        distributions: The distribution of each measure in each group.
        coverage: The coverage of each sub-decision in each group.
        models: The usage of each model in each group.
        outlier_count: The number of all outliers.
        outliers: The outliers farthest away, up to `MAX_OUTLIERS`.
    """

    by: tuple[str, ...]
    overviews: list[Overview]
    distributions: list[Distribution]
    coverage: list[Coverage]
    models: list[ModelUsage]
    outlier_count: int
    outliers: list[Outlier]


def statistics(tables: OpenTables, by: Sequence[str]) -> Statistics:
    """Compute the statistics of an open dataset, grouped by columns of `traces`.

    Raises:
        CommandUseError: Ibis is not installed, or traces cannot be grouped by a column.
        DataFileError: The tables cannot be read.
    """
    for name in by:
        if name not in GROUPINGS:
            raise CommandUseError(f"cannot divide traces by {quote(name)}{suggestion(name, GROUPINGS)}")
    require_library("a dataset", "ibis")
    columns = tuple(dict.fromkeys(by))
    sql_by_name = queries(columns, tables.dialect)

    def rows(name: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, each as a tuple of its group and the other values."""
        grouped_rows = []
        for batch in tables.run(sql_by_name[name]).batches:
            for row in batch:
                group, other_values = row[: len(columns)], row[len(columns) :]
                grouped_rows.append((group, *map(_rounded, other_values)))
        return grouped_rows

    measures = [*EXTRA, *COMPUTED]
    decisions = list(Decision)
    # Sums come as text, and are null in an empty group.
    overviews = [Overview(group, *(int(value or 0) for value in row)) for group, *row in rows("overview")]
    distributions = [_distribution(*row) for row in rows("distributions")]
    coverages = [Coverage(group, Decision(name), *row) for group, name, *row in rows("coverage")]
    usages = [_model_usage(*row) for row in rows("models")]
    outlier_rows = rows("outliers")  # the last value of each row is the number of all outliers
    return Statistics(
        by=columns,
        overviews=sorted(overviews),
        distributions=sorted(distributions, key=lambda item: (item.group, measures.index(item.measure), item.unit)),
        coverage=sorted(coverages, key=lambda item: (item.group, decisions.index(item.decision))),
        models=sorted(usages, key=lambda item: (item.group, -item.total, item.model)),
        outlier_count=outlier_rows[0][-1] if outlier_rows else 0,
        outliers=[Outlier(*row[:-1]) for row in outlier_rows],
    )


@cache
def queries(by: tuple[str, ...], dialect: str) -> dict[str, str]:
    """Return the SQL of all statistics, by name.

    The result is cached: writing SQL takes longer than running it on a small dataset.
    """
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
    measure_columns = traces.select(
        *_groups(traces, by),
        "trace",
        "trace_id",
        (traces.clock_unit == str(Unit.STEP)).name("counts_steps"),
        *(traces[name].cast("float64").name(name) for name in measures),
    )
    values = measure_columns.pivot_longer(measures, names_to="measure", values_to="value")
    units = {name: definition.unit for name, definition in COMPUTED.items()} | EXTRA
    unit = values.measure.cases(*units.items(), else_="1")
    is_in_steps = values.counts_steps & (unit == "s")
    return values.mutate(unit=is_in_steps.ifelse("step", unit)).drop("counts_steps")


def distributions(traces: "ir.Table", by: Sequence[str]) -> "ir.Table":
    """Return a row for each measure of each group: group, measure, unit, n, null, sums, least, quantiles, greatest."""
    values = measure_values(traces, by)
    value = values.value
    return values.group_by(*by, "measure", "unit").aggregate(
        n=value.count(),
        null=value.isnull().sum(),
        **_exact_sum(value),
        least=value.min(),
        quantiles=value.quantile(list(QUANTILES)),
        greatest=value.max(),
    )


def coverage(traces: "ir.Table", by: Sequence[str]) -> "ir.Table":
    """Return a row for each sub-decision of each group, with the fields of `Coverage`."""
    decision_by_column = {name: str(decision) for decision, name in DECISIONS.items()}
    decision_columns = [traces[name].name(decision) for name, decision in decision_by_column.items()]
    counts = traces.select(*_groups(traces, by), *decision_columns).pivot_longer(
        list(decision_by_column.values()), names_to="decision", values_to="events"
    )
    return counts.group_by(*by, "decision").aggregate(
        traces=counts.count(),
        traces_with=(counts.events > 0).sum(),
        events=counts.events.sum(),
    )


def models(traces: "ir.Table", events: "ir.Table", copies: "ir.Table", by: Sequence[str]) -> "ir.Table":
    """Return a row for each model of each group: group, model, numbers of events, tokens by kind, sum of the costs.

    Events of `copies` are excluded, because they are counted in another trace.
    """
    import ibis

    kinds = [f"{kind}_tokens" for kind in KINDS]
    has_tokens = ibis.or_(*(events[kind].notnull() for kind in kinds))
    usage = events.filter(~events.copied_context).select(
        "trace",
        "number",
        *kinds,
        asked=events.model.fill_null(""),
        cost=events.cost_usd,
        has_tokens=has_tokens,
        lacks=~has_tokens & events.type.isin(sorted(ANSWER_TYPES)),
    )
    usage = usage.filter(usage.has_tokens | usage.lacks | usage.cost.notnull())
    usage = usage.anti_join(copies, ["trace", "number"])
    # A trace without a total of its tokens does not record all of them.
    usage = usage.join(traces.select("trace", *_groups(traces, by), unsure=traces.tokens.isnull()), "trace")
    return usage.group_by(*by, "asked").aggregate(
        events=usage.has_tokens.sum(),
        without=usage.lacks.sum(),
        unsure=usage.unsure.sum(),
        unpriced=(usage.has_tokens & usage.cost.isnull()).sum(),
        **{kind: _sum_as_text(usage[kind]) for kind in kinds},
        **_exact_sum(usage.cost),
    )


def outliers(traces: "ir.Table", by: Sequence[str]) -> "ir.Table":
    """Return the values farthest from the quartiles of their groups.

    Each row has the group, measure, unit, value, ranges, trace, trace_id, and the number of all outliers.
    """
    values = measure_values(traces, by)
    groups = values.group_by(*by, "measure", "unit")
    quartiles = groups.aggregate(n=values.value.count(), quartiles=values.value.quantile([0.25, 0.75]))
    fences = quartiles.select(*by, "measure", "unit", "n", lower=quartiles.quartiles[0], upper=quartiles.quartiles[1])
    fences = fences.filter((fences.n >= MIN_VALUES) & (fences.upper > fences.lower))
    joined = values.join(fences, [*by, "measure", "unit"])
    width = joined.upper - joined.lower
    ranges_below = (joined.value < joined.lower).ifelse((joined.value - joined.lower) / width, 0.0)
    ranges = (joined.value > joined.upper).ifelse((joined.value - joined.upper) / width, ranges_below)
    far = joined.select(*by, "measure", "unit", "value", ranges=ranges, trace=joined.trace, trace_id=joined.trace_id)
    far = far.filter(far.ranges.abs() > FENCE)
    far = far.mutate(all=far.count().over())  # before the limit, so that all are counted
    return far.order_by(far.ranges.abs().desc(), "measure", "trace").limit(MAX_OUTLIERS)


def _groups(traces: "ir.Table", by: Sequence[str]) -> "list[ir.Value]":
    """Return the columns by which traces are grouped. Null is replaced by an empty text, because joins skip nulls."""
    return [traces[name].fill_null("").name(name) for name in by]


def _sum_as_text(value: "ir.Value") -> "ir.Value":
    """Return the sum of whole numbers as text, because it may be larger than an exact number of the engine."""
    return value.cast("int64").sum().cast("string")


def _exact_sum(value: "ir.Value") -> "dict[str, ir.Value]":
    """Return the columns of a sum in two exact parts, whole numbers and billionths.

    They do not depend on the order of the rows. `large` is the number of values that are too large to be summed.
    """
    is_small = value.abs() <= _MAX_SUMMED
    whole = value.floor()
    return {
        "wholes": _sum_as_text(is_small.ifelse(whole, None)),
        "billionths": _sum_as_text(is_small.ifelse(((value - whole) * _BILLION).round(), None)),
        "large": (~is_small).sum(),
    }


def _distribution(group: tuple[str, ...], *row: Any) -> Distribution:
    """Return a distribution from a row of `distributions`."""
    measure, unit, n, null, wholes, billionths, large, least, quantiles, greatest = row
    total = _total(wholes, billionths, large)
    mean = None if total is None else _rounded(total / n)
    if not quantiles:
        quantiles = (None,) * len(QUANTILES)
    return Distribution(group, measure, unit, n, null, mean, least, quantiles, greatest)


def _model_usage(group: tuple[str, ...], model: str, events: int, without_tokens: int, *row: Any) -> ModelUsage:
    """Return the usage of a model from a row of `models`."""
    unsure, unpriced, *token_texts, wholes, billionths, large = row
    cost = _rounded(_total(wholes, billionths, large))
    return ModelUsage(
        group,
        model,
        events,
        without_tokens,
        tokens=tuple(None if text is None else int(text) for text in token_texts),
        cost_usd=cost,
        at_least=bool(unsure),
        cost_at_least=cost is not None and unsure + unpriced > 0,
    )


def _total(wholes: str | None, billionths: str | None, large: int | None) -> Fraction | None:
    """Return the sum from its two exact parts; None if there is no value, or if a value is too large."""
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
