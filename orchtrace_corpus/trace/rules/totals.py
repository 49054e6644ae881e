"""Rules on figures: totals that agree with the events, reasons for unknown values, known reward channels."""

from collections.abc import Iterator, Mapping
from itertools import chain
from operator import attrgetter

from orchtrace_corpus.base.findings import quote, suggestion
from orchtrace_corpus.base.json_places import Path
from orchtrace_corpus.trace.model.decode import Problem
from orchtrace_corpus.trace.model.terms import BASELINE_FIGURES, CREDIT_UNITS, REWARD_FAMILIES, SECONDS, EventType, Unit
from orchtrace_corpus.trace.view import TraceView

_TOOL_CALL, _MESSAGE = EventType.TOOL_CALL, EventType.MESSAGE
_STEP = Unit.STEP

_TOLERANCE = 1e-9  # of rounding, relative
_MAX, _MIN = 1e100, 1e-100  # the range of figures other than 0
_TOKEN_PARTS = attrgetter("reasoning", "cache_write_1h")  # kinds of tokens that are parts of other kinds
_TOKEN_SUMMANDS = attrgetter("input", "output", "cache_read", "cache_write")
_IS_WARM_UP = attrgetter("warm_up")


def check_magnitudes(view: TraceView) -> Iterator[Problem]:
    """Check that times and figures are in a range in which their sums, squares and ratios are finite numbers."""
    trace = view.trace
    for name, values in (("t", view.graph.times), ("t_end", view.graph.ends), ("cost_usd", view.graph.costs)):
        stated = list(filter(None, values))  # neither unknown nor 0
        if stated and (max(stated) > _MAX or min(stated) < _MIN):
            for index, value in enumerate(values):
                if value and not _MIN <= value <= _MAX:
                    yield _out_of_range(value, ("events", index, name))
    parts: list[tuple[str, Mapping[str, float | None]]] = [  # the figures of each part of the trace, by field
        ("rewards", trace.rewards), ("costs", trace.costs), ("metrics", trace.metrics)
    ]  # fmt: skip
    if trace.baseline:
        parts.append(("baseline", {name: getattr(trace.baseline, name) for name in BASELINE_FIGURES}))
    if trace.clock.skew:
        parts.append(("clock", {"skew": trace.clock.skew}))
    for part, figures in parts:
        for field, figure in figures.items():
            if figure and not _MIN <= abs(figure) <= _MAX:
                yield _out_of_range(figure, (part, field))
    wait = trace.excluded_human_wait_s
    if wait and not _MIN <= abs(wait) <= _MAX:
        yield _out_of_range(wait, ("excluded_human_wait_s",))


def _out_of_range(value: float, path: Path) -> Problem:
    message = f"{value:g} cannot be computed with; a figure is 0, or from {_MIN:g} to {_MAX:g}, or null"
    return Problem("T222", message, path)


def check_tokens(view: TraceView) -> Iterator[Problem]:
    """Check that reasoning tokens are at most the output tokens, and one-hour cache writes at most the cache writes."""
    if not any(map(any, map(_TOKEN_PARTS, view.graph.tokens))):
        return  # no event has such tokens
    for index, event in enumerate(view.trace.events):
        tokens = event.tokens
        if not tokens:
            continue
        if tokens.reasoning and tokens.output is not None and tokens.reasoning > tokens.output:
            message = f"{tokens.reasoning:g} tokens of reasoning in {tokens.output:g} tokens of output"
            yield Problem("T220", message, ("events", index, "tokens", "reasoning"))
        one_hour, written = tokens.cache_write_1h, tokens.cache_write
        if one_hour and written is not None and one_hour > written:
            message = f"{one_hour:g} tokens kept for an hour in {written:g} tokens written to caches"
            yield Problem("T220", message, ("events", index, "tokens", "cache_write_1h"))


def check_costs(view: TraceView) -> Iterator[Problem]:
    """Check that each stated total is at least the sum over the events, without copied events."""
    trace, graph = view.trace, view.graph
    events = trace.events
    tokens = graph.tokens
    calls, messages = graph.indices_by_type.get(_TOOL_CALL, []), graph.indices_by_type.get(_MESSAGE, [])
    if graph.copied:
        tokens = [event.tokens for event in events if event.tokens and not event.copied_context]
        calls = [index for index in calls if index not in graph.copied]
        messages = [index for index in messages if index not in graph.copied]
    sums: dict[str, float] = {
        "tokens": sum(filter(None, chain.from_iterable(map(_TOKEN_SUMMANDS, tokens)))),
        "tool_calls": len(calls),
        "messages": len(messages),
    }
    if trace.clock.unit is not _STEP:
        begin = min(graph.times)
        end = max(max(graph.times), max(filter(None, graph.ends), default=0.0))
        if any(map(_IS_WARM_UP, events)):
            run_events = [event for event in events if not event.warm_up] or events  # all, if all are warm-ups
            begin = min(event.t for event in run_events)
            end = max(max(event.t, event.t_end or 0.0) for event in run_events)
        slack = trace.clock.skew * SECONDS[trace.clock.unit] + (trace.excluded_human_wait_s or 0)
        sums["wall_clock_s"] = max(0.0, (end - begin) * SECONDS[trace.clock.unit] - slack)
    for name, value in sums.items():
        stated = trace.costs.get(name)
        if stated is not None and stated < value * (1 - _TOLERANCE):
            yield Problem("T215", f"{stated:g} is less than the {value:g} of the events", ("costs", name))


def check_reasons(view: TraceView) -> Iterator[Problem]:
    """Check that each figure that is null, which means unknown, has a reason."""
    trace = view.trace
    for part, figures in (("costs", trace.costs), ("metrics", trace.metrics)):
        for name, value in figures.items():
            if value is None and not trace.reasons.get(f"{part}.{name}"):
                message = f"null without a reason; add {quote(f'{part}.{name}')} to $.reasons"
                yield Problem("T217", message, (part, name))


def check_rewards(view: TraceView) -> Iterator[Problem]:
    """Check that the name of each reward channel is a reward family or a credit unit."""
    for name in view.trace.rewards:
        if name not in REWARD_FAMILIES and name not in CREDIT_UNITS:
            known = list(dict.fromkeys((*REWARD_FAMILIES, *CREDIT_UNITS)))
            message = f"{quote(name)} is neither a reward family nor a credit unit{suggestion(name, known)}"
            yield Problem("T216", message, ("rewards", name))
