"""Labels, credit and differences as tables, and credit as JSON."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.table import Cell, Table
from orchtrace_corpus.trace.analysis.labels import GIVEN, RULES, Label
from orchtrace_corpus.trace.credit.assign import Assignment
from orchtrace_corpus.trace.credit.evidence import RUNS_OF_A_FAULT, Basis, Evidence
from orchtrace_corpus.trace.diagnosis.comparison import Difference, largest_first
from orchtrace_corpus.trace.diagnosis.lever import on_path
from orchtrace_corpus.trace.diagnosis.values import Activity, Diagnosis, Summary
from orchtrace_corpus.trace.model.terms import Decision
from orchtrace_corpus.trace.model.trace import Trace
from orchtrace_corpus.trace.render.measures import at_least, round_figure
from orchtrace_corpus.trace.render.names import duration, names_in

CODES = {decision: f"O{position}" for position, decision in enumerate(Decision, 1)}
"""The codes of the sub-decisions, O1 to O5."""


def label_summary(trace: Trace, labels: Sequence[Label]) -> Table:
    """Count how often each sub-decision is taken, by rule, also those that do not occur."""
    counts = Counter((label.decision, label.rule) for label in labels)
    rows = []
    for decision in Decision:
        rules = [(rule, number) for (taken, rule), number in counts.items() if taken is decision]
        for rule, number in sorted(rules, key=lambda one: (-one[1], one[0])) or [("", 0)]:
            meaning = RULES[rule][1] if rule in RULES else None
            shown = "The trace had the label already." if rule == GIVEN else meaning
            rows.append((CODES[decision], decision.value, number, printable(rule) or None, shown))
    columns = ("code", "sub-decision", "events", "rule", "fires when")
    return Table("labels", printable(trace.trace_id), columns, tuple(rows), wrapped="fires when")


def labelled_events(trace: Trace, labels: Sequence[Label], names: Mapping[str, str]) -> Table:
    """Every label, by event; agents by their names, where these are given."""
    rows = []
    for label in labels:
        event, decision = trace.events[label.event], label.decision
        agent = names.get(event.agent) or printable(event.agent)
        rows.append((printable(event.id), agent, CODES[decision], decision.value, printable(label.rule)))
    return Table("labels", printable(trace.trace_id), ("event", "agent", "code", "sub-decision", "rule"), tuple(rows))


_PART_OF = {"token": "event"}
"""The rows of units that are not shown by their own parts."""


def credit_tables(
    assignments: Sequence[Assignment], unit: str, names: Sequence[Mapping[str, str]], evidence: Evidence
) -> list[Table]:
    """Return a table for each trace: its parts by falling credit, with what the figures rest on.

    Args:
        assignments: The credit of each trace.
        unit: Its unit.
        names: What the parts of each trace are called.
        evidence: How well the method finds faults, which the last table says.
    """
    found = []
    for one, named in zip(assignments, names, strict=True):
        called = {named.get(part, part): share for part, share in one.credits.items()}
        columns, rows = _credits([one._replace(credits=called)], unit, exact=False)
        name = printable(one.trace_id)
        found.append(Table(name, name, columns, tuple(row[1:] for row in rows), tuple(_basis(one, unit))))
    if evidence.found:
        return [*found, _evidence_table(evidence)]
    said = f"Finds faults? Not measured for the unit {evidence.unit}: see docs/credit.md."
    if evidence.basis is Basis.ADVANTAGE:
        said = "Finds faults? Not measured: an advantage says what to train, not who was at fault."
    found[-1] = found[-1]._replace(notes=(*found[-1].notes, said))
    return found


def _evidence_table(evidence: Evidence) -> Table:
    """Return a table of how often methods found planted faults, the one that was used marked."""
    part = "agent" if evidence.unit == "agent" else "step"
    shares = {
        "chance": [one.chance for one in evidence.found],
        f"least credit{' *' if evidence.basis is Basis.PROXY else ''}": [one.least for one in evidence.found],
        f"most credit{' *' if evidence.basis is Basis.PROXY else ''}": [one.most for one in evidence.found],
        "reward, with a judge": [one.judge for one in evidence.found],
    }
    reruns = [one.reruns for one in evidence.found if one.reruns is not None]
    if reruns:
        shares[f"difference, 4 reruns{' *' if evidence.basis is Basis.RERUNS else ''}"] = reruns
    faults = [one.fault for one in evidence.found]
    rows = tuple(
        (name, *(f"{share:.1%}".rjust(len(fault)) for fault, share in zip(faults, row, strict=True)))
        for name, row in shares.items()
    )
    notes = []
    if evidence.basis is Basis.NOT_MEASURED:
        values = "with" if evidence.has_values else "without"
        notes.append(f"{evidence.method.capitalize()} {values} --values was not measured; credit here is by shapley.")
    else:
        notes.append("* the method used here.")
    notes.append(f"A judge rates each {part}, rightly 8 times of 10: --outcomes, then corpus trace reward.")
    if reruns:
        notes.append(f"Reruns replace each {part}, simulated: --method difference --values.")
    notes.append("docs/credit.md says how this was measured.")
    runs = RUNS_OF_A_FAULT * len(evidence.found)
    title = f"Finds faults? How often the {part} at fault came first in {runs} made runs"
    return Table("finds_faults", title, ("by", *faults), rows, tuple(notes))


def evidence_data(evidence: Evidence) -> dict[str, Any]:
    """Return what is known of how well a method finds faults, for programs."""
    return {
        "basis": evidence.basis.value,
        "runs_of_a_fault": RUNS_OF_A_FAULT if evidence.found else None,
        "faults": [one._asdict() for one in evidence.found],
    }


def exact_credit(assignments: Sequence[Assignment], unit: str) -> Table:
    """The figures of all traces with every digit in one table: the trace is first, what its figures rest on last."""
    columns, rows = _credits(assignments, unit, exact=True)
    bases = [assignment.basis for assignment in assignments for _ in assignment.credits]
    whole = tuple((*row, basis) for row, basis in zip(rows, bases, strict=True))
    return Table("credit", "", ("trace", *columns, "basis"), whole)


def _credits(
    assignments: Sequence[Assignment], unit: str, *, exact: bool
) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """The columns, and the parts of each trace by falling credit, each behind the name of the trace."""
    sampled = any(share.standard_error is not None for one in assignments for share in one.credits.values())
    rows = [
        (
            printable(assignment.trace_id),
            printable(name),
            round_figure(share.credit, exact=exact),
            *((round_figure(share.standard_error, exact=exact),) if sampled else ()),
        )
        for assignment in assignments
        for name, share in sorted(assignment.credits.items(), key=lambda item: -item[1].credit)
    ]
    return (_PART_OF.get(unit, unit), "credit", *(("standard error",) if sampled else ())), rows


def _basis(assignment: Assignment, unit: str) -> Iterator[str]:
    """Return the basis of the figures, how exact they are, and whether they sum up."""
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
    """The same for programs."""
    return {
        "unit": unit,
        "method": method,
        "channel": channel,
        "finds_faults": evidence_data(evidence),
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


MOST_DIFFERENCES = 15
"""So many differences people look at; the others are counted."""

SAME = "The traces are the same.\n"
ALIKE = "No differences except in ids, times of single events and contents, which are not compared.\n"
"""The sentence for two traces without a difference."""


def difference_table(
    differences: Sequence[Difference], runs: Sequence[tuple[str, Trace]], *, exact: bool, most: int | None = None
) -> Table:
    """Return the differences: a row for each count or figure, with its unit.

    Args:
        differences: What was found.
        runs: The file and the trace of each of the two.
        exact: Whether figures have every digit, for programs.
        most: So many rows, the largest differences first; all, in the order of the comparison, where None.
    """
    shown = differences if most is None else largest_first(differences)[:most]
    rows = []
    for one in shown:
        sides = zip((one.before, one.after), one.are_least, strict=True)
        before, after = (_side(value, is_least and not exact, exact=exact) for value, is_least in sides)
        change = round_figure(one.change, exact=exact)
        unit = None if one.unit == "1" and not exact else one.unit or None
        least = one.are_least if exact else ()
        rows.append((one.part, printable(one.name), before, after, change, unit, *least))
    columns = ("part", "name", "A", "B", "change", "unit", *(("A_at_least", "B_at_least") if exact else ()))
    more = 0 if most is None else len(largest_first(differences)) - len(shown)
    return Table("differences", "", columns, tuple(rows), tuple(_notes(shown, runs, more)))


def path_table(first: Diagnosis, second: Diagnosis) -> Table:
    """Return which of two runs is faster, and the differences on their critical paths, the largest first."""
    unit, of_first, of_second = first.summary.unit, _on_path(first), _on_path(second)
    pairs = {name: (of_first.get(name, 0.0), of_second.get(name, 0.0)) for name in {**of_first, **of_second}}
    shown = sorted(pairs.items(), key=lambda pair: -abs(pair[1][1] - pair[1][0]))[:MOST_DIFFERENCES]
    texts = [(name, _words(one, unit), _words(two, unit), _change(two - one, unit)) for name, (one, two) in shown]
    widths = [max(map(len, column)) for column in list(zip(*texts, strict=True))[1:]]
    rows = tuple((name, *map(str.rjust, figures, widths)) for name, *figures in texts)
    columns = ("on the critical path", *map(str.rjust, ("A", "B", "change"), widths))
    return Table("critical_path", verdict(first.summary, second.summary), columns, rows)


def verdict(first: Summary, second: Summary) -> str:
    """Return which of two runs is faster, and by how much, or that one counts seconds and the other steps."""
    unit, before, after = second.unit, first.elapsed, second.elapsed
    if first.unit != unit:
        counted = ("seconds", "B steps") if unit == "step" else ("steps", "B seconds")
        return f"Times are not compared: A counts {', '.join(counted)}."
    if _words(before, unit) == _words(after, unit):
        return f"A and B took equally long: {_words(after, unit)}."
    less = f"{_words(abs(after - before), unit)} {'less' if after < before else 'more'}"
    return f"B took {less} than A: {_words(after, unit)}, not {_words(before, unit)}."


def _on_path(run: Diagnosis) -> dict[str, float]:
    """The parts of a critical path in words; those of agents of one role are one, since ids differ between runs."""
    names, found = names_in(run.view), dict[str, float]()
    names |= {one.agent: printable(one.role, limit=30) for one in run.view.agents if one.role}
    for (agent, activity, tool), seconds in on_path(run).items():
        what = f"{printable(tool, limit=30)}{', perhaps waiting,' if activity is Activity.OPEN else ''}"
        text = f"{what if tool else activity.value} of {names[agent]}" if agent else _GAPS[activity]
        if seconds:
            found[text] = found.get(text, 0.0) + seconds
    return found


_GAPS = {Activity.IDLE: "nobody at work", Activity.GAP: "gaps in which others worked"}


def _words(time: float, unit: str) -> str:
    return duration(time, unit).replace("\ue000", " ")


def _change(time: float, unit: str) -> str:
    return f"{'-' if time < 0 else '+'}{_words(abs(time), unit)}" if time else ""


def _side(value: float | str | None, is_least: bool, *, exact: bool) -> Cell:
    if isinstance(value, str) or value is None:
        return value and printable(value)
    return at_least(value) if is_least else round_figure(value, exact=exact)


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
            "A_at_least": difference.are_least[0],
            "B_at_least": difference.are_least[1],
        }
        for difference in differences
    ]


def _notes(differences: Sequence[Difference], runs: Sequence[tuple[str, Trace]], more: int) -> Iterator[str]:
    for side, (file, trace) in zip("AB", runs, strict=True):
        yield f"{side}: {printable(trace.trace_id)} ({printable(file, limit=300)})"
    if more:
        noun = "difference is" if more == 1 else "differences are"
        yield f"{more:,} more {noun} smaller: corpus trace diff A B --all."
    if any(difference.before is None or difference.after is None for difference in differences):
        yield "Empty: not stated or not known."
    if any(any(one.are_least) for one in differences):
        yield "At least: the log does not record all of it."
    for one in differences:
        if one.reason:
            side = "A" if one.before is None else "B"
            yield f"No {one.name} in {side}: {printable(one.reason, limit=300)}."
