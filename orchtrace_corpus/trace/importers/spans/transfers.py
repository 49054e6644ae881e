"""Who took over from whom: handoffs that spans tell of, and the edges of LangGraph graphs, concluded from steps.

LangGraph runs a graph in supersteps: the tasks of one step run at once, and what they write is read in the next.
So every task depends on the tasks of the step before it, or on those that its `join:` trigger names, unless these
say that another node shall run next. A task that was pushed (`Send`) is brought into being by one of them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from orchtrace_corpus.trace.importers.core.privacy import masked
from orchtrace_corpus.trace.importers.spans.kinds import Meanings
from orchtrace_corpus.trace.importers.spans.span import Kind, Task
from orchtrace_corpus.trace.importers.spans.tree import NOBODY, Tree
from orchtrace_corpus.trace.model.import_report import ImportReport, Problem

_PUSH = "__pregel_push"
_END = "__end__"
_MOST_PAIRS = 1_000
"""Of two steps with more pairs of tasks, not every task is joined to every other: edges stay linear."""

Places = Mapping[int, tuple[int, int]]
"""Where each agent's span lies: in which activation, and below which tool's span."""


class Transfer(NamedTuple):
    """Control passes from one activation to another.

    Attributes:
        source: The number of the activation that passes it on.
        target: The number of the activation that takes over.
        span: The number of the handoff's span; `NOBODY` where the transfer is concluded.
        is_push: Whether the target is brought into being by it.
        is_routed: Whether the source has chosen the target.
    """

    source: int
    target: int
    span: int = NOBODY
    is_push: bool = False
    is_routed: bool = False


def transfers(
    of: Tree, meanings: Meanings, owner: Sequence[int], places: Places, report: ImportReport
) -> list[Transfer]:
    """All transfers of a tree: those of graphs, of handoffs, and those by the name of who acted before."""
    found = list(_Graphs(of, meanings, owner, report).transfers())
    found += _handoffs(of, meanings, owner, places, report)
    reached = {each.target for each in found}
    found += [each for each in _by_name(of, meanings, owner, places) if each.target not in reached]
    return found


def _beside(of: Tree, places: Places, number: int) -> Iterator[tuple[int, ...]]:
    """Where the other agents of a group are looked for: under the same parent first, then in the same agent."""
    yield (of.parents[number],)
    yield places[number]


def _agents(
    of: Tree, meanings: Meanings, places: Places, times: Sequence[float]
) -> dict[tuple[tuple[int, ...], str], list[tuple[float, int]]]:
    """The agents' spans by where they lie and by name, each with a time, in its order."""
    found: dict[tuple[tuple[int, ...], str], list[tuple[float, int]]] = {}
    for number in places:
        for place in _beside(of, places, number):
            found.setdefault((place, masked(meanings.names[number])), []).append((times[number], number))
    for spans in found.values():
        spans.sort()
    return found


def _handoffs(
    of: Tree, meanings: Meanings, owner: Sequence[int], places: Places, report: ImportReport
) -> Iterator[Transfer]:
    """Each handoff goes to the next agent of that name that begins beside the one that hands over."""
    handoffs = [number for number, kind in enumerate(meanings.kinds) if kind is Kind.HANDOFF]
    if not handoffs:
        return
    span_of = {owner[number]: number for number in places}
    agents = _agents(of, meanings, places, of.earliest)
    for number in handoffs:
        source = span_of.get(owner[number], NOBODY)
        begin = of.starts[number]
        places_of_source = _beside(of, places, source) if source != NOBODY else iter([(NOBODY,), (NOBODY, NOBODY)])
        for place in places_of_source:
            candidates = agents.get((place, masked(of.spans[number].target)), [])
            at = bisect_left(candidates, (begin, NOBODY))
            if at < len(candidates) and candidates[at][1] != source:
                yield Transfer(owner[number], owner[candidates[at][1]], number, is_routed=True)
                break
        else:
            report.note(Problem.HANDOFF_TO_NOBODY, of.spans[number].where)


def _by_name(of: Tree, meanings: Meanings, owner: Sequence[int], places: Places) -> Iterator[Transfer]:
    """An agent that names the one before it follows the last of that name that has ended beside it."""
    followers = [number for number in places if of.spans[number].follows]
    if not followers:
        return
    ends = [NOBODY if end is None else end for end in of.ends]
    agents = _agents(of, meanings, places, ends)
    for number in followers:
        for place in _beside(of, places, number):
            candidates = agents.get((place, masked(of.spans[number].follows)), [])
            at = bisect_right(candidates, (of.earliest[number], len(of.spans))) - 1
            if at >= 0 and candidates[at][0] != NOBODY and candidates[at][1] != number:
                yield Transfer(owner[candidates[at][1]], owner[number], is_routed=True)
                break


class _Graphs:
    """The tasks of graphs, step by step."""

    def __init__(self, of: Tree, meanings: Meanings, owner: Sequence[int], report: ImportReport) -> None:
        self._of = of
        self._meanings = meanings
        self._owner = owner
        self._report = report
        self._origins: dict[int, list[int]] = {}

    def transfers(self) -> Iterator[Transfer]:
        graphs: dict[tuple[int, str], list[tuple[int, Task]]] = {}
        for number in self._of.order:
            span, kind = self._of.spans[number], self._meanings.kinds[number]
            is_node = kind is Kind.AGENT or number in self._meanings.silent
            if is_node and span.task is not None and self._meanings.names[number] == span.task.node:
                parent = self._of.parents[number]
                missing = span.parent if parent == NOBODY else ""
                graphs.setdefault((parent, missing), []).append((number, span.task))
        for tasks in graphs.values():
            yield from self._of_graph(tasks)

    def _of_graph(self, tasks: list[tuple[int, Task]]) -> Iterator[Transfer]:
        steps: dict[int, list[tuple[int, Task]]] = {}
        for number, task in tasks:
            steps.setdefault(task.step, []).append((number, task))
        nodes = {task.node for _, task in tasks} | {_END}
        routes = {number: self._routes(number, nodes) for number, _ in tasks}
        last: dict[str, int] = {}
        before: list[int] = []
        for _, step in sorted(steps.items()):
            leads_to = self._leads_to(before, routes)
            is_wide = len(before) * len(step) > _MOST_PAIRS
            for place, (number, task) in enumerate(step):
                joined = [last[name] for name in _joined(task, last)]
                sources = joined or leads_to.get(task.node) or leads_to[""]
                if is_wide and place:
                    sources = sources[-1:]
                yield from self._to(number, task, sources, routes)
            before = [number for number, _ in step]
            last.update((task.node, number) for number, task in step)

    def _leads_to(self, before: Sequence[int], routes: Mapping[int, set[str] | None]) -> dict[str, list[int]]:
        """The tasks of a step that lead to a node, the one that ends last at the end; without a name: to any other."""
        before = sorted(before, key=lambda each: (self._end(each), each))
        free = [each for each in before if not routes[each]]
        chosen: dict[str, list[int]] = {}
        for each in before:
            for node in sorted(routes[each] or ()):
                chosen.setdefault(node, []).append(each)
        if len(free) * len(chosen) <= _MOST_PAIRS:
            places = {each: place for place, each in enumerate(before)}
            chosen = {node: sorted((*free, *named), key=places.__getitem__) for node, named in chosen.items()}
        return {"": free or before, **chosen}

    def _to(
        self, number: int, task: Task, sources: list[int], routes: Mapping[int, set[str] | None]
    ) -> Iterator[Transfer]:
        """The transfers to a task; a task that only computes passes on what led to it."""
        sources = [origin for each in sources for origin in self._origins.get(each, (each,))]
        sources = list(dict.fromkeys(sources))
        if number in self._meanings.silent:
            fits = len(sources) ** 2 <= _MOST_PAIRS
            self._origins[number] = sources if fits else [max(sources, key=lambda each: (self._end(each), each))]
            return
        begin = self._of.earliest[number]
        before = [each for each in sources if self._end(each) <= begin]
        if len(before) < len(sources):
            self._report.note(Problem.OVERLAPPING_TASK, self._of.spans[number].where)
        if _PUSH in task.triggers:
            before = [max(before, key=lambda each: (self._end(each), each))] if before else []
            yield from (Transfer(self._owner[each], self._owner[number], is_push=True) for each in before)
        else:
            for each in before:
                is_routed = task.node in (routes.get(each) or ())
                yield Transfer(self._owner[each], self._owner[number], is_routed=is_routed)

    def _end(self, number: int) -> float:
        end = self._of.ends[number]
        return float("inf") if end is None else end

    def _routes(self, number: int, nodes: set[str]) -> set[str] | None:
        """The nodes that a task says shall run next; None if it does not say."""
        spans = self._of.spans
        named = [*spans[number].routes]
        for child in self._of.children[number]:
            if self._meanings.kinds[child] is Kind.CHAIN:
                named += spans[child].routes
        return {name for name in named if name in nodes} or None


def _joined(task: Task, known: Mapping[str, int]) -> list[str]:
    """The nodes that a task's `join:` trigger names, such as `join:a+b:merge`."""
    ending = f":{task.node}"
    for trigger in task.triggers:
        if trigger.startswith("join:") and trigger.endswith(ending):
            return [name for name in trigger[5 : -len(ending)].split("+") if name in known]
    return []
