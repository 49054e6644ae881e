"""Compares the largest prompt of each agent with the context window of its model.

Some logs, such as those of Codex, state the window. If a log does not, the window is the default of the model in
`WINDOWS`, a table that was compared with genai-prices 0.2.3. The window is unknown if the table does not have the
model, or if a prompt is larger than the default: the model then ran with another window.
"""

import re
from collections.abc import Mapping
from enum import StrEnum

from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.measures.measure import ANSWER_TYPES
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

_SNAPSHOT_SUFFIX = r"(?:-latest|[-@]\d{8}|-\d{4}-\d{2}-\d{2})$"
_SUM_LINES = (LedgerLine.SPAN_TOTAL, LedgerLine.BLACK_BOX, LedgerLine.COUNTER)
"""Ledger lines that add up several answers, so that the size of a single prompt is unknown."""


class WindowSource(StrEnum):
    """The source of a window's size."""

    LOG = "log"
    TABLE = "table"
    UNKNOWN = "unknown"


class Context(NamedTuple):
    """The largest context of an agent: the input tokens of one answer, cached ones included.

    Attributes:
        agent: The agent.
        model: The model of that answer; empty if it is not named.
        tokens: The size of the context in tokens.
        window: The window of the model in tokens; None if it is unknown.
        source: The source of the window.
        past_half: The indices of the agent's answers whose context filled more than half of the window of their model.
    """

    agent: str
    model: str
    tokens: float
    window: int | None
    source: WindowSource
    past_half: tuple[int, ...]


def contexts(view: TraceView) -> tuple[Context, ...]:
    """Return the largest context of each agent whose answers state tokens, in tree order.

    It is empty if the log has sums over several answers.
    """
    report = report_of(view.trace) or ImportReport()
    if any(line in report.token_ledger for line in _SUM_LINES):
        return ()
    events = view.trace.events
    largest_contexts = []
    for agent in view.agents:
        sizes: dict[int, float] = {}  # the size of the context of each answer
        for index in agent.events:
            event = events[index]
            if event.type in ANSWER_TYPES and not event.copied_context and isinstance(event.tokens, Tokens):
                tokens = event.tokens
                size = (tokens.input or 0) + (tokens.cache_read or 0) + (tokens.cache_write or 0)
                if size:
                    sizes[index] = size
        if not sizes:
            continue
        largest_by_model: dict[str, float] = {}
        for index, size in sizes.items():
            model = events[index].model
            largest_by_model[model] = max(size, largest_by_model.get(model, 0))
        windows = {}
        for model, size in largest_by_model.items():
            windows[model] = find_window(model, largest=size, stated=report.context_windows)
        past_half = []
        for index, size in sizes.items():
            window, _ = windows[events[index].model]
            if window and size > window / 2:
                past_half.append(index)
        largest_answer = max(sizes, key=sizes.__getitem__)
        model = events[largest_answer].model
        window, source = windows[model]
        largest_contexts.append(Context(agent.agent, model, sizes[largest_answer], window, source, tuple(past_half)))
    return tuple(largest_contexts)


def find_window(model: str, largest: float, stated: Mapping[str, int]) -> tuple[int | None, WindowSource]:
    """Return the context window of a model in tokens, None if it is unknown, and its source.

    Args:
        model: The model, as the log names it.
        largest: The largest context of the model in this run, in tokens.
        stated: The windows that the log states, by model.
    """
    if model in stated:
        return stated[model], WindowSource.LOG
    _, _, name = model.rpartition("/")  # without a provider
    default = WINDOWS.get(re.sub(_SNAPSHOT_SUFFIX, "", name.lower()))
    if default is None or largest > default:
        return None, WindowSource.UNKNOWN
    return default, WindowSource.TABLE
