"""The fill of agents' contexts: the largest prompt of each against the window of its model.

The window is what the log states, as Codex does; else that of the table below, which holds the default windows of
models, compared with those of genai-prices 0.2.3 where that has them. A model that is in neither has an unknown window.
So has one whose context is larger than the table allows: it ran with another window than the default.
"""

import re
from collections.abc import Mapping
from enum import StrEnum

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.measures.measure import ASKED
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, report_of
from orchtrace_corpus.trace.model.trace import Tokens
from orchtrace_corpus.trace.view import TraceView

WINDOWS: Mapping[str, int] = {
    **dict.fromkeys(("claude-3-haiku", "claude-3-sonnet", "claude-3-opus"), 200_000),
    **dict.fromkeys(("claude-3-5-haiku", "claude-3-5-sonnet", "claude-3-7-sonnet"), 200_000),
    **dict.fromkeys(("claude-opus-4", "claude-opus-4-1", "claude-opus-4-5"), 200_000),
    **dict.fromkeys(("claude-sonnet-4", "claude-sonnet-4-5", "claude-haiku-4-5"), 200_000),
    **dict.fromkeys(("gpt-4-turbo", "gpt-4o", "gpt-4o-mini"), 128_000),
    **dict.fromkeys(("gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano"), 1_047_576),
    **dict.fromkeys(("o1", "o3", "o3-mini", "o4-mini"), 200_000),
    **dict.fromkeys(("gpt-5", "gpt-5-mini", "gpt-5-nano"), 400_000),
    **dict.fromkeys(("gemini-2.0-flash", "gemini-2.5-flash", "gemini-2.5-pro"), 1_048_576),
}
"""Context windows in tokens, by the model's name without its date."""

_DATED = r"(?:-latest|[-@]\d{8}|-\d{4}-\d{2}-\d{2})$"
_SUMS = (LedgerLine.SPAN_TOTAL, LedgerLine.BLACK_BOX, LedgerLine.COUNTER)
"""Counts of several answers together, which say nothing of any one context."""


class WindowSource(StrEnum):
    """The source of a window's size."""

    LOG = "log"
    TABLE = "table"
    UNKNOWN = "unknown"


class Context(NamedTuple):
    """The largest context of an agent: what the model was given to read, from caches and not.

    Attributes:
        agent: The agent.
        model: The model of that answer; empty where it is not named.
        tokens: The tokens of the context.
        window: The window of the model; None where it is unknown.
        source: Where the window is known from.
        past_half: The numbers of the agent's answers whose context was past half their window.
    """

    agent: str
    model: str
    tokens: float
    window: int | None
    source: WindowSource
    past_half: tuple[int, ...]


def contexts(view: TraceView) -> tuple[Context, ...]:
    """The largest context of each agent, in the order of the agent tree; none where counts are sums of answers."""
    report = report_of(view.trace) or ImportReport()
    if any(line in report.token_ledger for line in _SUMS):
        return ()
    events, found = view.trace.events, []
    for agent in view.agents:
        sizes = {
            event: size
            for event in agent.events
            if events[event].type in ASKED
            and not events[event].copied_context
            and isinstance(tokens := events[event].tokens, Tokens)
            and (size := (tokens.input or 0) + (tokens.cache_read or 0) + (tokens.cache_write or 0))
        }
        if not sizes:
            continue
        largest: dict[str, float] = {}
        for index, size in sizes.items():
            largest[events[index].model] = max(size, largest.get(events[index].model, 0))
        windows = {model: window(model, size, report.context_windows) for model, size in largest.items()}
        past = tuple(n for n, size in sizes.items() if size > (windows[events[n].model][0] or 2 * size) / 2)
        top = max(sizes, key=sizes.__getitem__)
        model = events[top].model
        found.append(Context(agent.agent, model, sizes[top], *windows[model], past))
    return tuple(found)


def window(model: str, largest: float, stated: Mapping[str, int]) -> tuple[int | None, WindowSource]:
    """The context window of a model, and where it is known from.

    Args:
        model: The model, as the log names it.
        largest: The largest context that it had.
        stated: Windows by model, as the log states them.
    """
    if model in stated:
        return stated[model], WindowSource.LOG
    name = re.sub(_DATED, "", model.rpartition("/")[2].lower())
    known = WINDOWS.get(name, 0)
    return (known, WindowSource.TABLE) if known >= largest and known else (None, WindowSource.UNKNOWN)
