"""A tree of whatever spans a log holds, and what each span stands for once its relatives are known.

Copies, cycles, lost parents and strange clocks are taken care of. Everything is linear in the number of spans
but for sorts by time, and nothing is recursive: trees may be as deep as they are large. Formats name spans for
what the program was doing; some of these are wrappers: a trace that calls itself an agent, a model call of a
framework around the same call of a client, the nodes of a graph that is one agent's loop.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from orchtrace_corpus.base.cycles import closing_links
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.core.run import Run
from orchtrace_corpus.trace.importers.core.usage import Usage
from orchtrace_corpus.trace.importers.spans.span import AGENT, CHAIN, GUARDRAIL, HANDOFF, INFERENCE, PERSON, TOOL, Span
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, LedgerLine, Problem
from orchtrace_corpus.trace.model.terms import TokenBasis
from orchtrace_corpus.trace.model.trace import Tokens

NOBODY = -1
"""Stands for the index of a span or agent that there is not."""


class Tree(NamedTuple):
    """Spans by index."""

    spans: Sequence[Span]
    parents: list[int]  # the index of each one's parent, or `NOBODY`
    children: list[list[int]]  # the indexes of each one's children, by time
    order: list[int]  # all indexes, parents before their children, children by time
    starts: list[float]  # when each began, in seconds; where the log does not say, a time that fits
    ends: list[float | None]  # when each ended; None where the log does not say
    earliest: list[float]  # when each one's first descendant began, or itself
    latest: list[float]  # when each one's last descendant began or ended, or itself


def tree(logged: Sequence[Span], report: ImportReport) -> Tree:
    """Return the tree of the spans of one trace."""
    spans, indexes = _distinct(logged, report)
    parents = []
    for span in spans:
        parent = indexes.get(span.parent, indexes.get(span.other_parent, NOBODY)) if span.parent else NOBODY
        if span.parent and parent == NOBODY:
            report.note(Problem.NO_PARENT_SPAN, span.where)
        parents.append(parent)
    children = _children(parents)
    order = _from_roots(parents, children)
    if len(order) < len(spans):
        _cut_cycles(spans, parents, order, report)
        children = _children(parents)
        order = _from_roots(parents, children)
    starts, ends = _times(spans, parents, order, report)

    def by_time(index: int) -> tuple[float, float, int]:
        end = ends[index]
        return starts[index], starts[index] if end is None else end, index

    for siblings in children:
        siblings.sort(key=by_time)
    order = _from_roots(parents, children, sorted((n for n in order if parents[n] == NOBODY), key=by_time))
    earliest = list(starts)
    latest = [start if end is None else end for start, end in zip(starts, ends, strict=True)]
    for index in reversed(order):
        parent = parents[index]
        if parent != NOBODY:
            earliest[parent] = min(earliest[parent], earliest[index])
            latest[parent] = max(latest[parent], latest[index])
    return Tree(spans, parents, children, order, starts, ends, earliest, latest)


def _distinct(logged: Sequence[Span], report: ImportReport) -> tuple[list[Span], dict[str, int]]:
    """Each span once: of two copies the later one, unless only the earlier is finished."""
    spans: list[Span] = []
    indexes: dict[str, int] = {}
    last = 0.0
    report.records_read = len(logged)
    for span in logged:
        if span.end is not None:
            report.out_of_order += span.end < last
            last = span.end
        if span.unknown:
            report.note_unknown(masked(span.unknown))
        index = indexes.setdefault(span.id, len(spans))
        if index == len(spans):
            spans.append(span)
            continue
        earlier = spans[index]
        if (earlier.name, earlier.start) != (span.name, span.start):
            report.note(Problem.SPAN_ID_USED_TWICE, span.where)
            spans.append(span)
            continue
        newest, copy = (earlier, span) if span.end is None and earlier.end is not None else (span, earlier)
        spans[index] = newest
        report.drop(Drop.COPY, copy.file, copy.line)
        if copy.usage is not None:
            tokens = {"input": copy.usage.input or 0, "output": copy.usage.output or 0}
            report.enter(LedgerLine.COPY, **tokens)
    return spans, indexes


def _children(parents: Sequence[int]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in parents]
    for index, parent in enumerate(parents):
        if parent != NOBODY:
            children[parent].append(index)
    return children


def _from_roots(parents: Sequence[int], children: list[list[int]], roots: Sequence[int] = ()) -> list[int]:
    """All spans that a root leads to, parents first."""
    waiting = list(reversed(roots or [index for index, parent in enumerate(parents) if parent == NOBODY]))
    order = []
    while waiting:
        index = waiting.pop()
        order.append(index)
        waiting.extend(reversed(children[index]))
    return order


def _cut_cycles(spans: Sequence[Span], parents: list[int], reached: Sequence[int], report: ImportReport) -> None:
    """Cut each cycle of parents at its earliest span."""
    others = set(range(len(spans))).difference(reached)
    for last, begin in closing_links({index: (parents[index],) for index in sorted(others)}):
        cycle = [begin]
        while cycle[-1] != last:
            cycle.append(parents[cycle[-1]])
        first = min(cycle, key=lambda each: (spans[each].start or 0.0, each))
        parents[first] = NOBODY
        report.note(Problem.SPAN_CYCLE, spans[first].where)


def _times(
    spans: Sequence[Span], parents: Sequence[int], order: Sequence[int], report: ImportReport
) -> tuple[list[float], list[float | None]]:
    """Return when each span began and ended: a missing beginning is taken from its children, else from its parent."""
    starts, ends = [span.start for span in spans], [span.end for span in spans]
    missing = [start is None for start in starts]
    for index in reversed(order):  # children first
        start, end, parent = starts[index], ends[index], parents[index]
        if missing[index]:
            report.note(Problem.NO_BEGINNING, spans[index].where)
        if start is None:
            continue
        if end is not None and end < start and not missing[index]:
            report.note(Problem.ENDS_BEFORE_BEGINNING, spans[index].where)
        if parent != NOBODY and missing[parent]:
            earliest = starts[parent]
            starts[parent] = start if earliest is None else min(earliest, start)
    first = min((start for start in starts if start is not None), default=0.0)
    settled: list[float] = [first] * len(spans)
    for index in order:
        start, end, parent = starts[index], ends[index], parents[index]
        if start is None:
            start = first if parent == NOBODY else settled[parent]
        if end is not None and end < start:
            start = end if missing[index] else start
            ends[index] = start
        settled[index] = start
    return settled, ends


_LOOP_MODELS = frozenset({"agent", "model", "model_request", "call_model"})
_LOOP_NODES = _LOOP_MODELS | {"tools", "pre_model_hook", "post_model_hook", "generate_structured_response"}
"""The nodes of LangGraph's and LangChain's own agent; those of middleware have a dot in their names."""

_NO_NAME = frozenset({"", "LangGraph"})

_ACTS = frozenset({INFERENCE, TOOL, HANDOFF, GUARDRAIL, PERSON})


class Meanings:
    """The meanings of spans, by their index.

    Args:
        of: The tree.
        spent: The spans whose events are to have tokens, by index.
    """

    def __init__(self, of: Tree, spent: Collection[int] = ()) -> None:
        self.kinds = [span.kind for span in of.spans]  # what each stands for
        self.names = [span.name for span in of.spans]  # what each agent or tool is called
        self.has_agents = [False] * len(of.spans)  # whether an agent's span lies below
        self.has_acts = [False] * len(of.spans)  # whether anything that an agent does lies below
        self.silent: set[int] = set()  # the LangGraph tasks that only compute, without a model or a tool
        tasks = _tasks(of)
        self._cast_nodes(of, tasks)
        self._look_below(of, tasks, spent)
        self._join_namesakes(of)

    def first_act_in(self, index: int, of: Tree) -> float:
        """Return when a tool's span ceases to work by itself: from its first act on, its time is that of its acts."""
        waiting, first = list(of.children[index]), of.latest[index]
        while waiting:
            child = waiting.pop()
            if self.kinds[child] is CHAIN:
                waiting += of.children[child]
            else:
                first = min(first, of.starts[child])
        return first

    def _cast_nodes(self, of: Tree, tasks: Sequence[int]) -> None:
        """Make agents of the nodes of graphs; of a graph that is one agent's loop, make one."""
        nodes_of: dict[int, list[int]] = {}
        for index in tasks:
            nodes_of.setdefault(of.parents[index], []).append(index)
        for graph, nodes in nodes_of.items():
            names = {task.node for index in nodes if (task := of.spans[index].task)}
            if names & _LOOP_MODELS and all(name in _LOOP_NODES or "." in name for name in names):
                around = of.spans[graph]
                name = around.agent or around.name
                # Where it has no name of its own, the node around it is the agent.
                if graph != NOBODY and self.kinds[graph] is CHAIN and not (name in _NO_NAME and around.task):
                    self.kinds[graph], self.names[graph] = AGENT, name
                continue
            for index in nodes:
                task = of.spans[index].task
                if task and self.kinds[index] is CHAIN:
                    self.kinds[index], self.names[index] = AGENT, task.node

    def _look_below(self, of: Tree, tasks: Sequence[int], spent: Collection[int]) -> None:
        """Unmask what only wraps something else, children first."""
        count = len(of.spans)
        has_calls, has_named, is_task = [False] * count, [False] * count, set(tasks).__contains__
        for index in reversed(of.order):
            span, kind, acts = of.spans[index], self.kinds[index], self.has_acts[index]
            if kind is INFERENCE and has_calls[index]:
                kind = CHAIN
            elif kind is HANDOFF and self.has_agents[index]:
                kind = TOOL
            elif kind is AGENT and not acts and not self.has_agents[index]:
                if is_task(index):
                    self.silent.add(index)
                if index not in spent:  # else its model calls are only not in the log
                    kind = CHAIN
            elif kind is AGENT and has_named[index] and not span.is_named and not is_task(index):
                kind = CHAIN
            self.kinds[index] = kind
            parent = of.parents[index]
            if parent != NOBODY:
                self.has_agents[parent] |= self.has_agents[index] or kind is AGENT
                self.has_acts[parent] |= acts or kind in _ACTS
                has_calls[parent] |= has_calls[index] or kind is INFERENCE
                has_named[parent] |= has_named[index] or (kind is AGENT and span.is_named)

    def _join_namesakes(self, of: Tree) -> None:
        """Two instrumentations see one agent: a span of the same name inside is the same agent at work."""
        agent_of = [""] * len(of.spans)
        for index in of.order:
            parent = of.parents[index]
            around = agent_of[parent] if parent != NOBODY else ""
            kind = self.kinds[index]
            if kind is AGENT:
                if around == self.names[index] and around:
                    self.kinds[index] = CHAIN
                around = self.names[index]
            elif kind is TOOL:
                around = ""
            agent_of[index] = around


def _tasks(of: Tree) -> list[int]:
    """Return the spans with which LangGraph tasks begin: those of another namespace than the span around them."""
    tasks = []
    around = [""] * len(of.spans)
    for index in of.order:
        parent, task = of.parents[index], of.spans[index].task
        outer = around[parent] if parent != NOBODY else ""
        if task is not None and task.namespace != outer:
            tasks.append(index)
        around[index] = task.namespace if task is not None else outer
    return tasks


_MOST_SECONDS = 0.1  # by so much the two may begin and end apart
_MOST_COMPARED = 10


def merge_twins(of: Tree, run: Run) -> None:
    """Leave one of each two spans of one model call, with what only the other says of it.

    The one that lies deeper is kept: it is in the agent that asked. Of one inside the other the inner is kept.
    """
    calls = [index for index in of.order if of.spans[index].kind is INFERENCE and of.spans[index].library]
    if len({of.spans[index].library for index in calls}) < 2:
        return
    depths = [0] * len(of.spans)
    for index in of.order:
        if of.parents[index] != NOBODY:
            depths[index] = depths[of.parents[index]] + 1
    for first, second in _pairs(of, calls):
        inner, outer = (of.spans[n] for n in sorted((first, second), key=lambda n: (-depths[n], of.starts[n], n)))
        run.report.note(Problem.TWIN_CALL, outer.where)
        outer.kind = CHAIN
        if outer.usage is not None and inner.usage is not None:
            run.leave_out(LedgerLine.TWIN, outer.usage)
        usages = filter(None, (inner.usage, outer.usage))  # the one of which more is known
        inner.usage, outer.usage = min(usages, key=lambda usage: usage.count(None), default=None), None
        inner.calls, outer.calls = inner.calls or outer.calls, ()
        inner.model, inner.output = inner.model or outer.model, inner.output or outer.output
        inner.agent = inner.agent or outer.agent


def _pairs(of: Tree, calls: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the twins: first those of one usage, then those of one answer."""
    paired: set[int] = set()
    for key in (_usage_key, lambda span: (span.output,) if span.output else ()):
        groups: dict[tuple[object, ...], list[int]] = {}
        for index in calls:
            if index not in paired and (sign := key(of.spans[index])):
                groups.setdefault(sign, []).append(index)
        for group in groups.values():
            for pair in _pairs_of_group(of, group):
                paired.update(pair)
                yield pair


def _usage_key(span: Span) -> tuple[object, ...]:
    usage = span.usage
    return (usage.input, usage.output) if usage is not None and (usage.input or usage.output) else ()


def _pairs_of_group(of: Tree, group: list[int]) -> Iterator[tuple[int, int]]:
    waiting: dict[str, deque[int]] = {}
    for index in sorted(group, key=lambda n: (of.starts[n], n)):
        library = of.spans[index].library
        for other, earlier in waiting.items():
            while earlier and of.starts[earlier[0]] < of.starts[index] - _MOST_SECONDS:
                earlier.popleft()
            if other == library:
                continue
            twin = next((n for n in islice(earlier, _MOST_COMPARED) if _is_one_call(of, n, index)), NOBODY)
            if twin != NOBODY:
                earlier.remove(twin)
                yield twin, index
                break
        else:
            waiting.setdefault(library, deque()).append(index)


def _is_one_call(of: Tree, first: int, second: int) -> bool:
    ends, models = (of.ends[first], of.ends[second]), (of.spans[first].model, of.spans[second].model)
    short, long = sorted(models, key=len)
    is_together = None not in ends and abs((ends[0] or 0.0) - (ends[1] or 0.0)) <= _MOST_SECONDS
    return is_together and (long.startswith(short) or long.endswith(short))  # `openai/m` is m, and so is `m-2026-01-15`


class Spending:
    """The tokens of the spans of a tree; the report's ledger says why."""

    def __init__(self, of: Tree, run: Run) -> None:
        self._of = of
        self._run, self._report = run, run.report
        count = len(of.spans)
        self._usages = [span.usage and self._usable(span.usage) for span in of.spans]
        self._calls = [0] * count  # model calls in the span, itself included
        self._last_call = [NOBODY] * count
        self._is_counted_below = [False] * count
        self._is_counted = [False] * count  # by itself, or by a span around it
        self._sums = [(0, 0)] * count  # counted input and output in the span
        # what each span's event spent, by the index of the span, and how that is known
        self.by_span: dict[int, tuple[Tokens, TokenBasis]] = {}
        for index in reversed(of.order):  # children first
            self._account(index)
        self._account_counters()
        calls = [index for index, last in enumerate(self._last_call) if last == index]
        asked = [n for n in calls if of.spans[n].kind is INFERENCE and n not in self.by_span]
        unknown = [n for n in asked if not of.spans[n].is_free]
        if len(asked) > len(unknown):
            run.report.enter(LedgerLine.KEPT_ANSWER, len(asked) - len(unknown))
        if unknown:
            run.report.enter(LedgerLine.SILENT_CALL, len(unknown))
        # how many model calls have answered without saying what they spent, nor does a span around them
        self.uncounted = sum(not self._is_counted[n] and not of.spans[n].is_error for n in unknown)

    def _usable(self, usage: Usage) -> Usage | None:
        """Return a span's usage, if it tells what went in or out."""
        if usage.is_known and any(usage):
            return usage
        if usage.is_known:
            self._report.enter(LedgerLine.ZERO)
        elif usage.total:
            self._report.enter(LedgerLine.UNDIVIDED, total=usage.total)
        return None

    def _account(self, index: int) -> None:
        span, usage = self._of.spans[index], self._usages[index]
        if span.kind is INFERENCE and not self._calls[index]:
            self._calls[index], self._last_call[index] = 1, index
        if usage is not None:
            if span.is_cumulative:
                if self._is_counted_below[index]:
                    self._run.leave_out(LedgerLine.SHARED_COUNTER, usage)
            elif self._is_counted_below[index]:
                is_equal = self._sums[index] == (usage.input or 0, usage.output or 0)
                self._run.leave_out(LedgerLine.EQUAL_TOTAL if is_equal else LedgerLine.OTHER_TOTAL, usage)
                if not is_equal:
                    self._report.note(Problem.SPAN_TOTAL_DIFFERS, span.where)
            else:
                self._count(index, usage)
        parent = self._of.parents[index]
        if parent != NOBODY and (self._calls[index] or self._is_counted_below[index]):
            self._calls[parent] += self._calls[index]
            self._last_call[parent] = self._later(self._last_call[parent], self._last_call[index])
            self._is_counted_below[parent] |= self._is_counted_below[index]
            (more_input, more_output), (known_input, known_output) = self._sums[index], self._sums[parent]
            self._sums[parent] = (known_input + more_input, known_output + more_output)

    def _later(self, first: int, second: int) -> int:
        """Return the model call that ends later."""
        if NOBODY in (first, second):
            return max(first, second)
        latest = self._of.latest
        return second if (latest[second], second) > (latest[first], first) else first

    def _account_counters(self) -> None:
        """Counters of which nothing below or around is counted: the outermost holds what all within have added."""
        for index in self._of.order:
            parent = self._of.parents[index]
            self._is_counted[index] |= parent != NOBODY and self._is_counted[parent]
            usage = self._usages[index]
            if usage is None or not self._of.spans[index].is_cumulative or self._is_counted_below[index]:
                continue
            if self._is_counted[index]:
                self._run.leave_out(LedgerLine.SHARED_COUNTER, usage)
            else:
                self._is_counted[index] = True
                bearer = index if self._last_call[index] == NOBODY else self._last_call[index]
                self._bear(bearer, usage, LedgerLine.COUNTER, TokenBasis.PLACEHOLDER)

    def _count(self, index: int, usage: Usage) -> None:
        """Count the usage of a span, of which nothing below is counted: for its only call, its last one, or itself."""
        call = self._last_call[index]
        if call == index or (call == NOBODY and self._of.spans[index].kind is TOOL):
            self._bear(index, usage, LedgerLine.OWN)
        elif call == NOBODY:
            self._bear(index, usage, LedgerLine.BLACK_BOX)
        elif self._calls[index] == 1:
            self._bear(call, usage, LedgerLine.AROUND)
        else:
            self._bear(call, usage, LedgerLine.SPAN_TOTAL, TokenBasis.PLACEHOLDER)
        self._is_counted[index] = self._is_counted_below[index] = True
        self._sums[index] = (usage.input or 0, usage.output or 0)

    def _bear(self, bearer: int, usage: Usage, line: LedgerLine, basis: TokenBasis = TokenBasis.REPORTED) -> None:
        self.by_span[bearer] = self._run.spend_counts(usage, line), basis
