"""Statistics of a dataset, written once as Ibis expressions, so that any engine that Ibis speaks can compute them.

Figures do not depend on the order in which an engine comes to the rows. Quantiles are interpolated between the two
nearest values (type 7 of R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American
Statistician 50, 1996). Sums are sums of whole numbers: the whole part of each value and its billionths.
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
from orchtrace_corpus.trace.measures.ledger import COUNTED, KINDS
from orchtrace_corpus.trace.measures.measure import ASKED
from orchtrace_corpus.trace.model.terms import Decision, Unit

if TYPE_CHECKING:
    import ibis.expr.types as ir

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
FENCE = 3.0
"""An outlier lies so many interquartile ranges beyond the quartiles: J. W. Tukey's far out values (1977)."""

FEWEST = 20
"""Fewer values of a measure in a group have no outliers: their quartiles say too little."""

MOST_OUTLIERS = 20
GROUPINGS = ("system", "topology", "format", "version", "model", "clock_unit", "task_id")
"""The columns of `traces` that statistics can be divided by."""

EXTRA = {"event_count": "1"}
"""Columns that are described beside the measures, with their units."""

_LARGEST = 1e12  # a sum of a million such values still fits into 64 bits
_BILLION = 1e9


class Engine(Protocol):
    """The engine of a query: the opened tables of a data set."""

    dialect: str

    def run(self, sql: str) -> Answer:
        """Run a statement."""


class Overview(NamedTuple):
    """The size of a group, and the soundness of its traces."""

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
        group: The values that the group has in common; empty for unknown.
        unit: Its unit; times of traces that count steps are apart, under `step`.
        null: In how many traces it has no value.
        mean: None, too, where a value is beyond 10^12.
        quantiles: As `QUANTILES` names them.
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
    """A sub-decision in a group: in how many traces some event takes it, and how many events do."""

    group: tuple[str, ...]
    decision: Decision
    traces: int
    having: int
    events: int


class Spent(NamedTuple):
    """The calls and the spending of a model in a group; copies do not count.

    Attributes:
        model: Its name; empty where none is given.
        events: Events with tokens.
        without_tokens: Inferences, decisions and aggregates that have none.
        tokens: By kind; a kind is None where no event gives it.
        cost_usd: None where no event has a cost.
        at_least: Whether a trace in which it was asked does not record all tokens.
        cost_at_least: Whether there is a cost, and that is so, or an event with tokens has none.
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
        """All tokens; reasoning is a part of the output."""
        return sum(token or 0 for token in self.tokens[:COUNTED])


class Outlier(NamedTuple):
    """A trace far outside its group: by so many interquartile ranges beyond the nearer quartile, below 0 if below."""

    group: tuple[str, ...]
    measure: str
    unit: str
    value: float
    ranges: float
    trace: str
    trace_id: str


class Statistics(NamedTuple):
    """All statistics of a dataset. `outlying` counts all outliers; `outliers` holds the farthest."""

    by: tuple[str, ...]
    overviews: list[Overview]
    distributions: list[Distribution]
    coverage: list[Coverage]
    models: list[Spent]
    outlying: int
    outliers: list[Outlier]


def statistics(tables: Engine, by: Sequence[str]) -> Statistics:
    """The statistics of an opened dataset.

    Raises:
        CommandUseError: Ibis is not installed, or traces cannot be divided like that.
        DataFileError: The tables cannot be read.
    """
    for name in by:
        if name not in GROUPINGS:
            raise CommandUseError(f"cannot divide traces by {quote(name)}{suggestion(name, GROUPINGS)}")
    require_library("a dataset", "ibis")
    groups = tuple(dict.fromkeys(by))
    measures = [*EXTRA, *COMPUTED]
    asked = queries(groups, tables.dialect)

    def rows(query: str) -> list[tuple[Any, ...]]:
        """The rows of an answer; what their first columns have in common with other rows is one value."""
        answer, number = tables.run(asked[query]), len(groups)
        return [(row[:number], *map(_figure, row[number:])) for batch in answer.batches for row in batch]

    described = [_distribution(*row) for row in rows("distributions")]
    covered = [Coverage(group, Decision(name), *row) for group, name, *row in rows("coverage")]
    spent = [_spent(*row) for row in rows("models")]
    outlying = rows("outliers")
    return Statistics(
        groups,
        sorted(Overview(group, *(int(value or 0) for value in row)) for group, *row in rows("overview")),
        sorted(described, key=lambda one: (one.group, measures.index(one.measure), one.unit)),
        sorted(covered, key=lambda one: (one.group, list(Decision).index(one.decision))),
        sorted(spent, key=lambda one: (one.group, -one.total, one.model)),
        outlying[0][-1] if outlying else 0,
        [Outlier(*row[:-1]) for row in outlying],
    )


@cache
def queries(by: tuple[str, ...], dialect: str) -> dict[str, str]:
    """All statistics as SQL, which takes longer to write than an engine takes to answer for a small dataset."""
    import ibis

    traces, events, copies = declared("traces"), declared("events"), declared("copies")
    expressions = {one.__name__: one(traces, by) for one in (overview, distributions, coverage, outliers)}
    expressions["models"] = models(traces, events, copies, by)
    return {name: str(ibis.to_sql(one, dialect=dialect, pretty=False)) for name, one in expressions.items()}


def declared(table: str) -> "ir.Table":
    """A table as an expression that no engine stands behind yet."""
    import ibis

    return ibis.table(ibis.Schema.from_pyarrow(schema(table)), name=table)


def overview(traces: "ir.Table", by: Sequence[str] = ()) -> "ir.Table":
    """A row for each group: how much there is."""
    sums = ("event_count", "edge_count", "warnings", "dropped", "unknown_kinds", "problems")
    return traces.aggregate(
        by=_groups(traces, by),
        traces=traces.count(),
        trace_ids=traces.trace_id.nunique(),
        **{name: traces[name].sum().cast("string") for name in sums},
    )


def values(traces: "ir.Table", by: Sequence[str]) -> "ir.Table":
    """A row for each measure of each trace: the group, `measure`, `unit`, `value`, `trace`, `trace_id`.

    Times of traces that count steps are no seconds: their unit is `step`.
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
    units = {name: one.unit for name, one in COMPUTED.items()} | EXTRA
    stated = long.measure.cases(*units.items(), else_="1")
    return long.mutate(unit=(long.counts_steps & (stated == "s")).ifelse("step", stated)).drop("counts_steps")


def distributions(traces: "ir.Table", by: Sequence[str]) -> "ir.Table":
    """A row for each measure of each group: group, measure, unit, n, null, sums, least, quantiles, greatest."""
    long = values(traces, by)
    value = long.value
    return long.group_by(*by, "measure", "unit").aggregate(
        n=value.count(),
        null=value.isnull().sum(),
        **_sums(value),
        least=value.min(),
        quantiles=value.quantile(list(QUANTILES)),
        greatest=value.max(),
    )


def coverage(traces: "ir.Table", by: Sequence[str]) -> "ir.Table":
    """A row for each sub-decision of each group: group, decision, traces, those that have it, events that take it."""
    columns = {name: str(decision) for decision, name in DECISIONS.items()}
    kept = traces.select(*_groups(traces, by), *(traces[name].name(decision) for name, decision in columns.items()))
    long = kept.pivot_longer(list(columns.values()), names_to="decision", values_to="events")
    groups = long.group_by(*by, "decision")
    return groups.aggregate(traces=long.count(), having=(long.events > 0).sum(), events=long.events.sum())


def models(traces: "ir.Table", events: "ir.Table", copies: "ir.Table", by: Sequence[str]) -> "ir.Table":
    """A row for each model of each group: group, asked, events, those without tokens or cost, tokens, sums of costs.

    Events of `copies` are counted in another trace.
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
        lacks=~has_tokens & events.type.isin(sorted(ASKED)),
    )
    spent = spent.filter(spent.has_tokens | spent.lacks | spent.cost.notnull()).anti_join(copies, ["trace", "number"])
    spent = spent.join(traces.select("trace", *_groups(traces, by), unsure=traces.tokens.isnull()), "trace")
    return spent.group_by(*by, "asked").aggregate(
        events=spent.has_tokens.sum(),
        without=spent.lacks.sum(),
        unsure=spent.unsure.sum(),
        unpriced=(spent.has_tokens & spent.cost.isnull()).sum(),
        **{kind: _summed(spent[kind]) for kind in kinds},
        **_sums(spent.cost),
    )


def outliers(traces: "ir.Table", by: Sequence[str]) -> "ir.Table":
    """The values farthest beyond the fences of their groups, and how many there are.

    A row for each: group, measure, unit, value, ranges, trace, trace_id, number of all.
    """
    long = values(traces, by)
    groups = long.group_by(*by, "measure", "unit")
    quartiles = groups.aggregate(n=long.value.count(), quartiles=long.value.quantile([0.25, 0.75]))
    fences = quartiles.select(*by, "measure", "unit", "n", lower=quartiles.quartiles[0], upper=quartiles.quartiles[1])
    fences = fences.filter((fences.n >= FEWEST) & (fences.upper > fences.lower))
    both = long.join(fences, [*by, "measure", "unit"])
    width = both.upper - both.lower
    below = (both.value < both.lower).ifelse((both.value - both.lower) / width, 0.0)
    ranges = (both.value > both.upper).ifelse((both.value - both.upper) / width, below)
    found = both.select(*by, "measure", "unit", "value", ranges=ranges, trace=both.trace, trace_id=both.trace_id)
    found = found.filter(found.ranges.abs() > FENCE)
    found = found.mutate(all=found.count().over())
    return found.order_by(found.ranges.abs().desc(), "measure", "trace").limit(MOST_OUTLIERS)


def _groups(traces: "ir.Table", by: Sequence[str]) -> "list[ir.Value]":
    """The columns that traces are divided by; unknown is empty, since no engine joins on what is unknown."""
    return [traces[name].fill_null("").name(name) for name in by]


def _summed(value: "ir.Value") -> "ir.Value":
    """The sum of whole numbers, as text: it may be larger than any type of the engine that holds fractions exactly."""
    return value.cast("int64").sum().cast("string")


def _sums(value: "ir.Value") -> "dict[str, ir.Value]":
    """A sum in parts that are the same in whatever order they are added: whole parts, and billionths."""
    small = value.abs() <= _LARGEST
    return {
        "wholes": _summed(small.ifelse(value.floor(), None)),
        "billionths": _summed(small.ifelse(((value - value.floor()) * _BILLION).round(), None)),
        "large": (~small).sum(),
    }


def _distribution(group: tuple[str, ...], *row: Any) -> Distribution:
    measure, unit, n, null, wholes, billionths, large, least, quantiles, greatest = row
    total = _total(wholes, billionths, large)
    mean = None if total is None else _figure(total / n)
    quantiles = quantiles or (None,) * len(QUANTILES)
    return Distribution(group, measure, unit, n, null, mean, least, quantiles, greatest)


def _spent(group: tuple[str, ...], model: str, events: int, without: int, *row: Any) -> Spent:
    unsure, unpriced, *kinds, wholes, billionths, large = row
    tokens = tuple(None if kind is None else int(kind) for kind in kinds)
    cost = _figure(_total(wholes, billionths, large))
    return Spent(group, model, events, without, tokens, cost, bool(unsure), cost is not None and unsure + unpriced > 0)


def _total(wholes: str | None, billionths: str | None, large: int | None) -> Fraction | None:
    """A sum from its parts; None where there is nothing to add, or something too large."""
    if wholes is None or billionths is None or large:
        return None
    return int(wholes) + Fraction(int(billionths), int(_BILLION))


def _figure(value: Any) -> Any:
    """A figure, or a list of them, to as many digits as all engines agree on; anything else as it is."""
    if isinstance(value, list):
        return tuple(map(_figure, value))
    return float(f"{float(value):.12g}") if isinstance(value, (float, Fraction)) else value
