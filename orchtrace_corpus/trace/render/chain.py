"""The critical path of a logged run in words: what its end waited for, stretch by stretch."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.trace.model.trace import Event, EventType
from orchtrace_corpus.trace.render.names import kept
from orchtrace_corpus.trace.view.timing import Chain, Timing

_MOST_STRETCHES = 7
_MOST_SHARES = 4
_LEAST_GAP = 0.02
_LEAST_SAID = 0.005
_IDLE = "idle"
_UNKNOWN = "unknown"


class Words(NamedTuple):
    """How a page says things.

    Attributes:
        name: What an agent is called.
        role: What it is called in a sum over many.
        time: A duration.
    """

    name: Callable[[str], str]
    role: Callable[[str], str]
    time: Callable[[float], str]


class _Stretch(NamedTuple):
    """A part of the chain in which one agent works, or nothing of the chain happens.

    Attributes:
        agent: The agent; empty where there is none.
        name: What it is called.
        role: The same, for a sum over many.
        seconds: How long.
        mostly: In brackets, what takes most of it; empty where that is the model.
    """

    agent: str
    name: str
    role: str
    seconds: float
    mostly: str


def said(times: Timing, chain: Chain, assumed: frozenset[int], words: Words) -> str:
    """The stretches of the chain in their order, or where they are many, whose they are.

    Args:
        times: The times of the run.
        chain: What its end waited for.
        assumed: The numbers of the events whose time nobody saw.
        words: How things are said.
    """
    least = _LEAST_GAP * times.wall
    stretches = list(_stretches(times, chain, assumed, words, least))
    if len(stretches) <= _MOST_STRETCHES:
        text = " -> ".join(kept(f"{one.name} {words.time(one.seconds)}") + one.mostly for one in stretches)
    else:
        text = _sums(stretches, words)
    between = sum(gap for gap in (*chain.gaps, chain.after) if gap < least)
    if not text:
        return kept(f"{words.time(between)} {_IDLE}")
    is_said = between >= _LEAST_SAID * times.wall
    return text + (f"; {kept(f'{words.time(between)} {_IDLE}')} in between" if is_said else "")


def _sums(stretches: Sequence[_Stretch], words: Words) -> str:
    by_role: dict[str, list[float]] = {}
    for one in stretches:
        by_role.setdefault(one.role, []).append(one.seconds)
    ordered = sorted(by_role.items(), key=lambda pair: -sum(pair[1]))
    shown = [kept(f"{role} {words.time(sum(all_))} ({len(all_):,} times)") for role, all_ in ordered[:_MOST_SHARES]]
    rest = sum(sum(all_) for _, all_ in ordered[_MOST_SHARES:])
    more = [kept(f"others {words.time(rest)}")] if rest else []
    longest = max((one for one in stretches if one.agent), key=lambda one: one.seconds)
    at_once = f"{kept(f'{longest.name} {words.time(longest.seconds)}')}{longest.mostly}"
    return f"{', '.join([*shown, *more])}; the longest at once {at_once}"


def _stretches(times: Timing, chain: Chain, assumed: frozenset[int], words: Words, least: float) -> Iterator[_Stretch]:
    events = times.of.events
    pieces: list[tuple[str, str, float]] = []  # agent, what it does, how long; no agent in gaps
    for place, (number, part, gap) in enumerate(zip(chain.events, chain.parts, chain.gaps, strict=True)):
        if gap >= least and gap > 0:
            pieces.append(("", _IDLE if place else _UNKNOWN, gap))
        if part > 0:
            pieces.append((events[number].agent, "assumed" if number in assumed else doing(events[number]), part))
    if chain.after >= least and chain.after > 0:
        pieces.append(("", _IDLE, chain.after))
    for agent, group in groupby(pieces, key=lambda piece: piece[0]):
        took: dict[str, float] = {}
        for _, what, seconds in group:
            took[what] = took.get(what, 0.0) + seconds
        longest = max(took, key=took.__getitem__)
        if not agent:
            yield _Stretch("", longest, longest, sum(took.values()), "")
            continue
        mostly = f" (mostly {longest})" if longest and len(took) > 1 else f" ({longest})" if longest else ""
        yield _Stretch(agent, words.name(agent), words.role(agent), sum(took.values()), mostly)


def unseen(times: Timing) -> frozenset[int]:
    """The numbers of events that only stand for the life of an agent of which no record is: its time is assumed."""
    of = times.of
    found = {
        number
        for number in of.of_type.get(EventType.INFERENCE, ())
        if of.events[number].inferred and not _says_more(of.events[number])
    }
    seen = {event.agent for number, event in enumerate(of.events) if times.works[number] > 0 and number not in found}
    return frozenset(number for number in found if of.events[number].agent not in seen)


def _says_more(event: Event) -> bool:
    return bool(event.model or event.tokens or event.content_ref)


def doing(event: Event) -> str:
    """The tool that an event runs; empty for a model."""
    if event.type not in (EventType.TOOL_CALL, EventType.TOOL_RESULT):
        return ""
    return printable(event.tool, limit=30) or "tools"
