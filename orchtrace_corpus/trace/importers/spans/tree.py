"""A tree of whatever spans a log holds, and what each span stands for once its relatives are known.

Copies, cycles, lost parents and strange clocks are taken care of. Everything is linear in the number of spans
but for sorts by time, and nothing is recursive: trees may be as deep as they are large. Formats name spans for
what the program was doing; some of these are wrappers: a trace that calls itself an agent, a model call of a
framework around the same call of a client, the nodes of a graph that is one agent's loop.
"""

from collections.abc import Collection, Sequence

from orchtrace_corpus.base.cycles import closing_links
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.spans.span import AGENT, CHAIN, GUARDRAIL, HANDOFF, INFERENCE, PERSON, TOOL, Span
from orchtrace_corpus.trace.model.import_report import Drop, ImportReport, LedgerLine, Problem

NOBODY = -1
"""Stands for the number of a span or agent that there is not."""


class Tree(NamedTuple):
    """Spans by number.

    Attributes:
        spans: The spans.
        parents: The number of each one's parent, or `NOBODY`.
        children: The numbers of each one's children, by time.
        order: All numbers, parents before their children, children by time.
        starts: When each began, in seconds; where the log does not say, a time that fits.
        ends: When each ended; None where the log does not say.
        earliest: When each one's first descendant began, or itself.
        latest: When each one's last descendant began or ended, or itself.
    """

    spans: Sequence[Span]
    parents: list[int]
    children: list[list[int]]
    order: list[int]
    starts: list[float]
    ends: list[float | None]
    earliest: list[float]
    latest: list[float]


def tree(found: Sequence[Span], report: ImportReport) -> Tree:
    """Return the tree of the spans of one trace."""
    spans, numbers = _distinct(found, report)
    parents = _parents(spans, numbers, report)
    children = _children(parents)
    order = _from_roots(parents, children)
    if len(order) < len(spans):
        _cut_cycles(spans, parents, order, report)
        children = _children(parents)
        order = _from_roots(parents, children)
    starts, ends = _times(spans, parents, order, report)

    def by_time(number: int) -> tuple[float, float, int]:
        end = ends[number]
        return starts[number], starts[number] if end is None else end, number

    for siblings in children:
        siblings.sort(key=by_time)
    order = _from_roots(parents, children, sorted((n for n in order if parents[n] == NOBODY), key=by_time))
    earliest = list(starts)
    latest = [start if end is None else end for start, end in zip(starts, ends, strict=True)]
    for number in reversed(order):
        parent = parents[number]
        if parent != NOBODY:
            earliest[parent] = min(earliest[parent], earliest[number])
            latest[parent] = max(latest[parent], latest[number])
    return Tree(spans, parents, children, order, starts, ends, earliest, latest)


def _distinct(found: Sequence[Span], report: ImportReport) -> tuple[list[Span], dict[str, int]]:
    """Each span once: of two copies the later one, unless only the earlier is finished."""
    spans: list[Span] = []
    numbers: dict[str, int] = {}
    last = 0.0
    report.records_read = len(found)
    for span in found:
        if span.end is not None:
            report.out_of_order += span.end < last
            last = span.end
        if span.unknown:
            report.note_unknown(masked(span.unknown))
        number = numbers.setdefault(span.id, len(spans))
        if number == len(spans):
            spans.append(span)
            continue
        known = spans[number]
        if (known.name, known.start) != (span.name, span.start):
            report.note(Problem.SPAN_ID_USED_TWICE, span.where)
            spans.append(span)
            continue
        kept, left = (known, span) if span.end is None and known.end is not None else (span, known)
        spans[number] = kept
        report.drop(Drop.COPY, left.file, left.line)
        if left.usage is not None:
            tokens = {"input": left.usage.input or 0, "output": left.usage.output or 0}
            report.enter(LedgerLine.COPY, **tokens)
    return spans, numbers


def _parents(spans: Sequence[Span], numbers: dict[str, int], report: ImportReport) -> list[int]:
    parents = []
    for span in spans:
        parent = numbers.get(span.parent, numbers.get(span.other_parent, NOBODY)) if span.parent else NOBODY
        if span.parent and parent == NOBODY:
            report.note(Problem.NO_PARENT_SPAN, span.where)
        parents.append(parent)
    return parents


def _children(parents: Sequence[int]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in parents]
    for number, parent in enumerate(parents):
        if parent != NOBODY:
            children[parent].append(number)
    return children


def _from_roots(parents: Sequence[int], children: list[list[int]], roots: Sequence[int] = ()) -> list[int]:
    """All spans that a root leads to, parents first."""
    waiting = list(reversed(roots or [number for number, parent in enumerate(parents) if parent == NOBODY]))
    order = []
    while waiting:
        number = waiting.pop()
        order.append(number)
        waiting.extend(reversed(children[number]))
    return order


def _cut_cycles(spans: Sequence[Span], parents: list[int], reached: Sequence[int], report: ImportReport) -> None:
    """Cut each cycle of parents at its earliest span."""
    others = set(range(len(spans))).difference(reached)
    for last, begin in closing_links({number: (parents[number],) for number in sorted(others)}):
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
    for number in reversed(order):  # children first
        start, end, parent = starts[number], ends[number], parents[number]
        if missing[number]:
            report.note(Problem.NO_BEGINNING, spans[number].where)
        if start is None:
            continue
        if end is not None and end < start and not missing[number]:
            report.note(Problem.ENDS_BEFORE_BEGINNING, spans[number].where)
        if parent != NOBODY and missing[parent]:
            known = starts[parent]
            starts[parent] = start if known is None else min(known, start)
    first = min((start for start in starts if start is not None), default=0.0)
    settled: list[float] = [first] * len(spans)
    for number in order:
        start, end, parent = starts[number], ends[number], parents[number]
        if start is None:
            start = first if parent == NOBODY else settled[parent]
        if end is not None and end < start:
            start = end if missing[number] else start
            ends[number] = start
        settled[number] = start
    return settled, ends


_LOOP_MODELS = frozenset({"agent", "model", "model_request", "call_model"})
_LOOP_NODES = _LOOP_MODELS | {"tools", "pre_model_hook", "post_model_hook", "generate_structured_response"}
"""The nodes of LangGraph's and LangChain's own agent; those of middleware have a dot in their names."""

_NO_NAME = frozenset({"", "LangGraph"})

_ACTS = frozenset({INFERENCE, TOOL, HANDOFF, GUARDRAIL, PERSON})


class Meanings:
    """What spans stand for, by their number.

    Attributes:
        kinds: What each stands for.
        names: What each agent or tool is called.
        has_agents: Whether an agent's span lies below.
        has_acts: Whether anything that an agent does lies below.
        silent: The LangGraph tasks that only compute, without a model or a tool.

    Args:
        of: The tree.
        spent: The spans whose events are to have tokens, by number.
    """

    def __init__(self, of: Tree, spent: Collection[int] = ()) -> None:
        self.kinds = [span.kind for span in of.spans]
        self.names = [span.name for span in of.spans]
        self.has_agents = [False] * len(of.spans)
        self.has_acts = [False] * len(of.spans)
        self.silent: set[int] = set()
        tasks = _tasks(of)
        self._cast_nodes(of, tasks)
        self._look_below(of, tasks, spent)
        self._join_namesakes(of)

    def first_act_in(self, number: int, of: Tree) -> float:
        """Return when a tool's span ceases to work by itself: from its first act on, its time is that of its acts."""
        waiting, first = list(of.children[number]), of.latest[number]
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
        for number in tasks:
            nodes_of.setdefault(of.parents[number], []).append(number)
        for graph, nodes in nodes_of.items():
            names = {task.node for number in nodes if (task := of.spans[number].task)}
            if names & _LOOP_MODELS and all(name in _LOOP_NODES or "." in name for name in names):
                around = of.spans[graph]
                name = around.agent or around.name
                # Where it has no name of its own, the node around it is the agent.
                if graph != NOBODY and self.kinds[graph] is CHAIN and not (name in _NO_NAME and around.task):
                    self.kinds[graph], self.names[graph] = AGENT, name
                continue
            for number in nodes:
                task = of.spans[number].task
                if task and self.kinds[number] is CHAIN:
                    self.kinds[number], self.names[number] = AGENT, task.node

    def _look_below(self, of: Tree, tasks: Sequence[int], spent: Collection[int]) -> None:
        """Unmask what only wraps something else, children first."""
        count = len(of.spans)
        has_calls, has_named, is_task = [False] * count, [False] * count, set(tasks).__contains__
        for number in reversed(of.order):
            span, kind, acts = of.spans[number], self.kinds[number], self.has_acts[number]
            if kind is INFERENCE and has_calls[number]:
                kind = CHAIN
            elif kind is HANDOFF and self.has_agents[number]:
                kind = TOOL
            elif kind is AGENT and not acts and not self.has_agents[number]:
                if is_task(number):
                    self.silent.add(number)
                if number not in spent:  # else its model calls are only not in the log
                    kind = CHAIN
            elif kind is AGENT and has_named[number] and not span.is_named and not is_task(number):
                kind = CHAIN
            self.kinds[number] = kind
            parent = of.parents[number]
            if parent != NOBODY:
                self.has_agents[parent] |= self.has_agents[number] or kind is AGENT
                self.has_acts[parent] |= acts or kind in _ACTS
                has_calls[parent] |= has_calls[number] or kind is INFERENCE
                has_named[parent] |= has_named[number] or (kind is AGENT and span.is_named)

    def _join_namesakes(self, of: Tree) -> None:
        """Two instrumentations see one agent: a span of the same name inside is the same agent at work."""
        agent_of = [""] * len(of.spans)
        for number in of.order:
            parent = of.parents[number]
            around = agent_of[parent] if parent != NOBODY else ""
            kind = self.kinds[number]
            if kind is AGENT:
                if around == self.names[number] and around:
                    self.kinds[number] = CHAIN
                around = self.names[number]
            elif kind is TOOL:
                around = ""
            agent_of[number] = around


def _tasks(of: Tree) -> list[int]:
    """Return the spans with which LangGraph tasks begin: those of another namespace than the span around them."""
    found = []
    around = [""] * len(of.spans)
    for number in of.order:
        parent, task = of.parents[number], of.spans[number].task
        outer = around[parent] if parent != NOBODY else ""
        if task is not None and task.namespace != outer:
            found.append(number)
        around[number] = task.namespace if task is not None else outer
    return found
