"""Figures: totals that hold what the events say, reasons for what is unknown, channels that exist."""

from collections.abc import Iterator

from orchtrace_corpus.findings import quote, suggestion
from orchtrace_corpus.trace.decode import schema
from orchtrace_corpus.trace.graph import Graph
from orchtrace_corpus.trace.model import EventType, Tokens, Trace, Unit
from orchtrace_corpus.trace.problem import Problem
from orchtrace_corpus.trace.timing import SECONDS

_TOLERANCE = 1e-9


def total(tokens: Tokens) -> float:
    """All tokens of an event: input, output, read from and written to caches; reasoning is part of the output."""
    return (tokens.input or 0) + (tokens.output or 0) + (tokens.cache_read or 0) + (tokens.cache_write or 0)


def check_tokens(trace: Trace, of: Graph) -> Iterator[Problem]:
    """Reasoning is a part of the output, so it cannot be more."""
    del of
    for number, event in enumerate(trace.events):
        tokens = event.tokens
        if not isinstance(tokens, Tokens) or tokens.output is None or not tokens.reasoning:
            continue
        if tokens.reasoning > tokens.output:
            message = f"{tokens.reasoning:g} tokens of reasoning in {tokens.output:g} tokens of output"
            yield Problem("T220", message, ("events", number, "tokens", "reasoning"))


def check_costs(trace: Trace, of: Graph) -> Iterator[Problem]:
    """A total is at least what the events sum up to; what was only copied does not count."""
    del of
    tokens, calls, messages, first, last = 0.0, 0, 0, float("inf"), 0.0
    for event in trace.events:
        end = event.t if event.t_end is None else event.t_end
        first, last = min(first, event.t), max(last, event.t, end)
        if event.copied_context:
            continue
        if isinstance(event.tokens, Tokens):
            tokens += total(event.tokens)
        calls += event.type is EventType.TOOL_CALL
        messages += event.type is EventType.MESSAGE
    sums: dict[str, float] = {"tokens": tokens, "tool_calls": calls, "messages": messages}
    if trace.clock.unit is not Unit.STEP:
        slack = trace.clock.skew * SECONDS[trace.clock.unit] + (trace.excluded_human_wait_s or 0)
        sums["wall_clock_s"] = max(0.0, (last - first) * SECONDS[trace.clock.unit] - slack)
    for name, value in sums.items():
        stated = trace.costs.get(name)
        if stated is not None and stated < value * (1 - _TOLERANCE):
            yield Problem("T215", f"{stated:g} is less than the {value:g} of the events", ("costs", name))


def check_reasons(trace: Trace, of: Graph) -> Iterator[Problem]:
    """Null means unknown, and says why."""
    del of
    for part, figures in (("costs", trace.costs), ("metrics", trace.metrics)):
        for name, value in figures.items():
            if value is None and not trace.reasons.get(f"{part}.{name}"):
                message = f"null without a reason; add {quote(f'{part}.{name}')} to $.reasons"
                yield Problem("T217", message, (part, name))


def check_rewards(trace: Trace, of: Graph) -> Iterator[Problem]:
    """A reward channel is named after a term of the reward families or after a credit unit."""
    del of
    if not trace.rewards:
        return
    known = [name for part in ("reward_family", "credit_unit") for name in schema()["$defs"][part]["enum"]]
    for name in trace.rewards:
        if name not in known:
            message = f"{quote(name)} is neither a reward family nor a credit unit"
            yield Problem("T216", f"{message}{suggestion(name, list(dict.fromkeys(known)))}", ("rewards", name))
