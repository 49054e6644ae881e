"""Rewards of runs by term, agent or event, and two designs compared: as tables, and as JSON values."""

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.base.text.table import Cell, Table, csv_rows
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.render.measures import round_figure
from orchtrace_corpus.trace.render.names import agent_names
from orchtrace_corpus.trace.rewards import FUNCTIONS, WHOLE, Reward, Spec, Term, compute, contributions
from orchtrace_corpus.trace.rewards.comparison import Comparison, RankedRun
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:
    from orchtrace_corpus.trace.analysis.outcomes import Outcome

MAX_RUNS = 20
"""The number of runs ranked differently that people see; a note says how many others there are."""

MAX_NOTE = 600
"""The number of characters of a note of a design that people see."""

_WHOLE_RUN = "(whole run)"
_WHAT_TO_ADD = "Show one of them alone to see what to add; outcomes are given with --outcomes."


class RunRewards(NamedTuple):
    """The rewards of a run by some specifications; and the names of its agents by their ids, if they are needed."""

    trace_id: str
    task_id: str
    rewards: tuple[Reward, ...]
    names: Mapping[str, str] = {}


class RunFigures(NamedTuple):
    """The figures of a run: for each specification the reward, then the contribution of each term."""

    trace_id: str
    task_id: str
    figures: tuple[tuple[float | None, ...], ...]


def run_rewards(
    specs: Sequence[Spec], outcome: "Outcome | None", view: TraceView, *, with_names: bool = False
) -> RunRewards:
    """Compute the rewards of a trace, and the names of its agents if wanted; the user may give the outcome of the run.

    Worker processes call this function and the next three.
    """
    trace = _with_outcome(view, outcome)
    rewards = tuple([compute(view, spec) for spec in specs])
    names = agent_names(view) if with_names else {}
    return RunRewards(trace.trace_id, trace.task_id, rewards, names)


def run_figures(specs: Sequence[Spec], outcome: "Outcome | None", view: TraceView) -> RunFigures:
    """Compute only the figures of rewards."""
    trace = _with_outcome(view, outcome)
    return RunFigures(trace.trace_id, trace.task_id, tuple([contributions(view, spec) for spec in specs]))


def run_csv(specs: Sequence[Spec], is_design: bool, outcome: "Outcome | None", view: TraceView) -> str:
    """Return the row of a trace in `runs_table` as a line of comma-separated values, with every digit.

    `is_design` is False if the specification lists functions that form no design, so that their sum means nothing.
    """
    return csv_rows([_row(run_figures(specs, outcome, view), is_design=is_design, exact=True)])


def run_data(specs: Sequence[Spec], is_design: bool, outcome: "Outcome | None", view: TraceView) -> dict[str, Any]:
    """Compute the rewards of a trace for programs."""
    return data(specs, run_rewards(specs, outcome, view), is_design=is_design)


def _with_outcome(view: TraceView, outcome: "Outcome | None") -> Trace:
    """Return the trace of a view after the user's outcome, if any, is entered in it."""
    if outcome is not None:
        outcome.apply(view.trace)
    return view.trace


def _row(run: RunFigures, *, is_design: bool, exact: bool) -> tuple[Cell, ...]:
    row: list[Cell] = [printable(run.trace_id)]
    for reward, *contributions_of_terms in run.figures:
        figures = contributions_of_terms
        if is_design:  # functions that form no design have no sum
            figures = [reward, *figures]
        row += [round_figure(figure, exact=exact) for figure in figures]
    return tuple(row)


def runs_columns(specs: Sequence[Spec], *, is_design: bool) -> tuple[str, ...]:
    """Return the columns of `runs_table`: for each specification the reward, if it is a design, and the terms."""
    columns = ["trace"]
    for spec in specs:
        names = [term.name for term in spec.terms]
        if is_design:
            names.insert(0, "reward")
        prefix = f"{spec.name}." if len(specs) > 1 else ""
        columns += [f"{prefix}{name}" for name in names]
    return tuple(columns)


def runs_table(specs: Sequence[Spec], runs: Sequence[RunFigures], *, is_design: bool, exact: bool) -> Table:
    """Return several runs, a row for each. For people, functions without a value for any run are left out."""
    columns = runs_columns(specs, is_design=is_design)
    rows = [_row(run, is_design=is_design, exact=exact) for run in runs]
    kept = list(range(len(columns)))
    notes = []
    if not exact and not is_design:
        with_values = [place for place in kept[1:] if any(row[place] is not None for row in rows)]
        kept = [0, *with_values]  # the first column has the traces
        if left_out := len(columns) - len(kept):
            notes.append(f"{pluralize(left_out, 'function')} without a value for any of these runs.")
    if not exact and any(None in row for row in rows):
        notes.append(f"Empty: the trace does not say. {_WHAT_TO_ADD}")
    cells = tuple([tuple([row[place] for place in kept]) for row in rows])
    return Table("rewards", "", tuple([columns[place] for place in kept]), cells, tuple(notes))


def functions_table(spec: Spec, run: RunRewards, *, exact: bool) -> Table:
    """Return every reward function for one run: its value, or what to add to get a value.

    For people, a note says how many reward channels the run does not state; they have no rows.
    """
    rows: list[tuple[Cell, ...]] = []
    unstated = 0
    for definition, term in zip(spec.terms, run.rewards[0].terms, strict=True):
        if term.value is None and definition.function == "outcome" and not exact:
            unstated += 1
            continue
        note = printable(term.refusal, limit=300) if term.refusal else None
        value = round_figure(term.value, exact=exact)
        rows.append((term.family, term.name, value, FUNCTIONS[definition.function].unit, note))
    columns = ("family", "function", "value", "unit", "note")
    table = Table("rewards", printable(run.trace_id), columns, tuple(rows), wrapped="note")
    if unstated:
        channels = pluralize(unstated, "reward channel")
        table = table._replace(notes=(f"{channels} not stated. Use --outcomes, with `reward` or `reward.NAME`.",))
    return table


def refusal(run: RunRewards, *, is_design: bool) -> str:
    """Return why no design has a reward for a run, or why no function has a value; empty if any has one."""
    for reward in run.rewards:
        values = [reward.value] if is_design else [term.value for term in reward.terms]
        if any(value is not None for value in values):
            return ""
    for reward in run.rewards:
        for term in reward.terms:
            if term.refusal:
                return printable(term.refusal, limit=300)
    return "nothing was asked for"


def term_tables(specs: Sequence[Spec], run: RunRewards, *, exact: bool) -> list[Table]:
    """Return a table for each design: its terms for one run, which add up to the reward of the run.

    For programs, all designs are in one table, whose first column names the design.
    """
    columns = ("term", "family", "weight", "value", "unit", "pays", "note")
    tables = []
    for spec, reward in zip(specs, run.rewards, strict=True):
        rows: list[tuple[Cell, ...]] = []
        for definition, term in zip(spec.terms, reward.terms, strict=True):
            unit = FUNCTIONS[definition.function].unit
            if definition.ramp is not None:  # a ramp maps a value to a number from 0 to 1
                unit = "1"
            weight = round_figure(term.weight, exact=exact)
            value = round_figure(term.value, exact=exact)
            pays = round_figure(term.contribution, exact=exact)
            note = printable(term.refusal or "", limit=300) or None
            rows.append((term.name, term.family, weight, value, unit, pays, note))
        family = spec.families[0] if len(spec.families) == 1 else "R8"
        rows.append(("reward", family, None, None, None, round_figure(reward.value, exact=exact), None))
        title = f"{printable(run.trace_id)}: {printable(spec.name)}"
        tables.append(Table(spec.name, title, columns, tuple(rows), tuple(_notes(spec, reward)), wrapped="note"))
    if not exact:
        return tables
    all_rows = tuple([(printable(table.name), *row) for table in tables for row in table.rows])
    return [Table("rewards", "", ("design", *columns), all_rows)]


def _notes(spec: Spec, reward: Reward) -> Iterator[str]:
    """Yield notes on a design: its source, terms without a value, open points, omissions, test vectors."""
    if spec.title:
        source = printable(spec.title, limit=300)
        if spec.paper:
            source += f" ({printable(spec.paper)})"
        yield f"{source}."
    if missing := _terms_without_value(reward):
        yield f"No reward: {missing} cannot be computed from this trace."
    for term in spec.terms:
        for point in term.open:
            yield f"Open, {printable(term.name)}: {printable(point.note, limit=MAX_NOTE)}"
    for point in spec.open:
        yield f"Open: {printable(point.note, limit=MAX_NOTE)}"
    for point in spec.omitted:
        yield f"Not in a trace: {printable(point.note, limit=MAX_NOTE)}"
    if spec.vectors:
        yield f"Held to released code: {pluralize(len(spec.vectors), 'test vector')}."
    elif spec.paper:
        yield "No test vector: no released code gives a value that this design could be held to."


def _terms_without_value(reward: Reward) -> str:
    return ", ".join(printable(term.name) for term in reward.terms if term.value is None)


def share_tables(specs: Sequence[Spec], run: RunRewards, by: str, *, is_design: bool) -> list[Table]:
    """Return a table for each specification: the shares of agents or events in each term.

    `by` is `agent` or `event`. Terms without shares are left out. The table of a design also has the sum of the shares.
    """
    tables = []
    for spec, reward in zip(specs, run.rewards, strict=True):
        terms = _weighted_shares(reward, by)
        totals = reward.by_event() if by == "event" else reward.by_agent()
        rows: list[tuple[str, list[float | None], float]] = []  # each as its label, its shares, and their sum
        for name in sorted(totals, key=lambda name: (name == WHOLE, -totals[name], name)):  # the whole run is last
            label = printable(name)
            if name == WHOLE:
                label = _WHOLE_RUN
            elif by == "agent" and run.names.get(name):
                label = run.names[name]
            rows.append((label, [shares.get(name) for _, shares in terms], totals[name]))
        rows.append(("sum", [term.contribution for term, _ in terms], fsum(totals.values())))
        cells = []
        for label, shares, total in rows:
            figures = [*shares, total] if is_design else shares
            cells.append((label, *(round_figure(figure, exact=False) for figure in figures)))
        columns = (by, *(term.name for term, _ in terms))
        notes: tuple[str, ...] = ()
        if is_design:
            columns = (*columns, "reward")
            if missing := _terms_without_value(reward):
                notes = (f"No value: {missing}.",)
        title = f"{printable(run.trace_id)}: {printable(spec.name)} by {by}"
        tables.append(Table(f"{spec.name}_by_{by}", title, columns, tuple(cells), notes))
    return tables


def exact_shares(specs: Sequence[Spec], run: RunRewards, by: str) -> Table:
    """Return a row for each share, for programs; a share of the whole run has no name."""
    rows = [
        (printable(spec.name), printable(name) or None, printable(term.name), round_figure(share, exact=True))
        for spec, reward in zip(specs, run.rewards, strict=True)
        for term, shares in _weighted_shares(reward, by)
        for name, share in shares.items()
    ]
    return Table(f"rewards_by_{by}", "", ("design", by, "term", "pays"), tuple(rows))


def _weighted_shares(reward: Reward, by: str) -> list[tuple[Term, dict[str, float]]]:
    """Return each term that has shares, with the weighted shares of agents or events by their names."""
    weighted = []
    for term in reward.terms:
        shares = term.by_event if by == "event" else term.by_agent
        if shares:
            weighted.append((term, {name: term.weight * share for name, share in shares.items()}))
    return weighted


def data(specs: Sequence[Spec], run: RunRewards, *, is_design: bool) -> dict[str, Any]:
    """Return the rewards of a run for programs; functions that form no design have no sum.

    In the shares of a term, the whole run has the empty name.
    """
    rewards = []
    for spec, reward in zip(specs, run.rewards, strict=True):
        open_points = [point for term in spec.terms for point in term.open]
        open_points += spec.open
        rewards.append(
            {
                "spec": spec.name,
                "paper": spec.paper or None,
                "reward": reward.value if is_design else None,
                "terms": [{**term._asdict(), "contribution": term.contribution} for term in reward.terms],
                "open": [point.note for point in open_points],
                "omitted": [point.note for point in spec.omitted],
                "test_vectors": len(spec.vectors),
            }
        )
    return {"trace_id": run.trace_id, "task_id": run.task_id, "rewards": rewards}


def comparison_tables(
    specs: Sequence[Spec], runs: Sequence[RunFigures], comparison: Comparison, *, exact: bool
) -> list[Table]:
    """Return the runs of one task that two designs rank differently, and the average of each term of the designs."""
    first, second = (printable(spec.name) for spec in specs)
    moved = [ranked for ranked in comparison.runs if ranked.ranks_gained]
    moved.sort(key=lambda ranked: (-abs(ranked.ranks_gained), ranked.run))
    listed = moved if exact else moved[:MAX_RUNS]
    rows = []
    for ranked in listed:
        figures = [round_figure(figure, exact=exact) for figure in (*ranked.first, *ranked.second, ranked.ranks_gained)]
        run = runs[ranked.run]
        rows.append((printable(run.trace_id), printable(run.task_id), *figures))
    columns = ("trace", "task", first, "rank", second, "its rank", "moved up")
    title = f"Ranked differently by {first} and {second}"
    notes = tuple(_comparison_notes(comparison, moved, exact=exact))
    return [Table("ranked_differently", title, columns, tuple(rows), notes), _means_table(specs, runs, exact=exact)]


def _comparison_notes(comparison: Comparison, moved: Sequence[RankedRun], *, exact: bool) -> Iterator[str]:
    """Yield notes on the runs that were compared, and on how far the two designs agree."""
    if not exact and len(moved) > MAX_RUNS:
        yield f"{len(moved) - MAX_RUNS:,} more are ranked differently: --format csv has all."
    runs = pluralize(len(comparison.runs), "run")
    what_to_add = f" {_WHAT_TO_ADD}" if comparison.left_out else ""
    yield f"{runs} compared; {comparison.left_out:,} left out: at least one design has no value.{what_to_add}"
    if not comparison.pairs:
        yield "No two of these runs have the same task, so none is ranked; outcomes may name the task of a run."
    yield (
        f"Pairs of runs of one task: {comparison.pairs:,}; in opposite orders {comparison.discordant:,}; "
        f"tied by either {comparison.tied:,}."
    )
    tau, correlation = _three_digits(comparison.tau), _three_digits(comparison.correlation)
    yield f"Kendall's tau-b {tau}; Pearson's correlation of the rewards {correlation}."


def _three_digits(figure: float | None) -> str:
    return "undefined" if figure is None else f"{figure:.3f}"


def _means_table(specs: Sequence[Spec], runs: Sequence[RunFigures], *, exact: bool) -> Table:
    """Return the mean of the reward and of each term of two designs over the runs that have a value."""
    rows: list[tuple[Cell, ...]] = []
    for design, spec in enumerate(specs):
        names = ["reward", *(term.name for term in spec.terms)]
        for place, name in enumerate(names):
            known = [run.figures[design][place] for run in runs]
            values = [value for value in known if value is not None]
            mean = fsum(values) / len(values) if values else None
            rows.append((printable(spec.name), printable(name), len(values), round_figure(mean, exact=exact)))
    return Table("pays_for", "What each pays for, on average", ("design", "term", "runs", "mean"), tuple(rows))


def comparison_data(comparison: Comparison, runs: Sequence[RunFigures]) -> dict[str, Any]:
    """Return the comparison of two designs for programs."""
    ranked = [
        {"trace_id": runs[run.run].trace_id, "first": run.first, "second": run.second, "moved": run.ranks_gained}
        for run in comparison.runs
    ]
    return {**comparison._asdict(), "runs": ranked}
