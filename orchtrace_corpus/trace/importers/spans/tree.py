"""Make a tree of the spans of one trace, find the role of each span in it, and count the tokens.

Logs have copies, cycles, lost parents and wrong clocks. Apart from sorting, all functions take time linear in the
number of spans. None is recursive, because a tree may be as deep as it is large.

`NO_INDEX` is -1, which is also the index of the last element of a list. Lists that are looked up by the index of a
parent have one element more than there are spans. This last element stands for the parent of spans without one.
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

NO_INDEX = -1
"""The index of a span or agent that does not exist."""


class Tree(NamedTuple):
    """The spans of a trace, and lists of what is known about each of them, by index."""

    spans: Sequence[Span]
    parents: list[int]  # the index of each span's parent, or `NO_INDEX`; the last element is `NO_INDEX`
    children: list[list[int]]  # the indexes of each span's children, by time; the last element has the roots
    order: list[int]  # all indexes: parents before their children, children by time
    starts: list[float]  # when each span began, in seconds; estimated from its relatives if the log does not say
    ends: list[float | None]  # when each span ended; None if the log does not say
    earliest: list[float]  # when each span or the first of its descendants began
    latest: list[float]  # when each span or the last of its descendants began or ended

    def end(self, index: int) -> float:
        """Return when a span ended, or when its last descendant ended if the log does not say."""
        end = self.ends[index]
        return self.latest[index] if end is None else end


def build_tree(logged: Sequence[Span], report: ImportReport) -> Tree:
    """Return the tree of the spans of one trace."""
    spans, indexes = _distinct_spans(logged, report)
    parents = []
    for span in spans:
        parent = NO_INDEX
        if span.parent:
            parent = indexes.get(span.parent, indexes.get(span.other_parent, NO_INDEX))
            if parent == NO_INDEX:
                report.note(Problem.NO_PARENT_SPAN, span.where)
        parents.append(parent)
    children = _children(parents)
    order = _parents_first(children)
    if len(order) < len(spans):
        _cut_cycles(spans, parents, order, report)
        children = _children(parents)
        order = _parents_first(children)
    starts, ends = _times(spans, parents, order, report)
    last_times = [start if end is None else end for start, end in zip(starts, ends, strict=True)]  # of the spans alone
    for siblings in children:
        if len(siblings) > 1:
            siblings.sort(key=lambda index: (starts[index], last_times[index], index))
    order = _parents_first(children)
    earliest, latest = [*starts, inf], [*last_times, -inf]
    for index in reversed(order):  # children first
        parent = parents[index]
        if earliest[index] < earliest[parent]:
            earliest[parent] = earliest[index]
        if latest[index] > latest[parent]:
            latest[parent] = latest[index]
    del earliest[NO_INDEX], latest[NO_INDEX]
    return Tree(spans, [*parents, NO_INDEX], children, order, starts, ends, earliest, latest)


def _distinct_spans(logged: Sequence[Span], report: ImportReport) -> tuple[list[Span], dict[str, int]]:
    """Return each span once, and their indexes by id; report copies, spans out of order and unknown kinds."""
    spans: list[Span] = []
    indexes: dict[str, int] = {}
    last_end = 0.0
    report.records_read = len(logged)
    for span in logged:
        if span.end is not None:
            if span.end < last_end:
                report.out_of_order += 1
            last_end = span.end
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
        if span.end is None and earlier.end is not None:
            copy = span
        else:  # the later span replaces the earlier one
            copy = earlier
            spans[index] = span
        report.drop(Drop.COPY, copy.file, copy.line)
        if copy.usage is not None:
            report.enter(LedgerLine.COPY, input=copy.usage.input or 0, output=copy.usage.output or 0)
    return spans, indexes


def _children(parents: Sequence[int]) -> list[list[int]]:
    """Return the children of each span; the last element has the roots."""
    children: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for index, parent in enumerate(parents):
        children[parent].append(index)
    return children


def _parents_first(children: list[list[int]]) -> list[int]:
    """Return the indexes of all descendants of roots, each after its parent."""
    waiting = children[NO_INDEX][::-1]
    order = []
    while waiting:
        index = waiting.pop()
        order.append(index)
        waiting += reversed(children[index])
    return order


def _cut_cycles(spans: Sequence[Span], parents: list[int], reached: Sequence[int], report: ImportReport) -> None:
    """Cut each cycle of parents at its earliest span."""
    unreached = set(range(len(spans))).difference(reached)
    for last, first in closing_links({index: (parents[index],) for index in sorted(unreached)}):
        cycle = [first]
        while cycle[-1] != last:
            cycle.append(parents[cycle[-1]])
        earliest = min(cycle, key=lambda index: (spans[index].start or 0.0, index))
        parents[earliest] = NO_INDEX
        report.note(Problem.SPAN_CYCLE, spans[earliest].where)


def _times(
    spans: Sequence[Span], parents: Sequence[int], order: Sequence[int], report: ImportReport
) -> tuple[list[float], list[float | None]]:
    """Return when each span began and ended. A missing beginning is taken from the children, else from the parent."""
    starts, ends = [span.start for span in spans], [span.end for span in spans]
    is_missing = [*(start is None for start in starts), False]  # the last element is for the parent of roots
    for index in reversed(order):  # children first
        start, end, parent = starts[index], ends[index], parents[index]
        if is_missing[index]:
            report.note(Problem.NO_BEGINNING, spans[index].where)
        elif end is not None and start is not None and end < start:
            report.note(Problem.ENDS_BEFORE_BEGINNING, spans[index].where)
        if start is not None and is_missing[parent]:
            earliest = starts[parent]
            starts[parent] = start if earliest is None else min(earliest, start)
    first_start = min((start for start in starts if start is not None), default=0.0)
    known_starts: list[float] = [first_start] * (len(spans) + 1)
    for index in order:
        start, end = starts[index], ends[index]
        if start is None:
            start = known_starts[parents[index]]
        if end is not None and end < start:
            if is_missing[index]:
                start = end
            ends[index] = start
        known_starts[index] = start
    del known_starts[NO_INDEX]
    return known_starts, ends


_LOOP_MODELS = frozenset({"agent", "model", "model_request", "call_model"})
_LOOP_NODES = _LOOP_MODELS | {"tools", "pre_model_hook", "post_model_hook", "generate_structured_response"}
"""The nodes of the agent loops of LangGraph and LangChain. Nodes of their middleware have a dot in the name."""

_DEFAULT_NAMES = frozenset({"", "LangGraph"})

_ACTS = frozenset({INFERENCE, TOOL, HANDOFF, GUARDRAIL, PERSON})


class SpanRoles:
    """The role of each span in the tree, by index: its kind, and what it contains.

    The kind differs from the kind in the log for wrappers, such as a trace that is called an agent, a framework's model
    call around the client's model call, or the nodes of a graph that is the loop of one agent.
    """

    def __init__(self, tree: Tree, with_tokens: Collection[int]) -> None:
        count = len(tree.spans) + 1
        self.kinds = [span.kind for span in tree.spans]
        self.names = [span.name for span in tree.spans]  # the name of the agent or tool
        self.has_agents = [False] * count  # True if the span contains the span of an agent
        self.has_acts = [False] * count  # True if the span contains something that an agent does
        self.silent: set[int] = set()  # the LangGraph tasks that call no model and no tool
        tasks = _tasks(tree)
        self._make_agents_of_nodes(tree, tasks)
        self._unmask_wrappers(tree, set(tasks), with_tokens)

    def first_act_in(self, index: int, tree: Tree) -> float:
        """Return when the first act inside a tool's span begins. From then on the tool only waits for its acts."""
        waiting = list(tree.children[index])
        first_start = tree.latest[index]
        while waiting:
            child = waiting.pop()
            if self.kinds[child] is CHAIN:
                waiting += tree.children[child]
            else:
                first_start = min(first_start, tree.starts[child])
        return first_start

    def _make_agents_of_nodes(self, tree: Tree, tasks: Sequence[int]) -> None:
        """Make an agent of each node of a graph, or one agent of the whole graph if it is an agent's loop."""
        node_names_by_graph = defaultdict[int, dict[int, str]](dict)  # by the spans of the graph and of the node
        for index in tasks:
            task = tree.spans[index].task
            if task is not None:
                node_names_by_graph[tree.parents[index]][index] = task.node
        for graph, node_names in node_names_by_graph.items():
            is_loop = all(name in _LOOP_NODES or "." in name for name in node_names.values())
            if not is_loop or _LOOP_MODELS.isdisjoint(node_names.values()):
                agents = node_names
            elif graph == NO_INDEX:
                continue
            else:
                graph_span = tree.spans[graph]
                name = graph_span.agent or graph_span.name
                if name in _DEFAULT_NAMES and graph_span.task:  # the graph is the loop of the node that contains it
                    continue
                agents = {graph: name}
            for index, name in agents.items():
                if self.kinds[index] is CHAIN:
                    self.kinds[index], self.names[index] = AGENT, name

    def _unmask_wrappers(self, tree: Tree, tasks: set[int], with_tokens: Collection[int]) -> None:
        """Make chains of spans that only wrap another span, and note what each span contains."""
        kinds, has_agents, has_acts = self.kinds, self.has_agents, self.has_acts
        has_calls = [False] * len(has_acts)  # True if the span contains a model call
        has_named = [False] * len(has_acts)  # True if the span contains an agent that the log names
        for index in reversed(tree.order):  # children first
            kind, parent = kinds[index], tree.parents[index]
            if kind is INFERENCE and has_calls[index]:
                kind = CHAIN
            elif kind is HANDOFF and has_agents[index]:
                kind = TOOL
            elif kind is AGENT and not has_acts[index] and not has_agents[index]:
                if index in tasks:
                    self.silent.add(index)
                if index not in with_tokens:  # an agent with tokens has model calls that are not in the log
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
    """Return the outermost span of each LangGraph task. It has another namespace than the span around it."""
    tasks = []
    namespaces = [""] * (len(tree.spans) + 1)
    for index in tree.order:
        namespace, task = namespaces[tree.parents[index]], tree.spans[index].task
        if task is not None and task.namespace != namespace:
            tasks.append(index)
            namespace = task.namespace
        namespaces[index] = namespace
    return tasks


_MAX_SECONDS = 0.1  # between the beginnings, and between the ends, of two spans of one call
_MAX_COMPARED = 10  # the number of earlier spans that a span is compared with


def merge_twins(tree: Tree, run: Run) -> None:
    """Merge pairs of spans that two instrumentations wrote of one model call.

    The two have the same usage, or else the same answer. The inner span is kept, because it is inside the agent that
    asked. It takes the values that only the other span has.
    """
    spans = tree.spans
    calls = [index for index in tree.order if spans[index].kind is INFERENCE and spans[index].library]
    if len({spans[index].library for index in calls}) < 2:
        return
    depths = [0] * (len(spans) + 1)
    for index in tree.order:
        depths[index] = depths[tree.parents[index]] + 1
    tokens = {}
    outputs = {}
    for index in calls:
        usage, output = spans[index].usage, spans[index].output
        if usage is not None and any(usage[:2]):
            tokens[index] = usage[:2]
        if output:
            outputs[index] = output
    merged: set[int] = set()
    for values in (tokens, outputs):
        groups = defaultdict[object, list[int]](list)
        for index, value in values.items():
            if index not in merged:
                groups[value].append(index)
        for group in groups.values():
            for pair in _twins(tree, group):
                merged.update(pair)
                inner, outer = sorted(pair, key=lambda index: (-depths[index], tree.starts[index], index))
                _merge(spans[inner], spans[outer], run)


def _twins(tree: Tree, group: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of spans of a group that two libraries wrote of one call."""
    unpaired: dict[str, deque[int]] = {}  # by library
    for index in sorted(group, key=lambda index: (tree.starts[index], index)):
        library = tree.spans[index].library
        for other_library, earlier in unpaired.items():
            while earlier and tree.starts[earlier[0]] < tree.starts[index] - _MAX_SECONDS:
                earlier.popleft()
            if other_library == library:
                continue
            twins = (other for other in islice(earlier, _MAX_COMPARED) if _is_one_call(tree, other, index))
            twin = next(twins, NO_INDEX)
            if twin != NO_INDEX:
                earlier.remove(twin)
                yield twin, index
                break
        else:  # no library has a twin so far
            unpaired.setdefault(library, deque()).append(index)


def _is_one_call(tree: Tree, first: int, second: int) -> bool:
    """Return True if two spans end together and name one model, such as `openai/m` or `m-2026-01-15` and `m`."""
    end, other_end = tree.ends[first], tree.ends[second]
    if end is None or other_end is None or abs(end - other_end) > _MAX_SECONDS:
        return False
    short, long = sorted((tree.spans[first].model, tree.spans[second].model), key=len)
    return long.startswith(short) or long.endswith(short)


def _merge(inner: Span, outer: Span, run: Run) -> None:
    run.report.note(Problem.TWIN_CALL, outer.where)
    outer.kind = CHAIN
    if outer.usage is not None and inner.usage is not None:
        run.leave_out(LedgerLine.TWIN, outer.usage)
    usages = [usage for usage in (inner.usage, outer.usage) if usage is not None]
    inner.usage = min(usages, key=lambda usage: usage.count(None), default=None)  # the usage with most counts
    outer.usage = None
    inner.calls, outer.calls = inner.calls or outer.calls, ()
    inner.model = inner.model or outer.model
    inner.output = inner.output or outer.output
    inner.agent = inner.agent or outer.agent


def count_tokens(tree: Tree, run: Run) -> tuple[dict[int, tuple[Tokens, TokenBasis]], int]:
    """Return the tokens of the spans' events with their basis, and the number of answers whose tokens are unknown."""
    usages = [None if span.usage is None else _usable(span.usage, run) for span in tree.spans]
    calls = [0] * (len(tree.spans) + 1)  # the number of model calls in each span, itself included
    last_call = [NO_INDEX] * (len(tree.spans) + 1)  # the model call in each span that ends last
    end_keys = [*zip(tree.latest, range(len(tree.spans)), strict=True), (-inf, NO_INDEX)]  # to compare calls by end
    sums: dict[int, tuple[int, int]] = {}  # the input and output that are counted inside a span
    counted: set[int] = set()  # spans whose usage, or the usage of a span around them, is counted
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
        elif usage is not None:
            # the span whose event gets the tokens, the line of the ledger, and the basis
            receiver, line, basis = index, LedgerLine.OWN, TokenBasis.REPORTED
            if last_call[index] == NO_INDEX and span.kind is not TOOL:
                line = LedgerLine.BLACK_BOX
            elif last_call[index] not in (index, NO_INDEX):  # the call inside has no usage of its own
                receiver, line = last_call[index], LedgerLine.AROUND
                if calls[index] > 1:  # the usage is a total of several calls, which the last call takes
                    line, basis = LedgerLine.SPAN_TOTAL, TokenBasis.PLACEHOLDER
            by_span[receiver] = run.spend_counts(usage, line), basis
            sums[index] = usage.input or 0, usage.output or 0
            counted.add(index)
        if calls[index]:
            calls[parent] += calls[index]
            last_call[parent] = max(last_call[parent], last_call[index], key=end_keys.__getitem__)
        if index in sums:
            input_tokens, output_tokens = sums.get(parent, (0, 0))
            sums[parent] = input_tokens + sums[index][0], output_tokens + sums[index][1]
    # a shared counter counts if nothing inside its span is counted; the outermost counter has the total
    for index in tree.order:
        if tree.parents[index] in counted:
            counted.add(index)
        usage = usages[index]
        if usage is None or not tree.spans[index].is_cumulative or index in sums:
            continue
        if index in counted:
            run.leave_out(LedgerLine.SHARED_COUNTER, usage)
        else:
            counted.add(index)
            receiver = index if last_call[index] == NO_INDEX else last_call[index]
            by_span[receiver] = run.spend_counts(usage, LedgerLine.COUNTER), TokenBasis.PLACEHOLDER
    kept_count, silent_count, unknown_count = 0, 0, 0
    for index, span in enumerate(tree.spans):
        if span.kind is not INFERENCE or last_call[index] != index or index in by_span:
            continue
        if span.is_free:
            kept_count += 1
            continue
        silent_count += 1
        if index not in counted and not span.is_error:
            unknown_count += 1
    if kept_count:
        run.report.enter(LedgerLine.KEPT_ANSWER, kept_count)
    if silent_count:
        run.report.enter(LedgerLine.SILENT_CALL, silent_count)
    return by_span, unknown_count


def _usable(usage: Usage, run: Run) -> Usage | None:
    """Return a usage whose input or output is known and not 0; else None, which is noted in the ledger."""
    if usage.is_known and any(usage):
        return usage
    if usage.is_known:
        run.report.enter(LedgerLine.ZERO)
    elif usage.total:
        run.report.enter(LedgerLine.UNDIVIDED, total=usage.total)
    return None
