"""Rewards of runs as tables: term by term, agent by agent or event by event, and two designs compared."""

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.text.layout import pluralize
from orchtrace_corpus.base.text.table import Cell, Table, csv_rows
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.render.measures import round_figure
from orchtrace_corpus.trace.render.names import names_in
from orchtrace_corpus.trace.rewards import FUNCTIONS, WHOLE, Reward, Spec, Term, compute, contributions
from orchtrace_corpus.trace.rewards.comparison import Comparison, Ranked
from orchtrace_corpus.trace.view import TraceView

if TYPE_CHECKING:
    from orchtrace_corpus.trace.analysis.outcomes import Outcome

MOST_RUNS = 20
"""So many runs that two designs rank differently are shown; the others are counted."""

MAX_NOTE = 600
"""The characters of a point of a design that are shown."""

_SHOWN_WHOLE = "(whole run)"
_WHAT_TO_ADD = "Show one of them alone to see what to add; outcomes are given with --outcomes."


class Paid(NamedTuple):
    """The rewards of some designs for a run, with its name, its task, and the names of its agents."""

    trace_id: str
    task_id: str
    rewards: tuple[Reward, ...]
    names: Mapping[str, str] = {}


class Values(NamedTuple):
    """The same in short: of each specification the reward, then what each term adds to it."""

    trace_id: str
    task_id: str
    values: tuple[tuple[float | None, ...], ...]


def present(specs: Sequence[Spec], outcome: "Outcome | None", view: TraceView, *, named: bool = False) -> Paid:
    """Compute the rewards of some designs for a trace. Workers import it from here.

    Args:
        specs: The specifications.
        outcome: How the run ended, if that is said elsewhere.
        view: The trace.
        named: Whether names of agents are wanted.

    Raises:
        CycleError: The edges go round in a circle.
        DataFileError: An outcome is of an agent or event that the trace does not have.
    """
    trace = _told(outcome, view)
    rewards = tuple([compute(view, spec) for spec in specs])
    return Paid(trace.trace_id, trace.task_id, rewards, names_in(view) if named else {})


def present_short(specs: Sequence[Spec], outcome: "Outcome | None", view: TraceView) -> Values:
    """Only the figures of the same, which many runs are shown and compared by."""
    trace = _told(outcome, view)
    return Values(trace.trace_id, trace.task_id, tuple([contributions(view, spec) for spec in specs]))


def present_csv(specs: Sequence[Spec], is_design: bool, outcome: "Outcome | None", view: TraceView) -> str:
    """The row of `runs` for a trace, with every digit, as a line of comma-separated values."""
    return csv_rows([_row(present_short(specs, outcome, view), is_design=is_design, exact=True)])


def present_data(specs: Sequence[Spec], is_design: bool, outcome: "Outcome | None", view: TraceView) -> dict[str, Any]:
    """Compute the rewards of some designs for a trace, for programs."""
    return data(specs, present(specs, outcome, view), is_design=is_design)


def _told(outcome: "Outcome | None", view: TraceView) -> Trace:
    if outcome is not None:
        outcome.apply(view.trace)
    return view.trace


def _row(one: Values, *, is_design: bool, exact: bool) -> tuple[Cell, ...]:
    figures = [round_figure(value, exact=exact) for values in one.values for value in values[not is_design :]]
    return (printable(one.trace_id), *figures)


def columns(specs: Sequence[Spec], *, is_design: bool) -> tuple[str, ...]:
    """The columns of the table of several runs: the reward of each design, then its terms."""
    names = []
    for spec in specs:
        start = f"{spec.name}." if len(specs) > 1 else ""
        names += [
            f"{start}{name}" for name in (*(("reward",) if is_design else ()), *(term.name for term in spec.terms))
        ]
    return ("trace", *names)


def runs(specs: Sequence[Spec], reward_values: Sequence[Values], *, is_design: bool, exact: bool) -> Table:
    """Several runs, one row each: the reward of each design, and what each term adds to it.

    Functions that are no design have no sum. For people, functions that no run has a value for are left out.
    """
    names = columns(specs, is_design=is_design)
    rows = [_row(reward_value, is_design=is_design, exact=exact) for reward_value in reward_values]
    kept = list(range(len(names)))
    notes = []
    if not exact and not is_design:
        kept = [place for place in kept if not place or any(row[place] is not None for row in rows)]
        if left := len(names) - len(kept):
            notes.append(f"{pluralize(left, 'function')} without a value for any of these runs.")
    if not exact and any(None in row for row in rows):
        notes.append(f"Empty: the trace does not say. {_WHAT_TO_ADD}")
    return Table(
        "rewards", "", tuple([names[place] for place in kept]),
        tuple([tuple([row[place] for place in kept]) for row in rows]), tuple(notes),
    )  # fmt: skip


def functions(spec: Spec, paid: Paid, *, exact: bool) -> Table:
    """Every function of some families on one run: its value, or what to add so that it has one.

    For people, reward channels that the run does not state are only counted.
    """
    rows: list[tuple[Cell, ...]] = []
    unstated = 0
    for of, term in zip(spec.terms, paid.rewards[0].terms, strict=True):
        unit = FUNCTIONS[of.function].unit
        note = printable(term.refusal, limit=300) if term.refusal else None
        if term.value is None and of.function == "outcome" and not exact:
            unstated += 1
            continue
        rows.append((term.family, term.name, round_figure(term.value, exact=exact), unit, note))
    title = printable(paid.trace_id)
    said = f"{pluralize(unstated, 'reward channel')} not stated. Use --outcomes, with `reward` or `reward.NAME`."
    names = ("family", "function", "value", "unit", "note")
    return Table("rewards", title, names, tuple(rows), (said,) if unstated else (), wrapped="note")


def refusal(paid: Paid, *, is_design: bool) -> str:
    """Why a run has none of the rewards that were asked for; empty where it has one."""
    if any(one.value is not None if is_design else any(term.value is not None for term in one.terms)
           for one in paid.rewards):  # fmt: skip
        return ""
    refusals = (printable(term.refusal or "", limit=300) for reward in paid.rewards for term in reward.terms)
    return next(filter(None, refusals), "nothing was asked for")


def terms(specs: Sequence[Spec], paid: Paid, *, exact: bool) -> list[Table]:
    """Render the reward of each design for one run, term by term; the terms add up to the reward.

    For programs in one table, whose first column names the design.
    """
    names = ("term", "family", "weight", "value", "unit", "pays", "note")
    tables = []
    for spec, reward in zip(specs, paid.rewards, strict=True):
        rows: list[tuple[Cell, ...]] = [
            (
                term.name, term.family, round_figure(term.weight, exact=exact), round_figure(term.value, exact=exact),
                FUNCTIONS[of.function].unit if of.ramp is None else "1", round_figure(term.contribution, exact=exact),
                printable(term.refusal or "", limit=300) or None,
            )
            for of, term in zip(spec.terms, reward.terms, strict=True)
        ]  # fmt: skip
        rows.append(("reward", _family(spec), None, None, None, round_figure(reward.value, exact=exact), None))
        title = f"{printable(paid.trace_id)}: {printable(spec.name)}"
        tables.append(Table(spec.name, title, names, tuple(rows), tuple(_notes(spec, reward)), wrapped="note"))
    if not exact:
        return tables
    all_rows = tuple([(printable(table.name), *row) for table in tables for row in table.rows])
    return [Table("rewards", "", ("design", *names), all_rows)]


def _family(spec: Spec) -> str:
    return spec.families[0] if len(spec.families) == 1 else "R8"


def _notes(spec: Spec, reward: Reward) -> Iterator[str]:
    if spec.title:
        yield f"{printable(spec.title, limit=300)}{f' ({printable(spec.paper)})' if spec.paper else ''}."
    lacking = [term.name for term in reward.terms if term.value is None]
    if lacking:
        yield f"No reward: {', '.join(map(printable, lacking))} cannot be computed from this trace."
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


def shares(specs: Sequence[Spec], paid: Paid, by: str, *, is_design: bool) -> list[Table]:
    """Render the reward of each design by agent or event: a column for each term and, of a design, the sum.

    Terms that pay nothing are left out.
    """
    tables = []
    for spec, reward in zip(specs, paid.rewards, strict=True):
        parts = _parts(reward, by)
        totals = reward.by_event() if by == "event" else reward.by_agent()
        rows: list[tuple[Cell, ...]] = []
        for name in sorted(totals, key=lambda name: (name == WHOLE, -totals[name], name)):
            own = [share.get(name) for _, share in parts] + [totals[name]] * is_design
            shown = (paid.names.get(name) if by == "agent" else "") or printable(name) or _SHOWN_WHOLE
            rows.append((shown, *(round_figure(one, exact=False) for one in own)))
        sums = [term.contribution for term, _ in parts] + [fsum(totals.values())] * is_design
        rows.append(("sum", *(round_figure(one, exact=False) for one in sums)))
        lacking = ", ".join(printable(term.name) for term in reward.terms if term.value is None) if is_design else ""
        title = f"{printable(paid.trace_id)}: {printable(spec.name)} by {by}"
        names = (by, *(term.name for term, _ in parts), *(("reward",) * is_design))
        notes = (f"No value: {lacking}.",) if lacking else ()
        tables.append(Table(f"{spec.name}_by_{by}", title, names, tuple(rows), notes))
    return tables


def exact_shares(specs: Sequence[Spec], paid: Paid, by: str) -> Table:
    """The same for programs, a row for each share; what is the whole run's has no name."""
    rows = [
        (printable(spec.name), printable(name) or None, printable(term.name), round_figure(share, exact=True))
        for spec, reward in zip(specs, paid.rewards, strict=True)
        for term, parts in _parts(reward, by)
        for name, share in parts.items()
    ]
    return Table(f"rewards_by_{by}", "", ("design", by, "term", "pays"), tuple(rows))


def _parts(reward: Reward, by: str) -> list[tuple[Term, dict[str, float]]]:
    """The weighted shares of each term that pays anything."""
    both = [(term, term.by_event if by == "event" else term.by_agent) for term in reward.terms]
    return [(term, {name: term.weight * share for name, share in parts.items()}) for term, parts in both if parts]


def data(specs: Sequence[Spec], paid: Paid, *, is_design: bool) -> dict[str, Any]:
    """Return the reward of each design for a run, for programs; the whole run has the empty name among shares.

    Functions that are no design have no sum.
    """
    content: list[dict[str, Any]] = []
    for spec, reward in zip(specs, paid.rewards, strict=True):
        listed = [{**term._asdict(), "contribution": term.contribution} for term in reward.terms]
        value = reward.value if is_design else None
        points = {
            "open": [point.note for term in spec.terms for point in term.open] + [point.note for point in spec.open],
            "omitted": [point.note for point in spec.omitted],
            "test_vectors": len(spec.vectors),
        }
        content.append({"spec": spec.name, "paper": spec.paper or None, "reward": value, "terms": listed, **points})
    return {"trace_id": paid.trace_id, "task_id": paid.task_id, "rewards": content}


def compared(
    specs: Sequence[Spec], reward_values: Sequence[Values], comparison: Comparison, *, exact: bool
) -> list[Table]:
    """Compare how two designs rank runs of one task, the largest differences first, and what each rewards."""
    first, second = (printable(spec.name) for spec in specs)
    moved = sorted((one for one in comparison.runs if one.moved), key=lambda one: (-abs(one.moved), one.run))
    shown = moved if exact else moved[:MOST_RUNS]

    def row(one: Ranked) -> tuple[Cell, ...]:
        figures = (*one.first, *one.second, one.moved)
        run = reward_values[one.run]
        return (
            printable(run.trace_id),
            printable(run.task_id),
            *(round_figure(value, exact=exact) for value in figures),
        )

    names = ("trace", "task", first, "rank", second, "its rank", "moved up")
    title = f"Ranked differently by {first} and {second}"
    table = Table(
        "ranked_differently", title, names, tuple(map(row, shown)), tuple(_said(comparison, moved, exact=exact))
    )
    return [table, _spending(specs, reward_values, exact=exact)]


def _said(comparison: Comparison, moved: Sequence[Ranked], *, exact: bool) -> Iterator[str]:
    if not exact and len(moved) > MOST_RUNS:
        yield f"{len(moved) - MOST_RUNS:,} more are ranked differently: --format csv has all."
    runs_said = pluralize(len(comparison.runs), "run")
    what_to_add = f" {_WHAT_TO_ADD}" if comparison.left_out else ""
    yield f"{runs_said} compared; {comparison.left_out:,} left out: at least one design has no value.{what_to_add}"
    if not comparison.pairs:
        yield "No two of these runs have the same task, so none is ranked; outcomes may name the task of a run."
    yield (
        f"Pairs of runs of one task: {comparison.pairs:,}; in opposite orders {comparison.discordant:,}; "
        f"tied by either {comparison.tied:,}."
    )
    tau, pearson = (
        f"{one:.3f}" if one is not None else "undefined" for one in (comparison.tau, comparison.correlation)
    )
    yield f"Kendall's tau-b {tau}; Pearson's correlation of the rewards {pearson}."


def _spending(specs: Sequence[Spec], reward_values: Sequence[Values], *, exact: bool) -> Table:
    """Return what each design rewards: the mean of each term over the runs with a value of it."""
    rows: list[tuple[Cell, ...]] = []
    for place, spec in enumerate(specs):
        for index, name in enumerate(("reward", *(term.name for term in spec.terms))):
            known = [
                value for reward_value in reward_values if (value := reward_value.values[place][index]) is not None
            ]
            mean = fsum(known) / len(known) if known else None
            rows.append((printable(spec.name), printable(name), len(known), round_figure(mean, exact=exact)))
    return Table("pays_for", "What each pays for, on average", ("design", "term", "runs", "mean"), tuple(rows))


def compared_data(comparison: Comparison, reward_values: Sequence[Values]) -> dict[str, Any]:
    """The comparison for programs."""
    moved = [
        {"trace_id": reward_values[run.run].trace_id, "first": run.first, "second": run.second, "moved": run.moved}
        for run in comparison.runs
    ]
    return {**comparison._asdict(), "runs": moved}
