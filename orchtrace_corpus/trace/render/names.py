"""Names of agents, durations and acts on a page for people."""

import re
from collections import Counter
from collections.abc import Sequence

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import clip, wrap
from orchtrace_corpus.trace.model.terms import AgentKind
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.agent_tree import AgentSpan

_KEEP = "\ue000"
"""Stands for a blank at which no line is broken; text from outside never has it, since it does not print."""

_SHORT = 8
_IS_ID = (
    r"(?!(?=[A-Za-z _-]*[G-Zg-z])[A-Za-z]{3,}(?:[-_ ][A-Za-z]+)*[-_ ]?\d{1,3}$)[0-9A-Za-z_:.@-]*\d[0-9A-Za-z_:.@-]*"
)
"""An id has digits, and is no word with a small number behind it, such as `tester-2`."""


def keep(text: str) -> str:
    """The text, to stay on one line when `break_lines` breaks what it is part of."""
    return text.replace(" ", _KEEP)


def break_lines(text: str, room: int, *, label: str = "", indent: int = 0) -> list[str]:
    """The text in lines of at most `room` cells, a label before the first of them."""
    lines = wrap(text, room, first=label.ljust(indent), rest=" " * indent)
    return [line.replace(_KEEP, " ") for line in lines]


def duration(seconds: float, unit: str = "s") -> str:
    """A duration in words, such as `2 h 05 min`, `3 min 20 s`, `4 min`, `1.5 s` or `195 ms`; or a number of steps."""
    if unit != "s":
        return keep(f"{seconds:,.6g} {unit if seconds == 1 else f'{unit}s'}")
    if 0 < seconds < 0.9995:
        return keep(f"{seconds * 1000:.3g} ms")
    if seconds < 59.95:
        return keep(f"{seconds:.3g} s")
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return keep(f"{hours:,} h {minutes:02} min" if minutes else f"{hours:,} h")
    return keep(f"{minutes} min {rest:02} s" if rest else f"{minutes} min")


def between(least: str, most: str, *, is_rising: bool = True) -> str:
    """A range in words, such as `2 s to 4 s`; what is alike is said once."""
    if least == most:
        return most
    return keep(f"{least} to {most}" if is_rising else f"{most} to {least}")


def money(usd: float) -> str:
    """An amount in dollars; one below a dollar with more digits, so that little is not shown as nothing."""
    if usd >= 0.995 or usd == 0:
        return f"{usd:,.2f}"
    return f"{usd:.4f}" if usd >= 0.00005 else "<0.0001"


def names_in(view: TraceView) -> dict[str, str]:
    """Return the name of each agent of a trace for people; programs get its id."""
    return names(view.agents, frozenset(agent.id for agent in view.trace.agents if agent.kind is AgentKind.HUMAN))


def names(team: Sequence[AgentSpan], people: frozenset[str]) -> dict[str, str]:
    """Return a distinct name for each agent: its role if its own name is only an id.

    Args:
        team: The agents.
        people: Those of them who are no machines.
    """
    roles = Counter(one.role for one in team)
    found: dict[str, str] = {}
    taken: set[str] = set()
    for one in team:
        tries = _tries(one, people, is_alone=roles[one.role] == 1)
        found[one.agent] = next((name for name in tries if name not in taken), tries[-1])
        taken.add(found[one.agent])
    return found


def _tries(agent_span: AgentSpan, people: frozenset[str], *, is_alone: bool) -> list[str]:
    """Names of an agent, the best first; the last is its own."""
    own, role = printable(agent_span.agent, limit=60), clip(printable(agent_span.role, limit=60), 30)
    if agent_span.agent in people:
        return [own]
    if not role or agent_span.agent.lower().startswith(agent_span.role.lower()):
        return [own]
    if not re.fullmatch(_IS_ID, agent_span.agent):
        return [f"{own} ({role})", own]
    short = own if len(own) <= _SHORT + 2 else own[:_SHORT]
    by_end = f"{role} {own[-_SHORT:]}"  # ids that begin with a time may begin alike
    return [*([role] if is_alone else []), f"{role} {short}", by_end, f"{role} {own}", own]


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as `1 agent` or `2,000 agents`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def quantity(number: int, noun: str) -> str:
    """The same, on one line."""
    return keep(counted(number, noun))
