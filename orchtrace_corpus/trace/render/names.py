"""Names of agents, durations, amounts and counts, as people read them."""

import re
from collections import Counter
from collections.abc import Sequence

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import clip, wrap
from orchtrace_corpus.trace.model.terms import AgentKind
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.agent_tree import AgentSpan

UNBREAKABLE = "\ue000"
"""The placeholder for a blank at which no line is broken. Text from logs never has it, since it is not printable."""

_SHORT_ID = 8
_ID = r"(?!(?=[A-Za-z _-]*[G-Zg-z])[A-Za-z]{3,}(?:[-_ ][A-Za-z]+)*[-_ ]?\d{1,3}$)[0-9A-Za-z_:.@-]*\d[0-9A-Za-z_:.@-]*"
"""The names that are only ids: they have digits, and are not words followed by a small number, such as `tester-2`."""


def unbroken(text: str) -> str:
    """Return a text that `break_lines` keeps on one line."""
    return text.replace(" ", UNBREAKABLE)


def break_lines(text: str, room: int, *, label: str = "", indent: int = 0) -> list[str]:
    """Return a text in lines of at most `room` cells; a label begins the first, the others are indented."""
    return list(map(one_line, wrap(text, room, first=label.ljust(indent), rest=" " * indent)))


def one_line(text: str) -> str:
    """Return a text with ordinary blanks."""
    return text.replace(UNBREAKABLE, " ")


def duration(seconds: float, unit: str = "s") -> str:
    """Return a duration such as `2 h 05 min`, `3 min 20 s`, `4 min`, `1.5 s` or `195 ms`, or a number of steps."""
    if unit != "s":
        return unbroken(f"{seconds:,.6g} {unit if seconds == 1 else f'{unit}s'}")
    if 0 < seconds < 0.9995:
        return unbroken(f"{seconds * 1000:.3g} ms")
    if seconds < 59.95:
        return unbroken(f"{seconds:.3g} s")
    hours, rest = divmod(round(seconds), 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return unbroken(f"{hours:,} h {minutes:02} min" if minutes else f"{hours:,} h")
    return unbroken(f"{minutes} min {rest:02} s" if rest else f"{minutes} min")


def between(least: str, most: str, *, is_rising: bool = True) -> str:
    """Return a range such as `2 s to 4 s`, or only one of the texts if they are equal."""
    if least == most:
        return most
    return unbroken(f"{least} to {most}" if is_rising else f"{most} to {least}")


def money(usd: float) -> str:
    """Return an amount in dollars; below a dollar with more digits, so that a small amount is not shown as 0."""
    if usd >= 0.995 or usd == 0:
        return f"{usd:,.2f}"
    return f"{usd:.4f}" if usd >= 0.00005 else "<0.0001"


def names_in(view: TraceView) -> dict[str, str]:
    """Return the name of each agent of a trace for people, by its id."""
    return names(view.agents, frozenset(agent.id for agent in view.trace.agents if agent.kind is AgentKind.HUMAN))


def names(team: Sequence[AgentSpan], people: frozenset[str]) -> dict[str, str]:
    """Return a distinct name for each agent by its id: its role, if its own name is only an id.

    Human agents, given by their ids, keep their own names.
    """
    roles = Counter(agent.role for agent in team)
    by_id: dict[str, str] = {}
    used: set[str] = set()
    for agent in team:
        candidates = _candidates(agent, people, is_alone=roles[agent.role] == 1)
        name = next((name for name in candidates if name not in used), candidates[-1])
        by_id[agent.agent] = name
        used.add(name)
    return by_id


def _candidates(agent: AgentSpan, people: frozenset[str], *, is_alone: bool) -> list[str]:
    """Return the possible names of an agent, the best first."""
    own, role = printable(agent.agent, limit=60), clip(printable(agent.role, limit=60), 30)
    if agent.agent in people or not role or agent.agent.lower().startswith(agent.role.lower()):
        return [own]
    if not re.fullmatch(_ID, agent.agent):
        return [f"{own} ({role})", own]
    short = own if len(own) <= _SHORT_ID + 2 else own[:_SHORT_ID]
    by_end = f"{role} {own[-_SHORT_ID:]}"  # ids that begin with a time may begin alike
    return [*([role] if is_alone else []), f"{role} {short}", by_end, f"{role} {own}", own]


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 agent` or `2,000 agents`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def quantity(count: int, noun: str) -> str:
    """Return a count with its noun, kept on one line."""
    return unbroken(counted(count, noun))
