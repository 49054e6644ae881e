"""Labels, credit and differences of traces: as tables, and as JSON values."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.trace.analysis.labels import GIVEN, RULES, Label
from orchtrace_corpus.trace.credit.assign import Assignment
from orchtrace_corpus.trace.credit.evidence import RUNS_PER_FAULT, Basis, Evidence
from orchtrace_corpus.trace.diagnosis.comparison import Difference, largest_first
from orchtrace_corpus.trace.diagnosis.lever import time_on_path
from orchtrace_corpus.trace.diagnosis.values import Activity, Diagnosis, Summary
from orchtrace_corpus.trace.model.terms import Decision
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.render.measures import at_least, round_figure
from orchtrace_corpus.trace.render.names import agent_names, duration, restore_blanks

CODES = {decision: f"O{position}" for position, decision in enumerate(Decision, 1)}
"""The codes of the sub-decisions, O1 to O5."""


def label_summary(trace: Trace, labels: Sequence[Label]) -> Table:
    """Return the number of events that take each sub-decision, by rule; a sub-decision without events has one row."""
    rows = []
    for decision in Decision:
        counts = Counter(label.rule for label in labels if label.decision is decision)
        by_count = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if not by_count:
            by_count = [("", 0)]
        for rule, count in by_count:
            meaning = RULES[rule][1] if rule in RULES else None
            if rule == GIVEN:
                meaning = "The trace had the label already."
            rows.append((CODES[decision], decision.value, count, printable(rule) or None, meaning))
    columns = ("code", "sub-decision", "events", "rule", "fires when")
    return Table("labels", printable(trace.trace_id), columns, tuple(rows), wrapped="fires when")


def labelled_events(trace: Trace, labels: Sequence[Label], names: Mapping[str, str]) -> Table:
    """Return every label by event; `names` are the names of agents by their ids."""
    rows = []
    for label in labels:
        event, decision = trace.events[label.event], label.decision
        agent = names.get(event.agent) or printable(event.agent)
        rows.append((printable(event.id), agent, CODES[decision], decision.value, printable(label.rule)))
    return Table("labels", printable(trace.trace_id), ("event", "agent", "code", "sub-decision", "rule"), tuple(rows))


_LISTED_UNITS = {"token": "event"}
"""For a unit whose parts a trace does not have, the unit whose parts are listed instead."""


def credit_tables(
    assignments: Sequence[Assignment], unit: str, names: Sequence[Mapping[str, str]], evidence: Evidence
) -> list[Table]:
    """Return a table for each trace with its parts by credit, and a table on how well the method finds faults.

    Where this was not measured, a note says so instead of the table. `names` has, for each trace, the names of its
    parts by their ids.
    """
    tables = []
    for assignment, names_of_parts in zip(assignments, names, strict=True):
        credits_by_name = {names_of_parts.get(part, part): share for part, share in assignment.credits.items()}
        columns, rows = _credits([assignment._replace(credits=credits_by_name)], unit, exact=False)
        name = printable(assignment.trace_id)
        tables.append(Table(name, name, columns, tuple(row[1:] for row in rows), tuple(_basis(assignment, unit))))
    if evidence.rates:
        return [*tables, _evidence_table(evidence)]
    note = f"Finds faults? Not measured for the unit {evidence.unit}: see docs/credit.md."
    if evidence.basis is Basis.ADVANTAGE:
        note = "Finds faults? Not measured: an advantage says what to train, not who was at fault."
    tables[-1] = tables[-1]._replace(notes=(*tables[-1].notes, note))
    return tables


def _evidence_table(evidence: Evidence) -> Table:
    """Return how often each method of attribution found planted faults; the method of this credit is marked."""
    part = "agent" if evidence.unit == "agent" else "step"
    proxy_mark = " *" if evidence.basis is Basis.PROXY else ""
    reruns_mark = " *" if evidence.basis is Basis.RERUNS else ""
    results = evidence.rates
    shares = {
        "chance": [result.chance for result in results],
        f"least credit{proxy_mark}": [result.least for result in results],
        f"most credit{proxy_mark}": [result.most for result in results],
        "reward, with a judge": [result.judge for result in results],
    }
    reruns = [result.reruns for result in results if result.reruns is not None]
    if reruns:
        shares[f"difference, 4 reruns{reruns_mark}"] = reruns
    faults = [result.fault for result in results]  # the headings of the columns
    rows = []
    for method, shares_by_fault in shares.items():
        texts = [f"{share:.1%}".rjust(len(fault)) for fault, share in zip(faults, shares_by_fault, strict=True)]
        rows.append((method, *texts))
    notes = ["* the method used here."]
    if evidence.basis is Basis.NOT_MEASURED:
        values = "with" if evidence.has_values else "without"
        notes = [f"{evidence.method.capitalize()} {values} --values was not measured; credit here is by shapley."]
    notes.append(f"A judge rates each {part}, rightly 8 times of 10: --outcomes, then corpus trace reward.")
    if reruns:
        notes.append(f"Reruns replace each {part}, simulated: --method difference --values.")
    notes.append("docs/credit.md says how this was measured.")
    title = f"Finds faults? How often the {part} at fault came first in {RUNS_PER_FAULT * len(results)} made runs"
    return Table("finds_faults", title, ("by", *faults), tuple(rows), tuple(notes))


def exact_credit(assignments: Sequence[Assignment], unit: str) -> Table:
    """Return the credit of all traces in one table, with every digit; the last column is the basis of the credit."""
    columns, rows = _credits(assignments, unit, exact=True)
    bases: list[str] = []  # one for each row
    for assignment in assignments:
        bases += [assignment.basis] * len(assignment.credits)
    rows_with_basis = tuple((*row, basis) for row, basis in zip(rows, bases, strict=True))
    return Table("credit", "", ("trace", *columns, "basis"), rows_with_basis)


def _credits(
    assignments: Sequence[Assignment], unit: str, *, exact: bool
) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """Return the columns and a row for each part, the parts of a trace by credit.

    Rows begin with the trace, which the columns do not name. Standard errors have a column if credit was sampled.
    """
    columns: tuple[str, ...] = (_LISTED_UNITS.get(unit, unit), "credit")
    shares = [share for assignment in assignments for share in assignment.credits.values()]
    are_sampled = any(share.standard_error is not None for share in shares)
    if are_sampled:
        columns = (*columns, "standard error")
    rows: list[tuple[Cell, ...]] = []
    for assignment in assignments:
        for name, share in sorted(assignment.credits.items(), key=lambda item: -item[1].credit):
            row = [printable(assignment.trace_id), printable(name), round_figure(share.credit, exact=exact)]
            if are_sampled:
                row.append(round_figure(share.standard_error, exact=exact))
            rows.append(tuple(row))
    return columns, rows


def _basis(assignment: Assignment, unit: str) -> Iterator[str]:
    """Yield notes on what credit is based on, how precise it is, and what its sum is."""
    if unit == "token":
        yield "Every token of an event has the credit of the event; a trace has no single tokens."
    yield f"Basis: {assignment.basis}."
    if assignment.precision:
        yield f"{assignment.precision}."
    if assignment.whole is not None and assignment.nobody is not None:
        sign = "=" if assignment.is_efficient else "is not"
        yield (
            f"Sum of credits {assignment.sum:.6g} {sign} value of the whole team {assignment.whole:.6g} "
            f"- value of nobody {assignment.nobody:.6g}."
        )


def credit_data(
    assignments: Sequence[Assignment], unit: str, method: str, channel: str, evidence: Evidence
) -> dict[str, Any]:
    """Return the credit of traces for programs, and how well the method finds faults."""
    return {
        "unit": unit,
        "method": method,
        "channel": channel,
        "finds_faults": {
            "basis": evidence.basis.value,
            "runs_of_a_fault": RUNS_PER_FAULT if evidence.rates else None,
            "faults": [result._asdict() for result in evidence.rates],
        },
        "traces": [
            {
                "trace_id": assignment.trace_id,
                "basis": assignment.basis,
                "sum": assignment.sum,
                "total": assignment.total,
                "whole": assignment.whole,
                "nobody": assignment.nobody,
                "is_exact": assignment.samples is None,
                "samples": assignment.samples,
                "warnings": list(assignment.warnings),
                "credits": [
                    {"part": name, "credit": share.credit, "standard_error": share.standard_error}
                    for name, share in assignment.credits.items()
                ],
            }
            for assignment in assignments
        ],
    }


MAX_DIFFERENCES = 15
"""The number of differences that people see; a note says how many others there are."""

SAME = "The traces are the same.\n"
ALIKE = "No differences except in ids, times of single events and contents, which are not compared.\n"
"""The sentence for two traces without a difference."""


def difference_table(
    differences: Sequence[Difference], runs: Sequence[tuple[str, Trace]], *, exact: bool, most: int | None = None
) -> Table:
    """Return the differences of two runs, each given by its file and its trace: a row for each count or figure.

    With `most`, the table has at most so many rows, the largest differences first. Without, it has all differences in
    the order of the comparison.
    """
    ordered = differences
    if most is not None:
        ordered = largest_first(differences)
    shown = ordered[:most]
    columns: tuple[str, ...] = ("part", "name", "A", "B", "change", "unit")
    if exact:
        columns = (*columns, "A_at_least", "B_at_least")
    rows = []
    for difference in shown:
        before_is_least, after_is_least = difference.are_lower_bounds
        before = _value(difference.before, before_is_least, exact=exact)
        after = _value(difference.after, after_is_least, exact=exact)
        change = round_figure(difference.change, exact=exact)
        unit = difference.unit or None
        if unit == "1" and not exact:  # "1" is the unit of pure numbers
            unit = None
        row: tuple[Cell, ...] = (difference.part, printable(difference.name), before, after, change, unit)
        if exact:
            row = (*row, before_is_least, after_is_least)
        rows.append(row)
    notes = tuple(_notes(shown, runs, len(ordered) - len(shown)))
    return Table("differences", "", columns, tuple(rows), notes)


def _value(value: float | str | None, is_least: bool, *, exact: bool) -> Cell:
    if value is None:
        return None
    if isinstance(value, str):
        return printable(value)
    if is_least and not exact:
        return at_least(value)
    return round_figure(value, exact=exact)


def _notes(differences: Sequence[Difference], runs: Sequence[tuple[str, Trace]], more: int) -> Iterator[str]:
    """Yield notes on the two runs, on the differences left out, and on missing figures."""
    for side, (file, trace) in zip("AB", runs, strict=True):
        yield f"{side}: {printable(trace.trace_id)} ({printable(file, limit=300)})"
    if more:
        noun = "difference is" if more == 1 else "differences are"
        yield f"{more:,} more {noun} smaller: corpus trace diff A B --all."
    if any(difference.before is None or difference.after is None for difference in differences):
        yield "Empty: not stated or not known."
    if any(any(difference.are_lower_bounds) for difference in differences):
        yield "At least: the log does not record all of it."
    for difference in differences:
        if difference.reason:
            side = "A" if difference.before is None else "B"
            yield f"No {difference.name} in {side}: {printable(difference.reason, limit=300)}."


def difference_data(differences: Sequence[Difference]) -> list[dict[str, Cell]]:
    """Return the differences for programs."""
    return [
        {
            "part": difference.part,
            "name": difference.name,
            "A": difference.before,
            "B": difference.after,
            "change": difference.change,
            "unit": difference.unit or None,
            "A_at_least": difference.are_lower_bounds[0],
            "B_at_least": difference.are_lower_bounds[1],
        }
        for difference in differences
    ]


def path_table(first: Diagnosis, second: Diagnosis) -> Table:
    """Return the largest differences between the critical paths of two runs; the title says which run is faster."""
    unit = first.summary.unit
    times_a, times_b = _time_on_path(first), _time_on_path(second)
    rows = [(part, times_a.get(part, 0.0), times_b.get(part, 0.0)) for part in {**times_a, **times_b}]
    rows.sort(key=lambda row: -abs(row[2] - row[1]))
    figures = [(_time(a, unit), _time(b, unit), _change(b - a, unit)) for _, a, b in rows[:MAX_DIFFERENCES]]
    widths = [max(map(len, column)) for column in zip(*figures, strict=True)]
    aligned = [tuple(map(str.rjust, texts, widths)) for texts in figures]
    columns = ("on the critical path", *map(str.rjust, ("A", "B", "change"), widths))
    cells = tuple((row[0], *texts) for row, texts in zip(rows, aligned, strict=False))  # only the largest differences
    return Table("critical_path", verdict(first.summary, second.summary), columns, cells)


def verdict(first: Summary, second: Summary) -> str:
    """Return a sentence on which of two runs is faster and by how much, or on why their times are not compared."""
    unit, before, after = second.unit, first.elapsed, second.elapsed
    if first.unit != unit:
        units = "seconds, B steps" if unit == "step" else "steps, B seconds"
        return f"Times are not compared: A counts {units}."
    if _time(before, unit) == _time(after, unit):
        return f"A and B took equally long: {_time(after, unit)}."
    change = _time(abs(after - before), unit)
    comparative = "less" if after < before else "more"
    return f"B took {change} {comparative} than A: {_time(after, unit)}, not {_time(before, unit)}."


def _time_on_path(run: Diagnosis) -> dict[str, float]:
    """Return the time of each part of a critical path, such as the model calls of a role, by the name of the part.

    Agents are named by their roles, since ids differ from run to run; by their own names if they have no role.
    """
    names = agent_names(run.view)
    names |= {agent.agent: printable(agent.role, limit=30) for agent in run.view.agents if agent.role}
    times: dict[str, float] = {}
    for (agent, activity, tool), seconds in time_on_path(run).items():
        if not seconds:
            continue
        act = activity.value
        if tool:
            act = printable(tool, limit=30)
            if activity is Activity.OPEN:
                act += ", perhaps waiting,"
        part = f"{act} of {names[agent]}" if agent else _GAPS[activity]
        times[part] = times.get(part, 0.0) + seconds
    return times


_GAPS = {Activity.IDLE: "nobody at work", Activity.GAP: "gaps in which others worked"}
"""The names of the parts of a critical path in which no agent of the path works."""


def _time(time: float, unit: str) -> str:
    return restore_blanks(duration(time, unit))


def _change(time: float, unit: str) -> str:
    """Return a difference of two times with its sign; empty if they are equal."""
    if not time:
        return ""
    sign = "-" if time < 0 else "+"
    return f"{sign}{_time(abs(time), unit)}"
