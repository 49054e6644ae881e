"""Model calls that two libraries have instrumented: a framework's and the client's beneath it, counted once.

Both saw the same call: they began and ended within some milliseconds of one another, name the same model, and give
the same usage, or the same answer. One library never reports a call twice, so those of one library are always two.
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice

from orchtrace_corpus.trace.importers.core.usage import Usage, leave_out
from orchtrace_corpus.trace.importers.spans.span import CHAIN, INFERENCE, Span
from orchtrace_corpus.trace.importers.spans.tree import NOBODY, Tree
from orchtrace_corpus.trace.model.import_report import ImportReport, LedgerLine, Problem

_MOST_SECONDS = 0.1
"""By so much the two may begin and end apart."""
_MOST_COMPARED = 10


def merge_twins(of: Tree, report: ImportReport) -> None:
    """Leave one of each two spans of one model call, with what only the other says of it.

    The one that lies deeper is kept: it is in the agent that asked. Of one inside the other the inner is kept.
    """
    calls = [number for number in of.order if of.spans[number].kind is INFERENCE and of.spans[number].library]
    if len({of.spans[number].library for number in calls}) < 2:
        return
    depths = _depths(of)
    for one, other in _pairs(of, calls):
        kept, left = (of.spans[n] for n in sorted((one, other), key=lambda n: (-depths[n], of.starts[n], n)))
        report.note(Problem.TWIN_CALL, left.where)
        left.kind = CHAIN
        if left.usage is not None and kept.usage is not None:
            leave_out(LedgerLine.TWIN, left.usage, report)
        kept.usage, left.usage = max(filter(None, (kept.usage, left.usage)), key=_known, default=None), None
        kept.calls, left.calls = kept.calls or left.calls, ()
        kept.model, kept.output = kept.model or left.model, kept.output or left.output
        kept.agent = kept.agent or left.agent


def _depths(of: Tree) -> list[int]:
    depths = [0] * len(of.spans)
    for number in of.order:
        if of.parents[number] != NOBODY:
            depths[number] = depths[of.parents[number]] + 1
    return depths


def _pairs(of: Tree, calls: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the twins: first those of one usage, then those of one answer."""
    paired: set[int] = set()
    for key in (_usage_key, lambda span: (span.output,) if span.output else ()):
        groups: dict[tuple[object, ...], list[int]] = {}
        for number in calls:
            if number not in paired and (found := key(of.spans[number])):
                groups.setdefault(found, []).append(number)
        for group in groups.values():
            for pair in _pairs_of_group(of, group):
                paired.update(pair)
                yield pair


def _known(usage: Usage) -> int:
    """Return how many counts are known."""
    return sum(count is not None for count in usage)


def _usage_key(span: Span) -> tuple[object, ...]:
    usage = span.usage
    return (usage.input, usage.output) if usage is not None and (usage.input or usage.output) else ()


def _pairs_of_group(of: Tree, group: list[int]) -> Iterator[tuple[int, int]]:
    waiting: dict[str, deque[int]] = {}
    for number in sorted(group, key=lambda n: (of.starts[n], n)):
        library = of.spans[number].library
        for other, earlier in waiting.items():
            while earlier and of.starts[earlier[0]] < of.starts[number] - _MOST_SECONDS:
                earlier.popleft()
            if other == library:
                continue
            found = next((n for n in islice(earlier, _MOST_COMPARED) if _is_one_call(of, n, number)), NOBODY)
            if found != NOBODY:
                earlier.remove(found)
                yield found, number
                break
        else:
            waiting.setdefault(library, deque()).append(number)


def _is_one_call(of: Tree, one: int, other: int) -> bool:
    ends, models = (of.ends[one], of.ends[other]), (of.spans[one].model, of.spans[other].model)
    short, long = sorted(models, key=len)
    is_together = None not in ends and abs((ends[0] or 0.0) - (ends[1] or 0.0)) <= _MOST_SECONDS
    return is_together and (long.startswith(short) or long.endswith(short))  # `openai/m` is m, and so is `m-2026-01-15`
