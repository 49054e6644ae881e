"""The spans of one trace as a tree, the kind of each span once its relatives are known, and the tokens that count.

Logs hold copies, cycles, lost parents and wrong clocks. All of this takes time linear in the number of spans, but for
sorting by time, and nothing is recursive: trees may be as deep as they are large.

`NOBODY` is the index -1, which is the last element of a list. So lists that are looked up by the index of a parent have
one element more than there are spans, for spans without a parent.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from math import inf

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
"""The index of a span or agent that does not exist."""


class Tree(NamedTuple):
    """Spans by index."""

    spans: Sequence[Span]
    parents: list[int]  # the index of each span's parent, or `NOBODY`; that of `NOBODY`, too
    children: list[list[int]]  # the indexes of each span's children, by time; last those of the roots
    order: list[int]  # all indexes, parents before their children, children by time
    starts: list[float]  # when each span began, in seconds; estimated from its relatives if the log does not say
    ends: list[float | None]  # when each span ended; None if the log does not say
    earliest: list[float]  # when each span or the first of its descendants began
    latest: list[float]  # when each span or the last of its descendants began or ended

    def end(self, index: int) -> float:
        """Return when a span ended, or if the log does not say when the last of its descendants did."""
        end = self.ends[index]
        return self.latest[index] if end is None else end


def build_tree(logged: Sequence[Span], report: ImportReport) -> Tree:
    """Return the tree of the spans of one trace."""
    spans, indexes = _distinct(logged, report)
    parents = []
    for span in spans:
        parent = NOBODY
        if span.parent:
            parent = indexes.get(span.parent, indexes.get(span.other_parent, NOBODY))
            if parent == NOBODY:
                report.note(Problem.NO_PARENT_SPAN, span.where)
        parents.append(parent)
    children = _children(parents)
    order = _parents_first(children)
    if len(order) < len(spans):
        _cut_cycles(spans, parents, order, report)
        children = _children(parents)
        order = _parents_first(children)
    starts, ends = _times(spans, parents, order, report)
    last_times = [start if end is None else end for start, end in zip(starts, ends, strict=True)]
    for siblings in children:
        if len(siblings) > 1:
            siblings.sort(key=lambda index: (starts[index], last_times[index], index))
    order = _parents_first(children)
    earliest, latest = [*starts, inf], [*last_times, -inf]
    for index in reversed(order):
        parent = parents[index]
        if earliest[index] < earliest[parent]:
            earliest[parent] = earliest[index]
        if latest[index] > latest[parent]:
            latest[parent] = latest[index]
    del earliest[NOBODY], latest[NOBODY]
    return Tree(spans, [*parents, NOBODY], children, order, starts, ends, earliest, latest)


def _distinct(logged: Sequence[Span], report: ImportReport) -> tuple[list[Span], dict[str, int]]:
    """Return each span once, and their indexes by id; report copies, spans out of order and unknown kinds.

    Of two copies the later one counts, unless only the earlier is finished.
    """
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
        copy = earlier
        if span.end is None and earlier.end is not None:
            copy = span
        else:
            spans[index] = span
        report.drop(Drop.COPY, copy.file, copy.line)
        if copy.usage is not None:
            report.enter(LedgerLine.COPY, input=copy.usage.input or 0, output=copy.usage.output or 0)
    return spans, indexes


def _children(parents: Sequence[int]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for index, parent in enumerate(parents):
        children[parent].append(index)
    return children


def _parents_first(children: list[list[int]]) -> list[int]:
    """Return all spans below the roots, each behind its parent."""
    waiting = children[NOBODY][::-1]
    order = []
    while waiting:
        index = waiting.pop()
        order.append(index)
        waiting += reversed(children[index])
    return order


def _cut_cycles(spans: Sequence[Span], parents: list[int], reached: Sequence[int], report: ImportReport) -> None:
    """Cut each cycle of parents at its earliest span."""
    others = set(range(len(spans))).difference(reached)
    for last, begin in closing_links({index: (parents[index],) for index in sorted(others)}):
        cycle = [begin]
        while cycle[-1] != last:
            cycle.append(parents[cycle[-1]])
        first = min(cycle, key=lambda index: (spans[index].start or 0.0, index))
        parents[first] = NOBODY
        report.note(Problem.SPAN_CYCLE, spans[first].where)


def _times(
    spans: Sequence[Span], parents: Sequence[int], order: Sequence[int], report: ImportReport
) -> tuple[list[float], list[float | None]]:
    """Return when each span began and ended: a missing beginning is taken from its children, else from its parent."""
    starts, ends = [span.start for span in spans], [span.end for span in spans]
    is_missing = [*(start is None for start in starts), False]
    for index in reversed(order):  # children first
        start, end, parent = starts[index], ends[index], parents[index]
        if is_missing[index]:
            report.note(Problem.NO_BEGINNING, spans[index].where)
        elif end is not None and start is not None and end < start:
            report.note(Problem.ENDS_BEFORE_BEGINNING, spans[index].where)
        if start is not None and is_missing[parent]:
            earliest = starts[parent]
            starts[parent] = start if earliest is None else min(earliest, start)
    first = min((start for start in starts if start is not None), default=0.0)
    settled: list[float] = [first] * (len(spans) + 1)
    for index in order:
        start, end = starts[index], ends[index]
        if start is None:
            start = settled[parents[index]]
        if end is not None and end < start:
            if is_missing[index]:
                start = end
            ends[index] = start
        settled[index] = start
    del settled[NOBODY]
    return settled, ends


_LOOP_MODELS = frozenset({"agent", "model", "model_request", "call_model"})
_LOOP_NODES = _LOOP_MODELS | {"tools", "pre_model_hook", "post_model_hook", "generate_structured_response"}
"""The nodes of LangGraph's and LangChain's own agent; nodes of middleware have a dot in their names."""

_NO_NAME = frozenset({"", "LangGraph"})

_ACTS = frozenset({INFERENCE, TOOL, HANDOFF, GUARDRAIL, PERSON})


class Meanings:
    """The kinds of spans once their relatives are known, by their index.

    A format names a span for what the program was doing. Some are wrappers: a trace that calls itself an agent, a
    framework's model call around the same call of a client, the nodes of a graph that is the loop of one agent.
    """

    def __init__(self, tree: Tree, with_tokens: Collection[int]) -> None:
        count = len(tree.spans) + 1
        self.kinds = [span.kind for span in tree.spans]
        self.names = [span.name for span in tree.spans]  # the name of the agent or tool
        self.has_agents = [False] * count  # True if an agent's span is below
        self.has_acts = [False] * count  # True if anything that an agent does is below
        self.silent: set[int] = set()  # the LangGraph tasks that only compute, without a model or a tool
        tasks = _tasks(tree)
        self._make_agents_of_nodes(tree, tasks)
        self._unmask_wrappers(tree, set(tasks), with_tokens)

    def first_act_in(self, index: int, tree: Tree) -> float:
        """Return when the first act inside a tool's span begins: from then on the tool only waits for its acts."""
        waiting, first = list(tree.children[index]), tree.latest[index]
        while waiting:
            child = waiting.pop()
            if self.kinds[child] is CHAIN:
                waiting += tree.children[child]
            else:
                first = min(first, tree.starts[child])
        return first

    def _make_agents_of_nodes(self, tree: Tree, tasks: Sequence[int]) -> None:
        """Make agents of the nodes of graphs; make one agent of a graph that is an agent's loop."""
        nodes_of = defaultdict[int, list[int]](list)
        for index in tasks:
            nodes_of[tree.parents[index]].append(index)
        for graph, nodes in nodes_of.items():
            names = {index: task.node for index in nodes if (task := tree.spans[index].task)}
            is_loop = all(name in _LOOP_NODES or "." in name for name in names.values())
            if not is_loop or _LOOP_MODELS.isdisjoint(names.values()):
                agents = names
            elif graph == NOBODY:
                continue
            else:
                around = tree.spans[graph]
                name = around.agent or around.name
                if name in _NO_NAME and around.task:  # the node around it is the agent
                    continue
                agents = {graph: name}
            for index, name in agents.items():
                if self.kinds[index] is CHAIN:
                    self.kinds[index], self.names[index] = AGENT, name

    def _unmask_wrappers(self, tree: Tree, tasks: set[int], with_tokens: Collection[int]) -> None:
        """Make holders of spans that only wrap another, children first."""
        kinds, has_agents, has_acts = self.kinds, self.has_agents, self.has_acts
        has_calls, has_named = [False] * len(has_acts), [False] * len(has_acts)
        for index in reversed(tree.order):
            kind, parent = kinds[index], tree.parents[index]
            if kind is INFERENCE and has_calls[index]:
                kind = CHAIN
            elif kind is HANDOFF and has_agents[index]:
                kind = TOOL
            elif kind is AGENT and not has_acts[index] and not has_agents[index]:
                if index in tasks:
                    self.silent.add(index)
                if index not in with_tokens:  # else its model calls are only not in the log
                    kind = CHAIN
            elif kind is AGENT and has_named[index] and not tree.spans[index].is_named and index not in tasks:
                kind = CHAIN
            kinds[index] = kind
            if kind is AGENT or has_agents[index]:
                has_agents[parent] = True
            if kind in _ACTS or has_acts[index]:
                has_acts[parent] = True
            if kind is INFERENCE or has_calls[index]:
                has_calls[parent] = True
            if has_named[index] or (kind is AGENT and tree.spans[index].is_named):
                has_named[parent] = True


def _tasks(tree: Tree) -> list[int]:
    """Return the spans with which LangGraph tasks begin: those of another namespace than the span around them."""
    tasks = []
    namespaces = [""] * (len(tree.spans) + 1)
    for index in tree.order:
        namespace, task = namespaces[tree.parents[index]], tree.spans[index].task
        if task is not None and task.namespace != namespace:
            tasks.append(index)
            namespace = task.namespace
        namespaces[index] = namespace
    return tasks


_MOST_SECONDS = 0.1  # between the begins, and between the ends, of two spans of one call
_MOST_COMPARED = 10  # earlier spans that a span is compared with


def merge_twins(tree: Tree, run: Run) -> None:
    """Merge each two spans of one model call that two instrumentations wrote: of one usage first, then of one answer.

    The deeper span is kept, as it is in the agent that asked; it gets what only the other says.
    """
    spans = tree.spans
    calls = [index for index in tree.order if spans[index].kind is INFERENCE and spans[index].library]
    if len({spans[index].library for index in calls}) < 2:
        return
    depths = [0] * (len(spans) + 1)
    for index in tree.order:
        depths[index] = depths[tree.parents[index]] + 1
    by_tokens = {index: usage[:2] for index in calls if (usage := spans[index].usage) and any(usage[:2])}
    by_answer = {index: spans[index].output for index in calls if spans[index].output}
    merged: set[int] = set()
    for signs in (by_tokens, by_answer):
        groups = defaultdict[object, list[int]](list)
        for index, sign in signs.items():
            if index not in merged:
                groups[sign].append(index)
        for group in groups.values():
            for pair in _twins(tree, group):
                merged.update(pair)
                inner, outer = (spans[n] for n in sorted(pair, key=lambda n: (-depths[n], tree.starts[n], n)))
                _merge(inner, outer, run)


def _twins(tree: Tree, group: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a group that two libraries wrote at the same time."""
    waiting: dict[str, deque[int]] = {}
    for index in sorted(group, key=lambda n: (tree.starts[n], n)):
        library = tree.spans[index].library
        for other, earlier in waiting.items():
            while earlier and tree.starts[earlier[0]] < tree.starts[index] - _MOST_SECONDS:
                earlier.popleft()
            if other == library:
                continue
            twin = next((n for n in islice(earlier, _MOST_COMPARED) if _is_one_call(tree, n, index)), NOBODY)
            if twin != NOBODY:
                earlier.remove(twin)
                yield twin, index
                break
        else:
            waiting.setdefault(library, deque()).append(index)


def _is_one_call(tree: Tree, first: int, second: int) -> bool:
    """Return True if two spans end together and name one model: `openai/m` and `m-2026-01-15` are both `m`."""
    end, other_end = tree.ends[first], tree.ends[second]
    if end is None or other_end is None or abs(end - other_end) > _MOST_SECONDS:
        return False
    short, long = sorted((tree.spans[first].model, tree.spans[second].model), key=len)
    return long.startswith(short) or long.endswith(short)


def _merge(inner: Span, outer: Span, run: Run) -> None:
    run.report.note(Problem.TWIN_CALL, outer.where)
    outer.kind = CHAIN
    if outer.usage is not None and inner.usage is not None:
        run.leave_out(LedgerLine.TWIN, outer.usage)
    usages = filter(None, (inner.usage, outer.usage))
    inner.usage, outer.usage = min(usages, key=lambda usage: usage.count(None), default=None), None  # the fuller one
    inner.calls, outer.calls = inner.calls or outer.calls, ()
    inner.model, inner.output = inner.model or outer.model, inner.output or outer.output
    inner.agent = inner.agent or outer.agent


def count_tokens(tree: Tree, run: Run) -> tuple[dict[int, tuple[Tokens, TokenBasis]], int]:
    """Return the tokens of each span's event, with their basis, and the number of answers without known tokens.

    The report's ledger says why each usage is counted or left out.
    """
    usages = [span.usage and _usable(span.usage, run) for span in tree.spans]
    calls = [0] * (len(tree.spans) + 1)  # the number of model calls in the span, itself included
    last_call = [NOBODY] * (len(tree.spans) + 1)  # the one of them that ends last
    by_end = [*zip(tree.latest, range(len(tree.spans)), strict=True), (-inf, NOBODY)]
    sums: dict[int, tuple[int, int]] = {}  # the input and output that is counted in the span, if any is
    counted: set[int] = set()  # spans whose usage is counted, or that of a span around them
    by_span: dict[int, tuple[Tokens, TokenBasis]] = {}
    for index in reversed(tree.order):  # children first
        span, usage, parent = tree.spans[index], usages[index], tree.parents[index]
        if span.kind is INFERENCE and not calls[index]:
            calls[index], last_call[index] = 1, index
        if usage is not None and span.is_cumulative:
            if index in sums:
                run.leave_out(LedgerLine.SHARED_COUNTER, usage)
        elif usage is not None and index in sums:
            is_equal = sums[index] == (usage.input or 0, usage.output or 0)
            run.leave_out(LedgerLine.EQUAL_TOTAL if is_equal else LedgerLine.OTHER_TOTAL, usage)
            if not is_equal:
                run.report.note(Problem.SPAN_TOTAL_DIFFERS, span.where)
        elif usage is not None:  # that of the only call in it, else a total that the last call bears, else its own
            bearer, line, basis = last_call[index], LedgerLine.AROUND, TokenBasis.REPORTED
            if bearer == NOBODY and span.kind is not TOOL:
                bearer, line = index, LedgerLine.BLACK_BOX
            elif bearer in (index, NOBODY):
                bearer, line = index, LedgerLine.OWN
            elif calls[index] > 1:
                line, basis = LedgerLine.SPAN_TOTAL, TokenBasis.PLACEHOLDER
            by_span[bearer] = run.spend_counts(usage, line), basis
            sums[index] = usage.input or 0, usage.output or 0
            counted.add(index)
        if calls[index]:
            calls[parent] += calls[index]
            last_call[parent] = max(last_call[parent], last_call[index], key=by_end.__getitem__)
        if index in sums:
            known = sums.get(parent, (0, 0))
            sums[parent] = known[0] + sums[index][0], known[1] + sums[index][1]
    for index in tree.order:  # counters: the outermost holds what all in it have added, if nothing of that is counted
        if tree.parents[index] in counted:
            counted.add(index)
        usage = usages[index]
        if usage is None or not tree.spans[index].is_cumulative or index in sums:
            continue
        if index in counted:
            run.leave_out(LedgerLine.SHARED_COUNTER, usage)
        else:
            counted.add(index)
            bearer = index if last_call[index] == NOBODY else last_call[index]
            by_span[bearer] = run.spend_counts(usage, LedgerLine.COUNTER), TokenBasis.PLACEHOLDER
    silent = [n for n in tree.order if last_call[n] == n and tree.spans[n].kind is INFERENCE and n not in by_span]
    unknown = [index for index in silent if not tree.spans[index].is_free]
    if len(silent) > len(unknown):
        run.report.enter(LedgerLine.KEPT_ANSWER, len(silent) - len(unknown))
    if unknown:
        run.report.enter(LedgerLine.SILENT_CALL, len(unknown))
    return by_span, sum(index not in counted and not tree.spans[index].is_error for index in unknown)


def _usable(usage: Usage, run: Run) -> Usage | None:
    """Return a usage that says what went in or out."""
    if usage.is_known and any(usage):
        return usage
    if usage.is_known:
        run.report.enter(LedgerLine.ZERO)
    elif usage.total:
        run.report.enter(LedgerLine.UNDIVIDED, total=usage.total)
    return None
