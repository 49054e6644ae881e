"""What a part of the team would have achieved: the value of a coalition, supplied or by a declared proxy.

A log holds one run, in which everybody took part. What would have come out without somebody is known only
from runs that were made without them, whose outcomes the user supplies; or it is put as a proxy, which is a
statement about the graph and not about the world, and is always named as such.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from orchtrace_corpus.errors import CommandUseError, DataFileError
from orchtrace_corpus.findings import quote
from orchtrace_corpus.trace.credit.values import coalition_values
from orchtrace_corpus.trace.graph import graph, order
from orchtrace_corpus.trace.model import EventType, Trace

Coalition: TypeAlias = frozenset[str]
Value: TypeAlias = Callable[[Coalition], float]
"""From a coalition of players to what it achieves."""

_MOST_NAMED = 5


def supplied(text: str, path: str, players: Sequence[str]) -> Value:
    """The values of ablation runs, from JSON of the form `values.COALITIONS`.

    Members of the file that are no players are refused; a coalition that the file lacks is refused when it is
    asked for.

    Raises:
        DataFileError: The text is not of that form.
    """
    known = coalition_values(text, path)
    strangers = sorted({member for coalition in known for member in coalition} - set(players))
    if strangers:
        shown = ", ".join(map(quote, strangers[:_MOST_NAMED]))
        raise DataFileError(f"{quote(path)} names members that the trace does not have: {shown}",
                            f"Its players are: {', '.join(players)}.")  # fmt: skip

    def value(coalition: Coalition) -> float:
        if coalition not in known:
            members = ", ".join(sorted(coalition)) or "nobody"
            raise CommandUseError(
                f"{quote(path)} has no value for the coalition of {members}",
                "Add a run with exactly these members, or leave out --values to use the proxy.",
            )
        return known[coalition]

    return value


def by_reach(trace: Trace, players: Mapping[str, Sequence[int]], outcome: float) -> Value:
    """The proxy `reach`: the share of the result's making that a coalition could have done, times the outcome.

    The result is the last aggregate, else the last return, else the last event. What led to it along edges is
    its making; an event of it is done if its player is in the coalition and everything that it depends on is
    done. Events of no player are always done. So the whole team has the outcome, nobody has what needs nobody,
    and whoever brings nothing to the result gets nothing.

    Raises:
        CycleError: The edges go round in a circle.
    """
    of = graph(trace)
    sequence = order(of)
    incoming: list[list[int]] = [[] for _ in trace.events]
    for source, target in zip(of.sources, of.targets, strict=True):
        incoming[target].append(source)
    making = _ancestry(_result(trace, sequence), incoming)
    ordered = [number for number in sequence if number in making]
    owner: dict[int, str] = {number: name for name, numbers in players.items() for number in numbers}
    owned = sum(number in owner for number in ordered)

    def value(coalition: Coalition) -> float:
        done: set[int] = set()
        reached = 0
        for number in ordered:
            player = owner.get(number)
            if (player is None or player in coalition) and all(source in done for source in incoming[number]):
                done.add(number)
                reached += player is not None
        return outcome * reached / owned if owned else 0.0

    return value


def _result(trace: Trace, sequence: Sequence[int]) -> int:
    for kind in (EventType.AGGREGATE, EventType.RETURN):
        for number in reversed(sequence):
            if trace.events[number].type is kind:
                return number
    return sequence[-1]


def _ancestry(number: int, incoming: Sequence[Sequence[int]]) -> set[int]:
    found = {number}
    waiting = [number]
    while waiting:
        for source in incoming[waiting.pop()]:
            if source not in found:
                found.add(source)
                waiting.append(source)
    return found
