"""Names of agents, durations, amounts and counts in texts for people."""

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

_SHORT_ID = 8  # characters
_ID = r"(?!(?=[A-Za-z _-]*[G-Zg-z])[A-Za-z]{3,}(?:[-_ ][A-Za-z]+)*[-_ ]?\d{1,3}$)[0-9A-Za-z_:.@-]*\d[0-9A-Za-z_:.@-]*"
"""The pattern of names that are only ids. They have digits, and are not words with a small number, as is `tester-2`."""


def unbroken(text: str) -> str:
    """Return a text that `break_lines` keeps on one line."""
    return text.replace(" ", UNBREAKABLE)


def break_lines(text: str, room: int, *, label: str = "", indent: int = 0) -> list[str]:
    """Return a text in lines of at most `room` cells; the first begins with a label, the others are indented."""
    lines = wrap(text, room, first=label.ljust(indent), rest=" " * indent)
    return [restore_blanks(line) for line in lines]


def restore_blanks(text: str) -> str:
    """Return a text with ordinary blanks instead of the unbreakable ones."""
    return text.replace(UNBREAKABLE, " ")


def duration(seconds: float, unit: str = "s") -> str:
    """Return a duration such as `2 h 05 min`, `3 min 20 s`, `4 min`, `1.5 s` or `195 ms`, or a number of steps."""
    if unit != "s":
        plural = "" if seconds == 1 else "s"
        return unbroken(f"{seconds:,.6g} {unit}{plural}")
    if 0 < seconds < 0.9995:
        return unbroken(f"{seconds * 1000:.3g} ms")
    if seconds < 59.95:
        return unbroken(f"{seconds:.3g} s")
    hours, below_hour = divmod(round(seconds), 3600)
    minutes, below_minute = divmod(below_hour, 60)
    if hours:
        return unbroken(f"{hours:,} h {minutes:02} min" if minutes else f"{hours:,} h")
    return unbroken(f"{minutes} min {below_minute:02} s" if below_minute else f"{minutes} min")


def format_range(least: str, most: str) -> str:
    """Return a range such as `2 s to 4 s`, or only one of the texts if they are equal."""
    if least == most:
        return most
    return unbroken(f"{least} to {most}")


def money(usd: float) -> str:
    """Return an amount in dollars without a sign; with more digits below a dollar, so that it does not become 0."""
    if usd >= 0.995 or usd == 0:
        return f"{usd:,.2f}"
    return f"{usd:.4f}" if usd >= 0.00005 else "<0.0001"


def agent_names(view: TraceView) -> dict[str, str]:
    """Return the name of each agent of a trace by its id, as it is shown to people."""
    people = frozenset(agent.id for agent in view.trace.agents if agent.kind is AgentKind.HUMAN)
    return distinct_names(view.agents, people)


def distinct_names(team: Sequence[AgentSpan], people: frozenset[str]) -> dict[str, str]:
    """Return a distinct name for each agent by its id. An agent whose id says nothing to people is named by its role.

    Human agents, whose ids are in `people`, keep their own names.
    """
    roles = Counter(agent.role for agent in team)
    names: dict[str, str] = {}
    used: set[str] = set()
    for agent in team:
        candidates = _candidates(agent, people, has_unique_role=roles[agent.role] == 1)
        unused = [name for name in candidates if name not in used]
        name = unused[0] if unused else candidates[-1]
        names[agent.agent] = name
        used.add(name)
    return names


def _candidates(agent: AgentSpan, people: frozenset[str], *, has_unique_role: bool) -> list[str]:
    """Return the possible names of an agent, the best first."""
    own = printable(agent.agent, limit=60)
    role = clip(printable(agent.role, limit=60), 30)
    if agent.agent in people or not role or agent.agent.lower().startswith(agent.role.lower()):
        return [own]
    if not re.fullmatch(_ID, agent.agent):
        return [f"{own} ({role})", own]
    begin_of_id = own if len(own) <= _SHORT_ID + 2 else own[:_SHORT_ID]
    end_of_id = own[-_SHORT_ID:]  # ids that begin with a time often have the same begin
    candidates = [f"{role} {begin_of_id}", f"{role} {end_of_id}", f"{role} {own}", own]
    if has_unique_role:
        candidates.insert(0, role)
    return candidates


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 agent` or `2,000 agents`."""
    plural = "" if count == 1 else "s"
    return f"{count:,} {noun}{plural}"


def unbroken_count(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 agent`, without a blank at which a line could be broken."""
    return unbroken(format_count(count, noun))
